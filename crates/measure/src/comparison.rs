//! A comparison: rounds of every variant, with outputs compared; and the rounds after them, in which nothing is timed.

use std::iter;
use std::sync::atomic::AtomicU8;

use widthwise_experiment::outcome::{Ending, Noise, Round, RoundKind, Run};
use widthwise_experiment::Role;

use crate::executor::concurrent::ConcurrentExecutor;
use crate::executor::pipelined::PipelinedExecutor;
use crate::executor::sequential::SequentialExecutor;
use crate::executor::{Executor, RunFiles};
use crate::output::mismatch::Outputs;
use crate::plan::{since, Machine, Participant, Plan};
use crate::rounds::{self, End, Next, RoundObserver, RoundPlan, RoundsError, RunPlace};
use crate::run::ending::failure;
use crate::run::page_cache;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;
use widthwise_experiment::schedule::{Schedule, Slot};

/// A variant is excluded after so many failures in timed rounds.
const MOST_FAILURES: u32 = 3;

/// Keeps what a comparison yields, and decides when it is enough.
pub trait CampaignObserver {
    /// What can go wrong with keeping.
    type Error;
    /// A round begins.
    ///
    /// # Errors
    /// It cannot be kept.
    fn round_begins(
        &mut self,
        number: u32,
        kind: RoundKind,
        planned: u32,
        cpu: Option<u32>,
    ) -> Result<(), Self::Error>;
    /// As [`RoundObserver::pauses`].
    ///
    /// # Errors
    /// It cannot be kept.
    fn pauses(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// As [`RoundObserver::certain`].
    fn certain(&self) -> u32 {
        0
    }
    /// A run has ended.
    ///
    /// # Errors
    /// It cannot be kept.
    fn run_ended(&mut self, run: &Run, result: &RunResult) -> Result<(), Self::Error>;
    /// A round is complete.
    ///
    /// # Errors
    /// It cannot be kept.
    fn round_ended(&mut self, round: &Round) -> Result<Next, Self::Error>;
    /// A participant fails, and takes no part in later rounds.
    ///
    /// # Errors
    /// It cannot be kept.
    fn excluded(
        &mut self,
        participant: &Participant,
        ending: &Ending,
        reason: &str,
    ) -> Result<(), Self::Error>;
    /// The output of a participant differs from the baseline's; reported once for each.
    ///
    /// # Errors
    /// It cannot be kept.
    fn output_differs(
        &mut self,
        participant: &Participant,
        reason: &str,
        difference: &str,
    ) -> Result<(), Self::Error>;
    /// Whether the user has asked for an end: 0 no, 1 after this run, 2 at once.
    fn interrupted(&self) -> &AtomicU8;
}

/// Makes the warm-up and the timed rounds.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn measure<W: CampaignObserver>(
    plan: &Plan,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let starts = plan.participants.iter().flat_map(|one| iter::once(&one.start).chain(&one.further_layouts));
    page_cache::read_anew(starts.map(|start| start.file.as_path()));
    runner.warm_caches(true);
    let end = if plan.concurrent {
        timed(plan, &mut ConcurrentExecutor::new(plan, runner)?, observer)
    } else {
        timed(plan, &mut PipelinedExecutor::new(plan, runner), observer)
    };
    // Rounds that take no times have no use for it.
    runner.warm_caches(false);
    end
}

/// Makes the warm-up and the timed rounds by an executor.
pub(crate) fn timed<W: CampaignObserver>(
    plan: &Plan,
    executor: &mut impl Executor<Result = RunResult>,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let all = plan.participants.iter().enumerate();
    let rounds = RoundPlan {
        warmup: plan.warmup,
        most: None,
        most_failures: MOST_FAILURES,
        needed: all.filter(|(_, one)| one.role != Role::Variant).map(|(place, _)| place).collect(),
        ..round_plan(plan, RoundKind::Timed)
    };
    let cpu = one_cpu(plan);
    let outputs = Some(Outputs::new(&plan.folder, &plan.check));
    let mut adaptor = Adaptor { plan, schedule: rounds.schedule, cpu, outputs, observer };
    rounds::make(&rounds, executor, &mut adaptor)
}

/// Rounds in which nothing is timed: each participant once, in the schedule's order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Untimed {
    /// What the rounds are for.
    pub kind: RoundKind,
    /// The number of the first of them.
    pub first_round: u32,
    /// How many there are.
    pub rounds: u32,
    /// The CPU that the rounds are kept with, if it matters.
    pub cpu: Option<u32>,
    /// See [`RoundPlan::cancel_at`].
    pub cancel_at: u8,
}

/// Makes such rounds. `run` makes one run; `is_enough` is asked after each round with the number of rounds made.
pub(crate) fn untimed<W: CampaignObserver>(
    plan: &Plan,
    untimed: Untimed,
    observer: &mut W,
    run: impl FnMut(&Participant, Slot, &dyn Fn() -> bool) -> Result<RunResult, RunError>,
    is_enough: impl Fn(u32) -> bool,
) -> Result<End, RoundsError<W::Error>> {
    let mut run = run;
    let rounds = RoundPlan {
        first_round: untimed.first_round,
        most: Some(untimed.rounds),
        cancel_at: untimed.cancel_at,
        ..round_plan(plan, untimed.kind)
    };
    let mut executor = SequentialExecutor::new(|slot: Slot, cancelled: &dyn Fn() -> bool| {
        Ok((run(&plan.participants[slot.participant], slot, cancelled)?, None))
    });
    let adaptor = Adaptor { plan, schedule: rounds.schedule, cpu: untimed.cpu, outputs: None, observer };
    let mut counted = Counted { adaptor, first: untimed.first_round, is_enough };
    rounds::make(&rounds, &mut executor, &mut counted)
}

/// Makes rounds on emulated machines, whose outputs are compared as those of timed rounds are.
pub(crate) fn emulated<W: CampaignObserver>(
    plan: &Plan,
    first_round: u32,
    most: u32,
    executor: &mut impl Executor<Result = RunResult>,
    observer: &mut W,
    is_enough: impl Fn(u32) -> bool,
) -> Result<End, RoundsError<W::Error>> {
    let all = plan.participants.iter().enumerate();
    let rounds = RoundPlan {
        first_round,
        most: Some(most),
        needed: all.filter(|(_, one)| one.role != Role::Variant).map(|(place, _)| place).collect(),
        cancel_at: 1,
        ..round_plan(plan, RoundKind::Emulated)
    };
    let outputs = Some(Outputs::new(&plan.folder, &plan.check));
    let adaptor = Adaptor { plan, schedule: rounds.schedule, cpu: None, outputs, observer };
    rounds::make(&rounds, executor, &mut Counted { adaptor, first: first_round, is_enough })
}

/// What a program that fails on another kernel may have needed.
const WITHOUT: &str =
    "; an emulated machine has no network and none of this machine's devices, and files only by --input";

/// The only CPU that runs may use, if there is one.
pub(crate) fn one_cpu(plan: &Plan) -> Option<u32> {
    match plan.cpus[..] {
        [cpu] => Some(cpu),
        _ => None,
    }
}

fn round_plan(plan: &Plan, kind: RoundKind) -> RoundPlan {
    RoundPlan {
        schedule: plan.schedule(kind),
        first_round: plan.first_round,
        warmup: 0,
        kind,
        most: Some(0),
        most_failures: 1,
        needed: Vec::new(),
        leaders: Vec::new(),
        cancel_at: 2,
        out: Vec::new(),
    }
}

/// Makes runs of a comparison of the results of an executor.
struct Adaptor<'a, W> {
    plan: &'a Plan,
    schedule: Schedule,
    cpu: Option<u32>,
    /// The outputs, in rounds that compare them.
    outputs: Option<Outputs<'a>>,
    observer: &'a mut W,
}

impl<W: CampaignObserver> RoundObserver<RunResult> for Adaptor<'_, W> {
    type Error = W::Error;

    fn interrupted(&self) -> &AtomicU8 {
        self.observer.interrupted()
    }

    fn round_begins(&mut self, number: u32, kind: RoundKind, planned: u32) -> Result<(), W::Error> {
        self.observer.round_begins(number, kind, planned, self.cpu)
    }

    fn pauses(&mut self) -> Result<(), W::Error> {
        self.observer.pauses()
    }

    fn certain(&self) -> u32 {
        self.observer.certain()
    }

    fn run_ended(
        &mut self,
        place: RunPlace,
        result: &RunResult,
        files: Option<&RunFiles>,
    ) -> Result<(), W::Error> {
        let participant = &self.plan.participants[place.participant];
        let outputs = self.outputs.as_mut().zip(files);
        let run = Run {
            variant: participant.name.clone(),
            round: place.round,
            position: place.position,
            began_ns: since(self.plan.epoch, result.began),
            ending: result.ending.clone(),
            sample: result.sample.clone(),
            output_digest: outputs.and_then(|(outputs, files)| outputs.take(participant, result, files)),
        };
        self.observer.run_ended(&run, result)
    }

    fn excluded(
        &mut self,
        participant: usize,
        result: &RunResult,
        files: Option<&RunFiles>,
    ) -> Result<(), W::Error> {
        // A variant that fails in an untimed round keeps its verdicts on what was timed.
        let (Some(_), Some(files)) = (&self.outputs, files) else { return Ok(()) };
        let participant = &self.plan.participants[participant];
        let mut reason = failure(&result.ending, &files.stderr);
        if matches!(participant.machine, Machine::Guest(_)) && matches!(result.ending, Ending::Exit { .. }) {
            reason += WITHOUT;
        }
        self.observer.excluded(participant, &result.ending, &reason)
    }

    fn round_ended(&mut self, number: u32, kind: RoundKind, noise: Noise) -> Result<Next, W::Error> {
        if let Some(outputs) = &mut self.outputs {
            for mismatch in outputs.compare(&self.plan.participants) {
                self.observer.output_differs(mismatch.participant, &mismatch.reason, &mismatch.difference)?;
            }
        }
        let layout = (self.schedule.layouts > 1).then(|| self.schedule.layout(number) + 1);
        self.observer.round_ended(&Round { number, kind, cpu: self.cpu, noise, layout })
    }
}

/// Ends rounds by their number, whatever the campaign's observer says.
struct Counted<'a, W, F> {
    adaptor: Adaptor<'a, W>,
    first: u32,
    is_enough: F,
}

impl<W: CampaignObserver, F: Fn(u32) -> bool> RoundObserver<RunResult> for Counted<'_, W, F> {
    type Error = W::Error;

    fn interrupted(&self) -> &AtomicU8 {
        self.adaptor.interrupted()
    }

    fn round_begins(&mut self, number: u32, kind: RoundKind, planned: u32) -> Result<(), W::Error> {
        self.adaptor.round_begins(number, kind, planned)
    }

    fn pauses(&mut self) -> Result<(), W::Error> {
        self.adaptor.pauses()
    }

    fn excluded(
        &mut self,
        participant: usize,
        result: &RunResult,
        files: Option<&RunFiles>,
    ) -> Result<(), W::Error> {
        self.adaptor.excluded(participant, result, files)
    }

    fn run_ended(
        &mut self,
        place: RunPlace,
        result: &RunResult,
        files: Option<&RunFiles>,
    ) -> Result<(), W::Error> {
        self.adaptor.run_ended(place, result, files)
    }

    fn round_ended(&mut self, number: u32, kind: RoundKind, noise: Noise) -> Result<Next, W::Error> {
        self.adaptor.round_ended(number, kind, noise)?;
        Ok(if (self.is_enough)(number - self.first + 1) { Next::Stop } else { Next::Round })
    }
}
