//! The outputs of a comparison: each variant's against the baseline's, and against its own first one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::outcome::Ending;

use crate::executor::RunFiles;
use crate::output::{diff, digest};
use crate::plan::Participant;
use crate::run::result::RunResult;
use widthwise_machine::process_group;

/// The outputs of a campaign. The first output of the baseline is the reference.
pub(crate) struct Outputs<'a> {
    folder: &'a Path,
    check: &'a OutputCheck,
    reader: digest::Reader,
    /// Each participant's first output in this session, as a digest.
    first: BTreeMap<String, String>,
    /// A later output that differs from the first.
    unsteady: BTreeMap<String, String>,
    /// Participants whose difference was reported.
    reported: Vec<String>,
    /// Why an output could not be read.
    unreadable: BTreeMap<String, String>,
}

/// An output that differs.
pub(crate) struct Mismatch<'a> {
    pub participant: &'a Participant,
    pub reason: String,
    pub difference: String,
}

impl<'a> Outputs<'a> {
    pub fn new(folder: &'a Path, check: &'a OutputCheck) -> Outputs<'a> {
        Outputs {
            folder,
            check,
            reader: digest::Reader::default(),
            first: BTreeMap::new(),
            unsteady: BTreeMap::new(),
            reported: Vec::new(),
            unreadable: BTreeMap::new(),
        }
    }

    /// The digest of the output of a run that has just ended.
    pub fn take(
        &mut self,
        participant: &Participant,
        result: &RunResult,
        files: &RunFiles,
    ) -> Option<String> {
        if result.ending != Ending::Done || self.check.off {
            return None;
        }
        let name = &participant.name;
        let kept = digest::kept(self.folder, &participant.slug);
        let keep = (!self.first.contains_key(name)).then_some(kept.as_path());
        let directory = &participant.start.directory;
        match self.reader.digest(self.check, &files.stdout, directory, &files.earlier, keep) {
            Ok(digest) => {
                let first = self.first.entry(name.clone()).or_insert_with(|| digest.clone());
                if *first != digest && !self.unsteady.contains_key(name) {
                    // Kept beside the first, for the diff.
                    let other = later_output(&kept);
                    let _ = self.reader.digest(
                        self.check,
                        &files.stdout,
                        directory,
                        &files.earlier,
                        Some(&other),
                    );
                    self.unsteady.insert(name.clone(), digest.clone());
                }
                Some(digest)
            }
            // The user has ended the filter: nothing is known of this output.
            Err(_) if process_group::were_ended_early() => None,
            Err(reason) => {
                self.unreadable.entry(name.clone()).or_insert(reason);
                None
            }
        }
    }

    /// The outputs that differ, each reported once.
    pub fn compare<'p>(&mut self, participants: &'p [Participant]) -> Vec<Mismatch<'p>> {
        let Some(baseline) = participants.first() else { return Vec::new() };
        let reference = digest::kept(self.folder, &baseline.slug);
        let mut mismatches = Vec::new();
        for participant in participants {
            let name = &participant.name;
            if self.reported.contains(name) {
                continue;
            }
            let kept = digest::kept(self.folder, &participant.slug);
            let shown = |a: &Path, b: &Path, names| diff::difference(a, b, names).unwrap_or_default();
            let (reason, difference) = if let Some(reason) = self.unreadable.get(name) {
                (reason.clone(), String::new())
            } else if self.unsteady.contains_key(name) {
                let other = later_output(&kept);
                (
                    "its output changes from run to run; `--filter` leaves out what may change, `--check off` compares \
                     nothing"
                        .to_owned(),
                    shown(&kept, &other, (&format!("{name}, first"), &format!("{name}, later"))),
                )
            } else if self.first.get(name).is_some_and(|own| self.first.get(&baseline.name) != Some(own)) {
                (
                    "its output differs from the baseline's".to_owned(),
                    shown(&reference, &kept, (&baseline.name, name)),
                )
            } else {
                continue;
            };
            self.reported.push(name.clone());
            mismatches.push(Mismatch { participant, reason, difference });
        }
        mismatches
    }
}

fn later_output(kept: &Path) -> PathBuf {
    let mut name = kept.as_os_str().to_owned();
    name.push(".later");
    name.into()
}
