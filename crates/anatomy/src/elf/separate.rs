//! The file that a program's symbols and debug information were moved to.

use std::path::{Path, PathBuf};

use super::named::Named;
use super::{mapped, section_type, Elf, Symbol};

/// Where Debian's packages `-dbgsym` have these files.
const SYSTEM: &str = "/usr/lib/debug";
/// The type of a note with a build ID.
const NT_GNU_BUILD_ID: u32 = 3;

/// A file that may be it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    /// The checksum of its bytes (CRC-32); none if the build ID names it.
    crc: Option<u32>,
}

impl Candidate {
    /// Whether the file's bytes are those that the program names.
    fn is_it(&self, bytes: &[u8]) -> bool {
        self.crc.is_none_or(|crc| {
            let mut sum = flate2::Crc::new();
            sum.update(bytes);
            sum.sum() == crc
        })
    }
}

/// Where the file may be (GDB's manual, "Debugging Information in Separate Files"), the likeliest first.
fn candidates(program: &Path, build_id: Option<&[u8]>, link: Option<(&Path, u32)>) -> Vec<Candidate> {
    let mut found = Vec::new();
    let hex: String = build_id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    if hex.len() > 2 {
        let path = Path::new(SYSTEM).join(".build-id").join(&hex[..2]).join(format!("{}.debug", &hex[2..]));
        found.push(Candidate { path, crc: None });
    }
    let (Some((name, crc)), Some(folder)) = (link, program.parent()) else { return found };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut paths = vec![folder.join(name), folder.join(".debug").join(name)];
    if let Ok(absolute) = std::fs::canonicalize(folder) {
        let below = absolute.strip_prefix("/").unwrap_or(&absolute);
        paths.push(Path::new(SYSTEM).join(below).join(name));
    }
    found.extend(paths.into_iter().map(|path| Candidate { path, crc: Some(crc) }));
    found
}

/// The first of these files that is the one which the program names, and has what is looked for; none where there is none.
pub fn find(
    program: &Path,
    build_id: Option<&[u8]>,
    link: Option<(&Path, u32)>,
    has_it: impl Fn(&Elf) -> bool,
) -> Option<PathBuf> {
    let is_it = |candidate: &Candidate| {
        mapped(&candidate.path).is_some_and(|map| {
            // Another build may have its file in the place of one that only the build ID names.
            let is_of_build = |elf: &Elf| candidate.crc.is_some() || elf.build_id() == build_id;
            Elf::read(&map).is_ok_and(|elf| has_it(&elf) && is_of_build(&elf)) && candidate.is_it(&map)
        })
    };
    candidates(program, build_id, link).into_iter().find(is_it).map(|candidate| candidate.path)
}

/// Where the debug information of a linked file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugFiles {
    /// The file itself, or its separate file.
    pub main: PathBuf,
    /// What several files share (dwz), if it is there.
    pub supplementary: Option<PathBuf>,
    /// The separate file that it names, if none is the one.
    pub missing: Option<PathBuf>,
}

impl DebugFiles {
    /// Of a file; itself where it cannot be read.
    pub fn of(path: &Path) -> DebugFiles {
        let mut files = DebugFiles { main: path.to_owned(), supplementary: None, missing: None };
        let Some(map) = mapped(path) else { return files };
        let Ok(elf) = Elf::read(&map) else { return files };
        if !elf.has_units() {
            let link = elf.debug_link();
            let named = link.as_ref().map(|(name, crc)| (name.as_path(), *crc));
            match find(path, elf.build_id(), named, |elf| elf.has_units()) {
                Some(separate) => files.main = separate,
                None => files.missing = link.map(|(name, _)| name),
            }
        }
        let beside = files.main.parent().unwrap_or(Path::new("."));
        let shared = if files.main == path {
            elf.debug_alternative()
        } else {
            mapped(&files.main).and_then(|map| Elf::read(&map).ok()?.debug_alternative())
        };
        files.supplementary = shared.map(|name| beside.join(name)).filter(|path| path.is_file());
        files
    }
}

impl<'a> Elf<'a> {
    /// The build ID, which the program and the file have in common.
    pub fn build_id(&self) -> Option<&'a [u8]> {
        let note = self.data(self.section(".note.gnu.build-id")?);
        let number = |at: usize| Some(self.endian_u32(note.get(at..at + 4)?.try_into().ok()?));
        // The sizes of name and contents, the type, "GNU" (gABI, "Note Section").
        let (name, size, kind) = (number(0)?, number(4)?, number(8)?);
        let begin = 12 + usize::try_from(name).ok()?.checked_next_multiple_of(4)?;
        let end = begin.checked_add(usize::try_from(size).ok()?)?;
        (kind == NT_GNU_BUILD_ID).then(|| note.get(begin..end)).flatten().filter(|id| !id.is_empty())
    }

    /// The name of the file, and its checksum, which `.gnu_debuglink` has.
    pub fn debug_link(&self) -> Option<(PathBuf, u32)> {
        use std::os::unix::ffi::OsStrExt;
        let link = self.data(self.section(".gnu_debuglink")?);
        let length = link.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        let at = (length + 1).next_multiple_of(4);
        let crc = self.endian_u32(link.get(at..at + 4)?.try_into().ok()?);
        Some((PathBuf::from(std::ffi::OsStr::from_bytes(&link[..length])), crc))
    }

    /// The name of the file that shares debug information with others (dwz), which `.gnu_debugaltlink` has.
    pub fn debug_alternative(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let link = self.data(self.section(".gnu_debugaltlink")?);
        let length = link.iter().position(|byte| *byte == 0).filter(|length| *length > 0)?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&link[..length])))
    }

    /// Whether it has debug information of its own.
    pub fn has_units(&self) -> bool {
        [".debug_info", ".zdebug_info", ".debug_types", ".zdebug_types"]
            .iter()
            .any(|name| self.section(name).is_some_and(|section| section.size > 0))
    }

    /// Whether symbols or debug information may be elsewhere: it lacks a symbol table, or units.
    pub fn is_stripped(&self) -> bool {
        !self.has_symbol_table() || !self.has_units()
    }

    /// Whether it has more than the dynamic linker's symbols.
    pub fn has_symbol_table(&self) -> bool {
        self.sections.iter().any(|section| section.kind == section_type::SYMTAB && section.size > 0)
    }

    /// What the symbols of its separate file name, by their place in this file. The sections of both have the same names and
    /// addresses, and other numbers.
    pub fn named_in(&self, separate: &Elf<'a>) -> Vec<Named<'a>> {
        let Some(table) = separate.symbol_table() else { return Vec::new() };
        let own = |section: usize| {
            let section = separate.sections.get(section)?;
            let is_same = |own: &super::Section| {
                own.address == section.address && own.name == section.name && own.size == section.size
            };
            self.sections.iter().position(is_same)
        };
        let numbers: Vec<Option<usize>> = (0..separate.sections.len()).map(own).collect();
        let moved = separate.symbols(table).into_iter().filter_map(|symbol| {
            let section = numbers.get(symbol.section).copied().flatten()?;
            Some(Symbol { section, ..symbol })
        });
        self.named_by(moved)
    }

    fn endian_u32(&self, bytes: [u8; 4]) -> u32 {
        use object::Endian;
        self.endian.read_u32(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_comes_before_a_link() {
        let link = Path::new("tree.debug");
        let found = candidates(Path::new("/opt/x/tree"), Some(&[0xab, 0xcd, 0xef]), Some((link, 7)));
        let paths: Vec<&str> = found.iter().map(|one| one.path.to_str().unwrap()).collect();
        assert_eq!(paths[0], "/usr/lib/debug/.build-id/ab/cdef.debug");
        assert_eq!(paths[1..3], ["/opt/x/tree.debug", "/opt/x/.debug/tree.debug"]);
        assert!(found[0].is_it(b"any") && !found[1].is_it(b"any"));
        assert_eq!(candidates(Path::new("tree"), None, None), []);
    }
}
