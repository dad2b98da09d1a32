//! Opening an archive's SQLite file: it identifies the file without changing it, checks it, then opens it for use.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{ffi, Connection, OpenFlags};

use crate::error::ArchiveError;
use crate::schema::{self, Format, CAMPAIGN, STUDY};

/// How long to wait for another process that is in the middle of a checkpoint or a recovery.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest text or row that is read: a machine record or a diff is far below it, and a hostile file cannot ask for
/// a gigabyte.
const LONGEST: i32 = 64 << 20;

/// An archive's file, checked and open for reading.
pub(crate) struct Found {
    pub connection: Connection,
    pub file: PathBuf,
    pub format: &'static Format,
    pub version: i64,
}

impl Found {
    /// Whether its tables are not those of this version.
    pub fn is_earlier(&self) -> bool {
        self.format.name != CAMPAIGN.name || self.version < CAMPAIGN.version()
    }
}

/// The archive's file in this folder, if there is one.
fn find(folder: &Path) -> Result<(PathBuf, &'static Format), ArchiveError> {
    let missing =
        |path: &Path, what: &str| Err(ArchiveError::Missing { path: path.to_owned(), what: what.to_owned() });
    match folder.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return missing(folder, "there is no such folder")
        }
        Err(error) => return Err(ArchiveError::system(folder, folder, error)),
        Ok(found) if !found.is_dir() => return missing(folder, "this is not the folder of a campaign"),
        Ok(_) => {}
    }
    let format = if !folder.join(CAMPAIGN.file).exists() && folder.join(STUDY.file).exists() {
        &STUDY
    } else {
        &CAMPAIGN
    };
    let file = folder.join(format.file);
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if folder.join(format.unfinished()).exists() {
                missing(folder, "this campaign ended before its first session began, and has no run")
            } else {
                missing(folder, &format!("this folder has no campaign in it (no {})", format.file))
            }
        }
        Err(error) => Err(ArchiveError::system(folder, &file, error)),
        // Opening a named pipe would block for ever.
        Ok(found) if !found.is_file() => {
            Err(ArchiveError::Foreign { path: file, reason: "it is not a regular file".to_owned() })
        }
        Ok(_) => Ok((file, format)),
    }
}

/// Opens the archive for reading, after checking its format and integrity. Writes nothing to it.
pub(crate) fn for_reading(folder: &Path) -> Result<Found, ArchiveError> {
    let (file, format) = find(folder)?;
    let connection = open_for_reading(format, folder, &file)?;
    let version = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| ArchiveError::database(folder, &file, error))?;
    Ok(Found { connection, file, format, version })
}

/// Moves what the log of a killed session holds into the file. A log that stayed would be taken for that of the file which
/// gets this one's name.
pub(crate) fn without_log(folder: &Path, file: &Path) -> Result<(), ArchiveError> {
    let settle = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        guard(&connection)?;
        connection.pragma_update(None, "journal_mode", "DELETE")
    };
    settle().map_err(|error| ArchiveError::database(folder, file, error))
}

/// An empty archive in memory.
pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    guard(&connection)?;
    Ok(connection)
}

fn open_for_reading(format: &Format, folder: &Path, file: &Path) -> Result<Connection, ArchiveError> {
    recognise(format, folder, file)?;
    let failed = |error| ArchiveError::database(folder, file, error);
    let mut connection = connect(file, false).map_err(failed)?;
    let look = |connection: &Connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    };
    match look(&connection) {
        Ok(_) => {}
        // A file that was left in WAL mode, in a folder where its -shm cannot be made. With an empty log the file alone
        // is complete (https://sqlite.org/wal.html#read_only_databases).
        Err(error) if lacks_index(&error) => {
            if has_log(file) {
                return Err(ArchiveError::ReadOnly {
                    path: folder.to_owned(),
                    reason: "its measurement was interrupted, and reading the rest of it needs a folder that can be written: \
                             read a copy"
                        .to_owned(),
                });
            }
            connection = connect(file, true).map_err(failed)?;
            look(&connection).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    check(format, folder, file, &connection)?;
    Ok(connection)
}

/// Opens the archive for writing. It must have been opened [for reading](for_reading) before, or just been created.
pub(crate) fn for_writing(folder: &Path, file: &Path) -> Result<Connection, ArchiveError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        guard(&connection)?;
        // The crate's documentation explains the guarantees of these two.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|error| ArchiveError::database(folder, file, error))
}

/// Creates and fills an archive under a temporary name, then renames it. The folder's lock must be held.
///
/// A process killed before the rename leaves no file that looks like an archive, and the next one starts afresh.
pub(crate) fn make(
    format: &Format,
    folder: &Path,
    fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<PathBuf, ArchiveError> {
    let unfinished = folder.join(format.unfinished());
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(ArchiveError::system(folder, &unfinished, error))
        }
        _ => {}
    }
    let build = || {
        let mut connection = Connection::open(&unfinished)?;
        // No rollback is needed, and a journal on disk could be left behind.
        connection.pragma_update(None, "journal_mode", "MEMORY")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction()?;
        transaction.execute_batch(format.sql())?;
        transaction.pragma_update(None, "application_id", format.application)?;
        transaction.pragma_update(None, "user_version", format.version())?;
        fill(&transaction)?;
        transaction.commit()?;
        connection.close().map_err(|(_, error)| error)
    };
    let file = folder.join(format.file);
    let made = build().map_err(|error| ArchiveError::database(folder, &unfinished, error)).and_then(|()| {
        std::fs::rename(&unfinished, &file).map_err(|error| ArchiveError::system(folder, &file, error))
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    made.map(|()| file)
}

/// Whether the file's header is that of an archive of a version this build reads. Takes no lock and creates no file.
fn recognise(format: &Format, folder: &Path, file: &Path) -> Result<(), ArchiveError> {
    let ask = || -> rusqlite::Result<(i64, i64)> {
        let connection = connect(file, true)?;
        let word = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0));
        Ok((word("application_id")?, word("user_version")?))
    };
    match ask() {
        Ok((application, version)) => judge(format, file, application, version),
        // If its process was killed during a checkpoint, the file looks damaged without the log. The full check reads
        // both.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => Ok(()),
        Err(error) => Err(ArchiveError::database(folder, file, error)),
    }
}

fn judge(format: &Format, file: &Path, application: i64, version: i64) -> Result<(), ArchiveError> {
    let path = file.to_owned();
    if application != format.application {
        let reason = match file.metadata() {
            Ok(found) if found.len() == 0 => "the file is empty".to_owned(),
            _ => format!("it is the database of another application (id {application:#010x})"),
        };
        Err(ArchiveError::Foreign { path, reason })
    } else if version > format.version() {
        Err(ArchiveError::Newer { path, found: version, known: format.version() })
    } else if version < 1 {
        Err(ArchiveError::Damaged { path, reason: format!("there is no archive version {version}") })
    } else {
        Ok(())
    }
}

/// Checks the archive's version, tables, pages and types. (Not CHECK constraints, which SQLite skips in a read-only
/// schema: the readers check the values.)
fn check(format: &Format, folder: &Path, file: &Path, connection: &Connection) -> Result<(), ArchiveError> {
    let failed = |error| ArchiveError::database(folder, file, error);
    let damaged = |reason| Err(ArchiveError::Damaged { path: file.to_owned(), reason });
    let word =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    let version = word("user_version")?;
    judge(format, file, word("application_id")?, version)?;
    if let Some(fault) = schema::fault(format, connection, version).map_err(failed)? {
        return damaged(fault);
    }
    // SQLite reads a truncated page as one that ends in zeros. While there is a log, the page is in it.
    let length = file.metadata().map_err(|error| ArchiveError::system(folder, file, error))?.len();
    let page = u64::try_from(word("page_size")?).unwrap_or_default();
    if !has_log(file) && length.checked_rem(page) != Some(0) {
        return damaged("it ends in the middle of a page".to_owned());
    }
    let result: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if result != "ok" {
        // SQLite's message may have several lines.
        return damaged(result.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Ok(())
}

/// A connection that writes nothing. With `alone`, no other process writes, or it does not matter.
fn connect(file: &Path, alone: bool) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(file, alone), flags)?;
    guard(&connection)?;
    Ok(connection)
}

/// Settings against malicious files (https://sqlite.org/security.html).
fn guard(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// The file as SQLite's URI, every unusual byte escaped (https://sqlite.org/uri.html).
fn uri(file: &Path, alone: bool) -> String {
    let mut uri = "file:".to_owned();
    for &byte in file.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-') {
            uri.push(byte as char);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri.push_str(if alone { "?immutable=1" } else { "" });
    uri
}

/// Whether SQLite could not create the index of the log (`-shm`).
fn lacks_index(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|failure| {
        matches!(failure.extended_code & 0xff, ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY)
    })
}

/// Whether there is a non-empty log: then the file alone is incomplete.
fn has_log(file: &Path) -> bool {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name).metadata().is_ok_and(|log| log.len() > 0)
}
