//! A program that touches exactly N MiB: which peak memory each tool reports.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Context;

use crate::campaign::{self, Campaign};
use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

const MIB: f64 = (1 << 20) as f64;
/// What is touched, in MiB.
const SIZES: [u32; 7] = [1, 3, 10, 30, 100, 300, 1000];
/// The size of the parent that stands for other tools, in MiB.
const PARENT: u32 = 400;
/// How far the measured peak may be from what was touched, apart from the C library's own.
const TOLERANCE: f64 = 0.01;

/// Peaks of one run, in bytes.
#[derive(Debug, Clone, Copy)]
struct Peaks {
    /// `widthwise compare`.
    free: f64,
    /// The same, started by a large parent.
    by_large_parent: f64,
    /// `widthwise compare --exit-stop`.
    stopped: f64,
    /// `getrusage(RUSAGE_CHILDREN)` of a small parent, and of a large one.
    small_parent: f64,
    large_parent: f64,
}

/// Measures the peak at each size by Widthwise, and by what its peers have.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let sizes: &[u32] = if work_directory.quick { &SIZES[..2] } else { &SIZES };
    // Static: a dynamic loader maps more or less of a library's pages, as random addresses will have it.
    work_directory.build("tests/programs/allocate.c", "allocate", &["-static"])?;
    work_directory.build("bench/programs/parent.c", "parent", &[])?;
    let own = peaks(work_directory, 0)?;
    let mut table = Table::new([
        "touched, MiB",
        "widthwise, MiB",
        "off by",
        "started by a parent of 400 MiB, MiB",
        "off by",
        "with --exit-stop, MiB",
        "off by",
        "RUSAGE_CHILDREN of a small parent, MiB",
        "of one of 400 MiB",
    ]);
    let mib = |bytes: f64| format!("{:.2}", bytes / MIB);
    let mut worst: f64 = 0.0;
    let mut reached = true;
    table.row([
        "0".into(),
        mib(own.free),
        String::new(),
        mib(own.by_large_parent),
        String::new(),
        mib(own.stopped),
        String::new(),
        mib(own.small_parent),
        mib(own.large_parent),
    ]);
    for &size in sizes {
        let peaks = peaks(work_directory, size)?;
        let touched = f64::from(size) * MIB;
        let off = |peak: f64, own: f64| (peak - own - touched) / touched;
        for (peak, own) in [(peaks.free, own.free), (peaks.by_large_parent, own.by_large_parent)] {
            reached &= within(peak, own, touched);
            worst = if off(peak, own).abs() > worst.abs() { off(peak, own) } else { worst };
        }
        table.row([
            size.to_string(),
            mib(peaks.free),
            format!("{:+.2} %", off(peaks.free, own.free) * 100.0),
            mib(peaks.by_large_parent),
            format!("{:+.2} %", off(peaks.by_large_parent, own.by_large_parent) * 100.0),
            mib(peaks.stopped),
            format!("{:+.2} %", off(peaks.stopped, own.stopped) * 100.0),
            mib(peaks.small_parent),
            mib(peaks.large_parent),
        ]);
        eprintln!("  {size} MiB");
    }
    Ok(Section {
        bar: "the peak memory of a program that touches exactly N MiB, N from 1 to 1000, is N within 1 % plus the C library's own \
              (the value for N = 0), and does not depend on the size of the process that started Widthwise."
            .into(),
        method: "The median of five rounds. `off by` is the peak minus N and minus the peak with N = 0, as a share of N. Debian 12's hyperfine reports no memory; tools that do (GNU time, pyperf, later hyperfines) read \
                 getrusage(RUSAGE_CHILDREN), which on Linux is at least the size of the process that forked; `parent` shows this."
            .into(),
        commands: vec![
            campaign::command(&arguments(work_directory, 1000, &[])),
            campaign::command(&arguments(work_directory, 1000, &["--exit-stop"])),
            typed("./parent", &parent(PARENT, 1000)),
        ],
        table,
        reached,
        sentence: format!(
            "Widthwise's reading is off by {:+.2} % of N at worst, started by a small process or by one of {PARENT} MiB.",
            worst * 100.0
        ),
    })
}

/// Whether the peak is what was touched within 1 %, and at most the C library's own more.
fn within(peak: f64, own: f64, touched: f64) -> bool {
    let tolerance = TOLERANCE * touched;
    (touched - tolerance..=touched + own + tolerance).contains(&peak)
}

fn arguments(work_directory: &WorkDirectory, size: u32, more: &[&str]) -> Vec<String> {
    let run = format!("{{binary}} {size}");
    campaign::arguments(&["allocate=./allocate"], work_directory.count(5, 2), more, &run)
}

fn parent(own: u32, size: u32) -> Vec<String> {
    words([&own.to_string(), "./allocate", &size.to_string()])
}

/// What getrusage(RUSAGE_CHILDREN) calls the peak of a command that a process of so many MiB has started, in bytes.
pub fn of_children(work_directory: &WorkDirectory, mib: u32, command: &[&OsStr]) -> anyhow::Result<f64> {
    let mut parent = Command::new(work_directory.folder().join("parent"));
    let printed = work_directory.output(parent.arg(mib.to_string()).args(command))?;
    let peak: f64 = printed.trim().parse().with_context(|| format!("parent printed {printed:?}"))?;
    Ok(peak * 1024.0)
}

fn peaks(work_directory: &WorkDirectory, size: u32) -> anyhow::Result<Peaks> {
    let ours = |more: &[&str]| {
        Campaign::run(work_directory, &arguments(work_directory, size, more))?.median("allocate", "max_rss")
    };
    let size_word = size.to_string();
    let theirs = |own: u32| of_children(work_directory, own, &["./allocate".as_ref(), size_word.as_ref()]);
    let by_parent = Campaign::run_by_parent(work_directory, PARENT, &arguments(work_directory, size, &[]))?;
    Ok(Peaks {
        free: ours(&[])?,
        by_large_parent: by_parent.median("allocate", "max_rss")?,
        stopped: ours(&["--exit-stop"])?,
        small_parent: theirs(0)?,
        large_parent: theirs(PARENT)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_may_be_a_hundredth_off_and_hold_the_c_library_besides() {
        let (own, touched) = (1.5 * MIB, 100.0 * MIB);
        assert!(within(100.0 * MIB, own, touched));
        assert!(within(102.4 * MIB, own, touched));
        assert!(!within(102.6 * MIB, own, touched));
        assert!(!within(98.9 * MIB, own, touched));
    }
}
