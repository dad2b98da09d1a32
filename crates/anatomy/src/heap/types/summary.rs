//! Sums over the typed blocks: by type, what has a type, what has a cause, and objects by their type.

use std::collections::BTreeMap;

use super::model::{
    signed, AllocatorPart, AllocatorRule, Amount, Cause, Explained, Part, TypeRow, TypedHeap, TypedPair,
};
use crate::certainty::Certainty;
use crate::layout::Weights;
use crate::names;

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The baseline.
    A,
    /// The variant.
    B,
}

impl Side {
    fn of(self, pair: &TypedPair) -> &Amount {
        match self {
            Side::A => &pair.a,
            Side::B => &pair.b,
        }
    }
}

impl TypedHeap {
    /// The types, those that differ most first; with one recording, those with most bytes. Blocks without a type are one
    /// row, the last one.
    pub fn by_type(&self) -> Vec<TypeRow> {
        let mut rows: BTreeMap<Option<(String, bool)>, Vec<TypeRow>> = BTreeMap::new();
        for pair in &self.pairs {
            let key = pair.ty.as_ref().map(|ty| (names::type_name_key(&ty.to_string()), ty.is_array));
            let of_name = rows.entry(key).or_default();
            // Structures of one name in two source files may be two types.
            match of_name.iter_mut().find(|row| has_sizes_of(row, pair)) {
                Some(row) => add(row, pair),
                None => of_name.push(row_of(pair)),
            }
        }
        let mut rows: Vec<TypeRow> = rows.into_values().flatten().collect();
        for row in &mut rows {
            row.parts.retain(|part| part.bytes != 0);
            row.parts.sort_by_key(|part| (std::cmp::Reverse(part.bytes.unsigned_abs()), part.cause.clone()));
        }
        rows.sort_by_key(|row| {
            let difference = signed(row.b.values.peak_bytes) - signed(row.a.values.peak_bytes);
            let largest = row.a.values.peak_bytes.max(row.b.values.peak_bytes);
            (row.ty.is_none(), std::cmp::Reverse(difference.unsigned_abs()), std::cmp::Reverse(largest))
        });
        rows
    }

    /// The share of a side's bytes at the peak that have a type of certainty medium or high, 0 to 1; none without bytes.
    pub fn typed_share(&self, side: Side) -> Option<f64> {
        let bytes = |pair: &TypedPair| side.of(pair).values.peak_bytes;
        let all: u64 = self.pairs.iter().map(bytes).sum();
        let is_typed = |pair: &&TypedPair| pair.ty.is_some() && pair.certainty > Certainty::Low;
        let typed: u64 = self.pairs.iter().filter(is_typed).map(bytes).sum();
        (all > 0).then(|| typed as f64 / all as f64)
    }

    /// How much of the difference of requested bytes has causes.
    pub fn explained(&self) -> Explained {
        let mut sum = Explained::default();
        for pair in &self.pairs {
            let (difference, unexplained) = (pair.difference(), pair.unexplained());
            sum.difference = sum.difference.saturating_add(difference);
            sum.unexplained = sum.unexplained.saturating_add(unexplained);
            sum.absolute = sum.absolute.saturating_add(difference.unsigned_abs());
            sum.absolute_unexplained = sum.absolute_unexplained.saturating_add(unexplained.unsigned_abs());
        }
        sum
    }

    /// How many objects of each structure, class or union a side has at the peak, elements of arrays included.
    pub fn objects(&self, side: Side) -> Weights {
        let mut weights = Weights::new();
        for pair in self.pairs.iter().filter(|pair| pair.certainty > Certainty::Low) {
            if let (Some(ty), Some(objects)) = (&pair.ty, side.of(pair).objects) {
                let sum = weights.entry(ty.name.clone()).or_default();
                *sum = sum.saturating_add(objects);
            }
        }
        weights
    }

    /// The parts of what the allocator uses beside the requested bytes, over all sites.
    pub fn allocator(&self) -> Vec<AllocatorPart> {
        let mut all = Vec::new();
        for pair in &self.pairs {
            add_allocator(&mut all, &pair.allocator);
        }
        all
    }
}

/// Whether a row's type has the sizes of a pair's, as far as these are known.
fn has_sizes_of(row: &TypeRow, pair: &TypedPair) -> bool {
    let agree = |one: &Amount, other: &Amount| match (one.size, other.size) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    agree(&row.a, &pair.a) && agree(&row.b, &pair.b)
}

fn row_of(pair: &TypedPair) -> TypeRow {
    TypeRow {
        ty: pair.ty.clone(),
        site: pair.site.clone(),
        sites: 1,
        certainty: pair.certainty,
        source: pair.source,
        a: pair.a,
        b: pair.b,
        parts: pair.parts.clone(),
        allocator: pair.allocator.clone(),
    }
}

fn add(row: &mut TypeRow, pair: &TypedPair) {
    let bytes = |a: &Amount, b: &Amount| a.values.peak_bytes.max(b.values.peak_bytes);
    if bytes(&pair.a, &pair.b) > bytes(&row.a, &row.b) && row.sites == 1 {
        row.site = pair.site.clone();
        row.source = pair.source;
    }
    row.sites += 1;
    row.certainty = row.certainty.min(pair.certainty);
    add_amount(&mut row.a, &pair.a);
    add_amount(&mut row.b, &pair.b);
    add_parts(&mut row.parts, &pair.parts);
    add_allocator(&mut row.allocator, &pair.allocator);
}

fn add_amount(sum: &mut Amount, amount: &Amount) {
    let (known, new) = (sum.values.peak_bytes > 0, amount.values.peak_bytes > 0);
    sum.values.add(&amount.values);
    // A side without bytes says nothing of sizes.
    match (known, new) {
        (_, false) => {}
        (false, true) => *sum = Amount { values: sum.values, ..*amount },
        (true, true) => {
            let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
            sum.objects = both(sum.objects, amount.objects);
            sum.elements_behind = both(sum.elements_behind, amount.elements_behind);
            sum.size = sum.size.filter(|size| amount.size == Some(*size));
        }
    }
}

/// Adds parts to those of the same cause.
pub(super) fn add_parts(sum: &mut Vec<Part>, parts: &[Part]) {
    for part in parts {
        match sum.iter_mut().find(|known| known.cause == part.cause && known.certainty == part.certainty) {
            Some(known) => known.bytes = known.bytes.saturating_add(part.bytes),
            None => sum.push(part.clone()),
        }
    }
}

fn add_allocator(sum: &mut Vec<AllocatorPart>, parts: &[AllocatorPart]) {
    for part in parts {
        match sum.iter_mut().find(|known| known.rule == part.rule) {
            Some(known) => {
                known.a = known.a.saturating_add(part.a);
                known.b = known.b.saturating_add(part.b);
            }
            None => sum.push(*part),
        }
    }
}

impl TypeRow {
    /// Requested bytes of the variant at its peak less those of the baseline at its own.
    pub fn difference(&self) -> i64 {
        signed(self.b.values.peak_bytes).saturating_sub(signed(self.a.values.peak_bytes))
    }

    /// The parts with those of one cause together, whatever they are inside of.
    pub fn causes(&self) -> Vec<(String, i64)> {
        let mut causes: Vec<(String, i64)> = Vec::new();
        for part in &self.parts {
            let name = part.cause.to_string();
            match causes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, bytes)) => *bytes = bytes.saturating_add(part.bytes),
                None => causes.push((name, part.bytes)),
            }
        }
        causes.retain(|(_, bytes)| *bytes != 0);
        causes.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.unsigned_abs()));
        causes
    }
}

/// The allocator's parts of a site: what its chunks have beside the requested bytes, in headers and by rounding.
///
/// `headers` are the bytes before each block on each side; where those of one are not known, there is one part. Where the log says
/// nothing of chunks, there are none.
pub(super) fn allocator_parts(a: &Amount, b: &Amount, headers: [Option<u64>; 2]) -> Vec<AllocatorPart> {
    let over = [a, b].map(|amount| amount.values.peak_chunk_bytes.saturating_sub(amount.values.peak_bytes));
    let part = |rule, [a, b]: [u64; 2]| AllocatorPart { rule, a, b };
    let parts = match headers {
        [Some(of_a), Some(of_b)] => {
            let headers =
                |amount: &Amount, each: u64, over| amount.values.peak_count.saturating_mul(each).min(over);
            let own = [headers(a, of_a, over[0]), headers(b, of_b, over[1])];
            let rounding = [over[0].saturating_sub(own[0]), over[1].saturating_sub(own[1])];
            vec![part(AllocatorRule::Header, own), part(AllocatorRule::Rounding, rounding)]
        }
        _ => vec![part(AllocatorRule::HeadersAndRounding, over)],
    };
    parts.into_iter().filter(|part| part.a != 0 || part.b != 0).collect()
}

/// A part without a cause.
pub(super) fn unexplained(bytes: i64) -> Part {
    Part { cause: Cause::Unexplained, bytes, certainty: Certainty::Low }
}
