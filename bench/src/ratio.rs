//! The ratio of two means whose values were read in the same rounds, with its interval.

use crate::welch::{student, Ratio};

/// A ratio and its 95 % interval, if the rounds tell one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean of the one to the mean of the other.
    pub ratio: f64,
    /// None where the denominator cannot be distinguished from 0, or is less.
    pub interval: Option<Ratio>,
}

impl Estimate {
    /// Whether the interval does not say on which side of the threshold the truth lies.
    pub fn straddles(self, threshold: f64) -> bool {
        self.interval.is_none_or(|interval| interval.holds(threshold))
    }

    /// With so many decimals.
    pub fn text(self, decimals: usize) -> String {
        let ratio = self.ratio;
        match self.interval {
            Some(Ratio { low, high }) => format!("{ratio:.decimals$} ({low:.decimals$} … {high:.decimals$})"),
            None => format!("{ratio:.decimals$} (not known)"),
        }
    }
}

/// The mean of `above` to the mean of `below`, of at least two rounds.
///
/// By Fieller's theorem (1954): the interval holds every ratio r for which the mean of `above - r * below` does not
/// differ from 0 by Student's t. What a round does to both, it does to the difference, and the error of the
/// denominator is in the interval.
pub fn of_means(above: &[f64], below: &[f64]) -> Estimate {
    let n = above.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
    let (y, x) = (mean(above), mean(below));
    let t = student(n - 1.0);
    // t² times the covariance of two means.
    let margin = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| {
        let sum: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
        t * t * sum / (n - 1.0) / n
    };
    // The ratios r between the roots of square * r² - 2 * middle * r + constant.
    let square = x * x - margin(below, x, below, x);
    let middle = x * y - margin(below, x, above, y);
    let constant = y * y - margin(above, y, above, y);
    let root = (middle * middle - square * constant).max(0.0).sqrt();
    let interval = (square > 0.0 && x > 0.0)
        .then(|| Ratio { low: (middle - root) / square, high: (middle + root) / square });
    Estimate { ratio: y / x, interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_denominator_leaves_students_interval_of_the_mean() {
        // 5 ± 2.570582 * sqrt(3.5 / 6), over 10.
        let found = of_means(&[3.5, 4.5, 5.5, 6.5, 2.5, 7.5], &[10.0; 6]);
        let interval = found.interval.unwrap();
        assert!((found.ratio - 0.5).abs() < 1e-12, "{found:?}");
        assert!((interval.low - 0.30367).abs() < 1e-4 && (interval.high - 0.69633).abs() < 1e-4, "{found:?}");
        assert!(found.straddles(0.4) && !found.straddles(0.3) && !found.straddles(0.7));
    }

    #[test]
    fn what_slows_a_round_down_as_a_whole_widens_nothing() {
        let below = [1.0, 2.0, 3.0, 1.5];
        let interval = of_means(&below.map(|value| value * 0.4), &below).interval.unwrap();
        assert!((interval.low - 0.4).abs() < 1e-6 && (interval.high - 0.4).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn a_denominator_that_may_be_zero_has_no_interval() {
        let found = of_means(&[1.0, 2.0], &[-1.0, 1.5]);
        assert_eq!(found.interval, None);
        assert!(found.straddles(0.4));
        assert_eq!(found.text(1), "6.0 (not known)");
    }
}
