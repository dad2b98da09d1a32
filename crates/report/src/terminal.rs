//! The table on the terminal: first the result, then its certainty, then how to check it.
//!
//! The caller passes the terminal's width and whether colours may be used; this module does not query the
//! environment.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_experiment::Role;
use widthwise_verdict::{wording, Word};

use crate::campaign::Campaign;
use crate::columns::Columns;
use crate::format::{self, counted};
use crate::text::{wrapped, Palette};
use crate::{memory, order, report_text, runtime, sanitize};

/// The most diff lines on the terminal; the HTML report has them all.
const DIFF_LINES: usize = 8;
/// Reasons of missing verdicts to show with many variants.
const GAPS_OF_MANY: usize = 3;
/// Diffs to show with many variants.
const DIFFS_OF_MANY: usize = 1;
/// The smallest width: on narrower terminals lines exceed the edge.
const NARROWEST: usize = 40;

/// How to show the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Columns of the terminal.
    pub width: usize,
    /// Every metric, in as many tables as necessary.
    pub all_metrics: bool,
    /// Colours, or none.
    pub palette: Palette,
    /// The command that explains the result; no pointer if absent.
    pub why: Option<String>,
    /// The path of the full report, as the user would type it; no pointer if absent.
    pub report: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { width: 100, all_metrics: false, palette: Palette::plain(), why: None, report: None }
    }
}

/// The campaign for a terminal, with a final line end.
pub fn render(campaign: &Campaign, options: &Options) -> String {
    let mut page =
        Page { text: String::new(), width: options.width.max(NARROWEST), palette: options.palette };
    page.header(campaign);
    let shown = page.tables(campaign, options.all_metrics);
    let Palette { faint, warning, .. } = options.palette;
    let gaps = report_text::gaps(campaign, &shown);
    let told = if order::is_many(campaign) { GAPS_OF_MANY } else { usize::MAX };
    for gap in gaps.iter().take(told) {
        page.paragraph(&gap.line(campaign), faint);
    }
    if gaps.len() > told {
        let more = counted(gaps.len() - told, "more reason");
        page.paragraph(&format!("{more} why a verdict is missing: in the HTML report and in --json"), faint);
    }
    if order::is_many(campaign) {
        for line in report_text::unable_together(campaign) {
            page.paragraph(&line, warning);
        }
    }
    page.gap();
    let answer = report_text::answer(campaign);
    if order::is_many(campaign) {
        // Each sentence is about another metric.
        answer.iter().for_each(|sentence| page.paragraph(sentence, Style::new()));
    } else {
        page.paragraph(&answer.join(" "), Style::new());
    }
    let agreement = report_text::agreement(campaign).join(" ");
    let noise = report_text::noise(campaign).unwrap_or_default();
    page.paragraph(format!("{agreement} {noise}").trim(), Style::new());
    page.differences(campaign);
    for line in runtime::brief(campaign) {
        page.paragraph(&line, Style::new());
    }
    for line in report_text::processes(campaign) {
        page.paragraph(&line, Style::new());
    }
    page.memory(campaign);
    for line in report_text::warnings(campaign) {
        page.paragraph(&format!("warning: {line}"), warning);
    }
    page.paragraph(&report_text::control(campaign).unwrap_or_default(), faint);
    if options.why.is_some() || options.report.is_some() {
        page.gap();
    }
    if let Some(why) = &options.why {
        page.text.push_str(&format!("  why    {}\n", sanitize::line(why)));
    }
    if let Some(report) = &options.report {
        page.text.push_str(&format!("  report {}\n", sanitize::line(report)));
    }
    page.text
}

struct Page {
    text: String,
    width: usize,
    palette: Palette,
}

/// One cell, or a text that replaces all cells of its row.
#[derive(Clone)]
struct Cell {
    text: String,
    style: Style,
}

struct Row {
    label: String,
    tag: &'static str,
    cells: Result<Vec<Cell>, String>,
}

impl Page {
    fn header(&mut self, campaign: &Campaign) {
        let title = report_text::title(campaign);
        let command = report_text::command(campaign);
        let extent = report_text::extent(campaign);
        let shown_command = if command.is_empty() { command } else { format!(" · {command}") };
        let left = title.width() + shown_command.width();
        let title = paint(self.palette.strong, &title);
        let room = self.width.checked_sub(left + extent.width() + 2);
        match room {
            Some(room) => {
                let space = " ".repeat(room + 2);
                self.text.push_str(&format!("{title}{shown_command}{space}{extent}\n"));
            }
            None => self.text.push_str(&format!("{title}{shown_command}\n{extent}\n")),
        }
        self.gap();
    }

    /// Writes the tables, and returns the metrics in them.
    fn tables(&mut self, campaign: &Campaign, all_metrics: bool) -> Vec<Metric> {
        let columns = Columns::of(campaign.experiment);
        let wanted = if all_metrics { columns.all() } else { columns.leading.clone() };
        let mut left_off = if all_metrics { Vec::new() } else { columns.others };
        let mut rest = &wanted[..];
        // At least once: without a metric, the variants and their reasons are still shown.
        loop {
            let fitting = self.fitting(campaign, rest);
            let (now, later) = rest.split_at(fitting);
            self.table(campaign, now);
            rest = later;
            if rest.is_empty() {
                break;
            }
            if !all_metrics {
                left_off.splice(0..0, rest.iter().copied());
                break;
            }
            self.gap();
        }
        if !left_off.is_empty() {
            let titles: Vec<&str> = left_off.iter().map(|metric| metric.title).collect();
            let line = format!("also measured: {} (--all-metrics)", titles.join(", "));
            self.paragraph(&line, self.palette.faint);
        }
        wanted.into_iter().filter(|metric| !left_off.contains(metric)).collect()
    }

    /// How many of those metrics fit side by side; at least one, if there is one.
    fn fitting(&self, campaign: &Campaign, metrics: &[Metric]) -> usize {
        let rows = self.rows(campaign, metrics);
        let mut used = 2 + label_width(&rows).max(sanitize::line(order::prefix(campaign)).width() + 11);
        let widths = column_widths(campaign, &rows, metrics);
        let fits = widths.iter().take_while(|&&width| {
            used += 3 + width;
            used <= self.width
        });
        fits.count().max(1).min(metrics.len())
    }

    fn rows(&self, campaign: &Campaign, metrics: &[Metric]) -> Vec<Row> {
        let experiment = campaign.experiment;
        let names = order::participants(campaign);
        let is_many = order::is_many(campaign);
        names
            .iter()
            .flat_map(|name| {
                let is_baseline = *name == experiment.baseline;
                let role = experiment.role(name);
                let shown = if role == Role::Control { &experiment.baseline } else { name };
                let tag = if role == Role::Variant { "" } else { role.name() };
                let label = clipped(&sanitize::line(order::short(campaign, shown)), self.width / 2);
                let cells = match campaign.unable(name) {
                    // Below the table, once for all variants with this reason.
                    Some(_) if is_many => Err(String::new()),
                    Some(reason) => Err(sanitize::line(reason)),
                    None if is_baseline => {
                        Ok(metrics.iter().map(|metric| self.typical(campaign, name, metric)).collect())
                    }
                    None => Ok(metrics.iter().map(|metric| self.verdict(campaign, name, metric)).collect()),
                };
                let own = runtime::row(campaign, name, metrics).filter(|_| !is_many).map(|cells| Row {
                    label: clipped(&sanitize::line(&runtime::label(name)), self.width / 2),
                    tag: "",
                    cells: Ok(cells
                        .into_iter()
                        .map(|text| Cell { text, style: self.palette.faint })
                        .collect()),
                });
                std::iter::once(Row { label, tag, cells }).chain(own)
            })
            .collect()
    }

    fn typical(&self, campaign: &Campaign, variant: &str, metric: Metric) -> Cell {
        match campaign.typical(variant, metric) {
            Some(typical) => Cell { text: format::typical(typical), style: self.palette.strong },
            None => Cell { text: Word::NoData.text().to_owned(), style: self.palette.faint },
        }
    }

    fn verdict(&self, campaign: &Campaign, variant: &str, metric: Metric) -> Cell {
        let Some(verdict) = campaign.verdict(variant, metric) else {
            return Cell { text: Word::NoData.text().to_owned(), style: self.palette.faint };
        };
        let style = match verdict.word {
            Word::Lower => self.palette.lower,
            Word::Higher => self.palette.higher,
            // The control has figures and no word; an inconclusive verdict is fainter than others.
            Word::Inconclusive if !verdict.is_control() => self.palette.faint,
            Word::NoDifference | Word::Inconclusive => Style::new(),
            Word::Withheld => self.palette.warning,
            Word::NoData => self.palette.faint,
        };
        Cell { text: sanitize::line(&wording::interval(verdict)), style }
    }

    fn table(&mut self, campaign: &Campaign, metrics: &[Metric]) {
        let rows = self.rows(campaign, metrics);
        let label_width = label_width(&rows);
        let widths = column_widths(campaign, &rows, metrics);
        let faint = self.palette.faint;
        let heads = metrics.iter().map(|m| Cell { text: campaign.title(m), style: faint }).collect();
        let head = match order::prefix(campaign) {
            "" => "variant".to_owned(),
            prefix => format!("variant of {}", clipped(&sanitize::line(prefix), self.width / 3)),
        };
        let label_width = label_width.max(head.width());
        self.row(&padded(&paint(faint, &head), head.width(), label_width), heads, &widths);
        for row in &rows {
            let space = if row.tag.is_empty() { 0 } else { 2 };
            let label = format!("{}{}{}", row.label, " ".repeat(space), paint(faint, row.tag));
            let label = padded(&label, row.label.width() + space + row.tag.width(), label_width);
            match &row.cells {
                Ok(cells) => self.row(&label, cells.clone(), &widths),
                Err(reason) => self.reason(&label, label_width, reason),
            }
            if row.tag == Role::Control.name() {
                self.floor(campaign, metrics, 2 + label_width);
            }
        }
    }

    fn row(&mut self, label: &str, cells: Vec<Cell>, widths: &[usize]) {
        self.text.push_str("  ");
        self.text.push_str(label);
        for (cell, width) in cells.iter().zip(widths) {
            self.text.push_str("   ");
            self.text.push_str(&padded(&paint(cell.style, &cell.text), cell.text.width(), *width));
        }
        trim_line_end(&mut self.text);
        self.text.push('\n');
    }

    fn reason(&mut self, label: &str, label_width: usize, reason: &str) {
        let indent = 2 + label_width + 3;
        let text =
            if reason.is_empty() { "not measured".to_owned() } else { format!("not measured: {reason}") };
        let lines = wrapped(&text, self.width.saturating_sub(indent).max(NARROWEST / 2));
        for (i, line) in lines.iter().enumerate() {
            let start = if i == 0 { format!("  {label}   ") } else { " ".repeat(indent) };
            self.text.push_str(&format!("{start}{}\n", paint(self.palette.warning, line)));
        }
    }

    /// The floor is beside the control's row if there is room, otherwise below it.
    fn floor(&mut self, campaign: &Campaign, metrics: &[Metric], indent: usize) {
        let Some(floors) = report_text::floors(campaign, metrics) else { return };
        let note = format!("← detection floor: {floors}");
        let written = self.text.trim_end().lines().last().map_or(0, visible_width);
        if written + 3 + note.width() <= self.width {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str(&format!("   {}\n", paint(self.palette.faint, &note)));
        } else {
            let lines = wrapped(&format!("detection floor: {floors}"), self.width.saturating_sub(indent + 3));
            for line in lines {
                let start = " ".repeat(indent + 3);
                self.text.push_str(&format!("{start}{}\n", paint(self.palette.faint, &line)));
            }
        }
    }

    /// Memory over time: its verdicts, and what the memory is for at the peak.
    fn memory(&mut self, campaign: &Campaign) {
        let Some(how) = memory::how(campaign) else { return };
        let metrics = memory::metrics(campaign);
        self.gap();
        self.paragraph(&how, self.palette.strong);
        self.gap();
        self.table(campaign, &metrics[..self.fitting(campaign, &metrics)]);
        for gap in report_text::gaps(campaign, &metrics) {
            self.paragraph(&gap.line(campaign), self.palette.faint);
        }
        let mut compared = memory::compared(campaign);
        let left_out = compared.len().saturating_sub(order::shown(campaign));
        compared.truncate(order::shown(campaign));
        if compared.is_empty() {
            return self.gap();
        }
        self.gap();
        let lines = memory::lines(campaign, &compared);
        let moment = memory::moment(&compared);
        let titles = lines.iter().map(|line| line.title.width());
        let label = titles.chain([moment.width()]).max().unwrap_or(0);
        // A column has an amount and, except for the baseline, its reduction.
        let columns: Vec<Vec<String>> = compared
            .iter()
            .enumerate()
            .map(|(place, portrait)| {
                let name = clipped(&sanitize::line(portrait.variant), 24);
                let head = if place > 0 { format!("{name}  reduction") } else { name };
                let cells = lines.iter().map(|line| {
                    let amount = line.amounts[place].map_or_else(|| "not read".to_owned(), amount);
                    match line.reductions[place] {
                        Some(reduction) => format!("{amount}  {}", memory::percent(reduction)),
                        None => amount,
                    }
                });
                std::iter::once(head).chain(cells).collect()
            })
            .collect();
        let widths: Vec<usize> =
            columns.iter().map(|cells| cells.iter().map(|cell| cell.width()).max().unwrap_or(0)).collect();
        let titles: Vec<String> =
            std::iter::once(moment).chain(lines.iter().map(|line| line.title.clone())).collect();
        for (row, title) in titles.iter().enumerate() {
            let style = match row.checked_sub(1).map(|row| lines[row].is_sum) {
                None => self.palette.faint,
                Some(true) => self.palette.strong,
                Some(false) => Style::new(),
            };
            let cells = columns.iter().map(|cells| Cell { text: cells[row].clone(), style }).collect();
            self.row(&padded(&paint(style, title), title.width(), label), cells, &widths);
        }
        let note = "In per cent: the reduction, (baseline − variant) / baseline, where the runs resolve a difference. Of each variant, the run with the \
                    median peak; pages that processes of the tree share count once.";
        self.paragraph(note, self.palette.faint);
        if left_out > 0 {
            let line = format!("{left_out} more variants are in the page and in the JSON.");
            self.paragraph(&line, self.palette.faint);
        }
        for portrait in &compared {
            let peaks: Vec<String> = memory::phase_peaks(&portrait.run.series)
                .into_iter()
                .map(|(name, peak)| match peak {
                    Some(peak) => format!("{name} {}", Quantity { value: peak as f64, unit: Unit::Bytes }),
                    None => format!("{name}, too short to be read"),
                })
                .collect();
            if !peaks.is_empty() {
                let line = format!("phases of {}: {}", sanitize::line(portrait.variant), peaks.join(" · "));
                self.paragraph(&line, Style::new());
            }
        }
        self.gap();
    }

    fn differences(&mut self, campaign: &Campaign) {
        let shown = if order::is_many(campaign) { DIFFS_OF_MANY } else { usize::MAX };
        for (variant, diff) in campaign.differences.iter().take(shown) {
            self.gap();
            let line = format!("{} against {}:", variant, campaign.experiment.baseline);
            self.paragraph(&sanitize::line(&line), self.palette.strong);
            let diff = sanitize::block(diff);
            let lines: Vec<&str> = diff.lines().collect();
            for line in lines.iter().take(DIFF_LINES) {
                let line = clipped(line, self.width - 4);
                let style = if line.starts_with('+') {
                    self.palette.higher
                } else if line.starts_with('-') {
                    self.palette.lower
                } else {
                    Style::new()
                };
                self.text.push_str(&format!("    {}\n", paint(style, &line)));
            }
            if lines.len() > DIFF_LINES {
                let more = counted(lines.len() - DIFF_LINES, "more line");
                self.text.push_str(&format!("    {}\n", paint(self.palette.faint, &format!("… {more}"))));
            }
            self.gap();
        }
    }

    fn paragraph(&mut self, text: &str, style: Style) {
        for line in wrapped(text, self.width - 2) {
            self.text.push_str(&format!("  {}\n", paint(style, &line)));
        }
    }

    /// An empty line, unless there is one already.
    fn gap(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }
}

/// Bytes in a table; zero is a dash.
fn amount(bytes: f64) -> String {
    if bytes > 0.0 {
        Quantity { value: bytes, unit: Unit::Bytes }.to_string()
    } else {
        "–".to_owned()
    }
}

fn label_width(rows: &[Row]) -> usize {
    let width = |row: &Row| row.label.width() + if row.tag.is_empty() { 0 } else { 2 + row.tag.width() };
    rows.iter().map(width).max().unwrap_or(0).max("variant".width())
}

fn column_widths(campaign: &Campaign, rows: &[Row], metrics: &[Metric]) -> Vec<usize> {
    let cell = |row: &Row, column: usize| row.cells.as_ref().map_or(0, |cells| cells[column].text.width());
    metrics
        .iter()
        .enumerate()
        .map(|(i, metric)| {
            rows.iter().map(|row| cell(row, i)).max().unwrap_or(0).max(campaign.title(metric).width())
        })
        .collect()
}

fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{style}{text}{style:#}")
    }
}

fn padded(painted: &str, width: usize, to: usize) -> String {
    format!("{painted}{}", " ".repeat(to.saturating_sub(width)))
}

fn trim_line_end(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
}

/// The width of a painted line: escape sequences of our own palette take no columns.
fn visible_width(line: &str) -> usize {
    let mut width = 0;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            // `anstyle` writes only SGR sequences, which end in `m`.
            characters.by_ref().find(|&end| end == 'm');
        } else {
            width += c.width().unwrap_or(0);
        }
    }
    width
}

/// The text, truncated to that width with an ellipsis.
fn clipped(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_but_not_before_a_per_cent_sign() {
        assert_eq!(wrapped("uses 14.8 % less", 9), ["uses", "14.8 %", "less"]);
    }

    #[test]
    fn colours_take_no_columns() {
        assert_eq!(visible_width(&paint(Palette::coloured().warning, "−2.1 %")), 6);
    }

    #[test]
    fn a_long_text_is_truncated_with_an_ellipsis() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abc", 4), "abc");
    }
}
