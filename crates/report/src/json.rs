//! The campaign as JSON, for programs. `docs/json.md` and `docs/schema/report-2.json` describe each field; a
//! change that could break a reader raises [`SCHEMA`].

use std::collections::BTreeMap;

use serde::Serialize;
use widthwise_experiment::metric::{self, Direction, Family};
use widthwise_experiment::model::{Estimator, Origin, Thp, Variant};
use widthwise_experiment::outcome::{Ending, Noise};
use widthwise_experiment::{bytes, Metric};

use crate::campaign::Campaign;
use crate::csv;
use crate::json_memory::{self, MemoryNote};

/// The version of this format.
pub const SCHEMA: u32 = 2;

/// The campaign as one JSON object.
pub fn report(campaign: &Campaign) -> Report {
    let experiment = campaign.experiment;
    Report {
        schema: SCHEMA,
        widthwise: campaign.widthwise.to_owned(),
        campaign: Origins {
            folder: campaign.folder.clone(),
            created: campaign.created.clone(),
            command: campaign.command.clone(),
            spec: campaign.spec.to_owned(),
        },
        program: program(campaign),
        machine: campaign.machine.clone(),
        judging: Judging {
            baseline: experiment.baseline.clone(),
            control: experiment.control(),
            confidence: experiment.judging.confidence,
            equal_within: experiment.judging.equal_within,
            estimator: match experiment.judging.estimator {
                Estimator::Paired => "paired",
                Estimator::TenRunTrim => "ten-run-trim",
            },
            comparisons: campaign.judgement.comparisons,
            seed: experiment.seed.to_string(),
        },
        stopping: Stopping {
            rounds: experiment.stopping.rounds,
            precision: experiment.stopping.precision,
            max_time_seconds: experiment.stopping.max_time.map(|max_time| max_time.as_secs_f64()),
            stopped: campaign.stopped.clone(),
            elapsed_seconds: campaign.elapsed.as_secs_f64(),
        },
        metrics: metrics(campaign),
        variants: variants(campaign),
        verdicts: verdicts(campaign),
        runtime: runtime(campaign),
        rounds: rounds(campaign),
        runs: runs(campaign),
        memory: json_memory::notes(campaign),
        warnings: campaign.warnings.clone(),
    }
}

/// The JSON text, indented, with a final line end.
pub fn render(campaign: &Campaign) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&report(campaign)).map(|text| text + "\n")
}

/// The whole report.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // Each field is described in docs/schema/report-2.json, which a test holds against these.
pub struct Report {
    pub schema: u32,
    pub widthwise: String,
    pub campaign: Origins,
    pub program: Program,
    pub machine: serde_json::Value,
    pub judging: Judging,
    pub stopping: Stopping,
    pub metrics: Vec<MetricNote>,
    pub variants: Vec<VariantNote>,
    pub verdicts: Vec<VerdictNote>,
    pub runtime: Vec<RuntimeNote>,
    pub rounds: Vec<RoundNote>,
    pub runs: Vec<RunNote>,
    pub memory: Vec<MemoryNote>,
    pub warnings: Vec<String>,
}

/// The campaign's folder and command line.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Origins {
    pub folder: String,
    pub created: String,
    pub command: Vec<String>,
    pub spec: String,
}

/// The program.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Program {
    pub name: String,
    pub version: String,
    pub run: String,
    pub origin: &'static str,
    pub from: Option<String>,
    pub build: Option<String>,
}

/// How samples became verdicts.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Judging {
    pub baseline: String,
    pub control: String,
    pub confidence: f64,
    pub equal_within: f64,
    pub estimator: &'static str,
    pub comparisons: usize,
    pub seed: String,
}

/// The stopping rule, and why the campaign stopped.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Stopping {
    pub rounds: Option<u32>,
    pub precision: Option<f64>,
    pub max_time_seconds: Option<f64>,
    pub stopped: String,
    pub elapsed_seconds: f64,
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

/// One participant: a variant, or the A/A control.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct VariantNote {
    pub name: String,
    pub role: &'static str,
    pub status: &'static str,
    pub reason: Option<String>,
    pub abi: Option<&'static str>,
    pub compiler: Option<String>,
    pub flags: Flags,
    pub allocator: String,
    pub thp: &'static str,
    pub environment: BTreeMap<String, String>,
    pub build: Option<Build>,
    pub processes: Vec<Process>,
    pub typical: Vec<TypicalNote>,
    pub difference: Option<String>,
}

/// Compiler options.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Flags {
    pub name: String,
    pub cflags: String,
    pub cxxflags: String,
    pub ldflags: String,
    pub profile_guided: bool,
}

/// How a variant was built.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Build {
    pub compiler: String,
    pub cflags: String,
    pub binary_bytes: Option<u64>,
    pub digest: String,
    pub log: String,
    pub seconds: Option<f64>,
}

/// One command of a variant's process tree.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Process {
    pub comm: String,
    pub count: u64,
    pub max_rss: u64,
    pub cpu_share: f64,
}

/// The typical value of one participant in one metric.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct TypicalNote {
    pub metric: &'static str,
    pub unit: &'static str,
    pub value: f64,
    /// Absent where `value` is exact; `null` where the upper bound is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<Option<f64>>,
    pub median: f64,
    pub low_quartile: f64,
    pub high_quartile: f64,
    pub min: f64,
    pub max: f64,
    pub runs: u32,
}

/// One verdict.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct VerdictNote {
    pub metric: &'static str,
    pub unit: &'static str,
    pub variant: String,
    pub baseline: String,
    pub ratio: Option<f64>,
    pub difference: Option<f64>,
    pub baseline_mean: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub confidence: f64,
    pub equal_within: f64,
    pub floor: Option<f64>,
    pub difference_floor: Option<f64>,
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub pairs: u32,
    pub p: Option<f64>,
    pub adjusted_p: Option<f64>,
    pub coverage: f64,
    pub source: Option<&'static str>,
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

fn runtime(campaign: &Campaign) -> Vec<RuntimeNote> {
    let part = &campaign.judgement.runtime;
    let notes = campaign.experiment.variants.iter().map(|variant| {
        let name = variant.name.as_str();
        let shares = part.shares.iter().filter(|share| share.variant == name);
        let without = part.without.iter().filter(|verdict| verdict.variant == name);
        let calls = campaign.runtime_calls.iter().filter(|calls| calls.variant == name);
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

/// One round.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RoundNote {
    pub number: u32,
    pub kind: &'static str,
    pub cpu: Option<u32>,
    pub noise: Noise,
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

fn program(campaign: &Campaign) -> Program {
    let program = &campaign.experiment.program;
    let (origin, from, build) = match &program.origin {
        Origin::Source { path, build } => ("source", Some(bytes::shown_path(path)), Some(build)),
        Origin::Debian { package, build, .. } => ("debian", Some(package.clone()), Some(build)),
        Origin::Binaries { .. } => ("binaries", None, None),
    };
    Program {
        name: program.name.clone(),
        version: campaign.version.clone(),
        run: program.run.clone(),
        origin,
        from,
        build: build.map(|build| build.text()),
    }
}

fn metrics(campaign: &Campaign) -> Vec<MetricNote> {
    // Samples may have readings that were not requested; a reader still needs their unit.
    let asked = &campaign.experiment.metrics;
    let read = metric::METRICS.iter().filter(|metric| {
        !asked.contains(metric) && campaign.runs.iter().any(|run| run.sample.contains_key(metric.name))
    });
    asked.iter().copied().chain(read).map(|metric| metric_note(campaign, metric)).collect()
}

fn metric_note(campaign: &Campaign, metric: Metric) -> MetricNote {
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
            Family::Runtime => "runtime",
        },
        about: metric.about,
        floor: campaign.floor(metric),
    }
}

fn variants(campaign: &Campaign) -> Vec<VariantNote> {
    let experiment = campaign.experiment;
    let baseline = experiment.variants.iter().find(|variant| variant.name == experiment.baseline);
    let own = experiment.variants.iter().map(|variant| variant_note(campaign, variant, &variant.name));
    let control = baseline.map(|baseline| variant_note(campaign, baseline, &experiment.control()));
    own.chain(control).collect()
}

fn variant_note(campaign: &Campaign, variant: &Variant, name: &str) -> VariantNote {
    let (status, reason) = csv::status(campaign, name);
    VariantNote {
        name: name.to_owned(),
        role: campaign.experiment.role(name).name(),
        status,
        reason,
        abi: variant.abi.map(|abi| abi.name),
        compiler: variant.compiler.clone(),
        flags: Flags {
            name: variant.flags.name.clone(),
            cflags: variant.flags.cflags.clone(),
            cxxflags: variant.flags.cxxflags.clone(),
            ldflags: variant.flags.ldflags.clone(),
            profile_guided: variant.flags.profile_guided,
        },
        allocator: variant.allocator.clone(),
        thp: match variant.thp {
            Thp::System => "system",
            Thp::Always => "always",
            Thp::Madvise => "madvise",
            Thp::Never => "never",
        },
        environment: variant.environment.clone(),
        build: campaign.builds.iter().find(|note| note.variant == variant.name).map(|note| Build {
            compiler: note.compiler.clone(),
            cflags: note.cflags.clone(),
            binary_bytes: note.binary_bytes,
            digest: note.digest.clone(),
            log: note.log.clone(),
            seconds: note.seconds,
        }),
        processes: processes(campaign, name),
        typical: typical(campaign, name),
        difference: campaign.differences.get(name).cloned(),
    }
}

fn processes(campaign: &Campaign, variant: &str) -> Vec<Process> {
    let own = campaign.processes.iter().filter(|note| note.variant == variant);
    own.map(|note| Process {
        comm: note.comm.clone(),
        count: note.count,
        max_rss: note.max_rss,
        cpu_share: note.cpu_share,
    })
    .collect()
}

fn typical(campaign: &Campaign, variant: &str) -> Vec<TypicalNote> {
    let own = campaign.judgement.typical.iter().filter(|typical| typical.variant == variant);
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

fn verdicts(campaign: &Campaign) -> Vec<VerdictNote> {
    let all = campaign.judgement.verdicts.iter();
    all.map(|verdict| VerdictNote {
        metric: verdict.metric.name,
        unit: verdict.metric.unit.name(),
        variant: verdict.variant.clone(),
        baseline: verdict.baseline.clone(),
        ratio: verdict.ratio,
        difference: verdict.difference,
        baseline_mean: verdict.baseline_mean,
        low: verdict.low,
        high: verdict.high,
        confidence: verdict.confidence,
        equal_within: verdict.equal_within,
        floor: verdict.floor,
        difference_floor: verdict.difference_floor,
        verdict: verdict.word.name(),
        reason: verdict.reason.clone(),
        pairs: verdict.pairs,
        p: verdict.p,
        adjusted_p: verdict.adjusted_p,
        coverage: verdict.coverage,
        source: verdict.source.map(|source| source.name()),
    })
    .collect()
}

fn rounds(campaign: &Campaign) -> Vec<RoundNote> {
    let all = campaign.rounds.iter();
    all.map(|round| RoundNote {
        number: round.number,
        kind: round.kind.name(),
        cpu: round.cpu,
        noise: round.noise,
    })
    .collect()
}

fn runs(campaign: &Campaign) -> Vec<RunNote> {
    let all = campaign.runs.iter();
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
