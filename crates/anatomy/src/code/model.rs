//! A file's code as facts: its functions and what they are made of.

use std::borrow::Cow;

use crate::code::counts::Counts;

/// One function.
#[derive(Debug, Clone)]
pub struct Function<'a> {
    /// Its mangled name; empty for code that no symbol covers.
    pub name: &'a [u8],
    /// Its address, or its offset in its section in relocatable files.
    pub address: u64,
    /// Its section.
    pub section: Cow<'a, str>,
    /// What it is made of.
    pub counts: Counts,
}

/// A file's code.
#[derive(Debug, Clone)]
pub struct Code<'a> {
    /// The architecture's name.
    pub architecture: &'static str,
    /// All functions, in the order of their addresses.
    pub functions: Vec<Function<'a>>,
    /// Bytes of executable sections that were not decoded: outside of functions, where code may be data, and zeros that pad.
    pub undecoded: u64,
    /// Whether functions have names: a stripped program is decoded as a whole.
    pub has_symbols: bool,
}

impl Code<'_> {
    /// The sum of all functions.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for function in &self.functions {
            total.add(&function.counts);
        }
        total
    }
}

/// Why a file's code is not decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The machine is not among those with a decoder here.
    #[error("there is no decoder for the machine with the ELF number {0}")]
    Machine(u16),
    /// The disassembler refused.
    #[error("the disassembler failed: {0}")]
    Disassembler(String),
}
