//! The programs of tests/x32 with another C library, musl, which comes to the kernel in its own ways: its sites of system calls
//! are others, and its threads, signals and cancellation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::sources;

/// Those that say the same as with glibc. What the others print is glibc's (sizes, errors that the library finds itself), or
/// fails in musl: it hands over sign-extended pointers (docs/x32.md), and `syscall()` takes 64-bit words.
pub const PROGRAMS: [&str; 28] = [
    "actions",
    "advice",
    "aio",
    "blocked_faults",
    "controls",
    "exec",
    "futexes",
    "handlers",
    "hello",
    "image",
    "ioctls",
    "keys",
    "memory_full",
    "numbers",
    "patches",
    "processes",
    "processes_memory",
    "registers",
    "rings",
    "sandbox",
    "segments",
    "shell",
    "signalfd_sys",
    "sites",
    "spawned",
    "state",
    "strict",
    "threads",
];

/// What `packaging/install.sh musl` has built.
fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../x32-musl")
}

fn gcc_says(option: &str) -> String {
    let said = Command::new("gcc").args(["-mx32", option]).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// Builds one of them.
pub fn build(name: &str, to: &Path) {
    let (root, sources) = (root(), sources());
    let library = |file: &str| root.join("lib").join(file);
    assert!(library("libc.a").exists(), "no musl in {}: run `sh packaging/install.sh musl`", root.display());
    let done = Command::new("gcc")
        .args(["-mx32", "-static", "-O1", "-w", "-D_GNU_SOURCE", "-nostdinc", "-nostdlib", "-isystem"])
        .arg(root.join("include"))
        .args(["-isystem", &gcc_says("-print-file-name=include"), "-idirafter"])
        .arg(root.join("kernel"))
        .arg("-I")
        .arg(&sources)
        .args([
            library("crt1.o"),
            library("crti.o"),
            sources.join(format!("{name}.c")),
            sources.join("musl/names.c"),
        ])
        .arg("-Wl,--start-group")
        .arg(library("libc.a"))
        .args([&gcc_says("-print-libgcc-file-name"), "-Wl,--end-group"])
        .arg(library("crtn.o"))
        .arg("-o")
        .arg(to)
        .output()
        .unwrap();
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
}
