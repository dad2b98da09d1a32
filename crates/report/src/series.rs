//! The samples of one metric, by variant and in chronological order: the data of the charts.

use std::collections::HashMap;

use widthwise_experiment::outcome::{Ending, RoundKind, Run};
use widthwise_experiment::Metric;

use crate::comparison::Comparison;
use crate::order;

/// One reading and its place in the campaign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Index of its round in the campaign's list of rounds.
    pub round: usize,
    /// The kind of its round.
    pub kind: RoundKind,
    /// Its position in the round's order, from 0.
    pub position: u32,
    /// In the metric's unit; finite.
    pub value: f64,
}

/// One variant's readings of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The variant, or the A/A control.
    pub variant: String,
    /// Readings of runs that ended well, in chronological order.
    pub points: Vec<Point>,
}

impl Series {
    /// The values that verdicts use, ascending.
    pub fn timed(&self) -> Vec<f64> {
        let timed = self.points.iter().filter(|point| point.kind.counts());
        let mut values: Vec<f64> = timed.map(|point| point.value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// One series for each participant, in the order of the tables.
pub fn of(comparison: &Comparison, metric: Metric) -> Vec<Series> {
    let places: HashMap<u32, usize> =
        comparison.campaign.rounds.iter().enumerate().map(|(place, round)| (round.number, place)).collect();
    let mut ordered: Vec<&Run> =
        comparison.runs.iter().filter(|run| matches!(run.ending, Ending::Done)).collect();
    ordered.sort_by_key(|run| (run.round, run.position));
    let mut series: Vec<Series> = order::participants(comparison)
        .into_iter()
        .map(|variant| Series { variant, points: Vec::new() })
        .collect();
    for run in ordered {
        let Some(own) = series.iter_mut().find(|series| series.variant == run.variant) else { continue };
        let Some(&round) = places.get(&run.round) else { continue };
        let Some(reading) = run.sample.get(metric.name).filter(|reading| reading.value.is_finite()) else {
            continue;
        };
        let kind = comparison.campaign.rounds[round].kind;
        own.points.push(Point { round, kind, position: run.position, value: reading.value });
    }
    series
}
