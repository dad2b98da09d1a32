//! Makes a recording: a run with the recorder preloaded, and its logs compressed into the campaign.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use widthwise_experiment::outcome::Ending;
use widthwise_machine::elf;

use crate::passes::heap::recorder::Recorder;
use crate::passes::heap::recording::{Recording, ENDING};
use crate::passes::heap::{log_file, packing, system};
use crate::passes::recordings::{empty_scratch, outputs_differently, scratch, KeptRecording, Partial};
use crate::plan::{Participant, Plan};
use crate::program::preload_first;
use crate::run::ending::failure;
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;
use widthwise_proc::sampler::{Sampler, Watch};

/// A recording with stacks takes several times as long for a program that does little besides allocate.
const SLOWER: u32 = 20;
/// The share of time that reading memory may take in such a run, which is not timed.
const SHARE: f64 = 0.05;
/// The beginning of a log's name while it is recorded.
const LOG: &str = "log";

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
    if let Some(recording) = Recording::recorded(&plan.folder, &participant.slug, number) {
        return Ok(Some(recording));
    }
    let logs = empty_scratch::<Recording>(plan)?;
    log_file::create(&logs.join(LOG)).map_err(scratch(&logs))?;
    let Some((mut recording, result)) = recorded_run(plan, participant, recorder, &logs, runner, cancelled)?
    else {
        return Ok(None);
    };
    if result.ending != Ending::Done {
        let failure = format!("with the recorder: {}", failure(&result.ending, &runner.stderr()));
        recording.remarks.push(failure.clone());
        recording.failure = Some(failure);
    } else if outputs_differently(plan, participant, answer, runner) {
        recording.remarks.push("with the recorder its output differs from the output without it".to_owned());
    }
    let partial = Partial::begin::<Recording>(plan, participant, number)?;
    let Some(seen) = pack_all(&logs, partial.folder(), cancelled)? else { return Ok(None) };
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
    partial.keep(&recording)?;
    let _ = std::fs::remove_dir_all(&logs);
    Ok(Some(recording))
}

/// The run with the recorder preloaded and the sampler beside it. `None`: it was interrupted.
fn recorded_run(
    plan: &Plan,
    participant: &Participant,
    recorder: &Recorder,
    logs: &Path,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<(Recording, RunResult)>, RunError> {
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let preload = recorder.copy_to(logs).map_err(|error| scratch(logs)(std::io::Error::other(error)))?;
    let start = preloaded(&participant.start, &preload, logs);
    let watch = Watch {
        launcher: runner.launcher(),
        cpus: plan.cpus.clone(),
        runtime: start.resolved_runtime(),
        recorder: Some(logs.to_owned()),
        marks: None,
        group: None,
        share: SHARE,
    };
    let sampler = Sampler::start(watch).map_err(scratch(logs))?;
    let result = runner.run(&start, 0, &plan.cpus, limits, cancelled);
    let seen = sampler.stop();
    let result = result?;
    if cancelled() {
        return Ok(None);
    }
    let series = seen.since(result.began_at, result.wall);
    let recording = Recording {
        began_ns: result.began_at.as_nanos() as u64,
        wall_ns: result.wall.as_nanos() as u64,
        system: system::moments(&series),
        largest: system::largest(&series),
        samples: Some(series.statm_samples_made + series.pagemap_scans_made + series.readings_made),
        held_ns: Some(system::held_ns(&series)),
        ends: series.processes.iter().map(|process| (process.pid, process.ended_ns)).collect(),
        ..Recording::default()
    };
    Ok(Some((recording, result)))
}

/// Compresses the logs into the folder, and removes them. Returns the processes that they are of. `None`: it was
/// interrupted.
fn pack_all(
    logs: &Path,
    into: &Path,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<BTreeSet<u32>>, RunError> {
    let mut seen = BTreeSet::new();
    for log in &found(logs).map_err(scratch(logs))? {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match packing::pack(log, &into.join(format!("{name}.{ENDING}")), cancelled).map_err(scratch(log))? {
            Some(processes) => seen.extend(processes),
            None => return Ok(None),
        }
        std::fs::remove_file(log).map_err(scratch(log))?;
    }
    Ok(Some(seen))
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
