//! The lag of the kernel's account of max RSS in verdicts on it.
//!
//! Since Linux 6.2 each CPU keeps some pages of a process's resident size in counters of its own, one for each kind of pages, and the
//! accounts at its exit do not have them: too few pages, or too many if pages were given back. How many depends on the order in which the
//! program touches its pages. The error is about the same in every run of one variant and differs between variants, so that no interval
//! and no A/A pair shows it. Intervals, floors and projections include it, and a verdict that it could change is withheld.

use widthwise_experiment::memory::RSS_LAG;
use widthwise_experiment::metric::find;
use widthwise_experiment::outcome::Source;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;

use crate::pairs::Campaign;
use crate::typical::typical;
use crate::{Verdict, Word};

/// An account may lack pages of all three kinds, or have too many of two while the third grows to the peak: as a multiple of its lag.
const TOO_MANY: f64 = 2.0 / 3.0;
/// More memory than a program is given for a verdict, in bytes.
const MOST_MEMORY: f64 = 1e12;
/// A process has one page at least, in bytes.
const PAGE: f64 = 4096.0;

/// How far the accounts of a variant and of the baseline may differ for the same memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RssLag {
    /// How many bytes one account may lack.
    lacks: f64,
    /// The baseline's figure.
    baseline: f64,
}

impl RssLag {
    /// Of a comparison of these two, the baseline last; absent for every metric but max RSS and its sum over processes, and where the
    /// account is exact.
    pub fn of(
        campaign: &Campaign,
        pair: [&str; 2],
        metric: Metric,
        source: Option<Source>,
    ) -> Option<RssLag> {
        let typical = |variant: &str, metric| Some(typical(campaign, variant, metric)?.value);
        let processes = match metric.name {
            "max_rss" => 1.0,
            "max_rss_sum" => {
                let of =
                    |variant| find("processes").and_then(|metric| typical(variant, metric)).unwrap_or(1.0);
                pair.map(of).into_iter().fold(1.0, f64::max)
            }
            _ => return None,
        };
        let one = match source? {
            Source::Taskstats | Source::Rusage | Source::ExitStop => campaign.rss_lag,
            // A kernel in an emulated machine has one CPU.
            Source::Guest | Source::Kvm => RSS_LAG,
            _ => return None,
        };
        let lacks = one as f64 * processes;
        let [_, name] = pair;
        let baseline = typical(name, metric)?;
        (one > 0 && baseline > 0.0).then_some(RssLag { lacks, baseline })
    }

    /// By how many bytes the two accounts may differ for the same memory.
    pub fn bytes(self) -> f64 {
        (1.0 + TOO_MANY) * self.lacks
    }

    /// The same as a fraction of the baseline's figure.
    pub fn share(self) -> f64 {
        self.bytes() / self.baseline
    }

    /// The least and the most that the ratio of the true figures may be, if that of the accounts is between these.
    fn bounds(self, [low, high]: [f64; 2]) -> [f64; 2] {
        let has_too_many = TOO_MANY * self.lacks;
        let least = (low * self.baseline - has_too_many) / (self.baseline + self.lacks);
        let most = (high * self.baseline + self.lacks) / (self.baseline - has_too_many).max(PAGE);
        [least.max(0.0), most]
    }

    /// The detection floor with the lag, of an increase and of a decrease, as fractions: no smaller one is established.
    pub fn floors(self, floor: f64) -> [f64; 2] {
        // Of a baseline within the lag, no decrease is.
        let least_ratio = (1.0 - self.share()).max(0.0) / (1.0 + floor);
        [(1.0 + floor) * (1.0 + self.share()) - 1.0, 1.0 - least_ratio]
    }

    /// The baseline's figure above which the lag leaves a verdict of that word, if the accounts' ratio is between these there, too; any
    /// verdict for a word that claims nothing. Rounded up to two digits; absent where no memory would do.
    fn least_sufficient(self, word: Word, [low, high]: [f64; 2], equal_within: f64) -> Option<f64> {
        let (lacks, has_too_many) = (self.lacks, TOO_MANY * self.lacks);
        let margin = 1.0 + equal_within;
        // The ends of `bounds`, solved for the baseline's figure.
        let lower = self.bytes() / (1.0 - high).max(0.0);
        let higher = self.bytes() / (low - 1.0).max(0.0);
        let equal = f64::max(
            (lacks / margin + has_too_many) / (low - margin.recip()).max(0.0),
            (lacks + margin * has_too_many) / (margin - high).max(0.0),
        );
        let least = match word {
            Word::Lower => lower,
            Word::Higher => higher,
            Word::NoDifference => equal,
            Word::Inconclusive | Word::Withheld | Word::NoData => lower.min(higher).min(equal),
        };
        let step = 10f64.powf(least.log10().floor() - 1.0);
        (least < MOST_MEMORY).then(|| (least / step).ceil() * step)
    }

    /// What would lead to a verdict of that word.
    fn remedy(self, word: Word, ratios: [f64; 2], equal_within: f64) -> String {
        match self.least_sufficient(word, ratios, equal_within) {
            Some(least) => {
                let least = Quantity { value: least, unit: Unit::Bytes };
                format!(
                    "a larger input would, if it leaves the ratio and gives the baseline more than {least}"
                )
            }
            None => "only an input with a larger difference would".to_owned(),
        }
    }

    /// The verdict with an interval that includes the lag, and without a word that the lag could change. `keeps_open`: the lag is why
    /// no number of rounds would decide.
    pub fn included(self, mut verdict: Verdict, keeps_open: bool) -> Verdict {
        let Some(accounts) = verdict.low.zip(verdict.high).map(|(low, high)| [low, high]) else {
            return verdict;
        };
        [verdict.low, verdict.high] = self.bounds(accounts).map(Some);
        let bytes = Quantity { value: self.bytes(), unit: Unit::Bytes };
        let title = verdict.metric.title;
        let lag = format!("the kernel's accounts of {title} may differ by {bytes} for the same memory");
        let remedy = |word, ratios| self.remedy(word, ratios, verdict.equal_within);
        if could_change(&verdict) {
            let remedy = remedy(verdict.word, accounts);
            verdict.withhold(format!(
                "{lag}, which could change this verdict; more rounds would not help, {remedy}"
            ));
        } else if keeps_open {
            let remedy = remedy(verdict.word, [verdict.ratio.unwrap_or(1.0); 2]);
            let more = format!("{lag}, so that more rounds would not decide; {remedy}");
            verdict.reason = Some(verdict.reason.map_or(more.clone(), |reason| format!("{reason}; {more}")));
        }
        verdict
    }
}

/// Whether the word claims more than the interval with the lag does.
fn could_change(verdict: &Verdict) -> bool {
    // No process has a max RSS of 0, so that there is always a ratio.
    let (Some(low), Some(high), Some(_)) = (verdict.low, verdict.high, verdict.ratio) else { return false };
    let margin = 1.0 + verdict.equal_within;
    match verdict.word {
        Word::Lower => high >= 1.0,
        Word::Higher => low <= 1.0,
        Word::NoDifference => low < margin.recip() || high > margin,
        Word::Inconclusive | Word::Withheld | Word::NoData => false,
    }
}
