//! The classes of instructions of which only the bytes are known: those that an emulator has executed.

use crate::code::class::Class;
use crate::code::model::CodeError;
use crate::code::{others, x86};

/// The class of each instruction of an ABI; `None`: those of 32-bit ARM, whose two instruction sets have the same bytes, and of
/// unknown ABIs.
///
/// # Errors
/// There is no disassembler.
pub fn classes(abi: &str, instructions: &[&[u8]]) -> Result<Option<Vec<Class>>, CodeError> {
    use others::Kind;
    let kind = match abi {
        "x86-64" | "x32" | "i386" => {
            let bits = if abi == "i386" { 32 } else { 64 };
            return Ok(Some(instructions.iter().map(|bytes| x86::class_of_bytes(bytes, bits)).collect()));
        }
        "ppc64" => Kind::Ppc64,
        "ppc64el" => Kind::Ppc64Le,
        "ppc" => Kind::Ppc,
        "arm64" => Kind::Arm64,
        "riscv64" => Kind::RiscV64,
        "s390x" => Kind::S390x,
        _ => return Ok(None),
    };
    others::classes(kind, instructions).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_the_class_of_its_abi() {
        let one = |abi: &str, bytes: &[u8]| classes(abi, &[bytes]).unwrap().map(|all| all[0]);
        // push %rax; mov (%rdi),%eax; addsd %xmm1,%xmm0; `inc %eax` on i386, a prefix elsewhere.
        assert_eq!(one("x86-64", &[0x50]), Some(Class::Stack));
        assert_eq!(one("x32", &[0x8b, 0x07]), Some(Class::LoadStore));
        assert_eq!(one("x86-64", &[0xf2, 0x0f, 0x58, 0xc1]), Some(Class::SseScalarDouble));
        assert_eq!(one("i386", &[0x40]), Some(Class::Integer));
        assert_eq!(one("x86-64", &[0x40]), Some(Class::Invalid));
        assert_eq!(one("ppc", &[0x60, 0, 0, 0]), Some(Class::Nop));
        assert_eq!(one("ppc64", &[0x4e, 0x80, 0x00, 0x20]), Some(Class::Branch));
        assert_eq!(one("arm64", &[0x20, 0x00, 0x40, 0xf9]), Some(Class::LoadStore));
        // endbr64; bti c; bic x0, x1, x2.
        assert_eq!(one("x86-64", &[0xf3, 0x0f, 0x1e, 0xfa]), Some(Class::Nop));
        assert_eq!(one("arm64", &[0x5f, 0x24, 0x03, 0xd5]), Some(Class::Nop));
        assert_eq!(one("arm64", &[0x20, 0x00, 0x22, 0x8a]), Some(Class::Integer));
        assert_eq!(one("armhf", &[0x70, 0x47]), None);
    }
}
