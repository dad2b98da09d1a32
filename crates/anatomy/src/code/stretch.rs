//! The stretches of code to decode: functions by their symbols, and on x86 what lies between them.

use crate::elf::named::{Named, PPC64};
use crate::elf::{section_flag, section_type, Elf, SymbolKind};

/// A stretch of code to decode.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    pub(super) name: &'a [u8],
    pub(super) section: usize,
    pub(super) address: u64,
    pub(super) bytes: &'a [u8],
    pub(super) is_thumb: bool,
}

/// Functions, and on x86 the code between them; and the bytes that are neither.
pub(super) fn stretches<'a>(elf: &Elf<'a>, named: &[Named<'a>], between: bool) -> (Vec<Stretch<'a>>, u64) {
    let (mut all, mut undecoded) = (Vec::new(), 0);
    // e_flags of ELFv2 is 2 (64-bit PowerPC ELFv2 ABI, 3.1.1).
    let has_tracebacks = elf.machine == PPC64 && elf.flags & 3 != 2;
    for (number, section) in elf.sections.iter().enumerate() {
        let is_code = section.has(section_flag::EXECINSTR) && section.has(section_flag::ALLOC);
        if !is_code || section.kind == section_type::NOBITS {
            continue;
        }
        let data = elf.data(section);
        let mut at = 0;
        let stretch = |name: &'a [u8], from: usize, to: usize, is_thumb| Stretch {
            name,
            section: number,
            address: section.address.wrapping_add(from as u64),
            bytes: &data[from..to],
            is_thumb,
        };
        let of_section = functions_of(named, number);
        for one in of_section {
            let (start, end) = (one.start as usize, (one.start + one.size) as usize);
            if start < at || end > data.len() {
                continue;
            }
            if at < start {
                match between {
                    true => all.push(stretch(b"", at, start, false)),
                    false => undecoded += (start - at) as u64,
                }
            }
            let code = if has_tracebacks { start + without_traceback(&data[start..end]) } else { end };
            all.push(stretch(one.name, start, code, one.is_thumb));
            undecoded += (end - code) as u64;
            at = end;
        }
        match between {
            true if at < data.len() => all.push(stretch(b"", at, data.len(), false)),
            _ => undecoded += (data.len() - at) as u64,
        }
    }
    (all, undecoded)
}

/// The bytes of a function's instructions. In ELFv1 a table for debuggers follows them, which begins with a word of zeros, that is
/// no instruction (64-bit PowerPC ELF ABI, 3.3, "Traceback tables").
fn without_traceback(bytes: &[u8]) -> usize {
    let words = bytes.chunks_exact(4);
    words.clone().position(|word| word == [0; 4]).map_or(bytes.len(), |count| count * 4)
}

/// The functions of a section; a label with a size is one, too, as assembly sources have them.
fn functions_of<'s, 'a>(named: &'s [Named<'a>], section: usize) -> impl Iterator<Item = &'s Named<'a>> {
    let first = named.partition_point(|one| one.section < section);
    let of_section = named[first..].iter().take_while(move |one| one.section == section);
    of_section.filter(|one| matches!(one.kind, SymbolKind::Function | SymbolKind::Label))
}
