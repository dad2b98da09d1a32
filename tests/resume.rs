//! Campaigns that are killed, interrupted or resumed: nothing is lost, nothing counts twice, and a resumed
//! campaign is the same campaign.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::laboratory;
use crate::laboratory::{count, signal, until, CommandOutput, Laboratory};
use rusqlite::Connection;

/// Starts a campaign, and waits until it has runs.
fn begun(lab: &Laboratory, arguments: &[&str]) -> Child {
    let child = lab.comparing(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a first run", || {
        lab.path(".widthwise/latest/campaign.sqlite").exists()
            && count(&lab.archive(), "SELECT count(*) FROM run") > 0
    });
    child
}

fn ended(child: Child) -> CommandOutput {
    CommandOutput::of(child.wait_with_output().unwrap())
}

fn resumed(lab: &Laboratory, more: &[&str]) -> CommandOutput {
    lab.widthwise(&[&["compare", "--resume", ".widthwise/latest"], more].concat())
}

fn timed(archive: &Connection) -> i64 {
    count(archive, "SELECT count(*) FROM rounds WHERE kind = 'timed'")
}

/// Every run, by its place, with its start.
fn runs(archive: &Connection) -> BTreeMap<(u32, i64), i64> {
    let mut statement = archive.prepare("SELECT round, variant, began_ns FROM run").unwrap();
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A campaign of sleeping programs, to be interrupted.
const NAPS: [&str; 6] = ["nap.c", "--abi", "x86-64", "--rounds", "400", "--"];

fn napping(lab: &Laboratory, milliseconds: &str) -> Child {
    lab.program("nap.c");
    begun(lab, &[&NAPS[..], &["1", milliseconds]].concat())
}

#[test]
fn a_campaign_killed_and_resumed_five_times_loses_and_repeats_no_run() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let rounds = 160;
    let arguments = ["nap.c", "--abi", "x86-64,i386", "--rounds", "160", "--", "1", "8"];
    let mut child = begun(&lab, &arguments);
    let mut known = BTreeMap::new();
    // Random, from the start time of the test.
    let mut random =
        u64::from(std::process::id()) ^ std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    for kill in 0..5 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pause = Duration::from_millis((random >> 33) % 700);
        std::thread::sleep(pause);
        signal(&child, libc::SIGKILL);
        let killed = ended(child);
        assert_eq!(killed.status, None, "it had ended before kill {kill}, after {pause:?}: {killed:?}");
        until("the end of the killed campaign's program", || lab.processes().is_empty());

        let now = runs(&lab.archive());
        for (place, began) in &known {
            assert_eq!(now.get(place), Some(began), "a run was lost or made twice by kill {kill}");
        }
        known = now;
        child = lab
            .command("compare --resume .widthwise/latest")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    }
    let output = ended(child);
    assert_eq!(output.status, Some(0), "{output:?}");
    let archive = lab.archive();
    for (place, began) in &known {
        assert_eq!(runs(&archive).get(place), Some(began), "a run was lost");
    }
    assert_eq!(timed(&archive), rounds);
    // Three participants: both variants, and the A/A control.
    let incomplete = "SELECT count(*) FROM (SELECT rounds.round, kind, count(run.id) AS runs FROM rounds LEFT JOIN run USING (round)
                      GROUP BY rounds.round) WHERE kind <> 'interrupted' AND runs <> 3";
    assert_eq!(count(&archive, incomplete), 0);
    // A session killed before its start leaves no row; the last one has the reason of its end.
    let sessions = count(&archive, "SELECT count(*) FROM session");
    assert_eq!(count(&archive, "SELECT count(*) FROM session WHERE stopped IS NULL"), sessions - 1);
    let report = lab.widthwise("report --json").json();
    let judged = laboratory::verdict(&report, "i386", "wall")["pairs"].as_i64().unwrap();
    assert_eq!(judged, rounds, "the verdict counts other rounds than those that were asked for");
}

#[test]
fn an_interrupt_ends_the_campaign_after_the_run_with_a_report() {
    let lab = Laboratory::new();
    let child = napping(&lab, "20");
    until("some rounds", || timed(&lab.archive()) >= 3);
    signal(&child, libc::SIGINT);
    let output = ended(child);
    assert_eq!(output.status, Some(130), "{output:?}");
    assert!(output.stderr.contains("interrupted; `widthwise compare --resume .widthwise/2"), "{output:?}");
    let heard = "ending after the current run; a second Ctrl-C ends that run, too";
    assert_eq!(output.stderr.matches(heard).count(), 1, "{output:?}");
    assert!(output.stdout.contains("report.html"), "{output:?}");
    assert!(lab.campaign().join("report.html").exists());
    let archive = lab.archive();
    let (done, runs) = (timed(&archive), runs(&archive).len());
    assert!((3..400).contains(&done), "{done}");
    assert_eq!(
        count(&archive, "SELECT count(*) FROM run WHERE ended <> 'done'"),
        0,
        "the current run was cut off"
    );
    let report = lab.widthwise("report --json").json();
    assert_eq!(report["stopping"]["stopped"], "interrupted");

    // It can be resumed, with another stopping rule than before.
    let more = (done + 2).to_string();
    let output = resumed(&lab, &["--rounds", &more]);
    assert_eq!(output.status, Some(0), "{output:?}");
    let archive = lab.archive();
    assert_eq!(timed(&archive), done + 2);
    assert!(self::runs(&archive).len() > runs);
}

#[test]
fn two_interrupts_end_the_run_too() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    // Short sleeps, and then one that is too long to wait for.
    lab.write(
        "often.sh",
        "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count; [ $n -lt 6 ] || sleep 1000\n",
    );
    let child = begun(&lab, &["--binary", "naps=often.sh", "--run", "sh {binary}", "--rounds", "50"]);
    until("the long nap", || lab.read("count").trim() == "7");
    signal(&child, libc::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, libc::SIGINT);
    let output = ended(child);
    assert_eq!(output.status, Some(130), "{output:?}");
    assert!(output.stderr.contains("interrupted"), "{output:?}");
    assert_eq!(lab.processes(), "");
    assert_eq!(
        count(&lab.archive(), "SELECT count(*) FROM run"),
        6,
        "the run that was cut off is kept as one"
    );
}

#[test]
fn a_change_since_the_beginning_is_named_and_the_campaign_is_not_resumed() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    lab.write("text", "one\n");
    // A wrapper of the real compiler, whose version can be changed.
    let banner = |revision: &str| {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo 'gcc-12 (Debian {revision}) 12.2.0' && echo 'Free Software Foundation' && exit\n\
             exec /usr/bin/gcc \"$@\"\n"
        );
        lab.script("bin/gcc", &text);
    };
    banner("1");
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    let arguments =
        ["tells.c", "--abi", "x86-64", "--stdin", "text", "--input", "text", "--rounds", "6", "--", "input"];
    let first = laboratory::output_of(lab.comparing(&arguments).env("PATH", &path));
    assert_eq!(first.status, Some(0), "{first:?}");
    assert_eq!(lab.answer("x86-64"), "one\n");

    let resume = ["compare", "--resume", ".widthwise/latest", "--rounds", "8"];
    let again = || laboratory::output_of(lab.command(&resume).env("PATH", &path));
    let before = runs(&lab.archive());
    let refuses = |words: &[&str]| {
        again().refuses(2, &[&["cannot be resumed, since not everything is as it was"], words].concat());
        assert_eq!(runs(&lab.archive()), before);
    };

    lab.write("text", "two\n");
    refuses(&["input", "text"]);
    lab.write("text", "one\n");

    let source = lab.read("tells.c");
    lab.write("tells.c", &source.replace("\"clang\"", "\"Clang\""));
    refuses(&["source"]);
    lab.write("tells.c", &source);

    banner("2");
    refuses(&["compiler gcc-12", "Debian 2"]);
    banner("1");

    // With the original state it is resumed.
    let output = again();
    assert_eq!(output.status, Some(0), "{output:?}");
    assert_eq!(timed(&lab.archive()), 8);
}

#[test]
fn only_the_stopping_rule_may_change_on_resume() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    assert_eq!(lab.compare("tells.c --abi x86-64 --rounds 6").status, Some(0));
    for other in
        [&["--abi", "i386"][..], &["--metric", "cpu"], &["--warmup", "3"], &["tells.c"], &["--cpus", "any"]]
    {
        resumed(&lab, other).refuses(2, &["only --rounds, --precision and --max-time may be given with it"]);
    }
    assert_eq!(timed(&lab.archive()), 6);
    assert_eq!(resumed(&lab, &["--rounds", "9"]).status, Some(0));
    assert_eq!(timed(&lab.archive()), 9);
    // A new rule is the campaign's from then on.
    assert!(std::fs::read_to_string(lab.campaign().join("widthwise.toml")).unwrap().contains("rounds = 9"));
}

#[test]
fn two_processes_do_not_measure_one_campaign() {
    let lab = Laboratory::new();
    let child = napping(&lab, "20");
    let pid = format!("process {}", child.id());
    resumed(&lab, &[]).refuses(2, &["is being measured by", &pid]);
    // Reading is always possible.
    assert_eq!(lab.widthwise("report").status, Some(0));
    signal(&child, libc::SIGINT);
    assert_eq!(ended(child).status, Some(130));
}

#[test]
fn a_complete_campaign_is_not_continued() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    assert_eq!(lab.compare("tells.c --abi x86-64 --rounds 6").status, Some(0));
    let before = runs(&lab.archive());
    let output = resumed(&lab, &[]);
    assert_eq!(output.status, Some(0), "{output:?}");
    assert_eq!(runs(&lab.archive()), before);
    assert!(output.stdout.contains("6 rounds"), "{output:?}");
}

/// The contents of the tables that a refused session must not change.
fn contents(archive: &Connection) -> Vec<i64> {
    let counts = ["session", "round", "run", "group_run", "warning"]
        .map(|table| count(archive, &format!("SELECT count(*) FROM {table}")));
    let lines = count(archive, "SELECT length(spec) FROM campaign");
    counts.into_iter().chain([lines]).collect()
}

#[test]
fn a_campaign_of_the_other_verb_is_refused_before_anything_is_built_or_written() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let scaled = "scale nap.c --abi x86-64 --processes 1 --rounds 1 --warmup 0 --memory=0 -- 1 1";
    assert_eq!(lab.widthwise(scaled).status, Some(0));
    let before = contents(&lab.archive());
    resumed(&lab, &["--rounds", "9"]).refuses(2, &["this is a campaign of `widthwise scale`"]);
    assert_eq!(contents(&lab.archive()), before);

    assert_eq!(lab.compare("nap.c --abi x86-64 --rounds 1 --warmup 0 -- 1 1").status, Some(0));
    let before = contents(&lab.archive());
    let refused = lab.widthwise("scale --resume .widthwise/latest --rounds 9");
    refused.refuses(2, &["this is a campaign of `widthwise compare`"]);
    assert_eq!(contents(&lab.archive()), before);
}

#[test]
fn a_refused_session_leaves_no_trace() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    for begin in ["compare --cpus any nap.c", "scale nap.c --processes 1 --memory=0"] {
        let output = lab.widthwise(&format!("{begin} --abi x86-64 --rounds 1 --warmup 0 -- 1 1"));
        assert_eq!(output.status, Some(0), "{output:?}");
        let before = contents(&lab.archive());
        let source = lab.read("nap.c");
        lab.write("nap.c", &format!("{source}/* changed */\n"));
        let verb = begin.split(' ').next().unwrap();
        let refused = lab.widthwise(&format!("{verb} --resume .widthwise/latest --rounds 9"));
        refused.refuses(2, &["cannot be resumed", "source"]);
        assert_eq!(contents(&lab.archive()), before, "{verb}");
        lab.write("nap.c", &source);
    }
}

#[test]
fn resuming_adds_rounds_of_the_memory_series() {
    let lab = Laboratory::new();
    lab.program("nap.c");
    let printed = lab.compare("nap.c --abi x86-64 --rounds 6 --warmup 0 -- 1 30");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let series = || count(&lab.archive(), "SELECT count(*) FROM rounds WHERE kind = 'memory'");
    assert_eq!(series(), 0);
    for (asked, made) in [("--memory=2", 2), ("--memory=1", 2), ("--memory=3", 3)] {
        let printed = resumed(&lab, &[asked]);
        assert_eq!(printed.status, Some(0), "{printed:?}");
        assert_eq!((series(), timed(&lab.archive())), (made, 6));
    }
    assert!(std::fs::read_to_string(lab.campaign().join("widthwise.toml")).unwrap().contains("memory = 3"));

    let scaled = "scale nap.c --abi x86-64 --processes 1 --rounds 1 --warmup 0 --memory=0 -- 1 1";
    assert_eq!(lab.widthwise(scaled).status, Some(0));
    let refused = lab.widthwise("scale --resume .widthwise/latest --memory");
    refused.refuses(2, &["only --rounds, --precision and --max-time may be given with it"]);
}

#[test]
fn a_campaign_with_exit_stop_is_resumed_with_it() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    assert_eq!(lab.compare("tells.c --abi x86-64 --rounds 6 --warmup 0 --exit-stop").status, Some(0));
    let printed = resumed(&lab, &["--rounds", "8"]);
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let report = lab.widthwise("report --json").json();
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 16);
    for run in runs {
        assert_eq!(run["sample"]["max_rss"]["source"], "exit-stop", "{run}");
    }
    resumed(&lab, &["--exit-stop"]).refuses(2, &["continues the campaign as it began"]);
}

#[test]
fn a_changed_environment_is_named_and_the_campaign_is_not_resumed() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    let begin = "tells.c --abi x86-64 --rounds 6 --warmup 0 --set-env OMP_NUM_THREADS=1";
    let with = |mut command: std::process::Command, variables: &[(&str, &str)]| {
        laboratory::output_of(command.envs(variables.iter().copied()))
    };
    let at_first = [("LD_LIBRARY_PATH", "/nowhere"), ("LC_NUMERIC", "C"), ("OMP_NUM_THREADS", "2")];
    assert_eq!(with(lab.comparing(begin), &at_first).status, Some(0));
    let resume = || lab.command("compare --resume .widthwise/latest --rounds 8");
    with(resume(), &[("LD_LIBRARY_PATH", "/elsewhere"), ("MALLOC_ARENA_MAX", "1")]).refuses(
        2,
        &[
            "cannot be resumed",
            "variable LD_LIBRARY_PATH: its content changed",
            "variable LC_NUMERIC: is gone",
            "variable MALLOC_ARENA_MAX: is new",
        ],
    );
    // The request's own variable may have changed, and so may what a shell, a login or a batch system sets.
    let path = format!("{}:{}", lab.path("bin").display(), std::env::var("PATH").unwrap());
    let there = lab.path("temporary");
    std::fs::create_dir(&there).unwrap();
    let others = [("PATH", &path[..]), ("SLURM_JOB_ID", "7"), ("TMPDIR", there.to_str().unwrap())];
    let printed = with(resume(), &[&at_first[..2], &others, &[("OMP_NUM_THREADS", "3")]].concat());
    assert_eq!(printed.status, Some(0), "{printed:?}");
}

#[test]
fn the_command_that_resumes_a_campaign_can_be_copied() {
    let lab = Laboratory::new();
    lab.program("tells.c");
    let printed = lab.compare("tells.c --abi x86-64 --rounds 1 --warmup 0 --archive 'my campaigns'");
    assert_eq!(printed.status, Some(0), "{printed:?}");
    let missing = lab.widthwise(&["explain", "--heap", "--campaign", "my campaigns/latest", "x86-64"]);
    let words = shell_words::split(missing.stderr.split("was not recorded").nth(1).unwrap()).unwrap();
    let campaign = words.iter().skip_while(|word| *word != "--resume").nth(1).unwrap();
    assert!(lab.path(campaign).join("campaign.sqlite").exists(), "{missing:?}");
}
