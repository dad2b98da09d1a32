//! Sums over a process tree in which memory that its processes share counts once. Pure.

use std::collections::BTreeMap;

use widthwise_experiment::memory::Amounts;

use super::smaps::{self, Mapping};

/// The tree's figures for each mapping, counting memory shared by its processes once. PSS separates private
/// memory from memory shared with outsiders where no file backs it; pages of files and of the vDSO count fully,
/// however many others map them.
#[derive(Debug, Default)]
pub struct SharedOnce {
    /// By device, inode, offset in the file and the part's index: the most that any process shares of it.
    shared: BTreeMap<((u64, u64), u64, usize), u64>,
}

impl SharedOnce {
    /// Adds a mapping of the part of that index; returns what to add to the part's amounts now.
    /// [`SharedOnce::rest`] has the remainder.
    pub fn add(&mut self, part: usize, mapping: &Mapping) -> Amounts {
        let own = mapping.amounts;
        let resident = if mapping.file.1 == 0 && !smaps::is_vdso(mapping) {
            // Shared within the tree alone: the members' shares add up to the whole.
            own.pss
        } else {
            let shared = own.resident.saturating_sub(mapping.private);
            let most = self.shared.entry((mapping.file, mapping.offset, part)).or_default();
            *most = (*most).max(shared);
            mapping.private
        };
        // Anonymous pages that are shared after a fork count like their resident part.
        let anonymous = if own.resident == own.anonymous { resident } else { own.anonymous.min(resident) };
        Amounts {
            virtual_bytes: own.virtual_bytes,
            resident,
            pss: own.pss,
            anonymous,
            swap: mapping.swap_share,
        }
    }

    /// The shared memory, by index of the part.
    pub fn rest(self) -> impl Iterator<Item = (usize, u64)> {
        self.shared.into_iter().map(|((_, _, part), shared)| (part, shared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_processes_share_counts_once_and_what_outsiders_share_counts_fully() {
        let mapping = |inode, resident, pss, private| Mapping {
            file: (1, inode),
            amounts: Amounts { resident, pss, ..Amounts::default() },
            private,
            ..Mapping::default()
        };
        let mut once = SharedOnce::default();
        // A heap that a child shares with its parent, of which it has changed 10.
        let heap =
            once.add(0, &mapping(0, 100, 55, 10)).resident + once.add(0, &mapping(0, 100, 55, 10)).resident;
        assert_eq!(heap, 110);
        // A library of which each has changed 8, and which half the system uses.
        let changed =
            once.add(1, &mapping(9, 60, 9, 8)).resident + once.add(1, &mapping(9, 40, 9, 8)).resident;
        let shared: u64 = once.rest().map(|(_, shared)| shared).sum();
        assert_eq!((changed, shared), (16, 52));
    }

    #[test]
    fn the_vdso_counts_once_and_fully_however_many_processes_share_it() {
        let vdso = |pss, private| Mapping {
            path: "[vdso]".into(),
            amounts: Amounts { resident: 4096, pss, ..Amounts::default() },
            private,
            ..Mapping::default()
        };
        // The 64-bit one is the whole system's, the 32-bit one that of two processes, or of one.
        for processes in [vec![vdso(0, 0)], vec![vdso(2048, 0), vdso(2048, 0)], vec![vdso(4096, 4096)]] {
            let mut once = SharedOnce::default();
            let own: u64 = processes.iter().map(|mapping| once.add(0, mapping).resident).sum();
            assert_eq!(own + once.rest().map(|(_, shared)| shared).sum::<u64>(), 4096, "{processes:?}");
        }
    }
}
