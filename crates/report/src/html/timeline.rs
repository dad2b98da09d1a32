//! Order effects: each run against time, and against its position in the round.

use maud::{html, Markup};
use widthwise_experiment::Metric;

use super::axis::{Scale, WIDTH};
use super::histogram::Distance;
use super::plot::{axis, downsampled, drawing, grid, instead, row, Path};
use super::samples::{fenced, why_none};
use super::wording::{name, thinning, MOST_DOTS};
use crate::comparison::Comparison;
use crate::format::{counted, duration};
use crate::series::{Point, Series};
use crate::{noisy_rounds, sanitize};
use widthwise_verdict::distribution::quantile;

const HEIGHT: u32 = 64;
const FENCE: f64 = 5.0;
/// A pause between two rounds is marked when it is this many times as long as a typical round.
const PAUSE: f64 = 20.0;

/// One panel for each variant, all with the same axes, so that effects on all variants are visible.
pub fn figure(comparison: &Comparison, metric: Metric, series: &[Series]) -> Markup {
    let distance = Distance::of(series, metric.unit);
    let medians: Vec<Option<f64>> = series.iter().map(|series| quantile(&series.timed(), 0.5)).collect();
    if medians.iter().all(Option::is_none) {
        return html! {};
    }
    let ends = series.iter().zip(&medians).flat_map(|(series, median)| {
        let about = median.map(|median| series.timed().iter().map(|v| distance.from(median, *v)).collect());
        fenced(&about.unwrap_or_else(Vec::new), FENCE)
    });
    let scale = Scale::over(ends.chain([0.0]));
    let ground = Ground::of(comparison);
    let running = running(comparison.campaign.timed_rounds());
    let longest = series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let ticks = ground.ticks(comparison);
    html! {
        figure class="times" {
            figcaption {
                strong { "Over time" }
                span {
                    "Each run relative to its variant’s median, the line; runs beyond the edge are drawn at the edge. "
                    "The curve is a running median of " (running) " rounds; drift is the last third of the timed runs "
                    "against the first. "
                    span class="key noisy" {} " noisy rounds (" (noisy_rounds::noisy_means()) "). "
                    span class="key idle" {} " warm-up and interrupted rounds, hollow dots. "
                    @if !ground.pauses.is_empty() { "Dashed: the campaign paused. " }
                    @if let Some(note) = thinning(longest) { (note) }
                }
            }
            @for (series, median) in series.iter().zip(&medians) {
                @match median {
                    Some(median) => (panel(comparison, series, *median, distance, &scale, &ground)),
                    None => (row(name(comparison, &series.variant),
                        instead(&why_none(comparison, &series.variant)), html! {})),
                }
            }
            (axis(&ticks))
        }
    }
}

/// The background of every panel: the rounds, the noisy ones, and the campaign's pauses.
struct Ground {
    width: f64,
    noisy: Vec<(usize, usize)>,
    idle: Vec<(usize, usize)>,
    pauses: Vec<(usize, f64)>,
}

impl Ground {
    fn of(comparison: &Comparison) -> Ground {
        let rounds = comparison.campaign.rounds;
        let spans = |marked: &dyn Fn(usize) -> bool| {
            let mut spans: Vec<(usize, usize)> = Vec::new();
            for i in (0..rounds.len()).filter(|i| marked(*i)) {
                match spans.last_mut() {
                    Some((_, end)) if *end == i => *end = i + 1,
                    _ => spans.push((i, i + 1)),
                }
            }
            spans
        };
        Ground {
            width: WIDTH / rounds.len().max(1) as f64,
            noisy: spans(&|i| noisy_rounds::is_noisy(&rounds[i].noise)),
            idle: spans(&|i| !rounds[i].kind.counts()),
            pauses: pauses(comparison),
        }
    }

    fn drawn(&self) -> Markup {
        let bars = |spans: &[(usize, usize)]| {
            let mut path = Path::default();
            for (from, to) in spans {
                let (x, width) = (*from as f64 * self.width, (to - from) as f64 * self.width);
                path.bar(x, 0.0, width, f64::from(HEIGHT));
            }
            path
        };
        let mut pauses = Path::default();
        for (round, _) in &self.pauses {
            pauses.down(*round as f64 * self.width, 0.0, f64::from(HEIGHT));
        }
        html! {
            (bars(&self.idle).drawn("idle")) (bars(&self.noisy).drawn("noisy")) (pauses.drawn("pause"))
        }
    }

    /// Round numbers, and the elapsed time at their start.
    fn ticks(&self, comparison: &Comparison) -> Vec<(f64, String)> {
        let rounds = comparison.campaign.rounds;
        let Some(last) = rounds.len().checked_sub(1) else { return Vec::new() };
        let places: Vec<usize> = (0..=4).map(|i| i * last / 4).collect();
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for place in places {
            let x = (place as f64 + 0.5) * self.width;
            if ticks.last().is_none_or(|(before, _)| x > *before) {
                let word = if ticks.is_empty() { "round " } else { "" };
                ticks.push((x, format!("{word}{}", rounds[place].number)));
            }
        }
        for (round, seconds) in &self.pauses {
            let length = std::time::Duration::try_from_secs_f64(*seconds).unwrap_or_default();
            ticks.push((*round as f64 * self.width, format!("paused {}", duration(length))));
        }
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks
    }
}

/// The rounds before which the campaign paused, and the pauses in seconds.
fn pauses(comparison: &Comparison) -> Vec<(usize, f64)> {
    let mut began: Vec<Option<f64>> = vec![None; comparison.campaign.rounds.len()];
    let places: std::collections::HashMap<u32, usize> =
        comparison.campaign.rounds.iter().enumerate().map(|(place, round)| (round.number, place)).collect();
    for run in comparison.runs {
        if let Some(place) = places.get(&run.round) {
            let start = run.began_ns as f64 / 1e9;
            began[*place] = Some(began[*place].map_or(start, |first: f64| first.min(start)));
        }
    }
    let steps: Vec<(usize, f64)> =
        (1..began.len()).filter_map(|i| Some((i, began[i]? - began[i - 1]?))).collect();
    let mut lengths: Vec<f64> = steps.iter().map(|step| step.1).collect();
    lengths.sort_by(f64::total_cmp);
    let usual = quantile(&lengths, 0.5).unwrap_or_default();
    steps.into_iter().filter(|(_, length)| usual > 0.0 && *length > PAUSE * usual).collect()
}

fn panel(
    comparison: &Comparison,
    series: &Series,
    median: f64,
    distance: Distance,
    scale: &Scale,
    ground: &Ground,
) -> Markup {
    let height = f64::from(HEIGHT);
    let inner = height - 8.0;
    let places = (comparison.campaign.experiment.variants.len() + 1) as f64;
    let x = |point: &Point| (point.round as f64 + (f64::from(point.position) + 0.5) / places) * ground.width;
    let y = |value: f64| 4.0 + inner - scale.place(distance.from(median, value)) / WIDTH * inner;
    let (mut dots, mut idle, mut edge, mut line, mut curve) =
        (Path::default(), Path::default(), Path::default(), Path::default(), Path::default());
    line.across(0.0, WIDTH, y(median));
    let held = |point: &Point| scale.holds(distance.from(median, point.value));
    let (timed, untimed): (Vec<Point>, Vec<Point>) =
        series.points.iter().partition(|point| point.kind.counts());
    let (inside, beyond): (Vec<Point>, Vec<Point>) = timed.into_iter().partition(held);
    for point in downsampled(&inside, MOST_DOTS) {
        dots.dot(x(&point), y(point.value));
    }
    for point in downsampled(&untimed, MOST_DOTS) {
        idle.dot(x(&point), y(point.value));
    }
    for point in &beyond {
        let end = y(point.value);
        edge.down(x(point), end - 3.0, end + 3.0);
    }
    for (place, value) in running_medians(&series.points, running(comparison.campaign.timed_rounds())) {
        curve.through((place as f64 + 0.5) * ground.width, y(value));
    }
    let label = format!(
        "{}: {} over time, relative to their median",
        sanitize::line(&series.variant),
        counted(series.points.len(), "run")
    );
    let (low, high) = scale.ends();
    let plot = html! {
        span class="edge-label top" { (distance.shown(high)) }
        span class="edge-label foot" { (distance.shown(low)) }
        (drawing(
            "time",
            HEIGHT,
            &label,
            html! {
                (ground.drawn()) (line.drawn("zero")) (curve.drawn("running")) (dots.drawn("dots"))
                (edge.drawn("edge")) (idle.drawn("dots idle")) (idle.drawn("hole"))
            },
        ))
    };
    row(name(comparison, &series.variant), plot, drift(&series.points, median, distance))
}

/// The number of rounds in the running median: enough to show a drift, too few to hide a burst; odd, so that
/// it has a middle.
fn running(timed: usize) -> usize {
    (timed / 40).max(3) * 2 + 1
}

/// The median of each timed run and its neighbours, downsampled for the screen.
fn running_medians(points: &[Point], span: usize) -> Vec<(usize, f64)> {
    let timed: Vec<&Point> = points.iter().filter(|point| point.kind.counts()).collect();
    let medians: Vec<(usize, f64)> = timed
        .windows(span)
        .filter_map(|window| {
            let mut values: Vec<f64> = window.iter().map(|point| point.value).collect();
            values.sort_by(f64::total_cmp);
            Some((window[span / 2].round, quantile(&values, 0.5)?))
        })
        .collect();
    downsampled(&medians, MOST_DOTS)
}

/// The last third of the timed runs against the first.
fn drift(points: &[Point], median: f64, distance: Distance) -> Markup {
    let timed: Vec<f64> =
        points.iter().filter(|point| point.kind.counts()).map(|point| point.value).collect();
    let third = timed.len() / 3;
    if third < 3 {
        return html! {};
    }
    let median_of = |part: &[f64]| {
        let mut sorted = part.to_vec();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, 0.5).map_or(0.0, |value| distance.from(median, value))
    };
    let change = median_of(&timed[timed.len() - third..]) - median_of(&timed[..third]);
    html! { span class="quiet" { "drift " } (distance.shown(change)) }
}

/// The effect of a run's position in the round, all variants together.
pub fn positions(comparison: &Comparison, metric: Metric, series: &[Series]) -> Markup {
    let distance = Distance::of(series, metric.unit);
    let mut by_place: Vec<Vec<f64>> = Vec::new();
    for series in series {
        let Some(median) = quantile(&series.timed(), 0.5) else { continue };
        for point in series.points.iter().filter(|point| point.kind.counts()) {
            let place = point.position as usize;
            // A round has one run for each participant; a higher position means that the archive is damaged.
            if place <= comparison.campaign.experiment.variants.len() {
                by_place.resize(by_place.len().max(place + 1), Vec::new());
                by_place[place].push(distance.from(median, point.value));
            }
        }
    }
    if by_place.iter().filter(|values| values.len() >= 3).count() < 2 {
        return html! {};
    }
    by_place.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
    let quartiles =
        |values: &[f64]| [0.25, 0.5, 0.75].map(|share| quantile(values, share).unwrap_or_default());
    let scale = Scale::over(by_place.iter().flat_map(|values| quartiles(values)).chain([0.0]));
    let ticks: Vec<(f64, String)> =
        distance.ticks(&scale, 5).into_iter().map(|(at, text)| (scale.place(at), text)).collect();
    let places: Vec<f64> = ticks.iter().map(|tick| tick.0).collect();
    html! {
        figure class="places" {
            figcaption {
                strong { "By position in the round" }
                span { "Median and middle half of all variants’ timed runs, each against its own variant’s median. Every "
                    "variant runs at each position, so that what a position costs is not taken for a difference between variants." }
            }
            @for (place, values) in by_place.iter().enumerate() {
                @let [low, median, high] = quartiles(values);
                (row(html! { span class="variant" { (ordinal(place + 1)) } },
                    place_row(place, low, median, high, &scale, &places, distance),
                    html! { (distance.shown(median)) " " span class="quiet" { (counted(values.len(), "run")) } }))
            }
            (axis(&ticks))
        }
    }
}

fn place_row(
    place: usize,
    low: f64,
    median: f64,
    high: f64,
    scale: &Scale,
    places: &[f64],
    distance: Distance,
) -> Markup {
    const ROW: u32 = 22;
    let (mut half, mut dot, mut zero) = (Path::default(), Path::default(), Path::default());
    half.across(scale.place(low), scale.place(high), 11.0);
    dot.dot(scale.place(median), 11.0);
    zero.down(scale.place(0.0), 0.0, f64::from(ROW));
    let label = format!("{} in the round: median {}", ordinal(place + 1), distance.shown(median));
    let inside = html! {
        (grid(places, ROW)) (zero.drawn("zero")) (half.drawn("half")) (dot.drawn("dot"))
    };
    drawing("place", ROW, &label, inside)
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_have_their_suffix() {
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 21, 112].map(ordinal).join(" "),
            "1st 2nd 3rd 4th 11th 12th 21st 112th"
        );
    }
}
