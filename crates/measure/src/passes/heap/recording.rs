//! The metadata of a recording of the heap.

use serde::{Deserialize, Serialize};

use crate::passes::recordings::KeptRecording;

/// The end of a log's name in a campaign.
pub const ENDING: &str = "wwheap.zst";

/// The result of a recording pass for a variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Why there are no logs.
    pub refused: Option<String>,
    /// Why the recorded run is incomplete: it failed or was stopped.
    #[serde(default)]
    pub failure: Option<String>,
    /// What a reader must know of the logs.
    pub remarks: Vec<String>,
    /// When the run began, by CLOCK_MONOTONIC, in nanoseconds.
    pub began_ns: u64,
    /// How long it ran, with the recorder.
    pub wall_ns: u64,
    /// The memory that the system gave it for its heap, over time.
    pub system: Vec<SystemMoment>,
    /// The reading with the largest RSS, by use, without the recorder's. Absent in recordings of earlier versions.
    #[serde(default)]
    pub largest: Option<LargestReading>,
    /// How often its memory was sampled. Absent in recordings of earlier versions, like the next field.
    #[serde(default)]
    pub samples: Option<u64>,
    /// For how long of the run `system` is known to be valid.
    #[serde(default)]
    pub held_ns: Option<u64>,
    /// The processes that the sampler saw: their numbers, and when each was found to be gone, in nanoseconds
    /// since the program began.
    #[serde(default)]
    pub ends: Vec<(u32, u64)>,
}

/// The memory of a process tree as the system sees it, without the recorder's. Resident bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMoment {
    /// Nanoseconds since the program began.
    pub at_ns: u64,
    /// What `brk` grows.
    pub heap: u64,
    /// Anonymous mappings other than stacks.
    pub mmapped: u64,
    /// All but the recorder's.
    pub resident: u64,
    /// Huge pages of the tree. 0 in recordings of earlier versions.
    #[serde(default)]
    pub huge: u64,
    /// For how long it is known to be valid, in nanoseconds. Absent in recordings of earlier versions.
    #[serde(default)]
    pub valid_ns: Option<u64>,
}

/// A reading of a process tree's resident memory, by use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestReading {
    /// How many processes the tree had.
    pub processes: usize,
    /// Resident bytes of each part that has any.
    pub parts: Vec<PartBytes>,
}

/// Resident bytes of a class of mappings, or of one library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartBytes {
    /// The class's name.
    pub class: String,
    /// The part's name; empty for classes without parts.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

impl KeptRecording for Recording {
    const FOLDER: &'static str = "heap";
}
