//! Invalid requests, failing programs and damaged archives: one clear error each, the right exit
//! status, and an archive that can still be read.

use crate::laboratory;
use crate::laboratory::{count, is_root, open, output_of, unfolded, variant, CommandOutput, Laboratory};
use std::path::Path;
use std::process::Command;

/// A laboratory with programs that succeed and that fail.
fn laboratory() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab.program("misbehave.c");
    lab
}

/// The last campaign can be read and reported, and SQLite finds no damage.
fn is_intact(lab: &Laboratory) {
    let word: String = lab.archive().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(word, "ok");
    let report = lab.widthwise("report");
    assert_eq!((report.status, report.stderr.as_str()), (Some(0), ""), "{report:?}");
    assert!(report.stdout.contains("baseline"), "{report:?}");
}

/// A campaign of the misbehaving program: the report has these words, and no process is left.
fn misbehaves(how: &[&str], words: &[&str]) {
    let lab = laboratory();
    let arguments = ["misbehave.c", "--abi", "x86-64", "--rounds", "6", "--timeout", "1s", "--"];
    let printed = lab.compare(&[&arguments[..], how].concat());
    assert_eq!(printed.status, Some(1), "{printed:?}");
    for word in words {
        assert!(printed.stderr.contains(word), "{word:?} is missing: {printed:?}");
        assert!(unfolded(&printed.stdout).contains(word), "{word:?} is not in the table: {printed:?}");
    }
    assert_eq!(printed.stderr.matches(words[0]).count(), 1, "printed more than once: {printed:?}");
    assert_eq!(lab.processes(), "");
    is_intact(&lab);
}

#[test]
fn a_misspelt_word_on_the_command_line_is_shown_with_its_flag_and_a_suggestion() {
    let lab = laboratory();
    for (arguments, words) in [
        (&["--alocator", "glibc"], ["'--alocator'", "'--allocator'"]),
        (
            &["--allocator", "jemaloc"],
            ["--allocator: unknown allocator \"jemaloc\"", "did you mean \"jemalloc\"?"],
        ),
        (&["--abi", "x86_64"], ["--abi: unknown ABI \"x86_64\"", "did you mean \"x86-64\"?"]),
        (&["--metric", "max_rs"], ["--metric: unknown metric", "did you mean \"max_rss\"?"]),
        (&["--exclude", "abbi=x32"], ["--exclude: unknown axis \"abbi\"", "did you mean \"abi\"?"]),
        (&["--run", "{bild}/tells"], ["--run: unknown placeholder {bild}", "did you mean {build}?"]),
        (&["--build", "{binary}"], ["--build: {binary} means nothing in a build command", "{cflags}"]),
        (&["--set", "axis.abi = [\"x32\"]"], ["--set:1: unknown key \"axis\"", "did you mean \"axes\"?"]),
        (&["--flags", "ltoo"], ["--flags: unknown flag set \"ltoo\"", "did you mean \"lto\"?"]),
        (&["--compiler", "gcc-99"], ["--compiler: no compiler \"gcc-99\" on this machine", "gcc-"]),
        (&["--env", "tuned"], ["--env: unknown environment \"tuned\"", "default"]),
        (&["--thp", "sometimes"], ["--thp: unknown setting of thp", "never"]),
        (&["--baseline", "i368"], ["--baseline: unknown baseline \"i368\"", "did you mean \"i386\"?"]),
        (&["--precision", "1x"], ["--precision: \"1x\" is no percentage", "\"1%\""]),
        (&["--max-time", "soon"], ["--max-time: \"soon\" is no duration", "\"5m\""]),
        (&["--rounds", "0"], ["--rounds: \"rounds\" must be at least 1", "not 0"]),
        (&["--cpus", "0-x"], ["--cpus: cpus \"0-x\"", "\"any\""]),
        (&["--estimator", "ten"], ["--estimator: unknown estimator", "ten-run-trim"]),
        (&["--set-env", "FOO"], ["--set-env: \"FOO\" has no \"=\"", "MALLOC_ARENA_MAX=1"]),
        (&["--stdin", "nowhere"], ["--stdin: ", "nowhere: No such file or directory"]),
        (&["--input", "nowhere"], ["--input: ", "nowhere: No such file or directory"]),
        (&["--set-env", "A={bild}/x"], ["--set-env: unknown placeholder {bild}", "did you mean {build}?"]),
        (&["--set-env", "A={jobs}"], ["{jobs} means nothing in a variable of a run", "{work}"]),
        (&["--set", "env.tuned.A = '{binary}'"], ["--set:1: {binary} means nothing here", "{build}"]),
        (&["--run", "'"], ["--run: the run command has a quotation mark", "without its partner"]),
    ] {
        let printed = lab.widthwise(&[&["compare", "tells.c"], &arguments[..]].concat());
        printed.refuses(2, &words);
    }
    assert!(!lab.path(".widthwise").exists(), "a request that was refused has left something behind");
}

#[test]
fn missing_cpus_are_refused_before_any_build() {
    let lab = laboratory();
    lab.write("cpus.toml", "[program]\nsource = \"tells.c\"\n[run]\ncpus = \"0,999\"\n");
    for (words, place) in [
        (&["compare", "tells.c", "--cpus", "999"][..], "--cpus: "),
        (&["compare", "tells.c", "--cpus", "0,999"], "--cpus: "),
        (&["compare", "cpus.toml"], "cpus.toml"),
    ] {
        lab.widthwise(words).refuses(2, &[place, "no CPU 999", "its CPUs are 0"]);
        assert!(!lab.path(".widthwise").exists(), "{words:?}");
    }
}

#[test]
fn a_misspelt_word_in_a_spec_file_is_shown_with_its_line_and_a_suggestion() {
    let lab = laboratory();
    let program = "[program]\nsource = \"tells.c\"\n";
    for (text, words) in [
        (
            "[axes]\nalocator = [\"glibc\"]\n",
            ["spec/widthwise.toml:4: unknown axis \"alocator\"", "did you mean \"allocator\"?"],
        ),
        (
            "[axes]\nabi = [\"x86-64\",\n \"x23\"]\n",
            ["spec/widthwise.toml:5: unknown ABI \"x23\"", "did you mean \"x32\"?"],
        ),
        (
            "[messure]\nrounds = 6\n",
            ["spec/widthwise.toml:3: unknown key \"messure\"", "did you mean \"measure\"?"],
        ),
        (
            "[run]\nrounds = 6\n",
            ["spec/widthwise.toml:4: unknown key \"rounds\" in [run]", "it belongs to [measure]"],
        ),
        (
            "[measure]\nmetrics = [\"cpuu\"]\n",
            ["spec/widthwise.toml:4: unknown metric \"cpuu\"", "did you mean \"cpu\"?"],
        ),
        (
            "[run]\nsetup = \"rm {wrok}\"\n",
            ["spec/widthwise.toml:4: unknown placeholder {wrok}", "did you mean {work}?"],
        ),
        ("[measure]\nrounds = -1\n", ["spec/widthwise.toml:4: \"rounds\" cannot be negative", "-1"]),
        (
            "[measure]\nrounds = \"six\"\n",
            ["spec/widthwise.toml:4: \"rounds\" must be", "must be a whole number, not text"],
        ),
        ("[measure\n", ["spec/widthwise.toml:3", "]"]),
    ] {
        lab.write("spec/widthwise.toml", &format!("{program}{text}"));
        lab.widthwise("compare spec/widthwise.toml").refuses(2, &words);
    }
    assert!(!lab.path(".widthwise").exists());
}

#[test]
fn a_spec_file_of_arbitrary_bytes_is_refused() {
    let lab = laboratory();
    for bytes in [&b"\xff\xfe\x00"[..], b"\0", b"[[[[[[[[", &[b'['; 100_000]] {
        std::fs::write(lab.path("widthwise.toml"), bytes).unwrap();
        lab.widthwise("compare widthwise.toml").refuses(2, &["widthwise.toml"]);
    }
}

#[test]
fn an_incomplete_request_is_refused_with_what_to_add() {
    let lab = laboratory();
    lab.widthwise("compare").refuses(2, &["nothing to measure", "--help"]);
    lab.widthwise("compare .").refuses(2, &["no build command"]);
    lab.widthwise("compare . --build true").refuses(2, &["no run command", "{build}/prog"]);
    lab.widthwise("compare --binary x86-64").refuses(2, &["--binary", "x86-64=./a64"]);
}

#[test]
fn the_long_help_lists_every_metric() {
    let help = Laboratory::new().widthwise("compare --help").stdout;
    let (_, metrics) = help.split_once("\nMetrics").unwrap();
    for word in ["* max_rss ", "  instructions ", "cpu_migrations ", "moves from one CPU to another"] {
        assert!(metrics.contains(word), "{word:?} is not in {metrics:?}");
    }
}

#[test]
fn a_missing_source_is_named() {
    let lab = laboratory();
    lab.widthwise("compare nowhere.c").refuses(2, &["nowhere.c: No such file"]);
    lab.widthwise("compare nowhere.toml").refuses(2, &["nowhere.toml: No such file"]);
    let folder = ["compare", "./nowhere", "--build", "make", "--run", "{build}/x"];
    lab.widthwise(&folder).refuses(2, &["nowhere: No such file"]);
    lab.widthwise("compare ./nowhere").refuses(2, &["nowhere: No such file"]);
    assert!(!lab.path(".widthwise").exists());
}

#[test]
fn an_empty_matrix_and_a_repeated_variant_name_are_refused() {
    let lab = laboratory();
    lab.widthwise("compare tells.c --abi i386 --exclude abi=i386")
        .refuses(2, &["--exclude: nothing is left to compare"]);
    lab.widthwise("compare tells.c --abi i386,x32,i386").refuses(2, &["--abi: ", "\"i386\" is named twice"]);
    lab.widthwise("compare --binary a=./a --binary a=./b --run {binary}")
        .refuses(2, &["--binary: ", "\"a\" is named twice"]);
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[[variant]]\nname = \"one\"\n[[variant]]\nabi = \"i386\"\nname = \"one\"\n",
    );
    lab.widthwise("compare widthwise.toml")
        .refuses(2, &["widthwise.toml:5: two variants are called \"one\""]);
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[[variant]]\nname = \"one\"\n[[variant]]\nname = \"one control\"\n",
    );
    lab.widthwise("compare widthwise.toml").refuses(2, &["\"one control\"", "second name"]);
}

#[test]
fn a_failed_build_shows_the_error_line_and_the_path_of_the_log() {
    let lab = Laboratory::new();
    let log_of = |printed: &CommandOutput| {
        let log = printed.stderr.trim_end().rsplit("full log: ").next().unwrap().to_owned();
        std::fs::read_to_string(lab.path(&log)).unwrap_or_else(|error| panic!("{log}: {error}"))
    };
    lab.write("lua.c", "#include <stdio.h>\n#include <nowhere/readline.h>\nint main(void) { return 0; }\n");
    let printed = lab.compare("lua.c --abi x86-64");
    assert_eq!(printed.status, Some(1));
    let telling = "error: the baseline x86-64: build failed (exit 1): ";
    assert!(printed.stderr.contains(telling), "{printed:?}");
    assert!(
        printed.stderr.contains(":2:10: fatal error: nowhere/readline.h: No such file or directory"),
        "{printed:?}"
    );
    assert!(log_of(&printed).contains("compilation terminated"));
    is_intact(&lab);

    lab.write("lua.c", "int nowhere(void);\nint main(void) { return nowhere(); }\n");
    let printed = lab.compare("lua.c --abi x86-64");
    assert!(printed.stderr.contains("undefined reference to `nowhere'"), "{printed:?}");
    assert!(log_of(&printed).contains("ld returned 1 exit status"));

    let printed = lab.compare("lua.c --abi x86-64 --build 'echo first; echo last; exit 7' --run {build}/x");
    assert!(printed.stderr.contains("build failed (exit 7): last; full log: "), "{printed:?}");
    assert_eq!(printed.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{printed:?}");
}

#[test]
fn a_failed_build_of_one_variant_leaves_its_row_and_the_others_are_measured() {
    let lab = Laboratory::new();
    lab.write(
        "wide.c",
        "#include <stdio.h>\n_Static_assert(sizeof(long) == 8, \"64 bits or nothing\");\nint main(void) { return puts(\"x\") < 0; }\n",
    );
    let arguments = ["wide.c", "--abi", "x86-64,i386", "--rounds", "6"];
    let printed = lab.compare(&arguments);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let reason = "static assertion failed: \"64 bits or nothing\"";
    assert!(unfolded(&printed.stdout).contains(reason), "{printed:?}");
    // It is reported at once, before anything is measured.
    let lines: Vec<&str> =
        printed.stderr.lines().skip_while(|line| !line.contains("i386: build failed (exit 1)")).collect();
    assert!(lines.iter().any(|line| line.contains(reason)), "{printed:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("    full log: .widthwise/builds/i386-")),
        "{printed:?}"
    );
    let report = lab.compare_json(&arguments);
    assert_eq!(variant(&report, "x86-64")["status"], "ready");
    assert_eq!(variant(&report, "i386")["status"], "build_failed");
    assert!(variant(&report, "i386")["reason"]
        .as_str()
        .unwrap()
        .contains("full log: .widthwise/builds/i386-"));
    is_intact(&lab);
}

#[test]
fn a_run_command_without_its_program_is_refused_with_the_path() {
    let lab = laboratory();
    for (run, word) in [("no-such-program", "\"no-such-program\" on the PATH"), ("./nowhere 1", "/nowhere;")]
    {
        let arguments = ["tells.c", "--abi", "x86-64", "--run", run];
        lab.compare(&arguments).refuses(2, &["error: --run: there is no program", word, "lies in {build}"]);
    }
    lab.compare("--binary a=./tells.c --binary b=./nowhere --run {binary}")
        .refuses(2, &["error: --binary: ", "/nowhere: No such file or directory"]);
    lab.compare("--binary a=. --run {binary}").refuses(2, &["is a folder, not a program"]);
    lab.compare("tells.c --directory ./nowhere")
        .refuses(2, &["error: --directory: ", "nowhere: No such file"]);
    // What the archive's spec cannot hold.
    for (words, error) in [
        ("--input tells.c --input ./tells.c", "--input: file "),
        ("--check-file out --check-file out", "--check-file: file \"out\" is named twice"),
        ("--exit-status 256", "--exit-status: \"exit_status\" must be from 0 to 255"),
    ] {
        lab.compare(&format!("tells.c {words}")).refuses(2, &[error]);
    }
    assert!(!lab.path(".widthwise").exists(), "a request that was refused has left something behind");

    // A build's files are known only after it.
    let printed = lab.compare("tells.c --abi x86-64 --run {build}/nowhere");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stderr.contains("error: the baseline x86-64: there is no program"), "{printed:?}");
    assert!(printed.stderr.contains("tree/nowhere; does the build put it there?"), "{printed:?}");
    is_intact(&lab);
}

#[test]
fn a_failed_program_is_reported_with_its_exit_status_and_last_output() {
    misbehaves(&["exit", "3"], &["it ended with exit status 3"]);
    let lab = Laboratory::new();
    lab.write("sad.sh", "#!/bin/sh\necho first >&2\necho 'no such option: -x' >&2\nexit 2\n");
    let printed = lab.compare("--binary sad=./sad.sh --run 'sh {binary}'");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stderr.contains("it ended with exit status 2: no such option: -x"), "{printed:?}");
}

#[test]
fn the_expected_exit_status_is_not_a_failure() {
    let lab = laboratory();
    let arguments =
        ["misbehave.c", "--abi", "x86-64", "--rounds", "6", "--exit-status", "3", "--", "exit", "3"];
    assert_eq!(lab.compare(&arguments).status, Some(0));
    let mut well = arguments;
    *well.last_mut().unwrap() = "0";
    let printed = lab.compare(&well);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(
        unfolded(&printed.stdout).contains("it ended with exit status 0, not with that of --exit-status"),
        "{printed:?}"
    );
}

#[test]
fn a_crashed_program_is_reported_with_its_signal() {
    misbehaves(&["crash"], &["killed by signal 11 (SIGSEGV)"]);
}

#[test]
fn a_hanging_program_is_killed_at_the_time_limit() {
    misbehaves(&["hang"], &["still running after 1 s, and was killed (--timeout)"]);
}

#[test]
fn a_fork_bomb_is_killed_without_remaining_processes() {
    // Without privileges there is no control group to limit it, and a fork bomb would stop all of the user's processes.
    if is_root() {
        misbehaves(&["bomb"], &["still running after 1 s, and was killed (--timeout)"]);
    }
}

#[test]
fn a_program_with_endless_output_is_killed_and_the_output_is_removed() {
    let lab = laboratory();
    let printed = lab.compare("misbehave.c --abi x86-64 --rounds 6 -- flood");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(
        printed
            .stderr
            .contains("wrote more than 1.07 GB to its standard output or standard error, and was killed"),
        "{printed:?}"
    );
    is_intact(&lab);
    let left = laboratory::output_of(Command::new("du").args(["-sm", "."]).current_dir(lab.path("")));
    let mebibytes: u64 = left.stdout.split_whitespace().next().unwrap().parse().unwrap();
    assert!(mebibytes < 100, "{mebibytes} MiB were left behind");
}

#[test]
fn a_program_that_closes_its_files_is_measured() {
    let lab = laboratory();
    let printed = lab.compare("misbehave.c --abi x86-64 --rounds 6 -- close");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM run WHERE ended = 'done'"), 14);
}

#[test]
fn the_other_variants_continue_when_one_fails() {
    let lab = laboratory();
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"misbehave.c\"\nrun = \"sh -c '{build}/misbehave $HOW'\"\n[run]\nenvironment = { HOW = \"none\" }\n\
         [axes]\nabi = [\"x86-64\"]\nenv = [\"default\", \"crash\", \"hang\"]\n[env.crash]\nHOW = \"crash\"\n[env.hang]\nHOW = \"hang\"\n",
    );
    let arguments = ["widthwise.toml", "--rounds", "6", "--timeout", "1s"];
    let report = lab.compare_json(&arguments);
    assert_eq!(variant(&report, "x86-64/default")["status"], "ready");
    // The shell's exit status is 128 plus the signal's number.
    assert!(variant(&report, "x86-64/crash")["reason"].as_str().unwrap().contains("139"), "{report}");
    assert!(
        variant(&report, "x86-64/hang")["reason"].as_str().unwrap().contains("still running after 1 s"),
        "{report}"
    );
    // They fail in the warm-up, and are not run after it.
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM run WHERE ended <> 'done'"), 2);
    assert_eq!(lab.widthwise("report").status, Some(0));
}

#[test]
fn a_variant_that_cannot_start_keeps_its_row_and_is_not_a_failure() {
    let lab = laboratory();
    lab.gcc("-o sound tells.c");
    lab.script("unsound", "#!/nowhere/interpreter\n");
    let arguments = "--binary sound=./sound --binary unsound=./unsound --run '{binary} compiler' --rounds 6";
    let printed = lab.compare(arguments);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let table = unfolded(&printed.stdout);
    assert!(table.contains("unsound not measured: "), "{printed:?}");
    assert!(table.contains("unsound could not be measured: the table says why."), "{printed:?}");
    assert!(table.contains("No other variant's output was compared with that of sound."), "{printed:?}");
    assert!(!table.contains("same output"), "{printed:?}");
    assert_eq!(
        table.matches("nowhere/interpreter").count() + table.matches("unsound: ").count(),
        1,
        "{printed:?}"
    );
    let report = lab.compare_json(arguments);
    assert_eq!(variant(&report, "unsound")["status"], "unsupported");
    assert_eq!(laboratory::verdict(&report, "unsound", "cpu")["verdict"], "no_data");
}

#[test]
fn a_baseline_whose_second_run_fails_is_shown_in_both_its_rows() {
    let lab = Laboratory::new();
    lab.write("once.sh", "#!/bin/sh\n[ ! -e been ] || exit 3\ntouch been\n");
    // The seed decides the order of the first round; one of these begins with the baseline, the other with the control.
    for seed in ["1", "2", "3", "4"] {
        let _ = std::fs::remove_file(lab.path("been"));
        let printed = lab.compare(&["--binary", "a=./once.sh", "--run", "sh {binary}", "--seed", seed]);
        assert_eq!(printed.status, Some(1), "{printed:?}");
        assert_eq!(
            printed.stdout.matches("not measured: it ended with exit status 3").count(),
            2,
            "{printed:?}"
        );
        assert!(!printed.stdout.contains("no data"), "{printed:?}");
    }
}

#[test]
fn a_failed_setup_is_reported_with_its_last_output() {
    let lab = laboratory();
    let arguments = ["tells.c", "--abi", "x86-64", "--rounds", "6", "--setup", "echo no room >&2; exit 4"];
    let printed = lab.compare(&arguments);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(
        printed.stderr.contains("setup `echo no room >&2; exit 4` failed (exit 4): no room"),
        "{printed:?}"
    );
}

/// A campaign to be damaged.
fn with_campaign() -> Laboratory {
    let lab = laboratory();
    assert_eq!(lab.compare("tells.c --abi x86-64 --rounds 6").status, Some(0));
    lab
}

/// `report` and `--resume` refuse it with the same message; the file stays unchanged.
fn is_refused(lab: &Laboratory, campaign: &str, words: &[&str]) {
    let file = lab.path(campaign).join("campaign.sqlite");
    let before = std::fs::read(&file).ok();
    lab.widthwise(&["report", campaign]).refuses(2, words);
    lab.widthwise(&["compare", "--resume", campaign]).refuses(2, words);
    assert_eq!(std::fs::read(&file).ok(), before, "an archive that was refused was touched");
}

#[test]
fn a_missing_campaign_and_a_folder_that_is_not_a_campaign_have_different_errors() {
    let lab = with_campaign();
    is_refused(&lab, "nowhere", &["nowhere: there is no such folder"]);
    is_refused(&lab, ".", &["has no campaign in it"]);
    is_refused(&lab, "tells.c", &["not the folder of a campaign"]);
    Laboratory::new().widthwise(&["report"]).refuses(2, &[".widthwise/latest: there is no such folder"]);
}

#[test]
fn an_archive_of_another_kind_or_an_empty_one_is_refused() {
    let lab = with_campaign();
    let file = lab.campaign().join("campaign.sqlite");
    for bytes in [&b""[..], b"hello, this is a text that is much longer than the header of a database ........................................................"] {
        std::fs::write(&file, bytes).unwrap();
        is_refused(&lab, ".widthwise/latest", &["campaign.sqlite: is not a widthwise archive"]);
    }
    std::fs::remove_file(&file).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE x (y); PRAGMA application_id = 7;").unwrap();
    drop(other);
    is_refused(&lab, ".widthwise/latest", &["is not a widthwise archive", "another application"]);
}

#[test]
fn a_newer_archive_is_refused_with_both_versions() {
    let lab = with_campaign();
    let archive = rusqlite::Connection::open(lab.campaign().join("campaign.sqlite")).unwrap();
    archive.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(archive);
    is_refused(
        &lab,
        ".widthwise/latest",
        &["written by a newer widthwise", "archive version 99", "upgrade widthwise"],
    );
}

#[test]
fn a_damaged_archive_is_refused_wherever_the_damage_is() {
    let lab = with_campaign();
    let file = lab.campaign().join("campaign.sqlite");
    let whole = std::fs::read(&file).unwrap();
    // Truncated, and overwritten in a page of tables.
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    is_refused(&lab, ".widthwise/latest", &["is damaged and was left as it is"]);
    let mut overwritten = whole.clone();
    overwritten[4096..8192].fill(0xa5);
    std::fs::write(&file, overwritten).unwrap();
    is_refused(&lab, ".widthwise/latest", &["is damaged and was left as it is"]);
    // One wrong byte anywhere: the archive is refused or read, without a crash.
    for seed in 0..40u64 {
        let mut bytes = whole.clone();
        let at = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % bytes.len();
        bytes[at] ^= 1 << (seed % 8);
        std::fs::write(&file, bytes).unwrap();
        let printed = lab.widthwise("report --json");
        match printed.status {
            Some(0) => drop(printed.json()),
            Some(2) => printed.refuses(2, &[]),
            other => panic!("byte {at} flipped: {other:?}: {printed:?}"),
        }
    }
}

#[test]
fn a_file_in_place_of_the_folder_of_campaigns_is_refused() {
    let lab = laboratory();
    lab.write("file", "");
    lab.widthwise("compare tells.c --archive file")
        .refuses(2, &["file: ", "`--archive` names another folder"]);
    lab.widthwise("compare tells.c --archive /proc/nowhere").refuses(2, &["/proc/nowhere: ", "--archive"]);
}

#[test]
fn a_read_only_folder_is_refused_and_reports_can_be_written_elsewhere() {
    let lab = with_campaign();
    let owned = lab.path("owned");
    std::fs::create_dir(&owned).unwrap();
    lab.write(
        "widthwise.toml",
        "[program]\nsource = \"tells.c\"\n[run]\ncpus = \"any\"\n[measure]\nrounds = 6\n",
    );
    // The user `nobody` owns everything except the tested folder.
    let mut command = lab.without_rights("compare widthwise.toml --archive owned");
    forbid(&owned);
    let printed = output_of(&mut command);
    printed.refuses(2, &["owned", "Permission denied", "--archive"]);

    let campaign = lab.campaign();
    forbid(&campaign);
    let report = laboratory::output_of(&mut lab_report(&lab, &["report"]));
    assert_eq!(report.status, Some(0), "{report:?}");
    let inside = format!("{}/out.html", campaign.display());
    laboratory::output_of(&mut lab_report(&lab, &["report", &format!("--html={inside}")]))
        .refuses(2, &["out.html", "Permission denied"]);
    allow(&campaign);
    allow(&owned);
    drop(open(&campaign));
}

/// As the user `nobody`, without changing owners again.
fn lab_report(lab: &Laboratory, arguments: &[&str]) -> Command {
    if !is_root() {
        return lab.command(arguments);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(lab.path("widthwise-of-nobody"))
        .args(arguments)
        .current_dir(lab.path(""));
    command
}

fn mode(path: &Path, mode: &str) {
    assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
}

/// Removes the write permission of every user.
fn forbid(path: &Path) {
    mode(path, "555");
}

fn allow(path: &Path) {
    mode(path, "755");
}

#[test]
fn a_full_disk_stops_the_campaign_cleanly_and_resume_continues_when_there_is_room() {
    let lab = laboratory();
    lab.gcc("-o sound tells.c");
    lab.write(
        "trial.sh",
        "set -u\nmkdir small\nmount -t tmpfs -o size=4m tmpfs small\n\
         \"$WIDTHWISE\" compare --archive small --cpus any --binary sound=./sound --run '{binary} compiler' --rounds 1 >/dev/null\n\
         free=$(df --output=avail -k small | tail -n 1)\n\
         head -c $(((free - 400) * 1024)) /dev/zero >small/ballast\n\
         \"$WIDTHWISE\" compare --archive small --cpus any --binary sound=./sound --run '{binary} compiler' --rounds 60 \
         >full.out 2>full.err; echo $? >full.status\n\
         cp -r small/latest/ kept; ls -l small small/latest/ >listing\n\
         rm small/ballast\n\
         \"$WIDTHWISE\" compare --resume small/latest >resumed.out 2>resumed.err; echo $? >resumed.status\n\
         cp -r small/latest/ whole\n",
    );
    // A private mount, which ends with the last process that uses it.
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "trial.sh"]).env("WIDTHWISE", env!("CARGO_BIN_EXE_widthwise"));
    let trial = output_of(command.current_dir(lab.path("")));
    assert_eq!(trial.status, Some(0), "{trial:?}");

    let full = lab.read("full.err");
    assert_eq!(lab.read("full.status"), "1\n", "{full}");
    assert_eq!(full.lines().filter(|line| line.starts_with("error:")).count(), 1, "{full}");
    assert!(full.contains("the disk is full") && full.contains("--resume "), "{full}");
    assert!(!full.contains("panicked"), "{full}");
    let kept = open(&lab.path("kept"));
    let runs = count(&kept, "SELECT count(*) FROM run");
    assert!(runs > 0, "{}", lab.read("listing"));
    assert!(count(&kept, "SELECT count(*) FROM rounds WHERE kind = 'timed'") < 60);

    assert_eq!(lab.read("resumed.status"), "0\n", "{}", lab.read("resumed.err"));
    let whole = open(&lab.path("whole"));
    assert_eq!(count(&whole, "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 60);
    let question = format!("SELECT count(*) FROM run WHERE id <= {runs}");
    assert_eq!(count(&whole, &question), runs, "runs that had been finished are gone");
}

#[test]
fn documents_that_could_not_be_written_are_refused_before_anything_runs() {
    let lab = laboratory();
    lab.gcc("-o sound tells.c");
    let campaign = "compare --binary sound=./sound --run {binary} --rounds 1";
    for (output, words) in [
        ("--json=missing/out.json", "--json: missing/out.json cannot be written: No such file or directory"),
        ("--json=sound/out.json", "--json: sound/out.json cannot be written: Not a directory"),
        ("--json=.", "--json: . is a folder: name a file"),
    ] {
        let refused = lab.widthwise(&format!("{campaign} {output}"));
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert!(!lab.path(".widthwise").join("latest").exists());

    assert_eq!(lab.widthwise(campaign).status, Some(0));
    for (arguments, words) in [
        ("report --html --csv", "--html and --csv both write to standard output"),
        ("report --html=missing/out.html", "--html: missing/out.html cannot be written"),
        ("explain --json --html=-", "--html and --json both write to standard output"),
        ("doctor --json=missing/out.json", "--json: missing/out.json cannot be written"),
    ] {
        let refused = lab.widthwise(arguments);
        assert_eq!((refused.status, refused.stdout.as_str()), (Some(2), ""), "{arguments}: {refused:?}");
        assert!(refused.stderr.contains(words), "{arguments}: {refused:?}");
    }
}

#[test]
fn a_device_a_pipe_and_the_file_behind_a_link_are_written_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let lab = laboratory();
    lab.gcc("-o sound tells.c");
    lab.widthwise("compare --binary sound=./sound --run {binary} --rounds 1");
    let page = lab.widthwise("report --html").stdout;

    let made = Command::new("mkfifo").arg(lab.path("pipe")).status().unwrap();
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = lab.path("pipe");
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let piped = lab.widthwise("report --html=pipe");
    assert_eq!(piped.status, Some(0), "{piped:?}");
    assert!(lab.path("pipe").metadata().unwrap().file_type().is_fifo());
    assert!(reader.join().unwrap() == page, "the pipe has another page");

    let discarded = lab.widthwise("report --html=/dev/null");
    assert_eq!(discarded.status, Some(0), "{discarded:?}");
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());

    lab.write("behind.html", "old");
    std::os::unix::fs::symlink("behind.html", lab.path("link.html")).unwrap();
    let linked = lab.widthwise("report --html=link.html");
    assert_eq!(linked.status, Some(0), "{linked:?}");
    assert!(lab.path("link.html").is_symlink());
    assert!(lab.read("behind.html") == page, "the file behind the link has another page");
}

#[test]
fn a_full_standard_output_is_an_error_and_a_full_standard_error_is_none() {
    let lab = laboratory();
    lab.gcc("-o sound tells.c");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let campaign = "compare --binary sound=./sound --run {binary} --rounds 1";
    for arguments in [campaign, "report", "report --json", "doctor"] {
        let printed = output_of(lab.command(arguments).stdout(full()));
        assert_eq!(printed.status, Some(1), "{arguments}: {printed:?}");
        let message = "error: standard output: No space left on device";
        assert!(
            printed.stderr.lines().last().is_some_and(|line| line.starts_with(message)),
            "{arguments}: {printed:?}"
        );
        assert!(!printed.stderr.contains("panicked"), "{arguments}: {printed:?}");
    }
    let silent = output_of(lab.command(campaign).stderr(full()));
    assert_eq!(silent.status, Some(0), "{silent:?}");
    let wrong = output_of(lab.command("compare --rounds none tells.c").stderr(full()));
    assert_eq!(wrong.status, Some(2), "{wrong:?}");
}

#[test]
fn a_filter_that_fails_and_a_missing_file_are_no_difference_of_outputs() {
    let lab = laboratory();
    let missing = "tells.c --abi x86-64 --rounds 1 --check-file none -- compiler";
    let text = unfolded(&lab.compare(missing).stdout);
    let expected = "x86-64's output could not be compared: it did not write the file none";
    assert!(text.contains(expected) && !text.contains("differs"), "{text}");
    let printed =
        lab.compare(&["tells.c", "--abi", "x86-64", "--rounds", "1", "--filter", "false", "--", "compiler"]);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let text = unfolded(&printed.stdout);
    assert!(text.contains("x86-64's output could not be compared: the filter `false` failed"), "{printed:?}");
    assert!(!text.contains("differs") && !text.contains(" against x86-64:"), "{printed:?}");
}
