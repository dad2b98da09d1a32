//! The command line of the verbs that measure: the options of a spec file, with the same model.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::Args;
use widthwise_experiment::model::Directory;
use widthwise_experiment::request::{Check, Request};
use widthwise_experiment::resolve::MEMORY_ROUNDS;
use widthwise_experiment::{
    bytes, duration, percentage, spec, Axis, CacheModel, Located, RequestError, RequestErrorKind,
    SourceLocation,
};

use crate::failure::Failure;
use crate::output::current_folder;
use crate::programs::{self, is_spec};

// The program, its variants and how they are run. (Not a doc comment: clap would use it as the verb's help.)
#[derive(Debug, Args)]
pub struct Arguments {
    /// A C or C++ file, a folder, debian:PACKAGE[=VERSION], a spec file (widthwise.toml), or finished programs
    #[arg(value_name = "PROGRAM", value_parser = text())]
    pub programs: Vec<String>,
    /// Arguments of the program
    #[arg(last = true, value_parser = text())]
    pub arguments: Vec<String>,

    /// Build command, run by the shell (`sh -e`) in a copy of the source; CC, CXX, CFLAGS … are in its environment
    #[arg(long, value_name = "SH", value_parser = text(), help_heading = "Program")]
    build: Option<String>,
    /// Run command, started without a shell; {build}, {binary}, {source} and {work} are replaced
    #[arg(long, value_name = "COMMAND", value_parser = text(), help_heading = "Program")]
    run: Option<String>,
    /// A finished binary instead of source and build; once for each variant
    #[arg(long, value_name = "NAME=FILE", value_parser = text(), help_heading = "Program")]
    binary: Vec<String>,
    /// The program's name in reports
    #[arg(long, value_name = "NAME", help_heading = "Program")]
    name: Option<String>,

    /// ABIs: x86-64,x32,i386; of other processors ppc64,ppc,arm64,armhf,ppc64el,riscv64,s390x, under emulation
    #[arg(long, value_name = "ABI,…", help_heading = "Axes")]
    abi: Vec<String>,
    /// Compilers: gcc-12,clang-14, or all
    #[arg(long, value_name = "NAME,…", help_heading = "Axes")]
    compiler: Vec<String>,
    /// Compiler options, or a named set (lto, fast-math, native, pgo); once for each value
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Axes")]
    flags: Vec<String>,
    /// Allocators: glibc,jemalloc,mimalloc,tcmalloc
    #[arg(long, value_name = "NAME,…", help_heading = "Axes")]
    allocator: Vec<String>,
    /// Transparent huge pages: system,always,madvise,never
    #[arg(long, value_name = "MODE,…", help_heading = "Axes")]
    thp: Vec<String>,
    /// Named sets of environment variables; `default` is none
    #[arg(long, value_name = "NAME,…", help_heading = "Axes")]
    env: Vec<String>,
    /// Kernels: host, debian:amd64, debian:686-pae, debian:amd64+x32, or a bzImage's path; all but host in an emulated machine
    #[arg(long, value_name = "KERNEL,…", help_heading = "Axes")]
    kernel: Vec<String>,
    /// Combinations to leave out of the matrix, such as abi=x32,compiler=clang-14; once for each
    #[arg(long, value_name = "AXIS=VALUE,…", help_heading = "Axes")]
    exclude: Vec<String>,
    /// The variant that the others are compared with (default: the first)
    #[arg(long, value_name = "VARIANT", help_heading = "Axes")]
    baseline: Option<String>,
    /// Any line of a spec file, such as 'env.tuned.MALLOC_ARENA_MAX = "1"'; once for each
    #[arg(long, value_name = "TOML", help_heading = "Axes")]
    set: Vec<String>,

    /// Standard input of the program
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    stdin: Option<PathBuf>,
    /// Working directory: here, fresh (a new one for each run), or a path
    #[arg(long, value_name = "WHERE", help_heading = "Run")]
    directory: Option<String>,
    /// A file that the program reads; once for each
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    input: Vec<PathBuf>,
    /// Set an environment variable for every variant; once for each
    #[arg(long, value_name = "NAME=VALUE", value_parser = text(), help_heading = "Run")]
    set_env: Vec<String>,
    /// Shell command before each run, not timed; its background processes are killed after the teardown
    #[arg(long, value_name = "SH", value_parser = text(), help_heading = "Run")]
    setup: Option<String>,
    /// Shell command after each run, not timed
    #[arg(long, value_name = "SH", value_parser = text(), help_heading = "Run")]
    teardown: Option<String>,
    /// Kill a run that lasts longer (default: 10m)
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    timeout: Option<String>,
    /// End an emulated machine whose kernel has not started its first process after this time (default: 4m)
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    boot_timeout: Option<String>,
    /// The exit status that counts as success (default: 0)
    #[arg(long, value_name = "STATUS", help_heading = "Run")]
    exit_status: Option<i32>,
    /// Switch off address space layout randomisation for the program
    #[arg(long, help_heading = "Run")]
    no_aslr: bool,

    /// Stop after this number of timed rounds
    #[arg(long, value_name = "N", help_heading = "Measure")]
    pub rounds: Option<u32>,
    /// Stop when CPU time and peak memory (`scale`: every throughput) have intervals of at most ± this
    #[arg(long, value_name = "PERCENT", help_heading = "Measure")]
    pub precision: Option<String>,
    /// Stop after the round in which this time is reached (without it, `--rounds` and `--precision`: after 100 rounds, at ±1 % or after 5m, whichever comes first)
    #[arg(long, value_name = "TIME", help_heading = "Measure")]
    pub max_time: Option<String>,
    /// Rounds before the timed ones (default: 1)
    #[arg(long, value_name = "N", help_heading = "Measure")]
    warmup: Option<u32>,
    /// Read memory over time, in separate rounds after the timed ones (6, or this number; `scale` does so in 1 without this option, and 0 is none)
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, help_heading = "Measure")]
    memory: Option<Option<u32>>,
    /// Confidence of the intervals (default: 95%)
    #[arg(long, value_name = "PERCENT", help_heading = "Measure")]
    confidence: Option<String>,
    /// Report no difference if the whole interval lies within ± this (default: 1%)
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, help_heading = "Measure")]
    equal_within: Option<String>,
    /// Also count the instructions of emulated machines by class
    #[arg(long, help_heading = "Measure")]
    instruction_classes: bool,
    /// Also count the misses of modelled caches on emulated kernels: those of this machine (host), or of a named processor
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "host", help_heading = "Measure")]
    cache_model: Option<String>,
    /// Also time the programs on other kernels, each run in a boot of its own under KVM (`doctor` says whether it works here)
    #[arg(long, help_heading = "Measure")]
    kvm: bool,
    /// Seed of the random orders, paddings and resampling
    #[arg(long, value_name = "N", help_heading = "Measure")]
    seed: Option<u64>,

    /// What to compare between variants: stdout, or off
    #[arg(long, value_name = "WHAT", help_heading = "Output check")]
    check: Option<String>,
    /// A file that each run writes, compared instead of its standard output; once for each
    #[arg(long, value_name = "FILE", help_heading = "Output check")]
    check_file: Vec<PathBuf>,
    /// Shell command that filters each output before it is compared
    #[arg(long, value_name = "SH", value_parser = text(), help_heading = "Output check")]
    filter: Option<String>,
    /// Give verdicts also on variants with a different output; the report notes the mismatch
    #[arg(long, help_heading = "Output check")]
    allow_different_output: bool,
}

impl Arguments {
    /// The request: the spec file's values, overridden by the command line's, with absolute paths. `further` adds the flags of
    /// one verb.
    pub fn request(
        &self,
        further: impl FnOnce(&mut Request) -> Result<(), RequestError>,
    ) -> Result<Request, Failure> {
        let here = current_folder()?;
        let (from_file, spec_folder) = match self.programs.as_slice() {
            [program] if is_spec(program) => read_spec(&bytes::path(program), &here)?,
            _ => (Request::default(), here.clone()),
        };
        let mut location = self.location().map_err(Failure::request)?;
        let is_built = location.program.build.is_some();
        let has_run = location.program.run.is_some();
        programs::say(&self.programs, is_built, has_run, &mut location)?;
        further(&mut location).map_err(Failure::request)?;
        let request = from_file.overlay(location).anchored(&spec_folder, &here);
        match self.programs.as_slice() {
            [spec] if request.program.source.is_none() && request.program.binaries.is_empty() => {
                Err(Failure::request(format!("{}: {}", bytes::shown(spec), RequestErrorKind::NoProgram)))
            }
            _ => Ok(request),
        }
    }

    /// The flags' part of the request.
    fn location(&self) -> Result<Request, RequestError> {
        let mut request = if self.set.is_empty() { Request::default() } else { spec::parse_set(&self.set)? };
        let text = |value: &Option<String>, flag| {
            value.clone().map(|value| Located::new(value, SourceLocation::Flag(flag)))
        };
        set(&mut request.program.name, text(&self.name, "--name"));
        set(&mut request.program.build, text(&self.build, "--build"));
        set(&mut request.program.run, text(&self.run, "--run"));
        if !self.arguments.is_empty() {
            request.program.arguments =
                Some(Located::new(self.arguments.clone(), SourceLocation::Flag("--")));
        }
        for binary in &self.binary {
            request.add_binary(binary, SourceLocation::Flag("--binary"))?;
        }
        for (axis, values, flag) in [
            (Axis::Abi, &self.abi, "--abi"),
            (Axis::Compiler, &self.compiler, "--compiler"),
            (Axis::Allocator, &self.allocator, "--allocator"),
            (Axis::Thp, &self.thp, "--thp"),
            (Axis::Env, &self.env, "--env"),
            (Axis::Kernel, &self.kernel, "--kernel"),
        ] {
            for value in values.iter().flat_map(|values| values.split(',')) {
                request.add_axis_value(axis, value, SourceLocation::Flag(flag))?;
            }
        }
        for value in &self.flags {
            request.add_axis_value(Axis::Flags, value, SourceLocation::Flag("--flags"))?;
        }
        for point in &self.exclude {
            request.add_exclude(point, SourceLocation::Flag("--exclude"))?;
        }
        self.add_run_options(&mut request)?;
        self.add_measure_options(&mut request)?;
        self.add_output_options(&mut request)?;
        Ok(request)
    }

    fn add_run_options(&self, request: &mut Request) -> Result<(), RequestError> {
        let text = |value: &Option<String>, flag| {
            value.clone().map(|value| Located::new(value, SourceLocation::Flag(flag)))
        };
        let run = &mut request.run;
        set(
            &mut run.stdin,
            self.stdin.clone().map(|path| Located::new(path, SourceLocation::Flag("--stdin"))),
        );
        set(
            &mut run.directory,
            self.directory
                .as_deref()
                .map(|word| Located::new(directory(word), SourceLocation::Flag("--directory"))),
        );
        run.inputs.extend(
            self.input.iter().map(|path| Located::new(path.clone(), SourceLocation::Flag("--input"))),
        );
        set(&mut run.setup, text(&self.setup, "--setup"));
        set(&mut run.teardown, text(&self.teardown, "--teardown"));
        set(&mut run.timeout, read(&self.timeout, "--timeout", duration::parse)?);
        set(&mut run.boot_timeout, read(&self.boot_timeout, "--boot-timeout", duration::parse)?);
        set(
            &mut run.exit_status,
            self.exit_status.map(|n| Located::new(n, SourceLocation::Flag("--exit-status"))),
        );
        set(&mut run.no_aslr, self.no_aslr.then(|| Located::new(true, SourceLocation::Flag("--no-aslr"))));
        for variable in &self.set_env {
            request.set_variable(variable, SourceLocation::Flag("--set-env"))?;
        }
        Ok(())
    }

    fn add_measure_options(&self, request: &mut Request) -> Result<(), RequestError> {
        self.add_stopping(request)?;
        self.add_memory(request);
        let measure = &mut request.measure;
        set(&mut measure.warmup, self.warmup.map(|n| Located::new(n, SourceLocation::Flag("--warmup"))));
        set(&mut measure.confidence, read(&self.confidence, "--confidence", percentage::parse)?);
        set(&mut measure.equal_within, read(&self.equal_within, "--equal-within", percentage::parse)?);
        let classes = self.instruction_classes;
        set(
            &mut measure.instruction_classes,
            classes.then(|| Located::new(true, SourceLocation::Flag("--instruction-classes"))),
        );
        set(&mut measure.cache_model, read(&self.cache_model, "--cache-model", cache_model)?);
        set(&mut measure.kvm, self.kvm.then(|| Located::new(true, SourceLocation::Flag("--kvm"))));
        set(&mut measure.seed, self.seed.map(|n| Located::new(n, SourceLocation::Flag("--seed"))));
        set(
            &mut measure.baseline,
            self.baseline.clone().map(|name| Located::new(name, SourceLocation::Flag("--baseline"))),
        );
        Ok(())
    }

    /// The stopping rule alone, which may change on resume.
    fn add_stopping(&self, request: &mut Request) -> Result<(), RequestError> {
        let measure = &mut request.measure;
        set(&mut measure.rounds, self.rounds.map(|n| Located::new(n, SourceLocation::Flag("--rounds"))));
        set(&mut measure.precision, read(&self.precision, "--precision", percentage::parse)?);
        set(&mut measure.max_time, read(&self.max_time, "--max-time", duration::parse)?);
        Ok(())
    }

    /// The rounds of the memory series, which `compare` may add on resume.
    fn add_memory(&self, request: &mut Request) {
        let rounds = self.memory.map(|rounds| rounds.unwrap_or(MEMORY_ROUNDS));
        set(
            &mut request.measure.memory,
            rounds.map(|rounds| Located::new(rounds, SourceLocation::Flag("--memory"))),
        );
    }

    /// The resumed request, with a new stopping rule and rounds of the memory series if these were given, and whether any was.
    pub fn resumed(&self, mut request: Request) -> Result<(Request, bool), Failure> {
        let mut stopping = Request::default();
        self.add_stopping(&mut stopping).map_err(Failure::request)?;
        let is_new = stopping != Request::default();
        if is_new {
            request.measure.rounds = stopping.measure.rounds;
            request.measure.precision = stopping.measure.precision;
            request.measure.max_time = stopping.measure.max_time;
        }
        // Rounds that were made stay in the campaign.
        let before = request.measure.memory.as_ref().map_or(0, |rounds| rounds.value);
        let adds_memory = self.memory.is_some_and(|rounds| rounds.unwrap_or(MEMORY_ROUNDS) > before);
        if adds_memory {
            self.add_memory(&mut request);
        }
        Ok((request, is_new || adds_memory))
    }

    fn add_output_options(&self, request: &mut Request) -> Result<(), RequestError> {
        let output = &mut request.output;
        set(&mut output.check, read(&self.check, "--check", check_named)?);
        output.files.extend(
            self.check_file
                .iter()
                .map(|path| Located::new(path.clone(), SourceLocation::Flag("--check-file"))),
        );
        set(
            &mut output.filter,
            self.filter.clone().map(|text| Located::new(text, SourceLocation::Flag("--filter"))),
        );
        set(
            &mut output.allow_different,
            self.allow_different_output
                .then(|| Located::new(true, SourceLocation::Flag("--allow-different-output"))),
        );
        Ok(())
    }

    /// Refuses a request without a program.
    pub fn name_something(&self, verb: &str) -> Result<(), Failure> {
        if !self.programs.is_empty() || !self.binary.is_empty() {
            return Ok(());
        }
        Err(Failure::request(format!(
            "nothing to measure: name a C or C++ file, a folder, debian:PACKAGE, a widthwise.toml or finished programs; \
             `widthwise {verb} --help` has examples"
        )))
    }

    /// Whether any option was given besides the stopping rule, and rounds of the memory series where these are allowed.
    pub fn asks_more_than_resuming(&self, allows_memory: bool) -> bool {
        let mut allowed = Request::default();
        if allows_memory {
            self.add_memory(&mut allowed);
        }
        match (self.location(), self.add_stopping(&mut allowed)) {
            (Ok(location), Ok(())) => location != allowed || !self.programs.is_empty(),
            _ => true,
        }
    }
}

/// A spec file, and the folder of its relative paths.
fn read_spec(path: &Path, here: &Path) -> Result<(Request, PathBuf), Failure> {
    let shown = bytes::shown_path(path);
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::request(format!("{shown}: {error}")))?;
    let request = spec::parse(&text, &shown).map_err(Failure::request)?;
    let folder = path.parent().map_or_else(|| here.to_owned(), |parent| here.join(parent));
    Ok((request, folder))
}

/// A word of the command line, as bytes.
pub fn text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(bytes::text)
}

/// The command line, for reports.
pub fn typed() -> Vec<String> {
    std::env::args_os().map(bytes::text).collect()
}

pub fn set<T>(place: &mut Option<Located<T>>, value: Option<Located<T>>) {
    if value.is_some() {
        *place = value;
    }
}

fn cache_model(name: &str) -> Result<CacheModel, RequestErrorKind> {
    CacheModel::find(name).ok_or_else(|| RequestErrorKind::Unknown {
        what: "cache model",
        name: name.to_owned(),
        known: CacheModel::all().map(|model| model.name().to_owned()).collect(),
    })
}

pub fn read<T>(
    text: &Option<String>,
    flag: &'static str,
    parse: fn(&str) -> Result<T, RequestErrorKind>,
) -> Result<Option<Located<T>>, RequestError> {
    let location = SourceLocation::Flag(flag);
    text.as_deref()
        .map(|text| {
            parse(text)
                .map(|value| Located::new(value, location.clone()))
                .map_err(|kind_of_error| location.wrong(kind_of_error))
        })
        .transpose()
}

fn directory(word: &str) -> Directory {
    match word {
        "here" => Directory::Here,
        "fresh" => Directory::Fresh,
        path => Directory::Path(path.into()),
    }
}

fn check_named(name: &str) -> Result<Check, RequestErrorKind> {
    one_of("kind of check", name, &Check::ALL, Check::name)
}

pub fn one_of<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    name_of: fn(T) -> &'static str,
) -> Result<T, RequestErrorKind> {
    all.iter().copied().find(|one| name_of(*one) == name).ok_or_else(|| RequestErrorKind::Unknown {
        what,
        name: name.to_owned(),
        known: all.iter().map(|one| name_of(*one).to_owned()).collect(),
    })
}
