//! Every sample as a dot, one strip for each variant, on the metric's own axis.

use maud::{html, Markup};
use widthwise_experiment::units::Quantity;
use widthwise_experiment::Metric;

use super::axis::{Scale, WIDTH};
use super::plot::{axis, downsampled, drawing, grid, instead, row, Path};
use super::wording::{amount, name, thinning, MOST_DOTS};
use crate::comparison::Comparison;
use crate::format::counted;
use crate::sanitize;
use crate::series::Series;
use widthwise_verdict::distribution::quantile;

const HEIGHT: u32 = 46;
/// The dots' band; the median and the quartiles are below it.
const SWARM: (f64, f64) = (5.0, 31.0);
const QUARTILES: f64 = 39.0;
/// Dots closer than this, in units of the axis, are stacked: a dot is about 4 pixels of 700 wide.
const BIN: f64 = 6.0;
/// A sample further than this many interquartile ranges from the quartiles is drawn at the edge: it would
/// compress all others.
const FENCE: f64 = 8.0;

pub fn figure(comparison: &Comparison, metric: Metric, series: &[Series]) -> Markup {
    let timed: Vec<(&str, Vec<f64>)> =
        series.iter().map(|series| (series.variant.as_str(), series.timed())).collect();
    if timed.iter().all(|(_, values)| values.is_empty()) {
        return html! { p class="none" { "No timed run has a reading of it." } };
    }
    let scale = Scale::over(timed.iter().flat_map(|(_, values)| fenced(values, FENCE)));
    let ticks: Vec<(f64, String)> =
        scale.ticks(5).amounts(metric.unit).into_iter().map(|(at, text)| (scale.place(at), text)).collect();
    let places: Vec<f64> = ticks.iter().map(|tick| tick.0).collect();
    let beyond = timed.iter().flat_map(|(_, values)| values).filter(|value| !scale.holds(**value)).count();
    let longest = timed.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    html! {
        figure class="strips" {
            figcaption {
                strong { "Every timed run" }
                span {
                    "The tick and the figure beside it are the median, the line is the middle half; the table’s typical value is "
                    "an average that is robust against outliers."
                    @if !scale.shows_zero() { " The axis does not begin at zero." }
                    @if beyond > 0 { " " (counted(beyond, "run")) " beyond the axis: drawn as a bar at its edge." }
                    @if let Some(note) = thinning(longest) { " " (note) }
                }
            }
            @for (variant, values) in &timed {
                @match strip(values, &scale, &places, variant, metric) {
                    Some((plot, value)) => (row(name(comparison, variant), plot, value)),
                    None => (row(name(comparison, variant), instead(&why_none(comparison, variant)), html! {})),
                }
            }
            (axis(&ticks))
        }
    }
}

/// Why a variant has no sample.
pub fn why_none(comparison: &Comparison, variant: &str) -> String {
    match comparison.campaign.not_measured(variant) {
        Some(reason) => format!("not measured: {}", sanitize::line(reason)),
        None => "no timed run has a reading of it".to_owned(),
    }
}

/// The lowest and the highest of the values within the fences.
pub fn fenced(ascending: &[f64], fence: f64) -> Vec<f64> {
    let (Some(low), Some(high)) = (quantile(ascending, 0.25), quantile(ascending, 0.75)) else {
        return Vec::new();
    };
    let reach = fence * (high - low);
    // If the middle half is one number, there is no scale for outliers: everything is shown.
    let inside = |value: &&f64| reach == 0.0 || (low - reach..=high + reach).contains(*value);
    ascending.iter().find(inside).into_iter().chain(ascending.iter().rev().find(inside)).copied().collect()
}

fn strip(
    ascending: &[f64],
    scale: &Scale,
    places: &[f64],
    variant: &str,
    metric: Metric,
) -> Option<(Markup, Markup)> {
    let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(ascending, share));
    let (low, median, high) = (low?, median?, high?);
    let (mut dots, mut edge, mut half, mut tick) =
        (Path::default(), Path::default(), Path::default(), Path::default());
    let inside: Vec<f64> = ascending.iter().copied().filter(|value| scale.holds(*value)).collect();
    for (x, y) in swarm(&downsampled(&inside, MOST_DOTS), scale) {
        dots.dot(x, y);
    }
    for value in ascending.iter().filter(|value| !scale.holds(**value)) {
        let x = if *value > median { WIDTH - 2.0 } else { 2.0 };
        edge.down(x, SWARM.0, SWARM.1);
    }
    half.across(scale.place(low), scale.place(high), QUARTILES);
    tick.down(scale.place(median), QUARTILES - 5.0, QUARTILES + 5.0);
    let shown = |value| Quantity { value, unit: metric.unit };
    let label = format!(
        "{}: {}, median {}, middle half {} to {}",
        sanitize::line(variant),
        counted(ascending.len(), "run"),
        shown(median),
        shown(low),
        shown(high)
    );
    let plot = drawing(
        "strip",
        HEIGHT,
        &label,
        html! {
            (grid(places, HEIGHT)) (dots.drawn("dots")) (edge.drawn("edge")) (half.drawn("half"))
            (tick.drawn("tick"))
        },
    );
    let value =
        html! { (amount(median, metric.unit)) " " span class="quiet" { (counted(ascending.len(), "run")) } };
    Some((plot, value))
}

/// Overlapping dots are stacked about the middle of the band.
fn swarm(ascending: &[f64], scale: &Scale) -> Vec<(f64, f64)> {
    let bins: Vec<i64> = ascending.iter().map(|value| (scale.place(*value) / BIN).round() as i64).collect();
    let tallest = bins.chunk_by(|a, b| a == b).map(<[i64]>::len).max().unwrap_or(1);
    let middle = (SWARM.0 + SWARM.1) / 2.0;
    let step = ((SWARM.1 - SWARM.0) / tallest as f64).min(4.5);
    let mut placed = Vec::with_capacity(ascending.len());
    for stack in bins.chunk_by(|a, b| a == b) {
        for height in 0..stack.len() {
            let x = scale.place(ascending[placed.len()]);
            placed.push((x, middle + (height as f64 - (stack.len() - 1) as f64 / 2.0) * step));
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_dots_are_stacked_within_the_band() {
        let scale = Scale::over([0.0, 10.0]);
        let placed = swarm(&[1.0, 5.0, 5.0, 5.0, 9.0], &scale);
        let heights: Vec<f64> = placed[1..4].iter().map(|dot| dot.1).collect();
        assert!(heights[0] < heights[1] && heights[1] < heights[2]);
        let many = vec![5.0; 400];
        assert!(swarm(&many, &scale).iter().all(|(_, y)| (SWARM.0..=SWARM.1).contains(y)));
    }

    #[test]
    fn an_outlier_does_not_stretch_the_axis_unless_the_quartiles_are_equal() {
        assert_eq!(fenced(&[1.0, 1.1, 1.2, 1.3, 50.0], FENCE), [1.0, 1.3]);
        assert_eq!(fenced(&[3.0, 3.0, 3.0, 3.0, 50.0], FENCE), [3.0, 50.0]);
    }
}
