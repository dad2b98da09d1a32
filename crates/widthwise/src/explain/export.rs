//! Files of recorded heaps: all formats of their sites, and for viewers folded stacks and pprof.

use std::path::Path;

use widthwise_anatomy::heap::profile::Column;
use widthwise_anatomy::import::{folded, pprof};
use widthwise_report::heap::Explanation;
use widthwise_report::html::flame;

use super::heaps::Heaps;
use crate::failure::Failure;
use crate::formats::Document;
use crate::output;

/// The files that are asked for.
pub struct Export<'a> {
    /// Folded stacks of one side.
    pub folded: Option<&'a Path>,
    /// A pprof profile of one side.
    pub pprof: Option<&'a Path>,
}

impl Export<'_> {
    /// Whether any file is asked for.
    pub fn is_any(&self) -> bool {
        self.folded.is_some() || self.pprof.is_some()
    }

    /// Writes them. `caution` is what a reader of a picture must know.
    ///
    /// # Errors
    /// A file cannot be written, or one that holds one side is asked for of two.
    pub fn write(&self, heaps: &Heaps, caution: Option<&str>) -> Result<(), Failure> {
        let a = &heaps.read[0];
        if let (Some(caution), true) = (caution, self.folded.is_some() || self.pprof.is_some()) {
            output::note(&format!("warning: {caution}"));
        }
        if let Some(path) = self.folded {
            alone("--folded", heaps)?;
            let text = folded::write(&a.profile, Column::PeakBytes, folded::SourceLines::Shown);
            output::put(path, text.as_bytes())?;
        }
        if let Some(path) = self.pprof {
            alone("--pprof", heaps)?;
            output::put(path, &pprof::write(&a.profile))?;
        }
        Ok(())
    }
}

/// The sites of recorded heaps in all formats: the page is a flame graph.
pub struct Sites<'a> {
    /// The heaps.
    pub heaps: &'a Heaps,
    /// The input of their report.
    pub explanation: &'a Explanation<'a>,
    /// What a reader of a picture must know.
    pub caution: Option<&'a str>,
}

impl Document for Sites<'_> {
    fn html(&self) -> String {
        let cautious = self.caution.map_or(String::new(), |caution| format!(" ({caution})"));
        let program = &self.heaps.program;
        let title = match &self.heaps.read[..] {
            [a, b, ..] => format!("{program}: heap of {} and {}{cautious}", a.side.name, b.side.name),
            [a] => format!("{program}: heap of {}{cautious}", a.side.name),
            [] => program.clone(),
        };
        flame::page(&self.heaps.flame(&title))
    }

    fn markdown(&self) -> String {
        self.explanation.markdown()
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        self.explanation.json()
    }

    fn csv(&self, to: &mut Vec<u8>) -> Result<(), Failure> {
        self.explanation.csv(to).map_err(Failure::machine)
    }
}

/// Refuses two sides where a file holds one.
fn alone(flag: &str, heaps: &Heaps) -> Result<(), Failure> {
    match heaps.read.as_slice() {
        [a, _, ..] => Err(Failure::request(format!(
            "{flag} writes one variant: widthwise explain {} {flag} FILE; viewers compare two files themselves",
            shell_words::quote(&a.side.name)
        ))),
        _ => Ok(()),
    }
}
