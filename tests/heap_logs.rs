//! `explain` with heap logs of several processes, logs without some events, and files that resemble logs.

use std::fs::File;
use std::io::Write;

use crate::laboratory::{CommandOutput, Laboratory};
use crate::log_writer::{block, exec, free, module, node, number, Described, LogWriter};
use serde_json::{json, Value};

fn explained(lab: &Laboratory, words: &[&str]) -> Value {
    let printed = lab.widthwise(&[&["explain", "--json"], words].concat());
    assert_eq!(printed.status, Some(0), "{printed:?}");
    printed.json()
}

fn remarks(reported: &Value) -> Vec<&str> {
    reported["a"]["remarks"].as_array().unwrap().iter().map(|remark| remark.as_str().unwrap()).collect()
}

fn put(lab: &Laboratory, name: &str, bytes: &[u8]) {
    std::fs::write(lab.path(name), bytes).unwrap();
}

/// A shell that forks a child and starts programs.
fn tree() -> LogWriter {
    let mut log = LogWriter::default();
    let shell =
        log.process(&Described { lost: [3, 4, 0, 0, 0, 0, 0, 0], anonymous: 70_000, ..Described::default() });
    let executed =
        [exec(102, 2, "/bin/seen"), exec(103, 2, "/bin/true"), exec(104, 0, "/no"), exec(104, 1, "/no")];
    log.records(shell, 0, 0, &[block(8, 0), block(8, 0), block(8, 0), executed.concat()].concat());
    let child =
        Described { process: 101, parent: shell, parent_number: 100, began_ns: 2000, ..Described::default() };
    let child =
        log.process(&Described { inherited: 3, lost: [0, 0, 1, 0, 0, 0, 0, 0], state: 4 | 16, ..child });
    log.records(child, 0, 0, &[number(3), block(9, 0), free(0), free(-1), free(3)].concat());
    let seen = Described {
        process: 102,
        parent_number: 100,
        began_ns: 3000,
        program: "/bin/seen",
        ..Described::default()
    };
    let seen = log.process(&seen);
    log.records(seen, 0, 0, &block(1, 0));
    log
}

#[test]
fn a_log_of_a_process_tree_lists_every_process_and_what_is_missing() {
    let lab = Laboratory::new();
    put(&lab, "tree.log", &tree().file());
    let reported = explained(&lab, &["tree.log"]);
    let side = &reported["a"];
    assert_eq!(
        [
            &side["processes"],
            &side["blocks"],
            &side["peak_bytes"],
            &side["left_blocks"],
            &side["lost_events"]
        ],
        [3, 5, 80, 4, 8]
    );
    let process = |number: u32, parent: Value, program: &str, left: u32, lost: u32, ended: bool| {
        let blocks = if number == 100 { 3 } else { 1 };
        json!({"process": number, "parent": parent, "program": program, "blocks": blocks, "bytes": 16 * blocks,
               "peak_bytes": 16 * blocks, "peak_blocks": blocks, "left_blocks": left, "left_bytes": 16 * left,
               "lost_events": lost, "ended": ended})
    };
    let expected = [
        process(100, Value::Null, "/srv/program", 3, 7, true),
        process(101, json!(100), "/srv/program", 0, 1, false),
        process(102, json!(100), "/bin/seen", 1, 0, true),
    ];
    assert_eq!(side["by_process"], json!(expected));
    assert_eq!(
        remarks(&reported),
        [
            "process 100: 7 events were not recorded: the disk was full (3); the limit on file sizes (RLIMIT_FSIZE) was \
             reached (4). So its sums and its peak are lower bounds",
            "process 101: 1 event was not recorded: the size that was reserved for the log was reached. So its sums and its \
             peak are lower bounds",
            "process 101: 1 block was released that had come from elsewhere",
            "process 103 executed /bin/true, which left no log: it is static, set-user-ID, or could not load the recorder",
            "70.0 kB of the recorder's own memory count as the program's RSS",
        ]
    );
}

#[test]
fn a_few_of_many_processes_and_programs_are_named_and_the_others_counted() {
    let lab = Laboratory::new();
    let mut log = LogWriter::default();
    for process in 100..130 {
        let process =
            log.process(&Described { process, lost: [0, 0, 0, 2, 0, 0, 0, 0], ..Described::default() });
        log.records(process, 0, 0, &[exec(1000 + process, 2, "/bin/true"), block(1, 0)].concat());
    }
    put(&lab, "many.log", &log.file());
    let reported = explained(&lab, &["many.log"]);
    let remarks = remarks(&reported);
    assert_eq!(remarks.len(), 11 + 6, "{remarks:?}");
    assert_eq!((remarks[10], remarks[16]), ("and likewise 20 more", "and likewise 25 more"));
    assert_eq!(reported["a"]["lost_events"], 60);
}

#[test]
fn one_log_is_shown_and_two_are_compared() {
    let lab = Laboratory::new();
    put(&lab, "a.log", &tree().file());
    let mut other = LogWriter::of_one_process();
    other.records(0, 0, 0, &block(1, 0));
    put(&lab, "b.log", &other.file());
    let reported = explained(&lab, &["a.log", "b.log"]);
    assert_eq!([&reported["a"]["processes"], &reported["b"]["processes"]], [3, 1]);
    assert_eq!([&reported["a"]["blocks"], &reported["b"]["blocks"]], [5, 1]);
}

#[test]
fn a_log_gives_the_same_result_in_a_file_of_a_terabyte_and_packed() {
    let lab = Laboratory::new();
    let bytes = tree().file();
    put(&lab, "plain.log", &bytes);
    put(&lab, "large.log", &bytes);
    // The file system limits this: tmpfs has no files larger than its nominal size.
    let large = File::options().write(true).open(lab.path("large.log")).unwrap();
    large.set_len(1 << 40).or_else(|_| large.set_len(1 << 34)).unwrap();
    put(&lab, "packed.log", &zstd::encode_all(bytes.as_slice(), 3).unwrap());
    let plain = explained(&lab, &["plain.log"])["a"]["by_process"].clone();
    for name in ["large.log", "packed.log"] {
        assert_eq!(explained(&lab, &[name])["a"]["by_process"], plain, "{name}");
    }
}

#[test]
fn a_file_in_the_folder_of_explain_is_no_module_of_a_relative_path() {
    let lab = Laboratory::new();
    lab.write("plug.c", "int wrong(int n) { __asm__(\".skip 8192\"); return n; }\n");
    lab.gcc("-g -shared -fPIC plug.c -o plug.so");
    let mut log = LogWriter::of_one_process();
    let records = [module(0, 0, 1 << 20, "./plug.so"), node(0, 0x2000), block(8, 1)].concat();
    log.records(0, 0, 0, &records);
    put(&lab, "plug.log", &log.file());
    let reported = explained(&lab, &["plug.log"]);
    assert_eq!(reported["sites"][0]["function"], "a function without a name", "{reported:#}");
    assert_eq!(
        remarks(&reported),
        ["./plug.so could not be read, so its functions have no names: its recorded path is relative, to a folder that is not known"]
    );
}

/// The output of `explain` for a file that it refuses.
fn refused(lab: &Laboratory, name: &str) -> CommandOutput {
    let printed = lab.widthwise(&["explain", name]);
    assert_eq!((printed.status, printed.stdout.as_str()), (Some(2), ""), "{printed:?}");
    assert_eq!(printed.stderr.lines().count(), 1, "{printed:?}");
    printed
}

#[test]
fn a_packed_log_larger_than_its_stated_size_is_refused_in_one_line() {
    let lab = Laboratory::new();
    let mut packed = zstd::Encoder::new(File::create(lab.path("bomb.zst")).unwrap(), 1).unwrap();
    packed.write_all(&LogWriter::of_one_process().file()).unwrap();
    for _ in 0..1000 {
        packed.write_all(&vec![0; 1 << 20]).unwrap();
    }
    packed.finish().unwrap();
    let printed = refused(&lab, "bomb.zst");
    assert!(
        printed.stderr.contains("bomb.zst: unpacks to more than the 69632 bytes that its header says"),
        "{printed:?}"
    );
    put(&lab, "half.zst", &zstd::encode_all(tree().file().as_slice(), 3).unwrap()[..100]);
    refused(&lab, "half.zst");
}

#[test]
fn a_log_of_another_version_is_refused_in_one_line_packed_or_not() {
    let lab = Laboratory::new();
    let mut bytes = tree().file();
    bytes[8] = 2;
    put(&lab, "old.log", &bytes);
    put(&lab, "old.zst", &zstd::encode_all(bytes.as_slice(), 3).unwrap());
    for name in ["old.log", "old.zst"] {
        let printed = refused(&lab, name);
        let words = format!("{name} is a heap log of version 2, and this program reads version 3");
        assert!(printed.stderr.contains(&words), "{printed:?}");
    }
}
