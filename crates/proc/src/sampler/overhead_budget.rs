//! How often the sampler may read: a budget that grows with time and is spent by readings (a token bucket).
//! Pure.

/// The overhead budget of one kind of reading. Times are nanoseconds of one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct OverheadBudget {
    /// The share of time that may be spent.
    share: f64,
    /// When it started to grow.
    since: u64,
    /// What was spent or forfeited: an unused budget does not grow without end, otherwise a burst of readings
    /// could slow the program for a while.
    gone: f64,
    /// The estimated cost of the next reading.
    cost: f64,
    /// When it was last spent from.
    last: u64,
    /// The least time between two readings, however large the budget.
    least_gap: u64,
}

/// The budget saves up at most this many readings, or the allowance of this much time, whichever is more.
const SAVED_READINGS: f64 = 3.0;
const SAVED_TIME: f64 = 500e6;

impl OverheadBudget {
    /// An empty budget that grows from `since`; the first reading costs about `cost`.
    pub fn new(share: f64, since: u64, cost: f64, least_gap: u64) -> OverheadBudget {
        OverheadBudget { share, since, gone: 0.0, cost, last: since, least_gap }
    }

    /// When the next reading may be made, if it costs this much.
    pub fn ready(&self, cost: f64) -> u64 {
        let needed = (self.gone + cost) / self.share;
        // `as` saturates: the far future is good enough for never.
        (self.since.saturating_add(needed as u64)).max(self.last.saturating_add(self.least_gap))
    }

    /// The estimated cost of a reading.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Spends on something else, which does not change the estimated cost of the next reading.
    pub fn spend_besides(&mut self, took: u64) {
        self.gone += took as f64;
    }

    /// Records a reading that ended at `now` and took this long. It updates the estimate for the next one; a
    /// single outlier has a limited effect.
    pub fn spend(&mut self, now: u64, took: u64) {
        let took = took as f64;
        let grown = now.saturating_sub(self.since) as f64 * self.share;
        let most = (SAVED_READINGS * took.max(self.cost)).max(SAVED_TIME * self.share);
        self.gone = (self.gone + took).max(grown - most);
        let new = if took > self.cost { 0.5 } else { 0.3 };
        self.cost += new * (took - self.cost);
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as often as the budget allows, each time for that long; returns the share of the time up to
    /// `end` that was spent.
    fn spent(mut budget: OverheadBudget, end: u64, took: impl Fn(u64) -> u64) -> f64 {
        let (mut now, mut sum) = (0, 0);
        loop {
            now = budget.ready(budget.cost()).max(now);
            if now >= end {
                return sum as f64 / end as f64;
            }
            let cost = took(now);
            (now, sum) = (now + cost, sum + cost);
            budget.spend(now, cost);
        }
    }

    #[test]
    fn no_more_than_the_share_is_spent_whatever_a_reading_costs() {
        for cost in [2_000, 100_000, 7_000_000] {
            let share = spent(OverheadBudget::new(0.005, 0, cost as f64, 1_000), 20_000_000_000, |_| cost);
            assert!(share <= 0.005 && share > 0.004, "{cost}: {share}");
        }
    }

    #[test]
    fn readings_that_become_more_expensive_become_rarer() {
        let share =
            spent(OverheadBudget::new(0.005, 0, 1e4, 1_000), 60_000_000_000, |now| 10_000 + now / 10_000);
        assert!(share <= 0.005 * 1.02, "{share}");
    }

    #[test]
    fn an_unused_budget_is_limited() {
        let mut budget = OverheadBudget::new(0.005, 0, 1e5, 1_000);
        let hour = 3_600_000_000_000;
        budget.spend(hour, 100_000);
        let mut now = hour;
        for _ in 0..1000 {
            now = budget.ready(budget.cost()).max(now);
            budget.spend(now + 100_000, 100_000);
            now += 100_000;
        }
        // A thousand readings of 100 µs are worth 20 s.
        assert!(now - hour > 19_000_000_000, "{}", now - hour);
    }
}
