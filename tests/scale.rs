//! `scale`: throughput and memory against the number of processes, on programs with known behaviour.

mod laboratory;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use laboratory::outcomes::skipped;
use laboratory::{is_root, repository, said, unfolded, CommandOutput, Laboratory};
use serde_json::Value;

/// Tests that read times run alone among these tests.
static ALONE: Mutex<()> = Mutex::new(());

/// Locks the machine for one test. Other programs and a virtual machine's host are outside the test's
/// control: times are compared with those that the program has measured itself.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

const MIB: f64 = 1_048_576.0;

/// `crew.c`, with the header that it needs.
fn lab() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("crew.c");
    lab.copy(&repository().join("runtime/marks/widthwise-marks.h"), "widthwise-marks.h");
    lab
}

/// The arguments of a campaign of `crew.c`.
fn words(abis: &str, run: &str, options: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["scale", "crew.c", "--flags=-pthread", "--abi", abis, "--run"].map(str::to_owned).to_vec();
    words.push(format!("{{build}}/crew {run}"));
    words.extend(shell_words(options));
    words
}

/// Splits text into words; text in single quotes is one word.
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

fn scale(lab: &Laboratory, abis: &str, run: &str, options: &str) -> CommandOutput {
    let words = words(abis, run, options);
    lab.widthwise(&words.iter().map(String::as_str).collect::<Vec<_>>()[..])
}

/// A campaign of one timed round.
fn once(lab: &Laboratory, run: &str, options: &str) -> CommandOutput {
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

/// The numbers in those lines of a file that begin with a word.
fn numbers(lab: &Laboratory, file: &str, word: &str) -> Vec<f64> {
    let text = lab.read(file);
    let of_word = text.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    of_word.collect()
}

/// The runs of a campaign, in order of time.
fn attempts(study: &Value) -> &Vec<Value> {
    study["attempts"].as_array().unwrap()
}

/// The elapsed seconds of the runs of a kind of cell.
fn elapsed(study: &Value, mode: &str, processes: u64, purpose: &str) -> Vec<f64> {
    let is_one = |attempt: &&Value| {
        attempt["cell"]["mode"] == mode
            && attempt["cell"]["processes"] == processes
            && attempt["purpose"] == purpose
    };
    attempts(study)
        .iter()
        .filter(is_one)
        .map(|attempt| attempt["elapsed_ns"].as_f64().unwrap() / 1e9)
        .collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[track_caller]
fn within(value: f64, low: f64, high: f64) {
    assert!((low * 0.999..=high * 1.001).contains(&value), "{value} is not from {low} to {high}");
}

/// The times of all runs are those that the program has measured itself, plus its start and end. Returns
/// the largest excess over the program's sleep; `sleeps` gives the length of the sleep.
fn elapsed_is_the_programs_own(lab: &Laboratory, study: &Value, sleeps: &dyn Fn(u64, f64) -> f64) -> f64 {
    let mut told = numbers(lab, "truth", "elapsed").into_iter();
    let (mut longer, mut excess): (Vec<f64>, f64) = (Vec::new(), 0.0);
    for attempt in attempts(study) {
        let processes = attempt["cell"]["processes"].as_u64().unwrap();
        let lines = if attempt["cell"]["mode"] == "jobs" { processes } else { 1 };
        let own = most(&told.by_ref().take(lines as usize).collect::<Vec<_>>());
        let all = attempt["elapsed_ns"].as_f64().unwrap();
        assert!(all >= own && own > 0.0, "{attempt}: the program says {own}");
        longer.push(all / own - 1.0);
        let asleep = sleeps(processes, attempt["events"].as_f64().unwrap());
        assert!(own >= asleep * 1e9, "{attempt}: {own}");
        excess = excess.max(all / 1e9 - asleep);
    }
    assert_eq!(told.next(), None);
    longer.sort_by(f64::total_cmp);
    let middle = longer[longer.len() / 2];
    assert!(middle < 0.05, "half of the attempts took {middle} longer than the program says: {longer:?}");
    excess
}

/// A sleep takes its time on a busy machine, too, and never less: speed-up and sequential part are known.
#[test]
fn sleeping_children_and_jobs_have_the_known_speed_up() {
    let _alone = alone();
    let lab = lab();
    let run = "fork {processes} {events} seq=200000 event=20000";
    let truth = lab.path("truth");
    let options = format!(
        "--mode fork,jobs --processes 1,2,4 --events 40 --rounds 3 --warmup 0 --memory=0 --set-env CREW_TRUTH={} \
         --jobs-run '{{build}}/crew alone 1 {{events}} seq=200000 event=20000'",
        truth.display()
    );
    let study = study(&lab, "x86-64,x32,i386", run, &options);
    let asleep = |processes: u64, events: f64| 0.2 + 0.02 * (events / processes as f64).ceil();
    let excess = elapsed_is_the_programs_own(&lab, &study, &asleep);
    for variant in ["x86-64", "x32", "i386"] {
        for mode in ["fork", "jobs"] {
            let table = table(&study, variant, mode);
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
                let times = elapsed(&study, mode, processes, "timed");
                within(estimate(&row["elapsed"]), least(&times), most(&times));
                about(estimate(&row["throughput"]) * estimate(&row["elapsed"]), 40.0, 0.01);
                let smallest = elapsed(&study, mode, 1, "timed");
                let speed_up = estimate(&row["speed_up"]);
                within(speed_up, least(&smallest) / most(&times), most(&smallest) / least(&times));
                // Parallel time is constant, by its definition.
                let shared = |elapsed: f64| (elapsed - less) * processes as f64;
                within(estimate(&row["TIME"]), shared(least(&times)), shared(most(&times)));
            }
            // A line through 0.2 s and the time of 1, 20 and 40 events has at most 1.4 times the error of these.
            let intercept = estimate(&sequential["regression"]["intercept"]);
            assert!((intercept - 0.2).abs() <= 0.001 + 1.4 * excess, "{intercept} with {excess}");
            let one = elapsed(&study, mode, 1, "one-event");
            within(estimate(&sequential["one_event"]), least(&one), most(&one));
            if mode == "fork" {
                let at_fork = estimate(&sequential["at_fork"]);
                assert!((0.2..=0.2 + excess).contains(&at_fork), "{at_fork} with {excess}");
            }
        }
    }
    assert_eq!(study["different"], serde_json::json!([]));
    // Every round has every cell once, the A/A control, and for each variant and mode the two runs for the sequential part.
    assert_eq!(attempts(&study).len(), 3 * (3 * 2 * (3 + 2) + 1));
    for attempt in attempts(&study) {
        let members = attempt["members"].as_array().unwrap();
        assert_eq!(members.len() as u64, attempt["cell"]["processes"].as_u64().unwrap(), "{attempt}");
        for (place, member) in members.iter().enumerate() {
            let cpus = &row(table(&study, "x86-64", "fork"), 4)["cpus"];
            assert_eq!(member["cpu"], cpus[place], "{attempt}");
        }
    }
}

#[test]
fn threads_are_members_and_a_lock_limits_their_speed_up() {
    let _alone = alone();
    for (lock, sleeps) in [
        (
            "",
            (&|processes: u64, events: f64| 0.02 * (events / processes as f64).ceil())
                as &dyn Fn(u64, f64) -> f64,
        ),
        ("lock=100", &|_, events| 0.02 * events),
    ] {
        let lab = lab();
        let options = format!(
            "--mode threads --processes 1,2,4 --events 40 --rounds 2 --warmup 0 --memory=0 --set-env CREW_TRUTH={}",
            lab.path("truth").display()
        );
        let study =
            study(&lab, "x86-64", &format!("threads {{processes}} {{events}} event=20000 {lock}"), &options);
        elapsed_is_the_programs_own(&lab, &study, sleeps);
        let smallest = elapsed(&study, "threads", 1, "timed");
        for processes in [2, 4] {
            let times = elapsed(&study, "threads", processes, "timed");
            let speed_up = &row(table(&study, "x86-64", "threads"), processes)["speed_up"];
            if speed_up["verdict"] == "withheld" {
                return skipped(speed_up["reason"].as_str().unwrap());
            }
            within(estimate(speed_up), least(&smallest) / most(&times), most(&smallest) / least(&times));
        }
        for attempt in attempts(&study) {
            let members = attempt["members"].as_array().unwrap().len() as u64;
            assert_eq!(members, attempt["cell"]["processes"].as_u64().unwrap(), "{attempt}");
        }
    }
}

/// `pools.c`: short threads and children, each of which reports its work.
fn pools() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("pools.c");
    lab
}

/// A campaign of two workers in a shape of `pools.c`, each with a given number of milliseconds of work.
fn pooled(lab: &Laboratory, shape: &str, mode: &str, ms: u32, options: &str) -> Value {
    let _ = std::fs::remove_file(lab.path("truth"));
    let run = format!("{{build}}/pools {shape} {{processes}} {ms} {}", lab.path("truth").display());
    let mut words = vec!["scale", "pools.c", "--flags=-pthread", "--abi", "x86-64", "--mode", mode];
    words.extend(["--run", &run, "--warmup", "0", "--memory=0", "--check", "off", "--json"]);
    words.extend(options.split(' '));
    let said = lab.widthwise(&words);
    assert_eq!(said.status, Some(0), "{shape}: {said:?}");
    said.json()
}

/// The CPU time of a run is that of all its processes and threads, including those that have ended, and is divided among the requested number
/// of members.
#[test]
fn cpu_time_includes_every_thread_and_child() {
    let _alone = alone();
    let lab = pools();
    let shapes = [
        ("threads", &["one", "two", "nested", "main", "team", "detached", "helper", "many", "phases"][..]),
        ("fork", &["forks", "refork", "exec", "double", "orphans"]),
        ("jobs", &["alone", "two"]),
    ];
    for (mode, shape) in
        shapes.iter().flat_map(|(mode, shapes)| shapes.iter().map(move |shape| (*mode, *shape)))
    {
        let study = pooled(&lab, shape, mode, 100, "--processes 2 --rounds 1");
        let own: f64 = numbers(&lab, "truth", "cpu").iter().sum();
        let all: f64 = attempts(&study).iter().map(|attempt| attempt["cpu_ns"].as_f64().unwrap()).sum();
        // A process cannot report the time of its own start and end.
        assert!(all >= own && all <= 1.05 * own, "{shape}: {all} against {own}");
        // One of the two runs belongs to the cell itself.
        let row = row(table(&study, "x86-64", mode), 2);
        let done = if mode == "jobs" { 2.0 } else { 1.0 };
        about(estimate(&row["evtime"]) * 1e9 * done * 2.0, own, 0.05);
        for attempt in attempts(&study) {
            let members = attempt["members"].as_array().unwrap();
            assert_eq!(members.len(), 2, "{shape}: {attempt}");
            let of_members: f64 = members.iter().map(|member| member["cpu_ns"].as_f64().unwrap()).sum();
            let all = attempt["cpu_ns"].as_f64().unwrap();
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
    let study = pooled(&lab, "ignored", "fork", 100, "--processes 2 --rounds 1");
    let own: f64 = numbers(&lab, "truth", "cpu").iter().sum();
    let all: f64 = attempts(&study).iter().map(|attempt| attempt["cpu_ns"].as_f64().unwrap()).sum();
    assert!(all >= own && all <= 1.05 * own, "{all} against {own}");
}

/// A run ends with its last process, not with the first.
#[test]
fn elapsed_time_includes_children_that_outlive_their_parent() {
    if !is_root() {
        return skipped("the ends of orphans are told by taskstats, which take root");
    }
    let _alone = alone();
    let lab = pools();
    let study = pooled(&lab, "orphans", "fork", 40, "--processes 2 --rounds 1");
    for (attempt, own) in attempts(&study).iter().zip(numbers(&lab, "truth", "elapsed")) {
        // They sleep for 10 ms after its end.
        assert!(attempt["elapsed_ns"].as_f64().unwrap() >= own + 10e6, "{attempt}: {own}");
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
    let shapes =
        [("threads", &["one", "two", "nested", "helper", "detached"][..]), ("fork", &["refork", "double"])];
    for (mode, shape) in
        shapes.iter().flat_map(|(mode, shapes)| shapes.iter().map(move |shape| (*mode, *shape)))
    {
        let study = pooled(&lab, shape, mode, 400, "--processes 2 --rounds 1");
        let cpus = &row(table(&study, "x86-64", mode), 2)["cpus"];
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
    let study = pooled(lab, "one", "threads", 1, "--processes 2 --rounds 1");
    let cpus = row(table(&study, "x86-64", "threads"), 2)["cpus"].as_array().unwrap().clone();
    cpus.iter().map(|cpu| cpu.as_u64().unwrap()).collect()
}

#[test]
fn a_cell_whose_cpus_were_used_by_others_is_withheld_with_the_share() {
    let _alone = alone();
    let lab = pools();
    let cpus = two_cpus(&lab);
    for (mode, shape) in [("threads", "two"), ("fork", "forks"), ("jobs", "alone")] {
        let competitors = Competitors::on(&cpus, 2);
        let study = pooled(&lab, shape, mode, 200, "--processes 1,2 --rounds 3");
        drop(competitors);
        let table = table(&study, "x86-64", mode);
        for processes in [1, 2] {
            let row = row(table, processes);
            for figure in ["throughput", "speed_up", "efficiency", "TIME"] {
                assert_eq!(row[figure]["verdict"], "withheld", "{mode} {processes} {figure}: {row}");
                let reason = row[figure]["reason"].as_str().unwrap();
                assert!(reason.contains(" % of their time for a CPU that other programs had"), "{reason}");
            }
            // The measurements are kept, and CPU time is unaffected.
            assert!(row["elapsed"]["estimate"].is_f64() && row["evtime"]["estimate"].is_f64(), "{row}");
            let (lost, waited) = (&row["waiting"]["lost"], &row["waiting"]["waited"]);
            assert!(lost.as_f64() > Some(0.05) && waited.as_f64() > Some(0.05), "{row}");
        }
        assert_eq!(table["amdahl"]["verdict"], "withheld", "{}", table["amdahl"]);
        let text = unfolded(&lab.widthwise("report").stdout);
        assert!(text.contains("Withheld: with 1, the tasks waited "), "{text}");
        assert!(!text.contains("highest throughput measured"), "{text}");
    }
}

/// More threads than CPUs wait for each other, which such a cell measures.
#[test]
fn threads_that_wait_for_each_other_are_not_starved() {
    let _alone = alone();
    let lab = pools();
    for shape in ["many", "main"] {
        let study = pooled(&lab, shape, "threads", 300, "--processes 1,2 --rounds 2");
        let table = table(&study, "x86-64", "threads");
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
    let said = said(std::process::Command::new("sh").args(["-c", &words]).current_dir(lab.path("")));
    // Its processes may still be ending.
    let removed = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::fs::remove_dir(&group).is_ok()
    });
    assert!(removed, "{} is still used", group.display());
    assert_eq!(said.status, Some(0), "{said:?}");
    let study = said.json();
    let sum = |key: &str| {
        attempts(&study).iter().map(|attempt| attempt["cpu_wait"][key].as_u64().unwrap()).sum::<u64>()
    };
    let (throttled, others) = (sum("throttled_ns"), sum("others_ns"));
    if throttled == 0 && others > 0 {
        return skipped("other programs had the CPUs, so that the quota was not reached");
    }
    assert!(throttled > 0);
    let row = row(table(&study, "x86-64", "threads"), 2);
    assert_eq!(row["throughput"]["verdict"], "withheld", "{row}");
    let reason = row["throughput"]["reason"].as_str().unwrap();
    // If others used even more, they are named.
    let is_told = reason.contains("because the CPU quota of their cgroup was used up");
    assert!(is_told || others > throttled / 2, "{reason}: {throttled}, {others}");
}

#[test]
fn children_share_memory_jobs_do_not_and_the_copy_on_write_breakdown_is_shown() {
    let _alone = alone();
    let lab = lab();
    let memory = "shared=96 touch=16 own=8 hold=800";
    let options = format!(
        "--mode fork,jobs --processes 1,2,4 --events 4 --rounds 1 --warmup 0 --memory=1 \
     --jobs-run '{{build}}/crew alone 1 {{events}} {memory}'"
    );
    let study = study(&lab, "x86-64,x32,i386", &format!("fork {{processes}} {{events}} {memory}"), &options);
    for variant in ["x86-64", "x32", "i386"] {
        let forks = table(&study, variant, "fork");
        // A child's memory is what it has written and its own: 24 MiB; a job's is everything: 104 MiB.
        about(estimate(&forks["marginal"]["slope"]), 24.0 * MIB, 0.05);
        about(estimate(&table(&study, variant, "jobs")["marginal"]["slope"]), 104.0 * MIB, 0.05);
        for processes in [1, 2, 4] {
            let memory = &row(forks, processes)["memory"];
            if memory["frozen"] != true {
                // The report notes it: sums are imprecise then.
                return skipped("processes did not stand still while their memory was read");
            }
            about(memory["member_uss"].as_f64().unwrap(), 24.0 * MIB, 0.05);
            about(memory["anonymous"].as_f64().unwrap(), (96.0 + 24.0 * processes as f64) * MIB, 0.05);
            let unshared = memory["copy_on_write"].as_array().unwrap();
            let sum = |key: &str| unshared.iter().map(|part| part[key].as_f64().unwrap()).sum::<f64>();
            about(sum("copied") + sum("own"), 24.0 * MIB * processes as f64, 0.06);
            let mapped = unshared.iter().find(|part| part["part"] == "mmapped blocks").unwrap();
            about(mapped["at_fork"].as_f64().unwrap(), 96.0 * MIB, 0.05);
            about(mapped["copied"].as_f64().unwrap(), 16.0 * MIB * processes as f64, 0.05);
            about(mapped["shared"].as_f64().unwrap(), 80.0 * MIB * processes as f64, 0.05);
        }
    }
}

#[test]
fn events_are_read_from_logs_and_marks() {
    let _alone = alone();
    let lab = lab();
    let run = "fork {processes} {events} event=10000 log=1 marks=1";
    let options = "--processes 2 --events 20 --rounds 1 --warmup 0 --memory=0 --directory fresh";
    let pattern = r"--event-pattern 'took (?P<elapsed>\S+) s' --event-log log-*";
    let by_log = study(&lab, "x86-64", run, &format!("{options} {pattern}"));
    let by_marks = study(&lab, "x86-64", run, &format!("{options} --event-marks"));
    for (study, is_log) in [(&by_log, true), (&by_marks, false)] {
        let attempt = attempts(study).iter().find(|attempt| attempt["purpose"] == "timed").unwrap();
        for member in attempt["members"].as_array().unwrap() {
            assert_eq!(member["reported"]["events"], 10, "{attempt}");
            let each = member["reported"]["elapsed_s"].as_f64().unwrap();
            if is_log {
                about(each, 0.01, 0.001);
            } else {
                // Marks give elapsed time: nine intervals, minus the delay of reading the first.
                within(each, 0.007, attempt["elapsed_ns"].as_f64().unwrap() / 9e9);
            }
        }
        let row = row(table(study, "x86-64", "fork"), 2);
        assert_eq!(row["evtime_source"], "reported-elapsed");
    }
}

#[test]
fn failed_cells_are_reported_and_the_others_continue() {
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
        // It failed once, and was not repeated.
        let failed = json["attempts"].as_array().unwrap().iter().filter(|a| !a["failure"].is_null()).count();
        assert_eq!(failed, 1);
    }
}

#[test]
fn a_child_that_sets_its_own_affinity_is_reported() {
    let lab = lab();
    let run = "fork {processes} {events} event=100000 pin=0";
    let said = once(&lab, run, "--processes 2 --placement 1,0 --events 8");
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("child 0 was put on CPU 1 and put itself on 0"), "{said:?}");
}

#[test]
fn two_hundred_processes_are_all_accounted_for() {
    let _alone = alone();
    let lab = lab();
    let options = "--mode fork,jobs --processes 200 --events 400 --rounds 1 --warmup 0 --memory=0 \
               --jobs-run '{build}/crew alone 1 {events} spin=1 event=20000'";
    let study = study(&lab, "x86-64", "fork {processes} {events} spin=1 event=20000", options);
    for mode in ["fork", "jobs"] {
        let attempts = study["attempts"].as_array().unwrap();
        let attempt = attempts.iter().find(|a| a["cell"]["mode"] == mode && a["purpose"] == "timed").unwrap();
        let members = attempt["members"].as_array().unwrap();
        assert_eq!(members.len(), 200);
        let sum: f64 = members.iter().map(|member| member["cpu_ns"].as_f64().unwrap()).sum();
        let lost = members.iter().find(|member| member["exact"] != true || member["cpu_ns"] == 0);
        assert!(lost.is_none(), "{mode}: {lost:?} {}", attempt["remarks"]);
        // The rest belongs to the parent.
        let all = attempt["cpu_ns"].as_f64().unwrap();
        assert!(sum <= all * 1.02 && sum >= all * 0.7, "{mode}: {sum} of {all}");
    }
}

#[test]
fn outputs_are_filtered_before_they_are_compared() {
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
    assert!(unfolded(&plain.stdout).contains("'s output differs from that of x86-64"), "{plain:?}");
    let filtered = study("--filter 'sed s/[48]/N/'");
    assert_eq!(filtered.status, Some(0), "{filtered:?}");
}

/// Long enough for a shell to start meanwhile, on a busy machine, too.
const BESIDE_LOAD: &str = "fork {processes} {events} event=200000";

#[test]
fn cells_beside_a_failed_load_are_not_measured() {
    let lab = lab();
    let said = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --load 'no-such-load'");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(said.status, Some(if several { 1 } else { 0 }), "{said:?}");
    let words = "the load on CPU ";
    let all = unfolded(&format!("{}{}", said.stdout, said.stderr));
    assert!(!several || (all.contains(words) && all.contains("no-such-load: not found")), "{said:?}");
}

#[test]
fn load_runs_on_free_cpus_and_ends_with_the_campaign() {
    let lab = lab();
    let said = once(&lab, BESIDE_LOAD, "--processes 1 --events 4 --load 'touch was-here; sleep 1000'");
    assert_eq!(said.status, Some(0), "{said:?}");
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(lab.path("was-here").exists(), several);
    assert!(!lab.processes().contains("sleep 1000"), "{}", lab.processes());
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
fn a_variant_with_another_output_is_reported() {
    let lab = lab();
    lab.write("width.c", "#include <stdio.h>\nint main(void) { printf(\"%zu\\n\", sizeof(void *)); }\n");
    let words = "scale width.c --abi x86-64,i386 --processes 1 --rounds 1 --memory=0";
    let said = lab.widthwise(words);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.stdout.contains("i386's output differs from that of x86-64"), "{said:?}");
    let allowed = lab.widthwise(&format!("{words} --allow-different-output"));
    assert!(
        allowed.status == Some(0) && allowed.stdout.contains("output differs from that of"),
        "{allowed:?}"
    );
    let off = lab.widthwise(&format!("{words} --check off"));
    assert!(off.status == Some(0) && off.stdout.contains("answers were not compared"), "{off:?}");
}

#[test]
fn a_wrong_request_is_refused_in_one_line_with_the_fix() {
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

/// The errors of a report by `docs/schema/scale-1.json`.
fn complaints(report: &Value) -> Vec<String> {
    let schema = std::fs::read_to_string(laboratory::repository().join("docs/schema/scale-1.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_json_matches_its_schema_for_failures_output_mismatches_and_short_campaigns_too() {
    let lab = lab();
    let told = "fork {processes} {events} event=2000";
    for options in [
        "--processes 1 --rounds 1 --warmup 0 --memory=0 --events 4",
        "--processes 1,2 --rounds 2 --warmup 1 --memory=1 --events 8 --placement cores --placement 0",
        "--processes 1 --rounds 1 --warmup 0 --memory=0 --events 1 --timeout 1ms",
    ] {
        scale(&lab, "x86-64", told, options);
        let report = lab.widthwise("report --json").json();
        assert_eq!(complaints(&report), [""; 0], "{options}");
        // The schema refuses unknown fields; otherwise this test could not fail.
        let mut other = report.clone();
        other["attempts"][0]["unknown"] = 1.into();
        assert_eq!(complaints(&other).len(), 1, "{options}");
    }
    let words =
        "scale --binary a=/bin/true --binary b=/bin/false --processes 1,2 --rounds 6 --warmup 0 --json";
    assert_eq!(complaints(&lab.widthwise(words).json()), [""; 0]);
}

#[test]
fn every_format_shows_the_same_campaign() {
    let lab = lab();
    let said = scale(
        &lab,
        "x86-64,i386",
        "fork {processes} {events} event=2000 own=4 hold=300",
        "--processes 1,2 --events 8 --rounds 6 --warmup 0",
    );
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("speed-up") && said.stdout.contains("Detection floor"), "{said:?}");
    let made = lab.widthwise("report --html out.html --csv=out.csv --json=out.json");
    assert_eq!(made.status, Some(0), "{made:?}");
    let json: Value = serde_json::from_str(&lab.read("out.json")).unwrap();
    assert_eq!(complaints(&json), [""; 0]);
    let attempts = json["attempts"].as_array().unwrap();
    let members: usize = attempts.iter().map(|a| a["members"].as_array().unwrap().len()).sum();
    let mut csv = csv::Reader::from_reader(lab.read("out.csv").into_bytes().leak() as &[u8]);
    assert_eq!(csv.records().count(), members);
    let html = lab.read("out.html");
    assert!(html.contains("Memory over time") && !html.contains("<script"));
    let figure = &row(table(&json, "x86-64", "fork"), 2)["elapsed"];
    let (low, high) = (figure["low"].as_f64().unwrap(), figure["high"].as_f64().unwrap());
    assert!(low <= estimate(figure) && estimate(figure) <= high);
    assert_eq!(html, lab.read(".widthwise/latest/report.html"));
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
        let said = lab.widthwise(
            &["scale", "one_at_a_time.c", "--abi", "x86-64", "--run", &run, "--mode", "jobs"]
                .into_iter()
                .chain(["--processes", "1,2", "--rounds", "6", "--memory=0", "--json"])
                .collect::<Vec<_>>()[..],
        );
        assert_eq!(said.status, Some(0), "{said:?}");
        let study = said.json();
        let gain = &row(table(&study, "x86-64", "jobs"), 2)["speed_up"];
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

/// Real OpenMP: the main thread is one of the team, and the CPU time of threads that wait belongs to the program.
#[test]
fn the_cpu_time_of_an_openmp_team_equals_its_own_measurement() {
    let _alone = alone();
    for policy in ["passive", "active"] {
        let lab = Laboratory::new();
        lab.program("openmp.c");
        let truth = lab.path("truth").display().to_string();
        let run = format!("env OMP_WAIT_POLICY={policy} {{build}}/openmp {{processes}} 150 {truth}");
        let said = lab.widthwise(
            &["scale", "openmp.c", "--flags=-fopenmp", "--abi", "x86-64", "--mode", "threads", "--run", &run]
                .into_iter()
                .chain(["--processes", "1,2", "--rounds", "2", "--warmup", "0", "--memory=0", "--json"])
                .collect::<Vec<_>>()[..],
        );
        assert_eq!(said.status, Some(0), "{policy}: {said:?}");
        let study = said.json();
        let own = numbers(&lab, "truth", "cpu ");
        assert_eq!(own.len(), attempts(&study).len(), "{policy}");
        for (attempt, own) in attempts(&study).iter().zip(own) {
            // The program's own figure excludes the time before and after main().
            about(attempt["cpu_ns"].as_f64().unwrap_or_else(|| panic!("{attempt}")), own, 0.05);
            let parts = if attempt["cell"]["processes"] == 2 { 4.5 } else { 2.5 };
            assert!(own >= parts * 150e6, "{policy}: {own}, {attempt}");
        }
    }
}
