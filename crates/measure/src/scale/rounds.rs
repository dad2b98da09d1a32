//! Rounds of attempts: in each every slot once, in a fresh random order.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::scale::{Attempt, Purpose};

use super::launcher_pool::LauncherPool;
use super::{attempt, Order};
use crate::run::{Limits, RunError};
use crate::schedule;

/// What a study is made of, when everything is ready to start.
#[derive(Debug)]
pub struct Study<'a> {
    /// Every attempt of a round: the cell, what for, events.
    pub slots: Vec<Slot<'a>>,
    /// Seed of the random orders.
    pub seed: u64,
    /// The first round to be made, and how many there are.
    pub rounds: std::ops::Range<u32>,
    /// What each round is for.
    pub warmup: bool,
    /// Where outputs go.
    pub scratch: PathBuf,
    /// Limits of an attempt.
    pub limits: Limits,
}

/// One attempt of each round.
#[derive(Debug)]
pub struct Slot<'a> {
    /// What it is made of; the padding is the schedule's.
    pub order: Order<'a>,
    /// It has failed before, and is left out.
    pub out: bool,
}

/// Why rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All are made.
    Done,
    /// Whoever keeps the attempts has enough.
    Enough,
    /// Ctrl-C.
    Interrupted,
}

/// Whoever keeps what attempts yield.
pub trait StudyObserver {
    /// Its own errors.
    type Error;
    /// How often the user has asked for an end.
    fn interrupted(&self) -> &AtomicU8;
    /// An attempt has ended; to be kept before this returns.
    fn attempted(&mut self, attempt: &Attempt) -> Result<(), Self::Error>;
    /// A timed round has ended: whether that is enough.
    fn has_enough(&mut self) -> Result<bool, Self::Error>;
}

/// A study could not go on.
#[derive(Debug)]
pub enum StudyError<E> {
    /// The programs could not be run.
    Run(RunError),
    /// Whoever keeps.
    StudyObserver(E),
}

/// Makes rounds: in each every slot once, in a fresh random order. A cell that fails is left out of the rounds to come.
///
/// # Errors
/// Those of running the programs, and those of the keeper.
pub fn study<K: StudyObserver>(
    study: &mut Study,
    pool: &mut LauncherPool,
    observer: &mut K,
) -> Result<End, StudyError<K::Error>> {
    let is_timed = !study.warmup && study.slots.iter().any(|slot| slot.order.purpose == Purpose::Timed);
    for number in study.rounds.clone() {
        if study.slots.iter().all(|slot| slot.out) {
            return Ok(End::Done);
        }
        for (position, turn) in schedule::round(study.seed, number, study.slots.len()).into_iter().enumerate()
        {
            let slot = &mut study.slots[turn.participant];
            if slot.out {
                continue;
            }
            if observer.interrupted().load(Ordering::Relaxed) >= 1 {
                return Ok(End::Interrupted);
            }
            slot.order.padding = turn.padding;
            let interrupted = observer.interrupted();
            let cancelled = || interrupted.load(Ordering::Relaxed) >= 2;
            let mut made = attempt(&slot.order, pool, &study.scratch, study.limits, &cancelled)
                .map_err(StudyError::Run)?;
            if cancelled() && made.ending != Ending::Done {
                return Ok(End::Interrupted);
            }
            made.round = number;
            made.position = position as u32;
            if study.warmup && made.is_sound() {
                made.purpose = Purpose::Warmup;
            }
            let failed = (!made.is_sound()).then(|| made.cell.clone());
            observer.attempted(&made).map_err(StudyError::StudyObserver)?;
            if let Some(cell) = failed {
                study
                    .slots
                    .iter_mut()
                    .filter(|slot| *slot.order.cell == cell)
                    .for_each(|slot| slot.out = true);
            }
        }
        if is_timed && observer.has_enough().map_err(StudyError::StudyObserver)? {
            return Ok(End::Enough);
        }
    }
    Ok(End::Done)
}
