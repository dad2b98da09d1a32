//! The summary of a scaling study: attempts in, tables out.
//!
//! Rounds are the unit, as in [`scaling`](crate::scaling): compared values were measured in the same round, and
//! intervals come from resampling rounds.

mod attempts;
mod smt;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use widthwise_experiment::role::control_of;

use widthwise_experiment::scale::{Attempt, Cell, CopyOnWriteBreakdown, Mode, Plan, Purpose, Work};

use crate::scaling::{ratio, Amdahl, Figure, Line, SmtYield, Terms, Unfitted, Universal};
use crate::starvation::Waiting;
use attempts::{sound, starved, unless, SECOND};
use smt::smt;
use table::table;

/// The request of a study and the machine.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The variants, the baseline first.
    pub variants: &'a [String],
    /// The CPUs of each placement's largest cell; a smaller one has the first of them.
    pub placements: &'a [(String, Vec<u32>)],
    /// The CPUs of each core.
    pub cores: &'a [Vec<u32>],
    /// Confidence of each interval.
    pub confidence: f64,
    /// The study's seed.
    pub seed: u64,
    /// Memory of the machine, in bytes.
    pub memory: u64,
}

/// The summary of a study.
#[derive(Debug, Clone)]
pub struct Summary {
    /// One table for each variant, mode and placement.
    pub tables: Vec<Table>,
    /// The A/A control's throughput over the baseline's: differences within its interval cannot be resolved.
    pub floor: Option<Figure>,
    /// Other variants and modes beside the first.
    pub comparisons: Vec<Comparison>,
    /// The yield of the second thread of each core, where there is one.
    pub smt: Vec<(Cell, Cell, SmtYield)>,
    /// How many processes fit into the memory.
    pub capacity: Vec<Capacity>,
    /// Variants whose output differs from the baseline's, and where.
    pub different: Vec<(String, Cell)>,
    /// Timed rounds.
    pub rounds: usize,
    /// All attempts, warm-ups included.
    pub attempts: usize,
}

/// One variant in one mode and placement.
#[derive(Debug, Clone)]
pub struct Table {
    /// The variant.
    pub variant: String,
    /// The mode.
    pub mode: Mode,
    /// The placement.
    pub placement: String,
    /// How much there was to do.
    pub work: Work,
    /// By number of processes.
    pub rows: Vec<Row>,
    /// The fit of Amdahl's law.
    pub amdahl: Result<Amdahl, Unfitted>,
    /// The fit of the universal scalability law.
    pub universal: Result<Universal, Unfitted>,
    /// The sequential part, in seconds.
    pub sequential: Sequential,
    /// Memory of one more process: PSS of all, over their number.
    pub marginal: Result<Line, Unfitted>,
}

/// The sequential part of one variant in one mode, estimated in three ways; seconds.
#[derive(Debug, Clone)]
pub struct Sequential {
    /// Elapsed time of an attempt with one event (innocente-2012).
    pub one_event: Result<Figure, Unfitted>,
    /// The parent's elapsed time at its first fork.
    pub at_fork: Result<Figure, Unfitted>,
    /// The parent's CPU time then.
    pub cpu_at_fork: Result<Figure, Unfitted>,
    /// Elapsed time over events: its intercept, and the time of an event.
    pub regression: Result<Line, Unfitted>,
}

impl Sequential {
    /// The estimate that is subtracted: the regression's, which alone excludes the one event's own time; else the next
    /// available.
    pub fn chosen(&self) -> f64 {
        let line = self.regression.as_ref().ok().map(|line| line.intercept.estimate);
        let other = || self.at_fork.as_ref().or(self.one_event.as_ref()).ok().map(|figure| figure.estimate);
        line.or_else(other).unwrap_or(0.0).max(0.0)
    }
}

/// How the time of an event is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSource {
    /// The program reported CPU times.
    ReportedCpu,
    /// The program reported elapsed times.
    ReportedElapsed,
    /// CPU time of the members over their events.
    CpuTime,
}

/// One number of processes. Times are seconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// How many.
    pub processes: usize,
    /// Their CPUs.
    pub cpus: Vec<u32>,
    /// Attempts whose figures are used.
    pub attempts: usize,
    /// Why there are none or too few.
    pub failure: Option<String>,
    /// From the start to the end.
    pub elapsed: Result<Figure, Unfitted>,
    /// CPU time of everything.
    pub cpu: Result<Figure, Unfitted>,
    /// Events or runs a second.
    pub throughput: Result<Figure, Unfitted>,
    /// Over the smallest number's.
    pub speed_up: Result<Figure, Unfitted>,
    /// Speed-up over the perfect speed-up.
    pub efficiency: Result<Figure, Unfitted>,
    /// Time of an event.
    pub event: Result<(Figure, EventSource), Unfitted>,
    /// TIME of innocente-2012: elapsed less the sequential part, times the number of those who share the work.
    pub time: Result<Figure, Unfitted>,
    /// NTIME: TIME times the clock in GHz.
    pub ntime: Result<Figure, Unfitted>,
    /// Instructions per cycle.
    pub ipc: Result<Figure, Unfitted>,
    /// Stalled cycles per instruction.
    pub sci: Result<Figure, Unfitted>,
    /// Its tasks' waiting for CPUs; absent in studies recorded without it.
    pub waiting: Option<Waiting>,
    /// Memory at its highest.
    pub memory: Option<RowMemory>,
}

/// The memory of a cell, at the moment of its highest PSS while all were there; bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMemory {
    /// PSS of everything.
    pub pss: f64,
    /// Of one member, on average.
    pub member_pss: f64,
    /// Unique set size (USS) of a member, on average.
    pub member_uss: f64,
    /// Private dirty memory of a member, on average.
    pub member_private_dirty: f64,
    /// Resident size of a member, on average.
    pub member_resident: f64,
    /// Anonymous memory, by PSS.
    pub anonymous: f64,
    /// The increase of the system's AnonPages.
    pub system_anonymous: f64,
    /// The largest change of AnonPages after the end of a round.
    pub system_drift: f64,
    /// Huge pages.
    pub huge: f64,
    /// The increase of the system's AnonHugePages.
    pub system_huge: f64,
    /// Merged by KSM.
    pub merged: f64,
    /// The copy-on-write breakdown of the parent's memory.
    pub copy_on_write: Vec<CopyOnWriteBreakdown>,
    /// Whether all processes were frozen.
    pub frozen: bool,
}

/// A cell compared with another of the same size.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The cell.
    pub cell: Cell,
    /// The one it is compared with: the baseline's, or that of the first mode.
    pub beside: Cell,
    /// Its throughput over the other's.
    pub throughput: Result<Figure, Unfitted>,
    /// Its PSS over the other's.
    pub memory: Option<f64>,
}

/// How many of a variant fit into the memory.
#[derive(Debug, Clone)]
pub struct Capacity {
    /// The variant.
    pub variant: String,
    /// The mode.
    pub mode: Mode,
    /// Memory of one more.
    pub each: f64,
    /// Memory without any process.
    pub fixed: f64,
    /// How many fit.
    pub fit: u64,
    /// The best throughput measured with at most so many processes, their number and the placement.
    pub best: Option<(usize, String, Figure)>,
}

impl RowMemory {
    /// Whether the system's figures are usable: the rest of the machine changed by less than a twentieth.
    pub fn system_is_telling(&self) -> bool {
        self.system_anonymous > 0.0 && self.system_drift < 0.05 * self.anonymous
    }
}

impl Summary {
    /// The widest half-width among throughputs, as a share of each; None while one is without an interval.
    pub fn half_width(&self) -> Option<f64> {
        let mut widest: Option<f64> = None;
        for row in self.tables.iter().flat_map(|table| &table.rows).filter(|row| row.failure.is_none()) {
            let figure = row.throughput.as_ref().ok()?;
            let bounds = figure.bounds?;
            let half = (bounds.high - bounds.low) / 2.0 / figure.estimate;
            widest = Some(widest.map_or(half, |widest| widest.max(half)));
        }
        widest
    }
}

/// Sums up.
pub fn summarise(question: Question, attempts: &[Attempt]) -> Summary {
    let plan = question.plan;
    let mut tables = Vec::new();
    for &mode in &plan.modes {
        for variant in question.variants {
            for (placement, cpus) in question.placements {
                tables.push(table(question, attempts, variant, mode, placement, cpus));
            }
        }
    }
    let name = question.variants.first().map(|baseline| control_of(baseline));
    let floor = name.and_then(|name| {
        let control = attempts.iter().find(|attempt| attempt.cell.variant == name)?.cell.clone();
        let own = Cell { variant: question.variants[0].clone(), ..control.clone() };
        // A noisy machine makes it wide, as intended.
        rates(question, attempts, &control, &own).ok()
    });
    let timed: BTreeSet<u32> =
        attempts.iter().filter(|a| a.purpose == Purpose::Timed).map(|attempt| attempt.round).collect();
    Summary {
        comparisons: comparisons(question, attempts, &tables),
        smt: smt(question, attempts, &tables),
        capacity: tables
            .iter()
            .filter(|table| Some(&table.placement) == question.placements.first().map(|(name, _)| name))
            .filter_map(|one| capacity(question, one, &tables))
            .collect(),
        different: different(question, attempts),
        floor,
        rounds: timed.len(),
        attempts: attempts.len(),
        tables,
    }
}

/// The throughput of one cell over another's, within rounds, where both had their CPUs.
fn beside(question: Question, attempts: &[Attempt], cell: &Cell, other: &Cell) -> Result<Figure, Unfitted> {
    let starved = starved(attempts, cell).or_else(|| starved(attempts, other));
    unless(starved, rates(question, attempts, cell, other))
}

/// As above, without the check for starvation.
fn rates(question: Question, attempts: &[Attempt], cell: &Cell, other: &Cell) -> Result<Figure, Unfitted> {
    let name = format!("{cell} beside {other}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let rate = |cell: &Cell| -> BTreeMap<u32, f64> {
        let done = question.plan.work(cell.mode).done(cell.processes);
        sound(attempts, cell, Purpose::Timed)
            .map(|a| (a.round, done / (a.elapsed_ns as f64 / SECOND)))
            .collect()
    };
    let (own, theirs) = (rate(cell), rate(other));
    let pairs: Vec<(f64, f64)> =
        own.iter().filter_map(|(round, value)| Some((*value, *theirs.get(round)?))).collect();
    ratio(&pairs, terms, &["throughput"])
}

fn comparisons(question: Question, attempts: &[Attempt], tables: &[Table]) -> Vec<Comparison> {
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
                let throughput = beside(question, attempts, &cell, &other);
                let theirs = tables
                    .iter()
                    .find(|t| {
                        t.variant == other.variant && t.mode == other.mode && t.placement == other.placement
                    })
                    .and_then(|t| t.rows.iter().find(|r| r.processes == other.processes))
                    .and_then(|r| r.memory.as_ref());
                let memory = row.memory.as_ref().zip(theirs).map(|(own, theirs)| own.pss / theirs.pss);
                let is_withheld = matches!(throughput, Err(Unfitted::Withheld(_)));
                if throughput.is_ok() || is_withheld || memory.is_some() {
                    all.push(Comparison { cell: cell.clone(), beside: other, throughput, memory });
                }
            }
        }
    }
    all
}

fn capacity(question: Question, table: &Table, tables: &[Table]) -> Option<Capacity> {
    let line = table.marginal.as_ref().ok()?;
    let (each, fixed) = (line.slope.estimate, line.intercept.estimate.max(0.0));
    if each <= 0.0 {
        return None;
    }
    let limit = question.plan.memory_limit as f64;
    let fit = ((limit - fixed) / each).max(0.0).floor() as u64;
    let best = tables
        .iter()
        .filter(|other| other.variant == table.variant && other.mode == table.mode)
        .flat_map(|other| other.rows.iter().map(move |row| (&other.placement, row)))
        .filter(|(_, row)| row.processes as u64 <= fit && row.failure.is_none())
        .filter_map(|(placement, row)| {
            Some((row.processes, placement.clone(), *row.throughput.as_ref().ok()?))
        })
        .max_by(|a, b| a.2.estimate.total_cmp(&b.2.estimate));
    Some(Capacity { variant: table.variant.clone(), mode: table.mode, each, fixed, fit, best })
}

/// Variants whose output differs from the baseline's in the same kind of cell.
fn different(question: Question, attempts: &[Attempt]) -> Vec<(String, Cell)> {
    let Some(baseline) = question.variants.first() else { return Vec::new() };
    let mut digests: BTreeMap<Cell, &str> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.purpose == Purpose::Timed && attempt.is_sound()) {
        if let Some(digest) = &attempt.output_digest {
            digests.entry(attempt.cell.clone()).or_insert(digest);
        }
    }
    let mut found: Vec<(String, Cell)> = Vec::new();
    for (cell, digest) in &digests {
        let other = digests.get(&Cell { variant: baseline.clone(), ..cell.clone() });
        let is_new = !found.iter().any(|(variant, _)| *variant == cell.variant);
        if is_new && other.is_some_and(|other| other != digest) {
            found.push((cell.variant.clone(), cell.clone()));
        }
    }
    found
}
