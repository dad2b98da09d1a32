//! The command line, from end to end: one module for each subject.
//!
//! One program, so that it is linked once and its tests run side by side. Tests that need the CPUs for themselves are in
//! `whole_machine.rs`.

mod browser;
mod laboratory;
#[path = "../crates/anatomy/tests/log_writer/mod.rs"]
mod log_writer;
mod schema;

mod architecture;
mod axes;
mod bad_input;
mod compare;
mod concurrent_runs;
mod control_groups;
mod damaged_campaigns;
mod doctor;
mod documentation;
mod emulated_counters;
mod equivalence;
mod exec;
mod explain_formats;
mod explain_programs;
mod failing_programs;
mod finished_programs;
mod functions;
mod heap;
mod heap_arrays;
mod heap_incomplete;
mod heap_logs;
mod heap_programs;
mod heap_types;
mod heap_types_hidden;
mod interrupts;
mod kernel_failures;
mod kernels;
mod layouts;
mod machine_counters;
mod memory;
mod micro;
mod operations_on_kernels;
mod options;
mod page;
mod page_cache;
mod projects;
mod reco;
mod recorder;
mod report;
mod resume;
mod special_characters;
mod unprivileged;
mod unwritable_files;
mod wrappers;
mod x32_beside_x86_64;
mod x32_runtime_costs;
mod x32_tools;
