//! A file's debug sections, uncompressed, and the other files that belong to it.

use std::path::{Path, PathBuf};

use gimli::RunTimeEndian;
use memmap2::Mmap;
use object::{Object, ObjectKind, ObjectSection};

use super::compressed::{self, Bytes};
use super::model::LayoutError;
use crate::elf::separate;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A program, or the file that its debug information was moved to.
    Program,
    /// Units apart (`.dwo`, `.dwp`): their sections have names of their own.
    Split,
    /// What several programs share (dwz): its type in the ELF header is that of an object file.
    Supplementary,
}

/// The sections that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionName {
    Info,
    Types,
    Abbrev,
    Str,
    LineStr,
    StrOffsets,
    Line,
    Ranges,
    RngLists,
    Addr,
    CuIndex,
    TuIndex,
    Loc,
    LocLists,
    Macinfo,
    Macro,
}

const SECTIONS: [(&str, SectionName); 16] = [
    ("debug_info", SectionName::Info),
    ("debug_types", SectionName::Types),
    ("debug_abbrev", SectionName::Abbrev),
    ("debug_str", SectionName::Str),
    ("debug_line_str", SectionName::LineStr),
    ("debug_str_offsets", SectionName::StrOffsets),
    ("debug_line", SectionName::Line),
    ("debug_ranges", SectionName::Ranges),
    ("debug_rnglists", SectionName::RngLists),
    ("debug_addr", SectionName::Addr),
    ("debug_cu_index", SectionName::CuIndex),
    ("debug_tu_index", SectionName::TuIndex),
    ("debug_loc", SectionName::Loc),
    ("debug_loclists", SectionName::LocLists),
    ("debug_macinfo", SectionName::Macinfo),
    ("debug_macro", SectionName::Macro),
];
/// Their contents are not read: a package's index has to fit them.
const ONLY_SPLIT: [SectionName; 4] =
    [SectionName::Loc, SectionName::LocLists, SectionName::Macinfo, SectionName::Macro];

/// What holds the bytes of a file.
#[derive(Debug)]
enum Contents {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl std::ops::Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Mapped(map) => map,
            Contents::Owned(bytes) => bytes,
        }
    }
}

/// An opened file.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    pub path: PathBuf,
    contents: Contents,
    sections: Vec<(SectionName, Bytes)>,
    pub endian: RunTimeEndian,
    pub abi: String,
    pub address_size: u8,
    pub packs_wide_numbers: bool,
    pub build_id: Option<Vec<u8>>,
    pub debug_link: Option<(PathBuf, u32)>,
    pub supplementary: Option<PathBuf>,
    /// Sections that could not be read.
    pub unread: Vec<String>,
}

impl ObjectFile {
    /// Opens a file and looks for its debug sections.
    pub fn open(path: &Path, purpose: Purpose) -> Result<ObjectFile, LayoutError> {
        let cannot = |source| LayoutError::Open { file: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(Self::wrong(path, "it is no regular file"));
        }
        let file = std::fs::File::open(path).map_err(cannot)?;
        // SAFETY: the file is only read. Somebody who shortens it meanwhile ends this process, as with every linker.
        let map = unsafe { Mmap::map(&file) }.map_err(cannot)?;
        Self::parse(path, Contents::Mapped(map), purpose)
    }

    /// The same of bytes in memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<ObjectFile, LayoutError> {
        Self::parse(Path::new("(memory)"), Contents::Owned(bytes.to_vec()), Purpose::Program)
    }

    fn wrong(path: &Path, reason: impl Into<String>) -> LayoutError {
        LayoutError::Format { file: path.to_owned(), reason: reason.into() }
    }

    fn parse(path: &Path, contents: Contents, purpose: Purpose) -> Result<ObjectFile, LayoutError> {
        let object = object::File::parse(&*contents)
            .map_err(|error| Self::wrong(path, format!("it is no ELF file that can be read: {error}")))?;
        if object.format() != object::BinaryFormat::Elf {
            return Err(Self::wrong(path, "it is no ELF file"));
        }
        if object.kind() == ObjectKind::Relocatable && purpose == Purpose::Program {
            let reason = "it is an object file, whose debug information is complete only after linking: name the program";
            return Err(Self::wrong(path, reason));
        }
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let (abi, packs_wide_numbers) = abi(&object);
        let mut sections = Vec::new();
        let mut unread = Vec::new();
        for section in object.sections() {
            let Some((name, old)) = section.name().ok().and_then(|name| section_name(name, purpose)) else {
                continue;
            };
            match compressed::bytes(&contents, &section, old) {
                Ok(bytes) => push_section(&contents, &mut sections, name, bytes),
                Err(reason) => {
                    unread.push(format!("section {}: {reason}", section.name().unwrap_or_default()))
                }
            }
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        let debug_link = object.gnu_debuglink().ok().flatten().map(|(name, crc)| (bytes_path(name), crc));
        let supplementary =
            object.gnu_debugaltlink().ok().flatten().map(|(name, _)| folder.join(bytes_path(name)));
        let build_id = object.build_id().ok().flatten().map(<[u8]>::to_vec);
        let address_size = if object.is_64() { 8 } else { 4 };
        drop(object);
        Ok(ObjectFile {
            path: path.to_owned(),
            contents,
            sections,
            endian,
            abi,
            address_size,
            packs_wide_numbers,
            build_id,
            debug_link,
            supplementary,
            unread,
        })
    }

    /// A section's bytes; none if there is no such section.
    pub fn section(&self, name: SectionName) -> &[u8] {
        match self.sections.iter().find(|(own, _)| *own == name) {
            Some((_, Bytes::Mapped(start, end))) => self.contents.get(*start..*end).unwrap_or_default(),
            Some((_, Bytes::Owned(bytes))) => bytes,
            None => &[],
        }
    }

    /// Tells the kernel that this part of a mapped section has been read: it may have its memory back.
    pub fn release(&self, name: SectionName, from: usize, to: usize) {
        let Contents::Mapped(map) = &self.contents else { return };
        let Some((_, Bytes::Mapped(start, _))) = self.sections.iter().find(|(own, _)| *own == name) else {
            return;
        };
        const PAGE: usize = 4096;
        let (from, to) = ((start + from).next_multiple_of(PAGE), (start + to) / PAGE * PAGE);
        if from < to && to <= map.len() {
            // SAFETY: the mapping is of a file and only read, so that the pages' contents come back when they are read again.
            let _ =
                unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, to - from) };
        }
    }

    /// Whether there is anything to read.
    pub fn has_types(&self) -> bool {
        !self.section(SectionName::Info).is_empty() || !self.section(SectionName::Types).is_empty()
    }

    /// The file that the debug information of a stripped file was moved to.
    pub fn separate(&self) -> Option<ObjectFile> {
        let link = self.debug_link.as_ref().map(|(name, crc)| (name.as_path(), *crc));
        let found = separate::find(&self.path, self.build_id.as_deref(), link, |elf| elf.has_units())?;
        ObjectFile::open(&found, Purpose::Program).ok().filter(ObjectFile::has_types)
    }
}

/// Each type unit of a `.dwo` file has a section of the same name: they are put together.
fn push_section(contents: &[u8], sections: &mut Vec<(SectionName, Bytes)>, name: SectionName, bytes: Bytes) {
    let slice = |bytes: &Bytes| match bytes {
        Bytes::Mapped(start, end) => contents.get(*start..*end).unwrap_or_default().to_vec(),
        Bytes::Owned(bytes) => bytes.clone(),
    };
    match sections.iter_mut().find(|(own, _)| *own == name) {
        Some((_, Bytes::Owned(known))) => known.extend(slice(&bytes)),
        Some((_, known)) => *known = Bytes::Owned([slice(known), slice(&bytes)].concat()),
        None => sections.push((name, bytes)),
    }
}

fn bytes_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The section's name among those that are read, and whether it is compressed in the old way (`.zdebug_info`).
fn section_name(name: &str, purpose: Purpose) -> Option<(SectionName, bool)> {
    let (name, old) = match name.strip_prefix(".z") {
        Some(name) => (name, true),
        None => (name.strip_prefix('.')?, false),
    };
    // The indices of a package have the same name everywhere.
    let name = match purpose {
        Purpose::Split if !name.ends_with("_index") => name.strip_suffix(".dwo")?,
        _ => name,
    };
    let found = SECTIONS.iter().find(|(own, _)| *own == name).map(|(_, section)| (*section, old));
    found.filter(|(section, _)| purpose == Purpose::Split || !ONLY_SPLIT.contains(section))
}

/// The ABI's name, and whether it aligns 8-byte numbers to 4 bytes inside structures.
fn abi(object: &object::File) -> (String, bool) {
    use object::Architecture as A;
    let big = !object.is_little_endian();
    match object.architecture() {
        A::X86_64 => ("x86-64".to_owned(), false),
        A::X86_64_X32 => ("x32".to_owned(), false),
        A::I386 => ("i386".to_owned(), true),
        A::Aarch64 => ("arm64".to_owned(), false),
        A::Arm => ("arm".to_owned(), false),
        A::PowerPc64 => (if big { "ppc64" } else { "ppc64el" }.to_owned(), false),
        A::PowerPc => ("ppc".to_owned(), false),
        A::Riscv64 => ("riscv64".to_owned(), false),
        A::S390x => ("s390x".to_owned(), false),
        other => (format!("{other:?}").to_lowercase(), false),
    }
}
