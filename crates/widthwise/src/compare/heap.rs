//! The recordings of the heap: one run of each variant, after everything that is timed.

use std::sync::atomic::Ordering;

use widthwise_archive::ArchiveError;
use widthwise_machine::compiler::{self, Compiler};
use widthwise_measure::heap;
use widthwise_measure::heap::recorder::Recorder as HeapRecorder;
use widthwise_measure::rounds::{End, Plan, RoundsError, Witness};
use widthwise_measure::run::Runner;

use crate::compare::recorder::Recorder;

/// Records those variants that an earlier session has not. What cannot be recorded is said, and ends nothing.
pub fn record(
    plan: &Plan,
    compilers: &[Compiler],
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let found = compiler::discover();
    let Some(compiler) = compiler::default(&found).or(compilers.first()) else {
        let mend = "the heap was not recorded: it takes a C compiler; apt-get install gcc libc6-dev";
        recorder.archive.warn(mend).map_err(RoundsError::Witness)?;
        return Ok(End::Enough);
    };
    let heap_recorder = match HeapRecorder::place(compiler) {
        Ok(heap_recorder) => heap_recorder,
        Err(error) => {
            recorder
                .archive
                .warn(&format!("the heap was not recorded: {error}"))
                .map_err(RoundsError::Witness)?;
            return Ok(End::Enough);
        }
    };
    let answers = recorder.answers();
    let again = plan.participants.last().map(|twin| twin.name.clone());
    for participant in plan.participants.iter().filter(|one| Some(&one.name) != again.as_ref()) {
        recorder.says(&format!("recording the heap of {}", participant.name));
        let interrupted = recorder.interrupted();
        let cut_off = || interrupted.load(Ordering::Relaxed) >= 1;
        let answer = answers.get(&participant.name).map(String::as_str);
        let Some(recording) = heap::record(plan, participant, &heap_recorder, answer, runner, &cut_off)?
        else {
            return Ok(End::Interrupted);
        };
        let remarks =
            recording.refused.iter().map(|reason| format!("its heap could not be recorded: {reason}"));
        for remark in remarks.chain(recording.remarks.iter().cloned()) {
            let text = format!("{}: {remark}", participant.name);
            recorder.archive.warn(&text).map_err(RoundsError::Witness)?;
        }
    }
    Ok(End::Enough)
}
