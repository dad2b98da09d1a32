//! Keeps what a scaling campaign yields, shows how it goes, and asks the stopping rule whether it is enough.

use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::model::Stopping;
use widthwise_experiment::outcome::{Noise, Round, RoundKind};
use widthwise_experiment::scale::{GroupRun, Purpose};
use widthwise_measure::executor::RunFiles;
use widthwise_measure::rounds::{Next, RoundObserver, RunPlace};
use widthwise_verdict::stopping::{Decision, InterimLook, StoppingRule, Why};

use crate::interrupt;
use crate::load_report;
use crate::progress::Progress;

/// Writes a scaling campaign to its archive.
pub struct ScalingRecorder<'a> {
    pub archive: Archive,
    progress: &'a mut Progress,
    stopping: Stopping,
    stopping_rule: StoppingRule,
    began: Instant,
    /// Time that earlier sessions took.
    before: Duration,
    /// Runs of this session, of how many; unknown without a number of rounds.
    made: u32,
    planned: Option<u32>,
    /// Complete timed rounds, those of earlier sessions too.
    timed: u32,
    /// Runs planned for the open round, and made in it.
    in_round: (u32, u32),
    /// Why the rounds ended before all were made.
    pub why: Option<String>,
    /// How far the rounds were from what was asked for.
    pub unreached: Option<String>,
}

impl<'a> ScalingRecorder<'a> {
    /// `planned` runs are still to come; `timed` rounds were made before.
    pub fn new(
        archive: Archive,
        progress: &'a mut Progress,
        stopping: Stopping,
        planned: Option<u32>,
        timed: u32,
    ) -> Result<ScalingRecorder<'a>, ArchiveError> {
        progress.begin();
        Ok(ScalingRecorder {
            before: archive.load()?.elapsed,
            archive,
            progress,
            stopping_rule: StoppingRule::resumed(&stopping, timed),
            stopping,
            began: Instant::now(),
            made: 0,
            planned,
            timed,
            in_round: (0, 0),
            why: None,
            unreached: None,
        })
    }

    /// Time of this session.
    pub fn session(&self) -> Duration {
        self.began.elapsed()
    }

    /// Time of all sessions.
    fn elapsed(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    /// Whether no timed round is to be made: all were made before, or their time is spent.
    pub fn is_over(&self) -> bool {
        let made = self.timed;
        self.stopping.rounds.is_some_and(|most| made >= most)
            || made > 0 && self.stopping.max_time.is_some_and(|max_time| self.elapsed() >= max_time)
    }

    /// The share of the work that is done, and the time that is left, as far as they are known.
    fn progress(&self) -> (f64, Option<Duration>) {
        let passed = self.began.elapsed();
        let by_runs = self.planned.map(|planned| f64::from(self.made) / f64::from(planned.max(1)));
        let by_pace = by_runs.map(|share| passed.mul_f64((1.0 - share).max(0.0) / share.max(1e-3)));
        let max_time = self.stopping.max_time;
        let by_budget =
            max_time.map(|max_time| self.elapsed().as_secs_f64() / max_time.as_secs_f64().max(1e-9));
        let of_budget = max_time.map(|max_time| max_time.saturating_sub(self.elapsed()));
        let share = by_runs.into_iter().chain(by_budget).fold(0.0, f64::max);
        (share.min(1.0), by_pace.into_iter().chain(of_budget).min())
    }
}

/// How many complete rounds of a kind there are.
pub fn rounds_of(rounds: &[Round], kind: RoundKind) -> u32 {
    rounds.iter().filter(|round| round.kind == kind).count() as u32
}

impl ScalingRecorder<'_> {
    /// Whether the timed rounds are enough.
    fn has_enough(&mut self) -> Result<bool, ArchiveError> {
        let rounds = self.timed;
        let mut widest = None;
        if let Some(precision) = self.stopping.precision.filter(|_| rounds >= self.stopping_rule.next_look())
        {
            let metadata = self.archive.metadata();
            let samples = self.archive.load()?;
            let summary =
                |scaling| load_report::scaling::summary(metadata.seed, scaling, &metadata.names(), &samples);
            widest = metadata.scaling.as_ref().and_then(|scaling| summary(scaling).half_width());
            self.unreached = Some(match widest {
                Some(widest) => {
                    format!(
                        "throughput is known to ± {:.1} %, not to ± {:.1} %",
                        100.0 * widest,
                        100.0 * precision
                    )
                }
                None => format!("throughput is not known to ± {:.1} %", 100.0 * precision),
            });
        }
        let why = match self.stopping_rule.decide(InterimLook { rounds, elapsed: self.elapsed(), widest }) {
            Decision::Continue { .. } => return Ok(false),
            Decision::Stop(why) => why,
        };
        self.why = match why {
            Why::Rounds => None,
            Why::MaxTime => Some("the time limit was reached".into()),
            Why::Precision => {
                let precision = self.stopping.precision.unwrap_or_default();
                Some(format!("every throughput is known to ± {:.1} %", 100.0 * precision))
            }
        };
        Ok(true)
    }
}

impl RoundObserver<GroupRun> for ScalingRecorder<'_> {
    type Error = ArchiveError;

    fn interrupted(&self) -> &AtomicU8 {
        interrupt::times()
    }

    fn round_begins(&mut self, number: u32, kind: RoundKind, planned: u32) -> Result<(), ArchiveError> {
        self.in_round = (planned, 0);
        self.archive.begin_round(number, kind, planned, None)
    }

    fn run_ended(
        &mut self,
        place: RunPlace,
        result: &GroupRun,
        _files: Option<&RunFiles>,
    ) -> Result<(), ArchiveError> {
        let mut run = GroupRun { round: place.round, position: place.position, ..result.clone() };
        if place.kind == RoundKind::Warmup {
            run.purpose = Purpose::Warmup;
        }
        self.archive.add_group_run(&run)?;
        self.made += 1;
        self.in_round.1 += 1;
        if let Some(failure) = &run.failure {
            self.progress.say(&format!("  {}: {failure}", run.cell));
        }
        let (share, left) = self.progress();
        let state = format!(
            "{} · {} · {:.2} s",
            run.cell,
            run.purpose.name(),
            Duration::from_nanos(run.elapsed_ns).as_secs_f64()
        );
        self.progress.at(share, left, &state);
        Ok(())
    }

    fn round_ended(&mut self, number: u32, kind: RoundKind, noise: Noise) -> Result<Next, ArchiveError> {
        // A failure excludes the cell's other runs of the same round: it is complete without them.
        let (planned, made) = self.in_round;
        if made < planned {
            self.archive.set_planned(number, made)?;
        }
        self.timed += u32::from(kind == RoundKind::Timed);
        self.archive.end_round(&Round { number, kind, cpu: None, noise, layout: None })?;
        let is_enough = kind == RoundKind::Timed && self.has_enough()?;
        Ok(if is_enough { Next::Stop } else { Next::Round })
    }
}
