//! The folder of runs that want a fresh working directory.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the names of such folders begin with.
const PREFIX: &str = "work-";

/// A folder of one session, until dropped. Other campaigns may be measured at the same time, in containers and on hosts whose
/// process numbers are ours, too: what tells that a folder is in use is the lock on it.
#[derive(Debug)]
pub struct RunsFolder {
    folder: PathBuf,
    /// Locked; none where folders cannot be (NFS): what is left there by killed processes stays.
    _lock: Option<File>,
}

impl RunsFolder {
    /// Makes one in the folder of campaigns. Its name has the same length in all of them.
    pub fn new(root: &Path) -> Result<RunsFolder> {
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).rand_bytes(7).tempdir_in(root)?.keep();
            let Ok(file) = File::open(&folder) else { continue };
            if file.lock().is_err() {
                return Ok(RunsFolder { folder, _lock: None });
            }
            // Another session may have taken it for a left one before it was locked.
            let is_there = folder
                .metadata()
                .and_then(|there| Ok(there.ino() == file.metadata()?.ino()))
                .unwrap_or(false);
            if is_there {
                return Ok(RunsFolder { folder, _lock: Some(file) });
            }
        }
    }

    /// The working directory. Each run removes it and makes it anew.
    pub fn path(&self) -> PathBuf {
        self.folder.join("run")
    }
}

impl Drop for RunsFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removes the folders of processes that were killed.
pub fn clear_away(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !is_one {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_its_own_folder_and_only_those_of_killed_ones_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let sessions = [(); 2].map(|()| RunsFolder::new(root.path()).unwrap());
        assert_ne!(sessions[0].path(), sessions[1].path());
        let lengths = sessions.each_ref().map(|session| session.path().as_os_str().len());
        assert_eq!(lengths[0], lengths[1]);
        let left = root.path().join("work-0000001");
        std::fs::create_dir_all(left.join("run")).unwrap();
        for session in &sessions {
            std::fs::create_dir(session.path()).unwrap();
        }
        clear_away(root.path());
        assert!(!left.exists());
        assert!(sessions.iter().all(|session| session.path().exists()));
        drop(sessions);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
