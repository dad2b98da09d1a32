//! massif's files (`massif.out.PID`): snapshots of a heap, some of them with stacks.
//!
//! Its documentation is the output itself, which `ms_print` reads, and the manual's chapter
//! (<https://valgrind.org/docs/manual/ms-manual.html>): a head, then for each snapshot lines of `name=value`, then its tree, whose
//! lines are indented by their depth and say how many children there are: `n2: 4000 0x1091F1: f (t.c:7)`. Its root is the
//! allocator, its children are the code addresses that called it, theirs are their callers.

use thiserror::Error;

use crate::import::recording::{Clock, Course, Point, Recording};
use widthwise_heap_log::profile::{Column, Frame, Gathering, Values};

/// massif's own limit is 200 (`--depth`).
const DEEPEST: usize = 256;

/// A text that is no file of massif.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum MassifError {
    /// A line is malformed.
    #[error("line {line}: should be {expected}, and is \"{found}\"")]
    Unexpected {
        /// Counted from 1.
        line: usize,
        /// What massif writes in this line.
        expected: &'static str,
        /// The beginning of the line.
        found: String,
    },
    /// It ends too early.
    #[error("line {line}: is the end, where {expected} should follow: massif writes the file when the program ends")]
    CutOff {
        /// The last line, counted from 1.
        line: usize,
        /// What should follow.
        expected: &'static str,
    },
    /// A tree is deeper than massif makes any.
    #[error("line {line}: is a call more than {DEEPEST} deep, which massif has none of")]
    TooDeep {
        /// Counted from 1.
        line: usize,
    },
}

/// The lines, with their numbers.
struct Lines<'a> {
    rest: &'a [u8],
    /// Of the line that was taken last.
    number: usize,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        (!self.rest.is_empty()).then(|| self.rest.split(|byte| *byte == b'\n').next().unwrap_or_default())
    }

    fn take(&mut self, expected: &'static str) -> Result<&'a [u8], MassifError> {
        let line = self.peek().ok_or(MassifError::CutOff { line: self.number, expected })?;
        self.rest = self.rest.get(line.len() + 1..).unwrap_or_default();
        self.number += 1;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn unexpected(&self, line: &[u8], expected: &'static str) -> MassifError {
        let found = String::from_utf8_lossy(line).chars().take(60).flat_map(char::escape_debug).collect();
        MassifError::Unexpected { line: self.number, expected, found }
    }

    /// What stands behind `name` in the next line.
    fn value(&mut self, name: &str, expected: &'static str) -> Result<&'a [u8], MassifError> {
        let line = self.take(expected)?;
        line.strip_prefix(name.as_bytes()).ok_or_else(|| self.unexpected(line, expected))
    }

    fn number_of(&mut self, name: &str, expected: &'static str) -> Result<u64, MassifError> {
        let value = self.value(name, expected)?;
        number(value).ok_or_else(|| self.unexpected(value, expected))
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a file: all snapshots, and the stacks of the one with most bytes that has stacks; of equal ones that which massif calls the
/// peak. The snapshot of that name may be smaller than others: with `--peak-inaccuracy=0.0` it is one of the end.
pub fn read(bytes: &[u8]) -> Result<Recording, MassifError> {
    let mut lines = Lines { rest: bytes, number: 0 };
    let options = lines.value("desc: ", "`desc: ` and massif's options")?;
    let command = lines.value("cmd: ", "`cmd: ` and the command")?;
    let unit = lines.value("time_unit: ", "`time_unit: i`, `ms` or `B`")?;
    let clock = match unit {
        b"i" => Clock::Instructions,
        b"ms" => Clock::Milliseconds,
        b"B" => Clock::Bytes,
        unit => return Err(lines.unexpected(unit, "`i`, `ms` or `B`")),
    };
    let mut course = Course::default();
    let mut peak = Point::default();
    let mut detailed: Option<(bool, Point, Gathering)> = None;
    while lines.peek().is_some_and(|line| !line.is_empty()) {
        lines.value("#-", "a line of `#-----------`")?;
        lines.number_of("snapshot=", "`snapshot=` and a number")?;
        lines.value("#-", "a line of `#-----------`")?;
        let point = Point {
            time: lines.number_of("time=", "`time=` and a number")?,
            bytes: lines.number_of("mem_heap_B=", "`mem_heap_B=` and a number")?,
            extra_bytes: Some(lines.number_of("mem_heap_extra_B=", "`mem_heap_extra_B=` and a number")?),
            stack_bytes: Some(lines.number_of("mem_stacks_B=", "`mem_stacks_B=` and a number")?),
            ..Point::default()
        };
        course.take(point);
        if point.bytes > peak.bytes {
            peak = point;
        }
        let is_peak = match lines.value("heap_tree=", "`heap_tree=empty`, `detailed` or `peak`")? {
            b"empty" => continue,
            b"detailed" => false,
            b"peak" => true,
            kind => return Err(lines.unexpected(kind, "`empty`, `detailed` or `peak`")),
        };
        let better = detailed
            .as_ref()
            .is_none_or(|(was_peak, best, _)| (point.bytes, is_peak) >= (best.bytes, *was_peak));
        let mut gathering = better.then(Gathering::default);
        tree(&mut lines, gathering.as_mut())?;
        if let Some(gathering) = gathering {
            detailed = Some((is_peak, point, gathering));
        }
    }
    let (detailed, profile) = match detailed {
        Some((_, point, gathering)) => (Some(point), gathering.profile()),
        None => (None, Default::default()),
    };
    let command = String::from_utf8_lossy(command).into_owned();
    let is_of_pages =
        String::from_utf8_lossy(options).split_whitespace().any(|option| option == "--pages-as-heap=yes");
    Ok(Recording { command, clock, course: course.points(), peak, detailed, profile, is_of_pages })
}

/// A line of a tree whose children are still to come.
struct Open<'a> {
    address: &'a [u8],
    frame: Option<Frame>,
    /// Bytes that no child so far has.
    rest: u64,
    children: u64,
}

/// Reads a tree into the gathering.
fn tree(lines: &mut Lines, mut gathering: Option<&mut Gathering>) -> Result<(), MassifError> {
    const EXPECTED: &str = "`n`, how many children, `: `, bytes and a location, indented by its depth";
    let mut path: Vec<Open> = Vec::new();
    loop {
        let line = lines.take(EXPECTED)?;
        let unexpected = || lines.unexpected(line, EXPECTED);
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        if indent != path.len() {
            return Err(unexpected());
        }
        if indent > DEEPEST {
            return Err(MassifError::TooDeep { line: lines.number });
        }
        let text = line[indent..].strip_prefix(b"n").ok_or_else(unexpected)?;
        let (children, text) = split(text, b": ").ok_or_else(unexpected)?;
        let (bytes, location) = split(text, b" ").ok_or_else(unexpected)?;
        let (children, bytes) = number(children).zip(number(bytes)).ok_or_else(unexpected)?;
        if let Some(outside) = path.last_mut() {
            outside.rest = outside.rest.saturating_sub(bytes);
            outside.children -= 1;
        }
        let (address, name) = match split(location, b": ").filter(|(address, _)| address.starts_with(b"0x")) {
            Some((address, name)) => (address, name),
            None => (&b""[..], location),
        };
        // The root is the allocator, which is in no stack.
        let frame = (indent > 0).then(|| frame(address, name));
        path.push(Open { address, frame, rest: bytes, children });
        while path.last().is_some_and(|open| open.children == 0) {
            if let Some(gathering) = gathering.as_mut() {
                gather(&path, gathering);
            }
            path.pop();
        }
        if path.is_empty() {
            return Ok(());
        }
    }
}

fn split<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(by.len()).position(|window| window == by)?;
    Some((&text[..at], &text[at + by.len()..]))
}

/// Adds the bytes of the innermost open line that no child has to its stack.
fn gather(path: &[Open], gathering: &mut Gathering) {
    let bytes = path.last().map_or(0, |open| open.rest);
    if bytes == 0 {
        return;
    }
    let mut stack = Vec::with_capacity(path.len());
    for (index, open) in path.iter().enumerate() {
        if let Some(frame) = &open.frame {
            // Of lines with one address the last is the function that has the code.
            let outside = path.get(index + 1).map_or(&b""[..], |outside| outside.address);
            let inlined = !open.address.is_empty() && open.address == outside;
            stack.push(gathering.frame(Frame { inlined, ..frame.clone() }));
        }
    }
    stack.reverse();
    let mut values = Values::default();
    *Column::PeakBytes.value_mut(&mut values) = bytes;
    gathering.sample(stack, &values);
}

/// `f(int) (t.cpp:7)`, `f (in /usr/lib/libf.so)`, `??? (in /usr/lib/libf.so)`, or `in 3 places, below massif's threshold (1.00%)`.
fn frame(address: &[u8], text: &[u8]) -> Frame {
    let text = String::from_utf8_lossy(text);
    let mut frame = Frame {
        function: text.clone().into_owned(),
        file: None,
        line: None,
        module: String::new(),
        inlined: false,
    };
    if address.is_empty() {
        // Its callers are unknown.
        frame.function = format!("[{text}]");
        return frame;
    }
    let location = text.strip_suffix(')').and_then(|open| open.rsplit_once(" ("));
    if let Some((function, location)) = location {
        if let Some(path) = location.strip_prefix("in ") {
            frame.module = path.rsplit('/').next().unwrap_or(path).to_owned();
            frame.function = function.to_owned();
        } else if let Some((file, line)) = location.rsplit_once(':') {
            if let Ok(line) = line.parse() {
                frame.file = Some(file.to_owned());
                frame.line = Some(line);
                frame.function = function.to_owned();
            }
        }
    }
    if frame.function == "???" {
        frame.function = String::from_utf8_lossy(address).to_lowercase();
    }
    frame
}
