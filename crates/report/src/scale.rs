//! Shows a study of scale: tables by number of processes, then sentences, then remarks. On a terminal, as one
//! HTML page, as JSON and as CSV.

mod comparison;
mod csv;
mod html;
mod json;
mod sentences;
mod terminal;

use widthwise_experiment::scale::{Attempt, Cell, Plan};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_verdict::scaling::{Figure, Unfitted};
use widthwise_verdict::study::{EventSource, Row, Summary, Table};

pub use csv::write as csv;
pub use html::page as html;
pub use json::render as json;
pub use terminal::render as terminal;

/// Everything that a report on a study shows.
#[derive(Debug)]
pub struct StudyReport<'a> {
    /// The program.
    pub program: &'a str,
    /// Its version, where it is known.
    pub version: &'a str,
    /// When it was measured.
    pub created: &'a str,
    /// The study's folder, as the user would type it.
    pub folder: String,
    /// The command line.
    pub command: &'a [String],
    /// The version of Widthwise.
    pub widthwise: &'a str,
    /// The run command.
    pub run: &'a str,
    /// The plan of the study.
    pub plan: &'a Plan,
    /// The variants, the baseline first.
    pub variants: &'a [String],
    /// Variants that cannot be measured.
    pub unable: &'a [(String, String)],
    /// Remarks for the reader.
    pub remarks: Vec<String>,
    /// The machine, as lines of text.
    pub machine_lines: Vec<(String, String)>,
    /// The machine's topology with the CPUs of the largest cell marked, for each placement: name and text.
    pub pictures: Vec<(String, String)>,
    /// The same, as SVG.
    pub drawings: Vec<(String, String)>,
    /// Whether any core has more than one thread.
    pub has_siblings: bool,
    /// Memory of the machine, in bytes.
    pub memory: u64,
    /// The margin of equivalence, a fraction.
    pub equal_within: f64,
    /// Every attempt.
    pub attempts: &'a [Attempt],
    /// The results of the attempts.
    pub summary: &'a Summary,
}

/// A column's heading, and the content of its cells.
type Column<'a> = (String, Box<dyn Fn(&Row) -> String + 'a>);

/// The columns of a table, without those that nothing was measured for.
fn columns(table: &Table) -> Vec<Column<'_>> {
    let mut all: Vec<Column> = vec![
        (table.mode.noun().to_owned(), Box::new(|row: &Row| row.processes.to_string())),
        ("CPUs".into(), Box::new(|row: &Row| cpu_list(&row.cpus))),
        ("elapsed".into(), Box::new(|row: &Row| seconds(&row.elapsed))),
        (format!("{}/s", table.work.unit()), Box::new(|row: &Row| plain(&row.throughput))),
        ("speed-up".into(), Box::new(|row: &Row| ranged(&row.speed_up, 2))),
        ("efficiency".into(), Box::new(|row: &Row| percent(&row.efficiency))),
    ];
    let source = table.rows.iter().find_map(|row| row.event.as_ref().ok()).map(|(_, source)| *source);
    if let Some(source) = source {
        let title = match (source, table.work.unit()) {
            (EventSource::ReportedElapsed, _) => "evtime (elapsed)".to_owned(),
            (_, "events") => "evtime".to_owned(),
            _ => "CPU a run".to_owned(),
        };
        all.push((title, Box::new(|row: &Row| seconds(&row.event.map(|(figure, _)| figure)))));
    }
    all.push(("TIME".into(), Box::new(|row: &Row| seconds(&row.time))));
    if table.rows.iter().any(|row| row.waiting.is_some()) {
        let waited = |row: &Row| row.waiting.as_ref()?.waited;
        let share =
            move |row: &Row| waited(row).map_or("·".into(), |share| format!("{:.1} %", 100.0 * share));
        all.push(("waited".into(), Box::new(share)));
    }
    if table.rows.iter().any(|row| row.ntime.is_ok()) {
        all.push(("NTIME".into(), Box::new(|row: &Row| plain(&row.ntime))));
    }
    if table.rows.iter().any(|row| row.ipc.is_ok()) {
        all.push(("IPC".into(), Box::new(|row: &Row| plain(&row.ipc))));
    }
    if table.rows.iter().any(|row| row.sci.is_ok()) {
        all.push(("SCI".into(), Box::new(|row: &Row| plain(&row.sci))));
    }
    if table.rows.iter().any(|row| row.memory.is_some()) {
        let memory = |of: fn(&widthwise_verdict::study::RowMemory) -> f64| {
            move |row: &Row| row.memory.as_ref().map_or("·".into(), |memory| bytes(of(memory)))
        };
        all.push(("PSS of all".into(), Box::new(memory(|memory| memory.pss))));
        all.push(("USS each".into(), Box::new(memory(|memory| memory.member_uss))));
        // The memory use of the rest of the machine is not a figure of the program.
        let system = |row: &Row| match &row.memory {
            Some(memory) if memory.system_is_telling() => bytes(memory.system_anonymous),
            _ => "·".into(),
        };
        if table.rows.iter().any(|row| row.memory.as_ref().is_some_and(|memory| memory.system_is_telling())) {
            all.push(("AnonPages".into(), Box::new(system)));
        }
    }
    all
}

/// `0-3,6`.
fn cpu_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let texts: Vec<String> = spans
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    texts.join(",")
}

/// The text that replaces a missing figure.
fn instead(reason: &Unfitted) -> String {
    match reason {
        Unfitted::Withheld(_) => "withheld".into(),
        _ => "·".into(),
    }
}

fn plain(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| significant(figure.estimate))
}

/// Three significant digits, without an exponent where possible.
fn significant(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 1000.0 => return Quantity { value, unit: Unit::Count }.to_string(),
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        value if value >= 0.1 => 3,
        value if value >= 0.001 => 5,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.digits$}")
}

fn seconds(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| time(figure.estimate))
}

fn time(seconds: f64) -> String {
    if seconds < 0.0 {
        return format!("−{}", time(-seconds));
    }
    Quantity { value: seconds * 1e9, unit: Unit::Nanoseconds }.to_string()
}

fn bytes(value: f64) -> String {
    if value < 0.0 {
        return format!("−{}", bytes(-value));
    }
    Quantity { value, unit: Unit::Bytes }.to_string()
}

/// `1.97 (1.95 … 1.99)`.
fn ranged(figure: &Result<Figure, Unfitted>, digits: usize) -> String {
    let figure = match figure {
        Ok(figure) => figure,
        Err(reason) => return instead(reason),
    };
    match figure.bounds {
        Some(ends) if ends.low < ends.high => {
            format!("{:.digits$} ({:.digits$} … {:.digits$})", figure.estimate, ends.low, ends.high)
        }
        _ => format!("{:.digits$}", figure.estimate),
    }
}

fn percent(figure: &Result<Figure, Unfitted>) -> String {
    figure.as_ref().map_or_else(instead, |figure| format!("{:.1} %", 100.0 * figure.estimate))
}

/// `+26 % (25 … 27)`, of a share.
fn signed(figure: &Figure) -> String {
    let word = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        format!("{sign}{:.1}", (100.0 * value).abs())
    };
    match figure.bounds {
        Some(ends) => format!("{} % ({} … {})", word(figure.estimate), word(ends.low), word(ends.high)),
        None => format!("{} %", word(figure.estimate)),
    }
}

/// `x86-64 · fork · cores`.
fn title(table: &Table) -> String {
    format!("{} · {} · {}", table.variant, table.mode, table.placement)
}

/// `4 children of x32 (cores)`.
fn cell_name(cell: &Cell) -> String {
    let noun = if cell.processes == 1 { cell.mode.singular() } else { cell.mode.noun() };
    format!("{} {noun} of {} ({})", cell.processes, cell.variant, cell.placement)
}
