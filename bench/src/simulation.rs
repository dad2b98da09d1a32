//! The simulation library beside what its users would take otherwise: Boost.Context, a binary heap, Boost.odeint, SimPy.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Context};

use crate::campaign::{self, Campaign};
use crate::section::{Section, Table};
use crate::work_directory::{words, WorkDirectory};

/// The peer from Python's package index, as it was when the bar was set.
const SIMPY: &str = "simpy==4.1.1";
const CUSTOMERS: &str = "1000000";

/// What must be reached, each a ratio or a number of bytes: at most.
const SWITCH: f64 = 0.25;
const TURN: f64 = 8.0;
const OWN_STACKS: f64 = 1.0;
const MM1: f64 = 1.0 / 60.0;
const BYTES: [(&str, f64); 2] = [("x86-64", 128.0), ("x32", 96.0)];
const EVENT_LIST: f64 = 0.8;
const PRECISION: f64 = 1.0;

/// One figure beside another.
struct Line {
    what: String,
    own: String,
    beside: String,
    ratio: f64,
    bar: Option<f64>,
}

/// Measures all of it.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let rounds = work_directory.count(11, 1).to_string();
    let folder =
        built(work_directory, "x86-64", &["switches", "event_lists", "memory", "mm1", "work_precision"])?;
    let result = |program: &str| work_directory.output(Command::new(folder.join(program)).arg(&rounds));
    let mut lines = switches(&result("switches")?)?;
    lines.extend(event_list(&result("event_lists")?)?);
    // A quick look does not wait for another ABI's build.
    let abis = if work_directory.quick { &BYTES[..1] } else { &BYTES[..] };
    for &(abi, bar) in abis {
        let folder = built(work_directory, abi, &["memory"])?;
        let program = folder.join("memory").display().to_string();
        let mut command = match abi {
            "x32" => work_directory.widthwise(&words(["exec", &program])),
            _ => Command::new(program),
        };
        let bytes = waiting(&work_directory.output(&mut command)?)?;
        let what = format!("a waiting process without locals, resident bytes, {abi}");
        lines.push(Line {
            what,
            own: format!("{bytes:.1}"),
            beside: String::new(),
            ratio: bytes,
            bar: Some(bar),
        });
    }
    let precision = precision(&result("work_precision")?)?;
    lines.extend(precision.iter().flat_map(Contest::lines));
    let mut commands = Vec::new();
    if !work_directory.quick {
        lines.push(beside_simpy(work_directory, &folder.join("mm1"), &mut commands)?);
    }
    let mut table = Table::new(["", "own", "beside", "ratio", "threshold"]);
    for line in &lines {
        let bar = line.bar.map_or(String::new(), |bar| format!("{bar:.3}"));
        table.row([
            line.what.clone(),
            line.own.clone(),
            line.beside.clone(),
            format!("{:.3}", line.ratio),
            bar,
        ]);
    }
    let missed: Vec<&str> = lines
        .iter()
        .filter(|line| line.bar.is_some_and(|bar| line.ratio > bar))
        .map(|line| line.what.as_str())
        .collect();
    let worst = precision.iter().map(Contest::worst).fold(0.0, f64::max);
    Ok(Section {
        bar: format!(
            "hot, a model's event on coroutines costs at most {SWITCH} of the same on Boost.Context; a turn through the dispatcher over 30,000 processes at most {TURN} hot \
             C++20 resumes; a switch of own stacks at most Boost.Context's; M/M/1 takes at most 1/60 of SimPy's CPU time; a waiting process \
             {} bytes on x86-64 and {} on x32; an event list of a million at most {EVENT_LIST} of the binary heap's cost; evaluations and \
             time for equal errors at most Boost.odeint's, on the mean of the errors.",
            BYTES[0].1, BYTES[1].1
        ),
        method: format!(
            "The programs of `sim/bench`, in which the compared programs run alternately; medians of {rounds} rounds and of their ratios. *Hot*: two \
             processes in turn. A *turn* is the cost of `co_await wait(0.0)` for a process, including the dispatcher and its event list. Ratios \
             of turns are to a bare C++20 coroutine's resume, hot, one way. M/M/1: a million customers, the same model as SimPy's users \
             write it ({SIMPY}, from its package index), CPU time of the whole process by a campaign. Work for an error: of the best of tsit5, vern7, vern8 and rkf8 beside the \
             best of odeint's dopri5 and fehlberg78, read off between runs at tolerances from 0.1 to 1e-13; rodas4 beside its rosenbrock4. That \
             traces are the same in every ABI, on every back-end and event list, and that methods have their order, is tested by `make test-sim`."
        ),
        commands,
        table,
        reached: missed.is_empty(),
        sentence: format!(
            "{}; the highest ratio at a single error is {worst:.2}{}.",
            lines
                .iter()
                .filter(|line| line.bar == Some(SWITCH) || line.bar == Some(TURN) || line.bar == Some(MM1))
                .map(|line| format!("{}: {:.3}", line.what, line.ratio))
                .collect::<Vec<_>>()
                .join("; "),
            if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join(", ")) },
        ),
    })
}

/// Builds some of `sim/bench` by a complete preset; returns their folder.
pub fn built(work_directory: &WorkDirectory, preset: &str, targets: &[&str]) -> anyhow::Result<PathBuf> {
    let library = work_directory.repository().join("sim");
    for arguments in [
        vec!["--preset", preset],
        [&["--build", "--preset", preset, "--parallel", "2", "--target"], targets].concat(),
    ] {
        let done = Command::new("cmake")
            .args(&arguments)
            .current_dir(&library)
            .output()
            .context("cmake could not be started: apt-get install cmake")?;
        if !done.status.success() {
            bail!("cmake {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim());
        }
    }
    Ok(work_directory.repository().join("target/sim").join(preset).join("bench"))
}

/// A contestant, as `bench::compare` of `sim/bench/timing.hpp` prints it beneath a contest's title.
struct Contestant<'a> {
    title: &'a str,
    name: String,
    cost: f64,
    ratio: f64,
}

fn contestants(text: &str) -> Vec<Contestant<'_>> {
    let mut title = "";
    let mut all = Vec::new();
    for line in text.lines() {
        let all_words: Vec<&str> = line.split_whitespace().collect();
        match all_words[..] {
            [ref name @ .., cost, _, "ratio", ratio] if line.starts_with("  ") => {
                if let (Ok(cost), Ok(ratio)) = (cost.parse(), ratio.parse()) {
                    all.push(Contestant { title, name: name.join(" "), cost, ratio });
                }
            }
            _ => title = line.rsplit_once(" (").map_or(line, |(title, _)| title),
        }
    }
    all
}

fn found<'a, 'b>(all: &'a [Contestant<'b>], title: &str, name: &str) -> anyhow::Result<&'a Contestant<'b>> {
    all.iter()
        .find(|one| one.title == title && one.name == name)
        .with_context(|| format!("the benchmark says nothing of {name:?} in {title:?}"))
}

/// Of `switches`: which contests count, and what each contestant is compared with.
fn switches(text: &str) -> anyhow::Result<Vec<Line>> {
    let all = contestants(text);
    let boost = "Boost.Context fiber";
    let resume = "hot raw C++20 resume";
    let lines = [
        (
            "raw switch, one way, 2 processes",
            "C++20 coroutine",
            boost,
            None,
            "a bare C++20 switch, hot, to Boost.Context's",
        ),
        (
            "event of a model, 2 processes",
            "coroutine",
            "boost",
            Some(SWITCH),
            "a model's event on coroutines, hot, to the same on Boost.Context",
        ),
        (
            "turn through the dispatcher, 2 processes",
            "coroutine",
            resume,
            None,
            "a turn, hot, in hot resumes",
        ),
        (
            "turn through the dispatcher, 30,000 processes",
            "coroutine",
            resume,
            Some(TURN),
            "a turn over 30,000 processes, in hot resumes",
        ),
        (
            "raw switch, one way, 2 processes",
            "own assembly",
            boost,
            Some(OWN_STACKS),
            "a switch of own stacks, hot, to Boost.Context's",
        ),
        (
            "raw switch, one way, 30,000 processes",
            "own assembly",
            boost,
            Some(OWN_STACKS),
            "the same over 30,000 processes",
        ),
        (
            "event of a model, 30,000 processes",
            "assembly",
            "boost",
            Some(OWN_STACKS),
            "a model's event on own stacks, 30,000 processes",
        ),
    ];
    lines
        .into_iter()
        .map(|(title, own, other, bar, what)| {
            let (own, other) = (found(&all, title, own)?, found(&all, title, other)?);
            let shown = |cost: f64| format!("{cost:.1} ns");
            let what = what.to_owned();
            Ok(Line { what, own: shown(own.cost), beside: shown(other.cost), ratio: own.ratio, bar })
        })
        .collect()
}

fn event_list(text: &str) -> anyhow::Result<Vec<Line>> {
    let all = contestants(text);
    [(1000, None), (1_000_000, Some(EVENT_LIST))]
        .into_iter()
        .map(|(pending, bar)| {
            let title = format!("{pending} pending, one hold with its exponential");
            let (own, other) =
                (found(&all, &title, "automatic")?, found(&all, &title, "std::priority_queue")?);
            let shown = |cost: f64| format!("{cost:.0} ns");
            let what = format!("an event of {pending} pending, to the binary heap's");
            Ok(Line { what, own: shown(own.cost), beside: shown(other.cost), ratio: own.ratio, bar })
        })
        .collect()
}

/// Of `memory`: the bytes of a process that is a coroutine.
fn waiting(text: &str) -> anyhow::Result<f64> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find_map(|words| match words[..] {
            ["coroutine", _, "processes", bytes, ..] => bytes.parse().ok(),
            _ => None,
        })
        .with_context(|| format!("the benchmark says nothing of coroutines:\n{text}"))
}

/// One problem of `work_precision`: ratios of evaluations and of time, error by error.
struct Contest {
    problem: String,
    ratios: Vec<[f64; 2]>,
}

impl Contest {
    fn mean(&self, of: usize) -> f64 {
        let sum: f64 = self.ratios.iter().map(|ratios| ratios[of].ln()).sum();
        (sum / self.ratios.len() as f64).exp()
    }

    fn worst(&self) -> f64 {
        self.ratios.iter().flatten().copied().fold(0.0, f64::max)
    }

    fn lines(&self) -> Vec<Line> {
        ["evaluations", "time"]
            .into_iter()
            .enumerate()
            .map(|(of, work)| {
                let highest = self.ratios.iter().map(|ratios| ratios[of]).fold(0.0, f64::max);
                let own = format!("at most {highest:.2}");
                let beside = format!("{} errors", self.ratios.len());
                let what = format!("{}: {work} for equal errors, mean", self.problem);
                Line { what, own, beside, ratio: self.mean(of), bar: Some(PRECISION) }
            })
            .collect()
    }
}

fn precision(text: &str) -> anyhow::Result<Vec<Contest>> {
    let mut problem = "";
    let mut counts = false;
    let mut all: Vec<Contest> = Vec::new();
    for line in text.lines() {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if !line.starts_with(' ') {
            problem = line;
        } else if !line.starts_with("    ") {
            counts = line.contains("the best of ours") || line.contains("rodas4 beside");
            if counts {
                all.push(Contest { problem: problem.to_owned(), ratios: Vec::new() });
            }
        } else if let ([_, _, _, evaluations, _, _, time], true, Some(contest)) =
            (&numbers[..], counts, all.last_mut())
        {
            contest.ratios.push([*evaluations, *time]);
        }
    }
    if all.len() != 4 || all.iter().any(|contest| contest.ratios.is_empty()) {
        bail!("the benchmark does not tell of four problems:\n{text}");
    }
    Ok(all)
}

/// M/M/1 with a million customers, by a campaign.
fn beside_simpy(
    work_directory: &WorkDirectory,
    mm1: &std::path::Path,
    commands: &mut Vec<String>,
) -> anyhow::Result<Line> {
    let model = work_directory.repository().join("sim/bench/mm1_simpy.py");
    work_directory
        .output(Command::new("python3").args(["-m", "venv", "python"]))
        .context("apt-get install python3-venv")?;
    work_directory.output(
        Command::new("python/bin/pip")
            .args(["install", "--quiet", SIMPY])
            .current_dir(work_directory.folder()),
    )?;
    work_directory.script("mm1", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", mm1.display()))?;
    work_directory
        .script("mm1-simpy", &format!("#!/bin/sh\nexec python/bin/python '{}' \"$@\"\n", model.display()))?;
    let asked = campaign::arguments(
        &["ours=./mm1", "simpy=./mm1-simpy"],
        6,
        &["--metric", "cpu", "--check", "off"],
        &format!("{{binary}} {CUSTOMERS}"),
    );
    commands.push(campaign::command(&asked));
    let campaign = Campaign::run(work_directory, &asked)?;
    let times = campaign.verdict("simpy", "cpu")?.ratio.context("no ratio to SimPy is known")?;
    let seconds = |name: &str| campaign.median(name, "cpu").map(|ns| format!("{:.2} s", ns / 1e9));
    Ok(Line {
        what: format!("M/M/1 with {CUSTOMERS} customers, to SimPy's (1/{times:.0})"),
        own: seconds("ours")?,
        beside: seconds("simpy")?,
        ratio: 1.0 / times,
        bar: Some(MM1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_print_is_read_as_they_print_it() {
        let text = "event of a model, 2 processes (5 rounds)\n  coroutine                        23.587 ns   ratio 0.221\n  \
                    boost                           102.375 ns   ratio 1.000\n";
        let all = contestants(text);
        let one = found(&all, "event of a model, 2 processes", "coroutine").unwrap();
        assert_eq!((one.cost, one.ratio), (23.587, 0.221));
        assert!(found(&all, "event of a model", "coroutine").is_err());
        assert_eq!(
            waiting("resident\n  coroutine        500000 processes       122.8 bytes each\n").unwrap(),
            122.8
        );
    }

    #[test]
    fn only_the_best_of_each_side_is_judged() {
        let one = |problem: &str, title: &str| {
            format!(
                "{problem}\n  {title}\n    error       evaluations       theirs    ratio     time, us       theirs    ratio\n    \
                 1e-02               200          400    0.500         2.00         8.00    0.250\n    \
                 1e-03               200          100    2.000         2.00         2.00    1.000\n    \
                 mean of 2                    1.000         0.500\n  tsit5 beside odeint dopri5\n    \
                 1e-02               200          400    9.000         2.00         8.00    9.000\n"
            )
        };
        let best = "the best of ours beside the best of odeint's";
        let text = one("a", best)
            + &one("b", best)
            + &one("c", best)
            + &one("d", "rodas4 beside odeint rosenbrock4");
        let all = precision(&text).unwrap();
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|contest| contest.ratios == [[0.5, 0.25], [2.0, 1.0]]));
        assert!((all[0].mean(0) - 1.0).abs() < 1e-12 && (all[0].mean(1) - 0.5).abs() < 1e-12);
        assert!(precision("a\n").is_err());
    }
}
