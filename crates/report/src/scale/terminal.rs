//! The report on a terminal.

use unicode_width::UnicodeWidthStr;

use super::columns::columns;
use super::model::Scaling;
use super::names::title;
use super::sentences;
use crate::sanitize;
use crate::text::Palette;

/// The report as text; `page` is the HTML file that was written.
pub fn render(report: &Scaling, palette: &Palette, width: usize, page: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    line(&format!(
        "{} · {}",
        bold(palette, &format!("{} {}", report.campaign.experiment.program.name, report.campaign.version)),
        sanitize::line(&report.campaign.experiment.program.run)
    ));
    line(&sentences::extent(report));
    for (_, picture) in &report.pictures {
        line("");
        picture.lines().for_each(|words| line(&format!("  {words}")));
    }
    for table in report.summary.tables.iter().filter(|table| table.has_runs()) {
        line("");
        line(&format!("  {}", bold(palette, &title(table))));
        let columns = columns(table);
        let mut rows: Vec<Vec<String>> = vec![columns.iter().map(|(head, _)| head.clone()).collect()];
        for row in &table.rows {
            rows.push(columns.iter().map(|(_, of)| of(row)).collect());
        }
        let widths: Vec<usize> = (0..columns.len())
            .map(|place| rows.iter().map(|row| row[place].width()).max().unwrap_or(0))
            .collect();
        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{}{cell}", " ".repeat(width - cell.width())))
                .collect();
            let words = format!("  {}", cells.join("  "));
            line(words.trim_end());
            let failure = number.checked_sub(1).and_then(|place| table.rows[place].failure.as_ref());
            if let Some(failure) = failure {
                line(&format!("      {}", styled(palette.warning, failure)));
            }
        }
    }
    line("");
    for words in sentences::all(report) {
        line(&wrapped(&sanitize::line(&words), width));
    }
    if !report.campaign.warnings.is_empty() || !report.not_measured().is_empty() {
        line("");
    }
    for (variant, reason) in report.not_measured() {
        line(&wrapped(&format!("{}: {}", sanitize::line(variant), sanitize::line(reason)), width));
    }
    for remark in &report.campaign.warnings {
        line(&wrapped(&format!("note: {}", sanitize::line(remark)), width));
    }
    if let Some(page) = page {
        line("");
        line(&format!("  report {}", sanitize::line(page)));
    }
    text
}

fn bold(palette: &Palette, text: &str) -> String {
    styled(palette.strong, text.trim())
}

fn styled(style: anstyle::Style, text: &str) -> String {
    format!("{style}{}{style:#}", sanitize::line(text))
}

/// A sentence in lines of at most `width` columns, with a hanging indent.
fn wrapped(text: &str, width: usize) -> String {
    let most = width.max(40) - 2;
    let mut lines = vec![String::from(" ")];
    for word in text.split(' ') {
        if let Some(last) = lines.last_mut() {
            if last.width() + 1 + word.width() <= most || last.trim().is_empty() {
                last.push(' ');
                last.push_str(word);
                continue;
            }
        }
        lines.push(format!("    {word}"));
    }
    lines.join("\n")
}
