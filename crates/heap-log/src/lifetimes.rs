//! Lifetimes of blocks: they show what an arena, a pool or a reused buffer could save.

/// Limits between classes, in nanoseconds: two classes a decade. The recorder reads its clock at every 256th event where events
/// follow closely, so that few blocks could be counted in finer classes.
pub const EDGES: [u64; 15] = [
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
    300_000_000_000,
    1_000_000_000_000,
];

/// The lifetimes of the freed blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// Temporary allocations: freed before the process's next allocation.
    pub temporary: u64,
    /// All freed blocks, by the longest lifetime that they may have had: below the first of [`EDGES`], below the second, …, and longer
    /// than the last.
    pub longest: [u64; EDGES.len() + 1],
    /// The same, by the shortest.
    pub shortest: [u64; EDGES.len() + 1],
}

/// The lifetime of one freed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Nanoseconds: it lived as long or longer.
    pub at_least_ns: u64,
    /// As long or shorter. `u64::MAX` where that is not known.
    pub at_most_ns: u64,
    /// No other block was allocated in the meantime.
    pub temporary: bool,
}

/// The class of a lifetime.
fn class(duration_ns: u64) -> usize {
    EDGES.partition_point(|edge| *edge <= duration_ns)
}

/// The class in which the quantile `share` of the blocks is, if `never` more are never freed. `None`: it is one of these, or there is no
/// block.
fn quantile(classes: &[u64; EDGES.len() + 1], share: f64, never: u64) -> Option<usize> {
    let released = classes.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    let wanted = share * released.saturating_add(never) as f64;
    let mut sum = 0u64;
    classes.iter().position(|count| {
        sum = sum.saturating_add(*count);
        sum > 0 && sum as f64 >= wanted
    })
}

impl Lifetimes {
    /// The number of freed blocks.
    pub fn released(&self) -> u64 {
        self.longest.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Counts a freed block.
    pub fn end(&mut self, life: Lifetime) {
        self.longest[class(life.at_most_ns)] += 1;
        self.shortest[class(life.at_least_ns)] += 1;
        self.temporary += u64::from(life.temporary);
    }

    /// Revokes a count: `realloc` found no room, and the block stayed.
    pub fn undo(&mut self, life: Lifetime) {
        for count in [&mut self.longest[class(life.at_most_ns)], &mut self.shortest[class(life.at_least_ns)]]
        {
            *count = count.saturating_sub(1);
        }
        self.temporary = self.temporary.saturating_sub(u64::from(life.temporary));
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Lifetimes) {
        self.temporary = self.temporary.saturating_add(other.temporary);
        let sums = self.longest.iter_mut().chain(&mut self.shortest);
        for (sum, count) in sums.zip(other.longest.iter().chain(&other.shortest)) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// The quantile `share` (0 to 1; 0.5 is the median) of all lifetimes is below this one of [`EDGES`]; `never` blocks are not freed.
    /// `None`: it may be beyond the last edge, or those blocks live to the end.
    pub fn below(&self, share: f64, never: u64) -> Option<u64> {
        EDGES.get(quantile(&self.longest, share, never)?).copied()
    }

    /// It is not below this one, or 0. `None`: those blocks live to the end.
    pub fn from(&self, share: f64, never: u64) -> Option<u64> {
        let class = quantile(&self.shortest, share, never)?;
        Some(class.checked_sub(1).map_or(0, |edge| EDGES[edge]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(duration_ns: u64, temporary: bool) -> Lifetime {
        Lifetime { at_least_ns: duration_ns, at_most_ns: duration_ns, temporary }
    }

    fn lifetimes_of(all: &[(u64, bool)]) -> Lifetimes {
        let mut lifetimes = Lifetimes::default();
        for (duration_ns, temporary) in all {
            lifetimes.end(exact(*duration_ns, *temporary));
        }
        lifetimes
    }

    #[test]
    fn blocks_that_are_never_given_back_live_longest() {
        let lifetimes = lifetimes_of(&[(5, true), (2_000_000, false), (4_000_000, false)]);
        assert_eq!((lifetimes.released(), lifetimes.temporary), (3, 1));
        assert_eq!(lifetimes.below(0.5, 0), Some(3_000_000));
        assert_eq!(lifetimes.below(0.9, 0), Some(10_000_000));
        assert_eq!(lifetimes.below(0.5, 3), Some(10_000_000));
        assert_eq!(lifetimes.below(0.5, 4), None);
        assert_eq!(Lifetimes::default().below(0.5, 0), None);
    }

    #[test]
    fn an_edge_belongs_to_the_class_above_and_what_is_undone_was_never() {
        let mut lifetimes = lifetimes_of(&[(100_000, false), (u64::MAX, false)]);
        assert_eq!((lifetimes.longest[1], lifetimes.shortest[EDGES.len()]), (1, 1));
        lifetimes.undo(exact(100_000, false));
        lifetimes.undo(exact(u64::MAX, false));
        assert_eq!(lifetimes, Lifetimes::default());
    }

    #[test]
    fn a_quantile_is_between_that_of_the_shortest_and_that_of_the_longest_lifetimes() {
        let mut lifetimes = lifetimes_of(&[(2_000_000, false)]);
        for at_most_ns in [200_000_000, 200_000_000, u64::MAX] {
            lifetimes.end(Lifetime { at_least_ns: 0, at_most_ns, temporary: false });
        }
        assert_eq!((lifetimes.from(0.5, 0), lifetimes.below(0.5, 0)), (Some(0), Some(300_000_000)));
        assert_eq!((lifetimes.from(0.9, 0), lifetimes.below(0.9, 0)), (Some(1_000_000), None));
        assert_eq!((lifetimes.from(0.5, 5), lifetimes.below(0.5, 5)), (None, None));
    }
}
