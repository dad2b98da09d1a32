//! Finished programs as arguments, and processes that setup leaves in the background.

use crate::laboratory::outcomes::skipped;
use crate::laboratory::{until, variant, Laboratory};

const FEW: &str = "--rounds 2 --warmup 0";

fn with_programs() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("work.c");
    lab.gcc("-o a.out work.c");
    lab.gcc("-m32 -o b.out work.c");
    std::fs::create_dir(lab.path("new")).unwrap();
    lab.copy(&lab.path("b.out"), "new/a.out");
    lab
}

#[test]
fn finished_programs_are_named_after_their_files() {
    let lab = with_programs();
    let report = lab.compare_json(&format!("./a.out {FEW} -- 1"));
    assert_eq!(variant(&report, "a.out")["status"], "ready");
    let report = lab.compare_json(&format!("./a.out ./b.out {FEW} -- 1"));
    assert_eq!(report["judging"]["baseline"], "a.out");
    assert_eq!(variant(&report, "b.out")["status"], "ready");
    // Two files of one name are named by their paths.
    let report = lab.compare_json(&format!("./a.out new/a.out {FEW} --run '{{binary}} 1'"));
    assert_eq!(variant(&report, "new/a.out")["status"], "ready");
    let printed = lab.widthwise("scale ./a.out ./b.out --processes 1 --rounds 1 --warmup 0 -- 1");
    assert_eq!(printed.status, Some(0), "{printed:?}");
}

#[test]
fn a_script_is_started_or_the_error_shows_a_command_that_works() {
    let lab = with_programs();
    lab.script("script", "#!/bin/sh\necho $1\n");
    let report = lab.compare_json(&format!("./script {FEW} -- 1"));
    assert_eq!(variant(&report, "script")["status"], "ready");
    lab.write("fib.py", "print(1)\n");
    lab.write("with head", "#!/usr/bin/env sh\necho 1\n");
    for (name, line) in [
        ("fib.py", "compare fib.py --run 'python3 {binary}'"),
        ("with head", "compare 'with head' --run 'sh {binary}'"),
    ] {
        lab.widthwise(&["compare", name]).refuses(2, &["is a script, which needs a run command", line]);
        let printed = lab.widthwise(&format!("{line} --cpus any {FEW}"));
        assert_eq!(printed.status, Some(0), "{printed:?}");
    }
}

#[test]
fn a_file_that_is_not_a_program_is_refused_with_a_fix() {
    let lab = with_programs();
    lab.gcc("-c work.c");
    lab.write("text", "no program\n");
    lab.write("locked", "");
    lab.copy(&lab.path("a.out"), "locked");
    let status = std::process::Command::new("chmod").arg("-x").arg(lab.path("locked")).status().unwrap();
    assert!(status.success());
    for (words, expected) in [
        ("work.o", ["work.o is an object file", "link it"]),
        ("text", ["text is no C or C++ file", "widthwise compare text --run 'COMMAND {binary}'"]),
        ("locked", ["locked may not be executed", "chmod +x"]),
        ("./a.out work.c", ["work.c is none", "a source is compared alone"]),
        ("./a.out nosuch", ["nosuch is none", "words after `--` are the program's arguments"]),
        ("sh", ["sh: there is no such file here", "the command of that name is /"]),
        (
            "made --build make",
            ["the program is the source's folder", "compare . --build … --run {build}/made"],
        ),
        ("./a.out ./a.out", ["\"./a.out\" is named twice", "program: "]),
    ] {
        lab.compare(words).refuses(2, &expected);
    }
}

/// A server that returns the number of earlier requests, at a port that it writes to a file; and a client.
const SERVER: &str = "import socket, os
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
open('port.new', 'w').write(str(s.getsockname()[1])); os.rename('port.new', 'port')
n = 0
while True:
    c, _ = s.accept(); c.sendall(b'%d' % n); c.close(); n += 1
";
const CLIENT: &str = "import socket
print(socket.create_connection(('127.0.0.1', int(open('port').read()))).recv(9).decode())
";

fn with_server() -> Laboratory {
    let lab = Laboratory::new();
    lab.write("server.py", SERVER);
    lab.write("client.py", CLIENT);
    lab
}

/// A server that overwrites its environment.
fn with_titled() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("titled.c");
    lab.gcc("-o titled titled.c");
    lab
}

const WAIT: &str = "until test -e port; do sleep 0.01; done";

#[test]
fn a_server_started_by_setup_lives_until_the_teardown_of_its_run() {
    let lab = with_server();
    // With its own session and parent, and with the setup's; with its output open, and without.
    for start in
        ["python3 server.py &", "setsid python3 server.py >/dev/null 2>&1 &", "(setsid python3 server.py &);"]
    {
        let setup = format!("rm -f port; {start} {WAIT}");
        let teardown = "python3 client.py | grep 1";
        let words = ["client.py", "--run", "python3 {binary}", "--setup", &setup, "--teardown", teardown];
        let printed = lab.compare(&[&words[..], &["--rounds", "1", "--warmup", "0"]].concat()[..]);
        assert_eq!(printed.status, Some(0), "{start}: {printed:?}");
        assert_eq!(lab.answer("client.py"), "0\n", "{start}");
        assert_eq!(servers(&lab), 0, "{start}");
    }
}

#[test]
fn no_process_remains_after_a_failed_setup_a_failed_program_or_scale() {
    let lab = with_server();
    let setup = format!("rm -f port; python3 server.py & {WAIT}");
    for words in [
        vec!["compare", "--binary", "a=/bin/false", "--setup", &setup],
        vec!["compare", "--binary", "a=/bin/true", "--setup", "python3 server.py & exit 3"],
        vec![
            "compare",
            "--binary",
            "a=/bin/true",
            "--setup",
            &setup,
            "--timeout",
            "10s",
            "--teardown",
            "exit 4",
        ],
        vec![
            "scale",
            "--binary",
            "a=/bin/true",
            "--processes",
            "1",
            "--rounds",
            "1",
            "--warmup",
            "0",
            "--setup",
            &setup,
        ],
    ] {
        let printed = lab.widthwise(&words);
        assert_eq!(printed.status, Some(i32::from(words[0] == "compare")), "{words:?}: {printed:?}");
        assert_eq!(servers(&lab), 0, "{words:?}");
    }
}

#[test]
fn a_server_that_overwrites_its_environment_ends_and_measured_programs_have_no_mark() {
    let lab = with_titled();
    let setup = "rm -f begun; ./titled; until test -e begun; do sleep 0.01; done";
    let run = "sh -c 'ls -l /proc/self/fd | grep -c widthwise-setup; env | grep -c WIDTHWISE_SETUP'";
    let words =
        ["--binary", "a=/bin/sh", "--run", run, "--setup", setup, "--exit-status", "1", "--rounds", "1"];
    let printed = lab.compare(&[&words[..], &["--warmup", "0"]].concat()[..]);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    assert_eq!(lab.answer("a"), "0\n0\n");
    assert_eq!(servers(&lab), 0);
}

#[test]
fn what_setup_leaves_ends_though_widthwise_is_killed() {
    let lab = with_titled();
    // While the program runs, and while the setup does; in the setup's session, and in one of its own; with either mark alone.
    for setup in [
        "sleep 600 & touch begun",
        "setsid sleep 600 & (sleep 600 &); touch begun; sleep 600",
        "./titled",
        "./titled closes",
    ] {
        let words = ["compare", "--binary", "a=/bin/sleep", "--setup", setup, "--", "600"];
        let mut child = lab.command(&words[..]).spawn().unwrap();
        until("a setup that has begun", || lab.path("begun").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        until("the end of all that it started", || servers(&lab) == 0);
        std::fs::remove_file(lab.path("begun")).unwrap();
    }
}

/// Servers whose working directory is this laboratory.
fn servers(lab: &Laboratory) -> usize {
    let here = std::fs::canonicalize(lab.path("")).unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("cwd")).ok())
        .filter(|folder| *folder == here)
        .count()
}

#[test]
fn the_abi_of_a_finished_program_is_in_its_header() {
    let lab = with_programs();
    let report = lab.compare_json(&format!(
        "./a.out ./b.out {FEW} --run 'sh -c \"echo {{abi}}\"' --allow-different-output"
    ));
    assert_eq!(variant(&report, "a.out")["status"], "ready");
    assert_eq!((lab.answer("a.out"), lab.answer("b.out")), ("x86-64\n".to_owned(), "i386\n".to_owned()));
    lab.script("script", "#!/bin/sh\necho $1\n");
    let printed = lab.compare(&format!("./script {FEW} --run '{{binary}} {{abi}}'"));
    assert_eq!(printed.status, Some(1), "{printed:?}");
    assert!(printed.stderr.contains("{abi} means nothing in `{binary} {abi}`"), "{printed:?}");
}

#[test]
fn an_x32_program_that_a_shell_cannot_start_is_reported_with_the_fix() {
    if widthwise_x32run::kernel_has_x32() || widthwise_x32run::registered() {
        return skipped("every program can start x32 programs here");
    }
    let lab = with_programs();
    lab.gcc("-mx32 -o x.out work.c");
    let words = |run: &str| format!("--binary a=./a.out --binary x=./x.out {FEW} --run '{run}'");
    let warned = |run: &str| {
        lab.compare_json(&words(run))["warnings"].to_string().contains("cannot start x32 programs for it")
    };
    assert!(warned("sh -c \"{binary} 1; true\""));
    assert!(!warned("{binary} 1"));
}
