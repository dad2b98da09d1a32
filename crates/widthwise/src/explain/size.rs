//! The size of both programs' files: rows, compile units, inlined copies, waste.

use std::num::NonZero;

use widthwise_anatomy::debug::{self, Sections};
use widthwise_anatomy::elf::section_flag;
use widthwise_anatomy::size::by_unit::{self, UnitPair, UnitRow};
use widthwise_anatomy::size::inlined::{self, Origin, OriginPair};
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
                "{} is stripped: its sections are not divided among symbols, except for exported ones, and what could be spared is not known.",
                program.name
            ));
        }
    }
    let divided = sides.each_ref().map(|files| divided(&files[0]));
    for (program, side) in programs.iter().zip(&divided) {
        remarks.extend(side.unread.iter().map(|reason| format!("{}: {reason}.", program.name)));
    }
    let are_symbols_known = sides.iter().all(|files| files[0].has_symbols());
    let waste = match are_symbols_known {
        true => waste::pairs(waste_of(&sides[0]), waste_of(&sides[1])),
        false => Vec::new(),
    };
    let names = programs.each_ref().map(|program| program.name.as_str());
    let (units, origins) = compared(names, divided, &mut remarks);
    let listed = |(name, program): (&Vec<(String, FileSize)>, &Program)| {
        let shown = |(file, size): &(String, FileSize)| match file.as_str() {
            "" => (program.name.clone(), size.total),
            file => (file.to_owned(), size.total),
        };
        name.iter().map(shown).collect::<Vec<(String, u64)>>()
    };
    let files = [listed((&sizes[0], &programs[0])), listed((&sizes[1], &programs[1]))];
    Size { files, berkeley, pairs, units, origins, waste, are_symbols_known, top, remarks }
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
    /// Some units are in other files, and only their names and addresses are known.
    is_split: bool,
    /// The units of the debug information itself are not known.
    is_compressed: bool,
}

/// The compile units and the origins of both programs. What is known of one only is not compared: a remark says why.
fn compared(
    names: [&str; 2],
    mut sides: [Divided; 2],
    remarks: &mut Vec<String>,
) -> (Vec<UnitPair>, Vec<OriginPair>) {
    let is_alone = |is: [bool; 2]| [0, 1].into_iter().find(|side| is[*side] && !is[1 - *side]);
    let nothing = (Vec::new(), Vec::new());
    if let Some(side) = is_alone(sides.each_ref().map(|side| side.rows.is_none())) {
        remarks.push(format!(
            "{} has no debug information: compile units and inlined copies are not compared.",
            names[side]
        ));
        return nothing;
    }
    if let Some(side) = is_alone(sides.each_ref().map(|side| side.is_split)) {
        remarks.push(format!(
            "{} alone has split debug information: compile units and inlined copies are not compared.",
            names[side]
        ));
        return nothing;
    }
    if let Some(side) = is_alone(sides.each_ref().map(|side| side.is_compressed)) {
        remarks.push(format!(
            "The debug information of {} is compressed: it is not divided among compile units.",
            names[side]
        ));
        for row in sides.iter_mut().flat_map(|side| side.rows.iter_mut().flatten()) {
            if is_debug_information(&row.section) {
                row.unit.clear();
            }
        }
    }
    let [a, b] = &sides;
    let origins = match a.is_split {
        true => Vec::new(),
        false => inlined::pairs(&a.origins, &b.origins),
    };
    match (&a.rows, &b.rows) {
        (Some(a), Some(b)) => (by_unit::pairs(a, b), origins),
        _ => nothing,
    }
}

fn is_debug_information(section: &str) -> bool {
    section.starts_with(".debug") || section.starts_with(".zdebug")
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
    let is_split = units.units.iter().any(|unit| unit.is_split);
    if is_split {
        unread.push(
            "entries of split units are not read for inlined copies and for the units of variables"
                .to_owned(),
        );
    }
    Divided {
        rows: Some(size::units(&file.elf, &file.named, &sections, &units)),
        origins: inlined::origins(&file.elf, &file.named, &units),
        unread,
        is_split,
        is_compressed: file.elf.sections.iter().any(|section| {
            is_debug_information(&section.name)
                && (section.has(section_flag::COMPRESSED) || section.name.starts_with(".z"))
        }),
    }
}

/// The waste of a program and of the libraries that it brings.
fn waste_of(files: &[Read]) -> Vec<Waste> {
    files.iter().flat_map(|file| waste::find(&file.elf, &file.named)).collect()
}
