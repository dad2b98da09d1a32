//! Scripts: files that begin with `#!`.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many bytes of a script the kernel reads (include/uapi/linux/binfmts.h, BINPRM_BUF_SIZE).
const BEGINNING: u64 = 256;

/// The interpreter that a script names; none of a file that is no script. As the kernel reads it (fs/binfmt_script.c):
/// only spaces and tabs are no part of the name, a carriage return is.
pub fn interpreter(file: &Path) -> Option<PathBuf> {
    // Opening a named pipe would wait for its writer.
    std::fs::metadata(file).ok().filter(Metadata::is_file)?;
    let mut beginning = Vec::new();
    File::open(file).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|name| !name.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        assert_eq!(interpreter(&script), Some("/bin/sh".into()));
        std::fs::write(&script, "#!\t/bin/sh\r\necho\r\n").unwrap();
        assert_eq!(interpreter(&script), Some("/bin/sh\r".into()), "the kernel starts no /bin/sh");
        std::fs::write(&script, "#! \n").unwrap();
        assert_eq!(interpreter(&script), None);
    }
}
