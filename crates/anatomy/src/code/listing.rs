//! One function, instruction by instruction.

use crate::code::architecture::{architecture, Architecture};
use crate::code::line::Line;
use crate::code::model::CodeError;
use crate::code::stretch::stretches;
use crate::code::{others, x86};
use crate::elf::named::Named;
use crate::elf::Elf;

/// The instructions of the function with that mangled name; none where the file has no such function.
///
/// # Errors
/// [`CodeError`]: no decoder.
pub fn listing(elf: &Elf, named: &[Named], name: &[u8]) -> Result<Vec<Line>, CodeError> {
    let (architecture, _) = architecture(elf)?;
    let (all, _) = stretches(elf, named, false);
    let Some(stretch) = all.iter().find(|stretch| stretch.name == name) else { return Ok(Vec::new()) };
    match architecture {
        Architecture::X86 { bits } => Ok(x86::listing(stretch, bits)),
        Architecture::Other(kind) => others::listing(kind, stretch),
    }
}
