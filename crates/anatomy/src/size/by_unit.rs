//! The file divided among compile units: every byte belongs to one unit, or to none.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::map::{Piece, PieceKind};
use super::rows::section_key;
use crate::debug::{Sections, Units};
use crate::elf::named::Named;
use crate::elf::{section_flag, section_type, Elf, Section};

/// Bytes of one section that belong to one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRow {
    /// The unit's name; empty where the bytes belong to none.
    pub unit: String,
    /// Their section; empty where they are in none.
    pub section: String,
    /// How many bytes.
    pub bytes: u64,
}

/// One unit in both files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitPair {
    /// The unit's name; empty for bytes of none.
    pub unit: String,
    /// Each section's bytes in the baseline and in the variant.
    pub sections: Vec<(String, [u64; 2])>,
}

impl UnitPair {
    /// Bytes in the baseline, or in the variant.
    pub fn bytes(&self, side: usize) -> u64 {
        self.sections.iter().map(|(_, sides)| sides[side]).sum()
    }

    /// The variant's bytes minus the baseline's.
    pub fn difference(&self) -> i64 {
        self.bytes(1) as i64 - self.bytes(0) as i64
    }
}

/// The units of both files, by name; the largest difference first. Where both were built in different folders, units with the same
/// end of their paths are one.
pub fn pairs(baseline: &[UnitRow], variant: &[UnitRow]) -> Vec<UnitPair> {
    let names =
        [baseline, variant].map(|rows| rows.iter().map(|row| row.unit.as_str()).collect::<BTreeSet<&str>>());
    let moved = moved(&names[0], &names[1]);
    let mut by_name: BTreeMap<&str, BTreeMap<&str, [u64; 2]>> = BTreeMap::new();
    for (side, rows) in [baseline, variant].into_iter().enumerate() {
        for row in rows {
            let name = moved.get(row.unit.as_str()).filter(|_| side == 1).copied().unwrap_or(&row.unit);
            by_name.entry(name).or_default().entry(section_key(&row.section)).or_default()[side] += row.bytes;
        }
    }
    let pair = |(unit, sections): (&str, BTreeMap<&str, [u64; 2]>)| UnitPair {
        unit: unit.to_owned(),
        sections: sections.into_iter().map(|(section, sides)| (section.to_owned(), sides)).collect(),
    };
    let mut pairs: Vec<UnitPair> = by_name.into_iter().map(pair).collect();
    pairs.sort_by_key(|pair| {
        std::cmp::Reverse((pair.difference().unsigned_abs(), pair.bytes(0).max(pair.bytes(1))))
    });
    pairs
}

/// The baseline's name of each unit of the variant that has another: the one with the longest common end, if there is one only.
fn moved<'n>(baseline: &BTreeSet<&'n str>, variant: &BTreeSet<&'n str>) -> BTreeMap<&'n str, &'n str> {
    let file = |name: &'n str| name.rsplit('/').next().unwrap_or(name);
    let mut by_file: BTreeMap<&str, Vec<&'n str>> = BTreeMap::new();
    for name in baseline.difference(variant) {
        by_file.entry(file(name)).or_default().push(name);
    }
    let common = |a: &str, b: &str| a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count();
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for name in variant.difference(baseline) {
        let Some(candidates) = by_file.get(file(name)) else { continue };
        let longest = candidates.iter().map(|other| common(name, other)).max().unwrap_or(0);
        let mut best = candidates.iter().filter(|other| common(name, other) == longest);
        if let (Some(only), None) = (best.next(), best.next()) {
            if taken.insert(*only) {
                found.insert(name, only);
            }
        }
    }
    found
}

/// The rows of all units. Their sum is the sum of the pieces.
pub fn rows(
    elf: &Elf,
    pieces: &[Piece],
    named: &[Named],
    sections: &Sections,
    units: &Units,
) -> Vec<UnitRow> {
    let claims = claims(elf, named, sections, units);
    let mut sums: FxHashMap<(Option<u32>, Option<usize>), u64> = FxHashMap::default();
    let mut next = 0;
    for piece in pieces {
        let section = match piece.kind {
            PieceKind::Section(number) => Some(number),
            _ => None,
        };
        let mut at = piece.range.start;
        let mut add = |unit, bytes| *sums.entry((unit, section)).or_default() += bytes;
        while next < claims.len() && claims[next].0.end <= at {
            next += 1;
        }
        for (range, unit) in &claims[next..] {
            if range.start >= piece.range.end || section.is_none() {
                break;
            }
            let (start, end) = (range.start.max(at), range.end.min(piece.range.end));
            if start < end {
                add(None, start - at);
                add(Some(*unit), end - start);
                at = end;
            }
        }
        add(None, piece.range.end - at);
    }
    let mut by_name: FxHashMap<(String, String), u64> = FxHashMap::default();
    for ((unit, section), bytes) in sums.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let unit = unit.map_or(String::new(), |unit| match units.units[unit as usize].name.as_str() {
            "" => "(a unit without a name)".to_owned(),
            name => name.to_owned(),
        });
        let section = section.map_or(String::new(), |number| elf.sections[number].name.clone().into_owned());
        *by_name.entry((unit, section)).or_default() += bytes;
    }
    let mut rows: Vec<UnitRow> =
        by_name.into_iter().map(|((unit, section), bytes)| UnitRow { unit, section, bytes }).collect();
    rows.sort_by(|a, b| (&a.unit, &a.section).cmp(&(&b.unit, &b.section)));
    rows
}

/// Stretches of the file that belong to a unit, by their beginnings.
fn claims(elf: &Elf, named: &[Named], sections: &Sections, units: &Units) -> Vec<(Range<u64>, u32)> {
    let mut claims = Vec::new();
    let code = code(units);
    for section in elf.sections.iter().filter(|section| in_file(section)) {
        if section.has(section_flag::EXECINSTR) {
            let first = code.partition_point(|(range, _)| range.start < section.address);
            let end = section.address.saturating_add(section.size);
            for (range, unit) in code[first..].iter().take_while(|(range, _)| range.start < end) {
                let place =
                    |address: u64| section.offset + address.clamp(section.address, end) - section.address;
                claims.push((place(range.start)..place(range.end), *unit));
            }
        }
        if section.name == ".eh_frame" {
            unwind_claims(elf, section, &code, &mut claims);
        }
    }
    data_claims(elf, named, units, &mut claims);
    for part in &units.contributions {
        let Some(section) = elf.section(part.section).filter(|_| sections.is_plain(part.section)) else {
            continue;
        };
        let place = |at: u64| section.offset.saturating_add(at.min(section.size));
        claims.push((place(part.range.start)..place(part.range.end), part.unit));
    }
    claims.retain(|(range, _)| !range.is_empty());
    claims.sort_by_key(|(range, unit)| (range.start, *unit));
    claims
}

fn in_file(section: &Section) -> bool {
    section.has(section_flag::ALLOC) && section.kind != section_type::NOBITS
}

/// The code of all units, sorted.
fn code(units: &Units) -> Vec<(Range<u64>, u32)> {
    let mut code: Vec<(Range<u64>, u32)> = Vec::new();
    for (number, unit) in units.units.iter().enumerate() {
        code.extend(unit.ranges.iter().map(|range| (range.clone(), number as u32)));
    }
    code.sort_by_key(|(range, unit)| (range.start, *unit));
    code
}

/// Variables: each symbol at the address of a unit's variable.
fn data_claims(elf: &Elf, named: &[Named], units: &Units, claims: &mut Vec<(Range<u64>, u32)>) {
    let mut owners: FxHashMap<u64, u32> = FxHashMap::default();
    for (number, unit) in units.units.iter().enumerate() {
        for address in &unit.variables {
            owners.entry(*address).or_insert(number as u32);
        }
    }
    for one in named {
        let section = &elf.sections[one.section];
        if !in_file(section) || section.has(section_flag::EXECINSTR) {
            continue;
        }
        if let Some(unit) = owners.get(&section.address.wrapping_add(one.start)) {
            let start = section.offset + one.start;
            claims.push((start..start.saturating_add(one.size), *unit));
        }
    }
}

/// Unwind records: each belongs to the unit whose code it is for.
fn unwind_claims(
    elf: &Elf,
    section: &Section,
    code: &[(Range<u64>, u32)],
    claims: &mut Vec<(Range<u64>, u32)>,
) {
    for record in elf.unwind_records(section) {
        let address = record.code.start;
        let next = code.partition_point(|(range, _)| range.start <= address);
        let owner = next.checked_sub(1).map(|at| &code[at]).filter(|(range, _)| range.contains(&address));
        if let Some((_, unit)) = owner {
            let start = section.offset.saturating_add(record.bytes.start);
            claims.push((start..section.offset.saturating_add(record.bytes.end), *unit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{code, pairs, UnitRow};
    use crate::debug::{Unit, Units};

    #[test]
    fn units_of_two_build_folders_are_paired_by_the_end_of_their_paths() {
        let rows = |names: &[&str]| -> Vec<UnitRow> {
            let row =
                |name: &&str| UnitRow { unit: (*name).to_owned(), section: ".text".to_owned(), bytes: 1 };
            names.iter().map(row).collect()
        };
        let baseline = rows(&["/a/src/x.c", "/a/lib/x.c", "same.c", "gone.c"]);
        let found = pairs(&baseline, &rows(&["/b/2/src/x.c", "/b/2/lib/x.c", "same.c", "new.c"]));
        let matched: Vec<&str> = found
            .iter()
            .filter(|pair| pair.bytes(0) == pair.bytes(1))
            .map(|pair| pair.unit.as_str())
            .collect();
        assert_eq!(matched.len(), 3, "{found:?}");
        assert!(
            matched.contains(&"/a/src/x.c") && matched.contains(&"/a/lib/x.c") && matched.contains(&"same.c")
        );
    }

    #[test]
    fn the_code_of_units_is_in_the_order_of_addresses() {
        let unit = |start, end| Unit { ranges: std::iter::once(start..end).collect(), ..Unit::default() };
        let units = Units { units: vec![unit(20, 30), unit(0, 10)], ..Units::default() };
        assert_eq!(code(&units), [(0..10, 1), (20..30, 0)]);
    }
}
