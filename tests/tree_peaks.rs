//! The bounds of the peak memory of a tree of processes, some of which are shorter than the time between two readings.

use serde_json::Value;

use crate::laboratory::alone::{alone, Machine};
use crate::laboratory::outcomes::skipped;
use crate::laboratory::Laboratory;

const MIB: u64 = 1 << 20;

/// The bounds of the tree's peak in each run of the series of that program, in the order of time.
fn peaks(lab: &Laboratory, source: &str, arguments: &str) -> Vec<(f64, f64)> {
    lab.program(source);
    let report = lab.compare_json(&format!(
        "{source} --abi x86-64,i386 --rounds 1 --warmup 0 --metric cpu --memory=2 -- {arguments}"
    ));
    let mut runs: Vec<&Value> = report["runs"].as_array().unwrap().iter().collect();
    runs.retain(|run| !run["sample"]["tree_peak"].is_null());
    runs.sort_by_key(|run| run["began_ns"].as_u64());
    assert_eq!(runs.len(), 6, "{report}");
    runs.iter()
        .map(|run| {
            let peak = &run["sample"]["tree_peak"];
            let low = peak["value"].as_f64().unwrap();
            assert!(!run["sample"]["tree_charged"].is_null(), "a control group can be made here: {run}");
            (low, peak.get("upper").map_or(Some(low), Value::as_f64).expect("an upper bound"))
        })
        .collect()
}

/// The memory that the program touches at one moment is between these `truths`; each process has some more of its own.
fn holds_the_truth(arguments: &str, (low, high): (f64, f64), truths: (f64, f64), processes: f64) {
    let own = (2.0 + 0.3 * processes) * MIB as f64;
    let reported = format!("{arguments}: {low} to {high} of {truths:?}");
    assert!(low <= truths.1 + own && high >= truths.0, "{reported}");
}

/// The bounds are at most 15 % apart (1 to 3 % here). The host may delay the sampler in one of the runs, no more: tests
/// that ask this have the machine alone, and leave it out where the host took the CPUs for some of the time.
fn are_narrow(machine: &Machine, arguments: &str, bounds: &[(f64, f64)]) {
    if machine.host_took() > 0.01 {
        return skipped(
            "the host of this virtual machine took more than a hundredth of the CPU time: no narrow bounds",
        );
    }
    let narrow = bounds.iter().filter(|(low, high)| *high <= 1.15 * low).count();
    assert!(narrow + 1 >= bounds.len(), "{arguments}: more than 15 % wide: {bounds:?}");
}

#[test]
fn the_peak_of_short_children_has_a_lower_and_an_upper_bound() {
    let machine = alone();
    let lab = Laboratory::new();
    for (count, arguments) in [
        (8.0, "8 64 30 10 {truths} apart"),
        (8.0, "8 64 30 0 {truths} together"),
        (200.0, "200 3 30 0 {truths} together"),
    ] {
        let truths = lab.path("truths");
        let _ = std::fs::remove_file(&truths);
        let arguments = arguments.replace("{truths}", truths.to_str().unwrap());
        let found = peaks(&lab, "staggered.c", &arguments);
        let reported = lab.read("truths");
        let parse = |text: &str| text.parse::<f64>().unwrap();
        let truths: Vec<(f64, f64)> = reported
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(a, b)| (parse(a), parse(b)))
            .collect();
        are_narrow(&machine, &arguments, &found);
        for (bounds, truth) in found.into_iter().zip(&truths[truths.len() - 6..]) {
            holds_the_truth(&arguments, bounds, *truth, count);
        }
    }
}

#[test]
fn the_peak_of_a_tree_is_neither_its_largest_process_nor_the_sum() {
    let machine = alone();
    let lab = Laboratory::new();
    for (arguments, mebibytes, processes) in [
        ("third 300 30", 400.0, 2.0),
        ("chain 30 100 20 60 1", 100.0, 1.0),
        ("orphans 6 40 30", 240.0, 8.0),
        ("turns 100 30", 100.0, 2.0),
    ] {
        let found = peaks(&lab, "generations.c", arguments);
        are_narrow(&machine, arguments, &found);
        for bounds in found {
            let truth = mebibytes * MIB as f64;
            holds_the_truth(arguments, bounds, (truth, truth), processes);
        }
    }
}
