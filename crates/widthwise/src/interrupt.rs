//! Ctrl-C. While the machine is examined, it ends the tools that do so, and then the process. During a build it ends the build and the process. During the rounds, the first one ends the campaign after the current run, and the second one ends that run too.
//! After the last run, and in verbs without runs, it ends the process at once; a file that is being written is completed first.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU8, Ordering};
use std::sync::OnceLock;

use signal_hook::consts::{SIGHUP, SIGINT, SIGKILL, SIGTERM};
use signal_hook::low_level;

use widthwise_machine::process_group;

use crate::failure::{self, Failure};

static TIMES: AtomicU8 = AtomicU8::new(0);
static LISTENS: AtomicBool = AtomicBool::new(false);
/// The process whose signals are handled.
static OWN: AtomicU32 = AtomicU32::new(0);
/// Whether the machine is being examined: a signal ends the tools that do so, and what needs them ends early.
static EXAMINES: AtomicBool = AtomicBool::new(false);
/// Whether variants are being built: a signal ends the build and the process.
static BUILDS: AtomicBool = AtomicBool::new(false);
/// How a signal ends the process; unset as long as signals are only counted.
static END: OnceLock<End> = OnceLock::new();
/// Files that are being written.
static WRITERS: AtomicU32 = AtomicU32::new(0);
/// The signal that ends the process; 0: none arrived.
static ENDING_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// What the first signal during the rounds prints. A run may take minutes.
const HEARD: &str = "\nending after the current run; a second Ctrl-C ends that run, too\n";

/// What a signal during a build prints.
const WHILE_BUILDING: &str = "\ninterrupted while building: no run was made\n";

#[derive(Debug)]
enum End {
    /// By the default action of the signal.
    BySignal,
    /// With this line on standard error and the exit status of an interrupt.
    Saying(String),
}

/// How often the user has interrupted: 0 never; 1 the campaign ends after this run; 2 it ends at once.
pub fn times() -> &'static AtomicU8 {
    &TIMES
}

/// Whether the user has interrupted.
pub fn is_wanted() -> bool {
    TIMES.load(Ordering::SeqCst) > 0
}

/// Examines the machine. SIGINT, SIGTERM and SIGHUP end the tools that do so; what is temporary is removed. A second signal
/// ends the process at once. Afterwards signals do what they did before, or are only counted.
///
/// # Errors
/// Interrupted.
pub fn while_examining<T>(examine: impl FnOnce() -> T) -> Result<T, Failure> {
    let was_building = BUILDS.load(Ordering::SeqCst);
    listen().map_err(Failure::machine)?;
    EXAMINES.store(true, Ordering::SeqCst);
    let found = examine();
    EXAMINES.store(false, Ordering::SeqCst);
    if was_building {
        end_with_the_build().map_err(Failure::machine)?;
    }
    if is_wanted() {
        return Err(Failure::interrupted());
    }
    Ok(found)
}

/// From now on SIGINT, SIGTERM and SIGHUP end the build that runs and the process.
pub fn end_with_the_build() -> std::io::Result<()> {
    listen()?;
    BUILDS.store(true, Ordering::SeqCst);
    // One that came before.
    if is_wanted() {
        end_build();
    }
    Ok(())
}

/// From now on SIGINT, SIGTERM and SIGHUP are counted and do not end the process.
pub fn listen() -> std::io::Result<()> {
    BUILDS.store(false, Ordering::SeqCst);
    register(&[SIGINT, SIGTERM, SIGHUP])
}

/// From now on SIGINT and SIGTERM end the process by default, but leave no half-written file.
pub fn end_by_signal() -> std::io::Result<()> {
    let _ = END.set(End::BySignal);
    register(&[SIGINT, SIGTERM])
}

/// With a limit on file sizes (`ulimit -f`) a write that exceeds it fails, and is reported, as on a full disk: by default the
/// signal ends the process. Programs that are started have the default again, since execve(2) removes handlers.
pub fn survive_file_size_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        // SAFETY: the handler does nothing. Without it the process ends as before.
        let _ = unsafe { low_level::register(libc::SIGXFSZ, || ()) };
    }
}

/// Handles these signals, once in a process.
fn register(signals: &[i32]) -> std::io::Result<()> {
    if LISTENS.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    OWN.store(std::process::id(), Ordering::SeqCst);
    for signal in signals.iter().copied().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: the handler only touches atomics, writes to a file descriptor and ends the process.
        unsafe { low_level::register(signal, move || handle(signal))? };
    }
    Ok(())
}

/// All runs are complete: from now on a signal ends the process at once and prints this line. `is_obeyed`: earlier signals
/// have ended the rounds; otherwise an earlier signal ends the process now.
pub fn end_at_once(line: &str, is_obeyed: bool) -> std::io::Result<()> {
    listen()?;
    let _ = END.set(End::Saying(format!("\n{line}\n")));
    if !is_obeyed && is_wanted() {
        ENDING_SIGNAL.store(SIGINT, Ordering::SeqCst);
        end_if_wanted();
    }
    Ok(())
}

/// Writes files that must be complete or absent: a signal that arrives meanwhile ends the process afterwards.
pub fn finish<T>(write: impl FnOnce() -> T) -> T {
    WRITERS.fetch_add(1, Ordering::SeqCst);
    let written = write();
    WRITERS.fetch_sub(1, Ordering::SeqCst);
    end_if_wanted();
    written
}

/// The handler of all signals.
fn handle(signal: i32) {
    // A child between fork(2) and execve(2) has the handler and copies of what it reads, in which nothing changes any more.
    if std::process::id() != OWN.load(Ordering::SeqCst) {
        return;
    }
    if BUILDS.load(Ordering::SeqCst) {
        end_build();
    }
    let before = TIMES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_add(1)));
    if EXAMINES.load(Ordering::SeqCst) {
        match before {
            Ok(0) => return process_group::refuse(SIGTERM),
            _ => process_group::refuse(SIGKILL),
        }
        // SAFETY: async-signal-safe.
        unsafe { libc::_exit(failure::INTERRUPTED.into()) };
    }
    if END.get().is_none() && before == Ok(0) {
        // SAFETY: write(2) is async-signal-safe, and the text lives as long as the process.
        unsafe { libc::write(libc::STDERR_FILENO, HEARD.as_ptr().cast(), HEARD.len()) };
    }
    if END.get().is_none() {
        // Setup and teardown commands and filters belong to the run that the second one ends.
        match before {
            Ok(1) => process_group::end_running(SIGTERM),
            Ok(2..) => process_group::end_running(SIGKILL),
            _ => {}
        }
    }
    if END.get().is_some() {
        // Either this handler sees that no file is being written, or the writer sees the signal.
        ENDING_SIGNAL.store(signal, Ordering::SeqCst);
        end_if_wanted();
    }
}

/// Ends the builds that run, and the process. Async-signal-safe.
fn end_build() {
    process_group::end_all();
    // SAFETY: these calls are async-signal-safe, and the text lives as long as the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, WHILE_BUILDING.as_ptr().cast(), WHILE_BUILDING.len());
        libc::_exit(failure::INTERRUPTED.into());
    }
}

/// Ends the process if a signal asks for it and no file is being written. Async-signal-safe.
fn end_if_wanted() {
    let signal = ENDING_SIGNAL.load(Ordering::SeqCst);
    if signal == 0 || WRITERS.load(Ordering::SeqCst) > 0 {
        return;
    }
    if let Some(End::Saying(line)) = END.get() {
        // SAFETY: the line lives as long as the process.
        unsafe {
            libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
            libc::_exit(failure::INTERRUPTED.into());
        }
    }
    let _ = low_level::emulate_default_handler(signal);
}

/// Whether the process was started with the signal ignored, as in the background of a script or by nohup(1).
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeros are a value of it, and the call only fills it in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_is_finished_before_a_signal_ends_the_process() {
        // No end is set in tests: a signal that was kept back would show in what is left to do.
        let inner = finish(|| finish(|| WRITERS.load(Ordering::SeqCst)));
        assert_eq!((inner, WRITERS.load(Ordering::SeqCst)), (2, 0));
    }
}
