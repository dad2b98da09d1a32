//! Runs one after the other, each made by a function when its result is asked for.

use widthwise_experiment::outcome::Noise;
use widthwise_experiment::schedule::Slot;

use crate::executor::{Executor, Outcome, RunFiles};
use crate::noise_window::Window;
use crate::run::result::RunError;

/// Makes each run by calling a function with its slot, and whether the user cancels. It returns the result, and the run's files
/// where they are not the runner's.
pub(crate) struct SequentialExecutor<F> {
    run: F,
    begun: Option<(u32, Slot)>,
    files: Option<RunFiles>,
    noise: Option<Window>,
}

impl<F> SequentialExecutor<F> {
    pub fn new(run: F) -> SequentialExecutor<F> {
        SequentialExecutor { run, begun: None, files: None, noise: None }
    }

    /// The same, with the machine's noise read at the end of rounds.
    pub fn with_noise(self, window: Window) -> SequentialExecutor<F> {
        SequentialExecutor { noise: Some(window), ..self }
    }
}

impl<R, F> Executor for SequentialExecutor<F>
where
    R: Outcome,
    F: FnMut(Slot, &dyn Fn() -> bool) -> Result<(R, Option<RunFiles>), RunError>,
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
        let (result, files) = (self.run)(slot, cancelled)?;
        self.files = files;
        if let Some(window) = &mut self.noise {
            window.busy += result.busy();
        }
        Ok(Some((round, slot, result)))
    }

    fn drain(&mut self, _cancelled: &dyn Fn() -> bool) -> Result<bool, RunError> {
        Ok(false)
    }

    fn files(&self) -> Option<RunFiles> {
        self.files.clone()
    }

    fn is_noise_due(&self) -> bool {
        self.noise.as_ref().is_some_and(Window::is_due)
    }

    fn noise(&mut self) -> Noise {
        self.noise.as_mut().map(Window::heard).unwrap_or_default()
    }
}
