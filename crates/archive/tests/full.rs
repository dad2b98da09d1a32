//! A full disk: the campaign stops cleanly and can be resumed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::sample;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::RoundKind;

/// What is said where files have a greatest size.
const NO_ROOM: &str = "the disk is full, or a file has reached the size limit of this shell (ulimit -f)";

/// Runs the writer with a file size limit of `room` bytes: write(2) then fails, as it does on a full disk.
fn write_until_full(verb: &str, path: &Path, room: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_widthwise-archive-writer"));
    command.arg(verb).arg(path);
    // SAFETY: both calls are async-signal-safe, and touch nothing but the process itself.
    unsafe {
        command.pre_exec(move || {
            // Without this, SIGXFSZ would kill the process, unlike a full disk.
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let limit = libc::rlimit { rlim_cur: room, rlim_max: room };
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command.output().unwrap()
}

fn acknowledged(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("run ")).count()
}

#[test]
fn a_full_disk_stops_the_campaign_with_every_finished_run_kept() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("2026-11-21-tree");
    let mut kept = 0;
    for (verb, path, room) in
        [("begin", parent.path(), 300_000), ("resume", &folder, 600_000), ("resume", &folder, 900_000)]
    {
        let output = write_until_full(verb, path, room);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let wanted = format!(
            "{NO_ROOM}; every run written so far is kept: make room, then resume with `--resume {}`",
            folder.display()
        );
        assert!(errors.contains(&wanted) && errors.lines().count() == 1, "{errors}");
        assert!(acknowledged(&output) > 10, "{verb} {room}: {errors}");
        kept += acknowledged(&output);
        assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), kept);
    }
    let mut archive = Archive::resume(&folder).unwrap();
    let number = archive.next_round();
    archive.begin_round(number, RoundKind::Timed, 1, None).unwrap();
    archive.add_run(&sample::run(number, 0, sample::VARIANTS[0]), &[]).unwrap();
    archive.end_round(&sample::timed(number)).unwrap();
    assert_eq!(archive.load().unwrap().runs.len(), kept + 1);
}

#[test]
fn a_campaign_that_cannot_begin_leaves_no_folder() {
    let parent = tempfile::tempdir().unwrap();
    let output = write_until_full("begin", parent.path(), 20_000);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let wanted = format!("{}: {NO_ROOM}, and no campaign was begun: make room", parent.path().display());
    assert!(errors.contains(&wanted) && !errors.contains("--resume"), "{errors}");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_new_spec_that_finds_no_room_leaves_the_earlier_one() {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let folder = archive.folder().to_owned();
    let spec = || std::fs::read_to_string(folder.join("widthwise.toml")).unwrap();
    let earlier = spec();
    // Every write to it fails as on a full disk.
    std::os::unix::fs::symlink("/dev/full", folder.join("widthwise.toml.new")).unwrap();
    let error = archive.set_spec("[measure]\nrounds = 200\n").unwrap_err();
    assert!(matches!(&error, ArchiveError::Full { path } if *path == folder), "{error}");
    drop(archive);
    assert_eq!(
        (Archive::read(&folder).unwrap().metadata().spec.as_str(), spec()),
        (&earlier[..], earlier.clone())
    );

    let mut archive = Archive::resume(&folder).unwrap();
    archive.set_spec("[measure]\nrounds = 200\n").unwrap();
    assert_eq!((archive.metadata().spec.clone(), spec()), (spec(), "[measure]\nrounds = 200\n".to_owned()));
    assert!(!folder.join("widthwise.toml.new").exists());
}

#[test]
fn a_spec_file_that_could_not_be_replaced_is_written_by_the_next_session() {
    let parent = tempfile::tempdir().unwrap();
    let mut archive = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let file = archive.folder().join("widthwise.toml");
    std::fs::remove_file(&file).unwrap();
    // rename(2) puts no file in the place of a folder.
    std::fs::create_dir(&file).unwrap();
    archive.set_spec("[measure]\nrounds = 200\n").unwrap_err();
    let folder = archive.folder().to_owned();
    drop(archive);
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, sample::metadata().spec).unwrap();

    let archive = Archive::resume(&folder).unwrap();
    let spec = std::fs::read_to_string(&file).unwrap();
    assert_eq!((archive.metadata().spec.as_str(), &spec[..]), (&spec[..], "[measure]\nrounds = 200\n"));
}
