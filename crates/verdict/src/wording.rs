//! Verdicts as text. Numbers have as many digits as their interval justifies.

mod figures;

use widthwise_experiment::metric::Family;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Experiment;

use crate::effect::Scale;
use crate::{Judgement, Verdict, Word};
use figures::Figures;
pub use figures::Size;

/// A ratio as a difference in per cent, with this number of decimals: `−14.8 %`, `+38 %`, `0.0 %`.
pub fn percent(ratio: f64, digits: usize) -> String {
    let difference = 100.0 * (ratio - 1.0);
    format!("{} %", figures::signed(difference, format!("{:.digits$}", difference.abs())))
}

/// A margin of equivalence: `±1 %`.
pub fn margin(fraction: f64) -> String {
    format!("±{}", whole(fraction))
}

/// A chosen fraction, in per cent: `95 %`, `0.5 %`.
fn whole(fraction: f64) -> String {
    format!("{} %", (fraction * 1e5).round() / 1e3)
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

/// A fraction in per cent with its interval, to the digits that this justifies: `31 % (29 … 33)`.
pub(crate) fn share_between(fraction: f64, low: f64, high: f64) -> String {
    let digits = figures::digits(50.0 * (high - low), 100.0 * fraction);
    let [low, high, fraction] = [low, high, fraction].map(|share| format!("{:.digits$}", 100.0 * share));
    format!("{fraction} % ({low} … {high})")
}

/// A verdict in a table's cell: `−2.1 % (−2.9 … −1.4)`, `−14.8 % (±0.1)`, `× 12.3 (12.1 … 12.6)`,
/// `0 → 11: +11 (+9 … +13)`, or its word. The A/A control has a difference and no word: `A/A +0.1 %`.
pub fn interval(verdict: &Verdict) -> String {
    let is_difference = matches!(verdict.word, Word::Lower | Word::Higher);
    let is_control = verdict.is_control() && matches!(verdict.word, Word::NoDifference | Word::Inconclusive);
    match Figures::of(verdict) {
        Some(figures) if is_difference => figures.cell(),
        Some(figures) if is_control => format!("A/A {}", figures.estimate()),
        _ => verdict.word.text().to_owned(),
    }
}

/// The figures of a verdict with any word, as [`interval`] writes them; absent where it has none.
pub fn numbers(verdict: &Verdict) -> Option<String> {
    Figures::of(verdict).map(|figures| figures.cell())
}

/// The size of a verdict's difference, as [`sentence`] writes it; absent where it has no ratio.
pub fn size(verdict: &Verdict) -> Option<Size> {
    Size::of(verdict)
}

/// A verdict's detection floor, as a fraction or as an amount: `0.8 %`, `3 kB`. A large one is the same ratio in both directions, and
/// not the same fraction: `−13/+15 %`.
pub fn floor(verdict: &Verdict) -> Option<String> {
    let amount = |value| Quantity { value, unit: verdict.metric.unit }.to_string();
    match (verdict.floor, verdict.floor_of_decrease) {
        (Some(increase), Some(decrease)) => Some(both(increase, decrease)),
        (floor, _) => floor.map(departures).or_else(|| verdict.difference_floor.map(amount)),
    }
}

/// A departure from no difference: `0.8 %`, or an amount with its unit.
pub(crate) fn departure_text(scale: Scale, departure: f64, unit: Unit) -> String {
    match scale {
        Scale::Log => share(departure),
        Scale::Difference { .. } => Quantity { value: departure, unit }.to_string(),
    }
}

/// The decrease and the increase that are equally far from no difference on the log scale; one figure if they are shown alike.
pub(crate) fn departures(increase: f64) -> String {
    both(increase, Scale::Log.toward(-1.0, increase))
}

fn both(increase: f64, decrease: f64) -> String {
    let (more, less) = (share(increase), share(decrease));
    if more == less || !increase.is_finite() {
        return more;
    }
    format!("−{}/+{more}", less.trim_end_matches(" %"))
}

/// The verb for a metric, and the words for less, as much and more of it.
pub(crate) fn verb_and_comparatives(verdict: &Verdict) -> (&'static str, [&'static str; 3]) {
    match (verdict.metric.unit, verdict.metric.family) {
        (Unit::Bytes, _) => ("uses", ["less", "much", "more"]),
        (Unit::Nanoseconds, _) => ("needs", ["less", "much", "more"]),
        (
            Unit::Count,
            Family::Counter
            | Family::Machine
            | Family::InstructionClass
            | Family::Operation
            | Family::MachineOperation,
        ) => ("needs", ["fewer", "many", "more"]),
        (Unit::Count, Family::CacheModel) => ("has", ["fewer", "many", "more"]),
        (Unit::Count, Family::Accounting | Family::Series | Family::Runtime | Family::Reported) => {
            ("has", ["fewer", "many", "more"])
        }
    }
}

/// The difference without its subject: `uses 31 % (30.6 to 31.4) less peak memory than`, `needs 12.3 times (12.1 to 12.6)
/// as much CPU time as`, `has 11 (9 to 13) more major faults (0 → 11) than`; the last word by itself.
fn predicate(verdict: &Verdict) -> Option<(String, &'static str)> {
    let (verb, [less, much, more]) = verb_and_comparatives(verdict);
    let noun = verdict.metric.noun;
    let comparative = if verdict.word == Word::Lower { less } else { more };
    Some(match Figures::of(verdict)? {
        Figures::Percent(difference) => {
            (format!("{verb} {} {comparative} {noun}", difference.size()), "than")
        }
        Figures::Multiple { ratio, low, high, digits } => (
            format!("{verb} {ratio:.digits$} times ({low:.digits$} to {high:.digits$}) as {much} {noun}"),
            "as",
        ),
        Figures::Amount { baseline, variant, difference } => {
            (format!("{verb} {} {comparative} {noun} ({baseline} → {variant})", difference.size()), "than")
        }
    })
}

/// Equivalence without its subject and its standard: `needs as much CPU time (−0.3 % to +0.5 %)`, `has exactly as many page
/// faults`.
fn equivalent(verdict: &Verdict) -> String {
    let (verb, [_, much, _]) = verb_and_comparatives(verdict);
    let noun = verdict.metric.noun;
    match Figures::of(verdict) {
        Some(figures) if figures.is_zero() && verdict.unequal == 0 => {
            format!("{verb} exactly as {much} {noun}")
        }
        Some(figures) if figures.is_zero() => {
            let Verdict { unequal, pairs, .. } = verdict;
            format!("{verb} as {much} {noun} (equal in all but {unequal} of {pairs} rounds)")
        }
        Some(figures) => format!("{verb} as {much} {noun} ({})", figures.range()),
        None => format!("{verb} as {much} {noun}"),
    }
}

/// An inconclusive comparison without its subject and its standard: `needs less or more CPU time (−2.1 % to +1.4 %)`.
fn unknown(verdict: &Verdict) -> String {
    let (verb, [less, _, more]) = verb_and_comparatives(verdict);
    let noun = verdict.metric.noun;
    let floor = floor(verdict).map_or(String::new(), |floor| format!("; floor {floor}"));
    let rounds = match (verdict.rounds_to_decide, verdict.spread) {
        (Some(rounds), _) => format!("; about {rounds} rounds would decide"),
        (None, Some(spread)) if spread.lasting > 0.5 => {
            "; more layouts would decide (--randomize-layout=N), not more rounds".to_owned()
        }
        _ => String::new(),
    };
    let range = Figures::of(verdict)
        .map_or(String::new(), |figures| format!(" ({}{floor}{rounds})", figures.range()));
    format!("{verb} {less} or {more} {noun}{range}")
}

/// The verdicts without a difference on one variant: one sentence, without its full stop, for the equivalent and one
/// for the inconclusive.
fn without_difference(variant: &str, baseline: &str, verdicts: &[&Verdict]) -> Vec<String> {
    let of = |word: Word| verdicts.iter().copied().filter(move |verdict| verdict.word == word);
    let mut sentences = Vec::new();
    let equal: Vec<String> = of(Word::NoDifference).map(equivalent).collect();
    let is_exact = |verdict: &Verdict| {
        verdict.unequal == 0 && Figures::of(verdict).is_some_and(|figures| figures.is_zero())
    };
    if let Some(first) = of(Word::NoDifference).next() {
        let beyond = if of(Word::NoDifference).all(is_exact) {
            String::new()
        } else {
            // A ratio is of the baseline's figure anyway.
            let has_amount = of(Word::NoDifference).any(|verdict| verdict.ratio.is_none());
            let of_what = if has_amount { " of the baseline's mean" } else { "" };
            format!(": no difference beyond {}{of_what}", margin(first.equal_within))
        };
        sentences.push(format!("{variant} {} as {baseline}{beyond}", equal.join(" and ")));
    }
    let open: Vec<String> = of(Word::Inconclusive).map(unknown).collect();
    if !open.is_empty() {
        sentences.push(format!(
            "it is inconclusive whether {variant} {} than {baseline}",
            open.join(" and whether it ")
        ));
    }
    sentences
}

/// A verdict as a sentence without its full stop.
pub fn sentence(verdict: &Verdict) -> String {
    let Verdict { variant, baseline, .. } = verdict;
    let noun = verdict.metric.noun;
    let because = verdict.reason.as_deref().unwrap_or("no reason was kept");
    match verdict.word {
        Word::Lower | Word::Higher => match predicate(verdict) {
            Some((predicate, standard)) => format!("{variant} {predicate} {standard} {baseline}"),
            None => format!("{variant}: {} {noun} than {baseline}", verdict.word),
        },
        Word::NoDifference | Word::Inconclusive if verdict.is_control() => {
            let figures = numbers(verdict).unwrap_or_default();
            format!("the A/A difference in {noun}, of {baseline} to itself, is {figures}")
        }
        Word::NoDifference | Word::Inconclusive => {
            without_difference(variant, baseline, &[verdict]).join("; ")
        }
        Word::Withheld => format!("no verdict on the {noun} of {variant}: {because}"),
        Word::NoData => format!("{variant} has no figure for {noun}: {because}"),
    }
}

/// The smallest difference that as many rounds find in nine of ten campaigns, of the variant with the widest interval.
fn found_reliably(judgement: &Judgement, deciding: &[widthwise_experiment::Metric]) -> Option<String> {
    let of_metric = |metric: &widthwise_experiment::Metric| {
        let of = judgement.verdicts.iter().filter(|verdict| verdict.metric == *metric);
        let widest = of
            .filter(|verdict| verdict.ratio.is_some())
            .max_by(|a, b| a.detectable.unwrap_or(0.0).total_cmp(&b.detectable.unwrap_or(0.0)))?;
        // Exact counts find any difference, in two rounds.
        let detectable = widest.detectable.filter(|detectable| *detectable > 0.0)?;
        Some((widest.pairs, format!("{} for {}", share(detectable), metric.noun)))
    };
    let all: Vec<(u32, String)> = deciding.iter().filter_map(of_metric).collect();
    let rounds = all.iter().map(|(rounds, _)| *rounds).min()?;
    let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    Some(format!("Nine of ten campaigns of {rounds} rounds find a difference of {}.", texts.join(", ")))
}

/// How many layouts the programs had, and how far comparisons differ from one layout to another; none if each had one.
pub fn layouts(judgement: &Judgement, experiment: &Experiment) -> Option<String> {
    let of_metric = |metric: widthwise_experiment::Metric| {
        let own =
            judgement.verdicts.iter().filter(|verdict| verdict.metric == metric && verdict.ratio.is_some());
        let widest =
            own.filter_map(|verdict| verdict.spread).max_by(|a, b| a.deviation.total_cmp(&b.deviation))?;
        let size = match widest.deviation {
            0.0 => "no more than their noise".to_owned(),
            deviation => share(deviation.exp_m1()),
        };
        Some((widest.layouts, format!("{size} in {}", metric.noun)))
    };
    let all: Vec<(u32, String)> = experiment.deciding().into_iter().filter_map(of_metric).collect();
    let count = all.iter().map(|(layouts, _)| *layouts).max()?;
    let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    Some(format!("{count} layouts of each program; their spread is {}.", texts.join(", ")))
}

/// The result of a campaign: a sentence for each variant on the deciding metrics, the detection floor, and the meaning
/// of the intervals and words.
pub fn summary(judgement: &Judgement, experiment: &Experiment) -> Vec<String> {
    let deciding = experiment.deciding();
    let control = experiment.control();
    let of = |name: &str| -> Vec<&Verdict> {
        judgement.verdicts.iter().filter(|v| v.variant == name && deciding.contains(&v.metric)).collect()
    };
    let mut sentences: Vec<String> = experiment
        .variants
        .iter()
        .filter(|variant| variant.name != experiment.baseline)
        .flat_map(|variant| about(&variant.name, &experiment.baseline, &of(&variant.name)))
        .collect();
    let floors: Vec<String> = of(&control)
        .iter()
        .filter_map(|verdict| Some(format!("{} for {}", floor(verdict)?, verdict.metric.noun)))
        .collect();
    if !floors.is_empty() {
        sentences.push(format!("The smallest difference this machine can resolve: {}.", floors.join(", ")));
    }
    sentences.extend(found_reliably(judgement, &deciding));
    sentences.extend(promise(judgement, experiment));
    sentences
}

/// The meaning of the intervals and words, and the number of comparisons; absent where there are none.
pub fn promise(judgement: &Judgement, experiment: &Experiment) -> Option<String> {
    let judging = &experiment.judging;
    let (held, risk) = (whole(judging.confidence), whole(1.0 - judging.confidence));
    let intervals = match judgement.comparisons {
        0 => return None,
        1 => format!("The interval holds with {held} confidence."),
        n => format!(
            "Each interval holds with {held} confidence by itself. The words lower and higher are adjusted for the number of \
             comparisons: the chance that any of the {n} is called a difference by luck is at most {risk} (Holm)."
        ),
    };
    let lag = judgement.rss_lag.map_or(String::new(), |bytes| {
        let bytes = Quantity { value: bytes, unit: Unit::Bytes };
        format!(" Intervals and floors of max RSS include {bytes}, by which the kernel's accounts of the same memory may differ.")
    });
    Some(format!(
        "{intervals}{lag} No difference: none is established, and the whole interval lies within {} (--equal-within). \
         Inconclusive: it does not, and no difference was found.",
        margin(judging.equal_within)
    ))
}

fn about(variant: &str, baseline: &str, verdicts: &[&Verdict]) -> Vec<String> {
    let Some(first) = verdicts.first() else { return Vec::new() };
    let all = |word: Word| verdicts.iter().all(|v| v.word == word && v.reason == first.reason);
    let because = first.reason.as_deref().unwrap_or("no reason was kept");
    if all(Word::NoData) {
        return vec![format!("{variant} could not be measured: {because}.")];
    }
    if all(Word::Withheld) {
        return vec![format!("No verdict on {variant}: {because}.")];
    }
    let mut differences: Vec<String> = Vec::new();
    for standard in ["than", "as"] {
        let predicates: Vec<String> = verdicts
            .iter()
            .filter(|v| matches!(v.word, Word::Lower | Word::Higher))
            .filter_map(|v| predicate(v))
            .filter(|(_, own)| *own == standard)
            .map(|(predicate, _)| predicate)
            .collect();
        if !predicates.is_empty() {
            differences.push(format!("{} {standard} {baseline}", predicates.join(" and ")));
        }
    }
    let mut sentences = Vec::new();
    if !differences.is_empty() {
        sentences.push(format!("{variant} {}", differences.join(" and ")));
    }
    sentences.extend(without_difference(variant, baseline, verdicts));
    sentences.extend(
        verdicts.iter().filter(|v| matches!(v.word, Word::Withheld | Word::NoData)).map(|v| sentence(v)),
    );
    sentences.iter().map(|sentence| format!("{}.", capital(sentence, variant))).collect()
}

/// A capital at the head of a sentence, unless it begins with a name.
fn capital(sentence: &str, name: &str) -> String {
    if sentence.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)) {
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
            kernel: Default::default(),
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
            metrics: ["cpu", "max_rss"].iter().filter_map(|name| metric::find(name)).collect(),
            launch: Launch::default(),
            check: OutputCheck::default(),
            stopping: Stopping::default(),
            warmup: 0,
            memory: 0,
            judging: Judging { confidence: 0.95, equal_within: 0.01, estimator: Estimator::Paired },
            order: widthwise_experiment::schedule::Order::Random,
            cache_model: Default::default(),
            kvm: false,
            layouts: 0,
            seed: 1,
        }
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
    fn a_sentence_begins_with_a_capital_although_its_first_word_begins_as_the_name() {
        let sentence = "it is inconclusive whether i needs less or more CPU time";
        assert!(capital(sentence, "i").starts_with("It is"));
        assert_eq!(capital("i's runs", "i"), "i's runs");
        assert_eq!(capital("i needs less", "i"), "i needs less");
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
        let cell = |name, baseline, difference, low, high| {
            interval(&of_amounts(name, baseline, difference, low, high))
        };
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
            order: widthwise_experiment::schedule::Order::Random,
            cache_model: Default::default(),
            kvm: false,
            layouts: 0,
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
        let control =
            Verdict { word: Word::NoDifference, ..verdict("cpu", "x86-64 control", 1.0, 0.99, 1.01) };
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
