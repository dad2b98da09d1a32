//! Memory series: stored with their run and read back; and archives without them.

use std::path::PathBuf;

use crate::sample;
use rusqlite::Connection;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::memory::{
    Amounts, Class, Mark, Part, Process, Reading, Series, StatmSample, Totals,
};
use widthwise_experiment::outcome::{Noise, Round, RoundKind};

/// Every figure is a different number.
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
    let mut pagemap_scan = Reading {
        at_ns: 20,
        full: false,
        tree: whole(amounts(false), [0; 4]),
        processes: Vec::new(),
        parts: vec![(0, amounts(false)), (2, amounts(false))],
    };
    pagemap_scan.tree.amounts.anonymous = 77;
    let process = |pid, began_ns| Process { pid, parent: 1, name: format!("p{pid}"), began_ns, ended_ns: 30 };
    let part = |class, name: &str| Part { class, name: name.to_owned() };
    Series {
        wall_ns: 30,
        spent_ns: 1,
        statm_samples_made: 200,
        pagemap_scans_made: 2,
        readings_made: 3,
        processes: vec![process(100, 0), process(101, 5)],
        // In the order in which the archive returns them: by name.
        parts: vec![
            part(Class::Heap, ""),
            part(Class::Library, "libc.so.6"),
            part(Class::Library, "libm.so.6"),
        ],
        statm_samples: vec![
            StatmSample { at_ns: 4, process: 0, resident: 8192, anonymous: 4096, virtual_bytes: 12288 },
            StatmSample { at_ns: 14, process: 1, resident: 8193, anonymous: 4097, virtual_bytes: 12289 },
        ],
        readings: vec![full, pagemap_scan],
        marks: vec![
            Mark { at_ns: 3, text: "load".to_owned() },
            Mark { at_ns: 3, text: "é\u{7}'; DROP TABLE run".to_owned() },
        ],
    }
}

/// A campaign of a timed round and one of the series, in which the first variant has one.
fn campaign() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    for (number, kind) in [(0, RoundKind::Timed), (1, RoundKind::Memory)] {
        archive.begin_round(number, kind, 3, None).unwrap();
        for (position, variant) in (0..).zip(sample::VARIANTS) {
            let own = (number == 1 && position == 0).then(series);
            archive.add_sampled_run(&sample::run(number, position, variant), &[], own.as_ref()).unwrap();
        }
        archive.end_round(&Round { number, kind, cpu: None, noise: Noise::default(), layout: None }).unwrap();
    }
    let folder = archive.folder().to_owned();
    (parent, folder)
}

fn by_hand(folder: &std::path::Path, statements: &str) {
    Connection::open(folder.join("campaign.sqlite")).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn a_series_is_read_back_as_written() {
    let (_parent, folder) = campaign();
    let samples = Archive::read(&folder).unwrap().load().unwrap();
    assert_eq!(samples.series, [(1, sample::VARIANTS[0].to_owned(), series())]);
    assert_eq!(samples.rounds[1].kind, RoundKind::Memory);
}

#[test]
fn the_run_of_a_series_that_cannot_be_stored_is_not_stored_either() {
    let (_parent, folder) = campaign();
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_round(2, RoundKind::Memory, 3, None).unwrap();
    let mut twice = series();
    // Two smaps snapshots at one moment cannot both be stored.
    twice.readings.push(twice.readings[0].clone());
    let run = sample::run(2, 0, sample::VARIANTS[0]);
    assert!(archive.add_sampled_run(&run, &[], Some(&twice)).is_err());
    let samples = archive.load().unwrap();
    assert_eq!((samples.runs.len(), samples.series.len()), (6, 1));
    archive.add_sampled_run(&run, &[], Some(&series())).unwrap();
    assert_eq!(archive.load().unwrap().series.len(), 2);
}

#[test]
fn series_are_only_ever_added() {
    let (_parent, folder) = campaign();
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    for table in ["memory_series", "memory_process", "statm_sample", "memory_snapshot", "memory_part", "mark"]
    {
        for statement in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET run = run")] {
            let error = connection.execute(&statement, []).unwrap_err();
            assert!(error.to_string().contains("only ever added"), "{statement}: {error}");
        }
    }
}

#[test]
fn a_contradictory_series_is_reported_as_damage() {
    for (statements, words) in [
        (
            "INSERT INTO statm_sample VALUES ((SELECT run FROM memory_series), 99, 7, 1, 1, 1)",
            "speaks of a process",
        ),
        (
            "INSERT INTO memory_part VALUES ((SELECT run FROM memory_series), 99, 'heap', '', 1, 1, 1, 0, 1)",
            "parts of a reading",
        ),
        (
            "INSERT INTO memory_snapshot VALUES ((SELECT run FROM memory_series), 99, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
            "no sum of its processes",
        ),
        ("INSERT INTO mark VALUES (99, 0, 1, 'x')", "a part of a memory series"),
        ("INSERT INTO memory_series VALUES (99, 1, 1, 1, 1, 1)", "a memory series of a run"),
        (
            "INSERT INTO memory_process VALUES ((SELECT run FROM memory_series), 9, 1, 1, 'x', 0, 0)",
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
fn a_class_added_by_a_later_widthwise_is_read_as_something_else() {
    let (_parent, folder) = campaign();
    by_hand(
        &folder,
        "INSERT INTO memory_part VALUES ((SELECT run FROM memory_series), 10, 'gpu', '', 5, 5, 5, 0, 5)",
    );
    let samples = Archive::read(&folder).unwrap().load().unwrap();
    let (_, _, found) = &samples.series[0];
    assert_eq!(found.of_class(&found.readings[0], Class::Other).resident, 5);
}

/// A run with one reading that has an upper bound, and one without.
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
    let samples = archive.load().unwrap();
    assert_eq!(samples.runs.last().unwrap().sample, bounded_run(2, 0).sample);
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
