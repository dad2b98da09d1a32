//! Watches a run: finds the tasks and sets their CPUs, reads how long they waited for a CPU, reads
//! marks, and has memory read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use widthwise_experiment::scale::{Mode, Purpose};

use crate::run::descriptors;
use crate::scale::group_memory::{self, GroupMemory};
use crate::scale::group_spec::GroupSpec;
use crate::scale::launcher_pool::RunObserver;
use crate::scale::process_tree::ProcessTree;
use crate::scale::task_snapshot::{self, Counted, Scope, TaskCounter, Uncounted};
use crate::scale::waits::Waits;
use widthwise_proc::affinity::{self, SetAffinity};
use widthwise_proc::cgroup::OwnQuotas;
use widthwise_proc::clock::now;
use widthwise_proc::descendants;
use widthwise_proc::sampler::marks::{self, Marks};

/// The interval between looks for members while some are awaited, or soon after one came: until then two of
/// them may share a CPU.
const AWAITING: Duration = Duration::from_millis(2);
const SOON: Duration = Duration::from_millis(50);
/// After this time without a new task, looks become less frequent.
const PATIENT: Duration = Duration::from_secs(5);
const LESS_OFTEN: Duration = Duration::from_millis(20);
/// How often the watcher checks whether the machine has a new process or thread; if so, it looks for members.
const ANYBODY_NEW: Duration = Duration::from_millis(10);
/// All tasks are read after at most this time, and after this share of the time that has passed: readings of
/// living tasks are then never older than that share of their lives.
const ALL_THERE: Duration = Duration::from_millis(100);
const SHARE: u32 = 4;
/// The pause after a look is at least this many times its length.
const PAUSE: u32 = 50;

/// Watches a run.
#[derive(Debug)]
pub(super) struct Watcher {
    mode: Mode,
    expected: usize,
    pins: bool,
    /// The CPU of each member.
    cpus: Vec<u32>,
    /// The CPUs that each job chose by itself, where it did.
    pub(super) moved_jobs: BTreeMap<usize, Vec<u32>>,
    /// CPUs that may be used at all.
    allowed: Vec<u32>,
    pub(super) tree: ProcessTree,
    pub(super) camera: Option<GroupMemory>,
    pub(super) pipes: Vec<Marks>,
    pub(super) waits: Waits,
    pub(super) own_quotas: OwnQuotas,
    launcher_file: Option<PathBuf>,
    load: Option<File>,
    newest_pid: Option<u32>,
    began: Instant,
    newest: Instant,
    seen: usize,
    /// When all tasks were last read, and when that is due again.
    all_seen: Option<(Instant, Duration)>,
    looked: Instant,
    look_again: Duration,
    photographed: Option<(Instant, Duration)>,
    pub(super) remarks: Vec<String>,
    /// A counter for each task of the members, and for the parent.
    counters: BTreeMap<u32, TaskCounter>,
    /// There is no descriptor for another.
    is_full: bool,
    /// The final counts of tasks that have ended.
    counted: BTreeMap<u32, Counted>,
    /// Counters for the CPU times that are requested after the run has ended.
    parents: BTreeMap<u32, TaskCounter>,
}

impl Watcher {
    pub(super) fn new(spec: &GroupSpec, pipes: Vec<Marks>) -> Watcher {
        let cell = spec.cell;
        let now = Instant::now();
        Watcher {
            mode: cell.mode,
            expected: cell.processes,
            pins: !spec.cpus.is_empty(),
            cpus: spec.cpus.to_vec(),
            moved_jobs: BTreeMap::new(),
            allowed: spec.allowed.to_vec(),
            tree: ProcessTree::new(cell.mode, cell.processes, spec.cpus),
            camera: (spec.purpose == Purpose::Memory)
                .then(|| GroupMemory::new(spec.start.resolved_runtime())),
            pipes,
            waits: Waits::default(),
            own_quotas: OwnQuotas::begin(),
            launcher_file: None,
            load: File::open("/proc/loadavg").ok(),
            newest_pid: None,
            began: now,
            newest: now,
            seen: 0,
            all_seen: None,
            looked: now,
            look_again: Duration::ZERO,
            photographed: None,
            remarks: Vec::new(),
            counters: BTreeMap::new(),
            is_full: false,
            counted: BTreeMap::new(),
            parents: BTreeMap::new(),
        }
    }

    /// The CPU time of each task of the members, and of the process that forked them if it is not a member, after all have
    /// ended.
    pub(super) fn counted(&mut self) -> (BTreeMap<u32, Counted>, Option<u64>) {
        let mut counted = std::mem::take(&mut self.counted);
        for (pid, counter) in &mut self.counters {
            counted.extend(counter.read().map(|ns| (*pid, ns)));
        }
        self.counters.clear();
        let is_parent = |parent: &u32| self.mode == Mode::Fork && !self.tree.member_pids().contains(parent);
        let parent = self.tree.parent().filter(is_parent);
        let last = |pid: u32| self.waits.process(pid).map(|reading| reading.ran_ns);
        let of_parent = parent.and_then(|pid| {
            self.parents
                .get_mut(&pid)
                .and_then(TaskCounter::read)
                .map(|counted| counted.ns)
                .or_else(|| last(pid))
        });
        (counted, of_parent)
    }

    /// Counts the CPU time of new members, and stores that of members that have ended.
    fn count_members(&mut self, living: Option<&[u32]>) {
        let Some(parent) = self.tree.parent() else { return };
        let members = self.tree.member_pids();
        let scope = if self.mode == Mode::Threads { Scope::Thread } else { Scope::Tree };
        for pid in members.iter().copied().filter(|_| !self.is_full) {
            if !self.counters.contains_key(&pid) && !self.counted.contains_key(&pid) {
                let settle = |pid| settle(pid, self.tree.put_on(pid), &self.allowed);
                match task_snapshot::counter(scope, parent, pid, &settle) {
                    Ok(counter) => _ = self.counters.insert(pid, counter),
                    Err(Uncounted::Unavailable) => {}
                    Err(Uncounted::Descriptors) => {
                        self.lacks_descriptors();
                        break;
                    }
                }
            }
        }
        if self.mode == Mode::Fork && !members.contains(&parent) && !self.parents.contains_key(&parent) {
            if let Ok(counter) = task_snapshot::counter(Scope::Process, parent, parent, &|_| false) {
                self.parents.insert(parent, counter);
            }
        }
        // A thread that has ended uses no more CPU time; a child's own children may continue without it.
        if let (Mode::Threads, Some(living)) = (self.mode, living) {
            let ended: Vec<u32> =
                self.counters.keys().copied().filter(|pid| *pid != parent && !living.contains(pid)).collect();
            self.is_full &= ended.is_empty();
            for pid in ended {
                let count = self.counters.remove(&pid).and_then(|mut counter| counter.read());
                self.counted.extend(count.map(|ns| (pid, ns)));
            }
        }
    }

    /// No further task is counted until one has ended.
    fn lacks_descriptors(&mut self) {
        self.is_full = true;
        let remark = format!(
            "the limit of {} open files left no counter for some {}: their CPU times are by ticks (`ulimit -Hn` shows the \
             limit)",
            descriptors::most(),
            self.mode.noun()
        );
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Whether the machine has a new process or thread since the last call: the last word of `/proc/loadavg`
    /// is the newest process number.
    fn is_anybody_new(&mut self) -> bool {
        let mut text = [0; 128];
        let read = self.load.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let newest = read.and_then(|length| {
            std::str::from_utf8(&text[..length]).ok()?.split_whitespace().last()?.parse().ok()
        });
        let is_known = newest.is_some() && newest == self.newest_pid;
        self.newest_pid = newest;
        !is_known
    }

    /// Finds living members, and puts new ones on a CPU.
    fn find_members(&mut self, launchers: &[u32]) {
        let began = Instant::now();
        let is_due = self.all_seen.is_none_or(|(at, gap)| at.elapsed() >= gap);
        let is_new = self.is_anybody_new();
        if !is_due && !is_new {
            self.look_again = self.pace(Duration::ZERO);
            return;
        }
        let launcher = launchers[0];
        if self.launcher_file.is_none() {
            self.launcher_file = descendants::program(launcher);
        }
        let members = self.tree.member_pids();
        let parent =
            self.tree.parent().filter(|parent| self.mode == Mode::Threads || !members.contains(parent));
        let known_fork = self.tree.has_forked();
        // Reads the whole tree at intervals: the chosen parent may be the wrong one.
        let (mut changes, living) = match parent.filter(|_| !is_due) {
            Some(parent) => {
                let (new, living) = task_snapshot::new_tasks(self.mode, parent, &|pid| self.tree.knows(pid));
                (self.tree.seen_more(parent, &new, &living, now()), Some(living))
            }
            None => {
                let snapshots = task_snapshot::all_tasks(self.mode, launcher, self.launcher_file.as_ref());
                let living = snapshots.iter().map(|snapshot| snapshot.pid).collect();
                (self.tree.seen(&snapshots, now()), Some(living))
            }
        };
        if let Some(parent) = self.tree.has_forked().filter(|parent| known_fork != Some(*parent)) {
            self.tree.parent_had(task_snapshot::used(self.mode, parent, parent));
        }
        self.set_affinities(&changes);
        self.count_members(living.as_deref());
        if is_due {
            self.read_waits(launchers);
            changes.extend(self.judge());
            let gap = (self.began.elapsed() / SHARE).clamp(AWAITING, ALL_THERE);
            self.all_seen = Some((Instant::now(), gap.max(began.elapsed() * PAUSE)));
        }
        if self.pins && changes.is_empty() {
            for pid in self.tree.living_members() {
                if let Some(cpus) = affinity::affinity(pid) {
                    self.tree.found_on(pid, &cpus);
                }
            }
        }
        let members = self.tree.member_pids().len();
        if members != self.seen {
            self.newest = Instant::now();
        }
        self.seen = members;
        self.look_again = self.pace(began.elapsed());
    }

    /// When to look again, after a look that took `took`.
    fn pace(&self, took: Duration) -> Duration {
        let quiet = self.newest.elapsed();
        let gap = match self.tree.is_complete() {
            true if quiet > SOON => ANYBODY_NEW,
            false if quiet > PATIENT => LESS_OFTEN,
            _ => AWAITING,
        };
        // Until all members exist, none waits for its placement.
        if self.tree.is_complete() {
            gap.max(took * PAUSE)
        } else {
            gap
        }
    }

    /// Moves members when several working ones are on the same CPU.
    fn judge(&mut self) -> Vec<SetAffinity> {
        let (waits, is_threads) = (&self.waits, self.mode == Mode::Threads);
        let used = |pid: u32| {
            let reading = if is_threads { waits.thread(pid) } else { waits.process(pid) };
            reading.map(|reading| (reading.ran_ns, reading.waited_ns))
        };
        let changes = self.tree.judge(&used, now());
        self.set_affinities(&changes);
        changes
    }

    fn set_affinities(&mut self, changes: &[SetAffinity]) {
        for change in changes {
            // Tasks that set their own CPU affinity keep it; the report lists them.
            if let Some(cpus) =
                affinity::affinity(change.pid).filter(|cpus| self.tree.has_chosen(change, cpus))
            {
                self.tree.found_on(change.pid, &cpus);
                continue;
            }
            match affinity::set_affinity(change) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) && self.remarks.is_empty() => {
                    self.remarks.push(format!(
                        "process {} could not be put on CPU {:?}: {error}",
                        change.pid, change.cpus
                    ));
                }
                _ => {}
            }
        }
    }

    /// Reads how long all tasks have waited, and for how long a quota of their own group stopped them.
    fn read_waits(&mut self, launchers: &[u32]) {
        let quotas = &mut self.own_quotas;
        self.waits.look(launchers, self.launcher_file.as_ref(), &mut |process| quotas.find(process));
        self.own_quotas.read();
    }

    /// Notes the job whose processes set their own affinity. The launcher had put it on its CPU.
    fn find_moved_job(&mut self, index: usize, launcher: u32) {
        let Some(cpu) = self.cpus.get(index % self.cpus.len().max(1)).copied() else { return };
        let mut found = BTreeSet::new();
        for (pid, parent) in descendants::descendants(launcher) {
            let program = descendants::program(pid);
            let is_begun = parent != launcher || program.is_some() && program != self.launcher_file;
            if is_begun && !task_snapshot::is_wrapper(program.as_deref()) {
                found.extend(affinity::affinity(pid).unwrap_or_default());
            }
        }
        if !found.is_empty() && !found.iter().eq(&[cpu]) {
            self.moved_jobs.insert(index, found.into_iter().collect());
        }
    }

    /// Reads how long jobs have waited, and where they are; no affinity is set.
    fn look_at_jobs(&mut self, launchers: &[u32]) {
        let began = Instant::now();
        if self.launcher_file.is_none() {
            self.launcher_file = launchers.first().and_then(|launcher| descendants::program(*launcher));
        }
        self.read_waits(launchers);
        for (index, &launcher) in launchers.iter().enumerate() {
            self.find_moved_job(index, launcher);
        }
        let gap = (self.began.elapsed() / SHARE).clamp(AWAITING, ALL_THERE);
        self.look_again = gap.max(began.elapsed() * PAUSE);
    }
}

/// Has the kernel bring a task's CPU time up to date, which it does when a task's affinity changes (set_cpus_allowed(),
/// kernel/sched/core.c): a second CPU is allowed for a moment. Whether it did.
fn settle(pid: u32, cpu: Option<u32>, allowed: &[u32]) -> bool {
    let Some(cpu) = cpu.filter(|cpu| affinity::affinity(pid).as_deref() == Some(&[*cpu])) else {
        return false;
    };
    let Some(other) = allowed.iter().find(|other| **other != cpu) else { return false };
    let put = |cpus| affinity::set_affinity(&SetAffinity { pid, cpus, first: false }).is_ok();
    // A task that sets its own affinity meanwhile keeps that.
    let both = [cpu.min(*other), cpu.max(*other)];
    put(both.to_vec()) && affinity::affinity(pid).as_deref() == Some(&both) && put(vec![cpu])
}

impl RunObserver for Watcher {
    /// A mark's time is that of its reading: it is read as soon as it is written. A program that writes without pause does not keep
    /// the watcher awake: what has just been read is read again after a pause.
    fn hear(&mut self) -> (Vec<RawFd>, Duration) {
        let at = now();
        self.pipes.iter_mut().for_each(|pipe| {
            pipe.hear(at);
        });
        let ready: Vec<RawFd> =
            self.pipes.iter().filter(|pipe| pipe.may_be_heard(at)).map(Marks::pipe).collect();
        let longest =
            if ready.len() < self.pipes.len() { Duration::from_nanos(marks::PAUSE) } else { Duration::MAX };
        (ready, longest)
    }

    fn look(&mut self, launchers: &[u32], groups: &[Option<PathBuf>]) -> Duration {
        let mut next = if self.pipes.is_empty() { ALL_THERE } else { LESS_OFTEN };
        if !launchers.is_empty() && self.looked.elapsed() >= self.look_again {
            match self.mode {
                Mode::Jobs => self.look_at_jobs(launchers),
                _ => self.find_members(launchers),
            }
            self.looked = Instant::now();
        }
        next = next.min(self.look_again.saturating_sub(self.looked.elapsed()));
        if let Some(camera) = &mut self.camera {
            let due = self.photographed.is_none_or(|(at, gap)| at.elapsed() >= gap);
            if due {
                let pids = group_memory::everyone(launchers);
                let (parent, members) = match self.mode {
                    Mode::Jobs => {
                        let roots =
                            launchers.iter().flat_map(|launcher| descendants::children(*launcher, *launcher));
                        (None, roots.collect())
                    }
                    Mode::Fork => (self.tree.parent(), self.tree.member_pids()),
                    // Threads share one memory.
                    Mode::Threads => (None, self.tree.parent().into_iter().collect()),
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
