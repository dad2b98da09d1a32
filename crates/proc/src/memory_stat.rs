//! The control group's account of a tree's anonymous memory, which counts no page twice: `memory.stat`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::affinity::online_cpus;

/// The first estimate of what reading it costs, in nanoseconds.
const COST: f64 = 30e3;
/// Pages that each CPU of the machine may not have reported to the group yet (`MEMCG_CHARGE_BATCH`, mm/memcontrol.c:
/// `memcg_vmstats_needs_flush`), in bytes.
const UNTOLD: u64 = 64 * 4096;

/// An open `memory.stat`.
#[derive(Debug)]
pub struct MemoryStat {
    file: File,
    text: Vec<u8>,
    cost: f64,
    untold: u64,
}

impl MemoryStat {
    /// Opens the file; absent where it cannot be opened.
    pub fn open(path: &Path) -> Option<MemoryStat> {
        let file = File::open(path).ok()?;
        Some(MemoryStat { file, text: vec![0; 16 << 10], cost: COST, untold: online_cpus() * UNTOLD })
    }

    /// The estimated cost of a reading.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Updates the estimate after a reading.
    pub fn took(&mut self, took: u64) {
        self.cost += 0.3 * (took as f64 - self.cost);
    }

    /// The least anonymous memory that is resident, and the page cache.
    pub fn read(&mut self) -> Option<(u64, u64)> {
        let length = self.file.read_at(&mut self.text, 0).ok()?;
        let text = &self.text[..length];
        let cached = field(text, "total_cache").or_else(|| field(text, "file")).unwrap_or(0);
        Some((anonymous(text)?.saturating_sub(self.untold), cached))
    }
}

/// `rss` of the whole hierarchy in cgroups v1, `anon` in v2.
fn anonymous(text: &[u8]) -> Option<u64> {
    field(text, "total_rss").or_else(|| field(text, "anon"))
}

/// The number behind a name at the beginning of a line.
pub fn field(text: &[u8], name: &str) -> Option<u64> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?;
        std::str::from_utf8(value).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cgroup_versions_report_the_anonymous_memory() {
        let first =
            b"cache 4096\nrss 8192\nrss_huge 0\ntotal_cache 4096\ntotal_rss 12288\ntotal_rss_huge 0\n";
        assert_eq!(anonymous(first), Some(12288));
        assert_eq!(anonymous(b"anon 20480\nfile 0\nanon_thp 7\n"), Some(20480));
        assert_eq!(anonymous(b""), None);
    }
}
