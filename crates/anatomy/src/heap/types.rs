//! The types of heap blocks, and why a type's blocks have other sizes in another ABI.
//!
//! [`typed`] gives the blocks of one recording their types; [`pairs`] divides the difference of two recordings into parts that
//! sum to it. A type has a certainty and a source: the most reliable source decides.

mod agreement;
pub(super) mod allocator;
mod blocks;
mod call_sites;
pub mod callers;
mod code_state;
pub mod constructed;
mod division;
mod entries;
mod factors;
mod fit;
mod found;
mod handed_over;
mod library;
mod line_calls;
pub mod model;
mod named_types;
mod origin;
mod pairs;
pub mod program_types;
mod receiver;
mod several;
mod side;
mod source;
mod source_line;
mod source_text;
mod stored_length;
mod summary;
mod sums;
mod tails;

pub use model::{
    AllocatorPart, AllocatorRule, Amount, Cause, Explained, HeapType, Part, Source, TypeRow, TypedHeap,
    TypedPair,
};
pub use pairs::{alone, pairs};
pub use program_types::Programs;
pub use side::{typed, Recording, TypedSide};
pub use summary::Side;
