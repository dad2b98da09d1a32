//! The metadata of a recording of counts by function.

use serde::{Deserialize, Serialize};

use crate::passes::recordings::KeptRecording;

/// The end of the name of callgrind's files in a campaign; before it is the process's number.
pub const COUNTS: &str = "callgrind.zst";
/// The end of the name of valgrind's log of an x32 process's calls that open and map files.
pub const SYSTEM_CALLS: &str = "syscalls.zst";
/// The path of page faults in system calls.
pub const KERNEL: &str = "[kernel]";

/// The result of one run of the pass for a variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Why there are no counts.
    pub refused: Option<String>,
    /// What a reader must know of the counts.
    pub remarks: Vec<String>,
    /// The paths of the program: as it was started, and without symbolic links.
    pub programs: Vec<String>,
    /// The x32 runtime ran it: valgrind names no function of its own.
    pub through_runtime: bool,
    /// valgrind's version.
    pub valgrind: String,
    /// How long it ran under valgrind, in nanoseconds.
    pub wall_ns: u64,
    /// The page faults of a run outside valgrind.
    pub page_faults: Option<PageFaults>,
    /// Why there are none.
    pub page_faults_missing: Option<String>,
}

/// The page faults of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFaults {
    /// Where they happened.
    pub sites: Vec<FaultSite>,
    /// Reports that the kernel had no room for.
    pub lost: u64,
    /// Faults in system calls were reported, too.
    pub with_kernel: bool,
}

/// The page faults of one code address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FaultSite {
    /// The file; empty for code in no file, [`KERNEL`] for system calls.
    pub path: String,
    /// The instruction's offset in the file; 0 without one.
    pub offset: u64,
    /// How many faults.
    pub faults: u64,
}

impl KeptRecording for Recording {
    const FOLDER: &'static str = "functions";
}
