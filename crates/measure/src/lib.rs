//! How a run is made: build, launch, pin, account, compare outputs.

pub mod builds;
pub mod cgroup;
pub mod core_lock;
pub mod counters;
pub mod debian;
pub mod emulation;
mod executor;
pub mod heap;
pub mod launcher;
pub mod memory;
pub mod output;
pub mod program;
pub mod rounds;
pub mod run;
pub mod sampler;
pub mod scale;
pub mod schedule;
pub mod source;
pub mod taskstats;
pub mod toolchain;
mod untimed_rounds;
mod window;
