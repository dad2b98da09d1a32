//! Skipped and retried tests are reported: on standard error, although the test harness captures output, and in the
//! file that `WIDTHWISE_OUTCOMES` names, which `make test` summarises at its end (`tests/outcomes.sh`).

// Not every file of tests uses all.
#![allow(dead_code)]

use std::io::Write;
use std::panic::Location;

/// Whether this is that part of `make test-all` (tests/all.sh).
pub fn is_lane(name: &str) -> bool {
    std::env::var_os("WIDTHWISE_LANE").is_some_and(|lane| lane == name)
}

/// This test cannot run here, or not completely: `return skipped("why")`.
#[track_caller]
pub fn skipped(reason: &str) {
    tell("skipped", reason);
}

/// A service outside of this machine and the project failed and was used a second time.
#[track_caller]
pub fn retried(reason: &str) {
    tell("retried", reason);
}

#[track_caller]
fn tell(outcome: &str, reason: &str) {
    let place = Location::caller();
    let thread = std::thread::current();
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let (name, file, line) = (thread.name().unwrap_or("a test"), place.file(), place.line());
    let text = format!("{outcome} {name} ({file}:{line}): {reason}\n");
    // Not `eprint!`, which the harness captures.
    let _ = std::io::stderr().write_all(text.as_bytes());
    if let Some(path) = std::env::var_os("WIDTHWISE_OUTCOMES") {
        let file = std::fs::File::options().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", path.display());
    }
}
