//! The measured core: chosen once for a campaign, and locked, so that no two campaigns measure on one core.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use widthwise_machine::topology::{choose_core, Topology};

/// A core that no other campaign on this machine measures on, until dropped.
#[derive(Debug)]
pub struct CoreLock {
    /// The CPU that runs are pinned to.
    pub cpu: u32,
    /// Why it is not locked: another campaign may measure on it at the same time.
    pub unlocked: Option<String>,
    _file: Option<File>,
}

/// Takes the best core that is free (`busy` CPUs are used by others), or waits for one: as long as `wait` is true, which is asked
/// before each wait whether it is the first. Nothing if this process may use no core.
pub fn take(
    topology: &Topology,
    busy: &BTreeSet<u32>,
    wait: &mut dyn FnMut(bool) -> bool,
) -> Option<CoreLock> {
    take_in(&folder(["/run/lock", "/tmp"].map(Path::new)), topology, busy, wait)
}

fn take_in(
    folder: &Path,
    topology: &Topology,
    busy: &BTreeSet<u32>,
    wait: &mut dyn FnMut(bool) -> bool,
) -> Option<CoreLock> {
    let mut is_first = true;
    loop {
        let mut locked = BTreeSet::new();
        // Each refusal rules a core out, so the loop ends.
        while let Some(cpu) = choose_core(topology, busy, &locked) {
            let path = folder.join(format!("widthwise-cpu{cpu}.lock"));
            match try_lock(&path) {
                Ok(Some(file)) => return Some(CoreLock { cpu, unlocked: None, _file: Some(file) }),
                Ok(None) => locked.insert(cpu),
                // Measuring without a lock is better than not measuring, and on one core better than on any.
                Err(error) => {
                    let unlocked = Some(format!("{}: {error}", path.display()));
                    return Some(CoreLock { cpu, unlocked, _file: None });
                }
            };
        }
        if locked.is_empty() || !wait(is_first) {
            return None;
        }
        is_first = false;
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// `None` if another campaign holds the lock. The file is never removed: otherwise a second lock could be
/// taken on the same core.
fn try_lock(path: &Path) -> std::io::Result<Option<File>> {
    let file = match File::options().create(true).append(true).open(path) {
        Ok(file) => {
            // The file serves the campaigns of every user of this machine.
            let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
            file
        }
        // Another user's file in a sticky folder (fs.protected_regular): read access suffices for a lock.
        Err(_) => File::open(path)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The first folder that every user can write, so that all of them, root among them, agree on it; independent of TMPDIR.
/// `/run/lock` is one in Debian; systemd's own setting leaves it to root (tmpfiles.d/legacy.conf).
fn folder<const N: usize>(candidates: [&Path; N]) -> PathBuf {
    const OTHERS_WRITE: u32 = 0o002;
    let is_open = |path: &&Path| {
        path.metadata().is_ok_and(|found| found.is_dir() && found.permissions().mode() & OTHERS_WRITE != 0)
    };
    candidates
        .into_iter()
        .find(is_open)
        .or(candidates.last().copied())
        .unwrap_or(Path::new("/tmp"))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/stat"), "cpu0 1\ncpu1 1\n").unwrap();
        Topology::from_sysfs(folder.path())
    }

    #[test]
    fn locks_are_in_a_folder_that_every_user_can_write() {
        let root = tempfile::tempdir().unwrap();
        let [closed, open] = [("closed", 0o755), ("open", 0o1777)].map(|(name, mode)| {
            let folder = root.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
            folder
        });
        assert_eq!(folder([&closed, &open]), open);
        assert_eq!(folder([&open, &closed]), open);
        assert_eq!(folder([&root.path().join("nowhere"), &closed]), closed);
    }

    #[test]
    fn two_campaigns_have_two_cores_and_without_a_lock_the_reason_is_there() {
        let root = tempfile::tempdir().unwrap();
        let take = |folder: &Path| take_in(folder, &topology(), &BTreeSet::new(), &mut |_| false).unwrap();
        let locks = [take(root.path()), take(root.path())];
        assert!(locks.iter().all(|lock| lock.unlocked.is_none()), "{locks:?}");
        assert_ne!(locks[0].cpu, locks[1].cpu);
        let without = take(&root.path().join("nowhere"));
        assert!(without.unlocked.unwrap().contains("nowhere"));
    }
}
