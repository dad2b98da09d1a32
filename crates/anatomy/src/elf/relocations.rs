//! Relocation records of a linked file, and what the words that they fill will be.

use object::Endian;
use rustc_hash::FxHashMap;

use super::{section_type, Elf, Section, I386, X86_64};

/// What a word of data points to once the program has been loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pointee<'a> {
    /// An address of this file, before relocation; 0 is a null pointer.
    Address(u64),
    /// A symbol that another file defines.
    External(&'a [u8]),
}

/// The relocation records of the dynamic linker, by the address of the word that each fills.
#[derive(Debug, Clone, Default)]
pub struct Relocations<'a> {
    targets: FxHashMap<u64, Target<'a>>,
    copies: FxHashMap<u64, &'a [u8]>,
    /// Bytes of one record; 0 where there are none.
    pub record: u64,
}

#[derive(Debug, Clone, Copy)]
enum Target<'a> {
    Pointee(Pointee<'a>),
    /// The word in the file is the address.
    InPlace,
}

impl<'a> Elf<'a> {
    /// Reads the records of all sections that are loaded.
    pub fn relocations(&self) -> Relocations<'a> {
        let mut found = Relocations::default();
        for section in &self.sections {
            let is_loaded = section.has(super::section_flag::ALLOC);
            if is_loaded && matches!(section.kind, section_type::REL | section_type::RELA) {
                self.read_relocations(section, &mut found);
            }
        }
        found
    }

    fn read_relocations(&self, section: &Section, found: &mut Relocations<'a>) {
        let word = self.word() as usize;
        let has_addend = section.kind == section_type::RELA;
        let size = if has_addend { 3 * word } else { 2 * word };
        let symbols = self.sections.get(section.link as usize);
        found.record = found.record.max(size as u64);
        for record in self.data(section).chunks_exact(size) {
            let field = |at: usize| self.word_at(record, at * word).unwrap_or_default();
            let (address, info) = (field(0), field(1));
            let addend = if has_addend { field(2) } else { 0 };
            let number = if self.is_64 { info >> 32 } else { info >> 8 };
            let symbol = symbols.filter(|_| number != 0).and_then(|table| self.dynamic_symbol(table, number));
            if let Some((name, _)) = symbol.filter(|_| self.is_copy(info)) {
                found.copies.insert(address, name);
            }
            let target = match symbol {
                Some((name, 0)) => Target::Pointee(Pointee::External(name)),
                Some((_, value)) => {
                    Target::Pointee(Pointee::Address(self.wrapped(value.wrapping_add(addend))))
                }
                None if has_addend => Target::Pointee(Pointee::Address(self.wrapped(addend))),
                None => Target::InPlace,
            };
            found.targets.insert(address, target);
        }
    }

    /// R_X86_64_COPY and R_386_COPY.
    fn is_copy(&self, info: u64) -> bool {
        const COPY: u64 = 5;
        let kind = if self.is_64 { info & 0xffff_ffff } else { info & 0xff };
        matches!(self.machine, I386 | X86_64) && kind == COPY
    }

    fn wrapped(&self, address: u64) -> u64 {
        if self.is_64 {
            address
        } else {
            address & 0xffff_ffff
        }
    }

    /// The name and the value of a symbol by its number; the value is 0 where another file defines it.
    fn dynamic_symbol(&self, table: &Section, number: u64) -> Option<(&'a [u8], u64)> {
        // Elf64_Sym and Elf32_Sym (gABI, figure 4-16).
        let (size, value_at, section_at) = if self.is_64 { (24, 8, 6) } else { (16, 4, 14) };
        let start = usize::try_from(number).ok()?.checked_mul(size)?;
        let symbol = self.data(table).get(start..start.checked_add(size)?)?;
        let name = self.endian.read_u32(symbol[..4].try_into().ok()?) as usize;
        let is_defined = symbol[section_at..section_at + 2] != [0, 0];
        let value = if is_defined { self.word_at(symbol, value_at)? } else { 0 };
        let strings = self.data(self.sections.get(table.link as usize)?).get(name..)?;
        let end = strings.iter().position(|byte| *byte == 0)?;
        Some((&strings[..end], value))
    }
}

impl<'a> Relocations<'a> {
    /// What the word at an address points to; `word` is what the file has there.
    pub fn pointee(&self, address: u64, word: u64) -> Pointee<'a> {
        match self.targets.get(&address) {
            Some(Target::Pointee(pointee)) => *pointee,
            Some(Target::InPlace) | None => Pointee::Address(word),
        }
    }

    /// The object of another file whose copy begins at an address.
    pub fn copied(&self, address: u64) -> Option<&'a [u8]> {
        self.copies.get(&address).copied()
    }

    /// Whether the dynamic linker fills the word.
    pub fn has(&self, address: u64) -> bool {
        self.targets.contains_key(&address)
    }
}
