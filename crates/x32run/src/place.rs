//! Puts the runtime where it can be started.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::BYTES;

/// The runtime as a file of this user's cache, or, where there is none to write to, of the folder for temporary files.
///
/// # Errors
/// Neither can be written.
pub fn place() -> io::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    if let Some(path) = cache.and_then(|cache| place_in(&cache.join("widthwise")).ok()) {
        return Ok(path);
    }
    // A name that nobody can have taken before us: what lies in a shared folder is not to be trusted.
    let folder = tempfile::Builder::new().prefix("widthwise-").tempdir()?.keep();
    place_in(&folder)
}

/// The runtime as a file of that folder, which is made. A file that is already the same is left alone.
///
/// # Errors
/// The folder cannot be made or written.
pub fn place_in(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("x32run-{}", env!("CARGO_PKG_VERSION")));
    if std::fs::read(&path).is_ok_and(|bytes| bytes == BYTES) {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    // Under another name first: nobody starts half of it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(BYTES)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o755))?;
    file.persist(&path)?;
    Ok(path)
}
