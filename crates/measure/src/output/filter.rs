//! The filter of an output: a shell command through which it passes.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use widthwise_experiment::bytes;
use widthwise_machine::process_group;

use crate::run::descriptors;
use crate::run::ending::failed_hook;

/// How long a look at whether the filter was stopped may be late. Its end and its pipes are waited for.
const PAUSE_MS: i32 = 100;
/// Where the kernel has no descriptors of processes (before Linux 5.3), its end is looked for as often.
const SHORT_PAUSE_MS: i32 = 5;

/// What a filter makes of a text. Its end is that of the shell: what that leaves in the background is killed, and is not waited
/// for where it has left the filter's process group.
///
/// # Errors
/// It could not be started, or failed, as a sentence.
pub(super) fn pass_through(filter: &str, text: &[u8], directory: &Path) -> Result<Vec<u8>, String> {
    let mut command = Command::new("sh");
    descriptors::give_back(&mut command)
        .args(["-e", "-c"])
        .arg(bytes::os(filter))
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // The first Ctrl-C ends the campaign after this run, whose output is still read.
    let (mut child, group) = process_group::spawn(&mut command)
        .map_err(|error| format!("the filter `{filter}` could not be started: {error}"))?;
    let passed = exchange(&mut child, text);
    process_group::kill(&child);
    // Before its number is free.
    drop(group);
    let status = child.wait();
    let failed = |error| format!("the filter `{filter}`: {error}");
    let ([output, complaint], status) = (passed.map_err(failed)?, status.map_err(failed)?);
    if !status.success() {
        return Err(failed_hook("the filter", filter, status, &complaint));
    }
    Ok(output)
}

/// Writes the text to a child until it reads no more, and reads its standard output and standard error until it has ended.
fn exchange(child: &mut Child, text: &[u8]) -> std::io::Result<[Vec<u8>; 2]> {
    let mut input = Input { pipe: child.stdin.take().map(pipe).transpose()?, rest: text };
    let mut outputs = [
        Output { pipe: child.stdout.take().map(pipe).transpose()?, bytes: Vec::new() },
        Output { pipe: child.stderr.take().map(pipe).transpose()?, bytes: Vec::new() },
    ];
    let end = descriptor(child);
    let mut is_ended = false;
    while !is_ended {
        wait(end.as_ref(), &input, &outputs)?;
        input.write()?;
        // What it wrote before its end is in the pipes then.
        is_ended = process_group::has_ended(child)?;
        for output in &mut outputs {
            if is_ended {
                output.read_rest()?;
            } else {
                output.read()?;
            }
        }
    }
    Ok(outputs.map(|output| output.bytes))
}

/// Our end of a pipe, at which no call waits. The other end has flags of its own.
fn pipe(end: impl Into<OwnedFd>) -> std::io::Result<File> {
    let file = File::from(end.into());
    // SAFETY: no pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(file),
    }
}

/// A descriptor that is readable when the child has ended.
fn descriptor(child: &Child) -> Option<OwnedFd> {
    // SAFETY: no pointers; the descriptor is ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child.id(), 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Waits until the child has ended or one of the pipes is ready, or a moment.
fn wait(end: Option<&OwnedFd>, input: &Input, outputs: &[Output; 2]) -> std::io::Result<()> {
    let of_descriptor = |fd: Option<i32>, events| libc::pollfd { fd: fd.unwrap_or(-1), events, revents: 0 };
    let polled = |pipe: &Option<File>, events| of_descriptor(pipe.as_ref().map(AsRawFd::as_raw_fd), events);
    let [stdout, stderr] = outputs;
    let mut polls = [
        polled(&input.pipe, libc::POLLOUT),
        polled(&stdout.pipe, libc::POLLIN),
        polled(&stderr.pipe, libc::POLLIN),
        of_descriptor(end.map(AsRawFd::as_raw_fd), libc::POLLIN),
    ];
    let pause = if end.is_some() { PAUSE_MS } else { SHORT_PAUSE_MS };
    // SAFETY: a valid list of this length.
    match unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, pause) } {
        -1 => unless_later(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// No error where a call was interrupted, or would wait.
fn unless_later(error: std::io::Error) -> std::io::Result<()> {
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::WouldBlock => Ok(()),
        _ => Err(error),
    }
}

/// A child's standard input; no pipe: it is closed.
struct Input<'t> {
    pipe: Option<File>,
    rest: &'t [u8],
}

impl Input<'_> {
    /// Writes what the pipe takes, and closes it at the text's end.
    fn write(&mut self) -> std::io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        while !self.rest.is_empty() {
            match pipe.write(self.rest) {
                Ok(size) => self.rest = &self.rest[size..],
                // A filter may stop reading early, as `head` does.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.rest = &[],
                Err(error) => return unless_later(error),
            }
        }
        self.pipe = None;
        Ok(())
    }
}

/// A child's standard output or standard error; no pipe: all who had it have closed it.
struct Output {
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl Output {
    /// Reads once.
    fn read(&mut self) -> std::io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut some = [0; 1 << 16];
        match pipe.read(&mut some) {
            Ok(0) => self.pipe = None,
            Ok(size) => self.bytes.extend(&some[..size]),
            Err(error) => return unless_later(error),
        }
        Ok(())
    }

    /// Reads what is in the pipe now: what the child has left may write for ever.
    fn read_rest(&mut self) -> std::io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        let mut size: libc::c_int = 0;
        // SAFETY: writes a number.
        if unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut size) } == -1 {
            return Err(std::io::Error::last_os_error());
        }
        pipe.take(u64::from(size.unsigned_abs())).read_to_end(&mut self.bytes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_filter_leaves_is_not_waited_for_and_its_group_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let text = vec![b'x'; 1 << 20];
        // Both hold all its pipes; one has left its group.
        let left = "exec 3<&0; (sleep 60; touch late) <&3 & echo $! > left; setsid sleep 60 <&3 &";
        let pass = |filter: &str| pass_through(&format!("{left} {filter}"), &text, folder.path());
        let is_running = || {
            let number = std::fs::read_to_string(folder.path().join("left")).unwrap();
            // Empty if nobody has waited for it.
            std::fs::read(format!("/proc/{}/cmdline", number.trim())).is_ok_and(|words| !words.is_empty())
        };
        assert!(pass("cat").unwrap() == text);
        assert!(pass("yes & head -c 3").unwrap().len() >= 3);
        // A command that fails ends the filter, as it ends setup.
        assert!(pass("cat > seen; false; echo more").is_err());
        assert!(pass("echo why >&2; exit 3").unwrap_err().ends_with("(exit 3): why"));
        let of_terminal = pass("exec env --default-signal=TTIN sh -c 'kill -TTIN $$'").unwrap_err();
        assert!(of_terminal.contains("uses the terminal"), "{of_terminal}");
        while is_running() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!folder.path().join("late").exists());
    }
}
