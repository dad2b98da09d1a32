//! Coverage of the intervals of fits, on synthetic data: `cargo run --release --example scaling_coverage`.

use std::collections::BTreeMap;

use widthwise_verdict::distribution::normal_quantile;
use widthwise_verdict::rng::Rng;
use widthwise_verdict::scaling::{scaling, sequential_part, Best, Figure, Terms, Throughputs};

const SETS: u64 = 1000;
const NOISE: f64 = 0.01;

fn normal(rng: &mut Rng) -> f64 {
    normal_quantile(rng.unit().clamp(1e-9, 1.0 - 1e-9))
}

fn law(contention: f64, coherency: f64, n: usize) -> f64 {
    let n = n as f64;
    10.0 * n / (1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0))
}

/// Noise of 1 % at each step; with outliers, every eighth run is up to a third slower.
fn factor(rng: &mut Rng, outliers: bool) -> f64 {
    let slow = if outliers && rng.below(8) == 0 { 0.3 * rng.unit() } else { 0.0 };
    (NOISE * normal(rng) - slow).exp()
}

fn rounds(
    set: u64,
    count: usize,
    steps: &[usize],
    outliers: bool,
    truth: impl Fn(usize) -> f64,
) -> Vec<Throughputs> {
    let mut rng = Rng::new(set);
    (0..count)
        .map(|_| {
            let moment = (0.03 * normal(&mut rng)).exp();
            steps.iter().map(|&n| (n, truth(n) * moment * factor(&mut rng, outliers))).collect()
        })
        .collect()
}

struct Tally {
    name: &'static str,
    truth: f64,
    held: u64,
    width: f64,
    asked: u64,
}

impl Tally {
    fn add(&mut self, figure: Figure) {
        let Some(ends) = figure.bounds else { return };
        self.asked += 1;
        self.held += u64::from((ends.low..=ends.high).contains(&self.truth));
        self.width += ends.high - ends.low;
    }
}

fn tallies<const K: usize>(truths: [(&'static str, f64); K]) -> [Tally; K] {
    truths.map(|(name, truth)| Tally { name, truth, held: 0, width: 0.0, asked: 0 })
}

fn print_tallies(case: &str, tallies: &[Tally]) {
    for Tally { name, truth, held, width, asked } in tallies.iter().filter(|tally| tally.asked > 0) {
        let share = 100.0 * *held as f64 / *asked as f64;
        let width = width / *asked as f64;
        println!(
            "{case:<44} {name:<10} truth {truth:<8.4} held {share:5.1} % of {asked}   mean width {width:.5}"
        );
    }
}

fn main() {
    for (count, outliers) in [(6, false), (10, false), (20, false), (10, true), (20, true)] {
        let terms = |seed| Terms { confidence: 0.95, seed, name: "coverage" };
        let tail = if outliers { ", outliers" } else { "" };
        for (contention, coherency) in [(0.06, 0.002), (0.06, 0.0), (0.0, 0.0)] {
            let best = ((1.0 - contention) / f64::max(coherency, 1e-300)).sqrt();
            let mut held = tallies([("sigma", contention), ("kappa", coherency), ("best N", best)]);
            let mut serial =
                tallies([("Amdahl", contention), ("speed-up", law(contention, coherency, 8) / 10.0)]);
            for set in 0..SETS {
                let rounds =
                    rounds(set, count, &[1, 2, 4, 8, 16], outliers, |n| law(contention, coherency, n));
                let found = scaling(&rounds, 16, terms(set));
                let Ok(universal) = found.universal else { continue };
                held[0].add(universal.contention);
                held[1].add(universal.coherency);
                if let (Best::At { processes, .. }, true) = (universal.best, coherency > 0.0) {
                    held[2].add(processes);
                }
                if let (Ok(amdahl), 0.0) = (found.amdahl, coherency) {
                    serial[0].add(amdahl.serial);
                }
                if let Ok(speed_up) = found.steps[3].speed_up {
                    serial[1].add(speed_up);
                }
            }
            let case = format!("{count} rounds, sigma {contention}, kappa {coherency}{tail}");
            print_tallies(&case, &held);
            print_tallies(&case, &serial);
        }
        let mut line = tallies([("intercept", 30.0), ("slope", 0.65)]);
        for set in 0..SETS {
            let mut rng = Rng::new(set);
            let rounds: Vec<BTreeMap<u64, f64>> = (0..count)
                .map(|_| {
                    let runs = [1_u64, 100, 400].into_iter();
                    runs.map(|n| (n, (30.0 + 0.65 * n as f64) / factor(&mut rng, outliers))).collect()
                })
                .collect();
            if let Ok(found) = sequential_part(&rounds, terms(set)) {
                line[0].add(found.intercept);
                line[1].add(found.slope);
            }
        }
        print_tallies(&format!("{count} rounds, 30 s + 0.65 s an event{tail}"), &line);
    }
}
