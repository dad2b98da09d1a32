//! `compare --concurrent`: the runs of a round at the same time, on one CPU.

use std::process::Stdio;

use crate::laboratory;
use crate::laboratory::{is_judged, signal, until, variant, verdict, CommandOutput, Laboratory};
use serde_json::Value;

/// Two programs, one with a tenth more work.
fn with_two_programs() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("work.c");
    lab.gcc("-O1 work.c -o work");
    for (name, steps) in [("less", 300), ("more", 330)] {
        lab.script(name, &format!("#!/bin/sh\nexec ./work {steps} >/dev/null\n"));
    }
    lab
}

fn concurrent(lab: &Laboratory, more: &str) -> CommandOutput {
    lab.widthwise(&format!(
        "compare --concurrent --json --binary less=./less --binary more=./more --run '{{binary}}' {more}"
    ))
}

#[test]
fn the_runs_of_a_round_overlap_and_the_slower_program_is_found() {
    let lab = with_two_programs();
    // With this seed the variant is at each position at least once.
    let printed = concurrent(&lab, "--rounds 8 --seed 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let report = printed.json();
    let slower = verdict(&report, "more", "cpu");
    assert_eq!(slower["verdict"], "higher", "{slower}");
    let [low, high] = ["low", "high"].map(|end| slower[end].as_f64().unwrap());
    assert!(1.0 < low && low < 1.1 && high < 1.2, "{slower}");
    let control = verdict(&report, "less control", "cpu");
    assert!(is_judged(control) && (control["ratio"].as_f64().unwrap() - 1.0).abs() < 0.02, "{control}");
    // These depend on how many runs share the CPU.
    for list in ["verdicts", "metrics"] {
        let reported = report[list].to_string();
        assert!(
            reported.contains("\"cpu\"")
                && !reported.contains("\"wall\"")
                && !reported.contains("involuntary"),
            "{reported}"
        );
    }
    assert!(
        report["warnings"].to_string().contains("ran concurrently, in time slices on one CPU"),
        "{}",
        report["warnings"]
    );
    // Successive runs would each begin at the end of the one before.
    let database = laboratory::open(&lab.campaign());
    let sql = "SELECT count(*) FROM (SELECT max(began_ns) - min(began_ns) AS apart, round FROM run GROUP BY round)
               JOIN (SELECT min(value) AS least, round FROM samples WHERE metric = 'cpu' GROUP BY round) USING (round)
               WHERE apart < least";
    assert!(laboratory::count(&database, sql) >= 6, "of 9 rounds: {report:#}");
    // The order of the begin changes what a run takes.
    let sql = "SELECT count(DISTINCT position) FROM run WHERE variant = (SELECT id FROM variant WHERE name = 'more')";
    assert_eq!(laboratory::count(&database, sql), 3);
    let cpus: std::collections::BTreeSet<u64> =
        report["rounds"].as_array().unwrap().iter().map(|round| round["cpu"].as_u64().unwrap()).collect();
    assert_eq!(cpus.len(), 1);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_failing_run_does_not_affect_the_others() {
    let lab = with_two_programs();
    lab.script("more", "#!/bin/sh\nexec sleep 1000\n");
    let printed = concurrent(&lab, "--binary flood=./flood --rounds 6 --timeout 2s");
    assert_eq!(printed.status, Some(2), "{printed:?}"); // there is no ./flood yet
    lab.script("flood", "#!/bin/sh\nexec yes\n");
    let printed = concurrent(&lab, "--binary flood=./flood --rounds 6 --timeout 2s");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let report = printed.json();
    for (name, word) in [("more", "still running after"), ("flood", "standard output")] {
        let reported = variant(&report, name).to_string();
        assert!(reported.contains(word), "{name}: {reported}");
    }
    assert!(is_judged(verdict(&report, "less control", "cpu")));
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn an_interrupt_ends_the_campaign_after_the_round_and_resume_continues_it() {
    let lab = with_two_programs();
    let words =
        "compare --concurrent --binary less=./less --binary more=./more --run '{binary}' --rounds 1000";
    let child = lab.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let rounds = || {
        let folder = lab.path(".widthwise/latest");
        if !folder.join("campaign.sqlite").exists() {
            return 0;
        }
        laboratory::count(&laboratory::open(&folder), "SELECT count(*) FROM rounds WHERE kind = 'timed'")
    };
    until("rounds", || rounds() >= 2);
    signal(&child, libc::SIGINT);
    let printed = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(printed.status, Some(130), "{printed:?}");
    let made = rounds();
    let printed = lab.widthwise(&format!("compare --resume .widthwise/latest --json --rounds {}", made + 4));
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let report: Value = printed.json();
    assert_eq!(variant(&report, "more")["typical"][0]["runs"], made + 4, "{report:#}");
}

#[test]
fn options_that_concurrent_runs_cannot_have_are_refused() {
    let lab = with_two_programs();
    for (words, what, fix) in [
        ("--metric cpu,wall", "--metric: metric \"wall\"", "leave out the metric or --concurrent"),
        ("--setup true", "--setup: a setup command", "leave out --setup or --concurrent"),
        ("--teardown true", "--teardown: a teardown command", "leave out --teardown or --concurrent"),
        (
            "--directory fresh",
            "--directory: a fresh directory",
            "leave out --directory fresh or --concurrent",
        ),
        ("--check-file out", "--check-file: output in a file", "leave out --check-file or --concurrent"),
        ("--order balanced", "--order: order \"balanced\"", "leave out --order or --concurrent"),
        (
            "--cpus any",
            "--cpus: CPUs \"any\"",
            "name one CPU (--cpus 0), or leave out --cpus or --concurrent",
        ),
        (
            "--cpus 0,1",
            "--cpus: CPUs \"0,1\"",
            "name one CPU (--cpus 0), or leave out --cpus or --concurrent",
        ),
    ] {
        let printed = concurrent(&lab, words);
        assert_eq!(printed.status, Some(2), "{printed:?}");
        let error = format!(
            "{what} and --concurrent exclude each other: the runs of a round start together and share one CPU, and "
        );
        assert!(printed.stderr.contains(&error), "{words}: {printed:?}");
        assert!(printed.stderr.trim().ends_with(&format!("; {fix}")), "{words}: {printed:?}");
        assert_eq!(printed.stderr.trim().lines().count(), 1, "{printed:?}");
    }
    assert!(!lab.path(".widthwise").exists());
}
