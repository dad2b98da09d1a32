//! An order of a structure's members that needs less padding. It changes the ABI of whatever shares the structure.

use std::cmp::Reverse;

use super::cause::pairs;
use super::model::{Aggregate, Kind, Layouts, Role, TypeId};

/// Larger structures, and larger alignments, are not reordered.
const LARGEST: u64 = 1 << 32;
const LARGEST_ALIGNMENT: u64 = 1 << 20;
const MOST_MEMBERS: usize = 4096;

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
    offset: u64,
    size: u64,
    alignment: u64,
}

/// What of an aggregate can be moved, in one ABI.
struct Movable {
    /// Where the bases and the pointer to the virtual table end.
    start: u64,
    blocks: Vec<Block>,
    alignment: u64,
}

/// An order that makes objects smaller in one of the two ABIs and larger in none. None if there is no such order, or if the
/// places that the members have now do not follow from the ABI's rules, as in packed structures: then no other can be predicted.
pub fn better(baseline: &Layouts, a: TypeId, variant: &Layouts, b: TypeId) -> Option<Order> {
    let (a, b) = (baseline.aggregate(a)?, variant.aggregate(b)?);
    let (one, other) = (movable(baseline, a)?, movable(variant, b)?);
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
    let back = |order: Vec<usize>| -> Vec<usize> {
        order.iter().filter_map(|number| partner.iter().position(|other| other == number)).collect()
    };
    let sizes = |order: &[usize]| {
        let there: Vec<usize> = order.iter().map(|number| partner[*number]).collect();
        (one.size(order), other.size(&there))
    };
    let smallest = [one.packed(), back(other.packed())]
        .into_iter()
        .map(|order| (sizes(&order), order))
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
    let mut start = 0;
    let mut blocks: Vec<Block> = Vec::new();
    let mut last_bits_end = None;
    for (number, member) in of.members.iter().enumerate() {
        let offset = member.offset?;
        match member.role {
            Role::VirtualBase | Role::Variant => return None,
            Role::Base if !blocks.is_empty() => return None,
            // The members begin in the padding of a base that is no plain data, or behind it: the first member shows which.
            Role::Base => start = start.max(offset.checked_add(layouts.nonvirtual_end(member.ty))?),
            Role::VirtualTable => start = start.max(offset.checked_add(layouts.size(member.ty))?),
            Role::Field => {
                let alignment = member.explicit_alignment.unwrap_or_else(|| layouts.alignment(member.ty));
                if let Some(bits) = member.bits {
                    let end = bits.offset.checked_add(bits.size)?.div_ceil(8);
                    if let (Some(_), Some(block)) = (last_bits_end, blocks.last_mut()) {
                        block.members.push(number);
                        block.size = end.checked_sub(block.offset)?;
                        block.alignment = block.alignment.max(alignment);
                    } else {
                        let offset = bits.offset / 8;
                        blocks.push(Block { members: vec![number], offset, size: end - offset, alignment });
                    }
                    last_bits_end = Some(end);
                    continue;
                }
                let size = layouts.size(member.ty);
                // A flexible array member has to be the last one; an empty member may have any place.
                if size == 0 {
                    return None;
                }
                blocks.push(Block { members: vec![number], offset, size, alignment });
            }
        }
        last_bits_end = None;
    }
    let first = blocks.first()?.offset;
    // A base that keeps its padding: the first member is behind it.
    let bases_end = of
        .members
        .iter()
        .filter(|member| member.role == Role::Base)
        .map(|member| member.offset.unwrap_or(0).saturating_add(layouts.size(member.ty)));
    if let Some(end) = bases_end.max().filter(|end| *end == first && start > 0) {
        start = end;
    }
    if blocks.iter().any(|block| block.alignment > LARGEST_ALIGNMENT || block.size > LARGEST) {
        return None;
    }
    let movable = Movable { start, blocks, alignment: layouts.alignment_of_aggregate(of) };
    let now: Vec<usize> = (0..movable.blocks.len()).collect();
    let is_as_predicted = movable.places(&now).zip(&movable.blocks).all(|(at, block)| at == block.offset);
    (is_as_predicted && movable.size(&now) == of.size).then_some(movable)
}

impl Movable {
    /// Where the blocks begin in this order.
    fn places<'m>(&'m self, order: &'m [usize]) -> impl Iterator<Item = u64> + 'm {
        let mut cursor = self.start;
        order.iter().map(move |number| {
            let block = &self.blocks[*number];
            let at = cursor.next_multiple_of(block.alignment.max(1));
            cursor = at.saturating_add(block.size);
            at
        })
    }

    fn size(&self, order: &[usize]) -> u64 {
        let end = self
            .places(order)
            .zip(order)
            .map(|(at, number)| at.saturating_add(self.blocks[*number].size))
            .last();
        end.unwrap_or(self.start).next_multiple_of(self.alignment.max(1))
    }

    /// At each place the most aligned block that needs no padding there, else the one that needs the least.
    fn packed(&self) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.blocks.len()).collect();
        // The declaration's order stays among equal ones.
        left.sort_by_key(|number| {
            (Reverse(self.blocks[*number].alignment), Reverse(self.blocks[*number].size), *number)
        });
        let mut order = Vec::with_capacity(left.len());
        let mut cursor = self.start;
        while !left.is_empty() {
            let padding = |number: &usize| {
                let alignment = self.blocks[*number].alignment.max(1);
                cursor.next_multiple_of(alignment) - cursor
            };
            let fits = left.iter().position(|number| padding(number) == 0);
            let least = || (0..left.len()).min_by_key(|at| padding(&left[*at]));
            let Some(chosen) = fits.or_else(least) else { break };
            let number = left.remove(chosen);
            let block = &self.blocks[number];
            cursor = cursor.next_multiple_of(block.alignment.max(1)).saturating_add(block.size);
            order.push(number);
        }
        order
    }
}
