//! The difference of the blocks of one type at one site, divided into parts that sum to it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::found::Found;
use super::model::{signed, Amount, Cause, Part};
use super::program_types::ProgramTypes;
use super::summary::{add_parts, unexplained};
use crate::certainty::Certainty;
use crate::layout::{self, Differ, TypeId};
use crate::names;

/// Divides differences of typed blocks. Types of two files are compared once.
#[derive(Default)]
pub struct Division {
    known: FxHashMap<(usize, TypeId, usize, TypeId), Rc<[Part]>>,
}

/// What both sides have of a type, and what is known of it in each.
pub struct Sides<'s> {
    /// In the baseline.
    pub a: &'s Amount,
    /// In the variant.
    pub b: &'s Amount,
    /// The type in the baseline.
    pub found_a: Option<&'s Found>,
    /// The type in the variant.
    pub found_b: Option<&'s Found>,
    /// The files whose types the baseline's blocks may have.
    pub files_a: &'s [Rc<ProgramTypes>],
    /// How sure the type is.
    pub certainty: Certainty,
}

impl Division {
    /// The parts of the variant's bytes at its peak less those of the baseline at its own.
    pub fn parts(&mut self, sides: &Sides) -> Vec<Part> {
        let (a, b) = (&sides.a.values, &sides.b.values);
        let difference = signed(b.peak_bytes).saturating_sub(signed(a.peak_bytes));
        if difference != 0 && (a.peak_count == 0 || b.peak_count == 0) {
            return vec![Part { cause: Cause::OneSide, bytes: difference, certainty: sides.certainty }];
        }
        let library =
            sides.found_a.zip(sides.found_b).and_then(|(a, b)| a.library.filter(|_| a.library == b.library));
        if let Some(name) = library.filter(|_| difference != 0) {
            return vec![Part { cause: Cause::Library(name), bytes: difference, certainty: sides.certainty }];
        }
        let mut parts = match sides.found_a.zip(sides.found_b) {
            Some((of_a, of_b)) => self.of_objects(sides, of_a, of_b),
            None => Vec::new(),
        };
        // Parts of a site may cancel each other: the type's other sites have the same objects in other blocks.
        if parts.is_empty() && difference != 0 {
            parts.extend(of_blocks(sides));
        }
        let known: i64 = parts.iter().map(|part| part.bytes).fold(0, i64::saturating_add);
        let rest = difference.saturating_sub(known);
        if rest != 0 {
            parts.push(unexplained(rest));
        }
        parts.retain(|part| part.bytes != 0);
        parts.sort_by_key(|part| (std::cmp::Reverse(part.bytes.unsigned_abs()), part.cause.clone()));
        parts
    }

    /// The layout's causes for the baseline's objects; more or fewer objects are of the variant's size.
    fn of_objects(&mut self, sides: &Sides, of_a: &Found, of_b: &Found) -> Vec<Part> {
        let (Some(size_a), Some(size_b)) = (of_a.size, of_b.size) else { return Vec::new() };
        let (Some(n_a), Some(n_b)) = (sides.a.objects, sides.b.objects) else { return Vec::new() };
        let certainty = sides.certainty;
        let mut parts = Vec::new();
        for part in self.of_one(of_a, size_a, of_b, size_b, sides.files_a).iter() {
            let bytes = part.bytes.saturating_mul(signed(n_a));
            add_parts(&mut parts, &[Part { cause: part.cause.clone(), bytes, certainty }]);
        }
        let more = signed(n_b).saturating_sub(signed(n_a));
        let bytes = more.saturating_mul(signed(size_b));
        parts.push(Part { cause: Cause::Objects, bytes, certainty });
        let cookies =
            |found: &Found, amount: &Amount| signed(found.cookie.saturating_mul(amount.values.peak_count));
        let bytes = cookies(of_b, sides.b).saturating_sub(cookies(of_a, sides.a));
        parts.push(Part { cause: Cause::ArrayLength, bytes, certainty });
        if let (Some(tail_a), Some(tail_b)) = (&of_a.tail, &of_b.tail) {
            add_parts(&mut parts, &self.of_elements(sides, [of_a, of_b], [&tail_a.element, &tail_b.element]));
        }
        parts
    }

    /// The parts of what blocks have behind their objects.
    fn of_elements(&mut self, sides: &Sides, objects: [&Found; 2], elements: [&Found; 2]) -> Vec<Part> {
        let [of_a, of_b] = objects;
        let numbers = of_a.elements_behind(&sides.a.values).zip(of_b.elements_behind(&sides.b.values));
        let (Some((n_a, n_b)), Some(size_a), Some(size_b)) = (numbers, elements[0].size, elements[1].size)
        else {
            return Vec::new();
        };
        let certainty = sides.certainty;
        let each = self.of_one(elements[0], size_a, elements[1], size_b, sides.files_a);
        let mut parts: Vec<Part> = each
            .iter()
            .map(|part| Part {
                cause: part.cause.clone(),
                bytes: part.bytes.saturating_mul(signed(n_a)),
                certainty,
            })
            .collect();
        let more = signed(n_b).saturating_sub(signed(n_a));
        parts.push(Part { cause: Cause::Objects, bytes: more.saturating_mul(signed(size_b)), certainty });
        parts
    }

    /// The parts of one object's difference.
    fn of_one(
        &mut self,
        a: &Found,
        size_a: u64,
        b: &Found,
        size_b: u64,
        files_a: &[Rc<ProgramTypes>],
    ) -> Rc<[Part]> {
        let part = |cause, nested, bytes| Part {
            cause: Cause::Layout { cause, nested },
            bytes,
            certainty: Certainty::High,
        };
        if let (Some((file_a, id_a)), Some((file_b, id_b))) = (&a.id, &b.id) {
            let address = |file: &Rc<ProgramTypes>| Rc::as_ptr(file) as usize;
            let key = (address(file_a), *id_a, address(file_b), *id_b);
            let compare = || {
                let shares = Differ::new(&file_a.layouts, &file_b.layouts).shares(*id_a, *id_b);
                shares.into_iter().map(|share| part(share.cause, share.nested, share.bytes)).collect()
            };
            return self.known.entry(key).or_insert_with(compare).clone();
        }
        let bytes = signed(size_b).saturating_sub(signed(size_a));
        let cause = match names::type_name_key(&a.name) {
            _ if bytes == 0 => return Rc::from([]),
            _ if a.id.is_some() != b.id.is_some() => layout::Cause::Unknown,
            _ if a.has_size_of_blocks() || b.has_size_of_blocks() => layout::Cause::Unknown,
            name if name.ends_with(['*', '&']) || name.contains("*)(") => layout::Cause::Pointers,
            name if files_a.iter().any(|file| file.is_pointer(&name)) => layout::Cause::Pointers,
            name if name == "long" || name == "unsigned long" => layout::Cause::Longs,
            name => {
                let nearest = files_a.iter().find_map(|file| file.number_name(&name));
                layout::Cause::Type(nearest.unwrap_or(name))
            }
        };
        Rc::from([part(cause, None, bytes)])
    }
}

/// More or fewer blocks, which all have the same size in both.
fn of_blocks(sides: &Sides) -> Option<Part> {
    let (a, b) = (&sides.a.values, &sides.b.values);
    let each = a.peak_bytes / a.peak_count;
    let is_one_size = each.checked_mul(a.peak_count) == Some(a.peak_bytes)
        && each.checked_mul(b.peak_count) == Some(b.peak_bytes);
    let more = signed(b.peak_count).saturating_sub(signed(a.peak_count));
    is_one_size.then(|| Part {
        cause: Cause::Blocks,
        bytes: more.saturating_mul(signed(each)),
        certainty: Certainty::Medium,
    })
}
