//! Runs that are begun before those in front of them have ended, so that the launcher goes from one to the next by
//! itself. To wake somebody on another CPU after a run, and to be woken for the next, takes longer than many a program.
//!
//! Only what will be wanted in any case is begun ahead: nothing is measured and then thrown away, but for the runs of a
//! variant that turns out to fail. Long runs, and those around which something else has to be done, are begun singly.

use std::collections::VecDeque;
use std::time::Duration;

use widthwise_experiment::outcome::{Noise, RoundKind};
use widthwise_experiment::schedule::{Schedule, Slot};

use crate::executor::{Executor, RunFiles};
use crate::noise_window::Window;
use crate::output::earlier::Earlier;
use crate::plan::{Participant, Plan};
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// For how long the launcher is to have something to do. Ctrl-C, the end of the time allowed, and what is known of the
/// machine's noise come at most so much late.
const LEAD: Duration = Duration::from_millis(20);
/// Fewer than this are not worth it.
const LEAST: usize = 4;
/// More than this bring nothing more.
const MOST: usize = 64;
/// The file of a shorter program is still in the caches from its last run: to read it before each run would only take time.
const WARMED_FROM: Duration = Duration::from_millis(1);
/// All requests together must fit into a socket's buffer: a long run must not block the writer.
const MOST_BYTES: usize = 64 << 10;

/// The runs that were begun and not ended, and which come next.
pub(crate) struct PipelinedExecutor<'a> {
    plan: &'a Plan,
    schedule: Schedule,
    runner: &'a mut Runner,
    begun: VecDeque<(u32, Slot)>,
    /// The round from which runs are begun, and what is still to be begun of it.
    round: u32,
    rest: VecDeque<Slot>,
    /// What a run takes.
    pace: Duration,
    singly: bool,
    /// The compared files before the run; runs that write files are made singly.
    earlier: Earlier,
    window: Window,
}

impl<'a> PipelinedExecutor<'a> {
    pub(crate) fn new(plan: &'a Plan, runner: &'a mut Runner) -> PipelinedExecutor<'a> {
        // All layouts of a program are started in the same way.
        let alone = |participant: &Participant| runner.stands_alone(&participant.start);
        // A file is read before the next run writes it anew; standard output has a file for each run.
        let singly = !plan.check.files.is_empty() || !plan.participants.iter().all(alone);
        let window = Window::open(&plan.cpus, vec![runner.launcher()]);
        PipelinedExecutor {
            plan,
            schedule: plan.schedule(RoundKind::Timed),
            runner,
            window,
            begun: VecDeque::new(),
            round: plan.first_round,
            rest: VecDeque::new(),
            pace: LEAD,
            singly,
            earlier: Earlier::default(),
        }
    }

    fn start(&mut self, round: u32, slot: Slot) -> Result<(), RunError> {
        let start = self.plan.participants[slot.participant].layout(slot.layout);
        self.earlier = Earlier::checked(&self.plan.check, &start.directory);
        self.runner.begin(start, slot.padding, &self.plan.cpus)?;
        self.begun.push_back((round, slot));
        Ok(())
    }
}

impl Executor for PipelinedExecutor<'_> {
    type Result = RunResult;

    fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    fn has_ended(&self) -> bool {
        self.runner.has_ended()
    }

    /// All that has not begun is passed over.
    fn drain(&mut self, cancelled: &dyn Fn() -> bool) -> Result<bool, RunError> {
        self.runner.skip_rest()?;
        self.runner.wait(self.plan.limits, cancelled, Duration::ZERO)?;
        Ok(!self.is_empty() && !self.runner.is_skipped())
    }

    fn begin(&mut self, (round, slots): (u32, &[Slot]), last: u32, out: &[usize]) -> Result<(), RunError> {
        let most = match LEAD.as_nanos() / self.pace.as_nanos().max(1) {
            _ if self.singly => 1,
            runs if runs < LEAST as u128 => 1,
            runs => (runs as usize).min(MOST),
        };
        if self.begun.is_empty() {
            let Some((first, rest)) = slots.split_first() else { return Ok(()) };
            self.start(round, *first)?;
            self.round = round;
            self.rest = rest.iter().copied().collect();
        }
        // In one go, when half of them are over: to send each by itself is dearer.
        if 2 * self.runner.in_flight().0 > most {
            return Ok(());
        }
        loop {
            let (runs, bytes) = self.runner.in_flight();
            if runs >= most || bytes >= MOST_BYTES {
                return Ok(());
            }
            match self.rest.pop_front() {
                Some(slot) if out.contains(&slot.participant) => {}
                Some(slot) => self.start(self.round, slot)?,
                None if self.round >= last => return Ok(()),
                None => {
                    self.round += 1;
                    self.rest = self.schedule.round(self.round).into();
                }
            }
        }
    }

    fn end(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<(u32, Slot, RunResult)>, RunError> {
        let Some((round, slot)) = self.begun.pop_front() else { return Ok(None) };
        let start = self.plan.participants[slot.participant].layout(slot.layout);
        let result = self.runner.end(start, &self.plan.cpus, self.plan.limits, cancelled, self.pace)?;
        self.pace = (7 * self.pace + result.wall) / 8;
        // Never switched on again, so that the runs of a round are made alike.
        if self.pace < WARMED_FROM {
            self.runner.warm_caches(false);
        }
        self.window.busy += result.busy;
        Ok(Some((round, slot, result)))
    }

    fn files(&self) -> Option<RunFiles> {
        let earlier = self.earlier.clone();
        Some(RunFiles { stdout: self.runner.stdout(), stderr: self.runner.stderr(), earlier })
    }

    fn is_noise_due(&self) -> bool {
        self.window.is_due()
    }

    fn noise(&mut self) -> Noise {
        if self.is_empty() {
            self.window.heard()
        } else {
            self.window.not_heard()
        }
    }
}
