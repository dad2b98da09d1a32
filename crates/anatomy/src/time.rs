//! Where the time of two variants goes: counts of an emulated processor and page faults, by function, matched between the two.
//!
//! `callgrind.rs` reads valgrind's files, `symbols.rs` names code addresses that valgrind cannot name, `profile.rs` adds up processes
//! to functions, `difference.rs` pairs the functions of two variants.

pub mod callgrind;
pub mod counts;
pub mod difference;
pub mod mappings;
pub mod module;
pub mod place;
pub mod profile;
pub mod symbols;

pub use counts::Counts;
pub use difference::{rows, Row, RowKind};
pub use place::Place;
pub use profile::{Function, Profile, ProfileError};
