//! `scale`: how throughput and memory grow with the number of processes, on programs for which that is known.

mod laboratory;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;

use laboratory::{repository, unfolded, Laboratory, Said};
use serde_json::Value;

/// Who looks at times runs alone among these tests.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs it alone, three times at most: the host of a virtual machine takes its CPUs away for tenths of a second now and
/// then, and that is what has been measured then. What is wrong is wrong every time.
fn alone(test: impl Fn()) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for _ in 0..2 {
        if catch_unwind(AssertUnwindSafe(&test)).is_ok() {
            return;
        }
    }
    test();
}

const MIB: f64 = 1_048_576.0;

/// `crew.c`, with the header that it needs.
fn lab() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("crew.c");
    lab.copy(&repository().join("runtime/marks/widthwise-marks.h"), "widthwise-marks.h");
    lab
}

/// The words of a study of `crew.c`.
fn words(abis: &str, run: &str, options: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["scale", "crew.c", "--flags=-pthread", "--abi", abis, "--run"].map(str::to_owned).to_vec();
    words.push(format!("{{build}}/crew {run}"));
    words.extend(shell_words(options));
    words
}

/// Words, of which those in single quotes stay together.
fn shell_words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (place, part) in text.split('\'').enumerate() {
        if place % 2 == 1 {
            all.push(part.to_owned());
        } else {
            all.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    all
}

fn scale(lab: &Laboratory, abis: &str, run: &str, options: &str) -> Said {
    let words = words(abis, run, options);
    lab.widthwise(&words.iter().map(String::as_str).collect::<Vec<_>>()[..])
}

/// A study of one timed round and nothing else.
fn once(lab: &Laboratory, run: &str, options: &str) -> Said {
    scale(lab, "x86-64", run, &format!("--rounds 1 --warmup 0 --memory=0 {options}"))
}

fn study(lab: &Laboratory, abis: &str, run: &str, options: &str) -> Value {
    let said = scale(lab, abis, run, &format!("{options} --json"));
    assert_eq!(said.status, Some(0), "{said:?}");
    said.json()
}

fn table<'a>(study: &'a Value, variant: &str, mode: &str) -> &'a Value {
    let tables = study["tables"].as_array().unwrap();
    let found =
        tables.iter().find(|t| t["variant"].as_str().unwrap().starts_with(variant) && t["mode"] == mode);
    found.unwrap_or_else(|| panic!("no table of {variant} {mode}: {tables:?}"))
}

fn row(table: &Value, processes: u64) -> &Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row["processes"] == processes)
        .unwrap_or_else(|| panic!("no {processes}: {rows:?}"))
}

fn estimate(figure: &Value) -> f64 {
    figure["estimate"].as_f64().unwrap_or_else(|| panic!("no estimate: {figure}"))
}

#[track_caller]
fn about(value: f64, truth: f64, share: f64) {
    assert!((value / truth - 1.0).abs() <= share, "{value} is not {truth} within {share}");
}

/// What sleeps takes its time whatever else runs: the truth of speed-up and sequential part, on any machine.
#[test]
fn children_and_jobs_that_sleep_speed_up_as_they_must() {
    alone(|| {
        let lab = lab();
        let run = "fork {processes} {events} seq=200000 event=20000";
        let options = "--mode fork,jobs --processes 1,2,4 --events 40 --rounds 3 --warmup 0 --memory=0 \
                   --jobs-run '{build}/crew alone 1 {events} seq=200000 event=20000'";
        let study = study(&lab, "x86-64,x32,i386", run, options);
        for variant in ["x86-64", "x32", "i386"] {
            for mode in ["fork", "jobs"] {
                let table = table(&study, variant, mode);
                for (processes, elapsed) in [(1, 1.0), (2, 0.6), (4, 0.4)] {
                    let row = row(table, processes);
                    about(estimate(&row["elapsed"]), elapsed, 0.15);
                    about(estimate(&row["throughput"]) * estimate(&row["elapsed"]), 40.0, 0.01);
                    // TIME stays what it is: that is what it is for.
                    about(estimate(&row["TIME"]), 0.8, 0.3);
                }
                let sequential = &table["sequential"];
                about(estimate(&sequential["regression"]["intercept"]), 0.2, 0.2);
                about(estimate(&sequential["one_event"]), 0.22, 0.2);
                if mode == "fork" {
                    about(estimate(&sequential["at_fork"]), 0.2, 0.2);
                }
            }
        }
        assert_eq!(study["different"], serde_json::json!([]));
        let attempts = study["attempts"].as_array().unwrap();
        // Every round has every cell once, the A/A pair, and of each variant and mode the two for the sequential part.
        assert_eq!(attempts.len(), 3 * (3 * 2 * (3 + 2) + 1));
        for attempt in attempts {
            let members = attempt["members"].as_array().unwrap();
            assert_eq!(members.len() as u64, attempt["cell"]["processes"].as_u64().unwrap(), "{attempt}");
            for (place, member) in members.iter().enumerate() {
                let cpus = &row(table(&study, "x86-64", "fork"), 4)["cpus"];
                assert_eq!(member["cpu"], cpus[place], "{attempt}");
            }
        }
    });
}

#[test]
fn threads_are_members_and_a_lock_holds_them_back() {
    alone(|| {
        let lab = lab();
        let options = "--mode threads --processes 1,2,4 --events 40 --rounds 2 --warmup 0 --memory=0";
        let free = study(&lab, "x86-64", "threads {processes} {events} event=20000", options);
        let locked = study(&lab, "x86-64", "threads {processes} {events} event=20000 lock=100", options);
        for (processes, speed_up) in [(2, 2.0), (4, 4.0)] {
            about(estimate(&row(table(&free, "x86-64", "threads"), processes)["speed_up"]), speed_up, 0.15);
            about(estimate(&row(table(&locked, "x86-64", "threads"), processes)["speed_up"]), 1.0, 0.15);
        }
        let members = |study: &Value| study["attempts"][0]["members"].as_array().unwrap().len() as u64;
        assert_eq!(members(&free), free["attempts"][0]["cell"]["processes"].as_u64().unwrap());
    });
}

#[test]
fn memory_is_shared_by_children_and_not_by_jobs_and_what_unshares_it_is_told() {
    alone(|| {
        let lab = lab();
        let memory = "shared=96 touch=16 own=8 hold=800";
        let options = format!(
            "--mode fork,jobs --processes 1,2,4 --events 4 --rounds 1 --warmup 0 --memory=1 \
         --jobs-run '{{build}}/crew alone 1 {{events}} {memory}'"
        );
        let study =
            study(&lab, "x86-64,x32,i386", &format!("fork {{processes}} {{events}} {memory}"), &options);
        for variant in ["x86-64", "x32", "i386"] {
            let forks = table(&study, variant, "fork");
            // A child costs what it has written and what is its own: 24 MiB; a job everything: 104 MiB.
            about(estimate(&forks["marginal"]["slope"]), 24.0 * MIB, 0.05);
            about(estimate(&table(&study, variant, "jobs")["marginal"]["slope"]), 104.0 * MIB, 0.05);
            for processes in [1, 2, 4] {
                let memory = &row(forks, processes)["memory"];
                assert_eq!(memory["frozen"], true, "{memory}");
                about(memory["member_uss"].as_f64().unwrap(), 24.0 * MIB, 0.05);
                about(memory["anonymous"].as_f64().unwrap(), (96.0 + 24.0 * processes as f64) * MIB, 0.05);
                let unshared = memory["unshared"].as_array().unwrap();
                let sum = |key: &str| unshared.iter().map(|part| part[key].as_f64().unwrap()).sum::<f64>();
                about(sum("copied") + sum("own"), 24.0 * MIB * processes as f64, 0.06);
                let mapped = unshared.iter().find(|part| part["part"] == "mmapped blocks").unwrap();
                about(mapped["at_fork"].as_f64().unwrap(), 96.0 * MIB, 0.05);
                about(mapped["copied"].as_f64().unwrap(), 16.0 * MIB * processes as f64, 0.05);
                about(mapped["shared"].as_f64().unwrap(), 80.0 * MIB * processes as f64, 0.05);
            }
        }
    });
}

#[test]
fn events_are_told_by_logs_and_by_marks() {
    alone(|| {
        let lab = lab();
        let run = "fork {processes} {events} event=10000 log=1 marks=1";
        let options = "--processes 2 --events 20 --rounds 1 --warmup 0 --memory=0 --directory fresh";
        let pattern = r"--event-pattern 'took (?P<elapsed>\S+) s' --event-log log-*";
        let by_log = study(&lab, "x86-64", run, &format!("{options} {pattern}"));
        let by_marks = study(&lab, "x86-64", run, &format!("{options} --event-marks"));
        for (study, share) in [(&by_log, 0.001), (&by_marks, 0.3)] {
            let attempts = study["attempts"].as_array().unwrap();
            let attempt = attempts.iter().find(|attempt| attempt["purpose"] == "timed").unwrap();
            for member in attempt["members"].as_array().unwrap() {
                assert_eq!(member["told"]["events"], 10, "{attempt}");
                about(member["told"]["elapsed_s"].as_f64().unwrap(), 0.01, share);
            }
            let row = row(table(study, "x86-64", "fork"), 2);
            assert_eq!(row["evtime_source"], "told-elapsed");
        }
    });
}

#[test]
fn cells_that_fail_are_told_and_the_others_stay() {
    let lab = lab();
    let options = "--processes 1,2,3 --events 6 --rounds 2 --warmup 0 --memory=0 --timeout 2s";
    for (fault, told) in [
        ("die=2", "child 2 did not end well: killed by signal 11"),
        ("hang=2", "still running after 2 s, and was killed (--timeout)"),
    ] {
        let said =
            scale(&lab, "x86-64", &format!("fork {{processes}} {{events}} event=1000 {fault}"), options);
        assert_eq!(said.status, Some(1), "{said:?}");
        assert!(said.stdout.contains(told), "{said:?}");
        let json = lab.widthwise("report --json").json();
        let table = table(&json, "x86-64", "fork");
        for processes in [1, 2] {
            assert_eq!(row(table, processes)["attempts"], 2);
            assert!(row(table, processes)["failure"].is_null());
        }
        assert!(row(table, 3)["failure"].as_str().unwrap().contains(told));
        // It failed once, and was not tried again.
        let failed = json["attempts"].as_array().unwrap().iter().filter(|a| !a["failure"].is_null()).count();
        assert_eq!(failed, 1);
    }
}

#[test]
fn a_child_that_puts_itself_elsewhere_is_told() {
    let lab = lab();
    let run = "fork {processes} {events} event=100000 pin=0";
    let said = once(&lab, run, "--processes 2 --placement 1,0 --events 8");
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("child 0 was put on CPU 1 and put itself on 0"), "{said:?}");
}

#[test]
fn two_hundred_processes_are_all_accounted_for() {
    alone(|| {
        let lab = lab();
        let options = "--mode fork,jobs --processes 200 --events 400 --rounds 1 --warmup 0 --memory=0 \
                   --jobs-run '{build}/crew alone 1 {events} spin=1 event=20000'";
        let study = study(&lab, "x86-64", "fork {processes} {events} spin=1 event=20000", options);
        for mode in ["fork", "jobs"] {
            let attempts = study["attempts"].as_array().unwrap();
            let attempt =
                attempts.iter().find(|a| a["cell"]["mode"] == mode && a["purpose"] == "timed").unwrap();
            let members = attempt["members"].as_array().unwrap();
            assert_eq!(members.len(), 200);
            let sum: f64 = members.iter().map(|member| member["cpu_ns"].as_f64().unwrap()).sum();
            let lost = members.iter().find(|member| member["exact"] != true || member["cpu_ns"] == 0);
            assert!(lost.is_none(), "{mode}: {lost:?} {}", attempt["remarks"]);
            // What is not the members' is the parent's.
            let all = attempt["cpu_ns"].as_f64().unwrap();
            assert!(sum <= all * 1.02 && sum >= all * 0.7, "{mode}: {sum} of {all}");
        }
    });
}

#[test]
fn answers_are_compared_through_the_filter_that_was_said() {
    let lab = Laboratory::new();
    lab.write(
        "width.c",
        "#include <stdio.h>\nint main(void) { printf(\"%zu bytes\\n\", sizeof(void *)); }\n",
    );
    let study = |filter: &str| {
        let words = "scale width.c --abi x86-64,i386 --processes 1 --rounds 1 --warmup 0 --memory=0";
        lab.widthwise(&format!("{words} {filter}"))
    };
    let plain = study("");
    assert_eq!(plain.status, Some(1), "{plain:?}");
    assert!(unfolded(&plain.stdout).contains("answers otherwise than x86-64"), "{plain:?}");
    let filtered = study("--filter 'sed s/[48]/N/'");
    assert_eq!(filtered.status, Some(0), "{filtered:?}");
}

/// Long enough for a shell to start meanwhile, however busy the machine.
const BESIDE_LOAD: &str = "fork {processes} {events} event=200000";

#[test]
fn what_was_to_be_measured_beside_a_load_that_fails_is_not_measured() {
    let lab = lab();
    let said = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --background 'no-such-load'");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(said.status, Some(if several { 1 } else { 0 }), "{said:?}");
    let words = "the load on CPU ";
    let all = unfolded(&format!("{}{}", said.stdout, said.stderr));
    assert!(!several || (all.contains(words) && all.contains("no-such-load: not found")), "{said:?}");
}

#[test]
fn load_runs_on_what_is_left_free_and_ends_with_the_study() {
    let lab = lab();
    let said = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --background 'touch was-here; sleep 1000'");
    assert_eq!(said.status, Some(0), "{said:?}");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(lab.path("was-here").exists(), several);
    assert!(!lab.processes().contains("sleep 1000"), "{}", lab.processes());
}

#[test]
fn an_interrupted_study_goes_on_and_counts_nothing_twice() {
    let lab = lab();
    let first = scale(
        &lab,
        "x86-64",
        "fork {processes} {events} event=2000",
        "--processes 1,2 --events 8 --rounds 2 --warmup 1 --memory=1 --directory fresh",
    );
    assert_eq!(first.status, Some(0), "{first:?}");
    let before = lab.widthwise("report --json").json();
    let said = lab.widthwise("scale --resume .widthwise/latest --rounds 5 --json");
    assert_eq!(said.status, Some(0), "{said:?}");
    let after = said.json();
    let count = |study: &Value, purpose: &str| {
        study["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["purpose"] == purpose).count()
    };
    assert_eq!((count(&before, "timed"), count(&after, "timed")), (6, 15));
    for purpose in ["warmup", "memory", "one-event"] {
        assert_eq!(count(&after, purpose) / if purpose == "one-event" { 5 } else { 1 }, {
            count(&before, purpose) / if purpose == "one-event" { 2 } else { 1 }
        });
    }
    lab.write("crew.c", &(lab.read("crew.c") + "/* changed */\n"));
    let refused = lab.widthwise("scale --resume .widthwise/latest --rounds 6");
    refused.refuses(2, &["cannot be resumed", "source"]);
}

#[test]
fn a_variant_that_answers_otherwise_is_told() {
    let lab = lab();
    lab.write("width.c", "#include <stdio.h>\nint main(void) { printf(\"%zu\\n\", sizeof(void *)); }\n");
    let words = "scale width.c --abi x86-64,i386 --processes 1 --rounds 1 --memory=0";
    let said = lab.widthwise(words);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.stdout.contains("i386 answers otherwise than x86-64"), "{said:?}");
    let allowed = lab.widthwise(&format!("{words} --allow-different-output"));
    assert!(allowed.status == Some(0) && allowed.stdout.contains("answers otherwise"), "{allowed:?}");
    let off = lab.widthwise(&format!("{words} --check off"));
    assert!(off.status == Some(0) && off.stdout.contains("answers were not compared"), "{off:?}");
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_the_mend() {
    let lab = lab();
    let plain = "alone 1 10";
    for (run, options, told) in [
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
        let said = scale(&lab, "x86-64", run, options);
        assert_eq!(said.status, Some(2), "{options}: {said:?}");
        assert!(said.stderr.contains(told), "{options}: {said:?}");
        assert!(!lab.path(".widthwise/latest").exists());
    }
    let compared = lab.widthwise(&["compare", "crew.c", "--run", "{build}/crew fork {processes} 10"]);
    compared.refuses(2, &["{processes}", "widthwise scale"]);
}

#[test]
fn every_format_tells_the_same_study() {
    let lab = lab();
    let said = scale(
        &lab,
        "x86-64,i386",
        "fork {processes} {events} event=2000 own=4 hold=300",
        "--processes 1,2 --events 8 --rounds 6 --warmup 0",
    );
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("speed-up") && said.stdout.contains("Detection floor"), "{said:?}");
    let made = lab.widthwise("report --html out.html --csv out.csv --json out.json");
    assert_eq!(made.status, Some(0), "{made:?}");
    let json: Value = serde_json::from_str(&lab.read("out.json")).unwrap();
    let attempts = json["attempts"].as_array().unwrap();
    let members: usize = attempts.iter().map(|a| a["members"].as_array().unwrap().len()).sum();
    let mut csv = csv::Reader::from_reader(lab.read("out.csv").into_bytes().leak() as &[u8]);
    assert_eq!(csv.records().count(), members);
    let html = lab.read("out.html");
    assert!(html.contains("Memory over time") && !html.contains("<script"));
    let figure = &row(table(&json, "x86-64", "fork"), 2)["speed_up"];
    let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
    assert!(low <= estimate(figure) && estimate(figure) <= high);
    assert_eq!(html, lab.read(".widthwise/latest/report.html"));
}
