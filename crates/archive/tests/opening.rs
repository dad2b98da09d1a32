//! Files that are not archives or are damaged yield one clear error and stay unchanged.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sample;
use rusqlite::Connection;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::RoundKind;

/// A campaign of a few rounds.
fn campaign() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    for number in 0..40 {
        archive.begin_round(number, RoundKind::Timed, 3, None).unwrap();
        for (position, variant) in (0..).zip(sample::VARIANTS) {
            archive.add_run(&sample::run(number, position, variant), &[]).unwrap();
        }
        archive.end_round(&sample::timed(number)).unwrap();
    }
    let folder = archive.folder().to_owned();
    (parent, folder)
}

fn content(folder: &Path) -> BTreeMap<OsString, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Opens it both ways; both must fail with the same message, which names the file, and change nothing.
fn refused(folder: &Path) -> ArchiveError {
    let before = content(folder);
    let reading = Archive::read(folder).unwrap_err();
    let resuming = Archive::resume(folder).unwrap_err();
    assert_eq!(reading.to_string(), resuming.to_string());
    assert!(reading.to_string().starts_with(&format!("{}/campaign.sqlite: ", folder.display())), "{reading}");
    assert_eq!(reading.to_string().lines().count(), 1, "{reading}");
    assert!(content(folder) == before, "{reading}");
    reading
}

fn by_hand(folder: &Path, statements: &str) {
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    connection.execute_batch(statements).unwrap();
}

#[test]
fn a_newer_archive_asks_for_a_newer_widthwise() {
    let (_parent, folder) = campaign();
    by_hand(&folder, "PRAGMA user_version = 5; DROP VIEW samples; DROP TABLE output_difference;");
    let error = refused(&folder);
    assert!(
        error.to_string().ends_with(
            "was written by a newer widthwise (archive version 5, this one reads up to 4); upgrade widthwise"
        ),
        "{error}"
    );
}

#[test]
fn text_empty_files_and_other_databases_are_not_archives() {
    let (_parent, folder) = campaign();
    let file = folder.join("campaign.sqlite");
    for text in ["", "hello\n", &"not a database, though a long one\n".repeat(1000)] {
        fs::write(&file, text).unwrap();
        let error = refused(&folder);
        assert!(error.to_string().contains("is not a widthwise archive"), "{error}");
    }
    fs::remove_file(&file).unwrap();
    by_hand(&folder, "CREATE TABLE cookies (host TEXT); PRAGMA application_id = 7");
    let error = refused(&folder);
    assert!(error.to_string().contains("the database of another application"), "{error}");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(matches!(refused(&folder), ArchiveError::Foreign { .. }));
}

#[test]
fn a_truncated_archive_is_damaged() {
    let (_parent, folder) = campaign();
    let file = folder.join("campaign.sqlite");
    let whole = fs::read(&file).unwrap();
    for length in [whole.len() / 2, whole.len() - 4096, whole.len() - 1, 4096, 5000] {
        fs::write(&file, &whole[..length]).unwrap();
        let error = refused(&folder);
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{length}: {error}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), 120);
}

#[test]
fn overwritten_pages_are_detected() {
    let (_parent, folder) = campaign();
    let file = folder.join("campaign.sqlite");
    let whole = fs::read(&file).unwrap();
    let mut holed = whole.clone();
    let middle = whole.len() / 2 / 4096 * 4096;
    holed[middle..middle + 4096].fill(0);
    fs::write(&file, &holed).unwrap();
    assert!(matches!(refused(&folder), ArchiveError::Damaged { .. }));
}

#[test]
fn unexpected_tables_are_detected() {
    for statements in [
        "DROP TABLE warning",
        "ALTER TABLE round ADD COLUMN mood TEXT",
        // Would compute for ever if it were accepted as a table.
        "DROP TABLE warning; CREATE VIEW warning AS WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
           SELECT id, 'x' AS text FROM n",
        "DROP TABLE variant_status; CREATE TABLE variant_status (variant, status, reason)",
        "PRAGMA user_version = 0",
    ] {
        let (_parent, folder) = campaign();
        by_hand(&folder, statements);
        let error = refused(&folder);
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{statements}: {error}");
    }
}

#[test]
fn impossible_contents_are_detected() {
    for statements in [
        "UPDATE campaign SET seed = 'many'",
        "UPDATE campaign SET machine = '{'",
        "UPDATE campaign SET command = '7'",
        "UPDATE variant SET slug = '../../etc' WHERE id = 1",
        "PRAGMA foreign_keys = OFF; DELETE FROM variant WHERE id = 1",
        "PRAGMA foreign_keys = OFF; DELETE FROM metric WHERE name = 'cpu'",
        "INSERT INTO reading VALUES (4711, 1, 1.0, 'clock', 1.0)",
        "INSERT INTO reading VALUES (1, (SELECT id FROM metric WHERE name = 'branches'), 9e999, 'clock', 1.0)",
        "PRAGMA ignore_check_constraints = ON; UPDATE round SET kind = 'lunch' WHERE number = 3",
        "PRAGMA ignore_check_constraints = ON; UPDATE round SET cpu = 1 << 40 WHERE number = 3",
        "PRAGMA ignore_check_constraints = ON; UPDATE session SET elapsed_ns = -1",
        "DELETE FROM campaign",
        "INSERT INTO warning (text) VALUES (CAST (x'fffe' AS TEXT))",
        "DROP TRIGGER run_is_final; UPDATE run SET ended = 'exit', number = 1 << 40",
        "DROP TRIGGER run_is_final; UPDATE run SET ended = 'exit', number = NULL",
    ] {
        let (_parent, folder) = campaign();
        by_hand(&folder, statements);
        let error = Archive::read(&folder).and_then(|archive| archive.load()).expect_err(statements);
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{statements}: {error}");
    }
}

#[test]
fn additions_of_a_later_widthwise_are_left_out_with_a_warning() {
    let (_parent, folder) = campaign();
    by_hand(
        &folder,
        "INSERT INTO metric (id, name, title, unit, about) VALUES (99, 'watts', 'power', 'watts', '');
         INSERT INTO reading VALUES (1, 99, 12.5, 'clock', 1.0);
         INSERT INTO reading VALUES (2, (SELECT id FROM metric WHERE name = 'branches'), 7.0, 'oracle', 1.0);
         CREATE TABLE notes (mine TEXT)",
    );
    let samples = Archive::read(&folder).unwrap().load().unwrap();
    let warnings = samples.warnings.join("\n");
    assert!(warnings.contains("metric \"watts\"") && warnings.contains("source \"oracle\""), "{warnings}");
    assert_eq!(samples.runs[0], sample::run(0, 0, sample::VARIANTS[0]));
    assert_eq!(samples.runs[1], sample::run(0, 1, sample::VARIANTS[1]));
}

#[test]
fn the_error_of_a_missing_campaign_names_what_is_missing() {
    let parent = tempfile::tempdir().unwrap();
    let open_error = |path: &Path| {
        let reading = Archive::read(path).unwrap_err();
        assert!(matches!(reading, ArchiveError::Missing { .. }));
        assert_eq!(reading.to_string(), Archive::resume(path).unwrap_err().to_string());
        reading.to_string()
    };
    let nowhere = open_error(&parent.path().join("nowhere"));
    assert!(
        nowhere.contains("nowhere: there is no such folder; `widthwise compare` starts a campaign"),
        "{nowhere}"
    );
    let empty = open_error(parent.path());
    assert!(empty.contains("no campaign.sqlite") && empty.contains("`widthwise compare`"), "{empty}");
    fs::write(parent.path().join("campaign.sqlite.new"), "").unwrap();
    let unfinished = open_error(parent.path());
    assert!(unfinished.contains("ended before its first session began"), "{unfinished}");
    assert_eq!(content(parent.path()).len(), 1);
}

#[test]
fn unusual_folder_names_are_opened() {
    let parent = tempfile::tempdir().unwrap();
    let odd = parent.path().join("50 % of #1? é&x=1");
    let archive = Archive::create(&odd, &sample::metadata()).unwrap();
    let folder = archive.folder().to_owned();
    drop(archive);
    assert_eq!(Archive::read(&folder).unwrap().metadata(), &sample::metadata());
    assert!(Archive::resume(&folder).is_ok());
}
