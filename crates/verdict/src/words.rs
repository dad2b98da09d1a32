//! Verdicts in words. Numbers carry as many digits as their interval deserves, no more.

use widthwise_experiment::metric::Family;
use widthwise_experiment::units::Unit;
use widthwise_experiment::Experiment;

use crate::{Judgement, Verdict, Word};

/// From this ratio on a difference reads better as a multiple than in per cent.
const MULTIPLE: f64 = 10.0;

/// A ratio as a difference in per cent, with so many digits after the point: `−14.8 %`, `+38 %`, `0.0 %`.
pub fn percent(ratio: f64, digits: usize) -> String {
    format!("{} %", signed(ratio, digits))
}

/// A ratio's difference from 1 in per cent, with its sign, and without a sign where it is shown as 0.
fn signed(ratio: f64, digits: usize) -> String {
    let text = unsigned(ratio, digits);
    let zero = text.chars().all(|c| matches!(c, '0' | '.'));
    match ratio {
        _ if zero => text,
        r if r < 1.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// A ratio's distance from 1 in per cent.
fn unsigned(ratio: f64, digits: usize) -> String {
    format!("{:.digits$}", (100.0 * (ratio - 1.0)).abs())
}

/// A fraction in per cent, to about two significant digits: `0.8 %`, `12 %`, `0.03 %`, `0 %`.
pub fn share(fraction: f64) -> String {
    let value = 100.0 * fraction.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0} %");
    }
    if value < 0.0005 {
        return "under 0.001 %".to_owned();
    }
    let digits = match value {
        v if v >= 9.95 => 0,
        v if v >= 0.095 => 1,
        v if v >= 0.0095 => 2,
        _ => 3,
    };
    format!("{value:.digits$} %")
}

/// How many digits after the point per cents deserve whose interval reaches this far (also in per cent) to either
/// side; where there is no spread at all, enough to show the difference.
fn digits(half: f64, seen: f64) -> usize {
    let measure = if half > 0.0 { half } else { seen.abs() };
    match measure {
        m if m >= 0.995 && half > 0.0 => 0,
        m if m >= 0.05 => 1,
        m if m >= 0.005 => 2,
        m if m > 0.0 => 3,
        _ => 1,
    }
}

/// The figures of a verdict that has them.
struct Figures {
    ratio: f64,
    low: f64,
    high: f64,
    digits: usize,
}

fn figures(verdict: &Verdict) -> Option<Figures> {
    let (ratio, low, high) = (verdict.ratio?, verdict.low?, verdict.high?);
    let digits = digits(50.0 * (high - low), 100.0 * (ratio - 1.0));
    Some(Figures { ratio, low, high, digits })
}

/// A verdict in a table's cell: `−2.1 % (−2.9 … −1.4)`, `−14.8 % (±0.1)`, `× 12.3 (12.1 … 12.6)`, or its word.
pub fn interval(verdict: &Verdict) -> String {
    match (verdict.word, figures(verdict)) {
        (Word::Lower | Word::Higher, Some(figures)) => interval_of(&figures),
        (word, _) => word.name().to_owned(),
    }
}

/// The figures of a verdict whatever its word, as [`interval`] writes them; absent where it has none.
pub fn numbers(verdict: &Verdict) -> Option<String> {
    figures(verdict).map(|figures| interval_of(&figures))
}

fn interval_of(figures: &Figures) -> String {
    let Figures { ratio, low, high, digits } = *figures;
    if ratio >= MULTIPLE {
        let digits = multiple_digits(figures);
        return format!("× {ratio:.digits$} ({low:.digits$} … {high:.digits$})");
    }
    // `±` is true only where it leads from the figure that is shown to the ends that would be shown.
    let steps = |ratio: f64| (100.0 * (ratio - 1.0) * 10f64.powi(digits as i32)).round();
    let reach = unsigned(1.0 + 0.5 * (high - low), digits);
    let (below, above) = (steps(ratio) - steps(low), steps(high) - steps(ratio));
    if high <= low {
        format!("{} (±0)", percent(ratio, digits))
    } else if below == above && format!("{:.digits$}", below / 10f64.powi(digits as i32)) == reach {
        format!("{} (±{reach})", percent(ratio, digits))
    } else {
        format!("{} ({} … {})", percent(ratio, digits), signed(low, digits), signed(high, digits))
    }
}

fn multiple_digits(figures: &Figures) -> usize {
    match 0.5 * (figures.high - figures.low) {
        half if half >= 1.0 => 0,
        half if half >= 0.05 => 1,
        _ => 2,
    }
}

/// What a variant does with a metric, and how less and more of it are called.
fn verb_and_comparatives(verdict: &Verdict) -> (&'static str, &'static str, &'static str) {
    match (verdict.metric.unit, verdict.metric.family) {
        (Unit::Bytes, _) => ("uses", "less", "more"),
        (Unit::Nanoseconds, _) => ("needs", "less", "more"),
        (Unit::Count, Family::Counter) => ("needs", "fewer", "more"),
        (Unit::Count, Family::Accounting | Family::Series) => ("has", "fewer", "more"),
    }
}

/// The difference without its subject and its standard of comparison: `uses 31 % (30.6 to 31.4) less peak memory`,
/// or `needs 12.3 times (12.1 to 12.6) as much CPU time`.
fn predicate(verdict: &Verdict) -> Option<String> {
    let figures = figures(verdict)?;
    let (verb, less, more) = verb_and_comparatives(verdict);
    let noun = verdict.metric.noun;
    let Figures { ratio, low, high, digits } = figures;
    if ratio >= MULTIPLE {
        let digits = multiple_digits(&figures);
        let much = if verdict.metric.unit == Unit::Count { "many" } else { "much" };
        return Some(format!(
            "{verb} {ratio:.digits$} times ({low:.digits$} to {high:.digits$}) as {much} {noun}"
        ));
    }
    let comparative = if ratio < 1.0 { less } else { more };
    let (near, far) = if ratio < 1.0 { (high, low) } else { (low, high) };
    let range = if high > low {
        format!(" ({} to {})", unsigned(near, digits), unsigned(far, digits))
    } else {
        String::new()
    };
    Some(format!("{verb} {} %{range} {comparative} {noun}", unsigned(ratio, digits)))
}

/// What stands where nothing was seen: `no difference in CPU time that this machine can see (floor 0.8 %)`.
fn no_difference(verdict: &Verdict) -> String {
    let noun = verdict.metric.noun;
    match verdict.floor {
        Some(0.0) if verdict.ratio == Some(1.0) => format!("no difference in {noun}"),
        Some(floor) => format!("no difference in {noun} that this machine can see (floor {})", share(floor)),
        None => format!("no difference in {noun} that this machine can see"),
    }
}

/// A verdict as a sentence without its full stop.
pub fn sentence(verdict: &Verdict) -> String {
    let Verdict { variant, baseline, .. } = verdict;
    let noun = verdict.metric.noun;
    let because = verdict.reason.as_deref().unwrap_or("no reason was kept");
    match verdict.word {
        Word::Lower | Word::Higher => match predicate(verdict) {
            Some(predicate) if verdict.ratio.is_some_and(|ratio| ratio >= MULTIPLE) => {
                format!("{variant} {predicate} as {baseline}")
            }
            Some(predicate) => format!("{variant} {predicate} than {baseline}"),
            None => format!("{variant}: {} {noun} than {baseline}", verdict.word),
        },
        Word::Same => format!("{variant} shows {}", no_difference(verdict)),
        Word::Withheld => format!("no verdict on the {noun} of {variant}: {because}"),
        Word::Missing => format!("{variant} has no figure for {noun}: {because}"),
    }
}

/// What a campaign found, in a few sentences: one for each variant on the metrics the experiment decides on, then the
/// detection floor, then what the intervals and the words promise.
pub fn summary(judgement: &Judgement, experiment: &Experiment) -> Vec<String> {
    let deciding = experiment.deciding();
    let twin = experiment.twin();
    let of = |name: &str| -> Vec<&Verdict> {
        judgement.verdicts.iter().filter(|v| v.variant == name && deciding.contains(&v.metric)).collect()
    };
    let mut sentences: Vec<String> = experiment
        .variants
        .iter()
        .filter(|variant| variant.name != experiment.baseline)
        .flat_map(|variant| about(&variant.name, &experiment.baseline, &of(&variant.name)))
        .collect();
    let floors: Vec<String> = of(&twin)
        .iter()
        .filter_map(|verdict| Some(format!("{} for {}", share(verdict.floor?), verdict.metric.noun)))
        .collect();
    if !floors.is_empty() {
        sentences
            .push(format!("The smallest difference this machine can tell from none: {}.", floors.join(", ")));
    }
    sentences.extend(promise(judgement, experiment));
    sentences
}

/// What the intervals and the words promise, and for how many comparisons; absent where there are none.
pub fn promise(judgement: &Judgement, experiment: &Experiment) -> Option<String> {
    let confidence = experiment.judging.confidence;
    let whole = |fraction: f64| format!("{} %", (fraction * 1e5).round() / 1e3);
    let (held, risk) = (whole(confidence), whole(1.0 - confidence));
    match judgement.comparisons {
        0 => None,
        1 => Some(format!("The interval holds with {held} confidence.")),
        n => Some(format!(
            "Each interval holds with {held} confidence by itself; the words hold together: the chance that any of \
             the {n} comparisons is called a difference by luck is at most {risk} (Holm)."
        )),
    }
}

fn about(variant: &str, baseline: &str, verdicts: &[&Verdict]) -> Vec<String> {
    let Some(first) = verdicts.first() else { return Vec::new() };
    let all = |word: Word| verdicts.iter().all(|v| v.word == word && v.reason == first.reason);
    let because = first.reason.as_deref().unwrap_or("no reason was kept");
    if all(Word::Missing) {
        return vec![format!("{variant} could not be measured: {because}.")];
    }
    if all(Word::Withheld) {
        return vec![format!("No verdict on {variant}: {because}.")];
    }
    let mut parts = Vec::new();
    let (multiples, differences): (Vec<&Verdict>, Vec<&Verdict>) = verdicts
        .iter()
        .copied()
        .filter(|v| matches!(v.word, Word::Lower | Word::Higher))
        .partition(|v| v.ratio.is_some_and(|ratio| ratio >= MULTIPLE));
    let mut told: Vec<String> = Vec::new();
    let predicates: Vec<String> = differences.iter().filter_map(|v| predicate(v)).collect();
    if !predicates.is_empty() {
        told.push(format!("{} than {baseline}", predicates.join(" and ")));
    }
    told.extend(multiples.iter().filter_map(|v| Some(format!("{} as {baseline}", predicate(v)?))));
    if !told.is_empty() {
        parts.push(format!("{variant} {}", told.join(" and ")));
    }
    let same: Vec<String> =
        verdicts.iter().filter(|v| v.word == Word::Same).map(|v| no_difference(v)).collect();
    if !same.is_empty() {
        let listed = same.join(" and ");
        parts.push(if parts.is_empty() { format!("{variant} shows {listed}") } else { listed });
    }
    let mut sentences = vec![format!("{}.", parts.join("; "))];
    if parts.is_empty() {
        sentences.clear();
    }
    sentences.extend(
        verdicts
            .iter()
            .filter(|v| matches!(v.word, Word::Withheld | Word::Missing))
            .map(|v| format!("{}.", capital(&sentence(v), variant))),
    );
    sentences
}

/// A capital at the head of a sentence, unless it begins with a name.
fn capital(sentence: &str, name: &str) -> String {
    if sentence.starts_with(name) {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use widthwise_experiment::metric;
    use widthwise_experiment::model::{
        Estimator, FlagSet, Judging, Launch, Origin, OutputCheck, Program, Stopping, Thp, Variant,
    };

    fn experiment() -> Experiment {
        let variant = |name: &str| Variant {
            name: name.to_owned(),
            abi: None,
            compiler: None,
            flags: FlagSet {
                name: "-O2".to_owned(),
                cflags: String::new(),
                cxxflags: String::new(),
                ldflags: String::new(),
                profile_guided: false,
                train: None,
            },
            allocator: "glibc".to_owned(),
            thp: Thp::System,
            environment: BTreeMap::new(),
            binary: None,
        };
        Experiment {
            program: Program {
                name: "tree".to_owned(),
                origin: Origin::Binaries { files: BTreeMap::new() },
                run: "{binary}".to_owned(),
            },
            variants: ["x86-64", "x32", "i386"].map(variant).to_vec(),
            baseline: "x86-64".to_owned(),
            metrics: ["cpu", "peak_resident"].iter().filter_map(|name| metric::find(name)).collect(),
            launch: Launch::default(),
            check: OutputCheck::default(),
            stopping: Stopping::default(),
            warmup: 0,
            memory: 0,
            judging: Judging { confidence: 0.95, estimator: Estimator::Paired },
            seed: 1,
        }
    }

    fn verdict(name: &str, variant: &str, ratio: f64, low: f64, high: f64) -> Verdict {
        Verdict {
            metric: metric::find(name).expect("a metric"),
            variant: variant.to_owned(),
            baseline: "x86-64".to_owned(),
            ratio: Some(ratio),
            low: Some(low),
            high: Some(high),
            confidence: 0.95,
            floor: Some(0.008),
            pairs: 30,
            p: Some(0.0),
            adjusted_p: Some(0.0),
            coverage: 1.0,
            source: None,
            word: if ratio < 1.0 { Word::Lower } else { Word::Higher },
            reason: None,
        }
    }

    #[test]
    fn cells_show_the_digits_that_the_interval_deserves() {
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
        for word in [Word::Same, Word::Withheld, Word::Missing] {
            let verdict = Verdict { word, ..verdict("cpu", "x32", 0.99, 0.9, 1.1) };
            assert_eq!(interval(&verdict), word.name());
        }
    }

    #[test]
    fn sentences_say_who_needs_how_much_less_of_what() {
        assert_eq!(
            sentence(&verdict("peak_resident", "x32", 0.69, 0.686, 0.694)),
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
    fn where_nothing_was_seen_the_sentence_gives_the_floor() {
        let same = Verdict { word: Word::Same, ..verdict("cpu", "x32", 0.999, 0.99, 1.01) };
        assert_eq!(
            sentence(&same),
            "x32 shows no difference in CPU time that this machine can see (floor 0.8 %)"
        );
        let exact = Verdict { floor: Some(0.0), word: Word::Same, ..verdict("cpu", "x32", 1.0, 1.0, 1.0) };
        assert_eq!(sentence(&exact), "x32 shows no difference in CPU time");
    }

    #[test]
    fn where_there_is_no_verdict_the_sentence_gives_the_reason() {
        let withheld = Verdict {
            word: Word::Withheld,
            reason: Some("2 of 30 runs failed: killed by signal 11".to_owned()),
            ..verdict("cpu", "x32", 0.9, 0.9, 0.9)
        };
        assert_eq!(
            sentence(&withheld),
            "no verdict on the CPU time of x32: 2 of 30 runs failed: killed by signal 11"
        );
        let missing =
            Verdict { word: Word::Missing, reason: Some("not counted here".to_owned()), ..withheld };
        assert_eq!(sentence(&missing), "x32 has no figure for CPU time: not counted here");
    }

    #[test]
    fn the_promise_names_the_confidence_the_risk_and_the_comparisons() {
        let experiment = |confidence| Experiment {
            judging: Judging { confidence, estimator: Estimator::Paired },
            ..experiment()
        };
        let judgement = |comparisons| Judgement { verdicts: Vec::new(), typical: Vec::new(), comparisons };
        assert_eq!(promise(&judgement(0), &experiment(0.95)), None);
        let one = promise(&judgement(1), &experiment(0.95)).expect("a promise");
        assert_eq!(one, "The interval holds with 95 % confidence.");
        let many = promise(&judgement(22), &experiment(0.995)).expect("a promise");
        assert!(many.contains("99.5 % confidence") && many.contains("any of the 22 comparisons"), "{many}");
        assert!(many.contains("at most 0.5 %"), "{many}");
    }

    #[test]
    fn a_summary_says_what_each_variant_costs_then_the_floor_then_the_promise() {
        let lower = verdict("cpu", "x32", 0.979, 0.971, 0.986);
        let memory = verdict("peak_resident", "x32", 0.852, 0.851, 0.853);
        let same = Verdict { word: Word::Same, ..verdict("cpu", "i386", 1.001, 0.99, 1.01) };
        let reason = Some("2 of 30 runs failed: killed by signal 11".to_owned());
        let withheld =
            Verdict { word: Word::Withheld, reason, ..verdict("peak_resident", "i386", 1.0, 1.0, 1.0) };
        let twin = Verdict { word: Word::Same, ..verdict("cpu", "x86-64 again", 1.0, 0.99, 1.01) };
        let judgement = Judgement {
            verdicts: vec![lower, memory, same, withheld, twin],
            typical: Vec::new(),
            comparisons: 3,
        };
        let told = summary(&judgement, &experiment());
        assert_eq!(
            told[..4],
            [
                "x32 needs 2.1 % (1.4 to 2.9) less CPU time and uses 14.8 % (14.7 to 14.9) less peak memory than x86-64.",
                "i386 shows no difference in CPU time that this machine can see (floor 0.8 %).",
                "No verdict on the peak memory of i386: 2 of 30 runs failed: killed by signal 11.",
                "The smallest difference this machine can tell from none: 0.8 % for CPU time.",
            ]
        );
        assert!(told[4].starts_with("Each interval holds") && told.len() == 5, "{told:?}");
    }

    #[test]
    fn a_variant_that_could_not_be_measured_is_told_of_once() {
        let gone = |metric| Verdict {
            word: Word::Missing,
            reason: Some("this kernel has no x32".to_owned()),
            ..verdict(metric, "x32", 1.0, 1.0, 1.0)
        };
        let judgement = Judgement {
            verdicts: vec![gone("cpu"), gone("peak_resident")],
            typical: Vec::new(),
            comparisons: 0,
        };
        assert_eq!(
            summary(&judgement, &experiment()),
            ["x32 could not be measured: this kernel has no x32."]
        );
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
}
