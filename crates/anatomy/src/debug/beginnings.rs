//! Where functions begin in the source: the first line that the line tables have for the first instruction of each. Compilers give that
//! the line of the function; lines behind it at the same address may be those of its first statement, or of code that was inlined there.

use gimli::{Dwarf, LineProgramHeader, LineRow};
use rustc_hash::FxHashMap;

use super::sections::{Sections, Slice};

/// The file and line of each of these addresses, which are sorted; none of those that no line table has.
pub fn beginnings(sections: &Sections, addresses: &[u64]) -> FxHashMap<u64, (String, u64)> {
    let mut found = FxHashMap::default();
    let dwarf = sections.dwarf();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = unit.line_program.clone() else { continue };
        let mut rows = program.rows();
        let mut before = None;
        let mut last = None;
        while let Ok(Some((header, row))) = rows.next_row() {
            let address = row.address();
            let is_first = before != Some(address);
            before = (!row.end_sequence()).then_some(address);
            // A row at the end of a sequence is for no code: what begins there may be another unit's.
            if let Some((address, place)) = last.take_if(|(last, _)| *last != address) {
                found.entry(address).or_insert(place);
            }
            if row.end_sequence() {
                last = None;
            }
            if !is_first || row.end_sequence() || addresses.binary_search(&address).is_err() {
                continue;
            }
            if let (Some(line), Some(file)) = (row.line(), file(&dwarf, &unit, header, row)) {
                last = Some((address, (file, line.get())));
            }
        }
    }
    found
}

/// The path of a line's file.
fn file<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &gimli::Unit<Slice<'a>>,
    header: &LineProgramHeader<Slice<'a>>,
    row: &LineRow,
) -> Option<String> {
    let text = |value| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let file = row.file(header)?;
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    let own = unit.comp_dir.map_or(String::new(), |folder| folder.to_string_lossy().into_owned());
    // Each is relative to the one before unless it is absolute.
    let path = std::path::Path::new(&own).join(folder).join(name);
    Some(path.to_string_lossy().into_owned())
}
