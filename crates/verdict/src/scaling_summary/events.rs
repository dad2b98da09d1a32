//! The time of an event: as the program reports it, or the CPU time of a run without its start over its events.

use widthwise_experiment::role::control_of;
use widthwise_experiment::scale::{GroupRun, Mode, Purpose, ReportedEvents, Work};

use super::model::EventSource;
use super::runs::{level, starts, used, SECOND};
use crate::scaling::{Figure, Terms, Unfitted};

/// The time of an event in the runs of a cell, by the first source that has any.
pub(super) fn event(
    timed: &[&GroupRun],
    runs: &[GroupRun],
    work: Work,
    terms: Terms,
    word: &str,
) -> Result<(Figure, EventSource), Unfitted> {
    let by = |source| {
        let values: Vec<f64> = timed.iter().filter_map(|run| event_of(run, source, runs, work)).collect();
        level(&values, terms, &["event", word]).map(|figure| (figure, source))
    };
    by(EventSource::ReportedCpu)
        .or_else(|_| by(EventSource::ReportedElapsed))
        .or_else(|_| by(EventSource::CpuTime))
}

/// The seconds of an event in one run, by one source.
pub(super) fn event_of(run: &GroupRun, source: EventSource, runs: &[GroupRun], work: Work) -> Option<f64> {
    match source {
        EventSource::ReportedCpu => reported(run, |reported| reported.cpu_s),
        EventSource::ReportedElapsed => reported(run, |reported| reported.elapsed_s),
        EventSource::CpuTime => by_cpu_time(run, runs, work),
    }
}

/// The mean over the events that the members reported.
fn reported(run: &GroupRun, of: fn(&ReportedEvents) -> Option<f64>) -> Option<f64> {
    let mut sum = (0.0, 0.0);
    for reported in run.members.iter().filter_map(|member| member.reported.as_ref()) {
        let value = of(reported)?;
        let weight = reported.events.max(1) as f64;
        sum = (sum.0 + weight * value, sum.1 + weight);
    }
    (sum.1 > 0.0).then(|| sum.0 / sum.1)
}

/// Absent where the program's own start would be part of it, and other cells of the table do not have that.
fn by_cpu_time(run: &GroupRun, runs: &[GroupRun], work: Work) -> Option<f64> {
    let used = used(run, work);
    let started = own_start(runs, run);
    let starts = starts(run);
    let done = work.done(run.cell.processes);
    if started.seconds > 0.0 && done > starts * started.events {
        Some((used - starts * started.seconds) / (done - starts * started.events))
    } else {
        let has_start = run.childless && work.events(run.cell.processes).is_some();
        (!has_start).then_some(used / done)
    }
}

/// The CPU time of one start, of a job, of a process with threads, or of one that does the work of a child itself.
#[derive(Default)]
struct Start {
    /// CPU seconds.
    seconds: f64,
    /// How many events are in them: of several that share one event, each has a part of it.
    events: f64,
}

/// CPU time before the first event, by the run with one event in the same round; of children that were forked the parent has done that.
fn own_start(runs: &[GroupRun], like: &GroupRun) -> Start {
    if like.cell.mode == Mode::Fork && !like.childless {
        return Start::default();
    }
    runs.iter()
        .find(|a| {
            a.purpose == Purpose::OneEvent
                && a.round == like.round
                && a.cell.mode == like.cell.mode
                && (a.cell.variant == like.cell.variant || control_of(&a.cell.variant) == like.cell.variant)
                && a.is_sound()
        })
        .map_or(Start::default(), |a| Start {
            seconds: a.cpu_ns as f64 / SECOND / starts(a),
            events: a.events.unwrap_or(1) as f64 / starts(a),
        })
}
