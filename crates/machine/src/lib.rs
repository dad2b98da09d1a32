//! What is here: toolchains, ABIs that build and that run, allocators, topology, counters, settings and noise.
//!
//! Two kinds of function live here, and are kept apart. Those that look (read `/proc` and `/sys`, start a compiler,
//! open a counter) are thin; those that decide (which compiler is the default, which core to measure on, what an
//! error means and which command fixes it) are pure, and are tested on recordings of other machines.
//!
//! ABIs are named by the words of the whole house (`x86-64`, `x32`, `i386`); the table in [`abi`] says what each name
//! means to a compiler, a loader and a package manager.

pub mod abi;
pub mod ability;
pub mod allocator;
pub mod cgroup;
pub mod compiler;
pub mod counters;
pub mod cpulist;
pub mod doctor;
pub mod doctor_text;
pub mod elf;
mod i386_entry;
pub mod kernel;
pub mod linking;
pub mod noise;
pub mod package;
pub mod placement;
mod process;
pub mod qemu;
pub mod record;
pub mod setting;
mod sysfs;
pub mod topology;
pub mod unavailable;
pub mod valgrind;

pub use ability::Ability;
pub use compiler::Compiler;
pub use doctor::Diagnosis;
pub use noise::{Noise, NoiseReader};
pub use placement::{Kinds, Placement, PlacementError, Policy};
pub use record::MachineRecord;
pub use setting::Settings;
pub use topology::Topology;
pub use unavailable::Unavailable;
