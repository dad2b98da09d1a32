//! The memory series: how many rounds of it are still to be made.

use widthwise_archive::ArchiveError;
use widthwise_experiment::Experiment;
use widthwise_measure::passes::memory::{self, Memory};
use widthwise_measure::plan::Plan;
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::runner::Runner;
use widthwise_report::format::{counted, duration};

use crate::compare::recorder::Recorder;

/// Makes the rounds that an earlier session has not made.
pub fn sample(
    experiment: &Experiment,
    plan: &Plan,
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let rounds = experiment.memory.saturating_sub(recorder.sampled());
    if rounds == 0 || plan.participants.is_empty() {
        return Ok(End::Enough);
    }
    if experiment.needs_group() && !memory::has_group(runner) {
        let text = "no control group for memory could be made, and no other metric of memory over time was asked for: \
                    its rounds were not made";
        recorder.archive.warn(text).map_err(RoundsError::Observer)?;
        return Ok(End::Enough);
    }
    let long = recorder.round_alone().map(|round| round * rounds);
    // Runs that share a CPU have no length of their own.
    let long = long
        .filter(|long| !long.is_zero())
        .map_or(String::new(), |long| format!(", for some {}", duration(long)));
    recorder.says(&format!("reading memory over time in {}{long}", counted(rounds as usize, "more round")));
    let memory =
        Memory { plan, first_round: recorder.archive.next_round(), rounds, metrics: experiment.series() };
    memory::sample(&memory, runner, recorder)
}
