//! Files of the C++ standard libraries, known by their bare names: valgrind's tools write no folders.

/// Beginnings of names that are a library's.
const BEGINNINGS: [&str; 3] = [
    // libstdc++, include/bits: stl_tree.h, stl_list.h, stl_vector.h, stl_uninitialized.h, …
    "stl_",   // libstdc++, include/bits: regex_automaton.h, regex_compiler.tcc, …
    "regex_", // libc++, include: __tree, __hash_table, __split_buffer, …
    "__",
];

/// Whole names, by where they are.
const NAMES: [&str; 37] = [
    // libstdc++, include/bits and ext: the way from a container to operator new.
    "alloc_traits.h",
    "allocated_ptr.h",
    "allocator.h",
    "new_allocator.h",
    "malloc_allocator.h",
    "aligned_buffer.h",
    // libstdc++, include/bits: what asks for memory on its own account.
    "basic_string.h",
    "basic_string.tcc",
    "basic_file_stdio.cc",
    "cow_string.h",
    "deque.tcc",
    "forward_list.h",
    "forward_list.tcc",
    "fstream.tcc",
    "hashtable.h",
    "hashtable_policy.h",
    "list.tcc",
    "locale_facets.tcc",
    "sstream.tcc",
    "std_function.h",
    "invoke.h",
    "move.h",
    "predefined_ops.h",
    "ptr_traits.h",
    "shared_ptr.h",
    "shared_ptr_base.h",
    "unique_ptr.h",
    "unordered_map.h",
    "unordered_set.h",
    "valarray_array.h",
    "vector.tcc",
    // libc++, include/__memory and include/__new.
    "allocate.h",
    "allocate_at_least.h",
    "allocator_traits.h",
    "construct_at.h",
    "compressed_pair.h",
    "uninitialized_algorithms.h",
];

/// Whether a file of that name, which has no folder, is taken for a standard library's. A source of the program's own with such a
/// name is not told apart: then its caller is the site.
pub fn is_library(name: &str) -> bool {
    // `vector`, `memory`, `functional`: what the standard itself names has no ending, and sources have one.
    let is_standard = !name.contains('.');
    is_standard || NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_library_are_told_from_sources_by_their_bare_names() {
        for library in ["new_allocator.h", "stl_tree.h", "vector", "vector.tcc", "__tree"] {
            assert!(is_library(library), "{library}");
        }
        for own in ["tree.cpp", "vector.h", "stl.cpp", "main.c", "allocators.h"] {
            assert!(!is_library(own), "{own}");
        }
    }
}
