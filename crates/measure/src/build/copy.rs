//! Copies the source folder to a build folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies with cp(1), which keeps what a build system looks at (times, modes, links) and shares blocks where
/// the file system can.
///
/// A campaign inside the source folder is left out. `to` may lie there too, and cp refuses to copy a folder
/// into itself.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name != ".widthwise") && !to.starts_with(&path) {
            entries.push(path);
        }
    }
    if entries.is_empty() {
        return Ok(());
    }
    let output = Command::new("cp")
        .args(["-a", "--reflink=auto", "-t"])
        .arg(to)
        .arg("--")
        .args(entries)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(std::io::Error::other(complaint.lines().next().unwrap_or("cp failed").to_owned()))
}
