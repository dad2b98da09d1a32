//! Shows a campaign: on the terminal, as Markdown, JSON, CSV, and as one self-contained HTML file.
//!
//! This crate is pure. Verdicts and facts come in as a [`Report`], text goes out; it opens no file, starts
//! no process, reads no clock and queries no terminal. All formats take their sentences from [`report_text`],
//! so that no two of them can disagree.
//!
//! Names, reasons and program output are untrusted text: [`sanitize`] makes their control characters harmless
//! in every format for people. Each format also escapes what it must.

pub mod by_metric;
pub mod campaign;
pub mod columns;
mod comparison;
pub mod csv;
pub mod csv_memory;
pub mod diagnosis;
mod diff;
pub mod excerpt;
pub mod explanation;
pub mod format;
pub mod heap;
pub mod html;
pub mod inner_loops;
pub mod json;
pub mod markdown;
pub mod memory;
mod noisy_rounds;
pub mod order;
mod output_agreement;
pub mod peaks;
pub mod report;
pub mod report_text;
mod round_spans;
pub mod sanitize;
pub mod scale;
mod series;
pub(crate) mod spread;
pub mod terminal;
pub mod text;
pub mod topology;
pub mod x32_runtime;

pub use campaign::{BuildNote, Campaign};
pub use comparison::{Comparison, MemoryRun, ProcessNote, RuntimeCalls};
pub use report::Report;
