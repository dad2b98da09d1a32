//! `compare --functions` and `explain --time`: counts by function of programs whose counts are known.

use crate::laboratory::{output_of, sums, unfolded, Laboratory};
use crate::schema::{complaints, EXPLANATION};
use serde_json::Value;

fn explained(lab: &Laboratory, a: &str, b: &str) -> Value {
    let output = lab.widthwise(&["explain", "--time", "--json", a, b]);
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()
}

/// The row of a function.
fn row<'a>(document: &'a Value, function: &str) -> &'a Value {
    let rows = document["sections"]["time"]["rows"].as_array().unwrap();
    let is_it = |row: &&Value| row["name"].as_str().unwrap().split(' ').next() == Some(function);
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no {function} in {document:#}"))
}

/// The counts of all rows add up to each side's, and the parts to each difference.
fn counts_and_parts_sum(document: &Value) {
    let time = &document["sections"]["time"];
    for side in ["baseline", "variant"] {
        let is_withheld = time[side]["branch_misses"].is_null();
        for count in ["instructions", "branch_misses"].into_iter().take(2 - usize::from(is_withheld)) {
            let rows = time["rows"].as_array().unwrap().iter();
            let sum: u64 = rows.filter_map(|row| row[side][count].as_u64()).sum();
            assert_eq!(time[side][count], sum, "{side} {count}");
        }
    }
    sums(document);
    // Both recordings count the same, so that nothing of the instructions is left.
    assert_eq!(document["unexplained"][0]["metric"], "instructions");
    assert_eq!(document["unexplained"][0]["amount"], 0, "{:#}", document["unexplained"]);
}

#[test]
fn functions_of_known_cost_have_that_cost_in_every_abi() {
    let lab = Laboratory::new();
    lab.program("functions.c");
    let output =
        lab.compare(&["functions.c", "--abi", "x86-64,x32,i386", "--flags", "-O1 -g", "--rounds", "6"]);
    assert_eq!(output.status, Some(0), "{output:?}");
    let [native, x32, i386] = ["x86-64/-O1 -g", "x32/-O1 -g", "i386/-O1 -g"];
    // A campaign without counts says how to add them.
    let refused = lab.widthwise(&["explain", "--time", native, x32]);
    refused.refuses(2, &["were not counted", "--functions counts them"]);
    let resumed = lab.widthwise("compare --resume .widthwise/latest --functions");
    assert_eq!(resumed.status, Some(0), "{resumed:?}");
    for other in [x32, i386] {
        let document = explained(&lab, native, other);
        assert_eq!(complaints(EXPLANATION, &document), [""; 0], "{other}");
        counts_and_parts_sum(&document);
        for side in ["baseline", "variant"] {
            let count = |function, count: &str| row(&document, function)[side][count].as_u64().unwrap();
            // Once by the program, once by a forked child, once by the program that another child executes.
            assert_eq!(count("spin", "instructions"), 3 * 2_000_002, "{other} {side}");
            assert_eq!(count("touch", "page_faults"), 300, "{other} {side}");
            // The x32 runtime may have changed as many.
            if other == x32 {
                continue;
            }
            let misses = count("guess", "branch_misses");
            assert!((48_000..52_000).contains(&misses), "{other} {side}: {misses}");
            assert!(count("touch", "branch_misses") < 100, "{other} {side}");
        }
        let source = lab.read("functions.c");
        for (function, head) in [("touch", "void touch("), ("guess", "unsigned guess(")] {
            let line = source.lines().position(|line| line.contains(head)).unwrap() + 1;
            let place = row(&document, function)["where"].as_str().unwrap();
            assert!(place.ends_with(&format!("functions.c:{line}")), "{place}");
        }
        // Assembly without line information has no line.
        assert!(row(&document, "spin")["where"].is_null());
    }
    // On i386 nothing disturbs the caches: each page is one line.
    let document = explained(&lab, native, i386);
    for side in ["baseline", "variant"] {
        assert_eq!(row(&document, "touch")[side]["last_level_misses"], 300, "{side}");
    }
    // The x32 runtime's own work is in no row, and misses that it may have changed are withheld.
    let document = explained(&lab, native, x32);
    assert!(document["sections"]["time"]["tools"]["variant"].as_u64() > Some(1_000_000), "{document:#}");
    assert!(row(&document, "touch")["variant"]["last_level_misses"].is_null());
    assert!(row(&document, "guess")["variant"]["branch_misses"].is_null());
    // Six rounds of milliseconds: whatever the verdict is, the sentence belongs to it.
    let text = unfolded(&lab.widthwise(&["explain", "--time", native, i386]).stdout);
    let differs = explained(&lab, native, i386)["sections"]["time"]["cpu_time"]["differs"].as_bool().unwrap();
    assert_eq!(text.contains("explain nothing of it yet"), !differs, "{text}");
    assert!(text.contains("emulated processor (valgrind)"), "{text}");
    // The whole explanation has the section, too.
    let whole = lab.widthwise(&["explain", "--json", native, i386]).json();
    assert_eq!(complaints(EXPLANATION, &whole), [""; 0]);
    assert_eq!(row(&whole, "spin")["baseline"]["instructions"], 6_000_006);

    // Damaged files are named, and nothing is stated about their counts.
    let folder = std::fs::read_dir(lab.campaign().join("functions")).unwrap();
    let folder =
        folder.map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().contains("i386"));
    let folder = folder.unwrap();
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|path| path.to_string_lossy().ends_with(".callgrind.zst")).min().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    lab.widthwise(&["explain", "--time", native, i386]).refuses(2, &[name]);
    let whole = lab.widthwise(&["explain", "--json", native, i386]).json();
    assert!(whole["sections"]["time"].is_null());
    assert!(whole["remarks"].to_string().contains(name), "{}", whole["remarks"]);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_repeated_string_instruction_counts_once_in_its_function() {
    let lab = Laboratory::new();
    let text = r#"
        static char bytes[100000];
        __attribute__((noinline)) void clear(unsigned long count) {
            void *to = bytes;
            __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
        }
        int main(void) {
            for (int i = 0; i < 1000; i++) {
                clear(sizeof bytes / 100);
            }
            return 0;
        }
    "#;
    lab.write("clear.c", text);
    let arguments =
        ["clear.c", "--abi", "x86-64,x32,i386", "--flags", "-O1 -g", "--rounds", "1", "--functions"];
    let output = lab.compare(&arguments);
    assert_eq!(output.status, Some(0), "{output:?}");
    for other in ["x32", "i386"] {
        let document = explained(&lab, "x86-64/-O1 -g", &format!("{other}/-O1 -g"));
        counts_and_parts_sum(&document);
        for side in ["baseline", "variant"] {
            // With those that load its operands and return. valgrind counts 1001 instead of the one.
            let instructions = row(&document, "clear")[side]["instructions"].as_u64().unwrap();
            assert!((3000..12_000).contains(&instructions), "{other} {side}: {instructions}");
        }
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn programs_that_cannot_be_counted_have_a_reason() {
    let lab = Laboratory::new();
    // It forks by a system call, which valgrind does not see as a fork.
    let fork = "#include <signal.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n    \
                if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) _exit(0);\n    return wait(0) < 0;\n}\n";
    // By a system call, which callgrind does not see as the end of a program.
    let replaced = "#include <sys/syscall.h>\n#include <unistd.h>\nint main(int count, char **words) {\n    \
                    char *again[] = {words[0], \"again\", 0};\n    \
                    return count > 1 ? 0 : syscall(SYS_execve, words[0], again, 0);\n}\n";
    let left = "#include <unistd.h>\nint main(void) {\n    if (!fork()) return pause();\n    return 0;\n}\n";
    // valgrind preloads a library.
    let fails = "#include <stdlib.h>\nint main(void) {\n    return getenv(\"LD_PRELOAD\") ? 3 : 0;\n}\n";
    for (source, reason) in [
        (fork, "valgrind did not see a fork"),
        (replaced, "executes another program in its place (execve)"),
        (left, "1 of its 2 processes left no counts"),
        (fails, "under valgrind it ended with exit status 3"),
    ] {
        lab.write("odd.c", source);
        lab.gcc("-O1 odd.c -o a");
        lab.gcc("-O2 odd.c -o b");
        let output = lab.compare("./a ./b --rounds 1 --functions");
        assert_eq!(output.status, Some(0), "{output:?}");
        lab.widthwise("explain --time").refuses(2, &[reason]);
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn what_a_process_did_before_it_executes_another_program_in_its_place_is_counted() {
    let lab = Laboratory::new();
    // A child does so twice, the second time with a fork: parts of callgrind's counts have the same numbers in every program.
    let text = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        __attribute__((noinline)) static void work(unsigned steps) {
            __asm__ volatile("1: dec %0; jnz 1b" : "+r"(steps));
        }
        static void forked(char **words, char *next) {
            if (fork() == 0) {
                work(2000);
                if (next) execl(words[0], words[0], next, (char *)0);
                _exit(0);
            }
            wait(0);
        }
        int main(int count, char **words) {
            if (count == 1) {
                work(STEPS);
                forked(words, "2");
                execl(words[0], words[0], "3", (char *)0);
            } else if (words[1][0] == '2') {
                forked(words, 0);
                work(10000);
                execl(words[0], words[0], "3", (char *)0);
            }
            work(1000);
            return 0;
        }
    "#;
    lab.write("replaced.c", text);
    lab.gcc("-O1 -DSTEPS=100000 replaced.c -o a");
    lab.gcc("-O1 -DSTEPS=500000 -m32 -idirafter /usr/include/x86_64-linux-gnu replaced.c -o b");
    // valgrind's logs of x32 processes are files, which the next program empties.
    lab.gcc("-O1 -DSTEPS=100000 -mx32 -idirafter /usr/include/x86_64-linux-gnu replaced.c -o x");
    let output = lab.compare("./a ./b ./x --rounds 1 --functions");
    assert_eq!(output.status, Some(0), "{output:?}");
    let document = lab.widthwise("explain --time --json").json();
    for (side, steps) in [("baseline", 100_000), ("variant", 500_000)] {
        let instructions = row(&document, "work")[side]["instructions"].as_u64().unwrap();
        let expected = 2 * (steps + 2_000 + 2_000 + 10_000 + 1_000 + 1_000);
        assert!((expected..expected + 30).contains(&instructions), "{side}: {instructions}");
    }
    let refused = "x: its functions could not be counted: a process of it executes another program in its place (execve)";
    assert!(unfolded(&output.stdout).contains(refused), "{output:?}");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_program_that_forks_after_a_thread_has_ended_has_its_childs_counts() {
    let lab = Laboratory::new();
    let text = r#"
        #include <pthread.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *nothing(void *argument) { return argument; }
        __attribute__((noinline)) static void work(unsigned steps) {
            __asm__ volatile("1: dec %0; jnz 1b" : "+r"(steps));
        }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, nothing, 0);
            pthread_join(thread, 0);
            if (fork() == 0) {
                work(100000);
                _exit(0);
            }
            return wait(0) < 0;
        }
    "#;
    lab.write("forks.c", text);
    let arguments =
        ["forks.c", "--abi", "x86-64,i386", "--flags", "-O1 -g -pthread", "--rounds", "1", "--functions"];
    let output = lab.compare(&arguments);
    assert_eq!(output.status, Some(0), "{output:?}");
    let document = explained(&lab, "x86-64/-O1 -g -pthread", "i386/-O1 -g -pthread");
    for side in ["baseline", "variant"] {
        let instructions = row(&document, "work")[side]["instructions"].as_u64().unwrap();
        assert!((200_000..200_010).contains(&instructions), "{side}: {instructions}");
    }
}

#[test]
fn where_valgrind_itself_fails_its_own_words_are_the_reason() {
    let lab = Laboratory::new();
    lab.write("steps.c", "int main(void) { return 0; }\n");
    lab.gcc("-O1 steps.c -o a");
    lab.gcc("-O2 steps.c -o b");
    let assertion = "Callgrind: threads.c:247 (post_signal): Assertion 'a == b' failed.";
    let preload = "ERROR: ld.so: object 'core.so' from LD_PRELOAD cannot be preloaded (wrong ELF class: ELFCLASS64): ignored.";
    std::fs::create_dir_all(lab.path("tools")).unwrap();
    lab.script(
        "tools/valgrind",
        &format!(
            "#!/bin/sh\ncase $1 in --version) echo valgrind-3.19.0; exit;; esac\n\
             cat >&2 <<'END'\nBB# 4\n{assertion}\nhost stacktrace:\n{preload}\nEND\nexit 1\n"
        ),
    );
    let path = format!("{}:{}", lab.path("tools").display(), std::env::var("PATH").unwrap());
    let output = output_of(lab.command("compare ./a ./b --rounds 1 --functions").env("PATH", &path));
    assert_eq!(output.status, Some(0), "{output:?}");
    lab.widthwise("explain --time").refuses(2, &[assertion]);

    // clang's DWARF 5 is not valgrind 3.19's.
    let words = "debuginfo reader: Possibly corrupted debuginfo file.";
    lab.script(
        "tools/valgrind",
        &format!(
            "#!/bin/sh\ncase $1 in --version) echo valgrind-3.19.0; exit;; esac\n\
             cat >&2 <<'END'\n==7== Valgrind: {words}\n==7== Valgrind: I can't recover.  Giving up.  Sorry.\n==7== \nEND\nexit 1\n"
        ),
    );
    let output = output_of(lab.command("compare ./a ./b --rounds 1 --functions").env("PATH", &path));
    assert_eq!(output.status, Some(0), "{output:?}");
    lab.widthwise("explain --time").refuses(2, &[words, "-gdwarf-4"]);
}

/// A local function of each of two source files: `work` takes two instructions a step, `touch` a page fault a page.
const LOCALS: &str = r#"
static char pages[PAGES << 12];
static __attribute__((noinline)) void work(unsigned steps) {
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(steps));
}
static __attribute__((noinline)) void touch(volatile char *at) {
    for (int page = 0; page < PAGES; page++) at[page << 12] = 1;
}
"#;

/// The functions of ./a64 and of another program, as JSON.
fn counted(lab: &Laboratory, other: &str) -> Value {
    let output = lab.compare(&["./a64", other, "--rounds", "1", "--functions"]);
    assert_eq!(output.status, Some(0), "{output:?}");
    let document = lab.widthwise("explain --time --json").json();
    assert_eq!(complaints(EXPLANATION, &document), [""; 0], "{other}");
    counts_and_parts_sum(&document);
    document
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn local_functions_of_one_name_are_rows_of_their_files_in_every_abi() {
    let lab = Laboratory::new();
    let main = "int main(void) { work(100000 * TIMES); touch(pages); other(); return 0; }\n";
    lab.write("first.c", &format!("void other(void);\n{}{main}", LOCALS.replace("PAGES", "30")));
    let second = LOCALS.replace("PAGES", "50") + "void other(void) { work(1000); touch(pages); }\n";
    lab.write("second.c", &second);
    lab.gcc("-O1 -g -DTIMES=1 first.c second.c -o a64");
    lab.gcc("-O1 -g -DTIMES=3 -m32 -idirafter /usr/include/x86_64-linux-gnu first.c second.c -o b32");
    lab.gcc("-O1 -g -DTIMES=3 -mx32 -idirafter /usr/include/x86_64-linux-gnu first.c second.c -o bx32");
    for other in ["./b32", "./bx32"] {
        let document = counted(&lab, other);
        let rows = document["sections"]["time"]["rows"].as_array().unwrap();
        let named = |name: &str| {
            let is_it = |row: &&Value| row["name"].as_str().unwrap().split(' ').next() == Some(name);
            rows.iter().filter(is_it).collect::<Vec<_>>()
        };
        let of = |name: &str, file: &str, count: &str| {
            let is_it = |row: &&Value| row["where"].as_str().is_some_and(|place| place.contains(file));
            let row = named(name).into_iter().find(is_it);
            let row = row.unwrap_or_else(|| panic!("{other}: no {name} of {file}: {rows:#?}"));
            ["baseline", "variant"].map(|side| row[side][count].as_u64().unwrap())
        };
        assert_eq!([named("work").len(), named("touch").len()], [2, 2], "{other}: {rows:#?}");
        for (file, instructions) in [("first.c", [200_000, 600_000]), ("second.c", [2_000, 2_000])] {
            let found = of("work", file, "instructions").map(|count| count / 100 * 100);
            assert_eq!(found, instructions, "{other} {file}");
        }
        if document["sections"]["time"]["page_faults_missing"].is_null() {
            for (file, pages) in [("first.c", 30), ("second.c", 50)] {
                // Another variable may be in the first page, and another function in the code's.
                let faults = of("touch", file, "page_faults");
                let is_near = |faults: &u64| (pages - 1..=pages + 1).contains(faults);
                assert!(faults.iter().all(is_near), "{other} {file}: {faults:?}");
            }
        }
    }
}

/// Two source files with a local function of one name, which a link-time optimiser clones.
const FIRST: &str = "#include <stdio.h>\nvoid second(unsigned);\nKIND void work(unsigned n) { STEPS(n * 4); }\n\
                     void first(unsigned n) { work(n); }\nint main(void) { first(100000); second(100000); return 0; }\n";
const SECOND: &str = "\n\n\n#include <stdlib.h>\nKIND void work(unsigned n) { STEPS(n * 5); }\nvoid second(unsigned n) { work(n); }\n";

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn local_functions_of_one_name_have_their_own_counts_whichever_of_them_valgrind_takes_them_for() {
    let lab = Laboratory::new();
    let steps = "#define STEPS(n) do { unsigned x = (n); __asm__ volatile(\"1: dec %0; jnz 1b\" : \"+r\"(x)); } while (0)\n";
    let local = "#define KIND static __attribute__((noinline))\n";
    let inlined = "#define KIND static inline __attribute__((always_inline))\n";
    lab.write("first.c", &format!("{steps}{local}{FIRST}"));
    lab.write("second.c", &format!("{steps}{local}{SECOND}"));
    lab.write("inlined/second.c", &format!("{steps}{inlined}{SECOND}"));
    lab.gcc("-O2 -g first.c second.c -o a64");
    lab.gcc("-O1 -g first.c second.c -o less");
    lab.gcc("-Os -g first.c second.c -o small");
    lab.gcc("-O2 -g -flto first.c second.c -o linked");
    lab.gcc("-O2 first.c second.c -o plain");
    lab.gcc("-O2 -g first.c inlined/second.c -o inline");
    let (of_first, of_second) = (800_000, 1_000_000);
    for (other, expected) in [
        ("./less", [of_first, of_second]),
        ("./small", [of_first, of_second]),
        ("./linked", [of_first, of_second]),
        // Symbols name the files of local functions, too.
        ("./plain", [of_first, of_second]),
        ("./inline", [of_first, 0]),
    ] {
        let document = counted(&lab, other);
        let rows = document["sections"]["time"]["rows"].as_array().unwrap();
        let works = rows.iter().filter(|row| row["name"].as_str().unwrap().split(' ').next() == Some("work"));
        let mut found: Vec<(String, [u64; 2])> = works
            .map(|row| {
                let place = row["where"].as_str().unwrap_or("nowhere").rsplit('/').next().unwrap();
                let instructions = |side: &str| row[side]["instructions"].as_u64().unwrap_or(0) / 1000 * 1000;
                (place.to_owned(), ["baseline", "variant"].map(instructions))
            })
            .collect();
        found.sort();
        let expected = [
            ("first.c:5".to_owned(), [of_first, expected[0]]),
            ("second.c:7".to_owned(), [of_second, expected[1]]),
        ];
        assert_eq!(found, expected, "{other}: {rows:#?}");
    }
}

/// An inlined function above the function that contains it, and calls of a library in a loop.
const CALLS: &str = r#"
#include <stdlib.h>
static inline unsigned sum(const unsigned char *at, unsigned length) {
    unsigned sum = 0;
    while (length--) sum ^= *at++ * 3;
    return sum;
}
static unsigned char bytes[100];
__attribute__((noinline)) unsigned work(unsigned length) { // work
    unsigned found = sum(bytes, length);
    for (unsigned call = 0; call < 50000; call++) free(NULL);
    return found;
}
int main(void) { return work(sizeof bytes) == 77; }
"#;

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn stubs_are_in_a_row_of_their_own_and_thunks_and_lines_are_those_of_the_program_in_every_abi() {
    let lab = Laboratory::new();
    lab.write("calls.c", CALLS);
    lab.gcc("-O1 -g -fno-builtin calls.c -o a64");
    lab.gcc("-O1 -g -fno-builtin -m32 -fPIE -pie -idirafter /usr/include/x86_64-linux-gnu calls.c -o b32");
    lab.gcc("-O1 -g -fno-builtin -mx32 -idirafter /usr/include/x86_64-linux-gnu calls.c -o bx32");
    for other in ["./b32", "./bx32"] {
        let document = counted(&lab, other);
        let line = CALLS.lines().position(|line| line.contains("// work")).unwrap() + 1;
        let work = row(&document, "work");
        let place = work["where"].as_str().unwrap();
        assert!(place.ends_with(&format!("calls.c:{line}")), "{other}: {place}");
        let stubs = row(&document, "stubs");
        for side in ["baseline", "variant"] {
            // One instruction for each call, and some of the start.
            let count = stubs[side]["instructions"].as_u64().unwrap();
            assert!((50_000..50_500).contains(&count), "{other} {side}: {count}");
        }
        let rows = document["sections"]["time"]["rows"].as_array().unwrap();
        if other == "./bx32" {
            // The functions are the same ones, with the same instructions but for some of the head.
            let difference = ["baseline", "variant"].map(|side| work[side]["instructions"].as_u64().unwrap());
            assert!(difference[0].abs_diff(difference[1]) < 1000, "{difference:?}");
        } else {
            // Their symbols have no size: valgrind does not name them.
            let thunks = |row: &&Value| row["name"].as_str().unwrap().starts_with("__x86.get_pc_thunk.");
            assert!(rows.iter().filter(thunks).count() >= 2, "{rows:#?}");
        }
        let is_unnamed = |row: &&Value| row["name"] == "code of the program without a name";
        assert_eq!(rows.iter().find(is_unnamed), None, "{other}");
    }
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn a_stripped_program_has_one_row_and_a_user_without_rights_has_the_counts_that_the_kernel_permits() {
    let lab = Laboratory::new();
    lab.program("steps.c");
    lab.gcc("-O1 -s steps.c -o a");
    lab.gcc("-O1 steps.c -o b");
    let words = "compare --cpus any ./a ./b --rounds 1 --functions --set-env STEPS=100000";
    let compared = output_of(&mut lab.without_rights(words));
    assert_eq!(compared.status, Some(0), "{compared:?}");
    let explained = lab.widthwise("explain --time --json");
    assert_eq!(explained.status, Some(0), "{explained:?}");
    let document = explained.json();
    counts_and_parts_sum(&document);
    let unnamed = row(&document, "code");
    assert_eq!(unnamed["name"], "code of the program without a name");
    assert!(unnamed["baseline"]["instructions"].as_u64() > Some(200_000), "{unnamed}");
    assert!(row(&document, "main")["baseline"].is_null());
    let time = &document["sections"]["time"];
    let remarks = time["remarks"].to_string();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match paranoid.trim().parse().unwrap_or(4) {
        ..=1 => assert_eq!(remarks, "[]"),
        2 => {
            assert!(remarks.contains("sysctl kernel.perf_event_paranoid=1"), "{remarks}");
            assert!(time["baseline"]["page_faults"].as_u64() > Some(20), "{time:#}");
        }
        _ => assert!(time["page_faults_missing"].as_str().unwrap().contains("sysctl"), "{time:#}"),
    }
}

#[test]
fn an_explanation_without_counts_says_that_the_cpu_times_differ_and_what_counts_the_functions() {
    let lab = Laboratory::new();
    lab.write("loop.c", "int main(void) { volatile unsigned left = STEPS; while (--left) ; return 0; }\n");
    lab.gcc("-O0 -DSTEPS=10000000 loop.c -o short");
    lab.gcc("-O0 -DSTEPS=40000000 loop.c -o long");
    let remarks = |options: &str| {
        let compared = lab.compare(&format!("./short ./long --warmup 0 {options}"));
        assert_eq!(compared.status, Some(0), "{compared:?}");
        let remarks = lab.widthwise("explain --json").json()["remarks"].to_string();
        (remarks.contains("more CPU time than short."), remarks.contains("--functions does that"), remarks)
    };
    // After one round no difference is known.
    let (differs, is_named, text) = remarks("--rounds 1");
    assert!(!differs && !is_named, "{text}");
    let (differs, is_named, text) = remarks("--rounds 6");
    assert!(differs && is_named, "{text}");
}

#[test]
fn without_valgrind_functions_are_not_counted_and_the_package_is_named() {
    let lab = Laboratory::new();
    std::fs::create_dir(lab.path("empty")).unwrap();
    let words = "--binary a=/bin/true --binary b=/bin/true --rounds 1 --functions";
    let output = output_of(lab.comparing(words).env("PATH", lab.path("empty")));
    assert_eq!(output.status, Some(0), "{output:?}");
    let text = unfolded(&output.stdout);
    assert!(text.contains("functions were not counted: valgrind is not on the PATH"), "{output:?}");
    lab.widthwise("explain --time a b").refuses(2, &["were not counted", "--functions counts them"]);
    let files = lab.widthwise("explain --time /bin/true /bin/false");
    files.refuses(2, &["are files", "`widthwise compare /bin/true /bin/false --functions` counts them"]);
}
