//! The variables of two programs: data that the program may write, in the file or beginning as zeros.

use std::collections::BTreeMap;

use crate::elf::named::Named;
use crate::elf::{section_flag, Elf, SymbolKind};
use crate::names;

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

/// The variables of both programs, paired by name. Several of one name in one section are one row.
pub fn pairs(a: (&Elf, &[Named]), b: (&Elf, &[Named])) -> Vec<Variable> {
    let mut all: BTreeMap<(String, String), Variable> = BTreeMap::new();
    for (side, (elf, named)) in [a, b].into_iter().enumerate() {
        for one in named.iter().filter(|one| one.kind == SymbolKind::Object) {
            let section = &elf.sections[one.section];
            if !section.has(section_flag::ALLOC) || !section.has(section_flag::WRITE) {
                continue;
            }
            let (key, name) = names::key_of_symbol(one.name);
            let section = section.name.to_string();
            let row = all.entry((key, section.clone()));
            let row = row.or_insert(Variable { name, section, bytes: [0; 2] });
            row.bytes[side] = row.bytes[side].saturating_add(one.size);
        }
    }
    all.into_values().collect()
}
