//! Equal constants: strings and named values of read-only sections that the linker has not merged.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::model::{Waste, WasteKind};
use crate::elf::named::Named;
use crate::elf::{section_flag, section_type, Elf, Section, SymbolKind};
use crate::names::demangled;

/// Shorter constants are not worth a name.
const SHORTEST: usize = 8;
/// Characters of a string that are shown.
const SHOWN: usize = 40;

/// All constants that are in the file more than once.
pub(super) fn duplicates(elf: &Elf, named: &[Named]) -> Vec<Waste> {
    let mut values: FxHashMap<&[u8], (u64, &[u8])> = FxHashMap::default();
    let mut strings: FxHashMap<&[u8], u64> = FxHashMap::default();
    for (number, section) in elf.sections.iter().enumerate().filter(|(_, section)| is_constant(section)) {
        let data = elf.data(section);
        let first = named.partition_point(|one| one.section < number);
        let mut at = 0;
        for one in named[first..].iter().take_while(|one| one.section == number) {
            let Some(range) = within(one, at, data.len()) else { continue };
            texts(&data[at..range.start], &mut strings);
            at = range.end;
            let value = &data[range];
            if one.kind != SymbolKind::Object || value.len() < SHORTEST {
                continue;
            }
            let known = values.entry(value).or_insert((0, one.name));
            known.0 += 1;
            known.1 = known.1.min(one.name);
        }
        texts(&data[at..], &mut strings);
    }
    let of_values = values.into_iter().filter(|(_, (count, _))| *count > 1).map(|(value, (count, name))| {
        let name = demangled(&String::from_utf8_lossy(name));
        waste(name, count, value.len() as u64)
    });
    let of_strings = strings.into_iter().filter(|(_, count)| *count > 1).map(|(text, count)| {
        let text_size = text.len() as u64 + 1;
        let text = String::from_utf8_lossy(text);
        let cut: String = text.chars().take(SHOWN).collect();
        let mark = if cut.len() < text.len() { "…" } else { "" };
        waste(format!("\"{cut}{mark}\""), count, text_size)
    });
    of_values.chain(of_strings).collect()
}

fn waste(name: String, count: u64, size: u64) -> Waste {
    Waste { kind: WasteKind::DuplicateConstants, name, count, bytes: (count - 1) * size }
}

fn is_constant(section: &Section) -> bool {
    section.name.starts_with(".rodata")
        && section.kind != section_type::NOBITS
        && section.has(section_flag::ALLOC)
        && !section.has(section_flag::WRITE)
        && !section.has(section_flag::EXECINSTR)
}

/// A symbol's place, if it is behind what has been read and inside the section.
fn within(one: &Named, at: usize, size: usize) -> Option<Range<usize>> {
    let start = usize::try_from(one.start).ok()?;
    let end = start.checked_add(usize::try_from(one.size).ok()?)?;
    (start >= at && end <= size).then_some(start..end)
}

/// Printable strings that end with a zero, and begin behind one or at the beginning.
fn texts<'a>(data: &'a [u8], found: &mut FxHashMap<&'a [u8], u64>) {
    let mut parts = data.split(|byte| *byte == 0);
    // What is behind the last zero has no end.
    parts.next_back();
    for text in parts {
        let is_text = || {
            let is_control =
                |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t' | b'\r' | 0x1b);
            !text.iter().any(is_control) && std::str::from_utf8(text).is_ok()
        };
        if text.len() >= SHORTEST && is_text() {
            *found.entry(text).or_default() += 1;
        }
    }
}
