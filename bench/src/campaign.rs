//! One campaign of `widthwise compare`, and the verdicts in its report.

use std::process::Command;

use anyhow::{bail, Context};
use serde_json::Value;

use crate::welch::Ratio;
use crate::work_directory::{typed, words, WorkDirectory};

/// A campaign, as its JSON report tells it.
#[derive(Debug)]
pub struct Campaign(Value);

/// The verdict on one participant in one metric.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The metric's name.
    pub metric: &'a str,
    /// `lower`, `higher`, `no_difference`, `inconclusive`, `withheld` or `no_data`.
    pub word: &'a str,
    /// How many times the baseline's, where that is known.
    pub ratio: Option<f64>,
    /// The interval around the ratio, where there is one.
    pub interval: Option<Ratio>,
}

impl Verdict<'_> {
    /// Whether a difference was called.
    pub fn differs(&self) -> bool {
        matches!(self.word, "lower" | "higher")
    }
}

/// The command line of a campaign on finished binaries (`a=./loop`), so many rounds long; `more` goes in before the
/// run command.
pub fn arguments(binaries: &[&str], rounds: u32, more: &[&str], run: &str) -> Vec<String> {
    let mut all = words(["compare"]);
    for binary in binaries {
        all.extend(words(["--binary", binary]));
    }
    all.extend(words(["--rounds", &rounds.to_string()]));
    all.extend(more.iter().map(|word| word.to_string()));
    all.extend(words(["--run", run]));
    all
}

/// The command line as a reader would type it.
pub fn command(arguments: &[String]) -> String {
    typed("widthwise", arguments)
}

impl Campaign {
    /// Runs it, and removes its archive; what was built for it stays for the next one.
    pub fn run(work_directory: &WorkDirectory, arguments: &[String]) -> anyhow::Result<Campaign> {
        let mut asked = arguments.to_vec();
        asked.insert(1, "--json".into()); // what comes after `--` is the program's
        let text = work_directory.output(&mut work_directory.widthwise(&asked))?;
        Campaign::finished(work_directory, &text)
    }

    /// The same, started by a process of so many MiB.
    pub fn run_by_parent(
        work_directory: &WorkDirectory,
        mib: u32,
        arguments: &[String],
    ) -> anyhow::Result<Campaign> {
        let report = work_directory.folder().join("by-parent.json");
        let mut asked = arguments.to_vec();
        asked.insert(1, format!("--json={}", report.display()));
        let widthwise = work_directory.widthwise(&asked);
        let mut parent = Command::new(work_directory.folder().join("parent"));
        parent.arg(mib.to_string()).arg(widthwise.get_program()).args(widthwise.get_args());
        work_directory.output(&mut parent)?;
        Campaign::finished(work_directory, &std::fs::read_to_string(report)?)
    }

    fn finished(work_directory: &WorkDirectory, text: &str) -> anyhow::Result<Campaign> {
        let report = serde_json::from_str(text).context("the report is not JSON")?;
        for entry in std::fs::read_dir(work_directory.folder().join(".widthwise"))? {
            let path = entry?.path();
            if path.ends_with("builds") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(&path)?;
            } else {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(Campaign(report))
    }

    /// Every verdict, also the A/A control's.
    pub fn verdicts(&self) -> anyhow::Result<Vec<Verdict<'_>>> {
        self.list("verdicts")?.iter().map(verdict).collect()
    }

    /// Every verdict with its variant.
    pub fn verdicts_by_variant(&self) -> anyhow::Result<Vec<(&str, Verdict<'_>)>> {
        self.list("verdicts")?
            .iter()
            .map(|one| Ok((one["variant"].as_str().context("a verdict on no variant")?, verdict(one)?)))
            .collect()
    }

    /// The verdict on that variant in that metric.
    pub fn verdict(&self, variant: &str, metric: &str) -> anyhow::Result<Verdict<'_>> {
        let found =
            self.list("verdicts")?.iter().find(|one| one["variant"] == variant && one["metric"] == metric);
        verdict(found.with_context(|| format!("there is no verdict on {variant} in {metric}"))?)
    }

    /// The median of that variant in that metric, in the metric's unit.
    pub fn median(&self, variant: &str, metric: &str) -> anyhow::Result<f64> {
        let own = self.list("variants")?.iter().find(|one| one["name"] == variant);
        own.and_then(|own| {
            own["typical"].as_array()?.iter().find(|one| one["metric"] == metric)?["median"].as_f64()
        })
        .with_context(|| format!("there is no median of {variant} in {metric}"))
    }

    /// What every timed round read of these variants in that metric. A round in which one of them failed is left out.
    pub fn rounds<const N: usize>(&self, variants: [&str; N], metric: &str) -> anyhow::Result<Vec<[f64; N]>> {
        let runs = self.list("runs")?;
        let reading = |round: &Value, variant: &str| {
            let is_it = |run: &&Value| {
                run["round"] == round["number"]
                    && run["variant"] == variant
                    && run["ending"]["ended"] == "done"
            };
            runs.iter().find(is_it)?["sample"][metric]["value"].as_f64()
        };
        let timed = self.list("rounds")?.iter().filter(|round| round["kind"] == "timed");
        let whole = timed.filter_map(|round| {
            let values: Option<Vec<f64>> = variants.iter().map(|variant| reading(round, variant)).collect();
            values?.try_into().ok()
        });
        Ok(whole.collect())
    }

    fn list(&self, name: &str) -> anyhow::Result<&Vec<Value>> {
        match self.0[name].as_array() {
            Some(list) if !list.is_empty() => Ok(list),
            _ => bail!("the report has no {name}"),
        }
    }
}

fn verdict(value: &Value) -> anyhow::Result<Verdict<'_>> {
    let text = |field| value[field].as_str().with_context(|| format!("a verdict has no {field}"));
    let ratio = value["ratio"].as_f64();
    // Where a run counted 0 there is no ratio, and these are the ends of a difference.
    let ends = ratio.and(value["low"].as_f64().zip(value["high"].as_f64()));
    let interval = ends.map(|(low, high)| Ratio { low, high });
    Ok(Verdict { metric: text("metric")?, word: text("verdict")?, ratio, interval })
}
