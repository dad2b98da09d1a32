//! The names of a unit's source files, from the header of its line table.

use gimli::{AttributeValue, DebugLine, DebugLineOffset};

use super::program::{Source, Unit};
use super::unit::{self, Text, UnitTable};

/// The files of a unit by their numbers, without their folders; the first one is number 0.
pub(super) fn files(source: &Source<'_>, unit: &Unit<'_>, at: Option<u64>) -> Vec<Box<str>> {
    let Some(offset) = at.or(source.is_split.then_some(0)).and_then(|at| usize::try_from(at).ok()) else {
        return Vec::new();
    };
    let lines = DebugLine::new(source.line, source.endian);
    let address_size = unit.header.address_size();
    let Ok(program) = lines.program(DebugLineOffset(offset), address_size, None, None) else {
        return Vec::new();
    };
    let header = program.header();
    let name = |value: &AttributeValue<unit::Slice<'_>>| {
        let text = match unit::text(value) {
            Text::Inline(bytes) => Some(bytes),
            text => source.text(text, &UnitTable::default(), unit),
        };
        let name = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
        name.rsplit('/').next().unwrap_or_default().into()
    };
    // Before DWARF 5 the files are counted from 1.
    let first = if header.version() < 5 { vec!["".into()] } else { Vec::new() };
    first.into_iter().chain(header.file_names().iter().map(|file| name(&file.path_name()))).collect()
}
