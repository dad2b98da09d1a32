//! The request, before defaults are filled in.
//!
//! A spec file and the command line have the same content and both become one of these. A value that is not given is
//! absent (or, for a list, empty).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::axis::Axis;
use crate::bytes;
use crate::cache_model::CacheModel;
use crate::kernel::Kernel;
use crate::location::{Located, SourceLocation};
use crate::metric::{self, Metric, METRICS};
use crate::model::{Cpus, Directory, Estimator};
use crate::names::{check_name, check_variable};
use crate::placeholder::{self, Stage};
use crate::point::{self, Point, EVERY};
use crate::reported_metric::ReportedMetric;
use crate::request_error::{RequestError, RequestErrorKind};
use crate::schedule::Order;
use crate::source::ProgramSource;

/// The request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// `[program]`: what is measured.
    pub program: ProgramRequest,
    /// `[axes]`: the values of each axis, in the user's order.
    pub axes: BTreeMap<Axis, Vec<Located<String>>>,
    /// `[flags.NAME]`: named flag sets.
    pub flag_sets: BTreeMap<String, Located<FlagSetRequest>>,
    /// `[env.NAME]`: named sets of environment variables.
    pub env_sets: BTreeMap<String, Located<BTreeMap<String, Located<String>>>>,
    /// `[[exclude]]`: points left out of the matrix.
    pub excludes: Vec<Located<Point>>,
    /// `[[variant]]`: a list instead of the full matrix.
    pub variants: Vec<Located<VariantRequest>>,
    /// `[run]`: how a run is launched.
    pub run: RunRequest,
    /// `[measure]`: metrics, stopping rule and statistics.
    pub measure: MeasureRequest,
    /// `[output]`: how outputs are compared.
    pub output: OutputRequest,
}

/// `[program]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramRequest {
    /// Its name; derived from the source if absent.
    pub name: Option<Located<String>>,
    /// Where its source is.
    pub source: Option<Located<ProgramSource>>,
    /// The build command, text for `sh`.
    pub build: Option<Located<String>>,
    /// The run command.
    pub run: Option<Located<String>>,
    /// Arguments added to the run command literally: those after `--`.
    pub arguments: Option<Located<Vec<String>>>,
    /// `[program.binaries]`: finished binaries instead of source and build, in the user's order.
    pub binaries: Vec<Binary>,
}

/// A finished binary.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// The variant's name.
    pub name: Located<String>,
    /// The file.
    pub file: Located<PathBuf>,
}

/// `[flags.NAME]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlagSetRequest {
    /// For CFLAGS.
    pub cflags: Option<Located<String>>,
    /// For CXXFLAGS; as `cflags` if absent.
    pub cxxflags: Option<Located<String>>,
    /// For LDFLAGS.
    pub ldflags: Option<Located<String>>,
    /// Built twice, with a training run between.
    pub profile_guided: Option<Located<bool>>,
    /// The training command.
    pub train: Option<Located<String>>,
}

/// `[[variant]]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VariantRequest {
    /// Its name; the values of its axes if absent.
    pub name: Option<Located<String>>,
    /// The values of its axes.
    pub point: Point,
}

/// `[run]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRequest {
    /// The standard input's file.
    pub stdin: Option<Located<PathBuf>>,
    /// The working directory.
    pub directory: Option<Located<Directory>>,
    /// Files the program reads.
    pub inputs: Vec<Located<PathBuf>>,
    /// Environment variables.
    pub environment: BTreeMap<String, Located<String>>,
    /// A shell command before each run.
    pub setup: Option<Located<String>>,
    /// A shell command after each run.
    pub teardown: Option<Located<String>>,
    /// The longest a run may last.
    pub timeout: Option<Located<Duration>>,
    /// The longest a kernel may take to start its first process in an emulated machine.
    pub boot_timeout: Option<Located<Duration>>,
    /// The exit status that counts as success.
    pub exit_status: Option<Located<i32>>,
    /// Which CPUs a run may use.
    pub cpus: Option<Located<Cpus>>,
    /// No address space layout randomisation.
    pub no_aslr: Option<Located<bool>>,
    /// The runs of a round at the same time.
    pub concurrent: Option<Located<bool>>,
    /// Each process is stopped at its exit, and its peaks are read there.
    pub exit_stop: Option<Located<bool>>,
}

/// One word of a choice of metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricWord {
    /// `all`: every metric.
    All,
    /// `default`: those that are measured by default.
    Default,
    /// One metric.
    One(Metric),
}

/// `[measure]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasureRequest {
    /// Which metrics.
    pub metrics: Vec<Located<MetricWord>>,
    /// Stop after so many timed rounds.
    pub rounds: Option<Located<u32>>,
    /// Stop when verdicts are known to this half-width, a fraction.
    pub precision: Option<Located<f64>>,
    /// Stop when rounds have taken so long.
    pub max_time: Option<Located<Duration>>,
    /// Rounds before the timed ones.
    pub warmup: Option<Located<u32>>,
    /// Rounds in which memory is read over time.
    pub memory: Option<Located<u32>>,
    /// Confidence, a fraction.
    pub confidence: Option<Located<f64>>,
    /// The margin within which two variants are equivalent, a fraction.
    pub equal_within: Option<Located<f64>>,
    /// What is averaged.
    pub estimator: Option<Located<Estimator>>,
    /// Instructions on emulated machines are counted by class.
    pub instruction_classes: Option<Located<bool>>,
    /// Caches are modelled on emulated machines, with this geometry.
    pub cache_model: Option<Located<CacheModel>>,
    /// Programs on other kernels are timed under KVM.
    pub kvm: Option<Located<bool>>,
    /// The order of the runs of a round.
    pub order: Option<Located<Order>>,
    /// How many layouts of each variant are built.
    pub randomize_layout: Option<Located<u32>>,
    /// Seed of everything random.
    pub seed: Option<Located<u64>>,
    /// The variant the others are compared with.
    pub baseline: Option<Located<String>>,
    /// `[measure.reports]`: the metrics that the program reports on its standard output, in the user's order.
    pub reports: Vec<Located<ReportedMetric>>,
}

/// What of an output is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The standard output.
    Stdout,
    /// Nothing.
    Off,
}

impl Check {
    /// Both.
    pub const ALL: [Check; 2] = [Check::Stdout, Check::Off];

    /// The name in spec files.
    pub fn name(self) -> &'static str {
        match self {
            Check::Stdout => "stdout",
            Check::Off => "off",
        }
    }
}

/// `[output]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputRequest {
    /// What is compared.
    pub check: Option<Located<Check>>,
    /// Files the program writes, compared instead of its standard output.
    pub files: Vec<Located<PathBuf>>,
    /// A shell command each output is piped through first; shell text, without placeholders.
    pub filter: Option<Located<String>>,
    /// Variants with a different output are compared nevertheless.
    pub allow_different: Option<Located<bool>>,
}

impl MetricWord {
    /// Reads `all`, `default` or a metric's name.
    pub fn parse(text: &str) -> Result<MetricWord, RequestErrorKind> {
        match text {
            "all" => Ok(MetricWord::All),
            "default" => Ok(MetricWord::Default),
            name => metric::find(name).map(MetricWord::One).ok_or_else(|| RequestErrorKind::Unknown {
                what: "metric",
                name: name.to_owned(),
                known: ["all", "default"]
                    .into_iter()
                    .chain(METRICS.iter().map(|metric| metric.name))
                    .map(str::to_owned)
                    .collect(),
            }),
        }
    }

    /// The word in spec files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MetricWord::All => "all",
            MetricWord::Default => "default",
            MetricWord::One(metric) => metric.name,
        }
    }
}

impl Request {
    /// Adds a value to an axis.
    pub fn add_axis_value(
        &mut self,
        axis: Axis,
        value: &str,
        location: SourceLocation,
    ) -> Result<(), RequestError> {
        let what = axis.name();
        let every = axis == Axis::Compiler && value == EVERY;
        if !every {
            point::check_value(axis, value).map_err(|kind_of_error| location.wrong(kind_of_error))?;
        }
        let values = self.axes.get(&axis).map(Vec::as_slice).unwrap_or_default();
        if values.iter().any(|located| located.value == value) {
            return Err(location.wrong(RequestErrorKind::Twice { what, name: value.to_owned() }));
        }
        let had_every = axis == Axis::Compiler && values.iter().any(|located| located.value == EVERY);
        if had_every || (every && !values.is_empty()) {
            return Err(location.wrong(RequestErrorKind::NotAlone { what }));
        }
        self.axes.entry(axis).or_default().push(Located::new(value.to_owned(), location));
        Ok(())
    }

    /// Adds values to an axis in command-line syntax: `allocator=glibc,jemalloc`.
    ///
    /// Options may hold commas (`-Wl,-O1`), so a value of `flags` is never split: the flag is repeated for each.
    pub fn add_axis(&mut self, text: &str, location: SourceLocation) -> Result<(), RequestError> {
        let (name, values) = assignment(text, "allocator=glibc,jemalloc", &location)?;
        let axis = point::axis(name).map_err(|kind_of_error| location.wrong(kind_of_error))?;
        if axis == Axis::Flags {
            return self.add_axis_value(axis, values, location);
        }
        values.split(',').try_for_each(|value| self.add_axis_value(axis, value, location.clone()))
    }

    /// Adds an exclude in command-line syntax: `abi=x32,compiler=clang-14`.
    ///
    /// A comma separates two axes only where an axis name and `=` follow it, since options may hold commas. After the value of an axis
    /// whose values hold none, any name and `=` are meant as an axis.
    pub fn add_exclude(&mut self, text: &str, location: SourceLocation) -> Result<(), RequestError> {
        let mut point = Point::new();
        let mut rest = Some(text);
        while let Some(part) = rest {
            let of = part.split_once('=').and_then(|(name, _)| Axis::find(name));
            let has_commas = matches!(of, Some(Axis::Flags | Axis::Env | Axis::Kernel));
            let is_axis = |name: &str| Axis::find(name).is_some() || (!has_commas && !name.contains(','));
            let next = part
                .match_indices(',')
                .map(|(at, _)| at)
                .find(|at| part[at + 1..].split_once('=').is_some_and(|(name, _)| is_axis(name)));
            let (this, after) = match next {
                Some(at) => (&part[..at], Some(&part[at + 1..])),
                None => (part, None),
            };
            let (name, value) = assignment(this, "abi=x32,compiler=clang-14", &location)?;
            let axis = point::axis(name).map_err(|kind_of_error| location.wrong(kind_of_error))?;
            point::check_value(axis, value).map_err(|kind_of_error| location.wrong(kind_of_error))?;
            if point.insert(axis, Located::new(value.to_owned(), location.clone())).is_some() {
                return Err(location.wrong(RequestErrorKind::Twice { what: "axis", name: name.to_owned() }));
            }
            rest = after;
        }
        self.excludes.push(Located::new(point, location));
        Ok(())
    }

    /// Adds a finished binary in command-line syntax: `x86-64=./a64`.
    pub fn add_binary(&mut self, text: &str, location: SourceLocation) -> Result<(), RequestError> {
        let (name, file) = assignment(text, "x86-64=./a64", &location)?;
        let file = Located::new(bytes::path(file), location.clone());
        self.program.add_binary(Located::new(name.to_owned(), location), file)
    }

    /// Adds an environment variable in command-line syntax: `MALLOC_ARENA_MAX=1`.
    pub fn set_variable(&mut self, text: &str, location: SourceLocation) -> Result<(), RequestError> {
        let (name, value) = assignment(text, "MALLOC_ARENA_MAX=1", &location)?;
        check_variable(name).map_err(|kind_of_error| location.wrong(kind_of_error))?;
        self.run.environment.insert(name.to_owned(), Located::new(value.to_owned(), location));
        Ok(())
    }

    /// This request with another over it: where both have a value, `other` wins (the command line, over a spec file).
    ///
    /// An axis is replaced whole. Named sets, environment variables and stopping rules are replaced one by one.
    /// Excludes add up.
    pub fn overlay(mut self, other: Request) -> Request {
        let program = other.program;
        replace(&mut self.program.name, program.name);
        replace(&mut self.program.source, program.source);
        replace(&mut self.program.build, program.build);
        replace(&mut self.program.run, program.run);
        replace(&mut self.program.arguments, program.arguments);
        replace_list(&mut self.program.binaries, program.binaries);

        self.axes.extend(other.axes);
        self.flag_sets.extend(other.flag_sets);
        self.env_sets.extend(other.env_sets);
        self.excludes.extend(other.excludes);
        replace_list(&mut self.variants, other.variants);

        replace(&mut self.run.stdin, other.run.stdin);
        replace(&mut self.run.directory, other.run.directory);
        replace_list(&mut self.run.inputs, other.run.inputs);
        self.run.environment.extend(other.run.environment);
        replace(&mut self.run.setup, other.run.setup);
        replace(&mut self.run.teardown, other.run.teardown);
        replace(&mut self.run.timeout, other.run.timeout);
        replace(&mut self.run.boot_timeout, other.run.boot_timeout);
        replace(&mut self.run.exit_status, other.run.exit_status);
        replace(&mut self.run.cpus, other.run.cpus);
        replace(&mut self.run.no_aslr, other.run.no_aslr);
        replace(&mut self.run.concurrent, other.run.concurrent);
        replace(&mut self.run.exit_stop, other.run.exit_stop);

        let measure = other.measure;
        replace_list(&mut self.measure.metrics, measure.metrics);
        replace(&mut self.measure.rounds, measure.rounds);
        replace(&mut self.measure.precision, measure.precision);
        replace(&mut self.measure.max_time, measure.max_time);
        replace(&mut self.measure.warmup, measure.warmup);
        replace(&mut self.measure.memory, measure.memory);
        replace(&mut self.measure.confidence, measure.confidence);
        replace(&mut self.measure.equal_within, measure.equal_within);
        replace(&mut self.measure.estimator, measure.estimator);
        replace(&mut self.measure.instruction_classes, measure.instruction_classes);
        replace(&mut self.measure.cache_model, measure.cache_model);
        replace(&mut self.measure.kvm, measure.kvm);
        replace(&mut self.measure.order, measure.order);
        replace(&mut self.measure.randomize_layout, measure.randomize_layout);
        replace(&mut self.measure.seed, measure.seed);
        replace(&mut self.measure.baseline, measure.baseline);
        replace_list(&mut self.measure.reports, measure.reports);

        // A kind of check and its files are one choice, replaced as a whole.
        if other.output.check.is_some() {
            self.output.files.clear();
            if other.output.check.as_ref().is_some_and(|check| check.value == Check::Off) {
                self.output.filter = None;
            }
        }
        if !other.output.files.is_empty() || other.output.filter.is_some() {
            self.output.check = self
                .output
                .check
                .filter(|check| check.value == Check::Stdout && other.output.files.is_empty());
        }
        replace(&mut self.output.check, other.output.check);
        replace_list(&mut self.output.files, other.output.files);
        replace(&mut self.output.filter, other.output.filter);
        replace(&mut self.output.allow_different, other.output.allow_different);
        self
    }

    /// This request with every path made independent of the spec file's folder and the working directory, so that it is
    /// valid in another folder.
    pub fn anchored(mut self, spec_folder: &Path, here: &Path) -> Request {
        let base = |location: &SourceLocation| if location.in_spec() { spec_folder } else { here };
        let anchor = |path: &mut Located<PathBuf>| {
            // An empty path names no file, and is refused.
            if !path.value.as_os_str().is_empty() {
                path.value = base(&path.location).join(&path.value);
            }
        };
        let directory = self.located_directory();
        if let Some(Located { value: ProgramSource::Path(path), location }) = &mut self.program.source {
            *path = base(location).join(&*path);
        }
        self.program.binaries.iter_mut().for_each(|binary| anchor(&mut binary.file));
        let points = self.variants.iter_mut().map(|variant| &mut variant.value.point);
        let points = points.chain(self.excludes.iter_mut().map(|exclude| &mut exclude.value));
        let kernels = points.filter_map(|point| point.get_mut(&Axis::Kernel));
        for kernel in kernels.chain(self.axes.get_mut(&Axis::Kernel).into_iter().flatten()) {
            if let Some(Kernel::File(path)) = Kernel::find(&kernel.value) {
                kernel.value = bytes::text(base(&kernel.location).join(path));
            }
        }
        self.run.stdin.iter_mut().for_each(anchor);
        self.run.inputs.iter_mut().for_each(anchor);
        let is_fresh = directory.as_ref().is_some_and(|directory| directory.value == Directory::Fresh);
        if let Some(run) = self.program.run.as_mut().filter(|_| is_fresh) {
            run.value = with_folder(&run.value, base(&run.location));
        }
        if let Some(mut directory) = directory {
            directory.value = match directory.value {
                Directory::Here => Directory::Path(base(&directory.location).to_owned()),
                Directory::Path(path) => Directory::Path(base(&directory.location).join(path)),
                Directory::Fresh => Directory::Fresh,
            };
            self.run.directory = Some(directory);
        }
        self
    }

    /// The working directory that was asked for. Otherwise it is `here` relative to the source location of the run
    /// command, or else of the program; absent without both.
    pub(crate) fn located_directory(&self) -> Option<Located<Directory>> {
        let program = &self.program;
        let author = || {
            let run = program.run.as_ref().map(|run| &run.location);
            let source = program.source.as_ref().map(|source| &source.location);
            run.or(source).or(program.binaries.first().map(|binary| &binary.file.location))
        };
        self.run
            .directory
            .clone()
            .or_else(|| author().map(|location| Located::new(Directory::Here, location.clone())))
    }
}

impl ProgramRequest {
    /// Adds a finished binary.
    pub fn add_binary(&mut self, name: Located<String>, file: Located<PathBuf>) -> Result<(), RequestError> {
        check_name("binary", &name.value).map_err(|kind_of_error| name.location.wrong(kind_of_error))?;
        if file.value.as_os_str().is_empty() {
            return Err(file.location.wrong(RequestErrorKind::Empty {
                what: format!("the path of binary {:?}", name.value),
                instead: "name its file",
            }));
        }
        if self.binaries.iter().any(|binary| binary.name == name) {
            return Err(name
                .location
                .wrong(RequestErrorKind::Twice { what: "binary", name: name.value.clone() }));
        }
        self.binaries.push(Binary { name, file });
        Ok(())
    }
}

impl MeasureRequest {
    /// Adds a metric that the program reports: its name, and its unit as [`ReportedMetric::parse`] reads it.
    pub fn add_report(
        &mut self,
        name: &str,
        text: &str,
        location: SourceLocation,
    ) -> Result<(), RequestError> {
        let report =
            ReportedMetric::parse(name, text).map_err(|kind_of_error| location.wrong(kind_of_error))?;
        if self.reports.iter().any(|known| known.value.name == name) {
            return Err(location.wrong(RequestErrorKind::Twice { what: "metric", name: name.to_owned() }));
        }
        self.reports.push(Located::new(report, location));
        Ok(())
    }

    /// Adds such a metric in command-line syntax: `latency=nanoseconds`.
    pub fn add_report_assignment(
        &mut self,
        text: &str,
        location: SourceLocation,
    ) -> Result<(), RequestError> {
        let (name, unit) = assignment(text, "latency=nanoseconds", &location)?;
        self.add_report(name, unit, location)
    }

    /// Adds a word to the choice of metrics: `all`, `default` or a metric.
    pub fn add_metric(&mut self, text: &str, location: SourceLocation) -> Result<(), RequestError> {
        let word = MetricWord::parse(text).map_err(|kind_of_error| location.wrong(kind_of_error))?;
        if self.metrics.iter().any(|located| located.value == word) {
            return Err(location.wrong(RequestErrorKind::Twice { what: "metric", name: text.to_owned() }));
        }
        let had_every = self.metrics.iter().any(|located| located.value == MetricWord::All);
        if had_every || (word == MetricWord::All && !self.metrics.is_empty()) {
            return Err(location.wrong(RequestErrorKind::NotAlone { what: "metric" }));
        }
        self.metrics.push(Located::new(word, location));
        Ok(())
    }
}

/// Checks that a list of paths names each file once.
pub(crate) fn check_paths(key: &str, paths: &[Located<PathBuf>]) -> Result<(), RequestError> {
    for (number, path) in paths.iter().enumerate() {
        if path.value.as_os_str().is_empty() {
            return Err(path.location.wrong(RequestErrorKind::Empty {
                what: format!("a path of {key:?}"),
                instead: "name a file or leave it out",
            }));
        }
        if paths[..number].contains(path) {
            let name = bytes::text(&path.value);
            return Err(path.location.wrong(RequestErrorKind::Twice { what: "file", name }));
        }
    }
    Ok(())
}

/// A run command whose program is in this folder, if its first word is a relative path.
fn with_folder(command: &str, folder: &Path) -> String {
    let first = shell_words::split(command).unwrap_or_default().into_iter().next().unwrap_or_default();
    let is_folder = |word| first.starts_with(&format!("{{{word}}}"));
    if !first.contains('/') || first.starts_with('/') || placeholder::FOLDERS.into_iter().any(is_folder) {
        return command.to_owned();
    }
    let folder = bytes::text(folder.join(""));
    // Two quoted texts without a blank between them are one word.
    placeholder::literal(&shell_words::quote(&folder)) + command.trim_start()
}

/// Checks that a text uses only placeholders of that stage.
pub(crate) fn check_placeholders(text: &str, stage: Stage) -> Result<(), RequestErrorKind> {
    for word in placeholder::used(text) {
        match placeholder::known().iter().find(|placeholder| placeholder.word == word) {
            Some(placeholder) if placeholder.allowed(stage) => {}
            Some(_) => return Err(RequestErrorKind::MisplacedPlaceholder { word: word.to_owned(), stage }),
            None => return Err(RequestErrorKind::UnknownPlaceholder { word: word.to_owned(), stage }),
        }
    }
    Ok(())
}

fn assignment<'a>(
    text: &'a str,
    example: &'static str,
    location: &SourceLocation,
) -> Result<(&'a str, &'a str), RequestError> {
    text.split_once('=')
        .ok_or_else(|| location.wrong(RequestErrorKind::NoEquals { text: text.to_owned(), example }))
}

fn replace<T>(mine: &mut Option<T>, other: Option<T>) {
    if other.is_some() {
        *mine = other;
    }
}

fn replace_list<T>(mine: &mut Vec<T>, other: Vec<T>) {
    if !other.is_empty() {
        *mine = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_placeholder_is_named_with_its_fix() {
        assert_eq!(
            check_placeholders("{bild}/prog", Stage::Run).unwrap_err().to_string(),
            "unknown placeholder {bild}; did you mean {build}? (for the text itself, write {{bild}})"
        );
        assert_eq!(
            check_placeholders("awk '{print}'", Stage::Run).unwrap_err().to_string(),
            "unknown placeholder {print}; there is {build}, {source}, {binary}, {work}, {variant}, {abi}, {processes}, {index}, \
             {events}, {first} (for the text itself, write {{print}})"
        );
    }

    #[test]
    fn a_placeholder_of_another_stage_is_refused() {
        assert_eq!(
            check_placeholders("{binary}", Stage::Build).unwrap_err().to_string(),
            "{binary} means nothing in a build command; there is {build}, {source}, {work}, {jobs}, {variant}, {abi}, \
             {cc}, {cxx}, {cflags}, {cxxflags}, {ldflags}, {ar}"
        );
        assert!(check_placeholders("{jobs}", Stage::Run).is_err());
        assert!(check_placeholders("make -j{jobs} CC={cc} ${undefined} {{undefined}}", Stage::Build).is_ok());
    }
}
