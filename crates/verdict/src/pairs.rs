//! From rounds of runs to pairs: which runs count, and which were made side by side.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::metric::{self, Family};
use widthwise_experiment::outcome::{Ending, Reading, RoundKind, Run, Source};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;

use crate::Evidence;

/// The metrics that include the runtime's work. The kernel splits user and system time by ticks, so all of the
/// runtime's user time may be in either.
pub(crate) const WITH_RUNTIME: [&str; 4] = ["cpu", "wall", "user", "system"];

/// The metric of the runtime's own CPU time.
pub(crate) const RUNTIME_CPU: &str = "runtime_cpu";

/// The runs of a campaign that count, by variant and round.
#[derive(Clone)]
pub(crate) struct Campaign<'a> {
    /// The multiple of the x32 runtime's CPU time that is subtracted from the figures that include it.
    without_runtime: f64,
    runs: Runs<'a>,
    emulated: Runs<'a>,
    memory: Runs<'a>,
    /// The layout of each round, where programs have several.
    layouts: BTreeMap<u32, u32>,
    /// By how many bytes the kernel's account of max RSS may lag.
    pub rss_lag: u64,
}

/// By variant and round.
type Runs<'a> = BTreeMap<&'a str, BTreeMap<u32, &'a Run>>;

/// The names of the baseline's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Baselines<'a> {
    /// The baseline's name.
    pub first: &'a str,
    /// The A/A control's name, where a comparison uses it too.
    pub control: Option<&'a str>,
}

/// What was read of a variant and of the baseline in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// The variant's value.
    pub variant: f64,
    /// The baseline's.
    pub baseline: f64,
    /// The A/A control's, where both were read.
    pub control: Option<f64>,
    /// The layout that the programs had, where there are several.
    pub layout: Option<u32>,
}

impl Pair {
    /// The baseline's one or two values.
    pub fn baselines(self) -> impl Iterator<Item = f64> {
        std::iter::once(self.baseline).chain(self.control)
    }

    fn is_positive(self) -> bool {
        self.variant > 0.0 && self.baselines().all(|value| value > 0.0)
    }

    fn is_equal(self) -> bool {
        self.variant == self.baseline
    }
}

/// The two extremes that the bounds of the amounts allow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extremes {
    /// The variant's lower bound with the baseline's upper bound.
    pub lowest: Vec<Pair>,
    /// The variant's upper bound with the baseline's lower bound.
    pub highest: Vec<Pair>,
}

impl Extremes {
    fn add(&mut self, variant: &Reading, baseline: &Reading, control: Option<&Reading>, layout: Option<u32>) {
        self.lowest.push(Pair {
            variant: variant.value,
            baseline: baseline.highest(),
            control: control.map(Reading::highest),
            layout,
        });
        self.highest.push(Pair {
            variant: variant.highest(),
            baseline: baseline.value,
            control: control.map(|control| control.value),
            layout,
        });
    }

    /// Whether some amount has no upper bound.
    pub fn are_open(&self) -> bool {
        let is_open =
            |pair: &Pair| !pair.variant.is_finite() || pair.baselines().any(|value| !value.is_finite());
        self.lowest.iter().chain(&self.highest).any(is_open)
    }
}

/// The readings of a variant and of the baseline in the same rounds, in the order of the rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    /// Round by round.
    pub values: Vec<Pair>,
    /// Present where some amounts have two bounds: the same rounds at either extreme.
    pub extremes: Option<Extremes>,
    /// The least coverage of any of these readings.
    pub coverage: f64,
    /// Where the variant's came from.
    pub source: Option<Source>,
    /// All readings, on both sides, are emulated counts.
    pub emulated: bool,
}

impl Pairs {
    /// Whether every value has a logarithm, at either extreme too: both are compared on the same scale.
    pub fn are_positive(&self) -> bool {
        self.each().all(|values| values.iter().all(|pair| pair.is_positive()))
    }

    /// In how many rounds the two sides differ, or may differ.
    pub fn unequal(&self) -> u32 {
        let is_equal = |round: &usize| self.each().all(|values| values[*round].is_equal());
        (0..self.values.len()).filter(|round| !is_equal(round)).count() as u32
    }

    /// The values, and those of the extremes.
    fn each(&self) -> impl Iterator<Item = &Vec<Pair>> {
        let extremes = self.extremes.iter().flat_map(|extremes| [&extremes.lowest, &extremes.highest]);
        std::iter::once(&self.values).chain(extremes)
    }

    /// Whether these are emulated counts that were the same each time: they have no random error.
    pub fn is_exact(&self) -> bool {
        let same = |a: &Pair, b: &Pair| Pair { layout: None, ..*a } == Pair { layout: None, ..*b };
        self.emulated && self.values.len() > 1 && self.values.windows(2).all(|pair| same(&pair[0], &pair[1]))
    }
}

impl<'a> Campaign<'a> {
    /// The runs of the timed rounds of this evidence, and of those in which counts were emulated or memory was read.
    /// Runs of other or unknown rounds are ignored.
    pub fn of(evidence: &Evidence<'a>) -> Campaign<'a> {
        let of_kind = |kind| Campaign::runs_of(evidence, kind);
        Campaign {
            without_runtime: 0.0,
            runs: of_kind(RoundKind::Timed),
            emulated: of_kind(RoundKind::Emulated),
            memory: of_kind(RoundKind::Memory),
            layouts: evidence.rounds.iter().filter_map(|round| Some((round.number, round.layout?))).collect(),
            rss_lag: evidence.rss_lag,
        }
    }

    /// The same runs without the x32 runtime's own work.
    pub fn without_runtime(&self, times: f64) -> Campaign<'a> {
        Campaign { without_runtime: times, ..self.clone() }
    }

    fn runs_of(evidence: &Evidence<'a>, kind: RoundKind) -> Runs<'a> {
        let rounds: BTreeSet<u32> =
            evidence.rounds.iter().filter(|round| round.kind == kind).map(|round| round.number).collect();
        let mut runs = Runs::new();
        for run in evidence.runs.iter().filter(|run| rounds.contains(&run.round)) {
            let kept = runs.entry(&run.variant).or_default().entry(run.round).or_insert(run);
            // An archive holds one run of a variant in a round. If foreign data has two, the earlier one counts,
            // independent of their order.
            if run.began_ns < kept.began_ns {
                *kept = run;
            }
        }
        runs
    }

    /// The readings of a metric from a variant's runs that ended well, by round; a run of an emulated round has only
    /// counts, one of a memory round only its series, and a timed one has neither. A negative, infinite or NaN reading
    /// is ignored.
    pub fn readings(&self, variant: &str, metric: Metric) -> impl Iterator<Item = (u32, Reading)> + '_ {
        [&self.runs, &self.emulated, &self.memory]
            .map(|runs| runs.get(variant))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|(_, run)| run.ending == Ending::Done)
            .filter_map(move |(&round, run)| Some((round, self.reading(run, metric)?)))
            .filter(|(_, reading)| reading.value.is_finite() && reading.value >= 0.0)
    }

    fn reading(&self, run: &Run, metric: Metric) -> Option<Reading> {
        let mut reading = *run.sample.get(metric.name)?;
        let own = run.sample.get(RUNTIME_CPU).filter(|_| WITH_RUNTIME.contains(&metric.name));
        if let Some(own) = own.filter(|_| self.without_runtime > 0.0) {
            reading.value = (reading.value - self.without_runtime * own.value).max(0.0);
        }
        Some(reading)
    }

    /// The rounds in which the variant was read, and the baseline under any of its names.
    pub fn pairs(&self, variant: &str, baselines: Baselines, metric: Metric) -> Pairs {
        let read = |name: &str| -> BTreeMap<u32, Reading> { self.readings(name, metric).collect() };
        let (first, second) = (read(baselines.first), baselines.control.map(read).unwrap_or_default());
        let mut pairs =
            Pairs { values: Vec::new(), extremes: None, coverage: 1.0, source: None, emulated: true };
        let (mut extremes, mut is_bounded) = (Extremes::default(), false);
        for (round, reading) in self.readings(variant, metric) {
            let mut beside = [first.get(&round), second.get(&round)].into_iter().flatten();
            let Some(baseline) = beside.next() else { continue };
            let control = beside.next();
            let layout = self.layouts.get(&round).copied();
            pairs.values.push(Pair {
                variant: reading.value,
                baseline: baseline.value,
                control: control.map(|control| control.value),
                layout,
            });
            extremes.add(&reading, baseline, control, layout);
            for read in [&reading, baseline].into_iter().chain(control) {
                pairs.coverage = pairs.coverage.min(read.coverage);
                pairs.emulated &= read.source.is_emulated();
                is_bounded |= read.upper.is_some();
            }
            pairs.source = pairs.source.or(Some(reading.source));
        }
        pairs.extremes = is_bounded.then_some(extremes);
        pairs
    }

    /// How many of a variant's timed runs failed, and how.
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

    /// Why a metric was not emulated for this variant.
    pub fn not_emulated(&self, variant: &str, metric: Metric) -> Option<String> {
        let own =
            self.emulated.get(variant).filter(|_| metric.can_be_emulated() || metric.is_of_machine())?;
        own.values().find_map(|run| match &run.ending {
            Ending::SpawnFailed { reason } => Some(reason.clone()),
            ending => failure(ending),
        })
    }

    /// Why a variant has no figure of the memory series.
    pub fn not_sampled(&self, variant: &str, metric: Metric) -> Option<String> {
        if metric.family != Family::Series {
            return None;
        }
        if self.memory.is_empty() {
            return Some("no round of memory over time was made".to_owned());
        }
        let own = self.memory.get(variant)?;
        let failed = own.values().find_map(|run| failure(&run.ending));
        if metric.name == metric::OF_GROUP && failed.is_none() {
            return Some("no control group for memory can be made here".to_owned());
        }
        Some(failed.unwrap_or_else(|| {
            "its runs are too short, for their size, to be read without slowing them by more than 0.5 %"
                .to_owned()
        }))
    }

    /// Whether a variant has any timed run, or one on an emulated machine.
    pub fn result(&self, variant: &str) -> bool {
        self.runs.contains_key(variant) || self.emulated.contains_key(variant)
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
        Ending::OutputLimit { limit_bytes } => {
            let limit = Quantity { value: *limit_bytes as f64, unit: Unit::Bytes };
            format!("wrote more than {limit} to its standard output or standard error")
        }
        Ending::SpawnFailed { reason } => format!("could not be started: {reason}"),
        Ending::HookFailed { reason } => reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_emulated_counts_that_are_the_same_each_time_are_exact() {
        let pairs = |values: &[(f64, f64)], emulated| {
            let values = values
                .iter()
                .map(|&(variant, baseline)| Pair { variant, baseline, control: None, layout: None })
                .collect();
            Pairs { values, extremes: None, coverage: 1.0, source: None, emulated }.is_exact()
        };
        assert!(pairs(&[(2.0, 1.0), (2.0, 1.0)], true));
        assert!(!pairs(&[(2.0, 1.0), (2.0, 1.0)], false));
        assert!(!pairs(&[(2.0, 1.0), (4.0, 2.0)], true), "the same ratio of other counts is chance");
        assert!(!pairs(&[(2.0, 1.0)], true), "once is not each time");
    }
}
