//! The sample of a run, from what the launcher and taskstats reported, and remarks on the run.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use widthwise_experiment::memory::rss_lag_of_cpu;
use widthwise_experiment::outcome::{Reading, Source};

use crate::run::launcher::Reply;
use widthwise_proc::affinity::online_cpus;
use widthwise_proc::clock;
use widthwise_proc::taskstats::Process;

/// By more than this and 2 % do two accounts of CPU time differ if one of them lacks a process. Of a process with a wait, the
/// control group has a microsecond more than `rusage`: the last of its exit. A child takes 0.1 ms or more.
const CLEAR: Duration = Duration::from_micros(200);

/// Whether children that nobody waited for (SIGCHLD ignored) ended in a run: no `rusage` includes them. `None`: nothing
/// says so. `group` is the CPU time of the run's control group.
pub(crate) fn has_unwaited(reply: &Reply, tree: Option<&[Process]>, group: Option<Duration>) -> Option<bool> {
    if let Some(tree) = tree {
        // Every process has page faults, and both accounts have each of them: the last are before the exit is reported.
        let faults: u64 = tree.iter().map(|process| process.minor_faults + process.major_faults).sum();
        return Some(faults > reply.minor_faults + reply.major_faults);
    }
    let waited = reply.user + reply.system;
    group.filter(|used| *used > waited + CLEAR + waited / 50).map(|_| true)
}

/// The CPU time that taskstats report, without that of the ends of processes: a lower bound. `None` if it counts ticks.
fn reported_time(tree: Option<&[Process]>) -> Option<Duration> {
    let tree = tree.filter(|tree| tree.iter().all(|process| process.is_exact))?;
    Some(Duration::from_nanos(tree.iter().map(|process| process.cpu_ns).sum()))
}

/// The CPU time of the run's control group, if it has all: not if taskstats report more, since processes moved to another group.
pub(crate) fn of_whole_group(group: Option<Duration>, tree: Option<&[Process]>) -> Option<Duration> {
    let reported = reported_time(tree).unwrap_or_default();
    group.filter(|used| reported <= *used + CLEAR + *used / 50)
}

/// Adds the CPU time of such children that the control group has. Whether it is user time is not known.
pub(crate) fn add_unwaited_time(reply: &mut Reply, group: Duration) {
    reply.user += group.saturating_sub(reply.user + reply.system);
}

/// Replaces the figures that lack children without a wait, or may lack them, by those of other accounts; what no account
/// has gets no upper bound.
pub(crate) fn add_unwaited(
    sample: &mut BTreeMap<&'static str, Reading>,
    reply: &Reply,
    tree: Option<&[Process]>,
    group: Option<Duration>,
    has_unwaited: Option<bool>,
) {
    if has_unwaited == Some(false) || (has_unwaited.is_none() && group.is_none()) {
        return;
    }
    let time = |duration: Duration| duration.as_nanos() as f64;
    let open = |low: f64, source| Reading::between(low, f64::INFINITY, source);
    let waited = reply.user + reply.system;
    // The group's time is that of `rusage` to a microsecond for each process, with or without a wait. Its division into
    // user and system time is one over all runs so far (cputime_adjust, kernel/sched/cputime.c), and useless for one.
    let missing = group.map(|used| used.saturating_sub(waited));
    match missing {
        Some(missing) => sample.insert("cpu", Reading::whole(time(waited + missing), Source::Cgroup)),
        None => {
            let reported = reported_time(tree).filter(|reported| *reported > waited);
            let least = reported.map(|reported| open(time(reported), Source::Taskstats));
            sample.insert("cpu", least.unwrap_or_else(|| open(time(waited), Source::Rusage)))
        }
    };
    for (name, known) in [("user", reply.user), ("system", reply.system)] {
        let reading = match missing {
            Some(missing) => Reading::between(time(known), time(known + missing), Source::Cgroup),
            None => open(time(known), Source::Rusage),
        };
        sample.insert(name, reading);
    }
    if has_unwaited.is_none() {
        return;
    }
    let sum = |of: fn(&Process) -> u64| tree.map(|tree| tree.iter().map(of).sum::<u64>());
    let (minor, major) = (sum(|process| process.minor_faults), sum(|process| process.major_faults));
    let faults = [
        ("page_faults", reply.minor_faults + reply.major_faults, minor.zip(major).map(|(a, b)| a + b)),
        ("minor_faults", reply.minor_faults, minor),
        ("major_faults", reply.major_faults, major),
    ];
    for (name, waited, all) in faults {
        let exact = all.map(|all| Reading::whole(all as f64, Source::Taskstats));
        sample.insert(name, exact.unwrap_or_else(|| open(waited as f64, Source::Rusage)));
    }
    // taskstats lack the switches of the exit itself.
    let switches = [
        ("voluntary_switches", reply.voluntary_switches, sum(|process| process.voluntary_switches)),
        ("involuntary_switches", reply.involuntary_switches, sum(|process| process.involuntary_switches)),
    ];
    for (name, waited, reported) in switches {
        let low = reported.map_or((waited, Source::Rusage), |n| {
            if n > waited {
                (n, Source::Taskstats)
            } else {
                (waited, Source::Rusage)
            }
        });
        sample.insert(name, open(low.0 as f64, low.1));
    }
}

/// Left-over processes that used more CPU time than this in the 100 ms before they were killed were at work.
const IDLE: Duration = Duration::from_millis(1);

/// What the end of processes that the program left running makes of a run's figures, if they were at work.
pub(crate) fn left_working(reply: &Reply) -> Option<String> {
    let what = match reply.left_over {
        0 => return None,
        1 => "a process at work, which was".to_owned(),
        several => format!("{several} processes at work, which were"),
    };
    let is_working = !reply.cancelled && reply.left_over_cpu > IDLE;
    is_working.then(|| {
        format!("left {what} killed 0.1 s after the program's end: time, faults and memory of the rest of the work are not known")
    })
}

/// Combines what the launcher and taskstats reported.
///
/// `largest` is `ru_maxrss` where it is a process's own. It includes the images before an `execve`, which
/// taskstats leave out.
pub(crate) fn sample(
    reply: &Reply,
    tree: Option<&[Process]>,
    largest: u64,
) -> BTreeMap<&'static str, Reading> {
    let time = |duration: Duration| duration.as_nanos() as f64;
    let mut sample = BTreeMap::new();
    let mut address_space = None;
    let mut put = |name, value, source| {
        sample.insert(name, Reading::whole(value, source));
    };
    put("wall", time(reply.wall), Source::Clock);
    put("cpu", time(reply.user + reply.system), Source::Rusage);
    put("user", time(reply.user), Source::Rusage);
    put("system", time(reply.system), Source::Rusage);
    put("page_faults", (reply.minor_faults + reply.major_faults) as f64, Source::Rusage);
    put("minor_faults", reply.minor_faults as f64, Source::Rusage);
    put("major_faults", reply.major_faults as f64, Source::Rusage);
    put("voluntary_switches", reply.voluntary_switches as f64, Source::Rusage);
    put("involuntary_switches", reply.involuntary_switches as f64, Source::Rusage);
    if let Some(at_exit) = &reply.at_exit {
        let before_exec = before_exec(at_exit.max_rss, tree, largest);
        let source = if before_exec > 0 { Source::Rusage } else { Source::ExitStop };
        put("max_rss", (at_exit.max_rss + before_exec) as f64, source);
        let max_rss = (at_exit.max_rss + before_exec) as f64;
        let of_ended = at_exit.peak_virtual as f64;
        address_space = Some(peak_virtual(of_ended, before_exec, max_rss, Source::ExitStop));
        put("max_rss_sum", (at_exit.max_rss_sum + before_exec) as f64, source);
        put("processes", at_exit.processes as f64, Source::ExitStop);
    } else if let Some(tree) = tree {
        let highest = |of: fn(&Process) -> u64| tree.iter().map(of).max().unwrap_or(0) as f64;
        let at_exit = highest(|process| process.max_rss);
        // An image larger than any that ended was replaced by execve.
        let before_exec = (largest as f64 - at_exit).max(0.0);
        let source = if before_exec > 0.0 { Source::Rusage } else { Source::Taskstats };
        put("max_rss", at_exit + before_exec, source);
        let (max_rss, of_ended) = (at_exit + before_exec, highest(|process| process.peak_virtual));
        address_space = Some(peak_virtual(of_ended, before_exec as u64, max_rss, Source::Taskstats));
        let sum = tree.iter().map(|process| process.max_rss).sum::<u64>() as f64;
        put("max_rss_sum", sum + before_exec, Source::Taskstats);
        put("processes", tree.len() as f64, Source::Taskstats);
    } else {
        put("max_rss", reply.max_rss as f64, Source::Rusage);
    }
    sample.extend(address_space.map(|reading| ("peak_virtual", reading)));
    sample
}

/// How far `ru_maxrss` may lag behind the exact size, as taskstats do: only a clear excess is another image's.
fn lag() -> u64 {
    rss_lag_of_cpu(online_cpus()) * online_cpus()
}

/// The peak of the address space. Nothing has that of an image that an `execve` replaced: if its resident size alone is more than any
/// that ended had, it is a lower bound, and there is no upper one. A shell that executes the program has less.
fn peak_virtual(of_ended: f64, before_exec: u64, max_rss: f64, source: Source) -> Reading {
    if before_exec > lag() && max_rss > of_ended {
        return Reading::between(max_rss, f64::INFINITY, source);
    }
    Reading::whole(of_ended, source)
}

/// By how much an image that was replaced by an `execve` was larger than any that was read at its exit: a process stops
/// only after the memory of the old image is gone.
fn before_exec(at_exit: u64, tree: Option<&[Process]>, largest: u64) -> u64 {
    let accounted = tree.map(|tree| tree.iter().map(|process| process.max_rss).max().unwrap_or(0));
    if largest > accounted.unwrap_or(at_exit + lag()) {
        largest.saturating_sub(at_exit)
    } else {
        0
    }
}

/// What a report should say about a run, beside its sample.
pub(crate) struct Remarks<'a> {
    pub reply: &'a Reply,
    pub tree: Option<&'a [Process]>,
    /// Children that nobody waited for ended in it.
    pub unwaited: bool,
    /// A control group has their CPU time.
    pub grouped: bool,
    /// The kernel has dropped accounts of processes.
    pub lost: bool,
    /// What limit a control group has that refused to start more tasks.
    pub refused: Option<String>,
    pub cpus: &'a [u32],
}

impl Remarks<'_> {
    /// As sentences, whose subject is the variant.
    pub fn sentences(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.unwaited {
            let known = match (self.grouped, self.tree.is_some()) {
                (true, true) => {
                    "CPU time (by the cgroup) and page faults (by taskstats) include them, switches do not"
                }
                (true, false) => "CPU time (by the cgroup) includes them, page faults and switches do not",
                (false, _) => {
                    "page faults (by taskstats) include them, times and switches have only a lower bound"
                }
            };
            remarks.push(format!("has children that nobody waits for: {known}"));
        }
        if self.lost {
            remarks.push(
                "so many processes ended at once that the kernel dropped some of its accounts: peaks are those \
                 of rusage in these runs"
                    .into(),
            );
        }
        match self.reply.left_over {
            0 => {}
            1 => remarks.push("left a process running behind it, which was killed".into()),
            n => remarks.push(format!("left {n} processes running behind it, which were killed")),
        }
        remarks.extend(self.refused.clone());
        let most = self.tree.into_iter().flatten().map(|process| process.threads).max().unwrap_or(1);
        if self.cpus.len() == 1 && most > 1 {
            remarks.push(
                "has a process of several threads, and was pinned to one CPU: `--cpus any` or a list lets them run \
                 side by side"
                    .into(),
            );
        }
        remarks
    }
}

/// The wall-clock time of a moment on the launcher's clock, CLOCK_MONOTONIC ([`std::time::Instant`] uses that clock but
/// does not expose it).
pub(crate) fn began_at(began: Duration) -> SystemTime {
    let age = Duration::from_nanos(clock::now()).saturating_sub(began);
    let now = SystemTime::now();
    // A run that never reached its execve began just now.
    (!began.is_zero()).then(|| now.checked_sub(age)).flatten().unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_before_an_execve_counts_where_it_is_clearly_larger() {
        const MIB: u64 = 1 << 20;
        let tree = [Process { max_rss: 2 * MIB - 4096, ..Process::default() }];
        assert_eq!(before_exec(2 * MIB, Some(&tree), 200 * MIB), 198 * MIB);
        assert_eq!(before_exec(2 * MIB, None, 2000 * MIB), 1998 * MIB);
        // The same image, whose account lags by a page; and a launcher of unknown size.
        assert_eq!(before_exec(2 * MIB, Some(&tree), 2 * MIB - 4096), 0);
        assert_eq!(before_exec(2 * MIB, None, 2 * MIB + 4096), 0);
        assert_eq!(before_exec(2 * MIB, Some(&tree), 0), 0);
    }
}
