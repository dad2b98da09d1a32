//! The comparison of two cells' throughputs, in the words of verdicts.

use widthwise_verdict::scaling::{Bounds, Figure, Unfitted};
use widthwise_verdict::wording::margin;
use widthwise_verdict::Word;

use super::StudyReport;

/// The word for a ratio: lower or higher where its interval excludes the A/A difference; no difference where
/// it lies inside the margin of equivalence.
pub(crate) fn word(report: &StudyReport, ratio: &Result<Figure, Unfitted>) -> Word {
    let Ok(figure) = ratio else { return Word::NoData };
    let Some(ends) = figure.bounds else { return Word::Withheld };
    let floor = report.summary.floor.as_ref().and_then(|floor| floor.bounds).map_or(0.0, reach);
    let within = report.equal_within;
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

/// The distance of the farther end of the A/A difference from zero.
fn reach(control: Bounds) -> f64 {
    (control.low - 1.0).abs().max((control.high - 1.0).abs())
}

/// The remark after the figures of a comparison.
pub(crate) fn remark(report: &StudyReport, word: Word) -> String {
    match word {
        Word::NoDifference => format!(" (no difference beyond {})", margin(report.equal_within)),
        Word::Inconclusive => " (inconclusive)".to_owned(),
        Word::Withheld => " (withheld: too few rounds for an interval)".to_owned(),
        Word::Lower | Word::Higher | Word::NoData => String::new(),
    }
}
