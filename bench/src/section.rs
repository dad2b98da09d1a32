//! One claim's section: what must be reached, how it was measured, what came out.

use crate::surroundings::Surroundings;

/// What came out for one claim.
#[derive(Debug)]
pub struct Section {
    /// What must be reached, in one sentence.
    pub bar: String,
    /// How it was measured, in a few.
    pub method: String,
    /// The commands underneath, as they were run.
    pub commands: Vec<String>,
    /// The numbers.
    pub table: Table,
    /// Whether the bar was reached.
    pub reached: bool,
    /// What came out, in one sentence.
    pub sentence: String,
}

/// A table of text.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<const N: usize>(columns: [&str; N]) -> Table {
        Table { rows: vec![columns.map(str::to_owned).to_vec()] }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// The first table of a Markdown text.
    pub fn first_of(text: &str) -> Option<Table> {
        let lines =
            text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let mut rows: Vec<Vec<String>> = lines
            .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect();
        if rows.len() < 3 {
            return None;
        }
        rows.remove(1); // the rule below the heads
        Some(Table { rows })
    }

    /// Every cell that is not a head: neither in the first row nor in the first column.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().skip(1).flat_map(|row| row.iter().skip(1)).map(String::as_str)
    }

    /// In Markdown: numbers, which is all but the first column, on the right.
    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let Some((head, body)) = self.rows.split_first() else { return String::new() };
        let rule: Vec<String> =
            (0..head.len()).map(|column| if column == 0 { "---" } else { "---:" }.to_owned()).collect();
        let body: String = body.iter().map(|row| line(row)).collect();
        line(head) + &line(&rule) + &body
    }
}

impl Section {
    /// The section's text, without its heading. `claim` is its name on the command line.
    pub fn text(&self, claim: &str, surroundings: &Surroundings) -> String {
        let commands: String = self.commands.iter().map(|command| format!("{command}\n")).collect();
        let which = if commands.is_empty() { "" } else { "   # which runs:" };
        format!(
            "Threshold: {}\n\n{}\n\n{}\n\n```sh\ncargo run --release --package widthwise-bench -- {claim}{which}\n\
             {commands}```\n\n{}\n{} {}\n",
            self.bar,
            surroundings.line(),
            self.method,
            self.table.markdown(),
            if self.reached { REACHED } else { NOT_REACHED },
            self.sentence,
        )
    }
}

/// What a section's last line begins with, if its bar was reached.
pub const REACHED: &str = "**Passed:**";
/// And if it was not.
pub const NOT_REACHED: &str = "**Failed:**";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_says_its_bar_its_command_its_numbers_and_whether_it_was_reached() {
        let mut table = Table::new(["", "widthwise", "hyperfine"]);
        table.row(["wall".into(), "3".into(), "4".into()]);
        let section = Section {
            bar: "less than the peer's.".into(),
            method: "By a clock.".into(),
            commands: vec!["widthwise compare".into()],
            table,
            reached: false,
            sentence: "it was not.".into(),
        };
        let text = section.text("cost", &Surroundings::now());
        assert!(text.starts_with("Threshold: less than the peer's.\n"), "{text}");
        assert!(text.contains("widthwise-bench -- cost   # which runs:\nwidthwise compare\n```\n"), "{text}");
        assert!(
            text.contains("|  | widthwise | hyperfine |\n| --- | ---: | ---: |\n| wall | 3 | 4 |\n"),
            "{text}"
        );
        assert!(text.ends_with("\n**Failed:** it was not.\n"), "{text}");
    }
}
