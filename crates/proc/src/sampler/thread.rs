//! The sampler thread: decides what to read next, and sleeps in between.

mod bounds;
mod processes;
mod scan;
mod snapshot;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use widthwise_experiment::memory::{Part, Reading, StatmSample};

use crate::clock::{now, thread_cpu};
use crate::descendants;
use crate::memory_stat::MemoryStat;
use crate::pagemap::Pagemap;
use crate::process::{self, ProcessHandle, Texts};
use crate::sampler::downsample::{
    downsampled, downsampled_readings, push_reading, MOST_READINGS, MOST_STATM_SAMPLES,
};
use crate::sampler::marks::Marks;
use crate::sampler::overhead_budget::OverheadBudget;
use crate::sampler::seen::Seen;
use crate::sampler::watch::Watch;

/// How the budget is divided: among the process tree, statm samples, pagemap scans and smaps snapshots.
const OF_TREE: f64 = 0.10;
const OF_STATM_SAMPLES: f64 = 0.15;
const OF_PAGEMAP_SCANS: f64 = 0.35;
const OF_SNAPSHOTS: f64 = 0.40;

/// Initial estimates of the cost of each kind of reading, in nanoseconds (measured on a small program).
const TREE_COST: f64 = 40e3;
const STATM_SAMPLE_COST: f64 = 4e3;
const SNAPSHOT_COST: f64 = 200e3;
const PAGEMAP_SCAN_COST: f64 = 120e3;

/// The shortest time between two readings of one kind.
const LEAST_GAP: u64 = 500_000;
/// How often the sampler looks for the start of the program; nothing runs yet that it could disturb.
const AWAITING: Duration = Duration::from_micros(200);
/// The longest sleep: the sampler may have to stop.
const LONGEST: Duration = Duration::from_millis(100);

/// The overhead budgets, one for each kind of reading.
#[derive(Debug)]
struct OverheadBudgets {
    tree: OverheadBudget,
    statm_samples: OverheadBudget,
    pagemap_scans: OverheadBudget,
    readings: OverheadBudget,
}

/// The state of the sampler thread.
#[derive(Debug)]
pub(super) struct SamplerThread {
    watch: Watch,
    marks: Option<Marks>,
    seen: Seen,
    /// The living processes, by process number.
    tree: BTreeMap<u32, ProcessHandle>,
    /// When the last search for processes began.
    searched_ns: u64,
    parts: HashMap<Part, usize>,
    budgets: Option<OverheadBudgets>,
    /// The tree's size by the last statm samples.
    size: u64,
    /// The size did not change between the last two statm samples.
    settled: bool,
    size_read: u64,
    /// The largest size by statm samples for which there is a snapshot.
    highest_read: u64,
    last_reading: u64,
    /// The size at the last snapshot or pagemap scan; none where the kernel makes no pagemap scans.
    size_scanned: Option<u64>,
    pagemap: Pagemap,
    /// The control group's account, while it can be read.
    group: Option<MemoryStat>,
    /// Something has changed since the last snapshot.
    changed: bool,
    /// The file that the launcher itself executes.
    launcher_file: Option<PathBuf>,
    texts: Vec<Texts>,
}

impl SamplerThread {
    pub(super) fn new(watch: Watch, marks: Option<Marks>) -> SamplerThread {
        let launcher_file = descendants::program(watch.launcher);
        let group = watch.group.as_deref().and_then(MemoryStat::open);
        let mut texts = Texts::default();
        ProcessHandle::rehearse(&mut texts);
        let mut pagemap = Pagemap::default();
        let _ = pagemap.resident(std::process::id(), process::END_OF_ADDRESSES);
        SamplerThread {
            watch,
            marks,
            seen: Seen::default(),
            tree: BTreeMap::new(),
            searched_ns: 0,
            parts: HashMap::new(),
            budgets: None,
            size: 0,
            settled: false,
            size_read: 0,
            highest_read: 0,
            size_scanned: Some(0),
            pagemap,
            group,
            last_reading: 0,
            changed: true,
            launcher_file,
            texts: vec![texts],
        }
    }

    pub(super) fn watch(&mut self, stop: &AtomicBool, wake_fd: RawFd) {
        while !stop.load(Ordering::Acquire) {
            let pause = match self.budgets {
                None => self.await_program(),
                Some(_) => self.step(),
            };
            self.sleep(wake_fd, pause);
        }
    }

    pub(super) fn close(mut self) -> Seen {
        self.listen();
        let end = now();
        for watched in self.tree.values() {
            self.seen.series.processes[watched.index].ended_ns = end;
        }
        if let Some(marks) = self.marks.take() {
            let (marks, lost) = marks.close(end);
            self.seen.series.marks = marks;
            self.seen.marks_lost = lost;
        }
        let series = &mut self.seen.series;
        series.readings = downsampled_readings(&series.readings);
        let mut statm_samples = Vec::new();
        for process in 0..series.processes.len() {
            let own: Vec<StatmSample> =
                series.statm_samples.iter().copied().filter(|g| g.process == process).collect();
            // Each process gets its share of the total.
            let most = MOST_STATM_SAMPLES * own.len() / series.statm_samples.len().max(1);
            statm_samples.extend(downsampled(&own, most.max(16), |statm_sample| statm_sample.resident));
        }
        statm_samples.sort_by_key(|statm_sample| (statm_sample.at_ns, statm_sample.process));
        series.statm_samples = statm_samples;
        self.seen
    }

    /// Looks for processes that the launcher has started.
    fn await_program(&mut self) -> Duration {
        self.find_tree();
        if !self.tree.is_empty() {
            let since = now();
            let share = self.watch.share;
            let budget = |part: f64, cost| OverheadBudget::new(share * part, since, cost, LEAST_GAP);
            self.budgets = Some(OverheadBudgets {
                tree: budget(OF_TREE, TREE_COST),
                statm_samples: budget(OF_STATM_SAMPLES, STATM_SAMPLE_COST),
                pagemap_scans: budget(OF_PAGEMAP_SCANS, PAGEMAP_SCAN_COST),
                readings: budget(OF_SNAPSHOTS, SNAPSHOT_COST),
            });
        }
        AWAITING
    }

    /// Does what is due; returns the time until the next reading is due.
    fn step(&mut self) -> Duration {
        self.listen();
        let Some(mut budgets) = self.budgets.take() else { return AWAITING };
        let mut is_searched = false;
        if now() >= budgets.tree.ready(budgets.tree.cost()) {
            let began = thread_cpu();
            self.find_tree();
            self.pay(&mut budgets.tree, began);
            is_searched = true;
        }
        if now() >= budgets.statm_samples.ready(budgets.statm_samples.cost()) {
            let (began, at) = (thread_cpu(), now());
            self.tree.values_mut().for_each(ProcessHandle::statm_sample);
            self.pay(&mut budgets.statm_samples, began);
            self.evaluate_statm_samples(at);
            self.read_account(&mut budgets.pagemap_scans);
            self.list_mappings(at, &mut budgets.pagemap_scans);
        }
        if now() >= self.snapshot_due(&budgets.readings) {
            let began = thread_cpu();
            // Half of what a process shares with its child would be missing, if the child were not in the tree.
            if !is_searched {
                self.find_tree();
            }
            // The search is part of what the next snapshot is expected to cost.
            let searched = thread_cpu() - began;
            let took = searched + self.take_snapshot(now());
            budgets.readings.spend(now(), took);
            self.seen.series.spent_ns += took;
        }
        if now() >= self.pagemap_scan_due(&budgets.pagemap_scans) {
            let took = self.pagemap_scan(now());
            budgets.pagemap_scans.spend(now(), took);
            self.seen.series.spent_ns += took;
        }
        let dues = [
            budgets.tree.ready(budgets.tree.cost()),
            budgets.statm_samples.ready(budgets.statm_samples.cost()),
            self.pagemap_scan_due(&budgets.pagemap_scans),
            self.snapshot_due(&budgets.readings),
        ];
        let next = dues.into_iter().min().unwrap_or(u64::MAX);
        self.budgets = Some(budgets);
        Duration::from_nanos(next.saturating_sub(now()).max(50_000))
    }

    /// While memory grows or shrinks, a reading soon becomes outdated, and a better one may be needed a
    /// moment later: the budget must then cover two.
    fn worth(&self, cost: f64) -> f64 {
        if self.settled {
            cost
        } else {
            2.0 * cost
        }
    }

    fn pay(&mut self, budget: &mut OverheadBudget, began: u64) {
        let took = thread_cpu() - began;
        budget.spend(now(), took);
        self.seen.series.spent_ns += took;
    }

    /// Reads what the program has written to the pipe.
    fn listen(&mut self) {
        if let Some(marks) = &mut self.marks {
            self.changed |= marks.hear(now());
        }
    }

    /// Sleeps until something is due, a mark comes, or the sampler is stopped.
    fn sleep(&mut self, wake_fd: RawFd, pause: Duration) {
        let pause = pause.min(LONGEST);
        // A program that writes marks without pause does not keep the sampler awake.
        let pipe =
            self.marks.as_ref().filter(|marks| marks.may_be_heard(now())).map_or(-1, |marks| marks.pipe());
        let mut polls = [
            libc::pollfd { fd: wake_fd, events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 },
        ];
        let time = libc::timespec {
            tv_sec: pause.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(pause.subsec_nanos() as i32),
        };
        // SAFETY: two valid pollfds and a valid timespec. Whatever ends the sleep, the loop checks
        // everything.
        unsafe { libc::ppoll(polls.as_mut_ptr(), 2, &time, std::ptr::null()) };
    }

    fn keep(&mut self, reading: Reading) {
        let readings = &mut self.seen.series.readings;
        push_reading(readings, reading);
        if readings.len() > 2 * MOST_READINGS {
            *readings = downsampled_readings(readings);
        }
    }

    fn index_of(&mut self, part: Part) -> usize {
        let parts = &mut self.seen.series.parts;
        *self.parts.entry(part).or_insert_with_key(|part| {
            parts.push(part.clone());
            parts.len() - 1
        })
    }
}

/// Whether the process has ended: its folder is gone, or it no longer has memory.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// A change of a page or two is normal.
fn least_change(size: u64) -> u64 {
    (size / 256).max(16 << 10)
}
