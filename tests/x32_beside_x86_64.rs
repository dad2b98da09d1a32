//! Results of system calls of x32 programs under the runtime, compared with those of the same programs as x86-64, on the file
//! systems and devices of this machine, which no transcript of another kernel covers.

use std::process::Command;

use crate::laboratory::{here, output_of, repository, Laboratory};

const X32: &str = "-mx32 -idirafter /usr/include/x86_64-linux-gnu";

/// The program's output as x86-64 and as x32, with the same argument.
fn both(lab: &Laboratory, program: &str, argument: &str) -> [String; 2] {
    let source = here(&format!("programs/{program}.c"));
    let source = source.display();
    lab.gcc(&format!("-O1 {source} -o {program}-64"));
    lab.gcc(&format!("{X32} -O1 {source} -o {program}-x32"));
    let native =
        output_of(Command::new(lab.path(&format!("{program}-64"))).arg(argument).current_dir(lab.path("")));
    let x32 = output_of(&mut lab.command(&format!("exec ./{program}-x32 {argument}")));
    assert_eq!((native.status, x32.status), (Some(0), Some(0)), "{native:?} {x32:?}");
    [native.stdout, x32.stdout]
}

#[test]
fn every_directory_entry_is_found_at_its_offset() {
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
    // A file system whose offsets are not hashes.
    let [native, x32] = both(&lab, "folders", "/proc/self/fdinfo");
    assert_eq!(x32, native);
}

#[test]
fn programs_and_scripts_that_are_executed_by_descriptor_have_the_kernels_names() {
    let lab = Laboratory::new();
    let [native, x32] = both(&lab, "execs", "start");
    assert!(native.contains("script by descriptor: AT_EXECFN /dev/fd/"), "{native}");
    assert!(native.contains("script by a descriptor that is closed: No such file"), "{native}");
    assert!(native.contains("file that is cut off: Exec format error"), "{native}");
    assert_eq!(x32, native);
}

#[test]
fn waitid_writes_zeros_if_there_is_no_child() {
    let lab = Laboratory::new();
    let [native, x32] = both(&lab, "no_children", "");
    assert!(native.starts_with("-1 No child processes: signal 0"), "{native}");
    assert_eq!(x32, native);
}

#[test]
fn ioctl_requests_have_the_results_of_64_bit_programs() {
    let lab = Laboratory::new();
    let [native, x32] = both(&lab, "requests", "file");
    assert!(native.contains("SIOCGSTAMP: done"), "{native}");
    assert_eq!(x32, native);
}

#[test]
fn the_documentation_lists_the_calls_of_the_runtime() {
    let lab = Laboratory::new();
    let runtime = widthwise_x32run::place_in(&lab.path("")).unwrap();
    let listed = output_of(Command::new(runtime).arg("--list-calls"));
    assert!(listed.stdout.lines().count() > 300, "{listed:?}");
    let page = std::fs::read_to_string(repository().join("docs/x32-calls.md")).unwrap();
    let (_, table) = page.split_once("## Calls\n\n").unwrap();
    assert!(
        table == listed.stdout,
        "docs/x32-calls.md is out of date: what follows `## Calls` is what `x32run --list-calls` prints"
    );
}
