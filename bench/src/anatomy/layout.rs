//! Layouts of a large program: time and memory beside pahole, and every size that pahole prints.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{bail, Context};
use widthwise_anatomy::elf::Elf;
use widthwise_anatomy::layout::{self, Layouts};

use crate::anatomy::debian;
use crate::peak;
use crate::work_directory::{cargo, WorkDirectory};

const THREADS: &str = "2";

/// Time and peak memory of a command.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub seconds: f64,
    /// Bytes.
    pub peak: f64,
}

impl Cost {
    /// The peak as text.
    pub fn mib(self) -> String {
        format!("{:.0}", self.peak / f64::from(1 << 20))
    }
}

/// What came out.
#[derive(Debug)]
pub struct Measured {
    /// The program's name and source.
    pub program: String,
    pub debug_bytes: u64,
    pub rounds: u32,
    pub own: Cost,
    pub pahole: Cost,
    /// Structures that pahole prints.
    pub compared: usize,
    pub equal: usize,
    /// Names whose size is that of another type of the same last name, in a namespace, a class or a function.
    pub nested: Vec<String>,
    /// Names that have another size, or none, with us.
    pub missing: Vec<String>,
    /// All structures, classes and unions.
    pub types: usize,
    pub commands: Vec<String>,
}

impl Measured {
    /// The differences from pahole, in sentences.
    pub fn reasons(&self) -> String {
        let mut text = "pahole lists types outside of namespaces, classes and functions alone, and no unions without a name.".to_owned();
        if !self.nested.is_empty() {
            text.push_str(&format!(
                " It prints {} of other types of the same last name: {}.",
                self.nested.len(),
                listed(&self.nested)
            ));
        }
        if !self.missing.is_empty() {
            text.push_str(&format!(" Without a type of that size here: {}.", listed(&self.missing)));
        }
        text
    }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
    shown.join(", ")
}

/// Measures time and memory of both in turn, and compares the sizes.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Measured> {
    let (program, name) = match work_directory.quick {
        true => (small(work_directory)?, "`tests/programs/tree.cpp`".to_owned()),
        false => {
            (debian::testrunner(work_directory)?, "`testrunner` of Debian's cppcheck (`-g -O1`)".to_owned())
        }
    };
    let reader = reader()?;
    let rounds = work_directory.count(5, 1);
    let jobs = format!("--jobs={THREADS}");
    work_directory.build("bench/programs/parent.c", "parent", &[])?;
    let (mut own, mut pahole) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        own.push(cost(work_directory, &[reader.as_ref(), program.as_ref(), THREADS.as_ref()])?);
        pahole.push(cost(work_directory, &["pahole".as_ref(), jobs.as_ref(), program.as_ref()])?);
    }
    let bytes = std::fs::read(&program)?;
    let elf = Elf::read(&bytes)?;
    let debug = elf.sections.iter().filter(|section| section.name.starts_with(".debug"));
    let debug_bytes = debug.map(|section| section.size).sum();
    let layouts = layout::read(&program, 2)?;
    let printed = work_directory.output(Command::new("pahole").arg("--sizes").arg(&program))?;
    let mut measured = Measured {
        program: name,
        debug_bytes,
        rounds,
        own: median(own),
        pahole: median(pahole),
        compared: 0,
        equal: 0,
        nested: Vec::new(),
        missing: Vec::new(),
        types: layouts.aggregates.len(),
        commands: vec![
            format!(
                "cargo run --release --package widthwise-anatomy --example layouts -- testrunner {THREADS}"
            ),
            format!("pahole --jobs={THREADS} testrunner"),
        ],
    };
    compare(&layouts, &printed, &mut measured);
    Ok(measured)
}

/// Each line of `pahole --sizes`: name, size, holes.
fn compare(layouts: &Layouts, printed: &str, measured: &mut Measured) {
    let mut whole: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    let mut last: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for id in &layouts.aggregates {
        let Some(aggregate) = layouts.aggregate(*id) else { continue };
        whole.entry(&aggregate.name).or_default().insert(aggregate.size);
        last.entry(last_name(&aggregate.name)).or_default().insert(aggregate.size);
    }
    for line in printed.lines() {
        let mut cells = line.split('\t');
        let (Some(name), Some(Ok(size))) = (cells.next(), cells.next().map(str::parse::<u64>)) else {
            continue;
        };
        measured.compared += 1;
        let has = |types: &BTreeMap<&str, BTreeSet<u64>>| {
            types.get(name).is_some_and(|sizes| sizes.contains(&size))
        };
        if has(&whole) {
            measured.equal += 1;
        } else if has(&last) {
            measured.nested.push(name.to_owned());
        } else {
            measured.missing.push(format!("{name} ({size})"));
        }
    }
}

/// The name behind the last `::` outside of template arguments.
fn last_name(name: &str) -> &str {
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' | b')' => depth -= 1,
            b':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

fn small(work_directory: &WorkDirectory) -> anyhow::Result<PathBuf> {
    work_directory.build("tests/programs/tree.cpp", "typed", &["-g", "-xc++", "-lstdc++"])?;
    Ok(work_directory.folder().join("typed"))
}

/// The program that prints all layouts of a file.
fn reader() -> anyhow::Result<PathBuf> {
    let mut build = cargo("build")?;
    build.args(["--package", "widthwise-anatomy", "--example", "layouts"]);
    if !build.status().context("cargo could not be started")?.success() {
        bail!("crates/anatomy/examples/layouts.rs could not be built");
    }
    let own = std::env::current_exe()?;
    Ok(own.parent().unwrap_or(Path::new(".")).join("examples/layouts"))
}

/// Runs a command to its end. A process of its own starts it: on Linux a process's peak is at least the size of the one that
/// started it, and this one has read files of many megabytes.
fn cost(work_directory: &WorkDirectory, command: &[&OsStr]) -> anyhow::Result<Cost> {
    let began = Instant::now();
    let peak = peak::of_children(work_directory, 0, command)?;
    Ok(Cost { seconds: began.elapsed().as_secs_f64(), peak })
}

/// Each figure's own median.
fn median(costs: Vec<Cost>) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Cost { seconds: middle(|cost| cost.seconds), peak: middle(|cost| cost.peak) }
}

#[cfg(test)]
mod tests {
    use super::last_name;

    #[test]
    fn the_last_name_is_behind_the_last_colons_outside_of_arguments() {
        assert_eq!(last_name("a::b<c::d>::e"), "e");
        assert_eq!(last_name("a::b<c::d>"), "b<c::d>");
        assert_eq!(last_name("plain"), "plain");
    }
}
