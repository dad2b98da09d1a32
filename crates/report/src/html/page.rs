//! The layout of the page.

use maud::{html, Markup, PreEscaped};

use super::{charts, document, flame, fold, forest, heap, memory, policy, raw, record, summary, SCRIPT};
use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::{order, report_text, sanitize};

pub fn page(campaign: &Campaign) -> Markup {
    let title = report_text::title(campaign);
    let columns = Columns::of(campaign.experiment);
    let has = |id: &str| match id {
        "memory" => crate::memory::how(campaign).is_some(),
        "heap" => !campaign.heap.is_empty(),
        _ => true,
    };
    let body = html! {
            (summary::header(campaign))
            nav aria-label="Contents" { ol {
                @for (id, name) in CONTENTS.into_iter().filter(|(id, _)| has(id)) { li { a href={ "#" (id) } { (name) } } }
            } }
            main {
                (summary::section(campaign, &columns))
                (forest::section(campaign, &columns))
                (memory::section(campaign))
                (heap::section(campaign))
                (runs(campaign, &columns))
                (record::sections(campaign))
                (raw::section(campaign, &columns))
            }
            footer {
                p { "Widthwise " (sanitize::line(campaign.widthwise)) " · " (sanitize::line(&campaign.created)) " · "
                    code { (sanitize::line(&campaign.folder)) } }
            }
    };
    let has_flame = heap::is_drawn(campaign);
    // Names have been escaped: no text of the page can be mistaken for a fold.
    let has_own = order::is_many(campaign) || body.0.contains(fold::MARK);
    let scripts: Vec<&str> = [(has_flame, flame::SCRIPT), (has_own, SCRIPT)]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, text)| text)
        .collect();
    let body = html! {
        body { (body) @for script in &scripts { script { (PreEscaped(*script)) } } }
    };
    let styles: &[&str] = if has_flame { &[flame::STYLE] } else { &[] };
    document(&title, &policy(&scripts), styles, &body)
}

const CONTENTS: [(&str, &str); 11] = [
    ("answer", "Verdicts"),
    ("differences", "Differences"),
    ("memory", "Memory"),
    ("heap", "Heap"),
    ("runs", "Every run"),
    ("answers", "Outputs"),
    ("builds", "Builds"),
    ("machine", "Machine"),
    ("reproduce", "Reproduce"),
    ("words", "Words"),
    ("raw", "Raw numbers"),
];

/// One fold for each metric; the leading metrics are open.
fn runs(campaign: &Campaign, columns: &Columns) -> Markup {
    let deciding = campaign.experiment.deciding();
    let is_many = order::is_many(campaign);
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
                        h3 { (campaign.title(metric)) }
                        @if !is_many { span class="brief" { (charts::brief(campaign, metric)) } }
                    }
                    (charts::charts(campaign, metric))
                }
            }
            @if columns.all().is_empty() { p class="none" { "No metric was measured." } }
        }
    }
}
