//! The archive of one campaign, made, resumed or read.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::database::{Archive, Writer};
use crate::error::ArchiveError;
use crate::folder;
use crate::lock::Lock;
use crate::metadata::{self, read_metadata, write_metadata, write_metrics, Metadata};
use crate::migrate;
use crate::open;
use crate::schema::CAMPAIGN;
use crate::slug::is_one_component;

impl Archive {
    /// Creates a campaign: makes its folder in `parent` (`.widthwise`, created if absent) and takes its lock. The
    /// folder's name is the day of `metadata.created` and the program's name, `2026-11-21-sqlite3`, with `-2`, `-3` …
    /// after it if that exists.
    pub fn create(parent: &Path, metadata: &Metadata) -> Result<Archive, ArchiveError> {
        let suffix = if metadata.scaling.is_some() { "-scale" } else { "" };
        let no_room = |error| match error {
            ArchiveError::Full { .. } => ArchiveError::NoRoom { path: parent.to_owned() },
            error => error,
        };
        let name = format!("{}{suffix}", metadata.program);
        let folder = folder::claim(parent, &metadata.created, &name).map_err(no_room)?;
        let begun = Archive::begin(&folder, metadata);
        if begun.is_err() {
            // It was made a moment ago and has nothing of the user's in it; if it cannot be removed, it says itself
            // that it ended before its first session.
            let _ = fs::remove_dir_all(&folder);
        }
        let mut archive = begun.map_err(no_room)?;
        if let Err(error) = folder::mark_latest(&folder) {
            archive.warn(&format!("{}: `latest` could not be pointed at it: {error}", folder.display()))?;
        }
        Ok(archive)
    }

    fn begin(folder: &Path, metadata: &Metadata) -> Result<Archive, ArchiveError> {
        let lock = Lock::take(folder)?;
        if let Some(variant) = metadata.variants.iter().find(|variant| !is_one_component(&variant.slug)) {
            return Err(ArchiveError::OutOfTurn {
                folder: folder.to_owned(),
                what: format!("{:?} cannot be the name of {:?}'s files", variant.slug, variant.name),
            });
        }
        folder::write_files(folder, metadata)?;
        let file = open::make(&CAMPAIGN, folder, |connection| write_metadata(connection, metadata))?;
        let connection = open::for_writing(folder, &file)?;
        let mut archive = Archive::take_up(connection, lock, folder.to_owned(), file, metadata.clone())?;
        archive.begin_session()?;
        Ok(archive)
    }

    /// Resumes the campaign in this folder (or the target of a link such as `.widthwise/latest`): takes its lock and
    /// begins a new session, which has a row from its first round on. An interrupted round stays [interrupted] and is not continued: the next one is
    /// [`Archive::next_round`].
    ///
    /// Compare [`Archive::changed`] before adding anything.
    ///
    /// [interrupted]: widthwise_experiment::outcome::RoundKind::Interrupted
    pub fn resume(folder: &Path) -> Result<Archive, ArchiveError> {
        let folder = folder::resolve_whole(folder);
        // Whatever is not an archive, or not whole, is left without even a lock file.
        drop(open::for_reading(&folder)?);
        let lock = Lock::take(&folder)?;
        let found = open::for_reading(&folder)?;
        let (is_earlier, file) = (found.is_earlier(), found.file.clone());
        drop(found);
        if is_earlier {
            open::without_log(&folder, &file)?;
            migrate::on_disk(&folder, &open::for_reading(&folder)?)?;
        }
        let file = folder.join(CAMPAIGN.file);
        let connection = open::for_writing(&folder, &file)?;
        let metadata = read_metadata(&folder, &file, &connection)?;
        folder::renew_spec(&folder, &metadata.spec)?;
        Archive::take_up(connection, lock, folder, file, metadata)
    }

    /// Reads the campaign in this folder, also while another process measures it. Nothing is written.
    pub fn read(folder: &Path) -> Result<Archive, ArchiveError> {
        let folder = folder::resolve(folder);
        let found = open::for_reading(&folder)?;
        let connection = if found.is_earlier() { Some(migrate::in_memory(&folder, &found)?) } else { None };
        let (connection, file) = (connection.unwrap_or(found.connection), found.file);
        let metadata = read_metadata(&folder, &file, &connection)?;
        let next_round =
            first_free_round(&connection).map_err(|error| ArchiveError::database(&folder, &file, error))?;
        Ok(Archive { connection, writer: None, folder, file, metadata, next_round })
    }

    /// Begins a session with a file that is open for writing.
    fn take_up(
        connection: Connection,
        lock: Lock,
        folder: PathBuf,
        file: PathBuf,
        metadata: Metadata,
    ) -> Result<Archive, ArchiveError> {
        let begin = || {
            write_metrics(&connection)?;
            // Not in the middle of a round: see `Archive::end_round`.
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            let now = "SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";
            Ok((
                Writer {
                    session: None,
                    began: connection.query_row(now, [], |row| row.get(0))?,
                    variants: names(&connection, "SELECT name, id FROM variant")?,
                    metrics: names(&connection, "SELECT name, id FROM metric")?,
                    round: None,
                    in_log: 0,
                    batches: false,
                    since: None,
                    _lock: lock,
                },
                first_free_round(&connection)?,
            ))
        };
        let (writer, next_round) = begin().map_err(|error| ArchiveError::database(&folder, &file, error))?;
        Ok(Archive { connection, writer: Some(writer), folder, file, metadata, next_round })
    }

    /// The campaign's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the campaign is.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The changes since the campaign began, one phrase each: `x32 binary: its content changed`, `compiler gcc-12:
    /// 12.2.0 → 12.3.0`, `input bench.lua: is gone`. Resuming requires an empty list.
    pub fn changed(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        metadata::differences(&self.metadata.fingerprint, now)
    }

    /// The number of the round to begin next: rounds are numbered from 0 over the whole campaign, interrupted ones
    /// included.
    pub fn next_round(&self) -> u32 {
        self.next_round
    }
}

fn names(connection: &Connection, query: &str) -> rusqlite::Result<HashMap<String, i64>> {
    connection.prepare(query)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn first_free_round(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT coalesce(max(number) + 1, 0) FROM round", [], |row| row.get(0))
}
