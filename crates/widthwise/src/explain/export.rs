//! Files of recorded heaps for viewers: a flame graph, folded stacks, pprof.

use std::path::Path;

use widthwise_anatomy::heap::profile::Column;
use widthwise_anatomy::import::{folded, pprof};
use widthwise_report::html::flame;

use super::heaps::Heaps;
use crate::failure::Failure;
use crate::output;

/// The files that are asked for.
pub struct Export<'a> {
    /// A page with the flame graph.
    pub html: Option<&'a Path>,
    /// Folded stacks of one side.
    pub folded: Option<&'a Path>,
    /// A pprof profile of one side.
    pub pprof: Option<&'a Path>,
}

impl Export<'_> {
    /// Whether any file is asked for.
    pub fn is_any(&self) -> bool {
        self.html.is_some() || self.folded.is_some() || self.pprof.is_some()
    }

    /// Writes them. `caution` is what a reader of a picture must know.
    ///
    /// # Errors
    /// A file cannot be written, or one that holds one side is asked for of two.
    pub fn write(&self, heaps: &Heaps, caution: Option<&str>) -> Result<(), Failure> {
        let (a, b) = (&heaps.read[0], heaps.read.get(1));
        if let Some(path) = self.html {
            let cautious = caution.map_or(String::new(), |caution| format!(" ({caution})"));
            let program = &heaps.program;
            let title = match b {
                Some(b) => format!("{program}: heap of {} and {}{cautious}", a.side.name, b.side.name),
                None => format!("{program}: heap of {}{cautious}", a.side.name),
            };
            let flame = heaps.flame(&title);
            output::put(path, flame::page(&flame).as_bytes())?;
        }
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
