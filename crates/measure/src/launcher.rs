//! The launcher's other side: asks `runtime/launcher` for one run and waits for its reply.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

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
    Start(std::io::Error),
    /// It ended in the middle of a campaign.
    #[error("the launcher ended unexpectedly ({0}); was it killed? `--resume` goes on from the last run")]
    Gone(std::io::Error),
    /// The kernel would not take the request either.
    #[error("the command line and environment are too large: {0} bytes")]
    TooLarge(usize),
    /// A string that would be cut short.
    #[error("{0:?} contains a NUL byte")]
    Nul(String),
}

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The file to execute.
    pub file: PathBuf,
    /// Working directory.
    pub directory: PathBuf,
    /// Standard input.
    pub stdin: PathBuf,
    /// Standard output, truncated first.
    pub stdout: PathBuf,
    /// Standard error, truncated first.
    pub stderr: PathBuf,
    /// argv.
    pub arguments: Vec<CString>,
    /// envp.
    pub environment: Vec<CString>,
    /// CPUs it may use; empty leaves the affinity alone.
    pub cpus: Vec<u32>,
    /// Switch off address space layout randomisation.
    pub fixed_addresses: bool,
    /// Transparent huge pages.
    pub thp: widthwise_experiment::model::Thp,
    /// Watch every process of the tree to its exit, and read its peaks there (ptrace).
    pub exit_stop: bool,
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
}

/// What the launcher saw of a run.
#[derive(Debug)]
pub struct Reply {
    /// The step that failed, with the system's error; the rest is then without meaning.
    pub failed: Option<(Step, std::io::Error)>,
    /// The program's process number.
    pub pid: u32,
    /// As wait4(2) gives it.
    pub status: i32,
    /// From execve to the end, CLOCK_MONOTONIC.
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
    pub peak_resident: u64,
    /// Processes the program left running, which were killed.
    pub left_over: u64,
    /// Some could not be killed.
    pub escaped: bool,
    /// Exit-stop readings, where they were asked for.
    pub at_exit: Option<AtExit>,
    /// It was ended early.
    pub cut_off: bool,
}

/// What `/proc/PID/status` said of each process at its exit.
#[derive(Debug, Clone, Copy)]
pub struct AtExit {
    /// VmHWM of the largest, in bytes.
    pub peak_resident: u64,
    /// VmPeak of the largest, in bytes.
    pub peak_virtual: u64,
    /// VmHWM summed over all, in bytes.
    pub peak_resident_sum: u64,
    /// How many there were.
    pub processes: u64,
}

/// A process that starts runs, one at a time.
#[derive(Debug)]
pub struct Launcher {
    process: Child,
    socket: UnixStream,
}

impl Launcher {
    /// Starts the launcher's process. Programs are started in `cgroup` (a cgroup v2 folder) where one is given.
    pub fn start(cgroup: Option<&Path>) -> Result<Launcher, LauncherError> {
        let (ours, theirs) = UnixStream::pair().map_err(LauncherError::Start)?;
        let image = memory_file().map_err(LauncherError::Start)?;
        let their_end = theirs.as_raw_fd();
        let mut command = Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()));
        command.arg0("widthwise-launcher").env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(folder) = cgroup {
            command.arg(folder);
        }
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // The socket becomes descriptor 3, open across exec.
                if their_end == 3 {
                    check(libc::fcntl(3, libc::F_SETFD, 0))
                } else {
                    check(libc::dup2(their_end, 3))
                }
            });
        }
        let process = command.spawn().map_err(LauncherError::Start)?;
        Ok(Launcher { process, socket: ours })
    }

    /// The launcher's own process number: the parent of every orphan.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The descriptor that becomes readable when the run is over.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Starts a run. Its end is told by [`Launcher::reply`].
    pub fn request(&mut self, request: &Request) -> Result<(), LauncherError> {
        let bytes = encode(request)?;
        self.socket.write_all(&bytes).map_err(LauncherError::Gone)
    }

    /// Ends the run that is going on, and all it started.
    pub fn cut_off(&mut self) -> Result<(), LauncherError> {
        self.socket.write_all(b"K").map_err(LauncherError::Gone)
    }

    /// Waits for the reply until `until`; `None` if it has not come by then.
    pub fn wait(&mut self, until: Instant) -> Result<bool, LauncherError> {
        let mut poll = libc::pollfd { fd: self.descriptor(), events: libc::POLLIN, revents: 0 };
        let left = until.saturating_duration_since(Instant::now());
        let time = libc::timespec {
            tv_sec: left.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: libc::c_long::from(left.subsec_nanos() as i32),
        };
        // SAFETY: one valid pollfd and a valid timespec.
        let n = unsafe { libc::ppoll(&mut poll, 1, &time, std::ptr::null()) };
        if n < 0 {
            let error = std::io::Error::last_os_error();
            // A signal (Ctrl-C, a window's resize): the caller looks at its flag and comes back.
            return if error.kind() == std::io::ErrorKind::Interrupted {
                Ok(false)
            } else {
                Err(LauncherError::Gone(error))
            };
        }
        Ok(n > 0)
    }

    /// Reads the reply; blocks until the run is over.
    pub fn reply(&mut self, request: &Request) -> Result<Reply, LauncherError> {
        let mut words = [0u64; REPLY_WORDS];
        let mut bytes = [0u8; REPLY_WORDS * 8];
        self.socket.read_exact(&mut bytes).map_err(LauncherError::Gone)?;
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
        }
        Ok(decode(&words, request.exit_stop))
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // The end of file tells it to leave.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The image in a file of its own, without a place on any disk.
fn memory_file() -> std::io::Result<OwnedFd> {
    // SAFETY: a valid C string; the descriptor is owned from here on. Not close-on-exec: it is executed through
    // /proc/self/fd, and the launcher keeps no use of it.
    let fd = unsafe {
        let fd = libc::memfd_create(c"widthwise-launcher".as_ptr(), 0);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let mut file = std::fs::File::from(fd.try_clone()?);
    file.write_all(IMAGE)?;
    // SAFETY: our descriptor. Programs that we start must not inherit it: the launcher's exec closes it.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
    Ok(fd)
}

/// Layout of `struct request` and its strings.
fn encode(request: &Request) -> Result<Vec<u8>, LauncherError> {
    use widthwise_experiment::model::Thp;
    let mut strings = Vec::new();
    for path in [&request.file, &request.directory, &request.stdin, &request.stdout, &request.stderr] {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(LauncherError::Nul(path.display().to_string()));
        }
        strings.extend_from_slice(bytes);
        strings.push(0);
    }
    for string in request.arguments.iter().chain(&request.environment) {
        strings.extend_from_slice(string.as_bytes_with_nul());
    }
    let flags = u64::from(request.fixed_addresses)
        | u64::from(request.thp == Thp::Never) << 1
        | u64::from(request.exit_stop) << 2;
    let thp = match request.thp {
        Thp::System | Thp::Never => 0,
        Thp::Always => 1,
        Thp::Madvise => 2,
    };
    let mut cpus = [0u64; CPU_WORDS];
    for &cpu in &request.cpus {
        if let Some(word) = cpus.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    let size = (5 + CPU_WORDS) * 8 + strings.len();
    let count = request.arguments.len() + request.environment.len();
    if size > MOST_BYTES || count + 8 > MOST_STRINGS {
        return Err(LauncherError::TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(size);
    let head = [size as u64, flags, thp, request.arguments.len() as u64, request.environment.len() as u64];
    for word in head.iter().chain(&cpus) {
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes.extend_from_slice(&strings);
    Ok(bytes)
}

/// Words in `struct reply`.
const REPLY_WORDS: usize = 21;

/// Layout of `struct reply`.
fn decode(words: &[u64; REPLY_WORDS], exit_stop: bool) -> Reply {
    let [step, error, pid, status, began, ended, user, system, minor, major, voluntary, involuntary, rest @ ..] =
        *words;
    let [peak, _reaped, left_over, cut_off, escaped, exit_resident, exit_virtual, exit_sum, exit_processes] =
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
        _ => Some(Step::Request),
    };
    Reply {
        failed: failed.map(|step| (step, std::io::Error::from_raw_os_error(error as i32))),
        pid: pid as u32,
        status: status as i32,
        wall: Duration::from_nanos(ended.saturating_sub(began)),
        user: Duration::from_micros(user),
        system: Duration::from_micros(system),
        minor_faults: minor,
        major_faults: major,
        voluntary_switches: voluntary,
        involuntary_switches: involuntary,
        peak_resident: peak * 1024,
        left_over,
        cut_off: cut_off != 0,
        escaped: escaped != 0,
        at_exit: (exit_stop && exit_processes > 0).then_some(AtExit {
            peak_resident: exit_resident * 1024,
            peak_virtual: exit_virtual * 1024,
            peak_resident_sum: exit_sum * 1024,
            processes: exit_processes,
        }),
    }
}
