//! CPUs that other programs, a quota or a load have: such cells are withheld, with the reason.

use std::path::Path;

use serde_json::Value;

use super::{every_shape, lab, measured, once, pooled, pools, row, runs, table};
use crate::laboratory::alone::alone;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{output_of, unfolded, Laboratory};

/// Programs that only use CPU time, pinned to given CPUs.
struct Competitors(Vec<std::process::Child>);

impl Competitors {
    fn on(cpus: &[u64], each: usize) -> Competitors {
        let spin = |cpu: &u64| {
            let mut command = std::process::Command::new("taskset");
            command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]).spawn().unwrap()
        };
        Competitors(cpus.iter().flat_map(|cpu| (0..each).map(move |_| spin(cpu))).collect())
    }
}

impl Drop for Competitors {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The CPUs of a cell with two members.
fn two_cpus(lab: &Laboratory) -> Vec<u64> {
    let report = pooled(lab, "one", "threads", 1, "--processes 2 --rounds 1");
    let cpus = row(table(&report, "x86-64", "threads"), 2)["cpus"].as_array().unwrap().clone();
    cpus.iter().map(|cpu| cpu.as_u64().unwrap()).collect()
}

#[test]
fn a_cell_whose_cpus_were_used_by_others_is_withheld_with_the_share() {
    let _alone = alone();
    let lab = pools();
    let cpus = two_cpus(&lab);
    let all = [("threads", "two"), ("fork", "forks"), ("jobs", "alone")];
    for &(mode, shape) in every_shape(&all[..], &all[..1]) {
        let competitors = Competitors::on(&cpus, 2);
        // Long enough that their waiting is read although the competitors slow the reader, too.
        let report = pooled(&lab, shape, mode, 300, "--processes 1,2 --rounds 2");
        drop(competitors);
        let table = table(&report, "x86-64", mode);
        for processes in [1, 2] {
            let row = row(table, processes);
            for figure in ["throughput", "speed_up", "efficiency", "parallel_time"] {
                assert_eq!(row[figure]["verdict"], "withheld", "{mode} {processes} {figure}: {row}");
                let reason = row[figure]["reason"].as_str().unwrap();
                assert!(
                    reason.contains(" % of their time the tasks lacked a CPU that other programs had"),
                    "{reason}"
                );
            }
            // The measurements are kept, and CPU time is unaffected.
            assert!(
                row["elapsed"]["estimate"].is_f64() && row["cpu_per_event"]["estimate"].is_f64(),
                "{row}"
            );
            let (lost, waited) = (&row["waiting"]["lost"], &row["waiting"]["waited"]);
            assert!(lost.as_f64() > Some(0.05) && waited.as_f64() > Some(0.05), "{row}");
        }
        // Two of three on each CPU are others, and one CPU was all theirs where one process ran.
        for round in report["rounds"].as_array().unwrap() {
            let noise = &round["noise"];
            assert!(noise["others"].as_f64() > Some(0.2) && noise["others_ns"].as_i64() > Some(0), "{round}");
        }
        assert_eq!(table["amdahl"]["verdict"], "withheld", "{}", table["amdahl"]);
        let text = unfolded(&lab.widthwise("report").stdout);
        assert!(text.contains("Withheld: with 1, for "), "{text}");
        assert!(!text.contains("highest throughput measured"), "{text}");
    }
}

/// Members that chose one CPU wait for each other there. A program on another CPU takes nothing from them.
#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn members_that_chose_one_cpu_lost_nothing_to_a_program_on_another() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skipped("two CPUs are needed");
    }
    let _alone = alone();
    let cpus = two_cpus(&pools());
    let lab = lab();
    let _competitor = Competitors::on(&cpus[1..], 1);
    for (mode, how) in [("fork", "fork"), ("jobs", "alone")] {
        let run = format!("{how} {{processes}} {{events}} event=40000 spin=2 pin={}", cpus[0]);
        let options = format!(
            "--mode {mode} --processes 2 --placement {},{} --events 8 --rounds 2 --warmup 0 --memory=0 --check off",
            cpus[1], cpus[0]
        );
        let report = measured(&lab, "x86-64", &run, &options);
        for run in runs(&report).iter().filter(|run| run["purpose"] == "timed") {
            let wait = &run["cpu_wait"];
            let of = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{run}"));
            assert_eq!((of(&wait["cpus"]), of(&wait["wanting"])), (1, 2), "{mode}: {run}");
            // One CPU has no more time than passes.
            let (passed, used) = (of(&run["elapsed_ns"]), of(&run["cpu_ns"]));
            let uncertain = of(&wait["uncertain_ns"]) + 20_000_000;
            assert!(of(&wait["others_ns"]) + used <= passed + uncertain, "{mode}: {run}");
            if let Some(most) = wait["most_lost_ns"].as_u64() {
                assert!(most + used <= passed + 30_000_000, "{mode}: {run}");
            }
        }
        let row = row(table(&report, "x86-64", mode), 2);
        if row["throughput"]["verdict"] == "withheld" {
            let others = row["waiting"]["others"].as_f64().unwrap();
            assert!(others > 0.02, "{mode}: {row}");
            return skipped(row["throughput"]["reason"].as_str().unwrap());
        }
    }
}

/// Runs shorter than the kernel's ticks: some get the CPU for as long as they want it, and others lose several milliseconds.
#[test]
fn a_short_run_whose_cpu_another_program_used_has_no_throughput() {
    let _alone = alone();
    let lab = pools();
    let cpu = two_cpus(&lab)[0];
    let _competitors = Competitors::on(&[cpu], 1);
    let options = format!("--processes 1 --placement {cpu} --rounds 3");
    let mut slowed = 0;
    for _ in 0..12 {
        let report = pooled(&lab, "alone", "jobs", 4, &options);
        let row = row(table(&report, "x86-64", "jobs"), 1);
        let own = runs(&report).iter().filter(|run| {
            let is_control = run["cell"]["variant"].as_str().is_some_and(|name| name.ends_with("control"));
            run["purpose"] == "timed" && !is_control
        });
        let of = |run: &serde_json::Value, key: &str| run[key].as_u64().unwrap();
        let (mut elapsed, mut used) = (0, 0);
        for run in own {
            let (took, ran) = (of(run, "elapsed_ns"), of(run, "cpu_ns"));
            // One thread runs or waits for no longer than the run takes. The kernel counts the CPU time before execve(2), too, which is
            // before the start of the run.
            let of_program =
                run["counters"]["task_clock"].as_f64().map_or(ran, |clock| ran.min(clock as u64));
            let waited = run["cpu_wait"]["waited_ns"].as_u64().unwrap_or(0);
            assert!(waited == 0 || of_program + waited <= took + 1_000, "{run}");
            (elapsed, used) = (elapsed + took, used + ran);
        }
        if 10 * elapsed > 14 * used {
            slowed += 1;
            assert_eq!(row["throughput"]["verdict"], "withheld", "{row}: {used} of {elapsed}");
        }
    }
    if slowed == 0 {
        skipped("the other program took no time from such short runs");
    }
}

/// More threads than CPUs wait for each other, which such a cell measures.
#[test]
fn threads_that_wait_for_each_other_are_not_starved() {
    let _alone = alone();
    let lab = pools();
    for shape in ["many", "main"] {
        // Long enough for the kernel's ticks to show whether others had the CPUs.
        let report = pooled(&lab, shape, "threads", 400, "--processes 1,2 --rounds 2");
        let table = table(&report, "x86-64", "threads");
        for processes in [1, 2] {
            let row = row(table, processes);
            let waiting = &row["waiting"];
            assert!(waiting["waited"].as_f64() > Some(0.2), "{shape} {processes}: {row}");
            if row["throughput"]["verdict"] == "withheld" {
                // Only the known use by others counts against the cell.
                let strangers = waiting["others"].as_f64().unwrap();
                let stolen = row["throughput"]["reason"].as_str().unwrap().contains("host");
                assert!(stolen || strangers > 0.02, "{shape} {processes}: {row}");
                return skipped(row["throughput"]["reason"].as_str().unwrap());
            }
            assert!(row["throughput"]["estimate"].is_f64(), "{shape} {processes}: {row}");
        }
    }
}

/// A control group with a CPU quota, if one can be created: its folder, and the text to write into it.
fn group_with_quota(name: &str) -> Option<std::path::PathBuf> {
    let make = |root: &str, files: &[(&str, &str)]| {
        let folder = std::path::Path::new(root).join(name);
        std::fs::create_dir(&folder).ok()?;
        let written = files.iter().all(|(file, text)| std::fs::write(folder.join(file), text).is_ok());
        if !written {
            let _ = std::fs::remove_dir(&folder);
        }
        written.then_some(folder)
    };
    let quota = &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")];
    make("/sys/fs/cgroup/cpu", quota).or_else(|| make("/sys/fs/cgroup", &[("cpu.max", "50000 100000")]))
}

#[test]
fn a_cell_limited_by_a_quota_is_withheld() {
    let name = format!("widthwise-test-{}", std::process::id());
    let Some(group) = group_with_quota(&name) else {
        return skipped("no control group can be given a CPU quota here");
    };
    let _alone = alone();
    let lab = pools();
    let words = format!(
        "echo $$ > {}/cgroup.procs; exec {} scale pools.c --flags=-pthread --abi x86-64 --mode threads --processes 1,2 \
         --run '{{build}}/pools one {{processes}} 200' --rounds 2 --warmup 0 --memory=0 --json",
        group.display(),
        env!("CARGO_BIN_EXE_widthwise")
    );
    let output = output_of(std::process::Command::new("sh").args(["-c", &words]).current_dir(lab.path("")));
    remove(&group);
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = output.json();
    let Some(waits) = throttled(&report) else {
        return skipped("other programs had the CPUs, so that the quota was not reached");
    };
    let row = row(table(&report, "x86-64", "threads"), 2);
    assert_eq!(row["throughput"]["verdict"], "withheld", "{row}");
    names_the_quota(row, waits);
}

/// Removes a group, whose processes may still be ending.
fn remove(group: &Path) {
    let removed = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::fs::remove_dir(group).is_ok()
    });
    assert!(removed, "{} is still used", group.display());
}

/// The time for which a quota was used up, and that of other programs. None if these had the CPUs, so that the quota was not reached.
fn throttled(report: &Value) -> Option<[u64; 2]> {
    let sum = |key: &str| runs(report).iter().map(|run| run["cpu_wait"][key].as_u64().unwrap()).sum::<u64>();
    let (throttled, others) = (sum("throttled_ns"), sum("others_ns"));
    assert!(throttled > 0 || others > 0);
    (throttled > 0).then_some([throttled, others])
}

/// Checks that a cell has the quota as its reason. If others used even more, they are named.
fn names_the_quota(row: &Value, [throttled, others]: [u64; 2]) {
    let reason = row["throughput"]["reason"].as_str().unwrap_or_else(|| panic!("{row}"));
    let is_reported = reason.contains("because the CPU quota of their cgroup was used up");
    assert!(is_reported || others > throttled / 2, "{reason}: {throttled}, {others}");
}

/// A program may have a quota in a group of its own, in which Widthwise is not.
#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_quota_of_the_programs_own_group_is_known() {
    let name = format!("widthwise-test-own-{}", std::process::id());
    let Some(group) = group_with_quota(&name) else {
        return skipped("no control group can be given a CPU quota here");
    };
    let _alone = alone();
    let lab = pools();
    let run = format!(
        "sh -c 'echo $$ > {}/cgroup.procs; exec {{build}}/pools alone 1 300 {}'",
        group.display(),
        lab.path("truth").display()
    );
    let words = ["scale", "pools.c", "--flags=-pthread", "--abi", "x86-64", "--mode", "jobs", "--run", &run];
    let more = "--processes 1 --rounds 2 --warmup 0 --memory=0 --check off --json".split(' ');
    let output = lab.widthwise(&words.into_iter().chain(more).collect::<Vec<_>>()[..]);
    remove(&group);
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = output.json();
    let Some(waits) = throttled(&report) else {
        return skipped("other programs had the CPUs, so that the quota was not reached");
    };
    names_the_quota(row(table(&report, "x86-64", "jobs"), 1), waits);
}

/// Long enough for a shell to start meanwhile, on a busy machine, too.
const BESIDE_LOAD: &str = "fork {processes} {events} event=200000";

#[test]
fn cells_beside_a_failed_load_are_not_measured() {
    let lab = lab();
    let output = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --load 'no-such-load'");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(output.status, Some(if several { 1 } else { 0 }), "{output:?}");
    let words = "the load on CPU ";
    let all = unfolded(&format!("{}{}", output.stdout, output.stderr));
    assert!(!several || (all.contains(words) && all.contains("no-such-load: not found")), "{output:?}");
}

#[test]
fn load_runs_on_free_cpus_and_ends_with_the_campaign() {
    let lab = lab();
    let output = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --load 'touch was-here; sleep 1000'");
    assert_eq!(output.status, Some(0), "{output:?}");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(lab.path("was-here").exists(), several);
    assert!(!lab.processes().contains("sleep 1000"), "{}", lab.processes());
}
