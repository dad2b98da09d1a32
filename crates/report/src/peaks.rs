//! Peaks that more than one report prints. Each is computed only here, so that no two reports can disagree;
//! different quantities have different names.
//!
//! *Max RSS* is the kernel's figure for the largest process of a run (VmHWM), in timed rounds, without a
//! recorder: `compare` judges it. *Peak heap* is the highest sum of requested and not yet freed memory, in a
//! recorded run; see [`crate::heap::typical`].

use serde::Serialize;
use widthwise_experiment::units::{Quantity, Unit};

/// Max RSS of one variant, or of two, as the campaign measured and judged it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaxRss {
    /// The first variant.
    #[serde(skip)]
    pub name: String,
    /// Its typical value over the timed rounds, in bytes.
    pub a: f64,
    /// The second variant.
    #[serde(skip)]
    pub other: Option<String>,
    /// Its typical value.
    pub b: Option<f64>,
    /// The number of timed rounds in which the first was read.
    pub rounds: u32,
    /// The campaign's verdict on the two; null where neither is the baseline.
    pub verdict: Option<&'static str>,
    /// The same as a sentence.
    pub says: Option<String>,
}

impl MaxRss {
    /// As a sentence.
    pub fn sentence(&self) -> String {
        let amount = |value: f64| Quantity { value, unit: Unit::Bytes }.to_string();
        let name = "Max RSS (the largest process, without the recorder)";
        match (&self.other, self.b) {
            (Some(other), Some(b)) => {
                let says = match &self.says {
                    Some(says) => says.clone(),
                    None => "the campaign compares each with the baseline, not with the other".to_owned(),
                };
                format!("{name}: {} has {}, {other} {}; {says}.", self.name, amount(self.a), amount(b))
            }
            _ => format!("{name}: {} has {}.", self.name, amount(self.a)),
        }
    }
}
