//! Lifetimes of blocks: they show what an arena, a pool or a reused buffer could save.

/// Limits between classes, in nanoseconds: two classes a decade. The recorder reads its clock at every 256th event where events
/// follow closely, so that finer classes would not be exact.
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
    /// All freed blocks, by lifetime: below the first of [`EDGES`], below the second, …, and longer than the last.
    pub classes: [u64; EDGES.len() + 1],
}

/// The lifetime of one freed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Nanoseconds.
    pub duration_ns: u64,
    /// No other block was allocated in the meantime.
    pub temporary: bool,
}

impl Lifetime {
    fn class(&self) -> usize {
        EDGES.partition_point(|edge| *edge <= self.duration_ns)
    }
}

impl Lifetimes {
    /// The number of freed blocks.
    pub fn released(&self) -> u64 {
        self.classes.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Counts a freed block.
    pub fn end(&mut self, life: Lifetime) {
        self.classes[life.class()] += 1;
        self.temporary += u64::from(life.temporary);
    }

    /// Revokes a count: `realloc` found no room, and the block stayed.
    pub fn undo(&mut self, life: Lifetime) {
        let class = &mut self.classes[life.class()];
        *class = class.saturating_sub(1);
        self.temporary = self.temporary.saturating_sub(u64::from(life.temporary));
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Lifetimes) {
        self.temporary = self.temporary.saturating_add(other.temporary);
        for (sum, count) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The quantile `share` (0 to 1; 0.5 is the median) of all lifetimes, rounded up to one of [`EDGES`]; `never` blocks are not
    /// freed. `None`: it is beyond the last edge, or those blocks live to the end.
    pub fn below(&self, share: f64, never: u64) -> Option<u64> {
        let wanted = share * self.released().saturating_add(never) as f64;
        let mut sum = 0u64;
        EDGES.iter().zip(self.classes).find_map(|(edge, count)| {
            sum = sum.saturating_add(count);
            (sum > 0 && sum as f64 >= wanted).then_some(*edge)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetimes_of(all: &[(u64, bool)]) -> Lifetimes {
        let mut lifetimes = Lifetimes::default();
        for (duration_ns, temporary) in all {
            lifetimes.end(Lifetime { duration_ns: *duration_ns, temporary: *temporary });
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
        assert_eq!((lifetimes.classes[1], lifetimes.classes[EDGES.len()]), (1, 1));
        lifetimes.undo(Lifetime { duration_ns: 100_000, temporary: false });
        lifetimes.undo(Lifetime { duration_ns: u64::MAX, temporary: false });
        assert_eq!(lifetimes, Lifetimes::default());
    }
}
