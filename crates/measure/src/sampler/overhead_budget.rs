//! How often one may read: an allowance that grows with time and is spent by reading. Pure: times in, times out.

/// The allowance of one kind of reading. Times are nanoseconds of one clock.
#[derive(Debug, Clone, PartialEq)]
pub struct OverheadBudget {
    /// The share of time that may be spent.
    share: f64,
    /// Since when it grows.
    since: u64,
    /// What was spent, and what was forgone: a purse that is never opened does not grow without end, or a burst of
    /// readings could stop the program for a while.
    gone: f64,
    /// What the next reading will cost, as far as is known.
    cost: f64,
    /// When it was last opened.
    last: u64,
    /// Not more often than this, even where it could be paid.
    least_gap: u64,
}

/// At most so many readings, or the allowance of so much time, whichever is more, are saved up.
const SAVED_READINGS: f64 = 3.0;
const SAVED_TIME: f64 = 500e6;

impl OverheadBudget {
    /// An empty purse that grows from `since`; the first reading will cost about `cost`.
    pub fn new(share: f64, since: u64, cost: f64, least_gap: u64) -> OverheadBudget {
        OverheadBudget { share, since, gone: 0.0, cost, last: since, least_gap }
    }

    /// When the next reading may be made, if so much must be there to pay for it.
    pub fn ready(&self, cost: f64) -> u64 {
        let needed = (self.gone + cost) / self.share;
        // `as` saturates: never is far enough away.
        (self.since.saturating_add(needed as u64)).max(self.last.saturating_add(self.least_gap))
    }

    /// What a reading costs, as far as is known.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Something else was read from this allowance, which says nothing of what the next reading will cost.
    pub fn spend_besides(&mut self, took: u64) {
        self.gone += took as f64;
    }

    /// A reading was made that ended at `now` and took so long. The next one is thought to take about as long; a single
    /// one that took long for no reason of its own is not believed altogether.
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

    /// Reads as often as it may, each time for that long; what was spent of the time up to `end`.
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
    fn readings_that_become_dearer_become_rarer() {
        let share =
            spent(OverheadBudget::new(0.005, 0, 1e4, 1_000), 60_000_000_000, |now| 10_000 + now / 10_000);
        assert!(share <= 0.005 * 1.02, "{share}");
    }

    #[test]
    fn what_is_not_spent_for_long_is_not_all_saved() {
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
