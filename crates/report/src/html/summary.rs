//! The top of the page: the program, the result in sentences, and the verdicts in a table.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::wording::{self, share};
use widthwise_verdict::Word;

use super::wording::{amount, name, plain, prose, titles};
use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::format::counted;
use crate::{format, order, report_text, runtime, sanitize};

/// Columns of one table: more would not fit a sheet of paper.
const COLUMNS: usize = 4;

pub fn header(campaign: &Campaign) -> Markup {
    html! {
        header {
            p class="kicker" { "Widthwise · campaign" }
            h1 { (report_text::title(campaign)) }
            @let command = report_text::command(campaign);
            @if !command.is_empty() { p class="command" { code { (command) } } }
            p class="extent" {
                (report_text::extent(campaign)) " · "
                time datetime=(sanitize::line(&campaign.created)) { (day(&sanitize::line(&campaign.created))) }
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

pub fn section(campaign: &Campaign, columns: &Columns) -> Markup {
    let warnings = report_text::warnings(campaign);
    let is_many = order::is_many(campaign);
    html! {
        section id="answer" {
            h2 class="unseen" { "Verdicts" }
            div class="answer" {
                @for line in report_text::answer(campaign) { p { (prose(&line)) } }
            }
            @if is_many && !warnings.is_empty() {
                p class="alert" { a href="#warnings" { (counted(warnings.len(), "warning")) } " beneath the table." }
            }
            @if !is_many { (beside(campaign, &warnings)) }
            @if columns.leading.is_empty() { (table(campaign, &[])) }
            @for metrics in columns.leading.chunks(COLUMNS) { (table(campaign, metrics)) }
            @if is_many { (beside(campaign, &warnings)) }
            (notes(campaign, columns))
            @if is_many { (one_by_one(campaign)) }
            @if !columns.others.is_empty() {
                details class="others" {
                    summary { "Other metrics: " (titles(&columns.others)) }
                    @for metrics in columns.others.chunks(COLUMNS) { (table(campaign, metrics)) }
                }
            }
        }
    }
}

/// Notes beside the result: whether outputs agree, the noise, the x32 runtime's part, and warnings.
fn beside(campaign: &Campaign, warnings: &[String]) -> Markup {
    html! {
        div class="beside" {
            @for line in report_text::agreement(campaign).iter().chain(&report_text::noise(campaign)) {
                p { (prose(line)) }
            }
            @for line in runtime::brief(campaign) { p { (prose(&line)) } }
        }
        @if !warnings.is_empty() {
            ul class="warnings" id="warnings" aria-label="Warnings" {
                @for warning in warnings { li { (prose(warning)) } }
            }
        }
    }
}

/// A sentence on each of many variants, folded.
fn one_by_one(campaign: &Campaign) -> Markup {
    html! {
        details class="others" {
            summary { "Every variant in a sentence" }
            @for line in report_text::one_by_one(campaign) { p { (prose(&line)) } }
            @for line in runtime::lines(campaign) { p { (prose(&line)) } }
        }
    }
}

/// The verdicts on those metrics, a few to a table.
pub fn tables(campaign: &Campaign, metrics: &[Metric]) -> Markup {
    html! { @for metrics in metrics.chunks(COLUMNS) { (table(campaign, metrics)) } }
}

fn table(campaign: &Campaign, metrics: &[Metric]) -> Markup {
    let experiment = campaign.experiment;
    let is_many = order::is_many(campaign);
    let ordered = Columns::of(experiment).leading.first().copied();
    let prefix = order::prefix(campaign);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Verdicts: " (titles(metrics)) } {
            table class={ "verdicts" @if is_many { " sortable" } } {
                thead { tr {
                    th scope="col" { "variant" @if !prefix.is_empty() { " of " (sanitize::line(prefix)) } }
                    @for metric in metrics {
                        th scope="col" aria-sort=[(is_many && Some(*metric) == ordered).then_some("ascending")] {
                            (campaign.title(metric))
                        }
                    }
                } }
                tbody {
                    @for variant in order::participants(campaign) {
                        tr class=[(variant == experiment.baseline).then_some("baseline")] {
                            th scope="row" { (name(campaign, &variant)) }
                            @if let Some(reason) = campaign.unable(&variant) {
                                td class="unable" colspan=(metrics.len().max(1)) {
                                    span { "not measured: " (prose(&sanitize::line(reason))) }
                                }
                            } @else if variant == experiment.baseline {
                                @for metric in metrics { td { (typical(campaign, &variant, metric)) } }
                            } @else {
                                @for metric in metrics { (verdict(campaign, &variant, metric)) }
                            }
                        }
                        @if let Some(own) = runtime::row(campaign, &variant, metrics).filter(|_| !is_many) {
                            tr class="own" {
                                th scope="row" { (sanitize::line(&runtime::label(&variant))) }
                                @for cell in own { td { small { (prose(&cell)) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn typical(campaign: &Campaign, variant: &str, metric: Metric) -> Markup {
    html! {
        @match campaign.typical(variant, metric) {
            Some(typical) if typical.upper.is_none() => (amount(typical.value, metric.unit)),
            Some(typical) => (prose(&format::typical(typical))),
            None => span class="missing" { (Word::NoData.text()) },
        }
    }
}

fn verdict(campaign: &Campaign, variant: &str, metric: Metric) -> Markup {
    let Some(verdict) = campaign.verdict(variant, metric) else {
        return html! { td { span class="missing" { (Word::NoData.text()) } } };
    };
    let is_twin = variant == campaign.experiment.control();
    let judged = !matches!(verdict.word, Word::Withheld | Word::NoData);
    let key = order::key(campaign, variant, metric).filter(|_| order::is_many(campaign));
    html! {
        td data-key=[key.map(|key| format!("{key:.6}"))] {
            @let reason = verdict.reason.as_deref().map(|reason| plain(&sanitize::line(reason)));
            span class=(verdict.word.name()) title=[reason] {
                (prose(&sanitize::line(&wording::interval(verdict))))
            }
            @if is_twin {
                @if let Some(floor) = campaign.floor_text(metric) { small { "floor " (prose(&floor)) } }
            } @else if judged {
                small { (typical(campaign, variant, metric)) }
            }
        }
    }
}

fn notes(campaign: &Campaign, columns: &Columns) -> Markup {
    let gaps = report_text::gaps(campaign, &columns.all());
    html! {
        div class="notes" {
            p {
                "Each difference is to the baseline, " (sanitize::line(&campaign.experiment.baseline)) ", with its "
                (prose(&share(campaign.experiment.judging.confidence)))
                " interval; below it, the variant’s typical value. “Control” is the A/A control, the baseline measured a second "
                "time: the difference of the two and its uncertainty make the detection floor."
            }
            @if order::is_many(campaign) && gaps.len() > 1 {
                details {
                    summary { "Why verdicts are missing: " (counted(gaps.len(), "reason")) }
                    @for gap in &gaps { p { (prose(&gap.line(campaign))) } }
                }
            } @else {
                @for gap in &gaps { p { (prose(&gap.line(campaign))) } }
            }
            @if let Some(sentence) = report_text::control(campaign) { p { (prose(&sentence)) } }
            p { (prose(&report_text::stopping(campaign))) }
        }
    }
}
