//! The header of a bzImage: how wide the kernel is, which version it has, and where its compressed image lies.
//!
//! Source: Linux, Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".

use std::ops::Range;

/// What a bzImage says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BzImage {
    /// Whether it is a 64-bit kernel.
    pub is_64_bit: bool,
    /// The version: `6.1.0-56-amd64`; empty where the file has none.
    pub version: String,
    /// Where the compressed kernel lies in the file.
    pub payload: Range<usize>,
}

const SETUP_SECTORS: usize = 0x1f1;
const SIGNATURE: usize = 0x202;
const PROTOCOL: usize = 0x206;
const VERSION: usize = 0x20e;
/// Bit 0: the rest is loaded above 1 MiB.
const LOADED_HIGH: usize = 0x211;
const INITRD_LIMIT: usize = 0x22c;
const LOAD_FLAGS: usize = 0x236;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// The first protocol with `xloadflags`: Linux 3.8.
const LEAST_PROTOCOL: u16 = 0x020c;
/// `XLF_KERNEL_64`.
const KERNEL_64: u16 = 1;

/// Reads the header. The error is a part of a sentence whose subject is the file.
pub fn read_bytes(bytes: &[u8]) -> Result<BzImage, String> {
    if bytes.get(SIGNATURE..SIGNATURE + 4) != Some(b"HdrS") {
        return Err("is no bzImage: the signature \"HdrS\" is not at offset 0x202".to_owned());
    }
    let cut = || "is a bzImage that ends early".to_owned();
    let half = |at: usize| {
        let two = bytes.get(at..at + 2)?;
        Some(u16::from_le_bytes(two.try_into().ok()?))
    };
    let word = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        usize::try_from(u32::from_le_bytes(four.try_into().ok()?)).ok()
    };
    let protocol = half(PROTOCOL).ok_or_else(cut)?;
    if protocol < LEAST_PROTOCOL {
        return Err(format!(
            "has boot protocol {}.{}, older than 2.12 (Linux 3.8)",
            protocol >> 8,
            protocol & 0xff
        ));
    }
    // 0 means 4, for historical reasons.
    let sectors = match bytes[SETUP_SECTORS] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let begin = (sectors + 1) * 512 + word(PAYLOAD_OFFSET).ok_or_else(cut)?;
    let end = begin.checked_add(word(PAYLOAD_LENGTH).ok_or_else(cut)?).ok_or_else(cut)?;
    if end > bytes.len() {
        return Err(cut());
    }
    let version = half(VERSION).filter(|at| *at != 0).and_then(|at| bytes.get(usize::from(at) + 0x200..));
    let version = version.map(|text| text.split(|byte| matches!(byte, 0 | b' ')).next().unwrap_or_default());
    Ok(BzImage {
        is_64_bit: half(LOAD_FLAGS).ok_or_else(cut)? & KERNEL_64 != 0,
        version: String::from_utf8_lossy(version.unwrap_or_default()).into_owned(),
        payload: begin..end,
    })
}

/// Where the code of [`minimal`] lies: in the segment that a boot loader enters at 0x200, its offset is less by 0x200.
pub const CODE: usize = 0x268;

/// The smallest 64-bit bzImage whose real-mode part is `code`: enough for QEMU to boot it. `code` ends before 0x600.
pub fn minimal(code: &[u8]) -> Vec<u8> {
    let mut image = vec![0; 0x600];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(SETUP_SECTORS, &[1]);
    put(0x200, &[0xeb, (CODE - 0x202) as u8]); // a jump past the header
    put(SIGNATURE, b"HdrS");
    put(PROTOCOL, &0x020f_u16.to_le_bytes());
    put(LOADED_HIGH, &[1]);
    put(INITRD_LIMIT, &0x7fff_ffff_u32.to_le_bytes());
    put(LOAD_FLAGS, &[0x7f]);
    put(PAYLOAD_OFFSET, &[0x10]);
    put(PAYLOAD_LENGTH, &[0x40]);
    put(CODE, code);
    image
}

/// How a payload is compressed, by its first bytes (Linux, `lib/decompress.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip(1)
    Gzip,
    /// xz(1)
    Xz,
    /// zstd(1)
    Zstd,
}

impl Compression {
    /// The compression of these bytes; none for the rarer ones (bzip2, lzma, lzo, lz4).
    pub fn of(payload: &[u8]) -> Option<Compression> {
        const MAGIC: [(&[u8], Compression); 3] = [
            (b"\x1f\x8b", Compression::Gzip),
            (b"\xfd7zXZ\0", Compression::Xz),
            (b"\x28\xb5\x2f\xfd", Compression::Zstd),
        ];
        MAGIC.into_iter().find(|(magic, _)| payload.starts_with(magic)).map(|(_, compression)| compression)
    }
}

/// Whether an uncompressed kernel can be started directly: it has the note of that entry (PVH; Linux,
/// `include/xen/interface/elfnote.h`, `XEN_ELFNOTE_PHYS32_ENTRY`).
pub fn has_direct_entry(kernel: &[u8]) -> bool {
    let note = |size: u8| [4, 0, 0, 0, size, 0, 0, 0, 18, 0, 0, 0, b'X', b'e', b'n', 0];
    let notes = [note(4), note(8)];
    kernel.starts_with(b"\x7fELF")
        && kernel.windows(16).step_by(4).any(|window| notes.iter().any(|n| n == window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image() -> Vec<u8> {
        let mut bytes = minimal(&[]);
        bytes[VERSION..VERSION + 2].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x310].copy_from_slice(b"6.1.0-56-amd64 (");
        bytes
    }

    #[test]
    fn a_header_has_width_version_and_the_place_of_the_kernel() {
        let read = read_bytes(&image()).unwrap();
        let expected = BzImage { is_64_bit: true, version: "6.1.0-56-amd64".into(), payload: 0x410..0x450 };
        assert_eq!(read, expected);
        let mut narrow = image();
        narrow[LOAD_FLAGS] = 4;
        assert!(!read_bytes(&narrow).unwrap().is_64_bit);
    }

    #[test]
    fn what_is_no_kernel_and_what_is_cut_off_is_refused() {
        assert!(read_bytes(b"\x7fELF").unwrap_err().contains("no bzImage"));
        assert!(read_bytes(&image()[..0x430]).unwrap_err().contains("ends early"));
        let mut old = image();
        old[PROTOCOL] = 3;
        assert!(read_bytes(&old).unwrap_err().contains("boot protocol 2.3"));
        assert_eq!(Compression::of(b"\xfd7zXZ\0abc"), Some(Compression::Xz));
        assert_eq!(Compression::of(b"BZh9"), None);
        assert!(!has_direct_entry(b"\x7fELF and nothing else"));
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(damage in proptest::collection::vec((0usize..0x600, any::<u8>()), 0..12), length in 0usize..0x600) {
            let mut bytes = image();
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            bytes.truncate(length);
            if let Ok(read) = read_bytes(&bytes) {
                prop_assert!(read.payload.end <= bytes.len());
                let _ = Compression::of(&bytes[read.payload]);
            }
        }
    }
}
