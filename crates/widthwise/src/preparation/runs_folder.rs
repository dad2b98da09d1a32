//! The folder of runs that want a fresh working directory.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the names begin with. Random characters follow, of one number in all campaigns: the length of a path can be in what a
/// program does.
const PREFIX: &str = "work-";
const RANDOM: usize = 7;
/// What the name of the lock file ends in.
const SUFFIX: &str = ".lock";

/// The working directory of one session, until dropped. Other campaigns may be measured at the same time, in containers and on
/// hosts whose process numbers are ours, too: what tells that a folder is in use is the lock on the file beside it.
#[derive(Debug)]
pub struct RunsFolder {
    folder: PathBuf,
    lock: PathBuf,
    /// Not locked where files cannot be: what a killed process leaves there stays.
    _locked: File,
}

impl RunsFolder {
    /// Takes one in the folder of campaigns. Each run removes it and makes it anew.
    pub fn new(root: &Path) -> Result<RunsFolder> {
        clear_away(root);
        loop {
            let named = tempfile::Builder::new()
                .prefix(PREFIX)
                .suffix(SUFFIX)
                .rand_bytes(RANDOM)
                .tempfile_in(root)?;
            let (file, lock) = named.keep().map_err(|kept| kept.error)?;
            let _ = file.lock();
            // Another session may have taken it for a left one before it was locked.
            let is_there = lock
                .symlink_metadata()
                .and_then(|there| Ok(there.ino() == file.metadata()?.ino()))
                .unwrap_or(false);
            if is_there {
                let folder = lock.with_extension("");
                return Ok(RunsFolder { folder, lock, _locked: file });
            }
        }
    }

    /// The working directory.
    pub fn path(&self) -> PathBuf {
        self.folder.clone()
    }
}

impl Drop for RunsFolder {
    fn drop(&mut self) {
        remove(&self.folder, &self.lock);
    }
}

/// Removes the folders of processes that were killed: those with a lock file of ours that nobody has locked.
fn clear_away(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(is_lock) {
            continue;
        }
        let lock = entry.path();
        // Ours are empty files.
        let is_ours = lock.symlink_metadata().is_ok_and(|lock| lock.is_file() && lock.len() == 0);
        let Some(file) = is_ours.then(|| File::open(&lock).ok()).flatten() else { continue };
        if file.try_lock().is_ok() {
            remove(&lock.with_extension(""), &lock);
        }
    }
}

/// Removes both. A folder that cannot be removed keeps its lock file: a later session tries again. A link is not followed.
fn remove(folder: &Path, lock: &Path) {
    let removed = std::fs::remove_dir_all(folder);
    if removed.is_ok() || removed.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let _ = std::fs::remove_file(lock);
    }
}

/// Whether a file's name is one that [`RunsFolder::new`] gives.
fn is_lock(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_its_own_folder_and_only_those_of_killed_ones_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("work-0000001");
        std::fs::create_dir_all(left.join("of-a-run")).unwrap();
        std::fs::write(root.path().join("work-0000001.lock"), "").unwrap();
        let first = RunsFolder::new(root.path()).unwrap();
        assert!(!left.exists());
        std::fs::create_dir(first.path()).unwrap();
        let second = RunsFolder::new(root.path()).unwrap();
        assert!(first.path().exists());
        assert_ne!(first.path(), second.path());
        assert_eq!(first.path().as_os_str().len(), second.path().as_os_str().len());
        drop([first, second]);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn folders_and_files_of_the_user_stay() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("notes"), "").unwrap();
        for name in ["work-laptop", "work-1234567", "work-abcdefg"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        std::fs::write(root.path().join("work-abcdefg.lock"), "not empty").unwrap();
        std::os::unix::fs::symlink(other.path(), root.path().join("work-7654321")).unwrap();
        std::fs::write(root.path().join("work-7654321.lock"), "").unwrap();
        drop(RunsFolder::new(root.path()).unwrap());
        for name in ["work-laptop", "work-1234567", "work-abcdefg", "work-abcdefg.lock"] {
            assert!(root.path().join(name).exists(), "{name}");
        }
        assert!(other.path().join("notes").exists());
    }
}
