//! A kernel under emulation, with an archive of programs as its only file system. The benchmarks use it as well.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Boots a kernel with words for its command line, an archive, and more options for the machine: what its process 1
/// wrote to the second serial line, up to the line `@@@` at its end. `limit` is in seconds.
pub fn boot(kernel: &Path, words: &str, file_system: &[u8], options: &[&str], limit: u64) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("archive");
    std::fs::write(&archive, file_system)?;
    let reports = folder.path().join("reports");
    let console = folder.path().join("console");
    let mut machine = Command::new("qemu-system-x86_64")
        .args(["-cpu", "max", "-m", "1024", "-nodefaults"])
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
        .map_err(|error| Error::other(format!("qemu-system-x86_64: {error}")))?;
    let end = Instant::now() + Duration::from_secs(limit);
    while machine.try_wait()?.is_none() {
        if Instant::now() > end {
            machine.kill()?;
            machine.wait()?;
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
    let mut reports: Vec<u8> = reports.into_iter().filter(|&byte| byte != b'\r').collect();
    if !reports.ends_with(b"@@@\n") {
        return Err(Error::other(format!("the kernel did not get to the end; its console:\n{console}")));
    }
    reports.truncate(reports.len() - 4);
    Ok(reports)
}

/// The newest kernel in the folder into which packaging/install.sh unpacks one.
pub fn newest_kernel(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder.join("boot")).into_iter().flatten().flatten();
    let names = files.map(|entry| entry.path());
    names
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .max()
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
