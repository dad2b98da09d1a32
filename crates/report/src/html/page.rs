//! The page: what stands where.

use maud::{html, Markup, PreEscaped};
use widthwise_experiment::Metric;
use widthwise_verdict::words;

use super::{answer, document, flame, forest, heap, memory, raw, record, samples, shape, timeline, POLICY};
use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::{amounts, series, statements, visible};

pub fn page(campaign: &Campaign) -> Markup {
    let title = statements::title(campaign);
    let columns = Columns::of(campaign.experiment);
    let runs_script = heap::is_drawn(campaign);
    let policy = if runs_script { flame::policy() } else { POLICY.to_owned() };
    let has = |id: &str| match id {
        "memory" => crate::memory::how(campaign).is_some(),
        "heap" => !campaign.heap.is_empty(),
        _ => true,
    };
    let body = html! {
        body {
            (answer::header(campaign))
            nav aria-label="Contents" { ol {
                @for (id, name) in CONTENTS.into_iter().filter(|(id, _)| has(id)) { li { a href={ "#" (id) } { (name) } } }
            } }
            main {
                (answer::section(campaign, &columns))
                (forest::section(campaign, &columns))
                (memory::section(campaign))
                (heap::section(campaign))
                (runs(campaign, &columns))
                (record::sections(campaign))
                (raw::section(campaign, &columns))
            }
            footer {
                p { "Widthwise " (visible::line(campaign.widthwise)) " · " (visible::line(&campaign.created)) " · "
                    code { (visible::line(&campaign.folder)) } }
            }
            @if runs_script { script { (PreEscaped(flame::SCRIPT)) } }
        }
    };
    let styles: &[&str] = if runs_script { &[flame::STYLE] } else { &[] };
    document(&title, &policy, styles, &body)
}

const CONTENTS: [(&str, &str); 11] = [
    ("answer", "Verdicts"),
    ("differences", "Differences"),
    ("memory", "Memory"),
    ("heap", "Heap"),
    ("runs", "Every run"),
    ("answers", "Answers"),
    ("builds", "Builds"),
    ("machine", "Machine"),
    ("reproduce", "Reproduce"),
    ("words", "Words"),
    ("raw", "Raw numbers"),
];

/// One fold for each metric; those that decide are open.
fn runs(campaign: &Campaign, columns: &Columns) -> Markup {
    let deciding = campaign.experiment.deciding();
    html! {
        section id="runs" {
            h2 { "Every run" }
            p class="lead" {
                "One dot is one run. Warm-up and interrupted rounds are drawn where time matters, hollow, and used by no "
                "verdict."
            }
            @for metric in columns.all() {
                details class="metric" open[deciding.contains(&metric)] {
                    summary {
                        h3 { (campaign.title(metric)) }
                        span class="brief" { (brief(campaign, metric)) }
                    }
                    (charts(campaign, metric))
                }
            }
            @if columns.all().is_empty() { p class="none" { "No metric was measured." } }
        }
    }
}

pub fn charts(campaign: &Campaign, metric: Metric) -> Markup {
    let series = series::of(campaign, metric);
    if series.iter().all(|series| series.points.is_empty()) {
        return html! { p class="none" { "No run has a reading of it." } };
    }
    html! {
        p class="about" { (metric.about) "." }
        (samples::figure(campaign, metric, &series))
        (shape::figure(campaign, metric, &series))
        (timeline::figure(campaign, metric, &series))
        (timeline::positions(campaign, metric, &series))
    }
}

/// The verdicts of a metric in one line, for the fold that is closed.
pub fn brief(campaign: &Campaign, metric: Metric) -> String {
    let baseline = campaign.typical(&campaign.experiment.baseline, metric);
    let typical = baseline.map(amounts::typical);
    let verdicts = campaign
        .experiment
        .variants
        .iter()
        .filter(|variant| campaign.unable(&variant.name).is_none())
        .filter_map(|variant| campaign.verdict(&variant.name, metric))
        .map(|verdict| format!("{} {}", visible::line(&verdict.variant), words::interval(verdict)));
    visible::line(&typical.into_iter().chain(verdicts).collect::<Vec<_>>().join(" · "))
}
