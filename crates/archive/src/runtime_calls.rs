//! The calls of a run that the x32 runtime translated: an optional table in archives of every version.

use std::collections::BTreeMap;

use rusqlite::{params, Connection, OptionalExtension};

use crate::database::{bounded, Archive, COUNTED_RUNS};
use crate::error::ArchiveError;

pub(crate) const TABLE: &str =
    "CREATE TABLE runtime_call (  -- system calls that the x32 runtime trapped or translated, by run
  run     INTEGER NOT NULL,
  call    TEXT NOT NULL,  -- its name
  entered INTEGER NOT NULL CHECK (entered >= 0),  -- from a rewritten site
  trapped INTEGER NOT NULL CHECK (trapped >= 0),
  PRIMARY KEY (run, call)
) STRICT, WITHOUT ROWID";

/// Calls of one name that the x32 runtime translated, as the mean of a variant's timed runs that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeCalls {
    /// The variant.
    pub variant: String,
    /// The call's name.
    pub call: String,
    /// From a rewritten site, per run.
    pub entered: f64,
    /// Through a trap, per run.
    pub trapped: f64,
}

/// The table's definition, if present and as expected: no other is read or written.
fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    let text: Option<String> = connection
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'runtime_call'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    Ok(text.is_some_and(|text| text == TABLE))
}

impl Archive {
    /// Adds the calls that the x32 runtime translated in the run that was added last: name, calls from rewritten sites,
    /// calls that trapped.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn add_runtime_calls(
        &mut self,
        round: u32,
        variant: &str,
        calls: &BTreeMap<&'static str, (u64, u64)>,
    ) -> Result<(), ArchiveError> {
        if calls.is_empty() {
            return Ok(());
        }
        self.write(|transaction, _| {
            if !is_there(transaction)? {
                transaction.execute_batch(TABLE)?;
            }
            let run: i64 = transaction
                .prepare_cached(
                    "SELECT run.id FROM run JOIN variant ON variant.id = run.variant
                      WHERE run.round = ?1 AND variant.name = ?2",
                )?
                .query_row(params![round, variant], |row| row.get(0))?;
            let mut add = transaction.prepare_cached(
                "INSERT INTO runtime_call (run, call, entered, trapped) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for (call, (entered, trapped)) in calls {
                add.execute(params![run, call, bounded(*entered), bounded(*trapped)])?;
            }
            Ok(())
        })
    }
}

/// The translated calls by variant, the most frequent first.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Vec<RuntimeCalls>> {
    if !is_there(connection)? {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(&format!(
        "{COUNTED_RUNS}
         SELECT variant.name, call, sum(1.0 * entered) / runs, sum(1.0 * trapped) / runs
           FROM runtime_call JOIN counted ON counted.id = runtime_call.run
           JOIN times ON times.variant = counted.variant JOIN variant ON variant.id = counted.variant
          GROUP BY counted.variant, call
          ORDER BY counted.variant, sum(entered) + sum(trapped) DESC, call"
    ))?;
    let rows = statement.query_map([], |row| {
        Ok(RuntimeCalls {
            variant: row.get(0)?,
            call: row.get(1)?,
            entered: row.get(2)?,
            trapped: row.get(3)?,
        })
    })?;
    rows.collect()
}
