//! The events of a log, in the order in which they happened. The records are described in `runtime/heap/log.h`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::heap::log::{Faults, Process, CHUNK};
use crate::heap::stacks::{AddressMap, StackId, Stacks};

const SLOTS: usize = 256;
const GAP: u8 = 0x40;
const ODD: u8 = 0x80;
const BROKEN: u64 = 0xffff_ffff;

// The second byte of records that are of none of the three short kinds.
const NODE: u8 = 1;
const TIME: u8 = 2;
const NUMBER: u8 = 3;
const THREAD: u8 = 4;
const MODULE: u8 = 5;
const FORGET: u8 = 6;
const MAP: u8 = 7;
const UNMAP: u8 = 8;
const KEPT: u8 = 9;
const EXEC: u8 = 10;

/// How a block was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// malloc.
    Malloc,
    /// calloc.
    Calloc,
    /// realloc, which may have released another.
    Realloc,
    /// One of the functions that take an alignment.
    Aligned,
    /// An operator new.
    Operator,
}

/// Where glibc has a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arena {
    /// In the main arena, which is the heap that the system shows as `[heap]`; or of another allocator.
    Main,
    /// In none: it has a mapping of its own.
    Mapped,
    /// In an arena that is not the main one.
    Secondary,
}

/// A block, as it was asked for and given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The stack of the call.
    pub stack: StackId,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Bytes that may be used.
    pub usable: u64,
    /// Where glibc has it.
    pub arena: Arena,
    /// How it was asked for.
    pub origin: Origin,
    /// The alignment that was asked for, in bytes; 0 where none was.
    pub alignment: u64,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A block came.
    Allocated {
        /// Its address.
        address: u64,
        /// What it is.
        block: Block,
    },
    /// A block went, or is about to.
    Released {
        /// Its address.
        address: u64,
    },
    /// The block that went last in this stream is still there.
    Kept,
    /// The program itself asked the system for memory.
    Mapped {
        /// Its address.
        address: u64,
        /// Its size.
        bytes: u64,
        /// The stack of the call.
        stack: StackId,
        /// As mmap(2) has them.
        flags: u64,
    },
    /// And gave it back.
    Unmapped {
        /// Its address.
        address: u64,
        /// Its size.
        bytes: u64,
    },
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its number in the process.
    pub number: u64,
    /// When, in nanoseconds since the log began: as of the last reading of the clock.
    pub time_ns: u64,
    /// Which stream it is from.
    pub stream: u32,
    /// What happened.
    pub kind: EventKind,
}

/// How a program was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecState {
    /// The process is about to execute it.
    AboutTo,
    /// It could not.
    Failed,
    /// The process was started to execute it (posix_spawn).
    Started,
}

/// A program that was to be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The number of the process that executes it.
    pub process: u32,
    /// What came of it.
    pub state: ExecState,
    /// The program's file, as it was called by.
    pub path: String,
    /// The number of the event before it in the process whose log this is, plus 1.
    pub number: u64,
    /// Nanoseconds since that process began: as of the last reading of the clock.
    pub time_ns: u64,
}

/// Walks the events; it collects stacks and executed programs on its way.
#[derive(Debug)]
pub struct Events<'a, 's> {
    streams: Vec<Stream<'a>>,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    current: Option<u32>,
    time_ns: u64,
    told: Told<'s>,
    /// What could not be decoded.
    pub faults: Faults,
}

/// What streams tell besides their events.
#[derive(Debug)]
struct Told<'s> {
    stacks: &'s mut Stacks,
    execs: Vec<Exec>,
    /// Bytes of chunks that were begun.
    bytes: u64,
}

#[derive(Debug)]
struct Stream<'a> {
    chunks: std::vec::IntoIter<&'a [u8]>,
    records: &'a [u8],
    number: u64,
    /// The number of the next event, where a record has it.
    next_number: Option<u64>,
    address: u64,
    time_ns: u64,
    code_address: u64,
    modules: AddressMap,
    nodes: Vec<StackId>,
    slots: Vec<Option<Block>>,
    thread: u64,
    next: Option<(u64, EventKind)>,
}

/// Why a stream cannot be read on.
struct Broken(&'static str);

fn byte(records: &mut &[u8]) -> Result<u8, Broken> {
    let (first, rest) = records.split_first().ok_or(Broken("a record is cut off"))?;
    *records = rest;
    Ok(*first)
}

fn number(records: &mut &[u8]) -> Result<u64, Broken> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = byte(records)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Broken("a number does not end"))
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

impl<'a, 's> Events<'a, 's> {
    /// The events of a process. Its stacks are added to `stacks`.
    pub fn of(process: &Process<'a>, stacks: &'s mut Stacks) -> Events<'a, 's> {
        let streams: Vec<Stream> = process
            .streams
            .iter()
            .map(|chunks| Stream {
                chunks: chunks.clone().into_iter(),
                records: &[],
                number: u64::MAX,
                next_number: None,
                address: 0,
                time_ns: 0,
                code_address: 0,
                modules: AddressMap::default(),
                nodes: Vec::new(),
                slots: vec![None; SLOTS],
                thread: 0,
                next: None,
            })
            .collect();
        let mut events = Events {
            waiting: BinaryHeap::with_capacity(streams.len()),
            streams,
            current: None,
            time_ns: 0,
            told: Told { stacks, execs: Vec::new(), bytes: 0 },
            faults: Faults::default(),
        };
        for index in 0..events.streams.len() as u32 {
            if let Some(number) = events.advance(index) {
                events.waiting.push(Reverse((number, index)));
            }
        }
        events
    }

    /// The latest moment that was recorded, of an event or not.
    pub fn latest_ns(&self) -> u64 {
        self.streams.iter().map(|stream| stream.time_ns).max().unwrap_or(0).max(self.time_ns)
    }

    /// The kernel's number of the thread that a stream was written by last.
    pub fn thread(&self, stream: u32) -> u64 {
        self.streams.get(stream as usize).map_or(0, |stream| stream.thread)
    }

    /// Bytes of the log that were read so far, in whole chunks.
    pub fn read_bytes(&self) -> u64 {
        self.told.bytes
    }

    /// How many stacks there are so far.
    pub fn stacks(&self) -> usize {
        self.told.stacks.len()
    }

    /// The programs that were executed, in their order.
    pub fn take_execs(&mut self) -> Vec<Exec> {
        let mut execs = std::mem::take(&mut self.told.execs);
        execs.sort_by_key(|exec| exec.number);
        execs
    }

    /// Reads a stream up to its next event.
    fn advance(&mut self, index: u32) -> Option<u64> {
        let stream = self.streams.get_mut(index as usize)?;
        match stream.advance(&mut self.told) {
            Ok(number) => number,
            Err(Broken(why)) => {
                let before = stream.number.wrapping_add(1);
                self.faults.add(|| format!("stream {index} ends before event {before}: {why}"));
                None
            }
        }
    }
}

impl Iterator for Events<'_, '_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let index = match self.current.take() {
            // The stream that was read last goes on as long as no other is before it.
            Some(index) => {
                let number = self.streams[index as usize].next.as_ref().map(|(number, _)| *number);
                match (number, self.waiting.peek()) {
                    (Some(number), Some(Reverse((other, _)))) if number > *other => {
                        let Reverse((_, other)) = self.waiting.pop()?;
                        self.waiting.push(Reverse((number, index)));
                        other
                    }
                    (Some(_), _) => index,
                    (None, _) => self.waiting.pop()?.0 .1,
                }
            }
            None => self.waiting.pop()?.0 .1,
        };
        let stream = &mut self.streams[index as usize];
        let (number, kind) = stream.next.take()?;
        self.time_ns = self.time_ns.max(stream.time_ns);
        let event = Event { number, time_ns: self.time_ns, stream: index, kind };
        self.advance(index);
        self.current = Some(index);
        Some(event)
    }
}

impl Stream<'_> {
    fn advance(&mut self, told: &mut Told) -> Result<Option<u64>, Broken> {
        self.next = None;
        loop {
            match self.records.first() {
                None | Some(0) => match self.chunks.next() {
                    Some(records) => {
                        told.bytes += CHUNK as u64;
                        self.records = records;
                        continue;
                    }
                    None => return Ok(None),
                },
                Some(_) => {}
            }
            let first = byte(&mut self.records)?;
            let kind = match first & 7 {
                kind @ 1..=3 => Some(self.block(first, kind)?),
                4 => self.other(told)?,
                _ => return Err(Broken("a record is of no known kind")),
            };
            if let Some(kind) = kind {
                self.next = Some((self.number, kind));
                return Ok(Some(self.number));
            }
        }
    }

    /// The next event gets its number: `gap` more than one above the last one's, or as a record before it says.
    fn count(&mut self, gap: u64) {
        self.number = self.next_number.take().unwrap_or(self.number.wrapping_add(1).wrapping_add(gap));
    }

    fn block(&mut self, first: u8, kind: u8) -> Result<EventKind, Broken> {
        let gap = if first & GAP != 0 { number(&mut self.records)? } else { 0 };
        let odd = if first & ODD != 0 { byte(&mut self.records)? & 7 } else { 0 };
        let length = usize::from(first >> 3 & 7);
        let distance = self.bytes(length, "a record is cut off")?;
        let distance = distance.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        self.count(gap);
        let units = (self.address >> 3).wrapping_add(unzigzag(distance));
        self.address = units << 3 | u64::from(odd);
        let address = self.address;
        if kind == 3 {
            return Ok(EventKind::Released { address });
        }
        let records = &mut self.records;
        let slot = usize::from(byte(records)?);
        if kind == 1 {
            let block = self.slots[slot].ok_or(Broken("a block is like one that was not recorded"))?;
            return Ok(EventKind::Allocated { address, block });
        }
        let node = number(records)?;
        let requested = number(records)?;
        let spare = number(records)?;
        let attributes = byte(records)?;
        let block = Block {
            stack: self.node(node)?,
            requested,
            usable: requested.saturating_add(spare >> 2),
            arena: match spare & 3 {
                1 => Arena::Mapped,
                2 => Arena::Secondary,
                _ => Arena::Main,
            },
            origin: match attributes & 7 {
                1 => Origin::Calloc,
                2 => Origin::Realloc,
                3 => Origin::Aligned,
                4 => Origin::Operator,
                _ => Origin::Malloc,
            },
            alignment: if attributes >> 3 == 0 { 0 } else { 1 << (attributes >> 3) },
        };
        self.slots[slot] = Some(block);
        Ok(EventKind::Allocated { address, block })
    }

    /// The next bytes of the chunk.
    fn bytes(&mut self, length: usize, cut_off: &'static str) -> Result<&[u8], Broken> {
        let (bytes, rest) = self.records.split_at_checked(length).ok_or(Broken(cut_off))?;
        self.records = rest;
        Ok(bytes)
    }

    /// A path behind its length.
    fn path(&mut self) -> Result<String, Broken> {
        let length = usize::try_from(number(&mut self.records)?).unwrap_or(usize::MAX);
        let path = self.bytes(length, "a path is cut off")?;
        Ok(String::from_utf8_lossy(path).into_owned())
    }

    fn node(&self, number: u64) -> Result<StackId, Broken> {
        match number {
            0 => Ok(StackId::NONE),
            BROKEN => Ok(StackId::BROKEN),
            _ => {
                let known = usize::try_from(number).ok().and_then(|number| self.nodes.get(number));
                known.copied().ok_or(Broken("a stack is in one that was not recorded"))
            }
        }
    }

    /// What was recorded in this stream before is forgotten; the last event had this number.
    fn forget(&mut self, number: u64) {
        self.nodes.clear();
        self.slots.fill(None);
        self.modules.clear();
        self.number = number;
        self.next_number = None;
        self.address = 0;
        self.code_address = 0;
    }

    fn other(&mut self, told: &mut Told) -> Result<Option<EventKind>, Broken> {
        match byte(&mut self.records)? {
            NODE => {
                let outer = number(&mut self.records)?;
                let outer = self.node(outer)?;
                self.code_address = self.code_address.wrapping_add(unzigzag(number(&mut self.records)?));
                if self.nodes.is_empty() {
                    self.nodes.push(StackId::NONE);
                }
                let code = self.modules.resolve(self.code_address);
                self.nodes.push(told.stacks.stack(outer, code));
            }
            TIME => self.time_ns = self.time_ns.saturating_add(number(&mut self.records)?),
            NUMBER => self.next_number = Some(number(&mut self.records)?),
            THREAD => self.thread = number(&mut self.records)?,
            MODULE => {
                let [bias, low, high] = self.numbers()?;
                let path = self.path()?;
                let module = told.stacks.module(&path);
                self.modules.load(low, high, bias, module);
            }
            FORGET => {
                let number = number(&mut self.records)?;
                self.forget(number);
            }
            MAP => {
                let [address, bytes, node, _protection, flags] = self.numbers()?;
                self.count(0);
                let stack = self.node(node)?;
                return Ok(Some(EventKind::Mapped { address, bytes, stack, flags }));
            }
            UNMAP => {
                let [address, bytes] = self.numbers()?;
                self.count(0);
                return Ok(Some(EventKind::Unmapped { address, bytes }));
            }
            KEPT => return Ok(Some(EventKind::Kept)),
            EXEC => {
                let [process, state] = self.numbers()?;
                let state = match state {
                    0 => ExecState::AboutTo,
                    1 => ExecState::Failed,
                    2 => ExecState::Started,
                    _ => return Err(Broken("a program was executed in no known way")),
                };
                let process =
                    u32::try_from(process).map_err(|_| Broken("no process has so large a number"))?;
                let path = self.path()?;
                let (number, time_ns) = (self.number.wrapping_add(1), self.time_ns);
                told.execs.push(Exec { process, state, path, number, time_ns });
            }
            _ => return Err(Broken("a record is of no known kind")),
        }
        Ok(None)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], Broken> {
        let mut numbers = [0; N];
        for value in &mut numbers {
            *value = number(&mut self.records)?;
        }
        Ok(numbers)
    }
}
