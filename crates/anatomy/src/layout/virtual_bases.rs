//! Where virtual bases are. Debug information says only in which entry of the virtual table a program finds that out, so the
//! places are computed as the compiler does (Itanium C++ ABI, 2.4) and kept if the computed size is the class's own.

use rustc_hash::{FxHashMap, FxHashSet};

use super::model::{Layouts, Member, Role, Type, TypeId};

/// The most virtual bases of one class: more are no program's.
const MOST_BASES: usize = 64;

/// Places the virtual bases of all classes, and adds those that a class has through its bases only.
pub(super) fn place(layouts: &mut Layouts) {
    layouts.derive();
    let mut bases = Bases { layouts, known: FxHashMap::default(), computing: FxHashSet::default() };
    let mut changes = Vec::new();
    for id in bases.layouts.aggregates.clone() {
        let virtual_bases = bases.of(id);
        if !virtual_bases.is_empty() {
            changes.push((id, virtual_bases.clone(), bases.layouts.virtual_base_places(id, &virtual_bases)));
        }
    }
    for (id, virtual_bases, places) in changes {
        let named: Vec<(TypeId, Option<Box<str>>)> =
            virtual_bases.iter().map(|base| (*base, Some(layouts.name(*base).into()))).collect();
        let Type::Aggregate(aggregate) = &mut layouts.types[id.0 as usize] else { continue };
        for (number, (ty, name)) in named.into_iter().enumerate() {
            let offset = places.as_ref().map(|places| places[number]);
            let is_own = |member: &&mut Member| member.role == Role::VirtualBase && member.ty == ty;
            match aggregate.members.iter_mut().find(is_own) {
                Some(member) => member.offset = offset,
                None => aggregate.members.push(Member {
                    name,
                    role: Role::VirtualBase,
                    offset,
                    bits: None,
                    explicit_alignment: None,
                    ty,
                }),
            }
        }
    }
}

struct Bases<'l> {
    layouts: &'l Layouts,
    known: FxHashMap<TypeId, Vec<TypeId>>,
    computing: FxHashSet<TypeId>,
}

impl Bases<'_> {
    /// The virtual bases of a class, in the order in which they are placed.
    fn of(&mut self, id: TypeId) -> Vec<TypeId> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let mut list = Vec::new();
        if self.computing.insert(id) {
            let layouts = self.layouts;
            for member in layouts.aggregate(id).into_iter().flat_map(|aggregate| &aggregate.members) {
                if !matches!(member.role, Role::Base | Role::VirtualBase) {
                    continue;
                }
                let base = layouts.stripped(member.ty);
                if member.role == Role::VirtualBase && !list.contains(&base) {
                    list.push(base);
                }
                for below in self.of(base) {
                    if !list.contains(&below) && list.len() < MOST_BASES {
                        list.push(below);
                    }
                }
            }
        }
        self.known.insert(id, list.clone());
        list
    }
}

impl Layouts {
    /// Plain old data keeps its padding as a base.
    fn may_be_plain(&self, id: TypeId) -> bool {
        self.aggregate(id).is_some_and(|aggregate| {
            aggregate.members.iter().all(|member| matches!(member.role, Role::Field | Role::Variant))
        })
    }

    /// None if the places are not certain.
    fn virtual_base_places(&self, id: TypeId, bases: &[TypeId]) -> Option<Vec<u64>> {
        if bases.len() >= MOST_BASES {
            return None;
        }
        let dense = self.places(id, bases, false);
        let padded = self.places(id, bases, true);
        match (dense, padded) {
            (Some(one), Some(other)) => (one == other).then_some(one),
            (one, other) => one.or(other),
        }
    }

    fn places(&self, id: TypeId, bases: &[TypeId], is_padded: bool) -> Option<Vec<u64>> {
        let aggregate = self.aggregate(id)?;
        let has_own_table = aggregate.members.iter().any(|member| {
            member.role == Role::VirtualTable || member.role == Role::Base && self.is_dynamic(member.ty)
        });
        let mut end = self.nonvirtual_end(id);
        let mut alignment = self.alignment(id).max(u64::from(self.address_size));
        let mut needs_primary = !has_own_table;
        let mut places = Vec::with_capacity(bases.len());
        for base in bases {
            let own = self.alignment(*base);
            alignment = alignment.max(own);
            let dense = self.nonvirtual_end(*base);
            let is_nearly_empty = dense <= u64::from(self.address_size) && self.is_dynamic(*base);
            if needs_primary && is_nearly_empty {
                needs_primary = false;
                places.push(0);
                end = end.max(dense);
                continue;
            }
            if dense == 0 {
                // Empty bases share their place with others unless those are of the same type.
                places.push(0);
                continue;
            }
            let size = if is_padded && self.may_be_plain(*base) { self.size(*base) } else { dense };
            let at = end.checked_next_multiple_of(own)?;
            places.push(at);
            end = at.checked_add(size)?;
        }
        if needs_primary {
            return None;
        }
        (end.checked_next_multiple_of(alignment)? == aggregate.size).then_some(places)
    }
}
