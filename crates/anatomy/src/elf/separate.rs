//! The file that a program's symbols and debug information were moved to.

use std::path::{Path, PathBuf};

use super::named::Named;
use super::{section_type, Elf, Symbol};

/// Where Debian's packages `-dbgsym` have these files.
const SYSTEM: &str = "/usr/lib/debug";
/// The type of a note with a build ID.
const NT_GNU_BUILD_ID: u32 = 3;

/// A file that may be it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its path.
    pub path: PathBuf,
    /// The checksum of its bytes (CRC-32); none if the build ID names it.
    pub crc: Option<u32>,
}

impl Candidate {
    /// Whether the file's bytes are those that the program names.
    pub fn is_it(&self, bytes: &[u8]) -> bool {
        self.crc.is_none_or(|crc| {
            let mut sum = flate2::Crc::new();
            sum.update(bytes);
            sum.sum() == crc
        })
    }
}

/// Where the file may be (GDB's manual, "Debugging Information in Separate Files"), the likeliest first.
pub fn candidates(program: &Path, build_id: Option<&[u8]>, link: Option<(&Path, u32)>) -> Vec<Candidate> {
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

    /// Whether symbols or debug information may be elsewhere: it lacks a symbol table, or units.
    pub fn is_stripped(&self) -> bool {
        !self.has_symbol_table()
            || self.section(".debug_info").is_none() && self.section(".zdebug_info").is_none()
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
