//! What more rounds would bring: how small a difference is found, and how many rounds would decide.
//!
//! Both are projections. The half-width and the floor of `n` rounds shrink by √(n/N) in `N` rounds, apart from Student's
//! quantiles and from what the layouts of the programs contribute, which only more layouts reduce. The estimate is taken as it is, so that a number of rounds is a plan and no promise.

use crate::bootstrap::Interval;
use crate::distribution::{normal_quantile, student_quantile};
use crate::effect::Scale;
use crate::floor::Floor;
use crate::randomized_layouts::Spread;
use crate::Verdict;

/// More rounds than this are not suggested.
const MOST_ROUNDS: f64 = 10_000.0;
/// The share of campaigns in which a difference of [`Projection::detectable`] is found.
pub const POWER: f64 = 0.9;

/// The smallest difference that a campaign of so many rounds finds in nine of ten cases, as a fraction: what this verdict
/// has, projected. Absent where there is no ratio.
pub fn detectable_after(verdict: &Verdict, rounds: u32) -> Option<f64> {
    let now = verdict.detectable.filter(|_| verdict.ratio.is_some() && rounds > 0)?;
    let lasting = verdict.spread.map_or(0.0, |spread| spread.lasting);
    Some(now * shrinks(lasting, f64::from(verdict.pairs), f64::from(rounds)))
}

/// One comparison after some rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projection {
    /// The rounds that it has.
    pub rounds: u32,
    pub interval: Interval,
    pub scale: Scale,
    pub floor: Floor,
    /// The inverse of the comparison's share of the risk of a false difference: at least 1.
    pub multiplicity: f64,
    pub confidence: f64,
    pub margin: f64,
    /// Where programs were built in several layouts: of the comparison, and of the A/A control.
    pub spread: Option<Spread>,
    pub floor_spread: Option<Spread>,
    /// An error of either sign that no round removes, as a fraction of the baseline's figure; only of a ratio.
    pub error: f64,
}

/// The factor by which widths shrink from so many rounds to so many, if more rounds of the same layouts do not remove this
/// share of their square.
fn shrinks(lasting: f64, now: f64, rounds: f64) -> f64 {
    (lasting + (1.0 - lasting) * now / rounds).sqrt()
}

impl Projection {
    /// The greater number of rounds after which, if the estimate stays, there is a difference or an equivalence; to two
    /// digits, rounded up. Absent beyond 10 000.
    pub fn rounds_to_decide(self) -> Option<u32> {
        let mut rounds = f64::from(self.rounds) + 1.0;
        while rounds <= MOST_ROUNDS {
            if self.is_decided(rounds) {
                let unit = 10_f64.powf((rounds.log10().floor() - 1.0).max(0.0));
                return Some(((rounds / unit).ceil() * unit) as u32);
            }
            rounds = (rounds * 1.02).max(rounds + 1.0);
        }
        None
    }

    /// The smallest difference that is found in nine of ten campaigns of so many rounds: a fraction of the baseline's
    /// figure, or an amount.
    pub fn detectable(self, rounds: u32) -> f64 {
        let rounds = f64::from(rounds.max(2));
        let half = self.half_width(rounds);
        let error = half / self.quantile(1.0, rounds);
        let least = self.floor_of(rounds).max(half * self.stricter(rounds)) + normal_quantile(POWER) * error;
        self.scale.departure(least) + self.error
    }

    fn is_decided(self, rounds: f64) -> bool {
        let estimate = self.interval.estimate;
        let half = self.half_width(rounds);
        // Of the two signs, the error that is farther on the log scale.
        let lasting = -(1.0 - self.error.min(1.0)).ln();
        let is_different = estimate.abs()
            > (half * self.stricter(rounds)).max(self.floor_of(rounds)) + lasting
            && half > 0.0;
        let half = half + lasting;
        let projected = Interval { estimate, low: estimate - half, high: estimate + half };
        is_different || self.scale.is_within(projected, self.margin)
    }

    /// How much farther than its interval a difference must reach to be significant among all comparisons.
    fn stricter(self, rounds: f64) -> f64 {
        self.quantile(self.multiplicity.max(1.0), rounds) / self.quantile(1.0, rounds)
    }

    fn quantile(self, multiplicity: f64, rounds: f64) -> f64 {
        let units = self.spread.map_or(rounds, |spread| f64::from(spread.layouts));
        student_quantile(1.0 - 0.5 * (1.0 - self.confidence) / multiplicity, units - 1.0)
    }

    /// The factor by which widths shrink.
    fn shrinks(self, spread: Option<Spread>, rounds: f64) -> f64 {
        let now = f64::from(self.rounds.max(2));
        let lasting = spread.map_or(0.0, |spread| spread.lasting);
        shrinks(lasting, now, rounds) * self.quantile(1.0, rounds) / self.quantile(1.0, now)
    }

    fn half_width(self, rounds: f64) -> f64 {
        0.5 * (self.interval.high - self.interval.low) * self.shrinks(self.spread, rounds)
    }

    fn floor_of(self, rounds: f64) -> f64 {
        let floor = self.floor.on(self.scale);
        let floor = match self.scale {
            Scale::Log => floor.ln_1p(),
            Scale::Difference { .. } => floor,
        };
        floor * self.shrinks(self.floor_spread, rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projection(estimate: f64, half: f64, floor: f64) -> Projection {
        let interval = Interval { estimate, low: estimate - half, high: estimate + half };
        let control = Interval { estimate: 0.0, low: -floor, high: floor };
        Projection {
            rounds: 30,
            interval,
            scale: Scale::Log,
            floor: Floor::of(control, Scale::Log),
            multiplicity: 1.0,
            confidence: 0.95,
            margin: 0.01,
            spread: None,
            floor_spread: None,
            error: 0.0,
        }
    }

    #[test]
    fn an_error_that_lasts_needs_more_rounds_or_leaves_the_question_open() {
        let with = |error| Projection { error, ..projection(0.02, 0.04, 0.0) };
        let (none, some) = (with(0.0).rounds_to_decide().unwrap(), with(0.01).rounds_to_decide().unwrap());
        // Half of the difference is left for the interval: four times the rounds.
        assert!((3.5..=4.5).contains(&(f64::from(some) / f64::from(none))), "{none} {some}");
        assert_eq!(with(0.03).rounds_to_decide(), None);
        assert!((with(0.03).detectable(3000) - with(0.0).detectable(3000) - 0.03).abs() < 1e-12);
    }

    #[test]
    fn a_difference_of_half_the_interval_needs_four_times_the_rounds() {
        // 1 % seen, ±2 %: the half-width is 1 % at 4 · 30 rounds, less a little for Student's quantile.
        let rounds = projection(0.02, 0.04, 0.0).rounds_to_decide().unwrap();
        assert!((112..=120).contains(&rounds), "{rounds}");
    }

    #[test]
    fn an_estimate_of_no_difference_is_decided_once_the_interval_is_within_the_margin() {
        let rounds = projection(0.0, 0.02, 0.02).rounds_to_decide().unwrap();
        assert!((112..=124).contains(&rounds), "{rounds}");
        // At the margin's very edge neither side is reached by any number of rounds that can be made.
        let edge = Projection { margin: 0.01, ..projection(0.0, 4.0, 4.0) };
        assert_eq!(edge.rounds_to_decide(), None);
    }

    #[test]
    fn more_comparisons_and_a_higher_floor_need_more_rounds() {
        let one = projection(0.02, 0.04, 0.0);
        let many = Projection { multiplicity: 40.0, ..one };
        assert!(many.rounds_to_decide() > one.rounds_to_decide());
        assert!(projection(0.02, 0.04, 0.08).rounds_to_decide() > one.rounds_to_decide());
        assert!(many.detectable(30) > one.detectable(30));
    }

    #[test]
    fn what_is_found_in_nine_of_ten_campaigns_halves_with_four_times_the_rounds() {
        let now = projection(0.0, 0.01, 0.005);
        // 1 % and 1.28 standard errors of 0.49 %.
        assert!((now.detectable(30) - 0.0164).abs() < 0.0003, "{}", now.detectable(30));
        let ratio = now.detectable(30) / now.detectable(120);
        assert!((1.95..2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_layouts_contribute_is_not_reduced_by_rounds() {
        let spread = Spread { layouts: 8, deviation: 0.01, lasting: 1.0 };
        let all =
            Projection { spread: Some(spread), floor_spread: Some(spread), ..projection(0.02, 0.04, 0.01) };
        assert_eq!(all.rounds_to_decide(), None);
        assert!((all.detectable(30) - all.detectable(3000)).abs() < 1e-12);
        let half = Some(Spread { lasting: 0.5, ..spread });
        let some = Projection { spread: half, floor_spread: half, ..all };
        assert!((some.detectable(3000) / some.detectable(30) - 0.5_f64.sqrt()).abs() < 0.02);
    }
}
