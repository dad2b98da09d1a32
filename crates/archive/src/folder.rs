//! The folder of a campaign.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::error::ArchiveError;
use crate::metadata::Metadata;
use crate::schema::{CAMPAIGN, STUDY};
use crate::slug::slug;

/// The link that points at the campaign begun last.
const LATEST: &str = "latest";

/// The spec, for people and for `widthwise compare FILE`.
const SPEC: &str = "widthwise.toml";

/// The largest number of campaigns with one name.
const MOST: u32 = 100_000;

/// The name of a campaign's folder: the day of `created` (RFC 3339) and the program's name.
fn folder_name(created: &str, program: &str) -> String {
    let day = created.split(['T', 't', ' ']).next().unwrap_or(created);
    slug(&format!("{day}-{program}"))
}

/// Creates a new folder: `2026-11-21-sqlite3`, or `2026-11-21-sqlite3-2`, `-3` …
pub(crate) fn claim(parent: &Path, created: &str, program: &str) -> Result<PathBuf, ArchiveError> {
    fs::create_dir_all(parent).map_err(|error| ArchiveError::system(parent, parent, error))?;
    let name = folder_name(created, program);
    for number in 1..MOST {
        let folder = parent.join(if number == 1 { name.clone() } else { format!("{name}-{number}") });
        // mkdir(2) fails if the folder exists: two processes never get the same one.
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(ArchiveError::system(parent, &folder, error)),
        }
    }
    Err(ArchiveError::System { path: parent.join(name), source: io::ErrorKind::AlreadyExists.into() })
}

/// Writes the files of a new campaign's folder that are readable without SQLite.
pub(crate) fn write_files(folder: &Path, metadata: &Metadata) -> Result<(), ArchiveError> {
    let make =
        |path: PathBuf| fs::create_dir_all(&path).map_err(|error| ArchiveError::system(folder, &path, error));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| ArchiveError::system(folder, &path, error))
    };
    make(folder.join("output"))?;
    for variant in &metadata.variants {
        make(folder.join("build").join(&variant.slug))?;
    }
    write(SPEC, &metadata.spec)?;
    write("machine.json", &format!("{:#}\n", metadata.machine))
}

/// Gives the folder this spec if it has another: a session ended, or found no room, between a change of the archive and that of
/// this file, or an earlier version wrote it.
pub(crate) fn renew_spec(folder: &Path, spec: &str) -> Result<(), ArchiveError> {
    if fs::read(folder.join(SPEC)).is_ok_and(|found| found == spec.as_bytes()) {
        return Ok(());
    }
    NewSpec::write(folder, spec)?.replace()
}

/// A new spec, complete under a temporary name until it replaces the folder's.
pub(crate) struct NewSpec {
    folder: PathBuf,
    unfinished: PathBuf,
}

impl NewSpec {
    /// Writes it, and leaves the folder's spec as it is.
    pub(crate) fn write(folder: &Path, spec: &str) -> Result<NewSpec, ArchiveError> {
        let new = NewSpec { folder: folder.to_owned(), unfinished: folder.join(format!("{SPEC}.new")) };
        fs::write(&new.unfinished, spec).map_err(|error| new.failed(error))?;
        Ok(new)
    }

    /// Replaces the folder's spec.
    pub(crate) fn replace(self) -> Result<(), ArchiveError> {
        fs::rename(&self.unfinished, self.folder.join(SPEC)).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ArchiveError {
        ArchiveError::system(&self.folder, &self.folder.join(SPEC), error)
    }
}

impl Drop for NewSpec {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Points `latest` at this folder. rename(2) replaces the old link atomically: it is never absent.
pub(crate) fn mark_latest(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Ok(());
    };
    let fresh = parent.join(format!("{LATEST}.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(name, &fresh)?;
    fs::rename(&fresh, parent.join(LATEST)).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

/// As [`resolve`], as an absolute path, because runs have other working directories.
pub(crate) fn resolve_whole(path: &Path) -> PathBuf {
    let folder = resolve(path);
    folder.canonicalize().unwrap_or(folder)
}

/// The folder that a user's path means: a link (`latest`) is followed once, so that a campaign begun meanwhile does not
/// change it; the SQLite file stands for its folder.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    // Without a trailing slash, with which the system would follow the link.
    let path: &Path = &path.components().collect::<PathBuf>();
    if path.file_name().is_some_and(|name| name == CAMPAIGN.file || name == STUDY.file) && path.is_file() {
        return match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
    }
    match (fs::read_link(path), path.parent()) {
        (Ok(target), Some(parent)) => parent.join(target),
        _ => path.to_owned(),
    }
}
