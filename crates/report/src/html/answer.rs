//! The head of the page: the program, the answer in sentences, and the verdicts in a table.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::words::{self, share};
use widthwise_verdict::Word;

use super::wording::{amount, name, titles, unbroken};
use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::{amounts, runtime, statements, visible};

/// Columns of one table: more would not fit a sheet of paper.
const COLUMNS: usize = 4;

pub fn header(campaign: &Campaign) -> Markup {
    html! {
        header {
            p class="kicker" { "Widthwise · campaign" }
            h1 { (statements::title(campaign)) }
            @let command = statements::command(campaign);
            @if !command.is_empty() { p class="command" { code { (command) } } }
            p class="extent" {
                (statements::extent(campaign)) " · "
                time datetime=(visible::line(&campaign.created)) { (day(&visible::line(&campaign.created))) }
            }
        }
    }
}

/// `2026-11-21 19:04 UTC` of RFC 3339; anything else as it is.
fn day(created: &str) -> String {
    match (created.get(..10), created.get(10..11), created.get(11..16), created.get(19..)) {
        (Some(day), Some("T"), Some(minute), Some("Z")) => format!("{day} {minute} UTC"),
        _ => created.to_owned(),
    }
}

pub fn section(campaign: &Campaign, columns: &Columns) -> Markup {
    let warnings = statements::warnings(campaign);
    html! {
        section id="answer" {
            h2 class="unseen" { "Verdicts" }
            div class="answer" {
                @for sentence in statements::answer(campaign) { p { (unbroken(&sentence)) } }
            }
            div class="beside" {
                @for sentence in statements::agreement(campaign).iter().chain(&statements::noise(campaign)) {
                    p { (unbroken(sentence)) }
                }
                @for sentence in runtime::lines(campaign) { p { (unbroken(&sentence)) } }
            }
            @if !warnings.is_empty() {
                ul class="warnings" aria-label="Warnings" {
                    @for warning in warnings { li { (unbroken(&warning)) } }
                }
            }
            @if columns.leading.is_empty() { (table(campaign, &[])) }
            @for metrics in columns.leading.chunks(COLUMNS) { (table(campaign, metrics)) }
            (notes(campaign, columns))
            @if !columns.others.is_empty() {
                details class="others" {
                    summary { "Other metrics: " (titles(&columns.others)) }
                    @for metrics in columns.others.chunks(COLUMNS) { (table(campaign, metrics)) }
                }
            }
        }
    }
}

/// The verdicts on those metrics, a few to a table.
pub fn tables(campaign: &Campaign, metrics: &[Metric]) -> Markup {
    html! { @for metrics in metrics.chunks(COLUMNS) { (table(campaign, metrics)) } }
}

fn table(campaign: &Campaign, metrics: &[Metric]) -> Markup {
    let experiment = campaign.experiment;
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Verdicts: " (titles(metrics)) } {
            table class="verdicts" {
                thead { tr {
                    th scope="col" { "variant" }
                    @for metric in metrics { th scope="col" { (campaign.title(metric)) } }
                } }
                tbody {
                    @for variant in campaign.participants() {
                        tr class=[(variant == experiment.baseline).then_some("baseline")] {
                            th scope="row" { (name(campaign, &variant)) }
                            @if let Some(reason) = campaign.unable(&variant) {
                                td class="unable" colspan=(metrics.len().max(1)) {
                                    span { "not measured: " (visible::line(reason)) }
                                }
                            } @else if variant == experiment.baseline {
                                @for metric in metrics { td { (typical(campaign, &variant, metric)) } }
                            } @else {
                                @for metric in metrics { (verdict(campaign, &variant, metric)) }
                            }
                        }
                        @if let Some(own) = runtime::row(campaign, &variant, metrics) {
                            tr class="own" {
                                th scope="row" { (visible::line(&runtime::label(&variant))) }
                                @for cell in own { td { small { (unbroken(&cell)) } } }
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
            Some(typical) => (unbroken(&amounts::typical(typical))),
            None => span class="missing" { (Word::NoData.text()) },
        }
    }
}

fn verdict(campaign: &Campaign, variant: &str, metric: Metric) -> Markup {
    let Some(verdict) = campaign.verdict(variant, metric) else {
        return html! { td { span class="missing" { (Word::NoData.text()) } } };
    };
    let is_twin = variant == campaign.experiment.twin();
    let judged = !matches!(verdict.word, Word::Withheld | Word::NoData);
    html! {
        td {
            @let reason = verdict.reason.as_deref().map(visible::line);
            span class=(verdict.word.name()) title=[reason] {
                (unbroken(&visible::line(&words::interval(verdict))))
            }
            @if is_twin {
                @if let Some(floor) = campaign.floor_text(metric) { small { "floor " (unbroken(&floor)) } }
            } @else if judged {
                small { (typical(campaign, variant, metric)) }
            }
        }
    }
}

fn notes(campaign: &Campaign, columns: &Columns) -> Markup {
    let gaps = statements::gaps(campaign, &columns.all());
    html! {
        div class="notes" {
            p {
                "Each difference is to the baseline, " (visible::line(&campaign.experiment.baseline)) ", with its "
                (unbroken(&share(campaign.experiment.judging.confidence)))
                " interval; beneath it, what is typical of the variant. “Again” is the baseline measured a second "
                "time under another name: what seems to differ between the two, and what could go unseen there, is the detection floor."
            }
            @for gap in gaps { p { (unbroken(&gap.line(campaign))) } }
            @if let Some(sentence) = statements::control(campaign) { p { (unbroken(&sentence)) } }
            p { (unbroken(&statements::stopping(campaign))) }
        }
    }
}
