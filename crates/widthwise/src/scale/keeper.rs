//! Keeps what a study yields, shows how it goes, and says when it is enough.

use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

use widthwise_archive::{ArchiveError, StudyArchive};
use widthwise_experiment::model::Stopping;
use widthwise_experiment::scale::Attempt;
use widthwise_measure::scale::Keeper;

use crate::interrupt;
use crate::progress::Progress;
use crate::scale::presentation;

/// So many rounds are made before anybody asks whether they are enough.
const FEWEST_ROUNDS: u32 = 6;

/// The archive's side of a study.
pub struct StudyKeeper<'a> {
    pub archive: StudyArchive,
    progress: &'a mut Progress,
    stopping: Stopping,
    began: Instant,
    /// Attempts of this session, of how many.
    made: u32,
    planned: u32,
    /// Why the rounds ended before all were made.
    pub why: Option<String>,
    /// How far the rounds were from what was asked for.
    pub unreached: Option<String>,
    /// Timed rounds of earlier sessions.
    before: u32,
}

impl<'a> StudyKeeper<'a> {
    /// `planned` attempts are still to come; so many timed rounds were made before.
    pub fn new(
        archive: StudyArchive,
        progress: &'a mut Progress,
        stopping: Stopping,
        planned: u32,
        before: u32,
    ) -> StudyKeeper<'a> {
        progress.begin();
        StudyKeeper {
            archive,
            progress,
            stopping,
            began: Instant::now(),
            made: 0,
            planned,
            why: None,
            unreached: None,
            before,
        }
    }
}

impl Keeper for StudyKeeper<'_> {
    type Error = ArchiveError;

    fn interrupted(&self) -> &AtomicU8 {
        interrupt::times()
    }

    fn attempted(&mut self, attempt: &Attempt) -> Result<(), ArchiveError> {
        self.archive.add(attempt)?;
        self.made += 1;
        if let Some(failure) = &attempt.failure {
            self.progress.say(&format!("  {}: {failure}", attempt.cell));
        }
        let share = f64::from(self.made) / f64::from(self.planned.max(1));
        let by_pace = self.began.elapsed().mul_f64((1.0 - share).max(0.0) / share.max(1e-3));
        let left = match self.stopping.budget {
            Some(budget) => by_pace.min(budget.saturating_sub(self.began.elapsed())),
            None => by_pace,
        };
        let state = format!(
            "{} · {} · {:.2} s",
            attempt.cell,
            attempt.purpose.name(),
            Duration::from_nanos(attempt.elapsed_ns).as_secs_f64()
        );
        self.progress.at(share, Some(left), &state);
        Ok(())
    }

    fn has_enough(&mut self, rounds: u32) -> Result<bool, ArchiveError> {
        if self.stopping.budget.is_some_and(|budget| self.began.elapsed() >= budget) {
            self.why = Some("the budget was spent".into());
            return Ok(true);
        }
        let Some(until) = self.stopping.until else { return Ok(false) };
        if rounds + self.before < FEWEST_ROUNDS {
            return Ok(false);
        }
        let attempts = self.archive.attempts()?;
        let widest = presentation::summary(self.archive.head(), &attempts).widest_half_width();
        if widest.is_some_and(|widest| widest <= until) {
            self.why = Some(format!("every throughput is known to ± {:.1} %", 100.0 * until));
            return Ok(true);
        }
        self.unreached = Some(match widest {
            Some(widest) => {
                format!("throughput is known to ± {:.1} %, not to ± {:.1} %", 100.0 * widest, 100.0 * until)
            }
            None => format!("throughput is not known to ± {:.1} %", 100.0 * until),
        });
        Ok(false)
    }
}
