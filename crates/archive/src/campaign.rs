//! The archive of one campaign: create, resume or read it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{params, Connection};
use widthwise_experiment::metric::METRICS;
use widthwise_experiment::Role;

use crate::error::ArchiveError;
use crate::folder;
use crate::lock::Lock;
use crate::metadata::{self, Metadata, VariantRow};
use crate::migrate;
use crate::open;
use crate::schema::CAMPAIGN;
use crate::slug::is_one_component;

/// The archive of one campaign: a folder, and the SQLite file in it.
#[derive(Debug)]
pub struct Archive {
    // Fields drop in this order: the lock is released after the file is closed.
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
    pub(crate) session: i64,
    pub(crate) variants: HashMap<String, i64>,
    pub(crate) metrics: HashMap<String, i64>,
    /// The round whose runs are being added.
    pub(crate) round: Option<u32>,
    /// Runs added since the last checkpoint.
    pub(crate) in_log: u32,
    /// Whether [`Archive::commit`] commits what is written, instead of each call.
    pub(crate) batches: bool,
    /// When this session's first round began.
    pub(crate) since: Option<Instant>,
    _lock: Lock,
}

impl Archive {
    /// Creates a campaign: makes its folder in `parent` (`.widthwise`, created if absent) and takes its lock. The
    /// folder's name is the day of `metadata.created` and the program's name, `2026-11-21-sqlite3`, with `-2`, `-3` …
    /// after it if that exists.
    pub fn create(parent: &Path, metadata: &Metadata) -> Result<Archive, ArchiveError> {
        let suffix = if metadata.scaling.is_some() { "-scale" } else { "" };
        let folder = folder::claim(parent, &metadata.created, &format!("{}{suffix}", metadata.program))?;
        let begun = Archive::begin(&folder, metadata);
        if begun.is_err() {
            // The new folder has no user data; if it cannot be removed, opening it reports an interrupted start.
            let _ = fs::remove_dir_all(&folder);
        }
        let mut archive = begun?;
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
        Archive::take_up(connection, lock, folder.to_owned(), file, metadata.clone())
    }

    /// Resumes the campaign in this folder (or the target of a link such as `.widthwise/latest`): takes its lock and
    /// begins a new session. An interrupted round stays [interrupted] and is not continued: the next one is
    /// [`Archive::next_round`].
    ///
    /// Compare [`Archive::changed`] before adding anything.
    ///
    /// [interrupted]: widthwise_experiment::outcome::RoundKind::Interrupted
    pub fn resume(folder: &Path) -> Result<Archive, ArchiveError> {
        let folder = folder::resolve_whole(folder);
        // A folder without an undamaged archive gets no lock file.
        drop(open::for_reading(&folder)?);
        let lock = Lock::take(&folder)?;
        let found = open::for_reading(&folder)?;
        if found.is_earlier() {
            migrate::on_disk(&folder, &found)?;
        }
        drop(found);
        let file = folder.join(CAMPAIGN.file);
        let connection = open::for_writing(&folder, &file)?;
        let metadata = read_metadata(&folder, &file, &connection)?;
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
            connection
                .execute("INSERT INTO session (began) VALUES (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))", [])?;
            Ok((
                Writer {
                    session: connection.last_insert_rowid(),
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

    /// The folder of a variant's build log, which is the file `log` in it.
    pub fn build_folder(&self, variant: &str) -> Result<PathBuf, ArchiveError> {
        Ok(self.folder.join("build").join(&self.variant(variant)?.slug))
    }

    /// The file for a variant's output.
    pub fn output_file(&self, variant: &str) -> Result<PathBuf, ArchiveError> {
        Ok(self.folder.join("output").join(&self.variant(variant)?.slug))
    }

    fn variant(&self, name: &str) -> Result<&VariantRow, ArchiveError> {
        self.metadata.variants.iter().find(|variant| variant.name == name).ok_or_else(|| {
            ArchiveError::Unknown { folder: self.folder.clone(), kind: "variant", name: name.to_owned() }
        })
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

    /// A failure of this archive's database.
    pub(crate) fn failed(&self, error: rusqlite::Error) -> ArchiveError {
        ArchiveError::database(&self.folder, &self.file, error)
    }
}

impl Drop for Archive {
    /// Folds the log into the file, so that the file can be copied alone and read from a read-only folder. If another
    /// process is reading or the disk is full, the log stays, without loss.
    fn drop(&mut self) {
        if self.writer.is_some() {
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.connection.pragma_update(None, "journal_mode", "DELETE");
        }
    }
}

pub(crate) fn write_metadata(connection: &Connection, metadata: &Metadata) -> rusqlite::Result<()> {
    let command = serde_json::Value::from(metadata.command.clone()).to_string();
    let json = |scaling| serde_json::to_string(scaling);
    let scaling = metadata.scaling.as_ref().map(json).transpose();
    let scaling = scaling.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.execute(
        "INSERT INTO campaign (id, kind, created, widthwise, command, program, program_version, spec, seed, machine, scaling)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            if scaling.is_some() { "scaling" } else { "comparison" },
            metadata.created,
            metadata.widthwise,
            command,
            metadata.program,
            metadata.program_version,
            metadata.spec,
            metadata.seed.to_string(),
            metadata.machine.to_string(),
            scaling
        ],
    )?;
    for (what, value) in &metadata.fingerprint {
        connection.execute("INSERT INTO fingerprint (what, value) VALUES (?1, ?2)", [what, value])?;
    }
    for variant in &metadata.variants {
        connection.execute(
            "INSERT INTO variant (name, slug, role) VALUES (?1, ?2, ?3)",
            params![variant.name, variant.slug, variant.role.name()],
        )?;
    }
    write_metrics(connection)
}

/// Every metric this build knows; a later build that resumes may know more.
fn write_metrics(connection: &Connection) -> rusqlite::Result<()> {
    let mut add = connection.prepare(
        "INSERT INTO metric (name, title, unit, about) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    for metric in METRICS {
        add.execute([metric.name, metric.title, metric.unit.name(), metric.about])?;
    }
    Ok(())
}

fn read_metadata(folder: &Path, file: &Path, connection: &Connection) -> Result<Metadata, ArchiveError> {
    let failed = |error| ArchiveError::database(folder, file, error);
    let damaged = |reason: String| ArchiveError::Damaged { path: file.to_owned(), reason };
    let columns = "SELECT created, widthwise, command, program_version, spec, seed, machine, program, scaling FROM campaign";
    let mut rows = connection.prepare(columns).map_err(failed)?;
    let (metadata, command, seed, machine, scaling) = rows
        .query_row([], |row| {
            let metadata = Metadata {
                created: row.get(0)?,
                widthwise: row.get(1)?,
                command: Vec::new(),
                program_version: row.get(3)?,
                spec: row.get(4)?,
                seed: 0,
                machine: serde_json::Value::Null,
                program: row.get(7)?,
                fingerprint: BTreeMap::new(),
                variants: Vec::new(),
                scaling: None,
            };
            let text = |column| row.get::<_, String>(column);
            Ok((metadata, text(2)?, text(5)?, text(6)?, row.get::<_, Option<String>>(8)?))
        })
        .map_err(failed)?;
    let read_names = || {
        let fingerprint = connection
            .prepare("SELECT what, value FROM fingerprint")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<BTreeMap<String, String>>>()?;
        let variants = connection
            .prepare("SELECT name, slug, role FROM variant ORDER BY id")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(String, String, String)>>>()?;
        Ok((fingerprint, variants))
    };
    let (fingerprint, rows) = read_names().map_err(failed)?;
    let mut variants = Vec::new();
    for (name, slug, role) in rows {
        let Some(role) = Role::parse(&role) else {
            return Err(damaged(format!("the variant {name:?} has the unknown role {role:?}")));
        };
        variants.push(VariantRow { name, slug, role });
    }
    if let Some(variant) = variants.iter().find(|variant| !is_one_component(&variant.slug)) {
        return Err(damaged(format!("{:?} cannot be the name of {:?}'s files", variant.slug, variant.name)));
    }
    Ok(Metadata {
        command: serde_json::from_str(&command)
            .map_err(|error| damaged(format!("its command line is not JSON: {error}")))?,
        seed: seed.parse().map_err(|_| damaged(format!("its seed is {seed:?}")))?,
        machine: serde_json::from_str(&machine)
            .map_err(|error| damaged(format!("its machine record is not JSON: {error}")))?,
        scaling: scaling
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| damaged(format!("its scaling plan is invalid: {error}")))?,
        fingerprint,
        variants,
        ..metadata
    })
}

fn names(connection: &Connection, query: &str) -> rusqlite::Result<HashMap<String, i64>> {
    connection.prepare(query)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn first_free_round(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("SELECT coalesce(max(number) + 1, 0) FROM round", [], |row| row.get(0))
}
