//! The counts by function: runs of each variant under callgrind, and one that reports page faults, after everything that is timed.

use std::sync::atomic::Ordering;

use widthwise_archive::ArchiveError;
use widthwise_experiment::Role;
use widthwise_machine::valgrind;
use widthwise_measure::comparison::CampaignObserver;
use widthwise_measure::passes::functions::{self, REPEATS};
use widthwise_measure::passes::recordings::KeptRecording;
use widthwise_measure::plan::{Participant, Plan};
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::runner::Runner;

use crate::compare::recorder::Recorder;

/// Makes those recordings that an earlier session has not made. What cannot be recorded is said, and ends nothing.
pub fn record(
    plan: &Plan,
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let version = match valgrind::here() {
        Ok(version) => version,
        Err(unavailable) => {
            let fix = unavailable.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
            let text = format!("functions were not counted: {unavailable}{fix}");
            recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
            return Ok(End::Enough);
        }
    };
    let mut participants: Vec<&Participant> =
        plan.participants.iter().filter(|one| one.role != Role::Control).collect();
    let outputs = recorder.outputs();
    for repeat in 1..=REPEATS {
        for participant in std::mem::take(&mut participants) {
            if functions::Recording::recorded(&plan.folder, &participant.slug, repeat).is_none() {
                recorder
                    .says(&format!("counting the functions of {}, {repeat} of {REPEATS}", participant.name));
            }
            let interrupted = recorder.interrupted();
            let cancelled = || interrupted.load(Ordering::Relaxed) >= 1;
            let answer = outputs.get(&participant.name).map(String::as_str);
            let made = functions::record(plan, participant, repeat, &version, answer, runner, &cancelled)?;
            let Some(recording) = made else { return Ok(End::Interrupted) };
            let missing = recording.page_faults_missing.iter();
            let texts = recording
                .refused
                .iter()
                .map(|reason| format!("its functions could not be counted: {reason}"))
                .chain(missing.map(|reason| format!("its page faults could not be recorded: {reason}")));
            for text in texts {
                let text = format!("{}: {text}", participant.name);
                recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
            }
            if recording.refused.is_none() {
                participants.push(participant);
            }
        }
    }
    Ok(End::Enough)
}
