//! The x32 runtime's own cost in a run: the file in which it counts, the cost of each kind of call on this
//! machine, and what is subtracted from the program's figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::{Reading, Source};
use widthwise_x32run::{Account, Costs, Image, ImageEnd, ACCOUNT_SIZE};

use crate::run::memory_file::memory_file;
use widthwise_proc::taskstats::Process;

/// Changing clock rates and a busy host change the costs of calls: they are measured again after this time.
const COSTS_HOLD: Duration = Duration::from_secs(10);

/// The peak of a process that was read just before its end may be lower by this much than the kernel's final
/// value: the kernel counts pages per CPU, and adds them up at intervals (`lib/percpu_counter.c`).
const PEAK_LAGS: u64 = 512 << 10;

/// The most uncounted page faults of a task that may be the runtime's. Beside a kernel with x32 they are
/// three in a process, six in a forked one, and five in a thread (docs/x32.md).
const FAULTS_UNCOUNTED: u64 = 6;

/// The accounts of runs in flight.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// One for each pair of output files.
    files: BTreeMap<usize, File>,
    costs: Option<(Costs, Instant)>,
}

impl Accounts {
    /// Makes an empty account for a run, and returns the path for the runtime.
    pub fn begin(&mut self, files: usize) -> io::Result<PathBuf> {
        let file = match self.files.remove(&files) {
            Some(file) => file,
            None => memory_file(c"x32run-account")?,
        };
        // Truncation removes the last run's counts, with their pages.
        file.set_len(0)?;
        file.set_len(ACCOUNT_SIZE)?;
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        self.files.insert(files, file);
        Ok(path)
    }

    /// The counts of the run; absent where the runtime could not open the file.
    pub fn end(&self, files: usize) -> Option<Account> {
        let mut bytes = vec![0; ACCOUNT_SIZE as usize];
        self.files.get(&files)?.read_exact_at(&mut bytes, 0).ok()?;
        Account::read(&bytes)
    }

    /// Measures the cost of each kind of call on the CPUs of the runs, unless it is known. Nothing may be
    /// running.
    pub fn measure_costs(&mut self, runtime: &Path, cpus: &[u32]) {
        if self.costs.as_ref().is_some_and(|(_, since)| since.elapsed() < COSTS_HOLD) {
            return;
        }
        if let Some(costs) = costs(runtime, cpus) {
            self.costs = Some((costs, Instant::now()));
        }
    }

    /// The cost of each kind of call, where it could be measured.
    pub fn costs(&self) -> Option<&Costs> {
        self.costs.as_ref().map(|(costs, _)| costs)
    }
}

fn costs(runtime: &Path, cpus: &[u32]) -> Option<Costs> {
    let mut command = Command::new(runtime);
    command.arg("--costs").stdin(Stdio::null()).stderr(Stdio::null());
    if !cpus.is_empty() {
        let cpus = cpus.to_vec();
        let go_there = move || {
            // SAFETY: a set of CPUs is plain bits; sched_setaffinity(2) may be called between fork and exec.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu as usize, &mut set));
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing.
        unsafe { command.pre_exec(go_there) };
    }
    let began = (Instant::now(), ticks());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let (elapsed, ticks) = (began.0.elapsed(), ticks() - began.1);
    Costs::read(&String::from_utf8_lossy(&output.stdout), elapsed.as_nanos() as f64 / ticks.max(1) as f64)
}

/// The time-stamp counter: the same on every CPU wherever Linux uses it as a clock.
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return 0;
}

type Sample = BTreeMap<&'static str, Reading>;

/// Subtracts the runtime's own pages and faults from a sample and from its processes, and adds them as
/// metrics of their own.
pub(super) fn leave_out(
    account: &Account,
    costs: Option<&Costs>,
    sample: &mut Sample,
    processes: Option<&mut [Process]>,
) {
    let own_of = |image: &Image| image.resident.or_else(|| usual(account));
    let source = sample.get("max_rss").map(|reading| reading.source);
    let resident = match (processes, source) {
        (Some(processes), Some(Source::Taskstats)) => of_processes(account, &own_of, sample, processes),
        (Some(processes), Some(Source::Rusage)) => of_replaced(account, &own_of, sample, processes),
        _ => of_largest(account, &own_of, sample),
    };
    let mut own = |name, value| sample.insert(name, Reading::whole(value, Source::Runtime));
    if let Some(resident) = resident {
        own("runtime_resident", resident as f64);
    }
    let minor: u64 = account.images.iter().map(|image| image.minor_faults).sum();
    let major: u64 = account.images.iter().map(|image| image.major_faults).sum();
    own("runtime_faults", (minor + major) as f64);
    own("runtime_calls", account.slow() as f64);
    if let Some(costs) = costs.filter(|_| account.uncounted == 0) {
        own("runtime_cpu", account.cpu_ns(costs));
    }
    let tasks = (account.images.len() as u64).max(1 + account.calls(&["clone", "clone3", "fork", "vfork"]));
    let uncounted = FAULTS_UNCOUNTED * tasks;
    for (name, own, uncounted) in [
        ("page_faults", minor + major, uncounted),
        ("minor_faults", minor, uncounted),
        ("major_faults", major, 0),
    ] {
        let Some(reading) = sample.get_mut(name) else { continue };
        // More than all that were read: some processes of the runtime are in no `rusage`.
        let is_open = own as f64 > reading.value;
        let high = if is_open { f64::INFINITY } else { reading.highest() - own as f64 };
        let low = (reading.value - (own + uncounted) as f64).max(0.0);
        *reading = Reading::between(low, high, reading.source);
    }
}

fn lessen(sample: &mut Sample, name: &str, by: u64) {
    if let Some(reading) = sample.get_mut(name) {
        reading.value = (reading.value - by as f64).max(0.0);
    }
}

/// The usual size of a runtime image, for one that did not report it because it was killed.
fn usual(account: &Account) -> Option<u64> {
    account.images.iter().filter_map(|image| image.resident).max()
}

/// The kernel has reported each process. Its figures are those of its last image.
fn of_processes(
    account: &Account,
    own_of: &dyn Fn(&Image) -> Option<u64>,
    sample: &mut Sample,
    processes: &mut [Process],
) -> Option<u64> {
    let mut largest = None;
    for process in processes.iter_mut() {
        let of_process = |image: &&Image| image.process == process.pid && image.end != ImageEnd::Replaced;
        let image = account.images.iter().rev().find(of_process);
        let own = image.and_then(own_of).unwrap_or(0);
        process.max_rss = process.max_rss.saturating_sub(own);
        process.peak_virtual = process.peak_virtual.saturating_sub(image.map_or(0, |i| i.virtual_size));
        if largest.is_none_or(|(peak, _)| process.max_rss > peak) {
            largest = Some((process.max_rss, own));
        }
    }
    let mut put = |name, value: u64| {
        if let Some(reading) = sample.get_mut(name) {
            reading.value = value as f64;
        }
    };
    put("peak_virtual", processes.iter().map(|process| process.peak_virtual).max()?);
    put("max_rss_sum", processes.iter().map(|process| process.max_rss).sum());
    let (peak, own) = largest?;
    put("max_rss", peak);
    Some(own)
}

/// As [`of_processes`], and an image that an `execve` replaced may be the largest.
fn of_replaced(
    account: &Account,
    own_of: &dyn Fn(&Image) -> Option<u64>,
    sample: &mut Sample,
    processes: &mut [Process],
) -> Option<u64> {
    let all_images = sample.get("max_rss")?.value as u64;
    let own_of_last = of_processes(account, own_of, sample, processes)?;
    let at_exit = sample.get("max_rss")?.value;
    let own = largest(account, own_of, all_images).map_or(0, |(_, own)| own);
    let before_exec = all_images.saturating_sub(own) as f64 - at_exit;
    if before_exec <= 0.0 {
        return Some(own_of_last);
    }
    for name in ["max_rss", "max_rss_sum"] {
        sample.entry(name).and_modify(|reading| reading.value += before_exec);
    }
    let peak = at_exit + before_exec;
    if let Some(reading) = sample.get_mut("peak_virtual").filter(|reading| reading.upper.is_some()) {
        reading.value = reading.value.max(peak);
    }
    Some(own)
}

/// The image of the runtime that had this peak, and the runtime's own part of it: the peaks that the runtime has seen
/// identify it. `None`: another program had the peak.
fn largest<'a>(
    account: &'a Account,
    own_of: &dyn Fn(&Image) -> Option<u64>,
    peak: u64,
) -> Option<(&'a Image, u64)> {
    // The peak of an image is unknown if earlier images of the same process had a higher one.
    let grown = account.images.iter().filter(|image| image.peak > image.peak_before);
    let image = grown.max_by_key(|image| image.peak)?;
    let is_anothers = peak > image.peak + PEAK_LAGS.max(peak / 50) && image.end != ImageEnd::Unknown;
    (!is_anothers).then_some((image, own_of(image)?))
}

/// Only the largest peak of all is known.
fn of_largest(account: &Account, own_of: &dyn Fn(&Image) -> Option<u64>, sample: &mut Sample) -> Option<u64> {
    let peak = sample.get("max_rss")?.value as u64;
    if !account.images.iter().any(|image| image.peak > image.peak_before && own_of(image).is_some()) {
        return None;
    }
    let ended = account.images.iter().filter(|image| image.end != ImageEnd::Replaced);
    let all: u64 = ended.filter_map(own_of).sum();
    lessen(sample, "max_rss_sum", all);
    let Some((image, own)) = largest(account, own_of, peak) else { return Some(0) };
    lessen(sample, "max_rss", own);
    if image.end == ImageEnd::Replaced {
        // Its address space is gone, and whose the largest at an exit was is not known; its resident memory is in the sum.
        sample.remove("peak_virtual");
        let last = account.images.iter().rev().find(|other| other.process == image.process);
        let of_last = last.filter(|last| last.end != ImageEnd::Replaced).and_then(own_of).unwrap_or(0);
        lessen(sample, "max_rss_sum", own.saturating_sub(of_last));
    } else {
        lessen(sample, "peak_virtual", image.virtual_size);
    }
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(process: u32, peak: u64, resident: Option<u64>) -> Image {
        Image {
            process,
            end: ImageEnd::Ended,
            resident,
            peak,
            peak_before: 0,
            virtual_size: 1000,
            minor_faults: 5,
            major_faults: 1,
        }
    }

    fn account(images: Vec<Image>) -> Account {
        let mut account = Account::default();
        account.images = images;
        account
    }

    fn sample(peak: f64, source: Source) -> Sample {
        let names = ["max_rss", "peak_virtual", "max_rss_sum", "page_faults", "minor_faults"];
        names.into_iter().map(|name| (name, Reading::whole(peak, source))).collect()
    }

    fn process(pid: u32, peak: u64) -> Process {
        let comm = String::new();
        Process { pid, comm, max_rss: peak, peak_virtual: peak, cpu_ns: 0, threads: 1, ..Process::default() }
    }

    #[test]
    fn each_process_is_reduced_by_the_runtimes_part_in_its_last_image() {
        let mut replaced = image(1, 9000, Some(700));
        replaced.end = ImageEnd::Replaced;
        let account = account(vec![replaced, image(2, 4000, Some(300)), image(1, 5000, Some(400))]);
        let mut processes = [process(1, 5000), process(2, 4900), process(3, 4500)];
        let mut sample = sample(5000.0, Source::Taskstats);
        leave_out(&account, None, &mut sample, Some(&mut processes));
        assert_eq!(processes.map(|process| process.max_rss), [4600, 4600, 4500]);
        assert_eq!((sample["max_rss"].value, sample["runtime_resident"].value), (4600.0, 400.0));
        assert_eq!(sample["max_rss_sum"].value, 13_700.0);
        let faults = sample["page_faults"];
        assert_eq!((faults.value, faults.highest(), sample["runtime_faults"].value), (4964.0, 4982.0, 18.0));
    }

    #[test]
    fn a_killed_process_is_reduced_by_the_usual_part() {
        let mut killed = image(2, 0, None);
        killed.end = ImageEnd::Unknown;
        let account = account(vec![image(1, 1000, Some(300)), killed]);
        let mut processes = [process(1, 1000), process(2, 6000)];
        let mut sample = sample(6000.0, Source::Taskstats);
        leave_out(&account, None, &mut sample, Some(&mut processes));
        assert_eq!(sample["max_rss"].value, 5700.0);
    }

    #[test]
    fn a_lone_peak_is_reduced_only_if_it_belongs_to_a_process_of_the_runtime() {
        let account = account(vec![image(1, 3 << 20, Some(300)), image(2, 5 << 20, Some(400))]);
        let mut own = sample((5 << 20) as f64, Source::Rusage);
        leave_out(&account, None, &mut own, None);
        assert_eq!(own["max_rss"].value, ((5 << 20) - 400) as f64);
        let mut of_another = sample((50 << 20) as f64, Source::Rusage);
        leave_out(&account, None, &mut of_another, None);
        assert_eq!(of_another["max_rss"].value, (50 << 20) as f64);
        assert_eq!(of_another["runtime_resident"].value, 0.0);
    }

    /// x32run's image of 9000 was replaced by a program of another ABI.
    #[test]
    fn an_image_that_another_abi_replaced_is_no_part_of_what_ended() {
        let mut replaced = image(1, 9000, Some(700));
        replaced.end = ImageEnd::Replaced;
        let account = account(vec![replaced]);
        let mut processes = [Process { peak_virtual: 2500, ..process(1, 2000) }];
        let mut known = sample(9000.0, Source::Rusage);
        known.insert("peak_virtual", Reading::between(9000.0, f64::INFINITY, Source::Taskstats));
        leave_out(&account, None, &mut known, Some(&mut processes));
        assert_eq!((known["max_rss"].value, known["max_rss_sum"].value), (8300.0, 8300.0));
        assert_eq!((known["peak_virtual"].value, known["peak_virtual"].upper), (8300.0, Some(f64::INFINITY)));
        // Without accounts of processes: the sum is 9000, and no process is known to have the largest address space at an exit.
        let mut own = sample(9000.0, Source::ExitStop);
        leave_out(&account, None, &mut own, None);
        assert_eq!((own["max_rss"].value, own["max_rss_sum"].value), (8300.0, 8300.0));
        assert!(!own.contains_key("peak_virtual"));
    }

    #[test]
    fn more_faults_of_the_runtime_than_all_that_were_read_leave_no_upper_bound() {
        let account = account(vec![image(1, 5000, Some(400)), image(2, 5000, Some(400))]);
        let mut lacks_the_second = sample(9.0, Source::Rusage);
        leave_out(&account, None, &mut lacks_the_second, None);
        let faults = lacks_the_second["page_faults"];
        assert_eq!((faults.value, faults.highest()), (0.0, f64::INFINITY));
    }
}
