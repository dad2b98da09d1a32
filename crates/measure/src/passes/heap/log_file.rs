//! The log's file, made before a run: all processes of the run write to it, under any limits they set for
//! themselves.
//! `runtime/heap/log.h` describes the format.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// The sizes to try, the largest first: some file systems have smaller files. The file is sparse.
const SIZES: [u64; 4] = [1 << 40, 1 << 36, 1 << 32, 1 << 30];

/// The log's layout, generated from `runtime/heap/log.h` by build.rs.
#[allow(dead_code)]
mod layout {
    include!(concat!(env!("OUT_DIR"), "/log.rs"));
}

/// Makes an empty log of reserved size, so that no later limit on file sizes stops a process from writing to
/// it.
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

/// The header of a log that widthwise has made and of which no chunk is claimed.
fn header(reserved: u64) -> [u8; layout::LogFile::SIZE] {
    let mut header = layout::LogFile {
        version: layout::LOG_VERSION as u16,
        page: layout::LOG_HEADER,
        chunk: layout::LOG_CHUNK,
        reserved,
        created: 1,
        ..layout::LogFile::ZERO
    };
    header.magic.copy_from_slice(layout::LOG_MAGIC);
    header.bytes()
}
