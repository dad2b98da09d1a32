//! One process measures a campaign; others get its id, and may read.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::sample;
use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::RoundKind;

/// A process that holds the lock, and a program that it has started; both end with the test in any case.
struct Holder {
    child: Child,
    program: i32,
}

impl Holder {
    fn start(folder: &Path) -> Holder {
        let mut child = Command::new(env!("CARGO_BIN_EXE_widthwise-archive-writer"))
            .arg("hold")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let program = line.trim().strip_prefix("held ").unwrap().parse().unwrap();
        Holder { child, program }
    }

    /// Kills the holder, and leaves the program.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn program_lives(&self) -> bool {
        // SAFETY: no memory is involved, and signal 0 only asks.
        unsafe { libc::kill(self.program, 0) == 0 }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: no memory is involved; the program sleeps for longer than a test takes, so its id is not reused.
        unsafe { libc::kill(self.program, libc::SIGKILL) };
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn campaign(parent: &Path) -> std::path::PathBuf {
    let mut archive = Archive::create(parent, &sample::metadata()).unwrap();
    archive.begin_round(0, RoundKind::Timed, 1, None).unwrap();
    archive.add_run(&sample::run(0, 0, sample::VARIANTS[0]), &[]).unwrap();
    archive.end_round(&sample::timed(0)).unwrap();
    archive.folder().to_owned()
}

#[test]
fn a_second_process_gets_the_id_of_the_first_and_may_read() {
    let parent = tempfile::tempdir().unwrap();
    let folder = campaign(parent.path());
    let mut holder = Holder::start(&folder);
    let refused = Archive::resume(&folder).unwrap_err();
    let pid = holder.child.id();
    assert!(matches!(refused, ArchiveError::Locked { pid: Some(named), .. } if named == pid), "{refused}");
    assert!(refused.to_string().contains(&format!("process {pid}")), "{refused}");
    assert_eq!(Archive::read(&folder).unwrap().load().unwrap().runs.len(), 1);
    // The program that was being measured outlives widthwise, and does not hold the lock for it.
    holder.kill();
    assert!(holder.program_lives());
    assert_eq!(Archive::resume(&folder).unwrap().next_round(), 1);
}

#[test]
fn one_process_cannot_lock_a_campaign_twice() {
    let parent = tempfile::tempdir().unwrap();
    let first = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let folder = first.folder().to_owned();
    assert!(matches!(Archive::resume(&folder), Err(ArchiveError::Locked { .. })));
    drop(first);
    assert!(Archive::resume(&folder).is_ok());
}

#[test]
fn a_reader_sees_runs_that_are_added_meanwhile() {
    let parent = tempfile::tempdir().unwrap();
    let mut writing = Archive::create(parent.path(), &sample::metadata()).unwrap();
    let reading = Archive::read(writing.folder()).unwrap();
    for number in 0..5 {
        writing.begin_round(number, RoundKind::Timed, 1, None).unwrap();
        assert_eq!(reading.load().unwrap().rounds[number as usize].kind, RoundKind::Interrupted);
        writing.add_run(&sample::run(number, 0, sample::VARIANTS[0]), &[]).unwrap();
        writing.end_round(&sample::timed(number)).unwrap();
        assert_eq!(reading.load().unwrap(), writing.load().unwrap());
        assert_eq!(reading.load().unwrap().rounds[number as usize].kind, RoundKind::Timed);
    }
    // A reader that outlasts the writer prevents the checkpoint, and loses nothing.
    let folder = writing.folder().to_owned();
    drop(writing);
    assert_eq!(reading.load().unwrap().runs.len(), 5);
    drop(reading);
    assert_eq!(Archive::resume(&folder).unwrap().load().unwrap().runs.len(), 5);
}
