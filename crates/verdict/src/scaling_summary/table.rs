//! One variant in one mode and placement: a row for each number of processes, and the scaling laws.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::scale::{Cell, GroupRun, MemberMemory, Memory, Mode, Moment, Purpose, Work};

use super::events::event;
use super::model::{EventSource, Question, Row, RowMemory, Sequential, Table};
use super::runs::{
    constant, highest, level, smallest_cell, sound, unless, used, waiting, withheld, withheld_start, SECOND,
};
use crate::scaling::{
    marginal_cost, scaling, sequential_part, Cause, Figure, Scaling, Terms, Throughputs, Unfitted,
};

/// The input of all rows of a table.
struct Column<'a> {
    question: Question<'a>,
    runs: &'a [GroupRun],
    variant: &'a str,
    mode: Mode,
    placement: &'a str,
    cpus: &'a [u32],
    work: Work,
    terms: Terms<'a>,
}

pub(super) fn table(
    question: Question,
    runs: &[GroupRun],
    variant: &str,
    mode: Mode,
    placement: &str,
    cpus: &[u32],
) -> Table {
    let name = format!("{variant} {mode} {placement}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let work = question.plan.work(mode);
    let column = Column { question, runs, variant, mode, placement, cpus, work, terms };
    let counts = &question.plan.counts;
    let distinct = cpus.iter().collect::<BTreeSet<_>>().len();
    let found = scaling(&column.throughputs(), distinct, terms);
    let sequential = sequential(question, runs, variant, mode);
    // One withheld point withholds the law.
    let withheld = counts
        .iter()
        .filter(|processes| **processes <= distinct)
        .find_map(|&processes| self::withheld(question, runs, &column.cell(processes)));
    Table {
        variant: variant.to_owned(),
        mode,
        placement: placement.to_owned(),
        work,
        rows: counts.iter().map(|&processes| column.row(processes, &found, &sequential)).collect(),
        amdahl: unless(withheld, found.amdahl),
        universal: unless(withheld, found.universal),
        sequential,
        marginal: marginal_cost(&column.memory_of_rounds(), terms),
        private: column.least_private(),
    }
}

impl Column<'_> {
    fn cell(&self, processes: usize) -> Cell {
        Cell {
            variant: self.variant.to_owned(),
            mode: self.mode,
            placement: self.placement.to_owned(),
            processes,
        }
    }

    /// Throughputs of each timed round, by number of processes.
    fn throughputs(&self) -> Vec<Throughputs> {
        let mut rounds: BTreeMap<u32, Throughputs> = BTreeMap::new();
        for &processes in &self.question.plan.counts {
            for run in sound(self.runs, &self.cell(processes), Purpose::Timed) {
                let throughput = self.work.done(processes) / (run.elapsed_ns as f64 / SECOND);
                rounds.entry(run.round).or_default().insert(processes, throughput);
            }
        }
        rounds.into_values().collect()
    }

    /// Memory of all processes in each memory round, by their number: of the process tree, or PSS where a run was recorded without it.
    fn memory_of_rounds(&self) -> Vec<BTreeMap<usize, f64>> {
        let moments: Vec<(u32, usize, &Moment)> = self
            .memory_runs()
            .filter_map(|(processes, run)| Some((run.round, processes, highest(run.memory.as_ref())?)))
            .collect();
        let has_trees = moments.iter().all(|(_, _, moment)| moment.tree.is_some());
        let mut rounds: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
        for (round, processes, moment) in moments {
            let memory = moment.tree.filter(|_| has_trees).unwrap_or(moment.pss);
            rounds.entry(round).or_default().insert(processes, memory as f64);
        }
        rounds.into_values().collect()
    }

    /// The least that a job or child has written for itself, on average over those of a run. Threads have nothing for themselves.
    fn least_private(&self) -> Option<f64> {
        let private =
            |member: &MemberMemory| member.private_dirty.saturating_sub(member.runtime_dirty) as f64;
        let means = self.memory_runs().filter_map(|(_, run)| {
            let members = &run.memory.as_ref().filter(|memory| memory.highest.is_some())?.members;
            let is_known = self.mode != Mode::Threads && !members.is_empty();
            is_known.then(|| members.iter().map(private).sum::<f64>() / members.len() as f64)
        });
        means.min_by(f64::total_cmp)
    }

    fn memory_runs(&self) -> impl Iterator<Item = (usize, &GroupRun)> {
        let counts = self.question.plan.counts.iter();
        counts.flat_map(|&processes| {
            let cell = self.cell(processes);
            let is_own =
                move |run: &&GroupRun| run.cell == cell && run.purpose == Purpose::Memory && run.is_sound();
            self.runs.iter().filter(is_own).map(move |run| (processes, run))
        })
    }

    fn row(&self, processes: usize, found: &Scaling, sequential: &Sequential) -> Row {
        let (question, runs, terms) = (self.question, self.runs, self.terms);
        let least = question.plan.counts.first().copied();
        let step = found.steps.iter().find(|step| step.processes == processes);
        // Without the smallest number of processes there is no speed-up.
        let has_smallest = found.steps.first().is_some_and(|step| Some(step.processes) == least);
        let beside =
            |figure: Result<Figure, Unfitted>| if has_smallest { figure } else { Err(Unfitted::NoPair) };
        let own = self.cell(processes);
        let waiting = waiting(runs, &own, &[Purpose::Timed]);
        let withheld_here = withheld(question, runs, &own);
        // Figures relative to the smallest are withheld if that is.
        let of_smallest = least.and_then(|processes| withheld(question, runs, &self.cell(processes)));
        let of_pair = withheld_here.or(of_smallest);
        let of_start =
            smallest_cell(question, self.variant, self.mode).and_then(|cell| withheld_start(runs, &cell));
        let timed: Vec<&GroupRun> = sound(runs, &own, Purpose::Timed).collect();
        let word = processes.to_string();
        let of = |what: &str, value: &dyn Fn(&GroupRun) -> Option<f64>| {
            let values: Vec<f64> = timed.iter().filter_map(|run| value(run)).collect();
            level(&values, terms, &[what, &word])
        };
        let counter = |run: &GroupRun, name: &str| run.counters.get(name).copied();
        let (parallel_time, clock_normalised) =
            self.parallel_times(&timed, &word, sequential, withheld_here.or(of_start));
        let failure = runs
            .iter()
            .find(|run| run.excludes(&own, Purpose::Timed))
            .map(|run| run.failure.clone().unwrap_or_default());
        let of_step = |figure: Option<Result<Figure, Unfitted>>| figure.unwrap_or(Err(Unfitted::Nothing));
        Row {
            processes,
            cpus: (0..processes).filter_map(|place| self.cpus.get(place).copied()).collect(),
            runs: timed.len(),
            failure,
            elapsed: of("elapsed", &|run| Some(run.elapsed_ns as f64 / SECOND)),
            cpu: of("cpu", &|run| Some(run.cpu_ns as f64 / SECOND)),
            throughput: unless(withheld_here, of_step(step.map(|step| step.throughput))),
            speed_up: unless(of_pair, of_step(step.map(|step| beside(step.speed_up)))),
            efficiency: unless(of_pair, of_step(step.map(|step| beside(step.efficiency)))),
            event: self.event(&timed, &own, &word),
            parallel_time,
            clock_normalised,
            waiting,
            ipc: of("IPC", &|run| Some(counter(run, "instructions")? / counter(run, "cycles")?)),
            stalled_per_instruction: of("stalled cycles per instruction", &|run| {
                Some(counter(run, "stalled_cycles")? / counter(run, "instructions")?)
            }),
            memory: row_memory(sound(runs, &own, Purpose::Memory).filter_map(|a| a.memory.as_ref())),
        }
    }

    /// The time of an event; where it is a share of the CPU time, only if that depends on the events.
    fn event(&self, timed: &[&GroupRun], own: &Cell, word: &str) -> Result<(Figure, EventSource), Unfitted> {
        let found = event(timed, self.runs, self.work, self.terms, word);
        let is_reported = found.is_ok_and(|(_, source)| source != EventSource::CpuTime);
        // Without the start, nothing may be left of it.
        match constant(self.question, self.runs, own, used).filter(|_| !is_reported && !timed.is_empty()) {
            Some(cause) => Err(Unfitted::Withheld(cause)),
            None => found,
        }
    }

    /// The parallel time, and the same at the clock that the processor had.
    fn parallel_times(
        &self,
        timed: &[&GroupRun],
        word: &str,
        sequential: &Sequential,
        withheld: Option<Cause>,
    ) -> (Result<Figure, Unfitted>, Result<Figure, Unfitted>) {
        let less = sequential.chosen();
        let time = |run: &GroupRun| {
            let sharers = if self.work.is_shared() { run.cell.processes as f64 } else { 1.0 };
            (run.elapsed_ns as f64 / SECOND - less) * sharers
        };
        let clock = |run: &GroupRun| Some(run.counters.get("cycles")? / run.counters.get("task_clock")?);
        let is_parallel = timed.iter().all(|run| time(run) > 0.0);
        let of = |what: &str, values: Vec<f64>| {
            let figure = level(&values, self.terms, &[what, word]);
            unless(withheld, if is_parallel { figure } else { Err(Unfitted::SomeSequential) })
        };
        let normalised = timed.iter().filter_map(|run| Some(time(run) * clock(run)?));
        (
            of("parallel time", timed.iter().map(|run| time(run)).collect()),
            of("clock-normalised parallel time", normalised.collect()),
        )
    }
}

fn sequential(question: Question, runs: &[GroupRun], variant: &str, mode: Mode) -> Sequential {
    let name = format!("{variant} {mode} sequential");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let Some(smallest) = smallest_cell(question, variant, mode) else {
        let nothing = Err(Unfitted::Nothing);
        return Sequential {
            one_event: nothing,
            at_fork: nothing,
            cpu_at_fork: nothing,
            regression: Err(Unfitted::Nothing),
        };
    };
    let one: Vec<f64> =
        sound(runs, &smallest, Purpose::OneEvent).map(|run| run.elapsed_ns as f64 / SECOND).collect();
    let forks: Vec<_> = sound(runs, &smallest, Purpose::Timed).filter_map(|run| run.before_fork).collect();
    let elapsed: Vec<f64> = forks.iter().map(|fork| fork.elapsed_ns as f64 / SECOND).collect();
    let cpu: Vec<f64> = forks.iter().map(|fork| fork.cpu_ns as f64 / SECOND).collect();
    let mut rounds: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
    let sharers = smallest.processes as u64;
    for purpose in [Purpose::OneEvent, Purpose::HalfOfEvents, Purpose::Timed] {
        for run in sound(runs, &smallest, purpose) {
            // Several processes cannot share one event: its time is not on the line of the others.
            let is_shared = |events: &u64| purpose != Purpose::OneEvent || *events >= sharers;
            if let Some(events) = run.events.filter(is_shared) {
                // The run ends with the process that has one event more than others.
                let events = events.div_ceil(sharers) * sharers;
                rounds.entry(run.round).or_default().insert(events, run.elapsed_ns as f64 / SECOND);
            }
        }
    }
    let rounds: Vec<BTreeMap<u64, f64>> = rounds.into_values().collect();
    // Elapsed times of tasks that waited for other programs are not the program's.
    let withheld = withheld_start(runs, &smallest);
    Sequential {
        one_event: unless(withheld, level(&one, terms, &["one event"])),
        at_fork: unless(withheld, level(&elapsed, terms, &["elapsed at fork"])),
        cpu_at_fork: level(&cpu, terms, &["cpu at fork"]),
        regression: unless(withheld, sequential_part(&rounds, terms)),
    }
}

/// The mean over memory rounds, each at its own highest moment.
fn row_memory<'a>(memories: impl Iterator<Item = &'a Memory>) -> Option<RowMemory> {
    let memories: Vec<&Memory> = memories.filter(|memory| memory.highest.is_some()).collect();
    let count = memories.len() as f64;
    if memories.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&Memory) -> f64| memories.iter().map(|memory| of(memory)).sum::<f64>() / count;
    let moment = |of: fn(&Moment) -> f64| mean(&|memory| highest(Some(memory)).map_or(0.0, of));
    let member = |of: fn(&MemberMemory) -> u64| {
        mean(&|memory| {
            memory.members.iter().map(|m| of(m) as f64).sum::<f64>() / memory.members.len().max(1) as f64
        })
    };
    let trees: Option<Vec<f64>> =
        memories.iter().map(|memory| Some(highest(Some(memory))?.tree? as f64)).collect();
    Some(RowMemory {
        tree: trees.map(|trees| trees.iter().sum::<f64>() / count),
        runtime: moment(|m| m.runtime as f64),
        pss: moment(|m| m.pss as f64),
        member_pss: member(|m| m.pss),
        member_uss: member(|m| m.uss),
        member_private_dirty: member(|m| m.private_dirty),
        member_resident: member(|m| m.resident),
        anonymous: moment(|m| m.pss_anonymous as f64),
        system_anonymous: moment(|m| m.system_anonymous as f64),
        system_drift: memories.iter().map(|memory| memory.system_drift.unsigned_abs()).max().unwrap_or(0)
            as f64,
        huge: moment(|m| m.huge as f64),
        system_huge: moment(|m| m.system_huge as f64),
        merged: moment(|m| m.merged as f64),
        copy_on_write: memories[0].copy_on_write.clone(),
        frozen: memories.iter().all(|memory| memory.frozen),
    })
}
