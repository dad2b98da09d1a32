//! The debug sections of a file, uncompressed.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use rustc_hash::FxHashMap;

use crate::elf::{section_flag, Elf, Section};

/// A slice of a debug section.
pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Sections of more bytes than this times their compressed bytes, and more than the next constant, are no compiler's.
const MOST_TIMES: u64 = 100;
const ALWAYS_FITS: u64 = 64 << 20;

/// The debug sections of a file.
#[derive(Debug)]
pub struct Sections<'a> {
    bytes: FxHashMap<&'static str, Cow<'a, [u8]>>,
    endian: RunTimeEndian,
    /// Sections that are compressed: offsets in them are none of the file.
    compressed: Vec<&'static str>,
    /// The addresses of the sections with code, in their order.
    pub(super) code: Vec<Range<u64>>,
    /// What could not be read.
    pub(super) unread: Vec<String>,
}

/// What is read of the debug information.
const READ: [SectionId; 12] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

impl<'a> Sections<'a> {
    /// Finds the sections of a linked file and uncompresses them.
    pub fn of(elf: &Elf<'a>) -> Sections<'a> {
        let endian = match elf.endian {
            object::Endianness::Little => RunTimeEndian::Little,
            object::Endianness::Big => RunTimeEndian::Big,
        };
        let mut found = Sections {
            bytes: FxHashMap::default(),
            endian,
            compressed: Vec::new(),
            code: code(elf),
            unread: Vec::new(),
        };
        for id in READ {
            let old = id.name().replacen('.', ".z", 1);
            let Some(section) = elf.section(id.name()).or_else(|| elf.section(&old)) else { continue };
            let is_compressed = section.has(section_flag::COMPRESSED) || section.name == old;
            let most = section.size.saturating_mul(MOST_TIMES).max(ALWAYS_FITS);
            match elf.unpacked_up_to(section, most) {
                Ok(bytes) => {
                    found.bytes.insert(id.name(), bytes);
                }
                Err(error) => found.unread.push(error.to_string()),
            }
            if is_compressed {
                found.compressed.push(id.name());
            }
        }
        found
    }

    /// Whether there is any debug information.
    pub fn has_units(&self) -> bool {
        self.bytes.get(SectionId::DebugInfo.name()).is_some_and(|bytes| !bytes.is_empty())
    }

    /// Whether offsets in a section are offsets in the file, too.
    pub fn is_plain(&self, section: &str) -> bool {
        !self.compressed.contains(&section)
    }

    /// A section's bytes; none where there is no such section.
    pub(super) fn slice(&self, id: SectionId) -> Slice<'_> {
        EndianSlice::new(self.bytes.get(id.name()).map_or(&[][..], |bytes| bytes), self.endian)
    }

    pub(super) fn dwarf(&self) -> Dwarf<Slice<'_>> {
        match Dwarf::load(|id| Ok::<_, std::convert::Infallible>(self.slice(id))) {
            Ok(dwarf) => dwarf,
            Err(never) => match never {},
        }
    }

    pub(super) fn aranges(&self) -> gimli::DebugAranges<Slice<'_>> {
        gimli::DebugAranges::from(self.slice(SectionId::DebugAranges))
    }
}

/// The addresses of the sections with code. The separate file of a program has them without their bytes.
fn code(elf: &Elf) -> Vec<Range<u64>> {
    let is_code =
        |section: &&Section| section.has(section_flag::EXECINSTR) && section.has(section_flag::ALLOC);
    let range = |section: &Section| section.address..section.address.saturating_add(section.size);
    let mut code: Vec<Range<u64>> = elf.sections.iter().filter(is_code).map(range).collect();
    code.retain(|range| !range.is_empty());
    code.sort_unstable_by_key(|range| (range.start, range.end));
    code
}

/// Longer texts are cut.
pub(super) const LONGEST: usize = 16 << 10;

/// The text of an attribute.
pub(super) fn text<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &gimli::Unit<Slice<'a>>,
    value: gimli::AttributeValue<Slice<'a>>,
) -> Option<Vec<u8>> {
    let bytes = dwarf.attr_string(unit, value).ok()?.slice();
    Some(bytes[..bytes.len().min(LONGEST)].to_vec())
}
