//! The tables of a campaign of many metrics, and the picture of the cache steps of the micro suite.

use maud::{html, Markup};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_verdict::{Typical, Word};

use super::wording::{plain, prose};
use crate::by_metric::{nodes, tables, Cell, Table, MOST_VARIANTS};
use crate::comparison::Comparison;
use crate::sanitize;

/// The style of the picture: that of every picture of curves.
pub const STYLE: &str = include_str!("../scale/scale.css");

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 52.0;
const BELOW: f64 = 36.0;

/// The tables, and the picture where there is one.
pub fn section(comparison: &Comparison) -> Markup {
    html! {
        @for table in tables(comparison, MOST_VARIANTS) {
            (one_table(comparison, &table))
            @if let Some(line) = table.zeros() { p class="lead" { (prose(&line)) "." } }
        }
        (steps(comparison))
    }
}

fn one_table(comparison: &Comparison, table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(table.head) {
            table class="verdicts" {
                thead { tr {
                    th scope="col" { (table.head) }
                    th scope="col" { (sanitize::line(&comparison.campaign.experiment.baseline)) " (baseline)" }
                    @for variant in &table.variants { th scope="col" { (sanitize::line(variant)) } }
                    th scope="col" { "floor" }
                } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            th scope="row" title=(plain(&sanitize::line(row.metric.noun))) { (row.title) }
                            td { (prose(&row.baseline)) }
                            @for (variant, cell) in table.variants.iter().zip(&row.cells) {
                                (one_cell(comparison, variant, row.metric, cell))
                            }
                            td { (prose(&row.floor)) }
                        }
                    }
                }
            }
        }
    }
}

fn one_cell(comparison: &Comparison, variant: &str, metric: Metric, cell: &Cell) -> Markup {
    let class = match cell.word {
        None | Some(Word::NoData) => "missing",
        Some(word) => word.name(),
    };
    html! {
        td {
            span class=(class) title=[cell.reason.as_deref().map(plain)] { (prose(&cell.text)) }
            @if let Some(typical) = comparison.typical(variant, metric).filter(|_| class != "missing") {
                small { (prose(&crate::format::typical(typical))) }
            }
        }
    }
}

/// A logarithmic axis from `low` to `high`, `from` and `to` on the paper.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln();
        self.from + (self.to - self.from) * if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// One curve: the variant, and for each number of nodes its figures.
type Curve<'a> = (&'a str, Vec<(f64, &'a Typical)>);

fn drawn_curves<'a>(comparison: &'a Comparison) -> Vec<Curve<'a>> {
    let experiment = comparison.campaign.experiment;
    let of = |variant: &'a str| -> Curve<'a> {
        let points = experiment.metrics.iter().filter_map(|metric| {
            let typical = comparison.typical(variant, metric).filter(|typical| typical.median > 0.0)?;
            Some((nodes(metric.name)? as f64, typical))
        });
        (variant, points.collect())
    };
    let names = experiment.variants.iter().map(|variant| variant.name.as_str());
    names.map(of).filter(|(_, points)| points.len() > 1).collect()
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// Time for a step through a list, over the number of its nodes: one curve for each variant.
fn steps(comparison: &Comparison) -> Markup {
    let curves = drawn_curves(comparison);
    let all = || curves.iter().flat_map(|(_, points)| points);
    let least = |of: &dyn Fn(&(f64, &Typical)) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: &dyn Fn(&(f64, &Typical)) -> f64| all().map(of).fold(0.0, f64::max);
    if curves.is_empty() {
        return html! {};
    }
    let across = Axis { low: least(&|p| p.0), high: most(&|p| p.0), from: LEFT + 8.0, to: WIDTH - 12.0 };
    let (low, high) = (least(&|p| p.1.low_quartile.max(p.1.min)), most(&|p| p.1.high_quartile));
    let up = Axis { low: low / 1.2, high: high * 1.2, from: HEIGHT - BELOW, to: 8.0 };
    let counts: Vec<f64> = {
        let mut counts: Vec<f64> = all().map(|point| point.0).collect();
        counts.sort_by(f64::total_cmp);
        counts.dedup();
        counts
    };
    let times = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
    html! {
        section id="steps" {
            h2 { "Cache steps" }
            p class="lead" {
                "Time for one step through a list in random order, over the number of its nodes; both axes are logarithmic. A node "
                "is two pointers: with 4-byte pointers twice as many fit into a cache. The point is the median of the runs, the line "
                "through it their middle half."
            }
            svg class="curves" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
                aria-label="Nanoseconds for a step through a list, over its nodes; the table above has the numbers" {
                @for time in times.into_iter().filter(|time| (up.low..=up.high).contains(time)) {
                    line class="grid" x1=(LEFT) x2=(WIDTH - 8.0) y1=(number(up.place(time))) y2=(number(up.place(time))) {}
                    text class="word" x=(LEFT - 6.0) y=(number(up.place(time) + 4.0)) text-anchor="end" {
                        (Quantity { value: time, unit: Unit::Nanoseconds })
                    }
                }
                @for count in &counts {
                    text class="word" x=(number(across.place(*count))) y=(HEIGHT - BELOW + 16.0) text-anchor="middle" { (short(*count)) }
                }
                text class="word" x=(WIDTH - 8.0) y=(HEIGHT - 4.0) text-anchor="end" { "nodes" }
                @for (place, (variant, points)) in curves.iter().enumerate() {
                    g class=(format!("s{}", place % 6)) {
                        polyline points=(points.iter().map(|(n, typical)| format!("{},{}", number(across.place(*n)), number(up.place(typical.median)))).collect::<Vec<_>>().join(" ")) {}
                        @for (n, typical) in points {
                            line x1=(number(across.place(*n))) x2=(number(across.place(*n)))
                                y1=(number(up.place(typical.low_quartile))) y2=(number(up.place(typical.high_quartile))) {}
                            circle cx=(number(across.place(*n))) cy=(number(up.place(typical.median))) r="3" {
                                title { (sanitize::line(variant)) ", " (short(*n)) " nodes: "
                                    (Quantity { value: typical.median, unit: Unit::Nanoseconds }) }
                            }
                        }
                    }
                }
            }
            ul class="legend" {
                @for (place, (variant, _)) in curves.iter().enumerate() {
                    li { span class=(format!("key s{}", place % 6)) {} (sanitize::line(variant)) }
                }
            }
        }
    }
}

/// `16 Ki`.
fn short(nodes: f64) -> String {
    match nodes {
        n if n >= 1_048_576.0 => format!("{} Mi", n / 1_048_576.0),
        n if n >= 1024.0 => format!("{} Ki", n / 1024.0),
        n => n.to_string(),
    }
}

/// Whether the page has the picture.
pub fn has_steps(comparison: &Comparison) -> bool {
    !drawn_curves(comparison).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenfold_is_equally_long_everywhere_on_a_logarithmic_axis() {
        let axis = Axis { low: 1.0, high: 1000.0, from: 0.0, to: 300.0 };
        assert_eq!(
            [1.0, 10.0, 100.0, 1000.0].map(|value| axis.place(value).round()),
            [0.0, 100.0, 200.0, 300.0]
        );
        assert_eq!(axis.place(0.0), 0.0);
    }
}
