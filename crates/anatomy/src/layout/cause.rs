//! Why a type has another size in another ABI: the difference in parts that sum to it.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::model::{Aggregate, Kind, Layouts, Member, Role, Type, TypeId};
use super::segments::{Part, Piece, Segment};

/// The reason of a part of a difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Pointers, references, pointers to members and to virtual tables.
    Pointers,
    /// Numbers that are declared as `long`.
    Longs,
    /// Another type whose size changes, by the name that the source gives it: `size_t`, `time_t`, `long double`.
    Type(String),
    /// The bytes of bit fields.
    BitFields,
    /// Padding that a member needs because its type, of the same size, is aligned in another way.
    Alignment(String),
    /// Bytes between members.
    Holes,
    /// Bytes behind the last member.
    TailPadding,
    /// A union has its size from another member.
    UnionMember,
    /// Members that only one of the two has.
    Members,
    /// Arrays of other lengths.
    ArrayLength,
    /// Virtual bases whose places are not known.
    VirtualBases,
    /// The debug information does not say.
    Unknown,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Cause::Pointers => "pointers",
            Cause::Longs => "long",
            Cause::Type(name) => name,
            Cause::BitFields => "bit fields",
            Cause::Alignment(name) => return write!(to, "alignment of {name}"),
            Cause::Holes => "holes",
            Cause::TailPadding => "tail padding",
            Cause::UnionMember => "another member of a union",
            Cause::Members => "members that only one of the two has",
            Cause::ArrayLength => "array lengths",
            Cause::VirtualBases => "virtual bases",
            Cause::Unknown => "not known",
        })
    }
}

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// Why.
    pub cause: Cause,
    /// The type of the member that it is inside of; none if the aggregate has it itself.
    pub nested: Option<String>,
    /// Bytes of the variant less those of the baseline.
    pub bytes: i64,
}

/// Bytes by cause.
type Causes = Rc<Vec<(Cause, i64)>>;
/// Two types with the bytes of each that are looked at.
type Pair = (TypeId, u64, TypeId, u64, Part);

/// Two programs whose types are compared.
pub struct Differ<'l> {
    baseline: &'l Layouts,
    variant: &'l Layouts,
    known: FxHashMap<Pair, Causes>,
    /// Aggregates by name, of each; made when the first buffer is looked at.
    names: Option<[FxHashMap<String, TypeId>; 2]>,
}

/// Arrays of bytes in which libstdc++ makes an object later (its ext/aligned_buffer.h): list and tree nodes, `std::make_shared`.
const BUFFERS: [&str; 2] = ["__gnu_cxx::__aligned_membuf<", "__gnu_cxx::__aligned_buffer<"];

/// Collects the parts of one aggregate.
#[derive(Default)]
struct Sums(BTreeMap<(Cause, Option<String>), i64>);

impl Sums {
    fn add(&mut self, cause: Cause, nested: Option<&str>, bytes: i64) {
        if bytes != 0 {
            let sum = self.0.entry((cause, nested.map(str::to_owned))).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
}

/// The same member in both.
struct Matched<'m> {
    baseline: &'m Member,
    variant: &'m Member,
}

impl<'l> Differ<'l> {
    /// Compares types of these two.
    pub fn new(baseline: &'l Layouts, variant: &'l Layouts) -> Self {
        Differ { baseline, variant, known: FxHashMap::default(), names: None }
    }

    /// Why an aggregate has another size in the variant. The parts sum to the difference of the sizes.
    pub fn shares(&mut self, baseline: TypeId, variant: TypeId) -> Vec<Share> {
        let (one, other) = (self.baseline.stripped(baseline), self.variant.stripped(variant));
        let (Some(a), Some(b)) = (self.baseline.aggregate(one), self.variant.aggregate(other)) else {
            return Vec::new();
        };
        let mut sums = Sums::default();
        let (of_a, of_b) = (self.baseline.get(one), self.variant.get(other));
        match self.buffers(of_a, a.size, of_b, b.size) {
            Some(causes) => causes.iter().for_each(|(cause, bytes)| sums.add(cause.clone(), None, *bytes)),
            None => self.aggregates((a, a.size), (b, b.size), Part::Whole, &mut sums),
        }
        let mut shares: Vec<Share> = sums
            .0
            .into_iter()
            .filter(|(_, bytes)| *bytes != 0)
            .map(|((cause, nested), bytes)| Share { cause, nested, bytes })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.bytes.unsigned_abs()));
        shares
    }

    /// Why a member has more or fewer bytes in the variant, of which each has so many.
    pub(super) fn of_members(&mut self, a: (&'l Member, u64), b: (&'l Member, u64)) -> Vec<(String, i64)> {
        let ((a, a_bytes), (b, b_bytes)) = (a, b);
        if a.bits.is_some() {
            return Vec::new();
        }
        self.types((a.ty, a_bytes, b.ty, b_bytes, part_of(a)))
            .iter()
            .filter(|(_, bytes)| *bytes != 0)
            .map(|(cause, bytes)| (cause.to_string(), *bytes))
            .collect()
    }

    /// Why padding is of another size in the variant. The piece is the baseline's, or else the variant's.
    pub(super) fn of_padding(
        &self,
        [a, b]: [&Aggregate; 2],
        pairs: &Pairs,
        piece: Piece,
        is_of_baseline: bool,
    ) -> Cause {
        let padding = Padding { baseline: self.baseline, variant: self.variant, a, b, pairs };
        match piece {
            Piece::Hole(number) if !is_of_baseline => padding.cause_of_variant(number),
            piece => padding.cause(piece),
        }
    }

    /// Adds up the differences of all pieces of two aggregates.
    fn aggregates(&mut self, a: (&'l Aggregate, u64), b: (&'l Aggregate, u64), part: Part, sums: &mut Sums) {
        let ((a, a_extent), (b, b_extent)) = (a, b);
        let pairs = pairs(a, b);
        let (deciding_a, deciding_b) = self.deciding(a, b, &pairs);
        let a_segments = self.baseline.segments(a, a_extent, part, deciding_a);
        let b_segments = self.variant.segments(b, b_extent, part, deciding_b);
        let padding = Padding { baseline: self.baseline, variant: self.variant, a, b, pairs: &pairs };
        let by_piece = b_segments.iter().enumerate().map(|(index, segment)| (segment.piece, index)).collect();
        let mut done = vec![false; b_segments.len()];
        for segment in &a_segments {
            let partner = partner(segment, &by_piece, &pairs);
            if let Some(partner) = partner {
                done[partner] = true;
            }
            let partner = partner.map(|index| b_segments[index]);
            let bytes = |of: Option<Segment>| of.map_or(0, |segment| signed(segment.size));
            match segment.piece {
                Piece::Member(number) => match (partner, pairs.variant[number]) {
                    (Some(partner), Some(other)) => {
                        let matched = Matched { baseline: &a.members[number], variant: &b.members[other] };
                        self.members(&matched, segment.size, partner.size, sums);
                    }
                    (_, found) => {
                        let cause = if found.is_some() { Cause::Holes } else { Cause::Members };
                        sums.add(cause, None, -signed(segment.size));
                    }
                },
                Piece::BitFields(_) => {
                    sums.add(Cause::BitFields, None, bytes(partner) - signed(segment.size))
                }
                Piece::Hole(_) | Piece::Tail => {
                    sums.add(padding.cause(segment.piece), None, bytes(partner) - signed(segment.size));
                }
            }
        }
        for (segment, _) in b_segments.iter().zip(done).filter(|(_, done)| !done) {
            let cause = match segment.piece {
                Piece::Member(_) if a.kind == Kind::Union => Cause::UnionMember,
                Piece::Member(number) if pairs.baseline[number].is_some() => Cause::Holes,
                Piece::Member(_) => Cause::Members,
                Piece::BitFields(_) => Cause::BitFields,
                Piece::Hole(number) => padding.cause_of_variant(number),
                Piece::Tail if b.kind == Kind::Union && !self.is_largest(b, deciding_b) => Cause::UnionMember,
                Piece::Tail => padding.cause(Piece::Tail),
            };
            sums.add(cause, None, signed(segment.size));
        }
    }

    /// Whether no member of the variant's union is larger than that.
    fn is_largest(&self, union: &Aggregate, member: Option<usize>) -> bool {
        let size = |one: Option<usize>| one.map(|one| self.variant.size(union.members[one].ty));
        size(member) == size(self.variant.largest_member(union))
    }

    /// A union is its largest member in the baseline, and the same one in the variant; of equal ones that which is the largest there.
    fn deciding(&self, a: &Aggregate, b: &Aggregate, pairs: &Pairs) -> (Option<usize>, Option<usize>) {
        if a.kind != Kind::Union || b.kind != Kind::Union {
            return (None, None);
        }
        let size = |one: usize| self.baseline.size(a.members[one].ty);
        let in_variant = |one: usize| pairs.variant[one].map(|other| self.variant.size(b.members[other].ty));
        let largest = self.baseline.largest_member(a).and_then(|first| {
            let as_large = (0..a.members.len()).filter(|one| size(*one) == size(first));
            as_large.max_by_key(|one| (in_variant(*one), std::cmp::Reverse(*one)))
        });
        let same = largest.and_then(|one| pairs.variant[one]);
        (largest, same.or_else(|| self.variant.largest_member(b)))
    }

    fn members(&mut self, matched: &Matched<'l>, a_bytes: u64, b_bytes: u64, sums: &mut Sums) {
        let part = part_of(matched.baseline);
        let (a, b) = (matched.baseline.ty, matched.variant.ty);
        let nested = self.nested_name(a);
        for (cause, bytes) in self.types((a, a_bytes, b, b_bytes, part)).iter() {
            sums.add(cause.clone(), nested.as_deref(), *bytes);
        }
    }

    /// The name of the aggregate that a member or an array's element is.
    fn nested_name(&self, id: TypeId) -> Option<String> {
        let mut id = self.baseline.stripped(id);
        while let Type::Array { element, .. } = self.baseline.get(id) {
            id = self.baseline.stripped(*element);
        }
        let name = &self.baseline.aggregate(id)?.name;
        Some(object_of_buffer(name).unwrap_or_else(|| name.to_string()))
    }

    /// Why one type's bytes are not as many as another's.
    fn types(&mut self, pair: Pair) -> Causes {
        let (a, a_bytes, b, b_bytes, part) = pair;
        let key = (self.baseline.stripped(a), a_bytes, self.variant.stripped(b), b_bytes, part);
        let (one, other) = (self.baseline.get(key.0), self.variant.get(key.2));
        let is_leaf = !matches!(one, Type::Aggregate(_) | Type::Array { .. });
        if is_leaf {
            return Rc::new(self.leaf(a, b, signed(b_bytes) - signed(a_bytes)));
        }
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if let Some(causes) = self.buffers(one, a_bytes, other, b_bytes) {
            self.known.insert(key, causes.clone());
            return causes;
        }
        let causes = match (one, other) {
            (Type::Aggregate(one), Type::Aggregate(other)) => {
                let mut sums = Sums::default();
                self.aggregates((one, a_bytes), (other, b_bytes), part, &mut sums);
                let mut flat: BTreeMap<Cause, i64> = BTreeMap::new();
                for ((cause, _), bytes) in sums.0 {
                    let sum = flat.entry(cause).or_default();
                    *sum = sum.saturating_add(bytes);
                }
                flat.into_iter().collect()
            }
            (
                Type::Array { element: from, count: Some(from_count), .. },
                Type::Array { element: to, count: Some(to_count), .. },
            ) => self.arrays((*from, *from_count, a_bytes), (*to, *to_count, b_bytes)),
            _ => self.leaf(a, b, signed(b_bytes) - signed(a_bytes)),
        };
        let causes = Rc::new(causes);
        self.known.insert(key, causes.clone());
        causes
    }

    /// The causes of the object that a buffer of bytes is for, where it fills the buffer in both.
    fn buffers(&mut self, a: &Type, a_bytes: u64, b: &Type, b_bytes: u64) -> Option<Causes> {
        let (Type::Aggregate(a), Type::Aggregate(b)) = (a, b) else { return None };
        let (one, other) = (object_of_buffer(&a.name)?, object_of_buffer(&b.name)?);
        let (baseline, variant) = (self.baseline, self.variant);
        let [of_a, of_b] = self.names.get_or_insert_with(|| [baseline, variant].map(by_name));
        let [one, other] = [one, other].map(|name| crate::names::type_name_key(&name));
        let words = [(a_bytes, baseline.address_size), (b_bytes, variant.address_size)];
        if let Some(cause) = scalar(&one).filter(|cause| scalar(&other).as_ref() == Some(cause)) {
            let [words_a, words_b] =
                words.map(|(bytes, word)| (bytes / u64::from(word.max(1)), bytes % u64::from(word.max(1))));
            let is_of_words = words_a == words_b && words_a.1 == 0;
            let is_known = cause != Cause::Pointers || is_of_words;
            return is_known.then(|| Rc::new(vec![(cause, signed(b_bytes) - signed(a_bytes))]));
        }
        let one = *of_a.get(&one)?;
        let other = *of_b.get(&other)?;
        let is_whole = baseline.size(one) == a_bytes && variant.size(other) == b_bytes;
        is_whole.then(|| self.types((one, a_bytes, other, b_bytes, Part::Whole)))
    }

    /// The elements that both have, times their number; the rest is the length's.
    fn arrays(&mut self, from: (TypeId, u64, u64), to: (TypeId, u64, u64)) -> Vec<(Cause, i64)> {
        let ((from, from_count, a_bytes), (to, to_count, b_bytes)) = (from, to);
        let (one, other) = (self.baseline.size(from), self.variant.size(to));
        let common = signed(from_count.min(to_count));
        let difference = signed(b_bytes) - signed(a_bytes);
        let mut causes = Vec::new();
        let mut explained = 0_i64;
        for (cause, bytes) in self.types((from, one, to, other, Part::Whole)).iter() {
            let all = bytes.saturating_mul(common);
            explained = explained.saturating_add(all);
            causes.push((cause.clone(), all));
        }
        let rest = difference.saturating_sub(explained);
        if rest != 0 {
            causes.push((Cause::ArrayLength, rest));
        }
        causes
    }

    fn leaf(&self, a: TypeId, b: TypeId, bytes: i64) -> Vec<(Cause, i64)> {
        if bytes == 0 {
            return Vec::new();
        }
        let (one, other) =
            (self.baseline.get(self.baseline.stripped(a)), self.variant.get(self.variant.stripped(b)));
        let typedef = innermost_typedef(self.baseline, a).or_else(|| innermost_typedef(self.variant, b));
        let cause = match (one, other) {
            (Type::Pointer { .. }, Type::Pointer { .. }) => Cause::Pointers,
            (Type::Declared { .. }, _) | (_, Type::Declared { .. }) => Cause::Unknown,
            (_, _) if typedef.is_some() => Cause::Type(typedef.unwrap_or_default()),
            (Type::Base { name, integer: true, .. }, Type::Base { name: other, integer: true, .. })
                if name.contains("long") || other.contains("long") =>
            {
                Cause::Longs
            }
            _ => {
                let (one, other) = (self.baseline.name(a), self.variant.name(b));
                Cause::Type(if one == other { one } else { format!("{one} / {other}") })
            }
        };
        vec![(cause, bytes)]
    }
}

/// What a member is of its type's object.
fn part_of(member: &Member) -> Part {
    match member.role {
        Role::Base | Role::VirtualBase => Part::Base,
        _ => Part::Whole,
    }
}

/// The type of the object in a buffer, by the buffer's name.
fn object_of_buffer(name: &str) -> Option<String> {
    let buffer = BUFFERS.iter().find(|buffer| name.starts_with(**buffer))?;
    let object = name[buffer.len()..].trim_end().strip_suffix('>')?;
    Some(object.trim().to_owned())
}

/// Why a type that is no structure has another size, by its name in a template's arguments, which is no typedef's.
fn scalar(key: &str) -> Option<Cause> {
    match key {
        _ if key.ends_with(['*', '&']) || key.contains("*)(") => Some(Cause::Pointers),
        "long" | "unsigned long" => Some(Cause::Longs),
        "long double" => Some(Cause::Type(key.to_owned())),
        _ => None,
    }
}

fn by_name(layouts: &Layouts) -> FxHashMap<String, TypeId> {
    let all = layouts.aggregates.iter();
    all.filter_map(|id| Some((crate::names::type_name_key(&layouts.aggregate(*id)?.name), *id))).collect()
}

/// The name that is nearest to the number itself: of `value_type`, `size_t` and `unsigned long`, it is `size_t`.
pub(crate) fn innermost_typedef(layouts: &Layouts, mut id: TypeId) -> Option<String> {
    let mut innermost = None;
    while let Type::Typedef { name, target } = layouts.get(id) {
        innermost = Some(name);
        id = *target;
    }
    // glibc's own names are those that programs use, with two underscores (its bits/types.h).
    innermost.map(|name| match name.strip_prefix("__") {
        Some(short) if short.ends_with("_t") => short.to_owned(),
        _ => name.to_string(),
    })
}

/// Which members of two aggregates are the same: by role and name, those of the same name in their order.
pub(super) struct Pairs {
    /// The variant's member for each of the baseline's.
    pub variant: Vec<Option<usize>>,
    /// The baseline's member for each of the variant's.
    pub baseline: Vec<Option<usize>>,
}

pub(super) fn pairs(a: &Aggregate, b: &Aggregate) -> Pairs {
    let keys = |aggregate: &Aggregate| {
        let mut seen: FxHashMap<(Role, String), usize> = FxHashMap::default();
        let mut keys = Vec::with_capacity(aggregate.members.len());
        for member in &aggregate.members {
            let name = member.name.as_deref().unwrap_or_default();
            let key = match member.role {
                Role::Base | Role::VirtualBase => (member.role, crate::names::key(name)),
                // GCC's `_vptr.Name` and Clang's `_vptr$Name`.
                Role::VirtualTable => (member.role, String::new()),
                role => (role, name.to_owned()),
            };
            let count = seen.entry(key.clone()).or_default();
            *count += 1;
            keys.push((key, *count));
        }
        keys
    };
    let other: FxHashMap<_, usize> =
        keys(b).into_iter().enumerate().map(|(number, key)| (key, number)).collect();
    let variant: Vec<Option<usize>> = keys(a).iter().map(|key| other.get(key).copied()).collect();
    let mut baseline = vec![None; b.members.len()];
    for (number, other) in variant.iter().enumerate() {
        if let Some(other) = other {
            baseline[*other] = Some(number);
        }
    }
    Pairs { variant, baseline }
}

/// The piece of the variant that corresponds to one of the baseline.
fn partner(segment: &Segment, others: &FxHashMap<Piece, usize>, pairs: &Pairs) -> Option<usize> {
    let wanted = match segment.piece {
        Piece::Member(number) => Piece::Member(pairs.variant[number]?),
        Piece::BitFields(number) => Piece::BitFields(pairs.variant[number]?),
        Piece::Hole(number) => Piece::Hole(pairs.variant[number]?),
        Piece::Tail => Piece::Tail,
    };
    others.get(&wanted).copied()
}

/// Looks for the reason of padding.
struct Padding<'p> {
    baseline: &'p Layouts,
    variant: &'p Layouts,
    a: &'p Aggregate,
    b: &'p Aggregate,
    pairs: &'p Pairs,
}

impl Padding<'_> {
    fn cause(&self, piece: Piece) -> Cause {
        if let Some(cause) = self.hidden() {
            return cause;
        }
        let number = match piece {
            Piece::Hole(number) => number,
            _ => return self.realigned_tail().map_or(Cause::TailPadding, Cause::Alignment),
        };
        self.realigned(number).map_or(Cause::Holes, Cause::Alignment)
    }

    fn cause_of_variant(&self, number: usize) -> Cause {
        match self.pairs.baseline[number] {
            Some(number) => self.cause(Piece::Hole(number)),
            None => self.hidden().unwrap_or(Cause::Holes),
        }
    }

    /// What looks like padding may be a member that cannot be seen.
    fn hidden(&self) -> Option<Cause> {
        let both = [(self.baseline, self.a), (self.variant, self.b)];
        let members =
            || both.iter().flat_map(|(layouts, of)| of.members.iter().map(move |member| (*layouts, member)));
        if members().any(|(_, member)| member.role == Role::VirtualBase && member.offset.is_none()) {
            return Some(Cause::VirtualBases);
        }
        let is_declared = |(layouts, member): (&Layouts, &Member)| {
            matches!(layouts.get(layouts.stripped(member.ty)), Type::Declared { .. })
        };
        let is_unplaced = |(_, member): (&Layouts, &Member)| member.offset.is_none();
        (members().any(is_declared) || members().any(is_unplaced)).then_some(Cause::Unknown)
    }

    /// The type of the member behind a hole, if its other alignment is why the variant's hole has another size.
    fn realigned(&self, number: usize) -> Option<String> {
        let other = self.pairs.variant[number]?;
        let alignment = self.other_alignment(number, other)?;
        let at = self.b.members[other].offset?;
        let before = at.checked_sub(self.padding_of_variant(Piece::Hole(other)))?;
        let is_why = before.checked_next_multiple_of(alignment) != Some(at);
        is_why.then(|| self.baseline.name(self.a.members[number].ty))
    }

    /// The type of a member whose other alignment is why the padding at the variant's end has another size.
    fn realigned_tail(&self) -> Option<String> {
        let mut alignment = self.b.explicit_alignment.unwrap_or(1).max(1);
        let mut largest: Option<(u64, usize)> = None;
        for (other, member) in self.b.members.iter().enumerate() {
            let own = self.variant.member_alignment(member);
            let number = self.pairs.baseline[other];
            let in_baseline = number.and_then(|number| Some((self.other_alignment(number, other)?, number)));
            alignment = alignment.max(in_baseline.map_or(own, |(alignment, _)| alignment));
            if let Some((baseline, number)) = in_baseline {
                let either = own.max(baseline);
                largest = largest.filter(|(most, _)| *most >= either).or(Some((either, number)));
            }
        }
        let (_, number) = largest?;
        let end = self.b.size.checked_sub(self.padding_of_variant(Piece::Tail))?;
        let is_why = end.checked_next_multiple_of(alignment) != Some(self.b.size);
        is_why.then(|| self.baseline.name(self.a.members[number].ty))
    }

    /// The alignment that a member has in the baseline, if it has the same size in both and another alignment.
    fn other_alignment(&self, number: usize, other: usize) -> Option<u64> {
        let (a, b) = (&self.a.members[number], &self.b.members[other]);
        let is_same = self.baseline.size(a.ty) == self.variant.size(b.ty);
        let alignment = self.baseline.member_alignment(a);
        (is_same && alignment != self.variant.member_alignment(b)).then_some(alignment)
    }

    /// The bytes of a hole or of the padding at the end; 0 if the variant has none there.
    fn padding_of_variant(&self, piece: Piece) -> u64 {
        let segments = self.variant.segments(self.b, self.b.size, Part::Whole, None);
        segments.iter().find(|segment| segment.piece == piece).map_or(0, |segment| segment.size)
    }
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
