//! How often each variant is recorded.

use std::time::Duration;

/// Fewer recordings do not tell what recordings of one variant differ by.
pub const FEWEST: u32 = 2;
/// With so many, two variants that are one differ by luck in every recording alike once in a thousand times at most.
pub const MOST: u32 = 6;
/// What is recorded more often than [`FEWEST`] times takes no longer than this in all …
const PASS: Duration = Duration::from_secs(15);
/// … or than this share of what the campaign took before.
const SHARE: f64 = 0.25;
/// The packed logs of a variant that is recorded more often than [`FEWEST`] times have no more than this: `explain` and the
/// campaign's page read all of them.
const LOGS: u64 = 32 << 20;

/// What is known once every variant was recorded once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeats {
    /// How long the first recordings of all variants ran, added up.
    pub first: Duration,
    /// How large the packed logs of the variant with the largest ones are, in bytes.
    pub log_bytes: u64,
    /// How long the timed rounds took.
    pub campaign: Duration,
}

impl Repeats {
    /// How often each variant is to be recorded.
    pub fn number(&self) -> u32 {
        let time = PASS.max(self.campaign.mul_f64(SHARE)).as_secs_f64() / self.first.as_secs_f64().max(1e-6);
        let logs = LOGS as f64 / self.log_bytes.max(1) as f64;
        (time.min(logs) as u32).clamp(FEWEST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(first_ms: u64, log_mib: u64, campaign_s: u64) -> u32 {
        let first = Duration::from_millis(first_ms);
        Repeats { first, log_bytes: log_mib << 20, campaign: Duration::from_secs(campaign_s) }.number()
    }

    #[test]
    fn short_programs_are_recorded_six_times_and_long_ones_twice() {
        assert_eq!([number(100, 1, 1), number(4_000, 1, 1), number(60_000, 1, 1)], [6, 3, 2]);
        assert_eq!(number(60_000, 1, 1200), 5, "a quarter of the campaign's own time");
    }

    #[test]
    fn large_logs_are_kept_twice_alone() {
        assert_eq!([number(100, 500, 1), number(100, 10, 1)], [2, 3]);
        assert_eq!(Repeats::default().number(), 6);
    }
}
