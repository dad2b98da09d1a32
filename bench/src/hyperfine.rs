//! The peer: hyperfine from Debian's package.

use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::work_directory::{typed, words, WorkDirectory};

/// Its command line: so many runs of each command, without a shell, after one that does not count.
pub fn arguments(runs: u32, commands: &[&str]) -> Vec<String> {
    let mut all = words(["-N", "--warmup", "1", "--runs", &runs.to_string(), "--export-json", "times.json"]);
    all.extend(commands.iter().map(|command| command.to_string()));
    all
}

/// The command line as a reader would type it.
pub fn command(arguments: &[String]) -> String {
    typed("hyperfine", arguments)
}

/// The process itself.
pub fn process(arguments: &[String]) -> Command {
    let mut command = Command::new("hyperfine");
    command.args(arguments);
    command
}

/// Runs it; the wall times of every run in seconds, a list for each command.
pub fn times(work_directory: &WorkDirectory, arguments: &[String]) -> anyhow::Result<Vec<Vec<f64>>> {
    work_directory
        .output(&mut process(arguments))
        .context("`apt-get install hyperfine` installs the peer")?;
    let text = std::fs::read_to_string(work_directory.folder().join("times.json"))?;
    let report: Value = serde_json::from_str(&text)?;
    let times = |result: &Value| -> Option<Vec<f64>> {
        result["times"].as_array()?.iter().map(Value::as_f64).collect()
    };
    report["results"]
        .as_array()
        .and_then(|results| results.iter().map(times).collect())
        .context("hyperfine's JSON has no times")
}

/// Its name and version.
pub fn version() -> String {
    let printed = Command::new("hyperfine").arg("--version").output();
    printed.map_or("hyperfine, absent".into(), |printed| {
        String::from_utf8_lossy(&printed.stdout).trim().to_owned()
    })
}
