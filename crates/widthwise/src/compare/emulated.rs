//! The counters that this machine does not have: which of them are emulated, and their rounds.

use widthwise_archive::ArchiveError;
use widthwise_experiment::metric::Family;
use widthwise_experiment::model::{Experiment, Stopping};
use widthwise_experiment::{Metric, Role};
use widthwise_machine::{valgrind, Unavailable};
use widthwise_measure::passes::emulated_counters::{self, clock_widens, Emulation, SHARED_WITH_RUNTIME};
use widthwise_measure::passes::operation_instructions::{self, Counting};
use widthwise_measure::plan::{Participant, Plan};
use widthwise_measure::rounds::{End, RoundsError};
use widthwise_measure::run::runner::Runner;
use widthwise_report::format::{duration, listed};
use widthwise_verdict::FEWEST_PAIRS;

use crate::compare::recorder::Recorder;

/// About how much longer an emulated run takes than a free one.
const SLOWER: u32 = 50;
/// Two rounds at least, and a run of each participant in which repetitions of string instructions are counted.
const RUNS: u32 = 3;

/// What is to be emulated, and what can be counted in no way.
pub struct Emulator {
    /// Counted by emulation.
    pub metrics: Vec<Metric>,
    valgrind: Result<String, Unavailable>,
    /// Not counted at all, with the reason of the kernel.
    missing: Vec<(Metric, String)>,
    reason: String,
}

impl Emulator {
    /// Sorts the counters that cannot be had here.
    pub fn of(missing: &[(Metric, String)]) -> Emulator {
        let can_be = |(metric, _): &&(Metric, String)| metric.can_be_emulated();
        let wanted: Vec<&(Metric, String)> = missing.iter().filter(can_be).collect();
        let reason = wanted.first().map(|(_, reason)| reason.clone()).unwrap_or_default();
        let valgrind = if wanted.is_empty() { Ok(String::new()) } else { valgrind::here() };
        let (metrics, missing) = match &valgrind {
            Ok(_) => (
                wanted.iter().map(|(metric, _)| *metric).collect(),
                missing.iter().filter(|one| !can_be(one)).cloned().collect(),
            ),
            Err(_) => (Vec::new(), missing.to_vec()),
        };
        Emulator { metrics, valgrind, missing, reason }
    }

    /// Which counters are missing, and what would emulate them.
    pub fn missing(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (metric, reason) in &self.missing {
            let fix = match &self.valgrind {
                Err(unavailable) if metric.can_be_emulated() => match &unavailable.fix {
                    Some(fix) => format!("; valgrind would emulate it: {fix}"),
                    None => format!("; valgrind would emulate it, but {unavailable}"),
                },
                _ => String::new(),
            };
            remarks.push(format!("{} could not be counted: {reason}{fix}", metric.noun));
        }
        remarks
    }

    /// What a reader must know of counts that were emulated; `through_runtime` has the variants that the x32 runtime runs, `reading_clock`
    /// those that read the clock.
    fn counted(&self, through_runtime: &[&str], reading_clock: &[&str]) -> Vec<String> {
        let Ok(version) = &self.valgrind else { return Vec::new() };
        let noun = |metric: &Metric| metric.noun;
        let all: Vec<&str> = self.metrics.iter().map(noun).collect();
        let executed: Vec<&str> =
            self.metrics.iter().filter(|metric| clock_widens(metric)).map(noun).collect();
        let is_shared = |metric: &&Metric| SHARED_WITH_RUNTIME.contains(&metric.name);
        let shared: Vec<&str> = self.metrics.iter().filter(is_shared).map(noun).collect();
        let mut remarks = vec![format!(
            "{} are those of an emulated processor (valgrind {version}), counted in rounds of their own: {}",
            listed(&all),
            self.reason
        )];
        if !reading_clock.is_empty() {
            remarks.push(format!(
                "{} of {} have two bounds: the kernel's vDSO reads the clock (and the CPU's number) in the program's own process, and \
                 valgrind has no vDSO. A verdict holds for both",
                listed(&executed),
                listed(reading_clock)
            ));
        }
        if !shared.is_empty() && !through_runtime.is_empty() {
            remarks.push(format!(
                "{} of {} have two bounds: the x32 runtime uses the emulated caches and branch predictor, too. A verdict \
                 holds for both",
                listed(&shared),
                listed(through_runtime)
            ));
        }
        remarks
    }

    /// Makes the emulated rounds, unless an earlier session has.
    pub fn emulate(
        &self,
        plan: &Plan,
        runner: &mut Runner,
        recorder: &mut Recorder,
    ) -> Result<End, RoundsError<ArchiveError>> {
        if self.metrics.is_empty() || recorder.has_emulated(&self.metrics) {
            self.remark(plan, recorder)?;
            return Ok(End::Enough);
        }
        let emulation = Emulation {
            first_round: recorder.archive.next_round(),
            metrics: self.metrics.clone(),
            outputs: recorder.outputs(),
            most_rounds: FEWEST_PAIRS,
            plan,
        };
        let alone = recorder.round_alone().map(|round| round * SLOWER * RUNS);
        let long = alone.map_or(String::new(), |long| format!(", for some {}", duration(long)));
        recorder.says(&format!("counting by emulation{long}; Ctrl-C leaves it out"));
        let end = emulated_counters::emulate(&emulation, runner, recorder)?;
        self.remark(plan, recorder)?;
        Ok(end)
    }

    /// Keeps what a reader must know of these counts, where there are some.
    fn remark(&self, plan: &Plan, recorder: &mut Recorder) -> Result<(), RoundsError<ArchiveError>> {
        if !recorder.has_any(&self.metrics) {
            return Ok(());
        }
        // valgrind needs the runtime even where the kernel has x32.
        let runs_in_runtime = |one: &&&Participant| {
            widthwise_x32run::runtime_under_valgrind(&one.start.file).is_ok_and(|file| file.is_some())
        };
        let executed: Vec<Metric> = self.metrics.iter().copied().filter(clock_widens).collect();
        let reads_clock = |one: &&&Participant| recorder.has_bounds(&one.name, &executed);
        let own: Vec<&Participant> =
            plan.participants.iter().filter(|one| one.role != Role::Control).collect();
        let name = |one: &&'_ Participant| one.name.clone();
        let through_runtime: Vec<String> = own.iter().filter(runs_in_runtime).map(name).collect();
        let reading_clock: Vec<String> = own.iter().filter(reads_clock).map(name).collect();
        let [through_runtime, reading_clock] = [&through_runtime, &reading_clock]
            .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        for text in self.counted(&through_runtime, &reading_clock) {
            recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
        }
        Ok(())
    }
}

/// Counts the instructions of the micro suite's operations, if that is asked for, unless an earlier session has.
pub fn count_operations(
    experiment: &Experiment,
    plan: &Plan,
    runner: &mut Runner,
    recorder: &mut Recorder,
) -> Result<End, RoundsError<ArchiveError>> {
    let of_operations = |metric: &Metric| metric.family == Family::Operation;
    let metrics: Vec<Metric> = experiment.metrics.iter().copied().filter(of_operations).collect();
    if metrics.is_empty() || recorder.has_emulated(&metrics) {
        return Ok(End::Enough);
    }
    match valgrind::here() {
        Ok(version) => {
            let text = format!(
                "instructions are those of valgrind {version}'s callgrind, counted in rounds of their own: of the calling process in \
                 user mode, without what x32run does in the kernel's place"
            );
            recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
        }
        Err(unavailable) => {
            let fix = unavailable.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
            let text = format!("instructions could not be counted: {unavailable}{fix}");
            recorder.archive.warn(&text).map_err(RoundsError::Observer)?;
            return Ok(End::Enough);
        }
    }
    recorder.says("counting the instructions of each operation; Ctrl-C leaves it out");
    let first_round = recorder.archive.next_round();
    let counting = Counting { plan, first_round, metrics, most_rounds: FEWEST_PAIRS };
    operation_instructions::count(&counting, runner, recorder)
}

/// An experiment that asks for nothing that is timed: one timed round shows that every variant runs.
pub fn without_timing(experiment: &Experiment) -> Experiment {
    let stopping = Stopping { rounds: Some(1), precision: None, max_time: None };
    Experiment { stopping, ..experiment.clone() }
}
