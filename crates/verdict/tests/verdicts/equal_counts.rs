//! Counts that are equal or zero in many runs: constants, rare events, and where a ratio has no logarithm.

use crate::campaign::{pick, Laid, BASELINE};
use crate::{quiet, reason, values};
use widthwise_verdict::{half_width, wording, Word};

#[test]
fn a_constant_has_an_interval_of_no_width_and_a_floor_of_zero() {
    let mut laid = Laid::new(&["x32", "i386"], &["max_rss"], 8);
    laid.read_alike("max_rss", 1.0e7);
    laid.read("i386", "max_rss", vec![8.5e6; 8]);
    let judgement = laid.judged();
    let same = pick(&judgement, "x32", "max_rss");
    assert_eq!(
        (same.word, same.ratio, same.low, same.high),
        (Word::NoDifference, Some(1.0), Some(1.0), Some(1.0))
    );
    assert_eq!((same.floor, same.p, reason(same)), (Some(0.0), Some(1.0), "equal in every run"));
    let lower = pick(&judgement, "i386", "max_rss");
    assert_eq!((lower.word, lower.low, lower.p), (Word::Lower, lower.high, Some(0.0)));
    assert!((lower.ratio.expect("a ratio") - 0.85).abs() < 1e-12);
}

#[test]
fn ties_and_one_odd_run_make_no_difference() {
    let mut laid = Laid::new(&["x32"], &["max_rss"], 20);
    laid.read_alike("max_rss", 1.0e7);
    laid.read("x32", "max_rss", (0..20).map(|i| if i == 3 { 1.5e7 } else { 1.0e7 }));
    let verdict = laid.verdict("x32", "max_rss");
    assert_eq!((verdict.word, verdict.ratio), (Word::NoDifference, Some(1.0)), "{verdict:?}");
    assert_eq!(reason(&verdict), "equal in most rounds: 1 of 20 differ");
    let sentence = wording::sentence(&verdict);
    assert!(
        sentence.contains("(equal in all but 1 of 20 rounds)") && !sentence.contains("exactly"),
        "{sentence}"
    );
}

#[test]
fn a_count_that_is_higher_in_a_third_of_the_runs_is_no_equal_count() {
    let mut laid = Laid::new(&["x32", "i386"], &["voluntary_switches"], 60);
    laid.read_alike("voluntary_switches", 4.0);
    laid.read("x32", "voluntary_switches", (0..60).map(|i| if i % 3 == 1 { 5.0 } else { 4.0 }));
    // The control differs where the variant does not.
    let control = laid.control();
    laid.read(&control, "voluntary_switches", (0..60).map(|i| if i == 7 { 5.0 } else { 4.0 }));
    let judgement = laid.judged();
    let higher = pick(&judgement, "x32", "voluntary_switches");
    let ratio = higher.ratio.expect("a ratio");
    assert_eq!(higher.word, Word::Higher, "{higher:?}");
    assert!((1.05..1.10).contains(&ratio) && higher.low < higher.high, "{higher:?}");
    let same = pick(&judgement, "i386", "voluntary_switches");
    assert_eq!((same.word, same.unequal), (Word::NoDifference, 0), "{same:?}");
}

#[test]
fn a_metric_that_is_never_counted_above_zero_is_equal_in_every_run_and_has_no_ratio() {
    let mut laid = Laid::new(&["x32"], &["major_faults"], 8);
    laid.read_alike("major_faults", 0.0);
    let verdict = laid.verdict("x32", "major_faults");
    assert_eq!((verdict.word, reason(&verdict)), (Word::NoDifference, "equal in every run"));
    assert_eq!((verdict.ratio, verdict.difference, verdict.baseline_mean), (None, Some(0.0), Some(0.0)));
    assert_eq!((verdict.low, verdict.high), (Some(0.0), Some(0.0)));
    assert_eq!((verdict.floor, verdict.difference_floor), (None, Some(0.0)));
}

#[test]
fn zeros_in_some_runs_are_compared_by_the_means_of_both_baseline_runs() {
    let mut laid = Laid::new(&["x32", "i386"], &["major_faults"], 30);
    let control = laid.control();
    let cycle = |a: f64, b: f64, c: f64| (0..30).map(move |i| [a, b, c][i % 3]);
    laid.read(BASELINE, "major_faults", cycle(0.0, 3.0, 3.0));
    laid.read(&control, "major_faults", cycle(6.0, 0.0, 6.0));
    laid.read("x32", "major_faults", cycle(3.0, 3.0, 3.0));
    laid.read("i386", "major_faults", cycle(40.0, 50.0, 45.0));
    let judgement = laid.judged();
    let alike = pick(&judgement, "x32", "major_faults");
    assert_eq!((alike.word, alike.ratio), (Word::Inconclusive, None), "{alike:?}");
    assert!(alike.difference.expect("a difference").abs() < 1e-12);
    let more = pick(&judgement, "i386", "major_faults");
    assert_eq!((more.word, more.ratio), (Word::Higher, None), "{more:?}");
    assert!((more.difference.expect("a difference") - 42.0).abs() < 1e-9);
    assert_eq!(more.baseline_mean, Some(3.0));
    assert!(more.low < Some(42.0) && more.high > Some(42.0), "{more:?}");
}

#[test]
fn where_only_the_variant_counts_zero_the_floor_is_a_share_of_the_baselines_mean() {
    let mut laid = quiet(1.0, 30);
    let values: Vec<f64> = values(&laid, "x32").iter().map(|value| 0.5 * value).collect();
    laid.read("x32", "cpu", values.iter().enumerate().map(|(i, &v)| if i == 7 { 0.0 } else { v }));
    let judgement = laid.judged();
    let (verdict, control) = (pick(&judgement, "x32", "cpu"), pick(&judgement, "x86-64 control", "cpu"));
    assert_eq!((verdict.word, verdict.ratio, verdict.floor), (Word::Lower, None, None), "{verdict:?}");
    let share = verdict.difference_floor.expect("a floor") / verdict.baseline_mean.expect("a mean");
    assert!((share - control.floor.expect("a floor")).abs() < 1e-12, "{verdict:?} {control:?}");
}

#[test]
fn one_event_in_thirty_runs_is_inconclusive() {
    let mut laid = Laid::new(&["x32"], &["major_faults"], 30);
    laid.read_alike("major_faults", 0.0);
    laid.read(BASELINE, "major_faults", (0..30).map(|i| f64::from(u8::from(i == 4))));
    let verdict = laid.verdict("x32", "major_faults");
    assert_eq!(verdict.word, Word::Inconclusive, "{verdict:?}");
    assert_eq!(verdict.high, Some(0.0));
}

#[test]
fn with_a_baseline_of_zeros_the_difference_has_its_interval() {
    let mut laid = Laid::new(&["x32", "i386"], &["major_faults"], 9);
    laid.read_alike("major_faults", 0.0);
    laid.read("x32", "major_faults", [11.0; 9]);
    laid.read("i386", "major_faults", [9.0, 13.0, 11.0, 10.0, 12.0, 11.0, 11.0, 9.0, 13.0]);
    let judgement = laid.judged();
    let exact = pick(&judgement, "x32", "major_faults");
    assert_eq!((exact.word, exact.ratio, exact.pairs), (Word::Higher, None, 9));
    assert_eq!((exact.difference, exact.low, exact.high), (Some(11.0), Some(11.0), Some(11.0)));
    let spread = pick(&judgement, "i386", "major_faults");
    assert_eq!((spread.word, spread.ratio), (Word::Higher, None), "{spread:?}");
    assert_eq!((spread.difference, spread.baseline_mean), (Some(11.0), Some(0.0)));
    assert!(spread.low > Some(9.0) && spread.low < Some(11.0), "{spread:?}");
    assert!(spread.high < Some(13.0) && spread.high > Some(11.0), "{spread:?}");
    // A width has no share of 0, so a stopping rule does not wait for one.
    assert_eq!(half_width(&laid.evidence()), None);
}
