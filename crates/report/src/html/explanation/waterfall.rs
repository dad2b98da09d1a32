//! A waterfall: from the baseline's value to the variant's, one step for each cause.

use maud::{html, Markup};
use widthwise_experiment::units::Quantity;

use super::amounts::amount;
use crate::explanation::{noun, Part, Unexplained};
use crate::format::{capitalized, counted};
use crate::html::axis::{Scale, WIDTH};
use crate::html::plot::{axis, drawing, grid, row, Path};
use crate::sanitize;

/// Steps; the smaller parts are one.
const MOST_STEPS: usize = 12;
/// A row's height.
const HEIGHT: u32 = 22;
/// If the difference is less than this share of the larger value, the axis does not begin at zero.
const LEAST: f64 = 0.2;

/// One bar.
struct Step {
    name: String,
    from: i64,
    to: i64,
    class: &'static str,
    value: String,
}

/// The figure.
pub fn figure(rest: &Unexplained, parts: &[&Part]) -> Markup {
    let steps = steps(rest, parts);
    let ends = || steps.iter().flat_map(|step| [step.from, step.to]);
    let is_whole = |step: &&Step| step.class == "whole";
    let most = ends().max().unwrap_or(0) as f64;
    let moved = steps.iter().filter(|step| !is_whole(step)).flat_map(|step| [step.from, step.to]);
    let least = moved.chain([rest.baseline, rest.variant]).min().unwrap_or(0) as f64;
    let is_cut = (most - least) < LEAST * most;
    let scale = match is_cut {
        true => Scale::over([least - 0.5 * (most - least), most]),
        false => Scale::from_zero(most * 1.02),
    };
    let ticks: Vec<(f64, String)> =
        scale.ticks(5).amounts(rest.unit).into_iter().map(|(at, text)| (scale.place(at), text)).collect();
    let lines: Vec<f64> = ticks.iter().map(|(at, _)| *at).collect();
    html! {
        figure class="waterfall" {
            figcaption {
                strong { "From the baseline to the variant" }
                span {
                    (capitalized(noun(rest.metric))) ", cause by cause; pale: certainty low, or not explained. "
                    @if is_cut { "The axis does not begin at zero." }
                }
            }
            @for step in &steps {
                (row(
                    html! { (step.name) },
                    drawing("steps", HEIGHT, &format!("{}: {}", step.name, step.value), html! {
                        (grid(&lines, HEIGHT)) (bar(step, &scale))
                    }),
                    html! { (step.value) },
                ))
            }
            (axis(&ticks))
        }
    }
}

fn bar(step: &Step, scale: &Scale) -> Markup {
    let (low, high) = (step.from.min(step.to) as f64, step.from.max(step.to) as f64);
    let (from, to) =
        if step.class == "whole" { (0.0, scale.place(high)) } else { (scale.place(low), scale.place(high)) };
    let mut path = Path::default();
    // Thin steps stay visible.
    let width = (to - from).max(2.0);
    path.bar(from.min(WIDTH - 2.0), 4.0, width, f64::from(HEIGHT) - 8.0);
    path.drawn(&format!("step {}", step.class))
}

fn steps(rest: &Unexplained, parts: &[&Part]) -> Vec<Step> {
    let quantity = |value: i64| Quantity { value: value as f64, unit: rest.unit }.to_string();
    let mut steps = vec![whole("baseline", rest.baseline, quantity(rest.baseline))];
    let mut at = rest.baseline;
    let mut push = |name: String, by: i64, is_sure: bool| {
        let class = match (by < 0, is_sure) {
            (true, true) => "lower",
            (false, true) => "higher",
            (true, false) => "lower unsure",
            (false, false) => "higher unsure",
        };
        steps.push(Step { name, from: at, to: at + by, class, value: amount(rest, by) });
        at += by;
    };
    for part in parts.iter().take(MOST_STEPS) {
        let place = match part.place.is_empty() || part.cause.contains(&part.place) {
            true => String::new(),
            false => format!(" ({})", part.place),
        };
        push(sanitize::line(&format!("{}{place}", part.cause)), part.amount, part.is_named());
    }
    let others = &parts[parts.len().min(MOST_STEPS)..];
    let sum: i64 = others.iter().map(|part| part.amount).sum();
    if !others.is_empty() {
        push(counted(others.len(), "smaller part"), sum, others.iter().all(|part| part.is_named()));
    }
    if rest.amount != 0 {
        push("not explained".to_owned(), rest.amount, false);
    }
    steps.push(whole("variant", rest.variant, quantity(rest.variant)));
    steps
}

fn whole(name: &str, value: i64, text: String) -> Step {
    Step { name: name.to_owned(), from: 0, to: value, class: "whole", value: text }
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::units::Unit;

    use super::*;
    use crate::explanation::{Certainty, Measured};

    #[test]
    fn steps_lead_from_the_baseline_to_the_variant() {
        let measured = Measured::counted("file_size", Unit::Bytes, [1000, 400]);
        let parts: Vec<Part> = (1..=20)
            .map(|number| measured.part(format!("part {number}"), "", -20, Certainty::High))
            .collect();
        let parts: Vec<&Part> = parts.iter().collect();
        let steps = steps(&measured.unexplained(&parts, None), &parts);
        assert_eq!(steps.len(), 2 + MOST_STEPS + 2);
        assert_eq!((steps[0].to, steps[steps.len() - 1].to), (1000, 400));
        for pair in steps[..steps.len() - 1].windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "{}", pair[1].name);
        }
        assert_eq!(steps[steps.len() - 2].to, 400);
        assert_eq!(steps[steps.len() - 2].name, "not explained");
    }
}
