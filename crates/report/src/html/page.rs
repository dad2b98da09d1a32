//! The layout of the page.

use maud::{html, Markup, PreEscaped};

use super::document::{document, policy};
use super::{
    by_metric, charts, explanation, flame, fold, forest, heap, inner_loops, memory, raw, record, summary,
};
use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::{order, report_text, sanitize};

/// Sorts tables and unpacks large folds; a page without either omits it.
pub const SCRIPT: &str = include_str!("page.js");

pub fn page(comparison: &Comparison) -> Markup {
    let title = report_text::title(comparison);
    let columns = Columns::of(comparison.campaign.experiment);
    let has = |id: &str| match id {
        "memory" => crate::memory::how(comparison).is_some(),
        "heap" => !comparison.heap.is_empty(),
        "loops" => !comparison.inner_loops.is_empty(),
        "why" => !comparison.explanations.is_empty(),
        _ => true,
    };
    let body = html! {
            (summary::header(comparison))
            nav aria-label="Contents" { ol {
                @for (id, name) in CONTENTS.into_iter().filter(|(id, _)| has(id)) { li { a href={ "#" (id) } { (name) } } }
            } }
            main {
                (summary::section(comparison, &columns))
                (forest::section(comparison, &columns))
                (explanation::excerpts(comparison.explanations))
                (inner_loops::section(comparison.inner_loops))
                (memory::section(comparison))
                (heap::section(comparison))
                (runs(comparison, &columns))
                (record::sections(comparison))
                (raw::section(comparison, &columns))
            }
            footer {
                p { "Widthwise " (sanitize::line(comparison.campaign.widthwise)) " · " (sanitize::line(&comparison.campaign.created)) " · "
                    code { (sanitize::line(&comparison.campaign.folder)) } }
            }
    };
    let has_flame = heap::is_drawn(comparison);
    // Names have been escaped: no text of the page can be mistaken for a fold.
    let has_own = order::is_many(comparison) || body.0.contains(fold::MARK);
    let scripts: Vec<&str> = [(has_flame, flame::SCRIPT), (has_own, SCRIPT)]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, text)| text)
        .collect();
    let body = html! {
        body { (body) @for script in &scripts { script { (PreEscaped(*script)) } } }
    };
    let styles: Vec<&str> = [
        (has_flame, flame::STYLE),
        (by_metric::has_steps(comparison), by_metric::STYLE),
        (!comparison.explanations.is_empty(), explanation::STYLE),
    ]
    .into_iter()
    .filter(|(has, _)| *has)
    .map(|(_, style)| style)
    .collect();
    document(&title, &policy(&scripts), &styles, &body)
}

const CONTENTS: [(&str, &str); 13] = [
    ("answer", "Verdicts"),
    ("differences", "Differences"),
    ("why", "Why"),
    ("loops", "Inner loops"),
    ("memory", "Memory"),
    ("heap", "Heap"),
    ("runs", "Every run"),
    ("outputs", "Outputs"),
    ("builds", "Builds"),
    ("machine", "Machine"),
    ("reproduce", "Reproduce"),
    ("words", "Words"),
    ("raw", "Raw numbers"),
];

/// One fold for each metric; the leading metrics are open.
fn runs(comparison: &Comparison, columns: &Columns) -> Markup {
    let deciding = comparison.campaign.experiment.deciding();
    let is_many = order::is_many(comparison) || crate::by_metric::applies(comparison);
    html! {
        section id="runs" {
            h2 { "Every run" }
            p class="lead" {
                "One dot is one run. Warm-up and interrupted rounds are drawn where time matters, hollow, and used by no "
                "verdict."
            }
            @for metric in columns.all() {
                details class="metric" open[deciding.contains(&metric) && !is_many] {
                    summary {
                        h3 { (comparison.title(metric)) }
                        @if !is_many { span class="brief" { (charts::brief(comparison, metric)) } }
                    }
                    (charts::charts(comparison, metric))
                }
            }
            @if columns.all().is_empty() { p class="none" { "No metric was measured." } }
        }
    }
}
