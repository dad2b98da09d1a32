//! `docs/benchmarks.md`: a summary, and a section for each claim. A section that is not measured anew keeps its text.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use widthwise_experiment::units::thousands;

use crate::section::{NOT_REACHED, REACHED};

const HEAD: &str = "# Benchmarks\n\n\
     `make bench` measures every claim beside a comparable tool, in one run on one machine, and writes this page. With a claim's name it measures that\n\
     claim alone. The comparable tool is [hyperfine](https://github.com/sharkdp/hyperfine) from Debian's package, called with `-N` (no shell), unless\n\
     a section names another. The programs are those of `bench/programs` and `tests/programs`, built in a separate folder, in which the commands run.\n";

/// The page.
#[derive(Debug)]
pub struct Document {
    titles: Vec<String>,
    sections: BTreeMap<String, String>,
}

impl Document {
    /// A page on which nothing has been measured yet.
    pub fn empty(titles: &[&str]) -> Document {
        Document { titles: titles.iter().map(|title| title.to_string()).collect(), sections: BTreeMap::new() }
    }

    /// The page as it is, if it is there.
    pub fn read(path: &Path, titles: &[&str]) -> anyhow::Result<Document> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Document::parse(&text, titles)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Document::empty(titles)),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str, titles: &[&str]) -> Document {
        let mut document = Document::empty(titles);
        for part in text.split("\n## ").skip(1) {
            if let Some((title, body)) = part.split_once('\n') {
                document.put(title, body);
            }
        }
        document
    }

    /// Puts in a section, in the place of an earlier one. Its long numbers are written as all of Widthwise's are.
    pub fn put(&mut self, title: &str, text: &str) {
        self.sections.insert(title.to_owned(), grouped(text.trim()));
    }

    /// The whole page.
    pub fn text(&self) -> String {
        let measured = || self.titles.iter().filter_map(|title| Some((title, self.sections.get(title)?)));
        let mut text = format!("{HEAD}\n| claim | | measured |\n| --- | --- | --- |\n");
        for (title, section) in measured() {
            let (word, sentence) = outcome(section);
            let anchor = title.to_lowercase().replace(' ', "-");
            text += &format!("| [{title}](#{anchor}) | {word} | {sentence} |\n");
        }
        for (title, section) in measured() {
            text += &format!("\n## {title}\n\n{section}\n");
        }
        text
    }

    /// Writes the page, whole or not at all.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let partial = path.with_extension("md.partial");
        std::fs::write(&partial, self.text())
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| path.display().to_string())
    }
}

/// What a section says came out.
fn outcome(section: &str) -> (&str, &str) {
    let says = |marker| section.lines().find_map(|line: &str| line.strip_prefix(marker)).map(str::trim);
    match (says(REACHED), says(NOT_REACHED)) {
        (Some(sentence), _) => ("pass", sentence),
        (_, Some(sentence)) => ("**fail**", sentence),
        _ => ("not measured", ""),
    }
}

/// A text with the digits of long numbers in groups of three, as [`widthwise_experiment::units`] writes them: those of five
/// digits and more, and those with commas. Code stays as it is typed.
fn grouped(text: &str) -> String {
    let mut in_block = false;
    let line = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        if in_block || is_fence {
            return line.to_owned();
        }
        let parts = line.split('`').enumerate();
        let part = |(number, part): (usize, &str)| {
            if number % 2 == 0 {
                grouped_prose(part)
            } else {
                part.to_owned()
            }
        };
        parts.map(part).collect::<Vec<_>>().join("`")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn grouped_prose(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == ',';
    let mut grouped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[start..].find(|c: char| !is_number(c)).map_or(rest.len(), |length| start + length);
        let number = rest[start..end].trim_end_matches(',');
        let (before, after) = (&rest[..start], &rest[start + number.len()..]);
        grouped.push_str(before);
        // A part of a name, of a path or of a fraction is no number of its own.
        let joins = |c: char| c.is_alphanumeric() || "._/-%".contains(c);
        let joined = grouped.ends_with(joins)
            || after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/')
            || (after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit()));
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        let in_groups = number.contains(',')
            && number
                .split(',')
                .enumerate()
                .all(|(at, group)| group.len() == 3 || (at == 0 && group.len() < 3));
        let is_long = in_groups || (digits.len() == number.len() && digits.len() > 4);
        match digits.parse::<u64>() {
            Ok(value) if is_long && !joined => grouped.push_str(&thousands(value as i64)),
            _ => grouped.push_str(number),
        }
        rest = after;
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_is_not_measured_anew_keeps_its_text_and_its_place() {
        let titles = ["Cost of a run", "Peak memory"];
        let mut first = Document::empty(&titles);
        first.put("Peak memory", "Threshold: 1 %\n\n**Passed:** by far.\n");
        first.put("Cost of a run", "Threshold: a ratio of 1\n\n**Failed:** 1.2.\n");
        let mut second = Document::parse(&first.text(), &titles);
        assert_eq!(second.text(), first.text());
        second.put("Cost of a run", "**Passed:** 0.9.\n");
        let text = second.text();
        assert!(text.contains("| [Cost of a run](#cost-of-a-run) | pass | 0.9. |"), "{text}");
        assert!(text.contains("| [Peak memory](#peak-memory) | pass | by far. |"), "{text}");
        assert!(text.find("## Cost of a run") < text.find("## Peak memory"), "{text}");
        assert!(!text.contains("1.2"), "{text}");
    }

    #[test]
    fn long_numbers_are_in_groups_outside_of_code() {
        let shown = grouped(
            "30,000 and 1000000, 1000 2,5 0.12345 a12345 in `x 12345`\n```sh\nx 30000\n```\n| 395808 |",
        );
        let expected =
            "30_000 and 1_000_000, 1000 2,5 0.12345 a12345 in `x 12345`\n```sh\nx 30000\n```\n| 395_808 |";
        assert_eq!(shown, expected.replace('_', "\u{202f}"));
        assert_eq!(grouped(&shown), shown);
    }
}
