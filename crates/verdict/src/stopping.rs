//! When enough has been seen.

use std::fmt;
use std::time::Duration;

use widthwise_experiment::model::Stopping;

/// What is known at a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Timed rounds that are complete.
    pub rounds: u32,
    /// How long they took.
    pub elapsed: Duration,
    /// The widest half-width, as a fraction.
    pub widest: Option<f64>,
}

/// What follows from a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on, and look again after that many rounds.
    Continue {
        /// The rounds.
        next_look: u32,
    },
    /// Stop.
    Stop(Why),
}

/// Why to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// All rounds have been made.
    Rounds,
    /// The intervals are narrow enough.
    Until,
    /// The time is over.
    Budget,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Rounds => "every round was made",
            Why::Until => "every interval is narrow enough",
            Why::Budget => "the time was over",
        })
    }
}

/// Decides when to look, and whether to stop.
#[derive(Debug, Clone)]
pub struct Stopper {
    rule: Stopping,
    next: u32,
}

/// No interval of fewer rounds ends a campaign.
const FIRST_LOOK: u32 = 10;

impl Stopper {
    /// For a stopping rule.
    pub fn new(rule: &Stopping) -> Stopper {
        let first = if rule.until.is_some() { FIRST_LOOK } else { u32::MAX };
        Stopper { rule: *rule, next: first.min(rule.rounds.unwrap_or(u32::MAX)) }
    }

    /// After how many rounds to look next. When the time is over a look is due at once.
    pub fn next_look(&self) -> u32 {
        self.next
    }

    /// Decides.
    pub fn decide(&mut self, look: Look) -> Decision {
        if self.rule.rounds.is_some_and(|most| look.rounds >= most) {
            return Decision::Stop(Why::Rounds);
        }
        if self.rule.budget.is_some_and(|most| look.elapsed >= most) {
            return Decision::Stop(Why::Budget);
        }
        if let (Some(goal), Some(widest)) = (self.rule.until, look.widest) {
            if look.rounds >= FIRST_LOOK && widest <= goal {
                return Decision::Stop(Why::Until);
            }
        }
        // Looks at rounds that grow by a quarter: few of them, so that looking costs little.
        let next = (look.rounds + look.rounds / 4).max(look.rounds + 1).max(FIRST_LOOK);
        self.next = next.min(self.rule.rounds.unwrap_or(u32::MAX));
        Decision::Continue { next_look: self.next }
    }
}
