//! The tables of an archive's file, in every version, and its identification.

use rusqlite::{Connection, OptionalExtension};

/// The archive version this build writes, in `PRAGMA user_version`. It reads this one and all before it.
pub const VERSION: i64 = 4;

/// `WDTH`: distinguishes an archive from any other SQLite file (`PRAGMA application_id`; `file(1)` shows it too).
pub(crate) const APPLICATION: i64 = 0x5744_5448;

/// `WWSt`: a scaling campaign of before version 4.
const STUDY_APPLICATION: i64 = 0x5757_5374;

/// The statements that make an empty archive.
pub(crate) const SQL: &str = include_str!("schema.sql");

/// The identification of a format of archives.
#[derive(Debug)]
pub(crate) struct Format {
    /// The content of its folder: `campaign`, `study`.
    pub name: &'static str,
    /// The file in that folder.
    pub file: &'static str,
    /// `PRAGMA application_id`.
    pub application: i64,
    /// The statements that made an empty archive of each version, from 1 on. Those of earlier versions never change.
    pub versions: &'static [&'static str],
}

/// Campaigns of every kind.
pub(crate) static CAMPAIGN: Format = Format {
    name: "campaign",
    file: "campaign.sqlite",
    application: APPLICATION,
    versions: &[
        include_str!("earlier/campaign_1.sql"),
        include_str!("earlier/campaign_2.sql"),
        include_str!("earlier/campaign_3.sql"),
        SQL,
    ],
};

/// Scaling campaigns before version 4, which had their own file. It is only read, for migration.
pub(crate) static STUDY: Format = Format {
    name: "study",
    file: "study.sqlite",
    application: STUDY_APPLICATION,
    versions: &[
        include_str!("earlier/study_1.sql"),
        concat!(include_str!("earlier/study_1.sql"), include_str!("earlier/study_2.sql")),
    ],
};

impl Format {
    /// The version that is written.
    pub fn version(&self) -> i64 {
        self.versions.len() as i64
    }

    /// The statements that make an empty archive.
    pub fn sql(&self) -> &'static str {
        self.versions[self.versions.len() - 1]
    }

    /// The temporary name while it is created.
    pub fn unfinished(&self) -> String {
        format!("{}.new", self.file)
    }
}

/// The first difference between the file's tables and those of its version.
///
/// Each definition must match exactly: the reading code relies on STRICT types and keys, and a view in place of a table
/// could compute for ever. Tables, indexes and views added by a user are ignored.
pub(crate) fn fault(
    format: &Format,
    connection: &Connection,
    version: i64,
) -> rusqlite::Result<Option<String>> {
    let made_by = usize::try_from(version - 1).ok().and_then(|place| format.versions.get(place).copied());
    let mut kept =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')")?;
    for (name, wanted) in tables(made_by.unwrap_or(format.sql())) {
        let found: Option<String> = kept.query_row([name], |row| row.get(0)).optional()?;
        match found {
            None => return Ok(Some(format!("it has no table `{name}`"))),
            Some(found) if found != wanted => {
                return Ok(Some(format!("its table `{name}` is not as it should be")))
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// Name and text of every CREATE TABLE statement, as SQLite keeps it.
fn tables(sql: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    // No statement that creates a table has a blank line in it, and each begins a paragraph.
    sql.split("\n\n").filter_map(|paragraph| {
        let text = paragraph.trim_end().strip_suffix(';')?;
        let name = text.strip_prefix("CREATE TABLE ")?.split_whitespace().next()?;
        Some((name, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_created_table_is_checked() {
        for (format, table) in [(&CAMPAIGN, "run"), (&STUDY, "attempt")] {
            for (version, sql) in (1..).zip(format.versions) {
                let connection = Connection::open_in_memory().unwrap();
                connection.execute_batch(sql).unwrap();
                let made: i64 = connection
                    .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| {
                        row.get(0)
                    })
                    .unwrap();
                assert_eq!(tables(sql).count() as i64, made);
                assert_eq!(fault(format, &connection, version).unwrap(), None);
                connection.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN mood TEXT")).unwrap();
                assert_eq!(
                    fault(format, &connection, version).unwrap().unwrap(),
                    format!("its table `{table}` is not as it should be")
                );
            }
        }
        let first = Connection::open_in_memory().unwrap();
        first.execute_batch(CAMPAIGN.versions[0]).unwrap();
        assert_eq!(
            fault(&CAMPAIGN, &first, VERSION).unwrap().unwrap(),
            "its table `campaign` is not as it should be"
        );
    }
}
