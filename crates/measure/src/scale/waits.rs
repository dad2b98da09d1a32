//! How long the tasks of a run ran, and how long they waited for a CPU: the first two numbers of
//! `/proc/PID/task/TID/schedstat`, in nanoseconds (Documentation/scheduler/sched-stats.rst; needs
//! CONFIG_SCHED_INFO). Read at intervals while the tasks live, since the kernel drops a thread's numbers when
//! it ends. The time after the last reading is known where the kernel reports exits (taskstats), and missing otherwise; a wait
//! counts when it is over.

use std::collections::BTreeMap;
use std::path::PathBuf;

use widthwise_proc::taskstats::Exit;
use widthwise_proc::{clock, descendants};

/// More threads than this are not read: reading would take too long.
const MOST_THREADS: usize = 4096;

/// The scheduler's account of a task, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// On a CPU.
    pub ran_ns: u64,
    /// On a run queue, waiting for a CPU.
    pub waited_ns: u64,
}

/// What was read of a run, and the run.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    /// Its tasks ran so many times as long as was read,
    pub ran: f64,
    /// and waited so many times as long.
    pub waited: f64,
    /// Its length.
    pub elapsed_ns: u64,
}

/// A thread that was seen.
#[derive(Debug, Clone, Copy)]
struct Thread {
    process: u32,
    /// The index of the program that started it.
    root: usize,
    last: Reading,
    /// Of earlier threads with the same number.
    before: Reading,
    /// When the first and the last look began since whose predecessor it wanted a CPU; of one that no look saw, its life.
    active: Option<(u64, u64)>,
}

/// A thread is active between two looks if it wanted a CPU for this share of the time.
const ACTIVE: u64 = 20;

/// The last reading of every thread.
#[derive(Debug, Default)]
pub struct Waits {
    threads: BTreeMap<u32, Thread>,
    /// The number of the present look, when it began, and the time since the one before; nanoseconds.
    look: u32,
    looked_ns: u64,
    gap_ns: u64,
    /// The kernel has reported every program's exit.
    is_complete: bool,
    /// Why nothing can be read.
    unknown: bool,
}

impl Waits {
    /// Reads every thread of all processes that these launchers have started. `process` receives the number of each process.
    pub fn look(&mut self, launchers: &[u32], launcher_file: Option<&PathBuf>, process: &mut dyn FnMut(u32)) {
        self.begin(clock::now());
        for (root, &launcher) in launchers.iter().enumerate() {
            for (pid, parent) in descendants::descendants(launcher) {
                // A process that waits for the appointed time is no program yet.
                if parent == launcher && descendants::program(pid).as_ref() == launcher_file {
                    continue;
                }
                process(pid);
                for thread in descendants::threads(pid) {
                    if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&thread) {
                        continue;
                    }
                    if let Some(reading) = read(pid, thread, &mut self.unknown) {
                        self.take(root, pid, thread, reading);
                    }
                }
            }
        }
    }

    fn begin(&mut self, now_ns: u64) {
        self.gap_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        self.look += 1;
    }

    fn take(&mut self, root: usize, process: u32, thread: u32, reading: Reading) {
        let known = self.threads.entry(thread).or_insert(Thread {
            process,
            root,
            last: Reading::default(),
            before: Reading::default(),
            active: None,
        });
        let had = known.whole().wanted_ns();
        // Neither ever falls: the number now belongs to another thread.
        if reading.ran_ns < known.last.ran_ns || reading.waited_ns < known.last.waited_ns {
            known.before = known.whole();
        }
        (known.process, known.root, known.last) = (process, root, reading);
        // Before the first look only the run's start is a bound.
        let gap_ns = if self.look > 1 { self.gap_ns } else { 0 };
        let wanted = known.whole().wanted_ns() - had;
        if wanted > 0 && wanted >= gap_ns / ACTIVE {
            known.active = Some((known.active.map_or(self.looked_ns, |(first, _)| first), self.looked_ns));
        }
    }

    /// Completes the readings by the exits that the kernel reported on this machine, each with the moment of its report: `programs`
    /// are the numbers of the programs, in the order of their launchers; `are_lost`: the kernel dropped some of the reports.
    pub fn ended(&mut self, exits: &[(Exit, u64)], programs: &[u32], are_lost: bool) {
        let exact = || exits.iter().filter(|(exit, _)| exit.is_exact);
        let parents: BTreeMap<u32, u32> = exact().map(|(exit, _)| (exit.tgid, exit.parent)).collect();
        let mut roots = BTreeMap::new();
        for (root, program) in programs.iter().enumerate() {
            roots.insert(*program, root);
            // Orphans become children of the launcher.
            roots.extend(parents.get(program).map(|launcher| (*launcher, root)));
        }
        // A chain longer than the number of exits contains a cycle (reused numbers).
        let root_of = |process: u32| {
            std::iter::successors(Some(process), |process| parents.get(process).copied())
                .take(exits.len() + 1)
                .find_map(|process| roots.get(&process).copied())
        };
        let mut ended: BTreeMap<u32, Thread> = BTreeMap::new();
        for (exit, reported_ns) in exact() {
            let Some(root) = root_of(exit.tgid) else { continue };
            let last = Reading { ran_ns: exit.cpu_ns, waited_ns: exit.waited_ns };
            let before = ended.get(&exit.pid).map_or(Reading::default(), Thread::whole);
            let active = Some((reported_ns.saturating_sub(exit.elapsed_ns), *reported_ns));
            ended.insert(exit.pid, Thread { process: exit.tgid, root, last, before, active });
        }
        for (number, thread) in ended {
            let known = self.threads.get(&number);
            // Where a report was lost, the readings know more.
            if known.is_none_or(|known| known.whole().wanted_ns() <= thread.whole().wanted_ns()) {
                let active = known.map_or(thread.active, |known| known.active);
                self.threads.insert(number, Thread { active, ..thread });
            }
        }
        // A thread that ended before its process says nothing of the rest.
        let has_ended = |program: &u32| exact().any(|(exit, _)| exit.pid == *program);
        self.is_complete = !are_lost && programs.iter().all(has_ended);
    }

    /// For how long before the end nothing was read.
    pub fn unread_ns(&self, end_ns: u64) -> u64 {
        if self.is_complete {
            0
        } else {
            end_ns.saturating_sub(self.looked_ns)
        }
    }

    /// What a thread has used; the last one with that number.
    pub fn thread(&self, thread: u32) -> Option<Reading> {
        self.threads.get(&thread).map(|known| known.last)
    }

    /// What a process's threads have used, including those that have ended.
    pub fn process(&self, pid: u32) -> Option<Reading> {
        let mut sum = None;
        for thread in self.threads.values().filter(|thread| thread.process == pid) {
            let so_far: Reading = sum.unwrap_or_default();
            sum = Some(so_far.plus(thread.whole()));
        }
        sum
    }

    /// The total, and that of each group. `group` names the group of a program, process and thread.
    pub fn total(&self, group: &dyn Fn(usize, u32, u32) -> u64) -> Option<(Reading, BTreeMap<u64, Reading>)> {
        if self.unknown {
            return None;
        }
        let mut groups: BTreeMap<u64, Reading> = BTreeMap::new();
        let mut sum = Reading::default();
        for (number, thread) in &self.threads {
            sum = sum.plus(thread.whole());
            let of_group = groups.entry(group(thread.root, thread.process, *number)).or_default();
            *of_group = of_group.plus(thread.whole());
        }
        // A kernel without such an account writes zeros.
        (sum.ran_ns > 0).then_some((sum, groups))
    }

    /// Whether the kernel has reported every program's exit: then all waiting is known. The CPU time is that of a task's last tick or
    /// switch, which may be less than half of a short task's.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The wait of all threads in such a run.
    pub fn waited_of_run(&self, whole: Whole) -> u64 {
        self.threads.values().map(|thread| thread.whole().waited_alone(whole)).sum()
    }

    /// The highest number of tasks that wanted a CPU at the same time, of those that did for at least this long. A second pool
    /// of threads does not wait for the first.
    pub fn wanting(&self, at_least_ns: u64) -> usize {
        let wants = |thread: &&Thread| thread.whole().wanted_ns() >= at_least_ns;
        let active: Vec<(u64, u64)> =
            self.threads.values().filter(wants).filter_map(|thread| thread.active).collect();
        let at = |at_ns: u64| active.iter().filter(|(first, last)| (*first..=*last).contains(&at_ns)).count();
        active.iter().map(|(first, _)| at(*first)).max().unwrap_or(0)
    }
}

impl Thread {
    fn whole(&self) -> Reading {
        self.before.plus(self.last)
    }
}

impl Reading {
    /// The wait of a task in such a run: it cannot have waited while it ran.
    pub fn waited_of_run(self, whole: Whole) -> u64 {
        let Reading { ran_ns, waited_ns } = self.times(whole);
        // Threads on several CPUs may have run for longer than the run took.
        waited_ns.min(if ran_ns <= whole.elapsed_ns { whole.elapsed_ns - ran_ns } else { whole.elapsed_ns })
    }

    /// Its wait in such a run, be it of several threads at a time.
    pub fn waited(self, whole: Whole) -> u64 {
        self.times(whole).waited_ns
    }

    /// The wait in such a run of a single thread, which runs or waits for no longer than the run takes. If it seems to have run for clearly longer,
    /// what was not read is that of other threads.
    fn waited_alone(self, whole: Whole) -> u64 {
        let Reading { ran_ns, waited_ns } = self.times(whole);
        let ran_ns = if ran_ns <= whole.elapsed_ns / 20 * 21 { ran_ns } else { self.ran_ns };
        waited_ns.min(whole.elapsed_ns.saturating_sub(ran_ns))
    }

    fn times(self, whole: Whole) -> Reading {
        let times = |ns: u64, times: f64| (ns as f64 * times) as u64;
        Reading { ran_ns: times(self.ran_ns, whole.ran), waited_ns: times(self.waited_ns, whole.waited) }
    }

    /// For how long it ran or waited for a CPU.
    fn wanted_ns(self) -> u64 {
        self.ran_ns + self.waited_ns
    }

    fn plus(self, other: Reading) -> Reading {
        Reading { ran_ns: self.ran_ns + other.ran_ns, waited_ns: self.waited_ns + other.waited_ns }
    }
}

/// Reads a thread; none if it has ended. A kernel without the account has no such file for a living thread.
fn read(pid: u32, thread: u32, unknown: &mut bool) -> Option<Reading> {
    let folder = format!("/proc/{pid}/task/{thread}");
    match std::fs::read_to_string(format!("{folder}/schedstat")) {
        Ok(text) => parse(&text),
        Err(error) => {
            *unknown |= error.kind() == std::io::ErrorKind::NotFound && std::fs::metadata(folder).is_ok();
            None
        }
    }
}

/// Whether the kernel reports how long tasks wait. Without the account it has no file, or writes zeros.
pub fn are_reported() -> bool {
    std::fs::read_to_string("/proc/self/schedstat")
        .is_ok_and(|text| parse(&text).is_some_and(|own| own.ran_ns > 0))
}

/// `RAN WAITED TIMES`.
fn parse(text: &str) -> Option<Reading> {
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse().ok();
    Some(Reading { ran_ns: next()?, waited_ns: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ran_ns: u64, waited_ns: u64) -> Reading {
        Reading { ran_ns, waited_ns }
    }

    #[test]
    fn a_threads_usage_survives_its_end_and_the_reuse_of_its_number() {
        let mut waits = Waits::default();
        waits.take(0, 10, 11, reading(5, 2));
        waits.take(0, 10, 11, reading(7, 3));
        waits.take(0, 10, 12, reading(1, 1));
        waits.take(0, 10, 11, reading(1, 0));
        assert_eq!(waits.thread(11), Some(reading(1, 0)));
        assert_eq!(waits.process(10), Some(reading(9, 4)));
        let groups = BTreeMap::from([(11, reading(8, 3)), (12, reading(1, 1))]);
        assert_eq!(waits.total(&|_, _, thread| u64::from(thread)), Some((reading(9, 4), groups)));
        assert_eq!(waits.wanting(3), 1);
    }

    #[test]
    fn only_tasks_that_want_a_cpu_at_the_same_time_wait_for_each_other() {
        const MS: u64 = 1_000_000;
        let mut waits = Waits::default();
        let mut look = |threads: &[(u32, u64)]| {
            let now_ns = waits.looked_ns + 10 * MS;
            waits.begin(now_ns);
            for (thread, ran_ms) in threads {
                waits.take(0, 1, *thread, reading(ran_ms * MS, 0));
            }
            waits.wanting(5 * MS)
        };
        // The first thread prepares, and sleeps while pools work; 2 and 3 are a pool, 4 and 5 the next.
        assert_eq!(look(&[(1, 10)]), 1);
        look(&[(1, 10), (2, 10), (3, 9)]);
        assert_eq!(look(&[(1, 10), (2, 20), (3, 18)]), 2);
        assert_eq!(look(&[(1, 10), (4, 10), (5, 9)]), 2);
        // It works beside the second pool.
        assert_eq!(look(&[(1, 20), (4, 20), (5, 18)]), 3);
    }

    fn exit(pid: u32, tgid: u32, parent: u32, reading: Reading) -> (Exit, u64) {
        let Reading { ran_ns, waited_ns } = reading;
        let exit = Exit {
            pid,
            tgid,
            parent,
            comm: String::new(),
            max_rss: 0,
            peak_virtual: 0,
            cpu_ns: ran_ns,
            is_exact: true,
            waited_ns,
            elapsed_ns: 40,
            process_elapsed_ns: 40,
            ended_s: 0,
            major_faults: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
            minor_faults: 0,
            read_and_written: 0,
            status: 0,
        };
        (exit, 100)
    }

    #[test]
    fn exits_complete_the_readings() {
        let mut waits = Waits::default();
        waits.begin(50);
        waits.take(0, 10, 10, reading(5, 2));
        assert_eq!(waits.unread_ns(100), 50);
        // The launchers are 2 and 3; 12 is a child of the first program, 14 an orphan of the second.
        let exits = [
            exit(12, 12, 10, reading(3, 4)),
            exit(10, 10, 2, reading(9, 40)),
            exit(11, 11, 3, reading(1, 0)),
            exit(14, 14, 3, reading(2, 1)),
            exit(77, 77, 1, reading(900, 900)),
        ];
        waits.ended(&exits, &[10, 11], false);
        let groups = BTreeMap::from([(0, reading(12, 44)), (1, reading(3, 1))]);
        assert_eq!(waits.total(&|root, _, _| root as u64), Some((reading(15, 45), groups)));
        assert_eq!(waits.unread_ns(100), 0);
        // A report that was lost leaves what was read.
        let mut lost = Waits::default();
        lost.begin(50);
        lost.take(0, 10, 10, reading(5, 2));
        lost.ended(&exits[..1], &[10], false);
        assert_eq!((lost.process(10), lost.unread_ns(100)), (Some(reading(5, 2)), 50));
        // The program's own report came, others may not have; or one of its threads reported.
        lost.ended(&exits, &[10], true);
        assert_eq!(lost.unread_ns(100), 50);
        let mut of_thread = Waits::default();
        of_thread.begin(50);
        of_thread.ended(&[exit(15, 10, 2, reading(1, 1))], &[10], false);
        assert_eq!(of_thread.unread_ns(100), 50);
    }

    #[test]
    fn a_thread_runs_and_waits_for_no_longer_than_the_run_takes() {
        let mut waits = Waits::default();
        waits.take(0, 10, 10, reading(2_000_000, 3_690_000));
        let times = 3_545_000.0 / 2_000_000.0;
        let whole = Whole { ran: times, waited: times, elapsed_ns: 7_566_310 };
        assert_eq!(waits.waited_of_run(whole), 7_566_310 - 3_545_000);
        assert_eq!(waits.waited_of_run(Whole { waited: 1.0, ..whole }), 3_690_000);
        // The CPU time of its start is in the run's, and before the run.
        let busy = Whole { ran: 1.01 * 7_566_310.0 / 2_000_000.0, ..whole };
        assert_eq!(waits.waited_of_run(busy), 0);
        // A second thread may have waited at the same time.
        waits.take(0, 10, 11, reading(1_000, 3_690_000));
        assert!(waits.waited_of_run(whole) > 7_566_310);
    }

    #[test]
    fn without_a_reading_the_waiting_is_unknown() {
        assert_eq!(Waits::default().total(&|_, _, _| 0), None);
        assert_eq!(parse("12 34 5\n"), Some(reading(12, 34)));
        assert_eq!(parse(""), None);
    }
}
