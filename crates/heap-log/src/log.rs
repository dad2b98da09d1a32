//! The file: its header, its processes, and the chunks of each sorted into streams. `runtime/heap/log.h` describes the
//! format.

use rustc_hash::FxHashMap;
use thiserror::Error;

/// The log's layout, generated from `runtime/heap/log.h` by build.rs.
#[allow(dead_code)]
pub(crate) mod layout {
    include!(concat!(env!("OUT_DIR"), "/log.rs"));
}

const HEADER: usize = layout::LOG_HEADER as usize;
pub(crate) const CHUNK: usize = layout::LOG_CHUNK as usize;
const VERSION: u32 = layout::LOG_VERSION;
const CHUNK_HEAD: usize = layout::LogChunk::SIZE;
/// A process's fields of fixed size; its texts follow, which may be cut off.
const PROCESS_HEAD: usize = std::mem::offset_of!(layout::LogProcess, allocator);
/// Further faults are counted and not described.
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
    /// A number that the recorder never writes.
    #[error("is damaged: it has at byte {offset} {value} as {what}; record the program again")]
    Absurd {
        /// Its offset in the file.
        offset: usize,
        /// Its meaning.
        what: &'static str,
        /// Its value.
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
    /// The file could be neither opened nor mapped.
    Mapping,
    /// Signal handlers interrupted each other too deeply.
    Nested,
    /// A reason of a later recorder.
    Other,
}

impl Loss {
    /// That of the log's counter with this index.
    fn of(index: usize) -> Loss {
        match index as u32 {
            layout::LOG_LOST_DISK => Loss::Disk,
            layout::LOG_LOST_FILE_LIMIT => Loss::FileLimit,
            layout::LOG_LOST_RESERVE => Loss::Reserve,
            layout::LOG_LOST_MEMORY => Loss::Memory,
            layout::LOG_LOST_MAPPING => Loss::Mapping,
            layout::LOG_LOST_NESTED => Loss::Nested,
            _ => Loss::Other,
        }
    }

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

const LOSSES: usize = layout::LogProcess::ZERO.lost.len();

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
        self.0
            .into_iter()
            .enumerate()
            .map(|(index, count)| (Loss::of(index), count))
            .filter(|(_, count)| *count > 0)
    }
}

/// The log's description of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of a pointer: 4 or 8.
    pub word: u8,
    /// `e_machine`: 62 for x86-64 and x32, 3 for i386.
    pub machine: u16,
    /// The process's number. An exec keeps it, and the system reuses numbers: two processes of a file may have the same.
    pub process: u32,
    /// The process it was forked from: its index in [`LogFile::processes`], which is smaller than this one's.
    pub parent: Option<usize>,
    /// The number of the process that started this one (getppid).
    pub parent_number: u32,
    /// CLOCK_MONOTONIC at its beginning, in nanoseconds.
    pub began_ns: u64,
    /// The parent's events before this number are also events of this process.
    pub inherited: u64,
    /// It ended by `exit`, by `_exit`, or by returning from `main`.
    pub ended: bool,
    /// Stacks were recorded.
    pub has_stacks: bool,
    /// The program brings its own malloc, so that few or no allocations were recorded.
    pub own_malloc: bool,
    /// Blocks are glibc's.
    pub glibc: bool,
    /// The recorder was linked into the program.
    pub linked: bool,
    /// Stacks that could not be followed to their outermost call.
    pub broken: u32,
    /// Events that were not recorded.
    pub lost: Lost,
    /// Bytes of the recorder's own memory that count as the program's RSS.
    pub anonymous_bytes: u64,
    /// The file that malloc is in.
    pub allocator: String,
    /// The program.
    pub program: String,
}

/// Files of allocators that keep blocks of one size together, so that no block has a header: the description is the page's or the
/// segment's. Builds for debugging have other names.
const WITHOUT_HEADERS: [&str; 4] =
    ["libjemalloc.so", "libmimalloc.so", "libtcmalloc.so", "libtcmalloc_minimal.so"];

impl Header {
    /// Bytes of the allocator's own before each block; none where they are not known.
    pub fn block_header(&self) -> Option<u64> {
        let file = self.allocator.rsplit('/').next().unwrap_or_default();
        let has_none = |name: &&str| {
            file.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match self.glibc {
            // malloc/malloc.c, malloc_chunk.
            true => Some(u64::from(self.word)),
            false => WITHOUT_HEADERS.iter().any(has_none).then_some(0),
        }
    }
}

/// The faults of a file, up to a limit; the rest of the file is read.
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
    /// In the order in which they began to write: a process comes after the one it was forked from.
    pub processes: Vec<Process<'a>>,
    /// What is wrong with the file.
    pub faults: Faults,
    /// Bytes of chunks that hold records, for progress.
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

/// A text that ends at its first NUL, or with its array.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl<'a> LogFile<'a> {
    /// Bytes of the header; processes and their records follow.
    pub const HEADER_BYTES: usize = HEADER;

    /// Whether a file begins as one.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(layout::LOG_MAGIC)
    }

    /// The used bytes of a file with this header, which may be much longer. The first 4096 bytes suffice.
    ///
    /// # Errors
    /// It is no log of this version.
    pub fn used_bytes(bytes: &[u8]) -> Result<u64, LogError> {
        Ok((HEADER + chunks(bytes)? * CHUNK) as u64)
    }

    /// Finds the processes and their streams. Reads only the used part of the file. A log that is cut off is read up to that
    /// point.
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
            match whole.first_chunk().map_or(0, |magic| u32::from_le_bytes(*magic)) {
                layout::LOG_PROCESS_MAGIC => match process(whole, &by_chunk) {
                    Ok((header, parent)) => {
                        if parent != layout::LOG_NO_PARENT && header.parent.is_none() {
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
                layout::LOG_CHUNK_MAGIC if whole.len() >= CHUNK_HEAD => {
                    // A chunk buffer that was flushed has a whole copy.
                    if let Some(head) = layout::LogChunk::read(whole).filter(|head| head.flushed == 0) {
                        found.push(Found {
                            process: head.process,
                            stream: head.stream,
                            index: head.index,
                            offset,
                        });
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
                    // Later chunks hold differences to this one.
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
    if !bytes.starts_with(layout::LOG_MAGIC) {
        return Err(LogError::NotALog);
    }
    if bytes.len() < HEADER {
        return Err(LogError::NoHeader(bytes.len()));
    }
    let header = layout::LogFile::read(bytes).ok_or(LogError::NoHeader(bytes.len()))?;
    if u32::from(header.version) != VERSION {
        return Err(LogError::Version(header.version));
    }
    for (offset, what, value, expected) in [
        (std::mem::offset_of!(layout::LogFile, page), "the size of a page", header.page, layout::LOG_HEADER),
        (
            std::mem::offset_of!(layout::LogFile, chunk),
            "the size of a chunk",
            header.chunk,
            layout::LOG_CHUNK,
        ),
    ] {
        if value != expected {
            return Err(LogError::Absurd { offset, what, value: value.into() });
        }
    }
    let claimed = header.chunks as usize;
    // Chunks beyond the reserved size could not be written to.
    let most = usize::try_from(header.reserved).unwrap_or(usize::MAX).saturating_sub(HEADER) / CHUNK;
    Ok(if header.reserved == 0 { claimed } else { claimed.min(most) })
}

/// Reads a chunk that describes a process, and returns its parent's chunk too. `before` are the processes of earlier chunks: a
/// parent's chunk comes before its children's, so no process is its own ancestor.
fn process(chunk: &[u8], before: &FxHashMap<u32, usize>) -> Result<(Header, u32), String> {
    if chunk.len() < PROCESS_HEAD {
        return Err("is cut off".to_owned());
    }
    let mut bytes = [0; layout::LogProcess::SIZE];
    let there = chunk.len().min(bytes.len());
    bytes[..there].copy_from_slice(&chunk[..there]);
    let process = layout::LogProcess::read(&bytes).ok_or("is cut off")?;
    if process.word != 4 && process.word != 8 {
        return Err(format!("its pointers have {} bytes", process.word));
    }
    let is = |bit: u32| process.state & bit != 0;
    let header = Header {
        word: process.word,
        machine: process.machine,
        process: process.process,
        parent: before.get(&process.parent).copied(),
        parent_number: process.parent_number,
        began_ns: process.began,
        inherited: process.inherited,
        ended: is(layout::LOG_ENDED),
        has_stacks: is(layout::LOG_HAS_STACKS),
        own_malloc: is(layout::LOG_OWN_MALLOC),
        glibc: is(layout::LOG_GLIBC),
        linked: is(layout::LOG_LINKED),
        broken: process.broken,
        lost: Lost(process.lost),
        anonymous_bytes: process.anonymous,
        allocator: text(&process.allocator),
        program: text(&process.program),
    };
    Ok((header, process.parent))
}

#[cfg(test)]
mod tests {
    use super::layout::{LogChunk, LogFile, LogProcess, LOG_VERSION};

    /// A log may be read long after it was written, so its layout changes with its version only.
    #[test]
    fn the_layout_of_version_3_does_not_change() {
        let listed = |name: &str, fields: &[(&str, usize, usize)]| {
            fields.iter().map(|(field, at, size)| format!("{name}.{field} {at} {size}\n")).collect::<String>()
        };
        let layout = [
            listed("log_file", LogFile::FIELDS),
            listed("log_chunk", LogChunk::FIELDS),
            listed("log_process", LogProcess::FIELDS),
        ];
        assert_eq!(LOG_VERSION, 3);
        assert_eq!(layout.concat(), include_str!("log/version_3.txt"));
    }
}
