//! From pairs to verdicts.

use std::cell::RefCell;

use widthwise_experiment::model::Estimator;
use widthwise_experiment::outcome::Source;
use widthwise_experiment::{Experiment, Metric};

use crate::bootstrap::{interval, reach, Interval, Widening};
use crate::family::{adjusted, weights, Member};
use crate::location::adaptive;
use crate::pairs::{Baselines, Campaign, Pair, Pairs};
use crate::serial::inflation;
use crate::stream::Stream;
use crate::typical::typical;
use crate::words::share;
use crate::{Evidence, Judgement, Standing, Verdict, Word};

/// With fewer pairs there is no interval: simulated coverage falls below 93 % with five, and not with six.
pub const FEWEST_PAIRS: u32 = 6;

/// What peringer-2007's estimator averages over: "run programs 10 times, remove two slowest and two fastest".
pub const TEN_RUNS: u32 = 10;
const TEN_RUNS_CUT: u32 = 2;

/// The scale on which a comparison was made; no difference is 0 on either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// The logarithm of variant over baseline.
    Log,
    /// The difference of the means, as a share of the baseline's mean: for counts that are 0 in some runs.
    Share,
}

impl Scale {
    fn ratio(self, value: f64) -> f64 {
        match self {
            Scale::Log => value.exp(),
            Scale::Share => (1.0 + value).max(0.0),
        }
    }

    /// How far a value is from no difference, as a fraction. On the log scale a half and a double are equally far.
    fn departure(self, value: f64) -> f64 {
        match self {
            Scale::Log => value.abs().exp_m1(),
            Scale::Share => value.abs(),
        }
    }
}

/// A comparison that could be made.
struct Comparison {
    interval: Interval,
    scale: Scale,
    p: f64,
    count: Count,
}

/// What is known of the readings, whether or not they could be compared.
#[derive(Clone, Copy)]
struct Count {
    pairs: u32,
    coverage: f64,
    source: Option<Source>,
}

const NOTHING_READ: Count = Count { pairs: 0, coverage: 1.0, source: None };

/// Why a comparison could not be made.
enum Obstacle {
    /// There is nothing to compare.
    Missing(String),
    /// Nothing can rest on what there is.
    Withheld(String, Count),
    /// More rounds would do.
    TooFew(String, Count),
}

/// What stands in the way of every comparison of a variant, whatever the metric.
fn obstacle(evidence: &Evidence, campaign: &Campaign, variant: &str) -> Option<Obstacle> {
    let baseline = &evidence.experiment.baseline;
    match evidence.standings.get(variant) {
        Some(Standing::Unable(reason)) => return Some(Obstacle::Missing(reason.clone())),
        Some(Standing::Different(how)) => return Some(Obstacle::Withheld(differs(how), NOTHING_READ)),
        Some(Standing::Measured | Standing::DifferentAllowed(_)) | None => {}
    }
    if let Some(Standing::Unable(reason)) = evidence.standings.get(baseline) {
        return Some(Obstacle::Missing(format!("the baseline could not be measured: {reason}")));
    }
    if let Some(failures) = campaign.failures(variant) {
        return Some(Obstacle::Withheld(failures, NOTHING_READ));
    }
    if let Some(failures) = campaign.failures(baseline) {
        return Some(Obstacle::Withheld(format!("of the baseline, {failures}"), NOTHING_READ));
    }
    (!campaign.ran(variant) || !campaign.ran(baseline))
        .then(|| Obstacle::Missing("no timed round yet".to_owned()))
}

fn differs(how: &str) -> String {
    let text = "its output differs from the baseline's";
    if how.is_empty() {
        text.to_owned()
    } else if how.starts_with("its output") {
        // It says itself what is wrong with the output.
        how.to_owned()
    } else {
        format!("{text}: {how}")
    }
}

/// The names under which the baseline's runs are compared with a variant's. The A/A pair is its twin against itself;
/// the paper's estimator knows one baseline; and a twin that failed, or answered differently, is no witness.
fn baselines<'a>(evidence: &'a Evidence, campaign: &Campaign, variant: &str, twin: &'a str) -> Baselines<'a> {
    let experiment = evidence.experiment;
    let again = variant != twin
        && experiment.judging.estimator == Estimator::Paired
        && obstacle(evidence, campaign, twin).is_none();
    Baselines { first: &experiment.baseline, again: again.then_some(twin) }
}

/// Compares a variant with the baseline on one metric.
fn compare(
    experiment: &Experiment,
    campaign: &Campaign,
    variant: &str,
    baselines: Baselines,
    metric: Metric,
) -> Result<Comparison, Obstacle> {
    let pairs = campaign.pairs(variant, baselines, metric);
    let n = pairs.values.len() as u32;
    let count = Count { pairs: n, coverage: pairs.coverage, source: pairs.source };
    if n == 0 {
        let read = |name: &str| campaign.readings(name, metric).next().is_some();
        let why = |name| campaign.not_simulated(name, metric).or_else(|| campaign.not_sampled(name, metric));
        if let Some(reason) = Some(variant).filter(|_| !read(variant)).and_then(why) {
            return Err(Obstacle::Missing(reason));
        }
        if let Some(reason) = why(&experiment.baseline) {
            return Err(Obstacle::Missing(format!("of the baseline, {reason}")));
        }
        return Err(Obstacle::Missing(
            match (read(variant), read(&experiment.baseline)) {
                (false, _) => "not counted here",
                (true, false) => "not counted for the baseline",
                (true, true) => "never counted in the same round as the baseline",
            }
            .to_owned(),
        ));
    }
    let confidence = experiment.judging.confidence;
    let mut stream = Stream::named(experiment.seed, &[variant, metric.name]);
    let (interval, scale) = match experiment.judging.estimator {
        // Simulated counts that are the same each time need no interval, and nothing of theirs is to be trimmed.
        _ if pairs.is_exact() => paired(&pairs, confidence, &mut stream),
        Estimator::Paired if n < FEWEST_PAIRS => {
            let rounds = if n == 1 { "1 round is" } else { &format!("{n} rounds are") };
            return Err(Obstacle::TooFew(
                format!("{rounds} too few for an interval: {FEWEST_PAIRS} are needed"),
                count,
            ));
        }
        Estimator::TenRunTrim if n < TEN_RUNS => {
            return Err(Obstacle::TooFew(
                format!("the ten-run estimator needs ten rounds, and there are {n}"),
                count,
            ));
        }
        // Which ten of more would be a choice, and a choice made after the fact is none of the paper's.
        Estimator::TenRunTrim if n > TEN_RUNS => {
            return Err(Obstacle::Withheld(
                format!("the ten-run estimator is for exactly ten rounds, and there are {n}"),
                count,
            ));
        }
        Estimator::Paired => paired(&pairs, confidence, &mut stream),
        Estimator::TenRunTrim => ten_run_trim(&pairs, confidence, &mut stream),
    }
    .ok_or_else(|| {
        Obstacle::Withheld(
            "the baseline counts 0 and the variant does not, so there is no ratio".to_owned(),
            count,
        )
    })?;
    let p = interval.p_value(0.0, n as usize, confidence);
    Ok(Comparison { interval, scale, p, count })
}

/// The adaptive trimmed mean of the paired log-ratios; where some run counted 0, the difference of the means as a
/// share of the baseline's. A logarithm of 0 is none, and adding 1 to everything first would make the verdict depend
/// on the unit. Plain means, there, because rare events are exactly what trimming would remove. Absent where the
/// baseline counts only 0.
fn paired(pairs: &Pairs, confidence: f64, stream: &mut Stream) -> Option<(Interval, Scale)> {
    let positive = |pair: &Pair| pair.variant > 0.0 && pair.baselines().all(|value| value > 0.0);
    if pairs.values.iter().all(positive) {
        return Some((log_ratios(&pairs.values, confidence, stream), Scale::Log));
    }
    Some((shares(&pairs.values, confidence, stream)?, Scale::Share))
}

/// The middle of all log-ratios. Where the baseline was read twice in a round, that round has two, side by side and
/// not averaged: the average of two baselines, one of them slowed, is slowed by half, and a load would then pull the
/// middle away from the variant, for as long as the variant itself is met by it less often than one of two. Rounds are
/// resampled, with all that they hold.
pub(crate) fn log_ratios(pairs: &[Pair], confidence: f64, stream: &mut Stream) -> Interval {
    let n = pairs.len();
    let mut ranked: Vec<(f64, usize)> = pairs
        .iter()
        .enumerate()
        .flat_map(|(round, pair)| {
            pair.baselines().map(move |baseline| ((pair.variant / baseline).ln(), round))
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = ranked[ranked.len() / 2].0;
    let (mut sorted, rounds): (Vec<f64>, Vec<usize>) = ranked.into_iter().unzip();
    if equal(&sorted) {
        return Interval::exact(middle);
    }
    sorted.iter_mut().for_each(|ratio| *ratio -= middle);
    let centred = if sorted.len() == n {
        // One log-ratio a round: which of them is called which round is all one.
        interval(n, reach(n, confidence, Widening::Trimmed), stream, |counts| adaptive(&sorted, counts))
    } else {
        let drawn = RefCell::new(vec![0; sorted.len()]);
        interval(n, reach(n, confidence, Widening::TrimmedTwice), stream, |counts| {
            let mut drawn = drawn.borrow_mut();
            drawn.iter_mut().zip(&rounds).for_each(|(drawn, &round)| *drawn = counts[round]);
            adaptive(&sorted, &drawn)
        })
    };
    let found = Interval {
        estimate: centred.estimate + middle,
        low: centred.low + middle,
        high: centred.high + middle,
    };
    let by_round: Vec<f64> =
        pairs.iter().map(|pair| pair.variant.ln() - average(pair.baselines().map(f64::ln))).collect();
    found.stretched(inflation(&by_round))
}

/// The difference of the means, as a share of the baseline's; absent where the baseline counts only 0.
fn shares(pairs: &[Pair], confidence: f64, stream: &mut Stream) -> Option<Interval> {
    let n = pairs.len();
    let beside: Vec<(f64, f64)> =
        pairs.iter().map(|pair| (pair.variant, average(pair.baselines()))).collect();
    let mean = average(beside.iter().map(|pair| pair.1));
    if mean <= 0.0 {
        return beside.iter().all(|pair| pair.0 == 0.0).then_some(Interval::exact(0.0));
    }
    let differences: Vec<f64> =
        beside.iter().map(|(variant, baseline)| (variant - baseline) / mean).collect();
    let mut sorted = differences.clone();
    sorted.sort_by(f64::total_cmp);
    if equal(&sorted) {
        return Some(Interval::exact(sorted[n / 2]));
    }
    let found = interval(n, reach(n, confidence, Widening::Mean), stream, |counts| {
        let (sum, total) = sorted.iter().zip(counts).fold((0.0, 0.0), |(sum, total), (value, &count)| {
            (sum + f64::from(count) * value, total + f64::from(count))
        });
        sum / total
    });
    Some(found.stretched(inflation(&differences)))
}

fn average(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Whether sorted values are one value, but for the rounding of a division and a logarithm.
fn equal(sorted: &[f64]) -> bool {
    match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => last - first <= 1e-13,
        _ => true,
    }
}

/// peringer-2007's estimator: each variant's two slowest and two fastest of ten runs left out, the averages of the
/// remaining six compared; the interval from resampling rounds. The paper gives no interval.
fn ten_run_trim(pairs: &Pairs, confidence: f64, stream: &mut Stream) -> Option<(Interval, Scale)> {
    let n = pairs.values.len();
    let ranked = |value: fn(&Pair) -> f64| {
        let mut ranked: Vec<(f64, usize)> =
            pairs.values.iter().enumerate().map(|(unit, pair)| (value(pair), unit)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked
    };
    let (variant, baseline) = (ranked(|pair| pair.variant), ranked(|pair| pair.baseline));
    let every = vec![1; n];
    let (of_variant, of_baseline) = (average_of_six(&variant, &every), average_of_six(&baseline, &every));
    if of_baseline <= 0.0 {
        return (of_variant == 0.0).then_some((Interval::exact(0.0), Scale::Share));
    }
    let positive = pairs.values.iter().all(|pair| pair.variant > 0.0 && pair.baseline > 0.0);
    let scale = if positive { Scale::Log } else { Scale::Share };
    // With the narrower reach, simulated coverage falls to 92 % under drift.
    let found = interval(n, reach(n, confidence, Widening::Mean), stream, |counts| {
        let (v, b) = (average_of_six(&variant, counts), average_of_six(&baseline, counts));
        match scale {
            Scale::Log => (v / b).ln(),
            Scale::Share => (v - b) / of_baseline,
        }
    });
    Some((found, scale))
}

/// The average of ranked values, each as often as its unit was drawn, without the two lowest and the two highest.
fn average_of_six(ranked: &[(f64, usize)], counts: &[u32]) -> f64 {
    let n: u32 = counts.iter().sum();
    let (first, last) = (TEN_RUNS_CUT, n - TEN_RUNS_CUT);
    let (mut passed, mut sum) = (0, 0.0);
    for &(value, unit) in ranked {
        let (begin, end) = (passed, passed + counts[unit]);
        passed = end;
        sum += f64::from(end.min(last).saturating_sub(begin.max(first))) * value;
    }
    sum / f64::from(last - first)
}

/// Every verdict that this evidence bears.
pub fn judge(evidence: &Evidence) -> Judgement {
    let experiment = evidence.experiment;
    let campaign = Campaign::of(evidence);
    let twin = experiment.twin();
    let metrics = &experiment.metrics;
    let compared = |variant: &str| -> Vec<Result<Comparison, Obstacle>> {
        let baselines = baselines(evidence, &campaign, variant, &twin);
        metrics
            .iter()
            .map(|metric| match obstacle(evidence, &campaign, variant) {
                Some(obstacle) => Err(obstacle),
                None => compare(experiment, &campaign, variant, baselines, metric),
            })
            .collect()
    };
    let again = compared(&twin);
    let challengers: Vec<&str> = experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .filter(|name| *name != experiment.baseline)
        .collect();
    let made: Vec<(&str, Vec<_>)> = challengers.iter().map(|name| (*name, compared(name))).collect();

    // The family: every comparison somebody asked for that has a figure. The A/A pair only sets floors.
    let deciding = experiment.deciding();
    let of_family: Vec<(f64, bool)> = made
        .iter()
        .flat_map(|(_, comparisons)| comparisons.iter().zip(metrics))
        .filter_map(|(comparison, metric)| Some((comparison.as_ref().ok()?.p, deciding.contains(metric))))
        .collect();
    let weights = weights(&of_family.iter().map(|member| member.1).collect::<Vec<_>>());
    let members: Vec<Member> =
        of_family.iter().zip(weights).map(|(&(p, _), weight)| Member { p, weight }).collect();
    let comparisons = members.len();
    let mut adjusted = adjusted(&members).into_iter();

    let mut verdicts = Vec::new();
    for (variant, results) in &made {
        let allowed = match evidence.standings.get(*variant) {
            Some(Standing::DifferentAllowed(how)) => Some(format!("{}, which was allowed", differs(how))),
            _ => None,
        };
        for ((metric, result), floor) in metrics.iter().zip(results).zip(&again) {
            let blank = blank(experiment, variant, metric);
            verdicts.push(match result {
                Err(obstacle) => stopped(blank, obstacle, floor),
                Ok(comparison) => {
                    let adjusted = adjusted.next().unwrap_or(1.0);
                    worded(blank, comparison, adjusted, floor, allowed.as_deref())
                }
            });
        }
    }
    for (metric, result) in metrics.iter().zip(&again) {
        let blank = blank(experiment, &twin, metric);
        verdicts.push(match result {
            Err(obstacle) => stopped(blank, obstacle, result),
            Ok(comparison) => of_twin(blank, comparison),
        });
    }

    let everyone = experiment.variants.iter().map(|variant| variant.name.as_str()).chain([twin.as_str()]);
    let typical = everyone
        .flat_map(|variant| metrics.iter().map(move |metric| (variant, metric)))
        .filter_map(|(variant, metric)| typical(&campaign, variant, metric))
        .collect();
    Judgement { verdicts, typical, comparisons }
}

/// A verdict with nothing in it yet.
fn blank(experiment: &Experiment, variant: &str, metric: Metric) -> Verdict {
    Verdict {
        metric,
        variant: variant.to_owned(),
        baseline: experiment.baseline.clone(),
        ratio: None,
        low: None,
        high: None,
        confidence: experiment.judging.confidence,
        floor: None,
        pairs: 0,
        p: None,
        adjusted_p: None,
        coverage: 1.0,
        source: None,
        word: Word::Missing,
        reason: None,
    }
}

/// The verdict where no comparison could be made.
fn stopped(blank: Verdict, obstacle: &Obstacle, again: &Result<Comparison, Obstacle>) -> Verdict {
    let (word, reason, count) = match obstacle {
        Obstacle::Missing(reason) => (Word::Missing, reason, NOTHING_READ),
        Obstacle::Withheld(reason, count) | Obstacle::TooFew(reason, count) => {
            (Word::Withheld, reason, *count)
        }
    };
    Verdict {
        word,
        reason: Some(reason.clone()),
        floor: again.as_ref().ok().map(floor_of),
        pairs: count.pairs,
        coverage: count.coverage,
        source: count.source,
        ..blank
    }
}

/// The figures of a comparison, without a word yet.
fn figures(blank: Verdict, comparison: &Comparison) -> Verdict {
    let Comparison { interval, scale, p, count } = comparison;
    Verdict {
        ratio: Some(scale.ratio(interval.estimate)),
        low: Some(scale.ratio(interval.low)),
        high: Some(scale.ratio(interval.high)),
        p: Some(*p),
        pairs: count.pairs,
        coverage: count.coverage,
        source: count.source,
        ..blank
    }
}

/// The detection floor that an A/A comparison sets: how far its interval reaches from its estimate, to the farther
/// side, and the estimate itself, added as independent errors are, in their squares. The truth of this pair is known,
/// so an estimate inside its reach is mostly luck, which the reach allows for: adding the one to the other, as the far
/// end of the interval does, counts it twice and hides differences that were seen well enough. But leaving such an
/// estimate out forgets what it tells of states that outlive a run: see `docs/verdicts.md`.
fn floor_of(again: &Comparison) -> f64 {
    let Interval { estimate, low, high } = again.interval;
    let reach = (estimate - low).max(high - estimate);
    again.scale.departure(reach.hypot(estimate))
}

/// The word: a difference must be outside its own interval, above the floor, and beyond luck among all comparisons.
fn worded(
    blank: Verdict,
    comparison: &Comparison,
    adjusted: f64,
    again: &Result<Comparison, Obstacle>,
    allowed: Option<&str>,
) -> Verdict {
    let alpha = 1.0 - blank.confidence;
    let figures = Verdict { adjusted_p: Some(adjusted), ..figures(blank, comparison) };
    let floor = match again {
        Ok(again) => floor_of(again),
        Err(Obstacle::Missing(why) | Obstacle::Withheld(why, _) | Obstacle::TooFew(why, _)) => {
            return Verdict {
                word: Word::Withheld,
                reason: Some(format!("there is no floor, because of the A/A pair: {why}")),
                ..figures
            };
        }
    };
    let Interval { estimate, low, high } = comparison.interval;
    let seen = comparison.scale.departure(estimate);
    let shown = share(seen);
    let doubt = if estimate == 0.0 && low == high {
        Some("equal in every run".to_owned())
    } else if low <= 0.0 && high >= 0.0 {
        Some("its interval includes no difference".to_owned())
    } else if seen <= floor {
        Some(format!("a difference of {shown} was seen, but this machine's floor is {}", share(floor)))
    } else if adjusted > alpha {
        Some(format!(
            "a difference of {shown} was seen, but among all comparisons it may be chance (p {adjusted:.2})"
        ))
    } else {
        None
    };
    let word = match doubt {
        Some(_) => Word::Same,
        None if estimate < 0.0 => Word::Lower,
        None => Word::Higher,
    };
    let reason = match (doubt, allowed) {
        (Some(doubt), Some(allowed)) => Some(format!("{doubt}; {allowed}")),
        (doubt, allowed) => doubt.or(allowed.map(str::to_owned)),
    };
    Verdict { floor: Some(floor), word, reason, ..figures }
}

/// The A/A pair's verdict: always `same`, since whatever it shows is the floor.
fn of_twin(blank: Verdict, comparison: &Comparison) -> Verdict {
    let Interval { estimate, low, high } = comparison.interval;
    let reason = (low > 0.0 || high < 0.0).then(|| {
        let seen = share(comparison.scale.departure(estimate));
        format!("the baseline differs from itself by {seen} here, which the floor includes")
    });
    Verdict { word: Word::Same, floor: Some(floor_of(comparison)), reason, ..figures(blank, comparison) }
}

/// Half the width of the widest interval that decides when `--until` is reached: over the deciding metrics, every
/// measured variant and the A/A pair, in the units in which it is shown (0.01 is ±1 % of the baseline's figure).
/// Absent while an interval is still to come; variants and metrics that no further round can mend are passed over.
pub fn widest_half_width(evidence: &Evidence) -> Option<f64> {
    let experiment = evidence.experiment;
    let campaign = Campaign::of(evidence);
    let twin = experiment.twin();
    let others = experiment.variants.iter().map(|variant| variant.name.as_str());
    let mut widest: Option<f64> = None;
    for variant in others.filter(|name| *name != experiment.baseline).chain([twin.as_str()]) {
        if obstacle(evidence, &campaign, variant).is_some() {
            continue;
        }
        let baselines = baselines(evidence, &campaign, variant, &twin);
        for metric in experiment.deciding() {
            match compare(experiment, &campaign, variant, baselines, metric) {
                Ok(Comparison { interval, scale, .. }) => {
                    let half = 0.5 * (scale.ratio(interval.high) - scale.ratio(interval.low));
                    widest = Some(widest.map_or(half, |widest| widest.max(half)));
                }
                Err(Obstacle::TooFew(..)) => return None,
                Err(Obstacle::Missing(_) | Obstacle::Withheld(..)) => {}
            }
        }
    }
    widest
}
