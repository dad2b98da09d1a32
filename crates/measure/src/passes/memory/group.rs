//! The kernel's own account of a run's memory: a memory control group around the launcher and all that it starts.
//!
//! The group's highest usage counts pages shared by forked processes once, and misses nothing between two
//! readings. It also counts the page cache that the run filled and the kernel's memory for the run. It leaves
//! out file pages that were cached before. So it is not a resident size, but it bounds one.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use widthwise_proc::cgroup;
use widthwise_proc::memory_stat;

/// Pages that each CPU charges in advance (`MEMCG_CHARGE_BATCH`, mm/memcontrol.c), in bytes.
const CHARGED_AHEAD: u64 = 64 * 4096;

/// The highest charge of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPeak {
    /// Everything: anonymous memory, page cache, kernel memory.
    pub charged: u64,
    /// The highest sum of kernel memory, where the kernel keeps it (cgroups v1).
    pub kernel: Option<u64>,
    /// Pages that were ever charged, where the kernel counts them (cgroups v1).
    pub pages: Option<u64>,
    /// The most page cache that any reading of the account saw.
    pub cached: Option<u64>,
    /// The part of `charged` that may have been charged in advance and never used.
    pub ahead: u64,
}

/// A group for one run.
#[derive(Debug)]
pub enum Group {
    /// cgroups v1: a folder of the memory hierarchy that holds the launcher during the run.
    Own {
        /// The group's folder.
        folder: PathBuf,
        /// The launcher's group before.
        before: PathBuf,
        /// The launcher.
        launcher: u32,
    },
    /// cgroups v2: the runs' existing group, whose peak was reset when the run began (Linux 6.12).
    Shared(fs::File, PathBuf),
}

impl Group {
    /// A group for the run that `launcher` starts next; absent where none can be made.
    pub fn begin(launcher: u32, unified: Option<&Path>) -> Option<Group> {
        Group::own(launcher).or_else(|| Group::shared(unified?))
    }

    fn own(launcher: u32) -> Option<Group> {
        let before = cgroup::own_place("memory")?;
        let folder = before.join(format!("widthwise-{}-memory-{launcher}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let entered = fs::write(folder.join("cgroup.procs"), launcher.to_string());
        // Dropping it removes the folder.
        let group = Group::Own { folder, before, launcher };
        entered.ok().map(|()| group)
    }

    fn shared(unified: &Path) -> Option<Group> {
        let path = unified.join("memory.peak");
        let mut file = fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
        file.write_all(b"reset\n").ok()?;
        Some(Group::Shared(file, unified.to_owned()))
    }

    /// The file with the group's statistics.
    pub fn statistics(&self) -> PathBuf {
        let (Group::Own { folder, .. } | Group::Shared(_, folder)) = self;
        folder.join("memory.stat")
    }

    /// Its highest charge, on that many CPUs. `cached` is the most page cache that was seen during the run.
    pub fn peak(&mut self, cpus: u64, cached: u64) -> Option<GroupPeak> {
        let ahead = cpus * CHARGED_AHEAD;
        match self {
            Group::Own { folder, .. } => {
                let statistics = fs::read(folder.join("memory.stat")).ok();
                let statistic = |name| memory_stat::field(statistics.as_deref()?, name);
                Some(GroupPeak {
                    charged: number(&fs::read_to_string(folder.join("memory.max_usage_in_bytes")).ok()?)?,
                    kernel: fs::read_to_string(folder.join("memory.kmem.max_usage_in_bytes"))
                        .ok()
                        .and_then(|text| number(&text)),
                    pages: statistic("total_pgpgin"),
                    cached: statistic("total_cache").map(|at_the_end| at_the_end.max(cached)),
                    ahead,
                })
            }
            Group::Shared(file, _) => {
                file.seek(SeekFrom::Start(0)).ok()?;
                let text = std::io::read_to_string(file).ok()?;
                Some(GroupPeak { charged: number(&text)?, kernel: None, pages: None, cached: None, ahead })
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Group::Own { folder, before, launcher } = self {
            // If the launcher has ended, nothing is left in the group.
            let _ = fs::write(before.join("cgroup.procs"), launcher.to_string());
            cgroup::remove(folder);
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
