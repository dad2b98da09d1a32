//! The file: its header, and its chunks sorted into streams. The format is described in `runtime/heap/log.h`.

use thiserror::Error;

const MAGIC: &[u8; 8] = b"\x89WWHEAP\n";
const VERSION: u16 = 2;
const HEADER: usize = 4096;
const CHUNK: usize = 65536;
const CHUNK_MAGIC: u32 = 0x4b4e_4843;
const CHUNK_HEAD: usize = 16;
const ALLOCATOR: std::ops::Range<usize> = 64..320;
const PROGRAM: std::ops::Range<usize> = 320..3392;

/// A file that cannot be read as a log.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LogError {
    /// It does not begin as one.
    #[error("is not a heap log: byte 0 should begin \"\\x89WWHEAP\"")]
    NotALog,
    /// It ends within its header.
    #[error("is cut off at byte {0}, within its header: the recorder had no room for it")]
    NoHeader(usize),
    /// Another version of the recorder wrote it.
    #[error("is a heap log of version {0}, and this program reads version {VERSION}: read it with the widthwise that recorded it")]
    Version(u16),
    /// A number that no recorder writes.
    #[error("says at byte {offset} that {what} is {value}")]
    Absurd {
        /// Where it stands.
        offset: usize,
        /// What it is to be.
        what: &'static str,
        /// What it is.
        value: u64,
    },
}

/// What a log says of its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of a pointer: 4 or 8.
    pub word: u8,
    /// `e_machine`: 62 for x86-64 and x32, 3 for i386.
    pub machine: u16,
    /// The process's number.
    pub process: u32,
    /// The process it was forked from, if that one has a log too.
    pub parent: Option<u32>,
    /// CLOCK_MONOTONIC at its beginning, in nanoseconds.
    pub began_ns: u64,
    /// Events of the parent before this number happened to this process too.
    pub inherited: u64,
    /// It ended by `exit`, or by returning from `main`.
    pub ended: bool,
    /// No room was left on the disk, and the rest is missing.
    pub full: bool,
    /// Stacks were recorded.
    pub has_stacks: bool,
    /// The program brings a malloc of its own, so that hardly anything was seen.
    pub own_malloc: bool,
    /// Blocks are glibc's.
    pub glibc: bool,
    /// The recorder was linked into the program.
    pub linked: bool,
    /// Events that were not recorded, since they came in a signal's handler while another was being recorded.
    pub missed: u32,
    /// Stacks that could not be followed to their outermost call.
    pub broken: u32,
    /// The file that malloc is in.
    pub allocator: String,
    /// The program.
    pub program: String,
}

/// A log, ready to be decoded.
#[derive(Debug)]
pub struct Log<'a> {
    /// What it says of its process.
    pub header: Header,
    /// The records of each stream, chunk by chunk.
    pub(crate) streams: Vec<Vec<&'a [u8]>>,
    /// What is wrong with the file; the rest of it is read all the same.
    pub faults: Vec<String>,
}

fn word<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut word = [0; N];
    if let Some(found) = bytes.get(offset..offset + N) {
        word.copy_from_slice(found);
    }
    word
}

fn text(bytes: &[u8], range: std::ops::Range<usize>) -> String {
    let bytes = bytes.get(range).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl<'a> Log<'a> {
    /// Whether a file begins as one.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads the header and finds the streams. A log that was cut off is read up to there.
    pub fn read(bytes: &'a [u8]) -> Result<Log<'a>, LogError> {
        let header = header(bytes)?;
        let mut faults = Vec::new();
        let mut found: Vec<(u32, u32, &[u8])> = Vec::new();
        let mut offset = HEADER;
        while offset + CHUNK_HEAD <= bytes.len() {
            let end = (offset + CHUNK).min(bytes.len());
            match u32::from_le_bytes(word(bytes, offset)) {
                // A desk whose copy is whole.
                CHUNK_MAGIC if u32::from_le_bytes(word(bytes, offset + 12)) != 0 => {}
                CHUNK_MAGIC => {
                    let stream = u32::from_le_bytes(word(bytes, offset + 4));
                    let index = u32::from_le_bytes(word(bytes, offset + 8));
                    found.push((stream, index, &bytes[offset + CHUNK_HEAD..end]));
                }
                // Claimed, but never written to.
                0 => {}
                other => faults.push(format!("the chunk at byte {offset} begins with {other:#010x}")),
            }
            offset += CHUNK;
        }
        found.sort_by_key(|(stream, index, _)| (*stream, *index));
        // The first of them in the file is the desk: its copy may be unfinished.
        found.dedup_by_key(|(stream, index, _)| (*stream, *index));
        let mut streams: Vec<Vec<&[u8]>> = Vec::new();
        let mut last = None;
        for (stream, index, records) in found {
            match last {
                Some((before, at)) if before == stream => {
                    if index != at + 1 {
                        // What follows is written as distances from what came before it.
                        faults.push(format!(
                            "of stream {stream} chunk {} is missing; the rest of it is not read",
                            at + 1
                        ));
                        last = Some((stream, u32::MAX - 1));
                        continue;
                    }
                }
                _ if index != 0 => {
                    faults.push(format!("stream {stream} begins with chunk {index}; it is not read"));
                    last = Some((stream, u32::MAX - 1));
                    streams.push(Vec::new());
                    continue;
                }
                _ => streams.push(Vec::new()),
            }
            if let Some(chunks) = streams.last_mut() {
                chunks.push(records);
            }
            last = Some((stream, index));
        }
        faults.truncate(20);
        Ok(Log { header, streams, faults })
    }
}

fn header(bytes: &[u8]) -> Result<Header, LogError> {
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
    let number = |offset| u32::from_le_bytes(word(bytes, offset));
    let absurd = |offset, what, value: u64| Err(LogError::Absurd { offset, what, value });
    let pointer = bytes[10];
    if pointer != 4 && pointer != 8 {
        return absurd(10, "the size of a pointer", pointer.into());
    }
    if number(20) as usize != CHUNK {
        return absurd(20, "the size of a chunk", number(20).into());
    }
    let state = number(48);
    let is = |bit: u32| state & bit != 0;
    Ok(Header {
        word: pointer,
        machine: u16::from_le_bytes(word(bytes, 12)),
        process: number(24),
        parent: Some(number(28)).filter(|parent| *parent != 0),
        began_ns: u64::from_le_bytes(word(bytes, 32)),
        inherited: u64::from_le_bytes(word(bytes, 40)),
        ended: is(1),
        full: is(2),
        has_stacks: is(4),
        own_malloc: is(8),
        glibc: is(16),
        linked: is(32),
        missed: number(52),
        broken: number(56),
        allocator: text(bytes, ALLOCATOR),
        program: text(bytes, PROGRAM),
    })
}
