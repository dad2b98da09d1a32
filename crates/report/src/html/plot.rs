//! The parts of every chart: rows with a name, a drawing and a number, and the axis below.
//!
//! Drawings are stretched to the available width (`preserveAspectRatio="none"`) while strokes keep their
//! width (`vector-effect: non-scaling-stroke` in the style sheet), so that a chart fits a phone and a wide
//! screen without a script. A dot is a line of zero length with round ends: a thousand of them are one short
//! path.

use std::fmt::Write;

use maud::{html, Markup};

use super::axis::WIDTH;
use super::wording::{plain, prose};

/// A path under construction.
#[derive(Debug, Default, Clone)]
pub struct Path(String);

impl Path {
    /// A dot.
    pub fn dot(&mut self, x: f64, y: f64) {
        let _ = write!(self.0, "M{} {}h0", number(x), number(y));
    }

    /// A horizontal line.
    pub fn across(&mut self, from: f64, to: f64, y: f64) {
        let _ = write!(self.0, "M{} {}H{}", number(from), number(y), number(to));
    }

    /// A vertical line.
    pub fn down(&mut self, x: f64, from: f64, to: f64) {
        let _ = write!(self.0, "M{} {}V{}", number(x), number(from), number(to));
    }

    /// The next point of a polyline.
    pub fn through(&mut self, x: f64, y: f64) {
        let letter = if self.0.is_empty() { 'M' } else { 'L' };
        let _ = write!(self.0, "{letter}{} {}", number(x), number(y));
    }

    /// Closes the polyline, to be filled.
    pub fn close(&mut self) {
        if !self.0.is_empty() {
            self.0.push('z');
        }
    }

    /// A filled bar.
    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let (width, height) = (number(width), number(height));
        let _ = write!(self.0, "M{} {}h{width}v{height}h-{width}z", number(x), number(y));
    }

    /// The path as an element, or nothing if it is empty.
    pub fn drawn(&self, class: &str) -> Markup {
        html! {
            @if !self.0.is_empty() {
                path class=(class) d=(self.0) {}
            }
        }
    }
}

/// A coordinate with at most one decimal; never NaN.
fn number(value: f64) -> String {
    let tenths = (value * 10.0).round();
    let tenths = if tenths.is_finite() { tenths as i64 } else { 0 };
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        _ => format!("{:.1}", tenths as f64 / 10.0),
    }
}

/// A drawing of that height; `says` describes it to screen readers.
pub fn drawing(class: &str, height: u32, label: &str, inside: Markup) -> Markup {
    html! {
        svg class={ "plot " (class) } role="img"
            viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" height=(height) {
            // Also the accessible name of the drawing (SVG-AAM 1.0).
            title { (plain(label)) }
            (inside)
        }
    }
}

/// The grid lines behind every row of a chart.
pub fn grid(places: &[f64], height: u32) -> Markup {
    let mut path = Path::default();
    for place in places {
        path.down(*place, 0.0, f64::from(height));
    }
    path.drawn("grid")
}

/// One row of a chart.
pub fn row(name: Markup, plot: Markup, value: Markup) -> Markup {
    html! {
        div class="row" {
            div class="name" { (name) }
            div class="field" { (plot) }
            div class="value" { (value) }
        }
    }
}

/// The text in a row instead of a drawing: on one line, and complete as a tooltip.
pub fn instead(reason: &str) -> Markup {
    html! { p class="reason" title=(plain(reason)) { (prose(reason)) } }
}

/// The row below a chart with the labels of its grid lines.
pub fn axis(ticks: &[(f64, String)]) -> Markup {
    html! {
        div class="row axis" aria-hidden="true" {
            div class="field" {
                svg height="18" {
                    @for (place, text) in apart(ticks) {
                        text x={ (number(place / WIDTH * 100.0)) "%" } y="13" class=(anchor(place)) { (text) }
                    }
                }
            }
        }
    }
}

/// Leaves out labels that would overlap their right neighbour on a phone (the last one has the unit, and
/// stays).
pub fn apart(ticks: &[(f64, String)]) -> Vec<(f64, &str)> {
    let mut kept: Vec<(f64, &str)> = Vec::new();
    for (place, text) in ticks.iter().rev() {
        let clear = kept.last().is_none_or(|(next, after)| {
            // A digit is about 7 pixels wide, the narrowest plot about 320.
            let needed = (text.chars().count() + after.chars().count()) as f64 / 2.0 * 7.0 + 8.0;
            next - place >= needed / 320.0 * WIDTH
        });
        if clear {
            kept.push((*place, text));
        }
    }
    kept
}

fn anchor(place: f64) -> &'static str {
    if place < 0.03 * WIDTH {
        "start"
    } else if place > 0.97 * WIDTH {
        "end"
    } else {
        "middle"
    }
}

/// At most `most` of the items, evenly spaced, with the first and the last; deterministic.
pub fn downsampled<T: Copy>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most || most < 2 {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..most).map(|i| items[i * last / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampling_keeps_both_ends_and_the_requested_count() {
        let items: Vec<usize> = (0..1000).collect();
        let kept = downsampled(&items, 300);
        assert_eq!((kept.len(), kept[0], kept[299]), (300, 0, 999));
        assert_eq!(downsampled(&items[..5], 300), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn coordinates_are_short_and_never_nan() {
        assert_eq!([number(12.0), number(12.34), number(-0.04), number(f64::NAN)], ["12", "12.3", "0", "0"]);
    }

    #[test]
    fn labels_that_would_touch_on_a_phone_are_left_out() {
        let close =
            [(100.0, "0.2845".to_owned()), (120.0, "0.2846".to_owned()), (600.0, "0.2870".to_owned())];
        let kept: Vec<&str> = apart(&close).into_iter().map(|tick| tick.1).collect();
        assert_eq!(kept, ["0.2870", "0.2846"]);
    }
}
