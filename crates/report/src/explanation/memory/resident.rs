//! Resident memory of one variant at its peak, by use.

use std::collections::BTreeMap;

use widthwise_experiment::memory::{Amounts, Class, Part, Reading, Series, AT_PEAK};

/// What resident memory is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// All mappings of a class.
    Class(Class),
    /// One library, by its file name.
    Library(String),
    /// A part of the program file's read-only pages, by its name.
    ProgramFile(String),
}

impl Use {
    /// Its name for readers.
    pub fn title(&self) -> String {
        match self {
            Use::Class(Class::Heap) => "heap (brk)".to_owned(),
            Use::ProgramFile(name) if name == Part::CODE => {
                "executable pages of the program's file".to_owned()
            }
            Use::ProgramFile(name) if name == Part::CONSTANTS => {
                "read-only data of the program's file".to_owned()
            }
            // Recordings of earlier versions do not divide them.
            Use::Class(Class::ProgramText) | Use::ProgramFile(_) => {
                "read-only pages of the program's file".to_owned()
            }
            Use::Class(Class::ProgramData) => "variables of the program".to_owned(),
            Use::Class(class) => class.title().to_owned(),
            Use::Library(name) if name == LOADER => "pages of the dynamic loader".to_owned(),
            Use::Library(name) => format!("pages of {name}"),
        }
    }

    /// Where it is; empty where its name says so.
    pub fn place(&self) -> &'static str {
        match self {
            Use::ProgramFile(name) if name == Part::CONSTANTS => ".rodata, relocations",
            Use::Class(Class::ProgramText) => "code, constants, relocations",
            _ => "",
        }
    }

    /// Its name in the JSON.
    pub fn name(&self) -> String {
        match self {
            Use::Class(class) => class.name().to_owned(),
            Use::Library(name) => format!("library {name}"),
            Use::ProgramFile(name) => format!("{} {name}", Class::ProgramText.name()),
        }
    }
}

/// The dynamic loader, whose file has another name in each ABI.
const LOADER: &str = "ld.so";

/// Where the amounts are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The memory series: a run without a recorder.
    Series,
    /// The readings of a recorded run.
    Recording,
}

/// The largest reading of a run: resident bytes by use, without the x32 runtime's and the recorder's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Resident {
    /// Bytes; uses without any are absent.
    pub bytes: BTreeMap<Use, u64>,
    /// Where they are from.
    pub origin: Origin,
    /// How many processes the tree had.
    pub processes: usize,
    /// The share of the run's own peak that the reading has, 0 to 1.
    pub share: f64,
    /// Whether some of it may be in huge pages, which are resident as a whole: some were read, or the variant's setting asks for them.
    pub has_huge_pages: bool,
}

impl Resident {
    /// From a reading of a memory series, at the peak.
    pub fn of_series(series: &Series, reading: &Reading) -> Resident {
        let part =
            |(index, amounts): &(usize, Amounts)| Some((series.parts.get(*index)?.clone(), amounts.resident));
        let bytes = by_use(reading.parts.iter().filter_map(part));
        let processes = reading.processes.len();
        let has_huge_pages = reading.full && reading.tree.huge > 0;
        Resident { bytes, origin: Origin::Series, processes, share: 1.0, has_huge_pages }
    }

    /// From a reading of a recorded run, at the peak.
    pub fn of_recording(parts: impl IntoIterator<Item = (Part, u64)>, processes: usize) -> Resident {
        let bytes = by_use(parts);
        Resident { bytes, origin: Origin::Recording, processes, share: 1.0, has_huge_pages: false }
    }

    /// The same with that share of the run's own peak.
    pub fn at(self, share: f64) -> Resident {
        Resident { share, ..self }
    }

    /// The same with huge pages, if the variant's setting asks for them.
    pub fn asking_for_huge_pages(self, asks: bool) -> Resident {
        Resident { has_huge_pages: self.has_huge_pages || asks, ..self }
    }

    /// Bytes of that use.
    pub fn of(&self, of: &Use) -> i64 {
        self.bytes.get(of).copied().unwrap_or(0) as i64
    }

    /// Of all uses.
    pub fn total(&self) -> i64 {
        self.bytes.values().sum::<u64>() as i64
    }

    /// Whether it counts as a reading of the peak.
    pub fn is_at_peak(&self) -> bool {
        self.share >= AT_PEAK
    }

    /// What the run's own peak has and the reading lacks. A reading that counts as one of the peak may lack a few per cent of it, too.
    pub fn lacks(&self) -> u64 {
        let total = self.total() as f64;
        (total / self.share - total) as u64
    }
}

fn by_use(parts: impl IntoIterator<Item = (Part, u64)>) -> BTreeMap<Use, u64> {
    let mut by_use = BTreeMap::new();
    for (part, bytes) in parts {
        if !matches!(part.class, Class::Runtime | Class::Recorder) && bytes > 0 {
            let sum: &mut u64 = by_use.entry(of_part(&part)).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    by_use
}

fn of_part(part: &Part) -> Use {
    match part.class {
        Class::Library if part.name.is_empty() => Use::Class(Class::Library),
        Class::Library if is_loader(&part.name) => Use::Library(LOADER.to_owned()),
        Class::Library => Use::Library(part.name.clone()),
        Class::ProgramText if !part.name.is_empty() => Use::ProgramFile(part.name.clone()),
        class => Use::Class(class),
    }
}

/// `ld-linux-x86-64.so.2`, `ld-linux-x32.so.2`, `ld-linux.so.2`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld-linux") || name.starts_with("ld64.so") || name == "ld.so.1"
}
