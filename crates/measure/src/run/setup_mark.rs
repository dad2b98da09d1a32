//! The marks of processes that setup and teardown start, which find those that are left, whatever their session and parent: a
//! variable, and an open descriptor. A server that shows its state as its title (nginx, redis) overwrites its environment;
//! others close their descriptors.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::run::memory_file::memory_file;

const VARIABLE: &str = "WIDTHWISE_SETUP";
/// The descriptor's number is the first free one from here: shells and users take low ones. The second is for a low limit.
const NUMBERS: [RawFd; 2] = [100, 10];

/// The variable with its value. The number of this process may be that of another process after its end; the time is not.
pub(crate) fn variable() -> String {
    format!("{VARIABLE}={}", value())
}

fn value() -> &'static str {
    static VALUE: OnceLock<String> = OnceLock::new();
    VALUE.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", std::process::id(), since.as_nanos())
    })
}

/// A descriptor with one number in all marked processes: a search reads one link of each process.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// A file with the mark in its name.
    file: File,
    /// Another file, which keeps the number free in this process: this process has no mark.
    place: OwnedFd,
    /// What a link to the file in `/proc/PID/fd` leads to.
    pub(crate) link: String,
}

impl Descriptor {
    fn new() -> io::Result<Descriptor> {
        let name = format!("widthwise-setup-{}", value());
        let file = memory_file(&CString::new(&*name)?)?;
        let other = File::open("/dev/null")?;
        let place = NUMBERS.iter().find_map(|&least| {
            // SAFETY: no pointers; the new descriptor has no other owner.
            unsafe {
                let number = libc::fcntl(other.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least);
                (number != -1).then(|| OwnedFd::from_raw_fd(number))
            }
        });
        let place = place.ok_or_else(io::Error::last_os_error)?;
        Ok(Descriptor { file, place, link: format!("/memfd:{name} (deleted)") })
    }

    /// Its place in the folder of a process in `/proc`.
    pub(crate) fn path(&self) -> String {
        format!("fd/{}", self.place.as_raw_fd())
    }
}

/// None where there are no descriptors left, or no memory files: the variable is the only mark.
pub(crate) fn descriptor() -> Option<&'static Descriptor> {
    static DESCRIPTOR: OnceLock<Option<Descriptor>> = OnceLock::new();
    DESCRIPTOR.get_or_init(|| Descriptor::new().ok()).as_ref()
}

/// Gives a command the descriptor. Its number may be above the limit of descriptors that the command is given afterwards.
pub(crate) fn give_descriptor(command: &mut Command) {
    let Some(descriptor) = descriptor() else { return };
    let (file, number) = (descriptor.file.as_raw_fd(), descriptor.place.as_raw_fd());
    // SAFETY: one system call between fork and exec: no other command that starts at this time has the descriptor.
    unsafe {
        command.pre_exec(move || {
            libc::dup2(file, number);
            Ok(())
        })
    };
}

/// Gives a command the variable.
pub(crate) fn give_variable(command: &mut Command) {
    command.env(VARIABLE, value());
}

/// Whether a process has the descriptor; the folder is its own in `/proc`.
pub(crate) fn has_descriptor(process: &Path) -> bool {
    descriptor().is_some_and(|descriptor| {
        std::fs::read_link(process.join(descriptor.path())).is_ok_and(|link| *link == *descriptor.link)
    })
}
