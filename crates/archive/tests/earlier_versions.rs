//! Archives of earlier versions are read, and resumed after one migration; the old file stays beside the new one.

use std::path::{Path, PathBuf};

use crate::sample;
use rusqlite::types::Value;
use rusqlite::Connection;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::{Ending, RoundKind, Source};
use widthwise_experiment::scale::{GroupRun, Member, Mode, Purpose};
use widthwise_experiment::{Role, VariantStatus};

const SPEC: &str =
    "[program]\nsource = \"tree.c\"\n[measure]\nmetrics = [\"cpu\", \"peak_resident\"]\nuntil = \"1%\"\n";

/// A file with these tables and rows, in a new folder.
fn file(
    name: &str,
    application: i64,
    version: u32,
    schema: &str,
    rows: &str,
) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("2026-11-21-tree");
    std::fs::create_dir(&folder).unwrap();
    let connection = Connection::open(folder.join(name)).unwrap();
    connection.execute_batch(schema).unwrap();
    connection.execute_batch(rows).unwrap();
    connection.pragma_update(None, "application_id", application).unwrap();
    connection.pragma_update(None, "user_version", version).unwrap();
    (parent, folder)
}

/// A comparison as that version kept it: one timed round, one run that could not be started.
fn comparison(version: u32) -> (tempfile::TempDir, PathBuf) {
    let schema = match version {
        1 => include_str!("../src/earlier/campaign_1.sql"),
        2 => include_str!("../src/earlier/campaign_2.sql"),
        _ => include_str!("../src/earlier/campaign_3.sql"),
    };
    let others = if version < 3 { "" } else { ", 40" };
    let mut rows = format!(
        "INSERT INTO campaign VALUES (1, '2026-11-21T10:00:00Z', '0.1.0', '[\"widthwise\"]', '1.0', '{SPEC}', '7', '{{}}');
         INSERT INTO identity VALUES ('source', '0123456789abcdef');
         INSERT INTO variant VALUES (1, 'a', 'a', 'baseline'), (2, 'b', 'b', 'variant'), (3, 'a again', 'a-again', 'again');
         INSERT INTO metric VALUES (1, 'cpu', 'CPU', 'nanoseconds', ''), (2, 'peak_resident', 'peak', 'bytes', '');
         INSERT INTO session VALUES (1, '2026-11-21T10:00:00Z', 5000000000, 'interrupted');
         INSERT INTO round VALUES (0, 1, 'simulated', 3, 1, 1, 0.5, NULL, 0.25{others}, 0);
         INSERT INTO run VALUES (1, 0, 1, 0, 10, 'done', NULL, NULL, 'digest'),
                                (2, 0, 2, 1, 20, 'not-started', NULL, 'no loader', NULL),
                                (3, 0, 3, 2, 30, 'flood', 1000, NULL, NULL);
         INSERT INTO reading VALUES (1, 1, 2.5, 'simulated', 1), (1, 2, 4096, 'rusage', 1);
         INSERT INTO process VALUES (1, 'tree', 1, 4096, 2.5, 'rusage');
         INSERT INTO standing VALUES (2, 'different', 'its output differs');
         INSERT INTO difference VALUES (2, '-1'); INSERT INTO warning VALUES (1, 'load is 3');"
    );
    if version >= 2 {
        rows += "INSERT INTO series VALUES (1, 100, 5, 1, 0, 1);
                 INSERT INTO series_process VALUES (1, 0, 12, 1, 'tree', 0, 100);
                 INSERT INTO series_glance VALUES (1, 50, 0, 4096, 4096, 8192);
                 INSERT INTO series_mark VALUES (1, 0, 60, 'half');";
    }
    if version >= 3 {
        rows += "INSERT INTO bound VALUES (1, 2, 8192);";
    }
    file("campaign.sqlite", 0x5744_5448, version, schema, &rows)
}

fn check_comparison(archive: &Archive, version: u32) {
    let metadata = archive.metadata();
    let variants: Vec<(&str, Role)> =
        metadata.variants.iter().map(|variant| (variant.name.as_str(), variant.role)).collect();
    assert_eq!(variants, [("a", Role::Baseline), ("b", Role::Variant), ("a control", Role::Control)]);
    assert_eq!((metadata.seed, metadata.scaling.is_none()), (7, true));
    assert!(
        metadata.spec.contains("precision = \"1%\"") && metadata.spec.contains("\"max_rss\""),
        "{}",
        metadata.spec
    );
    let samples = archive.load().unwrap();
    assert_eq!(samples.rounds[0].kind, RoundKind::Emulated);
    assert_eq!(samples.rounds[0].noise.others_ns, (version >= 3).then_some(40));
    let endings: Vec<&Ending> = samples.runs.iter().map(|run| &run.ending).collect();
    assert_eq!(
        endings,
        [
            &Ending::Done,
            &Ending::SpawnFailed { reason: "no loader".into() },
            &Ending::OutputLimit { limit_bytes: 1000 }
        ]
    );
    let sample = &samples.runs[0].sample;
    assert_eq!((sample["cpu"].value, sample["cpu"].source), (2.5, Source::Emulated));
    assert_eq!(sample["max_rss"].upper, (version >= 3).then_some(8192.0));
    assert_eq!(samples.runs[0].output_digest.as_deref(), Some("digest"));
    assert_eq!(samples.statuses["b"], VariantStatus::OutputMismatch("its output differs".into()));
    assert_eq!((samples.differences["b"].as_str(), &samples.warnings[0][..]), ("-1", "load is 3"));
    assert_eq!((samples.processes.len(), samples.elapsed.as_secs()), (0, 5), "no timed round has processes");
    assert_eq!(samples.series.len(), usize::from(version >= 2));
    for (_, _, series) in &samples.series {
        assert_eq!((series.statm_samples.len(), series.marks[0].text.as_str()), (1, "half"));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("sqlite"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_comparison_of_each_earlier_version_is_read_without_a_change_and_resumed() {
    for version in 1..=3 {
        let (_parent, folder) = comparison(version);
        check_comparison(&Archive::read(&folder).unwrap(), version);
        assert_eq!(names(&folder), ["campaign.sqlite"], "reading writes nothing");

        let mut archive = Archive::resume(&folder).unwrap();
        check_comparison(&archive, version);
        assert_eq!(
            std::fs::read_to_string(folder.join("widthwise.toml")).unwrap(),
            archive.metadata().spec,
            "its keys are those of this version"
        );
        archive.begin_round(1, RoundKind::Timed, 1, None).unwrap();
        archive.add_run(&sample::run(1, 0, "b"), &[]).unwrap();
        archive.end_round(&sample::timed(1)).unwrap();
        drop(archive);
        assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), 4);
        assert_eq!(
            names(&folder),
            ["campaign.sqlite".to_owned(), format!("campaign.sqlite.version-{version}")]
        );
    }
}

#[test]
fn a_damaged_archive_of_an_earlier_version_is_refused_and_left_as_it_is() {
    let (_parent, folder) = comparison(3);
    let by_hand = Connection::open(folder.join("campaign.sqlite")).unwrap();
    by_hand.execute_batch("DROP VIEW samples; DROP TABLE warning").unwrap();
    drop(by_hand);
    for result in [Archive::read(&folder), Archive::resume(&folder)] {
        assert!(matches!(result.unwrap_err(), ArchiveError::Damaged { .. }));
    }
    assert_eq!(names(&folder), ["campaign.sqlite"]);
}

#[test]
fn a_migration_that_was_killed_is_made_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = Archive::create(parent.path(), &sample::metadata()).unwrap().folder().to_owned();
    let complete = std::fs::read(folder.join("campaign.sqlite")).unwrap();
    // It was killed just before the rename, or while the file was written.
    for leftover in [&complete[..], &complete[..complete.len() / 2], b"torn"] {
        let (_parent, folder) = comparison(3);
        std::fs::write(folder.join("campaign.sqlite.new"), leftover).unwrap();
        drop(Archive::resume(&folder).unwrap());
        check_comparison(&Archive::read(&folder).unwrap(), 3);
        assert_eq!(names(&folder), ["campaign.sqlite", "campaign.sqlite.version-3"]);
    }
}

#[test]
fn a_migration_that_was_killed_before_the_spec_file_is_completed() {
    let (_parent, folder) = comparison(3);
    drop(Archive::resume(&folder).unwrap());
    std::fs::write(folder.join("widthwise.toml"), SPEC).unwrap();
    let archive = Archive::resume(&folder).unwrap();
    let spec = std::fs::read_to_string(folder.join("widthwise.toml")).unwrap();
    assert_eq!(spec, archive.metadata().spec);
    assert!(spec.contains("precision"), "{spec}");
}

#[test]
fn a_migration_that_fails_leaves_the_archive_as_it_was() {
    let (_parent, folder) = study_of(2, &[(0, "warmup", "a", serde_json::json!({"ended": "vanished"}))]);
    let before = std::fs::read(folder.join("study.sqlite")).unwrap();
    let error = Archive::resume(&folder).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Damaged { path, .. } if path.ends_with("study.sqlite")),
        "{error}"
    );
    assert_eq!(names(&folder), ["study.sqlite"]);
    assert_eq!(std::fs::read(folder.join("study.sqlite")).unwrap(), before);
}

/// A scaling campaign as it was before version 4: a file of its own, with a warm-up and a timed run of the control.
fn study(version: u32) -> (tempfile::TempDir, PathBuf) {
    let failed = || serde_json::json!({"ended": "around", "reason": "setup failed"});
    study_of(version, &[(0, "warmup", "a", failed()), (1, "timed", "a again", failed())])
}

/// The same with these runs: round, purpose, variant and ending.
fn study_of(version: u32, runs: &[(u32, &str, &str, serde_json::Value)]) -> (tempfile::TempDir, PathBuf) {
    let first = include_str!("../src/earlier/study_1.sql");
    let schema = if version == 1 {
        first.to_owned()
    } else {
        first.to_owned() + include_str!("../src/earlier/study_2.sql")
    };
    let head = serde_json::json!({
        "created": "2026-11-21T10:00:00Z", "widthwise": "0.1.0", "command": ["widthwise"], "program": "tree",
        "program_version": "", "spec": SPEC, "seed": 7, "machine": {}, "identity": {"source": "1"},
        "variants": ["a", "b"], "placements": [["cores", [0, 1]]], "unable": [["b", "no compiler"]],
        "allowed": [0, 1], "cores": [[0], [1]], "memory": 1000, "confidence": 0.95,
        "plan": {
            "counts": [1, 2], "modes": ["fork"], "placements": ["cores"], "kinds": "all", "events": null,
            "events_each": false, "memory_rounds": 0, "sequential": false, "background": "sleep 1", "jobs_run": null,
            "event_pattern": null, "event_files": null, "event_marks": false, "memory_limit": 0
        }
    });
    let attempt = |position: usize, round: u32, purpose: &str, variant: &str, ending: &serde_json::Value| {
        serde_json::json!({
            "round": round, "position": position, "purpose": purpose,
            "cell": {"variant": variant, "mode": "fork", "placement": "cores", "processes": 2},
            "events": null, "ending": ending, "failure": null, "elapsed_ns": 5,
            "spread_ns": 0, "cpu_ns": 4, "before_fork": null, "counters": {}, "memory": null, "answer": "digest",
            "remarks": [],
            "members": [{"pid": 3, "cpu": 0, "began_ns": 0, "ended_ns": 5, "cpu_ns": 4, "exact": true, "moved_to": null, "peak_resident": 4096,
                         "told": {"events": 2, "cpu_s": 0.5, "elapsed_s": null}}]
        })
    };
    let mut rows =
        format!("INSERT INTO study VALUES (1, '{head}'); INSERT INTO remark VALUES (1, 'load is 3');");
    for (position, (round, purpose, variant, ending)) in runs.iter().enumerate() {
        rows += &format!(
            "INSERT INTO attempt (round, position, purpose, variant, mode, placement, processes, sound, elapsed_ns, cpu_ns,
                                  record)
             VALUES ({round}, {position}, '{purpose}', '{variant}', 'fork', 'cores', 2, 1, 5, 4, '{}');",
            attempt(position, *round, purpose, variant, ending)
        );
    }
    if version >= 2 {
        rows += "INSERT INTO session VALUES (1, '2026-11-21T10:00:00Z', 3000000000);";
    }
    file("study.sqlite", 0x5757_5374, version, &schema, &rows)
}

fn check_study(archive: &Archive, version: u32) {
    let scaling = archive.metadata().scaling.as_ref().unwrap();
    assert_eq!((scaling.plan.load.as_deref(), scaling.memory), (Some("sleep 1"), 1000));
    assert_eq!(archive.metadata().names(), ["a", "b"]);
    assert!(archive.metadata().spec.contains("precision"));
    let samples = archive.load().unwrap();
    let found: Vec<(&str, Purpose)> =
        samples.group_runs.iter().map(|run| (run.cell.variant.as_str(), run.purpose)).collect();
    assert_eq!(found, [("a", Purpose::Warmup), ("a control", Purpose::Timed)]);
    let run = &samples.group_runs[1];
    assert_eq!((run.cell.mode, run.output_digest.as_deref()), (Mode::Fork, Some("digest")));
    assert_eq!(run.ending, Ending::HookFailed { reason: "setup failed".into() });
    assert_eq!((run.members[0].max_rss, run.members[0].reported.unwrap().events), (Some(4096), 2));
    assert_eq!(samples.statuses["b"], VariantStatus::Unsupported("no compiler".into()));
    assert_eq!(samples.warnings, ["load is 3"]);
    assert_eq!(samples.elapsed.as_secs(), if version == 1 { 0 } else { 3 });
    let kinds: Vec<RoundKind> = samples.rounds.iter().map(|round| round.kind).collect();
    assert_eq!(kinds, [RoundKind::Warmup, RoundKind::Timed]);
}

/// The view `members` has one row for each member of each run.
fn check_members(folder: &Path, runs: &[GroupRun]) {
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    let query = "SELECT round, variant, processes, pid, cpu, began_ns, ended_ns, cpu_ns, exact, max_rss FROM members \
                 ORDER BY round, member";
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement.query_map([], |row| (0..10).map(|column| row.get::<_, Value>(column)).collect());
    let found: Vec<Vec<Value>> = rows.unwrap().collect::<rusqlite::Result<_>>().unwrap();
    let number = |number: u64| Value::Integer(number as i64);
    let row = |run: &GroupRun, member: &Member| {
        vec![
            number(run.round.into()),
            Value::Text(run.cell.variant.clone()),
            number(run.cell.processes as u64),
            number(member.pid.into()),
            member.cpu.map_or(Value::Null, |cpu| number(cpu.into())),
            number(member.began_ns),
            member.ended_ns.map_or(Value::Null, number),
            number(member.cpu_ns),
            number(member.exact.into()),
            member.max_rss.map_or(Value::Null, number),
        ]
    };
    let expected: Vec<Vec<Value>> =
        runs.iter().flat_map(|run| run.members.iter().map(|member| row(run, member))).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_round_of_a_scaling_campaign_of_before_version_4_that_lacks_a_cell_was_interrupted() {
    let done = || serde_json::json!({"ended": "done"});
    let signal = serde_json::json!({"ended": "signal", "signal": 11});
    let runs = [
        (0, "warmup", "a", done()),
        (1, "timed", "a", done()),
        (1, "timed", "b", signal),
        (1, "timed", "a again", done()),
        // The failed variant takes no part in this one, which is complete.
        (2, "timed", "a", done()),
        (2, "timed", "a again", done()),
        (3, "timed", "a", done()),
    ];
    let (_parent, folder) = study_of(2, &runs);
    let samples = Archive::read(&folder).unwrap().load().unwrap();
    let kinds: Vec<RoundKind> = samples.rounds.iter().map(|round| round.kind).collect();
    use RoundKind::{Interrupted, Timed, Warmup};
    assert_eq!(kinds, [Warmup, Timed, Timed, Interrupted]);
    assert_eq!(samples.group_runs.len(), runs.len(), "every run is kept");
}

#[test]
fn a_scaling_campaign_of_before_version_4_is_read_without_a_change_and_resumed() {
    for version in 1..=2 {
        let (_parent, folder) = study(version);
        check_study(&Archive::read(&folder).unwrap(), version);
        assert_eq!(names(&folder), ["study.sqlite"], "reading writes nothing");

        let mut archive = Archive::resume(&folder).unwrap();
        check_study(&archive, version);
        let mut next = archive.load().unwrap().group_runs[1].clone();
        next.round = archive.next_round();
        next.members.push(Member {
            pid: 4,
            cpu: None,
            exact: false,
            max_rss: None,
            ..next.members[0].clone()
        });
        archive.begin_round(next.round, RoundKind::Timed, 1, None).unwrap();
        archive.add_group_run(&next).unwrap();
        drop(archive);
        let samples = Archive::read(&folder).unwrap().load().unwrap();
        assert_eq!((samples.group_runs.len(), &samples.group_runs[2]), (3, &next));
        check_members(&folder, &samples.group_runs);
        assert_eq!(names(&folder), ["campaign.sqlite".to_owned(), format!("study.sqlite.version-{version}")]);
    }
}

#[test]
fn the_log_of_a_killed_session_is_migrated_with_its_file_and_does_not_stay() {
    let (_parent, folder) = comparison(3);
    let killed = folder.with_file_name("killed");
    std::fs::create_dir(&killed).unwrap();
    let connection = Connection::open(folder.join("campaign.sqlite")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    connection.execute("INSERT INTO warning VALUES (2, 'in the log')", []).unwrap();
    // As the files are while the session goes on, and after `kill -9`.
    for name in ["campaign.sqlite", "campaign.sqlite-wal"] {
        std::fs::copy(folder.join(name), killed.join(name)).unwrap();
    }
    drop(Archive::resume(&killed).unwrap());
    let samples = Archive::read(&killed).unwrap().load().unwrap();
    assert_eq!(samples.warnings, ["load is 3", "in the log"]);
    assert_eq!(names(&killed), ["campaign.sqlite", "campaign.sqlite.version-3"]);
    let kept = Connection::open(killed.join("campaign.sqlite.version-3")).unwrap();
    let warnings: i64 = kept.query_row("SELECT count(*) FROM warning", [], |row| row.get(0)).unwrap();
    assert_eq!(warnings, 2);
}
