//! Why one variant differs from another: parts that sum to each measured difference, and what no part explains.
//!
//! Each part of the program's cost (its size, code, layout, heap, time) is a [`Section`] in a file of its own.

pub mod code;
pub mod csv;
pub mod function;
pub mod heap;
pub mod layout;
pub mod markdown;
pub mod memory;
mod model;
mod parts;
mod sentence;
pub mod size;
mod table;
pub mod time;

use anstyle::Style;
use serde_json::{json, Value};

use crate::format::listed;
use crate::sanitize;
use crate::text::{paragraph, Palette, NARROWEST};

pub use model::{Basis, Measured, Part, Section, Unexplained};
pub(crate) use parts::points;
pub(crate) use sentence::coverage;
pub use sentence::noun;
pub use widthwise_anatomy::Certainty;

/// Version of the JSON; it increases when the meaning of something changes.
const SCHEMA: u32 = 1;

/// The input of an explanation's report.
pub struct Explanation<'a> {
    /// The name of the variant, or its file.
    pub variant: &'a str,
    /// The name of the baseline, or its file.
    pub baseline: &'a str,
    /// The sections, in the order in which they are shown.
    pub sections: Vec<Box<dyn Section + 'a>>,
    /// What a reader must know: what is withheld, and why.
    pub remarks: Vec<String>,
    /// The command that shows the sections that the text leaves out, if it leaves any out: it has those on runs alone.
    pub details: Option<String>,
}

impl Explanation<'_> {
    /// All parts, those of one metric together, the largest amounts of each first.
    pub fn parts(&self) -> Vec<Part> {
        self.sections.iter().flat_map(|section| sorted(section.as_ref())).collect()
    }

    /// What the parts leave of each metric's difference.
    pub fn unexplained(&self) -> Vec<Unexplained> {
        let of_section = |section: &dyn Section| {
            let parts = section.parts();
            let rest = |measured: Measured| {
                let of_metric: Vec<&Part> =
                    parts.iter().filter(|part| part.metric == measured.metric).collect();
                let rest = measured.unexplained(&of_metric, section.reason(measured.metric));
                Unexplained { verdict_reason: section.verdict_reason(measured.metric), ..rest }
            };
            section.measured().into_iter().map(rest).collect::<Vec<_>>()
        };
        self.sections.iter().flat_map(|section| of_section(section.as_ref())).collect()
    }

    /// One sentence for each metric: its difference, and the parts in percentage points.
    pub fn sentences(&self) -> Vec<String> {
        let parts = self.parts();
        let sentence = |rest: &Unexplained| {
            let of_metric: Vec<&Part> = parts.iter().filter(|part| part.metric == rest.metric).collect();
            sanitize::line(&sentence::of_metric([self.baseline, self.variant], rest, &of_metric))
        };
        self.unexplained().iter().map(sentence).collect()
    }

    /// The document of `kind` `explanation`; `docs/schema/explanation-1.json` describes it.
    pub fn json(&self) -> Value {
        let sections = self.sections.iter().map(|section| (section.name().to_owned(), section.json()));
        json!({
            "schema": SCHEMA,
            "kind": "explanation",
            "widthwise": env!("CARGO_PKG_VERSION"),
            "variant": self.variant,
            "baseline": self.baseline,
            "parts": self.parts(),
            "unexplained": self.unexplained(),
            "sections": sections.collect::<serde_json::Map<_, _>>(),
            "remarks": self.remarks,
        })
    }

    /// The sentences, then each section.
    pub fn terminal(&self, width: usize, palette: &Palette) -> String {
        let width = width.max(NARROWEST);
        let strong = palette.strong;
        let (variant, baseline) = (sanitize::line(self.variant), sanitize::line(self.baseline));
        let mut text = format!("{strong}{variant}{strong:#} compared with {baseline}\n");
        for line in self.sentences().iter().chain(&self.remarks) {
            text += &paragraph(line, width, Style::new());
        }
        let (shown, hidden): (Vec<&dyn Section>, Vec<&dyn Section>) = self
            .sections
            .iter()
            .map(AsRef::as_ref)
            .partition(|section| self.details.is_none() || section.is_of_runs());
        for section in shown {
            text.push('\n');
            text.push_str(&section.text(width, palette));
        }
        let hidden: Vec<&str> = hidden.iter().map(|section| section.name()).collect();
        if let (Some(command), false) = (&self.details, hidden.is_empty()) {
            text.push_str(&format!("\n  {}: {}\n", listed(&hidden), sanitize::line(command)));
        }
        text
    }
}

/// The parts of a section: metric by metric, the largest amounts first.
fn sorted(section: &dyn Section) -> Vec<Part> {
    let order: Vec<&str> = section.measured().iter().map(|measured| measured.metric).collect();
    let mut parts = section.parts();
    parts.retain(|part| part.amount != 0);
    parts.sort_by_key(|part| {
        let metric = order.iter().position(|metric| *metric == part.metric);
        (metric, std::cmp::Reverse(part.amount.unsigned_abs()))
    });
    parts
}
