//! Where something was said: a line of the spec file or a flag of the command line.

use std::fmt;
use std::sync::Arc;

/// Where the user said something, so that an error found late can still point at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
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

impl Said {
    /// Whether it was said in a spec file: a relative path said there starts at the spec file's folder.
    pub fn in_spec(&self) -> bool {
        matches!(self, Said::Spec { .. })
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Spec { file, line } => write!(f, "{file}:{line}"),
            Said::Flag(flag) => f.write_str(flag),
        }
    }
}

/// A value and where it was said.
///
/// Two of them are equal when they state the same thing: a spec file that was written out and read again is the same
/// request, although every line has moved.
#[derive(Debug, Clone)]
pub struct Stated<T> {
    /// What was said.
    pub value: T,
    /// Where.
    pub said: Said,
}

impl<T> Stated<T> {
    /// `value`, said there.
    pub fn new(value: T, said: Said) -> Stated<T> {
        Stated { value, said }
    }
}

impl<T: PartialEq> PartialEq for Stated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
