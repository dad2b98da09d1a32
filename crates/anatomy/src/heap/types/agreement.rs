//! What the two sides of a comparison say of each other's types: a type has to fit the blocks of both.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::blocks::Blocks;
use super::found::Found;
use super::model::Source;
use super::program_types::ProgramTypes;
use super::tails;
use crate::certainty::Certainty;
use crate::heap::site::SiteKey;
use crate::names;
use widthwise_heap_log::profile::Values;

/// Decides types of sites where one side or both leave several possible, and raises the certainty of those that agree.
pub fn agree(a: &mut [Blocks], b: &mut [Blocks]) {
    let mut sites: FxHashMap<SiteKey, (Vec<usize>, Vec<usize>)> = FxHashMap::default();
    let own = |blocks: &[Blocks]| blocks.iter().map(|block| block.site.own_key()).collect::<FxHashSet<_>>();
    let in_both: FxHashSet<SiteKey> = own(a).intersection(&own(b)).cloned().collect();
    // A site of the same name in both, or else one that differs only in what an ABI calls an integer.
    let key = |block: &Blocks| match block.site.own_key() {
        own if in_both.contains(&own) => own,
        _ => block.site.key(),
    };
    for (index, block) in a.iter().enumerate().filter(|(_, block)| is_open(block)) {
        sites.entry(key(block)).or_default().0.push(index);
    }
    for (index, block) in b.iter().enumerate().filter(|(_, block)| is_open(block)) {
        sites.entry(key(block)).or_default().1.push(index);
    }
    for (mut of_a, mut of_b) in sites.into_values() {
        // Blocks of several calls in one line: the larger ones of one side are the larger ones of the other.
        let order = |blocks: &[Blocks], index: &usize| {
            let values = blocks[*index].values;
            (values.peak_count, values.peak_bytes)
        };
        of_a.sort_by_key(|index| order(a, index));
        of_b.sort_by_key(|index| order(b, index));
        if of_a.len() != of_b.len() {
            // Which blocks are which is not known, unless they are equal.
            for (one, other) in of_a.iter().flat_map(|one| of_b.iter().map(move |other| (*one, *other))) {
                without_types_of_another_size(&mut a[one], &mut b[other], |found, own| !found.is_object(own));
            }
            continue;
        }
        for (one, other) in of_a.into_iter().zip(of_b) {
            without_types_of_another_size(&mut a[one], &mut b[other], |_, _| true);
            decide(&mut a[one], &mut b[other]);
            tails::decide(&mut a[one], &mut b[other]);
        }
    }
    without_types_of_one_side(a, b);
}

/// Of a type that variables alone name, both programs have about as many objects: where one has less than half of the other's, although
/// both allocate there, the size of the blocks fits it by chance.
fn without_types_of_one_side(a: &mut [Blocks], b: &mut [Blocks]) {
    let objects = |blocks: &[Blocks]| {
        let mut objects: FxHashMap<String, u64> = FxHashMap::default();
        for block in blocks {
            let Some(found) = &block.found else { continue };
            let own = objects.entry(names::type_key(&found.name)).or_default();
            *own = own.saturating_add(found.objects(&block.values).unwrap_or(0));
        }
        objects
    };
    let functions =
        |blocks: &[Blocks]| blocks.iter().map(|block| block.site.function.clone()).collect::<FxHashSet<_>>();
    let [of_a, of_b] = [objects(a), objects(b)];
    let [in_a, in_b] = [functions(a), functions(b)];
    let without = |own: &mut [Blocks], elsewhere: &FxHashSet<String>| {
        for block in own.iter_mut().filter(|block| elsewhere.contains(&block.site.function)) {
            let is_by_chance = |found: &Found| {
                let key = names::type_key(&found.name);
                let [of_a, of_b] = [&of_a, &of_b].map(|objects| objects.get(&key).copied().unwrap_or(0));
                let is_weak = found.source == Source::Variables && found.certainty < Certainty::High;
                is_weak && of_a.min(of_b) < of_a.max(of_b).div_ceil(2)
            };
            block.found.take_if(|found| is_by_chance(found));
        }
    };
    without(a, &in_b);
    without(b, &in_a);
}

/// Whether the other side can say something of a block's type: one that the stack names is sure.
fn is_open(block: &Blocks) -> bool {
    let is_of_code = |found: &Found| {
        use Source::{Call, Constructor, SourceLine, Variables, VirtualTable};
        matches!(found.source, Constructor | Call | SourceLine | VirtualTable | Variables)
    };
    block.found.as_ref().is_none_or(is_of_code)
}

/// As many blocks of as many bytes in both programs do not depend on the size of a type: a type that has another size in the other
/// program is not theirs. Their size is a multiple of it by chance, where it is the type of another call in the line.
fn without_types_of_another_size(a: &mut Blocks, b: &mut Blocks, is_meant: fn(&Found, &Values) -> bool) {
    let amount = |blocks: &Blocks| (blocks.values.peak_count, blocks.values.peak_bytes);
    if amount(a) != amount(b) {
        return;
    }
    let without = |own: &mut Blocks, other: &[Rc<ProgramTypes>]| {
        let values = own.values;
        let is_possible = |found: &Found| {
            let elsewhere = other.iter().find_map(|file| file.find(&found.name)).map(|known| known.size);
            !is_meant(found, &values)
                || elsewhere.is_none()
                || found.size.is_none()
                || elsewhere == found.size
        };
        own.found = own.found.take().filter(is_possible);
        own.candidates.retain(is_possible);
    };
    without(a, &b.files);
    without(b, &a.files);
}

/// A type that fits both sides.
struct Common {
    a: Found,
    b: Found,
    /// Both sides' certainty and whether each block is one object: the larger the likelier.
    rank: (Certainty, Certainty, bool),
}

/// Whether these are as many objects in each block, as the same program makes.
fn has_as_many([a, b]: [u64; 2], [of_a, of_b]: [&Values; 2]) -> bool {
    a.checked_mul(of_b.peak_count) == b.checked_mul(of_a.peak_count)
}

/// Whether a type is one of several that a line names, of which not all are known.
fn is_left_open(found: &Found) -> bool {
    found.source == Source::SourceLine && found.certainty == Certainty::Low
}

/// Whether blocks may be an array of a variable's type or anything else of such sizes, as a header with a text is: that they fit two builds
/// in which the type has one size says nothing.
fn is_weak_array(found: &Found, values: &Values) -> bool {
    let is_low = found.source == Source::Variables && found.certainty == Certainty::Low;
    is_low && !found.is_object(values)
}

/// Whether a known type is that one; none if none is known.
fn is_same(known: &Option<Found>, own: &Found) -> Option<bool> {
    known.as_ref().map(|known| names::type_key(&known.name) == names::type_key(&own.name))
}

fn decide(a: &mut Blocks, b: &mut Blocks) {
    let mut common: Vec<Common> = Vec::new();
    for one in &a.candidates {
        let same =
            |key: fn(&str) -> String| b.candidates.iter().find(|other| key(&other.name) == key(&one.name));
        let Some(other) = same(names::type_name_key).or_else(|| same(names::type_key)) else { continue };
        // The line names another type, too, that is not known: it may fit both as well.
        if [one, other].iter().any(|found| is_left_open(found)) {
            continue;
        }
        let (Some(n_a), Some(n_b)) = (one.objects(&a.values), other.objects(&b.values)) else { continue };
        if !has_as_many([n_a, n_b], [&a.values, &b.values]) {
            continue;
        }
        if one.size == other.size && is_weak_array(one, &a.values) && is_weak_array(other, &b.values) {
            continue;
        }
        let (low, high) = (one.certainty.min(other.certainty), one.certainty.max(other.certainty));
        let rank = (low, high, one.is_object(&a.values));
        common.push(Common { a: one.clone(), b: other.clone(), rank });
    }
    if let (Some(of_a), Some(of_b)) = (&mut a.found, &mut b.found) {
        if names::type_key(&of_a.name) == names::type_key(&of_b.name) {
            let numbers = of_a.objects(&a.values).zip(of_b.objects(&b.values));
            let makes_as_many = numbers.map(|(n_a, n_b)| {
                n_a.checked_mul(b.values.peak_count) == n_b.checked_mul(a.values.peak_count)
            });
            let is_of_variable = |found: &Found| found.source == Source::Variables;
            let is_of_size = |found: &Found| is_of_variable(found) || found.source == Source::Constructor;
            let is_own = |found: &Found| !is_of_size(found) && !found.has_size_of_blocks();
            let is_medium = |found: &Found| found.certainty == Certainty::Medium && is_own(found);
            // Both found it without the other, and a wrong type would not fit two layouts. One that variables alone name would: all
            // structures of as many words do. So would one whose size is not known.
            let is_alone = common.len() <= 1;
            if makes_as_many == Some(true)
                && of_a.size != of_b.size
                && is_alone
                && is_medium(of_a)
                && is_medium(of_b)
            {
                (of_a.certainty, of_b.certainty) = (Certainty::High, Certainty::High);
            }
            // A buffer that a small type's size divides by chance holds another number of them in each.
            if makes_as_many == Some(false) && is_of_variable(of_a) && is_of_variable(of_b) {
                (a.found, b.found) = (None, None);
            }
            return;
        }
    }
    // Where the line leaves both open, types that fit both sides are those of both calls.
    match (a.is_shared, b.is_shared) {
        (true, true) => return,
        (true, false) => common.retain(|found| is_same(&b.found, &found.b) == Some(true)),
        (false, true) => common.retain(|found| is_same(&a.found, &found.a) == Some(true)),
        (false, false) => {}
    }
    let Some(best) = common.iter().map(|found| found.rank).max() else {
        match (&a.found, &b.found) {
            (Some(found), None) => b.found = adopted(found, a, b),
            (None, Some(found)) => a.found = adopted(found, b, a),
            _ => {}
        }
        return;
    };
    common.retain(|found| found.rank == best);
    // Of several that fit, the one that one side knows without the other.
    if common.len() > 1 {
        common.retain(|found| {
            is_same(&a.found, &found.a) == Some(true) || is_same(&b.found, &found.b) == Some(true)
        });
    }
    let mut best = common.into_iter();
    let (Some(found), None) = (best.next(), best.next()) else { return };
    let is_other = |known: &Option<Found>, own: &Found| is_same(known, own) == Some(false);
    // Each side is sure of another type.
    if is_other(&a.found, &found.a) && is_other(&b.found, &found.b) {
        return;
    }
    a.found = Some(Found { certainty: Certainty::Medium, ..found.a });
    b.found = Some(Found { certainty: Certainty::Medium, ..found.b });
}

/// The type that only the other side's code names, if it fits the blocks here. Without debug information nothing says that it does: as
/// many blocks of one size are taken for as many objects, with a low certainty.
fn adopted(found: &Found, from: &Blocks, to: &Blocks) -> Option<Found> {
    let known = to.files.iter().find_map(|file| Some((file, file.find(&found.name)?)));
    let Some((file, known)) = known else {
        let is_one_each = found.is_object(&from.values) && from.values.peak_count == to.values.peak_count;
        let (bytes, count) = (to.values.peak_bytes, to.values.peak_count);
        let is_of_one_size = found.source == Source::VirtualTable && count > 0 && bytes.is_multiple_of(count);
        return (is_one_each && is_of_one_size).then(|| Found {
            size: Some(bytes / count),
            id: None,
            certainty: Certainty::Low,
            ..found.clone()
        });
    };
    let own = Found {
        size: Some(known.size),
        id: known.id.map(|id| (file.clone(), id)),
        certainty: found.certainty.min(Certainty::Medium),
        ..found.clone()
    };
    let numbers = [found.objects(&from.values)?, own.objects(&to.values)?];
    has_as_many(numbers, [&from.values, &to.values]).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::site::Site;

    fn blocks(peak_count: u64, peak_bytes: u64) -> Blocks {
        let values = Values { peak_count, peak_bytes, ..Values::default() };
        let site = Site {
            function: "make".to_owned(),
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
            found: None,
            candidates: Vec::new(),
            with_tails: Vec::new(),
            is_shared: false,
            files: Vec::new(),
        }
    }

    fn found(source: Source) -> Found {
        Found {
            name: "Shape".to_owned(),
            container: None,
            size: Some(32),
            id: None,
            library: None,
            certainty: Certainty::High,
            source,
            cookie: 0,
            tail: None,
        }
    }

    #[test]
    fn a_type_that_variables_name_has_about_as_many_objects_in_both() {
        let kept = |source, certainty, [of_a, of_b]: [u64; 2]| {
            let typed = |count| {
                let found = (count > 0).then(|| Found { certainty, ..found(source) });
                vec![Blocks { found, ..blocks(count, 32 * count) }, blocks(9, 90)]
            };
            let (mut a, mut b) = (typed(of_a), typed(of_b));
            without_types_of_one_side(&mut a, &mut b);
            [a, b].map(|side| side[0].found.is_some())
        };
        let (weak, certain) = (Source::Variables, Certainty::High);
        assert_eq!(kept(weak, Certainty::Medium, [100, 50]), [true, true]);
        assert_eq!(kept(weak, Certainty::Medium, [100, 49]), [false, false]);
        assert_eq!(kept(weak, Certainty::Medium, [0, 100]), [false, false]);
        assert_eq!(kept(weak, certain, [100, 49]), [true, true], "the line declares the variable");
        assert_eq!(kept(Source::SourceLine, Certainty::Medium, [100, 49]), [true, true], "the line names it");
        let mut alone = vec![Blocks {
            found: Some(Found { certainty: Certainty::Medium, ..found(weak) }),
            ..blocks(100, 3200)
        }];
        without_types_of_one_side(&mut alone, &mut []);
        assert!(alone[0].found.is_some(), "a function that allocates in one of the two alone");
    }

    #[test]
    fn without_debug_information_as_many_blocks_of_one_size_have_the_other_sides_class() {
        let from = blocks(10, 320);
        let adopted = |source, count, bytes| adopted(&found(source), &from, &blocks(count, bytes));
        let here = adopted(Source::VirtualTable, 10, 200).expect("a type");
        assert_eq!((here.size, here.certainty), (Some(20), Certainty::Low));
        assert!(adopted(Source::VirtualTable, 9, 180).is_none(), "another number of blocks");
        assert!(adopted(Source::VirtualTable, 10, 201).is_none(), "blocks of several sizes");
        assert!(adopted(Source::Constructor, 10, 200).is_none(), "a name of debug information alone");
    }
}
