//! One side of a comparison of programs.

use std::path::PathBuf;

use widthwise_anatomy::elf::named::Named;
use widthwise_anatomy::elf::Elf;

/// One side: its name, its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The variant, or the file as it was named.
    pub name: String,
    /// The program's file.
    pub path: PathBuf,
}

/// One file with its headers.
pub struct Read<'a> {
    /// Empty for the program, else the library's name.
    pub name: String,
    /// Its headers.
    pub elf: Elf<'a>,
    /// The file that its debug information was moved to, if it has none and that file exists.
    pub separate: Option<Elf<'a>>,
    /// What its symbols name, or those of the separate file.
    pub named: Vec<Named<'a>>,
}

impl<'a> Read<'a> {
    /// Reads the symbols.
    pub fn of(name: String, elf: Elf<'a>) -> Read<'a> {
        let named = elf.named();
        Read { name, elf, separate: None, named }
    }

    /// The same with its separate file.
    pub fn with_separate(self, separate: Option<Elf<'a>>) -> Read<'a> {
        let named = match &separate {
            Some(separate) if !self.elf.has_symbol_table() => self.elf.named_in(separate),
            _ => self.named,
        };
        Read { separate, named, ..self }
    }

    /// Whether its symbols are known, and not the exported ones alone.
    pub fn has_symbols(&self) -> bool {
        self.elf.has_symbol_table() || self.separate.as_ref().is_some_and(Elf::has_symbol_table)
    }
}
