//! The lag of the kernel's account of max RSS in verdicts on it.
//!
//! Since Linux 6.2 each CPU keeps some pages of a process's resident size in counters of its own, one for each kind of pages, and the
//! accounts at its exit do not have them: too few pages, or too many if pages were given back. How many depends on the order in which the
//! program touches its pages. The error is about the same in every run of one variant and differs between variants, so that no interval
//! and no A/A pair shows it. A verdict that it could change is withheld.

use widthwise_experiment::memory::RSS_LAG;
use widthwise_experiment::metric::find;
use widthwise_experiment::outcome::Source;
use widthwise_experiment::units::{Quantity, Unit};

use crate::pairs::Campaign;
use crate::typical::typical;
use crate::{Evidence, Verdict, Word};

/// How far two accounts may differ for the same memory, as a multiple of the lag of one: one may lack pages of all three kinds, and the
/// other may have too many of two while the third grows to the peak.
const OF_TWO: f64 = 5.0 / 3.0;

/// Withholds the verdicts on max RSS, and on its sum over processes, that the lag could change.
pub(crate) fn withhold(evidence: &Evidence, campaign: &Campaign, verdicts: &mut [Verdict]) {
    let typical = |variant: &str, metric| Some(typical(campaign, variant, find(metric)?)?.value);
    for verdict in verdicts.iter_mut().filter(|verdict| !verdict.is_control()) {
        let Some(lag) = lag(evidence, verdict.source).filter(|lag| *lag > 0) else { continue };
        let processes = match verdict.metric.name {
            "max_rss" => 1.0,
            "max_rss_sum" => {
                let of = |variant| typical(variant, "processes").unwrap_or(1.0);
                of(&verdict.variant).max(of(&verdict.baseline))
            }
            _ => continue,
        };
        let lag = OF_TWO * lag as f64 * processes;
        let Some(baseline) = typical(&verdict.baseline, verdict.metric.name) else { continue };
        if could_change(verdict, lag / baseline) {
            let lag = Quantity { value: lag, unit: Unit::Bytes };
            verdict.withhold(format!(
                "the kernel's accounts of {} may differ by {lag} for the same memory, which could change this verdict",
                verdict.metric.title
            ));
        }
    }
}

/// By how much the account of one process may lag.
fn lag(evidence: &Evidence, source: Option<Source>) -> Option<u64> {
    match source? {
        Source::Taskstats | Source::Rusage | Source::ExitStop => Some(evidence.rss_lag),
        // A kernel in an emulated machine has one CPU.
        Source::Guest | Source::Kvm => Some(RSS_LAG),
        _ => None,
    }
}

/// Whether the verdict is another one if the ratio is wrong by that much.
fn could_change(verdict: &Verdict, lag: f64) -> bool {
    // No process has a max RSS of 0, so that there is always a ratio.
    let (Some(low), Some(high), Some(_)) = (verdict.low, verdict.high, verdict.ratio) else { return false };
    let margin = 1.0 + verdict.equal_within;
    match verdict.word {
        Word::Lower => high + lag >= 1.0,
        Word::Higher => low - lag <= 1.0,
        Word::NoDifference => low - lag < margin.recip() || high + lag > margin,
        Word::Inconclusive | Word::Withheld | Word::NoData => false,
    }
}
