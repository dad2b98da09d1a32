//! A lock for processes that share one cache.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{system, DebianError};

/// An flock(2) on a file, released when dropped or when the process ends.
pub struct Lock {
    file: File,
    path: PathBuf,
    busy: String,
}

impl Lock {
    /// Takes the lock exclusively; if another process holds it, reports that and waits.
    pub fn take(path: &Path, busy: &str, say: &mut dyn FnMut(&str)) -> Result<Lock, DebianError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|error| system("open", path, error))?;
        let mut lock = Lock { file, path: path.to_owned(), busy: busy.to_owned() };
        lock.own(say)?;
        Ok(lock)
    }

    /// Takes the lock exclusively again, after [`Lock::share`].
    pub fn own(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), DebianError> {
        match self.file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                say(&format!("waiting: {} by another process", self.busy));
                uninterrupted(|| self.file.lock())
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        }
        .map_err(|error| system("lock", &self.path, error))
    }

    /// Allows other processes to read at the same time. On Linux flock(2) changes the kind of a lock that is held.
    pub fn share(&mut self) -> Result<(), DebianError> {
        uninterrupted(|| self.file.lock_shared()).map_err(|error| system("lock", &self.path, error))
    }
}

/// Waits on, where a signal handler has interrupted the wait.
fn uninterrupted(wait: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_reports_what_it_waits_for() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let first = Lock::take(&path, "the index is in use", &mut |_: &str| {}).unwrap();
        let (tell, reported) = std::sync::mpsc::channel();
        let second = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut say = |line: &str| tell.send(line.to_owned()).unwrap();
                Lock::take(&path, "the index is in use", &mut say).map(drop)
            }
        });
        assert_eq!(reported.recv().unwrap(), "waiting: the index is in use by another process");
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
