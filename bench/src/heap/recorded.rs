//! One program under each recorder: alone, under ours without and with stacks, under heaptrack's.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use crate::campaign::{self, Campaign};
use crate::ratio::{self, Estimate};
use crate::work_directory::{words, WorkDirectory};

/// Where Debian's package puts what it preloads.
const HEAPTRACK: &str = "/usr/lib/heaptrack/libheaptrack_preload.so";
const INTERPRET: &str = "/usr/lib/heaptrack/libexec/heaptrack_interpret";

/// The recorders, each with the script that starts a program under it.
#[derive(Debug)]
pub struct Recorders {
    preload: String,
}

/// A program to record.
#[derive(Debug)]
pub struct Program<'a> {
    /// Its name in the table.
    pub name: &'a str,
    /// Its command line, in the work_directory's folder.
    pub command: &'a str,
    /// Rounds of its campaign.
    pub rounds: u32,
    /// Of those before the timed ones.
    pub warmup: u32,
}

/// CPU time under each recorder.
#[derive(Debug)]
pub struct Costs {
    /// The program alone, nanoseconds.
    pub alone: f64,
    /// Times the program's own time.
    pub times: ByRecorder,
    /// Of the time that heaptrack adds.
    pub without_added: Estimate,
    /// The same with stacks.
    pub with_added: Estimate,
    /// The campaign's command line.
    pub command: String,
}

/// One figure for each recorder.
#[derive(Debug)]
pub struct ByRecorder {
    /// Ours without stacks.
    pub without: Estimate,
    /// Ours with stacks.
    pub with: Estimate,
    /// heaptrack's.
    pub heaptrack: Estimate,
}

/// What the recorders left of one run, and what ours says of it.
#[derive(Debug)]
pub struct Logs {
    ours: PathBuf,
    theirs: PathBuf,
    /// Blocks that the program asked for.
    pub blocks: f64,
    /// Share of the blocks whose stack reaches the outermost call, if `explain` says so.
    pub complete: Option<f64>,
}

impl Recorders {
    /// Writes the scripts: `./with-stacks PROGRAM ARGUMENTS...` and so on.
    pub fn prepare(work_directory: &WorkDirectory) -> anyhow::Result<Recorders> {
        if !Path::new(HEAPTRACK).exists() {
            bail!("heaptrack is not installed: apt-get install heaptrack");
        }
        let preload =
            work_directory.output(&mut work_directory.widthwise(&words(["explain", "--preload"])))?;
        let recorders = Recorders { preload: preload.trim().to_owned() };
        for (name, variables) in [
            ("alone", String::new()),
            ("without-stacks", recorders.ours("ours", 0)),
            ("with-stacks", recorders.ours("ours", 1)),
            ("heaptrack", theirs("theirs")),
        ] {
            work_directory.script(name, &format!("#!/bin/sh\n{variables} exec \"$@\"\n"))?;
        }
        Ok(recorders)
    }

    fn ours(&self, log: &str, stacks: u32) -> String {
        format!("WIDTHWISE_HEAP_LOG=$PWD/{log} WIDTHWISE_HEAP_STACKS={stacks} LD_PRELOAD='{}'", self.preload)
    }

    /// Records one run of the program with stacks, and one under heaptrack.
    pub fn record(&self, work_directory: &WorkDirectory, program: &Program) -> anyhow::Result<Logs> {
        // The campaign removes its own, `ours.*` and `theirs`.
        let (log, raw) = (program.log(), format!("{}-heaptrack", program.name));
        let ours = left(work_directory, &self.ours(&log, 1), program.command, &format!("{log}."))?;
        let theirs = left(work_directory, &theirs(&raw), program.command, &raw)?;
        let explained: serde_json::Value =
            serde_json::from_str(&explain(work_directory, &ours)?).context("explain")?;
        let blocks = explained["a"]["blocks"].as_f64().context("explain tells no blocks")?;
        let complete = explained["a"]["broken_stacks"].as_f64().map(|broken| 1.0 - broken / blocks.max(1.0));
        Ok(Logs { ours, theirs, blocks, complete })
    }
}

fn theirs(raw: &str) -> String {
    format!("DUMP_HEAPTRACK_OUTPUT=$PWD/{raw} LD_PRELOAD={HEAPTRACK}")
}

impl Program<'_> {
    /// Measures CPU time in a campaign whose variants are the recorders.
    pub fn measure(&self, work_directory: &WorkDirectory) -> anyhow::Result<Costs> {
        let names = ["alone", "without-stacks", "with-stacks", "heaptrack"];
        let binaries = names.map(|name| format!("{name}=./{name}"));
        let warmup = self.warmup.to_string();
        let arguments = campaign::arguments(
            &binaries.each_ref().map(String::as_str),
            self.rounds,
            &["--warmup", &warmup, "--metric", "cpu", "--setup", "rm -f ours.* theirs"],
            &format!("{{binary}} {}", self.command),
        );
        let campaign = Campaign::run(work_directory, &arguments)?;
        let rounds = campaign.rounds(names, "cpu")?;
        if rounds.len() < 2 {
            bail!("of {} only {} rounds are complete", self.name, rounds.len());
        }
        let of = |pick: fn(&[f64; 4]) -> f64| -> Vec<f64> { rounds.iter().map(pick).collect() };
        let alone = of(|round| round[0]);
        let added = of(|round| round[3] - round[0]);
        Ok(Costs {
            alone: campaign.median("alone", "cpu")?,
            times: ByRecorder {
                without: ratio::of_means(&of(|round| round[1]), &alone),
                with: ratio::of_means(&of(|round| round[2]), &alone),
                heaptrack: ratio::of_means(&of(|round| round[3]), &alone),
            },
            without_added: ratio::of_means(&of(|round| round[1] - round[0]), &added),
            with_added: ratio::of_means(&of(|round| round[2] - round[0]), &added),
            command: campaign::command(&arguments),
        })
    }

    fn log(&self) -> String {
        format!("{}-log", self.name)
    }

    /// The commands that record and read one run, as a reader would type them.
    pub fn commands(&self) -> [String; 2] {
        let (command, log) = (self.command, self.log());
        [
            format!("LD_PRELOAD=$(widthwise explain --preload) WIDTHWISE_HEAP_LOG=$PWD/{log} {command}"),
            format!("widthwise explain --json {log}.*"),
        ]
    }
}

impl Logs {
    /// Sizes in MB: ours, and heaptrack's before it is compressed.
    pub fn sizes(&self) -> anyhow::Result<[f64; 2]> {
        // What is allocated: the file's length may be what was reserved for it.
        let size = |path: &Path| -> anyhow::Result<f64> {
            let data = std::fs::metadata(path).with_context(|| path.display().to_string())?;
            Ok(data.blocks() as f64 * 512.0 / 1e6)
        };
        Ok([size(&self.ours)?, size(&self.theirs)?])
    }

    /// Seconds to read each of them in, medians of so many times.
    pub fn reading(&self, work_directory: &WorkDirectory, times: u32) -> anyhow::Result<[f64; 2]> {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..times {
            ours.push(timed(|| explain(work_directory, &self.ours).map(drop))?);
            let mut interpret = Command::new("sh");
            interpret.args(["-c", &format!("{INTERPRET} < {} > interpreted", self.theirs.display())]);
            theirs.push(timed(|| work_directory.output(&mut interpret).map(drop))?);
        }
        Ok([median(ours), median(theirs)])
    }
}

fn explain(work_directory: &WorkDirectory, log: &Path) -> anyhow::Result<String> {
    work_directory.output(&mut work_directory.widthwise(&words([
        "explain",
        "--json",
        &log.display().to_string(),
    ])))
}

/// Runs the program once, and finds the file that the recorder left.
fn left(
    work_directory: &WorkDirectory,
    variables: &str,
    program: &str,
    name: &str,
) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("rm -f {name}*; {variables} {program}")]);
    work_directory.output(&mut command)?;
    std::fs::read_dir(work_directory.folder())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)))
        .with_context(|| format!("no {name} was left"))
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}
