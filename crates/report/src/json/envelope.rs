//! What the JSON of every kind of campaign has: the campaign, its program, variants, verdicts and rounds.

use std::collections::BTreeMap;

use serde::Serialize;
use widthwise_experiment::bytes;
use widthwise_experiment::model::{Origin, Thp, Variant};
use widthwise_experiment::outcome::Noise;
use widthwise_experiment::scale::Cell;
use widthwise_verdict::Word;

use crate::campaign::Campaign;

/// The version of this format.
pub const SCHEMA: u32 = 3;

/// The kind of a report: it decides which fields the body has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Variants against a baseline.
    Comparison,
    /// Throughput and memory by number of processes.
    Scaling,
}

/// The fields of every report, and those of its kind.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // Each field is described in docs/schema/report-3.json, which a test holds against these.
pub struct Envelope<Body> {
    pub schema: u32,
    pub kind: Kind,
    pub widthwise: String,
    pub campaign: Origins,
    pub program: Program,
    pub machine: serde_json::Value,
    pub judging: Judging,
    pub stopping: Stopping,
    pub variants: Vec<VariantNote>,
    pub verdicts: Vec<VerdictNote>,
    pub rounds: Vec<RoundNote>,
    #[serde(flatten)]
    pub body: Body,
    pub warnings: Vec<String>,
}

/// The envelope of a campaign, without its verdicts.
pub(super) fn envelope<Body>(campaign: &Campaign, kind: Kind, body: Body) -> Envelope<Body> {
    let experiment = campaign.experiment;
    let stopping = &experiment.stopping;
    Envelope {
        schema: SCHEMA,
        kind,
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
            seed: experiment.seed.to_string(),
            of_comparison: None,
        },
        stopping: Stopping {
            rounds: stopping.rounds,
            precision: stopping.precision,
            max_time_seconds: stopping.max_time.map(|max_time| max_time.as_secs_f64()),
            stopped: campaign.stopped.clone(),
            elapsed_seconds: campaign.elapsed.as_secs_f64(),
        },
        variants: variants(campaign),
        verdicts: Vec::new(),
        rounds: rounds(campaign),
        body,
        warnings: campaign.warnings.clone(),
    }
}

/// How samples became verdicts.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Judging {
    pub baseline: String,
    pub control: String,
    pub confidence: f64,
    pub equal_within: f64,
    pub seed: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub of_comparison: Option<ComparisonJudging>,
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
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub of_comparison: Option<Measured>,
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
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub confidence: f64,
    pub equal_within: f64,
    pub floor: Option<f64>,
    pub verdict: Word,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub pairs: u32,
    #[serde(flatten)]
    pub of_kind: VerdictFields,
}

/// The fields of a verdict that only one kind of report has.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum VerdictFields {
    Comparison(ComparisonVerdict),
    Scaling(ScalingVerdict),
}

/// How the samples of a comparison became verdicts.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ComparisonJudging {
    pub estimator: &'static str,
    pub order: &'static str,
    pub layouts: u32,
    pub comparisons: usize,
}

/// What the runs of a variant show.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Measured {
    pub processes: Vec<Process>,
    pub typical: Vec<TypicalNote>,
    pub difference: Option<String>,
}

/// The fields of a verdict on one metric of two variants.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ComparisonVerdict {
    pub difference: Option<f64>,
    pub baseline_mean: Option<f64>,
    pub floor_of_decrease: Option<f64>,
    pub difference_floor: Option<f64>,
    pub p: Option<f64>,
    pub adjusted_p: Option<f64>,
    pub detectable: Option<f64>,
    pub rounds_to_decide: Option<u32>,
    pub layout_spread: Option<f64>,
    pub coverage: f64,
    pub source: Option<&'static str>,
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

/// The fields of a verdict on the throughput of two cells.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct ScalingVerdict {
    pub cell: Cell,
    pub baseline_cell: Cell,
    pub memory_ratio: Option<f64>,
    pub memory_low: Option<f64>,
    pub memory_high: Option<f64>,
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

/// One round.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RoundNote {
    pub number: u32,
    pub kind: &'static str,
    pub cpu: Option<u32>,
    pub layout: Option<u32>,
    pub noise: Noise,
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

fn variants(campaign: &Campaign) -> Vec<VariantNote> {
    let experiment = campaign.experiment;
    let baseline = experiment.variants.iter().find(|variant| variant.name == experiment.baseline);
    let own = experiment.variants.iter().map(|variant| variant_note(campaign, variant, &variant.name));
    let control = baseline.map(|baseline| variant_note(campaign, baseline, &experiment.control()));
    own.chain(control).collect()
}

fn variant_note(campaign: &Campaign, variant: &Variant, name: &str) -> VariantNote {
    let status = campaign.status(name);
    VariantNote {
        name: name.to_owned(),
        role: campaign.experiment.role(name).name(),
        status: status.name(),
        reason: status.reason().map(str::to_owned),
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
        of_comparison: None,
    }
}

fn rounds(campaign: &Campaign) -> Vec<RoundNote> {
    let all = campaign.rounds.iter();
    all.map(|round| RoundNote {
        number: round.number,
        kind: round.kind.name(),
        cpu: round.cpu,
        layout: round.layout,
        noise: round.noise,
    })
    .collect()
}
