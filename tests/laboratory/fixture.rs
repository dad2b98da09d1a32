//! What several tests read and none changes: made once in a process, by the first test that needs it, and removed at the
//! process's end.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::Laboratory;

/// A folder for a `static`.
pub struct Fixture(OnceLock<PathBuf>);

impl Fixture {
    pub const fn new() -> Fixture {
        Fixture(OnceLock::new())
    }

    /// The folder as `make` left it. A test has a laboratory of its own meanwhile: one that waits for the machine here would
    /// wait for those that wait for the folder.
    pub fn folder(&self, _own: &Laboratory, make: impl FnOnce(&Laboratory)) -> &Path {
        self.0.get_or_init(|| {
            let made = Laboratory::new();
            make(&made);
            remove_at_exit(made.keep())
        })
    }
}

/// Values of a `static` are not dropped.
fn remove_at_exit(folder: PathBuf) -> PathBuf {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    extern "C" fn remove() {
        for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if folders.is_empty() {
        // SAFETY: the function does not panic, and uses nothing that ends before it.
        assert_eq!(unsafe { libc::atexit(remove) }, 0);
    }
    folders.push(folder.clone());
    folder
}
