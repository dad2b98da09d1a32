//! Straight lines: elapsed time over events, and memory over processes.
//!
//! The level of each place is the adaptive trimmed mean over the rounds, and the line goes through the levels by least
//! squares. Theil and Sen's median of slopes is the usual robust line, but it needs many places with one value each. A
//! campaign has two to five places, which give few different slopes. Outliers come from rounds, so the level of each place
//! removes them.

use std::collections::BTreeMap;

use super::figure::{figures, usable, Figure, Terms, Unfitted};
use super::fit::fit;
use super::levels::Levels;

/// A straight line through levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Its height at 0: the sequential part in seconds, or the memory of no process.
    pub intercept: Figure,
    /// What one more adds: the time of an event, the memory of a process.
    pub slope: Figure,
    /// The root mean square distance of the levels from it: relative to each level for times, in bytes for memory.
    pub residual: f64,
    /// How many different places it goes through; with two the residual is meaningless.
    pub places: usize,
}

/// The sequential part (intercept, seconds) and the time of an event (slope, seconds) from runs with different numbers of
/// events; each round gives the elapsed seconds for each number of events.
///
/// Neither can be negative. Distances count in proportion to the time, as its noise does, and what a whole round has in
/// common is taken off, so that a slow round of long runs is not taken for slow events.
pub fn sequential_part(rounds: &[BTreeMap<u64, f64>], terms: Terms) -> Result<Line, Unfitted> {
    let logs: Vec<Vec<(u64, f64)>> = rounds
        .iter()
        .map(|round| round.iter().filter(|run| usable(*run.1)).map(|(n, value)| (*n, value.ln())).collect())
        .collect();
    let levels = places(&logs, "numbers of events")?;
    let rows: Vec<[f64; 2]> = levels.keys.iter().map(|n| [1.0, *n as f64]).collect();
    let found = |counts: &[u32]| fit(&rows, &levels.at(counts));
    let whole = found(&vec![1; levels.rounds]).ok_or(Unfitted::Undetermined)?;
    let (steps, all) = levels.widening;
    let [intercept, slope] =
        figures(levels.rounds, [steps.max(all); 2], terms, "sequential part", |counts| {
            found(counts).unwrap_or(whole).coefficients
        })
        .map(|figure| figure.map(|value| value.max(0.0)));
    let residual = (whole.squares / rows.len() as f64).sqrt();
    Ok(Line { intercept, slope, residual, places: rows.len() })
}

/// The memory of one more process (slope) and of none (intercept), in the unit given; each round gives the total for
/// each number of processes.
///
/// Ordinary least squares: the noise of a total is what the rest of the system allocates, the same for few processes as
/// for many. The intercept may be negative, where later processes cost more than the first.
pub fn marginal_cost(rounds: &[BTreeMap<usize, f64>], terms: Terms) -> Result<Line, Unfitted> {
    let totals: Vec<Vec<(u64, f64)>> = rounds
        .iter()
        .map(|round| {
            let finite = round.iter().filter(|total| total.1.is_finite() && *total.1 >= 0.0);
            finite.map(|(n, value)| (*n as u64, *value)).collect()
        })
        .collect();
    let levels = places(&totals, "numbers of processes")?;
    let line = |counts: &[u32]| ordinary(&levels.keys, &levels.at(counts));
    let (steps, all) = levels.widening;
    let [intercept, slope] = figures(levels.rounds, [steps.max(all), steps], terms, "marginal cost", line);
    let at = levels.at(&vec![1; levels.rounds]);
    let squares: f64 = levels
        .keys
        .iter()
        .zip(&at)
        .map(|(n, total)| (total - intercept.estimate - slope.estimate * *n as f64).powi(2))
        .sum();
    Ok(Line { intercept, slope, residual: (squares / at.len() as f64).sqrt(), places: at.len() })
}

fn places(rounds: &[Vec<(u64, f64)>], of: &'static str) -> Result<Levels, Unfitted> {
    let levels = Levels::of(rounds);
    match levels.keys.len() {
        0 => Err(Unfitted::Nothing),
        1 => Err(Unfitted::TooFew { of, needed: 2, found: 1 }),
        _ => Ok(levels),
    }
}

/// Intercept and slope by ordinary least squares, about the means.
fn ordinary(keys: &[u64], levels: &[f64]) -> [f64; 2] {
    let n = keys.len() as f64;
    let middle = keys.iter().map(|key| *key as f64).sum::<f64>() / n;
    let height = levels.iter().sum::<f64>() / n;
    let (mut products, mut squares) = (0.0, 0.0);
    for (key, level) in keys.iter().zip(levels) {
        let distance = *key as f64 - middle;
        products += distance * (level - height);
        squares += distance * distance;
    }
    let slope = products / squares;
    [height - slope * middle, slope]
}
