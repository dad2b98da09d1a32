//! Where the noise of CPU time comes from, and what each way of comparing makes of it. One program is compared with
//! itself; its runs, in the order of time, are one series, on which orders and estimators are tried.

mod judged;
mod picture;

use std::time::Duration;

use anyhow::Context;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::calibration;
use crate::campaign;
use crate::proportion::Proportion;
use crate::section::{Section, Table};
use crate::work_directory::{words, WorkDirectory};
use judged::{Judge, Outcome};
use picture::{Bar, COMPONENTS};
use widthwise_experiment::schedule::{Order, Schedule};

/// The picture, which docs/measuring.md shows.
const PICTURE: &str = "docs/pictures/noise.svg";
/// The seed of the campaigns: paddings are a function of it.
const SEED: u64 = 1;
/// About as long as a run of the loop takes.
const LASTS: Duration = Duration::from_millis(60);
/// Rounds of three runs in a campaign.
const ROUNDS: usize = 30;

/// A program whose runs are looked at.
struct Program {
    name: &'static str,
    run: String,
    binary: &'static str,
}

/// The runs of one program in the order of time.
struct Series {
    /// Logarithms of CPU time.
    values: Vec<f64>,
    /// The bytes by which each run's environment was padded.
    paddings: Vec<usize>,
    /// The typical CPU time in milliseconds.
    typical_ms: f64,
}

/// Measures the components, and tries the designs.
pub fn measure(work_directory: &WorkDirectory) -> anyhow::Result<Section> {
    let rounds = work_directory.count(400, 12);
    let programs = programs(work_directory)?;
    let mut table = Table::new([
        "program (typical CPU time)",
        "adjacent runs",
        "ten runs apart",
        "a hundred runs apart",
        "adjacent, fixed addresses",
        "error: random order",
        "error: balanced",
        "error: random, means",
        "error: balanced, means",
        "error: balanced, covariate of four neighbours",
        "1 % found: random order",
        "1 % found: balanced",
        "false: balanced",
    ]);
    let campaigns = work_directory.count(200, 2);
    let judge = Judge::new(campaigns)?;
    let start = start_and_end(work_directory, rounds / 2)?;
    let mut bars = Vec::new();
    let mut commands = Vec::new();
    let mut narrower = Vec::new();
    for program in programs {
        eprintln!("  {}", program.name);
        let free = arguments(&program, rounds, &[]);
        let fixed = arguments(&program, rounds / 2, &["--no-aslr"]);
        let series = series(work_directory, &free)?;
        let unrandomised = self::series(work_directory, &fixed)?;
        commands.push(campaign::command(&free));
        let mut rng = ChaCha8Rng::seed_from_u64(work_directory.seed);
        let error = |design: Design, rng: &mut ChaCha8Rng| error(&series.values, design, rng);
        let random = error(Design { order: Order::Random, estimator: pooled }, &mut rng);
        let balanced = error(Design { order: Order::Balanced, estimator: pooled }, &mut rng);
        narrower.push((program.name, balanced / random));
        let percent = |fraction: f64| format!("{:.2} %", 100.0 * fraction);
        table.row([
            format!("{} ({:.1} ms)", program.name, series.typical_ms),
            percent(apart(&series.values, 1)),
            percent(apart(&series.values, 10)),
            percent(apart(&series.values, 100)),
            percent(apart(&unrandomised.values, 1)),
            percent(random),
            percent(balanced),
            percent(error(Design { order: Order::Random, estimator: means }, &mut rng)),
            percent(error(Design { order: Order::Balanced, estimator: means }, &mut rng)),
            percent(error(Design { order: Order::Balanced, estimator: neighbours }, &mut rng)),
            judged(&series.values, Order::Random, 0.01, &judge, &mut rng).0.to_string(),
            judged(&series.values, Order::Balanced, 0.01, &judge, &mut rng).0.to_string(),
            judged(&series.values, Order::Balanced, 0.0, &judge, &mut rng).1.to_string(),
        ]);
        bars.push(components(&program, &series, &unrandomised, start));
    }
    if !work_directory.quick {
        let file = work_directory.repository().join(PICTURE);
        std::fs::write(&file, picture::svg(&bars)).with_context(|| file.display().to_string())?;
    }
    let parts: Vec<String> = bars.iter().map(in_words).collect();
    let reported: Vec<String> =
        narrower.iter().map(|(name, ratio)| format!("{ratio:.2} times for {name}")).collect();
    Ok(Section {
        bar: "in the balanced order (`--order balanced`), a variant is compared with an error at most 1.05 times as large as in a random order, for every program."
            .into(),
        method: format!(
            "One program is compared with itself; its runs in the order of time are one series. *Adjacent runs*, *ten* and *a hundred runs apart* are robust standard deviations of a run (1.4826 times the median absolute difference, over √2) at that distance: the first has what changes from one run to the next, and the drift adds the rest. *Fixed addresses* is without address space layout randomisation. The *errors* are root mean squares of the estimates that campaigns of {ROUNDS} rounds cut out of the series at random would have; the truth is no difference. *Random order* and *balanced* differ in the order of a round (`--order`); *means* estimates by the mean instead of the adaptive trimmed mean; *four neighbours* compares with the nearest run of the baseline in the neighbouring rounds, too. *1 % found* are verdicts, with all their criteria and the default metrics, on {campaigns} campaigns cut out in the same way, whose variant is made slower by 1 %: `higher` with the truth inside the interval; *false* are differences called without that. Campaigns overlap, so that these counts are those of one stretch of time. What limits them is drift between the runs of a round: where adjacent runs differ by 2 %, an interval of {ROUNDS} rounds is ±0.7 % or more, and 1 % is found in about half of all campaigns; more rounds or longer runs find it. ![Components of the variance]({}) Components of the variance of a run, a hundred runs apart: {}. *Start and end* is what a program that does nothing varies by; *stack position* is what the environment's size explains at fixed addresses.",
            PICTURE.trim_start_matches("docs/"),
            parts.join("; "),
        ),
        commands,
        table,
        reached: narrower.iter().all(|(_, ratio)| *ratio <= 1.05),
        sentence: format!("In the balanced order the error is {}.", reported.join(", ")),
    })
}

fn programs(work_directory: &WorkDirectory) -> anyhow::Result<Vec<Program>> {
    calibration::build(work_directory, "loop", 1000)?;
    let lasts = if work_directory.quick { LASTS / 10 } else { LASTS };
    let iterations = calibration::iterations(work_directory, lasts)?;
    work_directory.build("bench/programs/chase.c", "chase", &["-static"])?;
    let steps = work_directory.count(400_000, 20_000);
    let text: String =
        (0..60_000_u32).map(|line| format!("{:x} {line}\n", line.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(work_directory.folder().join("text"), text)?;
    Ok(vec![
        Program {
            name: "a loop of dependent multiplications",
            binary: "./loop",
            run: format!("{{binary}} {iterations}"),
        },
        Program {
            name: "pointer chasing in 512 KiB",
            binary: "./chase",
            run: format!("{{binary}} 512 {}", 10 * steps),
        },
        Program {
            name: "pointer chasing in 8 MiB",
            binary: "./chase",
            run: format!("{{binary}} 8192 {steps}"),
        },
        Program { name: "gzip", binary: "/bin/gzip", run: "{binary} -c text".into() },
        Program { name: "sort", binary: "/usr/bin/sort", run: "{binary} text".into() },
    ])
}

fn arguments(program: &Program, rounds: u32, more: &[&str]) -> Vec<String> {
    let binaries = [format!("a={}", program.binary), format!("b={}", program.binary)];
    let seed = SEED.to_string();
    let more = [&["--metric", "cpu", "--seed", &seed], more].concat();
    campaign::arguments(&binaries.each_ref().map(String::as_str), rounds, &more, &program.run)
}

/// The CPU times of every run of a campaign, in the order in which they began.
fn series(work_directory: &WorkDirectory, arguments: &[String]) -> anyhow::Result<Series> {
    work_directory.output(&mut work_directory.widthwise(arguments))?;
    let text = work_directory.output(&mut work_directory.widthwise(&words(["report", "--csv"])))?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().context("no CSV")?.split(',').collect();
    let column =
        |name: &str| head.iter().position(|one| *one == name).with_context(|| format!("no column {name}"));
    let (kind, began, metric, value) =
        (column("kind")?, column("began_ns")?, column("metric")?, column("value")?);
    let (round, position) = (column("round")?, column("position")?);
    let schedule =
        Schedule { seed: SEED, participants: 3, order: Order::Random, layouts: 0, rounds_a_layout: 2 };
    let padding = |cells: &[&str]| -> Option<usize> {
        let slots = schedule.round(cells.get(round)?.parse().ok()?);
        Some(slots.get(cells.get(position)?.parse::<usize>().ok()?)?.padding)
    };
    let mut runs: Vec<(u64, f64, usize)> = lines
        .map(|line| line.split(',').collect::<Vec<&str>>())
        .filter(|cells| cells.get(kind) == Some(&"timed") && cells.get(metric) == Some(&"cpu"))
        .filter_map(|cells| {
            let (began, value) = (cells.get(began)?.parse().ok()?, cells.get(value)?.parse::<f64>().ok()?);
            Some((began, value, padding(&cells)?))
        })
        .collect();
    runs.sort_by_key(|run| run.0);
    let mut sorted: Vec<f64> = runs.iter().map(|run| run.1).collect();
    sorted.sort_by(f64::total_cmp);
    let typical = *sorted.get(sorted.len() / 2).context("no run")?;
    Ok(Series {
        values: runs.iter().map(|run| (run.1 / typical).ln()).collect(),
        paddings: runs.iter().map(|run| run.2).collect(),
        typical_ms: typical / 1e6,
    })
}

/// By how many milliseconds of CPU time a program varies that does nothing.
fn start_and_end(work_directory: &WorkDirectory, rounds: u32) -> anyhow::Result<f64> {
    work_directory.build("bench/programs/nothing.c", "nothing", &["-static"])?;
    let nothing = Program { name: "nothing", binary: "./nothing", run: "{binary}".into() };
    let series = series(work_directory, &arguments(&nothing, rounds, &[]))?;
    Ok(apart(&series.values, 1) * series.typical_ms)
}

/// The variance of a run by component. Each is what a series varies by more than one with less in it; where chance makes
/// that negative, it is 0.
fn components(program: &Program, series: &Series, fixed: &Series, start_ms: f64) -> Bar {
    let square = |deviation: f64| deviation * deviation;
    let start = square(start_ms / series.typical_ms);
    let at_fixed = square(apart(&fixed.values, 1));
    let stack = (by_stack(fixed)).min(at_fixed);
    let own = square(apart(&series.values, 1));
    let (ten, hundred) = (square(apart(&series.values, 10)), square(apart(&series.values, 100)));
    let variances = [
        start.min(own),
        (at_fixed.min(own) - stack - start).max(0.0),
        stack.min(own),
        (own - at_fixed).max(0.0),
        (ten - own).max(0.0),
        (hundred - ten.max(own)).max(0.0),
    ];
    Bar { name: program.name.to_owned(), variances }
}

/// The variance between runs with different stack positions: within a cache line, and within a page.
fn by_stack(series: &Series) -> f64 {
    let line = between(series, |padding| padding / 16 % 4, 4);
    line + between(series, |padding| padding / 256, 16)
}

/// The variance of the groups' effects: one-way analysis of variance of the runs' differences from their two neighbours.
fn between(series: &Series, group: impl Fn(usize) -> usize, groups: usize) -> f64 {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); groups];
    for (three, padding) in series.values.windows(3).zip(series.paddings.iter().skip(1)) {
        if let Some(own) = values.get_mut(group(*padding)) {
            own.push(three[1] - 0.5 * (three[0] + three[2]));
        }
    }
    values.retain(|own| own.len() > 1);
    let count: usize = values.iter().map(Vec::len).sum();
    if values.len() < 2 || count <= values.len() {
        return 0.0;
    }
    let mean = |own: &[f64]| own.iter().sum::<f64>() / own.len() as f64;
    let all = mean(&values.concat());
    let within: f64 = values.iter().map(|own| own.iter().map(|v| (v - mean(own)).powi(2)).sum::<f64>()).sum();
    let within = within / (count - values.len()) as f64;
    let among: f64 = values.iter().map(|own| own.len() as f64 * (mean(own) - all).powi(2)).sum();
    let among = among / (values.len() - 1) as f64;
    ((among - within) / (count as f64 / values.len() as f64)).max(0.0)
}

/// A bar in words: `gzip 1.2 % (the run itself 60 %, …)`.
fn in_words(bar: &Bar) -> String {
    let parts: Vec<String> = bar
        .shares()
        .iter()
        .zip(COMPONENTS)
        .map(|(share, (name, _))| format!("{name} {:.0} %", 100.0 * share))
        .collect();
    format!("{} {:.2} % ({})", bar.name, 100.0 * bar.deviation(), parts.join(", "))
}

/// How often a difference of this fraction is found, and how often any is called, in campaigns cut out of the series.
fn judged(
    values: &[f64],
    order: Order,
    planted: f64,
    judge: &Judge,
    rng: &mut ChaCha8Rng,
) -> (Proportion, Proportion) {
    let mut shares = (Proportion::default(), Proportion::default());
    for _ in 0..judge.campaigns {
        let Outcome { is_found, is_different } = judge.outcome(&cut(values, order, rng), planted);
        shares.0.add(is_found);
        shares.1.add(is_different);
    }
    shares
}

/// The robust standard deviation of a run, from differences between runs that far apart.
fn apart(values: &[f64], lag: usize) -> f64 {
    let mut differences: Vec<f64> =
        values.iter().zip(values.iter().skip(lag)).map(|(a, b)| (b - a).abs()).collect();
    differences.sort_by(f64::total_cmp);
    1.4826 * differences.get(differences.len() / 2).copied().unwrap_or(0.0) / 2_f64.sqrt()
}

/// Rounds of variant, baseline and control, in this order, to an estimate of the log-ratio.
type Estimator = fn(&[[f64; 3]]) -> f64;

#[derive(Clone, Copy)]
struct Design {
    order: Order,
    estimator: Estimator,
}

/// The root mean square of the estimates of campaigns that begin anywhere in the series.
fn error(values: &[f64], design: Design, rng: &mut ChaCha8Rng) -> f64 {
    const CAMPAIGNS: usize = 1000;
    let squares: f64 =
        (0..CAMPAIGNS).map(|_| (design.estimator)(&cut(values, design.order, rng)).powi(2)).sum();
    (squares / CAMPAIGNS as f64).sqrt()
}

/// The rounds of variant, baseline and control of a campaign that begins anywhere in the series.
fn cut(values: &[f64], order: Order, rng: &mut ChaCha8Rng) -> Vec<[f64; 3]> {
    let rounds = ROUNDS.min(values.len() / 6);
    let begin = rng.random_range(0..=values.len() - 3 * rounds);
    let schedule = Schedule { seed: rng.random(), participants: 3, order, layouts: 0, rounds_a_layout: 2 };
    let runs = values[begin..begin + 3 * rounds].chunks_exact(3);
    (0..)
        .zip(runs)
        .map(|(number, runs)| {
            let mut of_participants = [0.0; 3];
            for (slot, run) in schedule.round(number).iter().zip(runs) {
                of_participants[slot.participant] = *run;
            }
            of_participants
        })
        .collect()
}

fn pairs(rounds: &[[f64; 3]]) -> Vec<f64> {
    rounds.iter().flat_map(|[variant, baseline, control]| [variant - baseline, variant - control]).collect()
}

/// As verdicts estimate: the adaptive trimmed mean of all log-ratios.
fn pooled(rounds: &[[f64; 3]]) -> f64 {
    adaptive(pairs(rounds))
}

fn means(rounds: &[[f64; 3]]) -> f64 {
    let all = pairs(rounds);
    all.iter().sum::<f64>() / all.len() as f64
}

/// With two more log-ratios a round: with the control of the round before, and the baseline of the round after.
fn neighbours(rounds: &[[f64; 3]]) -> f64 {
    let mut all = pairs(rounds);
    all.extend(rounds.windows(2).flat_map(|two| [two[1][0] - two[0][2], two[0][0] - two[1][1]]));
    adaptive(all)
}

fn adaptive(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let counts = vec![1; values.len()];
    widthwise_verdict::trimmed_mean::adaptive(&values, &counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_makes_no_error_in_the_balanced_order() {
        let drift: Vec<f64> = (0..600).map(|run| 0.001 * f64::from(run)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let balanced = error(&drift, Design { order: Order::Balanced, estimator: pooled }, &mut rng);
        let random = error(&drift, Design { order: Order::Random, estimator: pooled }, &mut rng);
        assert!(balanced < 1e-12 && random > 1e-4, "{balanced} {random}");
    }

    #[test]
    fn the_deviation_of_adjacent_runs_leaves_out_the_drift() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let noise: Vec<f64> = (0..4000)
            .map(|run| 1e-5 * f64::from(run) + 0.02 * (rng.random::<f64>() + rng.random::<f64>() - 1.0))
            .collect();
        // The sum of two uniform numbers has a standard deviation of 0.41.
        assert!((apart(&noise, 1) - 0.0082).abs() < 0.0008, "{}", apart(&noise, 1));
        assert!(apart(&noise, 2000) > 0.015);
    }
}
