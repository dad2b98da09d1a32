//! `scale`: how throughput and memory grow with the number of processes.

mod background_load;
mod question;
mod recorder;

use std::path::{Path, PathBuf};
use std::time::Duration;
use widthwise_experiment::role::control_of;
use widthwise_experiment::{Role, VariantStatus};

use clap::Args;
use widthwise_archive::{Archive, ArchiveError, Metadata, Scaling};
use widthwise_experiment::model::{Experiment, OutputCheck};
use widthwise_experiment::outcome::{Round, RoundKind};
use widthwise_experiment::scale::{Cell, GroupRun, Mode, Plan, Purpose};
use widthwise_experiment::{metric, spec, spec_text, Request};
use widthwise_machine::compiler::Compiler;
use widthwise_machine::noise;
use widthwise_machine::record::MachineRecord;
use widthwise_machine::topology::Topology;
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::launch_spec::LaunchSpec;
use widthwise_measure::run::limits::Limits;
use widthwise_measure::scale::{measure, GroupSpec, LauncherPool, ScalingRounds, Slot};
use widthwise_verdict::stopping::Why;

use crate::arguments::Arguments;
use crate::session;

use crate::failure::Failure;
use crate::feasibility;
use crate::formats::Formats;
use crate::interrupt;
use crate::load_report::{self, end_at_once, LoadedReport};
use crate::output::{self, short};
use crate::preparation::{self, Prepared, WorkDirectories};
use crate::progress::Progress;
use crate::session::experiment;
use question::Question;
use recorder::ScalingRecorder;

const EXAMPLES: &str = "\
Examples:
  widthwise scale worker.c --processes 1,2,4 -- 100000
  widthwise scale ./reco --build make --run '{build}/reco -j {processes}' --mode fork,jobs
  widthwise scale ./new ./old --run '{binary} -j {processes}' --mode threads
  widthwise scale worker.c --placement cores,siblings --placement 0,1 --json=scale.json";

/// Hides what `scale` refuses, since it measures times.
fn without_emulation(argument: clap::Arg) -> clap::Arg {
    const REFUSED: [&str; 4] = ["kernel", "kvm", "instruction_classes", "cache_model"];
    let is_refused = REFUSED.contains(&argument.get_id().as_str());
    argument.hide(is_refused)
}

/// Measure throughput and memory against the number of processes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(without_emulation))]
pub struct Scale {
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
    /// Number of parallel builds
    #[arg(long, value_name = "N", help_heading = "Campaign")]
    jobs: Option<usize>,
    #[command(flatten, next_help_heading = "Report")]
    formats: Formats,
}

/// What a session begins with.
struct Session {
    compilers: Vec<Compiler>,
    request: Request,
    experiment: Experiment,
    plan: Plan,
    spec: String,
    /// The archive does not have the spec yet.
    is_new: bool,
    archive: Option<Archive>,
}

/// A variant ready to start, in one mode.
struct Participant {
    variant: String,
    mode: Mode,
    start: LaunchSpec,
}

impl Scale {
    /// Builds, measures, reports.
    pub fn run(&self) -> Result<(), Failure> {
        self.formats.check()?;
        let mut progress = Progress::new();
        let topology = Topology::here();
        let mut session = match &self.resume {
            Some(folder) => self.resumed(folder)?,
            None => self.begun(&topology)?,
        };
        let resumed = session.archive.as_ref().map(Archive::folder);
        feasibility::check(&session.request, &session.experiment)?;
        let place =
            WorkDirectories::new(&session.experiment.launch.directory, resumed, &self.archive, self.jobs)?;
        let prepare =
            |experiment: &Experiment| preparation::prepare(experiment, &session.compilers, &place, &progress);
        let prepared = prepare(&session.experiment)?;
        let of_jobs = match &session.plan.jobs_run {
            Some(run) => {
                let mut experiment = session.experiment.clone();
                experiment.program.run = run.clone();
                Some(prepare(&experiment)?)
            }
            None => None,
        };
        let archive = self.archive(&mut session, &prepared, &topology, &place)?;
        let folder = archive.folder().to_owned();
        let participants = participants(&session.plan, &prepared, of_jobs.as_ref());
        if participants.is_empty() {
            let reason = prepared.variants.iter().find_map(|ready| ready.start.as_ref().err());
            return Err(Failure::program(
                reason.and_then(VariantStatus::reason).unwrap_or("nothing can be started").to_owned(),
            ));
        }
        let ended = self.measure(archive, &session, &participants, &topology, &mut progress);
        // With the folder of runs: from here on a signal may end the process.
        drop(place);
        progress.end();
        end_at_once(&folder, &ended)?;
        let archive = Archive::read(&folder).map_err(Failure::request)?;
        let reported = LoadedReport::new(&archive, None)?.publish(&self.formats, false);
        load_report::outcome(ended, reported)
    }

    fn begun(&self, topology: &Topology) -> Result<Session, Failure> {
        self.arguments.name_something("scale")?;
        let request = self.arguments.request(|_| Ok(()))?;
        let memory = request.measure.memory.as_ref().map(|rounds| rounds.value);
        let compilers = session::compilers(&request);
        let (request, experiment) = session::resolve(request, &compilers)?;
        if experiment.has_emulated() {
            return Err(Failure::request(
                "scale measures times, and an emulated machine has none: leave out other kernels and ABIs of other processors",
            ));
        }
        let experiment = with_one_layout(experiment);
        let plan = self.question.plan(topology, &experiment.program.run, memory)?;
        let spec = spec_text(&request);
        Ok(Session { compilers, request, experiment, plan, spec, is_new: true, archive: None })
    }

    fn resumed(&self, folder: &Path) -> Result<Session, Failure> {
        if self.arguments.asks_more_than_resuming(false) || self.question.asks_anything() {
            return Err(Failure::request(
                "--resume continues the campaign as it began: only --rounds, --precision and --max-time may be given with it",
            ));
        }
        load_report::scaling::asked(&Archive::read(folder).map_err(Failure::request)?)?;
        let archive = Archive::resume(folder).map_err(Failure::request)?;
        let metadata = archive.metadata().clone();
        let request =
            spec::parse(&metadata.spec, &short(&folder.join("widthwise.toml"))).map_err(Failure::request)?;
        let (request, is_new) = self.arguments.resumed(request)?;
        let compilers = session::compilers(&request);
        let spec = spec_text(&request);
        let experiment = with_one_layout(experiment(folder, &spec, metadata.seed)?);
        let plan = load_report::scaling::asked(&archive)?.plan.clone();
        // What it was begun with was feasible, and its machine must be the same.
        let request = Request::default();
        Ok(Session { compilers, request, experiment, plan, spec, is_new, archive: Some(archive) })
    }

    /// The archive: new, or an existing one whose campaign is still the same.
    fn archive(
        &self,
        session: &mut Session,
        prepared: &Prepared,
        topology: &Topology,
        place: &WorkDirectories,
    ) -> Result<Archive, Failure> {
        let fingerprint = preparation::fingerprint(&session.experiment, prepared, place);
        let machine = MachineRecord::with(prepared.compilers.clone());
        if let Some(mut archive) = session.archive.take() {
            session::check_fingerprint(&archive, fingerprint, &machine)?;
            if session.is_new {
                archive.set_spec(&session.spec).map_err(Failure::machine)?;
            }
            return Ok(archive);
        }
        let plan = &session.plan;
        let most = plan.counts.last().copied().unwrap_or(1);
        let mut placements = Vec::new();
        let mut remarks = Vec::new();
        for name in &plan.placements {
            let placed = question::place(topology, name, &plan.kinds, most)?;
            remarks.extend(placed.remarks.iter().map(|remark| format!("{name}: {remark}")));
            placements.push((name.clone(), placed.cpus));
        }
        let experiment = &session.experiment;
        let usable = |core: &&widthwise_machine::topology::Core| !core.cpus.is_disjoint(&topology.allowed);
        let scaling = Scaling {
            plan: plan.clone(),
            memory: machine.settings.memory_bytes.unwrap_or(0),
            placements,
            allowed: topology.allowed.iter().copied().collect(),
            cores: topology
                .cores
                .iter()
                .filter(usable)
                .map(|core| core.cpus.iter().copied().collect())
                .collect(),
            confidence: experiment.judging.confidence,
        };
        let metadata = Metadata {
            created: session::now(),
            widthwise: env!("CARGO_PKG_VERSION").to_owned(),
            command: crate::arguments::typed(),
            program: experiment.program.name.clone(),
            program_version: prepared.source.as_ref().map_or(String::new(), |source| source.version.clone()),
            spec: session.spec.clone(),
            seed: experiment.seed,
            machine: serde_json::to_value(&machine).map_err(Failure::machine)?,
            fingerprint,
            variants: session::variant_rows(experiment),
            scaling: Some(scaling),
        };
        let mut archive = Archive::create(&place.root, &metadata).map_err(Failure::request)?;
        for ready in &prepared.variants {
            if let Err(status) = &ready.start {
                archive.set_status(&ready.name, status).map_err(Failure::machine)?;
            }
        }
        for ready in &prepared.variants {
            remarks.extend(ready.warnings.iter().cloned());
        }
        for remark in remarks {
            archive.warn(&remark).map_err(Failure::machine)?;
        }
        Ok(archive)
    }

    fn measure(
        &self,
        mut archive: Archive,
        session: &Session,
        participants: &[Participant],
        topology: &Topology,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        interrupt::listen().map_err(Failure::machine)?;
        let plan = &session.plan;
        let allowed: Vec<u32> = topology.allowed.iter().copied().collect();
        let event_log = question::event_log(plan)?;
        let load = plan.load.as_ref().map(|text| background_load::load(text, &participants[0].start));
        let wanted =
            ["cycles", "instructions", "stalled_cycles", "task_clock"].into_iter().filter_map(metric::find);
        let mut pool = LauncherPool::new(&wanted.collect::<Vec<_>>());
        for remark in machine_remarks(&mut pool)? {
            archive.warn(&remark).map_err(Failure::machine)?;
        }
        let samples = archive.load().map_err(Failure::machine)?;
        let known = samples.group_runs;
        let cells = cells(plan, participants, &session.experiment.baseline, topology)?;
        let make = |purposes: &[Purpose]| -> Vec<Slot> {
            slots(
                plan,
                &cells,
                purposes,
                &known,
                Shared {
                    allowed: &allowed,
                    load: load.as_ref(),
                    check: &session.experiment.check,
                    event_log: event_log.as_ref(),
                },
            )
        };
        let scratch = archive.folder().join("scratch");
        let phases = phases(plan, &session.experiment, &samples.rounds);
        let planned = phases
            .iter()
            .map(|phase| Some(phase.rounds?.saturating_mul(make(&phase.purposes).len() as u32)))
            .sum();
        let timed = recorder::rounds_of(&samples.rounds, RoundKind::Timed);
        let mut observer =
            ScalingRecorder::new(archive, progress, session.experiment.stopping, planned, timed)
                .map_err(Failure::machine)?;
        let mut ended = Ok(End::Enough);
        for Phase { rounds, kind, purposes } in phases {
            let is_made = rounds == Some(0) || kind != RoundKind::Memory && observer.is_over();
            if is_made {
                continue;
            }
            let made = observer.archive.load().map_err(Failure::machine)?.group_runs;
            let mut slots = make(&purposes);
            for slot in &mut slots {
                slot.out |= made.iter().any(|run| run.excludes(slot.spec.cell, slot.spec.purpose));
            }
            let work = ScalingRounds {
                slots,
                seed: session.experiment.seed,
                first_round: observer.archive.next_round(),
                most: rounds,
                kind,
                scratch: &scratch,
                limits: Limits::of(&session.experiment.launch),
            };
            ended = measure(work, &mut pool, &mut observer);
            if !matches!(ended, Ok(End::Enough)) {
                break;
            }
        }
        let why = observer.why.clone().or(observer.unreached.take());
        let time = observer.session();
        let archive = observer.archive;
        drop(pool);
        let _ = std::fs::remove_dir_all(&scratch);
        ending(archive, ended, why, time, progress)
    }
}

/// Rounds of one kind.
struct Phase {
    /// How many; without a number the stopping rule decides.
    rounds: Option<u32>,
    kind: RoundKind,
    purposes: Vec<Purpose>,
}

/// The rounds that are still to be made. A round that was interrupted is made anew: its runs do not count.
fn phases(plan: &Plan, experiment: &Experiment, known: &[Round]) -> [Phase; 3] {
    let left = |rounds: u32, kind| rounds.saturating_sub(recorder::rounds_of(known, kind));
    let warmup = left(experiment.warmup, RoundKind::Warmup);
    let memory = left(plan.memory_rounds, RoundKind::Memory);
    let mut timed = vec![Purpose::Timed];
    if plan.sequential {
        timed.extend([Purpose::OneEvent, Purpose::HalfOfEvents]);
    }
    let timed_left = experiment.stopping.rounds.map(|most| left(most, RoundKind::Timed));
    [
        Phase { rounds: Some(warmup), kind: RoundKind::Warmup, purposes: vec![Purpose::Timed] },
        Phase { rounds: timed_left, kind: RoundKind::Timed, purposes: timed },
        Phase { rounds: Some(memory), kind: RoundKind::Memory, purposes: vec![Purpose::Memory] },
    ]
}

/// Notes why the session ended; what the command ends with.
fn ending(
    mut archive: Archive,
    ended: Result<End, RoundsError<ArchiveError>>,
    why: Option<String>,
    session: Duration,
    progress: &Progress,
) -> Result<(), Failure> {
    let is_interrupted = matches!(ended, Ok(End::Interrupted));
    let is_expected = why.is_none();
    let (why, result) = match ended {
        Ok(End::Interrupted) => ("interrupted".to_owned(), Err(Failure::interrupted())),
        Ok(_) => (why.unwrap_or_else(|| Why::Rounds.to_string()), Ok(())),
        Err(RoundsError::Observer(error)) => return Err(Failure::machine(error)),
        Err(RoundsError::Run(error)) => (error.to_string(), Err(Failure::machine(error))),
    };
    archive.set_stopped(&why, session).map_err(Failure::machine)?;
    if is_interrupted {
        let folder = output::word(archive.folder());
        progress.say(&format!("interrupted; `widthwise scale --resume {folder}` continues"));
    } else if result.is_ok() && !is_expected {
        progress.say(&format!("  {why}"));
    }
    result
}

/// Layouts of a spec file are for `compare`, as its estimator is.
fn with_one_layout(experiment: Experiment) -> Experiment {
    Experiment { layouts: 0, ..experiment }
}

/// Everyone who can be started, in each mode; the baseline first.
fn participants(plan: &Plan, prepared: &Prepared, of_jobs: Option<&Prepared>) -> Vec<Participant> {
    let mut all = Vec::new();
    for &mode in &plan.modes {
        let from = match of_jobs {
            Some(of_jobs) if mode == Mode::Jobs => of_jobs,
            _ => prepared,
        };
        for ready in &from.variants {
            if let Ok(start) = &ready.start {
                all.push(Participant { variant: ready.name.clone(), mode, start: start.clone() });
            }
        }
    }
    all
}

/// A cell with all that it takes.
struct Ready<'a> {
    cell: Cell,
    role: Role,
    start: &'a LaunchSpec,
    cpus: Vec<u32>,
    /// It is the smallest of its variant and mode, in the first placement: the sequential part is estimated there.
    is_smallest: bool,
}

/// Every cell, and the baseline's smallest once more: the A/A pair.
fn cells<'a>(
    plan: &Plan,
    participants: &'a [Participant],
    baseline: &str,
    topology: &Topology,
) -> Result<Vec<Ready<'a>>, Failure> {
    let mut all = Vec::new();
    for participant in participants {
        for (number, name) in plan.placements.iter().enumerate() {
            for (step, &processes) in plan.counts.iter().enumerate() {
                let cell = Cell {
                    variant: participant.variant.clone(),
                    mode: participant.mode,
                    placement: name.clone(),
                    processes,
                };
                let cpus = question::place(topology, name, &plan.kinds, processes)?.cpus;
                let is_smallest = number == 0 && step == 0;
                if is_smallest && participant.variant == baseline && participant.mode == plan.modes[0] {
                    let cell = Cell { variant: control_of(baseline), ..cell.clone() };
                    all.push(Ready {
                        cell,
                        role: Role::Control,
                        start: &participant.start,
                        cpus: cpus.clone(),
                        is_smallest: false,
                    });
                }
                let role = if participant.variant == baseline { Role::Baseline } else { Role::Variant };
                all.push(Ready { cell, role, start: &participant.start, cpus, is_smallest });
            }
        }
    }
    Ok(all)
}

/// What all runs have in common.
struct Shared<'a> {
    allowed: &'a [u32],
    load: Option<&'a LaunchSpec>,
    check: &'a OutputCheck,
    event_log: Option<&'a widthwise_measure::scale::event_log::EventLog>,
}

/// The runs of a round, for these purposes.
fn slots<'a>(
    plan: &Plan,
    cells: &'a [Ready<'a>],
    purposes: &[Purpose],
    known: &[GroupRun],
    shared: Shared<'a>,
) -> Vec<Slot<'a>> {
    let mut slots = Vec::new();
    for ready in cells {
        for &purpose in purposes {
            let work = plan.work(ready.cell.mode);
            let events = purpose.events(work.events(ready.cell.processes), &ready.cell);
            let wanted = match purpose {
                Purpose::OneEvent | Purpose::HalfOfEvents => ready.is_smallest,
                Purpose::Memory => ready.role != Role::Control,
                _ => true,
            };
            if !wanted {
                continue;
            }
            slots.push(Slot {
                spec: GroupSpec {
                    cell: &ready.cell,
                    purpose,
                    start: ready.start,
                    cpus: &ready.cpus,
                    allowed: shared.allowed,
                    events,
                    work,
                    padding: 0,
                    load: shared.load,
                    check: shared.check,
                    event_log: shared.event_log,
                },
                out: known.iter().any(|run| run.excludes(&ready.cell, purpose)),
            });
        }
    }
    slots
}

/// What a reader must know of how this campaign was measured.
fn machine_remarks(pool: &mut LauncherPool) -> Result<Vec<String>, Failure> {
    let mut remarks = Vec::new();
    if let Some(reason) = &pool.without_taskstats {
        remarks.push(format!(
            "times of children and threads are those of the last look at them, up to 0.1 s before their end: taskstats: \
             {reason} (it takes CAP_NET_ADMIN)"
        ));
    }
    let missing = pool.missing_counters().map_err(Failure::machine)?;
    let mut reasons: Vec<&String> = missing.iter().map(|(_, reason)| reason).collect();
    reasons.sort();
    reasons.dedup();
    for reason in reasons {
        let names: Vec<&str> =
            missing.iter().filter(|(_, other)| other == reason).map(|(metric, _)| metric.name).collect();
        remarks.push(format!("no {}: {reason}; clock-normalised parallel time, instructions per cycle and stalled cycles per instruction need them", names.join(", ")));
    }
    let busy = noise::busy_during(Duration::from_millis(100));
    if let Some(busy) = busy.ok().filter(|busy| !busy.is_empty()) {
        let names: Vec<String> = busy.iter().map(u32::to_string).collect();
        remarks
            .push(format!("something else was running on CPU {} before the first round", names.join(", ")));
    }
    Ok(remarks)
}
