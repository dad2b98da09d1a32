//! `compare` from the command line.

use crate::laboratory;
use crate::laboratory::outcomes::skipped;
use crate::laboratory::{count, unfolded, variant, verdict, Laboratory};

#[test]
fn one_file_is_built_and_compared_in_every_abi() {
    let lab = Laboratory::new();
    lab.write(
        "nodes.cpp",
        "#include <cstdio>\n#include <cstdlib>\n\
         struct Node { Node *left, *right; };\n\
         int main(int, char **v) { long n = atol(v[1]); Node *last = nullptr;\n\
         for (long i = 0; i < n; i++) last = new Node{last, last};\n\
         printf(\"%ld nodes\\n\", n); return last == nullptr; }\n",
    );
    let report = lab.compare_json("nodes.cpp --rounds 8 -- 2000000");
    assert_eq!(report["schema"], 3);
    // A node's chunk is 32 bytes in LP64 and 16 in ILP32: 64 MB and 32 MB.
    let memory = verdict(&report, "i386", "max_rss");
    assert_eq!(memory["verdict"], "lower", "{memory}");
    let ratio = memory["ratio"].as_f64().unwrap();
    assert!((0.48..0.58).contains(&ratio), "{memory}");
    assert!(memory["low"].as_f64().unwrap() <= ratio && ratio <= memory["high"].as_f64().unwrap());
    let control = verdict(&report, "x86-64 control", "max_rss");
    assert_eq!(control["verdict"], "no_difference", "{control}");
    // x32 builds here; whether it starts depends on the kernel. It has its row in both cases.
    let x32 = verdict(&report, "x32", "max_rss");
    if x32["verdict"] == "no_data" {
        assert!(x32["reason"].as_str().unwrap().contains("kernel"), "{x32}");
    } else {
        assert_eq!(x32["verdict"], "lower", "{x32}");
    }
}

/// The second differs by 200 kB from the first, and the third by 2 MB. The kernel's accounts may differ by 655 kB for each CPU.
#[test]
fn a_small_difference_of_max_rss_is_withheld() {
    let lab = Laboratory::new();
    lab.write(
        "pages.c",
        "static char memory[BYTES];\n\
         int main(void) { for (long at = 0; at < BYTES; at += 4096) memory[at] = 1; return memory[4096] - 1; }\n",
    );
    let sizes = "--flags -DBYTES=400000 --flags -DBYTES=600000 --flags -DBYTES=2400000";
    let report = lab.compare_json(&format!("pages.c --abi x86-64 {sizes} --rounds 8 --metric max_rss"));
    let found = |bytes: u32| verdict(&report, &format!("x86-64/-DBYTES={bytes}"), "max_rss");
    assert_eq!(found(2_400_000)["verdict"], "higher", "{report}");
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    if ["4.", "5.", "6.0", "6.1."].iter().any(|exact| release.starts_with(exact)) {
        return skipped("before Linux 6.2 the kernel's account is exact");
    }
    let small = found(600_000);
    assert_eq!(small["verdict"], "withheld", "{small}");
    assert!(small["reason"].as_str().unwrap().contains("accounts of max RSS may differ by"), "{small}");
}

#[test]
fn the_terminal_shows_the_result_and_the_page_is_written() {
    let lab = Laboratory::new();
    lab.program("allocate.c");
    let printed = lab.compare("allocate.c --abi x86-64,i386 --rounds 8 -- 20");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    for word in ["x86-64", "baseline", "i386", "control", "detection floor", "max RSS", "report.html"] {
        assert!(printed.stdout.contains(word), "{word} is not in {}", printed.stdout);
    }
    assert!(!printed.stdout.contains('\u{1b}'), "colours without a terminal");
    let page = std::fs::read_to_string(lab.campaign().join("report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_variant_with_another_output_is_never_called_faster() {
    let lab = Laboratory::new();
    lab.program("misbehave.c");
    let arguments = ["misbehave.c", "--abi", "x86-64,i386", "--rounds", "6", "--", "width"];
    let printed = lab.compare(&arguments);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(
        printed.stdout.contains("-long has 8 bytes") && printed.stdout.contains("+long has 4 bytes"),
        "{printed:?}"
    );
    let report = lab.compare_json(&arguments);
    let withheld = verdict(&report, "i386", "cpu");
    assert_eq!(withheld["verdict"], "withheld", "{withheld}");
    assert!(withheld["reason"].as_str().unwrap().contains("differs"));

    let mut allowed = arguments.to_vec();
    allowed.insert(0, "--allow-different-output");
    let report = lab.compare_json(&allowed);
    assert_ne!(verdict(&report, "i386", "peak_virtual")["verdict"], "withheld");

    let mut filtered = arguments.to_vec();
    filtered.splice(0..0, ["--filter", "sed 's/[48] bytes/N bytes/'"]);
    assert_eq!(lab.compare(&filtered).status, Some(0));
}

#[test]
fn a_program_whose_output_changes_between_runs_is_detected() {
    let lab = Laboratory::new();
    lab.program("misbehave.c");
    let printed = lab.compare("misbehave.c --abi x86-64 --rounds 6 -- random");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stdout.contains("changes from run to run"), "{}", printed.stdout);
}

#[test]
fn the_first_differing_bytes_are_shown_wherever_they_are_and_whatever_they_mean() {
    let lab = Laboratory::new();
    lab.write(
        "differs.c",
        r#"
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    int is_wide = sizeof(long) == 8;
    if (strcmp(words[1], "bytes") == 0)
        puts(is_wide ? "\xff" : "\xfe");
    if (strcmp(words[1], "returns") == 0)
        puts(is_wide ? "a\r" : "a");
    if (strcmp(words[1], "column") == 0)
        printf("%0300d%d\n", 0, is_wide ? 8 : 4);
    if (strcmp(words[1], "far") == 0) {
        for (int i = 0; i < 300000; i++)
            puts("line");
        puts(is_wide ? "8" : "4");
    }
    return count != 2;
}
"#,
    );
    for (word, parts) in [
        ("bytes", ["@@ -1 +1 @@", "    -\\xff\n    +\\xfe\n", "(the first difference is in line 1)"]),
        ("returns", ["@@ -1 +1 @@", "    -a\\r\n    +a\n", "(the first difference is in line 1)"]),
        ("column", ["    -…000", "008\n    +…000", "004\n"]),
        (
            "far",
            ["@@ -299998,4 +299998,4 @@", "    -8\n    +4\n", "(the first difference is in line 300001)"],
        ),
    ] {
        let printed = lab.compare(&format!("differs.c --abi x86-64,i386 --rounds 6 -- {word}"));
        for part in parts {
            assert!(printed.stdout.contains(part), "{word}: {part} is missing: {}", printed.stdout);
        }
        let markdown = lab.widthwise("report --markdown").stdout;
        let page = std::fs::read_to_string(lab.campaign().join("report.html")).unwrap();
        for part in parts.iter().flat_map(|part| part.split('\n')).map(str::trim) {
            let part = part.split('…').next_back().unwrap();
            assert!(markdown.contains(part) && page.contains(part), "{word}: {part}");
        }
    }
}

#[test]
fn finished_binaries_are_compared_without_a_build() {
    let lab = Laboratory::new();
    lab.program("allocate.c");
    lab.gcc("-O2 -o a64 allocate.c");
    lab.gcc("-O2 -m32 -o a32 allocate.c");
    let binaries =
        ["--binary", "x86-64=./a64", "--binary", "i386=a32", "--run", "{binary} 8", "--rounds", "6"];
    let report = lab.compare_json(&binaries);
    assert_eq!(laboratory::names(&report), ["x86-64", "i386", "x86-64 control"]);
    assert_eq!(report["program"]["origin"], "binaries");
    assert!(!lab.path(".widthwise/builds").exists(), "something was built");
    // 8 MiB in both, for any pointer width.
    let peak =
        variant(&report, "i386")["typical"].as_array().unwrap().iter().find(|m| m["metric"] == "max_rss");
    let mebibytes = peak.unwrap()["value"].as_f64().unwrap() / f64::from(1 << 20);
    assert!((8.0..10.0).contains(&mebibytes), "{mebibytes}");
}

#[test]
fn a_binary_of_another_abi_than_its_name_is_detected() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab.gcc("-o a64 tells.c");
    let printed = lab.compare("--binary x86-64=./a64 --binary i386=./a64 --run {binary} --rounds 6");
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(
        laboratory::unfolded(&printed.stdout).contains("a64 is built for x86-64, not i386"),
        "{printed:?}"
    );
}

#[test]
fn placeholders_are_replaced() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    let printed = lab.compare(
        "tells.c --abi i386 --flags -O1 --jobs 3 --allow-different-output --rounds 6 \
         --build \"\\$CC {cflags} -o '{build}/tells' '{source}' && echo {jobs} {abi}\" \
         --run \"{build}/tells arguments {variant} {abi} {source} '{work}' '{{build}}' 'two words'\"",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let source = std::fs::canonicalize(lab.path("tells.c")).unwrap();
    let folder = source.parent().unwrap().display();
    let expected =
        format!("[i386/-O1]\n[i386]\n[{}]\n[{folder}]\n[{{build}}]\n[two words]\n", source.display());
    assert_eq!(lab.answer("i386/-O1"), expected);
    assert_eq!(lab.build_log("i386/-O1"), "3 i386\n");
}

#[test]
fn the_command_line_overrides_the_spec_file() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab.write("text", "from the spec's folder\n");
    lab.write(
        "specs/widthwise.toml",
        "[program]\nname = \"reported\"\nsource = \"../tells.c\"\nrun = \"{build}/tells input\"\n\
         [axes]\nabi = [\"x86-64\", \"i386\"]\nflags = [\"-O0\"]\n\
         [run]\nstdin = \"../text\"\n[measure]\nrounds = 50\nseed = 7\n",
    );
    let report = lab.compare_json("specs/widthwise.toml --rounds 6 --flags -O2");
    assert_eq!(laboratory::names(&report), ["x86-64/-O2", "i386/-O2", "x86-64/-O2 control"]);
    assert_eq!(report["program"]["name"], "reported");
    assert_eq!((&report["stopping"]["rounds"], &report["judging"]["seed"]), (&6.into(), &"7".into()));
    assert_eq!(lab.answer("x86-64/-O2"), "from the spec's folder\n");
    // The campaign's spec file makes the same request from any folder.
    let kept = lab.campaign().join("widthwise.toml");
    let again = lab.compare_json(&[kept.to_str().unwrap()]);
    assert_eq!(laboratory::names(&again), laboratory::names(&report));
    assert_eq!(again["stopping"]["rounds"], 6);
}

#[test]
fn the_ten_run_estimator_requires_ten_rounds() {
    let lab = Laboratory::new();
    lab.program("work.c");
    let arguments = ["work.c", "--abi", "x86-64,i386", "--estimator", "ten-run-trim", "--", "2"];
    let report = lab.compare_json(&arguments);
    assert_eq!(report["judging"]["estimator"], "ten-run-trim");
    assert_eq!(count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'timed'"), 10);
    // Of ten readings the two lowest and the two highest are omitted, and six are averaged.
    let readings = |name: &str| {
        let mut values: Vec<f64> = report["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["variant"] == name && run["round"].as_u64().unwrap() >= 1)
            .map(|run| run["sample"]["cpu"]["value"].as_f64().unwrap())
            .collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(values.len(), 10);
        values[2..8].iter().sum::<f64>() / 6.0
    };
    let judged = verdict(&report, "i386", "cpu")["ratio"].as_f64().unwrap();
    let expected = readings("i386") / readings("x86-64");
    assert!((judged / expected - 1.0).abs() < 1e-9, "{judged} is not {expected}");
    lab.compare(&[&["--rounds", "6"], &arguments[..]].concat()).refuses(2, &["needs exactly 10 rounds"]);
}

/// How often the variant of two programs was at each position of a timed round.
fn positions_of_the_variant(more: &str) -> [u32; 3] {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let report =
        lab.compare_json(&format!("nap.c --abi x86-64,i386 --seed 4 --warmup 0 --rounds 24 {more} -- 1 1"));
    let mut positions = [0; 3];
    for run in report["runs"].as_array().unwrap().iter().filter(|run| run["variant"] == "i386") {
        positions[run["position"].as_u64().unwrap() as usize] += 1;
    }
    positions
}

#[test]
fn a_variant_has_no_position_of_its_own_in_the_rounds() {
    let random = positions_of_the_variant("");
    assert!(
        random.iter().sum::<u32>() == 24 && random.iter().all(|count| (2..16).contains(count)),
        "{random:?}"
    );
    // A balanced order would have equal counts with every seed.
    assert_ne!(random, [8; 3]);
    assert_eq!(positions_of_the_variant("--order balanced"), [8; 3]);
}

#[test]
fn max_time_ends_a_campaign_and_the_seed_repeats_its_order() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let order = |report: &serde_json::Value| -> Vec<String> {
        let runs = report["runs"].as_array().unwrap().iter().take(12);
        runs.map(|run| run["variant"].as_str().unwrap().to_owned()).collect()
    };
    let arguments = ["nap.c", "--abi", "x86-64,i386", "--seed", "11", "--max-time", "500ms", "--", "1", "5"];
    let first = lab.compare_json(&arguments);
    assert!(first["stopping"]["elapsed_seconds"].as_f64().unwrap() >= 0.5);
    assert_eq!(order(&first), order(&lab.compare_json(&arguments)));
    let mut other = arguments;
    other[4] = "12";
    assert_ne!(order(&first), order(&lab.compare_json(&other)));
}

#[test]
fn a_max_time_too_short_for_an_interval_is_reported_after_the_first_round() {
    let lab = Laboratory::new();
    let nap =
        |max_time: &str| lab.compare(&["--binary", "nap=/bin/sleep", "--max-time", max_time, "--", "0.1"]);
    let printed = nap("500ms");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(
        printed.stderr.contains("warning: --max-time 500ms is too short for an interval, which needs 6"),
        "{printed:?}"
    );
    let enough = printed.stderr.rsplit("--max-time ").next().unwrap().split(' ').next().unwrap();
    // Sufficient at the first round's speed; a machine that others use may be a third as fast later.
    let seconds: f64 = enough.strip_suffix('s').and_then(|number| number.parse().ok()).unwrap();
    let printed = nap(&format!("{}s", 3.0 * seconds));
    assert!(!printed.stderr.contains("too short"), "{printed:?}");
    assert!(!printed.stdout.contains("too few"), "{printed:?}");
}

#[test]
fn a_campaign_ends_when_its_intervals_are_narrow_enough() {
    let lab = Laboratory::new();
    lab.program("work.c");
    let report = lab.compare_json("work.c --abi x86-64,i386 --precision 40% --max-time 60s -- 20");
    for metric in ["cpu", "wall"] {
        let judged = verdict(&report, "i386", metric);
        let (low, high) = (judged["low"].as_f64().unwrap(), judged["high"].as_f64().unwrap());
        assert!((high.ln() - low.ln()) / 2.0 <= 0.41_f64, "{judged}");
    }
    assert!(report["stopping"]["elapsed_seconds"].as_f64().unwrap() < 60.0, "{}", report["stopping"]);
}

#[test]
fn a_round_runs_on_one_core_chosen_by_the_campaign() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    let report = lab.widthwise("compare --json tells.c --abi x86-64 --rounds 6").json();
    let cpus: std::collections::BTreeSet<_> =
        report["rounds"].as_array().unwrap().iter().map(|round| round["cpu"].as_u64().unwrap()).collect();
    assert_eq!(cpus.len(), 1, "{cpus:?}");
}

#[test]
fn the_run_commands_program_is_looked_for_where_it_runs() {
    let lab = Laboratory::new();
    lab.script("spec/bench.sh", "#!/bin/sh\nexit 0\n");
    // Another program of that name, in the folder of the start.
    lab.script("bench.sh", "#!/bin/sh\nexit 7\n");
    for directory in ["here", "fresh"] {
        let program = "[program]\nrun = \"./bench.sh\"\nbinaries = { a = \"bench.sh\" }\n";
        lab.write("spec/widthwise.toml", &format!("{program}[run]\ndirectory = \"{directory}\"\n"));
        let printed = lab.compare("spec/widthwise.toml --rounds 1 --warmup 0");
        assert_eq!(printed.status, Some(0), "{printed:?}");
    }
    let typed = "--binary a=bench.sh --run ./bench.sh --rounds 1 --warmup 0";
    let printed = lab.compare(&format!("{typed} --directory spec"));
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.compare(typed).status, Some(1));
}

#[test]
fn setup_and_teardown_run_around_each_run_and_files_are_compared() {
    let lab = Laboratory::new();
    lab.write("writes.sh", "cat given > answer; echo \"$0 $$\"\n");
    let printed = lab.compare(
        "--binary writes=./writes.sh --run 'sh {binary}' --directory fresh --input writes.sh --setup \
         'echo prepared > given; echo x >> ../../setups' --teardown 'test -s answer; echo x >> \
         ../../teardowns' --check-file answer --rounds 6",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    // Standard output has a number that changes in each run; the compared output is the file.
    assert_eq!(lab.answer("writes"), "prepared\n");
    assert_eq!((lab.read("setups").len(), lab.read("teardowns").len()), (28, 28));
}

#[test]
fn a_compared_file_that_a_run_did_not_write_is_not_the_one_of_an_earlier_run() {
    let lab = Laboratory::new();
    lab.script("good", "#!/bin/sh\necho 42 > out.txt\n");
    lab.script("bad", "#!/bin/sh\nexit 0\n");
    // Both run in one folder; an old file is there before the first run, too.
    lab.write("out.txt", "42\n");
    let words = "--binary good=./good --binary bad=./bad --run '{binary}' --check-file out.txt --rounds 6";
    let printed = lab.compare(words);
    assert_eq!(printed.status, Some(1), "{printed:?}");
    let table = unfolded(&printed.stdout);
    assert!(table.contains("it did not write the file out.txt"), "{printed:?}");
    // The baseline wrote the same bytes each time, and its control is sound.
    let of = |name: &str| {
        let question =
            "SELECT count(*) FROM run JOIN variant ON variant.id = run.variant WHERE output_digest IS NULL";
        count(&lab.archive(), &format!("{question} AND name = '{name}'"))
    };
    assert_eq!((of("good"), of("bad") > 0), (0, true), "{printed:?}");
    assert_eq!(lab.read("out.txt"), "42\n");
}

#[test]
fn a_library_of_the_build_that_would_not_be_loaded_is_reported_with_the_fix() {
    let lab = Laboratory::new();
    // Every system has a library of this name: the program starts, with the wrong one.
    lab.write("lib/z.c", "const char *zlibVersion(void) { return \"our own\"; }\n");
    lab.write(
        "lib/main.c",
        "#include <stdio.h>\nconst char *zlibVersion(void) __attribute__((weak));\n\
         int main(void) { puts(zlibVersion ? zlibVersion() : \"the system's\"); return 0; }\n",
    );
    let build = "mkdir -p out\n$CC $CFLAGS -shared -fPIC -Wl,-soname,libm.so.6 -o out/libm.so.6 z.c\n\
                 ln -s libm.so.6 out/libz.so\n$CC $CFLAGS -o program main.c -Wl,--no-as-needed -Lout -lz";
    let compared = |build: &str, more: &[&str]| {
        let words = ["lib", "--abi", "x86-64", "--rounds", "1", "--run", "{build}/program", "--build", build];
        let printed = lab.compare(&[&words[..], more].concat());
        (unfolded(&printed.stdout), printed)
    };
    let (table, printed) = compared(build, &[]);
    let warning = "warning: x86-64: program asks for libm.so.6, and is given /usr/lib/x86_64-linux-gnu/libm.so.6 \
                   instead of its own build's {build}/out/libm.so.6: link with -Wl,-rpath,{build}/out, or set --set-env \
                   'LD_LIBRARY_PATH={build}/out'";
    assert!(table.contains(warning), "{printed:?}");
    assert_eq!(lab.answer("x86-64"), "the system's\n");
    for with_fix in [
        compared(&format!("{build} -Wl,-rpath,{{build}}/out"), &[]),
        compared(&format!("{build} -Wl,-rpath,'$ORIGIN/out'"), &[]),
        compared(build, &["--set-env", "LD_LIBRARY_PATH={build}/out"]),
    ] {
        assert!(!with_fix.0.contains("asks for"), "{:?}", with_fix.1);
        assert_eq!(lab.answer("x86-64"), "our own\n");
    }
}

#[test]
fn a_shell_can_start_the_variants_program_and_variables_have_its_path() {
    let lab = Laboratory::new();
    lab.write("project/main.c", "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 0; }\n");
    let printed = lab.widthwise(&[
        "compare",
        "./project",
        "--cpus",
        "any",
        "--abi",
        "x86-64,i386",
        "--build",
        "$CC $CFLAGS main.c -o program",
        "--run",
        "sh -c '\"$PLACE\"/program'",
        "--set-env",
        "PLACE={build}",
        "--rounds",
        "6",
    ]);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(!printed.stdout.contains("not measured"), "{}", printed.stdout);
    let kept = std::fs::read_to_string(lab.campaign().join("output/i386")).unwrap();
    assert_eq!(kept, "ran\n");
}

#[test]
fn a_variant_whose_work_was_killed_with_a_process_that_it_left_is_withheld() {
    let lab = Laboratory::new();
    lab.program("left_over.c");
    lab.gcc("-O2 left_over.c -o left_over");
    // Scripts, so that the variants differ in their arguments.
    for how in ["here", "work", "sleep"] {
        lab.write(how, &format!("exec ./left_over {how} 150\n"));
    }
    let report = |first: &str, second: &str| {
        let (first, second) = (format!("{first}={first}"), format!("{second}={second}"));
        let words =
            ["--binary", &first, "--binary", &second, "--run", "sh {binary}", "--rounds", "6", "--json"];
        lab.compare(&words)
    };
    for (baseline, other, reason) in
        [("here", "work", "left a process at work"), ("work", "here", "the baseline left")]
    {
        let output = report(baseline, other);
        assert_eq!(output.status, Some(1), "{output:?}");
        let report = output.json();
        for metric in ["cpu", "wall", "page_faults", "max_rss"] {
            let verdict = verdict(&report, other, metric);
            assert_eq!(verdict["verdict"], "withheld", "{verdict}");
            assert!(verdict["reason"].as_str().unwrap().starts_with(reason), "{verdict}");
        }
        assert_eq!(variant(&report, "work")["status"], "left_over");
    }
    // What only sleeps does no work that would be missing.
    let output = report("here", "sleep");
    assert_eq!(output.status, Some(0), "{output:?}");
    let report = output.json();
    assert_ne!(verdict(&report, "sleep", "cpu")["verdict"], "withheld", "{report}");
    assert_eq!(variant(&report, "sleep")["status"], "ready");
}

#[test]
fn a_run_that_fails_now_and_then_is_a_failure_of_the_program() {
    let lab = Laboratory::new();
    // Every run adds a line to its own file; the fourth fails.
    lab.write("steady", "exit 0\n");
    lab.write("unsteady", "echo x >>$0.runs; [ $(wc -l <$0.runs) != 4 ] || exit 9\n");
    for (first, second) in [("steady", "unsteady"), ("unsteady", "steady")] {
        let (first, other) = (format!("{first}={first}"), format!("{second}={second}"));
        let words =
            ["--binary", &first, "--binary", &other, "--run", "sh {binary}", "--rounds", "8", "--json"];
        let _ = std::fs::remove_file(lab.path("unsteady.runs"));
        let output = lab.compare(&words);
        assert_eq!(output.status, Some(1), "{output:?}");
        let report = output.json();
        let verdict = verdict(&report, second, "cpu");
        assert_eq!(verdict["verdict"], "withheld", "{verdict}");
        // Of the baseline, it is the run of the A/A control or its own.
        let failed = "1 of 8 runs failed: exit status 9";
        assert!(second == "steady" || verdict["reason"] == failed, "{verdict}");
    }
}
