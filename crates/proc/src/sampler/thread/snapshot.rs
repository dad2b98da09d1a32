//! Smaps snapshots: when one is due, what it reads, and the tree's figures.

use std::collections::BTreeMap;

use widthwise_experiment::memory::{Amounts, Class, Reading, Totals, RSS_LAG};

use super::{is_gone, SamplerThread};
use crate::clock::thread_cpu;
use crate::descendants;
use crate::process::{LastReading, ProcessHandle, Texts};
use crate::sampler::overhead_budget::OverheadBudget;
use crate::shared_once::SharedOnce;
use crate::smaps;

/// And of each resident byte (40 MB took 1.1 ms when none of it was in the reader's caches).
const COST_OF_BYTE: f64 = 0.025;
/// Unchanged memory is read again after this time: it may since be shared by others, or swapped out.
const UNCHANGED: u64 = 1_000_000_000;

impl SamplerThread {
    /// When an smaps snapshot is due. A new maximum size is read as soon as the budget allows; another
    /// change, once the budget leaves something for the next snapshot; an unchanged tree, at intervals.
    pub(super) fn snapshot_due(&self, budget: &OverheadBudget) -> u64 {
        if self.tree.is_empty() {
            return u64::MAX;
        }
        // Larger memories take longer to walk.
        let grown = self.size.saturating_sub(self.size_read) as f64 * COST_OF_BYTE;
        let cost = budget.cost() + grown;
        let is_new_height = self.size > self.highest_read.saturating_add(self.highest_read / 200);
        if is_new_height {
            budget.ready(self.worth(cost))
        } else if self.changed {
            budget.ready(1.5 * self.worth(cost))
        } else {
            budget.ready(2.0 * cost).max(self.last_reading.saturating_add(UNCHANGED))
        }
    }

    /// Takes an smaps snapshot of all processes, one after the other; returns how long reading took. The
    /// evaluation afterwards does not disturb the program.
    pub(super) fn take_snapshot(&mut self, at_ns: u64) -> u64 {
        let began = thread_cpu();
        let mut read = Vec::new();
        let mut gone = Vec::new();
        self.texts.resize_with(self.texts.len().max(self.tree.len()), Texts::default);
        for (texts, (&pid, watched)) in self.texts.iter_mut().zip(&mut self.tree) {
            match watched.read(texts) {
                Ok(()) => read.push((texts, pid)),
                Err(error) if is_gone(&error) => gone.push(pid),
                Err(error) => self.seen.refused = Some((pid, error.to_string())),
            }
        }
        let pids: Vec<u32> = read.iter().map(|(_, pid)| *pid).collect();
        let sizes = sizes_after(&mut self.tree, &pids);
        let took = thread_cpu() - began;
        let mut portraits: Vec<(u32, usize, LastReading)> = Vec::new();
        for (texts, pid) in read {
            let Some(watched) = self.tree.get_mut(&pid) else { continue };
            let portrait = watched.portrait(texts, self.watch.runtime.as_ref());
            portraits.extend(portrait.map(|portrait| (pid, watched.index, portrait)));
        }
        without_borrowed_memory(&mut portraits);
        self.forget(&gone, at_ns);
        self.last_reading = at_ns;
        let resident =
            |(pid, _, portrait): &(u32, usize, LastReading)| (*pid, portrait.totals.amounts.resident);
        if has_shrunk(portraits.iter().map(resident), &sizes) {
            self.changed = true;
            return took;
        }
        self.changed = false;
        self.size_read = self.tree.values().map(|watched| watched.resident).sum();
        self.size_scanned = self.size_scanned.map(|_| self.size_read);
        self.highest_read = self.highest_read.max(self.size_read).max(self.size);
        if portraits.is_empty() {
            return took;
        }
        for (_, index, portrait) in &portraits {
            self.seen.series.processes[*index].name.clone_from(&portrait.name);
        }
        let reading = self.sum(at_ns, &portraits);
        self.seen.series.readings_made += 1;
        self.keep(reading);
        took
    }

    /// The tree's figures: the sum of its processes'.
    fn sum(&mut self, at_ns: u64, portraits: &[(u32, usize, LastReading)]) -> Reading {
        let mut parts: BTreeMap<usize, Amounts> = BTreeMap::new();
        let mut once = SharedOnce::default();
        let mut tree = Totals::default();
        for (_, _, portrait) in portraits {
            let mut around = portrait.around.clone();
            around.recorder.clone_from(&self.watch.recorder);
            let classified = smaps::classify(&portrait.mappings, &around);
            for (mapping, part) in portrait.mappings.iter().zip(classified) {
                let index = self.index_of(part);
                let amounts = parts.entry(index).or_default();
                *amounts = amounts.plus(once.add(index, mapping));
            }
            tree.page_tables += portrait.totals.page_tables;
            tree.huge += portrait.totals.huge;
        }
        for (part, shared) in once.rest() {
            if let Some(amounts) = parts.get_mut(&part) {
                amounts.resident += shared;
            }
        }
        let of_class = |class| {
            let own = parts.iter().filter(|(part, _)| self.seen.series.parts[**part].class == class);
            own.fold(Amounts::default(), |sum, (_, amounts)| sum.plus(*amounts))
        };
        let shared = of_class(Class::Shared);
        tree.amounts = parts.values().fold(Amounts::default(), |sum, amounts| sum.plus(*amounts));
        tree.shared = shared.resident.saturating_sub(shared.anonymous);
        tree.file = tree.amounts.resident.saturating_sub(tree.amounts.anonymous).saturating_sub(tree.shared);
        Reading {
            at_ns,
            full: true,
            tree,
            processes: portraits.iter().map(|(_, index, portrait)| (*index, portrait.totals)).collect(),
            parts: parts.into_iter().collect(),
        }
    }
}

/// The resident sizes of these processes when the last of them has been read; 0 if a process has ended. Nothing for one process.
fn sizes_after(tree: &mut BTreeMap<u32, ProcessHandle>, read: &[u32]) -> BTreeMap<u32, u64> {
    let mut sizes = BTreeMap::new();
    for pid in read.iter().filter(|_| read.len() > 1) {
        let Some(watched) = tree.get_mut(pid) else { continue };
        watched.statm_sample();
        sizes.insert(*pid, watched.size().map_or(0, |size| size.resident));
    }
    sizes
}

/// Whether a process has ended or shrunk between its own reading and that of the last process: others may have grown meanwhile, and the
/// tree never had their sum. (Until Linux 6.15 statm samples lag behind the mappings.)
fn has_shrunk(mut read: impl Iterator<Item = (u32, u64)>, sizes_after: &BTreeMap<u32, u64>) -> bool {
    read.any(|(pid, resident)| {
        sizes_after.get(&pid).is_some_and(|&after| after == 0 || after.saturating_add(RSS_LAG) < resident)
    })
}

/// Leaves out processes that use another's memory: a child of vfork before its execve.
fn without_borrowed_memory(portraits: &mut Vec<(u32, usize, LastReading)>) {
    let mut kept: Vec<(u32, usize, LastReading)> = Vec::with_capacity(portraits.len());
    for (pid, index, portrait) in portraits.drain(..) {
        let borrowed = kept.iter().any(|(other, _, theirs)| {
            theirs.mappings.len() == portrait.mappings.len()
                && theirs.totals.amounts == portrait.totals.amounts
                && descendants::share_memory(*other, pid)
        });
        if !borrowed {
            kept.push((pid, index, portrait));
        }
    }
    *portraits = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_during_which_a_process_ended_or_shrank_is_of_no_moment() {
        const MIB: u64 = 1 << 20;
        let read = [(7, 64 * MIB), (8, 10 * MIB)];
        let shrinks = |after: &[(u32, u64)]| has_shrunk(read.into_iter(), &after.iter().copied().collect());
        assert!(!shrinks(&[(7, 64 * MIB), (8, 12 * MIB)]));
        assert!(!shrinks(&[(7, 64 * MIB - RSS_LAG), (8, 10 * MIB)]));
        assert!(shrinks(&[(7, 60 * MIB), (8, 12 * MIB)]));
        assert!(shrinks(&[(7, 0), (8, 12 * MIB)]));
        assert!(!shrinks(&[]), "the only process");
    }
}
