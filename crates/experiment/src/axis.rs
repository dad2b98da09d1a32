//! Axes: what varies between variants.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that varies between variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Pointer width and calling convention: `x86-64`, `x32`, `i386`, `ppc64`.
    Abi,
    /// The C and C++ compiler: `gcc-12`, `clang-14`.
    Compiler,
    /// A named set of compiler options.
    Flags,
    /// The allocator preloaded into the program.
    Allocator,
    /// Transparent huge pages for the program: `system`, `always`, `madvise`, `never`.
    Thp,
    /// A named set of environment variables for the program.
    Env,
    /// The kernel: this machine's own, or another one in an emulated machine.
    Kernel,
}

impl Axis {
    /// Every axis, in the order in which a variant's name spells them.
    pub const ALL: [Axis; 7] =
        [Axis::Abi, Axis::Compiler, Axis::Flags, Axis::Allocator, Axis::Thp, Axis::Env, Axis::Kernel];

    /// The name in spec files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Abi => "abi",
            Axis::Compiler => "compiler",
            Axis::Flags => "flags",
            Axis::Allocator => "allocator",
            Axis::Thp => "thp",
            Axis::Env => "env",
            Axis::Kernel => "kernel",
        }
    }

    /// The axis of that name, if there is one.
    pub fn find(name: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
