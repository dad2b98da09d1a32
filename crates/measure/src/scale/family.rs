//! Who is who in what one program started: the parent, its children or threads; each is put on a CPU of its own as soon as
//! it is there, and accounted for by itself.
//!
//! What is found in `/proc` goes into [`Family::seen`], which decides; what has to be done comes out of it. Exact times come
//! from taskstats at the end ([`Family::members`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use widthwise_experiment::scale::{BeforeFork, Member, Mode};

use crate::sampler::tree;
use crate::taskstats::Exit;

/// Programs that only start others: their one child is not the child that is looked for.
const STARTERS: [&str; 12] =
    ["sh", "dash", "bash", "zsh", "env", "time", "nice", "taskset", "setarch", "stdbuf", "busybox", "make"];

/// A process or thread that was seen.
#[derive(Debug, Clone)]
struct Person {
    parent: u32,
    /// When it was first seen and last, CLOCK_MONOTONIC.
    first_ns: u64,
    last_ns: u64,
    /// Its CPU time when it was last seen.
    cpu_ns: u64,
    /// The CPUs on which it was put.
    put_on: Option<Vec<u32>>,
    moved_to: Option<String>,
    /// It only starts others.
    starter: bool,
}

impl Person {
    fn new(parent: u32, first_ns: u64, starter: bool) -> Person {
        Person { parent, first_ns, last_ns: first_ns, cpu_ns: 0, put_on: None, moved_to: None, starter }
    }
}

/// What was started by one program.
#[derive(Debug)]
pub struct Family {
    mode: Mode,
    expected: usize,
    /// CPUs of the members, in their order; empty leaves them where they are.
    cpus: Vec<u32>,
    /// All CPUs of the cell.
    anywhere: Vec<u32>,
    persons: BTreeMap<u32, Person>,
    /// Numbers in the order in which they were first seen.
    order: Vec<u32>,
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
    /// Its CPU time, if it was asked for.
    pub cpu_ns: Option<u64>,
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
            cpus: cpus.to_vec(),
            anywhere,
            persons: BTreeMap::new(),
            order: Vec::new(),
            before_fork: None,
        }
    }

    /// Whether all members have been seen. One process that is alone so far may still fork.
    pub fn is_complete(&self) -> bool {
        self.chosen().is_some_and(|(parent, members)| {
            members.len() >= self.expected && (self.mode == Mode::Threads || !members.contains(&parent))
        })
    }

    /// Takes in what was seen at that moment, and says who is to be put where.
    pub fn seen(&mut self, sightings: &[Sighting], at_ns: u64) -> Vec<Put> {
        for sighting in sightings {
            let person = self.persons.entry(sighting.pid).or_insert_with(|| {
                self.order.push(sighting.pid);
                Person::new(sighting.parent, at_ns, sighting.starter)
            });
            person.last_ns = at_ns;
            person.starter = sighting.starter;
            if let Some(cpu_ns) = sighting.cpu_ns {
                person.cpu_ns = cpu_ns;
            }
        }
        let Some((parent, members)) = self.chosen() else { return Vec::new() };
        if self.before_fork.is_none_or(|(known, _, _)| known != parent) && !members.contains(&parent) {
            let cpu_ns = self.persons.get(&parent).map_or(0, |person| person.cpu_ns);
            let first = members.iter().filter_map(|pid| self.persons.get(pid)).map(|p| p.first_ns).min();
            self.before_fork = Some((parent, cpu_ns, first.unwrap_or(at_ns)));
        }
        self.places(&members)
    }

    /// Whether that process or thread was seen before.
    pub fn knows(&self, pid: u32) -> bool {
        self.persons.contains_key(&pid)
    }

    /// Who the parent is, whose CPU time at the fork matters.
    pub fn parent(&self) -> Option<u32> {
        self.chosen().map(|(parent, _)| parent)
    }

    /// The members' numbers.
    pub fn member_pids(&self) -> Vec<u32> {
        self.chosen().map(|(_, members)| members).unwrap_or_default()
    }

    /// The parent and the members: those whose parent is the same. Of several parents the first, from the root, that has as
    /// many as are expected, or else the one that has most. Who only starts others is none.
    fn chosen(&self) -> Option<(u32, Vec<u32>)> {
        let mut of: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in &self.order {
            if let Some(person) = self.persons.get(pid) {
                of.entry(person.parent).or_default().push(*pid);
            }
        }
        if self.mode == Mode::Threads {
            // The first thread has its process's number. It is a worker if there would be too few without it.
            let (process, mut threads) = of.into_iter().max_by_key(|(_, threads)| threads.len())?;
            if threads.len() > self.expected {
                threads.retain(|thread| *thread != process);
            } else {
                // The last to be placed: it began first, and may do something else besides.
                threads.sort_by_key(|thread| *thread == process);
            }
            return Some((process, threads));
        }
        let known = |pid: &u32| self.persons.get(pid);
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
            return Some((*parent, (*children).clone()));
        }
        // One that does not fork is its own only member.
        let alone = self.order.iter().rev().find(|pid| known(pid).is_some_and(|person| !person.starter))?;
        (self.expected == 1).then(|| (*alone, vec![*alone]))
    }

    fn places(&mut self, members: &[u32]) -> Vec<Put> {
        let mut puts = Vec::new();
        if self.cpus.is_empty() {
            return puts;
        }
        for (pid, person) in &mut self.persons {
            let place = members.iter().position(|member| member == pid);
            let wanted = match place {
                Some(place) => vec![self.cpus[place % self.cpus.len()]],
                // Who was taken for a member and is none may run anywhere again.
                None if person.put_on.is_some() => self.anywhere.clone(),
                None => continue,
            };
            if person.put_on.as_ref() != Some(&wanted) {
                let first = person.put_on.is_none();
                person.put_on = Some(wanted.clone());
                puts.push(Put { pid: *pid, cpus: wanted, first });
            }
        }
        puts
    }

    /// Whether a process that is seen for the first time, and may run there, has chosen that by itself: what it was given by
    /// its parent is all CPUs of the cell.
    pub fn has_chosen(&self, put: &Put, cpus: &[u32]) -> bool {
        // Whoever began after its parent, or another thread, was put somewhere has been given that place.
        let given = self
            .persons
            .iter()
            .any(|(pid, person)| *pid != put.pid && person.put_on.as_deref() == Some(cpus));
        put.first && cpus != self.anywhere && cpus != put.cpus && !given
    }

    /// Takes in where a member was found, when it had been put somewhere before.
    pub fn found_on(&mut self, pid: u32, cpus: &[u32]) {
        if let Some(person) = self.persons.get_mut(&pid) {
            if person.put_on.as_deref().is_some_and(|put_on| put_on != cpus) {
                let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
                person.moved_to = Some(names.join(","));
            }
        }
    }

    /// Takes in members that were gone before anybody looked: those of the parent's children, or threads, whose end the
    /// kernel told. `root` is the first process.
    pub fn learn(&mut self, root: u32, exits: &[(Exit, u64)]) {
        let parent = match self.chosen() {
            Some((parent, members)) if !members.contains(&parent) || self.mode == Mode::Threads => parent,
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
            if self.mode != Mode::Threads && !self.persons.contains_key(&parent) {
                self.order.insert(0, parent);
                self.persons.insert(parent, Person::new(0, began_ns, false));
            }
            // Whoever is not known to have been looked for was on no CPU of its own.
            self.order.push(pid);
            self.persons.insert(pid, Person::new(parent, began_ns, false));
        }
    }

    /// The parent's figures at the fork; `began_ns` is when the program began.
    pub fn before_fork(&self, began_ns: u64, exits: &[(Exit, u64)]) -> Option<BeforeFork> {
        let (_, cpu_ns, at_ns) = self.before_fork?;
        // The first member's beginning is known better from its end than from the moment at which it was seen.
        let members = self.member_pids();
        let told = exits
            .iter()
            .filter(|(exit, _)| members.contains(&exit.pid))
            .map(|(exit, told_ns)| told_ns.saturating_sub(exit.elapsed_ns))
            .min();
        let at_ns = told.map_or(at_ns, |told| told.min(at_ns)).max(began_ns);
        Some(BeforeFork { cpu_ns, elapsed_ns: at_ns - began_ns })
    }

    /// The members, by what was seen of them and what the kernel told at their end. `counted` are CPU times that were
    /// counted from the moment at which a member was first seen.
    pub fn members(&self, began_ns: u64, exits: &[(Exit, u64)], counted: &BTreeMap<u32, u64>) -> Vec<Member> {
        let members = self.member_pids();
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
        members
            .iter()
            .enumerate()
            .filter_map(|(place, pid)| {
                let person = self.persons.get(pid)?;
                let is_threads = self.mode == Mode::Threads;
                let own: Vec<&(Exit, u64)> = exits
                    .iter()
                    .filter(
                        |(exit, _)| if is_threads { exit.pid == *pid } else { head(exit.tgid) == Some(*pid) },
                    )
                    .collect();
                let last = own.iter().find(|(exit, _)| exit.pid == *pid);
                let (began, ended) = match last {
                    Some((exit, told_ns)) => {
                        (told_ns.saturating_sub(exit.elapsed_ns).max(began_ns), *told_ns)
                    }
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
                    cpu: (!self.cpus.is_empty()).then(|| self.cpus[place % self.cpus.len()]),
                    moved_to: person.moved_to.clone(),
                    began_ns: began.saturating_sub(began_ns),
                    ended_ns: ended.saturating_sub(began_ns),
                    cpu_ns,
                    exact,
                    peak_resident: last.map(|(exit, _)| exit.peak_resident).filter(|_| !is_threads),
                    told: None,
                })
            })
            .collect()
    }

    /// Members that did not end well: their place, and the status as of wait4(2).
    pub fn failures(&self, exits: &[(Exit, u64)]) -> Vec<(usize, i32)> {
        if self.mode == Mode::Threads {
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

/// Everyone that a launcher has started, as `/proc` shows it now. `with_cpu` asks for the CPU times, too. The launcher's own
/// child does not count before it has executed the program.
pub fn sight(mode: Mode, launcher: u32, launcher_file: Option<&PathBuf>, with_cpu: bool) -> Vec<Sighting> {
    let mut sightings = Vec::new();
    for (pid, parent) in tree::descendants(launcher) {
        let program = tree::program(pid);
        if parent == launcher && (program.is_none() || program.as_ref() == launcher_file) {
            continue;
        }
        let starter = is_starter(program.as_deref());
        if mode == Mode::Threads {
            sightings.extend(threads_of(pid, starter, with_cpu));
        } else {
            let cpu_ns = with_cpu.then(|| process_cpu(pid));
            sightings.push(Sighting { pid, parent, cpu_ns, starter });
        }
    }
    sightings
}

/// Children or threads of the parent that are not known yet: what is worth a look while members are awaited, however many
/// there are already.
pub fn sight_new(mode: Mode, parent: u32, known: &dyn Fn(u32) -> bool) -> Vec<Sighting> {
    if mode == Mode::Threads {
        return threads_of(parent, false, false).into_iter().filter(|thread| !known(thread.pid)).collect();
    }
    tree::threads(parent)
        .into_iter()
        .flat_map(|thread| tree::children(parent, thread))
        .filter(|pid| !known(*pid))
        .map(|pid| Sighting { pid, parent, cpu_ns: None, starter: is_starter(tree::program(pid).as_deref()) })
        .collect()
}

fn threads_of(pid: u32, starter: bool, with_cpu: bool) -> Vec<Sighting> {
    let one = |thread| Sighting {
        pid: thread,
        parent: pid,
        cpu_ns: with_cpu.then(|| thread_cpu(pid, thread)).flatten(),
        starter,
    };
    tree::threads(pid).into_iter().map(one).collect()
}

fn is_starter(program: Option<&std::path::Path>) -> bool {
    let name = program.and_then(|path| path.file_name());
    name.is_some_and(|name| STARTERS.iter().any(|starter| name == *starter))
}

fn process_cpu(pid: u32) -> u64 {
    tree::threads(pid).into_iter().filter_map(|thread| thread_cpu(pid, thread)).sum()
}

/// The CPU time of a member from now on, with that of what it will start; what it has used so far. Of a thread: its own.
///
/// `/proc` forgets a process when it ends, and taskstats count ticks where the kernel has no delay accounting: a counter of
/// the kernel's own (`PERF_COUNT_SW_TASK_CLOCK`) outlives whom it counts.
pub fn counter(mode: Mode, process: u32, pid: u32) -> Option<(perf_event::Counter, u64)> {
    let mut builder = perf_event::Builder::new(perf_event::events::Software::TASK_CLOCK);
    builder.observe_pid(pid as i32).any_cpu().inherit(mode != Mode::Threads).exclude_hv(true);
    let mut counter = builder.build().ok()?;
    let so_far = if mode == Mode::Threads { thread_cpu(process, pid) } else { Some(process_cpu(pid)) };
    counter.enable().ok()?;
    Some((counter, so_far.unwrap_or(0)))
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
        Sighting { pid, parent, cpu_ns: Some(7), starter }
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
    fn a_thread_that_was_given_its_place_has_not_chosen_it() {
        let mut family = Family::new(Mode::Threads, 2, &[1, 0]);
        let thread = |pid| sighting(pid, 10, false);
        // The first thread is taken for a worker until there are enough of others, which get its place from it.
        family.seen(&[thread(10), thread(11)], 1);
        let puts = family.seen(&[thread(12)], 2);
        let last = puts.iter().find(|put| put.pid == 12).unwrap();
        assert!(!family.has_chosen(last, &[0]) && family.has_chosen(last, &[5]));
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
