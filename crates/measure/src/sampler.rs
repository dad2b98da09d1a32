//! The sampler reads the memory of a process tree while it runs, at a bounded cost.
//!
//! A thread of its own, on other CPUs than the program's where possible, follows every process that the
//! launcher starts. It has an overhead budget ([`overhead_budget::OverheadBudget`]) for each of its tasks. It
//! finds the processes of the tree and takes statm samples (`/proc/PID/statm`). A pagemap scan finds the
//! resident pages of a tree of one process. An smaps snapshot reads all mappings of the whole tree
//! (`/proc/PID/smaps`): the kernel then walks the page tables and holds a lock that mmap and brk wait for.
//! The sampler takes a snapshot when a statm sample shows a change, when the program writes a mark, and at
//! intervals.
//!
//! The sampler does not know campaigns: [`Sampler::start`] precedes a run, [`Sampler::stop`] follows its end.

pub(crate) mod account;
mod downsample;
pub(crate) mod marks;
mod overhead_budget;
mod pagemap;
pub(crate) mod smaps;
pub(crate) mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use widthwise_experiment::memory::{Amounts, Class, Part, Process, Reading, Series, StatmSample, Totals};

use account::Account;
use downsample::{downsampled, downsampled_readings, push_glance, push_reading, MOST_GLANCES, MOST_READINGS};
use marks::Marks;
use overhead_budget::OverheadBudget;
use pagemap::Pagemap;
use tree::{LastReading, Once, ProcessHandle, Texts};

/// The share of the program's time that all readings may take. A program that stopped during each reading
/// would be slowed by this much.
pub const SHARE: f64 = 0.005;

/// How the budget is divided: among the process tree, statm samples, pagemap scans and smaps snapshots.
const OF_TREE: f64 = 0.10;
const OF_GLANCES: f64 = 0.15;
const OF_SURVEYS: f64 = 0.35;
const OF_READINGS: f64 = 0.40;

/// Initial estimates of the cost of each kind of reading, in nanoseconds (measured on a small program).
const TREE_COST: f64 = 40e3;
const GLANCE_COST: f64 = 4e3;
const READING_COST: f64 = 200e3;
/// And of each resident byte (40 MB took 1.1 ms when none of it was in the reader's caches).
const READING_COST_OF_BYTE: f64 = 0.025;
const LISTING_COST: f64 = 20e3;
const SURVEY_COST: f64 = 120e3;
const SURVEY_COST_OF_BYTE: f64 = 0.0025;

/// The shortest time between two readings of one kind.
const LEAST_GAP: u64 = 500_000;
/// Unchanged memory is read again after this time: it may since be shared by others, or swapped out.
const QUIET: u64 = 1_000_000_000;
/// How often the sampler looks for the start of the program; nothing runs yet that it could disturb.
const AWAITING: Duration = Duration::from_micros(200);
/// The longest sleep: the sampler may have to stop.
const LONGEST: Duration = Duration::from_millis(100);

/// The series leaves out processes beyond this number.
const MOST_PROCESSES: usize = 4096;

/// What to watch, and how.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The launcher's process number ([`crate::run::Runner::launcher`]): the sampler watches its descendants.
    pub launcher: u32,
    /// The CPUs that the program may use; empty for all. The sampler avoids them where it can.
    pub cpus: Vec<u32>,
    /// What starts x32 programs, where it is used: its own memory is in a class of its own
    /// ([`Class::Runtime`]).
    pub runtime: Option<PathBuf>,
    /// Mappings of files whose paths begin with this are in a class of their own ([`Class::Recorder`]).
    pub recorder: Option<PathBuf>,
    /// A named pipe to make for the program's marks; the program finds its path in [`MARKS`].
    pub marks: Option<PathBuf>,
    /// `memory.stat` of a control group that holds the program and nothing else of size: the tree's anonymous
    /// memory.
    pub group: Option<PathBuf>,
    /// The share of time that readings may take; normally [`SHARE`].
    pub share: f64,
}

/// The environment variable that names the pipe for marks.
pub const MARKS: &str = "WIDTHWISE_MARKS";

/// What the sampler saw. Times are those of CLOCK_MONOTONIC, until [`Seen::since`] makes a series of them.
#[derive(Debug, Default)]
pub struct Seen {
    series: Series,
    /// A process may not be read: its number and the system's reason.
    pub refused: Option<(u32, String)>,
    /// The number of every thread of every process.
    pub tasks: BTreeSet<u32>,
    /// Ranges of files, by device and inode, that processes had mapped; [`Seen::listed`] has the processes
    /// that were read.
    pub mapped_files: BTreeMap<(u64, u64), Vec<Range<u64>>>,
    /// The processes whose mappings were listed.
    pub listed: BTreeSet<u32>,
    /// The most memory that was certainly resident by the control group's account, in bytes.
    pub charged: Option<u64>,
    /// The most page cache that the control group's account showed.
    pub cached: u64,
    /// Lines beyond those that are kept were written to the pipe for marks.
    pub marks_lost: bool,
}

impl Seen {
    /// The series of a program that began at `began` (CLOCK_MONOTONIC) and ran for `wall`: times count from
    /// its start.
    pub fn since(self, began: Duration, wall: Duration) -> Series {
        let (began, wall) = (began.as_nanos() as u64, wall.as_nanos() as u64);
        let mut series = self.series;
        series.wall_ns = wall;
        let from = |at: &mut u64| *at = at.saturating_sub(began);
        series.statm_samples.iter_mut().for_each(|statm_sample| from(&mut statm_sample.at_ns));
        series.readings.iter_mut().for_each(|reading| from(&mut reading.at_ns));
        series.marks.iter_mut().for_each(|mark| from(&mut mark.at_ns));
        series.readings.dedup_by_key(|reading| reading.at_ns);
        for process in &mut series.processes {
            from(&mut process.began_ns);
            // A process that lived until the end is found to be gone a moment later.
            process.ended_ns = process.ended_ns.saturating_sub(began);
        }
        series
    }
}

/// A running sampler.
#[derive(Debug)]
pub struct Sampler {
    thread: JoinHandle<Seen>,
    stop: Arc<AtomicBool>,
    wake_fd: OwnedFd,
}

impl Sampler {
    /// Starts to watch. The pipe for marks exists when this returns.
    ///
    /// # Errors
    /// The pipe or the thread cannot be made.
    pub fn start(watch: Watch) -> io::Result<Sampler> {
        let marks = watch.marks.as_deref().map(Marks::open).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let wake_fd = wake_fd()?;
        let hears = wake_fd.try_clone()?;
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("ww-sampler".into()).spawn(move || {
            keep_off(&watch.cpus);
            let mut eye = SamplerThread::new(watch, marks);
            eye.watch(&stopped, hears.as_raw_fd());
            eye.close()
        })?;
        Ok(Sampler { thread, stop, wake_fd })
    }

    /// Stops watching, and returns what was seen.
    pub fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: an open descriptor and eight valid bytes.
        unsafe { libc::write(self.wake_fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        self.thread.join().unwrap_or_default()
    }
}

/// The wake fd: wakes the sampler thread.
fn wake_fd() -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: eventfd(2) takes numbers only; the descriptor is owned from here on.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Keeps this thread off the program's CPUs, where others are left.
fn keep_off(cpus: &[u32]) {
    for &cpu in cpus {
        crate::core_lock::step_aside(cpu);
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of the launcher.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time of this thread in nanoseconds. A thread that does not run does not read either.
fn used() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the process has ended: its folder is gone, or it no longer has memory.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

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
struct SamplerThread {
    watch: Watch,
    marks: Option<Marks>,
    seen: Seen,
    /// The living processes, by process number.
    tree: BTreeMap<u32, ProcessHandle>,
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
    size_surveyed: Option<u64>,
    pagemap: Pagemap,
    /// The control group's account, while it can be read.
    group: Option<Account>,
    /// Something has changed since the last snapshot.
    changed: bool,
    /// The file that the launcher itself executes.
    launcher_file: Option<PathBuf>,
    texts: Vec<Texts>,
}

impl SamplerThread {
    fn new(watch: Watch, marks: Option<Marks>) -> SamplerThread {
        let launcher_file = tree::program(watch.launcher);
        let group = watch.group.as_deref().and_then(Account::open);
        let mut texts = Texts::default();
        ProcessHandle::rehearse(&mut texts);
        let mut pagemap = Pagemap::default();
        let _ = pagemap.resident(std::process::id(), tree::END_OF_ADDRESSES);
        SamplerThread {
            watch,
            marks,
            seen: Seen::default(),
            tree: BTreeMap::new(),
            parts: HashMap::new(),
            budgets: None,
            size: 0,
            settled: false,
            size_read: 0,
            highest_read: 0,
            size_surveyed: Some(0),
            pagemap,
            group,
            last_reading: 0,
            changed: true,
            launcher_file,
            texts: vec![texts],
        }
    }

    fn watch(&mut self, stop: &AtomicBool, wake_fd: RawFd) {
        while !stop.load(Ordering::Acquire) {
            let pause = match self.budgets {
                None => self.await_program(),
                Some(_) => self.look(),
            };
            self.sleep(wake_fd, pause);
        }
    }

    fn close(mut self) -> Seen {
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
            let most = MOST_GLANCES * own.len() / series.statm_samples.len().max(1);
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
                statm_samples: budget(OF_GLANCES, GLANCE_COST),
                pagemap_scans: budget(OF_SURVEYS, SURVEY_COST),
                readings: budget(OF_READINGS, READING_COST),
            });
        }
        AWAITING
    }

    /// Does what is due; returns the time until the next reading is due.
    fn look(&mut self) -> Duration {
        self.listen();
        let Some(mut budgets) = self.budgets.take() else { return AWAITING };
        if now() >= budgets.tree.ready(budgets.tree.cost()) {
            let began = used();
            self.find_tree();
            self.pay(&mut budgets.tree, began);
        }
        if now() >= budgets.statm_samples.ready(budgets.statm_samples.cost()) {
            let (began, at) = (used(), now());
            self.tree.values_mut().for_each(ProcessHandle::statm_sample);
            self.pay(&mut budgets.statm_samples, began);
            self.understand_glances(at);
            self.read_account(&mut budgets.pagemap_scans);
            self.list_mappings(at, &mut budgets.pagemap_scans);
        }
        let began = now();
        if began >= self.reading_due(&budgets.readings) {
            let took = self.read(began);
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
            self.reading_due(&budgets.readings),
        ];
        let next = dues.into_iter().min().unwrap_or(u64::MAX);
        self.budgets = Some(budgets);
        Duration::from_nanos(next.saturating_sub(now()).max(50_000))
    }

    /// When an smaps snapshot is due. A new maximum size is read as soon as the budget allows; another
    /// change, once the budget leaves something for the next snapshot; an unchanged tree, at intervals.
    fn reading_due(&self, budget: &OverheadBudget) -> u64 {
        if self.tree.is_empty() {
            return u64::MAX;
        }
        // Larger memories take longer to walk.
        let grown = self.size.saturating_sub(self.size_read) as f64 * READING_COST_OF_BYTE;
        let cost = budget.cost() + grown;
        let is_new_height = self.size > self.highest_read.saturating_add(self.highest_read / 200);
        if is_new_height {
            budget.ready(self.worth(cost))
        } else if self.changed {
            budget.ready(1.5 * self.worth(cost))
        } else {
            budget.ready(2.0 * cost).max(self.last_reading.saturating_add(QUIET))
        }
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

    /// When a pagemap scan of a tree of one process is due: whenever its size has changed.
    fn pagemap_scan_due(&self, budget: &OverheadBudget) -> u64 {
        let mut all = self.tree.values();
        let (Some(last), Some(only), None) = (self.size_surveyed, all.next(), all.next()) else {
            return u64::MAX;
        };
        if only.resident == 0 || self.size.abs_diff(last) < least_change(last) {
            return u64::MAX;
        }
        let cost = budget.cost() + self.size.saturating_sub(last) as f64 * SURVEY_COST_OF_BYTE;
        budget.ready(self.worth(cost))
    }

    /// Scans the memory of the only process; returns how long that took.
    fn pagemap_scan(&mut self, at_ns: u64) -> u64 {
        let began = used();
        let Some(only) = self.tree.values_mut().next() else { return 0 };
        let Some(texts) = self.texts.first_mut() else { return 0 };
        let found = only.scan(texts, &mut self.pagemap);
        let took = used() - began;
        let stretches = match found {
            Ok(Some(stretches)) => stretches,
            // Too fragmented to be worth it, or a kernel before 6.7.
            Ok(None) => return self.without_pagemap_scans(took),
            Err(error) if is_gone(&error) => return took,
            Err(_) => return self.without_pagemap_scans(took),
        };
        self.size_surveyed = Some(self.size);
        let Some((size, found)) =
            only.pagemap_scan(texts, &stretches, self.watch.runtime.as_ref(), self.watch.recorder.as_ref())
        else {
            return took;
        };
        let mut parts: BTreeMap<usize, Amounts> = BTreeMap::new();
        for (part, amounts) in found {
            let sum = parts.entry(self.index_of(part)).or_default();
            *sum = sum.plus(amounts);
        }
        let sum = parts.values().fold(Amounts::default(), |sum, amounts| sum.plus(*amounts));
        let anonymous = size.resident.saturating_sub(size.shared);
        let tree = Totals { amounts: Amounts { anonymous, ..sum }, ..Totals::default() };
        self.seen.series.pagemap_scans_made += 1;
        let parts = parts.into_iter().collect();
        self.keep(Reading { at_ns, full: false, tree, processes: Vec::new(), parts });
        took
    }

    fn without_pagemap_scans(&mut self, took: u64) -> u64 {
        self.size_surveyed = None;
        took
    }

    fn pay(&mut self, budget: &mut OverheadBudget, began: u64) {
        let took = used() - began;
        budget.spend(now(), took);
        self.seen.series.spent_ns += took;
    }

    /// Reads the control group's account for a tree of several processes, for which there are no pagemap
    /// scans. The file pages of one process, by its last statm sample, are resident in addition to the
    /// anonymous memory.
    fn read_account(&mut self, budget: &mut OverheadBudget) {
        let Some(group) = self.group.as_mut().filter(|_| self.tree.len() > 1) else { return };
        if now() < budget.ready(group.cost()) {
            return;
        }
        let began = used();
        let found = group.read();
        let took = used() - began;
        budget.spend_besides(took);
        group.took(took);
        self.seen.series.spent_ns += took;
        let Some((anonymous, cached)) = found else {
            self.group = None;
            return;
        };
        let of_files =
            self.tree.values_mut().filter_map(|watched| watched.size().map(|size| size.shared)).max();
        let resident = anonymous.saturating_add(of_files.unwrap_or(0));
        self.seen.charged = self.seen.charged.max(Some(resident));
        self.seen.cached = self.seen.cached.max(cached);
    }

    /// Finds how much of their address space processes have files mapped in.
    fn list_mappings(&mut self, at_ns: u64, budget: &mut OverheadBudget) {
        let Some(texts) = self.texts.first_mut() else { return };
        for (&pid, watched) in &mut self.tree {
            if at_ns < budget.ready(LISTING_COST) || !watched.is_to_be_listed(at_ns) {
                continue;
            }
            let began = used();
            let listed = watched.list(texts, at_ns);
            let took = used() - began;
            budget.spend_besides(took);
            self.seen.series.spent_ns += took;
            if listed.is_ok() {
                self.seen.listed.insert(pid);
                for (file, stretch) in texts.mapped_files() {
                    let stretches = self.seen.mapped_files.entry(file).or_default();
                    if !stretches.contains(&stretch) {
                        stretches.push(stretch);
                    }
                }
            }
        }
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

    /// Finds the processes of the tree.
    fn find_tree(&mut self) {
        let tasks = &mut self.seen.tasks;
        let found = tree::descendants_and(self.watch.launcher, |task| {
            tasks.insert(task);
        });
        let at = now();
        for (&pid, &parent) in &found {
            if self.tree.contains_key(&pid) || self.seen.series.processes.len() >= MOST_PROCESSES {
                continue;
            }
            // The launcher's child has the launcher's memory until it executes the program.
            let program = tree::program(pid);
            if program.is_none() || program == self.launcher_file {
                continue;
            }
            let index = self.seen.series.processes.len();
            if let Ok(watched) = ProcessHandle::open(pid, index) {
                let process = Process { pid, parent, name: String::new(), began_ns: at, ended_ns: at };
                self.seen.series.processes.push(process);
                self.tree.insert(pid, watched);
                self.changed = true;
            }
        }
    }

    /// Evaluates the statm samples: how large every process was.
    fn understand_glances(&mut self, at_ns: u64) {
        let mut size = 0;
        let mut gone = Vec::new();
        for (&pid, watched) in &mut self.tree {
            match watched.size() {
                Some(found) => {
                    size += found.resident;
                    let statm_sample = StatmSample {
                        at_ns,
                        process: watched.index,
                        resident: found.resident,
                        anonymous: found.resident.saturating_sub(found.shared),
                        virtual_bytes: found.virtual_bytes,
                    };
                    push_glance(&mut self.seen.series.statm_samples, statm_sample);
                    self.seen.series.statm_samples_made += 1;
                }
                None => gone.push(pid),
            }
        }
        self.forget(&gone, at_ns);
        self.settled = size.abs_diff(self.size) < least_change(self.size);
        self.size = size;
        self.changed |= size.abs_diff(self.size_read) >= least_change(self.size_read);
        if self.seen.series.statm_samples.len() > 8 * MOST_GLANCES {
            let statm_samples = std::mem::take(&mut self.seen.series.statm_samples);
            self.seen.series.statm_samples =
                downsampled(&statm_samples, 4 * MOST_GLANCES, |statm_sample| statm_sample.resident);
        }
    }

    fn forget(&mut self, gone: &[u32], at_ns: u64) {
        for pid in gone {
            if let Some(watched) = self.tree.remove(pid) {
                self.seen.series.processes[watched.index].ended_ns = at_ns;
                self.changed = true;
            }
        }
    }

    /// Takes an smaps snapshot of all processes, one after the other; returns how long reading took. The
    /// evaluation afterwards does not disturb the program.
    fn read(&mut self, at_ns: u64) -> u64 {
        let began = used();
        let mut read = Vec::new();
        let mut gone = Vec::new();
        self.texts.resize_with(self.texts.len().max(self.tree.len()), Texts::default);
        for (texts, (&pid, watched)) in self.texts.iter_mut().zip(&mut self.tree) {
            match watched.read(texts) {
                Ok(()) => read.push((texts, pid)),
                Err(error) if is_gone(&error) => gone.push(pid),
                Err(error) => self.seen.refused = Some((pid, error.to_string())),
            }
        }
        let took = used() - began;
        let mut portraits: Vec<(u32, usize, LastReading)> = Vec::new();
        for (texts, pid) in read {
            let Some(watched) = self.tree.get_mut(&pid) else { continue };
            let portrait = watched.portrait(texts, self.watch.runtime.as_ref());
            portraits.extend(portrait.map(|portrait| (pid, watched.index, portrait)));
        }
        without_borrowed_memory(&mut portraits);
        self.forget(&gone, at_ns);
        self.last_reading = at_ns;
        self.changed = false;
        self.size_read = self.tree.values().map(|watched| watched.resident).sum();
        self.size_surveyed = self.size_surveyed.map(|_| self.size_read);
        self.highest_read = self.highest_read.max(self.size_read).max(self.size);
        if portraits.is_empty() {
            return took;
        }
        for (_, index, portrait) in &portraits {
            self.seen.series.processes[*index].name.clone_from(&portrait.name);
        }
        let reading = self.added_up(at_ns, &portraits);
        self.seen.series.readings_made += 1;
        self.keep(reading);
        took
    }

    fn keep(&mut self, reading: Reading) {
        let readings = &mut self.seen.series.readings;
        push_reading(readings, reading);
        if readings.len() > 2 * MOST_READINGS {
            *readings = downsampled_readings(readings);
        }
    }

    /// The tree's figures: the sum of its processes'.
    fn added_up(&mut self, at_ns: u64, portraits: &[(u32, usize, LastReading)]) -> Reading {
        let mut parts: BTreeMap<usize, Amounts> = BTreeMap::new();
        let mut once = Once::default();
        let mut tree = Totals::default();
        for (pid, _, portrait) in portraits {
            let mut around = portrait.around.clone();
            around.recorder.clone_from(&self.watch.recorder);
            let classified = smaps::classify(&portrait.mappings, &around);
            if let Some(watched) = self.tree.get_mut(pid) {
                watched.remember(portrait, &classified);
            }
            for (mapping, part) in portrait.mappings.iter().zip(classified) {
                let index = self.index_of(part);
                let amounts = parts.entry(index).or_default();
                *amounts = amounts.plus(once.add(index, mapping));
            }
            tree.page_tables += portrait.totals.page_tables;
            tree.huge += portrait.totals.huge;
        }
        for (part, shared) in once.rest() {
            if let Some(amounts) = parts.get_mut(&part) {
                amounts.resident += shared;
            }
        }
        let of_class = |class| {
            let own = parts.iter().filter(|(part, _)| self.seen.series.parts[**part].class == class);
            own.fold(Amounts::default(), |sum, (_, amounts)| sum.plus(*amounts))
        };
        let shared = of_class(Class::Shared);
        tree.amounts = parts.values().fold(Amounts::default(), |sum, amounts| sum.plus(*amounts));
        tree.shared = shared.resident.saturating_sub(shared.anonymous);
        tree.file = tree.amounts.resident.saturating_sub(tree.amounts.anonymous).saturating_sub(tree.shared);
        Reading {
            at_ns,
            full: true,
            tree,
            processes: portraits.iter().map(|(_, index, portrait)| (*index, portrait.totals)).collect(),
            parts: parts.into_iter().collect(),
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

/// A change of a page or two is normal.
fn least_change(size: u64) -> u64 {
    (size / 256).max(16 << 10)
}

/// Leaves out processes that use another's memory: a child of vfork before its execve.
fn without_borrowed_memory(portraits: &mut Vec<(u32, usize, LastReading)>) {
    let mut kept: Vec<(u32, usize, LastReading)> = Vec::with_capacity(portraits.len());
    for (pid, index, portrait) in portraits.drain(..) {
        let borrowed = kept.iter().any(|(other, _, theirs)| {
            theirs.mappings.len() == portrait.mappings.len()
                && theirs.totals.amounts == portrait.totals.amounts
                && tree::share_memory(*other, pid)
        });
        if !borrowed {
            kept.push((pid, index, portrait));
        }
    }
    *portraits = kept;
}
