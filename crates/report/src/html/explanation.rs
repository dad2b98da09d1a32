//! An explanation as one self-contained page: sentences, a waterfall from the baseline to the variant, tables, flame graphs,
//! and structures drawn byte by byte in both ABIs.

mod amounts;
mod structure;
mod waterfall;

use maud::{html, Markup, PreEscaped};

use self::amounts::amount;
use super::document::{document, policy};
use super::flame::{self, Flame};
use crate::excerpt::Excerpt;
use crate::explanation::layout::Drawn;
use crate::explanation::{coverage, noun, points, Explanation, Part, Section, Unexplained};
use crate::format::{capitalized, counted};
use crate::sanitize;
use crate::text::Palette;

/// The page's own style, after the common one.
pub(crate) const STYLE: &str = include_str!("explanation/explanation.css");
/// Rows of a table of parts; the others are in a fold.
const MOST_ROWS: usize = 15;
/// Columns of a section's text.
const TEXT_WIDTH: usize = 120;

/// The content of the page.
pub struct Page<'a> {
    /// The program's name, or none for two files.
    pub program: Option<&'a str>,
    /// The sentences, parts and sections.
    pub explanation: &'a Explanation<'a>,
    /// Structures in both ABIs.
    pub structures: &'a [Drawn],
    /// Flame graphs of the heap.
    pub flames: Vec<Flame<'a>>,
}

/// The whole file.
pub fn page(page: &Page) -> String {
    let explanation = page.explanation;
    let (variant, baseline) = (sanitize::line(explanation.variant), sanitize::line(explanation.baseline));
    let title = match page.program {
        Some(program) => format!("{}: {variant} and {baseline}", sanitize::line(program)),
        None => format!("{variant} and {baseline}"),
    };
    let (parts, rests) = (explanation.parts(), explanation.unexplained());
    let body = html! {
        body class="explanation" {
            header {
                p class="kicker" { "Widthwise · why two variants differ" }
                h1 { (title) }
            }
            main {
                (answer(explanation))
                @for rest in rests.iter().filter(|rest| of_runs(explanation, rest)) {
                    (of_metric(rest, &parts))
                }
                (flames(&page.flames))
                (structure::section(page.structures, [&baseline, &variant]))
                @for rest in rests.iter().filter(|rest| !of_runs(explanation, rest)) {
                    (of_metric(rest, &parts))
                }
                (texts(explanation))
            }
            footer { p { "Widthwise " (env!("CARGO_PKG_VERSION")) } }
            @if !page.flames.is_empty() { script { (PreEscaped(flame::SCRIPT)) } }
        }
    };
    let (scripts, styles): (&[&str], &[&str]) = match page.flames.is_empty() {
        true => (&[], &[STYLE]),
        false => (&[flame::SCRIPT], &[flame::STYLE, STYLE]),
    };
    document(&title, &policy(scripts), styles, &body).into_string()
}

/// The sentences on metrics of runs, each with its waterfall and its largest parts. `file` is the page that has it all, and `command`
/// makes it.
pub fn excerpt(page: &Page, file: Option<String>, command: String) -> Excerpt {
    let explanation = page.explanation;
    let (parts, rests, sentences) = (explanation.parts(), explanation.unexplained(), explanation.sentences());
    let of_runs = rests.iter().zip(&sentences).filter(|(rest, _)| of_runs(explanation, rest));
    let body = html! {
        @for (rest, sentence) in of_runs {
            p { (sentence) }
            (parts_of(rest, &parts))
        }
        @if !explanation.remarks.is_empty() {
            div class="notes" { @for remark in &explanation.remarks { p { (sanitize::line(remark)) } } }
        }
    };
    let (variant, baseline) = (sanitize::line(explanation.variant), sanitize::line(explanation.baseline));
    Excerpt { variant, baseline, file, command, body }
}

/// The section of a campaign's page: one fold for each excerpt, the first one open.
pub(crate) fn excerpts(excerpts: &[Excerpt]) -> Markup {
    html! {
        @if !excerpts.is_empty() {
            section id="why" class="explanation" {
                h2 { "Why" }
                p class="lead" {
                    "Parts that sum to each difference, from recordings of the heap and readings of resident memory. What no "
                    "part explains is shown."
                }
                @for (index, Excerpt { variant, baseline, file, command, body }) in excerpts.iter().enumerate() {
                    details class="metric" open[index == 0] {
                        summary { h3 { (variant) " and " (baseline) } }
                        (body)
                        p {
                            "Size, code, structures and flame graphs of both: "
                            @if let Some(file) = file { a href=(file) { (file) } ", or " }
                            code { (sanitize::line(command)) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the metric was measured in runs.
fn of_runs(explanation: &Explanation, rest: &Unexplained) -> bool {
    let has =
        |section: &&dyn Section| section.measured().iter().any(|measured| measured.metric == rest.metric);
    explanation.sections.iter().map(AsRef::as_ref).find(has).is_some_and(|section| section.is_of_runs())
}

/// The first sentence large, the others below it.
fn answer(explanation: &Explanation) -> Markup {
    let sentences = explanation.sentences();
    let (first, others) = sentences.split_first().map_or((None, &[][..]), |(one, rest)| (Some(one), rest));
    html! {
        section id="answer" {
            @if let Some(first) = first { div class="answer" { p { (first) } } }
            div class="overview" {
                @for sentence in others { p { (sentence) } }
            }
            @if !explanation.remarks.is_empty() {
                div class="notes" { @for remark in &explanation.remarks { p { (sanitize::line(remark)) } } }
            }
        }
    }
}

/// One metric: a waterfall, and its parts in a table.
fn of_metric(rest: &Unexplained, parts: &[Part]) -> Markup {
    let own: Vec<&Part> = parts.iter().filter(|part| part.metric == rest.metric).collect();
    if own.is_empty() {
        return html! {};
    }
    html! {
        section id=(rest.metric) {
            h2 { (capitalized(noun(rest.metric))) }
            (parts_of(rest, parts))
        }
    }
}

/// What a metric's parts cover of its difference, the waterfall, and the table.
fn parts_of(rest: &Unexplained, parts: &[Part]) -> Markup {
    let own: Vec<&Part> = parts.iter().filter(|part| part.metric == rest.metric).collect();
    let (shown, others) = own.split_at(own.len().min(MOST_ROWS));
    let covered = coverage(rest, &own);
    html! {
        @if !covered.is_empty() {
            p class="lead" { (covered) }
        }
        (waterfall::figure(rest, &own))
        (table(rest, shown, others.is_empty()))
        @if !others.is_empty() {
            details class="others" {
                summary { (counted(others.len(), "smaller part")) }
                (table(rest, others, true))
            }
        }
    }
}

fn table(rest: &Unexplained, parts: &[&Part], is_last: bool) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "Parts of " (noun(rest.metric)) } {
            table class="parts" {
                thead { tr {
                    th scope="col" class="number" { "difference" }
                    th scope="col" class="number" { "points" }
                    th scope="col" { "cause" }
                    th scope="col" { "numbers" }
                    th scope="col" { "certainty" }
                    th scope="col" { "where" }
                } }
                tbody {
                    @for part in parts {
                        tr {
                            td class="number" { (amount(rest, part.amount)) }
                            td class="number" { (points(part.points)) }
                            th scope="row" { (sanitize::line(&part.cause)) }
                            td { (sanitize::line(&part.detail)) }
                            td class=(part.certainty.name()) { (part.certainty.name()) }
                            td { (sanitize::line(&part.place)) }
                        }
                    }
                    @if is_last {
                        tr class="baseline" {
                            td class="number" { (amount(rest, rest.amount)) }
                            td class="number" { (points(rest.points)) }
                            th scope="row" colspan="4" {
                                "not explained"
                                @if let Some(reason) = &rest.reason { small { (sanitize::line(reason)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn flames(flames: &[Flame]) -> Markup {
    html! {
        @if !flames.is_empty() {
            section id="flames" {
                h2 { "Where the heap comes from" }
                @for flame in flames {
                    (PreEscaped(flame::figure_within(flame, flame::EMBEDDED_BOXES)))
                }
            }
        }
    }
}

/// What each section says on a terminal, folded.
fn texts(explanation: &Explanation) -> Markup {
    html! {
        section id="sections" {
            h2 { "In full" }
            @for section in &explanation.sections {
                details class="others" {
                    summary { (capitalized(section.name())) }
                    pre { code { (sanitize::block(&section.text(TEXT_WIDTH, &Palette::plain()))) } }
                }
            }
        }
    }
}
