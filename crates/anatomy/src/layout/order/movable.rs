//! What of a structure can be moved, and where it is in an order.

use std::cmp::Reverse;

/// Members that are moved together: one, or neighbouring bit fields.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) members: Vec<usize>,
    pub(super) parts: Vec<Part>,
    /// The largest of its parts.
    pub(super) alignment: u64,
}

/// Where a member is and what place it needs, in bits.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) size: u64,
    /// How much of that the next members cannot have: one possibility or several, ascending. All of it unless the member may overlap
    /// others.
    pub(super) own: Vec<u64>,
    /// Whether nothing but its padding is behind the last that the next members cannot have, whatever its own parts keep.
    pub(super) has_padding: bool,
    /// That of its type.
    pub(super) alignment: u64,
    /// Of a bit field: the bits of the type that it is declared with.
    pub(super) storage: Option<u64>,
}

/// The blocks that are last in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Any,
    Bits,
    /// Those with [`Block::is_open`].
    Open,
}

/// What of an aggregate can be moved, in one ABI.
pub(super) struct Movable {
    pub(super) blocks: Vec<Block>,
    pub(super) alignment: u64,
}

impl Part {
    /// The most of it that the next members cannot have.
    pub(super) fn most(&self) -> u64 {
        self.own.last().copied().unwrap_or(self.size)
    }

    /// The least.
    pub(super) fn least(&self) -> u64 {
        self.own.first().copied().unwrap_or(self.size)
    }

    /// Where it is if the members before it end at this bit.
    pub(super) fn place(&self, cursor: u64) -> u64 {
        match self.storage {
            // A bit field is in a storage unit of its type (System V ABI, x86-64 supplement, 3.1.2 "Bit-Fields"), which begins where
            // the type is aligned: every 4 bytes, for 8 bytes of i386.
            Some(storage) if cursor % self.alignment + self.size <= storage => cursor,
            // Damaged files have members anywhere.
            _ => cursor.checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX),
        }
    }
}

impl Block {
    /// Where it ends if the members before it end at this bit.
    pub(super) fn end(&self, cursor: u64) -> u64 {
        self.parts.iter().fold(cursor, |cursor, part| part.place(cursor).saturating_add(part.most()))
    }

    /// The bits that it has without padding.
    pub(super) fn size(&self) -> u64 {
        self.parts.iter().map(Part::most).fold(0, u64::saturating_add)
    }

    /// Whether it is open how much of it the next members can have.
    pub(super) fn is_open(&self) -> bool {
        self.parts.iter().any(|part| part.own.len() > 1)
    }

    pub(super) fn has_bits(&self) -> bool {
        self.parts.iter().any(|part| part.storage.is_some())
    }
}

impl Movable {
    /// Whether members that begin behind so many bytes have the places and the structure the size that they have now.
    pub(super) fn predicts(&self, start: u64, size: u64) -> bool {
        let now: Vec<usize> = (0..self.blocks.len()).collect();
        let mut cursor = start.saturating_mul(8);
        let is_as_predicted = self.blocks.iter().flat_map(|block| &block.parts).all(|part| {
            // Behind a member that may overlap the next one, that one's place was observed.
            let is_there = part.place(cursor) == part.offset;
            cursor = part.offset.saturating_add(part.most());
            is_there
        });
        is_as_predicted && self.sizes(start, &now) == [size; 2]
    }

    /// The least and the most in an order, with members that begin behind so many bytes. The more bytes members have for themselves, the
    /// later is every place: all other sizes are between.
    pub(super) fn sizes(&self, start: u64, order: &[usize]) -> [u64; 2] {
        [Part::least, Part::most].map(|own| {
            let (mut cursor, mut end) = (start.saturating_mul(8), start.saturating_mul(8));
            for part in order.iter().flat_map(|number| &self.blocks[*number].parts) {
                let at = part.place(cursor);
                cursor = at.saturating_add(own(part));
                end = end.max(at.saturating_add(part.size));
            }
            end.div_ceil(8).checked_next_multiple_of(self.alignment.max(1)).unwrap_or(u64::MAX)
        })
    }

    /// At each place the most aligned block that needs no padding there, else the one that needs the least. Bit fields can be last
    /// among those, since most places suit them. So can blocks behind which a place is open, the most aligned at the end: there is no room
    /// for that in the padding of another one.
    pub(super) fn packed(&self, start: u64, last: Last) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.blocks.len()).collect();
        // The declaration's order stays among equal ones.
        left.sort_by_key(|number| {
            let block = &self.blocks[*number];
            let is_late = match last {
                Last::Any => false,
                Last::Bits => block.has_bits(),
                Last::Open => block.is_open(),
            };
            let alignment = block.alignment as i64 * if is_late && last == Last::Open { 1 } else { -1 };
            (is_late, alignment, Reverse(block.size()), *number)
        });
        let mut order = Vec::with_capacity(left.len());
        let mut cursor = start.saturating_mul(8);
        while !left.is_empty() {
            let padding = |number: &usize| {
                let block = &self.blocks[*number];
                block.end(cursor).saturating_sub(cursor).saturating_sub(block.size())
            };
            let is_kept_back = |number: &usize| last == Last::Open && self.blocks[*number].is_open();
            let fits = left.iter().position(|number| padding(number) == 0 && !is_kept_back(number));
            let least = || (0..left.len()).min_by_key(|at| padding(&left[*at]));
            let Some(chosen) = fits.or_else(least) else { break };
            let number = left.remove(chosen);
            cursor = self.blocks[number].end(cursor);
            order.push(number);
        }
        order
    }
}
