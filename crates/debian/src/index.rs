//! An index of source packages, separate from the system's, refreshed and queried with apt's own programs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::apt_sources;
use crate::error::{system, DebianError};
use crate::lock::Lock;
use crate::names::check_version;
use crate::records::{self, Record};
use crate::tools::{own_words, quiet, run};

/// An index older than this is refreshed before it is queried for the newest version.
const INDEX_LASTS: Duration = Duration::from_secs(24 * 3600);

/// Pauses before each retry of an index whose mirror is being updated.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(15)];

/// Read after the system's own apt configuration, so that proxies and the like stay in force. The system's
/// hooks must not run: they maintain the system's lists, which are not refreshed here.
const APT_CONFIGURATION: &str = r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
APT::Get::List-Cleanup "true";
"#;

/// Lists of source packages, separate from the system's.
pub struct Index {
    folder: PathBuf,
    /// The deb822 text of the queried repositories.
    repositories: String,
    /// The architecture of binary packages; absent for an index of source packages.
    architecture: Option<&'static str>,
    /// A short description of those repositories: `deb.debian.org bookworm, …`.
    described: String,
}

impl Index {
    /// An index of source packages.
    pub fn open(folder: &Path) -> Result<Index, DebianError> {
        Index::of(folder, None)
    }

    /// An index of the binary packages of an architecture.
    pub fn of_binaries(folder: &Path, architecture: &'static str) -> Result<Index, DebianError> {
        Index::of(folder, Some(architecture))
    }

    fn of(folder: &Path, architecture: Option<&'static str>) -> Result<Index, DebianError> {
        let repositories = apt_sources::read_system(Path::new("/etc/apt"), Path::new("/etc/os-release"));
        let signed_by_debian = |one: &apt_sources::Repository| {
            one.options.get("Signed-By").is_some_and(|key| key == apt_sources::KEYRING)
        };
        if repositories.iter().any(signed_by_debian) && !Path::new(apt_sources::KEYRING).exists() {
            return Err(DebianError::MissingKeys);
        }
        // apt requires these folders.
        for part in ["lists/partial", "state", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(|error| system("make the folder", &part, error))?;
        }
        let configuration = folder.join("apt.conf");
        if fs::read_to_string(&configuration).ok().as_deref() != Some(APT_CONFIGURATION) {
            write_whole(&configuration, APT_CONFIGURATION)?;
        }
        Ok(Index {
            folder: folder.to_owned(),
            described: apt_sources::described(&repositories),
            repositories: apt_sources::written(&repositories, architecture),
            architecture,
        })
    }

    pub fn lock(&self, say: &mut dyn FnMut(&str)) -> Result<Lock, DebianError> {
        Lock::take(&self.folder.join("lock"), "the source index is in use", say)
    }

    fn sources(&self) -> PathBuf {
        // apt recognises its two formats by the extension.
        self.folder.join("debian.sources")
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("refreshed")
    }

    pub fn is_fresh(&self) -> bool {
        let same = fs::read_to_string(self.sources()).is_ok_and(|text| text == self.repositories);
        let age = fs::metadata(self.stamp())
            .and_then(|stamp| stamp.modified())
            .map(|when| SystemTime::now().duration_since(when));
        same && matches!(age, Ok(Ok(age)) if age < INDEX_LASTS)
    }

    /// Refreshes the lists and returns the failures of some of them; lists that failed keep their old
    /// content.
    pub fn refresh(&self, say: &mut dyn FnMut(&str)) -> Result<Vec<String>, DebianError> {
        write_whole(&self.sources(), &self.repositories)?;
        let what = self.architecture.unwrap_or("source");
        say(&format!("reading Debian's {what} index: {}", self.described));
        for pause in PAUSES.into_iter().map(Some).chain([None]) {
            let output = run(self.apt("apt-get").arg("update"), "apt-get")?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            let complaints = complaints(&stderr);
            if output.status.success() && complaints.is_empty() {
                write_whole(&self.stamp(), "")?;
                return Ok(Vec::new());
            }
            match pause {
                Some(pause) if will_pass(&stderr) => {
                    say(&format!("a mirror is being updated; retrying in {} s", pause.as_secs()));
                    std::thread::sleep(pause);
                }
                _ => {
                    let complaints =
                        if complaints.is_empty() { vec![own_words(&output)] } else { complaints };
                    for complaint in &complaints {
                        say(&format!("not refreshed: {complaint}"));
                    }
                    return Ok(complaints);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Every version of a source package in the index.
    pub fn records(&self, package: &str) -> Result<Vec<Record>, DebianError> {
        let mut ask = self.apt("apt-cache");
        // apt-cache fails for an unknown package: there is no record then.
        let output = run(ask.args(["showsrc", "--only-source", package]), "apt-cache")?;
        let mut records = records::parse(&String::from_utf8_lossy(&output.stdout));
        records.retain(|record| record.package == package && check_version(&record.version).is_ok());
        Ok(records)
    }

    /// The source packages that build a binary package of that name.
    pub fn builders(&self, binary: &str) -> Vec<String> {
        let output = run(self.apt("apt-cache").args(["showsrc", binary]), "apt-cache");
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let mut names: Vec<String> = records::parse(&String::from_utf8_lossy(&text))
            .into_iter()
            .filter(|record| record.binaries.iter().any(|name| name == binary))
            .map(|record| record.package)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The name of every source package. Used for advice only: a failure leaves the list shorter.
    pub fn names(&self) -> Vec<String> {
        let lists = self.folder.join("lists");
        let mut cat = self.apt("/usr/lib/apt/apt-helper");
        cat.arg("cat-file");
        cat.args(fs::read_dir(lists).into_iter().flatten().filter_map(|entry| {
            let path = entry.ok()?.path();
            path.file_name()?.to_str()?.contains("_source_Sources").then_some(path)
        }));
        let output = run(&mut cat, "apt-helper").map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output)
            .lines()
            .filter_map(|line| Some(line.strip_prefix("Package: ")?.trim().to_owned()))
            .collect()
    }

    /// One of apt's programs, restricted to this index's folders.
    pub fn apt(&self, program: &str) -> Command {
        let mut command = quiet(Command::new(program));
        command.arg("-q").arg("-c").arg(self.folder.join("apt.conf"));
        let mut set = |name: &str, value: OsString| {
            let mut option = OsString::from(name);
            option.push("=");
            option.push(value);
            command.arg("-o").arg(option);
        };
        set("Dir::Etc::sourcelist", self.sources().into());
        set("Dir::Etc::sourceparts", "/dev/null".into());
        set("Dir::State", self.folder.join("state").into());
        set("Dir::State::lists", self.folder.join("lists").into());
        match self.architecture {
            // Packages that are installed here have no say in what another system would have.
            Some(architecture) => {
                set("Dir::State::status", "/dev/null".into());
                set("APT::Architecture", architecture.into());
                set("APT::Architectures", architecture.into());
            }
            None => set("Dir::State::status", "/var/lib/dpkg/status".into()),
        }
        set("Dir::Cache", self.folder.join("cache").into());
        // Kept in memory, so that no two processes write one cache file.
        set("Dir::Cache::pkgcache", "".into());
        set("Dir::Cache::srcpkgcache", "".into());
        // As root, apt fetches as the user _apt, who may not enter a cache in a home directory. Signatures
        // are checked all the same.
        set("APT::Sandbox::User", "root".into());
        // Our own lock is used instead; it reports who waits for what.
        set("Debug::NoLocking", "1".into());
        command
    }
}

/// apt's errors that mean a missing or old index. Its other warnings (such as a key in a deprecated place)
/// concern the system.
fn complaints(stderr: &str) -> Vec<String> {
    let mut all: Vec<String> = stderr
        .lines()
        .filter(|line| {
            line.starts_with("E:") || line.contains("Failed to fetch") || line.contains("GPG error")
        })
        // A summary of the lines before it.
        .filter(|line| !line.contains("Some index files failed to download"))
        .map(|line| line.trim_start_matches(['E', 'W', ':', ' ']).trim_end().to_owned())
        .collect();
    all.dedup();
    all
}

/// Whether a retry may help: the mirror is being updated, or a server is overloaded. apt itself retries a
/// lost connection (Acquire::Retries), but not these.
fn will_pass(stderr: &str) -> bool {
    ["Mirror sync in progress", "Hash Sum mismatch", "unexpected size", " 500 ", " 502 ", " 503 ", " 504 "]
        .iter()
        .any(|sign| stderr.contains(sign))
}

/// Writes a file atomically.
fn write_whole(path: &Path, text: &str) -> Result<(), DebianError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    tempfile::NamedTempFile::new_in(folder)
        .and_then(|file| {
            fs::write(file.path(), text)?;
            file.persist(path).map_err(|error| error.error)
        })
        .map(drop)
        // tempfile's error names its temporary file; the target is the one that matters.
        .map_err(|error| system("write", path, error.kind().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: &str = "\
W: http://x/InRelease: Key is stored in legacy trusted.gpg keyring (/etc/apt/trusted.gpg), see apt-key(8)
E: Failed to fetch http://deb.debian.org/debian-security/dists/bookworm-security/main/source/Sources.xz  File has unexpected size (1 != 2). Mirror sync in progress? [IP: 1.2.3.4 80]
E: Some index files failed to download. They have been ignored, or old ones used instead.
";

    #[test]
    fn only_a_mirror_that_is_being_updated_is_worth_a_retry() {
        assert!(will_pass(SYNC));
        assert!(!will_pass("W: Failed to fetch http://x/InRelease  Temporary failure resolving 'x'"));
        assert!(!will_pass("E: The repository 'http://x bookworm Release' does not have a Release file."));
    }

    #[test]
    fn a_failed_index_is_distinguished_from_a_warning_about_a_key() {
        let all = complaints(SYNC);
        assert_eq!(all.len(), 1);
        assert!(all[0].starts_with("Failed to fetch http://deb.debian.org/debian-security/"), "{all:?}");
        assert_eq!(
            complaints("W: Failed to fetch http://x/InRelease  Temporary failure resolving 'x'\n"),
            ["Failed to fetch http://x/InRelease  Temporary failure resolving 'x'"]
        );
    }
}
