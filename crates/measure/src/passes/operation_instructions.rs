//! Instructions of the micro suite's operations: rounds of their own, in which valgrind's callgrind runs the suite, which has the
//! counts of each loop written out (`--count`): of n iterations and of 2 n. Their difference is n iterations' own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use widthwise_experiment::outcome::{Ending, Reading, Source};
use widthwise_experiment::reported_metric::MICRO_PREFIX;
use widthwise_experiment::Metric;

use crate::comparison::CampaignObserver;
use crate::passes::counted_rounds::CountedRounds;
use crate::passes::deviations::{self, is_of_runtime, missing_of, KernelCalls, Line};
use crate::passes::valgrind::{self, Tool};
use crate::plan::{Participant, Plan};
use crate::rounds::{End, RoundsError};
use crate::run::limits::Limits;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;

/// Iterations of the shorter loop.
const ITERATIONS: &str = "20";
/// Fifty times slower than a free run, but of so few iterations that the preparation of lists is most of the time.
const SLOWER: u32 = 20;
/// The longest output of the suite that is read.
const MOST_BYTES: u64 = 1 << 20;

const CALLGRIND: Tool = Tool {
    options: &["--tool=callgrind", "--combine-dumps=yes"],
    has_caches: false,
    file: "--callgrind-out-file",
};

/// What the names of the metrics end with.
const SUFFIX: &str = ".instructions";

/// What is counted, and of whom.
#[derive(Debug)]
pub struct Counting<'a> {
    /// The campaign; its participants are those that can be compared.
    pub plan: &'a Plan,
    /// The number of the first round.
    pub first_round: u32,
    /// The metrics that are counted.
    pub metrics: Vec<Metric>,
    /// So many rounds are made where counts change from round to round.
    pub most_rounds: u32,
}

/// Makes the rounds: two, and more only where a count changes.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn count<W: CampaignObserver>(
    counting: &Counting,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let rounds = CountedRounds {
        plan: counting.plan,
        first_round: counting.first_round,
        most_rounds: counting.most_rounds,
    };
    rounds.make(observer, |participant, _, cancelled| run(counting, participant, runner, cancelled))
}

/// One run under callgrind.
fn run(
    counting: &Counting,
    participant: &Participant,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<RunResult, RunError> {
    let plan = counting.plan;
    let folder = plan.folder.join("scratch").join("counted");
    valgrind::empty(&folder)?;
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let mut start = participant.start.clone();
    start.arguments.extend(["--count", ITERATIONS].map(Into::into));
    let start = valgrind::before(&start, &CALLGRIND, &deviations::OPTIONS, &folder);
    let mut result = runner.run(&start, 0, &plan.cpus, limits, cancelled)?;
    result.sample.clear();
    result.processes = None;
    result.remarks.clear();
    if result.ending != Ending::Done {
        let reason = valgrind::refusal(&result.ending, &participant.start, &runner.stderr(), "");
        result.ending = Ending::SpawnFailed { reason };
        return Ok(result);
    }
    let is_x32 = valgrind::runtime_of(&participant.start).is_some();
    let read = text(&runner.stdout()).and_then(|output| Ok((output, totals(&folder, is_x32)?)));
    match read {
        Ok((output, totals)) => {
            let mut of_runtime = Vec::new();
            for metric in &counting.metrics {
                let name = metric.name.trim_start_matches(MICRO_PREFIX).trim_end_matches(SUFFIX);
                match instructions(name, &output, &totals) {
                    Ok(counted) => {
                        result.sample.insert(metric.name, Reading::whole(counted.program, Source::Emulated));
                        if counted.runtime >= 0.5 {
                            of_runtime.push(format!("{name} {:.0}", counted.runtime));
                        }
                    }
                    Err(reason) => result.remarks.push(format!("has no {}: {reason}", metric.name)),
                }
            }
            if !of_runtime.is_empty() {
                let list = of_runtime.join(", ");
                result
                    .remarks
                    .push(format!("needs, beside its own, instructions of x32run for one operation: {list}"));
            }
        }
        Err(reason) => result.ending = Ending::SpawnFailed { reason: format!("not counted: {reason}") },
    }
    Ok(result)
}

fn text(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES {
        return Err(format!("the suite wrote {size} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Instructions, of the program and of the x32 runtime that runs it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    program: f64,
    runtime: f64,
}

/// What one loop counted: by the label of its dump, `getpid 1` and `getpid 2`.
type Totals = BTreeMap<String, Counted>;

/// The instructions of one operation: `count NAME ITERATIONS PER_ITERATION` and the totals of both loops, less those
/// of the empty loop.
fn instructions(name: &str, output: &str, totals: &Totals) -> Result<Counted, String> {
    let absent = || "the suite did not count it".to_owned();
    let row = |name: &str| -> Option<(f64, f64)> {
        let rest = output
            .lines()
            .find_map(|line| line.strip_prefix("count ")?.strip_prefix(name)?.strip_prefix(' '))?;
        let mut words = rest.split(' ');
        Some((words.next()?.parse::<u32>().ok()?.into(), words.next()?.parse::<u32>().ok()?.into()))
    };
    let reason = output.lines().find_map(|line| {
        line.strip_prefix("no-count ")?.strip_prefix(MICRO_PREFIX)?.strip_prefix(name)?.strip_prefix(' ')
    });
    if let Some(reason) = reason {
        return Err(reason.to_owned());
    }
    let per_iteration = |name: &str| -> Option<(Counted, f64)> {
        let (iterations, operations) = row(name)?;
        let once = totals.get(&format!("{name} 1"))?;
        let twice = totals.get(&format!("{name} 2"))?;
        let difference = Counted {
            program: (twice.program - once.program) / iterations,
            runtime: (twice.runtime - once.runtime) / iterations,
        };
        Some((difference, operations))
    };
    let (own, operations) = per_iteration(name).ok_or_else(absent)?;
    let (empty, _) = per_iteration("empty").ok_or_else(absent)?;
    let counted =
        Counted { program: (own.program - empty.program) / operations, runtime: own.runtime / operations };
    if counted.program.is_finite() && counted.program >= 0.0 {
        Ok(counted)
    } else {
        Err(absent())
    }
}

/// The totals of every dump that the suite asked for. Processes that it forked ask for none.
fn totals(folder: &Path, is_x32: bool) -> Result<Totals, String> {
    let unreadable = |error: std::io::Error| format!("valgrind's counts: {error}");
    let mut all = Totals::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let text = std::fs::read(entry.map_err(unreadable)?.path()).map_err(unreadable)?;
        all.extend(totals_of(&String::from_utf8_lossy(&text), is_x32));
    }
    if all.is_empty() {
        return Err("valgrind left no counts".to_owned());
    }
    Ok(all)
}

/// The totals of a file of callgrind's (valgrind's manual, "Callgrind Format Specification"). Each dump has a line with its label
/// and one with its sum.
fn totals_of(text: &str, is_x32: bool) -> Totals {
    let mut all = Totals::new();
    let (mut label, mut summary): (Option<&str>, Option<u64>) = (None, None);
    let mut dump = Dump::default();
    let (mut reader, mut calls) = (deviations::Reader::default(), KernelCalls::default());
    for line in text.lines() {
        calls.line(line);
        if line.starts_with("part:") {
            (label, summary, dump) = (None, None, Dump::default());
        } else if let Some(own) = line.strip_prefix("desc: Trigger: Client Request: micro ") {
            label = Some(own);
        } else if let Some(total) = line.strip_prefix("summary: ") {
            summary = total.trim().parse().ok();
        } else if line.starts_with("totals: ") {
            // The end of a dump. This sum may have a few instructions from before the loop; that of `summary` has none.
            if let (Some(total), Some(own)) = (summary, label) {
                all.insert(own.to_owned(), dump.counted(total));
            }
        } else if let Some(line) = reader.line(line) {
            dump.add(line, is_x32, &calls);
        }
    }
    all
}

/// What is to be known of a dump's instructions beside their sum.
#[derive(Debug, Default)]
struct Dump {
    /// Instructions of the x32 runtime.
    of_runtime: u64,
    /// Repetitions of string instructions in the program.
    repetitions: u64,
    /// Calls of the kernel by an i386 program, of each of which valgrind counts too few instructions.
    kernel_calls: u64,
    /// Where an x32 program was.
    executed: BTreeSet<u64>,
    /// From where it jumped into the x32 runtime, and how often.
    into_runtime: BTreeMap<u64, u64>,
}

impl Dump {
    fn add(&mut self, line: Line, is_x32: bool, calls: &KernelCalls) {
        let is_of_runtime = |address| is_x32 && is_of_runtime(address);
        match line {
            Line::Executed { address, instructions, .. } if is_of_runtime(address) => {
                self.of_runtime = self.of_runtime.saturating_add(instructions);
            }
            Line::Executed { address, instructions, .. } if calls.has(address) => {
                self.kernel_calls = self.kernel_calls.saturating_add(instructions);
            }
            Line::Executed { address, .. } if is_x32 => drop(self.executed.insert(address)),
            Line::Jumped { address, .. } if is_of_runtime(address) => {}
            Line::Jumped { address, target, times } if address == target => {
                self.repetitions = self.repetitions.saturating_add(times);
            }
            Line::Jumped { address, target, times } if is_of_runtime(target) => {
                *self.into_runtime.entry(address).or_default() += times;
            }
            _ => {}
        }
    }

    /// The parts of the sum that valgrind has written.
    fn counted(&self, total: u64) -> Counted {
        let too_many = self.of_runtime.saturating_add(self.repetitions);
        let too_few = self.replaced().saturating_add(missing_of(self.kernel_calls));
        let program = total.saturating_sub(too_many).saturating_add(too_few);
        Counted { program: program as f64, runtime: self.of_runtime as f64 }
    }

    /// How many instructions of the program the x32 runtime executes in its place. A call site is rewritten: a jump to a stub takes
    /// the place of two instructions, of `mov $number,%eax; syscall` or `syscall; cmp` (`runtime/x32/stubs.h`). A jump over a
    /// trampoline counts as two by itself. Trampolines have pages of their own (`trampolines.h`); beside a site is other code.
    fn replaced(&self) -> u64 {
        let is_site = |address: u64| {
            let page = address & !0xfff;
            self.executed.range(page..page + 0x1000).any(|near| !self.into_runtime.contains_key(near))
        };
        self.into_runtime.iter().filter(|(address, _)| is_site(**address)).map(|(_, times)| times).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an x32 program: its loop at 0x401000 with a `rep stosb`, a stub of the runtime, which has no name, and a function of it;
    /// then two calls of a site and three of another, whose jump goes over a trampoline.
    const FILE: &str = "version: 1\npid: 7\npart: 1\ndesc: Trigger: Client Request: micro empty 1\nevents: Ir\nsummary: 85\n\n\
                        fn=0x0000000000401000\n0x401000 40\ncalls=1 0x100410000 \n0x401000 30\n0x401004 8\njcnd=7/8 0x401004 \n0x401004 \n\
                        0x100402230 7\nfn=door\n0x100410000 20\n0x100410004 10\njcnd=9/10 0x100410004 \n0x100410004 \n\ntotals: 90\n\
                        part: 2\ndesc: Trigger: Client Request: micro empty 2\nsummary: 138\nfn=0x0000000000401000\n0x401000 100\n\
                        0x401010 2\njump=2 0x1004019f0 \n0x401010 \n0x401020 3\njump=3 0x402000 \n0x401020 \n0x402000 3\n\
                        jump=3 0x100402230 \n0x402000 \nfn=door\n0x100410000 30\n\ntotals: 138\n\
                        part: 3\ndesc: Trigger: Program termination\ntotals: 999\n";

    #[test]
    fn each_dump_has_its_total_and_neither_repetitions_nor_the_x32_runtimes_code_are_in_it() {
        let totals = |is_x32| -> Vec<(String, f64, f64)> {
            let all = totals_of(FILE, is_x32).into_iter();
            all.map(|(label, counted)| (label, counted.program, counted.runtime)).collect()
        };
        assert_eq!(totals(false), [("empty 1".to_owned(), 69.0, 0.0), ("empty 2".to_owned(), 138.0, 0.0)]);
        // The second: 138 less 30 of the runtime, and two instructions that it executes at the first site.
        assert_eq!(totals(true), [("empty 1".to_owned(), 41.0, 37.0), ("empty 2".to_owned(), 110.0, 30.0)]);
    }

    #[test]
    fn an_operations_instructions_are_those_of_its_loop_less_the_empty_one() {
        let of = |label: &str, program, runtime| (label.to_owned(), Counted { program, runtime });
        let totals: Totals = [
            of("empty 1", 78.0, 0.0),
            of("empty 2", 138.0, 0.0),
            of("add4 1", 723.0, 320.0),
            of("add4 2", 1423.0, 640.0),
        ]
        .into_iter()
        .collect();
        let output = "micro 1\ncount empty 20 1\ncount add4 20 32\nno-count micro.pipe two processes\n";
        assert_eq!(instructions("add4", output, &totals), Ok(Counted { program: 1.0, runtime: 0.5 }));
        assert_eq!(instructions("pipe", output, &totals).unwrap_err(), "two processes");
        assert_eq!(instructions("mul4", output, &totals).unwrap_err(), "the suite did not count it");
    }
}
