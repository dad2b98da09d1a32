//! How often valgrind has opened the log of each process: a program that is executed in the place of another one empties the log, and
//! says nothing of what was there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::passes::valgrind::LOG;

/// The bytes of an event before its name (inotify(7)).
const HEAD: usize = size_of::<libc::inotify_event>();

/// A watch on a folder. The kernel keeps its events until the end.
pub(super) struct LogOpenings {
    events: File,
}

impl LogOpenings {
    /// Begins to watch a folder.
    pub fn watch(folder: &Path) -> io::Result<LogOpenings> {
        let folder = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
        // SAFETY: no memory is given.
        let number = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and owned by nothing else.
        let events = unsafe { File::from_raw_fd(number) };
        // The kernel makes one event of equal ones that follow each other: those of closing are between two of opening.
        let wanted = libc::IN_OPEN | libc::IN_CLOSE_WRITE;
        // SAFETY: a valid descriptor and a valid C string.
        if unsafe { libc::inotify_add_watch(number, folder.as_ptr(), wanted) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(LogOpenings { events })
    }

    /// How often the log of each process was opened until now.
    pub fn end(mut self) -> io::Result<BTreeMap<u32, u32>> {
        let (mut times, mut bytes) = (BTreeMap::new(), vec![0; 1 << 16]);
        loop {
            match self.events.read(&mut bytes) {
                Ok(read) => take(&bytes[..read], &mut times)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(times),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Takes whole events.
fn take(mut bytes: &[u8], times: &mut BTreeMap<u32, u32>) -> io::Result<()> {
    while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
        let word = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or(0);
        let (mask, length) = (word(4), word(12) as usize);
        if mask & libc::IN_Q_OVERFLOW != 0 {
            return Err(io::Error::other("the kernel had no room for all events of its files"));
        }
        let (name, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        let name = String::from_utf8_lossy(name);
        let process = name.trim_end_matches('\0').strip_prefix(LOG).and_then(|number| number.parse().ok());
        if let (Some(process), true) = (process, mask & libc::IN_OPEN != 0) {
            *times.entry(process).or_default() += 1;
        }
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_opening_of_a_log_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let openings = LogOpenings::watch(folder.path()).unwrap();
        for name in ["log.7", "log.7", "log.12", "counts.7"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        assert_eq!(openings.end().unwrap(), BTreeMap::from([(7, 2), (12, 1)]));
    }
}
