//! Runs that are begun before those in front of them have ended, so that the launcher goes from one to the next by
//! itself. To wake somebody on another CPU after a run, and to be woken for the next, takes longer than many a program.
//!
//! Only what will be wanted in any case is begun ahead: nothing is measured and then thrown away, but for the runs of a
//! variant that turns out to fail. Long runs, and those around which something else has to be done, are begun singly.

use std::collections::VecDeque;
use std::time::Duration;

use crate::rounds::Plan;
use crate::run::{Ran, RunError, Runner};
use crate::schedule::{self, Slot};

/// For how long the launcher is to have something to do. Ctrl-C, the end of the time allowed, and what is known of the
/// machine's noise come at most so much late.
const LEAD: Duration = Duration::from_millis(20);
/// Fewer than this are not worth it.
const LEAST: usize = 4;
/// More than this bring nothing more.
const MOST: usize = 64;
/// All requests together must fit into a socket's buffer: nobody may be kept waiting by a run that lasts.
const MOST_BYTES: usize = 64 << 10;

/// The runs that were begun and not ended, and which come next.
pub(crate) struct Ahead<'a> {
    plan: &'a Plan,
    begun: VecDeque<(u32, Slot)>,
    /// The round from which runs are begun, and what is still to be begun of it.
    round: u32,
    rest: VecDeque<Slot>,
    /// What a run takes.
    pace: Duration,
    singly: bool,
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(plan: &'a Plan, runner: &Runner) -> Ahead<'a> {
        let alone = |participant: &crate::rounds::Participant| runner.stands_alone(&participant.start);
        // A file is read before the next run writes it anew; standard output has a file for each run.
        let singly = !plan.check.files.is_empty() || !plan.participants.iter().all(alone);
        Ahead {
            plan,
            begun: VecDeque::new(),
            round: plan.first_round,
            rest: schedule::round(plan.seed, plan.first_round, plan.participants.len()).into(),
            pace: LEAD,
            singly,
        }
    }

    /// Whether no run was begun that is not ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Whether the next run was begun already, and is made in spite of an end that was asked for: all that has not
    /// begun is passed over.
    pub(crate) fn goes_on(
        &mut self,
        runner: &mut Runner,
        cut_off: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        runner.pass_over()?;
        runner.wait(self.plan.limits, cut_off, Duration::ZERO)?;
        Ok(!self.is_empty() && !runner.is_passed_over())
    }

    /// Begins runs, up to the end of the round `last`, without those who are `out`; at least the one of `round` and
    /// `slot`.
    pub(crate) fn begin(
        &mut self,
        runner: &mut Runner,
        (round, slot): (u32, Slot),
        last: u32,
        out: &[usize],
    ) -> Result<(), RunError> {
        let most = match LEAD.as_nanos() / self.pace.as_nanos().max(1) {
            _ if self.singly => 1,
            runs if runs < LEAST as u128 => 1,
            runs => (runs as usize).min(MOST),
        };
        if self.begun.is_empty() {
            self.start(runner, round, slot)?;
            self.round = round;
            let all = schedule::round(self.plan.seed, round, self.plan.participants.len());
            self.rest = all.into_iter().skip_while(|other| *other != slot).skip(1).collect();
        }
        // In one go, when half of them are over: to send each by itself is dearer.
        if 2 * runner.under_way().0 > most {
            return Ok(());
        }
        loop {
            let (runs, bytes) = runner.under_way();
            if runs >= most || bytes >= MOST_BYTES {
                return Ok(());
            }
            match self.rest.pop_front() {
                Some(slot) if out.contains(&slot.participant) => {}
                Some(slot) => self.start(runner, self.round, slot)?,
                None if self.round >= last => return Ok(()),
                None => {
                    self.round += 1;
                    self.rest =
                        schedule::round(self.plan.seed, self.round, self.plan.participants.len()).into();
                }
            }
        }
    }

    fn start(&mut self, runner: &mut Runner, round: u32, slot: Slot) -> Result<(), RunError> {
        runner.begin(&self.plan.participants[slot.participant].start, slot.padding, &self.plan.cpus)?;
        self.begun.push_back((round, slot));
        Ok(())
    }

    /// Ends the run that was begun first; none if nothing was.
    pub(crate) fn end(
        &mut self,
        runner: &mut Runner,
        cut_off: &dyn Fn() -> bool,
    ) -> Result<Option<(u32, Slot, Ran)>, RunError> {
        let Some((round, slot)) = self.begun.pop_front() else { return Ok(None) };
        let start = &self.plan.participants[slot.participant].start;
        let ran = runner.end(start, &self.plan.cpus, self.plan.limits, cut_off, self.pace)?;
        self.pace = (7 * self.pace + ran.wall) / 8;
        Ok(Some((round, slot, ran)))
    }
}
