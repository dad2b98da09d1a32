//! What the kernel tells of processes, mostly in `/proc`, and what it lets us set.

pub mod affinity;
pub mod cgroup;
pub(crate) mod clock;
pub(crate) mod descendants;
pub(crate) mod meminfo;
pub(crate) mod memory_stat;
pub(crate) mod pagemap;
pub(crate) mod process;
pub(crate) mod shared_once;
pub(crate) mod smaps;
pub(crate) mod statm;
pub mod taskstats;
