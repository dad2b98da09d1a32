//! The memory series of programs with known memory, from the command line.

use crate::browser::Browser;
use crate::laboratory::alone::asleep;
use crate::laboratory::{count, unfolded, verdict, Laboratory};
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Pointers, and numbers, of `constants.c`.
const COUNT: u64 = 500_000;

/// A known amount, plus the C library's own memory and a hundredth.
fn about(truth: u64, own: u64) -> std::ops::RangeInclusive<u64> {
    truth..=truth + truth / 100 + own
}

/// One round of the series of `hold.c` with these steps.
fn held(lab: &Laboratory, abis: &str, steps: &str) -> Value {
    let words = format!("hold.c --abi {abis} --rounds 1 --warmup 0 --metric cpu --memory=1 -- {steps}");
    lab.compare_json(&words)
}

/// The series of that variant.
fn series<'a>(report: &'a Value, variant: &str) -> &'a Value {
    let all = report["memory"].as_array().unwrap();
    all.iter()
        .find(|run| run["variant"] == variant)
        .unwrap_or_else(|| panic!("no series of {variant}: {all:?}"))
}

fn numbers(column: &Value) -> Vec<u64> {
    column.as_array().unwrap().iter().map(|value| value.as_u64().unwrap_or(0)).collect()
}

/// The resident bytes of a class at each moment.
fn class(series: &Value, name: &str) -> Vec<u64> {
    let mut sums = vec![0; numbers(&series["at_ns"]).len()];
    for part in series["parts"].as_array().unwrap().iter().filter(|part| part["class"] == name) {
        sums.iter_mut().zip(numbers(&part["resident"])).for_each(|(sum, bytes)| *sum += bytes);
    }
    sums
}

/// The bytes of a class at each reading within a phase.
fn in_phase(series: &Value, phase: &str, name: &str) -> Vec<u64> {
    let marks = series["marks"].as_array().unwrap();
    let at =
        marks.iter().position(|mark| mark["text"] == phase).unwrap_or_else(|| panic!("no phase {phase}"));
    let from = marks[at]["at_ns"].as_u64().unwrap();
    let to = marks.get(at + 1).map_or(u64::MAX, |next| next["at_ns"].as_u64().unwrap());
    let moments = numbers(&series["at_ns"]).into_iter().zip(class(series, name));
    let inside: Vec<u64> =
        moments.filter(|(at, _)| (from..to).contains(at)).map(|(_, bytes)| bytes).collect();
    assert!(!inside.is_empty(), "nothing was read in {phase}: {series}");
    inside
}

fn no_more_than_the_share(report: &Value) {
    for run in report["memory"].as_array().unwrap() {
        let (spent, wall) = (run["spent_ns"].as_f64().unwrap(), run["wall_ns"].as_f64().unwrap());
        // The cost of the last reading is not known in advance.
        assert!(spent <= 0.006 * wall, "{spent} of {wall} ns: {run}");
    }
}

#[test]
fn zero_initialised_variables_are_program_data_and_mappings_behind_them_are_not() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.program("zeros.c");
    let held = |options: &str| {
        lab.compare_json(&format!(
            "zeros.c --abi x86-64,x32,i386 --rounds 1 --warmup 0 --metric cpu --memory=1 {options}"
        ))
    };
    for (options, name, other) in
        [("", "program-data", "mmapped"), ("--flags '-O2 -DBEHIND'", "mmapped", "program-data")]
    {
        let report = held(options);
        for run in report["memory"].as_array().unwrap() {
            let highest = |name| class(run, name).into_iter().max().unwrap();
            assert!(about(16 * MIB, 300 << 10).contains(&highest(name)), "{options}: {name}: {run}");
            assert!(highest(other) < MIB, "{options}: {other}: {run}");
        }
        assert!(report["memory"].as_array().unwrap().len() >= 3, "{options}: {report}");
    }
}

/// Bytes of a class at every reading of that kind from the first step of `constants.c` on.
fn of_kind(series: &Value, name: &str, is_snapshot: bool) -> Vec<u64> {
    let kinds = series["full"].as_array().unwrap().iter().map(|kind| kind == is_snapshot);
    let steps = class(series, "mmapped").into_iter().map(|blocks| blocks >= MIB);
    let all = class(series, name).into_iter().zip(kinds).zip(steps);
    all.filter(|((_, is_kind), is_step)| *is_kind && *is_step).map(|((bytes, _), _)| bytes).collect()
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn relocated_constants_are_program_data_in_snapshots_and_in_pagemap_scans() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.program("constants.c");
    let report =
        lab.compare_json("constants.c --abi x86-64,x32,i386 --rounds 1 --warmup 0 --metric cpu --memory=1");
    for (abi, bytes) in [("x86-64", 8), ("x32", 4), ("i386", 4)] {
        let series = series(&report, abi);
        for is_snapshot in [true, false] {
            let [data, text] =
                ["program-data", "program-text"].map(|name| of_kind(series, name, is_snapshot));
            assert!(!data.is_empty(), "{abi}: no reading, snapshot: {is_snapshot}: {series}");
            // Pointers are changed, numbers are not.
            for found in data {
                assert!(about(bytes * COUNT, 64 << 10).contains(&found), "{abi}: data of {found}: {series}");
            }
            assert!(text.iter().all(|found| *found >= bytes * COUNT), "{abi}: {series}");
            assert_eq!(text.iter().min(), text.iter().max(), "{abi}: {series}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn known_steps_are_read_within_one_per_cent_in_every_abi_by_class_and_phase() {
    let _asleep = asleep();
    let lab = Laboratory::with_marks("hold.c");
    // A busy host makes readings dear, and so rare.
    let report = held(
        &lab,
        "x86-64,x32,i386",
        "1400 agrown +16 ahalved -8 amapped m24 aunmapped u athreaded s12 aended",
    );
    for abi in ["x86-64", "x32", "i386"] {
        let series = series(&report, abi);
        let own = 300 << 10;
        for (phase, name, truth) in [
            ("grown", "heap", 16),
            ("halved", "heap", 8),
            ("mapped", "heap", 8),
            ("mapped", "mmapped", 24),
            ("unmapped", "mmapped", 0),
            ("threaded", "stack", 12),
        ] {
            let all = in_phase(series, phase, name);
            // A phase ends with its step held, but a thread's stack ends with its thread, just before the next phase.
            let found = if name == "stack" { all.iter().max() } else { all.last() };
            let found = found.copied().unwrap();
            assert!(
                about(truth * MIB, own).contains(&found),
                "{abi}: {name} in {phase} is {found}: {series}"
            );
        }
        // The loader reads the vDSO, whose pages count fully: its PSS is 0 on x86-64, where every process has it.
        if abi != "x32" {
            let vdso = in_phase(series, "grown", "other");
            assert!(vdso.iter().all(|bytes| (1..=4).contains(&(bytes / 4096))), "{abi}: {vdso:?}");
        }
        // The parts add up to the whole, in every reading.
        let tree = numbers(&series["tree"]["resident"]);
        let classes = [
            "heap",
            "mmapped",
            "stack",
            "program-text",
            "program-data",
            "library",
            "file",
            "shared",
            "runtime",
            "recorder",
            "other",
        ];
        for (moment, whole) in tree.iter().enumerate() {
            let sum: u64 = classes.iter().map(|name| class(series, name)[moment]).sum();
            assert_eq!(sum, *whole, "{abi}");
        }
        // The peak of a program of one process is that of the kernel.
        let statm_samples = numbers(&series["statm_samples"]["resident"]);
        let peak = tree.iter().chain(&statm_samples).max().unwrap();
        assert!(about((8 + 24) * MIB, 4 * MIB).contains(peak), "{abi}: {peak}");
        let libraries: Vec<&str> = series["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|part| part["class"] == "library")
            .map(|part| part["name"].as_str().unwrap())
            .collect();
        assert_eq!(libraries.len(), 2, "{libraries:?}");
        assert!(libraries.contains(&"libc.so.6") && libraries.contains(&"ld.so"), "{libraries:?}");
    }
    let runtime = |abi: &str| class(series(&report, abi), "runtime").into_iter().max().unwrap();
    assert_eq!(runtime("x86-64"), 0);
    let through_runtime = lab.read(".widthwise/latest/report.html").contains("x32run runs it in user space");
    assert_eq!(runtime("x32") > 0, through_runtime);
    no_more_than_the_share(&report);

    let table = unfolded(&lab.widthwise("report").stdout);
    for words in
        ["Memory over time, in 1 round of its own", "heap (brk)", "reduction", "phases of x32: grown "]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    let csv = lab.widthwise("report --series").stdout;
    assert!(csv
        .lines()
        .any(|line| line.contains(",i386,") && line.contains(",mapped,") && line.contains(",mmapped,")));
    let page = lab.widthwise("report --html=page.html");
    assert_eq!(page.status, Some(0), "{page:?}");
    assert_eq!(lab.read("page.html").matches("class=\"plot stack\"").count(), 3);
    let browser = Browser::new();
    let (_, console) = browser.load(&lab.path("page.html"));
    assert_eq!(console, [""; 0]);
    let (content, frame) = browser.widths(&lab.path("page.html"), &[375])[0];
    assert!(content <= frame, "{content} in {frame}");
}

#[test]
fn pages_shared_by_parent_and_child_count_once() {
    let _asleep = asleep();
    let lab = Laboratory::with_marks("hold.c");
    let report = held(&lab, "x86-64", "1200 +12 f4");
    let series = series(&report, "x86-64");
    let moments = numbers(&series["at_ns"]);
    let processes = series["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{series}");
    assert_eq!(processes[1]["parent"], processes[0]["pid"]);
    let both: Vec<u64> = numbers(&processes[1]["at_ns"]);
    let last = both.last().expect("the child was never read");
    let place = moments.iter().position(|moment| moment == last).unwrap();
    let heap = class(series, "heap")[place];
    assert!(about(16 * MIB, 300 << 10).contains(&heap), "{heap}: {series}");
    let of_process = |process: &Value| {
        let at = numbers(&process["at_ns"]).iter().position(|moment| moment == last).unwrap();
        numbers(&process["totals"]["resident"])[at]
    };
    assert!(of_process(&processes[0]) + of_process(&processes[1]) > 24 * MIB);
    let pss = numbers(&series["tree"]["pss"])[place];
    assert!((16 * MIB..20 * MIB).contains(&pss), "{pss}");
}

#[test]
fn the_mean_of_a_tree_of_processes_is_that_of_its_processes_between_two_readings_too() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.program("staggered.c");
    let report = lab.compare_json(
        "staggered.c --abi x86-64 --rounds 1 --warmup 0 --metric cpu,tree_mean --memory=5 -- 5 10 700 0 truths together",
    );
    let means: Vec<(f64, f64)> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| !run["sample"]["tree_mean"].is_null())
        .map(|run| {
            let mean = &run["sample"]["tree_mean"];
            let low = mean["value"].as_f64().unwrap();
            (low, mean.get("upper").map_or(low, |upper| upper.as_f64().unwrap_or(f64::INFINITY)))
        })
        .collect();
    assert_eq!(means.len(), 10, "{report}");
    // Five children hold 10 MiB each for 0.7 s; before that they need some milliseconds, or more on a loaded machine.
    let truth = 5.0 * 10.0 * MIB as f64;
    for (low, high) in &means {
        assert!(*low <= truth + 4.0 * MIB as f64 && *high >= 0.7 * truth, "{means:?}");
    }
    // The sampler finds the children after a tenth of the run.
    let narrow = means.iter().filter(|(low, high)| *high <= 1.3 * low).count();
    assert!(narrow + 2 >= means.len(), "{means:?}");
}

#[test]
fn metrics_not_read_at_the_peak_have_no_verdict_and_the_report_says_so() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.program("generations.c");
    let output = lab.compare(
        "generations.c --abi x86-64,i386 --rounds 6 --warmup 0 --metric cpu --memory=6 -- orphans 6 40 5",
    );
    assert_eq!(output.status, Some(0), "{output:?}");
    let table = unfolded(&output.stdout);
    // A run without any reading has another message.
    let words = [
        "been larger than any reading of its memory",
        "was larger than any reading of its memory",
        "is too short for a memory series",
    ];
    assert!(words.iter().any(|words| table.contains(words)), "{table}");
    assert!(!table.contains(" at the peak x86-64 "), "{table}");
    let report = lab.widthwise("report --json").json();
    let found = verdict(&report, "i386", "tree_mmapped");
    assert!(matches!(found["verdict"].as_str(), Some("withheld" | "no_data")), "{found}");
    assert!(found["ratio"].is_null(), "{found}");
}

#[test]
fn with_enough_rounds_memory_has_verdicts_with_intervals_and_a_floor() {
    let _asleep = asleep();
    let lab = Laboratory::new();
    lab.write(
        "list.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\nstruct node { struct node *next; void *data[3]; };\n\
         int main(void) {\n    struct node *list = 0;\n    for (int i = 0; i < 200000; i++) {\n        \
         struct node *node = malloc(sizeof *node);\n        node->next = list, list = node, node->data[0] = 0;\n    }\n    \
         struct timespec time = {0, 500000000};\n    nanosleep(&time, 0);\n    return puts(\"x\") < 0;\n}\n",
    );
    let report = lab.compare_json("list.c --abi x86-64,i386 --rounds 1 --warmup 0 --metric cpu --memory");
    let found = verdict(&report, "i386", "tree_allocated");
    assert_eq!(
        (found["verdict"].as_str(), found["source"].as_str()),
        (Some("lower"), Some("smaps")),
        "{found}"
    );
    assert_eq!(found["pairs"], 6);
    // Chunks of 48 and 32 bytes, with malloc's header and rounding (facts of glibc).
    let ratio = found["ratio"].as_f64().unwrap();
    assert!((0.65..0.69).contains(&ratio), "{found}");
    assert!(found["floor"].as_f64().unwrap() < 0.05, "{found}");
    assert_eq!(verdict(&report, "x86-64 control", "tree_allocated")["verdict"], "no_difference");
    assert_eq!(verdict(&report, "i386", "cpu")["verdict"], "withheld", "one round is too few");
    let archive = lab.archive();
    let mixed = "SELECT count(*) FROM samples WHERE (kind = 'memory') <> (metric LIKE 'tree%')";
    assert_eq!(count(&archive, mixed), 0);
    assert_eq!(count(&archive, "SELECT count(*) FROM memory_series"), 18);
    // The series is not repeated.
    assert_eq!(lab.widthwise("compare --resume .widthwise/latest").status, Some(0));
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM memory_series"), 18);
}
