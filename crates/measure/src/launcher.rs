//! The launcher's other side: asks `runtime/launcher` for runs and takes its replies.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thiserror::Error;

use crate::cgroup::{Cgroup, Usage};

/// The program itself, built by build.rs.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));

/// `sizeof buffer` in launcher.c.
const MOST_BYTES: usize = 4 << 20;
/// `sizeof pointers / sizeof *pointers` in launcher.c.
const MOST_STRINGS: usize = 1 << 16;
const CPU_WORDS: usize = 16;

/// The launcher could not be started, or went away.
#[derive(Debug, Error)]
pub enum LauncherError {
    /// The launcher's own process could not be made.
    #[error("the launcher could not be started: {0}")]
    LaunchSpec(io::Error),
    /// It ended in the middle of a campaign.
    #[error("the launcher ended unexpectedly ({0}); was it killed? `--resume` goes on from the last run")]
    Gone(io::Error),
    /// The kernel would not take the request either.
    #[error("the command line and environment are too large: {0} bytes")]
    TooLarge(usize),
    /// A string that would be cut short.
    #[error("{0:?} contains a NUL byte")]
    Nul(String),
}

/// What to start, and how.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The file to execute.
    pub file: &'a Path,
    /// Working directory.
    pub directory: &'a Path,
    /// Standard input.
    pub stdin: &'a Path,
    /// Standard output, truncated first.
    pub stdout: &'a Path,
    /// Standard error, truncated first.
    pub stderr: &'a Path,
    /// argv.
    pub arguments: &'a [OsString],
    /// envp, but for the padding.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// The bytes of one more variable, so that the stack begins elsewhere in each run.
    pub padding: usize,
    /// CPUs it may use; empty leaves the affinity alone.
    pub cpus: &'a [u32],
    /// Switch off address space layout randomisation.
    pub no_aslr: bool,
    /// Transparent huge pages.
    pub thp: widthwise_experiment::model::Thp,
    /// Watch every process of the tree to its exit, and read its peaks there (ptrace).
    pub exit_stop: bool,
    /// Whether to find out which of the reaped processes had children.
    pub find_parents: bool,
    /// Its execve waits for this moment (CLOCK_MONOTONIC), so that several launchers start as one; zero waits for none.
    pub not_before: Duration,
}

/// Which step failed when a program could not be started. Numbers as in launcher.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// clone(2).
    Clone,
    /// sched_setaffinity(2).
    Affinity,
    /// The working directory.
    Directory,
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// personality(2).
    Personality,
    /// The system's THP setting, or prctl(2).
    Thp,
    /// execve(2).
    Exec,
    /// The request was malformed.
    Request,
    /// ptrace(2).
    Trace,
    /// None: it was told not to begin this one.
    PassedOver,
}

/// What the launcher saw of a run.
#[derive(Debug)]
pub struct Reply {
    /// The step that failed, with the system's error; the rest is then without meaning.
    pub failed: Option<(Step, io::Error)>,
    /// The program's process number.
    pub pid: u32,
    /// As wait4(2) gives it.
    pub status: i32,
    /// When execve was called, CLOCK_MONOTONIC.
    pub began: Duration,
    /// From execve to the end.
    pub wall: Duration,
    /// Over all processes that were waited for, and those they waited for.
    pub user: Duration,
    /// As `user`.
    pub system: Duration,
    /// As `user`.
    pub minor_faults: u64,
    /// As `user`.
    pub major_faults: u64,
    /// As `user`.
    pub voluntary_switches: u64,
    /// As `user`.
    pub involuntary_switches: u64,
    /// The largest `ru_maxrss`, in bytes.
    pub max_rss: u64,
    /// Processes that were waited for by the launcher: the program, and those that came to it as orphans.
    pub reaped: u64,
    /// Processes the program left running, which were killed.
    pub left_over: u64,
    /// Some could not be killed.
    pub escaped: bool,
    /// Of the processes reaped, those that had waited for children of theirs, where the request asked for it.
    pub parents: u64,
    /// Exit-stop readings, where they were asked for.
    pub at_exit: Option<AtExit>,
    /// It was ended early.
    pub cancelled: bool,
    /// CPU time of the campaign's control group until now; zero where there is none.
    pub group: Usage,
    /// Forks that were refused in it until now.
    pub refused_forks: u64,
}

/// What `/proc/PID/status` said of each process at its exit.
#[derive(Debug, Clone, Copy)]
pub struct AtExit {
    /// VmHWM of the largest, in bytes.
    pub max_rss: u64,
    /// VmPeak of the largest, in bytes.
    pub peak_virtual: u64,
    /// VmHWM summed over all, in bytes.
    pub max_rss_sum: u64,
    /// How many there were.
    pub processes: u64,
}

/// A process that starts runs, one at a time, in the order in which they are asked for.
#[derive(Debug)]
pub struct Launcher {
    process: Child,
    socket: UnixStream,
    orders: UnixStream,
    /// Requests that are not sent yet.
    unsent: Vec<u8>,
    /// Replies that came in part.
    received: Vec<u8>,
    asked: u64,
}

impl Launcher {
    /// Starts the launcher's process. Programs are started in the cgroup where there is one.
    pub fn start(cgroup: &Cgroup) -> Result<Launcher, LauncherError> {
        let (socket, their_socket) = UnixStream::pair().map_err(LauncherError::LaunchSpec)?;
        let (orders, their_orders) = UnixStream::pair().map_err(LauncherError::LaunchSpec)?;
        // Out of the way of the numbers 3 and 4, which are the sockets' on the other side.
        let image = memory_file().and_then(|file| above(&file, 5)).map_err(LauncherError::LaunchSpec)?;
        let their_socket = above(&their_socket, 5).map_err(LauncherError::LaunchSpec)?;
        let their_orders = above(&their_orders, 5).map_err(LauncherError::LaunchSpec)?;
        let ends = [their_socket.as_raw_fd(), their_orders.as_raw_fd()];
        let mut command = Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()));
        command.arg0("widthwise-launcher").env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        command.arg(cgroup.unified().unwrap_or(Path::new(""))).args(cgroup.events());
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // The sockets become descriptors 3 and 4, open across exec.
                check(libc::dup2(ends[0], 3))?;
                check(libc::dup2(ends[1], 4))
            });
        }
        let process = command.spawn().map_err(LauncherError::LaunchSpec)?;
        Ok(Launcher { process, socket, orders, unsent: Vec::new(), received: Vec::new(), asked: 0 })
    }

    /// The launcher's own process number: the parent of every orphan.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks for a run, which begins when those asked for before are over. Gives back its number and the size of the
    /// request. It is on its way after [`Launcher::send`].
    pub fn ask(&mut self, request: &Request) -> Result<(u64, usize), LauncherError> {
        let before = self.unsent.len();
        let asked = encode(request, self.asked + 1, &mut self.unsent);
        if asked.is_err() {
            self.unsent.truncate(before);
        }
        asked?;
        self.asked += 1;
        Ok((self.asked, self.unsent.len() - before))
    }

    /// Sends what has been asked for.
    pub fn send(&mut self) -> Result<(), LauncherError> {
        if !self.unsent.is_empty() {
            self.socket.write_all(&self.unsent).map_err(LauncherError::Gone)?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// Ends the run of that number, and all it started, if it is going on.
    pub fn cancelled(&mut self, number: u64) -> Result<(), LauncherError> {
        self.order([number, 0])
    }

    /// Tells it not to begin what has not begun.
    pub fn skip_rest(&mut self) -> Result<(), LauncherError> {
        self.order([0, self.asked])
    }

    fn order(&mut self, words: [u64; 2]) -> Result<(), LauncherError> {
        self.orders.write_all(&words.map(u64::to_ne_bytes).concat()).map_err(LauncherError::Gone)
    }

    /// Sleeps until a reply is there, so much time has passed, or a signal has come (Ctrl-C, a window's resize).
    pub fn wait(&self, most: Duration) -> Result<(), LauncherError> {
        sleep(Some(self.socket.as_raw_fd()), most).map_err(LauncherError::Gone)
    }

    /// Takes the replies that have come, in the order in which they were asked for.
    pub fn replies(&mut self, into: &mut VecDeque<Reply>) -> Result<(), LauncherError> {
        let mut buffer = [0u8; 64 * REPLY_SIZE];
        // SAFETY: a valid buffer of its own length.
        let n = unsafe {
            libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        };
        if n < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(LauncherError::Gone(error)),
            };
        }
        if n == 0 {
            return Err(LauncherError::Gone(io::ErrorKind::UnexpectedEof.into()));
        }
        self.received.extend_from_slice(&buffer[..n as usize]);
        let whole = self.received.len() / REPLY_SIZE * REPLY_SIZE;
        for bytes in self.received[..whole].chunks_exact(REPLY_SIZE) {
            let mut words = [0u64; REPLY_WORDS];
            for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
            }
            into.push_back(decode(&words));
        }
        self.received.drain(..whole);
        Ok(())
    }
}

/// Sleeps until the descriptor is readable, so much time has passed, or a signal has come.
pub fn sleep(descriptor: Option<RawFd>, most: Duration) -> io::Result<()> {
    // One that is below zero is passed over (poll(2)).
    let mut poll = libc::pollfd { fd: descriptor.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec {
        tv_sec: most.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: libc::c_long::from(most.subsec_nanos() as i32),
    };
    // SAFETY: one valid pollfd and a valid timespec.
    if unsafe { libc::ppoll(&mut poll, 1, &time, std::ptr::null()) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// A copy of the descriptor whose number is at least that.
fn above(descriptor: &impl AsRawFd, least: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: an open descriptor; what comes back is a new one, and owned from here on.
    unsafe {
        let fd = libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Readable when a reply has come.
impl AsRawFd for Launcher {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // The end of file tells it to leave.
        let _ = self.orders.shutdown(std::net::Shutdown::Both);
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The image in a file of its own, without a place on any disk.
fn memory_file() -> io::Result<OwnedFd> {
    // SAFETY: a valid C string; the descriptor is owned from here on.
    let fd = unsafe {
        let fd = libc::memfd_create(c"widthwise-launcher".as_ptr(), libc::MFD_CLOEXEC);
        check(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    let mut file = std::fs::File::from(fd);
    file.write_all(IMAGE)?;
    Ok(file.into())
}

/// Appends the layout of `struct request` and its strings.
fn encode(request: &Request, number: u64, bytes: &mut Vec<u8>) -> Result<(), LauncherError> {
    use widthwise_experiment::model::Thp;
    let flags = u64::from(request.no_aslr)
        | u64::from(request.thp == Thp::Never) << 1
        | u64::from(request.exit_stop) << 2
        | u64::from(request.find_parents) << 3;
    let thp = match request.thp {
        Thp::System | Thp::Never => 0,
        Thp::Always => 1,
        Thp::Madvise => 2,
    };
    let mut cpus = [0u64; CPU_WORDS];
    for &cpu in request.cpus {
        if let Some(word) = cpus.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    let begin = bytes.len();
    let variables = request.environment.len() + 1;
    let not_before = request.not_before.as_nanos() as u64;
    let head = [0, number, flags, thp, request.arguments.len() as u64, variables as u64, not_before];
    for word in head.iter().chain(&cpus) {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    let mut put = |parts: &[&[u8]]| {
        for part in parts {
            if part.contains(&0) {
                return Err(LauncherError::Nul(String::from_utf8_lossy(&parts.concat()).into_owned()));
            }
            bytes.extend_from_slice(part);
        }
        bytes.push(0);
        Ok(())
    };
    for path in [request.file, request.directory, request.stdin, request.stdout, request.stderr] {
        put(&[path.as_os_str().as_bytes()])?;
    }
    for word in request.arguments {
        put(&[word.as_bytes()])?;
    }
    for (name, value) in request.environment {
        put(&[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    bytes.extend_from_slice(b"WIDTHWISE_PADDING=");
    bytes.resize(bytes.len() + request.padding, b'x');
    bytes.push(0);
    let size = bytes.len() - begin;
    if size > MOST_BYTES || request.arguments.len() + variables + 8 > MOST_STRINGS {
        return Err(LauncherError::TooLarge(size));
    }
    bytes[begin..begin + 8].copy_from_slice(&(size as u64).to_ne_bytes());
    Ok(())
}

/// Words in `struct reply`.
const REPLY_WORDS: usize = 25;
const REPLY_SIZE: usize = REPLY_WORDS * 8;

/// Layout of `struct reply`.
fn decode(words: &[u64; REPLY_WORDS]) -> Reply {
    let [step, error, pid, status, began, ended, user, system, minor, major, voluntary, involuntary, rest @ ..] =
        *words;
    let [peak, reaped, left_over, cancelled, escaped, parents, rest @ ..] = rest;
    let [exit_resident, exit_virtual, exit_sum, exit_processes, group_user, group_system, refused_forks] =
        rest;
    let failed = match step {
        0 => None,
        1 => Some(Step::Clone),
        2 => Some(Step::Affinity),
        3 => Some(Step::Directory),
        4 => Some(Step::Stdin),
        5 => Some(Step::Stdout),
        6 => Some(Step::Stderr),
        7 => Some(Step::Personality),
        8 => Some(Step::Thp),
        9 => Some(Step::Exec),
        11 => Some(Step::Trace),
        12 => Some(Step::PassedOver),
        _ => Some(Step::Request),
    };
    Reply {
        failed: failed.map(|step| (step, io::Error::from_raw_os_error(error as i32))),
        pid: pid as u32,
        status: status as i32,
        began: Duration::from_nanos(began),
        wall: Duration::from_nanos(ended.saturating_sub(began)),
        user: Duration::from_micros(user),
        system: Duration::from_micros(system),
        minor_faults: minor,
        major_faults: major,
        voluntary_switches: voluntary,
        involuntary_switches: involuntary,
        max_rss: peak * 1024,
        reaped,
        left_over,
        cancelled: cancelled != 0,
        escaped: escaped != 0,
        parents,
        at_exit: (exit_processes > 0).then_some(AtExit {
            max_rss: exit_resident * 1024,
            peak_virtual: exit_virtual * 1024,
            max_rss_sum: exit_sum * 1024,
            processes: exit_processes,
        }),
        group: Usage { user: Duration::from_micros(group_user), system: Duration::from_micros(group_system) },
        refused_forks,
    }
}
