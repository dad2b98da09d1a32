//! The data of a campaign: rounds of runs, and a sample from each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why emulated counts of a process are lower bounds, as what it does.
pub const LOST_BY_EXECVE: &str =
    "executes another program in its place (execve), and valgrind does not write what it counted before";

/// Where one reading came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `CLOCK_MONOTONIC`, read by the launcher.
    Clock,
    /// `struct rusage` of `wait4(2)`, summed over the processes the launcher reaped.
    Rusage,
    /// The kernel's taskstats at each process's exit.
    Taskstats,
    /// `cpu.stat` of the control group that the program ran in.
    Cgroup,
    /// `/proc/PID/status`, read while the process was stopped at its exit.
    ExitStop,
    /// `perf_event_open(2)`, counted by the processor.
    Hardware,
    /// `perf_event_open(2)`, counted by the kernel.
    Software,
    /// valgrind's emulated processor.
    Emulated,
    /// The counting plugin of QEMU.
    Qemu,
    /// `struct rusage`, read in the emulated machine by its first process.
    Guest,
    /// A clock and `struct rusage` of a kernel that runs under KVM, read by its first process.
    Kvm,
    /// `/proc/PID/smaps` and its like, read while the program ran.
    Smaps,
    /// The x32 runtime's account of itself.
    Runtime,
    /// A line of the program's standard output.
    Program,
}

impl Source {
    /// Every source.
    pub const ALL: [Source; 14] = {
        use Source::*;
        [
            Clock, Rusage, Taskstats, Cgroup, ExitStop, Hardware, Software, Emulated, Qemu, Guest, Kvm,
            Smaps, Runtime, Program,
        ]
    };

    /// The source's name in JSON, CSV and the archive.
    pub fn name(self) -> &'static str {
        match self {
            Source::Clock => "clock",
            Source::Rusage => "rusage",
            Source::Taskstats => "taskstats",
            Source::Cgroup => "cgroup",
            Source::ExitStop => "exit-stop",
            Source::Hardware => "hardware",
            Source::Software => "software",
            Source::Emulated => "emulated",
            Source::Qemu => "qemu",
            Source::Guest => "guest",
            Source::Kvm => "kvm",
            Source::Smaps => "smaps",
            Source::Runtime => "x32run",
            Source::Program => "program",
        }
    }

    /// Whether no real processor counted: nothing random is in such a reading but what the program itself does.
    pub fn is_emulated(self) -> bool {
        matches!(self, Source::Emulated | Source::Qemu | Source::Guest)
    }

    /// The source of that name, if there is one.
    pub fn find(name: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// One measured number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// In the metric's unit.
    pub value: f64,
    /// Where it came from.
    pub source: Source,
    /// The share of the run during which it was counted: 1 unless the kernel multiplexed the counter
    /// (`time_running / time_enabled`), in which case `value` is already scaled up.
    pub coverage: f64,
    /// The upper bound of the amount, where `value` is only a lower bound. Infinite without a bound; absent where
    /// `value` is the amount.
    pub upper: Option<f64>,
}

impl Reading {
    /// A reading that covers the whole run.
    pub fn whole(value: f64, source: Source) -> Reading {
        Reading { value, source, coverage: 1.0, upper: None }
    }

    /// An amount that lies between these two.
    pub fn between(low: f64, high: f64, source: Source) -> Reading {
        Reading { upper: (high > low).then_some(high), ..Reading::whole(low, source) }
    }

    /// The highest that the true amount may be.
    pub fn highest(&self) -> f64 {
        self.upper.unwrap_or(self.value)
    }
}

/// How one run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ending {
    /// The program ended with the status that was asked for.
    Done,
    /// It ended with another exit status.
    Exit {
        /// Its exit status.
        status: i32,
    },
    /// A signal killed it.
    Signal {
        /// The signal's number.
        signal: i32,
    },
    /// It was still running at the time limit, and was killed.
    Timeout {
        /// The limit, in nanoseconds.
        limit_ns: u64,
    },
    /// It wrote more than the limit to its standard output or standard error, and was killed.
    OutputLimit {
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// It could not be started at all.
    SpawnFailed {
        /// The step that failed and the system's message.
        reason: String,
    },
    /// Its setup or teardown command failed.
    HookFailed {
        /// Which command, and how it ended.
        reason: String,
    },
}

impl Ending {
    /// The name in the archive, JSON and CSV.
    pub fn name(&self) -> &'static str {
        match self {
            Ending::Done => "done",
            Ending::Exit { .. } => "exit",
            Ending::Signal { .. } => "signal",
            Ending::Timeout { .. } => "timeout",
            Ending::OutputLimit { .. } => "output-limit",
            Ending::SpawnFailed { .. } => "spawn-failed",
            Ending::HookFailed { .. } => "hook-failed",
        }
    }
}

/// One execution of one variant in one round, with its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The variant's name.
    pub variant: String,
    /// The round it belongs to, from 0; rounds are numbered over the whole campaign.
    pub round: u32,
    /// Its place in the round's order, from 0.
    pub position: u32,
    /// When it began: nanoseconds since the second in which the campaign was created (wall clock, so that it
    /// continues in a resumed campaign).
    pub began_ns: u64,
    /// How it ended.
    pub ending: Ending,
    /// The sample: every metric that was read, by name. A metric that is not here was not measured.
    pub sample: BTreeMap<&'static str, Reading>,
    /// A digest of the program's output (stdout or named files, filtered), if it ended well.
    pub output_digest: Option<String>,
}

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundKind {
    /// Not timed: fills caches, and checks every variant's output.
    Warmup,
    /// A complete block, used by verdicts.
    Timed,
    /// Not timed: every run was made on an emulated processor (valgrind, QEMU), and has only its counts.
    Emulated,
    /// Not timed: memory was read during its runs, and they have only these figures.
    Memory,
    /// Interrupted: its runs are kept, and not used.
    Interrupted,
}

impl RoundKind {
    /// All of them.
    pub const ALL: [RoundKind; 5] =
        [RoundKind::Warmup, RoundKind::Timed, RoundKind::Emulated, RoundKind::Memory, RoundKind::Interrupted];

    /// The name in the archive, JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            RoundKind::Warmup => "warmup",
            RoundKind::Timed => "timed",
            RoundKind::Emulated => "emulated",
            RoundKind::Memory => "memory",
            RoundKind::Interrupted => "interrupted",
        }
    }

    /// The kind of that name, if there is one.
    pub fn parse(name: &str) -> Option<RoundKind> {
        RoundKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether verdicts use its readings.
    pub fn counts(self) -> bool {
        matches!(self, RoundKind::Timed | RoundKind::Emulated | RoundKind::Memory)
    }
}

/// Noise of the machine during the round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Share of the round's time that the hypervisor took from the measured core, 0 to 1.
    pub steal: f64,
    /// Share of the round's time for which some task waited for a CPU (PSI `some`), 0 to 1; absent without PSI.
    pub pressure: Option<f64>,
    /// Share of the round's time for which tasks other than ours ran on the measured core, 0 to 1.
    pub others: f64,
    /// Their CPU time in nanoseconds, since the last round that was long enough to be read. Where the kernel counts in
    /// ticks it may be below 0: only the sum over rounds is meaningful. Absent in campaigns recorded without it.
    pub others_ns: Option<i64>,
    /// Thermal throttling events on the measured core during the round.
    pub throttled: u64,
}

/// One randomised complete block.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Its number, from 0, over the whole campaign.
    pub number: u32,
    /// What it is for.
    pub kind: RoundKind,
    /// The CPU every run of it was pinned to, if they were.
    pub cpu: Option<u32>,
    /// Noise of the machine during the round.
    pub noise: Noise,
    /// The layout that every program had, from 1; absent where each has one layout.
    pub layout: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_of_csv_files_lists_every_source() {
        let chapter = include_str!("../../../docs/csv.md");
        let row = chapter.lines().find(|line| line.starts_with("| `source` |")).unwrap();
        for source in Source::ALL {
            assert!(row.contains(&format!("`{}`", source.name())), "{source:?}");
        }
    }
}
