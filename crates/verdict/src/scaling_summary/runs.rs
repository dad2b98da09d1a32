//! The runs that a figure uses, and the work and CPU time of one run.

use widthwise_experiment::scale::{Cell, GroupRun, Memory, Mode, Moment, Purpose, Work};

use super::model::Question;
use crate::scaling::{ratio, Cause, Figure, Terms, Unfitted};
use crate::starvation::Waiting;

/// Nanoseconds per second.
pub(super) const SECOND: f64 = 1e9;

/// Sound runs of a cell for a purpose.
pub(super) fn sound<'a>(
    runs: &'a [GroupRun],
    cell: &'a Cell,
    purpose: Purpose,
) -> impl Iterator<Item = &'a GroupRun> {
    runs.iter().filter(move |a| a.purpose == purpose && a.cell == *cell && a.is_sound() && a.elapsed_ns > 0)
}

/// The tasks' waiting for CPUs in a cell's runs for these purposes.
pub(super) fn waiting(runs: &[GroupRun], cell: &Cell, purposes: &[Purpose]) -> Option<Waiting> {
    Waiting::of(purposes.iter().flat_map(|purpose| sound(runs, cell, *purpose)))
}

/// Why the speed of a cell is withheld, if it is.
pub(super) fn withheld(question: Question, runs: &[GroupRun], cell: &Cell) -> Option<Cause> {
    failed(runs, cell)
        .or_else(|| starved(runs, cell, Purpose::Timed))
        .or_else(|| constant(question, runs, cell, |run, _| run.elapsed_ns as f64))
}

/// Whether an amount of time that a variant's runs in a mode need is the same for all events as for one, in the cell that has such
/// runs: a number of events a second, or the time of an event, then says nothing.
pub(super) fn constant(
    question: Question,
    runs: &[GroupRun],
    cell: &Cell,
    of: fn(&GroupRun, Work) -> f64,
) -> Option<Cause> {
    /// A program that needs this much more for all events depends on them, however wide the interval is.
    const CLEARLY_MORE: f64 = 1.05;
    /// Reading and writing a larger number may take this much more.
    const AS_LONG: f64 = 1.01;
    let smallest = smallest_cell(question, &cell.variant, cell.mode)?;
    if withheld_start(runs, &smallest).is_some() {
        return None;
    }
    let work = question.plan.work(cell.mode);
    let all: Vec<&GroupRun> = sound(runs, &smallest, Purpose::Timed).collect();
    let pairs: Vec<(f64, f64)> = sound(runs, &smallest, Purpose::OneEvent)
        .filter_map(|one| {
            let whole = all.iter().find(|whole| whole.round == one.round)?;
            let has_more = whole.events? >= 2 * one.events?;
            Some((of(whole, work), of(one, work)))
                .filter(|(whole, one)| has_more && *whole > 0.0 && *one > 0.0)
        })
        .collect();
    let name = format!("{smallest} all events");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let figure = ratio(&pairs, terms, &["beside one"]).ok()?;
    let low = figure.bounds.map_or(figure.estimate, |ends| ends.low);
    (low <= AS_LONG && figure.estimate < CLEARLY_MORE).then_some(Cause::Constant)
}

/// The failures among the timed runs of a cell, if there are any.
pub(super) fn failed(runs: &[GroupRun], cell: &Cell) -> Option<Cause> {
    let timed = || runs.iter().filter(|run| run.purpose == Purpose::Timed && run.cell == *cell);
    let failed = timed().filter(|run| !run.is_sound()).count();
    (failed > 0).then(|| Cause::Failed { processes: cell.processes, failed, runs: timed().count() })
}

fn starved(runs: &[GroupRun], cell: &Cell, purpose: Purpose) -> Option<Cause> {
    waiting(runs, cell, &[purpose])?.starved(cell.processes).map(Cause::Starved)
}

pub(super) fn level(values: &[f64], terms: Terms, names: &[&str]) -> Result<Figure, Unfitted> {
    let values: Vec<(f64, f64)> =
        values.iter().filter(|value| value.is_finite() && **value > 0.0).map(|value| (*value, 1.0)).collect();
    ratio(&values, terms, names).map_err(|_| Unfitted::Nothing)
}

/// A figure, unless it must not be compared.
pub(super) fn unless<T>(cause: Option<Cause>, figure: Result<T, Unfitted>) -> Result<T, Unfitted> {
    match (cause, &figure) {
        (Some(cause), Ok(_)) => Err(Unfitted::Withheld(cause)),
        _ => figure,
    }
}

pub(super) fn highest(memory: Option<&Memory>) -> Option<&Moment> {
    let memory = memory?;
    memory.moments.get(memory.highest?)
}

/// How many programs of a run start independently.
pub(super) fn starts(run: &GroupRun) -> f64 {
    if run.cell.mode == Mode::Jobs {
        run.members.len().max(1) as f64
    } else {
        1.0
    }
}

/// CPU seconds of what was asked for: of runs everything that was started; of events what the children have used, without
/// the process that forks them, and what a process with threads has used in all of them, those that had ended too. A program that
/// forks none has used everything itself, as a job has.
pub(super) fn used(run: &GroupRun, work: Work) -> f64 {
    let ns = match (run.cell.mode, work) {
        (Mode::Fork, _) if run.childless => run.cpu_ns,
        (Mode::Jobs | Mode::Threads, _) | (_, Work::OnceUnknown | Work::EachUnknown) => run.cpu_ns,
        _ => match (run.parent_cpu_ns, run.before_fork) {
            (Some(parent), _) => run.cpu_ns.saturating_sub(parent),
            // Includes the parent's later CPU time, which is small where children do the work.
            (None, Some(fork)) if run.members.iter().any(|member| !member.exact) => {
                run.cpu_ns.saturating_sub(fork.cpu_ns)
            }
            _ => run.members.iter().map(|member| member.cpu_ns).sum(),
        },
    };
    ns as f64 / SECOND
}

/// The cell in which the sequential part is estimated.
pub(super) fn smallest_cell(question: Question, variant: &str, mode: Mode) -> Option<Cell> {
    let (placement, _) = question.placements.first()?;
    let processes = question.plan.counts.first().copied().unwrap_or(1);
    Some(Cell { variant: variant.to_owned(), mode, placement: placement.clone(), processes })
}

/// Why the sequential part is withheld, if it is.
pub(super) fn withheld_start(runs: &[GroupRun], smallest: &Cell) -> Option<Cause> {
    let purposes = [Purpose::Timed, Purpose::OneEvent, Purpose::HalfOfEvents];
    failed(runs, smallest).or_else(|| purposes.iter().find_map(|purpose| starved(runs, smallest, *purpose)))
}
