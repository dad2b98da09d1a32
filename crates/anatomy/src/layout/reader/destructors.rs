//! What a unit says of the destructor of a class.

use std::sync::PoisonError;

use gimli::constants as dw;

use super::{Entry, Key, Reader};
use crate::layout::model::{Destructor, Role};
use crate::layout::unit::{flags, Die};

/// Types are not named through more typedefs and arrays.
const DEEPEST: usize = 64;

impl<'a> Reader<'_, 'a> {
    /// Notes a destructor that is not trivial, or may be none. Clang does not say which are defaulted. How calls pass the class tells: by
    /// reference if the destructor or a function that copies is not trivial, by value otherwise, and where the class is declared so
    /// ([[clang::trivial_abi]]). A class that destroys what it has is not copied as bytes: it has functions of its own for that.
    pub(super) fn note_destructor(
        &mut self,
        entry: Entry,
        die: &Die<'a>,
        members: &[(u32, Role, Key)],
        key: Key,
    ) {
        let table = &self.loaded[entry.slot as usize].table;
        let (is_clang, open) = (table.is_clang, table.open_destructors.get(&entry.index).copied());
        let is_passed = |convention: dw::DwCc| die.encoding == convention.0;
        let is_by_value = is_passed(dw::DW_CC_pass_by_value);
        let own = match open {
            _ if die.has(flags::DESTRUCTOR) && (is_clang || !is_by_value) => Destructor::NonTrivial,
            None => return,
            Some(false) if is_by_value => return,
            Some(false) if is_passed(dw::DW_CC_pass_by_reference) && self.are_copied(entry, members) => {
                Destructor::NonTrivial
            }
            Some(_) => Destructor::Unknown,
        };
        let mut destructors = self.found.destructors.lock().unwrap_or_else(PoisonError::into_inner);
        let known = destructors.entry(key).or_insert(own);
        *known = (*known).max(own);
    }

    /// Whether members and bases are copied as bytes.
    fn are_copied(&mut self, of: Entry, members: &[(u32, Role, Key)]) -> bool {
        members.iter().all(|(index, role, _)| {
            let entry = Entry { slot: of.slot, index: *index };
            let name = self.die(entry).name;
            let is_table = self.bytes(entry.slot, name).is_some_and(|name| name.starts_with(b"_vptr"));
            *role != Role::VirtualBase && !is_table && self.is_copied(entry)
        })
    }

    /// Whether what a member is of is a class that calls pass by value, or none.
    fn is_copied(&mut self, mut entry: Entry) -> bool {
        for _ in 0..DEEPEST {
            let to = self.die(entry).ty;
            let Some(target) = self.resolve(entry.slot, to) else { return false };
            let die = self.die(target);
            match die.tag {
                _ if die.is_aggregate() => return die.encoding == dw::DW_CC_pass_by_value.0,
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_array_type => {
                    entry = target;
                }
                _ => return true,
            }
        }
        false
    }
}
