//! Virtual functions that no class of the program overrides.
//!
//! Only what the tables prove is named: a class of which some derived class cannot be followed (a virtual base, a base that is not
//! the first, a base of another file) has no such function here.

use rustc_hash::{FxHashMap, FxHashSet};

use super::hierarchy::Hierarchy;
use super::model::{Waste, WasteKind};
use crate::elf::named::{without_version, Named};
use crate::elf::relocations::Pointee;
use crate::elf::{Elf, SymbolKind};
use crate::names::demangled;

/// All functions of that kind. The bytes are those of their entries in all virtual tables, with relocation records.
pub(super) fn never_overridden(elf: &Elf, named: &[Named]) -> Vec<Waste> {
    let hierarchy = Hierarchy::read(elf, named);
    let mut functions: FxHashMap<u64, &[u8]> = FxHashMap::default();
    for one in named.iter().filter(|one| matches!(one.kind, SymbolKind::Function | SymbolKind::Object)) {
        let address = elf.sections[one.section].address.saturating_add(one.start);
        functions.entry(address).or_insert(one.name);
    }
    let mut derived: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
    for (of, class) in &hierarchy.classes {
        if let Some(base) = class.primary {
            derived.entry(base).or_default().push(*of);
        }
    }
    let mut all = Vec::new();
    for (of, class) in &hierarchy.classes {
        if class.is_unknown || hierarchy.blocked.contains(of) || hierarchy.may_override_seconds(*of) {
            continue;
        }
        let heirs = heirs(*of, &derived);
        let tables = |heirs: &FxHashSet<u64>| -> Vec<&Vec<(Pointee, bool)>> {
            heirs.iter().filter_map(|heir| hierarchy.classes[heir].slots.as_ref()).collect()
        };
        // The table of a class without one is not longer than the shortest of a derived class.
        let length = |class: u64, heirs: &FxHashSet<u64>| match &hierarchy.classes[&class].slots {
            Some(slots) => slots.len(),
            None => tables(heirs).iter().map(|slots| slots.len()).min().unwrap_or(0),
        };
        let first = class.primary.map_or(0, |base| length(base, &self::heirs(base, &derived)));
        let with_own: Vec<&Vec<(Pointee, bool)>> = class.slots.iter().chain(tables(&heirs)).collect();
        for at in first..length(*of, &heirs) {
            let slots: Option<Vec<(Pointee, bool)>> =
                with_own.iter().map(|slots| slots.get(at).copied()).collect();
            let Some(slots) = slots.filter(|slots| slots.iter().all(|slot| slot.0 == slots[0].0)) else {
                continue;
            };
            let Some((Pointee::Address(address), _)) = slots.first() else { continue };
            // An entry that a derived class has put in everywhere is another function's.
            let Some(name) = functions.get(address).filter(|name| is_own(name, class.name)) else { continue };
            let record = |is_relocated: bool| if is_relocated { hierarchy.record } else { 0 };
            let bytes = slots.iter().map(|(_, is_relocated)| elf.word() + record(*is_relocated)).sum();
            let name = demangled(&String::from_utf8_lossy(name));
            all.push(Waste { kind: WasteKind::NeverOverridden, name, count: slots.len() as u64, bytes });
        }
    }
    all
}

/// All classes that are derived from one by first bases.
fn heirs(of: u64, derived: &FxHashMap<u64, Vec<u64>>) -> FxHashSet<u64> {
    let mut all = FxHashSet::default();
    let mut next = vec![of];
    while let Some(class) = next.pop() {
        for heir in derived.get(&class).into_iter().flatten() {
            // A damaged file may have a class among its own bases.
            if *heir != of && all.insert(*heir) {
                next.push(*heir);
            }
        }
    }
    all
}

/// A member of that class that a source could declare without `virtual`: no destructor, and no pure function.
fn is_own(name: &[u8], class: &[u8]) -> bool {
    let name = without_version(name);
    let is_destructor = [&b"D0Ev"[..], b"D1Ev", b"D2Ev"].iter().any(|end| name.ends_with(end));
    let member = name.strip_prefix(b"_ZNK").or_else(|| name.strip_prefix(b"_ZN"));
    !is_destructor && member.is_some_and(|member| member.starts_with(class))
}
