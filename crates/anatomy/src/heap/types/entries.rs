//! One unit's entries of debug information that say what a function's code is and what its variables point to, as a flat table.

use gimli::{constants as dw, Attribute, AttributeValue, Dwarf, EndianSlice, RunTimeEndian, Unit};

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// No entry.
const NONE: u32 = u32::MAX;
/// Entries nested more deeply are not read.
const DEEPEST: usize = 4096;
/// The most entries of one unit.
const MOST: usize = 16 << 20;
/// `DW_AT_LLVM_alloc_type`: the type that a call allocates, which clang knows of `new` (LLVM 21, `!heapallocsite`; its Dwarf.def).
const ALLOCATED_TYPE: dw::DwAt = dw::DwAt(0x3e0e);
/// References are followed so often.
const MOST_STEPS: usize = 32;

/// One entry.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    offset: u64,
    parent: u32,
    /// The entry behind the last one below it.
    end: u32,
    pub tag: dw::DwTag,
    pub name: Option<&'a [u8]>,
    /// The type's offset in the unit.
    pub ty: Option<u64>,
    /// Whether it has a type at all, be it in another unit.
    pub has_type: bool,
    /// What it is a copy of: its offset in the unit.
    pub origin: Option<u64>,
    size: Option<u64>,
    /// Where it is declared; of an inlined function, where it is called.
    pub line: u32,
    /// Of a call: where it returns to.
    pub return_address: Option<u64>,
    /// Of a call: the type that it allocates, if the compiler says so; its offset in the unit.
    pub allocated: Option<u64>,
    /// The code, in the table's ranges.
    ranges: (u32, u32),
}

/// Attributes of an entry that say where its code is.
#[derive(Default)]
struct Code<'a> {
    low: Option<u64>,
    high: Option<AttributeValue<Slice<'a>>>,
    list: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Code<'a> {
    fn ranges(self, dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> Vec<(u64, u64)> {
        if let (Some(low), Some(high)) = (self.low, self.high) {
            let end = match high {
                AttributeValue::Udata(size) => low.saturating_add(size),
                value => address(dwarf, unit, value).unwrap_or(low),
            };
            return vec![(low, end)];
        }
        let mut found = Vec::new();
        if let Some(Ok(Some(mut ranges))) = self.list.map(|value| dwarf.attr_ranges(unit, value)) {
            while let Ok(Some(range)) = ranges.next() {
                found.push((range.begin, range.end));
            }
        }
        found
    }
}

impl<'a> Entry<'a> {
    fn new(offset: u64, parent: u32, tag: dw::DwTag) -> Entry<'a> {
        Entry {
            offset,
            parent,
            end: 0,
            tag,
            name: None,
            ty: None,
            has_type: false,
            origin: None,
            size: None,
            line: 0,
            return_address: None,
            allocated: None,
            ranges: (0, 0),
        }
    }

    /// Takes over an attribute, those of its code into `code`.
    fn take(
        &mut self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        attribute: &Attribute<Slice<'a>>,
        code: &mut Code<'a>,
    ) {
        let value = attribute.value();
        match attribute.name() {
            dw::DW_AT_name => self.name = dwarf.attr_string(unit, value).ok().map(|name| name.slice()),
            dw::DW_AT_type => (self.ty, self.has_type) = (reference(unit, &value), true),
            ALLOCATED_TYPE => self.allocated = reference(unit, &value),
            dw::DW_AT_abstract_origin | dw::DW_AT_specification | dw::DW_AT_call_origin => {
                self.origin = reference(unit, &value)
            }
            dw::DW_AT_byte_size => self.size = value.udata_value(),
            dw::DW_AT_decl_line | dw::DW_AT_call_line => {
                self.line = value.udata_value().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
            }
            dw::DW_AT_low_pc if is_call(self.tag) => self.return_address = address(dwarf, unit, value),
            dw::DW_AT_call_return_pc => self.return_address = address(dwarf, unit, value),
            dw::DW_AT_low_pc => code.low = address(dwarf, unit, value),
            dw::DW_AT_high_pc => code.high = Some(value),
            dw::DW_AT_ranges => code.list = Some(value),
            _ => {}
        }
    }

    /// Whether it is a structure, class or union.
    pub fn is_aggregate(&self) -> bool {
        matches!(
            self.tag,
            dw::DW_TAG_structure_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_interface_type
        )
    }
}

/// The entries of one unit.
pub struct Entries<'a> {
    all: Vec<Entry<'a>>,
    ranges: Vec<(u64, u64)>,
}

impl<'a> Entries<'a> {
    /// Reads a unit.
    ///
    /// # Errors
    /// The unit breaks off.
    pub fn read(dwarf: &Dwarf<Slice<'a>>, unit: &Unit<Slice<'a>>) -> Result<Entries<'a>, gimli::Error> {
        let mut table = Entries { all: Vec::new(), ranges: Vec::new() };
        let mut raw = unit.entries_raw(None)?;
        let mut scopes: Vec<u32> = Vec::new();
        while !raw.is_empty() {
            let offset = raw.next_offset().0 as u64;
            let Some(abbreviation) = raw.read_abbreviation()? else {
                if let Some(ended) = scopes.pop() {
                    table.all[ended as usize].end = table.all.len() as u32;
                }
                if scopes.is_empty() {
                    break;
                }
                continue;
            };
            let parent = scopes.last().copied().unwrap_or(NONE);
            let mut entry = Entry::new(offset, parent, abbreviation.tag());
            let mut code = Code::default();
            for specification in abbreviation.attributes() {
                let attribute = raw.read_attribute(*specification)?;
                entry.take(dwarf, unit, &attribute, &mut code);
            }
            let from = table.ranges.len() as u32;
            table.ranges.extend(code.ranges(dwarf, unit));
            entry.ranges = (from, table.ranges.len() as u32);
            let index = table.all.len() as u32;
            entry.end = index + 1;
            table.all.push(entry);
            if table.all.len() > MOST || scopes.len() > DEEPEST {
                return Err(gimli::Error::UnsupportedOffset);
            }
            if abbreviation.has_children() {
                scopes.push(index);
            } else if scopes.is_empty() {
                break;
            }
        }
        let all = table.all.len() as u32;
        for open in scopes {
            table.all[open as usize].end = all;
        }
        Ok(table)
    }

    /// An entry.
    pub fn at(&self, index: u32) -> &Entry<'a> {
        &self.all[index as usize]
    }

    /// The entry at an offset of the unit.
    pub fn find(&self, offset: u64) -> Option<u32> {
        self.all.binary_search_by_key(&offset, |entry| entry.offset).ok().map(|index| index as u32)
    }

    /// Whether the unit describes types: with -g1 it does not.
    pub fn have_types(&self) -> bool {
        self.all.iter().any(|entry| entry.has_type)
    }

    /// All entries below.
    pub fn below(&self, index: u32) -> std::ops::Range<u32> {
        index + 1..self.at(index).end.max(index + 1)
    }

    /// The entries directly below.
    pub fn children(&self, index: u32) -> impl Iterator<Item = u32> + '_ {
        let below = self.below(index);
        let mut next = below.start;
        std::iter::from_fn(move || {
            let own = (next < below.end).then_some(next)?;
            next = self.at(own).end.max(own + 1);
            Some(own)
        })
    }

    /// The variables outside of functions.
    pub fn globals(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.all.len() as u32).filter(move |index| {
            self.at(*index).tag == dw::DW_TAG_variable && self.is_outside(self.at(*index).parent)
        })
    }

    fn holds(&self, index: u32, address: u64) -> bool {
        let (from, to) = self.at(index).ranges;
        self.ranges[from as usize..to as usize].iter().any(|(low, high)| (*low..*high).contains(&address))
    }

    /// The lowest address of an entry's code.
    pub fn lowest(&self, index: u32) -> Option<u64> {
        let (from, to) = self.at(index).ranges;
        self.ranges[from as usize..to as usize].iter().map(|(low, _)| *low).min()
    }

    /// The function whose code has the address, then the inlined functions and blocks in it that have it, the innermost last.
    pub fn scopes(&self, address: u64) -> Vec<u32> {
        let is_function =
            |index: &u32| self.at(*index).tag == dw::DW_TAG_subprogram && self.holds(*index, address);
        let Some(function) = (0..self.all.len() as u32).find(is_function) else { return Vec::new() };
        let mut scopes = vec![function];
        let mut at = function;
        loop {
            let is_inner = |index: &u32| {
                let tag = self.at(*index).tag;
                matches!(tag, dw::DW_TAG_lexical_block | dw::DW_TAG_inlined_subroutine)
                    && (self.holds(*index, address) || self.at(*index).ranges.0 == self.at(*index).ranges.1)
            };
            let inner = self.children(at).filter(is_inner);
            // A block without addresses is searched only if no other has the address.
            let Some(next) = inner.max_by_key(|index| self.holds(*index, address)) else { break };
            scopes.push(next);
            at = next;
        }
        scopes
    }

    /// What an entry or the one that it is a copy of has.
    pub fn inherited<T>(&self, index: u32, of: impl Fn(&Entry<'a>) -> Option<T>) -> Option<T> {
        let mut at = index;
        for _ in 0..MOST_STEPS {
            let entry = self.at(at);
            if let Some(found) = of(entry) {
                return Some(found);
            }
            at = self.find(entry.origin?)?;
        }
        None
    }

    /// The types among the template arguments of a function and of the class that it is a member of.
    pub fn template_parameters(&self, function: u32) -> Vec<u32> {
        let is_parameter = |index: &u32| self.at(*index).tag == dw::DW_TAG_template_type_parameter;
        let (mut found, mut at) = (Vec::new(), function);
        for _ in 0..MOST_STEPS {
            let entry = self.at(at);
            found.extend(self.children(at).filter(is_parameter));
            if entry.parent != NONE && self.at(entry.parent).is_aggregate() {
                found.extend(self.children(entry.parent).filter(is_parameter));
            }
            let Some(next) = entry.origin.and_then(|origin| self.find(origin)) else { break };
            at = next;
        }
        found
    }

    /// A type without typedefs and qualifiers.
    pub fn stripped(&self, index: u32) -> u32 {
        let mut at = index;
        for _ in 0..MOST_STEPS {
            let entry = self.at(at);
            let is_other_name = matches!(
                entry.tag,
                dw::DW_TAG_typedef
                    | dw::DW_TAG_const_type
                    | dw::DW_TAG_volatile_type
                    | dw::DW_TAG_restrict_type
                    | dw::DW_TAG_atomic_type
            );
            match entry.ty.filter(|_| is_other_name).and_then(|ty| self.find(ty)) {
                Some(target) => at = target,
                None => return at,
            }
        }
        at
    }

    /// What a pointer points to.
    pub fn pointee(&self, index: u32) -> Option<u32> {
        let entry = self.at(index);
        let is_pointer = matches!(
            entry.tag,
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type
        );
        entry.ty.filter(|_| is_pointer).and_then(|ty| self.find(ty))
    }

    /// The class of a constructor, by an entry of the function or of a copy of it.
    pub fn class_of_constructor(&self, function: u64) -> Option<u32> {
        let mut at = self.find(function)?;
        for _ in 0..MOST_STEPS {
            let entry = self.at(at);
            let parent = entry.parent;
            if parent != NONE && self.at(parent).is_aggregate() {
                let name = entry.name?;
                let class = self.at(parent).name?;
                let plain = class.split(|byte| *byte == b'<').next()?;
                return (name == class || name == plain).then_some(parent);
            }
            at = self.find(entry.origin?)?;
        }
        None
    }

    /// The name and the size of a type; the size is none where the unit only declares it.
    pub fn described(&self, index: u32, address_size: u64) -> Option<(String, Option<u64>)> {
        let own = self.stripped(index);
        let entry = self.at(own);
        match entry.tag {
            dw::DW_TAG_base_type => {
                // `time_t` is not `long`.
                let typedef = self.number_name(index, own).and_then(|typedef| self.at(typedef).name);
                Some((text(typedef.or(entry.name)?), entry.size))
            }
            dw::DW_TAG_pointer_type => {
                let target = entry.ty.and_then(|ty| self.find(ty));
                let name = target.and_then(|target| self.name_of(target, 0)).unwrap_or("void".to_owned());
                Some((name + "*", entry.size.or(Some(address_size))))
            }
            dw::DW_TAG_enumeration_type => Some((self.qualified(own, index)?, entry.size)),
            _ if entry.is_aggregate() => Some((self.qualified(own, index)?, entry.size)),
            _ => None,
        }
    }

    fn name_of(&self, index: u32, depth: usize) -> Option<String> {
        let own = self.stripped(index);
        let entry = self.at(own);
        if let Some(target) = self.pointee(own).filter(|_| depth < MOST_STEPS) {
            return Some(self.name_of(target, depth + 1)? + "*");
        }
        match entry.tag {
            dw::DW_TAG_base_type => entry.name.map(text),
            dw::DW_TAG_pointer_type => Some("void*".to_owned()),
            _ => self.qualified(own, index),
        }
    }

    /// The name with its namespaces, classes and functions. A structure without a name has that of its typedef.
    fn qualified(&self, own: u32, from: u32) -> Option<String> {
        let named = if self.at(own).name.is_some() { own } else { self.last_typedef(from, own)? };
        let mut name = self.at(named).name.map(text)?;
        let mut at = self.at(named).parent;
        for _ in 0..MOST_STEPS {
            if at == NONE {
                break;
            }
            let entry = self.at(at);
            at = match entry.tag {
                dw::DW_TAG_lexical_block => entry.parent,
                // `run()::Local`, as the layouts have it. A member function is declared in its class.
                dw::DW_TAG_subprogram => {
                    let function = self.declaration(at);
                    let of_function = self.at(function);
                    name = format!("{}()::{name}", of_function.name.map_or("(function)".to_owned(), text));
                    of_function.parent
                }
                tag if entry.is_aggregate() || tag == dw::DW_TAG_namespace => {
                    let scope = entry.name.map_or("(anonymous namespace)".to_owned(), text);
                    name = format!("{scope}::{name}");
                    entry.parent
                }
                _ => break,
            };
        }
        Some(name)
    }

    /// The entry that names a function: itself, or the one that it is a copy of.
    fn declaration(&self, function: u32) -> u32 {
        let mut at = function;
        for _ in 0..MOST_STEPS {
            let entry = self.at(at);
            match entry.origin.filter(|_| entry.name.is_none()).and_then(|origin| self.find(origin)) {
                Some(origin) => at = origin,
                None => break,
            }
        }
        at
    }

    /// The first typedef outside of classes and functions on the way to a number.
    fn number_name(&self, from: u32, to: u32) -> Option<u32> {
        let mut at = from;
        for _ in 0..MOST_STEPS {
            if at == to {
                break;
            }
            let entry = self.at(at);
            if entry.tag == dw::DW_TAG_typedef && self.is_outside(entry.parent) {
                return Some(at);
            }
            at = self.find(entry.ty?)?;
        }
        None
    }

    /// Whether an entry is the unit or a namespace.
    fn is_outside(&self, parent: u32) -> bool {
        parent == 0 || parent != NONE && self.at(parent).tag == dw::DW_TAG_namespace
    }

    /// The typedef that names a structure without a name, on the way to it.
    fn last_typedef(&self, from: u32, to: u32) -> Option<u32> {
        let (mut at, mut typedef) = (from, None);
        for _ in 0..MOST_STEPS {
            if at == to {
                break;
            }
            if self.at(at).tag == dw::DW_TAG_typedef {
                typedef = Some(at);
            }
            at = self.find(self.at(at).ty?)?;
        }
        typedef
    }
}

fn is_call(tag: dw::DwTag) -> bool {
    matches!(tag, dw::DW_TAG_call_site | dw::DW_TAG_GNU_call_site)
}

/// An offset in the unit. Entries of other units are not followed.
fn reference(unit: &Unit<Slice<'_>>, value: &AttributeValue<Slice<'_>>) -> Option<u64> {
    match value {
        AttributeValue::UnitRef(at) => Some(at.0 as u64),
        AttributeValue::DebugInfoRef(at) => at.to_unit_offset(&unit.header).map(|at| at.0 as u64),
        _ => None,
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An address of an attribute.
fn address(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    value: AttributeValue<Slice<'_>>,
) -> Option<u64> {
    dwarf.attr_address(unit, value).ok().flatten()
}
