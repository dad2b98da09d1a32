//! What is known of the types of heap blocks: the facts, without the evidence that they were found by.

pub use super::source::Source;
use crate::certainty::Certainty;
use crate::heap::site::Site;
use crate::layout;
use widthwise_heap_log::profile::Values;

/// The type of the objects in a block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeapType {
    /// The type of one object or element, as the baseline's debug information or its demangled name has it. Integers among its template
    /// arguments that the variant has others of have both values: `Pool<104 → 52>`.
    pub name: String,
    /// The container whose elements they are, where the stack names it: `std::vector<int*>`.
    pub container: Option<String>,
    /// Whether blocks are arrays; otherwise each block is one object.
    pub is_array: bool,
    /// The type of the elements that each block has behind its object, such as those of a flexible array member.
    pub behind: Option<String>,
}

impl std::fmt::Display for HeapType {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.with_names(str::to_owned))
    }
}

impl HeapType {
    /// In words, with each name as `shown` writes it.
    pub fn with_names(&self, shown: impl Fn(&str) -> String) -> String {
        let name = shown(&self.name);
        match (&self.container, &self.behind) {
            (Some(container), _) => format!("{name} elements of {}", shown(container)),
            (None, Some(behind)) => format!("{name} + {}[]", shown(behind)),
            (None, None) if self.is_array => format!("{name}[]"),
            (None, None) => name,
        }
    }
}

/// What one side has of a type at one site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes and blocks; `peak_*` is what the parts are about.
    pub values: Values,
    /// Objects at the peak; elements of arrays. None where the type or its size is not known.
    pub objects: Option<u64>,
    /// Bytes of one object or element.
    pub size: Option<u64>,
    /// Elements behind the objects, where the type has these.
    pub elements_behind: Option<u64>,
}

/// Why a site has more or fewer bytes in the variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Objects have another layout: pointers, `long`, padding, …
    Layout {
        /// What of the layout.
        cause: layout::Cause,
        /// The type of the member that it is inside of; none if the object has it itself.
        nested: Option<String>,
    },
    /// More or fewer objects of the type.
    Objects,
    /// More or fewer blocks, all of one size in both, whose type is not known.
    Blocks,
    /// The number of elements that `new T[n]` stores before the first one.
    ArrayLength,
    /// A library's own buffer, whose size is a rule of that library.
    Library(&'static str),
    /// The site allocates in one of the two alone.
    OneSide,
    /// Nothing explains it.
    Unexplained,
}

impl Cause {
    /// Whether it is a reason, and not the lack of one.
    pub fn is_named(&self) -> bool {
        let unknown = layout::Cause::Unknown;
        !matches!(self, Cause::Unexplained | Cause::OneSide)
            && !matches!(self, Cause::Layout { cause, .. } if *cause == unknown)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Layout { cause, .. } => write!(to, "{cause}"),
            Cause::Objects => to.write_str("number of objects"),
            Cause::Blocks => to.write_str("number of blocks"),
            Cause::ArrayLength => to.write_str("lengths stored by new[]"),
            Cause::Library(what) => to.write_str(what),
            Cause::OneSide => to.write_str("at the peak of one of the two only"),
            Cause::Unexplained => to.write_str("unexplained"),
        }
    }
}

/// A part of a difference of requested bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Why.
    pub cause: Cause,
    /// Bytes of the variant less those of the baseline.
    pub bytes: i64,
    /// How sure it is: never more than the type is.
    pub certainty: Certainty,
}

/// A rule of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocatorRule {
    /// The word before each block (glibc, malloc/malloc.c: `malloc_chunk`).
    Header,
    /// Chunks are multiples of 16 bytes, and at least 32 (LP64) or 16 (ILP32) bytes (the same, `MALLOC_ALIGNMENT`, `MINSIZE`).
    /// Other allocators have classes of sizes.
    Rounding,
    /// Both, where the headers of an allocator are not known.
    HeadersAndRounding,
}

impl std::fmt::Display for AllocatorRule {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            AllocatorRule::Header => "allocator's headers",
            AllocatorRule::Rounding => "allocator's rounding",
            AllocatorRule::HeadersAndRounding => "allocator's headers and rounding",
        })
    }
}

/// A part of what the allocator uses beside the requested bytes, which the requested bytes do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorPart {
    /// Why.
    pub rule: AllocatorRule,
    /// Bytes at the peak of the baseline.
    pub a: u64,
    /// Bytes at the peak of the variant.
    pub b: u64,
}

impl AllocatorPart {
    /// Bytes of the variant less those of the baseline.
    pub fn bytes(&self) -> i64 {
        signed(self.b).saturating_sub(signed(self.a))
    }
}

/// The blocks of one type at one site, in both recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPair {
    /// The first recording's site, or the second's if the first has none. Its values are those of the side that it is of.
    pub site: Site,
    /// The type; none where nothing names one, or several are possible.
    pub ty: Option<HeapType>,
    /// How sure the type is.
    pub certainty: Certainty,
    /// What it was found by.
    pub source: Source,
    /// The types that are possible, where they are several.
    pub candidates: Vec<String>,
    /// In the baseline.
    pub a: Amount,
    /// In the variant.
    pub b: Amount,
    /// The parts of the difference of requested bytes at the peak. They sum to it; without a variant there are none.
    pub parts: Vec<Part>,
    /// The parts of the difference of what the allocator uses beside these. They sum to it.
    pub allocator: Vec<AllocatorPart>,
}

impl TypedPair {
    /// Requested bytes of the variant at its peak less those of the baseline at its own.
    pub fn difference(&self) -> i64 {
        signed(self.b.values.peak_bytes).saturating_sub(signed(self.a.values.peak_bytes))
    }

    /// Bytes of the difference without a cause of certainty medium or high.
    pub fn unexplained(&self) -> i64 {
        let is_unexplained = |part: &&Part| !part.cause.is_named() || part.certainty == Certainty::Low;
        self.parts.iter().filter(is_unexplained).map(|part| part.bytes).sum()
    }
}

/// All blocks at the peaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedHeap {
    /// Sites by type, those that differ most first; with one recording, those with most bytes.
    pub pairs: Vec<TypedPair>,
    /// What cannot be said, and why.
    pub remarks: Vec<String>,
}

/// A type over all of its sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeRow {
    /// The type; none for all blocks without one.
    pub ty: Option<HeapType>,
    /// The site with most bytes.
    pub site: Site,
    /// How many sites there are.
    pub sites: usize,
    /// The lowest certainty of its sites.
    pub certainty: Certainty,
    /// What it was found by, at the site with most bytes.
    pub source: Source,
    /// In the baseline.
    pub a: Amount,
    /// In the variant.
    pub b: Amount,
    /// The parts of the difference by cause, the largest first.
    pub parts: Vec<Part>,
    /// The allocator's parts.
    pub allocator: Vec<AllocatorPart>,
}

/// How much of a difference has causes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explained {
    /// Requested bytes of the variant at its peak less those of the baseline at its own.
    pub difference: i64,
    /// The part without a cause of certainty medium or high.
    pub unexplained: i64,
    /// The sum of all sites' differences, each without its sign: what can be explained at all.
    pub absolute: u64,
    /// The same of what is not explained.
    pub absolute_unexplained: u64,
}

impl Explained {
    /// The explained share of all sites' differences, 0 to 1; none where nothing differs.
    pub fn share(&self) -> Option<f64> {
        (self.absolute > 0).then(|| 1.0 - self.absolute_unexplained as f64 / self.absolute as f64)
    }
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
