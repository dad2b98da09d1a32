//! How a run of a cell of a scaling campaign is made: started at one moment, each member on its CPU, watched, accounted for by
//! member, cleaned up; and how rounds of them are made.

pub mod event_log;
mod event_shares;
mod group_memory;
mod group_run;
mod group_spec;
mod launcher_pool;
mod left_to_others;
mod process_tree;
mod reported_events;
mod result;
mod rounds;
mod task_snapshot;
mod waits;
mod watcher;
mod worker_cpus;

pub use group_spec::GroupSpec;
pub use launcher_pool::LauncherPool;
pub use rounds::{measure, ScalingRounds, Slot};
