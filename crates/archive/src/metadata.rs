//! The metadata of a campaign: its request, and what must not change between sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use widthwise_experiment::scale::Plan;
use widthwise_experiment::Role;

use crate::slug::slug;

/// The metadata, written once when the campaign begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// When it began, RFC 3339.
    pub created: String,
    /// The version of widthwise that began it.
    pub widthwise: String,
    /// The command line that began it, word by word.
    pub command: Vec<String>,
    /// The name of the measured program.
    pub program: String,
    /// The measured program's own version, as far as it is known.
    pub program_version: String,
    /// The text of a `widthwise.toml` with the same request.
    pub spec: String,
    /// Seed of the random order, of the paddings and of the bootstrap.
    pub seed: u64,
    /// The machine record.
    pub machine: serde_json::Value,
    /// What must be the same when the campaign is resumed: `source` → digest, `input bench.lua` → digest,
    /// `x32 binary` → digest, `compiler gcc-12` → version.
    pub fingerprint: BTreeMap<String, String>,
    /// Every variant, in the order of the tables, including the A/A control.
    pub variants: Vec<VariantRow>,
    /// The scaling plan; absent for a comparison.
    pub scaling: Option<Scaling>,
}

/// The request of a scaling campaign, and the machine's CPUs and memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The request without the program and its variants.
    pub plan: Plan,
    /// The placements available here, with the CPUs of the largest cell.
    pub placements: Vec<(String, Vec<u32>)>,
    /// CPUs that may be used.
    pub allowed: Vec<u32>,
    /// The CPUs of each core that may be used.
    pub cores: Vec<Vec<u32>>,
    /// Memory of the machine, in bytes.
    pub memory: u64,
    /// Confidence of the intervals.
    pub confidence: f64,
}

impl Metadata {
    /// Names of the variants that are compared, the baseline first; the A/A control is not among them.
    pub fn names(&self) -> Vec<String> {
        let mut compared: Vec<&VariantRow> =
            self.variants.iter().filter(|variant| variant.role != Role::Control).collect();
        compared.sort_by_key(|variant| variant.role != Role::Baseline);
        compared.into_iter().map(|variant| variant.name.clone()).collect()
    }
}

/// One variant of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantRow {
    /// Its name.
    pub name: String,
    /// Its name as a file name.
    pub slug: String,
    /// Its role.
    pub role: Role,
}

impl VariantRow {
    /// A variant with the slug of its name.
    pub fn new(name: &str, role: Role) -> VariantRow {
        VariantRow { name: name.to_owned(), slug: slug(name), role }
    }
}

/// The differences between two fingerprints, one phrase each: `x32 binary: its content changed`.
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

/// Hexadecimal and too long to be a version, and so not worth printing.
fn is_digest(value: &str) -> bool {
    let digits = value.rsplit_once(':').map_or(value, |(_, digits)| digits);
    digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
