//! Members that other members may overlap (C++20, `[[no_unique_address]]`): an empty one needs no bytes, and in the padding of one that is
//! no plain data the next members begin (Itanium C++ ABI, 2.4). Debug information says neither which members are declared so nor
//! which classes are plain data: the places that members have tell, or it is left open.

use rustc_hash::FxHashSet;

use super::movable::{Block, Movable, Part};
use crate::layout::model::{Aggregate, Layouts, Member, Role, Type, TypeId};

/// Members with more padding at their end have no prediction.
const MOST_PADDING: u64 = 64;

/// How many bits of an object the next members cannot have: all possibilities, ascending. None if there are too many, or too many bits.
pub(super) fn own_bits(layouts: &Layouts, ty: TypeId) -> Option<Vec<u64>> {
    let (size, [least, most]) = (layouts.size(ty), layouts.own_bytes(ty));
    // An empty member whose place is that of one with a byte is one: it would be at the beginning, with the next one
    // (`may_collide` excludes the exception).
    if layouts.may_be_empty(ty) || least >= size {
        return Some(vec![size.checked_mul(8)?]);
    }
    let most = most.min(size);
    if size - least > MOST_PADDING {
        return None;
    }
    let mut all: Vec<u64> =
        (least..=most).chain([size]).map(|bytes| bytes.checked_mul(8)).collect::<Option<_>>()?;
    all.dedup();
    Some(all)
}

/// Whether an object ends in padding of its own, whether its last member keeps some or not.
pub(super) fn has_padding(layouts: &Layouts, ty: TypeId) -> bool {
    !layouts.may_be_empty(ty) && layouts.own_bytes(ty)[1] < layouts.size(ty)
}

/// Whether the end of a base's member is known, or is one of two.
pub(super) fn has_known_end(layouts: &Layouts, member: &Member) -> bool {
    let ty = layouts.stripped(member.ty);
    let is_known = || own_bits(layouts, ty).is_some_and(|all| all.len() <= 2);
    !layouts.overlaps_members || member.bits.is_some() || !layouts.may_be_empty(ty) && is_known()
}

/// Whether a member is empty and needs no bytes: another one has its place.
pub(super) fn is_beside(layouts: &Layouts, of: &Aggregate, member: &Member) -> bool {
    let is_empty = |own: &Member| {
        own.role == Role::Field && own.bits.is_none() && layouts.may_be_empty(layouts.stripped(own.ty))
    };
    let has_place = |other: &Member| {
        let begin = other.bits.map(|bits| bits.offset / 8).or(other.offset);
        let bytes = other
            .bits
            .map_or(layouts.size(other.ty), |bits| (bits.offset % 8).saturating_add(bits.size).div_ceil(8));
        let end = begin.map(|begin| begin.saturating_add(bytes));
        begin <= member.offset && member.offset < end
    };
    let others = || of.members.iter().filter(|other| !is_empty(other));
    layouts.overlaps_members && is_empty(member) && others().any(has_place)
}

/// Leaves the possibilities that the place of the next member allows. None if there is none.
pub(super) fn observe(blocks: &mut [Block]) -> Option<()> {
    let mut parts: Vec<&mut Part> = blocks.iter_mut().flat_map(|block| &mut block.parts).collect();
    for at in 1..parts.len() {
        let (before, next) = parts.split_at_mut(at);
        let (part, next) = (&mut before[at - 1], &next[0]);
        if part.own.len() > 1 {
            let offset = part.offset;
            part.own.retain(|own| next.place(offset.saturating_add(*own)) == next.offset);
            if part.own.is_empty() {
                return None;
            }
        }
    }
    Some(())
}

/// Whether a member keeps its padding is the same in both ABIs: what the places in the one tell is so in the other.
pub(super) fn agree(one: &mut Movable, other: &mut Movable, partner: &[usize]) {
    for (number, at) in partner.iter().enumerate() {
        let (of_one, of_other) = (&mut one.blocks[number].parts, &mut other.blocks[*at].parts);
        for (first, second) in of_one.iter_mut().zip(of_other) {
            let (in_first, in_second) = (keeps(first), keeps(second));
            tell(first, in_second);
            tell(second, in_first);
        }
    }
}

/// Whether it keeps its padding, if that is known and it has some. One without may have its whole size since its last member keeps that
/// one's.
fn keeps(part: &Part) -> Option<bool> {
    match part.own.contains(&part.size) {
        false => Some(false),
        true if part.has_padding && part.own.len() == 1 => Some(true),
        true => None,
    }
}

fn tell(part: &mut Part, keeps: Option<bool>) {
    let Some(keeps) = keeps.filter(|_| part.own.len() > 1) else { return };
    let size = part.size;
    // A whole size says nothing of a part without padding.
    part.own.retain(|own| (*own == size) == keeps || !keeps && !part.has_padding);
}

/// Whether two members may come to need different places only because they, or parts of them, are of one empty class: two objects of one
/// type have different addresses.
pub(super) fn may_collide(layouts: &Layouts, of: &Aggregate) -> bool {
    if !layouts.overlaps_members {
        return false;
    }
    let inside: Vec<FxHashSet<TypeId>> =
        of.members.iter().map(|member| empty_parts(layouts, member.ty)).collect();
    of.members.iter().enumerate().any(|(number, member)| {
        let ty = layouts.stripped(member.ty);
        let is_open = layouts.may_be_empty(ty) || layouts.own_bytes(ty)[0] < layouts.size(ty);
        let others = || inside.iter().enumerate().filter(|(other, _)| *other != number);
        is_open && others().any(|(_, other)| !inside[number].is_disjoint(other))
    })
}

/// The classes that may be empty among the type and its parts.
fn empty_parts(layouts: &Layouts, ty: TypeId) -> FxHashSet<TypeId> {
    let (mut found, mut seen) = (FxHashSet::default(), FxHashSet::default());
    let mut left = vec![ty];
    while let Some(ty) = left.pop().map(|ty| layouts.stripped(ty)) {
        if !seen.insert(ty) {
            continue;
        }
        match layouts.get(ty) {
            Type::Array { element, .. } => left.push(*element),
            Type::Aggregate(class) => {
                if layouts.may_be_empty(ty) {
                    found.insert(ty);
                }
                let parts = class.members.iter().filter(|member| member.role != Role::VirtualTable);
                left.extend(parts.map(|member| member.ty));
            }
            _ => {}
        }
    }
    found
}
