//! The layout that the programs of a round had: an optional table, of campaigns whose programs have several layouts.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

pub(crate) const TABLE: &str = "CREATE TABLE round_layout (  -- the layout that every program had in a round
  round  INTEGER PRIMARY KEY REFERENCES round,
  layout INTEGER NOT NULL CHECK (layout BETWEEN 1 AND 4294967295)  -- from 1
) STRICT";

/// Whether the table is present and as expected: no other is read or written.
fn is_there(connection: &Connection) -> rusqlite::Result<bool> {
    let text: Option<String> = connection
        .query_row(
            "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'round_layout'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    Ok(text.is_some_and(|text| text == TABLE))
}

/// Adds the layout of a round, and the table if there is none.
pub(crate) fn write(connection: &Connection, round: u32, layout: u32) -> rusqlite::Result<()> {
    if !is_there(connection)? {
        connection.execute_batch(TABLE)?;
    }
    connection
        .prepare_cached("INSERT INTO round_layout (round, layout) VALUES (?1, ?2)")?
        .execute([round, layout])
        .map(drop)
}

/// The layouts by round.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<BTreeMap<u32, u32>> {
    if !is_there(connection)? {
        return Ok(BTreeMap::new());
    }
    let mut statement = connection.prepare("SELECT round, layout FROM round_layout")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
