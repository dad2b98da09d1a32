//! The input of a report on a comparison: its campaign, the runs of the variants, and the verdicts.

use std::collections::BTreeMap;

use widthwise_experiment::memory::Series;
use widthwise_experiment::outcome::{Run, Source};
use widthwise_experiment::Metric;
use widthwise_verdict::{wording, Judgement, Typical, Verdict, Word};

use crate::campaign::Campaign;
use crate::excerpt::Excerpt;
use crate::explanation::time::CpuTime;
use crate::format;
use crate::heap::Recorded;
use crate::inner_loops::InnerLoop;
use crate::peaks::MaxRss;
use crate::sanitize;

/// A campaign that compares variants.
#[derive(Debug, Clone)]
pub struct Comparison<'a> {
    /// The campaign.
    pub campaign: Campaign<'a>,
    /// Every run, in order.
    pub runs: &'a [Run],
    /// The memory of runs over time, where it was read.
    pub memory: &'a [MemoryRun],
    /// The heap recordings, if any; only the page shows them.
    pub heap: &'a [Recorded],
    /// Why variants differ from the baseline, if heaps were recorded; only the page shows it.
    pub explanations: &'a [Excerpt],
    /// The inner loops of operations of the micro suite; only the page shows them.
    pub inner_loops: &'a [InnerLoop],
    /// The verdicts.
    pub judgement: &'a Judgement,
    /// The process tree of each variant, where it had more than one process.
    pub processes: Vec<ProcessNote>,
    /// The calls of each variant that the x32 runtime translated, the most frequent first.
    pub runtime_calls: Vec<RuntimeCalls>,
    /// Variant to the unified diff of its output against the baseline's.
    pub differences: BTreeMap<String, String>,
}

impl Comparison<'_> {
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

    /// The amount of a variant of which there is no verdict, because no amount of the baseline's was read beside it.
    pub fn alone(&self, variant: &str, metric: Metric) -> Option<&Typical> {
        let is_alone = self.verdict(variant, metric).is_some_and(|verdict| verdict.word == Word::NoData);
        self.typical(variant, metric).filter(|_| is_alone)
    }

    /// The difference of a variant from the baseline, or its amount where there is no difference to show.
    pub fn figure(&self, variant: &str, metric: Metric) -> Option<String> {
        let verdict = self.verdict(variant, metric)?;
        let alone = self.alone(variant, metric).map(format::typical);
        Some(alone.unwrap_or_else(|| sanitize::line(&wording::interval(verdict))))
    }

    /// The detection floor of an increase of that metric, as a fraction.
    pub fn floor(&self, metric: Metric) -> Option<f64> {
        self.of_floor(metric).and_then(|verdict| verdict.floor)
    }

    /// The detection floor of that metric, as the ratios of the least decrease and of the least increase.
    pub fn floor_ratios(&self, metric: Metric) -> Option<(f64, f64)> {
        let verdict = self.of_floor(metric)?;
        let increase = 1.0 + verdict.floor?;
        Some((verdict.floor_of_decrease.map_or(increase.recip(), |decrease| 1.0 - decrease), increase))
    }

    /// The verdict whose floor is the metric's: the A/A control's, else any that has one.
    fn of_floor(&self, metric: Metric) -> Option<&Verdict> {
        let control = self.verdict(&self.campaign.experiment.control(), metric);
        let of_metric = self.judgement.verdicts.iter().filter(|verdict| verdict.metric.name == metric.name);
        let found = control.into_iter().chain(of_metric).find(|verdict| verdict.floor.is_some())?;
        found.floor.filter(|floor| floor.is_finite()).map(|_| found)
    }

    /// The detection floor of that metric as text: a fraction or, where there is no ratio, an amount.
    pub fn floor_text(&self, metric: Metric) -> Option<String> {
        let of_metric = |v: &&Verdict| v.metric.name == metric.name;
        let control = self.verdict(&self.campaign.experiment.control(), metric);
        let others = self.judgement.verdicts.iter().filter(of_metric);
        control.into_iter().chain(others).find_map(wording::floor)
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

    /// What the timed rounds say of the CPU time of two variants, and of their hardware counters: the second one's compared with the
    /// first one's.
    pub fn cpu_time(&self, a: &str, b: &str) -> CpuTime {
        let verdict = widthwise_experiment::metric::find("cpu").and_then(|metric| self.between(metric, a, b));
        let Some(verdict) = verdict else {
            let says = "the campaign has no verdict on these two".to_owned();
            return CpuTime { says, ..CpuTime::default() };
        };
        let direction = match (verdict.word, verdict.variant == b) {
            (Word::Lower, true) | (Word::Higher, false) => -1,
            (Word::Higher, true) | (Word::Lower, false) => 1,
            _ => 0,
        };
        let is_counter = |other: &&Verdict| {
            other.variant == verdict.variant
                && other.source == Some(Source::Hardware)
                && matches!(other.word, Word::Lower | Word::Higher)
        };
        let counters = self.judgement.verdicts.iter().filter(is_counter).map(wording::sentence);
        CpuTime { direction, says: wording::sentence(verdict), counters: counters.collect() }
    }

    /// The verdict on two variants, in either order, if one of them is the baseline.
    pub fn between(&self, metric: Metric, a: &str, b: &str) -> Option<&Verdict> {
        let baseline = self.campaign.experiment.baseline.as_str();
        let variant = match (a == baseline, b == baseline) {
            (true, _) => b,
            (_, true) => a,
            _ => return None,
        };
        self.judgement.verdicts.iter().find(|v| v.variant == variant && v.metric.name == metric.name)
    }
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
