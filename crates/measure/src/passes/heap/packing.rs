//! A heap log as a campaign stores it: compressed, and only the part that the recorder used.
//! `runtime/heap/log.h` describes the format.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// zstd's own default: logs of a campaign are read as often as they are written.
const COMPRESSION: i32 = 3;
const MAGIC: &[u8] = b"\x89WWHEAP\n";
/// Bytes before the first chunk.
const HEADER: usize = 4096;
/// The offset in the header of the number of claimed chunks.
const CHUNKS: usize = 20;
const CHUNK: usize = 65536;
/// The beginning of a chunk that describes a process.
const PROCESS_MAGIC: [u8; 4] = *b"PROC";
const PROCESS_NUMBER: usize = 8;

/// Writes the header and the claimed chunks of the log `from` to `to`, without the unused reserved space.
/// Returns the numbers of the processes that wrote to the log, or `None` if it was cancelled and `to` is
/// incomplete.
///
/// # Errors
/// One of the files cannot be read or written.
pub fn pack(from: &Path, to: &Path, stops: &dyn Fn() -> bool) -> io::Result<Option<BTreeSet<u32>>> {
    let mut log = File::open(from)?;
    let mut packed = zstd::Encoder::new(File::create(to)?, COMPRESSION)?;
    let mut header = Vec::new();
    Read::by_ref(&mut log).take(HEADER as u64).read_to_end(&mut header)?;
    packed.write_all(&header)?;
    let chunks = if header.starts_with(MAGIC) { number(&header, CHUNKS) } else { 0 };
    let mut processes = BTreeSet::new();
    let mut chunk = Vec::with_capacity(CHUNK);
    for _ in 0..chunks {
        if stops() {
            return Ok(None);
        }
        chunk.clear();
        Read::by_ref(&mut log).take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        if chunk.starts_with(&PROCESS_MAGIC) {
            processes.insert(number(&chunk, PROCESS_NUMBER));
        }
        packed.write_all(&chunk)?;
    }
    packed.finish()?.flush()?;
    Ok(Some(processes))
}

fn number(bytes: &[u8], offset: usize) -> u32 {
    let mut number = [0; 4];
    if let Some(found) = bytes.get(offset..offset + 4) {
        number.copy_from_slice(found);
    }
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// A log of three used chunks, one of them never written to, in a file of 256 GiB.
    fn log(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("log");
        let file = File::create(&path).expect("a file");
        file.set_len(256 << 30).expect("a sparse file");
        file.write_all_at(MAGIC, 0).expect("a header");
        file.write_all_at(&3u32.to_le_bytes(), CHUNKS as u64).expect("a header");
        let process = [&PROCESS_MAGIC[..], &[0; 4], &77u32.to_le_bytes()].concat();
        file.write_all_at(&process, HEADER as u64).expect("a process");
        file.write_all_at(b"CHNK", (HEADER + 2 * CHUNK) as u64).expect("a chunk");
        path
    }

    #[test]
    fn only_the_used_chunks_of_a_log_are_kept_and_its_processes_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (log(folder.path()), folder.path().join("packed"));
        let processes = pack(&from, &to, &|| false).expect("two files");
        assert_eq!(processes, Some(BTreeSet::from([77])));
        let whole = zstd::decode_all(File::open(&to).expect("a file")).expect("a whole file");
        assert_eq!(whole.len(), HEADER + 3 * CHUNK);
        assert!(whole.starts_with(MAGIC) && whole[HEADER + 2 * CHUNK..].starts_with(b"CHNK"));
    }

    #[test]
    fn a_log_that_claims_missing_chunks_keeps_the_existing_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (log(folder.path()), folder.path().join("packed"));
        let file = File::options().write(true).open(&from).expect("the log");
        file.write_all_at(&u32::MAX.to_le_bytes(), CHUNKS as u64).expect("a header");
        file.set_len((HEADER + 2 * CHUNK) as u64).expect("a shorter file");
        assert_eq!(pack(&from, &to, &|| false).expect("two files"), Some(BTreeSet::from([77])));
        let whole = zstd::decode_all(File::open(&to).expect("a file")).expect("a whole file");
        assert_eq!(whole.len(), HEADER + 2 * CHUNK);
    }

    #[test]
    fn packing_can_be_cancelled() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (log(folder.path()), folder.path().join("packed"));
        assert_eq!(pack(&from, &to, &|| true).expect("two files"), None);
    }
}
