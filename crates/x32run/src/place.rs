//! Puts the runtime where it can be started.

use std::ffi::{CString, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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

/// The runtime as a file of this user's cache, or, where programs can be put into none, of the folder for temporary files.
///
/// # Errors
/// Neither can be written, or allows programs.
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
    in_one_of(cache, &std::env::temp_dir(), allows_programs, place_in)
}

/// Places something in a folder of the cache, or, where that cannot be written or does not allow programs, in one of the folder for
/// temporary files. What is placed are programs and libraries, apart from gdb's script.
fn in_one_of(
    cache: Option<PathBuf>,
    temporary: &Path,
    allows_programs: impl Fn(&Path) -> bool,
    place_in: impl Fn(&Path) -> io::Result<PathBuf>,
) -> io::Result<PathBuf> {
    let in_cache = cache.and_then(|cache| place_in(&cache.join("widthwise")).ok());
    if let Some(path) = in_cache.filter(|path| allows_programs(path)) {
        return Ok(path);
    }
    let path = place_in(&own_folder(temporary)?)?;
    if allows_programs(&path) {
        return Ok(path);
    }
    let reason = format!(
        "the file system of {} does not allow programs (noexec); TMPDIR or XDG_CACHE_HOME can name another folder",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// This user's folder in a shared one, the same for every process.
fn own_folder(shared: &Path) -> io::Result<PathBuf> {
    // SAFETY: no arguments, cannot fail.
    let user = unsafe { libc::geteuid() };
    let folder = shared.join(format!("widthwise-{user}"));
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // What somebody else has put there is not to be trusted.
    let found = std::fs::symlink_metadata(&folder)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0 {
        return Ok(folder);
    }
    Ok(tempfile::Builder::new().prefix("widthwise-").tempdir_in(shared)?.keep())
}

/// Whether programs of a file system may be started.
fn allows_programs(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: zeros are a value of it, and the call only fills it in.
    unsafe {
        let mut system: libc::statvfs = std::mem::zeroed();
        libc::statvfs(path.as_ptr(), &mut system) != 0 || system.f_flag & libc::ST_NOEXEC == 0
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_cache_every_process_has_the_same_folder_which_no_other_user_can_write() {
        let temporary = tempfile::tempdir().unwrap();
        let unwritable = || Some(PathBuf::from("/proc/nowhere"));
        let places =
            [(); 2].map(|()| in_one_of(unwritable(), temporary.path(), allows_programs, place_in).unwrap());
        assert_eq!(places[0], places[1]);
        let folder = places[0].parent().unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
        // Not ours.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        let other = in_one_of(None, temporary.path(), allows_programs, place_in).unwrap();
        assert_ne!(other.parent(), Some(folder));
    }

    #[test]
    fn a_file_system_that_starts_no_programs_is_not_used() {
        let (cache, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(allows_programs(cache.path()) && allows_programs(temporary.path()));
        let in_cache = || Some(cache.path().to_owned());
        let is_outside_cache = |path: &Path| !path.starts_with(cache.path());
        let place = in_one_of(in_cache(), temporary.path(), is_outside_cache, place_in).unwrap();
        assert!(place.starts_with(temporary.path()), "{place:?}");
        let error = in_one_of(in_cache(), temporary.path(), |_| false, place_in).unwrap_err();
        assert!(error.to_string().contains("noexec"), "{error}");
    }
}
