//! Commands with a process group of their own: tools, builds, setup and teardown commands, filters. The terminal's Ctrl-C and a signal to our own
//! group do not reach them. What ends them is here, and may be called by a signal handler.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// More commands at a time wait for one to end.
const MOST: usize = 1024;
/// The place of a command that is being started.
const STARTS: i32 = -1;

/// The groups of the commands that run; 0: none.
static GROUPS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];
/// Threads between a command's start and the note of its group.
static STARTING: AtomicU32 = AtomicU32::new(0);
/// Starting a command is an error: what needs it ends early.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);
/// No command is started any more: this process ends.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// Whether this thread is between a tool's start and the note of its group.
    static IS_STARTING: Cell<bool> = const { Cell::new(false) };
}
/// Whether commands were ended early, at the user's wish.
static ENDED_EARLY: AtomicBool = AtomicBool::new(false);

/// The group of a command that was started, until dropped.
#[derive(Debug)]
pub struct Group(usize);

impl Drop for Group {
    fn drop(&mut self) {
        GROUPS[self.0].store(0, Ordering::SeqCst);
    }
}

/// Starts a command in a process group of its own.
///
/// # Errors
/// It could not be started, or [`refuse`] was called.
pub fn spawn(command: &mut Command) -> Result<(Child, Group)> {
    let group = free_place();
    // `end_all` waits for us: its handler must not run in this thread meanwhile.
    let blocked = Blocked::new();
    STARTING.fetch_add(1, Ordering::SeqCst);
    let before = blocked.0;
    // SAFETY: async-signal-safe, and the mask of before.
    unsafe {
        command.pre_exec(move || {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            Ok(())
        })
    };
    let child = started(command, &group);
    STARTING.fetch_sub(1, Ordering::SeqCst);
    drop(blocked);
    wait_for_the_end();
    Ok((child?, group))
}

/// As [`spawn`], for a tool, which a shell never starts: by posix_spawn(3), a file without a format is an error. (execvp(3), which
/// [`spawn`] leads to, takes it for a script.)
///
/// # Errors
/// As [`spawn`].
pub fn spawn_tool(command: &mut Command) -> Result<(Child, Group)> {
    let group = free_place();
    // The mask of blocked signals would be the tool's: a handler that runs in this thread does not wait for it.
    IS_STARTING.set(true);
    STARTING.fetch_add(1, Ordering::SeqCst);
    let child = started(command, &group);
    STARTING.fetch_sub(1, Ordering::SeqCst);
    IS_STARTING.set(false);
    if let (Ok(child), true) = (&child, IS_REFUSED.load(Ordering::SeqCst)) {
        end_group(child.id() as libc::pid_t, libc::SIGTERM);
    }
    wait_for_the_end();
    Ok((child?, group))
}

/// A place for a group, which is waited for.
fn free_place() -> Group {
    let is_free =
        |place: &AtomicI32| place.compare_exchange(0, STARTS, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    loop {
        match GROUPS.iter().position(is_free) {
            Some(place) => return Group(place),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Starts a command and notes its group.
fn started(command: &mut Command, group: &Group) -> Result<Child> {
    if IS_CLOSED.load(Ordering::SeqCst) || IS_REFUSED.load(Ordering::SeqCst) {
        return Err(Error::other("interrupted"));
    }
    let child = command.process_group(0).spawn()?;
    GROUPS[group.0].store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
    Ok(child)
}

/// Where no command is started any more, this process ends: what would be wrong without the command is not said.
fn wait_for_the_end() {
    while IS_CLOSED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Runs a command in a process group of its own.
///
/// # Errors
/// It could not be started, or uses the terminal: that stops it, since the terminal is ours.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    let (mut child, group) = spawn(command)?;
    let pid = libc::pid_t::try_from(child.id()).map_err(Error::other)?;
    while let Change::Stopped(signal) = change(pid, 0)? {
        if uses_terminal(signal) {
            kill(&child);
            child.wait()?;
            return Err(no_terminal());
        }
    }
    // Before its number is free.
    drop(group);
    child.wait()
}

/// Whether a child has ended. Its number is not free: it is still to be waited for.
///
/// # Errors
/// It is no child of this process, or uses the terminal: that has stopped it.
pub fn has_ended(child: &Child) -> Result<bool> {
    let pid = libc::pid_t::try_from(child.id()).map_err(Error::other)?;
    match change(pid, libc::WNOHANG)? {
        Change::Stopped(signal) if uses_terminal(signal) => Err(no_terminal()),
        change => Ok(change == Change::Ended),
    }
}

/// Kills a child that is not yet waited for, and its group.
pub fn kill(child: &Child) {
    if let Ok(pid) = libc::pid_t::try_from(child.id()) {
        // SAFETY: no pointers; the process is not reaped yet, so that the number is its group's.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

fn uses_terminal(signal: i32) -> bool {
    signal == libc::SIGTTIN || signal == libc::SIGTTOU
}

fn no_terminal() -> Error {
    Error::other("it uses the terminal, which it cannot")
}

/// What has happened to a process.
#[derive(PartialEq, Eq)]
enum Change {
    Ended,
    /// By a signal.
    Stopped(i32),
    None,
}

/// What happens next to a process; with `WNOHANG`, what has happened.
fn change(pid: libc::pid_t, options: i32) -> Result<Change> {
    // SAFETY: zeros are a value of it, and the calls only fill it in.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let mut wait = |options| loop {
        // SAFETY: as above; a child's siginfo has a number and a status.
        unsafe {
            if libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) == 0 {
                return Ok(match info.si_code {
                    _ if info.si_pid() == 0 => Change::None,
                    libc::CLD_STOPPED => Change::Stopped(info.si_status()),
                    _ => Change::Ended,
                });
            }
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    };
    let change = wait(options | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
    if matches!(change, Change::Stopped(_)) {
        // So that it is not reported again. It may have been continued meanwhile.
        wait(libc::WSTOPPED | libc::WNOHANG)?;
    }
    Ok(change)
}

/// Ends the commands that run; others may follow. Async-signal-safe.
pub fn end_running(signal: i32) {
    ENDED_EARLY.store(true, Ordering::SeqCst);
    for group in GROUPS.iter().map(|group| group.load(Ordering::SeqCst)).filter(|group| *group > 0) {
        end_group(group, signal);
    }
}

fn end_group(group: libc::pid_t, signal: i32) {
    // SAFETY: no pointers; async-signal-safe. A command that waits for the terminal must continue to end.
    unsafe {
        libc::kill(-group, signal);
        libc::kill(-group, libc::SIGCONT);
    }
}

/// Ends the commands that run, and starts no others: this process ends. Async-signal-safe.
pub fn end_all() {
    close(&IS_CLOSED, libc::SIGTERM);
}

/// Ends the commands that run, and makes it an error to start others. Async-signal-safe.
pub fn refuse(signal: i32) {
    close(&IS_REFUSED, signal);
}

fn close(door: &AtomicBool, signal: i32) {
    door.store(true, Ordering::SeqCst);
    // A thread that starts a command either sees that, or has noted its group when it is done.
    let own = u32::from(IS_STARTING.get());
    while STARTING.load(Ordering::SeqCst) > own {
        std::hint::spin_loop();
    }
    end_running(signal);
}

/// Whether the failure of a command may be due to [`end_running`].
pub fn were_ended_early() -> bool {
    ENDED_EARLY.load(Ordering::SeqCst)
}

/// All signals are blocked in this thread, until dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> Blocked {
        // SAFETY: zeros are a value of it; the calls fill in what they are given.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Blocked(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask of before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn is_noted(group: u32) -> bool {
        GROUPS.iter().any(|noted| noted.load(Ordering::SeqCst) == group as i32)
    }

    #[test]
    fn every_command_that_runs_is_noted_with_a_group_of_its_own() {
        let started: Vec<_> = (0..3).map(|_| spawn(Command::new("sleep").arg("600")).unwrap()).collect();
        // SAFETY: no pointers.
        let own = |child: &Child| unsafe { libc::getpgid(child.id() as i32) } == child.id() as i32;
        assert!(started.iter().all(|(child, _)| own(child) && is_noted(child.id())));
        for (mut child, group) in started {
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(is_noted(child.id()));
            drop(group);
            assert!(!is_noted(child.id()));
        }
    }

    #[test]
    fn the_place_of_a_command_that_could_not_be_started_is_free() {
        let starts = |place: &usize| GROUPS[*place].load(Ordering::SeqCst) == STARTS;
        assert!(spawn(&mut Command::new("/nowhere")).is_err());
        // Other tests start commands at the same time: their places are not at their start for long.
        let mut at_their_start: Vec<usize> = (0..MOST).filter(starts).collect();
        let begun = Instant::now();
        while !at_their_start.is_empty() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "places {at_their_start:?} stay at their start"
            );
            std::thread::sleep(Duration::from_millis(1));
            at_their_start.retain(starts);
        }
    }

    #[test]
    fn no_signal_is_blocked_in_a_command() {
        // Not by a shell, which may set its own mask.
        let words = ["-q", "^SigBlk:[[:space:]]*0*$", "/proc/self/status"];
        assert!(status(Command::new("grep").args(words)).unwrap().success());
    }

    #[test]
    fn a_command_that_was_stopped_goes_on_unless_it_uses_the_terminal() {
        let run = |text: &str| {
            let mut command = Command::new("sh");
            // SAFETY: async-signal-safe. Where these tests are started, it may be ignored.
            unsafe {
                command.pre_exec(|| {
                    libc::signal(libc::SIGTTIN, libc::SIG_DFL);
                    Ok(())
                })
            };
            status(command.arg("-c").arg(text))
        };
        let stopped = "(while kill -CONT $$; do sleep 0.01; done) 2>/dev/null & kill -STOP $$; exit 3";
        assert_eq!(run(stopped).unwrap().code(), Some(3));
        assert!(run("kill -TTIN $$; exit 3").unwrap_err().to_string().contains("terminal"));
    }
}
