//! The outputs of runs: their digests, and which of them differ.

mod diff;
pub(crate) mod digest;
pub mod earlier;
mod filter;
pub(crate) mod mismatch;
