//! Source locations: a line of the spec file or a flag of the command line.

use std::fmt;
use std::sync::Arc;

/// The source location of a value, for later error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// In a spec file.
    Spec {
        /// The file, as the user named it.
        file: Arc<str>,
        /// The line, from 1.
        line: usize,
    },
    /// On the command line, by this flag (`--axis`).
    Flag(&'static str),
    /// On the command line, in this line of a spec file, from 1, that `--set` gives.
    Set {
        /// The line, from 1: the number of the flag.
        line: usize,
    },
}

impl SourceLocation {
    /// Whether this is in a spec file: relative paths there start at the spec file's folder.
    pub fn in_spec(&self) -> bool {
        matches!(self, SourceLocation::Spec { .. })
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::Spec { file, line } => write!(f, "{file}:{line}"),
            SourceLocation::Flag(flag) => f.write_str(flag),
            SourceLocation::Set { line } => write!(f, "--set:{line}"),
        }
    }
}

/// A value and its source location.
///
/// Equality ignores the location: a spec file that is written and read back is the same request, although lines have
/// moved.
#[derive(Debug, Clone)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its location.
    pub location: SourceLocation,
}

impl<T> Located<T> {
    /// `value` with this location.
    pub fn new(value: T, location: SourceLocation) -> Located<T> {
        Located { value, location }
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
