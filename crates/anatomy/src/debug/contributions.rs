//! Which parts of the debug sections are which unit's.

use gimli::{Reader as _, SectionId, UnitHeader};
use rustc_hash::FxHashMap;

use super::model::Contribution;
use super::sections::{Sections, Slice};

/// Places in other sections that a unit refers to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offsets {
    /// Its line program in `.debug_line`, from the first byte to the one behind the last.
    pub line: Option<(u64, u64)>,
    /// An offset in `.debug_rnglists`, and one in `.debug_loclists`, that is in the unit's own table.
    pub ranges: Option<u64>,
    pub locations: Option<u64>,
}

/// The parts of `.debug_info`, `.debug_abbrev`, `.debug_line`, `.debug_aranges`, and of DWARF 5's lists. Strings are shared; the lists
/// of earlier versions are in no tables.
pub(super) fn contributions(
    sections: &Sections,
    headers: &[UnitHeader<Slice<'_>>],
    offsets: &[Offsets],
) -> Vec<Contribution> {
    let mut all = Vec::new();
    let mut put = |section, start: u64, end: u64, unit: usize| {
        if start < end && sections.is_plain(section) {
            all.push(Contribution { section, range: start..end, unit: unit as u32 });
        }
    };
    let mut by_info: FxHashMap<u64, usize> = FxHashMap::default();
    let mut abbreviations: Vec<(u64, usize)> = Vec::new();
    for (number, header) in headers.iter().enumerate() {
        if let Some(start) = header.debug_info_offset() {
            let start = start.0 as u64;
            by_info.insert(start, number);
            put(".debug_info", start, start.saturating_add(header.length_including_self() as u64), number);
        }
        abbreviations.push((header.debug_abbrev_offset().0 as u64, number));
        if let Some((start, end)) = offsets[number].line {
            put(".debug_line", start, end, number);
        }
    }
    // A table of abbreviations ends where the next one begins. One that several units share counts for the first.
    abbreviations.sort_unstable();
    abbreviations.dedup_by_key(|(start, _)| *start);
    let end = sections.slice(SectionId::DebugAbbrev).len() as u64;
    for (at, (start, unit)) in abbreviations.iter().enumerate() {
        let next = abbreviations.get(at + 1).map_or(end, |(next, _)| *next);
        put(".debug_abbrev", *start, next, *unit);
    }
    let aranges = sections.aranges();
    let mut headers = aranges.headers();
    while let Ok(Some(table)) = headers.next() {
        if let Some(unit) = by_info.get(&(table.debug_info_offset().0 as u64)) {
            let start = table.offset().0 as u64;
            let initial = u64::from(table.encoding().format.initial_length_size());
            put(".debug_aranges", start, start.saturating_add(initial + table.length() as u64), *unit);
        }
    }
    let ranges = sections.slice(SectionId::DebugRngLists);
    for (start, end, unit) in tables(ranges, offsets.iter().map(|offsets| offsets.ranges)) {
        put(".debug_rnglists", start, end, unit);
    }
    let locations = sections.slice(SectionId::DebugLocLists);
    for (start, end, unit) in tables(locations, offsets.iter().map(|offsets| offsets.locations)) {
        put(".debug_loclists", start, end, unit);
    }
    all
}

/// The tables of a section of lists (DWARF 5, 7.28 and 7.29), each with the unit that refers to it.
fn tables(section: Slice<'_>, offsets: impl Iterator<Item = Option<u64>>) -> Vec<(u64, u64, usize)> {
    let mut own: Vec<(u64, usize)> =
        offsets.enumerate().filter_map(|(unit, offset)| Some((offset?, unit))).collect();
    own.sort_unstable();
    let (mut found, mut at) = (Vec::new(), 0_usize);
    while let Some(length) = section.slice().get(at..at.saturating_add(4)) {
        let length = <[u8; 4]>::try_from(length).unwrap_or_default();
        let length = gimli::Endianity::read_u32(section.endian(), &length);
        // 64-bit DWARF has another header, and does not occur.
        let end = at.saturating_add(4).saturating_add(length as usize);
        if length == 0 || length >= 0xffff_fff0 || end > section.slice().len() {
            break;
        }
        let next = own.partition_point(|(start, _)| *start < at as u64);
        if let Some((_, unit)) = own.get(next).filter(|(start, _)| *start < end as u64) {
            found.push((at as u64, end as u64, *unit));
        }
        at = end;
    }
    found
}
