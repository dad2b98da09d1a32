//! Multiple testing: the risk of a false alarm over all comparisons of a campaign.
//!
//! Two variants and a dozen metrics are two dozen chances of a false alarm. Holm's step-down procedure ("A simple
//! sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979) keeps the chance that
//! *any* comparison of the campaign is falsely called a difference at one minus the confidence, whatever the dependence
//! between metrics. In its weighted form (section 3 of the same paper) comparisons need not share the risk evenly. Half
//! of it goes to the metrics the experiment decides on, so further metrics cost these little power.

/// One comparison of a family: its p-value, and its share of the risk, above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// The p-value of the comparison by itself.
    pub p: f64,
    /// Its weight; only ratios between weights matter.
    pub weight: f64,
}

/// The adjusted p-value of each member: at most α exactly where Holm's procedure rejects at level α.
pub fn adjusted(members: &[Member]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let urgency = |i: usize| members[i].p / members[i].weight;
    order.sort_by(|&a, &b| urgency(a).total_cmp(&urgency(b)));
    let mut left: f64 = members.iter().map(|member| member.weight).sum();
    let mut result = vec![1.0; members.len()];
    let mut highest: f64 = 0.0;
    for i in order {
        highest = highest.max((left * urgency(i)).min(1.0));
        result[i] = highest;
        left -= members[i].weight;
    }
    result
}

/// The weights of a family of comparisons, given which of them are on a deciding metric: half of the risk to those,
/// half to the rest, evenly within either; all of it to one kind if the other has no member.
pub fn weights(deciding: &[bool]) -> Vec<f64> {
    let first = deciding.iter().filter(|&&yes| yes).count();
    let rest = deciding.len() - first;
    if first == 0 || rest == 0 {
        return vec![1.0 / deciding.len().max(1) as f64; deciding.len()];
    }
    deciding.iter().map(|&yes| 0.5 / if yes { first } else { rest } as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(ps: &[f64]) -> Vec<f64> {
        adjusted(&ps.iter().map(|&p| Member { p, weight: 1.0 }).collect::<Vec<_>>())
    }

    fn assert_close(found: &[f64], wanted: &[f64]) {
        assert_eq!(found.len(), wanted.len());
        for (f, w) in found.iter().zip(wanted) {
            assert!((f - w).abs() < 1e-12, "{found:?} {wanted:?}");
        }
    }

    #[test]
    fn even_weights_give_holms_adjusted_p_values() {
        // As R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") has them.
        assert_close(&even(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        assert_close(&even(&[0.6, 0.9]), &[1.0, 1.0]);
        assert_close(&even(&[0.2]), &[0.2]);
        assert!(even(&[]).is_empty());
    }

    #[test]
    fn a_heavier_comparison_is_adjusted_less() {
        let members = [
            Member { p: 0.01, weight: 0.5 },
            Member { p: 0.01, weight: 0.25 },
            Member { p: 0.5, weight: 0.25 },
        ];
        // 1 × 0.01 / 0.5, then 0.5 × 0.01 / 0.25, then 0.25 × 0.5 / 0.25.
        assert_close(&adjusted(&members), &[0.02, 0.02, 0.5]);
    }

    #[test]
    fn p_values_of_zero_stay_zero() {
        assert_close(&even(&[0.0, 0.03, 0.0]), &[0.0, 0.03, 0.0]);
    }

    #[test]
    fn deciding_metrics_share_half_of_the_risk() {
        assert_close(&weights(&[true, false, false, true, false]), &[0.25, 1. / 6., 1. / 6., 0.25, 1. / 6.]);
        assert_close(&weights(&[true, true]), &[0.5, 0.5]);
        assert_close(&weights(&[false; 4]), &[0.25; 4]);
        assert!(weights(&[]).is_empty());
    }
}
