//! From rounds of runs to pairs: which runs count, and which were made side by side.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::outcome::{Ending, Reading, RoundKind, Run, Source};
use widthwise_experiment::Metric;

use crate::Evidence;

/// The timed runs of a campaign, by variant and round.
pub(crate) struct Campaign<'a> {
    runs: BTreeMap<&'a str, BTreeMap<u32, &'a Run>>,
}

/// The names under which the baseline's runs are to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Baselines<'a> {
    /// Its own.
    pub first: &'a str,
    /// Its twin's, where a comparison may use that too.
    pub again: Option<&'a str>,
}

/// What was read of a variant and of the baseline in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// The variant's value.
    pub variant: f64,
    /// The baseline's.
    pub baseline: f64,
    /// The baseline's other one, where it was read under both of its names.
    pub again: Option<f64>,
}

impl Pair {
    /// The baseline's one or two values.
    pub fn baselines(self) -> impl Iterator<Item = f64> {
        std::iter::once(self.baseline).chain(self.again)
    }
}

/// What a variant and the baseline read in the same rounds, in the order of the rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    /// Round by round.
    pub values: Vec<Pair>,
    /// The least coverage of any of these readings.
    pub coverage: f64,
    /// Where the variant's came from.
    pub source: Option<Source>,
}

impl<'a> Campaign<'a> {
    /// The runs of the timed rounds of this evidence. A run of a round that is not known, or not timed, is used by
    /// nothing.
    pub fn of(evidence: &Evidence<'a>) -> Campaign<'a> {
        let timed: BTreeSet<u32> = evidence
            .rounds
            .iter()
            .filter(|round| round.kind == RoundKind::Timed)
            .map(|round| round.number)
            .collect();
        let mut runs: BTreeMap<&str, BTreeMap<u32, &Run>> = BTreeMap::new();
        for run in evidence.runs.iter().filter(|run| timed.contains(&run.round)) {
            let kept = runs.entry(&run.variant).or_default().entry(run.round).or_insert(run);
            // An archive holds one run of a variant in a round. Should foreign data hold two, the first one counts,
            // in whatever order they are handed in.
            if run.began_ns < kept.began_ns {
                *kept = run;
            }
        }
        Campaign { runs }
    }

    /// The readings of a metric from a variant's timed runs that ended well, by round. A reading that is no amount
    /// (negative, infinite, not a number) is no reading.
    pub fn readings(&self, variant: &str, metric: Metric) -> impl Iterator<Item = (u32, Reading)> + '_ {
        self.runs
            .get(variant)
            .into_iter()
            .flatten()
            .filter(|(_, run)| run.ending == Ending::Done)
            .filter_map(move |(&round, run)| Some((round, *run.sample.get(metric.name)?)))
            .filter(|(_, reading)| reading.value.is_finite() && reading.value >= 0.0)
    }

    /// The rounds in which the variant was read, and the baseline under any of its names.
    pub fn pairs(&self, variant: &str, baselines: Baselines, metric: Metric) -> Pairs {
        let read = |name: &str| -> BTreeMap<u32, Reading> { self.readings(name, metric).collect() };
        let (first, second) = (read(baselines.first), baselines.again.map(read).unwrap_or_default());
        let mut pairs = Pairs { values: Vec::new(), coverage: 1.0, source: None };
        for (round, reading) in self.readings(variant, metric) {
            let mut beside = [first.get(&round), second.get(&round)].into_iter().flatten();
            let Some(baseline) = beside.next() else { continue };
            let again = beside.next();
            pairs.values.push(Pair {
                variant: reading.value,
                baseline: baseline.value,
                again: again.map(|again| again.value),
            });
            for read in [&reading, baseline].into_iter().chain(again) {
                pairs.coverage = pairs.coverage.min(read.coverage);
            }
            pairs.source = pairs.source.or(Some(reading.source));
        }
        pairs
    }

    /// Why a variant's runs cannot be relied on: how many of its timed runs failed, and how.
    pub fn failures(&self, variant: &str) -> Option<String> {
        let runs = self.runs.get(variant)?;
        let mut kinds: Vec<String> = Vec::new();
        let mut failed = 0;
        for run in runs.values() {
            let Some(how) = failure(&run.ending) else { continue };
            failed += 1;
            if !kinds.contains(&how) {
                kinds.push(how);
            }
        }
        let total = runs.len();
        let noun = if total == 1 { "run" } else { "runs" };
        (failed > 0).then(|| format!("{failed} of {total} {noun} failed: {}", kinds.join("; ")))
    }

    /// Whether a variant has any timed run.
    pub fn ran(&self, variant: &str) -> bool {
        self.runs.contains_key(variant)
    }
}

/// How a run failed, if it did.
fn failure(ending: &Ending) -> Option<String> {
    Some(match ending {
        Ending::Done => return None,
        Ending::Exit { status } => format!("exit status {status}"),
        Ending::Signal { signal } => format!("killed by signal {signal}"),
        Ending::Timeout { limit_ns } => {
            format!("still running after {} s", (*limit_ns as f64 / 1e9 * 1e3).round() / 1e3)
        }
        Ending::Flood { limit_bytes } => {
            format!("wrote more than {limit_bytes} bytes to its standard output")
        }
        Ending::NotStarted { reason } => format!("could not be started: {reason}"),
        Ending::Around { reason } => reason.clone(),
    })
}
