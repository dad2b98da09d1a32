//! Why two variants of a program differ. Pure: files in, facts out.

mod certainty;
pub mod code;
pub mod debug;
pub mod elf;
pub mod function_name;
pub mod heap;
pub mod import;
mod languages;
pub mod layout;
pub mod names;
pub mod pairing;
pub mod size;
pub mod time;

pub use certainty::Certainty;
