//! The size of a file: every byte belongs to one row, and the rows' sum is the file's size.
//!
//! [`map`](pieces) divides the file among headers, sections and the bytes between; [`rows`] divides each section among its
//! symbols or its relocation records; [`difference`] pairs the rows of two files. [`by_unit`] divides the same bytes among compile
//! units, [`inlined`] divides the code among the functions that it comes from, and [`waste`] names what could be spared.

pub mod by_unit;
pub mod cause;
pub mod difference;
pub mod inlined;
mod map;
mod relocation_counts;
mod rows;
pub mod variables;
pub mod waste;

pub use map::{Piece, PieceKind};
pub use rows::{Row, RowKind};

use crate::debug::{Sections, Units};
use crate::elf::named::Named;
use crate::elf::{section_flag, section_type, Elf};

/// `text`, `data` and `bss` as `size` prints them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Berkeley {
    /// Bytes that are in memory and not written to.
    pub text: u64,
    /// Bytes that are in memory and written to.
    pub data: u64,
    /// Bytes of memory that the file does not have.
    pub bss: u64,
}

/// A file's bytes.
#[derive(Debug, Clone)]
pub struct FileSize<'a> {
    /// All bytes of the file.
    pub total: u64,
    /// As `size` prints them.
    pub berkeley: Berkeley,
    /// Every byte, once; in the order of the file.
    pub rows: Vec<Row<'a>>,
    /// Whether a symbol table names more than what is exported.
    pub has_symbols: bool,
}

/// Divides a file among its headers, its sections, their symbols, and the bytes between them.
///
/// `named` is what [`Elf::named`] found.
pub fn read<'a>(elf: &Elf<'a>, named: &[Named<'a>]) -> FileSize<'a> {
    FileSize {
        total: elf.bytes.len() as u64,
        berkeley: berkeley(elf),
        rows: rows::rows(elf, &map::pieces(elf), named),
        has_symbols: elf.symbol_table().is_some_and(|table| table.kind == section_type::SYMTAB),
    }
}

/// Divides a file among its compile units: the rows' sum is the file's size. Bytes of no unit have an empty name: headers,
/// strings that units share, code of files without debug information.
pub fn units(elf: &Elf, named: &[Named], sections: &Sections, units: &Units) -> Vec<by_unit::UnitRow> {
    by_unit::rows(elf, &map::pieces(elf), named, sections, units)
}

/// The sums of binutils' `size` (its `berkeley_or_gnu_sum`): code and read-only data are text.
fn berkeley(elf: &Elf) -> Berkeley {
    let mut sums = Berkeley::default();
    for section in elf.sections.iter().filter(|section| section.has(section_flag::ALLOC)) {
        let is_writable = section.has(section_flag::WRITE);
        let is_empty = section.kind == section_type::NOBITS;
        let sum = if section.has(section_flag::EXECINSTR) || (!is_writable && !is_empty) {
            &mut sums.text
        } else if is_empty {
            &mut sums.bss
        } else {
            &mut sums.data
        };
        *sum = sum.saturating_add(section.size);
    }
    sums
}
