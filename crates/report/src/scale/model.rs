//! What a report on a scaling campaign shows.

use widthwise_experiment::role::control_of;
use widthwise_experiment::scale::{GroupRun, Plan};
use widthwise_verdict::scaling_summary::Summary;

use crate::campaign::Campaign;

/// Everything that a report on a scaling campaign shows.
#[derive(Debug)]
pub struct Scaling<'a> {
    /// The campaign.
    pub campaign: Campaign<'a>,
    /// The plan of the campaign.
    pub plan: &'a Plan,
    /// The variants, the baseline first.
    pub variants: &'a [String],
    /// The machine's topology with the CPUs of the largest cell marked, for each placement: name and text.
    pub pictures: Vec<(String, String)>,
    /// The same, as SVG.
    pub drawings: Vec<(String, String)>,
    /// Whether any core has more than one thread.
    pub has_siblings: bool,
    /// Memory of the machine, in bytes.
    pub memory: u64,
    /// Every run, in order.
    pub runs: &'a [GroupRun],
    /// The results of the runs.
    pub summary: &'a Summary,
}

impl Scaling<'_> {
    /// Variants that cannot be measured, each with the reason.
    pub(super) fn not_measured(&self) -> Vec<(&str, &str)> {
        let statuses = self.campaign.statuses.iter();
        statuses.filter_map(|(name, status)| Some((name.as_str(), status.not_measured()?))).collect()
    }

    /// The margin of equivalence, a fraction.
    pub(super) fn equal_within(&self) -> f64 {
        self.campaign.experiment.judging.equal_within
    }

    /// Whether the A/A control's output differs from the baseline's: there is no floor then.
    pub(super) fn is_control_different(&self) -> bool {
        let control = self.variants.first().map(|baseline| control_of(baseline));
        self.summary.different.iter().any(|(variant, _)| Some(variant) == control.as_ref())
    }

    /// The detection floor of throughput, a fraction: the distance of the farther end of the A/A interval from zero.
    pub(crate) fn floor(&self) -> Option<f64> {
        if self.is_control_different() {
            return None;
        }
        let ends = self.summary.floor.as_ref().ok()?.bounds?;
        Some((ends.low - 1.0).abs().max((ends.high - 1.0).abs()))
    }
}
