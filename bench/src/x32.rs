//! x32 programs under the runtime, each beside the same program built for x86-64 in the same run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Context};

use crate::cost::{spent, Spent};
use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// A kind of call, as `bench/programs/calls.c` names it.
struct Kind {
    name: &'static str,
    what: &'static str,
    threshold: Option<&'static Threshold>,
}

/// What the calls of some kinds may cost.
struct Threshold {
    what: &'static str,
    /// The largest ratio that reaches the bar, and what it is a ratio to.
    most: f64,
    beside: Beside,
}

/// The x86-64 program, as it is or with the runtime's dispatch armed around it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Beside {
    Plain,
    Armed,
}

const PASSED_ON: Threshold =
    Threshold { what: "a call that is passed on", most: 1.10, beside: Beside::Armed };
const CLOCK: Threshold = Threshold { what: "clock_gettime", most: 1.15, beside: Beside::Plain };
const TRANSLATED: Threshold =
    Threshold { what: "a call that is translated", most: 1.30, beside: Beside::Armed };
const SIGNAL: Threshold = Threshold { what: "a signal", most: 1.50, beside: Beside::Armed };
const EXEC: Threshold = Threshold { what: "a fork with an exec", most: 1.30, beside: Beside::Armed };
const THREAD: Threshold = Threshold { what: "a thread", most: 1.50, beside: Beside::Armed };

const THRESHOLDS: [&Threshold; 6] = [&PASSED_ON, &CLOCK, &TRANSLATED, &SIGNAL, &EXEC, &THREAD];

const KINDS: [Kind; 15] = [
    Kind { name: "getppid", what: "getppid", threshold: Some(&PASSED_ON) },
    Kind { name: "read", what: "read of 1 byte", threshold: Some(&PASSED_ON) },
    Kind { name: "write", what: "write of 1 byte", threshold: Some(&PASSED_ON) },
    Kind { name: "futex", what: "futex wake", threshold: Some(&PASSED_ON) },
    Kind { name: "clock_gettime", what: "clock_gettime", threshold: Some(&CLOCK) },
    Kind { name: "readdir", what: "directory, opened, read and closed", threshold: Some(&TRANSLATED) },
    Kind { name: "ioctl", what: "ioctl FIONREAD", threshold: Some(&TRANSLATED) },
    Kind { name: "message", what: "sendmsg and recvmsg", threshold: Some(&TRANSLATED) },
    Kind { name: "writev", what: "writev of 2 pieces", threshold: Some(&TRANSLATED) },
    Kind { name: "mmap", what: "mmap and munmap of a page", threshold: None },
    Kind { name: "large_mmap", what: "mmap and munmap of 1 GiB", threshold: None },
    Kind { name: "attach", what: "shmat and shmdt of 1 GiB", threshold: None },
    Kind { name: "signal", what: "signal to oneself and back", threshold: Some(&SIGNAL) },
    Kind { name: "fork_exec", what: "fork, exec, wait", threshold: Some(&EXEC) },
    Kind { name: "thread", what: "thread, and join", threshold: Some(&THREAD) },
];
const START_BAR: f64 = 1.3;
/// Nanoseconds that the first call of a site may cost besides, of sixteen in a page (`call_new_sites`).
const NEW_SITE_BAR: f64 = 3000.0;
const NEW_SITES: f64 = 16.0;
const RESIDENT_BAR: f64 = 300.0;
const OWN_INSTRUCTIONS_BAR: f64 = 0.001;
const X32: [&str; 3] = ["-mx32", "-idirafter", "/usr/include/x86_64-linux-gnu"];

/// Measures all of it.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let runtime = widthwise_x32run::place_in(work_directory.folder())?;
    let bench = Bench { work_directory, runtime };
    bench.build()?;
    let mut table =
        Table::new(["", "x86-64", "x86-64, armed", "x32", "x32 / x86-64", "x32 / armed", "threshold"]);
    let mut missed: Vec<String> = Vec::new();
    let calls = bench.calls(&mut table, &mut missed)?;
    let start = bench.start_up(&mut table, &mut missed)?;
    let resident = bench.resident(&mut table, &mut missed)?;
    bench.programs(&mut table)?;
    let own = bench.instructions(&mut table, &mut missed)?;
    Ok(Section {
        bar: format!(
            "of the same program built for x32 and for x86-64, with the same dispatch armed around both (clock_gettime without): \
             {}, the start of a dynamic program {START_BAR:.2} times; the first call of a new site costs at most {} µs more; \
             the runtime's own resident memory is at most {RESIDENT_BAR} KiB; once a program has started, at most {} % of the \
             instructions are the runtime's.",
            THRESHOLDS.map(|one| format!("{} costs at most {:.2} times as much", one.what, one.most)).join(", "),
            NEW_SITE_BAR / 1000.0,
            OWN_INSTRUCTIONS_BAR * 100.0,
        ),
        method: format!(
            "Both sides take turns. Calls: nanoseconds, the least of {} short spells of some tenths of a millisecond; \
             `armed` is the x86-64 program with Syscall User Dispatch switched on as the runtime switches it on, which every call \
             of the process then pays for, threads and children excepted. Start-up and programs: wall and CPU time of the whole process, medians. \
             Resident: what `x32run --stats` reads of its own mappings in /proc/self/smaps at the end. Instructions: cachegrind's, \
             the storm of {} steps less that of {}, so that the start is left out; \
             what has a name is the runtime's, the rest the x32 program's. They are compared with those of the same \
             program under the same simulation, not with a run on a kernel that has x32.",
            bench.spells(),
            2 * bench.steps(),
            bench.steps(),
        ),
        commands: vec![
            typed("./calls-x86-64", &bench.calls_words("x86-64")),
            typed("./calls-x86-64", &bench.armed_words()),
            bench.typed_x32("calls", &bench.calls_words("x32")),
            bench.typed_x32("hello", &[]),
            bench.typed_x32("storm", &[bench.storm().to_string()]),
            format!("valgrind --tool=cachegrind {}", bench.typed_x32("storm", &[bench.steps().to_string()])),
        ],
        table,
        reached: missed.is_empty(),
        sentence: format!(
            "{calls}; a dynamic program starts in {start:.2} times the time, {resident:.0} KiB are the runtime's, and {:.3} % of \
             the instructions{}.",
            own * 100.0,
            if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join(", ")) },
        ),
    })
}

/// The programs, built for both, and what starts those for x32.
struct Bench<'a> {
    work_directory: &'a WorkDirectory,
    runtime: PathBuf,
}

impl Bench<'_> {
    fn build(&self) -> anyhow::Result<()> {
        for (abi, options) in [("x86-64", &[][..]), ("x32", &X32[..])] {
            let build = |source: &str, more: &[&str]| {
                let name = source.split(['/', '.']).nth(2).unwrap_or(source);
                self.work_directory.build(source, &format!("{name}-{abi}"), &[options, more].concat())
            };
            build("bench/programs/calls.c", &["-pthread"])?;
            build("bench/programs/nothing.c", &["-static"])?;
            self.work_directory.build("bench/programs/nothing.c", &format!("true-{abi}"), options)?;
            build("bench/programs/hello.cc", &[])?;
            build("bench/programs/storm.cc", &[])?;
        }
        Ok(())
    }

    fn rounds(&self) -> u32 {
        self.work_directory.count(25, 2)
    }

    fn spells_each(&self) -> u32 {
        self.work_directory.count(40, 3)
    }

    fn spells(&self) -> u32 {
        self.rounds() * self.spells_each()
    }

    fn steps(&self) -> u32 {
        self.work_directory.count(1_000_000, 20_000)
    }

    fn storm(&self) -> u32 {
        self.work_directory.count(3_000_000, 20_000)
    }

    fn calls_words(&self, abi: &str) -> Vec<String> {
        words([&self.spells_each().to_string(), &format!("./nothing-{abi}")])
    }

    fn armed_words(&self) -> Vec<String> {
        [self.calls_words("x86-64"), words(["armed"])].concat()
    }

    fn typed_x32(&self, program: &str, words: &[String]) -> String {
        typed("x32run", &[vec![format!("./{program}-x32")], words.to_vec()].concat())
    }

    fn native(&self, program: &str, words: &[String]) -> Command {
        let mut command = Command::new(self.work_directory.folder().join(format!("{program}-x86-64")));
        command.args(words);
        command
    }

    fn x32(&self, program: &str, words: &[String]) -> Command {
        let mut command = Command::new(&self.runtime);
        command.arg(format!("./{program}-x32")).args(words);
        command
    }

    /// A row for each kind of call; the worst ratio for each threshold, in words.
    fn calls(&self, table: &mut Table, missed: &mut Vec<String>) -> anyhow::Result<String> {
        let mut least: [BTreeMap<String, f64>; 3] = Default::default();
        for round in 1..=self.rounds() {
            let sides = [
                self.native("calls", &self.calls_words("x86-64")),
                self.native("calls", &self.armed_words()),
                self.x32("calls", &self.calls_words("x32")),
            ];
            for (mut command, least) in sides.into_iter().zip(&mut least) {
                for line in self.work_directory.output(&mut command)?.lines() {
                    let (name, time) = line.split_once(' ').context("calls.c says a name and a time")?;
                    let time: f64 = time.parse().with_context(|| format!("calls.c printed {line:?}"))?;
                    let known = least.entry(name.to_owned()).or_insert(time);
                    *known = known.min(time);
                }
            }
            eprintln!("  calls: {round} of {}", self.rounds());
        }
        let mut worst = [0.0_f64; THRESHOLDS.len()];
        for kind in &KINDS {
            let time = |side: usize| least[side].get(kind.name).copied().context(kind.name);
            let (plain, armed, x32) = (time(0)?, time(1)?, time(2)?);
            let bar = kind.threshold.map_or(String::new(), |threshold| {
                let ratio = if threshold.beside == Beside::Plain { x32 / plain } else { x32 / armed };
                if ratio > threshold.most {
                    missed.push(format!("{} {ratio:.2}", kind.what));
                }
                for (one, worst) in THRESHOLDS.iter().zip(&mut worst) {
                    if one.what == threshold.what {
                        *worst = worst.max(ratio);
                    }
                }
                format!(
                    "{:.2}{}",
                    threshold.most,
                    if threshold.beside == Beside::Armed { " of armed" } else { "" }
                )
            });
            table.row([
                format!("{}, ns", kind.what),
                format!("{plain:.0}"),
                format!("{armed:.0}"),
                format!("{x32:.0}"),
                format!("{:.2}", x32 / plain),
                format!("{:.2}", x32 / armed),
                bar,
            ]);
        }
        let new = |side: usize| least[side].get("new_sites").copied().context("new_sites");
        let (plain, armed, x32) = (new(0)?, new(1)?, new(2)?);
        let each = (x32 - armed) / NEW_SITES;
        if each > NEW_SITE_BAR {
            missed.push(format!("the first call of a new site {each:.0} ns"));
        }
        table.row([
            "a new page with 16 calls, each made once, ns".into(),
            format!("{plain:.0}"),
            format!("{armed:.0}"),
            format!("{x32:.0}"),
            format!("{:.2}", x32 / plain),
            format!("{:.2}", x32 / armed),
            format!("{NEW_SITE_BAR:.0} ns more a call"),
        ]);
        let of =
            |(one, worst): (&&Threshold, f64)| format!("{} {worst:.2} (threshold {:.2})", one.what, one.most);
        let costs: Vec<String> = THRESHOLDS.iter().zip(worst).map(of).collect();
        Ok(format!("the largest ratios are: {}", costs.join(", ")))
    }

    /// What both take, in turns: medians of wall time and CPU time, in microseconds.
    fn beside(&self, program: &str, words: &[String], times: u32) -> anyhow::Result<[[f64; 2]; 2]> {
        let mut all: [Vec<Spent>; 2] = Default::default();
        for _ in 0..times {
            all[0].push(spent(self.work_directory, self.native(program, words))?);
            all[1].push(spent(self.work_directory, self.x32(program, words))?);
        }
        Ok(all.map(|own| {
            [|one: &Spent| one.wall, |one: &Spent| one.cpu]
                .map(|of| median(own.iter().map(of).map(|time| time.as_secs_f64() * 1e6).collect()))
        }))
    }

    fn start_up(&self, table: &mut Table, missed: &mut Vec<String>) -> anyhow::Result<f64> {
        let [native, x32] = self.beside("true", &[], self.work_directory.count(400, 3))?;
        let ratio = x32[0] / native[0];
        if ratio > START_BAR {
            missed.push(format!("starting `true` {ratio:.2}"));
        }
        table.row(row(
            "dynamic program that does nothing, wall time, µs",
            native[0],
            x32[0],
            0,
            &format!("{START_BAR:.2}"),
        ));
        let [native, x32] = self.beside("hello", &[], self.work_directory.count(400, 3))?;
        table.row(row("dynamic C++ hello, wall time, µs", native[0], x32[0], 0, ""));
        table.row(row("dynamic C++ hello, CPU time, µs", native[1], x32[1], 0, ""));
        Ok(ratio)
    }

    /// KiB of the runtime in a dynamic C++ program, by its own account.
    fn resident(&self, table: &mut Table, missed: &mut Vec<String>) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.runtime);
        let done =
            command.args(["--stats", "./hello-x32"]).current_dir(self.work_directory.folder()).output()?;
        let printed = String::from_utf8_lossy(&done.stderr).into_owned();
        let kib = printed
            .split_once(" KiB of the resident")
            .and_then(|(before, _)| before.rsplit(' ').next()?.parse::<f64>().ok())
            .with_context(|| format!("x32run --stats printed {printed:?}"))?;
        if kib > RESIDENT_BAR {
            missed.push(format!("resident {kib:.0} KiB"));
        }
        table.row([
            "the runtime's own resident memory, KiB".into(),
            String::new(),
            String::new(),
            format!("{kib:.0}"),
            String::new(),
            String::new(),
            format!("{RESIDENT_BAR:.0} KiB"),
        ]);
        Ok(kib)
    }

    /// Programs that compute: for information, since what x32 gains here is its own.
    fn programs(&self, table: &mut Table) -> anyhow::Result<()> {
        let words = [self.storm().to_string()];
        let [native, x32] = self.beside("storm", &words, self.work_directory.count(15, 1))?;
        table.row(row("std::map storm, wall time, ms", native[0] / 1e3, x32[0] / 1e3, 0, ""));
        table.row(row("std::map storm, CPU time, ms", native[1] / 1e3, x32[1] / 1e3, 0, ""));
        Ok(())
    }

    /// The runtime's share of the storm's instructions once it has started.
    fn instructions(&self, table: &mut Table, missed: &mut Vec<String>) -> anyhow::Result<f64> {
        let (once, twice) = (self.counted(self.steps())?, self.counted(2 * self.steps())?);
        let [native, program, runtime] = [0, 1, 2].map(|index| twice[index] - once[index]);
        let share = runtime / program;
        if share > OWN_INSTRUCTIONS_BAR {
            missed.push(format!("{:.2} % of the instructions", share * 100.0));
        }
        table.row(row("std::map storm, millions of instructions", native / 1e6, program / 1e6, 1, ""));
        table.row([
            "the runtime's besides".into(),
            String::new(),
            String::new(),
            format!("{:.3}", runtime / 1e6),
            String::new(),
            String::new(),
            "0.1 %".into(),
        ]);
        Ok(share)
    }

    /// Instructions of the storm: of x86-64, of the x32 program, of the runtime.
    fn counted(&self, steps: u32) -> anyhow::Result<[f64; 3]> {
        let words = [steps.to_string()];
        let mut sums = Vec::new();
        for command in [self.native("storm", &words), self.x32("storm", &words)] {
            let mut simulated = Command::new("setarch");
            simulated.args(["-R", "valgrind", "-q", "--tool=cachegrind", "--cachegrind-out-file=counts"]);
            simulated.arg(command.get_program()).args(command.get_args());
            self.work_directory.output(&mut simulated)?;
            sums.push(shares(&std::fs::read_to_string(self.work_directory.folder().join("counts"))?)?);
        }
        Ok([sums[0].0 + sums[0].1, sums[1].1, sums[1].0])
    }
}

/// The instructions in cachegrind's output: of functions that have a name, and of those that have none. valgrind reads no
/// symbols of 32-bit files.
fn shares(text: &str) -> anyhow::Result<(f64, f64)> {
    let (mut named, mut nameless, mut has_name) = (0.0, 0.0, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            has_name = name != "???";
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            let count = line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
            let count = count.with_context(|| format!("cachegrind wrote {line:?}"))?;
            *(if has_name { &mut named } else { &mut nameless }) += count;
        }
    }
    if named + nameless == 0.0 {
        bail!("cachegrind counted nothing");
    }
    Ok((named, nameless))
}

fn row(what: &str, native: f64, x32: f64, digits: usize, bar: &str) -> [String; 7] {
    [
        what.to_owned(),
        format!("{native:.digits$}"),
        String::new(),
        format!("{x32:.digits$}"),
        format!("{:.2}", x32 / native),
        String::new(),
        bar.to_owned(),
    ]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_a_name_are_distinguished() {
        let text = "cmd: x\nevents: Ir Dr\nfl=???\nfn=???\n0 30 4\nfn=door\n0 5 1\n7 2 1\nsummary: 37 6\n";
        assert_eq!(shares(text).unwrap(), (7.0, 30.0));
        assert!(shares("events: Ir\n").is_err());
    }
}
