//! Whether a budget is enough for the rounds that an interval needs. Pure.

use std::time::Duration;

use widthwise_verdict::FEWEST_PAIRS;

/// What is known once the first round of a session is over.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// What the user gave.
    pub max_time: Duration,
    /// What the campaign has taken so far, over all its sessions.
    pub elapsed: Duration,
    /// What the round took.
    pub round: Duration,
    /// How many rounds are still to come before there are intervals.
    pub left: u32,
}

impl Pace {
    /// How many rounds are still to come before there are intervals, of which `timed` have been made and `warmup` are
    /// yet to be.
    pub fn left(timed: u32, warmup: u32) -> u32 {
        FEWEST_PAIRS.saturating_sub(timed) + warmup
    }

    /// The budget that would do, in whole seconds, if this one is too small. The first round fills caches and is seldom
    /// the quickest: what it says is enough.
    pub fn fix(self) -> Option<Duration> {
        let needed = self.elapsed + self.round * self.left;
        // A round that has begun within the budget is ended: the last one need not fit in.
        let tight = needed.saturating_sub(self.round);
        (self.left > 0 && tight >= self.max_time).then(|| Duration::from_secs(needed.as_secs() + 1))
    }

    /// The warning, with the budget that would do.
    pub fn warning(self) -> Option<String> {
        let fix = widthwise_experiment::duration::text(self.fix()?);
        Some(format!(
            "warning: --max-time {} is too short for an interval, which needs {FEWEST_PAIRS} timed rounds: at this pace \
             --max-time {fix} would do",
            widthwise_experiment::duration::text(self.max_time)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(max_time: u64, elapsed: u64, left: u32) -> Option<String> {
        let seconds = Duration::from_secs;
        Pace { max_time: seconds(max_time), elapsed: seconds(elapsed), round: seconds(10), left }.warning()
    }

    #[test]
    fn a_time_limit_too_short_for_six_rounds_is_reported_at_once_with_a_sufficient_one() {
        let reported = pace(30, 10, Pace::left(0, 0)).unwrap();
        assert!(
            reported.contains("--max-time 30s is too short")
                && reported.ends_with("--max-time 1m11s would do"),
            "{reported}"
        );
        assert_eq!(pace(61, 10, Pace::left(0, 0)), None);
        assert_eq!(pace(60, 10, Pace::left(1, 0)), None);
    }

    #[test]
    fn once_six_rounds_are_made_any_budget_will_do() {
        assert_eq!(pace(1, 100, Pace::left(6, 0)), None);
        assert_eq!(Pace::left(0, 2), 8);
    }
}
