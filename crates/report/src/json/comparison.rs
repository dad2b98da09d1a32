//! The body of a comparison's JSON: metrics, the x32 runtime's work, every run, and memory over time.

use std::collections::BTreeMap;

use serde::Serialize;
use widthwise_experiment::metric::{self, Direction, Family};
use widthwise_experiment::model::Estimator;
use widthwise_experiment::outcome::Ending;
use widthwise_experiment::Metric;

use crate::comparison::Comparison;
use crate::json::envelope::{
    self, ComparisonJudging, ComparisonVerdict, Envelope, Kind, Measured, Process, TypicalNote,
    VerdictFields, VerdictNote,
};
use crate::json::memory::{self, MemoryNote};

/// The fields of a comparison alone.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // Each field is described in docs/schema/report-3.json, which a test holds against these.
pub struct Body {
    pub metrics: Vec<MetricNote>,
    pub runtime: Vec<RuntimeNote>,
    pub runs: Vec<RunNote>,
    pub memory: Vec<MemoryNote>,
}

/// A comparison in its envelope.
pub fn envelope(comparison: &Comparison) -> Envelope<Body> {
    let campaign = &comparison.campaign;
    let body = Body {
        metrics: metrics(comparison),
        runtime: runtime(comparison),
        runs: runs(comparison),
        memory: memory::notes(comparison),
    };
    let mut envelope = envelope::envelope(campaign, Kind::Comparison, body);
    envelope.judging.of_comparison = Some(ComparisonJudging {
        estimator: match campaign.experiment.judging.estimator {
            Estimator::Paired => "paired",
            Estimator::TenRunTrim => "ten-run-trim",
        },
        order: campaign.experiment.order.name(),
        layouts: campaign.experiment.layouts.max(1),
        comparisons: comparison.judgement.comparisons,
    });
    for variant in &mut envelope.variants {
        variant.of_comparison = Some(Measured {
            processes: processes(comparison, &variant.name),
            typical: typical(comparison, &variant.name),
            difference: comparison.differences.get(&variant.name).cloned(),
        });
    }
    envelope.verdicts = verdicts(comparison);
    envelope
}

fn verdicts(comparison: &Comparison) -> Vec<VerdictNote> {
    let all = comparison.judgement.verdicts.iter();
    all.map(|verdict| VerdictNote {
        metric: verdict.metric.name,
        unit: verdict.metric.unit.name(),
        variant: verdict.variant.clone(),
        baseline: verdict.baseline.clone(),
        ratio: verdict.ratio,
        low: verdict.low,
        high: verdict.high,
        confidence: verdict.confidence,
        equal_within: verdict.equal_within,
        floor: verdict.floor,
        verdict: verdict.word,
        reason: verdict.reason.clone(),
        pairs: verdict.pairs,
        of_kind: VerdictFields::Comparison(ComparisonVerdict {
            difference: verdict.difference,
            baseline_mean: verdict.baseline_mean,
            floor_of_decrease: verdict.floor_of_decrease,
            difference_floor: verdict.difference_floor,
            p: verdict.p,
            adjusted_p: verdict.adjusted_p,
            detectable: verdict.detectable,
            rounds_to_decide: verdict.rounds_to_decide,
            layout_spread: verdict.spread.map(|spread| spread.deviation),
            coverage: verdict.coverage,
            source: verdict.source.map(|source| source.name()),
        }),
    })
    .collect()
}

/// One metric.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct MetricNote {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub direction: &'static str,
    pub family: &'static str,
    pub about: &'static str,
    pub floor: Option<f64>,
}

/// The x32 runtime's work for one variant that it ran.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RuntimeNote {
    pub variant: String,
    pub shares: Vec<RuntimeShareNote>,
    pub without: Vec<WithoutNote>,
    pub calls: Vec<RuntimeCallsNote>,
}

/// The runtime's CPU time as a share of one of the variant's figures.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RuntimeShareNote {
    pub metric: &'static str,
    pub share: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// The verdict without the runtime's work.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct WithoutNote {
    pub metric: &'static str,
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: &'static str,
}

/// Calls of one name that the runtime translated, per run.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RuntimeCallsNote {
    pub call: String,
    pub entered: f64,
    pub trapped: f64,
}

fn runtime(comparison: &Comparison) -> Vec<RuntimeNote> {
    let part = &comparison.judgement.runtime;
    let notes = comparison.campaign.experiment.variants.iter().map(|variant| {
        let name = variant.name.as_str();
        let shares = part.shares.iter().filter(|share| share.variant == name);
        let without = part.without.iter().filter(|verdict| verdict.variant == name);
        let calls = comparison.runtime_calls.iter().filter(|calls| calls.variant == name);
        RuntimeNote {
            variant: name.to_owned(),
            shares: shares
                .map(|share| RuntimeShareNote {
                    metric: share.metric.name,
                    share: share.share,
                    low: share.low,
                    high: share.high,
                })
                .collect(),
            without: without
                .map(|verdict| WithoutNote {
                    metric: verdict.metric.name,
                    ratio: verdict.ratio,
                    low: verdict.low,
                    high: verdict.high,
                    verdict: verdict.word.name(),
                })
                .collect(),
            calls: calls
                .map(|calls| RuntimeCallsNote {
                    call: calls.call.clone(),
                    entered: calls.entered,
                    trapped: calls.trapped,
                })
                .collect(),
        }
    });
    notes
        .filter(|note| !(note.shares.is_empty() && note.without.is_empty() && note.calls.is_empty()))
        .collect()
}

/// One run, with its sample.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RunNote {
    pub variant: String,
    pub round: u32,
    pub position: u32,
    pub began_ns: u64,
    pub ending: Ending,
    pub output_digest: Option<String>,
    pub sample: BTreeMap<&'static str, ReadingNote>,
}

/// One reading; its unit is its metric's.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ReadingNote {
    pub value: f64,
    /// As in [`TypicalNote`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<Option<f64>>,
    pub source: &'static str,
    pub coverage: f64,
}

/// JSON has no infinity.
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn metrics(comparison: &Comparison) -> Vec<MetricNote> {
    // Samples may have readings that were not requested; a reader still needs their unit.
    let asked = &comparison.campaign.experiment.metrics;
    let read = metric::all().into_iter().filter(|metric| {
        !asked.contains(metric) && comparison.runs.iter().any(|run| run.sample.contains_key(metric.name))
    });
    asked.iter().copied().chain(read).map(|metric| metric_note(comparison, metric)).collect()
}

fn metric_note(comparison: &Comparison, metric: Metric) -> MetricNote {
    MetricNote {
        name: metric.name,
        title: metric.title,
        unit: metric.unit.name(),
        direction: match metric.direction {
            Direction::LowerIsBetter => "lower-is-better",
            Direction::Neutral => "neutral",
        },
        family: match metric.family {
            Family::Accounting => "accounting",
            Family::Counter => "counter",
            Family::Series => "series",
            Family::Machine | Family::InstructionClass | Family::CacheModel => "machine",
            Family::Runtime => "runtime",
            Family::Reported => "reported",
            Family::Operation | Family::MachineOperation => "operation",
        },
        about: metric.about,
        floor: comparison.floor(metric),
    }
}

fn processes(comparison: &Comparison, variant: &str) -> Vec<Process> {
    let own = comparison.processes.iter().filter(|note| note.variant == variant);
    own.map(|note| Process {
        comm: note.comm.clone(),
        count: note.count,
        max_rss: note.max_rss,
        cpu_share: note.cpu_share,
    })
    .collect()
}

fn typical(comparison: &Comparison, variant: &str) -> Vec<TypicalNote> {
    let own = comparison.judgement.typical.iter().filter(|typical| typical.variant == variant);
    own.map(|typical| TypicalNote {
        metric: typical.metric.name,
        unit: typical.metric.unit.name(),
        value: typical.value,
        upper: typical.upper.map(finite),
        median: typical.median,
        low_quartile: typical.low_quartile,
        high_quartile: typical.high_quartile,
        min: typical.min,
        max: typical.max,
        runs: typical.runs,
    })
    .collect()
}

fn runs(comparison: &Comparison) -> Vec<RunNote> {
    let all = comparison.runs.iter();
    all.map(|run| RunNote {
        variant: run.variant.clone(),
        round: run.round,
        position: run.position,
        began_ns: run.began_ns,
        ending: run.ending.clone(),
        output_digest: run.output_digest.clone(),
        sample: run
            .sample
            .iter()
            .map(|(name, reading)| {
                let note = ReadingNote {
                    value: reading.value,
                    upper: reading.upper.map(finite),
                    source: reading.source.name(),
                    coverage: reading.coverage,
                };
                (*name, note)
            })
            .collect(),
    })
    .collect()
}
