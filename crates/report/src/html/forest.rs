//! Every interval as a drawing: one chart for each metric, with the detection floor as a band about zero.

use maud::{html, Markup};
use widthwise_experiment::Metric;
use widthwise_verdict::wording::{self, margin};
use widthwise_verdict::{Verdict, Word};

use super::axis::RatioScale;
use super::fold::packed;
use super::plot::{axis, drawing, grid, instead, row, Path};
use super::wording::{name, prose, titles};
use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::{by_metric, order, sanitize};

const HEIGHT: u32 = 28;

pub fn section(comparison: &Comparison, columns: &Columns) -> Markup {
    html! {
        section id="differences" {
            h2 { "Differences to the baseline" }
            p class="lead" {
                "The bar is the interval, the dot the estimate: filled where it is called a difference, hollow where "
                "it is not. The band is the detection floor of this machine. Between the dashed lines lies the "
                "margin, " (prose(&margin(comparison.campaign.experiment.judging.equal_within))) ": an interval wholly between "
                "them that is called no difference shows one. Where the axis ends before them, they are not drawn."
            }
            @let is_folded = order::is_many(comparison) || by_metric::applies(comparison);
            @let shown = if is_folded { columns.leading.len().min(1) } else { columns.leading.len() };
            @let (open, others) = columns.leading.split_at(shown);
            @let others = [others, &columns.others[..]].concat();
            div class="forests" {
                @for metric in open { (figure(comparison, metric)) }
            }
            @if !others.is_empty() {
                details class="others" {
                    summary { "Other metrics: " (titles(&others)) }
                    (packed(
                        html! { div class="forests" { @for metric in &others { (figure(comparison, metric)) } } },
                        || html! { p class="none" { "The drawings need a script; the tables of verdicts have their numbers." } },
                    ))
                }
            }
            @if columns.all().is_empty() { p class="none" { "No metric was measured." } }
        }
    }
}

pub fn figure(comparison: &Comparison, metric: Metric) -> Markup {
    let others: Vec<String> = order::participants(comparison)
        .into_iter()
        .filter(|name| *name != comparison.campaign.experiment.baseline)
        .collect();
    let band = comparison.floor_ratios(metric);
    let drawn: Vec<(f64, f64, f64)> =
        others.iter().filter_map(|name| comparison.verdict(name, metric)).filter_map(interval).collect();
    let empty = drawn.is_empty();
    let ends = drawn.into_iter().flat_map(|(ratio, low, high)| [ratio, low, high]);
    let scale = RatioScale::over(ends.chain(band.into_iter().flat_map(|(low, high)| [low, high])));
    let ticks: Vec<(f64, String)> =
        scale.ticks().into_iter().map(|(ratio, text)| (scale.place(ratio), text)).collect();
    html! {
        figure class="forest" {
            figcaption {
                strong { (comparison.title(metric)) }
                @if let Some(floor) = comparison.floor_text(metric) { span { "floor " (prose(&floor)) } }
                @else { span { "no detection floor is known" } }
            }
            @for variant in &others {
                @match comparison.verdict(variant, metric).filter(|_| comparison.campaign.not_measured(variant).is_none()) {
                    Some(verdict) => (variant_row(comparison, verdict, &scale, &ticks, band)),
                    None => {
                        @let reason = comparison.campaign.not_measured(variant).map_or("no verdict".to_owned(), sanitize::line);
                        (absent(comparison, variant, "not measured", &reason))
                    }
                }
            }
            @if !empty { (axis(&ticks)) }
        }
    }
}

/// A verdict's interval, if it may be shown. A withheld verdict has numbers, but not for comparison.
fn interval(verdict: &Verdict) -> Option<(f64, f64, f64)> {
    if matches!(verdict.word, Word::Withheld | Word::NoData) {
        return None;
    }
    // A count can fall to zero, and so can its ratio: the logarithmic axis clamps it to its edge.
    let drawable = |ratio: Option<f64>| ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0);
    let ratio = drawable(verdict.ratio)?;
    Some((ratio, drawable(verdict.low).unwrap_or(ratio), drawable(verdict.high).unwrap_or(ratio)))
}

fn variant_row(
    comparison: &Comparison,
    verdict: &Verdict,
    scale: &RatioScale,
    ticks: &[(f64, String)],
    band: Option<(f64, f64)>,
) -> Markup {
    if verdict.difference.is_some() && !matches!(verdict.word, Word::Withheld | Word::NoData) {
        return without_ratio(comparison, verdict);
    }
    let Some((ratio, low, high)) = interval(verdict) else {
        let reason = sanitize::line(verdict.reason.as_deref().unwrap_or("no reason was recorded"));
        return absent(comparison, &verdict.variant, verdict.word.text(), &reason);
    };
    let middle = f64::from(HEIGHT) / 2.0;
    let (mut floor, mut zero, mut bar, mut dot) =
        (Path::default(), Path::default(), Path::default(), Path::default());
    let mut margin = Path::default();
    for end in [1.0 / (1.0 + verdict.equal_within), 1.0 + verdict.equal_within] {
        if scale.holds(end) {
            margin.down(scale.place(end), 0.0, f64::from(HEIGHT));
        }
    }
    if let Some((from, to)) = band {
        let (from, to) = (scale.place(from), scale.place(to));
        floor.bar(from, 0.0, to - from, f64::from(HEIGHT));
    }
    zero.down(scale.place(1.0), 0.0, f64::from(HEIGHT));
    let (from, to) = (scale.place(low), scale.place(high));
    bar.across(from, to, middle);
    bar.down(from, middle - 4.0, middle + 4.0);
    bar.down(to, middle - 4.0, middle + 4.0);
    dot.dot(scale.place(ratio), middle);
    let word = verdict.word.name();
    let text = sanitize::line(&wording::interval(verdict));
    let is_open = matches!(verdict.word, Word::NoDifference | Word::Inconclusive);
    let reason = verdict.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let label = sanitize::line(&format!("{}: {text}{reason}", verdict.variant));
    let places: Vec<f64> = ticks.iter().map(|tick| tick.0).collect();
    row(
        name(comparison, &verdict.variant),
        drawing(
            word,
            HEIGHT,
            &label,
            html! {
                (floor.drawn("band")) (grid(&places, HEIGHT)) (zero.drawn("zero")) (margin.drawn("margin"))
                (bar.drawn("bar")) (dot.drawn("dot"))
                @if is_open { (dot.drawn("hole")) }
            },
        ),
        value(verdict),
    )
}

/// A row without a drawing: a difference without a ratio has no position on the axis.
fn without_ratio(comparison: &Comparison, verdict: &Verdict) -> Markup {
    let reason = verdict.reason.as_deref().map(|reason| format!("; {reason}")).unwrap_or_default();
    let label = sanitize::line(&format!("no ratio, and means of all runs: some run counted 0{reason}"));
    row(name(comparison, &verdict.variant), instead(&label), value(verdict))
}

/// The word or the figures; a verdict without a difference has both. The A/A control has its name in place of the word.
fn value(verdict: &Verdict) -> Markup {
    let is_open = matches!(verdict.word, Word::NoDifference | Word::Inconclusive);
    let figures = wording::numbers(verdict).filter(|_| is_open);
    let word = match verdict.is_control() && figures.is_some() {
        true => "A/A".to_owned(),
        false => wording::interval(verdict),
    };
    html! {
        span class=(verdict.word.name()) { (prose(&sanitize::line(&word))) }
        @if let Some(figures) = figures { " " span class="quiet" { (prose(&sanitize::line(&figures))) } }
    }
}

fn absent(comparison: &Comparison, variant: &str, word: &str, reason: &str) -> Markup {
    row(name(comparison, variant), instead(reason), html! { span class="missing" { (word) } })
}
