//! Counts by function: untimed runs of each variant under valgrind's callgrind, and one in which the kernel reports every page fault,
//! in a separate pass. The files are kept in the campaign, and read by `explain`.

mod fault_sites;
mod log_openings;
mod page_faults;
mod record;
pub mod recording;

pub use record::record;
pub use recording::{FaultSite, PageFaults, Recording, COUNTS, KERNEL, SYSTEM_CALLS};

/// Two runs show whether the counts repeat.
pub const REPEATS: u32 = 2;
