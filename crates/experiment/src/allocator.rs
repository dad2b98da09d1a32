//! The allocators by name. The `machine` crate finds the library of each for each ABI.

/// Every allocator an experiment may name; the first is the default, with which nothing is preloaded.
pub const ALLOCATORS: [&str; 4] = ["glibc", "jemalloc", "mimalloc", "tcmalloc"];

/// The allocator of that name, if there is one.
pub fn find(name: &str) -> Option<&'static str> {
    ALLOCATORS.into_iter().find(|allocator| *allocator == name)
}
