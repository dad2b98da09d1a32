//! The open database of a campaign: its transactions, and what all tables have in common.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{params, Connection};

use crate::error::ArchiveError;
use crate::lock::Lock;
use crate::metadata::Metadata;

/// Which runs count in sums by variant: `counted`, the timed runs that ended well, and `times`, how many each variant has.
pub(crate) const COUNTED_RUNS: &str = "WITH counted AS (
           SELECT run.id, run.variant FROM run JOIN round ON round.number = run.round
            WHERE round.finished AND round.kind = 'timed' AND run.ended = 'done'
         ), times AS (
           SELECT variant, count(*) AS runs FROM counted GROUP BY variant
         )";

/// The archive of one campaign: a folder, and the SQLite file in it.
#[derive(Debug)]
pub struct Archive {
    // Dropped in this order: the lock is given back after the file is closed.
    pub(crate) connection: Connection,
    pub(crate) writer: Option<Writer>,
    pub(crate) folder: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) metadata: Metadata,
    pub(crate) next_round: u32,
}

/// The state of the process that measures the campaign.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The session's row; there is none before its first round.
    pub(crate) session: Option<i64>,
    /// When it began, RFC 3339.
    pub(crate) began: String,
    pub(crate) variants: HashMap<String, i64>,
    pub(crate) metrics: HashMap<String, i64>,
    /// The round whose runs are being added.
    pub(crate) round: Option<u32>,
    /// About how many bytes were added to the log since the last checkpoint.
    pub(crate) in_log: u64,
    /// Whether [`Archive::commit`] commits what is written, instead of each call.
    pub(crate) batches: bool,
    /// When this session's first round began.
    pub(crate) since: Option<Instant>,
    // Held as long as the campaign is measured.
    pub(crate) _lock: Lock,
}

impl Archive {
    /// A failure of this archive's database.
    pub(crate) fn failed(&self, error: rusqlite::Error) -> ArchiveError {
        ArchiveError::database(&self.folder, &self.file, error)
    }

    /// Checks that this round is open.
    pub(crate) fn check_round(&self, round: u32) -> Result<(), ArchiveError> {
        if self.writer()?.round == Some(round) {
            return Ok(());
        }
        Err(self
            .out_of_turn(format!("a run of round {round} was given, but it is not the one that was begun")))
    }

    /// Runs `work` in one transaction.
    pub(crate) fn write(
        &mut self,
        work: impl FnOnce(&Connection, &Writer) -> rusqlite::Result<()>,
    ) -> Result<(), ArchiveError> {
        let writer = self.writer()?;
        let attempt = || {
            if self.connection.is_autocommit() {
                self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            }
            work(&self.connection, writer)?;
            if writer.batches {
                return Ok(());
            }
            self.connection.prepare_cached("COMMIT")?.execute([]).map(drop)
        };
        let outcome = attempt();
        outcome.map_err(|error| self.given_up(error))
    }

    /// Rolls back after an error. (SQLite may have rolled back already.)
    pub(crate) fn given_up(&self, error: rusqlite::Error) -> ArchiveError {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.failed(error)
    }

    pub(crate) fn writer(&self) -> Result<&Writer, ArchiveError> {
        self.writer.as_ref().ok_or_else(|| self.read_only())
    }

    pub(crate) fn id_of(&self, variant: &str) -> Result<i64, ArchiveError> {
        self.writer()?.variants.get(variant).copied().ok_or_else(|| self.unknown("variant", variant))
    }

    fn read_only(&self) -> ArchiveError {
        self.out_of_turn("it was opened for reading only".to_owned())
    }

    pub(crate) fn unknown(&self, kind: &'static str, name: &str) -> ArchiveError {
        ArchiveError::Unknown { folder: self.folder.clone(), kind, name: name.to_owned() }
    }

    pub(crate) fn out_of_turn(&self, what: String) -> ArchiveError {
        ArchiveError::OutOfTurn { folder: self.folder.clone(), what }
    }
}

impl Drop for Archive {
    /// Moves the log's content into the file, so that the file can be copied alone and read from a read-only folder. If another
    /// process is reading or the disk is full, the log stays, without loss.
    fn drop(&mut self) {
        if self.writer.is_some() {
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.connection.pragma_update(None, "journal_mode", "DELETE");
        }
    }
}

/// Why a row could not be read: SQLite's reason, or ours.
pub(crate) enum Fault {
    Database(rusqlite::Error),
    Content(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Database(error)
    }
}

/// SQLite's integers are signed: 292 years of nanoseconds, 8 EiB.
pub(crate) fn bounded(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn note(transaction: &Connection, text: &str) -> rusqlite::Result<()> {
    let add = "INSERT INTO warning (text) VALUES (?1) ON CONFLICT DO NOTHING";
    transaction.prepare_cached(add)?.execute([text]).map(drop)
}

pub(crate) fn set_elapsed(
    transaction: &Connection,
    session: Option<i64>,
    elapsed: Duration,
) -> rusqlite::Result<()> {
    let nanoseconds = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
    transaction
        .prepare_cached("UPDATE session SET elapsed_ns = ?2 WHERE id = ?1")?
        .execute(params![session, nanoseconds])
        .map(drop)
}
