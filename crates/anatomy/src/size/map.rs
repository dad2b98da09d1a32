//! The file from its beginning to its end.

use std::ops::Range;

use crate::elf::Elf;

/// What a stretch of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PieceKind {
    /// The ELF header.
    Header,
    /// The table of segments.
    ProgramHeaders,
    /// The table of sections.
    SectionHeaders,
    /// A section, by its number.
    Section(usize),
    /// Zeros between two of these: alignment.
    Padding,
    /// Other bytes that no section covers.
    Uncovered,
}

/// A stretch of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it is in the file.
    pub range: Range<u64>,
}

/// Divides the file. Where two claim the same bytes, as in a damaged file, the first has them.
pub fn pieces(elf: &Elf) -> Vec<Piece> {
    let mut claims: Vec<Piece> = [
        (PieceKind::Header, &elf.header),
        (PieceKind::ProgramHeaders, &elf.program_headers),
        (PieceKind::SectionHeaders, &elf.section_headers),
    ]
    .into_iter()
    .map(|(kind, range)| Piece { kind, range: range.clone() })
    .collect();
    let sections = elf.sections.iter().enumerate().filter(|(_, section)| section.kind != 0);
    claims.extend(
        sections
            .map(|(number, section)| Piece { kind: PieceKind::Section(number), range: section.file_range() }),
    );
    claims.retain(|claim| !claim.range.is_empty());
    claims.sort_by_key(|claim| (claim.range.start, claim.kind));
    let size = elf.bytes.len() as u64;
    let mut pieces = Vec::new();
    let mut at = 0;
    for claim in claims {
        let range = claim.range.start.max(at)..claim.range.end.min(size);
        if range.is_empty() {
            continue;
        }
        pieces.extend(gap(elf, at..range.start));
        at = range.end;
        pieces.push(Piece { kind: claim.kind, range });
    }
    pieces.extend(gap(elf, at..size));
    pieces
}

fn gap(elf: &Elf, range: Range<u64>) -> Option<Piece> {
    let bytes = elf.slice(range.clone());
    let kind = if bytes.iter().all(|byte| *byte == 0) { PieceKind::Padding } else { PieceKind::Uncovered };
    (!range.is_empty()).then_some(Piece { kind, range })
}
