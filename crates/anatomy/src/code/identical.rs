//! Functions with the same code: the same bytes, except that addresses relative to the code are compared by what they mean.
//!
//! Functions that call each other are compared as the linkers' identical code folding does (Tallam et al., "Safe ICF", 2010):
//! all with the same bytes begin in one class, and a class is divided as long as its functions refer to different classes.

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use rustc_hash::FxHashMap;

use crate::code::architecture::{architecture, Architecture};
use crate::code::stretch::{stretches, Stretch};
use crate::elf::named::Named;
use crate::elf::Elf;

/// Shorter functions are not worth a name. They are compared all the same: those that call them are twins only if they are.
const SHORTEST: usize = 16;
/// Classes are final long before; each round makes more of them or is the last.
const MOST_ROUNDS: usize = 64;

/// A function with a twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin<'a> {
    /// Its mangled name.
    pub name: &'a [u8],
    /// Its bytes.
    pub size: u64,
}

/// Groups of functions with the same code, of x86-64, x32 and i386 alone: elsewhere nothing is found.
pub fn groups<'a>(elf: &Elf<'a>, named: &[Named<'a>]) -> Vec<Vec<Twin<'a>>> {
    let Ok((Architecture::X86 { bits }, _)) = architecture(elf) else { return Vec::new() };
    let (all, _) = stretches(elf, named, false);
    let by_address: FxHashMap<u64, usize> =
        all.iter().enumerate().map(|(number, one)| (one.address, number)).collect();
    let mut numbers: FxHashMap<(Vec<u8>, Vec<u64>), usize> = FxHashMap::default();
    let mut classes = Vec::with_capacity(all.len());
    let mut references: Vec<Vec<usize>> = Vec::with_capacity(all.len());
    for one in &all {
        let (masked, addresses) = masked(one, bits);
        let functions = addresses.iter().filter_map(|address| by_address.get(address).copied()).collect();
        // Where a reference is to another function, its class decides; all else must be the same address.
        let others = addresses.iter().map(|at| if by_address.contains_key(at) { 0 } else { *at }).collect();
        references.push(functions);
        let next = numbers.len();
        classes.push(*numbers.entry((masked, others)).or_insert(next));
    }
    let mut count = numbers.len();
    for _ in 0..MOST_ROUNDS {
        let mut numbers: FxHashMap<(usize, Vec<usize>), usize> = FxHashMap::default();
        let refined: Vec<usize> = (0..all.len())
            .map(|at| {
                let of = references[at].iter().map(|function| classes[*function]).collect();
                let next = numbers.len();
                *numbers.entry((classes[at], of)).or_insert(next)
            })
            .collect();
        classes = refined;
        if numbers.len() == count {
            break;
        }
        count = numbers.len();
    }
    let mut groups: Vec<Vec<Twin>> = vec![Vec::new(); count];
    for (one, class) in all.iter().zip(&classes).filter(|(one, _)| one.bytes.len() >= SHORTEST) {
        groups[*class].push(Twin { name: one.name, size: one.bytes.len() as u64 });
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The bytes with zeros for what is relative to the code, and the addresses that it means, in their order.
fn masked(stretch: &Stretch, bits: u32) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = stretch.bytes.to_vec();
    let mut addresses = Vec::new();
    let mut decoder = Decoder::with_ip(bits, stretch.bytes, stretch.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut is_behind_call = false;
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut instruction);
        let places = decoder.get_constant_offsets(&instruction);
        let mut mask = |offset: usize, size: usize, address: u64| {
            if let Some(range) = bytes.get_mut(at + offset..at + offset + size) {
                range.fill(0);
            }
            addresses.push(address);
        };
        let is_branch = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        if is_branch && places.has_immediate() {
            let target = instruction.near_branch_target();
            if target.wrapping_sub(stretch.address) >= stretch.bytes.len() as u64 {
                mask(places.immediate_offset(), places.immediate_size(), target);
            }
        } else if instruction.is_ip_rel_memory_operand() && places.has_displacement() {
            let address = instruction.ip_rel_memory_address();
            mask(places.displacement_offset(), places.displacement_size(), address);
        } else if is_behind_call && instruction.op1_kind() == OpKind::Immediate32 {
            // i386: `call __x86.get_pc_thunk.bx; add $_GLOBAL_OFFSET_TABLE_, %ebx`.
            let address = instruction.ip().wrapping_add(instruction.immediate(1)) & 0xffff_ffff;
            mask(places.immediate_offset(), places.immediate_size(), address);
        }
        is_behind_call = bits == 32 && instruction.is_call_near();
    }
    (bytes, addresses)
}
