//! How noisy this machine is: one small program measured under two names, as every campaign does with its baseline.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant, SystemTime};
use widthwise_experiment::Role;

use anyhow::Context;
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run};
use widthwise_experiment::{Experiment, Facts, Request, SourceLocation};
use widthwise_machine::doctor::NoiseFloor;
use widthwise_measure::comparison::{self, CampaignObserver};
use widthwise_measure::plan::{Machine, Participant, Plan};
use widthwise_measure::program::{self, Places};
use widthwise_measure::rounds::Next;
use widthwise_measure::run::limits::Limits;
use widthwise_measure::run::result::RunResult;
use widthwise_measure::run::runner::{Accounting, Runner};
use widthwise_proc::affinity;
use widthwise_verdict::{judge, Evidence, Verdict, FEWEST_PAIRS};

use crate::interrupt;
use crate::measured_core;
use crate::output;

/// What is run: nothing but arithmetic, so that all that differs between two runs is the machine.
const SUMS: u64 = 40_000_000;

/// The program of the test: `widthwise doctor --spin`, for about a twentieth of a second.
pub fn spin() {
    let mut state = 1u64;
    for _ in 0..SUMS {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Measures for so long, and gives the detection floor of CPU time, or why there is none.
pub fn floor(time: Duration) -> anyhow::Result<Result<NoiseFloor, String>> {
    let own = std::env::current_exe().context("our own program")?;
    let experiment = experiment(own)?;
    let scratch = std::env::temp_dir().join(format!("widthwise-doctor-{}", std::process::id()));
    let mut runner = Runner::new(&scratch, &experiment.metrics, Accounting::Free)?;
    let lock = measured_core::take(&mut |text| output::note(text));
    if let Some(lock) = &lock {
        affinity::step_aside(lock.cpu);
    }
    let variant = experiment.variants.first().context("a variant")?;
    let places = Places { build: None, source: None, here: &scratch, work: &scratch };
    let start = program::ready(&experiment, variant, &places)
        .map_err(|unready| anyhow::Error::msg(unready.reason))?;
    let participant = |name: String, role: Role| Participant {
        name,
        slug: role.to_string(),
        role,
        start: start.clone(),
        machine: Machine::Native,
        further_layouts: Vec::new(),
    };
    let plan = Plan {
        participants: vec![
            participant(experiment.baseline.clone(), Role::Baseline),
            participant(experiment.control(), Role::Control),
        ],
        seed: experiment.seed,
        order: experiment.order,
        layouts: 0,
        first_round: 0,
        warmup: 1,
        cpus: lock.iter().map(|lock| lock.cpu).collect(),
        concurrent: false,
        limits: Limits { timeout: Duration::from_secs(60), boot: Limits::BOOT, output_bytes: 1 << 20 },
        check: experiment.check.clone(),
        folder: scratch.clone(),
        epoch: SystemTime::now(),
    };
    let began = Instant::now();
    let mut listener = Listener { until: began.checked_add(time), rounds: Vec::new(), runs: Vec::new() };
    let measured = comparison::measure(&plan, &mut runner, &mut listener);
    drop(runner);
    let _ = std::fs::remove_dir_all(&scratch);
    measured?;
    let judgement = judge(&Evidence {
        experiment: &experiment,
        rounds: &listener.rounds,
        runs: &listener.runs,
        statuses: &BTreeMap::new(),
        // Only the floor is used, which does not depend on it.
        rss_lag: 0,
    });
    let seconds = began.elapsed().as_secs_f64();
    let Some(verdict) = judgement.verdicts.first() else { return Ok(Err("nothing was measured".to_owned())) };
    Ok(match verdict.floor {
        Some(share) => Ok(NoiseFloor { metric: verdict.metric.name.to_owned(), share, seconds }),
        None => Err(without_floor(verdict)),
    })
}

fn without_floor(verdict: &Verdict) -> String {
    let reason = verdict.reason.clone().unwrap_or_else(|| "the two have no interval".to_owned());
    match verdict.pairs < FEWEST_PAIRS {
        true => format!("{reason}; --noise=TIME takes longer"),
        false => reason,
    }
}

fn experiment(own: PathBuf) -> anyhow::Result<Experiment> {
    let location = || SourceLocation::Flag("--noise");
    let mut request = Request::default();
    request.add_binary(&format!("spin={}", own.display()), location())?;
    request.program.run =
        Some(widthwise_experiment::Located::new("{binary} doctor --spin".to_owned(), location()));
    request.measure.add_metric("cpu", location())?;
    request.output.check =
        Some(widthwise_experiment::Located::new(widthwise_experiment::request::Check::Off, location()));
    Ok(request.resolve(&Facts::default())?)
}

/// Keeps what is measured in memory, until the time is over.
struct Listener {
    /// None: later than the clock can say.
    until: Option<Instant>,
    rounds: Vec<Round>,
    runs: Vec<Run>,
}

impl CampaignObserver for Listener {
    type Error = Infallible;

    fn round_begins(&mut self, _: u32, _: RoundKind, _: u32, _: Option<u32>) -> Result<(), Infallible> {
        Ok(())
    }

    fn run_ended(&mut self, run: &Run, _: &RunResult) -> Result<(), Infallible> {
        self.runs.push(run.clone());
        Ok(())
    }

    fn round_ended(&mut self, round: &Round) -> Result<Next, Infallible> {
        self.rounds.push(round.clone());
        Ok(if self.until.is_none_or(|until| Instant::now() < until) { Next::Round } else { Next::Stop })
    }

    fn excluded(&mut self, _: &Participant, _: &Ending, reason: &str) -> Result<(), Infallible> {
        output::note(&format!("the noise test's own program: {reason}"));
        Ok(())
    }

    fn output_differs(&mut self, _: &Participant, _: &str, _: &str) -> Result<(), Infallible> {
        Ok(())
    }

    fn interrupted(&self) -> &AtomicU8 {
        interrupt::times()
    }
}
