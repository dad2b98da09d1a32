//! Runs that begin before earlier ones have ended: each has its own account, output and ending.

mod fixture;

use std::path::Path;
use std::time::Duration;

use widthwise_experiment::outcome::Ending;
use widthwise_measure::run::launch_spec::LaunchSpec;
use widthwise_measure::run::limits::Limits;
use widthwise_measure::run::result::RunResult;
use widthwise_measure::run::runner::{Accounting, Runner};

struct Bench {
    folder: tempfile::TempDir,
    runner: Runner,
    limits: Limits,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let runner = Runner::new(&folder.path().join("scratch"), &[], Accounting::Free).unwrap();
        let limits = Limits { timeout: Duration::from_secs(20), boot: Limits::BOOT, output_bytes: 1 << 20 };
        Bench { folder, runner, limits }
    }

    fn script(&self, text: &str) -> LaunchSpec {
        let words = ["sh", "-c", text].map(str::to_owned).into();
        fixture::start(Path::new("/bin/sh"), words, self.folder.path())
    }

    fn begin(&mut self, texts: &[&str]) -> Vec<LaunchSpec> {
        let starts: Vec<LaunchSpec> = texts.iter().map(|text| self.script(text)).collect();
        for start in &starts {
            self.runner.begin(start, 100, &[]).unwrap();
        }
        starts
    }

    fn end(&mut self, start: &LaunchSpec) -> RunResult {
        self.runner.end(start, &[], self.limits, &|| false, Duration::from_millis(1)).unwrap()
    }

    fn answer(&self) -> String {
        std::fs::read_to_string(self.runner.stdout()).unwrap()
    }

    fn wrote(&self, name: &str) -> bool {
        Path::exists(&self.folder.path().join(name))
    }
}

#[test]
fn each_run_has_its_own_output_ending_and_processes() {
    let mut bench = Bench::new();
    // A single process, one that forks two, one with an orphan that ends by itself, one that fails.
    let texts = [
        "echo one",
        "/bin/sleep 0.01; /bin/sleep 0.01; echo two",
        "(/bin/sleep 0.02 &) ; echo three",
        "echo four; exit 4",
    ];
    for _ in 0..5 {
        let starts = bench.begin(&texts);
        let mut found = Vec::new();
        for start in &starts {
            let result = bench.end(start);
            found.push((bench.answer(), result.ending, result.processes.map_or(0, |all| all.len())));
            assert!(result.wall > Duration::ZERO && result.sample.contains_key("cpu"));
        }
        let counted = |n: usize| if bench.runner.without_taskstats.is_none() { n } else { 0 };
        assert_eq!(
            found,
            [
                ("one\n".to_owned(), Ending::Done, counted(1)),
                ("two\n".to_owned(), Ending::Done, counted(3)),
                ("three\n".to_owned(), Ending::Done, counted(3)),
                ("four\n".to_owned(), Ending::Exit { status: 4 }, counted(1)),
            ]
        );
    }
}

#[test]
fn a_run_over_its_time_limit_is_ended_and_later_runs_are_not() {
    let mut bench = Bench::new();
    bench.limits.timeout = Duration::from_millis(300);
    let starts = bench.begin(&["echo one", "sleep 100", "echo three"]);
    let endings: Vec<Ending> = starts.iter().map(|start| bench.end(start).ending).collect();
    assert_eq!(endings, [Ending::Done, Ending::Timeout { limit_ns: 300_000_000 }, Ending::Done]);
    assert_eq!(bench.answer(), "three\n");
}

#[test]
fn a_skipped_run_never_begins_and_the_run_in_flight_ends_well() {
    let mut bench = Bench::new();
    let starts = bench.begin(&["touch first; sleep 0.4", "touch second", "touch third"]);
    assert!(!bench.runner.has_ended());
    bench.runner.skip_rest().unwrap();
    // The launcher reads the order during the first run, or at the latest during the second.
    assert_eq!(bench.end(&starts[0]).ending, Ending::Done);
    for start in &starts[1..] {
        bench.end(start);
    }
    assert!(bench.wrote("first") && !bench.wrote("third"));
    // And later runs are made.
    let starts = bench.begin(&["touch fourth"]);
    assert_eq!(bench.end(&starts[0]).ending, Ending::Done);
    assert!(bench.wrote("fourth"));
}

/// The launcher's own descriptors have fixed numbers; descriptors that this process opens and closes must not
/// conflict with them.
#[test]
fn a_launcher_starts_with_any_descriptor_numbers() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let files: Vec<_> = (0..4).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
                    drop(files);
                }
            });
        }
        let failed = (0..100).find_map(|_| {
            let folder = tempfile::tempdir().unwrap();
            Runner::new(&folder.path().join("scratch"), &[], Accounting::Free).err()
        });
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}
