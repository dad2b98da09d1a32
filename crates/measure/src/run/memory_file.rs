//! Files that exist in memory only (memfd_create(2)).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// An empty file; `/proc/PID/fd` shows its name.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: a valid C string; the descriptor has no other owner.
    unsafe {
        match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}
