//! A study of scale summed up: attempts in, tables out.
//!
//! Every figure is made of rounds, as everything in [`scaling`](crate::scaling) is: what is compared was measured in the same
//! round, and intervals come from resampling rounds.

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

/// What a study was asked, and of which machine.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What was asked.
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

/// A study summed up.
#[derive(Debug, Clone)]
pub struct Summary {
    /// One table for each variant, mode and placement.
    pub tables: Vec<Table>,
    /// The A/A pair's throughput over the baseline's: what is nearer to 1 than this cannot be told from none.
    pub floor: Option<Figure>,
    /// Other variants and modes beside the first.
    pub comparisons: Vec<Comparison>,
    /// What the second thread of each core yields, where there is one.
    pub smt: Vec<(Cell, Cell, SmtYield)>,
    /// How many fit into the memory.
    pub capacity: Vec<Capacity>,
    /// Variants whose answers differ from the baseline's, and where.
    pub different: Vec<(String, Cell)>,
    /// Timed rounds.
    pub rounds: usize,
    /// Of warm-ups and of everything else: attempts.
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
    /// What Amdahl's law makes of it.
    pub amdahl: Result<Amdahl, Unfitted>,
    /// What the universal scalability law makes of it.
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
    /// The one that is subtracted: that of the regression, which alone leaves out the one event's own time; else what
    /// there is.
    pub fn chosen(&self) -> f64 {
        let line = self.regression.as_ref().ok().map(|line| line.intercept.estimate);
        let other = || self.at_fork.as_ref().or(self.one_event.as_ref()).ok().map(|figure| figure.estimate);
        line.or_else(other).unwrap_or(0.0).max(0.0)
    }
}

/// How the time of an event is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSource {
    /// The program told CPU times.
    ReportedCpu,
    /// The program told elapsed times.
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
    /// Why there are none, or no more.
    pub failure: Option<String>,
    /// From the start to the end.
    pub elapsed: Result<Figure, Unfitted>,
    /// CPU time of everything.
    pub cpu: Result<Figure, Unfitted>,
    /// Events or runs a second.
    pub throughput: Result<Figure, Unfitted>,
    /// Over the smallest number's.
    pub speed_up: Result<Figure, Unfitted>,
    /// Speed-up over what would be perfect.
    pub efficiency: Result<Figure, Unfitted>,
    /// Time of an event.
    pub event: Result<(Figure, EventSource), Unfitted>,
    /// TIME of innocente-2012: elapsed less the sequential part, times the number of those who share the work.
    pub time: Result<Figure, Unfitted>,
    /// NTIME: TIME times the clock in GHz.
    pub ntime: Result<Figure, Unfitted>,
    /// Instructions a cycle.
    pub ipc: Result<Figure, Unfitted>,
    /// Stalled cycles an instruction.
    pub sci: Result<Figure, Unfitted>,
    /// How its tasks came by their CPUs; absent in studies of before that was recorded.
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
    /// What a member has alone, on average.
    pub member_uss: f64,
    /// What a member has alone and has written to, on average.
    pub member_private_dirty: f64,
    /// Resident size of a member, on average.
    pub member_resident: f64,
    /// Anonymous memory, by PSS.
    pub anonymous: f64,
    /// The system's AnonPages, above what they were before.
    pub system_anonymous: f64,
    /// How AnonPages had changed when everything had ended, the largest of all rounds.
    pub system_drift: f64,
    /// Huge pages.
    pub huge: f64,
    /// The system's AnonHugePages, above what they were before.
    pub system_huge: f64,
    /// Merged by KSM.
    pub merged: f64,
    /// What became of the parent's memory.
    pub copy_on_write: Vec<CopyOnWriteBreakdown>,
    /// Everything stood still.
    pub frozen: bool,
}

/// A cell beside another of the same size.
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
    /// What there is without any.
    pub fixed: f64,
    /// How many fit.
    pub fit: u64,
    /// The best throughput that was measured of at most so many, how many that takes, and where.
    pub best: Option<(usize, String, Figure)>,
}

impl RowMemory {
    /// Whether the rest of the machine stood still enough for the system's figures to say something of ours: it changed by
    /// less than a twentieth.
    pub fn system_is_telling(&self) -> bool {
        self.system_anonymous > 0.0 && self.system_drift < 0.05 * self.anonymous
    }
}

impl Summary {
    /// The widest half-width among throughputs, as a share of each; nothing while one is without an interval.
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
    let again = question.variants.first().map(|baseline| control_of(baseline));
    let floor = again.and_then(|again| {
        let control = attempts.iter().find(|attempt| attempt.cell.variant == again)?.cell.clone();
        let own = Cell { variant: question.variants[0].clone(), ..control.clone() };
        // A noisy machine makes it wide, and so it should be.
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

/// The same, whoever had the CPUs.
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
            // Work of which nobody knows how much it is cannot be compared between modes.
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

/// Variants that answered otherwise than the baseline did in the same kind of cell.
fn different(question: Question, attempts: &[Attempt]) -> Vec<(String, Cell)> {
    let Some(baseline) = question.variants.first() else { return Vec::new() };
    let mut answers: BTreeMap<Cell, &str> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.purpose == Purpose::Timed && attempt.is_sound()) {
        if let Some(answer) = &attempt.output_digest {
            answers.entry(attempt.cell.clone()).or_insert(answer);
        }
    }
    let mut found: Vec<(String, Cell)> = Vec::new();
    for (cell, answer) in &answers {
        let other = answers.get(&Cell { variant: baseline.clone(), ..cell.clone() });
        let is_new = !found.iter().any(|(variant, _)| *variant == cell.variant);
        if is_new && other.is_some_and(|other| other != answer) {
            found.push((cell.variant.clone(), cell.clone()));
        }
    }
    found
}
