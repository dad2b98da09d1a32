//! The processes and threads that one program started: the parent, and its members (children or threads).
//! Each member gets a CPU of its own as soon as it exists, and an account of its own.
//!
//! [`ProcessTree::seen`] takes what is found in `/proc` and decides; it returns the affinities to set. Exact
//! times come from taskstats at the end ([`ProcessTree::members`]).

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::scale::{BeforeFork, Member, Mode};

use crate::scale::task_snapshot::{Counted, TaskSnapshot};
use crate::scale::worker_cpus::{self, Lanes};
use widthwise_proc::affinity::SetAffinity;
use widthwise_proc::clock;
use widthwise_proc::taskstats::Exit;

/// A process or thread that was seen.
#[derive(Debug, Clone)]
struct Task {
    parent: u32,
    /// It was reparented to the launcher when its own parent had ended.
    is_orphan: bool,
    /// When it was first seen, CLOCK_MONOTONIC.
    first_ns: u64,
    /// It was alive at the last look.
    lives: bool,
    /// Its CPU time when it was last seen.
    cpu_ns: u64,
    /// The CPUs of its last affinity, and all CPUs that it was ever put on.
    put_on: Option<Vec<u32>>,
    was_on: Vec<Vec<u32>>,
    moved_to: Option<String>,
    /// It only starts other programs.
    is_wrapper: bool,
    session: Option<u32>,
    /// It is a daemon that sleeps, and no member.
    is_daemon: bool,
}

/// A process in a session of its own whose parent has ended is taken for a daemon that sleeps until it has used this much
/// CPU time, in nanoseconds.
const DAEMON: u64 = 20_000_000;

impl Task {
    fn new(parent: u32, first_ns: u64, is_wrapper: bool) -> Task {
        Task {
            parent,
            is_orphan: false,
            first_ns,
            lives: false,
            cpu_ns: 0,
            put_on: None,
            was_on: Vec::new(),
            moved_to: None,
            is_wrapper,
            session: None,
            is_daemon: false,
        }
    }
}

/// The processes and threads of one program.
#[derive(Debug)]
pub struct ProcessTree {
    mode: Mode,
    expected: usize,
    /// All CPUs of the cell.
    anywhere: Vec<u32>,
    tasks: BTreeMap<u32, Task>,
    /// Numbers in the order in which they were first seen.
    order: Vec<u32>,
    /// The program that the launcher started.
    root: Option<u32>,
    /// The lane of each task; there is one member for each lane.
    lanes: Lanes,
    /// For a process with threads: whether its first thread has worked lately, and its CPU time when that was
    /// checked.
    first_thread: (bool, Option<(u64, u64)>),
    before_fork: Option<(u32, u64, u64)>,
}

impl ProcessTree {
    /// A tree that awaits `expected` members.
    pub fn new(mode: Mode, expected: usize, cpus: &[u32]) -> ProcessTree {
        let mut anywhere = cpus.to_vec();
        anywhere.sort_unstable();
        anywhere.dedup();
        ProcessTree {
            mode,
            expected,
            anywhere,
            tasks: BTreeMap::new(),
            order: Vec::new(),
            root: None,
            lanes: Lanes::new(expected, cpus),
            first_thread: (false, None),
            before_fork: None,
        }
    }

    /// Whether all members have been seen. A process that is alone so far may still fork.
    pub fn is_complete(&self) -> bool {
        self.chosen().is_some_and(|(parent, members)| {
            members.len() >= self.expected && (self.mode == Mode::Threads || !members.contains(&parent))
        })
    }

    /// Records all tasks that were seen at that time; returns the affinities to set.
    pub fn seen(&mut self, snapshots: &[TaskSnapshot], at_ns: u64) -> Vec<SetAffinity> {
        self.tasks.values_mut().for_each(|task| task.lives = false);
        self.meet(snapshots, at_ns)
    }

    /// Records the new children, or threads, of the parent, and which of all of them live.
    pub fn seen_more(
        &mut self,
        parent: u32,
        new: &[TaskSnapshot],
        living: &[u32],
        at_ns: u64,
    ) -> Vec<SetAffinity> {
        for (pid, task) in &mut self.tasks {
            if task.parent == parent && *pid != parent && !living.contains(pid) {
                task.lives = false;
            }
        }
        self.meet(new, at_ns)
    }

    fn meet(&mut self, snapshots: &[TaskSnapshot], at_ns: u64) -> Vec<SetAffinity> {
        for snapshot in snapshots {
            if snapshot.is_launched && self.root.is_none() {
                self.root = Some(if self.mode == Mode::Threads { snapshot.parent } else { snapshot.pid });
            }
            let is_orphan =
                self.mode != Mode::Threads && snapshot.is_launched && self.root != Some(snapshot.pid);
            let task = self.tasks.entry(snapshot.pid).or_insert_with(|| {
                self.order.push(snapshot.pid);
                Task { is_orphan, ..Task::new(snapshot.parent, at_ns, snapshot.is_wrapper) }
            });
            // Its parent may have ended since it was first seen.
            task.is_orphan |= is_orphan;
            task.lives = true;
            task.is_wrapper = snapshot.is_wrapper;
            task.session = snapshot.session.or(task.session);
        }
        self.find_daemons(&|_, task| task.is_orphan && task.cpu_ns < DAEMON);
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        let is_first = self.before_fork.is_none_or(|(known, _, _)| known != parent);
        let others = || members.iter().filter(|pid| **pid != parent);
        if is_first && others().next().is_some() {
            let cpu_ns = self.tasks.get(&parent).map_or(0, |task| task.cpu_ns);
            let first = others().filter_map(|pid| self.tasks.get(pid)).map(|p| p.first_ns).min();
            self.before_fork = Some((parent, cpu_ns, first.unwrap_or(at_ns)));
        }
        self.places(parent, &members)
    }

    /// Records what the living have used in total; returns the affinities that must change because of it.
    /// `used` returns the CPU time of a process or thread, and how long it has waited for a CPU.
    pub fn judge(&mut self, used: &dyn Fn(u32) -> Option<(u64, u64)>, at_ns: u64) -> Vec<SetAffinity> {
        for (pid, task) in self.tasks.iter_mut().filter(|(_, task)| task.lives) {
            let Some((cpu_ns, waited_ns)) = used(*pid) else { continue };
            task.cpu_ns = cpu_ns;
            task.is_daemon &= cpu_ns < DAEMON;
            self.lanes.judge(*pid, cpu_ns + waited_ns, at_ns);
        }
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        if let Some(used) = self.is_threads().then(|| used(parent)).flatten().map(|(cpu, wait)| cpu + wait) {
            match self.first_thread.1 {
                Some((then, before)) if at_ns > then => {
                    let works = worker_cpus::works(used.saturating_sub(before), at_ns - then);
                    self.first_thread = (works, Some((at_ns, used)));
                }
                _ => self.first_thread.1 = Some((at_ns, used)),
            }
        }
        self.lanes.spread();
        self.places(parent, &members)
    }

    /// Decides which of the processes in a session of their own are daemons that sleep: those that `sleeps` is true of.
    fn find_daemons(&mut self, sleeps: &dyn Fn(u32, &Task) -> bool) {
        let session_of = |pid| self.tasks.get(&pid).and_then(|task| task.session);
        // The parent is never an orphan. A program that runs in a session of its own has its children there, too.
        let root = self.root.and_then(session_of);
        let parent = self.chosen().and_then(|(parent, _)| session_of(parent));
        for (pid, task) in &mut self.tasks {
            let is_own = task.session.is_some() && root.is_some();
            let is_own = is_own && task.session != root && (parent.is_none() || task.session != parent);
            task.is_daemon = is_own && sleeps(*pid, task);
        }
    }

    /// Decides, after the run, which processes were daemons that sleep: those in a session of their own that were killed when the
    /// program had ended, if what was left over used no CPU time then.
    pub fn ended(&mut self, exits: &[(Exit, u64)], left_asleep: bool) {
        let status: BTreeMap<u32, i32> = exits
            .iter()
            .filter(|(exit, _)| exit.pid == exit.tgid)
            .map(|(exit, _)| (exit.pid, exit.status))
            .collect();
        let killed: BTreeSet<u32> = self
            .tasks
            .iter()
            .filter(|(pid, task)| match status.get(pid) {
                Some(status) => libc::WIFSIGNALED(*status) && libc::WTERMSIG(*status) == libc::SIGKILL,
                None => task.lives,
            })
            .map(|(pid, _)| *pid)
            .collect();
        self.find_daemons(&|pid, _| left_asleep && killed.contains(&pid));
    }

    fn is_threads(&self) -> bool {
        self.mode == Mode::Threads
    }

    /// The parent's CPU time when its first child, or thread, existed.
    pub fn parent_had(&mut self, cpu_ns: u64) {
        if let Some((_, known, _)) = &mut self.before_fork {
            *known = cpu_ns;
        }
    }

    /// The parent, if it was seen to fork, or to start a thread.
    pub fn has_forked(&self) -> Option<u32> {
        self.before_fork.map(|(parent, _, _)| parent)
    }

    /// Whether that process or thread was seen before.
    pub fn knows(&self, pid: u32) -> bool {
        self.tasks.contains_key(&pid)
    }

    /// The parent, whose CPU time at the fork matters.
    pub fn parent(&self) -> Option<u32> {
        self.chosen().map(|(parent, _)| parent)
    }

    /// Whether the program was not seen to fork any of the children that were asked for, and is its own only member.
    pub fn is_childless(&self) -> bool {
        self.mode == Mode::Fork && self.chosen().is_some_and(|(parent, members)| members == [parent])
    }

    /// Every child or thread that works for the program, of all members.
    pub fn member_pids(&self) -> Vec<u32> {
        self.chosen().map(|(_, members)| members).unwrap_or_default()
    }

    /// Those of them that were alive at the last look.
    pub fn living_members(&self) -> Vec<u32> {
        let lives = |pid: &u32| self.tasks.get(pid).is_some_and(|task| task.lives);
        self.member_pids().into_iter().filter(lives).collect()
    }

    /// The lane of a member's task.
    pub fn lane(&self, pid: u32) -> Option<usize> {
        self.lanes.lane(pid)
    }

    /// All CPUs that a task was put on, and when it was found, if it was while it lived.
    pub fn was_on(&self, pid: u32) -> Option<(BTreeSet<u32>, u64)> {
        let task = self.tasks.get(&pid).filter(|task| !task.was_on.is_empty())?;
        Some((task.was_on.iter().flatten().copied().collect(), task.first_ns))
    }

    /// The parent and the members: the tasks with the same parent. Of several parents it is the first, from
    /// the root, with as many children as expected, or else the one with the most. Programs that only start
    /// others are no parents. Orphans of its children count as its children.
    fn chosen(&self) -> Option<(u32, Vec<u32>)> {
        let mut of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in &self.order {
            if let Some(task) = self.tasks.get(pid).filter(|task| !task.is_orphan && !task.is_daemon) {
                of.entry(task.parent).or_default().push(*pid);
            }
        }
        if self.is_threads() {
            return self.chosen_threads(of);
        }
        let known = |pid: &u32| self.tasks.get(pid);
        let orphans = || {
            let is_one = |pid: &&u32| known(pid).is_some_and(|task| task.is_orphan && !task.is_daemon);
            self.order.iter().filter(is_one).copied()
        };
        let parents = |wrappers: bool| {
            let mut found: Vec<(u32, &Vec<u32>)> = of
                .iter()
                .filter(|(parent, _)| known(parent).is_some_and(|task| task.is_wrapper == wrappers))
                .map(|(parent, children)| (*parent, children))
                .collect();
            found.sort_by_key(|(parent, _)| self.order.iter().position(|pid| pid == parent));
            found
        };
        let candidates = parents(false);
        let exact = candidates.iter().find(|(_, children)| children.len() == self.expected);
        let most = candidates.iter().rev().max_by_key(|(_, children)| children.len());
        // The children of a shell or make may do the work: if it has as many as expected, and there are
        // several.
        let wrappers = parents(true);
        let started =
            wrappers.iter().find(|(_, children)| self.expected > 1 && children.len() >= self.expected);
        let too_few = most.is_none_or(|(_, children)| children.len() < self.expected);
        if let Some((parent, children)) = exact.or(started.filter(|_| too_few)).or(most) {
            return Some((*parent, children.iter().copied().chain(orphans()).collect()));
        }
        // A process that does not fork is its own only member; if it forked unseen, there are orphans.
        let is_program = |pid: &&u32| {
            known(pid).is_some_and(|task| !task.is_wrapper && !task.is_orphan && !task.is_daemon)
        };
        let alone = self.order.iter().rev().find(is_program)?;
        let orphans: Vec<u32> = orphans().collect();
        match orphans.is_empty() {
            true => (self.expected == 1).then(|| (*alone, vec![*alone])),
            false => Some((*alone, orphans)),
        }
    }

    /// The process that works with threads, and its threads. The first thread has its process's number. It
    /// counts as a worker, placed last, only if there would be too few without it: it may do other work.
    fn chosen_threads(&self, of: BTreeMap<u32, Vec<u32>>) -> Option<(u32, Vec<u32>)> {
        let known = |pid: &u32| self.tasks.get(pid);
        let (process, mut threads) = of.into_iter().max_by_key(|(process, threads)| {
            let used: u64 = threads.iter().filter_map(known).map(|task| task.cpu_ns).sum();
            let is_wrapper = known(process).is_some_and(|task| task.is_wrapper);
            (!is_wrapper, threads.len() > 1, used, threads.len())
        })?;
        threads.retain(|thread| *thread != process);
        if threads.len() < self.expected && known(&process).is_some() {
            threads.push(process);
        }
        Some((process, threads))
    }

    fn places(&mut self, parent: u32, members: &[u32]) -> Vec<SetAffinity> {
        let lives = |pid: &u32| self.tasks.get(pid).is_some_and(|task| task.lives);
        let is_threads = self.is_threads();
        let mut living: Vec<u32> =
            members.iter().copied().filter(|pid| lives(pid) && !(is_threads && *pid == parent)).collect();
        // The first thread may run anywhere, since threads that it starts inherit its affinity. But where it
        // works and one worker is missing, it gets the free CPU.
        let joins = is_threads && self.first_thread.0 && !living.is_empty();
        if joins && living.len() + 1 == self.expected && lives(&parent) {
            living.push(parent);
        }
        for pid in self.tasks.keys() {
            let is_member = members.contains(pid) && !(is_threads && *pid == parent);
            if !is_member && !living.contains(pid) {
                self.lanes.remove(*pid);
            }
        }
        self.lanes.live(&living);
        let mut changes = Vec::new();
        if self.anywhere.is_empty() {
            return changes;
        }
        for (pid, task) in &mut self.tasks {
            if !task.lives || task.moved_to.is_some() {
                continue;
            }
            let wanted = match self.lanes.lane(*pid).and_then(|lane| self.lanes.cpu(lane)) {
                Some(cpu) => vec![cpu],
                // A task that was wrongly taken for a member may run anywhere again.
                None if task.put_on.is_some() => self.anywhere.clone(),
                None => continue,
            };
            if task.put_on.as_ref() != Some(&wanted) {
                let first = task.put_on.is_none();
                task.put_on = Some(wanted.clone());
                task.was_on.push(wanted.clone());
                changes.push(SetAffinity { pid: *pid, cpus: wanted, first });
            }
        }
        changes
    }

    /// Whether a process that is seen for the first time, with these CPUs, has set its own affinity: its
    /// parent's affinity would be all CPUs of the cell.
    pub fn has_chosen(&self, change: &SetAffinity, cpus: &[u32]) -> bool {
        // A task inherits its parent's affinity. Which thread started another is unknown, and so is an
        // orphan's parent.
        let task = self.tasks.get(&change.pid);
        let parent = task.map(|task| task.parent);
        let is_anybodys = self.is_threads() || task.is_some_and(|task| task.is_orphan);
        let may_have_given = |pid: u32| pid != change.pid && (is_anybodys || Some(pid) == parent);
        let given = self.tasks.iter().any(|(pid, task)| {
            may_have_given(*pid) && task.was_on.iter().any(|place| place.as_slice() == cpus)
        });
        change.first && cpus != self.anywhere && cpus != change.cpus && !given
    }

    /// The CPU that a task was put on and has not left by itself.
    pub fn put_on(&self, pid: u32) -> Option<u32> {
        let task = self.tasks.get(&pid).filter(|task| task.moved_to.is_none())?;
        match task.put_on.as_deref() {
            Some([cpu]) => Some(*cpu),
            _ => None,
        }
    }

    /// Records the affinity that a member was found with, after it had been put on a CPU.
    pub fn found_on(&mut self, pid: u32, cpus: &[u32]) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            if task.put_on.as_deref().is_some_and(|put_on| put_on != cpus) {
                task.moved_to = Some(names_of(cpus));
                self.lanes.fix(pid);
            }
        }
    }

    /// Records members that ended unseen: children, or threads, of the parent whose exit the kernel reported.
    /// `root` is the first process.
    pub fn learn(&mut self, root: u32, exits: &[(Exit, u64)]) {
        let parent = match self.chosen() {
            Some((parent, members)) if !members.contains(&parent) || self.is_threads() => parent,
            _ => root,
        };
        let mut missed: Vec<(u64, u32)> = exits
            .iter()
            .filter(|(exit, _)| match self.mode {
                Mode::Threads => exit.tgid == parent,
                _ => exit.parent == parent && exit.pid == exit.tgid,
            })
            .filter(|(exit, _)| !self.tasks.contains_key(&exit.pid))
            .map(|(exit, reported_ns)| (reported_ns.saturating_sub(exit.elapsed_ns), exit.pid))
            .collect();
        missed.sort_unstable();
        for (began_ns, pid) in missed {
            // Allows the parent to be chosen, even if no child was seen at all.
            if !self.is_threads() && !self.tasks.contains_key(&parent) {
                self.order.insert(0, parent);
                self.tasks.insert(parent, Task::new(0, began_ns, false));
            }
            // A task that was never seen alive had no CPU of its own.
            self.order.push(pid);
            self.tasks.insert(pid, Task::new(parent, began_ns, false));
        }
        let Some((parent, members)) = self.chosen() else { return };
        let is_threads = self.is_threads();
        for pid in members.into_iter().filter(|pid| !is_threads || *pid != parent) {
            self.lanes.ended(pid);
        }
        // The first thread gets an otherwise unused lane; if there is none, it is no worker.
        if is_threads {
            self.lanes.remove(parent);
            if !self.lanes.unused().is_empty() && self.tasks.contains_key(&parent) {
                self.lanes.ended(parent);
            }
        }
    }

    /// The parent's figures at the fork; `began_ns` is when the program began.
    pub fn before_fork(&self, began_ns: u64, exits: &[(Exit, u64)]) -> Option<BeforeFork> {
        let (parent, cpu_ns, at_ns) = self.before_fork?;
        // The first member's end and duration give its start more exactly than the time at which it was seen.
        let members = self.member_pids();
        let reported = exits
            .iter()
            .filter(|(exit, _)| members.contains(&exit.pid) && exit.pid != parent)
            .map(|(exit, reported_ns)| reported_ns.saturating_sub(exit.elapsed_ns))
            .min();
        let at_ns = reported.map_or(at_ns, |reported| reported.min(at_ns)).max(began_ns);
        let elapsed_ns = at_ns - began_ns;
        // Its CPU time was read when the member was seen, which may be later than the fork, and includes the time before its
        // execve: each thread of the parent used at most the time that passed.
        let threads = exits.iter().filter(|(exit, _)| exit.tgid == parent).count().max(1) as u64;
        let threads = if self.is_threads() { 1 } else { threads };
        Some(BeforeFork { cpu_ns: cpu_ns.min(elapsed_ns.saturating_mul(threads)), elapsed_ns })
    }

    /// The members, one for each lane, from the observed tasks of the lane and the kernel's reports at their
    /// end. `counted` are CPU times counted from the time at which each task was first seen.
    pub fn members(
        &self,
        began_ns: u64,
        exits: &[(Exit, u64)],
        counted: &BTreeMap<u32, Counted>,
    ) -> Vec<Member> {
        let of_task = self.members_of_tasks(began_ns, exits, counted);
        let mut lanes: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for task in of_task {
            lanes.entry(self.lanes.lane(task.pid).unwrap_or(0)).or_default().push(task);
        }
        lanes.into_iter().filter_map(|(lane, tasks)| merged(self.lanes.cpu(lane), tasks)).collect()
    }

    /// Every process or thread that was a member or a part of one, each by itself.
    fn members_of_tasks(
        &self,
        began_ns: u64,
        exits: &[(Exit, u64)],
        counted: &BTreeMap<u32, Counted>,
    ) -> Vec<Member> {
        let is_threads = self.is_threads();
        let Some((parent, mut members)) = self.chosen() else { return Vec::new() };
        if is_threads && self.lanes.lane(parent).is_none() {
            members.retain(|pid| *pid != parent);
        }
        let parents: BTreeMap<u32, u32> = exits
            .iter()
            .map(|(exit, _)| (exit.tgid, exit.parent))
            .chain(self.tasks.iter().map(|(pid, task)| (*pid, task.parent)))
            .collect();
        // The member that a process is, or descends from.
        let head = |tgid: u32| {
            let mut at = tgid;
            for _ in 0..=parents.len() {
                if members.contains(&at) {
                    return Some(at);
                }
                at = *parents.get(&at)?;
            }
            None
        };
        let mut ends: BTreeMap<u32, Vec<&(Exit, u64)>> = BTreeMap::new();
        for end in exits {
            let whose = if is_threads { Some(end.0.pid) } else { head(end.0.tgid) };
            if let Some(whose) = whose {
                ends.entry(whose).or_default().push(end);
            }
        }
        let none = Vec::new();
        let one = |pid: &u32| {
            let task = self.tasks.get(pid)?;
            let own = ends.get(pid).unwrap_or(&none);
            let last = own.iter().find(|(exit, _)| exit.pid == *pid);
            let (began, ended) = match last {
                Some((exit, reported_ns)) => {
                    (reported_ns.saturating_sub(exit.elapsed_ns).max(began_ns), Some(*reported_ns))
                }
                None => (task.first_ns, None),
            };
            let reported: u64 = own.iter().map(|(exit, _)| exit.cpu_ns).sum();
            // The kernel reports an exit with the CPU time as of the last tick or switch.
            // The event also counts time that the host of a virtual machine took, and more than that tick tells of it.
            let is_reported = last.is_some() && own.iter().all(|(exit, _)| exit.is_exact);
            let most = if is_reported { reported + own.len() as u64 * clock::tick() } else { u64::MAX };
            let (cpu_ns, exact) = match counted.get(pid) {
                Some(counted) if counted.ns > most => (most, false),
                Some(counted) if counted.is_exact && counted.ns >= reported => (counted.ns, true),
                // Each of these is too low by a tick at most, or was read some time before the end.
                inexact => (inexact.map_or(0, |counted| counted.ns).max(reported).max(task.cpu_ns), false),
            };
            Some(Member {
                pid: *pid,
                others: Vec::new(),
                cpu: None,
                moved_to: task.moved_to.clone(),
                began_ns: began.saturating_sub(began_ns),
                ended_ns: ended.map(|ended| ended.saturating_sub(began_ns)),
                cpu_ns,
                exact,
                max_rss: last.map(|(exit, _)| exit.max_rss).filter(|_| !is_threads),
                reported: None,
            })
        };
        let mut tasks: Vec<Member> = members.iter().filter_map(one).collect();
        // An orphan's own CPU time is part of what its parent was counted with.
        for orphan in members.iter().filter(|pid| self.tasks.get(pid).is_some_and(|task| task.is_orphan)) {
            let own = tasks.iter().find(|task| task.pid == *orphan).map_or(0, |task| task.cpu_ns);
            let parent = self.tasks.get(orphan).map(|task| task.parent);
            if let Some(parent) = tasks.iter_mut().find(|task| Some(task.pid) == parent) {
                parent.cpu_ns = parent.cpu_ns.saturating_sub(own);
            }
        }
        tasks
    }

    /// Members that did not end well: their place where it is known, and the status as of wait4(2).
    pub fn failures(&self, exits: &[(Exit, u64)]) -> Vec<(Option<usize>, i32)> {
        if self.is_threads() {
            return Vec::new();
        }
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        // Those that ended before they were seen have places, too.
        let all = match members.len() < self.expected {
            true => with_unseen(parent, &members, exits),
            false => members.clone(),
        };
        // Other processes of that parent may have ended, too.
        let are_known = members.len() >= self.expected || all.len() == self.expected;
        let place = |pid: u32| all.iter().position(|one| *one == pid).filter(|_| are_known);
        exits
            .iter()
            // SIGTERM is how a parent ends workers that wait for more work (Python's pools do).
            .filter(|(exit, _)| exit.pid == exit.tgid && exit.status != 0 && exit.status != libc::SIGTERM)
            .filter(|(exit, _)| members.contains(&exit.pid))
            .map(|(exit, _)| (place(exit.pid), exit.status))
            .collect()
    }
}

/// The members and the other processes of their parent that have ended, in the order of their numbers.
fn with_unseen(parent: u32, members: &[u32], exits: &[(Exit, u64)]) -> Vec<u32> {
    let of_parent = exits.iter().filter(|(exit, _)| exit.pid == exit.tgid && exit.parent == parent);
    let all: BTreeSet<u32> = of_parent.map(|(exit, _)| exit.pid).chain(members.iter().copied()).collect();
    all.into_iter().collect()
}

/// CPUs as a report lists them.
pub fn names_of(cpus: &[u32]) -> String {
    let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
    names.join(",")
}

/// The tasks of a lane as one member: it has the number of the task that used most CPU time.
fn merged(cpu: Option<u32>, mut tasks: Vec<Member>) -> Option<Member> {
    tasks.sort_by_key(|task| std::cmp::Reverse(task.cpu_ns));
    let first = tasks.first()?.clone();
    Some(Member {
        cpu,
        others: tasks.iter().skip(1).map(|task| task.pid).collect(),
        moved_to: tasks.iter().find_map(|task| task.moved_to.clone()),
        began_ns: tasks.iter().map(|task| task.began_ns).min().unwrap_or(0),
        ended_ns: tasks.iter().map(|task| task.ended_ns).max_by_key(|at| at.unwrap_or(u64::MAX)).flatten(),
        cpu_ns: tasks.iter().map(|task| task.cpu_ns).sum(),
        exact: tasks.iter().all(|task| task.exact),
        max_rss: tasks.iter().filter_map(|task| task.max_rss).max(),
        ..first
    })
}

#[cfg(test)]
mod tests;
