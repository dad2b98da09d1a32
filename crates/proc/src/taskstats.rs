//! The kernel's own account of each process at its exit (taskstats, linux `Documentation/accounting/taskstats.rst`).
//!
//! Costs the program nothing, includes daemons and children that were never waited for, and has what `rusage`
//! does not: the peak of the address space, and each process's name. Needs CAP_NET_ADMIN and the initial PID
//! namespace.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

// include/uapi/linux/netlink.h, genetlink.h, taskstats.h
const NETLINK_GENERIC: i32 = 16;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TASKSTATS_TYPE_STATS: u16 = 3;
const TASKSTATS_TYPE_AGGR_PID: u16 = 4;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const NLA_TYPE_MASK: u16 = 0x3fff;
/// `ac_tgid` came with version 12 (linux 5.18): without it threads and processes cannot be distinguished.
const LEAST_VERSION: u16 = 12;

/// One task's exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Thread number.
    pub pid: u32,
    /// Process number.
    pub tgid: u32,
    /// Its parent process at the time.
    pub parent: u32,
    /// Its command name, at most 15 bytes.
    pub comm: String,
    /// Peak resident size of its memory, in bytes.
    pub max_rss: u64,
    /// Peak of its address space, in bytes.
    pub peak_virtual: u64,
    /// CPU time of this thread, in nanoseconds.
    pub cpu_ns: u64,
    /// `cpu_ns` is the scheduler's own sum, as of its last tick or switch; otherwise it counts ticks of 1 to 10 ms each.
    pub is_exact: bool,
    /// For how long it waited for a CPU, in nanoseconds; zero on a kernel whose `cpu_ns` is not exact.
    pub waited_ns: u64,
    /// From its start to its end, in nanoseconds.
    pub elapsed_ns: u64,
    /// From its process's start to its own end, in nanoseconds.
    pub process_elapsed_ns: u64,
    /// The second of its end, on the wall clock.
    pub ended_s: u64,
    /// Page faults that needed no disk, of this thread.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Switches to another task, because it waited.
    pub voluntary_switches: u64,
    /// Switches to another task, although it could have continued.
    pub involuntary_switches: u64,
    /// Bytes that this thread read from a disk, and all bytes that it passed to write(2) and similar calls.
    pub read_and_written: u64,
    /// The process's wait status, as wait4(2) returns it; set in the process's last thread.
    pub status: i32,
}

/// A process: the exits of its threads combined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its command name at its end.
    pub comm: String,
    /// Peak resident size, in bytes.
    pub max_rss: u64,
    /// Peak of its address space, in bytes.
    pub peak_virtual: u64,
    /// CPU time over its threads, in nanoseconds.
    pub cpu_ns: u64,
    /// `cpu_ns` is a sum of the scheduler's, not of ticks: never above the truth.
    pub is_exact: bool,
    /// Page faults that needed no disk, over its threads.
    pub minor_faults: u64,
    /// Page faults that waited for a disk, over its threads.
    pub major_faults: u64,
    /// Switches to another task, because a thread waited.
    pub voluntary_switches: u64,
    /// Switches to another task, although a thread could have continued.
    pub involuntary_switches: u64,
    /// Bytes that it read from a disk, and all bytes that it passed to write(2) and similar calls.
    pub read_and_written: u64,
    /// How many threads it had over its life.
    pub threads: u32,
}

/// A socket on which the kernel reports every exit on this machine.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    lost: bool,
}

impl Listener {
    /// Registers for the exits on every CPU.
    pub fn open() -> io::Result<Listener> {
        // SAFETY: plain socket(2); the descriptor is owned from here on.
        let socket = unsafe {
            let fd = libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                NETLINK_GENERIC,
            );
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        // A tree of thousands of processes may end together; FORCE exceeds rmem_max, and may be refused.
        let size: libc::c_int = 8 << 20;
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            // SAFETY: a valid int of its own size.
            unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const size).cast(),
                    std::mem::size_of_val(&size) as libc::socklen_t,
                )
            };
        }
        let mut listener = Listener { socket, lost: false };
        let family = listener.family(b"TASKSTATS\0")?;
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let mut mask = cpus.trim().as_bytes().to_vec();
        mask.push(0);
        listener.send(family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, &mask, NLM_F_ACK)?;
        listener.acknowledged()?;
        Ok(listener)
    }

    /// The descriptor that becomes readable when a process has ended.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes the reported exits; true if the kernel had to drop some.
    pub fn drain(&mut self, into: &mut Vec<Exit>) -> bool {
        let mut buffer = [0u8; 16384];
        loop {
            match self.receive(&mut buffer) {
                Ok(n) => parse(&buffer[..n], into),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.lost = true,
                Err(_) => return std::mem::take(&mut self.lost),
            }
        }
    }

    fn family(&mut self, name: &[u8]) -> io::Result<u16> {
        self.send(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, name, 0)?;
        let mut buffer = [0u8; 4096];
        let n = self.wait_and_receive(&mut buffer)?;
        let message = &buffer[..n];
        refused(message)?;
        let id = attributes(message.get(20..).unwrap_or_default())
            .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
            .and_then(|(_, data)| read_u16(data, 0));
        id.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "this kernel has no taskstats"))
    }

    fn acknowledged(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 16384];
        loop {
            let n = self.wait_and_receive(&mut buffer)?;
            if read_u16(&buffer[..n], 4) == Some(NLMSG_ERROR) {
                return refused(&buffer[..n]);
            }
        }
    }

    fn send(&self, family: u16, command: u8, attribute: u16, data: &[u8], flags: u16) -> io::Result<()> {
        let attribute_length = 4 + data.len();
        let length = 20 + attribute_length.next_multiple_of(4);
        let mut message = vec![0u8; length];
        message[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&family.to_ne_bytes());
        message[6..8].copy_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        message[16] = command;
        message[17] = 1;
        message[20..22].copy_from_slice(&(attribute_length as u16).to_ne_bytes());
        message[22..24].copy_from_slice(&attribute.to_ne_bytes());
        message[24..24 + data.len()].copy_from_slice(data);
        // SAFETY: a valid buffer of its own length.
        let n = unsafe { libc::send(self.descriptor(), message.as_ptr().cast(), message.len(), 0) };
        if n < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: a valid buffer of its own length.
        let n = unsafe { libc::recv(self.descriptor(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if n < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(n as usize)
        }
    }

    fn wait_and_receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut poll = libc::pollfd { fd: self.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, 1000) };
        self.receive(buffer)
    }
}

/// The error in an NLMSG_ERROR message, if it is one and not an acknowledgement.
fn refused(message: &[u8]) -> io::Result<()> {
    if read_u16(message, 4) == Some(NLMSG_ERROR) {
        let code = read_u32(message, 16).map_or(0, |code| code as i32);
        if code != 0 {
            return Err(io::Error::from_raw_os_error(-code));
        }
    }
    Ok(())
}

/// Netlink attributes: type and payload. Ends at the first that does not fit.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = read_u16(bytes, 0)? as usize;
        let kind = read_u16(bytes, 2)? & NLA_TYPE_MASK;
        let data = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, data))
    })
}

/// Every exit in a datagram. Offsets are those of `struct taskstats`, which only ever grows.
fn parse(datagram: &[u8], into: &mut Vec<Exit>) {
    let mut rest = datagram;
    while let Some(length) = read_u32(rest, 0).map(|n| n as usize) {
        let Some(message) = rest.get(..length).filter(|m| m.len() >= 20) else { return };
        for (_, nested) in attributes(&message[20..]).filter(|(kind, _)| *kind == TASKSTATS_TYPE_AGGR_PID) {
            into.extend(
                attributes(nested)
                    .filter(|(kind, _)| *kind == TASKSTATS_TYPE_STATS)
                    .filter_map(|(_, s)| exit(s)),
            );
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn exit(stats: &[u8]) -> Option<Exit> {
    if read_u16(stats, 0)? < LEAST_VERSION {
        return None;
    }
    let comm = stats.get(80..112)?;
    let comm = &comm[..comm.iter().position(|b| *b == 0).unwrap_or(comm.len())];
    Some(Exit {
        comm: String::from_utf8_lossy(comm).into_owned(),
        pid: read_u32(stats, 128)?,
        parent: read_u32(stats, 132)?,
        cpu_ns: cpu_ns(stats)?.0,
        is_exact: cpu_ns(stats)?.1,
        // cpu_delay_total: the wait that schedstat has, until the end.
        waited_ns: read_u64(stats, 24)?,
        elapsed_ns: read_u64(stats, 144)?.saturating_mul(1000),
        process_elapsed_ns: read_u64(stats, 376)?.saturating_mul(1000),
        // The kernel subtracts whole seconds (bacct_add_tsk, kernel/tsacct.c).
        ended_s: read_u64(stats, 344)?.saturating_add(read_u64(stats, 144)? / 1_000_000),
        status: read_u32(stats, 4)? as i32,
        minor_faults: read_u64(stats, 168)?,
        major_faults: read_u64(stats, 176)?,
        voluntary_switches: read_u64(stats, 272)?,
        involuntary_switches: read_u64(stats, 280)?,
        // read_bytes and write_char: what may have entered the page cache.
        read_and_written: read_u64(stats, 248)?.saturating_add(read_u64(stats, 224)?),
        max_rss: read_u64(stats, 200)?.saturating_mul(1024),
        peak_virtual: read_u64(stats, 208)?.saturating_mul(1024),
        tgid: read_u32(stats, 368)?,
    })
}

/// `cpu_run_virtual_total` is the scheduler's own sum; `ac_utime` and `ac_stime` only count ticks (kernel/delayacct.c and
/// kernel/tsacct.c). A kernel without delay accounting leaves the former at zero.
fn cpu_ns(stats: &[u8]) -> Option<(u64, bool)> {
    let exact = read_u64(stats, 72)?;
    let ticks = read_u64(stats, 152)?.saturating_add(read_u64(stats, 160)?).saturating_mul(1000);
    Some(if exact > 0 { (exact, true) } else { (ticks, false) })
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The clock of [`Exit::ended_s`] has whole seconds, and may be late by a tick.
const COARSE_NS: i64 = 1_010_000_000;

/// The exits of one process. The kernel uses numbers again: exits of one number may be those of several processes.
struct Life {
    number: u32,
    /// At its last exit.
    parent: u32,
    /// When it began, on the wall clock, or up to [`COARSE_NS`] later.
    began_ns: i64,
    /// When it ended, or up to [`COARSE_NS`] later.
    ended_ns: i64,
    /// The places of its exits in the list.
    exits: Vec<usize>,
}

impl Life {
    fn last(&self) -> usize {
        self.exits.last().copied().unwrap_or(0)
    }

    /// Whether the times allow it to be the parent of that process: it began before it, and lived when it began.
    fn may_have_started(&self, child: &Life) -> bool {
        self.began_ns <= child.began_ns + COARSE_NS && self.ended_ns + COARSE_NS >= child.began_ns
    }
}

/// The processes among the exits, in the order of their first exits.
struct Lives {
    all: Vec<Life>,
    by_number: HashMap<u32, Vec<usize>>,
}

impl Lives {
    fn of(exits: &[Exit]) -> Lives {
        let mut lives = Lives { all: Vec::new(), by_number: HashMap::new() };
        for (place, exit) in exits.iter().enumerate() {
            let ended_ns = (exit.ended_s as i64).saturating_mul(1_000_000_000);
            let began_ns = ended_ns.saturating_sub(exit.process_elapsed_ns as i64);
            let known = lives.by_number.entry(exit.tgid).or_default();
            let last = known.last().map(|&at| &mut lives.all[at]);
            match last.filter(|life| life.began_ns.abs_diff(began_ns) <= COARSE_NS as u64) {
                Some(life) => {
                    (life.parent, life.ended_ns) = (exit.parent, ended_ns);
                    life.exits.push(place);
                }
                None => {
                    known.push(lives.all.len());
                    let (number, parent) = (exit.tgid, exit.parent);
                    lives.all.push(Life { number, parent, began_ns, ended_ns, exits: vec![place] });
                }
            }
        }
        lives
    }

    /// A parent lives when its child ends, and nothing else has its number then: it is the next of that number that
    /// ends. If both end at once, it may have been reported just before its child.
    fn parent(&self, child: &Life) -> Option<&Life> {
        let named = self.by_number.get(&child.parent)?.iter().map(|&at| &self.all[at]);
        let possible = || named.clone().filter(|life| life.may_have_started(child));
        possible().find(|life| life.last() > child.last()).or_else(|| possible().next_back())
    }

    /// The ancestor of a process that is a child of the launcher, or the process itself.
    fn first<'a>(&'a self, mut life: &'a Life, launcher: u32) -> Option<&'a Life> {
        // A chain longer than the number of processes contains a cycle.
        for _ in 0..=self.all.len() {
            if life.parent == launcher {
                return Some(life);
            }
            life = self.parent(life)?;
        }
        None
    }
}

/// Removes the processes of one run from the exits reported since the previous run: its root, every process
/// whose parent is one of them and, if there were `orphans`, those that were reparented to the launcher.
///
/// The list may already contain exits of the next run. They come later, since the launcher begins a run only
/// after the previous one has ended entirely. Their process numbers come after that of their own root, `next`
/// where it is known, since the kernel assigns numbers in a circle.
pub fn take(
    exits: &mut Vec<Exit>,
    root: u32,
    launcher: u32,
    next: Option<u32>,
    orphans: bool,
) -> Vec<Process> {
    let lives = Lives::of(exits);
    let before_next =
        |orphan: u32| next.is_none_or(|next| orphan.wrapping_sub(root) < next.wrapping_sub(root));
    let is_ours = |life: &&Life| {
        let is_started = |life: &Life| life.number == root || (orphans && before_next(life.number));
        life.number != launcher && lives.first(life, launcher).is_some_and(is_started)
    };
    let ours: Vec<&Life> = lives.all.iter().filter(is_ours).collect();
    let processes = ours.iter().map(|life| process(life, exits)).collect();
    let through = ours.iter().map(|life| life.last() + 1).max().unwrap_or(0);
    exits.drain(..through);
    processes
}

/// Combines the exits of a process.
fn process(life: &Life, exits: &[Exit]) -> Process {
    let mut process = Process { pid: life.number, is_exact: true, ..Process::default() };
    for exit in life.exits.iter().map(|&place| &exits[place]) {
        if process.comm.is_empty() || exit.pid == exit.tgid {
            process.comm.clone_from(&exit.comm);
        }
        process.max_rss = process.max_rss.max(exit.max_rss);
        process.peak_virtual = process.peak_virtual.max(exit.peak_virtual);
        process.cpu_ns += exit.cpu_ns;
        process.is_exact &= exit.is_exact;
        process.minor_faults += exit.minor_faults;
        process.major_faults += exit.major_faults;
        process.voluntary_switches += exit.voluntary_switches;
        process.involuntary_switches += exit.involuntary_switches;
        process.read_and_written = process.read_and_written.saturating_add(exit.read_and_written);
        process.threads += 1;
    }
    process
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(pid: u32, tgid: u32, parent: u32, resident: u64) -> Exit {
        Exit {
            pid,
            tgid,
            parent,
            comm: format!("p{tgid}"),
            max_rss: resident,
            peak_virtual: 2 * resident,
            cpu_ns: 10,
            is_exact: true,
            waited_ns: 0,
            elapsed_ns: 20,
            process_elapsed_ns: 20,
            ended_s: 0,
            minor_faults: 1,
            major_faults: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
            read_and_written: 0,
            status: 0,
        }
    }

    #[test]
    fn a_tree_has_children_threads_and_orphans_only() {
        let exits = [
            exit(12, 12, 11, 5), // grandchild, reported before its parent
            exit(11, 11, 10, 7),
            exit(21, 20, 1, 9), // unrelated
            exit(13, 13, 2, 3), // an orphan, reparented to the launcher
            exit(15, 10, 2, 8), // a thread of the root
            exit(10, 10, 2, 6),
        ];
        let mut found: Vec<_> = take(&mut exits.to_vec(), 10, 2, None, true)
            .into_iter()
            .map(|p| (p.comm, p.max_rss, p.threads))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [("p10".into(), 8, 2), ("p11".into(), 7, 1), ("p12".into(), 5, 1), ("p13".into(), 3, 1)]
        );
    }

    #[test]
    fn a_cycle_of_parents_terminates() {
        assert!(take(&mut vec![exit(5, 5, 6, 1), exit(6, 6, 5, 1)], 10, 2, None, true).is_empty());
    }

    /// An exit in that second, of a process that began `age` seconds before.
    fn aged(ended_s: u64, age: u64, exit: Exit) -> Exit {
        let elapsed = age * 1_000_000_000;
        Exit { ended_s, elapsed_ns: elapsed, process_elapsed_ns: elapsed, ..exit }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut exits = vec![
            aged(105, 50, exit(11, 11, 1, 900)), // another program's, before the run had that number
            aged(105, 40, exit(40, 40, 12, 900)), // a child of another program's process
            aged(106, 60, exit(12, 12, 1, 900)),
            aged(110, 0, exit(12, 12, 10, 5)), // the run's, with these two numbers
            aged(110, 0, exit(11, 11, 10, 6)),
            aged(120, 0, exit(11, 11, 10, 7)),    // and once more
            aged(122, 70, exit(41, 41, 11, 900)), // an older process: its parent was no child of the run
            aged(123, 15, exit(10, 10, 2, 8)),
        ];
        let found = take(&mut exits, 10, 2, None, false);
        let sizes: Vec<_> = found.iter().map(|p| (p.pid, p.max_rss)).collect();
        assert_eq!(sizes, [(12, 5), (11, 6), (11, 7), (10, 8)]);
    }

    #[test]
    fn a_parent_may_be_reported_just_before_its_child() {
        let mut exits = vec![
            aged(100, 0, exit(11, 11, 10, 6)),
            aged(100, 0, exit(12, 12, 11, 5)),
            aged(100, 1, exit(10, 10, 2, 8)),
            aged(130, 0, exit(11, 11, 1, 900)),
        ];
        assert_eq!(take(&mut exits, 10, 2, None, false).len(), 3);
    }

    #[test]
    fn an_orphan_belongs_to_the_run_in_flight() {
        let names = |processes: Vec<Process>| processes.into_iter().map(|p| p.comm).collect::<Vec<_>>();
        // Process numbers wrap: the second run begins with 301. Its first orphan ends before its root.
        let mut exits = vec![
            exit(32_760, 32_760, 2, 1),
            exit(32_766, 32_766, 2, 1),
            exit(300, 300, 2, 1),
            exit(7, 7, 1, 1), // unrelated
            exit(303, 303, 2, 1),
            exit(302, 302, 301, 1),
            exit(301, 301, 2, 1),
        ];
        assert_eq!(names(take(&mut exits, 32_760, 2, Some(301), true)), ["p32760", "p32766", "p300"]);
        assert_eq!(names(take(&mut exits, 301, 2, None, true)), ["p303", "p302", "p301"]);
        assert!(exits.is_empty());
    }

    #[test]
    fn without_orphans_the_next_run_need_not_be_known() {
        let mut exits = vec![exit(11, 11, 10, 1), exit(10, 10, 2, 1), exit(12, 12, 2, 1)];
        assert_eq!(take(&mut exits, 10, 2, None, false).len(), 2);
        assert_eq!(exits.len(), 1);
    }

    #[test]
    fn hostile_datagrams_yield_nothing_and_do_not_panic() {
        let mut exits = Vec::new();
        parse(&[], &mut exits);
        parse(&[0; 64], &mut exits);
        parse(&[255; 64], &mut exits);
        for cut in 0..64u8 {
            let mut bytes = vec![cut, 0, 0, 0];
            bytes.extend([4; 60]);
            parse(&bytes, &mut exits);
        }
        assert!(exits.is_empty());
    }
}
