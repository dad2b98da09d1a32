//! Where a program's source is: a file, a folder, or a Debian source package.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::bytes;
use crate::request_error::RequestErrorKind;

/// Where a program's source is, as the user gives it. Written and read as [`bytes`] are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSource {
    /// A C or C++ file, or a folder.
    Path(PathBuf),
    /// `debian:PACKAGE` or `debian:PACKAGE=VERSION`.
    Debian {
        /// The source package's name.
        package: String,
        /// The version asked for; the newest if absent.
        version: Option<String>,
    },
    /// `micro:all` or `micro:getpid,strcpy`: operations of the micro suite, which comes with Widthwise.
    Micro {
        /// Their names, as they were given: `all` is one.
        operations: Vec<String>,
    },
}

/// The languages of a single file, by its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `.c`
    C,
    /// `.cc`, `.cpp`, `.cxx`
    Cxx,
}

impl Language {
    /// The language of a single source file; absent for anything else, which is taken for a folder.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "c" => Some(Language::C),
            "cc" | "cpp" | "cxx" => Some(Language::Cxx),
            _ => None,
        }
    }

    /// The variables that hold its compiler and its options.
    pub fn variables(self) -> (&'static str, &'static str) {
        match self {
            Language::C => ("CC", "CFLAGS"),
            Language::Cxx => ("CXX", "CXXFLAGS"),
        }
    }
}

impl ProgramSource {
    /// Reads a path or a Debian source package.
    ///
    /// A package's name and version become words of a command later on, so they keep to Debian's own alphabets
    /// (Debian Policy 5.6.1 and 5.6.12): neither can then be taken for an option.
    pub fn parse(text: &str) -> Result<ProgramSource, RequestErrorKind> {
        let wrong =
            |reason: &str| RequestErrorKind::BadSource { text: text.to_owned(), reason: reason.to_owned() };
        if let Some(list) = text.strip_prefix("micro:") {
            let operations: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
            if operations.iter().any(String::is_empty) {
                return Err(wrong("operations go there, such as micro:all or micro:getpid,strcpy"));
            }
            return Ok(ProgramSource::Micro { operations });
        }
        let Some(package) = text.strip_prefix("debian:") else {
            return if text.is_empty() {
                Err(wrong("a file, a folder or debian:PACKAGE goes there"))
            } else {
                Ok(ProgramSource::Path(bytes::path(text)))
            };
        };
        let (package, version) = match package.split_once('=') {
            Some((package, version)) => (package, Some(version)),
            None => (package, None),
        };
        let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if package.len() < 2
            || !package.starts_with(alphanumeric)
            || !package.chars().all(|c| alphanumeric(c) || "+-.".contains(c))
        {
            return Err(wrong(
                "a Debian source package's name has two or more of a-z, 0-9, +, - and ., a letter or digit first",
            ));
        }
        if let Some(version) = version {
            if !version.starts_with(|c: char| c.is_ascii_digit())
                || !version.chars().all(|c| c.is_ascii_alphanumeric() || ".+-~:".contains(c))
            {
                return Err(wrong(
                    "a Debian version begins with a digit and has letters, digits, ., +, -, ~ and :",
                ));
            }
        }
        Ok(ProgramSource::Debian { package: package.to_owned(), version: version.map(str::to_owned) })
    }
}

impl fmt::Display for ProgramSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramSource::Path(path) => f.write_str(&bytes::text(path)),
            ProgramSource::Micro { operations } => write!(f, "micro:{}", operations.join(",")),
            ProgramSource::Debian { package, version: None } => write!(f, "debian:{package}"),
            ProgramSource::Debian { package, version: Some(version) } => {
                write!(f, "debian:{package}={version}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian(package: &str, version: Option<&str>) -> ProgramSource {
        ProgramSource::Debian { package: package.to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn packages_and_paths_are_distinguished() {
        assert_eq!(ProgramSource::parse("debian:sqlite3"), Ok(debian("sqlite3", None)));
        assert_eq!(ProgramSource::parse("debian:sqlite3=3.40.1-2"), Ok(debian("sqlite3", Some("3.40.1-2"))));
        assert_eq!(ProgramSource::parse("./lua-5.4"), Ok(ProgramSource::Path("./lua-5.4".into())));
    }

    #[test]
    fn a_package_cannot_smuggle_an_option() {
        for wrong in
            ["debian:", "debian:x", "debian:--force", "debian:a b", "debian:sqlite3=", "debian:sqlite3=-o"]
        {
            assert!(ProgramSource::parse(wrong).is_err(), "{wrong}");
        }
    }
}
