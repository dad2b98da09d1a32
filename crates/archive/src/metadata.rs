//! The metadata of a campaign: what it asks, and what must not change while it lasts.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{params, Connection};
use serde::{Deserialize, Serialize};
use widthwise_experiment::metric;

use widthwise_experiment::scale::Plan;
use widthwise_experiment::Role;

use crate::error::ArchiveError;
use crate::slug::{is_one_component, slug};

/// What a campaign is, written once when it begins.
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
    /// The text of a `widthwise.toml` that asks the same question again.
    pub spec: String,
    /// Seed of the random order, of the paddings and of the bootstrap.
    pub seed: u64,
    /// The machine record.
    pub machine: serde_json::Value,
    /// What must be the same when the campaign is resumed: `source` → digest, `input bench.lua` → digest,
    /// `x32 binary` → digest, `compiler gcc-12` → version.
    pub fingerprint: BTreeMap<String, String>,
    /// Every variant, in the order of the tables; the A/A control among them.
    pub variants: Vec<VariantRow>,
    /// What a scaling campaign asks besides; absent for a comparison.
    pub scaling: Option<Scaling>,
}

/// What a scaling campaign asks, and the machine as its placements need it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// What was asked besides the program and its variants.
    pub plan: Plan,
    /// The placements that can be had here, with the CPUs of the largest cell.
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
    /// What it is for.
    pub role: Role,
}

impl VariantRow {
    /// A variant with the slug of its name.
    pub fn new(name: &str, role: Role) -> VariantRow {
        VariantRow { name: name.to_owned(), slug: slug(name), role }
    }
}

/// What differs between two fingerprints, one sentence's worth each: `x32 binary: its content changed`.
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

/// Hexadecimal and too long to be a version: two of these are not worth reading.
fn is_digest(value: &str) -> bool {
    let digits = value.rsplit_once(':').map_or(value, |(_, digits)| digits);
    digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn write_metadata(connection: &Connection, metadata: &Metadata) -> rusqlite::Result<()> {
    let command = serde_json::Value::from(metadata.command.clone()).to_string();
    let json = |scaling| serde_json::to_string(scaling);
    let scaling = metadata.scaling.as_ref().map(json).transpose();
    let scaling = scaling.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.execute(
        "INSERT INTO campaign (id, kind, created, widthwise, command, program, program_version, spec, seed, machine, scaling)
         VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            if scaling.is_some() { "scaling" } else { "comparison" },
            metadata.created,
            metadata.widthwise,
            command,
            metadata.program,
            metadata.program_version,
            metadata.spec,
            metadata.seed.to_string(),
            metadata.machine.to_string(),
            scaling
        ],
    )?;
    for (what, value) in &metadata.fingerprint {
        connection.execute("INSERT INTO fingerprint (what, value) VALUES (?1, ?2)", [what, value])?;
    }
    for variant in &metadata.variants {
        connection.execute(
            "INSERT INTO variant (name, slug, role) VALUES (?1, ?2, ?3)",
            params![variant.name, variant.slug, variant.role.name()],
        )?;
    }
    write_metrics(connection)
}

/// Every metric this build knows; a later build that resumes may know more.
pub(crate) fn write_metrics(connection: &Connection) -> rusqlite::Result<()> {
    let mut add = connection.prepare(
        "INSERT INTO metric (name, title, unit, about) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    for metric in metric::all() {
        add.execute([metric.name, metric.title, metric.unit.name(), metric.about])?;
    }
    Ok(())
}

pub(crate) fn read_metadata(
    folder: &Path,
    file: &Path,
    connection: &Connection,
) -> Result<Metadata, ArchiveError> {
    let failed = |error| ArchiveError::database(folder, file, error);
    let damaged = |reason: String| ArchiveError::Damaged { path: file.to_owned(), reason };
    let columns = "SELECT created, widthwise, command, program_version, spec, seed, machine, program, scaling FROM campaign";
    let mut rows = connection.prepare(columns).map_err(failed)?;
    let (metadata, command, seed, machine, scaling) = rows
        .query_row([], |row| {
            let metadata = Metadata {
                created: row.get(0)?,
                widthwise: row.get(1)?,
                command: Vec::new(),
                program_version: row.get(3)?,
                spec: row.get(4)?,
                seed: 0,
                machine: serde_json::Value::Null,
                program: row.get(7)?,
                fingerprint: BTreeMap::new(),
                variants: Vec::new(),
                scaling: None,
            };
            let text = |column| row.get::<_, String>(column);
            Ok((metadata, text(2)?, text(5)?, text(6)?, row.get::<_, Option<String>>(8)?))
        })
        .map_err(failed)?;
    let read_names = || {
        let fingerprint = connection
            .prepare("SELECT what, value FROM fingerprint")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<BTreeMap<String, String>>>()?;
        let variants = connection
            .prepare("SELECT name, slug, role FROM variant ORDER BY id")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(String, String, String)>>>()?;
        Ok((fingerprint, variants))
    };
    let (fingerprint, rows) = read_names().map_err(failed)?;
    let mut variants = Vec::new();
    for (name, slug, role) in rows {
        let Some(role) = Role::parse(&role) else {
            return Err(damaged(format!("the variant {name:?} has the unknown role {role:?}")));
        };
        variants.push(VariantRow { name, slug, role });
    }
    if let Some(variant) = variants.iter().find(|variant| !is_one_component(&variant.slug)) {
        return Err(damaged(format!("{:?} cannot be the name of {:?}'s files", variant.slug, variant.name)));
    }
    Ok(Metadata {
        command: serde_json::from_str(&command)
            .map_err(|error| damaged(format!("its command line is not JSON: {error}")))?,
        seed: seed.parse().map_err(|_| damaged(format!("its seed is {seed:?}")))?,
        machine: serde_json::from_str(&machine)
            .map_err(|error| damaged(format!("its machine record is not JSON: {error}")))?,
        scaling: scaling
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| damaged(format!("its scaling plan is none: {error}")))?,
        fingerprint,
        variants,
        ..metadata
    })
}
