//! The client side of the launcher: sends requests to `runtime/launcher` and receives its replies.

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

use crate::run::descriptors;
use crate::run::memory_file::memory_file;
use widthwise_proc::cgroup::{Cgroup, Usage};

/// The launcher program, built by build.rs.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));

/// The launcher's protocol, generated from `runtime/launcher/protocol.h` by build.rs.
#[allow(dead_code)]
mod protocol {
    include!(concat!(env!("OUT_DIR"), "/protocol.rs"));
}

const MOST_BYTES: usize = protocol::MOST_REQUEST_BYTES as usize;
const MOST_STRINGS: usize = protocol::MOST_STRINGS as usize;
const CPU_WORDS: usize = protocol::CPU_WORDS as usize;
const REPLY_SIZE: usize = protocol::Reply::SIZE;

/// The launcher could not be started, or has ended.
#[derive(Debug, Error)]
pub enum LauncherError {
    /// The launcher's process could not be created.
    #[error("the launcher could not be started: {0}")]
    Start(io::Error),
    /// It ended in the middle of a campaign.
    #[error("the launcher ended unexpectedly ({0}); was it killed? `--resume` continues from the last run")]
    Gone(io::Error),
    /// The kernel would refuse the request too.
    #[error("the command line and environment are too large: {0} bytes")]
    TooLarge(usize),
    /// A string with a NUL byte would be truncated.
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
    /// envp, without the padding.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// The size of an extra variable, which shifts the start of the stack in each run.
    pub padding: usize,
    /// CPUs that it may use; empty leaves the affinity alone.
    pub cpus: &'a [u32],
    /// Switch off address space layout randomisation.
    pub no_aslr: bool,
    /// Transparent huge pages.
    pub thp: widthwise_experiment::model::Thp,
    /// Stop every process of the tree at its exit, and read its peaks there (ptrace).
    pub exit_stop: bool,
    /// Whether to find out which of the reaped processes had children.
    pub find_parents: bool,
    /// Its execve waits for this time (CLOCK_MONOTONIC), so that several launchers start together; zero does
    /// not wait.
    pub not_before: Duration,
    /// A file that the launcher reads into the CPU's caches first.
    pub warmed: Option<&'a Path>,
}

/// Which step failed when a program could not be started: `enum step` of protocol.h.
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
    /// None: the request was skipped.
    Skipped,
}

/// What the launcher saw of a run.
#[derive(Debug)]
pub struct Reply {
    /// The step that failed, with the system's error; the other fields are then meaningless.
    pub failed: Option<(Step, io::Error)>,
    /// The program's process number.
    pub pid: u32,
    /// As wait4(2) returns it.
    pub status: i32,
    /// When execve was called, CLOCK_MONOTONIC.
    pub began: Duration,
    /// From execve to the end.
    pub wall: Duration,
    /// Over all reaped processes, and those that they reaped.
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
    /// Processes that the launcher reaped: the program, and orphans that were reparented to the launcher.
    pub reaped: u64,
    /// Processes that the program left running and the launcher killed.
    pub left_over: u64,
    /// Their CPU time after the program's end; without a control group all of it.
    pub left_over_cpu: Duration,
    /// Some could not be killed.
    pub escaped: bool,
    /// Reaped processes that had reaped children themselves, where the request asked for it.
    pub parents: u64,
    /// Exit-stop readings, where the request asked for them.
    pub at_exit: Option<AtExit>,
    /// It was ended early.
    pub cancelled: bool,
    /// CPU time of the campaign's control group until now; zero where there is none.
    pub group: Usage,
    /// Forks that the group has refused until now.
    pub refused_forks: u64,
}

/// The fields of `/proc/PID/status` at each process's exit.
#[derive(Debug, Clone, Copy)]
pub struct AtExit {
    /// VmHWM of the largest, in bytes.
    pub max_rss: u64,
    /// VmPeak of the largest, in bytes.
    pub peak_virtual: u64,
    /// VmHWM summed over all, in bytes.
    pub max_rss_sum: u64,
    /// The number of processes.
    pub processes: u64,
}

/// A process that starts the requested runs, one at a time, in order.
#[derive(Debug)]
pub struct Launcher {
    process: Child,
    socket: UnixStream,
    orders: UnixStream,
    /// Requests that are not sent yet.
    unsent: Vec<u8>,
    /// Bytes of an incomplete reply.
    received: Vec<u8>,
    asked: u64,
}

impl Launcher {
    /// Starts the launcher's process. It starts programs in the cgroup where there is one.
    pub fn start(cgroup: &Cgroup) -> Result<Launcher, LauncherError> {
        let (socket, their_socket) = UnixStream::pair().map_err(LauncherError::Start)?;
        let (orders, their_orders) = UnixStream::pair().map_err(LauncherError::Start)?;
        // Above the numbers that the sockets have in the launcher.
        let (request_socket, order_socket) =
            (protocol::REQUEST_SOCKET as libc::c_int, protocol::ORDER_SOCKET as libc::c_int);
        let free = request_socket.max(order_socket) + 1;
        let image = program_file().and_then(|file| above(&file, free)).map_err(LauncherError::Start)?;
        let their_socket = above(&their_socket, free).map_err(LauncherError::Start)?;
        let their_orders = above(&their_orders, free).map_err(LauncherError::Start)?;
        let ends = [their_socket.as_raw_fd(), their_orders.as_raw_fd()];
        let mut command = Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()));
        command.arg0("widthwise-launcher").env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        command.arg(cgroup.unified().unwrap_or(Path::new(""))).args(cgroup.events());
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // dup2 clears close-on-exec.
                check(libc::dup2(ends[0], request_socket))?;
                check(libc::dup2(ends[1], order_socket))
            });
        }
        // Programs inherit it from the launcher.
        descriptors::give_back(&mut command);
        let process = command.spawn().map_err(LauncherError::Start)?;
        Ok(Launcher { process, socket, orders, unsent: Vec::new(), received: Vec::new(), asked: 0 })
    }

    /// The launcher's own process number: the parent of every orphan.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Queues a request for a run that begins when the runs before it have ended. Returns the run's number
    /// and the size of the request. [`Launcher::send`] sends it.
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

    /// Sends the queued requests.
    pub fn send(&mut self) -> Result<(), LauncherError> {
        if !self.unsent.is_empty() {
            self.socket.write_all(&self.unsent).map_err(LauncherError::Gone)?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// Ends the run of that number, and every process of it, if it is in flight.
    pub fn cancel(&mut self, number: u64) -> Result<(), LauncherError> {
        self.order(protocol::Order { cancel: number, skip_up_to: 0 })
    }

    /// Skips the requests that have not begun.
    pub fn skip_rest(&mut self) -> Result<(), LauncherError> {
        self.order(protocol::Order { cancel: 0, skip_up_to: self.asked })
    }

    fn order(&mut self, order: protocol::Order) -> Result<(), LauncherError> {
        self.orders.write_all(&order.bytes()).map_err(LauncherError::Gone)
    }

    /// Sleeps until a reply arrives, `most` has passed, or a signal is delivered (Ctrl-C, a window's resize).
    pub fn wait(&self, most: Duration) -> Result<(), LauncherError> {
        sleep(Some(self.socket.as_raw_fd()), most).map_err(LauncherError::Gone)
    }

    /// Takes the replies that have arrived, in the order of their requests.
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
            into.extend(protocol::Reply::read(bytes).as_ref().map(decode));
        }
        self.received.drain(..whole);
        Ok(())
    }
}

/// Sleeps until the descriptor is readable, `most` has passed, or a signal is delivered.
pub fn sleep(descriptor: Option<RawFd>, most: Duration) -> io::Result<()> {
    // poll(2) ignores negative descriptors.
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

/// A copy of the descriptor with a number of at least `least`.
fn above(descriptor: &impl AsRawFd, least: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: an open descriptor; the returned one is new, and owned from here on.
    unsafe {
        let fd = libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Readable when a reply has arrived.
impl AsRawFd for Launcher {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // The launcher exits at end of file.
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

/// The launcher's program in an anonymous file.
fn program_file() -> io::Result<OwnedFd> {
    let mut file = memory_file(c"widthwise-launcher")?;
    file.write_all(IMAGE)?;
    Ok(file.into())
}

/// Appends a request and its strings.
fn encode(request: &Request, number: u64, bytes: &mut Vec<u8>) -> Result<(), LauncherError> {
    use widthwise_experiment::model::Thp;
    let flag = |is_set: bool, bit: u32| if is_set { u64::from(bit) } else { 0 };
    let flags = flag(request.no_aslr, protocol::NO_ASLR)
        | flag(request.thp == Thp::Never, protocol::THP_NEVER)
        | flag(request.exit_stop, protocol::EXIT_STOP)
        | flag(request.find_parents, protocol::FIND_PARENTS);
    let thp = match request.thp {
        Thp::System | Thp::Never => protocol::THP_KEEP,
        Thp::Always => protocol::THP_ALWAYS,
        Thp::Madvise => protocol::THP_MADVISE,
    };
    let mut cpus = [0u64; CPU_WORDS];
    for &cpu in request.cpus {
        if let Some(word) = cpus.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    let begin = bytes.len();
    let variables = request.environment.len() + 1;
    let mut head = protocol::Request {
        size: 0,
        number,
        flags,
        thp: thp.into(),
        arguments: request.arguments.len() as u64,
        variables: variables as u64,
        not_before_ns: request.not_before.as_nanos() as u64,
        cpus,
    };
    bytes.extend_from_slice(&head.bytes());
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
    let warmed = request.warmed.unwrap_or(Path::new(""));
    for path in [request.file, request.directory, request.stdin, request.stdout, request.stderr, warmed] {
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
    head.size = size as u64;
    bytes[begin..begin + protocol::Request::SIZE].copy_from_slice(&head.bytes());
    Ok(())
}

fn decode(reply: &protocol::Reply) -> Reply {
    let failed = match u32::try_from(reply.failed_step).unwrap_or(protocol::STEP_REQUEST) {
        protocol::STEP_NONE => None,
        protocol::STEP_CLONE => Some(Step::Clone),
        protocol::STEP_AFFINITY => Some(Step::Affinity),
        protocol::STEP_DIRECTORY => Some(Step::Directory),
        protocol::STEP_STDIN => Some(Step::Stdin),
        protocol::STEP_STDOUT => Some(Step::Stdout),
        protocol::STEP_STDERR => Some(Step::Stderr),
        protocol::STEP_PERSONALITY => Some(Step::Personality),
        protocol::STEP_THP => Some(Step::Thp),
        protocol::STEP_EXEC => Some(Step::Exec),
        protocol::STEP_TRACE => Some(Step::Trace),
        protocol::STEP_SKIPPED => Some(Step::Skipped),
        _ => Some(Step::Request),
    };
    Reply {
        failed: failed.map(|step| (step, io::Error::from_raw_os_error(reply.error as i32))),
        pid: reply.pid as u32,
        status: reply.status as i32,
        began: Duration::from_nanos(reply.began_ns),
        wall: Duration::from_nanos(reply.ended_ns.saturating_sub(reply.began_ns)),
        user: Duration::from_micros(reply.user_us),
        system: Duration::from_micros(reply.system_us),
        minor_faults: reply.minor_faults,
        major_faults: reply.major_faults,
        voluntary_switches: reply.voluntary_switches,
        involuntary_switches: reply.involuntary_switches,
        max_rss: reply.max_rss_kib * 1024,
        reaped: reply.reaped,
        left_over: reply.left_over,
        left_over_cpu: Duration::from_micros(reply.left_over_us),
        cancelled: reply.cancelled != 0,
        escaped: reply.escaped != 0,
        parents: reply.parents,
        at_exit: (reply.exit_processes > 0).then_some(AtExit {
            max_rss: reply.exit_max_rss_kib * 1024,
            peak_virtual: reply.exit_peak_virtual_kib * 1024,
            max_rss_sum: reply.exit_max_rss_sum_kib * 1024,
            processes: reply.exit_processes,
        }),
        group: Usage {
            user: Duration::from_micros(reply.group_user_us),
            system: Duration::from_micros(reply.group_system_us),
        },
        refused_forks: reply.refused_forks,
    }
}
