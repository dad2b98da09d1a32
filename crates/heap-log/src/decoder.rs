//! The events of a log, in order. `runtime/heap/log.h` describes the records.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::log::{layout, Faults, Process, CHUNK};
use crate::stacks::{AddressMap, StackId, Stacks};

const SLOTS: usize = 256;
/// So many events are read ahead to find the next reading of the clock. The recorder has one in 256 events of a thread, but where the clock
/// of a machine is coarse, its readings are equal for longer.
const MOST_AHEAD: usize = 1 << 14;
const GAP: u8 = layout::LOG_GAP as u8;
const ODD: u8 = layout::LOG_ODD as u8;
const BROKEN: u64 = layout::LOG_BROKEN as u64;

// The lowest three bits of a record's first byte: its kind.
const KNOWN: u8 = layout::LOG_KNOWN as u8;
const NEW: u8 = layout::LOG_NEW as u8;
const FREE: u8 = layout::LOG_FREE as u8;
const OTHER: u8 = layout::LOG_OTHER as u8;

// The second byte of a record of the kind OTHER.
const NODE: u8 = layout::LOG_NODE as u8;
const TIME: u8 = layout::LOG_TIME as u8;
const NUMBER: u8 = layout::LOG_NUMBER as u8;
const THREAD: u8 = layout::LOG_THREAD as u8;
const MODULE: u8 = layout::LOG_MODULE as u8;
const FORGET: u8 = layout::LOG_FORGET as u8;
const MAP: u8 = layout::LOG_MAP as u8;
const UNMAP: u8 = layout::LOG_UNMAP as u8;
const KEPT: u8 = layout::LOG_KEPT as u8;
const EXEC: u8 = layout::LOG_EXEC as u8;
const MOVE: u8 = layout::LOG_MOVE as u8;
const PROTECT: u8 = layout::LOG_PROTECT as u8;

// The lowest three bits of a block's attributes: how it was asked for.
const CALLOC: u8 = layout::LOG_CALLOC as u8;
const REALLOC: u8 = layout::LOG_REALLOC as u8;
const ALIGNED: u8 = layout::LOG_ALIGNED as u8;
const OPERATOR: u8 = layout::LOG_OPERATOR as u8;

/// The function that allocated a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// malloc.
    Malloc,
    /// calloc.
    Calloc,
    /// realloc, which may have released another block.
    Realloc,
    /// One of the functions that take an alignment.
    Aligned,
    /// An operator new.
    Operator,
}

/// glibc's arena of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arena {
    /// The main arena, which the system shows as `[heap]`; also for blocks of other allocators.
    Main,
    /// None: the block has a mapping of its own.
    Mapped,
    /// An arena other than the main one.
    Secondary,
}

/// A block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The stack of the call.
    pub stack: StackId,
    /// Requested bytes.
    pub requested: u64,
    /// Usable bytes.
    pub usable: u64,
    /// Where glibc has it.
    pub arena: Arena,
    /// How it was allocated.
    pub origin: Origin,
    /// The requested alignment in bytes; 0 if none.
    pub alignment: u64,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// An allocation.
    Allocated {
        /// Its address.
        address: u64,
        /// The block.
        block: Block,
    },
    /// A release, written before the block is freed.
    Released {
        /// Its address.
        address: u64,
    },
    /// The last release of this stream did not happen: the block is still live.
    Kept,
    /// The program itself mapped memory.
    Mapped {
        /// Its address.
        address: u64,
        /// Its size.
        bytes: u64,
        /// The stack of the call.
        stack: StackId,
        /// As mmap(2) has them; 0 is memory that cannot be used.
        protection: u64,
        /// As mmap(2) has them.
        flags: u64,
    },
    /// The program itself moved or resized memory.
    Moved {
        /// Its address and size before.
        from: (u64, u64),
        /// Its address and size now.
        to: (u64, u64),
        /// The stack of the call.
        stack: StackId,
        /// As mremap(2) has them.
        flags: u64,
    },
    /// The program itself changed the protection of memory.
    Protected {
        /// Its address.
        address: u64,
        /// Its size.
        bytes: u64,
        /// As mprotect(2) has it; 0 is memory that cannot be used.
        protection: u64,
    },
    /// The program itself unmapped memory.
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
    /// Nanoseconds since the log began, by the last reading of the clock: it happened then or later.
    pub time_ns: u64,
    /// By the next reading: it happened then or earlier. `u64::MAX` where none follows.
    pub until_ns: u64,
    /// Its stream.
    pub stream: u32,
    /// Its kind.
    pub kind: EventKind,
}

/// How a program was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecState {
    /// The process is about to execute it.
    AboutTo,
    /// The execution failed.
    Failed,
    /// The process was started to execute it (posix_spawn).
    Started,
}

/// A program that was to be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The number of the process that executes it.
    pub process: u32,
    /// Its state.
    pub state: ExecState,
    /// The path that the process gave.
    pub path: String,
    /// The number of the event before it in the process whose log this is, plus 1.
    pub number: u64,
    /// Nanoseconds since that process began, by the last reading of the clock.
    pub time_ns: u64,
}

/// An iterator over the events; it also collects stacks and executed programs.
#[derive(Debug)]
pub struct Events<'a, 's> {
    streams: Vec<Stream<'a>>,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    current: Option<u32>,
    time_ns: u64,
    /// Those before the next reading of the clock, which was read ahead.
    ahead: VecDeque<Event>,
    /// The first event after it.
    following: Option<Event>,
    collected: Collected<'s>,
    /// What could not be decoded.
    pub faults: Faults,
}

/// What streams contribute besides their events.
#[derive(Debug)]
struct Collected<'s> {
    stacks: &'s mut Stacks,
    execs: Vec<Exec>,
    /// Bytes of the chunks that reading has begun.
    bytes: u64,
}

#[derive(Debug)]
struct Stream<'a> {
    chunks: std::vec::IntoIter<&'a [u8]>,
    records: &'a [u8],
    number: u64,
    /// The number of the next event, if a record gives it.
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
            ahead: VecDeque::new(),
            following: None,
            collected: Collected { stacks, execs: Vec::new(), bytes: 0 },
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

    /// The kernel's number of the thread that wrote to a stream last.
    pub fn thread(&self, stream: u32) -> u64 {
        self.streams.get(stream as usize).map_or(0, |stream| stream.thread)
    }

    /// Bytes of the log that were read so far, in whole chunks.
    pub fn read_bytes(&self) -> u64 {
        self.collected.bytes
    }

    /// How many stacks there are so far.
    pub fn stacks(&self) -> usize {
        self.collected.stacks.len()
    }

    /// The programs that were executed, in their order.
    pub fn take_execs(&mut self) -> Vec<Exec> {
        let mut execs = std::mem::take(&mut self.collected.execs);
        execs.sort_by_key(|exec| exec.number);
        execs
    }

    /// Reads a stream up to its next event.
    fn advance(&mut self, index: u32) -> Option<u64> {
        let stream = self.streams.get_mut(index as usize)?;
        match stream.advance(&mut self.collected) {
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
        if self.ahead.is_empty() {
            self.read_ahead();
        }
        self.ahead.pop_front()
    }
}

impl Events<'_, '_> {
    /// Reads the events up to the next reading of the clock, in whichever stream it is.
    fn read_ahead(&mut self) {
        let Some(first) = self.following.take().or_else(|| self.next_of_streams()) else { return };
        self.ahead.push_back(first);
        let until_ns = loop {
            match self.next_of_streams() {
                Some(event) if event.time_ns == first.time_ns && self.ahead.len() < MOST_AHEAD => {
                    self.ahead.push_back(event);
                }
                Some(event) => {
                    self.following = Some(event);
                    break if event.time_ns > first.time_ns { event.time_ns } else { u64::MAX };
                }
                // The recorder reads the clock again at the end, unless the process is killed.
                None if self.latest_ns() > first.time_ns => break self.latest_ns(),
                None => break u64::MAX,
            }
        };
        for event in &mut self.ahead {
            event.until_ns = until_ns;
        }
    }

    /// The next event of all streams, without the reading of the clock after it.
    fn next_of_streams(&mut self) -> Option<Event> {
        let index = match self.current.take() {
            // Reading continues with the same stream until another one has an earlier event.
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
        let event = Event { number, time_ns: self.time_ns, until_ns: u64::MAX, stream: index, kind };
        self.advance(index);
        self.current = Some(index);
        Some(event)
    }
}

impl Stream<'_> {
    fn advance(&mut self, collected: &mut Collected) -> Result<Option<u64>, Broken> {
        self.next = None;
        loop {
            match self.records.first() {
                None | Some(0) => match self.chunks.next() {
                    Some(records) => {
                        collected.bytes += CHUNK as u64;
                        self.records = records;
                        continue;
                    }
                    None => return Ok(None),
                },
                Some(_) => {}
            }
            let first = byte(&mut self.records)?;
            let kind = match first & 7 {
                kind @ (KNOWN | NEW | FREE) => Some(self.block(first, kind)?),
                OTHER => self.other(collected)?,
                _ => return Err(Broken("a record is of no known kind")),
            };
            if let Some(kind) = kind {
                self.next = Some((self.number, kind));
                return Ok(Some(self.number));
            }
        }
    }

    /// Sets the number of the next event: that of a NUMBER record, or `gap + 1` above the last one.
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
        if kind == FREE {
            return Ok(EventKind::Released { address });
        }
        let records = &mut self.records;
        let slot = usize::from(byte(records)?);
        if kind == KNOWN {
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
                CALLOC => Origin::Calloc,
                REALLOC => Origin::Realloc,
                ALIGNED => Origin::Aligned,
                OPERATOR => Origin::Operator,
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

    /// A path, after its length.
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

    /// Clears stacks, slots and modules of this stream; the last event had this number.
    fn forget(&mut self, number: u64) {
        self.nodes.clear();
        self.slots.fill(None);
        self.modules.clear();
        self.number = number;
        self.next_number = None;
        self.address = 0;
        self.code_address = 0;
    }

    fn other(&mut self, collected: &mut Collected) -> Result<Option<EventKind>, Broken> {
        match byte(&mut self.records)? {
            NODE => {
                let outer = number(&mut self.records)?;
                let outer = self.node(outer)?;
                self.code_address = self.code_address.wrapping_add(unzigzag(number(&mut self.records)?));
                if self.nodes.is_empty() {
                    self.nodes.push(StackId::NONE);
                }
                let code = self.modules.resolve(self.code_address);
                self.nodes.push(collected.stacks.stack(outer, code));
            }
            TIME => self.time_ns = self.time_ns.saturating_add(number(&mut self.records)?),
            NUMBER => self.next_number = Some(number(&mut self.records)?),
            THREAD => self.thread = number(&mut self.records)?,
            MODULE => {
                let [bias, low, high] = self.numbers()?;
                let path = self.path()?;
                let module = collected.stacks.module(&path);
                self.modules.load(low, high, bias, module);
            }
            FORGET => {
                let number = number(&mut self.records)?;
                self.forget(number);
            }
            MAP => {
                let [address, bytes, node, protection, flags] = self.numbers()?;
                self.count(0);
                let stack = self.node(node)?;
                return Ok(Some(EventKind::Mapped { address, bytes, stack, protection, flags }));
            }
            MOVE => {
                let [old, old_bytes, new, bytes, node, flags] = self.numbers()?;
                self.count(0);
                let stack = self.node(node)?;
                return Ok(Some(EventKind::Moved { from: (old, old_bytes), to: (new, bytes), stack, flags }));
            }
            PROTECT => {
                let [address, bytes, protection] = self.numbers()?;
                self.count(0);
                return Ok(Some(EventKind::Protected { address, bytes, protection }));
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
                collected.execs.push(Exec { process, state, path, number, time_ns });
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
