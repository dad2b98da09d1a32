//! One self-contained page: nothing is loaded, nothing runs.

use maud::{html, Markup, PreEscaped};
use widthwise_experiment::scale::{Cell, GroupRun, Purpose};
use widthwise_verdict::scaling_summary::Table;

use super::columns::columns;
use super::figures::{bytes, ranged};
use super::model::Scaling;
use super::names::title;
use super::sentences;
use crate::html::{document, prose, reproduce, POLICY};
use crate::sanitize;

const STYLE: &str = include_str!("scale.css");

/// Size of a drawing, in its own units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// The width of the labels at the axes.
const LEFT: f64 = 48.0;
const BELOW: f64 = 34.0;

/// The most members whose memory is drawn.
const MOST_MEMBERS: usize = 64;

/// The page.
pub fn page(report: &Scaling) -> String {
    let name = sanitize::line(&report.campaign.experiment.program.name);
    let shown: Vec<&Table> = report.summary.tables.iter().filter(|table| table.has_runs()).collect();
    let body = html! {
        body {
            header {
                p class="kicker" { "Scale" }
                h1 { (name) " " (sanitize::line(&report.campaign.version)) }
                p class="command" { code { (sanitize::line(&report.campaign.experiment.program.run)) } }
                p class="extent" { (sanitize::line(&sentences::extent(report))) }
            }
            main {
                section id="answer" class="answer" {
                    @for sentence in sentences::all(report).into_iter().take(3) { p { (prose(&sanitize::line(&sentence))) } }
                }
                section id="curves" {
                    h2 { "Speed-up" }
                    p class="lead" {
                        "Throughput relative to that of the smallest number, within rounds; bars are intervals. The dashed line is "
                        "linear speed-up."
                    }
                    (curves(&drawn(&shown)))
                    (legend(&drawn(&shown)))
                }
                section id="tables" {
                    h2 { "Tables" }
                    @for table in &shown { (one_table(table)) }
                }
                section id="findings" {
                    h2 { "Results" }
                    @for sentence in sentences::all(report).into_iter().skip(3) { p { (prose(&sanitize::line(&sentence))) } }
                }
                (memory(report))
                section id="placements" {
                    h2 { "Placements" }
                    @for (name, drawing) in &report.drawings {
                        h3 { (sanitize::line(name)) }
                        div class="picture" { (PreEscaped(drawing.as_str())) }
                    }
                }
                @if !report.campaign.warnings.is_empty() || !report.not_measured().is_empty() {
                    section id="notes" {
                        h2 { "Notes" }
                        ul {
                            @for (variant, reason) in report.not_measured() {
                                li { strong { (sanitize::line(variant)) } ": " (prose(&sanitize::line(reason))) }
                            }
                            @for remark in &report.campaign.warnings { li { (prose(&sanitize::line(remark))) } }
                        }
                    }
                }
                section id="machine" {
                    h2 { "Machine" }
                    dl class="machine" {
                        @for (name, text) in &report.campaign.machine_lines {
                            div { dt { (sanitize::line(name)) } dd { (sanitize::line(text)) } }
                        }
                    }
                }
                (reproduce(&report.campaign))
            }
            footer { p { "Widthwise " (sanitize::line(report.campaign.widthwise)) " · " (sanitize::line(&report.campaign.created)) } }
        }
    };
    document(&format!("{name} · scale"), POLICY, &[STYLE], &body).into_string()
}

fn one_table(table: &Table) -> Markup {
    let columns = columns(table);
    html! {
        h3 { (sanitize::line(&title(table))) }
        div class="scroll" tabindex="0" role="region" aria-label=(sanitize::line(&title(table))) { table class="scale" {
            thead { tr { @for (head, _) in &columns { th scope="col" { (head) } } } }
            tbody {
                @for row in &table.rows {
                    tr { @for (place, (_, of)) in columns.iter().enumerate() {
                        @if place == 0 { th scope="row" { (of(row)) } } @else { td { (of(row)) } }
                    } }
                    @if let Some(failure) = &row.failure {
                        tr class="failed" { td colspan=(columns.len()) { (prose(&sanitize::line(failure))) } }
                    }
                }
            }
        } }
    }
}

/// The position of a number on axes from 0 to `most`.
struct Axes {
    across: f64,
    up: f64,
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - 8.0) * value / self.across
    }

    fn y(&self, value: f64) -> f64 {
        (HEIGHT - BELOW) - (HEIGHT - BELOW - 8.0) * value / self.up
    }
}

/// About `about` round steps.
fn ticks(most: f64, about: f64) -> Vec<f64> {
    let rough = most / about;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(power);
    (0..=(most / step).floor() as usize).map(|n| n as f64 * step).collect()
}

fn number(value: f64) -> String {
    format!("{:.1}", if value.is_finite() { value } else { 0.0 })
}

/// Tables with something to draw.
fn drawn<'a>(tables: &[&'a Table]) -> Vec<&'a Table> {
    tables.iter().copied().filter(|table| table.rows.iter().any(|row| row.speed_up.is_ok())).collect()
}

/// Axes that fit both the curves and the whole ideal line, which ends at the ratio of the largest to the
/// smallest number of processes.
fn axes(processes: f64, speed_up: f64, smallest: f64) -> Axes {
    let across = processes * 1.03;
    Axes { across, up: (speed_up.max(1.0) * 1.1).max(across / smallest) }
}

fn curves(tables: &[&Table]) -> Markup {
    let most = |of: &dyn Fn(&widthwise_verdict::scaling_summary::Row) -> Option<f64>| {
        tables.iter().flat_map(|table| &table.rows).filter_map(of).fold(0.0, f64::max)
    };
    let processes = most(&|row| Some(row.processes as f64)).max(1.0);
    let speed_up = most(&|row| {
        let figure = row.speed_up.as_ref().ok()?;
        Some(figure.bounds.map_or(figure.estimate, |bounds| bounds.high))
    });
    let smallest =
        tables.iter().flat_map(|t| t.rows.first()).map(|row| row.processes).min().unwrap_or(1) as f64;
    let axes = axes(processes, speed_up, smallest);
    let (across, up) = (axes.across, axes.up);
    html! {
        svg class="curves" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label="Speed-up over the number of processes; the tables below have the numbers" {
            @for tick in ticks(up, 5.0) {
                line class="grid" x1=(LEFT) x2=(WIDTH - 8.0) y1=(number(axes.y(tick))) y2=(number(axes.y(tick))) {}
                text class="word" x=(LEFT - 6.0) y=(number(axes.y(tick) + 4.0)) text-anchor="end" { (tick) }
            }
            @for tick in ticks(across, 8.0).into_iter().filter(|tick| tick.fract() == 0.0) {
                text class="word" x=(number(axes.x(tick))) y=(HEIGHT - BELOW + 16.0) text-anchor="middle" { (tick) }
            }
            text class="word" x=(WIDTH - 8.0) y=(HEIGHT - 4.0) text-anchor="end" { "processes" }
            line class="ideal" x1=(number(axes.x(0.0))) y1=(number(axes.y(0.0)))
                x2=(number(axes.x(across))) y2=(number(axes.y(across / smallest))) {}
            @for (place, table) in tables.iter().enumerate() {
                @let points: Vec<(f64, widthwise_verdict::scaling::Figure)> = table.rows.iter()
                    .filter_map(|row| Some((row.processes as f64, row.speed_up.ok()?))).collect();
                g class=(format!("s{}", place % 6)) {
                    polyline points=(points.iter().map(|(n, f)| format!("{},{}", number(axes.x(*n)), number(axes.y(f.estimate)))).collect::<Vec<_>>().join(" ")) {}
                    @for (n, figure) in &points {
                        @if let Some(ends) = figure.bounds {
                            line x1=(number(axes.x(*n))) x2=(number(axes.x(*n))) y1=(number(axes.y(ends.low))) y2=(number(axes.y(ends.high))) {}
                        }
                        circle cx=(number(axes.x(*n))) cy=(number(axes.y(figure.estimate))) r="3.5" {
                            title { (sanitize::line(&title(table))) ", " (n) ": " (ranged(&Ok(*figure), 2)) }
                        }
                    }
                }
            }
        }
    }
}

fn legend(tables: &[&Table]) -> Markup {
    html! {
        ul class="legend" {
            @for (place, table) in tables.iter().enumerate() {
                li { span class=(format!("key s{}", place % 6)) {} (sanitize::line(&title(table))) }
            }
        }
    }
}

/// The runs of the memory series of the largest cell of each table that has any.
fn largest(runs: &[GroupRun]) -> Vec<&GroupRun> {
    let read = |run: &&GroupRun| {
        let has_moments = run.memory.as_ref().is_some_and(|memory| memory.moments.len() > 1);
        run.purpose == Purpose::Memory && run.is_sound() && has_moments
    };
    let of_table = |run: &GroupRun| {
        let Cell { variant, mode, placement, .. } = &run.cell;
        (variant.clone(), *mode, placement.clone())
    };
    let is_largest = |run: &&GroupRun| {
        let mut others = runs.iter().filter(read).filter(|other| of_table(other) == of_table(run));
        others.all(|other| other.cell.processes <= run.cell.processes)
    };
    runs.iter().filter(read).filter(is_largest).collect()
}

/// Memory over time, for the largest cell of each table that has any.
fn memory(report: &Scaling) -> Markup {
    let shown = largest(report.runs);
    if shown.is_empty() {
        return html! {};
    }
    let is_cut = shown.iter().any(|run| run.members.len() > MOST_MEMBERS);
    let frozen = shown.iter().all(|run| run.memory.as_ref().is_some_and(|memory| memory.frozen));
    html! {
        section id="memory" {
            h2 { "Memory over time" }
            p class="lead" {
                "All processes together, "
                @if frozen { "while they were frozen" } @else { "read one after the other while some or all continued" }
                ". The line is PSS, the area is USS (private memory), thin lines are "
                "the PSS of each"
                @if is_cut { " (of the first " (MOST_MEMBERS) ")" }
                "; dots are the growth of the system's AnonPages."
            }
            @for run in shown {
                h3 { (sanitize::line(&run.cell.to_string())) ", round " (run.round) }
                (area(run))
            }
        }
    }
}

fn area(run: &GroupRun) -> Markup {
    let Some(memory) = &run.memory else { return html! {} };
    let end = memory.moments.last().map_or(1.0, |moment| moment.at_ns as f64 / 1e9).max(1e-9);
    let most =
        memory.moments.iter().map(|m| m.pss.max(m.system_anonymous.max(0) as u64)).max().unwrap_or(1) as f64;
    let axes = Axes { across: end * 1.01, up: most.max(1.0) * 1.08 };
    let path = |of: fn(&widthwise_experiment::scale::Moment) -> f64| {
        let points: Vec<String> = memory
            .moments
            .iter()
            .map(|m| format!("{},{}", number(axes.x(m.at_ns as f64 / 1e9)), number(axes.y(of(m)))))
            .collect();
        points.join(" ")
    };
    let each = |member: usize| {
        let points: Vec<String> = memory
            .moments
            .iter()
            .filter_map(|m| {
                let own = m.each.get(member)?;
                Some(format!("{},{}", number(axes.x(m.at_ns as f64 / 1e9)), number(axes.y(own.pss as f64))))
            })
            .collect();
        points.join(" ")
    };
    let first = memory.moments.first().map_or(0.0, |m| m.at_ns as f64 / 1e9);
    let under = format!(
        "{},{} {} {},{}",
        number(axes.x(first)),
        number(axes.y(0.0)),
        path(|m| m.uss as f64),
        number(axes.x(end)),
        number(axes.y(0.0))
    );
    let megabyte = 1e6;
    html! {
        svg class="curves" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
            aria-label=(format!("memory over time; at most {}", bytes(most))) {
            @for tick in ticks(axes.up / megabyte, 4.0) {
                line class="grid" x1=(LEFT) x2=(WIDTH - 8.0) y1=(number(axes.y(tick * megabyte))) y2=(number(axes.y(tick * megabyte))) {}
                text class="word" x=(LEFT - 6.0) y=(number(axes.y(tick * megabyte) + 4.0)) text-anchor="end" { (tick) }
            }
            text class="word" x=(LEFT + 4.0) y="12" { "MB" }
            @for tick in ticks(axes.across, 6.0) {
                text class="word" x=(number(axes.x(tick))) y=(HEIGHT - BELOW + 16.0) text-anchor="middle" { (format!("{tick:.4}").trim_end_matches('0').trim_end_matches('.')) " s" }
            }
            polygon class="uss" points=(under) {}
            @for member in 0..run.members.len().min(MOST_MEMBERS) {
                polyline class="member" points=(each(member)) {}
            }
            g class="s0" { polyline points=(path(|m| m.pss as f64)) {} }
            @for moment in &memory.moments {
                circle class="system" cx=(number(axes.x(moment.at_ns as f64 / 1e9))) cy=(number(axes.y(moment.system_anonymous.max(0) as f64))) r="1.6" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_line_ends_at_the_right_edge_and_within_the_picture() {
        for (processes, speed_up, smallest) in [(8.0, 1.6, 1.0), (64.0, 70.0, 1.0), (8.0, 1.2, 4.0)] {
            let axes = axes(processes, speed_up, smallest);
            assert_eq!(axes.x(axes.across), WIDTH - 8.0);
            assert!(axes.y(axes.across / smallest) >= 7.999, "{processes} {speed_up} {smallest}");
            assert!(axes.y(speed_up) >= 7.999);
        }
    }
}
