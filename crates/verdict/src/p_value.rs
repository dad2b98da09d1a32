//! The p-value that belongs to an interval.

use crate::bootstrap::Interval;
use crate::distribution::{student_quantile, student_two_sided};

impl Interval {
    /// The two-sided p-value of the estimate under the hypothesis `null`.
    ///
    /// The p-value inverts the interval: the distance to `null` is divided by the interval's reach on that side and
    /// looked up in Student's t. `p` is at most `1 - confidence` exactly where the interval excludes `null`. The
    /// parametric tail lets ten rounds find a difference among dozens of comparisons. The smallest p-value of a rank
    /// test of ten rounds is 2/1024, and that of a bootstrap the inverse of its resamples.
    pub fn p_value(self, null: f64, n: usize, confidence: f64) -> f64 {
        let distance = self.estimate - null;
        if distance == 0.0 {
            return 1.0;
        }
        let near = if distance > 0.0 { self.estimate - self.low } else { self.high - self.estimate };
        // With discrete data one side can have no reach; half the width is used instead.
        let reach = if near > 0.0 { near } else { 0.5 * (self.high - self.low) };
        if reach <= 0.0 {
            return 0.0;
        }
        let freedom = n as f64 - 1.0;
        let critical = student_quantile(0.5 + 0.5 * confidence, freedom);
        student_two_sided(critical * distance.abs() / reach, freedom).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_and_intervals_agree_on_what_is_excluded() {
        let found = Interval { estimate: 2.0, low: 0.5, high: 4.0 };
        let confidence = 0.95;
        assert!((found.p_value(0.5, 12, confidence) - 0.05).abs() < 1e-9);
        assert!((found.p_value(4.0, 12, confidence) - 0.05).abs() < 1e-9);
        assert!(found.p_value(0.0, 12, confidence) < 0.05);
        assert!(found.p_value(3.9, 12, confidence) > 0.05);
        assert_eq!(found.p_value(2.0, 12, confidence), 1.0);
        assert_eq!(Interval::exact(2.0).p_value(0.0, 12, confidence), 0.0);
        assert_eq!(Interval::exact(0.0).p_value(0.0, 12, confidence), 1.0);
    }
}
