//! Noise models: run times with drift, autocorrelation, outliers, modes, ties and intermittent loads.

// Each test file and the example use a part of this.
#![allow(dead_code)]

use widthwise_experiment::schedule::{Order, Schedule, Slot};
use widthwise_verdict::rng::Rng;
use widthwise_verdict::trimmed_mean::adaptive;

/// A kind of noise. If the two sides differ, the variant has the special noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    Quiet,
    Drift,
    MachineMemory,
    Outliers,
    TwoModes,
    VariantHasTwoModes,
    VariantHasARareMode,
    LoadAnyRun,
    LoadInSpells,
    LoadInLongSpells,
    OneSided,
    OneSidedUnequal,
    HeavyTails,
    Pages,
    RareEvents,
    VariantMemory,
    StrongVariantMemory,
}

use Noise::*;

/// Every kind, with its name in the table.
pub const KINDS: [(Noise, &str); 17] = [
    (Quiet, "quiet: normal, 0.7 % a run"),
    (Drift, "drift: +10 % over the campaign, and a random walk"),
    (MachineMemory, "autocorrelation: the machine's state, AR(1) 0.9 from run to run"),
    (Outliers, "outliers: 5 % of runs 10 to 50 % slower"),
    (TwoModes, "bimodal: either mode, 5 % apart, in every variant"),
    (VariantHasTwoModes, "bimodal: in one variant only, half and half"),
    (VariantHasARareMode, "bimodal: in one variant only, one run in five"),
    (LoadAnyRun, "load: any run in five 1.3 to 2 times slower"),
    (LoadInSpells, "load: a fifth of the time, in spells of 4 runs"),
    (LoadInLongSpells, "load: a fifth of the time, in spells of 20 runs"),
    (OneSided, "one-sided: exponential, 1 % a run"),
    (OneSidedUnequal, "one-sided: exponential, three times as wide in one variant"),
    (HeavyTails, "heavy tails: no variance"),
    (Pages, "ties: whole pages, few different values"),
    (RareEvents, "zeros: one event in two runs"),
    (VariantMemory, "autocorrelation: a state of each variant, AR(1) 0.3 from round to round"),
    (StrongVariantMemory, "autocorrelation: a state of each variant, AR(1) 0.6 from round to round"),
];

pub fn normal(rng: &mut Rng) -> f64 {
    // Box & Muller; the sine's half is thrown away.
    (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

fn between(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.unit()
}

fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.unit()).ln()
}

/// The readings of `participants` over `rounds` rounds in the order of a campaign, one list for each. The first is the baseline,
/// the last the control, the second has the special noise. Values are about 1, with equal distributions otherwise.
pub fn readings(kind: Noise, rounds: usize, participants: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut values = vec![Vec::with_capacity(rounds); participants];
    let mut machine = normal(rng);
    let mut own: Vec<f64> = (0..participants).map(|_| normal(rng)).collect();
    let mut loaded = rng.unit() < 0.2;
    let mut walk = 0.0;
    let schedule =
        Schedule { seed: rng.bits(), participants, order: Order::Random, layouts: 1, rounds_a_layout: 2 };
    for round in 0..rounds {
        for Slot { participant: who, .. } in schedule.round(round as u32) {
            let quiet = 0.007 * normal(rng);
            let odd = who == 1;
            let slowed = |rng: &mut Rng| between(rng, 1.3, 2.0).ln();
            let mut spell = |length: f64, rng: &mut Rng| {
                let leave = if loaded { 1.0 / length } else { 0.25 / length };
                if rng.unit() < leave {
                    loaded = !loaded;
                }
                quiet + if loaded { slowed(rng) } else { 0.0 }
            };
            let log = match kind {
                Quiet => quiet,
                Drift => {
                    walk += 0.003 * normal(rng);
                    quiet + 0.1 * round as f64 / rounds as f64 + walk
                }
                MachineMemory => {
                    machine = 0.9 * machine + (1.0_f64 - 0.81).sqrt() * normal(rng);
                    0.02 * machine + 0.3 * quiet
                }
                Outliers if rng.unit() < 0.05 => quiet + between(rng, 1.1, 1.5).ln(),
                Outliers => quiet,
                TwoModes if rng.unit() < 0.5 => quiet + 0.05,
                VariantHasTwoModes if odd && rng.unit() < 0.5 => quiet + 0.05,
                VariantHasARareMode if odd && rng.unit() < 0.2 => quiet + 0.05,
                TwoModes | VariantHasTwoModes | VariantHasARareMode => quiet,
                LoadAnyRun if rng.unit() < 0.2 => quiet + slowed(rng),
                LoadAnyRun => quiet,
                LoadInSpells => spell(4.0, rng),
                LoadInLongSpells => spell(20.0, rng),
                OneSided => 0.01 * exponential(rng),
                OneSidedUnequal => (if odd { 0.03 } else { 0.01 }) * exponential(rng),
                HeavyTails => 0.003 * normal(rng) / (normal(rng).abs() + 0.05),
                Pages => {
                    let more = if rng.unit() < 0.3 { 4.0 } else { 0.0 };
                    ((3400.0 + rng.below(3) as f64 + more) / 3400.0).ln()
                }
                RareEvents => {
                    // Knuth's Poisson; a logarithm of 0 that `exp` turns back into 0.
                    let (mut events, mut product) = (0.0, rng.unit());
                    while product > (-0.5_f64).exp() {
                        events += 1.0;
                        product *= rng.unit();
                    }
                    f64::ln(events)
                }
                VariantMemory | StrongVariantMemory => {
                    let kept = if kind == VariantMemory { 0.3 } else { 0.6 };
                    own[who] = kept * own[who] + (1.0_f64 - kept * kept).sqrt() * normal(rng);
                    0.007 * own[who]
                }
            };
            values[who].push(log.exp());
        }
    }
    values
}

/// The estimand under this noise, the limit for many rounds: 1 wherever the two sides are alike or the log-ratio is
/// symmetric about its middle.
pub fn truth(kind: Noise) -> f64 {
    match kind {
        VariantHasTwoModes => 0.025_f64.exp(),
        VariantHasARareMode | OneSidedUnequal => {
            let values = readings(kind, 1_000_000, 2, &mut Rng::new(1));
            let mut ratios: Vec<f64> = values[1].iter().zip(&values[0]).map(|(v, b)| (v / b).ln()).collect();
            ratios.sort_by(f64::total_cmp);
            adaptive(&ratios, &vec![1; ratios.len()]).exp()
        }
        _ => 1.0,
    }
}
