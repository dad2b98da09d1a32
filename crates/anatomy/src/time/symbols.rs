//! What is at a code address of an object file, from its own symbol table and debug information: for code that valgrind does not
//! name, for page faults, and for the lines of functions.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::place::Place;
use crate::debug::{beginnings, Sections};
use crate::elf::{mapped, section_flag, Elf, SymbolKind};

/// The most object files that are read.
const MOST_FILES: usize = 4096;
/// `PT_LOAD`.
const LOAD: u32 = 1;
/// `SHN_ABS`.
const ABSOLUTE: usize = 0xfff1;

/// What is at a code address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code<'a> {
    /// A function.
    Function {
        /// Its symbol.
        symbol: &'a str,
        /// If it is local to its source file, that file's name without a folder; else empty, and also if it is the code of several.
        file: &'a str,
        /// Where it begins in the source, if debug information says so.
        place: Option<Place>,
    },
    /// A stub of the procedure linkage table.
    Stub,
    /// A stub in one of the tables that valgrind 3.19 does not know, such as `.plt.sec`: it says neither what it is nor its file.
    UnknownStub,
    /// Code without a name.
    Unnamed,
}

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
    /// Where functions begin in the source, by their beginnings.
    places: FxHashMap<u64, (String, u64)>,
    /// Segments: where they begin in the file, their size in it, and their address.
    segments: Vec<(u64, u64, u64)>,
    /// Tables of stubs: their beginning, their end, and whether valgrind knows them.
    stubs: Vec<(u64, u64, bool)>,
}

impl CodeNames {
    /// What is at an offset of a file.
    pub fn at_offset(&mut self, path: &str, offset: u64) -> Code<'_> {
        let Some(functions) = self.file(path) else { return Code::Unnamed };
        let at =
            |(start, size, _): &&(u64, u64, u64)| offset.checked_sub(*start).is_some_and(|at| at < *size);
        let segment = functions.segments.iter().find(at);
        let address = segment.and_then(|(start, _, address)| address.checked_add(offset - start));
        address.map_or(Code::Unnamed, |address| functions.at(address))
    }

    /// What is at an address of a file, as the file itself counts addresses.
    pub fn at_address(&mut self, path: &str, address: u64) -> Code<'_> {
        self.file(path).map_or(Code::Unnamed, |functions| functions.at(address))
    }

    /// Where the function begins that is at an address of a file.
    pub fn start(&mut self, path: &str, address: u64) -> Option<u64> {
        self.file(path)?.function(address).map(|(start, _)| start)
    }

    fn file(&mut self, path: &str) -> Option<&Functions> {
        if !self.files.contains_key(path) {
            let functions = (self.files.len() < MOST_FILES).then(|| read(Path::new(path))).flatten();
            self.files.insert(path.to_owned(), functions);
        }
        self.files.get(path)?.as_ref()
    }
}

impl Functions {
    fn at(&self, address: u64) -> Code<'_> {
        let stubs = self.stubs.iter().find(|(start, end, _)| (*start..*end).contains(&address));
        if let Some((.., is_known)) = stubs {
            return if *is_known { Code::Stub } else { Code::UnknownStub };
        }
        let Some((start, symbol)) = self.function(address) else { return Code::Unnamed };
        let file = self.files.get(&start).map(|file| &**file);
        // The line table has one of the functions whose code is this.
        let is_of_several = file == Some("");
        let place = self.places.get(&start).filter(|_| !is_of_several);
        let place = place.map(|(file, line)| Place { file: file.clone(), line: Some(*line) });
        Code::Function { symbol, file: file.unwrap_or_default(), place }
    }

    /// The function at an address: where it begins, and its symbol.
    fn function(&self, address: u64) -> Option<(u64, &str)> {
        let behind = self.all.partition_point(|(start, ..)| *start <= address);
        let (start, end, symbol) = self.all[..behind].last()?;
        (address < *end).then_some((*start, &**symbol))
    }
}

fn read(path: &Path) -> Option<Functions> {
    let bytes = mapped(path)?;
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
    let is_inside = |address: u64| {
        let behind = all.partition_point(|(start, ..)| *start <= address);
        all[..behind].last().is_some_and(|(_, end, _)| address < *end)
    };
    let mut others = without_size(elf);
    others.retain(|(start, ..)| !is_inside(*start));
    all.extend(others);
    all.sort_by_key(|(start, ..)| *start);
    all.dedup_by_key(|(start, ..)| *start);
    let segments = elf.segments.iter().filter(|segment| segment.kind == LOAD);
    let segments = segments.map(|segment| (segment.offset, segment.file_size, segment.address)).collect();
    let stubs = elf.sections.iter().filter(|section| section.has(section_flag::EXECINSTR));
    let stubs = stubs.filter(|section| section.name == ".plt" || section.name.starts_with(".plt."));
    let stubs = stubs.map(|section| {
        (section.address, section.address.saturating_add(section.size), section.name == ".plt")
    });
    let starts: Vec<u64> = all.iter().map(|(start, ..)| *start).collect();
    let places = beginnings(&Sections::of(elf), &starts);
    Functions { all, files: local_files(elf), places, segments, stubs: stubs.collect() }
}

/// Functions whose symbols have no size, each up to the end of its section, or the next function: those of assembly, such as the
/// compiler's own `__x86.get_pc_thunk.ax`. valgrind does not name them.
fn without_size(elf: &Elf) -> Vec<(u64, u64, Box<str>)> {
    let Some(table) = elf.symbol_table() else { return Vec::new() };
    let named = elf.symbols(table).into_iter().filter_map(|symbol| {
        let section =
            elf.sections.get(symbol.section).filter(|section| section.has(section_flag::EXECINSTR))?;
        let end = section.address.checked_add(section.size)?;
        let is_function = symbol.kind == SymbolKind::Function && symbol.size == 0 && !symbol.name.is_empty();
        (is_function && (section.address..end).contains(&symbol.value))
            .then(|| (symbol.value, end, String::from_utf8_lossy(symbol.name).into()))
    });
    named.collect()
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
        let mut is_it = |offset: u64| matches!(names.at_offset(path, offset), Code::Function { symbol, .. } if symbol == &**name);
        assert_eq!([at(*start), at(end - 1), at(start - 1)].map(&mut is_it), [true, true, false]);
        for (path, offset) in [(path, u64::MAX), ("/no such file", 0), ("/dev/null", 0)] {
            assert_eq!(names.at_offset(path, offset), Code::Unnamed);
        }
    }
}
