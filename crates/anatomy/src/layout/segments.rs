//! An object cut into pieces that do not overlap: every byte belongs to one member, one hole, or the padding at the end.

use super::model::{Aggregate, Kind, Layouts, Role, TypeId};

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Piece {
    /// The member with this number.
    Member(usize),
    /// Bit fields that share bytes with each other; the number is the first one's.
    BitFields(usize),
    /// Bytes that no member has, before the member with this number.
    Hole(usize),
    /// Bytes behind the last member.
    Tail,
}

/// A piece with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub piece: Piece,
    /// Bytes from the beginning of the object.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// What of an object is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// A base's own part: its virtual bases are elsewhere in the derived class.
    Base,
}

impl Layouts {
    /// The first `extent` bytes of an object, cut into pieces, in the order of their places. Their sizes' sum is `extent`.
    ///
    /// A union is its largest member, or the one with the given number; members that overlap others have what is left.
    pub fn segments(
        &self,
        aggregate: &Aggregate,
        extent: u64,
        part: Part,
        deciding: Option<usize>,
    ) -> Vec<Segment> {
        let mut places = self.places_of(aggregate, part, deciding);
        // The larger first: a variant's smaller fields are inside of it.
        places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end), place.number));
        let starts: Vec<u64> = places.iter().map(|place| place.start).collect();
        let mut segments: Vec<Segment> = Vec::with_capacity(places.len() + 2);
        let mut cursor = 0_u64;
        for place in &places {
            let mut end = place.end;
            if place.gives_way {
                // A base's padding may hold the members behind it.
                let next = starts.partition_point(|start| *start <= place.start);
                end = starts.get(next).map_or(end, |next| end.min(*next));
            }
            let (start, end) = (place.start.clamp(cursor, extent.max(cursor)), end.min(extent));
            if end <= start {
                continue;
            }
            if start > cursor {
                segments.push(Segment {
                    piece: Piece::Hole(place.number),
                    offset: cursor,
                    size: start - cursor,
                });
            }
            let size = end - start;
            match (segments.last_mut(), place.is_bits) {
                (Some(last), true) if matches!(last.piece, Piece::BitFields(_)) && start == cursor => {
                    last.size += size
                }
                (_, true) => {
                    segments.push(Segment { piece: Piece::BitFields(place.number), offset: start, size })
                }
                (_, false) => {
                    segments.push(Segment { piece: Piece::Member(place.number), offset: start, size })
                }
            }
            cursor = end;
        }
        if cursor < extent {
            segments.push(Segment { piece: Piece::Tail, offset: cursor, size: extent - cursor });
        }
        segments
    }

    fn places_of(&self, aggregate: &Aggregate, part: Part, deciding: Option<usize>) -> Vec<Place> {
        let deciding = match aggregate.kind {
            Kind::Union => deciding.or_else(|| self.largest_member(aggregate)),
            _ => None,
        };
        let mut places = Vec::with_capacity(aggregate.members.len());
        for (number, member) in aggregate.members.iter().enumerate() {
            if deciding.is_some_and(|deciding| deciding != number)
                || aggregate.kind == Kind::Union && deciding.is_none()
            {
                continue;
            }
            let Some(offset) = member.offset else { continue };
            if member.role == Role::VirtualBase && part == Part::Base {
                continue;
            }
            let place = match member.bits {
                Some(bits) => Place {
                    number,
                    start: bits.offset / 8,
                    end: bits.offset.saturating_add(bits.size).div_ceil(8),
                    gives_way: false,
                    is_bits: true,
                },
                None => {
                    let is_base = matches!(member.role, Role::Base | Role::VirtualBase);
                    let size = if is_base { self.base_size(member.ty) } else { self.size(member.ty) };
                    let end = offset.saturating_add(size);
                    Place { number, start: offset, end, gives_way: is_base, is_bits: false }
                }
            };
            places.push(place);
        }
        places
    }

    /// The bytes of a class as a base: an empty one has none, and one with virtual bases has only its own part.
    fn base_size(&self, id: TypeId) -> u64 {
        let own = self.nonvirtual_end(id);
        let id = self.stripped(id);
        let has_virtual_bases = self
            .aggregate(id)
            .is_some_and(|aggregate| aggregate.members.iter().any(|member| member.role == Role::VirtualBase));
        match own {
            0 => 0,
            own if has_virtual_bases => own,
            _ => self.size(id),
        }
    }

    /// The member that a union has its size from.
    pub fn largest_member(&self, aggregate: &Aggregate) -> Option<usize> {
        let sizes = aggregate.members.iter().map(|member| self.size(member.ty));
        // Of equal ones the first.
        sizes
            .enumerate()
            .max_by_key(|(number, size)| (*size, std::cmp::Reverse(*number)))
            .map(|(number, _)| number)
    }
}

struct Place {
    number: usize,
    start: u64,
    end: u64,
    gives_way: bool,
    is_bits: bool,
}
