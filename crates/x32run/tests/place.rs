//! The runtime, put where it can be started, while this process starts other programs.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use widthwise_x32run::place_in;

/// A process that is started inherits what is being written, from its fork to its exec.
#[test]
fn it_can_be_started_at_once_whatever_else_is_being_started() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
        }
        let started: Vec<_> = (0..200)
            .map(|_| {
                let folder = tempfile::tempdir().unwrap();
                let runtime = place_in(folder.path()).unwrap();
                Command::new(runtime).output()
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        for output in started {
            let output = output.unwrap();
            assert_eq!(output.status.code(), Some(126), "{output:?}");
        }
    });
}
