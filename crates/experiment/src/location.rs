//! Where something was said: a line of the spec file or a flag of the command line.

use std::fmt;
use std::sync::Arc;

/// Where the user said something, so that an error found late can still point at it.
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
}

impl SourceLocation {
    /// Whether it was said in a spec file: a relative path said there starts at the spec file's folder.
    pub fn in_spec(&self) -> bool {
        matches!(self, SourceLocation::Spec { .. })
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::Spec { file, line } => write!(f, "{file}:{line}"),
            SourceLocation::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value and where it was said.
///
/// Two of them are equal when they state the same thing: a spec file that was written out and read again is the same
/// request, although every line has moved.
#[derive(Debug, Clone)]
pub struct Located<T> {
    /// What was said.
    pub value: T,
    /// Where.
    pub location: SourceLocation,
}

impl<T> Located<T> {
    /// `value`, said there.
    pub fn new(value: T, location: SourceLocation) -> Located<T> {
        Located { value, location }
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
