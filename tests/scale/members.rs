//! CPU time, elapsed time and CPUs of children, threads and jobs, however they are started.

use std::collections::BTreeSet;

use super::{
    about, estimate, every_shape, lab, measured, numbers, once, pooled, pools, row, runs, table, within,
};
use crate::laboratory::alone::alone;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{is_root, Laboratory};
use serde_json::Value;

/// The CPU time of a run is that of all its processes and threads, including those that have ended, and is divided among the requested number
/// of members.
#[test]
fn cpu_time_includes_every_thread_and_child() {
    let _alone = alone();
    let lab = pools();
    let all = [
        ("threads", &["one", "two", "nested", "main", "team", "detached", "helper", "many", "phases"][..]),
        ("fork", &["forks", "refork", "exec", "double", "orphans"]),
        ("jobs", &["alone", "two"]),
    ];
    let some = [
        ("threads", &["nested", "team", "detached", "many"][..]),
        ("fork", &["refork", "exec", "orphans"]),
        ("jobs", &["two"]),
    ];
    let shapes = every_shape(all, some);
    for (mode, shape) in
        shapes.iter().flat_map(|(mode, shapes)| shapes.iter().map(move |shape| (*mode, *shape)))
    {
        let report = pooled(&lab, shape, mode, 100, "--processes 2 --rounds 1");
        let own: f64 = numbers(&lab, "truth", "cpu").iter().sum();
        let all: f64 = runs(&report).iter().map(|run| run["cpu_ns"].as_f64().unwrap()).sum();
        // A process cannot report the time of its own start and end.
        assert!(all >= own && all <= 1.05 * own, "{shape}: {all} against {own}");
        // One of the two runs belongs to the cell itself.
        let row = row(table(&report, "x86-64", mode), 2);
        let done = if mode == "jobs" { 2.0 } else { 1.0 };
        about(estimate(&row["cpu_per_event"]) * 1e9 * done * 2.0, own, 0.05);
        for run in runs(&report) {
            let members = run["members"].as_array().unwrap();
            assert_eq!(members.len(), 2, "{shape}: {run}");
            let of_members: f64 = members.iter().map(|member| member["cpu_ns"].as_f64().unwrap()).sum();
            let all = run["cpu_ns"].as_f64().unwrap();
            // The rest belongs to the main thread or the parent: a third of the work at most.
            assert!(of_members <= 1.02 * all && of_members >= 0.6 * all, "{shape}: {of_members} of {all}");
        }
    }
}

/// No process waits for these children, so that only their control group has their CPU time.
#[test]
fn cpu_time_of_children_without_wait_is_counted() {
    if !is_root() {
        return skipped("control groups take root");
    }
    let _alone = alone();
    let lab = pools();
    let report = pooled(&lab, "ignored", "fork", 100, "--processes 2 --rounds 1");
    let own: f64 = numbers(&lab, "truth", "cpu").iter().sum();
    let all: f64 = runs(&report).iter().map(|run| run["cpu_ns"].as_f64().unwrap()).sum();
    assert!(all >= own && all <= 1.05 * own, "{all} against {own}");
}

/// A run ends with its last process, not with the first.
#[test]
fn elapsed_time_includes_children_that_outlive_their_parent() {
    if !is_root() {
        return skipped("the ends of orphans are reported by taskstats, which need root");
    }
    let _alone = alone();
    let lab = pools();
    let report = pooled(&lab, "orphans", "fork", 40, "--processes 2 --rounds 1");
    for (run, own) in runs(&report).iter().zip(numbers(&lab, "truth", "elapsed")) {
        // They sleep for 10 ms after its end.
        assert!(run["elapsed_ns"].as_f64().unwrap() >= own + 10e6, "{run}: {own}");
    }
}

/// Each worker's affinity at its end: it is pinned, and the workers of a run share no CPU.
#[test]
fn working_threads_and_children_have_their_own_cpus() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skipped("two CPUs are needed");
    }
    let _alone = alone();
    let lab = pools();
    let all =
        [("threads", &["one", "two", "nested", "helper", "detached"][..]), ("fork", &["refork", "double"])];
    let some = [("threads", &["two", "nested", "detached"][..]), ("fork", &["refork"])];
    let shapes = every_shape(all, some);
    for (mode, shape) in
        shapes.iter().flat_map(|(mode, shapes)| shapes.iter().map(move |shape| (*mode, *shape)))
    {
        let report = pooled(&lab, shape, mode, 600, "--processes 2 --rounds 1");
        let cpus = &row(table(&report, "x86-64", mode), 2)["cpus"];
        let cpus: BTreeSet<u64> = cpus.as_array().unwrap().iter().map(|cpu| cpu.as_u64().unwrap()).collect();
        let text = lab.read("truth");
        let places: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("on ")).collect();
        assert_eq!(places.len(), 4, "{shape}: {text}");
        for of_attempt in places.chunks(2) {
            let found: BTreeSet<u64> = of_attempt.iter().filter_map(|place| place.parse().ok()).collect();
            assert_eq!(found, cpus, "{shape}: {text}");
        }
    }
}

#[test]
fn a_child_that_sets_its_own_affinity_is_reported() {
    let lab = lab();
    let run = "fork {processes} {events} event=100000 pin=0";
    let output = once(&lab, run, "--processes 2 --placement 1,0 --events 8");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(output.stdout.contains("child 0 was put on CPU 1 and put itself on 0"), "{output:?}");
}

#[test]
fn a_job_that_sets_its_own_affinity_is_reported() {
    let lab = lab();
    let run = "alone {processes} {events} event=100000 pin=0";
    let output = once(&lab, run, "--mode jobs --processes 2 --placement 1,0 --events 8");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(output.stdout.contains("job 0 was put on CPU 1 and put itself on 0"), "{output:?}");
    assert!(!output.stdout.contains("job 1 was put on"), "{output:?}");
}

#[test]
fn the_cpu_time_of_a_forking_parent_is_that_of_no_process_with_threads() {
    let lab = lab();
    for mode in ["fork", "threads"] {
        let run = format!("{mode} {{processes}} {{events}} event=20000 spin=2");
        let options = format!("--mode {mode} --processes 2 --events 8 --rounds 1 --warmup 0 --memory=0");
        for run in
            runs(&measured(&lab, "x86-64", &run, &options)).iter().filter(|run| run["purpose"] == "timed")
        {
            let parent = run["parent_cpu_ns"].as_u64();
            // The parent only forks and waits.
            let is_small = parent.is_some_and(|parent| 4 * parent < run["cpu_ns"].as_u64().unwrap());
            assert!(if mode == "fork" { is_small } else { parent.is_none() }, "{run}");
            // Only reports of exits, for root, have the end of a child or thread.
            for member in run["members"].as_array().unwrap() {
                assert_eq!(member["ended_ns"].is_null(), !is_root(), "{run}");
            }
        }
    }
}

/// Its start of 100 ms is no part of an event, as it is none where a parent has done it. There are so many
/// events that the starts of two runs may differ by a millisecond.
#[test]
fn the_cpu_time_of_an_event_is_without_the_start_of_a_program_that_forks_no_child() {
    let _alone = alone();
    let lab = lab();
    let options = "--mode fork --processes 1 --events 100 --rounds 1 --warmup 0 --memory=0";
    let report =
        measured(&lab, "x86-64", "alone {processes} {events} spin=2 seq=100000 event=10000", options);
    let row = row(table(&report, "x86-64", "fork"), 1);
    within(estimate(&row["cpu_per_event"]), 10e-3, 10.4e-3);
    for run in runs(&report).iter().filter(|run| run["purpose"] == "timed") {
        assert_eq!(run["childless"], true, "{run}");
        let remarks = run["remarks"].to_string();
        assert!(remarks.contains("forked no child that was seen"), "{remarks}");
    }
}

#[test]
fn two_hundred_processes_are_all_accounted_for() {
    let _alone = alone();
    let lab = lab();
    let options = "--mode fork,jobs --processes 200 --events 200 --rounds 1 --warmup 0 --memory=0 \
               --jobs-run '{build}/workers alone 1 {events} spin=2 event=10000'";
    let report = measured(&lab, "x86-64", "fork {processes} {events} spin=2 event=10000", options);
    for mode in ["fork", "jobs"] {
        let runs = report["runs"].as_array().unwrap();
        let run = runs.iter().find(|a| a["cell"]["mode"] == mode && a["purpose"] == "timed").unwrap();
        let members = run["members"].as_array().unwrap();
        assert_eq!(members.len(), 200);
        let sum: f64 = members.iter().map(|member| member["cpu_ns"].as_f64().unwrap()).sum();
        let lost = members.iter().find(|member| member["cpu_ns"] == 0);
        assert!(lost.is_none(), "{mode}: {lost:?} {}", run["remarks"]);
        // On a busy machine a reading may be too slow to be exact, which is reported.
        let by_ticks = members.iter().filter(|member| member["exact"] != true).count();
        let is_reported = run["remarks"].to_string().contains(&format!("the CPU times of {by_ticks} of the"));
        assert_eq!(by_ticks > 0, is_reported, "{mode}: {by_ticks} {}", run["remarks"]);
        // The rest belongs to the parent.
        let all = run["cpu_ns"].as_f64().unwrap();
        assert!(sum <= all * 1.02 && sum >= all * 0.7, "{mode}: {sum} of {all}");
    }
}

/// Real OpenMP: the main thread is one of the team, and the CPU time of threads that wait belongs to the program.
#[test]
fn the_cpu_time_of_an_openmp_team_equals_its_own_measurement() {
    let _alone = alone();
    for policy in ["passive", "active"] {
        let lab = Laboratory::new();
        lab.program("openmp.c");
        let truth = lab.path("truth").display().to_string();
        let run = format!("env OMP_WAIT_POLICY={policy} {{build}}/openmp {{processes}} 100 {truth}");
        let output = lab.widthwise(
            &["scale", "openmp.c", "--flags=-fopenmp", "--abi", "x86-64", "--mode", "threads", "--run", &run]
                .into_iter()
                .chain(["--processes", "1,2", "--rounds", "2", "--warmup", "0", "--memory=0", "--json"])
                .collect::<Vec<_>>()[..],
        );
        assert_eq!(output.status, Some(0), "{policy}: {output:?}");
        let report = output.json();
        let own = numbers(&lab, "truth", "cpu ");
        assert_eq!(own.len(), runs(&report).len(), "{policy}");
        for (run, own) in runs(&report).iter().zip(own) {
            // The program's own figure excludes the time before and after main().
            about(run["cpu_ns"].as_f64().unwrap_or_else(|| panic!("{run}")), own, 0.05);
            let parts = if run["cell"]["processes"] == 2 { 4.5 } else { 2.5 };
            assert!(own >= parts * 100e6, "{policy}: {own}, {run}");
        }
    }
}

/// The time after which left-over processes are killed is not the time of their work.
#[test]
fn a_job_that_leaves_a_process_at_work_has_failed() {
    let lab = Laboratory::new();
    lab.program("left_over.c");
    for (how, status) in [("work", 1), ("sleep", 0)] {
        let words = "scale left_over.c --abi x86-64 --processes 1,2 --mode jobs --rounds 2 --warmup 0 --memory=0 --json --";
        let output = lab.widthwise(&format!("{words} {how} 300"));
        assert_eq!(output.status, Some(status), "{output:?}");
        let report = output.json();
        for processes in [1, 2] {
            let row = row(table(&report, "x86-64", "jobs"), processes);
            let failure = row["failure"].as_str().unwrap_or_default();
            assert_eq!(failure.contains("at work, which was killed"), status == 1, "{row}");
            assert_eq!(
                row["throughput"]["estimate"].is_null(),
                status == 1 || row["throughput"]["verdict"] == "withheld",
                "{row}"
            );
        }
        // The program itself ends after the work, and the daemon 0.1 s later.
        for run in runs(&report).iter().filter(|_| status == 0) {
            let members = run["members"].as_array().unwrap();
            let last = members.iter().map(|member| member["ended_ns"].as_u64().unwrap()).max();
            assert_eq!(run["elapsed_ns"].as_u64(), last, "{run}");
        }
    }
}

/// It takes no child's place, CPU or memory, and a program need not wait for it.
#[test]
fn a_daemon_that_sleeps_is_no_child_of_the_program_and_one_that_works_is() {
    let lab = Laboratory::new();
    lab.program("left_over.c");
    for (how, status) in [("daemon", 0), ("busy-daemon", 1)] {
        let run = format!("{{build}}/left_over {how} 250 {{processes}}");
        let words = "scale left_over.c --abi x86-64 --processes 1,2 --mode fork --rounds 1 --warmup 0 --memory=1 --json --run";
        let words: Vec<&str> = words.split(' ').chain([&run[..]]).collect();
        let output = lab.widthwise(&words[..]);
        assert_eq!(output.status, Some(status), "{output:?}");
        for run in runs(&output.json()).iter().filter(|run| run["purpose"] == "timed") {
            assert_eq!(run["failure"].is_null(), status == 0, "{run}");
            if status == 0 {
                let members = run["members"].as_array().unwrap();
                assert_eq!(run["cell"]["processes"], members.len(), "{run}");
                assert!(members.iter().all(|member| member["cpu_ns"].as_f64().unwrap() > 200e6), "{run}");
                assert!(run["remarks"].to_string().contains("left a process running behind it"), "{run}");
            }
        }
    }
}

/// A child's CPU time before it was seen is in its figure, or the figure is not called exact.
#[test]
fn exact_cpu_times_of_children_are_those_of_their_rusage() {
    if !is_root() {
        return skipped("task-clock events of other processes and taskstats need root");
    }
    let machine = alone();
    let lab = Laboratory::new();
    lab.program("spinning_children.c");
    let truth = lab.path("truth").display().to_string();
    let run = format!("{{build}}/spinning_children {{processes}} 30 {truth}");
    let words = [
        "scale",
        "spinning_children.c",
        "--abi",
        "x86-64",
        "--mode",
        "fork",
        "--processes",
        "1,2",
        "--run",
        &run,
    ];
    let more = ["--rounds", "6", "--warmup", "0", "--memory=0", "--check", "off", "--json"];
    let output = lab.widthwise(&[&words[..], &more[..]].concat());
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = output.json();
    let own: std::collections::BTreeMap<String, f64> = lab
        .read("truth")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pid, us)| (pid.to_owned(), us.parse::<f64>().unwrap() * 1e3))
        .collect();
    let members: Vec<&Value> =
        runs(&report).iter().flat_map(|run| run["members"].as_array().unwrap()).collect();
    if machine.host_took() > 0.01 {
        // The kernel's counter has the time that the host took, and `rusage` does not.
        return skipped("the host of this virtual machine took more than a hundredth of the CPU time");
    }
    let exact: Vec<&&Value> = members.iter().filter(|member| member["exact"] == true).collect();
    assert!(exact.len() * 2 > members.len(), "{} of {}", exact.len(), members.len());
    let error = |member: &&&Value| member["cpu_ns"].as_f64().unwrap() - own[&member["pid"].to_string()];
    let mut errors: Vec<f64> = exact.iter().map(error).collect();
    errors.sort_by(f64::total_cmp);
    // Ticks of 1 ms would lack half a millisecond in the middle. The host may have had a CPU in some runs.
    let middle = errors[errors.len() / 2];
    assert!(errors[0] > -0.95e6 && (-0.3e6..0.3e6).contains(&middle), "{errors:?}");
}
