//! Memory over time: kept with its run, read back as it was; and archives from before there was any.

mod sample;

use std::path::PathBuf;

use rusqlite::Connection;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::memory::{Amounts, Class, Glance, Mark, Part, Process, Reading, Series, Totals};
use widthwise_experiment::outcome::{Noise, Round, RoundKind};

/// Every figure another number.
fn series() -> Series {
    let mut last = 0;
    let mut next = || {
        last += 4096;
        last
    };
    let mut amounts = |full: bool| Amounts {
        virtual_bytes: next(),
        resident: next(),
        pss: if full { next() } else { 0 },
        anonymous: if full { next() } else { 0 },
        swap: if full { next() } else { 0 },
    };
    let whole = |amounts: Amounts, figures: [u64; 4]| {
        let [file, shared, page_tables, huge] = figures;
        Totals { amounts, file, shared, page_tables, huge }
    };
    let full = Reading {
        at_ns: 10,
        full: true,
        tree: whole(amounts(true), [1, 2, 3, 4]),
        processes: vec![(0, whole(amounts(true), [5, 6, 7, 8])), (1, whole(amounts(true), [9, 10, 11, 12]))],
        parts: vec![(0, amounts(true)), (1, amounts(true)), (2, amounts(true))],
    };
    let mut survey = Reading {
        at_ns: 20,
        full: false,
        tree: whole(amounts(false), [0; 4]),
        processes: Vec::new(),
        parts: vec![(0, amounts(false)), (2, amounts(false))],
    };
    survey.tree.amounts.anonymous = 77;
    let process = |pid, began_ns| Process { pid, parent: 1, name: format!("p{pid}"), began_ns, ended_ns: 30 };
    let part = |class, name: &str| Part { class, name: name.to_owned() };
    Series {
        wall_ns: 30,
        spent_ns: 1,
        glances_made: 200,
        surveys_made: 2,
        readings_made: 3,
        processes: vec![process(100, 0), process(101, 5)],
        // In the order in which the archive gives them back: by name.
        parts: vec![
            part(Class::Heap, ""),
            part(Class::Library, "libc.so.6"),
            part(Class::Library, "libm.so.6"),
        ],
        glances: vec![
            Glance { at_ns: 4, process: 0, resident: 8192, anonymous: 4096, virtual_bytes: 12288 },
            Glance { at_ns: 14, process: 1, resident: 8193, anonymous: 4097, virtual_bytes: 12289 },
        ],
        readings: vec![full, survey],
        marks: vec![
            Mark { at_ns: 3, text: "load".to_owned() },
            Mark { at_ns: 3, text: "é\u{7}'; DROP TABLE run".to_owned() },
        ],
    }
}

/// A campaign of a timed round and one of the series, in which the first variant has one.
fn campaign() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), "tree", &sample::head()).unwrap();
    for (number, kind) in [(0, RoundKind::Timed), (1, RoundKind::Memory)] {
        archive.begin_round(number, kind, 3, None).unwrap();
        for (position, variant) in (0..).zip(sample::VARIANTS) {
            let own = (number == 1 && position == 0).then(series);
            archive.add_sampled_run(&sample::run(number, position, variant), &[], own.as_ref()).unwrap();
        }
        archive.end_round(&Round { number, kind, cpu: None, noise: Noise::default() }).unwrap();
    }
    let folder = archive.folder().to_owned();
    (parent, folder)
}

fn by_hand(folder: &std::path::Path, statements: &str) {
    Connection::open(folder.join("campaign.sqlite")).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn a_series_is_read_back_as_it_was() {
    let (_parent, folder) = campaign();
    let stored = Archive::read(&folder).unwrap().load().unwrap();
    assert_eq!(stored.series, [(1, sample::VARIANTS[0].to_owned(), series())]);
    assert_eq!(stored.rounds[1].kind, RoundKind::Memory);
}

#[test]
fn the_run_of_a_series_that_finds_no_place_is_not_kept_either() {
    let (_parent, folder) = campaign();
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_round(2, RoundKind::Memory, 3, None).unwrap();
    let mut twice = series();
    // Two full readings at one moment cannot both be kept.
    twice.readings.push(twice.readings[0].clone());
    let run = sample::run(2, 0, sample::VARIANTS[0]);
    assert!(archive.add_sampled_run(&run, &[], Some(&twice)).is_err());
    let stored = archive.load().unwrap();
    assert_eq!((stored.runs.len(), stored.series.len()), (6, 1));
    archive.add_sampled_run(&run, &[], Some(&series())).unwrap();
    assert_eq!(archive.load().unwrap().series.len(), 2);
}

#[test]
fn series_are_only_ever_added() {
    let (_parent, folder) = campaign();
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    for table in ["series", "series_process", "series_glance", "series_reading", "series_part", "series_mark"]
    {
        for statement in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET run = run")] {
            let error = connection.execute(&statement, []).unwrap_err();
            assert!(error.to_string().contains("only ever added"), "{statement}: {error}");
        }
    }
}

#[test]
fn a_series_that_contradicts_itself_is_damage_and_is_told() {
    for (statements, words) in [
        (
            "INSERT INTO series_glance VALUES ((SELECT run FROM series), 99, 7, 1, 1, 1)",
            "speaks of a process",
        ),
        (
            "INSERT INTO series_part VALUES ((SELECT run FROM series), 99, 'heap', '', 1, 1, 1, 0, 1)",
            "parts of a reading",
        ),
        (
            "INSERT INTO series_reading VALUES ((SELECT run FROM series), 99, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
            "no sum of its processes",
        ),
        ("INSERT INTO series_mark VALUES (99, 0, 1, 'x')", "a part of a memory series"),
        ("INSERT INTO series VALUES (99, 1, 1, 1, 1, 1)", "a memory series of a run"),
        (
            "INSERT INTO series_process VALUES ((SELECT run FROM series), 9, 1, 1, 'x', 0, 0)",
            "are not all there",
        ),
    ] {
        let (_parent, folder) = campaign();
        by_hand(&folder, &format!("PRAGMA foreign_keys = OFF; {statements}"));
        let error = Archive::read(&folder).unwrap().load().unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_class_that_a_later_widthwise_has_added_is_something_else() {
    let (_parent, folder) = campaign();
    by_hand(
        &folder,
        "INSERT INTO series_part VALUES ((SELECT run FROM series), 10, 'gpu', '', 5, 5, 5, 0, 5)",
    );
    let stored = Archive::read(&folder).unwrap().load().unwrap();
    let (_, _, found) = &stored.series[0];
    assert_eq!(found.of_class(&found.readings[0], Class::Other).resident, 5);
}

/// Puts what an archive of an earlier version can have of this one's timed round into the tables of its time.
fn as_of_version(folder: &std::path::Path, version: u32, schema: &str) {
    let file = folder.join("campaign.sqlite");
    std::fs::rename(&file, folder.join("new.sqlite")).unwrap();
    by_hand(folder, schema);
    by_hand(
        folder,
        &format!(
            "ATTACH '{}' AS new;
             INSERT INTO campaign SELECT * FROM new.campaign; INSERT INTO identity SELECT * FROM new.identity;
             INSERT INTO variant SELECT * FROM new.variant; INSERT INTO session SELECT * FROM new.session;
             INSERT INTO metric SELECT * FROM new.metric WHERE name NOT LIKE 'tree%';
             INSERT INTO round SELECT number, session, kind, planned, finished, cpu, steal, pressure, others, throttled
               FROM new.round WHERE kind <> 'memory';
             INSERT INTO run SELECT * FROM new.run WHERE round = 0;
             INSERT INTO reading SELECT reading.* FROM new.reading JOIN run ON run.id = run;
             DETACH new; PRAGMA application_id = 0x57445448; PRAGMA user_version = {version};",
            folder.join("new.sqlite").display()
        ),
    );
    std::fs::remove_file(folder.join("new.sqlite")).unwrap();
}

#[test]
fn an_archive_of_the_first_version_is_read_and_gone_on_with() {
    let (_parent, folder) = campaign();
    as_of_version(&folder, 1, include_str!("../src/schema_1.sql"));
    let stored = Archive::read(&folder).unwrap().load().unwrap();
    assert_eq!((stored.rounds.len(), stored.runs.len(), stored.series.len()), (1, 3, 0));
    assert_eq!(stored.rounds[0].noise.others_ns, None, "it did not keep that");
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_round(1, RoundKind::Timed, 3, None).unwrap();
    for (position, variant) in (0..).zip(sample::VARIANTS) {
        archive.add_run(&sample::run(1, position, variant), &[]).unwrap();
    }
    archive.end_round(&sample::timed(1)).unwrap();
    drop(archive);
    assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), 6);
    // A table of the second version is none of its own, and what is missing of the first is noticed.
    by_hand(&folder, "DROP VIEW samples; DROP TABLE warning");
    assert!(matches!(Archive::read(&folder).unwrap_err(), ArchiveError::Damaged { .. }));
}

/// A run with a reading of which only a bound is known, and one of which nothing is.
fn bounded_run(round: u32, position: u32) -> widthwise_experiment::outcome::Run {
    let mut run = sample::run(round, position, sample::VARIANTS[0]);
    for (name, upper) in [("cpu", 2.5e9), ("wall", f64::INFINITY)] {
        if let Some(reading) = run.sample.get_mut(name) {
            reading.upper = Some(upper);
        }
    }
    run
}

#[test]
fn the_bounds_of_readings_are_kept() {
    let (_parent, folder) = campaign();
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_round(2, RoundKind::Memory, 3, None).unwrap();
    archive.add_run(&bounded_run(2, 0), &[]).unwrap();
    let stored = archive.load().unwrap();
    assert_eq!(stored.runs.last().unwrap().sample, bounded_run(2, 0).sample);
    drop(archive);
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    let bounds: i64 =
        connection.query_row("SELECT count(*) FROM samples WHERE bounded", [], |row| row.get(0)).unwrap();
    assert_eq!(bounds, 2);
    for statement in ["DELETE FROM bound", "UPDATE bound SET upper = 0"] {
        let error = connection.execute(statement, []).unwrap_err();
        assert!(error.to_string().contains("only ever added"), "{statement}: {error}");
    }
}

#[test]
fn an_archive_of_the_second_version_is_gone_on_with_and_keeps_bounds() {
    let (_parent, folder) = campaign();
    as_of_version(&folder, 2, include_str!("../src/schema_2.sql"));
    assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), 3);
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_round(1, RoundKind::Memory, 3, None).unwrap();
    archive.add_run(&bounded_run(1, 0), &[]).unwrap();
    drop(archive);
    let stored = Archive::read(&folder).unwrap().load().unwrap();
    assert_eq!(stored.runs.last().unwrap().sample, bounded_run(1, 0).sample);
}
