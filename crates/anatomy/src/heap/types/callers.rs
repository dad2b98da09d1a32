//! The functions around allocations, from debug information: the types that their variables point to, and the constructors that
//! they call.

use std::path::Path;

use gimli::{constants as dw, Dwarf, DwarfPackage, DwoId, EndianSlice, SectionId, Unit, UnitHeader};
use rustc_hash::{FxHashMap, FxHashSet};

use super::entries::{text, Entries, Slice};
use crate::layout::object_file::{ObjectFile, SectionName};
use crate::layout::program::{Files, Notes};
use crate::names;

/// How a function names a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// A pointer variable of the unit, outside of functions.
    Global,
    /// A pointer member of a structure that a variable points to.
    Member,
    /// The function's result.
    Result,
    /// A variable or parameter of the function.
    Variable,
    /// A variable that is declared in the allocation's line.
    DeclaredHere,
    /// A constructor that follows in the allocation's line.
    Constructor,
    /// The call itself, where the compiler notes what it allocates.
    Call,
    /// A template parameter of the function or its class, whose name the source may use.
    TemplateParameter,
}

/// A type that a function names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its qualified name.
    pub name: String,
    /// Bytes, where the unit defines it.
    pub size: Option<u64>,
    /// The variable or member that points to it, or the template parameter.
    pub variable: String,
    /// How.
    pub evidence: Evidence,
}

/// What a function returns to its caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Returned {
    /// A pointer, a reference, or an owner of an object: it may be the block that the function asked for.
    Pointer,
    /// Nothing, or something that is no pointer.
    Other,
    /// Debug information does not say it.
    #[default]
    Unknown,
}

/// What debug information has of the function around a call.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// The types that it names.
    pub targets: Vec<Target>,
    /// What it returns.
    pub returned: Returned,
}

/// A call whose function is wanted: the address that it returns to, and the line of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// In the object file.
    pub address: u64,
    /// In the source.
    pub line: Option<u32>,
    /// Which function of those that are inlined there: 0 is the innermost.
    pub frame: usize,
}

/// What debug information has of the functions around the wanted calls; nothing for calls without it.
pub fn read(path: &Path, wanted: &FxHashSet<Wanted>) -> FxHashMap<Wanted, Around> {
    // The layouts of the same file say what of it is missing.
    match Files::open(path, &mut Notes::default()) {
        Ok(files) => read_files(&files, wanted),
        Err(_) => FxHashMap::default(),
    }
}

/// The same of a program in memory, without other files.
pub fn read_bytes(bytes: &[u8], wanted: &FxHashSet<Wanted>) -> FxHashMap<Wanted, Around> {
    match Files::from_bytes(bytes) {
        Ok(files) => read_files(&files, wanted),
        Err(_) => FxHashMap::default(),
    }
}

fn read_files(files: &Files, wanted: &FxHashSet<Wanted>) -> FxHashMap<Wanted, Around> {
    let mut found = FxHashMap::default();
    let mut dwarf = dwarf(&files.main);
    if let Some(file) = &files.supplementary {
        dwarf.set_sup(self::dwarf(file));
    }
    let apart = Apart::read(files, &dwarf);
    let mut order: Vec<Wanted> = wanted.iter().copied().collect();
    order.sort_by_key(|wanted| (wanted.address, wanted.line, wanted.frame));
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
        let mut inside: Vec<Wanted> = Vec::new();
        while let Ok(Some(range)) = ranges.next() {
            let from = order.partition_point(|wanted| wanted.address <= range.begin);
            let to = order.partition_point(|wanted| wanted.address <= range.end);
            inside.extend_from_slice(order.get(from..to).unwrap_or_default());
        }
        if inside.is_empty() {
            continue;
        }
        // The lines stay in the program.
        let lines = CodeLines::read(&unit);
        let split = unit.dwo_id.and_then(|id| apart.unit(id, &unit, &dwarf));
        let entries = match &split {
            Some((dwarf, unit)) => Entries::read(dwarf, unit),
            None => Entries::read(&dwarf, &unit),
        };
        let Ok(entries) = entries else { continue };
        let address_size = u64::from(files.main.address_size);
        for wanted in inside {
            let caller = Caller { entries: &entries, lines: &lines, wanted, address_size };
            found.extend(caller.around().map(|around| (wanted, around)));
        }
    }
    found
}

/// The parts of units that are in other files (`-gsplit-dwarf`).
struct Apart<'a> {
    /// The file of each unit, by the id that both parts have, and where in it.
    units: FxHashMap<DwoId, (usize, UnitHeader<Slice<'a>>)>,
    files: &'a [ObjectFile],
    package: Option<DwarfPackage<Slice<'a>>>,
}

impl<'a> Apart<'a> {
    fn read(files: &'a Files, program: &Dwarf<Slice<'a>>) -> Apart<'a> {
        let mut apart = Apart { units: FxHashMap::default(), files: &files.split, package: None };
        for (number, file) in files.split.iter().enumerate() {
            let dwarf = dwarf_apart(file, program);
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                if let Some(id) = dwarf.unit(header).ok().and_then(|unit| unit.dwo_id) {
                    apart.units.insert(id, (number, header));
                }
            }
        }
        apart.package = files.package.as_ref().and_then(|file| {
            let empty = EndianSlice::new(&[], file.endian);
            DwarfPackage::load(|id| section(file, id), empty).ok()
        });
        apart
    }

    /// The other part of a unit, with the sections that it refers to.
    fn unit(
        &self,
        id: DwoId,
        skeleton: &Unit<Slice<'a>>,
        program: &Dwarf<Slice<'a>>,
    ) -> Option<(Dwarf<Slice<'a>>, Unit<Slice<'a>>)> {
        let (dwarf, header) = match self.units.get(&id) {
            Some((file, header)) => (dwarf_apart(&self.files[*file], program), *header),
            None => {
                let dwarf = self.package.as_ref()?.find_cu(id, program).ok()??;
                let header = dwarf.units().next().ok()??;
                (dwarf, header)
            }
        };
        let mut unit = dwarf.unit(header).ok()?;
        unit.copy_relocated_attributes(skeleton);
        Some((dwarf, unit))
    }
}

fn dwarf_apart<'a>(file: &'a ObjectFile, program: &Dwarf<Slice<'a>>) -> Dwarf<Slice<'a>> {
    let mut dwarf = dwarf(file);
    dwarf.make_dwo(program);
    dwarf
}

fn dwarf(file: &ObjectFile) -> Dwarf<Slice<'_>> {
    Dwarf::load(|id| section(file, id)).unwrap_or_default()
}

fn section(file: &ObjectFile, id: SectionId) -> Result<Slice<'_>, gimli::Error> {
    let name = match id {
        SectionId::DebugInfo => SectionName::Info,
        SectionId::DebugTypes => SectionName::Types,
        SectionId::DebugAbbrev => SectionName::Abbrev,
        SectionId::DebugStr => SectionName::Str,
        SectionId::DebugLineStr => SectionName::LineStr,
        SectionId::DebugStrOffsets => SectionName::StrOffsets,
        SectionId::DebugLine => SectionName::Line,
        SectionId::DebugRanges => SectionName::Ranges,
        SectionId::DebugRngLists => SectionName::RngLists,
        SectionId::DebugAddr => SectionName::Addr,
        SectionId::DebugCuIndex => SectionName::CuIndex,
        SectionId::DebugTuIndex => SectionName::TuIndex,
        SectionId::DebugLoc => SectionName::Loc,
        SectionId::DebugLocLists => SectionName::LocLists,
        SectionId::DebugMacinfo => SectionName::Macinfo,
        SectionId::DebugMacro => SectionName::Macro,
        _ => return Ok(EndianSlice::new(&[], file.endian)),
    };
    Ok(EndianSlice::new(file.section(name), file.endian))
}

/// The lines of one unit's code.
struct CodeLines(Vec<(u64, Option<u32>)>);

impl CodeLines {
    /// Reads the unit's line table; what is behind damage is left out.
    fn read(unit: &Unit<Slice<'_>>) -> CodeLines {
        let mut lines = Vec::new();
        let Some(program) = unit.line_program.clone() else { return CodeLines(lines) };
        let mut rows = program.rows();
        while let Ok(Some((_, row))) = rows.next_row() {
            let line = row.line().filter(|_| !row.end_sequence());
            lines.push((row.address(), line.and_then(|line| u32::try_from(line.get()).ok())));
        }
        // An end of one sequence may be the beginning of another one.
        lines.sort_by_key(|(address, line)| (*address, line.is_some()));
        CodeLines(lines)
    }

    fn at(&self, address: u64) -> Option<u32> {
        let behind = self.0.partition_point(|(begin, _)| *begin <= address);
        self.0[..behind].last()?.1
    }
}

/// The function around one call.
struct Caller<'c, 'a> {
    entries: &'c Entries<'a>,
    lines: &'c CodeLines,
    wanted: Wanted,
    address_size: u64,
}

impl Caller<'_, '_> {
    fn around(&self) -> Option<Around> {
        let scopes = self.entries.scopes(self.wanted.address.wrapping_sub(1));
        let outermost = scopes.first().copied()?;
        let scopes = self.own_scopes(&scopes);
        let function = scopes.first().copied()?;
        Some(Around { targets: self.targets(outermost, scopes, function), returned: self.returned(function) })
    }

    fn targets(&self, outermost: u32, scopes: &[u32], function: u32) -> Vec<Target> {
        let mut targets = Vec::new();
        self.allocated(outermost, &mut targets);
        self.constructors(function, &mut targets);
        for scope in scopes.iter().rev() {
            for child in self.entries.children(*scope) {
                let tag = self.entries.at(child).tag;
                if matches!(tag, dw::DW_TAG_variable | dw::DW_TAG_formal_parameter) {
                    self.variable(child, &mut targets);
                }
            }
            if self.is_function(*scope) {
                let result = self.entries.inherited(*scope, |entry| entry.ty);
                self.pointed_to(result, "", Evidence::Result, &mut targets);
                for parameter in self.entries.template_parameters(*scope) {
                    let entry = self.entries.at(parameter);
                    let name = entry.name.map(text).unwrap_or_default();
                    if let Some(class) = entry.ty.and_then(|ty| self.entries.find(ty)) {
                        // Names of templates have numbers by their own names.
                        let own = self.entries.stripped(class);
                        let is_number = self.entries.at(own).tag == dw::DW_TAG_base_type;
                        let class = if is_number { own } else { class };
                        self.add(class, &name, Evidence::TemplateParameter, &mut targets);
                    }
                }
            }
        }
        for global in self.entries.globals() {
            let entry = self.entries.at(global);
            let name = entry.name.map(text).unwrap_or_default();
            self.pointed_to(entry.ty, &name, Evidence::Global, &mut targets);
        }
        let mut seen = FxHashSet::default();
        targets.retain(|target| seen.insert(target.clone()));
        targets
    }

    fn returned(&self, function: u32) -> Returned {
        let entries = self.entries;
        let Some(ty) = entries.inherited(function, |entry| entry.has_type.then_some(entry.ty)) else {
            // A function without a type returns nothing; without a name, it is a copy of one in another unit. With -g1, nothing has a type.
            let is_whole = entries.inherited(function, |entry| entry.name).is_some() && entries.have_types();
            return if is_whole { Returned::Other } else { Returned::Unknown };
        };
        let Some(ty) = ty.and_then(|ty| entries.find(ty)) else { return Returned::Unknown };
        let entry = entries.at(entries.stripped(ty));
        match entry.tag {
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
                Returned::Pointer
            }
            _ if entry.is_aggregate() && entry.name.map(text).is_some_and(|name| is_owner(&name)) => {
                Returned::Pointer
            }
            dw::DW_TAG_typedef if entry.has_type => Returned::Unknown,
            _ => Returned::Other,
        }
    }

    fn is_function(&self, scope: u32) -> bool {
        matches!(self.entries.at(scope).tag, dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine)
    }

    /// The scopes of the wanted function alone: variables of the function that it is inlined into are not its own, nor are those of
    /// functions inlined into it.
    fn own_scopes<'s>(&self, scopes: &'s [u32]) -> &'s [u32] {
        let functions: Vec<usize> = (0..scopes.len()).filter(|at| self.is_function(scopes[*at])).collect();
        let Some(own) = functions.len().checked_sub(1 + self.wanted.frame) else { return &[] };
        let end = functions.get(own + 1).copied().unwrap_or(scopes.len());
        &scopes[functions[own]..end]
    }

    /// The type that the compiler says the call allocates.
    fn allocated(&self, function: u32, targets: &mut Vec<Target>) {
        let calls = self.entries.below(function).map(|below| self.entries.at(below));
        let own = calls.filter(|entry| entry.return_address == Some(self.wanted.address));
        for class in own.filter_map(|entry| self.entries.find(entry.allocated?)) {
            self.add(class, "", Evidence::Call, targets);
        }
    }

    /// The classes whose constructors are inlined or called behind the call, in the same line: the nearest first, and an object before
    /// its members and bases.
    fn constructors(&self, function: u32, targets: &mut Vec<Target>) {
        let mut found: Vec<(u64, u32)> = Vec::new();
        for below in self.entries.below(function) {
            let entry = self.entries.at(below);
            let place = match entry.tag {
                dw::DW_TAG_inlined_subroutine if Some(entry.line) == self.wanted.line => {
                    self.entries.lowest(below)
                }
                dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site => {
                    let is_in_line = |behind: &u64| {
                        self.wanted.line.is_some()
                            && self.lines.at(behind.wrapping_sub(1)) == self.wanted.line
                    };
                    entry.return_address.filter(is_in_line)
                }
                _ => None,
            };
            let Some(place) = place.filter(|place| *place >= self.wanted.address) else { continue };
            if let Some(class) = entry.origin.and_then(|origin| self.entries.class_of_constructor(origin)) {
                found.push((place, class));
            }
        }
        found.sort_by_key(|(place, _)| *place);
        for (_, class) in found {
            self.add(class, "", Evidence::Constructor, targets);
        }
    }

    fn variable(&self, variable: u32, targets: &mut Vec<Target>) {
        let entries = self.entries;
        let ty = entries.inherited(variable, |entry| entry.ty);
        let name = entries.inherited(variable, |entry| entry.name).map(text).unwrap_or_default();
        let line = entries.inherited(variable, |entry| (entry.line > 0).then_some(entry.line));
        let evidence = match line.is_some() && line == self.wanted.line {
            true => Evidence::DeclaredHere,
            false => Evidence::Variable,
        };
        self.pointed_to(ty, &name, evidence, targets);
        // Members of what it is, or points to.
        let Some(own) = ty.and_then(|ty| entries.find(ty)).map(|ty| entries.stripped(ty)) else { return };
        let target = entries.stripped(entries.pointee(own).unwrap_or(own));
        self.members(target, targets, 0);
    }

    fn members(&self, class: u32, targets: &mut Vec<Target>, depth: u32) {
        if depth > 4 || !self.entries.at(class).is_aggregate() {
            return;
        }
        for child in self.entries.children(class) {
            let entry = self.entries.at(child);
            let name = entry.name.map(text).unwrap_or_default();
            match entry.tag {
                dw::DW_TAG_member => {
                    self.pointed_to(entry.ty, &name, Evidence::Member, targets);
                    // Structures without a name, and those inside.
                    if let Some(inner) = entry.ty.and_then(|ty| self.entries.find(ty)) {
                        self.members(self.entries.stripped(inner), targets, depth + 2);
                    }
                }
                dw::DW_TAG_inheritance => {
                    if let Some(base) = entry.ty.and_then(|ty| self.entries.find(ty)) {
                        self.members(self.entries.stripped(base), targets, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    /// What a pointer or each pointer of an array points to; of a class with template arguments, those that are pointers:
    /// `std::vector<Track*>`.
    fn pointed_to(&self, ty: Option<u64>, name: &str, evidence: Evidence, targets: &mut Vec<Target>) {
        let Some(own) = ty.and_then(|ty| self.entries.find(ty)).map(|ty| self.entries.stripped(ty)) else {
            return;
        };
        let entry = self.entries.at(own);
        let element = entry.ty.filter(|_| entry.tag == dw::DW_TAG_array_type);
        let own = match element.and_then(|element| self.entries.find(element)) {
            Some(element) => self.entries.stripped(element),
            None => own,
        };
        if let Some(target) = self.entries.pointee(own) {
            self.add(target, name, evidence, targets);
            return;
        }
        let Some(class) = self.entries.at(own).name.map(text) else { return };
        let is_owner = is_owner(&class);
        let Some(open) = class.find('<') else { return };
        let Some(close) = names::closing_bracket(&class[open..]) else { return };
        for (number, argument) in names::split(&class[open + 1..open + close]).into_iter().enumerate() {
            let target = match argument.strip_suffix('*') {
                Some(target) => target.trim(),
                None if is_owner && number == 0 => argument,
                None => continue,
            };
            let target = target.trim_end_matches("[]");
            targets.push(Target { name: target.to_owned(), size: None, variable: name.to_owned(), evidence });
        }
    }

    fn add(&self, target: u32, variable: &str, evidence: Evidence, targets: &mut Vec<Target>) {
        if let Some((name, size)) = self.entries.described(target, self.address_size) {
            targets.push(Target { name, size, variable: variable.to_owned(), evidence });
        }
    }
}

/// Whether a class of that name owns the object that its first template argument is the type of.
fn is_owner(class: &str) -> bool {
    ["unique_ptr<", "shared_ptr<"].iter().any(|owner| class.starts_with(owner))
}
