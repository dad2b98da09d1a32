//! The machine: toolchains, ABIs that build and that run, allocators, topology, counters, settings and noise.
//!
//! Functions with side effects (read `/proc` and `/sys`, start a compiler, open a counter) are small and separate from
//! decisions. Functions that decide (the default compiler, the core to measure on, the meaning and fix of an error) are
//! pure and tested on recordings of other machines.
//!
//! ABIs have the names `x86-64`, `x32` and `i386`; the table in [`abi`] has the names that a compiler, a loader and a
//! package manager use.

pub mod abi;
pub mod ability;
pub mod allocator;
pub mod boot_options;
pub mod bzimage;
pub mod cgroup;
pub mod compiler;
pub mod core_caches;
pub mod counters;
pub mod cpulist;
pub mod doctor;
pub mod doctor_text;
pub mod elf;
#[cfg(test)]
#[path = "../../../tests/laboratory/executable.rs"]
mod executable;
pub mod foreign;
mod i386_entry;
pub mod kernel_config;
pub mod linking;
pub mod noise;
pub mod package;
pub mod placement;
pub mod process_group;
pub mod processor;
pub mod qemu;
pub mod record;
pub mod script;
mod sysfs;
pub mod system_settings;
mod tool_output;
pub mod topology;
pub mod unavailable;
pub mod valgrind;
pub mod vsyscall;

pub use ability::Ability;
pub use compiler::Compiler;
pub use doctor::Diagnosis;
pub use noise::{Noise, NoiseReader};
pub use placement::{Kinds, Placement, PlacementError, Policy};
pub use record::MachineRecord;
pub use system_settings::Settings;
pub use topology::Topology;
pub use unavailable::Unavailable;
