//! `docs/benchmarks.md`: a summary, and a section for each claim. A section that is not measured anew keeps its text.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use crate::section::{NOT_REACHED, REACHED};

const HEAD: &str = "# What is claimed, measured\n\n\
     `make bench` measures every claim beside its peer, in one run on one machine, and writes this page; a claim's name measures that\n\
     one alone. The peer is [hyperfine](https://github.com/sharkdp/hyperfine) from Debian's package, called with `-N` (no shell), unless\n\
     a section names another. The programs are those of `bench/programs` and `tests/programs`, built in a folder of their own, in which the commands are run.\n";

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

    /// Puts in a section, in the place of an earlier one.
    pub fn put(&mut self, title: &str, text: &str) {
        self.sections.insert(title.to_owned(), text.trim().to_owned());
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
        (Some(sentence), _) => ("reached", sentence),
        (_, Some(sentence)) => ("**not reached**", sentence),
        _ => ("not measured", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_is_not_measured_anew_keeps_its_text_and_its_place() {
        let titles = ["Cost of a run", "Peak memory"];
        let mut first = Document::empty(&titles);
        first.put("Peak memory", "The bar: 1 %\n\n**Reached:** by far.\n");
        first.put("Cost of a run", "The bar: a ratio of 1\n\n**Not reached:** 1.2.\n");
        let mut second = Document::parse(&first.text(), &titles);
        assert_eq!(second.text(), first.text());
        second.put("Cost of a run", "**Reached:** 0.9.\n");
        let text = second.text();
        assert!(text.contains("| [Cost of a run](#cost-of-a-run) | reached | 0.9. |"), "{text}");
        assert!(text.contains("| [Peak memory](#peak-memory) | reached | by far. |"), "{text}");
        assert!(text.find("## Cost of a run") < text.find("## Peak memory"), "{text}");
        assert!(!text.contains("1.2"), "{text}");
    }
}
