//! Amdahl's law and Gunther's universal scalability law.
//!
//! ```text
//! Amdahl     X(N) = λ N / (1 + σ (N − 1))                    Amdahl, AFIPS 1967
//! universal  X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1))      Gunther, "Guerrilla Capacity Planning", 2007, ch. 4
//! ```
//!
//! `N / X`, the time one process takes for one piece of work, is a sum: `a + b N + c N (N − 1)` with `λ = 1 / (a + b)`,
//! `σ = b / (a + b)` and `κ = c / (a + b)`. So 0 ≤ σ ≤ 1 and κ ≥ 0 mean that no coefficient is negative.

use super::figure::{figures, Bounds, Figure, Terms, Unfitted};
use super::fit::{fit, Fit};
use super::levels::Levels;

const STEPS: &str = "numbers of processes";

/// Amdahl's law, fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amdahl {
    /// λ, the throughput of one process.
    pub one: Figure,
    /// σ, the serial fraction.
    pub serial: Figure,
    /// The root mean square of the relative distances between the law and the measured levels.
    pub residual: f64,
    /// How many different numbers of processes were fitted; with as many as the law has parameters the residual is
    /// meaningless.
    pub steps: usize,
}

/// Gunther's universal scalability law, fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Universal {
    /// λ, the throughput of one process.
    pub one: Figure,
    /// σ, contention: the share of the work that only one process can do at a time.
    pub contention: Figure,
    /// κ, coherency: what each pair of processes costs the others.
    pub coherency: Figure,
    /// The number of processes with the largest throughput.
    pub best: Best,
    /// The root mean square of the relative distances between the law and the measured levels.
    pub residual: f64,
    /// How many different numbers of processes were fitted; with as many as the law has parameters the residual is
    /// meaningless.
    pub steps: usize,
}

/// Where throughput is largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Best {
    /// At a number of processes.
    At {
        /// √((1 − σ) / κ), at least 1; between whole numbers.
        processes: Figure,
        /// The predicted throughput there.
        throughput: Figure,
        /// Whether that is more processes than were measured, and so an extrapolation.
        beyond: bool,
    },
    /// κ may be 0, so throughput may grow without limit.
    NoneWithinReach,
}

impl Amdahl {
    /// The predicted throughput of so many processes.
    pub fn at(&self, processes: f64) -> f64 {
        law(self.one.estimate, self.serial.estimate, 0.0, processes)
    }
}

impl Universal {
    /// The predicted throughput of so many processes.
    pub fn at(&self, processes: f64) -> f64 {
        law(self.one.estimate, self.contention.estimate, self.coherency.estimate, processes)
    }
}

fn law(one: f64, serial: f64, coherency: f64, n: f64) -> f64 {
    one * n / (1.0 + serial * (n - 1.0) + coherency * n * (n - 1.0))
}

/// λ, σ and κ of a fit; κ is 0 where there are two coefficients. None if one process would take no time: only coherency is
/// left then, and the parameters are ratios to it.
fn parameters<const K: usize>(fit: &Fit<K>) -> Option<[f64; 3]> {
    let whole = fit.coefficients[0] + fit.coefficients[1];
    let found =
        [1.0 / whole, fit.coefficients[1] / whole, fit.coefficients.get(2).map_or(0.0, |c| c / whole)];
    (whole > 0.0 && found.iter().all(|value| value.is_finite())).then_some(found)
}

/// The input of a law: the levels, its functions at each step, and the fit to the whole sample.
struct Ground<const K: usize> {
    levels: Levels,
    rows: Vec<[f64; K]>,
    whole: Fit<K>,
    parameters: [f64; 3],
}

impl<const K: usize> Ground<K> {
    fn of(rounds: &[Vec<(u64, f64)>]) -> Result<Ground<K>, Unfitted> {
        let levels = Levels::of(rounds);
        let found = levels.keys.len();
        if found == 0 {
            return Err(Unfitted::Nothing);
        }
        if found < K {
            return Err(Unfitted::TooFew { of: STEPS, needed: K, found });
        }
        let rows: Vec<[f64; K]> = levels
            .keys
            .iter()
            .map(|n| {
                let n = *n as f64;
                let functions = [1.0, n, n * (n - 1.0)];
                std::array::from_fn(|k| functions[k])
            })
            .collect();
        let counts = vec![1; levels.rounds];
        let whole = fitted(&levels, &rows, &counts).ok_or(Unfitted::Undetermined)?;
        let parameters = parameters(&whole).ok_or(Unfitted::Undetermined)?;
        Ok(Ground { levels, rows, whole, parameters })
    }

    /// λ, σ, κ of a resample; those of the whole sample if the resample does not determine them.
    fn resampled(&self, counts: &[u32]) -> [f64; 3] {
        let found = fitted(&self.levels, &self.rows, counts);
        found.and_then(|fit| parameters(&fit)).unwrap_or(self.parameters)
    }

    fn residual(&self) -> f64 {
        (self.whole.squares / self.rows.len() as f64).sqrt()
    }
}

/// `N / X` at every step, fitted.
fn fitted<const K: usize>(levels: &Levels, rows: &[[f64; K]], counts: &[u32]) -> Option<Fit<K>> {
    let at = levels.at(counts);
    let logs: Vec<f64> = levels.keys.iter().zip(at).map(|(n, level)| (*n as f64).ln() - level).collect();
    fit(rows, &logs)
}

/// Clamps a figure to the parameter's range.
fn held(figure: Figure, lowest: f64, highest: f64) -> Figure {
    figure.map(|value| value.clamp(lowest, highest))
}

pub(super) fn amdahl(rounds: &[Vec<(u64, f64)>], terms: Terms) -> Result<Amdahl, Unfitted> {
    let ground = Ground::<2>::of(rounds)?;
    let (steps, whole) = ground.levels.widening;
    let [one, serial] = figures(ground.levels.rounds, [whole.max(steps), steps], terms, "amdahl", |counts| {
        let [one, serial, _] = ground.resampled(counts);
        [one.ln(), serial]
    });
    Ok(Amdahl {
        one: one.map(f64::exp),
        serial: held(serial, 0.0, 1.0),
        residual: ground.residual(),
        steps: ground.rows.len(),
    })
}

pub(super) fn universal(rounds: &[Vec<(u64, f64)>], terms: Terms) -> Result<Universal, Unfitted> {
    let ground = Ground::<3>::of(rounds)?;
    let (steps, whole) = ground.levels.widening;
    let widening = [whole.max(steps), steps, steps, steps, whole.max(steps)];
    let [one, contention, coherency, inverse, peak] =
        figures(ground.levels.rounds, widening, terms, "universal", |counts| {
            let [one, contention, coherency] = ground.resampled(counts);
            let inverse = inverse_of_best(contention, coherency);
            // Without a peak, the largest measured number is used and not shown.
            let most = ground.levels.keys.last().copied().unwrap_or(1) as f64;
            let best = if inverse > 0.0 { 1.0 / inverse } else { most };
            [one.ln(), contention, coherency, inverse, law(one, contention, coherency, best).ln()]
        });
    let coherency = held(coherency, 0.0, f64::INFINITY);
    let most = ground.levels.keys.last().copied().unwrap_or(1) as f64;
    Ok(Universal {
        one: one.map(f64::exp),
        contention: held(contention, 0.0, 1.0),
        coherency,
        best: best(coherency, held(inverse, 0.0, 1.0), peak.map(f64::exp), most),
        residual: ground.residual(),
        steps: ground.rows.len(),
    })
}

/// One over the best number of processes: unlike that number it is finite where κ is 0. At most 1, which is one process.
fn inverse_of_best(contention: f64, coherency: f64) -> f64 {
    let free = 1.0 - contention;
    if coherency >= free {
        1.0
    } else {
        (coherency / free).sqrt()
    }
}

fn best(coherency: Figure, inverse: Figure, throughput: Figure, most: f64) -> Best {
    let touches = |figure: &Figure| figure.bounds.map_or(figure.estimate, |ends| ends.low) <= 0.0;
    if touches(&coherency) || touches(&inverse) {
        return Best::NoneWithinReach;
    }
    let processes = Figure {
        estimate: 1.0 / inverse.estimate,
        bounds: inverse.bounds.map(|ends| Bounds { low: 1.0 / ends.high, high: 1.0 / ends.low }),
        rounds: inverse.rounds,
    };
    Best::At { processes, throughput, beyond: processes.estimate > most }
}
