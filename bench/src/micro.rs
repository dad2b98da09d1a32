//! The micro suite: every operation in three ABIs with its intervals, and four operations beside `perf bench` on the same CPU.

use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::campaign::{self, Campaign};
use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// The widest interval of an operation in user space or of a plain call, and of one that starts or switches processes: from end
/// to end.
const PLAIN: f64 = 0.03;
const PROCESSES: f64 = 0.10;
/// Operations of processes: what the kernel's scheduler and memory management do in them varies.
const OF_PROCESSES: [&str; 8] =
    ["fork", "exec", "shell", "thread", "pipe", "socket", "context_switch", "pipe_bandwidth"];
/// How long the campaign may take.
const LIMIT_SECONDS: f64 = 600.0;
/// How far the suite's figure may be from the peer's.
const RATIOS: std::ops::RangeInclusive<f64> = 0.9..=1.1;
/// Short repetitions of both, in turns; the fastest of each counts.
const REPETITIONS: u32 = 40;

/// An operation that `perf bench` has too.
struct Peer {
    operation: &'static str,
    arguments: &'static [&'static str],
    /// The unit in which perf prints it.
    unit: &'static str,
    /// Nanoseconds of one operation, from that.
    nanoseconds: fn(f64) -> f64,
}

const MIB: f64 = 1_048_576.0;
const GB: f64 = 1_073_741_824.0;

/// perf's GB are binary (tools/perf/bench/mem-functions.c, `print_bps`).
const PEERS: [Peer; 4] = [
    Peer {
        operation: "getppid",
        arguments: &["syscall", "basic", "-l", "10000"],
        unit: "usecs/op",
        nanoseconds: |micro| micro * 1e3,
    },
    Peer {
        operation: "pipe",
        arguments: &["sched", "pipe", "-l", "20000"],
        unit: "usecs/op",
        nanoseconds: |micro| micro * 1e3,
    },
    Peer {
        operation: "memcpy_64k",
        arguments: &["mem", "memcpy", "-s", "64KB", "-l", "1000", "-f", "default"],
        unit: "GB/sec",
        nanoseconds: |rate| MIB / 16.0 / (rate * GB) * 1e9,
    },
    Peer {
        operation: "memcpy_1m",
        arguments: &["mem", "memcpy", "-s", "1MB", "-l", "50", "-f", "default"],
        unit: "GB/sec",
        nanoseconds: |rate| MIB / (rate * GB) * 1e9,
    },
];

/// Measures.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let limit = format!("{}s", work_directory.count(540, 8));
    let rounds = work_directory.count(400, 6).to_string();
    let arguments = words([
        "compare",
        "micro:all",
        "--abi",
        "x86-64,x32,i386",
        "--rounds",
        &rounds,
        "--max-time",
        &limit,
    ]);
    let began = Instant::now();
    let campaign = Campaign::run(work_directory, &arguments)?;
    let seconds = began.elapsed().as_secs_f64();
    let widths = widths(&campaign)?;
    let beside = beside(work_directory)?;

    let mut table = Table::new(["", "x86-64, ns", "x32, width", "i386, width", "perf bench, ns", "ratio"]);
    let mut wide = Vec::new();
    for (operation, own) in &widths {
        let most = if OF_PROCESSES.contains(&operation.as_str()) { PROCESSES } else { PLAIN };
        let cell =
            |width: Option<f64>| width.map_or("none".to_owned(), |width| format!("{:.1} %", 100.0 * width));
        if own.iter().any(|width| width.is_none_or(|width| width > most)) {
            wide.push(operation.clone());
        }
        let peer = beside.iter().find(|peer| peer.0 == operation);
        let median = campaign.median("x86-64", &format!("micro.{operation}")).unwrap_or(f64::NAN);
        table.row([
            operation.clone(),
            if median.is_finite() { format!("{median:.4}") } else { "none".to_owned() },
            cell(own[0]),
            cell(own[1]),
            peer.map_or(String::new(), |(_, _, theirs)| format!("{theirs:.1}")),
            peer.map_or(String::new(), |(_, ours, theirs)| format!("{:.2}", ours / theirs)),
        ]);
    }
    let far: Vec<String> = beside
        .iter()
        .map(|(operation, ours, theirs)| (operation, ours / theirs))
        .filter(|(_, ratio)| !RATIOS.contains(ratio))
        .map(|(operation, ratio)| format!("{operation} {ratio:.2}"))
        .collect();
    let in_time = seconds <= LIMIT_SECONDS;
    let listed = |what: &str, list: &[String]| match list {
        [] => String::new(),
        list => format!("; {what}: {}", list.join(", ")),
    };
    Ok(Section {
        bar: "at least 40 operations in three ABIs in under 10 minutes; intervals at most 3 % wide from end to end, 10 % for \
              operations of processes; getppid, pipe and memcpy within 0.9 to 1.1 times the figure of perf bench."
            .into(),
        method: "The suite's figure is the fastest of ten repetitions, and of 40 short calls of each program in turns beside perf bench; perf's \
                 is the best of as many. perf's pipe has messages of 4 bytes instead of 1; its memcpy is glibc's, as here."
            .into(),
        commands: [campaign::command(&arguments)]
            .into_iter()
            .chain(PEERS.map(|peer| typed("perf", &perf(&peer))))
            .collect(),
        table,
        reached: widths.len() >= 40 && wide.is_empty() && far.is_empty() && in_time,
        sentence: format!(
            "{} operations in {seconds:.0} s{}{}.",
            widths.len(),
            listed("wider", &wide),
            listed("apart from perf bench", &far)
        ),
    })
}

/// The width of each operation's intervals, of x32 and i386, in the order of the suite.
fn widths(campaign: &Campaign) -> anyhow::Result<Vec<(String, [Option<f64>; 2])>> {
    let of = |variant: &str| -> anyhow::Result<Vec<(String, Option<f64>)>> {
        let mut list = Vec::new();
        for (own, verdict) in campaign.verdicts_by_variant()? {
            if own == variant {
                let name = verdict.metric.trim_start_matches("micro.").to_owned();
                list.push((name, verdict.interval.map(|interval| interval.high - interval.low)));
            }
        }
        Ok(list)
    };
    let (x32, i386) = (of("x32")?, of("i386")?);
    Ok(x32.into_iter().zip(i386).map(|((name, x32), (_, i386))| (name, [x32, i386])).collect())
}

/// Each operation of [`PEERS`] with the suite's nanoseconds and perf's.
fn beside(work_directory: &WorkDirectory) -> anyhow::Result<Vec<(&'static str, f64, f64)>> {
    let folder = work_directory.repository().join("workloads/micro");
    let makefile = folder.join("Makefile");
    let mut make = Command::new("make");
    make.arg("-s").arg("-f").arg(makefile).current_dir(work_directory.folder());
    work_directory.output(&mut make)?;
    let mut all = Vec::new();
    for peer in &PEERS {
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..work_directory.count(REPETITIONS, 3) {
            let mut micro = Command::new("taskset");
            micro.args(["-c", "0", "./micro", "--repetitions", "3", peer.operation]);
            micro.current_dir(work_directory.folder());
            ours = ours.min(number(&work_directory.output(&mut micro)?, "nanoseconds")?);
            let mut perf_bench = Command::new("taskset");
            perf_bench.args(["-c", "0", "perf"]).args(perf(peer));
            theirs =
                theirs.min((peer.nanoseconds)(number(&work_directory.output(&mut perf_bench)?, peer.unit)?));
        }
        all.push((peer.operation, ours, theirs));
    }
    Ok(all)
}

fn perf(peer: &Peer) -> Vec<String> {
    std::iter::once("bench").chain(peer.arguments.iter().copied()).map(str::to_owned).collect()
}

/// The number before that unit.
fn number(output: &str, unit: &str) -> anyhow::Result<f64> {
    let words: Vec<&str> = output.split_whitespace().collect();
    let before = |unit: &str| -> Option<f64> {
        let at = words.iter().position(|word| *word == unit)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    // perf writes a lower rate in MB.
    let in_megabytes = || before("MB/sec").filter(|_| unit == "GB/sec").map(|rate| rate * MIB / GB);
    before(unit).or_else(in_megabytes).with_context(|| format!("there is no number of {unit} in {output:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_before_a_unit_is_read() {
        let output = "# Running 'syscall/basic' benchmark:\n     Total time: 0.001 [sec]\n\n       0.191600 usecs/op\n";
        assert_eq!(number(output, "usecs/op").unwrap(), 0.1916);
        assert!(number(output, "GB/sec").is_err());
        let slow = "# Copying 1MB bytes ...\n\n     998.063756 MB/sec\n";
        assert_eq!(number(slow, "GB/sec").unwrap(), 998.063756 / 1024.0);
    }
}
