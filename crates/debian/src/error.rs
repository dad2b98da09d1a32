//! Why a source package is unavailable, and what fixes it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a source package is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    /// The name cannot be a source package's.
    #[error(
        "\"{name}\" cannot be the name of a Debian source package: two or more of a-z 0-9 + - . , the first a letter or a digit"
    )]
    BadName {
        /// As the user gave it.
        name: String,
    },
    /// The version is not a valid Debian version.
    #[error(
        "\"{version}\" cannot be a Debian version: it begins with a digit and has only A-Z a-z 0-9 . + ~ - :"
    )]
    BadVersion {
        /// As the user gave it.
        version: String,
    },
    /// The system has no apt.
    #[error(
        "{tool} is not installed, but fetches debian: sources; \
         unpack the source yourself and name the folder instead"
    )]
    NoApt {
        /// The missing program.
        tool: &'static str,
    },
    /// The tool that unpacks is not installed.
    #[error("dpkg-source is not installed; it unpacks Debian's source packages: apt-get install dpkg-dev")]
    NoDpkgSource,
    /// Debian's own keys are missing.
    #[error(
        "Debian's keys, which authenticate its servers, are missing: apt-get install debian-archive-keyring"
    )]
    MissingKeys,
    /// The index has no such source package.
    #[error("Debian has no source package \"{package}\" here{}", advice(.builders, .near))]
    UnknownPackage {
        /// The requested name.
        package: String,
        /// Source packages that build a binary package of that name.
        builders: Vec<String>,
        /// Source packages with names close to it.
        near: Vec<String>,
    },
    /// The index has the package, but not that version.
    #[error("Debian's source package {package} has no version {version} here; there is {}", .available.join(", "))]
    UnknownVersion {
        /// The package.
        package: String,
        /// The requested version.
        version: String,
        /// The available versions, newest first.
        available: Vec<String>,
    },
    /// The source index could not be read in full, and the readable part does not have the package.
    #[error("no readable source index of Debian has {package}: {reason}")]
    Index {
        /// The requested package.
        package: String,
        /// apt's own message.
        reason: String,
    },
    /// The files of the package could not be fetched.
    #[error(
        "cannot fetch Debian's source package {package} {version}: {reason}; \
         try again later, or unpack it yourself and name the folder instead of debian:{package}"
    )]
    Download {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// apt's own message.
        reason: String,
    },
    /// The files arrived, but could not be unpacked.
    #[error("cannot unpack Debian's source package {package} {version}: {reason}")]
    Unpack {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// dpkg-source's own message.
        reason: String,
    },
    /// No kernel could be fetched.
    #[error("cannot fetch Debian's package {package} ({architecture}): {reason}; try again later, or name a bzImage by its path")]
    Kernel {
        /// The package.
        package: String,
        /// Its architecture.
        architecture: &'static str,
        /// apt's or dpkg's own message.
        reason: String,
    },
    /// A file of the cache is not what was fetched.
    #[error("{path} is not what was fetched: its digest differs; remove its folder, and it is fetched again", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// An operation on a file or program of this machine failed.
    #[error("{path}: cannot {doing}: {error}", path = .path.display())]
    System {
        /// The operation.
        doing: &'static str,
        /// The file or program.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

fn advice(builders: &[String], near: &[String]) -> String {
    match (builders, near) {
        ([], []) => String::new(),
        ([], near) => format!("; did you mean {}?", near.join(", ")),
        (builders, _) => format!("; the binary package of that name is built from {}", builders.join(", ")),
    }
}

pub fn system(doing: &'static str, path: &Path, error: io::Error) -> DebianError {
    DebianError::System { doing, path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_unknown_package_lists_alternatives() {
        let unknown = |builders: &[&str], near: &[&str]| {
            DebianError::UnknownPackage {
                package: "lua".to_owned(),
                builders: builders.iter().map(|name| name.to_string()).collect(),
                near: near.iter().map(|name| name.to_string()).collect(),
            }
            .to_string()
        };
        assert_eq!(unknown(&[], &[]), "Debian has no source package \"lua\" here");
        assert_eq!(
            unknown(&[], &["lua5.3", "lua5.4"]),
            "Debian has no source package \"lua\" here; did you mean lua5.3, lua5.4?"
        );
        assert_eq!(
            unknown(&["lua5.4"], &["lua5.3"]),
            "Debian has no source package \"lua\" here; the binary package of that name is built from lua5.4"
        );
    }
}
