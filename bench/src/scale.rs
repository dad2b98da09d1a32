//! `scale` on programs whose growth is known, on the toy reconstruction, and what it costs itself.

use std::time::Instant;

use anyhow::{bail, Context};
use serde_json::Value;

use crate::section::{Section, Table};
use crate::work_directory::{words, WorkDirectory};

/// An interval may be so wide to either side, as a share of the truth.
const WIDTH: f64 = 0.03;
/// Sums over processes against the system's counters.
const AGREEMENT: f64 = 0.02;
/// What one process may cost to start, to watch and to account for, in milliseconds.
const COST_MS: f64 = 1.0;

/// A program whose growth is known.
struct Known {
    what: &'static str,
    run: &'static str,
    options: &'static str,
    /// Where the figure stands in the report's first table.
    path: &'static [&'static str],
    /// Nothing where only the width is judged.
    truth: Option<f64>,
    unit: f64,
    rounds: u32,
}

const MIB: f64 = 1_048_576.0;
const SPEED_UP: &[&str] = &["rows", "1", "speed_up"];

const KNOWN: [Known; 6] = [
    Known {
        what: "speed-up of 2, computing for known CPU times",
        run: "fork {processes} {events} spin=2 event=10000",
        options: "--events 40 --memory=0",
        path: SPEED_UP,
        truth: Some(2.0),
        unit: 1.0,
        rounds: 40,
    },
    Known {
        what: "speed-up of 2, copying 64 MiB an event",
        run: "fork {processes} {events} stream=64",
        options: "--events 40 --memory=0",
        path: SPEED_UP,
        truth: None,
        unit: 1.0,
        rounds: 80,
    },
    Known {
        what: "speed-up of 2 threads under one lock",
        run: "threads {processes} {events} spin=2 event=10000 lock=100",
        options: "--mode threads --events 40 --memory=0",
        path: SPEED_UP,
        truth: Some(1.0),
        unit: 1.0,
        rounds: 40,
    },
    Known {
        what: "sequential part of 0.3 s",
        run: "fork {processes} {events} seq=300000 event=10000",
        options: "--events 40 --memory=0",
        path: &["sequential", "regression", "intercept"],
        truth: Some(0.3),
        unit: 1.0,
        rounds: 20,
    },
    Known {
        what: "its fork, after 0.3 s",
        run: "fork {processes} {events} seq=300000 event=10000",
        options: "--events 40 --memory=0",
        path: &["sequential", "at_fork"],
        truth: Some(0.3),
        unit: 1.0,
        rounds: 20,
    },
    Known {
        what: "one more child that writes to 16 of 96 MiB and has 8 of its own, MiB",
        run: "fork {processes} {events} shared=96 touch=16 own=8 hold=300",
        options: "--events 4 --memory=6",
        path: &["marginal", "slope"],
        truth: Some(24.0),
        unit: MIB,
        rounds: 20,
    },
];

/// Measures known truths, agreement with the system, and cost.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let header = format!("-I{}", work_directory.repository().join("runtime/marks").display());
    work_directory.build("tests/programs/workers.c", "workers", &[&header, "-pthread"])?;
    work_directory.build("bench/programs/nothing.c", "nothing", &[])?;
    let link = work_directory.folder().join("workloads");
    if !link.exists() {
        std::os::unix::fs::symlink(work_directory.repository().join("workloads"), &link)?;
    }
    let mut table = Table::new(["", "truth", "measured", "interval", "half-width"]);
    let mut commands = Vec::new();
    let mut reached = true;
    let mut widest: f64 = 0.0;
    let mut held = 0;
    for known in &KNOWN {
        let run = format!("{{binary}} {}", known.run);
        let mut asked =
            words(["scale", "--binary", "workers=./workers", "--processes", "1,2", "--run", &run]);
        asked.extend(known.options.split(' ').map(str::to_owned));
        asked.extend(words(["--rounds", &work_directory.count(known.rounds, 2).to_string()]));
        let report = measured(work_directory, &asked)?;
        if !commands.contains(&reported(&asked)) {
            commands.push(reported(&asked));
        }
        let figure = at(&report["tables"][0], known.path);
        if figure["verdict"] == "withheld" {
            // Somebody else had the CPUs: nothing was shown, and the row says so.
            reached = false;
            let reason = figure["reason"].as_str().unwrap_or_default().to_owned();
            let truth = known.truth.map_or(String::new(), |truth| format!("{truth}"));
            table.row([known.what.to_owned(), truth, "withheld".into(), reason, String::new()]);
            continue;
        }
        let number = |key: &str| figure[key].as_f64().map(|value| value / known.unit);
        let estimate = number("estimate").with_context(|| format!("{}: {figure}", known.what))?;
        let (low, high) = (number("low").unwrap_or(estimate), number("high").unwrap_or(estimate));
        let half = (high - estimate).max(estimate - low) / known.truth.unwrap_or(estimate);
        widest = widest.max(half);
        reached &= half <= WIDTH;
        if let Some(truth) = known.truth {
            // What a process costs by itself is in what is measured: a hundredth of the truth is let go.
            let holds = low <= truth * 1.01 && high >= truth * 0.99;
            reached &= holds;
            held += u32::from(holds);
        }
        table.row([
            known.what.to_owned(),
            known.truth.map_or(String::new(), |truth| format!("{truth}")),
            format!("{estimate:.3}"),
            format!("{low:.3} … {high:.3}"),
            format!("{:.1} %", 100.0 * half),
        ]);
    }
    let (furthest, saving) = reconstruction(work_directory, &mut table, &mut commands)?;
    reached &= furthest <= AGREEMENT;
    let cost = cost(work_directory, &mut commands)?;
    reached &= cost <= COST_MS;
    table.row([
        "a process of 200 that do nothing, ms".into(),
        String::new(),
        format!("{cost:.2}"),
        String::new(),
        String::new(),
    ]);
    let truths = KNOWN.iter().filter(|known| known.truth.is_some()).count();
    Ok(Section {
        bar: format!(
            "on programs with known scaling, intervals include the truth (within 1 %, for the memory of a process alone) and are at most {:.0} % wide \
             to either side on 2 CPUs; sums of anonymous memory over processes agree with the system's AnonPages within {:.0} %; a process costs at \
             most {COST_MS} ms to start, to watch and to account for.",
            100.0 * WIDTH,
            100.0 * AGREEMENT
        ),
        method: "Children, jobs or threads that compute, copy, wait for one lock or sleep for known times, and that share, write and allocate known amounts of memory (`tests/programs/workers.c`). The speed-up of copying depends on the machine: only the interval's width is checked. The toy \
                 reconstruction with 1, 2, 4 and 8 children and jobs. The cost is that of ten additional rounds of 400 processes that do nothing, including their start and end."
            .to_owned(),
        commands,
        table,
        reached,
        sentence: format!(
            "{held} of {truths} truths are in their intervals, the widest interval is {:.1} % to one side; sums of memory are within {:.1} % of the system's (8 children use {:.0} % less than 8 jobs); a process costs {cost:.2} ms.",
            100.0 * widest,
            100.0 * furthest,
            100.0 * saving
        ),
    })
}

/// The toy reconstruction as the paper's table: how far sums are from the system's counters at most, and what eight
/// children save against eight jobs.
fn reconstruction(
    work_directory: &WorkDirectory,
    table: &mut Table,
    commands: &mut Vec<String>,
) -> anyhow::Result<(f64, f64)> {
    let asked = words([
        "scale",
        "workloads/reco",
        "--build",
        "make",
        "--abi",
        "x86-64",
        "--processes",
        "1,2,4,8",
        "--mode",
        "fork,jobs",
        "--events",
        "16",
        "--run",
        "{build}/reco --processes {processes} --events {events} --conditions 50M --keep 20",
        "--jobs-run",
        "{build}/reco --skip {first} --events {events} --conditions 50M --keep 20",
        "--check",
        "off",
        "--rounds",
        "1",
        "--warmup",
        "0",
        // On fewer CPUs a run in three of 8 children has no reading while all are near their peaks.
        "--memory=3",
    ]);
    commands.push(reported(&asked));
    let report = measured(work_directory, &asked)?;
    let mut furthest: Option<f64> = None;
    let mut largest = Vec::new();
    for part in report["tables"].as_array().context("no tables")? {
        for row in part["rows"].as_array().context("no rows")? {
            let memory = &row["memory"];
            let (Some(own), Some(system)) =
                (memory["anonymous"].as_f64(), memory["system_anonymous"].as_f64())
            else {
                continue;
            };
            let off = (own / system - 1.0).abs();
            furthest = Some(furthest.map_or(off, |furthest| furthest.max(off)));
            let name = format!(
                "AnonPages of {} {}, MiB",
                row["processes"],
                part["mode"].as_str().unwrap_or_default()
            );
            table.row([
                name,
                format!("{:.0}", system / MIB),
                format!("{:.0}", own / MIB),
                String::new(),
                format!("{:+.1} %", 100.0 * (own / system - 1.0)),
            ]);
            if row["processes"] == 8 {
                largest.push(own);
            }
        }
    }
    let saving = match largest[..] {
        [fork, jobs] => 1.0 - fork / jobs,
        _ => bail!(
            "in no run was the memory of 8 children, or of 8 jobs, read while all were near their peaks"
        ),
    };
    Ok((furthest.context("no sum of memory could be compared with the system's")?, saving))
}

/// Milliseconds for one process of many that do nothing.
fn cost(work_directory: &WorkDirectory, commands: &mut Vec<String>) -> anyhow::Result<f64> {
    let more = work_directory.count(10, 1);
    let with = |rounds: u32| {
        let rounds = rounds.to_string();
        words([
            "scale",
            "--binary",
            "nothing=./nothing",
            "--run",
            "{binary}",
            "--processes",
            "200",
            "--warmup",
            "0",
            "--memory=0",
            "--rounds",
            &rounds,
        ])
    };
    let timed = |rounds: u32| -> anyhow::Result<f64> {
        let began = Instant::now();
        measured(work_directory, &with(rounds))?;
        Ok(began.elapsed().as_secs_f64())
    };
    commands.push(reported(&with(1 + more)));
    let (few, many) = (timed(1)?, timed(1 + more)?);
    // The cell is there twice: the A/A pair.
    Ok(1e3 * (many - few) / (400.0 * f64::from(more)))
}

fn measured(work_directory: &WorkDirectory, asked: &[String]) -> anyhow::Result<Value> {
    let mut asked = asked.to_vec();
    asked.push("--json".into());
    let text = work_directory.output(&mut work_directory.widthwise(&asked))?;
    serde_json::from_str(&text).context("scale")
}

/// The command as a reader would type it.
fn reported(asked: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=./,".contains(c));
        if plain {
            word.clone()
        } else {
            format!("'{word}'")
        }
    };
    format!("widthwise {}", asked.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, key| match key.parse::<usize>() {
        Ok(place) => &value[place],
        Err(_) => &value[*key],
    })
}
