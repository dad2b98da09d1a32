//! What each recording of two variants read, and how certain a part is whose amount differs between recordings of one variant.

use widthwise_anatomy::Certainty;
use widthwise_experiment::memory::Class;

use super::allocated::Allocated;
use super::resident::{Resident, Use};
use crate::spread;

/// Bytes of a page.
pub const PAGE: f64 = 4096.0;
/// The kernel maps pages of a file in aligned blocks of this size around a fault (mm/memory.c, `fault_around_bytes`): how many are
/// resident depends on where the file is mapped.
const FAULT_AROUND: f64 = 65536.0;

/// The recordings of both variants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recordings {
    /// The largest reading of each.
    pub resident: [Vec<Resident>; 2],
    /// What was allocated at the peak of each.
    pub allocated: [Vec<Allocated>; 2],
}

impl Recordings {
    /// The certainty of a difference of resident pages.
    pub fn of_use(&self, of: &Use) -> Certainty {
        let step = match of {
            Use::Library(_) | Use::ProgramFile(_) => FAULT_AROUND,
            Use::Class(Class::Library | Class::ProgramText | Class::File) => FAULT_AROUND,
            Use::Class(_) => PAGE,
        };
        certainty(self.resident.each_ref().map(|side| side.iter().map(|one| one.of(of)).collect()), step)
    }

    /// The certainty of a difference of allocated bytes, which are multiples of `step`.
    pub fn of_allocated(&self, step: f64, of: &dyn Fn(&Allocated) -> i64) -> Certainty {
        certainty(self.allocated.each_ref().map(|side| side.iter().map(of).collect()), step)
    }

    /// The certainty of a difference of both. They are of the same recordings, or else of independent runs.
    /// The first argument is the side.
    pub fn of_both(&self, step: f64, of: &dyn Fn(usize, &Resident, &Allocated) -> i64) -> Certainty {
        let side = |side: usize| {
            let both = self.resident[side].iter().zip(&self.allocated[side]);
            both.map(|(resident, allocated)| of(side, resident, allocated)).collect()
        };
        certainty([side(0), side(1)], step)
    }
}

fn certainty(sides: [Vec<i64>; 2], step: f64) -> Certainty {
    let [a, b] = sides.map(|side| side.into_iter().map(|value| value as f64).collect::<Vec<f64>>());
    spread::certainty(&a, &b, step, step)
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::memory::Part;

    use super::*;

    fn of_libc(amounts: [&[u64]; 2]) -> Certainty {
        let one = |bytes: &u64| {
            let part = Part { class: Class::Library, name: "libc.so.6".to_owned() };
            Resident::of_recording([(part, *bytes)], 1)
        };
        let resident = amounts.map(|side| side.iter().map(one).collect());
        Recordings { resident, ..Recordings::default() }.of_use(&Use::Library("libc.so.6".to_owned()))
    }

    #[test]
    fn pages_of_a_library_are_certain_only_beyond_the_spread_of_recordings() {
        let mega = 1_000_000;
        assert_eq!(of_libc([&[mega, mega + 200_000], &[mega - 100_000, mega + 60_000]]), Certainty::Low);
        assert_eq!(of_libc([&[mega; 2], &[mega + 4096; 2]]), Certainty::Low);
        assert_eq!(of_libc([&[mega; 2], &[mega + 300_000; 2]]), Certainty::Medium);
        assert_eq!(of_libc([&[mega; 2], &[2 * mega; 2]]), Certainty::High);
    }

    #[test]
    fn a_part_of_one_recording_is_of_medium_certainty_at_most() {
        assert_eq!(of_libc([&[1_000_000], &[9_000_000]]), Certainty::Medium);
        assert_eq!(of_libc([&[1_000_000; 2], &[9_000_000]]), Certainty::Medium);
    }
}
