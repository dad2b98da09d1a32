//! Files that a user asked for.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes a file whole or not at all; `-` is standard output.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::request(format!("{}: {error}", path.display()));
    if path.as_os_str() == "-" {
        return match std::io::stdout().write_all(bytes) {
            // `| head` has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(failed),
        };
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path)).map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        failed(error)
    })
}
