//! Rounds of counts by emulation: two, and more only where the counts of some participant change from round to round.

use std::cell::RefCell;
use std::collections::BTreeMap;

use widthwise_experiment::outcome::{Ending, RoundKind};
use widthwise_experiment::schedule::Slot;

use crate::comparison::{untimed, CampaignObserver, Untimed};
use crate::plan::{Participant, Plan};
use crate::rounds::{End, RoundsError};
use crate::run::result::{RunError, RunResult};

/// So many rounds show whether the counts are the same each time.
const FEWEST: u32 = 2;

/// The rounds of one pass.
#[derive(Debug, Clone, Copy)]
pub struct CountedRounds<'a> {
    /// The campaign; its participants are those that can be compared.
    pub plan: &'a Plan,
    /// The number of the first round.
    pub first_round: u32,
    /// So many rounds are made where counts change from round to round.
    pub most_rounds: u32,
}

impl CountedRounds<'_> {
    /// Makes the rounds; `run` makes one run, whose sample has nothing but counts.
    ///
    /// # Errors
    /// Those of running the programs, and those of the observer.
    pub fn make<W: CampaignObserver>(
        self,
        observer: &mut W,
        mut run: impl FnMut(&Participant, Slot, &dyn Fn() -> bool) -> Result<RunResult, RunError>,
    ) -> Result<End, RoundsError<W::Error>> {
        // An emulated run is long, and a repetition yields the same: the user need ask for an end only once.
        let rounds = Untimed {
            kind: RoundKind::Emulated,
            first_round: self.first_round,
            rounds: self.most_rounds.max(FEWEST),
            cpu: None,
            cancel_at: 1,
        };
        let counts: RefCell<BTreeMap<usize, Vec<Vec<f64>>>> = RefCell::default();
        let counted = |participant: &Participant, slot: Slot, cancelled: &dyn Fn() -> bool| {
            let result = run(participant, slot, cancelled)?;
            if result.ending == Ending::Done {
                let values = result.sample.values().map(|reading| reading.value).collect();
                counts.borrow_mut().entry(slot.participant).or_default().push(values);
            } else {
                counts.borrow_mut().remove(&slot.participant);
            }
            Ok(result)
        };
        let is_same = |own: &Vec<Vec<f64>>| own.windows(2).all(|pair| pair[0] == pair[1]);
        let is_enough = |made| made >= FEWEST && counts.borrow().values().all(is_same);
        untimed(self.plan, rounds, observer, counted, is_enough)
    }
}
