//! The functions of a variant: the counts of all processes of a run, added up.

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::callgrind::{symbol, Cost, Output};
use super::counts::Counts;
use super::mappings::Mappings;
use super::module::Module;
use super::symbols::CodeNames;
use crate::names::{self, SymbolNames};

/// What cannot be added up.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ProfileError {
    /// A forked process counted what its parent had counted before.
    #[error(
        "several processes have the command \"{0}\", and valgrind did not see a fork: a forked process would count again \
         what its parent counted before"
    )]
    CountedTwice(String),
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
    /// The source file and the lowest line of its own code there, where known.
    pub place: Option<(String, u64)>,
    /// The counts.
    pub counts: Counts,
}

/// The functions of a variant's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    functions: FxHashMap<(Module, String), Function>,
    /// What the x32 runtime and valgrind's own library did: no part of the program.
    pub tool: Counts,
    /// How many processes there were.
    pub processes: usize,
}

impl Profile {
    /// All functions, in no order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// The sums over all functions: what the program did, without tools.
    pub fn total(&self) -> Counts {
        self.functions().fold(Counts::default(), |sum, function| sum + function.counts)
    }

    /// Adds the counts of a run under valgrind. `maps`: of an x32 program, the files in the memory of each process, by its number;
    /// `programs` are the paths of the measured program.
    ///
    /// # Errors
    /// The counts contradict each other, or are not the program's alone.
    pub fn add(
        &mut self,
        outputs: &[Output],
        maps: Option<&FxHashMap<u32, Mappings>>,
        programs: &[String],
        names: &mut CodeNames,
    ) -> Result<(), ProfileError> {
        check(outputs)?;
        for output in outputs {
            let maps = maps.and_then(|maps| maps.get(&output.process));
            for cost in &output.costs {
                self.add_cost(output, cost, maps, programs, names);
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
        let object = output.object(cost);
        if let (true, Some(maps), Some(address)) = (object.is_empty(), maps, cost.address) {
            let (path, offset) = maps.resolve(address).unwrap_or_default();
            self.add_code(path, offset, cost.counts, programs, names);
            return;
        }
        let place = Some((output.file(cost), cost.line)).filter(|(file, line)| !file.is_empty() && *line > 0);
        let place = place.map(|(file, line)| (file.to_owned(), line));
        self.add_function(Module::of(object, programs), symbol(output.function(cost)), place, cost.counts);
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
        let symbol = if path.is_empty() { None } else { names.name(path, offset) };
        self.add_function(Module::of(path, programs), symbol, None, counts);
    }

    fn add_function(
        &mut self,
        module: Module,
        symbol: Option<&str>,
        place: Option<(String, u64)>,
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
        let function = self.functions.entry((module.clone(), key.clone())).or_insert_with(|| Function {
            module,
            key,
            common,
            name,
            place: None,
            counts: Counts::default(),
        });
        function.counts += counts;
        match (&mut function.place, place) {
            (Some((file, line)), Some((other, lower))) if *file == other && lower < *line => *line = lower,
            (known @ None, place @ Some(_)) => *known = place,
            _ => {}
        }
    }
}

/// Refuses counts of which some may be there twice. After fork(2) the child counts on from where its parent stood, unless valgrind
/// wrote the counts and began anew when the fork was entered (`--dump-before`). Programs that are executed begin anew.
fn check(outputs: &[Output]) -> Result<(), ProfileError> {
    if outputs.is_empty() {
        return Err(ProfileError::Nothing);
    }
    for output in outputs {
        let same: Vec<&Output> = outputs.iter().filter(|other| other.command == output.command).collect();
        let several = same.iter().any(|other| other.process != output.process);
        if several && !same.iter().any(|other| other.trigger.starts_with("--dump-before")) {
            return Err(ProfileError::CountedTwice(output.command.clone()));
        }
    }
    Ok(())
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
        assert_eq!(grow.place, Some(("x.c".to_owned(), 5)));
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
    fn processes_that_may_have_counted_twice_are_refused() {
        let body = "fn=f\n1 5";
        let end = "Program termination";
        let two = [output(1, end, body, 5), output(2, end, body, 5)];
        assert_eq!(added(&two), Err(ProfileError::CountedTwice("./x".to_owned())));
        let seen =
            [output(1, "--dump-before=_Fork", body, 5), output(1, end, body, 5), output(2, end, body, 5)];
        let profile = added(&seen).expect("a profile");
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
