//! Timed rounds of programs on other kernels: each run is a boot of its own under KVM, in which this processor executes the
//! program. Its times are those of the other kernel.

use std::time::Duration;

use widthwise_experiment::outcome::{Ending, Noise};
use widthwise_experiment::schedule::Slot;
use widthwise_experiment::Metric;

use crate::comparison::{timed, CampaignObserver};
use crate::executor::{Executor, RunFiles};
use crate::passes::emulated_machine::guest::{Accelerator, Guests};
use crate::passes::emulated_machine::operations::Operations;
use crate::passes::emulated_machine::scratch;
use crate::plan::{Machine, Plan};
use crate::round_noise::Window;
use crate::rounds::{End, RoundsError};
use crate::run::reported;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// Makes the warm-up and the timed rounds of a plan whose participants all run on other kernels; the program reports some of
/// these metrics itself, operations of the micro suite among them.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn measure<W: CampaignObserver>(
    plan: &Plan,
    metrics: &[Metric],
    operations: Option<&Operations>,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let folder = scratch(plan)?;
    let window = Window::open(&plan.cpus, vec![runner.launcher()]);
    let guests = Guests::new(Accelerator::Kvm { operations }, &plan.folder, &folder);
    let mut executor = KvmExecutor { plan, metrics, runner, guests, begun: None, files: None, window };
    timed(plan, &mut executor, observer)
}

/// Makes each run when its result is asked for.
struct KvmExecutor<'a> {
    plan: &'a Plan,
    metrics: &'a [Metric],
    runner: &'a mut Runner,
    guests: Guests<'a>,
    begun: Option<(u32, Slot)>,
    files: Option<RunFiles>,
    window: Window,
}

impl Executor for KvmExecutor<'_> {
    type Result = RunResult;

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

    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, RunResult)>, RunError> {
        let Some((round, slot)) = self.begun.take() else { return Ok(None) };
        let participant = &self.plan.participants[slot.participant];
        let Machine::Guest(kernel) = &participant.machine else {
            return Err(RunError::Tool(format!("{} runs on no other kernel", participant.name)));
        };
        let (start, limits) = (participant.layout(slot.layout), self.plan.limits);
        let (mut result, run) =
            self.guests.run(start, kernel, self.runner, &self.plan.cpus, limits, cancelled)?;
        self.window.busy += result.busy;
        // Nothing that was seen of QEMU itself is the program's.
        result.ending = run.ending;
        result.wall =
            run.sample.get("wall").map_or(Duration::ZERO, |wall| Duration::from_nanos(wall.value as u64));
        result.sample = run.sample;
        result.processes = None;
        // What a reader must know of the machine is a remark of the rounds that count.
        result.remarks = Vec::new();
        if result.ending == Ending::Done {
            let reported = reported::read(&run.stdout, self.metrics);
            result.sample.extend(reported.readings);
            result.remarks = reported.remarks;
        }
        result.account = None;
        self.files = Some(RunFiles { stdout: run.stdout, stderr: run.stderr });
        Ok(Some((round, slot, result)))
    }

    fn drain(&mut self, _cancelled: &dyn Fn() -> bool) -> Result<bool, RunError> {
        Ok(false)
    }

    fn files(&self) -> Option<RunFiles> {
        self.files.clone()
    }

    fn is_noise_due(&self) -> bool {
        self.window.is_due()
    }

    fn noise(&mut self) -> Noise {
        self.window.heard()
    }
}
