//! One run: launched, watched, accounted for, cleaned up.

pub mod counters;
pub(crate) mod descriptors;
pub(crate) mod ending;
mod guardian;
pub(crate) mod hooks;
pub mod launch_spec;
pub mod launcher;
pub mod limits;
mod memory_file;
pub(crate) mod page_cache;
pub mod reported;
pub mod result;
pub mod runner;
pub(crate) mod sample;
mod setup_mark;
mod x32_account;
