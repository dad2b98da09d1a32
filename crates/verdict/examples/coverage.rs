//! Coverage of intervals, false alarms and power on synthetic campaigns. `cargo run --release -p widthwise-verdict
//! --example coverage [replications [table [noise]]]` prints the Markdown tables of `docs/verdicts.md`: `intervals`, `alarms`
//! and `planted`, or one of them; of `intervals` all rows, or those whose noise begins so. Seeds are fixed, and results do not depend on the number of processors.

#[path = "../tests/campaign/mod.rs"]
mod campaign;
#[path = "../tests/noise/mod.rs"]
mod noise;

use std::time::Duration;

use campaign::{pick, Laid};
use noise::{readings, truth, Noise, KINDS};
use widthwise_experiment::model::Stopping;
use widthwise_verdict::rng::Rng;
use widthwise_verdict::stopping::{Decision, InterimLook, StoppingRule};
use widthwise_verdict::{half_width, judge, Verdict, Word};

const ROUNDS: [usize; 5] = [10, 20, 30, 50, 100];
/// The round limit of a campaign under `--precision`.
const MOST: usize = 300;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let replications = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let table = arguments.next();
    let wanted = |name: &str| table.as_deref().is_none_or(|table| table == name);
    if wanted("intervals") {
        println!("Coverage of the 95 % interval, {replications} campaigns a cell:\n");
        coverage(replications, &arguments.next().unwrap_or_default());
    }
    if wanted("alarms") {
        println!("\nA/A: three variants that are the baseline, eleven metrics, 30 rounds:\n");
        false_alarms((replications / 5).max(1));
    }
    if wanted("planted") {
        println!("\nPlanted differences in CPU time, {replications} campaigns a row:\n");
        planted(replications);
    }
}

/// Runs an experiment once for each replication, on every processor, and adds up what each returns.
fn repeated<const N: usize>(replications: usize, once: impl Fn(u64) -> [f64; N] + Sync) -> [f64; N] {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(u64, [f64; N])> = std::thread::scope(|scope| {
        let once = &once;
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    (worker..replications)
                        .step_by(workers)
                        .map(|replication| (replication as u64, once(replication as u64)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap_or_default()).collect()
    });
    // Sums of floating-point numbers depend on their order; the number of processors must not.
    results.sort_by_key(|result| result.0);
    results.iter().fold([0.0; N], |mut sums, (_, one)| {
        sums.iter_mut().zip(one).for_each(|(sum, value)| *sum += value);
        sums
    })
}

/// A campaign of the baseline, one variant and the A/A control under this noise.
fn pair(kind: Noise, rounds: usize, replication: u64) -> Laid {
    let mut laid = Laid::new(&["variant"], &["cpu"], rounds as u32);
    let values = readings(kind, rounds, 3, &mut Rng::named(replication, &["coverage"]));
    let control = laid.control();
    for (name, values) in [campaign::BASELINE, "variant", &control].iter().zip(values) {
        laid.read(name, "cpu", values);
    }
    laid.experiment.seed = replication;
    laid
}

fn holds(laid: &Laid, rounds: usize, truth: f64) -> bool {
    let judgement = judge(&laid.evidence_of(rounds));
    let verdict = pick(&judgement, "variant", "cpu");
    // Only equals have differences in place of ratios here.
    let truth = if verdict.difference.is_some() { equality(verdict) } else { truth };
    match (verdict.low, verdict.high) {
        (Some(low), Some(high)) => low <= truth && truth <= high,
        _ => false,
    }
}

/// What the interval is around if there is no difference: the ratio 1 or, where a run counted 0, the difference 0.
fn equality(verdict: &Verdict) -> f64 {
    if verdict.difference.is_some() {
        0.0
    } else {
        1.0
    }
}

/// About the half-width of thirty rounds of this noise, so that `--precision` stops in mid-range.
fn typical_half_width(kind: Noise) -> f64 {
    let mut halves: Vec<f64> = (0..21)
        .filter_map(|replication| half_width(&pair(kind, 30, 1_000_000 + replication).evidence()))
        .collect();
    halves.sort_by(f64::total_cmp);
    halves.get(halves.len() / 2).copied().unwrap_or(0.01)
}

fn coverage(replications: usize, noise: &str) {
    let heads: Vec<String> = ROUNDS.iter().map(|rounds| format!("{rounds} rounds")).collect();
    println!("| noise | {} | `--precision` (rounds) |", heads.join(" | "));
    println!("| --- |{}", " ---: |".repeat(ROUNDS.len() + 1));
    for (kind, name) in KINDS.into_iter().filter(|(_, name)| name.starts_with(noise)) {
        let truth = truth(kind);
        print!("| {name} |");
        for rounds in ROUNDS {
            let [held] = repeated(replications, |replication| {
                [f64::from(u8::from(holds(&pair(kind, rounds, replication), rounds, truth)))]
            });
            print!(" {:.1} % |", 100.0 * held / replications as f64);
        }
        let target = typical_half_width(kind);
        let [held, taken] = repeated(replications, |replication| {
            let laid = pair(kind, MOST, replication);
            let rounds = precision(&laid, target);
            [f64::from(u8::from(holds(&laid, rounds, truth))), rounds as f64]
        });
        let total = replications as f64;
        println!(" {:.1} % ({:.0}) |", 100.0 * held / total, taken / total);
    }
}

/// The number of rounds until the intervals have this half-width.
fn precision(laid: &Laid, target: f64) -> usize {
    let rule = Stopping { rounds: Some(MOST as u32), precision: Some(target), max_time: None };
    let mut stopping_rule = StoppingRule::new(&rule);
    loop {
        let rounds = stopping_rule.next_look();
        let widest = half_width(&laid.evidence_of(rounds as usize));
        if let Decision::Stop(_) =
            stopping_rule.decide(InterimLook { rounds, elapsed: Duration::ZERO, widest })
        {
            return rounds as usize;
        }
    }
}

const METRICS: [&str; 11] = [
    "cpu",
    "wall",
    "user",
    "system",
    "max_rss",
    "peak_virtual",
    "page_faults",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
];

/// A campaign with every default metric: three correlated times, a coarse system time, page counts, a constant, faults
/// that never happen, and switches.
fn full(kind: Noise, variants: &[&str], rounds: usize, slower: f64, replication: u64) -> Laid {
    let mut laid = Laid::new(variants, &METRICS, rounds as u32);
    laid.experiment.seed = replication;
    let everyone: Vec<String> = [campaign::BASELINE]
        .iter()
        .chain(variants)
        .map(|name| (*name).to_owned())
        .chain([laid.control()])
        .collect();
    let rng = &mut Rng::named(replication, &["full"]);
    let time = readings(kind, rounds, everyone.len(), rng);
    let wall = readings(Noise::OneSided, rounds, everyone.len(), rng);
    let user = readings(Noise::Quiet, rounds, everyone.len(), rng);
    let system = readings(Noise::HeavyTails, rounds, everyone.len(), rng);
    let pages = readings(Noise::Pages, rounds, everyone.len(), rng);
    let switches = readings(Noise::RareEvents, rounds, everyone.len(), rng);
    let preempted = readings(Noise::LoadAnyRun, rounds, everyone.len(), rng);
    for (who, name) in everyone.iter().enumerate() {
        let factor = if who > 0 && who <= variants.len() { slower } else { 1.0 };
        let times = |other: &[f64]| -> Vec<f64> {
            time[who].iter().zip(other).map(|(a, b)| 1e8 * factor * a * b).collect()
        };
        laid.read(name, "cpu", time[who].iter().map(|value| 1e8 * factor * value));
        laid.read(name, "wall", times(&wall[who]));
        laid.read(name, "user", times(&user[who]));
        laid.read(name, "system", system[who].iter().map(|value| 1e7 * value));
        laid.read(name, "max_rss", pages[who].iter().map(|value| 1.4e7 * value));
        laid.read(name, "peak_virtual", std::iter::repeat_n(2.0e7, rounds));
        laid.read(name, "page_faults", pages[who].iter().map(|value| 3400.0 * value));
        laid.read(name, "minor_faults", pages[who].iter().map(|value| 3400.0 * value));
        laid.read(name, "major_faults", std::iter::repeat_n(0.0, rounds));
        laid.read(name, "voluntary_switches", switches[who].iter().map(|value| value.round()));
        laid.read(name, "involuntary_switches", preempted[who].iter().map(|value| (20.0 * value).round()));
    }
    laid
}

fn false_alarms(replications: usize) {
    println!("| noise of the times | campaigns | with any false difference | without the floor | intervals without 1 |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (kind, name) in KINDS {
        if !matches!(
            kind,
            Noise::Quiet
                | Noise::Drift
                | Noise::MachineMemory
                | Noise::Outliers
                | Noise::TwoModes
                | Noise::LoadAnyRun
                | Noise::LoadInSpells
                | Noise::LoadInLongSpells
                | Noise::HeavyTails
                | Noise::VariantMemory
                | Noise::StrongVariantMemory
        ) {
            continue;
        }
        let [any, floorless, outside, comparisons] = repeated(replications, |replication| {
            let laid = full(kind, &["a", "b", "c"], 30, 1.0, replication);
            let judgement = laid.judged();
            let asked = || judgement.verdicts.iter().filter(|verdict| verdict.adjusted_p.is_some());
            let outside = |verdict: &&Verdict| {
                let equality = Some(equality(verdict));
                !(verdict.low <= equality && verdict.high >= equality)
            };
            let wrong = asked().any(|verdict| matches!(verdict.word, Word::Lower | Word::Higher));
            let unlikely = asked().filter(outside).any(|verdict| verdict.adjusted_p <= Some(0.05));
            [
                f64::from(u8::from(wrong)),
                f64::from(u8::from(unlikely)),
                asked().filter(outside).count() as f64,
                judgement.comparisons as f64,
            ]
        });
        println!(
            "| {name} | {replications} | {:.1} % | {:.1} % | {:.1} % |",
            100.0 * any / replications as f64,
            100.0 * floorless / replications as f64,
            100.0 * outside / comparisons
        );
    }
}

fn planted(replications: usize) {
    println!("| noise of the times | metrics | truth | rounds | median half-width | verdict `higher` | truth in the interval | both |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (kind, metrics, slower, rounds) in [
        (Noise::Quiet, 1, 1.01, 30),
        (Noise::Quiet, METRICS.len(), 1.01, 30),
        (Noise::OneSided, METRICS.len(), 1.01, 30),
        (Noise::MachineMemory, METRICS.len(), 1.01, 30),
        (Noise::LoadInLongSpells, METRICS.len(), 1.03, 60),
        (Noise::LoadInSpells, METRICS.len(), 1.03, 60),
        (Noise::LoadAnyRun, METRICS.len(), 1.03, 60),
    ] {
        let name = KINDS.iter().find(|row| row.0 == kind).map_or("", |row| row.1);
        let halves = std::sync::Mutex::new(Vec::new());
        let [called, held, both] = repeated(replications, |replication| {
            let mut laid = full(kind, &["variant"], rounds, slower, replication);
            laid.experiment.metrics.truncate(metrics);
            let judgement = laid.judged();
            let verdict = pick(&judgement, "variant", "cpu");
            let (low, high) = (verdict.low.unwrap_or(1.0), verdict.high.unwrap_or(1.0));
            if let Ok(mut halves) = halves.lock() {
                halves.push(0.5 * (high - low));
            }
            let (called, held) = (verdict.word == Word::Higher, low <= slower && slower <= high);
            [called, held, called && held].map(|yes| f64::from(u8::from(yes)))
        });
        let mut halves = halves.into_inner().unwrap_or_default();
        halves.sort_by(f64::total_cmp);
        let share = |count: f64| 100.0 * count / replications as f64;
        println!(
            "| {name} | {metrics} | +{:.0} % | {rounds} | ±{:.2} % | {:.1} % | {:.1} % | {:.1} % |",
            100.0 * (slower - 1.0),
            100.0 * halves.get(halves.len() / 2).copied().unwrap_or(0.0),
            share(called),
            share(held),
            share(both)
        );
    }
}
