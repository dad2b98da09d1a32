//! Compile units and inlined copies, as facts.

use std::ops::Range;

/// What a program's debug information says of its addresses.
#[derive(Debug, Clone, Default)]
pub struct Units {
    /// The compile units, in the order of the debug information.
    pub units: Vec<Unit>,
    /// Where copies of functions are; not sorted.
    pub inlined: Vec<InlinedRange>,
    /// The functions that these are copies of: mangled names, or plain ones in C, or qualified ones where C++ has none. An empty one is not known.
    pub functions: Vec<Vec<u8>>,
    /// Parts of debug sections that belong to one unit.
    pub contributions: Vec<Contribution>,
    /// What could not be read, each reason once.
    pub unread: Vec<String>,
}

/// One compile unit.
#[derive(Debug, Clone, Default)]
pub struct Unit {
    /// The source file as the compiler was given it, without the folder of the compilation.
    pub name: String,
    /// Its code in the file: each range is inside one section.
    pub ranges: Vec<Range<u64>>,
    /// The addresses of its variables.
    pub variables: Vec<u64>,
    /// Whether its entries are in another file (`-gsplit-dwarf`), so that its inlined copies and variables are not known.
    pub is_split: bool,
}

/// A stretch of code that is a copy of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlinedRange {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// In how many other copies it is.
    pub depth: u32,
    /// Its function's place in [`Units::functions`].
    pub function: u32,
    /// The copy that it is a part of: a number for each.
    pub copy: u32,
}

/// A part of a debug section that belongs to one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// The section, such as `.debug_line`.
    pub section: &'static str,
    /// Bytes from the section's beginning.
    pub range: Range<u64>,
    /// The unit's place in [`Units::units`].
    pub unit: u32,
}
