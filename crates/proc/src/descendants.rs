//! The processes and threads that a process started: its descendants, their threads and programs, in `/proc`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::clock;

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of one thread (CONFIG_PROC_CHILDREN: CRIU needs it, and every distribution sets it).
pub fn children(pid: u32, thread: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Every descendant of the launcher, with its parent: the launcher's children include orphans.
pub fn descendants(launcher: u32) -> BTreeMap<u32, u32> {
    descendants_and(launcher, |_, _| {})
}

/// The same; `task` receives the number of each thread, and that of its process.
pub fn descendants_and(launcher: u32, mut task: impl FnMut(u32, u32)) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    let mut next: Vec<(u32, u32)> =
        children(launcher, launcher).into_iter().map(|pid| (pid, launcher)).collect();
    while let Some((pid, parent)) = next.pop() {
        if found.insert(pid, parent).is_none() {
            for thread in threads(pid) {
                task(thread, pid);
                next.extend(children(pid, thread).into_iter().map(|child| (child, pid)));
            }
        }
    }
    found
}

/// The file that a process executes.
pub fn program(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The session of a process: the number of the process that began it (setsid(2)).
pub fn session(pid: u32) -> Option<u32> {
    stat_field(pid, 3)
}

/// A field of proc_pid_stat(5), counted from the state, which follows the name in brackets.
fn stat_field<T: std::str::FromStr>(pid: u32, field: usize) -> Option<T> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(field)?.parse().ok()
}

/// When a process was made, as `now` would have said: to a tick of the kernel's clock (10 ms), and not later than it was.
pub fn made_at(pid: u32) -> Option<u64> {
    /// `starttime`.
    const START_TIME: usize = 19;
    /// USER_HZ, which is 100 on every architecture here.
    const TICK: u64 = 10_000_000;
    let ticks: u64 = stat_field(pid, START_TIME)?;
    // That clock continues while the machine is suspended.
    let suspended = clock::since_boot().saturating_sub(clock::now());
    Some(ticks.saturating_mul(TICK).saturating_sub(suspended))
}

/// Whether two processes share one memory: a child of `vfork(2)` has its parent's until it executes a
/// program.
pub fn share_memory(a: u32, b: u32) -> bool {
    /// `enum kcmp_type`, include/uapi/linux/kcmp.h.
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: kcmp(2) takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0 }
}
