//! The lock of a campaign: one process measures it at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::error::ArchiveError;

/// The locked file. It is never removed: otherwise two processes could lock two files of one name.
pub(crate) const FILE: &str = "campaign.lock";

/// An exclusive lock on a campaign's folder, held until it is dropped or the process ends in any way.
///
/// `flock(2)` locks belong to the open file, which is closed on exec, so a measured program that outlives a killed
/// widthwise does not hold the lock.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Closing alone would leave the lock to a child that another thread forked and that has not reached its exec;
    /// unlocking releases it for every copy of the descriptor.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the lock, and writes this process's id into the file for other processes.
    pub(crate) fn take(folder: &Path) -> Result<Lock, ArchiveError> {
        let path = folder.join(FILE);
        let failed = |error| ArchiveError::system(folder, &path, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut words = String::new();
                // Before the other process has written its id, the error has none.
                let pid = match Read::by_ref(&mut file).take(32).read_to_string(&mut words) {
                    Ok(_) => words.trim().parse().ok(),
                    Err(_) => None,
                };
                return Err(ArchiveError::Locked { folder: folder.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Lock { file })
    }
}
