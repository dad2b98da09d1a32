//! What a campaign's recordings have, for its report.

use widthwise_anatomy::heap::Profile;

/// One variant's recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The variant.
    pub variant: String,
    /// Its heap, or why it is not here.
    pub heap: Result<Heap, String>,
}

/// A heap, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Heap {
    /// File name of the program itself.
    pub program: String,
    /// All of its stacks.
    pub profile: Profile,
    /// What a reader must know.
    pub remarks: Vec<String>,
}
