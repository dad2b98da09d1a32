//! How an attempt at a cell of a study is made: started at one moment, each member on its CPU, watched, accounted for by
//! member, cleaned up; and how rounds of them are made.

mod account;

pub mod event_log;
mod group_memory;
pub mod lanes;
pub mod launcher_pool;
pub mod process_tree;
mod rounds;
mod task_snapshot;
mod waits;
mod watcher;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use widthwise_experiment::bytes;
use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::outcome::Ending;
use widthwise_experiment::placeholder;
use widthwise_experiment::scale::{Attempt, Cell, Mode, Purpose, Work};

use crate::run::{lay_out, shell, LaunchSpec, LeftBehind, Limits, RunError};
use crate::sampler::marks::Marks;
use crate::sampler::MARKS;

use account::accounted;
use event_log::EventLog;
pub use launcher_pool::LauncherPool;
use launcher_pool::Task;
pub use rounds::{measure, ScalingRounds, Slot};
use watcher::Watcher;

/// What an attempt is made of.
#[derive(Debug)]
pub struct Order<'a> {
    /// Which cell.
    pub cell: &'a Cell,
    /// What for.
    pub purpose: Purpose,
    /// The program; the words of [`widthwise_experiment::scale::WORDS`] are still to be filled in.
    pub start: &'a LaunchSpec,
    /// The CPU of each member; empty leaves them to the system.
    pub cpus: &'a [u32],
    /// CPUs that may be used at all: load runs on the others, and so do we.
    pub allowed: &'a [u32],
    /// Events, all members together, where they are known.
    pub events: Option<u64>,
    /// Work, which says how jobs share the events.
    pub work: Work,
    /// The bytes of one more variable.
    pub padding: usize,
    /// A program that runs on each of the other CPUs meanwhile.
    pub load: Option<&'a LaunchSpec>,
    /// What its answer is.
    pub check: &'a OutputCheck,
    /// How events are told.
    pub event_log: Option<&'a EventLog>,
}

/// Makes one attempt.
///
/// # Errors
/// A launcher is gone, the scratch folder cannot be written, or processes cannot be killed. How the program fares is no
/// error but the attempt's ending.
pub fn attempt(
    order: &Order,
    pool: &mut LauncherPool,
    scratch: &Path,
    limits: Limits,
    cancelled: &dyn Fn() -> bool,
) -> Result<Attempt, RunError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| RunError::Scratch { path, error }
    };
    std::fs::create_dir_all(scratch).map_err(at(scratch))?;
    let cell = order.cell;
    let count = if cell.mode == Mode::Jobs { cell.processes } else { 1 };
    let mut starts = Vec::new();
    let mut pipes = Vec::new();
    for index in 0..count {
        let mut start = filled(order, index);
        if matches!(order.event_log, Some(EventLog::Marks)) {
            let path = scratch.join(format!("marks-{index}"));
            pipes.push(Marks::open(&path).map_err(at(&path))?);
            start.environment.insert(MARKS.into(), path.into());
        }
        starts.push(start);
    }
    let mut tasks = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let cpus = match (cell.mode, order.cpus) {
            (_, []) => Vec::new(),
            (Mode::Jobs, cpus) => vec![cpus[index % cpus.len()]],
            (_, cpus) => cpus.to_vec(),
        };
        let output = scratch.join(format!("stdout-{index}"));
        // What another attempt wrote must not be taken for this one's.
        std::fs::File::create(&output).map_err(at(&output))?;
        tasks.push(Task { start, cpus, output, padding: order.padding, load: false });
    }
    let mut load: Vec<u32> = order.allowed.to_vec();
    load.retain(|cpu| !order.cpus.contains(cpu));
    for (index, &cpu) in load.iter().enumerate() {
        if let Some(start) = order.load {
            let output = scratch.join(format!("load-{index}"));
            tasks.push(Task { start, cpus: vec![cpu], output, padding: 0, load: true });
        }
    }
    if let Some(inputs) = &order.start.fresh {
        lay_out(&order.start.directory, inputs).map_err(at(&order.start.directory))?;
    }
    let _left = LeftBehind::of(order.start);
    if let Some(reason) = order.start.setup.as_ref().and_then(|text| shell(text, &starts[0]).err()) {
        return Ok(not_begun(order, Ending::HookFailed { reason: format!("setup {reason}") }));
    }
    // Our own work is done elsewhere, where there is an elsewhere without the load.
    let elsewhere = if load.is_empty() || order.load.is_some() { order.allowed } else { &load[..] };
    if !elsewhere.is_empty() {
        let _ = task_snapshot::set_affinity(&process_tree::SetAffinity {
            pid: 0,
            cpus: elsewhere.to_vec(),
            first: true,
        });
    }
    let mut watcher = Watcher::new(order, pipes);
    let result = pool.run_all(&tasks, limits, cancelled, &mut watcher)?;
    let mut attempt = accounted(order, &tasks, result, watcher);
    if let Some(reason) = order.start.teardown.as_ref().and_then(|text| shell(text, &starts[0]).err()) {
        if attempt.is_sound() {
            attempt.ending = Ending::HookFailed { reason: format!("teardown {reason}") };
            attempt.failure = Some(format!("teardown {reason}"));
        }
    }
    Ok(attempt)
}

/// The program of a job, or of all, with its words filled in.
fn filled(order: &Order, index: usize) -> LaunchSpec {
    let cell = order.cell;
    let is_job = cell.mode == Mode::Jobs;
    let jobs = cell.processes as u64;
    let (events, first) = match order.events {
        Some(events) if is_job => share(events, jobs, index as u64),
        Some(events) => (events, 0),
        None => (1, 0),
    };
    let words = BTreeMap::from([
        ("processes", if is_job { 1 } else { cell.processes }.to_string()),
        ("index", index.to_string()),
        ("events", events.to_string()),
        ("first", first.to_string()),
    ]);
    let mut start = order.start.clone();
    let fill = |text: &mut String| *text = placeholder::fill(text, &words);
    let word = |word: &mut OsString| *word = bytes::os(&placeholder::fill(&bytes::text(&*word), &words));
    start.arguments.iter_mut().for_each(word);
    start.environment.values_mut().filter(|value| value.as_bytes().contains(&b'{')).for_each(word);
    start.setup.iter_mut().chain(&mut start.teardown).for_each(fill);
    start
}

/// A job's part of the events, and the number of its first: parts that differ by one at most, in the order of the jobs.
fn share(events: u64, jobs: u64, index: u64) -> (u64, u64) {
    let (part, rest) = (events / jobs.max(1), events % jobs.max(1));
    (part + u64::from(index < rest), part * index + index.min(rest))
}

fn not_begun(order: &Order, ending: Ending) -> Attempt {
    Attempt {
        round: 0,
        position: 0,
        cell: order.cell.clone(),
        purpose: order.purpose,
        events: order.events,
        failure: Some(crate::ending::describe(&ending)),
        ending,
        elapsed_ns: 0,
        spread_ns: 0,
        cpu_ns: 0,
        parent_cpu_ns: None,
        cpu_wait: None,
        before_fork: None,
        members: Vec::new(),
        counters: BTreeMap::new(),
        memory: None,
        output_digest: None,
        remarks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_events_without_a_gap() {
        for (events, jobs) in [(800, 8), (10, 3), (2, 5), (0, 4)] {
            let mut next = 0;
            for index in 0..jobs {
                let (part, first) = share(events, jobs, index);
                assert_eq!(first, next, "{events} {jobs} {index}");
                next += part;
            }
            assert_eq!(next, events);
        }
    }
}
