//! The functions of two files, matched by name.

use rustc_hash::FxHashMap;

use crate::code::counts::Counts;
use crate::code::model::Code;
use crate::names::key_of_symbol;

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
    let mut by_symbol: FxHashMap<&[u8], [(Counts, u64); 2]> = FxHashMap::default();
    for (side, code) in [baseline, variant].into_iter().enumerate() {
        for function in &code.functions {
            let (counts, copies) = &mut by_symbol.entry(function.name).or_default()[side];
            counts.add(&function.counts);
            *copies += 1;
        }
    }
    let mut pairs: FxHashMap<String, Pair> = FxHashMap::default();
    // In the order of the symbols: the map has none.
    let mut symbols: Vec<_> = by_symbol.into_iter().collect();
    symbols.sort_unstable_by_key(|(symbol, _)| *symbol);
    for (symbol, sides) in symbols {
        let (key, shown) = key_of_symbol(symbol);
        let pair = pairs.entry(key).or_insert_with(|| Pair {
            name: shown,
            counts: Default::default(),
            copies: [0, 0],
            symbols: Default::default(),
        });
        for (side, (counts, copies)) in sides.into_iter().enumerate() {
            pair.counts[side].add(&counts);
            pair.copies[side] += copies;
            if copies > 0 && pair.symbols[side].is_empty() {
                pair.symbols[side] = symbol.to_vec();
            }
        }
    }
    let mut pairs: Vec<Pair> = pairs.into_values().collect();
    pairs.sort_by(|a, b| {
        let order = b.difference().unsigned_abs().cmp(&a.difference().unsigned_abs());
        order.then_with(|| a.name.cmp(&b.name))
    });
    pairs
}
