//! From the archive to a report: samples are judged, and everything a reader wants to know is laid beside them.

mod heap;

use std::collections::BTreeMap;
use std::path::Path;
use widthwise_experiment::VariantStatus;

use widthwise_archive::{Archive, Samples};
use widthwise_experiment::model::Experiment;
use widthwise_machine::record::MachineRecord;
use widthwise_report::campaign::RuntimeCalls;
use widthwise_report::campaign::{BuildNote, Campaign, ProcessNote};
use widthwise_report::heap::Recorded;
use widthwise_report::MemoryRun;
use widthwise_verdict::{judge, Evidence, Judgement};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::short;
use crate::session::experiment;

/// A campaign read from its archive, and judged.
pub struct LoadedReport {
    experiment: Experiment,
    stored: Samples,
    statuses: BTreeMap<String, VariantStatus>,
    judgement: Judgement,
    memory: Vec<MemoryRun>,
    heap: Vec<Recorded>,
    folder: String,
    metadata: widthwise_archive::Metadata,
    machine_lines: Vec<(String, String)>,
}

impl LoadedReport {
    /// Reads and judges.
    pub fn new(archive: &Archive) -> Result<LoadedReport, Failure> {
        LoadedReport::with_margin(archive, None)
    }

    /// As [`LoadedReport::new`], with another margin of equivalence than the campaign was begun with.
    pub fn with_margin(archive: &Archive, equal_within: Option<f64>) -> Result<LoadedReport, Failure> {
        let metadata = archive.metadata().clone();
        let mut experiment = experiment(&metadata.spec, metadata.seed)?;
        let judging = &mut experiment.judging;
        judging.equal_within = equal_within.unwrap_or(judging.equal_within);
        let mut stored = archive.load().map_err(Failure::request)?;
        let memory = std::mem::take(&mut stored.series)
            .into_iter()
            .map(|(round, variant, series)| MemoryRun { round, variant, series })
            .collect();
        let statuses = std::mem::take(&mut stored.statuses);
        let judgement = judge(&Evidence {
            experiment: &experiment,
            rounds: &stored.rounds,
            runs: &stored.runs,
            statuses: &statuses,
        });
        let machine_lines = serde_json::from_value::<MachineRecord>(metadata.machine.clone())
            .map(|record| record.lines())
            .unwrap_or_default();
        Ok(LoadedReport {
            experiment,
            stored,
            statuses,
            judgement,
            memory,
            heap: Vec::new(),
            folder: short(archive.folder()),
            metadata,
            machine_lines,
        })
    }

    /// Reads what was recorded of the heaps, too: for the page, which alone shows it.
    pub fn with_heap(self, archive: &Archive) -> LoadedReport {
        LoadedReport { heap: heap::recorded(archive), ..self }
    }

    /// As the report wants it.
    pub fn campaign(&self) -> Campaign<'_> {
        Campaign {
            experiment: &self.experiment,
            version: self.metadata.program_version.clone(),
            folder: self.folder.clone(),
            created: self.metadata.created.clone(),
            spec: &self.metadata.spec,
            command: self.metadata.command.clone(),
            widthwise: &self.metadata.widthwise,
            machine: &self.metadata.machine,
            machine_lines: self.machine_lines.clone(),
            rounds: &self.stored.rounds,
            runs: &self.stored.runs,
            memory: &self.memory,
            heap: &self.heap,
            statuses: &self.statuses,
            judgement: &self.judgement,
            builds: self.builds(),
            stopped: self.stored.stopped.clone().unwrap_or_else(|| "it has not ended".into()),
            elapsed: self.stored.elapsed,
            warnings: self.stored.warnings.clone(),
            processes: self.processes(),
            runtime_calls: self.runtime_calls(),
            differences: self.stored.differences.clone(),
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
        self.stored.builds.iter().map(note).collect()
    }

    fn runtime_calls(&self) -> Vec<RuntimeCalls> {
        let note = |calls: &widthwise_archive::RuntimeCalls| RuntimeCalls {
            variant: calls.variant.clone(),
            call: calls.call.clone(),
            entered: calls.entered,
            trapped: calls.trapped,
        };
        self.stored.runtime_calls.iter().map(note).collect()
    }

    fn processes(&self) -> Vec<ProcessNote> {
        let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
        for process in &self.stored.processes {
            *totals.entry(&process.variant).or_default() += process.cpu_ns;
        }
        self.stored
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

    /// Whether the program or a build of it failed, or answered differently: exit status 1.
    pub fn has_failed(&self) -> bool {
        self.statuses.values().any(VariantStatus::is_failure)
    }
}

/// All runs of a campaign are made, and only its report is not: from here on an interrupt ends that at once.
pub fn end_at_once(folder: &Path, ended: &Result<(), Failure>) -> Result<(), Failure> {
    let folder = short(folder);
    let line =
        format!("interrupted; all runs are kept in {folder}: `widthwise report {folder}` makes the report");
    let is_obeyed = ended.as_ref().is_err_and(Failure::is_interrupted);
    interrupt::end_at_once(&line, is_obeyed).map_err(Failure::machine)
}
