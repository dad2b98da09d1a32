//! The yield of the second thread of each core.

use std::collections::BTreeSet;

use widthwise_experiment::scale::{Cell, GroupRun, Purpose};

use super::events::event_of;
use super::model::{EventSource, Question, Row, Table};
use super::runs::{constant, failed, sound, unless, used, withheld, SECOND};
use crate::scaling::{smt_yield, SmtRound, SmtYield, Span, Terms};

/// Pairs of cells of which one has a process on each of some cores, and the other one on each of their threads.
pub(super) fn smt(question: Question, runs: &[GroupRun], tables: &[Table]) -> Vec<(Cell, Cell, SmtYield)> {
    let mut all = Vec::new();
    for table in tables {
        for one in &table.rows {
            for two in table.rows.iter().filter(|two| is_pair(question, one, two)) {
                let cell = |processes| Cell {
                    variant: table.variant.clone(),
                    mode: table.mode,
                    placement: table.placement.clone(),
                    processes,
                };
                let (first, second) = (cell(one.processes), cell(two.processes));
                // As the column of the table has it, and from one source in both.
                let source = one.event.as_ref().map_or(EventSource::CpuTime, |(_, source)| *source);
                let found = yield_of(question, runs, table, source, (&first, &second));
                all.push((first, second, found));
            }
        }
    }
    all
}

/// Whether `one` has a process on each of the cores of which `two` has one on each thread.
fn is_pair(question: Question, one: &Row, two: &Row) -> bool {
    let core_of = |cpu: u32| question.cores.iter().position(|core| core.contains(&cpu));
    let used = |cpus: &[u32]| -> BTreeSet<Option<usize>> { cpus.iter().map(|cpu| core_of(*cpu)).collect() };
    let cores = used(&one.cpus);
    let distinct = two.cpus.iter().collect::<BTreeSet<_>>().len();
    two.processes > one.processes
        && cores == used(&two.cpus)
        && cores.len() == one.processes
        && distinct == two.processes
}

fn yield_of(
    question: Question,
    runs: &[GroupRun],
    table: &Table,
    source: EventSource,
    (first, second): (&Cell, &Cell),
) -> SmtYield {
    let sequential = table.sequential.known();
    let span = |cell: &Cell, round: u32| {
        // For the same work by each process, the same time of twice as many is twice the work.
        let sharers = if table.work.is_shared() { 1.0 } else { cell.processes as f64 };
        sound(runs, cell, Purpose::Timed).find(|a| a.round == round).map(|run| Span {
            event: event_of(run, source, runs, table.work),
            elapsed: Some(run.elapsed_ns as f64 / SECOND / sharers),
            sequential: sequential.ok().map(|sequential| sequential / sharers),
        })
    };
    let rounds: BTreeSet<u32> = runs.iter().map(|run| run.round).collect();
    let rounds: Vec<SmtRound> = rounds
        .into_iter()
        .filter_map(|round| Some(SmtRound { cores: span(first, round)?, cpus: span(second, round)? }))
        .collect();
    let name = format!("{first} {second}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let mut found = smt_yield(&rounds, first.processes, second.processes, terms);
    let withheld = withheld(question, runs, first).or_else(|| withheld(question, runs, second));
    // CPU time does not include waiting for a CPU; elapsed time does.
    let failed = failed(runs, first).or_else(|| failed(runs, second));
    let of_event = match source {
        EventSource::ReportedElapsed => withheld,
        EventSource::ReportedCpu => failed,
        EventSource::CpuTime => failed.or_else(|| constant(question, runs, first, used)),
    };
    found.by_event = unless(of_event, found.by_event);
    found.by_elapsed = unless(withheld, found.by_elapsed);
    found.by_elapsed_less_sequential = unless(withheld, sequential.and(found.by_elapsed_less_sequential));
    found
}
