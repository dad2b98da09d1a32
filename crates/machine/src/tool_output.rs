//! Running a tool and reading its output, with a time limit.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::process_group::{self, Group};

// The limit of a tool's output: no version text or first error line is longer.
const OUTPUT_LIMIT: u64 = 1 << 24;

/// A tool's output and status.
#[derive(Debug)]
pub(crate) struct SourceLocation {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a tool to its end. Its input is empty, its locale is C, and it is killed with its children after `limit`
/// (`ErrorKind::TimedOut`).
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<SourceLocation> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Messages are parsed and shown: no translations, no colours.
    command.env("LC_ALL", "C").env_remove("GCC_COLORS").env_remove("CLICOLOR_FORCE");
    let (mut child, group) = spawn(command)?;
    let stdout = child.stdout.take().map(read_aside);
    let stderr = child.stderr.take().map(read_aside);

    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(200);
    let ended = loop {
        match process_group::has_ended(&child) {
            Ok(true) => break Ok(()),
            Ok(false) if Instant::now() >= deadline => {
                break Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no result within {} s", limit.as_secs()),
                ));
            }
            Ok(false) => thread::sleep(pause),
            Err(error) => break Err(error),
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    };
    if ended.is_err() {
        if let Ok(group) = libc::pid_t::try_from(child.id()) {
            // SAFETY: kill(2) touches no memory; the group is the one made above, and its leader is not reaped yet.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
    // Before its number is free.
    drop(group);
    // It has ended, or was killed just now: it cannot keep us waiting.
    let status = child.wait();
    ended?;
    Ok(SourceLocation { status: status?, stdout: collect(stdout), stderr: collect(stderr) })
}

/// Starts the tool; a file that is just being written (installed, that is) is given half a second.
fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
    for _ in 0..50 {
        match process_group::spawn_tool(command) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
    process_group::spawn_tool(command)
}

/// Reads a pipe on a thread of its own: reading only one pipe would block the tool on the other.
fn read_aside(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn collect(receiver: Option<mpsc::Receiver<String>>) -> String {
    // A daemon the tool left behind may hold the pipe open for ever; the tool itself has ended.
    receiver.and_then(|receiver| receiver.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_pipes_are_read_with_output_of_any_length() {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 3";
        let output = run(&mut shell(script), Duration::from_secs(30)).unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len(), output.status.code()),
            (300_000, 300_000, Some(3))
        );
    }

    #[test]
    fn a_tool_that_hangs_is_killed_with_its_children() {
        let error = run(&mut shell("sleep 1000 & sleep 1000"), Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_file_without_a_format_is_an_error_and_no_shell_script() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        crate::executable::write(&file, "echo started by a shell\n");
        let error = run(&mut Command::new(&file), Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOEXEC));
    }
}
