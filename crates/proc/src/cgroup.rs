//! A control group for a campaign's programs, where one may be made. It ends a process tree atomically, and
//! limits programs that fork without end. Without it, process groups and a watch are a best effort.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Once;
use std::time::Duration;

/// Tasks that a run may have at once: far above any sane program, far below what harms a machine.
const MOST_TASKS: u32 = 8192;

/// The folders that were made; removed at the end.
#[derive(Debug, Default)]
pub struct Cgroup {
    unified: Option<PathBuf>,
    pids: Option<PathBuf>,
}

/// CPU time of every task that was ever in the group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl Usage {
    /// The CPU time since an earlier reading.
    pub fn since(self, before: Usage) -> Duration {
        (self.user + self.system).saturating_sub(before.user + before.system)
    }
}

impl Cgroup {
    /// Makes the groups that this machine and this user's rights allow; never fails.
    pub fn make() -> Cgroup {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = [("cgroup2", ""), ("cgroup", "pids"), ("cgroup", "memory")];
        let [unified, pids, memory] = places.map(|(kind, controller)| place(&mounts, &own, kind, controller));
        static LEFT_OVER: Once = Once::new();
        LEFT_OVER.call_once(|| {
            [&unified, &pids, &memory].into_iter().flatten().for_each(|folder| remove_left_over(folder));
        });
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("widthwise-{}-{number}", std::process::id());
        let unified = unified.map(|folder| folder.join(&name));
        let unified = unified.filter(|folder| fs::create_dir(folder).is_ok());
        let limit = |folder: &Path| fs::write(folder.join("pids.max"), MOST_TASKS.to_string()).is_ok();
        let limited = unified.as_deref().is_some_and(limit);
        let pids = pids
            .filter(|_| !limited)
            .map(|folder| folder.join(&name))
            .filter(|folder| fs::create_dir(folder).is_ok())
            .filter(|folder| limit(folder) || fs::remove_dir(folder).is_err());
        Cgroup { unified, pids }
    }

    /// What a program reached whose fork was refused. The kernel counts that in the program's own group, whichever of the groups
    /// that contain it has the limit (pids_can_fork, kernel/cgroup/pids.c): it is the smallest, if others have few tasks there.
    pub fn reached_limit(&self) -> String {
        let folders = self.unified.iter().chain(&self.pids).flat_map(|folder| folder.ancestors().skip(1));
        let limits = folders.filter_map(|folder| {
            let limit = fs::read_to_string(folder.join("pids.max")).ok()?.trim().parse::<u64>().ok()?;
            Some((limit, folder))
        });
        match limits.min_by_key(|(limit, _)| *limit) {
            Some((limit, folder)) if limit < u64::from(MOST_TASKS) => format!(
                "reached the limit of {limit} tasks at once, that of the control group {}",
                folder.display()
            ),
            Some((limit, folder)) => format!(
                "reached the limit of {MOST_TASKS} tasks at once, or that of {limit} of the control group {}",
                folder.display()
            ),
            None => format!("reached the limit of {MOST_TASKS} tasks at once"),
        }
    }

    /// The files that count the forks refused because of the limit.
    pub fn events(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.unified.iter().chain(&self.pids).map(|folder| folder.join("pids.events"))
    }

    /// The cgroup v2 folder in which programs are started.
    pub fn unified(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    /// Puts the launcher, and so every process that it starts, under the limit on tasks (v1 hierarchies).
    pub fn adopt(&self, launcher: u32) {
        if let Some(folder) = &self.pids {
            // Best effort: without it the time limit still ends a fork bomb.
            let _ = fs::write(folder.join("cgroup.procs"), launcher.to_string());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.unified.iter().chain(&self.pids).for_each(|folder| remove(folder));
    }
}

/// Removes a group. Tasks that have ended may still be exiting.
pub fn remove(folder: &Path) {
    for _ in 0..50 {
        if fs::remove_dir(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Removes the groups of campaigns that were killed: a campaign with the same process number could make none. The kernel removes no
/// group that has tasks.
fn remove_left_over(place: &Path) {
    let folders = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
    };
    let is_left_over = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.and_then(maker).is_some_and(|maker| maker == std::process::id() || has_ended(maker))
    };
    for folder in folders(place).filter(is_left_over) {
        // The launcher's groups of runs are below it.
        folders(&folder).for_each(|of_runs| _ = fs::remove_dir(of_runs));
        let _ = fs::remove_dir(folder);
    }
}

/// The number of the process that made a group of that name.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix("widthwise-")?.split_once('-')?.0.parse().ok()
}

/// Whether there is no process of that number, of any user.
fn has_ended(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: no pointers; signal 0 is none.
    let found = unsafe { libc::kill(pid, 0) };
    pid > 0 && found != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Our own folder in the hierarchy of that controller (cgroups v1).
pub fn own_place(controller: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    place(&mounts, &fs::read_to_string("/proc/self/cgroup").ok()?, "cgroup", controller)
}

/// Reads for how long CPU quotas have throttled tasks in our group and in the groups that contain it.
#[derive(Debug, Default)]
pub struct Throttling {
    files: Vec<PathBuf>,
}

impl Throttling {
    /// Finds the statistics of the quotas that apply here.
    pub fn find() -> Throttling {
        Throttling::of(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
    }

    /// Likewise of a process with that text in `/proc/PID/cgroup`.
    fn of(own: &str) -> Throttling {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut files = Vec::new();
        for (kind, controller) in [("cgroup2", ""), ("cgroup", "cpu")] {
            let Some(mut folder) = place(&mounts, own, kind, controller) else { continue };
            while folder.join("cgroup.procs").exists() {
                files.push(folder.join("cpu.stat"));
                if !folder.pop() {
                    break;
                }
            }
        }
        Throttling { files }
    }

    /// Nanoseconds until now, of each group, over all CPUs.
    pub fn read(&self) -> Vec<u64> {
        self.files.iter().map(|file| throttled(&fs::read_to_string(file).unwrap_or_default())).collect()
    }

    /// The longest of them since an earlier reading.
    pub fn since(&self, before: &[u64]) -> Duration {
        let passed = self.read().into_iter().zip(before).map(|(now, then)| now.saturating_sub(*then));
        Duration::from_nanos(passed.max().unwrap_or(0))
    }
}

/// Reads for how long the quotas of groups have throttled tasks that programs put themselves into: groups in which we are not.
#[derive(Debug)]
pub struct OwnQuotas {
    /// The statistics that are read already.
    known: BTreeSet<PathBuf>,
    /// By the text of `/proc/PID/cgroup`: what is read, what it was at first, and the time since.
    groups: BTreeMap<String, (Throttling, Vec<u64>, Duration)>,
}

impl OwnQuotas {
    /// Knows our own groups, whose quotas are read elsewhere.
    pub fn begin() -> OwnQuotas {
        OwnQuotas { known: Throttling::find().files.into_iter().collect(), groups: BTreeMap::new() }
    }

    /// Looks which group a process is in.
    pub fn find(&mut self, process: u32) {
        let Ok(own) = fs::read_to_string(format!("/proc/{process}/cgroup")) else { return };
        if self.groups.contains_key(&own) {
            return;
        }
        let mut throttling = Throttling::of(&own);
        throttling.files.retain(|file| self.known.insert(file.clone()));
        let before = throttling.read();
        self.groups.insert(own, (throttling, before, Duration::ZERO));
    }

    /// The time until now, over all groups. That of a group that is gone remains.
    pub fn read(&mut self) -> Duration {
        for (throttling, before, passed) in self.groups.values_mut() {
            *passed = throttling.since(before).max(*passed);
        }
        self.groups.values().map(|(_, _, passed)| *passed).sum()
    }
}

/// `throttled_usec` of cgroup v2, `throttled_time` in nanoseconds of v1 (Documentation/scheduler/sched-bwc.rst).
fn throttled(text: &str) -> u64 {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    number("throttled_usec")
        .map(|us| us.saturating_mul(1000))
        .or_else(|| number("throttled_time"))
        .unwrap_or(0)
}

/// Our own folder in the hierarchy of that type (and controller), in which a child folder may be made.
fn place(mounts: &str, own: &str, kind: &str, controller: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, fs_type, options) = (fields.next()?, fields.next()?, fields.next()?);
        let controlled = controller.is_empty() || options.split(',').any(|option| option == controller);
        (fs_type == kind && controlled).then(|| PathBuf::from(point))
    })?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = if controller.is_empty() {
            number == "0"
        } else {
            controllers.split(',').any(|name| name == controller)
        };
        ours.then(|| path.trim_start_matches('/').to_owned())
    })?;
    Some(mount.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cgroup_versions_report_the_throttled_time() {
        assert_eq!(throttled("usage_usec 5\nnr_throttled 2\nthrottled_usec 7\n"), 7000);
        assert_eq!(throttled("nr_periods 1\nnr_throttled 1\nthrottled_time 7\nnr_bursts 0\n"), 7);
        assert_eq!(throttled("usage_usec 5\n"), 0);
    }

    #[test]
    fn a_group_of_another_name_is_left_alone() {
        assert_eq!(maker("widthwise-12-0"), Some(12));
        assert_eq!(maker("widthwise-12-memory-13"), Some(12));
        for name in ["widthwise-12", "widthwise-a-0", "widthwise--0", "mywidthwise-12-0", "user.slice"] {
            assert_eq!(maker(name), None, "{name}");
        }
        assert!(!has_ended(std::process::id()) && !has_ended(1) && !has_ended(0) && !has_ended(u32::MAX));
    }

    #[test]
    fn the_path_is_our_own_folder_in_the_right_hierarchy() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let own = "8:pids:/a\n1:cpu:/\n0::/user.slice/x\n";
        assert_eq!(
            place(mounts, own, "cgroup2", ""),
            Some(PathBuf::from("/sys/fs/cgroup/unified/user.slice/x"))
        );
        assert_eq!(place(mounts, own, "cgroup", "pids"), Some(PathBuf::from("/sys/fs/cgroup/pids/a")));
        assert_eq!(place("", own, "cgroup2", ""), None);
    }
}
