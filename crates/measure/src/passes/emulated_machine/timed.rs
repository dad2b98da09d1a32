//! Timed rounds of programs on other kernels: each run is a boot of its own under KVM, in which this processor executes the
//! program. Its times are those of the other kernel.

use std::time::Duration;

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::schedule::Slot;
use widthwise_experiment::Metric;

use crate::comparison::{timed, CampaignObserver};
use crate::executor::sequential::SequentialExecutor;
use crate::executor::RunFiles;
use crate::noise_window::Window;
use crate::output::earlier::Earlier;
use crate::passes::emulated_machine::guest::{Accelerator, Guests};
use crate::passes::emulated_machine::operations::Operations;
use crate::passes::emulated_machine::scratch;
use crate::plan::{Machine, Plan};
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
    let mut boots = Boots { plan, metrics, runner, guests };
    let run = |slot: Slot, cancelled: &dyn Fn() -> bool| boots.run(slot, cancelled);
    timed(plan, &mut SequentialExecutor::new(run).with_noise(window), observer)
}

/// Makes each run in a boot of its own.
struct Boots<'a> {
    plan: &'a Plan,
    metrics: &'a [Metric],
    runner: &'a mut Runner,
    guests: Guests<'a>,
}

impl Boots<'_> {
    fn run(
        &mut self,
        slot: Slot,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(RunResult, Option<RunFiles>), RunError> {
        let participant = &self.plan.participants[slot.participant];
        let Machine::Guest(kernel) = &participant.machine else {
            return Err(RunError::Tool(format!("{} runs on no other kernel", participant.name)));
        };
        let (start, limits) = (participant.layout(slot.layout), self.plan.limits);
        let (mut result, run) =
            self.guests.run(start, kernel, self.runner, &self.plan.cpus, limits, cancelled)?;
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
        Ok((result, Some(RunFiles { stdout: run.stdout, stderr: run.stderr, earlier: Earlier::default() })))
    }
}
