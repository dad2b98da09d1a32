//! Tools on x32 programs: valgrind, gdb and perf work through the runtime.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::laboratory;
use crate::laboratory::{output_of, CommandOutput, Laboratory};

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu -g -O1";

/// Files, the heap, numbers, a child thread.
const C: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *twice(void *of) { *(long *)of *= 2; return of; }
int main(void) {
    char *text = malloc(100000);
    memset(text, 'x', 99999);
    text[99999] = 0;
    long number = (long)strlen(text) + 1;
    pthread_t other;
    if (pthread_create(&other, NULL, twice, &number) || pthread_join(other, NULL)) return 2;
    printf("%ld %d %.3f\n", number, (int)sizeof(void *), 1.5 / 3);
    free(text);
    return 3;
}
"#;

const CPLUSPLUS: &str = r#"
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
struct Box { long number; std::string name; };
__attribute__((noinline)) long opened(const Box &box) {
    if (box.number == 3) throw std::out_of_range(box.name);
    return box.number;
}
int main() {
    std::map<std::string, long> all;
    for (long i = 0; i < 1000; i++) all[std::to_string(i)] = i;
    Box box{3, "boxed"};
    std::thread other([&] {
        try { all["1"] += opened(box); } catch (const std::out_of_range &error) { all["1"] += 200; }
    });
    other.join();
    std::cout << all["1"] << " " << all.size() << std::endl;
    return 3;
}
"#;

/// A laboratory with the runtime in it.
fn lab() -> Laboratory {
    let lab = Laboratory::new();
    widthwise_x32run::place_in(&lab.path("")).unwrap();
    lab
}

fn runtime(lab: &Laboratory) -> PathBuf {
    lab.path(&format!("x32run-{}", env!("CARGO_PKG_VERSION")))
}

fn build(lab: &Laboratory, name: &str, source: &str, options: &str) {
    let (file, driver) = if source.contains("<iostream>") { ("x.cc", "g++") } else { ("x.c", "gcc") };
    lab.write(file, source);
    let words = format!("{X32} {options} {file} -o {name} -pthread");
    let built = output_of(Command::new(driver).args(words.split_whitespace()).current_dir(lab.path("")));
    assert_eq!(built.status, Some(0), "{built:?}");
}

/// Under valgrind, at the addresses without randomisation.
fn valgrind(lab: &Laboratory, options: &str, program: &[&str]) -> Command {
    let mut command = Command::new("setarch");
    command.args(["-R", "valgrind", "--command-line-only=yes"]).args(options.split_whitespace());
    command.arg(runtime(lab)).args(program).current_dir(lab.path("")).stdin(Stdio::null());
    command
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn programs_behave_the_same_under_valgrind() {
    let lab = lab();
    for (name, source, answer) in [("c", C, "200000 4 0.500\n"), ("cplusplus", CPLUSPLUS, "201 1000\n")] {
        for options in ["-static", ""] {
            build(&lab, name, source, options);
            for tool in
                ["cachegrind --cachegrind-out-file=out", "callgrind --callgrind-out-file=out", "memcheck"]
            {
                let printed =
                    output_of(&mut valgrind(&lab, &format!("-q --tool={tool}"), &[&format!("./{name}")]));
                assert_eq!(
                    (printed.stdout.as_str(), printed.status),
                    (answer, Some(3)),
                    "{name} {options} {tool}: {printed:?}"
                );
            }
        }
    }
}

#[test]
fn callgrind_counts_a_loop_exactly() {
    let lab = lab();
    lab.program("steps.c");
    for options in ["-static", "-static-pie", "", "-no-pie"] {
        lab.gcc(&format!("{X32} {options} steps.c -o steps"));
        let counted = |steps: &str| -> u64 {
            let mut command = Command::new("setarch");
            command.args(["-R", "valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=out"]);
            let printed = output_of(
                command.arg(runtime(&lab)).arg("./steps").env("STEPS", steps).current_dir(lab.path("")),
            );
            assert_eq!(
                (printed.stdout.as_str(), printed.status),
                ("done\n", Some(0)),
                "{options}: {printed:?}"
            );
            let out = lab.read("out");
            let sum = out.lines().find_map(|line| line.strip_prefix("summary: ")).unwrap();
            sum.trim().parse().unwrap()
        };
        assert_eq!(counted("2000000") - counted("1000000"), 2_000_000, "{options}");
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn memcheck_finds_stack_errors_and_names_their_addresses() {
    const WRONG: &str = r#"
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) static int *gone(void) {
    int here[64];
    memset(here, 1, sizeof here);
    int *volatile kept = here;
    return kept;
}
__attribute__((noinline)) static int read_what_is_gone(int *here) { return here[3]; }
__attribute__((noinline)) static int branch_on_nothing(volatile int *here) { if (here[5] == 3) puts("three"); return 0; }
int main(int count, char **words) {
    volatile int unset[8];
    if (count == 1) return 0;
    return words[1][0] == 'r' ? read_what_is_gone(gone()) == 0 : branch_on_nothing(unset);
}
"#;
    let lab = lab();
    build(&lab, "wrong", WRONG, "-w -no-pie -O0");
    let suppressions = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../runtime/x32/valgrind.supp");
    let options = format!("-q --error-exitcode=9 --suppressions={}", suppressions.display());
    // With some of these lengths, such as 64, the loader's strlen reads uninitialised bytes.
    for length in [1, 32, 64, 128] {
        let path = format!("/{}", "x".repeat(length));
        let right = output_of(valgrind(&lab, &options, &["./wrong"]).env("LD_LIBRARY_PATH", path));
        assert_eq!(right.status, Some(0), "{length}: {right:?}");
    }
    for (word, error, place) in [
        ("r", "Invalid read of size 4", "read_what_is_gone"),
        ("b", "Conditional jump or move depends on uninitialised value", "branch_on_nothing"),
    ] {
        let printed = output_of(&mut valgrind(&lab, &options, &["./wrong", word]));
        assert_eq!(printed.status, Some(9), "{printed:?}");
        let mut lines = printed.stderr.lines().skip_while(|line| !line.contains(error));
        assert!(lines.next().is_some(), "{printed:?}");
        // valgrind reads no symbols of a 32-bit file, but prints the address.
        let at = lines.next().and_then(|line| line.split_once("at ")?.1.split_once(':')).unwrap().0;
        let named = laboratory::output_of(
            Command::new("addr2line").args(["-f", "-e", "wrong", at]).current_dir(lab.path("")),
        );
        assert_eq!(named.stdout.lines().next(), Some(place), "{at}: {named:?} {printed:?}");
    }
}

/// In a stub, in the runtime and in a loop, with handlers that interrupt each other, are left by a jump, and have a stack of their own.
#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn signals_are_delivered_under_valgrind_and_cause_no_errors() {
    let lab = lab();
    lab.program("handled_signals.c");
    lab.gcc(&format!("{X32} -O1 -pthread handled_signals.c -o signals"));
    let suppressions = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../runtime/x32/valgrind.supp");
    let memcheck = format!("memcheck --error-exitcode=9 --suppressions={}", suppressions.display());
    let answer =
        "interrupted 40, nested 20, wrong 0\nboth 42\nleft 20\non its stack 52, left 25\noverflowed 2\n\
                  deep 15\nregisters kept\nthreads 160\n";
    for tool in
        ["callgrind --callgrind-out-file=out", "cachegrind --cachegrind-out-file=out", memcheck.as_str()]
    {
        let printed = output_of(&mut valgrind(&lab, &format!("-q --tool={tool}"), &["./signals"]));
        assert_eq!((printed.stdout.as_str(), printed.status), (answer, Some(3)), "{tool}: {printed:?}");
    }
}

/// The output of gdb for these commands.
fn gdb(lab: &Laboratory, program: &str, lines: &[&str]) -> CommandOutput {
    let mut command = lab.command(&format!("exec --gdb {program}"));
    command.env("HOME", lab.path("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text = lines.join("\n") + "\n";
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let printed = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(printed.status, Some(0), "{printed:?}");
    printed
}

/// The functions of a backtrace, the innermost first.
fn functions(printed: &CommandOutput) -> Vec<String> {
    let frames = printed.stdout.lines().map(|line| line.trim_start_matches("(gdb) "));
    let frames = frames.filter(|line| line.starts_with('#')).map(|line| {
        let rest = line.split_once(' ').unwrap().1.trim_start();
        let rest = rest.split_once(" in ").map_or(rest, |(_, rest)| rest);
        rest.split(' ').next().unwrap().to_owned()
    });
    frames.collect()
}

#[test]
fn gdb_stops_in_main_with_arguments_and_lines_in_static_and_dynamic_programs() {
    let lab = lab();
    for options in ["-static", "-static-pie", "", "-no-pie"] {
        build(&lab, "c", C, &format!("{options} -O0"));
        // The second run has other addresses.
        for random in ["on", "off"] {
            let setting = format!("set disable-randomization {random}");
            let printed = gdb(
                &lab,
                "./c 'a word'",
                &[
                    &setting,
                    "break main",
                    "run",
                    "kill",
                    "run",
                    "backtrace",
                    "next",
                    "next",
                    "print text[99998]",
                    "continue",
                ],
            );
            assert_eq!(functions(&printed), ["main"], "{options}: {printed:?}");
            assert_eq!(
                printed.stdout.matches("Breakpoint 1, main () at x.c:").count(),
                2,
                "{options}: {printed:?}"
            );
            // gdb's own scripts report no error.
            assert!(
                !printed.stderr.contains("Python") && !printed.stderr.contains("declined"),
                "{options}: {printed:?}"
            );
            assert!(printed.stdout.contains("$1 = 120 'x'"), "{options}: {printed:?}");
            assert!(printed.stdout.contains("exited with code 03"), "{options}: {printed:?}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn gdb_unwinds_through_libraries_threads_and_system_calls() {
    let lab = lab();
    build(&lab, "cplusplus", CPLUSPLUS, "");
    let printed = gdb(
        &lab,
        "./cplusplus",
        &["break opened", "run", "print box.name", "catch throw", "continue", "backtrace", "continue"],
    );
    let frames = functions(&printed);
    assert!(frames.starts_with(&["__cxa_throw".to_owned(), "opened".to_owned()]), "{printed:?}");
    assert!(printed.stdout.contains("\"boxed\""), "{printed:?}");
    assert!(printed.stdout.contains("exited with code 03"), "{printed:?}");

    const READS: &str = r#"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static int pair[2];
__attribute__((noinline)) static long forwarded(char *to) { return read(pair[0], to, 1) + 1; }
__attribute__((noinline)) static long translated(char *to) {
    struct iovec part = {to, 1};
    return readv(pair[0], &part, 1) + 1;
}
__attribute__((noinline)) static long by_number(void) { return syscall(SYS_getppid) + syscall(SYS_getpgid, 0) + 1; }
int main(void) {
    char to;
    if (pipe(pair)) return 1;
    for (int i = 0; i < 3; i++)
        if (by_number() < 1 || write(pair[1], "xy", 2) != 2 || forwarded(&to) != 2 || translated(&to) != 2) return 1;
    return 0;
}
"#;
    build(&lab, "reads", READS, "");
    for (call, function, place) in
        [("read", "read", "forwarded"), ("readv", "readv", "translated"), ("getpgid", "syscall", "by_number")]
    {
        let catch = format!("catch syscall {call}");
        // Each call is caught twice, before and after: the third is that of a site that has been rewritten.
        let printed = gdb(
            &lab,
            "./reads",
            &[
                "break main",
                "run",
                &catch,
                "continue",
                "continue",
                "continue",
                "backtrace",
                "frame function main",
                "print i",
            ],
        );
        let frames = functions(&printed);
        let want = [function, place, "main"];
        assert!(frames.windows(3).any(|three| three == want), "{call}: {frames:?} {printed:?}");
        assert!(printed.stdout.contains("$1 = 1"), "{printed:?}");
    }
}

#[test]
fn without_gdb_the_package_is_named() {
    let lab = lab();
    build(&lab, "c", C, "-static");
    std::fs::create_dir(lab.path("empty")).unwrap();
    let printed = output_of(lab.command("exec --gdb ./c").env("PATH", lab.path("empty")));
    printed.refuses(2, &["gdb", "apt-get install gdb"]);
}

#[test]
fn text_stays_mapped_from_its_file_after_calls_were_rewritten() {
    const MAPS: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char line[512];
    for (int i = 0; i < 3; i++)
        if (write(1, "", 0) || getppid() <= 0) return 1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx", &from, &to) != 2 || from >> 32 || !strstr(line, " r-xp ")) continue;
        unsigned long long code[] = {(unsigned)&main, (unsigned)&write, (unsigned)&getppid};
        for (int i = 0; i < 3; i++)
            if (from <= code[i] && code[i] < to) printf("%d %s", i, line);
    }
    return 0;
}
"#;
    let lab = lab();
    for options in ["-static", "", "-no-pie"] {
        build(&lab, "maps", MAPS, options);
        let printed = lab.widthwise("exec ./maps");
        assert_eq!(printed.status, Some(0), "{printed:?}");
        let found: BTreeSet<&str> = printed.stdout.lines().map(|line| &line[..1]).collect();
        assert_eq!(found, BTreeSet::from(["0", "1", "2"]), "{options}: {printed:?}");
        for line in printed.stdout.lines() {
            let file = if options == "-static" || line.starts_with('0') { "/maps" } else { "/libc.so.6" };
            assert!(line.ends_with(file), "{options}: {line}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn perf_finds_the_symbols_of_x32_code() {
    const BUSY: &str = r#"
#include <unistd.h>
__attribute__((noinline)) static unsigned long long busy_here(unsigned steps) {
    unsigned long long x = 1;
    while (steps-- > 0) { x = x * 6364136223846793005u + 1; __asm__ volatile("" : "+r"(x)); }
    return x;
}
int main(void) {
    for (int i = 0; i < 3; i++) if (write(1, "", 0)) return 1;
    return busy_here(200000000) == 0;
}
"#;
    let lab = lab();
    let perf = |words: &str| {
        let mut command = Command::new("perf");
        command.args(words.split_whitespace()).current_dir(lab.path("")).stdin(Stdio::null());
        command.output().map(CommandOutput::of)
    };
    match perf("record -q -e cpu-clock -o may true") {
        Ok(printed) if printed.status == Some(0) => {}
        // A kernel may forbid perf to this user, and a container to every user.
        refused => return eprintln!("perf records nothing here: {refused:?}"),
    }
    for options in ["-static", ""] {
        build(&lab, "busy", BUSY, options);
        let recorded =
            perf(&format!("record -q -e cpu-clock -o data {} ./busy", runtime(&lab).display())).unwrap();
        assert_eq!(recorded.status, Some(0), "{recorded:?}");
        let reported = perf("report -i data --stdio -F overhead,dso,sym").unwrap();
        let line = reported
            .stdout
            .lines()
            .find(|line| line.contains("busy_here"))
            .unwrap_or_else(|| panic!("{reported:?}"));
        let mut words = line.split_whitespace();
        let share: f64 = words.next().unwrap().trim_end_matches('%').parse().unwrap();
        assert_eq!(words.next(), Some("busy"), "{line}");
        assert!(share > 50.0, "{line}");
        let counted =
            perf(&format!("stat -e task-clock -x, -o counts {} ./busy", runtime(&lab).display())).unwrap();
        assert_eq!(counted.status, Some(0), "{counted:?}");
        assert!(lab.read("counts").contains("msec,task-clock"), "{}", lab.read("counts"));
    }
}

#[test]
fn a_crash_shows_the_faulting_instruction_and_its_address() {
    let lab = lab();
    let source = "int main(void) { *(volatile int *)0x10 = 1; return 0; }\n";
    build(&lab, "crash", source, "-static");
    // The second stop is the signal that ends the program, as in a core dump.
    let shown = [
        "run",
        "continue",
        "print $_siginfo.si_code",
        "print $_siginfo._sifields._sigfault.si_addr == 0x10",
        "backtrace",
        "continue",
    ];
    let printed = gdb(&lab, "./crash", &shown);
    assert_eq!(printed.stdout.matches("Program received signal SIGSEGV").count(), 2, "{printed:?}");
    assert_eq!(functions(&printed), ["main"], "{printed:?}");
    assert!(printed.stdout.contains("$1 = 1\n") && printed.stdout.contains("$2 = 1\n"), "{printed:?}");
    assert!(printed.stdout.contains("Program terminated with signal SIGSEGV"), "{printed:?}");
}

/// Code without a name counts for the program under valgrind, which names code by functions that have a size.
#[test]
fn every_function_of_the_runtime_has_a_size() {
    let lab = lab();
    let listed = output_of(Command::new("nm").args(["--numeric-sort", "--print-size"]).arg(runtime(&lab)));
    assert_eq!(listed.status, Some(0), "{listed:?}");
    let mut end = None;
    let mut functions = 0;
    for words in listed.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        match words[..] {
            // From here on there is only data, and what is copied elsewhere.
            [.., "x32_costs_program"] => break,
            [_, "t" | "T", "x32_entry_end" | "x32_stubs_end"] => {}
            [_, "t" | "T", name] if end.is_some() => panic!("{name} has no size"),
            [start, size, "t" | "T", name] => {
                let gap = end.map_or(0, |end| number(start).saturating_sub(end));
                assert!(gap < 64, "{gap} bytes without a name before {name}");
                end = Some(number(start) + number(size));
                functions += 1;
            }
            _ => {}
        }
    }
    assert!(functions > 100, "{functions}");
}
