//! Two programs side by side: what their files say.

use std::path::{Path, PathBuf};

use widthwise_anatomy::code::{self, compare, Code};
use widthwise_anatomy::elf::{separate, Elf};
use widthwise_anatomy::layout::Weights;
use widthwise_anatomy::size::variables;
use widthwise_report::explanation;
use widthwise_report::explanation::layout::Drawn;
use widthwise_report::explanation::memory::Variable;

use super::mapped::{is_elf_file, is_file_name, MappedFile};
use super::own_libraries;
use super::program::{Program, Read};
use crate::failure::Failure;

/// The two programs that are named as files; none where no name is a program's. A bare name may be a variant's or a
/// recording's: it is a program's only beside another.
///
/// # Errors
/// One is a program, and the other is something else.
pub fn named(names: &[String]) -> Result<Option<[Program; 2]>, Failure> {
    let is_elf = |name: &String| is_elf_file(Path::new(name));
    let is_named_as_file = names.iter().any(|name| is_file_name(name) && is_elf(name));
    if !is_named_as_file && (names.len() != 2 || !names.iter().all(is_elf)) {
        return Ok(None);
    }
    let [a, b] = names else {
        return Err(Failure::request(format!(
            "explain compares two programs; there {}",
            match names.len() {
                1 => "is one: name the other, too".to_owned(),
                more => format!("are {more}"),
            }
        )));
    };
    if let Some(other) = names.iter().find(|name| !is_file_name(name) && !Path::new(name).exists()) {
        return Err(Failure::request(format!(
            "\"{other}\" is no file, and the other name is a program's: explain compares two variants, or two files"
        )));
    }
    let program = |name: &String| Program { name: name.clone(), path: PathBuf::from(name) };
    Ok(Some([program(a), program(b)]))
}

/// The files of one side.
struct Files {
    program: MappedFile,
    /// The file that a stripped program's symbols and debug information were moved to.
    separate: Option<MappedFile>,
    libraries: Vec<(String, MappedFile)>,
}

impl Files {
    fn open(program: &Program) -> Result<Files, Failure> {
        let program = MappedFile::open(&program.path)?;
        let libraries = own_libraries::libraries(&program)?;
        let separate = separate(&program)?;
        Ok(Files { program, separate, libraries })
    }

    /// All files with their headers: the program without a name, then the libraries.
    fn read(&self) -> Result<Vec<Read<'_>>, Failure> {
        let separate = self.separate.as_ref().map(MappedFile::elf).transpose()?;
        let mut all = vec![Read::of(String::new(), self.program.elf()?).with_separate(separate)];
        for (name, file) in &self.libraries {
            all.push(Read::of(name.clone(), file.elf()?));
        }
        Ok(all)
    }
}

/// The separate file of a stripped program; none where no file is the one that the program names.
fn separate(program: &MappedFile) -> Result<Option<MappedFile>, Failure> {
    let elf = program.elf()?;
    if !elf.is_stripped() {
        return Ok(None);
    }
    let link = elf.debug_link();
    let link = link.as_ref().map(|(name, crc)| (name.as_path(), *crc));
    let is_for_it = |other: &Elf| other.machine == elf.machine && other.is_64 == elf.is_64;
    let found = separate::find(&program.path, elf.build_id(), link, is_for_it);
    found.map(|path| MappedFile::open(&path)).transpose()
}

/// The files of two programs, mapped.
pub struct Programs<'p> {
    programs: &'p [Program; 2],
    files: [Files; 2],
}

/// What the files of two programs say.
#[derive(Default)]
pub struct Sections<'p> {
    /// Size, code and layout, those of them that can be said.
    pub sections: Vec<Box<dyn explanation::Section + 'p>>,
    /// Types of both, drawn.
    pub structures: Vec<Drawn>,
    /// The variables of both.
    pub variables: Vec<Variable>,
    /// What is not said, and why.
    pub remarks: Vec<String>,
}

impl<'p> Programs<'p> {
    /// Maps the files of both.
    ///
    /// # Errors
    /// A file cannot be read, or is no program.
    pub fn open(programs: &'p [Program; 2]) -> Result<Programs<'p>, Failure> {
        Ok(Programs { programs, files: [Files::open(&programs[0])?, Files::open(&programs[1])?] })
    }

    fn names(&self) -> [&'p str; 2] {
        self.programs.each_ref().map(|program| program.name.as_str())
    }

    fn paths(&self) -> [&'p Path; 2] {
        self.programs.each_ref().map(|program| program.path.as_path())
    }

    fn read(&self) -> Result<[Vec<Read<'_>>; 2], Failure> {
        Ok([self.files[0].read()?, self.files[1].read()?])
    }

    /// The sections on both programs' files, with tables of `top` rows. `objects` are the live objects of each type at the
    /// heap's peak; none without a recording.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn sections(&self, top: usize, objects: &Weights) -> Result<Sections<'p>, Failure> {
        let sides = self.read()?;
        let (code, mut remarks) = code_section(self.programs, &sides, top);
        remarks.extend(code.as_ref().and_then(|code| another_program(self.programs, code)));
        let mut sections: Vec<Box<dyn explanation::Section + 'p>> =
            vec![Box::new(super::size::section(self.programs, &sides, top))];
        if let Some(code) = code {
            sections.push(Box::new(code));
        }
        let mut structures = Vec::new();
        match super::layout::section(self.names(), self.paths(), top, objects) {
            Ok((layout, drawn)) => {
                sections.push(Box::new(layout));
                structures = drawn;
            }
            Err(reason) => remarks.push(format!("The layouts of structures are not compared: {reason}.")),
        }
        let [a, b] = sides.each_ref().map(|files| (&files[0].elf, files[0].named.as_slice()));
        let variable =
            |one: variables::Variable| Variable { name: one.name, section: one.section, bytes: one.bytes };
        let variables = variables::pairs(a, b).into_iter().map(variable).collect();
        Ok(Sections { sections, structures, variables, remarks })
    }

    /// Prints one function of both, side by side.
    ///
    /// # Errors
    /// No program has it, or several are meant.
    pub fn show_function(&self, function: &str) -> Result<(), Failure> {
        let sides = self.read()?;
        let (code, _) = code_section(self.programs, &sides, 0);
        let elves = sides.each_ref().map(|files| &files[0].elf);
        let named = sides.each_ref().map(|files| files[0].named.as_slice());
        super::function::show(self.programs, elves, named, code.as_ref(), function)
    }

    /// Draws one type of both.
    ///
    /// # Errors
    /// A program has no such type, or several are meant.
    pub fn show_type(&self, name: &str) -> Result<(), Failure> {
        // A damaged file is refused in the same words as everywhere.
        self.read()?;
        super::layout::show(self.names(), self.paths(), name)
    }
}

/// The code of both programs, without their libraries; or why it is not compared.
fn code_section(
    programs: &[Program; 2],
    sides: &[Vec<Read>; 2],
    top: usize,
) -> (Option<explanation::code::Code>, Vec<String>) {
    let mut remarks = Vec::new();
    let mut codes: Vec<Code> = Vec::new();
    for (program, files) in programs.iter().zip(sides) {
        match code::read(&files[0].elf, &files[0].named) {
            Ok(code) => codes.push(code),
            Err(error) => remarks.push(format!("The code of {} is not compared: {error}.", program.name)),
        }
    }
    let [a, b] = codes.as_slice() else { return (None, remarks) };
    let mut notes = Vec::new();
    for (program, code) in programs.iter().zip([a, b]) {
        if !code.has_symbols {
            notes.push(format!(
                "{} has no symbols: its functions are unknown, and data in its code counts as instructions.",
                program.name
            ));
        }
    }
    let section = explanation::code::Code {
        architectures: [a.architecture.to_owned(), b.architecture.to_owned()],
        totals: [a.total(), b.total()],
        undecoded: [a.undecoded, b.undecoded],
        pairs: compare::pairs(a, b),
        are_functions_known: a.has_symbols && b.has_symbols,
        top,
        remarks: notes,
    };
    (Some(section), remarks)
}

/// A warning where the programs have so few functions in common that they may not be one program.
fn another_program(programs: &[Program; 2], code: &explanation::code::Code) -> Option<String> {
    /// Below this share of common functions, of the side with fewer.
    const LEAST: f64 = 0.2;
    /// The start code alone has some.
    const FEWEST: usize = 10;
    let of =
        |side: usize| code.pairs.iter().filter(move |pair| pair.copies[side] > 0 && !pair.name.is_empty());
    let fewest = of(0).count().min(of(1).count());
    let common = of(0).filter(|pair| pair.copies[1] > 0).count();
    if fewest > 0 && common == 0 {
        return Some(format!(
            "{} and {} have no function in common: they are not the same program.",
            programs[0].name, programs[1].name
        ));
    }
    (fewest >= FEWEST && (common as f64) < LEAST * fewest as f64).then(|| {
        format!(
            "{} and {} have {common} of {fewest} functions in common: they may not be the same program.",
            programs[0].name, programs[1].name
        )
    })
}
