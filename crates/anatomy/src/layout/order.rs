//! An order of a structure's members that needs less padding. It changes the ABI of whatever shares the structure.

use std::cmp::Reverse;
use std::collections::BTreeSet;

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
    /// Bit fields that are neighbours stay together.
    pub members: Vec<String>,
    /// Bytes of an object in the baseline, in the new order.
    pub baseline_size: u64,
    /// The same in the variant.
    pub variant_size: u64,
}

/// Members that are moved together: one, or neighbouring bit fields.
#[derive(Debug, Clone)]
struct Block {
    members: Vec<usize>,
    parts: Vec<Part>,
    /// The largest of its parts.
    alignment: u64,
}

/// Where a member is and what place it needs, in bits.
#[derive(Debug, Clone)]
struct Part {
    offset: u64,
    size: u64,
    /// That of its type.
    alignment: u64,
    /// Of a bit field: the bits of the type that it is declared with.
    storage: Option<u64>,
}

/// What of an aggregate can be moved, in one ABI.
struct Movable {
    blocks: Vec<Block>,
    alignment: u64,
}

/// An order that makes objects smaller in one of the two ABIs and larger in none. None if there is no such order, or if the
/// places that the members have now do not follow from the ABI's rules, as in packed structures: then no other can be predicted.
pub fn better(baseline: &Layouts, a: TypeId, variant: &Layouts, b: TypeId) -> Option<Order> {
    let (a, b) = (baseline.aggregate(a)?, variant.aggregate(b)?);
    let [one, other] = [movable(baseline, a)?, movable(variant, b)?];
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
    let there = |order: &[usize]| -> Vec<usize> { order.iter().map(|number| partner[*number]).collect() };
    let back = |order: Vec<usize>| -> Vec<usize> {
        order.iter().filter_map(|number| partner.iter().position(|other| other == number)).collect()
    };
    // Where the members may begin in both: the places that they have now leave one possibility or several.
    let mut starts = starts(baseline, a, variant, b)?;
    starts.retain(|[start, of_other]| one.predicts(*start, a.size) && other.predicts(*of_other, b.size));
    let sizes = |order: &[usize]| {
        let mut sizes = starts
            .iter()
            .map(|[start, of_other]| (one.size(*start, order), other.size(*of_other, &there(order))));
        let first = sizes.next()?;
        sizes.all(|sizes| sizes == first).then_some(first)
    };
    let orders = starts.iter().flat_map(|[start, of_other]| {
        let packed =
            |are_bits_last| [one.packed(*start, are_bits_last), back(other.packed(*of_other, are_bits_last))];
        [false, true].into_iter().flat_map(packed)
    });
    let smallest = orders
        .filter_map(|order| Some((sizes(&order)?, order)))
        .filter(|((first, second), _)| *first <= a.size && *second <= b.size)
        .min_by_key(|((first, second), _)| first + second)?;
    let ((baseline_size, variant_size), order) = smallest;
    if baseline_size == a.size && variant_size == b.size {
        return None;
    }
    let name = |number: &usize| a.members[*number].name.as_deref().unwrap_or("(anonymous)").to_owned();
    let members = order.iter().flat_map(|block| &one.blocks[*block].members).map(name).collect();
    Some(Order { members, baseline_size, variant_size })
}

fn movable(layouts: &Layouts, of: &Aggregate) -> Option<Movable> {
    let is_large = of.size > LARGEST || of.members.len() > MOST_MEMBERS;
    if of.kind == Kind::Union || of.explicit_alignment.is_some() || is_large {
        return None;
    }
    if !of.members.iter().all(|member| is_predictable(layouts, member, 0)) {
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
    (!blocks.is_empty()).then(|| Movable { blocks, alignment: layouts.alignment_of_aggregate(of) })
}

/// Whether the rules say where a member can be. Of a base that is only declared nothing is known: gcc describes a class where its virtual
/// table is. Two empty bases of one type have no common address, which no rule here knows.
fn is_predictable(layouts: &Layouts, member: &Member, depth: usize) -> bool {
    let ty = layouts.stripped(member.ty);
    let Some(class) = layouts.aggregate(ty) else { return member.role != Role::Base };
    let is_empty_base = member.role == Role::Base && layouts.nonvirtual_end(ty) == 0;
    let mut bases = class.members.iter().filter(|own| matches!(own.role, Role::Base | Role::VirtualBase));
    !is_empty_base && depth < DEEPEST && bases.all(|own| is_predictable(layouts, own, depth + 1))
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
            false => bases_end(layouts, base, &path, keeping)?.max(fields_end(layouts, base)?),
        };
        end = end.max(member.offset?.checked_add(of_base)?);
    }
    Some(end)
}

/// Where the last of a class's own members ends.
fn fields_end(layouts: &Layouts, of: &Aggregate) -> Option<u64> {
    let fields = of.members.iter().filter(|member| matches!(member.role, Role::Field | Role::Variant));
    fields
        .map(|member| match member.bits {
            Some(bits) => Some(bits.offset.checked_add(bits.size)?.div_ceil(8)),
            None => member.offset?.checked_add(layouts.size(member.ty)),
        })
        .try_fold(0, |end, own| Some(own?.max(end)))
}

/// The place that a member needs; none if no rule says where another order would put it.
fn part(layouts: &Layouts, member: &Member, offset: u64) -> Option<Part> {
    let size = layouts.size(member.ty);
    let alignment = member.explicit_alignment.unwrap_or_else(|| layouts.alignment(member.ty)).max(1);
    // A flexible array member has to be the last one; an empty member may have any place.
    if size == 0 || size > LARGEST || alignment > LARGEST_ALIGNMENT {
        return None;
    }
    let (whole, alignment) = (size.checked_mul(8)?, alignment.checked_mul(8)?);
    let Some(bits) = member.bits else {
        return Some(Part { offset: offset.checked_mul(8)?, size: whole, alignment, storage: None });
    };
    // C++ allows bit fields wider than their type, of which the rest is padding.
    if bits.size == 0 || bits.size > whole || member.explicit_alignment.is_some() {
        return None;
    }
    Some(Part { offset: bits.offset, size: bits.size, alignment, storage: Some(whole) })
}

impl Part {
    /// Where it is if the members before it end at this bit.
    fn place(&self, cursor: u64) -> u64 {
        match self.storage {
            // A bit field is in a storage unit of its type (System V ABI, x86-64 supplement, 3.1.2 "Bit-Fields"), which begins where
            // the type is aligned: every 4 bytes, for 8 bytes of i386.
            Some(storage) if cursor % self.alignment + self.size <= storage => cursor,
            _ => cursor.next_multiple_of(self.alignment),
        }
    }
}

impl Block {
    /// Where it ends if the members before it end at this bit.
    fn end(&self, cursor: u64) -> u64 {
        self.parts.iter().fold(cursor, |cursor, part| part.place(cursor).saturating_add(part.size))
    }

    /// The bits that it has without padding.
    fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.size).sum()
    }

    fn has_bits(&self) -> bool {
        self.parts.iter().any(|part| part.storage.is_some())
    }
}

impl Movable {
    /// Whether members that begin behind so many bytes have the places and the structure the size that they have now.
    fn predicts(&self, start: u64, size: u64) -> bool {
        let now: Vec<usize> = (0..self.blocks.len()).collect();
        let mut cursor = start.saturating_mul(8);
        let is_as_predicted = self.blocks.iter().flat_map(|block| &block.parts).all(|part| {
            let at = part.place(cursor);
            cursor = at.saturating_add(part.size);
            at == part.offset
        });
        is_as_predicted && self.size(start, &now) == size
    }

    /// In an order, with members that begin behind so many bytes.
    fn size(&self, start: u64, order: &[usize]) -> u64 {
        let begin = start.saturating_mul(8);
        let end = order.iter().fold(begin, |cursor, number| self.blocks[*number].end(cursor));
        end.div_ceil(8).next_multiple_of(self.alignment.max(1))
    }

    /// At each place the most aligned block that needs no padding there, else the one that needs the least. Bit fields can be last
    /// among those, since most places suit them.
    fn packed(&self, start: u64, are_bits_last: bool) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.blocks.len()).collect();
        // The declaration's order stays among equal ones.
        left.sort_by_key(|number| {
            let block = &self.blocks[*number];
            let is_late = are_bits_last && block.has_bits();
            (is_late, Reverse(block.alignment), Reverse(block.size()), *number)
        });
        let mut order = Vec::with_capacity(left.len());
        let mut cursor = start.saturating_mul(8);
        while !left.is_empty() {
            let padding = |number: &usize| {
                let block = &self.blocks[*number];
                block.end(cursor).saturating_sub(cursor).saturating_sub(block.size())
            };
            let fits = left.iter().position(|number| padding(number) == 0);
            let least = || (0..left.len()).min_by_key(|at| padding(&left[*at]));
            let Some(chosen) = fits.or_else(least) else { break };
            let number = left.remove(chosen);
            cursor = self.blocks[number].end(cursor);
            order.push(number);
        }
        order
    }
}
