//! Names of functions, from the entries that inlined copies refer to.

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, UnitHeader, UnitOffset};

use super::scopes::Scopes;
use super::sections::{text, Slice};

/// References that are followed to a name: an abstract instance, its declaration, and a copy of either.
const MOST_REFERENCES: usize = 8;

type Unit<'a> = gimli::Unit<Slice<'a>>;

/// Finds names; it keeps the last unit, since to read a unit's abbreviations again for each name would be slow.
pub(super) struct Names<'n, 'a> {
    dwarf: &'n Dwarf<Slice<'a>>,
    headers: &'n [UnitHeader<Slice<'a>>],
    /// Offsets of the units in `.debug_info`, sorted, and their places in `headers`.
    starts: &'n [(usize, usize)],
    last: Option<(usize, Unit<'a>)>,
    /// The scopes of a unit's functions: GCC gives functions that only their unit knows no linkage name.
    scopes: Option<(usize, Scopes)>,
}

/// What one entry says: its name, or where to look for it.
enum Said {
    Linkage(Vec<u8>),
    Plain { name: Option<Vec<u8>>, next: Option<usize> },
}

impl<'n, 'a> Names<'n, 'a> {
    pub fn new(
        dwarf: &'n Dwarf<Slice<'a>>,
        headers: &'n [UnitHeader<Slice<'a>>],
        starts: &'n [(usize, usize)],
    ) -> Names<'n, 'a> {
        Names { dwarf, headers, starts, last: None, scopes: None }
    }

    /// The name of the function at an offset of `.debug_info`: the linkage name, or where there is none the plain one, with the namespaces
    /// and classes that it is declared in.
    pub fn name(&mut self, offset: usize) -> Option<Vec<u8>> {
        let mut at = offset;
        let mut plain: Option<Vec<u8>> = None;
        for _ in 0..MOST_REFERENCES {
            let Some(said) = self.said(at) else { break };
            match said {
                Said::Linkage(name) => return Some(name),
                Said::Plain { name, next } => {
                    plain = plain.or(name);
                    let Some(next) = next else {
                        // Of a declaration in its class, the scope is known.
                        return plain.map(|name| self.qualified(at, &name).unwrap_or(name));
                    };
                    at = next;
                }
            }
        }
        plain
    }

    fn qualified(&mut self, at: usize, name: &[u8]) -> Option<Vec<u8>> {
        let (own, number) = self.unit_of(at)?;
        let (_, unit) = self.last.as_ref().filter(|(last, _)| *last == number)?;
        if self.scopes.as_ref().is_none_or(|(of, _)| *of != number) {
            self.scopes = Some((number, Scopes::of(self.dwarf, unit)));
        }
        self.scopes.as_ref()?.1.qualified(at - own, name)
    }

    /// Where the unit of an offset begins, and its place in `headers`.
    fn unit_of(&self, at: usize) -> Option<(usize, usize)> {
        let next = self.starts.partition_point(|(start, _)| *start <= at);
        self.starts.get(next.checked_sub(1)?).copied()
    }

    fn said(&mut self, at: usize) -> Option<Said> {
        let (own, number) = self.unit_of(at)?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            self.last = Some((number, self.dwarf.unit(*self.headers.get(number)?).ok()?));
        }
        let (_, unit) = self.last.as_ref()?;
        let mut entries = unit.header.entries_raw(&unit.abbreviations, Some(UnitOffset(at - own))).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        let (mut name, mut next) = (None, None);
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            match attribute.name() {
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    return text(self.dwarf, unit, attribute.value()).map(Said::Linkage);
                }
                gimli::DW_AT_name => name = text(self.dwarf, unit, attribute.value()),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    next = reference(own, attribute.value());
                }
                _ => {}
            }
        }
        Some(Said::Plain { name, next })
    }
}

/// The offset in `.debug_info` that a reference of a unit means.
pub(super) fn reference(unit: usize, value: AttributeValue<Slice<'_>>) -> Option<usize> {
    match value {
        AttributeValue::UnitRef(UnitOffset(offset)) => unit.checked_add(offset),
        AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => Some(offset),
        _ => None,
    }
}
