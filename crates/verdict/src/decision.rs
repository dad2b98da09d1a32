//! From a comparison to a verdict: its figures, its word, and the reason for a word that claims nothing.

use widthwise_experiment::{Experiment, Metric};

use crate::bootstrap::Interval;
use crate::comparison::{Comparison, Obstacle, NOTHING_READ};
use crate::effect::Scale;
use crate::floor::Floor;
use crate::power::Projection;
use crate::rss_lag::RssLag;
use crate::wording::{departure_text, margin};
use crate::{Verdict, Word};

/// A verdict with nothing in it yet.
pub(crate) fn blank(experiment: &Experiment, variant: &str, metric: Metric) -> Verdict {
    Verdict {
        metric,
        variant: variant.to_owned(),
        baseline: experiment.baseline.clone(),
        ratio: None,
        difference: None,
        baseline_mean: None,
        low: None,
        high: None,
        confidence: experiment.judging.confidence,
        equal_within: experiment.judging.equal_within,
        floor: None,
        floor_of_decrease: None,
        difference_floor: None,
        pairs: 0,
        p: None,
        adjusted_p: None,
        coverage: 1.0,
        source: None,
        unequal: 0,
        word: Word::NoData,
        reason: None,
        rounds_to_decide: None,
        detectable: None,
        spread: None,
    }
}

/// The verdict where no comparison could be made.
pub(crate) fn stopped(
    blank: Verdict,
    obstacle: &Obstacle,
    control: &Result<Comparison, Obstacle>,
) -> Verdict {
    let (word, reason, count) = match obstacle {
        Obstacle::Missing(reason) => (Word::NoData, reason, NOTHING_READ),
        Obstacle::Withheld(reason, count) | Obstacle::TooFew(reason, count) => {
            (Word::Withheld, reason, *count)
        }
    };
    let verdict = Verdict {
        word,
        reason: Some(reason.clone()),
        pairs: count.pairs,
        coverage: count.coverage,
        source: count.source,
        unequal: count.unequal,
        ..blank
    };
    match control {
        Ok(control) => with_floor(verdict, floor_of(control), control),
        Err(_) => verdict,
    }
}

/// The figures of a comparison, without a word yet.
pub(crate) fn figures(blank: Verdict, comparison: &Comparison) -> Verdict {
    let Comparison { interval: Interval { estimate, low, high }, scale, p, count, spread, .. } = comparison;
    let blank = Verdict {
        p: Some(*p),
        pairs: count.pairs,
        coverage: count.coverage,
        source: count.source,
        unequal: count.unequal,
        spread: *spread,
        ..blank
    };
    match scale {
        Scale::Log => {
            Verdict { ratio: Some(estimate.exp()), low: Some(low.exp()), high: Some(high.exp()), ..blank }
        }
        Scale::Difference { baseline } => Verdict {
            difference: Some(*estimate),
            baseline_mean: Some(*baseline),
            low: Some(*low),
            high: Some(*high),
            ..blank
        },
    }
}

/// The verdict with the floor as it is on the scale of that comparison, and with the lag of the kernel's account.
pub(crate) fn with_floor(verdict: Verdict, floor: Floor, comparison: &Comparison) -> Verdict {
    let departure = floor.on(comparison.scale);
    match (comparison.scale, comparison.rss_lag) {
        (Scale::Log, None) => Verdict { floor: Some(departure), ..verdict },
        (Scale::Log, Some(lag)) => {
            let [increase, decrease] = lag.floors(departure).map(Some);
            Verdict { floor: increase, floor_of_decrease: decrease, ..verdict }
        }
        (Scale::Difference { .. }, _) => Verdict { difference_floor: Some(departure), ..verdict },
    }
}

pub(crate) fn floor_of(control: &Comparison) -> Floor {
    Floor::of(control.interval, control.scale)
}

/// What multiple testing makes of a comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Significance {
    /// The adjusted p-value.
    pub adjusted: f64,
    /// The inverse of the comparison's share of the risk.
    pub multiplicity: f64,
}

/// The word. For a difference, the interval must exclude none, the estimate exceed the floor, and the adjusted p-value
/// be small enough. Otherwise the variant is equivalent if its whole interval lies inside the margin, and else
/// inconclusive.
pub(crate) fn worded(
    blank: Verdict,
    comparison: &Comparison,
    Significance { adjusted, multiplicity }: Significance,
    control: &Result<Comparison, Obstacle>,
    allowed: Option<&str>,
) -> Verdict {
    let figures = Verdict { adjusted_p: Some(adjusted), ..figures(blank, comparison) };
    let floor = match control {
        Ok(control) => floor_of(control),
        Err(Obstacle::Missing(why) | Obstacle::Withheld(why, _) | Obstacle::TooFew(why, _)) => {
            return Verdict {
                word: Word::Withheld,
                reason: Some(format!("there is no floor, because of the A/A pair: {why}")),
                ..figures
            };
        }
    };
    let projection = Projection {
        rounds: figures.pairs,
        interval: comparison.interval,
        scale: comparison.scale,
        floor,
        multiplicity,
        confidence: figures.confidence,
        margin: figures.equal_within,
        spread: comparison.spread,
        floor_spread: control.as_ref().ok().and_then(|control| control.spread),
        error: comparison.rss_lag.map_or(0.0, RssLag::share),
    };
    let (word, reason) = match doubt(&figures, comparison, adjusted, floor) {
        None if comparison.interval.estimate < 0.0 => (Word::Lower, None),
        None => (Word::Higher, None),
        Some(doubt) => {
            let (word, reason) = equivalence(&figures, comparison, &doubt);
            (word, Some(reason))
        }
    };
    let reason = match (reason, allowed) {
        (Some(reason), Some(allowed)) => Some(format!("{reason}; {allowed}")),
        (reason, allowed) => reason.or(allowed.map(str::to_owned)),
    };
    let is_left_to_rounds = word == Word::Inconclusive && !comparison.is_of_bounds;
    let rounds_to_decide = is_left_to_rounds.then(|| projection.rounds_to_decide()).flatten();
    let detectable = (!comparison.is_of_bounds).then(|| projection.detectable(figures.pairs));
    let verdict = Verdict { word, reason, rounds_to_decide, detectable, ..figures };
    let verdict = match comparison.rss_lag {
        Some(lag) => {
            let without = || Projection { error: 0.0, ..projection }.rounds_to_decide();
            let keeps_open = is_left_to_rounds && rounds_to_decide.is_none() && without().is_some();
            lag.included(verdict, keeps_open)
        }
        None => verdict,
    };
    with_floor(verdict, floor, comparison)
}

/// Why no difference can be called.
pub(crate) enum Doubt {
    /// The interval includes no difference.
    Included,
    /// A difference was seen; the text gives the reason against calling it one.
    Seen(String),
}

pub(crate) fn doubt(
    figures: &Verdict,
    comparison: &Comparison,
    adjusted: f64,
    floor: Floor,
) -> Option<Doubt> {
    let Comparison { interval, scale, .. } = comparison;
    if includes_none(*interval) {
        return Some(Doubt::Included);
    }
    let (seen, floor) = (scale.departure(interval.estimate), floor.on(*scale));
    let toward =
        |departure| departure_text(*scale, scale.toward(interval.estimate, departure), figures.metric.unit);
    let against = if seen <= floor {
        format!("this machine's floor is {}", toward(floor))
    } else if adjusted > 1.0 - figures.confidence {
        format!("among all comparisons it may be chance (p {adjusted:.2})")
    } else {
        return None;
    };
    Some(Doubt::Seen(format!("a difference of {} was seen, but {against}", toward(seen))))
}

pub(crate) fn includes_none(interval: Interval) -> bool {
    interval.low <= 0.0 && interval.high >= 0.0
}

/// Whether the two are equivalent, by two one-sided tests: the whole interval lies inside the margin. An interval of 95
/// % errs by 2.5 % to either side, so a difference as large as the margin is called none in 2.5 % of all cases.
pub(crate) fn equivalence(figures: &Verdict, comparison: &Comparison, doubt: &Doubt) -> (Word, String) {
    let Comparison { interval, scale, .. } = comparison;
    let margin = match scale {
        Scale::Log => margin(figures.equal_within),
        Scale::Difference { baseline } => {
            let mean = departure_text(*scale, *baseline, figures.metric.unit);
            format!("{} of the baseline's mean, {mean}", margin(figures.equal_within))
        }
    };
    let is_within = scale.is_within(*interval, figures.equal_within);
    let word = if is_within { Word::NoDifference } else { Word::Inconclusive };
    let reason = match (doubt, is_within) {
        (Doubt::Included, true) if interval.low == interval.high => match figures.unequal {
            0 => "equal in every run".to_owned(),
            unequal => format!("equal in most rounds: {unequal} of {} differ", figures.pairs),
        },
        (Doubt::Included, true) => format!("its whole interval lies within {margin}"),
        (Doubt::Included, false) => {
            format!("its interval includes zero and reaches beyond {margin}")
        }
        (Doubt::Seen(what), true) => format!("{what}; its whole interval lies within {margin}"),
        (Doubt::Seen(what), false) => format!("{what}; its interval reaches beyond {margin}"),
    };
    (word, reason)
}

/// The A/A control's verdict. It is never `lower` or `higher`: its difference is part of the floor.
pub(crate) fn of_control(blank: Verdict, comparison: &Comparison) -> Verdict {
    let Comparison { interval, scale, .. } = comparison;
    let figures = figures(blank, comparison);
    let doubt = if includes_none(*interval) {
        Doubt::Included
    } else {
        let seen = scale.toward(interval.estimate, scale.departure(interval.estimate));
        let seen = departure_text(*scale, seen, figures.metric.unit);
        Doubt::Seen(format!(
            "an A/A difference: the baseline differs from itself by {seen} here, which the floor includes"
        ))
    };
    let (word, reason) = equivalence(&figures, comparison, &doubt);
    with_floor(Verdict { word, reason: Some(reason), ..figures }, floor_of(comparison), comparison)
}
