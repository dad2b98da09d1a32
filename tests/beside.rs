//! What x32 programs are answered under the runtime, beside what the same programs are answered as x86-64 ones, on the file
//! systems and devices of this machine, which no record of another kernel knows.

mod laboratory;

use std::process::Command;

use laboratory::{here, repository, said, Laboratory};

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu";

/// What the program says as an x86-64 one and as an x32 one, with the same argument.
fn both(lab: &Laboratory, program: &str, argument: &str) -> [String; 2] {
    let source = here(&format!("programs/{program}.c"));
    let source = source.display();
    lab.gcc(&format!("-O1 {source} -o {program}-64"));
    lab.gcc(&format!("{X32} -O1 {source} -o {program}-x32"));
    let native =
        said(Command::new(lab.path(&format!("{program}-64"))).arg(argument).current_dir(lab.path("")));
    let x32 = said(&mut lab.command(&format!("exec ./{program}-x32 {argument}")));
    assert_eq!((native.status, x32.status), (Some(0), Some(0)), "{native:?} {x32:?}");
    [native.stdout, x32.stdout]
}

#[test]
fn every_entry_of_a_directory_is_found_again_at_its_place() {
    let lab = Laboratory::new();
    for (folder, files) in [("few", 3), ("many", 2000)] {
        std::fs::create_dir(lab.path(folder)).unwrap();
        for file in 0..files {
            lab.write(&format!("{folder}/file-{file}"), "");
        }
        let [native, x32] = both(&lab, "folders", folder);
        assert!(native.starts_with(&format!("{} entries, 0 wrong", files + 2)), "{native}");
        assert_eq!(x32, native);
    }
    // A file system without hashes.
    let [native, x32] = both(&lab, "folders", "/proc/self/fdinfo");
    assert_eq!(x32, native);
}

#[test]
fn requests_are_answered_as_those_of_64_bit_programs() {
    let lab = Laboratory::new();
    let [native, x32] = both(&lab, "requests", "file");
    assert!(native.contains("SIOCGSTAMP: done"), "{native}");
    assert_eq!(x32, native);
}

#[test]
fn the_book_lists_the_calls_as_the_runtime_does() {
    let lab = Laboratory::new();
    let runtime = widthwise_x32run::place_in(&lab.path("")).unwrap();
    let listed = said(Command::new(runtime).arg("--list-calls"));
    assert!(listed.stdout.lines().count() > 300, "{listed:?}");
    let page = std::fs::read_to_string(repository().join("docs/x32-calls.md")).unwrap();
    let (_, table) = page.split_once("## Calls\n\n").unwrap();
    assert!(
        table == listed.stdout,
        "docs/x32-calls.md is out of date: what follows `## Calls` is what `x32run --list-calls` prints"
    );
}
