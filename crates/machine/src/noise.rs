//! Noise during a run: steal, pressure, other tasks on the core, throttling.
//!
//! Read around every round, so reading is cheap: the files stay open, one buffer is reused, and a reading costs
//! four system calls and no more memory than its list of CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cpulist::Cpu;

/// Noise between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of the time that the hypervisor took from the measured core, 0 to 1.
    pub steal: f64,
    /// Share of the time for which some task waited for a CPU (PSI `some`), 0 to 1; absent without PSI.
    pub pressure: Option<f64>,
    /// Share of the time for which tasks other than ours, and interrupts, ran on the measured core, 0 to 1.
    pub others: f64,
    /// Thermal throttling events on the measured core.
    pub throttled: u64,
}

/// The counts of one CPU since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Nanoseconds that tasks ran (user, nice and system), or, where the scheduler's own clock is available, that any
    /// task had the CPU.
    pub tasks_ns: u64,
    /// Nanoseconds in interrupts; 0 where they are part of `tasks_ns`.
    pub interrupts_ns: u64,
    /// Nanoseconds of tasks and interrupts by ticks alone. The scheduler's own clock counts a task when it is switched out; one that has a
    /// CPU for itself may not be for seconds.
    pub ticks_ns: u64,
    /// Nanoseconds that the hypervisor took.
    pub steal_ns: u64,
    /// Whether `tasks_ns` is the scheduler's own clock: then it is exact, and contains the steal time.
    pub exact: bool,
}

/// The unit of `/proc/stat` on every architecture that Linux has (USER_HZ, proc(5)).
const USER_TICK_NS: u64 = 10_000_000;

/// A CPU that was in use for more of the time than this is not free.
pub const BUSY: f64 = 0.2;

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When: `CLOCK_MONOTONIC`, in nanoseconds.
    pub at_ns: u64,
    /// Every CPU that is online.
    pub cpus: BTreeMap<Cpu, CpuTimes>,
    /// Time for which some task waited for a CPU since boot, in nanoseconds; absent without PSI.
    pub pressure_ns: Option<u64>,
    /// Throttling events since boot on the watched CPUs; CPUs that do not count them are absent.
    pub throttled: BTreeMap<Cpu, u64>,
}

/// Takes readings.
#[derive(Debug)]
pub struct NoiseReader {
    stat: File,
    schedstat: Option<File>,
    pressure: Option<File>,
    throttle: BTreeMap<Cpu, File>,
    tick_ns: u64,
    buffer: Vec<u8>,
}

impl NoiseReader {
    /// A reader that watches the throttling of `cpus` (steal and load are read for all).
    pub fn open(cpus: impl IntoIterator<Item = Cpu>) -> io::Result<NoiseReader> {
        // SAFETY: sysconf(3) touches no memory of ours.
        let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
        NoiseReader::open_at(Path::new("/"), cpus, 1_000_000_000 / ticks)
    }

    fn open_at(root: &Path, cpus: impl IntoIterator<Item = Cpu>, tick_ns: u64) -> io::Result<NoiseReader> {
        let count = |cpu| {
            // x86 only (arch/x86/kernel/cpu/mce/therm_throt.c); a virtual machine has none.
            let name = format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
            Some((cpu, File::open(root.join(name)).ok()?))
        };
        Ok(NoiseReader {
            stat: File::open(root.join("proc/stat"))?,
            schedstat: File::open(root.join("proc/schedstat")).ok(),
            pressure: File::open(root.join("proc/pressure/cpu")).ok(),
            throttle: cpus.into_iter().filter_map(count).collect(),
            tick_ns,
            buffer: vec![0; 1 << 16],
        })
    }

    /// Reads now. What cannot be read is left out.
    pub fn read(&mut self) -> Snapshot {
        let buffer = &mut self.buffer;
        let mut cpus = text_of(&self.stat, buffer).map(|text| stat(text, self.tick_ns)).unwrap_or_default();
        if let Some(text) = self.schedstat.as_ref().and_then(|file| text_of(file, buffer)) {
            refine(&mut cpus, text);
        }
        let pressure_ns =
            self.pressure.as_ref().and_then(|file| text_of(file, buffer)).and_then(pressure_total_ns);
        let throttled = self
            .throttle
            .iter()
            .filter_map(|(cpu, file)| Some((*cpu, text_of(file, buffer)?.trim().parse().ok()?)))
            .collect();
        Snapshot { at_ns: monotonic_ns(), cpus, pressure_ns, throttled }
    }
}

/// Reads a file of `/proc` from its beginning, which makes the kernel write it anew.
fn text_of<'a>(file: &File, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if length == buffer.len() {
            // The `intr` line of a large server; CPUs come before it.
            if length >= 1 << 22 {
                break;
            }
            buffer.resize(2 * length, 0);
        }
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) fills the structure it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `/proc/stat`: `cpuN user nice system idle iowait irq softirq steal guest guest_nice`, in ticks (proc(5)).
fn stat(text: &str, tick_ns: u64) -> BTreeMap<Cpu, CpuTimes> {
    text.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            // The first line is the sum, `cpu` without a number.
            let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            let mut ticks = [0u64; 8];
            for place in &mut ticks {
                *place = words.next()?.parse().ok()?;
            }
            let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks;
            let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
            // Guests are counted in user and nice already (kernel/sched/cputime.c, account_guest_time).
            let tasks_ns = ns(user.saturating_add(nice).saturating_add(system));
            let interrupts_ns = ns(irq.saturating_add(softirq));
            let times = CpuTimes {
                tasks_ns,
                interrupts_ns,
                ticks_ns: tasks_ns.saturating_add(interrupts_ns),
                steal_ns: ns(steal),
                exact: false,
            };
            Some((cpu, times))
        })
        .collect()
}

/// Replaces ticks by the scheduler's clock, where available: the seventh number of each `cpuN` line of
/// `/proc/schedstat` is the time that tasks had that CPU, in nanoseconds (Documentation/scheduler/sched-stats.rst; the
/// unit since version 15). A tick of 10 ms is coarse for a round of 50 ms.
fn refine(cpus: &mut BTreeMap<Cpu, CpuTimes>, text: &str) {
    let version =
        text.lines().next().and_then(|line| line.strip_prefix("version ")?.trim().parse::<u32>().ok());
    if version.is_none_or(|version| version < 15) {
        return;
    }
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next().and_then(|word| word.strip_prefix("cpu")?.parse::<Cpu>().ok());
        let busy = words.nth(6).and_then(|word| word.parse().ok());
        if let (Some(times), Some(busy)) = (cpu.and_then(|cpu| cpus.get_mut(&cpu)), busy) {
            *times = CpuTimes { tasks_ns: busy, interrupts_ns: 0, exact: true, ..*times };
        }
    }
}

/// `/proc/pressure/cpu`: `some avg10=… avg60=… avg300=… total=MICROSECONDS` (Documentation/accounting/psi.rst).
fn pressure_total_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_once("total=")?.1.trim().parse::<u64>().ok()?.checked_mul(1000)
}

/// Noise between two readings.
///
/// `measured` are the measured CPUs; without any (runs that were not pinned) shares are of all CPUs together.
/// `own_busy_ns` is the CPU time that the measured processes used meanwhile: what is left over was used by others. Where the
/// kernel counts in ticks (no `/proc/schedstat`), `others` is uncertain by about two ticks, 20 ms, in all: it is for
/// reports, not for corrections.
pub fn between(before: &Snapshot, after: &Snapshot, measured: &[Cpu], own_busy_ns: u64) -> Noise {
    let elapsed = after.at_ns.saturating_sub(before.at_ns);
    if elapsed == 0 {
        return Noise::default();
    }
    let is_measured = |cpu: &Cpu| measured.is_empty() || measured.contains(cpu);
    let (mut count, mut steal) = (0u64, 0u64);
    for (then, now) in both(before, after, measured) {
        count += 1;
        steal += now.steal_ns.saturating_sub(then.steal_ns);
    }
    let others = others_ns(before, after, measured, own_busy_ns);
    let whole = elapsed.saturating_mul(count.max(1)) as f64;
    let share = |ns: u64| (ns as f64 / whole).clamp(0.0, 1.0);
    let throttled = after
        .throttled
        .iter()
        .filter(|(number, _)| is_measured(number))
        .filter_map(|(number, now)| Some(now.saturating_sub(*before.throttled.get(number)?)))
        .sum();
    Noise {
        steal: share(steal),
        pressure: before
            .pressure_ns
            .zip(after.pressure_ns)
            .map(|(then, now)| (now.saturating_sub(then) as f64 / elapsed as f64).clamp(0.0, 1.0)),
        others: share(u64::try_from(others).unwrap_or(0)),
        throttled,
    }
}

/// For how long others had the measured CPUs (all, if none is named) between two readings: as [`between`] has it, in
/// nanoseconds of CPU time. Below 0 where more is known of our own time than the kernel has counted yet.
pub fn others_ns(before: &Snapshot, after: &Snapshot, measured: &[Cpu], own_busy_ns: u64) -> i64 {
    let busy: u64 = both(before, after, measured).map(|(then, now)| busy_ns(then, now)).sum();
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    signed(busy).saturating_sub(signed(own_busy_ns))
}

/// The counts of each measured CPU that both readings have.
fn both<'a>(
    before: &'a Snapshot,
    after: &'a Snapshot,
    measured: &'a [Cpu],
) -> impl Iterator<Item = (&'a CpuTimes, &'a CpuTimes)> {
    let wanted = after.cpus.iter().filter(|(cpu, _)| measured.is_empty() || measured.contains(cpu));
    wanted.filter_map(|(cpu, now)| Some((before.cpus.get(cpu)?, now)))
}

/// CPU time of others on these CPUs between two readings, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Others {
    /// Tasks other than ours, and interrupts, over all of these CPUs.
    pub ran_ns: u64,
    /// The hypervisor: of the CPU from which it took most.
    pub stolen_ns: u64,
    /// How far each may be off, since the kernel counts ticks.
    pub uncertain_ns: u64,
}

/// CPU time of others on these CPUs between two readings. `own_ns` is the CPU time that the measured processes and the
/// measuring ones used on them meanwhile.
pub fn others(before: &Snapshot, after: &Snapshot, cpus: &BTreeSet<Cpu>, own_ns: u64) -> Others {
    let mut busy = 0u64;
    let mut others = Others::default();
    let both = cpus.iter().filter_map(|cpu| Some((before.cpus.get(cpu)?, after.cpus.get(cpu)?)));
    for (then, now) in both {
        let stolen = now.steal_ns.saturating_sub(then.steal_ns);
        busy += busy_ns(then, now);
        others.stolen_ns = others.stolen_ns.max(stolen);
        // Each of user, system and steal is truncated to ticks of 10 ms, before and after.
        others.uncertain_ns += if now.exact { 0 } else { USER_TICK_NS };
    }
    others.uncertain_ns += if others.uncertain_ns > 0 { USER_TICK_NS } else { 0 };
    others.ran_ns = busy.saturating_sub(own_ns);
    others
}

/// The CPUs that were in use for more than `threshold` (0 to 1) of the time between two readings.
pub fn busy_cpus(before: &Snapshot, after: &Snapshot, threshold: f64) -> BTreeSet<Cpu> {
    let elapsed = after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
    let share = |then: &CpuTimes, now: &CpuTimes| {
        // By ticks, the last of which may have come early.
        let ticks = now.ticks_ns.saturating_sub(then.ticks_ns).saturating_sub(USER_TICK_NS);
        // Stolen time is unavailable, too.
        (busy_ns(then, now).max(ticks) + now.steal_ns.saturating_sub(then.steal_ns)) as f64 / elapsed
    };
    after
        .cpus
        .iter()
        .filter(|(cpu, now)| before.cpus.get(cpu).is_some_and(|then| share(then, now) > threshold))
        .map(|(cpu, _)| *cpu)
        .collect()
}

/// The CPUs that were in use for more than [`BUSY`] of the time, watched for so long.
///
/// # Errors
/// The times of the CPUs cannot be read.
pub fn busy_during(watch: Duration) -> io::Result<BTreeSet<Cpu>> {
    let mut reader = NoiseReader::open([])?;
    let before = reader.read();
    std::thread::sleep(watch);
    Ok(busy_cpus(&before, &reader.read(), BUSY))
}

/// The time for which tasks and interrupts had a CPU, without what was stolen from them.
fn busy_ns(then: &CpuTimes, now: &CpuTimes) -> u64 {
    let tasks = now.tasks_ns.saturating_sub(then.tasks_ns);
    if now.exact && then.exact {
        // The scheduler's clock runs on while the hypervisor holds the CPU.
        tasks.saturating_sub(now.steal_ns.saturating_sub(then.steal_ns))
    } else {
        tasks + now.interrupts_ns.saturating_sub(then.interrupts_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 10_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn snapshot(at_ns: u64, stat_text: &str) -> Snapshot {
        Snapshot { at_ns, cpus: stat(stat_text, TICK), ..Snapshot::default() }
    }

    const BEFORE: &str = "cpu  100 0 0 0 0 0 0 0 0 0\ncpu0 50 0 0 900 0 0 0 5 0 0\n\
                          cpu1 50 10 40 900 0 3 2 5 7 0\nintr 5 0\n";
    // CPU 1, one second on: 40 user, 20 system, 5 interrupts, 10 stolen.
    const AFTER: &str = "cpu  100 0 0 0 0 0 0 0 0 0\ncpu0 50 0 0 1000 0 0 0 5 0 0\n\
                         cpu1 90 10 60 925 0 5 5 15 7 0\nintr 5 0\n";

    #[test]
    fn time_beyond_our_own_is_that_of_others() {
        let noise = between(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), &[1], 450_000_000);
        assert!((noise.steal - 0.10).abs() < 1e-9, "{noise:?}");
        assert!((noise.others - 0.20).abs() < 1e-9, "{noise:?}");
        let quiet = between(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), &[0], 0);
        assert_eq!((quiet.steal, quiet.others), (0.0, 0.0));
    }

    #[test]
    fn a_run_that_was_not_pinned_is_judged_over_all_cpus() {
        let noise = between(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), &[], 450_000_000);
        assert!((noise.steal - 0.05).abs() < 1e-9, "{noise:?}");
        assert!((noise.others - 0.10).abs() < 1e-9, "{noise:?}");
    }

    #[test]
    fn runs_on_several_cpus_are_judged_over_those() {
        let of = |cpus: &[Cpu]| others_ns(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), cpus, 450_000_000);
        assert_eq!(
            (of(&[1]), of(&[0]), of(&[0, 1]), of(&[])),
            (200_000_000, -450_000_000, 200_000_000, 200_000_000)
        );
        let noise = between(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), &[0, 1], 450_000_000);
        assert!((noise.others - 0.10).abs() < 1e-9, "{noise:?}");
    }

    #[test]
    fn our_own_time_never_makes_others_negative() {
        let noise = between(&snapshot(0, BEFORE), &snapshot(SECOND, AFTER), &[1], 900_000_000);
        assert_eq!(noise.others, 0.0);
        assert_eq!(between(&snapshot(5, BEFORE), &snapshot(5, AFTER), &[1], 0), Noise::default());
    }

    #[test]
    fn the_schedulers_own_clock_replaces_ticks_and_contains_the_steal() {
        let line =
            |busy: u64| format!("version 15\ntimestamp 1\ncpu1 0 0 0 0 0 0 {busy} 77 3\ndomain0 3 1 2\n");
        let exact = |at, text: &str, busy| {
            let mut snapshot = snapshot(at, text);
            refine(&mut snapshot.cpus, &line(busy));
            snapshot
        };
        let (before, after) = (exact(0, BEFORE, 7_000_000_000), exact(SECOND, AFTER, 7_620_000_000));
        let noise = between(&before, &after, &[1], 500_000_000);
        assert!((noise.others - 0.02).abs() < 1e-9, "{noise:?}");

        // Before version 15 the number counted jiffies.
        let mut old = snapshot(0, BEFORE);
        refine(&mut old.cpus, &line(1).replace("version 15", "version 14"));
        assert!(!old.cpus[&1].exact);
    }

    #[test]
    fn pressure_is_the_share_of_time_some_task_waited() {
        let text = "some avg10=7.74 avg60=1.47 avg300=0.50 total=4975922\nfull avg10=0.00 total=0\n";
        assert_eq!(pressure_total_ns(text), Some(4_975_922_000));
        assert_eq!(pressure_total_ns("full avg10=0.00 total=0\n"), None);
        let with = |at, pressure| Snapshot { pressure_ns: pressure, ..snapshot(at, BEFORE) };
        let noise = between(&with(0, Some(100)), &with(SECOND, Some(250_000_100)), &[], 0);
        assert_eq!(noise.pressure, Some(0.25));
        assert_eq!(between(&with(0, None), &with(SECOND, Some(1)), &[], 0).pressure, None);
    }

    #[test]
    fn throttling_is_counted_on_the_measured_core_only() {
        let with = |at, zero, one| Snapshot {
            throttled: BTreeMap::from([(0, zero), (1, one)]),
            ..snapshot(at, BEFORE)
        };
        let (before, after) = (with(0, 5, 7), with(SECOND, 9, 8));
        assert_eq!(between(&before, &after, &[1], 0).throttled, 1);
        assert_eq!(between(&before, &after, &[], 0).throttled, 5);
    }

    #[test]
    fn a_cpu_in_use_or_stolen_is_busy() {
        let (before, after) = (snapshot(0, BEFORE), snapshot(SECOND, AFTER));
        assert_eq!(busy_cpus(&before, &after, 0.1), BTreeSet::from([1]));
        assert_eq!(busy_cpus(&before, &after, 0.8), BTreeSet::new());
    }

    #[test]
    fn a_cpu_whose_task_was_not_switched_out_is_busy() {
        let snapshot = |at_ns, ticks: u64| {
            let mut snapshot = snapshot(at_ns, &format!("cpu0 {ticks} 0 0 0 0 0 0 0 0 0\n"));
            refine(&mut snapshot.cpus, "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 7000000000 77 3\n");
            snapshot
        };
        let busy = |ticks: u64| busy_cpus(&snapshot(0, 100), &snapshot(SECOND / 20, 100 + ticks), 0.2);
        assert_eq!((busy(5), busy(1)), (BTreeSet::from([0]), BTreeSet::new()));
    }

    #[test]
    fn files_of_any_length_are_reread_each_time() {
        let root = tempfile::tempdir().unwrap();
        let write = |user: u64| {
            std::fs::create_dir_all(root.path().join("proc")).unwrap();
            let long = "9 ".repeat(50_000);
            let text = format!("cpu {user} 0 0 0 0 0 0 0\ncpu0 {user} 0 0 0 0 0 0 0\nintr {long}\n");
            std::fs::write(root.path().join("proc/stat"), text).unwrap();
        };
        write(1);
        let mut reader = NoiseReader::open_at(root.path(), [0], TICK).unwrap();
        let first = reader.read();
        write(3);
        let second = reader.read();
        assert_eq!((first.cpus[&0].tasks_ns, second.cpus[&0].tasks_ns), (TICK, 3 * TICK));
        assert_eq!((second.pressure_ns, second.throttled.len()), (None, 0));
    }

    #[test]
    fn work_of_this_process_is_counted() {
        let mut reader = NoiseReader::open([0]).unwrap();
        let before = reader.read();
        let mut executor = 0u64;
        while reader.read().at_ns - before.at_ns < 200_000_000 {
            executor = std::hint::black_box(executor + 1);
        }
        let after = reader.read();
        let noise = between(&before, &after, &[], 0);
        assert!(noise.others > 0.0, "{noise:?}");
    }
}
