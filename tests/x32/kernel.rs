//! The oracle: Debian's kernel, which has x32 built in, booted under emulation with an archive of programs as its
//! only file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine;
pub use crate::machine::Archive;
use crate::programs::{built, transcripts, Program};

/// What no machine has by itself is installed by this.
const FIX: &str = "run `sh packaging/install.sh test`";

/// The shared objects that dynamic programs load, with their loader.
pub const LIBRARIES: [&str; 5] = [
    "/libx32/ld-linux-x32.so.2",
    "/libx32/libc.so.6",
    "/libx32/libm.so.6",
    "libstdc++.so.6",
    "libgcc_s.so.1",
];

/// A shell of x86-64 and what it loads, for `system(3)` and `popen(3)`.
const SHELL: [(&str, &str); 3] = [
    ("bin/sh", "/bin/sh"),
    ("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
    ("lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"),
];

/// Runs the programs on the kernel that has x32, all in one boot: file name to transcript.
pub fn run(programs: &[&Program]) -> BTreeMap<String, String> {
    let limit: u64 = 180 + programs.iter().map(|program| u64::from(program.seconds)).sum::<u64>();
    transcripts(&boot(&file_system(programs), &["-smp", "2"], limit))
}

/// Boots it with an archive and more options for the machine: what its process 1 wrote to the second serial line.
pub fn boot(file_system: &[u8], options: &[&str], limit: u64) -> Vec<u8> {
    boot_with(&kernel("x32-kernel"), "syscall.x32=y mitigations=off", file_system, options, limit)
}

/// The same of another kernel, with words for its command line.
pub fn boot_with(kernel: &Path, words: &str, file_system: &[u8], options: &[&str], limit: u64) -> Vec<u8> {
    let options = [&["-accel", "tcg,thread=multi"], options].concat();
    machine::boot(kernel, words, file_system, &options, limit)
        .unwrap_or_else(|error| panic!("{error}; {FIX}"))
}

/// A kernel that packaging/install.sh unpacks, never installs, into this folder of the build's.
pub fn kernel(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(name);
    machine::newest_kernel(&folder).unwrap_or_else(|| panic!("no kernel in {}; {FIX}", folder.display()))
}

/// The archive: the stage as process 1, the programs, the list of them, and the x32 shared objects.
fn file_system(programs: &[&Program]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in
        ["dev", "proc", "sys", "tmp", "programs", "libx32", "bin", "lib64", "lib", "lib/x86_64-linux-gnu"]
    {
        archive.folder(folder);
    }
    archive.file("init", &read(&built().join("stage")));
    let list: String =
        programs.iter().map(|program| format!("{} {}\n", program.file, program.seconds)).collect();
    archive.file("list", list.as_bytes());
    for program in programs {
        archive.file(&format!("programs/{}", program.file), &read(&built().join(&program.file)));
    }
    for other in [
        "child-x32",
        "child-x32-dynamic",
        "child-x86-64",
        "script",
        "script-of-scripts",
        "script-without-interpreter",
    ] {
        archive.file(&format!("programs/{other}"), &read(&built().join(other)));
    }
    for (name, from) in SHELL {
        archive.file(name, &read(Path::new(from)));
    }
    for library in LIBRARIES {
        let name = library.rsplit('/').next().unwrap();
        archive.file(&format!("libx32/{name}"), &read(&library_path(library)));
    }
    archive.end()
}

pub fn library_path(name: &str) -> PathBuf {
    let printed = Command::new("gcc").arg("-mx32").arg(format!("-print-file-name={name}")).output();
    let printed = printed.unwrap_or_else(|error| panic!("gcc: {error}; {FIX}"));
    PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim())
}

pub fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}; {FIX}", path.display()))
}
