//! Files of the C and C++ libraries, recognised by their names without folders: valgrind's tools write no folders. And the libraries
//! themselves: other profilers read their debug information, too.

/// Prefixes of a library's file names.
const BEGINNINGS: [&str; 4] = [
    // glibc, elf: the dynamic linker.
    "dl-",
    // libstdc++, include/bits: stl_tree.h, stl_list.h, stl_vector.h, stl_uninitialized.h, …
    "stl_",   // libstdc++, include/bits: regex_automaton.h, regex_compiler.tcc, …
    "regex_", // libc++, include: __tree, __hash_table, __split_buffer, …
    "__",
];

/// Complete names, by their folders in the libraries.
const NAMES: [&str; 58] = [
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
    // glibc: functions that allocate for their callers.
    "allocatestack.c",
    "asprintf.c",
    "filedoalloc.c",
    "findlocale.c",
    "fmemopen.c",
    "getcwd.c",
    "iofdopen.c",
    "iofopen.c",
    "iogetdelim.c",
    "iopopen.c",
    "loadlocale.c",
    "memstream.c",
    "msort.c",
    "obstack.c",
    "opendir.c",
    "pthread_create.c",
    "rtld-malloc.h",
    "setlocale.c",
    "strdup.c",
    "strndup.c",
    "vasprintf.c",
];

/// Libraries of the compiler and of the C library, by their names before `.so`.
const LIBRARIES: [&str; 12] = [
    "libc",
    "libm",
    "libpthread",
    "libdl",
    "librt",
    "libresolv",
    "libutil",
    "libstdc++",
    "libgcc_s",
    "libc++",
    "libc++abi",
    "ld64",
];

/// Whether an object file is such a library: its sources are no program's own.
pub fn is_library_module(module: &str) -> bool {
    let name = module.split(".so").next().unwrap_or(module);
    name != module
        && (LIBRARIES.contains(&name)
            || ["ld-linux", "ld-2.", "libc-2."].iter().any(|start| name.starts_with(start)))
}

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
        for library in ["obstack.c", "dl-init.c", "vasprintf.c"] {
            assert!(is_library(library), "{library}");
        }
        for own in ["tree.cpp", "vector.h", "stl.cpp", "main.c", "allocators.h"] {
            assert!(!is_library(own), "{own}");
        }
        for library in
            ["libc.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6.0.30", "libc-2.31.so", "ld64.so.2"]
        {
            assert!(is_library_module(library), "{library}");
        }
        for own in ["libcurl.so.4", "libc", "prog", "libmine.so", "libcrypto.so.3"] {
            assert!(!is_library_module(own), "{own}");
        }
    }
}
