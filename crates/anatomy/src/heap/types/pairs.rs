//! The typed blocks of two recordings side by side, by site and type.

use rustc_hash::FxHashMap;

use super::agreement::agree;
use super::division::{Division, Sides};
use super::found::Found;
use super::model::{Amount, HeapType, Source, TypedHeap, TypedPair};
use super::side::{Blocks, TypedSide};
use super::summary::allocator_parts;
use crate::certainty::Certainty;
use crate::heap::profile::Values;
use crate::heap::site::{Site, SiteKey};
use crate::names;
use crate::pairing::{paired, Paired};

/// The blocks of one type at one site on one side.
struct Group {
    site: Site,
    values: Values,
    found: Option<Found>,
    candidates: Vec<Found>,
}

/// The blocks of one recording by site and type.
pub fn alone(side: &TypedSide) -> TypedHeap {
    let groups = groups(&side.blocks);
    let pair = |group: Group| pair(Some(group), None, [side.word, 0], None);
    heap(groups.into_iter().map(pair).collect(), side.remarks.clone())
}

/// The blocks of two recordings by site and type. The differences of all pairs sum to the difference of the peaks, and the parts of
/// each to its own.
pub fn pairs(a: &TypedSide, b: &TypedSide) -> TypedHeap {
    let (mut of_a, mut of_b) = (a.blocks.clone(), b.blocks.clone());
    agree(&mut of_a, &mut of_b);
    let (of_a, of_b) = (groups(&of_a), groups(&of_b));
    let mut division = Division::default();
    let mut joined = join(of_a, of_b, &|group| (Some(group.site.own_key()), own_type(group)), &|group| {
        (Some(group.site.key()), type_key(group))
    });
    // A type's blocks that are at sites of one side only are compared with those of the other side's.
    let alone = |(a, b): &(Option<Group>, Option<Group>)| a.is_none() || b.is_none();
    let (single, both): (Vec<_>, Vec<_>) = joined.drain(..).partition(alone);
    let (mut singles_a, mut singles_b) = (Vec::new(), Vec::new());
    for (a, b) in single {
        singles_a.extend(a);
        singles_b.extend(b);
    }
    let (typed_a, untyped_a): (Vec<_>, Vec<_>) =
        singles_a.into_iter().partition(|group| group.found.is_some());
    let (typed_b, untyped_b): (Vec<_>, Vec<_>) =
        singles_b.into_iter().partition(|group| group.found.is_some());
    let mut all = both;
    let (typed_a, typed_b) = (merge_types(typed_a), merge_types(typed_b));
    for single in join(typed_a, typed_b, &|group| (None, own_type(group)), &|group| (None, type_key(group))) {
        fold(&mut all, single);
    }
    all.extend(untyped_a.into_iter().map(|group| (Some(group), None)));
    all.extend(untyped_b.into_iter().map(|group| (None, Some(group))));
    let words = [a.word, b.word];
    let pairs = all.into_iter().map(|(a, b)| pair(a, b, words, Some(&mut division))).collect();
    let mut remarks = a.remarks.clone();
    remarks.extend(b.remarks.iter().filter(|remark| !a.remarks.contains(remark)).cloned());
    heap(pairs, remarks)
}

fn heap(mut pairs: Vec<TypedPair>, remarks: Vec<String>) -> TypedHeap {
    pairs.sort_by_key(|pair| {
        let largest = pair.a.values.peak_bytes.max(pair.b.values.peak_bytes);
        let difference = if pair.parts.is_empty() { 0 } else { pair.difference().unsigned_abs() };
        (std::cmp::Reverse(difference), std::cmp::Reverse(largest), pair.site.key(), pair.ty.clone())
    });
    TypedHeap { pairs, remarks }
}

/// A type's name, and whether the container says more.
type TypeKey = Option<(String, Option<String>)>;

/// In every ABI.
fn type_key(group: &Group) -> TypeKey {
    named_by(group, names::type_key)
}

/// In its program.
fn own_type(group: &Group) -> TypeKey {
    named_by(group, names::type_name_key)
}

fn named_by(group: &Group, key: fn(&str) -> String) -> TypeKey {
    let found = group.found.as_ref()?;
    Some((key(&found.name), found.container.as_deref().map(key)))
}

/// Whether two groups of one program have the same type: structures of one name in two source files may be two.
fn is_one_type(a: &Group, b: &Group) -> bool {
    let size = |group: &Group| group.found.as_ref().and_then(|found| found.size);
    own_type(a) == own_type(b) && (size(a) == size(b) || size(a).is_none() || size(b).is_none())
}

type Key = (Option<SiteKey>, TypeKey);

/// Origins of one site and type together.
fn groups(blocks: &[Blocks]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for block in blocks {
        let group = Group {
            site: block.site.clone(),
            values: block.values,
            found: block.found.clone(),
            candidates: block.candidates.clone(),
        };
        let key = (Some(group.site.own_key()), own_type(&group));
        match known.get(&key) {
            Some(index) => groups[*index].add(group),
            None => {
                known.insert(key, groups.len());
                groups.push(group);
            }
        }
    }
    groups
}

impl Group {
    fn add(&mut self, other: Group) {
        self.values.add(&other.values);
        match (&mut self.found, other.found) {
            (Some(own), Some(other)) => {
                own.certainty = own.certainty.min(other.certainty);
                if own.size != other.size || own.cookie != other.cookie {
                    (own.size, own.id) = (None, None);
                }
            }
            _ => self.candidates.retain(|one| {
                other
                    .candidates
                    .iter()
                    .any(|other| names::type_name_key(&other.name) == names::type_name_key(&one.name))
            }),
        }
    }
}

/// All sites of a type together; the site with most bytes stands for them.
fn merge_types(groups: Vec<Group>) -> Vec<Group> {
    let mut groups = groups;
    groups.sort_by_key(|group| std::cmp::Reverse(group.values.peak_bytes));
    let mut merged: Vec<Group> = Vec::new();
    for group in groups {
        match merged.iter_mut().find(|known| is_one_type(known, &group)) {
            Some(known) => known.add(group),
            None => merged.push(group),
        }
    }
    merged
}

/// Adds the blocks that one side has at a site of its own to those of the same type that both have.
fn fold(all: &mut Vec<(Option<Group>, Option<Group>)>, single: (Option<Group>, Option<Group>)) {
    let (group, is_of_a) = match single {
        (Some(group), None) => (group, true),
        (None, Some(group)) => (group, false),
        both => return all.push(both),
    };
    let same = |pair: &&mut (Option<Group>, Option<Group>)| {
        let has_both = pair.0.is_some() && pair.1.is_some();
        let own = if is_of_a { &pair.0 } else { &pair.1 };
        has_both && own.as_ref().is_some_and(|own| is_one_type(own, &group))
    };
    match all.iter_mut().find(same) {
        Some((Some(a), Some(b))) => {
            if is_of_a {
                a.add(group)
            } else {
                b.add(group)
            }
        }
        _ => all.push(if is_of_a { (Some(group), None) } else { (None, Some(group)) }),
    }
}

fn join(
    a: Vec<Group>,
    b: Vec<Group>,
    own: &dyn Fn(&Group) -> Key,
    common: &dyn Fn(&Group) -> Key,
) -> Vec<(Option<Group>, Option<Group>)> {
    let pairs = paired(&a, &b, own, common);
    let (mut a, mut b): (Vec<Option<Group>>, Vec<Option<Group>>) =
        (a.into_iter().map(Some).collect(), b.into_iter().map(Some).collect());
    let mut of =
        |pair: Paired| (pair.a.and_then(|place| a[place].take()), pair.b.and_then(|place| b[place].take()));
    pairs.into_iter().map(&mut of).collect()
}

fn amount(group: Option<&Group>) -> Amount {
    let Some(group) = group else { return Amount::default() };
    let found = group.found.as_ref();
    Amount {
        values: group.values,
        objects: found.and_then(|found| found.objects(&group.values)),
        size: found.and_then(|found| found.size),
    }
}

fn pair(a: Option<Group>, b: Option<Group>, words: [u64; 2], division: Option<&mut Division>) -> TypedPair {
    let (amount_a, amount_b) = (amount(a.as_ref()), amount(b.as_ref()));
    let found_a = a.as_ref().and_then(|group| group.found.as_ref());
    let found_b = b.as_ref().and_then(|group| group.found.as_ref());
    let found = found_a.or(found_b);
    let certainty = match (found_a, found_b) {
        (Some(a), Some(b)) => a.certainty.min(b.certainty),
        (one, other) => one.or(other).map_or(Certainty::Low, |found| found.certainty),
    };
    let ty = found.map(|found| {
        let is_array = is_array(found, &[(found_a, &amount_a.values), (found_b, &amount_b.values)]);
        HeapType {
            name: found.name.clone(),
            container: found.container.clone().filter(|_| is_array),
            is_array,
        }
    });
    let source = found.map_or(Source::None, |found| found.source);
    let mut candidates: Vec<String> = Vec::new();
    if ty.is_none() {
        for group in [&a, &b].into_iter().flatten() {
            for found in &group.candidates {
                if !candidates.contains(&found.name) {
                    candidates.push(found.name.clone());
                }
            }
        }
    }
    let sides = Sides { a: &amount_a, b: &amount_b, found_a, found_b, certainty };
    let parts = division.map_or(Vec::new(), |division| division.parts(&sides));
    let allocator = allocator_parts(&amount_a, &amount_b, words);
    let site = match (a, b) {
        (Some(group), _) | (None, Some(group)) => group.site,
        (None, None) => unreachable!("a pair has a side"),
    };
    TypedPair { site, ty, certainty, source, candidates, a: amount_a, b: amount_b, parts, allocator }
}

/// Whether blocks are arrays: a vector is one even while each of its blocks has one element.
fn is_array(found: &Found, sides: &[(Option<&Found>, &Values); 2]) -> bool {
    let is_container =
        found.container.as_ref().is_some_and(|name| name.starts_with("std::") || !name.contains(' '));
    let has_several = sides.iter().any(|(found, values)| {
        values.peak_count > 0 && found.is_some_and(|found| found.size.is_some() && !found.is_object(values))
    });
    found.library.is_none() && (is_container || has_several)
}
