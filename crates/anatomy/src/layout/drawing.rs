//! One structure in both ABIs, piece by piece, side by side.

use super::cause::{pairs, Differ};
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
    /// Members and padding in the order of the baseline, then what only the variant has.
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
    let mut differ = Differ::new(baseline, variant);
    let mut rows = Vec::new();
    let mut marks = Marks::default();
    let (a_pieces, b_pieces) = (pieces(baseline, a), pieces(variant, b));
    let mut b_marks = vec![PADDING; b.members.len()];
    let mut a_marks = vec![PADDING; a.members.len()];
    let mut shown = vec![false; b.members.len()];
    for piece in a_pieces.iter().copied() {
        let Some(number) = member_of(piece) else {
            rows.push(padding_row(piece, true));
            continue;
        };
        let partner = pairs.variant[number];
        let mark = marks.next();
        a_marks[number] = mark;
        let mut row = Row {
            mark,
            name: name(&a.members[number]),
            type_name: baseline.name(a.members[number].ty),
            baseline: Some(place(baseline, &a.members[number])),
            variant: None,
            causes: Vec::new(),
        };
        match partner {
            Some(other) => {
                b_marks[other] = mark;
                shown[other] = true;
                row.variant = Some(place(variant, &b.members[other]));
                row.causes = differ.of_members(&a.members[number], &b.members[other]);
            }
            None => row.causes = vec![("only here".to_owned(), 0)],
        }
        rows.push(row);
    }
    for piece in b_pieces.iter().copied() {
        match member_of(piece) {
            Some(number) if !shown[number] => {
                let mark = marks.next();
                b_marks[number] = mark;
                rows.push(Row {
                    mark,
                    name: name(&b.members[number]),
                    type_name: variant.name(b.members[number].ty),
                    baseline: None,
                    variant: Some(place(variant, &b.members[number])),
                    causes: vec![("only here".to_owned(), 0)],
                });
            }
            Some(_) => {}
            None => rows.push(padding_row(piece, false)),
        }
    }
    Some(Drawing {
        rows,
        baseline_bytes: bytes(baseline, a, &a_marks),
        variant_bytes: bytes(variant, b, &b_marks),
    })
}

/// Members and padding in the order of their places; members without bytes of their own, as in unions, where they begin.
fn pieces(layouts: &Layouts, of: &Aggregate) -> Vec<Segment> {
    let mut pieces: Vec<Segment> = layouts
        .segments(of, of.size, Part::Whole, None)
        .into_iter()
        .filter(|segment| member_of(*segment).is_none())
        .collect();
    for (number, member) in of.members.iter().enumerate() {
        let offset = member.offset.unwrap_or(of.size);
        pieces.push(Segment { piece: Piece::Member(number), offset, size: 0 });
    }
    pieces.sort_by_key(|piece| {
        let bit = member_of(*piece).and_then(|number| of.members[number].bits).map_or(0, |bits| bits.offset);
        (piece.offset, bit)
    });
    pieces
}

fn member_of(segment: Segment) -> Option<usize> {
    match segment.piece {
        Piece::Member(number) | Piece::BitFields(number) => Some(number),
        Piece::Hole(_) | Piece::Tail => None,
    }
}

fn padding_row(segment: Segment, is_baseline: bool) -> Row {
    let name = if segment.piece == Piece::Tail { "(tail padding)" } else { "(hole)" };
    let place = Place { offset: segment.offset, size: segment.size, bits: None };
    let (baseline, variant) = if is_baseline { (Some(place), None) } else { (None, Some(place)) };
    Row {
        mark: PADDING,
        name: name.to_owned(),
        type_name: String::new(),
        baseline,
        variant,
        causes: Vec::new(),
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

fn place(layouts: &Layouts, member: &Member) -> Place {
    Place {
        offset: member.offset.unwrap_or(0),
        size: layouts.size(member.ty),
        bits: member.bits.map(|bits| (bits.offset, bits.size)),
    }
}

/// A mark for every byte.
fn bytes(layouts: &Layouts, of: &Aggregate, marks: &[char]) -> String {
    if of.size > MOST_BYTES {
        return String::new();
    }
    let mut drawn = String::with_capacity(of.size as usize);
    for segment in layouts.segments(of, of.size, Part::Whole, None) {
        let mark = member_of(segment).map_or(PADDING, |number| marks[number]);
        drawn.extend(std::iter::repeat_n(mark, segment.size as usize));
    }
    drawn
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
    let wanted = crate::names::key(name);
    let named = |is: &dyn Fn(&str) -> bool| -> Vec<TypeId> {
        let of = |id: &&TypeId| layouts.aggregate(**id).is_some_and(|aggregate| is(&aggregate.name));
        layouts.aggregates.iter().filter(of).copied().collect()
    };
    let end = format!("::{name}");
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|own| own == name, &|own| crate::names::key(own) == wanted, &|own| own.ends_with(&end)];
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
