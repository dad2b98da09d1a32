//! apt's and dpkg's programs, and their error messages.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::error::{system, DebianError};

/// The error message of a failed program, on one line: apt's or dpkg's errors, or else its last line.
pub fn own_words(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("E: ").or_else(|| line.strip_prefix("dpkg-source: error: ")))
        .filter(|error| !error.starts_with("Failed to fetch some archives"))
        .collect();
    match (errors.is_empty(), stderr.lines().rfind(|line| !line.trim().is_empty())) {
        (false, _) => first_of(&errors),
        (true, Some(last)) => last.trim().to_owned(),
        (true, None) => output.status.to_string(),
    }
}

/// The first of several errors, on one line: the others mostly repeat it for another file.
pub fn first_of(complaints: &[impl AsRef<str>]) -> String {
    let first: Vec<&str> =
        complaints.first().map(|one| one.as_ref().split_whitespace().collect()).unwrap_or_default();
    match complaints.len() {
        0 | 1 => first.join(" "),
        several => format!("{} (and {} more)", first.join(" "), several - 1),
    }
}

/// Checks that a tool can be started, before minutes are spent on fetching.
pub fn needs(tool: &'static str) -> Result<(), DebianError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()) {
        return Ok(());
    }
    Err(missing(tool))
}

fn missing(tool: &'static str) -> DebianError {
    match tool {
        "dpkg-source" => DebianError::NoDpkgSource,
        tool => DebianError::NoApt { tool },
    }
}

/// A program that asks no questions, and whose messages [`own_words`] can read.
pub fn quiet(mut command: Command) -> Command {
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE").stdin(Stdio::null());
    command
}

pub fn run(command: &mut Command, tool: &'static str) -> Result<Output, DebianError> {
    command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(tool),
        _ => system("start", Path::new(tool), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_failed_program_is_quoted_on_one_line() {
        let failed = |stderr: &str| {
            own_words(&Output {
                status: std::process::ExitStatus::from_raw(25600),
                stdout: Vec::new(),
                stderr: stderr.into(),
            })
        };
        assert_eq!(
            failed(
                "W: x\nE: Failed to fetch http://a  404  Not Found\n\
                 E: Failed to fetch http://b  404  Not Found\nE: Failed to fetch some archives.\n"
            ),
            "Failed to fetch http://a 404 Not Found (and 1 more)"
        );
        assert_eq!(failed("dpkg-source: info: x\ndpkg-source: error: no space left\n"), "no space left");
        assert_eq!(failed("Killed\n\n"), "Killed");
        assert_eq!(failed(""), "exit status: 100");
    }
}
