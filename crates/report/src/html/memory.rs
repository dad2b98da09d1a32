//! Memory over time: each variant's memory by purpose, stacked, all variants on one scale, with the program's
//! phases.

use maud::{html, Markup};
use widthwise_experiment::memory::{Class, Series};
use widthwise_experiment::units::Unit;
use widthwise_experiment::Metric;

use super::axis::{Scale, WIDTH};
use super::fold::packed;
use super::plot::{apart, axis, downsampled, drawing, grid, row, Path};
use super::wording::{amount, name, prose};
use super::{charts, forest, summary};
use crate::comparison::Comparison;
use crate::format::counted;
use crate::memory::{self, LastReading, Line};
use crate::{order, sanitize};

const HEIGHT: u32 = 170;
/// The most points of one line; more would hide each other.
const MOST_POINTS: usize = 1000;
/// The most phases to mark in a panel or to list; more would be unreadable.
const MOST_PHASES: usize = 60;
/// The most characters of a phase's name above a panel.
const LONGEST_PHASE: usize = 18;

/// The section, if memory was read.
pub fn section(comparison: &Comparison) -> Markup {
    let Some(how) = memory::how(comparison) else { return html! {} };
    let metrics = memory::metrics(comparison);
    let gaps = memory::gaps(comparison, &metrics);
    html! {
        section id="memory" {
            h2 { "Memory over time" }
            p class="lead" { (prose(&how)) }
            (summary::tables(comparison, &metrics))
            div class="notes" {
                @for gap in gaps { p { (prose(&gap.line(comparison))) } }
                p { "The memory of the whole process tree; pages that its processes share count once. Peaks of classes need not be at one moment." }
            }
            (panels(comparison))
            (tables(comparison))
            details class="others" {
                summary { "Intervals of these metrics, and every run" }
                (packed(forests(comparison, &metrics), || html! {
                    p class="none" { "The drawings need a script; the tables of verdicts have their numbers." }
                }))
                @for metric in &metrics {
                    details class="metric" {
                        summary { h3 { (comparison.title(metric)) } span class="brief" { (charts::brief(comparison, metric)) } }
                        (charts::charts(comparison, metric))
                    }
                }
            }
        }
    }
}

fn forests(comparison: &Comparison, metrics: &[Metric]) -> Markup {
    html! { div class="forests" { @for metric in metrics { (forest::figure(comparison, metric)) } } }
}

/// What memory is for, and the peaks of phases; with many variants the first few, and all of them folded.
fn tables(comparison: &Comparison) -> Markup {
    let compared = memory::compared(comparison);
    let (few, all) = (&compared[..compared.len().min(order::shown(comparison))], &compared[..]);
    let both = |portraits: &[LastReading]| html! { (table(comparison, portraits)) (phases(portraits)) };
    html! {
        (both(few))
        @if few.len() < all.len() {
            details class="others" {
                summary { "What memory is for in all " (all.len()) " variants" }
                (packed(both(all), || html! { p class="none" { "The table needs a script; `--json` has its numbers." } }))
            }
        }
    }
}

/// The classes that have memory in any of these.
fn classes(portraits: &[LastReading]) -> Vec<Class> {
    let holds = |series: &Series, class| {
        series.readings.iter().any(|reading| series.of_class(reading, class).resident > 0)
    };
    Class::ALL.into_iter().filter(|class| portraits.iter().any(|p| holds(&p.run.series, *class))).collect()
}

fn panels(comparison: &Comparison) -> Markup {
    let portraits = memory::portraits(comparison);
    let tallest = portraits.iter().flat_map(|p| p.run.series.levels()).map(|level| level.resident).max();
    let (Some(tallest), longest) =
        (tallest, portraits.iter().map(|p| p.run.series.wall_ns).max().unwrap_or(0))
    else {
        return html! { p class="none" { "No run was long enough for an smaps snapshot." } };
    };
    let up = Scale::from_zero(tallest as f64 * 1.04);
    let along = Scale::from_zero(longest.max(1) as f64);
    let classes = classes(&portraits);
    let heights = up.ticks(4).amounts(Unit::Bytes);
    let times: Vec<(f64, String)> = along
        .ticks(6)
        .amounts(Unit::Nanoseconds)
        .into_iter()
        .map(|(at, text)| (along.place(at), text))
        .collect();
    let (few, others) = portraits.split_at(portraits.len().min(order::shown(comparison)));
    let rows = |portraits: &[LastReading]| {
        html! {
            @for portrait in portraits {
                (row(name(comparison, portrait.variant), panel(portrait, &classes, &up, &along, &heights), value(portrait)))
            }
        }
    };
    html! {
        figure class="memory" {
            figcaption {
                strong { "What memory is for" }
                span {
                    "Resident memory of one run of each variant, the one with the median peak, all on one scale. "
                    "Areas join pagemap scans and smaps snapshots, each valid while the size stayed the same; the line has "
                    "the statm samples too. "
                    @if classes.contains(&Class::Runtime) {
                        "The x32 runtime's own memory is in the drawing, and in no peak. "
                    }
                    @if portraits.iter().any(|p| !p.run.series.marks.is_empty()) {
                        "Dashed: the program wrote that a phase begins. "
                    }
                }
                ol class="legend" {
                    // As they are stacked, the topmost first.
                    @for class in classes.iter().rev() { li { (swatch(*class)) (class.title()) } }
                }
            }
            (rows(few))
            (axis(&times))
            @if !others.is_empty() {
                details class="others" {
                    summary { "The other " (others.len()) " variants" }
                    (packed(html! { (rows(others)) (axis(&times)) }, || html! {
                        p class="none" { "The drawings need a script; the table of verdicts has their peaks." }
                    }))
                }
            }
        }
    }
}

fn swatch(class: Class) -> Markup {
    html! { span class={ "swatch " (class.name()) } aria-hidden="true" {} }
}

fn value(portrait: &LastReading) -> Markup {
    let read = portrait.run.series.programs_levels().iter().map(|level| level.resident).max().unwrap_or(0);
    html! {
        @if portrait.is_at_peak() { "peak " } @else { "at most read " }
        (amount(read as f64, Unit::Bytes))
    }
}

fn panel(
    portrait: &LastReading,
    classes: &[Class],
    up: &Scale,
    along: &Scale,
    heights: &[(f64, String)],
) -> Markup {
    let series = &portrait.run.series;
    let height = f64::from(HEIGHT);
    let y = |bytes: f64| height - up.place(bytes) / WIDTH * height;
    let x = |at: u64| along.place(at as f64);
    let readings = downsampled(&memory::held(series), MOST_POINTS);
    // The lower and upper edges of each class at each moment; the last one extends to the end.
    let mut floors = vec![0.0; readings.len()];
    let mut areas = Vec::new();
    for class in classes {
        let tops: Vec<f64> = readings
            .iter()
            .zip(&floors)
            .map(|((_, reading), floor)| floor + series.of_class(reading, *class).resident as f64)
            .collect();
        let mut path = Path::default();
        let ends = || readings.iter().map(|(at, _)| x(*at)).zip(&tops);
        let last = x(series.wall_ns);
        for (x, top) in ends() {
            path.through(x, y(*top));
        }
        if let (Some(top), Some(floor)) = (tops.last(), floors.last()) {
            path.through(last, y(*top));
            path.through(last, y(*floor));
        }
        for ((at, _), floor) in readings.iter().zip(&floors).rev() {
            path.through(x(*at), y(*floor));
        }
        path.close();
        if tops.iter().zip(&floors).any(|(top, floor)| top > floor) {
            areas.push(path.drawn(&format!("area {}", class.name())));
        }
        floors = tops;
    }
    let mut line = Path::default();
    for level in downsampled(&series.levels(), MOST_POINTS) {
        line.through(x(level.at_ns), y(level.resident as f64));
    }
    let phases = memory::phases(series);
    let mut marks = Path::default();
    for (_, from, _) in phases.iter().take(MOST_PHASES) {
        marks.down(x(*from), 0.0, height);
    }
    let mut levels = Path::default();
    for (at, _) in heights {
        levels.across(0.0, WIDTH, y(*at));
    }
    let largest: Vec<String> = classes
        .iter()
        .map(|class| (class, series.of_class(portrait.peak, *class).resident))
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(class, bytes)| format!("{} {}", class.title(), amount(bytes as f64, Unit::Bytes)))
        .collect();
    let label = format!(
        "{}: memory over time; {}: {}",
        sanitize::line(portrait.variant),
        memory::moment(std::slice::from_ref(portrait)),
        largest.join(", ")
    );
    let labels: Vec<(f64, String)> =
        phases.iter().take(MOST_PHASES).map(|(name, from, _)| (x(*from), clipped(name))).collect();
    html! {
        (phase_names(&labels))
        div class="field" {
            @for (at, text) in heights {
                span class="edge-label" style={ "top:calc(" (format!("{:.1}", y(*at) / height * 100.0)) "% - .35rem)" } { (text) }
            }
            (drawing("stack", HEIGHT, &label, html! {
                (grid(&[], HEIGHT)) (levels.drawn("grid"))
                @for area in &areas { (area) }
                (line.drawn("line")) (marks.drawn("pause"))
            }))
        }
    }
}

/// The names of phases above a panel, each at its start, without names that would overlap the next.
fn phase_names(labels: &[(f64, String)]) -> Markup {
    html! {
        @if !labels.is_empty() {
            svg class="phases" height="16" aria-hidden="true" {
                @for (place, text) in apart(labels) {
                    text x={ (format!("{:.1}", place / WIDTH * 100.0)) "%" } y="12" { (text) }
                }
            }
        }
    }
}

fn clipped(name: &str) -> String {
    if name.chars().count() <= LONGEST_PHASE {
        return name.to_owned();
    }
    name.chars().take(LONGEST_PHASE - 1).chain(['…']).collect()
}

/// What memory is for at the peak, and what each variant saves relative to the baseline.
fn table(comparison: &Comparison, compared: &[LastReading]) -> Markup {
    if compared.is_empty() {
        return html! {};
    }
    let moment = memory::moment(compared);
    let class_of =
        |line: &Line| Class::ALL.into_iter().find(|class| !line.is_sum && class.title() == line.title);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label={ "What memory is for " (moment) } {
            table class="verdicts" {
                thead { tr {
                    th scope="col" { (moment) }
                    @for portrait in compared { th scope="col" { (sanitize::line(portrait.variant)) } }
                } }
                tbody {
                    @if let Some((title, shares)) = memory::shares(compared) {
                        tr { th scope="row" { (title) } @for share in shares { td { (share) } } }
                    }
                    @for line in memory::lines(comparison, compared) {
                        tr class=[line.is_sum.then_some("baseline")] {
                            th scope="row" {
                                @if let Some(class) = class_of(&line) { (swatch(class)) }
                                (line.title)
                            }
                            @for (bytes, reduction) in line.amounts.iter().zip(&line.reductions) {
                                td {
                                    @match *bytes {
                                        None => span class="quiet" { "not read" },
                                        Some(bytes) => (amount(bytes, Unit::Bytes)),
                                    }
                                    @if let Some(reduction) = *reduction {
                                        small { "reduction " (memory::percent(reduction)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        div class="notes" { p {
            "The reduction is (baseline − variant) / baseline, as rauschmayr-2013 defines it: negative where the variant needs more. It is shown only where the runs resolve a difference. "
            @if let Some(why) = memory::why_without_reductions(compared) { (why) }
        } }
    }
}

/// The peak of each phase, of the first ones.
fn phases(portraits: &[LastReading]) -> Markup {
    let series: Vec<&Series> = portraits.iter().map(|portrait| &portrait.run.series).collect();
    let rows = memory::phase_rows(&series);
    if rows.is_empty() {
        return html! {};
    }
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="The peak of each phase" {
            table class="verdicts" {
                thead { tr {
                    th scope="col" { "peak of each phase" }
                    @for portrait in portraits { th scope="col" { (sanitize::line(portrait.variant)) } }
                } }
                tbody {
                    @for (phase, peaks) in rows.iter().take(MOST_PHASES) {
                        tr {
                            th scope="row" { (phase) }
                            @for peak in peaks {
                                td {
                                    // A variant may have other phases.
                                    @match peak {
                                        Some(Some(bytes)) => (amount(*bytes as f64, Unit::Bytes)),
                                        Some(None) => span class="quiet" { "too short to be read" },
                                        None => span class="missing" { "not there" },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if rows.len() > MOST_PHASES {
            div class="notes" { p {
                (counted(rows.len() - MOST_PHASES, "more phase")) " and their times: in the JSON."
            } }
        }
    }
}
