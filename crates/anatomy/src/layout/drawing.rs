//! One structure in both ABIs, piece by piece, side by side.

use super::cause::{pairs, signed, Differ, Pairs};
use super::comparison::TypeDifference;
use super::model::{Aggregate, Layouts, Member, Role, TypeId};
use super::segments::{Part, Piece, Segment};

/// Objects up to this many bytes are drawn byte by byte.
const MOST_BYTES: u64 = 4096;
/// The mark of padding.
pub const PADDING: char = '.';

/// A place of a piece in one ABI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// The bits of a bit field: from the beginning of the structure, and how many.
    pub bits: Option<(u64, u64)>,
}

/// A line of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The letter that stands for the member's bytes; [`PADDING`] for padding.
    pub mark: char,
    /// The member's name, or what the piece is.
    pub name: String,
    /// The member's type in the baseline, if both have it.
    pub type_name: String,
    /// Where it is in the baseline.
    pub baseline: Option<Place>,
    /// Where it is in the variant.
    pub variant: Option<Place>,
    /// Why its size differs, with the bytes; empty if it does not.
    pub causes: Vec<(String, i64)>,
}

/// A structure in both ABIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// Members and padding in the order of the baseline; what only the variant has stands behind what is before it there.
    pub rows: Vec<Row>,
    /// A mark for each byte of the baseline's object; empty if it is too large.
    pub baseline_bytes: String,
    /// The same of the variant's.
    pub variant_bytes: String,
}

/// Draws a type.
pub fn draw(baseline: &Layouts, variant: &Layouts, of: &TypeDifference) -> Option<Drawing> {
    let (a, b) = (baseline.aggregate(of.baseline)?, variant.aggregate(of.variant)?);
    let pairs = pairs(a, b);
    let mut picture = Picture {
        sides: [Side::new(baseline, a), Side::new(variant, b)],
        differ: Differ::new(baseline, variant),
        rows: Vec::new(),
        marks: Marks::default(),
    };
    for piece in picture.sides[0].pieces() {
        picture.push_of_baseline(piece, &pairs);
    }
    picture.insert_of_variant(&pairs);
    let [a_bytes, b_bytes] = picture.sides.each_ref().map(Side::bytes);
    Some(Drawing { rows: picture.rows, baseline_bytes: a_bytes, variant_bytes: b_bytes })
}

/// One ABI's structure, as it is drawn.
struct Side<'l> {
    layouts: &'l Layouts,
    of: &'l Aggregate,
    /// All bytes.
    segments: Vec<Segment>,
    /// A mark for each member.
    marks: Vec<char>,
}

impl<'l> Side<'l> {
    fn new(layouts: &'l Layouts, of: &'l Aggregate) -> Side<'l> {
        let segments = layouts.segments(of, of.size, Part::Whole, None);
        Side { layouts, of, segments, marks: vec![PADDING; of.members.len()] }
    }

    /// Members and padding in the order of their places; members without bytes of their own, as in unions, where they begin.
    fn pieces(&self) -> Vec<Segment> {
        let mut pieces: Vec<Segment> =
            self.segments.iter().copied().filter(|segment| member_of(*segment).is_none()).collect();
        for (number, member) in self.of.members.iter().enumerate() {
            let offset = member.offset.unwrap_or(self.of.size);
            pieces.push(Segment { piece: Piece::Member(number), offset, size: 0 });
        }
        pieces.sort_by_key(|piece| {
            let bit = member_of(*piece)
                .and_then(|number| self.of.members[number].bits)
                .map_or(0, |bits| bits.offset);
            (piece.offset, bit)
        });
        pieces
    }

    /// The bytes of a member. Of a base these are what the class has of it: its virtual bases are elsewhere, and its padding may hold
    /// other members.
    fn size(&self, number: usize) -> u64 {
        let member = &self.of.members[number];
        match member.role {
            Role::Base | Role::VirtualBase if member.offset.is_some() => {
                let own = self.segments.iter().find(|segment| segment.piece == Piece::Member(number));
                own.map_or(0, |segment| segment.size)
            }
            _ => self.layouts.size(member.ty),
        }
    }

    fn place(&self, number: usize) -> Place {
        let member = &self.of.members[number];
        Place {
            offset: member.offset.unwrap_or(0),
            size: self.size(number),
            bits: member.bits.map(|bits| (bits.offset, bits.size)),
        }
    }

    /// The padding that is this piece.
    fn padding(&self, piece: Option<Piece>) -> Option<Place> {
        let segment = self.segments.iter().find(|segment| Some(segment.piece) == piece)?;
        Some(Place { offset: segment.offset, size: segment.size, bits: None })
    }

    /// A mark for every byte.
    fn bytes(&self) -> String {
        if self.of.size > MOST_BYTES {
            return String::new();
        }
        let mut drawn = String::with_capacity(self.of.size as usize);
        for segment in &self.segments {
            let mark = member_of(*segment).map_or(PADDING, |number| self.marks[number]);
            drawn.extend(std::iter::repeat_n(mark, segment.size as usize));
        }
        drawn
    }
}

/// A picture that is being drawn.
struct Picture<'l> {
    /// The baseline's and the variant's.
    sides: [Side<'l>; 2],
    differ: Differ<'l>,
    rows: Vec<Row>,
    marks: Marks,
}

impl Picture<'_> {
    /// Adds a piece of the baseline, beside the variant's.
    fn push_of_baseline(&mut self, piece: Segment, pairs: &Pairs) {
        let [a, b] = &self.sides;
        let Some(number) = member_of(piece) else {
            let other = b.padding(partner_of_padding(piece.piece, pairs));
            let row = self.padding_row(piece.piece, a.padding(Some(piece.piece)), other, pairs);
            self.rows.push(row);
            return;
        };
        let mark = self.marks.next();
        let member = &a.of.members[number];
        let mut row = Row {
            mark,
            name: name(member),
            type_name: a.layouts.name(member.ty),
            baseline: Some(a.place(number)),
            variant: None,
            causes: vec![("only here".to_owned(), 0)],
        };
        if let Some(other) = pairs.variant[number] {
            row.variant = Some(b.place(other));
            row.causes =
                self.differ.of_members((member, a.size(number)), (&b.of.members[other], b.size(other)));
            self.sides[1].marks[other] = mark;
        }
        self.sides[0].marks[number] = mark;
        self.rows.push(row);
    }

    /// Inserts what only the variant has, each piece behind the one that is before it in the variant.
    fn insert_of_variant(&mut self, pairs: &Pairs) {
        let mut at = 0;
        for piece in self.sides[1].pieces() {
            let place = match member_of(piece) {
                Some(number) => self.sides[1].place(number),
                None => Place { offset: piece.offset, size: piece.size, bits: None },
            };
            let is_padding = member_of(piece).is_none();
            let is_it =
                |row: &Row| row.variant.as_ref() == Some(&place) && (row.mark == PADDING) == is_padding;
            let is_paired = member_of(piece).is_none_or(|number| pairs.baseline[number].is_some());
            if let Some(found) = self.rows.iter().position(is_it).filter(|_| is_paired) {
                at = found + 1;
                continue;
            }
            let row = match member_of(piece) {
                Some(number) => self.row_of_variant(number),
                None => self.padding_row(piece.piece, None, Some(place), pairs),
            };
            self.rows.insert(at, row);
            at += 1;
        }
    }

    /// A member that only the variant has.
    fn row_of_variant(&mut self, number: usize) -> Row {
        let mark = self.marks.next();
        let side = &mut self.sides[1];
        side.marks[number] = mark;
        let member = &side.of.members[number];
        Row {
            mark,
            name: name(member),
            type_name: side.layouts.name(member.ty),
            baseline: None,
            variant: Some(side.place(number)),
            causes: vec![("only here".to_owned(), 0)],
        }
    }

    /// Padding of both, or of one; `piece` is the baseline's if it has it.
    fn padding_row(
        &self,
        piece: Piece,
        baseline: Option<Place>,
        variant: Option<Place>,
        pairs: &Pairs,
    ) -> Row {
        let bytes = |place: &Option<Place>| place.as_ref().map_or(0, |place| signed(place.size));
        let difference = bytes(&variant) - bytes(&baseline);
        let [a, b] = self.sides.each_ref().map(|side| side.of);
        let cause = self.differ.of_padding([a, b], pairs, piece, baseline.is_some());
        Row {
            mark: PADDING,
            name: if piece == Piece::Tail { "(tail padding)" } else { "(hole)" }.to_owned(),
            type_name: String::new(),
            baseline,
            variant,
            causes: if difference == 0 { Vec::new() } else { vec![(cause.to_string(), difference)] },
        }
    }
}

/// The variant's padding in the place of the baseline's.
fn partner_of_padding(piece: Piece, pairs: &Pairs) -> Option<Piece> {
    match piece {
        Piece::Hole(number) => pairs.variant[number].map(Piece::Hole),
        other => Some(other),
    }
}

fn member_of(segment: Segment) -> Option<usize> {
    match segment.piece {
        Piece::Member(number) | Piece::BitFields(number) => Some(number),
        Piece::Hole(_) | Piece::Tail => None,
    }
}

fn name(member: &Member) -> String {
    let name = member.name.as_deref().unwrap_or("(anonymous)");
    match member.role {
        Role::Base => format!("(base) {name}"),
        Role::VirtualBase => format!("(virtual base) {name}"),
        Role::VirtualTable => "(virtual table)".to_owned(),
        Role::Field | Role::Variant => name.to_owned(),
    }
}

/// Letters for members.
#[derive(Default)]
struct Marks(usize);

impl Marks {
    fn next(&mut self) -> char {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        let mark = LETTERS[self.0 % LETTERS.len()];
        self.0 += 1;
        char::from(mark)
    }
}

/// The type with this name: the qualified one, the only one that ends with it, or the only one whose normalised name is the same.
pub fn find(layouts: &Layouts, name: &str) -> Result<TypeId, Vec<String>> {
    let [wanted, common] = [crate::names::type_name_key(name), crate::names::key(name)];
    let named = |is: &dyn Fn(&str) -> bool| -> Vec<TypeId> {
        let of = |id: &&TypeId| layouts.aggregate(**id).is_some_and(|aggregate| is(&aggregate.name));
        layouts.aggregates.iter().filter(of).copied().collect()
    };
    let end = format!("::{name}");
    let ways: [&dyn Fn(&str) -> bool; 4] = [
        &|own| own == name,
        &|own| crate::names::type_name_key(own) == wanted,
        &|own| own.ends_with(&end),
        &|own| crate::names::key(own) == common,
    ];
    for way in ways {
        match named(way)[..] {
            [] => {}
            [id] => return Ok(id),
            ref several => {
                let names =
                    several.iter().filter_map(|id| layouts.aggregate(*id)).map(|of| of.name.to_string());
                return Err(names.collect());
            }
        }
    }
    Err(Vec::new())
}
