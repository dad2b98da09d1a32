//! Objects with a tail: each block is one object and what follows it, such as the elements of a flexible array member, or the text behind
//! a header. No size of a block shows that, and nor does one recording; the blocks of two ABIs do, in which the objects have other sizes
//! and the tails have not.

use std::rc::Rc;

use super::blocks::Blocks;
use super::found::{Found, Tail};
use super::program_types::ProgramTypes;
use crate::certainty::Certainty;
use crate::layout::TypeId;
use crate::names;

/// What is behind an object of which no declaration says it.
const BYTE: &str = "byte";

/// An object of that type with a tail, as it may be: behind the object, and where its flexible array member begins. `named` are the types
/// that the line names, each with whether it has no factor, if the line asks for one sum of these.
pub(super) fn with_tails(found: &Found, named: Option<&[(&str, bool)]>) -> Vec<Found> {
    let (Some(size), Some((file, id))) = (found.size, &found.id) else { return Vec::new() };
    let array = file.layouts.flexible_array(*id);
    let element = array.and_then(|(element, _)| element_of(file, element, found));
    let element = element.unwrap_or_else(|| Found {
        name: BYTE.to_owned(),
        size: Some(1),
        id: None,
        tail: None,
        ..found.clone()
    });
    let key = |found: &Found| names::type_name_key(&found.name);
    let (object, behind) = (key(found), key(&element));
    let is_all_named = named.is_some_and(|named| {
        let (objects, others): (Vec<_>, Vec<_>) =
            named.iter().partition(|(name, _)| names::type_name_key(name) == object);
        matches!(objects[..], [(_, true)])
            && others.iter().all(|(name, _)| names::type_name_key(name) == behind)
    });
    let mut offsets = vec![size];
    offsets.extend(array.map(|(_, offset)| offset).filter(|offset| *offset != size));
    let with_tail = |offset| Found {
        certainty: Certainty::Medium,
        tail: Some(Tail { offset, element: Box::new(element.clone()), is_all_named }),
        ..found.clone()
    };
    offsets.into_iter().map(with_tail).collect()
}

/// The type of a flexible array member's elements, where they have a size.
fn element_of(file: &Rc<ProgramTypes>, element: TypeId, found: &Found) -> Option<Found> {
    let size = Some(file.layouts.size(element)).filter(|size| *size > 0)?;
    let id = file.layouts.aggregate(element).map(|_| (file.clone(), file.layouts.stripped(element)));
    Some(Found { name: file.layouts.name(element), size: Some(size), id, tail: None, ..found.clone() })
}

/// Gives blocks without another type that of an object with a tail, if both sides have as many objects of one type, and as many
/// elements behind them.
pub(super) fn decide(a: &mut Blocks, b: &mut Blocks) {
    if a.found.is_some() || b.found.is_some() || a.values.peak_count != b.values.peak_count {
        return;
    }
    let key = |found: &Found| names::type_key(&found.name);
    let mut fitting: Vec<(&Found, &Found)> = Vec::new();
    for (one, other) in a.with_tails.iter().flat_map(|one| b.with_tails.iter().map(move |other| (one, other)))
    {
        let elements = one.elements_behind(&a.values).zip(other.elements_behind(&b.values));
        let has_as_many = elements.is_some_and(|(of_a, of_b)| of_a == of_b);
        if key(one) == key(other) && has_as_many && are_as_far_apart(one, other) && is_shown(one, other) {
            fitting.push((one, other));
        }
    }
    let Some((of_a, of_b)) = fitting.first().copied() else { return };
    if fitting.iter().all(|(other, _)| key(other) == key(of_a)) {
        (a.found, b.found) = (Some(of_a.clone()), Some(of_b.clone()));
    }
}

/// Whether the tails begin as far apart as the objects end: then the objects' causes are those of the blocks.
fn are_as_far_apart(a: &Found, b: &Found) -> bool {
    let ends = |found: &Found| Some((found.size?, found.tail.as_ref()?.offset));
    let Some(((size_a, tail_a), (size_b, tail_b))) = ends(a).zip(ends(b)) else { return false };
    i128::from(size_b) - i128::from(size_a) == i128::from(tail_b) - i128::from(tail_a)
}

/// Whether as many elements on both sides show that each block has one object, and nothing behind it but these. Elements of one size on
/// both sides do, if the objects have two. Of pointers, any number of objects and of other structures with pointers may be there: the line
/// has to say that there are none.
fn is_shown(a: &Found, b: &Found) -> bool {
    let (Some(of_a), Some(of_b)) = (&a.tail, &b.tail) else { return false };
    match of_a.element.size == of_b.element.size {
        true => a.size != b.size,
        false => of_a.is_all_named && of_b.is_all_named,
    }
}
