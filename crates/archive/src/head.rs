//! The head of a campaign: what it asks, and what must not change while it lasts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::slug::slug;

/// What a campaign is, written once when it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// When it began, RFC 3339.
    pub created: String,
    /// The version of widthwise that began it.
    pub widthwise: String,
    /// The command line that began it, word by word.
    pub command: Vec<String>,
    /// The measured program's own version, as far as it is known.
    pub program_version: String,
    /// The text of a `widthwise.toml` that asks the same question again.
    pub spec: String,
    /// Seed of the random order, of the paddings and of the bootstrap.
    pub seed: u64,
    /// The machine record.
    pub machine: serde_json::Value,
    /// What must be the same when the campaign is resumed: `source` → digest, `input bench.lua` → digest,
    /// `x32 binary` → digest, `compiler gcc-12` → version.
    pub identity: BTreeMap<String, String>,
    /// Every variant, in the order of the tables; the A/A twin among them.
    pub variants: Vec<StoredVariant>,
}

/// One variant of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredVariant {
    /// Its name.
    pub name: String,
    /// Its name as a file name.
    pub slug: String,
    /// `baseline`, `variant`, or `again` for the baseline's second appearance.
    pub role: String,
}

impl StoredVariant {
    /// A variant with the slug of its name.
    pub fn new(name: &str, role: &str) -> StoredVariant {
        StoredVariant { name: name.to_owned(), slug: slug(name), role: role.to_owned() }
    }
}

/// What differs between two identities, one sentence's worth each: `x32 binary: its content changed`.
pub(crate) fn differences(then: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let gone_or_changed = then.iter().filter_map(|(what, old)| match now.get(what) {
        None => Some(format!("{what}: is gone")),
        Some(new) if new == old => None,
        Some(new) if is_digest(old) && is_digest(new) => Some(format!("{what}: its content changed")),
        Some(new) => Some(format!("{what}: {old} → {new}")),
    });
    let added = now.keys().filter(|what| !then.contains_key(*what)).map(|what| format!("{what}: is new"));
    gone_or_changed.chain(added).collect()
}

/// Hexadecimal and too long to be a version: nobody wants to read two of these.
fn is_digest(value: &str) -> bool {
    let digits = value.rsplit_once(':').map_or(value, |(_, digits)| digits);
    digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
