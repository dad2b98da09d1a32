//! The heap recorder and `explain --heap`: every block and every byte is counted, in every ABI, for every kind of
//! program end; unrecorded memory is reported.

use std::path::PathBuf;
use std::process::Command;

use crate::laboratory::{output_of, Laboratory};
use serde_json::Value;

const ABIS: [(&str, &str); 3] = [
    ("x86-64", "-m64"),
    ("x32", "-mx32 -idirafter /usr/include/x86_64-linux-gnu"),
    ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu"),
];

/// Starts a program with the recorder; returns its logs, in the order of their processes.
pub fn record(lab: &Laboratory, program: &str, more: &[(&str, &str)]) -> Vec<PathBuf> {
    let preload = lab.widthwise("explain --preload");
    assert_eq!(preload.status, Some(0), "{preload:?}");
    let mut list = preload.stdout.trim().to_owned();
    let mut words = shell_words::split(program).unwrap();
    let file = lab.path(words.remove(0).trim_start_matches("./"));
    let (starter, first) = match widthwise_x32run::runtime_for(&file).unwrap() {
        Some(runtime) => (runtime, Some(file)),
        None => (file, None),
    };
    let mut command = Command::new(starter);
    command.args(first).args(words).current_dir(lab.path("."));
    for (name, value) in more {
        if *name == "LD_PRELOAD" {
            list = format!("{list}:{value}");
        } else {
            command.env(name, value);
        }
    }
    let logs = lab.path("logs");
    let _ = std::fs::remove_dir_all(&logs);
    std::fs::create_dir(&logs).unwrap();
    command.env("LD_PRELOAD", list).env("WIDTHWISE_HEAP_LOG", logs.join("log"));
    let ended = output_of(&mut command);
    assert_eq!(ended.stderr, "", "{program}");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort_by_key(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.split('.').nth(1).unwrap().parse::<u32>().unwrap()
    });
    found
}

fn explained(lab: &Laboratory, log: &std::path::Path) -> Value {
    let output = lab.widthwise(&["explain", "--json", log.to_str().unwrap()]);
    assert_eq!(output.status, Some(0), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// The JSON of `explain` for a program, from the log of its first process.
pub fn listed(lab: &Laboratory, program: &str) -> Value {
    explained(lab, &record(lab, program, &[])[0])
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {value:#}"))
}

fn built(lab: &Laboratory, name: &str, options: &str) {
    lab.program(name);
    let (program, ending) = name.split_once('.').unwrap();
    let library = if ending == "cpp" { "-lstdc++" } else { "" };
    lab.gcc(&format!("{options} -g -O1 -fno-builtin -pthread {name} -o {program} {library}"));
}

#[test]
fn every_block_of_every_function_is_recorded_in_every_abi_for_every_program_end() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        built(&lab, "heap.c", options);
        for ending in ["return", "exit", "_exit", "abort", "kill"] {
            let listed = listed(&lab, &format!("./heap {ending}"));
            let what = format!("{abi}, {ending}: {listed:#}");
            assert_eq!(number(&listed, "/a/blocks"), 11, "{what}");
            assert_eq!(number(&listed, "/a/bytes"), 11065, "{what}");
            assert_eq!(number(&listed, "/a/left_blocks"), 9, "{what}");
            assert_eq!(number(&listed, "/a/left_bytes"), 9053, "{what}");
            assert_eq!(number(&listed, "/a/own_mapped_bytes"), 1 << 20, "{what}");
            assert_eq!(number(&listed, "/a/peak_bytes"), 9053, "{what}");
            assert_eq!(number(&listed, "/a/broken_stacks"), 0, "{what}");
            assert_eq!(listed["a"]["remarks"].as_array().unwrap().len(), 0, "{what}");
        }
    }
}

#[test]
fn threads_lose_no_block_and_a_block_may_be_freed_by_another_thread() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        built(&lab, "heap.c", options);
        for threads in [1, 8] {
            let listed = listed(&lab, &format!("./heap threads {threads}"));
            let work: Vec<&Value> = listed["sites"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|site| site["function"] == "work")
                .collect();
            assert_eq!(work.len(), 1, "{abi}: {listed:#}");
            assert_eq!(number(work[0], "/a/blocks"), threads * 100_000, "{abi}");
            assert_eq!(number(work[0], "/a/bytes"), threads * 1000 * 5050, "{abi}");
            assert_eq!(number(work[0], "/a/left_blocks"), 0, "{abi}: {listed:#}");
            assert_eq!(listed["a"]["remarks"].as_array().unwrap().len(), 0, "{abi}: {listed:#}");
        }
    }
}

#[test]
fn the_lifetimes_of_the_blocks_of_each_site_are_shown() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        built(&lab, "lifetimes.c", options);
        let logs = record(&lab, "./lifetimes", &[]);
        let log = logs[0].to_str().unwrap();
        let output = lab.widthwise(&["explain", log, "--skip-frames", "ask", "--json"]);
        assert_eq!(output.status, Some(0), "{output:?}");
        let listed: Value = serde_json::from_str(&output.stdout).unwrap();
        let lifetimes = |function: &str| {
            let mut sites = listed["sites"].as_array().unwrap().iter();
            let site = sites.find(|site| site["function"] == function);
            site.unwrap_or_else(|| panic!("{abi}: no {function}: {listed:#}"))["a"]["lifetimes"].clone()
        };
        let shares = |lifetimes: &Value| {
            ["temporary", "later", "never"].map(|share| number(lifetimes, &format!("/{share}")))
        };
        assert_eq!(shares(&lifetimes("temporary")), [3000, 0, 0], "{abi}");
        // The last allocated block is also freed before another allocation.
        let (one, two, good) = (lifetimes("one_nap"), lifetimes("two_naps"), lifetimes("for_good"));
        assert_eq!([shares(&one), shares(&two)], [[1, 2999, 0]; 2], "{abi}");
        // A sleep may be longer than requested, never shorter.
        assert!(number(&one, "/median_below_ns") > 50_000_000, "{abi}: {one}");
        assert!(number(&two, "/median_below_ns") > 100_000_000, "{abi}: {two}");
        assert_eq!(shares(&good), [0, 0, 3000], "{abi}");
        assert_eq!(good["median_below_ns"], Value::Null, "{abi}: {good}");
    }
    let output = lab.widthwise(&[
        "explain",
        lab.path("logs").read_dir().unwrap().next().unwrap().unwrap().path().to_str().unwrap(),
        "--skip-frames",
        "ask",
    ]);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Of its 12 000 blocks 25 % are temporary (freed before the next allocation), 50 % are freed later, 25 % are never freed."), "{output:?}");
    // The clock is read once in 256 events that follow closely: a nap between two of them is not before or after all of them.
    let logs = record(&lab, "./lifetimes few", &[]);
    let listed = explained(&lab, &logs[0]);
    let few = listed["sites"].as_array().unwrap().iter().find(|site| site["function"] == "few").unwrap();
    let lifetimes = &few["a"]["lifetimes"];
    assert!(number(lifetimes, "/median_below_ns") > 50_000_000, "{lifetimes}");
    assert!(number(lifetimes, "/p90_below_ns") > 50_000_000, "{lifetimes}");
    let row =
        output.stdout.lines().find(|line| line.contains("for_good")).unwrap_or_else(|| panic!("{output:?}"));
    assert!(row.contains("to the end"), "{row}");
}

/// The processes of a log, the first one first.
fn by_process(listed: &Value) -> Vec<&Value> {
    listed["a"]["by_process"].as_array().unwrap().iter().collect()
}

#[test]
fn a_forked_child_writes_to_its_parents_log_and_does_not_own_the_parents_blocks() {
    let lab = Laboratory::new();
    built(&lab, "heap.c", "-m64");
    let logs = record(&lab, "./heap fork", &[]);
    assert_eq!(logs.len(), 1);
    let listed = explained(&lab, &logs[0]);
    let [parent, child] = by_process(&listed)[..] else { panic!("{listed:#}") };
    assert_eq!((number(parent, "/blocks"), number(child, "/blocks")), (11, 1), "{listed:#}");
    assert_eq!(child["parent"], parent["process"], "{listed:#}");
}

#[test]
fn a_handler_may_fork_and_allocate_while_a_block_is_recorded() {
    let lab = Laboratory::new();
    built(&lab, "heap.c", "-m64");
    for way in ["exit", "return"] {
        let listed = listed(&lab, &format!("./heap signal {way}"));
        let processes = by_process(&listed);
        assert!(processes.len() > 1, "{way}: {listed:#}");
        assert_eq!(number(processes[0], "/blocks"), 2_000_000, "{way}: {listed:#}");
        assert_eq!(number(processes[0], "/left_blocks"), 0, "{way}: {listed:#}");
        // A child may free a block whose record its parent was writing.
        let remarks = listed["a"]["remarks"].as_array().unwrap();
        let is_strange = |remark: &&Value| {
            let text = remark.as_str().unwrap();
            !text.contains("1 block was released") && !text.starts_with("and likewise")
        };
        assert_eq!(remarks.iter().filter(is_strange).count(), 0, "{way}: {listed:#}");
    }
}

#[test]
fn a_killed_programs_log_has_every_block_up_to_then() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        built(&lab, "heap.c", options);
        for permanent in (0..8).map(|step| 20_000 + step * 1009) {
            let _ = std::fs::remove_file(lab.path("counted"));
            let listed = listed(&lab, &format!("./heap count counted {permanent}"));
            let counted = std::fs::read(lab.path("counted")).unwrap();
            let counted = u64::from_le_bytes(counted.try_into().unwrap());
            assert!(counted > 0, "{abi}: it had no time");
            let blocks = number(&listed, "/a/blocks");
            assert!(blocks == counted || blocks == counted + 1, "{abi}: {blocks} of {counted}: {listed:#}");
            assert_eq!(listed["a"]["remarks"].as_array().unwrap().len(), 0, "{abi}: {listed:#}");
        }
    }
}

#[test]
fn every_operator_of_cxx_is_recorded_in_every_abi_also_with_another_allocator() {
    let lab = Laboratory::new();
    let jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    let tcmalloc = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4";
    for (abi, options) in ABIS {
        built(&lab, "operators.cpp", options);
        let allocators: &[&[(&str, &str)]] = if abi == "x86-64" {
            &[&[], &[("LD_PRELOAD", jemalloc)], &[("LD_PRELOAD", tcmalloc)]]
        } else {
            &[&[]]
        };
        for more in allocators {
            let logs = record(&lab, "./operators", more);
            let listed = explained(&lab, &logs[0]);
            let own = listed["sites"].as_array().unwrap().iter().filter(|site| site["function"] == "main");
            let (mut blocks, mut left_blocks, mut left) = (0, 0, 0);
            for site in own {
                blocks += number(site, "/a/blocks");
                left_blocks += number(site, "/a/left_blocks");
                left += number(site, "/a/left_bytes");
            }
            let what = format!("{abi} {more:?}: {listed:#}");
            // 17 operators, and the exception that one of them throws.
            assert_eq!((blocks, left_blocks, left), (18, 8, 24036), "{what}");
            // Among them libstdc++'s reserve for exceptions, of whose size tcmalloc says 0.
            assert!(number(&listed, "/a/peak_chunk_bytes") < 2 * number(&listed, "/a/peak_bytes"), "{what}");
            assert_eq!(listed["a"]["remarks"].as_array().unwrap().len(), 0, "{what}");
        }
    }
}

#[test]
fn the_live_bytes_at_the_peak_equal_those_of_massif() {
    let lab = Laboratory::new();
    for (abi, options) in [ABIS[0], ABIS[2]] {
        built(&lab, "tree.cpp", options);
        let listed = listed(&lab, "./tree 3000");
        let massif = output_of(Command::new("valgrind").current_dir(lab.path(".")).args([
            "--tool=massif",
            "--peak-inaccuracy=0.0",
            "--massif-out-file=massif.out",
            "-q",
            "./tree",
            "3000",
        ]));
        assert_eq!(massif.status, Some(0), "{massif:?}");
        let text = lab.read("massif.out");
        let peak = text
            .lines()
            .filter_map(|line| line.strip_prefix("mem_heap_B="))
            .map(|bytes| bytes.parse::<u64>().unwrap())
            .max()
            .unwrap();
        assert_eq!(number(&listed, "/a/peak_bytes"), peak, "{abi}: {listed:#}");
    }
}

#[test]
fn a_static_program_is_recorded_with_the_recorder_linked_in() {
    let lab = Laboratory::new();
    for (abi, options) in ABIS {
        lab.program("heap.c");
        let words = lab.widthwise(&["explain", "--link-options", abi]);
        assert_eq!(words.status, Some(0), "{words:?}");
        lab.gcc(&format!(
            "{options} -g -O1 -fno-builtin -static -pthread heap.c -o heap {}",
            words.stdout.trim()
        ));
        let listed = listed(&lab, "./heap _exit");
        // Blocks of the C library before main belong to no line of the program.
        let own =
            listed["sites"].as_array().unwrap().iter().filter(|site| site["function"] == "every_function");
        let (mut blocks, mut left) = (0, 0);
        for site in own {
            blocks += number(site, "/a/blocks");
            left += number(site, "/a/left_bytes");
        }
        assert_eq!((blocks, left), (11, 9053), "{abi}: {listed:#}");
    }
}

#[test]
fn blocks_whose_usable_size_the_allocator_does_not_know_have_no_spare_bytes() {
    let lab = Laboratory::new();
    lab.program("own_allocator.c");
    for (abi, options) in ABIS {
        built(&lab, "heap.c", options);
        lab.gcc(&format!(
            "{options} -g -O1 -w -fno-builtin -shared -fPIC -DKNOWS_NO_SIZES own_allocator.c -o libown.so"
        ));
        let library = lab.path("libown.so");
        let logs = record(&lab, "./heap return", &[("LD_PRELOAD", library.to_str().unwrap())]);
        let listed = explained(&lab, &logs[0]);
        assert!(number(&listed, "/a/peak_bytes") > 9000, "{abi}: {listed:#}");
        let chunks = number(&listed, "/a/peak_chunk_bytes");
        assert_eq!(chunks, number(&listed, "/a/peak_bytes"), "{abi}: {listed:#}");
    }
}

#[test]
fn a_program_with_its_own_malloc_is_reported_as_not_recorded() {
    let lab = Laboratory::new();
    lab.write(
        "own.c",
        "#include <stddef.h>\n#include <stdlib.h>\n#include <unistd.h>\nstatic char room[1 << 16]; static size_t used;\n\
         void *malloc(size_t n) { void *p = room + used; used += (n + 15) & ~15UL; return p; }\n\
         void free(void *p) { (void)p; }\n\
         void *calloc(size_t a, size_t b) { return malloc(a * b); }\n\
         int main(void) { void *volatile p = calloc(1, 10); free(p); free(valloc(10)); return 0; }\n",
    );
    lab.gcc("-w -fno-builtin own.c -o own");
    let listed = listed(&lab, "./own");
    assert!(listed["a"]["remarks"][0].as_str().unwrap().contains("brings its own malloc"), "{listed:#}");
}

#[test]
fn a_truncated_log_is_read_to_its_end_and_hostile_logs_are_refused_in_one_line() {
    let lab = Laboratory::new();
    built(&lab, "heap.c", "-m64");
    let logs = record(&lab, "./heap threads 2", &[]);
    let whole = std::fs::read(&logs[0]).unwrap();
    let cut = lab.path("cut.log");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let listed = explained(&lab, &cut);
    let blocks = number(&listed, "/a/blocks");
    assert!(blocks > 1000 && blocks < 200_000, "{blocks}");
    for (name, bytes, words) in [
        ("empty", Vec::new(), "not a heap log"),
        ("short", whole[..100].to_vec(), "cut off at byte 100"),
        ("newer", [&whole[..8], &[9, 0], &whole[10..]].concat(), "version 9"),
        ("text", b"hello".to_vec(), "not a heap log"),
    ] {
        let path = lab.path(name);
        std::fs::write(&path, bytes).unwrap();
        let output = lab.widthwise(&["explain", path.to_str().unwrap()]);
        assert_eq!(output.status, Some(2), "{name}: {output:?}");
        assert!(output.stderr.contains(words), "{name}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{name}: {output:?}");
    }
}

#[test]
fn a_campaign_records_every_variant_and_names_the_lines_that_differ() {
    let lab = Laboratory::new();
    lab.program("tree.cpp");
    let output = lab.compare("tree.cpp --flags '-O2 -g' --rounds 1 --warmup 0 --heap=2 -- 2000");
    assert_eq!(output.status, Some(0), "{output:?}");
    let output = lab.widthwise("explain --heap --json");
    assert_eq!(output.status, Some(0), "{output:?}");
    let listed: Value = serde_json::from_str(&output.stdout).unwrap();
    let source = lab.read("tree.cpp");
    for (mark, a, b) in [("// OWN", 24, 12), ("// LIST", 24, 12), ("// MAP", 40, 24)] {
        let line = source.lines().position(|line| line.contains(mark)).unwrap() as u64 + 1;
        let site = listed["sites"]
            .as_array()
            .unwrap()
            .iter()
            .find(|site| site["line"] == line)
            .unwrap_or_else(|| panic!("no site at line {line}: {listed:#}"));
        assert_eq!(number(site, "/a/peak_bytes"), 2000 * a, "{mark}: {site:#}");
        assert_eq!(number(site, "/b/peak_bytes"), 2000 * b, "{mark}: {site:#}");
    }
    assert_eq!((&listed["a"]["name"], &listed["b"]["name"]), (&"x86-64/-O2 -g".into(), &"x32/-O2 -g".into()));
    // The savings of all sites add up to the difference of the peaks.
    let sum = |side: &str| -> u64 {
        listed["sites"]
            .as_array()
            .unwrap()
            .iter()
            .map(|site| number(site, &format!("/{side}/peak_bytes")))
            .sum()
    };
    assert_eq!(sum("a"), number(&listed, "/a/peak_bytes"));
    assert_eq!(sum("b"), number(&listed, "/b/peak_bytes"));
    // The campaign's page has a flame graph of the baseline, and one of each variant against it.
    assert_eq!(lab.widthwise("report .widthwise/latest --html=again.html").status, Some(0));
    for page in [lab.read(".widthwise/latest/report.html"), lab.read("again.html")] {
        assert_eq!(page.matches("<figure class=\"flame\">").count(), 3);
        assert!(page.contains("x32/-O2 -g beside x86-64/-O2 -g") && page.contains("script-src 'sha256-"));
        assert_eq!(page.matches("<script").count(), 1);
    }
    let output = lab.widthwise("explain --heap 'x86-64/-O2 -g' 'i386/-O2 -g' --top 3");
    assert!(output.stdout.contains("tree.cpp:"), "{output:?}");
    assert!(output.stdout.contains("std::_Rb_tree_node<std::pair<int const, int> >"), "{output:?}");
    let output = lab.widthwise("explain --heap 'x86-64/-O2 -g' nobody");
    assert_eq!(output.status, Some(2), "{output:?}");
    assert!(output.stderr.contains("no file or variant \"nobody\""), "{output:?}");
    // Logs are large, and the user may have deleted them.
    std::fs::remove_dir_all(lab.path(".widthwise/latest/heap")).unwrap();
    assert_eq!(lab.widthwise("report .widthwise/latest --html=again.html").status, Some(0));
    let page = lab.read("again.html");
    assert_eq!(page.matches("its logs are gone from").count(), 1);
    assert!(!page.contains("<script"));
}

#[test]
fn missing_and_impossible_recordings_are_reported_with_the_fix() {
    let lab = Laboratory::new();
    lab.program("tree.cpp");
    let output = lab.compare("tree.cpp --abi x86-64 --flags -static --rounds 1 --warmup 0 -- 10");
    assert_eq!(output.status, Some(0), "{output:?}");
    let output = lab.widthwise("explain --heap");
    assert_eq!(output.status, Some(2), "{output:?}");
    assert!(output.stderr.contains("--resume") && output.stderr.contains("--heap"), "{output:?}");
    // Results that need no recording are shown anyway, with both fixes.
    let output = lab.widthwise("explain");
    assert_eq!(output.status, Some(0), "{output:?}");
    for words in ["Max RSS (", "x86-64/-static has ", "compare --memory", "--resume .widthwise", "--heap"] {
        assert!(words_of(&output.stdout).contains(words), "{words}: {output:?}");
    }
    assert_eq!(lab.widthwise("explain nobody").status, Some(2));
    let output = lab.widthwise("compare --resume .widthwise/latest --heap");
    assert_eq!(output.status, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("it is static") && output.stdout.contains("--link-options x86-64"),
        "{output:?}"
    );
}

#[test]
fn explain_shows_the_memory_before_the_heap() {
    let lab = Laboratory::new();
    // 24 and 12 bytes a node, 32 and 16 of them the allocator's: 9.6 MB and 4.8 MB.
    lab.write(
        "chain.c",
        "#include <stdlib.h>\n#include <unistd.h>\nstruct node { struct node *next, *other; long number; };\n\
         int main(void) {\n  struct node *head = NULL;\n  for (int i = 0; i < 300000; i++) {\n\
           struct node *node = malloc(sizeof *node);\n    node->next = node->other = head;\n    node->number = i;\n\
           head = node;\n  }\n  usleep(400000);\n  return head == NULL;\n}\n",
    );
    let output =
        lab.compare("chain.c --abi x86-64,x32 --flags '-O2 -g' --rounds 1 --warmup 0 --memory=1 --heap=2");
    assert_eq!(output.status, Some(0), "{output:?}");
    let output = lab.widthwise("explain");
    assert_eq!(output.status, Some(0), "{output:?}");
    let (sentences, tables) = output.stdout.split_once("\nMemory\n").unwrap();
    let words = words_of(sentences);
    assert!(words.contains("x32/-O2 -g compared with x86-64/-O2 -g"), "{output:?}");
    assert!(words.contains("max RSS: ") || words.contains("less memory at its peak"), "{output:?}");
    let (memory, heap) = tables.split_once("\nHeap\n").unwrap();
    // Half of the pointers' bytes are saved in the heap, which is what the list is in.
    let rows: Vec<&str> = memory.lines().skip_while(|line| !line.contains("difference")).skip(1).collect();
    assert!(rows[0].contains("−2.40 MB") && rows[0].contains("pointers in node"), "{output:?}");
    let headers = rows.iter().find(|row| row.contains("glibc's block headers")).unwrap();
    assert!(headers.contains("−1.20 MB"), "{output:?}");
    assert!(words_of(memory).contains("Named causes cover"), "{output:?}");
    assert!(heap.contains("chain.c:"), "{output:?}");
    assert!(!lab.widthwise("explain --heap").stdout.contains("compared with"));
    let alone = lab.widthwise("explain 'x32/-O2 -g'");
    assert!(
        words_of(&alone.stdout).contains("x32/-O2 -g has") && alone.stdout.contains("heap (brk)"),
        "{alone:?}"
    );
}

/// Text wrapped to a terminal's width, in one line.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[test]
fn massif_files_are_read_and_exported_pprof_files_are_read_unchanged() {
    let lab = Laboratory::new();
    built(&lab, "tree.cpp", "-m64");
    let logs = record(&lab, "./tree 3000", &[]);
    let ours = explained(&lab, &logs[0]);
    let log = logs[0].to_str().unwrap();
    assert_eq!(lab.widthwise(&["explain", log, "--pprof", "tree.pb.gz"]).status, Some(0));
    let back = explained(&lab, &lab.path("tree.pb.gz"));
    for what in ["peak_bytes", "peak_blocks", "bytes", "blocks", "left_bytes"] {
        assert_eq!(back["a"][what], ours["a"][what], "{what}");
    }
    let massif =
        "--tool=massif --peak-inaccuracy=0.0 --detailed-freq=1 --massif-out-file=massif.out -q ./tree 3000";
    let done = output_of(
        Command::new("valgrind").current_dir(lab.path(".")).args(shell_words::split(massif).unwrap()),
    );
    assert_eq!(done.status, Some(0), "{done:?}");
    let theirs = explained(&lab, &lab.path("massif.out"));
    assert_eq!(theirs["a"]["peak_bytes"], ours["a"]["peak_bytes"], "{theirs:#}");
    // massif counts no blocks: what is not known is not 0.
    for of in [&theirs["a"], &theirs["sites"][0]["a"]] {
        assert!(of["blocks"].is_null() && of["peak_blocks"].is_null(), "{of:#}");
    }
    let text = lab.widthwise("explain massif.out").stdout;
    assert!(text.contains("at peak") && !text.contains("bytes each"), "{text}");
    // massif writes no folders, but the sites are the program's own lines.
    let source = lab.read("tree.cpp");
    for mark in ["// OWN", "// LIST", "// MAP"] {
        let line = source.lines().position(|line| line.contains(mark)).unwrap() as u64 + 1;
        let at_peak = |listed: &Value| -> u64 {
            let sites = listed["sites"].as_array().unwrap().iter();
            sites.filter(|site| site["line"] == line).map(|site| number(site, "/a/peak_bytes")).sum()
        };
        assert!(at_peak(&ours) > 0, "{mark}: {ours:#}");
        assert_eq!(at_peak(&theirs), at_peak(&ours), "{mark}: {theirs:#}");
    }
    let folded = lab.widthwise(&["explain", log, "--folded", "-"]);
    assert!(folded.stdout.lines().any(|line| line.contains(";main (")), "{folded:?}");
    let formats = ["explain", log, "--html=page.html", "--csv=sites.csv", "--markdown=sites.md"];
    assert_eq!(lab.widthwise(&formats).status, Some(0));
    assert!(lab.read("page.html").contains("<svg"));
    let table = lab.read("sites.csv");
    let mut table = csv::Reader::from_reader(table.as_bytes());
    let column = table.headers().unwrap().iter().position(|name| name == "peak_bytes").unwrap();
    let bytes: u64 = table.records().map(|row| row.unwrap()[column].parse::<u64>().unwrap()).sum();
    assert_eq!(bytes, number(&ours, "/a/peak_bytes"));
    assert!(lab.read("sites.md").contains("median lifetime"));
}

#[test]
fn an_allocator_without_exceptions_is_recorded() {
    let lab = Laboratory::new();
    built(&lab, "tree.cpp", "-m64");
    // mimalloc's operators end the program if memory is exhausted, so this needs a program in which that does not happen.
    let logs = record(&lab, "./tree 3000", &[("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2")]);
    let listed = explained(&lab, &logs[0]);
    let own = listed["sites"].as_array().unwrap().iter().filter(|site| site["module"] == "tree");
    let blocks: u64 = own.map(|site| number(site, "/a/peak_blocks")).sum();
    assert_eq!(blocks, 9000, "{listed:#}");
    assert_eq!(listed["a"]["remarks"].as_array().unwrap().len(), 0, "{listed:#}");
}

#[test]
fn blocks_of_libraries_that_are_loaded_and_unloaded_belong_to_each_library() {
    let lab = Laboratory::new();
    for (name, size) in [("one", 1000), ("two", 2000)] {
        lab.write(
            &format!("{name}.c"),
            &format!("#include <stdlib.h>\nvoid *ask_{name}(void) {{ void *block = malloc({size}); return block; }}\n"),
        );
        lab.gcc(&format!("-g -O0 -shared -fPIC {name}.c -o lib{name}.so"));
    }
    lab.write(
        "opens.c",
        "#include <dlfcn.h>\n#include <stddef.h>\n\
         static void *ask(const char *library, const char *function) {\n\
           void *module = dlopen(library, RTLD_NOW);\n\
           if (module == NULL) return NULL;\n\
           void *(*asks)(void) = (void *(*)(void))dlsym(module, function);\n\
           void *block = asks();\n  dlclose(module);\n  return block;\n}\n\
         int main(void) {\n  for (int i = 0; i < 10; i++) {\n\
           if (!ask(\"./libone.so\", \"ask_one\") || !ask(\"./libtwo.so\", \"ask_two\")) return 1;\n  }\n  return 0;\n}\n",
    );
    lab.gcc("-g -O0 opens.c -o opens");
    let listed = listed(&lab, "./opens");
    for (function, bytes) in [("ask_one", 10_000), ("ask_two", 20_000)] {
        let site = listed["sites"].as_array().unwrap().iter().find(|site| site["function"] == function);
        let site = site.unwrap_or_else(|| panic!("no {function}: {listed:#}"));
        assert_eq!((number(site, "/a/blocks"), number(site, "/a/bytes")), (10, bytes), "{listed:#}");
    }
}

#[test]
fn a_plugin_of_a_relative_path_is_the_file_that_was_loaded_and_the_recorder_is_in_no_stack() {
    let lab = Laboratory::new();
    std::fs::create_dir(lab.path("inside")).unwrap();
    lab.write(
        "plug.c",
        "#include <stdlib.h>\nvoid *ask(void) { void *volatile block = malloc(1000); return block; }\n\
         __attribute__((destructor)) void last(void) { void *volatile block = malloc(2000); (void)block; }\n",
    );
    lab.write("other.c", "char room[5000];\nint other(void) { return 1; }\n");
    lab.write(
        "opens.c",
        "#include <dlfcn.h>\n#include <pthread.h>\n#include <stddef.h>\n#include <unistd.h>\n\
         static void *use(void *module) {\n  return ((void *(*)(void))dlsym(module, \"ask\"))();\n}\n\
         int main(void) {\n  pthread_t thread;\n  void *block;\n  if (chdir(\"inside\") != 0) return 1;\n\
           void *module = dlopen(\"./plug.so\", RTLD_NOW);\n  if (module == NULL || chdir(\"/\") != 0) return 2;\n\
           pthread_create(&thread, NULL, use, module);\n  pthread_join(thread, &block);\n\
           return block == NULL || dlclose(module);\n}\n",
    );
    for (abi, options) in ABIS {
        lab.gcc(&format!("{options} -O0 -shared -fPIC other.c -o plug.so"));
        lab.gcc(&format!("{options} -O0 -shared -fPIC plug.c -o inside/plug.so"));
        lab.gcc(&format!("{options} -O0 -g -pthread opens.c -o opens"));
        let log = record(&lab, "./opens", &[]).remove(0);
        let output = lab.widthwise(&["explain", "--folded", "-", log.to_str().unwrap()]);
        assert_eq!((output.status, output.stderr.as_str()), (Some(0), ""), "{abi}: {output:?}");
        for (function, bytes) in [("ask", 1000), ("last", 2000)] {
            let end = format!(";{function} {bytes}");
            assert!(output.stdout.lines().any(|line| line.ends_with(&end)), "{abi}: {}", output.stdout);
        }
        assert!(!output.stdout.contains("hooks.c"), "{abi}: {}", output.stdout);
    }
}

#[test]
fn logs_of_a_process_tree_are_one_side_and_those_of_two_runs_are_compared() {
    let lab = Laboratory::new();
    // A raw system call closes the log's descriptor, and without a campaign no file has a name that both programs know.
    lab.write(
        "again.c",
        "#define _GNU_SOURCE\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
         int main(int count, char **words) {\n  void *volatile block = malloc(1000);\n  block = malloc(2000);\n\
           if (count < 2 || block == NULL) return block == NULL;\n\
           for (int fd = 3; fd < 5000; fd++) syscall(SYS_close, fd);\n\
           char *next[] = {words[0], NULL};\n  execv(words[0], next);\n  return 9;\n}\n",
    );
    lab.gcc("-g -fno-builtin again.c -o again");
    let explain = |logs: &[PathBuf]| {
        let mut words = vec!["explain", "--json"];
        words.extend(logs.iter().map(|log| log.to_str().unwrap()));
        let output = lab.widthwise(&words);
        assert_eq!(output.status, Some(0), "{output:?}");
        output.json()
    };
    let tree = record(&lab, "./again once", &[]);
    assert_eq!(tree.len(), 2);
    let listed = explain(&tree);
    // One process, whose programs had 3000 bytes each, one after the other.
    assert_eq!(
        ["blocks", "processes", "peak_bytes"].map(|of| number(&listed, &format!("/a/{of}"))),
        [4, 1, 3000]
    );
    assert_eq!(listed["b"], Value::Null);
    assert_eq!(listed["a"]["remarks"], Value::Array(Vec::new()), "{listed:#}");
    // A second run.
    let kept: Vec<PathBuf> = tree
        .iter()
        .enumerate()
        .map(|(index, log)| {
            let path = lab.path(&format!("kept.{index}"));
            std::fs::rename(log, &path).unwrap();
            path
        })
        .collect();
    let other = record(&lab, "./again", &[]);
    let listed = explain(&[&kept[..], &other[..]].concat());
    assert_eq!((number(&listed, "/a/blocks"), number(&listed, "/b/blocks")), (4, 2), "{listed:#}");
    let third: Vec<PathBuf> = [&kept[..], &other[..]].concat();
    std::fs::rename(&other[0], lab.path("other")).unwrap();
    let more = record(&lab, "./again", &[]);
    let mut words = vec!["explain"];
    let other = lab.path("other");
    words.extend(third[..2].iter().chain([&other, &more[0]]).map(|log| log.to_str().unwrap()));
    lab.widthwise(&words).refuses(2, &["3 recordings"]);
}

#[test]
fn of_a_variant_that_is_not_compared_no_heap_is_recorded_and_the_advice_is_another_campaign() {
    let lab = Laboratory::new();
    lab.write(
        "tells.c",
        "#include <stdio.h>\n#include <stdlib.h>\nvoid *volatile kept;\n\
         int main(void) {\n  kept = malloc(100000);\n  return printf(\"%zu\\n\", sizeof(void *)) < 0;\n}\n",
    );
    let words = "tells.c --abi x86-64,i386 --rounds 1 --warmup 0";
    let compared = |more: &str| lab.compare(&format!("{words} {more}"));
    assert_eq!(compared("").status, Some(1));
    let output = lab.widthwise("compare --resume .widthwise/latest --heap=2");
    assert_eq!(output.status, Some(1), "{output:?}");
    let reason = "not compared, since its output differs from the baseline's";
    assert!(words_of(&output.stderr).contains(&format!("no --heap runs of i386: {reason}")), "{output:?}");
    let page = lab.read(".widthwise/latest/report.html");
    assert!(page.contains("the heap was not recorded (not compared") && !page.contains("--resume"), "{page}");
    for words in ["explain", "explain --heap x86-64 i386"] {
        let output = lab.widthwise(words);
        let text = words_of(&format!("{}{}", output.stdout, output.stderr));
        assert!(text.contains(reason) && text.contains("--allow-different-output"), "{words}: {text}");
        assert!(!text.contains("--resume"), "{words}: {text}");
    }
    // The advice works.
    let output = compared("--heap=2 --allow-different-output");
    assert_eq!(output.status, Some(0), "{output:?}");
    let output = lab.widthwise("explain --heap x86-64 i386");
    assert!(output.status == Some(0) && output.stdout.contains("peak heap"), "{output:?}");
}
