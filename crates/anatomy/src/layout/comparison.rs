//! The types of two programs, matched by name, ranked by what they save.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::{signed, Cause, Differ, Share};
use super::model::{Layouts, Location, TypeId};
use super::order::{self, Found, Order};
use crate::names;

/// How many objects of a type live at the peak of the heap, by the type's name. Without a recording it is empty.
pub type Weights = BTreeMap<String, u64>;

/// All types of two programs.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Types whose size differs: the most saved bytes first.
    pub differences: Vec<TypeDifference>,
    /// How many matched types have the same size.
    pub same_size: usize,
    /// Types that only the baseline has, by name.
    pub only_baseline: Vec<String>,
    /// Types that only the variant has, by name.
    pub only_variant: Vec<String>,
    /// Names that stand for several layouts, which are therefore not compared.
    pub ambiguous: Vec<String>,
    /// Types of one size in both that another order of their members makes smaller.
    pub reorderable: Vec<TypeDifference>,
}

/// A type whose objects have another size in the variant.
#[derive(Debug, Clone)]
pub struct TypeDifference {
    /// The qualified name in the baseline.
    pub name: String,
    /// Where it is declared.
    pub location: Option<Location>,
    /// The type in the baseline.
    pub baseline: TypeId,
    /// The type in the variant.
    pub variant: TypeId,
    /// Bytes of an object in the baseline.
    pub baseline_size: u64,
    /// Bytes of an object in the variant.
    pub variant_size: u64,
    /// The parts of the difference; their sum is the variant's size less the baseline's.
    pub shares: Vec<Share>,
    /// A better order of the members.
    pub order: Option<Order>,
    /// Whether another order would be better is left open ([`Found::Open`]).
    pub is_order_open: bool,
    /// Objects at the peak of the heap, if a recording says so.
    pub objects: Option<u64>,
}

impl TypeDifference {
    /// Bytes that an object of the variant needs less.
    pub fn saved(&self) -> i64 {
        signed(self.baseline_size).saturating_sub(signed(self.variant_size))
    }

    /// The same for all objects at the peak of the heap.
    pub fn saved_at_peak(&self) -> Option<i64> {
        self.objects.map(|objects| self.saved().saturating_mul(signed(objects)))
    }

    /// The difference by cause, nested types included.
    pub fn causes(&self) -> Vec<(Cause, i64)> {
        let mut sums: BTreeMap<&Cause, i64> = BTreeMap::new();
        for share in &self.shares {
            *sums.entry(&share.cause).or_default() += share.bytes;
        }
        let mut causes: Vec<_> = sums
            .into_iter()
            .filter(|(_, bytes)| *bytes != 0)
            .map(|(cause, bytes)| (cause.clone(), bytes))
            .collect();
        causes.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.unsigned_abs()));
        causes
    }
}

/// How many objects the heap has of each type.
struct Objects {
    /// By the name that a type has in the baseline.
    own: FxHashMap<String, u64>,
    /// Under another ABI's name of a type of the baseline.
    foreign: FxHashMap<String, u64>,
}

impl Objects {
    fn of(baseline: &Layouts, weights: &Weights) -> Objects {
        let own_names = by_name(baseline).into_keys().map(names::type_name_key);
        let own_names: FxHashSet<String> = own_names.collect();
        let mut objects = Objects { own: FxHashMap::default(), foreign: FxHashMap::default() };
        for (name, number) in weights {
            let own = names::type_name_key(name);
            let sum = match own_names.contains(&own) {
                true => objects.own.entry(own).or_default(),
                false => objects.foreign.entry(names::type_key(name)).or_default(),
            };
            *sum = sum.saturating_add(*number);
        }
        objects
    }

    fn number(&self, name: &str) -> u64 {
        let own = self.own.get(&names::type_name_key(name)).copied().unwrap_or(0);
        let foreign = self.foreign.get(&names::type_key(name)).copied().unwrap_or(0);
        own.saturating_add(foreign)
    }
}

/// Compares all types of two programs.
pub fn compare(baseline: &Layouts, variant: &Layouts, weights: &Weights) -> Comparison {
    let mut comparison = Comparison::default();
    let matches = matches(baseline, variant, &mut comparison);
    let objects = Objects::of(baseline, weights);
    let mut differ = Differ::new(baseline, variant);
    for (a, b) in matches {
        let (Some(one), Some(other)) = (baseline.aggregate(a), variant.aggregate(b)) else { continue };
        let is_same = one.size == other.size;
        comparison.same_size += usize::from(is_same);
        let found = order::find(baseline, a, variant, b);
        // The parts of the many types that are of one size are not asked for.
        if is_same && !matches!(found, Some(Found::Better(_))) {
            continue;
        }
        let Some(mut difference) = differ_by(&mut differ, [baseline, variant], [a, b], found) else {
            continue;
        };
        difference.objects = (!weights.is_empty()).then(|| objects.number(&one.name));
        if is_same {
            comparison.reorderable.push(difference);
        } else {
            comparison.differences.push(difference);
        }
    }
    rank(&mut comparison);
    comparison
}

/// One type of both programs, also where its size is the same; none where one of them is no structure, class or union.
pub fn difference(
    baseline: &Layouts,
    type_of_baseline: TypeId,
    variant: &Layouts,
    type_of_variant: TypeId,
) -> Option<TypeDifference> {
    let mut differ = Differ::new(baseline, variant);
    let found = order::find(baseline, type_of_baseline, variant, type_of_variant);
    differ_by(&mut differ, [baseline, variant], [type_of_baseline, type_of_variant], found)
}

fn differ_by(
    differ: &mut Differ,
    [baseline, variant]: [&Layouts; 2],
    [a, b]: [TypeId; 2],
    found: Option<Found>,
) -> Option<TypeDifference> {
    let (one, other) = (baseline.aggregate(a)?, variant.aggregate(b)?);
    let (order, is_order_open) = match found {
        Some(Found::Better(order)) => (Some(order), false),
        Some(Found::Open) => (None, true),
        None => (None, false),
    };
    Some(TypeDifference {
        name: one.name.to_string(),
        location: one.location.clone().or_else(|| other.location.clone()),
        baseline: a,
        variant: b,
        baseline_size: one.size,
        variant_size: other.size,
        shares: differ.shares(a, b),
        order,
        is_order_open,
        objects: None,
    })
}

/// By what all objects at the peak save, then by what one object saves, then by name.
fn rank(comparison: &mut Comparison) {
    comparison.differences.sort_by(|one, other| {
        let order =
            |of: &TypeDifference| (of.saved_at_peak().unwrap_or(0).unsigned_abs(), of.saved().unsigned_abs());
        order(other).cmp(&order(one)).then_with(|| one.name.cmp(&other.name))
    });
    comparison.reorderable.sort_by(|one, other| {
        let saved = |of: &TypeDifference| {
            let order = of.order.as_ref();
            let each = order.map_or(0, |order| of.baseline_size.saturating_sub(order.baseline_size));
            (each.saturating_mul(of.objects.unwrap_or(0)), each)
        };
        saved(other).cmp(&saved(one)).then_with(|| one.name.cmp(&other.name))
    });
    for names in [&mut comparison.only_baseline, &mut comparison.only_variant, &mut comparison.ambiguous] {
        names.sort();
        names.dedup();
    }
}

/// Types by name. Types of one name and several layouts are matched by where they are declared.
fn by_name(layouts: &Layouts) -> BTreeMap<&str, Vec<TypeId>> {
    let mut names: BTreeMap<&str, Vec<TypeId>> = BTreeMap::new();
    for id in &layouts.aggregates {
        if let Some(aggregate) = layouts.aggregate(*id) {
            names.entry(&aggregate.name).or_default().push(*id);
        }
    }
    names
}

/// Finds the variant's type of each of the baseline's: by the very name, then by the name however compilers spell it, and between
/// ABIs by the name whose integers may have other widths.
fn matches(baseline: &Layouts, variant: &Layouts, to: &mut Comparison) -> Vec<(TypeId, TypeId)> {
    let (one, other) = (by_name(baseline), by_name(variant));
    let mut named = Vec::new();
    let mut used: FxHashSet<&str> = FxHashSet::default();
    let mut left = match_by(one.keys().copied().collect(), &other, str::to_owned, &mut used, &mut named, to);
    left = match_by(left, &other, names::type_name_key, &mut used, &mut named, to);
    if baseline.abi != variant.abi {
        left = match_by(left, &other, names::type_key, &mut used, &mut named, to);
    }
    to.only_baseline = left.into_iter().map(str::to_owned).collect();
    to.only_variant =
        other.keys().filter(|name| !used.contains(*name)).map(|name| (*name).to_owned()).collect();
    named.sort_unstable();
    let mut matches = Vec::new();
    for (name, there) in named {
        pair_up(baseline, &one[name], variant, &other[there], name, to, &mut matches);
    }
    matches
}

/// Finds the variant's names that have the same key, and returns the baseline's without any.
fn match_by<'n>(
    names: Vec<&'n str>,
    other: &BTreeMap<&'n str, Vec<TypeId>>,
    key: impl Fn(&str) -> String,
    used: &mut FxHashSet<&'n str>,
    named: &mut Vec<(&'n str, &'n str)>,
    to: &mut Comparison,
) -> Vec<&'n str> {
    let mut free: FxHashMap<String, Vec<&str>> = FxHashMap::default();
    let mut taken: FxHashMap<String, Vec<&str>> = FxHashMap::default();
    for name in other.keys() {
        let places = if used.contains(name) { &mut taken } else { &mut free };
        places.entry(key(name)).or_default().push(name);
    }
    let mut keys: FxHashMap<String, Vec<&str>> = FxHashMap::default();
    for name in &names {
        keys.entry(key(name)).or_default().push(name);
    }
    let mut left = Vec::new();
    for (key, own) in keys {
        match (free.get(&key).map(Vec::as_slice), taken.get(&key).map(Vec::as_slice)) {
            (None, None) => left.extend(own),
            // `T<unsigned long>` and `T<unsigned>` are one type where `size_t` is `unsigned`.
            (None, Some([there])) => named.extend(own.into_iter().map(|name| (name, *there))),
            (Some([there]), _) if own.len() == 1 => {
                used.insert(there);
                named.extend(own.into_iter().map(|name| (name, *there)));
            }
            // Which of them `T<int>` and `T<long>` are is not known.
            (several, _) => {
                used.extend(several.unwrap_or_default());
                to.ambiguous.extend(own.into_iter().map(str::to_owned));
            }
        }
    }
    left
}

fn pair_up(
    baseline: &Layouts,
    ids: &[TypeId],
    variant: &Layouts,
    others: &[TypeId],
    name: &str,
    to: &mut Comparison,
    matches: &mut Vec<(TypeId, TypeId)>,
) {
    if let ([id], [other]) = (ids, others) {
        matches.push((*id, *other));
        return;
    }
    let location = |layouts: &Layouts, id: TypeId| layouts.aggregate(id).and_then(|of| of.location.clone());
    let mut count: FxHashMap<Option<Location>, usize> = FxHashMap::default();
    for id in others {
        *count.entry(location(variant, *id)).or_default() += 1;
    }
    let mut own: FxHashMap<Option<Location>, usize> = FxHashMap::default();
    for id in ids {
        *own.entry(location(baseline, *id)).or_default() += 1;
    }
    for id in ids {
        let place = location(baseline, *id);
        let is_single = place.is_some() && own.get(&place) == Some(&1) && count.get(&place) == Some(&1);
        match others.iter().find(|other| is_single && location(variant, **other) == place) {
            Some(other) => matches.push((*id, *other)),
            None => to.ambiguous.push(name.to_owned()),
        }
    }
}
