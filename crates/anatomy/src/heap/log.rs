//! The file: its header, its processes, and the chunks of each sorted into streams. `runtime/heap/log.h` describes the
//! format.

use rustc_hash::FxHashMap;
use thiserror::Error;

const MAGIC: &[u8; 8] = b"\x89WWHEAP\n";
const VERSION: u16 = 3;
const HEADER: usize = 4096;
pub(crate) const CHUNK: usize = 65536;
const CHUNK_MAGIC: u32 = 0x4b4e_4843;
const CHUNK_HEAD: usize = 32;
const PROCESS_MAGIC: u32 = 0x434f_5250;
const PROCESS_HEAD: usize = 120;
const NO_PARENT: u32 = u32::MAX;
const ALLOCATOR: std::ops::Range<usize> = 120..376;
const PROGRAM: std::ops::Range<usize> = 376..3448;
/// More faults than this are counted, and not described.
const MOST_FAULTS: usize = 20;

/// A file that cannot be read as a log.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LogError {
    /// It does not begin as one.
    #[error("is not a heap log: byte 0 should begin \"\\x89WWHEAP\"")]
    NotALog,
    /// It ends within its header.
    #[error("is cut off at byte {0}, within its header of {HEADER} bytes: record the program again")]
    NoHeader(usize),
    /// Another version of the recorder wrote it.
    #[error("is a heap log of version {0}, and this program reads version {VERSION}: read it with the widthwise that recorded it")]
    Version(u16),
    /// A number that no recorder writes.
    #[error("is damaged: it has at byte {offset} {value} as {what}; record the program again")]
    Absurd {
        /// Where it stands.
        offset: usize,
        /// What it is to be.
        what: &'static str,
        /// What it is.
        value: u64,
    },
}

/// Why events were not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// The disk was full.
    Disk,
    /// RLIMIT_FSIZE.
    FileLimit,
    /// The log could not grow beyond the size that was reserved for it.
    Reserve,
    /// RLIMIT_AS or RLIMIT_DATA.
    Memory,
    /// The file was out of reach.
    Mapping,
    /// Handlers of signals within handlers of signals.
    Nested,
    /// A reason that a later recorder has.
    Other,
}

impl Loss {
    /// In the order of the log's counters.
    const ALL: [Loss; LOSSES] = [
        Loss::Disk,
        Loss::FileLimit,
        Loss::Reserve,
        Loss::Memory,
        Loss::Mapping,
        Loss::Nested,
        Loss::Other,
        Loss::Other,
    ];

    /// The reason, as the end of a sentence that begins "events were not recorded: ".
    pub fn reason(self) -> &'static str {
        match self {
            Loss::Disk => "the disk was full",
            Loss::FileLimit => "the limit on file sizes (RLIMIT_FSIZE) was reached",
            Loss::Reserve => "the size that was reserved for the log was reached",
            Loss::Memory => "the recorder could get no memory of its own (a limit: RLIMIT_AS or RLIMIT_DATA)",
            Loss::Mapping => "the log could be neither opened nor mapped",
            Loss::Nested => {
                "signal handlers interrupted each other inside the recorder, or left it by swapcontext"
            }
            Loss::Other => "for a reason that this program does not know",
        }
    }
}

const LOSSES: usize = 8;

/// Events that were not recorded, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost([u64; LOSSES]);

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The reasons for which there are any, and how many.
    pub fn by_reason(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        Loss::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

/// What a log knows of a process besides its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of a pointer: 4 or 8.
    pub word: u8,
    /// `e_machine`: 62 for x86-64 and x32, 3 for i386.
    pub machine: u16,
    /// The process's number. An exec keeps it, and numbers come round again: two processes of a file may have the same.
    pub process: u32,
    /// The process it was forked from: its index in [`LogFile::processes`], which is smaller than this one's.
    pub parent: Option<usize>,
    /// The number of the process that started this one (getppid).
    pub parent_number: u32,
    /// CLOCK_MONOTONIC at its beginning, in nanoseconds.
    pub began_ns: u64,
    /// Events of the parent before this number happened to this process too.
    pub inherited: u64,
    /// It ended by `exit`, by `_exit`, or by returning from `main`.
    pub ended: bool,
    /// Stacks were recorded.
    pub has_stacks: bool,
    /// The program brings a malloc of its own, so that hardly anything was seen.
    pub own_malloc: bool,
    /// Blocks are glibc's.
    pub glibc: bool,
    /// The recorder was linked into the program.
    pub linked: bool,
    /// Stacks that could not be followed to their outermost call.
    pub broken: u32,
    /// Events that were not recorded.
    pub lost: Lost,
    /// Bytes of the recorder's own memory that look like the program's in the system's view.
    pub anonymous_bytes: u64,
    /// The file that malloc is in.
    pub allocator: String,
    /// The program.
    pub program: String,
}

/// What is wrong with a file, up to a number of faults; the rest of it is read all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    texts: Vec<String>,
    more: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, text: impl FnOnce() -> String) {
        if self.texts.len() < MOST_FAULTS {
            self.texts.push(text());
        } else {
            self.more += 1;
        }
    }

    /// One line each; the last one counts those beyond the first twenty.
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} faults more", self.more));
        self.texts.iter().cloned().chain(more).collect()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// A process of a log, ready to be decoded.
#[derive(Debug)]
pub struct Process<'a> {
    /// What the log knows of it.
    pub header: Header,
    /// The records of each stream, chunk by chunk.
    pub(crate) streams: Vec<Vec<&'a [u8]>>,
}

/// A log: the processes that wrote to one file.
#[derive(Debug)]
pub struct LogFile<'a> {
    /// In the order in which they began to write. A process stands behind the one it was forked from.
    pub processes: Vec<Process<'a>>,
    /// What is wrong with the file.
    pub faults: Faults,
    /// Bytes of chunks that hold records: what decoding it takes.
    pub record_bytes: u64,
}

/// A chunk of records.
struct Found {
    /// The chunk of its process.
    process: u32,
    stream: u32,
    /// In its stream.
    index: u32,
    offset: usize,
}

fn word<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut word = [0; N];
    if let Some(found) = bytes.get(offset..offset + N) {
        word.copy_from_slice(found);
    }
    word
}

fn number(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(word(bytes, offset))
}

fn long(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(word(bytes, offset))
}

fn text(bytes: &[u8], range: std::ops::Range<usize>) -> String {
    let bytes = bytes.get(range.start.min(bytes.len())..range.end.min(bytes.len())).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl<'a> LogFile<'a> {
    /// The header: what follows it are processes and their records.
    pub const HEADER_BYTES: usize = HEADER;

    /// Whether a file begins as one.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// How many bytes of a file with this header are used: the file may be much longer. Its first 4096 bytes are enough.
    ///
    /// # Errors
    /// It is no log of this version.
    pub fn used_bytes(bytes: &[u8]) -> Result<u64, LogError> {
        Ok((HEADER + chunks(bytes)? * CHUNK) as u64)
    }

    /// Finds the processes and their streams. Only what is used of the file is looked at. A log that was cut off is read up
    /// to there.
    ///
    /// # Errors
    /// It is no log of this version.
    pub fn read(bytes: &'a [u8]) -> Result<LogFile<'a>, LogError> {
        let claimed = chunks(bytes)?;
        let there = (bytes.len() - HEADER).div_ceil(CHUNK);
        let mut log = LogFile { processes: Vec::new(), faults: Faults::default(), record_bytes: 0 };
        let (length, expected) = (bytes.len(), HEADER + claimed * CHUNK);
        if length < expected {
            log.faults
                .add(|| format!("the file is cut off at byte {length}: its header says {expected} bytes"));
        }
        let mut by_chunk: FxHashMap<u32, usize> = FxHashMap::default();
        let mut found: Vec<Found> = Vec::new();
        for chunk in 0..claimed.min(there) {
            let offset = HEADER + chunk * CHUNK;
            let whole = &bytes[offset..(offset + CHUNK).min(bytes.len())];
            match number(whole, 0) {
                PROCESS_MAGIC => match process(whole, &by_chunk) {
                    Ok((header, parent)) => {
                        if parent != NO_PARENT && header.parent.is_none() {
                            log.faults.add(|| {
                                let process = header.process;
                                format!("process {process}: chunk {parent} should describe its parent, and does not")
                            });
                        }
                        by_chunk.insert(chunk as u32, log.processes.len());
                        log.processes.push(Process { header, streams: Vec::new() });
                    }
                    Err(fault) => log.faults.add(|| format!("the process at byte {offset}: {fault}")),
                },
                CHUNK_MAGIC if whole.len() >= CHUNK_HEAD => {
                    let [process, stream, index, flushed] = [4, 8, 12, 16].map(|at| number(whole, at));
                    // A chunk buffer that was flushed has a whole copy.
                    if flushed == 0 {
                        found.push(Found { process, stream, index, offset });
                    }
                }
                // Claimed, but never written to.
                0 => {}
                other => log.faults.add(|| format!("the chunk at byte {offset} begins with {other:#010x}")),
            }
        }
        log.sort(bytes, &by_chunk, found);
        Ok(log)
    }

    /// Puts the chunks of each stream in order.
    fn sort(&mut self, bytes: &'a [u8], by_chunk: &FxHashMap<u32, usize>, mut found: Vec<Found>) {
        found.sort_by_key(|chunk| (chunk.process, chunk.stream, chunk.index, chunk.offset));
        // The first of them in the file is the chunk buffer: its copy may be unfinished.
        found.dedup_by_key(|chunk| (chunk.process, chunk.stream, chunk.index));
        for stream in found.chunk_by(|a, b| (a.process, a.stream) == (b.process, b.stream)) {
            let first = &stream[0];
            let Some(process) = by_chunk.get(&first.process).and_then(|index| self.processes.get_mut(*index))
            else {
                let (stream, chunk) = (first.stream, first.process);
                self.faults.add(|| {
                    format!(
                        "stream {stream} is of the process in chunk {chunk}, where none is; it is not read"
                    )
                });
                continue;
            };
            let mut chunks = Vec::new();
            for (expected, chunk) in (0u32..).zip(stream) {
                if chunk.index != expected {
                    // What follows is written as distances from what came before it.
                    let (stream, process) = (first.stream, process.header.process);
                    self.faults.add(|| {
                        format!(
                            "of stream {stream} of process {process} chunk {expected} is missing; the rest is not read"
                        )
                    });
                    break;
                }
                let end = (chunk.offset + CHUNK).min(bytes.len());
                chunks.push(&bytes[chunk.offset + CHUNK_HEAD..end]);
            }
            self.record_bytes += (chunks.len() * CHUNK) as u64;
            process.streams.push(chunks);
        }
    }
}

/// Reads the file's header: how many chunks were claimed.
fn chunks(bytes: &[u8]) -> Result<usize, LogError> {
    if !bytes.starts_with(MAGIC) {
        return Err(LogError::NotALog);
    }
    if bytes.len() < HEADER {
        return Err(LogError::NoHeader(bytes.len()));
    }
    let version = u16::from_le_bytes(word(bytes, 8));
    if version != VERSION {
        return Err(LogError::Version(version));
    }
    for (offset, what, expected) in [(12, "the size of a page", HEADER), (16, "the size of a chunk", CHUNK)] {
        let value = number(bytes, offset);
        if value as usize != expected {
            return Err(LogError::Absurd { offset, what, value: value.into() });
        }
    }
    let claimed = number(bytes, 20) as usize;
    // A claim beyond the reserve was in vain.
    let reserved = long(bytes, 24);
    let most = usize::try_from(reserved).unwrap_or(usize::MAX).saturating_sub(HEADER) / CHUNK;
    Ok(if reserved == 0 { claimed } else { claimed.min(most) })
}

/// Reads a chunk that describes a process; `before` are those of the chunks before it. Gives back the chunk of its parent as
/// well. A parent's chunk comes before those of its children, so no process is its own ancestor.
fn process(chunk: &[u8], before: &FxHashMap<u32, usize>) -> Result<(Header, u32), String> {
    if chunk.len() < PROCESS_HEAD {
        return Err("is cut off".to_owned());
    }
    let pointer = chunk[4];
    if pointer != 4 && pointer != 8 {
        return Err(format!("its pointers have {pointer} bytes"));
    }
    let parent = number(chunk, 12);
    let state = number(chunk, 32);
    let is = |bit: u32| state & bit != 0;
    let mut lost = [0; LOSSES];
    for (index, count) in lost.iter_mut().enumerate() {
        *count = long(chunk, 40 + 8 * index);
    }
    let header = Header {
        word: pointer,
        machine: u16::from_le_bytes(word(chunk, 6)),
        process: number(chunk, 8),
        parent: before.get(&parent).copied(),
        parent_number: number(chunk, 112),
        began_ns: long(chunk, 16),
        inherited: long(chunk, 24),
        ended: is(1),
        has_stacks: is(4),
        own_malloc: is(8),
        glibc: is(16),
        linked: is(32),
        broken: number(chunk, 36),
        lost: Lost(lost),
        anonymous_bytes: long(chunk, 104),
        allocator: text(chunk, ALLOCATOR),
        program: text(chunk, PROGRAM),
    };
    Ok((header, parent))
}
