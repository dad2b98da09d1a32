//! Code by the function that it comes from: a function's own code, and its copies in others. The sum is the size of all code.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::debug::{InlinedRange, Units};
use crate::elf::named::Named;
use crate::elf::{section_flag, section_type, Elf, SymbolKind};
use crate::names::names_of_symbol;
use crate::pairing::paired_sums;

/// The code that comes from one function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its mangled name; empty for code without a symbol, padding included.
    pub name: Vec<u8>,
    /// Bytes under its own name, without the copies of others in them.
    pub own: u64,
    /// Bytes of its copies in other functions.
    pub inlined: u64,
    /// How many copies have bytes.
    pub copies: u64,
}

/// All code of a file by origin, in the order of the names. The bytes sum to the sizes of the executable sections.
pub fn origins<'a>(elf: &Elf<'a>, named: &'a [Named<'a>], units: &'a Units) -> Vec<Origin> {
    let copies = flattened(&units.inlined);
    let mut sums: FxHashMap<&'a [u8], Origin> = FxHashMap::default();
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut inlined = |piece: Range<u64>, sums: &mut FxHashMap<&'a [u8], Origin>| {
        let first = copies.partition_point(|copy| copy.end <= piece.start);
        let mut sum = 0;
        for copy in copies[first..].iter().take_while(|copy| copy.start < piece.end) {
            let bytes = copy.end.min(piece.end) - copy.start.max(piece.start);
            sum += bytes;
            let name = units.functions.get(copy.function as usize).map_or(&b"?"[..], |name| name);
            let origin = sums.entry(if name.is_empty() { b"?" } else { name }).or_default();
            origin.inlined += bytes;
            origin.copies += u64::from(seen.insert(copy.copy));
        }
        sum
    };
    for (number, section) in elf.sections.iter().enumerate() {
        let is_code = section.has(section_flag::EXECINSTR) && section.has(section_flag::ALLOC);
        if !is_code || section.kind == section_type::NOBITS {
            continue;
        }
        let mut at = 0;
        let mut add = |name, from: u64, to: u64, sums: &mut FxHashMap<&'a [u8], Origin>| {
            let address = |at: u64| section.address.saturating_add(at);
            let copied = inlined(address(from)..address(to), sums);
            sums.entry(name).or_default().own += (to - from).saturating_sub(copied);
        };
        let first = named.partition_point(|one| one.section < number);
        for one in named[first..].iter().take_while(|one| one.section == number) {
            if !matches!(one.kind, SymbolKind::Function | SymbolKind::Label) {
                continue;
            }
            let (start, end) = (one.start.max(at), one.start.saturating_add(one.size).min(section.size));
            if start < end {
                add(&b""[..], at, start, &mut sums);
                add(one.name, start, end, &mut sums);
                at = end;
            }
        }
        add(&b""[..], at, section.size, &mut sums);
    }
    let mut all: Vec<Origin> = Vec::new();
    for (name, origin) in sums {
        if origin.own + origin.inlined > 0 {
            all.push(Origin { name: name.to_vec(), ..origin });
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The code of both files that comes from one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginPair {
    /// The demangled name; empty for code without a symbol.
    pub name: String,
    /// In the baseline, and in the variant; their names are empty.
    pub sides: [Origin; 2],
}

impl OriginPair {
    /// The variant's bytes minus the baseline's: own code and copies.
    pub fn difference(&self) -> i64 {
        let all = |side: &Origin| (side.own + side.inlined) as i64;
        all(&self.sides[1]) - all(&self.sides[0])
    }
}

/// The origins of both files, matched by demangled name; the largest difference first.
pub fn pairs(baseline: &[Origin], variant: &[Origin]) -> Vec<OriginPair> {
    let named = |origins: &[Origin]| -> Vec<_> {
        let unnamed = |origin: &Origin| Origin { name: Vec::new(), ..origin.clone() };
        origins.iter().map(|origin| (names_of_symbol(&origin.name), unnamed(origin))).collect()
    };
    let sums = paired_sums([named(baseline), named(variant)], |sum, origin| {
        sum.own += origin.own;
        sum.inlined += origin.inlined;
        sum.copies += origin.copies;
    });
    let mut pairs: Vec<OriginPair> =
        sums.into_iter().map(|(name, sides)| OriginPair { name, sides }).collect();
    pairs.sort_by(|a, b| {
        let copied = |pair: &OriginPair| pair.sides[0].inlined.max(pair.sides[1].inlined);
        (b.difference().unsigned_abs(), copied(b), &a.name).cmp(&(
            a.difference().unsigned_abs(),
            copied(a),
            &b.name,
        ))
    });
    pairs
}

/// Copies without overlaps: where one copy is in another, the bytes belong to the inner one.
fn flattened(ranges: &[InlinedRange]) -> Vec<InlinedRange> {
    let mut sorted: Vec<&InlinedRange> = ranges.iter().filter(|range| range.start < range.end).collect();
    sorted.sort_by_key(|range| (range.start, range.depth, range.end));
    let mut open: std::collections::BinaryHeap<(u32, usize)> = std::collections::BinaryHeap::new();
    let (mut flat, mut at, mut next): (Vec<InlinedRange>, u64, usize) = (Vec::new(), 0, 0);
    loop {
        while open.peek().is_some_and(|(_, top)| sorted[*top].end <= at) {
            open.pop();
        }
        let Some((_, top)) = open.peek() else {
            let Some(range) = sorted.get(next) else { return flat };
            at = at.max(range.start);
            next = opened(&sorted, next, at, &mut open);
            continue;
        };
        let inner = sorted[*top];
        let end = sorted.get(next).map_or(inner.end, |range| range.start.min(inner.end));
        if at < end {
            flat.push(InlinedRange { start: at, end, ..*inner });
            at = end;
        }
        next = opened(&sorted, next, at, &mut open);
    }
}

/// Opens every range that begins at or before an address; the first that begins later.
fn opened(
    sorted: &[&InlinedRange],
    mut next: usize,
    at: u64,
    open: &mut std::collections::BinaryHeap<(u32, usize)>,
) -> usize {
    while let Some(range) = sorted.get(next).filter(|range| range.start <= at) {
        open.push((range.depth, next));
        next += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::flattened;
    use crate::debug::InlinedRange;

    fn range(start: u64, end: u64, depth: u32, function: u32) -> InlinedRange {
        InlinedRange { start, end, depth, function, copy: function }
    }

    #[test]
    fn bytes_of_nested_copies_belong_to_the_innermost() {
        let flat = flattened(&[
            range(0, 100, 0, 1),
            range(20, 40, 1, 2),
            range(30, 40, 2, 3),
            range(200, 210, 0, 4),
        ]);
        let parts: Vec<(u64, u64, u32)> = flat.iter().map(|one| (one.start, one.end, one.function)).collect();
        assert_eq!(parts, [(0, 20, 1), (20, 30, 2), (30, 40, 3), (40, 100, 1), (200, 210, 4)]);
    }

    #[test]
    fn overlapping_copies_of_damaged_files_count_once() {
        let flat =
            flattened(&[range(0, 10, 0, 1), range(5, 15, 0, 2), range(5, 15, 0, 3), range(7, 7, 0, 4)]);
        let sum: u64 = flat.iter().map(|one| one.end - one.start).sum();
        assert_eq!(sum, 15);
        assert!(flat.windows(2).all(|pair| pair[0].end <= pair[1].start), "{flat:?}");
    }
}
