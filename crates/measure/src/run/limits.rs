//! Limits that end a run: its length, and the size of its output.

use std::time::Duration;

use widthwise_experiment::model::Launch;
use widthwise_experiment::outcome::Ending;

/// Limits that end a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longer runs are killed.
    pub timeout: Duration,
    /// Emulated machines whose kernel has not started its first process after so long are ended.
    pub boot: Duration,
    /// Runs that write more to their standard output, or to their standard error, are killed.
    pub output_bytes: u64,
}

impl Limits {
    /// A run may last so long, unless the user gives another limit.
    pub const TIMEOUT: Duration = widthwise_experiment::resolve::TIMEOUT;
    /// A kernel may take so long to start its first process, unless the user gives another limit.
    pub const BOOT: Duration = widthwise_experiment::resolve::BOOT_TIMEOUT;
    /// A run may write so much to its standard output, and as much to its standard error.
    pub const OUTPUT_BYTES: u64 = 1 << 30;

    /// The limits of an experiment's runs.
    pub fn of(launch: &Launch) -> Limits {
        Limits {
            timeout: launch.timeout.unwrap_or(Limits::TIMEOUT),
            boot: launch.boot_timeout.unwrap_or(Limits::BOOT),
            output_bytes: Limits::OUTPUT_BYTES,
        }
    }

    /// The limit that a run has exceeded after this time, with so many bytes in the larger of its outputs.
    pub fn exceeded(self, elapsed: Duration, written: u64) -> Option<Ending> {
        if elapsed >= self.timeout {
            Some(Ending::Timeout { limit_ns: self.timeout.as_nanos() as u64 })
        } else if written > self.output_bytes {
            Some(Ending::OutputLimit { limit_bytes: self.output_bytes })
        } else {
            None
        }
    }
}
