//! The words and reasons of verdicts on a campaign's samples.

mod campaign;
#[path = "verdicts/equal_counts.rs"]
mod equal_counts;
mod noise;
#[path = "verdicts/rss_lag.rs"]
mod rss_lag;
#[path = "verdicts/wording.rs"]
mod wording_tests;
#[path = "verdicts/x32_runtime.rs"]
mod x32_runtime;

use campaign::{pick, Laid, BASELINE};
use noise::{readings, Noise};
use widthwise_experiment::model::Estimator;
use widthwise_experiment::outcome::{Ending, Reading, RoundKind, Source};
use widthwise_experiment::VariantStatus;
use widthwise_verdict::rng::Rng;
use widthwise_verdict::{half_width, judge, wording, Verdict, Word};

/// Baseline, variant and A/A control under quiet noise, the variant `ratio` times the baseline.
fn quiet(ratio: f64, rounds: u32) -> Laid {
    let mut laid = Laid::new(&["x32"], &["cpu"], rounds);
    let values = readings(Noise::Quiet, rounds as usize, 3, &mut Rng::new(11));
    let control = laid.control();
    laid.read(BASELINE, "cpu", values[0].iter().copied());
    laid.read("x32", "cpu", values[1].iter().map(|value| value * ratio));
    laid.read(&control, "cpu", values[2].iter().copied());
    laid
}

/// What a variant read, round by round.
fn values(laid: &Laid, variant: &str) -> Vec<f64> {
    laid.runs.iter().filter(|run| run.variant == variant).map(|run| run.sample["cpu"].value).collect()
}

fn reason(verdict: &Verdict) -> &str {
    verdict.reason.as_deref().unwrap_or_default()
}

#[test]
fn a_clear_difference_has_its_sign_and_its_interval_holds_the_truth() {
    for (ratio, word) in [(0.9, Word::Lower), (1.1, Word::Higher)] {
        let verdict = quiet(ratio, 30).verdict("x32", "cpu");
        assert_eq!(verdict.word, word);
        assert!(verdict.low < Some(ratio) && verdict.high > Some(ratio), "{verdict:?}");
        assert_eq!((verdict.pairs, verdict.confidence, verdict.reason), (30, 0.95, None));
        assert_eq!((verdict.coverage, verdict.source), (1.0, Some(Source::Rusage)));
    }
}

/// A campaign whose amounts have an upper bound, this much above their value.
fn bounded(ratio: f64, of_variant: f64, of_baseline: f64) -> Verdict {
    let mut laid = quiet(ratio, 30);
    for run in &mut laid.runs {
        let widening = if run.variant == "x32" { of_variant } else { of_baseline };
        let reading = run.sample.get_mut("cpu").expect("a reading");
        reading.upper = (widening > 1.0).then_some(widening * reading.value);
    }
    laid.verdict("x32", "cpu")
}

#[test]
fn amounts_with_two_bounds_are_compared_at_both_extremes() {
    let exact = bounded(0.5, 1.0, 1.0);
    let wide = bounded(0.5, 1.2, 1.1);
    assert_eq!((exact.word, wide.word), (Word::Lower, Word::Lower));
    // The variant may be a fifth higher, and the baseline a tenth.
    let near = |a: Option<f64>, b: f64| (a.expect("an end") / b - 1.0).abs() < 0.01;
    assert!(near(wide.low, 0.5 / 1.1) && near(wide.high, 0.5 * 1.2), "{wide:?}");
    assert!(wide.floor > Some(0.09), "the baseline's own bounds are in the floor: {wide:?}");
    for (ratio, of_variant, of_baseline) in [(0.95, 1.2, 1.0), (1.05, 1.0, 1.2), (1.0, 1.1, 1.1)] {
        let verdict = bounded(ratio, of_variant, of_baseline);
        assert_eq!(verdict.word, Word::Inconclusive, "{verdict:?}");
    }
}

#[test]
fn amounts_with_two_bounds_of_which_one_is_zero_are_compared_by_their_difference() {
    let mut laid = Laid::new(&["x32"], &["tree_heap"], 12);
    laid.read_alike("tree_heap", 1.0e6);
    laid.read("x32", "tree_heap", vec![2.0e6; 12]);
    // At its lower bound the variant has nothing, at its upper bound twice as much: −1 MB to +1 MB.
    let reading = laid.run("x32", 4).sample.get_mut("tree_heap").expect("a reading");
    (reading.value, reading.upper) = (0.0, Some(2.0e6));
    let verdict = laid.verdict("x32", "tree_heap");
    assert_eq!((verdict.ratio, verdict.baseline_mean), (None, Some(1.0e6)), "{verdict:?}");
    let (low, high) = (verdict.low.expect("an end"), verdict.high.expect("an end"));
    assert!((0.0..0.9e6).contains(&low) && (high - 1.0e6).abs() < 0.1e6, "{verdict:?}");
    // Both extremes are amounts.
    let half = 0.5 * (1.0e6 + 11.0 / 12.0 * 2.0e6 - 1.0e6);
    assert!((verdict.difference.expect("a difference") - half).abs() < 0.01e6, "{verdict:?}");
}

#[test]
fn the_margin_of_a_difference_of_amounts_is_named_with_what_it_is_of() {
    let mut laid = Laid::new(&["x32"], &["system"], 10);
    let some = |values: &[f64]| (0..10).map(|i| values[i % values.len()]).collect::<Vec<f64>>();
    laid.read_alike("system", 2.0e6).read("x32", "system", some(&[0.0, 4.0e6, 2.0e6]));
    let verdict = laid.verdict("x32", "system");
    assert_eq!((verdict.ratio, verdict.word), (None, Word::Inconclusive), "{verdict:?}");
    let says = "its interval includes zero and reaches beyond ±1 % of the baseline's mean, 2.00 ms";
    assert_eq!(reason(&verdict), says);
}

#[test]
fn amounts_without_an_upper_bound_are_not_compared() {
    for (of_variant, of_baseline) in [(f64::INFINITY, 1.0), (1.0, f64::INFINITY)] {
        let verdict = bounded(0.5, of_variant, of_baseline);
        assert_eq!((verdict.word, verdict.ratio), (Word::Withheld, None));
        assert!(reason(&verdict).contains("children that nobody waits for"), "{verdict:?}");
    }
    for (metric, why) in [
        ("tree_peak", "nothing says how much"),
        ("peak_virtual", "an execve replaced"),
        ("instructions", "a process executes another program in its place"),
    ] {
        let mut laid = Laid::new(&["x32"], &[metric], 12);
        laid.read_alike(metric, 1.0e6);
        let reading = laid.run("x32", 4).sample.get_mut(metric).expect("a reading");
        reading.upper = Some(f64::INFINITY);
        let verdict = laid.verdict("x32", metric);
        assert!(verdict.word == Word::Withheld && reason(&verdict).contains(why), "{verdict:?}");
    }
}

#[test]
fn no_difference_requires_the_whole_interval_inside_the_margin() {
    let mut laid = quiet(1.0, 30);
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.equal_within), (Word::NoDifference, 0.01));
    assert!(verdict.low > Some(1.0 / 1.01) && verdict.high < Some(1.01), "{verdict:?}");
    assert_eq!(reason(&verdict), "its whole interval lies within ±1 %");
    // The same interval and a margin that it reaches beyond, with the same floor.
    laid.experiment.judging.equal_within = 0.001;
    let narrow = laid.verdict("x32", "cpu");
    assert_eq!((narrow.low, narrow.high, narrow.floor), (verdict.low, verdict.high, verdict.floor));
    assert_eq!(narrow.word, Word::Inconclusive);
    assert_eq!(reason(&narrow), "its interval includes zero and reaches beyond ±0.1 %");
}

#[test]
fn few_rounds_and_noisy_ones_are_inconclusive() {
    let mut laid = Laid::new(&["x32"], &["cpu"], 12);
    let control = laid.control();
    let values = readings(Noise::LoadAnyRun, 12, 3, &mut Rng::new(3));
    for (name, values) in [BASELINE, "x32", control.as_str()].iter().zip(&values) {
        laid.read(name, "cpu", values.iter().copied());
    }
    let judgement = laid.judged();
    for name in ["x32", &control] {
        let verdict = pick(&judgement, name, "cpu");
        assert_eq!(verdict.word, Word::Inconclusive, "{verdict:?}");
        assert!(verdict.low < Some(0.99) || verdict.high > Some(1.01), "{verdict:?}");
    }
}

#[test]
fn a_difference_inside_the_margin_that_is_significant_is_still_a_difference() {
    for (ratio, word) in [(0.995, Word::Lower), (1.005, Word::Higher)] {
        let verdict = quiet(ratio, 120).verdict("x32", "cpu");
        assert!(verdict.low > Some(1.0 / 1.01) && verdict.high < Some(1.01), "{verdict:?}");
        assert_eq!(verdict.word, word, "{verdict:?}");
    }
}

#[test]
fn the_floor_adds_the_controls_reach_and_estimate_in_squares() {
    let judgement = quiet(0.9, 30).judged();
    let (verdict, control) = (pick(&judgement, "x32", "cpu"), pick(&judgement, "x86-64 control", "cpu"));
    let (low, high) = (control.low.expect("an end").ln(), control.high.expect("an end").ln());
    let estimate = control.ratio.expect("a ratio").ln();
    let reach = (estimate - low).max(high - estimate);
    let both = reach.hypot(estimate).exp_m1();
    let floor = verdict.floor.expect("a floor");
    assert!((floor - both).abs() < 1e-12 && floor > 0.001 && floor < 0.01, "{floor} {both}");
    assert_eq!((control.word, control.floor, control.adjusted_p), (Word::NoDifference, verdict.floor, None));
    assert_eq!(judgement.comparisons, 1);
    assert_eq!(judgement.verdicts.last().map(|v| v.variant.as_str()), Some("x86-64 control"));
}

/// A variant, and a control that is slower than the baseline by that factor: the variant's verdict, and the control's.
fn beside_slow_control(ratio: f64, factor: f64) -> (Verdict, Verdict) {
    let mut laid = quiet(ratio, 30);
    let slower: Vec<f64> = values(&laid, BASELINE).iter().map(|value| value * factor).collect();
    let control = laid.control();
    laid.read(&control, "cpu", slower);
    let judgement = laid.judged();
    (pick(&judgement, "x32", "cpu").clone(), pick(&judgement, &control, "cpu").clone())
}

#[test]
fn an_a_a_difference_raises_the_floor_and_is_not_called_different() {
    let (verdict, of_twin) = beside_slow_control(1.06, 1.05);
    assert_eq!(of_twin.word, Word::Inconclusive, "{of_twin:?}");
    assert!(reason(&of_twin).contains("differs from itself by 5.0 %"), "{of_twin:?}");
    // Half-way between 6 % more than the baseline and 1 % more than the control.
    assert_eq!(verdict.word, Word::Inconclusive, "{verdict:?}");
    assert!(verdict.low > Some(1.0), "{verdict:?}");
    assert_eq!(
        reason(&verdict),
        "a difference of 3.5 % was seen, but this machine's floor is 5.0 %; its interval reaches beyond ±1 %"
    );
}

#[test]
fn a_decrease_and_its_floor_are_named_as_the_table_shows_them() {
    // Half-way, in logarithms, between 1 / 1.3 and 1 / (1.3 * 1.25): 31 % less, and 45 % away. The floor is 25 %, or 20 % less.
    let (verdict, _) = beside_slow_control(1.0 / 1.3, 1.25);
    assert_eq!(verdict.word, Word::Lower, "{verdict:?}");
    assert!((verdict.ratio.expect("a ratio") - 0.688).abs() < 0.002, "{verdict:?}");
    assert_eq!(wording::floor(&verdict).as_deref(), Some("−20/+25 %"), "{verdict:?}");

    let (verdict, of_twin) = beside_slow_control(1.0 / 1.05, 1.25);
    let why = reason(&verdict);
    assert!(why.starts_with("a difference of 15 % was seen, but this machine's floor is 20 %"), "{why}");
    assert!(reason(&of_twin).contains("differs from itself by 25 %"), "{of_twin:?}");
}

#[test]
fn a_variant_is_compared_with_both_of_the_baselines_runs() {
    let width = |laid: &Laid| {
        let verdict = laid.verdict("x32", "cpu");
        assert_eq!(verdict.pairs, 30);
        verdict.high.expect("an end").ln() - verdict.low.expect("an end").ln()
    };
    let (mut both, mut one) = (0.0, 0.0);
    for seed in 0..20 {
        let mut laid = Laid::new(&["x32"], &["cpu"], 30);
        let control = laid.control();
        let values = readings(Noise::Quiet, 30, 3, &mut Rng::new(seed));
        for (name, values) in [BASELINE, "x32", &control].iter().zip(values) {
            laid.read(name, "cpu", values);
        }
        both += width(&laid);
        laid.read(&control, "cpu", [f64::NAN; 30]);
        one += width(&laid);
    }
    // √(1.5 / 2) is 0.87, and how much an interval is widened differs by a few per cent.
    assert!((0.80..0.91).contains(&(both / one)), "{}", both / one);
}

#[test]
fn a_load_on_either_baseline_run_does_not_bias_the_estimate() {
    // The load slows the variant in nine rounds of thirty, and each of the baseline's runs in nine others. Averaged
    // baselines would be slow in eighteen rounds.
    let mut laid = quiet(1.01, 30);
    let control = laid.control();
    for (name, met) in [(BASELINE, 0..9), ("x32", 9..18), (&control, 18..27)] {
        for round in met {
            let reading = laid.run(name, round).sample.get_mut("cpu").expect("a reading");
            reading.value *= 1.5;
        }
    }
    let verdict = laid.verdict("x32", "cpu");
    assert!((verdict.ratio.expect("a ratio") - 1.01).abs() < 0.005, "{verdict:?}");
}

#[test]
fn a_round_counts_where_either_of_the_baselines_runs_was_read() {
    let mut laid = quiet(0.9, 12);
    let control = laid.control();
    laid.run(BASELINE, 3).sample.clear();
    laid.run(&control, 4).sample.clear();
    for name in [BASELINE, &control] {
        laid.run(name, 5).sample.clear();
    }
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.pairs), (Word::Lower, 11), "{verdict:?}");
    assert_eq!(laid.verdict(&control, "cpu").pairs, 9);
}

#[test]
fn a_control_that_failed_or_has_another_output_is_not_used() {
    let mut alone = quiet(0.9, 12);
    let control = alone.control();
    alone.runs.retain(|run| run.variant != control);
    let alone = alone.verdict("x32", "cpu");
    assert!(alone.ratio.is_some() && alone.word == Word::Withheld, "{alone:?}");

    let mut failed = quiet(0.9, 12);
    failed.run(&control, 4).ending = Ending::Exit { status: 1 };
    let mut different = quiet(0.9, 12);
    different.statuses.insert(control.clone(), VariantStatus::OutputMismatch(String::new()));
    for laid in [failed, different] {
        let verdict = laid.verdict("x32", "cpu");
        assert_eq!((verdict.word, verdict.ratio, verdict.low), (Word::Withheld, alone.ratio, alone.low));
    }
}

#[test]
fn one_small_p_among_many_comparisons_may_be_chance() {
    // Two dozen comparisons of equal weight; the interval of one just excludes no difference.
    let variants: Vec<String> = (0..24).map(|i| format!("v{i}")).collect();
    let names: Vec<&str> = variants.iter().map(String::as_str).collect();
    let mut laid = Laid::new(&names, &["cpu"], 30);
    laid.read_alike("cpu", 1.0);
    let spread = (0..30).map(|i| (0.01 * f64::from((i * 7) % 30 - 14) / 14.0 + 0.003).exp());
    laid.read("v5", "cpu", spread);
    let verdict = laid.verdict("v5", "cpu");
    assert!(verdict.low > Some(1.0) && verdict.p < Some(0.05), "{verdict:?}");
    assert_eq!(verdict.word, Word::NoDifference);
    assert!(reason(&verdict).contains("may be chance"), "{verdict:?}");
    // As the only comparison, it would be called a difference.
    let mut alone = laid.clone();
    alone.experiment.variants.retain(|variant| variant.name == BASELINE || variant.name == "v5");
    assert_eq!(alone.verdict("v5", "cpu").word, Word::Higher);
}

#[test]
fn ten_rounds_find_a_huge_effect_among_two_dozen_comparisons() {
    let metrics = [
        "cpu",
        "wall",
        "user",
        "system",
        "max_rss",
        "peak_virtual",
        "page_faults",
        "minor_faults",
        "major_faults",
        "voluntary_switches",
        "involuntary_switches",
        "cycles",
    ];
    let mut laid = Laid::new(&["x32", "i386"], &metrics, 10);
    let control = laid.control();
    for (index, metric) in metrics.iter().enumerate() {
        let values = readings(Noise::Quiet, 10, 4, &mut Rng::new(index as u64));
        for (who, name) in [BASELINE, "x32", "i386", &control].iter().enumerate() {
            let factor = if *name == "i386" && *metric == "wall" { 1.38 } else { 1.0 };
            laid.read(name, metric, values[who].iter().map(|value| value * factor));
        }
    }
    let judgement = laid.judged();
    assert_eq!(judgement.comparisons, 24);
    assert_eq!(judgement.verdicts.len(), 36);
    for verdict in &judgement.verdicts {
        let planted = verdict.variant == "i386" && verdict.metric.name == "wall";
        let differs = matches!(verdict.word, Word::Lower | Word::Higher);
        assert_eq!(differs, planted, "{verdict:?}");
        assert!(!planted || verdict.word == Word::Higher, "{verdict:?}");
    }
}

#[test]
fn a_metric_that_was_not_read_is_missing_and_never_zero() {
    let mut laid = quiet(0.9, 10);
    laid.experiment.metrics.push(campaign::named("cache_misses"));
    let verdict = laid.verdict("x32", "cache_misses");
    assert_eq!((verdict.word, reason(&verdict)), (Word::NoData, "not counted here"));
    laid.read("x32", "cache_misses", [5.0; 10]);
    let verdict = laid.verdict("x32", "cache_misses");
    assert_eq!((verdict.word, reason(&verdict)), (Word::NoData, "not counted for the baseline"));
    assert_eq!(laid.judged().comparisons, 1);
}

#[test]
fn negative_infinite_and_nan_readings_are_ignored() {
    let mut laid = quiet(0.9, 10);
    for (round, value) in [(0, f64::NAN), (1, f64::INFINITY), (2, -1.0)] {
        laid.run("x32", round).sample.insert("cpu", Reading::whole(value, Source::Rusage));
    }
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.pairs), (Word::Lower, 7));
}

#[test]
fn too_few_rounds_are_withheld_with_the_number_needed() {
    let verdict = quiet(0.5, 5).verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.ratio, verdict.pairs), (Word::Withheld, None, 5));
    assert_eq!(reason(&verdict), "5 rounds are too few for an interval: 6 are needed");
    assert_eq!(quiet(0.5, 6).verdict("x32", "cpu").word, Word::Lower);
}

#[test]
fn the_reason_of_a_failed_variant_counts_the_failures_and_their_kinds() {
    let mut laid = quiet(0.5, 30);
    laid.run("x32", 4).ending = Ending::Signal { signal: 11 };
    laid.run("x32", 9).ending = Ending::Signal { signal: 11 };
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.ratio), (Word::Withheld, None));
    assert_eq!(reason(&verdict), "2 of 30 runs failed: killed by signal 11");
    laid.run("x32", 10).ending = Ending::Timeout { limit_ns: 2_500_000_000 };
    assert_eq!(
        reason(&laid.verdict("x32", "cpu")),
        "3 of 30 runs failed: killed by signal 11; still running after 2.5 s"
    );
}

#[test]
fn a_failed_baseline_or_control_withholds_every_verdict() {
    let mut laid = quiet(0.5, 10);
    laid.run(BASELINE, 0).ending = Ending::Exit { status: 3 };
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!(verdict.word, Word::Withheld);
    assert_eq!(reason(&verdict), "of the baseline, 1 of 10 runs failed: exit status 3");

    let mut laid = quiet(0.5, 10);
    let control = laid.control();
    laid.run(&control, 0).ending = Ending::Exit { status: 3 };
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!((verdict.word, verdict.floor), (Word::Withheld, None));
    assert!(reason(&verdict).contains("the A/A pair: 1 of 10 runs failed: exit status 3"), "{verdict:?}");
}

#[test]
fn only_timed_rounds_count() {
    let mut laid = quiet(0.9, 12);
    laid.rounds[0].kind = RoundKind::Warmup;
    laid.rounds[11].kind = RoundKind::Interrupted;
    laid.run("x32", 0).ending = Ending::Signal { signal: 9 };
    laid.run("x32", 11).ending = Ending::Signal { signal: 9 };
    let judgement = laid.judged();
    let verdict = pick(&judgement, "x32", "cpu");
    assert_eq!((verdict.word, verdict.pairs), (Word::Lower, 10));
    assert!(judgement.typical.iter().all(|typical| typical.runs == 10));
}

#[test]
fn the_variants_status_decides_before_any_number() {
    let mut laid = quiet(0.5, 10);
    let mut stand = |status: VariantStatus| {
        laid.statuses.insert("x32".to_owned(), status);
        let verdict = laid.verdict("x32", "cpu");
        (verdict.word, verdict.ratio.is_some(), reason(&verdict).to_owned())
    };
    assert_eq!(
        stand(VariantStatus::Unsupported("build failed (exit 2)".to_owned())),
        (Word::NoData, false, "build failed (exit 2)".to_owned())
    );
    assert_eq!(
        stand(VariantStatus::OutputMismatch("line 3".to_owned())),
        (Word::Withheld, false, "its output differs from the baseline's: line 3".to_owned())
    );
    assert_eq!(
        stand(VariantStatus::OutputMismatchAllowed(String::new())),
        (Word::Lower, true, "its output differs from the baseline's, which was allowed".to_owned())
    );
    assert_eq!(stand(VariantStatus::Ready), (Word::Lower, true, String::new()));
}

#[test]
fn a_baseline_that_could_not_be_built_leaves_everything_missing() {
    let mut laid = quiet(0.5, 10);
    laid.statuses.insert(BASELINE.to_owned(), VariantStatus::Unsupported("no compiler".to_owned()));
    for verdict in laid.judged().verdicts {
        assert_eq!(verdict.word, Word::NoData);
        assert_eq!(reason(&verdict), "the baseline could not be measured: no compiler");
    }
}

#[test]
fn a_baseline_whose_second_run_fails_in_the_warm_up_is_the_reason_of_every_other_variant() {
    let mut laid = quiet(0.5, 2);
    laid.rounds.iter_mut().for_each(|round| round.kind = RoundKind::Warmup);
    assert_eq!(reason(&laid.verdict("x32", "cpu")), "no timed round yet");
    let control = laid.control();
    laid.statuses.insert(control, VariantStatus::Excluded("it ended with exit status 1".to_owned()));
    let verdict = laid.verdict("x32", "cpu");
    assert_eq!(verdict.word, Word::NoData);
    assert_eq!(reason(&verdict), "the baseline could not be measured: it ended with exit status 1");
}

#[test]
fn the_coverage_of_a_multiplexed_counter_is_reported() {
    let mut laid = quiet(0.5, 10);
    laid.run("x32", 4).sample.get_mut("cpu").expect("a reading").coverage = 0.75;
    laid.run(BASELINE, 5).sample.get_mut("cpu").expect("a reading").coverage = 0.5;
    assert_eq!(laid.verdict("x32", "cpu").coverage, 0.5);
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let mut laid = Laid::new(&["x32", "i386"], &["cpu", "wall"], 20);
    let control = laid.control();
    for (index, metric) in ["cpu", "wall"].into_iter().enumerate() {
        let values = readings(Noise::LoadInSpells, 20, 4, &mut Rng::new(index as u64));
        for (who, name) in [BASELINE, "x32", "i386", &control].iter().enumerate() {
            laid.read(name, metric, values[who].iter().copied());
        }
    }
    let straight = laid.judged();
    let mut turned = laid.clone();
    turned.runs.reverse();
    turned.runs.swap(3, 17);
    turned.rounds.reverse();
    assert_eq!(turned.judged(), straight);
    turned.experiment.metrics.reverse();
    turned.experiment.variants.reverse();
    let turned = turned.judged();
    for verdict in &straight.verdicts {
        assert_eq!(pick(&turned, &verdict.variant, verdict.metric.name), verdict);
    }
}

#[test]
fn the_same_seed_gives_the_same_interval_and_another_seed_nearly_the_same() {
    let laid = quiet(0.9, 30);
    assert_eq!(laid.judged(), laid.judged());
    let mut other = laid.clone();
    other.experiment.seed = 8;
    let (a, b) = (laid.verdict("x32", "cpu"), other.verdict("x32", "cpu"));
    assert_eq!(a.ratio, b.ratio);
    assert_ne!(a.low, b.low);
    let width = a.high.expect("an end") - a.low.expect("an end");
    assert!((a.low.expect("an end") - b.low.expect("an end")).abs() < 0.1 * width);
}

#[test]
fn the_ten_run_estimator_averages_the_middle_six() {
    let mut laid = Laid::new(&["x32"], &["cpu"], 10);
    let control = laid.control();
    laid.experiment.judging.estimator = Estimator::TenRunTrim;
    // The middle six are 13 to 18 (15.5) and 26 to 36 (31); the ends are wild.
    laid.read(BASELINE, "cpu", [1.0, 18.0, 13.0, 99.0, 14.0, 2.0, 17.0, 15.0, 16.0, 98.0]);
    laid.read("x32", "cpu", [26.0, 500.0, 28.0, 3.0, 36.0, 30.0, 400.0, 34.0, 4.0, 32.0]);
    laid.read(&control, "cpu", [13.0, 18.0, 1.0, 99.0, 14.0, 2.0, 17.0, 15.0, 16.0, 98.0]);
    let verdict = laid.verdict("x32", "cpu");
    assert!((verdict.ratio.expect("a ratio") - 2.0).abs() < 1e-12, "{verdict:?}");
    assert!(verdict.low < Some(2.0) && verdict.high > Some(2.0), "{verdict:?}");
    // The paper uses one baseline: the control's readings move only the floor.
    laid.read(&control, "cpu", [7.0; 10]);
    let beside = laid.verdict("x32", "cpu");
    assert_ne!(beside.floor, verdict.floor);
    assert_eq!((beside.ratio, beside.low, beside.high), (verdict.ratio, verdict.low, verdict.high));
}

#[test]
fn the_ten_run_estimator_requires_ten_runs() {
    for rounds in [9, 11] {
        let mut laid = quiet(0.5, rounds);
        laid.experiment.judging.estimator = Estimator::TenRunTrim;
        let verdict = laid.verdict("x32", "cpu");
        assert_eq!(verdict.word, Word::Withheld);
        assert!(reason(&verdict).contains(&format!("there are {rounds}")), "{verdict:?}");
    }
}

#[test]
fn typical_values_use_all_timed_runs_of_every_variant() {
    let mut laid = Laid::new(&["x32"], &["cpu"], 5);
    laid.read_alike("cpu", 2.0);
    laid.read("x32", "cpu", [1.0, 2.0, 3.0, 4.0, 100.0]);
    let typical = laid.judged().typical;
    let names: Vec<&str> = typical.iter().map(|typical| typical.variant.as_str()).collect();
    assert_eq!(names, [BASELINE, "x32", "x86-64 control"]);
    let x32 = &typical[1];
    assert_eq!((x32.value, x32.median, x32.min, x32.max, x32.runs), (3.0, 3.0, 1.0, 100.0, 5));
    assert_eq!((x32.low_quartile, x32.high_quartile), (2.0, 4.0));
}

#[test]
fn the_widest_interval_is_over_what_decides_and_can_still_be_measured() {
    let mut laid = quiet(0.9, 30);
    laid.experiment.metrics.push(campaign::named("wall"));
    let alone = half_width(&laid.evidence()).expect("a width");
    let judgement = laid.judged();
    let half = |name: &str| {
        let verdict = pick(&judgement, name, "cpu");
        0.5 * (verdict.high.expect("an end") - verdict.low.expect("an end"))
    };
    assert!((alone - half("x32").max(half("x86-64 control"))).abs() < 1e-15);
    // Wall time is not a deciding metric, and a variant that cannot be measured is skipped.
    laid.read("x32", "wall", (0..30).map(|i| f64::from(i + 1)));
    laid.read(BASELINE, "wall", (0..30).map(|i| f64::from(31 - i)));
    assert_eq!(half_width(&laid.evidence()), Some(alone));
    laid.statuses.insert("x32".to_owned(), VariantStatus::OutputMismatch(String::new()));
    let control = half("x86-64 control");
    assert!((half_width(&laid.evidence()).expect("a width") - control).abs() < 1e-15);
}

#[test]
fn there_is_no_half_width_while_an_interval_is_missing() {
    assert_eq!(half_width(&quiet(0.9, 5).evidence()), None);
    assert!(half_width(&quiet(0.9, 6).evidence()).is_some());
    assert_eq!(half_width(&Laid::new(&["x32"], &["cpu"], 0).evidence()), None);
}

#[test]
fn an_empty_campaign_is_judged_without_a_panic() {
    let mut nothing = Laid::new(&["x32"], &["cpu"], 0);
    let judgement = judge(&nothing.evidence());
    assert!(judgement.verdicts.iter().all(|verdict| verdict.word == Word::NoData));
    assert_eq!((judgement.typical.len(), judgement.comparisons), (0, 0));
    nothing.experiment.variants.clear();
    nothing.experiment.metrics.clear();
    assert!(judge(&nothing.evidence()).verdicts.is_empty());
}

#[test]
fn words_are_lower_case_in_json() {
    for word in
        [Word::Lower, Word::Higher, Word::NoDifference, Word::Inconclusive, Word::Withheld, Word::NoData]
    {
        assert_eq!(serde_json::to_string(&word).ok(), Some(format!("\"{}\"", word.name())));
    }
}

#[test]
fn a_caller_can_withhold_a_verdict_with_a_reason_and_its_figures_stay() {
    let mut judgement = quiet(0.9, 30).judged();
    let verdict = judgement.verdicts.iter_mut().find(|verdict| verdict.variant == "x32").expect("a verdict");
    let ratio = verdict.ratio;
    verdict.withhold("the x32 runtime's share could turn it");
    verdict.withhold("a second reason");
    assert_eq!(verdict.word, Word::Withheld);
    assert_eq!(verdict.reason.as_deref(), Some("the x32 runtime's share could turn it"));
    assert_eq!(verdict.ratio, ratio);
}
