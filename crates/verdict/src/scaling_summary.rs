//! The summary of a scaling campaign: group runs in, tables out.
//!
//! Rounds are the unit, as in [`scaling`](crate::scaling): compared values were measured in the same round, and
//! intervals come from resampling rounds.

mod events;
mod model;
mod runs;
mod smt;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::role::control_of;
use widthwise_experiment::scale::{Cell, GroupRun, Moment, Purpose};

use crate::scaling::{ratio, Figure, Terms, Unfitted};
use runs::{failed, highest, sound, unless, withheld, SECOND};
use smt::smt;
use table::table;

pub use model::{Capacity, Comparison, EventSource, Question, Row, RowMemory, Sequential, Summary, Table};

/// Sums up.
pub fn summarise(question: Question, runs: &[GroupRun]) -> Summary {
    let plan = question.plan;
    let mut tables = Vec::new();
    for &mode in &plan.modes {
        for variant in question.variants {
            for (placement, cpus) in question.placements {
                tables.push(table(question, runs, variant, mode, placement, cpus));
            }
        }
    }
    let name = question.variants.first().map(|baseline| control_of(baseline));
    let control = name.and_then(|name| runs.iter().find(|run| run.cell.variant == name));
    let floor = control.ok_or(Unfitted::Nothing).and_then(|control| {
        let own = Cell { variant: question.variants[0].clone(), ..control.cell.clone() };
        let failed = failed(runs, &control.cell).or_else(|| failed(runs, &own));
        // A noisy machine makes it wide, as intended.
        unless(failed, rates(question, runs, &control.cell, &own))
    });
    let timed: BTreeSet<u32> =
        runs.iter().filter(|a| a.purpose == Purpose::Timed).map(|run| run.round).collect();
    Summary {
        comparisons: comparisons(question, runs, &tables),
        smt: smt(question, runs, &tables),
        capacity: tables
            .iter()
            .filter(|table| Some(&table.placement) == question.placements.first().map(|(name, _)| name))
            .filter_map(|one| capacity(question, one, &tables))
            .collect(),
        different: different(question, runs),
        floor,
        rounds: timed.len(),
        runs: runs.len(),
        tables,
    }
}

/// The throughput of one cell over another's, within rounds, where no timed run of either failed and both had their CPUs.
fn throughput_ratio(
    question: Question,
    runs: &[GroupRun],
    cell: &Cell,
    other: &Cell,
) -> Result<Figure, Unfitted> {
    let withheld = withheld(question, runs, cell).or_else(|| withheld(question, runs, other));
    unless(withheld, rates(question, runs, cell, other))
}

/// As above, without the checks.
fn rates(question: Question, runs: &[GroupRun], cell: &Cell, other: &Cell) -> Result<Figure, Unfitted> {
    let name = format!("{cell} beside {other}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let rate = |cell: &Cell| -> BTreeMap<u32, f64> {
        let done = question.plan.work(cell.mode).done(cell.processes);
        sound(runs, cell, Purpose::Timed).map(|a| (a.round, done / (a.elapsed_ns as f64 / SECOND))).collect()
    };
    let pairs: Vec<(f64, f64)> = within_rounds(&rate(cell), &rate(other)).collect();
    ratio(&pairs, terms, &["throughput"])
}

/// What two cells have in the same rounds.
fn within_rounds<'a, T: Copy>(
    own: &'a BTreeMap<u32, T>,
    theirs: &'a BTreeMap<u32, T>,
) -> impl Iterator<Item = (T, T)> + 'a {
    own.iter().filter_map(|(round, value)| Some((*value, *theirs.get(round)?)))
}

/// The moment of most memory in each memory round of a cell.
fn moments<'a>(runs: &'a [GroupRun], cell: &'a Cell) -> BTreeMap<u32, &'a Moment> {
    let sound = sound(runs, cell, Purpose::Memory);
    sound.filter_map(|run| Some((run.round, highest(run.memory.as_ref())?))).collect()
}

/// The memory of one cell over another's, within memory rounds: of the process tree. Campaigns recorded without it have PSS, which divides
/// the pages of a file among all processes of the machine that map it: more map the libraries of one ABI than those of another, so that
/// it compares a variant with itself alone.
fn memory_ratio(question: Question, runs: &[GroupRun], cell: &Cell, other: &Cell) -> Option<Figure> {
    let name = format!("{cell} beside {other}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let (own, theirs) = (moments(runs, cell), moments(runs, other));
    let has_trees = own.values().chain(theirs.values()).all(|moment| moment.tree.is_some());
    if !has_trees && cell.variant != other.variant {
        return None;
    }
    let memory = |moment: &Moment| moment.tree.filter(|_| has_trees).unwrap_or(moment.pss) as f64;
    let pairs: Vec<(f64, f64)> = within_rounds(&own, &theirs)
        .map(|(own, theirs)| (memory(own), memory(theirs)))
        .filter(|(own, theirs)| *own > 0.0 && *theirs > 0.0)
        .collect();
    ratio(&pairs, terms, &["memory"]).ok()
}

fn comparisons(question: Question, runs: &[GroupRun], tables: &[Table]) -> Vec<Comparison> {
    let plan = question.plan;
    let mut all = Vec::new();
    for table in tables {
        for row in &table.rows {
            let cell = Cell {
                variant: table.variant.clone(),
                mode: table.mode,
                placement: table.placement.clone(),
                processes: row.processes,
            };
            let mut others = Vec::new();
            if Some(&table.variant) != question.variants.first() {
                others.push(Cell { variant: question.variants[0].clone(), ..cell.clone() });
            }
            // An unknown amount of work cannot be compared between modes.
            let same_work = plan.modes.first().is_some_and(|first| plan.work(*first) == table.work);
            if plan.modes.first().is_some_and(|first| *first != table.mode) && same_work {
                others.push(Cell { mode: plan.modes[0], ..cell.clone() });
            }
            if question.placements.first().is_some_and(|(first, _)| *first != table.placement) {
                others.push(Cell { placement: question.placements[0].0.clone(), ..cell.clone() });
            }
            for other in others {
                let throughput = throughput_ratio(question, runs, &cell, &other);
                let memory = memory_ratio(question, runs, &cell, &other);
                let is_withheld = matches!(throughput, Err(Unfitted::Withheld(_)));
                if throughput.is_ok() || is_withheld || memory.is_some() {
                    all.push(Comparison { cell: cell.clone(), baseline: other, throughput, memory });
                }
            }
        }
    }
    all
}

fn capacity(question: Question, table: &Table, tables: &[Table]) -> Option<Capacity> {
    let line = table.marginal.as_ref().ok()?;
    let (each, fixed) = (table.one_more()?, line.intercept.estimate.max(0.0));
    if each <= 0.0 {
        return None;
    }
    let limit = question.plan.memory_limit as f64;
    let fits = |fixed: f64, each: f64| ((limit - fixed.max(0.0)) / each).max(0.0).floor() as u64;
    let fit = fits(fixed, each);
    let ends = line
        .slope
        .bounds
        .zip(line.intercept.bounds)
        .filter(|(each, _)| each.low > 0.0 && !table.is_line_too_low());
    let bounds = ends.map(|(each, fixed)| (fits(fixed.high, each.high), fits(fixed.low, each.low)));
    let best = tables
        .iter()
        .filter(|other| other.variant == table.variant && other.mode == table.mode)
        .flat_map(|other| other.rows.iter().map(move |row| (&other.placement, row)))
        .filter(|(_, row)| row.processes as u64 <= fit && row.failure.is_none())
        .filter_map(|(placement, row)| {
            Some((row.processes, placement.clone(), *row.throughput.as_ref().ok()?))
        })
        .max_by(|a, b| a.2.estimate.total_cmp(&b.2.estimate));
    Some(Capacity { variant: table.variant.clone(), mode: table.mode, each, fixed, fit, bounds, best })
}

/// Variants with a timed run whose output differs from that of the baseline's first in the same kind of cell. The baseline
/// is one of them if its output changes from run to run.
fn different(question: Question, runs: &[GroupRun]) -> Vec<(String, Cell)> {
    let Some(baseline) = question.variants.first() else { return Vec::new() };
    let outputs = || {
        let timed = runs.iter().filter(|run| run.purpose == Purpose::Timed && run.is_sound());
        timed.filter_map(|run| Some((&run.cell, run.output_digest.as_ref()?)))
    };
    let mut first: BTreeMap<&Cell, &String> = BTreeMap::new();
    for (cell, digest) in outputs().filter(|(cell, _)| cell.variant == *baseline) {
        first.entry(cell).or_insert(digest);
    }
    let differs = |(cell, digest): &(&Cell, &String)| {
        let reference = first.get(&Cell { variant: baseline.clone(), ..(*cell).clone() });
        reference.is_some_and(|reference| reference != digest)
    };
    let cells: BTreeSet<&Cell> = outputs().filter(differs).map(|(cell, _)| cell).collect();
    let mut found: Vec<(String, Cell)> = Vec::new();
    for cell in cells {
        if !found.iter().any(|(variant, _)| *variant == cell.variant) {
            found.push((cell.variant.clone(), cell.clone()));
        }
    }
    found
}
