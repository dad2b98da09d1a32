//! `compare`: the main job.

mod emulated;
mod emulated_machine;
mod functions;
mod heap;
mod max_time;
mod memory;
mod question;
mod quotas;
mod recorder;

use std::path::{Path, PathBuf};
use std::time::Duration;
use widthwise_experiment::Role;
use widthwise_experiment::VariantStatus;

use clap::Args;
use widthwise_archive::{slug, Archive, ArchiveError, Metadata};
use widthwise_experiment::model::{Cpus, Estimator, Experiment};
use widthwise_experiment::{emulation, placeholder, scale, spec, spec_text, Metric, Request, SourceLocation};
use widthwise_machine::compiler::Compiler;
use widthwise_machine::record::MachineRecord;
use widthwise_machine::topology::Topology;
use widthwise_measure::comparison::{self};
use widthwise_measure::core_lock::CoreLock;
use widthwise_measure::passes::emulated_machine::timed;
use widthwise_measure::plan::{Machine, Participant, Plan};
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::limits::Limits;
use widthwise_measure::run::runner::{Accounting, Runner};
use widthwise_proc::affinity;

use crate::arguments::Arguments;
use crate::compare::emulated::Emulator;
use crate::compare::question::Question;
use crate::compare::quotas::Quotas;
use crate::compare::recorder::Recorder;
use crate::explain::excerpts;
use crate::failure::Failure;
use crate::feasibility;
use crate::formats::Formats;
use crate::interrupt;
use crate::load_report::{self, LoadedReport};
use crate::measured_core;
use crate::micro;
use crate::output::{self, current_folder, short};
use crate::preparation::{self, Prepared, WorkDirectories};
use crate::progress::Progress;
use crate::session;

const EXAMPLES: &str = "\
Examples:
  widthwise compare tree.cpp -- 100000
  widthwise compare tree.cpp --abi x86-64,x32 --flags -O2 --flags '-O3 -march=native'
  widthwise compare ./project --build make --run '{build}/program input'
  widthwise compare debian:sqlite3 --build make --run '{build}/speedtest1 --size 20'
  widthwise compare ./a.out ./b.out --run '{binary} input'   # finished programs
  widthwise compare fib.py --run 'python3 {binary} 30'       # a script
  widthwise compare --binary x86-64=./a64 --binary i386=./a32
  widthwise compare micro:getpid,strcpy --abi x86-64,x32     # operations of the micro suite
  widthwise compare widthwise.toml --precision 1% --max-time 5m --json=report.json";

/// Build every variant, run them interleaved, and report what each costs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", question::metrics()))]
pub struct Compare {
    #[command(flatten)]
    arguments: Arguments,
    #[command(flatten)]
    question: Question,

    /// Where campaigns are kept
    #[arg(long, value_name = "FOLDER", default_value = ".widthwise", help_heading = "Campaign")]
    archive: PathBuf,
    /// Continue an interrupted campaign; a new stopping rule may be given
    #[arg(long, value_name = "CAMPAIGN", help_heading = "Campaign")]
    resume: Option<PathBuf>,
    /// Record the heap in separate runs of each variant (2 to 6, by their duration, or this number): which lines request how
    /// much memory (`widthwise explain --heap`)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "auto",
          value_parser = recordings, help_heading = "Campaign")]
    heap: Option<Recordings>,
    /// Count instructions, cache and branch misses of each function under valgrind, and page faults, in runs of each variant's own
    /// (`widthwise explain --time`)
    #[arg(long, help_heading = "Campaign")]
    functions: bool,
    /// Number of parallel builds
    #[arg(long, value_name = "N", help_heading = "Campaign")]
    jobs: Option<usize>,
    #[command(flatten, next_help_heading = "Report")]
    formats: Formats,
    /// Show every metric on the terminal
    #[arg(long, help_heading = "Report")]
    all_metrics: bool,
}

/// How often each variant's heap is recorded; nothing: as often as its time allows.
#[derive(Debug, Clone, Copy)]
struct Recordings(Option<u32>);

/// What `--heap` says.
fn recordings(word: &str) -> Result<Recordings, String> {
    /// More would take too long.
    const MOST: u32 = 100;
    match word {
        "auto" => Ok(Recordings(None)),
        number => match number.parse() {
            Ok(number @ 1..=MOST) => Ok(Recordings(Some(number))),
            _ => Err(format!("it takes a number of recordings, from 1 to {MOST}")),
        },
    }
}

/// What a session of a campaign begins with.
struct Session {
    compilers: Vec<Compiler>,
    request: Request,
    experiment: Experiment,
    archive: Option<Archive>,
    /// The spec of a resumed campaign with another stopping rule or more memory rounds.
    new_spec: Option<String>,
}

impl Compare {
    /// Builds, measures, reports.
    pub fn run(&self) -> Result<(), Failure> {
        self.formats.check()?;
        let mut progress = Progress::new();
        let mut session = match &self.resume {
            Some(folder) => self.resumed(folder)?,
            None => self.begun()?,
        };
        let resumed = session.archive.as_ref().map(Archive::folder);
        feasibility::check(&session.request, &session.experiment)?;
        let place =
            WorkDirectories::new(&session.experiment.launch.directory, resumed, &self.archive, self.jobs)?;
        let prepared = preparation::prepare(&session.experiment, &session.compilers, &place, &progress)?;
        let archive = self.archive(&mut session, &prepared, &place)?;
        let folder = archive.folder().to_owned();
        let ended = self.measure(archive, &session.experiment, &prepared, &mut progress);
        // With the folder of runs: from here on a signal may end the process.
        drop(place);
        progress.end();
        load_report::end_at_once(&folder, &ended)?;
        let reported = self.report(&folder);
        load_report::outcome(ended, reported)
    }

    /// A new campaign's request, checked.
    fn begun(&self) -> Result<Session, Failure> {
        self.arguments.name_something("compare")?;
        let mut request = self.arguments.request(|request| self.question.say(request))?;
        let here = current_folder()?;
        micro::complete(&mut request, &here.join(&self.archive))?;
        refuse_words_of_scale(&request)?;
        let compilers = session::compilers(&request);
        let (request, experiment) = session::resolve(request, &compilers)?;
        self.check_native_baseline(&experiment)?;
        Ok(Session { compilers, request, experiment, archive: None, new_spec: None })
    }

    /// Passes over native programs need a native baseline.
    fn check_native_baseline(&self, experiment: &Experiment) -> Result<(), Failure> {
        let passes = [
            (self.heap.is_some(), "--heap", "the recording of the heap"),
            (self.functions, "--functions", "the count by function"),
        ];
        for (_, flag, what) in passes.into_iter().filter(|(is_asked, ..)| *is_asked) {
            emulation::native_baseline(what, &experiment.variants, &experiment.baseline)
                .map_err(|kind_of_error| Failure::request(SourceLocation::Flag(flag).wrong(kind_of_error)))?;
        }
        Ok(())
    }

    /// A resumed campaign: its own request, with the stopping rule and the memory rounds of the command line.
    fn resumed(&self, folder: &Path) -> Result<Session, Failure> {
        if self.arguments.asks_more_than_resuming(true) || self.question.asks_anything() {
            return Err(Failure::request(
                "--resume continues the campaign as it began: only --rounds, --precision and --max-time may be given with it, and what has runs of its own: --memory, --heap, \
                 --functions",
            ));
        }
        load_report::refuse_scaling(&Archive::read(folder).map_err(Failure::request)?)?;
        let archive = Archive::resume(folder).map_err(Failure::request)?;
        let metadata = archive.metadata().clone();
        let request =
            spec::parse(&metadata.spec, &short(&folder.join("widthwise.toml"))).map_err(Failure::request)?;
        session::check_files(&request)?;
        let (request, is_new) = self.arguments.resumed(request)?;
        let compilers = session::compilers(&request);
        let spec = spec_text(&request);
        let experiment = session::experiment(folder, &spec, metadata.seed)?;
        self.check_native_baseline(&experiment)?;
        let new_spec = is_new.then_some(spec);
        Ok(Session { compilers, request, experiment, archive: Some(archive), new_spec })
    }

    /// The archive: made, or checked for being the same campaign still.
    fn archive(
        &self,
        session: &mut Session,
        prepared: &Prepared,
        place: &WorkDirectories,
    ) -> Result<Archive, Failure> {
        let resumed = session.archive.take();
        let (request, experiment) = (&session.request, &session.experiment);
        let fingerprint = preparation::fingerprint(experiment, prepared, place);
        let machine = MachineRecord::with(prepared.compilers.clone());
        if let Some(mut archive) = resumed {
            session::check_fingerprint(&archive, fingerprint, &machine)?;
            if let Some(spec) = &session.new_spec {
                archive.set_spec(spec).map_err(Failure::machine)?;
            }
            return Ok(archive);
        }
        let metadata = Metadata {
            created: session::now(),
            widthwise: env!("CARGO_PKG_VERSION").to_owned(),
            command: crate::arguments::typed(),
            program: experiment.program.name.clone(),
            program_version: prepared.source.as_ref().map_or(String::new(), |source| source.version.clone()),
            spec: spec_text(request),
            seed: experiment.seed,
            machine: serde_json::to_value(&machine).map_err(Failure::machine)?,
            fingerprint,
            scaling: None,
            variants: session::variant_rows(experiment),
        };
        let mut archive = Archive::create(&place.root, &metadata).map_err(|error| match error {
            ArchiveError::ReadOnly { .. } => Failure::request(format!("{error} (`--archive`)")),
            error => Failure::machine(error),
        })?;
        self.keep_builds(&mut archive, prepared).map_err(Failure::machine)?;
        Ok(archive)
    }

    /// Keeps how each variant was built, and why one was not.
    fn keep_builds(&self, archive: &mut Archive, prepared: &Prepared) -> Result<(), ArchiveError> {
        for ready in &prepared.variants {
            if let (Some(build), Some(log)) = (&ready.build, &ready.log) {
                let kept = archive.folder().join("build").join(&ready.slug).join("log");
                let copied = kept.parent().map(std::fs::create_dir_all).is_some_and(|made| made.is_ok())
                    && std::fs::copy(log, &kept).is_ok();
                let mut build = build.clone();
                build.log = short(if copied { &kept } else { log });
                archive.set_build(&build)?;
            }
            for warning in &ready.warnings {
                archive.warn(warning)?;
            }
            if let Err(status) = &ready.start {
                archive.set_status(&ready.name, status)?;
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        mut archive: Archive,
        experiment: &Experiment,
        prepared: &Prepared,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let statuses = archive.load().map_err(Failure::machine)?.statuses;
        let out = |name: &str| statuses.get(name).is_some_and(|status| status.not_measured().is_some());
        let participants = match participants(experiment, prepared, &out) {
            Ok(participants) => participants,
            Err(status) => return Err(without_baseline(archive, experiment, &status)),
        };
        interrupt::listen().map_err(Failure::machine)?;
        let accounting = if experiment.launch.exit_stop { Accounting::ExitStop } else { Accounting::Free };
        let scratch = archive.folder().join("scratch");
        let mut runner = Runner::new(&scratch, &experiment.metrics, accounting).map_err(Failure::machine)?;
        let is_timed = experiment.is_timed(&experiment.baseline);
        let lock = if is_timed { core(experiment, progress) } else { None };
        let cpus = cpus(experiment, lock.as_ref());
        if let [cpu] = cpus[..] {
            affinity::step_aside(cpu);
        }
        let emulator = Emulator::of(runner.missing_counters());
        let of_timing =
            if is_timed { remarks(experiment, &runner, lock.as_ref(), accounting) } else { Vec::new() };
        for text in of_timing
            .into_iter()
            .chain(emulator.missing())
            .chain(micro::working_sets::remark(experiment, &Topology::here()))
            .chain(emulated_machine::remarks(experiment, &prepared.variants))
        {
            archive.warn(&text).map_err(Failure::machine)?;
        }
        let emulated_alone;
        let is_timed_metric = |metric: &Metric| metric.is_timed() && !emulator.metrics.contains(metric);
        let experiment = if !experiment.metrics.iter().any(is_timed_metric) {
            emulated_alone = emulated::without_timing(experiment);
            &emulated_alone
        } else {
            experiment
        };
        let mut plan = Plan {
            participants,
            seed: experiment.seed,
            order: experiment.order,
            layouts: experiment.layouts,
            first_round: archive.next_round(),
            warmup: experiment.warmup,
            cpus,
            concurrent: experiment.launch.concurrent,
            limits: Limits::of(&experiment.launch),
            check: experiment.check.clone(),
            folder: archive.folder().to_owned(),
            epoch: session::epoch(&archive.metadata().created),
        };
        let mut recorder = Recorder::new(archive, experiment, progress).map_err(Failure::machine)?;
        let ended = self.passes(experiment, prepared, &mut plan, &emulator, &mut runner, &mut recorder);
        let session = recorder.session();
        let why = recorder.why.clone();
        let archive = recorder.archive;
        drop(runner);
        let _ = std::fs::remove_dir_all(&scratch);
        ending(archive, ended, why, session, progress)
    }

    /// The timed rounds, then the passes that are not timed: of the variants that can be compared.
    fn passes(
        &self,
        experiment: &Experiment,
        prepared: &Prepared,
        plan: &mut Plan,
        emulator: &Emulator,
        runner: &mut Runner,
        recorder: &mut Recorder,
    ) -> Result<End, RoundsError<ArchiveError>> {
        let everyone = plan.participants.clone();
        // Times are compared natively, or under KVM, and not across.
        let is_native = !experiment.is_emulated(&experiment.baseline);
        plan.participants.retain(|participant| match participant.machine {
            Machine::Native => is_native,
            Machine::Guest(_) => experiment.kvm,
            Machine::User { .. } => false,
        });
        if experiment.is_timed(&experiment.baseline) && !recorder.has_enough() {
            let quotas = Quotas::watch();
            let end = match is_native {
                true => comparison::measure(plan, runner, recorder)?,
                false => {
                    let operations = emulated_machine::operations(experiment);
                    timed::measure(plan, &experiment.metrics, operations.as_ref(), runner, recorder)?
                }
            };
            if let Some(text) = quotas.remark() {
                recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
            }
            if end != End::Enough {
                return Ok(end);
            }
        }
        plan.participants.retain(|participant| recorder.is_compared(&participant.name));
        if is_native {
            let end = memory::sample(experiment, plan, runner, recorder)?;
            if end != End::Enough {
                return Ok(end);
            }
            plan.participants.retain(|participant| recorder.is_compared(&participant.name));
            let end = emulator.emulate(plan, runner, recorder)?;
            if end != End::Enough {
                return Ok(end);
            }
            let end = emulated::count_operations(experiment, plan, runner, recorder)?;
            if end != End::Enough {
                return Ok(end);
            }
        }
        let end = emulated_machine::count(experiment, plan, everyone, runner, recorder)?;
        // The passes that follow make few and long runs, and no rounds.
        recorder.archive.end_batch().map_err(RoundsError::Observer)?;
        let asked = [("--heap", self.heap.is_some()), ("--functions", self.functions)];
        let makes_runs = end == End::Enough && is_native;
        for (flag, _) in asked.into_iter().filter(|(_, is_asked)| *is_asked && makes_runs) {
            recorder.says_who_is_left_out(flag);
        }
        let end = match self.heap {
            Some(Recordings(number)) if end == End::Enough && is_native => {
                heap::record(plan, &prepared.compilers, number, runner, recorder)?
            }
            _ => end,
        };
        match end {
            End::Enough if self.functions && is_native => functions::record(plan, runner, recorder),
            _ => Ok(end),
        }
    }

    /// The report: the terminal's text or the formats asked for, and a page in the campaign's folder.
    fn report(&self, folder: &Path) -> Result<(), Failure> {
        let archive = Archive::read(folder).map_err(Failure::machine)?;
        let loaded = LoadedReport::new(&archive, None)?.with_heap(&archive);
        let excerpts = excerpts::of(&archive, &loaded.comparison()?, Some(folder))?;
        let inner_loops = micro::loops::of_campaign(&archive, &loaded.comparison()?);
        let loaded = loaded.with_explanations(excerpts).with_inner_loops(inner_loops);
        loaded.publish(&self.formats, self.all_metrics)
    }
}

/// The participants: the baseline, the variants that can be started, and the A/A control.
/// `out` are those who failed before a campaign was resumed.
fn participants(
    experiment: &Experiment,
    prepared: &Prepared,
    out: &dyn Fn(&str) -> bool,
) -> Result<Vec<Participant>, VariantStatus> {
    let mut all = Vec::new();
    let mut control = None;
    for ready in &prepared.variants {
        let is_baseline = ready.name == experiment.baseline;
        match &ready.start {
            Ok(_) if out(&ready.name) && !is_baseline => {}
            Ok(start) => {
                let participant = Participant {
                    name: ready.name.clone(),
                    slug: ready.slug.clone(),
                    role: experiment.role(&ready.name),
                    start: start.clone(),
                    machine: ready.machine.clone(),
                    further_layouts: ready.further_layouts.clone(),
                };
                if is_baseline {
                    let name = experiment.control();
                    let (slug, role) = (slug(&name), Role::Control);
                    let machine = ready.machine.clone();
                    let mut layouts = prepared.control.iter().cloned();
                    let start = layouts.next().unwrap_or_else(|| start.clone());
                    let further_layouts = layouts.collect();
                    control = Some(Participant { name, slug, role, start, further_layouts, machine });
                    all.insert(0, participant);
                } else {
                    all.push(participant);
                }
            }
            Err(status) if is_baseline => return Err(status.clone()),
            Err(_) => {}
        }
    }
    all.extend(control);
    Ok(all)
}

/// Notes that the baseline cannot be measured: the failure that ends the campaign.
fn without_baseline(mut archive: Archive, experiment: &Experiment, status: &VariantStatus) -> Failure {
    let reason = format!("the baseline {}: {}", experiment.baseline, status.reason().unwrap_or_default());
    match archive.set_stopped("the baseline cannot be measured", Duration::ZERO) {
        Ok(()) => Failure::program(reason),
        Err(error) => Failure::machine(error),
    }
}

/// Notes why the session ended; what the command ends with.
fn ending(
    mut archive: Archive,
    ended: Result<End, RoundsError<ArchiveError>>,
    why: Option<String>,
    session: Duration,
    progress: &Progress,
) -> Result<(), Failure> {
    let interrupted = matches!(ended, Ok(End::Interrupted));
    let (why, result) = match ended {
        Ok(End::Enough) => (why.unwrap_or_default(), Ok(())),
        Ok(End::Interrupted) => ("interrupted".to_owned(), Err(Failure::interrupted())),
        Ok(End::NoBaseline) => ("the baseline failed".to_owned(), Err(Failure::reported())),
        Err(RoundsError::Observer(error)) => return Err(Failure::machine(error)),
        Err(RoundsError::Run(error)) => (error.to_string(), Err(Failure::machine(error))),
    };
    archive.set_stopped(&why, session).map_err(Failure::machine)?;
    if interrupted {
        let folder = output::word(archive.folder());
        progress.say(&format!("interrupted; `widthwise compare --resume {folder}` continues"));
    }
    result
}

/// The CPUs that runs may use; empty for all.
fn cpus(experiment: &Experiment, lock: Option<&CoreLock>) -> Vec<u32> {
    match (&experiment.launch.cpus, lock) {
        (Cpus::List(cpus), _) => cpus.clone(),
        (_, Some(lock)) => vec![lock.cpu],
        _ if experiment.launch.concurrent => Topology::here().allowed.into_iter().take(1).collect(),
        _ => Vec::new(),
    }
}

/// The core to measure on, where one is to be chosen.
fn core(experiment: &Experiment, progress: &Progress) -> Option<CoreLock> {
    if experiment.launch.cpus != Cpus::Auto {
        return None;
    }
    measured_core::take(&mut |text| progress.say(text))
}

/// What a reader must know of how this campaign was measured.
fn remarks(
    experiment: &Experiment,
    runner: &Runner,
    lock: Option<&CoreLock>,
    accounting: Accounting,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if accounting == Accounting::ExitStop {
        remarks.push(
            "each process was traced to its exit (--exit-stop): page faults, context switches and times are not those \
             of a free run"
                .into(),
        );
    } else if let Some(reason) = &runner.without_taskstats {
        remarks.push(format!(
            "peak address space, sums over processes and their number were not read: taskstats: {reason} (it takes \
             CAP_NET_ADMIN; `--exit-stop` needs no privileges)"
        ));
    }
    // After an interrupt while a core was waited for, no run is made.
    if experiment.launch.cpus == Cpus::Auto && lock.is_none() && !interrupt::is_wanted() {
        remarks.push(match experiment.launch.concurrent {
            true => "no core could be chosen and locked: other campaigns may have used the same CPU".into(),
            false => "runs were not pinned: no core could be chosen".into(),
        });
    }
    if let Some((cpu, reason)) = lock.and_then(|lock| Some((lock.cpu, lock.unlocked.as_ref()?))) {
        remarks.push(format!(
            "CPU {cpu} was not locked ({reason}): other campaigns may have measured on it, too"
        ));
    }
    if experiment.launch.concurrent {
        remarks.push(
            "the runs of a round ran concurrently, in time slices on one CPU: what they share of its caches is in \
             their CPU time (an error of about 0.1 % that intervals do not cover), and they have no wall time of their own"
                .into(),
        );
    }
    if experiment.judging.estimator == Estimator::TenRunTrim {
        remarks.push(
            "ten-run-trim leaves out the two slowest and the two fastest of ten runs, as peringer-2007 did"
                .into(),
        );
    }
    remarks
}

/// What only `scale` fills in.
fn refuse_words_of_scale(request: &Request) -> Result<(), Failure> {
    let Some(run) = &request.program.run else { return Ok(()) };
    match placeholder::used(&run.value).find(|word| scale::WORDS.contains(word)) {
        Some(word) => Err(Failure::request(format!(
            "{}: {{{word}}} is filled in by `widthwise scale`, which measures several processes; compare has one",
            run.location
        ))),
        None => Ok(()),
    }
}
