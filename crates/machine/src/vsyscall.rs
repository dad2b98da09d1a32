//! How i386 programs call the kernel: through its `__kernel_vsyscall`, whose address the kernel gives them. Where it gives none,
//! as under valgrind, glibc and musl call a function of their own, of two instructions: `int $0x80; ret`.

use std::path::Path;

use object::elf::{FileHeader32, EM_386, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::Endianness;

/// So many more instructions `__kernel_vsyscall` has than the C library's own function: it saves and restores three registers,
/// and copies one (`arch/x86/entry/vdso/vdso32/system_call.S`, the same for `sysenter` and `syscall`).
pub const MORE_INSTRUCTIONS: u64 = 7;

/// The C library's own function.
const FUNCTION: [u8; 3] = [0xcd, 0x80, 0xc3];

/// The addresses of such functions in an i386 file, in ascending order; none in any other file.
pub fn replacements(file: &Path) -> Vec<u64> {
    // Opening a named pipe would wait for its writer.
    let is_file = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    let bytes = is_file.then(|| std::fs::read(file).ok()).flatten();
    bytes.and_then(|bytes| in_bytes(&bytes)).unwrap_or_default()
}

fn in_bytes(bytes: &[u8]) -> Option<Vec<u64>> {
    let header = FileHeader32::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    if header.e_machine.get(endian) != EM_386 {
        return None;
    }
    let mut found = Vec::new();
    for segment in header.program_headers(endian, bytes).ok()? {
        if segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).contains(PF_X) {
            let begin = u64::from(segment.p_vaddr(endian));
            let code = segment.data(endian, bytes).ok()?.windows(FUNCTION.len()).enumerate();
            found.extend(code.filter(|(_, own)| *own == FUNCTION).map(|(at, _)| begin + at as u64));
        }
    }
    found.sort_unstable();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one segment of code at 0x1000.
    fn file(machine: u8) -> Vec<u8> {
        let mut bytes = vec![0; 52 + 32];
        bytes[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
        // An executable of version 1, with one program header of 32 bytes behind the header.
        (bytes[16], bytes[18], bytes[20], bytes[28], bytes[40], bytes[42], bytes[44]) =
            (2, machine, 1, 52, 52, 32, 1);
        let code = [0x90, 0xcd, 0x80, 0x90, 0xc3, 0xcd, 0x80, 0xc3];
        for (at, value) in [(0, 1), (4, 84), (8, 0x1000), (16, 8), (20, 8), (24, 5)] {
            bytes[52 + at..56 + at].copy_from_slice(&u32::to_le_bytes(value));
        }
        [bytes, code.to_vec()].concat()
    }

    #[test]
    fn a_call_of_the_kernel_that_returns_at_once_is_found_in_i386_code_alone() {
        assert_eq!(in_bytes(&file(3)), Some(vec![0x1005]));
        assert_eq!(in_bytes(&file(62)), None);
        assert_eq!(in_bytes(&file(3)[..60]), None);
        assert_eq!(in_bytes(b"text"), None);
    }
}
