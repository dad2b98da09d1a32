//! The memory series: rounds of their own, after the timed ones, in which a sampler reads the memory of every participant
//! while it runs. Nothing of them is timed; orders and paddings are those of any other round.

use widthwise_experiment::memory::Series;
use widthwise_experiment::outcome::{Ending, RoundKind};
use widthwise_experiment::Metric;

use crate::rounds::{failure, End, Participant, Plan, RoundsError, Witness};
use crate::run::{Ran, RunError, Runner, Start};
use crate::sampler::{Sampler, Watch, MARKS, SHARE};
use crate::untimed::{Untimed, Went};

/// Of the kernel's own peak, a series that has seen less is told to have missed something.
const CLOSE: f64 = 0.95;
/// A series without a single full reading is told to be of a program that is too short, below this many nanoseconds.
const BRIEF: u64 = 100_000_000;

/// What is read, and of whom.
#[derive(Debug)]
pub struct Memory<'a> {
    /// The campaign; its participants are those that can be compared.
    pub plan: &'a Plan,
    /// The number of the first of these rounds.
    pub first_round: u32,
    /// How many of them there will be.
    pub rounds: u32,
    /// The metrics that are made of a series.
    pub metrics: Vec<Metric>,
}

/// Makes the rounds.
pub fn sample<W: Witness>(
    memory: &Memory,
    runner: &mut Runner,
    witness: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let plan = memory.plan;
    let cpu = match plan.cpus[..] {
        [cpu] => Some(cpu),
        _ => None,
    };
    let mut rounds = Untimed::new(plan, RoundKind::Memory, cpu, 2);
    for number in memory.first_round..memory.first_round + memory.rounds {
        let went = rounds.round(number, witness, |participant, slot, cut_off| {
            run(memory, participant, slot.padding, runner, cut_off)
        })?;
        match went {
            Went::Whole => {}
            Went::Nobody => break,
            Went::Interrupted => return Ok(End::Interrupted),
        }
    }
    Ok(End::Enough)
}

/// One run with the sampler beside it. Its sample has the figures of the series, and nothing else of it.
fn run<E>(
    memory: &Memory,
    participant: &Participant,
    padding: usize,
    runner: &mut Runner,
    cut_off: &dyn Fn() -> bool,
) -> Result<Ran, RoundsError<E>> {
    let plan = memory.plan;
    let pipe = plan.folder.join("scratch").join("marks");
    let mut start = participant.start.clone();
    start.environment.insert(MARKS.to_owned(), pipe.display().to_string());
    let watch = Watch {
        launcher: runner.launcher(),
        cpus: plan.cpus.clone(),
        runtime: runtime_of(&start),
        marks: Some(pipe.clone()),
        share: SHARE,
        ..Watch::default()
    };
    let sampler = Sampler::start(watch).map_err(|error| RunError::Scratch { path: pipe, error })?;
    let ran = runner.run(&start, padding, &plan.cpus, plan.limits, cut_off);
    let seen = sampler.stop();
    let mut ran = ran?;
    ran.remarks.clear();
    ran.processes.clear();
    if let Some((pid, reason)) = &seen.refused {
        ran.remarks.push(format!(
            "has a process ({pid}) whose mappings may not be read ({reason}; setuid?): it is missing in the memory series"
        ));
    }
    if seen.marks_lost {
        ran.remarks.push("wrote more marks than are kept: the first 10 000 are".into());
    }
    let series = seen.since(ran.began_at, ran.wall);
    ran.remarks.extend(shortcomings(&series, ran.sample.get("peak_resident").map(|peak| peak.value)));
    ran.sample = series.sample(&memory.metrics);
    if ran.ending != Ending::Done {
        ran.remarks.push(format!(
            "took no part in the rest of the memory series: {}",
            failure(&ran.ending, &runner.stderr())
        ));
    }
    ran.series = Some(series);
    Ok(ran)
}

/// What starts an x32 program where the kernel does not.
pub(crate) fn runtime_of(start: &Start) -> Option<std::path::PathBuf> {
    start.runtime.as_ref().map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()))
}

/// What a reader of the series must know; `peak` is the kernel's own, of the largest process.
fn shortcomings(series: &Series, peak: Option<f64>) -> Option<String> {
    if series.readings.is_empty() && series.wall_ns < BRIEF {
        return Some(
            "is too short for a memory series: to read it would have slowed it by more than 0.5 %".into(),
        );
    }
    let seen = series.largest_process() as f64;
    let share = seen / peak.filter(|peak| *peak > 0.0)?;
    (share < CLOSE).then(|| {
        "was larger for a moment than the memory series saw: peaks of the series are too low; `peak_resident` is the \
         kernel's own"
            .to_owned()
    })
}
