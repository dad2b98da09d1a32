//! Who makes the runs of the rounds, and in what order in time.

use crate::rounds::Plan;
use crate::run::{RunError, RunResult, Runner};
use crate::schedule::Slot;

mod concurrent;
mod pipelined;

use concurrent::ConcurrentExecutor;
use pipelined::PipelinedExecutor;

/// Runs that are begun, and ended in the same order.
pub(crate) trait Executor {
    /// Whether no run was begun that is not ended.
    fn is_empty(&self) -> bool;
    /// Whether the outcome of the run that was begun first is here, so that [`Executor::end`] will not wait.
    fn has_ended(&self) -> bool;
    /// Begins runs, at least the first of these slots of a round; up to the end of the round `last`, without those who
    /// are `out`.
    fn begin(&mut self, round: (u32, &[Slot]), last: u32, out: &[usize]) -> Result<(), RunError>;
    /// Ends the run that was begun first; none if nothing was. `cancelled` is asked now and then whether the user has lost
    /// patience.
    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, RunResult)>, RunError>;
    /// Whether the next run was begun already, and is made in spite of an end that was asked for.
    fn drain(&mut self, cancelled: &dyn Fn() -> bool) -> Result<bool, RunError>;
    /// The launchers that start the runs: their own CPU time is nobody else's.
    fn launchers(&self) -> Vec<u32>;
    /// Who has the output of the run that ended last.
    fn runner(&self) -> &Runner;
}

/// One after the other, or a round together.
pub(crate) fn of<'a>(plan: &'a Plan, runner: &'a mut Runner) -> Result<Box<dyn Executor + 'a>, RunError> {
    Ok(if plan.concurrent {
        Box::new(ConcurrentExecutor::new(plan, runner)?)
    } else {
        Box::new(PipelinedExecutor::new(plan, runner))
    })
}
