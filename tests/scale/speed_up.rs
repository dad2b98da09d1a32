//! Throughput, speed-up and the sequential part, on programs that sleep for known times.

use super::{about, estimate, lab, measured, numbers, row, runs, table, within};
use crate::laboratory::alone::alone;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{unfolded, Laboratory};
use serde_json::Value;

/// The elapsed seconds of the runs of a kind of cell.
fn elapsed(report: &Value, mode: &str, processes: u64, purpose: &str) -> Vec<f64> {
    let is_one = |run: &&Value| {
        run["cell"]["mode"] == mode && run["cell"]["processes"] == processes && run["purpose"] == purpose
    };
    runs(report).iter().filter(is_one).map(|run| run["elapsed_ns"].as_f64().unwrap() / 1e9).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// The times of all runs are those that the program has measured itself, plus its start and end. Returns
/// the largest excess over the program's sleep; `sleeps` gives the length of the sleep.
fn elapsed_is_the_programs_own(lab: &Laboratory, report: &Value, sleeps: &dyn Fn(u64, f64) -> f64) -> f64 {
    let mut listed = numbers(lab, "truth", "elapsed").into_iter();
    let (mut longer, mut excess): (Vec<f64>, f64) = (Vec::new(), 0.0);
    for run in runs(report) {
        let processes = run["cell"]["processes"].as_u64().unwrap();
        let lines = if run["cell"]["mode"] == "jobs" { processes } else { 1 };
        let own = most(&listed.by_ref().take(lines as usize).collect::<Vec<_>>());
        let all = run["elapsed_ns"].as_f64().unwrap();
        assert!(all >= own && own > 0.0, "{run}: the program says {own}");
        longer.push(all / own - 1.0);
        let asleep = sleeps(processes, run["events"].as_f64().unwrap());
        assert!(own >= asleep * 1e9, "{run}: {own}");
        excess = excess.max(all / 1e9 - asleep);
    }
    assert_eq!(listed.next(), None);
    longer.sort_by(f64::total_cmp);
    let middle = longer[longer.len() / 2];
    assert!(middle < 0.05, "half of the runs took {middle} longer than the program says: {longer:?}");
    excess
}

/// A sleep takes its time on a busy machine, too, and never less: speed-up and sequential part are known.
#[test]
fn sleeping_children_and_jobs_have_the_known_speed_up() {
    let _alone = alone();
    let lab = lab();
    let run = "fork {processes} {events} seq=50000 event=5000";
    let truth = lab.path("truth");
    let options = format!(
        "--mode fork,jobs --processes 1,2,4 --events 20 --rounds 2 --warmup 0 --memory=0 --set-env CREW_TRUTH={} \
         --jobs-run '{{build}}/workers alone 1 {{events}} seq=50000 event=5000'",
        truth.display()
    );
    let report = measured(&lab, "x86-64,x32,i386", run, &options);
    let asleep = |processes: u64, events: f64| 0.05 + 0.005 * (events / processes as f64).ceil();
    let excess = elapsed_is_the_programs_own(&lab, &report, &asleep);
    for variant in ["x86-64", "x32", "i386"] {
        for mode in ["fork", "jobs"] {
            let table = table(&report, variant, mode);
            if table["rows"]
                .as_array()
                .unwrap()
                .iter()
                .any(|row| row["waiting"]["lost"].as_f64() > Some(0.05))
            {
                // A separate test checks the report of that case.
                return skipped("other programs had the CPUs for more than a twentieth of the time");
            }
            let sequential = &table["sequential"];
            let less = sequential["subtracted"].as_f64().unwrap();
            for processes in [1, 2, 4] {
                let row = row(table, processes);
                let times = elapsed(&report, mode, processes, "timed");
                within(estimate(&row["elapsed"]), least(&times), most(&times));
                about(estimate(&row["throughput"]) * estimate(&row["elapsed"]), 20.0, 0.01);
                let smallest = elapsed(&report, mode, 1, "timed");
                let speed_up = estimate(&row["speed_up"]);
                within(speed_up, least(&smallest) / most(&times), most(&smallest) / least(&times));
                // Parallel time is constant, by its definition.
                let shared = |elapsed: f64| (elapsed - less) * processes as f64;
                within(estimate(&row["parallel_time"]), shared(least(&times)), shared(most(&times)));
            }
            // A line through 0.05 s and the time of 1, 10 and 20 events has at most 1.4 times the error of these.
            let intercept = estimate(&sequential["regression"]["intercept"]);
            assert!((intercept - 0.05).abs() <= 0.001 + 1.4 * excess, "{intercept} with {excess}");
            let one = elapsed(&report, mode, 1, "one-event");
            within(estimate(&sequential["one_event"]), least(&one), most(&one));
            if mode == "fork" {
                let at_fork = estimate(&sequential["at_fork"]);
                assert!((0.05..=0.05 + excess).contains(&at_fork), "{at_fork} with {excess}");
            }
        }
    }
    assert_eq!(report["output_mismatches"], serde_json::json!([]));
    // Every round has every cell once, the A/A control, and for each variant and mode the two runs for the sequential part.
    assert_eq!(runs(&report).len(), 2 * (3 * 2 * (3 + 2) + 1));
    for run in runs(&report) {
        let members = run["members"].as_array().unwrap();
        assert_eq!(members.len() as u64, run["cell"]["processes"].as_u64().unwrap(), "{run}");
        for (place, member) in members.iter().enumerate() {
            let cpus = &row(table(&report, "x86-64", "fork"), 4)["cpus"];
            assert_eq!(member["cpu"], cpus[place], "{run}");
        }
    }
}

#[test]
fn threads_are_members_and_a_lock_limits_their_speed_up() {
    let _alone = alone();
    for (lock, sleeps) in [
        (
            "",
            (&|processes: u64, events: f64| 0.01 * (events / processes as f64).ceil())
                as &dyn Fn(u64, f64) -> f64,
        ),
        ("lock=100", &|_, events| 0.01 * events),
    ] {
        let lab = lab();
        let options = format!(
            "--mode threads --processes 1,2,4 --events 20 --rounds 2 --warmup 0 --memory=0 --set-env CREW_TRUTH={}",
            lab.path("truth").display()
        );
        let report = measured(
            &lab,
            "x86-64",
            &format!("threads {{processes}} {{events}} event=10000 {lock}"),
            &options,
        );
        elapsed_is_the_programs_own(&lab, &report, sleeps);
        let smallest = elapsed(&report, "threads", 1, "timed");
        for processes in [2, 4] {
            let times = elapsed(&report, "threads", processes, "timed");
            let speed_up = &row(table(&report, "x86-64", "threads"), processes)["speed_up"];
            if speed_up["verdict"] == "withheld" {
                return skipped(speed_up["reason"].as_str().unwrap());
            }
            within(estimate(speed_up), least(&smallest) / most(&times), most(&smallest) / least(&times));
        }
        for run in runs(&report) {
            let members = run["members"].as_array().unwrap().len() as u64;
            assert_eq!(members, run["cell"]["processes"].as_u64().unwrap(), "{run}");
        }
    }
}

/// Two processes have the throughput of one: even if one estimate is higher by chance, no gain is reported.
#[test]
fn a_gain_within_the_interval_is_not_reported() {
    let _alone = alone();
    let lab = Laboratory::new();
    lab.program("one_at_a_time.c");
    let lock = lab.path("lock").display().to_string();
    let run = format!("{{build}}/one_at_a_time 30 {lock}");
    for _ in 0..3 {
        let output = lab.widthwise(
            &["scale", "one_at_a_time.c", "--abi", "x86-64", "--run", &run, "--mode", "jobs"]
                .into_iter()
                .chain(["--processes", "1,2", "--rounds", "6", "--memory=0", "--json"])
                .collect::<Vec<_>>()[..],
        );
        assert_eq!(output.status, Some(0), "{output:?}");
        let report = output.json();
        let gain = &row(table(&report, "x86-64", "jobs"), 2)["speed_up"];
        let text = unfolded(&lab.widthwise("report").stdout);
        if gain["verdict"] == "withheld" {
            assert!(!text.contains("highest throughput measured"), "{text}");
        } else {
            assert!(gain["low"].as_f64() < Some(1.2), "{gain}");
            let claims = text.contains("not clearly more than that of 1 (")
                || text.contains("none with more is higher");
            assert!(claims, "{gain}: {text}");
        }
    }
}
