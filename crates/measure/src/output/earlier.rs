//! What was in the files before a run: a file that the run leaves as it is was written by an earlier one.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use widthwise_experiment::model::OutputCheck;

use widthwise_proc::clock;

/// A kernel's timestamps advance by its ticks, of 10 ms at most. A file that was changed later than this from now has
/// its times from another clock.
const MOST_WAIT: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_micros(500);

/// Files as they were before a run.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    states: BTreeMap<PathBuf, State>,
}

/// What every change of a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Nobody can set this time, and any other change changes it, too.
    changed: (i64, i64),
}

impl Earlier {
    /// The files that are compared; a run follows.
    pub fn checked(check: &OutputCheck, directory: &Path) -> Earlier {
        Earlier::of(Earlier::checked_files(check, directory))
    }

    /// The paths of the files that are compared.
    pub fn checked_files(check: &OutputCheck, directory: &Path) -> Vec<PathBuf> {
        let files = check.files.iter().filter(|_| !check.off);
        files.map(|file| directory.join(file)).collect()
    }

    /// These files; a run follows. Waits for the next tick if one of them was changed in the present one: what the run
    /// writes has another time then.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Earlier {
        let known = paths.into_iter().filter_map(|path| state(&path).map(|state| (path, state)));
        let mut states: BTreeMap<PathBuf, State> = known.collect();
        // Some file systems keep whole seconds: such a time does not tell two writes apart.
        states.retain(|_, state| state.changed.1 != 0);
        if let Some(last) = states.values().map(|state| state.changed).max() {
            let mut waited = Duration::ZERO;
            while clock::of_files() <= last && waited < MOST_WAIT {
                std::thread::sleep(PAUSE);
                waited += PAUSE;
            }
            let now = clock::of_files();
            states.retain(|_, state| state.changed < now);
        }
        Earlier { states }
    }

    /// Whether the file is still what it was before the run.
    pub fn has(&self, path: &Path) -> bool {
        self.states.get(path).is_some_and(|before| state(path) == Some(*before))
    }
}

/// None for what is no file, such as a terminal: it is not changed by writing.
fn state(path: &Path) -> Option<State> {
    let data = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(State {
        device: data.dev(),
        inode: data.ino(),
        size: data.size(),
        modified: (data.mtime(), data.mtime_nsec()),
        changed: (data.ctime(), data.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_written_anew_with_the_same_bytes_at_once_is_not_the_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, "same").unwrap();
        for _ in 0..20 {
            let earlier = Earlier::of([path.clone()]);
            assert!(earlier.has(&path));
            std::fs::write(&path, "same").unwrap();
            assert!(!earlier.has(&path));
        }
    }

    #[test]
    fn a_file_that_was_not_there_or_is_gone_is_no_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let before = Earlier::of([path.clone()]);
        std::fs::write(&path, "new").unwrap();
        assert!(!before.has(&path));
        let before = Earlier::of([path.clone()]);
        std::fs::remove_file(&path).unwrap();
        assert!(!before.has(&path));
    }
}
