//! The typed blocks of two recordings side by side, by site and type.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::agreement::agree;
use super::blocks::Blocks;
use super::division::{Division, Sides};
use super::found::Found;
use super::model::{Amount, HeapType, Source, TypedHeap, TypedPair};
use super::program_types::ProgramTypes;
use super::side::TypedSide;
use super::summary::allocator_parts;
use crate::certainty::Certainty;
use crate::heap::site::{Site, SiteKey};
use crate::layout::Location;
use crate::names;
use crate::pairing::{paired, Paired};
use widthwise_heap_log::profile::Values;

/// The blocks of one type at one site on one side.
struct Group {
    site: Site,
    values: Values,
    found: Option<Found>,
    candidates: Vec<Found>,
    files: Vec<Rc<ProgramTypes>>,
}

/// The blocks of one recording by site and type.
pub fn alone(side: &TypedSide) -> TypedHeap {
    let groups = groups(&side.blocks);
    let pair = |group: Group| pair(Some(group), None, [side.block_header, Some(0)], None);
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
    let alone = |(a, b): &Pair| a.is_none() || b.is_none();
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
    let joined = join(typed_a, typed_b, &|group| (None, own_type(group)), &|group| (None, type_key(group)));
    for single in with_other_numbers(joined, &all) {
        fold(&mut all, single);
    }
    all.extend(untyped_a.into_iter().map(|group| (Some(group), None)));
    all.extend(untyped_b.into_iter().map(|group| (None, Some(group))));
    let headers = [a.block_header, b.block_header];
    let pairs = all.into_iter().map(|(a, b)| pair(a, b, headers, Some(&mut division))).collect();
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
    // Their objects are not those of as many bytes without stored lengths.
    let with_length = (found.cookie > 0).then(|| "new[]".to_owned());
    let with_tail = found.tail.as_ref().map(|tail| format!("+ {}", tail.element.name));
    Some((key(&found.name), found.container.as_deref().map(key).or(with_length).or(with_tail)))
}

/// Whether two groups of one program have the same type: structures of one name in two source files may be two.
fn is_one_type(a: &Group, b: &Group) -> bool {
    let size = |group: &Group| group.found.as_ref().and_then(|found| found.size);
    own_type(a) == own_type(b) && (size(a) == size(b) || size(a).is_none() || size(b).is_none())
}

type Key = (Option<SiteKey>, TypeKey);

/// The groups of both sides that are one.
type Pair = (Option<Group>, Option<Group>);

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
            files: block.files.clone(),
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

/// The name of a type whatever numbers are its template arguments, its container's, and where it is declared; of a pointer, where the type
/// that it points to is.
type DeclarationKey = (String, Option<String>, Location);

fn declaration(group: &Group) -> Option<DeclarationKey> {
    let (name, container) = named_by(group, names::numberless_type_key)?;
    let found = group.found.as_ref()?;
    let location = |file: &ProgramTypes, id| file.layouts.aggregate(id)?.location.clone();
    let location = match &found.id {
        Some((file, id)) => location(file, *id),
        None => {
            let target = found.name.trim_end_matches(['*', ' ']);
            group.files.iter().find_map(|file| location(file, file.find(target)?.id?))
        }
    };
    Some((name, container, location?))
}

/// Pairs types of one declaration whose names differ in integer template arguments, such as `Pool<sizeof(T)>`. Each side has to have
/// one of that declaration alone: which of several are one type is not known.
fn with_other_numbers(joined: Vec<Pair>, paired: &[Pair]) -> Vec<Pair> {
    let mut types: FxHashMap<DeclarationKey, [Vec<TypeKey>; 2]> = FxHashMap::default();
    for pair in joined.iter().chain(paired) {
        for (side, group) in [&pair.0, &pair.1].into_iter().enumerate() {
            let Some((group, key)) = group.as_ref().and_then(|group| Some((group, declaration(group)?)))
            else {
                continue;
            };
            let (known, own) = (&mut types.entry(key).or_default()[side], type_key(group));
            if !known.contains(&own) {
                known.push(own);
            }
        }
    }
    let is_alone = |group: &Group| {
        let types = declaration(group).and_then(|key| types.get(&key));
        types.is_some_and(|[of_a, of_b]| of_a.len() == 1 && of_b.len() == 1 && of_a != of_b)
    };
    let is_meant = |(a, b): &Pair| match (a, b) {
        (Some(group), None) | (None, Some(group)) => is_alone(group),
        _ => false,
    };
    let (meant, mut all): (Vec<Pair>, Vec<Pair>) = joined.into_iter().partition(is_meant);
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for (a, b) in meant {
        of_a.extend(a);
        of_b.extend(b);
    }
    let key = |group: &Group| {
        let own =
            declaration(group).map(|(name, container, location)| (format!("{name} {location}"), container));
        (None, own)
    };
    all.extend(join(of_a, of_b, &key, &key));
    all
}

/// Adds the blocks that one side has at a site of its own to those of the same type that both have.
fn fold(all: &mut Vec<Pair>, single: Pair) {
    let (group, is_of_a) = match single {
        (Some(group), None) => (group, true),
        (None, Some(group)) => (group, false),
        both => return all.push(both),
    };
    let same = |pair: &&mut Pair| {
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
) -> Vec<Pair> {
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
        elements_behind: found.and_then(|found| found.elements_behind(&group.values)),
    }
}

fn pair(
    a: Option<Group>,
    b: Option<Group>,
    headers: [Option<u64>; 2],
    division: Option<&mut Division>,
) -> TypedPair {
    let (amount_a, amount_b) = (amount(a.as_ref()), amount(b.as_ref()));
    let found_a = a.as_ref().and_then(|group| group.found.as_ref());
    let found_b = b.as_ref().and_then(|group| group.found.as_ref());
    let found = found_a.or(found_b);
    let other_name = found_a.zip(found_b).and_then(|(a, b)| name_in_both(a, b));
    let certainty = match (found_a, found_b) {
        // That types of other numbers are one is an assumption.
        (Some(a), Some(b)) if other_name.is_some() => a.certainty.min(b.certainty).min(Certainty::Medium),
        (Some(a), Some(b)) => a.certainty.min(b.certainty),
        (one, other) => one.or(other).map_or(Certainty::Low, |found| found.certainty),
    };
    let ty = found.map(|found| {
        let is_array = is_array(found, &[(found_a, &amount_a.values), (found_b, &amount_b.values)]);
        let (name, container) = other_name.unwrap_or((found.name.clone(), found.container.clone()));
        let behind = found.tail.as_ref().map(|tail| tail.element.name.clone());
        HeapType { name, container: container.filter(|_| is_array), is_array, behind }
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
    let files_a = a.as_ref().map_or(&[][..], |group| &group.files);
    let sides = Sides { a: &amount_a, b: &amount_b, found_a, found_b, files_a, certainty };
    let parts = division.map_or(Vec::new(), |division| division.parts(&sides));
    let allocator = allocator_parts(&amount_a, &amount_b, headers);
    let site = match (a, b) {
        (Some(group), _) | (None, Some(group)) => group.site,
        (None, None) => unreachable!("a pair has a side"),
    };
    TypedPair { site, ty, certainty, source, candidates, a: amount_a, b: amount_b, parts, allocator }
}

/// The name and the container of a type whose names in both programs differ in numbers.
fn name_in_both(a: &Found, b: &Found) -> Option<(String, Option<String>)> {
    let differs = |a: &str, b: &str| {
        names::type_key(a) != names::type_key(b)
            && names::numberless_type_key(a) == names::numberless_type_key(b)
    };
    let containers = a.container.as_deref().zip(b.container.as_deref());
    let is_meant = differs(&a.name, &b.name) || containers.is_some_and(|(a, b)| differs(a, b));
    let container = || containers.map(|(a, b)| names::with_both_numbers(a, b)).or(a.container.clone());
    is_meant.then(|| (names::with_both_numbers(&a.name, &b.name), container()))
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

#[cfg(test)]
mod tests {
    use super::super::model::Cause;
    use super::*;
    use crate::layout::{Aggregate, Kind, Layouts, Type, TypeId};

    /// A side with blocks of 4096 bytes of these types, each declared in that line and of that many blocks.
    fn side(types: &[(&str, u32, u64)]) -> TypedSide {
        let blocks = types.iter().map(|(name, line, peak_count)| {
            let location = Some(Location { file: "pool.h".into(), line: *line });
            let aggregate = Aggregate {
                name: (*name).into(),
                kind: Kind::Struct,
                size: 4096,
                explicit_alignment: None,
                members: Vec::new(),
                location,
            };
            let types = vec![Type::Aggregate(Box::new(aggregate))];
            let file = Rc::new(ProgramTypes::new(Layouts { types, address_size: 8, ..Layouts::default() }));
            let files = vec![file.clone()];
            let found = Found {
                name: (*name).to_owned(),
                container: None,
                size: Some(4096),
                id: Some((file, TypeId(0))),
                library: None,
                certainty: Certainty::High,
                source: Source::SourceLine,
                cookie: 0,
                tail: None,
            };
            let mut values =
                Values { peak_count: *peak_count, peak_bytes: 4096 * peak_count, ..Values::default() };
            values.sizes.take(4096);
            let site = Site {
                function: format!("alloc_of_{name}"),
                file: None,
                line: None,
                module: "program".to_owned(),
                is_program: true,
                made: None,
                values,
            };
            Blocks {
                site,
                values,
                found: Some(found),
                candidates: Vec::new(),
                with_tails: Vec::new(),
                is_shared: false,
                files,
            }
        });
        TypedSide { blocks: blocks.collect(), block_header: Some(8), remarks: Vec::new() }
    }

    fn names(a: &[(&str, u32, u64)], b: &[(&str, u32, u64)]) -> Vec<String> {
        let pairs = pairs(&side(a), &side(b)).pairs;
        pairs.iter().filter_map(|pair| Some(pair.ty.as_ref()?.name.clone())).collect()
    }

    #[test]
    fn types_of_one_declaration_are_one_if_only_numbers_among_their_arguments_differ() {
        let (wide, narrow) = (("Pool<104>::Block", 381, 10), ("Pool<52>::Block", 381, 5));
        let heap = pairs(&side(&[wide]), &side(&[narrow]));
        let [pair] = heap.pairs.as_slice() else { panic!("{:?}", heap.pairs) };
        assert_eq!(pair.ty.as_ref().map(|ty| ty.name.as_str()), Some("Pool<104 → 52>::Block"));
        assert_eq!((pair.a.objects, pair.b.objects, pair.certainty), (Some(10), Some(5), Certainty::Medium));
        let parts: Vec<(&Cause, i64)> = pair.parts.iter().map(|part| (&part.cause, part.bytes)).collect();
        assert_eq!(parts, [(&Cause::Objects, -5 * 4096)]);
    }

    #[test]
    fn pointers_to_such_types_are_one_too() {
        let pointers = |name: &'static str, blocks| {
            let mut side = side(&[(name, 381, blocks)]);
            for found in side.blocks.iter_mut().filter_map(|block| block.found.as_mut()) {
                (found.name, found.size, found.id) = (format!("{name}*"), Some(8), None);
            }
            side
        };
        let heap = pairs(&pointers("Pool<104>::Block", 2), &pointers("Pool<52>::Block", 1));
        let names: Vec<Option<String>> =
            heap.pairs.iter().map(|pair| pair.ty.as_ref().map(|ty| ty.name.clone())).collect();
        assert_eq!(names, [Some("Pool<104 → 52>::Block*".to_owned())]);
    }

    #[test]
    fn types_of_other_numbers_stay_apart_where_several_are_possible() {
        let (wide, narrow) = (("Pool<104>::Block", 381, 10), ("Pool<52>::Block", 381, 5));
        let apart = ["Pool<104>::Block", "Pool<52>::Block"];
        assert_eq!(names(&[wide], &[("Pool<52>::Block", 17, 5)]), apart, "another declaration");
        assert_eq!(names(&[wide], &[("Heap<52>::Block", 381, 5)]).len(), 2, "another name");
        let more = ("Pool<80>::Block", 381, 1);
        assert_eq!(names(&[wide, more], &[narrow]).len(), 3, "two in one side");
        assert_eq!(names(&[wide, more], &[narrow, more]).len(), 3, "one of them is in both");
    }
}
