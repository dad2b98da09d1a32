//! Reads the units of a program with several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use gimli::{AttributeValue, Dwarf, RangeListsOffset, UnitHeader, UnitType};
use rustc_hash::FxHashMap;

use super::contributions::{contributions, Offsets};
use super::model::{InlinedRange, Unit, Units};
use super::names::{reference, Names};
use super::sections::{Sections, Slice};

const MOST_THREADS: usize = 256;
/// More copies than this are no compiler's: a hostile file repeats one abbreviation without end.
const MOST_INLINED: usize = 1 << 26;

type GimliUnit<'a> = gimli::Unit<Slice<'a>>;

/// What one unit's entries say.
#[derive(Default)]
struct Found {
    unit: Unit,
    offsets: Offsets,
    /// Start, end, depth, the offset of the function's entry, and the copy's number in the unit.
    inlined: Vec<(u64, u64, u32, Option<usize>, u32)>,
    copies: u32,
    /// The names of the functions by the offsets of their entries.
    names: FxHashMap<Option<usize>, Vec<u8>>,
    unread: Option<String>,
}

/// Reads all compile units with as many threads. What is damaged is named in [`Units::unread`].
pub fn read(sections: &Sections, threads: usize) -> Units {
    let mut dwarf = sections.dwarf();
    let mut unread = sections.unread.clone();
    let mut headers: Vec<UnitHeader<Slice>> = Vec::new();
    let mut iterator = dwarf.units();
    loop {
        match iterator.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => break,
            Err(error) => {
                unread.push(format!("the list of compile units is damaged: {error}"));
                break;
            }
        }
    }
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    let mut starts: Vec<(usize, usize)> = headers
        .iter()
        .enumerate()
        .filter_map(|(number, header)| Some((header.debug_info_offset()?.0, number)))
        .collect();
    starts.sort_unstable();
    let found = read_all(&dwarf, &sections.code, &headers, &starts, threads);
    put_together(sections, &headers, found, unread)
}

fn read_all<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    code: &[Range<u64>],
    headers: &[UnitHeader<Slice<'a>>],
    starts: &[(usize, usize)],
    threads: usize,
) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, Found)>> = Mutex::new(Vec::with_capacity(headers.len()));
    let work = || {
        let mut own = Vec::new();
        let mut names = Names::new(dwarf, headers, starts);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(header) = headers.get(at) else { break };
            let mut found = Found::default();
            if let Err(error) = read_unit(dwarf, code, header, &mut found) {
                found.unread =
                    Some(format!("a compile unit is damaged, and what follows in it is missing: {error}"));
            }
            for (_, _, _, origin, _) in &found.inlined {
                found
                    .names
                    .entry(*origin)
                    .or_insert_with(|| origin.and_then(|offset| names.name(offset)).unwrap_or_default());
            }
            own.push((at, found));
        }
        all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut own);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, MOST_THREADS).min(headers.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut all = all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, found)| found).collect()
}

/// The code of a unit, sorted. The linker leaves the ranges of functions that it has removed, and moves them to address 0.
fn ranges<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &GimliUnit<'a>,
    code: &[Range<u64>],
) -> gimli::Result<Option<Vec<Range<u64>>>> {
    let (mut ranges, mut kept, mut has_any) = (dwarf.unit_ranges(unit)?, Vec::new(), false);
    while let Some(range) = ranges.next()? {
        has_any = true;
        let range = range.begin..range.end;
        if is_inside(&range, code) {
            kept.push(range);
        }
    }
    kept.sort_unstable_by_key(|range| (range.start, range.end));
    Ok(has_any.then_some(kept))
}

/// Whether a range has bytes, and all of them in one of these, which are sorted.
fn is_inside(range: &Range<u64>, sorted: &[Range<u64>]) -> bool {
    let next = sorted.partition_point(|other| other.start <= range.start);
    !range.is_empty() && sorted[..next].last().is_some_and(|other| range.end <= other.end)
}

fn read_unit<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    code: &[Range<u64>],
    header: &UnitHeader<Slice<'a>>,
    found: &mut Found,
) -> gimli::Result<()> {
    let unit = dwarf.unit(*header)?;
    found.unit.name = unit_name(&unit);
    found.unit.is_split = unit.dwo_id.is_some() || matches!(header.type_(), UnitType::Skeleton(_));
    if let Some(program) = &unit.line_program {
        let line = program.header();
        let start = line.offset().0 as u64;
        let initial = u64::from(line.format().initial_length_size());
        found.offsets.line = Some((start, start.saturating_add(initial + line.unit_length() as u64)));
    }
    if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
        return Ok(());
    }
    let ranges = ranges(dwarf, &unit, code)?;
    found.unit.ranges = ranges.clone().unwrap_or_default();
    let code = ranges.as_deref().unwrap_or(code);
    let own = header.debug_info_offset().map_or(0, |offset| offset.0);
    let mut entries = header.entries_raw(&unit.abbreviations, None)?;
    // The depths of the inlined copies that the next entry is in.
    let mut inside: Vec<isize> = Vec::new();
    while !entries.is_empty() {
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        inside.truncate(inside.partition_point(|outer| *outer < depth));
        match abbreviation.tag() {
            gimli::DW_TAG_inlined_subroutine => {
                let entry = Entry::read(&mut entries, abbreviation)?;
                let function = entry.origin.and_then(|value| reference(own, value));
                let copy = found.copies;
                found.copies = found.copies.wrapping_add(1);
                entry.each_range(dwarf, &unit, |start, end| {
                    if found.inlined.len() < MOST_INLINED && is_inside(&(start..end), code) {
                        found.inlined.push((start, end, inside.len() as u32, function, copy));
                    }
                })?;
                inside.push(depth);
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                let entry = Entry::read(&mut entries, abbreviation)?;
                // A parameter has a location only while its function runs.
                if abbreviation.tag() == gimli::DW_TAG_variable {
                    found.unit.variables.extend(entry.address(dwarf, &unit));
                }
                let list = entry.location.and_then(|value| dwarf.attr_locations_offset(&unit, value).ok()?);
                if header.version() >= 5 && found.offsets.locations.is_none() {
                    found.offsets.locations = list.map(|offset| offset.0 as u64);
                }
            }
            gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_skeleton_unit => {
                let entry = Entry::read(&mut entries, abbreviation)?;
                if let Some(AttributeValue::RangeListsRef(offset)) = entry.ranges {
                    found.offsets.ranges = Some(dwarf.ranges_offset_from_raw(&unit, offset).0 as u64);
                }
                if found.unit.name.is_empty() {
                    let name = entry.dwo_name.and_then(|name| dwarf.attr_string(&unit, name).ok());
                    found.unit.name = name.map_or(String::new(), |name| name.to_string_lossy().into_owned());
                }
            }
            _ => entries.skip_attributes(abbreviation.attributes())?,
        }
    }
    Ok(())
}

/// The attributes that are read of an entry.
#[derive(Default)]
struct Entry<'a> {
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
    origin: Option<AttributeValue<Slice<'a>>>,
    location: Option<AttributeValue<Slice<'a>>>,
    dwo_name: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Entry<'a> {
    fn read(
        entries: &mut gimli::EntriesRaw<'_, Slice<'a>>,
        abbreviation: &gimli::Abbreviation,
    ) -> gimli::Result<Entry<'a>> {
        let mut entry = Entry::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            let slot = match attribute.name() {
                gimli::DW_AT_low_pc => &mut entry.low,
                gimli::DW_AT_high_pc => &mut entry.high,
                gimli::DW_AT_ranges => &mut entry.ranges,
                gimli::DW_AT_abstract_origin => &mut entry.origin,
                gimli::DW_AT_location => &mut entry.location,
                gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name => &mut entry.dwo_name,
                _ => continue,
            };
            *slot = Some(attribute.value());
        }
        Ok(entry)
    }

    fn each_range(
        &self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &GimliUnit<'a>,
        mut found: impl FnMut(u64, u64),
    ) -> gimli::Result<()> {
        if let Some(value) = self.ranges {
            if let Some(offset) = dwarf.attr_ranges_offset(unit, value)? {
                let mut ranges = dwarf.ranges(unit, RangeListsOffset(offset.0))?;
                while let Some(range) = ranges.next()? {
                    if range.begin < range.end {
                        found(range.begin, range.end);
                    }
                }
            }
            return Ok(());
        }
        let Some(low) = self.low else { return Ok(()) };
        let Some(low) = dwarf.attr_address(unit, low)? else { return Ok(()) };
        let high = match self.high {
            Some(AttributeValue::Udata(size)) => low.wrapping_add(size),
            Some(value) => match dwarf.attr_address(unit, value)? {
                Some(high) => high,
                None => low.wrapping_add(value.udata_value().unwrap_or(0)),
            },
            None => return Ok(()),
        };
        if low < high {
            found(low, high);
        }
        Ok(())
    }

    /// The address of a variable that has one for all of its life. Where more follows, the address is a part of its value: of a
    /// pointer to another variable, DWARF has the address and `DW_OP_stack_value` (DWARF 5, 2.6.1.1.3).
    fn address(&self, dwarf: &Dwarf<Slice<'a>>, unit: &GimliUnit<'a>) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = self.location else { return None };
        let mut operations = expression.operations(unit.encoding());
        let address = match operations.next().ok()?? {
            gimli::Operation::Address { address } => address,
            gimli::Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
            _ => return None,
        };
        match operations.next().ok()? {
            None => Some(address),
            // Of several variables under one symbol.
            Some(gimli::Operation::PlusConstant { value }) if operations.next().ok()?.is_none() => {
                Some(address.wrapping_add(value))
            }
            Some(_) => None,
        }
    }
}

/// The name without the folder of the compilation, which differs between two builds.
fn unit_name(unit: &GimliUnit) -> String {
    let text = |slice: &Slice| slice.to_string_lossy().into_owned();
    let name = unit.name.as_ref().map_or(String::new(), text);
    let folder = unit.comp_dir.as_ref().map_or(String::new(), text);
    let inside = name.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'));
    let name = inside.filter(|_| !folder.is_empty()).unwrap_or(&name);
    name.strip_prefix("./").unwrap_or(name).to_owned()
}

fn put_together<'a>(
    sections: &Sections,
    headers: &[UnitHeader<Slice<'a>>],
    found: Vec<Found>,
    unread: Vec<String>,
) -> Units {
    let mut units = Units { unread, ..Units::default() };
    let mut by_name: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
    let offsets: Vec<Offsets> = found.iter().map(|found| found.offsets).collect();
    let mut copies = 0_u32;
    for of_unit in found {
        let mut places: FxHashMap<Option<usize>, u32> = FxHashMap::default();
        for (origin, name) in of_unit.names {
            let function = *by_name.entry(name).or_insert_with_key(|name| {
                units.functions.push(name.clone());
                units.functions.len() as u32 - 1
            });
            places.insert(origin, function);
        }
        for (start, end, depth, origin, copy) in of_unit.inlined {
            let function = places.get(&origin).copied().unwrap_or(u32::MAX);
            units.inlined.push(InlinedRange { start, end, depth, function, copy: copies.wrapping_add(copy) });
        }
        copies = copies.wrapping_add(of_unit.copies);
        units.units.push(of_unit.unit);
        if let Some(reason) = of_unit.unread.filter(|reason| !units.unread.contains(reason)) {
            units.unread.push(reason);
        }
    }
    units.contributions = contributions(sections, headers, &offsets);
    units
}
