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

    #[test]
    fn a_sentence_begins_with_a_capital_although_its_first_word_begins_as_the_name() {
        let sentence = "it is inconclusive whether i needs less or more CPU time";
        assert!(capital(sentence, "i").starts_with("It is"));
        assert_eq!(capital("i's runs", "i"), "i's runs");
        assert_eq!(capital("i needs less", "i"), "i needs less");
    }
}
