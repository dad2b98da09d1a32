//! The comparison of two cells' throughputs, in the words of verdicts.

use widthwise_experiment::scale::Cell;
use widthwise_verdict::scaling::{Cause, Figure, Unfitted};
use widthwise_verdict::scaling_summary::{Comparison, Table};
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
    if !is_the_same_work(report, &comparison.baseline.variant) {
        return (Word::Withheld, Some("the baseline's output changes from run to run".to_owned()));
    }
    let word = word(report, &comparison.throughput);
    let reason = match (&comparison.throughput, word) {
        (Err(reason), _) => Some(match failure(report, comparison) {
            Some(failure) => format!("{reason}: {failure}"),
            None => reason.to_string(),
        }),
        (_, Word::NoDifference) => {
            Some(format!("the whole interval lies within {}", margin(report.equal_within())))
        }
        (_, Word::Inconclusive) => Some(format!(
            "the interval reaches beyond {} and does not exclude the A/A difference",
            margin(report.equal_within())
        )),
        (Ok(figure), Word::Withheld) => Some(undecided(report, figure)),
        (_, Word::Lower | Word::Higher | Word::NoData) => None,
    };
    (word, reason)
}

/// The failure that withholds a comparison, in either of its cells.
fn failure<'a>(report: &'a Scaling, comparison: &Comparison) -> Option<&'a str> {
    let Err(Unfitted::Withheld(Cause::Failed { processes, .. })) = comparison.throughput else { return None };
    let of = |cell: &Cell| {
        let is_own = |table: &&Table| {
            table.variant == cell.variant && table.mode == cell.mode && table.placement == cell.placement
        };
        let rows = &report.summary.tables.iter().find(is_own)?.rows;
        rows.iter().find(|row| row.processes == processes)?.failure.as_deref()
    };
    of(&comparison.cell).or_else(|| of(&comparison.baseline))
}

/// Why there is no word for a ratio.
fn undecided(report: &Scaling, figure: &Figure) -> String {
    const TOO_FEW: &str = "too few rounds for an interval";
    match (figure.bounds, &report.summary.floor) {
        (None, _) => format!("there are {TOO_FEW}"),
        _ if report.is_control_different() => {
            "there is no floor, because of the A/A pair: its output differs".to_owned()
        }
        (_, Ok(_)) => format!("there is no floor, because of the A/A pair: {TOO_FEW}"),
        (_, Err(reason)) => format!("there is no floor, because of the A/A pair: {reason}"),
    }
}

/// The word for a ratio: lower or higher where its interval excludes the A/A difference; no difference where
/// it lies inside the margin of equivalence. Without an A/A interval there is none.
pub(crate) fn word(report: &Scaling, ratio: &Result<Figure, Unfitted>) -> Word {
    let figure = match ratio {
        Ok(figure) => figure,
        Err(Unfitted::Withheld(_)) => return Word::Withheld,
        Err(_) => return Word::NoData,
    };
    let Some(ends) = figure.bounds else { return Word::Withheld };
    let Some(floor) = report.floor() else { return Word::Withheld };
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
pub(crate) fn remark(report: &Scaling, figure: &Figure, word: Word) -> String {
    match word {
        Word::NoDifference => format!(" (no difference beyond {})", margin(report.equal_within())),
        Word::Inconclusive => " (inconclusive)".to_owned(),
        Word::Withheld => format!(" (withheld: {})", undecided(report, figure)),
        Word::Lower | Word::Higher | Word::NoData => String::new(),
    }
}
