//! Emulated machines: two boots that count the same, valgrind's count beside the plugin's, and what counting costs.

use std::process::Command;
use std::time::Instant;

use anyhow::{bail, Context};
use serde_json::Value;

use crate::machine;
use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// The largest difference from callgrind's count.
const MOST_DIFFERENT: f64 = 0.001;
/// Times QEMU's own time without the plugin.
const MOST_COST: f64 = 3.0;
/// Seconds from the start of a machine to its end, of a program that does nothing.
const MOST_BOOT: f64 = 15.0;
/// Iterations of a loop that is timed with and without the plugin.
const STEPS: &str = "300000000";

/// Boots Debian's kernels, counts a loop of getpid, and times boots and a counted run.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let folder = work_directory.folder();
    let source = work_directory.repository().join("experiments/trent-2003/getpid.c");
    work_directory.build("experiments/trent-2003/getpid.c", "getpid", &["-O2"])?;
    work_directory.build("bench/programs/loop.c", "loop", &["-O2"])?;
    let calls = work_directory.count(2_000_000, 20_000).to_string();
    let kernels = work_directory.target()?.join("x32-kernel");
    let kernel = machine::newest_kernel(&kernels).with_context(|| {
        format!("no kernel in {}: run `sh packaging/install.sh bench`", kernels.display())
    })?;
    let mut arguments = words(["compare", "--json", "--abi", "x86-64,i386", "--archive"]);
    arguments.push(folder.join("kernels").display().to_string());
    arguments.extend(["--kernel".to_owned(), kernel.display().to_string(), source.display().to_string()]);
    arguments.extend(["--".to_owned(), calls.clone()]);
    let name = kernel.file_name().unwrap_or_default().to_string_lossy();
    let shown = words([
        "compare",
        "--abi",
        "x86-64,i386",
        "--kernel",
        &format!("./{name}"),
        "getpid.c",
        "--",
        &calls,
    ]);
    let report = work_directory.output(&mut work_directory.widthwise(&arguments))?;
    let report: Value = serde_json::from_str(&report)?;
    let counts = |part: &str, metric: &str| counts(&report, part, metric);
    let valgrind = callgrind(work_directory, &calls)?;
    let cost = cost(work_directory)?;
    let boots = [kernel.display().to_string(), "debian:686-pae".to_owned()]
        .iter()
        .map(|kernel| boot(work_directory, kernel))
        .collect::<anyhow::Result<Vec<f64>>>()?;

    let mut table = Table::new(["getpid", "user instructions", "kernel instructions", "callgrind"]);
    let mut missed = Vec::new();
    for abi in ["x86-64", "i386"] {
        let (user, kernel) = (counts(abi, "instructions_user")?, counts(abi, "instructions_kernel")?);
        for (what, all) in [("user", &user), ("kernel", &kernel)] {
            if all.len() < 2 || all.windows(2).any(|pair| pair[0] != pair[1]) {
                missed.push(format!("{abi}: {what} instructions differ between boots: {all:?}"));
            }
        }
        let other = if abi == "x86-64" { format!("{valgrind:.0}") } else { String::new() };
        table.row([abi.to_owned(), format!("{:.0}", user[0]), format!("{:.0}", kernel[0]), other]);
    }
    let user = counts("x86-64", "instructions_user")?[0];
    let difference = (user / valgrind - 1.0).abs();
    if difference > MOST_DIFFERENT {
        missed.push(format!("callgrind's count differs by {:.2} %", difference * 100.0));
    }
    for (which, boot) in ["64-bit", "32-bit"].iter().zip(&boots) {
        if *boot > MOST_BOOT {
            missed.push(format!("a boot of the {which} kernel takes {boot:.1} s"));
        }
    }
    if cost > MOST_COST {
        missed.push(format!("counting costs {cost:.1} times"));
    }
    Ok(Section {
        bar: format!(
            "instruction counts, user and kernel, are the same in every boot; those of a getpid loop are within {} % of \
             callgrind's on x86-64; a counted run takes at most {MOST_COST} times as long as QEMU without the plugin; a boot takes \
             less than {MOST_BOOT} s.",
            MOST_DIFFERENT * 100.0
        ),
        method: format!(
            "{calls} calls of getpid on Debian's 64-bit kernel in an emulated machine; callgrind counts the same program on this \
             kernel. The cost is that of a loop of {STEPS} steps under qemu-x86_64, the least of three with the plugin and \
             without. A boot is a fourth of `compare` with an i386 program that does nothing, which boots four times: on this \
             kernel, and on debian:686-pae."
        ),
        commands: vec![format!("# {}", typed("widthwise", &shown))],
        table,
        reached: missed.is_empty(),
        sentence: format!(
            "user instructions of x86-64 are {:.3} % from callgrind's; a counted run takes {cost:.2} times as long; a boot takes \
             {:.1} s (64-bit kernel) and {:.1} s (32-bit){}.",
            difference * 100.0,
            boots[0],
            boots[1],
            if missed.is_empty() { String::new() } else { format!("; missed: {}", missed.join("; ")) }
        ),
    })
}

/// The counts of a variant and, of the baseline, of the A/A control.
fn counts(report: &Value, part: &str, metric: &str) -> anyhow::Result<Vec<f64>> {
    let runs = report["runs"].as_array().context("the report has no runs")?;
    let own = runs.iter().filter(|run| run["variant"].as_str().is_some_and(|name| name.starts_with(part)));
    let all: Vec<f64> = own.filter_map(|run| run["sample"][metric]["value"].as_f64()).collect();
    if all.is_empty() {
        bail!("no {metric} of {part}");
    }
    Ok(all)
}

fn callgrind(work_directory: &WorkDirectory, calls: &str) -> anyhow::Result<f64> {
    let out = work_directory.folder().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "-q"]).arg(format!("--callgrind-out-file={}", out.display()));
    work_directory.output(command.arg(work_directory.folder().join("getpid")).arg(calls))?;
    let text = std::fs::read_to_string(&out)?;
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    sum.and_then(|sum| sum.trim().parse().ok()).context("callgrind gives no sum")
}

/// The seconds of a boot, all that `compare` does beside it included, but for fetching and unpacking the kernel.
fn boot(work_directory: &WorkDirectory, kernel: &str) -> anyhow::Result<f64> {
    const BOOTS: f64 = 4.0;
    let folder = work_directory.folder();
    std::fs::write(folder.join("nothing.c"), "int main(void) {\n  return 0;\n}\n")?;
    let mut arguments = words(["compare", "--json", "--abi", "i386", "--archive"]);
    arguments.extend([folder.join("boots").display().to_string(), "--kernel".to_owned(), kernel.to_owned()]);
    arguments.push(folder.join("nothing.c").display().to_string());
    work_directory.output(&mut work_directory.widthwise(&arguments))?;
    let began = Instant::now();
    work_directory.output(&mut work_directory.widthwise(&arguments))?;
    Ok(began.elapsed().as_secs_f64() / BOOTS)
}

/// How many times as long a run takes with the plugin.
fn cost(work_directory: &WorkDirectory) -> anyhow::Result<f64> {
    let folder = work_directory.folder();
    let plugin = folder.join("count.so");
    let flags = ["-shared", "-fPIC"];
    work_directory.build("runtime/plugin/plugin.c", "count.so", &flags)?;
    let least = |with_plugin: bool| -> anyhow::Result<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..3 {
            let mut command = Command::new("qemu-x86_64");
            if with_plugin {
                command.arg("-plugin");
                command.arg(format!("{},out={}", plugin.display(), folder.join("cost").display()));
            }
            let began = Instant::now();
            work_directory.output(command.arg(folder.join("loop")).arg(STEPS))?;
            least = least.min(began.elapsed().as_secs_f64());
        }
        Ok(least)
    };
    Ok(least(true)? / least(false)?)
}
