//! Scripts that a test writes and starts.

use std::path::Path;
use std::process::Command;

/// Writes an executable script, by a separate process.
///
/// A file that this process has open for writing is also open in a program that another test starts at that moment,
/// until its exec. It cannot be started meanwhile (ETXTBSY).
pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut written = path.as_os_str().to_owned();
    written.push(".text");
    std::fs::write(&written, text).unwrap();
    let status = Command::new("install").args(["-m", "755"]).arg(&written).arg(path).status().unwrap();
    assert!(status.success(), "{} was not written", path.display());
    std::fs::remove_file(&written).unwrap();
}
