//! A large C++ program of Debian, built from its source package by `widthwise compare`.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::work_directory::{words, WorkDirectory};

/// Cppcheck's tests are many units that use the standard library a lot.
const SPEC: &str = r#"[program]
name = "testrunner"
source = "debian:cppcheck"
build = "make -j{jobs} testrunner CXXFLAGS='-g -O1'"
run = "{build}/testrunner TestUtils"

[axes]
abi = ["x86-64"]

[run]
timeout = "5m"
"#;

/// The program's file. It is built once for each target folder: a later run finds it.
pub(super) fn testrunner(work_directory: &WorkDirectory) -> anyhow::Result<PathBuf> {
    let folder = work_directory.target()?.join("bench-cppcheck");
    std::fs::create_dir_all(&folder)?;
    if let Some(file) = find(&folder.join(".widthwise/builds"), 4) {
        return Ok(file);
    }
    std::fs::write(folder.join("widthwise.toml"), SPEC)?;
    let spec = folder.join("widthwise.toml").display().to_string();
    let mut command = work_directory.widthwise(&words(["compare", &spec, "--rounds", "1", "--warmup", "0"]));
    let done = command.current_dir(&folder).output().context("widthwise could not be started")?;
    let file = find(&folder.join(".widthwise/builds"), 4);
    file.with_context(|| {
        format!("testrunner was not built: {}", String::from_utf8_lossy(&done.stderr).trim())
    })
}

/// The linked program in a build's tree.
fn find(folder: &Path, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let is_it = |path: &PathBuf| path.is_file() && path.file_name().is_some_and(|name| name == "testrunner");
    if let Some(file) = entries.iter().find(|path| is_it(path)) {
        return Some(file.clone());
    }
    entries.iter().filter(|path| path.is_dir() && depth > 0).find_map(|path| find(path, depth - 1))
}
