//! Samples in, verdicts out.
//!
//! A verdict compares one variant with the baseline on one metric: the ratio, an interval around it, the smallest
//! difference this machine can tell from none, and a word. This crate is pure: it starts nothing, reads no clock and
//! opens no file, and the same samples with the same seed give the same verdicts, bit for bit, in whatever order the
//! rounds, runs, variants and metrics are handed in. How the numbers are made, and what they cannot say, is told in
//! `docs/verdicts.md`.

pub mod bootstrap;
pub mod distribution;
pub mod family;
mod judge;
pub mod location;
mod pairs;
pub mod scaling;
pub mod serial;
pub mod stopping;
pub mod stream;
pub mod study;
mod typical;
pub mod words;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use widthwise_experiment::outcome::{Round, Run, Source};
use widthwise_experiment::{Experiment, Metric};

pub use judge::{judge, widest_half_width, FEWEST_PAIRS, TEN_RUNS};

/// The outcome of a verdict, in one word. `Lower` and `Higher` say what the variant's figure is beside the
/// baseline's; whether lower is better is the metric's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// The variant's figure is lower than the baseline's.
    Lower,
    /// The variant's figure is higher than the baseline's.
    Higher,
    /// No difference that this machine can see.
    Same,
    /// There are figures, but no verdict can rest on them; the reason says why.
    Withheld,
    /// There are no figures; the reason says why.
    Missing,
}

impl Word {
    /// The word as it stands in JSON, CSV and tables.
    pub fn name(self) -> &'static str {
        match self {
            Word::Lower => "lower",
            Word::Higher => "higher",
            Word::Same => "same",
            Word::Withheld => "withheld",
            Word::Missing => "missing",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One variant against the baseline, on one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was measured.
    pub metric: Metric,
    /// The variant's name; [`Experiment::twin`] for the A/A pair.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// Variant over baseline.
    pub ratio: Option<f64>,
    /// The lower end of the interval around `ratio`.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The confidence of this one interval, by itself.
    pub confidence: f64,
    /// The detection floor of this metric, as a fraction (0.008 for 0.8 %): how far the A/A pair's interval reaches from
    /// its estimate, and that estimate, added in squares. Absent where the pair has no interval.
    pub floor: Option<f64>,
    /// Rounds in which the variant was read, and the baseline under either of its names.
    pub pairs: u32,
    /// How likely so large a difference is where there is none, two-sided, for this one comparison.
    pub p: Option<f64>,
    /// `p` after Holm's correction for every comparison of the campaign; absent for the A/A pair, which is not a
    /// question anybody asked.
    pub adjusted_p: Option<f64>,
    /// The least share of any of these runs during which the counter counted: 1 unless it was multiplexed.
    pub coverage: f64,
    /// Where the variant's readings came from.
    pub source: Option<Source>,
    /// The outcome.
    pub word: Word,
    /// Why there is no verdict, or why it is `same`.
    pub reason: Option<String>,
}

/// What a variant's runs of one metric were like, by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Typical {
    /// The variant's name; the baseline and its twin are here too.
    pub variant: String,
    /// What was measured.
    pub metric: Metric,
    /// The 20 % trimmed mean, in the metric's unit, as is everything below.
    pub value: f64,
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub low_quartile: f64,
    /// The upper quartile.
    pub high_quartile: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many timed runs that ended well were read.
    pub runs: u32,
}

/// Whether a variant can be compared at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It was built, it ran, and it answered as the baseline did.
    Measured,
    /// It could not be built or started: the reason.
    Unable(String),
    /// Its answer differs from the baseline's: how.
    Different(String),
    /// Its answer differs from the baseline's, and the user allows that: how.
    DifferentAllowed(String),
}

/// Everything verdicts rest on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The question.
    pub experiment: &'a Experiment,
    /// Every round; only timed ones count.
    pub rounds: &'a [Round],
    /// Every run of them.
    pub runs: &'a [Run],
    /// The standing of each variant, by name. A variant that is not here is [`Standing::Measured`].
    pub standings: &'a BTreeMap<String, Standing>,
}

/// Every verdict of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Variants in the experiment's order, the twin after them, each with every metric in the experiment's order.
    pub verdicts: Vec<Verdict>,
    /// Variants in the experiment's order, the twin after them, each with the metrics that were read.
    pub typical: Vec<Typical>,
    /// How many comparisons share the risk of a false alarm: the size of the Holm family.
    pub comparisons: usize,
}
