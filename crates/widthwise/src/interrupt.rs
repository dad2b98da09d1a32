//! Ctrl-C. While runs are made, once ends the campaign after the current run, twice ends the run too. After the last run,
//! and in verbs that make no runs, it ends the process at once; only a file that is being written is finished first.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU8, Ordering};
use std::sync::OnceLock;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

use crate::failure;

static TIMES: AtomicU8 = AtomicU8::new(0);
static LISTENS: AtomicBool = AtomicBool::new(false);
/// How a signal ends the process, from when on it does.
static END: OnceLock<End> = OnceLock::new();
/// Files that are being written.
static WRITERS: AtomicU32 = AtomicU32::new(0);
/// A signal that came when the process was to end at once; 0: none.
static CAME: AtomicI32 = AtomicI32::new(0);

#[derive(Debug)]
enum End {
    /// As if nobody listened.
    BySignal,
    /// With this line on standard error, and the status of what was interrupted.
    Saying(String),
}

/// How often the user has asked for an end: 0 not, 1 after this run, 2 at once.
pub fn times() -> &'static AtomicU8 {
    &TIMES
}

/// From here on SIGINT, SIGTERM and SIGHUP are counted instead of ending us.
pub fn listen() -> std::io::Result<()> {
    if LISTENS.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // SAFETY: the handler only touches atomics, writes to a file descriptor and ends the process.
        unsafe { low_level::register(signal, move || came(signal))? };
    }
    Ok(())
}

/// From here on SIGINT and SIGTERM end the process as they do anyway, but no file is left half-written.
pub fn end_by_signal() -> std::io::Result<()> {
    let _ = END.set(End::BySignal);
    if LISTENS.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    for signal in [SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)) {
        // SAFETY: as above.
        unsafe { low_level::register(signal, move || came(signal))? };
    }
    Ok(())
}

/// All runs are made: from here on a signal ends the process at once, with this line. `is_obeyed`: what came so far has
/// ended the rounds; else it ends the process now.
pub fn end_at_once(line: &str, is_obeyed: bool) -> std::io::Result<()> {
    listen()?;
    let _ = END.set(End::Saying(format!("\n{line}\n")));
    if !is_obeyed && TIMES.load(Ordering::SeqCst) > 0 {
        CAME.store(SIGINT, Ordering::SeqCst);
        end_if_wanted();
    }
    Ok(())
}

/// Writes files that must be whole or not be there: what ends the process meanwhile ends it afterwards.
pub fn finish<T>(write: impl FnOnce() -> T) -> T {
    WRITERS.fetch_add(1, Ordering::SeqCst);
    let written = write();
    WRITERS.fetch_sub(1, Ordering::SeqCst);
    end_if_wanted();
    written
}

/// The handler of all signals.
fn came(signal: i32) {
    let _ = TIMES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_add(1)));
    if END.get().is_some() {
        // Either this sees that nothing is being written, or the writer sees that this has come.
        CAME.store(signal, Ordering::SeqCst);
        end_if_wanted();
    }
}

/// Ends the process, if it is to end and nothing is being written. Everything here may be called by a signal's handler.
fn end_if_wanted() {
    let signal = CAME.load(Ordering::SeqCst);
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

/// Whether the process was started with the signal ignored, as in the background of a script.
fn is_ignored(signal: i32) -> bool {
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
