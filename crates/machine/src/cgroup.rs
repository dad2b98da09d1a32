//! Control groups, version 2: whether this process may make groups of its own, and what they can count.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::boot_options;
use crate::sysfs::text;
use crate::unavailable::{outcome, Unavailable};

/// What control groups can do here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// For how many CPUs' time the group may run, itself and those around it (`cpu.max`; `cpu.cfs_quota_us` of version 1);
    /// absent without a limit.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// How many bytes of memory it may use, likewise (`memory.max`; `memory.limit_in_bytes` of version 1).
    #[serde(default)]
    pub memory_limit: Option<u64>,
}

impl Default for Cgroup {
    fn default() -> Cgroup {
        let unknown = || Err(Unavailable::permanent("unknown"));
        Cgroup {
            mount: None,
            group: None,
            controllers: Vec::new(),
            groups: unknown(),
            memory: unknown(),
            cpu_limit: None,
            memory_limit: None,
        }
    }
}

// systemd's own switch to the one hierarchy in which version 2 has every controller (kernel-command-line(7)).
const UNIFY: &str = "systemd.unified_cgroup_hierarchy=1";
const DELEGATE: &str = "systemd-run --user --scope -p Delegate=yes widthwise …";

/// A fix that needs systemd, where it manages the machine (sd_booted(3)): in a container it does not.
fn by_systemd(root: &Path, reason: impl Into<String>, fix: impl Into<String>) -> Unavailable {
    match root.join("run/systemd/system").is_dir() {
        true => Unavailable::with_fix(reason, fix),
        false => Unavailable::permanent(reason),
    }
}

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
    let membership = text(root.join("proc/self/cgroup")).unwrap_or_default();
    let Some(mount) = mount_point(&mounts) else {
        let none =
            by_systemd(root, "control groups version 2 are not mounted", boot_options::boot_with(UNIFY));
        let (cpu_limit, memory_limit) = limits_of_version_1(root, &mounts, &membership);
        return Cgroup {
            groups: Err(none.clone()),
            memory: Err(none),
            cpu_limit,
            memory_limit,
            ..Cgroup::default()
        };
    };
    let below = membership.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let group = root.join(mount.trim_start_matches('/')).join(below.trim_start_matches('/'));
    let controllers: Vec<String> = text(group.join("cgroup.controllers"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(str::to_string)
        .collect();
    let groups = try_to_make(&group).map_err(|error| {
        let reason = format!("no group can be made in {}: {error}", group.display());
        match error.kind() {
            std::io::ErrorKind::ReadOnlyFilesystem => Unavailable::permanent(reason),
            _ => by_systemd(root, reason, DELEGATE),
        }
    });
    let memory = match &groups {
        Err(unavailable) => Err(unavailable.clone()),
        Ok(()) if controllers.iter().any(|name| name == "memory") => Ok(()),
        Ok(()) if group_of_version_1(&membership, "memory").is_some() => Err(by_systemd(
            root,
            "memory is counted by control groups version 1 here",
            boot_options::boot_with(UNIFY),
        )),
        Ok(()) => Err(by_systemd(root, "the memory controller is not handed down to this group", DELEGATE)),
    };
    let folder = root.join(mount.trim_start_matches('/'));
    // A controller belongs to one version.
    let (cpu_of_1, memory_of_1) = limits_of_version_1(root, &mounts, &membership);
    let cpu_of_2 = least(&folder, &group, &|folder| cpus(&text(folder.join("cpu.max"))?)).map(thousandths);
    let memory_of_2 = least(&folder, &group, &|folder| text(folder.join("memory.max"))?.trim().parse().ok());
    Cgroup {
        cpu_limit: cpu_of_2.or(cpu_of_1),
        memory_limit: memory_of_2.or(memory_of_1),
        mount: Some(mount.into()),
        group: Some(group),
        controllers,
        groups,
        memory,
    }
}

/// The limits on CPU time (in CPUs) and memory (in bytes) where version 1 has these controllers. Without a limit the quota
/// is −1, and the memory the greatest number of whole pages (Documentation/scheduler/sched-bwc.rst, cgroup-v1/memory.rst).
fn limits_of_version_1(root: &Path, mountinfo: &str, membership: &str) -> (Option<f64>, Option<u64>) {
    /// Far above any machine's memory, below the greatest number of pages of any size.
    const UNLIMITED: u64 = 1 << 62;
    let number = |folder: &Path, file: &str| text(folder.join(file))?.trim().parse::<u64>().ok();
    let quota = |folder: &Path| {
        let thousands = number(folder, "cpu.cfs_quota_us")?.saturating_mul(1000);
        thousands.checked_div(number(folder, "cpu.cfs_period_us")?)
    };
    let memory = |folder: &Path| number(folder, "memory.limit_in_bytes").filter(|bytes| *bytes < UNLIMITED);
    let limit = |controller: &str, read: &dyn Fn(&Path) -> Option<u64>| {
        let mount = root.join(mount_of_version_1(mountinfo, controller)?.trim_start_matches('/'));
        let below = group_of_version_1(membership, controller)?;
        least(&mount, &mount.join(below.trim_start_matches('/')), read)
    };
    (limit("cpu", &quota).map(thousandths), limit("memory", &memory))
}

fn thousandths(number: u64) -> f64 {
    number as f64 / 1000.0
}

/// The least limit of a group and those around it; `read` gives none where a folder has none (Documentation/admin-guide/cgroup-v2.rst).
fn least(mount: &Path, group: &Path, read: &dyn Fn(&Path) -> Option<u64>) -> Option<u64> {
    let around = group.ancestors().take_while(|folder| folder.starts_with(mount));
    around.filter_map(read).min()
}

/// Thousandths of a CPU: the quota and the period of `cpu.max`, in microseconds.
fn cpus(text: &str) -> Option<u64> {
    let (quota, period) = text.split_once(' ')?;
    quota.parse::<u64>().ok()?.saturating_mul(1000).checked_div(period.parse().ok()?)
}

/// Where version 2 is mounted: `… - cgroup2 …` in mountinfo (proc(5)); also `/sys/fs/cgroup/unified`, beside version 1.
fn mount_point(mountinfo: &str) -> Option<&str> {
    mountinfo.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        file_system.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
    })
}

/// Where version 1 has this controller: `… - cgroup cgroup rw,cpu,cpuacct` in mountinfo.
fn mount_of_version_1<'a>(mountinfo: &'a str, controller: &str) -> Option<&'a str> {
    mountinfo.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let options = file_system.strip_prefix("cgroup ")?.rsplit(' ').next()?;
        options.split(',').any(|one| one == controller).then(|| mount.split(' ').nth(4))?
    })
}

/// This process's group in the hierarchy of version 1 that has this controller: `4:memory:/…` in `/proc/self/cgroup`.
fn group_of_version_1<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then_some(group)
    })
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
        std::fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
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
    fn the_least_limit_of_a_group_and_those_around_it_counts() {
        let root = tree(UNIFIED_MOUNTS, "0::/a/b\n", "sys/fs/cgroup/a/b", "cpu memory\n");
        let limits = || {
            let found = look_at(root.path(), &allowed);
            (found.cpu_limit, found.memory_limit)
        };
        assert_eq!(limits(), (None, None));
        let write = |name: &str, text: &str| {
            std::fs::write(root.path().join("sys/fs/cgroup").join(name), text).unwrap()
        };
        write("a/b/cpu.max", "max 100000\n");
        write("a/cpu.max", "50000 100000\n");
        write("a/b/memory.max", "1048576\n");
        write("a/memory.max", "4096000\n");
        assert_eq!(limits(), (Some(0.5), Some(1 << 20)));
    }

    #[test]
    fn limits_of_version_1_count_beside_version_2_and_without_it() {
        let cpu = "35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n";
        let membership = "5:memory:/a\n4:cpu,cpuacct:/a/b\n0::/\n";
        let version_1 = HYBRID_MOUNTS.lines().next().unwrap();
        for mounts in [format!("{cpu}{HYBRID_MOUNTS}"), format!("{cpu}{version_1}\n")] {
            let root = tree(&mounts, membership, "sys/fs/cgroup/unified", "hugetlb\n");
            let write = |name: &str, text: &str| {
                let file = root.path().join("sys/fs/cgroup").join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            };
            let limits = || {
                let found = look_at(root.path(), &allowed);
                (found.cpu_limit, found.memory_limit)
            };
            for group in ["a", "a/b"] {
                write(&format!("cpu,cpuacct/{group}/cpu.cfs_quota_us"), "-1\n");
                write(&format!("cpu,cpuacct/{group}/cpu.cfs_period_us"), "100000\n");
            }
            write("memory/a/memory.limit_in_bytes", "9223372036854771712\n");
            assert_eq!(limits(), (None, None));
            write("cpu,cpuacct/a/cpu.cfs_quota_us", "20000\n");
            write("memory/a/memory.limit_in_bytes", "1048576\n");
            assert_eq!(limits(), (Some(0.2), Some(1 << 20)), "{mounts}");
        }
    }

    #[test]
    fn in_a_container_no_command_helps() {
        let refuse = |_: &Path| Err(std::io::Error::from_raw_os_error(libc::EACCES));
        let root = tree(UNIFIED_MOUNTS, "0::/\n", "sys/fs/cgroup", "memory\n");
        assert_eq!(look_at(root.path(), &refuse).groups.unwrap_err().fix.as_deref(), Some(DELEGATE));
        let read_only = |_: &Path| Err(std::io::Error::from_raw_os_error(libc::EROFS));
        assert_eq!(look_at(root.path(), &read_only).groups.unwrap_err().fix, None);
        // No systemd.
        std::fs::remove_dir(root.path().join("run/systemd/system")).unwrap();
        assert_eq!(look_at(root.path(), &refuse).groups.unwrap_err().fix, None);
    }

    #[test]
    fn without_version_2_the_fix_is_named() {
        let root = tree("36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "", "x", "");
        let unavailable = look_at(root.path(), &allowed).groups.unwrap_err();
        assert_eq!(unavailable.reason, "control groups version 2 are not mounted");
    }
}
