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
    // One account may lag by 393 kB; two may differ by 655 kB.
    for (bytes, ratio, word) in [
        (1e6, 0.9, Word::Withheld),
        (1e6, 1.2, Word::Withheld),
        (4e6, 0.84, Word::Withheld),
        (4e6, 0.83, Word::Lower),
        (4e6, 1.16, Word::Withheld),
        (4e6, 1.17, Word::Higher),
    ] {
        let (found, reason) = of(bytes, ratio);
        assert_eq!(found, word, "{bytes} {ratio}: {reason}");
        let says = "the kernel's accounts of max RSS may differ by 655 kB for the same memory, which could change this verdict; \
                    more rounds would not help, a larger input would, if it leaves the ratio and gives the baseline more than ";
        assert!(
            if word == Word::Withheld { reason.starts_with(says) } else { reason.is_empty() },
            "{reason}"
        );
    }
    // What it says is enough, and hardly less would be.
    for (bytes, ratio, said, enough) in [
        (1e6, 0.9, "6.60 MB", 6.6e6),
        (1e6, 1.2, "3.30 MB", 3.3e6),
        (1e6, 1.0, "66.0 MB", 66e6),
        (60e6, 1.002, "330 MB", 330e6),
    ] {
        let (word, reason) = of(bytes, ratio);
        assert!(
            word == Word::Withheld && reason.ends_with(&format!("more than {said}")),
            "{ratio}: {reason}"
        );
        assert_eq!(of(0.98 * enough, ratio).0, Word::Withheld, "{ratio}");
        assert_ne!(of(enough, ratio).0, Word::Withheld, "{ratio}");
    }
    // 1 % of 60 MB is less than that, 1 % of 70 MB is more.
    assert_eq!(of(60e6, 1.0).0, Word::Withheld);
    assert_eq!(of(70e6, 1.0).0, Word::NoDifference);
}

#[test]
fn readings_at_the_exit_and_accounts_of_a_guest_lag_too() {
    let word = |source| judged("max_rss", 1e6, 0.9, source, 1.0).0;
    assert_eq!([Source::Rusage, Source::ExitStop, Source::Guest, Source::Kvm].map(word), [Word::Withheld; 4]);
    assert_eq!(judged("peak_virtual", 1e6, 0.9, Source::Taskstats, 1.0).0, Word::Lower);
    let mut laid = Laid::new(&[VARIANT], &["max_rss"], 10);
    laid.read_alike("max_rss", 1e6).read(VARIANT, "max_rss", [9e5; 10]);
    assert_eq!(laid.verdict(VARIANT, "max_rss").word, Word::Lower, "without a lag");
}

#[test]
fn the_sum_over_processes_lags_by_that_much_for_each() {
    let word = |processes| judged("max_rss_sum", 10e6, 0.9, Source::Taskstats, processes).0;
    assert_eq!(word(1.0), Word::Lower);
    assert_eq!(word(2.0), Word::Withheld);
}

#[test]
fn intervals_floors_and_detectable_differences_include_the_lag() {
    let with_lag = |lag| {
        let mut laid = Laid::new(&[VARIANT], &["max_rss"], 10);
        laid.rss_lag = lag;
        laid.read_alike("max_rss", 10e6).read(VARIANT, "max_rss", [8e6; 10]);
        (laid.verdict(VARIANT, "max_rss"), laid.verdict(&laid.control(), "max_rss"))
    };
    let ((exact, exact_control), (verdict, control)) = (with_lag(0), with_lag(RSS_LAG));
    let lag = RSS_LAG as f64;
    let share = lag * 5.0 / 3.0 / 10e6;
    let is = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-9;
    assert_eq!((exact.word, verdict.word), (Word::Lower, Word::Lower));
    assert_eq!((exact.low, exact.high, exact.floor), (Some(0.8), Some(0.8), Some(0.0)));
    // One account lacks pages of three kinds, the other has too many of two.
    assert!(is(verdict.low, (8e6 - lag * 2.0 / 3.0) / (10e6 + lag)), "{verdict:?}");
    assert!(is(verdict.high, (8e6 + lag) / (10e6 - lag * 2.0 / 3.0)), "{verdict:?}");
    // A decrease and an increase by that share are the least that it does not explain.
    assert!(is(verdict.floor, share) && is(verdict.floor_of_decrease, share), "{verdict:?}");
    assert_eq!(exact.floor_of_decrease, None);
    assert!(is(verdict.detectable, exact.detectable.unwrap() + share), "{verdict:?}");
    // The two of the A/A pair are one program, whose accounts lag alike; a variant's does not.
    assert_eq!((control.low, control.high), (exact_control.low, exact_control.high));
    assert_eq!((control.floor, control.floor_of_decrease), (verdict.floor, verdict.floor_of_decrease));
}

#[test]
fn no_number_of_rounds_decides_within_the_lag() {
    let with_lag = |lag| {
        let mut laid = Laid::new(&[VARIANT], &["max_rss"], 10);
        laid.rss_lag = lag;
        let spread =
            |at: f64| std::array::from_fn::<f64, 10, _>(|i| at * (1.0 + 0.02 * (i as f64 * 0.7).sin()));
        laid.read_alike("max_rss", 2e6).read(VARIANT, "max_rss", spread(1.99e6));
        laid.verdict(VARIANT, "max_rss")
    };
    let (exact, verdict) = (with_lag(0), with_lag(RSS_LAG));
    assert_eq!((exact.word, verdict.word), (Word::Inconclusive, Word::Inconclusive), "{exact:?}");
    assert!(exact.rounds_to_decide.is_some() && verdict.rounds_to_decide.is_none(), "{exact:?} {verdict:?}");
    let reason = verdict.reason.unwrap_or_default();
    let says = "; the kernel's accounts of max RSS may differ by 655 kB for the same memory, so that more rounds would not decide";
    let (_, rest) = reason.split_once(says).unwrap_or_else(|| panic!("{reason}"));
    // The ratio is 0.5 % below 1: 655 kB are half of the margin there.
    assert!(
        rest.starts_with("; a larger input would, if it leaves the ratio and gives the baseline more than 1"),
        "{rest}"
    );
}

/// Programs of known sizes, as the kernel's account and their maps at the exit have them.
#[test]
fn a_multiple_of_a_small_figure_has_the_error_of_the_small_one() {
    let mut laid = Laid::new(&[VARIANT], &["max_rss"], 10);
    laid.rss_lag = RSS_LAG;
    let (baseline, ratio) = (1_609_728.0, 63.94);
    laid.read_alike("max_rss", baseline).read(VARIANT, "max_rss", [ratio * baseline; 10]);
    let verdict = laid.verdict(VARIANT, "max_rss");
    let true_ratio = 59.10;
    assert!(verdict.low < Some(true_ratio) && verdict.high > Some(ratio), "{verdict:?}");
    assert_eq!(verdict.word, Word::Higher);
    // A program of a page: its figures stay finite.
    laid.read_alike("max_rss", 8192.0).read(VARIANT, "max_rss", [16384.0; 10]);
    let verdict = laid.verdict(VARIANT, "max_rss");
    assert!(
        [verdict.low, verdict.high, verdict.floor].iter().all(|one| one.unwrap().is_finite()),
        "{verdict:?}"
    );
    assert_eq!(verdict.word, Word::Withheld);
}
