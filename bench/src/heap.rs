//! The heap recorder beside heaptrack: what it costs the program, how large its log is, how fast it is read.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use crate::campaign::{self, Campaign};
use crate::section::{Section, Table};
use crate::welch::Ratio;
use crate::workshop::{words, Workshop};

/// Where Debian's package puts what it preloads.
const HEAPTRACK: &str = "/usr/lib/heaptrack/libheaptrack_preload.so";
const INTERPRET: &str = "/usr/lib/heaptrack/libexec/heaptrack_interpret";
/// Trees; some 154 000 blocks each.
const TREES: u32 = 10;
/// Of heaptrack's cost per block, with stacks.
const WITH_STACKS: f64 = 0.5;
/// Of the program's own time, without stacks.
const WITHOUT_STACKS: f64 = 1.15;

/// Measures cost, size and reading.
pub fn measure(workshop: &Workshop) -> anyhow::Result<Section> {
    if !Path::new(HEAPTRACK).exists() {
        bail!("heaptrack is not installed: apt-get install heaptrack");
    }
    workshop.build("bench/programs/trees.cc", "trees", &["-g", "-lstdc++"])?;
    let preload = workshop.output(&mut workshop.widthwise(&words(["explain", "--preload"])))?;
    let ours = |stacks: u32| {
        format!("WIDTHWISE_HEAP_LOG=$PWD/ours WIDTHWISE_HEAP_STACKS={stacks} LD_PRELOAD='{}'", preload.trim())
    };
    let theirs = format!("DUMP_HEAPTRACK_OUTPUT=$PWD/theirs LD_PRELOAD={HEAPTRACK}");
    let variables = [
        ("alone", String::new()),
        ("without-stacks", ours(0)),
        ("with-stacks", ours(1)),
        ("heaptrack", theirs),
    ];
    for (name, variables) in &variables {
        let script = format!("#!/bin/sh\n{variables} exec ./trees \"$@\"\n");
        workshop.script(name, &script)?;
    }
    let binaries: Vec<String> = variables.iter().map(|(name, _)| format!("{name}=./{name}")).collect();
    let binaries: Vec<&str> = binaries.iter().map(String::as_str).collect();
    let arguments = campaign::arguments(
        &binaries,
        workshop.count(20, 6),
        &["--metric", "cpu", "--setup", "rm -f ours.* theirs"],
        &format!("{{binary}} {TREES}"),
    );
    let campaign = Campaign::run(workshop, &arguments)?;
    let alone = campaign.median("alone", "cpu")?;
    let times = |name: &str| -> anyhow::Result<(f64, Ratio)> {
        let verdict = campaign.verdict(name, "cpu")?;
        verdict.ratio.zip(verdict.interval).with_context(|| format!("of {name} no ratio is known"))
    };
    let (without, with, heaptrack) = (times("without-stacks")?, times("with-stacks")?, times("heaptrack")?);
    let log = read(workshop, &variables[2].1, &format!("./trees {TREES}"), "ours.")?;
    let raw = read(workshop, &variables[3].1, &format!("./trees {TREES}"), "theirs")?;
    let explained = words(["explain", "--json", &log.display().to_string()]);
    let told: serde_json::Value =
        serde_json::from_str(&workshop.output(&mut workshop.widthwise(&explained))?).context("explain")?;
    let blocks = told["a"]["blocks"].as_u64().context("explain tells no blocks")? as f64;
    let mut read_ours = Vec::new();
    let mut read_theirs = Vec::new();
    for _ in 0..workshop.count(9, 3) {
        read_ours.push(timed(|| workshop.output(&mut workshop.widthwise(&explained)).map(drop))?);
        let mut interpret = std::process::Command::new("sh");
        interpret.args(["-c", &format!("{INTERPRET} < {} > interpreted", raw.display())]);
        read_theirs.push(timed(|| workshop.output(&mut interpret).map(drop))?);
    }
    let (read_ours, read_theirs) = (median(read_ours), median(read_theirs));
    let size = |path: &Path| std::fs::metadata(path).map(|data| data.len() as f64 / 1e6);
    let (log_size, raw_size) = (size(&log)?, size(&raw)?);
    let a_block = |times: f64| (times - 1.0) * alone / blocks;
    let mut table = Table::new([
        "",
        "times the program's own time",
        "a block, ns",
        "log, MB",
        "read in, ratio to heaptrack's",
    ]);
    let row = |name: &str, (times, Ratio { low, high }): (f64, Ratio), log: String, read: String| {
        let ratio = format!("{times:.2} ({low:.2} … {high:.2})");
        [name.to_owned(), ratio, format!("{:.0}", a_block(times)), log, read]
    };
    table.row(row("without stacks", without, String::new(), String::new()));
    table.row(row("with stacks", with, format!("{log_size:.1}"), format!("{:.2}", read_ours / read_theirs)));
    table.row(row("heaptrack", heaptrack, format!("{raw_size:.1}"), "1".into()));
    let share = a_block(with.0) / a_block(heaptrack.0);
    let reached = share <= WITH_STACKS
        && without.0 <= WITHOUT_STACKS
        && log_size <= raw_size
        && read_ours <= read_theirs;
    Ok(Section {
        bar: format!(
            "with stacks a block costs at most half of what it costs under heaptrack; without stacks the program takes at most \
             {WITHOUT_STACKS} times its own time; the log is at most as large as heaptrack's before it is compressed, and it is \
             read at least as fast."
        ),
        method: format!(
            "A program of some 1.5 million blocks, by calls up to twenty deep, that does some 0.2 µs of work of its own for each. \
             CPU time, by a campaign whose variants are the program alone and under each recorder; heaptrack's is preloaded and \
             writes to a file, so that its compressor and interpreter are not counted. Reading is `explain` with names, lines \
             and sites against `heaptrack_interpret < theirs > interpreted`, of the same run. The program alone takes {:.0} ns for each block.",
            alone / blocks
        ),
        commands: vec![
            campaign::command(&arguments),
            format!("LD_PRELOAD=$(widthwise explain --preload) WIDTHWISE_HEAP_LOG=$PWD/ours ./trees {TREES}"),
            "widthwise explain --json ours.*".to_owned(),
        ],
        table,
        reached,
        sentence: format!(
            "a block costs {share:.2} times what it costs under heaptrack, without stacks the program takes {:.2} times its own \
             time; the log has {:.2} times the size of heaptrack's, and is read in {:.2} times the time.",
            without.0,
            log_size / raw_size,
            read_ours / read_theirs
        ),
    })
}

/// Runs the program once more, and finds the file that the recorder left.
fn read(
    workshop: &Workshop,
    variables: &str,
    program: &str,
    name: &str,
) -> anyhow::Result<std::path::PathBuf> {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("rm -f {name}*; {variables} {program}")]);
    workshop.output(&mut command)?;
    std::fs::read_dir(workshop.folder())?
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
