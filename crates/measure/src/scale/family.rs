//! Who is who in what one program started: the parent, its children or threads; each is put on a CPU of its own as soon as
//! it is there, and accounted for by itself.
//!
//! What is found in `/proc` goes into [`Family::seen`], which decides; what has to be done comes out of it. Exact times come
//! from taskstats at the end ([`Family::members`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use widthwise_experiment::scale::{BeforeFork, Member, Mode};

use super::lanes::{self, Lanes};
use crate::sampler::tree;
use crate::taskstats::Exit;

/// Programs that only start others: their one child is not the child that is looked for.
const STARTERS: [&str; 12] =
    ["sh", "dash", "bash", "zsh", "env", "time", "nice", "taskset", "setarch", "stdbuf", "busybox", "make"];

/// A process or thread that was seen.
#[derive(Debug, Clone)]
struct Person {
    parent: u32,
    /// It came to the launcher when its own parent had ended.
    is_orphan: bool,
    /// When it was first seen and last, CLOCK_MONOTONIC.
    first_ns: u64,
    last_ns: u64,
    /// It was there when somebody looked last.
    lives: bool,
    /// Its CPU time when it was last seen.
    cpu_ns: u64,
    /// The CPUs on which it was put, and all on which it was ever put.
    put_on: Option<Vec<u32>>,
    was_on: Vec<Vec<u32>>,
    moved_to: Option<String>,
    /// It only starts others.
    starter: bool,
}

impl Person {
    fn new(parent: u32, first_ns: u64, starter: bool) -> Person {
        Person {
            parent,
            is_orphan: false,
            first_ns,
            last_ns: first_ns,
            lives: false,
            cpu_ns: 0,
            put_on: None,
            was_on: Vec::new(),
            moved_to: None,
            starter,
        }
    }
}

/// What was started by one program.
#[derive(Debug)]
pub struct Family {
    mode: Mode,
    expected: usize,
    /// All CPUs of the cell.
    anywhere: Vec<u32>,
    persons: BTreeMap<u32, Person>,
    /// Numbers in the order in which they were first seen.
    order: Vec<u32>,
    /// The program that the launcher started.
    root: Option<u32>,
    /// Who is where; there is one member for each lane.
    lanes: Lanes,
    /// Of a process with threads: whether its first thread has worked of late, and what it had used when that was asked.
    first_thread: (bool, Option<(u64, u64)>),
    before_fork: Option<(u32, u64, u64)>,
}

/// What is to be done: a process or thread, and the CPUs it is to be on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Its number.
    pub pid: u32,
    /// Where it is to be.
    pub cpus: Vec<u32>,
    /// It has not been put anywhere before.
    pub first: bool,
}

/// A process or thread as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Its number.
    pub pid: u32,
    /// Its parent's; of a thread: its process's.
    pub parent: u32,
    /// Its parent is the launcher: it is the program, or an orphan.
    pub is_launched: bool,
    /// It is one of the programs that only start others.
    pub starter: bool,
}

impl Family {
    /// A family of which `expected` members are awaited.
    pub fn new(mode: Mode, expected: usize, cpus: &[u32]) -> Family {
        let mut anywhere = cpus.to_vec();
        anywhere.sort_unstable();
        anywhere.dedup();
        Family {
            mode,
            expected,
            anywhere,
            persons: BTreeMap::new(),
            order: Vec::new(),
            root: None,
            lanes: Lanes::new(expected, cpus),
            first_thread: (false, None),
            before_fork: None,
        }
    }

    /// Whether all members have been seen. One process that is alone so far may still fork.
    pub fn is_complete(&self) -> bool {
        self.chosen().is_some_and(|(parent, members)| {
            members.len() >= self.expected && (self.mode == Mode::Threads || !members.contains(&parent))
        })
    }

    /// Takes in everyone who was seen at that moment, and says who is to be put where.
    pub fn seen(&mut self, sightings: &[Sighting], at_ns: u64) -> Vec<Put> {
        self.persons.values_mut().for_each(|person| person.lives = false);
        self.meet(sightings, at_ns)
    }

    /// Takes in those of the parent's children, or threads, that are new, and which of them all live.
    pub fn seen_more(&mut self, parent: u32, new: &[Sighting], living: &[u32], at_ns: u64) -> Vec<Put> {
        for (pid, person) in &mut self.persons {
            if person.parent == parent && *pid != parent && !living.contains(pid) {
                person.lives = false;
            }
        }
        self.meet(new, at_ns)
    }

    fn meet(&mut self, sightings: &[Sighting], at_ns: u64) -> Vec<Put> {
        for sighting in sightings {
            if sighting.is_launched && self.root.is_none() {
                self.root = Some(if self.mode == Mode::Threads { sighting.parent } else { sighting.pid });
            }
            let is_orphan =
                self.mode != Mode::Threads && sighting.is_launched && self.root != Some(sighting.pid);
            let person = self.persons.entry(sighting.pid).or_insert_with(|| {
                self.order.push(sighting.pid);
                Person { is_orphan, ..Person::new(sighting.parent, at_ns, sighting.starter) }
            });
            // Its parent may have ended since it was seen first.
            person.is_orphan |= is_orphan;
            person.last_ns = at_ns;
            person.lives = true;
            person.starter = sighting.starter;
        }
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        let is_first = self.before_fork.is_none_or(|(known, _, _)| known != parent);
        let others = || members.iter().filter(|pid| **pid != parent);
        if is_first && others().next().is_some() {
            let cpu_ns = self.persons.get(&parent).map_or(0, |person| person.cpu_ns);
            let first = others().filter_map(|pid| self.persons.get(pid)).map(|p| p.first_ns).min();
            self.before_fork = Some((parent, cpu_ns, first.unwrap_or(at_ns)));
        }
        self.places(parent, &members)
    }

    /// Takes in what the living have used, in all, and says who is to be put elsewhere because of it. `used` gives the CPU
    /// time of a process or thread, and how long it has waited for a CPU.
    pub fn judge(&mut self, used: &dyn Fn(u32) -> Option<(u64, u64)>, at_ns: u64) -> Vec<Put> {
        for (pid, person) in self.persons.iter_mut().filter(|(_, person)| person.lives) {
            let Some((cpu_ns, waited_ns)) = used(*pid) else { continue };
            person.cpu_ns = cpu_ns;
            self.lanes.judge(*pid, cpu_ns + waited_ns, at_ns);
        }
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        if let Some(used) = self.is_threads().then(|| used(parent)).flatten().map(|(cpu, wait)| cpu + wait) {
            match self.first_thread.1 {
                Some((then, before)) if at_ns > then => {
                    let works = lanes::works(used.saturating_sub(before), at_ns - then);
                    self.first_thread = (works, Some((at_ns, used)));
                }
                _ => self.first_thread.1 = Some((at_ns, used)),
            }
        }
        self.lanes.spread();
        self.places(parent, &members)
    }

    fn is_threads(&self) -> bool {
        self.mode == Mode::Threads
    }

    /// The parent's CPU time when its first child, or thread, was there.
    pub fn parent_had(&mut self, cpu_ns: u64) {
        if let Some((_, known, _)) = &mut self.before_fork {
            *known = cpu_ns;
        }
    }

    /// The parent, if it has been seen to fork, or to start a thread.
    pub fn has_forked(&self) -> Option<u32> {
        self.before_fork.map(|(parent, _, _)| parent)
    }

    /// Whether that process or thread was seen before.
    pub fn knows(&self, pid: u32) -> bool {
        self.persons.contains_key(&pid)
    }

    /// Who the parent is, whose CPU time at the fork matters.
    pub fn parent(&self) -> Option<u32> {
        self.chosen().map(|(parent, _)| parent)
    }

    /// Every child or thread that works for the program, whichever member it belongs to.
    pub fn member_pids(&self) -> Vec<u32> {
        self.chosen().map(|(_, members)| members).unwrap_or_default()
    }

    /// Those of them that lived when somebody looked last.
    pub fn living_members(&self) -> Vec<u32> {
        let lives = |pid: &u32| self.persons.get(pid).is_some_and(|person| person.lives);
        self.member_pids().into_iter().filter(lives).collect()
    }

    /// The lane of a member's task.
    pub fn lane(&self, pid: u32) -> Option<usize> {
        self.lanes.lane(pid)
    }

    /// Whether one of the members has chosen its CPUs by itself.
    pub fn moved_to(&self) -> impl Iterator<Item = &str> {
        self.persons.values().filter_map(|person| person.moved_to.as_deref())
    }

    /// The parent and the members: those whose parent is the same. Of several parents the first, from the root, that has as
    /// many as are expected, or else the one that has most. Who only starts others is none. Orphans of its children are
    /// its children.
    fn chosen(&self) -> Option<(u32, Vec<u32>)> {
        let mut of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in &self.order {
            if let Some(person) = self.persons.get(pid).filter(|person| !person.is_orphan) {
                of.entry(person.parent).or_default().push(*pid);
            }
        }
        if self.is_threads() {
            return self.chosen_threads(of);
        }
        let known = |pid: &u32| self.persons.get(pid);
        let orphans = || {
            let is_one = |pid: &&u32| known(pid).is_some_and(|person| person.is_orphan);
            self.order.iter().filter(is_one).copied()
        };
        let parents = |starters: bool| {
            let mut found: Vec<(u32, &Vec<u32>)> = of
                .iter()
                .filter(|(parent, _)| known(parent).is_some_and(|person| person.starter == starters))
                .map(|(parent, children)| (*parent, children))
                .collect();
            found.sort_by_key(|(parent, _)| self.order.iter().position(|pid| pid == parent));
            found
        };
        let candidates = parents(false);
        let exact = candidates.iter().find(|(_, children)| children.len() == self.expected);
        let most = candidates.iter().rev().max_by_key(|(_, children)| children.len());
        // A shell or make may be the one whose children do the work: when it has as many, and there are several.
        let starters = parents(true);
        let started =
            starters.iter().find(|(_, children)| self.expected > 1 && children.len() >= self.expected);
        let too_few = most.is_none_or(|(_, children)| children.len() < self.expected);
        if let Some((parent, children)) = exact.or(started.filter(|_| too_few)).or(most) {
            return Some((*parent, children.iter().copied().chain(orphans()).collect()));
        }
        // One that does not fork is its own only member; if it forked, and nobody saw, there are orphans.
        let is_program = |pid: &&u32| known(pid).is_some_and(|person| !person.starter && !person.is_orphan);
        let alone = self.order.iter().rev().find(is_program)?;
        let orphans: Vec<u32> = orphans().collect();
        match orphans.is_empty() {
            true => (self.expected == 1).then(|| (*alone, vec![*alone])),
            false => Some((*alone, orphans)),
        }
    }

    /// The process that works with threads, and its threads. The first has its process's number. It is a worker, the last
    /// to be placed, if there would be too few without it: it began first, and may do something else besides.
    fn chosen_threads(&self, of: BTreeMap<u32, Vec<u32>>) -> Option<(u32, Vec<u32>)> {
        let known = |pid: &u32| self.persons.get(pid);
        let (process, mut threads) = of.into_iter().max_by_key(|(process, threads)| {
            let used: u64 = threads.iter().filter_map(known).map(|person| person.cpu_ns).sum();
            let is_starter = known(process).is_some_and(|person| person.starter);
            (!is_starter, threads.len() > 1, used, threads.len())
        })?;
        threads.retain(|thread| *thread != process);
        if threads.len() < self.expected && known(&process).is_some() {
            threads.push(process);
        }
        Some((process, threads))
    }

    fn places(&mut self, parent: u32, members: &[u32]) -> Vec<Put> {
        let lives = |pid: &u32| self.persons.get(pid).is_some_and(|person| person.lives);
        let is_threads = self.is_threads();
        let mut living: Vec<u32> =
            members.iter().copied().filter(|pid| lives(pid) && !(is_threads && *pid == parent)).collect();
        // The first thread may run anywhere, since others that it starts begin where it is; but where it works beside one too
        // few, the free CPU is its own.
        let joins = is_threads && self.first_thread.0 && !living.is_empty();
        if joins && living.len() + 1 == self.expected && lives(&parent) {
            living.push(parent);
        }
        for pid in self.persons.keys() {
            let is_member = members.contains(pid) && !(is_threads && *pid == parent);
            if !is_member && !living.contains(pid) {
                self.lanes.remove(*pid);
            }
        }
        self.lanes.live(&living);
        let mut puts = Vec::new();
        if self.anywhere.is_empty() {
            return puts;
        }
        for (pid, person) in &mut self.persons {
            if !person.lives || person.moved_to.is_some() {
                continue;
            }
            let wanted = match self.lanes.lane(*pid).and_then(|lane| self.lanes.cpu(lane)) {
                Some(cpu) => vec![cpu],
                // Who was taken for a member and is none may run anywhere again.
                None if person.put_on.is_some() => self.anywhere.clone(),
                None => continue,
            };
            if person.put_on.as_ref() != Some(&wanted) {
                let first = person.put_on.is_none();
                person.put_on = Some(wanted.clone());
                person.was_on.push(wanted.clone());
                puts.push(Put { pid: *pid, cpus: wanted, first });
            }
        }
        puts
    }

    /// Whether a process that is seen for the first time, and may run there, has chosen that by itself: what it was given by
    /// its parent is all CPUs of the cell.
    pub fn has_chosen(&self, put: &Put, cpus: &[u32]) -> bool {
        // Whoever was started by one that was put somewhere has been given that place. Which thread has started another, and
        // whose child an orphan was, is not known.
        let person = self.persons.get(&put.pid);
        let parent = person.map(|person| person.parent);
        let is_anybodys = self.is_threads() || person.is_some_and(|person| person.is_orphan);
        let may_have_given = |pid: u32| pid != put.pid && (is_anybodys || Some(pid) == parent);
        let given = self.persons.iter().any(|(pid, person)| {
            may_have_given(*pid) && person.was_on.iter().any(|place| place.as_slice() == cpus)
        });
        put.first && cpus != self.anywhere && cpus != put.cpus && !given
    }

    /// Takes in where a member was found, when it had been put somewhere before.
    pub fn found_on(&mut self, pid: u32, cpus: &[u32]) {
        if let Some(person) = self.persons.get_mut(&pid) {
            if person.put_on.as_deref().is_some_and(|put_on| put_on != cpus) {
                let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
                person.moved_to = Some(names.join(","));
                self.lanes.fix(pid);
            }
        }
    }

    /// Takes in members that were gone before anybody looked: those of the parent's children, or threads, whose end the
    /// kernel told. `root` is the first process.
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
            .filter(|(exit, _)| !self.persons.contains_key(&exit.pid))
            .map(|(exit, told_ns)| (told_ns.saturating_sub(exit.elapsed_ns), exit.pid))
            .collect();
        missed.sort_unstable();
        for (began_ns, pid) in missed {
            // So that the parent can be chosen, even if nobody was seen at all.
            if !self.is_threads() && !self.persons.contains_key(&parent) {
                self.order.insert(0, parent);
                self.persons.insert(parent, Person::new(0, began_ns, false));
            }
            // Whoever is not known to have been looked for was on no CPU of its own.
            self.order.push(pid);
            self.persons.insert(pid, Person::new(parent, began_ns, false));
        }
        let Some((parent, members)) = self.chosen() else { return };
        let is_threads = self.is_threads();
        for pid in members.into_iter().filter(|pid| !is_threads || *pid != parent) {
            self.lanes.ended(pid);
        }
        // The first thread has a lane of its own if nobody else has it; if somebody has, it is no worker.
        if is_threads {
            self.lanes.remove(parent);
            if !self.lanes.unused().is_empty() && self.persons.contains_key(&parent) {
                self.lanes.ended(parent);
            }
        }
    }

    /// The parent's figures at the fork; `began_ns` is when the program began.
    pub fn before_fork(&self, began_ns: u64, exits: &[(Exit, u64)]) -> Option<BeforeFork> {
        let (parent, cpu_ns, at_ns) = self.before_fork?;
        // The first member's beginning is known better from its end than from the moment at which it was seen.
        let members = self.member_pids();
        let told = exits
            .iter()
            .filter(|(exit, _)| members.contains(&exit.pid) && exit.pid != parent)
            .map(|(exit, told_ns)| told_ns.saturating_sub(exit.elapsed_ns))
            .min();
        let at_ns = told.map_or(at_ns, |told| told.min(at_ns)).max(began_ns);
        Some(BeforeFork { cpu_ns, elapsed_ns: at_ns - began_ns })
    }

    /// The members, one for each lane, by what was seen of those in it and what the kernel told at their end. `counted` are
    /// CPU times that were counted from the moment at which each was first seen.
    pub fn members(&self, began_ns: u64, exits: &[(Exit, u64)], counted: &BTreeMap<u32, u64>) -> Vec<Member> {
        let of_task = self.tasks(began_ns, exits, counted);
        let mut lanes: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for task in of_task {
            lanes.entry(self.lanes.lane(task.pid).unwrap_or(0)).or_default().push(task);
        }
        lanes.into_iter().filter_map(|(lane, tasks)| merged(self.lanes.cpu(lane), tasks)).collect()
    }

    /// Every process or thread that was a member or a part of one, each by itself.
    fn tasks(&self, began_ns: u64, exits: &[(Exit, u64)], counted: &BTreeMap<u32, u64>) -> Vec<Member> {
        let is_threads = self.is_threads();
        let Some((parent, mut members)) = self.chosen() else { return Vec::new() };
        if is_threads && self.lanes.lane(parent).is_none() {
            members.retain(|pid| *pid != parent);
        }
        let parents: BTreeMap<u32, u32> = exits
            .iter()
            .map(|(exit, _)| (exit.tgid, exit.parent))
            .chain(self.persons.iter().map(|(pid, person)| (*pid, person.parent)))
            .collect();
        // Whose child it is, or whose child's child.
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
            let person = self.persons.get(pid)?;
            let own = ends.get(pid).unwrap_or(&none);
            let last = own.iter().find(|(exit, _)| exit.pid == *pid);
            let (began, ended) = match last {
                Some((exit, told_ns)) => (told_ns.saturating_sub(exit.elapsed_ns).max(began_ns), *told_ns),
                None => (person.first_ns, person.last_ns),
            };
            let told: u64 = own.iter().map(|(exit, _)| exit.cpu_ns).sum();
            let is_told = last.is_some() && own.iter().all(|(exit, _)| exit.is_exact);
            let (cpu_ns, exact) = match counted.get(pid) {
                _ if is_told => (told, true),
                Some(counted) => (*counted, true),
                // Ticks, or what was read at some moment before the end: both say too little.
                None => (told.max(person.cpu_ns), false),
            };
            Some(Member {
                pid: *pid,
                others: Vec::new(),
                cpu: None,
                moved_to: person.moved_to.clone(),
                began_ns: began.saturating_sub(began_ns),
                ended_ns: ended.saturating_sub(began_ns),
                cpu_ns,
                exact,
                peak_resident: last.map(|(exit, _)| exit.peak_resident).filter(|_| !is_threads),
                told: None,
            })
        };
        let mut tasks: Vec<Member> = members.iter().filter_map(one).collect();
        // What its parent was counted with is its own.
        for orphan in
            members.iter().filter(|pid| self.persons.get(pid).is_some_and(|person| person.is_orphan))
        {
            let own = tasks.iter().find(|task| task.pid == *orphan).map_or(0, |task| task.cpu_ns);
            let parent = self.persons.get(orphan).map(|person| person.parent);
            if let Some(parent) = tasks.iter_mut().find(|task| Some(task.pid) == parent) {
                parent.cpu_ns = parent.cpu_ns.saturating_sub(own);
            }
        }
        tasks
    }

    /// Members that did not end well: their place, and the status as of wait4(2).
    pub fn failures(&self, exits: &[(Exit, u64)]) -> Vec<(usize, i32)> {
        if self.is_threads() {
            return Vec::new();
        }
        let members = self.member_pids();
        exits
            .iter()
            // SIGTERM is how a parent ends workers that wait for more (Python's pools do).
            .filter(|(exit, _)| exit.pid == exit.tgid && exit.status != 0 && exit.status != libc::SIGTERM)
            .filter_map(|(exit, _)| Some((members.iter().position(|pid| *pid == exit.pid)?, exit.status)))
            .collect()
    }
}

/// Those who were in a lane, as one member: it has the number of the one that used most.
fn merged(cpu: Option<u32>, mut tasks: Vec<Member>) -> Option<Member> {
    tasks.sort_by_key(|task| std::cmp::Reverse(task.cpu_ns));
    let first = tasks.first()?.clone();
    Some(Member {
        cpu,
        others: tasks.iter().skip(1).map(|task| task.pid).collect(),
        moved_to: tasks.iter().find_map(|task| task.moved_to.clone()),
        began_ns: tasks.iter().map(|task| task.began_ns).min().unwrap_or(0),
        ended_ns: tasks.iter().map(|task| task.ended_ns).max().unwrap_or(0),
        cpu_ns: tasks.iter().map(|task| task.cpu_ns).sum(),
        exact: tasks.iter().all(|task| task.exact),
        peak_resident: tasks.iter().filter_map(|task| task.peak_resident).max(),
        ..first
    })
}

/// Everyone that a launcher has started, as `/proc` shows it now. The launcher's own child does not count before it has
/// executed the program.
pub fn sight(mode: Mode, launcher: u32, launcher_file: Option<&PathBuf>) -> Vec<Sighting> {
    let mut sightings = Vec::new();
    for (pid, parent) in tree::descendants(launcher) {
        let program = tree::program(pid);
        let is_launched = parent == launcher;
        if is_launched && (program.is_none() || program.as_ref() == launcher_file) {
            continue;
        }
        let starter = is_starter(program.as_deref());
        if mode == Mode::Threads {
            let of = |thread| Sighting { pid: thread, parent: pid, is_launched, starter };
            sightings.extend(tree::threads(pid).into_iter().map(of));
        } else {
            sightings.push(Sighting { pid, parent, is_launched, starter });
        }
    }
    sightings
}

/// Which children or threads of the parent live, and those of them that are not known yet: what is worth a look now and then,
/// however many there are already.
pub fn sight_new(mode: Mode, parent: u32, known: &dyn Fn(u32) -> bool) -> (Vec<Sighting>, Vec<u32>) {
    let living: Vec<u32> = if mode == Mode::Threads {
        tree::threads(parent)
    } else {
        tree::threads(parent).into_iter().flat_map(|thread| tree::children(parent, thread)).collect()
    };
    let new = |pid: &u32| Sighting {
        pid: *pid,
        parent,
        is_launched: false,
        starter: mode != Mode::Threads && is_starter(tree::program(*pid).as_deref()),
    };
    let sightings = living.iter().filter(|pid| !known(**pid)).map(new).collect();
    (sightings, living)
}

fn is_starter(program: Option<&std::path::Path>) -> bool {
    let name = program.and_then(|path| path.file_name());
    name.is_some_and(|name| STARTERS.iter().any(|starter| name == *starter))
}

/// The CPU time of a process until now, or of one of its threads.
pub fn used(mode: Mode, process: u32, pid: u32) -> u64 {
    if mode == Mode::Threads {
        return thread_cpu(process, pid).unwrap_or(0);
    }
    tree::threads(pid).into_iter().filter_map(|thread| thread_cpu(pid, thread)).sum()
}

/// Whose CPU time is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A thread's own.
    Thread,
    /// A process's, with what it will start.
    Tree,
    /// A process's own, with the threads that it will start.
    Process,
}

/// The CPU time of a task from now on; what it has used so far.
///
/// `/proc` forgets a process when it ends, and taskstats count ticks where the kernel has no delay accounting: a counter of
/// the kernel's own (`PERF_COUNT_SW_TASK_CLOCK`) outlives whom it counts.
pub fn counter(scope: Scope, process: u32, pid: u32) -> Option<TaskCounter> {
    let open = |thread: u32| {
        let mut builder = perf_event::Builder::new(perf_event::events::Software::TASK_CLOCK);
        builder.observe_pid(thread as i32).any_cpu().exclude_hv(true);
        builder.inherit(scope != Scope::Thread).inherit_thread(scope == Scope::Process);
        builder.build().ok()
    };
    // Only threads to come are inherited: those that are there have a counter each.
    let threads = if scope == Scope::Thread { vec![pid] } else { tree::threads(pid) };
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
    /// All that it has used, what was used before it was counted included.
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

/// Puts a process or thread on these CPUs; it may be gone.
pub fn put(put: &Put) -> std::io::Result<()> {
    // SAFETY: a cpu_set_t is plain bits, and zero is its empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in &put.cpus {
        if (cpu as usize) < 8 * std::mem::size_of_val(&set) {
            // SAFETY: within the set.
            unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        }
    }
    // SAFETY: a valid set of its own size.
    let result = unsafe { libc::sched_setaffinity(put.pid as i32, std::mem::size_of_val(&set), &set) };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Where a process or thread may run; nothing if it is gone.
pub fn allowed(pid: u32) -> Option<Vec<u32>> {
    // SAFETY: a cpu_set_t is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a valid set of its own size.
    if unsafe { libc::sched_getaffinity(pid as i32, std::mem::size_of_val(&set), &mut set) } < 0 {
        return None;
    }
    // SAFETY: within the set.
    Some(
        (0..8 * std::mem::size_of_val(&set))
            .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
            .map(|cpu| cpu as u32)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(pid: u32, parent: u32, starter: bool) -> Sighting {
        Sighting { pid, parent, is_launched: parent == 1, starter }
    }

    #[test]
    fn each_child_is_put_on_a_cpu_of_its_own_once() {
        let mut family = Family::new(Mode::Fork, 2, &[4, 6]);
        assert!(family.seen(&[sighting(10, 1, false)], 5).is_empty());
        let puts = family.seen(&[sighting(10, 1, false), sighting(11, 10, false)], 6);
        assert_eq!(puts, [Put { pid: 11, cpus: vec![4], first: true }]);
        assert!(family.has_chosen(&puts[0], &[6]) && !family.has_chosen(&puts[0], &[4, 6]));
        let all = [sighting(10, 1, false), sighting(11, 10, false), sighting(12, 10, false)];
        assert_eq!(family.seen(&all, 7), [Put { pid: 12, cpus: vec![6], first: true }]);
        assert!(family.is_complete());
        assert!(family.seen(&all, 8).is_empty());
        family.parent_had(7);
        assert_eq!(family.before_fork(1, &[]), Some(BeforeFork { cpu_ns: 7, elapsed_ns: 5 }));
    }

    #[test]
    fn a_shell_that_starts_the_program_is_no_parent_and_the_program_no_child() {
        let mut family = Family::new(Mode::Fork, 1, &[0]);
        let start = [sighting(10, 1, true), sighting(11, 10, false)];
        family.seen(&start, 1);
        let mut all = start.to_vec();
        all.push(sighting(12, 11, false));
        family.seen(&all, 2);
        assert_eq!(family.member_pids(), [12]);
        assert_eq!(family.parent(), Some(11));
    }

    #[test]
    fn who_was_taken_for_a_member_may_run_anywhere_again() {
        // A starter that is not known as one: the program is its only child, until it has children itself.
        let mut family = Family::new(Mode::Fork, 2, &[0, 1]);
        let start = [sighting(10, 1, false), sighting(11, 10, false)];
        assert_eq!(family.seen(&start, 1), [Put { pid: 11, cpus: vec![0], first: true }]);
        let all = [start[0].clone(), start[1].clone(), sighting(12, 11, false), sighting(13, 11, false)];
        let mut puts = family.seen(&all, 2);
        puts.sort_by_key(|put| put.pid);
        let put = |pid, cpus: &[u32], first| Put { pid, cpus: cpus.to_vec(), first };
        assert_eq!(puts, [put(11, &[0, 1], false), put(12, &[0], true), put(13, &[1], true)]);
        assert_eq!(family.parent(), Some(11));
    }

    #[test]
    fn a_shell_whose_children_do_the_work_is_the_parent() {
        let mut family = Family::new(Mode::Fork, 2, &[0, 1]);
        family.seen(&[sighting(10, 1, true), sighting(11, 10, false)], 1);
        assert!(family.member_pids().is_empty());
        family.seen(&[sighting(12, 10, false)], 2);
        assert_eq!((family.parent(), family.member_pids()), (Some(10), vec![11, 12]));
    }

    #[test]
    fn a_pool_that_follows_another_takes_its_places_and_belongs_to_the_same_members() {
        for mode in [Mode::Fork, Mode::Threads] {
            let mut family = Family::new(mode, 2, &[4, 6]);
            let one = |pid| Sighting { pid, parent: 10, is_launched: false, starter: false };
            let parent = Sighting { pid: 10, parent: if mode == Mode::Fork { 1 } else { 10 }, ..one(10) };
            family.seen(&[parent.clone(), one(11), one(12)], 1);
            family.seen_more(10, &[], &[10], 2);
            let puts = family.seen_more(10, &[one(13), one(14)], &[10, 13, 14], 3);
            let put = |pid, cpu| Put { pid, cpus: vec![cpu], first: true };
            assert_eq!(puts, [put(13, 4), put(14, 6)], "{mode:?}");
            let counted = [(10, 100), (11, 1), (12, 2), (13, 30), (14, 40)];
            family.learn(10, &[]);
            let members = family.members(0, &[], &counted.into());
            let of: Vec<_> = members.iter().map(|m| (m.pid, m.others.clone(), m.cpu, m.cpu_ns)).collect();
            assert_eq!(of, [(13, vec![11], Some(4), 31), (14, vec![12], Some(6), 42)], "{mode:?}");
        }
    }

    #[test]
    fn the_worker_of_a_child_that_has_ended_is_a_child_of_the_program() {
        let mut family = Family::new(Mode::Fork, 1, &[3]);
        family.seen(&[sighting(10, 1, false), sighting(11, 10, false)], 1);
        let puts = family.seen(&[sighting(10, 1, false), sighting(12, 1, false)], 2);
        assert_eq!(puts, [Put { pid: 12, cpus: vec![3], first: true }]);
        assert_eq!((family.parent(), family.member_pids()), (Some(10), vec![11, 12]));
        // One that was seen while its parent lived; what that was counted with is not counted twice.
        let mut family = Family::new(Mode::Fork, 1, &[3]);
        family.seen(&[sighting(10, 1, false), sighting(11, 10, false), sighting(12, 11, false)], 1);
        family.seen(&[sighting(10, 1, false), sighting(12, 1, false)], 2);
        assert_eq!(family.member_pids(), [11, 12]);
        let put = Put { pid: 12, cpus: vec![4], first: true };
        assert!(!family.has_chosen(&put, &[3]), "it was given its parent's");
        let members = family.members(0, &[], &BTreeMap::from([(11, 105), (12, 100)]));
        assert_eq!((members.len(), members[0].pid, members[0].cpu_ns), (1, 12, 105));
        // Of children that nobody saw only the orphans are left.
        let mut family = Family::new(Mode::Fork, 2, &[]);
        family.seen(&[sighting(10, 1, false), sighting(12, 1, false), sighting(13, 1, false)], 1);
        assert_eq!((family.parent(), family.member_pids()), (Some(10), vec![12, 13]));
    }

    #[test]
    fn the_first_thread_is_put_on_the_cpu_that_is_left_only_while_it_works() {
        let mut family = Family::new(Mode::Threads, 2, &[0, 1]);
        let thread = |pid| sighting(pid, 10, false);
        family.seen(&[thread(10), thread(11)], 0);
        let used = |main: u64| move |pid: u32| Some((if pid == 10 { main } else { 0 }, 0));
        assert!(family.judge(&used(0), 0).is_empty());
        let puts = family.judge(&used(40_000_000), 50_000_000);
        assert_eq!(puts, [Put { pid: 10, cpus: vec![1], first: true }]);
        // With another thread there are enough.
        let puts = family.seen(&[thread(10), thread(11), thread(12)], 60_000_000);
        let put = |pid, cpus: &[u32], first| Put { pid, cpus: cpus.to_vec(), first };
        assert_eq!(puts, [put(10, &[0, 1], false), put(12, &[1], true)]);
    }

    #[test]
    fn the_process_with_threads_is_the_one_that_works() {
        let mut family = Family::new(Mode::Threads, 2, &[]);
        let of = |process: u32, count: u32| {
            (process..process + count).map(move |tid| sighting(tid, process, false)).collect::<Vec<_>>()
        };
        let all = [of(10, 5), of(20, 3)].concat();
        family.seen(&all, 1);
        assert_eq!(family.parent(), Some(10));
        family.judge(&|pid| Some((if pid >= 20 { 100 } else { 1 }, 0)), 2);
        assert_eq!((family.parent(), family.member_pids()), (Some(20), vec![21, 22]));
    }

    #[test]
    fn a_thread_that_was_given_its_place_has_not_chosen_it() {
        let mut family = Family::new(Mode::Threads, 2, &[1, 0]);
        let thread = |pid| sighting(pid, 10, false);
        // A thread that another starts begins where that one was put.
        family.seen(&[thread(10), thread(11)], 1);
        let puts = family.seen(&[thread(10), thread(11), thread(12)], 2);
        let last = puts.iter().find(|put| put.pid == 12).unwrap();
        assert_eq!(last.cpus, [0]);
        assert!(!family.has_chosen(last, &[1]) && family.has_chosen(last, &[5]));
    }

    #[test]
    fn the_first_thread_is_a_worker_only_if_there_would_be_too_few_without_it() {
        let threads = |count: u32| (10..10 + count).map(|tid| sighting(tid, 10, false)).collect::<Vec<_>>();
        let mut family = Family::new(Mode::Threads, 2, &[0, 1]);
        family.seen(&threads(2), 1);
        assert_eq!(family.member_pids(), [11, 10]);
        family.seen(&threads(3), 2);
        assert_eq!(family.member_pids(), [11, 12]);
    }

    #[test]
    fn a_member_is_accounted_with_what_it_started_itself() {
        let mut family = Family::new(Mode::Fork, 1, &[]);
        family.seen(&[sighting(10, 1, false), sighting(11, 10, false)], 100);
        let exit = |pid, parent, cpu_ns, status| Exit {
            pid,
            tgid: pid,
            parent,
            comm: String::new(),
            peak_resident: 1,
            peak_virtual: 2,
            cpu_ns,
            is_exact: true,
            elapsed_ns: 50,
            minor_faults: 0,
            read_and_written: 0,
            status,
        };
        let exits = [(exit(12, 11, 5, 0), 180), (exit(11, 10, 20, 11), 190), (exit(10, 1, 100, 0), 200)];
        let members = family.members(90, &exits, &BTreeMap::new());
        assert_eq!((members[0].cpu_ns, members[0].began_ns, members[0].ended_ns), (25, 50, 100));
        assert_eq!(family.failures(&exits), [(0, 11)]);
    }

    #[test]
    fn one_that_does_not_fork_is_its_own_member() {
        let mut family = Family::new(Mode::Fork, 1, &[3]);
        assert_eq!(family.seen(&[sighting(10, 1, false)], 1), [Put { pid: 10, cpus: vec![3], first: true }]);
        assert_eq!(family.before_fork(0, &[]), None);
        assert!(!family.is_complete(), "it may still fork");
    }

    #[test]
    fn a_member_that_went_elsewhere_by_itself_is_found_out() {
        let mut family = Family::new(Mode::Fork, 1, &[3]);
        family.seen(&[sighting(10, 1, false)], 1);
        family.found_on(10, &[3]);
        assert_eq!(family.members(0, &[], &BTreeMap::new())[0].moved_to, None);
        family.found_on(10, &[5, 6]);
        assert_eq!(family.members(0, &[], &BTreeMap::new())[0].moved_to.as_deref(), Some("5,6"));
    }
}
