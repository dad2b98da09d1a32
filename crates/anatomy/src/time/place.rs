//! Where a function is in the source.

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the file.
    pub file: String,
    /// The line where the function begins, where debug information says so.
    pub line: Option<u64>,
}

impl Place {
    /// The name of the file without its folder.
    pub(super) fn file_name(&self) -> &str {
        file_name(&self.file)
    }
}

/// The name of a file without its folder.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
