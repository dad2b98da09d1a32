//! The archive of a study of scale: a folder like a campaign's, and in it a SQLite file with every attempt.
//!
//! The promises are those of a campaign's archive, which is opened and checked in the same way: an attempt is kept in one
//! transaction when it has ended, is never changed afterwards, and outlives `kill -9`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{params, Connection};
use serde::{Deserialize, Serialize};
use widthwise_experiment::scale::{Attempt, Plan};

use crate::error::ArchiveError;
use crate::folder;
use crate::head;
use crate::lock::Lock;
use crate::opening;
use crate::schema::Format;

/// `WWSt`, in the file's header.
const APPLICATION: i64 = 0x5757_5374;

/// The tables that version 2 added.
const SESSIONS: &str = include_str!("study_2.sql");

pub(crate) static STUDY: Format = Format {
    name: "study",
    file: "study.sqlite",
    application: APPLICATION,
    versions: &[
        include_str!("study_1.sql"),
        concat!(include_str!("study_1.sql"), include_str!("study_2.sql")),
    ],
    upgrade: add_sessions,
};

/// An archive of version 1 becomes one of version 2 when it is written to again.
fn add_sessions(connection: &Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > 1 {
        return Ok(());
    }
    connection.execute_batch(&format!("BEGIN; {SESSIONS} PRAGMA user_version = 2; COMMIT"))
}

/// What a study is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyHead {
    /// When it began, RFC 3339.
    pub created: String,
    /// The version of Widthwise.
    pub widthwise: String,
    /// The command line.
    pub command: Vec<String>,
    /// The program's name.
    pub program: String,
    /// Its version, where it is known.
    pub program_version: String,
    /// The program, its variants and how they are launched: a spec file.
    pub spec: String,
    /// What was asked besides.
    pub plan: Plan,
    /// Seed of the orders.
    pub seed: u64,
    /// The machine, as `doctor` records it.
    pub machine: serde_json::Value,
    /// What must not change: names, and what identifies each.
    pub identity: BTreeMap<String, String>,
    /// The variants, the baseline first.
    pub variants: Vec<String>,
    /// The placements that can be had here, with the CPUs of the largest cell.
    pub placements: Vec<(String, Vec<u32>)>,
    /// Variants that cannot be measured, with the reason.
    pub unable: Vec<(String, String)>,
    /// CPUs that may be used.
    pub allowed: Vec<u32>,
    /// The CPUs of each core that may be used.
    pub cores: Vec<Vec<u32>>,
    /// Memory of the machine, in bytes.
    pub memory: u64,
    /// Confidence of the intervals.
    pub confidence: f64,
}

/// A study's folder.
#[derive(Debug)]
pub struct StudyArchive {
    // Dropped in this order: the lock is given back after the file is closed.
    connection: Connection,
    folder: PathBuf,
    file: PathBuf,
    head: StudyHead,
    writer: Option<Writer>,
}

/// What the process that measures the study has besides.
#[derive(Debug)]
struct Writer {
    /// Its row of `session`.
    session: i64,
    began: Instant,
    _lock: Lock,
}

impl StudyArchive {
    /// Whether the folder holds a study.
    pub fn is_one(folder: &Path) -> bool {
        folder::resolve(folder).join(STUDY.file).is_file()
    }

    /// Makes a new study's folder in `root`, and takes its lock.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn create(root: &Path, head: &StudyHead) -> Result<StudyArchive, ArchiveError> {
        let folder = folder::claim(root, &head.created, &format!("{}-scale", head.program))?;
        let lock = Lock::take(&folder)?;
        write_spec(&folder, &head.spec)?;
        let machine = folder.join("machine.json");
        std::fs::write(&machine, format!("{:#}\n", head.machine))
            .map_err(|error| ArchiveError::system(&folder, &machine, error))?;
        let file = opening::make(&STUDY, &folder, |connection| {
            connection.execute("INSERT INTO study (id, head) VALUES (1, ?1)", [json(head)?]).map(drop)
        })?;
        let archive = StudyArchive::open_for_writing(folder, file, lock)?;
        if let Err(error) = folder::mark_latest(&archive.folder) {
            let folder = archive.folder.display();
            archive.remark(&format!("{folder}: `latest` could not be pointed at it: {error}"))?;
        }
        Ok(archive)
    }

    /// Goes on with a study: takes its lock, and begins a new session.
    ///
    /// # Errors
    /// There is none, it is not whole, or another process has its lock.
    pub fn resume(folder: &Path) -> Result<StudyArchive, ArchiveError> {
        let folder = folder::resolve_whole(folder);
        let file = opening::find(&STUDY, &folder)?;
        // Whatever is not a study, or not whole, is left without even a lock file.
        let connection = opening::for_reading(&STUDY, &folder, &file)?;
        read_head(&folder, &file, &connection)?;
        drop(connection);
        let lock = Lock::take(&folder)?;
        StudyArchive::open_for_writing(folder, file, lock)
    }

    /// Reads a study, also while another process measures it. Nothing is written.
    ///
    /// # Errors
    /// There is none, or it is not whole.
    pub fn read(folder: &Path) -> Result<StudyArchive, ArchiveError> {
        let folder = folder::resolve(folder);
        let file = opening::find(&STUDY, &folder)?;
        let connection = opening::for_reading(&STUDY, &folder, &file)?;
        let head = read_head(&folder, &file, &connection)?;
        Ok(StudyArchive { connection, folder, file, head, writer: None })
    }

    fn open_for_writing(folder: PathBuf, file: PathBuf, lock: Lock) -> Result<StudyArchive, ArchiveError> {
        let connection = opening::for_writing(&STUDY, &folder, &file)?;
        let head = read_head(&folder, &file, &connection)?;
        connection
            .execute("INSERT INTO session (began) VALUES (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", [])
            .map_err(|error| ArchiveError::database(&folder, &file, error))?;
        let session = connection.last_insert_rowid();
        let writer = Some(Writer { session, began: Instant::now(), _lock: lock });
        Ok(StudyArchive { connection, folder, file, head, writer })
    }

    /// Time that earlier sessions took, each until its last attempt. Before version 2 it was not kept, and counts as none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn elapsed_before(&self) -> Result<Duration, ArchiveError> {
        let own = self.writer.as_ref().map_or(i64::MAX, |writer| writer.session);
        let sum: i64 = self
            .connection
            .query_row("SELECT total(elapsed_ns) FROM session WHERE id < ?1", [own], |row| {
                row.get::<_, f64>(0)
            })
            .map_err(|error| self.failed(error))? as i64;
        Ok(Duration::from_nanos(sum.unsigned_abs()))
    }

    /// Begins to count this session's time anew: what was built before is none of it.
    pub fn begin(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.began = Instant::now();
        }
    }

    /// Replaces the spec by one that differs in its stopping rule alone: a study that is resumed may be given another.
    ///
    /// # Errors
    /// The disk is full, or the file was opened for reading.
    pub fn set_spec(&mut self, spec: &str) -> Result<(), ArchiveError> {
        let mut head = self.head.clone();
        spec.clone_into(&mut head.spec);
        json(&head)
            .and_then(|text| self.connection.execute("UPDATE study SET head = ?1 WHERE id = 1", [text]))
            .map_err(|error| self.failed(error))?;
        self.head = head;
        write_spec(&self.folder, spec)
    }

    /// The study's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the study is.
    pub fn head(&self) -> &StudyHead {
        &self.head
    }

    /// What is no longer as it was when the study began.
    pub fn changed(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        head::differences(&self.head.identity, now)
    }

    /// Keeps an attempt: when this returns, it outlives `kill -9`.
    ///
    /// # Errors
    /// The disk is full, or the file was opened for reading.
    pub fn add(&self, attempt: &Attempt) -> Result<(), ArchiveError> {
        let Some(writer) = &self.writer else {
            return Err(ArchiveError::OutOfTurn {
                folder: self.folder.clone(),
                what: "the study was opened for reading".to_owned(),
            });
        };
        let elapsed = i64::try_from(writer.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let keep = || {
            let transaction = self.connection.unchecked_transaction()?;
            transaction.execute(
                "INSERT INTO attempt (round, position, purpose, variant, mode, placement, processes, sound, elapsed_ns, \
                 cpu_ns, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    attempt.round,
                    attempt.position,
                    attempt.purpose.name(),
                    attempt.cell.variant,
                    attempt.cell.mode.name(),
                    attempt.cell.placement,
                    attempt.cell.processes,
                    attempt.is_sound(),
                    attempt.elapsed_ns,
                    attempt.cpu_ns,
                    json(attempt)?
                ],
            )?;
            transaction.execute(
                "UPDATE session SET elapsed_ns = ?2 WHERE id = ?1",
                params![writer.session, elapsed],
            )?;
            transaction.commit()
        };
        keep().map_err(|error| self.failed(error))
    }

    /// Keeps what a report should say; the same is kept once.
    ///
    /// # Errors
    /// As [`StudyArchive::add`].
    pub fn remark(&self, text: &str) -> Result<(), ArchiveError> {
        self.connection
            .execute("INSERT OR IGNORE INTO remark (text) VALUES (?1)", [text])
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Every remark, in the order in which they were made.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn remarks(&self) -> Result<Vec<String>, ArchiveError> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT text FROM remark ORDER BY id")?;
            let texts = statement.query_map([], |row| row.get(0))?;
            texts.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// Every attempt, in the order in which they were made.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn attempts(&self) -> Result<Vec<Attempt>, ArchiveError> {
        let read = || {
            let mut statement = self.connection.prepare("SELECT record FROM attempt ORDER BY id")?;
            let texts = statement.query_map([], |row| row.get(0))?;
            texts.collect::<rusqlite::Result<Vec<String>>>()
        };
        let texts = read().map_err(|error| self.failed(error))?;
        texts
            .iter()
            .enumerate()
            .map(|(number, text)| {
                serde_json::from_str(text).map_err(|error| ArchiveError::Damaged {
                    path: self.file.clone(),
                    reason: format!("attempt {number}: {error}"),
                })
            })
            .collect()
    }

    fn failed(&self, error: rusqlite::Error) -> ArchiveError {
        ArchiveError::database(&self.folder, &self.file, error)
    }
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn write_spec(folder: &Path, spec: &str) -> Result<(), ArchiveError> {
    let path = folder.join("widthwise.toml");
    std::fs::write(&path, spec).map_err(|error| ArchiveError::system(folder, &path, error))
}

fn read_head(folder: &Path, file: &Path, connection: &Connection) -> Result<StudyHead, ArchiveError> {
    let text: String = connection
        .query_row("SELECT head FROM study WHERE id = 1", [], |row| row.get(0))
        .map_err(|error| ArchiveError::database(folder, file, error))?;
    serde_json::from_str(&text).map_err(|error| ArchiveError::Damaged {
        path: file.to_owned(),
        reason: format!("its head is none: {error}"),
    })
}
