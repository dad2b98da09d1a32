//! `kill -9` at any moment: nothing is lost, and nothing counts twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::sample;
use rand::RngExt;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::RoundKind;

fn start(verb: &str, path: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_widthwise-archive-writer"))
        .arg(verb)
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The start of the time to a kill.
#[derive(PartialEq)]
enum Moment {
    /// From the start of the process: it may not even have opened the archive.
    Start,
    /// From its first run, so that on any machine there is data to lose.
    FirstRun,
}

/// Kills the process with SIGKILL that long after the moment, and returns its output.
fn kill(mut child: Child, from: Moment, pause: Duration) -> String {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while from == Moment::FirstRun && !text.contains("\nrun ") {
        assert!(out.read_line(&mut text).unwrap() > 0, "it ended by itself: {text}");
    }
    let listener = thread::spawn(move || out.read_to_string(&mut text).map(|_| text));
    thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    listener.join().unwrap().unwrap()
}

#[test]
fn after_twenty_kills_every_acknowledged_run_is_there_exactly_once() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("2026-11-21-tree");
    let mut random = rand::rng();
    let mut acknowledged: Vec<(u32, u32)> = Vec::new();
    for kills in 1..=20 {
        let (child, from) = match kills {
            1 => (start("begin", parent.path()), Moment::FirstRun),
            _ if kills % 4 == 0 => (start("resume", &folder), Moment::Start),
            _ => (start("resume", &folder), Moment::FirstRun),
        };
        let output = kill(child, from, Duration::from_micros(random.random_range(0..80_000)));
        for line in output.lines().filter_map(|line| line.strip_prefix("run ")) {
            let (round, position) = line.split_once(' ').unwrap();
            acknowledged.push((round.parse().unwrap(), position.parse().unwrap()));
        }

        let samples = Archive::read(&folder).unwrap().load().unwrap();
        let mut times: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for run in &samples.runs {
            *times.entry((run.round, run.position)).or_default() += 1;
            let variant = sample::VARIANTS[run.position as usize];
            assert_eq!(*run, sample::run(run.round, run.position, variant));
        }
        for run in &acknowledged {
            assert_eq!(times.get(run), Some(&1), "run {run:?} after {kills} kills");
        }
        // Committed and killed before it was acknowledged: at most one for each kill.
        assert!(samples.runs.len() <= acknowledged.len() + kills, "{kills} kills");

        let mut interrupted = 0;
        for (place, round) in samples.rounds.iter().enumerate() {
            assert_eq!(round.number as usize, place);
            let runs = samples.runs.iter().filter(|run| run.round == round.number).count();
            match round.kind {
                RoundKind::Interrupted => interrupted += 1,
                _ => assert_eq!(runs, 3, "round {place} counts, and is not complete"),
            }
        }
        assert!(interrupted <= kills);
    }
}

#[test]
fn a_kill_during_creation_leaves_a_complete_archive_or_none() {
    let mut random = rand::rng();
    for _ in 0..20 {
        let parent = tempfile::tempdir().unwrap();
        let child = start("begin", parent.path());
        kill(child, Moment::Start, Duration::from_micros(random.random_range(500..12_000)));
        let folders: Vec<PathBuf> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.is_symlink())
            .collect();
        for folder in folders {
            match Archive::resume(&folder) {
                Ok(archive) => assert_eq!(archive.metadata(), &sample::metadata()),
                Err(ArchiveError::Missing { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn reading_after_a_kill_changes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("2026-11-21-tree");
    kill(start("begin", parent.path()), Moment::FirstRun, Duration::ZERO);
    let content =
        || ["campaign.sqlite", "campaign.sqlite-wal"].map(|name| fs::read(folder.join(name)).unwrap());
    let before = content();
    assert!(!before[1].is_empty(), "the log must have something in it for this to prove anything");
    assert!(!Archive::read(&folder).unwrap().load().unwrap().runs.is_empty());
    assert!(content() == before);
}
