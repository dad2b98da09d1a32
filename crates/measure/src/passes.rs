//! Passes after the timed rounds, in which nothing is timed: memory over time, emulated counters, the
//! instructions of operations, the heap, functions.

mod callgrind_parts;
mod clock_calls;
mod counted_rounds;
mod deviations;
pub mod emulated_counters;
pub mod emulated_machine;
mod emulated_processes;
pub mod functions;
pub mod heap;
pub mod memory;
pub mod operation_instructions;
pub mod recordings;
mod valgrind;
