//! Addresses that say what a memory operand or a call is for.

use crate::elf::named::Named;
use crate::elf::Elf;

/// Addresses that say what a memory operand or a call is for.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) got: Vec<(u64, u64)>,
    pub(super) plt: Vec<(u64, u64)>,
    pub(super) thunks: Vec<u64>,
}

impl Places {
    pub(super) fn of(elf: &Elf, named: &[Named]) -> Places {
        let range =
            |section: &crate::elf::Section| (section.address, section.address.saturating_add(section.size));
        let of = |prefix: &str| {
            let sections = elf.sections.iter().filter(|section| section.name.starts_with(prefix));
            sections.map(range).collect()
        };
        let is_thunk = |one: &&Named| one.name.windows(12).any(|part| part == b"get_pc_thunk");
        let thunks =
            named.iter().filter(is_thunk).map(|one| elf.sections[one.section].address + one.start).collect();
        Places { got: of(".got"), plt: of(".plt"), thunks }
    }

    pub(super) fn is_in(ranges: &[(u64, u64)], address: u64) -> bool {
        ranges.iter().any(|(from, to)| (*from..*to).contains(&address))
    }
}
