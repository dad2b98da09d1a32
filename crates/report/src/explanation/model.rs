//! What an explanation is made of: metrics of both sides, the parts of their difference, and sections.

use serde::{Serialize, Serializer};
use serde_json::Value;
use widthwise_experiment::units::Unit;
use widthwise_verdict::wording::Size;
use widthwise_verdict::Word;

use crate::text::Palette;
use widthwise_anatomy::Certainty;

/// One reason for a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The metric that differs, such as `file_size`.
    pub metric: &'static str,
    /// The reason, in words.
    pub cause: String,
    /// The section, function, type or site.
    #[serde(rename = "where")]
    pub place: String,
    /// The variant's amount minus the baseline's, of `unit`.
    pub amount: i64,
    /// The metric's unit.
    pub unit: Unit,
    /// The amount as a share of the baseline's metric, in percentage points.
    pub points: f64,
    /// How certain the cause is.
    #[serde(serialize_with = "by_name")]
    pub certainty: Certainty,
    /// Numbers behind the amount, such as `72 → 40 bytes × 620 000`; empty if there are none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The type whose layout it is a part of, as its cause ends with it: `pointers in Node` has `Node`.
    #[serde(skip)]
    pub layout_of: Option<String>,
}

fn by_name<S: Serializer>(certainty: &Certainty, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(certainty.name())
}

impl Part {
    /// The same with the numbers behind its amount.
    pub fn with_detail(self, detail: impl Into<String>) -> Part {
        Part { detail: detail.into(), ..self }
    }

    /// The same as a part of that type's layout, if it is one.
    pub fn with_layout_of(self, layout_of: Option<String>) -> Part {
        Part { layout_of, ..self }
    }

    /// Whether it is a cause with a name, and not a low guess.
    pub fn is_named(&self) -> bool {
        self.certainty >= Certainty::Medium
    }
}

/// What a metric's values rest on, and so whether a sentence may call one of them smaller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basis {
    /// Counted in files, or by an emulator: every difference is one.
    Counted,
    /// Measured in runs, with the verdict on both.
    Judged(Word),
    /// Measured in runs, and not compared with each other.
    Unjudged,
}

/// A metric of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Its name, such as `file_size`.
    pub metric: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The baseline's value.
    pub baseline: i64,
    /// The variant's value.
    pub variant: i64,
    /// What the values rest on.
    pub basis: Basis,
    /// The upper bounds of both, where the values are only lower bounds; infinite where there is none.
    pub uppers: [Option<f64>; 2],
    /// The verdict's estimate of the difference, where there is one: it is of paired runs, and need not be that of both values.
    pub estimate: Option<Size>,
}

impl Measured {
    /// A metric that was counted in files.
    pub fn counted(metric: &'static str, unit: Unit, [baseline, variant]: [i64; 2]) -> Measured {
        Measured { metric, unit, baseline, variant, basis: Basis::Counted, uppers: [None; 2], estimate: None }
    }

    /// Whether one of the values is only a lower bound.
    pub fn is_bounded(&self) -> bool {
        self.uppers.iter().any(Option::is_some)
    }

    /// The variant's value minus the baseline's.
    pub fn difference(&self) -> i64 {
        self.variant - self.baseline
    }

    /// An amount as a share of the baseline, in percentage points; 0 where the baseline is 0.
    pub fn points(&self, amount: i64) -> f64 {
        match self.baseline {
            0 => 0.0,
            baseline => 100.0 * amount as f64 / baseline as f64,
        }
    }

    /// A part of this metric's difference.
    pub fn part(
        &self,
        cause: impl Into<String>,
        place: impl Into<String>,
        amount: i64,
        certainty: Certainty,
    ) -> Part {
        Part {
            metric: self.metric,
            cause: cause.into(),
            place: place.into(),
            amount,
            unit: self.unit,
            points: self.points(amount),
            certainty,
            detail: String::new(),
            layout_of: None,
        }
    }

    /// What these parts leave of the difference.
    pub fn unexplained(&self, parts: &[&Part], reason: Option<String>) -> Unexplained {
        let difference = self.difference();
        let amount = difference - parts.iter().map(|part| part.amount).sum::<i64>();
        let unnamed: u64 =
            parts.iter().filter(|part| !part.is_named()).map(|part| part.amount.unsigned_abs()).sum();
        let left = (unnamed + amount.unsigned_abs()) as f64 / difference.unsigned_abs() as f64;
        Unexplained {
            metric: self.metric,
            baseline: self.baseline,
            variant: self.variant,
            amount,
            unit: self.unit,
            points: self.points(amount),
            explained_share: (difference != 0 && !self.is_bounded()).then(|| (1.0 - left).max(0.0)),
            verdict: match self.basis {
                Basis::Judged(word) => Some(word.name()),
                Basis::Counted | Basis::Unjudged => None,
            },
            reason: reason.filter(|_| amount != 0),
            basis: self.basis,
            uppers: self.uppers,
            estimate: self.estimate,
            verdict_reason: None,
        }
    }
}

/// The part of a difference that no cause explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unexplained {
    /// The metric.
    pub metric: &'static str,
    /// The baseline's value.
    pub baseline: i64,
    /// The variant's value.
    pub variant: i64,
    /// Their difference minus the sum of the parts.
    pub amount: i64,
    /// The metric's unit.
    pub unit: Unit,
    /// The amount as a share of the baseline, in percentage points.
    pub points: f64,
    /// The share of the difference that remains without the parts of certainty low and without the amount, each without its sign, 0 to
    /// 1: a low part of the other direction does not cancel what is not explained. None without a difference, or if a value is only a
    /// lower bound.
    pub explained_share: Option<f64>,
    /// The verdict on both values, where runs were compared.
    pub verdict: Option<&'static str>,
    /// Why something is unexplained, where that is known.
    pub reason: Option<String>,
    /// What the values rest on.
    #[serde(skip)]
    pub basis: Basis,
    /// The upper bounds of both values, where these are only lower bounds.
    #[serde(skip)]
    pub uppers: [Option<f64>; 2],
    /// The verdict's estimate of the difference.
    #[serde(skip)]
    pub estimate: Option<Size>,
    /// Why the verdict is withheld and what is needed for one, in sentences, where the section knows.
    #[serde(skip)]
    pub verdict_reason: Option<String>,
}

impl Unexplained {
    /// Whether a sentence may call one value smaller: it differs, and not within the noise.
    pub fn is_clear(&self) -> bool {
        let is_clear = match self.basis {
            Basis::Counted => true,
            Basis::Judged(word) => matches!(word, Word::Lower | Word::Higher),
            Basis::Unjudged => false,
        };
        is_clear && self.baseline != self.variant
    }
}

/// One part of the program's cost, explained: its size, code, layout, heap or time.
pub trait Section {
    /// Its name in the JSON: one word.
    fn name(&self) -> &'static str;

    /// Whether it is on what was measured in runs, and not on the programs' files.
    fn is_of_runs(&self) -> bool {
        false
    }

    /// The metrics whose difference it explains; each metric belongs to one section.
    fn measured(&self) -> Vec<Measured>;

    /// Its parts. Those of a metric sum to the difference, except for what is unexplained.
    fn parts(&self) -> Vec<Part>;

    /// Why a part of that metric's difference is unexplained, where the section knows.
    fn reason(&self, metric: &str) -> Option<String> {
        let _ = metric;
        None
    }

    /// Why there is no verdict on that metric and what is needed for one, in sentences, where the section knows.
    fn verdict_reason(&self, metric: &str) -> Option<String> {
        let _ = metric;
        None
    }

    /// The text below the sentences, with its heading, in lines of at most `width` columns.
    fn text(&self, width: usize, palette: &Palette) -> String;

    /// Its object in the JSON's `sections`.
    fn json(&self) -> Value;
}
