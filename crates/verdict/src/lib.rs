//! Statistics. Pure: samples in, verdicts out.

use std::collections::BTreeMap;

use widthwise_experiment::model::Estimator;
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run, Source};
use widthwise_experiment::{Experiment, Metric};

pub mod stopping;
pub mod words;

/// A verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// The variant takes less than the baseline.
    Lower,
    /// It takes more.
    Higher,
    /// No difference that this machine can see.
    Same,
    /// There are numbers, and nothing may be said of them.
    Withheld,
    /// There are no numbers.
    Missing,
}

impl Word {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Word::Lower => "lower",
            Word::Higher => "higher",
            Word::Same => "same",
            Word::Withheld => "withheld",
            Word::Missing => "missing",
        }
    }
}

/// A ratio to the baseline with its interval, and what may be said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was measured.
    pub metric: Metric,
    /// Of which variant.
    pub variant: String,
    /// Compared with which.
    pub baseline: String,
    /// Variant to baseline.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// The smallest difference this machine can tell from none, as a fraction.
    pub floor: Option<f64>,
    /// Rounds in which both ran well.
    pub pairs: u32,
    /// p-value of no difference.
    pub p: Option<f64>,
    /// The same, adjusted for the number of comparisons (Holm).
    pub adjusted_p: Option<f64>,
    /// The least share of a run for which the counter was counted.
    pub coverage: f64,
    /// Where the numbers came from.
    pub source: Option<Source>,
    /// What may be said.
    pub word: Word,
    /// Why nothing may, or why no difference is called.
    pub reason: Option<String>,
}

/// What is typical of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Typical {
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: Metric,
    /// Trimmed mean of its timed runs.
    pub value: f64,
    /// Median.
    pub median: f64,
    /// First quartile.
    pub low_quartile: f64,
    /// Third quartile.
    pub high_quartile: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many runs.
    pub runs: u32,
}

/// How a variant stands before any number is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It was measured.
    Measured,
    /// It could not be built or started, or failed; why.
    Unable(String),
    /// It answers differently.
    Different(String),
    /// It answers differently, and the user allows that.
    DifferentAllowed(String),
}

/// What verdicts are made of.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was asked.
    pub experiment: &'a Experiment,
    /// Every round.
    pub rounds: &'a [Round],
    /// Every run.
    pub runs: &'a [Run],
    /// How each variant stands, by name; one that is absent was measured.
    pub standings: &'a BTreeMap<String, Standing>,
}

/// All that can be said of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Variants in order, the twin last, by metrics in order.
    pub verdicts: Vec<Verdict>,
    /// What is typical of each, the baseline among them.
    pub typical: Vec<Typical>,
    /// How many comparisons share the false alarms.
    pub comparisons: usize,
}

/// Fewer pairs than this give no interval.
const FEWEST: usize = 5;
/// Share of the pairs that the estimator leaves out at each end (Yuen 1974; Wilcox).
const TRIM: f64 = 0.2;
const RESAMPLES: usize = 4000;

/// Makes the verdicts.
pub fn judge(evidence: &Evidence) -> Judgement {
    let experiment = evidence.experiment;
    let twin = experiment.twin();
    let names: Vec<&str> =
        experiment.variants.iter().map(|v| v.name.as_str()).chain([twin.as_str()]).collect();
    let mut verdicts = Vec::new();
    for name in names.iter().filter(|name| **name != experiment.baseline) {
        for metric in &experiment.metrics {
            verdicts.push(compare(evidence, name, metric));
        }
    }
    let floors: BTreeMap<&str, f64> = verdicts
        .iter()
        .filter(|v| v.variant == twin)
        .filter_map(|v| Some((v.metric.name, v.low?.ln().abs().max(v.high?.ln().abs()).exp() - 1.0)))
        .collect();
    let comparisons = holm(&mut verdicts, &twin);
    let alpha = 1.0 - experiment.judging.confidence;
    for verdict in &mut verdicts {
        verdict.floor = floors.get(verdict.metric.name).copied();
        decide(verdict, alpha, verdict.variant == twin);
    }
    let typical = names
        .iter()
        .flat_map(|name| experiment.metrics.iter().filter_map(|metric| typical(evidence, name, metric)))
        .collect();
    Judgement { verdicts, typical, comparisons }
}

/// The widest half-width, as a fraction, among the deciding metrics of every variant that is measured.
pub fn widest_half_width(evidence: &Evidence) -> Option<f64> {
    let experiment = evidence.experiment;
    let twin = experiment.twin();
    let mut widest: Option<f64> = None;
    for name in experiment.variants.iter().map(|v| v.name.as_str()).chain([twin.as_str()]) {
        if name == experiment.baseline || matches!(evidence.standings.get(name), Some(Standing::Unable(_))) {
            continue;
        }
        for metric in experiment.deciding() {
            let ratios = pairs(evidence, name, metric).ratios?;
            if ratios.len() < FEWEST {
                return None;
            }
            let (low, high) = interval(&ratios, experiment.judging.confidence, seed(evidence, name, metric));
            let half = (high.exp() - low.exp()) / 2.0;
            widest = Some(widest.map_or(half, |w| w.max(half)));
        }
    }
    widest
}

/// The pairs of one comparison.
struct Pairs {
    /// Log-ratios, if every value is positive.
    ratios: Option<Vec<f64>>,
    count: usize,
    both_zero: bool,
    coverage: f64,
    source: Option<Source>,
    values: Vec<(f64, f64)>,
}

fn timed<'a>(evidence: &'a Evidence, name: &'a str) -> impl Iterator<Item = &'a Run> {
    evidence.runs.iter().filter(move |run| {
        run.variant == name
            && evidence.rounds.iter().any(|r| r.number == run.round && r.kind == RoundKind::Timed)
    })
}

fn pairs(evidence: &Evidence, name: &str, metric: Metric) -> Pairs {
    let read = |name: &str| -> BTreeMap<u32, (f64, f64, Source)> {
        timed(evidence, name)
            .filter(|run| run.ending == Ending::Done)
            .filter_map(|run| {
                run.sample.get(metric.name).map(|r| (run.round, (r.value, r.coverage, r.source)))
            })
            .collect()
    };
    let (base, own) = (read(&evidence.experiment.baseline), read(name));
    let values: Vec<(f64, f64)> =
        own.iter().filter_map(|(round, own)| base.get(round).map(|base| (base.0, own.0))).collect();
    let coverage = own.values().chain(base.values()).map(|r| r.1).fold(1.0, f64::min);
    Pairs {
        ratios: values
            .iter()
            .all(|(a, b)| *a > 0.0 && *b > 0.0)
            .then(|| values.iter().map(|(a, b)| (b / a).ln()).collect()),
        count: values.len(),
        both_zero: values.iter().all(|(a, b)| *a == 0.0 && *b == 0.0),
        coverage,
        source: own.values().next().map(|r| r.2),
        values,
    }
}

fn compare(evidence: &Evidence, name: &str, metric: Metric) -> Verdict {
    let experiment = evidence.experiment;
    let found = pairs(evidence, name, metric);
    let mut verdict = Verdict {
        metric,
        variant: name.to_owned(),
        baseline: experiment.baseline.clone(),
        ratio: None,
        low: None,
        high: None,
        confidence: experiment.judging.confidence,
        floor: None,
        pairs: found.count as u32,
        p: None,
        adjusted_p: None,
        coverage: found.coverage,
        source: found.source,
        word: Word::Same,
        reason: None,
    };
    let mut say = |word, reason: String| {
        verdict.word = word;
        verdict.reason = Some(reason);
    };
    match evidence.standings.get(name) {
        Some(Standing::Unable(reason)) => say(Word::Missing, reason.clone()),
        Some(Standing::Different(reason)) => say(Word::Withheld, reason.clone()),
        _ => {
            let failed = timed(evidence, name).filter(|run| run.ending != Ending::Done).count();
            let all = timed(evidence, name).count();
            if failed > 0 {
                say(Word::Withheld, format!("{failed} of {all} runs failed"));
            } else if found.source.is_none() {
                say(Word::Missing, "not counted here".into());
            } else if found.count < FEWEST {
                say(Word::Withheld, format!("{} rounds; an interval needs at least {FEWEST}", found.count));
            } else if found.both_zero {
                (verdict.ratio, verdict.low, verdict.high) = (Some(1.0), Some(1.0), Some(1.0));
                verdict.p = Some(1.0);
            } else if let Some(ratios) = found.ratios {
                if experiment.judging.estimator == Estimator::TenRunTrim {
                    ten_run_trim(&mut verdict, &found.values);
                } else {
                    let (low, high) =
                        interval(&ratios, experiment.judging.confidence, seed(evidence, name, metric));
                    verdict.ratio = Some(trimmed_mean(&mut ratios.clone()).exp());
                    verdict.low = Some(low.exp());
                    verdict.high = Some(high.exp());
                    verdict.p = Some(p_value(&ratios));
                }
            } else {
                say(Word::Withheld, "it counts 0 in some runs: there is no ratio".into());
            }
        }
    }
    verdict
}

fn decide(verdict: &mut Verdict, alpha: f64, is_twin: bool) {
    let (Some(ratio), Some(low), Some(high), Word::Same) =
        (verdict.ratio, verdict.low, verdict.high, verdict.word)
    else {
        return;
    };
    if is_twin || (low <= 1.0 && 1.0 <= high) {
        return;
    }
    let Some(floor) = verdict.floor else { return };
    if verdict.adjusted_p.is_none_or(|p| p > alpha) {
        verdict.reason = Some("not clear once every comparison is allowed for".into());
    } else if ratio.ln().abs() <= floor.ln_1p() {
        verdict.reason = Some("smaller than this machine's detection floor".into());
    } else {
        verdict.word = if ratio < 1.0 { Word::Lower } else { Word::Higher };
    }
}

/// Holm's step-down adjustment over every comparison but the twin's.
fn holm(verdicts: &mut [Verdict], twin: &str) -> usize {
    let mut order: Vec<usize> =
        (0..verdicts.len()).filter(|i| verdicts[*i].variant != twin && verdicts[*i].p.is_some()).collect();
    order.sort_by(|a, b| verdicts[*a].p.partial_cmp(&verdicts[*b].p).unwrap_or(std::cmp::Ordering::Equal));
    let mut least = 0.0f64;
    for (rank, index) in order.iter().enumerate() {
        let p = verdicts[*index].p.unwrap_or(1.0);
        least = least.max((p * (order.len() - rank) as f64).min(1.0));
        verdicts[*index].adjusted_p = Some(least);
    }
    order.len()
}

fn seed(evidence: &Evidence, name: &str, metric: Metric) -> u64 {
    // FNV-1a: the stream depends on what is compared, and not on the order in which it is.
    name.bytes().chain(metric.name.bytes()).fold(evidence.experiment.seed ^ 0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn trimmed_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * TRIM) as usize;
    let kept = &values[cut..values.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// Yuen's t on the trimmed mean, with a normal tail stretched to Student's.
fn p_value(ratios: &[f64]) -> f64 {
    let n = ratios.len();
    let mut sorted = ratios.to_vec();
    let mean = trimmed_mean(&mut sorted);
    let cut = (n as f64 * TRIM) as usize;
    let winsorized: Vec<f64> = (0..n).map(|i| sorted[i.clamp(cut, n - 1 - cut)]).collect();
    let centre = winsorized.iter().sum::<f64>() / n as f64;
    let variance = winsorized.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (n as f64 - 1.0);
    let kept = (n - 2 * cut) as f64;
    let error = (variance * (n as f64 - 1.0) / (kept * (kept - 1.0))).sqrt();
    if error == 0.0 {
        return if mean == 0.0 { 1.0 } else { 0.0 };
    }
    let (t, df) = ((mean / error).abs(), kept - 1.0);
    // Wallace's (1959) normal approximation of Student's t.
    let z = ((8.0 * df + 1.0) / (8.0 * df + 3.0)) * (df * (t * t / df).ln_1p()).sqrt();
    2.0 * normal_tail(z)
}

/// BCa bootstrap interval of the trimmed mean (Efron 1987), with Hesterberg's (2015) small-sample expansion.
fn interval(ratios: &[f64], confidence: f64, seed: u64) -> (f64, f64) {
    let n = ratios.len();
    let estimate = trimmed_mean(&mut ratios.to_vec());
    let mut state = seed | 1;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut resample = vec![0.0; n];
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for place in &mut resample {
                *place = ratios[((u128::from(next()) * n as u128) >> 64) as usize];
            }
            trimmed_mean(&mut resample)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let below = means.iter().filter(|m| **m < estimate).count() as f64
        + means.iter().filter(|m| **m == estimate).count() as f64 / 2.0;
    let bias = normal_quantile((below / RESAMPLES as f64).clamp(1e-4, 1.0 - 1e-4));
    let jackknife: Vec<f64> = (0..n)
        .map(|i| {
            let mut rest: Vec<f64> =
                ratios.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, x)| *x).collect();
            trimmed_mean(&mut rest)
        })
        .collect();
    let centre = jackknife.iter().sum::<f64>() / n as f64;
    let squares: f64 = jackknife.iter().map(|x| (centre - x).powi(2)).sum();
    let cubes: f64 = jackknife.iter().map(|x| (centre - x).powi(3)).sum();
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };
    // Student's quantile by Hill's expansion, stretched by sqrt(n / (n - 1)).
    let z = normal_quantile(0.5 + confidence / 2.0);
    let df = (n as f64 - 2.0 * (n as f64 * TRIM).floor() - 1.0).max(1.0);
    let t =
        z + (z.powi(3) + z) / (4.0 * df) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * df * df);
    let wide = t * (n as f64 / (n as f64 - 1.0)).sqrt();
    let at = |z: f64| {
        let shifted = bias + (bias + z) / (1.0 - acceleration * (bias + z)).max(0.1);
        let share = 1.0 - normal_tail(shifted);
        let place = share * (RESAMPLES as f64 - 1.0);
        let (low, part) = (place.floor().max(0.0) as usize, place.fract());
        let high = (low + 1).min(RESAMPLES - 1);
        means[low.min(RESAMPLES - 1)] * (1.0 - part) + means[high] * part
    };
    (at(-wide).min(estimate), at(wide).max(estimate))
}

/// rauschmayr-2013: the ratio of the averages of the middle six of ten runs; the interval is the paired one's.
fn ten_run_trim(verdict: &mut Verdict, values: &[(f64, f64)]) {
    let average = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = values.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let kept = all.get(2..all.len().saturating_sub(2)).unwrap_or_default();
        kept.iter().sum::<f64>() / kept.len().max(1) as f64
    };
    let ratios: Vec<f64> = values.iter().map(|(a, b)| (b / a).ln()).collect();
    let centre = (average(|pair| pair.1) / average(|pair| pair.0)).ln();
    let (low, high) = interval(&ratios, verdict.confidence, 1);
    verdict.ratio = Some(centre.exp());
    verdict.low = Some(low.min(centre).exp());
    verdict.high = Some(high.max(centre).exp());
    verdict.p = Some(p_value(&ratios));
}

fn typical(evidence: &Evidence, name: &str, metric: Metric) -> Option<Typical> {
    let mut values: Vec<f64> = timed(evidence, name)
        .filter(|run| run.ending == Ending::Done)
        .filter_map(|run| run.sample.get(metric.name).map(|r| r.value))
        .collect();
    if values.is_empty() {
        return None;
    }
    let value = trimmed_mean(&mut values);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        values[low] * (1.0 - part) + values[(low + 1).min(values.len() - 1)] * part
    };
    Some(Typical {
        variant: name.to_owned(),
        metric,
        value,
        median: at(0.5),
        low_quartile: at(0.25),
        high_quartile: at(0.75),
        min: values[0],
        max: values[values.len() - 1],
        runs: values.len() as u32,
    })
}

/// P(Z > z), by the continued fraction and series of Abramowitz & Stegun 7.1.26 (error below 1.5e-7).
fn normal_tail(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = 0.5 * poly * (-x * x).exp();
    if z >= 0.0 {
        tail
    } else {
        1.0 - tail
    }
}

/// The inverse of the normal distribution, by bisection: exact to what is needed, and short.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 1.0 - normal_tail(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}
