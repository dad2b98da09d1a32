//! Buffers that a library allocates for itself, whose sizes are rules of that library.

use crate::certainty::Certainty;
use crate::heap::types::found::Found;
use crate::heap::types::model::Source;
use crate::heap::types::origin::Origin;

/// The memory that libstdc++ keeps for exceptions when there is no other.
const RESERVE: &str = "libstdc++'s reserve for exceptions";

/// No smaller block of libstdc++'s start is the reserve.
const LEAST_RESERVE: u64 = 8 << 10;

/// Functions of the C library with a second name, which one ABI's symbol table may have first (glibc's string/strdup.c, strndup.c, libio/iogetdelim.c).
const SECOND_NAMES: [(&str, &str); 3] =
    [("__strdup", "strdup"), ("__strndup", "strndup"), ("_IO_getdelim", "getdelim")];

/// A function's public name, so that blocks of one function are of one origin in all ABIs.
pub fn public_name(function: String) -> String {
    match SECOND_NAMES.iter().find(|(second, _)| *second == function) {
        Some((_, public)) => (*public).to_owned(),
        None => function,
    }
}

/// The buffer that an origin's blocks are, if it is a known one.
pub fn buffer(origin: &Origin) -> Option<Found> {
    let file = |number: usize| {
        let module = origin.calls.get(number)?.module.as_deref()?;
        module.rsplit('/').next()
    };
    // libsupc++/eh_alloc.cc: a constructor allocates it when the dynamic linker starts the library: 64 exceptions of 1024 bytes
    // with their headers in LP64, 32 of 512 in ILP32 (GCC 5 to 12).
    let is_reserve = origin.own.is_none()
        && origin.values.peak_count == 1
        && origin.values.peak_bytes >= LEAST_RESERVE
        && file(0)?.starts_with("libstdc++.so")
        && origin.calls.len() > 1
        && (1..origin.calls.len())
            .all(|number| file(number).is_some_and(|name| name.starts_with("ld-linux")));
    is_reserve.then(|| Found {
        name: RESERVE.to_owned(),
        container: None,
        size: None,
        id: None,
        library: Some(RESERVE),
        certainty: Certainty::High,
        source: Source::Library,
        cookie: 0,
        tail: None,
    })
}

#[cfg(test)]
mod tests {
    use super::public_name;

    #[test]
    fn a_function_of_the_c_library_has_one_name_whichever_the_symbol_table_has_first() {
        for (name, public) in [("__strdup", "strdup"), ("strdup", "strdup"), ("std::string", "std::string")] {
            assert_eq!(public_name(name.to_owned()), public);
        }
    }
}
