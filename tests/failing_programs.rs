//! Builds and programs that fail: one clear error each, the right exit status, and an archive that can still be read.

use crate::laboratory;
use crate::laboratory::{count, is_root, unfolded, variant, CommandOutput, Laboratory};
use std::process::Command;

/// A laboratory with programs that succeed and that fail.
pub(crate) fn with_programs() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab.program("misbehave.c");
    lab
}

/// The last campaign can be read and reported, and SQLite finds no damage.
pub(crate) fn is_intact(lab: &Laboratory) {
    let word: String = lab.archive().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(word, "ok");
    let report = lab.widthwise("report");
    assert_eq!((report.status, report.stderr.as_str()), (Some(0), ""), "{report:?}");
    assert!(report.stdout.contains("baseline"), "{report:?}");
}

/// A campaign of the misbehaving program: the report has these words, and no process is left.
fn misbehaves(how: &[&str], words: &[&str]) {
    let lab = with_programs();
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
    let lab = with_programs();
    for (run, word) in [("no-such-program", "\"no-such-program\" on the PATH"), ("./nowhere 1", "/nowhere;")]
    {
        let arguments = ["tells.c", "--abi", "x86-64", "--run", run];
        lab.compare(&arguments).refuses(2, &["error: --run: there is no program", word, "lies in {build}"]);
    }
    lab.compare("--binary a=./tells.c --binary b=./nowhere --run {binary}")
        .refuses(2, &["error: --binary: ", "/nowhere: No such file or directory"]);
    lab.compare("--binary a=/bin/true --binary b=./tells.c")
        .refuses(2, &["tells.c may not be executed (chmod +x)"]);
    lab.write("locked.toml", "[program.binaries]\na = \"./tells.c\"\n");
    lab.widthwise("compare locked.toml").refuses(2, &["locked.toml:2: ", "tells.c may not be executed"]);
    lab.write("empty.toml", "[measure]\nrounds = 3\n");
    lab.widthwise("compare empty.toml").refuses(2, &["error: empty.toml: no program; name a source file"]);
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
    let lab = with_programs();
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
    let lab = with_programs();
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
    let lab = with_programs();
    let printed = lab.compare("misbehave.c --abi x86-64 --rounds 6 -- close");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM run WHERE ended = 'done'"), 14);
}

#[test]
fn the_other_variants_continue_when_one_fails() {
    let lab = with_programs();
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
    let lab = with_programs();
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
        assert!(!printed.stdout.contains("also measured"), "{printed:?}");
    }
}

#[test]
fn a_failed_setup_is_reported_with_its_last_output() {
    let lab = with_programs();
    let arguments = ["tells.c", "--abi", "x86-64", "--rounds", "6", "--setup", "echo no room >&2; exit 4"];
    let printed = lab.compare(&arguments);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let told = "setup `echo no room >&2; exit 4` failed (exit 4): no room";
    assert!(printed.stderr.contains(told), "{printed:?}");
    // The order of the baseline and the control within a round is a random one.
    let warned = |name: &str| unfolded(&printed.stdout).contains(&format!("warning: {name}: {told} (round"));
    assert!(warned("x86-64") || warned("x86-64 control"), "{printed:?}");
}

#[test]
fn a_filter_that_fails_and_a_missing_file_are_no_difference_of_outputs() {
    let lab = with_programs();
    let missing = "tells.c --abi x86-64 --rounds 1 --check-file none -- compiler";
    let text = unfolded(&lab.compare(missing).stdout);
    let expected = "x86-64's output could not be compared: it did not write the file none";
    assert!(text.contains(expected) && !text.contains("differs"), "{text}");
    let printed =
        lab.compare(&["tells.c", "--abi", "x86-64", "--rounds", "1", "--filter", "false", "--", "compiler"]);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let text = unfolded(&printed.stdout);
    assert!(text.contains("x86-64's output could not be compared: the filter `false` failed (exit 1) without a message; begin it with `set -x;`"), "{printed:?}");
    assert!(!text.contains("differs") && !text.contains(" against x86-64:"), "{printed:?}");
}
