//! The guardian (`runtime/launcher/guardian.c`): a process that ends what setup and teardown have left in the background if this
//! process is killed. It sleeps until then, and costs runs nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use crate::run::memory_file::memory_file;

/// The guardian's program, built by build.rs.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guardian"));

/// The variable that marks processes left behind by setup and teardown, whatever their session and parent.
pub(crate) const VARIABLE: &str = "WIDTHWISE_SETUP";

/// The variable's value. The number of this process may be that of another process after its end; the time is not.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", std::process::id(), since.as_nanos())
    })
}

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
    // A name that does not contain ours: what kills every process of that name leaves the guardian.
    Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()))
        .arg0("ww-guardian")
        .arg(format!("{VARIABLE}={}", mark()))
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(ours)
}
