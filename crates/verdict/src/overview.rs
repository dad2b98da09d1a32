//! What a campaign of many variants found on one metric, in one sentence: how many need less and more, and which least and most.

use crate::wording::{margin, numbers, verb_and_comparatives};
use crate::{Verdict, Word};

/// `CPU time: of 57 variants 20 need less than x86-64, 31 need more, 6 need as much (within ±1 %). Least: x32, −21.0 % (±0.1).
/// Most: i386, +44.4 % (±0.2).`; nothing where nothing was judged.
pub fn overview(verdicts: &[&Verdict]) -> Option<String> {
    let judged: Vec<&Verdict> =
        verdicts.iter().copied().filter(|v| !matches!(v.word, Word::Withheld | Word::NoData)).collect();
    let first = judged.first()?;
    let (verb, [less, much, more]) = verb_and_comparatives(first);
    let verb = |count: usize| match (count, verb) {
        (1, verb) => verb,
        (_, "has") => "have",
        (_, verb) => verb.trim_end_matches('s'),
    };
    let count = |word: Word| judged.iter().filter(|v| v.word == word).count();
    let counts = [
        (Word::Lower, less.to_owned()),
        (Word::Higher, more.to_owned()),
        (Word::NoDifference, format!("as {much} (within {})", margin(first.equal_within))),
    ];
    let mut parts: Vec<String> = counts
        .into_iter()
        .map(|(word, how)| (count(word), how))
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{count} {} {how}", verb(count)))
        .collect();
    match count(Word::Inconclusive) {
        0 => {}
        1 => parts.push("1 is inconclusive".to_owned()),
        open => parts.push(format!("{open} are inconclusive")),
    }
    let noun = first.metric.noun;
    let mut letters = noun.chars();
    let head: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let mut sentence =
        format!("{head}, of {} variants beside {}: {}.", judged.len(), first.baseline, parts.join(", "));
    let by_ratio = |a: &&&Verdict, b: &&&Verdict| a.ratio.unwrap_or(1.0).total_cmp(&b.ratio.unwrap_or(1.0));
    let ends = [
        ("Least", judged.iter().filter(|v| v.word == Word::Lower).min_by(by_ratio)),
        ("Most", judged.iter().filter(|v| v.word == Word::Higher).max_by(by_ratio)),
    ];
    for (word, end) in ends {
        // Without a ratio two variants' differences are not ordered here.
        if let Some(end) = end.filter(|end| end.ratio.is_some()) {
            sentence += &format!(" {word}: {}, {}.", end.variant, numbers(end).unwrap_or_default());
        }
    }
    Some(sentence)
}
