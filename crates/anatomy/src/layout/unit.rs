//! One unit's entries that types are made of, as a flat table. Everything else of the unit is skipped.

mod destructors;

use gimli::{
    constants as dw, Abbreviations, AttributeValue, EndianSlice, EntriesRaw, RunTimeEndian, UnitHeader,
};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;
/// A parent with this bit is a function: its number in [`UnitTable::functions`].
pub(super) const FUNCTION: u32 = 1 << 31;
/// An attribute that is absent.
pub(super) const ABSENT: u64 = u64::MAX;
/// Entries nested more deeply are not read. Compilers stop at 256 brackets; inlining nests some more.
const DEEPEST: usize = 4096;

/// A name, before it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Text<'a> {
    #[default]
    None,
    Str(u64),
    LineStr(u64),
    Supplementary(u64),
    Index(u64),
    Inline(&'a [u8]),
}

/// A reference to another entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ref {
    #[default]
    None,
    Unit(u64),
    Info(u64),
    Supplementary(u64),
    Signature(u64),
}

pub(super) mod flags {
    pub const DECLARATION: u8 = 1;
    pub const VIRTUAL: u8 = 2;
    pub const ARTIFICIAL: u8 = 4;
    pub const STATIC: u8 = 8;
    /// The member's place is an expression, not a number.
    pub const EXPRESSION: u8 = 16;
    /// `DW_AT_upper_bound` instead of `DW_AT_count`.
    pub const UPPER_BOUND: u8 = 32;
    /// The length is an expression or a reference: it is known to the program only.
    pub const VARIABLE_LENGTH: u8 = 64;
    /// The class has a destructor that is not trivial, its members' and bases' aside.
    pub const DESTRUCTOR: u8 = 128;
}

/// One entry.
#[derive(Debug, Clone)]
pub(super) struct Die<'a> {
    pub offset: u32,
    /// Where its children end.
    pub end: u32,
    pub parent: u32,
    pub first_child: u32,
    pub next: u32,
    pub tag: dw::DwTag,
    pub flags: u8,
    /// Of numbers; of classes, how calls pass them.
    pub encoding: u8,
    pub name: Text<'a>,
    pub ty: Ref,
    /// The definition that a type's declaration has in a type unit, or what a declaration is a copy of.
    pub origin: Ref,
    pub size: u64,
    pub alignment: u64,
    /// Bytes from the beginning, of members; elements, of subranges.
    pub place: u64,
    /// Of template arguments.
    pub value: u64,
    pub bit_size: u64,
    pub bit_offset: u64,
    pub data_bit_offset: u64,
    pub file: u32,
    pub line: u32,
}

/// A function that types are declared in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub offset: u32,
    pub parent: u32,
}

/// What of a unit's functions says how its classes are destroyed.
#[derive(Debug, Default)]
struct Destructors {
    /// Those that clang declares without saying whether they are defaulted: where, and of which class.
    declared: Vec<(u32, u32)>,
    /// The declarations of functions that have code.
    defined: FxHashSet<u32>,
    /// Classes with functions of their own that copy or move, which may be defaulted or deleted.
    copied: FxHashSet<u32>,
    /// The constructor whose parameters are read, and its class.
    constructor: Option<(u32, u32)>,
}

/// The entries of one unit.
#[derive(Debug, Default)]
pub(super) struct UnitTable<'a> {
    pub dies: Vec<Die<'a>>,
    pub functions: Vec<Function>,
    /// The typedef that gives an unnamed aggregate its name.
    pub typedef_names: FxHashMap<u32, u32>,
    pub language: u64,
    pub str_offsets_base: Option<u64>,
    pub line_program: Option<u64>,
    /// Not GCC: names of templates may lack their arguments.
    pub is_clang: bool,
    /// It was built with an option that gives members other alignments than the ABI's.
    pub changes_alignments: bool,
    destructors: Destructors,
    /// The classes of which clang leaves open whether their destructor is trivial, with whether they have functions of their own that copy.
    pub open_destructors: FxHashMap<u32, bool>,
    pub dwo_name: Text<'a>,
    /// Before DWARF 5, of a unit that is split and of its other part; since then it is in the header.
    pub dwo_id: Option<u64>,
    pub folder: Text<'a>,
}

impl<'a> UnitTable<'a> {
    /// Empties the table and keeps its memory for the next unit.
    pub fn clear(&mut self) {
        let (mut dies, mut functions) = (std::mem::take(&mut self.dies), std::mem::take(&mut self.functions));
        dies.clear();
        functions.clear();
        *self = UnitTable { dies, functions, ..UnitTable::default() };
    }

    /// The entry at an offset of the unit.
    pub fn find(&self, offset: u64) -> Option<u32> {
        let offset = u32::try_from(offset).ok()?;
        self.dies.binary_search_by_key(&offset, |die| die.offset).ok().map(|index| index as u32)
    }

    /// The entries directly below.
    pub fn children(&self, die: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.dies[die as usize].first_child;
        std::iter::from_fn(move || {
            let own = at;
            at = self.dies.get(own as usize)?.next;
            Some(own)
        })
    }
}

/// The most entries of types in one unit.
const MOST_DIES: u32 = 16 << 20;

/// What an entry's children belong to.
#[derive(Clone, Copy)]
enum Scope {
    Die {
        index: u32,
        last_child: u32,
    },
    /// A function, by its offset; its number once it has one.
    Function {
        offset: u32,
        index: u32,
    },
    /// Blocks, and what is no scope.
    Transparent,
}

/// What is done with an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Keep,
    KeepInside,
    Function,
    Skip,
}

fn use_of(tag: dw::DwTag) -> Use {
    match tag {
        dw::DW_TAG_structure_type
        | dw::DW_TAG_class_type
        | dw::DW_TAG_union_type
        | dw::DW_TAG_interface_type
        | dw::DW_TAG_namespace
        | dw::DW_TAG_module
        | dw::DW_TAG_array_type
        | dw::DW_TAG_enumeration_type
        | dw::DW_TAG_base_type
        | dw::DW_TAG_pointer_type
        | dw::DW_TAG_reference_type
        | dw::DW_TAG_rvalue_reference_type
        | dw::DW_TAG_ptr_to_member_type
        | dw::DW_TAG_typedef
        | dw::DW_TAG_template_alias
        | dw::DW_TAG_const_type
        | dw::DW_TAG_volatile_type
        | dw::DW_TAG_restrict_type
        | dw::DW_TAG_atomic_type
        | dw::DW_TAG_immutable_type
        | dw::DW_TAG_shared_type
        | dw::DW_TAG_packed_type
        | dw::DW_TAG_subroutine_type
        | dw::DW_TAG_unspecified_type
        | dw::DW_TAG_string_type
        | dw::DW_TAG_set_type
        | dw::DW_TAG_subrange_type
        | dw::DW_TAG_imported_unit => Use::Keep,
        dw::DW_TAG_member
        | dw::DW_TAG_inheritance
        | dw::DW_TAG_variant_part
        | dw::DW_TAG_variant
        | dw::DW_TAG_template_type_parameter
        | dw::DW_TAG_template_value_parameter
        | dw::DW_TAG_GNU_template_parameter_pack
        | dw::DW_TAG_GNU_template_template_param => Use::KeepInside,
        dw::DW_TAG_subprogram => Use::Function,
        _ => Use::Skip,
    }
}

fn is_aggregate(tag: dw::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type | dw::DW_TAG_interface_type
    )
}

/// Reads a unit's own entry, and none below it.
pub(super) fn scan_root<'a>(
    header: &UnitHeader<Slice<'a>>,
    abbreviations: &Abbreviations,
    table: &mut UnitTable<'a>,
) -> Result<(), gimli::Error> {
    let mut entries = header.entries_raw(abbreviations, None)?;
    if let Some(root) = entries.read_abbreviation()? {
        read_root(&mut entries, root, table)?;
    }
    Ok(())
}

/// Whether a compiler's note of its options has one that gives members other alignments than the ABI's (GCC, "Options for Code Generation
/// Conventions" and "x86 Options"). GCC writes it where the option is used; Clang with `-grecord-command-line` alone.
fn changes_alignments(producer: &[u8]) -> bool {
    let has = |option: &[u8]| producer.windows(option.len()).any(|part| part == option);
    has(b" -fpack-struct") || has(b" -malign-double")
}

/// Reads a unit. Where it breaks off, what was read before stays, with the error.
pub(super) fn scan<'a>(
    header: &UnitHeader<Slice<'a>>,
    abbreviations: &Abbreviations,
    table: &mut UnitTable<'a>,
    resolve: &dyn Fn(Text<'a>, &UnitTable<'a>) -> Option<&'a [u8]>,
) -> Result<(), gimli::Error> {
    let mut entries = header.entries_raw(abbreviations, None)?;
    let mut scopes: Vec<Scope> = Vec::with_capacity(32);
    let Some(root) = entries.read_abbreviation()? else { return Ok(()) };
    let producer = read_root(&mut entries, root, table)?;
    let producer = resolve(producer, table);
    table.is_clang = !producer.is_some_and(|name| name.starts_with(b"GNU"));
    table.changes_alignments = producer.is_some_and(changes_alignments);
    if !root.has_children() {
        return Ok(());
    }
    scopes.push(Scope::Transparent);
    while !scopes.is_empty() && !entries.is_empty() {
        let offset = entries.next_offset().0 as u32;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            if let Some(Scope::Die { index, .. }) = scopes.pop() {
                table.dies[index as usize].end = offset;
            }
            continue;
        };
        let tag = abbreviation.tag();
        let own_scope = match use_of(tag) {
            Use::Skip => {
                if let (dw::DW_TAG_formal_parameter, Some(Scope::Function { offset, .. })) =
                    (tag, scopes.last())
                {
                    table.note_parameter(*offset, abbreviation);
                }
                entries.skip_attributes(abbreviation.attributes())?;
                Scope::Transparent
            }
            Use::Function => {
                let within = match scopes.last() {
                    Some(Scope::Die { index, .. }) if table.dies[*index as usize].is_aggregate() => {
                        Some(*index)
                    }
                    _ => None,
                };
                match within {
                    Some(index) => {
                        table.read_member_function(&mut entries, abbreviation, (offset, index), resolve)?;
                    }
                    None => table.read_function(&mut entries, abbreviation)?,
                }
                Scope::Function { offset, index: NONE }
            }
            used if used == Use::KeepInside && !keeps(tag, table, scopes.last()) => {
                entries.skip_attributes(abbreviation.attributes())?;
                Scope::Transparent
            }
            _ => {
                let parent = parent(&mut scopes, table);
                let mut die = Die::new(offset, parent, tag);
                read_attributes(&mut entries, abbreviation.attributes(), &mut die)?;
                let index = table.dies.len() as u32;
                if index >= MOST_DIES {
                    return Err(gimli::Error::UnsupportedOffset);
                }
                link(&mut scopes, table, index);
                table.dies.push(die);
                Scope::Die { index, last_child: NONE }
            }
        };
        if abbreviation.has_children() {
            if scopes.len() >= DEEPEST {
                return Err(gimli::Error::UnsupportedOffset);
            }
            scopes.push(own_scope);
        }
    }
    name_by_typedefs(table);
    table.find_open_destructors();
    Ok(())
}

/// Members and template parameters matter below types; those of functions do not.
fn keeps(tag: dw::DwTag, table: &UnitTable<'_>, scope: Option<&Scope>) -> bool {
    let Some(Scope::Die { index, .. }) = scope else { return false };
    let above = table.dies[*index as usize].tag;
    match tag {
        dw::DW_TAG_template_type_parameter
        | dw::DW_TAG_template_value_parameter
        | dw::DW_TAG_GNU_template_parameter_pack
        | dw::DW_TAG_GNU_template_template_param => {
            // GCC's names of templates have their arguments.
            table.is_clang && (is_aggregate(above) || above == dw::DW_TAG_GNU_template_parameter_pack)
        }
        _ => is_aggregate(above) || above == dw::DW_TAG_variant_part || above == dw::DW_TAG_variant,
    }
}

/// The scope that an entry is in. A function gets its number with the first type in it.
fn parent(scopes: &mut [Scope], table: &mut UnitTable<'_>) -> u32 {
    let Some(at) = scopes.iter().rposition(|scope| !matches!(scope, Scope::Transparent)) else { return NONE };
    match scopes[at] {
        Scope::Die { index, .. } => index,
        Scope::Function { index, .. } if index != NONE => index | FUNCTION,
        Scope::Function { offset, .. } => {
            let above = parent(&mut scopes[..at], table);
            let index = table.functions.len() as u32;
            table.functions.push(Function { offset, parent: above });
            scopes[at] = Scope::Function { offset, index };
            index | FUNCTION
        }
        Scope::Transparent => NONE,
    }
}

/// Appends the entry to its parent's children.
fn link(scopes: &mut [Scope], table: &mut UnitTable<'_>, index: u32) {
    let Some(Scope::Die { index: above, last_child }) = scopes.last_mut() else { return };
    match table.dies.get_mut(*last_child as usize) {
        Some(last) => last.next = index,
        None => table.dies[*above as usize].first_child = index,
    }
    *last_child = index;
}

impl Die<'_> {
    fn new(offset: u32, parent: u32, tag: dw::DwTag) -> Self {
        Die {
            offset,
            end: offset,
            parent,
            first_child: NONE,
            next: NONE,
            tag,
            flags: 0,
            encoding: 0,
            name: Text::None,
            ty: Ref::None,
            origin: Ref::None,
            size: ABSENT,
            alignment: ABSENT,
            place: ABSENT,
            value: ABSENT,
            bit_size: ABSENT,
            bit_offset: ABSENT,
            data_bit_offset: ABSENT,
            file: 0,
            line: 0,
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether the type is defined elsewhere. What GCC writes in one type unit for the type of another has a signature alone.
    pub fn is_declaration(&self) -> bool {
        self.has(flags::DECLARATION) || self.size == ABSENT && matches!(self.origin, Ref::Signature(_))
    }

    pub fn is_aggregate(&self) -> bool {
        is_aggregate(self.tag)
    }
}

fn read_attributes<'a>(
    entries: &mut EntriesRaw<'_, Slice<'a>>,
    specifications: &[gimli::AttributeSpecification],
    die: &mut Die<'a>,
) -> Result<(), gimli::Error> {
    for specification in specifications {
        let name = specification.name();
        if !is_read(name) {
            entries.skip_attributes(std::slice::from_ref(specification))?;
            continue;
        }
        let value = entries.read_attribute_inline(*specification)?.raw_value();
        match name {
            dw::DW_AT_name => die.name = text(&value),
            dw::DW_AT_type | dw::DW_AT_import => die.ty = reference(&value),
            dw::DW_AT_signature | dw::DW_AT_specification | dw::DW_AT_abstract_origin => {
                die.origin = reference(&value)
            }
            dw::DW_AT_byte_size => die.size = number(&value),
            dw::DW_AT_byte_stride => die.data_bit_offset = number(&value),
            dw::DW_AT_alignment => die.alignment = number(&value),
            dw::DW_AT_bit_size => die.bit_size = number(&value),
            dw::DW_AT_bit_offset => die.bit_offset = number(&value),
            dw::DW_AT_data_bit_offset => die.data_bit_offset = number(&value),
            dw::DW_AT_data_member_location => read_place(&value, die),
            dw::DW_AT_const_value => {
                die.flags |= flags::STATIC;
                die.value = number(&value);
            }
            dw::DW_AT_count | dw::DW_AT_upper_bound => {
                die.place = number(&value);
                if name == dw::DW_AT_upper_bound {
                    die.flags |= flags::UPPER_BOUND;
                }
                if !matches!(value, AttributeValue::Exprloc(_))
                    && reference(&value) == Ref::None
                    && die.place != ABSENT
                {
                    continue;
                }
                die.flags |= flags::VARIABLE_LENGTH;
            }
            dw::DW_AT_virtuality if number(&value) != 0 => die.flags |= flags::VIRTUAL,
            dw::DW_AT_declaration if is_set(&value) => die.flags |= flags::DECLARATION,
            dw::DW_AT_artificial if is_set(&value) => die.flags |= flags::ARTIFICIAL,
            dw::DW_AT_external if is_set(&value) => die.flags |= flags::STATIC,
            dw::DW_AT_encoding | dw::DW_AT_calling_convention => die.encoding = number(&value) as u8,
            dw::DW_AT_decl_file => die.file = number(&value).min(u64::from(u32::MAX)) as u32,
            dw::DW_AT_decl_line => die.line = number(&value).min(u64::from(u32::MAX)) as u32,
            _ => {}
        }
    }
    Ok(())
}

fn is_read(name: dw::DwAt) -> bool {
    matches!(
        name,
        dw::DW_AT_name
            | dw::DW_AT_type
            | dw::DW_AT_import
            | dw::DW_AT_signature
            | dw::DW_AT_specification
            | dw::DW_AT_abstract_origin
            | dw::DW_AT_byte_size
            | dw::DW_AT_byte_stride
            | dw::DW_AT_alignment
            | dw::DW_AT_bit_size
            | dw::DW_AT_bit_offset
            | dw::DW_AT_data_bit_offset
            | dw::DW_AT_data_member_location
            | dw::DW_AT_const_value
            | dw::DW_AT_count
            | dw::DW_AT_upper_bound
            | dw::DW_AT_virtuality
            | dw::DW_AT_declaration
            | dw::DW_AT_artificial
            | dw::DW_AT_external
            | dw::DW_AT_encoding
            | dw::DW_AT_calling_convention
            | dw::DW_AT_decl_file
            | dw::DW_AT_decl_line
    )
}

/// DWARF 2 has `DW_OP_plus_uconst N` where later versions have the number.
fn read_place(value: &AttributeValue<Slice<'_>>, die: &mut Die<'_>) {
    let (AttributeValue::Block(bytes) | AttributeValue::Exprloc(gimli::Expression(bytes))) = value else {
        die.place = number(value);
        return;
    };
    let mut bytes = *bytes;
    die.flags |= flags::EXPRESSION;
    use gimli::Reader;
    if bytes.read_u8().map(dw::DwOp) == Ok(dw::DW_OP_plus_uconst) {
        if let (Ok(place), true) = (bytes.read_uleb128(), bytes.is_empty()) {
            die.place = place;
            die.flags &= !flags::EXPRESSION;
        }
    }
}

pub(super) fn text<'a>(value: &AttributeValue<Slice<'a>>) -> Text<'a> {
    match value {
        AttributeValue::DebugStrRef(at) => Text::Str(at.0 as u64),
        AttributeValue::DebugLineStrRef(at) => Text::LineStr(at.0 as u64),
        AttributeValue::DebugStrRefSup(at) => Text::Supplementary(at.0 as u64),
        AttributeValue::DebugStrOffsetsIndex(at) => Text::Index(at.0 as u64),
        AttributeValue::String(bytes) => Text::Inline(bytes.slice()),
        _ => Text::None,
    }
}

pub(super) fn reference(value: &AttributeValue<Slice<'_>>) -> Ref {
    match value {
        AttributeValue::UnitRef(at) => Ref::Unit(at.0 as u64),
        AttributeValue::DebugInfoRef(at) => Ref::Info(at.0 as u64),
        AttributeValue::DebugInfoRefSup(at) => Ref::Supplementary(at.0 as u64),
        AttributeValue::DebugTypesRef(signature) => Ref::Signature(signature.0),
        _ => Ref::None,
    }
}

fn number(value: &AttributeValue<Slice<'_>>) -> u64 {
    // GCC writes -1 as the upper bound of an array without elements.
    value.udata_value().or_else(|| value.sdata_value().map(|number| number as u64)).unwrap_or(ABSENT)
}

fn is_set(value: &AttributeValue<Slice<'_>>) -> bool {
    !matches!(value, AttributeValue::Flag(false))
}

/// What the unit's own entry says.
fn read_root<'a>(
    entries: &mut EntriesRaw<'_, Slice<'a>>,
    root: &gimli::Abbreviation,
    table: &mut UnitTable<'a>,
) -> Result<Text<'a>, gimli::Error> {
    let mut producer = Text::None;
    for specification in root.attributes() {
        let value = entries.read_attribute(*specification)?.raw_value();
        match specification.name() {
            dw::DW_AT_producer => producer = text(&value),
            dw::DW_AT_language => table.language = number(&value),
            dw::DW_AT_comp_dir => table.folder = text(&value),
            dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name => table.dwo_name = text(&value),
            dw::DW_AT_GNU_dwo_id => table.dwo_id = value.udata_value(),
            dw::DW_AT_stmt_list => {
                table.line_program = match value {
                    AttributeValue::SecOffset(at) => Some(at as u64),
                    AttributeValue::DebugLineRef(at) => Some(at.0 as u64),
                    ref other => other.udata_value(),
                }
            }
            dw::DW_AT_str_offsets_base => {
                table.str_offsets_base = match value {
                    AttributeValue::SecOffset(at) => Some(at as u64),
                    AttributeValue::DebugStrOffsetsBase(at) => Some(at.0 as u64),
                    _ => None,
                }
            }
            _ => {}
        }
    }
    Ok(producer)
}

/// `typedef struct { … } name;` names the structure (C++ standard, [dcl.typedef]; in C by custom).
fn name_by_typedefs(table: &mut UnitTable<'_>) {
    for index in 0..table.dies.len() {
        let die = &table.dies[index];
        let (true, Ref::Unit(target)) = (die.tag == dw::DW_TAG_typedef, die.ty) else { continue };
        let Some(target) = table.find(target) else { continue };
        let named = &table.dies[target as usize];
        if named.is_aggregate() && named.name == Text::None && named.parent == die.parent {
            table.typedef_names.entry(target).or_insert(index as u32);
        }
    }
}
