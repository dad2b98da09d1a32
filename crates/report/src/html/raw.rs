//! The raw numbers, for readers who have only the page.

use maud::{html, Markup};
use widthwise_experiment::units::Unit;
use widthwise_experiment::Metric;

use super::fold::packed;
use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::{csv, sanitize};

/// A table of more rows slows a browser down; more rows are shown as text.
const MOST_ROWS: usize = 600;

pub fn section(comparison: &Comparison, columns: &Columns) -> Markup {
    let metrics = columns.all();
    html! {
        section id="raw" {
            h2 { "Raw numbers" }
            details {
                summary { (crate::format::counted(comparison.runs.len(), "run")) }
                p class="about" {
                    "Times in nanoseconds, memory in bytes. An empty cell was not measured. "
                    code { "widthwise report --csv" } " writes the same with sources and coverage."
                }
                @if comparison.runs.len() <= MOST_ROWS { (table(comparison, &metrics)) }
                @else {
                    (packed(html! { pre class="numbers" { (text(comparison, &metrics)) } }, || html! {
                        p class="none" { "A script shows these numbers." }
                    }))
                }
            }
        }
    }
}

fn heads(metrics: &[Metric]) -> Vec<String> {
    let unit = |metric: &Metric| match metric.unit {
        Unit::Nanoseconds => ", ns",
        Unit::Bytes => ", B",
        Unit::Count => "",
    };
    let own = ["round", "kind", "place", "variant", "ended"].map(str::to_owned);
    own.into_iter().chain(metrics.iter().map(|metric| format!("{}{}", metric.title, unit(metric)))).collect()
}

fn rows<'a>(comparison: &'a Comparison, metrics: &'a [Metric]) -> impl Iterator<Item = Vec<String>> + 'a {
    let kinds: std::collections::HashMap<u32, &str> =
        comparison.campaign.rounds.iter().map(|round| (round.number, round.kind.name())).collect();
    comparison.runs.iter().map(move |run| {
        let kind = kinds.get(&run.round).copied().unwrap_or_default();
        let mut cells = vec![
            run.round.to_string(),
            kind.to_owned(),
            run.position.to_string(),
            sanitize::line(&run.variant),
            csv::ending(&run.ending),
        ];
        cells.extend(metrics.iter().map(|metric| match run.sample.get(metric.name) {
            Some(reading) if reading.value.is_finite() => reading.value.to_string(),
            _ => String::new(),
        }));
        cells
    })
}

fn table(comparison: &Comparison, metrics: &[Metric]) -> Markup {
    html! {
        div class="scroll tall" tabindex="0" role="region" aria-label="Raw numbers" { table class="raw" {
            thead { tr { @for head in heads(metrics) { th scope="col" { (head) } } } }
            tbody { @for cells in rows(comparison, metrics) { tr { @for cell in cells { td { (cell) } } } } }
        } }
    }
}

fn text(comparison: &Comparison, metrics: &[Metric]) -> String {
    let mut lines = vec![heads(metrics).join(";")];
    lines.extend(rows(comparison, metrics).map(|cells| cells.join(";")));
    lines.join("\n")
}
