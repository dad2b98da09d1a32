//! The CPUs of the machine, and those on which processes and threads may run (sched_setaffinity(2)).

/// The CPUs that a process or thread is to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAffinity {
    /// Its number.
    pub pid: u32,
    /// The CPUs.
    pub cpus: Vec<u32>,
    /// Its affinity was not set before.
    pub first: bool,
}

/// Sets the affinity of a process or thread, which may have ended.
pub fn set_affinity(change: &SetAffinity) -> std::io::Result<()> {
    // SAFETY: a cpu_set_t is plain bits, and zero is its empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in &change.cpus {
        if (cpu as usize) < 8 * std::mem::size_of_val(&set) {
            // SAFETY: within the set.
            unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        }
    }
    // SAFETY: a valid set of its own size.
    let result = unsafe { libc::sched_setaffinity(change.pid as i32, std::mem::size_of_val(&set), &set) };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// The CPUs on which a process or thread may run; none if it has ended.
pub fn affinity(pid: u32) -> Option<Vec<u32>> {
    // SAFETY: a cpu_set_t is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a valid set of its own size.
    if unsafe { libc::sched_getaffinity(pid as i32, std::mem::size_of_val(&set), &mut set) } < 0 {
        return None;
    }
    // SAFETY: within the set.
    Some(
        (0..8 * std::mem::size_of_val(&set))
            .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
            .map(|cpu| cpu as u32)
            .collect(),
    )
}

/// How many CPUs of the machine are online: neither an affinity nor a control group's quota makes them fewer.
pub fn online_cpus() -> u64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u64
}

/// Keeps this process, and every thread it will start, off the measured core; on a machine with one CPU it
/// stays.
pub fn step_aside(cpu: u32) {
    // SAFETY: plain data, and calls that only read or write it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = std::mem::size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size, &mut set) == 0 && libc::CPU_COUNT(&set) > 1 {
            libc::CPU_CLR(cpu as usize, &mut set);
            if libc::CPU_COUNT(&set) > 0 {
                libc::sched_setaffinity(0, size, &set);
            }
        }
    }
}

/// Whether this process can only run on those CPUs (on any, if there are none).
pub fn is_beside(cpus: &[u32]) -> bool {
    // SAFETY: plain data, and calls that only write or read it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return false;
        }
        cpus.iter().for_each(|&cpu| libc::CPU_CLR(cpu as usize, &mut set));
        cpus.is_empty() || libc::CPU_COUNT(&set) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_affinity_does_not_change_how_many_cpus_are_online() {
        let online = online_cpus();
        let narrowed = std::thread::spawn(|| {
            // SAFETY: no pointers.
            let thread = unsafe { libc::gettid() } as u32;
            let cpus = affinity(thread).unwrap()[..1].to_vec();
            set_affinity(&SetAffinity { pid: thread, cpus, first: true }).unwrap();
            (std::thread::available_parallelism().unwrap().get(), online_cpus())
        });
        assert_eq!(narrowed.join().unwrap(), (1, online));
    }
}
