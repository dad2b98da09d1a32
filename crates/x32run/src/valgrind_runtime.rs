//! The runtime that valgrind can start and name the functions of.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::place::{is_x32, placed, put, somewhere};
use crate::BYTES;

/// The runtime as valgrind needs it, if a file is an x32 program: valgrind starts none by itself, whatever the kernel can do.
///
/// Its launcher knows ELFCLASS32 with EM_386 only, and it has no call that carries the x32 bit
/// (`coregrind/launcher-linux.c`, `coregrind/m_syswrap/syswrap-amd64-linux.c`). It reads the symbols of a file only once a
/// writable part of the file is mapped (`coregrind/m_debuginfo/debuginfo.c`), and the runtime has none: this one has.
///
/// # Errors
/// The runtime can be written nowhere.
pub fn runtime_under_valgrind(file: &Path) -> io::Result<Option<PathBuf>> {
    static PLACED: OnceLock<PathBuf> = OnceLock::new();
    if !is_x32(file) {
        return Ok(None);
    }
    let name = concat!("x32run-", env!("CARGO_PKG_VERSION"), "-valgrind");
    placed(&PLACED, || somewhere(|folder| put(folder, name, &with_data_in_file(BYTES), 0o755)))
}

/// The runtime with a page of its writable segment in the file, at its end: zeros, as the kernel would give it
/// (System V ABI, program header: `p_offset` and `p_filesz` of the `PT_LOAD` that may be written).
fn with_data_in_file(runtime: &[u8]) -> Vec<u8> {
    const PAGE: usize = 4096;
    const HEADER: usize = 56;
    let word = |bytes: &[u8], at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or(0);
    let mut bytes = runtime.to_vec();
    bytes.resize(bytes.len().next_multiple_of(PAGE) + PAGE, 0);
    let offset = (bytes.len() - PAGE) as u64;
    let (first, count) = (word(runtime, 32) as usize, usize::from(runtime[56]));
    for header in (0..count).map(|number| first + HEADER * number) {
        // PT_LOAD, readable and writable.
        if bytes[header..header + 8] == [1, 0, 0, 0, 6, 0, 0, 0] {
            bytes[header + 8..header + 16].copy_from_slice(&offset.to_le_bytes());
            bytes[header + 32..header + 40].copy_from_slice(&(PAGE as u64).to_le_bytes());
        }
    }
    bytes
}
