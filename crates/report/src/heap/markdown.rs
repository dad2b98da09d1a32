//! The allocation sites of a recorded heap as Markdown.

use super::Explanation;
use crate::markdown::escape::{harmless, prose, text_block};
use crate::text::Palette;

/// Columns of the tables.
const TEXT_WIDTH: usize = 110;

impl Explanation<'_> {
    /// As Markdown, with a final line end: the sentences, then the tables of sites and of types as on a terminal.
    pub fn markdown(&self) -> String {
        let title = match self.b {
            Some(b) => format!("{}: heap of {} and {}", self.program, self.a.name, b.name),
            None => format!("{}: heap of {}", self.program, self.a.name),
        };
        let mut blocks = vec![format!("## {}", harmless(&title))];
        blocks.extend(self.sentences().iter().map(|sentence| harmless(sentence)));
        blocks.push(text_block(self.table(&Palette::plain()).trim_end()));
        let types = self.types_text(TEXT_WIDTH, &Palette::plain());
        if !types.trim().is_empty() {
            blocks.push(text_block(types.trim_matches('\n')));
        }
        blocks.extend(
            self.remarks().iter().map(|remark| format!("> {}", prose(&crate::sanitize::line(remark)))),
        );
        blocks.join("\n\n") + "\n"
    }
}
