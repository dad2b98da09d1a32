//! The types of the blocks of one recording, or of two side by side.

use std::num::NonZero;

use widthwise_anatomy::heap::types::{self, Programs, Recording, TypedHeap, TypedSide};
use widthwise_anatomy::heap::Symbols;

use super::reading::Read;

pub use widthwise_anatomy::heap::types::Side;

/// The typed blocks; none where a side is another profiler's file, which has no code addresses.
pub fn typed(a: &Read, b: Option<&Read>, through: &[String], symbols: &mut Symbols) -> Option<TypedHeap> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut programs = Programs::new(threads);
    let mut of = |read: &Read| -> Option<TypedSide> {
        let addresses = read.addresses.as_ref()?;
        let recording = Recording {
            stacks: &addresses.stacks,
            values: &addresses.values,
            profile: &read.profile,
            program: &read.program,
            block_header: addresses.block_header,
            through,
        };
        Some(types::typed(&recording, symbols, &mut programs))
    };
    let a = of(a)?;
    match b {
        Some(b) => Some(types::pairs(&a, &of(b)?)),
        None => Some(types::alone(&a)),
    }
}
