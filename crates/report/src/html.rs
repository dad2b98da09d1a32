//! The campaign as one self-contained HTML file: no network, no external font. It has a script for flame
//! graphs and, for campaigns too large to be read at once, one that sorts tables and opens folds.
//!
//! All text from outside passes through [`sanitize`](crate::sanitize) and then through maud, which escapes
//! it. The page's Content-Security-Policy forbids it to load or run anything, so that an escaping error would
//! still have no effect. A page that needs a script allows that one by its hash.

mod axis;
mod charts;
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

/// Sorts tables and unpacks large folds; a page without either omits it.
pub const SCRIPT: &str = include_str!("html/page.js");

pub(crate) use wording::prose;

use crate::campaign::Campaign;

/// The whole file.
pub fn render(campaign: &Campaign) -> String {
    page::page(campaign).into_string()
}
