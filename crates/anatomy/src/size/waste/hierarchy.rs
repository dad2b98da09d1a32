//! The classes of a program with virtual functions: their virtual tables and bases, as the Itanium C++ ABI lays them out (2.5.2 and
//! 2.9.5).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::elf::loaded::Loaded;
use crate::elf::named::{without_version, Named};
use crate::elf::relocations::Pointee;
use crate::elf::type_information::{Base, TypeInformation};
use crate::elf::Elf;

/// A class with type information in this file.
#[derive(Debug)]
pub(super) struct Class<'a> {
    /// Its mangled name, without what stands around it: `2ns4Node`.
    pub name: &'a [u8],
    /// What its virtual table's entries point to, and whether the dynamic linker fills each. None where the file has no table of
    /// it: compilers leave out those of abstract classes.
    pub slots: Option<Vec<(Pointee<'a>, bool)>>,
    /// The class whose virtual table this one extends. None for a class without bases.
    pub primary: Option<u64>,
    /// Whether a base's table is unknown, so that it is not known which entries are this class's own.
    pub is_unknown: bool,
    /// Whether there are several bases: entries of its own may override functions of the second one.
    pub has_several_bases: bool,
}

/// All classes by the address of their type information, and those of which a derived class cannot be followed.
#[derive(Debug, Default)]
pub(super) struct Hierarchy<'a> {
    pub classes: FxHashMap<u64, Class<'a>>,
    pub blocked: FxHashSet<u64>,
    /// Bytes of a relocation record.
    pub record: u64,
}

struct Reader<'r, 'a> {
    elf: &'r Elf<'a>,
    loaded: &'r Loaded<'r, 'a>,
}

impl<'a> Hierarchy<'a> {
    pub fn read(elf: &Elf<'a>, named: &[Named<'a>]) -> Hierarchy<'a> {
        let loaded = Loaded::new(elf);
        let record = loaded.relocations.record;
        let mut types: FxHashMap<&[u8], u64> = FxHashMap::default();
        for one in named {
            let address = elf.sections[one.section].address.saturating_add(one.start);
            if let Some(class) = without_version(one.name).strip_prefix(b"_ZTI") {
                types.insert(class, address);
            }
        }
        let reader = Reader { elf, loaded: &loaded };
        let information_of = TypeInformation::of(elf, &loaded);
        let mut all = Hierarchy { record, ..Hierarchy::default() };
        for (name, information) in &types {
            let class = Class {
                name: unnested(name),
                slots: None,
                primary: None,
                is_unknown: false,
                has_several_bases: false,
            };
            all.classes.insert(*information, class);
        }
        for one in named {
            let class = without_version(one.name).strip_prefix(b"_ZTV").and_then(|class| types.get(class));
            let Some(information) = class else { continue };
            let slots = reader.slots(one, *information);
            if slots.is_none() {
                // It has virtual bases.
                all.blocked.insert(*information);
            }
            if let Some(class) = all.classes.get_mut(information) {
                class.slots = slots;
            }
        }
        for information in types.values() {
            all.connect(*information, information_of.bases(*information));
        }
        all.block_ancestors();
        all
    }

    fn connect(&mut self, information: u64, bases: Option<Vec<Base>>) {
        let (mut primary, mut is_unknown) = (None, bases.is_none());
        let bases = bases.unwrap_or_default();
        let has_several_bases = bases.len() > 1;
        for base in bases {
            let known = base.information.filter(|address| self.classes.contains_key(address));
            match known {
                Some(known) if base.offset == 0 && !base.is_virtual && primary.is_none() => {
                    primary = Some(known);
                    continue;
                }
                Some(_) => {}
                None => is_unknown = true,
            }
            // It is overridden in a secondary table, or in one of another file; neither is read.
            self.blocked.extend(base.information);
        }
        if let Some(class) = self.classes.get_mut(&information) {
            class.primary = primary;
            class.is_unknown = is_unknown;
            class.has_several_bases = has_several_bases;
        }
    }

    /// A class whose derived class is not followed says nothing of its bases either.
    fn block_ancestors(&mut self) {
        let mut next: Vec<u64> = self.blocked.iter().copied().collect();
        next.extend(self.classes.iter().filter(|(_, class)| class.is_unknown).map(|(of, _)| *of));
        while let Some(class) = next.pop() {
            if let Some(base) = self.classes.get(&class).and_then(|class| class.primary) {
                if self.blocked.insert(base) {
                    next.push(base);
                }
            }
        }
    }
}

impl Hierarchy<'_> {
    /// Whether entries that a class adds to its table may override functions of a second base, its own or an ancestor's.
    pub fn may_override_seconds(&self, class: u64) -> bool {
        let mut at = Some(class);
        // A damaged file may have a class among its own bases.
        for _ in 0..=self.classes.len() {
            let Some(class) = at.and_then(|class| self.classes.get(&class)) else { return false };
            if class.has_several_bases {
                return true;
            }
            at = class.primary;
        }
        true
    }
}

impl<'a> Reader<'_, 'a> {
    /// The entries of a class's own table; none where it begins with offsets of virtual bases, or without type information.
    fn slots(&self, table: &Named, information: u64) -> Option<Vec<(Pointee<'a>, bool)>> {
        let word = self.elf.word();
        let start = self.elf.sections[table.section].address + table.start;
        let count = table.size / word;
        let own = |at: u64| (at < count).then(|| self.loaded.pointee(start + at * word)).flatten();
        let is_information = |at: u64| own(at) == Some(Pointee::Address(information));
        if !is_information(1) {
            return None;
        }
        let mut slots = Vec::new();
        for at in 2..count {
            // The next table is a secondary base's: an offset, then the same type information.
            if is_information(at + 1) {
                break;
            }
            slots.push((own(at)?, self.loaded.relocations.has(start + at * word)));
        }
        Some(slots)
    }
}

/// `2ns4Node` of `N2ns4NodeE`.
fn unnested(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"N").and_then(|name| name.strip_suffix(b"E")).unwrap_or(name)
}
