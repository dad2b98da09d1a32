//! Bounds of the peak resident memory of a process tree. Pure.
//!
//! A sampler reads a tree of short processes too rarely to know its peak. But the kernel keeps each process's
//! own peak, a control group's peak, and the amounts read and written: these bound the tree's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use widthwise_experiment::memory::{Reading, Series};
use widthwise_experiment::outcome::Source;

use super::group::GroupPeak;
use widthwise_proc::taskstats::Process;

/// The most that a page fault adds to a process's memory, transparent huge pages apart.
const PAGE: u64 = 4096;

/// What is known of the memory of a run besides its series.
#[derive(Debug, Clone, Copy)]
pub struct Accounts<'a> {
    /// Every process of the tree, where the kernel reports all of them (taskstats).
    pub processes: Option<&'a [Process]>,
    /// The peak of the largest reaped process, over all its `execve` calls (`ru_maxrss`).
    pub largest: u64,
    /// The control group's peak.
    pub group: Option<GroupPeak>,
    /// The highest resident size that the control group's account showed.
    pub charged: Option<u64>,
    /// The ranges of files that processes had mapped.
    pub mapped_files: &'a Mapped,
    /// No process began during the run except those that the sampler saw.
    pub all_seen: bool,
}

/// Bounds of the tree's peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least this much was resident at one moment.
    pub low: u64,
    /// The source of `low`.
    pub source: Source,
    /// The tree never had more. Absent where it is unknown.
    pub high: Option<u64>,
}

/// The bounds of the tree's peak; none for a run without any account.
pub fn tree_peak(series: &Series, accounts: &Accounts) -> Option<Bounds> {
    let read = series.levels().iter().map(|level| level.resident).max();
    let largest = accounts.processes.into_iter().flatten().map(|process| process.max_rss).max();
    // The kernel's own peak of the only process is the tree's.
    let is_one = accounts.processes.is_some_and(|all| all.len() == 1);
    let of_group = accounts.group.zip(accounts.processes).filter(|_| !is_one);
    let charged = of_group.and_then(|(group, all)| surely_resident(group, all));
    let known = [
        (read, Source::Smaps),
        (largest, Source::Taskstats),
        (Some(accounts.largest), Source::Rusage),
        (charged.max(accounts.charged.filter(|_| !is_one)), Source::Cgroup),
    ];
    // The first of several equal bounds.
    let known = known.into_iter().rev().filter_map(|(low, source)| Some((low?, source)));
    let (low, source) = known.max_by_key(|(low, _)| *low)?;
    let is_alone = accounts.processes.is_none() && accounts.all_seen && series.processes.len() <= 1;
    let alone = is_alone.then_some(accounts.largest);
    let of_group = of_group
        .map(|(group, all)| group.charged.saturating_add(pages_of_files(series, all, accounts.mapped_files)));
    let summed = accounts.processes.map(|all| sum_of_peaks(all, accounts.largest));
    let from_reading = accounts.processes.and_then(|all| above_readings(series, all, accounts.largest));
    let high = [alone, of_group, summed, from_reading].into_iter().flatten().min();
    // The kernel's counters of one process may be off by some pages (percpu_counter_read_positive).
    (low > 0).then(|| Bounds { low, source, high: high.map(|high| high.max(low)) })
}

/// The most that a process ever had. The kernel resets a process's peak at `execve`; what it had before is at
/// most the memory of its page faults, and at most `ru_maxrss`.
fn own_peak(process: &Process, largest: u64) -> u64 {
    process.max_rss.max(process.minor_faults.saturating_mul(PAGE).min(largest))
}

/// The sum of the members' own peaks.
fn sum_of_peaks(processes: &[Process], largest: u64) -> u64 {
    match processes {
        [only] => only.max_rss.max(largest),
        all => {
            let own = all.iter().map(|process| own_peak(process, largest));
            own.fold(0, u64::saturating_add).max(largest)
        }
    }
}

/// The most that the tree may have had beyond an smaps snapshot. This is the sum of three parts: how much
/// larger each process of the snapshot ever was; what they shared after a fork and may have copied since; the
/// whole peaks of all other processes. Returns the least over all snapshots.
fn above_readings(series: &Series, processes: &[Process], largest: u64) -> Option<u64> {
    let peaks: BTreeMap<u32, u64> =
        processes.iter().map(|process| (process.pid, own_peak(process, largest))).collect();
    let all = peaks.values().fold(0u64, |sum, peak| sum.saturating_add(*peak));
    let above = |reading: &Reading| {
        let (mut grown, mut there, mut anonymous) = (0u64, 0u64, 0u64);
        for (index, totals) in &reading.processes {
            let peak = peaks.get(&series.processes.get(*index)?.pid)?;
            grown = grown.saturating_add(peak.saturating_sub(totals.amounts.resident));
            there = there.saturating_add(*peak);
            anonymous = anonymous.saturating_add(totals.amounts.anonymous);
        }
        let tree = reading.tree.amounts;
        let copied = anonymous.saturating_sub(tree.anonymous);
        Some(
            tree.resident
                .saturating_add(grown)
                .saturating_add(copied)
                .saturating_add(all.saturating_sub(there)),
        )
    };
    series.readings.iter().filter(|reading| reading.full).filter_map(above).min()
}

/// The part of a group's charge that is neither kernel memory nor page cache. The page cache at the peak has
/// three upper bounds, which add up: all that was ever read from a disk or written; the most cache that any
/// reading of the group's account saw; every page charged without a page fault (holes that were read, files
/// made by fallocate(2)). Absent where that is unknown.
fn surely_resident(group: GroupPeak, processes: &[Process]) -> Option<u64> {
    let sum = |of: fn(&Process) -> u64| processes.iter().map(of).fold(0, u64::saturating_add);
    let unfaulted = group.pages?.saturating_sub(sum(|process| process.minor_faults)).saturating_mul(PAGE);
    let cached =
        sum(|process| process.read_and_written).saturating_add(group.cached?).saturating_add(unfaulted);
    group.charged.checked_sub(group.kernel?)?.checked_sub(group.ahead)?.checked_sub(cached)
}

/// File pages that the tree may have mapped without being charged, since they were already cached. At most
/// the sum of each process's own. Also at most all file ranges that processes were seen to map, plus the
/// whole peaks of processes with other names. (Processes of one name are assumed to map the same files.)
fn pages_of_files(series: &Series, processes: &[Process], mapped: &Mapped) -> u64 {
    let mut seen: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for statm_sample in &series.statm_samples {
        let Some(process) = series.processes.get(statm_sample.process) else { continue };
        let (files, resident) = seen.entry(process.pid).or_default();
        *files = (*files).max(statm_sample.resident.saturating_sub(statm_sample.anonymous));
        *resident = (*resident).max(statm_sample.resident);
    }
    let own = |process: &Process| match seen.get(&process.pid) {
        Some((files, resident)) => files + process.max_rss.saturating_sub(*resident),
        None => process.max_rss,
    };
    let added_up = processes.iter().map(own).fold(0, u64::saturating_add);
    let names: BTreeSet<&str> = processes
        .iter()
        .filter(|process| mapped.listed.contains(&process.pid))
        .map(|process| process.comm.as_str())
        .collect();
    let unlisted = processes.iter().filter(|process| !names.contains(process.comm.as_str())).map(own);
    let combined = unlisted.fold(mapped.bytes(), u64::saturating_add);
    added_up.min(combined)
}

/// The file ranges that processes were seen to map.
#[derive(Debug, Clone, Default)]
pub struct Mapped {
    /// Ranges, by device and inode.
    pub files: BTreeMap<(u64, u64), Vec<Range<u64>>>,
    /// The processes whose mappings were listed.
    pub listed: BTreeSet<u32>,
}

impl Mapped {
    /// The length of all ranges, counting overlaps once.
    fn bytes(&self) -> u64 {
        let of_file = |stretches: &Vec<Range<u64>>| {
            let mut sorted = stretches.clone();
            sorted.sort_by_key(|stretch| stretch.start);
            let (mut sum, mut to) = (0u64, 0);
            for stretch in sorted {
                let from = stretch.start.max(to);
                sum = sum.saturating_add(stretch.end.saturating_sub(from));
                to = to.max(stretch.end);
            }
            sum
        };
        self.files.values().map(of_file).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_experiment::memory::{Amounts, StatmSample, Totals};

    const MIB: u64 = 1 << 20;

    fn process(pid: u32, comm: &str, peak: u64) -> Process {
        Process {
            pid,
            comm: comm.into(),
            max_rss: peak * MIB,
            minor_faults: peak * 256,
            ..Process::default()
        }
    }

    /// The sampler saw one process of 3 MiB, 2 of it files; the one snapshot is of 3 MiB.
    fn series() -> Series {
        let mut series = Series::default();
        series.processes.push(widthwise_experiment::memory::Process {
            pid: 7,
            parent: 1,
            name: "p".into(),
            began_ns: 0,
            ended_ns: 100,
        });
        let resident = 3 * MIB;
        series.statm_samples.push(StatmSample {
            at_ns: 5,
            process: 0,
            resident,
            anonymous: MIB,
            virtual_bytes: resident,
        });
        let amounts = Amounts { resident, ..Amounts::default() };
        let tree = Totals { amounts, ..Totals::default() };
        series.readings.push(Reading { at_ns: 5, full: true, tree, ..Reading::default() });
        series
    }

    fn bounds(processes: Option<&[Process]>, group: Option<GroupPeak>, all_seen: bool) -> (u64, Option<u64>) {
        let largest = processes.and_then(|all| all.iter().map(|p| p.max_rss).max()).unwrap_or(3 * MIB);
        // Process 7 had 2 MiB of a file mapped, part of it twice.
        let files = BTreeMap::from([((1, 2), vec![0..MIB, 0..2 * MIB])]);
        let mapped_files = &Mapped { files, listed: BTreeSet::from([7]) };
        let accounts = Accounts { processes, largest, group, charged: None, mapped_files, all_seen };
        let found = tree_peak(&series(), &accounts).unwrap();
        (found.low / MIB, found.high.map(|high| high / MIB))
    }

    #[test]
    fn a_tree_of_one_process_has_that_processs_own_peak() {
        let only = [process(7, "p", 12)];
        assert_eq!(bounds(Some(&only), None, false), (12, Some(12)));
        assert_eq!(bounds(None, None, true), (3, Some(3)));
        assert_eq!(bounds(None, None, false), (3, None), "others may have been missed");
    }

    #[test]
    fn processes_that_the_sampler_missed_are_in_the_sum() {
        let all: Vec<Process> =
            std::iter::once(process(7, "p", 3)).chain((8..208).map(|pid| process(pid, "p", 3))).collect();
        assert_eq!(bounds(Some(&all), None, false), (3, Some(603)));
    }

    #[test]
    fn a_snapshot_of_all_processes_leaves_little_above_it() {
        let all = [process(7, "p", 3), process(8, "q", 2)];
        let mut series = series();
        series
            .processes
            .push(widthwise_experiment::memory::Process { pid: 8, ..series.processes[0].clone() });
        // Each has 2 MiB, of which one is shared after a fork.
        let of = |resident, anonymous| Totals {
            amounts: Amounts { resident: resident * MIB, anonymous: anonymous * MIB, ..Amounts::default() },
            ..Totals::default()
        };
        series.readings[0].tree = of(3, 3);
        series.readings[0].processes = vec![(0, of(2, 2)), (1, of(2, 2))];
        let mapped_files = Mapped::default();
        let accounts = Accounts {
            processes: Some(&all),
            largest: 3 * MIB,
            group: None,
            charged: None,
            mapped_files: &mapped_files,
            all_seen: false,
        };
        // One has grown by 1 MiB, and either may have copied what they share.
        assert_eq!(tree_peak(&series, &accounts).unwrap().high, Some(5 * MIB));
        series.readings[0].processes.pop();
        series.readings[0].tree = of(2, 2);
        assert_eq!(tree_peak(&series, &accounts).unwrap().high, Some(5 * MIB), "the other was not there");
    }

    #[test]
    fn the_group_narrows_both_ends() {
        let mut all: Vec<Process> = (7..15).map(|pid| process(pid, "p", 65)).collect();
        all[0].max_rss = 3 * MIB;
        let group = GroupPeak {
            charged: 200 * MIB,
            kernel: Some(2 * MIB),
            ahead: MIB,
            pages: Some(0),
            cached: Some(0),
        };
        assert_eq!(bounds(Some(&all), Some(group), false), (197, Some(202)));
        // What was written may have been page cache.
        all[3].read_and_written = 150 * MIB;
        assert_eq!(bounds(Some(&all), Some(group), false), (65, Some(202)));
        // A program of another name may map any file.
        all[3] = process(10, "q", 40);
        assert_eq!(bounds(Some(&all), Some(group), false).1, Some(242));
    }

    #[test]
    fn the_peak_before_an_exec_counts() {
        let mut all = [process(7, "p", 3), process(8, "p", 1), process(9, "p", 1)];
        all[1].minor_faults = 50 * 256;
        all[2].minor_faults = 200 * 256;
        let accounts = Accounts {
            processes: Some(&all),
            largest: 60 * MIB,
            group: None,
            charged: None,
            mapped_files: &Mapped::default(),
            all_seen: false,
        };
        let found = tree_peak(&series(), &accounts).unwrap();
        assert_eq!((found.low / MIB, found.high.unwrap() / MIB), (60, 3 + 50 + 60));
    }
}
