//! The words, digits and sentences of verdicts.

use crate::campaign;
use widthwise_experiment::metric;
use widthwise_experiment::model::{Estimator, Judging};
use widthwise_experiment::Experiment;
use widthwise_verdict::wording::{interval, percent, promise, sentence, share, summary};
use widthwise_verdict::{Judgement, Verdict, Word};

fn experiment() -> Experiment {
    campaign::experiment(&["x32", "i386"], &["cpu", "max_rss"])
}

fn verdict(name: &str, variant: &str, ratio: f64, low: f64, high: f64) -> Verdict {
    Verdict {
        metric: metric::find(name).expect("a metric"),
        variant: variant.to_owned(),
        baseline: "x86-64".to_owned(),
        ratio: Some(ratio),
        difference: None,
        baseline_mean: None,
        low: Some(low),
        high: Some(high),
        confidence: 0.95,
        equal_within: 0.01,
        floor: Some(0.008),
        floor_of_decrease: None,
        difference_floor: None,
        pairs: 30,
        p: Some(0.0),
        adjusted_p: Some(0.0),
        coverage: 1.0,
        source: None,
        unequal: 0,
        word: if ratio < 1.0 { Word::Lower } else { Word::Higher },
        reason: None,
        rounds_to_decide: None,
        detectable: None,
        spread: None,
    }
}

#[test]
fn cells_show_the_digits_that_the_interval_justifies() {
    let cell = |ratio, low, high| interval(&verdict("cpu", "x32", ratio, low, high));
    assert_eq!(cell(0.979, 0.971, 0.986), "−2.1 % (−2.9 … −1.4)");
    assert_eq!(cell(0.852, 0.851, 0.853), "−14.8 % (±0.1)");
    assert_eq!(cell(1.3804, 1.36, 1.41), "+38 % (+36 … +41)");
    assert_eq!(cell(0.8520, 0.8520, 0.8520), "−14.8 % (±0)");
    assert_eq!(cell(1.00012, 1.00011, 1.00013), "+0.012 % (±0.001)");
    assert_eq!(cell(12.34, 12.1, 12.6), "× 12.3 (12.1 … 12.6)");
    assert_eq!(cell(0.995, 0.9899, 1.0001), "−0.5 % (±0.5)");
    assert_eq!(cell(1.3960, 1.3390, 1.4520), "+40 % (+34 … +45)");
    assert_eq!(cell(1.4040, 1.3410, 1.4620), "+40 % (±6)");
}

#[test]
fn a_cell_without_a_difference_is_its_word() {
    for word in [Word::NoDifference, Word::Inconclusive, Word::Withheld, Word::NoData] {
        let verdict = Verdict { word, ..verdict("cpu", "x32", 0.99, 0.9, 1.1) };
        assert_eq!(interval(&verdict), word.text());
    }
}

#[test]
fn sentences_name_variant_metric_and_difference() {
    assert_eq!(
        sentence(&verdict("max_rss", "x32", 0.69, 0.686, 0.694)),
        "x32 uses 31.0 % (30.6 to 31.4) less peak memory than x86-64"
    );
    assert_eq!(
        sentence(&verdict("cpu", "i386", 1.38, 1.36, 1.40)),
        "i386 needs 38 % (36 to 40) more CPU time than x86-64"
    );
    assert_eq!(
        sentence(&verdict("page_faults", "x32", 0.85, 0.85, 0.85)),
        "x32 has 15.0 % fewer page faults than x86-64"
    );
    assert_eq!(
        sentence(&verdict("instructions", "i386", 12.34, 12.1, 12.6)),
        "i386 needs 12.3 times (12.1 to 12.6) as many instructions as x86-64"
    );
}

#[test]
fn an_equivalence_sentence_gives_the_interval_and_the_margin() {
    let equal = Verdict { word: Word::NoDifference, ..verdict("cpu", "x32", 0.999, 0.992, 1.0049) };
    assert_eq!(
        sentence(&equal),
        "x32 needs as much CPU time (−0.8 % to +0.5 %) as x86-64: no difference beyond ±1 %"
    );
    let narrow = Verdict { equal_within: 0.0005, ..equal };
    assert!(sentence(&narrow).ends_with("no difference beyond ±0.05 %"), "{}", sentence(&narrow));
    let exact = Verdict { word: Word::NoDifference, ..verdict("page_faults", "x32", 1.0, 1.0, 1.0) };
    assert_eq!(sentence(&exact), "x32 has exactly as many page faults as x86-64");
    let odd = Verdict { unequal: 1, ..exact };
    assert_eq!(
        sentence(&odd),
        "x32 has as many page faults (equal in all but 1 of 30 rounds) as x86-64: no difference beyond ±1 %"
    );
}

#[test]
fn an_inconclusive_sentence_gives_the_interval_and_the_floor() {
    let open = Verdict { word: Word::Inconclusive, ..verdict("cpu", "x32", 0.997, 0.979, 1.0144) };
    assert_eq!(
        sentence(&open),
        "it is inconclusive whether x32 needs less or more CPU time (−2.1 % to +1.4 %; floor 0.8 %) than x86-64"
    );
}

#[test]
fn the_control_has_an_a_a_difference_and_no_word() {
    for word in [Word::NoDifference, Word::Inconclusive] {
        let control = Verdict { word, ..verdict("cpu", "x86-64 control", 1.001, 0.997, 1.005) };
        assert_eq!(interval(&control), "A/A +0.1 %");
        assert_eq!(
            sentence(&control),
            "the A/A difference in CPU time, of x86-64 to itself, is +0.1 % (±0.4)"
        );
    }
    let withheld = Verdict { word: Word::Withheld, ..verdict("cpu", "x86-64 control", 1.0, 1.0, 1.0) };
    assert_eq!(interval(&withheld), "withheld");
}

/// A verdict without a ratio: the baseline's mean, the difference and its ends.
fn of_amounts(name: &str, baseline: f64, difference: f64, low: f64, high: f64) -> Verdict {
    Verdict {
        ratio: None,
        difference: Some(difference),
        baseline_mean: Some(baseline),
        low: Some(low),
        high: Some(high),
        floor: None,
        difference_floor: Some(2.0),
        word: if difference < 0.0 { Word::Lower } else { Word::Higher },
        ..verdict(name, "x32", 1.0, 1.0, 1.0)
    }
}

#[test]
fn without_a_ratio_the_difference_has_its_unit() {
    let cell =
        |name, baseline, difference, low, high| interval(&of_amounts(name, baseline, difference, low, high));
    assert_eq!(cell("major_faults", 0.0, 11.0, 9.0, 13.0), "0 → 11: +11 (±2)");
    assert_eq!(cell("major_faults", 0.0, 11.0, 9.0, 14.0), "0 → 11: +11 (+9 … +14)");
    assert_eq!(cell("major_faults", 0.0, 11.0, 11.0, 11.0), "0 → 11: +11 (±0)");
    assert_eq!(cell("major_faults", 4.0, -4.0, -5.2, -3.0), "4 → 0: −4 (±1)");
    assert_eq!(cell("major_faults", 0.25, 0.5, 0.11, 0.91), "0.250 → 0.750: +0.5 (±0.4)");
    assert_eq!(
        cell("major_faults", 0.0, 12345.0, 12341.0, 12349.0),
        "0 → 12\u{202f}345: +12\u{202f}345 (±4)"
    );
    assert_eq!(cell("system", 0.0, 1.5e6, 1.2e6, 1.8e6), "0 ns → 1.50 ms: +1.50 ms (±0.30)");
    assert_eq!(cell("user", 4e6, -0.4e6, -2.1e6, 1.3e6), "4.00 ms → 3.60 ms: −0.4 ms (±1.7)");
    assert_eq!(cell("tree_heap", 0.0, 2e6, 1.94e6, 2.03e6), "0 B → 2.00 MB: +2.00 MB (+1.94 … +2.03)");
    let verdict = of_amounts("major_faults", 0.0, 11.0, 9.0, 13.0);
    assert_eq!(sentence(&verdict), "x32 has 11 (9 to 13) more major faults (0 → 11) than x86-64");
    let lower = of_amounts("system", 3e6, -1.5e6, -1.8e6, -1.2e6);
    assert_eq!(
        sentence(&lower),
        "x32 needs 1.50 ms (1.20 to 1.80) less system time (3.00 ms → 1.50 ms) than x86-64"
    );
    let open = Verdict { word: Word::Inconclusive, ..of_amounts("major_faults", 0.5, 1.0, -1.0, 3.0) };
    assert_eq!(
        sentence(&open),
        "it is inconclusive whether x32 has fewer or more major faults (−1 to +3; floor 2) than x86-64"
    );
}

#[test]
fn a_sentence_without_a_verdict_gives_the_reason() {
    let withheld = Verdict {
        word: Word::Withheld,
        reason: Some("2 of 30 runs failed: killed by signal 11".to_owned()),
        ..verdict("cpu", "x32", 0.9, 0.9, 0.9)
    };
    assert_eq!(
        sentence(&withheld),
        "no verdict on the CPU time of x32: 2 of 30 runs failed: killed by signal 11"
    );
    let missing = Verdict { word: Word::NoData, reason: Some("not counted here".to_owned()), ..withheld };
    assert_eq!(sentence(&missing), "x32 has no figure for CPU time: not counted here");
}

#[test]
fn the_confidence_text_names_the_confidence_the_risk_and_the_comparisons() {
    let experiment = |confidence| Experiment {
        judging: Judging { confidence, equal_within: 0.01, estimator: Estimator::Paired },
        ..experiment()
    };
    let judgement = |comparisons| Judgement {
        verdicts: Vec::new(),
        typical: Vec::new(),
        comparisons,
        runtime: Default::default(),
        rss_lag: None,
    };
    assert_eq!(promise(&judgement(0), &experiment(0.95)), None);
    let lagging = Judgement { rss_lag: Some(655_360.0), ..judgement(1) };
    let text = promise(&lagging, &experiment(0.95)).expect("a promise");
    let says = "Intervals and floors of max RSS include 655 kB, by which the kernel's accounts of the same memory may differ.";
    assert!(text.contains(says), "{text}");
    let one = promise(&judgement(1), &experiment(0.95)).expect("a promise");
    assert_eq!(
        one,
        "The interval holds with 95 % confidence. No difference: none is established, and the whole interval lies within ±1 % \
         (--equal-within). Inconclusive: it does not, and no difference was found."
    );
    let many = promise(&judgement(22), &experiment(0.995)).expect("a promise");
    assert!(many.contains("99.5 % confidence") && many.contains("any of the 22 is called"), "{many}");
    assert!(many.contains("at most 0.5 %"), "{many}");
}

#[test]
fn a_summary_lists_variants_then_the_floor_then_the_confidence() {
    let lower = verdict("cpu", "x32", 0.979, 0.971, 0.986);
    let memory = verdict("max_rss", "x32", 0.852, 0.851, 0.853);
    let same = Verdict { word: Word::NoDifference, ..verdict("cpu", "i386", 1.001, 0.997, 1.005) };
    let reason = Some("2 of 30 runs failed: killed by signal 11".to_owned());
    let withheld = Verdict { word: Word::Withheld, reason, ..verdict("max_rss", "i386", 1.0, 1.0, 1.0) };
    let control = Verdict { word: Word::NoDifference, ..verdict("cpu", "x86-64 control", 1.0, 0.99, 1.01) };
    let judgement = Judgement {
        verdicts: vec![lower, memory, same, withheld, control],
        typical: Vec::new(),
        comparisons: 3,
        runtime: Default::default(),
        rss_lag: None,
    };
    let summary_text = summary(&judgement, &experiment());
    assert_eq!(
        summary_text[..4],
        [
            "x32 needs 2.1 % (1.4 to 2.9) less CPU time and uses 14.8 % (14.7 to 14.9) less peak memory than x86-64.",
            "i386 needs as much CPU time (−0.3 % to +0.5 %) as x86-64: no difference beyond ±1 %.",
            "No verdict on the peak memory of i386: 2 of 30 runs failed: killed by signal 11.",
            "The smallest difference this machine can resolve: 0.8 % for CPU time.",
        ]
    );
    assert!(
        summary_text[4].starts_with("Each interval holds") && summary_text.len() == 5,
        "{summary_text:?}"
    );
}

#[test]
fn a_variant_that_could_not_be_measured_is_mentioned_once() {
    let gone = |metric| Verdict {
        word: Word::NoData,
        reason: Some("this kernel has no x32".to_owned()),
        ..verdict(metric, "x32", 1.0, 1.0, 1.0)
    };
    let judgement = Judgement {
        verdicts: vec![gone("cpu"), gone("max_rss")],
        typical: Vec::new(),
        comparisons: 0,
        runtime: Default::default(),
        rss_lag: None,
    };
    assert_eq!(summary(&judgement, &experiment()), ["x32 could not be measured: this kernel has no x32."]);
}

#[test]
fn shares_keep_about_two_digits() {
    for (fraction, text) in [
        (0.008, "0.8 %"),
        (0.123, "12 %"),
        (0.0003, "0.03 %"),
        (0.0, "0 %"),
        (0.000_001, "under 0.001 %"),
        (0.000_05, "0.005 %"),
        (0.95, "95 %"),
        (1.5, "150 %"),
    ] {
        assert_eq!(share(fraction), text);
    }
}

#[test]
fn a_difference_too_small_to_show_has_no_sign() {
    assert_eq!(percent(0.99999, 1), "0.0 %");
    assert_eq!(percent(0.979, 1), "−2.1 %");
    assert_eq!(percent(1.38, 0), "+38 %");
}
