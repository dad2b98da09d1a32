//! The campaign as one self-contained HTML file: no network, no external font. It has a script for flame
//! graphs and, for campaigns too large to be read at once, one that sorts tables and opens folds.
//!
//! All text from outside passes through [`sanitize`](crate::sanitize) and then through maud, which escapes
//! it. The page's Content-Security-Policy forbids it to load or run anything, so that an escaping error would
//! still have no effect. A page that needs a script allows that one by its hash.

mod axis;
mod by_metric;
mod charts;
pub(crate) mod document;
pub mod explanation;
pub mod flame;
mod fold;
mod forest;
mod heap;
mod histogram;
mod inner_loops;
mod memory;
mod page;
mod plot;
mod raw;
mod record;
pub(crate) use record::reproduce;
mod samples;
mod summary;
mod timeline;
mod wording;

pub(crate) use document::{document, POLICY};
pub use page::SCRIPT;
pub(crate) use wording::prose;

use crate::comparison::Comparison;

/// The whole file.
pub fn render(comparison: &Comparison) -> String {
    page::page(comparison).into_string()
}
