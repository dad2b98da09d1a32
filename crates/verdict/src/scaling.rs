//! How throughput grows with the number of processes: speed-ups, scaling laws and their parameters.
//!
//! Rounds are the unit, as in verdicts. Speed-ups are paired log-ratios within rounds. Fits use the levels of all
//! rounds and are repeated in every resample of the rounds (see [`bootstrap`](crate::bootstrap)). With fewer than
//! [`FEWEST_PAIRS`](crate::FEWEST_PAIRS) rounds there are estimates and no intervals. Values that are not above 0 are
//! left out and counted: a round in which processes died does not show their throughput.

mod fit;
mod laws;
mod levels;
mod line;
mod smt;

use std::collections::BTreeMap;
use std::fmt;

use crate::bootstrap::{intervals, reach, Interval, Widening};
use crate::comparison::{log_ratios, FEWEST_PAIRS};
use crate::pairs::Pair;
use crate::rng::Rng;
use crate::starvation::Starved;

pub use laws::{Amdahl, Best, Universal};
pub use line::{marginal_cost, sequential_part, Line};
pub use smt::{smt_yield, SmtRound, SmtYield, Span};

/// One round: the throughput (events or processes in a second) for each number of processes.
pub type Throughputs = BTreeMap<usize, f64>;

/// The parameters of every interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms<'a> {
    /// The confidence of each interval by itself, such as 0.95.
    pub confidence: f64,
    /// The experiment's seed: the same seed and the same rounds give the same intervals, bit for bit.
    pub seed: u64,
    /// What was measured (variant, mode, placement), so that each table has random numbers of its own.
    pub name: &'a str,
}

/// An estimate and, where there are rounds enough, the interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The estimate, in the unit of the values.
    pub estimate: f64,
    /// The ends of the interval; absent with fewer than [`FEWEST_PAIRS`](crate::FEWEST_PAIRS) rounds.
    pub bounds: Option<Bounds>,
    /// How many rounds were used.
    pub rounds: usize,
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Figure {
    fn of(found: Interval, rounds: usize) -> Figure {
        let enough = rounds >= FEWEST_PAIRS as usize;
        let bounds = enough.then_some(Bounds { low: found.low, high: found.high });
        Figure { estimate: found.estimate, bounds, rounds }
    }

    /// Estimate and ends on another scale; `onto` must be monotonically increasing.
    fn map(self, onto: impl Fn(f64) -> f64) -> Figure {
        let bounds = self.bounds.map(|ends| Bounds { low: onto(ends.low), high: onto(ends.high) });
        Figure { estimate: onto(self.estimate), bounds, rounds: self.rounds }
    }

    /// Whether the interval holds a value; None without an interval.
    pub fn holds(&self, value: f64) -> Option<bool> {
        self.bounds.map(|ends| (ends.low..=ends.high).contains(&value))
    }
}

/// Why a figure is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfitted {
    /// No round has a value that can be used.
    Nothing,
    /// The fit needs values at more different places.
    TooFew {
        /// What the places are: "numbers of processes", "numbers of events".
        of: &'static str,
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// No round has both values to compare.
    NoPair,
    /// In no round is the elapsed time longer than the sequential part.
    AllSequential,
    /// In some rounds the elapsed time is not longer than the sequential part: the remaining rounds are not typical.
    SomeSequential,
    /// The values do not determine the parameters.
    Undetermined,
    /// Values exist but must not be compared: other programs used the CPUs.
    Withheld(Starved),
}

impl fmt::Display for Unfitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfitted::Nothing => f.write_str("nothing was measured"),
            Unfitted::TooFew { of, needed, found } => {
                let is = if *found == 1 { "is" } else { "are" };
                write!(f, "{needed} different {of} are needed, and there {is} {found}")
            }
            Unfitted::NoPair => f.write_str("never measured side by side in one round"),
            Unfitted::AllSequential => f.write_str("no run is longer than the sequential part"),
            Unfitted::SomeSequential => f.write_str("not every run is longer than the sequential part"),
            Unfitted::Undetermined => f.write_str("the values do not determine it"),
            Unfitted::Withheld(starved) => starved.fmt(f),
        }
    }
}

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

impl Scaling {
    /// The numbers of processes whose efficiency is beyond doubt above 1. No law here allows that. A usual cause is a
    /// slower smallest number (a cold cache, one slow core).
    pub fn superlinear(&self) -> Vec<usize> {
        let above = |step: &&Step| step.efficiency.is_ok_and(|e| e.bounds.is_some_and(|ends| ends.low > 1.0));
        self.steps.iter().filter(above).map(|step| step.processes).collect()
    }
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

fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The middle of the paired ratios, as a verdict's.
pub(crate) fn ratio(pairs: &[(f64, f64)], terms: Terms, names: &[&str]) -> Result<Figure, Unfitted> {
    let pairs: Vec<Pair> = pairs
        .iter()
        .map(|(variant, baseline)| Pair { variant: *variant, baseline: *baseline, control: None })
        .collect();
    let (Some(first), n) = (pairs.first(), pairs.len()) else { return Err(Unfitted::NoPair) };
    if n == 1 {
        let only = Interval::exact(first.variant / first.baseline);
        return Ok(Figure::of(only, 1));
    }
    let names: Vec<&str> = std::iter::once(terms.name).chain(names.iter().copied()).collect();
    let mut rng = Rng::named(terms.seed, &names);
    let found = log_ratios(&pairs, terms.confidence, &mut rng);
    Ok(Figure::of(found, n).map(f64::exp))
}

/// Several statistics of the same rounds, each with its interval stretched for serial correlation; without an interval
/// where rounds are few.
fn figures<const K: usize>(
    rounds: usize,
    widening: [f64; K],
    terms: Terms,
    name: &str,
    statistics: impl Fn(&[u32]) -> [f64; K],
) -> [Figure; K] {
    let found = if rounds < FEWEST_PAIRS as usize {
        statistics(&vec![1; rounds]).map(Interval::exact)
    } else {
        let reach = reach(rounds, terms.confidence, Widening::Trimmed);
        let mut rng = Rng::named(terms.seed, &[terms.name, name]);
        intervals(rounds, reach, &mut rng, statistics)
    };
    std::array::from_fn(|k| Figure::of(found[k].stretched(widening[k]), rounds))
}

#[cfg(test)]
mod tests;
