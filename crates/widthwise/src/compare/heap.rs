//! The recordings of the heap: several runs of each variant, in turn, after everything that is timed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use widthwise_experiment::Role;

use widthwise_archive::ArchiveError;
use widthwise_machine::compiler::{self, Compiler};
use widthwise_measure::comparison::CampaignObserver;
use widthwise_measure::passes::heap::recorder::Recorder as HeapRecorder;
use widthwise_measure::passes::heap::{self, Recording, Repeats};
use widthwise_measure::passes::recordings::KeptRecording;
use widthwise_measure::plan::{Participant, Plan};
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::runner::Runner;
use widthwise_report::format::duration;

use crate::compare::recorder::Recorder;
use crate::explain::side_logs;

/// A pass over the variants of a campaign.
struct Pass<'a, 'r> {
    plan: &'a Plan,
    /// Those that can be recorded; none twice.
    participants: Vec<&'a Participant>,
    heap_recorder: HeapRecorder,
    runner: &'a mut Runner,
    recorder: &'a mut Recorder<'r>,
    /// Warnings that were given already.
    reported: BTreeSet<String>,
}

/// Makes those recordings that an earlier session has not made; `wanted`: so many of each variant, where that was said. What
/// cannot be recorded is reported, and ends nothing.
pub fn record(
    plan: &Plan,
    compilers: &[Compiler],
    wanted: Option<u32>,
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let found = compiler::discover_for(&[]);
    let Some(compiler) = compiler::default(&found).or(compilers.first()) else {
        let fix = "the heap was not recorded: it takes a C compiler; apt-get install gcc libc6-dev";
        recorder.archive.warn(fix).map_err(RoundsError::Observer)?;
        return Ok(End::Enough);
    };
    let heap_recorder = match HeapRecorder::place(compiler) {
        Ok(heap_recorder) => heap_recorder,
        Err(error) => {
            recorder
                .archive
                .warn(&format!("the heap was not recorded: {error}"))
                .map_err(RoundsError::Observer)?;
            return Ok(End::Enough);
        }
    };
    let participants = plan.participants.iter().filter(|one| one.role != Role::Control).collect();
    let mut pass = Pass { plan, participants, heap_recorder, runner, recorder, reported: BTreeSet::new() };
    let Some(first) = pass.round(1)? else { return Ok(End::Interrupted) };
    let number = wanted.unwrap_or_else(|| pass.repeats(&first).number());
    let long: Duration = first.iter().map(|recording| Duration::from_nanos(recording.wall_ns)).sum();
    for repeat in 2..=number {
        if pass.is_left(repeat) {
            pass.recorder.says(&format!(
                "recording every heap again, {repeat} of {number}: some {} left",
                duration(long * (number + 1 - repeat))
            ));
        }
        if pass.round(repeat)?.is_none() {
            return Ok(End::Interrupted);
        }
    }
    Ok(End::Enough)
}

impl Pass<'_, '_> {
    /// One recording of each variant; every other time in the opposite order, so that what drifts meets all alike. Variants
    /// that cannot be recorded are left out from then on. `None`: it was interrupted.
    fn round(&mut self, repeat: u32) -> Result<Option<Vec<Recording>>, RoundsError<ArchiveError>> {
        let outputs = self.recorder.outputs();
        let mut order = self.participants.clone();
        if repeat.is_multiple_of(2) {
            order.reverse();
        }
        let mut recordings = Vec::new();
        for participant in order {
            if repeat == 1
                && heap::Recording::recorded(&self.plan.folder, &participant.slug, repeat).is_none()
            {
                self.recorder.says(&format!("recording the heap of {}", participant.name));
            }
            let interrupted = self.recorder.interrupted();
            let cancelled = || interrupted.load(Ordering::Relaxed) >= 1;
            let answer = outputs.get(&participant.name).map(String::as_str);
            let made = heap::record(
                self.plan,
                participant,
                repeat,
                &self.heap_recorder,
                answer,
                self.runner,
                &cancelled,
            )?;
            let Some(recording) = made else { return Ok(None) };
            self.warn(participant, &recording)?;
            if recording.refused.is_some() {
                self.participants.retain(|one| one.name != participant.name);
            } else {
                recordings.push(recording);
            }
        }
        Ok(Some(recordings))
    }

    /// What a reader must know, once.
    fn warn(
        &mut self,
        participant: &Participant,
        recording: &Recording,
    ) -> Result<(), RoundsError<ArchiveError>> {
        let refused =
            recording.refused.iter().map(|reason| format!("its heap could not be recorded: {reason}"));
        for remark in refused.chain(recording.remarks.iter().cloned()) {
            let text = format!("{}: {remark}", participant.name);
            if self.reported.insert(text.clone()) {
                self.recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
            }
        }
        Ok(())
    }

    /// Whether a recording of that number is still to be made.
    fn is_left(&self, repeat: u32) -> bool {
        let is_missing =
            |one: &&Participant| heap::Recording::recorded(&self.plan.folder, &one.slug, repeat).is_none();
        self.participants.iter().any(is_missing)
    }

    /// What decides how often each variant is recorded.
    fn repeats(&self, first: &[Recording]) -> Repeats {
        let packed = |participant: &&Participant| log_bytes(&self.plan.folder, &participant.slug);
        Repeats {
            first: first.iter().map(|recording| Duration::from_nanos(recording.wall_ns)).sum(),
            log_bytes: self.participants.iter().map(packed).max().unwrap_or(0),
            campaign: self.recorder.timed_alone(),
        }
    }
}

/// The packed logs of a variant's first recording.
fn log_bytes(campaign: &Path, slug: &str) -> u64 {
    let logs = side_logs::logs(&heap::Recording::folder(campaign, slug, 1));
    logs.iter().filter_map(|log| Some(log.metadata().ok()?.len())).sum()
}
