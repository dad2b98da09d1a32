//! Comparison of two variants with a few recordings each.
//!
//! Recordings are not paired, and there are few of them: the interval is Student's, of the difference of two means with
//! one variance. It is wider than those of timed rounds on purpose, since one page compares several quantities.

use crate::distribution::student_quantile;
use crate::Word;

/// The confidence of one comparison's interval.
pub const CONFIDENCE: f64 = 0.99999;
/// With fewer recordings of a variant their spread is unknown.
pub const FEWEST_RECORDINGS: usize = 2;

/// One quantity of two variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Mean of the second variant over mean of the first; absent where the first has none.
    pub ratio: Option<f64>,
    /// The lower end of the interval around `ratio`.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The smallest difference that exceeds the spread of recordings of one variant: a share of the first variant's
    /// mean.
    pub floor: Option<f64>,
    /// The outcome.
    pub word: Word,
    /// Why there is no outcome, or why a clear difference is not called `lower` or `higher`.
    pub reason: Option<String>,
}

/// Thresholds of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Two quantities are equal if their ratio is within this of 1.
    pub equal_within: f64,
    /// The smallest difference that counts as one, in the quantity's unit.
    pub resolution: f64,
    /// The number of comparisons made at once.
    pub comparisons: usize,
}

impl Difference {
    /// A withheld comparison without figures, for that reason.
    pub fn withheld(reason: &str) -> Difference {
        Difference {
            ratio: None,
            low: None,
            high: None,
            floor: None,
            word: Word::Withheld,
            reason: Some(reason.to_owned()),
        }
    }

    /// Whether the second is clearly below or above the first.
    pub fn is_clear(&self) -> bool {
        matches!(self.word, Word::Lower | Word::Higher)
    }
}

/// Compares the recordings of two variants, in one quantity that is not negative.
pub fn difference(a: &[f64], b: &[f64], scale: Scale) -> Difference {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| !value.is_finite()) {
        return Difference { word: Word::NoData, ..Difference::withheld("it was not recorded") };
    }
    let (of_a, of_b) = (mean(a), mean(b));
    let ratio = |difference: f64| (of_a > 0.0).then(|| 1.0 + difference / of_a);
    let found = of_b - of_a;
    if a.len().min(b.len()) < FEWEST_RECORDINGS {
        let reason = "the spread of a variant with one recording is unknown";
        return Difference { ratio: ratio(found), ..Difference::withheld(reason) };
    }
    let half = half_width(a, b, 0.0, (1.0 - CONFIDENCE) / scale.comparisons.max(1) as f64);
    let (low, high) = (found - half, found + half);
    let margin = scale.equal_within * of_a;
    let (word, reason) = if (low > 0.0 || high < 0.0) && found.abs() >= scale.resolution {
        (if found < 0.0 { Word::Lower } else { Word::Higher }, None)
    } else if low >= -margin && high <= margin {
        (Word::NoDifference, None)
    } else if low > 0.0 || high < 0.0 {
        let reason = format!("it is smaller than {} bytes, as the lengths of names may be", scale.resolution);
        (Word::Inconclusive, Some(reason))
    } else {
        (Word::Inconclusive, None)
    };
    let floor = (of_a > 0.0).then(|| half / of_a);
    Difference { ratio: ratio(found), low: ratio(low), high: ratio(high), floor, word, reason }
}

/// How a difference of two variants compares with the spread of one variant's recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separation {
    /// The spread is unknown: each variant has one recording.
    Unknown,
    /// Recordings of one variant may differ as much.
    Within,
    /// Recordings of one variant rarely differ as much: the interval of confidence [`BEYOND`] is without 0.
    Beyond,
    /// The interval of confidence [`CLEAR`] is without 0, and both variants were recorded repeatedly.
    Clear,
}

/// The confidence of [`Separation::Beyond`].
pub const BEYOND: f64 = 0.99;
/// The confidence of [`Separation::Clear`].
pub const CLEAR: f64 = 0.999;

/// Compares a difference of two variants with the spread of their recordings.
///
/// Values are multiples of `step`, in their unit: two equal ones may be different before they were rounded, so that the
/// variance is at least that of the rounding. A difference below `resolution` is within the spread.
pub fn separation(a: &[f64], b: &[f64], step: f64, resolution: f64) -> Separation {
    if a.is_empty() || b.is_empty() {
        return Separation::Unknown;
    }
    let found = (mean(b) - mean(a)).abs();
    if found < resolution {
        return Separation::Within;
    }
    if a.len() + b.len() == 2 {
        return Separation::Unknown;
    }
    // The variance of a uniform distribution as wide as the step.
    let least = step * step / 12.0;
    let is_outside = |confidence: f64| found > half_width(a, b, least, 1.0 - confidence);
    match (is_outside(BEYOND), is_outside(CLEAR) && a.len().min(b.len()) >= FEWEST_RECORDINGS) {
        (false, _) => Separation::Within,
        (true, false) => Separation::Beyond,
        (true, true) => Separation::Clear,
    }
}

/// Half of the interval around the difference of the means. The variance is at least `least`.
fn half_width(a: &[f64], b: &[f64], least: f64, risk: f64) -> f64 {
    let (of_a, of_b) = (a.len() as f64, b.len() as f64);
    let freedom = of_a + of_b - 2.0;
    let variance = ((squares(a) + squares(b)) / freedom).max(least);
    if variance == 0.0 {
        return 0.0;
    }
    student_quantile(1.0 - risk / 2.0, freedom) * (variance * (1.0 / of_a + 1.0 / of_b)).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Squared distances from the mean, added up. Exactly 0 for equal values, without rounding errors.
fn squares(values: &[f64]) -> f64 {
    if values.iter().all(|value| *value == values[0]) {
        return 0.0;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const BYTES: Scale = Scale { equal_within: 0.01, resolution: 1024.0, comparisons: 1 };

    #[test]
    fn values_that_are_equal_in_every_recording_are_compared_exactly() {
        let lower = difference(&[100e3; 2], &[90e3; 2], BYTES);
        assert_eq!((lower.word, lower.ratio, lower.floor), (Word::Lower, Some(0.9), Some(0.0)));
        assert_eq!(difference(&[100e3; 2], &[100e3; 2], BYTES).word, Word::NoDifference);
    }

    #[test]
    fn a_difference_inside_the_spread_of_recordings_is_inconclusive() {
        let found = difference(&[100e3, 110e3], &[90e3, 99e3], BYTES);
        assert_eq!(found.word, Word::Inconclusive);
        assert!(found.floor.unwrap() > 0.1, "{found:?}");
    }

    #[test]
    fn a_difference_below_the_resolution_is_not_called_one() {
        assert_eq!(difference(&[100e3; 2], &[100_040.0; 2], BYTES).word, Word::NoDifference);
        let small = difference(&[100.0; 2], &[140.0; 2], BYTES);
        assert_eq!(small.word, Word::Inconclusive);
        assert!(small.reason.unwrap().contains("names"));
    }

    #[test]
    fn a_comparison_with_one_recording_is_withheld() {
        let found = difference(&[100e3], &[50e3; 2], BYTES);
        assert_eq!((found.word, found.ratio, found.floor), (Word::Withheld, Some(0.5), None));
        assert_eq!(difference(&[], &[50e3], BYTES).word, Word::NoData);
        assert_eq!(difference(&[0.0; 2], &[5e3; 2], BYTES).ratio, None);
        assert_eq!(difference(&[0.0; 2], &[5e3; 2], BYTES).word, Word::Higher);
    }

    #[test]
    fn a_difference_is_clear_only_beyond_the_spread_of_repeated_recordings() {
        let of = |a: &[f64], b: &[f64]| separation(a, b, 4096.0, 4096.0);
        assert_eq!(of(&[1e6], &[5e5]), Separation::Unknown);
        assert_eq!(of(&[1e6], &[1e6 + 100.0]), Separation::Within);
        assert_eq!(of(&[1e6, 1.1e6], &[9e5, 1.05e6]), Separation::Within);
        // Equal to the page, which is no proof that they are equal.
        assert_eq!(of(&[1e6; 2], &[1e6 + 8192.0; 2]), Separation::Within);
        assert_eq!(of(&[1e6; 2], &[1e6 + 3e4; 2]), Separation::Beyond);
        assert_eq!(of(&[1e6; 2], &[2e6; 2]), Separation::Clear);
        // One variant was recorded once: never clear.
        assert_eq!(of(&[1e6; 3], &[9e6]), Separation::Beyond);
        assert_eq!(separation(&[100.0; 2], &[96.0; 2], 0.0, 0.0), Separation::Clear);
    }

    #[test]
    fn pages_that_differ_by_chance_are_within_the_spread() {
        let mut rng = Rng::new(11);
        for recordings in [1, 2, 3, 6] {
            let mut counts = [0; 2];
            for _ in 0..20_000 {
                // Blocks of 64 KiB, as the kernel maps pages of a file around a fault.
                let mut side = || (0..recordings).map(|_| (rng.below(5) << 16) as f64).collect::<Vec<f64>>();
                match separation(&side(), &side(), 65536.0, 65536.0) {
                    Separation::Clear => counts[1] += 1,
                    Separation::Beyond => counts[0] += 1,
                    _ => {}
                }
            }
            assert!(counts[0] < 1000 && counts[1] < 100, "{counts:?} of 20 000 with {recordings} recordings");
        }
    }

    #[test]
    fn false_alarms_between_recordings_of_one_variant_are_rare() {
        let mut rng = Rng::new(7);
        for recordings in [2, 3, 6] {
            let clear = (0..20_000)
                .filter(|_| {
                    let mut side =
                        || (0..recordings).map(|_| 1e6 + rng.below(100_000) as f64).collect::<Vec<f64>>();
                    let (a, b) = (side(), side());
                    difference(&a, &b, BYTES).is_clear()
                })
                .count();
            assert!(clear < 100, "{clear} of 20 000 with {recordings} recordings");
        }
    }
}
