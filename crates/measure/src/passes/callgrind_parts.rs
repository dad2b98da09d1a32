//! The parts of callgrind's counts that a process writes before its end (`--dump-before`): `counts.7.1`, `counts.7.2`. A program that is
//! executed in the place of another one begins at 1 again, and would overwrite its parts.

use std::io;
use std::path::{Path, PathBuf};

/// How the names of callgrind's files begin; the process's number follows.
pub(super) const COUNTS: &str = "counts.";

/// A part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The process.
    pub process: u32,
    /// How many programs it had executed: 0 in a forked process.
    pub program: u32,
    /// Its number, counted from 1 in each program.
    pub number: u32,
}

impl Part {
    /// Gives the part a name that no other one gets.
    pub fn keep(&self, folder: &Path) -> io::Result<()> {
        let written = folder.join(format!("{COUNTS}{}.{}", self.process, self.number));
        std::fs::rename(written, self.kept(folder))
    }

    /// Where the part is.
    pub fn kept(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{COUNTS}{}.{}.{}", self.process, self.program, self.number))
    }
}

/// The process of a file that callgrind wrote at the process's end.
pub(super) fn ended(name: &str) -> Option<u32> {
    name.strip_prefix(COUNTS)?.parse().ok()
}
