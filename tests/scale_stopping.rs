//! When `scale` stops: the rule of docs/verdicts.md, over all sessions of a campaign.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::laboratory::alone::alone;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{count, signal, unfolded, until, CommandOutput, Laboratory};
use rusqlite::Connection;

/// Begins a campaign of a program that sleeps for 5 ms.
fn begin(options: &str) -> (Laboratory, CommandOutput) {
    begin_sleep(5, options)
}

/// Begins a campaign of a program that sleeps for so many milliseconds.
fn begin_sleep(milliseconds: u32, options: &str) -> (Laboratory, CommandOutput) {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let words = "--abi x86-64 --processes 1 --warmup 0 --memory=0";
    let output = lab.widthwise(&format!("scale nap.c {words} {options} -- 1 {milliseconds}"));
    (lab, output)
}

/// The sleep of a program whose throughput is to be known to ± 90 %: a delay of some milliseconds changes it little.
const STEADY_MS: u32 = 50;

/// Why the throughput of such a program need not be known to ± 90 %, if that is so.
fn disturbance(lab: &Laboratory) -> Option<&'static str> {
    let longest = "SELECT max(elapsed_ns) FROM group_run WHERE purpose = 'timed'";
    let longest_ms = count(&lab.archive(), longest) / 1_000_000;
    (longest_ms > 2 * i64::from(STEADY_MS))
        .then_some("a run took twice the time of its sleep: the host stalled")
}

fn timed_rounds(lab: &Laboratory) -> usize {
    let report = lab.widthwise("report --json").json();
    let timed = report["runs"].as_array().unwrap().iter().filter(|run| run["purpose"] == "timed");
    timed.map(|run| run["round"].as_u64().unwrap()).collect::<BTreeSet<_>>().len()
}

/// Resumes it, to an end without an error.
#[track_caller]
fn resume(lab: &Laboratory, options: &str) {
    let output = lab.widthwise(&format!("scale --resume .widthwise/latest {options}"));
    assert_eq!(output.status, Some(0), "{output:?}");
}

fn database(lab: &Laboratory) -> PathBuf {
    lab.path(".widthwise/latest").canonicalize().unwrap().join("campaign.sqlite")
}

#[test]
fn the_precision_must_be_met_at_two_looks_the_first_of_them_at_ten_rounds_or_later() {
    // Beside other tests a program waits for a CPU, and a look withholds the throughput.
    let _alone = alone();
    let (lab, output) = begin_sleep(STEADY_MS, "--precision 90% --rounds 30");
    assert_eq!(output.status, Some(0), "{output:?}");
    if let Some(reason) = disturbance(&lab) {
        return skipped(reason);
    }
    assert!(output.stderr.contains("every throughput is known to ± 90.0 %"), "{output:?}");
    assert_eq!(timed_rounds(&lab), 13);
}

#[test]
fn a_resumed_campaign_makes_its_looks_after_the_same_rounds() {
    let _alone = alone();
    let (lab, _) = begin_sleep(STEADY_MS, "--rounds 11");
    resume(&lab, "--precision 90% --rounds 30");
    if let Some(reason) = disturbance(&lab) {
        return skipped(reason);
    }
    // The first looks are after 13 and 17 rounds, not after 12 and 13.
    assert_eq!(timed_rounds(&lab), 17);
}

#[test]
fn a_rule_given_on_resume_holds_for_later_sessions() {
    let (lab, _) = begin("--max-time 1ms");
    assert_eq!(timed_rounds(&lab), 1);
    resume(&lab, "--rounds 3");
    assert_eq!(timed_rounds(&lab), 3);
    resume(&lab, "");
    assert_eq!(timed_rounds(&lab), 3);
}

#[test]
fn max_time_counts_all_sessions() {
    let (lab, output) = begin("--max-time 200ms");
    assert!(output.stderr.contains("the time limit was reached"), "{output:?}");
    let first = timed_rounds(&lab);
    assert!(first > 1, "{output:?}");
    resume(&lab, "");
    assert_eq!(timed_rounds(&lab), first);
    resume(&lab, "--max-time 1h --rounds 60");
    assert_eq!(timed_rounds(&lab), first.max(60));
}

#[test]
fn a_campaign_that_fails_in_every_cell_ends() {
    let lab = Laboratory::new();
    lab.write("fails.c", "int main(void) { return 3; }\n");
    let output = lab.widthwise("scale fails.c --abi x86-64 --processes 1 --precision 1%");
    assert_eq!(output.status, Some(1), "{output:?}");
}

#[test]
fn every_option_of_scale_is_refused_on_resume() {
    let (lab, _) = begin("--rounds 1");
    for option in [
        "--processes 2",
        "--mode jobs",
        "--placement cores",
        "--cores all",
        "--events 4",
        "--events-each",
        "--jobs-run ./x",
        "--load true",
        "--event-pattern cms",
        "--event-log log",
        "--event-marks",
        "--memory-limit 1G",
    ] {
        let output = lab.widthwise(&format!("scale --resume .widthwise/latest {option}"));
        output.refuses(2, &["only --rounds, --precision and --max-time may be given with it"]);
    }
}

/// The change of the file, the original file, and the expected message.
type Damage<'a> = (&'a dyn Fn(&Path), &'a str);

#[test]
fn a_foreign_or_damaged_archive_is_refused() {
    let (lab, _) = begin("--rounds 1");
    let path = database(&lab);
    let whole = std::fs::read(&path).unwrap();
    let changed = |statements: &'static str| {
        move |path: &Path| Connection::open(path).unwrap().execute_batch(statements).unwrap()
    };
    let damages: [Damage; 5] = [
        (&|path| std::fs::write(path, &whole[..whole.len() - 7]).unwrap(), "ends in the middle of a page"),
        (&|path| std::fs::write(path, b"").unwrap(), "the file is empty"),
        (&changed("DROP TABLE group_run"), "it has no table `group_run`"),
        (&changed("PRAGMA user_version = 9"), "version 9"),
        (&changed("PRAGMA application_id = 5"), "another application"),
    ];
    for (damage, message) in damages {
        std::fs::write(&path, &whole).unwrap();
        damage(&path);
        for verb in ["report", "scale --resume .widthwise/latest"] {
            lab.widthwise(verb).refuses(2, &["campaign.sqlite", message]);
        }
    }
}

/// Starts or resumes a campaign, and ends it by Ctrl-C once there is a first run of an unfinished round of that kind.
fn interrupted(lab: &Laboratory, words: &str, kind: &str) {
    let child = lab.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let open = format!(
        "SELECT count(*) FROM group_run JOIN round ON round.number = group_run.round WHERE kind = '{kind}' AND finished = 0
           AND session = (SELECT max(id) FROM session)"
    );
    until("a run of the round", || {
        lab.path(".widthwise/latest/campaign.sqlite").exists() && count(&lab.archive(), &open) == 1
    });
    signal(&child, libc::SIGINT);
    let output = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, Some(130), "{output:?}");
}

#[test]
fn interrupted_rounds_are_used_by_no_figure_and_are_made_anew() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let words = "--abi x86-64 --processes 1,2,3 --warmup 2 --memory=3 --rounds 3 -- 1 100";
    interrupted(&lab, &format!("scale nap.c {words}"), "warmup");
    for kind in ["timed", "timed", "memory"] {
        interrupted(&lab, "scale --resume .widthwise/latest", kind);
        let stopped = "SELECT count(*) FROM session WHERE stopped = 'interrupted'";
        assert!(count(&lab.archive(), stopped) > 1);
    }
    resume(&lab, "");
    let rounds =
        |kind: &str| count(&lab.archive(), &format!("SELECT count(*) FROM rounds WHERE kind = '{kind}'"));
    assert_eq!(["warmup", "timed", "memory", "interrupted"].map(rounds), [2, 3, 3, 4]);
    let report = lab.widthwise("report --json").json();
    assert_eq!(report["timed_rounds"], 3);
    for row in report["tables"][0]["rows"].as_array().unwrap() {
        assert_eq!(row["runs"], 3, "{row}");
    }
    assert_eq!(report["stopping"]["stopped"], "all rounds asked for are done");
}

#[test]
fn a_cell_that_fails_costs_no_timed_round() {
    let lab = Laboratory::new();
    lab.write(
        "second.c",
        "int main(int argc, char **argv) { return argc > 1 && argv[1][0] == '1' ? 7 : 0; }\n",
    );
    for (warmup, failed) in [(1, "warmup"), (0, "timed")] {
        let words = format!(
            "scale second.c --abi x86-64 --processes 1,2 --mode jobs --run '{{build}}/second {{index}}' --rounds 6 --memory=0 --warmup {warmup}"
        );
        let output = lab.widthwise(&words);
        assert_eq!(output.status, Some(1), "{output:?}");
        // The fastest cell is the only one that was measured.
        assert!(!unfolded(&output.stdout).contains("with more"), "{output:?}");
        let timed = "SELECT count(*) FROM rounds WHERE kind = 'timed'";
        assert_eq!(count(&lab.archive(), timed), 6);
        let report = lab.widthwise("report --json").json();
        assert_eq!(report["timed_rounds"], 6);
        assert_eq!(report["tables"][0]["rows"][0]["runs"], 6);
        let runs = report["runs"].as_array().unwrap();
        let of: Vec<_> =
            runs.iter().filter(|run| !run["failure"].is_null()).map(|run| &run["purpose"]).collect();
        assert_eq!(of, [failed]);
    }
}

#[test]
fn a_round_is_complete_without_the_other_runs_of_a_cell_that_fails_in_it() {
    let lab = Laboratory::new();
    // With one event it works.
    lab.write(
        "events.c",
        "#include <stdlib.h>\nint main(int argc, char **argv) { return atoi(argv[1]) > 1 || argc > 3; }\n",
    );
    let words = "scale events.c --abi x86-64,i386 --processes 1 --events 8 --run '{build}/events {events}' --rounds 2 --warmup 0 --memory=0";
    assert_eq!(lab.widthwise(words).status, Some(1));
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'interrupted'"), 0);
}
