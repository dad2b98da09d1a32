//! Reports of other tasks on the measured CPU, with a task of known CPU time.

use std::process::{Child, Command, Stdio};

use crate::laboratory;
use crate::laboratory::alone::alone;
use crate::laboratory::{unfolded, until, Laboratory};
use serde_json::Value;

/// The last CPU that this process may use.
fn cpu() -> usize {
    // SAFETY: plain data, and a call that only writes it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &mut set), 0);
        (0..1024).rfind(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap()
    }
}

/// The time for which that CPU was in use since boot, in seconds: user, nice, system, irq and softirq of `/proc/stat`.
fn busy(cpu: usize) -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} "))).unwrap();
    let ticks: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    [0, 1, 2, 5, 6].map(|place| ticks[place]).iter().sum::<f64>() / 100.0
}

/// The error of a sum of ticks, in seconds.
fn ticks(runs: u32) -> f64 {
    0.02 + 0.01 * f64::from(runs).sqrt()
}

/// A program that computes for a given number of milliseconds of CPU time, under two names.
fn with_burn() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("burn.c");
    for name in ["a", "b"] {
        lab.gcc(&["-O1", "-static", "burn.c", "-o", name]);
    }
    lab
}

fn campaign(lab: &Laboratory, more: &str, ms: u32, rounds: u32) -> Child {
    let cpu = cpu();
    lab.command(
        format!(
            "compare {more} --json --cpus {cpu} --binary a=./a --binary b=./b --rounds {rounds} --check off --run"
        )
        .split(' ')
        .chain([format!("{{binary}} {ms}").as_str()])
        .collect::<Vec<_>>()
        .as_slice(),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap()
}

fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// CPU time of others, in seconds: in the JSON for all rounds, and on the terminal for the timed ones.
fn listed(lab: &Laboratory, report: &Value) -> (f64, Option<f64>) {
    let rounds = report["rounds"].as_array().unwrap().iter();
    let sum: i64 = rounds.map(|round| round["noise"]["others_ns"].as_i64().unwrap()).sum();
    let text = unfolded(&lab.widthwise("report").stdout);
    let printed = text.split(&format!("other tasks used CPU {} for ", cpu())).nth(1).map(|rest| {
        let words: Vec<&str> = rest.split(' ').take(2).collect();
        let number: f64 = words[0].parse().unwrap();
        match words[1] {
            "ms" => number / 1e3,
            "s" => number,
            other => panic!("{other} in {text}"),
        }
    });
    (sum as f64 / 1e9, printed)
}

/// CPU time of all programs of a campaign, in seconds.
fn own(report: &Value) -> f64 {
    let runs = report["runs"].as_array().unwrap().iter();
    runs.map(|run| run["sample"]["cpu"]["value"].as_f64().unwrap()).sum::<f64>() / 1e9
}

/// Enough rounds that the task ends before the campaign, on a loaded machine, too.
const ROUNDS: u32 = 24;

// wait4 waits for it and returns its CPU time.
#[allow(clippy::zombie_processes)]
/// A task on the measured CPU during the campaign, and its CPU time from `wait4`, in seconds.
fn with_another_task(more: &str) {
    let _alone = alone();
    let lab = with_burn();
    let before = busy(cpu());
    let measuring = campaign(&lab, more, 75, ROUNDS);
    until("two timed rounds", || {
        lab.path(".widthwise/latest/campaign.sqlite").exists()
            && laboratory::count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'timed'") >= 2
    });
    let other = Command::new("taskset")
        .args(["-c", &cpu().to_string()])
        .arg(lab.path("a"))
        .arg("1000")
        .spawn()
        .unwrap();
    // SAFETY: plain data, which the call fills.
    let known = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(other.id() as i32, std::ptr::null_mut(), 0, &mut usage), other.id() as i32);
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    assert!((0.9..1.5).contains(&known), "{known}");
    let sql = "SELECT count(*) FROM rounds WHERE kind = 'timed'";
    let still = laboratory::count(&lab.archive(), sql);
    let report = report(measuring);
    assert!(still < i64::from(ROUNDS), "the task has outlived the campaign: {still}");
    let (sum, printed) = listed(&lab, &report);
    // There may have been others as well, at most this much.
    let rest = (busy(cpu()) - before - own(&report) - known).max(0.0);
    for found in [sum, printed.expect("a sentence on other tasks")] {
        assert!(found >= 0.8 * known - ticks(42), "{found} s are reported, and {known} s were used");
        assert!(
            found <= 1.2 * known + rest + ticks(42),
            "{found} s are reported; {known} s were used, by others {rest} s"
        );
    }
}

#[test]
fn another_task_is_reported_with_its_cpu_time_beside_successive_runs() {
    with_another_task("--warmup 1");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn another_task_is_reported_with_its_cpu_time_beside_concurrent_runs() {
    with_another_task("--concurrent");
}

#[test]
fn programs_and_launchers_are_not_other_tasks() {
    let _alone = alone();
    for (more, ms, rounds) in [("--concurrent", 60, 8), ("--warmup 1", 60, 8), ("--warmup 1", 0, 200)] {
        let lab = with_burn();
        let before = busy(cpu());
        let report = report(campaign(&lab, more, ms, rounds));
        let rest = (busy(cpu()) - before - own(&report)).max(0.0);
        let (sum, printed) = listed(&lab, &report);
        let may_seem = ticks(3 * (rounds + 1));
        assert!(sum <= rest + may_seem, "{more}: {sum} s are reported, and others had {rest} s at most");
        // Without other tasks there is no sentence on them.
        assert!(
            printed.is_none_or(|printed| printed <= rest + 0.02),
            "{more}: {printed:?} s, and others had {rest} s at most"
        );
    }
}
