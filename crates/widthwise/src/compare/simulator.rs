//! The counters that this machine lacks: which of them are simulated, and their rounds.

use widthwise_archive::ArchiveError;
use widthwise_experiment::model::{Experiment, Stopping};
use widthwise_experiment::Metric;
use widthwise_machine::{valgrind, Lack};
use widthwise_measure::rounds::{End, Plan, RoundsError};
use widthwise_measure::run::Runner;
use widthwise_measure::simulation::{self, Simulation};
use widthwise_report::amounts::{duration, listed};
use widthwise_verdict::FEWEST_PAIRS;

use crate::compare::recorder::Recorder;

/// About how much longer a simulated run takes than a free one; at least two rounds are made.
const SLOWER: u32 = 50;

/// What is to be simulated, and what can be counted in no way.
pub struct Simulator {
    /// Counted by simulation.
    pub metrics: Vec<Metric>,
    valgrind: Result<String, Lack>,
    /// Not counted at all, with the reason of the kernel.
    missing: Vec<(Metric, String)>,
    reason: String,
}

impl Simulator {
    /// Sorts the counters that cannot be had here.
    pub fn of(missing: &[(Metric, String)]) -> Simulator {
        let can_be = |(metric, _): &&(Metric, String)| metric.can_be_simulated();
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
        Simulator { metrics, valgrind, missing, reason }
    }

    /// What a reader must know of these metrics.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let (Ok(version), false) = (&self.valgrind, self.metrics.is_empty()) {
            let nouns: Vec<&str> = self.metrics.iter().map(|metric| metric.noun).collect();
            remarks.push(format!(
                "{} are those of a simulated processor (valgrind {version}), counted in rounds of their own: {}",
                listed(&nouns),
                self.reason
            ));
        }
        for (metric, reason) in &self.missing {
            let mend = match &self.valgrind {
                Err(lack) if metric.can_be_simulated() => match &lack.mend {
                    Some(mend) => format!("; valgrind would simulate it: {mend}"),
                    None => format!("; valgrind would simulate it, but {lack}"),
                },
                _ => String::new(),
            };
            remarks.push(format!("{} could not be counted: {reason}{mend}", metric.noun));
        }
        remarks
    }

    /// Makes the simulated rounds, unless an earlier session has.
    pub fn simulate(
        &self,
        plan: &Plan,
        runner: &mut Runner,
        recorder: &mut Recorder,
    ) -> Result<End, RoundsError<ArchiveError>> {
        if self.metrics.is_empty() || recorder.has_simulated() {
            return Ok(End::Enough);
        }
        let simulation = Simulation {
            first_round: recorder.archive.next_round(),
            metrics: self.metrics.clone(),
            answers: recorder.answers(),
            most_rounds: FEWEST_PAIRS,
            plan,
        };
        let alone = recorder.round_alone().map(|round| round * SLOWER * 2);
        let long = alone.map_or(String::new(), |long| format!(", for some {}", duration(long)));
        recorder.says(&format!("counting by simulation{long}; Ctrl-C leaves it out"));
        simulation::simulate(&simulation, runner, recorder)
    }
}

/// An experiment that asks for nothing that is timed: one timed round shows that every variant runs.
pub fn without_timing(experiment: &Experiment) -> Experiment {
    let stopping = Stopping { rounds: Some(1), until: None, budget: None };
    Experiment { stopping, ..experiment.clone() }
}
