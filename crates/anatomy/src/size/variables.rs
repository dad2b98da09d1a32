//! The variables of two programs: data that the program may write, in the file or beginning as zeros.

use std::collections::BTreeMap;

use crate::elf::named::Named;
use crate::elf::{section_flag, Elf, SymbolKind};
use crate::names::names_of_symbol;
use crate::pairing::{self, paired_sums};

/// One variable of two programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name, demangled.
    pub name: String,
    /// Its section, such as `.bss`.
    pub section: String,
    /// Bytes in the first program and in the second; 0 where it is not.
    pub bytes: [u64; 2],
}

/// The variables of both programs, paired by section and name. Several of one name in one section are one row.
pub fn pairs(a: (&Elf, &[Named]), b: (&Elf, &[Named])) -> Vec<Variable> {
    let mut by_section: BTreeMap<String, pairing::Named<u64>> = BTreeMap::new();
    for (side, (elf, named)) in [a, b].into_iter().enumerate() {
        for one in named.iter().filter(|one| one.kind == SymbolKind::Object) {
            let section = &elf.sections[one.section];
            if section.has(section_flag::ALLOC) && section.has(section_flag::WRITE) {
                let sides = by_section.entry(section.name.to_string()).or_default();
                sides[side].push((names_of_symbol(one.name), one.size));
            }
        }
    }
    let rows = by_section.into_iter().flat_map(|(section, sides)| {
        let sums = paired_sums(sides, |sum, bytes| *sum = sum.saturating_add(bytes));
        sums.into_iter().map(move |(name, bytes)| Variable { name, section: section.clone(), bytes })
    });
    rows.collect()
}
