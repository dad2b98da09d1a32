//! The campaign as one HTML file: self-contained, no network, no font from elsewhere, and no script but that of flame graphs and, of
//! campaigns too large to be read at once, one that sorts tables and opens folds.
//!
//! Everything foreign passes through [`visible`](crate::sanitize) and then through maud, which escapes. The page
//! forbids itself to load or run anything (its Content-Security-Policy), so that even a mistake here would stay text. Where
//! it needs a script, it lets that one run, known by its hash.

mod axis;
mod document;
pub mod flame;
mod fold;
mod forest;
mod heap;
mod memory;
mod page;
mod plot;
mod raw;
mod record;
mod samples;
mod shape;
mod summary;
mod timeline;
mod wording;

pub(crate) use document::{document, policy, POLICY};

/// Sorts tables and unpacks large folds; a page that has neither does without it.
pub const SCRIPT: &str = include_str!("html/page.js");

pub(crate) use wording::prose;

use crate::campaign::Campaign;

/// The whole file.
pub fn render(campaign: &Campaign) -> String {
    page::page(campaign).into_string()
}
