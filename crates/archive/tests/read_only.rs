//! Folders that can be read and not written.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sample;
use widthwise_archive::Archive;
use widthwise_experiment::outcome::RoundKind;

/// A folder that others can enter, and in it the writer: the build folder may lie in a home that they cannot enter.
fn place() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    allow(parent.path(), 0o755);
    let copy = parent.path().join("writer");
    // By another process: if this one held the copy open for writing, a child that another test forks meanwhile would
    // hold it too, and execve(2) would fail with "Text file busy".
    let copied =
        Command::new("cp").arg(env!("CARGO_BIN_EXE_widthwise-archive-writer")).arg(&copy).status().unwrap();
    assert!(copied.success());
    (parent, copy)
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs it as a user without write permission, and returns its output.
fn output_of(writer: &Path, verb: &str, path: &Path) -> String {
    let mut command = Command::new(writer);
    command.arg(verb).arg(path);
    // SAFETY: reads one number of the process.
    if unsafe { libc::geteuid() } == 0 {
        // Permissions do not restrict root, so it runs as the user `nobody`.
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_campaign_is_not_created_in_a_read_only_folder() {
    let (parent, writer) = place();
    let folder = parent.path().join("campaigns");
    fs::create_dir(&folder).unwrap();
    allow(&folder, 0o555);
    let output = output_of(&writer, "begin", &folder);
    allow(&folder, 0o755);
    assert!(output.contains("cannot be written: Permission denied"), "{output}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_finished_campaign_in_a_read_only_folder_is_read_and_not_resumed() {
    let (parent, writer) = place();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    archive.begin_round(0, RoundKind::Timed, 1, None).unwrap();
    archive.add_run(&sample::run(0, 0, sample::VARIANTS[0]), &[]).unwrap();
    let folder = archive.folder().to_owned();
    drop(archive);
    for name in ["campaign.sqlite", "campaign.lock"] {
        allow(&folder.join(name), 0o444);
    }
    allow(&folder, 0o555);
    let read = output_of(&writer, "read", &folder);
    let resumed = output_of(&writer, "resume", &folder);
    // Still in WAL mode, like a copy made during a measurement.
    allow(&folder, 0o755);
    allow(&folder.join("campaign.sqlite"), 0o644);
    let by_hand = rusqlite::Connection::open(folder.join("campaign.sqlite")).unwrap();
    by_hand.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(by_hand);
    allow(&folder, 0o555);
    let read_wal = output_of(&writer, "read", &folder);
    allow(&folder, 0o755);
    assert_eq!((read.as_str(), read_wal.as_str()), ("1 runs\n", "1 runs\n"));
    assert!(resumed.contains("cannot be written"), "{resumed}");
}

#[test]
fn a_killed_campaign_in_a_read_only_folder_is_read_where_possible() {
    let (parent, writer) = place();
    let mut child =
        Command::new(&writer).arg("begin").arg(parent.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = vec![0; 2000];
    out.read_exact(&mut text).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = parent.path().join("2026-11-21-tree");
    let runs = Archive::read(&folder).unwrap().load().unwrap().runs.len();
    allow(&folder, 0o555);
    let read = output_of(&writer, "read", &folder);
    allow(&folder, 0o755);
    fs::remove_file(folder.join("campaign.sqlite-shm")).unwrap();
    allow(&folder, 0o555);
    let read_without_index = output_of(&writer, "read", &folder);
    allow(&folder, 0o755);
    assert_eq!(read, format!("{runs} runs\n"));
    // Missing runs are never silent.
    assert!(read_without_index.contains("read a copy"), "{read_without_index}");
}
