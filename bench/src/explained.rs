//! How much of a difference of memory has causes with names: pointer-rich programs in three ABIs, as a user compares and explains
//! them.

use std::path::Path;

use anyhow::{bail, Context};
use serde_json::Value;

use crate::section::{Section, Table};
use crate::work_directory::{typed, words, WorkDirectory};

/// The least explained shares: of the peak heap's difference, and of max RSS's.
const LEAST: [f64; 2] = [0.9, 0.8];
const METRICS: [&str; 2] = ["peak_heap", "max_rss"];
const BASELINE: &str = "x86-64";
const VARIANTS: [&str; 2] = ["x32", "i386"];
/// COUNT: objects of each kind in `types.c` and `types.cpp`, whose memory is then more than that of the libraries.
const FLAGS: &str = "-O2 -g -pthread -DCOUNT=50000";
/// Below this difference there is nothing to explain: some pages more or less.
const NOTHING: f64 = 64.0 * 1024.0;

/// The name of a file, without its folder.
fn file_name(source: &str) -> String {
    Path::new(source).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program: its sources, and the words that it is started with.
struct Program {
    name: &'static str,
    /// A file, or a folder with a Makefile that makes a program of the folder's name.
    source: &'static str,
    words: &'static [&'static str],
    quick: &'static [&'static str],
}

const PROGRAMS: [Program; 8] = [
    program("tree", "tests/programs/tree.cpp", &["100000"], &["1000"]),
    program("types", "tests/programs/types.cpp", &[], &[]),
    program("types in C", "tests/programs/types.c", &[], &[]),
    program("trees", "bench/programs/trees.cc", &["2", "50"], &["1", "2"]),
    program("documents", "bench/programs/documents.cc", &["4000"], &["100"]),
    program("syntax", "bench/programs/syntax.c", &["2000"], &["100"]),
    program("stress", "workloads/stress/events.cpp", &[], &[]),
    program(
        "reco",
        "workloads/reco",
        &["--events", "5", "--conditions", "20M"],
        &["--events", "1", "--conditions", "8M"],
    ),
];

const fn program(
    name: &'static str,
    source: &'static str,
    words: &'static [&'static str],
    quick: &'static [&'static str],
) -> Program {
    Program { name, source, words, quick }
}

/// A difference, and its `explained_share`.
struct Explained {
    baseline: f64,
    variant: f64,
    share: Option<f64>,
}

impl Explained {
    /// The share; a difference that is none is explained.
    fn share(&self) -> f64 {
        match (self.variant - self.baseline).abs() < NOTHING {
            true => 1.0,
            false => self.share.unwrap_or(1.0),
        }
    }

    /// Both values in MB, and the share.
    fn cells(self) -> [String; 3] {
        let megabytes = |bytes: f64| format!("{:.2}", bytes / 1e6);
        [megabytes(self.baseline), megabytes(self.variant), format!("{:.1} %", 100.0 * self.share())]
    }
}

/// Measures the explained shares of each program's differences.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let mut table = Table::new([
        "",
        "peak heap, MB",
        "in the variant, MB",
        "explained",
        "max RSS, MB",
        "in the variant, MB",
        "explained",
    ]);
    let mut least: [(f64, String); 2] = Default::default();
    least.iter_mut().for_each(|(share, _)| *share = 1.0);
    let mut commands = Vec::new();
    for program in &PROGRAMS {
        let (found, compare) =
            of_program(work_directory, program).with_context(|| program.name.to_owned())?;
        // One program stands for all: they are compared in the same way, each from the folder of its source.
        if commands.is_empty() {
            commands.push(compare.replace(program.source, &file_name(program.source)));
        }
        for (abi, both) in VARIANTS.iter().zip(found) {
            for (one, least) in both.iter().zip(&mut least) {
                if one.share() < least.0 {
                    *least = (one.share(), format!("{} in {abi}", program.name));
                }
            }
            let [heap, rss] = both.map(Explained::cells);
            let [a, b, c] = heap;
            let [d, e, f] = rss;
            table.row([format!("{}, {abi}", program.name), a, b, c, d, e, f]);
        }
        eprintln!("  {}", program.name);
    }
    commands.push("widthwise explain --json".to_owned());
    let reached = least.iter().zip(LEAST).all(|((share, _), least)| *share >= least);
    let lowest = |(share, what): &(f64, String)| match what.as_str() {
        "" => "all of every difference".to_owned(),
        what => format!("{:.1} % ({what})", 100.0 * share),
    };
    Ok(Section {
        bar: format!(
            "on eight pointer-rich programs, causes with a name (of certainty medium or high) cover at least {:.0} % of the difference of \
             the peak heaps and {:.0} % of that of max RSS, between x86-64 and x32 and between x86-64 and i386.",
            100.0 * LEAST[0],
            100.0 * LEAST[1]
        ),
        method: format!(
            "Each program is compared in three ABIs, as the first one below (`{FLAGS}`, 6 rounds, three memory series and four recordings of the heap). The share is \
             `explained_share` of `explain --json`: the difference without the parts of certainty low, each without its sign, and without \
             what no part explains. A site with blocks at the peak of one of the two alone, blocks whose type is one of several, and parts within the spread of \
             one variant's recordings are of certainty low. A difference below {:.0} KiB has nothing to explain. The kernel's max \
             RSS may lag by 393 kB for each CPU, and the largest reading of a short program may miss its peak: both are a large part of a difference of \
             3 MB (stress).",
            NOTHING / 1024.0
        ),
        commands,
        table,
        reached,
        sentence: format!(
            "the least explained share of a peak heap is {}, that of max RSS {}.",
            lowest(&least[0]),
            lowest(&least[1])
        ),
    })
}

/// Compares a program in a folder of its own, and explains both variants; with the command that compared it.
fn of_program(
    work_directory: &WorkDirectory,
    program: &Program,
) -> anyhow::Result<(Vec<[Explained; 2]>, String)> {
    let folder = work_directory.folder().join(format!("explained-{}", program.name.replace(' ', "-")));
    std::fs::create_dir_all(&folder)?;
    let abis = format!("{BASELINE},{}", VARIANTS.join(","));
    let rounds = work_directory.count(6, 1).to_string();
    let mut all = vec!["compare".to_owned(), program.source.to_owned()];
    all.extend(words(["--abi", &abis, "--flags", FLAGS, "--rounds", &rounds, "--warmup", "0"]));
    all.extend(words(["--metric", "max_rss", "--memory=3", "--heap=4"]));
    // Some print the sizes of their types.
    all.push("--allow-different-output".to_owned());
    let own = if work_directory.quick { program.quick } else { program.words };
    let is_folder = work_directory.repository().join(program.source).is_dir();
    if is_folder {
        let name = Path::new(program.source).file_name().context("a folder has a name")?.to_string_lossy();
        let run =
            std::iter::once(format!("{{build}}/{name}")).chain(own.iter().map(|word| (*word).to_owned()));
        let run = run.collect::<Vec<_>>().join(" ");
        all.extend(words(["--build", "make CXX=\"$CXX\" CXXFLAGS=\"$CXXFLAGS\"", "--run", &run]));
    } else if !own.is_empty() {
        all.push("--".to_owned());
        all.extend(own.iter().map(|word| (*word).to_owned()));
    }
    let command = typed("widthwise", &all);
    all[1] = work_directory.repository().join(program.source).display().to_string();
    output(work_directory, &folder, &all)?;
    let mut found = Vec::new();
    for variant in VARIANTS {
        let names = [BASELINE, variant].map(|abi| format!("{abi}/{FLAGS}"));
        let text = output(work_directory, &folder, &words(["explain", &names[0], &names[1], "--json"]))?;
        let json: Value = serde_json::from_str(&text).context("explain")?;
        found.push(explained(&json)?);
    }
    Ok((found, command))
}

/// Runs `widthwise` in that folder; its standard output.
fn output(work_directory: &WorkDirectory, folder: &Path, words: &[String]) -> anyhow::Result<String> {
    let done = work_directory.widthwise(words).current_dir(folder).output().context("widthwise")?;
    if !done.status.success() {
        bail!(
            "{}: {}\n{}",
            typed("widthwise", words),
            done.status,
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Both metrics of an explanation; of several processes, the sum of their peak heaps and the tree's peak.
fn explained(json: &Value) -> anyhow::Result<[Explained; 2]> {
    let rests = json["unexplained"].as_array().context("explain has no `unexplained`")?;
    let of = |metric: &str| {
        let others = match metric {
            "peak_heap" => "peak_heap_sum",
            _ => "tree_peak",
        };
        let rest = rests.iter().find(|rest| rest["metric"] == metric || rest["metric"] == others);
        let rest = rest.with_context(|| format!("explain has no {metric}: {}", json["remarks"]))?;
        let number = |key: &str| rest[key].as_f64().with_context(|| format!("{metric} has no {key}"));
        anyhow::Ok(Explained {
            baseline: number("baseline")?,
            variant: number("variant")?,
            share: rest["explained_share"].as_f64(),
        })
    };
    Ok([of(METRICS[0])?, of(METRICS[1])?])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shares_are_those_of_both_metrics() {
        let rest = |metric: &str, variant: f64, share: f64| json!({"metric": metric, "baseline": 1e6, "variant": variant, "explained_share": share});
        let json = json!({"unexplained": [rest("file_size", 1.0, 1.0), rest("max_rss", 5e5, 0.7), rest("peak_heap", 1e6 - 8.0, 0.2)]});
        let [heap, rss] = explained(&json).unwrap();
        assert_eq!((heap.share(), rss.share()), (1.0, 0.7));
        assert!(explained(&json!({"unexplained": [], "remarks": ["none"]})).is_err());
    }
}
