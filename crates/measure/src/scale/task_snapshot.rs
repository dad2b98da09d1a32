//! What `/proc` shows of one program's processes and threads: where they may run, and their CPU time.

use std::path::{Path, PathBuf};

use widthwise_experiment::scale::Mode;

use crate::proc::descendants;

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
            let of = |thread| TaskSnapshot { pid: thread, parent: pid, is_launched, is_wrapper };
            snapshots.extend(descendants::threads(pid).into_iter().map(of));
        } else {
            snapshots.push(TaskSnapshot { pid, parent, is_launched, is_wrapper });
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
    };
    let snapshots = living.iter().filter(|pid| !known(**pid)).map(new).collect();
    (snapshots, living)
}

fn is_wrapper(program: Option<&Path>) -> bool {
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
pub fn counter(scope: Scope, process: u32, pid: u32) -> Option<TaskCounter> {
    let open = |thread: u32| {
        let mut builder = perf_event::Builder::new(perf_event::events::Software::TASK_CLOCK);
        builder.observe_pid(thread as i32).any_cpu().exclude_hv(true);
        builder.inherit(scope != Scope::Thread).inherit_thread(scope == Scope::Process);
        builder.build().ok()
    };
    // Only future threads inherit a counter: existing ones get a counter each.
    let threads = if scope == Scope::Thread { vec![pid] } else { descendants::threads(pid) };
    let mut counters: Vec<perf_event::Counter> = threads.into_iter().filter_map(open).collect();
    if counters.is_empty() {
        return None;
    }
    let before = used(if scope == Scope::Thread { Mode::Threads } else { Mode::Fork }, process, pid);
    for counter in &mut counters {
        counter.enable().ok()?;
    }
    Some(TaskCounter { counters, before })
}

/// Counts the CPU time of a task.
#[derive(Debug)]
pub struct TaskCounter {
    counters: Vec<perf_event::Counter>,
    before: u64,
}

impl TaskCounter {
    /// The task's total CPU time, including the time before it was counted.
    pub fn read(&mut self) -> Option<u64> {
        let counted = self.counters.iter_mut().map(perf_event::Counter::read);
        Some(self.before + counted.sum::<std::io::Result<u64>>().ok()?)
    }
}

/// Nanoseconds on a CPU: the first number of schedstat (Documentation/scheduler/sched-stats.rst).
fn thread_cpu(pid: u32, thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
