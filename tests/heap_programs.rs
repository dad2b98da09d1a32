//! What `explain` says of a heap whose program has no debug information, or is not the file that was recorded.

use crate::heap::{listed, record};
use crate::heap_types::{explained, recorded, remarks, sums_are_exact, ABIS};
use crate::laboratory::{output_of, unfolded, Laboratory};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
fn without_debug_information_and_source_no_type_of_a_c_program_is_shown() {
    let lab = Laboratory::new();
    let [a, b] = [ABIS[0], ABIS[1]].map(|abi| recorded(&lab, "gcc", "types.c", "-O2 -g0", abi));
    let json = explained(&lab, &a, &b);
    sums_are_exact(&json);
    let rows = json["types"]["types"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["type"].is_null() || row["source"] == "library"), "{rows:#?}");
    let remarks = json["types"]["remarks"].as_array().unwrap();
    assert!(
        remarks.iter().any(|remark| remark.as_str().unwrap().contains("no debug information")),
        "{remarks:?}"
    );
}

#[test]
fn a_program_of_numbers_alone_has_debug_information_if_it_was_built_with_it() {
    let lab = Laboratory::new();
    lab.write(
        "numbers.c",
        "#include <stdlib.h>\nint main(void) {\n    int *a = malloc(400000 * sizeof(int));\n    a[3] = 0;\n    return a[3];\n}\n",
    );
    let of = |options| remarks(&lab, &recorded(&lab, "gcc", "numbers.c", options, ABIS[0]));
    assert_eq!(of("-O0"), "[]");
    assert!(of("-O0 -g1").contains("has debug information without types"), "{}", of("-O0 -g1"));
    assert!(of("-O0 -g0").contains("has no debug information"), "{}", of("-O0 -g0"));
}

#[test]
fn a_stripped_program_is_named_by_its_separate_file_as_it_would_be_with_its_own_debug_information() {
    let lab = Laboratory::new();
    lab.write(
        "apart.cpp",
        "#include <cstdlib>\n#include <list>\n#include <unistd.h>\nnamespace {\nstruct Hidden { void *p; long l; char c; };\n\
         inline Hidden *several(int n) { return (Hidden *)std::malloc(n * sizeof(Hidden)); }\n}\n\
         int main() {\n  auto &all = *new std::list<Hidden>;\n  for (int i = 0; i < 1000; i++) all.emplace_back();\n\
           _exit(several(100) == nullptr);\n}\n",
    );
    let of = recorded(&lab, "cc", "apart.cpp", "-O2 -g", ABIS[0]);
    let explained = || {
        let output = lab.widthwise(&["explain", of.log.to_str().unwrap(), "--json"]);
        assert_eq!(output.status, Some(0), "{output:?}");
        output.json()
    };
    let whole = explained();
    let function = |json: &Value| json["sites"].to_string().contains("(anonymous namespace)::several");
    assert!(
        function(&whole) && whole["types"].to_string().contains("(anonymous namespace)::Hidden"),
        "{whole:#}"
    );
    // The laboratory's gcc would keep it for other tests.
    let program = of.log.with_extension("");
    let written = program.metadata().unwrap().modified().unwrap();
    let name = program.to_str().unwrap();
    let run = |words: &[&str]| {
        let ended = output_of(Command::new(words[0]).args(&words[1..]).current_dir(lab.path(".")));
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
    };
    run(&["objcopy", "--only-keep-debug", name, "apart.debug"]);
    run(&["objcopy", "--strip-all", "--add-gnu-debuglink=apart.debug", name]);
    std::fs::File::options().write(true).open(&program).unwrap().set_modified(written).unwrap();
    assert_eq!(explained(), whole);
    std::fs::write(lab.path("apart.debug"), "another file").unwrap();
    let remarks = explained()["a"]["remarks"].to_string();
    assert!(remarks.contains("its debug information is in apart.debug, which is not found"), "{remarks}");
}

/// A log has code addresses, and their names are those of the program that is there now.
#[test]
fn a_program_that_was_built_again_after_its_recording_has_a_remark() {
    let lab = Laboratory::new();
    let recording = recorded(&lab, "gcc", "headers.c", "-O1", ABIS[0]);
    let words = || -> String { explained(&lab, &recording, &recording).to_string() };
    let says = "was written after its recording: if it has changed";
    let before = words();
    assert!(!before.contains(says));
    let file = std::fs::File::options().append(true).open(lab.path("headers-c-gcc-O1-x86-64")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let after = words();
    assert!(after.contains(says));
}

/// The log says how wide a pointer is.
#[test]
fn the_allocators_headers_of_stripped_programs_are_known() {
    let lab = Laboratory::new();
    let of = |options: [&str; 2]| {
        let [a, b] = [(options[0], ABIS[0]), (options[1], ABIS[1])]
            .map(|(options, abi)| recorded(&lab, "gcc", "headers.c", options, abi));
        let json = explained(&lab, &a, &b);
        let parts = json["types"]["allocator"].as_array().unwrap();
        let headers = parts.iter().find(|part| part["rule"] == "allocator's headers").cloned();
        headers.map(|part| [part["a"].as_u64().unwrap(), part["b"].as_u64().unwrap()])
    };
    let known = of(["-O1", "-O1"]);
    assert!(known.is_some_and(|[a, b]| a == 2 * b && b > 0), "{known:?}");
    for options in [["-O1 -s", "-O1 -s"], ["-O1", "-O1 -s"]] {
        assert_eq!(of(options), known, "{options:?}");
    }
}

/// Of glibc a block has one word before it; an allocator with classes of sizes has none, and of another one it is not known.
#[test]
fn headers_are_divided_from_rounding_only_for_allocators_that_are_known() {
    const COUNT: u64 = 2000;
    let lab = Laboratory::new();
    lab.write(
        "sized.c",
        "#include <stdlib.h>\nstruct sized { struct sized *next; char text[123]; };\nstatic struct sized *all;\n\
         int main(void) {\n    for (int i = 0; i < 2000; i++) {\n        struct sized *one = malloc(sizeof *one);\n\
         one->next = all;\n        all = one;\n    }\n    return 0;\n}\n",
    );
    lab.program("own_allocator.c");
    lab.gcc("-g -O1 sized.c -o sized");
    lab.gcc("-g -O1 -w -fno-builtin -shared -fPIC own_allocator.c -o libown.so");
    let own = lab.path("libown.so");
    let jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    let of = |name: &str, preloaded: &[(&str, &str)]| {
        let log = lab.path(name);
        std::fs::rename(&record(&lab, "./sized", preloaded)[0], &log).unwrap();
        log
    };
    let glibc = of("glibc.log", &[]);
    let of_classes = of("jemalloc.log", &[("LD_PRELOAD", jemalloc)]);
    let unknown = of("own.log", &[("LD_PRELOAD", own.to_str().unwrap())]);
    let explained = |a: &Path, b: &Path| {
        let command = ["explain", a.to_str().unwrap(), b.to_str().unwrap()];
        let json = lab.widthwise(&[&command[..], &["--json"]].concat()).json();
        let sized =
            json["types"]["types"].as_array().unwrap().iter().find(|row| row["type"] == "sized").cloned();
        let parts: Vec<(String, u64, u64)> = sized.unwrap()["allocator"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                (
                    part["rule"].as_str().unwrap().to_owned(),
                    part["a"].as_u64().unwrap(),
                    part["b"].as_u64().unwrap(),
                )
            })
            .collect();
        (parts, unfolded(&lab.widthwise(&command).stdout))
    };
    let part = |rule: &str, a: u64, b: u64| (rule.to_owned(), a * COUNT, b * COUNT);
    // 136 + 8 → 144 of glibc, 136 → 160 of jemalloc.
    let (parts, text) = explained(&glibc, &of_classes);
    assert_eq!(parts, [part("allocator's headers", 8, 0), part("allocator's rounding", 0, 24)]);
    assert!(text.contains("a block of sized needs 136 + 8 → 144 bytes, and 136 → 160"), "{text}");
    let (parts, text) = explained(&glibc, &unknown);
    assert_eq!(parts.len(), 1, "{parts:?}");
    assert_eq!((parts[0].0.as_str(), parts[0].1), ("allocator's headers and rounding", 8 * COUNT), "{text}");
    assert!(text.contains("allocator's headers and rounding ("), "{text}");
}

#[test]
fn stacks_that_end_early_are_reported_with_the_reason() {
    let lab = Laboratory::new();
    lab.write(
        "ends.c",
        "#include <stdlib.h>\nvoid *volatile kept;\n\
         __attribute__((noinline)) void resize(int n) { kept = realloc(NULL, n); kept = 0; }\n\
         __attribute__((noinline)) int one(int n) { resize(n); return n; }\n\
         int down(int n) { kept = malloc(7); return n == 0 ? 0 : 1 + down(n - 1); }\n\
         int main(int count, char **words) { (void)words; return count > 1 ? down(6000) != 6000 : one(5) + one(9) != 14; }\n",
    );
    lab.gcc("-g -O0 ends.c -o deep");
    lab.gcc("-g -O0 -fno-asynchronous-unwind-tables -fno-unwind-tables ends.c -o ends");
    let ends = record(&lab, "./ends", &[]);
    let output = lab.widthwise(&["explain", ends[0].to_str().unwrap(), "--skip-frames", "resize"]);
    let text = unfolded(&output.stdout);
    assert!(
        text.contains(
            "the stacks of 100 % of the blocks end early, in code of ends that has no unwind tables"
        ),
        "{output:?}"
    );
    assert!(text.contains("--skip-frames resize: every stack ends at that function"), "{output:?}");
    // Code with tables is not to be built with them.
    let remarks = listed(&lab, "./deep down")["a"]["remarks"].to_string();
    assert!(remarks.contains("of the blocks end early, so that their outer callers"), "{remarks}");
    assert!(!remarks.contains("unwind tables"), "{remarks}");
}
