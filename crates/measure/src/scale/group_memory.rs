//! The memory of all started processes, read while all of them are frozen (the freezer of cgroup v2,
//! `Documentation/admin-guide/cgroup-v2.rst`), so that the sums are consistent. Otherwise a page that moves
//! from one process to another between two readings would count twice, or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use widthwise_experiment::memory::{Class, Part};
use widthwise_experiment::scale::{CopyOnWriteBreakdown, MemberMemory, Memory, Moment};

use widthwise_proc::clock::now;
use widthwise_proc::descendants;
use widthwise_proc::process::{LastReading, ProcessHandle, Texts};
use widthwise_proc::shared_once::SharedOnce;
use widthwise_proc::smaps::Mapping;
use widthwise_proc::{meminfo, smaps};

/// Moments are at least this far apart, and at least a multiple of what the last reading took.
const LEAST_GAP: Duration = Duration::from_millis(25);
const GAP_FACTOR: u32 = 2;
/// A group that is not frozen after this time is read as it is.
const STILL: Duration = Duration::from_millis(100);
/// With more members than this, only sums are stored over time.
const MOST_MEMBERS: usize = 64;
/// More moments than this are downsampled: every other one is dropped.
const MOST_MOMENTS: usize = 240;

/// The memory of the whole system, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct System {
    anonymous: u64,
    huge: u64,
}

/// The memory of one process at a moment.
#[derive(Debug)]
struct Figures {
    resident: u64,
    pss: u64,
    pss_anonymous: u64,
    uss: u64,
    private_dirty: u64,
    huge: u64,
    merged: u64,
    /// Of the private dirty: the x32 runtime's own.
    runtime_dirty: u64,
    /// By part: resident memory, and its private share.
    parts: BTreeMap<Part, (u64, u64)>,
}

/// The memory of a process tree, in which each page counts once.
#[derive(Debug, Default)]
struct Tree {
    once: SharedOnce,
    /// What is not shared: the program's, and the x32 runtime's.
    own: [u64; 2],
}

impl Tree {
    fn add(&mut self, mapping: &Mapping, part: &Part) {
        let index = usize::from(part.class == Class::Runtime);
        self.own[index] += self.once.add(index, mapping).resident;
    }

    /// The memory without the x32 runtime's, and that of the runtime.
    fn close(mut self) -> (u64, u64) {
        for (index, shared) in self.once.rest() {
            self.own[index] += shared;
        }
        (self.own[0], self.own[1])
    }
}

/// Reads memory over time.
#[derive(Debug)]
pub struct GroupMemory {
    runtime: Option<PathBuf>,
    before: System,
    memory: Memory,
    parent_at_fork: Option<BTreeMap<Part, (u64, u64)>>,
    began_ns: u64,
    texts: Texts,
    /// Why processes ran while they were read, where they did.
    running: Option<Running>,
}

/// Why processes were not frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    /// There is no cgroup v2.
    NoFreezer,
    /// They were not frozen in time: the kernel freezes a process once its system call can be interrupted.
    Slow,
}

impl GroupMemory {
    /// A reader that has recorded the system's memory before anything was started.
    pub fn new(runtime: Option<PathBuf>) -> GroupMemory {
        GroupMemory {
            runtime,
            before: system(),
            memory: Memory { frozen: true, ..Memory::default() },
            parent_at_fork: None,
            began_ns: now(),
            texts: Texts::default(),
            running: None,
        }
    }

    /// Why processes ran while they were read, if they did at any moment.
    pub fn running(&self) -> Option<Running> {
        self.running
    }

    /// Reads the memory of these processes. `parent` is the one that forks, `members` those that count, of
    /// which `expected` are awaited. Returns how long not to read again.
    pub fn read(
        &mut self,
        pids: &[u32],
        parent: Option<u32>,
        members: &[u32],
        expected: usize,
        groups: &[Option<PathBuf>],
    ) -> Duration {
        let began = Instant::now();
        let still = Still::make(groups);
        self.memory.frozen &= still.running.is_none();
        self.running = self.running.or(still.running);
        let at_ns = now();
        let mut all: BTreeMap<u32, Figures> = BTreeMap::new();
        let mut tree = Tree::default();
        for (index, &pid) in pids.iter().enumerate() {
            if let Some(figures) = self.figures(pid, index, &mut tree) {
                all.insert(pid, figures);
            }
        }
        let system = system();
        drop(still);
        if let Some(parent) = parent.filter(|parent| !members.contains(parent)) {
            if self.parent_at_fork.is_none() && members.iter().any(|member| all.contains_key(member)) {
                self.parent_at_fork = all.get(&parent).map(|figures| figures.parts.clone());
            }
        }
        let there = members.iter().filter(|member| all.contains_key(member)).count();
        let sum = |of: fn(&Figures) -> u64| all.values().map(of).sum::<u64>();
        let (tree, runtime) = tree.close();
        let moment = Moment {
            at_ns: at_ns.saturating_sub(self.began_ns),
            members: there,
            processes: all.len(),
            pss: sum(|figures| figures.pss),
            pss_anonymous: sum(|figures| figures.pss_anonymous),
            uss: sum(|figures| figures.uss),
            private_dirty: sum(|figures| figures.private_dirty),
            resident: sum(|figures| figures.resident),
            tree: Some(tree),
            runtime,
            huge: sum(|figures| figures.huge),
            merged: sum(|figures| figures.merged),
            system_anonymous: system.anonymous as i64 - self.before.anonymous as i64,
            system_huge: system.huge as i64 - self.before.huge as i64,
            each: if expected <= MOST_MEMBERS { each(members, &all) } else { Vec::new() },
        };
        if !all.is_empty() {
            self.keep(moment, members, expected, &all);
        }
        (began.elapsed() * GAP_FACTOR).max(LEAST_GAP)
    }

    fn keep(&mut self, moment: Moment, members: &[u32], expected: usize, all: &BTreeMap<u32, Figures>) {
        let memory = &mut self.memory;
        let highest = memory.highest.map(|index| memory.moments[index].pss);
        let (there, pss) = (moment.members, moment.pss);
        memory.moments.push(moment);
        if there >= expected && highest.is_none_or(|highest| pss > highest) {
            memory.highest = Some(memory.moments.len() - 1);
            memory.members = each(members, all);
            if let Some(parent) = &self.parent_at_fork {
                let children: Vec<&BTreeMap<Part, (u64, u64)>> =
                    members.iter().filter_map(|pid| all.get(pid)).map(|figures| &figures.parts).collect();
                memory.copy_on_write = copy_on_write(parent, &children);
            }
        }
        if memory.moments.len() > MOST_MOMENTS {
            let highest = memory.highest;
            let mut index = 0;
            let mut kept = Vec::new();
            for (place, moment) in memory.moments.iter().enumerate() {
                if highest == Some(place) {
                    index = kept.len();
                }
                if place % 2 == 0 || highest == Some(place) {
                    kept.push(moment.clone());
                }
            }
            memory.moments = kept;
            memory.highest = highest.map(|_| index);
        }
    }

    fn figures(&mut self, pid: u32, index: usize, tree: &mut Tree) -> Option<Figures> {
        let mut watched = ProcessHandle::open(pid, index).ok()?;
        watched.read(&mut self.texts).ok()?;
        let rollup = std::fs::read(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let LastReading { mappings, around, .. } =
            watched.portrait(&mut self.texts, self.runtime.as_ref())?;
        let mut parts: BTreeMap<Part, (u64, u64)> = BTreeMap::new();
        let mut runtime_dirty = 0;
        for (mapping, part) in mappings.iter().zip(smaps::classify(&mappings, &around)) {
            tree.add(mapping, &part);
            if part.class == Class::Runtime {
                runtime_dirty += mapping.private_dirty;
            }
            let sum = parts.entry(part).or_default();
            sum.0 += mapping.amounts.resident;
            sum.1 += mapping.private;
        }
        let sum = |of: fn(&smaps::Mapping) -> u64| mappings.iter().map(of).sum::<u64>();
        Some(Figures {
            resident: sum(|mapping| mapping.amounts.resident),
            // smaps rounds down for each mapping, and smaps_rollup only once.
            pss: smaps::amount(&rollup, b"Pss:").unwrap_or_else(|| sum(|mapping| mapping.amounts.pss)),
            pss_anonymous: smaps::amount(&rollup, b"Pss_Anon:").unwrap_or(0),
            uss: sum(|mapping| mapping.private),
            private_dirty: sum(|mapping| mapping.private_dirty),
            huge: sum(|mapping| mapping.huge),
            merged: sum(|mapping| mapping.merged),
            runtime_dirty,
            parts,
        })
    }

    /// The result; times count from `began_ns`, when the program began.
    pub fn close(mut self, began_ns: u64) -> Memory {
        for moment in &mut self.memory.moments {
            moment.at_ns = (moment.at_ns + self.began_ns).saturating_sub(began_ns);
        }
        self.memory.system_drift = system().anonymous as i64 - self.before.anonymous as i64;
        self.memory
    }
}

/// The living members, in order.
fn each(members: &[u32], all: &BTreeMap<u32, Figures>) -> Vec<MemberMemory> {
    let of = |figures: &Figures| MemberMemory {
        pss: figures.pss,
        uss: figures.uss,
        private_dirty: figures.private_dirty,
        resident: figures.resident,
        shared: figures.resident.saturating_sub(figures.uss),
        runtime_dirty: figures.runtime_dirty,
    };
    members.iter().filter_map(|pid| all.get(pid)).map(of).collect()
}

/// What the children share of the parent's memory. All amounts are sums over all children.
fn copy_on_write(
    parent: &BTreeMap<Part, (u64, u64)>,
    children: &[&BTreeMap<Part, (u64, u64)>],
) -> Vec<CopyOnWriteBreakdown> {
    let mut names: Vec<&Part> = parent.keys().chain(children.iter().flat_map(|child| child.keys())).collect();
    names.sort();
    names.dedup();
    let mut all: Vec<CopyOnWriteBreakdown> = names
        .into_iter()
        .map(|part| {
            let had = parent.get(part).map_or(0, |amounts| amounts.0);
            let mut row =
                CopyOnWriteBreakdown { part: name(part), at_fork: had, shared: 0, copied: 0, own: 0 };
            for child in children {
                let (resident, private) = child.get(part).copied().unwrap_or_default();
                let shared = resident.saturating_sub(private);
                // Memory that is no longer shared is a copy, as far as the child has private memory instead.
                let copied = private.min(had.saturating_sub(shared));
                row.shared += shared;
                row.copied += copied;
                row.own += private - copied;
            }
            row
        })
        .filter(|row| row.at_fork + row.shared + row.copied + row.own > 0)
        .collect();
    all.sort_by_key(|row| std::cmp::Reverse(row.copied + row.own));
    all
}

fn name(part: &Part) -> String {
    match part.class {
        _ if part.name.is_empty() => part.class.title().to_owned(),
        Class::ProgramText => format!("{}: {}", part.class.title(), part.name),
        _ => part.name.clone(),
    }
}

/// Programs that are frozen until this is dropped.
#[derive(Debug)]
struct Still<'a> {
    groups: Vec<&'a Path>,
    running: Option<Running>,
}

impl Still<'_> {
    fn make(groups: &[Option<PathBuf>]) -> Still<'_> {
        let mut still = Still { groups: Vec::new(), running: None };
        for group in groups {
            match group {
                Some(group) if std::fs::write(group.join("cgroup.freeze"), "1").is_ok() => {
                    still.groups.push(group);
                }
                _ => still.running = Some(Running::NoFreezer),
            }
        }
        let began = Instant::now();
        for group in &still.groups {
            while !is_frozen(group) {
                if began.elapsed() > STILL {
                    still.running = still.running.or(Some(Running::Slow));
                    break;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        still
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = std::fs::write(group.join("cgroup.freeze"), "0");
        }
    }
}

fn is_frozen(group: &Path) -> bool {
    let text = std::fs::read_to_string(group.join("cgroup.events")).unwrap_or_default();
    text.lines().any(|line| line == "frozen 1")
}

fn system() -> System {
    let (anonymous, huge) = meminfo::anonymous();
    System { anonymous: anonymous.unwrap_or(0), huge: huge.unwrap_or(0) }
}

/// All processes that these launchers have started.
pub fn everyone(launchers: &[u32]) -> Vec<u32> {
    launchers.iter().flat_map(|launcher| descendants::descendants(*launcher).into_keys()).collect()
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::memory::Amounts;

    use super::*;

    #[test]
    fn why_processes_ran_while_they_were_read_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let group = |frozen: &str| {
            std::fs::write(folder.path().join("cgroup.events"), format!("populated 1\nfrozen {frozen}\n"))
                .unwrap();
            std::fs::write(folder.path().join("cgroup.freeze"), "").unwrap();
            Some(folder.path().to_owned())
        };
        let read = |group: Option<PathBuf>| {
            let mut memory = GroupMemory::new(None);
            memory.read(&[], None, &[], 1, &[group]);
            (memory.running(), memory.close(0).frozen)
        };
        assert_eq!(read(group("1")), (None, true));
        assert_eq!(read(group("0")), (Some(Running::Slow), false));
        assert_eq!(read(None), (Some(Running::NoFreezer), false));
    }

    #[test]
    fn a_tree_has_a_library_once_and_the_x32_runtime_not_at_all() {
        let mapping = |inode, resident, pss, private| Mapping {
            file: (1, inode),
            amounts: Amounts { resident, pss, ..Amounts::default() },
            private,
            ..Mapping::default()
        };
        let part = |class| Part { class, name: String::new() };
        // Two jobs with a heap each, and a library: that of the whole system, or one that they alone have.
        for library in [mapping(9, 60, 3, 0), mapping(9, 60, 30, 0)] {
            let mut tree = Tree::default();
            for _ in 0..2 {
                tree.add(&mapping(0, 100, 100, 100), &part(Class::Heap));
                tree.add(&library, &part(Class::Library));
                tree.add(&mapping(7, 20, 10, 0), &part(Class::Runtime));
                tree.add(&mapping(0, 5, 5, 5), &part(Class::Runtime));
            }
            assert_eq!(tree.close(), (260, 30));
        }
    }

    #[test]
    fn copied_memory_is_distinguished_from_new_memory() {
        let part = |class| Part { class, name: String::new() };
        let parent = BTreeMap::from([(part(Class::Heap), (100, 100)), (part(Class::Stack), (8, 8))]);
        // One child wrote to 30 of the parent's 100 and has 50 more of its own; the other freed 40.
        let one = BTreeMap::from([(part(Class::Heap), (150, 80)), (part(Class::Stack), (8, 8))]);
        let other = BTreeMap::from([(part(Class::Heap), (60, 0)), (part(Class::Mmapped), (5, 5))]);
        let rows = copy_on_write(&parent, &[&one, &other]);
        let row = |at_fork, shared, copied, own| (at_fork, shared, copied, own);
        let found: Vec<_> =
            rows.iter().map(|r| (r.part.as_str(), row(r.at_fork, r.shared, r.copied, r.own))).collect();
        assert_eq!(
            found,
            [
                ("heap (brk)", row(100, 130, 30, 50)),
                ("stacks", row(8, 0, 8, 0)),
                ("mmapped blocks", row(0, 0, 0, 5))
            ]
        );
    }
}
