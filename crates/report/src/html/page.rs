//! The layout of the page.

use maud::{html, Markup, PreEscaped};
use widthwise_experiment::Metric;
use widthwise_verdict::wording;

use super::wording::{amount, name};
use super::{
    document, flame, fold, forest, heap, memory, policy, raw, record, samples, shape, summary, timeline,
    SCRIPT,
};
use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::series::{quantile, Series};
use crate::{format, order, report_text, sanitize, series};

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
                        @if !is_many { span class="brief" { (brief(campaign, metric)) } }
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
    let figures = html! {
        (samples::figure(campaign, metric, &series))
        (shape::figure(campaign, metric, &series))
        (timeline::figure(campaign, metric, &series))
        (timeline::positions(campaign, metric, &series))
    };
    html! {
        p class="about" { (metric.about) "." }
        (fold::packed(figures, || summary(campaign, metric, &series)))
    }
}

/// The runs of each variant in numbers: shown where no script draws them.
fn summary(campaign: &Campaign, metric: Metric, series: &[Series]) -> Markup {
    html! {
        p class="none" { "The drawings of so many runs need a script." }
        div class="scroll" tabindex="0" role="region" aria-label={ "Runs: " (campaign.title(metric)) } { table class="facts" {
            thead { tr { @for head in ["variant", "median", "middle half", "runs"] { th scope="col" { (head) } } } }
            tbody { @for series in series {
                @let values = series.timed();
                @let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
                tr {
                    th scope="row" { (name(campaign, &series.variant)) }
                    @if let (Some(low), Some(median), Some(high)) = (low, median, high) {
                        td { (amount(median, metric.unit)) }
                        td { (amount(low, metric.unit)) " … " (amount(high, metric.unit)) }
                    } @else { td { "–" } td { "–" } }
                    td { (values.len()) }
                }
            } }
        } }
    }
}

/// The verdicts of a metric in one line, for a closed fold.
pub fn brief(campaign: &Campaign, metric: Metric) -> String {
    let baseline = campaign.typical(&campaign.experiment.baseline, metric);
    let typical = baseline.map(format::typical);
    let verdicts = campaign
        .experiment
        .variants
        .iter()
        .filter(|variant| campaign.unable(&variant.name).is_none())
        .filter_map(|variant| campaign.verdict(&variant.name, metric))
        .map(|verdict| format!("{} {}", sanitize::line(&verdict.variant), wording::interval(verdict)));
    sanitize::line(&typical.into_iter().chain(verdicts).collect::<Vec<_>>().join(" · "))
}
