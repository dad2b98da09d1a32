//! Facts out of files: programs, their debug information, and recordings.

mod log_writer;
#[path = "../../../tests/laboratory/outcomes.rs"]
mod outcomes;
#[path = "layout/programs.rs"]
mod programs;

mod code_classes;
mod heap_callers;
mod hostile_log;
mod layout_alignments;
mod layout_causes;
mod layout_compilers;
mod layout_formats;
mod plugin_host;
mod recordings;
mod size_parts;
mod whole_files;
