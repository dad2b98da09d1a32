//! The scale of a comparison: a ratio or, where a run counted 0, a difference. The margin of equivalence on each scale.

use crate::bootstrap::Interval;

/// The scale of a comparison; no difference is 0 on either.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// The logarithm of variant over baseline.
    Log,
    /// Variant less baseline, in the metric's unit, where some run counted 0, because 0 has no logarithm.
    Difference {
        /// The baseline's mean.
        baseline: f64,
    },
}

impl Scale {
    /// How far a value is from no difference: as a fraction of the baseline's figure (on the log scale a half and a double
    /// are equally far), or as an amount.
    pub fn departure(self, value: f64) -> f64 {
        match self {
            Scale::Log => value.abs().exp_m1(),
            Scale::Difference { .. } => value.abs(),
        }
    }

    /// How far a departure is from no difference in the direction of a value, as tables show it: a ratio of 0.8 is 25 % away
    /// from 1 on the log scale, and a decrease of 20 %.
    pub fn toward(self, value: f64, departure: f64) -> f64 {
        match self {
            Scale::Log if value < 0.0 => departure / (1.0 + departure),
            _ => departure,
        }
    }

    /// Whether the whole interval lies inside the margin: from 1 / (1 + margin) to 1 + margin times the baseline's
    /// figure. An interval of exactly 0 lies inside any margin; if the baseline's mean is 0, no other interval does.
    pub fn is_within(self, interval: Interval, margin: f64) -> bool {
        let (least, most) = match self {
            Scale::Log => (-margin.ln_1p(), margin.ln_1p()),
            Scale::Difference { baseline } => (-baseline * margin / (1.0 + margin), baseline * margin),
        };
        least <= interval.low && interval.high <= most
    }

    /// Half the width of an interval as a fraction of the baseline's figure; absent where that is 0.
    pub fn half_width(self, interval: Interval) -> Option<f64> {
        match self {
            Scale::Log => Some(0.5 * (interval.high.exp() - interval.low.exp())),
            Scale::Difference { baseline } => {
                (baseline > 0.0).then(|| 0.5 * (interval.high - interval.low) / baseline)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { estimate: 0.5 * (low + high), low, high }
    }

    #[test]
    fn the_margin_of_a_ratio_is_symmetric_on_the_log_scale() {
        let within = |low: f64, high: f64| Scale::Log.is_within(interval(low.ln(), high.ln()), 0.01);
        assert!(within(0.9902, 1.0099));
        assert!(!within(0.9900, 1.0), "0.99 is farther from 1 than 1.01 is");
        assert!(!within(1.0, 1.0101));
    }

    #[test]
    fn the_margin_of_a_difference_is_of_the_baselines_mean() {
        let beside =
            |baseline, low, high| Scale::Difference { baseline }.is_within(interval(low, high), 0.01);
        assert!(beside(1000.0, -9.0, 9.0) && !beside(1000.0, -11.0, 9.0) && !beside(1000.0, -9.0, 11.0));
        assert!(beside(0.0, 0.0, 0.0) && !beside(0.0, 0.0, 1e-9), "beside 0 only 0 is equal");
    }
}
