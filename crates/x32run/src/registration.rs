//! Lets the kernel start every x32 file through the runtime: binfmt_misc, `Documentation/admin-guide/binfmt-misc.rst`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The name under which the kernel knows it.
const NAME: &str = "widthwise-x32";

/// ELF, class 32, little-endian, version 1; ET_EXEC or ET_DYN (the mask leaves the lowest bit of neither); x86-64.
const MAGIC: &str = r"\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00";
const MASK: &str = r"\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff";

/// What stands in the way.
#[derive(Debug)]
pub struct RegistrationError {
    what: String,
    error: Option<io::Error>,
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RegistrationError {}

fn folder() -> PathBuf {
    PathBuf::from("/proc/sys/fs/binfmt_misc")
}

fn mounted() -> Result<PathBuf, RegistrationError> {
    let folder = folder();
    if folder.join("register").exists() {
        return Ok(folder);
    }
    Err(RegistrationError {
        what: "the kernel's binfmt_misc is not mounted here; as root: modprobe binfmt_misc; mount -t binfmt_misc none \
               /proc/sys/fs/binfmt_misc"
            .into(),
        error: None,
    })
}

fn reported(path: &Path, text: &str) -> Result<(), RegistrationError> {
    std::fs::write(path, text).map_err(|error| RegistrationError {
        what: match error.kind() {
            io::ErrorKind::PermissionDenied => format!("{} can be written by root alone", path.display()),
            _ => format!("{} did not take it", path.display()),
        },
        error: Some(error),
    })
}

/// Whether x32 files are started through a runtime that was registered.
pub fn registered() -> bool {
    folder().join(NAME).exists()
}

/// Registers `runtime` for every x32 file. With the flag F the kernel opens the file now and keeps it, so that it
/// works in containers and chroots too, and after the file is gone; with P the program's own first word is kept.
///
/// # Errors
/// binfmt_misc is not mounted, or this user may not.
pub fn register(runtime: &Path) -> Result<(), RegistrationError> {
    let folder = mounted()?;
    if registered() {
        reported(&folder.join(NAME), "-1")?;
    }
    let Some(runtime) = runtime.to_str().filter(|path| !path.contains(':') && path.len() < 128) else {
        return Err(RegistrationError {
            what: format!(
                "{}: the kernel takes no path with a colon, or of 128 bytes or more",
                runtime.display()
            ),
            error: None,
        });
    };
    reported(&folder.join("register"), &format!(":{NAME}:M:0:{MAGIC}:{MASK}:{runtime}:FP"))
}

/// Takes the registration back. Whether there was one.
///
/// # Errors
/// binfmt_misc is not mounted, or this user may not.
pub fn unregister() -> Result<bool, RegistrationError> {
    let folder = mounted()?;
    if !registered() {
        return Ok(false);
    }
    reported(&folder.join(NAME), "-1").map(|()| true)
}
