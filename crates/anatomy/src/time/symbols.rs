//! Names of code addresses in object files, from their own symbol tables: for code that valgrind does not name, and page faults.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::elf::{Elf, SymbolKind};

/// The most object files that are read.
const MOST_FILES: usize = 4096;
/// `PT_LOAD`.
const LOAD: u32 = 1;
/// `SHN_ABS`.
const ABSOLUTE: usize = 0xfff1;

/// The functions of object files, each file read at its first use.
#[derive(Debug, Default)]
pub struct CodeNames {
    files: FxHashMap<String, Option<Functions>>,
}

/// The functions of one file, by their place in the file.
#[derive(Debug, Default)]
struct Functions {
    /// Beginning, end and name; by beginning, none of them overlaps another that began at the same place.
    all: Vec<(u64, u64, Box<str>)>,
    /// The source files of functions that are local to them, by their beginnings.
    files: FxHashMap<u64, Box<str>>,
    /// Segments: where they begin in the file, their size in it, and their address.
    segments: Vec<(u64, u64, u64)>,
}

impl CodeNames {
    /// The symbol of the function at an offset of a file; none where the file has none there, or cannot be read.
    pub fn name(&mut self, path: &str, offset: u64) -> Option<&str> {
        self.name_and_file(path, offset).map(|(name, _)| name)
    }

    /// The symbol, and of a function that is local to its source file that file's name without a folder; empty for other functions.
    pub fn name_and_file(&mut self, path: &str, offset: u64) -> Option<(&str, &str)> {
        if !self.files.contains_key(path) {
            let functions = (self.files.len() < MOST_FILES).then(|| read(Path::new(path))).flatten();
            self.files.insert(path.to_owned(), functions);
        }
        let functions = self.files.get(path)?.as_ref()?;
        let at =
            |(start, size, _): &&(u64, u64, u64)| offset.checked_sub(*start).is_some_and(|at| at < *size);
        let (start, _, address) = functions.segments.iter().find(at)?;
        functions.at(address.checked_add(offset - start)?)
    }
}

impl Functions {
    fn at(&self, address: u64) -> Option<(&str, &str)> {
        let behind = self.all.partition_point(|(start, ..)| *start <= address);
        let (start, end, name) = self.all[..behind].last()?;
        let file = self.files.get(start).map_or("", |file| file);
        (address < *end).then_some((name, file))
    }
}

fn read(path: &Path) -> Option<Functions> {
    // A pipe without a writer would block.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = std::fs::File::open(path).ok()?;
    // SAFETY: the mapping is private and read only. A file that is cut short meanwhile ends the process with SIGBUS.
    let bytes = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    Some(functions(&Elf::read(&bytes).ok()?))
}

fn functions(elf: &Elf) -> Functions {
    let mut all: Vec<(u64, u64, Box<str>)> = Vec::new();
    for named in elf.named() {
        if !matches!(named.kind, SymbolKind::Function | SymbolKind::Label) {
            continue;
        }
        let start = elf.sections[named.section].address.saturating_add(named.start);
        all.push((start, start.saturating_add(named.size), String::from_utf8_lossy(named.name).into()));
    }
    // Of several names the first one stays: the largest stretch, the shortest name.
    all.sort_by_key(|(start, ..)| *start);
    all.dedup_by_key(|(start, ..)| *start);
    let segments = elf.segments.iter().filter(|segment| segment.kind == LOAD);
    let segments = segments.map(|segment| (segment.offset, segment.file_size, segment.address)).collect();
    Functions { all, files: local_files(elf), segments }
}

/// The source files of local functions: in a symbol table they stand behind a symbol for their file (gABI, "Symbol Table", STT_FILE).
fn local_files(elf: &Elf) -> FxHashMap<u64, Box<str>> {
    let mut files: FxHashMap<u64, Box<str>> = FxHashMap::default();
    let Some(table) = elf.symbol_table() else { return files };
    let mut file = String::new();
    for symbol in elf.symbols(table).into_iter().filter(|symbol| symbol.is_local) {
        match symbol.kind {
            SymbolKind::Other if symbol.section == ABSOLUTE => {
                let path = String::from_utf8_lossy(symbol.name);
                file = path.rsplit('/').next().unwrap_or_default().to_owned();
            }
            SymbolKind::Function if !file.is_empty() => {
                // A linker may have made one of several functions with the same code.
                let known = files.entry(symbol.value).or_insert_with(|| Box::from(file.as_str()));
                if **known != *file {
                    *known = Box::default();
                }
            }
            _ => {}
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test itself may be inlined into the harness's closure.
    #[inline(never)]
    fn code_of_a_known_name() -> u32 {
        std::hint::black_box(1)
    }

    #[test]
    fn a_function_of_this_program_is_found_at_its_offset() {
        assert_eq!(code_of_a_known_name(), 1);
        let path = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&path).expect("a file");
        let elf = Elf::read(&bytes).expect("an ELF file");
        let functions = functions(&elf);
        let (start, end, name) = functions
            .all
            .iter()
            .find(|(_, _, name)| name.contains("code_of_a_known_name"))
            .expect("this function");
        let at = |address: u64| {
            let (offset, _, segment) = functions
                .segments
                .iter()
                .find(|(_, size, segment)| (*segment..segment + size).contains(&address))
                .expect("a segment");
            address - segment + offset
        };
        let mut names = CodeNames::default();
        let path = path.to_str().expect("a path in UTF-8");
        assert_eq!(names.name(path, at(*start)), Some(&**name));
        assert_eq!(names.name(path, at(end - 1)), Some(&**name));
        assert_ne!(names.name(path, at(start - 1)), Some(&**name));
        assert_eq!(names.name(path, u64::MAX), None);
        assert_eq!(names.name("/no such file", 0), None);
        assert_eq!(names.name("/dev/null", 0), None);
    }
}
