//! Campaigns at the same time: each uses its own core, or waits for one.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Child, Stdio};

use crate::laboratory;
use crate::laboratory::alone::alone;
use crate::laboratory::{count, signal, until, CommandOutput, Laboratory};
use serde_json::Value;

/// A campaign of a sleeping program, until it is interrupted.
fn napping(lab: &Laboratory, archive: &str) -> Child {
    let arguments = format!("compare --json --archive {archive} nap.c --abi x86-64 --rounds 100000 -- 1 5");
    lab.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn is_measuring(lab: &Laboratory, archive: &str) -> bool {
    let folder = lab.path(archive).join("latest");
    folder.join("campaign.sqlite").exists()
        && count(&laboratory::open(&folder), "SELECT count(*) FROM rounds WHERE kind = 'timed'") > 0
}

/// Interrupts it, and returns the CPUs on which its rounds were measured.
fn cpus(child: Child) -> BTreeSet<u64> {
    signal(&child, libc::SIGINT);
    let output = CommandOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, Some(130), "{output:?}");
    output.json()["rounds"].as_array().unwrap().iter().map(|round| round["cpu"].as_u64().unwrap()).collect()
}

/// The CPUs of each core that a campaign would use: those of the fastest kind.
fn cores(lab: &Laboratory) -> Vec<BTreeSet<u64>> {
    let diagnosis = lab.widthwise("doctor --json").json();
    let cores = diagnosis["machine"]["topology"]["cores"].as_array().unwrap().clone();
    let cpus =
        |core: &Value| core["cpus"].as_array().unwrap().iter().map(|cpu| cpu.as_u64().unwrap()).collect();
    cores.iter().filter(|core| core["kind"] == "performance").map(cpus).collect()
}

/// Locks a core as a campaign does.
fn lock(cpu: u64) -> File {
    let folder = if std::path::Path::new("/run/lock").is_dir() { "/run/lock" } else { "/tmp" };
    let path = format!("{folder}/widthwise-cpu{cpu}.lock");
    let file = File::options().create(true).append(true).open(path).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) },
        0,
        "CPU {cpu} is locked"
    );
    file
}

#[test]
fn simultaneous_campaigns_use_different_cores_and_a_further_one_waits() {
    let _alone = alone();
    let lab = Laboratory::new();
    lab.program("nap.c");
    let cores = cores(&lab);
    // On a machine with more than two cores, the other cores are locked first.
    let taken: Vec<File> = cores.iter().skip(2).map(|core| lock(*core.first().unwrap())).collect();
    let names = ["first", "second"];
    let measuring: Vec<Child> = names
        .iter()
        .take(cores.len())
        .map(|name| {
            let child = napping(&lab, name);
            until("a campaign's first round", || is_measuring(&lab, name));
            child
        })
        .collect();

    let mut waiting = napping(&lab, "waiting");
    let mut errors = std::io::BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for one to end") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
        assert!(read > 0, "it did not wait");
    }
    assert!(line.contains("every core is being measured on by another campaign"), "{line}");
    assert!(!is_measuring(&lab, "waiting"));

    let used: Vec<BTreeSet<u64>> = measuring.into_iter().map(cpus).collect();
    for cpus in &used {
        assert_eq!(cpus.len(), 1, "a campaign was measured on several cores: {used:?}");
    }
    for (at, core) in cores.iter().take(2).enumerate() {
        let on_it = used.iter().filter(|cpus| !core.is_disjoint(cpus)).count();
        assert_eq!(on_it, 1, "core {at} was measured on by {on_it} campaigns: {used:?}");
    }
    until("the turn of the one that waited", || is_measuring(&lab, "waiting"));
    assert_eq!(cpus(waiting).len(), 1);
    drop(taken);
}

#[test]
fn campaigns_of_one_folder_do_not_disturb_each_others_working_directories() {
    let _alone = alone();
    let lab = Laboratory::new();
    lab.write("input", "here\n");
    lab.write("careful.sh", "cat input; echo mine > mine; sleep 0.02; cat mine; ls\n");
    let start = || {
        let arguments = "--binary careful=careful.sh --run 'sh {binary}' --directory fresh --input input \
                         --input careful.sh --rounds 25";
        lab.comparing(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [start(), start()];
    for child in children {
        let output = CommandOutput::of(child.wait_with_output().unwrap());
        assert_eq!(output.status, Some(0), "{output:?}");
    }
}
