//! The untimed steps before and after a run: its fresh directory, its setup and teardown commands.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use widthwise_experiment::bytes;

use crate::run::descriptors;
use crate::run::ending::failed_hook;
use crate::run::guardian;
use crate::run::launch_spec::LaunchSpec;
use crate::run::memory_file::memory_file;
use crate::run::setup_mark;
use widthwise_machine::process_group;

/// Creates an empty working directory with links to these files.
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

/// How long a process that was left behind has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a process may be about to execute a program.
const SETTLING: Duration = Duration::from_millis(200);

/// Runs a hook, `sh -e` text; on failure, returns a sentence with its last message. Processes that it leaves in the
/// background continue: see [`LeftBehind`].
pub(crate) fn shell(hook: &str, text: &str, start: &LaunchSpec) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{hook} `{text}` could not be run: {error}");
    // Reading a pipe would wait for the last process that holds it.
    let mut complaint = memory_file(c"widthwise-hook").map_err(failed)?;
    let mut command = std::process::Command::new("sh");
    // Before the limit of descriptors is lowered.
    setup_mark::give_descriptor(&mut command);
    descriptors::give_back(&mut command)
        .args(["-e", "-c"])
        .arg(bytes::os(text))
        .current_dir(&start.directory)
        .env_clear()
        // LD_PRELOAD is for the program, not for the shell.
        .envs(start.environment.iter().filter(|(name, _)| *name != "LD_PRELOAD"))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(complaint.try_clone().map_err(failed)?);
    setup_mark::give_variable(&mut command);
    // The first Ctrl-C ends the campaign after this run, which includes its setup and teardown.
    let status = process_group::status(&mut command).map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let mut output = Vec::new();
    let _ = complaint.rewind().and_then(|()| complaint.read_to_end(&mut output));
    Err(failed_hook(hook, text, status, &output))
}

/// What setup and teardown have left in the background, such as a server. Dropping this ends it; the guardian does where
/// nothing is dropped, since this process was killed.
#[derive(Debug)]
pub(crate) struct LeftBehind;

impl LeftBehind {
    /// If the program has such commands.
    pub(crate) fn of(start: &LaunchSpec) -> Option<LeftBehind> {
        let is_used = start.setup.is_some() || start.teardown.is_some();
        // Made only where it is needed: dropping it searches all processes.
        is_used.then(|| {
            guardian::start();
            LeftBehind
        })
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        let mut is_any_found = false;
        let mut none_since = None;
        loop {
            let elapsed = began.elapsed();
            let (left, is_certain) = left_behind();
            if elapsed > 2 * PATIENCE {
                return;
            }
            if left.is_empty() {
                // One that ends while they are searched may have forked another: after some were found, none is found twice.
                let is_sure = is_certain && (!is_any_found || none_since.is_some());
                let since = *none_since.get_or_insert(elapsed);
                if is_sure || elapsed - since > SETTLING {
                    return;
                }
            } else {
                (is_any_found, none_since) = (true, None);
            }
            let signal = if elapsed < PATIENCE { libc::SIGTERM } else { libc::SIGKILL };
            for pid in left {
                // SAFETY: no pointers; a process that has ended is no error.
                unsafe { libc::kill(pid, signal) };
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

/// The processes that carry one of our marks, and whether these are all: the environment of a process that is about
/// to execute a program cannot be read for a moment.
fn left_behind() -> (Vec<libc::pid_t>, bool) {
    let mark = setup_mark::variable();
    let (mut left, mut is_certain) = (Vec::new(), true);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let process = entry.path();
        let read = |name: &str| std::fs::read(process.join(name));
        let environment = read("environ");
        let has_variable = |text: &Vec<u8>| text.split(|&byte| byte == 0).any(|one| one == mark.as_bytes());
        if environment.as_ref().is_ok_and(has_variable) || setup_mark::has_descriptor(&process) {
            left.push(pid);
        } else if environment.is_ok_and(|text| text.is_empty()) {
            // Neither a kernel thread nor a process that has ended has a program.
            let has_program = std::fs::read_link(process.join("exe")).is_ok();
            is_certain &= !(has_program && read("cmdline").is_ok_and(|words| words.is_empty()));
        }
    }
    (left, is_certain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn start(setup: Option<&str>) -> LaunchSpec {
        LaunchSpec {
            setup: setup.map(Into::into),
            ..LaunchSpec::plain("/bin/true", &[], std::path::Path::new("/"))
        }
    }

    #[test]
    fn processes_are_searched_only_around_runs_with_setup_or_teardown() {
        // Each mark alone: some programs overwrite their environment, others close their descriptors.
        let mut left = [setup_mark::give_variable, setup_mark::give_descriptor].map(|give| {
            let mut command = std::process::Command::new("sleep");
            give(command.arg("1000"));
            command.spawn().unwrap()
        });
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(LeftBehind::of(&start(None)).is_none());
        assert!(left.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
        drop(LeftBehind::of(&start(Some("sleep 1000 &"))));
        for mut child in left {
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
