//! What gcc makes is kept under `target/`, by what it is made from: many tests build the same program, in three ABIs.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the program of these arguments is kept, if it is one program from files that are named: arguments, the
/// files' contents, the headers beside them and in folders of `-I`, and the compiler's version decide. A program with debug
/// information is not kept: it names the folder of its sources, which is another one in each laboratory.
pub fn kept_at(folder: &Path, words: &[String]) -> Option<PathBuf> {
    if words.iter().any(|word| word.starts_with("-g")) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.write_usize(bytes.len());
        hasher.write(bytes);
    };
    add(version().as_bytes());
    let mut output = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "-o" {
            output = words.next();
            continue;
        }
        // Every laboratory has another name.
        add(word.replace(folder.to_str()?, ".").as_bytes());
        let headers = match word.strip_prefix("-I") {
            Some(included) => folder.join(included),
            None if word.starts_with('-') => continue,
            None => {
                let file = folder.join(word);
                if let Ok(text) = std::fs::read(&file) {
                    add(&text);
                }
                file.parent()?.to_owned()
            }
        };
        for header in sorted_headers(&headers) {
            add(&std::fs::read(header).ok()?);
        }
    }
    output?;
    let name = format!("{:016x}", hasher.finish());
    Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs").join(name))
}

fn sorted_headers(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut headers: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|is| is == "h" || is == "hpp")).collect();
    headers.sort();
    headers
}

/// The compiler's version, which is asked once.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let printed =
            Command::new("gcc").arg("--version").output().unwrap_or_else(|error| panic!("gcc: {error}"));
        String::from_utf8_lossy(&printed.stdout).into_owned()
    })
}

/// Keeps a program. Tests at the same time may keep the same one.
pub fn keep(program: &Path, kept: &Path) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let new = kept.with_extension(format!("{}-{number}", std::process::id()));
    copy(program, &new);
    std::fs::rename(&new, kept).unwrap();
}

/// By a process of its own, as in [`Laboratory::copy`](super::Laboratory::copy).
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").args(["-p", "--reflink=auto"]).arg(from).arg(to).status().unwrap();
    assert!(status.success(), "{} was not copied", from.display());
}
