//! A study of scale summed up: attempts in, tables out.
//!
//! Every figure is made of rounds, as everything in [`scaling`](crate::scaling) is: what is compared was measured in the same
//! round, and intervals come from resampling rounds.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::scale::{Attempt, Cell, Memory, Mode, Plan, Purpose, Unshared, Work};

use crate::scaling::{
    marginal_cost, ratio, scaling, sequential_part, smt_yield, Amdahl, Figure, Line, SmtRound, SmtYield,
    Span, Terms, Throughputs, Unfitted, Universal,
};
use crate::starvation::{Starved, Waiting};

/// What a study was asked, and of which machine.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What was asked.
    pub plan: &'a Plan,
    /// The variants, the baseline first.
    pub variants: &'a [String],
    /// The CPUs of each placement's largest cell; a smaller one has the first of them.
    pub placements: &'a [(String, Vec<u32>)],
    /// The CPUs of each core.
    pub cores: &'a [Vec<u32>],
    /// Confidence of each interval.
    pub confidence: f64,
    /// The study's seed.
    pub seed: u64,
    /// Memory of the machine, in bytes.
    pub memory: u64,
}

/// A study summed up.
#[derive(Debug, Clone)]
pub struct Summary {
    /// One table for each variant, mode and placement.
    pub tables: Vec<Table>,
    /// The A/A pair's throughput over the baseline's: what is nearer to 1 than this cannot be told from none.
    pub floor: Option<Figure>,
    /// Other variants and modes beside the first.
    pub comparisons: Vec<Comparison>,
    /// What the second thread of each core yields, where there is one.
    pub smt: Vec<(Cell, Cell, SmtYield)>,
    /// How many fit into the memory.
    pub capacity: Vec<Capacity>,
    /// Variants whose answers differ from the baseline's, and where.
    pub different: Vec<(String, Cell)>,
    /// Timed rounds.
    pub rounds: usize,
    /// Of warm-ups and of everything else: attempts.
    pub attempts: usize,
}

/// One variant in one mode and placement.
#[derive(Debug, Clone)]
pub struct Table {
    /// The variant.
    pub variant: String,
    /// The mode.
    pub mode: Mode,
    /// The placement.
    pub placement: String,
    /// How much there was to do.
    pub work: Work,
    /// By number of processes.
    pub rows: Vec<Row>,
    /// What Amdahl's law makes of it.
    pub amdahl: Result<Amdahl, Unfitted>,
    /// What the universal scalability law makes of it.
    pub universal: Result<Universal, Unfitted>,
    /// The sequential part, in seconds.
    pub sequential: Sequential,
    /// Memory of one more process: PSS of all, over their number.
    pub marginal: Result<Line, Unfitted>,
}

/// The sequential part of one variant in one mode, estimated in three ways; seconds.
#[derive(Debug, Clone)]
pub struct Sequential {
    /// Elapsed time of an attempt with one event (innocente-2012).
    pub one_event: Result<Figure, Unfitted>,
    /// The parent's elapsed time at its first fork.
    pub at_fork: Result<Figure, Unfitted>,
    /// The parent's CPU time then.
    pub cpu_at_fork: Result<Figure, Unfitted>,
    /// Elapsed time over events: its intercept, and the time of an event.
    pub regression: Result<Line, Unfitted>,
}

impl Sequential {
    /// The one that is subtracted: that of the regression, which alone leaves out the one event's own time; else what
    /// there is.
    pub fn chosen(&self) -> f64 {
        let line = self.regression.as_ref().ok().map(|line| line.intercept.estimate);
        let other = || self.at_fork.as_ref().or(self.one_event.as_ref()).ok().map(|figure| figure.estimate);
        line.or_else(other).unwrap_or(0.0).max(0.0)
    }
}

/// How the time of an event is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSource {
    /// The program told CPU times.
    ToldCpu,
    /// The program told elapsed times.
    ToldElapsed,
    /// CPU time of the members over their events.
    CpuTime,
}

/// One number of processes. Times are seconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// How many.
    pub processes: usize,
    /// Their CPUs.
    pub cpus: Vec<u32>,
    /// Attempts whose figures are used.
    pub attempts: usize,
    /// Why there are none, or no more.
    pub failure: Option<String>,
    /// From the start to the end.
    pub elapsed: Result<Figure, Unfitted>,
    /// CPU time of everything.
    pub cpu: Result<Figure, Unfitted>,
    /// Events or runs a second.
    pub throughput: Result<Figure, Unfitted>,
    /// Over the smallest number's.
    pub speed_up: Result<Figure, Unfitted>,
    /// Speed-up over what would be perfect.
    pub efficiency: Result<Figure, Unfitted>,
    /// Time of an event.
    pub event: Result<(Figure, EventSource), Unfitted>,
    /// TIME of innocente-2012: elapsed less the sequential part, times the number of those who share the work.
    pub time: Result<Figure, Unfitted>,
    /// NTIME: TIME times the clock in GHz.
    pub ntime: Result<Figure, Unfitted>,
    /// Instructions a cycle.
    pub ipc: Result<Figure, Unfitted>,
    /// Stalled cycles an instruction.
    pub sci: Result<Figure, Unfitted>,
    /// How its tasks came by their CPUs; absent in studies of before that was recorded.
    pub waiting: Option<Waiting>,
    /// Memory at its highest.
    pub memory: Option<RowMemory>,
}

/// The memory of a cell, at the moment of its highest PSS while all were there; bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMemory {
    /// PSS of everything.
    pub pss: f64,
    /// Of one member, on average.
    pub member_pss: f64,
    /// What a member has alone, on average.
    pub member_uss: f64,
    /// What a member has alone and has written to, on average.
    pub member_private_dirty: f64,
    /// Resident size of a member, on average.
    pub member_resident: f64,
    /// Anonymous memory, by PSS.
    pub anonymous: f64,
    /// The system's AnonPages, above what they were before.
    pub system_anonymous: f64,
    /// How AnonPages had changed when everything had ended, the largest of all rounds.
    pub system_drift: f64,
    /// Huge pages.
    pub huge: f64,
    /// The system's AnonHugePages, above what they were before.
    pub system_huge: f64,
    /// Merged by KSM.
    pub merged: f64,
    /// What became of the parent's memory.
    pub unshared: Vec<Unshared>,
    /// Everything stood still.
    pub frozen: bool,
}

/// A cell beside another of the same size.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The cell.
    pub cell: Cell,
    /// The one it is compared with: the baseline's, or that of the first mode.
    pub beside: Cell,
    /// Its throughput over the other's.
    pub throughput: Result<Figure, Unfitted>,
    /// Its PSS over the other's.
    pub memory: Option<f64>,
}

/// How many of a variant fit into the memory.
#[derive(Debug, Clone)]
pub struct Capacity {
    /// The variant.
    pub variant: String,
    /// The mode.
    pub mode: Mode,
    /// Memory of one more.
    pub each: f64,
    /// What there is without any.
    pub fixed: f64,
    /// How many fit.
    pub fit: u64,
    /// The best throughput that was measured of at most so many, how many that takes, and where.
    pub best: Option<(usize, String, Figure)>,
}

impl RowMemory {
    /// Whether the rest of the machine stood still enough for the system's figures to say something of ours: it changed by
    /// less than a twentieth.
    pub fn system_is_telling(&self) -> bool {
        self.system_anonymous > 0.0 && self.system_drift < 0.05 * self.anonymous
    }
}

impl Summary {
    /// The widest half-width among throughputs, as a share of each; nothing while one is without an interval.
    pub fn widest_half_width(&self) -> Option<f64> {
        let mut widest: Option<f64> = None;
        for row in self.tables.iter().flat_map(|table| &table.rows).filter(|row| row.failure.is_none()) {
            let figure = row.throughput.as_ref().ok()?;
            let bounds = figure.bounds?;
            let half = (bounds.high - bounds.low) / 2.0 / figure.estimate;
            widest = Some(widest.map_or(half, |widest| widest.max(half)));
        }
        widest
    }
}

const SECOND: f64 = 1e9;

/// Sums up.
pub fn summarise(question: Question, attempts: &[Attempt]) -> Summary {
    let plan = question.plan;
    let mut tables = Vec::new();
    for &mode in &plan.modes {
        for variant in question.variants {
            for (placement, cpus) in question.placements {
                tables.push(table(question, attempts, variant, mode, placement, cpus));
            }
        }
    }
    let again = question.variants.first().map(|baseline| format!("{baseline} again"));
    let floor = again.and_then(|again| {
        let twin = attempts.iter().find(|attempt| attempt.cell.variant == again)?.cell.clone();
        let own = Cell { variant: question.variants[0].clone(), ..twin.clone() };
        // A noisy machine makes it wide, and so it should be.
        rates(question, attempts, &twin, &own).ok()
    });
    let timed: BTreeSet<u32> =
        attempts.iter().filter(|a| a.purpose == Purpose::Timed).map(|attempt| attempt.round).collect();
    Summary {
        comparisons: comparisons(question, attempts, &tables),
        smt: smt(question, attempts, &tables),
        capacity: tables
            .iter()
            .filter(|table| Some(&table.placement) == question.placements.first().map(|(name, _)| name))
            .filter_map(|one| capacity(question, one, &tables))
            .collect(),
        different: different(question, attempts),
        floor,
        rounds: timed.len(),
        attempts: attempts.len(),
        tables,
    }
}

/// Sound attempts of a cell for a purpose.
fn sound<'a>(attempts: &'a [Attempt], cell: &'a Cell, purpose: Purpose) -> impl Iterator<Item = &'a Attempt> {
    attempts
        .iter()
        .filter(move |a| a.purpose == purpose && a.cell == *cell && a.is_sound() && a.elapsed_ns > 0)
}

/// How the tasks of a cell came by their CPUs in its attempts for these purposes.
fn waiting(attempts: &[Attempt], cell: &Cell, purposes: &[Purpose]) -> Option<Waiting> {
    Waiting::of(purposes.iter().flat_map(|purpose| sound(attempts, cell, *purpose)))
}

/// Why nothing is concluded from the speed of a cell, if that is so.
fn starved(attempts: &[Attempt], cell: &Cell) -> Option<Starved> {
    waiting(attempts, cell, &[Purpose::Timed])?.starved(cell.processes)
}

fn level(values: &[f64], terms: Terms, names: &[&str]) -> Result<Figure, Unfitted> {
    let values: Vec<(f64, f64)> =
        values.iter().filter(|value| value.is_finite() && **value > 0.0).map(|value| (*value, 1.0)).collect();
    ratio(&values, terms, names).map_err(|_| Unfitted::Nothing)
}

fn table(
    question: Question,
    attempts: &[Attempt],
    variant: &str,
    mode: Mode,
    placement: &str,
    cpus: &[u32],
) -> Table {
    let plan = question.plan;
    let work = plan.work(mode);
    let name = format!("{variant} {mode} {placement}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let cell =
        |processes| Cell { variant: variant.to_owned(), mode, placement: placement.to_owned(), processes };
    let mut rounds: BTreeMap<u32, Throughputs> = BTreeMap::new();
    for &processes in &plan.counts {
        for attempt in sound(attempts, &cell(processes), Purpose::Timed) {
            let throughput = work.done(processes) / (attempt.elapsed_ns as f64 / SECOND);
            rounds.entry(attempt.round).or_default().insert(processes, throughput);
        }
    }
    let rounds: Vec<Throughputs> = rounds.into_values().collect();
    let distinct = cpus.iter().collect::<BTreeSet<_>>().len();
    let found = scaling(&rounds, distinct, terms);
    let sequential = sequential(question, attempts, variant, mode);
    // What is said beside the smallest is withheld where that is.
    let smallest = plan.counts.first().and_then(|&processes| starved(attempts, &cell(processes)));
    let of_start = smallest_cell(question, variant, mode).and_then(|cell| starved_start(attempts, &cell));
    let rows: Vec<Row> = plan
        .counts
        .iter()
        .map(|&processes| {
            let step = found.steps.iter().find(|step| step.processes == processes);
            // Beside itself nothing is faster: where the smallest is missing there is no speed-up.
            let has_smallest =
                found.steps.first().is_some_and(|step| Some(&step.processes) == plan.counts.first());
            let beside =
                |figure: Result<Figure, Unfitted>| if has_smallest { figure } else { Err(Unfitted::NoPair) };
            let own = cell(processes);
            let waiting = waiting(attempts, &own, &[Purpose::Timed]);
            let starved = waiting.as_ref().and_then(|waiting| waiting.starved(processes));
            let timed: Vec<&Attempt> = sound(attempts, &own, Purpose::Timed).collect();
            let word = processes.to_string();
            let of = |what: &str, value: &dyn Fn(&Attempt) -> Option<f64>| {
                let values: Vec<f64> = timed.iter().filter_map(|attempt| value(attempt)).collect();
                level(&values, terms, &[what, &word])
            };
            let sharers = if work.is_shared() { processes as f64 } else { 1.0 };
            let less = sequential.chosen();
            let time = |attempt: &Attempt| Some((attempt.elapsed_ns as f64 / SECOND - less) * sharers);
            let is_parallel = timed.iter().filter_map(|attempt| time(attempt)).all(|time| time > 0.0);
            let of_rest = |figure| if is_parallel { figure } else { Err(Unfitted::SomeSequential) };
            let counter = |attempt: &Attempt, name: &str| attempt.counters.get(name).copied();
            let clock =
                |attempt: &Attempt| Some(counter(attempt, "cycles")? / counter(attempt, "task_clock")?);
            let failure = attempts
                .iter()
                .find(|attempt| attempt.cell == own && !attempt.is_sound())
                .map(|attempt| attempt.failure.clone().unwrap_or_default());
            Row {
                processes,
                cpus: (0..processes).filter_map(|place| cpus.get(place).copied()).collect(),
                attempts: timed.len(),
                failure,
                elapsed: of("elapsed", &|attempt| Some(attempt.elapsed_ns as f64 / SECOND)),
                cpu: of("cpu", &|attempt| Some(attempt.cpu_ns as f64 / SECOND)),
                throughput: unless(starved, step.map_or(Err(Unfitted::Nothing), |step| step.throughput)),
                speed_up: unless(
                    starved.or(smallest),
                    step.map_or(Err(Unfitted::Nothing), |step| beside(step.speed_up)),
                ),
                efficiency: unless(
                    starved.or(smallest),
                    step.map_or(Err(Unfitted::Nothing), |step| beside(step.efficiency)),
                ),
                event: event(&timed, work, terms, &word, &|attempt| own_start(attempts, attempt, mode)),
                time: unless(starved.or(of_start), of_rest(of("TIME", &time))),
                ntime: unless(
                    starved.or(of_start),
                    of_rest(of("NTIME", &|attempt| Some(time(attempt)? * clock(attempt)?))),
                ),
                waiting,
                ipc: of("IPC", &|attempt| {
                    Some(counter(attempt, "instructions")? / counter(attempt, "cycles")?)
                }),
                sci: of("SCI", &|attempt| {
                    Some(counter(attempt, "stalled_cycles")? / counter(attempt, "instructions")?)
                }),
                memory: row_memory(sound(attempts, &own, Purpose::Memory).filter_map(|a| a.memory.as_ref())),
            }
        })
        .collect();
    let mut totals: BTreeMap<u32, BTreeMap<usize, f64>> = BTreeMap::new();
    for &processes in &plan.counts {
        for attempt in sound(attempts, &cell(processes), Purpose::Memory) {
            if let Some(moment) = highest(attempt.memory.as_ref()) {
                totals.entry(attempt.round).or_default().insert(processes, moment.pss as f64);
            }
        }
    }
    let totals: Vec<BTreeMap<usize, f64>> = totals.into_values().collect();
    // A law of which one point is withheld says nothing.
    let withheld = plan
        .counts
        .iter()
        .filter(|processes| **processes <= distinct)
        .find_map(|&processes| starved(attempts, &cell(processes)));
    Table {
        variant: variant.to_owned(),
        mode,
        placement: placement.to_owned(),
        work,
        rows,
        amdahl: unless(withheld, found.amdahl),
        universal: unless(withheld, found.universal),
        sequential,
        marginal: marginal_cost(&totals, terms),
    }
}

/// A figure, unless it must not be compared.
fn unless<T>(starved: Option<Starved>, figure: Result<T, Unfitted>) -> Result<T, Unfitted> {
    match (starved, &figure) {
        (Some(starved), Ok(_)) => Err(Unfitted::Withheld(starved)),
        _ => figure,
    }
}

fn highest(memory: Option<&Memory>) -> Option<&widthwise_experiment::scale::Moment> {
    let memory = memory?;
    memory.moments.get(memory.highest?)
}

/// CPU seconds before the first event, of one job or of a process with threads, by the attempt with one event in the same
/// round; of children the parent has done that.
fn own_start(attempts: &[Attempt], like: &Attempt, mode: Mode) -> f64 {
    if mode == Mode::Fork {
        return 0.0;
    }
    attempts
        .iter()
        .find(|a| {
            a.purpose == Purpose::OneEvent
                && a.round == like.round
                && a.cell.mode == mode
                && a.cell.variant == like.cell.variant.trim_end_matches(" again")
                && a.is_sound()
        })
        .map_or(0.0, |a| a.cpu_ns as f64 / SECOND / starts(a))
}

/// How many programs of an attempt begin by themselves.
fn starts(attempt: &Attempt) -> f64 {
    if attempt.cell.mode == Mode::Jobs {
        attempt.members.len().max(1) as f64
    } else {
        1.0
    }
}

/// CPU seconds of what was asked for: of runs everything that was started; of events what the children have used, without
/// the process that forks them, and what a process with threads has used in all of them, those that had ended too.
fn used(attempt: &Attempt, work: Work) -> f64 {
    let ns = match (attempt.cell.mode, work) {
        (Mode::Jobs | Mode::Threads, _) | (_, Work::OnceUnknown | Work::EachUnknown) => attempt.cpu_ns,
        _ => match (attempt.parent_cpu_ns, attempt.before_fork) {
            (Some(parent), _) => attempt.cpu_ns.saturating_sub(parent),
            // With what the parent used afterwards, which is little where children do the work.
            (None, Some(fork)) if attempt.members.iter().any(|member| !member.exact) => {
                attempt.cpu_ns.saturating_sub(fork.cpu_ns)
            }
            _ => attempt.members.iter().map(|member| member.cpu_ns).sum(),
        },
    };
    ns as f64 / SECOND
}

fn event(
    timed: &[&Attempt],
    work: Work,
    terms: Terms,
    word: &str,
    start: &dyn Fn(&Attempt) -> f64,
) -> Result<(Figure, EventSource), Unfitted> {
    let told = |of: fn(&widthwise_experiment::scale::Told) -> Option<f64>| -> Vec<f64> {
        timed
            .iter()
            .filter_map(|attempt| {
                let mut sum = (0.0, 0.0);
                for told in attempt.members.iter().filter_map(|member| member.told.as_ref()) {
                    let value = of(told)?;
                    let weight = told.events.max(1) as f64;
                    sum = (sum.0 + weight * value, sum.1 + weight);
                }
                (sum.1 > 0.0).then(|| sum.0 / sum.1)
            })
            .collect()
    };
    for (source, values) in [
        (EventSource::ToldCpu, told(|told| told.cpu_s)),
        (EventSource::ToldElapsed, told(|told| told.elapsed_s)),
    ] {
        if let (false, Ok(figure)) = (values.is_empty(), level(&values, terms, &["event", word])) {
            return Ok((figure, source));
        }
    }
    let values: Vec<f64> = timed
        .iter()
        .map(|attempt| {
            let used = used(attempt, work);
            let started = start(attempt);
            let starts = starts(attempt);
            let done = work.done(attempt.cell.processes);
            // What one event takes is in the start that was measured with one.
            if started > 0.0 && done > starts {
                (used - starts * started) / (done - starts)
            } else {
                used / done
            }
        })
        .collect();
    level(&values, terms, &["event", word]).map(|figure| (figure, EventSource::CpuTime))
}

/// The cell in which the sequential part is estimated.
fn smallest_cell(question: Question, variant: &str, mode: Mode) -> Option<Cell> {
    let (placement, _) = question.placements.first()?;
    let processes = question.plan.counts.first().copied().unwrap_or(1);
    Some(Cell { variant: variant.to_owned(), mode, placement: placement.clone(), processes })
}

fn sequential(question: Question, attempts: &[Attempt], variant: &str, mode: Mode) -> Sequential {
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
    let one: Vec<f64> = sound(attempts, &smallest, Purpose::OneEvent)
        .map(|attempt| attempt.elapsed_ns as f64 / SECOND)
        .collect();
    let forks: Vec<_> =
        sound(attempts, &smallest, Purpose::Timed).filter_map(|attempt| attempt.before_fork).collect();
    let elapsed: Vec<f64> = forks.iter().map(|fork| fork.elapsed_ns as f64 / SECOND).collect();
    let cpu: Vec<f64> = forks.iter().map(|fork| fork.cpu_ns as f64 / SECOND).collect();
    let mut rounds: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
    for purpose in [Purpose::OneEvent, Purpose::HalfOfEvents, Purpose::Timed] {
        for attempt in sound(attempts, &smallest, purpose) {
            if let Some(events) = attempt.events {
                rounds.entry(attempt.round).or_default().insert(events, attempt.elapsed_ns as f64 / SECOND);
            }
        }
    }
    let rounds: Vec<BTreeMap<u64, f64>> = rounds.into_values().collect();
    // Elapsed times of tasks that waited for others are not the program's.
    let withheld = starved_start(attempts, &smallest);
    Sequential {
        one_event: unless(withheld, level(&one, terms, &["one event"])),
        at_fork: unless(withheld, level(&elapsed, terms, &["elapsed at fork"])),
        cpu_at_fork: level(&cpu, terms, &["cpu at fork"]),
        regression: unless(withheld, sequential_part(&rounds, terms)),
    }
}

/// Why the sequential part is withheld, if it is.
fn starved_start(attempts: &[Attempt], smallest: &Cell) -> Option<Starved> {
    let purposes = [Purpose::Timed, Purpose::OneEvent, Purpose::HalfOfEvents];
    purposes.iter().find_map(|purpose| waiting(attempts, smallest, &[*purpose])?.starved(smallest.processes))
}

/// The mean over memory rounds, each at its own highest moment.
fn row_memory<'a>(memories: impl Iterator<Item = &'a Memory>) -> Option<RowMemory> {
    let memories: Vec<&Memory> = memories.filter(|memory| memory.highest.is_some()).collect();
    let count = memories.len() as f64;
    if memories.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&Memory) -> f64| memories.iter().map(|memory| of(memory)).sum::<f64>() / count;
    let moment = |of: fn(&widthwise_experiment::scale::Moment) -> f64| {
        mean(&|memory| highest(Some(memory)).map_or(0.0, of))
    };
    let member = |of: fn(&widthwise_experiment::scale::MemberMemory) -> u64| {
        mean(&|memory| {
            memory.members.iter().map(|m| of(m) as f64).sum::<f64>() / memory.members.len().max(1) as f64
        })
    };
    Some(RowMemory {
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
        unshared: memories[0].unshared.clone(),
        frozen: memories.iter().all(|memory| memory.frozen),
    })
}

/// The throughput of one cell over another's, within rounds, where both had their CPUs.
fn beside(question: Question, attempts: &[Attempt], cell: &Cell, other: &Cell) -> Result<Figure, Unfitted> {
    let starved = starved(attempts, cell).or_else(|| starved(attempts, other));
    unless(starved, rates(question, attempts, cell, other))
}

/// The same, whoever had the CPUs.
fn rates(question: Question, attempts: &[Attempt], cell: &Cell, other: &Cell) -> Result<Figure, Unfitted> {
    let name = format!("{cell} beside {other}");
    let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
    let rate = |cell: &Cell| -> BTreeMap<u32, f64> {
        let done = question.plan.work(cell.mode).done(cell.processes);
        sound(attempts, cell, Purpose::Timed)
            .map(|a| (a.round, done / (a.elapsed_ns as f64 / SECOND)))
            .collect()
    };
    let (own, theirs) = (rate(cell), rate(other));
    let pairs: Vec<(f64, f64)> =
        own.iter().filter_map(|(round, value)| Some((*value, *theirs.get(round)?))).collect();
    ratio(&pairs, terms, &["throughput"])
}

fn comparisons(question: Question, attempts: &[Attempt], tables: &[Table]) -> Vec<Comparison> {
    let plan = question.plan;
    let mut all = Vec::new();
    for table in tables {
        for row in &table.rows {
            let cell = Cell {
                variant: table.variant.clone(),
                mode: table.mode,
                placement: table.placement.clone(),
                processes: row.processes,
            };
            let mut others = Vec::new();
            if Some(&table.variant) != question.variants.first() {
                others.push(Cell { variant: question.variants[0].clone(), ..cell.clone() });
            }
            // Work of which nobody knows how much it is cannot be compared between modes.
            let same_work = plan.modes.first().is_some_and(|first| plan.work(*first) == table.work);
            if plan.modes.first().is_some_and(|first| *first != table.mode) && same_work {
                others.push(Cell { mode: plan.modes[0], ..cell.clone() });
            }
            if question.placements.first().is_some_and(|(first, _)| *first != table.placement) {
                others.push(Cell { placement: question.placements[0].0.clone(), ..cell.clone() });
            }
            for other in others {
                let throughput = beside(question, attempts, &cell, &other);
                let theirs = tables
                    .iter()
                    .find(|t| {
                        t.variant == other.variant && t.mode == other.mode && t.placement == other.placement
                    })
                    .and_then(|t| t.rows.iter().find(|r| r.processes == other.processes))
                    .and_then(|r| r.memory.as_ref());
                let memory = row.memory.as_ref().zip(theirs).map(|(own, theirs)| own.pss / theirs.pss);
                let is_withheld = matches!(throughput, Err(Unfitted::Withheld(_)));
                if throughput.is_ok() || is_withheld || memory.is_some() {
                    all.push(Comparison { cell: cell.clone(), beside: other, throughput, memory });
                }
            }
        }
    }
    all
}

/// Pairs of cells of which one has a process on each of some cores, and the other one on each of their threads.
fn smt(question: Question, attempts: &[Attempt], tables: &[Table]) -> Vec<(Cell, Cell, SmtYield)> {
    let core_of = |cpu: u32| question.cores.iter().position(|core| core.contains(&cpu));
    let used = |cpus: &[u32]| -> BTreeSet<Option<usize>> { cpus.iter().map(|cpu| core_of(*cpu)).collect() };
    let mut all = Vec::new();
    for table in tables {
        for one in &table.rows {
            for two in table.rows.iter().filter(|two| two.processes > one.processes) {
                let (cores, more) = (used(&one.cpus), used(&two.cpus));
                let distinct = two.cpus.iter().collect::<BTreeSet<_>>().len();
                if cores != more || cores.len() != one.processes || distinct != two.processes {
                    continue;
                }
                let cell = |processes| Cell {
                    variant: table.variant.clone(),
                    mode: table.mode,
                    placement: table.placement.clone(),
                    processes,
                };
                let (first, second) = (cell(one.processes), cell(two.processes));
                let sequential = table.sequential.chosen();
                let span = |cell: &Cell, round: u32| {
                    sound(attempts, cell, Purpose::Timed).find(|a| a.round == round).map(|attempt| {
                        let used = self::used(attempt, table.work);
                        Span {
                            event: Some(used / table.work.done(cell.processes)),
                            // For the same work by each process, the same time of twice as many is twice the work.
                            elapsed: Some(
                                attempt.elapsed_ns as f64
                                    / SECOND
                                    / if table.work.is_shared() { 1.0 } else { cell.processes as f64 },
                            ),
                            sequential: Some(
                                sequential / if table.work.is_shared() { 1.0 } else { cell.processes as f64 },
                            ),
                        }
                    })
                };
                let rounds: BTreeSet<u32> = attempts.iter().map(|attempt| attempt.round).collect();
                let rounds: Vec<SmtRound> = rounds
                    .into_iter()
                    .filter_map(|round| {
                        Some(SmtRound { cores: span(&first, round)?, cpus: span(&second, round)? })
                    })
                    .collect();
                let name = format!("{first} {second}");
                let terms = Terms { confidence: question.confidence, seed: question.seed, name: &name };
                let mut found = smt_yield(&rounds, one.processes, two.processes, terms);
                let withheld = starved(attempts, &first).or_else(|| starved(attempts, &second));
                found.by_elapsed = unless(withheld, found.by_elapsed);
                found.by_elapsed_less_sequential = unless(withheld, found.by_elapsed_less_sequential);
                all.push((first, second, found));
            }
        }
    }
    all
}

fn capacity(question: Question, table: &Table, tables: &[Table]) -> Option<Capacity> {
    let line = table.marginal.as_ref().ok()?;
    let (each, fixed) = (line.slope.estimate, line.intercept.estimate.max(0.0));
    if each <= 0.0 {
        return None;
    }
    let limit = question.plan.memory_limit as f64;
    let fit = ((limit - fixed) / each).max(0.0).floor() as u64;
    let best = tables
        .iter()
        .filter(|other| other.variant == table.variant && other.mode == table.mode)
        .flat_map(|other| other.rows.iter().map(move |row| (&other.placement, row)))
        .filter(|(_, row)| row.processes as u64 <= fit && row.failure.is_none())
        .filter_map(|(placement, row)| {
            Some((row.processes, placement.clone(), *row.throughput.as_ref().ok()?))
        })
        .max_by(|a, b| a.2.estimate.total_cmp(&b.2.estimate));
    Some(Capacity { variant: table.variant.clone(), mode: table.mode, each, fixed, fit, best })
}

/// Variants that answered otherwise than the baseline did in the same kind of cell.
fn different(question: Question, attempts: &[Attempt]) -> Vec<(String, Cell)> {
    let Some(baseline) = question.variants.first() else { return Vec::new() };
    let mut answers: BTreeMap<Cell, &str> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.purpose == Purpose::Timed && attempt.is_sound()) {
        if let Some(answer) = &attempt.answer {
            answers.entry(attempt.cell.clone()).or_insert(answer);
        }
    }
    let mut found: Vec<(String, Cell)> = Vec::new();
    for (cell, answer) in &answers {
        let other = answers.get(&Cell { variant: baseline.clone(), ..cell.clone() });
        let is_new = !found.iter().any(|(variant, _)| *variant == cell.variant);
        if is_new && other.is_some_and(|other| other != answer) {
            found.push((cell.variant.clone(), cell.clone()));
        }
    }
    found
}
