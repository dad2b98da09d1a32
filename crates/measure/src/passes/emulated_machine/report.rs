//! The report of the first process of an emulated machine (the format is described in runtime/guest/init.c). Pure.

use std::time::Duration;

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program ran to its end.
    Ran(Report),
    /// A program could not be started.
    Refused {
        /// `EMPTY` or `PROGRAM`.
        program: String,
        /// What failed.
        step: String,
        /// An error number of the kernel.
        error: i32,
    },
}

/// The times of a program, by the clock and the accounts of its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From its `execve` to its parent's `wait4`.
    pub wall: Duration,
    /// In user space.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

/// How a program ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether a signal ended it, and the signal or the exit status.
    pub ending: (bool, i32),
    /// Its max RSS.
    pub peak_kib: u64,
    /// Its page faults without and with a read from a disk.
    pub minor: u64,
    /// See `minor`.
    pub major: u64,
    /// Its times, which mean nothing where instructions are translated.
    pub times: Times,
    /// Processes that were killed for want of memory.
    pub oom: u64,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// See `stdout`.
    pub stderr: Vec<u8>,
}

impl Report {
    /// Reads a report. The error is a part of a sentence.
    pub fn parse(bytes: &[u8]) -> Result<Outcome, String> {
        let mut left = bytes;
        let first = [line(&mut left)?, line(&mut left)?];
        if first != ["widthwise-guest 1", "started"] {
            return Err(format!("it begins with {:?}", first[0]));
        }
        let next = line(&mut left)?;
        let words: Vec<&str> = next.split(' ').collect();
        let wrong = |line: &str| format!("{line:?} is not expected");
        if let ["refused", program, step, error] = words[..] {
            let error = error.parse().map_err(|_| wrong(&next))?;
            return Ok(Outcome::Refused { program: program.to_owned(), step: step.to_owned(), error });
        }
        let ending = match words[..] {
            ["ended", "exit", status] => status.parse().ok().map(|status| (false, status)),
            ["ended", "signal", signal] => signal.parse().ok().map(|signal| (true, signal)),
            _ => None,
        };
        let ending = ending.ok_or_else(|| wrong(&next))?;
        let usage = numbers(&mut left, "usage", 5)?;
        let times = times(&numbers(&mut left, "times", 6)?);
        let oom = numbers(&mut left, "oom", 1)?[0];
        let stdout = content(&mut left, "stdout")?;
        let stderr = content(&mut left, "stderr")?;
        match line(&mut left)?.as_str() {
            "end" => {}
            other => return Err(wrong(other)),
        }
        let [peak_kib, minor, major] = [usage[0], usage[1], usage[2]];
        Ok(Outcome::Ran(Report { ending, peak_kib, minor, major, times, oom, stdout, stderr }))
    }
}

/// Of the six numbers in the order of the report.
fn times(numbers: &[u64]) -> Times {
    let time = |place: usize, unit: fn(u64) -> Duration| {
        Duration::from_secs(numbers[place]).saturating_add(unit(numbers[place + 1]))
    };
    Times {
        wall: time(0, Duration::from_nanos),
        user: time(2, Duration::from_micros),
        system: time(4, Duration::from_micros),
    }
}

fn line(left: &mut &[u8]) -> Result<String, String> {
    let end = left.iter().position(|byte| *byte == b'\n').ok_or("it ends early")?;
    let text = String::from_utf8_lossy(&left[..end]).into_owned();
    *left = &left[end + 1..];
    Ok(text)
}

fn numbers(left: &mut &[u8], key: &str, count: usize) -> Result<Vec<u64>, String> {
    let text = line(left)?;
    let mut words = text.split(' ');
    let is_key = words.next() == Some(key);
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    numbers.filter(|all| is_key && all.len() == count).ok_or_else(|| format!("{text:?} is not expected"))
}

fn content(left: &mut &[u8], key: &str) -> Result<Vec<u8>, String> {
    let size = usize::try_from(numbers(left, key, 1)?[0]).map_err(|_| "it ends early")?;
    let (bytes, rest) = left.split_at_checked(size).ok_or("it ends early")?;
    let rest = rest.strip_prefix(b"\n").ok_or("it ends early")?;
    *left = rest;
    Ok(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPORT: &[u8] = b"widthwise-guest 1\nstarted\nended exit 3\nusage 700 28 1 2 3\ntimes 2 5 0 7 1 9\noom 0\nstdout 5\na\nb\n\n\nstderr 0\n\n\
                            end\n";

    #[test]
    fn a_report_has_the_ending_the_usage_and_the_bytes_of_both_outputs() {
        let Ok(Outcome::Ran(report)) = Report::parse(REPORT) else { panic!("no report") };
        assert_eq!(report.ending, (false, 3));
        assert_eq!((report.peak_kib, report.minor, report.major, report.oom), (700, 28, 1, 0));
        let times = [report.times.wall, report.times.user, report.times.system].map(|time| time.as_nanos());
        assert_eq!(times, [2_000_000_005, 7_000, 1_000_009_000]);
        assert_eq!((report.stdout.as_slice(), report.stderr.as_slice()), (&b"a\nb\n\n"[..], &b""[..]));
        let refused = Report::parse(b"widthwise-guest 1\nstarted\nrefused EMPTY execve 8\nend\n");
        let (program, step) = ("EMPTY".to_owned(), "execve".to_owned());
        assert_eq!(refused, Ok(Outcome::Refused { program, step, error: 8 }));
    }

    #[test]
    fn no_part_of_a_report_is_a_report() {
        for length in 0..REPORT.len() {
            assert!(Report::parse(&REPORT[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_damage_to_a_report_makes_it_panic(damage in proptest::collection::vec((0usize..140, any::<u8>()), 0..6)) {
            let mut bytes = REPORT.to_vec();
            for (at, byte) in damage {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let _ = Report::parse(&bytes);
        }
    }
}
