//! `scale`: throughput and memory against the number of processes, on programs with known behaviour.

mod campaigns;
mod members;
mod memory;
mod reports;
mod speed_up;
mod waiting;

use crate::laboratory::outcomes::{is_lane, skipped};
use crate::laboratory::{CommandOutput, Laboratory};
use serde_json::Value;

/// `workers.c`, with the header that it needs.
pub(super) fn lab() -> Laboratory {
    Laboratory::with_marks("workers.c")
}

/// The arguments of a campaign of `workers.c`.
fn words(abis: &str, run: &str, options: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["scale", "workers.c", "--flags=-pthread", "--abi", abis, "--run"].map(str::to_owned).to_vec();
    words.push(format!("{{build}}/workers {run}"));
    words.extend(shell_words(options));
    words
}

/// Splits text into words; text in single quotes is one word.
fn shell_words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (place, part) in text.split('\'').enumerate() {
        if place % 2 == 1 {
            all.push(part.to_owned());
        } else {
            all.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    all
}

fn scale(lab: &Laboratory, abis: &str, run: &str, options: &str) -> CommandOutput {
    let words = words(abis, run, options);
    lab.widthwise(&words.iter().map(String::as_str).collect::<Vec<_>>()[..])
}

/// A campaign of one timed round.
fn once(lab: &Laboratory, run: &str, options: &str) -> CommandOutput {
    scale(lab, "x86-64", run, &format!("--rounds 1 --warmup 0 --memory=0 {options}"))
}

pub(super) fn measured(lab: &Laboratory, abis: &str, run: &str, options: &str) -> Value {
    let output = scale(lab, abis, run, &format!("{options} --json"));
    assert_eq!(output.status, Some(0), "{output:?}");
    output.json()
}

pub(super) fn table<'a>(report: &'a Value, variant: &str, mode: &str) -> &'a Value {
    let tables = report["tables"].as_array().unwrap();
    let found =
        tables.iter().find(|t| t["variant"].as_str().unwrap().starts_with(variant) && t["mode"] == mode);
    found.unwrap_or_else(|| panic!("no table of {variant} {mode}: {tables:?}"))
}

pub(super) fn row(table: &Value, processes: u64) -> &Value {
    let rows = table["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row["processes"] == processes)
        .unwrap_or_else(|| panic!("no {processes}: {rows:?}"))
}

pub(super) fn estimate(figure: &Value) -> f64 {
    figure["estimate"].as_f64().unwrap_or_else(|| panic!("no estimate: {figure}"))
}

#[track_caller]
pub(super) fn about(value: f64, truth: f64, share: f64) {
    assert!((value / truth - 1.0).abs() <= share, "{value} is not {truth} within {share}");
}

/// The numbers in those lines of a file that begin with a word.
fn numbers(lab: &Laboratory, file: &str, word: &str) -> Vec<f64> {
    let text = lab.read(file);
    let of_word = text.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    of_word.collect()
}

/// The runs of a campaign, in order of time.
fn runs(report: &Value) -> &Vec<Value> {
    report["runs"].as_array().unwrap()
}

#[track_caller]
fn within(value: f64, low: f64, high: f64) {
    assert!((low * 0.999..=high * 1.001).contains(&value), "{value} is not from {low} to {high}");
}

/// `pools.c`: short threads and children, each of which reports its work.
fn pools() -> Laboratory {
    let lab = Laboratory::new();
    lab.program("pools.c");
    lab
}

/// A campaign of two workers in a shape of `pools.c`, each with a given number of milliseconds of work.
fn pooled(lab: &Laboratory, shape: &str, mode: &str, ms: u32, options: &str) -> Value {
    let _ = std::fs::remove_file(lab.path("truth"));
    let run = format!("{{build}}/pools {shape} {{processes}} {ms} {}", lab.path("truth").display());
    let mut words = vec!["scale", "pools.c", "--flags=-pthread", "--abi", "x86-64", "--mode", mode];
    words.extend(["--run", &run, "--warmup", "0", "--memory=0", "--check", "off", "--json"]);
    words.extend(options.split(' '));
    let output = lab.widthwise(&words);
    assert_eq!(output.status, Some(0), "{shape}: {output:?}");
    output.json()
}

/// All shapes in `make test-all`, some in `make test`.
#[track_caller]
fn every_shape<T>(all: T, some: T) -> T {
    if is_lane("more") {
        return all;
    }
    skipped("some of the shapes: `make test-all PARTS=more`");
    some
}
