//! An order of a structure's members that needs less padding. It changes the ABI of whatever shares the structure.

mod movable;
mod overlap;

use std::collections::BTreeSet;

use movable::{Block, Last, Movable, Part};

use super::cause::pairs;
use super::model::{Aggregate, Kind, Layouts, Member, Role, TypeId};

/// Larger structures, and larger alignments, are not reordered.
const LARGEST: u64 = 1 << 32;
const LARGEST_ALIGNMENT: u64 = 1 << 20;
const MOST_MEMBERS: usize = 4096;
/// Nor are classes with more bases whose padding may have members.
const MOST_OPEN_BASES: usize = 6;
/// Nor are classes with deeper bases of bases.
const DEEPEST: usize = 8;

/// A better order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The members' names in the new order, without bases and the pointer to the virtual table, which stay first.
    /// Bit fields that are neighbours stay together. An anonymous one has in its place what it is and the names in it:
    /// `(anonymous union with i, p)`.
    pub members: Vec<String>,
    /// Bytes of an object in the baseline, in the new order.
    pub baseline_size: u64,
    /// The same in the variant.
    pub variant_size: u64,
}

/// Bytes of an object in the baseline and in the variant.
type Sizes = (u64, u64);

/// What is known of other orders of a structure's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// An order that makes objects smaller in one of the two ABIs and larger in none.
    Better(Order),
    /// Whether an order does is left open: it depends on whether others may begin in the padding of a base or a member, which the
    /// debug information does not say.
    Open,
}

/// An order that makes objects smaller in one of the two ABIs and larger in none, or that it is left open. None if there is no such
/// order, or if the places that the members have now do not follow from the ABI's rules, as in packed structures: then no other can be
/// predicted.
pub fn find(baseline: &Layouts, a: TypeId, variant: &Layouts, b: TypeId) -> Option<Found> {
    // Places that agree with the ABI's rules by chance say nothing of others.
    if baseline.changes_alignments || variant.changes_alignments {
        return None;
    }
    let (a, b) = (baseline.aggregate(a)?, variant.aggregate(b)?);
    // Where an empty member would be beside another one is not predicted: whether the others have a better order is.
    search(baseline, a, variant, b, true).or_else(|| {
        let has_some = |(layouts, of): (&Layouts, &Aggregate)| {
            of.members.len() <= MOST_MEMBERS
                && of.members.iter().any(|member| overlap::is_beside(layouts, of, member))
        };
        let is_left = [(baseline, a), (variant, b)].into_iter().all(has_some);
        is_left.then(|| search(baseline, a, variant, b, false))?.map(|_| Found::Open)
    })
}

/// The same of all members, or of those alone that have bytes of their own.
fn search(
    baseline: &Layouts,
    a: &Aggregate,
    variant: &Layouts,
    b: &Aggregate,
    with_empty: bool,
) -> Option<Found> {
    let [mut one, mut other] = [movable(baseline, a, with_empty)?, movable(variant, b, with_empty)?];
    let pairs = pairs(a, b);
    if one.blocks.len() != other.blocks.len() || pairs.variant.iter().any(Option::is_none) {
        return None;
    }
    // The number of the variant's block for each of the baseline's.
    let partner: Vec<usize> = one
        .blocks
        .iter()
        .map(|block| {
            let wanted: Option<Vec<usize>> =
                block.members.iter().map(|number| pairs.variant[*number]).collect();
            other.blocks.iter().position(|block| Some(&block.members) == wanted.as_ref())
        })
        .collect::<Option<_>>()?;
    overlap::agree(&mut one, &mut other, &partner);
    let there = |order: &[usize]| -> Vec<usize> { order.iter().map(|number| partner[*number]).collect() };
    let back = |order: Vec<usize>| -> Vec<usize> {
        order.iter().filter_map(|number| partner.iter().position(|other| other == number)).collect()
    };
    // Where the members may begin in both: the places that they have now leave one possibility or several.
    let mut starts = starts(baseline, a, variant, b)?;
    starts.retain(|[start, of_other]| one.predicts(*start, a.size) && other.predicts(*of_other, b.size));
    // The least and the most bytes of both in an order.
    let sizes = |order: &[usize]| -> [Sizes; 2] {
        let all = starts.iter().flat_map(|[start, of_other]| {
            let (first, second) = (one.sizes(*start, order), other.sizes(*of_other, &there(order)));
            [(first[0], second[0]), (first[1], second[1])]
        });
        all.fold([(u64::MAX, u64::MAX), (0, 0)], |[least, most], of| {
            [(least.0.min(of.0), least.1.min(of.1)), (most.0.max(of.0), most.1.max(of.1))]
        })
    };
    let is_better =
        |(first, second): Sizes| first <= a.size && second <= b.size && first + second < a.size + b.size;
    let orders = starts.iter().flat_map(|[start, of_other]| {
        let packed = |last| [one.packed(*start, last), back(other.packed(*of_other, last))];
        [Last::Any, Last::Bits, Last::Open].into_iter().flat_map(packed)
    });
    let orders: Vec<(Vec<usize>, [Sizes; 2])> = orders
        .map(|order| (sizes(&order), order))
        .filter(|([least, _], _)| is_better(*least))
        .map(|(sizes, order)| (order, sizes))
        .collect();
    let known = orders.iter().filter(|(_, [least, most])| least == most);
    let Some((order, [(baseline_size, variant_size), _])) =
        known.min_by_key(|(_, [least, _])| least.0 + least.1)
    else {
        return (!orders.is_empty()).then_some(Found::Open);
    };
    if overlap::may_collide(baseline, a) || overlap::may_collide(variant, b) {
        return Some(Found::Open);
    }
    let (baseline_size, variant_size) = (*baseline_size, *variant_size);
    let name = |number: &usize| name(baseline, &a.members[*number]);
    let members = order.iter().flat_map(|block| &one.blocks[*block].members).map(name).collect();
    Some(Found::Better(Order { members, baseline_size, variant_size }))
}

/// A member's name; of an anonymous structure or union what it is and the names in it, which are those of the structure's own scope and so
/// tell one from another.
fn name(layouts: &Layouts, member: &Member) -> String {
    const MOST_NAMES: usize = 3;
    if let Some(name) = &member.name {
        return name.to_string();
    }
    let Some(of) = layouts.aggregate(member.ty) else { return "(anonymous)".to_owned() };
    let kind = of.kind.keyword();
    let (mut inner, mut left) = (Vec::new(), MOST_MEMBERS);
    name_members(layouts, of, &mut inner, &mut left);
    if inner.len() > MOST_NAMES {
        inner.truncate(MOST_NAMES);
        inner.push("…".to_owned());
    }
    match inner.as_slice() {
        [] => format!("(anonymous {kind})"),
        names => format!("(anonymous {kind} with {})", names.join(", ")),
    }
}

/// Adds the names of an aggregate's members, also of those in its anonymous ones, of so many members in all: damaged files have a
/// structure in itself many times.
fn name_members(layouts: &Layouts, of: &Aggregate, names: &mut Vec<String>, left: &mut usize) {
    for member in of.members.iter().filter(|member| member.role == Role::Field) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match (&member.name, layouts.aggregate(member.ty)) {
            (Some(name), _) => names.push(name.to_string()),
            (None, Some(inner)) => name_members(layouts, inner, names, left),
            (None, None) => {}
        }
    }
}

fn movable(layouts: &Layouts, of: &Aggregate, with_empty: bool) -> Option<Movable> {
    let is_large = of.size > LARGEST || of.members.len() > MOST_MEMBERS;
    // gcc notes the alignment of a structure also where it is that of a member with `alignas`.
    if of.kind == Kind::Union || !layouts.has_known_alignment(of) || is_large {
        return None;
    }
    let mut left = MOST_MEMBERS;
    if !of.members.iter().all(|member| is_predictable(layouts, member.role, member, 0, &mut left)) {
        return None;
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_behind_bits = false;
    for (number, member) in of.members.iter().enumerate() {
        let offset = member.offset?;
        match member.role {
            Role::VirtualBase | Role::Variant => return None,
            Role::Base if !blocks.is_empty() => return None,
            Role::Base | Role::VirtualTable => {}
            Role::Field if !with_empty && overlap::is_beside(layouts, of, member) => {}
            Role::Field => {
                let part = part(layouts, member, offset)?;
                match blocks.last_mut().filter(|_| is_behind_bits && member.bits.is_some()) {
                    Some(block) => {
                        block.members.push(number);
                        block.alignment = block.alignment.max(part.alignment);
                        block.parts.push(part);
                    }
                    None => {
                        let alignment = part.alignment;
                        blocks.push(Block { members: vec![number], parts: vec![part], alignment });
                    }
                }
            }
        }
        is_behind_bits = member.bits.is_some();
    }
    overlap::observe(&mut blocks)?;
    (!blocks.is_empty()).then(|| Movable { blocks, alignment: layouts.alignment_of_aggregate(of) })
}

/// Whether the rules say where a member can be; `of` is the role of the structure's own member. Of a base that is only declared nothing is
/// known: gcc describes a class where its virtual table is. Two empty bases of one type have no common address, which no rule here knows:
/// those of the structure have no prediction. Those of a field's class are in the field, whose bytes no other field has unless it is
/// declared so, which `overlap` knows. Of more than so many members and bases that are `left` nothing is said: damaged files have a class
/// among its own bases many times.
fn is_predictable(layouts: &Layouts, of: Role, member: &Member, depth: usize, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let ty = layouts.stripped(member.ty);
    let Some(class) = layouts.aggregate(ty) else { return member.role != Role::Base };
    let is_base = |own: &&Member| matches!(own.role, Role::Base | Role::VirtualBase);
    if of != Role::Field {
        let is_empty_base = member.role == Role::Base && layouts.nonvirtual_end(ty) == 0;
        let mut own = class.members.iter().filter(|own| !is_base(own));
        if is_empty_base || !own.all(|own| overlap::has_known_end(layouts, own)) {
            return false;
        }
    }
    let mut bases = class.members.iter().filter(is_base);
    depth < DEEPEST && bases.all(|own| is_predictable(layouts, of, own, depth + 1, left))
}

/// A base by its place among the bases of its class, of the one that has that as a base, and so on.
type Path = Vec<usize>;

/// Where the members may begin in the baseline and in the variant. A base that is plain data keeps the padding behind its members; that of
/// another one has the next members (Itanium C++ ABI, 2.4: the base's `dsize`). What is plain is a rule of the language, and so the same in
/// both, but debug information says it of classes with virtual functions alone: these are not. None where there are too many possibilities.
fn starts(baseline: &Layouts, a: &Aggregate, variant: &Layouts, b: &Aggregate) -> Option<Vec<[u64; 2]>> {
    let mut open: BTreeSet<Path> = BTreeSet::new();
    open_bases(baseline, a, &Path::new(), &mut open);
    open_bases(variant, b, &Path::new(), &mut open);
    if open.len() > MOST_OPEN_BASES {
        return None;
    }
    let mut starts: Vec<[u64; 2]> = Vec::new();
    for choice in 0..1u32 << open.len() {
        let is_kept = |(number, _): &(usize, &Path)| choice >> number & 1 == 1;
        let keeping: BTreeSet<&Path> =
            open.iter().enumerate().filter(is_kept).map(|(_, path)| path).collect();
        let start = |layouts, of| bases_end(layouts, of, &Path::new(), &keeping);
        let both = [start(baseline, a)?, start(variant, b)?];
        if both.iter().all(|start| *start <= LARGEST) && !starts.contains(&both) {
            starts.push(both);
        }
    }
    Some(starts)
}

/// The bases of a class, with the class of each.
fn bases<'l>(
    layouts: &'l Layouts,
    of: &'l Aggregate,
) -> impl Iterator<Item = (usize, &'l Member, &'l Aggregate)> {
    let all = of.members.iter().filter(|member| member.role == Role::Base).enumerate();
    all.filter_map(|(number, member)| Some((number, member, layouts.aggregate(layouts.stripped(member.ty))?)))
}

/// The bases of which it is open whether they keep their padding.
fn open_bases(layouts: &Layouts, of: &Aggregate, path: &Path, open: &mut BTreeSet<Path>) {
    for (number, member, base) in bases(layouts, of) {
        let path: Path = path.iter().copied().chain([number]).collect();
        open_bases(layouts, base, &path, open);
        if fields_end(layouts, base, false) < fields_end(layouts, base, true) {
            open.insert(fields_of(&path));
        }
        if layouts.nonvirtual_end(member.ty) < layouts.size(member.ty) && !layouts.is_dynamic(member.ty) {
            open.insert(path);
        }
    }
}

/// Where the bases and the pointer to the virtual table end.
fn bases_end(layouts: &Layouts, of: &Aggregate, path: &Path, keeping: &BTreeSet<&Path>) -> Option<u64> {
    let mut end = 0;
    for member in of.members.iter().filter(|member| member.role == Role::VirtualTable) {
        end = end.max(member.offset?.checked_add(layouts.size(member.ty))?);
    }
    for (number, member, base) in bases(layouts, of) {
        let path: Path = path.iter().copied().chain([number]).collect();
        let of_base = match keeping.contains(&path) {
            true => layouts.size(member.ty),
            false => {
                let fields = fields_end(layouts, base, keeping.contains(&fields_of(&path)))?;
                bases_end(layouts, base, &path, keeping)?.max(fields)
            }
        };
        end = end.max(member.offset?.checked_add(of_base)?);
    }
    Some(end)
}

/// Stands for the fields of a base among the bases of which something is open: whether they keep their padding.
fn fields_of(base: &Path) -> Path {
    base.iter().copied().chain([usize::MAX]).collect()
}

/// Where the last of a class's own members ends, with its padding or without.
fn fields_end(layouts: &Layouts, of: &Aggregate, with_padding: bool) -> Option<u64> {
    let fields = of.members.iter().filter(|member| matches!(member.role, Role::Field | Role::Variant));
    fields
        .map(|member| match member.bits {
            Some(bits) => Some(bits.offset.checked_add(bits.size)?.div_ceil(8)),
            None if with_padding => member.offset?.checked_add(layouts.size(member.ty)),
            None => member.offset?.checked_add(layouts.own_bytes(member.ty)[0]),
        })
        .try_fold(0, |end, own| Some(own?.max(end)))
}

/// The place that a member needs; none if no rule says where another order would put it.
fn part(layouts: &Layouts, member: &Member, offset: u64) -> Option<Part> {
    let size = layouts.size(member.ty);
    let alignment = layouts.member_alignment(member);
    // A flexible array member has to be the last one; an empty member may have any place.
    if size == 0 || size > LARGEST || alignment > LARGEST_ALIGNMENT {
        return None;
    }
    let (whole, alignment) = (size.checked_mul(8)?, alignment.checked_mul(8)?);
    let Some(bits) = member.bits else {
        let own = overlap::own_bits(layouts, member.ty)?;
        let has_padding = overlap::has_padding(layouts, member.ty);
        let offset = offset.checked_mul(8)?;
        return Some(Part { offset, size: whole, own, has_padding, alignment, storage: None });
    };
    // C++ allows bit fields wider than their type, of which the rest is padding.
    if bits.size == 0 || bits.size > whole || member.explicit_alignment.is_some() {
        return None;
    }
    let own = vec![bits.size];
    Some(Part {
        offset: bits.offset,
        size: bits.size,
        own,
        has_padding: false,
        alignment,
        storage: Some(whole),
    })
}
