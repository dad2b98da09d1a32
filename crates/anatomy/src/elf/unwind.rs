//! Unwind records: the code that each is for (Linux Standard Base, 10.6). Stripped files have them as well.

use std::ops::Range;

use gimli::UnwindSection;

use super::{Elf, Section};

/// The record of one function, or of one part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwindRecord {
    /// Addresses.
    pub code: Range<u64>,
    /// The record's bytes in its section.
    pub bytes: Range<u64>,
}

impl Elf<'_> {
    /// The records of a section in the format of `.eh_frame`, up to the first damaged one.
    pub fn unwind_records(&self, section: &Section) -> Vec<UnwindRecord> {
        let endian = match self.endian {
            object::Endianness::Little => gimli::RunTimeEndian::Little,
            object::Endianness::Big => gimli::RunTimeEndian::Big,
        };
        let mut frames = gimli::EhFrame::new(self.data(section), endian);
        frames.set_address_size(self.word() as u8);
        let bases = gimli::BaseAddresses::default().set_eh_frame(section.address);
        let mut entries = frames.entries(&bases);
        let mut records = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(record) = partial.parse(gimli::EhFrame::cie_from_offset) else { continue };
            let start = record.offset() as u64;
            // The length is without its own four bytes.
            let bytes = start..start.saturating_add(4 + record.entry_len() as u64);
            records.push(UnwindRecord { code: record.initial_address()..record.end_address(), bytes });
        }
        records
    }
}
