//! The instructions of a file: how many, of which class, in which function.
//!
//! Code is decoded function by function, by the symbols' sizes: what lies between functions is padding or data
//! (ELFv1's text holds data words). On x86 it is decoded, too, but zeros are no instructions there: linkers pad with them. Without
//! symbols, x86 code is decoded from each section's beginning.

mod align;
mod architecture;
mod class;
pub mod compare;
mod counts;
mod executed;
pub(crate) mod identical;
mod line;
mod listing;
mod model;
mod others;
mod places;
mod stretch;
mod x86;

use architecture::{architecture, Architecture};
use places::Places;
use stretch::stretches;

use crate::elf::named::Named;
use crate::elf::Elf;

pub use align::{align, Row};
pub use architecture::architecture_name;
pub use class::Class;
pub use counts::Counts;
pub use executed::classes;
pub use line::Line;
pub use listing::listing;
pub use model::{Code, CodeError, Function};
pub(crate) use x86::is_idle;

/// Decodes all code of a file; `named` is what [`Elf::named`] found.
///
/// # Errors
/// [`CodeError`]: no decoder.
pub fn read<'a>(elf: &Elf<'a>, named: &[Named<'a>]) -> Result<Code<'a>, CodeError> {
    let (architecture, name) = architecture(elf)?;
    let (stretches, undecoded) = stretches(elf, named, matches!(architecture, Architecture::X86 { .. }));
    let places = Places::of(elf, named);
    let counted: Vec<Counts> = match architecture {
        Architecture::X86 { bits } => stretches.iter().map(|one| x86::count(one, bits, &places)).collect(),
        Architecture::Other(kind) => others::count(kind, &stretches)?,
    };
    let functions = stretches.iter().zip(counted).map(|(one, counts)| Function {
        name: one.name,
        address: one.address,
        section: elf.sections[one.section].name.clone(),
        counts,
    });
    let functions: Vec<Function> = functions.collect();
    let decoded: u64 = functions.iter().map(|function| function.counts.bytes).sum();
    let whole: u64 = stretches.iter().map(|one| one.bytes.len() as u64).sum();
    let undecoded = undecoded + whole.saturating_sub(decoded);
    let has_symbols = functions.is_empty() || functions.iter().any(|function| !function.name.is_empty());
    Ok(Code { architecture: name, functions, undecoded, has_symbols })
}

/// Whether bytes of code do nothing: nops, traps between functions, zeros.
pub(crate) fn is_padding(elf: &Elf, bytes: &[u8]) -> bool {
    match architecture(elf) {
        Ok((Architecture::X86 { bits }, _)) => x86::is_padding(bytes, bits),
        Ok((Architecture::Other(kind), _)) => others::is_padding(kind, bytes),
        Err(_) => false,
    }
}
