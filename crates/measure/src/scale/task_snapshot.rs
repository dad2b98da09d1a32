//! What `/proc` shows of one program's processes and threads: where they may run, and their CPU time.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use widthwise_experiment::scale::Mode;

use crate::run::descriptors;
use widthwise_proc::{clock, descendants};

/// Programs that only start others: their one child is not the child that is looked for.
const WRAPPERS: [&str; 12] =
    ["sh", "dash", "bash", "zsh", "env", "time", "nice", "taskset", "setarch", "stdbuf", "busybox", "make"];

/// A process or thread as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSnapshot {
    /// Its number.
    pub pid: u32,
    /// The parent process; for a thread, its process.
    pub parent: u32,
    /// Its parent is the launcher: it is the program, or an orphan.
    pub is_launched: bool,
    /// It is one of the programs that only start others.
    pub is_wrapper: bool,
    /// Its session, where that is known.
    pub session: Option<u32>,
}

/// All tasks that a launcher has started, as `/proc` shows them now. The launcher's own child counts once it
/// has executed the program.
pub fn all_tasks(mode: Mode, launcher: u32, launcher_file: Option<&PathBuf>) -> Vec<TaskSnapshot> {
    let mut snapshots = Vec::new();
    for (pid, parent) in descendants::descendants(launcher) {
        let program = descendants::program(pid);
        let is_launched = parent == launcher;
        if is_launched && (program.is_none() || program.as_ref() == launcher_file) {
            continue;
        }
        let is_wrapper = is_wrapper(program.as_deref());
        if mode == Mode::Threads {
            let of =
                |thread| TaskSnapshot { pid: thread, parent: pid, is_launched, is_wrapper, session: None };
            snapshots.extend(descendants::threads(pid).into_iter().map(of));
        } else {
            let session = descendants::session(pid);
            snapshots.push(TaskSnapshot { pid, parent, is_launched, is_wrapper, session });
        }
    }
    snapshots
}

/// The parent's living children or threads, and those of them that are not known yet. Cheap enough to be
/// called often, however many exist already.
pub fn new_tasks(mode: Mode, parent: u32, known: &dyn Fn(u32) -> bool) -> (Vec<TaskSnapshot>, Vec<u32>) {
    let living: Vec<u32> = if mode == Mode::Threads {
        descendants::threads(parent)
    } else {
        descendants::threads(parent)
            .into_iter()
            .flat_map(|thread| descendants::children(parent, thread))
            .collect()
    };
    let new = |pid: &u32| TaskSnapshot {
        pid: *pid,
        parent,
        is_launched: false,
        is_wrapper: mode != Mode::Threads && is_wrapper(descendants::program(*pid).as_deref()),
        session: if mode == Mode::Threads { None } else { descendants::session(*pid) },
    };
    let snapshots = living.iter().filter(|pid| !known(**pid)).map(new).collect();
    (snapshots, living)
}

/// Whether a program only starts others.
pub fn is_wrapper(program: Option<&Path>) -> bool {
    let name = program.and_then(|path| path.file_name());
    name.is_some_and(|name| WRAPPERS.iter().any(|wrapper| name == *wrapper))
}

/// The CPU time of a process, or of one of its threads, until now.
pub fn used(mode: Mode, process: u32, pid: u32) -> u64 {
    if mode == Mode::Threads {
        return thread_cpu(process, pid).unwrap_or(0);
    }
    descendants::threads(pid).into_iter().filter_map(|thread| thread_cpu(pid, thread)).sum()
}

/// The tasks whose CPU time is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A thread's own.
    Thread,
    /// A process's, with the processes that it will start.
    Tree,
    /// A process's own, with the threads that it will start.
    Process,
}

/// A counter of a task's CPU time from now on, and what the task has used so far.
///
/// `/proc` drops a process when it ends, and taskstats count ticks where the kernel has no delay accounting.
/// A kernel counter (`PERF_COUNT_SW_TASK_CLOCK`) outlives its task.
///
/// `/proc` has the time until a task's last tick or switch. `settle` brings it up to date, if it can.
pub fn counter(
    scope: Scope,
    process: u32,
    pid: u32,
    settle: &dyn Fn(u32) -> bool,
) -> Result<TaskCounter, Uncounted> {
    let open = |thread: u32| {
        let mut builder = perf_event::Builder::new(perf_event::events::Software::TASK_CLOCK);
        builder.observe_pid(thread as i32).any_cpu().exclude_hv(true);
        builder.inherit(scope != Scope::Thread).inherit_thread(scope == Scope::Process);
        match builder.build() {
            Ok(counter) if descriptors::is_spare(counter.as_raw_fd()) => Ok(Some(counter)),
            Err(error) if error.raw_os_error() != Some(libc::EMFILE) => Ok(None),
            _ => Err(Uncounted::Descriptors),
        }
    };
    // Only future threads inherit a counter: existing ones get a counter each.
    let threads = if scope == Scope::Thread { vec![pid] } else { descendants::threads(pid) };
    let opened: Result<Vec<Option<perf_event::Counter>>, Uncounted> = threads.into_iter().map(open).collect();
    let mut counters: Vec<perf_event::Counter> = opened?.into_iter().flatten().collect();
    if counters.is_empty() {
        return Err(Uncounted::Unavailable);
    }
    for counter in &mut counters {
        counter.enable().map_err(|_| Uncounted::Unavailable)?;
    }
    let is_single = counters.len() == 1;
    let mut counter = TaskCounter { counters, before: 0, is_exact: false };
    let mode = if scope == Scope::Thread { Mode::Threads } else { Mode::Fork };
    // Whatever was used until a reading and not counted was used before. A reading is too low or right, never too high.
    for _ in 0..MOST_READINGS {
        let began = clock::now();
        let is_settled = is_single && settle(pid);
        let before =
            used(mode, process, pid).saturating_sub(counter.counted().ok_or(Uncounted::Unavailable)?);
        counter.before = counter.before.max(before);
        counter.is_exact = is_settled && clock::now() - began < EXACT;
        if counter.is_exact || !is_settled {
            break;
        }
    }
    Ok(counter)
}

/// Why a task has no counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncounted {
    /// It has ended, or the kernel has none for us.
    Unavailable,
    /// No descriptor may be taken for it.
    Descriptors,
}

/// The time before a counter is exact if it was read within this time, in nanoseconds; a busy machine may need several readings.
const EXACT: u64 = 200_000;
const MOST_READINGS: usize = 3;

/// The CPU time of a task, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// All of it.
    pub ns: u64,
    /// The time before the counter is known; otherwise it is by ticks, and `ns` up to one too low.
    pub is_exact: bool,
}

/// Counts the CPU time of a task.
#[derive(Debug)]
pub struct TaskCounter {
    counters: Vec<perf_event::Counter>,
    before: u64,
    is_exact: bool,
}

impl TaskCounter {
    /// The task's total CPU time, including the time before it was counted.
    pub fn read(&mut self) -> Option<Counted> {
        Some(Counted { ns: self.before + self.counted()?, is_exact: self.is_exact })
    }

    fn counted(&mut self) -> Option<u64> {
        self.counters.iter_mut().map(perf_event::Counter::read).sum::<std::io::Result<u64>>().ok()
    }
}

/// Nanoseconds on a CPU: the first number of schedstat (Documentation/scheduler/sched-stats.rst).
fn thread_cpu(pid: u32, thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
