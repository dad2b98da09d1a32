//! The oracle: Debian's kernel, which has x32 built in, booted under emulation with an archive of programs as its
//! only file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::{built, transcripts, Program};

/// What no machine has by itself is installed by this.
const MEND: &str = "run `sh packaging/install.sh test`";

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
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    std::fs::write(&archive, file_system).unwrap();
    let reports = folder.path().join("reports");
    let console = folder.path().join("console");
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1024", "-nodefaults"])
        .args(options)
        .args(["-display", "none", "-no-reboot", "-net", "none", "-kernel"])
        .arg(kernel)
        .arg("-initrd")
        .arg(&archive)
        .args(["-append", &format!("console=ttyS0 quiet panic=-1 {words}")])
        .arg("-serial")
        .arg(format!("file:{}", console.display()))
        .arg("-serial")
        .arg(format!("file:{}", reports.display()))
        .stdin(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("qemu-system-x86_64: {error}; {MEND}"));
    let end = Instant::now() + Duration::from_secs(limit);
    while machine.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            machine.kill().unwrap();
            machine.wait().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let reports = std::fs::read(&reports).unwrap_or_default();
    let console = String::from_utf8_lossy(&std::fs::read(&console).unwrap_or_default()).into_owned();
    if std::env::var_os("WIDTHWISE_X32_CONSOLE").is_some() {
        eprintln!("{console}");
    }
    // The serial line is a terminal, which ends lines with two characters.
    let reports: Vec<u8> = reports.into_iter().filter(|&byte| byte != b'\r').collect();
    assert!(reports.ends_with(b"@@@\n"), "the kernel did not get to the end; its console:\n{console}");
    reports[..reports.len() - 4].to_vec()
}

/// A kernel that packaging/install.sh unpacks, never installs, into this folder of the build's.
pub fn kernel(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(name).join("boot");
    let mut kernels: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .collect();
    kernels.sort();
    kernels.pop().unwrap_or_else(|| panic!("no kernel in {}; {MEND}", folder.display()))
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
    let said = Command::new("gcc").arg("-mx32").arg(format!("-print-file-name={name}")).output();
    let said = said.unwrap_or_else(|error| panic!("gcc: {error}; {MEND}"));
    PathBuf::from(String::from_utf8_lossy(&said.stdout).trim())
}

pub fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}; {MEND}", path.display()))
}

/// A `newc` archive, which the kernel unpacks into its first file system (Documentation/driver-api/early-userspace,
/// "initramfs buffer format").
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    pub fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap();
        let name_size = u32::try_from(name.len()).unwrap() + 1;
        // inode, mode, uid, gid, links, mtime, size, device and special device (major, minor), name size, check
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
