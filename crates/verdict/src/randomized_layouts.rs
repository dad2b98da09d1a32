//! Comparisons of programs that were built in several layouts: the layout is a random factor, and rounds are nested in it.
//!
//! Two programs differ by what was changed and by where the linker happened to put their code. More rounds of one layout
//! do not tell these apart. With `K` layouts, each has an estimate of its own, and the spread of these estimates contains
//! both the effect of a layout and the noise of its rounds. So the interval is Student's around their mean, with K − 1
//! degrees of freedom (Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, section 6: the highest
//! level of repetition decides).

use std::collections::BTreeMap;

use crate::bootstrap::Interval;
use crate::distribution::student_quantile;
use crate::pairs::Pair;

/// What the layouts of a comparison say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How many layouts were measured.
    pub layouts: u32,
    /// The standard deviation of the comparison from one layout to another, without the noise of the rounds: of the
    /// logarithm of a ratio, or of a difference. 0 if the noise explains all of it.
    pub deviation: f64,
    /// The share of the squared width of the interval that more rounds of the same layouts would not remove, 0 to 1.
    pub lasting: f64,
}

/// The pairs of each layout; none if some pair has no layout.
pub(crate) fn by_layout(pairs: &[Pair]) -> Option<Vec<Vec<Pair>>> {
    let mut groups: BTreeMap<u32, Vec<Pair>> = BTreeMap::new();
    for pair in pairs {
        groups.entry(pair.layout?).or_default().push(*pair);
    }
    Some(groups.into_values().collect())
}

/// The interval around the mean of the layouts' estimates. `location` estimates one layout; `rounds` has a value for each of
/// its rounds, whose spread is the noise. At least two layouts.
pub(crate) fn across(
    groups: &[Vec<Pair>],
    confidence: f64,
    location: impl Fn(&[Pair]) -> f64,
    rounds: impl Fn(&[Pair]) -> Vec<f64>,
) -> (Interval, Spread) {
    let estimates: Vec<f64> = groups.iter().map(|group| location(group)).collect();
    let count = groups.len() as f64;
    let (estimate, between) = mean_and_variance(&estimates);
    // The noise is the same in every layout, so that its variance is pooled.
    let (squares, freedom, inverse) =
        groups.iter().fold((0.0, 0.0, 0.0), |(squares, freedom, inverse), group| {
            let values = rounds(group);
            let n = values.len() as f64;
            (squares + mean_and_variance(&values).1 * (n - 1.0), freedom + n - 1.0, inverse + 1.0 / n)
        });
    let within = if freedom > 0.0 { squares / freedom * inverse / count } else { 0.0 };
    let of_layouts = (between - within).max(0.0);
    let reach = student_quantile(0.5 + 0.5 * confidence, count - 1.0) * (between / count).sqrt();
    let interval = Interval { estimate, low: estimate - reach, high: estimate + reach };
    let lasting = if between > 0.0 { of_layouts / between } else { 0.0 };
    (interval, Spread { layouts: groups.len() as u32, deviation: of_layouts.sqrt(), lasting })
}

/// The mean, and the variance of one value; 0 of a single one.
fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, if n > 1.0 { squares / (n - 1.0) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn normal(rng: &mut Rng) -> f64 {
        (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
    }

    /// Groups of pairs whose variant has an effect of its layout, and whose baseline has none.
    fn groups(layouts: usize, rounds: usize, of_layout: f64, of_round: f64, rng: &mut Rng) -> Vec<Vec<Pair>> {
        (0..layouts)
            .map(|layout| {
                let own = of_layout * normal(rng);
                let pair = |rng: &mut Rng| Pair {
                    variant: own + of_round * normal(rng),
                    baseline: 0.0,
                    control: None,
                    layout: Some(layout as u32),
                };
                (0..rounds).map(|_| pair(rng)).collect()
            })
            .collect()
    }

    fn values(pairs: &[Pair]) -> Vec<f64> {
        pairs.iter().map(|pair| pair.variant - pair.baseline).collect()
    }

    fn mean(pairs: &[Pair]) -> f64 {
        values(pairs).iter().sum::<f64>() / pairs.len() as f64
    }

    #[test]
    fn the_interval_is_students_over_the_means_of_the_layouts() {
        let group = |layout, variants: [f64; 2]| {
            let pair = |variant| Pair { variant, baseline: 0.0, control: None, layout: Some(layout) };
            variants.map(pair).to_vec()
        };
        let groups = [group(1, [0.9, 1.1]), group(2, [1.9, 2.1]), group(3, [2.9, 3.1])];
        let (found, spread) = across(&groups, 0.95, mean, values);
        // The means are 1, 2, 3: 2 ± 4.303 / √3.
        assert!((found.estimate - 2.0).abs() < 1e-12 && (found.high - 4.484).abs() < 0.001, "{found:?}");
        // Of a variance of 1, two rounds with a variance of 0.02 explain 0.01.
        assert!((spread.deviation - 0.99_f64.sqrt()).abs() < 1e-9, "{spread:?}");
        assert!((spread.lasting - 0.99).abs() < 1e-9 && spread.layouts == 3);
    }

    #[test]
    fn coverage_is_as_stated_with_and_without_an_effect_of_the_layout() {
        const CAMPAIGNS: usize = 4000;
        for (layouts, of_layout) in [(4, 0.0), (4, 0.02), (8, 0.0), (8, 0.003), (8, 0.02)] {
            let mut rng = Rng::named(1, &["layouts", &layouts.to_string(), &of_layout.to_string()]);
            let held = (0..CAMPAIGNS).filter(|_| {
                let groups = groups(layouts, 30 / layouts, of_layout, 0.01, &mut rng);
                let (interval, _) = across(&groups, 0.95, mean, values);
                interval.low <= 0.0 && interval.high >= 0.0
            });
            let share = held.count() as f64 / CAMPAIGNS as f64;
            // The standard error is 0.34 points.
            assert!((0.938..0.962).contains(&share), "{layouts} layouts, {of_layout}: {share}");
        }
    }

    #[test]
    fn the_spread_is_that_of_the_layouts_without_the_noise_of_rounds() {
        let mut rng = Rng::new(3);
        let wide = groups(400, 4, 0.02, 0.01, &mut rng);
        let (_, spread) = across(&wide, 0.95, mean, values);
        assert!((spread.deviation - 0.02).abs() < 0.002, "{spread:?}");
        let none = groups(400, 4, 0.0, 0.01, &mut rng);
        assert!(across(&none, 0.95, mean, values).1.deviation < 0.002);
    }

    #[test]
    fn pairs_of_rounds_without_a_layout_have_no_groups() {
        let pair = |layout| Pair { variant: 1.0, baseline: 1.0, control: None, layout };
        assert_eq!(by_layout(&[pair(Some(2)), pair(Some(1)), pair(Some(2))]).unwrap().len(), 2);
        assert!(by_layout(&[pair(Some(1)), pair(None)]).is_none());
    }
}
