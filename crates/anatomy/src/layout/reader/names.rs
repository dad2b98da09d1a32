//! Names of types with their scopes and template arguments, and keys of these names without a look at them.

use std::sync::atomic::Ordering;

use gimli::constants as dw;

use super::{cut, Entry, Key, KeyHasher, Reader, COMPUTING, DEEPEST, MOST_NAME_BYTES, SHORT_NAME, VOID};
use crate::layout::program::LONGEST_NAME;
use crate::layout::unit::{self, flags, Die, Ref, Text, ABSENT, FUNCTION, NONE};

impl<'a> Reader<'_, 'a> {
    /// The name without its scope.
    pub(super) fn plain_name(&mut self, entry: Entry) -> Box<str> {
        let name = self.die(entry).name;
        self.bytes(entry.slot, name)
            .map_or_else(|| "(unnamed)".into(), |name| String::from_utf8_lossy(cut(name)).into())
    }

    /// The entry that has a type's name and scope: of a declaration the definition in a type unit, of a definition the
    /// declaration in its namespace.
    fn named_elsewhere(&mut self, entry: Entry) -> Option<Entry> {
        let die = self.die(entry);
        let is_type = die.is_aggregate() || die.tag == dw::DW_TAG_enumeration_type;
        let is_elsewhere = die.is_declaration() == matches!(die.origin, Ref::Signature(_));
        let origin = die.origin;
        if !is_type || !is_elsewhere {
            return None;
        }
        let is_declaration = die.is_declaration();
        let other = self.resolve(entry.slot, origin).filter(|to| *to != entry)?;
        // The declaration of an unnamed type has not even a line.
        (is_declaration || self.die(other).name != Text::None).then_some(other)
    }

    /// The unit and the entry that a type is declared in.
    fn scope(&mut self, entry: Entry) -> (u32, u32) {
        let die = self.die(entry);
        let (parent, origin) = (die.parent, die.origin);
        let is_declared_elsewhere = die.is_aggregate() && !die.has(flags::DECLARATION) && parent == NONE;
        if !is_declared_elsewhere || matches!(origin, Ref::None | Ref::Signature(_)) {
            return (entry.slot, parent);
        }
        match self.resolve(entry.slot, origin).filter(|to| *to != entry) {
            Some(other) => (other.slot, self.die(other).parent),
            None => (entry.slot, parent),
        }
    }

    /// A key of the type's name, without a look at it.
    pub(super) fn name_key(&mut self, entry: Entry, depth: u32) -> Key {
        let known = self.loaded[entry.slot as usize].name_keys[entry.index as usize];
        if known > COMPUTING {
            return known;
        }
        if known == COMPUTING || depth > DEEPEST {
            return VOID;
        }
        self.loaded[entry.slot as usize].name_keys[entry.index as usize] = COMPUTING;
        let key = self.compute_name_key(entry, depth);
        self.loaded[entry.slot as usize].name_keys[entry.index as usize] = key;
        key
    }

    fn compute_name_key(&mut self, entry: Entry, depth: u32) -> Key {
        let die = self.die(entry).clone();
        if let Some(named) = self.named_elsewhere(entry) {
            return self.name_key(named, depth + 1);
        }
        let mut hasher = KeyHasher::new(self.found, u64::from(die.tag.0));
        let mut name = die.name;
        let typedef = self.loaded[entry.slot as usize].table.typedef_names.get(&entry.index);
        if let Some(typedef) = typedef {
            name = self.die(Entry { slot: entry.slot, index: *typedef }).name;
        }
        self.add_text(&mut hasher, entry.slot, name);
        if name == Text::None {
            hasher.add(u64::from(die.line));
            hasher.add(u64::from(die.file));
            if matches!(die.tag, dw::DW_TAG_array_type | dw::DW_TAG_subrange_type) {
                hasher.add(die.place);
            }
            let target = self.resolve(entry.slot, die.ty);
            let target = target.map_or(VOID, |target| self.name_key(target, depth + 1));
            hasher.add_key(target);
        }
        if is_named_type(die.tag) {
            let (slot, parent) = self.scope(entry);
            let scope = self.scope_key(slot, parent, depth);
            hasher.add_key(scope);
        }
        if die.is_aggregate() && self.loaded[entry.slot as usize].table.is_clang {
            for index in self.template_arguments(entry) {
                let argument = Entry { slot: entry.slot, index };
                hasher.add(self.die(argument).value);
                let to = self.die(argument).ty;
                let target = self.resolve(entry.slot, to);
                let target = target.map_or(VOID, |target| self.name_key(target, depth + 1));
                hasher.add_key(target);
            }
        }
        hasher.finish()
    }

    fn scope_key(&mut self, slot: u32, parent: u32, depth: u32) -> Key {
        match parent {
            NONE => VOID,
            parent if parent & FUNCTION != 0 => {
                let name = self.function_name(slot, parent & !FUNCTION, depth + 1);
                let mut hasher = KeyHasher::new(self.found, 9);
                hasher.add_bytes(name.as_bytes());
                hasher.finish()
            }
            index => self.name_key(Entry { slot, index }, depth + 1),
        }
    }

    /// The template arguments, of all packs.
    fn template_arguments(&self, entry: Entry) -> Vec<u32> {
        let table = &self.loaded[entry.slot as usize].table;
        let mut arguments = Vec::new();
        for child in table.children(entry.index) {
            match table.dies[child as usize].tag {
                dw::DW_TAG_template_type_parameter | dw::DW_TAG_template_value_parameter => {
                    arguments.push(child)
                }
                dw::DW_TAG_GNU_template_parameter_pack => arguments.extend(table.children(child)),
                _ => {}
            }
        }
        arguments
    }

    /// The type's qualified name, as its language writes it.
    pub(super) fn type_name(&mut self, entry: Entry) -> Box<str> {
        let mut name = String::new();
        self.write_name(entry, &mut name, 0);
        if self.found.name_bytes.fetch_add(name.len(), Ordering::Relaxed) > MOST_NAME_BYTES {
            self.notes.add("the names of all types are too long together, and some are cut".to_owned());
            name = name.chars().take(SHORT_NAME).collect();
        }
        name.into()
    }

    fn write_name(&mut self, entry: Entry, to: &mut String, depth: u32) {
        if depth > 64 || to.len() > LONGEST_NAME {
            to.push('…');
            return;
        }
        let die = self.die(entry).clone();
        if let Some(named) = self.named_elsewhere(entry) {
            return self.write_name(named, to, depth + 1);
        }
        let suffix = match die.tag {
            dw::DW_TAG_pointer_type if die.name == Text::None => "*",
            dw::DW_TAG_reference_type => "&",
            dw::DW_TAG_rvalue_reference_type => "&&",
            dw::DW_TAG_ptr_to_member_type => "::*",
            dw::DW_TAG_const_type => " const",
            dw::DW_TAG_volatile_type => " volatile",
            dw::DW_TAG_restrict_type => " restrict",
            dw::DW_TAG_atomic_type => " _Atomic",
            dw::DW_TAG_array_type if die.name == Text::None => "[]",
            _ => "",
        };
        if !suffix.is_empty() {
            match self.resolve(entry.slot, die.ty) {
                Some(target) => self.write_name(target, to, depth + 1),
                None => to.push_str("void"),
            }
            to.push_str(suffix);
            return;
        }
        if die.tag == dw::DW_TAG_subroutine_type {
            to.push_str("(function)");
            return;
        }
        if is_named_type(die.tag) {
            let (slot, parent) = self.scope(entry);
            self.write_scope(slot, parent, to, depth + 1);
        }
        self.write_own_name(entry, &die, to, depth);
    }

    fn write_own_name(&mut self, entry: Entry, die: &Die<'a>, to: &mut String, depth: u32) {
        let typedef = self.loaded[entry.slot as usize].table.typedef_names.get(&entry.index).copied();
        let name = typedef.map_or(die.name, |index| self.die(Entry { slot: entry.slot, index }).name);
        match self.bytes(entry.slot, name).filter(|name| !name.is_empty()) {
            Some(name) => {
                to.push_str(&String::from_utf8_lossy(cut(name)));
                if die.is_aggregate() && !name.contains(&b'<') {
                    self.write_template_arguments(entry, to, depth);
                }
            }
            None => {
                let what = match die.tag {
                    dw::DW_TAG_namespace => return to.push_str("(anonymous namespace)"),
                    dw::DW_TAG_union_type => "union",
                    dw::DW_TAG_class_type => "class",
                    dw::DW_TAG_enumeration_type => "enum",
                    dw::DW_TAG_structure_type => "struct",
                    _ => "type",
                };
                match self.location(entry) {
                    Some(location) => to.push_str(&format!("(unnamed {what} at {location})")),
                    None => to.push_str(&format!("(unnamed {what})")),
                }
            }
        }
    }

    /// Clang leaves the arguments out of a template's name with `-gsimple-template-names`.
    fn write_template_arguments(&mut self, entry: Entry, to: &mut String, depth: u32) {
        let arguments = self.template_arguments(entry);
        if arguments.is_empty() {
            return;
        }
        let mut between = "<";
        for index in arguments {
            to.push_str(between);
            between = ", ";
            let argument = Entry { slot: entry.slot, index };
            let die = self.die(argument).clone();
            if die.tag == dw::DW_TAG_template_value_parameter && die.value != ABSENT {
                to.push_str(&(die.value as i64).to_string());
            } else if let Some(target) = self.resolve(entry.slot, die.ty) {
                self.write_name(target, to, depth + 1);
            } else {
                to.push_str("void");
            }
        }
        to.push('>');
    }

    fn write_scope(&mut self, slot: u32, parent: u32, to: &mut String, depth: u32) {
        match parent {
            NONE => return,
            parent if parent & FUNCTION != 0 => {
                let name = self.function_name(slot, parent & !FUNCTION, depth);
                to.push_str(&name);
                to.push_str("()");
            }
            index if depth < 64 => self.write_name(Entry { slot, index }, to, depth + 1),
            _ => to.push('…'),
        }
        to.push_str("::");
    }

    /// The qualified name of a function that types are declared in. Its entry is read now: most functions have no types.
    fn function_name(&mut self, slot: u32, index: u32, depth: u32) -> String {
        let table = &self.loaded[slot as usize].table;
        let Some(function) = table.functions.get(index as usize).copied() else { return String::new() };
        let mut to = String::new();
        self.function_at(slot, u64::from(function.offset), Some(function.parent), &mut to, depth);
        to
    }

    fn function_at(&mut self, slot: u32, offset: u64, parent: Option<u32>, to: &mut String, depth: u32) {
        let unit = self.unit_of(slot);
        let (Some(abbreviations), true) = (self.program.abbreviations(unit), depth < 64) else { return };
        let Ok(mut entries) =
            unit.header.entries_raw(&abbreviations, Some(gimli::UnitOffset(offset as usize)))
        else {
            return;
        };
        let Ok(Some(abbreviation)) = entries.read_abbreviation() else { return };
        let (mut name, mut origin) = (Text::None, Ref::None);
        for specification in abbreviation.attributes() {
            let Ok(attribute) = entries.read_attribute(*specification) else { return };
            match specification.name() {
                dw::DW_AT_name => name = unit::text(&attribute.raw_value()),
                dw::DW_AT_specification | dw::DW_AT_abstract_origin => {
                    origin = unit::reference(&attribute.raw_value())
                }
                _ => {}
            }
        }
        match (name, origin) {
            (Text::None, Ref::Unit(origin)) if origin != offset => {
                self.function_at(slot, origin, self.enclosing(slot, origin), to, depth + 1);
            }
            _ => {
                if let Some(parent) = parent {
                    self.write_scope(slot, parent, to, depth + 1);
                }
                let name = self.bytes(slot, name).unwrap_or(b"(function)");
                to.push_str(&String::from_utf8_lossy(cut(name)));
            }
        }
    }

    /// The class that a function is declared in: the last aggregate that begins before it, if it ends after it.
    fn enclosing(&self, slot: u32, offset: u64) -> Option<u32> {
        let table = &self.loaded[slot as usize].table;
        let after = table.dies.partition_point(|die| u64::from(die.offset) < offset);
        let mut at = after.checked_sub(1)? as u32;
        loop {
            let die = table.dies.get(at as usize)?;
            if u64::from(die.end) > offset && (die.is_aggregate() || die.tag == dw::DW_TAG_namespace) {
                return Some(at);
            }
            if die.parent == NONE || die.parent & FUNCTION != 0 {
                return None;
            }
            at = die.parent;
        }
    }
}

/// Types that scopes and templates are made of; pointers, arrays and qualifiers have no scope of their own.
fn is_named_type(tag: dw::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_structure_type
            | dw::DW_TAG_class_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_interface_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_namespace
            | dw::DW_TAG_module
            | dw::DW_TAG_typedef
            | dw::DW_TAG_template_alias
    )
}
