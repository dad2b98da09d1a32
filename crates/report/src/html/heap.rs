//! The heap by allocation site: a flame graph of the baseline, and the changes of each variant.

use maud::{html, Markup, PreEscaped};
use widthwise_anatomy::heap::{wrappers, Column};

use super::flame::{self, Flame, Side};
use super::wording::prose;
use crate::comparison::Comparison;
use crate::format::listed;
use crate::heap::{Differences, Heap, Recorded};
use crate::{order, sanitize};

/// The most drawings in one page: a browser has to hold all of them.
const MOST_FIGURES: usize = 4;

/// One drawing: a variant alone, or compared with the baseline.
struct Picture<'a> {
    variant: &'a str,
    heap: &'a Heap,
    baseline: Option<(&'a str, &'a Heap)>,
    /// Its differences from the baseline, even if it is drawn alone.
    differences: Option<Differences>,
}

/// The baseline first, then the variants compared with it. A variant is drawn alone if the baseline has no
/// recording, or if the two differ by no more than recordings of one of them do.
fn pictures<'a>(comparison: &Comparison<'a>) -> Vec<Picture<'a>> {
    let recorded: &'a [Recorded] = comparison.heap;
    let read = recorded.iter().filter_map(|one| Some((one.variant.as_str(), one.heap.as_ref().ok()?)));
    let (baseline, others): (Vec<_>, Vec<_>) =
        read.partition(|(variant, _)| *variant == comparison.campaign.experiment.baseline);
    let baseline = baseline.first().copied();
    let alone = baseline.map(|(variant, heap)| Picture { variant, heap, baseline: None, differences: None });
    let equal_within = comparison.campaign.experiment.judging.equal_within;
    let compared = others.into_iter().map(|(variant, heap)| {
        let differences = baseline.map(|(_, base)| Differences::of(&base.side, &heap.side, equal_within));
        let is_clear = differences.as_ref().is_some_and(|differences| differences.peak_heap.is_clear());
        Picture { variant, heap, baseline: baseline.filter(|_| is_clear), differences }
    });
    alone.into_iter().chain(compared).collect()
}

/// Whether anything is drawn, which needs the flame graphs' script.
pub fn is_drawn(comparison: &Comparison) -> bool {
    comparison.heap.iter().any(|one| one.heap.is_ok())
}

/// The section, if heaps were recorded.
pub fn section(comparison: &Comparison) -> Markup {
    if comparison.heap.is_empty() {
        return html! {};
    }
    let pictures = pictures(comparison);
    let left_out: Vec<String> =
        pictures.iter().skip(MOST_FIGURES).map(|picture| sanitize::line(picture.variant)).collect();
    html! {
        section id="heap" {
            h2 { "Heap" }
            p class="lead" {
                "Peak heap: the highest sum of requested and not yet freed memory, by allocation site, in runs of each "
                "variant with the heap recorder. Of each variant, the recording with the median peak heap. Those runs are "
                "part of no other number here."
            }
            @if order::is_many(comparison) {
                details class="others" {
                    summary { "The peak heaps of all " (pictures.len()) " variants" }
                    (peaks(&pictures))
                }
            } @else {
                (peaks(&pictures))
            }
            @for (index, picture) in pictures.iter().take(MOST_FIGURES).enumerate() {
                details class="metric" open[index < 2] {
                    summary { h3 { (title(picture)) } }
                    (PreEscaped(flame::figure_within(&flame(picture, &title(picture), &wrappers(picture)), flame::EMBEDDED_BOXES)))
                    @if let Some(reason) = picture.heap.side.incompleteness() {
                        p { (sanitize::line(&reason)) ". Its sizes are lower bounds." }
                    }
                    @for remark in &picture.heap.side.remarks { p class="quiet" { (prose(&sanitize::line(remark))) } }
                }
            }
            div class="notes" {
                @if !left_out.is_empty() {
                    p { "Not drawn, since a page holds " (MOST_FIGURES) ": "
                        @if order::is_many(comparison) { (left_out.len()) " more variants. " } @else { (listed(&left_out)) ". " }
                        code { "widthwise explain --heap A B --html=FILE" } " draws any two." }
                }
                @if comparison.explanations.is_empty() && pictures.iter().any(|picture| picture.baseline.is_some()) {
                    p { code { "widthwise explain A B --html=FILE" } " makes the page that says why two variants differ, by cause." }
                }
                @for (reason, variants) in reasons(comparison) { p { (listed(&variants)) ": " (prose(&sanitize::line(reason))) "." } }
            }
        }
    }
}

/// The peak heap of each variant, and whether it differs from the baseline's.
fn peaks(pictures: &[Picture]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Peak heap" {
            table {
                thead { tr {
                    th scope="col" { "variant" }
                    th scope="col" { "peak heap" }
                    th scope="col" { "the allocator uses" }
                    th scope="col" { "recordings" }
                    th scope="col" { "beside the baseline" }
                } }
                tbody {
                    @for picture in pictures {
                        @let side = &picture.heap.side;
                        tr {
                            th scope="row" { (sanitize::line(picture.variant)) }
                            td { (side.at_least(side.peak_bytes)) @if side.processes > 1 {
                                ", the sum of " (side.processes) " processes' (the largest: " (side.at_least(side.largest_peak_bytes)) ")"
                            } }
                            td { @if side.peak_chunk_bytes > 0 { (side.at_least(side.peak_chunk_bytes)) } }
                            td { (side.recordings.len()) }
                            td { @if let Some(differences) = &picture.differences {
                                (differences.peak_heap.found.word.text())
                                @if let Some(reason) = &differences.peak_heap.found.reason { ": " (prose(&sanitize::line(reason))) }
                            } }
                        }
                    }
                }
            }
        }
    }
}

fn title(picture: &Picture) -> String {
    let variant = sanitize::line(picture.variant);
    match picture.baseline {
        Some((baseline, _)) => format!("{variant} beside {}", sanitize::line(baseline)),
        None => variant,
    }
}

/// Thin wrappers in a picture's recordings: they are no sites.
fn wrappers(picture: &Picture) -> Vec<String> {
    let heaps = std::iter::once(picture.heap).chain(picture.baseline.map(|(_, heap)| heap));
    let found = wrappers::find_in_all(heaps.map(|heap| (&heap.profile, heap.program.as_str())), &[]);
    found.into_iter().filter(|wrapper| wrapper.is_thin).map(|wrapper| wrapper.function).collect()
}

fn flame<'a>(picture: &Picture<'a>, title: &'a str, through: &'a [String]) -> Flame<'a> {
    let side =
        |variant, heap: &'a Heap| Side { name: variant, profile: &heap.profile, program: &heap.program };
    let own = side(picture.variant, picture.heap);
    let (first, second) = match picture.baseline {
        Some((baseline, heap)) => (side(baseline, heap), Some(own)),
        None => (own, None),
    };
    Flame { title, column: Column::PeakBytes, first, second, through }
}

/// Why some variants have no recording, each reason once.
fn reasons<'a>(comparison: &Comparison<'a>) -> Vec<(&'a str, Vec<String>)> {
    let recorded: &'a [Recorded] = comparison.heap;
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (variant, reason) in recorded.iter().filter_map(|one| Some((&one.variant, one.heap.as_ref().err()?)))
    {
        let variant = sanitize::line(variant);
        match reasons.iter_mut().find(|(known, _)| *known == reason.as_str()) {
            Some((_, variants)) => variants.push(variant),
            None => reasons.push((reason, vec![variant])),
        }
    }
    reasons
}
