//! Bytes that the program could do without, by name.

mod constants;
mod hierarchy;
mod model;
mod templates;
mod virtuals;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::elf::named::Named;
use crate::elf::Elf;
use crate::names::{function_name_key, key, SymbolNames};
use crate::pairing::{self, paired_sums};

pub use model::{Waste, WasteKind};

/// Everything that is found in a linked file; the most bytes of each kind first.
pub fn find(elf: &Elf, named: &[Named]) -> Vec<Waste> {
    let mut all = virtuals::never_overridden(elf, named);
    all.extend(templates::pointer_templates(elf, named));
    all.extend(constants::duplicates(elf, named));
    let mut by_name: FxHashMap<(WasteKind, String), (u64, u64)> = FxHashMap::default();
    for waste in all {
        let sums = by_name.entry((waste.kind, waste.name)).or_default();
        sums.0 += waste.count;
        sums.1 += waste.bytes;
    }
    let waste = |((kind, name), (count, bytes))| Waste { kind, name, count, bytes };
    let mut all: Vec<Waste> = by_name.into_iter().map(waste).collect();
    all.sort_by(|a, b| (a.kind, b.bytes, &a.name).cmp(&(b.kind, a.bytes, &b.name)));
    all
}

/// Waste of both sides with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WastePair {
    /// Why.
    pub kind: WasteKind,
    /// As in [`Waste`].
    pub name: String,
    /// In the baseline, and in the variant: the count and the bytes.
    pub sides: [(u64, u64); 2],
}

/// The waste of both sides; the most bytes of each kind first.
pub fn pairs(baseline: Vec<Waste>, variant: Vec<Waste>) -> Vec<WastePair> {
    let mut by_kind: BTreeMap<WasteKind, pairing::Named<(u64, u64)>> = BTreeMap::new();
    for (side, all) in [baseline, variant].into_iter().enumerate() {
        for waste in all {
            let sides = by_kind.entry(waste.kind).or_default();
            sides[side].push((names_of(waste.kind, waste.name), (waste.count, waste.bytes)));
        }
    }
    let pairs = by_kind.into_iter().flat_map(|(kind, sides)| {
        let sums = paired_sums(sides, |sum: &mut (u64, u64), (count, bytes)| {
            sum.0 += count;
            sum.1 += bytes;
        });
        sums.into_iter().map(move |(name, sides)| WastePair { kind, name, sides })
    });
    let mut pairs: Vec<WastePair> = pairs.collect();
    let most = |pair: &WastePair| pair.sides[0].1.max(pair.sides[1].1);
    pairs.sort_by(|a, b| (a.kind, most(b), &a.name).cmp(&(b.kind, most(a), &b.name)));
    pairs
}

fn names_of(kind: WasteKind, shown: String) -> SymbolNames {
    match kind {
        WasteKind::DuplicateConstants => SymbolNames { own: shown.clone(), common: shown.clone(), shown },
        WasteKind::NeverOverridden | WasteKind::PointerTemplates => {
            SymbolNames { own: function_name_key(&shown), common: key(&shown), shown }
        }
    }
}
