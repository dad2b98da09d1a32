//! Requests, failed cells, outputs, events from the program, and resumed campaigns.

use super::{about, lab, measured, row, runs, scale, table, within};
use crate::laboratory::alone::alone;
use crate::laboratory::{unfolded, Laboratory};
use serde_json::Value;

#[test]
fn events_are_read_from_logs_and_marks() {
    let _alone = alone();
    let lab = lab();
    let run = "fork {processes} {events} event=10000 log=1 marks=1";
    let options = "--processes 2 --events 20 --rounds 1 --warmup 0 --memory=0 --directory fresh";
    let pattern = r"--event-pattern 'took (?P<elapsed>\S+) s' --event-log log-*";
    let by_log = measured(&lab, "x86-64", run, &format!("{options} {pattern}"));
    let by_marks = measured(&lab, "x86-64", run, &format!("{options} --event-marks"));
    for (report, is_log) in [(&by_log, true), (&by_marks, false)] {
        let run = runs(report).iter().find(|run| run["purpose"] == "timed").unwrap();
        for member in run["members"].as_array().unwrap() {
            assert_eq!(member["reported"]["events"], 10, "{run}");
            let each = member["reported"]["elapsed_s"].as_f64().unwrap();
            if is_log {
                about(each, 0.01, 0.001);
            } else {
                // Marks give elapsed time: nine intervals, minus the delay of reading the first.
                within(each, 0.007, run["elapsed_ns"].as_f64().unwrap() / 9e9);
            }
        }
        let row = row(table(report, "x86-64", "fork"), 2);
        assert_eq!(row["cpu_per_event_source"], "reported-elapsed");
    }
}

/// A mark that waits to be read shortens the time from the first to the last, which is read at the end.
#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn marks_are_read_when_they_are_written() {
    let _alone = alone();
    let lab = lab();
    let options = "--processes 2 --events 8 --rounds 7 --warmup 0 --memory=0 --event-marks";
    let report = measured(&lab, "x86-64", "fork {processes} {events} event=60000 marks=1", options);
    let timed = runs(&report).iter().filter(|run| run["purpose"] == "timed");
    let mut each: Vec<f64> = timed
        .flat_map(|run| run["members"].as_array().unwrap())
        .map(|member| member["reported"]["elapsed_s"].as_f64().unwrap())
        .collect();
    each.sort_by(f64::total_cmp);
    // The middle: another program may have the CPU of the reader for a moment.
    let middle = each[each.len() / 2];
    assert!(middle > 0.99 * 0.06, "{each:?}");
}

#[test]
fn failed_cells_are_reported_and_the_others_continue() {
    let lab = lab();
    let options = "--processes 1,2,3 --events 6 --rounds 2 --warmup 0 --memory=0 --timeout 2s";
    for (fault, listed) in [
        ("die=2", "child 2 did not end well: killed by signal 11"),
        ("hang=2", "still running after 2 s, and was killed (--timeout)"),
    ] {
        let printed =
            scale(&lab, "x86-64", &format!("fork {{processes}} {{events}} event=1000 {fault}"), options);
        assert_eq!(printed.status, Some(1), "{printed:?}");
        assert!(printed.stdout.contains(listed), "{printed:?}");
        let json = lab.widthwise("report --json").json();
        let table = table(&json, "x86-64", "fork");
        for processes in [1, 2] {
            assert_eq!(row(table, processes)["runs"], 2);
            assert!(row(table, processes)["failure"].is_null());
        }
        assert!(row(table, 3)["failure"].as_str().unwrap().contains(listed));
        // It failed once, and was not repeated.
        let failed = json["runs"].as_array().unwrap().iter().filter(|a| !a["failure"].is_null()).count();
        assert_eq!(failed, 1);
    }
}

#[test]
fn a_job_has_one_event_at_least_and_the_failure_of_an_auxiliary_run_leaves_its_cell() {
    let lab = Laboratory::new();
    // Refuses to have no events; and fails with half of them.
    lab.script("p", "#!/bin/sh\ntest \"$1\" -gt 0 -a \"$1\" -ne 5\n");
    let printed = lab.widthwise(
        "scale --binary p=./p --mode jobs --processes 2,4 --events 20 --run '{binary} {events}' --rounds 3 --warmup 0 --memory=0",
    );
    let printed_text = unfolded(&printed.stdout);
    assert!(printed_text.contains("its run with half of the events failed"), "{printed:?}");
    let json = lab.widthwise("report --json").json();
    let of = |purpose: &str| -> Vec<(u64, bool)> {
        let all = runs(&json).iter().filter(|run| run["purpose"] == purpose && run["cell"]["processes"] == 2);
        let own = all.filter(|run| run["cell"]["variant"] == "p");
        own.map(|run| (run["events"].as_u64().unwrap(), run["failure"].is_null())).collect()
    };
    assert_eq!(of("one-event"), [(2, true); 3]);
    assert_eq!(of("half-of-events"), [(10, false)]);
    assert_eq!(of("timed"), [(20, true); 3]);
    assert!(table(&json, "p", "jobs")["rows"][0]["failure"].is_null());
}

#[test]
fn outputs_are_filtered_before_they_are_compared() {
    let lab = Laboratory::new();
    lab.write(
        "width.c",
        "#include <stdio.h>\nint main(void) { printf(\"%zu bytes\\n\", sizeof(void *)); }\n",
    );
    let report = |filter: &str| {
        let words = "scale width.c --abi x86-64,i386 --processes 1 --rounds 1 --warmup 0 --memory=0";
        lab.widthwise(&format!("{words} {filter}"))
    };
    let plain = report("");
    assert_eq!(plain.status, Some(1), "{plain:?}");
    assert!(unfolded(&plain.stdout).contains("'s output differs from that of x86-64"), "{plain:?}");
    let filtered = report("--filter 'sed s/[48]/N/'");
    assert_eq!(filtered.status, Some(0), "{filtered:?}");
}

#[test]
fn an_interrupted_campaign_is_resumed_and_counts_nothing_twice() {
    let lab = lab();
    let first = scale(
        &lab,
        "x86-64",
        "fork {processes} {events} event=2000",
        "--processes 1,2 --events 8 --rounds 2 --warmup 1 --memory=1 --directory fresh",
    );
    assert_eq!(first.status, Some(0), "{first:?}");
    let before = lab.widthwise("report --json").json();
    let printed = lab.widthwise("scale --resume .widthwise/latest --rounds 5 --json");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let after = printed.json();
    let count = |report: &Value, purpose: &str| {
        report["runs"].as_array().unwrap().iter().filter(|run| run["purpose"] == purpose).count()
    };
    assert_eq!((count(&before, "timed"), count(&after, "timed")), (6, 15));
    for purpose in ["warmup", "memory", "one-event"] {
        assert_eq!(count(&after, purpose) / if purpose == "one-event" { 5 } else { 1 }, {
            count(&before, purpose) / if purpose == "one-event" { 2 } else { 1 }
        });
    }
    lab.write("workers.c", &(lab.read("workers.c") + "/* changed */\n"));
    let refused = lab.widthwise("scale --resume .widthwise/latest --rounds 6");
    refused.refuses(2, &["cannot be resumed", "source"]);
}

#[test]
fn a_variant_with_another_output_is_reported() {
    let lab = lab();
    lab.write("width.c", "#include <stdio.h>\nint main(void) { printf(\"%zu\\n\", sizeof(void *)); }\n");
    let words = "scale width.c --abi x86-64,i386 --processes 1 --rounds 1 --memory=0";
    let printed = lab.widthwise(words);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stdout.contains("i386's output differs from that of x86-64"), "{printed:?}");
    let allowed = lab.widthwise(&format!("{words} --allow-different-output"));
    assert!(
        allowed.status == Some(0) && allowed.stdout.contains("output differs from that of"),
        "{allowed:?}"
    );
    let off = lab.widthwise(&format!("{words} --check off"));
    assert!(off.status == Some(0) && off.stdout.contains("outputs were not compared"), "{off:?}");
}

#[test]
fn a_wrong_request_is_refused_in_one_line_with_the_fix() {
    let lab = lab();
    let plain = "alone 1 10";
    for (run, options, listed) in [
        (plain, "--processes 0", "0 processes do nothing"),
        (plain, "--mode fork --processes 2", "put {processes} where it does"),
        (plain, "--events 10", "put {events} where it does"),
        ("alone 1 {events}", "", "--events says how many"),
        ("alone 1 {events}", "--processes 4 --events 3", "--events 4 is the least"),
        (plain, "--mode tasks", "fork, jobs or threads"),
        (plain, "--placement nowhere", "nowhere"),
        (plain, "--placement 999", "999"),
        (plain, "--placement cores,cores", "twice"),
        (plain, "--cores efficiency", "efficiency"),
        (plain, "--event-pattern (", "--event-pattern"),
        (plain, "--memory-limit lots", "8G or 500M"),
        (plain, "--processes 5000", "at most 4096"),
    ] {
        let printed = scale(&lab, "x86-64", run, options);
        assert_eq!(printed.status, Some(2), "{options}: {printed:?}");
        assert!(printed.stderr.contains(listed), "{options}: {printed:?}");
        assert!(!lab.path(".widthwise/latest").exists());
    }
    let compared = lab.widthwise(&["compare", "workers.c", "--run", "{build}/workers fork {processes} 10"]);
    compared.refuses(2, &["{processes}", "widthwise scale"]);
}
