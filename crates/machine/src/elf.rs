//! What a file is: its ABI, and whether it needs a dynamic loader.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader32, FileHeader64, PF_W, PT_INTERP, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};
use thiserror::Error;

use crate::abi::{self, Abi};

/// The size of a page of every x86.
const PAGE: u64 = 4096;

/// What an ELF file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfFacts {
    /// ELF class: 1 for 32-bit, 2 for 64-bit.
    pub class: u8,
    /// ELF machine number (`e_machine`).
    pub machine: u16,
    /// The loader it asks for (PT_INTERP); absent if it is static, or a shared object.
    pub interpreter: Option<PathBuf>,
    /// What kind of file.
    pub kind: ElfKind,
    /// Bytes of the whole pages that its zero-initialised variables take behind those that hold the file's own data.
    pub zero_pages: u64,
}

/// What kind of ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfKind {
    /// Can be started: an executable, position-independent or not.
    Program,
    /// A shared object without an interpreter (a static position-independent program looks the same).
    SharedObject,
    /// Neither: an object file, a core dump.
    Other,
}

/// Why a file is not a usable ELF file.
#[derive(Debug, Error)]
pub enum ElfError {
    /// It could not be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path}: {found}, not a program in ELF format")]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What it seems to be instead.
        found: &'static str,
    },
    /// It begins like one and is damaged.
    #[error("{path}: damaged ELF file: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why bytes are not those of an ELF file of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BytesError {
    /// They are something else; what they seem to be.
    NotElf(&'static str),
    /// They begin like one; what is wrong with them.
    Damaged(String),
}

impl ElfFacts {
    /// The ABI, if it is one of ours.
    pub fn abi(&self) -> Option<Abi> {
        abi::of_elf(self.class, self.machine)
    }

    /// Whether it is started through a dynamic loader.
    pub fn is_dynamic(&self) -> bool {
        self.interpreter.is_some()
    }
}

/// What the file is. Reads headers only, however large the file.
pub fn read(path: &Path) -> Result<ElfFacts, ElfError> {
    let unreadable = |source| ElfError::Unreadable { path: path.to_path_buf(), source };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        // Opening a named pipe would wait for its writer.
        let found = if metadata.is_dir() { "a folder" } else { "a device or pipe" };
        return Err(ElfError::NotElf { path: path.to_path_buf(), found });
    }
    let cache = ReadCache::new(File::open(path).map_err(unreadable)?);
    read_from(&cache).map_err(|error| match error {
        BytesError::NotElf(found) => ElfError::NotElf { path: path.to_path_buf(), found },
        BytesError::Damaged(reason) => ElfError::Damaged { path: path.to_path_buf(), reason },
    })
}

/// What the bytes are.
pub fn read_bytes(bytes: &[u8]) -> Result<ElfFacts, BytesError> {
    read_from(bytes)
}

/// Whether an ELF file has a section of that name. False for a file that is damaged, or of another kind.
pub fn has_section(path: &Path, name: &str) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return false };
    bytes_have_section(&ReadCache::new(file), name)
}

/// As [`has_section`], of bytes.
pub fn bytes_have_section<'data, R: ReadRef<'data>>(data: R, name: &str) -> bool {
    match FileKind::parse(data) {
        Ok(FileKind::Elf32) => names_section::<FileHeader32<Endianness>, R>(data, name),
        Ok(FileKind::Elf64) => names_section::<FileHeader64<Endianness>, R>(data, name),
        _ => None,
    }
    .unwrap_or_default()
}

fn names_section<'data, H, R>(data: R, name: &str) -> Option<bool>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    Some(sections.section_by_name(endian, name.as_bytes()).is_some())
}

fn read_from<'data, R: ReadRef<'data>>(data: R) -> Result<ElfFacts, BytesError> {
    let start = data.read_bytes_at(0, 4).unwrap_or_default();
    if start != b"\x7fELF" {
        return Err(BytesError::NotElf(guess(data)));
    }
    match FileKind::parse(data) {
        Ok(FileKind::Elf32) => facts::<FileHeader32<Endianness>, R>(data, 1),
        Ok(FileKind::Elf64) => facts::<FileHeader64<Endianness>, R>(data, 2),
        Ok(_) => Err(BytesError::Damaged("unknown class".into())),
        Err(error) => Err(BytesError::Damaged(error.to_string())),
    }
}

fn facts<'data, H, R>(data: R, class: u8) -> Result<ElfFacts, BytesError>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let damaged = |error: object::Error| BytesError::Damaged(error.to_string());
    let header = H::parse(data).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let mut interpreter = None;
    let mut zero_pages = 0u64;
    for segment in header.program_headers(endian, data).map_err(damaged)? {
        if segment.p_type(endian) == PT_INTERP {
            let bytes = segment
                .data(endian, data)
                .map_err(|()| BytesError::Damaged("the interpreter's name lies outside the file".into()))?;
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            interpreter = Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()));
        }
        if segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).0 & PF_W.0 != 0 {
            let (from, data, all) = (
                segment.p_vaddr(endian).into(),
                segment.p_filesz(endian).into(),
                segment.p_memsz(endian).into(),
            );
            let end = |size: u64| from.saturating_add(size).div_ceil(PAGE);
            zero_pages = zero_pages.saturating_add(end(all).saturating_sub(end(data)).saturating_mul(PAGE));
        }
    }
    let kind = match header.e_type(endian) {
        object::elf::ET_EXEC => ElfKind::Program,
        object::elf::ET_DYN if interpreter.is_some() => ElfKind::Program,
        object::elf::ET_DYN => ElfKind::SharedObject,
        _ => ElfKind::Other,
    };
    Ok(ElfFacts { class, machine: header.e_machine(endian).0, interpreter, kind, zero_pages })
}

/// What a file that is no ELF file seems to be, for the error.
fn guess<'data, R: ReadRef<'data>>(data: R) -> &'static str {
    let begins_with =
        |magic: &[u8]| data.read_bytes_at(0, magic.len() as u64).is_ok_and(|bytes| bytes == magic);
    if data.len().is_ok_and(|length| length == 0) {
        "an empty file"
    } else if begins_with(b"#!") {
        "a script"
    } else if begins_with(b"!<arch>\n") {
        "a library archive"
    } else if begins_with(b"MZ") {
        "a Windows program"
    } else {
        "a file of another kind"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The smallest program of an ABI: a header, and one segment that names the interpreter, if any.
    fn program(class: u8, machine: u16, kind: u16, interpreter: Option<&str>) -> Vec<u8> {
        let wide = class == 2;
        let (header, segment) = if wide { (64u64, 56u64) } else { (52, 32) };
        let count = u16::from(interpreter.is_some());
        let mut file = vec![0x7f, b'E', b'L', b'F', class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let word = |file: &mut Vec<u8>, value: u64| {
            file.extend_from_slice(&value.to_le_bytes()[..if wide { 8 } else { 4 }]);
        };
        file.extend_from_slice(&kind.to_le_bytes());
        file.extend_from_slice(&machine.to_le_bytes());
        file.extend_from_slice(&1u32.to_le_bytes());
        word(&mut file, 0); // e_entry
        word(&mut file, if count == 1 { header } else { 0 }); // e_phoff
        word(&mut file, 0); // e_shoff
        file.extend_from_slice(&0u32.to_le_bytes());
        for half in [header as u16, segment as u16, count, 0, 0, 0] {
            file.extend_from_slice(&half.to_le_bytes());
        }
        if let Some(name) = interpreter {
            let (offset, size) = (header + segment, name.len() as u64 + 1);
            file.extend_from_slice(&3u32.to_le_bytes()); // PT_INTERP
            if wide {
                file.extend_from_slice(&4u32.to_le_bytes()); // p_flags
            }
            for value in [offset, 0, 0, size, size] {
                word(&mut file, value);
            }
            if !wide {
                file.extend_from_slice(&4u32.to_le_bytes()); // p_flags
            }
            word(&mut file, 1); // p_align
            file.extend_from_slice(name.as_bytes());
            file.push(0);
        }
        file
    }

    #[test]
    fn class_and_machine_identify_each_abi() {
        for (class, machine, name) in [(2, 62, "x86-64"), (1, 62, "x32"), (1, 3, "i386")] {
            let facts = read_bytes(&program(class, machine, 2, None)).unwrap();
            assert_eq!(facts.abi().map(|abi| abi.name), Some(name));
        }
        assert_eq!(read_bytes(&program(2, 183, 2, None)).unwrap().abi(), None);
    }

    #[test]
    fn a_program_with_an_interpreter_is_dynamic_and_one_without_is_static() {
        let dynamic = read_bytes(&program(1, 62, 3, Some("/libx32/ld-linux-x32.so.2"))).unwrap();
        assert_eq!(dynamic.interpreter.as_deref(), Some(Path::new("/libx32/ld-linux-x32.so.2")));
        assert_eq!((dynamic.is_dynamic(), dynamic.kind), (true, ElfKind::Program));
        let fixed = read_bytes(&program(2, 62, 2, None)).unwrap();
        assert_eq!((fixed.is_dynamic(), fixed.kind), (false, ElfKind::Program));
        assert_eq!(read_bytes(&program(2, 62, 3, None)).unwrap().kind, ElfKind::SharedObject);
        assert_eq!(read_bytes(&program(2, 62, 1, None)).unwrap().kind, ElfKind::Other);
    }

    #[test]
    fn the_error_names_the_kind_of_a_file_that_is_not_elf() {
        assert_eq!(read_bytes(b"#!/bin/sh\n"), Err(BytesError::NotElf("a script")));
        assert_eq!(read_bytes(b""), Err(BytesError::NotElf("an empty file")));
        assert!(matches!(read_bytes(b"\x7fELF\x02\x01"), Err(BytesError::Damaged(_))));
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("a folder, not a program in ELF format"), "{error}");
    }

    #[test]
    fn an_interpreter_beyond_the_files_end_is_damage() {
        let mut file = program(2, 62, 2, Some("/lib64/ld-linux-x86-64.so.2"));
        file.truncate(64 + 56);
        assert!(matches!(read_bytes(&file), Err(BytesError::Damaged(_))));
    }

    #[test]
    fn this_test_program_is_read_from_its_file() {
        let facts = read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(usize::from(facts.class) * 4, size_of::<usize>());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_bytes(&bytes);
            let _ = read_bytes(&[b"\x7fELF".as_slice(), &bytes].concat());
        }

        #[test]
        fn no_damage_to_a_program_makes_it_panic(
            wide in any::<bool>(),
            damage in proptest::collection::vec((0usize..150, any::<u8>()), 1..8),
            length in 0usize..150,
        ) {
            let mut file = program(1 + u8::from(wide), 62, 3, Some("/lib/ld.so"));
            for (at, byte) in damage {
                if let Some(place) = file.get_mut(at) {
                    *place = byte;
                }
            }
            file.truncate(length);
            let _ = read_bytes(&file);
        }
    }
}
