//! An explanation as Markdown: for issues, pull requests and commit messages.

use super::{noun, points, Explanation, Part, Unexplained};
use crate::format::{capitalized, counted};
use crate::heap::signed;
use crate::markdown::escape::{escaped, harmless, prose, text_block};
use crate::sanitize;
use crate::text::Palette;

/// Rows of a metric's table of parts.
const MOST_ROWS: usize = 15;
/// Columns of a section's text.
const TEXT_WIDTH: usize = 110;

/// The explanation as Markdown, with a final line end: the sentences, a table of parts for each metric, and each section's text in a
/// fold.
pub fn render(explanation: &Explanation) -> String {
    let mut blocks = vec![format!(
        "## {} compared with {}",
        harmless(explanation.variant),
        harmless(explanation.baseline)
    )];
    blocks.extend(explanation.sentences().iter().map(|sentence| escaped(sentence)));
    let remarks = explanation.remarks.iter();
    blocks.extend(remarks.map(|remark| format!("> {}", prose(&sanitize::line(remark)))));
    let parts = explanation.parts();
    for rest in explanation.unexplained() {
        let own: Vec<&Part> = parts.iter().filter(|part| part.metric == rest.metric).collect();
        if !own.is_empty() {
            blocks.push(format!("### {}", capitalized(noun(rest.metric))));
            blocks.push(table(&rest, &own));
        }
    }
    for section in &explanation.sections {
        let text = sanitize::block(&section.text(TEXT_WIDTH, &Palette::plain()));
        blocks.push(format!(
            "<details><summary>{}</summary>\n\n{}\n\n</details>",
            capitalized(section.name()),
            text_block(text.trim_end())
        ));
    }
    blocks.push(format!("Widthwise {}.", escaped(env!("CARGO_PKG_VERSION"))));
    blocks.join("\n\n") + "\n"
}

fn table(rest: &Unexplained, parts: &[&Part]) -> String {
    let (shown, others) = parts.split_at(parts.len().min(MOST_ROWS));
    let row = |amount: i64, share: f64, cells: [&str; 4]| {
        let cells = cells.map(harmless).join(" | ");
        format!("| {} | {} | {cells} |", signed(amount.into()), points(share))
    };
    let mut lines = vec![
        "| difference | points | cause | numbers | certainty | where |".to_owned(),
        "|---:|---:|---|---|---|---|".to_owned(),
    ];
    lines.extend(shown.iter().map(|part| {
        row(part.amount, part.points, [&part.cause, &part.detail, part.certainty.name(), &part.place])
    }));
    if !others.is_empty() {
        let (amount, share) =
            (others.iter().map(|part| part.amount).sum(), others.iter().map(|part| part.points).sum());
        lines.push(row(amount, share, [&counted(others.len(), "smaller part"), "", "", ""]));
    }
    let reason = rest.reason.as_deref().unwrap_or_default();
    lines.push(row(rest.amount, rest.points, ["not explained", reason, "", ""]));
    lines.join("\n")
}
