//! Performance counters: which events can be counted here, tested by counting them.

use std::hint::black_box;
use std::io;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Software};
use perf_event::{Builder, ReadFormat};
use serde::{Deserialize, Serialize};

use crate::system_settings::Settings;
use crate::unavailable::{outcome, Unavailable};

/// One event.
struct EventRow {
    /// The metric it serves.
    name: &'static str,
    open: fn() -> Builder<'static>,
    /// Counted by the processor's counter unit, rather than by the kernel.
    hardware: bool,
    /// Counted in user mode only. Moves between CPUs happen in the kernel, which a counter limited to user mode never
    /// sees (kernel/events/core.c, perf_exclude_event).
    user_only: bool,
}

fn builder<E: Event + 'static>(event: E) -> Builder<'static> {
    Builder::new(event)
}

/// The events, under the names of the metrics they serve.
static EVENTS: &[EventRow] = &[
    hardware("cycles", || builder(Hardware::CPU_CYCLES)),
    hardware("instructions", || builder(Hardware::INSTRUCTIONS)),
    hardware("stalled_cycles", || builder(Hardware::STALLED_CYCLES_FRONTEND)),
    hardware("branches", || builder(Hardware::BRANCH_INSTRUCTIONS)),
    hardware("branch_misses", || builder(Hardware::BRANCH_MISSES)),
    hardware("cache_references", || builder(Hardware::CACHE_REFERENCES)),
    hardware("cache_misses", || builder(Hardware::CACHE_MISSES)),
    hardware("dtlb_misses", || {
        builder(Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS })
    }),
    EventRow { name: "task_clock", open: || builder(Software::TASK_CLOCK), hardware: false, user_only: true },
    EventRow {
        name: "cpu_migrations",
        open: || builder(Software::CPU_MIGRATIONS),
        hardware: false,
        user_only: false,
    },
];

const fn hardware(name: &'static str, open: fn() -> Builder<'static>) -> EventRow {
    EventRow { name, open, hardware: true, user_only: true }
}

/// Whether one event can be counted here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// The metric it serves.
    pub name: String,
    /// Counted by the processor, rather than by the kernel.
    pub hardware: bool,
    /// Opened, and seen counting.
    #[serde(with = "outcome")]
    pub counts: Result<(), Unavailable>,
}

/// Whether a metric is served by a counter.
pub fn is_one(name: &str) -> bool {
    EVENTS.iter().any(|row| row.name == name)
}

/// Tries every event on this thread.
pub fn probe(settings: &Settings) -> Vec<Counter> {
    EVENTS
        .iter()
        .map(|row| Counter {
            name: row.name.to_string(),
            hardware: row.hardware,
            counts: count(row).and_then(judge).map_err(|error| why_not(&error, row.hardware, settings)),
        })
        .collect()
}

/// A counter's reading over a little work: the count, and the time it was on the processor's counter unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    count: u64,
    running_ns: u64,
    always_counts: bool,
}

fn count(row: &EventRow) -> io::Result<Counted> {
    let mut counter = (row.open)()
        .exclude_kernel(row.user_only)
        .exclude_hv(true)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .build()?;
    counter.enable()?;
    let mut sum = 0u64;
    for turn in 0..200_000u64 {
        sum = black_box(sum ^ turn);
    }
    counter.disable()?;
    let data = counter.read_full()?;
    let running_ns = data.time_running().map_or(0, |time| time.as_nanos() as u64);
    // Any work takes cycles, instructions, branches and time; cache misses and migrations may be 0.
    let always_counts = matches!(row.name, "cycles" | "instructions" | "branches" | "task_clock");
    Ok(Counted { count: data.count(), running_ns, always_counts })
}

/// Whether a reading shows a counter that works. Some hypervisors accept a counter and never run it.
fn judge(counted: Counted) -> io::Result<()> {
    if counted.running_ns == 0 || (counted.always_counts && counted.count == 0) {
        return Err(io::Error::other("can be opened, and never counts"));
    }
    Ok(())
}

/// Why an event cannot be counted, from the error of `perf_event_open(2)`.
fn why_not(error: &io::Error, hardware: bool, settings: &Settings) -> Unavailable {
    match error.raw_os_error() {
        // Unprivileged counting of our own user mode needs 2 or less; with the kernel's part, 1 or less
        // (Documentation/admin-guide/sysctl/kernel.rst). Debian added 3: nothing at all.
        Some(libc::EACCES | libc::EPERM) => match settings.perf_event_paranoid {
            Some(level) if level > 1 => Unavailable::with_fix(
                format!("not allowed: kernel.perf_event_paranoid is {level}"),
                "sysctl kernel.perf_event_paranoid=1",
            ),
            _ => Unavailable::with_fix(
                "not allowed, although kernel.perf_event_paranoid would: a container's seccomp filter",
                "docker run --cap-add PERFMON …",
            ),
        },
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) if hardware && settings.hypervisor => {
            Unavailable::with_fix(
                "no PMU in this virtual machine",
                "on the host, give the machine its PMU (QEMU: -cpu host,pmu=on)",
            )
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Unavailable::permanent(
            "this processor does not count it, or the kernel has no driver for its PMU",
        ),
        Some(libc::ENOSYS) => Unavailable::permanent("this kernel was built without CONFIG_PERF_EVENTS"),
        Some(libc::EMFILE | libc::ENFILE) => Unavailable::with_fix("too many open files", "ulimit -n 4096"),
        _ => Unavailable::permanent(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable(errno: i32, hardware: bool, hypervisor: bool, paranoid: i32) -> Unavailable {
        let settings = Settings { hypervisor, perf_event_paranoid: Some(paranoid), ..Settings::default() };
        why_not(&io::Error::from_raw_os_error(errno), hardware, &settings)
    }

    #[test]
    fn each_error_of_the_kernel_has_its_reason_and_its_fix() {
        assert_eq!(unavailable(libc::ENOENT, true, true, 2).reason, "no PMU in this virtual machine");
        assert!(unavailable(libc::ENOENT, true, false, 2).reason.contains("no driver"));
        let forbidden = unavailable(libc::EACCES, true, false, 3);
        assert_eq!(forbidden.reason, "not allowed: kernel.perf_event_paranoid is 3");
        assert_eq!(forbidden.fix.as_deref(), Some("sysctl kernel.perf_event_paranoid=1"));
        assert!(unavailable(libc::EPERM, false, false, 1).reason.contains("seccomp"));
        assert!(unavailable(libc::ENOSYS, false, false, 1).reason.contains("CONFIG_PERF_EVENTS"));
    }

    #[test]
    fn a_counter_that_opens_and_never_runs_is_unavailable() {
        let counted = |count, running_ns, always_counts| judge(Counted { count, running_ns, always_counts });
        assert!(counted(10, 5, true).is_ok());
        assert!(counted(0, 5, false).is_ok());
        assert!(counted(0, 5, true).is_err());
        assert!(counted(7, 0, false).is_err());
    }

    #[test]
    fn every_event_is_either_counted_or_explained() {
        let counters = probe(&Settings::here());
        assert_eq!(counters.len(), EVENTS.len());
        for counter in counters {
            if let Err(unavailable) = counter.counts {
                assert!(!unavailable.reason.is_empty(), "{}", counter.name);
            }
        }
    }
}
