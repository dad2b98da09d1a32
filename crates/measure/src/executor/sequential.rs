//! Runs one after the other, each made by a function when its result is asked for.

use crate::executor::{Executor, Outcome};
use crate::run::result::RunError;
use widthwise_experiment::schedule::Slot;

/// Makes each run by calling a function: which slot, and whether the user cancels.
pub(crate) struct SequentialExecutor<F> {
    run: F,
    begun: Option<(u32, Slot)>,
}

impl<F> SequentialExecutor<F> {
    pub fn new(run: F) -> SequentialExecutor<F> {
        SequentialExecutor { run, begun: None }
    }
}

impl<R, F> Executor for SequentialExecutor<F>
where
    R: Outcome,
    F: FnMut(Slot, &dyn Fn() -> bool) -> Result<R, RunError>,
{
    type Result = R;

    fn is_empty(&self) -> bool {
        self.begun.is_none()
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn begin(&mut self, (round, slots): (u32, &[Slot]), _last: u32, _out: &[usize]) -> Result<(), RunError> {
        self.begun = slots.first().map(|slot| (round, *slot));
        Ok(())
    }

    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, R)>, RunError> {
        let Some((round, slot)) = self.begun.take() else { return Ok(None) };
        Ok(Some((round, slot, (self.run)(slot, cancelled)?)))
    }

    fn drain(&mut self, _cancelled: &dyn Fn() -> bool) -> Result<bool, RunError> {
        Ok(false)
    }
}
