//! Watches an attempt: looks who is there and puts each on its CPU, hears marks, has memory read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use widthwise_experiment::scale::{Mode, Purpose};

use super::crew::Overseer;
use super::family::{self, Family};
use super::snapshot::{self, Camera};
use super::Order;
use crate::memory::runtime_of;
use crate::sampler::marks::Marks;
use crate::sampler::{now, tree};

/// While members are still awaited they are looked for so often: until then they may be on each other's CPUs.
const AWAITING: Duration = Duration::from_millis(2);
/// When nobody new has come for so long, they are looked for less often.
const PATIENT: Duration = Duration::from_secs(5);
const LESS_OFTEN: Duration = Duration::from_millis(20);
/// What is looked at when all are there: whether they stay where they were put, and CPU times where nobody else tells.
const ALL_THERE: Duration = Duration::from_millis(100);
/// Watches an attempt.
#[derive(Debug)]
pub(super) struct Watcher {
    mode: Mode,
    expected: usize,
    pins: bool,
    pub(super) family: Family,
    pub(super) camera: Option<Camera>,
    pub(super) pipes: Vec<Marks>,
    poll_cpu: bool,
    launcher_file: Option<PathBuf>,
    newest: Instant,
    seen: usize,
    all_seen: Option<Instant>,
    looked: Instant,
    look_again: Duration,
    photographed: Option<(Instant, Duration)>,
    pub(super) remarks: Vec<String>,
    /// A counter for each member, and what it had used before.
    pub(super) counters: BTreeMap<u32, (perf_event::Counter, u64)>,
}

impl Watcher {
    pub(super) fn new(order: &Order, pipes: Vec<Marks>, poll_cpu: bool) -> Watcher {
        let cell = order.cell;
        let now = Instant::now();
        Watcher {
            mode: cell.mode,
            expected: cell.processes,
            pins: !order.cpus.is_empty(),
            family: Family::new(cell.mode, cell.processes, order.cpus),
            camera: (order.purpose == Purpose::Memory).then(|| Camera::new(runtime_of(order.start))),
            pipes,
            poll_cpu,
            launcher_file: None,
            newest: now,
            seen: 0,
            all_seen: None,
            looked: now,
            look_again: Duration::ZERO,
            photographed: None,
            remarks: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    /// Counts the CPU time of members that have come.
    fn count_members(&mut self) {
        let process = self.family.parent().unwrap_or(0);
        for pid in self.family.member_pids() {
            if !self.counters.contains_key(&pid) {
                if let Some(counter) = family::counter(self.mode, process, pid) {
                    self.counters.insert(pid, counter);
                }
            }
        }
    }

    /// Looks who is there, and puts whoever is new on a CPU.
    fn find_members(&mut self, launcher: u32) {
        if self.launcher_file.is_none() {
            self.launcher_file = tree::program(launcher);
        }
        let awaited = !self.family.is_complete();
        let parent = self.family.parent().filter(|parent| !self.family.member_pids().contains(parent));
        let sightings = match parent {
            // The whole tree now and then: who was taken for the parent need not be it.
            Some(parent) if self.all_seen.is_some_and(|at| at.elapsed() < ALL_THERE) => {
                family::sight_new(self.mode, parent, &|pid| self.family.knows(pid))
            }
            _ => {
                self.all_seen = Some(Instant::now());
                let with_cpu = awaited || self.poll_cpu;
                family::sight(self.mode, launcher, self.launcher_file.as_ref(), with_cpu)
            }
        };
        let puts = self.family.seen(&sightings, now());
        for put in &puts {
            // Whoever puts itself somewhere is left there, and told.
            if let Some(cpus) = family::allowed(put.pid).filter(|cpus| self.family.has_chosen(put, cpus)) {
                self.family.found_on(put.pid, &cpus);
                continue;
            }
            match family::put(put) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) && self.remarks.is_empty() => {
                    self.remarks
                        .push(format!("process {} could not be put on CPU {:?}: {error}", put.pid, put.cpus));
                }
                _ => {}
            }
        }
        self.count_members();
        if self.pins && puts.is_empty() {
            for pid in self.family.member_pids() {
                if let Some(cpus) = family::allowed(pid) {
                    self.family.found_on(pid, &cpus);
                }
            }
        }
        let members = self.family.member_pids().len();
        if members != self.seen {
            self.newest = Instant::now();
        }
        self.seen = members;
        self.look_again = if !awaited {
            ALL_THERE
        } else if self.newest.elapsed() > PATIENT {
            LESS_OFTEN
        } else {
            AWAITING
        };
    }
}

impl Overseer for Watcher {
    fn look(&mut self, launchers: &[u32], groups: &[Option<PathBuf>]) -> Duration {
        let at = now();
        for pipe in &mut self.pipes {
            pipe.hear(at);
        }
        let mut next = if self.pipes.is_empty() { ALL_THERE } else { LESS_OFTEN };
        if self.mode != Mode::Jobs {
            if let ([launcher, ..], true) = (launchers, self.looked.elapsed() >= self.look_again) {
                self.find_members(*launcher);
                self.looked = Instant::now();
            }
            next = next.min(self.look_again.saturating_sub(self.looked.elapsed()));
        }
        if let Some(camera) = &mut self.camera {
            let due = self.photographed.is_none_or(|(at, gap)| at.elapsed() >= gap);
            if due {
                let pids = snapshot::everyone(launchers);
                let (parent, members) = match self.mode {
                    Mode::Jobs => {
                        let roots =
                            launchers.iter().flat_map(|launcher| tree::children(*launcher, *launcher));
                        (None, roots.collect())
                    }
                    Mode::Fork => (self.family.parent(), self.family.member_pids()),
                    // Threads have their memory in common.
                    Mode::Threads => (None, self.family.parent().into_iter().collect()),
                };
                let expected = if self.mode == Mode::Threads { 1 } else { self.expected };
                let gap = camera.read(&pids, parent, &members, expected, groups);
                self.photographed = Some((Instant::now(), gap));
            }
            if let Some((at, gap)) = self.photographed {
                next = next.min(gap.saturating_sub(at.elapsed()));
            }
        }
        next
    }
}
