//! From the archive to a report, whatever the kind of the campaign: judges the samples and collects what the report shows.

pub mod heap;
mod picture;
pub mod scaling;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use widthwise_archive::{Archive, Metadata, Samples};
use widthwise_experiment::model::{Experiment, Launch};
use widthwise_experiment::outcome::{Ending, RoundKind, Run};
use widthwise_experiment::{memory, VariantStatus};
use widthwise_machine::record::MachineRecord;
use widthwise_report::excerpt::Excerpt;
use widthwise_report::heap::Recorded;
use widthwise_report::inner_loops::InnerLoop;
use widthwise_report::text::Palette;
use widthwise_report::{
    terminal, BuildNote, Campaign, Comparison, MemoryRun, ProcessNote, Report, RuntimeCalls,
};
use widthwise_verdict::{judge, Evidence, Judgement};

use crate::failure::Failure;
use crate::formats::Formats;
use crate::interrupt;
use crate::output::{self, short};
use crate::session::experiment;
use scaling::LoadedScaling;

/// A campaign read from its archive, and judged.
pub struct LoadedReport {
    experiment: Experiment,
    metadata: Metadata,
    samples: Samples,
    folder: PathBuf,
    machine: Option<MachineRecord>,
    body: Body,
}

/// What only one kind of campaign has.
enum Body {
    Comparison {
        judgement: Box<Judgement>,
        memory: Vec<MemoryRun>,
        heap: Vec<Recorded>,
        explanations: Vec<Excerpt>,
        inner_loops: Vec<InnerLoop>,
    },
    Scaling(Box<LoadedScaling>),
}

/// Refuses a scaling campaign where one of `compare` is needed.
pub fn refuse_scaling(archive: &Archive) -> Result<(), Failure> {
    match archive.metadata().scaling {
        Some(_) => Err(is_scaling(archive.folder())),
        None => Ok(()),
    }
}

fn is_scaling(folder: &Path) -> Failure {
    Failure::request(format!(
        "{}: this is a campaign of `widthwise scale`; a campaign of `widthwise compare` is needed",
        short(folder)
    ))
}

impl LoadedReport {
    /// Reads and judges; `equal_within` replaces the margin of equivalence that the campaign began with.
    pub fn new(archive: &Archive, equal_within: Option<f64>) -> Result<LoadedReport, Failure> {
        let metadata = archive.metadata().clone();
        let mut experiment = experiment(archive.folder(), &metadata.spec, metadata.seed)?;
        let judging = &mut experiment.judging;
        judging.equal_within = equal_within.unwrap_or(judging.equal_within);
        let mut samples = archive.load().map_err(Failure::request)?;
        let machine = serde_json::from_value::<MachineRecord>(metadata.machine.clone()).ok();
        let body = match &metadata.scaling {
            Some(asked) => {
                Body::Scaling(Box::new(LoadedScaling::new(asked, &metadata, &experiment, &mut samples)))
            }
            None => comparison(&experiment, &mut samples, rss_lag(&experiment.launch, &metadata.machine)),
        };
        Ok(LoadedReport { experiment, metadata, samples, folder: archive.folder().to_owned(), machine, body })
    }

    /// Reads the heap recordings of a comparison, too: only its page shows them.
    pub fn with_heap(mut self, archive: &Archive) -> LoadedReport {
        if let Body::Comparison { heap, .. } = &mut self.body {
            *heap = heap::recorded(archive, &self.samples.statuses);
        }
        self
    }

    /// The page of a comparison shows these explanations.
    pub fn with_explanations(mut self, of: Vec<Excerpt>) -> LoadedReport {
        if let Body::Comparison { explanations, .. } = &mut self.body {
            *explanations = of;
        }
        self
    }

    /// The page of a campaign of the micro suite shows these inner loops.
    pub fn with_inner_loops(mut self, of: Vec<InnerLoop>) -> LoadedReport {
        if let Body::Comparison { inner_loops, .. } = &mut self.body {
            *inner_loops = of;
        }
        self
    }

    /// The input of every format.
    pub fn report(&self) -> Report<'_> {
        match &self.body {
            Body::Comparison { judgement, memory, heap, explanations, inner_loops } => {
                Report::Comparison(Box::new(Comparison {
                    campaign: self.campaign(),
                    runs: &self.samples.runs,
                    memory,
                    heap,
                    explanations,
                    inner_loops,
                    judgement,
                    processes: self.processes(),
                    runtime_calls: self.runtime_calls(),
                    differences: self.differences(),
                }))
            }
            Body::Scaling(scaling) => {
                let topology = self.machine.as_ref().map(|machine| &machine.topology);
                Report::Scaling(Box::new(scaling.report(self.campaign(), &self.samples.group_runs, topology)))
            }
        }
    }

    /// How outputs differ; where a filter failed there is nothing to show.
    fn differences(&self) -> BTreeMap<String, String> {
        let mut differences = self.samples.differences.clone();
        differences.retain(|_, difference| !difference.trim().is_empty());
        differences
    }

    /// The input of a report on a comparison; a scaling campaign is refused.
    pub fn comparison(&self) -> Result<Comparison<'_>, Failure> {
        match self.report() {
            Report::Comparison(comparison) => Ok(*comparison),
            Report::Scaling(_) => Err(is_scaling(&self.folder)),
        }
    }

    /// Writes the report of a campaign whose rounds have just ended: a page in its folder, the formats asked for, and the
    /// terminal's text unless one of them is on standard output, also where a file could not be written. Fails in that
    /// case, and if the program or a build failed.
    pub fn publish(&self, formats: &Formats, all_metrics: bool) -> Result<(), Failure> {
        let report = self.report();
        let page = self.folder.join("report.html");
        let kept = output::keep(&page, report.html().as_bytes());
        let is_complete = self.samples.stopped.as_deref() != Some("interrupted");
        let written =
            formats.write(&report).map_err(|unwritten| unwritten.of_campaign(&self.folder, is_complete));
        if !formats.is_on_stdout() {
            let options = terminal::Options {
                width: output::width(),
                all_metrics,
                palette: Palette::coloured(),
                why: self.folder.join("heap").is_dir().then(|| "widthwise explain".to_owned()),
                report: kept.is_ok().then(|| short(&page)),
            };
            output::print(&report.terminal(&options))?;
        }
        written.and(kept)?;
        if self.has_failed() {
            return Err(Failure::reported());
        }
        Ok(())
    }

    fn campaign(&self) -> Campaign<'_> {
        Campaign {
            experiment: &self.experiment,
            version: self.metadata.program_version.clone(),
            folder: short(&self.folder),
            created: self.metadata.created.clone(),
            spec: &self.metadata.spec,
            command: self.metadata.command.clone(),
            widthwise: &self.metadata.widthwise,
            machine: &self.metadata.machine,
            machine_lines: self.machine.as_ref().map(MachineRecord::lines).unwrap_or_default(),
            rounds: &self.samples.rounds,
            statuses: &self.samples.statuses,
            builds: self.builds(),
            stopped: self.samples.stopped.clone().unwrap_or_else(|| "it has not ended".into()),
            elapsed: self.samples.elapsed,
            warnings: self.samples.warnings.clone(),
        }
    }

    fn builds(&self) -> Vec<BuildNote> {
        let note = |build: &widthwise_archive::BuildNote| BuildNote {
            variant: build.variant.clone(),
            compiler: build.compiler.clone(),
            cflags: build.cflags.clone(),
            binary_bytes: build.binary_bytes,
            digest: build.digest.clone().unwrap_or_default(),
            log: build.log.clone(),
            seconds: (!build.cached).then_some(build.seconds),
        };
        self.samples.builds.iter().map(note).collect()
    }

    fn runtime_calls(&self) -> Vec<RuntimeCalls> {
        let note = |calls: &widthwise_archive::RuntimeCalls| RuntimeCalls {
            variant: calls.variant.clone(),
            call: calls.call.clone(),
            entered: calls.entered,
            trapped: calls.trapped,
        };
        self.samples.runtime_calls.iter().map(note).collect()
    }

    fn processes(&self) -> Vec<ProcessNote> {
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for process in &self.samples.processes {
            *totals.entry(&process.variant).or_default() += process.cpu_ns;
        }
        self.samples
            .processes
            .iter()
            .map(|process| ProcessNote {
                variant: process.variant.clone(),
                comm: process.comm.clone(),
                count: process.count,
                max_rss: process.max_rss_bytes as u64,
                cpu_share: match totals.get(process.variant.as_str()) {
                    Some(total) if *total > 0.0 => process.cpu_ns / total,
                    _ => 0.0,
                },
            })
            .collect()
    }

    /// Whether a timed run or one of the warm-up failed. A program that an emulator cannot run has not, nor one that cannot be
    /// started here.
    fn has_failed_run(&self) -> bool {
        let is_of_program = |run: &Run| {
            let kind =
                self.samples.rounds.iter().find(|round| round.number == run.round).map(|round| round.kind);
            matches!(kind, Some(RoundKind::Warmup | RoundKind::Timed | RoundKind::Interrupted))
        };
        let failed = |run: &&Run| !matches!(run.ending, Ending::Done | Ending::SpawnFailed { .. });
        self.samples.runs.iter().filter(failed).any(is_of_program)
    }

    /// Whether the program or a build of it failed, or its output differs: exit status 1.
    fn has_failed(&self) -> bool {
        match &self.body {
            Body::Comparison { .. } => {
                self.samples.statuses.values().any(VariantStatus::is_failure) || self.has_failed_run()
            }
            Body::Scaling(scaling) => {
                scaling.has_mismatch(&self.experiment)
                    || self.samples.group_runs.iter().any(|run| !run.is_sound())
            }
        }
    }
}

/// By how many bytes the kernel's account of max RSS may lag in a campaign with that machine record.
pub fn rss_lag(launch: &Launch, machine: &Value) -> u64 {
    let topology = &machine["topology"];
    let allowed = topology["allowed"].as_array().map_or(1, Vec::len);
    let cores = topology["cores"].as_array().into_iter().flatten();
    let online = cores.map(|core| core["cpus"].as_array().map_or(0, Vec::len)).sum::<usize>();
    memory::rss_lag(launch, machine["settings"]["kernel"].as_str(), online, allowed)
}

/// Judges a comparison.
fn comparison(experiment: &Experiment, samples: &mut Samples, rss_lag: u64) -> Body {
    let memory = std::mem::take(&mut samples.series)
        .into_iter()
        .map(|(round, variant, series)| MemoryRun { round, variant, series })
        .collect();
    let judgement = Box::new(judge(&Evidence {
        experiment,
        rounds: &samples.rounds,
        runs: &samples.runs,
        statuses: &samples.statuses,
        rss_lag,
    }));
    let (heap, explanations, inner_loops) = (Vec::new(), Vec::new(), Vec::new());
    Body::Comparison { judgement, memory, heap, explanations, inner_loops }
}

/// All runs of a campaign are complete, and its report is not: from now on an interrupt ends the process at once.
pub fn end_at_once(folder: &Path, ended: &Result<(), Failure>) -> Result<(), Failure> {
    let folder = short(folder);
    let line =
        format!("interrupted; all runs are kept in {folder}: `widthwise report {folder}` makes the report");
    let is_obeyed = ended.as_ref().is_err_and(Failure::is_interrupted);
    interrupt::end_at_once(&line, is_obeyed).map_err(Failure::machine)
}

/// How a command ends: by why its rounds ended, which says more than that a variant failed, or that the report found no
/// room either. If the report already says that, a file that could not be written is still named.
pub fn outcome(ended: Result<(), Failure>, reported: Result<(), Failure>) -> Result<(), Failure> {
    match (ended, reported) {
        (Err(ended), Err(reported)) if ended.message().is_empty() => {
            reported.print();
            Err(ended)
        }
        (ended, reported) => ended.and(reported),
    }
}
