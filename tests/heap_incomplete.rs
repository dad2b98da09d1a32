//! `explain` with incomplete recordings, and with requests that cannot be met.

use std::path::PathBuf;
use std::process::Command;

use crate::laboratory;
use crate::laboratory::{unfolded, Laboratory};
use crate::log_writer::{block, Described, LogWriter};
use serde_json::{json, Value};

/// A log of a program that allocates this number of blocks of 16 bytes.
fn log(described: &Described, blocks: usize) -> Vec<u8> {
    let mut log = LogWriter::default();
    let process = log.process(described);
    log.stream(process, 0, (0..blocks).map(|_| block(8, 0)));
    log.file()
}

/// A folder with a recording for each of these logs.
fn folder(lab: &Laboratory, name: &str, logs: &[Vec<u8>]) {
    std::fs::create_dir(lab.path(name)).unwrap();
    for (number, log) in logs.iter().enumerate() {
        std::fs::write(lab.path(name).join(format!("log.{number}")), log).unwrap();
    }
}

fn text(lab: &Laboratory, words: &str) -> String {
    let printed = lab.widthwise(&format!("explain {words}"));
    assert_eq!(printed.status, Some(0), "{words}: {printed:?}");
    unfolded(&printed.stdout)
}

fn json(lab: &Laboratory, words: &str) -> Value {
    lab.widthwise(&format!("explain --json {words}")).json()
}

/// Neither side is called smaller, with this reason, in text, JSON and flame graph, in both orders.
fn is_withheld(lab: &Laboratory, incomplete: &str, whole: &str, reason: &str) {
    for sides in [format!("{incomplete} {whole}"), format!("{whole} {incomplete}")] {
        let text = text(lab, &sides);
        for claim in [" smaller than", " larger than", " smaller.", " larger.", "% less", "% more", "−", "+"]
        {
            assert!(!text.contains(claim), "{sides}: {claim:?} in {text}");
        }
        assert!(text.contains("Neither is called smaller"), "{text}");
        assert!(
            text.contains(&format!("{incomplete} has at least "))
                || text.contains(&format!("{incomplete} at least ")),
            "{text}"
        );
        assert!(
            !text.contains(&format!("{whole} has at least "))
                && !text.contains(&format!("{whole} at least ")),
            "{text}"
        );
        assert!(text.contains(&format!("the recording of {incomplete} is incomplete")), "{text}");
        assert!(text.contains(reason), "{reason}: {text}");
        let reported = json(lab, &sides);
        let differences = reported["differences"].as_array().unwrap();
        assert!(!differences.is_empty(), "{reported:#}");
        for one in differences {
            assert_eq!((&one["verdict"], &one["ratio"]), (&json!("withheld"), &Value::Null), "{one:#}");
            assert!(one["reason"].as_str().unwrap().contains(reason), "{one:#}");
        }
        let (of_incomplete, of_whole) =
            if reported["a"]["name"] == incomplete { ("a", "b") } else { ("b", "a") };
        assert!(reported[of_incomplete]["incomplete"][0].as_str().unwrap().contains(reason), "{reported:#}");
        assert_eq!(reported[of_whole]["incomplete"], json!([]), "{reported:#}");
        let printed = lab.widthwise(&format!("explain {sides} --html=-"));
        assert!(printed.stdout.contains("sizes are lower bounds"), "{sides}: {}", &printed.stdout[..2000]);
    }
    assert!(text(lab, incomplete).contains(&format!("{incomplete}'s peak heap is at least ")));
}

#[test]
fn an_incomplete_recording_is_called_neither_smaller_nor_larger() {
    let lab = Laboratory::new();
    let plain = Described::default();
    let whole = log(&plain, 20_000);
    folder(&lab, "whole", &[whole.clone(), whole.clone()]);
    let small = log(&plain, 10_000);
    let mut cut = whole.clone();
    // Within the last chunk, whose records would otherwise be read as complete.
    cut.truncate(whole.len() - 60_000);
    let mut damaged = whole.clone();
    let record = damaged.len() - 65_536 + 32;
    damaged[record] = 5;
    let lost = Described { lost: [0, 0, 3, 0, 0, 0, 0, 0], ..plain.clone() };
    let killed = Described { state: 4 | 16, ..plain.clone() };
    let own = Described { state: 1 | 4 | 8 | 16, ..plain.clone() };
    let length = cut.len();
    for (name, log, reason) in [
        ("cut", cut, format!("the file is cut off at byte {length}")),
        ("damaged", damaged, "the records of process 100 are damaged".to_owned()),
        ("lost", log(&lost, 10_000), "3 events of process 100 were not recorded".to_owned()),
        ("killed", log(&killed, 10_000), "process 100 was killed, or had not ended yet".to_owned()),
        ("own", log(&own, 10_000), "process 100 has a malloc of its own".to_owned()),
    ] {
        folder(&lab, name, &[log.clone(), log.clone()]);
        is_withheld(&lab, name, "whole", &reason);
        // One incomplete recording of three suffices.
        let one = format!("one-{name}");
        folder(&lab, &one, &[small.clone(), log, small.clone()]);
        is_withheld(&lab, &one, "whole", "recording 2 of 3: ");
    }
    // Complete ones are compared.
    folder(&lab, "small", &[small.clone(), small]);
    assert!(text(&lab, "whole small").contains("(50 %) smaller than whole's"));
}

/// Records a command without a campaign, into a folder.
fn record(lab: &Laboratory, folder: &str, words: &[&str]) {
    let preload = lab.widthwise("explain --preload").stdout.trim().to_owned();
    std::fs::create_dir_all(lab.path(folder)).unwrap();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(lab.path("."));
    command.env("LD_PRELOAD", preload).env("WIDTHWISE_HEAP_LOG", lab.path(folder).join("log"));
    assert_eq!(laboratory::output_of(&mut command).stderr, "", "{words:?}");
}

#[test]
fn a_process_killed_by_a_signal_is_distinguished_from_exit_and_exec() {
    let lab = Laboratory::new();
    lab.write(
        "ends.c",
        "#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n\
         #include <unistd.h>\n\
         static void *leave(void *none) { exit(0); return none; }\n\
         int main(int count, char **words) {\n  void *volatile block = malloc(1000);\n  pthread_t thread;\n\
           const char *way = words[1];\n  (void)count;\n\
           if (!strcmp(way, \"kill\")) raise(SIGKILL);\n\
           if (!strcmp(way, \"_exit\")) _exit(0);\n  if (!strcmp(way, \"_Exit\")) _Exit(0);\n\
           if (!strcmp(way, \"quick_exit\")) quick_exit(0);\n\
           if (!strcmp(way, \"daemon\")) { if (daemon(1, 1)) return 9; block = malloc(50); }\n\
           if (!strcmp(way, \"killed-daemon\")) { if (daemon(1, 1)) return 9; block = malloc(50); raise(SIGKILL); }\n\
           if (!strcmp(way, \"exec\")) execl(words[0], words[0], \"return\", NULL);\n\
           if (!strcmp(way, \"thread\")) { pthread_create(&thread, NULL, leave, NULL); pthread_join(thread, NULL); }\n\
           if (!strcmp(way, \"last-thread\")) pthread_exit(NULL);\n\
           if (!strcmp(way, \"child\")) { if (fork() == 0) { block = malloc(50); _exit(0); } wait(NULL); }\n\
           if (!strcmp(way, \"killed-child\")) { if (fork() == 0) { block = malloc(50); raise(SIGKILL); } wait(NULL); }\n\
           if (!strcmp(way, \"vfork\")) { if (vfork() == 0) _exit(0); wait(NULL); raise(SIGKILL); }\n\
           return block == NULL;\n}\n",
    );
    for (abi, options) in [("x86-64", "-m64"), ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu")] {
        lab.gcc(&format!("-w -g -fno-builtin -pthread {options} ends.c -o ends"));
        for (way, is_killed) in [
            ("return", false),
            ("kill", true),
            ("_exit", false),
            ("_Exit", false),
            ("quick_exit", false),
            ("daemon", false),
            ("killed-daemon", true),
            ("exec", false),
            ("thread", false),
            ("last-thread", false),
            ("child", false),
            ("killed-child", true),
            ("vfork", true),
        ] {
            let folder = format!("{abi}-{way}");
            record(&lab, &folder, &["./ends", way]);
            let reported = json(&lab, &folder);
            let reasons = reported["a"]["incomplete"].as_array().unwrap();
            assert_eq!(reasons.len(), usize::from(is_killed), "{folder}: {reported:#}");
            assert!(reported["a"]["peak_bytes"].as_u64().unwrap() >= 1000, "{folder}: {reported:#}");
        }
    }
}

#[test]
fn a_campaign_with_a_damaged_log_withholds_heap_differences() {
    let lab = Laboratory::new();
    lab.program("unsteady.c");
    lab.gcc("-g -O1 -fno-builtin -pthread unsteady.c -o one");
    lab.gcc("-g -O1 -fno-builtin -pthread -DMORE=2 unsteady.c -o another-one");
    let printed = lab.compare(
        "--binary one=./one --binary other=./another-one --run '{binary} fixed' --warmup 0 --metric cpu,max_rss \
         --rounds 1 --heap=2",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert!(text(&lab, "--heap").contains("larger than one's"));
    let folder = lab.campaign().join("heap");
    let mut logs: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains("other")
                && path.extension().is_some_and(|end| end == "zst")
            {
                logs.push(path);
            }
        }
    }
    logs.sort();
    assert_eq!(logs.len(), 2, "{logs:?}");
    let bytes = zstd::decode_all(std::fs::File::open(&logs[0]).unwrap()).unwrap();
    let packed = zstd::encode_all(&bytes[..bytes.len() - 65_536], 1).unwrap();
    std::fs::write(&logs[0], packed).unwrap();
    let text = text(&lab, "--heap");
    assert!(!text.contains("larger than one's") && text.contains("Neither is called smaller"), "{text}");
    assert!(text.contains("at least 4.40 MB"), "{text}");
    let reported = json(&lab, "--heap");
    assert_eq!(reported["differences"][0]["verdict"], "withheld", "{reported:#}");
    let printed = lab.widthwise("report --html=page.html");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let page = unfolded(&lab.read("page.html"));
    assert!(!page.contains("other beside one"), "a difference is drawn");
    assert!(page.contains("<th scope=\"row\">other</th><td>at least 4.40 MB"), "{page}");
    assert!(page.contains("the recording of other is incomplete: recording "), "{page}");
}

#[test]
fn a_file_that_is_not_a_recording_is_refused_with_its_name_and_kind() {
    let lab = Laboratory::new();
    let header = &LogWriter::of_one_process().file()[..4096];
    let mut overwritten = LogWriter::of_one_process().file();
    overwritten[4096..].fill(0xa5);
    let files: [(&str, &[u8], &str); 8] = [
        ("elf", b"\x7fELF\x02\x01\x01\0\0\0", "it is a program or library (ELF)"),
        ("random", b"\xd2\xa1\x51\x9f\x52\xa4\xcd\x77\x01", "at byte 0 it has d2 a1 51 9f 52 a4 cd 77"),
        ("empty", b"", "it is empty"),
        ("report.json", b"{\"schema\": 2}", "it is JSON"),
        ("header", header, "cut off at byte 4096"),
        ("overwritten", &overwritten, "the chunk at byte 4096 begins with 0xa5a5a5a5"),
        ("massif", b"desc: x\ncmd: y\ntime_unit: i\n", "has no stacks in it"),
        ("heaptrack", b"v 10500 3\n", "has no allocation in it"),
    ];
    std::fs::write(lab.path("whole.log"), log(&Described::default(), 3)).unwrap();
    for (name, bytes, what) in files {
        std::fs::write(lab.path(name), bytes).unwrap();
        for words in
            [name.to_owned(), format!("--heap {name}"), format!("--json {name}"), format!("whole.log {name}")]
        {
            let printed = lab.widthwise(&format!("explain {words}"));
            assert_eq!((printed.status, printed.stdout.as_str()), (Some(2), ""), "{words}: {printed:?}");
            // A word after --json may be meant as its value: a second line shows how to write that.
            let lines = 1 + usize::from(words.starts_with("--json"));
            assert_eq!(printed.stderr.lines().count(), lines, "{words}: {printed:?}");
            for part in [name, what, "ecord "] {
                assert!(printed.stderr.contains(part), "{words}: {part:?}: {printed:?}");
            }
        }
    }
    for (folder, words) in [
        ("nothing", ["nothing is a folder without a log", "WIDTHWISE_HEAP_LOG"]),
        ("notes", ["notes/README", "not a heap log"]),
    ] {
        std::fs::create_dir(lab.path(folder)).unwrap();
        std::fs::write(lab.path("notes/README"), "hello").unwrap_or_default();
        lab.widthwise(&format!("explain {folder}")).refuses(2, &words);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_known_names() {
    let lab = Laboratory::new();
    std::fs::write(lab.path("a.log"), log(&Described::default(), 3)).unwrap();
    for words in ["nosuch", "a.log nosuch", "nosuch a.log", "--heap a.log nosuch"] {
        lab.widthwise(&format!("explain {words}")).refuses(2, &["no file or folder \"nosuch\""]);
    }
    lab.program("unsteady.c");
    lab.gcc("-g -fno-builtin -pthread unsteady.c -o program");
    let printed = lab.compare(
        "--binary one=./program --binary other=./program --run '{binary} fixed' --rounds 1 --metric cpu",
    );
    assert_eq!(printed.status, Some(0), "{printed:?}");
    for words in ["nosuch", "one nosuch", "a.log nosuch", "--heap nosuch other", "--json one nosuch"] {
        let printed = lab.widthwise(&format!("explain {words}"));
        printed.refuses(2, &["no file or variant \"nosuch\"", "one, other"]);
    }
    let printed = lab.widthwise("explain one a.log");
    printed.refuses(2, &["\"a.log\" is a file, and another name is a variant"]);
}

#[test]
fn flags_that_cannot_be_met_are_refused() {
    let lab = Laboratory::new();
    lab.write(
        "through.c",
        "#include <stdlib.h>\nvoid *xmalloc(size_t n) { return malloc(n); }\n\
         int main(void) { void *volatile block = xmalloc(5000); return block == NULL; }\n",
    );
    lab.gcc("-g -O0 through.c -o through");
    record(&lab, "logs", &["./through"]);
    assert!(text(&lab, "logs --skip-frames xmalloc").contains("main through.c:3"));
    assert!(text(&lab, "logs --skip-frames xmal*").contains("main through.c:3"));
    lab.widthwise("explain logs --skip-frames xmaloc")
        .refuses(2, &["--skip-frames xmaloc", "no stack goes through", "xmalloc"]);
    lab.widthwise("explain logs --skip-frames xmalloc --skip-frames nosuchfn")
        .refuses(2, &["--skip-frames nosuchfn", "no stack"]);
    for (flags, words) in [
        ("--folded - --json", ["--folded and --json", "both write"]),
        ("--pprof - --folded -", ["--folded and --pprof", "both write"]),
        ("--html=- --json", ["--html and --json", "both write"]),
    ] {
        let printed = lab.widthwise(&format!("explain logs {flags}"));
        assert_eq!(printed.stdout, "", "{flags}");
        printed.refuses(2, &[words[0], words[1], "standard output"]);
    }
    // A file and standard output do not conflict.
    let printed = lab.widthwise("explain logs --folded stacks --json");
    assert_eq!(printed.json()["a"]["peak_bytes"], 5000);
    assert!(lab.read("stacks").contains("xmalloc"));
}

#[test]
fn sentences_are_correct_for_one_block_for_small_sites_and_for_mapped_memory() {
    let lab = Laboratory::new();
    lab.write(
        "small.c",
        "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n#ifndef MORE\n#define MORE 0\n#endif\n\
         #ifndef MAPPED\n#define MAPPED 0\n#endif\n\
         int main(void) {\n  void *volatile block = malloc(5000 + MORE);\n\
           if (MAPPED) {\n    char *own = mmap(0, MAPPED << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
             memset(own, 1, MAPPED << 20);\n    munmap(own, MAPPED << 20);\n  }\n  return block == NULL;\n}\n",
    );
    for (name, options) in [("plain", ""), ("more", "-DMORE=100"), ("mapped", "-DMAPPED=64")] {
        lab.gcc(&format!("-g {options} small.c -o program"));
        for _ in 0..2 {
            record(&lab, name, &["./program"]);
        }
    }
    let alone = text(&lab, "plain");
    assert!(alone.contains("plain's peak heap is 5.00 kB in 1 block"), "{alone}");
    assert!(alone.contains("Its only block is never freed."), "{alone}");
    assert!(!alone.contains("1 blocks") && !alone.contains("mmap"), "{alone}");
    let two = text(&lab, "plain more");
    assert!(two.contains("no site differs by 1 KiB or more") && !two.contains("small.c:"), "{two}");
    let mapped = text(&lab, "mapped");
    assert!(mapped.contains("mmap is no part of its heap: mapped maps up to 67.1 MB with mmap"), "{mapped}");
    // A campaign also has max RSS.
    let printed = lab
        .compare("--binary mapped=./program --binary other=./program --run '{binary}' --rounds 1 --heap=2");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let both = text(&lab, "--heap mapped other");
    assert!(
        both.contains("of max RSS and a peak heap of 5.00 kB, and maps up to 67.1 MB with mmap"),
        "{both}"
    );
    // The missing facts are named, with the program that they belong to.
    for (name, options, remark) in [
        ("no-lines", "", "program was built without -g: the lines of its functions are not known"),
        ("no-names", "-s", "program is stripped: neither its functions nor their lines are known"),
    ] {
        lab.gcc(&format!("{options} small.c -o program"));
        record(&lab, name, &["./program"]);
        assert!(text(&lab, name).contains(remark), "{remark}: {}", text(&lab, name));
    }
    // A program without a heap has no site, and there is no comparison.
    lab.write("none.c", "int main(void) { return 0; }\n");
    lab.gcc("none.c -o none");
    record(&lab, "none-logs", &["./none"]);
    let none = text(&lab, "none-logs");
    assert!(none.contains("no site has memory at the peak") && !none.contains("differs"), "{none}");
}

/// A file of massif: `bytes` from one call in `function`.
fn massif(function: &str, bytes: u64) -> String {
    format!(
        "desc: x\ncmd: ./a\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=100\nmem_heap_B={bytes}\n\
         mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\nn1: {bytes} (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
         n1: {bytes} 0x4011: {function} (a.c:3)\n  n0: {bytes} 0x4022: main (a.c:9)\n"
    )
}

#[test]
fn two_files_of_massif_have_no_number_of_blocks() {
    let lab = Laboratory::new();
    lab.write("massif.1", &massif("fill", 2_000_000));
    lab.write("massif.2", &massif("fill", 1_000_000));
    let text = unfolded(&lab.widthwise("explain massif.1 massif.2").stdout);
    assert!(text.contains("massif.1 has 2.00 MB, massif.2 1.00 MB."), "{text}");
    assert!(!text.contains("block"), "{text}");
}

#[test]
fn a_file_of_heaptrack_has_no_bytes_of_the_allocator() {
    let lab = Laboratory::new();
    lab.write("heaptrack", "v 10500 3\nX ./a\ns 1 a\ns 4 fill\ni 4011 1 2\nt 1 0\na 40 1\n+ 0\n");
    let printed = lab.widthwise("explain --json heaptrack");
    let document = printed.json();
    for of in [&document["a"], &document["a"]["recordings"][0], &document["sites"][0]["a"]] {
        assert!(of["peak_bytes"] == 64 && of["peak_chunk_bytes"].is_null(), "{document:#}");
    }
}

#[test]
fn names_in_files_of_other_profilers_are_harmless_on_a_terminal() {
    let lab = Laboratory::new();
    lab.write("massif.\u{1b}[2J", &massif("\u{1b}]0;fill\u{7}", 2_000_000));
    let text = lab.widthwise("explain 'massif.\u{1b}[2J'").stdout;
    assert!(text.contains("massif.\\x1b[2J's peak heap is 2.00 MB"), "{text:?}");
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
}
