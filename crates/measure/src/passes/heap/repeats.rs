//! How often each variant is recorded.

use std::time::Duration;

/// Fewer recordings do not show how much recordings of one variant differ.
pub const FEWEST: u32 = 2;
/// With this many, two equal variants differ by chance in every recording alike at most once in a thousand
/// times.
pub const MOST: u32 = 6;
/// More than [`FEWEST`] recordings of each variant take no longer than this in all …
const PASS: Duration = Duration::from_secs(15);
/// … or than this share of what the campaign took before.
const SHARE: f64 = 0.25;
/// The packed logs of a variant with more than [`FEWEST`] recordings are no larger than this: `explain` and
/// the campaign's page read all of them.
const LOGS: u64 = 32 << 20;

/// What is known after the first recording of every variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeats {
    /// How long the first recordings of all variants ran, in sum.
    pub first: Duration,
    /// The size of the packed logs of the variant with the largest ones, in bytes.
    pub log_bytes: u64,
    /// How long the timed rounds took.
    pub campaign: Duration,
}

impl Repeats {
    /// The number of recordings of each variant.
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
    fn variants_with_large_logs_are_recorded_only_twice() {
        assert_eq!([number(100, 500, 1), number(100, 10, 1)], [2, 3]);
        assert_eq!(Repeats::default().number(), 6);
    }
}
