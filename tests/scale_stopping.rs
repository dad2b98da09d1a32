//! When `scale` stops: the rule of docs/verdicts.md, over all sessions of a campaign.

mod laboratory;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use laboratory::outcomes::skipped;
use laboratory::{CommandOutput, Laboratory};
use rusqlite::Connection;

/// Begins a campaign of a program that sleeps for 5 ms.
fn begin(options: &str) -> (Laboratory, CommandOutput) {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let said = lab
        .widthwise(&format!("scale nap.c --abi x86-64 --processes 1 --warmup 0 --memory=0 {options} -- 1 5"));
    (lab, said)
}

fn timed_rounds(lab: &Laboratory) -> usize {
    let report = lab.widthwise("report --json").json();
    let timed = report["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["purpose"] == "timed");
    timed.map(|attempt| attempt["round"].as_u64().unwrap()).collect::<BTreeSet<_>>().len()
}

/// Resumes it, to an end without an error.
#[track_caller]
fn resume(lab: &Laboratory, options: &str) {
    let said = lab.widthwise(&format!("scale --resume .widthwise/latest {options}"));
    assert_eq!(said.status, Some(0), "{said:?}");
}

fn database(lab: &Laboratory) -> PathBuf {
    lab.path(".widthwise/latest").canonicalize().unwrap().join("campaign.sqlite")
}

#[test]
fn the_precision_must_be_met_at_two_looks_the_first_at_ten_rounds() {
    let (lab, said) = begin("--precision 90% --rounds 30");
    assert_eq!(said.status, Some(0), "{said:?}");
    if said.stdout.contains("withheld") {
        return skipped("other programs had the CPUs, so that no throughput is known");
    }
    assert!(said.stderr.contains("every throughput is known to ± 90.0 %"), "{said:?}");
    assert_eq!(timed_rounds(&lab), 13);
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
    let (lab, said) = begin("--max-time 200ms");
    assert!(said.stderr.contains("the time limit was reached"), "{said:?}");
    let first = timed_rounds(&lab);
    assert!(first > 1, "{said:?}");
    resume(&lab, "");
    assert_eq!(timed_rounds(&lab), first);
    resume(&lab, "--max-time 1h --rounds 60");
    assert_eq!(timed_rounds(&lab), first.max(60));
}

#[test]
fn a_campaign_that_fails_in_every_cell_ends() {
    let lab = Laboratory::new();
    lab.write("fails.c", "int main(void) { return 3; }\n");
    let said = lab.widthwise("scale fails.c --abi x86-64 --processes 1 --precision 1%");
    assert_eq!(said.status, Some(1), "{said:?}");
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
        let said = lab.widthwise(&format!("scale --resume .widthwise/latest {option}"));
        said.refuses(2, &["only --rounds, --precision and --max-time may be given anew"]);
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
