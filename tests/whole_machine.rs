//! What needs the CPUs for itself: scaling, locks of cores, other tasks on the measured CPU, and means over time of memory.
//!
//! Tests that read times take the machine alone (`laboratory::alone`).

mod browser;
mod laboratory;
mod schema;

mod asleep;
mod explain;
mod other_tasks;
mod scale;
mod scale_stopping;
mod simultaneous_campaigns;
mod tree_peaks;
