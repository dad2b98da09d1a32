//! What a variant has allocated at the peak of its heap.

use widthwise_anatomy::heap::Composition;

/// What one variant has allocated when that is most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allocated {
    /// The amounts.
    pub composition: Composition,
    /// The peak heap, which the sites' parts sum to.
    pub peak_heap: u64,
    /// Bytes of a pointer; glibc's header of a block has as many.
    pub word: u64,
    /// Whether the blocks are glibc's.
    pub is_glibc: bool,
    /// Whether a process may have copied pages of a heap that it shared with its parent after a fork.
    pub may_copy: bool,
}
