//! Which shared libraries a program needs, and whether the loader would find those of its own build. Found as ld.so(8)
//! does, from the files; nothing is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader32, FileHeader64, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME};
use object::read::elf::FileHeader;
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};

use crate::abi::{self, Abi};
use crate::elf;

/// The dynamic section of a program or library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Linking {
    /// Its ABI; absent for an unknown one.
    pub abi: Option<Abi>,
    /// The name by which others ask for it (DT_SONAME).
    pub soname: Option<String>,
    /// The names it asks for (DT_NEEDED), in order.
    pub needed: Vec<String>,
    /// Folders searched first, also for its libraries' needs (DT_RPATH).
    pub rpath: Vec<String>,
    /// Folders searched after LD_LIBRARY_PATH, for its own needs only (DT_RUNPATH).
    pub runpath: Vec<String>,
}

/// A library of a program's own build that the loader would not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The name that is asked for.
    pub name: String,
    /// The library of the build.
    pub own: PathBuf,
    /// The library that is loaded instead; absent if none is found and the program will not start.
    pub taken: Option<PathBuf>,
}

/// A file's dynamic section; absent for files that are not ELF or are statically linked.
pub fn read(path: &Path) -> Option<Linking> {
    // Opening a named pipe would wait for its writer.
    let cache =
        std::fs::metadata(path).ok().filter(|data| data.is_file()).and_then(|_| File::open(path).ok())?;
    read_from(&ReadCache::new(cache))
}

fn read_from<'data, R: ReadRef<'data>>(data: R) -> Option<Linking> {
    match FileKind::parse(data).ok()? {
        FileKind::Elf32 => linking::<FileHeader32<Endianness>, R>(data, 1),
        FileKind::Elf64 => linking::<FileHeader64<Endianness>, R>(data, 2),
        _ => None,
    }
}

fn linking<'data, H, R>(data: R, class: u8) -> Option<Linking>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let table = header.sections(endian, data).ok()?.dynamic_table(endian, data).ok()?;
    let mut linking = Linking { abi: abi::of_elf(class, header.e_machine(endian).0), ..Linking::default() };
    for entry in &table {
        let text = || Some(String::from_utf8_lossy(table.string(entry).ok()?).into_owned());
        let folders = || text().iter().flat_map(|text| text.split(':')).map(str::to_owned).collect();
        match entry.tag {
            DT_NEEDED => linking.needed.extend(text()),
            DT_SONAME => linking.soname = text(),
            DT_RPATH => linking.rpath = folders(),
            DT_RUNPATH => linking.runpath = folders(),
            _ => {}
        }
    }
    (!table.is_empty()).then_some(linking)
}

/// The libraries that `build` made and that the program asks for, itself or through one of them, and would not be given
/// where it runs: in `directory`, with that LD_LIBRARY_PATH.
pub fn strays(program: &Path, build: &Path, library_path: &str, directory: &Path) -> Vec<Stray> {
    let canonical = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let build = canonical(build);
    let (Some(first), program) = (read(program), canonical(program)) else { return Vec::new() };
    let Some(abi) = first.abi else { return Vec::new() };
    let mut own = BTreeMap::new();
    collect(&build, abi, &mut own);
    let mut strays: Vec<Stray> = Vec::new();
    let mut seen = BTreeSet::from([program.clone()]);
    let mut left = vec![(program, first, Vec::<PathBuf>::new())];
    while let Some((object, linking, inherited)) = left.pop() {
        let (places, rpath) = search_path(abi, &linking, &object, inherited, library_path, directory);
        for name in linking.needed.iter().filter(|name| !name.contains('/')) {
            let taken = found_in(&places, name, abi);
            match taken {
                Some((path, found)) if canonical(&path).starts_with(&build) => {
                    let path = canonical(&path);
                    if seen.insert(path.clone()) {
                        left.push((path, found, rpath.clone()));
                    }
                }
                taken => {
                    if let Some(own) =
                        own.get(name).filter(|_| !strays.iter().any(|stray| stray.name == *name))
                    {
                        let taken = taken.map(|(path, _)| path);
                        strays.push(Stray { name: name.clone(), own: own.clone(), taken });
                    }
                }
            }
        }
    }
    strays
}

/// Every file that a program's loader opens before the program's first instruction: the loader, and the libraries that the
/// program and its libraries ask for. `Err`: a library's name that is found nowhere. Libraries that a program loads itself
/// (dlopen(3)) are not among them.
pub fn closure(program: &Path, library_path: &str, directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    files.extend(elf::read(program).ok().and_then(|facts| facts.interpreter));
    let Some(first) = read(program) else { return Ok(files) };
    let Some(abi) = first.abi else { return Ok(files) };
    let mut left = vec![(program.to_owned(), first, Vec::<PathBuf>::new())];
    while let Some((object, linking, inherited)) = left.pop() {
        let (places, rpath) = search_path(abi, &linking, &object, inherited, library_path, directory);
        for name in &linking.needed {
            let taken = match name.contains('/') {
                true => read(&directory.join(name)).map(|found| (directory.join(name), found)),
                false => found_in(&places, name, abi),
            };
            // The loader is the C library's own, and is asked for by name as well.
            let is_loader =
                files.first().and_then(|file| file.file_name()).is_some_and(|own| own == name.as_str());
            match taken {
                Some((path, found)) if !files.contains(&path) => {
                    files.push(path.clone());
                    left.push((path, found, rpath.clone()));
                }
                Some(_) => {}
                None if is_loader => {}
                None => return Err(name.clone()),
            }
        }
    }
    Ok(files)
}

/// The folders in which the loader looks for what an object asks for, in order, and the RPATHs among them, which are
/// searched for the object's libraries too.
fn search_path(
    abi: Abi,
    linking: &Linking,
    object: &Path,
    inherited: Vec<PathBuf>,
    library_path: &str,
    directory: &Path,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let folders = |list: &[String]| -> Vec<PathBuf> {
        list.iter().map(|folder| place(folder, object, directory)).collect()
    };
    // ld.so(8): RPATH, its own and those of the objects that need it, only where there is no RUNPATH.
    let mut rpath = Vec::new();
    if linking.runpath.is_empty() {
        rpath = [folders(&linking.rpath), inherited].concat();
    }
    let from_environment: Vec<String> =
        library_path.split([':', ';']).map(str::to_owned).filter(|_| !library_path.is_empty()).collect();
    let system = abi.library_folders.iter().map(|folder| Path::new("/").join(folder));
    let places = rpath
        .iter()
        .cloned()
        .chain(folders(&from_environment))
        .chain(folders(&linking.runpath))
        .chain(system)
        .collect();
    (places, rpath)
}

/// The library of that name and ABI. The loader skips a library of another ABI.
fn found_in(places: &[PathBuf], name: &str, abi: Abi) -> Option<(PathBuf, Linking)> {
    places.iter().find_map(|folder| {
        let path = folder.join(name);
        read(&path).filter(|found| found.abi == Some(abi)).map(|found| (path, found))
    })
}

/// A folder of a search path. An empty one is the working directory; `$ORIGIN` is where the asking file lies.
fn place(folder: &str, object: &Path, directory: &Path) -> PathBuf {
    let origin = object.parent().unwrap_or(Path::new("/")).display().to_string();
    directory.join(folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
}

/// The shared libraries of that ABI in a folder and below, by the names under which they are asked for.
fn collect(folder: &Path, abi: Abi, found: &mut BTreeMap<String, PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // The target of a link is found at its own path, or is not of this build.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, abi, found),
            Ok(kind) if kind.is_file() && name.contains(".so") => {
                if let Some(linking) = read(&path).filter(|linking| linking.abi == Some(abi)) {
                    found.entry(linking.soname.unwrap_or(name)).or_insert(path);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_program_asks_for_the_c_library() {
        let linking = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(linking.needed.iter().any(|name| name.starts_with("libc.so")), "{linking:?}");
        assert_eq!(linking.soname, None);
    }

    #[test]
    fn the_folders_of_a_search_path_are_those_of_the_loader() {
        let place = |folder| place(folder, Path::new("/b/bin/x"), Path::new("/here"));
        assert_eq!(place("$ORIGIN/../lib"), Path::new("/b/bin/../lib"));
        assert_eq!(place("lib"), Path::new("/here/lib"));
        assert_eq!(place(""), Path::new("/here/"));
        assert_eq!(place("/lib"), Path::new("/lib"));
    }

    #[test]
    fn the_closure_of_a_program_has_its_loader_and_the_c_library() {
        let files = closure(&std::env::current_exe().unwrap(), "", Path::new("/")).unwrap();
        let has = |start: &str| {
            files
                .iter()
                .any(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)))
        };
        assert!(has("ld-linux") && has("libc.so") && files.iter().all(|file| file.exists()), "{files:?}");
        let script = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(closure(script.path(), "", Path::new("/")), Ok(Vec::new()));
    }

    #[test]
    fn files_that_are_not_elf_need_no_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(read(&script), None);
        assert_eq!(read(folder.path()), None);
        assert_eq!(strays(&script, folder.path(), "", folder.path()), []);
        for length in [0, 4, 20, 64, 4096] {
            let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
            let _ = read_from(&bytes[..length]);
        }
    }
}
