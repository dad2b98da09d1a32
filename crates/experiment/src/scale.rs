//! Scale: how throughput and memory grow with the number of processes. The plan, and the data of one run of several members.
//!
//! A *cell* is a variant with a mode, a placement and a number of processes; a *group run* is one run of a cell, with all its members. Times are
//! nanoseconds, amounts are bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::outcome::{Ending, RoundKind};

/// Words that commands of a scaling campaign may refer to, besides those of every run command: filled in for each cell.
pub const WORDS: [&str; 4] = ["processes", "index", "events", "first"];

/// How several processes or threads are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One program that gets the number of children to fork.
    Fork,
    /// Several copies, started at the same moment.
    Jobs,
    /// One program that gets the number of threads to start.
    Threads,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Fork, Mode::Jobs, Mode::Threads];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Fork => "fork",
            Mode::Jobs => "jobs",
            Mode::Threads => "threads",
        }
    }

    /// What there are several of, in the plural.
    pub fn noun(self) -> &'static str {
        match self {
            Mode::Fork => "children",
            Mode::Jobs => "jobs",
            Mode::Threads => "threads",
        }
    }

    /// What there is one more of.
    pub fn singular(self) -> &'static str {
        match self {
            Mode::Fork => "child",
            Mode::Jobs => "job",
            Mode::Threads => "thread",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Mode, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == word);
        found.ok_or_else(|| format!("\"{word}\" is no mode: fork, jobs or threads"))
    }
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "work", content = "events")]
pub enum Work {
    /// A total of events, which the processes share.
    Shared(u64),
    /// A number of events for each process.
    Each(u64),
    /// Unknown; the program's total work is independent of the number of processes.
    OnceUnknown,
    /// Unknown; each process does the same work.
    EachUnknown,
}

impl Work {
    /// Events of all processes together, if they are known.
    pub fn events(self, processes: usize) -> Option<u64> {
        match self {
            Work::Shared(events) => Some(events),
            Work::Each(events) => Some(events.saturating_mul(processes as u64)),
            Work::OnceUnknown | Work::EachUnknown => None,
        }
    }

    /// What throughput counts: events, or work of the size that one process has.
    pub fn done(self, processes: usize) -> f64 {
        match self {
            Work::OnceUnknown => 1.0,
            Work::EachUnknown => processes as f64,
            _ => self.events(processes).unwrap_or(1) as f64,
        }
    }

    /// The unit of throughput, without the "per second".
    pub fn unit(self) -> &'static str {
        match self {
            Work::Shared(_) | Work::Each(_) => "events",
            Work::OnceUnknown | Work::EachUnknown => "runs",
        }
    }

    /// Whether the work of all together stays the same when there are more processes.
    pub fn is_shared(self) -> bool {
        matches!(self, Work::Shared(_) | Work::OnceUnknown)
    }
}

/// The plan of a scaling campaign, besides the program and its variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Numbers of processes, ascending.
    pub counts: Vec<usize>,
    /// Modes.
    pub modes: Vec<Mode>,
    /// Names of placements.
    pub placements: Vec<String>,
    /// Which kinds of core: `performance`, `efficiency`, `all`.
    pub kinds: String,
    /// Events, where they are known.
    pub events: Option<u64>,
    /// They are the events of each process; otherwise processes share them.
    pub events_each: bool,
    /// Rounds in which memory is read.
    pub memory_rounds: u32,
    /// The sequential part is estimated by runs with one event and with half of them.
    pub sequential: bool,
    /// A shell command that runs on each CPU that a cell leaves free.
    pub load: Option<String>,
    /// The command of a job, where it is not the run command.
    pub jobs_run: Option<String>,
    /// The pattern of an event's line.
    pub event_pattern: Option<String>,
    /// Files with such lines.
    pub event_files: Option<String>,
    /// Events are reported by marks.
    pub event_marks: bool,
    /// The memory for which capacity is reported, in bytes, all processes together.
    pub memory_limit: u64,
}

impl Plan {
    /// How much there is to do in that mode.
    pub fn work(&self, mode: Mode) -> Work {
        match (self.events, self.events_each) {
            (Some(events), true) => Work::Each(events),
            (Some(events), false) => Work::Shared(events),
            (None, _) if mode == Mode::Jobs => Work::EachUnknown,
            (None, true) => Work::EachUnknown,
            (None, false) => Work::OnceUnknown,
        }
    }
}

/// One point of a scaling campaign.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The variant's name.
    pub variant: String,
    /// How several processes or threads are started.
    pub mode: Mode,
    /// The placement's name: `cores`, `siblings`, a list of CPUs.
    pub placement: String,
    /// How many.
    pub processes: usize,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.processes == 1 { self.mode.singular() } else { self.mode.noun() };
        write!(f, "{}, {} {noun}, {}", self.variant, self.processes, self.placement)
    }
}

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To warm up; used for nothing.
    Warmup,
    /// To be timed.
    Timed,
    /// Timed, with one event, or one for each job: what is left is the sequential part, as innocente-2012 estimates it.
    OneEvent,
    /// Timed, with half of the events: a point of the regression.
    HalfOfEvents,
    /// Memory is read, while the processes are frozen.
    Memory,
}

impl Purpose {
    /// The kind of the rounds that have such runs.
    pub fn round_kind(self) -> RoundKind {
        match self {
            Purpose::Warmup => RoundKind::Warmup,
            Purpose::Timed | Purpose::OneEvent | Purpose::HalfOfEvents => RoundKind::Timed,
            Purpose::Memory => RoundKind::Memory,
        }
    }

    /// Whether such runs only estimate the sequential part: the cell does without them.
    pub fn is_auxiliary(self) -> bool {
        matches!(self, Purpose::OneEvent | Purpose::HalfOfEvents)
    }

    /// The events of such a run of a cell, all its processes together, where the cell has `all`. Each job gets one at least:
    /// a job is a program that was not made to have none.
    pub fn events(self, all: Option<u64>, cell: &Cell) -> Option<u64> {
        let least = if cell.mode == Mode::Jobs { cell.processes.max(1) as u64 } else { 1 };
        match self {
            Purpose::OneEvent => Some(least),
            Purpose::HalfOfEvents => all.map(|events| (events / 2).max(least)),
            Purpose::Warmup | Purpose::Timed | Purpose::Memory => all,
        }
    }

    /// The name in the archive, JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Warmup => "warmup",
            Purpose::Timed => "timed",
            Purpose::OneEvent => "one-event",
            Purpose::HalfOfEvents => "half-of-events",
            Purpose::Memory => "memory",
        }
    }
}

/// One run of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupRun {
    /// Its round.
    pub round: u32,
    /// Its place in the round's random order.
    pub position: u32,
    /// Of which cell.
    pub cell: Cell,
    /// What for.
    pub purpose: Purpose,
    /// Events it was given, all processes together.
    pub events: Option<u64>,
    /// How it ended: the first that did not end well, or done.
    pub ending: Ending,
    /// Why it failed, as text.
    pub failure: Option<String>,
    /// From the start (of the first) to the end (of the last).
    pub elapsed_ns: u64,
    /// From the start of the first to that of the last.
    pub spread_ns: u64,
    /// CPU time of everything that was started: every process and thread, those that had ended too.
    pub cpu_ns: u64,
    /// CPU time of the load on other CPUs; not recorded.
    #[serde(skip)]
    pub load_cpu_ns: u64,
    /// Of `cpu_ns`: that of the process that forked the children, by itself. Absent where it is not known, and for jobs and threads, which
    /// have no such process.
    #[serde(default)]
    pub parent_cpu_ns: Option<u64>,
    /// Children were asked for, and none was seen: the program itself is the only member, with its start. False for jobs and threads,
    /// and in campaigns recorded without it.
    #[serde(default)]
    pub childless: bool,
    /// Its tasks' waiting for CPUs; absent in campaigns recorded without it.
    #[serde(default)]
    pub cpu_wait: Option<CpuWait>,
    /// The parent's CPU time and elapsed time at its first child or thread.
    pub before_fork: Option<BeforeFork>,
    /// The children, jobs or threads, in the order of their CPUs.
    pub members: Vec<Member>,
    /// Hardware counters, summed over everything that was started, by name of the metric.
    pub counters: BTreeMap<String, f64>,
    /// Memory, where it was read.
    pub memory: Option<Memory>,
    /// Digest of what was written to standard output, by all jobs in their order.
    pub output_digest: Option<String>,
    /// Remarks for the report.
    pub remarks: Vec<String>,
}

impl GroupRun {
    /// Whether its figures may be used.
    pub fn is_sound(&self) -> bool {
        self.ending == Ending::Done && self.failure.is_none()
    }

    /// Whether it failed so that the cell has no further runs of that purpose.
    pub fn excludes(&self, cell: &Cell, purpose: Purpose) -> bool {
        let is_concerned = self.purpose == purpose || !self.purpose.is_auxiliary();
        !self.is_sound() && self.cell == *cell && is_concerned
    }
}

/// The parent at its first fork (or at its first thread).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeFork {
    /// CPU time of the parent until then.
    pub cpu_ns: u64,
    /// Time since its start.
    pub elapsed_ns: u64,
}

/// The waiting of a run's tasks for CPUs; nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuWait {
    /// For how long tasks could have run and had no CPU, over all of them: the kernel's run-queue wait, for other
    /// programs and for each other. Where some of their CPU time was not read, extrapolated to the whole.
    pub waited_ns: Option<u64>,
    /// Of the member that waited longest.
    pub longest_ns: Option<u64>,
    /// For how long they may have waited besides, after the last reading: 0 where the kernel reported it at their exits, and in
    /// campaigns recorded without it.
    #[serde(default)]
    pub unread_ns: u64,
    /// How much of `waited_ns` can have been for others: members on the same CPU waited for each other while one of them ran. Absent where
    /// members had no CPUs of their own, or the waiting is not known, and in campaigns recorded without it.
    #[serde(default)]
    pub most_lost_ns: Option<u64>,
    /// Why the waiting is not known.
    pub unknown: Option<String>,
    /// CPU time of all other programs on the CPUs of the cell; where members chose other CPUs themselves, on those.
    pub others_ns: u64,
    /// Time for which the cgroup's CPU quota was used up, over all CPUs.
    pub throttled_ns: u64,
    /// Steal time, of the CPU with the most.
    pub stolen_ns: u64,
    /// How far `others_ns` and `stolen_ns` may be off, since the kernel counts them in ticks.
    pub uncertain_ns: u64,
    /// How many these CPUs are.
    pub cpus: usize,
    /// The most tasks that wanted a CPU at the same time, of those that wanted one for more than a twentieth of the run: if
    /// these are more than the CPUs, they waited for each other.
    pub wanting: usize,
}

/// One child, job or thread. Where several followed each other in its place, as the threads of one pool follow those of
/// another, they are one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its number; of several: of the one that used most CPU time.
    pub pid: u32,
    /// The numbers of the others in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<u32>,
    /// The CPU it was pinned to; None if it was not.
    pub cpu: Option<u32>,
    /// The CPUs that it chose by itself, where it did.
    pub moved_to: Option<String>,
    /// When it began, from the run's start.
    pub began_ns: u64,
    /// When it ended; absent where nothing reported its end.
    pub ended_ns: Option<u64>,
    /// Its CPU time, with what it started itself.
    pub cpu_ns: u64,
    /// The CPU time is that of its end; otherwise it was read last at some moment before.
    pub exact: bool,
    /// Peak resident memory, where the kernel reported it.
    pub max_rss: Option<u64>,
    /// Its reported events.
    pub reported: Option<ReportedEvents>,
}

/// The events that a program's own lines report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedEvents {
    /// Events, or lines that matched.
    pub events: u64,
    /// Mean elapsed seconds per event.
    pub elapsed_s: Option<f64>,
    /// Mean CPU seconds per event.
    pub cpu_s: Option<f64>,
}

/// The memory of everything that was started, over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Moments, in order.
    pub moments: Vec<Moment>,
    /// Whether all processes were frozen at each moment; otherwise they were read one after the other while they ran.
    pub frozen: bool,
    /// Index of the moment with the highest PSS while all members were there.
    pub highest: Option<usize>,
    /// Each member at that moment, in their order.
    pub members: Vec<MemberMemory>,
    /// The change of the system's AnonPages after everything had ended, which is due to other programs.
    #[serde(default)]
    pub system_drift: i64,
    /// Memory of forked children by mapping, at that moment, all children together.
    pub copy_on_write: Vec<CopyOnWriteBreakdown>,
}

/// All processes at one moment, summed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Since the start.
    pub at_ns: u64,
    /// Members there at the time.
    pub members: usize,
    /// Processes there at the time.
    pub processes: usize,
    /// Proportional set size: each page divided by the number of its users.
    pub pss: u64,
    /// Of it: anonymous memory.
    pub pss_anonymous: u64,
    /// Unique set size: pages that one process has alone.
    pub uss: u64,
    /// Pages written that one process has alone.
    pub private_dirty: u64,
    /// Resident sizes; shared pages count in each.
    pub resident: u64,
    /// Memory of the process tree: a page counts once, even if other programs have it too, and the x32 runtime's pages do
    /// not. Absent in campaigns recorded without it.
    #[serde(default)]
    pub tree: Option<u64>,
    /// The x32 runtime's own memory, likewise once; all figures but `tree` include it.
    #[serde(default)]
    pub runtime: u64,
    /// Transparent huge pages.
    pub huge: u64,
    /// Pages merged by KSM.
    pub merged: u64,
    /// The system's AnonPages, above what they were before the start.
    pub system_anonymous: i64,
    /// The system's AnonHugePages, likewise.
    pub system_huge: i64,
    /// Each member that was there, in their order; empty where there are too many to keep.
    #[serde(default)]
    pub each: Vec<MemberMemory>,
}

/// One member's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberMemory {
    /// Proportional set size.
    pub pss: u64,
    /// Unique set size.
    pub uss: u64,
    /// Pages written that it has alone.
    pub private_dirty: u64,
    /// Resident size.
    pub resident: u64,
    /// Of the resident: pages that others have too.
    #[serde(default)]
    pub shared: u64,
    /// Of the private dirty: the x32 runtime's own.
    #[serde(default)]
    pub runtime_dirty: u64,
}

/// The copy-on-write breakdown of the parent's memory in the children, for one kind of mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOnWriteBreakdown {
    /// What the mapping is for, or the library it belongs to.
    pub part: String,
    /// What the parent had there at the fork.
    pub at_fork: u64,
    /// What all children together still share of it.
    pub shared: u64,
    /// What they have copied by writing to it, or lost by freeing it and touching it anew.
    pub copied: u64,
    /// What they have there that the parent had not.
    pub own: u64,
}
