//! The programs of tests/x32 with another C library, musl, which comes to the kernel in its own ways: its sites of system calls
//! are others, and its threads, signals and cancellation. What they print on the kernel with x32, under emulation, the runtime
//! makes them print, also where musl itself fails there: it hands over sign-extended pointers (docs/x32.md), and
//! `syscall()` takes 64-bit words.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{built, companions, seconds, sources, Program};

/// What musl cannot be asked, and why. C++ is left out as well: there is no library of it for musl.
pub const LEFT_OUT: [(&str, &str); 9] = [
    ("batches", "recvmmsg is an exception with glibc, and musl fails before it comes to that"),
    ("files", "musl 1.2.3 has no struct statx"),
    ("loading", "no program can load a library: musl is built without shared objects"),
    ("stacks", "musl has no makecontext"),
    ("storms", "musl has no pthread_sigqueue"),
    ("timers", "musl's mq_notify cancels a detached thread that may have ended, and waits for ever or faults at its memory"),
    ("tracing", "ptrace is an exception with glibc, and musl prints other sizes"),
    ("vdso_signals", "musl's restorer has no unwind tables, and no unwinder knows it once it is rewritten (docs/x32.md)"),
    ("vectors", "musl 1.2.3 has no preadv2"),
];

/// All programs, built.
pub fn all() -> Vec<Program> {
    companions();
    let files =
        std::fs::read_dir(sources()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files
        .filter_map(|file| file.strip_suffix(".c").map(str::to_owned))
        .filter(|name| {
            name != "stage" && LEFT_OUT.iter().all(|(out, _)| out != name) && crate::is_wanted(name)
        })
        .collect();
    names.sort();
    let build = |name: String| {
        let file = format!("{name}-musl");
        build(&name, &built().join(&file));
        let source = std::fs::read_to_string(sources().join(format!("{name}.c"))).unwrap();
        Program { name, file, seconds: seconds(&source), core: false }
    };
    names.into_iter().map(build).collect()
}

/// What `packaging/install.sh musl` has built.
fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../x32-musl")
}

fn gcc_says(option: &str) -> String {
    let printed = Command::new("gcc").args(["-mx32", option]).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().trim().to_owned()
}

fn build(name: &str, to: &Path) {
    let (root, sources) = (root(), sources());
    let library = |file: &str| root.join("lib").join(file);
    assert!(library("libc.a").exists(), "no musl in {}: run `sh packaging/install.sh musl`", root.display());
    let done = Command::new("gcc")
        .args(["-mx32", "-static", "-O1", "-w", "-D_GNU_SOURCE"])
        .args([
            // Which the headers of 1.2.3 have not.
            "-DSYS_futex_waitv=(0x40000000+449)",
            "-nostdinc",
            "-nostdlib",
            "-isystem",
        ])
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
