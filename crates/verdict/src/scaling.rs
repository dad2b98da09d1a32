//! How throughput grows with the number of processes: speed-ups, scaling laws and their parameters.
//!
//! Rounds are the unit, as in verdicts. Speed-ups are paired log-ratios within rounds. Fits use the levels of all
//! rounds and are repeated in every resample of the rounds (see [`bootstrap`](crate::bootstrap)). With fewer than
//! [`FEWEST_PAIRS`](crate::FEWEST_PAIRS) rounds there are estimates and no intervals. Values that are not above 0 are
//! left out and counted: a round in which processes died does not show their throughput.

mod figure;
mod fit;
mod laws;
mod levels;
mod line;
mod smt;

use std::collections::BTreeMap;

pub(crate) use figure::ratio;
use figure::usable;

pub use figure::{Bounds, Cause, Figure, Terms, Unfitted};
pub use laws::{Amdahl, Best, Universal};
pub use line::{marginal_cost, sequential_part, Line};
pub use smt::{smt_yield, SmtRound, SmtYield, Span};

/// One round: the throughput (events or processes in a second) for each number of processes.
pub type Throughputs = BTreeMap<usize, f64>;

/// The figures of one number of processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// How many processes.
    pub processes: usize,
    /// Throughput, in the unit it was given in.
    pub throughput: Result<Figure, Unfitted>,
    /// Throughput over that of the smallest number, within rounds.
    pub speed_up: Result<Figure, Unfitted>,
    /// The speed-up divided by the relative number of processes: 1 is perfect.
    pub efficiency: Result<Figure, Unfitted>,
    /// Values that were left out: not above 0, or no number.
    pub left_out: usize,
}

/// How throughput grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Every number of processes, ascending.
    pub steps: Vec<Step>,
    /// Amdahl's law.
    pub amdahl: Result<Amdahl, Unfitted>,
    /// Gunther's universal scalability law.
    pub universal: Result<Universal, Unfitted>,
}

/// Speed-ups and fits of one variant in one mode and placement. Only numbers of processes up to `cpus` enter the fits:
/// beyond, processes share CPUs in time slices, which no scaling law covers.
pub fn scaling(rounds: &[Throughputs], cpus: usize, terms: Terms) -> Scaling {
    let mut all: Vec<usize> = rounds.iter().flat_map(|round| round.keys().copied()).collect();
    all.retain(|processes| *processes > 0);
    all.sort_unstable();
    all.dedup();
    let value =
        |round: &Throughputs, processes: usize| round.get(&processes).copied().filter(|value| usable(*value));
    let smallest = all.iter().copied().find(|n| rounds.iter().any(|round| value(round, *n).is_some()));
    let steps = all
        .iter()
        .map(|&processes| {
            let here = |round: &Throughputs| value(round, processes);
            let paired = |round: &Throughputs| Some((here(round)?, value(round, smallest?)?));
            let name = processes.to_string();
            let read = rounds.iter().filter(|round| round.contains_key(&processes)).count();
            let values: Vec<(f64, f64)> = rounds.iter().filter_map(here).map(|value| (value, 1.0)).collect();
            let pairs: Vec<(f64, f64)> = rounds.iter().filter_map(paired).collect();
            let speed_up = ratio(&pairs, terms, &["speed-up", &name]);
            let perfect = processes as f64 / smallest.unwrap_or(1) as f64;
            Step {
                processes,
                throughput: ratio(&values, terms, &["throughput", &name]).map_err(|_| Unfitted::Nothing),
                speed_up,
                efficiency: speed_up.map(|figure| figure.map(|speed_up| speed_up / perfect)),
                left_out: read - values.len(),
            }
        })
        .collect();
    let fitted: Vec<Vec<(u64, f64)>> = rounds
        .iter()
        .map(|round| {
            let within = round.iter().filter(|(n, value)| **n > 0 && **n <= cpus && usable(**value));
            within.map(|(n, value)| (*n as u64, value.ln())).collect()
        })
        .collect();
    Scaling { steps, amdahl: laws::amdahl(&fitted, terms), universal: laws::universal(&fitted, terms) }
}

#[cfg(test)]
mod tests;
