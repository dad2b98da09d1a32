//! Verdicts that the x32 runtime's own work could change.

use crate::campaign::{self, pick, Laid, BASELINE};
use widthwise_verdict::Word;

/// A campaign in which the variant takes that much more CPU time, and the x32 runtime that share of it.
fn with_runtime(more: f64, share: f64) -> campaign::Laid {
    let mut laid = campaign::Laid::new(&["x32"], &["cpu"], 20);
    let noise = |place: u32| 1.0 + 0.001 * f64::from(place * 7 % 5);
    laid.read(campaign::BASELINE, "cpu", (0..20).map(|round| 1e9 * noise(round)));
    let control = laid.control();
    laid.read(&control, "cpu", (0..20).map(|round| 1e9 * noise(round + 3)));
    laid.read("x32", "cpu", (0..20).map(|round| more * 1e9 * noise(round + 1)));
    laid.read("x32", "runtime_cpu", (0..20).map(|round| share * more * 1e9 * noise(round + 2)));
    laid
}

#[test]
fn a_verdict_that_the_x32_runtimes_work_could_change_is_withheld_with_both_figures() {
    let judged = with_runtime(1.49, 0.31).judged();
    let verdict = campaign::pick(&judged, "x32", "cpu");
    assert_eq!(verdict.word, Word::Withheld);
    let reason = verdict.reason.as_deref().unwrap();
    assert!(reason.starts_with("the x32 runtime's own work, 31"), "{reason}");
    assert!(reason.contains("of the CPU time of x32, could change this verdict: +49"), "{reason}");
    assert!((verdict.ratio.unwrap() - 1.49).abs() < 0.01, "{verdict:?}");
    let without = &judged.runtime.without[0];
    assert!((without.ratio.unwrap() - 1.49 * 0.69).abs() < 0.01, "{without:?}");
    let share = &judged.runtime.shares[0];
    assert!(
        (share.share - 0.31).abs() < 0.005 && share.low < Some(0.31) && share.high > Some(0.31),
        "{share:?}"
    );
}

#[test]
fn a_verdict_with_a_small_share_of_the_x32_runtime_is_kept() {
    for (more, share, word) in [(1.49, 0.02, Word::Higher), (0.8, 0.02, Word::Lower), (0.8, 0.3, Word::Lower)]
    {
        let judged = with_runtime(more, share).judged();
        assert_eq!(campaign::pick(&judged, "x32", "cpu").word, word, "{more} {share}");
    }
    // Work that the runtime may not count is included: a quarter of it.
    let judged = with_runtime(1.25, 0.17).judged();
    assert_eq!(judged.runtime.without[0].word, Word::Higher);
    assert_eq!(campaign::pick(&judged, "x32", "cpu").word, Word::Withheld);
}

#[test]
fn verdicts_without_the_x32_runtime_are_unchanged() {
    let mut laid = with_runtime(1.49, 0.31);
    for run in &mut laid.runs {
        run.sample.remove("runtime_cpu");
    }
    let judged = laid.judged();
    assert_eq!(campaign::pick(&judged, "x32", "cpu").word, Word::Higher);
    assert_eq!(judged.runtime, Default::default());
}

#[test]
fn a_verdict_without_the_x32_runtime_has_the_same_correction_as_with_it() {
    let metrics = ["cpu", "page_faults", "max_rss", "major_faults", "user", "system", "wall"];
    let mut laid = Laid::new(&["x32"], &metrics, 20);
    for metric in &metrics[1..] {
        laid.read_alike(metric, 100.0);
    }
    let noise = |round: u32, factor: u32| f64::from((round * round * factor + round * 5) % 23);
    let noisy = |of: f64, factor| (0..20).map(move |round| of * 1e9 * (1.0 + 0.001 * noise(round, factor)));
    laid.read(BASELINE, "cpu", noisy(1.0, 3));
    let control = laid.control();
    laid.read(&control, "cpu", noisy(1.0, 3));
    laid.read("x32", "cpu", noisy(1.0145, 4));
    laid.read("x32", "runtime_cpu", noisy(1e-6, 5));
    let judged = laid.judged();
    let verdict = pick(&judged, "x32", "cpu");
    // Bonferroni's correction would not call this a difference, Holm's does: the work of the runtime is next to nothing.
    let p = verdict.p.expect("a p-value");
    assert!(p * judged.comparisons as f64 > 0.05 && verdict.adjusted_p < Some(0.05), "{verdict:?}");
    assert_eq!(verdict.word, Word::Higher, "{:?}", verdict.reason);
    let without = judged.runtime.without[0].adjusted_p.expect("a p-value");
    assert!((without / verdict.adjusted_p.expect("a p-value") - 1.0).abs() < 0.01, "{without} {verdict:?}");
}
