//! The archive of a study of scale: a folder like a campaign's, and in it a SQLite file with every attempt.
//!
//! The promises are those of a campaign's archive: an attempt is kept in one transaction when it has ended, is never changed
//! afterwards, and outlives `kill -9`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{params, Connection, OpenFlags};
use serde::{Deserialize, Serialize};
use widthwise_experiment::scale::{Attempt, Plan};

use crate::error::ArchiveError;
use crate::folder;
use crate::head;
use crate::lock::Lock;

/// The study's file in its folder.
pub(crate) const FILE: &str = "study.sqlite";
/// `WWSt`, in the file's header.
const APPLICATION: i64 = 0x5757_5374;
/// Of the tables and of what is in their JSON.
const VERSION: i64 = 1;

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
    connection: Connection,
    folder: PathBuf,
    file: PathBuf,
    head: StudyHead,
    lock: Option<Lock>,
}

impl StudyArchive {
    /// Whether the folder holds a study.
    pub fn is_one(folder: &Path) -> bool {
        folder::resolve(folder).join(FILE).is_file()
    }

    /// Makes a new study's folder in `root`, and takes its lock.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn create(root: &Path, head: &StudyHead) -> Result<StudyArchive, ArchiveError> {
        let folder = folder::claim(root, &head.created, &format!("{}-scale", head.program))?;
        let lock = Lock::take(&folder)?;
        let system = |path: &Path, error| ArchiveError::system(&folder, path, error);
        for (name, text) in
            [("widthwise.toml", head.spec.clone()), ("machine.json", format!("{:#}\n", head.machine))]
        {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| system(&path, error))?;
        }
        let unfinished = folder.join("study.sqlite.new");
        let make = || -> rusqlite::Result<()> {
            let mut connection = Connection::open(&unfinished)?;
            let transaction = connection.transaction()?;
            transaction.execute_batch(include_str!("study.sql"))?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            let text = serde_json::to_string(head)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            transaction.execute("INSERT INTO study (id, head) VALUES (1, ?1)", [text])?;
            transaction.commit()?;
            connection.close().map_err(|(_, error)| error)
        };
        make().map_err(|error| ArchiveError::database(&folder, &unfinished, error))?;
        let file = folder.join(FILE);
        std::fs::rename(&unfinished, &file).map_err(|error| system(&file, error))?;
        let archive = StudyArchive::open(&folder, true, Some(lock))?;
        if let Err(error) = folder::mark_latest(&folder) {
            archive.remark(&format!("{}: `latest` could not be pointed at it: {error}", folder.display()))?;
        }
        Ok(archive)
    }

    /// Goes on with a study: takes its lock.
    ///
    /// # Errors
    /// There is none, it is not whole, or another process has its lock.
    pub fn resume(folder: &Path) -> Result<StudyArchive, ArchiveError> {
        let folder = folder::resolve_whole(folder);
        drop(StudyArchive::open(&folder, false, None)?);
        let lock = Lock::take(&folder)?;
        StudyArchive::open(&folder, true, Some(lock))
    }

    /// Reads a study, also while another process measures it.
    ///
    /// # Errors
    /// There is none, or it is not whole.
    pub fn read(folder: &Path) -> Result<StudyArchive, ArchiveError> {
        StudyArchive::open(&folder::resolve(folder), false, None)
    }

    fn open(folder: &Path, for_writing: bool, lock: Option<Lock>) -> Result<StudyArchive, ArchiveError> {
        let file = folder.join(FILE);
        match file.metadata() {
            Ok(found) if found.is_file() => {}
            _ => {
                return Err(ArchiveError::Missing {
                    path: folder.to_owned(),
                    what: format!("there is no study here (no {FILE})"),
                })
            }
        }
        let access =
            if for_writing { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
        let begin = || -> rusqlite::Result<(Connection, i64, i64)> {
            let connection = Connection::open_with_flags(&file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            // A hostile file runs nothing (https://sqlite.org/security.html).
            connection.pragma_update(None, "trusted_schema", false)?;
            let word = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let (application, version) = (word("application_id")?, word("user_version")?);
            Ok((connection, application, version))
        };
        let failed = |error| ArchiveError::database(folder, &file, error);
        let (connection, application, version) = begin().map_err(failed)?;
        if application != APPLICATION {
            let reason = "it is no study's database".to_owned();
            return Err(ArchiveError::Foreign { path: file, reason });
        }
        if version > VERSION {
            return Err(ArchiveError::Newer { path: file, found: version, known: VERSION });
        }
        let verdict: String =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
        if verdict != "ok" {
            let reason = verdict.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(ArchiveError::Damaged { path: file, reason });
        }
        let text: String = connection
            .query_row("SELECT head FROM study WHERE id = 1", [], |row| row.get(0))
            .map_err(failed)?;
        let head = serde_json::from_str(&text).map_err(|error| ArchiveError::Damaged {
            path: file.clone(),
            reason: format!("its head is none: {error}"),
        })?;
        Ok(StudyArchive { connection, folder: folder.to_owned(), file, head, lock })
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
        debug_assert!(self.lock.is_some(), "only who has the lock writes");
        let record = serde_json::to_string(attempt)
            .map_err(|error| self.failed(rusqlite::Error::ToSqlConversionFailure(Box::new(error))))?;
        self.connection
            .execute(
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
                    record
                ],
            )
            .map(drop)
            .map_err(|error| self.failed(error))
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
