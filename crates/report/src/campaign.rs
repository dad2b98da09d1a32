//! The input of a report: the request, the measurements, and the verdicts.

use std::collections::BTreeMap;
use std::time::Duration;
use widthwise_experiment::Role;
use widthwise_experiment::VariantStatus;

use widthwise_experiment::outcome::{Round, RoundKind, Run, Source};
use widthwise_experiment::{Experiment, Metric};
use widthwise_verdict::{wording, Judgement, Typical, Verdict};

use crate::heap::Recorded;
use crate::peaks::MaxRss;
use widthwise_experiment::memory::Series;

/// Everything a report shows. The caller fills it from the archive.
#[derive(Debug, Clone)]
pub struct Campaign<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The program's version, or the text of its origin; may be empty.
    pub version: String,
    /// The campaign's folder, as the user would type it.
    pub folder: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// The text of the spec file; empty if the command line has everything.
    pub spec: &'a str,
    /// The command line that started it.
    pub command: Vec<String>,
    /// The version of Widthwise that measured.
    pub widthwise: &'a str,
    /// The machine record.
    pub machine: &'a serde_json::Value,
    /// The machine record for people: name and value.
    pub machine_lines: Vec<(String, String)>,
    /// Every round, in order.
    pub rounds: &'a [Round],
    /// Every run, in order.
    pub runs: &'a [Run],
    /// The memory of runs over time, where it was read.
    pub memory: &'a [MemoryRun],
    /// The heap recordings, if any; only the page shows them.
    pub heap: &'a [Recorded],
    /// Whether each variant took part, by name.
    pub statuses: &'a BTreeMap<String, VariantStatus>,
    /// The verdicts.
    pub judgement: &'a Judgement,
    /// How each variant was built.
    pub builds: Vec<BuildNote>,
    /// Why it stopped: `every interval is within ±1 %`, `interrupted`.
    pub stopped: String,
    /// How long it took.
    pub elapsed: Duration,
    /// What a reader must know before trusting the numbers, one sentence each.
    pub warnings: Vec<String>,
    /// The process tree of each variant, where it had more than one process.
    pub processes: Vec<ProcessNote>,
    /// The calls of each variant that the x32 runtime translated, the most frequent first.
    pub runtime_calls: Vec<RuntimeCalls>,
    /// Variant to the unified diff of its output against the baseline's.
    pub differences: BTreeMap<String, String>,
}

/// How one variant was built.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuildNote {
    /// The variant.
    pub variant: String,
    /// The compiler's own version line; empty for a finished binary.
    pub compiler: String,
    /// Its compiler options.
    pub cflags: String,
    /// Size of the binary, in bytes.
    pub binary_bytes: Option<u64>,
    /// Digest of the binary.
    pub digest: String,
    /// The build log, as the user would type it.
    pub log: String,
    /// How long the build took; absent if it came from the cache.
    pub seconds: Option<f64>,
}

/// One command of a variant's process tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessNote {
    /// The variant.
    pub variant: String,
    /// The command's name, as the kernel keeps it.
    pub comm: String,
    /// The number of processes of a run with that name.
    pub count: u64,
    /// Peak resident size of the largest of them, in bytes.
    pub max_rss: u64,
    /// Their share of the tree's CPU time, 0 to 1.
    pub cpu_share: f64,
}

impl Campaign<'_> {
    /// The rounds that verdicts use.
    pub fn timed_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| round.kind == RoundKind::Timed).count()
    }

    /// The typical value of that variant in that metric.
    pub fn typical(&self, variant: &str, metric: Metric) -> Option<&Typical> {
        self.judgement.typical.iter().find(|t| t.variant == variant && t.metric.name == metric.name)
    }

    /// The verdict on that variant in that metric.
    pub fn verdict(&self, variant: &str, metric: Metric) -> Option<&Verdict> {
        self.judgement.verdicts.iter().find(|v| v.variant == variant && v.metric.name == metric.name)
    }

    /// The heading of a metric's column: its title and, if no real processor made its numbers, their source.
    pub fn title(&self, metric: Metric) -> String {
        let of_metric = self.judgement.verdicts.iter().filter(|v| v.metric.name == metric.name);
        match of_metric.filter_map(|verdict| verdict.source).any(|source| source == Source::Emulated) {
            true => format!("{}, emulated", metric.title),
            false => metric.title.to_owned(),
        }
    }

    /// The detection floor of that metric, as a fraction: from the A/A control's verdict, else from any that
    /// has one.
    pub fn floor(&self, metric: Metric) -> Option<f64> {
        let control = self.experiment.control();
        self.verdict(&control, metric)
            .and_then(|verdict| verdict.floor)
            .or_else(|| {
                let of_metric = |v: &&Verdict| v.metric.name == metric.name;
                self.judgement.verdicts.iter().filter(of_metric).find_map(|v| v.floor)
            })
            .filter(|floor| floor.is_finite())
    }

    /// The detection floor of that metric as text: a fraction or, where there is no ratio, an amount.
    pub fn floor_text(&self, metric: Metric) -> Option<String> {
        let of_metric = |v: &&Verdict| v.metric.name == metric.name;
        let control = self.verdict(&self.experiment.control(), metric);
        let others = self.judgement.verdicts.iter().filter(of_metric);
        control.into_iter().chain(others).find_map(wording::floor)
    }

    /// The status of a variant; a control without one has the baseline's.
    pub fn status(&self, variant: &str) -> &VariantStatus {
        const READY: &VariantStatus = &VariantStatus::Ready;
        let is_control = self.experiment.role(variant) == Role::Control;
        let of_baseline = || is_control.then(|| self.statuses.get(&self.experiment.baseline)).flatten();
        self.statuses.get(variant).or_else(of_baseline).unwrap_or(READY)
    }

    /// Why the participant has no numbers at all, if it has none. The baseline has none either if its second
    /// run ended the campaign before the first timed round.
    pub fn unable(&self, variant: &str) -> Option<&str> {
        let of = |name: &str| self.status(name).not_measured();
        let is_baseline = variant == self.experiment.baseline;
        of(variant).or_else(|| {
            (is_baseline && self.timed_rounds() == 0).then(|| of(&self.experiment.control())).flatten()
        })
    }

    /// Max RSS of one variant, or of two; none if one of them has none.
    pub fn max_rss(&self, a: &str, b: Option<&str>) -> Option<MaxRss> {
        let metric = widthwise_experiment::metric::find("max_rss")?;
        let typical = self.typical(a, metric)?;
        let other = match b {
            Some(b) => Some(self.typical(b, metric)?.value),
            None => None,
        };
        let verdict = b.and_then(|b| self.between(metric, a, b));
        Some(MaxRss {
            name: a.to_owned(),
            a: typical.value,
            other: b.map(str::to_owned),
            b: other,
            rounds: typical.runs,
            verdict: verdict.map(|verdict| verdict.word.name()),
            says: verdict.map(wording::sentence),
        })
    }

    /// The verdict on two variants, in either order, if one of them is the baseline.
    fn between(&self, metric: Metric, a: &str, b: &str) -> Option<&Verdict> {
        let baseline = self.experiment.baseline.as_str();
        let variant = match (a == baseline, b == baseline) {
            (true, _) => b,
            (_, true) => a,
            _ => return None,
        };
        self.judgement.verdicts.iter().find(|v| v.variant == variant && v.metric.name == metric.name)
    }
}

/// One run whose memory was read.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRun {
    /// The round's number.
    pub round: u32,
    /// The variant, or the A/A control.
    pub variant: String,
    /// The series.
    pub series: Series,
}

/// Calls of one name that the runtime translated, per run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeCalls {
    /// The variant.
    pub variant: String,
    /// The call's name.
    pub call: String,
    /// From rewritten sites.
    pub entered: f64,
    /// Through a trap.
    pub trapped: f64,
}
