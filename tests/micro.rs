//! The micro suite and the metrics that programs report, from the command line.

use std::process::Command;

use serde_json::Value;

use crate::laboratory::{output_of, repository, unfolded, verdict, CommandOutput, Laboratory};

/// A figure of a variant in one metric.
fn typical(report: &Value, variant: &str, metric: &str, figure: &str) -> f64 {
    let variants = report["variants"].as_array().unwrap();
    let own = variants.iter().find(|own| own["name"] == variant).unwrap();
    let typical = own["typical"].as_array().unwrap().iter().find(|typical| typical["metric"] == metric);
    typical.unwrap_or_else(|| panic!("{variant} has no {metric}: {own}"))[figure].as_f64().unwrap()
}

#[test]
fn operations_of_known_cost_cost_that_in_every_abi() {
    operations_have_their_cost(&["gcc-12"]);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn operations_of_known_cost_cost_that_with_gcc_and_clang() {
    operations_have_their_cost(&["gcc-12", "clang-14"]);
}

fn operations_have_their_cost(compilers: &[&str]) {
    let lab = Laboratory::new();
    let operations = "micro:truth_8,truth_32,add4,mul4,mul8,addf,chase_256,chase_512,getpid";
    let report = lab.compare_json(&[
        operations,
        "--abi",
        "x86-64,x32,i386",
        "--compiler",
        &compilers.join(","),
        "--rounds",
        "3",
        "--metric",
        "instructions",
    ]);
    for abi in ["x86-64", "x32", "i386"] {
        for compiler in compilers {
            let variant = format!("{abi}/{compiler}");
            let count =
                |name: &str| typical(&report, &variant, &format!("micro.{name}.instructions"), "value");
            assert_eq!((count("truth_8"), count("truth_32")), (8.0, 32.0), "{variant}");
            assert_eq!(["add4", "mul4", "chase_256"].map(count), [1.0; 3], "{variant}");
            // On i386, too, no sum goes through memory: it stays in an x87 register. A few instructions move registers.
            assert!((1.0..1.1).contains(&count("addf")), "{variant}: {}", count("addf"));
            if abi == "i386" {
                assert!(
                    count("mul8") >= 3.0,
                    "{variant} multiplies 8 bytes in {} instructions",
                    count("mul8")
                );
            } else {
                assert_eq!(count("mul8"), 1.0, "{variant}");
            }
            assert!(count("getpid") > 3.0, "{variant}");
            let fastest = |name: &str| typical(&report, &variant, &format!("micro.{name}"), "min");
            let ratio = fastest("truth_32") / fastest("truth_8");
            assert!(
                (3.2..5.0).contains(&ratio),
                "{variant}: 32 multiplications take {ratio} times as long as 8"
            );
        }
    }
    let multiply = verdict(&report, "i386/gcc-12", "micro.mul8.instructions");
    assert_eq!(multiply["verdict"], "higher", "{multiply}");
    assert_eq!(multiply["source"], "emulated", "{multiply}");
    assert_eq!(verdict(&report, "x32/gcc-12", "micro.mul4.instructions")["verdict"], "no_difference");

    let page = std::fs::read_to_string(lab.campaign().join("report.html")).unwrap();
    assert!(
        page.contains("Cache steps") && page.contains("<polyline"),
        "the page has no picture of the steps"
    );
    // Each loop with all variants side by side: 32 multiplications in a row, in three ABIs.
    let loops = page.split("id=\"loops\"").nth(1).unwrap().split("</section>").next().unwrap();
    let of_truth = loops.split("<code>truth_32</code>").nth(1).unwrap().split("</details>").next().unwrap();
    assert_eq!(of_truth.matches("</code> × 32<br>").count(), 3 * compilers.len(), "{of_truth}");
    let again = lab.widthwise("report --html").stdout;
    assert!(again.contains("id=\"loops\""), "the report of the archive has no loops");
    let markdown = lab.widthwise("report --markdown").stdout;
    assert!(markdown.contains("| metric | **x86-64/gcc-12** |"), "{markdown}");
    let csv = lab.widthwise(&["report", "--csv"]).stdout;
    assert!(csv.contains("micro.getpid,nanoseconds,") && csv.contains(",program,"), "{csv}");
    let text = lab.widthwise(&["report"]).stdout;
    assert!(text.contains("mul8") && text.contains("instructions, emulated"), "{text}");
    let listing = lab.widthwise(&["explain", "x86-64/gcc-12", "x32/gcc-12", "--function", "micro_mul8"]);
    assert!(listing.stdout.contains("imul"), "{listing:?}");
}

/// The report on the emulated instructions of some operations in every ABI.
fn instructions(lab: &Laboratory, operations: &str) -> Value {
    let words = [operations, "--abi", "x86-64,x32,i386", "--rounds", "1", "--metric", "instructions"];
    lab.compare_json(&words)
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn instructions_have_neither_what_x32run_does_nor_the_repetitions_of_string_instructions() {
    let lab = Laboratory::new();
    let report = instructions(&lab, "micro:getpid,stat,memset_4k,memcpy_64k");
    let count = |abi: &str, name: &str| typical(&report, abi, &format!("micro.{name}.instructions"), "value");
    // As on a kernel with x32 (docs/micro.md).
    assert_eq!(["getpid", "stat"].map(|name| count("x86-64", name)), [16.0, 18.0]);
    assert_eq!(["getpid", "stat"].map(|name| count("x32", name)), [16.0, 18.0]);
    for name in ["memset_4k", "memcpy_64k"] {
        assert!(count("x86-64", name) < count("i386", name), "{name}: {report}");
        assert!(count("x32", name) < count("i386", name), "{name}: {report}");
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn calls_through_the_kernels_own_code_count_as_natively_or_not_at_all() {
    let lab = Laboratory::new();
    let report = instructions(&lab, "micro:getpid,getppid,read_1,clock_gettime");
    // By single steps of the processor: seven of them are __kernel_vsyscall's, which valgrind does not have.
    let count = |name: &str| typical(&report, "i386", &format!("micro.{name}.instructions"), "value");
    assert_eq!(["getpid", "read_1"].map(count), [34.0, 40.0], "{report}");
    let warnings = report["warnings"].to_string();
    for variant in ["x86-64", "x32", "i386"] {
        let warning =
            format!("{variant} has no micro.clock_gettime.instructions: it is a call through the vDSO");
        assert!(warnings.contains(&warning), "{warnings}");
    }
    assert_eq!(verdict(&report, "i386", "micro.clock_gettime.instructions")["verdict"], "no_data");
}

#[test]
fn a_wrong_request_for_the_suite_is_refused_with_its_fix() {
    let lab = Laboratory::new();
    for (arguments, error) in [
        ("micro:getpit", "did you mean \"getpid\"?"),
        ("micro:", "micro:all or micro:getpid,strcpy"),
        ("micro:all,getpid", "operation"),
        ("micro:getpid --run x", "has a run command of its own"),
        ("micro:getpid --concurrent", "wall-clock"),
        ("micro:getpid --reports x=count", "reports its own metrics"),
        (
            "micro:getpid -- --repeat 3",
            "\"--repeat\" is no option that compare takes for the micro suite; there is --repetitions N",
        ),
        ("micro:getpid -- --time 0", "--time of the micro suite needs a number from 1 to 1000"),
        ("micro:getpid -- strcpy", "operations follow micro:"),
        ("micro:getpid --abi ppc64", "the micro suite is not timed on an emulated machine"),
    ] {
        let output = lab.compare(arguments);
        assert_eq!(output.status, Some(2), "{arguments}: {output:?}");
        assert!(output.stderr.contains(error), "{arguments}: {output:?}");
    }
    let output = lab.widthwise(&["scale", "micro:getpid"]);
    assert!(output.stderr.contains("only `widthwise compare` measures the micro suite"), "{output:?}");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn an_operation_that_cannot_run_says_so_and_a_loop_without_its_operation_is_refused() {
    let lab = Laboratory::new();
    // A clock of a resolution of 4 ms, as a kernel without a clock source has.
    lab.write(
        "clock.c",
        "#include <time.h>\nint clock_getres(clockid_t clock, struct timespec *to) {\n\
         (void)clock; to->tv_sec = 0; to->tv_nsec = 4000000; return 0; }\n",
    );
    lab.gcc("-shared -fPIC clock.c -o clock.so");
    let preload = format!("env.coarse.LD_PRELOAD = \"{}/clock.so\"", lab.path("").display());
    let arguments = [
        "micro:mul8,getpid",
        "--abi",
        "x86-64",
        "--set",
        &preload,
        "--env",
        "default,coarse",
        "--flags",
        "-O2",
        // The function has another name: its loop is not found.
        "--flags",
        "-O2 -Dmicro_mul8=micro_other",
        "--rounds",
        "6",
    ];
    let output = lab.compare(&arguments);
    let text = unfolded(&output.stdout);
    assert!(text.contains("no stable clock: CLOCK_MONOTONIC has a resolution of 0.004"), "{output:?}");
    assert!(text.contains("there is no function micro_mul8"), "{output:?}");
    let report = lab.widthwise("report --json").json();
    let coarse = verdict(&report, "x86-64/-O2/coarse", "micro.getpid");
    assert_eq!(
        (&coarse["verdict"], &coarse["reason"]),
        (&Value::from("no_data"), &Value::from("the program reported no valid value"))
    );
}

/// Builds the suite by hand with these options, without the program that `exec` starts.
fn make(lab: &Laboratory, options: &str) {
    let makefile = repository().join("workloads/micro/Makefile");
    let mut make = Command::new("make");
    make.arg("-f").arg(makefile).arg(format!("CFLAGS={options}")).arg("micro").current_dir(lab.path(""));
    let printed = output_of(&mut make);
    assert_eq!(printed.status, Some(0), "{printed:?}");
}

/// What the suite prints with a library before all others.
fn preloaded(lab: &Laboratory, library: &str, words: &[&str]) -> CommandOutput {
    output_of(Command::new(lab.path("micro")).args(words).env("LD_PRELOAD", lab.path(library)))
}

#[test]
fn a_failing_operation_has_no_metric_and_the_others_follow_in_the_tables_order() {
    let lab = Laboratory::new();
    make(&lab, "-O2");
    // mmap fails, and so does the other process of an exchange, after some round trips.
    lab.write(
        "failing.c",
        "#include <errno.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
         static int first, echoes;\n\
         __attribute__((constructor)) static void begin(void) { first = getpid(); }\n\
         void *mmap64(void) { errno = ENOMEM; return (void *)-1; }\n\
         ssize_t write(int file, const void *from, size_t length) {\n\
         if (getpid() != first && ++echoes > 3) _exit(1);\n\
         return syscall(SYS_write, file, from, length); }\n",
    );
    lab.gcc("-shared -fPIC failing.c -o failing.so");
    let words = ["thread", "pipe", "page_fault_file", "mmap", "mul8", "getpid"];
    let printed = preloaded(&lab, "failing.so", &words);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let lines: Vec<&str> = printed.stdout.lines().collect();
    let [_, mul8, getpid, failing @ .., thread] = &lines[..] else { panic!("{printed:?}") };
    for (line, name) in [(mul8, "mul8"), (getpid, "getpid"), (thread, "thread")] {
        assert!(line.starts_with(&format!("metric micro.{name} ")), "{printed:?}");
    }
    assert_eq!(
        failing,
        [
            "no-metric micro.mmap mmap: Cannot allocate memory",
            "no-metric micro.page_fault_file mmap: Cannot allocate memory",
            "no-metric micro.pipe the other process ended",
        ]
    );
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_32_bit_program_has_an_end_where_no_number_of_iterations_is_long_enough() {
    let lab = Laboratory::new();
    make(&lab, "-O2 -m32 -idirafter /usr/include/x86_64-linux-gnu");
    // 1 ns from call to call, however many iterations are between. There are 16 powers of four in 32 bits.
    lab.write(
        "clock.c",
        "#include <time.h>\n#include <unistd.h>\n\
         int clock_gettime(clockid_t clock, struct timespec *to) {\n\
         (void)clock; static int calls;\n\
         if (++calls > 40) _exit(3);\n\
         to->tv_sec = 0; to->tv_nsec = calls; return 0; }\n",
    );
    lab.gcc("-m32 -idirafter /usr/include/x86_64-linux-gnu -shared -fPIC clock.c -o clock.so");
    // Only the empty loop is made: what `exec` starts is missing.
    let printed = preloaded(&lab, "clock.so", &["--repetitions", "1", "exec"]);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(printed.stdout, "micro 1\nno-metric micro.exec access: No such file or directory\n");
}

#[test]
fn metrics_that_a_program_reports_are_compared() {
    let lab = Laboratory::new();
    for (name, latency) in [("quick", "100"), ("slow", "150")] {
        let text = format!(
            "#!/bin/sh\necho result\necho metric latency {latency} nanoseconds\necho metric items 7 count\n"
        );
        lab.script(name, &text);
    }
    let report =
        lab.compare_json("./quick ./slow --reports latency=nanoseconds --reports items=count --rounds 6");
    let latency = verdict(&report, "slow", "latency");
    assert_eq!(
        (latency["ratio"].as_f64(), &latency["verdict"]),
        (Some(1.5), &Value::from("higher")),
        "{latency}"
    );
    assert_eq!(latency["source"], "program", "{latency}");
    assert_eq!(verdict(&report, "slow", "items")["verdict"], "no_difference");
    // The lines of the report are no output, or the outputs would differ.
    assert!(report["warnings"].as_array().unwrap().is_empty(), "{}", report["warnings"]);

    let output = lab.compare("./quick ./slow --reports latency=seconds");
    assert!(output.stderr.contains("unknown unit \"seconds\""), "{output:?}");
    let output = lab.compare("./quick ./slow --reports cpu=nanoseconds");
    assert!(output.stderr.contains("Widthwise itself has a metric of this name"), "{output:?}");
    let output = lab.compare("./quick ./slow --reports missing=count --rounds 6");
    assert!(output.stdout.contains("has no missing: its output has no line"), "{output:?}");
}
