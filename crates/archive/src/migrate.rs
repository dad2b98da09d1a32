//! Migration of archives of earlier versions: in memory for reading, on disk for resuming.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{params, Connection};
use serde_json::Value;
use widthwise_experiment::role::control_of;
use widthwise_experiment::scale::{Cell, GroupRun, Purpose};
use widthwise_experiment::{Role, VariantStatus};

use crate::earlier_spec;
use crate::error::ArchiveError;
use crate::group_run;
use crate::metadata::{write_metadata, Metadata, Scaling, VariantRow};
use crate::open::{self, Found};
use crate::schema::CAMPAIGN;

/// An archive in memory with the content of the file.
pub(crate) fn in_memory(folder: &Path, found: &Found) -> Result<Connection, ArchiveError> {
    let fill = || -> Result<Connection, Failure> {
        let connection = open::in_memory()?;
        connection.execute_batch(CAMPAIGN.sql())?;
        fill(&connection, folder, found)?;
        Ok(connection)
    };
    fill().map_err(|failure| failure.of(folder, &found.file))
}

/// Replaces an archive of an earlier version by one of this version; the old file stays beside it under another name.
pub(crate) fn on_disk(folder: &Path, found: &Found) -> Result<(), ArchiveError> {
    let kept = kept_as(found);
    std::fs::copy(&found.file, &kept).map_err(|error| ArchiveError::system(folder, &kept, error))?;
    let mut failure = None;
    let made = open::make(&CAMPAIGN, folder, |connection| {
        fill(connection, folder, found).map_err(|error| match error {
            Failure::Database(error) => error,
            Failure::Content(reason) => {
                failure = Some(reason);
                rusqlite::Error::ExecuteReturnedResults
            }
        })?;
        Ok(())
    });
    if let Err(error) = made {
        let _ = std::fs::remove_file(&kept);
        let of_content = |reason| ArchiveError::Damaged { path: found.file.clone(), reason };
        return Err(failure.map_or(error, of_content));
    }
    if found.file != folder.join(CAMPAIGN.file) {
        std::fs::remove_file(&found.file)
            .map_err(|error| ArchiveError::system(folder, &found.file, error))?;
    }
    Ok(())
}

/// Where the file of an earlier version stays: `campaign.sqlite.version-3`.
fn kept_as(found: &Found) -> std::path::PathBuf {
    let mut name = found.file.as_os_str().to_owned();
    name.push(format!(".version-{}", found.version));
    name.into()
}

enum Failure {
    Database(rusqlite::Error),
    Content(String),
}

impl Failure {
    fn of(self, folder: &Path, file: &Path) -> ArchiveError {
        match self {
            Failure::Database(error) => ArchiveError::database(folder, file, error),
            Failure::Content(reason) => ArchiveError::Damaged { path: file.to_owned(), reason },
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Database(error)
    }
}

/// Fills empty tables of this version with the content of the file.
fn fill(connection: &Connection, folder: &Path, found: &Found) -> Result<(), Failure> {
    let old = &found.connection;
    if found.format.name == CAMPAIGN.name {
        campaign(connection, old, folder, found.version)
    } else {
        scaling_campaign(connection, old, found.version)
    }
}

fn metric(name: &str) -> &str {
    match name {
        "peak_resident" => "max_rss",
        "peak_resident_sum" => "max_rss_sum",
        name => name,
    }
}

fn ending(word: &str) -> &str {
    match word {
        "flood" => "output-limit",
        "not-started" => "spawn-failed",
        "around" => "hook-failed",
        word => word,
    }
}

fn emulated(word: &str) -> &str {
    if word == "simulated" {
        "emulated"
    } else {
        word
    }
}

/// Copies the rows of a query as they are.
fn copy(new: &Connection, old: &Connection, query: &str, insert: &str) -> Result<(), Failure> {
    each(old, query, |values| {
        new.prepare_cached(insert)?.execute(rusqlite::params_from_iter(values))?;
        Ok(())
    })
}

/// Each row of a query.
fn each(
    old: &Connection,
    query: &str,
    mut take: impl FnMut(Vec<rusqlite::types::Value>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut statement = old.prepare(query)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take((0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?)?;
    }
    Ok(())
}

/// Replaces a word in a text column.
fn change(values: &mut [rusqlite::types::Value], column: usize, word: impl Fn(&str) -> String) {
    if let Some(rusqlite::types::Value::Text(text)) = values.get_mut(column) {
        *text = word(text);
    }
}

fn has_table(old: &Connection, name: &str) -> rusqlite::Result<bool> {
    let found = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    old.query_row(found, [name], |row| Ok(row.get::<_, i64>(0)? > 0))
}

fn campaign(new: &Connection, old: &Connection, folder: &Path, version: i64) -> Result<(), Failure> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    each(
        old,
        "SELECT created, widthwise, command, program_version, spec, seed, machine FROM campaign",
        |mut row| {
            change(&mut row, 4, earlier_spec::migrated);
            row.push(name.clone().into());
            new.execute(
                "INSERT INTO campaign (id, kind, created, widthwise, command, program_version, spec, seed, machine, program)
                 VALUES (1, 'comparison', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                rusqlite::params_from_iter(row),
            )?;
            Ok(())
        },
    )?;
    variants(new, old)?;
    copy(new, old, "SELECT what, value FROM identity", "INSERT INTO fingerprint VALUES (?1, ?2)")?;
    each(old, "SELECT id, name, title, unit, about FROM metric", |mut row| {
        change(&mut row, 1, |name| metric(name).to_owned());
        new.execute("INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5)", rusqlite::params_from_iter(row))?;
        Ok(())
    })?;
    let sessions = "SELECT id, began, elapsed_ns, stopped FROM session";
    copy(new, old, sessions, "INSERT INTO session VALUES (?1, ?2, ?3, ?4)")?;
    runs(new, old, version)?;
    if version >= 2 {
        series(new, old)?;
    }
    copy(
        new,
        old,
        "SELECT variant, compiler, cflags, binary_bytes, digest, log, seconds, cached FROM build",
        "INSERT INTO build VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    copy(new, old, "SELECT variant, diff FROM difference", "INSERT INTO output_difference VALUES (?1, ?2)")?;
    copy(new, old, "SELECT id, text FROM warning", "INSERT INTO warning VALUES (?1, ?2)")
}

/// The variants with their statuses.
fn variants(new: &Connection, old: &Connection) -> Result<(), Failure> {
    each(old, "SELECT id, name, slug, role FROM variant", |mut row| {
        if row[3] == rusqlite::types::Value::Text("again".into()) {
            change(&mut row, 1, |name| control_of(name.strip_suffix(" again").unwrap_or(name)));
            change(&mut row, 3, |_| Role::Control.to_string());
        }
        new.execute("INSERT INTO variant VALUES (?1, ?2, ?3, ?4)", rusqlite::params_from_iter(row))?;
        Ok(())
    })?;
    let spec: String = old.query_row("SELECT spec FROM campaign", [], |row| row.get(0))?;
    let allows = earlier_spec::allows_different(&spec);
    each(old, "SELECT variant, state, reason FROM standing", |mut row| {
        change(&mut row, 1, |state| {
            let status = match state {
                "measured" => VariantStatus::Ready,
                "different" if allows => VariantStatus::OutputMismatchAllowed(String::new()),
                "different" => VariantStatus::OutputMismatch(String::new()),
                "failed" => VariantStatus::Excluded(String::new()),
                _ => VariantStatus::Unsupported(String::new()),
            };
            status.name().to_owned()
        });
        new.execute("INSERT INTO variant_status VALUES (?1, ?2, ?3)", rusqlite::params_from_iter(row))?;
        Ok(())
    })
}

/// Rounds, runs and readings.
fn runs(new: &Connection, old: &Connection, version: i64) -> Result<(), Failure> {
    let others_ns = if version < 3 { "NULL" } else { "others_ns" };
    let rounds = format!(
        "SELECT number, session, kind, planned, finished, cpu, steal, pressure, others, {others_ns}, throttled FROM round"
    );
    each(old, &rounds, |mut row| {
        change(&mut row, 2, |kind| emulated(kind).to_owned());
        new.prepare_cached("INSERT INTO round VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?
            .execute(rusqlite::params_from_iter(row))?;
        Ok(())
    })?;
    let runs = "SELECT id, round, variant, position, began_ns, ended, number, reason, answer FROM run";
    each(old, runs, |mut row| {
        change(&mut row, 5, |word| ending(word).to_owned());
        new.prepare_cached("INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
            .execute(rusqlite::params_from_iter(row))?;
        Ok(())
    })?;
    each(old, "SELECT run, metric, value, source, coverage FROM reading", |mut row| {
        change(&mut row, 3, |source| emulated(source).to_owned());
        new.prepare_cached("INSERT INTO reading VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(rusqlite::params_from_iter(row))?;
        Ok(())
    })?;
    if has_table(old, "bound")? {
        copy(new, old, "SELECT run, metric, upper FROM bound", "INSERT INTO bound VALUES (?1, ?2, ?3)")?;
    }
    copy(
        new,
        old,
        "SELECT run, comm, count, peak_resident_bytes, cpu_ns, source FROM process",
        "INSERT INTO process VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    if has_table(old, "runtime_call")? {
        new.execute_batch(crate::runtime_calls::TABLE)?;
        let calls = "SELECT run, call, entered, trapped FROM runtime_call";
        copy(new, old, calls, "INSERT INTO runtime_call VALUES (?1, ?2, ?3, ?4)")?;
    }
    Ok(())
}

/// Memory over time.
fn series(new: &Connection, old: &Connection) -> Result<(), Failure> {
    let tables = [
        ("series", "memory_series", 6),
        ("series_process", "memory_process", 7),
        ("series_glance", "statm_sample", 6),
        ("series_reading", "memory_snapshot", 12),
        ("series_part", "memory_part", 9),
        ("series_mark", "mark", 4),
    ];
    for (was, is, columns) in tables {
        let places: Vec<String> = (1..=columns).map(|number| format!("?{number}")).collect();
        let insert = format!("INSERT INTO {is} VALUES ({})", places.join(", "));
        copy(new, old, &format!("SELECT * FROM {was}"), &insert)?;
    }
    Ok(())
}

fn scaling_campaign(new: &Connection, old: &Connection, version: i64) -> Result<(), Failure> {
    let text: String = old.query_row("SELECT head FROM study WHERE id = 1", [], |row| row.get(0))?;
    let damaged = |error: &dyn std::fmt::Display| Failure::Content(format!("its head is invalid: {error}"));
    let mut head: Value = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
    if let Some(plan) = head.get_mut("plan").and_then(Value::as_object_mut) {
        let load = plan.remove("background").unwrap_or_default();
        plan.insert("load".into(), load);
    }
    let head: Head = serde_json::from_value(head).map_err(|error| damaged(&error))?;
    let metadata = head.metadata();
    write_metadata(new, &metadata)?;
    for (variant, reason) in &head.unable {
        new.execute(
            "INSERT OR REPLACE INTO variant_status SELECT id, 'unsupported', ?2 FROM variant WHERE name = ?1",
            params![variant, reason],
        )?;
    }
    if version >= 2 {
        let sessions = "SELECT id, began, elapsed_ns FROM session";
        copy(new, old, sessions, "INSERT INTO session (id, began, elapsed_ns) VALUES (?1, ?2, ?3)")?;
    }
    new.execute("INSERT OR IGNORE INTO session (id, began) VALUES (1, ?1)", [&head.created])?;
    let baseline = head.variants.first().cloned().unwrap_or_default();
    let mut runs: Vec<GroupRun> = Vec::new();
    each(old, "SELECT record FROM attempt ORDER BY id", |row| {
        let Some(rusqlite::types::Value::Text(text)) = row.first() else { return Ok(()) };
        let number = runs.len();
        let damaged = |error| Failure::Content(format!("run {number}: {error}"));
        let record = serde_json::from_str(text).map_err(damaged)?;
        runs.push(serde_json::from_value(group_run_record(record, &baseline)).map_err(damaged)?);
        Ok(())
    })?;
    let extents = extents(&runs);
    for run in &runs {
        let kind = run.purpose.round_kind();
        let (made, missing) = extents.get(&run.round).copied().unwrap_or_default();
        new.execute(
            "INSERT OR IGNORE INTO round (number, session, kind, planned, finished) VALUES (?1, 1, ?2, ?3, ?4)",
            params![run.round, kind.name(), made + missing, missing == 0],
        )?;
        group_run::write(new, run)?;
    }
    copy(new, old, "SELECT id, text FROM remark", "INSERT INTO warning VALUES (?1, ?2)")
}

/// How many runs each round of a scaling campaign has, and how many it lacks: these versions do not say whether a round was
/// interrupted. It was if a cell that other rounds of its kind have is missing and has not failed until then.
fn extents(runs: &[GroupRun]) -> BTreeMap<u32, (u32, u32)> {
    let mut cells: BTreeMap<&str, BTreeSet<&Cell>> = BTreeMap::new();
    let mut first_failure: BTreeMap<&Cell, u32> = BTreeMap::new();
    let mut rounds: BTreeMap<u32, Vec<&GroupRun>> = BTreeMap::new();
    let has_all_cells = |run: &GroupRun| !matches!(run.purpose, Purpose::OneEvent | Purpose::HalfOfEvents);
    for run in runs {
        rounds.entry(run.round).or_default().push(run);
        if has_all_cells(run) {
            cells.entry(run.purpose.round_kind().name()).or_default().insert(&run.cell);
        }
        if !run.is_sound() {
            let round = first_failure.entry(&run.cell).or_insert(run.round);
            *round = run.round.min(*round);
        }
    }
    let extent = |(round, made): (&u32, &Vec<&GroupRun>)| {
        let here: BTreeSet<&Cell> =
            made.iter().filter(|run| has_all_cells(run)).map(|run| &run.cell).collect();
        let of_kind = made.first().and_then(|run| cells.get(run.purpose.round_kind().name()));
        let is_missing = |cell: &&&Cell| {
            !here.contains(**cell) && first_failure.get(**cell).is_none_or(|failure| failure > round)
        };
        let missing = of_kind.map_or(0, |cells| cells.iter().filter(is_missing).count());
        (*round, (made.len() as u32, missing as u32))
    };
    rounds.iter().map(extent).collect()
}

/// The record of a run with the keys and values of this version.
fn group_run_record(mut record: Value, baseline: &str) -> Value {
    if let Some(cell) = record.get_mut("cell").and_then(Value::as_object_mut) {
        let variant = cell.get("variant").and_then(Value::as_str).unwrap_or_default().to_owned();
        let again = variant.strip_suffix(" again").filter(|name| *name == baseline);
        cell.insert("variant".into(), again.map_or(variant.clone(), control_of).into());
    }
    if let Some(record) = record.as_object_mut() {
        if let Some(digest) = record.remove("answer") {
            record.insert("output_digest".into(), digest);
        }
        if let Some(Value::String(word)) = record.get_mut("ending").and_then(|ending| ending.get_mut("ended"))
        {
            *word = ending(word).to_owned();
        }
    }
    rename(&mut record);
    record
}

/// Renames every key of a record to its name in this version.
fn rename(record: &mut Value) {
    const KEYS: [(&str, &str); 3] =
        [("peak_resident", "max_rss"), ("told", "reported"), ("unshared", "copy_on_write")];
    match record {
        Value::Object(fields) => {
            for (old, new) in KEYS {
                if let Some(value) = fields.remove(old) {
                    fields.insert(new.to_owned(), value);
                }
            }
            fields.values_mut().for_each(rename);
        }
        Value::Array(values) => values.iter_mut().for_each(rename),
        _ => {}
    }
}

/// The metadata in the file of a scaling campaign before version 4.
#[derive(serde::Deserialize)]
struct Head {
    created: String,
    widthwise: String,
    command: Vec<String>,
    program: String,
    program_version: String,
    spec: String,
    seed: u64,
    machine: Value,
    identity: BTreeMap<String, String>,
    variants: Vec<String>,
    unable: Vec<(String, String)>,
    #[serde(flatten)]
    scaling: Scaling,
}

impl Head {
    fn metadata(&self) -> Metadata {
        let role = |place| if place == 0 { Role::Baseline } else { Role::Variant };
        let mut variants: Vec<VariantRow> = self
            .variants
            .iter()
            .enumerate()
            .map(|(place, name)| VariantRow::new(name, role(place)))
            .collect();
        if let Some(baseline) = self.variants.first() {
            variants.push(VariantRow::new(&control_of(baseline), Role::Control));
        }
        Metadata {
            created: self.created.clone(),
            widthwise: self.widthwise.clone(),
            command: self.command.clone(),
            program: self.program.clone(),
            program_version: self.program_version.clone(),
            spec: earlier_spec::migrated(&self.spec),
            seed: self.seed,
            machine: self.machine.clone(),
            fingerprint: self.identity.clone(),
            variants,
            scaling: Some(self.scaling.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_earlier_formats_are_known() {
        assert_eq!(metric("peak_resident_sum"), "max_rss_sum");
        assert_eq!((CAMPAIGN.version(), crate::schema::STUDY.version()), (crate::schema::VERSION, 2));
    }
}
