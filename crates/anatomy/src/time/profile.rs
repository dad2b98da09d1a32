//! The functions of a variant: the counts of all processes of a run, added up.

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::callgrind::{is_stub, symbol, Cost, Output};
use super::counts::Counts;
use super::mappings::Mappings;
use super::module::Module;
use super::place::{file_name, Place};
use super::symbols::{Code, CodeNames};
use crate::names::{self, SymbolNames};

/// What cannot be added up.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ProfileError {
    /// The x32 runtime is not to be told from the program.
    #[error("what the x32 runtime did itself cannot be told from what the program did")]
    NoRuntime,
    /// There is no file.
    #[error("valgrind left no counts")]
    Nothing,
}

/// What one function costs itself, over all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The object file.
    pub module: Module,
    /// The key by which it is found in the same build; empty for code without a name.
    pub key: String,
    /// The key by which it is looked for in another build.
    pub common: String,
    /// The demangled name; empty for code without a name.
    pub name: String,
    /// The source file, which tells functions of one name apart that are local to their files; empty where unknown.
    pub file: String,
    /// Whether Valgrind alone says the file: it may have several functions of one name as one, with the file of one of them.
    pub is_labelled: bool,
    /// Its source file and its line there, where known.
    pub place: Option<Place>,
    /// The counts.
    pub counts: Counts,
}

/// Where a function's source file is known from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Source {
    /// The line table of the object file, at the function's first instruction. A path.
    Lines(String),
    /// The symbol table of the object file, for functions that are local to a file. A name without folders.
    Symbols(String),
    /// The same, for a part that the compiler made of a function. The function itself may be of a file that this one includes.
    Part(String),
    /// Valgrind's counts, where the object file is not to be read: the file of the first code, which may be an inlined copy, of one of
    /// the functions that Valgrind takes for this one. A path.
    Label(String),
    Unknown,
}

impl Source {
    fn path(&self) -> Option<&str> {
        match self {
            Source::Lines(path) | Source::Label(path) => Some(path),
            _ => None,
        }
    }

    /// Where the source file of code is known from that its object file names.
    fn of_code(symbol: &str, file: &str, place: Option<&Place>) -> Source {
        match (is_part(symbol), place, file) {
            (true, _, "") | (false, None, "") => Source::Unknown,
            (true, ..) => Source::Part(file.to_owned()),
            (false, Some(place), _) => Source::Lines(place.file.clone()),
            (false, None, _) => Source::Symbols(file.to_owned()),
        }
    }
}

impl Function {
    /// Functions of one name as one. Its file and its place are unknown if they are in several files.
    pub(super) fn merged(functions: &[&Function]) -> Option<Function> {
        let mut known = functions.iter().filter(|function| !function.file.is_empty());
        let first = known.next().or(functions.first())?;
        let is_one_file = known.all(|function| function.file == first.file);
        let places: Vec<&Place> = functions.iter().filter_map(|function| function.place.as_ref()).collect();
        let is_one_place = places.windows(2).all(|two| two[0].file_name() == two[1].file_name());
        let place = places.iter().min_by_key(|place| (place.line.is_none(), place.line));
        Some(Function {
            file: if is_one_file { first.file.clone() } else { String::new() },
            is_labelled: functions.iter().any(|function| function.is_labelled),
            place: place.filter(|_| is_one_file && is_one_place).map(|place| (*place).clone()),
            counts: functions.iter().fold(Counts::default(), |sum, function| sum + function.counts),
            ..(*first).clone()
        })
    }
}

/// The functions of a variant's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    functions: FxHashMap<(Module, String, Source), Function>,
    /// What the x32 runtime and valgrind's own library did: no part of the program.
    pub tool: Counts,
    /// How many processes there were.
    pub processes: usize,
    /// The emulated caches, as [`Output::caches`] has them.
    pub caches: Vec<String>,
}

impl Profile {
    /// All functions, in no order. Of the program, those of one name in several source files are several; what is known to be of one of
    /// them, but not of which, is another.
    pub fn functions(&self) -> impl Iterator<Item = Function> + use<'_> {
        let mut by_name: FxHashMap<(&Module, &str), Vec<(&Source, &Function)>> = FxHashMap::default();
        for ((module, key, source), function) in &self.functions {
            by_name.entry((module, key)).or_default().push((source, function));
        }
        by_name.into_iter().flat_map(|((module, _), functions)| by_file(module, &functions))
    }

    /// The sums over all functions: what the program did, without tools.
    pub fn total(&self) -> Counts {
        self.functions.values().fold(Counts::default(), |sum, function| sum + function.counts)
    }

    /// Adds the counts of a run under valgrind. `maps`: of an x32 program, the files in the memory of each process, by its number;
    /// `programs` are the paths of the measured program.
    ///
    /// # Errors
    /// There are no counts, or they are not the program's alone.
    pub fn add(
        &mut self,
        outputs: &[Output],
        maps: Option<&FxHashMap<u32, Mappings>>,
        programs: &[String],
        names: &mut CodeNames,
    ) -> Result<(), ProfileError> {
        if outputs.is_empty() {
            return Err(ProfileError::Nothing);
        }
        self.caches = outputs.first().map(|output| output.caches.clone()).unwrap_or_default();
        for output in outputs {
            let maps = maps.and_then(|maps| maps.get(&output.process));
            let start = |cost: &Cost| {
                let object = output.object(cost);
                let is_program = Module::of(object, programs) == Module::Program;
                cost.address.filter(|_| is_program).and_then(|address| names.start(object, address))
            };
            for cost in output.by_function(start) {
                self.add_cost(output, &cost, maps, programs, names);
            }
        }
        let mut processes: Vec<u32> = outputs.iter().map(|output| output.process).collect();
        processes.sort_unstable();
        processes.dedup();
        self.processes += processes.len();
        if maps.is_some() && self.tool == Counts::default() {
            return Err(ProfileError::NoRuntime);
        }
        Ok(())
    }

    fn add_cost(
        &mut self,
        output: &Output,
        cost: &Cost,
        maps: Option<&Mappings>,
        programs: &[String],
        names: &mut CodeNames,
    ) {
        let (object, function) = (output.object(cost), output.function(cost));
        if is_stub(function) {
            self.add_function(Module::Stubs, None, Source::Unknown, None, cost.counts);
            return;
        }
        if let (true, Some(maps), Some(address)) = (object.is_empty(), maps, cost.address) {
            let (path, offset) = maps.resolve(address).unwrap_or_default();
            self.add_code(path, offset, cost.counts, programs, names);
            return;
        }
        let module = Module::of(object, programs);
        let code = match cost.address {
            Some(address) if !object.is_empty() => names.at_address(object, address),
            _ => Code::Unnamed,
        };
        let Some(symbol) = symbol(function) else {
            self.add_named(module, code, cost.counts);
            return;
        };
        let (label, labelled) = match output.file(cost) {
            "" => (Source::Unknown, None),
            file => (Source::Label(file.to_owned()), Some(Place { file: file.to_owned(), line: None })),
        };
        let (source, place) = match code {
            // The file may be another one than valgrind read.
            Code::Function { symbol: own, file, place } if is_same(own, symbol) => {
                (Source::of_code(own, file, place.as_ref()), place)
            }
            _ => (label, None),
        };
        self.add_function(module, Some(symbol), source, place.or(labelled), cost.counts);
    }

    /// Adds counts of a code address: an offset in the file at `path`; an empty path is code in no file.
    pub fn add_code(
        &mut self,
        path: &str,
        offset: u64,
        counts: Counts,
        programs: &[String],
        names: &mut CodeNames,
    ) {
        let code = if path.is_empty() { Code::Unnamed } else { names.at_offset(path, offset) };
        self.add_named(Module::of(path, programs), code, counts);
    }

    /// Adds counts of code that its own object file names.
    fn add_named(&mut self, module: Module, code: Code, counts: Counts) {
        let (module, symbol, source, place) = match code {
            // The x32 runtime, and what valgrind adds, stay what they are.
            _ if module == Module::Tool => (module, None, Source::Unknown, None),
            Code::Stub => (Module::Stubs, None, Source::Unknown, None),
            // As valgrind has them, so that they are in one row for every ABI.
            Code::UnknownStub => (Module::Unknown, None, Source::Unknown, None),
            Code::Unnamed => (module, None, Source::Unknown, None),
            Code::Function { symbol, file, place } => {
                (module, Some(symbol), Source::of_code(symbol, file, place.as_ref()), place)
            }
        };
        self.add_function(module, symbol, source, place, counts);
    }

    fn add_function(
        &mut self,
        module: Module,
        symbol: Option<&str>,
        source: Source,
        place: Option<Place>,
        counts: Counts,
    ) {
        if module == Module::Tool {
            self.tool += counts;
            return;
        }
        let symbol = symbol.map(|symbol| symbol.split('@').next().unwrap_or(symbol));
        let SymbolNames { own: key, common, shown: name } = match symbol {
            // The loader is one row: what it does before `main` has a name of its own in every ABI.
            Some(symbol) if !symbol.is_empty() && module != Module::Loader => {
                names::names_of_symbol(symbol.as_bytes())
            }
            _ => SymbolNames::default(),
        };
        // Which of a function's names a library's table gives first is chance.
        let (key, common) = match module {
            Module::Other(_) if !key.is_empty() => (names::function_name_key(&name), names::key(&name)),
            _ => (key, common),
        };
        let source = match (&source, symbol) {
            _ if key.is_empty() => Source::Unknown,
            (Source::Label(_), Some(symbol)) if is_part(symbol) => Source::Unknown,
            _ => source,
        };
        let file = source.path().unwrap_or_default().to_owned();
        let is_labelled = matches!(source, Source::Label(_));
        let entry = self.functions.entry((module.clone(), key.clone(), source));
        let function = entry.or_insert_with(|| Function {
            module,
            key,
            common,
            name,
            file,
            is_labelled,
            place: None,
            counts: Counts::default(),
        });
        function.counts += counts;
        // A part of a function, such as its `.cold`, begins elsewhere.
        if let Some(place) = place.filter(|_| !symbol.is_some_and(is_part)) {
            let is_better = function.place.as_ref().is_none_or(|known| match (known.line, place.line) {
                (Some(line), Some(lower)) => known.file == place.file && lower < line,
                (None, Some(_)) => true,
                (_, None) => false,
            });
            if is_better {
                function.place = Some(place);
            }
        }
    }
}

/// Whether two symbols are of one function.
fn is_same(a: &str, b: &str) -> bool {
    let key = |symbol: &str| {
        let symbol = symbol.split('@').next().unwrap_or(symbol);
        names::names_of_symbol(symbol.as_bytes()).own
    };
    a == b || key(a) == key(b)
}

/// Whether a symbol names a part that the compiler made of a function: its first code may be of another file.
fn is_part(symbol: &str) -> bool {
    let marks = &symbol[names::without_copies(symbol).len()..];
    [".cold", ".part", ".unlikely"].iter().any(|mark| marks.contains(mark))
}

/// The functions of one name, those of each source file as one.
fn by_file(module: &Module, functions: &[(&Source, &Function)]) -> Vec<Function> {
    let distinct = |path: fn(&Source) -> Option<&str>| {
        let mut all: Vec<&str> = functions.iter().filter_map(|(source, _)| path(source)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let mut files = distinct(Source::path);
    let names = distinct(|source| match source {
        Source::Symbols(name) => Some(name),
        _ => None,
    });
    // Of some units there may be no line table.
    let without_path: Vec<&str> =
        names.into_iter().filter(|name| !files.iter().any(|path| file_name(path) == *name)).collect();
    files.extend(without_path);
    let is_several = *module == Module::Program && files.len() > 1;
    let mut by_file: FxHashMap<&str, Vec<&Function>> = FxHashMap::default();
    for (source, function) in functions {
        let file = match source {
            _ if !is_several => "",
            Source::Lines(path) | Source::Label(path) => path,
            Source::Symbols(name) | Source::Part(name) => {
                let mut same = files.iter().filter(|path| file_name(path) == name);
                // Two folders may have files of one name.
                same.next().filter(|_| same.next().is_none()).copied().unwrap_or("")
            }
            Source::Unknown => "",
        };
        by_file.entry(file).or_default().push(function);
    }
    let one_of_each = by_file.into_iter().filter_map(|(file, functions)| {
        let merged = Function::merged(&functions)?;
        Some(if file.is_empty() { merged } else { Function { file: file.to_owned(), ..merged } })
    });
    one_of_each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::callgrind;

    fn output(process: u32, trigger: &str, body: &str, total: u64) -> Output {
        let text = format!(
            "pid: {process}\ncmd: ./x\ndesc: Trigger: {trigger}\nevents: Ir\n{body}\ntotals: {total}\n"
        );
        callgrind::read(text.as_bytes()).expect("a file")
    }

    fn added(outputs: &[Output]) -> Result<Profile, ProfileError> {
        let mut profile = Profile::default();
        let programs = ["/x".to_owned()];
        profile.add(outputs, None, &programs, &mut CodeNames::default()).map(|()| profile)
    }

    fn instructions(profile: &Profile, key: &str) -> u64 {
        profile.functions().filter(|function| function.key == key).map(|one| one.counts.instructions).sum()
    }

    #[test]
    fn a_compilers_copies_and_levels_of_recursion_are_the_function() {
        let body = "ob=/x\nfl=x.c\nfn=_Z4growm\n7 1\nfn=_Z4growm.cold\n9 20\nfn=_Z4growm'2\n5 300";
        let profile = added(&[output(1, "Program termination", body, 321)]).expect("a profile");
        assert_eq!(instructions(&profile, "grow(unsigned long)"), 321);
        let grow = profile.functions().next().expect("a function");
        assert_eq!(grow.name, "grow(unsigned long)");
        assert_eq!(grow.place, Some(Place { file: "x.c".to_owned(), line: None }));
    }

    #[test]
    fn the_loader_is_one_function_and_tools_are_none() {
        let body = "ob=/lib/ld-linux.so.2\nfl=a\nfn=f\n1 5\nfn=g\n1 6\nob=/c/x32run-1\nfn=main\n1 7\nob=/x\nfn=main\n1 8";
        let profile = added(&[output(1, "", body, 26)]).expect("a profile");
        assert_eq!(profile.total().instructions, 19);
        assert_eq!(profile.tool.instructions, 7);
        assert_eq!(instructions(&profile, ""), 11);
        assert_eq!(instructions(&profile, "main"), 8);
    }

    #[test]
    fn stubs_are_one_row_and_no_part_of_their_callers() {
        let body = "ob=/x\nfn=main\n1 5\nob=???\nfn=0x0000000000109040 [PLT]\n0 3\nfn=0x48690f0 [PLT]'2\n0 4\nfn=0x4838000\n0 6";
        let profile = added(&[output(1, "", body, 18)]).expect("a profile");
        let of = |module: Module| {
            let own = profile.functions().filter(|function| function.module == module);
            own.map(|function| (function.name, function.counts.instructions)).collect::<Vec<_>>()
        };
        assert_eq!(of(Module::Stubs), [(String::new(), 7)]);
        assert_eq!(of(Module::Program), [("main".to_owned(), 5)]);
        assert_eq!(of(Module::Unknown), [(String::new(), 6)]);
    }

    #[test]
    fn the_parts_and_processes_of_a_run_are_added_up() {
        let (body, end) = ("fn=f\n1 5", "Program termination");
        let all =
            [output(1, "--dump-before=_Fork", body, 5), output(1, end, body, 5), output(2, end, body, 5)];
        let profile = added(&all).expect("a profile");
        assert_eq!((profile.total().instructions, profile.processes), (15, 2));
        assert_eq!(added(&[]), Err(ProfileError::Nothing));
    }

    #[test]
    fn without_the_runtimes_own_share_nothing_is_said_of_an_x32_program() {
        let maps = FxHashMap::default();
        let mut profile = Profile::default();
        let outputs = [output(1, "", "fn=f\n1 5", 5)];
        let added = profile.add(&outputs, Some(&maps), &[], &mut CodeNames::default());
        assert_eq!(added, Err(ProfileError::NoRuntime));
    }
}
