//! Verdicts in words.

use widthwise_experiment::Experiment;

use crate::{Judgement, Verdict, Word};

/// Digits after the point that an interval of that width deserves.
fn digits(low: f64, high: f64) -> usize {
    match (high - low) * 100.0 {
        width if width < 0.02 => 2,
        width if width < 3.0 => 1,
        _ => 0,
    }
}

fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    if text.bytes().all(|b| b == b'0' || b == b'.') {
        return text;
    }
    format!("{}{text}", if value < 0.0 { '−' } else { '+' })
}

/// A difference in per cent: `−2.1 %`.
pub fn percent(ratio: f64) -> String {
    format!("{} %", signed((ratio - 1.0) * 100.0, 1))
}

/// A table's cell: `−2.1 % (−2.9 … −1.4)`, or `same`.
pub fn interval(verdict: &Verdict) -> String {
    match (verdict.word, verdict.ratio, verdict.low, verdict.high) {
        (Word::Lower | Word::Higher, Some(ratio), Some(low), Some(high)) => {
            let digits = digits(low, high);
            let show = |ratio: f64| signed((ratio - 1.0) * 100.0, digits);
            format!("{} % ({} … {})", show(ratio), show(low), show(high))
        }
        (word, ..) => word.name().to_owned(),
    }
}

/// A sentence.
pub fn sentence(verdict: &Verdict) -> String {
    let (variant, noun, baseline) = (&verdict.variant, verdict.metric.noun, &verdict.baseline);
    match (verdict.word, verdict.ratio, verdict.low, verdict.high) {
        (Word::Lower | Word::Higher, Some(ratio), Some(low), Some(high)) => {
            let digits = digits(low, high);
            let show = |ratio: f64| format!("{:.digits$}", ((ratio - 1.0) * 100.0).abs());
            let (near, far) = if verdict.word == Word::Lower { (high, low) } else { (low, high) };
            let way = if verdict.word == Word::Lower { "less" } else { "more" };
            format!(
                "{variant} uses {} % ({} to {}) {way} {noun} than {baseline}.",
                show(ratio),
                show(near),
                show(far)
            )
        }
        (Word::Same, ..) => match verdict.floor {
            Some(floor) => format!(
                "{variant}: no difference in {noun} that this machine can see (floor {:.1} %).",
                floor * 100.0
            ),
            None => format!("{variant}: no difference in {noun} that this machine can see."),
        },
        (word, ..) => {
            format!(
                "{variant}: {noun} {}: {}.",
                word.name(),
                verdict.reason.as_deref().unwrap_or("no reason")
            )
        }
    }
}

/// The sentences of a campaign: its deciding metrics, variant by variant.
pub fn summary(judgement: &Judgement, experiment: &Experiment) -> Vec<String> {
    let deciding = experiment.deciding();
    judgement
        .verdicts
        .iter()
        .filter(|verdict| verdict.variant != experiment.twin() && verdict.word != Word::Missing)
        .filter(|verdict| deciding.contains(&verdict.metric))
        .map(sentence)
        .collect()
}
