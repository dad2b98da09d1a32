//! A lock for processes that share one cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::failure::{system, DebianError};

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

    pub fn own(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), DebianError> {
        match self.flock(libc::LOCK_EX | libc::LOCK_NB) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                say(&format!("waiting: {} by another process", self.busy));
                self.flock(libc::LOCK_EX)
            }
            other => other,
        }
        .map_err(|error| system("lock", &self.path, error))
    }

    /// Allows other processes to read at the same time.
    pub fn share(&mut self) -> Result<(), DebianError> {
        self.flock(libc::LOCK_SH).map_err(|error| system("lock", &self.path, error))
    }

    fn flock(&self, operation: libc::c_int) -> io::Result<()> {
        loop {
            // SAFETY: flock(2) takes a descriptor, which `self.file` keeps open, and touches no memory of
            // ours.
            if unsafe { libc::flock(self.file.as_raw_fd(), operation) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
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
        let (tell, told) = std::sync::mpsc::channel();
        let second = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut say = |line: &str| tell.send(line.to_owned()).unwrap();
                Lock::take(&path, "the index is in use", &mut say).map(drop)
            }
        });
        assert_eq!(told.recv().unwrap(), "waiting: the index is in use by another process");
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
