//! The archives that a statically linked program has parts of: the C library's and the compiler's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use widthwise_machine::compiler;

const NAMES: [&str; 9] = [
    "crt1.o",
    "libc.a",
    "libm.a",
    "libpthread.a",
    "libgcc.a",
    "libgcc_eh.a",
    "libstdc++.a",
    "libc++.a",
    "libatomic.a",
];

/// The identity of those that this compiler (`gcc-12 -m32`) links: another text means other archives. Empty if it names no folders.
pub fn identity(compiler: &str) -> String {
    static KNOWN: Mutex<BTreeMap<String, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folders = known.entry(compiler.to_owned()).or_insert_with(|| folders(compiler));
    let first = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    NAMES.iter().filter_map(first).map(|path| stamp(&path)).collect()
}

/// The folders in which it searches for libraries.
fn folders(compiler: &str) -> Vec<PathBuf> {
    let mut words = compiler.split_ascii_whitespace();
    let Some(program) = words.next() else { return Vec::new() };
    let mut command = Command::new(program);
    command.args(words).arg("-print-search-dirs").env("LC_ALL", "C").stdin(Stdio::null());
    let Ok(output) = command.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let list = text.lines().find_map(|line| line.strip_prefix("libraries: ="));
    list.unwrap_or_default().split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from).collect()
}

/// A package's update changes at least one of them.
fn stamp(path: &Path) -> String {
    format!("{} {}\n", path.display(), compiler::stamp(path).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compiler_links_a_c_library_and_another_one_has_another_identity() {
        for compiler in ["gcc", "gcc -m32", "clang"] {
            assert!(identity(compiler).contains("/libc.a "), "{compiler}: {}", identity(compiler));
        }
        assert_ne!(identity("gcc"), identity("gcc -m32"));
        assert_eq!(identity("/nowhere/cc"), "");
    }

    #[test]
    fn an_archive_that_was_updated_has_another_stamp() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = stamp(file.path());
        std::fs::write(file.path(), "new").unwrap();
        assert_ne!(stamp(file.path()), before);
    }
}
