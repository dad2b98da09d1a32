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

mod downsample;
pub mod marks;
mod overhead_budget;
mod seen;
mod thread;
mod watch;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::affinity::step_aside;
use marks::Marks;
pub use seen::Seen;
use thread::SamplerThread;
pub use watch::{Watch, MARKS, SHARE};

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
        step_aside(cpu);
    }
}
