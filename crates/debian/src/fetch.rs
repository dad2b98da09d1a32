//! Fetches a source package: chooses the version, refreshes the index where needed, and unpacks.

use std::path::Path;

use crate::error::DebianError;
use crate::index::Index;
use crate::names::{check_name, check_version};
use crate::records::{self, Record};
use crate::tools::{first_of, needs};
use crate::unpacked::{Fetched, UnpackedVersions};

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
    let unpacked = UnpackedVersions { folder: home.join("sources").join(package) };
    if let Some(fetched) = version.and_then(|version| unpacked.find(version)) {
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
        if let Some(fetched) = chosen.and_then(|record| unpacked.find(&record.version)) {
            return Ok(fetched);
        }
        let failure = match chosen {
            Some(record) => {
                lock.share()?;
                match unpacked.fill(record, &index, say) {
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
                if let Some(fetched) = unpacked.newest() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn silent() -> impl FnMut(&str) {
        |_: &str| {}
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
}
