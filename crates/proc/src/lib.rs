//! What the kernel says of running processes, mostly in `/proc`, and what it lets us set; and the [`sampler`], which reads the memory of
//! a process tree while it runs. It imports every other module here, and none imports it.

pub mod affinity;
pub mod cgroup;
pub mod clock;
pub mod descendants;
pub mod meminfo;
pub mod memory_stat;
pub mod pagemap;
pub mod process;
pub mod sampler;
pub mod shared_once;
pub mod smaps;
pub mod statm;
pub mod taskstats;
