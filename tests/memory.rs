//! The memory series of programs that end at once, end badly or are interrupted, from the command line.

use crate::laboratory::{
    count, is_judged, open, output_of, signal, unfolded, until, verdict, CommandOutput, Laboratory,
};
use std::process::{Command, Stdio};

#[test]
fn a_variant_that_is_not_compared_is_not_called_too_short_for_the_series() {
    let lab = Laboratory::new();
    lab.write(
        "words.c",
        "#include <stdio.h>\n#include <time.h>\nint main(void) {\n    struct timespec time = {0, 500000000};\n    \
         nanosleep(&time, 0);\n    return printf(\"%zu\\n\", sizeof(long)) < 0;\n}\n",
    );
    let output = lab.compare("words.c --abi x86-64,i386 --rounds 1 --warmup 0 --metric max_rss --memory=1");
    assert!(unfolded(&output.stdout).contains("output differs"), "{output:?}");
    let text = unfolded(&lab.widthwise("explain x86-64 i386").stdout);
    assert!(text.contains("The memory series has no run of i386 (not compared, since its output"), "{text}");
    assert!(!text.contains("too short"), "{text}");
}

#[test]
fn a_program_that_ends_at_once_is_reported_as_too_short() {
    let lab = Laboratory::new();
    let output = lab.compare("--binary a=/bin/true --rounds 6 --metric cpu --memory=2");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(unfolded(&output.stdout).contains("too short for a memory series"), "{output:?}");
    let report = lab.widthwise("report --json").json();
    let found = verdict(&report, "a control", "tree_heap");
    assert_eq!(found["verdict"], "no_data");
    assert!(found["reason"].as_str().unwrap().contains("too short"), "{found}");
    assert!(is_judged(verdict(&report, "a control", "cpu")));
}

#[test]
fn a_program_that_never_ends_in_the_series_is_killed_and_the_rest_is_reported() {
    let lab = Laboratory::new();
    // It ends only if no reader has the pipe open.
    lab.write(
        "stubborn.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n    \
         if (getenv(\"WIDTHWISE_MARKS\")) for (;;) pause();\n    return puts(\"x\") < 0;\n}\n",
    );
    let output = lab.compare("stubborn.c --abi x86-64,i386 --rounds 6 --metric cpu --memory=3 --timeout 1s");
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = lab.widthwise("report --json").json();
    let found = verdict(&report, "i386", "tree_peak");
    assert_eq!(found["verdict"], "no_data");
    assert!(found["reason"].as_str().unwrap().contains("still running after 1 s"), "{found}");
    assert_ne!(verdict(&report, "i386", "cpu")["verdict"], "no_data");
    // One timeout suffices, and the readings up to then are kept.
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM run WHERE ended = 'timeout'"), 3);
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM memory_series"), 3);
    assert_eq!(lab.processes(), "");
}

#[test]
fn the_series_of_a_run_that_left_a_process_at_work_is_left_out() {
    let lab = Laboratory::new();
    lab.program("left_over.c");
    lab.gcc("-O2 left_over.c -o left_over");
    // Where memory is read, one leaves its work to a child.
    lab.write("here", "exec ./left_over here 50\n");
    lab.write("work", "[ -z \"$WIDTHWISE_MARKS\" ] || exec ./left_over work 150\nexec ./left_over here 50\n");
    let words =
        "--binary here=here --binary work=work --run 'sh {binary}' --rounds 1 --metric cpu --memory=1";
    let output = lab.compare(words);
    assert_eq!(output.status, Some(0), "{output:?}");
    // The baseline's and the control's.
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM memory_series"), 2);
    assert_eq!(
        count(
            &lab.archive(),
            "SELECT count(*) FROM run JOIN round ON round.number = run.round WHERE kind = 'memory'"
        ),
        3
    );
}

#[test]
fn endless_marks_do_not_stop_the_program_and_programs_without_marks_are_unaffected() {
    let lab = Laboratory::new();
    lab.write(
        "chatty.c",
        "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n    \
         const char *path = getenv(\"WIDTHWISE_MARKS\");\n    if (path) {\n        int pipe = open(path, O_WRONLY);\n        \
         for (int i = 0; i < 100000; i++) if (write(pipe, \"phase\\n\", 6) != 6) return 1;\n    }\n    \
         return puts(\"x\") < 0;\n}\n",
    );
    let output =
        lab.compare("chatty.c --abi x86-64 --rounds 1 --warmup 0 --metric cpu --memory=1 --timeout 60s");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(unfolded(&output.stdout).contains("wrote more marks than are kept"), "{output:?}");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM run WHERE ended = 'done'"), 4);
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM mark"), 20_000);
    assert!(!lab.campaign().join("scratch").exists());
}

/// A campaign that reads memory, for half a minute unless it is stopped.
fn reading(lab: &Laboratory) -> std::process::Child {
    let words = "hold.c --abi x86-64 --rounds 1 --warmup 0 --metric cpu --memory=4 -- 400 +2 +2 +2";
    let child = lab.comparing(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a run of the memory series", || {
        let folder = std::fs::canonicalize(lab.path(".widthwise/latest")).ok();
        let archive =
            folder.filter(|folder| folder.join("campaign.sqlite").exists()).map(|folder| open(&folder));
        archive.is_some_and(|archive| count(&archive, "SELECT count(*) FROM memory_series") > 0)
    });
    child
}

fn continues_to_the_end(lab: &Laboratory) {
    let archive = lab.archive();
    let halves = "SELECT count(*) FROM run JOIN round ON round.number = run.round
                   WHERE round.kind IN ('memory', 'interrupted') AND run.id NOT IN (SELECT run FROM memory_series)";
    assert_eq!(count(&archive, halves), 0);
    drop(archive);
    let output = lab.widthwise("compare --resume .widthwise/latest");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'memory'"), 4);
    assert_eq!(lab.processes(), "");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn ctrl_c_ends_the_series_after_the_run_and_resume_completes_it() {
    let lab = Laboratory::with_marks("hold.c");
    let child = reading(&lab);
    signal(&child, libc::SIGINT);
    let output = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, Some(130), "{output:?}");
    assert!(output.stderr.contains("reading memory over time in 4 more rounds"), "{output:?}");
    assert!(output.stderr.contains("interrupted; `widthwise compare --resume"), "{output:?}");
    assert_eq!(lab.processes(), "");
    continues_to_the_end(&lab);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn after_kill_9_a_run_of_the_series_is_complete_or_absent() {
    let lab = Laboratory::with_marks("hold.c");
    let mut child = reading(&lab);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    until("the program's end", || lab.processes().is_empty());
    continues_to_the_end(&lab);
}

#[test]
fn a_program_with_the_header_also_runs_by_itself() {
    let lab = Laboratory::with_marks("hold.c");
    for options in ["-m64", "-m32", "-mx32 -idirafter /usr/include/x86_64-linux-gnu"] {
        lab.gcc(&format!("-Wall -Wextra -Werror -O2 {options} -pthread hold.c -o hold"));
    }
    lab.gcc("-O2 -pthread hold.c -o hold");
    let run = |marks: Option<&str>| {
        let mut command = Command::new(lab.path("hold"));
        command.args(["1", "aphase", "+1"]).env_remove("WIDTHWISE_MARKS");
        output_of(command.envs(marks.map(|path| ("WIDTHWISE_MARKS", path))))
    };
    // No variable; no file; a pipe without a reader.
    assert_eq!(Command::new("mkfifo").arg(lab.path("pipe")).status().unwrap().code(), Some(0));
    for marks in [None, Some("/nowhere/at/all"), Some(lab.path("pipe").to_str().unwrap())] {
        let output = run(marks);
        assert_eq!((output.status, output.stdout.as_str()), (Some(0), "held\n"), "{output:?}");
    }
}

#[test]
fn a_missing_series_is_not_exported() {
    let lab = Laboratory::new();
    assert_eq!(lab.compare("--binary a=/bin/true --rounds 1 --metric cpu").status, Some(0));
    lab.widthwise("report --series").refuses(2, &["--series", "widthwise compare --memory"]);
    assert!(!lab.widthwise("report").stdout.contains("Memory over time"));
}
