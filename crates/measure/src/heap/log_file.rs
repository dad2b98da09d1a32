//! The log's file, made before a run: all processes of the run write to it, whatever limits they set for themselves.
//! `runtime/heap/log.h` describes the format.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The sizes that are tried, the largest first: some file systems have smaller files. The file is sparse.
const SIZES: [u64; 4] = [1 << 40, 1 << 36, 1 << 32, 1 << 30];
const MAGIC: &[u8; 8] = b"\x89WWHEAP\n";
const VERSION: u16 = 3;
const PAGE: u32 = 4096;
const CHUNK: u32 = 65536;

/// Makes an empty log whose size is reserved: later no limit on file sizes keeps a process from writing to it.
///
/// # Errors
/// The file cannot be made, or no size can be reserved for it.
pub fn create(path: &Path) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut reserved = Err(std::io::Error::other("no size was tried"));
    for size in SIZES {
        reserved = file.set_len(size).map(|()| size);
        if reserved.is_ok() {
            break;
        }
    }
    file.write_all(&header(reserved?))
}

/// `struct log_file`: no chunk is claimed, and widthwise has made it.
fn header(reserved: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(0u16.to_le_bytes());
    for number in [PAGE, CHUNK, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(reserved.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes
}
