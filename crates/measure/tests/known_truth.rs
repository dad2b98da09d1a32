//! Programs of known cost, and programs that end badly: what the runner reports.

mod fixture;
#[path = "../../../tests/laboratory/outcomes.rs"]
mod outcomes;

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use widthwise_experiment::metric;
use widthwise_experiment::outcome::{Ending, Source};
use widthwise_measure::run::launch_spec::LaunchSpec;
use widthwise_measure::run::limits::Limits;
use widthwise_measure::run::result::RunResult;
use widthwise_measure::run::runner::{Accounting, Runner};

const MIB: f64 = (1 << 20) as f64;

struct Bench {
    folder: tempfile::TempDir,
    runner: Runner,
    limits: Limits,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Accounting::Free)
    }

    fn with(accounting: Accounting) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let metrics: Vec<_> = metric::METRICS.iter().collect();
        let runner = Runner::new(&folder.path().join("scratch"), &metrics, accounting).unwrap();
        let limits = Limits { timeout: Duration::from_secs(20), boot: Limits::BOOT, output_bytes: 1 << 20 };
        Bench { folder, runner, limits }
    }

    fn build(&self, name: &str, options: &[&str]) -> PathBuf {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs").join(format!("{name}.c"));
        let output = self.folder.path().join(name);
        let status =
            Command::new("gcc").arg("-O2").arg("-o").arg(&output).arg(source).args(options).status().unwrap();
        assert!(status.success());
        output
    }

    fn start(&self, file: &Path, arguments: &[&str]) -> LaunchSpec {
        let mut words = vec![file.display().to_string()];
        words.extend(arguments.iter().map(|word| word.to_string()));
        fixture::start(file, words, self.folder.path())
    }

    fn run(&mut self, name: &str, arguments: &[&str]) -> RunResult {
        let file = self.build(name, &["-pthread"]);
        let start = self.start(&file, arguments);
        self.make(&start)
    }

    fn make(&mut self, start: &LaunchSpec) -> RunResult {
        self.runner.run(start, 100, &[0], self.limits, &|| false).unwrap()
    }
}

fn value(result: &RunResult, name: &str) -> f64 {
    result.sample.get(name).unwrap_or_else(|| panic!("{name} was not measured: {result:?}")).value
}

fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn peak_memory_is_the_programs_own_with_a_launcher_of_any_size() {
    // This process is made large: a figure floored by the parent would show it.
    let ballast = vec![1u8; 300 << 20];
    let mut bench = Bench::new();
    let own = value(&bench.run("allocate", &["0"]), "max_rss");
    assert!(own < 4.0 * MIB, "a program that allocates nothing is measured to take {own} bytes");
    for mebibytes in [1u32, 10, 100, 1000] {
        let result = bench.run("allocate", &[&mebibytes.to_string()]);
        let truth = f64::from(mebibytes) * MIB;
        let measured = value(&result, "max_rss");
        assert!(
            measured >= truth && measured <= truth * 1.01 + own * 1.3,
            "{mebibytes} MiB measured as {measured}"
        );
    }
    assert_eq!(ballast[ballast.len() - 1], 1);
}

#[test]
fn a_program_stopped_at_its_exit_has_exact_peaks() {
    let mut bench = Bench::with(Accounting::ExitStop);
    let own = value(&bench.run("allocate", &["0"]), "max_rss");
    let result = bench.run("allocate", &["64"]);
    assert_eq!(result.ending, Ending::Done);
    assert_eq!(result.sample["max_rss"].source, Source::ExitStop);
    let error = value(&result, "max_rss") - own - 64.0 * MIB;
    assert!(error.abs() < 0.25 * MIB, "off by {error} bytes");
    let more = bench.run("children", &["3", "8", "0"]);
    assert_eq!(value(&more, "processes"), 4.0);
    let sum = value(&more, "max_rss_sum");
    assert!(sum > 24.0 * MIB && sum < 34.0 * MIB, "{sum}");
}

/// Writes the file to the disk and drops its pages from the page cache.
fn drop_pages(file: &Path) {
    let file = std::fs::File::open(file).unwrap();
    file.sync_all().unwrap();
    // SAFETY: an open descriptor and three numbers.
    assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
}

#[test]
fn a_file_that_is_read_before_the_run_is_in_memory_when_the_program_starts() {
    let mut bench = Bench::new();
    let file = bench.build("allocate", &["-static"]);
    let start = bench.start(&file, &["0"]);
    let mut major_faults = |warms_caches| {
        drop_pages(&file);
        bench.runner.warm_caches(warms_caches);
        value(&bench.make(&start), "major_faults")
    };
    if major_faults(false) == 0.0 {
        return outcomes::skipped("this file system keeps a file's pages when it is asked to drop them");
    }
    assert_eq!(major_faults(true), 0.0, "pages that the program had to wait for");
}

#[test]
fn a_setup_command_that_drops_the_programs_pages_is_not_undone() {
    let mut bench = Bench::new();
    let file = bench.build("allocate", &["-static"]);
    drop_pages(&file);
    if value(&bench.make(&bench.start(&file, &["0"])), "major_faults") == 0.0 {
        return outcomes::skipped("this file system keeps a file's pages when it is asked to drop them");
    }
    let mut start = bench.start(&file, &["0"]);
    start.setup = Some(format!("dd of='{}' oflag=nocache conv=notrunc count=0", file.display()));
    bench.runner.warm_caches(true);
    assert!(
        value(&bench.make(&start), "major_faults") > 0.0,
        "the program's pages were read again before it started"
    );
}

#[test]
fn reading_a_file_before_the_run_changes_no_count_of_the_program() {
    let mut bench = Bench::new();
    let file = bench.build("allocate", &["-static"]);
    // Four mebibytes more than the program ever maps: of these the launcher reads one.
    // By a separate process: what this one has open for writing cannot be started while another test forks (ETXTBSY).
    let more = "head -c 4M /dev/zero | tr '\\0' x >>";
    let status = Command::new("sh").args(["-c", &format!("{more} '{}'", file.display())]).status().unwrap();
    assert!(status.success(), "the file was not made larger");
    let start = bench.start(&file, &["0"]);
    let counted = |result: RunResult| {
        assert_eq!(result.ending, Ending::Done);
        ["max_rss", "minor_faults", "major_faults", "processes"]
            .map(|name| result.sample.get(name).map(|reading| reading.value))
    };
    let plain = counted(bench.make(&start));
    bench.runner.warm_caches(true);
    let warmed: Vec<_> = (0..10).map(|_| counted(bench.make(&start))).collect();
    let [plain_rss, warmed_rss] = [plain[0], warmed.iter().filter_map(|counts| counts[0]).reduce(f64::max)]
        .map(|bytes| bytes.expect("max RSS is always read"));
    assert!(warmed_rss - plain_rss < 0.15 * MIB, "{plain_rss} bytes, and {warmed_rss} after reading");
    let faults = |counts: &[Option<f64>; 4]| counts[1].unwrap();
    let fewest = warmed.iter().map(faults).reduce(f64::min).unwrap();
    assert!((fewest - faults(&plain)).abs() <= 4.0, "{plain:?} and {warmed:?}");
    assert!(warmed.iter().all(|counts| counts[2..] == plain[2..]), "{plain:?} and {warmed:?}");
}

#[test]
fn peak_address_space_counts_untouched_memory() {
    if !is_root() {
        return assert!(!Bench::new().run("reserve", &["1"]).sample.contains_key("peak_virtual"));
    }
    let mut bench = Bench::new();
    let own = value(&bench.run("reserve", &["0"]), "peak_virtual");
    let result = bench.run("reserve", &["512"]);
    assert!((value(&result, "peak_virtual") - own - 512.0 * MIB).abs() < 0.1 * MIB);
    assert!(value(&result, "max_rss") < 4.0 * MIB);
}

#[test]
fn minor_faults_are_counted_one_by_one() {
    let mut bench = Bench::new();
    let own = value(&bench.run("fault", &["0"]), "minor_faults");
    let faults = value(&bench.run("fault", &["5000"]), "minor_faults") - own;
    assert!((4995.0..5030.0).contains(&faults), "{faults}");
}

#[test]
fn a_sleeping_program_takes_wall_time_and_switches_but_no_cpu_time() {
    let result = Bench::new().run("nap", &["20", "10"]);
    let switches = value(&result, "voluntary_switches");
    assert!((20.0..30.0).contains(&switches), "{switches}");
    assert!(value(&result, "wall") >= 200e6);
    assert!(value(&result, "cpu") < 100e6);
}

#[test]
fn children_are_accounted_for_with_and_without_a_wait() {
    for mode in ["wait", "daemon"] {
        let result = Bench::new().run("children", &["3", "10", "40", mode]);
        assert_eq!(result.ending, Ending::Done, "{mode}");
        let cpu = value(&result, "cpu");
        assert!((120e6..200e6).contains(&cpu), "{mode}: {cpu} ns of 120 ms");
        let peak = value(&result, "max_rss");
        assert!((10.0 * MIB..13.0 * MIB).contains(&peak), "{mode}: the largest process has {peak}");
        if is_root() {
            // As a daemon, each child is made by an intermediate process, which ends at once.
            let expected = if mode == "daemon" { 7.0 } else { 4.0 };
            assert_eq!(value(&result, "processes"), expected, "{mode}");
            let sum = value(&result, "max_rss_sum");
            assert!(sum > 30.0 * MIB && sum < 40.0 * MIB, "{mode}: {sum}");
        }
    }
}

#[test]
fn children_that_are_never_waited_for_are_counted() {
    if !is_root() {
        return outcomes::skipped("control groups and taskstats take root");
    }
    let result = Bench::new().run("children", &["3", "10", "40", "ignore"]);
    assert_eq!(result.ending, Ending::Done);
    let cpu = result.sample["cpu"];
    assert!((118e6..200e6).contains(&cpu.value), "{cpu:?} of 120 ms");
    assert_eq!(cpu.source, Source::Cgroup);
    assert!(result.remarks.iter().any(|text| text.contains("nobody waits for")), "{:?}", result.remarks);
    assert_eq!(value(&result, "processes"), 4.0);
}

#[test]
fn the_cpu_time_of_such_children_in_another_control_group_is_a_lower_bound_by_taskstats() {
    if !is_root() {
        return outcomes::skipped("control groups and taskstats take root");
    }
    let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
    let Some(mount) = mounts.into_iter().find(|mount| mount.join("cgroup.procs").exists()) else {
        return outcomes::skipped("no control groups of version 2");
    };
    let other = mount.join(format!("widthwise-known-truth-{}", std::process::id()));
    fs::create_dir(&other).unwrap();
    let result =
        Bench::new().run("children", &["3", "0", "40", other.join("cgroup.procs").to_str().unwrap()]);
    fs::remove_dir(&other).unwrap();
    assert_eq!(result.ending, Ending::Done);
    let cpu = result.sample["cpu"];
    assert!((110e6..200e6).contains(&cpu.value), "{cpu:?} of 120 ms");
    assert_eq!((cpu.source, cpu.upper), (Source::Taskstats, Some(f64::INFINITY)));
    for name in ["user", "system"] {
        assert_eq!(result.sample[name].upper, Some(f64::INFINITY), "{name}");
    }
    assert!(
        result.remarks.iter().any(|text| text.contains("times and switches have only a lower bound")),
        "{:?}",
        result.remarks
    );
}

#[test]
fn short_children_that_are_never_waited_for_are_counted_as_with_a_wait() {
    if !is_root() {
        return outcomes::skipped("control groups and taskstats take root");
    }
    let mut bench = Bench::new();
    // The children take 1 ms each, and one without work has some faults alone.
    for (count, work) in [("2", "1"), ("1", "0")] {
        let waited = bench.run("children", &[count, "0", work, "wait"]);
        let result = bench.run("children", &[count, "0", work, "ignore"]);
        let (cpu, own) = (result.sample["cpu"], value(&waited, "cpu"));
        assert_eq!(cpu.source, Source::Cgroup);
        assert!(
            cpu.upper.is_none() && cpu.value > own - 1e6 && cpu.value < 2.0 * own + 4e6,
            "{cpu:?}, {own}"
        );
        let (faults, own) = (result.sample["page_faults"], value(&waited, "page_faults"));
        assert_eq!(faults.source, Source::Taskstats);
        assert!((faults.value - own).abs() <= 8.0, "{faults:?} {own}");
        for name in ["user", "system"] {
            let part = result.sample[name];
            assert!(part.value < part.highest() && part.highest() <= cpu.value, "{name} {part:?} of {cpu:?}");
        }
        assert_eq!(result.sample["voluntary_switches"].upper, Some(f64::INFINITY));
        assert_eq!(waited.sample["cpu"].source, Source::Rusage);
        assert_eq!(waited.sample["voluntary_switches"].upper, None);
    }
}

#[test]
fn a_program_stopped_at_its_exit_has_the_faults_of_its_children_once() {
    let arguments = ["3", "4", "5", "wait"];
    let free = Bench::new().run("children", &arguments);
    let traced = Bench::with(Accounting::ExitStop).run("children", &arguments);
    assert_eq!(traced.ending, Ending::Done);
    let (faults, own) = (value(&traced, "page_faults"), value(&free, "page_faults"));
    assert!((faults - own).abs() < 0.02 * own, "{faults} instead of {own}");
    let threads = Bench::with(Accounting::ExitStop).run("threads", &["3", "20"]);
    assert!((60e6..120e6).contains(&value(&threads, "cpu")), "{threads:?}");
}

#[test]
fn processes_left_running_are_killed_and_reported() {
    let mut bench = Bench::new();
    let result = bench.run("children", &["2", "1", "1", "linger"]);
    assert_eq!(result.ending, Ending::Done);
    assert!(
        result.remarks.iter().any(|text| text.contains("left 2 processes running")),
        "{:?}",
        result.remarks
    );
    let left =
        Command::new("pgrep").args(["-f", &bench.folder.path().display().to_string()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn threads_on_one_cpu_are_remarked_on() {
    let result = Bench::new().run("threads", &["3", "20"]);
    assert!((60e6..120e6).contains(&value(&result, "cpu")));
    if is_root() {
        assert!(result.remarks.iter().any(|text| text.contains("several threads")), "{:?}", result.remarks);
    }
}

#[test]
fn what_earlier_runs_have_written_is_freed_before_a_run_begins() {
    let mut bench = Bench::new();
    let file = bench.build("misbehave", &[]);
    let start = bench.start(&file, &["complain", "2000"]);
    for _ in 0..2 {
        assert_eq!(bench.make(&start).ending, Ending::Done);
    }
    let written = |path: PathBuf| std::fs::metadata(path).map_or(0, |data| data.len());
    let sizes = || {
        let entries = std::fs::read_dir(bench.folder.path().join("scratch")).unwrap().flatten();
        let of_errors = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("stderr"));
        of_errors.map(|entry| written(entry.path())).filter(|size| *size > 0).count()
    };
    assert_eq!(sizes(), 2);
    // It is asked for, but the launcher does not know of it yet.
    bench.runner.begin(&start, 0, &[]).unwrap();
    let left = sizes();
    bench.runner.end(&start, &[], bench.limits, &|| false, Duration::ZERO).unwrap();
    assert_eq!(left, 1, "of the run before, which may still be read");
}

#[test]
fn every_bad_ending_has_its_own_name() {
    let mut bench = Bench::new();
    assert_eq!(bench.run("misbehave", &["exit", "3"]).ending, Ending::Exit { status: 3 });
    assert_eq!(bench.run("misbehave", &["crash"]).ending, Ending::Signal { signal: libc::SIGSEGV });
    assert_eq!(bench.run("misbehave", &["close"]).ending, Ending::Done);
    assert!(matches!(bench.run("misbehave", &["flood"]).ending, Ending::OutputLimit { .. }));
    assert!(matches!(bench.run("misbehave", &["complain"]).ending, Ending::OutputLimit { .. }));
    bench.limits.timeout = Duration::from_millis(300);
    let hung = bench.run("misbehave", &["hang"]).ending;
    assert!(matches!(hung, Ending::Timeout { .. }), "{hung:?}");
}

#[test]
fn a_fork_bomb_is_ended_without_leftovers() {
    if !is_root() {
        return outcomes::skipped("without root no control group limits its forks");
    }
    let mut bench = Bench::new();
    bench.limits.timeout = Duration::from_millis(500);
    let result = bench.run("misbehave", &["bomb"]);
    assert!(matches!(result.ending, Ending::Timeout { .. }), "{:?}", result.ending);
    let left =
        Command::new("pgrep").args(["-f", &bench.folder.path().display().to_string()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    // And the next run works.
    assert_eq!(bench.run("misbehave", &["exit", "0"]).ending, Ending::Done);
}

#[test]
fn a_program_that_cannot_start_has_the_reason() {
    let mut bench = Bench::new();
    let file = bench.folder.path().join("absent");
    let start = bench.start(&file, &[]);
    let Ending::SpawnFailed { reason } = bench.make(&start).ending else { panic!() };
    assert!(reason.contains("absent") && reason.contains("No such file"), "{reason}");

    let program = bench.build("misbehave", &[]);
    let mut start = bench.start(&program, &[]);
    start.directory = file.clone();
    let Ending::SpawnFailed { reason } = bench.make(&start).ending else { panic!() };
    assert!(reason.contains(&format!("working directory {}", file.display())), "{reason}");

    let mut start = bench.start(&program, &[]);
    start.setup = Some("echo oh dear >&2; exit 4".into());
    let Ending::HookFailed { reason } = bench.make(&start).ending else { panic!() };
    assert!(reason.contains("setup") && reason.contains("exit 4") && reason.contains("oh dear"), "{reason}");
}

#[test]
fn a_fresh_directory_has_only_the_inputs_each_time() {
    let mut bench = Bench::new();
    let input = bench.folder.path().join("input.txt");
    std::fs::write(&input, "hello\n").unwrap();
    let mut start = bench.start(Path::new("/bin/sh"), &["-c", "ls; cat input.txt; echo > left-behind"]);
    start.directory = bench.folder.path().join("work");
    (start.fresh, start.inputs) = (true, vec![input]);
    for _ in 0..2 {
        assert_eq!(bench.make(&start).ending, Ending::Done);
        assert_eq!(std::fs::read_to_string(bench.runner.stdout()).unwrap(), "input.txt\nhello\n");
    }
}

#[test]
fn software_counters_count_the_program_and_not_the_launcher_in_every_run() {
    let mut bench = Bench::new();
    let file = bench.build("children", &["-pthread"]);
    let start = bench.start(&file, &["2", "0", "30"]);
    // The kernel exchanged the counters of the launcher and of one of its first children: later runs had none.
    for _ in 0..6 {
        let stolen_before = stolen();
        let result = bench.make(&start);
        let Some(clock) = result.sample.get("task_clock") else {
            // perf_event_paranoid may forbid it; then it is missing, not 0.
            return assert!(!is_root(), "root may count");
        };
        let cpu = value(&result, "cpu");
        // The task clock continues while the host has taken the CPU away. (perf's clock is not corrected for
        // steal time; the CPU time is, kernel/sched/core.c: update_rq_clock_task.) /proc/stat counts that in
        // ticks.
        let stolen =
            stolen() - stolen_before + TICK * std::thread::available_parallelism().unwrap().get() as f64;
        assert!(clock.value > 0.9 * cpu, "task clock {} against CPU time {cpu}", clock.value);
        assert!(
            clock.value < 1.1 * cpu + stolen,
            "task clock {} against CPU time {cpu}, {stolen} ns stolen",
            clock.value
        );
        assert_eq!(clock.source, Source::Software);
    }
}

#[test]
fn the_peak_before_an_exec_is_the_processs_own_too() {
    let result = Bench::new().run("generations", &["chain", "1", "60", "1"]);
    assert_eq!(result.ending, Ending::Done);
    let peak = value(&result, "max_rss");
    assert!((60.0 * MIB..65.0 * MIB).contains(&peak), "{peak}");
    if is_root() {
        assert!(value(&result, "max_rss_sum") >= peak);
    }
}

#[test]
fn a_program_stopped_at_its_exit_keeps_the_peak_before_an_exec() {
    let result = Bench::with(Accounting::ExitStop).run("generations", &["chain", "1", "60", "1"]);
    assert_eq!(result.ending, Ending::Done);
    let peak = value(&result, "max_rss");
    assert!((60.0 * MIB..65.0 * MIB).contains(&peak), "{peak}");
    assert_eq!(result.sample["max_rss"].source, Source::Rusage);
    assert!(value(&result, "max_rss_sum") >= peak);
    let address_space = result.sample["peak_virtual"];
    assert!(address_space.value >= peak && address_space.upper == Some(f64::INFINITY), "{address_space:?}");
}

#[test]
fn a_thread_that_executes_a_program_starts_no_second_process() {
    let mut bench = Bench::with(Accounting::ExitStop);
    let source = bench.folder.path().join("executes.c");
    let text = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        static void *execute(void *unused) {
            (void)unused;
            execl("/bin/true", "true", (char *)0);
            return 0;
        }
        int main(void) {
            pthread_t thread;
            char *memory = malloc(30 << 20);
            memset(memory, 1, 30 << 20);
            pthread_create(&thread, 0, execute, 0);
            pause();
            return memory[5];
        }"#;
    std::fs::write(&source, text).unwrap();
    let file = bench.folder.path().join("executes");
    let built = Command::new("gcc").args(["-pthread", "-o"]).arg(&file).arg(&source).status().unwrap();
    assert!(built.success());
    let start = bench.start(&file, &[]);
    let result = bench.make(&start);
    assert_eq!((&result.ending, value(&result, "processes")), (&Ending::Done, 1.0));
    let sum = value(&result, "max_rss_sum");
    assert!((30.0 * MIB..33.0 * MIB).contains(&sum) && value(&result, "max_rss") <= sum, "{result:?}");
}

/// The unit of /proc/stat: 1 / USER_HZ, in nanoseconds.
const TICK: f64 = 1e7;

/// Nanoseconds that the host has taken from all CPUs; each CPU's share is rounded down to whole ticks.
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: f64 = stat.lines().next().unwrap().split_whitespace().nth(8).unwrap().parse().unwrap();
    TICK * ticks
}
