//! Generates Rust from the C headers in `runtime/` that describe bytes shared by C and Rust: the heap log, the launcher's
//! protocol, the x32 runtime's account. A build script calls [`generate`]; the header is the only source.
//!
//! A header may hold `#define NAME literal`, enumerations, structures of fixed-width fields, and `_Static_assert`s that compare
//! `sizeof` or `offsetof` with a number. Anything else is an error, so that nothing is dropped silently.
//!
//! Why a layout cannot drift: each structure must have a `_Static_assert` of its size, which every C compiler checks. The
//! generator requires that size to be the sum of the fields' sizes. Such a structure has no padding on any ABI, so each
//! field's offset is the sum of the sizes before it, in C and in Rust. The generated Rust asserts size and offsets again.

mod header_parser;
mod rust_writer;

use std::path::{Path, PathBuf};

pub use header_parser::HeaderError;

/// The Rust module for the text of a header. `name` is the header's file name, for comments.
///
/// # Errors
/// The header holds something that the module's documentation does not list, or a structure has padding or no asserted size.
pub fn rust_of(name: &str, text: &str) -> Result<String, HeaderError> {
    Ok(rust_writer::write(name, &header_parser::Header::parse(text)?))
}

/// For build scripts: writes the Rust module for `header` into `OUT_DIR`, with the extension `rs`, and asks Cargo to run the
/// script again when the header changes.
///
/// # Panics
/// The header cannot be read or is not accepted; the message names its line. Cargo prints it.
pub fn generate(header: &Path) {
    println!("cargo::rerun-if-changed={}", header.display());
    let text =
        std::fs::read_to_string(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()));
    let name = header.file_name().unwrap_or_default().to_string_lossy();
    let rust = rust_of(&name, &text).unwrap_or_else(|error| panic!("{}:{error}", header.display()));
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let path = folder.join(header.with_extension("rs").file_name().unwrap_or_default());
    std::fs::write(&path, rust).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
