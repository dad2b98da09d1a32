//! Welch's comparison of two means: what hyperfine's own `scripts/welch_ttest.py` makes of its exported times.

use std::f64::consts::FRAC_PI_2;

/// A ratio of means with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Ratio {
    /// Whether the interval leaves out 1: the two-sided test at 5 % calls a difference.
    pub fn differs(self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Whether the truth lies inside.
    pub fn holds(self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    /// Half its width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The mean of `b` to that of `a`: the interval of the difference of the means (unequal variances, Welch 1947), laid
/// over the mean of `a`. Both need two values at least.
pub fn ratio(a: &[f64], b: &[f64]) -> Ratio {
    let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_squared_error(a), mean_and_squared_error(b));
    let squared = error_a + error_b;
    let freedom = squared * squared
        / (error_a * error_a / (a.len() as f64 - 1.0) + error_b * error_b / (b.len() as f64 - 1.0));
    let half = if squared > 0.0 { student(freedom) * squared.sqrt() } else { 0.0 };
    let difference = mean_b - mean_a;
    Ratio { low: 1.0 + (difference - half) / mean_a, high: 1.0 + (difference + half) / mean_a }
}

/// The mean, and the square of its standard error.
fn mean_and_squared_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n - 1.0) / n)
}

/// The 97.5 % quantile of Student's t. With t = √ν·tan θ its density is proportional to cos^(ν−1) θ, so that no gamma
/// function is needed: the quantile is where 95 % of the integral from 0 to π/2 is reached.
pub fn student(freedom: f64) -> f64 {
    const STEPS: usize = 2000;
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    let integral = |to: f64| {
        let step = to / STEPS as f64;
        let inner: f64 =
            (1..STEPS).map(|i| density(i as f64 * step) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (density(0.0) + inner + density(to)) * step / 3.0
    };
    let wanted = 0.95 * integral(FRAC_PI_2);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if integral(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    freedom.sqrt() * low.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [(2.0, 4.302653), (10.0, 2.228139), (30.0, 2.042272), (1000.0, 1.962339)] {
            assert!((student(freedom) - quantile).abs() < 1e-4, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn two_samples_are_compared_by_the_difference_of_their_means() {
        // The difference is 0.6 with a standard error of 0.178885 on 5.4324 degrees of freedom: 0.6 ± 0.4491.
        let a = [10.0, 10.2, 9.9, 10.1, 9.8];
        let b = [10.6, 10.1, 10.9, 10.4, 11.0];
        let found = ratio(&a, &b);
        assert!((found.low - 1.01509).abs() < 1e-4 && (found.high - 1.10491).abs() < 1e-4, "{found:?}");
        assert!(found.differs() && found.holds(1.06) && !found.holds(1.0));
        assert!(!ratio(&a, &a).differs());
        assert!(ratio(&b, &a).differs());
    }
}
