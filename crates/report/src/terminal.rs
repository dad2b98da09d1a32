//! The table on the terminal: first the result, then its certainty, then how to check it.
//!
//! The caller passes the terminal's width and whether colours may be used; this module does not query the
//! environment.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_experiment::Role;
use widthwise_verdict::Word;

use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::format::{self, counted};
use crate::text::{clipped, wrapped, Palette, NARROWEST};
use crate::{by_metric, diff, memory, order, report_text, sanitize, x32_runtime};

/// The most diff lines on the terminal; the HTML report has them all.
const DIFF_LINES: usize = 8;
/// Reasons of missing verdicts to show with many variants.
const GAPS_OF_MANY: usize = 3;
/// Diffs to show with many variants.
const DIFFS_OF_MANY: usize = 1;

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
pub fn render(comparison: &Comparison, options: &Options) -> String {
    let mut page =
        Page { text: String::new(), width: options.width.max(NARROWEST), palette: options.palette };
    page.header(comparison);
    let shown = page.tables(comparison, options.all_metrics);
    let Palette { faint, warning, .. } = options.palette;
    let gaps = report_text::gaps(comparison, &shown);
    let reported = if order::is_many(comparison) { GAPS_OF_MANY } else { usize::MAX };
    for gap in gaps.iter().take(reported) {
        page.paragraph(&gap.line(comparison), faint);
    }
    if gaps.len() > reported {
        let more = counted(gaps.len() - reported, "more reason");
        page.paragraph(&format!("{more} why a verdict is missing: in the HTML report and in --json"), faint);
    }
    // Where a metric is a row, its tables end with them.
    if order::is_many(comparison) && !by_metric::applies(comparison) {
        for line in report_text::not_measured_by_reason(comparison) {
            page.paragraph(&line, warning);
        }
    }
    page.gap();
    let answer = report_text::answer(comparison);
    if order::is_many(comparison) {
        // Each sentence is about another metric.
        answer.iter().for_each(|sentence| page.paragraph(sentence, Style::new()));
    } else {
        page.paragraph(&answer.join(" "), Style::new());
    }
    let agreement = report_text::agreement(comparison).join(" ");
    let layouts = report_text::layouts(comparison);
    let noise = report_text::noise(comparison);
    let notes: Vec<String> = layouts.into_iter().chain(noise).collect();
    page.paragraph(format!("{agreement} {}", notes.join(" ")).trim(), Style::new());
    page.differences(comparison);
    for line in x32_runtime::brief(comparison) {
        page.paragraph(&line, Style::new());
    }
    for line in report_text::processes(comparison) {
        page.paragraph(&line, Style::new());
    }
    page.memory(comparison, options.all_metrics);
    for line in report_text::warnings(comparison) {
        page.paragraph(&format!("warning: {line}"), warning);
    }
    page.paragraph(&report_text::control(comparison).unwrap_or_default(), faint);
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
    fn header(&mut self, comparison: &Comparison) {
        let title = report_text::title(comparison);
        let command = report_text::command(comparison);
        let extent = report_text::extent(comparison);
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
    fn tables(&mut self, comparison: &Comparison, all_metrics: bool) -> Vec<Metric> {
        if by_metric::applies(comparison) {
            let shown = self.by_metric(comparison);
            for (variant, reason) in report_text::not_measured(comparison) {
                self.paragraph(&format!("{variant} was not measured: {reason}"), self.palette.warning);
            }
            return shown;
        }
        let columns = Columns::of(comparison.campaign.experiment);
        let wanted = if all_metrics { columns.all() } else { columns.leading.clone() };
        let others = if all_metrics { Vec::new() } else { columns.others };
        let mut shown = self.tables_of(comparison, &wanted, &others, all_metrics);
        shown.extend(self.by_metric(comparison));
        shown
    }

    /// As many tables as those metrics need or, without `all_metrics`, one, and the names of the metrics that are not in it and of the
    /// `others`. Returns the metrics in the tables.
    fn tables_of(
        &mut self,
        comparison: &Comparison,
        wanted: &[Metric],
        others: &[Metric],
        all_metrics: bool,
    ) -> Vec<Metric> {
        let mut rest = wanted;
        // At least once: without a metric, the variants and their reasons are still shown.
        loop {
            let fitting = self.fitting(comparison, rest);
            let (now, later) = rest.split_at(fitting);
            self.table(comparison, now);
            rest = later;
            if rest.is_empty() || !all_metrics {
                break;
            }
            self.gap();
        }
        let titles: Vec<&str> = rest.iter().chain(others).map(|metric| metric.title).collect();
        let is_measured = !comparison.judgement.typical.is_empty();
        if is_measured && !titles.is_empty() {
            let line = format!("also measured: {} (--all-metrics)", titles.join(", "));
            self.paragraph(&line, self.palette.faint);
        }
        wanted[..wanted.len() - rest.len()].to_vec()
    }

    /// Tables with a row for each metric, and the metrics in them.
    fn by_metric(&mut self, comparison: &Comparison) -> Vec<Metric> {
        let faint = self.palette.faint;
        let mut shown = Vec::new();
        for table in by_metric::tables(comparison, self.side_by_side(comparison)) {
            self.gap();
            let baseline = sanitize::line(&comparison.campaign.experiment.baseline);
            let names = table.variants.iter().map(|name| sanitize::line(name));
            let heads: Vec<Cell> = std::iter::once(baseline)
                .chain(names)
                .chain(["floor".to_owned()])
                .map(|text| Cell { text, style: faint })
                .collect();
            let cells = |row: &by_metric::Row| -> Vec<Cell> {
                let own = row.cells.iter().map(|cell| Cell {
                    text: cell.text.clone(),
                    style: cell.word.map_or(self.palette.warning, |word| self.style(word)),
                });
                let baseline = Cell { text: row.baseline.clone(), style: self.palette.strong };
                let floor = Cell { text: row.floor.clone(), style: faint };
                std::iter::once(baseline).chain(own).chain([floor]).collect()
            };
            let rows: Vec<(String, Vec<Cell>)> =
                table.rows.iter().map(|row| (row.title.clone(), cells(row))).collect();
            let label = rows.iter().map(|row| row.0.width()).chain([table.head.width()]).max().unwrap_or(0);
            let width = |column: usize| {
                let cells = rows.iter().map(|row| row.1[column].text.width());
                cells.chain([heads[column].text.width()]).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..heads.len()).map(width).collect();
            self.row(&padded(&paint(faint, table.head), table.head.width(), label), heads, &widths);
            for (title, cells) in rows {
                self.row(&padded(&title, title.width(), label), cells, &widths);
            }
            if let Some(line) = table.zeros() {
                self.paragraph(&line, faint);
            }
            shown.extend(table.rows.iter().map(|row| row.metric));
        }
        shown
    }

    /// How many variants fit side by side, by their names.
    fn side_by_side(&self, comparison: &Comparison) -> usize {
        /// The widest titles of rows, and a column of floors.
        const LABEL: usize = 24;
        let names = comparison.campaign.experiment.variants.iter();
        let longest = names.map(|variant| sanitize::line(&variant.name).width()).max().unwrap_or(0);
        (self.width.saturating_sub(LABEL) / (longest + 3)).clamp(2, by_metric::MOST_VARIANTS)
    }

    /// How many of those metrics fit side by side; at least one, if there is one.
    fn fitting(&self, comparison: &Comparison, metrics: &[Metric]) -> usize {
        let rows = self.rows(comparison, metrics);
        let mut used = 2 + label_width(&rows).max(sanitize::line(order::prefix(comparison)).width() + 11);
        let widths = column_widths(comparison, &rows, metrics);
        let fits = widths.iter().take_while(|&&width| {
            used += 3 + width;
            used <= self.width
        });
        fits.count().max(1).min(metrics.len())
    }

    fn rows(&self, comparison: &Comparison, metrics: &[Metric]) -> Vec<Row> {
        let experiment = comparison.campaign.experiment;
        let names = order::participants(comparison);
        let is_many = order::is_many(comparison);
        names
            .iter()
            .flat_map(|name| {
                let is_baseline = *name == experiment.baseline;
                let role = experiment.role(name);
                let shown = if role == Role::Control { &experiment.baseline } else { name };
                let tag = if role == Role::Variant { "" } else { role.name() };
                let label = clipped(&sanitize::line(order::short(comparison, shown)), self.width / 2);
                let cells = match comparison.campaign.not_measured(name) {
                    // Below the table, once for all variants with this reason.
                    Some(_) if is_many => Err(String::new()),
                    Some(reason) => Err(sanitize::line(reason)),
                    None if is_baseline => {
                        Ok(metrics.iter().map(|metric| self.typical(comparison, name, metric)).collect())
                    }
                    None => Ok(metrics.iter().map(|metric| self.verdict(comparison, name, metric)).collect()),
                };
                let own = x32_runtime::row(comparison, name, metrics).map(|cells| Row {
                    label: clipped(&sanitize::line(&x32_runtime::label(name)), self.width / 2),
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

    fn typical(&self, comparison: &Comparison, variant: &str, metric: Metric) -> Cell {
        match comparison.typical(variant, metric) {
            Some(typical) => Cell { text: format::typical(typical), style: self.palette.strong },
            None => Cell { text: Word::NoData.text().to_owned(), style: self.palette.faint },
        }
    }

    fn verdict(&self, comparison: &Comparison, variant: &str, metric: Metric) -> Cell {
        let Some(verdict) = comparison.verdict(variant, metric) else {
            return Cell { text: Word::NoData.text().to_owned(), style: self.palette.faint };
        };
        // The control has figures and no word; an inconclusive verdict is fainter than others.
        let is_plain = verdict.word == Word::Inconclusive && verdict.is_control();
        let style = if is_plain { Style::new() } else { self.style(verdict.word) };
        Cell { text: comparison.figure(variant, metric).unwrap_or_default(), style }
    }

    fn style(&self, word: Word) -> Style {
        match word {
            Word::Lower => self.palette.lower,
            Word::Higher => self.palette.higher,
            Word::Inconclusive | Word::NoData => self.palette.faint,
            Word::NoDifference => Style::new(),
            Word::Withheld => self.palette.warning,
        }
    }

    fn table(&mut self, comparison: &Comparison, metrics: &[Metric]) {
        let rows = self.rows(comparison, metrics);
        let label_width = label_width(&rows);
        let widths = column_widths(comparison, &rows, metrics);
        let faint = self.palette.faint;
        let heads = metrics.iter().map(|m| Cell { text: comparison.title(m), style: faint }).collect();
        let head = match order::prefix(comparison) {
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
                self.floor(comparison, metrics, 2 + label_width);
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
    fn floor(&mut self, comparison: &Comparison, metrics: &[Metric], indent: usize) {
        let Some(floors) = report_text::floors(comparison, metrics) else { return };
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
    fn memory(&mut self, comparison: &Comparison, all_metrics: bool) {
        let Some(how) = memory::how(comparison) else { return };
        let metrics = memory::metrics(comparison);
        self.gap();
        self.paragraph(&how, self.palette.strong);
        self.gap();
        let shown = self.tables_of(comparison, &metrics, &[], all_metrics);
        for gap in memory::gaps(comparison, &shown) {
            self.paragraph(&gap.line(comparison), self.palette.faint);
        }
        let mut compared = memory::compared(comparison);
        let left_out = compared.len().saturating_sub(order::shown(comparison));
        compared.truncate(order::shown(comparison));
        if compared.is_empty() {
            return self.gap();
        }
        self.gap();
        let lines = memory::lines(comparison, &compared);
        let moment = memory::moment(&compared);
        let shares = memory::shares(&compared);
        let own_titles = lines.iter().map(|line| line.title.clone());
        let titles: Vec<String> = std::iter::once(moment)
            .chain(shares.iter().map(|(title, _)| (*title).to_owned()))
            .chain(own_titles)
            .collect();
        let label = titles.iter().map(|title| title.width()).max().unwrap_or(0);
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
                let share = shares.iter().map(|(_, shares)| shares[place].clone());
                std::iter::once(head).chain(share).chain(cells).collect()
            })
            .collect();
        let widths: Vec<usize> =
            columns.iter().map(|cells| cells.iter().map(|cell| cell.width()).max().unwrap_or(0)).collect();
        let heads = titles.len() - lines.len();
        for (row, title) in titles.iter().enumerate() {
            let style = match row.checked_sub(heads).map(|row| lines[row].is_sum) {
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
        if let Some(why) = memory::why_without_reductions(&compared) {
            self.paragraph(why, self.palette.faint);
        }
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

    fn differences(&mut self, comparison: &Comparison) {
        let shown = if order::is_many(comparison) { DIFFS_OF_MANY } else { usize::MAX };
        for (variant, text) in comparison.differences.iter().take(shown) {
            self.gap();
            let line = format!("{} against {}:", variant, comparison.campaign.experiment.baseline);
            self.paragraph(&sanitize::line(&line), self.palette.strong);
            for line in diff::clipped_lines(&diff::shortened(text, DIFF_LINES), self.width - 4) {
                let style = match line.chars().next() {
                    Some('+') => self.palette.higher,
                    Some('-') => self.palette.lower,
                    Some('…') => self.palette.faint,
                    _ => Style::new(),
                };
                self.text.push_str(&format!("    {}\n", paint(style, &line)));
            }
            self.gap();
        }
        if comparison.differences.len() > shown {
            let more = counted(comparison.differences.len() - shown, "more diff");
            self.paragraph(&format!("{more}: in the HTML report and in --markdown"), self.palette.faint);
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

fn amount(bytes: f64) -> String {
    Quantity { value: bytes, unit: Unit::Bytes }.to_string()
}

fn label_width(rows: &[Row]) -> usize {
    let width = |row: &Row| row.label.width() + if row.tag.is_empty() { 0 } else { 2 + row.tag.width() };
    rows.iter().map(width).max().unwrap_or(0).max("variant".width())
}

fn column_widths(comparison: &Comparison, rows: &[Row], metrics: &[Metric]) -> Vec<usize> {
    let cell = |row: &Row, column: usize| row.cells.as_ref().map_or(0, |cells| cells[column].text.width());
    metrics
        .iter()
        .enumerate()
        .map(|(i, metric)| {
            rows.iter().map(|row| cell(row, i)).max().unwrap_or(0).max(comparison.title(metric).width())
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
}
