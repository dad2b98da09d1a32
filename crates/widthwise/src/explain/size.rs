//! The size of both programs' files: rows, compile units, inlined copies, waste.

use std::num::NonZero;

use widthwise_anatomy::debug::{self, Sections};
use widthwise_anatomy::size::by_unit::{self, UnitRow};
use widthwise_anatomy::size::inlined::{self, Origin};
use widthwise_anatomy::size::waste::{self, Waste};
use widthwise_anatomy::size::{self, difference, Berkeley, FileSize};
use widthwise_report::explanation::size::Size;

use super::program::{Program, Read};

/// The section of an explanation.
pub fn section(programs: &[Program; 2], sides: &[Vec<Read>; 2], top: usize) -> Size {
    let sizes = sides.each_ref().map(|files| {
        let read = files.iter().map(|file| (file.name.clone(), size::read(&file.elf, &file.named)));
        read.collect::<Vec<(String, FileSize)>>()
    });
    let berkeley = sizes.each_ref().map(|files| {
        let add = |sum: Berkeley, (_, file): &(String, FileSize)| Berkeley {
            text: sum.text + file.berkeley.text,
            data: sum.data + file.berkeley.data,
            bss: sum.bss + file.berkeley.bss,
        };
        files.iter().fold(Berkeley::default(), add)
    });
    let pairs = difference::pairs(&borrowed(&sizes[0]), &borrowed(&sizes[1]));
    let mut remarks = Vec::new();
    for (program, files) in programs.iter().zip(sides) {
        if !files[0].has_symbols() {
            remarks.push(format!(
                "{} is stripped: its sections are not divided among symbols, except for exported ones.",
                program.name
            ));
        }
    }
    let [a, b] = sides.each_ref().map(|files| divided(&files[0]));
    for (program, side) in programs.iter().zip([&a, &b]) {
        remarks.extend(side.unread.iter().map(|reason| format!("{}: {reason}.", program.name)));
    }
    let waste = waste::pairs(waste_of(&sides[0]), waste_of(&sides[1]));
    let (units, origins) = match (&a.rows, &b.rows) {
        (None, None) => (Vec::new(), Vec::new()),
        // Where one has no debug information, all of its bytes belong to no unit, and its copies are not known.
        _ => (
            by_unit::pairs(a.rows.as_deref().unwrap_or_default(), b.rows.as_deref().unwrap_or_default()),
            inlined::pairs(&a.origins, &b.origins),
        ),
    };
    let listed = |(name, program): (&Vec<(String, FileSize)>, &Program)| {
        let shown = |(file, size): &(String, FileSize)| match file.as_str() {
            "" => (program.name.clone(), size.total),
            file => (file.to_owned(), size.total),
        };
        name.iter().map(shown).collect::<Vec<(String, u64)>>()
    };
    let files = [listed((&sizes[0], &programs[0])), listed((&sizes[1], &programs[1]))];
    Size { files, berkeley, pairs, units, origins, waste, top, remarks }
}

fn borrowed<'f, 'a>(sizes: &'f [(String, FileSize<'a>)]) -> Vec<difference::File<'f, 'a>> {
    sizes.iter().map(|(name, size)| (name.clone(), size)).collect()
}

/// A program's file by compile unit and by origin.
#[derive(Default)]
struct Divided {
    /// None without debug information.
    rows: Option<Vec<UnitRow>>,
    origins: Vec<Origin>,
    unread: Vec<String>,
}

fn divided(file: &Read) -> Divided {
    let own = Sections::of(&file.elf);
    let separate = file.separate.as_ref().filter(|_| !own.has_units()).map(Sections::of);
    let sections = separate.unwrap_or(own);
    if !sections.has_units() || file.elf.kind == widthwise_anatomy::elf::RELOCATABLE {
        return Divided::default();
    }
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let units = debug::read(&sections, threads);
    let mut unread = units.unread.clone();
    if units.units.iter().any(|unit| unit.is_split) {
        unread.push(
            "entries of split units are not read for inlined copies and for the units of variables"
                .to_owned(),
        );
    }
    Divided {
        rows: Some(size::units(&file.elf, &file.named, &sections, &units)),
        origins: inlined::origins(&file.elf, &file.named, &units),
        unread,
    }
}

/// The waste of a program and of the libraries that it brings.
fn waste_of(files: &[Read]) -> Vec<Waste> {
    files.iter().flat_map(|file| waste::find(&file.elf, &file.named)).collect()
}
