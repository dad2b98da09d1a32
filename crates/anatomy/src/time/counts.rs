//! What is counted of a function.

use std::ops::{Add, AddAssign};

/// Events of an emulated processor, and page faults of a real run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions executed.
    pub instructions: u64,
    /// Misses of the first level: instructions and data.
    pub first_level_misses: u64,
    /// Misses of the last level: instructions and data.
    pub last_level_misses: u64,
    /// Conditional branches and indirect jumps that were predicted wrongly.
    pub branch_misses: u64,
    /// Page faults; of a run outside valgrind.
    pub page_faults: u64,
}

/// A count of [`Counts`].
pub type Field = fn(&mut Counts) -> &mut u64;

impl Counts {
    /// The count that an event of callgrind or cachegrind belongs to (valgrind's manual, "Cachegrind"); none of the others.
    pub fn field(event: &str) -> Option<Field> {
        Some(match event {
            "Ir" => |counts| &mut counts.instructions,
            "I1mr" | "D1mr" | "D1mw" => |counts| &mut counts.first_level_misses,
            "ILmr" | "DLmr" | "DLmw" => |counts| &mut counts.last_level_misses,
            "Bcm" | "Bim" => |counts| &mut counts.branch_misses,
            _ => return None,
        })
    }

    /// Of each count, what `choose` makes of this one and the other's.
    fn each(&self, other: &Counts, choose: fn(u64, u64) -> u64) -> Counts {
        Counts {
            instructions: choose(self.instructions, other.instructions),
            first_level_misses: choose(self.first_level_misses, other.first_level_misses),
            last_level_misses: choose(self.last_level_misses, other.last_level_misses),
            branch_misses: choose(self.branch_misses, other.branch_misses),
            page_faults: choose(self.page_faults, other.page_faults),
        }
    }

    /// The greater of each count.
    pub fn greater(&self, other: &Counts) -> Counts {
        self.each(other, u64::max)
    }

    /// By how much each count differs.
    pub fn apart(&self, other: &Counts) -> Counts {
        self.each(other, u64::abs_diff)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = self.each(&other, u64::saturating_add);
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(mut self, other: Counts) -> Counts {
        self += other;
        self
    }
}
