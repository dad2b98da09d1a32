//! Counts by emulation, where the machine has no counters: rounds of their own, after the timed ones, in which valgrind's
//! cachegrind runs every participant. Nothing of them is timed, addresses are fixed and the environment is not padded, so
//! that a program that does the same each time counts the same each time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use widthwise_experiment::outcome::{Ending, Reading, Source, LOST_BY_EXECVE};
use widthwise_experiment::Metric;

use crate::comparison::CampaignObserver;
use crate::passes::clock_calls::{self, Calls, Heard, Listener, Uncounted};
use crate::passes::counted_rounds::CountedRounds;
use crate::passes::deviations::{self, missing_of, Deviations};
use crate::passes::emulated_processes::{Extent, Processes};
use crate::passes::recordings::outputs_differently;
use crate::passes::valgrind::{self, Tool, SLOWER};
use crate::plan::{Participant, Plan};
use crate::rounds::{End, RoundsError};
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// A metric, and the events of cachegrind's output that add up to it (named as in valgrind's manual, "Cachegrind").
/// References of the last level are the misses of the first.
const EVENTS: [(&str, &[&str]); 5] = [
    ("instructions", &["Ir"]),
    ("branches", &["Bc", "Bi"]),
    ("branch_misses", &["Bcm", "Bim"]),
    ("cache_references", &["I1mr", "D1mr", "D1mw"]),
    ("cache_misses", &["ILmr", "DLmr", "DLmw"]),
];

/// Metrics that the x32 runtime can change by as many as it has of its own: what it brings into the emulated caches the
/// program then finds there, and each line that it brings takes the place of another. The branch predictor's table is shared alike.
pub const SHARED_WITH_RUNTIME: [&str; 3] = ["branch_misses", "cache_references", "cache_misses"];

/// Metrics that have two bounds where a program reads the clock.
pub fn clock_widens(metric: &Metric) -> bool {
    EXECUTED.iter().any(|(name, _)| *name == metric.name)
}

const CACHEGRIND: Tool = Tool {
    // `-v` takes back the `-q` of all tools: each program that is executed is named in the log.
    options: &["--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--trace-children=yes", "-v"],
    has_caches: true,
    file: "--cachegrind-out-file",
};

/// Repetitions of string instructions are counted by another tool, in a run of its own: cachegrind does not distinguish them.
const CALLGRIND: Tool = Tool {
    options: &["--tool=callgrind", "--branch-sim=yes", "--trace-children=yes"],
    has_caches: false,
    file: "--callgrind-out-file",
};

/// Metrics of what is executed: repetitions are no part of them, and calls of the clock have a part that valgrind does not execute.
const EXECUTED: [(&str, Uncounted); 2] =
    [("instructions", clock_calls::INSTRUCTIONS), ("branches", clock_calls::BRANCHES)];

/// By participant: what cachegrind counted, and how it deviates from a processor. Equal counts have equal deviations.
type Known = BTreeMap<String, (Events, Deviations)>;

/// What is emulated, and of whom.
#[derive(Debug)]
pub struct Emulation<'a> {
    /// The campaign; its participants are those that can be compared.
    pub plan: &'a Plan,
    /// The number of the first emulated round.
    pub first_round: u32,
    /// The metrics that are counted.
    pub metrics: Vec<Metric>,
    /// The output of each participant outside valgrind, as a digest.
    pub outputs: BTreeMap<String, String>,
    /// So many rounds are made where counts change from round to round.
    pub most_rounds: u32,
}

/// Makes the rounds: two, and more only where the counts of some participant change.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn emulate<W: CampaignObserver>(
    emulation: &Emulation,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let rounds = CountedRounds {
        plan: emulation.plan,
        first_round: emulation.first_round,
        most_rounds: emulation.most_rounds,
    };
    let mut known = Known::new();
    rounds.make(observer, |participant, slot, cancelled| {
        run(emulation, participant, participant.layout(slot.layout), runner, &mut known, cancelled)
    })
}

/// One run under valgrind. What it yields are the emulated counts, and nothing of what was seen of valgrind itself.
fn run(
    emulation: &Emulation,
    participant: &Participant,
    start: &LaunchSpec,
    runner: &mut Runner,
    known: &mut Known,
    cancelled: &dyn Fn() -> bool,
) -> Result<RunResult, RunError> {
    let plan = emulation.plan;
    let folder = plan.folder.join("scratch").join("emulated");
    valgrind::empty(&folder)?;
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let (mut result, mut heard) = listened_to(plan, start, &folder, limits, runner, cancelled)?;
    result.sample.clear();
    result.processes = None;
    result.remarks.clear();
    if result.ending != Ending::Done {
        result.ending = Ending::SpawnFailed {
            reason: valgrind::refusal(&result.ending, start, &runner.stderr(), &heard.text),
        };
        return Ok(result);
    }
    heard.processes.hear_errors(&valgrind::ends(&runner.stderr()));
    let outside = emulation.outputs.get(&participant.name).map(String::as_str);
    let counted = if outputs_differently(plan, participant, outside, runner) {
        Err("under valgrind its output is not what it is outside".to_owned())
    } else {
        counted(&folder, valgrind::runtime_of(start).is_some(), &heard.processes)
    };
    match counted {
        Ok((events, extent)) => {
            let deviations = match known.get(&participant.name) {
                Some((earlier, deviations)) if *earlier == events => Ok(*deviations),
                _ => deviations_of(emulation, start, runner, cancelled)?,
            };
            if let Ok(deviations) = deviations {
                known.insert(participant.name.clone(), (events.clone(), deviations));
            }
            fill(&mut result, &emulation.metrics, events, deviations, heard.calls);
            if extent == Extent::AtLeast {
                open_above(&mut result);
            }
        }
        Err(reason) => result.ending = Ending::SpawnFailed { reason: format!("not emulated: {reason}") },
    }
    Ok(result)
}

/// Of what a process executed before it executed another program in its place there are no counts.
fn open_above(result: &mut RunResult) {
    for reading in result.sample.values_mut() {
        reading.upper = Some(f64::INFINITY);
    }
    let remark = format!("has emulated counts that are lower bounds: a process of it {LOST_BY_EXECVE}");
    result.remarks.push(remark);
}

/// Whether a metric of what is executed is among these.
fn counts_executed(metrics: &[Metric]) -> bool {
    metrics.iter().any(clock_widens)
}

/// A run under cachegrind, and what valgrind's log said of its system calls.
fn listened_to(
    plan: &Plan,
    start: &LaunchSpec,
    folder: &Path,
    limits: Limits,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<(RunResult, Heard), RunError> {
    let logs = plan.folder.join("scratch").join("emulated-calls");
    valgrind::empty(&logs)?;
    let listener = Listener::begin(&logs, None)?;
    let [trace, file] = listener.options();
    let emulated = valgrind::before(start, &CACHEGRIND, &[&trace, &file], folder);
    let result = runner.run(&emulated, 0, &plan.cpus, limits, cancelled);
    let heard = listener.end();
    Ok((result?, heard))
}

/// Gives a run the metrics that are known.
fn fill(
    result: &mut RunResult,
    metrics: &[Metric],
    mut events: Events,
    deviations: Result<Deviations, String>,
    calls: Calls,
) {
    match deviations {
        Ok(deviations) => correct(&mut events, deviations),
        Err(reason) => {
            let names = EXECUTED.map(|(name, _)| name).join(" and no ");
            result.remarks.push(format!("has no {names}, as repetitions cannot be counted: {reason}"));
            events.retain(|event, _| !matches!(event.as_str(), "Ir" | "Bc" | "Bi"));
        }
    }
    for metric in metrics {
        let own = EVENTS.iter().find(|(name, _)| *name == metric.name).map_or(&[][..], |(_, events)| events);
        let counts: Option<Vec<Count>> = own.iter().map(|event| events.get(*event).copied()).collect();
        if let Some(counts) = counts {
            result.sample.insert(metric.name, reading(metric.name, &counts, calls));
        }
    }
}

/// The deviations of a run's counts, or why they are not known. Without metrics that have some, nothing is run.
fn deviations_of(
    emulation: &Emulation,
    start: &LaunchSpec,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Result<Deviations, String>, RunError> {
    if !counts_executed(&emulation.metrics) {
        return Ok(Ok(Deviations::default()));
    }
    let plan = emulation.plan;
    let folder = plan.folder.join("scratch").join("repetitions");
    valgrind::empty(&folder)?;
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let emulated = valgrind::before(start, &CALLGRIND, &deviations::OPTIONS, &folder);
    let result = runner.run(&emulated, 0, &plan.cpus, limits, cancelled)?;
    Ok(match result.ending {
        Ending::Done => deviations::in_folder(&folder),
        ref ending => Err(valgrind::refusal(ending, start, &runner.stderr(), "")),
    })
}

/// Gives a program the instructions and branches that a processor counts.
fn correct(events: &mut Events, deviations: Deviations) {
    let missing = missing_of(deviations.kernel_calls);
    for (event, repeated, missing) in
        [("Ir", deviations.instructions, missing), ("Bc", deviations.branches, 0)]
    {
        if let Some(count) = events.get_mut(event) {
            count.program = count.program.saturating_sub(repeated).saturating_add(missing);
        }
    }
}

/// What was counted, by the names of the events.
type Events = BTreeMap<String, Count>;

/// How often an event occurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// In the program.
    program: u64,
    /// In the x32 runtime, in the kernel's place.
    runtime: u64,
}

/// A metric from the counts of its events, of a program that made so many calls of the clock.
fn reading(metric: &str, counts: &[Count], calls: Calls) -> Reading {
    let sum = |of: fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
    let (program, runtime) = (sum(|count| count.program), sum(|count| count.runtime));
    let executed = EXECUTED.iter().find(|(name, _)| *name == metric).map(|(_, uncounted)| *uncounted);
    let (low, high) = match executed {
        Some(uncounted) => uncounted.around(program, calls),
        None if SHARED_WITH_RUNTIME.contains(&metric) => {
            (program.saturating_sub(runtime), program.saturating_add(runtime))
        }
        None => (program, program),
    };
    Reading::between(low as f64, high as f64, Source::Emulated)
}

/// The events of every process of a run, added up.
fn counted(folder: &Path, through_runtime: bool, processes: &Processes) -> Result<(Events, Extent), String> {
    let mut sum = Events::new();
    let mut written = BTreeSet::new();
    let mut runtime_seen = false;
    let unreadable = |error: std::io::Error| format!("valgrind's counts: {error}");
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Its name is the process's number.
        written.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        let text = std::fs::read(entry.path()).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&text);
        let (command, events) = totals(&text).ok_or("valgrind's counts are not whole")?;
        let own = of_runtime(&text, &command);
        runtime_seen |= own.is_some();
        let own = own.unwrap_or_default().into_iter().chain(std::iter::repeat(0));
        for ((event, count), own) in events.into_iter().zip(own) {
            let sum = sum.entry(event).or_default();
            sum.program += count.saturating_sub(own);
            sum.runtime += own;
        }
    }
    let extent = processes.extent(&written)?;
    if through_runtime && !runtime_seen {
        return Err("the x32 runtime's own work cannot be separated from the program's".to_owned());
    }
    Ok((sum, extent))
}

/// The command and the sums of one process: `cmd: …`, `events: Ir I1mr …`, and at the end `summary: 5128200 1109 …`.
fn totals(text: &str) -> Option<(String, Vec<(String, u64)>)> {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let (command, events) = (line("cmd:")?, line("events:")?);
    let summary = text.lines().rev().find_map(|line| line.strip_prefix("summary:"))?;
    let counts: Option<Vec<u64>> = summary.split_whitespace().map(|count| count.parse().ok()).collect();
    let names: Vec<String> = events.split_whitespace().map(str::to_owned).collect();
    let counts = counts.filter(|counts| counts.len() == names.len())?;
    Some((command.trim().to_owned(), names.into_iter().zip(counts).collect()))
}

/// What a process counted in the x32 runtime's own code, event by event; nothing for any other process.
///
/// valgrind reads the symbols of 64-bit files alone (`coregrind/m_debuginfo/readelf.c`, `VG_(is_object_file)` asks for the class
/// it was built with), and of these there is but one in such a process: what has a name is the runtime's.
fn of_runtime(text: &str, command: &str) -> Option<Vec<u64>> {
    if !command.contains("x32run") || !text.lines().any(|line| line == "fn=x32_main") {
        return None;
    }
    let mut sums = Vec::new();
    let mut named = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            named = name != "???";
        } else if named && line.starts_with(|first: char| first.is_ascii_digit()) {
            // The number of a line of source, and the counts; those at the end that are 0 may be left out.
            for (index, count) in line.split_whitespace().skip(1).enumerate() {
                sums.resize(sums.len().max(index + 1), 0);
                sums[index] += count.parse::<u64>().ok()?;
            }
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_a_process_are_read_by_the_names_of_their_events() {
        let text = "desc: I1 cache: x\ncmd: ./x 1\nevents: Ir Bc Bi\nfl=a.c\n1 2 3 4\nsummary: 20 30 40\n";
        let (command, events) = totals(text).unwrap();
        assert_eq!(command, "./x 1");
        assert_eq!(events, [("Ir".to_owned(), 20), ("Bc".to_owned(), 30), ("Bi".to_owned(), 40)]);
        assert_eq!(totals("cmd: x\nevents: Ir Bc\nsummary: 1\n"), None);
        assert_eq!(totals("cmd: x\nevents: Ir\n"), None);
    }

    /// The processes in which valgrind began so often.
    fn begun_in(begun: &[u32]) -> Processes {
        let mut processes = Processes::default();
        begun.iter().for_each(|process| processes.hear(&format!("=={process}== Parent PID: 0")));
        processes
    }

    #[test]
    fn processes_add_up_and_a_fork_that_would_count_twice_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let counted = |begun: &[u32]| counted(folder.path(), false, &begun_in(begun));
        let write = |name: &str, command: &str, count: u64| {
            let text = format!("cmd: {command}\nevents: Ir\nsummary: {count}\n");
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        assert!(counted(&[1]).unwrap_err().contains("no counts"));
        write("1", "sh -c x", 10);
        write("2", "x", 5);
        let sum = |program| Count { program, runtime: 0 };
        assert_eq!(
            counted(&[1, 2]).map(|(events, extent)| (events["Ir"], extent)),
            Ok((sum(15), Extent::Whole))
        );
        write("3", "sh -c x", 12);
        assert!(counted(&[1, 2]).unwrap_err().contains("forks without"));
        // Two processes that execute the same command.
        let (events, extent) = counted(&[1, 2, 3]).unwrap();
        assert_eq!((events["Ir"], extent), (sum(27), Extent::Whole));
        assert!(counted(&[1, 2, 3, 4]).unwrap_err().contains("1 of its 4 processes"));
        assert_eq!(counted(&[1, 2, 3, 3]).map(|(_, extent)| extent), Ok(Extent::AtLeast));
    }

    #[test]
    fn what_the_x32_runtime_did_in_the_kernels_place_is_not_the_programs() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let own = "fl=???\nfn=???\n0 30 4\nfn=door\n0 5 1\n7 2\nfn=x32_main\n0 900 60\n";
        write("1", &format!("cmd: /a/x32run-1 -- ./x\nevents: Ir Bc\n{own}summary: 937 65\n"));
        write("2", "cmd: /bin/true\nevents: Ir Bc\nfl=???\nfn=main\n0 7 2\nsummary: 7 2\n");
        let (events, _) = counted(folder.path(), true, &begun_in(&[1, 2])).unwrap();
        assert_eq!(events["Ir"], Count { program: 30 + 7, runtime: 907 });
        assert_eq!(events["Bc"], Count { program: 4 + 2, runtime: 61 });
        // Without its symbols there would be no telling.
        std::fs::remove_file(folder.path().join("1")).unwrap();
        write("3", "cmd: /a/x32run-1 -- ./x\nevents: Ir Bc\nfl=???\nfn=???\n0 937 65\nsummary: 937 65\n");
        let others = begun_in(&[2, 3]);
        assert!(counted(folder.path(), true, &others).unwrap_err().contains("cannot be separated"));
        assert!(counted(folder.path(), false, &others).is_ok());
    }

    #[test]
    fn the_x32_runtime_may_have_changed_as_many_misses_as_it_has() {
        let counts = [Count { program: 100, runtime: 30 }, Count { program: 20, runtime: 40 }];
        let between = |low, high| Reading::between(low, high, Source::Emulated);
        assert_eq!(reading("cache_misses", &counts, Calls::default()), between(50.0, 190.0));
        assert_eq!(reading("cache_references", &counts[1..], Calls::default()), between(0.0, 60.0));
        assert_eq!(reading("branch_misses", &counts[..1], Calls::default()), between(70.0, 130.0));
        assert_eq!(
            reading("instructions", &counts, Calls::default()),
            Reading::whole(120.0, Source::Emulated)
        );
        let native = [Count { program: 100, runtime: 0 }];
        assert_eq!(
            reading("cache_misses", &native, Calls::default()),
            Reading::whole(100.0, Source::Emulated)
        );
    }

    #[test]
    fn each_call_of_the_clock_widens_the_bounds_of_what_is_executed_alone() {
        let counts = [Count { program: 100, runtime: 7 }];
        let between = |low, high| Reading::between(low, high, Source::Emulated);
        let calls = |clock, cpu| Calls { clock, cpu };
        assert_eq!(reading("instructions", &counts, calls(2, 0)), between(100.0, 700.0));
        assert_eq!(reading("instructions", &counts, calls(0, 2)), between(36.0, 700.0));
        assert_eq!(reading("branches", &counts, calls(5, 15)), between(0.0, 1300.0));
        assert_eq!(reading("cache_misses", &counts, calls(2, 2)), between(93.0, 107.0));
    }

    #[test]
    fn repetitions_are_no_instructions_and_a_call_of_an_i386_program_has_seven_more() {
        let count = |program| Count { program, runtime: 7 };
        let mut events: Events = [("Ir", 1000), ("Bc", 300), ("Bi", 20), ("D1mr", 5)]
            .map(|(event, program)| (event.to_owned(), count(program)))
            .into();
        correct(&mut events, Deviations { instructions: 900, branches: 301, kernel_calls: 2 });
        assert_eq!(["Ir", "Bc", "Bi", "D1mr"].map(|event| events[event]), [114, 0, 20, 5].map(count));
    }

    #[test]
    fn every_metric_that_can_be_emulated_has_its_events_and_is_a_counter() {
        use widthwise_experiment::metric::{Family, METRICS};
        let emulated: Vec<Metric> = METRICS.iter().filter(|metric| metric.can_be_emulated()).collect();
        let names: Vec<&str> = emulated.iter().map(|metric| metric.name).collect();
        assert_eq!(names, EVENTS.map(|(name, _)| name));
        assert!(emulated.iter().all(|metric| metric.family == Family::Counter));
    }
}
