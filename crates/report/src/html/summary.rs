//! The top of the page: the program, the result in sentences, and the verdicts in a table.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::wording::share;
use widthwise_verdict::Word;

use super::by_metric;
use super::wording::{amount, name, plain, prose, titles};
use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::format::counted;
use crate::{format, order, report_text, sanitize, x32_runtime};

/// Columns of one table: more would not fit a sheet of paper.
const COLUMNS: usize = 4;

pub fn header(comparison: &Comparison) -> Markup {
    html! {
        header {
            p class="kicker" { "Widthwise · campaign" }
            h1 { (report_text::title(comparison)) }
            @let command = report_text::command(comparison);
            @if !command.is_empty() { p class="command" { code { (command) } } }
            p class="extent" {
                (report_text::extent(comparison)) " · "
                time datetime=(sanitize::line(&comparison.campaign.created)) { (day(&sanitize::line(&comparison.campaign.created))) }
            }
        }
    }
}

/// `2026-11-21 19:04 UTC` for RFC 3339; other text is unchanged.
fn day(created: &str) -> String {
    match (created.get(..10), created.get(10..11), created.get(11..16), created.get(19..)) {
        (Some(day), Some("T"), Some(minute), Some("Z")) => format!("{day} {minute} UTC"),
        _ => created.to_owned(),
    }
}

pub fn section(comparison: &Comparison, columns: &Columns) -> Markup {
    let warnings = report_text::warnings(comparison);
    let is_many = order::is_many(comparison);
    html! {
        section id="answer" {
            h2 class="unseen" { "Verdicts" }
            div class="answer" {
                @for line in report_text::answer(comparison) { p { (prose(&line)) } }
            }
            @if is_many && !warnings.is_empty() {
                p class="alert" { a href="#warnings" { (counted(warnings.len(), "warning")) } " beneath the table." }
            }
            @if !is_many { (overview(comparison, &warnings)) }
            @if crate::by_metric::applies(comparison) {
                (by_metric::section(comparison))
                @for (variant, reason) in report_text::not_measured(comparison) {
                    p class="alert" { (variant) " was not measured: " (prose(&reason)) }
                }
            } @else {
                @if columns.leading.is_empty() { (table(comparison, &[])) }
                @for metrics in columns.leading.chunks(COLUMNS) { (table(comparison, metrics)) }
                (by_metric::section(comparison))
            }
            @if is_many { (overview(comparison, &warnings)) }
            (notes(comparison, columns))
            @if is_many { (one_by_one(comparison)) }
            @if !columns.others.is_empty() && !crate::by_metric::applies(comparison) {
                details class="others" {
                    summary { "Other metrics: " (titles(&columns.others)) }
                    @for metrics in columns.others.chunks(COLUMNS) { (table(comparison, metrics)) }
                }
            }
        }
    }
}

/// Notes beside the result: whether outputs agree, the noise, the x32 runtime's part, and warnings.
fn overview(comparison: &Comparison, warnings: &[String]) -> Markup {
    html! {
        div class="overview" {
            @for line in report_text::agreement(comparison) { p { (prose(&line)) } }
            @for line in report_text::layouts(comparison).iter().chain(&report_text::noise(comparison)) {
                p { (prose(line)) }
            }
            @for line in x32_runtime::brief(comparison) { p { (prose(&line)) } }
        }
        @if !warnings.is_empty() {
            ul class="warnings" id="warnings" aria-label="Warnings" {
                @for warning in warnings { li { (prose(warning)) } }
            }
        }
    }
}

/// A sentence on each of many variants, folded.
fn one_by_one(comparison: &Comparison) -> Markup {
    html! {
        details class="others" {
            summary { "Every variant in a sentence" }
            @for line in report_text::one_by_one(comparison) { p { (prose(&line)) } }
            @for line in x32_runtime::lines(comparison) { p { (prose(&line)) } }
        }
    }
}

/// The verdicts on those metrics, a few to a table.
pub fn tables(comparison: &Comparison, metrics: &[Metric]) -> Markup {
    html! { @for metrics in metrics.chunks(COLUMNS) { (table(comparison, metrics)) } }
}

fn table(comparison: &Comparison, metrics: &[Metric]) -> Markup {
    let experiment = comparison.campaign.experiment;
    let is_many = order::is_many(comparison);
    let ordered = Columns::of(experiment).leading.first().copied();
    let prefix = order::prefix(comparison);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Verdicts: " (titles(metrics)) } {
            table class={ "verdicts" @if is_many { " sortable" } } {
                thead { tr {
                    th scope="col" { "variant" @if !prefix.is_empty() { " of " (sanitize::line(prefix)) } }
                    @for metric in metrics {
                        th scope="col" aria-sort=[(is_many && Some(*metric) == ordered).then_some("ascending")] {
                            (comparison.title(metric))
                        }
                    }
                } }
                tbody {
                    @for variant in order::participants(comparison) {
                        tr class=[(variant == experiment.baseline).then_some("baseline")] {
                            th scope="row" { (name(comparison, &variant)) }
                            @if let Some(reason) = comparison.campaign.not_measured(&variant) {
                                td class="not-measured" colspan=(metrics.len().max(1)) {
                                    span { "not measured: " (prose(&sanitize::line(reason))) }
                                }
                            } @else if variant == experiment.baseline {
                                @for metric in metrics { td { (typical(comparison, &variant, metric)) } }
                            } @else {
                                @for metric in metrics { (verdict(comparison, &variant, metric)) }
                            }
                        }
                        @if let Some(own) = x32_runtime::row(comparison, &variant, metrics) {
                            tr class="own" {
                                th scope="row" { (sanitize::line(&x32_runtime::label(&variant))) }
                                @for cell in own { td { small { (prose(&cell)) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn typical(comparison: &Comparison, variant: &str, metric: Metric) -> Markup {
    html! {
        @match comparison.typical(variant, metric) {
            Some(typical) if typical.upper.is_none() => (amount(typical.value, metric.unit)),
            Some(typical) => (prose(&format::typical(typical))),
            None => span class="missing" { (Word::NoData.text()) },
        }
    }
}

fn verdict(comparison: &Comparison, variant: &str, metric: Metric) -> Markup {
    let Some(verdict) = comparison.verdict(variant, metric) else {
        return html! { td { span class="missing" { (Word::NoData.text()) } } };
    };
    let is_control = variant == comparison.campaign.experiment.control();
    let judged = !matches!(verdict.word, Word::Withheld | Word::NoData);
    let key = order::key(comparison, variant, metric).filter(|_| order::is_many(comparison));
    html! {
        td data-key=[key.map(|key| format!("{key:.6}"))] {
            @let reason = verdict.reason.as_deref().map(|reason| plain(&sanitize::line(reason)));
            span class=(verdict.word.name()) title=[reason] {
                (prose(&comparison.figure(variant, metric).unwrap_or_default()))
            }
            @if is_control {
                @if let Some(floor) = comparison.floor_text(metric) { small { "floor " (prose(&floor)) } }
            } @else if judged {
                small { (typical(comparison, variant, metric)) }
            }
        }
    }
}

fn notes(comparison: &Comparison, columns: &Columns) -> Markup {
    let gaps = report_text::gaps(comparison, &columns.all());
    html! {
        div class="notes" {
            p {
                "Each difference is to the baseline, " (sanitize::line(&comparison.campaign.experiment.baseline)) ", with its "
                (prose(&share(comparison.campaign.experiment.judging.confidence)))
                " interval; below it, the variant’s typical value. “Control” is the A/A control, the baseline measured a second "
                "time: the difference of the two and its uncertainty make the detection floor."
            }
            @if order::is_many(comparison) && gaps.len() > 1 {
                details {
                    summary { "Why verdicts are missing: " (counted(gaps.len(), "reason")) }
                    @for gap in &gaps { p { (prose(&gap.line(comparison))) } }
                }
            } @else {
                @for gap in &gaps { p { (prose(&gap.line(comparison))) } }
            }
            @if let Some(sentence) = report_text::control(comparison) { p { (prose(&sentence)) } }
            p { (prose(&report_text::stopping(comparison))) }
        }
    }
}
