//! An estimate with its interval, or the reason why it is absent.

use std::fmt;

use crate::bootstrap::{intervals, reach, Interval, Widening};
use crate::comparison::{log_ratios, FEWEST_PAIRS};
use crate::pairs::Pair;
use crate::rng::Rng;
use crate::starvation::Starved;

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
    pub(super) fn map(self, onto: impl Fn(f64) -> f64) -> Figure {
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
    /// Values exist but must not be compared.
    Withheld(Cause),
}

/// Why the values of a cell must not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Other programs used its CPUs.
    Starved(Starved),
    /// Timed runs of it failed: those may be the slow ones.
    Failed {
        /// Its number of processes.
        processes: usize,
        /// How many failed.
        failed: usize,
        /// Of how many.
        runs: usize,
    },
    /// All events take as long as one.
    Constant,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Starved(starved) => starved.fmt(f),
            Cause::Failed { processes, failed, runs } => {
                let s = if *runs == 1 { "" } else { "s" };
                write!(f, "with {processes}, {failed} of {runs} run{s} failed")
            }
            Cause::Constant => {
                f.write_str("all events take as long as one: the time does not depend on them")
            }
        }
    }
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
            Unfitted::Withheld(cause) => cause.fmt(f),
        }
    }
}

pub(super) fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The middle of the paired ratios, as a verdict's.
pub(crate) fn ratio(pairs: &[(f64, f64)], terms: Terms, names: &[&str]) -> Result<Figure, Unfitted> {
    let pairs: Vec<Pair> = pairs
        .iter()
        .map(|(variant, baseline)| Pair {
            variant: *variant,
            baseline: *baseline,
            control: None,
            layout: None,
        })
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
pub(super) fn figures<const K: usize>(
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
