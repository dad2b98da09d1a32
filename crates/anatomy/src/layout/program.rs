//! All units of a program: those of its own file, of its split and supplementary files, and where each of them is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gimli::{
    Abbreviations, DebugAbbrev, DebugInfo, DebugTypes, IndexSectionId as SectionId, RunTimeEndian,
    UnitHeader, UnitType,
};
use rustc_hash::FxHashMap;

use super::model::{LayoutError, Layouts};
use super::object_file::{ObjectFile, Purpose, SectionName};
use super::unit::{self, Slice, Text, UnitTable};

/// The most files of split debug information that are opened.
const MOST_SPLIT_FILES: usize = 65536;
/// Longer names are cut: a hostile file would repeat one without end.
pub(super) const LONGEST_NAME: usize = 16 << 10;

/// The files that a program's debug information is in.
#[derive(Debug)]
pub(crate) struct Files {
    pub main: ObjectFile,
    /// What several programs share (dwz).
    pub supplementary: Option<ObjectFile>,
    /// Units apart (`.dwo`).
    pub split: Vec<ObjectFile>,
    /// All of those together (`.dwp`).
    pub package: Option<ObjectFile>,
    /// The DWO IDs of the units that are read from a package of another build; all of one of this build.
    package_ids: Option<Vec<u64>>,
}

/// Sections whose offsets belong together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    info: &'a [u8],
    types: &'a [u8],
    abbrev: &'a [u8],
    text: &'a [u8],
    line_text: &'a [u8],
    str_offsets: &'a [u8],
    pub line: &'a [u8],
    pub endian: RunTimeEndian,
    /// Equal offsets are equal strings in all units of this source: it is the program's own file.
    pub is_main: bool,
    pub is_split: bool,
    is_supplementary: bool,
    file: &'a ObjectFile,
}

/// Where a unit is.
#[derive(Debug, Clone)]
pub(super) struct Unit<'a> {
    pub source: u32,
    pub header: UnitHeader<Slice<'a>>,
    /// In its section.
    pub start: usize,
    pub end: usize,
    pub in_types: bool,
}

/// Everything that the workers share.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub sources: Vec<Source<'a>>,
    pub units: Vec<Unit<'a>>,
    /// Which units are read for their own sake: not those of a supplementary file.
    pub listed: Vec<u32>,
    pub signatures: FxHashMap<u64, (u32, u64)>,
    pub supplementary: Option<u32>,
    /// How many units use the abbreviations at an offset; those of several are kept.
    abbreviation_users: FxHashMap<(u32, usize), u32>,
    abbreviations: Mutex<FxHashMap<(u32, usize), Arc<Abbreviations>>>,
    pub address_size: u8,
}

impl Files {
    /// Opens the program and the files that it names.
    pub fn open(path: &Path, notes: &mut Notes) -> Result<Files, LayoutError> {
        let mut files = Files::open_main(path)?;
        files.open_supplementary(notes);
        files.open_split(path, notes);
        Ok(files)
    }

    fn open_main(path: &Path) -> Result<Files, LayoutError> {
        let mut main = ObjectFile::open(path, Purpose::Program)?;
        if !main.has_types() {
            if let Some(separate) = main.separate() {
                main = separate;
            }
        }
        Ok(Files { main, supplementary: None, split: Vec::new(), package: None, package_ids: None })
    }

    /// A program in memory, without other files.
    pub fn from_bytes(bytes: &[u8]) -> Result<Files, LayoutError> {
        let main = ObjectFile::from_bytes(bytes)?;
        Ok(Files { main, supplementary: None, split: Vec::new(), package: None, package_ids: None })
    }

    fn open_supplementary(&mut self, notes: &mut Notes) {
        let Some(path) = &self.main.supplementary else { return };
        match ObjectFile::open(path, Purpose::Supplementary) {
            Ok(file) => self.supplementary = Some(file),
            Err(error) => notes.add(format!(
                "the file of shared debug information (dwz) cannot be read, and types in it are missing: {error}"
            )),
        }
    }

    /// The files of the units whose debug information is apart (`-gsplit-dwarf`): a package beside the program, or one each.
    fn open_split(&mut self, path: &Path, notes: &mut Notes) {
        let mut names: Vec<(PathBuf, Option<u64>)> = Vec::new();
        let mut unread = Notes::default();
        let program = Program::of_main(&self.main, &mut unread);
        for unit in &program.units {
            // Skeletons have no children: reading stops soon.
            if unit.end - unit.start > 512 {
                continue;
            }
            let mut table = UnitTable::default();
            let Some(abbreviations) = program.abbreviations(unit) else { continue };
            let source = &program.sources[unit.source as usize];
            let _ = unit::scan_root(&unit.header, &abbreviations, &mut table);
            let text = |text| {
                source.text(text, &table, unit).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            if let Some(name) = text(table.dwo_name) {
                let folder = text(table.folder).unwrap_or_default();
                names.push((Path::new(&folder).join(name), split_id(unit, &table)));
            }
        }
        if names.is_empty() {
            return;
        }
        let mut package = path.as_os_str().to_owned();
        package.push(".dwp");
        names.sort();
        names.dedup();
        if let Ok(file) = ObjectFile::open(Path::new(&package), Purpose::Split) {
            let index = gimli::DebugCuIndex::new(file.section(SectionName::CuIndex), file.endian).index();
            let has = |id: u64| index.as_ref().is_ok_and(|index| index.find(id).is_some());
            let all = names.len();
            let mut held = Vec::new();
            names.retain(|(_, id)| {
                let is_held = id.is_none_or(has);
                held.extend(id.filter(|_| is_held));
                !is_held
            });
            if names.is_empty() {
                self.package = Some(file);
                return;
            }
            let verb = if names.len() == 1 { "is" } else { "are" };
            notes.add(format!(
                "the package of split debug information (.dwp) is of another build ({} of the {all} DWO IDs {verb} not in it)",
                names.len()
            ));
            if !held.is_empty() {
                (self.package, self.package_ids) = (Some(file), Some(held));
            }
        }
        self.open_each(&names, path.parent().unwrap_or(Path::new(".")), notes);
    }

    /// Opens the files of single units, where the program says or `beside` it.
    fn open_each(&mut self, names: &[(PathBuf, Option<u64>)], beside: &Path, notes: &mut Notes) {
        let (mut missing, mut foreign) = (Vec::new(), Vec::new());
        for (name, id) in names.iter().take(MOST_SPLIT_FILES) {
            let near = beside.join(name.file_name().unwrap_or_default());
            let open = |path: &Path| {
                ObjectFile::open(path, Purpose::Split).map(|file| (has_split_unit(&file, *id), file))
            };
            // Another build of the same source may have written its own file in its place.
            let found = match open(name) {
                Ok((true, file)) => Ok((true, file)),
                other => open(&near).ok().filter(|(is_of_program, _)| *is_of_program).map_or(other, Ok),
            };
            match found {
                Ok((true, file)) => self.split.push(file),
                Ok((false, _)) => foreign.push(name.as_path()),
                Err(LayoutError::Open { .. }) => missing.push(name.as_path()),
                Err(error) => notes.add(error.to_string()),
            }
        }
        let without = |files: &[&Path], what: &str| {
            format!("a file of split debug information (.dwo) {what}: {}", first_and_count(files))
        };
        if !foreign.is_empty() {
            notes.add(without(
                &foreign,
                "is of another build (its DWO ID differs), and its types are missing",
            ));
        }
        if !missing.is_empty() {
            notes.add(without(
                &missing,
                "is not where the program says, nor beside the program, and its types are missing",
            ));
        }
    }
}

/// Why the lines of a program may be unknown although it was built with debug information: what of it is apart (`-gsplit-dwarf`) and not
/// where a reader of lines looks, each reason once.
pub fn missing_split(path: &Path) -> Vec<String> {
    let mut notes = Notes::default();
    let Ok(mut files) = Files::open_main(path) else { return Vec::new() };
    files.open_split(path, &mut notes);
    if notes.0.is_empty() && !files.split.is_empty() {
        // They are beside the program.
        notes.add("its files of split debug information (.dwo) are not where the program says".to_owned());
    }
    notes.0.into_keys().collect()
}

/// The first of several files, and how many others there are.
fn first_and_count(files: &[&Path]) -> String {
    let first = files.first().map_or(String::new(), |file| file.display().to_string());
    match files.len() {
        0 | 1 => first,
        2 => format!("{first}, and 1 other file"),
        all => format!("{first}, and {} other files", all - 1),
    }
}

/// The id that a unit has in common with its other part in a `.dwo` file (DWARF 5, 7.5.1.2).
fn split_id(unit: &Unit<'_>, table: &UnitTable<'_>) -> Option<u64> {
    match unit.header.type_() {
        UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id.0),
        _ => table.dwo_id,
    }
}

/// Whether a `.dwo` file has the other part of a unit, or does not say.
fn has_split_unit(file: &ObjectFile, wanted: Option<u64>) -> bool {
    let program = Program::of_main(file, &mut Notes::default());
    let ids: Vec<u64> = program
        .units
        .iter()
        .filter_map(|unit| {
            let mut table = UnitTable::default();
            let abbreviations = program.abbreviations(unit)?;
            unit::scan_root(&unit.header, &abbreviations, &mut table).ok()?;
            split_id(unit, &table)
        })
        .collect();
    wanted.is_none_or(|wanted| ids.is_empty() || ids.contains(&wanted))
}

/// What could not be read, counted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Notes(pub std::collections::BTreeMap<String, u64>);

impl Notes {
    pub fn add(&mut self, reason: String) {
        // A hostile file has no end of reasons.
        if self.0.len() < 64 || self.0.contains_key(&reason) {
            *self.0.entry(reason).or_default() += 1;
        }
    }

    pub fn merge(&mut self, other: Notes) {
        for (reason, count) in other.0 {
            *self.0.entry(reason).or_default() += count;
        }
    }
}

impl<'a> Source<'a> {
    fn of(file: &'a ObjectFile) -> Source<'a> {
        Source {
            info: file.section(SectionName::Info),
            types: file.section(SectionName::Types),
            abbrev: file.section(SectionName::Abbrev),
            text: file.section(SectionName::Str),
            line_text: file.section(SectionName::LineStr),
            str_offsets: file.section(SectionName::StrOffsets),
            line: file.section(SectionName::Line),
            endian: file.endian,
            is_main: false,
            is_split: false,
            is_supplementary: false,
            file,
        }
    }

    /// The string's bytes.
    pub fn text(&self, text: Text<'a>, table: &UnitTable<'_>, unit: &Unit<'_>) -> Option<&'a [u8]> {
        let at = |section: &'a [u8], offset: u64| {
            let rest = section.get(usize::try_from(offset).ok()?..)?;
            // A hostile section has no end of a name for long.
            let rest = &rest[..rest.len().min(LONGEST_NAME)];
            let cut = std::ffi::CStr::from_bytes_until_nul(rest).map(std::ffi::CStr::to_bytes);
            Some(cut.unwrap_or(rest))
        };
        match text {
            Text::None | Text::Supplementary(_) => None,
            Text::Str(offset) => at(self.text, offset),
            Text::LineStr(offset) => at(self.line_text, offset),
            Text::Inline(bytes) => Some(bytes),
            Text::Index(index) => at(self.text, self.string_offset(index, table, unit)?),
        }
    }

    /// The offset that an index into `.debug_str_offsets` stands for (DWARF 5, 7.26).
    pub fn string_offset(&self, index: u64, table: &UnitTable<'_>, unit: &Unit<'_>) -> Option<u64> {
        let wide = unit.header.format() == gimli::Format::Dwarf64;
        let (word, head) = if wide { (8, 16) } else { (4, 8) };
        let base = match table.str_offsets_base {
            Some(base) => base,
            None if unit.header.version() >= 5 => head,
            None => 0,
        };
        let at = usize::try_from(base.checked_add(index.checked_mul(word)?)?).ok()?;
        let bytes = self.str_offsets.get(at..at.checked_add(word as usize)?)?;
        let mut number = [0; 8];
        match self.endian {
            RunTimeEndian::Little => number[..bytes.len()].copy_from_slice(bytes),
            RunTimeEndian::Big => number[8 - bytes.len()..].copy_from_slice(bytes),
        }
        Some(match self.endian {
            RunTimeEndian::Little => u64::from_le_bytes(number),
            RunTimeEndian::Big => u64::from_be_bytes(number),
        })
    }

    /// This part of the file will not be read soon again.
    pub fn release(&self, unit: &Unit<'_>) {
        if !self.is_split && !unit.in_types {
            self.file.release(SectionName::Info, unit.start, unit.end);
        }
    }
}

impl<'a> Program<'a> {
    /// Finds all units. Their contents are not read.
    pub fn new(files: &'a Files, notes: &mut Notes) -> Program<'a> {
        let mut program = Program::of_main(&files.main, notes);
        if let Some(file) = &files.supplementary {
            program.supplementary = Some(program.sources.len() as u32);
            let source = Source { is_supplementary: true, ..Source::of(file) };
            program.add(source, notes);
        }
        for file in &files.split {
            program.add(Source { is_split: true, ..Source::of(file) }, notes);
        }
        if let Some(file) = &files.package {
            program.add_package(file, files.package_ids.as_deref(), notes);
        }
        program
    }

    fn of_main(file: &'a ObjectFile, notes: &mut Notes) -> Program<'a> {
        let mut program = Program {
            sources: Vec::new(),
            units: Vec::new(),
            listed: Vec::new(),
            signatures: FxHashMap::default(),
            supplementary: None,
            abbreviation_users: FxHashMap::default(),
            abbreviations: Mutex::default(),
            address_size: file.address_size,
        };
        program.add(Source { is_main: true, ..Source::of(file) }, notes);
        program
    }

    fn add(&mut self, source: Source<'a>, notes: &mut Notes) {
        for reason in &source.file.unread {
            notes.add(reason.clone());
        }
        let number = self.sources.len() as u32;
        self.sources.push(source);
        let mut headers = DebugInfo::new(source.info, source.endian).units();
        let mut broken = None;
        loop {
            match headers.next() {
                Ok(Some(header)) => self.add_unit(number, header, false),
                Ok(None) => break,
                Err(error) => break broken = Some(error),
            }
        }
        let mut headers = DebugTypes::new(source.types, source.endian).units();
        while let Ok(Some(header)) = headers.next() {
            self.add_unit(number, header, true);
        }
        if let Some(error) = broken {
            notes.add(format!("the list of units breaks off, and later units are missing: {error}"));
        }
    }

    fn add_unit(&mut self, source: u32, header: UnitHeader<Slice<'a>>, in_types: bool) {
        let index = self.units.len() as u32;
        let gimli::UnitSectionOffset(start) = header.offset();
        let end = start.saturating_add(header.length_including_self());
        if let UnitType::Type { type_signature, type_offset }
        | UnitType::SplitType { type_signature, type_offset } = header.type_()
        {
            self.signatures.entry(type_signature.0).or_insert((index, type_offset.0 as u64));
        }
        *self.abbreviation_users.entry((source, header.debug_abbrev_offset().0)).or_default() += 1;
        if !self.sources[source as usize].is_supplementary {
            self.listed.push(index);
        }
        self.units.push(Unit { source, header, start, end, in_types });
    }

    /// A package (.dwp), or the units of these DWO IDs in it: its index says which part of each section belongs to a unit (DWARF 5, 7.3.5).
    fn add_package(&mut self, file: &'a ObjectFile, ids: Option<&[u64]>, notes: &mut Notes) {
        let whole = Source { is_split: true, ..Source::of(file) };
        let mut rows = 0;
        // Type units are found by what is in them, whichever build they are of.
        let indices = [
            (ids, gimli::DebugCuIndex::new(file.section(SectionName::CuIndex), file.endian).index()),
            (None, gimli::DebugTuIndex::new(file.section(SectionName::TuIndex), file.endian).index()),
        ];
        for (ids, index) in indices {
            let index = match index {
                Ok(index) => index,
                Err(error) => {
                    notes.add(format!("an index of {} cannot be read: {error}", file.path.display()));
                    continue;
                }
            };
            let rows_of = |ids: &[u64]| ids.iter().filter_map(|id| index.find(*id)).collect::<Vec<_>>();
            let wanted = ids.map_or_else(|| (1..=index.unit_count()).collect(), rows_of);
            for row in wanted {
                let Ok(parts) = index.sections(row) else { continue };
                // A type unit's row is in `.debug_info` too since DWARF 5.
                let mut source = Source { info: &[], types: &[], ..whole };
                for part in parts {
                    let range =
                        part.offset as usize..(part.offset as usize).saturating_add(part.size as usize);
                    let cut = |section: &'a [u8]| section.get(range.clone()).unwrap_or_default();
                    match part.section {
                        SectionId::DebugInfo => source.info = cut(whole.info),
                        SectionId::DebugTypes => source.types = cut(whole.types),
                        SectionId::DebugAbbrev => source.abbrev = cut(whole.abbrev),
                        SectionId::DebugLine => source.line = cut(whole.line),
                        SectionId::DebugStrOffsets => source.str_offsets = cut(whole.str_offsets),
                        _ => {}
                    }
                }
                rows += 1;
                self.add(source, notes);
            }
        }
        if rows == 0 {
            notes.add(format!("{} has no index of units", file.path.display()));
        }
    }

    /// The abbreviations of a unit.
    pub fn abbreviations(&self, unit: &Unit<'a>) -> Option<Arc<Abbreviations>> {
        let offset = unit.header.debug_abbrev_offset();
        let key = (unit.source, offset.0);
        let is_shared = self.abbreviation_users.get(&key).is_some_and(|users| *users > 1);
        if is_shared {
            let known = self.abbreviations.lock().ok()?;
            if let Some(abbreviations) = known.get(&key) {
                return Some(abbreviations.clone());
            }
        }
        let source = &self.sources[unit.source as usize];
        let parsed = Arc::new(DebugAbbrev::new(source.abbrev, source.endian).abbreviations(offset).ok()?);
        if is_shared {
            self.abbreviations.lock().ok()?.insert(key, parsed.clone());
        }
        Some(parsed)
    }

    /// The unit of a source's `.debug_info` that an offset is in.
    pub fn unit_at(&self, source: u32, offset: u64) -> Option<u32> {
        let offset = usize::try_from(offset).ok()?;
        // Units are in the order of their sources and sections.
        let after = self
            .units
            .partition_point(|unit| (unit.source, unit.in_types, unit.start) <= (source, false, offset));
        let index = after.checked_sub(1)?;
        let unit = &self.units[index];
        (unit.source == source && !unit.in_types && offset < unit.end).then_some(index as u32)
    }
}

/// What is known of a program before its types.
pub(super) fn empty(main: &ObjectFile) -> Layouts {
    Layouts {
        abi: main.abi.clone(),
        address_size: main.address_size,
        packs_wide_numbers: main.packs_wide_numbers,
        ..Layouts::default()
    }
}
