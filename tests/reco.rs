//! The toy reconstruction in `workloads/reco`: the same output for every mode and ABI, correct physics, and reported
//! failures.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::laboratory::{output_of, repository, signal, until, CommandOutput, Laboratory, Words};

/// Each ABI, and its compiler options.
const ABIS: [(&str, &str); 3] = [
    ("x86-64", "g++ -m64"),
    ("x32", "g++ -mx32 -idirafter /usr/include/x86_64-linux-gnu"),
    ("i386", "g++ -m32 -idirafter /usr/include/x86_64-linux-gnu"),
];

/// The program for an ABI. It takes long to build, so it is kept in cargo's target folder, and `make` decides
/// whether it is up to date.
fn built(abi: &str) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 3] = [const { OnceLock::new() }; 3];
    let which = ABIS.iter().position(|(name, _)| *name == abi).unwrap();
    BUILT[which].get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reco-{abi}"));
        std::fs::create_dir_all(&folder).unwrap();
        let makefile = repository().join("workloads/reco/Makefile");
        let shown = output_of(
            Command::new("make")
                .args(["-f", makefile.to_str().unwrap()])
                .args([&format!("CXX={}", ABIS[which].1), "CXXFLAGS=-O2 -Wall -Wextra -Werror"])
                .env_remove("MAKEFLAGS")
                .current_dir(&folder),
        );
        assert_eq!(shown.status, Some(0), "{shown:?}");
        folder.join("reco")
    })
}

/// `reco` with these arguments, not yet started; an x32 program through the runtime.
fn command(lab: &Laboratory, abi: &str, words: impl Words) -> Command {
    let program = built(abi);
    let mut command = match abi {
        "x32" => lab.command(&["exec", program.to_str().unwrap()]),
        _ => Command::new(program),
    };
    command.args(words.words()).current_dir(lab.path("")).stdin(Stdio::null());
    command
}

fn reco(lab: &Laboratory, abi: &str, words: impl Words) -> CommandOutput {
    output_of(&mut command(lab, abi, words))
}

/// Its output, with small conditions unless the arguments set others.
fn answer(lab: &Laboratory, abi: &str, words: &str) -> String {
    let shown = reco(lab, abi, &format!("--conditions 7M {words}"));
    assert_eq!((shown.status, shown.stderr.as_str()), (Some(0), ""), "{abi} {words}: {shown:?}");
    shown.stdout
}

/// The first number after each name in an output.
fn numbers(answer: &str) -> BTreeMap<String, f64> {
    let line = |line: &str| {
        let (name, values) = line.split_at(25);
        Some((name.trim().to_owned(), values.split_whitespace().next()?.parse().ok()?))
    };
    answer.lines().filter(|line| !line.starts_with("pull of")).filter_map(line).collect()
}

/// The tracks that any process wrote into a folder, sorted by text.
fn tracks(lab: &Laboratory, folder: &str) -> Vec<String> {
    let mut tracks: Vec<String> = files(lab, folder, "tracks")
        .iter()
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    tracks.sort();
    tracks
}

/// The texts of the files in a folder with this extension, sorted by name.
fn files(lab: &Laboratory, folder: &str, ending: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(lab.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn every_abi_gives_the_same_output_to_the_last_bit() {
    let lab = Laboratory::new();
    let expected = answer(&lab, "x86-64", "--events 30 --output x86-64");
    for abi in ["x32", "i386"] {
        assert_eq!(answer(&lab, abi, &format!("--events 30 --output {abi}")), expected, "{abi}");
        assert_eq!(tracks(&lab, abi), tracks(&lab, "x86-64"), "{abi}");
    }
    assert_ne!(answer(&lab, "i386", "--events 30 --seed 2"), expected, "the seed says nothing");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_output_is_the_same_for_processes_threads_and_one_process() {
    let lab = Laboratory::new();
    let events = "--events 8 --output";
    let expected = answer(&lab, "x86-64", &format!("{events} job"));
    let job = tracks(&lab, "job");
    assert_eq!(job.len() as f64, numbers(&expected)["tracks"]);
    let ways = [
        ("--processes 1", 1),
        ("--processes 3", 3),
        ("--processes 3 --hand-out round-robin", 3),
        ("--processes 2 --chunk 5", 2),
        ("--processes 20 --counted --keep 2", 20),
        ("--processes 2 --fork before-conditions --hand-out round-robin", 2),
        ("--processes 2 --fork after-first-event --pin", 3),
        ("--processes 3 --fork after-first-event --hand-out round-robin --counted", 4),
        ("--threads 3", 3),
        ("--threads 2 --hand-out round-robin --counted", 2),
        ("--threads 2 --chunk 5 --pin", 2),
    ];
    for abi in ["x86-64", "x32", "i386"] {
        for (number, (way, workers)) in ways.iter().enumerate() {
            let folder = format!("{abi}-{number}");
            assert_eq!(answer(&lab, abi, &format!("{events} {folder} {way}")), expected, "{abi} {way}");
            assert_eq!(tracks(&lab, &folder), job, "{abi} {way}");
            assert_eq!(files(&lab, &folder, "log").len(), *workers, "{abi} {way}");
        }
    }
}

#[test]
fn independent_jobs_find_the_same_tracks() {
    let lab = Laboratory::new();
    let all = numbers(&answer(&lab, "x86-64", "--events 9 --output all"));
    let jobs: Vec<_> = [(1, 4), (5, 5)]
        .map(|(first, events)| {
            let words = format!("--first {first} --events {events} --output job-{first}");
            numbers(&answer(&lab, "x86-64", &words))
        })
        .into();
    for name in ["events", "particles", "found particles", "hits", "seeds", "tracks", "hits on tracks"] {
        assert_eq!(all[name], jobs[0][name] + jobs[1][name], "{name}");
    }
    let mut parts = [tracks(&lab, "job-1"), tracks(&lab, "job-5")].concat();
    parts.sort();
    assert_eq!(parts, tracks(&lab, "all"));
}

#[test]
fn round_robin_gives_every_nth_event_and_chunks_are_contiguous() {
    let lab = Laboratory::new();
    let events = |log: &str| -> Vec<u64> {
        let lines = log.lines().filter_map(|line| line.strip_prefix("event "));
        lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    };
    answer(
        &lab,
        "x86-64",
        "--events 7 --first 10 --processes 3 --hand-out round-robin --log-events --output turns",
    );
    let executor: Vec<_> = files(&lab, "turns", "log").iter().map(|log| events(log)).collect();
    assert_eq!(executor, [vec![10, 13, 16], vec![11, 14], vec![12, 15]]);

    answer(&lab, "x86-64", "--events 12 --processes 2 --chunk 4 --log-events --output chunks");
    let chunks: Vec<_> = files(&lab, "chunks", "log").iter().flat_map(|log| events(log)).collect();
    for chunk in chunks.chunks(4) {
        assert_eq!(chunk, [chunk[0], chunk[0] + 1, chunk[0] + 2, chunk[0] + 3]);
    }
    assert_eq!(chunks.len(), 12);
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_physics_is_correct() {
    let lab = Laboratory::new();
    let shown = answer(&lab, "x86-64", "--events 100 --conditions 32M");
    let found = numbers(&shown);
    assert!(found["efficiency"] > 97.0, "{shown}");
    assert!(found["fake rate"] < 1.0 && found["duplicate rate"] < 1.0, "{shown}");
    assert!(found["purity"] > 99.0, "{shown}");
    // Some cannot be found: they leave through the ends of the layers, or were missed too often.
    let findable = found["findable particles"] / found["particles"];
    assert!((0.9..0.995).contains(&findable), "{shown}");
    let pulls: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("pull of ")).collect();
    assert_eq!(pulls.len(), 5);
    for pull in pulls {
        let words: Vec<&str> = pull.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name).unwrap();
            words[at + 1].trim_end_matches(',').parse::<f64>().unwrap()
        };
        // 12 000 tracks: the mean's own error is 0.009, the width's 0.0065.
        assert!(after("mean").abs() < 0.04, "{pull}");
        assert!((0.96..1.04).contains(&after("width")), "{pull}");
        let (beyond, of) = pull.split_once(" of ").unwrap();
        let beyond: f64 = beyond.split(' ').next_back().unwrap().parse().unwrap();
        let of: f64 = of.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(of, found["found particles"]);
        assert!(beyond < of / 1000.0, "{pull}");
    }
}

#[test]
fn noise_alone_makes_no_tracks_and_no_particle_is_found_twice() {
    let lab = Laboratory::new();
    let noise = numbers(&answer(&lab, "x86-64", "--events 2 --tracks 0 --noise 2000"));
    assert!(noise["seeds"] > 0.0);
    assert_eq!((noise["particles"], noise["tracks"]), (0.0, 0.0));
    let dense = numbers(&answer(&lab, "x86-64", "--events 1 --tracks 2500 --noise 1000"));
    assert!(dense["efficiency"] > 97.0, "{dense:?}");
    // Where hits are dense, some on a track belong to others, and the output shows that.
    assert!(dense["purity"] < 99.99 && dense["purity"] > 98.0, "{dense:?}");
}

#[test]
fn conditions_are_used_and_have_the_requested_size() {
    let lab = Laboratory::new();
    let resident = |abi: &str, size: &str| -> f64 {
        let program = built(abi).to_str().unwrap();
        let words = [&["-v", program][..], &["--events", "1", "--conditions", size]].concat();
        let shown = output_of(Command::new("/usr/bin/time").args(words));
        let line = shown.stderr.lines().find(|line| line.contains("Maximum resident")).unwrap();
        line.split(' ').next_back().unwrap().parse().unwrap()
    };
    let [small, large] = ["10M", "110M"].map(|size| resident("x86-64", size));
    // Conditions, and what the first event derives from them.
    assert!((170_000.0..210_000.0).contains(&(large - small)), "{small} to {large} kB");
    let [small_32, large_32] = ["10M", "110M"].map(|size| resident("i386", size));
    let share = (large_32 - small_32) / (large - small);
    assert!((0.5..0.75).contains(&share), "a pointer of four bytes saves nothing: {share}");
    let [coarse, fine] =
        ["7M", "32M"].map(|size| answer(&lab, "x86-64", &format!("--events 5 --conditions {size}")));
    assert_ne!(coarse, fine, "the calibration was not used");
}

#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn events_from_a_file_are_those_of_the_generator() {
    let lab = Laboratory::new();
    assert_eq!(reco(&lab, "i386", "generate events --events 6 --first 3 --seed 7").status, Some(0));
    assert_eq!(reco(&lab, "x86-64", "generate same --events 6 --first 3 --seed 7").status, Some(0));
    assert_eq!(std::fs::read(lab.path("events")).unwrap(), std::fs::read(lab.path("same")).unwrap());
    let expected = answer(&lab, "x86-64", "--events 6 --first 3 --seed 7");
    assert_eq!(answer(&lab, "x86-64", "--events 6 --skip 2 --seed 7"), expected);
    for abi in ["x86-64", "x32", "i386"] {
        for way in ["", "--processes 2", "--threads 2"] {
            assert_eq!(answer(&lab, abi, &format!("--input events {way}")), expected, "{abi} {way}");
        }
    }
    let part = answer(&lab, "x86-64", "--input events --first 5 --events 2");
    assert_eq!(part, answer(&lab, "x86-64", "--events 2 --first 5 --seed 7"));
    // Without a number of events, all events of the file are used.
    assert_eq!(numbers(&answer(&lab, "x86-64", "--input events --first 5"))["events"], 4.0);
}

#[test]
fn a_log_ends_like_those_of_cms() {
    let lab = Laboratory::new();
    answer(&lab, "x86-64", "--events 4 --processes 2 --hand-out round-robin --log-events --output out");
    for log in files(&lab, "out", "log") {
        let events: Vec<Vec<f64>> = log
            .lines()
            .filter_map(|line| line.strip_prefix("event "))
            .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
            .collect();
        assert_eq!(events.len(), 2, "{log}");
        let mean = |column: usize| events.iter().map(|event| event[column]).sum::<f64>() / 2.0;
        let end: Vec<f64> = log
            .lines()
            .filter_map(|line| line.strip_prefix("- Avg event:   "))
            .map(|word| word.parse().unwrap())
            .collect();
        assert_eq!(end.len(), 2, "{log}");
        for (column, value) in [(1, end[0]), (2, end[1])] {
            assert!(value > 0.0 && (value - mean(column)).abs() < 3e-6, "{log}");
        }
    }
    // Without a folder, they are printed.
    let shown = reco(&lab, "x86-64", "--events 3 --log-events");
    assert_eq!(shown.stderr.lines().filter(|line| line.starts_with("event ")).count(), 3, "{shown:?}");
}

#[test]
fn marks_show_each_phase_once_and_in_order() {
    let lab = Laboratory::new();
    let path = lab.path("marks");
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a string that ends in a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let mut pipe = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut marks = |words: &str| {
        let shown = output_of(command(&lab, "x86-64", words).env("WIDTHWISE_MARKS", &path));
        assert_eq!(shown.status, Some(0), "{shown:?}");
        // A writer of our own, so that the pipe has an end, and reading does not block if there is no data.
        std::io::Write::write_all(&mut pipe, b".").unwrap();
        let mut text = vec![0; 4096];
        let length = pipe.read(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap().replace('\n', " ")
    };
    let one_after_the_other = "--events 3 --marks --processes 1";
    assert_eq!(marks(one_after_the_other), "begin-job conditions fork first-event last-event end-job .");
    assert_eq!(
        marks(&format!("{one_after_the_other} --fork after-first-event")),
        "begin-job conditions first-event fork last-event end-job ."
    );
    assert_eq!(
        marks(&format!("{one_after_the_other} --fork before-conditions")),
        "begin-job fork conditions first-event last-event end-job ."
    );
    assert_eq!(marks("--events 3 --marks"), "begin-job conditions first-event last-event end-job .");
    assert_eq!(marks("--events 3"), ".");
    let ours = std::fs::read(repository().join("workloads/reco/widthwise-marks.h")).unwrap();
    assert!(
        ours == std::fs::read(repository().join("runtime/marks/widthwise-marks.h")).unwrap(),
        "a stale copy"
    );
}

#[test]
fn a_failed_or_killed_child_stops_the_others() {
    let lab = Laboratory::new();
    // Endless, unless they are stopped.
    let endless = format!("--conditions 7M --events 1000000000 --output {}", lab.path("out").display());
    for abi in ["x86-64", "x32"] {
        for (way, words) in [
            (
                "--processes 3 --fail-at 4",
                &["child-", "event 4 fails", "the other children were stopped"][..],
            ),
            ("--processes 2 --hand-out round-robin --fail-at 4", &["child-1 failed: event 4 fails"]),
            (
                "--processes 2 --hand-out round-robin --die-at 3",
                &["child-0", "signal 9", "Killed", "stopped"],
            ),
            ("--processes 1 --die-at 3", &["child-0 was ended by signal 9 (Killed)"]),
            ("--threads 2 --fail-at 4", &["event 4 fails"]),
            ("--fail-at 2", &["event 2 fails"]),
        ] {
            reco(&lab, abi, &format!("{endless} {way}")).refuses(1, words);
            until("the end of the children", || lab.processes().is_empty());
        }
    }
}

#[test]
fn children_do_not_outlive_their_parent() {
    let lab = Laboratory::new();
    let words =
        format!("--conditions 7M --events 1000000000 --processes 3 --output {}", lab.path("out").display());
    for hand_out in ["dynamic", "round-robin"] {
        let mut parent = command(&lab, "x86-64", &format!("{words} --hand-out {hand_out}")).spawn().unwrap();
        until("the fork", || lab.processes().lines().count() == 4);
        signal(&parent, libc::SIGKILL);
        parent.wait().unwrap();
        until("the end of the children", || lab.processes().is_empty());
    }
}

#[test]
fn invalid_input_is_refused_in_one_line() {
    let lab = Laboratory::new();
    lab.write("text", "This is not a file of events, but it is long enough to be one.\n");
    lab.write("empty", "");
    assert_eq!(reco(&lab, "x86-64", "generate good --events 5").status, Some(0));
    let good = std::fs::read(lab.path("good")).unwrap();
    std::fs::write(lab.path("cut"), &good[..good.len() - 1000]).unwrap();
    std::fs::write(lab.path("cut-early"), &good[..60]).unwrap();
    for (name, position) in [("header", 10), ("positions", 45), ("event", good.len() - 1000)] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        std::fs::write(lab.path(name), bad).unwrap();
    }
    for (words, listed) in [
        ("--frobnicate", "unknown option '--frobnicate'"),
        ("loose", "unknown option 'loose'"),
        ("--events", "--events needs a value"),
        ("--events many", "not 'many'"),
        ("--events 0", "not '0'"),
        ("--events -1", "not '-1'"),
        ("--events 99999999999999999999999", "whole number"),
        ("--first 281474976710657", "whole number"),
        ("--processes 0", "--processes takes a whole number from 1 to 4096, not '0'"),
        ("--threads 0", "--threads takes a whole number"),
        ("--threads 2 --processes 2", "cannot be had at once"),
        ("--chunk 0", "--chunk"),
        ("--conditions 1K", "at least"),
        ("--conditions 99999999G", "--conditions"),
        ("--conditions M", "--conditions"),
        ("--fork sometimes", "before-conditions, after-conditions, after-first-event"),
        ("--hand-out fairly", "dynamic, round-robin"),
        ("generate", "needs a FILE"),
        ("generate new --processes 2", "generate does not know '--processes'"),
        ("generate absent/new", "absent/new cannot be written: No such file"),
        ("--input absent", "absent cannot be opened: No such file"),
        ("--input .", ". is not a file of events"),
        ("--input text", "text is not a file of events"),
        ("--input empty", "empty is not a file of events"),
        ("--input cut", "cut is cut off"),
        ("--input cut-early", "cut-early is cut off"),
        ("--input header", "header is corrupt"),
        ("--input positions", "positions is corrupt"),
        ("--input event", "event is corrupt: event 5"),
        ("--input event --processes 2", "event is corrupt: event 5"),
        ("--input event --threads 2", "event is corrupt: event 5"),
        ("--input good --first 6", "good has events 1 to 5"),
        ("--input good --first 2 --events 5", "good has events 1 to 5"),
        ("--output text/below", "text/below cannot be made"),
        ("--output text", "text"),
        ("--output absent/below --processes 2", "absent/below cannot be made"),
    ] {
        reco(&lab, "x86-64", words).refuses(2, &[listed]);
    }
    let full = std::fs::File::create("/dev/full").unwrap();
    let status = command(&lab, "x86-64", "--events 1").stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1), "an unknown answer was no failure");
    for abi in ["x32", "i386"] {
        reco(&lab, abi, "--conditions 10G")
            .refuses(2, &["--conditions is more than this ABI has addresses for"]);
    }
}

/// The commands of the page, in a folder with the program.
#[test]
#[ignore = "takes long: `make test-all PARTS=more`"]
fn the_commands_of_the_page_work() {
    let lab = Laboratory::new();
    std::os::unix::fs::symlink(built("x86-64"), lab.path("reco")).unwrap();
    let page = std::fs::read_to_string(repository().join("docs/reco.md")).unwrap();
    let mut count = 0;
    for line in page.lines().filter(|line| line.starts_with("./reco ")) {
        let shown = output_of(Command::new("sh").args(["-ec", line]).current_dir(lab.path("")));
        assert_eq!(shown.status, Some(0), "{line}: {shown:?}");
        count += 1;
    }
    assert!(count >= 3, "only {count} commands");
    let help = answer(&lab, "x86-64", "--help");
    for option in page.split('`').skip(1).step_by(2).filter(|code| code.starts_with("--")) {
        let name = option.split([' ', '=']).next().unwrap();
        assert!(help.contains(name), "docs/reco.md names {name}, which there is not");
    }
}
