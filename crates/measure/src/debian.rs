//! Debian source packages, fetched and unpacked without touching the system's apt configuration.
//!
//! apt-get(8) fetches, and checks every signature and digest. Its lists, state and cache are under the
//! caller's cache folder: the system's own are neither read nor written, so that the right to write that
//! folder suffices. dpkg-source(1) unpacks and applies Debian's patches (source format 3.0; format 1.0 leaves
//! that to each package's build).
//!
//! ```text
//! CACHE/debian/index/      debian.sources, lists/, state/, cache/, lock; `refreshed` is as old as the index
//! CACHE/debian/sources/    PACKAGE/VERSION/: complete if it exists, since it arrives by rename(2)
//! ```

mod failure;
mod index;
mod lock;
mod program;
mod records;
mod sources;

pub use failure::DebianError;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use failure::system;
use index::Index;
use lock::Lock;
use program::{first_of, needs, own_words, quiet, run};
use records::Record;

/// A source package on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The unpacked, patched source tree. Later fetches share it: copy it, do not build in it.
    pub folder: PathBuf,
    /// The exact version, epoch included.
    pub version: String,
}

/// Fetches and unpacks a source package once: a version already unpacked under `cache` is returned without
/// network access. Without a `version`, takes the newest of an index at most a day old. `say` receives a
/// message for each step that takes time. Several processes may call this with one `cache` at the same time.
pub fn fetch(
    package: &str,
    version: Option<&str>,
    cache: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Fetched, DebianError> {
    check_name(package)?;
    version.map_or(Ok(()), check_version)?;
    let home = std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned()).join("debian");
    let shelf = Shelf { folder: home.join("sources").join(package) };
    if let Some(fetched) = version.and_then(|version| shelf.find(version)) {
        return Ok(fetched);
    }
    needs("apt-get")?;
    needs("dpkg-source")?;

    let index = Index::open(&home.join("index"))?;
    let mut lock = index.lock(say)?;
    let mut refreshed = !index.is_fresh();
    let mut complaints = if refreshed { index.refresh(say)? } else { Vec::new() };
    loop {
        let records = index.records(package)?;
        let chosen = records::choose(&records, version);
        if let Some(fetched) = chosen.and_then(|record| shelf.find(&record.version)) {
            return Ok(fetched);
        }
        let failure = match chosen {
            Some(record) => {
                lock.share()?;
                match shelf.fill(record, &index, say) {
                    Ok(fetched) => return Ok(fetched),
                    Err(error @ DebianError::Download { .. }) => Some(error),
                    Err(error) => return Err(error),
                }
            }
            None => None,
        };
        if refreshed {
            // Without a network, a version that is here is better than none. A requested version was looked
            // up above.
            if version.is_none() && !complaints.is_empty() {
                if let Some(fetched) = shelf.newest() {
                    say(&format!(
                        "no newer index is available: using {package} {} as fetched before",
                        fetched.version
                    ));
                    return Ok(fetched);
                }
            }
            return Err(failure.unwrap_or_else(|| absent(package, version, &records, &index, &complaints)));
        }
        // The index may be outdated: Debian removes a version when a newer one arrives.
        lock.own(say)?;
        complaints = index.refresh(say)?;
        refreshed = true;
    }
}

/// Debian Policy, section 5.6.1: valid names of source packages. No other name reaches a command line.
fn check_name(name: &str) -> Result<(), DebianError> {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    let good = bytes.len() >= 2
        && bytes.len() <= 128
        && allowed(bytes[0])
        && bytes.iter().all(|&c| allowed(c) || matches!(c, b'+' | b'-' | b'.'));
    good.then_some(()).ok_or_else(|| DebianError::BadName { name: name.to_owned() })
}

/// Debian Policy, section 5.6.12.
fn check_version(version: &str) -> Result<(), DebianError> {
    let good = version.len() <= 128
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.bytes().all(|c| c.is_ascii_alphanumeric() || b".+~-:".contains(&c));
    good.then_some(()).ok_or_else(|| DebianError::BadVersion { version: version.to_owned() })
}

/// The error for a package or a version that the index does not have.
fn absent(
    package: &str,
    version: Option<&str>,
    records: &[Record],
    index: &Index,
    complaints: &[String],
) -> DebianError {
    let package = package.to_owned();
    if !complaints.is_empty() && (records.is_empty() || version.is_none()) {
        return DebianError::Index { package, reason: first_of(complaints) };
    }
    match version {
        Some(version) if !records.is_empty() => DebianError::UnknownVersion {
            package,
            version: version.to_owned(),
            available: records::versions(records),
        },
        _ => {
            let builders = index.builders(&package);
            let near =
                if builders.is_empty() { records::nearest(&package, index.names()) } else { Vec::new() };
            DebianError::UnknownPackage { package, builders, near }
        }
    }
}

/// The unpacked versions of one package.
struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    /// Where a version is unpacked. A colon would split path lists of many builds (PATH, VPATH); `_` cannot
    /// be part of a version.
    fn place(&self, version: &str) -> PathBuf {
        self.folder.join(version.replace(':', "_"))
    }

    fn find(&self, version: &str) -> Option<Fetched> {
        let folder = self.place(version);
        folder.is_dir().then(|| Fetched { folder, version: version.to_owned() })
    }

    fn newest(&self) -> Option<Fetched> {
        fs::read_dir(&self.folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.replace('_', ":")))
            .filter(|version| check_version(version).is_ok())
            .max_by(|a, b| records::compare(a, b))
            .and_then(|version| self.find(&version))
    }

    /// Fetches and unpacks in a neighbouring folder, then renames it: a folder that exists is complete.
    fn fill(
        &self,
        record: &Record,
        index: &Index,
        say: &mut dyn FnMut(&str),
    ) -> Result<Fetched, DebianError> {
        let Record { package, version, bytes, .. } = record;
        create_folder(&self.folder)?;
        let _lock = Lock::take(&self.folder.join(".lock"), &format!("{package} is being fetched"), say)?;
        if let Some(fetched) = self.find(version) {
            return Ok(fetched);
        }
        self.sweep();
        let work = tempfile::Builder::new()
            .prefix(".unfinished-")
            .tempdir_in(&self.folder)
            .map_err(|error| system("make a folder in", &self.folder, error))?;

        say(&format!("fetching {package} {version} ({:.1} MB)", *bytes as f64 / 1e6));
        let download = ["source", "--only-source", "--download-only", &format!("{package}={version}")];
        let output = run(index.apt("apt-get").args(download).current_dir(work.path()), "apt-get")?;
        let description = fs::read_dir(work.path())
            .map_err(|error| system("read", work.path(), error))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "dsc"));
        let (true, Some(description)) = (output.status.success(), description) else {
            let reason = own_words(&output);
            return Err(DebianError::Download { package: package.clone(), version: version.clone(), reason });
        };

        say(&format!("unpacking {package} {version}"));
        // apt has checked every file against the signed index. --no-check skips the uploader's signature,
        // whose key is in a package (debian-keyring) that few have.
        let mut unpack = quiet(Command::new("dpkg-source"));
        unpack.args(["--no-check", "--no-copy", "-x"]).arg(&description).arg("unpacked");
        let output = run(unpack.current_dir(work.path()), "dpkg-source")?;
        if !output.status.success() {
            let reason = own_words(&output);
            return Err(DebianError::Unpack { package: package.clone(), version: version.clone(), reason });
        }
        let folder = self.place(version);
        fs::rename(work.path().join("unpacked"), &folder)
            .map_err(|error| system("put the unpacked source into", &folder, error))?;
        Ok(Fetched { folder, version: version.clone() })
    }

    /// Removes what a killed fetch has left. The caller holds the lock, so that no other process uses it.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with(".unfinished-") {
                // A failure only wastes space.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn create_folder(folder: &Path) -> Result<(), DebianError> {
    fs::create_dir_all(folder).map_err(|error| system("make the folder", folder, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent() -> impl FnMut(&str) {
        |_: &str| {}
    }

    #[test]
    fn only_valid_debian_names_reach_a_command_line() {
        for good in ["sqlite3", "lua5.4", "g++-12", "0ad", "libsigc++-2.0", "at"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(200);
        for bad in [
            "",
            "a",
            "-oDir=x",
            "../x",
            "a b",
            "Sqlite3",
            "sqlite3=1",
            "a/b",
            "ä1",
            "x;y",
            "a\nb",
            ".a",
            &long,
        ] {
            assert!(matches!(check_name(bad), Err(DebianError::BadName { .. })), "{bad:?}");
        }
    }

    #[test]
    fn only_valid_debian_versions_reach_a_command_line() {
        for good in ["1", "3.40.1-2+deb12u2", "1:1.0~rc1-1", "0.99~b6+dsx-10"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["", "v1", "-1", "1/../..", "1 2", "1\n", "1_2", "1;2"] {
            assert!(matches!(check_version(bad), Err(DebianError::BadVersion { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_version_already_unpacked_needs_no_index() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("debian/sources/bc/1.07.1-3");
        fs::create_dir_all(&folder).unwrap();
        let fetched = fetch("bc", Some("1.07.1-3"), cache.path(), &mut silent()).unwrap();
        assert_eq!(fetched, Fetched { folder, version: "1.07.1-3".to_owned() });
        assert!(!cache.path().join("debian/index").exists());
    }

    #[test]
    fn an_epoch_makes_no_colon_in_a_path_and_its_version_is_found() {
        let home = tempfile::tempdir().unwrap();
        let shelf = Shelf { folder: home.path().to_owned() };
        assert_eq!(shelf.place("1:2.0-1"), home.path().join("1_2.0-1"));
        for name in ["1_2.0-1", "3.0-1", ".unfinished-x", ".lock"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        assert_eq!(shelf.newest().unwrap().version, "1:2.0-1");
    }

    #[test]
    fn leftovers_of_a_killed_fetch_are_removed_and_complete_versions_stay() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".unfinished-abc/unpacked")).unwrap();
        fs::create_dir(home.path().join("3.0-1")).unwrap();
        Shelf { folder: home.path().to_owned() }.sweep();
        assert!(!home.path().join(".unfinished-abc").exists());
        assert!(home.path().join("3.0-1").exists());
    }
}
