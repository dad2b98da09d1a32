//! One row per run and metric: the raw numbers, for further computation.

use std::io::Write;

use widthwise_experiment::outcome::{Ending, Round, Run};
use widthwise_experiment::{metric, Metric};

use crate::comparison::Comparison;
use crate::order;

/// The header row. `docs/csv.md` describes each column.
pub const HEAD: [&str; 17] = [
    "campaign", "variant", "round", "kind", "layout", "position", "began_ns", "cpu", "metric", "unit",
    "value", "upper", "source", "coverage", "ending", "status", "reason",
];

/// Writes every reading of every run. A run without a reading has one row without a metric, and so has a
/// variant without a run: nothing is left out.
pub fn write(comparison: &Comparison, out: impl Write) -> Result<(), ::csv::Error> {
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(HEAD)?;
    for run in comparison.runs {
        let round = comparison.campaign.rounds.iter().find(|round| round.number == run.round);
        let readings = readings(comparison, run);
        if readings.is_empty() {
            table.write_record(row(comparison, &run.variant, Some((run, round)), None))?;
        }
        for metric in readings {
            table.write_record(row(comparison, &run.variant, Some((run, round)), Some(metric)))?;
        }
    }
    for variant in order::participants(comparison) {
        if !comparison.runs.iter().any(|run| run.variant == variant) {
            table.write_record(row(comparison, &variant, None, None))?;
        }
    }
    table.flush()?;
    Ok(())
}

/// The metrics a run has readings of: the experiment's first, in their order, then any other.
fn readings(comparison: &Comparison, run: &Run) -> Vec<Metric> {
    let asked = &comparison.campaign.experiment.metrics;
    let others = run.sample.keys().filter_map(|name| metric::find(name)).filter(|m| !asked.contains(m));
    asked.iter().copied().filter(|metric| run.sample.contains_key(metric.name)).chain(others).collect()
}

fn row(
    comparison: &Comparison,
    variant: &str,
    run: Option<(&Run, Option<&Round>)>,
    metric: Option<Metric>,
) -> [String; 17] {
    let of_run = |say: fn(&Run) -> String| run.map_or(String::new(), |(run, _)| say(run));
    let round = run.and_then(|(_, round)| round);
    let reading = run.zip(metric).and_then(|((run, _), metric)| run.sample.get(metric.name));
    let (status, reason) = status(comparison, variant);
    let failure = run.and_then(|(run, _)| failure(&run.ending)).map(str::to_owned);
    [
        comparison.campaign.folder.clone(),
        variant.to_owned(),
        of_run(|run| run.round.to_string()),
        round.map_or(String::new(), |round| round.kind.name().to_owned()),
        round.and_then(|round| round.layout).map_or(String::new(), |layout| layout.to_string()),
        of_run(|run| run.position.to_string()),
        of_run(|run| run.began_ns.to_string()),
        round.and_then(|round| round.cpu).map_or(String::new(), |cpu| cpu.to_string()),
        metric.map_or(String::new(), |metric| metric.name.to_owned()),
        metric.map_or(String::new(), |metric| metric.unit.name().to_owned()),
        reading.map_or(String::new(), |reading| reading.value.to_string()),
        reading.and_then(|reading| reading.upper).map_or(String::new(), |upper| upper.to_string()),
        reading.map_or(String::new(), |reading| reading.source.name().to_owned()),
        reading.map_or(String::new(), |reading| reading.coverage.to_string()),
        of_run(|run| ending(&run.ending)),
        status.to_owned(),
        failure.or(reason).unwrap_or_default(),
    ]
}

/// How a run ended, in one word and a number.
pub(crate) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Exit { status } => format!("exit {status}"),
        Ending::Signal { signal } => format!("signal {signal}"),
        _ => ending.name().to_owned(),
    }
}

fn failure(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::SpawnFailed { reason } | Ending::HookFailed { reason } => Some(reason),
        _ => None,
    }
}

/// The name of a variant's status, and its reason.
pub(crate) fn status(comparison: &Comparison, variant: &str) -> (&'static str, Option<String>) {
    let status = comparison.campaign.status(variant);
    (status.name(), status.reason().map(str::to_owned))
}
