//! Performance counters around a run. They are opened on the launcher, disabled and inherited by the program,
//! whose `execve` enables them (`enable_on_exec`). So they count the program and all its children, but
//! neither the launcher nor the start-up before the program's first instruction.

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Software};
use perf_event::{Builder, Counter};
use widthwise_experiment::metric::Family;
use widthwise_experiment::outcome::{Reading, Source};
use widthwise_experiment::Metric;

/// One counter, open on the launcher.
#[derive(Debug)]
struct Open {
    metric: Metric,
    source: Source,
    counter: Counter,
    /// The same event, never enabled and not inherited. The kernel exchanges the events of a process and its child when it
    /// switches between them, if all are inherited (kernel/events/core.c, perf_event_context_sched_out). The launcher's
    /// event, which alone is enabled by `execve`, would then end with the child, and later runs would count nothing.
    _not_inherited: Counter,
    before: Totals,
}

/// A counter's running totals.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

/// The counters of a campaign.
#[derive(Debug, Default)]
pub struct Counters {
    open: Vec<Open>,
    /// Requested counters that are unavailable here, with the reason.
    pub missing: Vec<(Metric, String)>,
}

impl Counters {
    /// Opens a counter on the process `launcher` for each metric that is a counter.
    pub fn open(metrics: &[Metric], launcher: u32) -> Counters {
        let mut counters = Counters::default();
        for metric in metrics.iter().copied().filter(|metric| metric.family == Family::Counter) {
            match open(metric, launcher) {
                Ok(open) => counters.open.push(open),
                Err(reason) => counters.missing.push((metric, reason)),
            }
        }
        counters
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Records the counters' current totals.
    pub fn begin(&mut self) {
        for open in &mut self.open {
            open.before = totals(&mut open.counter);
        }
    }

    /// The counts since [`Counters::begin`]. A counter that never ran is missing, never 0.
    pub fn end(&mut self) -> Vec<(Metric, Reading)> {
        self.open
            .iter_mut()
            .filter_map(|open| {
                let after = totals(&mut open.counter);
                reading(open.before, after).map(|(value, coverage)| {
                    (open.metric, Reading { coverage, ..Reading::whole(value, open.source) })
                })
            })
            .collect()
    }
}

/// The count scaled to the whole run, and the share of the run for which it was counted; none if it never was.
fn reading(before: Totals, after: Totals) -> Option<(f64, f64)> {
    let enabled = after.enabled_ns.saturating_sub(before.enabled_ns);
    let running = after.running_ns.saturating_sub(before.running_ns);
    if running == 0 {
        return None;
    }
    let coverage = (running as f64 / enabled.max(running) as f64).min(1.0);
    Some((after.count.saturating_sub(before.count) as f64 / coverage, coverage))
}

fn totals(counter: &mut Counter) -> Totals {
    counter.read_full().map_or_else(
        |_| Totals::default(),
        |data| Totals {
            count: data.count(),
            enabled_ns: data.time_enabled().map_or(0, |time| time.as_nanos() as u64),
            running_ns: data.time_running().map_or(0, |time| time.as_nanos() as u64),
        },
    )
}

fn open(metric: Metric, launcher: u32) -> Result<Open, String> {
    let dtlb = Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
    let (counters, source) = match metric.name {
        "cycles" => (build(Hardware::CPU_CYCLES, launcher, true), Source::Hardware),
        "instructions" => (build(Hardware::INSTRUCTIONS, launcher, true), Source::Hardware),
        "stalled_cycles" => (build(Hardware::STALLED_CYCLES_FRONTEND, launcher, true), Source::Hardware),
        "branches" => (build(Hardware::BRANCH_INSTRUCTIONS, launcher, true), Source::Hardware),
        "branch_misses" => (build(Hardware::BRANCH_MISSES, launcher, true), Source::Hardware),
        "cache_references" => (build(Hardware::CACHE_REFERENCES, launcher, true), Source::Hardware),
        "cache_misses" => (build(Hardware::CACHE_MISSES, launcher, true), Source::Hardware),
        "dtlb_misses" => (build(dtlb, launcher, true), Source::Hardware),
        // The kernel's own events happen in the kernel.
        "task_clock" => (build(Software::TASK_CLOCK, launcher, false), Source::Software),
        "cpu_migrations" => (build(Software::CPU_MIGRATIONS, launcher, false), Source::Software),
        other => return Err(format!("no perf event is known for {other}")),
    };
    let (counter, not_inherited) = counters.map_err(|error| refusal(&error))?;
    Ok(Open { metric, source, counter, _not_inherited: not_inherited, before: Totals::default() })
}

/// The counter of an event, and the same event not inherited.
fn build<E: Event + Clone>(event: E, launcher: u32, user_only: bool) -> std::io::Result<(Counter, Counter)> {
    let of_event = |is_inherited: bool| {
        let mut builder = Builder::new(event.clone());
        builder
            .observe_pid(launcher as i32)
            .any_cpu()
            .inherit(is_inherited)
            .enable_on_exec(is_inherited)
            .exclude_kernel(user_only)
            .exclude_hv(true)
            .read_format(
                perf_event::ReadFormat::TOTAL_TIME_ENABLED | perf_event::ReadFormat::TOTAL_TIME_RUNNING,
            );
        builder.build()
    };
    Ok((of_event(true)?, of_event(false)?))
}

fn refusal(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "this machine has no such counter (a virtual machine without a PMU?)".into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "not allowed: `sysctl kernel.perf_event_paranoid=1` fixes it".into()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(count: u64, enabled_ns: u64, running_ns: u64) -> Totals {
        Totals { count, enabled_ns, running_ns }
    }

    #[test]
    fn a_multiplexed_counter_is_scaled_and_reports_its_share() {
        assert_eq!(reading(totals(10, 100, 100), totals(60, 300, 200)), Some((100.0, 0.5)));
    }

    #[test]
    fn a_counter_that_never_ran_is_missing_and_not_zero() {
        assert_eq!(reading(totals(0, 0, 0), totals(0, 300, 0)), None);
    }
}
