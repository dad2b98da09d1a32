//! Names and amounts in the form that every section uses.

use maud::{html, Markup};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::{Metric, Role};

use crate::comparison::Comparison;
use crate::{order, sanitize};

/// The most dots for one variant in one chart; more would hide each other.
pub const MOST_DOTS: usize = 400;

/// A variant's name as a row heading, with its special properties below.
pub fn name(comparison: &Comparison, variant: &str) -> Markup {
    let experiment = comparison.campaign.experiment;
    let role = experiment.role(variant);
    let shown = if role == Role::Control { experiment.baseline.as_str() } else { variant };
    let tag = if role == Role::Variant { "" } else { role.name() };
    html! {
        span class="variant" { (sanitize::line(order::short(comparison, shown))) }
        @if !tag.is_empty() { " " span class="tag" { (tag) } }
    }
}

/// An amount, its unit in smaller print.
pub fn amount(value: f64, unit: Unit) -> String {
    Quantity { value, unit }.to_string().replace(' ', "\u{a0}")
}

/// A note that dots were left out, if any were.
pub fn thinning(longest: usize) -> Option<String> {
    (longest > MOST_DOTS).then(|| {
        format!(
            "At most {MOST_DOTS} evenly spaced dots a variant are drawn; medians, quartiles and counts use all \
             {longest}."
        )
    })
}

pub fn titles(metrics: &[Metric]) -> String {
    metrics.iter().map(|metric| metric.title).collect::<Vec<_>>().join(", ")
}

/// A sentence with its commands as code: the text between two backticks.
pub fn prose(text: &str) -> Markup {
    let text = unbroken(text);
    let parts: Vec<&str> = text.split('`').collect();
    // An unpaired backtick stays as it is.
    let paired = (parts.len() - 1) / 2 * 2;
    html! {
        @for (place, part) in parts.iter().enumerate() {
            @if place > paired { "`" (part) } @else if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The same for places without markup.
pub fn plain(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let paired = (parts.len() - 1) / 2 * 2;
    let quoted = |(place, part): (usize, &&str)| match place {
        _ if place > paired => format!("`{part}"),
        _ if place % 2 == 1 => format!("“{part}”"),
        _ => (*part).to_owned(),
    };
    parts.iter().enumerate().map(quoted).collect()
}

/// Keeps a number and its per cent sign on one line.
pub fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}
