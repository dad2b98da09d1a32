//! The part of an explanation that a campaign's page holds.

use maud::Markup;

/// The part of an explanation that a campaign's page holds: what was measured in runs.
#[derive(Debug, Clone)]
pub struct Excerpt {
    pub(crate) variant: String,
    pub(crate) baseline: String,
    /// The page with the whole explanation, beside the campaign's.
    pub(crate) file: Option<String>,
    /// The command that makes it.
    pub(crate) command: String,
    /// No identifiers of elements: a page has several.
    pub(crate) body: Markup,
}
