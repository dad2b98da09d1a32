//! The adaptive trimmed mean.
//!
//! Run times have few or many outliers. A lightly trimmed mean is nearly as precise as the mean for normal noise, and
//! useless if a fifth of the differences on either side are outliers; a heavily trimmed one is the reverse. So both are
//! taken, and weighted by the data:
//!
//! ```text
//! estimate = w · T₁₀ + (1 − w) · T₄₀        w = min(1, s₄₀² / s₁₀²)
//! ```
//!
//! T₁₀ and T₄₀ leave out a tenth and four tenths on either side; s² is the squared standard error of each, from the
//! winsorised sum of squares (Tukey & McLaughlin 1963; Yuen 1974). If the light one is more precise it is used alone;
//! otherwise the heavy one gets weight in proportion. Choosing the trimming from the data is Jaeckel's idea (1971);
//! Léger & Romano (1990) show that the bootstrap follows such an estimator if the choice is made anew in every
//! resample, as it is here. Weighting instead of switching keeps the estimator continuous: with a switch, coverage in
//! simulation fell to 90 % where one variant sometimes has a second mode.

/// The share left out on either side by the lightly trimmed mean.
pub const LIGHT: f64 = 0.1;
/// The share left out on either side by the heavily trimmed mean.
pub const HEAVY: f64 = 0.4;

/// A trimmed mean and its squared standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trimmed {
    mean: f64,
    variance: f64,
}

/// How many values a trim leaves out on either side, of `n`: at least one where that leaves two or more, and never so
/// many that fewer than two are left (a standard error needs two).
pub(crate) fn cut(n: usize, share: f64) -> usize {
    // The small addend keeps 0.1 × 30 at 3 whatever the rounding of 0.1.
    let wanted = ((share * n as f64 + 1e-9) as usize).max(1);
    wanted.min(n.saturating_sub(2) / 2)
}

/// The trimmed mean of sorted values.
fn trimmed(sorted: &[f64], share: f64) -> Trimmed {
    let n = sorted.len();
    let left_out = cut(n, share);
    let kept = &sorted[left_out..n - left_out];
    let (Some(lowest), Some(highest)) = (kept.first(), kept.last()) else {
        return Trimmed { mean: f64::NAN, variance: 0.0 };
    };
    let (sum, squares) = sums(kept);
    let (count, cut) = (kept.len() as f64, left_out as f64);
    // Winsorised: what was left out counts as the nearest value that was kept.
    let all = sum + cut * (lowest + highest);
    let all_squares = squares + cut * (lowest * lowest + highest * highest);
    let deviation = (all_squares - all * all / n as f64).max(0.0);
    Trimmed { mean: sum / count, variance: deviation / (count * (count - 1.0).max(1.0)) }
}

/// The sum of the values, and that of their squares. Four sums each, since a sum waits for the one before: a report of sixty
/// variants has millions of resamples.
fn sums(values: &[f64]) -> (f64, f64) {
    let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
    let mut fours = values.chunks_exact(4);
    for four in fours.by_ref() {
        for lane in 0..4 {
            sums[lane] += four[lane];
            squares[lane] += four[lane] * four[lane];
        }
    }
    for value in fours.remainder() {
        sums[0] += value;
        squares[0] += value * value;
    }
    (sums.iter().sum(), squares.iter().sum())
}

/// The sorted values that occur `counts[i]` times each. Each is written four times and then overwritten by the next, without
/// a branch that depends on its count, for most counts of a resample are 0 to 4.
fn drawn(sorted: &[f64], counts: &[u32]) -> Vec<f64> {
    const AT_ONCE: usize = 4;
    let n: usize = counts.iter().map(|&count| count as usize).sum();
    let mut drawn = vec![0.0; n + AT_ONCE];
    let mut end = 0;
    for (&value, &count) in sorted.iter().zip(counts) {
        let count = count as usize;
        drawn[end..end + AT_ONCE].copy_from_slice(&[value; AT_ONCE]);
        if count > AT_ONCE {
            drawn[end..end + count].fill(value);
        }
        end += count;
    }
    drawn.truncate(n);
    drawn
}

/// The adaptive trimmed mean of a sorted multiset that holds `sorted[i]` `counts[i]` times. Values should lie near 0
/// (differences, or centred), since squares are summed.
pub fn adaptive(sorted: &[f64], counts: &[u32]) -> f64 {
    let drawn = drawn(sorted, counts);
    let light = trimmed(&drawn, LIGHT);
    let heavy = trimmed(&drawn, HEAVY);
    if light.variance <= 0.0 {
        return light.mean;
    }
    let weight = (heavy.variance / light.variance).min(1.0);
    weight * light.mean + (1.0 - weight) * heavy.mean
}

/// The plain trimmed mean, with `share` of the values left out on either side (rounded down).
pub fn trimmed_mean(sorted: &[f64], share: f64) -> f64 {
    let cut = ((share * sorted.len() as f64 + 1e-9) as usize).min(sorted.len().saturating_sub(1) / 2);
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive_of(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        adaptive(&sorted, &vec![1; sorted.len()])
    }

    #[test]
    fn a_trimmed_mean_and_its_standard_error_follow_tukey_and_mclaughlin() {
        // Ten values, two off either side: 3..8 are left, and the ends count as 3 and 8 three times each.
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = trimmed(&sorted, 0.2);
        assert_eq!(found.mean, 5.5);
        // Winsorised squares about 5.5: 2 × (3 × 2.5² + 1.5² + 0.5²) = 42.5; over h (h − 1) = 30.
        assert!((found.variance - 42.5 / 30.0).abs() < 1e-12);
    }

    #[test]
    fn a_count_equals_as_many_equal_values() {
        let counted = adaptive(&[-2.0, 0.5, 1.0, 4.0], &[3, 2, 0, 5]);
        let spelled = adaptive_of(&[-2.0, -2.0, -2.0, 0.5, 0.5, 4.0, 4.0, 4.0, 4.0, 4.0]);
        assert_eq!(counted, spelled);
    }

    #[test]
    fn the_light_trim_decides_without_outliers() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        // Skew the ends that only the light trim sees.
        let mut skewed = values.clone();
        skewed[17] = 18.0;
        let light = trimmed(&skewed, LIGHT).mean;
        assert_eq!(adaptive_of(&skewed), light);
    }

    #[test]
    fn the_heavy_trim_decides_with_many_outliers() {
        let mut values: Vec<f64> = (0..30).map(|i| f64::from(i % 10) * 0.01).collect();
        for outlier in values.iter_mut().take(9) {
            *outlier += 50.0;
        }
        assert!(adaptive_of(&values) < 0.1, "{}", adaptive_of(&values));
    }

    #[test]
    fn the_middle_of_equal_values_is_the_value() {
        for n in 1..12 {
            assert_eq!(adaptive_of(&vec![0.25; n]), 0.25, "{n}");
        }
    }

    #[test]
    fn a_shift_of_every_value_shifts_the_middle() {
        let values = [0.3, -0.1, 0.2, 0.9, 0.0, 0.1, -0.4, 0.05, 0.11, 0.5, 7.0];
        let shifted: Vec<f64> = values.iter().map(|v| v + 1.0).collect();
        assert!((adaptive_of(&shifted) - adaptive_of(&values) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_plain_trimmed_mean_leaves_out_whole_values() {
        assert_eq!(trimmed_mean(&[0.0, 1.0, 2.0, 3.0, 100.0], 0.2), 2.0);
        assert_eq!(trimmed_mean(&[1.0, 2.0], 0.2), 1.5);
        assert_eq!(trimmed_mean(&[4.0], 0.2), 4.0);
    }
}
