//! Emulated counters, where the machine has none, from the command line.

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{
    count, is_judged, open, output_of, signal, unfolded, until, verdict, CommandOutput, Laboratory,
};
use rusqlite::Connection;
use serde_json::Value;
use std::process::Stdio;

/// The counts of a variant in the emulated rounds, in order.
fn counts(archive: &Connection, variant: &str, metric: &str) -> Vec<f64> {
    let question =
        "SELECT value FROM samples WHERE variant = ?1 AND metric = ?2 AND source = 'emulated' ORDER BY round";
    let mut statement = archive.prepare(question).unwrap();
    let rows = statement.query_map([variant, metric], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

const HAS_COUNTERS: &str = "this machine has counters of its own: nothing is emulated here";

/// Whether this machine counts by itself: then nothing is emulated here.
fn has_counters(report: &Value) -> bool {
    report["verdicts"].as_array().unwrap().iter().any(|verdict| verdict["source"] == "hardware")
}

#[test]
fn twice_the_steps_are_exactly_twice_the_instructions_in_every_abi() {
    const STEPS: f64 = 1e6;
    let lab = Laboratory::new();
    lab.program("steps.c");
    // Names of one length: the length of its path costs a program some instructions.
    let twice = "env.dual.STEPS = \"2000000\"";
    let once = "env.once.STEPS = \"1000000\"";
    let report = lab.compare_json(&[
        "steps.c",
        "--abi",
        "x86-64,x32,i386",
        "--set",
        once,
        "--set",
        twice,
        "--env",
        "once,dual",
        "--rounds",
        "6",
        "--metric",
        "cpu,instructions,branches",
    ]);
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    let archive = lab.archive();
    for abi in ["x86-64", "x32", "i386"] {
        for (metric, each) in [("instructions", 2.0), ("branches", 1.0)] {
            let [once, twice] = ["once", "dual"].map(|env| counts(&archive, &format!("{abi}/{env}"), metric));
            // Two equal counts suffice for an exact result.
            assert_eq!((once.len(), twice.len()), (2, 2), "{abi} {metric}");
            assert_eq!((once[0], twice[0]), (once[1], twice[1]), "{abi} {metric}");
            assert_eq!(twice[0] - once[0], each * STEPS, "{abi} {metric}: {once:?} {twice:?}");
        }
    }
    // The start of an x32 program by the runtime does not count; the programs' own starts differ by little.
    let [native, x32] =
        ["x86-64/once", "x32/once"].map(|variant| counts(&archive, variant, "instructions")[0]);
    assert!((x32 - native).abs() < 0.05 * native, "{native} {x32}");
    let found = verdict(&report, "x86-64/dual", "instructions");
    let [once, twice] =
        ["once", "dual"].map(|env| counts(&archive, &format!("x86-64/{env}"), "instructions")[0]);
    assert_eq!(found["source"], "emulated");
    assert_eq!((&found["low"], &found["high"]), (&found["ratio"], &found["ratio"]), "{found}");
    assert!((found["ratio"].as_f64().unwrap() - twice / once).abs() < 1e-9, "{found}");
    assert_eq!((found["verdict"].as_str(), found["floor"].as_f64()), (Some("higher"), Some(0.0)), "{found}");
    assert_eq!(verdict(&report, "x86-64/dual", "cpu")["source"], "rusage");

    // Nothing is timed in the emulated rounds, and nothing is emulated in the timed ones.
    let mixed = "SELECT count(*) FROM samples WHERE (kind = 'emulated') <> (source = 'emulated')";
    assert_eq!(count(&archive, mixed), 0);
    assert_eq!(count(&archive, "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 6);

    let table = lab.widthwise("report");
    assert!(table.stdout.contains("instructions, emulated"), "{table:?}");
    let csv = lab.widthwise("report --csv").stdout;
    assert_eq!(
        csv.lines().filter(|line| line.contains("emulated") && line.contains(",instructions,")).count(),
        14
    );
    let page = lab.widthwise("report --html=page.html");
    assert_eq!(page.status, Some(0), "{page:?}");
    assert!(lab.read("page.html").contains("instructions, emulated"));
    // The emulated rounds are not repeated.
    assert_eq!(lab.widthwise("compare --resume .widthwise/latest").status, Some(0));
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'emulated'"), 2);
}

/// A program that does nothing, as x86-64 and as x32, with one round of those metrics; or why they cannot be compared here.
fn started_in_both(metrics: &str) -> Result<Value, &'static str> {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let report =
        lab.compare_json(&format!("nap.c --abi x86-64,x32 --rounds 1 --warmup 0 --metric {metrics}"));
    if has_counters(&report) {
        return Err(HAS_COUNTERS);
    }
    if widthwise_x32run::kernel_has_x32() {
        return Err("this kernel has x32, and programs do not run through the runtime");
    }
    Ok(report)
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_start_of_an_x32_program_has_about_as_many_instructions_and_branches_as_that_of_x86_64() {
    let report = match started_in_both("instructions,branches") {
        Ok(report) => report,
        Err(reason) => return skipped(reason),
    };
    // Both load and link one library. The runtime executes a hundred times as many instructions in between.
    for metric in ["instructions", "branches"] {
        let ratio = verdict(&report, "x32", metric)["ratio"].as_f64().unwrap();
        assert!((0.85..1.05).contains(&ratio), "{metric}: {ratio}");
    }
}

#[test]
fn cache_misses_that_the_x32_runtime_may_have_changed_have_no_verdict() {
    let report = match started_in_both("cpu,instructions,cache_misses") {
        Ok(report) => report,
        Err(reason) => return skipped(reason),
    };
    // A start has thousands of misses, of the runtime's as well as of the program's: the bounds are about 0 and twice as many.
    let found = verdict(&report, "x32", "cache_misses");
    assert_eq!(found["verdict"], "inconclusive", "{found}");
    let reads = |variant: &str| -> Vec<Value> {
        let runs = report["runs"].as_array().unwrap().iter();
        let own = runs.filter(|run| run["variant"] == variant && run["sample"]["cache_misses"].is_object());
        own.map(|run| run["sample"]["cache_misses"].clone()).collect()
    };
    assert_eq!(["x32", "x86-64"].map(|variant| reads(variant).is_empty()), [false; 2], "{report:#}");
    assert!(reads("x32").iter().all(|read| read["upper"].as_f64() > read["value"].as_f64()), "{report:#}");
    assert!(reads("x86-64").iter().all(|read| read["upper"].is_null()), "{report:#}");
    // The instructions are exact.
    let instructions = verdict(&report, "x32", "instructions");
    assert_eq!(
        (&instructions["low"], &instructions["high"]),
        (&instructions["ratio"], &instructions["ratio"])
    );
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_emulated_last_level_cache_is_as_large_as_this_machines() {
    let Some([_, _, last]) = widthwise_machine::core_caches::caches() else {
        return skipped("the kernel does not describe this machine's caches");
    };
    let lab = Laboratory::new();
    lab.write(
        "passes.c",
        "static volatile char bytes[BYTES];\nint main(void) {\n  for (int pass = 0; pass < 3; pass++)\n    \
         for (unsigned long at = 0; at < BYTES; at += LINE) bytes[at];\n  return 0;\n}\n",
    );
    for (name, bytes) in [("fits", last.bytes / 2), ("exceeds", 2 * last.bytes)] {
        lab.gcc(&format!(
            "-O1 -mcmodel=large -fno-pie -no-pie -DBYTES={bytes}ul -DLINE={} passes.c -o {name}",
            last.line
        ));
    }
    let words = "./fits ./exceeds --rounds 1 --warmup 0 --metric cpu,cache_misses";
    if has_counters(&lab.compare_json(words)) {
        return skipped(HAS_COUNTERS);
    }
    let misses = |name: &str| counts(&lab.archive(), name, "cache_misses")[0];
    // What fits is read once, what exceeds is read in every pass: each line takes the place of the one that is needed last.
    let lines = (last.bytes / 2 / u64::from(last.line)) as f64;
    assert!((lines..1.1 * lines + 20_000.0).contains(&misses("fits")), "{} of {lines}", misses("fits"));
    assert!(misses("exceeds") >= 3.0 * 4.0 * lines, "{} of {}", misses("exceeds"), 4.0 * lines);
}

/// The words that compare a program with one thousand and with nine thousand steps.
fn few_and_all<'w>(program: &'w str, abis: &'w str, metrics: &'w str) -> [&'w str; 11] {
    let [few, all] = ["env.few.THOUSANDS = \"1\"", "env.all.THOUSANDS = \"9\""];
    [program, "--abi", abis, "--set", few, "--set", all, "--env", "few,all", "--metric", metrics]
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_repeated_string_instruction_is_one_instruction_and_no_branch_however_often_it_repeats() {
    let lab = Laboratory::new();
    // Ten times each. The number is no text of several digits: reading one takes instructions by its digits.
    let text = r#"
        #include <stdlib.h>
        static int words[100000];
        int main(void) {
            for (int i = 0; i < 10; i++) {
                void *to = words, *from = words + 50000;
                unsigned long count = 1000 * (*getenv("THOUSANDS") - '0'), left = count;
                __asm__ volatile("rep stosl" : "+D"(to), "+c"(left) : "a"(0) : "memory");
                to = words, left = count;
                __asm__ volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
                to = words, left = count;
                __asm__ volatile("repne scasb" : "+D"(to), "+c"(left) : "a"(5) : "memory", "cc");
            }
            return 0;
        }
    "#;
    lab.write("repeat.c", text);
    let report = lab.compare_json(&few_and_all("repeat.c", "x86-64,x32,i386", "instructions,branches"));
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    let archive = lab.archive();
    for abi in ["x86-64", "x32", "i386"] {
        for metric in ["instructions", "branches"] {
            let [few, all] = ["few", "all"].map(|env| counts(&archive, &format!("{abi}/{env}"), metric));
            assert_eq!((few.len(), &few), (2, &all), "{abi} {metric}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_clock_read_without_the_vdso_has_two_bounds_with_the_truth_between_them() {
    const CALLS: f64 = 2e4;
    let lab = Laboratory::new();
    lab.write(
        "clock.c",
        "#include <time.h>\nint main(void) {\n    struct timespec now;\n    for (int i = 0; i < 20000; i++)\n        \
         clock_gettime(CLOCK_MONOTONIC, &now);\n    return 0;\n}\n",
    );
    let report = lab.compare_json("clock.c --abi x86-64,x32,i386 --metric instructions,branches");
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    let runs = report["runs"].as_array().unwrap();
    // Single steps of the processor: some 70 instructions of the vDSO for each call on x86-64, and 190 on i386.
    for (abi, truth) in [("x86-64", 75.0 * CALLS), ("x32", 75.0 * CALLS), ("i386", 190.0 * CALLS)] {
        let is_emulated = |run: &&Value| run["sample"]["instructions"]["source"] == "emulated";
        let own: Vec<&Value> = runs.iter().filter(|run| run["variant"] == abi).filter(is_emulated).collect();
        assert_eq!(own.len(), 2, "{abi}: the counts are the same each time");
        for (run, metric) in own.iter().flat_map(|run| [(run, "instructions"), (run, "branches")]) {
            let reading = &run["sample"][metric];
            let [low, high] = ["value", "upper"].map(|bound| reading[bound].as_f64().unwrap());
            assert!(high - low >= 60.0 * CALLS, "{abi} {metric}: {reading}");
            assert!(metric == "branches" || (low < truth && truth < high), "{abi}: {reading}");
        }
        let variant = if abi == "x86-64" { "x86-64 control" } else { abi };
        for metric in ["instructions", "branches"] {
            let found = verdict(&report, variant, metric);
            assert_eq!(found["verdict"], "inconclusive", "{abi} {metric}");
            assert!(found["rounds_to_decide"].is_null(), "no rounds narrow bounds: {found}");
        }
    }
    assert!(
        report["warnings"].to_string().contains("of x86-64, x32 and i386 have two bounds: the kernel's vDSO"),
        "{}",
        report["warnings"]
    );
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn each_call_of_an_i386_program_has_the_instructions_of_the_kernels_entry() {
    let lab = Laboratory::new();
    let text = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n    \
                for (int i = 1000 * (*getenv(\"THOUSANDS\") - '0'); i; i--)\n        getppid();\n    return 0;\n}\n";
    lab.write("ask.c", text);
    let words = few_and_all("ask.c", "x86-64,i386", "instructions");
    // Single steps of the processor count so many in each round. Of a static program the entry is the program's own.
    for (flags, steps) in [("-O2", [7.0, 16.0]), ("-O2 -static", [6.0, 15.0])] {
        let report = lab.compare_json(&[&words[..], &["--flags", flags]].concat());
        if has_counters(&report) {
            return skipped(HAS_COUNTERS);
        }
        let archive = lab.archive();
        let each = ["x86-64", "i386"].map(|abi| {
            let [few, all] =
                ["few", "all"].map(|env| counts(&archive, &format!("{abi}/{flags}/{env}"), "instructions"));
            assert_eq!((few.len(), few[0], all[0]), (2, few[1], all[1]), "{abi} {flags}");
            (all[0] - few[0]) / 8_000.0
        });
        assert_eq!(each, steps, "{flags}");
        let found = verdict(&report, &format!("i386/{flags}/all"), "instructions");
        assert_eq!((&found["low"], &found["high"]), (&found["ratio"], &found["ratio"]), "{found}");
    }
}

/// The source of a program that clears 1 280 000 bytes at once.
const CLEARS: &str = r#"
    #include <stdlib.h>
    #include <string.h>
    __attribute__((noinline)) static void clear(char *bytes, long count) { memset(bytes, 1, count); }
    int main(void) {
        char *bytes = malloc(1280000);
        clear(bytes, 1280000);
        __asm__ volatile("" : : "r"(bytes) : "memory");
        return bytes[77] - 1;
    }
"#;

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_large_memset_has_more_instructions_on_i386_where_glibc_does_not_repeat_one() {
    let lab = Laboratory::new();
    lab.write("clears.c", CLEARS);
    let report = lab.compare_json(&["clears.c", "--abi", "x86-64,i386", "--metric", "instructions,branches"]);
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    for metric in ["instructions", "branches"] {
        assert_eq!(verdict(&report, "i386", metric)["verdict"], "higher", "{metric}: {report}");
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn counts_that_change_between_rounds_have_enough_rounds_for_an_interval() {
    let lab = Laboratory::new();
    lab.write(
        "restless.c",
        "#include <stdio.h>\n#include <time.h>\nint main(void) {\n    struct timespec now;\n    \
         clock_gettime(CLOCK_REALTIME, &now);\n    volatile unsigned n = 100000 + now.tv_nsec / 1000 % 100000;\n    \
         while (n) n--;\n    return puts(\"x\") < 0;\n}\n",
    );
    let report = lab.compare_json("restless.c --abi x86-64,i386 --metric instructions");
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'emulated'"), 6);
    let found = verdict(&report, "i386", "instructions");
    assert!(found["low"].as_f64() < found["high"].as_f64(), "{found}");
    assert_eq!(found["pairs"], 6);
    // Without other metrics there is one timed round, which shows that the variants run.
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 1);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_variant_that_cannot_be_emulated_has_a_reason_and_keeps_its_times() {
    let lab = Laboratory::new();
    let fork = "#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n    \
                if (!fork()) _exit(0);\n    wait(0);\n    return puts(\"x\") < 0;\n}\n";
    let left = "#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n    \
                if (!fork()) return pause();\n    return puts(\"x\") < 0;\n}\n";
    // A value that needs 80 bits: valgrind computes with 64 (its manual, "Limitations").
    let wide = "#include <stdio.h>\nint main(void) {\n    volatile long double x = 1, y = 3;\n    \
                return printf(\"%.25Lg\\n\", x / y) < 0;\n}\n";
    let itself = "#include <unistd.h>\n#include <stdio.h>\nint main(int count, char **arguments) {\n    \
                  if (count == 1) execl(\"/proc/self/exe\", arguments[0], \"again\", NULL);\n    \
                  return puts(\"x\") < 0;\n}\n";
    for (source, reason) in [
        (fork, "it forks without executing another program"),
        (left, "1 of its 2 processes left no counts: valgrind writes them when a process ends"),
        // Of valgrind's words the last, not a warning of cachegrind's before them.
        (itself, "does the program execute /proc/self/exe?"),
        (wide, "under valgrind its output is not what it is outside"),
    ] {
        lab.write("odd.c", source);
        let arguments = "odd.c --abi x86-64 --metric cpu,instructions --rounds 6";
        let printed = lab.compare(arguments);
        assert_eq!(printed.status, Some(0), "{printed:?}");
        let report = lab.widthwise("report --json").json();
        if has_counters(&report) {
            return skipped(HAS_COUNTERS);
        }
        let again = verdict(&report, "x86-64 control", "instructions");
        assert_eq!(again["verdict"], "no_data");
        let given = again["reason"].as_str().unwrap();
        assert!(given.contains(reason) && !given.contains("warning"), "{again}");
        assert!(unfolded(&printed.stdout).contains(reason), "{printed:?}");
        assert!(is_judged(verdict(&report, "x86-64 control", "cpu")));
        // Nothing was counted: no warning says how.
        assert!(!report["warnings"].to_string().contains("emulated processor"), "{}", report["warnings"]);
    }
}

#[test]
fn ctrl_c_ends_an_emulated_run_at_once_and_timed_runs_are_reported() {
    let lab = Laboratory::new();
    lab.program("steps.c");
    // A tenth of a second natively, and ten seconds emulated.
    let words =
        ["steps.c", "--abi", "x86-64", "--set-env", "STEPS=300000000", "--metric", "cpu,instructions"];
    let mut command = lab.comparing(&[&words[..], &["--rounds", "6"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let counted = |question: &str| {
        let folder = std::fs::canonicalize(lab.path(".widthwise/latest")).ok();
        let archive =
            folder.filter(|folder| folder.join("campaign.sqlite").exists()).map(|folder| open(&folder));
        archive.map_or(0, |archive| count(&archive, question))
    };
    until("an emulated round, or the end", || {
        counted("SELECT count(*) FROM round WHERE kind = 'emulated'") > 0
            || counted("SELECT count(*) FROM session WHERE stopped IS NOT NULL") > 0
    });
    signal(&child, libc::SIGINT);
    let printed = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(printed.status, Some(130), "{printed:?}");
    let report = lab.widthwise("report --json").json();
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    assert!(printed.stderr.contains("counting by emulation, for some "), "{printed:?}");
    assert!(printed.stderr.contains("interrupted; `widthwise compare --resume"), "{printed:?}");
    assert_eq!(lab.processes(), "");
    assert!(is_judged(verdict(&report, "x86-64 control", "cpu")));
    assert_eq!(verdict(&report, "x86-64 control", "instructions")["verdict"], "no_data");
}

#[test]
fn without_valgrind_the_counts_are_missing_and_the_package_is_named() {
    let lab = Laboratory::new();
    std::fs::create_dir(lab.path("empty")).unwrap();
    let compared = |metrics: &str| {
        let words = ["--binary", "a=/bin/true", "--metric", metrics, "--rounds", "6"];
        output_of(lab.comparing(&words).env("PATH", lab.path("empty")))
    };
    let printed = compared("all");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let report = lab.widthwise("report --json").json();
    if has_counters(&report) {
        return skipped(HAS_COUNTERS);
    }
    assert!(unfolded(&printed.stdout).contains("instructions could not be counted: "), "{printed:?}");
    assert!(unfolded(&printed.stdout).contains("valgrind would emulate it"), "{printed:?}");
    assert_eq!(verdict(&report, "a control", "instructions")["verdict"], "no_data");
    // A named counter is refused before anything is built.
    let refused = compared("cpu,instructions");
    refused.refuses(2, &["--metric: instructions cannot be counted here", "valgrind would emulate it"]);
}
