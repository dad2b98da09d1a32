//! The shared libraries that a program brings: found by its own search path, outside of the system's folders.

use std::path::{Path, PathBuf};

use widthwise_anatomy::elf::Elf;

use super::mapped::MappedFile;
use crate::failure::Failure;

/// Folders of the system's libraries.
const SYSTEM: [&str; 9] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/local/lib",
];

/// The libraries of a program, and theirs, each once, in the order of the search: by DT_RUNPATH or DT_RPATH, then beside the
/// program. Those of another ABI are skipped.
///
/// # Errors
/// One cannot be read or is damaged.
pub fn libraries(program: &MappedFile) -> Result<Vec<(String, MappedFile)>, Failure> {
    let mut found: Vec<(String, MappedFile)> = Vec::new();
    let mut next = 0;
    let mut asked = asked_by(program)?;
    loop {
        for (name, path) in asked {
            if found.iter().all(|(known, _)| *known != name) {
                found.push((name, MappedFile::open(&path)?));
            }
        }
        let Some((_, library)) = found.get(next) else { return Ok(found) };
        asked = asked_by(library)?;
        next += 1;
    }
}

/// The libraries that one file asks for, where they are found.
fn asked_by(file: &MappedFile) -> Result<Vec<(String, PathBuf)>, Failure> {
    let elf = file.elf()?;
    let dynamic = elf.dynamic();
    let real = std::fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
    let origin = real.parent().unwrap_or(Path::new("/")).to_owned();
    let folder = |text: &String| {
        let origin = origin.to_string_lossy();
        PathBuf::from(text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
    };
    let mut folders: Vec<PathBuf> = dynamic.search.iter().map(folder).collect();
    folders.push(origin.clone());
    let is_loaded = |path: &PathBuf| path.is_file() && is_of_abi(path, &elf);
    let in_folders = |name: &String| {
        let path = match name.contains('/') {
            true => Some(PathBuf::from(name)),
            false => folders.iter().map(|folder| folder.join(name)).find(is_loaded),
        }?;
        let real = std::fs::canonicalize(&path).ok().filter(|path| path.is_file())?;
        let is_system = SYSTEM.iter().any(|system| real.starts_with(system));
        (!is_system).then_some((name.clone(), path))
    };
    Ok(dynamic.needed.iter().filter_map(in_folders).collect())
}

/// Whether the loader takes a library for a program: it skips those of another ABI. A damaged one it does not skip.
fn is_of_abi(library: &Path, program: &Elf) -> bool {
    let Ok(file) = MappedFile::open(library) else { return true };
    let elf = Elf::read(file.bytes());
    elf.map_or(true, |elf| (elf.is_64, elf.machine) == (program.is_64, program.machine))
}
