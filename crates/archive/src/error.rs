//! Errors of an archive, each in one line that names the file and the fix.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

/// Why an archive could not be made, opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// There is no campaign at that path.
    #[error("{}: {what}; `widthwise compare` starts a campaign", path.display())]
    Missing {
        /// What was looked for.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// The file is something else.
    #[error("{}: is not a widthwise archive: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The evidence.
        reason: String,
    },
    /// The archive has a version that this build does not know.
    #[error(
        "{}: was written by a newer widthwise (archive version {found}, this one reads up to {known}); upgrade widthwise",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: i64,
        /// The highest version this build knows.
        known: i64,
    },
    /// The archive's content contradicts itself.
    #[error("{}: is damaged and was left as it is: {reason}; restore it from a copy, or measure again with `widthwise compare`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process measures this campaign.
    #[error("{}: is being measured by {}; wait until it has ended, or end it (Ctrl-C) and use `--resume`", folder.display(), holder(.pid))]
    Locked {
        /// The campaign's folder.
        folder: PathBuf,
        /// The process that holds the lock, if it has written its id.
        pid: Option<u32>,
    },
    /// The folder or file may not be written.
    #[error("{}: cannot be written: {reason}; name a folder that can be, or give yourself the right to write there", path.display())]
    ReadOnly {
        /// What could not be written.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The disk is full, or a file has the greatest size that this process may give it.
    #[error(
        "{}: {}; every run written so far is kept: make room, then resume with `--resume {}`",
        path.display(), no_room(), path.display()
    )]
    Full {
        /// The campaign's folder.
        path: PathBuf,
    },
    /// The disk is full, and there is no campaign yet.
    #[error("{}: {}, and no campaign was begun: make room, or name another folder", path.display(), no_room())]
    NoRoom {
        /// The folder of campaigns.
        path: PathBuf,
    },
    /// Another failure of the file system.
    #[error("{}: {source}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another failure of the database.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A variant or metric that the campaign does not have.
    #[error("{}: this campaign has no {kind} named {name:?}", folder.display())]
    Unknown {
        /// The campaign's folder.
        folder: PathBuf,
        /// `variant` or `metric`.
        kind: &'static str,
        /// The name that was given.
        name: String,
    },
    /// A call in the wrong order: a run of a round that is not open, a round that was begun before.
    #[error("{}: {what}", folder.display())]
    OutOfTurn {
        /// The campaign's folder.
        folder: PathBuf,
        /// The call, and what was expected.
        what: String,
    },
}

/// Why a file cannot grow. SQLite has one error for ENOSPC and EFBIG.
fn no_room() -> &'static str {
    // proc(5): the soft limit is the first value.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max file size")?.split_whitespace().next());
    let is_limited = soft.is_some_and(|soft| soft != "unlimited");
    match is_limited {
        true => "the disk is full, or a file has reached the size limit of this shell (ulimit -f)",
        false => "the disk is full",
    }
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
}

impl ArchiveError {
    /// A failure of the file system, classified by its kind. `folder` is the campaign's, `path` the accessed file.
    pub(crate) fn system(folder: &Path, path: &Path, source: io::Error) -> ArchiveError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ArchiveError::Full { path: folder.to_owned() }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ArchiveError::ReadOnly { path: path.to_owned(), reason: source.to_string() }
            }
            _ => ArchiveError::System { path: path.to_owned(), source },
        }
    }

    /// A failure of the database, classified by its code.
    pub(crate) fn database(folder: &Path, file: &Path, source: rusqlite::Error) -> ArchiveError {
        use rusqlite::Error;
        let path = file.to_owned();
        match &source {
            Error::SqliteFailure(failure, words) => {
                let reason = words.clone().unwrap_or_else(|| failure.to_string());
                // SQLite reports ENOSPC of write(2) as FULL, and EDQUOT, EFBIG and a full device's late errors as
                // IOERR_WRITE; a -shm file that cannot grow is IOERR_SHMSIZE (os_unix.c: unixWrite, unixShmMap).
                match (failure.extended_code & 0xff, failure.extended_code) {
                    (ffi::SQLITE_FULL, _) | (_, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE) => {
                        ArchiveError::Full { path: folder.to_owned() }
                    }
                    (ffi::SQLITE_NOTADB, _) => ArchiveError::Foreign { path, reason },
                    (ffi::SQLITE_CORRUPT, _) => ArchiveError::Damaged { path, reason },
                    (ffi::SQLITE_READONLY | ffi::SQLITE_PERM, _) => ArchiveError::ReadOnly { path, reason },
                    (ffi::SQLITE_CANTOPEN, _) => ArchiveError::System {
                        path,
                        source: io::Error::other("it cannot be opened; may this user read it?"),
                    },
                    _ => ArchiveError::Database { path, source },
                }
            }
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..)
            | Error::QueryReturnedNoRows
            | Error::QueryReturnedMoreThanOneRow => {
                ArchiveError::Damaged { path, reason: source.to_string() }
            }
            _ => ArchiveError::Database { path, source },
        }
    }
}
