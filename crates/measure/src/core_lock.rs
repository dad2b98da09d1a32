//! The measured core: chosen once for a campaign, and locked, so that no two campaigns measure on one core.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use widthwise_machine::topology::{choose_core, Topology};

/// A core that no other campaign on this machine measures on, until dropped.
#[derive(Debug)]
pub struct CoreLock {
    /// The CPU that runs are pinned to.
    pub cpu: u32,
    _file: File,
}

/// Takes the best core that is free (`busy` CPUs are used by others), or reports through `say` and waits for
/// one.
pub fn take(topology: &Topology, busy: &BTreeSet<u32>, say: &mut dyn FnMut(&str)) -> Option<CoreLock> {
    let mut reported = false;
    loop {
        let mut locked = BTreeSet::new();
        // Each refusal rules a core out, so the loop ends.
        while let Some(cpu) = choose_core(topology, busy, &locked) {
            match try_lock(cpu) {
                Ok(Some(file)) => return Some(CoreLock { cpu, _file: file }),
                Ok(None) => locked.insert(cpu),
                // No lock file can be made: measuring without a lock is better than not measuring.
                Err(_) => return None,
            };
        }
        if locked.is_empty() {
            return None;
        }
        if !reported {
            say("every core is being measured on by another campaign: waiting for one to end");
            reported = true;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// `None` if another campaign holds the lock. The file is never removed: otherwise a second lock could be
/// taken on the same core.
fn try_lock(cpu: u32) -> std::io::Result<Option<File>> {
    let path = folder().join(format!("widthwise-cpu{cpu}.lock"));
    let file = match File::options().create(true).append(true).open(&path) {
        Ok(file) => {
            // The file serves the campaigns of every user of this machine.
            let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
            file
        }
        // Another user's file in a sticky folder (fs.protected_regular): read access suffices for a lock.
        Err(_) => File::open(&path)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The same folder for every user of the machine, independent of TMPDIR.
fn folder() -> PathBuf {
    ["/run/lock", "/tmp"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_dir())
        .unwrap_or_else(|| "/tmp".into())
}
