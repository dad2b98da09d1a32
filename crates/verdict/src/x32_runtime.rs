//! The x32 runtime's share in verdicts on time.
//!
//! Where the runtime replaces the kernel's x32 support, its work is part of the program's CPU time and wall time. Every
//! such comparison is repeated without it, and a verdict that changes is withheld.

use widthwise_experiment::metric::find;
use widthwise_experiment::Metric;

use crate::comparison::{baselines, compare, log_ratios, Comparison, Obstacle, FEWEST_PAIRS};
use crate::decision::{blank, worded};
use crate::family::Family;
use crate::pairs::{Campaign, Pair, RUNTIME_CPU, WITH_RUNTIME};
use crate::rng::Rng;
use crate::wording::{numbers, share, share_between};
use crate::{Evidence, Verdict, Word};

/// An upper limit of the work that the runtime does not count, as a multiple of what it counts. It misses the effect of
/// traps on caches and predictors, the copying of mappings at fork, the kernel's work at execve, and its sleeps. (It
/// misses a fifth in a program that reads directories, more than half in one that only forks or executes itself.)
const MAY_LACK: f64 = 1.5;

/// How much of a variant's time the x32 runtime took.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeShare {
    /// The variant that the runtime ran; it may be the baseline.
    pub variant: String,
    /// What was measured: CPU time, wall time, user time or system time.
    pub metric: Metric,
    /// The runtime's CPU time as a share of that figure.
    pub share: f64,
    /// The lower end of the interval around `share`; absent with fewer runs than an interval needs.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl RuntimeShare {
    /// `31 % (29 … 33)`
    pub fn text(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) if high > low => share_between(self.share, low, high),
            _ => share(self.share),
        }
    }

    /// The share alone, with the digits that [`text`](RuntimeShare::text) gives it: `31 %`.
    pub fn estimate(&self) -> String {
        let text = self.text();
        text.split_once(" (").map_or(text.clone(), |(share, _)| share.to_owned())
    }
}

/// The runtime's share in a campaign's verdicts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimePart {
    /// For every variant that the runtime ran, and every metric that its work is part of.
    pub shares: Vec<RuntimeShare>,
    /// The verdicts that the same runs would have without the runtime's work, for every one that it is part of.
    pub without: Vec<Verdict>,
}

impl RuntimePart {
    /// The share of a variant in a metric.
    pub fn share(&self, variant: &str, metric: Metric) -> Option<&RuntimeShare> {
        self.shares.iter().find(|share| share.variant == variant && share.metric.name == metric.name)
    }

    /// The verdict without the runtime's work.
    pub fn without(&self, variant: &str, metric: Metric) -> Option<&Verdict> {
        self.without.iter().find(|verdict| verdict.variant == variant && verdict.metric.name == metric.name)
    }
}

/// Finds the runtime's share, and withholds the verdicts that it could change. `controls` are the A/A pair's
/// comparisons by metric.
pub(crate) fn weigh(
    evidence: &Evidence,
    campaign: &Campaign,
    controls: &[Result<Comparison, Obstacle>],
    family: &Family,
    verdicts: &mut [Verdict],
) -> RuntimePart {
    let experiment = evidence.experiment;
    let variants = experiment.variants.iter().map(|variant| variant.name.as_str());
    let metrics = || WITH_RUNTIME.iter().filter_map(|name| find(name));
    let shares: Vec<RuntimeShare> = variants
        .flat_map(|variant| metrics().filter_map(move |metric| share_of(evidence, campaign, variant, metric)))
        .collect();
    let mut part = RuntimePart { shares, without: Vec::new() };
    let control = experiment.control();
    let (lessened, least) = (campaign.without_runtime(1.0), campaign.without_runtime(1.0 + MAY_LACK));
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.variant != control) {
        let metric = verdict.metric;
        let Some(own) = part
            .share(&verdict.variant, metric)
            .or_else(|| part.share(&experiment.baseline, metric))
            .filter(|_| verdict.ratio.is_some())
        else {
            continue;
        };
        let place = experiment.metrics.iter().position(|other| other.name == metric.name);
        let Some(floor) = place.and_then(|place| controls.get(place)) else { continue };
        let beside = baselines(evidence, campaign, &verdict.variant, &control);
        let judged = |campaign: &Campaign| {
            let comparison = compare(experiment, campaign, &verdict.variant, beside, metric).ok()?;
            // The same correction as with the runtime, so that the verdicts differ by its work alone.
            let significance = family.with(&verdict.variant, metric, comparison.p)?;
            Some(worded(blank(experiment, &verdict.variant, metric), &comparison, significance, floor, None))
        };
        let (Some(without), Some(at_least)) = (judged(&lessened), judged(&least)) else { continue };
        let claims = matches!(verdict.word, Word::Lower | Word::Higher | Word::NoDifference);
        if claims && (without.word != verdict.word || at_least.word != verdict.word) {
            let figures = |verdict: &Verdict| numbers(verdict).unwrap_or_default();
            verdict.withhold(format!(
                "the x32 runtime's own work, {} of the {} of {}, could change this verdict: {} with it, {} without",
                own.text(),
                metric.noun,
                own.variant,
                figures(verdict),
                figures(&without)
            ));
        }
        part.without.push(without);
    }
    part
}

fn share_of(evidence: &Evidence, campaign: &Campaign, variant: &str, metric: Metric) -> Option<RuntimeShare> {
    let judging = &evidence.experiment.judging;
    let runtime: std::collections::BTreeMap<u32, _> =
        campaign.readings(variant, find(RUNTIME_CPU)?).collect();
    let pairs: Vec<Pair> = campaign
        .readings(variant, metric)
        .filter_map(|(round, whole)| {
            let own = runtime.get(&round)?.value;
            (own > 0.0 && whole.value > 0.0).then_some(Pair {
                layout: None,
                variant: own,
                baseline: whole.value,
                control: None,
            })
        })
        .collect();
    let of = |share, low, high| Some(RuntimeShare { variant: variant.to_owned(), metric, share, low, high });
    if pairs.is_empty() {
        return None;
    }
    if pairs.len() < FEWEST_PAIRS as usize {
        let sum: f64 = pairs.iter().map(|pair| pair.variant / pair.baseline).sum();
        return of(sum / pairs.len() as f64, None, None);
    }
    let mut rng = Rng::named(evidence.experiment.seed, &[variant, metric.name, RUNTIME_CPU]);
    let found = log_ratios(&pairs, judging.confidence, &mut rng);
    of(found.estimate.exp(), Some(found.low.exp()), Some(found.high.exp()))
}
