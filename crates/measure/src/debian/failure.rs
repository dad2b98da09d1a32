//! Why a source package is not to be had, and what fixes it.

use std::io;
use std::path::{Path, PathBuf};

/// Why a source package is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum DebianError {
    /// The name cannot be a source package's.
    #[error(
        "\"{name}\" cannot be the name of a Debian source package: two or more of a-z 0-9 + - . , the first a letter or a digit"
    )]
    BadName {
        /// As it was given.
        name: String,
    },
    /// The version cannot be one.
    #[error(
        "\"{version}\" cannot be a Debian version: it begins with a digit and has only A-Z a-z 0-9 . + ~ - :"
    )]
    BadVersion {
        /// As it was given.
        version: String,
    },
    /// The system has no apt.
    #[error(
        "{tool} is not here, and debian: sources are fetched by it; \
         unpack the source yourself and name the folder instead"
    )]
    NoApt {
        /// The program that was looked for.
        tool: &'static str,
    },
    /// The tool that unpacks is not installed.
    #[error("dpkg-source is not installed, and Debian's source packages are unpacked by it: apt-get install dpkg-dev")]
    NoDpkgSource,
    /// Debian's own keys are not here.
    #[error("Debian's keys are not here to check its servers by: apt-get install debian-archive-keyring")]
    MissingKeys,
    /// The index has no such source package.
    #[error("Debian has no source package \"{package}\" here{}", advice(.builders, .near))]
    UnknownPackage {
        /// The name asked for.
        package: String,
        /// Source packages that build a binary package of that name.
        builders: Vec<String>,
        /// Source packages with names close to it.
        near: Vec<String>,
    },
    /// The index has the package, but not in that version.
    #[error("Debian's source package {package} has no version {version} here; there is {}", .available.join(", "))]
    UnknownVersion {
        /// The package.
        package: String,
        /// The version asked for.
        version: String,
        /// The versions there are, newest first.
        available: Vec<String>,
    },
    /// The source index could not be read, and what is left of it does not have the package.
    #[error("no source index of Debian's could be read that has {package}: {reason}")]
    Index {
        /// The package asked for.
        package: String,
        /// apt's own words.
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
        /// apt's own words.
        reason: String,
    },
    /// The files arrived, but could not be unpacked.
    #[error("cannot unpack Debian's source package {package} {version}: {reason}")]
    Unpack {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// dpkg-source's own words.
        reason: String,
    },
    /// A file or a program of this machine.
    #[error("{path}: cannot {doing}: {error}", path = .path.display())]
    System {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's own words.
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
    fn an_unknown_package_is_told_what_there_is() {
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
