//! Marks: lines that the program writes to a named pipe, each the start of a phase.
//!
//! The pipe is held open here for reading and writing: a writer that opens it never waits for a reader, and
//! never fails for want of one. Its content is read as soon as it arrives, so that the pipe is not full for
//! long.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use widthwise_experiment::memory::Mark;

/// The most marks to store, and the most bytes of each.
const MOST: usize = 10_000;
const LONGEST: usize = 200;
/// The pipe is emptied at most this often, in nanoseconds: it holds 64 KiB.
pub const PAUSE: u64 = 1_000_000;

/// The pipe, and the marks received through it.
#[derive(Debug)]
pub struct Marks {
    path: PathBuf,
    pipe: File,
    /// The incomplete line.
    line: Vec<u8>,
    marks: Vec<Mark>,
    lost: bool,
    heard: u64,
}

impl Marks {
    /// Makes the pipe. Anything else at that path is removed.
    pub fn open(path: &Path) -> io::Result<Marks> {
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(error)),
            _ => {}
        }
        let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a valid C string.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o622) } < 0 {
            return Err(at(io::Error::last_os_error()));
        }
        // On Linux a pipe may be opened for both (fifo(7)).
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(at)?;
        Ok(Marks { path: path.to_owned(), pipe, line: Vec::new(), marks: Vec::new(), lost: false, heard: 0 })
    }

    /// The descriptor to poll.
    pub fn pipe(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Whether the pipe may be read again.
    pub fn may_be_heard(&self, now: u64) -> bool {
        now.saturating_sub(self.heard) >= PAUSE
    }

    /// Reads the pipe; returns whether a phase has begun.
    pub fn hear(&mut self, now: u64) -> bool {
        let before = self.marks.len();
        let mut text = [0; 16 << 10];
        // A bounded number of reads: a program may write without pause.
        for _ in 0..8 {
            match self.pipe.read(&mut text) {
                Ok(read) if read > 0 => self.take(&text[..read], now),
                _ => break,
            }
            self.heard = now;
        }
        self.marks.len() > before
    }

    fn take(&mut self, text: &[u8], at_ns: u64) {
        for byte in text {
            match byte {
                b'\n' => self.end_line(at_ns),
                _ if self.line.len() < LONGEST => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self, at_ns: u64) {
        let text = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if text.is_empty() {
            return;
        }
        if self.marks.len() < MOST {
            self.marks.push(Mark { at_ns, text });
        } else {
            self.lost = true;
        }
    }

    /// Every mark, and whether there were more than could be stored. An incomplete last line counts; the pipe
    /// is removed.
    pub fn close(mut self, now: u64) -> (Vec<Mark>, bool) {
        self.hear(now);
        self.end_line(now);
        let _ = std::fs::remove_file(&self.path);
        (self.marks, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_become_marks_and_a_writer_never_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks");
        std::fs::write(&path, "something else").unwrap();
        let mut marks = Marks::open(&path).unwrap();
        let mut program = OpenOptions::new().write(true).open(&path).unwrap();
        program.write_all(b"load\n\n  fit \nha").unwrap();
        assert!(marks.hear(5));
        program.write_all(b"lf\nlast").unwrap();
        assert!(marks.hear(7));
        assert!(!marks.hear(8));
        let (marks, lost) = marks.close(9);
        let reported: Vec<(u64, &str)> = marks.iter().map(|mark| (mark.at_ns, mark.text.as_str())).collect();
        assert_eq!(reported, [(5, "load"), (5, "fit"), (7, "half"), (9, "last")]);
        assert!(!lost && !path.exists());
    }

    #[test]
    fn marks_beyond_the_limit_are_lost_and_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut marks = Marks::open(&folder.path().join("marks")).unwrap();
        let long = vec![b'x'; 10 * LONGEST];
        marks.take(&long, 1);
        for _ in 0..=MOST {
            marks.take(b"\nphase", 1);
        }
        let (marks, lost) = marks.close(2);
        assert_eq!((marks.len(), marks[0].text.len(), lost), (MOST, LONGEST, true));
    }
}
