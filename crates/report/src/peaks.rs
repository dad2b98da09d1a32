//! Peaks that more than one report prints. Each is computed only here, so that no two reports can disagree;
//! different quantities have different names.
//!
//! *Max RSS* is the kernel's figure for the largest process of a run (VmHWM), in timed rounds, without a
//! recorder: `compare` judges it. *Peak heap* is the highest sum of requested and not yet freed memory, in a
//! recorded run; see [`crate::heap::typical`].

use serde::Serialize;
use widthwise_experiment::metric;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_verdict::{wording, Verdict};

use crate::campaign::Campaign;

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
    /// Of those variants; none if one of them has none.
    pub fn of(campaign: &Campaign, a: &str, b: Option<&str>) -> Option<MaxRss> {
        let metric = metric::find("max_rss")?;
        let typical = campaign.typical(a, metric)?;
        let other = match b {
            Some(b) => Some(campaign.typical(b, metric)?.value),
            None => None,
        };
        let verdict = b.and_then(|b| between(campaign, metric, a, b));
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

/// The verdict on two variants, in either order, if one of them is the baseline.
fn between<'a>(
    campaign: &Campaign<'a>,
    metric: widthwise_experiment::Metric,
    a: &str,
    b: &str,
) -> Option<&'a Verdict> {
    let baseline = campaign.experiment.baseline.as_str();
    let variant = match (a == baseline, b == baseline) {
        (true, _) => b,
        (_, true) => a,
        _ => return None,
    };
    let judgement: &'a widthwise_verdict::Judgement = campaign.judgement;
    judgement.verdicts.iter().find(|v| v.variant == variant && v.metric.name == metric.name)
}
