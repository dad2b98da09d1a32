//! The recordings of a campaign: a folder for each, with its files and its metadata, complete or absent.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::output::digest;
use crate::output::earlier::Earlier;
use crate::plan::{Participant, Plan};
use crate::run::result::RunError;
use crate::run::runner::Runner;

/// The metadata of a recording, stored beside its files.
pub const NOTE: &str = "recording.json";

/// The metadata of a recording: each kind of recording has a folder of its own.
pub trait KeptRecording: Serialize + DeserializeOwned {
    /// The folder of these recordings in a campaign.
    const FOLDER: &'static str;

    /// The folder of a variant's recording of that number, counted from 1: the first one's is the variant's folder, the others' are
    /// within it.
    fn folder(campaign: &Path, slug: &str, number: u32) -> PathBuf {
        let first = campaign.join(Self::FOLDER).join(slug);
        match number {
            ..=1 => first,
            _ => first.join(number.to_string()),
        }
    }

    /// The metadata of a recording, if it exists.
    fn recorded(campaign: &Path, slug: &str, number: u32) -> Option<Self> {
        let note = std::fs::read(Self::folder(campaign, slug, number).join(NOTE)).ok()?;
        serde_json::from_slice(&note).ok()
    }
}

/// An empty folder for the files of a run. Its absolute path.
///
/// # Errors
/// It cannot be made.
pub(super) fn empty_scratch<K: KeptRecording>(plan: &Plan) -> Result<PathBuf, RunError> {
    let own = plan.folder.join("scratch").join(K::FOLDER);
    match std::fs::remove_dir_all(&own) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(scratch(&own)(error)),
        _ => std::fs::create_dir_all(&own).map_err(scratch(&own))?,
    }
    std::fs::canonicalize(&own).map_err(scratch(&own))
}

/// A recording that has no metadata yet: its folder is removed if it never gets any.
pub(super) struct Partial {
    folder: PathBuf,
    kept: PathBuf,
}

impl Partial {
    /// Makes the folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin<K: KeptRecording>(
        plan: &Plan,
        participant: &Participant,
        number: u32,
    ) -> Result<Partial, RunError> {
        let kept = K::folder(&plan.folder, &participant.slug, number);
        let folder = kept.with_extension("partial");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(scratch(&folder))?;
        Ok(Partial { folder, kept })
    }

    /// The folder to put the files into.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the metadata, and gives the recording its name.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn keep<K: KeptRecording>(self, recording: &K) -> Result<(), RunError> {
        let note = serde_json::to_vec_pretty(recording).unwrap_or_default();
        std::fs::write(self.folder.join(NOTE), note).map_err(scratch(&self.folder))?;
        let _ = std::fs::remove_dir_all(&self.kept);
        std::fs::rename(&self.folder, &self.kept).map_err(scratch(&self.kept))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The error of a file or folder of ours.
pub(super) fn scratch(path: &Path) -> impl FnOnce(std::io::Error) -> RunError {
    let path = path.to_owned();
    move |error| RunError::Scratch { path, error }
}

/// Whether the program's output in the last run is another one than `before`, the digest of its output in a plain run.
pub(super) fn outputs_differently(
    plan: &Plan,
    participant: &Participant,
    before: Option<&str>,
    runner: &Runner,
) -> bool {
    let directory = &participant.start.directory;
    let read = || {
        digest::Reader::default()
            .digest(&plan.check, &runner.stdout(), directory, &Earlier::default(), None)
            .ok()
    };
    let here = (!plan.check.off).then(read).flatten();
    matches!((here, before), (Some(here), Some(before)) if here != before)
}
