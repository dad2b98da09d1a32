//! Functions that are named after pools, and those of libraries that take chunks through a program's wrapper of the allocator.

use widthwise_heap_log::profile::Frame;

/// Whether a function has the name of a pool.
pub(super) fn is_named(function: &str) -> bool {
    let name = function.to_lowercase();
    ["pool", "arena", "slab", "chunk", "obstack", "palloc"].iter().any(|word| name.contains(word))
}

/// The outermost function of a library's pool that takes a chunk, in frames of which the innermost is the first one: it calls a function
/// that `passes` requests on, as glibc's `_obstack_newchunk` calls `xmalloc`. Names of C++ may be those of classes and arguments.
pub(super) fn of_library(
    frames: &[&Frame],
    passes: impl Fn(&Frame) -> bool,
    is_library: impl Fn(&Frame) -> bool,
) -> Option<usize> {
    let is_pool = |frame: &Frame| {
        is_library(frame) && is_named(&frame.function) && !frame.function.contains(['<', ':', ' '])
    };
    let first = frames.windows(2).position(|two| passes(two[0]) && is_pool(two[1]))? + 1;
    let more = frames[first + 1..].iter().take_while(|frame| is_pool(frame)).count();
    Some(first + more)
}
