//! How programs are kept in the page cache: all in the same way.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// So much is read at a time: the kernel cuts longer requests off (mm/readahead.c, force_page_cache_ra).
const CHUNK: u64 = 64 << 10;
/// The start of a larger program is a small part of its run, and reading it takes long.
const LARGEST: u64 = 256 << 20;

/// Reads programs into the page cache anew, in single pages.
///
/// What a start costs depends on how the file came into the cache. A file that was written in large pieces, as `cp` does, is
/// kept in large folios, which are mapped faster than the single pages of a linker's output (mm/filemap.c,
/// filemap_map_pages): 36 µs of 0.4 ms for a static program. That would be taken for a difference between variants.
///
/// Pages that are in use stay as they are, and files that cannot be read: nothing fails.
pub(crate) fn read_anew<'a>(programs: impl Iterator<Item = &'a Path>) {
    for program in programs.collect::<BTreeSet<_>>() {
        // A program may be executable and not readable.
        let _ = read_one_anew(program);
    }
}

fn read_one_anew(program: &Path) -> io::Result<()> {
    let metadata = program.metadata()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Ok(());
    }
    let mut file = File::open(program)?;
    // Pages that were not written to the disk yet are not dropped.
    file.sync_all()?;
    advise(&file, 0, 0, libc::POSIX_FADV_DONTNEED);
    for chunk in 0..metadata.len().div_ceil(CHUNK) {
        advise(&file, chunk * CHUNK, CHUNK, libc::POSIX_FADV_WILLNEED);
    }
    // Until all of it has arrived.
    io::copy(&mut file, &mut io::sink())?;
    Ok(())
}

fn advise(file: &File, from: u64, length: u64, advice: libc::c_int) {
    // SAFETY: an open descriptor and three numbers. Advice that is not taken changes nothing.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), from as libc::off_t, length as libc::off_t, advice) };
}
