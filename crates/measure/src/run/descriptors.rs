//! The limit of open descriptors: many jobs and threads need more than a shell allows (1024). Programs have the shell's.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// Descriptors that no counter takes: for launchers, pipes, the archive and files that are read.
const RESERVE: u64 = 64;

/// The limit that this process was started with, if it has raised it.
static BEFORE: OnceLock<Option<libc::rlimit>> = OnceLock::new();

/// Raises this process's limit as far as it may. What it starts later is given the old one by [`give_back`].
pub(crate) fn raise() {
    BEFORE.get_or_init(|| {
        let before = limit();
        let most = libc::rlimit { rlim_cur: before.rlim_max, ..before };
        // SAFETY: reads a valid structure.
        let is_raised =
            before.rlim_cur < before.rlim_max && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &most) } == 0;
        is_raised.then_some(before)
    });
}

/// Has a process begin with the limit that this one was started with.
pub(crate) fn give_back(command: &mut Command) -> &mut Command {
    let Some(before) = BEFORE.get().copied().flatten() else { return command };
    // SAFETY: one system call between fork and exec. Descriptors above the limit stay open until the exec.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &before) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    }
}

/// The number of descriptors that this process may have.
pub(crate) fn most() -> u64 {
    limit().rlim_cur
}

/// Whether a counter may have this descriptor, the lowest that was free.
pub(crate) fn is_spare(descriptor: RawFd) -> bool {
    leaves_reserve(descriptor.unsigned_abs().into(), most())
}

fn leaves_reserve(descriptor: u64, most: u64) -> bool {
    descriptor.saturating_add(RESERVE.min(most / 4)) < most
}

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes a valid structure.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_leave_a_reserve() {
        assert!(leaves_reserve(959, 1024) && !leaves_reserve(960, 1024));
        assert!(leaves_reserve(40, 64) && !leaves_reserve(48, 64));
        assert!(leaves_reserve(5000, libc::RLIM_INFINITY));
    }
}
