//! Waste, as facts.

/// Why bytes are waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WasteKind {
    /// Virtual functions that no class of the program overrides: their entries in virtual tables, with relocation records.
    NeverOverridden,
    /// Template functions with the same code that differ in nothing but a pointer's type: all but the largest.
    PointerTemplates,
    /// Strings and named constants that are in the file more than once: all but the first.
    DuplicateConstants,
}

/// Waste with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waste {
    /// Why.
    pub kind: WasteKind,
    /// The function, demangled; the template with `?*` for the pointers that differ; the constant, or the string in quotes.
    pub name: String,
    /// Table entries, functions or constants.
    pub count: u64,
    /// Bytes that would be saved.
    pub bytes: u64,
}
