//! Files of the C++ standard libraries, recognised by their names without folders: valgrind's tools write no folders.

/// Prefixes of a library's file names.
const BEGINNINGS: [&str; 3] = [
    // libstdc++, include/bits: stl_tree.h, stl_list.h, stl_vector.h, stl_uninitialized.h, …
    "stl_",   // libstdc++, include/bits: regex_automaton.h, regex_compiler.tcc, …
    "regex_", // libc++, include: __tree, __hash_table, __split_buffer, …
    "__",
];

/// Complete names, by their folders in the libraries.
const NAMES: [&str; 37] = [
    // libstdc++, include/bits and ext: the way from a container to operator new.
    "alloc_traits.h",
    "allocated_ptr.h",
    "allocator.h",
    "new_allocator.h",
    "malloc_allocator.h",
    "aligned_buffer.h",
    // libstdc++, include/bits: classes that allocate.
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

/// Whether a file name without a folder is taken for a standard library's. A source of the program with such a name is taken
/// for one, too: its caller becomes the site.
pub fn is_library(name: &str) -> bool {
    // `vector`, `memory`, `functional`: the standard's own headers have no file extension, and sources have one.
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
