//! A linked file's data at their addresses at run time, as the dynamic linker will have filled them.

use object::Endian;

use super::relocations::{Pointee, Relocations};
use super::{section_flag, section_type, Elf, Section};

/// A linked file by its addresses.
#[derive(Debug)]
pub struct Loaded<'r, 'a> {
    elf: &'r Elf<'a>,
    /// The relocation records.
    pub relocations: Relocations<'a>,
}

impl<'r, 'a> Loaded<'r, 'a> {
    /// Reads the relocation records.
    pub fn new(elf: &'r Elf<'a>) -> Loaded<'r, 'a> {
        Loaded { elf, relocations: elf.relocations() }
    }

    /// The bytes from an address to the end of its section; empty where nothing of the file is there.
    pub fn bytes(&self, address: u64) -> &'a [u8] {
        // Zeros of threads (.tbss) have addresses that other sections have, too.
        let is_of_threads =
            |section: &Section| section.has(section_flag::TLS) && section.kind == section_type::NOBITS;
        let section = self.elf.sections.iter().find(|section| {
            section.has(section_flag::ALLOC)
                && !is_of_threads(section)
                && address.checked_sub(section.address).is_some_and(|at| at < section.size)
        });
        let at = section.and_then(|section| usize::try_from(address - section.address).ok());
        section.zip(at).and_then(|(section, at)| self.elf.data(section).get(at..)).unwrap_or_default()
    }

    /// What the word at an address points to.
    pub fn pointee(&self, address: u64) -> Option<Pointee<'a>> {
        let word = self.elf.word_at(self.bytes(address), 0)?;
        Some(self.relocations.pointee(address, word))
    }

    /// Four bytes at an address.
    pub fn number(&self, address: u64) -> Option<u32> {
        let bytes: [u8; 4] = self.bytes(address).get(..4)?.try_into().ok()?;
        Some(self.elf.endian.read_u32(bytes))
    }
}
