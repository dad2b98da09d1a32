//! How a run is done: build, launch, pin, account, compare answers.

mod ahead;
pub mod answer;
pub mod builds;
pub mod cgroup;
pub mod core_lock;
pub mod counters;
pub mod debian;
pub mod heap;
pub mod launcher;
pub mod memory;
pub mod program;
pub mod rounds;
pub mod run;
pub mod sampler;
pub mod scale;
pub mod schedule;
pub mod simulation;
pub mod source;
pub mod taskstats;
mod together;
pub mod toolchain;
mod turns;
mod untimed;
mod window;
