//! How a run is made: build, launch, pin, account, compare outputs.

pub mod builds;
pub mod cgroup;
pub mod comparison;
pub mod core_lock;
pub mod counters;
pub mod debian;
pub mod emulation;
pub mod ending;
pub mod executor;
pub mod heap;
pub mod launcher;
pub mod memory;
pub mod output;
mod outputs;
pub mod plan;
pub mod program;
pub mod rounds;
pub mod run;
pub mod sampler;
pub mod scale;
pub mod schedule;
pub mod source;
pub mod taskstats;
pub mod toolchain;
mod window;
