//! Makes types of a unit's entries. Each type has a key, computed from where its names are in the string section, so that a type
//! which another unit has too is recognised without a look at its names.

mod destructors;
mod names;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use gimli::constants as dw;
use rustc_hash::FxHashMap;

use super::lines;
use super::model::{Bits, Destructor, Kind, Location, Role};
use super::program::{Notes, Program, LONGEST_NAME};
use super::unit::{self, flags, Die, Ref, Text, UnitTable, ABSENT, NONE};
use crate::languages::is_cpp;

/// Identifies a type in all units: equal keys are equal types.
pub(super) type Key = u128;

const NOT_YET: Key = 0;
const COMPUTING: Key = 1;
/// What stands where no type is.
pub(super) const VOID: Key = 2;
/// What stands where a type contains itself.
pub(super) const CYCLIC: Key = 3;
const FIRST: Key = 16;

/// Types inside of types inside of types: nothing that a compiler wrote is nested as deeply.
const DEEPEST: u32 = 3000;
/// The entries of other units that a thread keeps.
const MOST_FOREIGN_DIES: usize = 4 << 20;
const SHARDS: usize = 64;
/// Bytes of all types' names together. Beyond it they are cut.
const MOST_NAME_BYTES: usize = 1 << 30;
const SHORT_NAME: usize = 128;
/// A number has no more names that are each other's.
pub(super) const MOST_NAMES: usize = 16;

/// A type as the threads collect it: others are named by their keys.
#[derive(Debug)]
pub(super) enum RawType {
    Base { name: Box<str>, size: u64, integer: bool },
    Pointer { name: Box<str>, size: u64 },
    Enumeration { name: Box<str>, size: u64 },
    Typedef { name: Box<str>, target: Key },
    Array { element: Key, count: Option<u64>, size: Option<u64> },
    Aggregate(Box<RawAggregate>),
    Declared { name: Box<str> },
    Other { name: Box<str>, size: u64 },
}

#[derive(Debug)]
pub(super) struct RawAggregate {
    pub name: Box<str>,
    pub kind: Kind,
    pub size: u64,
    pub explicit_alignment: Option<u64>,
    pub members: Vec<RawMember>,
    pub location: Option<Location>,
}

#[derive(Debug)]
pub(super) struct RawMember {
    pub name: Option<Box<str>>,
    pub role: Role,
    pub offset: Option<u64>,
    pub bits: Option<Bits>,
    pub explicit_alignment: Option<u64>,
    pub ty: Key,
}

/// The types that were found so far, by all threads.
#[derive(Debug)]
pub(super) struct Found {
    shards: Vec<Mutex<FxHashMap<Key, RawType>>>,
    name_bytes: AtomicUsize,
    /// Classes with a destructor of their own. A unit may describe fewer of a class's functions than another.
    destructors: Mutex<FxHashMap<Key, Destructor>>,
    /// Whether any unit describes a type.
    pub describes_types: AtomicBool,
    /// Whether any unit's language lets members overlap.
    pub overlaps_members: AtomicBool,
    /// Whether any unit was built with an option that gives members other alignments.
    pub changes_alignments: AtomicBool,
    hashing: [RandomState; 2],
}

impl Found {
    pub fn new() -> Found {
        Found {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            name_bytes: AtomicUsize::new(0),
            destructors: Mutex::default(),
            describes_types: AtomicBool::new(false),
            overlaps_members: AtomicBool::new(false),
            changes_alignments: AtomicBool::new(false),
            hashing: [RandomState::new(), RandomState::new()],
        }
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, FxHashMap<Key, RawType>> {
        let shard = &self.shards[(key >> 64) as usize % SHARDS];
        shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The types, and the classes with a destructor of their own.
    pub fn into_types(self) -> (FxHashMap<Key, RawType>, FxHashMap<Key, Destructor>) {
        let mut all = FxHashMap::default();
        for shard in self.shards {
            let shard = shard.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            all.reserve(shard.len());
            all.extend(shard);
        }
        let destructors = self.destructors.into_inner();
        (all, destructors.unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

fn is_structure(table: &UnitTable<'_>, target: u64) -> bool {
    let named = table.find(target).map(|target| &table.dies[target as usize]);
    named.is_some_and(|named| named.is_aggregate() && named.name != Text::None)
}

/// Whether the entry is a number or a name of one: `time_t` is `__time_t`, and that is a number.
fn is_number(table: &UnitTable<'_>, mut target: u64) -> bool {
    for _ in 0..MOST_NAMES {
        let Some(named) = table.find(target).map(|target| &table.dies[target as usize]) else { return false };
        match (named.tag, named.ty) {
            (dw::DW_TAG_typedef, Ref::Unit(next)) => target = next,
            (tag, _) => return tag == dw::DW_TAG_base_type,
        }
    }
    false
}

/// Two hashes with random keys: no file can be made so that two of its types have one key.
struct KeyHasher(std::hash::DefaultHasher, std::hash::DefaultHasher);

impl KeyHasher {
    fn new(found: &Found, first: u64) -> KeyHasher {
        let mut hasher = KeyHasher(found.hashing[0].build_hasher(), found.hashing[1].build_hasher());
        hasher.add(first);
        hasher
    }

    fn add(&mut self, number: u64) {
        self.0.write_u64(number);
        self.1.write_u64(number);
    }

    fn add_key(&mut self, key: Key) {
        self.add(key as u64);
        self.add((key >> 64) as u64);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn finish(self) -> Key {
        ((u128::from(self.0.finish()) << 64) | u128::from(self.1.finish())).max(FIRST)
    }
}

/// An entry of a loaded unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    slot: u32,
    index: u32,
}

/// A unit whose entries are in memory.
#[derive(Default)]
struct Loaded<'a> {
    unit: u32,
    table: UnitTable<'a>,
    keys: Vec<Key>,
    name_keys: Vec<Key>,
    files: Option<Vec<Box<str>>>,
}

/// Reads units, one after the other: each thread has one.
pub(super) struct Reader<'p, 'a> {
    program: &'p Program<'a>,
    found: &'p Found,
    /// The unit that is read, then those that units refer to.
    loaded: Vec<Loaded<'a>>,
    foreign: FxHashMap<u32, u32>,
    pub notes: Notes,
    /// Imported units of a supplementary file.
    pub imported: Vec<u32>,
}

impl<'p, 'a> Reader<'p, 'a> {
    pub fn new(program: &'p Program<'a>, found: &'p Found) -> Self {
        Reader {
            program,
            found,
            loaded: vec![Loaded::default()],
            foreign: FxHashMap::default(),
            notes: Notes::default(),
            imported: Vec::new(),
        }
    }

    /// Reads all types that the unit defines.
    pub fn read(&mut self, unit: u32) {
        if self.loaded.iter().skip(1).map(|loaded| loaded.table.dies.len()).sum::<usize>() > MOST_FOREIGN_DIES
        {
            self.loaded.truncate(1);
            self.foreign.clear();
        }
        self.load(0, unit);
        // `[[no_unique_address]]` is of C++.
        if u16::try_from(self.loaded[0].table.language).is_ok_and(|number| is_cpp(dw::DwLang(number))) {
            self.found.overlaps_members.store(true, Ordering::Relaxed);
        }
        if self.loaded[0].table.changes_alignments {
            self.found.changes_alignments.store(true, Ordering::Relaxed);
        }
        for index in 0..self.loaded[0].table.dies.len() as u32 {
            let die = &self.loaded[0].table.dies[index as usize];
            if die.tag == dw::DW_TAG_base_type || die.is_aggregate() {
                self.found.describes_types.store(true, Ordering::Relaxed);
            }
            if die.tag == dw::DW_TAG_imported_unit {
                let to = die.ty;
                self.import(to);
            } else if die.is_aggregate() && !die.has(flags::DECLARATION) || self.is_other_name(die) {
                self.key(Entry { slot: 0, index }, 0);
            }
        }
        let unit = &self.program.units[unit as usize];
        self.program.sources[unit.source as usize].release(unit);
    }

    /// Whether the entry is a second name of a structure or a name of a number, outside of classes and functions: the source may use it
    /// in `sizeof`.
    fn is_other_name(&self, die: &Die<'a>) -> bool {
        let table = &self.loaded[0].table;
        let (dw::DW_TAG_typedef, Ref::Unit(target)) = (die.tag, die.ty) else { return false };
        let parent = table.dies.get(die.parent as usize);
        let is_outside =
            die.parent == NONE || parent.is_some_and(|parent| parent.tag == dw::DW_TAG_namespace);
        is_outside && (is_structure(table, target) || is_number(table, target))
    }

    fn import(&mut self, to: Ref) {
        let (Ref::Supplementary(offset), Some(source)) = (to, self.program.supplementary) else { return };
        if let Some(unit) = self.program.unit_at(source, offset) {
            self.imported.push(unit);
        }
    }

    fn load(&mut self, slot: u32, unit: u32) {
        let place = &self.program.units[unit as usize];
        let source = &self.program.sources[place.source as usize];
        let slot = slot as usize;
        let mut table = std::mem::take(&mut self.loaded[slot].table);
        table.clear();
        match self.program.abbreviations(place) {
            Some(abbreviations) => {
                let resolve = |text, table: &UnitTable<'a>| source.text(text, table, place);
                if let Err(error) = unit::scan(&place.header, &abbreviations, &mut table, &resolve) {
                    self.notes.add(format!("a unit's debug information breaks off: {error}"));
                }
            }
            None => self.notes.add("a unit's abbreviations cannot be read".to_owned()),
        }
        let loaded = &mut self.loaded[slot];
        loaded.unit = unit;
        for keys in [&mut loaded.keys, &mut loaded.name_keys] {
            keys.clear();
            keys.resize(table.dies.len(), NOT_YET);
        }
        loaded.files = None;
        loaded.table = table;
    }

    fn die(&self, entry: Entry) -> &Die<'a> {
        &self.loaded[entry.slot as usize].table.dies[entry.index as usize]
    }

    fn unit_of(&self, slot: u32) -> &'p super::program::Unit<'a> {
        &self.program.units[self.loaded[slot as usize].unit as usize]
    }

    /// Follows a reference, which may load another unit.
    fn resolve(&mut self, slot: u32, to: Ref) -> Option<Entry> {
        let (unit, offset) = match to {
            Ref::None => return None,
            Ref::Unit(offset) => {
                return self.loaded[slot as usize].table.find(offset).map(|index| Entry { slot, index });
            }
            Ref::Info(offset) => {
                let unit = self.program.unit_at(self.unit_of(slot).source, offset)?;
                (unit, offset - self.program.units[unit as usize].start as u64)
            }
            Ref::Supplementary(offset) => {
                let unit = self.program.unit_at(self.program.supplementary?, offset)?;
                (unit, offset - self.program.units[unit as usize].start as u64)
            }
            Ref::Signature(signature) => *self.program.signatures.get(&signature)?,
        };
        let slot = if self.loaded[0].unit == unit {
            0
        } else if let Some(slot) = self.foreign.get(&unit) {
            *slot
        } else {
            let slot = self.loaded.len() as u32;
            self.loaded.push(Loaded::default());
            self.foreign.insert(unit, slot);
            self.load(slot, unit);
            slot
        };
        self.loaded[slot as usize].table.find(offset).map(|index| Entry { slot, index })
    }

    fn bytes(&self, slot: u32, text: Text<'a>) -> Option<&'a [u8]> {
        let unit = self.unit_of(slot);
        let source = match text {
            Text::Supplementary(_) => self.program.supplementary?,
            _ => unit.source,
        };
        let text = match text {
            Text::Supplementary(offset) => Text::Str(offset),
            other => other,
        };
        self.program.sources[source as usize].text(text, &self.loaded[slot as usize].table, unit)
    }

    fn add_text(&self, hasher: &mut KeyHasher, slot: u32, text: Text<'a>) {
        let is_main = self.program.sources[self.unit_of(slot).source as usize].is_main;
        match text {
            Text::None => hasher.add(0),
            Text::Str(offset) if is_main => {
                hasher.add(1);
                hasher.add(offset);
            }
            Text::LineStr(offset) if is_main => {
                hasher.add(2);
                hasher.add(offset);
            }
            text => {
                hasher.add(3);
                hasher.add_bytes(self.bytes(slot, text).unwrap_or_default());
            }
        }
    }

    /// The type that an entry's `DW_AT_type` names.
    fn type_key(&mut self, entry: Entry, depth: u32) -> Key {
        let to = self.die(entry).ty;
        match self.resolve(entry.slot, to) {
            Some(target) => self.key(target, depth + 1),
            None if to == Ref::None => VOID,
            None => {
                self.notes.add("a type refers to an entry that is not there".to_owned());
                VOID
            }
        }
    }

    /// The key of a type, which is collected if it is new.
    fn key(&mut self, entry: Entry, depth: u32) -> Key {
        let (slot, index) = (entry.slot as usize, entry.index as usize);
        match self.loaded[slot].keys[index] {
            NOT_YET => {}
            COMPUTING => {
                self.notes.add("a type contains itself".to_owned());
                return CYCLIC;
            }
            known => return known,
        }
        if depth > DEEPEST {
            self.notes.add(format!("types are nested more than {DEEPEST} deep"));
            return VOID;
        }
        self.loaded[slot].keys[index] = COMPUTING;
        let key = self.compute(entry, depth);
        self.loaded[slot].keys[index] = key;
        key
    }

    fn compute(&mut self, entry: Entry, depth: u32) -> Key {
        let die = self.die(entry).clone();
        match die.tag {
            dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type
            | dw::DW_TAG_immutable_type
            | dw::DW_TAG_shared_type
            | dw::DW_TAG_packed_type => self.type_key(entry, depth),
            dw::DW_TAG_typedef | dw::DW_TAG_template_alias => {
                let target = self.type_key(entry, depth);
                let mut hasher = KeyHasher::new(self.found, 3);
                self.add_text(&mut hasher, entry.slot, die.name);
                hasher.add_key(target);
                self.collect(hasher.finish(), |reader| RawType::Typedef {
                    name: reader.plain_name(entry),
                    target,
                })
            }
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type
            | dw::DW_TAG_ptr_to_member_type => self.pointer(entry, &die),
            dw::DW_TAG_array_type => self.array(entry, &die, depth),
            // Debug information gives no size of `decltype(nullptr)`: it is that of a pointer (C++17, 6.9.1).
            dw::DW_TAG_unspecified_type if self.plain_name(entry).ends_with("nullptr)") => {
                self.pointer(entry, &die)
            }
            _ if die.is_aggregate() => self.aggregate(entry, &die, depth),
            dw::DW_TAG_subrange_type if die.size == ABSENT => self.type_key(entry, depth),
            _ => self.simple(entry, &die, depth),
        }
    }

    fn collect(&mut self, key: Key, build: impl FnOnce(&mut Self) -> RawType) -> Key {
        if !self.found.shard(key).contains_key(&key) {
            let built = build(self);
            self.found.shard(key).insert(key, built);
        }
        key
    }

    /// Base types, enumerations, and those of which only the size is known.
    fn simple(&mut self, entry: Entry, die: &Die<'a>, depth: u32) -> Key {
        let is_enumeration = die.tag == dw::DW_TAG_enumeration_type;
        let mut size = die.size;
        if is_enumeration && die.is_declaration() {
            if let Some(definition) = self.resolve(entry.slot, die.origin).filter(|to| *to != entry) {
                return self.key(definition, depth + 1);
            }
        }
        if size == ABSENT {
            size = match die.bit_size {
                ABSENT => 0,
                bits => bits.div_ceil(8),
            };
        }
        let mut hasher = KeyHasher::new(self.found, 1);
        hasher.add(u64::from(die.tag.0));
        hasher.add(size);
        hasher.add(u64::from(die.encoding));
        let name_key = self.name_key(entry, 0);
        hasher.add_key(name_key);
        let encoding = dw::DwAte(die.encoding);
        let tag = die.tag;
        self.collect(hasher.finish(), |reader| match tag {
            dw::DW_TAG_base_type => RawType::Base {
                name: reader.plain_name(entry),
                size,
                integer: matches!(encoding, dw::DW_ATE_signed | dw::DW_ATE_unsigned),
            },
            dw::DW_TAG_enumeration_type => RawType::Enumeration { name: reader.type_name(entry), size },
            _ => RawType::Other { name: reader.type_name(entry), size },
        })
    }

    fn pointer(&mut self, entry: Entry, die: &Die<'a>) -> Key {
        let unit = self.unit_of(entry.slot);
        let address = u64::from(unit.header.address_size().min(self.program.address_size));
        let mut size = die.size;
        if size == ABSENT {
            size = address;
            if die.tag == dw::DW_TAG_ptr_to_member_type {
                // Itanium C++ ABI, 2.3: a pointer to a member function is a pointer and an adjustment.
                let target = self.resolve(entry.slot, die.ty);
                if target.is_some_and(|target| self.die(target).tag == dw::DW_TAG_subroutine_type) {
                    size = 2 * address;
                }
            }
        }
        let mut hasher = KeyHasher::new(self.found, 2);
        hasher.add(size);
        let name_key = self.name_key(entry, 0);
        hasher.add_key(name_key);
        self.collect(hasher.finish(), |reader| RawType::Pointer { name: reader.type_name(entry), size })
    }

    fn array(&mut self, entry: Entry, die: &Die<'a>, depth: u32) -> Key {
        let element = self.type_key(entry, depth);
        let mut count = Some(1_u64);
        let mut dimensions = 0;
        let children: Vec<u32> = self.loaded[entry.slot as usize].table.children(entry.index).collect();
        for index in children {
            let child = self.die(Entry { slot: entry.slot, index });
            if child.tag != dw::DW_TAG_subrange_type && child.tag != dw::DW_TAG_enumeration_type {
                continue;
            }
            dimensions += 1;
            let length = match child.place {
                _ if child.has(flags::VARIABLE_LENGTH) => None,
                ABSENT if child.has(flags::UPPER_BOUND) => Some(0),
                ABSENT => None,
                // Lower bounds other than 0 are Fortran's and Ada's, which are not compared.
                place if child.has(flags::UPPER_BOUND) => place.checked_add(1),
                place => Some(place),
            };
            count = count.zip(length).and_then(|(count, length)| count.checked_mul(length));
        }
        if dimensions == 0 {
            count = None;
        }
        let size = (die.size != ABSENT).then_some(die.size);
        let mut hasher = KeyHasher::new(self.found, 4);
        hasher.add_key(element);
        hasher.add(count.unwrap_or(ABSENT));
        hasher.add(size.unwrap_or(ABSENT));
        self.collect(hasher.finish(), |_| RawType::Array { element, count, size })
    }

    fn aggregate(&mut self, entry: Entry, die: &Die<'a>, depth: u32) -> Key {
        if die.has(flags::DECLARATION) || die.size == ABSENT {
            if let Some(definition) = self.resolve(entry.slot, die.origin).filter(|to| *to != entry) {
                return self.key(definition, depth + 1);
            }
            let name_key = self.name_key(entry, 0);
            let mut hasher = KeyHasher::new(self.found, 7);
            hasher.add_key(name_key);
            return self
                .collect(hasher.finish(), |reader| RawType::Declared { name: reader.type_name(entry) });
        }
        let mut members: Vec<(u32, Role, Key)> = Vec::new();
        self.members(entry, entry.index, Role::Field, depth, &mut members);
        let name_key = self.name_key(entry, 0);
        let mut hasher = KeyHasher::new(self.found, 6);
        hasher.add(u64::from(die.tag.0));
        hasher.add_key(name_key);
        hasher.add(die.size);
        hasher.add(die.alignment);
        for (index, role, key) in &members {
            let member = self.die(Entry { slot: entry.slot, index: *index });
            hasher.add(*role as u64);
            hasher.add_key(*key);
            for number in [
                member.place,
                member.bit_size,
                member.bit_offset,
                member.data_bit_offset,
                member.size,
                member.alignment,
            ] {
                hasher.add(number);
            }
            self.add_text(&mut hasher, entry.slot, member.name);
        }
        let size = die.size;
        let explicit_alignment = (die.alignment != ABSENT).then_some(die.alignment);
        let kind = match die.tag {
            dw::DW_TAG_union_type => Kind::Union,
            dw::DW_TAG_structure_type => Kind::Struct,
            _ => Kind::Class,
        };
        let key = hasher.finish();
        self.note_destructor(entry, die, &members, key);
        self.collect(key, |reader| {
            let members = members.iter().map(|member| reader.member(entry, member)).collect();
            RawType::Aggregate(Box::new(RawAggregate {
                name: reader.type_name(entry),
                kind,
                size,
                explicit_alignment,
                members,
                location: reader.location(entry),
            }))
        })
    }

    /// The members and bases, with those of a tagged union's variants.
    fn members(&mut self, entry: Entry, below: u32, role: Role, depth: u32, to: &mut Vec<(u32, Role, Key)>) {
        let children: Vec<u32> = self.loaded[entry.slot as usize].table.children(below).collect();
        for index in children {
            let child = Entry { slot: entry.slot, index };
            let die = self.die(child);
            let role = match die.tag {
                dw::DW_TAG_inheritance if die.has(flags::VIRTUAL) => Role::VirtualBase,
                dw::DW_TAG_inheritance => Role::Base,
                dw::DW_TAG_variant_part | dw::DW_TAG_variant if depth < DEEPEST => {
                    self.members(entry, index, Role::Variant, depth + 1, to);
                    continue;
                }
                dw::DW_TAG_member => {
                    // Static members have no place in an object.
                    if die.has(flags::STATIC | flags::DECLARATION) {
                        continue;
                    }
                    role
                }
                _ => continue,
            };
            let key = self.type_key(child, depth);
            to.push((index, role, key));
        }
    }

    fn member(&mut self, of: Entry, (index, role, ty): &(u32, Role, Key)) -> RawMember {
        let entry = Entry { slot: of.slot, index: *index };
        let die = self.die(entry).clone();
        let name = match role {
            Role::Base | Role::VirtualBase => {
                self.resolve(entry.slot, die.ty).map(|base| self.type_name(base))
            }
            _ => self.bytes(entry.slot, die.name).map(|name| String::from_utf8_lossy(cut(name)).into()),
        };
        let is_vptr = name.as_deref().is_some_and(|name: &str| name.starts_with("_vptr"));
        let role = if is_vptr && *role == Role::Field { Role::VirtualTable } else { *role };
        let bits = self.bits(entry, &die);
        let explicit_alignment = (die.alignment != ABSENT).then_some(die.alignment);
        let offset = match (role, die.place) {
            (Role::VirtualBase, _) => None,
            _ if die.has(flags::EXPRESSION) => None,
            (_, ABSENT) => Some(bits.map_or(0, |bits| bits.offset / 8)),
            (_, place) => Some(bits.map_or(place, |bits| bits.offset / 8)),
        };
        RawMember { name, role, offset, bits, explicit_alignment, ty: *ty }
    }

    /// A bit field's place: DWARF 4's `DW_AT_data_bit_offset`, or DWARF 2's, which counts from the other end of a storage unit.
    fn bits(&mut self, entry: Entry, die: &Die<'a>) -> Option<Bits> {
        if die.bit_size == ABSENT {
            return None;
        }
        let size = die.bit_size;
        if die.data_bit_offset != ABSENT {
            let place = if die.place == ABSENT { 0 } else { die.place };
            return Some(Bits { offset: place.saturating_mul(8).saturating_add(die.data_bit_offset), size });
        }
        let start = if die.place == ABSENT { 0 } else { die.place.saturating_mul(8) };
        if die.bit_offset == ABSENT {
            return Some(Bits { offset: start, size });
        }
        let source = self.unit_of(entry.slot).source as usize;
        if self.program.sources[source].endian == gimli::RunTimeEndian::Big {
            return Some(Bits { offset: start.saturating_add(die.bit_offset), size });
        }
        let storage = match die.size {
            ABSENT => self.storage(entry, 0),
            size => size,
        };
        // The offset may be negative: a field at the beginning of a storage unit that began before.
        let from_end = (die.bit_offset as i64).saturating_add(size.min(1 << 32) as i64);
        let offset =
            (start as i64).saturating_add((storage.saturating_mul(8) as i64).saturating_sub(from_end));
        Some(Bits { offset: offset.max(0) as u64, size })
    }

    /// The bytes of the type that a bit field is declared with.
    fn storage(&mut self, entry: Entry, depth: u32) -> u64 {
        let to = self.die(entry).ty;
        match self.resolve(entry.slot, to) {
            Some(target) if self.die(target).size != ABSENT => self.die(target).size,
            Some(target) if depth < 64 => self.storage(target, depth + 1),
            _ => 0,
        }
    }

    /// Where it is declared.
    fn location(&mut self, entry: Entry) -> Option<Location> {
        let (file, line) = (self.die(entry).file, self.die(entry).line);
        if line == 0 {
            return None;
        }
        let unit = self.unit_of(entry.slot);
        let loaded = &mut self.loaded[entry.slot as usize];
        let at = loaded.table.line_program;
        let source = &self.program.sources[unit.source as usize];
        let files = loaded.files.get_or_insert_with(|| lines::files(source, unit, at));
        Some(Location { file: files.get(file as usize).filter(|name| !name.is_empty())?.clone(), line })
    }
}

fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(LONGEST_NAME)]
}
