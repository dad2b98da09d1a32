//! Which architecture a file is for.

use crate::code::model::CodeError;
use crate::code::others;
use crate::elf::Elf;

/// The architecture of a file, by `e_machine` (gABI, and each psABI).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86 { bits: u32 },
    Other(others::Kind),
}

pub(super) fn architecture(elf: &Elf) -> Result<(Architecture, &'static str), CodeError> {
    use others::Kind;
    let is_big = elf.endian == object::Endianness::Big;
    Ok(match (elf.machine, elf.is_64) {
        (62, true) => (Architecture::X86 { bits: 64 }, "x86-64"),
        (62, false) => (Architecture::X86 { bits: 64 }, "x32"),
        (3, _) => (Architecture::X86 { bits: 32 }, "i386"),
        (21, _) if is_big => (Architecture::Other(Kind::Ppc64), "ppc64"),
        (21, _) => (Architecture::Other(Kind::Ppc64Le), "ppc64el"),
        (20, _) => (Architecture::Other(Kind::Ppc), "ppc"),
        (183, _) => (Architecture::Other(Kind::Arm64), "arm64"),
        (40, _) if !is_big => (Architecture::Other(Kind::Arm), "armhf"),
        (243, true) => (Architecture::Other(Kind::RiscV64), "riscv64"),
        (22, true) => (Architecture::Other(Kind::S390x), "s390x"),
        (machine, _) => return Err(CodeError::Machine(machine)),
    })
}

/// The name of a file's architecture, if its code can be decoded.
pub fn architecture_name(elf: &Elf) -> Option<&'static str> {
    architecture(elf).ok().map(|(_, name)| name)
}
