//! The detection floor: the smallest difference that a campaign can tell from none.

use crate::bootstrap::Interval;
use crate::effect::Scale;

/// The detection floor of an A/A comparison: √(reach² + estimate²). The reach is the distance from the estimate to the
/// farther end of the interval. The true difference of this pair is 0, so an estimate inside its reach is mostly
/// chance: the far end of the interval would count it twice and hide real differences. Without the estimate the floor
/// would ignore states that outlive a run: see `docs/verdicts.md`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Floor {
    departure: f64,
    scale: Scale,
}

impl Floor {
    /// The floor that this interval of the A/A control sets.
    pub fn of(control: Interval, scale: Scale) -> Floor {
        let Interval { estimate, low, high } = control;
        let reach = (estimate - low).max(high - estimate);
        Floor { departure: scale.departure(reach.hypot(estimate)), scale }
    }

    /// The floor as a departure on the scale of another comparison: where only the variant counted 0 in some run, the
    /// A/A control has a ratio, and the variant has none.
    pub fn on(self, scale: Scale) -> f64 {
        match (self.scale, scale) {
            (Scale::Log, Scale::Difference { baseline }) => self.departure * baseline,
            (Scale::Difference { baseline }, Scale::Log) => self.departure / baseline,
            _ => self.departure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_keeps_its_meaning_on_another_scale() {
        let ratio = Floor::of(Interval { estimate: 0.0, low: -0.02, high: 0.02 }, Scale::Log);
        assert!((ratio.on(Scale::Difference { baseline: 50.0 }) - 50.0 * 0.02_f64.exp_m1()).abs() < 1e-12);
        let amount =
            Floor::of(Interval { estimate: 3.0, low: -1.0, high: 7.0 }, Scale::Difference { baseline: 50.0 });
        assert_eq!((amount.on(Scale::Difference { baseline: 8.0 }), amount.on(Scale::Log)), (5.0, 0.1));
    }
}
