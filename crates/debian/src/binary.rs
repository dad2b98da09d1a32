//! Debian's kernels: the file of a kernel, out of its package. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{system, DebianError};
use crate::index::Index;
use crate::lock::Lock;
use crate::names::check_name;
use crate::tools::{first_of, needs, own_words, quiet, run};

/// The kernel's file in its folder, and the file with its digest.
const FILE: &str = "vmlinuz";
const DIGEST: &str = "vmlinuz.blake3";

/// A kernel on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedKernel {
    /// The bzImage.
    pub file: PathBuf,
    /// The package that it is from: `linux-image-6.1.0-50-686-pae`.
    pub package: String,
}

/// Fetches the kernel on which the package `meta` depends, once: a kernel that is already in `cache` is returned without
/// network access, so that a campaign keeps its kernel. Its digest is checked each time. `say` receives a message for each
/// step that takes time.
///
/// # Errors
/// There is no apt, no network and no kernel in the cache, or the file in the cache was changed.
pub fn fetch_kernel(
    meta: &str,
    architecture: &'static str,
    cache: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<FetchedKernel, DebianError> {
    check_name(meta)?;
    let home = std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned());
    let folder = home.join("kernels").join(format!("{meta}-{architecture}"));
    fs::create_dir_all(&folder).map_err(|error| system("make the folder", &folder, error))?;
    let _lock = Lock::take(&folder.join(".lock"), &format!("{meta} is being fetched"), say)?;
    if let Some(kernel) = find(&folder)? {
        return Ok(kernel);
    }
    needs("apt-get")?;
    let index = Index::of_binaries(&home.join("debian").join(architecture), architecture)?;
    let _index = index.lock(say)?;
    let complaints = index.refresh(say)?;
    let failed = |package: &str, reason: String| DebianError::Kernel {
        package: package.to_owned(),
        architecture,
        reason,
    };
    let depends = run(index.apt("apt-cache").args(["depends", meta]), "apt-cache")?;
    let package = newest(&String::from_utf8_lossy(&depends.stdout)).ok_or_else(|| {
        let reason = if complaints.is_empty() { own_words(&depends) } else { first_of(&complaints) };
        failed(meta, reason)
    })?;
    let work = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(&folder)
        .map_err(|error| system("make a folder in", &folder, error))?;
    say(&format!("fetching {package}"));
    let output = run(index.apt("apt-get").args(["download", &package]).current_dir(work.path()), "apt-get")?;
    let archive = files(work.path()).into_iter().find(|path| path.extension().is_some_and(|e| e == "deb"));
    let Some(archive) = archive.filter(|_| output.status.success()) else {
        return Err(failed(&package, own_words(&output)));
    };
    let file = unpack(&archive, work.path(), &package).map_err(|reason| failed(&package, reason))?;
    let place = folder.join(&package);
    let made = work.path().join("made");
    let keep = || -> std::io::Result<()> {
        fs::create_dir(&made)?;
        fs::rename(&file, made.join(FILE))?;
        fs::write(made.join(DIGEST), format!("{}\n", digest(&made.join(FILE))?))?;
        fs::rename(&made, &place)
    };
    keep().map_err(|error| system("put the kernel into", &place, error))?;
    Ok(FetchedKernel { file: place.join(FILE), package })
}

/// The kernel in a folder of the cache.
fn find(folder: &Path) -> Result<Option<FetchedKernel>, DebianError> {
    let Some(place) = files(folder).into_iter().find(|path| path.join(DIGEST).is_file()) else {
        return Ok(None);
    };
    let file = place.join(FILE);
    let kept = fs::read_to_string(place.join(DIGEST)).unwrap_or_default();
    match digest(&file) {
        Ok(own) if own == kept.trim() => {
            let package = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Some(FetchedKernel { file, package }))
        }
        _ => Err(DebianError::Damaged { path: file }),
    }
}

fn digest(path: &Path) -> std::io::Result<String> {
    Ok(blake3::hash(&fs::read(path)?).to_hex().to_string())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The package of the kernel itself, in the output of `apt-cache depends`: `  Depends: linux-image-6.1.0-50-686-pae`.
fn newest(text: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
        .find(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        .map(|rest| format!("linux-image-{}", rest.split(':').next().unwrap_or(rest)))
}

/// Takes the kernel out of a package. The error is dpkg's or tar's own message.
fn unpack(archive: &Path, folder: &Path, package: &str) -> Result<PathBuf, String> {
    let start = |error: std::io::Error| error.to_string();
    let mut out = quiet(Command::new("dpkg-deb"))
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(start)?;
    let tar = quiet(Command::new("tar"))
        .args(["-x", "--wildcards", "./boot/vmlinuz-*"])
        .current_dir(folder)
        .stdin(out.stdout.take().map_or(Stdio::null(), Stdio::from))
        .output();
    let status = out.wait().map_err(start)?;
    let tar = tar.map_err(start)?;
    if !tar.status.success() || !status.success() {
        return Err(format!("the package is not whole: {}", own_words(&tar)));
    }
    let name = package.strip_prefix("linux-image-").unwrap_or(package);
    let file = folder.join("boot").join(format!("vmlinuz-{name}"));
    file.is_file().then_some(file).ok_or_else(|| format!("the package has no boot/vmlinuz-{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_the_kernel_itself_is_found_among_the_dependencies() {
        let text = "linux-image-686-pae\n  Depends: linux-base\n  Depends: linux-image-6.1.0-50-686-pae\n";
        assert_eq!(newest(text).as_deref(), Some("linux-image-6.1.0-50-686-pae"));
        assert_eq!(newest("x\n  Depends: linux-image-amd64\n"), None);
    }

    #[test]
    fn a_kernel_in_the_cache_needs_no_network_and_its_digest_is_checked() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("kernels/linux-image-amd64-amd64/linux-image-6.1.0-56-amd64");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(FILE), "kernel").unwrap();
        fs::write(place.join(DIGEST), blake3::hash(b"kernel").to_hex().as_str()).unwrap();
        let fetch = || fetch_kernel("linux-image-amd64", "amd64", cache.path(), &mut |_| {});
        let kernel = fetch().unwrap();
        assert_eq!(kernel.package, "linux-image-6.1.0-56-amd64");
        assert_eq!(kernel.file, place.join(FILE));
        fs::write(place.join(FILE), "another").unwrap();
        assert!(matches!(fetch(), Err(DebianError::Damaged { .. })));
    }

    #[test]
    fn what_is_no_package_yields_no_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("x.deb");
        fs::write(&archive, "no archive").unwrap();
        assert!(unpack(&archive, folder.path(), "linux-image-6.1.0-56-amd64").is_err());
    }
}
