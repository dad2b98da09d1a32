//! The sampler reads the memory of a process tree while it runs, at a bounded cost.
//!
//! A thread of its own, on other CPUs than the program's where possible, follows every process that the
//! launcher starts. It has an overhead budget ([`overhead_budget::OverheadBudget`]) for each of its tasks. It
//! finds the processes of the tree and takes statm samples (`/proc/PID/statm`). A pagemap scan finds the
//! resident pages of a tree of one process. An smaps snapshot reads all mappings of the whole tree
//! (`/proc/PID/smaps`): the kernel then walks the page tables and holds a lock that mmap and brk wait for.
//! The sampler takes a snapshot when a statm sample shows a change, when the program writes a mark, and at
//! intervals.
//!
//! The sampler does not know campaigns: [`Sampler::start`] precedes a run, [`Sampler::stop`] follows its end.

pub(crate) mod account;
mod downsample;
pub(crate) mod marks;
mod overhead_budget;
mod pagemap;
mod seen;
pub(crate) mod smaps;
mod thread;
pub(crate) mod tree;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use marks::Marks;
pub use seen::Seen;
use thread::SamplerThread;

/// The share of the program's time that all readings may take. A program that stopped during each reading
/// would be slowed by this much.
pub const SHARE: f64 = 0.005;

/// What to watch, and how.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// The launcher's process number ([`crate::run::Runner::launcher`]): the sampler watches its descendants.
    pub launcher: u32,
    /// The CPUs that the program may use; empty for all. The sampler avoids them where it can.
    pub cpus: Vec<u32>,
    /// What starts x32 programs, where it is used: its own memory is in a class of its own
    /// ([`widthwise_experiment::memory::Class::Runtime`]).
    pub runtime: Option<PathBuf>,
    /// Mappings of files whose paths begin with this are in a class of their own ([`widthwise_experiment::memory::Class::Recorder`]).
    pub recorder: Option<PathBuf>,
    /// A named pipe to make for the program's marks; the program finds its path in [`MARKS`].
    pub marks: Option<PathBuf>,
    /// `memory.stat` of a control group that holds the program and nothing else of size: the tree's anonymous
    /// memory.
    pub group: Option<PathBuf>,
    /// The share of time that readings may take; normally [`SHARE`].
    pub share: f64,
}

/// The environment variable that names the pipe for marks.
pub const MARKS: &str = "WIDTHWISE_MARKS";

/// A running sampler.
#[derive(Debug)]
pub struct Sampler {
    thread: JoinHandle<Seen>,
    stop: Arc<AtomicBool>,
    wake_fd: OwnedFd,
}

impl Sampler {
    /// Starts to watch. The pipe for marks exists when this returns.
    ///
    /// # Errors
    /// The pipe or the thread cannot be made.
    pub fn start(watch: Watch) -> io::Result<Sampler> {
        let marks = watch.marks.as_deref().map(Marks::open).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let wake_fd = wake_fd()?;
        let waits_on = wake_fd.try_clone()?;
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("ww-sampler".into()).spawn(move || {
            avoid(&watch.cpus);
            let mut sampler = SamplerThread::new(watch, marks);
            sampler.watch(&stopped, waits_on.as_raw_fd());
            sampler.close()
        })?;
        Ok(Sampler { thread, stop, wake_fd })
    }

    /// Stops watching, and returns what was seen.
    pub fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: an open descriptor and eight valid bytes.
        unsafe { libc::write(self.wake_fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        self.thread.join().unwrap_or_default()
    }
}

/// The wake fd: wakes the sampler thread.
fn wake_fd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd(2) takes numbers only; the descriptor is owned from here on.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Keeps this thread off the program's CPUs, where others are left.
fn avoid(cpus: &[u32]) {
    for &cpu in cpus {
        crate::core_lock::step_aside(cpu);
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of the launcher.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU time of this thread in nanoseconds. A thread that does not run does not read either.
fn used() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
