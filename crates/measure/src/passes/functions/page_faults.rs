//! The kernel's report of every page fault of a run: a software event of perf, which needs no hardware counters.
//!
//! One event for each CPU is opened on the launcher, inherited by the program and enabled by its `execve`. A thread beside the run
//! takes the reports.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::passes::functions::fault_sites::Reports;
use crate::passes::functions::recording::PageFaults;

/// Bytes of the reports of one CPU: what a user without rights may lock in memory (`kernel.perf_event_mlock_kb` is 516 by default,
/// one page of it for the head).
const RING: usize = 512 << 10;
/// How often the reports are taken: 512 KiB hold some 13,000, and a CPU makes one in no less than 0.1 microseconds.
const TICK: Duration = Duration::from_millis(1);

/// The reports of a run in flight.
pub struct Watch {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Reports>,
    with_kernel: bool,
}

impl Watch {
    /// Begins to watch what the process `launcher` starts.
    ///
    /// # Errors
    /// Why the kernel reports nothing, with what would fix it.
    pub fn start(launcher: u32) -> Result<Watch, String> {
        let (mut samplers, with_kernel) = match open(launcher, true) {
            Ok(samplers) => (samplers, true),
            Err(error) if is_refused(&error) => {
                (open(launcher, false).map_err(|error| reason(&error))?, false)
            }
            Err(error) => return Err(reason(&error)),
        };
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let take_all = move || {
            let mut reports = Reports::default();
            loop {
                // Read before the rings: what comes until then is taken.
                let is_last = end.load(Ordering::Acquire);
                for sampler in &mut samplers {
                    while let Some(record) = sampler.next_record() {
                        reports.take(record.ty(), record.misc(), &record.to_contiguous());
                    }
                }
                if is_last {
                    return reports;
                }
                std::thread::sleep(TICK);
            }
        };
        let thread = std::thread::Builder::new().name("page faults".into()).spawn(take_all);
        Ok(Watch { ends, thread: thread.map_err(|error| error.to_string())?, with_kernel })
    }

    /// The page faults so far.
    ///
    /// # Errors
    /// The thread failed.
    pub fn stop(self) -> Result<PageFaults, String> {
        self.ends.store(true, Ordering::Release);
        let reports = self.thread.join().map_err(|_| "the thread that read the reports failed".to_owned())?;
        let lost = reports.lost;
        Ok(PageFaults { sites: reports.sites(), lost, with_kernel: self.with_kernel })
    }
}

/// One sampler for each CPU: an inherited event has no reports of all CPUs in one place (`perf_mmap` in `kernel/events/core.c`).
fn open(launcher: u32, with_kernel: bool) -> io::Result<Vec<Sampler>> {
    // SAFETY: sysconf reads a number.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1) as usize;
    let mut samplers = Vec::new();
    for cpu in 0..configured {
        let built = Builder::new(Software::PAGE_FAULTS)
            .observe_pid(launcher as i32)
            .one_cpu(cpu)
            .inherit(true)
            .enable_on_exec(true)
            .exclude_kernel(!with_kernel)
            .exclude_hv(true)
            .sample_period(1)
            .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME)
            .sample_id_all(true)
            .mmap(true)
            .comm(true)
            .comm_exec(true)
            .task(true)
            .build();
        match built {
            Ok(counter) => samplers.push(counter.sampled(RING)?),
            // The CPU is offline.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    match samplers.is_empty() {
        true => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        false => Ok(samplers),
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "the kernel does not report them to this user: `sysctl kernel.perf_event_paranoid=2` fixes it"
                .to_owned()
        }
        Some(libc::ENOSYS) => {
            "the kernel was built without perf events, or a sandbox forbids them".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}
