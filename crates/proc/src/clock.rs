//! The clocks of the system: time that passes, and CPU time that is used. All in nanoseconds.

/// CLOCK_MONOTONIC: the clock of the launcher.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CLOCK_BOOTTIME: the clock of processes' start times.
pub fn since_boot() -> u64 {
    read(libc::CLOCK_BOOTTIME).unwrap_or(0)
}

/// CLOCK_REALTIME_COARSE: the clock of files' times, as seconds and nanoseconds.
pub fn of_files() -> (i64, i64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut time) };
    (time.tv_sec, time.tv_nsec)
}

/// The time between two ticks of the scheduler: what its coarse clocks resolve.
pub fn tick() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_nsec.unsigned_abs()
}

/// The CPU time of this thread. A thread that does not run does not read either.
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The CPU time of this process with all its threads.
pub fn own_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The CPU time of a process with all its threads: exact, independent of the tick. Without children. None if it
/// has ended.
pub fn process_cpu(process: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: writes one number.
    let found = unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) } == 0;
    found.then(|| read(clock)).flatten()
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec.
    let read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    read.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
