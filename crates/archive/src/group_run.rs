//! Group runs of a scaling campaign: written as they end, and read back.

use rusqlite::{params, Connection};
use widthwise_experiment::scale::GroupRun;

use crate::database::{set_elapsed, Archive, Fault};
use crate::error::ArchiveError;

impl Archive {
    /// Adds a run of several members that has ended to the open round: when this returns, the run survives `kill -9`.
    ///
    /// # Errors
    /// The disk is full, the round is not the open one, or the archive was opened for reading.
    pub fn add_group_run(&mut self, run: &GroupRun) -> Result<(), ArchiveError> {
        self.check_round(run.round)?;
        let record = record(run).map_err(|error| self.failed(error))?;
        self.write(|transaction, writer| {
            insert(transaction, run, &record)?;
            match writer.since {
                Some(since) => set_elapsed(transaction, writer.session, since.elapsed()),
                None => Ok(()),
            }
        })?;
        self.count_in_log(record.len());
        Ok(())
    }
}

pub(crate) fn write(connection: &Connection, run: &GroupRun) -> rusqlite::Result<()> {
    insert(connection, run, &record(run)?)
}

fn record(run: &GroupRun) -> rusqlite::Result<String> {
    serde_json::to_string(run).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn insert(connection: &Connection, run: &GroupRun, record: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO group_run (round, position, purpose, variant, mode, placement, members, sound, elapsed_ns, cpu_ns,
                                    record)
             VALUES (?1, ?2, ?3, (SELECT id FROM variant WHERE name = ?4), ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            run.round,
            run.position,
            run.purpose.name(),
            run.cell.variant,
            run.cell.mode.name(),
            run.cell.placement,
            run.cell.processes,
            run.is_sound(),
            run.elapsed_ns,
            run.cpu_ns,
            record
        ])
        .map(drop)
}

/// Every one of them, in the order in which they were made.
pub(crate) fn read(connection: &Connection) -> Result<Vec<GroupRun>, Fault> {
    let mut statement = connection.prepare("SELECT record FROM group_run ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        runs.push(
            serde_json::from_str(&text)
                .map_err(|error| Fault::Content(format!("run {} of several members: {error}", runs.len())))?,
        );
    }
    Ok(runs)
}
