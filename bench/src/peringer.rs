//! The tables of peringer-2007 by its experiment, beside the paper's own.

use std::process::Command;

use anyhow::Context;

use crate::campaign::Campaign;
use crate::section::{Section, Table};
use crate::simulation::built;
use crate::work_directory::{words, WorkDirectory};

const ABIS: [&str; 3] = ["x86-64", "x32", "i386"];
/// The paper's limit of the address space, in MiB.
const FIT: &str = "400";

/// What the paper says of rows of `experiments/peringer-2007/rows` that begin so: in 64 bits, and how many times that in
/// 32 bits.
const PAPER: [(&str, &str, &str); 12] = [
    ("switch copy 0", "0.71 µs", "1.44"),
    ("switch copy 10 ", "0.70 µs", "1.46"),
    ("switch copy 100 ", "0.76 µs", "1.42"),
    ("switch copy 1000 ", "1.05 µs", "1.50"),
    ("switch copy 10000", "4.14 µs", "1.77"),
    ("events", "0.08 µs", "1.75"),
    ("waiting copy", "476 bytes", "0.80"),
    ("cycle copy", "1.68 µs", "1.42"),
    ("integrate euler", "0.53 µs", "1.47"),
    ("integrate abm4", "0.41 µs", "1.61"),
    ("integrate rke", "1.12 µs", "1.52"),
    ("integrate rkf8", "1.56 µs", "1.56"),
];

/// Measures every row.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let folder = work_directory.repository().join("experiments/peringer-2007");
    let rows = std::fs::read_to_string(folder.join("rows")).context("experiments/peringer-2007/rows")?;
    let rows: Vec<&str> =
        rows.lines().filter(|row| !work_directory.quick || row.starts_with("events")).collect();
    // A quick look does not wait for three builds: it takes the one of the library's tests.
    let abis = if work_directory.quick { &ABIS[..1] } else { &ABIS[..] };
    let quick = match work_directory.quick {
        true => {
            Some(format!("x86-64={}", built(work_directory, "x86-64", &["paper"])?.join("paper").display()))
        }
        false => None,
    };
    let mut table = Table::new([
        "",
        "x86-64, each",
        "x32, ratio",
        "i386, ratio",
        "paper, 64 bits",
        "paper, 32 bits, ratio",
    ]);
    let mut alone: Option<Vec<f64>> = None;
    let mut known = 0;
    let mut count = 0;
    let mut shown = 0;
    for row in &rows {
        let is_memory = row.starts_with("waiting");
        let metric = if is_memory { "max_rss" } else { "cpu" };
        let rounds = work_directory.count(10, 6).to_string();
        let spec = folder.join("widthwise.toml").display().to_string();
        let mut asked = match &quick {
            Some(program) => words(["compare", "--binary", program, "--run", "{binary}"]),
            None => words(["compare", &spec]),
        };
        asked.extend(words(["--metric", metric, "--rounds", &rounds, "--"]));
        asked.extend(row.split(' ').map(str::to_owned));
        let campaign = Campaign::run(work_directory, &asked)?;
        eprintln!("  {row}");
        let medians = abis.iter().map(|abi| campaign.median(abi, metric)).collect::<Result<Vec<_>, _>>()?;
        if *row == "waiting copy 1" {
            alone = Some(medians);
            continue;
        }
        let units = units(row)?;
        let (each, ratios) = match (is_memory, &alone) {
            (true, Some(alone)) => {
                let bytes: Vec<f64> =
                    medians.iter().zip(alone).map(|(all, one)| (all - one) / units).collect();
                let reported = |(abi, own): (&&str, &f64)| -> anyhow::Result<Option<String>> {
                    // None where it answers otherwise, as with the other rows.
                    let known = ratio(&campaign, abi, metric)?;
                    Ok(known.map(|_| format!("{:.2}", own / bytes[0])))
                };
                let ratios = abis.iter().zip(&bytes).skip(1).map(reported).collect::<Result<Vec<_>, _>>()?;
                (format!("{:.0} bytes", bytes[0]), ratios)
            }
            (true, None) => {
                anyhow::bail!("experiments/peringer-2007/rows: {row:?} comes before \"waiting copy 1\"")
            }
            (false, _) => {
                let ratios = abis
                    .iter()
                    .skip(1)
                    .map(|abi| ratio(&campaign, abi, metric))
                    .collect::<Result<Vec<_>, _>>()?;
                (format!("{:.0} ns", medians[0] / units), ratios)
            }
        };
        shown += 1;
        count += ratios.len();
        known += ratios.iter().flatten().count();
        put(&mut table, row, each, &ratios);
    }
    if !work_directory.quick {
        fit(work_directory, &mut table)?;
    }
    Ok(Section {
        bar: "every row of the paper's tables is measured in three ABIs by one experiment, has the same output in all of them, and has ratios to x86-64. There is no threshold for the ratios: they are the result."
            .into(),
        method: format!(
            "One row is one campaign of `experiments/peringer-2007/widthwise.toml`, whose README describes the rows and how they differ from the paper's: {} rounds, as many as the paper's runs, at `-O2`. CPU time for each switch, process or step; ratios are to x86-64, with 95 % intervals, where the \
             paper's are its 32 bits to its 64. x32 runs in user space where the kernel has none. Bytes are the peak of half a million waiting \
             processes less that of one, divided by their number. The paper's machine: Athlon 64 3000+, gcc 4.1.2 `-O2`, Linux 2.6.18.",
            work_directory.count(10, 6)
        ),
        commands: Vec::new(),
        table,
        reached: known == count,
        sentence: format!(
            "{shown} rows in {} ABIs, the same output in all; {known} of {count} ratios are known.",
            abis.len()
        ),
    })
}

/// By what a row's figure is divided: its switches, events, processes or steps.
fn units(row: &str) -> anyhow::Result<f64> {
    let all: Vec<&str> = row.split(' ').collect();
    let number =
        |word: &str| word.parse::<f64>().with_context(|| format!("experiments/peringer-2007/rows: {row:?}"));
    match all[..] {
        ["switch", _, _, millions] | ["events", millions] | ["integrate" | "diagram", _, millions] => {
            Ok(number(millions)? * 1e6)
        }
        ["waiting", _, processes] => number(processes),
        ["cycle", _, processes, times] => Ok(number(processes)? * number(times)?),
        _ => anyhow::bail!("experiments/peringer-2007/rows: {row:?} is no row that is known"),
    }
}

fn ratio(campaign: &Campaign, abi: &str, metric: &str) -> anyhow::Result<Option<String>> {
    let verdict = campaign.verdict(abi, metric)?;
    Ok(verdict
        .ratio
        .zip(verdict.interval)
        .map(|(ratio, interval)| format!("{ratio:.2} ({:.2} … {:.2})", interval.low, interval.high)))
}

fn put(table: &mut Table, row: &str, each: String, ratios: &[Option<String>]) {
    let paper = PAPER.iter().find(|(name, ..)| row.starts_with(name));
    let (wide, narrow) = paper.map_or(("", ""), |(_, wide, narrow)| (*wide, *narrow));
    let reported = |at: usize| ratios.get(at).cloned().flatten().unwrap_or_default();
    table.row([row.to_owned(), each, reported(0), reported(1), wide.to_owned(), narrow.to_owned()]);
}

/// How many processes there is room for; each ABI answers for itself.
fn fit(work_directory: &WorkDirectory, table: &mut Table) -> anyhow::Result<()> {
    for (back_end, wide, narrow) in [("copy", "880000", "1100000"), ("coroutine", "", "")] {
        let mut fits = Vec::new();
        for abi in ABIS {
            let program = built(work_directory, abi, &["paper"])?.join("paper").display().to_string();
            let asked = words(["fit", back_end, FIT]);
            let mut command = match abi {
                "x32" => work_directory.widthwise(&words(["exec", &program])),
                _ => Command::new(&program),
            };
            let printed = work_directory.output(command.args(asked))?;
            fits.push(printed.split(' ').nth(1).context("the program does not say how many fit")?.to_owned());
        }
        let [x86_64, x32, i386] =
            <[String; 3]>::try_from(fits).map_err(|_| anyhow::anyhow!("three ABIs answer"))?;
        table.row([
            format!("fit {back_end} {FIT}: processes"),
            x86_64,
            x32,
            i386,
            wide.into(),
            narrow.into(),
        ]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_divided_by_what_it_makes() {
        assert_eq!(units("switch copy 0 3").unwrap(), 3e6);
        assert_eq!(units("events 10").unwrap(), 1e7);
        assert_eq!(units("waiting copy 500000").unwrap(), 5e5);
        assert_eq!(units("cycle coroutine 500000 2").unwrap(), 1e6);
        assert_eq!(units("integrate rkf8 2").unwrap(), 2e6);
        assert!(units("switch copy 0").is_err() && units("swim 3").is_err());
    }
}
