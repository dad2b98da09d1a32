//! Puts the runtime where it can be started.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::{BYTES, GDB_SCRIPT};

/// The runtime, if a file is an x32 program that this kernel does not start by itself.
///
/// # Errors
/// It is needed, and can be written nowhere.
pub fn runtime_for(file: &Path) -> io::Result<Option<PathBuf>> {
    static PLACED: OnceLock<PathBuf> = OnceLock::new();
    if crate::kernel_has_x32() || !is_x32(file) {
        return Ok(None);
    }
    placed(&PLACED, place)
}

/// The path, which is made by the first call.
pub(crate) fn placed(
    path: &OnceLock<PathBuf>,
    place: impl FnOnce() -> io::Result<PathBuf>,
) -> io::Result<Option<PathBuf>> {
    if let Some(path) = path.get() {
        return Ok(Some(path.clone()));
    }
    let made = place()?;
    Ok(Some(path.get_or_init(|| made).clone()))
}

/// The words that start a program through the runtime: `arguments` are the program's own, its name the first. `account` is
/// the file in which the runtime counts what it costs itself, if it is to.
pub fn command_line(file: &Path, arguments: &[OsString], account: Option<&Path>) -> Vec<OsString> {
    let name = arguments.first().cloned().unwrap_or_default();
    let mut words: Vec<OsString> = vec!["x32run".into()];
    if let Some(account) = account {
        words.extend(["--account".into(), account.into()]);
    }
    words.extend(["--argv0".into(), name, "--".into(), file.into()]);
    words.extend(arguments.iter().skip(1).cloned());
    words
}

/// Whether a file is ELF of class 32 for x86-64 (System V ABI, AMD64 supplement, "ILP32").
pub fn is_x32(file: &Path) -> bool {
    let mut head = [0; 20];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF\x01\x01") && head[18..] == [62, 0]
}

/// The runtime as a file of this user's cache, or, where there is none to write to, of the folder for temporary files.
///
/// # Errors
/// Neither can be written.
pub fn place() -> io::Result<PathBuf> {
    somewhere(place_in)
}

/// What tells gdb of x32 programs, `gdb -x`, as a file in one of the same places.
///
/// # Errors
/// Neither can be written.
pub fn place_gdb_script() -> io::Result<PathBuf> {
    let name = concat!("x32run-", env!("CARGO_PKG_VERSION"), ".gdb.py");
    somewhere(|folder| put(folder, name, GDB_SCRIPT.as_bytes(), 0o644))
}

/// A folder of this user's for what can be made again.
///
/// # Errors
/// None can be made.
pub fn cache_folder() -> io::Result<PathBuf> {
    somewhere(|folder| std::fs::create_dir_all(folder).map(|()| folder.to_owned()))
}

pub(crate) fn somewhere(place_in: impl Fn(&Path) -> io::Result<PathBuf>) -> io::Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    if let Some(path) = cache.and_then(|cache| place_in(&cache.join("widthwise")).ok()) {
        return Ok(path);
    }
    // A name that no other process can have taken before: what lies in a shared folder is not to be trusted.
    let folder = tempfile::Builder::new().prefix("widthwise-").tempdir()?.keep();
    place_in(&folder)
}

/// The runtime as a file of that folder, which is made. A file that is already the same is left alone.
///
/// # Errors
/// The folder cannot be made or written.
pub fn place_in(folder: &Path) -> io::Result<PathBuf> {
    put(folder, concat!("x32run-", env!("CARGO_PKG_VERSION")), BYTES, 0o755)
}

pub(crate) fn put(folder: &Path, name: &str, content: &[u8], mode: u32) -> io::Result<PathBuf> {
    let path = folder.join(name);
    if std::fs::read(&path).is_ok_and(|bytes| bytes == content) {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)?;
    // Under another name first: no process starts half of it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    // Closed before it has its name: a file that is open for writing cannot be started (ETXTBSY).
    let file = file.into_temp_path();
    until_nobody_writes(&file);
    file.persist(&path)?;
    Ok(path)
}

/// Waits until a file is open for writing nowhere, a second at most.
///
/// What this process had open while another of its threads started a program is open in that one as well, from its fork
/// to its exec. A read lease is granted as soon as no writer is left (fcntl(2), `F_SETLEASE`); a file system without
/// leases is not waited for.
fn until_nobody_writes(file: &Path) {
    let Ok(file) = std::fs::File::open(file) else { return };
    for _ in 0..1000 {
        // SAFETY: a descriptor that is open for as long; the lease ends with it.
        let granted = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) } == 0;
        if granted || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
