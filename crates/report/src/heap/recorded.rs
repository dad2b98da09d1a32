//! A campaign's heap recordings, for its report.

use widthwise_anatomy::heap::Profile;

use super::side::Side;

/// One variant's recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The variant.
    pub variant: String,
    /// Its heap, or why it is missing.
    pub heap: Result<Heap, String>,
}

/// A heap that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Heap {
    /// File name of the program itself.
    pub program: String,
    /// Its sums, and those of all its recordings.
    pub side: Side,
    /// All stacks of the recording that represents it.
    pub profile: Profile,
}
