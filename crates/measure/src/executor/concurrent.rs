//! The runs of a round, made together: on one CPU, whose time the kernel gives to them in turns of a few milliseconds.
//!
//! A machine whose speed changes from one tenth of a second to the next, as that of a virtual one does, is equally fast
//! for all of them then: what it does to one it does to the others. Bulej, Horký, Tůma, Farquet & Prokopec (*Duet
//! benchmarking*, ICPE 2020) run two programs at once on two CPUs for this reason; on one CPU they share its speed, too.
//! What is lost is wall time, and caches that are a run's own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use widthwise_experiment::metric::NOT_CONCURRENT;
use widthwise_experiment::outcome::Noise;

use crate::executor::{Executor, RunFiles};
use crate::noise_window::Window;
use crate::output::earlier::Earlier;
use crate::plan::Plan;
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;
use widthwise_experiment::schedule::Slot;

/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(100);
/// Runs that are shorter are over before the kernel has taken turns often enough.
const SHORT: Duration = Duration::from_millis(30);

/// Makes a round's runs, each by a runner of its participant's own.
pub(crate) struct ConcurrentExecutor<'a> {
    plan: &'a Plan,
    runners: Vec<Runner>,
    /// A round that was begun, in its order.
    begun: Vec<Slot>,
    made: VecDeque<(u32, Slot, RunResult)>,
    round: u32,
    /// Who made the run that was taken last.
    last: usize,
    window: Window,
}

impl<'a> ConcurrentExecutor<'a> {
    /// Each gets a runner like that one, all made in the same way: none has a launcher that is placed otherwise.
    pub(crate) fn new(plan: &'a Plan, runner: &Runner) -> Result<ConcurrentExecutor<'a>, RunError> {
        let runners = (0..plan.participants.len())
            .map(|number| runner.another(&number.to_string()))
            .collect::<Result<Vec<_>, _>>()?;
        let window = Window::open(&plan.cpus, runners.iter().map(Runner::launcher).collect());
        let (begun, made) = (Vec::new(), VecDeque::new());
        Ok(ConcurrentExecutor { plan, runners, begun, made, round: plan.first_round, last: 0, window })
    }
}

impl Executor for ConcurrentExecutor<'_> {
    type Result = RunResult;

    fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.made.is_empty()
    }

    fn has_ended(&self) -> bool {
        !self.made.is_empty()
    }

    fn begin(&mut self, (round, slots): (u32, &[Slot]), _last: u32, out: &[usize]) -> Result<(), RunError> {
        if self.is_empty() {
            self.round = round;
            self.begun = slots.iter().filter(|slot| !out.contains(&slot.participant)).copied().collect();
        }
        Ok(())
    }

    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, RunResult)>, RunError> {
        if self.made.is_empty() {
            self.make(cancelled)?;
        }
        let taken = self.made.pop_front();
        if let Some((_, slot, result)) = &taken {
            self.last = slot.participant;
            self.window.busy += result.busy;
        }
        Ok(taken)
    }

    /// What is begun has been made.
    fn drain(&mut self, _cut_off: &dyn Fn() -> bool) -> Result<bool, RunError> {
        Ok(!self.is_empty())
    }

    fn files(&self) -> Option<RunFiles> {
        let runner = &self.runners[self.last];
        // Runs at the same time cannot write the same file.
        Some(RunFiles { stdout: runner.stdout(), stderr: runner.stderr(), earlier: Earlier::default() })
    }

    fn is_noise_due(&self) -> bool {
        self.window.is_due()
    }

    /// Pressure is left out: the runs of a round wait for each other.
    fn noise(&mut self) -> Noise {
        let noise = if self.is_empty() { self.window.heard() } else { self.window.not_heard() };
        Noise { pressure: None, ..noise }
    }
}

impl ConcurrentExecutor<'_> {
    /// Makes the runs that were begun.
    fn make(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), RunError> {
        let slots = std::mem::take(&mut self.begun);
        let plan = self.plan;
        // Each has its share of the CPU.
        let limits = Limits { timeout: plan.limits.timeout * slots.len().max(1) as u32, ..plan.limits };
        let mut runners: Vec<Option<&mut Runner>> = self.runners.iter_mut().map(Some).collect();
        let mut hands = Vec::new();
        for slot in &slots {
            if let Some(runner) = runners.get_mut(slot.participant).and_then(Option::take) {
                let start = plan.participants[slot.participant].layout(slot.layout);
                runner.begin(start, slot.padding, &plan.cpus)?;
                hands.push((*slot, runner));
            }
        }
        let cut = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        let mut outcomes = Vec::new();
        std::thread::scope(|scope| {
            for (place, (slot, runner)) in hands.into_iter().enumerate() {
                let (sender, cut) = (sender.clone(), &cut);
                scope.spawn(move || {
                    let start = plan.participants[slot.participant].layout(slot.layout);
                    let cancelled = || cut.load(Ordering::Relaxed);
                    let result = runner.end(start, &plan.cpus, limits, &cancelled, Duration::ZERO);
                    // There is somebody to hear it: this scope.
                    let _ = sender.send((place, slot, result));
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => cut.store(cancelled(), Ordering::Relaxed),
                }
            }
        });
        outcomes.sort_by_key(|(place, ..)| *place);
        for (_, slot, result) in outcomes {
            let mut result = result?;
            for name in NOT_CONCURRENT {
                result.sample.remove(name);
            }
            if result.wall < SHORT {
                result.remarks.push(
                    "is over before it has shared its CPU with the others for long: --concurrent is for longer runs"
                        .into(),
                );
            }
            self.made.push_back((self.round, slot, result));
        }
        Ok(())
    }
}
