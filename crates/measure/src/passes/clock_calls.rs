//! Calls of an emulated program that would be none on a kernel: valgrind gives programs no vDSO, the kernel's code that reads the
//! clock in the program's own process. The C library then makes a system call, of few instructions.
//!
//! Valgrind's log of system calls (`--trace-syscalls=yes`) shows how often. It is read while the program runs, from a named pipe: a
//! file could become as large as the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::passes::callgrind_parts::Part;
use crate::passes::emulated_processes::{is_routine, Processes};
use crate::passes::valgrind;
use crate::run::result::RunError;

/// What the log calls them (`coregrind/m_syswrap/syswrap-linux.c`). On Linux 6.18 and glibc 2.36, `getrandom` is always a system call.
const CLOCK: [&str; 6] = [
    "sys_clock_gettime",
    "sys_clock_gettime64",
    "sys_clock_getres",
    "sys_clock_getres_time64",
    "sys_gettimeofday",
    "sys_time",
];
/// As above, of the CPU's number.
const CPU: &str = "sys_getcpu";

/// Such calls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Calls {
    /// Of the clock.
    pub clock: u64,
    /// Of the CPU's number.
    pub cpu: u64,
}

/// What a call may have outside valgrind that valgrind does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uncounted {
    /// So much less a call of the CPU's number may have: outside valgrind `sched_getcpu` reads a variable (rseq).
    less: u64,
    /// So much more each call may have.
    more: u64,
}

/// Single steps of every function, on Linux 6.18 with the TSC as the clock's source: of the clock 4 to 79 instructions more on x86-64
/// and x32, 0 to 119 on i386; of the CPU's number 18 less to 14 more. Other sources (`pvclock`) and time namespaces have some
/// fifty more.
pub(super) const INSTRUCTIONS: Uncounted = Uncounted { less: 32, more: 300 };
/// As above: an instruction in five is a branch.
pub(super) const BRANCHES: Uncounted = Uncounted { less: 8, more: 60 };

impl Uncounted {
    /// The bounds of a count.
    pub fn around(self, counted: u64, calls: Calls) -> (u64, u64) {
        let all = calls.clock.saturating_add(calls.cpu);
        let low = counted.saturating_sub(calls.cpu.saturating_mul(self.less));
        (low, counted.saturating_add(all.saturating_mul(self.more)))
    }
}

/// How often the reader looks. It is not woken by each of valgrind's writes, which are short: that took most of a run's time.
const TICK: Duration = Duration::from_millis(2);
/// What valgrind may write in between.
const PIPE_BYTES: libc::c_int = 1 << 20;
/// The most of the log's other text that is kept.
const MOST_TEXT: usize = 1 << 16;
/// A line without an end is taken as one at this length.
const MOST_LINE: usize = 1 << 16;

/// What the log said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// The calls that the vDSO would have answered.
    pub calls: Calls,
    /// What valgrind says beside the calls and what it says of every process: why it fails.
    pub text: String,
    /// The processes.
    pub processes: Processes,
    /// Where callgrind writes parts, and those that were kept.
    folder: Option<PathBuf>,
    pub parts: Vec<Part>,
}

/// Listens to valgrind's log.
pub(super) struct Listener {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Heard>,
}

impl Listener {
    /// Makes the pipe `calls` in the folder, and begins to read it. `parts`: where callgrind writes parts, which are kept as soon as
    /// the log says that they are written.
    pub fn begin(folder: &Path, parts: Option<&Path>) -> Result<Listener, RunError> {
        let path = folder.join("calls");
        let pipe = pipe(&path).map_err(|error| RunError::Scratch { path: path.clone(), error })?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let heard = Heard { folder: parts.map(Path::to_owned), ..Heard::default() };
        let thread = std::thread::spawn(move || listen(pipe, heard, &seen));
        Ok(Listener { path, is_over, thread })
    }

    /// The options with which valgrind writes to the pipe.
    pub fn options(&self) -> [String; 2] {
        ["--trace-syscalls=yes".into(), format!("--log-file={}", valgrind::escaped(&self.path))]
    }

    /// What was written until now, once no process writes any more.
    pub fn end(self) -> Heard {
        self.is_over.store(true, Ordering::Release);
        self.thread.join().unwrap_or_default()
    }
}

fn pipe(path: &Path) -> io::Result<File> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a valid C string. Every user may write: a program may have become another before it executes the next.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o622) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // Opened for both (fifo(7)), it has no end while one process ends and the next has not begun.
    let pipe = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // SAFETY: a valid descriptor. Where so much is not allowed, valgrind waits more often.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok(pipe)
}

fn listen(mut pipe: File, mut heard: Heard, is_over: &AtomicBool) -> Heard {
    let (mut rest, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        // Read before the pipe is: what was written before the end is in it.
        let is_last = is_over.load(Ordering::Acquire);
        match pipe.read(&mut bytes) {
            Ok(read) if read > 0 => heard.take(&mut rest, &bytes[..read]),
            _ if is_last => break,
            _ => std::thread::sleep(TICK),
        }
    }
    heard.line(&rest);
    heard
}

impl Heard {
    /// Takes all lines; of the last one only when it is whole.
    fn take(&mut self, rest: &mut Vec<u8>, bytes: &[u8]) {
        rest.extend_from_slice(bytes);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        rest[..whole].split_inclusive(|byte| *byte == b'\n').for_each(|line| self.line(line));
        rest.drain(..whole);
        if rest.len() > MOST_LINE {
            self.line(&std::mem::take(rest));
        }
    }

    fn keep_parts(&mut self) {
        for part in self.processes.take_written() {
            match self.folder.as_ref().map(|folder| part.keep(folder)) {
                Some(Ok(())) => self.parts.push(part),
                Some(Err(_)) => self.processes.lose_part(),
                None => {}
            }
        }
    }

    /// `SYSCALL[12,1](228) sys_clock_gettime( 1, 0x1fff000630 )[sync] --> Success(0x0)`: valgrind writes each third of it at once, so
    /// that a line may have thirds of two processes.
    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        self.processes.hear(&line);
        self.keep_parts();
        if !line.contains("SYSCALL[") {
            if !is_routine(&line) && self.text.len() + line.len() <= MOST_TEXT {
                self.text.push_str(&line);
            }
            return;
        }
        for (at, _) in line.match_indices("sys_") {
            let name = line[at..].split([' ', '(']).next().unwrap_or_default();
            self.calls.clock += u64::from(CLOCK.contains(&name));
            self.calls.cpu += u64::from(name == CPU);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "valgrind: what it says\n\
        SYSCALL[7,1](228) sys_clock_gettime( 1, 0x1fff000630 )[sync] --> Success(0x0) \n\
        SYSCALL[7,1](257) sys_openat ( 3, 0x40(/sys_x), 524288 ) --> [async] ... \n\
        SYSCALL[7,1](257) ... [async] --> Success(0x4) \n\
        SYSCALL[7,1](13) SYSCALL[8,1](403) sys_time ( 0x0 ) --> sys_clock_gettime64( 1, 0x1 )[sync] --> Success(0x0) \n\
        SYSCALL[7,1](309) sys_getcpu ( 0x1, 0x0, 0x0 )[sync] --> Success(0x0) \n\
        SYSCALL[7,1](222) sys_timer_create( 0, 0x0, 0x0 )[sync] --> Success(0x0) \n\
        SYSCALL[7,1](43) sys_times ( 0x0 )[sync] --> Success(0x0) \n";

    #[test]
    fn calls_of_the_clock_are_counted_however_the_log_arrives() {
        for size in [1, 7, 100, LOG.len()] {
            let (mut heard, mut rest) = (Heard::default(), Vec::new());
            LOG.as_bytes().chunks(size).for_each(|bytes| heard.take(&mut rest, bytes));
            assert_eq!(heard.calls, Calls { clock: 3, cpu: 1 }, "{size}");
            assert_eq!(heard.text, "valgrind: what it says\n", "{size}");
        }
    }

    #[test]
    fn a_log_of_several_writers_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let listener = Listener::begin(folder.path(), None).unwrap();
        let [trace, file] = listener.options();
        assert_eq!(trace, "--trace-syscalls=yes");
        // More than a pipe holds.
        for _ in 0..2 {
            std::fs::write(file.strip_prefix("--log-file=").unwrap(), LOG.repeat(1000)).unwrap();
        }
        let heard = listener.end();
        assert_eq!(heard.calls, Calls { clock: 6000, cpu: 2000 });
        assert!(heard.text.len() <= MOST_TEXT);
    }
}
