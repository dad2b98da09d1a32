//! The unpacked versions of a package in the cache: found, and added by downloading and unpacking.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::error::{system, DebianError};
use crate::index::Index;
use crate::lock::Lock;
use crate::names::check_version;
use crate::records::Record;
use crate::tools::{own_words, quiet, run};
use crate::version;

/// A source package on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The unpacked, patched source tree. Later fetches share it: copy it, do not build in it.
    pub folder: PathBuf,
    /// The exact version, epoch included.
    pub version: String,
}

/// The unpacked versions of one package.
pub struct UnpackedVersions {
    /// `sources/PACKAGE` in the cache.
    pub folder: PathBuf,
}

impl UnpackedVersions {
    /// Where a version is unpacked. A colon would split path lists of many builds (PATH, VPATH); `_` cannot
    /// be part of a version.
    fn place(&self, version: &str) -> PathBuf {
        self.folder.join(version.replace(':', "_"))
    }

    pub fn find(&self, version: &str) -> Option<Fetched> {
        let folder = self.place(version);
        folder.is_dir().then(|| Fetched { folder, version: version.to_owned() })
    }

    pub fn newest(&self) -> Option<Fetched> {
        fs::read_dir(&self.folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.replace('_', ":")))
            .filter(|version| check_version(version).is_ok())
            .max_by(|a, b| version::compare(a, b))
            .and_then(|version| self.find(&version))
    }

    /// Fetches and unpacks in a neighbouring folder, then renames it: a folder that exists is complete.
    pub fn fill(
        &self,
        record: &Record,
        index: &Index,
        say: &mut dyn FnMut(&str),
    ) -> Result<Fetched, DebianError> {
        let Record { package, version, bytes, .. } = record;
        fs::create_dir_all(&self.folder).map_err(|error| system("make the folder", &self.folder, error))?;
        let _lock = Lock::take(&self.folder.join(".lock"), &format!("{package} is being fetched"), say)?;
        if let Some(fetched) = self.find(version) {
            return Ok(fetched);
        }
        self.sweep();
        let work = tempfile::Builder::new()
            .prefix(".unfinished-")
            .tempdir_in(&self.folder)
            .map_err(|error| system("make a folder in", &self.folder, error))?;

        let size = match *bytes {
            0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
            bytes => format!("{:.1} MB", bytes as f64 / 1e6),
        };
        say(&format!("fetching {package} {version} ({size})"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_makes_no_colon_in_a_path_and_its_version_is_found() {
        let home = tempfile::tempdir().unwrap();
        let unpacked = UnpackedVersions { folder: home.path().to_owned() };
        assert_eq!(unpacked.place("1:2.0-1"), home.path().join("1_2.0-1"));
        for name in ["1_2.0-1", "3.0-1", ".unfinished-x", ".lock"] {
            fs::create_dir(home.path().join(name)).unwrap();
        }
        assert_eq!(unpacked.newest().unwrap().version, "1:2.0-1");
    }

    #[test]
    fn leftovers_of_a_killed_fetch_are_removed_and_complete_versions_stay() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".unfinished-abc/unpacked")).unwrap();
        fs::create_dir(home.path().join("3.0-1")).unwrap();
        UnpackedVersions { folder: home.path().to_owned() }.sweep();
        assert!(!home.path().join(".unfinished-abc").exists());
        assert!(home.path().join("3.0-1").exists());
    }
}
