//! Where the logs of a side come from: a campaign, or files that the user names.

use std::path::{Path, PathBuf};

use widthwise_archive::Archive;
use widthwise_measure::heap::{self, Recording};

use crate::failure::Failure;
use crate::presentation::{self, short};

/// One side, not read yet.
pub struct Source {
    /// The variant, or the file.
    pub name: String,
    /// Its logs, in the order of their names.
    pub logs: Vec<PathBuf>,
    /// What was noted when they were recorded.
    pub recording: Recording,
}

/// The program's name, and the sides that are asked for: all of them files, or variants of the campaign. Where none is, the
/// baseline and the first other variant that was recorded.
pub fn find(wanted_sides: &[String], campaign: &Path) -> Result<(String, Vec<Source>), Failure> {
    if !wanted_sides.is_empty() && wanted_sides.iter().all(|side| Path::new(side).is_file()) {
        let sides = wanted_sides.iter().map(|side| Source {
            name: side.clone(),
            logs: vec![PathBuf::from(side)],
            recording: Recording::default(),
        });
        return Ok(("logs".to_owned(), sides.collect()));
    }
    let archive = Archive::read(campaign).map_err(Failure::request)?;
    let head = archive.head();
    let again = |role: &str| role == "again";
    let names: Vec<&str> =
        head.variants.iter().filter(|one| !again(&one.role)).map(|one| one.name.as_str()).collect();
    for side in wanted_sides {
        if !names.contains(&side.as_str()) {
            return Err(Failure::request(format!(
                "{} has no variant \"{side}\", and there is no such file; it has {}",
                short(archive.folder()),
                names.join(", ")
            )));
        }
    }
    let experiment = presentation::experiment(&head.spec, head.seed)?;
    let of_campaign = |name: &str| {
        let variant = head.variants.iter().find(|one| one.name == name)?;
        recorded(archive.folder(), name, &variant.slug)
    };
    let wanted: Vec<&str> = match wanted_sides {
        [] => {
            let others = names.iter().copied().filter(|name| *name != experiment.baseline);
            let with_logs = |name: &&str| of_campaign(name).is_some_and(|source| !source.logs.is_empty());
            std::iter::once(experiment.baseline.as_str()).chain(others.filter(with_logs).take(1)).collect()
        }
        sides => sides.iter().map(String::as_str).collect(),
    };
    let mut sides = Vec::new();
    for name in wanted {
        match of_campaign(name) {
            Some(source) if source.logs.is_empty() => {
                let reason = source.recording.refused.unwrap_or_else(|| "it left no log".to_owned());
                return Err(Failure::request(format!("the heap of {name} could not be recorded: {reason}")));
            }
            Some(side) => sides.push(side),
            None => {
                let folder = short(archive.folder());
                return Err(Failure::request(format!(
                        "the heap of {name} was not recorded in {folder}; widthwise compare --resume {folder} --heap \
                         records it"
                    )));
            }
        }
    }
    Ok((experiment.program.name.clone(), sides))
}

/// What a campaign has of a variant, if its heap was recorded.
pub fn recorded(campaign: &Path, name: &str, slug: &str) -> Option<Source> {
    let folder = heap::folder(campaign, slug);
    let recording: Recording = serde_json::from_slice(&std::fs::read(folder.join(heap::NOTE)).ok()?).ok()?;
    Some(Source { name: name.to_owned(), logs: logs(&folder), recording })
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(heap::ENDING))
        .collect();
    logs.sort();
    logs
}
