//! Samples in, verdicts out.
//!
//! A verdict compares one variant with the baseline on one metric: the ratio, an interval around it, the smallest
//! difference this machine can resolve, and a word. This crate is pure: it starts nothing, reads no clock and opens no
//! file, and the same samples with the same seed give the same verdicts, bit for bit, in whatever order the rounds,
//! runs, variants and metrics are handed in. `docs/verdicts.md` explains the numbers and their limits.

pub mod autocorrelation;
pub mod bootstrap;
mod comparison;
mod decision;
pub mod distribution;
mod effect;
mod family;
mod floor;
mod judge;
pub mod multiple_testing;
pub mod overview;
mod p_value;
mod pairs;
pub mod power;
pub mod randomized_layouts;
pub mod repeats;
mod rss_lag;
pub use widthwise_experiment::rng;
pub mod scaling;
pub mod scaling_summary;
pub mod starvation;
pub mod stopping;
mod x32_runtime;

pub mod trimmed_mean;
mod typical;
pub mod wording;

use std::collections::BTreeMap;
use std::fmt;
use widthwise_experiment::VariantStatus;

use serde::{Deserialize, Serialize};
use widthwise_experiment::outcome::{Round, Run, Source};
use widthwise_experiment::role::control_of;
use widthwise_experiment::{Experiment, Metric};

use crate::randomized_layouts::Spread;

pub use comparison::{FEWEST_PAIRS, TEN_RUNS};
pub use judge::{half_width, judge};
pub use x32_runtime::{RuntimePart, RuntimeShare};

/// The outcome of a verdict, in one word. `Lower` and `Higher` compare the variant's figure with the baseline's;
/// whether lower is better depends on the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The variant's figure is lower than the baseline's.
    Lower,
    /// The variant's figure is higher than the baseline's.
    Higher,
    /// The two are equivalent: the whole interval lies inside the margin of `equal_within`.
    NoDifference,
    /// No difference was found, and the interval is too wide to rule out one beyond the margin.
    Inconclusive,
    /// There are figures, but no verdict can rest on them; `reason` has the cause.
    Withheld,
    /// There are no figures; `reason` has the cause.
    NoData,
}

impl Word {
    /// The word in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Word::Lower => "lower",
            Word::Higher => "higher",
            Word::NoDifference => "no_difference",
            Word::Inconclusive => "inconclusive",
            Word::Withheld => "withheld",
            Word::NoData => "no_data",
        }
    }

    /// The word in tables and sentences.
    pub fn text(self) -> &'static str {
        match self {
            Word::NoDifference => "no difference",
            Word::NoData => "no data",
            _ => self.name(),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One variant against the baseline, on one metric. It has a ratio or a difference, or neither.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was measured.
    pub metric: Metric,
    /// The variant's name; [`Experiment::control`] for the A/A pair.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// Variant over baseline; absent where the baseline's figure is 0.
    pub ratio: Option<f64>,
    /// The difference of the means, variant less baseline, in the metric's unit; present where there is no ratio
    /// because some run counted 0.
    pub difference: Option<f64>,
    /// The baseline's mean in the metric's unit, beside `difference`.
    pub baseline_mean: Option<f64>,
    /// The lower end of the interval around `ratio` or, where that is absent, around `difference`.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The confidence of this one interval, by itself.
    pub confidence: f64,
    /// The margin of equivalence, a fraction: `no_difference` means that the whole interval lies inside it.
    pub equal_within: f64,
    /// The detection floor of this metric, as a fraction (0.008 for 0.8 %): √(reach² + estimate²) of the A/A pair.
    /// Absent where the pair has no interval. It is that of an increase.
    pub floor: Option<f64>,
    /// That of a decrease, as a fraction, where it is not `floor / (1 + floor)`, which is as far on the log scale: for max RSS, whose
    /// account has an error.
    pub floor_of_decrease: Option<f64>,
    /// The same as an amount in the metric's unit, where there is no ratio.
    pub difference_floor: Option<f64>,
    /// Rounds in which the variant was read, and the baseline under either of its names.
    pub pairs: u32,
    /// The two-sided p-value of this one comparison.
    pub p: Option<f64>,
    /// `p` after Holm's correction for every comparison of the campaign; absent for the A/A pair, which is not in the
    /// family.
    pub adjusted_p: Option<f64>,
    /// The least share of any of these runs during which the counter counted: 1 unless it was multiplexed.
    pub coverage: f64,
    /// Where the variant's readings came from.
    pub source: Option<Source>,
    /// Rounds, of `pairs`, in which the variant's figure differs from a figure of the baseline. It may be above 0 where the
    /// interval has no width: trimmed means ignore a few odd runs.
    pub unequal: u32,
    /// The outcome.
    pub word: Word,
    /// Why there is no verdict, or why it is neither `lower` nor `higher`.
    pub reason: Option<String>,
    /// Of an inconclusive verdict: how many rounds would decide if the estimate stays; absent beyond 10 000.
    pub rounds_to_decide: Option<u32>,
    /// The smallest difference that as many rounds as these find in nine of ten campaigns: a fraction or, where there is
    /// no ratio, an amount. Absent for the A/A control.
    pub detectable: Option<f64>,
    /// Where programs were built in several layouts: how far these differ.
    pub spread: Option<Spread>,
}

impl Verdict {
    /// The same comparison of the baseline with the variant.
    pub fn reversed(&self) -> Verdict {
        let inverse = |ratio: Option<f64>| ratio.map(|ratio| 1.0 / ratio);
        let negative = |difference: Option<f64>| difference.map(|difference| -difference);
        // Either ratios or, where there is none, amounts.
        let [low, high] = match self.difference {
            Some(_) => [negative(self.high), negative(self.low)],
            None => [inverse(self.high), inverse(self.low)],
        };
        Verdict {
            variant: self.baseline.clone(),
            baseline: self.variant.clone(),
            ratio: inverse(self.ratio),
            difference: negative(self.difference),
            baseline_mean: self.baseline_mean.map(|mean| mean + self.difference.unwrap_or(0.0)),
            low,
            high,
            word: match self.word {
                Word::Lower => Word::Higher,
                Word::Higher => Word::Lower,
                word => word,
            },
            ..self.clone()
        }
    }

    /// Whether this is the A/A control's: the baseline measured a second time, under its other name.
    pub fn is_control(&self) -> bool {
        self.variant == control_of(&self.baseline)
    }

    /// The same figures without a verdict, because of that reason. A verdict that is already withheld, or that has no
    /// data, keeps its own reason.
    pub fn withhold(&mut self, reason: impl Into<String>) {
        if !matches!(self.word, Word::Withheld | Word::NoData) {
            self.word = Word::Withheld;
            self.reason = Some(reason.into());
        }
    }
}

/// The distribution of one metric over a variant's runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Typical {
    /// The variant's name; the baseline and the A/A control are included.
    pub variant: String,
    /// What was measured.
    pub metric: Metric,
    /// The 20 % trimmed mean, in the metric's unit, as is everything below.
    pub value: f64,
    /// Present where some amounts have two bounds: `value` and everything below are of the lower bounds, this is of the
    /// upper ones. Infinite where an amount has no upper bound.
    pub upper: Option<f64>,
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub low_quartile: f64,
    /// The upper quartile.
    pub high_quartile: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// How many timed runs that ended well were read.
    pub runs: u32,
}

/// The input of every verdict.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Every round; only timed ones count.
    pub rounds: &'a [Round],
    /// Every run of them.
    pub runs: &'a [Run],
    /// The status of each variant, by name. A variant that is not here is [`VariantStatus::Ready`].
    pub statuses: &'a BTreeMap<String, VariantStatus>,
    /// By how many bytes the kernel's account of max RSS may lag ([`widthwise_experiment::memory::rss_lag`]); 0 where it is exact.
    pub rss_lag: u64,
}

/// Every verdict of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Variants in the experiment's order, then the A/A control, each with every metric in the experiment's order.
    pub verdicts: Vec<Verdict>,
    /// Variants in the experiment's order, then the A/A control, each with the metrics that were read.
    pub typical: Vec<Typical>,
    /// How many comparisons share the risk of a false alarm: the size of the Holm family.
    pub comparisons: usize,
    /// The x32 runtime's share in the verdicts on time, where it replaced the kernel's x32 support.
    pub runtime: RuntimePart,
    /// By how many bytes the kernel's accounts of max RSS may differ for the same memory: its intervals and floors include them.
    pub rss_lag: Option<f64>,
}
