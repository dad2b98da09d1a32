//! The request and the summary of a scaling campaign.

use widthwise_experiment::scale::{Cell, CopyOnWriteBreakdown, Mode, Plan, Work};

use crate::scaling::{Amdahl, Figure, Line, SmtYield, Unfitted, Universal};
use crate::starvation::Waiting;

/// The request of a scaling campaign, and its machine.
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
    /// The campaign's seed.
    pub seed: u64,
    /// Memory of the machine, in bytes.
    pub memory: u64,
}

/// The summary of a scaling campaign.
#[derive(Debug, Clone)]
pub struct Summary {
    /// One table for each variant, mode and placement.
    pub tables: Vec<Table>,
    /// The A/A control's throughput over the baseline's: differences within its interval cannot be resolved.
    pub floor: Result<Figure, Unfitted>,
    /// Other variants and modes beside the first.
    pub comparisons: Vec<Comparison>,
    /// The yield of the second thread of each core, where there is one.
    pub smt: Vec<(Cell, Cell, SmtYield)>,
    /// How many processes fit into the memory.
    pub capacity: Vec<Capacity>,
    /// Variants whose output differs from the baseline's first, and where. The baseline and the A/A control may be among
    /// them.
    pub different: Vec<(String, Cell)>,
    /// Timed rounds.
    pub rounds: usize,
    /// All runs, warm-ups included.
    pub runs: usize,
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
    /// Memory of one more process: that of the process tree (PSS in campaigns recorded without it), over their number.
    pub marginal: Result<Line, Unfitted>,
    /// The least that a job or child has written for itself, on average over those of a run; bytes. Absent for threads.
    pub private: Option<f64>,
}

impl Table {
    /// Whether a run was made, be it one that failed.
    pub fn has_runs(&self) -> bool {
        self.rows.iter().any(|row| row.runs > 0 || row.failure.is_some())
    }

    /// Memory of one more process, at least what each has written for itself. The line is below that if processes had less
    /// memory where they were more.
    pub fn one_more(&self) -> Option<f64> {
        let slope = self.marginal.as_ref().ok()?.slope.estimate;
        Some(slope.max(self.private.unwrap_or(slope)))
    }

    /// Whether the line of memory is clearly below what each process has written for itself.
    pub fn is_line_too_low(&self) -> bool {
        const ROUNDING: f64 = 0.005;
        let slope = self.marginal.as_ref().map(|line| line.slope.estimate);
        slope.ok().zip(self.private).is_some_and(|(slope, private)| slope < private * (1.0 - ROUNDING))
    }
}

/// The sequential part of one variant in one mode, estimated in three ways; seconds.
#[derive(Debug, Clone)]
pub struct Sequential {
    /// Elapsed time of a run with one event (innocente-2012).
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
    pub fn known(&self) -> Result<f64, Unfitted> {
        let line = self.regression.as_ref().map(|line| line.intercept.estimate);
        let other = || self.at_fork.as_ref().or(self.one_event.as_ref()).map(|figure| figure.estimate);
        line.or_else(|reason| other().map_err(|_| *reason)).map(|seconds| seconds.max(0.0))
    }

    /// The same; nothing is subtracted where there is no estimate.
    pub fn chosen(&self) -> f64 {
        self.known().unwrap_or(0.0)
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
    /// Runs whose figures are used.
    pub runs: usize,
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
    /// Parallel time (TIME of innocente-2012): elapsed less the sequential part, times the number of those who share the work.
    pub parallel_time: Result<Figure, Unfitted>,
    /// Clock-normalised parallel time (NTIME): parallel time times the clock in GHz.
    pub clock_normalised: Result<Figure, Unfitted>,
    /// Instructions per cycle.
    pub ipc: Result<Figure, Unfitted>,
    /// Stalled cycles per instruction (SCI).
    pub stalled_per_instruction: Result<Figure, Unfitted>,
    /// Its tasks' waiting for CPUs; absent in campaigns recorded without it.
    pub waiting: Option<Waiting>,
    /// Memory at its highest.
    pub memory: Option<RowMemory>,
}

/// The memory of a cell, at the moment of its highest PSS while all were there; bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMemory {
    /// The memory of the process tree: each page once, without the x32 runtime's. Absent in campaigns recorded without it.
    pub tree: Option<f64>,
    /// The x32 runtime's own memory, which all other figures include.
    pub runtime: f64,
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
    pub baseline: Cell,
    /// Its throughput over the other's.
    pub throughput: Result<Figure, Unfitted>,
    /// Its memory over the other's.
    pub memory: Option<Figure>,
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
    /// The least and the most that fit, by the intervals of the line; absent where it has none.
    pub bounds: Option<(u64, u64)>,
    /// The best throughput measured with at most so many processes, their number and the placement.
    pub best: Option<(usize, String, Figure)>,
}

impl Capacity {
    /// How many more fit than of another variant, as a share; None where the measurements do not tell.
    pub fn gain_over(&self, other: &Capacity) -> Option<f64> {
        let ((low, high), (other_low, other_high)) = self.bounds.zip(other.bounds)?;
        let are_apart = low > other_high || high < other_low;
        (are_apart && other.fit > 0).then(|| self.fit as f64 / other.fit as f64 - 1.0)
    }
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
