//! A scaling campaign as Markdown: for issues, pull requests and commit messages.

use widthwise_verdict::scaling_summary::Table;

use super::columns::columns;
use super::model::Scaling;
use super::names::title;
use super::sentences;
use crate::markdown::escape::{code, escaped, harmless, prose};
use crate::sanitize;

/// The campaign as Markdown, with a final line end.
pub fn render(report: &Scaling) -> String {
    let experiment = report.campaign.experiment;
    let name = format!("{} {}", experiment.program.name, report.campaign.version);
    let run = code(&sanitize::line(&experiment.program.run));
    let mut parts = vec![
        format!("## {}", harmless(name.trim())),
        format!("{run} · {}", harmless(&sentences::extent(report))),
    ];
    for measured in report.summary.tables.iter().filter(|table| table.has_runs()) {
        parts.push(format!("**{}**", harmless(&title(measured))));
        parts.push(table(measured));
    }
    // A list item each: sentences of a paragraph would run together.
    let found = sentences::all(report).into_iter().map(|sentence| format!("- {}", harmless(&sentence)));
    let not_measured = report.not_measured().into_iter();
    let not_measured = not_measured
        .map(|(name, reason)| format!("- **{}** was not measured: {}", harmless(name), harmless(reason)));
    parts.push(found.chain(not_measured).collect::<Vec<_>>().join("\n"));
    let warnings = report.campaign.warnings.iter();
    parts.extend(warnings.map(|text| format!("> **Warning:** {}", prose(&sanitize::line(text)))));
    parts.push(format!(
        "Widthwise {}, {}, {}.",
        escaped(report.campaign.widthwise),
        harmless(&report.campaign.created),
        code(&sanitize::line(&report.campaign.folder))
    ));
    parts.join("\n\n") + "\n"
}

/// One table, then why a number of processes has no figures.
fn table(table: &Table) -> String {
    let columns = columns(table);
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let heads = columns.iter().map(|(head, _)| harmless(head)).collect();
    let mut lines = vec![row(heads), row(columns.iter().map(|_| "---:".to_owned()).collect())];
    for one in &table.rows {
        lines.push(row(columns.iter().map(|(_, of)| harmless(&of(one))).collect()));
    }
    let noun = table.mode.noun();
    let failures = table.rows.iter().filter_map(|one| Some((one.processes, one.failure.as_ref()?)));
    let failures: Vec<String> =
        failures.map(|(number, why)| format!("- {number} {noun}: {}", harmless(why))).collect();
    if !failures.is_empty() {
        lines.push(String::new());
        lines.extend(failures);
    }
    lines.join("\n")
}
