//! What this process was started with, and Rust's runtime changes before `main`: it ignores SIGPIPE, and opens closed standard
//! streams on /dev/null. A program that takes this process's place is to have what the user gave.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::interrupt;

const STREAMS: [i32; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];

static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);
/// A bit for each closed stream.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The loader calls this before Rust's runtime starts.
#[used]
#[link_section = ".init_array"]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    IGNORES_SIGPIPE.store(interrupt::is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    for stream in STREAMS {
        // SAFETY: the call takes numbers, and changes nothing.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << stream, Ordering::Relaxed);
        }
    }
}

/// Gives a program that is about to replace this process the user's streams and SIGPIPE.
pub fn hand_on(command: &mut Command) {
    let ignores_sigpipe = IGNORES_SIGPIPE.load(Ordering::Relaxed);
    let closed = CLOSED.load(Ordering::Relaxed);
    let restore = move || {
        // SAFETY: both calls take numbers alone.
        unsafe {
            if ignores_sigpipe {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            for stream in STREAMS.into_iter().filter(|stream| closed & (1 << stream) != 0) {
                libc::close(stream);
            }
        }
        Ok(())
    };
    // SAFETY: it is async-signal-safe, and there is no fork.
    unsafe { command.pre_exec(restore) };
}
