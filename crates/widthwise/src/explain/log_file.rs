//! Heap logs on disk: mapped, not read into memory; those of a campaign are unpacked into a file without a name first.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};
use widthwise_anatomy::heap::{LogError, LogFile};

use crate::failure::Failure;
use crate::output::short;

/// What zstd files begin with (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The header of a log.
const HEADER: usize = 4096;
/// Bytes that are unpacked at once.
const STEP: usize = 65536;
/// Pages that hold zeros alone take no room on the disk.
const PAGE: usize = 4096;
/// The unpacked log may take this share of what is free where it is put.
const SHARE_OF_ROOM: u64 = 2;

/// The used part of a log, as if it were in memory.
#[derive(Debug)]
pub enum LogBytes {
    /// The system reads it when it is looked at, and may forget it again.
    Mapped(Mmap),
    /// Too short for a mapping.
    Short(Vec<u8>),
}

impl Deref for LogBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            LogBytes::Mapped(map) => map,
            LogBytes::Short(bytes) => bytes,
        }
    }
}

/// Opens a log. `None`: the file does not begin as one of ours. `progress` gets the bytes unpacked so far and the bytes in all.
///
/// # Errors
/// It cannot be read, is no whole zstd file, or unpacks to more than there is room for.
pub fn open(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<LogBytes>, Failure> {
    let failed = |error: io::Error| Failure::request(format!("{}: {error}", short(path)));
    let mut file = File::open(path).map_err(failed)?;
    let mut start = [0; HEADER];
    let length = fill(&mut file, &mut start).map_err(failed)?;
    let start = &start[..length];
    if LogFile::is_one(start) {
        return match LogFile::used_bytes(start) {
            Ok(used) => map(&file, used).map(Some).map_err(failed),
            // Its reader says what is wrong with it.
            Err(_) => Ok(Some(LogBytes::Short(start.to_vec()))),
        };
    }
    if !start.starts_with(&ZSTD) {
        return Ok(None);
    }
    file.rewind().map_err(failed)?;
    unpack(path, file, progress)
}

/// Fills the buffer as far as the file has bytes.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Maps what is used of a log, which may be much shorter than the file.
fn map(file: &File, used: u64) -> io::Result<LogBytes> {
    let length = file.metadata()?.len().min(used);
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(LogBytes::Short(Vec::new()));
    }
    // SAFETY: a program that is still being recorded may write to its log meanwhile. It writes to chunks that were empty, and
    // never makes the file shorter than what is used of it; readers take no byte for granted.
    unsafe { MmapOptions::new().len(length).map(file) }.map(LogBytes::Mapped)
}

/// Unpacks a log into a file without a name, which ends with this process.
fn unpack(path: &Path, file: File, progress: &mut dyn FnMut(u64, u64)) -> Result<Option<LogBytes>, Failure> {
    let failed = |error: io::Error| Failure::request(format!("{}: {error}", short(path)));
    let packed_bytes = file.metadata().map_err(failed)?.len();
    let mut packed = zstd::Decoder::with_buffer(BufReader::new(file)).map_err(failed)?;
    let mut step = vec![0; STEP];
    let length = fill(&mut packed, &mut step[..HEADER]).map_err(failed)?;
    if !LogFile::is_one(&step[..length]) {
        return Ok(None);
    }
    let used = match LogFile::used_bytes(&step[..length]) {
        Ok(used) => used,
        Err(LogError::NoHeader(_)) => length as u64,
        Err(error) => return Err(Failure::request(format!("{} {error}", short(path)))),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (place, mut unpacked) = match tempfile::tempfile_in(folder) {
        Ok(file) => (folder.to_owned(), file),
        Err(_) => (std::env::temp_dir(), tempfile::tempfile().map_err(failed)?),
    };
    let room = free_bytes(&unpacked).map_err(failed)? / SHARE_OF_ROOM;
    let (mut done, mut written, mut length) = (0, 0, length);
    while length > 0 {
        done += length as u64;
        if done > used {
            let text = format!("{}: unpacks to more than the {used} bytes that its header says", short(path));
            return Err(Failure::request(text));
        }
        written += write_sparse(&mut unpacked, &step[..length]).map_err(failed)?;
        if written > room {
            return Err(Failure::request(format!(
                "{}: unpacks to more than {room} bytes, half of what is free in {}; name a folder with more room by TMPDIR",
                short(path),
                place.display()
            )));
        }
        let read = packed.get_mut().stream_position().map_err(failed)?;
        progress(read, packed_bytes);
        length = fill(&mut packed, &mut step).map_err(failed)?;
    }
    unpacked.set_len(done).map_err(failed)?;
    map(&unpacked, used).map(Some).map_err(failed)
}

/// Writes the pages that are not zeros alone; gives back how many bytes these are.
fn write_sparse(file: &mut File, bytes: &[u8]) -> io::Result<u64> {
    let mut written = 0;
    for page in bytes.chunks(PAGE) {
        if page.iter().all(|byte| *byte == 0) {
            file.seek(SeekFrom::Current(page.len() as i64))?;
        } else {
            file.write_all(page)?;
            written += page.len() as u64;
        }
    }
    Ok(written)
}

/// What a user may still write to the file system of a file.
fn free_bytes(file: &File) -> io::Result<u64> {
    // SAFETY: zeros are a value of it, and the call fills it in.
    let mut system: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both live as long as the call.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &mut system) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}
