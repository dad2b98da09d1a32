//! The source of a program: a file, a folder or a Debian source package, fetched and identified by its
//! content.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use widthwise_debian::DebianError;
use widthwise_experiment::model::{Build, Origin};

/// Folders that do not belong to a program: version control, and our own campaigns.
const NO_PART: [&str; 3] = [".git", ".hg", ".widthwise"];

/// Whether an entry of a folder belongs to a program or an input. `apart` is a folder that does not: it may hold campaigns, which
/// change meanwhile. Both paths are canonical but for the entry's last part.
pub fn is_part(entry: &Path, apart: &Path) -> bool {
    entry != apart && !NO_PART.iter().any(|name| entry.file_name().is_some_and(|own| own == *name))
}

/// The program's source, on disk.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file or folder.
    pub path: PathBuf,
    /// How it is built.
    pub build: Build,
    /// Its version for reports: a Debian version, or nothing.
    pub version: String,
    /// A digest of its content.
    pub digest: String,
}

/// The source is unavailable.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The file or folder does not exist, or cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Debian's archive failed.
    #[error(transparent)]
    Debian(#[from] DebianError),
}

/// Fetches the source; none for finished binaries. `cache` holds fetched packages, and is left out of a
/// source that contains it.
pub fn prepare(
    origin: &Origin,
    cache: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Source>, SourceError> {
    let (path, build, version) = match origin {
        Origin::Source { path, build } => {
            let path =
                resolved(path).map_err(|error| SourceError::Unreadable { path: path.clone(), error })?;
            (path, build, String::new())
        }
        Origin::Debian { package, version, build } => {
            let fetched = widthwise_debian::fetch(package, version.as_deref(), cache, say)?;
            (fetched.folder, build, fetched.version)
        }
        Origin::Binaries { .. } => return Ok(None),
    };
    let digest = digest_without(&path, cache)?;
    Ok(Some(Source { path, build: build.clone(), version, digest }))
}

/// A folder's canonical path. A file keeps its name, even if it is a link: compilers recognise the language
/// by the extension.
fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if path.is_file() => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            Ok(std::fs::canonicalize(parent)?.join(name))
        }
        _ => std::fs::canonicalize(path),
    }
}

/// A digest of a file's content, or of a folder's: every file's path, content and executable bit, and what links out of it lead to.
pub fn digest(path: &Path) -> Result<String, SourceError> {
    digest_without(path, Path::new(""))
}

/// As [`digest`], without the folder `apart`, which may hold campaigns.
pub fn digest_without(path: &Path, apart: &Path) -> Result<String, SourceError> {
    let mut hasher = blake3::Hasher::new();
    // The source itself may be a link.
    let path = &std::fs::canonicalize(path)
        .map_err(|error| SourceError::Unreadable { path: path.to_owned(), error })?;
    Walk { of: path, apart, seen: vec![path.clone()] }.add(&mut hasher, path, path)?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// What a digest covers.
struct Walk<'a> {
    /// The file or folder.
    of: &'a Path,
    /// The folder that does not belong to it.
    apart: &'a Path,
    /// Itself, and what links have led to: each is read once, whatever leads to it.
    seen: Vec<PathBuf>,
}

impl Walk<'_> {
    fn add(&mut self, hasher: &mut blake3::Hasher, root: &Path, path: &Path) -> Result<(), SourceError> {
        let unreadable = |error| SourceError::Unreadable { path: path.to_owned(), error };
        let data = std::fs::symlink_metadata(path).map_err(unreadable)?;
        let relative = path.strip_prefix(root).unwrap_or(path).as_os_str().as_bytes();
        // A length before each part, so that no two trees give the same bytes.
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(relative);
        if data.is_symlink() {
            part(std::fs::read_link(path).map_err(unreadable)?.as_os_str().as_bytes());
            let outside = self.outside(path);
            if !outside.is_empty() {
                part(outside.as_bytes());
            }
        } else if data.is_dir() {
            let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
                .map_err(unreadable)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()
                .map_err(unreadable)?;
            entries.retain(|entry| is_part(entry, self.apart));
            entries.sort();
            for entry in entries {
                self.add(hasher, root, &entry)?;
            }
        } else if data.is_file() {
            part(&[u8::from(data.permissions().mode() & 0o111 != 0)]);
            part(&data.len().to_le_bytes());
            let mut file = std::fs::File::open(path).map_err(unreadable)?;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match file.read(&mut buffer).map_err(unreadable)? {
                    0 => break,
                    n => hasher.update(&buffer[..n]),
                };
            }
        }
        Ok(())
    }

    /// A digest of what a link leads to, if that is not covered already; empty for what has none, as it has no content or may
    /// not be read.
    fn outside(&mut self, link: &Path) -> String {
        let Ok(target) = std::fs::canonicalize(link) else { return String::new() };
        let is_of_the_kernel = ["/proc", "/sys", "/dev"].iter().any(|folder| target.starts_with(folder));
        let is_covered = self.seen.iter().any(|seen| target.starts_with(seen));
        let is_apart = self.apart.is_absolute() && target.starts_with(self.apart);
        // A folder with the whole source in it, such as the root, is no part of the source.
        if is_of_the_kernel || is_covered || is_apart || self.of.starts_with(&target) {
            return String::new();
        }
        self.seen.push(target.clone());
        let mut hasher = blake3::Hasher::new();
        match self.add(&mut hasher, &target, &target) {
            Ok(()) => hasher.finalize().to_hex().to_string(),
            Err(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_identified_by_its_files_names_content_and_modes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        std::fs::write(&file, "int x;").unwrap();
        let first = digest(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(digest(folder.path()).unwrap(), first);
        std::fs::write(&file, "int y;").unwrap();
        let second = digest(folder.path()).unwrap();
        std::fs::rename(&file, folder.path().join("b.c")).unwrap();
        let third = digest(folder.path()).unwrap();
        std::fs::set_permissions(folder.path().join("b.c"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let fourth = digest(folder.path()).unwrap();
        let all = std::collections::BTreeSet::from([first, second, third, fourth]);
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn what_links_lead_to_outside_the_folder_belongs_to_it() {
        let place = tempfile::tempdir().unwrap();
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&other).unwrap();
        for (name, target) in [("kernel.h", "../other/kernel.h"), ("other", "../other"), ("up", "..")] {
            std::os::unix::fs::symlink(target, tree.join(name)).unwrap();
        }
        // Links may lead back, or nowhere.
        std::os::unix::fs::symlink("../tree", other.join("tree")).unwrap();
        std::os::unix::fs::symlink(".", other.join("here")).unwrap();
        let mut all = vec![digest(&tree).unwrap()];
        for (name, text) in
            [("kernel.h", "int x;"), ("kernel.h", "int y;"), ("deep.h", ""), ("deep.h", "int z;")]
        {
            std::fs::write(other.join(name), text).unwrap();
            let now = digest(&tree).unwrap();
            assert!(!all.contains(&now), "{name}: {text}");
            all.push(now);
        }
        std::fs::write(place.path().join("beside"), "").unwrap();
        assert_eq!(digest(&tree).ok().as_ref(), all.last());
    }
}
