//! The functions of two files, matched by name.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::code::counts::Counts;
use crate::code::model::Code;
use crate::names::{names_of_symbol, SymbolNames};
use crate::pairing::{paired, Paired};

/// A function of both files, or of one. A name that several functions have stands for their sum: the parts that a
/// compiler makes of one (`.cold`, `.part.0`, `.isra.0`), and local functions of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The demangled name; empty for code that no symbol covers.
    pub name: String,
    /// The counts in the baseline and in the variant.
    pub counts: [Counts; 2],
    /// How many functions these are, in the baseline and in the variant.
    pub copies: [u64; 2],
    /// The mangled name of the first of them, in the baseline and in the variant.
    pub symbols: [Vec<u8>; 2],
}

impl Pair {
    /// The variant's instructions minus the baseline's.
    pub fn difference(&self) -> i64 {
        self.counts[1].instructions as i64 - self.counts[0].instructions as i64
    }
}

/// All functions, the largest difference first; then by name.
pub fn pairs(baseline: &Code, variant: &Code) -> Vec<Pair> {
    let [a, b] = [baseline, variant].map(functions);
    let found = paired(&a, &b, |one| one.names.own.clone(), |one| one.names.common.clone());
    let pair = |found: Paired| {
        let sides = [found.a.map(|place| &a[place]), found.b.map(|place| &b[place])];
        Some(Pair {
            name: sides[0].or(sides[1])?.names.shown.clone(),
            counts: sides.map(|side| side.map_or(Counts::default(), |one| one.counts)),
            copies: sides.map(|side| side.map_or(0, |one| one.copies)),
            symbols: sides.map(|side| side.map_or(Vec::new(), |one| one.symbol.clone())),
        })
    };
    let mut pairs: Vec<Pair> = found.into_iter().filter_map(pair).collect();
    pairs.sort_by(|a, b| {
        let order = b.difference().unsigned_abs().cmp(&a.difference().unsigned_abs());
        order.then_with(|| a.name.cmp(&b.name))
    });
    pairs
}

/// The functions of one name in one file.
struct Named {
    names: SymbolNames,
    /// The first of their symbols.
    symbol: Vec<u8>,
    counts: Counts,
    copies: u64,
}

/// The functions of a file by name, in the order of their symbols.
fn functions(code: &Code) -> Vec<Named> {
    let mut by_symbol: BTreeMap<&[u8], (Counts, u64)> = BTreeMap::new();
    for function in &code.functions {
        let (counts, copies) = by_symbol.entry(function.name).or_default();
        counts.add(&function.counts);
        *copies += 1;
    }
    let mut all: Vec<Named> = Vec::new();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    for (symbol, (counts, copies)) in by_symbol {
        let names = names_of_symbol(symbol);
        match known.get(&names.own) {
            Some(place) => {
                all[*place].counts.add(&counts);
                all[*place].copies += copies;
            }
            None => {
                known.insert(names.own.clone(), all.len());
                all.push(Named { names, symbol: symbol.to_vec(), counts, copies });
            }
        }
    }
    all
}
