//! Under the x32 runtime, system calls have the results that they have on a kernel with x32.
//!
//! The reference is the output of the programs of tests/x32 on Debian's kernel, booted under emulation with `syscall.x32=y`.
//! It is recorded in tests/x32/transcripts, so that the runtime is compared with all of it in seconds. The transcripts
//! are compared with the kernel itself: a part of them in every `make test`, all of them in `make test-x32`
//! (`WIDTHWISE_X32=all`). `WIDTHWISE_X32_RECORD=1` records the kernel's output,
//! `WIDTHWISE_X32_ONLY=signals,threads` limits every test to those programs, `X32RUN_OPTIONS="--seccomp"` gives
//! the runtime options.
//!
//! Where the runtime must differ from the kernel, tests/x32/exceptions has its output, and the reason: nothing else
//! may differ. `WIDTHWISE_X32_RECORD=exceptions` records that.

#[path = "x32/bare.rs"]
mod bare;
#[path = "x32/cost.rs"]
mod cost;
#[path = "x32/hostile.rs"]
mod hostile;
#[path = "x32/kernel.rs"]
mod kernel;
#[path = "x32/machine.rs"]
mod machine;
#[path = "x32/musl.rs"]
mod musl;
#[path = "x32/newest.rs"]
mod newest;
#[path = "x32/programs.rs"]
mod programs;
#[path = "x32/real.rs"]
mod real;
#[path = "x32/steps.rs"]
mod steps;
#[path = "x32/stress.rs"]
mod stress;

#[path = "laboratory/outcomes.rs"]
mod outcomes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use programs::{exception_at, recorded_at, two_at_a_time, Program};

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether `WIDTHWISE_X32_ONLY` names it, or nothing.
fn is_wanted(name: &str) -> bool {
    variable("WIDTHWISE_X32_ONLY").is_none_or(|only| only.to_string_lossy().split(',').any(|one| one == name))
}

/// The x32 runtime, `x32run PROGRAM ARGUMENTS...`: the one built with this test, or the one that X32RUN names.
fn runtime() -> PathBuf {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    let find = || match variable("X32RUN") {
        Some(path) => {
            std::fs::canonicalize(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        }
        None => widthwise_x32run::place_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap(),
    };
    RUNTIME.get_or_init(find).clone()
}

#[test]
fn every_program_has_a_transcript_and_every_transcript_a_program() {
    let stems = |folder: &Path, endings: &[&str]| -> Vec<String> {
        let mut stems: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let (stem, ending) = name.rsplit_once('.')?;
                (endings.contains(&ending) && name != "stage.c").then(|| stem.to_string())
            })
            .collect();
        stems.sort();
        stems
    };
    let sources = programs::sources();
    assert_eq!(stems(&sources, &["c", "cc"]), stems(&sources.join("transcripts"), &["txt"]));
}

#[test]
fn a_kernel_with_x32_prints_the_transcripts() {
    let all = variable("WIDTHWISE_X32").is_some_and(|value| value == "all");
    let narrowed = variable("WIDTHWISE_X32_ONLY").is_some();
    let chosen: Vec<&Program> =
        programs::all().iter().filter(|program| all || narrowed || program.core).collect();
    let printed = kernel::run(&chosen);
    if variable("WIDTHWISE_X32_RECORD").is_some_and(|what| what == "1") {
        record(&chosen, &printed);
    }
    compare("the kernel", &chosen, &printed, recorded);
}

#[test]
fn the_runtime_says_what_a_kernel_with_x32_says() {
    let runtime = runtime();
    let programs: Vec<&Program> = programs::all().iter().collect();
    let printed = run_all(&programs, &Place::new(&runtime));
    if variable("WIDTHWISE_X32_RECORD").is_some_and(|what| what == "exceptions") {
        record_exceptions(&programs, &printed);
    }
    compare("the runtime", &programs, &printed, |program| {
        std::fs::read_to_string(exception_at(&program.name)).unwrap_or_else(|_| recorded(program))
    });
}

/// Runs programs through the runtime, two at a time: file name to transcript.
fn run_all(programs: &[&Program], place: &Place) -> BTreeMap<String, String> {
    let printed = Mutex::new(BTreeMap::new());
    two_at_a_time(programs.iter(), |program| {
        let report = place.run(program);
        printed.lock().unwrap().extend(report);
    });
    printed.into_inner().unwrap()
}

/// Kinds of sites in `tests/x32/steps/program.c` that have a stub.
const STUBS: usize = 10;

#[test]
fn a_signal_at_any_instruction_of_a_site_or_its_stub_loses_no_call() {
    // There are three kinds of stubs: those that make calls, those that also count them, and those that make none.
    let account = tempfile::NamedTempFile::new().unwrap();
    account.as_file().set_len(16 << 20).unwrap();
    let account = account.path().to_str().unwrap();
    for options in [&[][..], &["--account", account], &["--trace"]] {
        let printed = steps::every_instruction(&runtime(), options);
        assert!(printed.contains("wrong: 0\n-- exit status: 0"), "{options:?}: {printed}");
        let with_stubs =
            printed.lines().filter(|line| line.ends_with("in a stub") && !line.contains(" 0 in")).count();
        assert_eq!(with_stubs, STUBS, "{options:?}: {printed}");
    }
}

/// Kinds of calls in `tests/x32/steps/interrupted.c`.
const INTERRUPTED: usize = 10;

#[test]
fn signals_at_any_instruction_of_the_runtime_are_neither_lost_nor_reordered() {
    let all = variable("WIDTHWISE_X32").is_some_and(|value| value == "all");
    let ways = [&[][..], &["--seccomp"], &["--no-rewrite"], &["--trace"]];
    for options in &ways[..if all { ways.len() } else { 1 }] {
        let printed = steps::interrupted(&runtime(), options);
        assert!(printed.ends_with("wrong: 0\n-- exit status: 0\n"), "{options:?}: {printed}");
        // Nearly each instruction that was noted is reached again: not one on a way that is taken only now and then.
        let reached: Vec<[u32; 2]> = printed
            .lines()
            .filter_map(|line| line.split_once(" reached ")?.1.strip_suffix(" times")?.split_once(" of "))
            .map(|(reached, of)| [reached, of].map(|count| count.parse().unwrap()))
            .collect();
        assert_eq!(reached.len(), INTERRUPTED, "{options:?}: {printed}");
        // The second kind jumps into a rewritten call: where nothing is rewritten, the runtime has no part in it.
        let is_apart = |kind: usize| kind == 1 && options.contains(&"--no-rewrite");
        for (kind, [reached, of]) in reached.into_iter().enumerate() {
            let least = if is_apart(kind) { 0 } else { 400 };
            assert!(reached >= of * 9 / 10 && of >= least, "{options:?}, kind {kind}: {printed}");
            assert!(!is_apart(kind) || of == 0, "{options:?}: {printed}");
        }
    }
}

#[test]
fn a_call_continues_after_another_thread_has_rewritten_it_with_sigsegv_blocked() {
    for options in [&[][..], &["--seccomp"], &["--trace"]] {
        let printed = steps::covered(&runtime(), options);
        assert_eq!(printed, "4 of 4 calls are right\n-- exit status: 0\n", "{options:?}");
    }
}

#[test]
fn a_thread_that_comes_to_a_call_while_it_is_rewritten_sleeps() {
    // A jump to itself holds it where an instruction between needs rcx or r11, and where not every number traps.
    for (options, held_by_jumps) in
        [(&[][..], &["between"][..]), (&["--seccomp"], &["between", "moved", "long move"])]
    {
        let printed = steps::rewritten(&runtime(), options);
        assert!(printed.ends_with("wrong: 0\n-- exit status: 0\n"), "{options:?}: {printed}");
        let kinds: Vec<(&str, &str)> = printed
            .lines()
            .filter_map(|line| line.split_once(": "))
            .filter(|(_, outcome)| outcome.contains(" steps, "))
            .collect();
        for (kind, outcome) in &kinds {
            let may_spin = held_by_jumps.iter().any(|one| kind.split(',').next() == Some(*one));
            assert!(!outcome.starts_with("0 steps"), "{options:?}: {printed}");
            assert_eq!(outcome.ends_with("spinning 0"), !may_spin, "{options:?}, {kind}: {printed}");
        }
        assert_eq!(kinds.len(), 8, "{options:?}: {printed}");
    }
}

#[test]
fn a_call_that_has_trapped_is_made_after_another_thread_has_rewritten_it_or_put_it_back() {
    for options in [&[][..], &["--seccomp"]] {
        let printed = steps::rewritten_after_a_trap(&runtime(), options);
        assert!(printed.ends_with("wrong: 0\n-- exit status: 0\n"), "{options:?}: {printed}");
        let kinds: Vec<&str> = printed.lines().filter(|line| line.contains(" steps, ")).collect();
        assert_eq!(kinds.len(), 8, "{options:?}: {printed}");
        for kind in kinds {
            let is_back = kind.contains(", back: ");
            assert!(kind.contains("asleep 0") && !(is_back && kind.contains("trapped 0")), "{printed}");
        }
    }
}

#[test]
fn the_end_of_a_program_is_reported_as_the_programs_not_the_runtimes() {
    let [wide, narrow] = steps::deaths(&runtime());
    assert_eq!(narrow, wide);
    assert!(
        wide.iter().all(|line| line.ends_with("in the program\n") && !line.contains("ended by -1")),
        "{wide:?}"
    );
}

#[test]
fn recent_calls_have_the_same_results_as_on_x86_64() {
    let [wide, narrow] = newest::printed(&runtime(), "newest");
    assert!(wide.ends_with("-- exit status: 0\n"), "{wide}");
    assert!(narrow == wide, "- x86-64, + x32\n{}", difference(&wide, &narrow));
}

#[test]
fn of_two_wrong_arguments_the_error_is_of_the_one_that_this_kernel_looks_at_first() {
    has_the_results_of_x86_64("two_faults");
}

/// A program that says `not here` where the machine has not what it tries.
fn has_the_results_of_x86_64(name: &str) {
    let [wide, narrow] = newest::printed(&runtime(), name);
    if wide.starts_with("not here") {
        return outcomes::skipped("this kernel, or the sandbox around this process, has it not");
    }
    assert!(wide.ends_with("-- exit status: 0\n"), "{wide}");
    assert!(narrow == wide, "- x86-64, + x32\n{}", difference(&wide, &narrow));
}

#[test]
fn a_filter_of_packet_fanout_has_the_results_of_x86_64() {
    has_the_results_of_x86_64("fanout");
}

#[test]
fn a_segment_of_huge_pages_has_the_results_of_x86_64() {
    has_the_results_of_x86_64("huge_segments");
}

#[test]
fn under_landlock_a_program_executes_what_it_permits_itself_and_nothing_else() {
    has_the_results_of_x86_64("landlock");
}

#[test]
fn under_stress_no_call_and_no_signal_is_lost() {
    let [wide, narrow, trapped] = stress::printed(&runtime());
    assert!(wide.contains("signals lost: 0\n-- exit status: 0") && !wide.contains("none"), "{wide}");
    assert_eq!(narrow, wide);
    assert_eq!(trapped, wide);
}

#[test]
fn the_slots_of_removed_sites_are_reused() {
    // 12 000 sites are created and removed, half of them while another thread sleeps; there is room for 4096.
    let program = programs::all().iter().find(|program| program.file == "patches");
    let Some(program) = program else { return assert!(variable("WIDTHWISE_X32_ONLY").is_some()) };
    let path = programs::built().join(&program.file);
    let printed = Command::new(runtime()).arg("--stats").arg(path).output().unwrap();
    let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
    let rewritten = printed.split(" sites rewritten").next().and_then(|before| before.rsplit(' ').next());
    assert!(rewritten.unwrap().parse::<u32>().unwrap() > 10_000, "{printed}");
}

/// The kernel adds a thread's pages to the total after it has touched 64 more (kernel 6.1, `TASK_RSS_EVENTS_THRESH`).
const THREADS_LAG: f64 = 64.0 * 4096.0;

#[test]
fn without_the_runtimes_own_memory_and_instructions_are_those_of_a_kernel_with_x32() {
    let found = cost::measure(&runtime());
    let mut wrong = Vec::new();
    for (name, [native, under]) in &found {
        eprintln!("{name}: native {native:?}, under the runtime {under:?}");
        let mut hold = |what: &str, own: f64, native: f64, unit: f64| {
            if (own - native).abs() > (native * 0.01).max(unit) {
                wrong.push(format!("{name}: {what} {own}, natively {native}"));
            }
        };
        let lag = if name.contains("threads") { THREADS_LAG } else { 4096.0 };
        hold("max RSS", under.resident.0 - under.resident.1, native.resident.0, lag);
        hold("instructions", under.instructions.0, native.instructions.0, 0.0);
        // Every copy of a process has page faults on the runtime's pages, and every thread on its own.
        let faults = if name.contains("forks") || name.contains("threads") { 40.0 } else { 10.0 };
        hold("page faults", under.faults.0 - under.faults.1, native.faults.0, faults);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_exception_differs_from_the_kernel_and_has_a_reason() {
    let folder = programs::sources().join("exceptions");
    let reasons = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let mut named: Vec<&str> =
        reasons.lines().filter_map(|line| Some(line.strip_prefix("- `")?.split_once("`: ")?.0)).collect();
    named.sort_unstable();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".txt") else { continue };
        let program = name.split('.').next().unwrap();
        let kernel =
            std::fs::read_to_string(recorded_at(program)).unwrap_or_else(|_| panic!("{name}: of no program"));
        let runtime = std::fs::read_to_string(folder.join(&file)).unwrap();
        assert_ne!(runtime, kernel, "{name} is no exception any more: its file is to be removed");
        found.push(name.to_string());
    }
    found.sort_unstable();
    assert_eq!(found, named, "tests/x32/exceptions/README.md gives one line of reason for each");
}

/// The runtime and the programs, where an unprivileged user can start them, and folders to run in.
struct Place {
    folder: tempfile::TempDir,
    runtime: PathBuf,
}

impl Place {
    fn new(runtime: &Path) -> Place {
        // All builds come first: a file that is still being written cannot be started.
        programs::all();
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path(), 0o755);
        let programs = folder.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        for entry in std::fs::read_dir(programs::built()).unwrap() {
            let from = entry.unwrap().path();
            let to = programs.join(from.file_name().unwrap());
            // A hard link, if both folders are on one file system.
            if std::fs::hard_link(&from, &to).is_err() {
                programs::copy(&from, &to);
            }
            open_to_all(&to, 0o755);
        }
        open_to_all(&programs, 0o755);
        let copy = folder.path().join("x32run");
        if std::fs::hard_link(runtime, &copy).is_err() {
            programs::copy(runtime, &copy);
        }
        open_to_all(&copy, 0o755);
        Place { folder, runtime: copy }
    }

    /// The transcripts were recorded on tmpfs, whose results differ from a disk's; these runs use it as well, if there is one.
    fn scratch(&self) -> tempfile::TempDir {
        let shared = Path::new("/dev/shm");
        let scratch =
            tempfile::tempdir_in(shared).or_else(|_| tempfile::tempdir_in(self.folder.path())).unwrap();
        open_to_all(scratch.path(), 0o777);
        scratch
    }

    fn run(&self, program: &Program) -> BTreeMap<String, String> {
        let path = self.folder.path().join("programs").join(&program.file);
        programs::transcripts(&self.stage(&program.file, program.seconds, &path))
    }

    /// Runs one file through the runtime: the stage's report.
    fn stage(&self, name: &str, seconds: u32, path: &Path) -> Vec<u8> {
        let scratch = self.scratch();
        let programs = self.folder.path().join("programs");
        let options = std::env::var("X32RUN_OPTIONS").unwrap_or_default();
        Command::new(programs.join("stage"))
            .arg(scratch.path())
            .arg(seconds.to_string())
            .arg(&programs)
            .arg(name)
            .arg(&self.runtime)
            .args(options.split_whitespace())
            .arg(path)
            .output()
            .unwrap()
            .stdout
    }
}

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Records the kernel's output, if it does not depend on how the program is linked.
fn record(programs: &[&Program], printed: &BTreeMap<String, String>) {
    for program in programs {
        if let Some(transcript) = printed.get(&program.file).filter(|_| program.file == program.name) {
            std::fs::write(recorded_at(&program.name), transcript).unwrap();
        } else if !recorded_at(&program.name).exists() {
            std::fs::write(recorded_at(&program.name), &printed[&program.file]).unwrap();
        }
    }
}

/// Records the runtime's output for existing exceptions, which may be an empty file: no exception is created
/// silently. Removes exceptions that no longer differ.
fn record_exceptions(programs: &[&Program], printed: &BTreeMap<String, String>) {
    for program in programs {
        let exception = exception_at(&program.name);
        if !exception.exists() {
            continue;
        }
        match printed.get(&program.file) {
            Some(transcript) if *transcript != recorded(program) => {
                std::fs::write(exception, transcript).unwrap()
            }
            _ if program.file == program.name => drop(std::fs::remove_file(exception)),
            _ => {}
        }
    }
}

fn recorded(program: &Program) -> String {
    std::fs::read_to_string(recorded_at(&program.name)).unwrap_or_default()
}

/// Compares outputs with transcripts; prints every difference of every program, then fails.
fn compare(
    who: &str,
    programs: &[&Program],
    printed: &BTreeMap<String, String>,
    recorded: impl Fn(&Program) -> String,
) {
    let mut wrong = Vec::new();
    for program in programs {
        let recorded = recorded(program);
        let transcript = printed.get(&program.file).cloned().unwrap_or_else(|| "-- no report\n".to_string());
        if transcript != recorded {
            eprintln!(
                "{}: - as recorded, + as {who} says\n{}",
                program.file,
                difference(&recorded, &transcript)
            );
            wrong.push(program.file.as_str());
        }
    }
    assert!(wrong.is_empty(), "{} of {} programs differ: {}", wrong.len(), programs.len(), wrong.join(", "));
}

/// The lines that differ, by the longest common subsequence, each run of them after the last line that does not.
fn difference(recorded: &str, printed: &str) -> String {
    let old: Vec<&str> = recorded.lines().collect();
    let new: Vec<&str> = printed.lines().take(4000).collect();
    let mut common = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text, mut last) = (0, 0, String::new(), None);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            last = Some(old[i]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        if let Some(line) = last.take() {
            text.push_str(&format!("    {line}\n"));
        }
        if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            text.push_str(&format!("  - {}\n", old[i]));
            i += 1;
        } else {
            text.push_str(&format!("  + {}\n", new[j]));
            j += 1;
        }
    }
    text
}

#[test]
fn a_difference_shows_what_is_missing_and_what_is_new() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\nc\nd\n"), "    a\n  - b\n  + x\n    c\n  + d\n");
}

#[test]
fn without_the_i386_entry_the_runtime_reports_it_and_releases_robust_mutexes_itself() {
    if !outcomes::is_lane("x32-without-i386") {
        return outcomes::skipped(
            "`make test-all` fetches the kernel; tests/exec.rs has the same with the entry left alone",
        );
    }
    let printed = bare::output(&runtime(), &kernel::kernel("x32-newer-kernel"));
    for part in [
        "$ /x32run --check\ni386 entry: no (",
        "$ /x32run /unknown\n-1 Function not implemented\n-1 Function not implemented\nstatus 0\n",
        "a thread's end: Owner died\nexit_group: Owner died\nexit: Owner died\nexecve: Owner died\n\
         exit_group of another thread: Owner died\nby hand, 0: owner died, status 0\nby hand, 1: the same, status 0\n\
         by hand, 2: the same, status 0\nby hand, 3: owner died, status 0\nstatus 0\n",
        "$ /i386\n/i386: Exec format error\n",
    ] {
        assert!(printed.contains(part), "{part}\n-- is missing in:\n{printed}");
    }
}

#[test]
fn real_programs_print_what_they_print_on_x86_64() {
    if !outcomes::is_lane("x32-newer-libc") {
        return outcomes::skipped(
            "`make test-all` fetches the sources, and the C library of the next Debian",
        );
    }
    let programs: Vec<&real::Real> =
        real::PROGRAMS.iter().filter(|program| is_wanted(program.name)).collect();
    real::build_all(&programs);
    let mut wrong = Vec::new();
    for program in programs {
        let [wide, narrow] = real::printed(program, &runtime());
        if narrow != wide {
            eprintln!("{}: - x86-64, + x32\n{}", program.name, difference(&wide, &narrow));
            wrong.push(program.name);
        }
    }
    assert!(wrong.is_empty(), "these differ: {}", wrong.join(", "));
}

#[test]
fn with_musl_the_runtime_says_what_a_kernel_with_x32_says() {
    if !outcomes::is_lane("x32-musl") {
        return outcomes::skipped("`make test-all` builds musl");
    }
    let built = musl::all();
    let programs: Vec<&Program> = built.iter().collect();
    let kernel = kernel::run(&programs);
    let place = Place::new(&runtime());
    let printed = run_all(&programs, &place);
    compare("the runtime", &programs, &printed, |program| {
        let natively = kernel.get(&program.file).cloned().unwrap_or_default();
        // What the runtime says instead with glibc, it says with musl.
        let exception = std::fs::read_to_string(exception_at(&program.name)).ok();
        exception.filter(|_| natively == recorded(program)).unwrap_or(natively)
    });
}
