//! From the request to the experiment: defaults are filled in, and what cannot be carried out is refused.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bytes;
use crate::emulation;
use crate::location::{Located, SourceLocation};
use crate::matrix::Surroundings;
use crate::metric::{self, Metric, METRICS, NOT_CONCURRENT};
use crate::model::{
    Build, Cpus, Directory, Estimator, Experiment, Judging, Launch, Origin, OutputCheck, Program, Stopping,
    Variant,
};
use crate::names::check_name;
use crate::percentage;
use crate::placeholder::{self, Stage};
use crate::reported_metric::ReportedMetric;
use crate::request::{check_paths, check_placeholders, Check, MetricWord, Request};
use crate::request_error::{RequestError, RequestErrorKind};
use crate::schedule::Order;
use crate::source::{Language, ProgramSource};

/// Facts about the machine and the caller, which this pure crate cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The names of the compilers on this machine.
    pub compilers: Vec<String>,
    /// The seed if the user names none.
    pub default_seed: u64,
    /// Where relative paths of a spec file begin: its folder. Those of the command line begin in the working directory.
    pub folder: PathBuf,
}

/// The stopping rule if the user names none.
const STOPPING: Stopping =
    Stopping { rounds: Some(100), precision: Some(0.01), max_time: Some(Duration::from_secs(5 * 60)) };

/// The rounds of [`Estimator::TenRunTrim`].
const TEN_RUNS: u32 = 10;

const WARMUP: u32 = 1;
/// Fewer rounds yield no interval: in simulation, coverage falls below 93 % with five pairs and not with six.
pub const FEWEST_PAIRS: u32 = 6;
/// The rounds of the memory series, as many as an interval needs.
pub const MEMORY_ROUNDS: u32 = FEWEST_PAIRS;
/// The time limit of a run if the user names none.
pub const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// A kernel may take so long to start its first process, unless the user gives another limit. (A boot takes some 10 s on an idle
/// machine.)
pub const BOOT_TIMEOUT: Duration = Duration::from_secs(4 * 60);
const CONFIDENCE: f64 = 0.95;
/// More layouts than this are not built: Student's quantile of so many differs little from that of more.
const MOST_LAYOUTS: u32 = 64;
/// The margin of equivalence.
const EQUAL_WITHIN: f64 = 0.01;

impl Request {
    /// The experiment of this request.
    pub fn resolve(&self, facts: &Facts) -> Result<Experiment, RequestError> {
        let program = self.resolved_program(facts)?;
        self.check_commands()?;
        self.check_paths()?;
        self.check_fresh_names()?;
        self.check_exit_status()?;
        self.check_concurrent()?;
        let binaries: Vec<(String, PathBuf)> = self
            .program
            .binaries
            .iter()
            .map(|binary| (binary.name.value.clone(), placed(&binary.file, facts)))
            .collect();
        let variants = self.matrix(&Surroundings {
            compilers: &facts.compilers,
            binaries: &binaries,
            folder: &facts.folder,
        })?;
        self.check_emulation(&variants)?;
        let baseline = self.baseline(&variants)?;
        self.check_kvm(&variants, &baseline)?;
        if self.memory(&variants) > 0 {
            self.check_memory_baseline(&variants, &baseline)?;
        }
        let estimator = value(&self.measure.estimator).unwrap_or(Estimator::Paired);
        let experiment = Experiment {
            program,
            baseline,
            metrics: self.metrics(&variants),
            launch: self.launch(facts)?,
            check: self.output_check()?,
            stopping: self.stopping(estimator)?,
            warmup: value(&self.measure.warmup).unwrap_or(WARMUP),
            memory: self.memory(&variants),
            judging: Judging {
                confidence: self.confidence()?,
                equal_within: self.equal_within()?,
                estimator,
            },
            order: value(&self.measure.order).unwrap_or(Order::Random),
            cache_model: value(&self.measure.cache_model).unwrap_or_default(),
            kvm: self.is_under_kvm(),
            layouts: self.layouts(estimator)?,
            seed: value(&self.measure.seed).unwrap_or(facts.default_seed),
            variants,
        };
        let control = experiment.control();
        if experiment.variants.iter().any(|variant| variant.name == control) {
            let location = self
                .variants
                .iter()
                .filter_map(|variant| variant.value.name.as_ref())
                .chain(self.program.binaries.iter().map(|binary| &binary.name))
                .find(|name| name.value == control)
                .map(|name| name.location.clone());
            return Err(RequestError {
                location,
                kind_of_error: RequestErrorKind::ControlNameTaken { name: control },
            });
        }
        Ok(experiment)
    }

    /// Checks placeholders, again for the commands of a spec file: the command line's were not read by its parser, and
    /// whether each has a value is known only here.
    fn check_commands(&self) -> Result<(), RequestError> {
        let run = [&self.program.run, &self.run.setup, &self.run.teardown];
        let train = self.flag_sets.values().map(|set| &set.value.train);
        let named = self.env_sets.values().flat_map(|set| set.value.values());
        let variables = self.run.environment.values().chain(named).map(|text| (text, Stage::Variable));
        let texts = std::iter::once((&self.program.build, Stage::Build))
            .chain(run.into_iter().chain(train).map(|command| (command, Stage::Run)))
            .filter_map(|(command, stage)| Some((command.as_ref()?, stage)))
            .chain(variables);
        for (text, stage) in texts {
            check_placeholders(&text.value, stage)
                .map_err(|kind_of_error| text.location.wrong(kind_of_error))?;
            self.check_values(text)?;
        }
        for set in self.flag_sets.values().map(|set| &set.value) {
            if let (Some(train), None | Some(Located { value: false, .. })) =
                (&set.train, &set.profile_guided)
            {
                return Err(train.location.wrong(RequestErrorKind::TrainUnused));
            }
        }
        Ok(())
    }

    /// The rules of a spec file for paths, again: the command line's were not read by its parser, and the archive keeps them as
    /// a spec file.
    fn check_paths(&self) -> Result<(), RequestError> {
        let of_stdin = self.run.stdin.as_slice();
        for (key, paths) in [("stdin", of_stdin), ("inputs", &self.run.inputs), ("files", &self.output.files)]
        {
            check_paths(key, paths)?;
        }
        Ok(())
    }

    /// Inputs are linked into a fresh directory by their names.
    fn check_fresh_names(&self) -> Result<(), RequestError> {
        let is_fresh = |directory: &Located<Directory>| directory.value == Directory::Fresh;
        if !self.run.directory.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        let inputs = &self.run.inputs;
        for (number, input) in inputs.iter().enumerate() {
            let name = input.value.file_name();
            let other = inputs[..number].iter().find(|other| other.value.file_name() == name);
            if name.is_none() || other.is_some() {
                return Err(input.location.wrong(RequestErrorKind::FreshName {
                    input: bytes::text(&input.value),
                    other: other.map(|other| bytes::text(&other.value)),
                }));
            }
        }
        Ok(())
    }

    fn check_exit_status(&self) -> Result<(), RequestError> {
        match &self.run.exit_status {
            Some(status) if !(0..=255).contains(&status.value) => {
                Err(out_of_range(&status.location, "exit_status", "from 0 to 255", &status.value.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// How many layouts are built of each variant. One layout more says nothing about others, and finished binaries cannot
    /// be linked again.
    fn layouts(&self, estimator: Estimator) -> Result<u32, RequestError> {
        let Some(layouts) = &self.measure.randomize_layout else { return Ok(0) };
        let refuse = |what, why| Err(layouts.location.wrong(RequestErrorKind::NoLayouts { what, why }));
        match layouts.value {
            0 => Ok(0),
            _ if !self.program.binaries.is_empty() => {
                refuse("finished binaries", "they cannot be linked again; name their source and --build")
            }
            _ if estimator == Estimator::TenRunTrim => refuse(
                "the estimator \"ten-run-trim\"",
                "it has one program on each side; leave out one of the two",
            ),
            count @ 2..=MOST_LAYOUTS => Ok(count),
            count => {
                let range = format!("from 2 to {MOST_LAYOUTS}, or 0 for the linker's own layout");
                Err(out_of_range(&layouts.location, "randomize_layout", &range, &count.to_string()))
            }
        }
    }

    fn is_concurrent(&self) -> bool {
        value(&self.run.concurrent).unwrap_or_default()
    }

    /// Runs that share a CPU have no wall time, and must not disturb each other. When a run starts in its round changes its CPU
    /// time, which only a random order averages out.
    fn check_concurrent(&self) -> Result<(), RequestError> {
        if !self.is_concurrent() {
            return Ok(());
        }
        let is_one = |cpus: &Cpus| match cpus {
            Cpus::Auto => true,
            Cpus::Any => false,
            Cpus::List(list) => list.len() == 1,
        };
        let (run, metrics) = (&self.run, &self.measure.metrics);
        let directory = self.located_directory().filter(|directory| directory.value == Directory::Fresh);
        let metric = metrics.iter().find_map(|word| match word.value {
            MetricWord::One(metric) if NOT_CONCURRENT.contains(&metric.name) => {
                Some((&word.location, metric.name))
            }
            _ => None,
        });
        let cpus = run.cpus.as_ref().filter(|cpus| !is_one(&cpus.value));
        let order = self.measure.order.as_ref().filter(|order| order.value == Order::Balanced);
        let leave_out = |flag: &str| format!("leave out {flag} or --concurrent");
        let refused = [
            metric.map(|(location, name)| {
                let why = "the others change this figure of a run";
                (location, format!("metric {name:?}"), why, leave_out("the metric"))
            }),
            run.setup.as_ref().map(|one| {
                let why = "a setup command would run while the others run";
                (&one.location, "a setup command".to_owned(), why, leave_out("--setup"))
            }),
            run.teardown.as_ref().map(|one| {
                let why = "a teardown command would run while the others run";
                (&one.location, "a teardown command".to_owned(), why, leave_out("--teardown"))
            }),
            self.output.files.first().map(|one| {
                let why = "all of them would write the same file";
                (&one.location, "output in a file".to_owned(), why, leave_out("--check-file"))
            }),
            directory.as_ref().map(|one| {
                let why = "all of them would work in the same directory";
                (&one.location, "a fresh directory".to_owned(), why, leave_out("--directory fresh"))
            }),
            cpus.map(|one| {
                let why = "with several CPUs they would not share one";
                let fix = "name one CPU (--cpus 0), or leave out --cpus or --concurrent".to_owned();
                (&one.location, format!("CPUs \"{}\"", one.value), why, fix)
            }),
            // The run that starts second of three takes up to 0.3 % more CPU time.
            order.map(|one| {
                let why =
                    "no run follows another, so that a balanced order has no drift from run to run to cancel";
                (&one.location, "order \"balanced\"".to_owned(), why, leave_out("--order"))
            }),
        ];
        if let Some((location, what, why, fix)) = refused.into_iter().flatten().next() {
            return Err(location.wrong(RequestErrorKind::NotConcurrent { what, why, fix }));
        }
        Ok(())
    }

    /// Checks that each placeholder has a value for this program.
    fn check_values(&self, command: &Located<String>) -> Result<(), RequestError> {
        let finished = !self.program.binaries.is_empty();
        let word = placeholder::used(&command.value).find(|word| match *word {
            "binary" => !finished,
            "build" | "source" => finished,
            _ => false,
        });
        match word {
            None => Ok(()),
            Some(word) => {
                let reason = if finished {
                    "finished binaries are not built; write {binary}"
                } else {
                    "there are no finished binaries; what was built lies in {build}"
                };
                Err(command
                    .location
                    .wrong(RequestErrorKind::EmptyPlaceholder { word: word.to_owned(), reason }))
            }
        }
    }

    fn resolved_program(&self, facts: &Facts) -> Result<Program, RequestError> {
        let (derived_name, origin, default_run) = self.origin(facts)?;
        let name = match &self.program.name {
            Some(name) => {
                check_program_name(&name.value)
                    .map_err(|kind_of_error| name.location.wrong(kind_of_error))?;
                name.value.clone()
            }
            None => derived_name,
        };
        let mut run = match (&self.program.run, default_run) {
            (Some(run), _) => run.value.clone(),
            (None, Some(run)) => run,
            (None, None) => return Err(RequestErrorKind::NoRun.nowhere()),
        };
        let location = self.program.run.as_ref().map(|run| run.location.clone());
        match shell_words::split(&run) {
            Err(_) => return Err(RequestError { location, kind_of_error: RequestErrorKind::UnclosedQuote }),
            Ok(words) if words.is_empty() => {
                return Err(RequestError { location, kind_of_error: RequestErrorKind::NoRun })
            }
            Ok(_) => {}
        }
        for argument in self.program.arguments.iter().flat_map(|arguments| &arguments.value) {
            run.push(' ');
            run.push_str(&placeholder::literal(&shell_words::quote(argument)));
        }
        Ok(Program { name, origin, run })
    }

    /// Where the program comes from, with the name and the run command that follow from it.
    fn origin(&self, facts: &Facts) -> Result<(String, Origin, Option<String>), RequestError> {
        let program = &self.program;
        if let Some(first) = program.binaries.first() {
            let besides = program.source.as_ref().map(|source| (&source.location, "a source"));
            let besides =
                besides.or(program.build.as_ref().map(|build| (&build.location, "a build command")));
            if let Some((location, what)) = besides {
                return Err(location.wrong(RequestErrorKind::BinariesWith { what }));
            }
            let files = program.binaries.iter();
            let files =
                files.map(|binary| (binary.name.value.clone(), placed(&binary.file, facts))).collect();
            let name = last_part(&first.file.value);
            return Ok((name, Origin::Binaries { files }, Some("{binary}".to_owned())));
        }
        let source = program.source.as_ref().ok_or_else(|| RequestErrorKind::NoProgram.nowhere())?;
        let build = program.build.as_ref().map(|build| Build::Shell(build.value.clone()));
        let no_build = || source.location.wrong(RequestErrorKind::NoBuild);
        match &source.value {
            ProgramSource::Micro { .. } => Err(source.location.wrong(RequestErrorKind::BadSource {
                text: source.value.to_string(),
                reason: "only `widthwise compare` measures the micro suite".to_owned(),
            })),
            ProgramSource::Debian { package, version } => {
                let origin = Origin::Debian {
                    package: package.clone(),
                    version: version.clone(),
                    build: build.ok_or_else(no_build)?,
                };
                Ok((package.clone(), origin, None))
            }
            ProgramSource::Path(path) => {
                let place = placed(&Located::new(path.clone(), source.location.clone()), facts);
                match Language::of(path) {
                    Some(language) => {
                        let stem = last_part(&path.with_extension(""));
                        // Split into words before placeholders are filled in.
                        let run = format!("{{build}}/{}", placeholder::literal(&shell_words::quote(&stem)));
                        let own_build = Build::Compile { language, output: stem.clone() };
                        let origin = Origin::Source { path: place, build: build.unwrap_or(own_build) };
                        Ok((stem, origin, Some(run)))
                    }
                    None => {
                        let name = last_part(&place);
                        Ok((name, Origin::Source { path: place, build: build.ok_or_else(no_build)? }, None))
                    }
                }
            }
        }
    }

    fn baseline(&self, variants: &[Variant]) -> Result<String, RequestError> {
        match &self.measure.baseline {
            None => Ok(variants.first().map(|variant| variant.name.clone()).unwrap_or_default()),
            Some(name) if variants.iter().any(|variant| variant.name == name.value) => Ok(name.value.clone()),
            Some(name) => Err(name.location.wrong(RequestErrorKind::Unknown {
                what: "baseline",
                name: name.value.clone(),
                known: variants.iter().map(|variant| variant.name.clone()).collect(),
            })),
        }
    }

    /// The metrics in the order of the columns.
    fn metrics(&self, variants: &[Variant]) -> Vec<Metric> {
        // A memory series yields all of its metrics without further cost.
        let series = if value(&self.measure.memory).is_some_and(|rounds| rounds > 0) {
            metric::series()
        } else {
            Vec::new()
        };
        let words: Vec<MetricWord> = self.measure.metrics.iter().map(|word| word.value).collect();
        let reports = self.reports(variants);
        // A program that reports metrics is judged by these, unless others are named.
        let words = if words.is_empty() && reports.is_empty() { vec![MetricWord::Default] } else { words };
        let wanted = |metric: &Metric| {
            words.iter().any(|word| match word {
                // The x32 runtime's own figures are always reported, and have nothing to be compared with.
                MetricWord::All => {
                    metric.family != metric::Family::Runtime && self.wants_family(metric.family)
                }
                MetricWord::Default => {
                    metric.default || (metric.is_of_machine() && self.wants_family(metric.family))
                }
                MetricWord::One(one) => one.name == metric.name,
            }) || (metric.is_of_machine()
                && metric.family != metric::Family::Machine
                && self.wants_family(metric.family))
        };
        let can_be = |metric: &Metric| {
            !(self.is_concurrent() && NOT_CONCURRENT.contains(&metric.name))
                && emulation::has(variants, self.is_under_kvm(), metric)
        };
        let ours =
            METRICS.iter().filter(|metric| (wanted(metric) || series.contains(metric)) && can_be(metric));
        reports.into_iter().chain(ours).collect()
    }

    /// Whether a family is not one that costs much and was not asked for.
    fn wants_family(&self, family: metric::Family) -> bool {
        match family {
            metric::Family::InstructionClass => value(&self.measure.instruction_classes).unwrap_or_default(),
            metric::Family::CacheModel => self.measure.cache_model.is_some(),
            _ => true,
        }
    }

    /// The metrics that the program reports, then the instructions of its operations, without what no variant can have.
    fn reports(&self, variants: &[Variant]) -> Vec<Metric> {
        let on_kernel = variants.iter().any(|variant| variant.kernel.is_emulated());
        let reports = || self.measure.reports.iter().map(|report| &report.value);
        let noun = |report: &ReportedMetric| report.noun.clone().unwrap_or_else(|| report.name.clone());
        let times = reports().map(|report| metric::reported(&report.name, report.unit, &noun(report)));
        let of_operation = |report: &ReportedMetric| {
            let noun = noun(report);
            noun.strip_prefix("time for ").map(str::to_owned).unwrap_or(noun)
        };
        let counted = reports().filter(|report| report.instructions);
        let counts =
            counted.map(|report| metric::operation_instructions(&report.name, &of_operation(report)));
        let is_on_machines = |report: &&ReportedMetric| on_kernel && report.on_machines;
        let on_machines: Vec<[Metric; 2]> = reports()
            .filter(is_on_machines)
            .map(|report| metric::operation_on_machine(&report.name, &of_operation(report)))
            .collect();
        let sides = [0, 1].into_iter().flat_map(|side| on_machines.iter().map(move |both| both[side]));
        times
            .chain(counts)
            .chain(sides)
            .filter(|metric| emulation::has(variants, self.is_under_kvm(), metric))
            .collect()
    }

    /// The rounds of the memory series: as many as were asked for, or as an interval needs where only a metric of it
    /// was named.
    fn memory(&self, variants: &[Variant]) -> u32 {
        let is_named = self.metrics(variants).iter().any(|metric| metric.family == metric::Family::Series);
        value(&self.measure.memory).unwrap_or(if is_named { MEMORY_ROUNDS } else { 0 })
    }

    fn launch(&self, facts: &Facts) -> Result<Launch, RequestError> {
        let run = &self.run;
        let times = [
            ("timeout", &run.timeout),
            ("boot_timeout", &run.boot_timeout),
            ("max_time", &self.measure.max_time),
        ];
        for (key, time) in times {
            if let Some(time) = time.as_ref().filter(|time| time.value.is_zero()) {
                return Err(out_of_range(&time.location, key, "longer than nothing", "0s"));
            }
        }
        let variables = run.environment.iter();
        Ok(Launch {
            stdin: run.stdin.as_ref().map(|path| placed(path, facts)),
            directory: self.directory(facts),
            inputs: run.inputs.iter().map(|path| placed(path, facts)).collect(),
            environment: variables.map(|(name, located)| (name.clone(), located.value.clone())).collect(),
            setup: value(&run.setup),
            teardown: value(&run.teardown),
            timeout: Some(value(&run.timeout).unwrap_or(TIMEOUT)),
            boot_timeout: Some(value(&run.boot_timeout).unwrap_or(BOOT_TIMEOUT)),
            exit_status: value(&run.exit_status),
            cpus: value(&run.cpus).unwrap_or_default(),
            no_aslr: value(&run.no_aslr).unwrap_or_default(),
            concurrent: self.is_concurrent(),
            exit_stop: value(&run.exit_stop).unwrap_or_default(),
        })
    }

    /// `here` in a spec file is the spec file's folder; on the command line it is the working directory.
    fn directory(&self, facts: &Facts) -> Directory {
        let Some(directory) = self.located_directory() else { return Directory::Here };
        let own_folder = directory.location.in_spec() && !facts.folder.as_os_str().is_empty();
        match directory.value {
            Directory::Here if own_folder => Directory::Path(facts.folder.clone()),
            Directory::Path(path) => Directory::Path(placed(&Located::new(path, directory.location), facts)),
            other => other,
        }
    }

    fn output_check(&self) -> Result<OutputCheck, RequestError> {
        let output = &self.output;
        if let Some(check) = &output.check {
            let conflict = |key| RequestErrorKind::CheckWith { key, check: check.value.name() };
            if let Some(file) = output.files.first() {
                return Err(file.location.wrong(conflict("files")));
            }
            if let (Check::Off, Some(filter)) = (check.value, &output.filter) {
                return Err(filter.location.wrong(conflict("filter")));
            }
        }
        Ok(OutputCheck {
            files: output.files.iter().map(|file| file.value.clone()).collect(),
            filter: value(&output.filter),
            allow_different: value(&output.allow_different).unwrap_or_default(),
            off: value(&output.check) == Some(Check::Off),
            without_metrics: !self.measure.reports.is_empty(),
        })
    }

    fn stopping(&self, estimator: Estimator) -> Result<Stopping, RequestError> {
        let measure = &self.measure;
        if let Some(rounds) = measure.rounds.as_ref().filter(|rounds| rounds.value == 0) {
            return Err(out_of_range(&rounds.location, "rounds", "at least 1", "0"));
        }
        if let Some(precision) =
            measure.precision.as_ref().filter(|precision| !(precision.value > 0.0 && precision.value < 1.0))
        {
            return Err(no_share(precision, "precision", "more than 0 % and less than 100 %", 0.0));
        }
        let location = Stopping {
            rounds: value(&measure.rounds),
            precision: value(&measure.precision),
            max_time: value(&measure.max_time),
        };
        if estimator == Estimator::TenRunTrim {
            let refuse =
                |location: &SourceLocation, key| Err(location.wrong(RequestErrorKind::TenRuns { key }));
            return match (&measure.rounds, &measure.precision, &measure.max_time) {
                (Some(rounds), ..) if rounds.value != TEN_RUNS => refuse(&rounds.location, "rounds"),
                (_, Some(precision), _) => refuse(&precision.location, "precision"),
                (.., Some(max_time)) => refuse(&max_time.location, "max_time"),
                _ => Ok(Stopping { rounds: Some(TEN_RUNS), precision: None, max_time: None }),
            };
        }
        Ok(if location == Stopping::default() { STOPPING } else { location })
    }

    fn confidence(&self) -> Result<f64, RequestError> {
        match &self.measure.confidence {
            None => Ok(CONFIDENCE),
            // A value below one half is probably the error probability.
            Some(location) if !(0.5..1.0).contains(&location.value) => {
                Err(no_share(location, "confidence", "at least 50 % and less than 100 %", 0.5))
            }
            Some(location) => Ok(location.value),
        }
    }

    /// The margin of equivalence. Without one (0 %) no interval that has a width lies inside it, and one of 100 % or
    /// more calls twice the figure equivalent.
    pub fn equal_within(&self) -> Result<f64, RequestError> {
        match &self.measure.equal_within {
            None => Ok(EQUAL_WITHIN),
            Some(location) if !(location.value > 0.0 && location.value < 1.0) => {
                Err(no_share(location, "equal_within", "more than 0 % and less than 100 %", 0.0))
            }
            Some(location) => Ok(location.value),
        }
    }
}

fn value<T: Clone>(located: &Option<Located<T>>) -> Option<T> {
    located.as_ref().map(|located| located.value.clone())
}

fn out_of_range(location: &SourceLocation, key: &str, range: &str, value: &str) -> RequestError {
    location.wrong(RequestErrorKind::OutOfRange {
        key: key.to_owned(),
        range: range.to_owned(),
        value: value.to_owned(),
    })
}

/// A share outside its range. A number above 1 was most likely meant as a percentage: it is named as it was written, with the fix if that
/// is a share from `least` on.
fn no_share(given: &Located<f64>, key: &str, range: &str, least: f64) -> RequestError {
    let share = given.value;
    let percent = match percentage::text(share) {
        Some(text) => text.replace('%', " %"),
        None => format!("{} %", share * 100.0),
    };
    let value = match share {
        _ if share > 1.0 && share < 100.0 && share / 100.0 >= least => {
            format!("{share} ({percent}); for {share} % write \"{share}%\"")
        }
        _ if share > 1.0 => format!("{share} ({percent})"),
        _ => percent,
    };
    out_of_range(&given.location, key, range, &value)
}

/// A path relative to the working directory.
fn placed(path: &Located<PathBuf>, facts: &Facts) -> PathBuf {
    if path.location.in_spec() {
        facts.folder.join(&path.value)
    } else {
        path.value.clone()
    }
}

/// A name for the program from the last part of a path. `.` and `..` have none, and a name is never a hidden folder's.
fn last_part(path: &Path) -> String {
    let name = path.file_name().map(bytes::text);
    name.filter(|name| check_program_name(name).is_ok()).unwrap_or_else(|| "program".to_owned())
}

/// A program's name becomes part of a folder's name.
fn check_program_name(name: &str) -> Result<(), RequestErrorKind> {
    check_name("program", name)?;
    let reason = if name.contains('/') {
        "it becomes part of a folder's name and cannot contain \"/\""
    } else if name.starts_with('.') || name.starts_with('-') {
        "it cannot begin with \".\" or \"-\""
    } else {
        return Ok(());
    };
    Err(RequestErrorKind::BadName { what: "program", name: name.to_owned(), reason })
}
