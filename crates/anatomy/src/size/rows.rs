//! The rows of a file: each section's bytes by symbol or relocation kind.

use std::borrow::Cow;
use std::ops::Range;

use super::map::{Piece, PieceKind};
use super::relocation_counts;
use crate::elf::named::Named;
use crate::elf::{section_flag, section_type, Elf, Section};

/// A gap that is longer than this is no alignment, whatever its bytes are.
const LONGEST_PADDING: u64 = 64;

/// What the bytes of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// The ELF header, or the table of segments or of sections.
    Headers,
    /// A symbol's.
    Symbol,
    /// Relocation records of one kind.
    Relocations,
    /// A section without symbols, as a whole.
    Section,
    /// Bytes of a section with symbols that no symbol covers.
    Unnamed,
    /// Alignment between symbols of a section.
    PaddingInside,
    /// Zeros between sections.
    PaddingBetween,
    /// Other bytes that no section covers.
    Uncovered,
}

/// Bytes with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// What they are.
    pub kind: RowKind,
    /// Their section; empty where they are in none.
    pub section: Cow<'a, str>,
    /// The section's `sh_flags`, 0 where they are in none.
    pub flags: u64,
    /// The mangled symbol, the relocation's kind, the table's name; empty where there is none.
    pub name: Cow<'a, [u8]>,
    /// How many bytes.
    pub bytes: u64,
    /// How many symbols, records or gaps these are.
    pub count: u64,
    /// The size of one record, 0 where these are no records.
    pub record: u64,
}

/// The rows of all pieces.
pub fn rows<'a>(elf: &Elf<'a>, pieces: &[Piece], named: &[Named<'a>]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for piece in pieces {
        let bytes = piece.range.end - piece.range.start;
        let outside = |kind, name: &'static str, count, record| Row {
            kind,
            section: Cow::Borrowed(""),
            flags: 0,
            name: Cow::Borrowed(name.as_bytes()),
            bytes,
            count,
            record,
        };
        let segments = elf.segments.len() as u64;
        let sections = elf.sections.len() as u64;
        match piece.kind {
            PieceKind::Header => rows.push(outside(RowKind::Headers, "ELF header", 1, bytes)),
            PieceKind::ProgramHeaders => {
                rows.push(outside(RowKind::Headers, "program headers", segments, bytes / segments.max(1)));
            }
            PieceKind::SectionHeaders => {
                rows.push(outside(RowKind::Headers, "section headers", sections, bytes / sections.max(1)));
            }
            PieceKind::Padding => {
                rows.push(outside(RowKind::PaddingBetween, "padding between sections", 1, 0))
            }
            PieceKind::Uncovered => rows.push(outside(RowKind::Uncovered, "covered by no section", 1, 0)),
            PieceKind::Section(number) => section_rows(elf, number, &piece.range, named, &mut rows),
        }
    }
    rows
}

/// The rows of one section, of which the piece may be a part.
fn section_rows<'a>(
    elf: &Elf<'a>,
    number: usize,
    piece: &Range<u64>,
    named: &[Named<'a>],
    rows: &mut Vec<Row<'a>>,
) {
    let section = &elf.sections[number];
    let row = |kind, name: Cow<'a, [u8]>, bytes, count, record| Row {
        kind,
        section: section.name.clone(),
        flags: section.flags,
        name,
        bytes,
        count,
        record,
    };
    let whole = piece.end - piece.start;
    if matches!(section.kind, section_type::REL | section_type::RELA) && section.entry_size > 0 {
        let mut left = whole;
        for (kind, count) in relocation_counts::kinds(elf, section, elf.slice(piece.clone())) {
            let bytes = count * section.entry_size;
            left -= bytes;
            rows.push(row(
                RowKind::Relocations,
                Cow::Owned(kind.into_bytes()),
                bytes,
                count,
                section.entry_size,
            ));
        }
        if left > 0 {
            rows.push(row(RowKind::Unnamed, Cow::Borrowed(b""), left, 1, 0));
        }
        return;
    }
    let first = named.partition_point(|one| one.section < number);
    let behind = named.partition_point(|one| one.section <= number);
    if first == behind || !section.has(section_flag::ALLOC) {
        // Not every section with the size of an entry is a table: i386 says 4 of its procedure linkage table, and 1 is said of texts.
        let is_table = !section.has(section_flag::EXECINSTR) && !section.has(section_flag::STRINGS);
        let record = if is_table { section.entry_size.min(whole) } else { 0 };
        let count = whole.checked_div(record).unwrap_or(1);
        rows.push(row(RowKind::Section, Cow::Borrowed(b""), whole, count, record));
        return;
    }
    let begin = piece.start - section.offset;
    let end = begin + whole;
    let mut at = begin;
    let gap = |from: u64, to: u64, rows: &mut Vec<Row<'a>>| {
        if from < to {
            let bytes = elf.slice(section.offset + from..section.offset + to);
            let kind =
                if is_padding(elf, section, bytes) { RowKind::PaddingInside } else { RowKind::Unnamed };
            rows.push(row(kind, Cow::Borrowed(b""), to - from, 1, 0));
        }
    };
    for one in &named[first..behind] {
        let range = one.start.max(at)..one.start.saturating_add(one.size).min(end);
        if range.is_empty() {
            continue;
        }
        gap(at, range.start, rows);
        at = range.end;
        rows.push(row(RowKind::Symbol, Cow::Borrowed(one.name), range.end - range.start, 1, 0));
    }
    gap(at, end, rows);
}

/// Whether bytes between two symbols are alignment: zeros, or in code what does nothing.
fn is_padding(elf: &Elf, section: &Section, bytes: &[u8]) -> bool {
    if bytes.len() as u64 > LONGEST_PADDING {
        return false;
    }
    bytes.iter().all(|byte| *byte == 0)
        || (section.has(section_flag::EXECINSTR) && crate::code::is_padding(elf, bytes))
}

/// `.rela.dyn` is what `.rel.dyn` is in another ABI.
pub(super) fn section_key(name: &str) -> &str {
    match name {
        ".rela.dyn" => ".rel.dyn",
        ".rela.plt" => ".rel.plt",
        ".rela.eh_frame" => ".rel.eh_frame",
        other => other,
    }
}
