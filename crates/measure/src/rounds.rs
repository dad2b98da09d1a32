//! Rounds: randomised complete blocks, until the observer has enough. The loop is the same for every kind of run; it starts no
//! process and reads no clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use thiserror::Error;
use widthwise_experiment::outcome::{Ending, Noise, RoundKind};
use widthwise_experiment::schedule::{Schedule, Slot};

use crate::executor::{Executor, Outcome, RunFiles};
use crate::run::result::RunError;

/// What rounds are made of.
#[derive(Debug, Clone)]
pub struct RoundPlan {
    /// How many participants there are, and the order of their runs.
    pub schedule: Schedule,
    /// The number of the first round: not 0 in a campaign that is resumed.
    pub first_round: u32,
    /// How many warm-up rounds come first.
    pub warmup: u32,
    /// The kind of the rounds after them.
    pub kind: RoundKind,
    /// How many rounds there are at most, the warm-up among them.
    pub most: Option<u32>,
    /// A participant that fails so often in timed rounds is excluded; in a warm-up round once is enough.
    pub most_failures: u32,
    /// The participants without which the rounds end: the baseline and the control of a comparison.
    pub needed: Vec<usize>,
    /// For each participant the one whose failure excludes it, too; its own excludes nobody else. Empty: each is alone.
    pub leaders: Vec<usize>,
    /// A run is cancelled once the user has asked so many times for an end. Between runs, once is enough.
    pub cancel_at: u8,
    /// Participants that are excluded from the beginning.
    pub out: Vec<usize>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlace {
    /// The round's number.
    pub round: u32,
    /// What the round is for.
    pub kind: RoundKind,
    /// The place in the round's order, from 0.
    pub position: u32,
    /// The participant.
    pub participant: usize,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another round.
    Round,
    /// Enough.
    Stop,
}

/// Why the rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The observer has enough, all rounds are made, or no participant is left.
    Enough,
    /// The user asked for it.
    Interrupted,
    /// The baseline or the control fails, so that nothing can be compared.
    NoBaseline,
}

/// Receives rounds and runs, keeps what they yield, and decides when it is enough.
pub trait RoundObserver<R> {
    /// What can go wrong with keeping.
    type Error;
    /// Whether the user has asked for an end: 0 no, 1 after this run, 2 at once.
    fn interrupted(&self) -> &AtomicU8;
    /// A round of so many runs begins.
    ///
    /// # Errors
    /// It cannot be kept.
    fn round_begins(&mut self, number: u32, kind: RoundKind, planned: u32) -> Result<(), Self::Error>;
    /// Nothing is to be done until a run ends, or the rounds have ended: what was found so far is to be kept, and progress shown.
    ///
    /// # Errors
    /// It cannot be kept.
    fn pauses(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// How many rounds follow the present one whatever it yields: their runs may begin ahead.
    fn certain(&self) -> u32 {
        0
    }
    /// A run has ended.
    ///
    /// # Errors
    /// It cannot be kept.
    fn run_ended(&mut self, place: RunPlace, result: &R, files: Option<&RunFiles>)
        -> Result<(), Self::Error>;
    /// A participant fails, and is excluded from the runs to come.
    ///
    /// # Errors
    /// It cannot be kept.
    fn excluded(
        &mut self,
        _participant: usize,
        _result: &R,
        _files: Option<&RunFiles>,
    ) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A round is complete.
    ///
    /// # Errors
    /// It cannot be kept.
    fn round_ended(&mut self, number: u32, kind: RoundKind, noise: Noise) -> Result<Next, Self::Error>;
}

/// The rounds could not go on.
#[derive(Debug, Error)]
pub enum RoundsError<E> {
    /// Runs cannot be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What was found cannot be kept.
    #[error("{0}")]
    Observer(E),
}

/// Makes rounds.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn make<E, O>(plan: &RoundPlan, executor: &mut E, observer: &mut O) -> Result<End, RoundsError<O::Error>>
where
    E: Executor + ?Sized,
    O: RoundObserver<E::Result>,
{
    let rounds = Rounds { plan, out: plan.out.clone(), failures: BTreeMap::new(), enough: false };
    let end = rounds.make(executor, observer)?;
    // What follows may take minutes.
    observer.pauses().map_err(RoundsError::Observer)?;
    Ok(end)
}

/// The state of rounds.
struct Rounds<'a> {
    plan: &'a RoundPlan,
    out: Vec<usize>,
    failures: BTreeMap<usize, u32>,
    enough: bool,
}

impl Rounds<'_> {
    /// Makes the rounds.
    fn make<E, O>(mut self, executor: &mut E, observer: &mut O) -> Result<End, RoundsError<O::Error>>
    where
        E: Executor + ?Sized,
        O: RoundObserver<E::Result>,
    {
        let plan = self.plan;
        let last = plan.most.map(|most| plan.first_round.saturating_add(most));
        for number in plan.first_round..last.unwrap_or(u32::MAX) {
            if self.out.len() >= plan.schedule.participants {
                return Ok(End::Enough);
            }
            if ends_here(plan, executor, observer)? {
                return Ok(End::Interrupted);
            }
            if let Some(end) = self.round(number, executor, observer)? {
                return Ok(end);
            }
            if self.enough && executor.is_empty() {
                return Ok(End::Enough);
            }
        }
        Ok(End::Enough)
    }

    /// Makes a round; whether and why the rounds end with it.
    fn round<E, O>(
        &mut self,
        number: u32,
        executor: &mut E,
        observer: &mut O,
    ) -> Result<Option<End>, RoundsError<O::Error>>
    where
        E: Executor + ?Sized,
        O: RoundObserver<E::Result>,
    {
        let plan = self.plan;
        let is_warmup = number - plan.first_round < plan.warmup;
        let kind = if is_warmup { RoundKind::Warmup } else { plan.kind };
        let slots: Vec<Slot> = plan
            .schedule
            .round(number)
            .into_iter()
            .filter(|slot| !self.out.contains(&slot.participant))
            .collect();
        observer.round_begins(number, kind, slots.len() as u32).map_err(RoundsError::Observer)?;
        for (position, slot) in slots.iter().enumerate() {
            // A failure excludes those that it leads in the same round.
            if self.out.contains(&slot.participant) {
                continue;
            }
            if position > 0 && ends_here(plan, executor, observer)? {
                return Ok(Some(End::Interrupted));
            }
            let Some(result) = self.run(number, &slots[position..], executor, observer)? else {
                return Ok(Some(End::Interrupted));
            };
            let is_cancelled = asked(observer) >= plan.cancel_at;
            if is_cancelled && *result.ending() != Ending::Done {
                return Ok(Some(End::Interrupted));
            }
            let files = executor.files();
            let place =
                RunPlace { round: number, kind, position: position as u32, participant: slot.participant };
            observer.run_ended(place, &result, files.as_ref()).map_err(RoundsError::Observer)?;
            if *result.ending() != Ending::Done && self.exclude(place) {
                observer
                    .excluded(slot.participant, &result, files.as_ref())
                    .map_err(RoundsError::Observer)?;
            }
            if self.out.iter().any(|one| plan.needed.contains(one)) {
                return Ok(Some(End::NoBaseline));
            }
        }
        let next = observer.round_ended(number, kind, executor.noise()).map_err(RoundsError::Observer)?;
        if ends_here(plan, executor, observer)? {
            return Ok(Some(End::Interrupted));
        }
        // Runs in flight are ended: those of the rounds that were certain.
        self.enough |= kind != RoundKind::Warmup && next == Next::Stop;
        Ok(None)
    }

    /// The result of the first of these slots; none if the user cancels.
    fn run<E, O>(
        &self,
        number: u32,
        slots: &[Slot],
        executor: &mut E,
        observer: &mut O,
    ) -> Result<Option<E::Result>, RoundsError<O::Error>>
    where
        E: Executor + ?Sized,
        O: RoundObserver<E::Result>,
    {
        loop {
            // No round begins ahead while the noise of the machine is to be read, which takes a moment between runs.
            let is_last = self.enough || executor.is_noise_due();
            let last = if is_last { number } else { number.saturating_add(observer.certain()) };
            if asked(observer) < 1 || executor.is_empty() {
                executor.begin((number, slots), last, &self.out)?;
            }
            if !executor.has_ended() {
                observer.pauses().map_err(RoundsError::Observer)?;
            }
            let interrupted = observer.interrupted();
            let cancelled = || interrupted.load(Ordering::Relaxed) >= self.plan.cancel_at;
            match executor.end(&cancelled)? {
                // What began for a participant that was excluded meanwhile is dropped.
                Some((round, slot, result)) if (round, slot) == (number, slots[0]) => {
                    return Ok(Some(result))
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Counts a failure; whether it excludes the participant, and those that it leads.
    fn exclude(&mut self, place: RunPlace) -> bool {
        let failed = self.failures.entry(place.participant).or_default();
        *failed += 1;
        if place.kind != RoundKind::Warmup && *failed < self.plan.most_failures {
            return false;
        }
        let is_led = |one: &usize| self.plan.leaders.get(*one) == Some(&place.participant);
        self.out.push(place.participant);
        self.out.extend((0..self.plan.schedule.participants).filter(is_led));
        self.out.sort_unstable();
        self.out.dedup();
        true
    }
}

fn asked<R, O: RoundObserver<R>>(observer: &O) -> u8 {
    observer.interrupted().load(Ordering::Relaxed)
}

/// Whether the user has asked for an end, and no run goes on.
fn ends_here<E, O>(plan: &RoundPlan, executor: &mut E, observer: &O) -> Result<bool, RoundsError<O::Error>>
where
    E: Executor + ?Sized,
    O: RoundObserver<E::Result>,
{
    if asked(observer) < 1 {
        return Ok(false);
    }
    let cancelled = || asked(observer) >= plan.cancel_at;
    Ok(executor.is_empty() || !executor.drain(&cancelled)?)
}

#[cfg(test)]
mod tests;
