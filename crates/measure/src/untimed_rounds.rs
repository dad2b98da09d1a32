//! A round in which nothing is timed: every participant once, in the order and with the padding of any other round, watched
//! in whatever way the runs are made for.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use widthwise_experiment::outcome::{Ending, Noise, Round, RoundKind, Run};

use crate::rounds::{since, CampaignObserver, Participant, Plan, RoundsError};
use crate::run::RunResult;
use crate::schedule::{self, Slot};

/// Rounds of one kind, one after the other.
#[derive(Debug)]
pub(crate) struct Untimed<'a> {
    plan: &'a Plan,
    kind: RoundKind,
    /// The CPU that the rounds are noted with, if it matters.
    cpu: Option<u32>,
    /// A run is cut off once the user has asked so many times. Between runs, once is enough.
    cutting: u8,
    /// Who has failed and takes no further part.
    out: Vec<usize>,
}

/// What came of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// It was made.
    Whole,
    /// Nobody is left to take part: it was not begun.
    Nobody,
    /// The user asked to end.
    Interrupted,
}

impl<'a> Untimed<'a> {
    pub fn new(plan: &'a Plan, kind: RoundKind, cpu: Option<u32>, cutting: u8) -> Untimed<'a> {
        Untimed { plan, kind, cpu, cutting, out: Vec::new() }
    }

    /// Makes a round. `run` makes one run: of whom, in which place, and whether it is to be cut off.
    pub fn round<W, R>(
        &mut self,
        number: u32,
        observer: &mut W,
        mut run: R,
    ) -> Result<Went, RoundsError<W::Error>>
    where
        W: CampaignObserver,
        R: FnMut(&Participant, Slot, &dyn Fn() -> bool) -> Result<RunResult, RoundsError<W::Error>>,
    {
        let plan = self.plan;
        let slots: Vec<_> = schedule::round(plan.seed, number, plan.participants.len())
            .into_iter()
            .filter(|slot| !self.out.contains(&slot.participant))
            .collect();
        if slots.is_empty() {
            return Ok(Went::Nobody);
        }
        observer
            .round_begins(number, self.kind, slots.len() as u32, self.cpu)
            .map_err(RoundsError::CampaignObserver)?;
        for (position, slot) in slots.into_iter().enumerate() {
            let participant = &plan.participants[slot.participant];
            observer.pauses().map_err(RoundsError::CampaignObserver)?;
            let began = SystemTime::now();
            let interrupted = observer.interrupted();
            let asked = || interrupted.load(Ordering::Relaxed);
            if asked() >= 1 {
                return Ok(Went::Interrupted);
            }
            let result = run(participant, slot, &|| asked() >= self.cutting)?;
            if asked() >= self.cutting && result.ending != Ending::Done {
                return Ok(Went::Interrupted);
            }
            let run = Run {
                variant: participant.name.clone(),
                round: number,
                position: position as u32,
                began_ns: since(plan.epoch, began),
                ending: result.ending.clone(),
                sample: result.sample.clone(),
                output_digest: None,
            };
            observer.run_ended(&run, &result).map_err(RoundsError::CampaignObserver)?;
            if run.ending != Ending::Done {
                self.out.push(slot.participant);
            }
        }
        observer
            .round_ended(&Round { number, kind: self.kind, cpu: self.cpu, noise: Noise::default() })
            .map_err(RoundsError::CampaignObserver)?;
        Ok(Went::Whole)
    }
}
