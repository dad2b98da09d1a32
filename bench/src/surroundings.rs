//! Where and when something was measured.

use std::time::{Duration, Instant};

use crate::hyperfine;

/// How long the machine is listened to beforehand.
const LISTENED: Duration = Duration::from_secs(1);

/// The day, the machine, and how busy others kept it just before.
#[derive(Debug)]
pub struct Surroundings {
    day: String,
    machine: String,
    others: Option<f64>,
    began: Instant,
}

impl Surroundings {
    /// As they are now.
    pub fn now() -> Surroundings {
        let day = time::OffsetDateTime::now_utc().date().to_string();
        let before = processor_time();
        std::thread::sleep(LISTENED);
        let others = before.zip(processor_time()).map(|(before, after)| busy_share(&before, &after));
        Surroundings { day, machine: machine(), others, began: Instant::now() }
    }

    /// In one line.
    pub fn line(&self) -> String {
        let others = self.others.map_or(String::new(), |share| {
            format!("; just before, other programs used the CPUs for {:.0} % of the time", share * 100.0)
        });
        let minutes = self.began.elapsed().as_secs_f64() / 60.0;
        format!(
            "Measured on {} in {minutes:.1} minutes: {}, widthwise {}, {}{others}.",
            self.day,
            self.machine,
            env!("CARGO_PKG_VERSION"),
            hyperfine::version()
        )
    }
}

fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let information = read("/proc/cpuinfo");
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("a CPU without a name", |(_, model)| model.trim());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cpus} CPUs, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

/// The first line of `/proc/stat` (proc_stat(5)): ticks in user, nice, system, idle, iowait, irq, softirq, steal mode.
fn processor_time() -> Option<Vec<u64>> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().next()?.split_whitespace().skip(1).take(8).map(|word| word.parse().ok()).collect()
}

/// The share of the time that was neither idle nor spent waiting for a disk.
fn busy_share(before: &[u64], after: &[u64]) -> f64 {
    let ticks: Vec<u64> =
        before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle) as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_idle_nor_waiting_for_a_disk_is_busy() {
        let before = [10, 0, 10, 100, 10, 0, 0, 0];
        let after = [30, 0, 20, 160, 15, 0, 0, 5];
        assert_eq!(busy_share(&before, &after), 0.35);
        assert_eq!(busy_share(&before, &before), 0.0);
    }
}
