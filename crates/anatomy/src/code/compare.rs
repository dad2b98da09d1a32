//! The functions of two files, matched by name.

use std::collections::BTreeMap;

use crate::code::counts::Counts;
use crate::code::model::Code;
use crate::names::{names_of_symbol, SymbolNames};
use crate::pairing::paired_sums;

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
    let sums = paired_sums([functions(baseline), functions(variant)], |sum, other| {
        sum.counts.add(&other.counts);
        sum.copies += other.copies;
    });
    let pair = |(name, [a, b]): (String, [Functions; 2])| Pair {
        name,
        counts: [a.counts, b.counts],
        copies: [a.copies, b.copies],
        symbols: [a.symbol, b.symbol],
    };
    let mut pairs: Vec<Pair> = sums.into_iter().map(pair).collect();
    pairs.sort_by(|a, b| {
        let order = b.difference().unsigned_abs().cmp(&a.difference().unsigned_abs());
        order.then_with(|| a.name.cmp(&b.name))
    });
    pairs
}

/// The functions of one name in one file.
#[derive(Default)]
struct Functions {
    /// The first of their symbols.
    symbol: Vec<u8>,
    counts: Counts,
    copies: u64,
}

/// The functions of a file by symbol, in the order of the symbols.
fn functions(code: &Code) -> Vec<(SymbolNames, Functions)> {
    let mut by_symbol: BTreeMap<&[u8], Functions> = BTreeMap::new();
    for function in &code.functions {
        let sum = by_symbol.entry(function.name).or_default();
        sum.counts.add(&function.counts);
        sum.copies += 1;
    }
    let named = by_symbol.into_iter();
    named.map(|(symbol, of)| (names_of_symbol(symbol), Functions { symbol: symbol.to_vec(), ..of })).collect()
}
