//! Verdicts on max RSS that the lag of the kernel's account could change.

use widthwise_experiment::memory::RSS_LAG;
use widthwise_experiment::outcome::{Reading, Source};
use widthwise_verdict::Word;

use crate::campaign::{Laid, BASELINE};

const VARIANT: &str = "x32";

/// The verdict's word and reason where the baseline has so many bytes in each run and the variant so many times as many.
fn judged(metric: &'static str, bytes: f64, ratio: f64, source: Source, processes: f64) -> (Word, String) {
    let mut laid = Laid::new(&[VARIANT], &[metric, "processes"], 10);
    laid.rss_lag = RSS_LAG;
    for run in &mut laid.runs {
        let factor = if run.variant == VARIANT { ratio } else { 1.0 };
        run.sample.insert(metric, Reading::whole(bytes * factor, source));
        run.sample.insert("processes", Reading::whole(processes, Source::Taskstats));
    }
    let verdict = laid.verdict(VARIANT, metric);
    assert_eq!(verdict.baseline, BASELINE);
    (verdict.word, verdict.reason.unwrap_or_default())
}

#[test]
fn a_difference_within_the_lag_of_the_kernels_account_is_withheld() {
    let of = |bytes, ratio| judged("max_rss", bytes, ratio, Source::Taskstats, 1.0);
    // The lag is 393 kB.
    for (bytes, ratio, word) in [
        (1e6, 0.9, Word::Withheld),
        (1e6, 1.2, Word::Withheld),
        (4e6, 0.91, Word::Withheld),
        (4e6, 0.89, Word::Lower),
        (4e6, 1.09, Word::Withheld),
        (4e6, 1.11, Word::Higher),
    ] {
        let (found, reason) = of(bytes, ratio);
        assert_eq!(found, word, "{bytes} {ratio}: {reason}");
        let says = "the kernel's account of max RSS may lag by 393 kB, which could change this verdict: `--exit-stop` reads max RSS exactly";
        assert_eq!(reason, if word == Word::Withheld { says } else { "" });
    }
    // 1 % of 30 MB is less than the lag, 1 % of 50 MB is more.
    assert_eq!(of(30e6, 1.0).0, Word::Withheld);
    assert_eq!(of(50e6, 1.0).0, Word::NoDifference);
}

#[test]
fn an_exact_max_rss_has_its_verdict_and_a_guests_account_lags_too() {
    let word = |source| judged("max_rss", 1e6, 0.9, source, 1.0).0;
    assert_eq!([Source::Rusage, Source::Guest, Source::Kvm].map(word), [Word::Withheld; 3]);
    assert_eq!(judged("peak_virtual", 1e6, 0.9, Source::Taskstats, 1.0).0, Word::Lower);
    let mut laid = Laid::new(&[VARIANT], &["max_rss"], 10);
    laid.read_alike("max_rss", 1e6).read(VARIANT, "max_rss", [9e5; 10]);
    assert_eq!(laid.verdict(VARIANT, "max_rss").word, Word::Lower, "without a lag");
}

#[test]
fn the_sum_over_processes_lags_by_that_much_for_each() {
    let word = |processes| judged("max_rss_sum", 10e6, 0.9, Source::Taskstats, processes).0;
    assert_eq!(word(2.0), Word::Lower);
    assert_eq!(word(3.0), Word::Withheld);
}
