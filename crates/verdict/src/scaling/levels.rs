//! The level of each step over all rounds, without the effect of each round.

use crate::autocorrelation::inflation;
use crate::distribution::quantile;
use crate::trimmed_mean::adaptive;

/// Values by round and step, taken apart as `value = level of the step + effect of the round + deviation`.
///
/// The effect of a slow round is subtracted, as in a paired comparison. It is the mean, over the steps that the round
/// has, of the distance to each step's median; a missing step does not bias it. Levels, effects and deviations are then
/// averaged as paired log-ratios are, by the adaptive trimmed mean.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    /// The steps, ascending.
    pub keys: Vec<u64>,
    /// How many rounds have any value.
    pub rounds: usize,
    medians: Vec<f64>,
    deviations: Vec<Ranked>,
    effects: Ranked,
    /// How much wider serial correlation makes an interval of the differences between steps, and of the whole.
    pub widening: (f64, f64),
}

/// Values in ascending order, and the round each is of.
#[derive(Debug, Clone)]
struct Ranked {
    values: Vec<f64>,
    rounds: Vec<usize>,
}

impl Ranked {
    fn of(mut values: Vec<(f64, usize)>) -> Ranked {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (values, rounds) = values.into_iter().unzip();
        Ranked { values, rounds }
    }

    /// The middle of the resample that holds each round so often; 0 where it has none of these values, which are
    /// deviations from a median.
    fn middle(&self, counts: &[u32]) -> f64 {
        let drawn: Vec<u32> = self.rounds.iter().map(|round| counts[*round]).collect();
        let middle = adaptive(&self.values, &drawn);
        if middle.is_finite() {
            middle
        } else {
            0.0
        }
    }
}

impl Levels {
    /// Decomposes the rounds; each is a list of steps and finite values. Rounds without a value are skipped.
    pub fn of(rounds: &[Vec<(u64, f64)>]) -> Levels {
        let rounds: Vec<&Vec<(u64, f64)>> = rounds.iter().filter(|round| !round.is_empty()).collect();
        let mut keys: Vec<u64> = rounds.iter().flat_map(|round| round.iter().map(|value| value.0)).collect();
        keys.sort_unstable();
        keys.dedup();
        let medians: Vec<f64> = keys
            .iter()
            .map(|key| median(rounds.iter().flat_map(|r| r.iter()).filter(|v| v.0 == *key).map(|v| v.1)))
            .collect();
        let place = |key: u64| keys.partition_point(|other| *other < key);
        let effects: Vec<f64> = rounds
            .iter()
            .map(|round| {
                let sum: f64 = round.iter().map(|(key, value)| value - medians[place(*key)]).sum();
                sum / round.len() as f64
            })
            .collect();
        let mut deviations: Vec<Vec<(f64, usize)>> = vec![Vec::new(); keys.len()];
        for (number, round) in rounds.iter().enumerate() {
            for (key, value) in *round {
                let step = place(*key);
                deviations[step].push((value - medians[step] - effects[number], number));
            }
        }
        let of_steps: f64 = deviations
            .iter()
            .map(|step| inflation(&step.iter().map(|deviation| deviation.0).collect::<Vec<f64>>()))
            .sum();
        Levels {
            rounds: rounds.len(),
            widening: (of_steps / deviations.len().max(1) as f64, inflation(&effects)),
            medians,
            deviations: deviations.into_iter().map(Ranked::of).collect(),
            effects: Ranked::of(effects.into_iter().zip(0..).collect()),
            keys,
        }
    }

    /// The level of every step in the resample that holds each round so often.
    pub fn at(&self, counts: &[u32]) -> Vec<f64> {
        let effect = self.effects.middle(counts);
        let steps = self.medians.iter().zip(&self.deviations);
        steps.map(|(median, deviations)| median + effect + deviations.middle(counts)).collect()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_without_a_step_does_not_bias_the_levels() {
        // Steps 1 and 2 are 3 apart; round effects are large, and the slowest round has step 2 only.
        let effects = [0.0, 0.4, -0.3, 0.1, 0.2, -0.1];
        let mut rounds: Vec<Vec<(u64, f64)>> =
            effects.iter().map(|effect| vec![(1, 1.0 + effect), (2, 4.0 + effect)]).collect();
        rounds.push(vec![(2, 4.0 - 5.0)]);
        let levels = Levels::of(&rounds);
        let at = levels.at(&[1; 7]);
        assert_eq!((levels.keys.as_slice(), levels.rounds), ([1, 2].as_slice(), 7));
        assert!((at[1] - at[0] - 3.0).abs() < 0.06, "{at:?}");
    }

    #[test]
    fn a_resample_without_a_step_keeps_the_samples_level_of_it() {
        let levels = Levels::of(&[vec![(1, 5.0)], vec![(2, 7.0)]]);
        assert_eq!(levels.at(&[2, 0]), [5.0, 7.0]);
    }
}
