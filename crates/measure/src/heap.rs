//! The heap as the process sees it: untimed runs of each variant with the recorder preloaded, in a separate
//! pass. Each variant is recorded more than once: variation between its recordings is no difference between
//! variants.

mod log_file;
mod packing;
pub mod recorder;
mod repeats;
mod system;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use widthwise_experiment::outcome::Ending;
use widthwise_machine::elf;

use crate::ending::failure;
use crate::heap::recorder::Recorder;
pub use crate::heap::repeats::{Repeats, FEWEST, MOST};
use crate::memory;
use crate::output;
use crate::plan::{Participant, Plan};
use crate::program::preload_first;
use crate::run::{LaunchSpec, Limits, RunError, Runner};
use crate::sampler::{Sampler, Watch};

/// A recording with stacks takes several times as long for a program that does little besides allocate.
const SLOWER: u32 = 20;
/// The share of time that reading memory may take in such a run, which is not timed.
const SHARE: f64 = 0.05;
/// The end of a log's name in a campaign.
pub const ENDING: &str = "wwheap.zst";
/// The beginning of a log's name while it is recorded.
const LOG: &str = "log";
/// The metadata of a variant's recording, stored beside its logs.
pub const NOTE: &str = "recording.json";

/// The result of a recording pass for a variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Why there are no logs.
    pub refused: Option<String>,
    /// Why the recorded run is incomplete: it failed or was stopped.
    #[serde(default)]
    pub failure: Option<String>,
    /// What a reader must know of the logs.
    pub remarks: Vec<String>,
    /// When the run began, by CLOCK_MONOTONIC, in nanoseconds.
    pub began_ns: u64,
    /// How long it ran, with the recorder.
    pub wall_ns: u64,
    /// The memory that the system gave it for its heap, over time.
    pub system: Vec<SystemMoment>,
    /// How often its memory was sampled. Absent in recordings of earlier versions, like the next field.
    #[serde(default)]
    pub samples: Option<u64>,
    /// For how long of the run `system` is known to be valid.
    #[serde(default)]
    pub held_ns: Option<u64>,
    /// The processes that the sampler saw: their numbers, and when each was found to be gone, in nanoseconds
    /// since the program began.
    #[serde(default)]
    pub ends: Vec<(u32, u64)>,
}

/// The memory of a process tree as the system sees it, without the recorder's. Resident bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMoment {
    /// Nanoseconds since the program began.
    pub at_ns: u64,
    /// What `brk` grows.
    pub heap: u64,
    /// Anonymous mappings other than stacks.
    pub mmapped: u64,
    /// All but the recorder's.
    pub resident: u64,
}

/// The folder of a variant's logs in a campaign: the first recording's is the variant's folder, the others',
/// counted from 2, are folders within it.
pub fn folder(campaign: &Path, slug: &str, number: u32) -> PathBuf {
    let first = campaign.join("heap").join(slug);
    match number {
        ..=1 => first,
        _ => first.join(number.to_string()),
    }
}

/// The metadata of a recording, if it exists.
pub fn recorded(campaign: &Path, slug: &str, number: u32) -> Option<Recording> {
    let note = std::fs::read(folder(campaign, slug, number).join(NOTE)).ok()?;
    serde_json::from_slice(&note).ok()
}

/// Makes the recording of that number, counted from 1, for a participant, unless it exists. `answer` is the
/// digest of its output without the recorder. `None`: the recording was interrupted.
///
/// # Errors
/// A run cannot be made, or its logs cannot be stored.
pub fn record(
    plan: &Plan,
    participant: &Participant,
    number: u32,
    recorder: &Recorder,
    answer: Option<&str>,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Recording>, RunError> {
    if let Some(recording) = recorded(&plan.folder, &participant.slug, number) {
        return Ok(Some(recording));
    }
    let kept = folder(&plan.folder, &participant.slug, number);
    let logs = plan.folder.join("scratch").join("heap");
    let scratch = |path: &Path| {
        let path = path.to_owned();
        move |error| RunError::Scratch { path, error }
    };
    match std::fs::remove_dir_all(&logs) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(scratch(&logs)(error)),
        _ => std::fs::create_dir_all(&logs).map_err(scratch(&logs))?,
    }
    let logs = std::fs::canonicalize(&logs).map_err(scratch(&logs))?;
    log_file::create(&logs.join(LOG)).map_err(scratch(&logs))?;
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let preload = recorder.copy_to(&logs).map_err(|error| scratch(&logs)(std::io::Error::other(error)))?;
    let start = preloaded(&participant.start, &preload, &logs);
    let watch = Watch {
        launcher: runner.launcher(),
        cpus: plan.cpus.clone(),
        runtime: memory::runtime_of(&start),
        recorder: Some(logs.clone()),
        marks: None,
        group: None,
        share: SHARE,
    };
    let sampler = Sampler::start(watch).map_err(scratch(&logs))?;
    let result = runner.run(&start, 0, &plan.cpus, limits, cancelled);
    let seen = sampler.stop();
    let result = result?;
    if cancelled() {
        return Ok(None);
    }
    let series = seen.since(result.began_at, result.wall);
    let mut recording = Recording {
        began_ns: result.began_at.as_nanos() as u64,
        wall_ns: result.wall.as_nanos() as u64,
        system: system::moments(&series),
        samples: Some(series.statm_samples_made + series.pagemap_scans_made + series.readings_made),
        held_ns: Some(system::held_ns(&series)),
        ends: series.processes.iter().map(|process| (process.pid, process.ended_ns)).collect(),
        ..Recording::default()
    };
    let found = found(&logs).map_err(scratch(&logs))?;
    if result.ending != Ending::Done {
        let failure = format!("with the recorder it {}", failure(&result.ending, &runner.stderr()));
        recording.remarks.push(failure.clone());
        recording.failure = Some(failure);
    } else if outputs_differently(plan, participant, answer, runner) {
        recording.remarks.push("with the recorder its output differs from the output without it".to_owned());
    }
    let partial = kept.with_extension("partial");
    let _ = std::fs::remove_dir_all(&partial);
    std::fs::create_dir_all(&partial).map_err(scratch(&partial))?;
    let mut seen = BTreeSet::new();
    for log in &found {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let packed = partial.join(format!("{name}.{ENDING}"));
        match packing::pack(log, &packed, cancelled).map_err(scratch(log))? {
            Some(processes) => seen.extend(processes),
            None => {
                let _ = std::fs::remove_dir_all(&partial);
                return Ok(None);
            }
        }
        std::fs::remove_file(log).map_err(scratch(log))?;
    }
    let processes = result.processes.map_or(0, |all| all.len());
    let unseen = processes.saturating_sub(seen.len());
    if seen.is_empty() {
        recording.refused = Some(unrecorded(&participant.start, recorder));
    } else if unseen > 0 {
        recording.remarks.push(format!(
            "{unseen} of its {processes} processes left no log: they are static, set-user-ID, without LD_PRELOAD in their \
             environment, or allocated nothing"
        ));
    }
    let note = serde_json::to_vec_pretty(&recording).unwrap_or_default();
    std::fs::write(partial.join(NOTE), note).map_err(scratch(&partial))?;
    let _ = std::fs::remove_dir_all(&kept);
    std::fs::rename(&partial, &kept).map_err(scratch(&kept))?;
    let _ = std::fs::remove_dir_all(&logs);
    Ok(Some(recording))
}

/// The same launch with the recorder before everything else that is preloaded.
fn preloaded(start: &LaunchSpec, preload: &str, logs: &Path) -> LaunchSpec {
    let mut environment = start.environment.clone();
    preload_first(&mut environment, preload.as_ref());
    environment.insert("WIDTHWISE_HEAP_LOG".into(), logs.join(LOG).into());
    LaunchSpec { environment, ..start.clone() }
}

/// The logs of a run: files with the recorder's name prefix.
fn found(logs: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(logs)? {
        let entry = entry?;
        let is_log = entry.file_name().to_string_lossy().starts_with(LOG);
        if is_log && entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn outputs_differently(
    plan: &Plan,
    participant: &Participant,
    before: Option<&str>,
    runner: &Runner,
) -> bool {
    let here = (!plan.check.off)
        .then(|| {
            output::Reader::default()
                .digest(&plan.check, &runner.stdout(), &participant.start.directory, None)
                .ok()
        })
        .flatten();
    matches!((here, before), (Some(here), Some(before)) if here != before)
}

/// Why a program left no log.
fn unrecorded(start: &LaunchSpec, recorder: &Recorder) -> String {
    use std::os::unix::fs::PermissionsExt;
    let facts = match elf::read(&start.file) {
        Ok(facts) => facts,
        Err(error) => return format!("{error}"),
    };
    let abi = facts.abi();
    if !facts.is_dynamic() {
        let name = abi.map_or("its ABI", |abi| abi.name);
        return format!(
            "it is static, and nothing can be preloaded: link the recorder into it \
             (`widthwise explain --heap --link-options {name}` prints the words)"
        );
    }
    if let Some((_, reason)) =
        recorder.missing.iter().find(|(name, _)| abi.is_some_and(|abi| abi.name == *name))
    {
        return format!("there is no recorder for its ABI: {reason}");
    }
    let mode = std::fs::metadata(&start.file).map_or(0, |data| data.permissions().mode());
    if mode & 0o6000 != 0 {
        return "it is set-user-ID or set-group-ID, and the dynamic linker preloads nothing into such a program".to_owned();
    }
    "it allocated nothing, or its C library is not glibc".to_owned()
}
