//! Files that the user requested, and pages of a campaign.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use widthwise_experiment::bytes;

use crate::failure::Failure;
use crate::interrupt;

/// Refuses, before anything is measured or read, files that could not be written, and two documents on standard output.
/// Each file has its flag: `--json`.
pub fn check(files: &[(&str, &Option<PathBuf>)]) -> Result<(), Failure> {
    let printed: Vec<&str> =
        files.iter().filter(|(_, path)| is_stdout(path)).map(|(flag, _)| *flag).collect();
    if let [first, second, ..] = printed[..] {
        return Err(Failure::request(format!(
            "{first} and {second} both write to standard output: give one of them a file ({first}=FILE)"
        )));
    }
    for (number, (flag, path)) in files.iter().enumerate() {
        let same = files[..number].iter().find(|(_, other)| other.is_some() && other == path);
        if let Some((first, _)) = same.filter(|_| is_document(path)) {
            return Err(Failure::request(format!("{first} and {flag} both write to one file: name another")));
        }
    }
    files.iter().filter(|(_, path)| !is_stdout(path)).try_for_each(|(flag, path)| match path {
        Some(path) => can_be_written(path)
            .map_err(|reason| Failure::request(format!("{flag}: {} {reason}", bytes::text(path)))),
        None => Ok(()),
    })
}

/// A file takes another's place, so its folder is tried. A device or a pipe is not: opening one can have an effect.
fn can_be_written(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err("is a folder: name a file".to_owned()),
        Ok(metadata) if !metadata.is_file() => Ok(()),
        _ => tempfile::tempfile_in(folder_of(path))
            .map(drop)
            .map_err(|error| format!("cannot be written: {error}")),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file completely or not at all; `-` is standard output.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return ended(std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()));
    }
    keep(path, bytes)
}

/// Prints text, without its colours where there is no terminal and where NO_COLOR says so.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout();
    ended(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Prints a line on standard error. If that is closed or full, nobody can be told, and what was measured matters more.
pub fn note(line: &str) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// How writing to standard output ended. A reader that has closed the pipe (`| head`) has what it wants.
fn ended(written: std::io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::machine(format!("standard output: {error}"))),
    }
}

/// Whether a path is a file, or will be one: a second document would replace the first. A device such as /dev/null takes both.
fn is_document(path: &Option<PathBuf>) -> bool {
    path.as_ref().is_some_and(|path| std::fs::metadata(path).map_or(true, |metadata| metadata.is_file()))
}

/// Whether a requested document goes to standard output.
pub fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_ref().is_some_and(|path| path.as_os_str() == "-")
}

/// Writes a file, completely or not at all. That it could be written has been checked: what fails now is the machine.
pub fn keep(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes)
        .map_err(|error| Failure::machine(format!("{}: {error}", bytes::shown_path(path))))
}

/// A new file takes the place of the old one when it is complete. A link stays, and its file is replaced. A device or a pipe
/// (`/dev/null`, `>(command)`) is written to as it is.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => std::fs::canonicalize(path)?,
        Ok(metadata) if !metadata.is_dir() => {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        _ => path.to_owned(),
    };
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    interrupt::finish(|| {
        std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, &path)).inspect_err(|_| {
            let _ = std::fs::remove_file(&partial);
        })
    })
}

/// The current folder, which may have been deleted.
pub fn current_folder() -> Result<PathBuf, Failure> {
    let failed = |error| Failure::machine(format!("the current folder: {error}: change to one that exists"));
    std::env::current_dir().map_err(failed)
}

/// A path as the user would type it.
pub fn short(path: &Path) -> String {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok())
        .filter(|rest| !rest.as_os_str().is_empty())
        .map_or_else(|| bytes::text(path), bytes::text)
}

/// A path as a word of a command that the user may copy.
pub fn word(path: &Path) -> String {
    shell_words::quote(&short(path)).into_owned()
}

/// Columns of the terminal, or a page's where there is none.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(110, |(width, _)| usize::from(width.0))
}
