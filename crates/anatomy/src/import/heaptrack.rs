//! heaptrack's interpreted files (`heaptrack.PROGRAM.PID.zst` or `.gz`): one line for each event.
//!
//! The format has no description but its reader and writer in <https://invent.kde.org/sdk/heaptrack> (`src/interpret`, `src/analyze`); this
//! reads versions 1 to 3 of it. Numbers are hexadecimal; tables are numbered from 1 in the order of their lines, 0 is none.
//!
//! | line | what it says |
//! | --- | --- |
//! | `v VERSION FORMAT` | heaptrack's version and the format's |
//! | `X command` | what was recorded |
//! | `I size pages` | bytes of a page, and the machine's pages |
//! | `s length text` | the next string; before format 3 without its length |
//! | `i address module {function file line}` | the next code address; the innermost inlined function first |
//! | `t address outer` | the next stack: the number of a code address, and the outer stack |
//! | `a bytes stack` | the next kind of block, from 0: its size, and the stack that allocated it |
//! | `+ kind`, `- kind` | an allocation, a release of that kind |
//! | `c milliseconds`, `R pages` | time since the start; resident pages |

use std::io::{BufRead, BufReader, Read};

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::import::recording::{Clock, Course, Point, Recording};
use crate::names::demangled;
use widthwise_heap_log::profile::{Frame, Gathering, Values};

/// The newest format that is read.
const NEWEST: u64 = 3;
/// log2 of the largest zstd window: zstd's default limit for decoders.
const WINDOW: u32 = 27;
/// Deeper stacks lose their outermost calls; heaptrack itself records 64 calls.
const DEEPEST: usize = 2048;

/// Limits that only a hostile file exceeds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Bytes when unpacked.
    unpacked: u64,
    /// Bytes of a line.
    line: usize,
    /// Bytes of all tables together.
    tables: usize,
    /// Frames in all stacks together.
    frames: usize,
}

const LIMITS: Limits = Limits { unpacked: 16 << 30, line: 4 << 20, tables: 1 << 30, frames: 64 << 20 };

/// Bytes that are no recording of heaptrack.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum HeaptrackError {
    /// It does not begin as one.
    #[error(
        "line 1: is no heaptrack recording: it should begin with `v `, heaptrack's version and the format's"
    )]
    NotARecording,
    /// Of a newer format.
    #[error("line 1: is of heaptrack's format {0}, and this reads up to {NEWEST}")]
    TooNew(u64),
    /// The recorder's own log, without names.
    #[error("line {line}: is raw data: let heaptrack interpret it first (`heaptrack --interpret FILE`)")]
    Raw {
        /// Counted from 1.
        line: usize,
    },
    /// A line is malformed.
    #[error("line {line}: should be {expected}, and is \"{found}\"")]
    Unexpected {
        /// Counted from 1.
        line: usize,
        /// What heaptrack writes in this line.
        expected: &'static str,
        /// The beginning of the line.
        found: String,
    },
    /// The packed file is damaged or cut off.
    #[error("cannot be unpacked beyond line {line}: {reason}")]
    Packing {
        /// The last line that could be, counted from 1.
        line: usize,
        /// Why not.
        reason: String,
    },
    /// It is larger than any recording.
    #[error("line {line}: has {what} beyond what heaptrack records")]
    TooLarge {
        /// Counted from 1; the last one if the whole file is too large.
        line: usize,
        /// What exceeds the limit.
        what: &'static str,
    },
}

/// The lines of a file, one at a time.
struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// Of the current line, counted from 1.
    number: usize,
    /// Bytes so far.
    read: u64,
    limits: Limits,
}

impl<'a> Lines<'a> {
    fn of(bytes: &'a [u8], limits: Limits) -> Result<Lines<'a>, HeaptrackError> {
        let packing = |error: std::io::Error| HeaptrackError::Packing { line: 0, reason: error.to_string() };
        let unpacked: Box<dyn Read + 'a> = if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(packing)?;
            decoder.window_log_max(WINDOW).map_err(packing)?;
            Box::new(decoder)
        } else if bytes.starts_with(&[0x1f, 0x8b]) {
            Box::new(flate2::read::MultiGzDecoder::new(bytes))
        } else {
            Box::new(bytes)
        };
        // One byte more than the limit, to detect that it is exceeded.
        let reader = Box::new(BufReader::with_capacity(1 << 16, unpacked.take(limits.unpacked + 1)));
        Ok(Lines { reader, line: Vec::new(), number: 0, read: 0, limits })
    }

    /// Goes to the next line; `false` at the end.
    fn advance(&mut self) -> Result<bool, HeaptrackError> {
        self.line.clear();
        self.more()
    }

    /// Appends the next line to the current one, which ends within a text.
    fn more(&mut self) -> Result<bool, HeaptrackError> {
        let room = self.limits.line.saturating_sub(self.line.len()) as u64;
        let got = (&mut self.reader)
            .take(room + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| HeaptrackError::Packing { line: self.number, reason: error.to_string() })?;
        if got > 0 {
            self.number += 1;
        }
        self.read += got as u64;
        if self.read > self.limits.unpacked {
            return Err(HeaptrackError::TooLarge { line: self.number, what: "more bytes" });
        }
        if self.line.len() > self.limits.line {
            return Err(HeaptrackError::TooLarge { line: self.number, what: "a line" });
        }
        Ok(got > 0)
    }

    fn text(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    fn unexpected(&self, expected: &'static str) -> HeaptrackError {
        let found =
            String::from_utf8_lossy(self.text()).chars().take(60).flat_map(char::escape_debug).collect();
        HeaptrackError::Unexpected { line: self.number, expected, found }
    }
}

/// The numbers behind a line's letter.
fn numbers(text: &[u8]) -> impl Iterator<Item = Option<u64>> + '_ {
    text.split(|byte| *byte == b' ').skip(1).filter(|word| !word.is_empty()).map(hexadecimal)
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 16 {
        return None;
    }
    word.iter().try_fold(0, |number, digit| Some(number << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

/// A function at a code address.
struct Named {
    function: u32,
    file: u32,
    line: u32,
}

struct CodeAddress {
    address: u64,
    module: u32,
    /// The end of its functions in their table; they begin where those of the code address before it end.
    end: usize,
}

/// Blocks of one size from one stack.
#[derive(Default)]
struct Kind {
    size: u64,
    stack: u32,
    count: u64,
    live: u64,
    peak: u64,
    /// The event up to which `peak` is settled.
    seen: u64,
}

impl Kind {
    /// Call before a change: if the process reached its peak since the last change, these are its blocks of this kind at the peak.
    fn settle(&mut self, now: u64, peak: u64) {
        if peak >= self.seen {
            self.peak = self.live;
        }
        self.seen = now;
    }
}

#[derive(Default)]
struct Interpreter {
    format: u64,
    command: String,
    page: u64,
    strings: Vec<String>,
    /// The demangled names of those strings that are functions.
    functions: FxHashMap<u32, String>,
    named: Vec<Named>,
    code_addresses: Vec<CodeAddress>,
    /// Numbers of a code address and of an outer stack.
    stacks: Vec<(u32, u32)>,
    kinds: Vec<Kind>,
    /// Bytes of the tables.
    held: usize,
    now: Point,
    /// The highest point since the last `c` line.
    highest: Point,
    peak: Point,
    peak_at: u64,
    step: u64,
    course: Course,
}

/// Reads a recording, packed or not.
pub fn read(bytes: &[u8]) -> Result<Recording, HeaptrackError> {
    read_within(bytes, LIMITS)
}

fn read_within(bytes: &[u8], limits: Limits) -> Result<Recording, HeaptrackError> {
    let mut lines = Lines::of(bytes, limits)?;
    let mut interpreter = Interpreter::default();
    while lines.advance()? {
        interpreter.take(&mut lines)?;
        if interpreter.held > limits.tables {
            return Err(HeaptrackError::TooLarge { line: lines.number, what: "larger tables" });
        }
    }
    if interpreter.format == 0 {
        return Err(HeaptrackError::NotARecording);
    }
    interpreter.finish(&lines)
}

impl Interpreter {
    fn take(&mut self, lines: &mut Lines) -> Result<(), HeaptrackError> {
        let letter = lines.text().first().copied();
        if self.format == 0 && letter != Some(b'v') {
            return Err(HeaptrackError::NotARecording);
        }
        match letter {
            Some(b'+') => self.come(lines),
            Some(b'-') => self.go(lines),
            Some(b'a') => self.kind(lines),
            Some(b't') => self.stack(lines),
            Some(b'i') => self.code_address(lines),
            Some(b's') => self.string(lines),
            Some(b'c') => {
                let time = number(lines, "`c` and milliseconds")?;
                self.course.take(self.highest);
                self.now.time = time;
                self.highest = self.now;
                Ok(())
            }
            Some(b'R') => {
                let pages = number(lines, "`R` and resident pages")?;
                self.now.resident_bytes = Some(pages.saturating_mul(self.page));
                Ok(())
            }
            Some(b'I') => {
                self.page = number(lines, "`I` and the bytes of a page")?;
                Ok(())
            }
            Some(b'X') => {
                let text = lines.text();
                self.command = String::from_utf8_lossy(text.get(2..).unwrap_or_default()).into_owned();
                Ok(())
            }
            Some(b'v') => {
                let mut numbers = numbers(lines.text());
                let format = numbers.nth(1).flatten().ok_or(HeaptrackError::NotARecording)?;
                match format {
                    0 => Err(HeaptrackError::NotARecording),
                    1..=NEWEST => {
                        self.format = format;
                        Ok(())
                    }
                    newer => Err(HeaptrackError::TooNew(newer)),
                }
            }
            // A module and an executable: only the recorder's own log has these.
            Some(b'm' | b'x') => Err(HeaptrackError::Raw { line: lines.number }),
            // `A`: from here on it was recorded. `S`: which leaks are not to be shown.
            None | Some(b'#' | b'A' | b'S') => Ok(()),
            Some(_) => Err(lines.unexpected("one of heaptrack's lines: v X I s i t a + - c R # A S")),
        }
    }

    fn string(&mut self, lines: &mut Lines) -> Result<(), HeaptrackError> {
        const EXPECTED: &str = "`s`, the length of a text, and so many bytes of it";
        let text = if self.format < 3 {
            lines.text().get(2..).unwrap_or_default()
        } else {
            let head = lines.line.splitn(3, |byte| *byte == b' ').nth(1);
            let head = head.map(|word| word.strip_suffix(b"\n").unwrap_or(word));
            let length = head.and_then(hexadecimal).and_then(|length| usize::try_from(length).ok());
            let (begin, length) =
                head.map(|word| word.len() + 3).zip(length).ok_or_else(|| lines.unexpected(EXPECTED))?;
            if length > lines.limits.line {
                return Err(HeaptrackError::TooLarge { line: lines.number, what: "a text" });
            }
            // The text may have ends of lines in it.
            while lines.line.len() < begin + length {
                if !lines.more()? {
                    return Err(lines.unexpected(EXPECTED));
                }
            }
            let (text, behind) = lines.line[begin..].split_at(length);
            if !matches!(behind, [] | [b'\n']) {
                return Err(lines.unexpected(EXPECTED));
            }
            text
        };
        let text = String::from_utf8_lossy(text).into_owned();
        self.held += text.len() + size_of::<String>();
        self.strings.push(text);
        Ok(())
    }

    fn code_address(&mut self, lines: &Lines) -> Result<(), HeaptrackError> {
        const EXPECTED: &str =
            "`i`, an address, a module, and functions with file and line, all from earlier lines";
        let unexpected = || lines.unexpected(EXPECTED);
        let string = |index: Option<u64>| below(index?, self.strings.len());
        let mut words = numbers(lines.text());
        let address = words.next().flatten().ok_or_else(unexpected)?;
        let module = match words.next() {
            Some(module) => string(module).ok_or_else(unexpected)?,
            None => 0,
        };
        while let Some(function) = words.next() {
            let function = string(function).ok_or_else(unexpected)?;
            if let Some(name) = preceding(function).and_then(|index| self.strings.get(index)) {
                self.functions.entry(function).or_insert_with(|| {
                    let shown = demangled(name);
                    self.held += shown.len() + size_of::<String>();
                    shown
                });
            }
            // Without a file, nothing follows.
            let file = words.next().map_or(Some(0), string).ok_or_else(unexpected)?;
            let line = words.next().map_or(Some(0), |line| line?.try_into().ok()).ok_or_else(unexpected)?;
            self.named.push(Named { function, file, line });
            self.held += size_of::<Named>();
        }
        self.held += size_of::<CodeAddress>();
        self.code_addresses.push(CodeAddress { address, module, end: self.named.len() });
        Ok(())
    }

    fn stack(&mut self, lines: &Lines) -> Result<(), HeaptrackError> {
        let mut words = numbers(lines.text());
        let code = words.next().flatten().and_then(|code| below(code, self.code_addresses.len()));
        let outer = words.next().flatten().and_then(|outer| below(outer, self.stacks.len()));
        let stack = code.zip(outer);
        let stack = stack
            .ok_or_else(|| lines.unexpected("`t`, a code address and a stack, both from earlier lines"))?;
        self.held += size_of::<(u32, u32)>();
        self.stacks.push(stack);
        Ok(())
    }

    fn kind(&mut self, lines: &Lines) -> Result<(), HeaptrackError> {
        let mut words = numbers(lines.text());
        let size = words.next().flatten();
        let stack = words.next().flatten().and_then(|stack| below(stack, self.stacks.len()));
        let kind = size.zip(stack);
        let (size, stack) =
            kind.ok_or_else(|| lines.unexpected("`a`, bytes and a stack from an earlier line"))?;
        self.held += size_of::<Kind>();
        self.kinds.push(Kind { size, stack, ..Kind::default() });
        Ok(())
    }

    /// The kind of block that the current line names, ready to change.
    fn named_kind(&mut self, lines: &Lines) -> Result<&mut Kind, HeaptrackError> {
        let index = numbers(lines.text()).next().flatten().and_then(|index| usize::try_from(index).ok());
        let (step, peak) = (self.step + 1, self.peak_at);
        let kind = index.and_then(|index| self.kinds.get_mut(index));
        let kind =
            kind.ok_or_else(|| lines.unexpected("`+` or `-` and a kind of block from an earlier line"))?;
        self.step = step;
        kind.settle(step, peak);
        Ok(kind)
    }

    fn come(&mut self, lines: &Lines) -> Result<(), HeaptrackError> {
        let kind = self.named_kind(lines)?;
        kind.count += 1;
        kind.live += 1;
        let size = kind.size;
        self.now.bytes = self.now.bytes.saturating_add(size);
        self.now.count = Some(self.now.count.unwrap_or(0) + 1);
        if self.now.bytes > self.highest.bytes {
            self.highest = self.now;
        }
        if self.now.bytes > self.peak.bytes {
            self.peak = self.now;
            self.peak_at = self.step;
        }
        Ok(())
    }

    fn go(&mut self, lines: &Lines) -> Result<(), HeaptrackError> {
        let kind = self.named_kind(lines)?;
        // Releases of blocks from before the recording are ignored.
        if kind.live > 0 {
            kind.live -= 1;
            let size = kind.size;
            self.now.bytes = self.now.bytes.saturating_sub(size);
            self.now.count = self.now.count.map(|count| count.saturating_sub(1));
        }
        Ok(())
    }

    fn finish(mut self, lines: &Lines) -> Result<Recording, HeaptrackError> {
        self.course.take(self.highest);
        self.course.take(self.now);
        let mut gathering = Gathering::default();
        let mut frames_of: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut all_frames = 0;
        for kind in &mut self.kinds {
            kind.settle(u64::MAX, self.peak_at);
        }
        for kind in self.kinds.iter().filter(|kind| kind.count > 0) {
            let mut stack = Vec::new();
            let mut at = kind.stack;
            while let Some((code, outer)) = preceding(at).and_then(|index| self.stacks.get(index)).copied() {
                let frames = frames_of.entry(code).or_insert_with(|| {
                    self.frames(code).into_iter().map(|frame| gathering.frame(frame)).collect()
                });
                let room = DEEPEST - stack.len();
                stack.extend(frames.iter().take(room));
                if stack.len() == DEEPEST {
                    break;
                }
                at = outer;
            }
            all_frames += stack.len();
            if all_frames > lines.limits.frames {
                return Err(HeaptrackError::TooLarge { line: lines.number, what: "longer stacks" });
            }
            // The allocation functions are left out, as by massif and the recorder: the caller is the site.
            let by_new =
                |frame: &&u32| gathering.frames()[**frame as usize].function.starts_with("operator new");
            let allocators = stack.iter().take_while(by_new).count();
            stack.drain(..allocators);
            stack.reverse();
            let bytes = |count: u64| count.saturating_mul(kind.size);
            let values = Values {
                peak_count: kind.peak,
                peak_bytes: bytes(kind.peak),
                peak_chunk_bytes: 0,
                count: kind.count,
                bytes: bytes(kind.count),
                live_count: kind.live,
                live_bytes: bytes(kind.live),
                ..Values::default()
            };
            gathering.sample(stack, &values);
        }
        Ok(Recording {
            is_of_pages: false,
            command: self.command,
            clock: Clock::Milliseconds,
            course: self.course.points(),
            peak: self.peak,
            detailed: Some(self.peak),
            profile: gathering.profile(),
        })
    }

    /// A code address's frames, the innermost first.
    fn frames(&self, code: u32) -> Vec<Frame> {
        let Some(index) = preceding(code).filter(|index| *index < self.code_addresses.len()) else {
            return Vec::new();
        };
        let string =
            |index: u32| preceding(index).and_then(|index| self.strings.get(index)).map(String::as_str);
        let code = &self.code_addresses[index];
        let begin = index.checked_sub(1).map_or(0, |before| self.code_addresses[before].end);
        let module = string(code.module).unwrap_or_default();
        let module = module.rsplit('/').next().unwrap_or(module).to_owned();
        let named = &self.named[begin..code.end];
        let address = || format!("{:#x}", code.address);
        let mut frames: Vec<Frame> = named
            .iter()
            .map(|named| Frame {
                function: self.functions.get(&named.function).cloned().unwrap_or_else(address),
                file: string(named.file).map(str::to_owned),
                line: Some(named.line).filter(|line| *line != 0),
                module: module.clone(),
                inlined: true,
            })
            .collect();
        match frames.last_mut() {
            Some(last) => last.inlined = false,
            None => {
                frames.push(Frame { function: address(), file: None, line: None, module, inlined: false })
            }
        }
        frames
    }
}

fn number(lines: &Lines, expected: &'static str) -> Result<u64, HeaptrackError> {
    numbers(lines.text()).next().flatten().ok_or_else(|| lines.unexpected(expected))
}

/// The number of a table's entry; `None` if the table has fewer.
fn below(index: u64, entries: usize) -> Option<u32> {
    (index <= entries as u64).then(|| u32::try_from(index).ok()).flatten()
}

/// The index of the entry of that number; 0 is none.
fn preceding(number: u32) -> Option<usize> {
    (number as usize).checked_sub(1)
}

#[cfg(test)]
mod tests;
