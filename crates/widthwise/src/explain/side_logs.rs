//! Where the logs of a side come from: a campaign, or files that the user names.

use std::path::{Path, PathBuf};
use widthwise_experiment::model::{Experiment, Thp};
use widthwise_experiment::Role;

use widthwise_anatomy::heap::LogFile;
use widthwise_archive::Archive;
use widthwise_measure::passes::heap::{self, Recording};
use widthwise_measure::passes::recordings::KeptRecording;

use super::log_file;
use super::trees::{self, Member};
use crate::failure::Failure;
use crate::output::short;
use crate::{runs_of_their_own, session};

/// One side, not read yet.
pub struct Source {
    /// The variant, or the file.
    pub name: String,
    /// Its recordings, at least one.
    pub recordings: Vec<Recorded>,
    /// The variant's setting of transparent huge pages; of files it is not known.
    pub thp: Option<Thp>,
}

/// One recording of a side, not read yet.
#[derive(Default)]
pub struct Recorded {
    /// Its logs, in the order of their names.
    pub logs: Vec<PathBuf>,
    /// What was noted when they were recorded.
    pub recording: Recording,
}

impl Source {
    /// Whether there is a log of any recording.
    pub fn has_logs(&self) -> bool {
        self.recordings.iter().any(|recorded| !recorded.logs.is_empty())
    }

    /// Why nothing could be recorded.
    pub fn refused(&self) -> Option<&str> {
        self.recordings.iter().find_map(|recorded| recorded.recording.refused.as_deref())
    }
}

/// The variants of a campaign that are asked for.
pub struct Wanted {
    archive: Archive,
    experiment: Experiment,
    /// Their names, the first one's first; none where the user names none.
    pub names: Vec<String>,
}

/// The variants that are asked for by name.
///
/// # Errors
/// There is no such campaign, more than two are named, or a name is no variant's.
pub fn wanted(wanted_sides: &[String], campaign: &Path) -> Result<Wanted, Failure> {
    if wanted_sides.len() > 2 {
        return Err(Failure::request("explain compares two variants, not more"));
    }
    let archive = Archive::read(campaign).map_err(|error| match wanted_sides.iter().find(|side| is_unknown(side, &[])) {
        Some(unknown) => Failure::request(format!(
            "there is no file or folder \"{unknown}\", and no campaign that could have a variant of that name: {error}"
        )),
        None => Failure::request(error),
    })?;
    let metadata = archive.metadata();
    let compared = metadata.variants.iter().filter(|one| one.role != Role::Control);
    let names: Vec<&str> = compared.map(|one| one.name.as_str()).collect();
    if let Some(side) = wanted_sides.iter().find(|side| !names.contains(&side.as_str())) {
        let there = format!("{} has the variants {}", short(archive.folder()), names.join(", "));
        // A name that is neither comes before one that is a file.
        let unknown = wanted_sides.iter().find(|side| is_unknown(side, &names));
        return Err(Failure::request(match unknown {
            Some(unknown) => format!("there is no file or variant \"{unknown}\"; {there}"),
            None => format!(
                "\"{side}\" is a file, and another name is a variant: explain compares two variants, or two recordings; {there}"
            ),
        }));
    }
    let experiment = session::experiment(archive.folder(), &metadata.spec, metadata.seed)?;
    Ok(Wanted { archive, experiment, names: wanted_sides.to_vec() })
}

impl Wanted {
    /// The campaign.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The program's name.
    pub fn program(&self) -> &str {
        &self.experiment.program.name
    }

    /// What the campaign has of a variant's heap, if it was recorded.
    fn recorded(&self, name: &str) -> Option<Source> {
        let variant = self.archive.metadata().variants.iter().find(|one| one.name == name)?;
        let source = recorded(self.archive.folder(), name, &variant.slug)?;
        let thp = self.experiment.variants.iter().find(|one| one.name == name).map(|one| one.thp);
        Some(Source { thp, ..source })
    }

    /// The names; where the user names none, the baseline and the first other variant whose heap was recorded.
    pub fn with_logs(&self) -> Vec<String> {
        if !self.names.is_empty() {
            return self.names.clone();
        }
        let has_logs = |name: &&String| self.recorded(name).is_some_and(|source| source.has_logs());
        std::iter::once(self.experiment.baseline.clone())
            .chain(self.others().find(has_logs).cloned())
            .collect()
    }

    /// All variants but the baseline.
    pub fn others(&self) -> impl Iterator<Item = &String> {
        let names = self.experiment.variants.iter().map(|variant| &variant.name);
        names.filter(|name| **name != self.experiment.baseline)
    }

    /// The recorded heaps of these variants.
    ///
    /// # Errors
    /// One was not recorded, or could not be.
    pub fn sources(&self, names: &[String]) -> Result<Vec<Source>, Failure> {
        let source = |name: &String| match self.recorded(name) {
            Some(source) if !source.has_logs() => {
                let reason = source.refused().unwrap_or("it left no log");
                Err(Failure::request(format!("the heap of {name} could not be recorded: {reason}")))
            }
            Some(source) => Ok(source),
            None => {
                let status =
                    self.archive.load().map_err(Failure::machine)?.statuses.remove(name).unwrap_or_default();
                let folder = self.archive.folder();
                let why =
                    runs_of_their_own::obstacle(&status).map_or(String::new(), |why| format!(" ({why})"));
                Err(Failure::request(format!(
                    "the heap of {name} was not recorded in {}{why}; {} records it",
                    short(folder),
                    runs_of_their_own::needed(folder, "--heap", &status)
                )))
            }
        };
        names.iter().map(source).collect()
    }
}

/// The program's name, and the sides that are asked for: all of them files and folders, or variants of the campaign. Where
/// none is, the baseline and the first other variant that was recorded.
pub fn find(wanted_sides: &[String], campaign: &Path) -> Result<(String, Vec<Source>), Failure> {
    if are_paths(wanted_sides, campaign) {
        return Ok(("logs".to_owned(), of_files(wanted_sides)?));
    }
    let wanted = wanted(wanted_sides, campaign)?;
    let sources = wanted.sources(&wanted.with_logs())?;
    Ok((wanted.program().to_owned(), sources))
}

/// Whether a name is neither one of these variants' nor a file's.
fn is_unknown(name: &str, variants: &[&str]) -> bool {
    !variants.contains(&name) && !Path::new(name).exists()
}

/// Whether the names are those of files and folders. One may have the name of a variant, as finished binaries do: the variant is
/// meant.
pub fn are_paths(names: &[String], campaign: &Path) -> bool {
    let exist = !names.is_empty() && names.iter().all(|name| Path::new(name).exists());
    if !exist {
        return false;
    }
    let variants =
        Archive::read(campaign).map(|archive| archive.metadata().variants.clone()).unwrap_or_default();
    !names.iter().all(|name| variants.iter().any(|variant| variant.name == *name))
}

/// Sides that are files or folders. Logs of one process tree are one recording. A folder is a side, with a recording for each
/// process tree in it; files are of one recording, or of one for each of two sides.
fn of_files(names: &[String]) -> Result<Vec<Source>, Failure> {
    let (folders, files): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| Path::new(name).is_dir());
    let mut sides = Vec::new();
    for folder in folders {
        sides.push(of_folder(folder)?);
    }
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    for logs in trees_of(&paths)? {
        let more = if logs.len() > 1 { format!(" and {} more", logs.len() - 1) } else { String::new() };
        let name = format!("{}{more}", logs[0].display());
        let recordings = vec![Recorded { logs, recording: Recording::default() }];
        sides.push(Source { name, recordings, thp: None });
    }
    if sides.len() > 2 {
        return Err(Failure::request(format!(
            "these files are of {} recordings, and explain compares two: name the logs of one recording, or of two; or put \
             all recordings of a side into a folder of its own, and name the folders",
            sides.len()
        )));
    }
    // In the order in which they were named.
    let position = |side: &Source| {
        let is_of = |name: &String| side.name == *name || side.recordings[0].logs[0] == Path::new(name);
        names.iter().position(is_of)
    };
    sides.sort_by_key(position);
    Ok(sides)
}

/// A side whose recordings are in a folder.
fn of_folder(folder: &str) -> Result<Source, Failure> {
    let failed = |error: std::io::Error| Failure::request(format!("{folder}: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if Archive::read(Path::new(folder)).is_ok() {
        return Err(Failure::request(format!(
            "{folder} is a campaign's folder, and no folder of logs: widthwise explain --heap --campaign {}",
            shell_words::quote(folder)
        )));
    }
    if files.is_empty() {
        return Err(Failure::request(format!(
            "{folder} is a folder without a log: name the folder into which WIDTHWISE_HEAP_LOG put them"
        )));
    }
    let of_trees = trees_of(&files)?;
    let recordings =
        of_trees.into_iter().map(|logs| Recorded { logs, recording: Recording::default() }).collect();
    Ok(Source { name: folder.to_owned(), recordings, thp: None })
}

/// The logs of each process tree.
fn trees_of(files: &[PathBuf]) -> Result<Vec<Vec<PathBuf>>, Failure> {
    let mut logs = Vec::new();
    for file in files {
        logs.push(members(file)?);
    }
    let of_group = |group: &Vec<usize>| group.iter().map(|log| files[*log].clone()).collect();
    Ok(trees::group(&logs).iter().map(of_group).collect())
}

/// The processes of a log; none where the file is another profiler's.
fn members(path: &Path) -> Result<Vec<Member>, Failure> {
    let Some(bytes) = log_file::open(path, &mut |_, _| {})? else { return Ok(Vec::new()) };
    let Ok(log) = LogFile::read(&bytes) else { return Ok(Vec::new()) };
    Ok(log.processes.iter().map(|process| Member::of(&process.header)).collect())
}

/// What a campaign has of a variant, if its heap was recorded.
pub fn recorded(campaign: &Path, name: &str, slug: &str) -> Option<Source> {
    let of_number = |number| {
        let recording = heap::Recording::recorded(campaign, slug, number)?;
        Some(Recorded { logs: logs(&heap::Recording::folder(campaign, slug, number)), recording })
    };
    let recordings: Vec<Recorded> = (1..).map_while(of_number).collect();
    (!recordings.is_empty()).then(|| Source { name: name.to_owned(), recordings, thp: None })
}

/// The logs in a folder of a campaign.
pub fn logs(folder: &Path) -> Vec<PathBuf> {
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
