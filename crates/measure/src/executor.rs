//! Executors make the runs of a round: one after the other, ahead of their turn, or at the same time on one CPU.

pub(crate) mod concurrent;
pub(crate) mod pipelined;
pub(crate) mod sequential;

use std::path::PathBuf;
use std::time::Duration;

use widthwise_experiment::outcome::{Ending, Noise};

use crate::output::earlier::Earlier;
use crate::run::result::{RunError, RunResult};
use widthwise_experiment::schedule::Slot;

/// What every kind of run comes to.
pub trait Outcome {
    /// How the run ended.
    fn ending(&self) -> &Ending;
    /// The CPU time that the run took of the measured CPUs, for the noise of the others there.
    fn busy(&self) -> Duration {
        Duration::ZERO
    }
}

impl Outcome for RunResult {
    fn ending(&self) -> &Ending {
        &self.ending
    }

    fn busy(&self) -> Duration {
        self.busy
    }
}

/// The files of the run that ended last.
#[derive(Debug, Clone)]
pub struct RunFiles {
    /// Its standard output.
    pub stdout: PathBuf,
    /// Its standard error.
    pub stderr: PathBuf,
    /// The files that are compared, as they were before the run.
    pub earlier: Earlier,
}

/// Begins runs, and ends them in the same order.
pub trait Executor {
    /// What a run yields.
    type Result: Outcome;

    /// Whether no run has begun that has not ended.
    fn is_empty(&self) -> bool;
    /// Whether the result of the run that began first is here, so that [`Executor::end`] does not wait.
    fn has_ended(&self) -> bool;
    /// Begins runs, at least the first of these slots of a round; up to the end of the round `last`, without the
    /// participants that are `out`.
    ///
    /// # Errors
    /// Programs cannot be started here.
    fn begin(&mut self, round: (u32, &[Slot]), last: u32, out: &[usize]) -> Result<(), RunError>;
    /// Ends the run that began first; none if none has begun, or the user cancelled it. `cancelled` is asked now and then.
    ///
    /// # Errors
    /// Programs cannot be run here.
    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, Self::Result)>, RunError>;
    /// Skips what is in flight and has not started; whether the run that began first is made all the same.
    ///
    /// # Errors
    /// Programs cannot be run here.
    fn drain(&mut self, cancelled: &dyn Fn() -> bool) -> Result<bool, RunError>;
    /// The files of the run that ended last, where it has any.
    fn files(&self) -> Option<RunFiles> {
        None
    }
    /// Whether the noise of the machine is to be read before another round begins.
    fn is_noise_due(&self) -> bool {
        false
    }
    /// The noise of the machine since it was read last, at the end of a round.
    fn noise(&mut self) -> Noise {
        Noise::default()
    }
}
