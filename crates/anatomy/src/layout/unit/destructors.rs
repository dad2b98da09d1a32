//! Which classes have a destructor that is not trivial, as far as their functions say.

use super::{flags, is_set, number, reference, text, Destructors, Ref, Slice, Text, UnitTable};
use gimli::{constants as dw, Abbreviation, EntriesRaw};

impl<'a> UnitTable<'a> {
    /// Reads a member function of a class. One that the compiler declares itself, or that is defaulted in the class, is as trivial as those
    /// of the members and bases, unless it is virtual.
    pub(super) fn read_member_function(
        &mut self,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        abbreviation: &Abbreviation,
        (offset, class): (u32, u32),
        resolve: &dyn Fn(Text<'a>, &UnitTable<'a>) -> Option<&'a [u8]>,
    ) -> Result<(), gimli::Error> {
        let specifications = abbreviation.attributes();
        let (mut is_named, mut is_defaulted, mut is_virtual) = (false, false, false);
        for (index, specification) in specifications.iter().enumerate() {
            let name = specification.name();
            let matters = matches!(
                name,
                dw::DW_AT_name | dw::DW_AT_defaulted | dw::DW_AT_artificial | dw::DW_AT_virtuality
            );
            if !matters {
                entries.skip_attributes(std::slice::from_ref(specification))?;
                continue;
            }
            let value = entries.read_attribute_inline(*specification)?.raw_value();
            match name {
                dw::DW_AT_name => {
                    let name = resolve(text(&value), self).unwrap_or_default();
                    is_named = name.starts_with(b"~");
                    if !is_named {
                        let is_made = has(abbreviation, dw::DW_AT_artificial);
                        if self.is_clang && !is_made {
                            self.note_copying(name, (offset, class), resolve);
                        }
                        return entries.skip_attributes(&specifications[index + 1..]);
                    }
                }
                dw::DW_AT_defaulted => {
                    is_defaulted |= number(&value) == u64::from(dw::DW_DEFAULTED_in_class.0);
                }
                dw::DW_AT_artificial => is_defaulted |= is_set(&value),
                _ => is_virtual = number(&value) != 0,
            }
        }
        if is_named && (is_virtual || !is_defaulted) {
            match self.is_clang && !is_virtual {
                true => {
                    self.destructors.declared.push((offset, class));
                    // Of a unit that breaks off no more is known.
                    self.open_destructors.insert(class, true);
                }
                false => self.dies[class as usize].flags |= flags::DESTRUCTOR,
            }
        }
        Ok(())
    }

    /// Notes a function that copies or moves, or a constructor, which may.
    fn note_copying(
        &mut self,
        name: &[u8],
        (offset, class): (u32, u32),
        resolve: &dyn Fn(Text<'a>, &UnitTable<'a>) -> Option<&'a [u8]>,
    ) {
        if name == b"operator=" {
            self.destructors.copied.insert(class);
        }
        let own = resolve(self.dies[class as usize].name, self).unwrap_or_default();
        let plain = own.iter().position(|byte| *byte == b'<').map_or(own, |end| &own[..end]);
        if !name.is_empty() && (name == own || name == plain) {
            self.destructors.constructor = Some((offset, class));
        }
    }

    /// A parameter of a function: of a constructor, it may be an object of the class.
    pub(super) fn note_parameter(&mut self, function: u32, abbreviation: &Abbreviation) {
        let own = self.destructors.constructor.filter(|(constructor, _)| *constructor == function);
        if let Some((_, class)) = own.filter(|_| !has(abbreviation, dw::DW_AT_artificial)) {
            self.destructors.copied.insert(class);
        }
    }

    /// Reads a function outside of classes, which may be a destructor's code.
    pub(super) fn read_function(
        &mut self,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        abbreviation: &Abbreviation,
    ) -> Result<(), gimli::Error> {
        let specifications = abbreviation.attributes();
        let at = specifications.iter().position(|own| own.name() == dw::DW_AT_specification);
        let Some(at) = at.filter(|_| self.is_clang) else { return entries.skip_attributes(specifications) };
        entries.skip_attributes(&specifications[..at])?;
        let value = entries.read_attribute_inline(specifications[at])?.raw_value();
        if let Ref::Unit(offset) = reference(&value) {
            self.destructors.defined.insert(offset as u32);
        }
        entries.skip_attributes(&specifications[at + 1..])
    }

    /// Finds the classes of which clang leaves it open, and whether they have functions of their own that copy. A trivial destructor has no
    /// code.
    pub(super) fn find_open_destructors(&mut self) {
        let Destructors { declared, defined, copied, .. } = std::mem::take(&mut self.destructors);
        for (offset, class) in declared {
            match defined.contains(&offset) {
                true => self.dies[class as usize].flags |= flags::DESTRUCTOR,
                false => _ = self.open_destructors.insert(class, copied.contains(&class)),
            }
        }
    }
}

/// Whether an entry has an attribute.
fn has(abbreviation: &Abbreviation, name: dw::DwAt) -> bool {
    abbreviation.attributes().iter().any(|own| own.name() == name)
}
