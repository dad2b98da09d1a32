//! What is written is read back unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::sample;
use crate::sample::VARIANTS;
use rusqlite::Connection;
use widthwise_archive::{slug, Archive, ArchiveError, BuildNote, Metadata, ProcessNote};
use widthwise_experiment::outcome::{Ending, Noise, Reading, Round, RoundKind, Run, Source};
use widthwise_experiment::scale::GroupRun;
use widthwise_experiment::VariantStatus;

fn begun() -> (tempfile::TempDir, Archive) {
    let parent = tempfile::tempdir().unwrap();
    let archive = Archive::create(&parent.path().join(".widthwise"), &sample::metadata()).unwrap();
    (parent, archive)
}

/// Adds one complete timed round.
fn add_round(archive: &mut Archive) -> Vec<Run> {
    let number = archive.next_round();
    archive.begin_round(number, RoundKind::Timed, 3, Some(1)).unwrap();
    let runs: Vec<Run> = (0..).zip(VARIANTS).map(|(place, name)| sample::run(number, place, name)).collect();
    for run in &runs {
        archive.add_run(run, &sample::processes(&run.variant)).unwrap();
    }
    archive.end_round(&sample::timed(number)).unwrap();
    runs
}

#[test]
fn everything_is_read_back_as_written() {
    let (_parent, mut archive) = begun();
    let endings = [
        Ending::Done,
        Ending::Exit { status: 3 },
        Ending::Signal { signal: 11 },
        Ending::Timeout { limit_ns: 5_000_000_000 },
        Ending::OutputLimit { limit_bytes: 1 << 30 },
        Ending::SpawnFailed { reason: "execve: No such file or directory".into() },
        Ending::HookFailed { reason: "setup: exit 1".into() },
    ];
    let mut runs = Vec::new();
    for (number, ending) in (0..).zip(&endings) {
        let kind = if number == 0 { RoundKind::Warmup } else { RoundKind::Timed };
        archive.begin_round(number, kind, 1, None).unwrap();
        let mut run = sample::run(number, 0, VARIANTS[1]);
        run.ending = ending.clone();
        if *ending != Ending::Done {
            run.sample.clear();
            run.output_digest = None;
        }
        archive.add_run(&run, &[]).unwrap();
        runs.push(run);
        let round = Round {
            number,
            kind,
            cpu: None,
            noise: Noise { pressure: None, ..sample::timed(0).noise },
            layout: (number < 4).then_some(number + 1),
        };
        archive.end_round(&round).unwrap();
    }
    runs.extend(add_round(&mut archive));

    let builds: Vec<BuildNote> = VARIANTS[..2]
        .iter()
        .map(|variant| BuildNote {
            variant: variant.to_string(),
            compiler: "gcc-12 12.2.0".into(),
            cflags: "-O2 -mx32".into(),
            binary_bytes: (*variant == VARIANTS[1]).then_some(123_456),
            digest: None,
            log: "build/x/log".into(),
            seconds: 1.5,
            cached: *variant == VARIANTS[0],
        })
        .collect();
    for build in builds.iter().rev() {
        archive.set_build(build).unwrap();
    }
    archive.set_status(VARIANTS[1], &VariantStatus::Ready).unwrap();
    let excluded = VariantStatus::Excluded("it ended with exit status 1".to_owned());
    archive.set_status(VARIANTS[1], &excluded).unwrap();
    archive.set_difference(VARIANTS[1], "-1\n+2 <b>\n").unwrap();
    for text in ["load is 3.2", "governor is powersave", "load is 3.2"] {
        archive.warn(text).unwrap();
    }
    archive.set_stopped("rounds: 8", Duration::from_millis(1500)).unwrap();

    let check = |archive: &Archive| {
        assert_eq!(archive.metadata(), &sample::metadata());
        assert_eq!(archive.next_round(), 8);
        let samples = archive.load().unwrap();
        assert_eq!(samples.runs, runs);
        assert_eq!(samples.rounds.len(), 8);
        assert_eq!(samples.rounds[0].kind, RoundKind::Warmup);
        assert_eq!((samples.rounds[0].cpu, samples.rounds[0].noise.pressure), (None, None));
        assert_eq!(samples.rounds[7], sample::timed(7));
        let layouts: Vec<Option<u32>> = samples.rounds.iter().map(|round| round.layout).collect();
        assert_eq!(layouts, [Some(1), Some(2), Some(3), Some(4), None, None, None, None]);
        assert_eq!(samples.builds, builds);
        assert_eq!(samples.statuses, BTreeMap::from([(VARIANTS[1].to_owned(), excluded.clone())]));
        assert_eq!(
            samples.differences,
            BTreeMap::from([(VARIANTS[1].to_owned(), "-1\n+2 <b>\n".to_owned())])
        );
        assert_eq!(samples.warnings, ["load is 3.2", "governor is powersave"]);
        assert_eq!(samples.stopped.as_deref(), Some("rounds: 8"));
        assert_eq!(samples.elapsed, Duration::from_millis(1500));
    };
    check(&archive);
    check(&Archive::read(archive.folder()).unwrap());
    let folder = archive.folder().to_owned();
    drop(archive);
    check(&Archive::read(&folder).unwrap());
    check(&Archive::read(&folder.join("campaign.sqlite")).unwrap());
}

#[test]
fn the_folder_has_files_readable_without_sqlite() {
    let (parent, archive) = begun();
    let folder = parent.path().join(".widthwise/2026-11-21-tree");
    assert_eq!(archive.folder(), folder);
    assert_eq!(fs::read_to_string(folder.join("widthwise.toml")).unwrap(), sample::metadata().spec);
    let machine: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("machine.json")).unwrap()).unwrap();
    assert_eq!(machine, sample::metadata().machine);
    assert!(folder.join("build").join(slug("x32/-O2")).is_dir());
    fs::write(folder.join("output").join(slug("x32/-O2")), "42").unwrap();
    drop(archive);
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let wanted = ["build", "campaign.lock", "campaign.sqlite", "machine.json", "output", "widthwise.toml"];
    assert_eq!(names, wanted);
}

#[test]
fn a_second_campaign_of_a_name_gets_a_number_and_latest_points_at_it() {
    let parent = tempfile::tempdir().unwrap();
    let begin = || Archive::create(parent.path(), &sample::metadata()).unwrap();
    let names = [begin(), begin(), begin()].map(|archive| archive.folder().file_name().unwrap().to_owned());
    assert_eq!(names, ["2026-11-21-tree", "2026-11-21-tree-2", "2026-11-21-tree-3"]);
    assert_eq!(fs::read_link(parent.path().join("latest")).unwrap().as_os_str(), "2026-11-21-tree-3");
    // The link is followed when it is opened: a later campaign does not move this one.
    let resumed = Archive::resume(&parent.path().join("latest/")).unwrap();
    assert_eq!(resumed.folder(), parent.path().join("2026-11-21-tree-3"));
}

#[test]
fn the_folder_of_a_program_with_slashes_stays_in_the_parent() {
    let parent = tempfile::tempdir().unwrap();
    let archive =
        Archive::create(parent.path(), &Metadata { program: "../../e vil".into(), ..sample::metadata() })
            .unwrap();
    assert_eq!(archive.folder().parent(), Some(parent.path()));
    let name = archive.folder().file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("2026-11-21-"), "{name}");
}

#[test]
fn a_latest_that_is_no_link_yields_a_warning() {
    let parent = tempfile::tempdir().unwrap();
    fs::create_dir_all(parent.path().join("latest/mine")).unwrap();
    let archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let warnings = archive.load().unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("`latest`"), "{warnings:?}");
    assert!(parent.path().join("latest/mine").is_dir());
}

#[test]
fn an_interrupted_round_keeps_its_runs_and_is_not_counted() {
    let (_parent, mut archive) = begun();
    add_round(&mut archive);
    archive.begin_round(1, RoundKind::Timed, 3, Some(1)).unwrap();
    archive.add_run(&sample::run(1, 0, VARIANTS[0]), &[]).unwrap();
    let folder = archive.folder().to_owned();
    drop(archive);

    let mut archive = Archive::resume(&folder).unwrap();
    assert_eq!(archive.next_round(), 2);
    // The old round cannot be continued: that would count runs of two sessions as one block.
    let late = archive.add_run(&sample::run(1, 1, VARIANTS[1]), &[]);
    assert!(matches!(late, Err(ArchiveError::OutOfTurn { .. })), "{late:?}");
    let error = archive.begin_round(1, RoundKind::Timed, 3, Some(1)).unwrap_err().to_string();
    assert!(error.contains("round 1 was begun before; the next one is 2"), "{error}");
    add_round(&mut archive);
    let samples = archive.load().unwrap();
    let kinds: Vec<RoundKind> = samples.rounds.iter().map(|round| round.kind).collect();
    assert_eq!(kinds, [RoundKind::Timed, RoundKind::Interrupted, RoundKind::Timed]);
    assert_eq!(samples.runs.iter().filter(|run| run.round == 1).count(), 1);
}

#[test]
fn a_round_that_was_ended_early_is_not_a_complete_block() {
    let (_parent, mut archive) = begun();
    archive.begin_round(0, RoundKind::Timed, 3, None).unwrap();
    archive.add_run(&sample::run(0, 0, VARIANTS[0]), &[]).unwrap();
    archive.end_round(&sample::timed(0)).unwrap();
    assert_eq!(archive.load().unwrap().rounds[0].kind, RoundKind::Interrupted);
}

#[test]
fn a_run_counts_once() {
    let (_parent, mut archive) = begun();
    archive.begin_round(0, RoundKind::Timed, 3, None).unwrap();
    let run = sample::run(0, 0, VARIANTS[0]);
    archive.add_run(&run, &[]).unwrap();
    assert!(archive.add_run(&run, &[]).is_err());
    assert_eq!(archive.load().unwrap().runs, [run]);
}

#[test]
fn runs_of_a_batch_are_committed_together_and_visible_only_then() {
    let (_parent, mut archive) = begun();
    let folder = archive.folder().to_owned();
    let found = || Archive::read(&folder).unwrap().load().unwrap().runs.len();
    archive.begin_batch();
    let first = add_round(&mut archive);
    assert_eq!(found(), 0);
    archive.commit().unwrap();
    assert_eq!(found(), first.len());
    // Without a commit nothing is stored, as after a kill.
    add_round(&mut archive);
    drop(archive);
    assert_eq!(found(), first.len());
    // The end of a session commits everything.
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_batch();
    add_round(&mut archive);
    archive.set_stopped("enough", Duration::from_secs(1)).unwrap();
    assert_eq!(found(), 2 * first.len());
    archive.begin_batch();
    add_round(&mut archive);
    archive.end_batch().unwrap();
    assert_eq!(found(), 3 * first.len());
    add_round(&mut archive);
    assert_eq!(found(), 4 * first.len());
}

#[test]
fn a_failed_write_discards_the_batch_and_the_archive_stays_intact() {
    let (_parent, mut archive) = begun();
    let folder = archive.folder().to_owned();
    archive.begin_batch();
    let runs = add_round(&mut archive);
    archive.commit().unwrap();
    archive.begin_round(1, RoundKind::Timed, 3, None).unwrap();
    let run = Run { round: 1, ..runs[0].clone() };
    archive.add_run(&run, &[]).unwrap();
    archive.add_run(&run, &[]).unwrap_err();
    let samples = Archive::read(&folder).unwrap().load().unwrap();
    assert_eq!((samples.runs.len(), samples.rounds.len()), (runs.len(), 1));
}

#[test]
fn a_resumed_session_whose_first_batch_fails_is_kept() {
    let (_parent, archive) = begun();
    let folder = archive.folder().to_owned();
    drop(archive);
    let mut archive = Archive::resume(&folder).unwrap();
    archive.begin_batch();
    archive.begin_round(0, RoundKind::Timed, 3, None).unwrap();
    let run = sample::run(0, 0, VARIANTS[0]);
    archive.add_run(&run, &[]).unwrap();
    archive.add_run(&run, &[]).unwrap_err();
    archive.set_stopped("failed", Duration::from_secs(2)).unwrap();
    let samples = archive.load().unwrap();
    assert_eq!((samples.stopped.as_deref(), samples.elapsed.as_secs()), (Some("failed"), 2));
}

#[test]
fn samples_are_only_ever_added_even_by_hand() {
    let (_parent, mut archive) = begun();
    add_round(&mut archive);
    let file = archive.folder().join("campaign.sqlite");
    drop(archive);
    let by_hand = Connection::open(file).unwrap();
    for table in ["run", "reading", "process"] {
        for statement in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET rowid = rowid")] {
            // `reading` has no rowid; any column does.
            let statement = statement
                .replace("SET rowid = rowid", if table == "run" { "SET round = 7" } else { "SET run = 7" });
            let refused = by_hand.execute(&statement, []).unwrap_err().to_string();
            assert!(refused.contains("only ever added"), "{statement}: {refused}");
        }
    }
}

#[test]
fn a_nan_reading_is_missing_with_a_warning() {
    let (_parent, mut archive) = begun();
    archive.begin_round(0, RoundKind::Timed, 1, None).unwrap();
    let mut run = sample::run(0, 0, VARIANTS[1]);
    run.sample.insert("branches", Reading::whole(f64::NAN, Source::Hardware));
    archive.add_run(&run, &[]).unwrap();
    let samples = archive.load().unwrap();
    run.sample.remove("branches");
    assert_eq!(samples.runs, [run]);
    assert!(
        samples.warnings.len() == 1 && samples.warnings[0].contains("branches"),
        "{:?}",
        samples.warnings
    );
}

#[test]
fn names_the_campaign_does_not_have_are_refused() {
    let (_parent, mut archive) = begun();
    archive.begin_round(0, RoundKind::Timed, 1, None).unwrap();
    let stranger = archive.add_run(&sample::run(0, 0, "arm64"), &[]).unwrap_err().to_string();
    assert!(stranger.contains("no variant named \"arm64\""), "{stranger}");
    let mut run = sample::run(0, 0, VARIANTS[0]);
    run.sample.insert("happiness", Reading::whole(1.0, Source::Clock));
    let stranger = archive.add_run(&run, &[]).unwrap_err().to_string();
    assert!(stranger.contains("no metric named \"happiness\""), "{stranger}");
    assert!(archive.load().unwrap().runs.is_empty());
}

#[test]
fn processes_are_summed_up_over_timed_runs_only() {
    let (_parent, mut archive) = begun();
    let note = |count, peak, cpu| ProcessNote {
        variant: VARIANTS[1].into(),
        comm: "leaf".into(),
        count,
        max_rss_bytes: peak,
        cpu_ns: cpu,
        source: "taskstats".into(),
    };
    let rounds = [
        (RoundKind::Warmup, Ending::Done, note(100, 9e9, 9e9)),
        (RoundKind::Timed, Ending::Done, note(2, 1e6, 4e6)),
        (RoundKind::Timed, Ending::Done, note(5, 3e6, 6e6)),
        (RoundKind::Timed, Ending::Signal { signal: 9 }, note(100, 9e9, 9e9)),
    ];
    for (number, (kind, ending, note)) in (0..).zip(rounds) {
        archive.begin_round(number, kind, 1, None).unwrap();
        let run = Run { ending, ..sample::run(number, 0, VARIANTS[1]) };
        archive.add_run(&run, &[note]).unwrap();
        archive.end_round(&Round { kind, ..sample::timed(number) }).unwrap();
    }
    // (2 + 5) / 2 = 3.5 processes per run.
    assert_eq!(archive.load().unwrap().processes, [note(4, 3e6, 5e6)]);
}

#[test]
fn time_adds_up_over_sessions_including_interrupted_ones() {
    let (_parent, mut archive) = begun();
    let folder = archive.folder().to_owned();
    archive.set_stopped("Ctrl-C", Duration::from_secs(7)).unwrap();
    drop(archive);
    let mut archive = Archive::resume(&folder).unwrap();
    let samples = archive.load().unwrap();
    // A session begins with its first round: until then the campaign may be refused.
    assert_eq!((samples.stopped.as_deref(), samples.elapsed), (Some("Ctrl-C"), Duration::from_secs(7)));
    add_round(&mut archive);
    assert_eq!(archive.load().unwrap().stopped, None);
    drop(archive);
    let cancelled = Archive::read(&folder).unwrap().load().unwrap().elapsed;
    assert!(cancelled > Duration::from_secs(7));
    let mut archive = Archive::resume(&folder).unwrap();
    archive.set_stopped("max_time", Duration::from_secs(5)).unwrap();
    let samples = archive.load().unwrap();
    assert_eq!(
        (samples.stopped.as_deref(), samples.elapsed),
        (Some("max_time"), cancelled + Duration::from_secs(5))
    );
}

#[test]
fn changes_are_described() {
    let (_parent, archive) = begun();
    assert!(archive.changed(&sample::metadata().fingerprint).is_empty());
    let now = BTreeMap::from([
        ("source".to_owned(), "ffffffffffffffffffffffffffffffff".to_owned()),
        ("compiler gcc-12".to_owned(), "12.3.0".to_owned()),
        ("x32 binary".to_owned(), "0123456789abcdef".to_owned()),
    ]);
    assert_eq!(
        archive.changed(&now),
        [
            "compiler gcc-12: 12.2.0 → 12.3.0",
            "input bench.lua: is gone",
            "source: its content changed",
            "x32 binary: is new"
        ]
    );
}

#[test]
fn an_archive_opened_for_reading_refuses_writes() {
    let (_parent, archive) = begun();
    let mut reading = Archive::read(archive.folder()).unwrap();
    let refused = [
        reading.begin_round(0, RoundKind::Timed, 1, None),
        reading.add_run(&sample::run(0, 0, VARIANTS[0]), &[]),
        reading.end_round(&sample::timed(0)),
        reading.set_status(VARIANTS[0], &VariantStatus::Ready),
        reading.warn("load"),
        reading.set_stopped("why", Duration::ZERO),
    ];
    for outcome in refused {
        assert!(outcome.unwrap_err().to_string().contains("for reading only"));
    }
}

#[test]
fn ten_thousand_runs_are_read_back() {
    let (_parent, mut archive) = begun();
    let mut written = Vec::new();
    for _ in 0..3334 {
        written.extend(add_round(&mut archive));
    }
    let log = fs::metadata(archive.folder().join("campaign.sqlite-wal")).unwrap().len();
    assert!(log < 32 << 20, "no checkpoint was made: {log} bytes");
    let samples = archive.load().unwrap();
    assert!(samples.runs == written && written.len() == 10_002);
    let leaves = samples.processes.iter().find(|note| note.comm == "leaf").unwrap();
    assert_eq!(leaves.count, 2);
}

#[test]
fn the_log_of_a_scaling_campaign_stays_short() {
    let (_parent, mut archive) = begun();
    let record = serde_json::json!({
        "round": 0, "position": 0, "purpose": "timed", "events": null, "ending": {"ended": "done"}, "failure": null,
        "cell": {"variant": VARIANTS[0], "mode": "fork", "placement": "cores", "processes": 2},
        "elapsed_ns": 5, "spread_ns": 0, "cpu_ns": 4, "before_fork": null, "members": [], "counters": {},
        "memory": null, "output_digest": null, "remarks": ["long ".repeat(50_000)]
    });
    let mut run: GroupRun = serde_json::from_value(record).unwrap();
    for round in 0..200 {
        run.round = round;
        archive.begin_round(round, RoundKind::Timed, 1, None).unwrap();
        archive.add_group_run(&run).unwrap();
        archive.end_round(&sample::timed(round)).unwrap();
    }
    let log = fs::metadata(archive.folder().join("campaign.sqlite-wal")).unwrap().len();
    assert!(log < 32 << 20, "no checkpoint was made: {log} bytes");
    assert_eq!(archive.load().unwrap().group_runs.len(), 200);
}
