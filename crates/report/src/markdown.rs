//! A comparison as Markdown: for issues, pull requests and commit messages.

pub mod escape;

use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_verdict::Word;

use crate::columns::Columns;
use crate::comparison::Comparison;
use crate::format;
use crate::{by_metric, memory, order, report_text, sanitize, x32_runtime};
use escape::{code, escaped, fenced, prose};

/// Memory over time: how it was read, and what it is for at the peak, with each variant's savings.
fn memory_notes(comparison: &Comparison) -> Vec<String> {
    let Some(how) = memory::how(comparison) else { return Vec::new() };
    let compared = memory::compared(comparison);
    let metrics = memory::metrics(comparison);
    let mut notes = vec![escaped(&how), table(comparison, &metrics).trim_end().to_owned()];
    notes.extend(memory::gaps(comparison, &metrics).iter().map(|gap| prose(&gap.line(comparison))));
    if compared.is_empty() {
        return notes;
    }
    let names: Vec<String> = compared.iter().map(|one| escaped(&sanitize::line(one.variant))).collect();
    let mut text = format!(
        "| {} (reduction) | {} |\n|---|{}",
        memory::moment(&compared),
        names.join(" | "),
        "---|".repeat(names.len())
    );
    if let Some((title, shares)) = memory::shares(&compared) {
        text += &format!("\n| {title} | {} |", shares.join(" | "));
    }
    for own in memory::lines(comparison, &compared) {
        let cells = own.amounts.iter().zip(&own.reductions).map(|(bytes, reduction)| {
            let Some(bytes) = *bytes else { return "not read".to_owned() };
            let amount = Quantity { value: bytes, unit: Unit::Bytes };
            match reduction {
                Some(reduction) => format!("{amount} ({})", memory::percent(*reduction)),
                None => amount.to_string(),
            }
        });
        text += &format!("\n| {} | {} |", own.title, cells.collect::<Vec<_>>().join(" | "));
    }
    notes.push(text);
    notes.extend(memory::why_without_reductions(&compared).map(str::to_owned));
    notes
}

/// The campaign as Markdown, with a final line end.
pub fn render(comparison: &Comparison) -> String {
    let columns = Columns::of(comparison.campaign.experiment);
    let mut page = Page::default();
    page.heading(comparison);
    page.tables(comparison, &columns);
    page.notes(comparison);
    page.folds(comparison, &columns);
    page.ending(comparison);
    page.text
}

/// The page, as far as it is written.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// The title, the command and the answer.
    fn heading(&mut self, comparison: &Comparison) {
        self.line(&format!("## {}", escaped(&report_text::title(comparison))));
        self.line("");
        self.line(&format!(
            "{} · {}",
            code(&report_text::command(comparison)),
            escaped(&report_text::extent(comparison))
        ));
        self.line("");
        for sentence in report_text::answer(comparison) {
            self.line(&escaped(&sentence));
        }
        self.line("");
    }

    /// The verdicts, the detection floor, and which figures are missing.
    fn tables(&mut self, comparison: &Comparison, columns: &Columns) {
        let by_metric = by_metric::applies(comparison);
        if !by_metric {
            self.line(&table(comparison, &columns.leading));
        }
        let tables = by_metric::markdown(comparison, escaped);
        if !tables.is_empty() {
            self.line(tables.trim_end());
            self.line("");
        }
        if let (Some(floors), false) = (report_text::floors(comparison, &columns.leading), by_metric) {
            self.line(&format!("Detection floor: {}.", escaped(&floors)));
            self.line("");
        }
        for gap in report_text::gaps(comparison, &columns.all()) {
            self.line(&format!("- {}", escaped(&gap.line(comparison))));
        }
        for (variant, reason) in report_text::not_measured(comparison) {
            self.line(&format!("- **{}** was not measured: {}", escaped(&variant), escaped(&reason)));
        }
        self.line("");
    }

    /// What else is to be known of the runs, the warnings, and the outputs that differ.
    fn notes(&mut self, comparison: &Comparison) {
        for sentence in report_text::agreement(comparison)
            .into_iter()
            .chain(report_text::layouts(comparison))
            .chain(report_text::noise(comparison))
            .chain(x32_runtime::brief(comparison))
            .chain(report_text::processes(comparison))
        {
            self.line(&escaped(&sentence));
        }
        for part in memory_notes(comparison) {
            self.line("");
            self.line(&part);
        }
        for warning in report_text::warnings(comparison) {
            self.line("");
            self.line(&format!("> **Warning:** {}", prose(&warning)));
        }
        for (variant, diff) in &comparison.differences {
            self.line("");
            let summary = format!("{} against {}", variant, comparison.campaign.experiment.baseline);
            self.line(&format!("**{}**", escaped(&sanitize::line(&summary))));
            self.line("");
            self.line(&fenced(diff));
        }
    }

    /// What is folded: the sentences of many variants, and the other metrics.
    fn folds(&mut self, comparison: &Comparison, columns: &Columns) {
        if order::is_many(comparison) {
            self.line("");
            self.line("<details><summary>Every variant in a sentence</summary>");
            self.line("");
            for sentence in report_text::one_by_one(comparison).iter().chain(&x32_runtime::lines(comparison))
            {
                self.line(&format!("- {}", escaped(sentence)));
            }
            self.line("");
            self.line("</details>");
        }
        if !columns.others.is_empty() && !by_metric::applies(comparison) {
            self.line("");
            self.line("<details><summary>Other metrics</summary>");
            self.line("");
            self.line(&table(comparison, &columns.others));
            self.line("</details>");
        }
        self.line("");
    }

    /// The control, why the rounds ended, and what wrote the page.
    fn ending(&mut self, comparison: &Comparison) {
        for sentence in
            report_text::control(comparison).into_iter().chain([report_text::stopping(comparison)])
        {
            self.line(&escaped(&sentence));
        }
        self.line(&format!(
            "Widthwise {}, {}, {}.",
            escaped(comparison.campaign.widthwise),
            escaped(&sanitize::line(&comparison.campaign.created)),
            code(&sanitize::line(&comparison.campaign.folder))
        ));
    }
}

fn table(comparison: &Comparison, metrics: &[Metric]) -> String {
    let experiment = comparison.campaign.experiment;
    let mut rows = Vec::new();
    let heads = metrics.iter().map(|metric| escaped(&comparison.title(metric)));
    rows.push(std::iter::once("variant".to_owned()).chain(heads).collect::<Vec<_>>().join(" | "));
    rows.push(std::iter::once("---").chain(metrics.iter().map(|_| "---:")).collect::<Vec<_>>().join(" | "));
    for name in order::participants(comparison) {
        let label = escaped(&sanitize::line(&name));
        let is_baseline = name == experiment.baseline;
        let mut cells = vec![if is_baseline { format!("**{label}** (baseline)") } else { label }];
        cells.extend(metrics.iter().map(|metric| cell(comparison, &name, is_baseline, metric)));
        rows.push(cells.join(" | "));
        if let Some(own) = x32_runtime::row(comparison, &name, metrics) {
            let label = escaped(&sanitize::line(&x32_runtime::label(&name)));
            let cells = own.iter().map(|text| escaped(text));
            rows.push(std::iter::once(label).chain(cells).collect::<Vec<_>>().join(" | "));
        }
    }
    rows.iter().map(|row| format!("| {row} |\n")).collect()
}

fn cell(comparison: &Comparison, name: &str, is_baseline: bool, metric: Metric) -> String {
    let shown = if comparison.campaign.not_measured(name).is_some() {
        None
    } else if is_baseline {
        comparison.typical(name, metric).map(format::typical)
    } else {
        comparison.figure(name, metric)
    };
    escaped(&sanitize::line(&shown.unwrap_or_else(|| Word::NoData.text().to_owned())))
}
