//! What the symbol table names: stretches of sections, by their place in the section.

use super::{section_flag, Elf, Symbol, SymbolKind, RELOCATABLE};

/// `e_machine` of 32-bit ARM: the lowest bit of a function's address says Thumb (AAELF32, 5.5.3).
pub const ARM: u16 = 40;
/// `e_machine` of 64-bit PowerPC.
pub const PPC64: u16 = 21;
/// `PT_TLS`.
const TLS_SEGMENT: u32 = 7;
/// A function descriptor of ELFv1: entry, TOC, environment (64-bit PowerPC ELF ABI, 3.2.5).
const DESCRIPTOR: u64 = 24;

/// A stretch of a section that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The symbol's name, mangled.
    pub name: &'a [u8],
    /// The number of its section.
    pub section: usize,
    /// Where it begins in the section.
    pub start: u64,
    /// Its size in bytes; never 0.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// A function in Thumb code.
    pub is_thumb: bool,
}

impl<'a> Elf<'a> {
    /// All stretches with a name, in the order of their sections and beginnings. Of several names of one beginning the
    /// largest stretch comes first, then the shortest name. A function descriptor names itself and its code.
    pub fn named(&self) -> Vec<Named<'a>> {
        let Some(table) = self.symbol_table() else { return Vec::new() };
        self.named_by(self.symbols(table).into_iter())
    }

    /// What these symbols name.
    pub(super) fn named_by(&self, symbols: impl Iterator<Item = Symbol<'a>>) -> Vec<Named<'a>> {
        let tls =
            self.segments.iter().find(|segment| segment.kind == TLS_SEGMENT).map(|segment| segment.address);
        let mut all = Vec::new();
        for symbol in symbols {
            self.place(&symbol, tls, &mut all);
        }
        all.sort_by(|a: &Named, b| {
            let key = |one: &Named| (one.section, one.start, std::cmp::Reverse(one.size), one.name.len());
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(b.name))
        });
        all
    }

    fn place(&self, symbol: &Symbol<'a>, tls: Option<u64>, all: &mut Vec<Named<'a>>) {
        let Some(section) = self.sections.get(symbol.section) else { return };
        let is_thumb = self.machine == ARM && symbol.kind == SymbolKind::Function && symbol.value & 1 == 1;
        let value = symbol.value - u64::from(is_thumb);
        let address = match (self.kind, symbol.kind, tls) {
            (RELOCATABLE, ..) => Some(value),
            (_, SymbolKind::ThreadLocal, Some(tls)) => {
                tls.checked_add(value).and_then(|address| address.checked_sub(section.address))
            }
            _ => value.checked_sub(section.address),
        };
        let Some(start) = address.filter(|start| *start < section.size) else { return };
        let named =
            |section, start, size, kind| Named { name: symbol.name, section, start, size, kind, is_thumb };
        if symbol.size == 0 || symbol.kind == SymbolKind::Other || symbol.name.is_empty() {
            return;
        }
        if self.machine == PPC64 && section.name == ".opd" {
            let code = usize::try_from(start).ok().and_then(|start| self.word_at(self.data(section), start));
            let code = code.and_then(|code| Some((code, self.code_section(code)?)));
            if let (Some((code, number)), true) = (code, self.kind != RELOCATABLE) {
                let start = code - self.sections[number].address;
                all.push(named(
                    number,
                    start,
                    symbol.size.min(self.sections[number].size - start),
                    SymbolKind::Function,
                ));
            }
            all.push(named(symbol.section, start, DESCRIPTOR.min(section.size - start), SymbolKind::Object));
            return;
        }
        all.push(named(symbol.section, start, symbol.size.min(section.size - start), symbol.kind));
    }

    /// The executable section that an address is in.
    pub fn code_section(&self, address: u64) -> Option<usize> {
        self.sections.iter().position(|section| {
            section.has(section_flag::EXECINSTR)
                && address.checked_sub(section.address).is_some_and(|start| start < section.size)
        })
    }
}

/// A symbol's name without its version: `memcpy` of `memcpy@GLIBC_2.14`.
pub fn without_version(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == b'@').unwrap_or(name.len());
    &name[..end]
}
