//! How long the tasks of an attempt ran and how long they waited for a CPU: `/proc/PID/task/TID/schedstat`, whose first two
//! numbers are both, in nanoseconds (Documentation/scheduler/sched-stats.rst; it takes CONFIG_SCHED_INFO). Read now and
//! then while they live, since the kernel forgets a thread's when it ends: what is missing is what came after the last
//! reading.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::sampler::tree;

/// More threads than these are not read: it would take longer than what it is to tell.
const MOST_THREADS: usize = 4096;

/// What the scheduler says of a task: nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// On a CPU.
    pub ran_ns: u64,
    /// On a run queue, waiting for a CPU.
    pub waited_ns: u64,
}

/// A thread that was seen.
#[derive(Debug, Clone, Copy)]
struct Thread {
    process: u32,
    /// Which of the programs started it.
    root: usize,
    last: Reading,
    /// Of threads that had its number before.
    before: Reading,
}

/// The last reading of every thread.
#[derive(Debug, Default)]
pub struct Waits {
    threads: BTreeMap<u32, Thread>,
    /// Why nothing can be read.
    unknown: bool,
}

impl Waits {
    /// Reads every thread of all that these launchers have started.
    pub fn look(&mut self, launchers: &[u32], launcher_file: Option<&PathBuf>) {
        for (root, &launcher) in launchers.iter().enumerate() {
            for (pid, parent) in tree::descendants(launcher) {
                // What waits for the appointed moment is no program yet.
                if parent == launcher && tree::program(pid).as_ref() == launcher_file {
                    continue;
                }
                for thread in tree::threads(pid) {
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

    fn take(&mut self, root: usize, process: u32, thread: u32, reading: Reading) {
        let known = self.threads.entry(thread).or_insert(Thread {
            process,
            root,
            last: Reading::default(),
            before: Reading::default(),
        });
        // Neither ever falls: another thread has the number now.
        if reading.ran_ns < known.last.ran_ns || reading.waited_ns < known.last.waited_ns {
            known.before = known.whole();
        }
        (known.process, known.root, known.last) = (process, root, reading);
    }

    /// What a thread has used; of its number's last owner.
    pub fn thread(&self, thread: u32) -> Option<Reading> {
        self.threads.get(&thread).map(|known| known.last)
    }

    /// What a process's threads have used, those that have ended too.
    pub fn process(&self, pid: u32) -> Option<Reading> {
        let mut sum = None;
        for thread in self.threads.values().filter(|thread| thread.process == pid) {
            let so_far: Reading = sum.unwrap_or_default();
            sum = Some(so_far.plus(thread.whole()));
        }
        sum
    }

    /// Everything, and the longest wait within one group. `group` names it by program, process and thread.
    pub fn total(&self, group: &dyn Fn(usize, u32, u32) -> u64) -> Option<(Reading, u64)> {
        if self.unknown {
            return None;
        }
        let mut groups: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sum = Reading::default();
        for (number, thread) in &self.threads {
            sum = sum.plus(thread.whole());
            *groups.entry(group(thread.root, thread.process, *number)).or_default() +=
                thread.whole().waited_ns;
        }
        // A kernel that keeps no such account writes zeros.
        (sum.ran_ns > 0).then(|| (sum, groups.into_values().max().unwrap_or(0)))
    }

    /// How many tasks wanted a CPU for at least so long.
    pub fn wanting(&self, at_least_ns: u64) -> usize {
        let wants = |thread: &&Thread| thread.whole().ran_ns + thread.whole().waited_ns >= at_least_ns;
        self.threads.values().filter(wants).count()
    }
}

impl Thread {
    fn whole(&self) -> Reading {
        self.before.plus(self.last)
    }
}

impl Reading {
    fn plus(self, other: Reading) -> Reading {
        Reading { ran_ns: self.ran_ns + other.ran_ns, waited_ns: self.waited_ns + other.waited_ns }
    }
}

/// Reads a thread; nothing if it is gone. A kernel without the account has no such file, while the thread is there.
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
    fn what_a_thread_has_used_is_not_lost_when_it_ends_or_another_gets_its_number() {
        let mut waits = Waits::default();
        waits.take(0, 10, 11, reading(5, 2));
        waits.take(0, 10, 11, reading(7, 3));
        waits.take(0, 10, 12, reading(1, 1));
        waits.take(0, 10, 11, reading(1, 0));
        assert_eq!(waits.thread(11), Some(reading(1, 0)));
        assert_eq!(waits.process(10), Some(reading(9, 4)));
        assert_eq!(waits.total(&|_, _, thread| u64::from(thread)), Some((reading(9, 4), 3)));
        assert_eq!(waits.wanting(3), 1);
    }

    #[test]
    fn what_nobody_was_seen_of_is_unknown() {
        assert_eq!(Waits::default().total(&|_, _, _| 0), None);
        assert_eq!(parse("12 34 5\n"), Some(reading(12, 34)));
        assert_eq!(parse(""), None);
    }
}
