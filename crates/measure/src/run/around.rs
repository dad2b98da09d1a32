//! What is done before and after a run, and is not timed: its fresh directory, its setup and teardown commands.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use super::Start;

/// Makes a working directory anew, with links to these files.
pub(crate) fn lay_out(folder: &Path, inputs: &[PathBuf]) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => std::fs::create_dir_all(folder)?,
    }
    for input in inputs {
        if let Some(name) = input.file_name() {
            std::os::unix::fs::symlink(input, folder.join(name))?;
        }
    }
    Ok(())
}

/// Runs `sh -e` text; on failure, how it ended and the last line it complained with.
pub(crate) fn shell(text: &str, start: &Start) -> Result<(), String> {
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", text])
        .current_dir(&start.directory)
        .env_clear()
        // What is preloaded is the program's, not the shell's.
        .envs(start.environment.iter().filter(|(name, _)| *name != "LD_PRELOAD"))
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("`{text}` could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let how = match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it ended".into(),
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("`{text}` failed ({how}): {last}"))
}
