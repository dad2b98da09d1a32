//! The shape of each variant's distribution: a histogram about its own median, all on one axis.

use maud::{html, Markup};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;

use super::axis::{signed_percent, Scale, WIDTH};
use super::plot::{axis, drawing, grid, instead, row, Path};
use super::samples::{fenced, why_none};
use super::wording::name;
use crate::comparison::Comparison;
use crate::format::counted;
use crate::sanitize;
use crate::series::Series;
use widthwise_verdict::distribution::quantile;

const HEIGHT: u32 = 44;
const BINS: usize = 60;
const FENCE: f64 = 5.0;

/// The distance of a value from its variant's median: as a share of it if every median is above zero,
/// otherwise in the metric's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distance {
    /// A fraction of the median.
    Share,
    /// An amount.
    Amount(Unit),
}

impl Distance {
    /// The suitable kind of distance for those series.
    pub fn of(series: &[Series], unit: Unit) -> Distance {
        let mut medians = series.iter().filter_map(|series| quantile(&series.timed(), 0.5));
        if medians.all(|median| median > 0.0) {
            Distance::Share
        } else {
            Distance::Amount(unit)
        }
    }

    /// The distance of a value from that median.
    pub fn from(self, median: f64, value: f64) -> f64 {
        match self {
            Distance::Share => value / median - 1.0,
            Distance::Amount(_) => value - median,
        }
    }

    /// The ticks of an axis of such distances.
    pub fn ticks(self, scale: &Scale, about: usize) -> Vec<(f64, String)> {
        let ticks = scale.ticks(about);
        match self {
            Distance::Share => ticks.shares(),
            Distance::Amount(unit) => ticks.amounts(unit),
        }
    }

    /// One distance as text.
    pub fn shown(self, distance: f64) -> String {
        match self {
            Distance::Share if distance.abs() < 0.00095 => signed_percent(distance, 2),
            Distance::Share if distance.abs() < 0.0995 => signed_percent(distance, 1),
            Distance::Share => signed_percent(distance, 0),
            Distance::Amount(unit) => {
                let sign = if distance < 0.0 { "−" } else { "+" };
                format!("{sign}{}", Quantity { value: distance.abs(), unit })
            }
        }
    }
}

pub fn figure(comparison: &Comparison, metric: Metric, series: &[Series]) -> Markup {
    let distance = Distance::of(series, metric.unit);
    let about: Vec<(&str, Vec<f64>)> = series
        .iter()
        .map(|series| {
            let values = series.timed();
            let median = quantile(&values, 0.5).unwrap_or_default();
            let distances = values.iter().map(|value| distance.from(median, *value)).collect();
            (series.variant.as_str(), distances)
        })
        .collect();
    if about.iter().all(|(_, distances)| distances.len() < 2) {
        return html! {};
    }
    if about.iter().flat_map(|(_, distances)| distances).all(|distance| *distance == 0.0) {
        return html! { p class="none" { "All timed runs of each variant gave the same number." } };
    }
    let scale = Scale::over(about.iter().flat_map(|(_, distances)| fenced(distances, FENCE)));
    let ticks: Vec<(f64, String)> =
        distance.ticks(&scale, 5).into_iter().map(|(at, text)| (scale.place(at), text)).collect();
    let places: Vec<f64> = ticks.iter().map(|tick| tick.0).collect();
    html! {
        figure class="shapes" {
            figcaption {
                strong { "Shape" }
                span { "The distribution of each variant’s timed runs about its own median; runs beyond the axis are counted "
                    "at its edge." }
            }
            @for (variant, distances) in &about {
                (row(name(comparison, variant),
                    histogram(comparison, variant, distances, &scale, &places, distance),
                    spread(distances, distance)))
            }
            (axis(&ticks))
        }
    }
}

fn histogram(
    comparison: &Comparison,
    variant: &str,
    distances: &[f64],
    scale: &Scale,
    places: &[f64],
    distance: Distance,
) -> Markup {
    if distances.is_empty() {
        return instead(&why_none(comparison, variant));
    }
    let mut counts = [0usize; BINS];
    for value in distances {
        let bin = (scale.place(*value) / WIDTH * BINS as f64) as usize;
        counts[bin.min(BINS - 1)] += 1;
    }
    let tallest = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let (width, room) = (WIDTH / BINS as f64, f64::from(HEIGHT) - 4.0);
    let (mut bars, mut zero) = (Path::default(), Path::default());
    for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = *count as f64 / tallest * room;
        bars.bar(i as f64 * width + 1.0, f64::from(HEIGHT) - height, width - 2.0, height);
    }
    zero.down(scale.place(0.0), 0.0, f64::from(HEIGHT));
    let label = format!(
        "{}: distribution of {} about the median; middle half {}",
        sanitize::line(variant),
        counted(distances.len(), "run"),
        middle_half(distances, distance).unwrap_or_default()
    );
    drawing(
        "shape",
        HEIGHT,
        &label,
        html! { (grid(places, HEIGHT)) (zero.drawn("zero")) (bars.drawn("bars")) },
    )
}

fn spread(distances: &[f64], distance: Distance) -> Markup {
    html! {
        @if let Some(half) = middle_half(distances, distance) {
            span class="quiet" { "middle half " } (half)
        }
    }
}

/// The range of the middle half about the median: `−0.3 % … +0.4 %`.
fn middle_half(ascending: &[f64], distance: Distance) -> Option<String> {
    let (low, high) = (quantile(ascending, 0.25)?, quantile(ascending, 0.75)?);
    if low == high {
        return Some("all alike".to_owned());
    }
    Some(format!("{}\u{a0}…\u{a0}{}", distance.shown(low), distance.shown(high)))
}
