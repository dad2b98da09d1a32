//! The comparison of two cells' throughputs, in the words of verdicts.

use widthwise_verdict::scaling::{Figure, Unfitted};
use widthwise_verdict::scaling_summary::Comparison;
use widthwise_verdict::wording::margin;
use widthwise_verdict::Word;

use super::model::Scaling;

/// Whether a variant's output agrees with the baseline's: nothing is concluded from other variants.
pub(crate) fn is_the_same_work(report: &Scaling, variant: &str) -> bool {
    !report.summary.different.iter().any(|(other, _)| other == variant)
}

/// The verdict on the throughput of two cells, and its reason unless it is `lower` or `higher`.
pub(crate) fn judged(report: &Scaling, comparison: &Comparison) -> (Word, Option<String>) {
    if !is_the_same_work(report, &comparison.cell.variant) {
        return (Word::Withheld, Some("the variant's output differs from the baseline's".to_owned()));
    }
    let word = word(report, &comparison.throughput);
    let reason = match (&comparison.throughput, word) {
        (Err(reason), _) => Some(reason.to_string()),
        (_, Word::NoDifference) => {
            Some(format!("the whole interval lies within {}", margin(report.equal_within())))
        }
        (_, Word::Inconclusive) => Some(format!(
            "the interval reaches beyond {} and does not exclude the A/A difference",
            margin(report.equal_within())
        )),
        (_, Word::Withheld) => Some("there are too few rounds for an interval".to_owned()),
        (_, Word::Lower | Word::Higher | Word::NoData) => None,
    };
    (word, reason)
}

/// The word for a ratio: lower or higher where its interval excludes the A/A difference; no difference where
/// it lies inside the margin of equivalence.
pub(crate) fn word(report: &Scaling, ratio: &Result<Figure, Unfitted>) -> Word {
    let figure = match ratio {
        Ok(figure) => figure,
        Err(Unfitted::Withheld(_)) => return Word::Withheld,
        Err(_) => return Word::NoData,
    };
    let Some(ends) = figure.bounds else { return Word::Withheld };
    let floor = report.floor().unwrap_or(0.0);
    let within = report.equal_within();
    if ends.high < 1.0 - floor {
        Word::Lower
    } else if ends.low > 1.0 + floor {
        Word::Higher
    } else if ends.low >= 1.0 / (1.0 + within) && ends.high <= 1.0 + within {
        Word::NoDifference
    } else {
        Word::Inconclusive
    }
}

/// The remark after the figures of a comparison.
pub(crate) fn remark(report: &Scaling, word: Word) -> String {
    match word {
        Word::NoDifference => format!(" (no difference beyond {})", margin(report.equal_within())),
        Word::Inconclusive => " (inconclusive)".to_owned(),
        Word::Withheld => " (withheld: too few rounds for an interval)".to_owned(),
        Word::Lower | Word::Higher | Word::NoData => String::new(),
    }
}
