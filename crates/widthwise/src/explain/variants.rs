//! The programs of a campaign's variants: the measured files, found by their digests.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use widthwise_archive::Archive;
use widthwise_experiment::Role;
use widthwise_measure::build::source;

use super::mapped::is_elf_file;
use super::program::Program;
use crate::failure::Failure;
use crate::output::short;
use crate::session;

/// Folders below a build's tree that are looked into.
const DEEPEST: usize = 12;

/// Names with those of variants in full: the beginning of a variant's name up to a slash is sufficient where one variant has it, as in
/// `x86-64` for `x86-64/-O2 -g`. Names of files, and all others, stay as they are.
pub fn in_full(names: &[String], campaign: &Path) -> Vec<String> {
    let is_file = |name: &String| Path::new(name).exists();
    let Some(archive) = (!names.iter().all(is_file)).then(|| Archive::read(campaign).ok()).flatten() else {
        return names.to_vec();
    };
    let compared = archive.metadata().variants.iter().filter(|one| one.role != Role::Control);
    let variants: Vec<&str> = compared.map(|variant| variant.name.as_str()).collect();
    let full = |name: &String| {
        let begins =
            |variant: &&&str| variant.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
        match variants.iter().filter(begins).collect::<Vec<_>>().as_slice() {
            [only] if !is_file(name) && !variants.contains(&name.as_str()) => (**only).to_owned(),
            _ => name.clone(),
        }
    };
    names.iter().map(full).collect()
}

/// Refuses a name that is no variant's.
///
/// # Errors
/// There is no such campaign or variant.
pub fn check(names: [&str; 2], campaign: &Path) -> Result<(), Failure> {
    let archive = Archive::read(campaign).map_err(Failure::request)?;
    let variants: Vec<&str> =
        archive.metadata().variants.iter().map(|variant| variant.name.as_str()).collect();
    match names.iter().find(|name| !variants.contains(name)) {
        Some(name) => Err(Failure::request(format!(
            "there is no variant \"{name}\"; {} has the variants {}",
            short(archive.folder()),
            variants.join(", ")
        ))),
        None => Ok(()),
    }
}

/// The programs of two variants.
///
/// # Errors
/// There is no such campaign or variant, or a program is gone or has changed since it was measured.
pub fn programs(names: [&str; 2], campaign: &Path) -> Result<[Program; 2], Failure> {
    let archive = Archive::read(campaign).map_err(Failure::request)?;
    let metadata = archive.metadata();
    let experiment = session::experiment(archive.folder(), &metadata.spec, metadata.seed)?;
    let folder = archive.folder();
    let variants: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    let program = |name: &str| {
        if !variants.contains(&name) {
            return Err(Failure::request(format!(
                "there is no file or variant \"{name}\"; {} has the variants {}",
                short(folder),
                variants.join(", ")
            )));
        }
        let digest =
            metadata.fingerprint.get(&format!("program of {name}")).filter(|digest| !digest.is_empty());
        let digest = digest.ok_or_else(|| {
            Failure::request(format!("{name} was not measured in {}: it has no program", short(folder)))
        })?;
        let variant = experiment.variants.iter().find(|variant| variant.name == name);
        let finished = variant.and_then(|variant| variant.binary.clone());
        let slug = metadata
            .variants
            .iter()
            .find(|variant| variant.name == name)
            .map(|variant| variant.slug.as_str());
        let candidates = finished.into_iter().chain(built(folder, slug.unwrap_or_default()));
        let is_it = |path: &PathBuf| source::digest(path).is_ok_and(|found| found == *digest);
        let path = candidates.into_iter().find(is_it).ok_or_else(|| {
            Failure::request(format!(
                "the program of {name} is gone or has changed since {} measured it; widthwise explain ./FILE ./FILE compares files",
                short(folder)
            ))
        })?;
        Ok(Program { name: name.to_owned(), path })
    };
    Ok([program(names[0])?, program(names[1])?])
}

/// The programs in the build folders beside a campaign, those of the variant first: variants with equal builds share a folder.
fn built(campaign: &Path, slug: &str) -> Vec<PathBuf> {
    let Some(root) = campaign.parent() else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries(&root.join("builds"));
    let is_own = |folder: &PathBuf| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{slug}-")))
    };
    folders.sort_by_key(|folder| (!is_own(folder), folder.clone()));
    let mut programs = Vec::new();
    for folder in folders {
        collect(&folder.join("tree"), DEEPEST, &mut programs);
    }
    programs
}

fn collect(folder: &Path, depth: usize, programs: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() && depth > 0 {
            collect(&path, depth - 1, programs);
        } else if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 && is_elf_file(&path) {
            programs.push(path);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}
