//! A process that writes a campaign, for the tests of kills, full disks and locks.
//!
//! `begin PARENT`, `resume FOLDER`: adds rounds without end, and prints each run once it is committed; `hold FOLDER`:
//! takes the lock and waits for the end of its input; `read FOLDER`: prints the number of runs.

#[path = "../sample/mod.rs"]
mod sample;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use widthwise_archive::{Archive, ArchiveError};
use widthwise_experiment::outcome::RoundKind;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, path] = words.as_slice() else {
        eprintln!("begin PARENT | resume FOLDER | hold FOLDER | read FOLDER");
        return ExitCode::from(2);
    };
    let path = Path::new(path);
    let outcome = match verb.as_str() {
        "begin" => Archive::create(path, &sample::metadata()).and_then(write_without_end),
        "resume" => Archive::resume(path).and_then(write_without_end),
        "hold" => Archive::resume(path).map(hold),
        "read" => Archive::read(path).and_then(|archive| archive.load()).map(|samples| {
            print(&format!("{} runs", samples.runs.len()));
        }),
        _ => return ExitCode::from(2),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write_without_end(mut archive: Archive) -> Result<(), ArchiveError> {
    print(&format!("folder {}", archive.folder().display()));
    loop {
        let number = archive.next_round();
        archive.begin_round(number, RoundKind::Timed, 3, Some(1))?;
        for (position, variant) in (0..).zip(sample::VARIANTS) {
            archive.add_run(&sample::run(number, position, variant), &sample::processes(variant))?;
            print(&format!("run {number} {position}"));
        }
        archive.end_round(&sample::timed(number))?;
    }
}

/// Holds the lock, with a started program that may outlive it, as in a campaign.
fn hold(archive: Archive) {
    match Command::new("sleep").arg("600").spawn() {
        Ok(child) => print(&format!("held {}", child.id())),
        Err(error) => print(&format!("no sleep: {error}")),
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(archive);
}

fn print(words: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{words}").and_then(|()| out.flush());
}
