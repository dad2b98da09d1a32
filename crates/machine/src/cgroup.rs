//! Control groups, version 2: whether this process may make groups of its own, and what they can count.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::boot_options;
use crate::sysfs::text;
use crate::unavailable::{outcome, Unavailable};

/// What control groups can do here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Where version 2 is mounted; absent if it is not.
    pub mount: Option<PathBuf>,
    /// This process's own group, as a folder.
    pub group: Option<PathBuf>,
    /// The controllers in it.
    pub controllers: Vec<String>,
    /// Whether a group can be made below it, found out by making one.
    #[serde(with = "outcome")]
    pub groups: Result<(), Unavailable>,
    /// Whether such a group counts memory (`memory.peak`).
    #[serde(with = "outcome")]
    pub memory: Result<(), Unavailable>,
}

impl Default for Cgroup {
    fn default() -> Cgroup {
        let unknown = || Err(Unavailable::permanent("unknown"));
        Cgroup { mount: None, group: None, controllers: Vec::new(), groups: unknown(), memory: unknown() }
    }
}

// systemd's own switch to the one hierarchy in which version 2 has every controller (kernel-command-line(7)).
const UNIFY: &str = "systemd.unified_cgroup_hierarchy=1";
const DELEGATE: &str = "systemd-run --user --scope -p Delegate=yes widthwise …";

/// What control groups can do for this process.
pub fn look() -> Cgroup {
    look_at(Path::new("/"), &|group| {
        // A name that no other process of ours uses at the same time.
        let trial = group.join(format!("widthwise-doctor-{}", std::process::id()));
        std::fs::create_dir(&trial)?;
        std::fs::remove_dir(&trial)
    })
}

/// As [`look`], for the tree under `root`; `try_to_make` makes a group and removes it again.
fn look_at(root: &Path, try_to_make: &dyn Fn(&Path) -> std::io::Result<()>) -> Cgroup {
    let mounts = text(root.join("proc/self/mountinfo")).unwrap_or_default();
    let Some(mount) = mount_point(&mounts) else {
        let none =
            Unavailable::with_fix("control groups version 2 are not mounted", boot_options::boot_with(UNIFY));
        return Cgroup { groups: Err(none.clone()), memory: Err(none), ..Cgroup::default() };
    };
    let membership = text(root.join("proc/self/cgroup")).unwrap_or_default();
    let below = membership.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let group = root.join(mount.trim_start_matches('/')).join(below.trim_start_matches('/'));
    let controllers: Vec<String> = text(group.join("cgroup.controllers"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(str::to_string)
        .collect();
    let groups = try_to_make(&group).map_err(|error| {
        Unavailable::with_fix(format!("no group can be made in {}: {error}", group.display()), DELEGATE)
    });
    let memory = match &groups {
        Err(unavailable) => Err(unavailable.clone()),
        Ok(()) if controllers.iter().any(|name| name == "memory") => Ok(()),
        Ok(()) if memory_is_version_1(&membership) => Err(Unavailable::with_fix(
            "memory is counted by control groups version 1 here",
            boot_options::boot_with(UNIFY),
        )),
        Ok(()) => {
            Err(Unavailable::with_fix("the memory controller is not handed down to this group", DELEGATE))
        }
    };
    Cgroup { mount: Some(mount.into()), group: Some(group), controllers, groups, memory }
}

/// Where version 2 is mounted: `… - cgroup2 …` in mountinfo (proc(5)); also `/sys/fs/cgroup/unified`, beside version 1.
fn mount_point(mountinfo: &str) -> Option<&str> {
    mountinfo.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        file_system.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    })
}

/// Whether the memory controller belongs to a hierarchy of version 1: `4:memory:/…` in `/proc/self/cgroup`.
fn memory_is_version_1(membership: &str) -> bool {
    membership
        .lines()
        .filter_map(|line| line.split(':').nth(1))
        .any(|controllers| controllers.split(',').any(|name| name == "memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_MOUNTS: &str = "36 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                                 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const UNIFIED_MOUNTS: &str =
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn tree(mounts: &str, membership: &str, group: &str, controllers: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("proc/self/mountinfo", mounts);
        write("proc/self/cgroup", membership);
        write(&format!("{group}/cgroup.controllers"), controllers);
        root
    }

    fn allowed(_: &Path) -> std::io::Result<()> {
        Ok(())
    }

    #[test]
    fn with_version_1_controllers_groups_do_not_count_memory() {
        let root = tree(HYBRID_MOUNTS, "4:memory:/a\n0::/\n", "sys/fs/cgroup/unified", "hugetlb\n");
        let cgroup = look_at(root.path(), &allowed);
        assert_eq!(cgroup.mount.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(cgroup.groups, Ok(()));
        assert!(cgroup.memory.unwrap_err().fix.unwrap().contains("unified_cgroup_hierarchy=1"));
    }

    #[test]
    fn a_group_counts_memory_where_the_controller_is_delegated() {
        let root =
            tree(UNIFIED_MOUNTS, "0::/user.slice/a\n", "sys/fs/cgroup/user.slice/a", "cpu memory pids\n");
        let cgroup = look_at(root.path(), &allowed);
        assert_eq!((cgroup.groups, cgroup.memory), (Ok(()), Ok(())));
        let root = tree(UNIFIED_MOUNTS, "0::/user.slice/a\n", "sys/fs/cgroup/user.slice/a", "pids\n");
        let unavailable = look_at(root.path(), &allowed).memory.unwrap_err();
        assert_eq!(unavailable.fix.as_deref(), Some(DELEGATE));
    }

    #[test]
    fn without_permission_the_reason_is_the_systems_message() {
        let root = tree(UNIFIED_MOUNTS, "0::/\n", "sys/fs/cgroup", "memory\n");
        let refuse = |_: &Path| Err(std::io::Error::from_raw_os_error(libc::EACCES));
        let cgroup = look_at(root.path(), &refuse);
        assert!(cgroup.groups.unwrap_err().reason.contains("Permission denied"));
        assert!(cgroup.memory.is_err());
    }

    #[test]
    fn without_version_2_the_fix_is_named() {
        let root = tree("36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "", "x", "");
        let unavailable = look_at(root.path(), &allowed).groups.unwrap_err();
        assert_eq!(unavailable.reason, "control groups version 2 are not mounted");
    }
}
