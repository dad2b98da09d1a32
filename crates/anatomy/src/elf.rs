//! ELF files, whatever their width and byte order: headers, sections, symbols, as the file's own tables say.
//!
//! The structures are those of the System V ABI (gABI, chapters 4 and 5); `object` reads each of them.

mod compressed;
mod dynamic;
pub mod loaded;
pub mod named;
pub mod relocations;
pub mod separate;
pub mod type_information;
pub mod unwind;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::read::StringTable;
use object::{Endian, Endianness};

/// A regular file's bytes. A pipe without a writer would block.
pub(crate) fn mapped(path: &Path) -> Option<Mmap> {
    if !path.is_file() {
        return None;
    }
    let file = std::fs::File::open(path).ok()?;
    // SAFETY: the mapping is private and read only. A file that is cut short meanwhile ends the process with SIGBUS.
    unsafe { Mmap::map(&file) }.ok()
}

/// `e_type` of a relocatable object file.
pub const RELOCATABLE: u16 = 1;
/// `e_type` of a program at a fixed address.
pub const EXECUTABLE: u16 = 2;
/// `e_type` of a shared library or a position-independent program.
pub const SHARED: u16 = 3;

/// `e_machine` of i386.
pub const I386: u16 = 3;
/// `e_machine` of x86-64 and x32.
pub const X86_64: u16 = 62;

/// `sh_type` values (gABI, figure 4-11).
pub mod section_type {
    /// A symbol table.
    pub const SYMTAB: u32 = 2;
    /// A string table.
    pub const STRTAB: u32 = 3;
    /// Relocation records with addends.
    pub const RELA: u32 = 4;
    /// The dynamic section.
    pub const DYNAMIC: u32 = 6;
    /// No bytes in the file.
    pub const NOBITS: u32 = 8;
    /// Relocation records without addends.
    pub const REL: u32 = 9;
    /// The dynamic linker's symbol table.
    pub const DYNSYM: u32 = 11;
    /// Packed relative relocations.
    pub const RELR: u32 = 19;
}

/// `sh_flags` bits (gABI, figure 4-12).
pub mod section_flag {
    /// Writable at run time.
    pub const WRITE: u64 = 1;
    /// In memory at run time.
    pub const ALLOC: u64 = 2;
    /// Executable.
    pub const EXECINSTR: u64 = 4;
    /// Texts that end with a zero.
    pub const STRINGS: u64 = 0x20;
    /// Thread-local.
    pub const TLS: u64 = 0x400;
    /// Compressed.
    pub const COMPRESSED: u64 = 0x800;
}

/// Why bytes are no ELF file that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Another kind of file.
    #[error("it is {0}, and no ELF file")]
    Other(&'static str),
    /// The file is shorter than its own tables say.
    #[error("{what} ends at byte {end}, and the file has {size} bytes: it is truncated or damaged")]
    Truncated {
        /// The part.
        what: String,
        /// Where the part ends.
        end: u64,
        /// The file's size.
        size: u64,
    },
    /// A table contradicts itself.
    #[error("{0}: the file is damaged")]
    Damaged(String),
}

/// One section.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    /// Its name; lossy where it is no UTF-8.
    pub name: Cow<'a, str>,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// Its address at run time, before relocation.
    pub address: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes at run time; also in the file, except where it has none there.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// Its alignment.
    pub align: u64,
    /// The size of its records, 0 where it has none.
    pub entry_size: u64,
}

impl Section<'_> {
    /// Its bytes in the file.
    pub fn file_range(&self) -> Range<u64> {
        match self.kind {
            section_type::NOBITS => self.offset..self.offset,
            _ => self.offset..self.offset.saturating_add(self.size),
        }
    }

    /// Whether a flag of [`section_flag`] is set.
    pub fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function, or an indirect one.
    Function,
    /// Data.
    Object,
    /// Thread-local data: its value is an offset in the thread-local image.
    ThreadLocal,
    /// A label without a type, as assembly sources have.
    Label,
    /// A section, a source file, or something else.
    Other,
}

/// One symbol of a section.
#[derive(Debug, Clone, Copy)]
pub struct Symbol<'a> {
    /// Its name, mangled.
    pub name: &'a [u8],
    /// Its value: an address, or an offset in its section in relocatable files.
    pub value: u64,
    /// Its size in bytes, 0 where unknown.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// The number of its section; 0 if it is not defined here.
    pub section: usize,
    /// Whether other files do not see it.
    pub is_local: bool,
}

/// One segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its address.
    pub address: u64,
    /// Its bytes in the file.
    pub file_size: u64,
}

/// An ELF file.
#[derive(Debug, Clone)]
pub struct Elf<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// 64-bit structures.
    pub is_64: bool,
    /// Byte order.
    pub endian: Endianness,
    /// `e_machine`.
    pub machine: u16,
    /// `e_flags`.
    pub flags: u32,
    /// `e_type`.
    pub kind: u16,
    /// The ELF header.
    pub header: Range<u64>,
    /// The program headers.
    pub program_headers: Range<u64>,
    /// The section headers.
    pub section_headers: Range<u64>,
    /// All segments.
    pub segments: Vec<Segment>,
    /// All sections, the empty one first.
    pub sections: Vec<Section<'a>>,
}

/// What files of other kinds begin with.
const OTHERS: [(&[u8], &str); 12] = [
    (b"!<arch>\n", "an archive of object files (ar)"),
    (b"!<thin>\n", "a thin archive of object files (ar)"),
    (b"#!", "a script"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O file"),
    (b"\xce\xfa\xed\xfe", "a Mach-O file"),
    (b"\xca\xfe\xba\xbe", "a Java class or a universal Mach-O file"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\0asm", "a WebAssembly module"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ", "an xz file"),
];

/// Whether bytes begin as an ELF file does.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

impl<'a> Elf<'a> {
    /// Reads the headers. Every section and table lies within the file.
    ///
    /// # Errors
    /// [`ElfError`]: another kind of file, or one that is cut off or damaged.
    pub fn read(bytes: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        if !is_elf(bytes) {
            let other = OTHERS.iter().find(|(magic, _)| bytes.starts_with(magic));
            let empty = if bytes.is_empty() { "empty" } else { "a file of another kind" };
            return Err(ElfError::Other(other.map_or(empty, |(_, name)| name)));
        }
        match bytes.get(4) {
            Some(1) => read::<FileHeader32<Endianness>>(bytes),
            Some(2) => read::<FileHeader64<Endianness>>(bytes),
            Some(class) => Err(ElfError::Damaged(format!("the ELF class is {class}"))),
            None => Err(truncated("the ELF header", 52, bytes)),
        }
    }

    /// A section's bytes in the file; empty where it has none.
    pub fn data(&self, section: &Section) -> &'a [u8] {
        self.slice(section.file_range())
    }

    /// A range of the file; empty where it is not within.
    pub fn slice(&self, range: Range<u64>) -> &'a [u8] {
        let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        range.and_then(|(start, end)| self.bytes.get(start..end)).unwrap_or_default()
    }

    /// A section by its name.
    pub fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Bytes of a pointer in this file's data model.
    pub fn word(&self) -> u64 {
        if self.is_64 {
            8
        } else {
            4
        }
    }

    /// The symbols of one symbol table.
    pub fn symbols(&self, table: &Section) -> Vec<Symbol<'a>> {
        if self.is_64 {
            symbols::<FileHeader64<Endianness>>(self, table)
        } else {
            symbols::<FileHeader32<Endianness>>(self, table)
        }
    }

    /// The table that names most: `.symtab`, or `.dynsym` of a stripped file.
    pub fn symbol_table(&self) -> Option<&Section<'a>> {
        let of_kind = |kind| self.sections.iter().find(|section| section.kind == kind && section.size > 0);
        of_kind(section_type::SYMTAB).or_else(|| of_kind(section_type::DYNSYM))
    }

    /// The word at an offset of a slice, in the file's byte order and width.
    pub fn word_at(&self, bytes: &[u8], at: usize) -> Option<u64> {
        if self.is_64 {
            let bytes: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
            Some(self.endian.read_u64(bytes))
        } else {
            let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
            Some(u64::from(self.endian.read_u32(bytes)))
        }
    }
}

fn truncated(what: impl Into<String>, end: u64, bytes: &[u8]) -> ElfError {
    ElfError::Truncated { what: what.into(), end, size: bytes.len() as u64 }
}

fn read<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Elf<'_>, ElfError> {
    let header_size = std::mem::size_of::<H>() as u64;
    if (bytes.len() as u64) < header_size {
        return Err(truncated("the ELF header", header_size, bytes));
    }
    let damaged = |error: object::read::Error| ElfError::Damaged(error.to_string());
    let header = H::parse(bytes).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let within = |what: &str, range: Range<u64>| match range.end <= bytes.len() as u64 {
        true => Ok(range),
        false => Err(truncated(what, range.end, bytes)),
    };
    let table = |what: &str, offset: u64, count: u64, size: u64| match count {
        0 => Ok(0..0),
        _ => within(what, offset..offset.saturating_add(count.saturating_mul(size))),
    };
    let shoff: u64 = header.e_shoff(endian).into();
    if shoff != 0 {
        // Before the count, which the first section header may hold.
        within(
            "the table of sections",
            shoff..shoff.saturating_add(std::mem::size_of::<H::SectionHeader>() as u64),
        )?;
    }
    let section_size = std::mem::size_of::<H::SectionHeader>() as u64;
    let shnum = if shoff == 0 { 0 } else { u64::from(header.shnum(endian, bytes).map_err(damaged)?) };
    let section_headers = table("the table of sections", shoff, shnum, section_size)?;
    let phoff: u64 = header.e_phoff(endian).into();
    let phnum = if phoff == 0 { 0 } else { u64::from(header.phnum(endian, bytes).map_err(damaged)?) };
    let program_size = std::mem::size_of::<H::ProgramHeader>() as u64;
    let program_headers = table("the table of segments", phoff, phnum, program_size)?;

    let raw = header.section_headers(endian, bytes).map_err(damaged)?;
    let strings = match raw.is_empty() {
        true => StringTable::default(),
        false => header.section_strings(endian, bytes, raw).map_err(damaged)?,
    };
    let mut sections = Vec::with_capacity(raw.len());
    for section in raw {
        let section = Section {
            name: section.name(endian, strings).map_or(Cow::Borrowed(""), String::from_utf8_lossy),
            kind: section.sh_type(endian).0,
            flags: section.sh_flags(endian).0,
            address: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: section.sh_link(endian),
            info: section.sh_info(endian),
            align: section.sh_addralign(endian).into(),
            entry_size: section.sh_entsize(endian).into(),
        };
        // The null section's size is the number of sections where that is large (gABI, "Section header table").
        if section.kind != 0 {
            within(&format!("the section {}", section.name), section.file_range())?;
        }
        sections.push(section);
    }
    let segments = header.program_headers(endian, bytes).map_err(damaged)?;
    let segments = segments.iter().map(|segment| Segment {
        kind: segment.p_type(endian).0,
        flags: segment.p_flags(endian).0,
        offset: segment.p_offset(endian).into(),
        address: segment.p_vaddr(endian).into(),
        file_size: segment.p_filesz(endian).into(),
    });
    Ok(Elf {
        bytes,
        is_64: header.is_class_64(),
        endian,
        machine: header.e_machine(endian).0,
        flags: header.e_flags(endian).0,
        kind: header.e_type(endian).0,
        header: 0..header_size,
        program_headers,
        section_headers,
        segments: segments.collect(),
        sections,
    })
}

fn symbols<'a, H: FileHeader<Endian = Endianness>>(elf: &Elf<'a>, table: &Section) -> Vec<Symbol<'a>> {
    let data = elf.data(table);
    let size = std::mem::size_of::<H::Sym>();
    let Ok((raw, _)) = object::pod::slice_from_bytes::<H::Sym>(data, data.len() / size) else {
        return Vec::new();
    };
    let strings = elf.sections.get(table.link as usize).map(|strings| elf.data(strings)).unwrap_or_default();
    let strings = StringTable::new(strings, 0, strings.len() as u64);
    let number =
        elf.sections.iter().position(|section| section.offset == table.offset && section.kind == table.kind);
    let extended = extended_indices(elf, number);
    raw.iter()
        .enumerate()
        .filter_map(|(index, symbol)| {
            let section = match symbol.st_shndx(elf.endian).0 {
                // SHN_XINDEX: the number is in a table of its own.
                0xffff => extended
                    .as_ref()
                    .and_then(|numbers| numbers.get(index))
                    .map_or(0, |number| *number as usize),
                special @ 0xff00.. => usize::from(special),
                section => usize::from(section),
            };
            (section != 0).then(|| Symbol {
                name: symbol.name(elf.endian, strings).unwrap_or_default(),
                value: symbol.st_value(elf.endian).into(),
                size: symbol.st_size(elf.endian).into(),
                kind: match symbol.st_type().0 {
                    0 => SymbolKind::Label,
                    1 => SymbolKind::Object,
                    // STT_FUNC, STT_GNU_IFUNC.
                    2 | 10 => SymbolKind::Function,
                    6 => SymbolKind::ThreadLocal,
                    _ => SymbolKind::Other,
                },
                section,
                is_local: symbol.is_local(),
            })
        })
        .collect()
}

/// The section numbers of symbols that do not fit into the symbol table (SHT_SYMTAB_SHNDX).
fn extended_indices(elf: &Elf, table: Option<usize>) -> Option<Vec<u32>> {
    const SYMTAB_SHNDX: u32 = 18;
    let section = elf
        .sections
        .iter()
        .find(|section| section.kind == SYMTAB_SHNDX && Some(section.link as usize) == table)?;
    let numbers = elf.data(section).chunks_exact(4);
    Some(numbers.map(|number| elf.endian.read_u32(number.try_into().unwrap_or_default())).collect())
}
