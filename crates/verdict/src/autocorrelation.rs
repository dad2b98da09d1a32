//! Serial correlation: rounds that resemble the rounds before them.
//!
//! Drift, heat and other programs' load do not correlate paired log-ratios: the order of every round is random. The order cannot remove a state that belongs to one variant and outlives its runs, such as the placement of its
//! file in the page cache. Then `n` rounds are worth fewer than `n`, and the interval must be wider.

/// The factor, at least 1, by which serial correlation widens an interval.
///
/// The correlation `r` of neighbours is estimated from `differences` in the order of their rounds. The differences are
/// winsorised at a fifth on either side, as a trimmed mean does. The small-sample bias of `r` is removed (Marriott &
/// Pope, Biometrika 41, 1954). The positive-part rule, r · (1 − 1/(n r²))₊, then shrinks it: independent rounds have an
/// `r` of about ±1/√n by chance. A first-order autoregression then makes the variance of a mean (1 + r)/(1 − r) times
/// as large. Negative correlation is never used to narrow an interval.
pub fn inflation(differences: &[f64]) -> f64 {
    /// The upper limit of the estimated correlation.
    const STRONGEST: f64 = 0.9;
    let count = differences.len();
    if count < 4 {
        return 1.0;
    }
    let n = count as f64;
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[count / 5], sorted[count - 1 - count / 5]);
    let values: Vec<f64> = differences.iter().map(|value| value.clamp(low, high)).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    let neighbours: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let biased = neighbours / variance;
    let r = biased + (1.0 + 3.0 * biased) / n;
    if r <= 0.0 {
        return 1.0;
    }
    let shrunk = (r * (1.0 - 1.0 / (n * r * r))).clamp(0.0, STRONGEST);
    ((1.0 + shrunk) / (1.0 - shrunk)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_rounds_do_not_widen_the_interval() {
        let values: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(inflation(&values), 1.0);
    }

    #[test]
    fn constant_values_and_fewer_than_four_rounds_do_not_widen_the_interval() {
        assert_eq!(inflation(&[0.5; 30]), 1.0);
        assert_eq!(inflation(&[0.1, 0.2, 0.3]), 1.0);
    }

    #[test]
    fn positive_autocorrelation_widens_the_interval() {
        // Four blocks of ten: neighbours agree nearly always.
        let values: Vec<f64> = (0..40).map(|i| if (i / 10) % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let found = inflation(&values);
        assert!((2.0..5.0).contains(&found), "{found}");
    }

    #[test]
    fn one_outlier_does_not_hide_autocorrelation() {
        let mut values: Vec<f64> = (0..40).map(|i| if (i / 10) % 2 == 0 { 1.0 } else { -1.0 }).collect();
        values[5] = 1e6;
        assert!(inflation(&values) > 2.0);
    }
}
