//! Files that the user requested, and pages of a campaign.

use std::io::Write;
use std::path::{Path, PathBuf};

use widthwise_experiment::bytes;

use crate::failure::Failure;
use crate::interrupt;

/// Writes a file completely or not at all; `-` is standard output.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::request(format!("{}: {error}", path.display()));
    if path.as_os_str() == "-" {
        return match std::io::stdout().write_all(bytes) {
            // The reader has closed the pipe: `| head`.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(failed),
        };
    }
    write_whole(path, bytes).map_err(failed)
}

/// Whether a requested document goes to standard output.
pub fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_ref().is_some_and(|path| path.as_os_str() == "-")
}

/// Writes a file of a campaign, completely or not at all.
pub fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| Failure::machine(format!("{}: {error}", path.display())))
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    interrupt::finish(|| {
        std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path)).inspect_err(|_| {
            let _ = std::fs::remove_file(&partial);
        })
    })
}

/// A path as the user would type it.
pub fn short(path: &Path) -> String {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok())
        .filter(|rest| !rest.as_os_str().is_empty())
        .map_or_else(|| bytes::text(path), bytes::text)
}

/// Columns of the terminal, or a page's where there is none.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(110, |(width, _)| usize::from(width.0))
}
