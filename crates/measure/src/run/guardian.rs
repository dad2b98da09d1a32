//! The guardian (`runtime/launcher/guardian.c`): a process that ends what setup and teardown have left in the background if this
//! process is killed. It sleeps until then, and costs runs nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::run::memory_file::memory_file;
use crate::run::setup_mark;

/// The guardian's program, built by build.rs.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guardian"));

/// Starts it, unless it runs. Where it cannot be started, processes outlive a killed widthwise, and nothing else changes.
pub(crate) fn start() {
    // It ends when this process does: the kernel closes the pipe.
    static PIPE: OnceLock<Option<io::PipeWriter>> = OnceLock::new();
    PIPE.get_or_init(|| begin().ok());
}

fn begin() -> io::Result<io::PipeWriter> {
    let mut image: File = memory_file(c"widthwise-guardian")?;
    image.write_all(IMAGE)?;
    let (theirs, ours) = io::pipe()?;
    let descriptor = setup_mark::descriptor().map(|mark| [mark.path(), mark.link.clone()]);
    // A name that does not contain ours: what kills every process of that name leaves the guardian.
    Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()))
        .arg0("ww-guardian")
        .arg(setup_mark::variable())
        .args(descriptor.into_iter().flatten())
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(ours)
}
