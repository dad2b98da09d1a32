//! From pairs to verdicts.

use widthwise_experiment::{metric, VariantStatus};

use crate::comparison::{baselines, compare, differs, obstacle, Comparison, Obstacle};
use crate::decision::{blank, of_control, stopped, worded, Significance};
use crate::family::Family;
use crate::pairs::Campaign;
use crate::typical::typical;
use crate::x32_runtime::weigh;
use crate::{Evidence, Judgement};

/// Every verdict on this evidence.
pub fn judge(evidence: &Evidence) -> Judgement {
    let experiment = evidence.experiment;
    let campaign = Campaign::of(evidence);
    let control = experiment.control();
    let metrics = &experiment.metrics;
    let compared = |variant: &str| -> Vec<Result<Comparison, Obstacle>> {
        let baselines = baselines(evidence, &campaign, variant, &control);
        metrics
            .iter()
            .map(|metric| match obstacle(evidence, &campaign, variant) {
                Some(obstacle) => Err(obstacle),
                None => compare(experiment, &campaign, variant, baselines, metric),
            })
            .collect()
    };
    let controls = compared(&control);
    let challengers: Vec<&str> = experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .filter(|name| *name != experiment.baseline)
        .collect();
    let made: Vec<(&str, Vec<_>)> = challengers.iter().map(|name| (*name, compared(name))).collect();

    let family = Family::of(experiment, &made);
    let mut significances = family.significances();

    let mut verdicts = Vec::new();
    for (variant, results) in &made {
        let allowed = match evidence.statuses.get(*variant) {
            Some(VariantStatus::OutputMismatchAllowed(how)) => {
                Some(format!("{}, which was allowed", differs(how)))
            }
            _ => None,
        };
        for ((metric, result), floor) in metrics.iter().zip(results).zip(&controls) {
            let blank = blank(experiment, variant, metric);
            verdicts.push(match result {
                Err(obstacle) => stopped(blank, obstacle, floor),
                Ok(comparison) => {
                    let none = Significance { adjusted: 1.0, multiplicity: 1.0 };
                    let significance = significances.next().unwrap_or(none);
                    worded(blank, comparison, significance, floor, allowed.as_deref())
                }
            });
        }
    }
    for (metric, result) in metrics.iter().zip(&controls) {
        let blank = blank(experiment, &control, metric);
        verdicts.push(match result {
            Err(obstacle) => stopped(blank, obstacle, result),
            Ok(comparison) => of_control(blank, comparison),
        });
    }

    // The runtime's share is reported wherever its CPU time was read.
    let asked_and_runtime = || {
        let not_asked = metric::runtime().filter(|metric| !metrics.contains(metric));
        metrics.iter().copied().chain(not_asked)
    };
    let everyone = experiment.variants.iter().map(|variant| variant.name.as_str()).chain([control.as_str()]);
    let typical = everyone
        .flat_map(|variant| asked_and_runtime().map(move |metric| (variant, metric)))
        .filter_map(|(variant, metric)| typical(&campaign, variant, metric))
        .collect();
    let runtime = weigh(evidence, &campaign, &controls, &family, &mut verdicts);
    let rss_lag = made
        .iter()
        .flat_map(|(_, results)| metrics.iter().zip(results))
        .filter(|(metric, _)| metric.name == "max_rss")
        .filter_map(|(_, result)| Some(result.as_ref().ok()?.rss_lag?.bytes()))
        .reduce(f64::max);
    Judgement { verdicts, typical, comparisons: family.members(), runtime, rss_lag }
}

/// Half the width of the widest interval that decides when `--precision` is reached: over the deciding metrics, every
/// measured variant and the A/A pair, in the units in which it is shown (0.01 is ±1 % of the baseline's figure). Absent
/// while an interval is still to come; variants and metrics that no further round can fix are skipped.
pub fn half_width(evidence: &Evidence) -> Option<f64> {
    let experiment = evidence.experiment;
    let campaign = Campaign::of(evidence);
    let control = experiment.control();
    let others = experiment.variants.iter().map(|variant| variant.name.as_str());
    let mut widest: Option<f64> = None;
    for variant in others.filter(|name| *name != experiment.baseline).chain([control.as_str()]) {
        if obstacle(evidence, &campaign, variant).is_some() {
            continue;
        }
        let baselines = baselines(evidence, &campaign, variant, &control);
        for metric in experiment.deciding() {
            match compare(experiment, &campaign, variant, baselines, metric) {
                Ok(Comparison { interval, scale, .. }) => {
                    // If the baseline is 0, a width has no share of it, and no further round changes that.
                    let Some(half) = scale.half_width(interval) else { continue };
                    widest = Some(widest.map_or(half, |widest| widest.max(half)));
                }
                Err(Obstacle::TooFew(..)) => return None,
                Err(Obstacle::Missing(_) | Obstacle::Withheld(..)) => {}
            }
        }
    }
    widest
}
