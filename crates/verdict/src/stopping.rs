//! The stopping rule: when a campaign has enough rounds.
//!
//! A rule that stops as soon as an interval is narrow enough favours samples whose spread is small by chance: their
//! intervals are too narrow, and coverage falls. Chow & Robbins (1965) show that the loss vanishes as the target gets
//! narrow. Three rules, measured in `examples/coverage.rs`, avoid it before that:
//!
//! - no interim look before [`FIRST_LOOK`] rounds,
//! - few looks: the rounds grow by a quarter from look to look, and
//! - a stop only when the target is met at two looks in a row, so that the second, a fifth of whose rounds are new,
//!   confirms the first: the idea of Stein's second stage (1945).
//!
//! The reported interval is that of all rounds.

use std::fmt;
use std::time::Duration;

use widthwise_experiment::model::Stopping;

/// The rounds before the first interim look of `--precision`.
pub const FIRST_LOOK: u32 = 10;

/// The state at an interim look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InterimLook {
    /// Timed rounds that are complete.
    pub rounds: u32,
    /// How long the rounds have taken.
    pub elapsed: Duration,
    /// Half the width of the widest deciding interval, as a fraction ([`crate::half_width`]). It is ignored before
    /// `rounds` has reached [`StoppingRule::next_look`].
    pub widest: Option<f64>,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Another round.
    Continue {
        /// The next look ([`StoppingRule::next_look`]).
        next_look: u32,
    },
    /// No more rounds.
    Stop(Why),
}

/// Why a campaign stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// The rounds asked for are done.
    Rounds,
    /// The intervals are as narrow as asked for.
    Precision,
    /// The time allowed is spent.
    MaxTime,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Rounds => "all rounds asked for are done",
            Why::Precision => "the intervals are as narrow as asked for",
            Why::MaxTime => "the time allowed is spent",
        })
    }
}

/// Decides after every round whether another follows.
#[derive(Debug, Clone, PartialEq)]
pub struct StoppingRule {
    stopping: Stopping,
    /// The next step of the ladder of looks.
    step: u32,
    /// Whether the last look met the target.
    met: bool,
}

impl StoppingRule {
    /// The rule before the first round.
    pub fn new(stopping: &Stopping) -> StoppingRule {
        StoppingRule::resumed(stopping, 0)
    }

    /// The rule after so many rounds of earlier sessions: a resumed campaign continues at the next look of the same ladder
    /// and needs two new looks.
    pub fn resumed(stopping: &Stopping, rounds: u32) -> StoppingRule {
        let mut step = if stopping.precision.is_some() { FIRST_LOOK } else { u32::MAX };
        while step <= rounds {
            step = after(step);
        }
        StoppingRule { stopping: *stopping, step, met: false }
    }

    /// The number of rounds at the next decision, unless the time limit comes first: the next interim look or the last
    /// round; `u32::MAX` if there is neither.
    pub fn next_look(&self) -> u32 {
        self.step.min(self.stopping.rounds.unwrap_or(u32::MAX))
    }

    /// Whether another round follows, given the state after this one.
    pub fn decide(&mut self, look: InterimLook) -> Decision {
        if let Some(precision) = self.stopping.precision {
            if look.rounds >= self.step {
                let met = look.widest.is_some_and(|widest| widest <= precision);
                if met && self.met {
                    return Decision::Stop(Why::Precision);
                }
                self.met = met;
                while self.step <= look.rounds {
                    self.step = after(self.step);
                }
            }
        }
        if self.stopping.rounds.is_some_and(|rounds| look.rounds >= rounds) {
            return Decision::Stop(Why::Rounds);
        }
        if self.stopping.max_time.is_some_and(|max_time| look.elapsed >= max_time) {
            return Decision::Stop(Why::MaxTime);
        }
        Decision::Continue { next_look: self.next_look() }
    }
}

/// The look after the one at so many rounds: a quarter more, rounded up.
fn after(rounds: u32) -> u32 {
    rounds.saturating_add(rounds.div_ceil(4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rounds: u32, widest: f64) -> InterimLook {
        InterimLook { rounds, elapsed: Duration::from_secs(u64::from(rounds)), widest: Some(widest) }
    }

    fn precision(target: f64) -> Stopping {
        Stopping { precision: Some(target), ..Stopping::default() }
    }

    #[test]
    fn looks_begin_at_ten_rounds_and_grow_by_a_quarter() {
        let mut stopping_rule = StoppingRule::new(&precision(0.01));
        let mut looks = Vec::new();
        for rounds in 1..=70 {
            if rounds == stopping_rule.next_look() {
                looks.push(rounds);
            }
            assert!(matches!(stopping_rule.decide(look(rounds, 0.5)), Decision::Continue { .. }));
        }
        assert_eq!(looks, [10, 13, 17, 22, 28, 35, 44, 55, 69]);
    }

    #[test]
    fn a_target_met_once_must_be_met_again_at_the_next_look() {
        let mut stopping_rule = StoppingRule::new(&precision(0.01));
        assert_eq!(stopping_rule.decide(look(10, 0.009)), Decision::Continue { next_look: 13 });
        assert_eq!(stopping_rule.decide(look(11, 0.001)), Decision::Continue { next_look: 13 });
        assert_eq!(stopping_rule.decide(look(12, 0.001)), Decision::Continue { next_look: 13 });
        assert_eq!(stopping_rule.decide(look(13, 0.010)), Decision::Stop(Why::Precision));
    }

    #[test]
    fn a_target_missed_at_the_second_look_starts_over() {
        let mut stopping_rule = StoppingRule::new(&precision(0.01));
        for (rounds, widest) in [(10, 0.009), (13, 0.011), (17, 0.009)] {
            assert!(
                matches!(stopping_rule.decide(look(rounds, widest)), Decision::Continue { .. }),
                "{rounds}"
            );
        }
        assert_eq!(stopping_rule.decide(look(22, 0.008)), Decision::Stop(Why::Precision));
    }

    #[test]
    fn the_target_is_not_looked_at_before_ten_rounds() {
        let mut stopping_rule = StoppingRule::new(&precision(0.01));
        for rounds in 1..10 {
            assert_eq!(stopping_rule.decide(look(rounds, 0.0)), Decision::Continue { next_look: 10 });
        }
    }

    #[test]
    fn a_missing_interval_does_not_meet_the_target() {
        let mut stopping_rule = StoppingRule::new(&precision(0.01));
        for rounds in [10, 13, 17] {
            let blind = InterimLook { widest: None, ..look(rounds, 0.0) };
            assert!(matches!(stopping_rule.decide(blind), Decision::Continue { .. }));
        }
    }

    #[test]
    fn the_first_condition_that_holds_stops() {
        let both =
            Stopping { rounds: Some(20), precision: Some(0.01), max_time: Some(Duration::from_secs(15)) };
        assert_eq!(StoppingRule::new(&both).decide(look(15, 0.5)), Decision::Stop(Why::MaxTime));
        assert_eq!(StoppingRule::new(&both).decide(look(14, 0.5)), Decision::Continue { next_look: 17 });
        let few = Stopping { rounds: Some(3), ..both };
        assert_eq!(StoppingRule::new(&few).next_look(), 3);
        assert_eq!(StoppingRule::new(&few).decide(look(3, 0.5)), Decision::Stop(Why::Rounds));
    }

    #[test]
    fn without_a_condition_it_never_stops_or_looks() {
        let mut stopping_rule = StoppingRule::new(&Stopping::default());
        assert_eq!(stopping_rule.next_look(), u32::MAX);
        assert_eq!(stopping_rule.decide(look(100_000, 0.0)), Decision::Continue { next_look: u32::MAX });
    }

    #[test]
    fn a_resumed_campaign_continues_the_same_ladder() {
        for (rounds, looks) in [(0, [10, 13]), (9, [10, 13]), (10, [13, 17]), (12, [13, 17]), (30, [35, 44])]
        {
            let mut stopping_rule = StoppingRule::resumed(&precision(0.01), rounds);
            for round in rounds + 1..looks[0] {
                let next = Decision::Continue { next_look: looks[0] };
                assert_eq!(stopping_rule.decide(look(round, 0.001)), next, "{rounds} {round}");
            }
            let next = Decision::Continue { next_look: looks[1] };
            assert_eq!(stopping_rule.decide(look(looks[0], 0.001)), next);
            assert_eq!(stopping_rule.decide(look(looks[1], 0.001)), Decision::Stop(Why::Precision));
        }
    }
}
