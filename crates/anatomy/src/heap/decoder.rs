//! The events of a log, in the order in which they happened. The records are described in `runtime/heap/log.h`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::heap::log::Log;
use crate::heap::places::{Module, Places, StackId};

const SLOTS: usize = 256;
const GAP: u8 = 0x40;
const ODD: u8 = 0x80;
const BROKEN: u64 = 0xffff_ffff;

/// How a block was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// malloc.
    Malloc,
    /// calloc.
    Calloc,
    /// realloc, which may have released another.
    Realloc,
    /// One of the functions that are told an alignment.
    Aligned,
    /// An operator new.
    Operator,
}

/// Where glibc has a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Home {
    /// In the main arena, which is the heap that the system shows as `[heap]`; or of another allocator.
    Main,
    /// In a mapping of its own.
    Mapped,
    /// In an arena that is not the main one.
    Arena,
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
    pub home: Home,
    /// How it was asked for.
    pub origin: Origin,
    /// The alignment that was asked for, in bytes; 0 where none was.
    pub alignment: u64,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
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
    /// When, in nanoseconds since the log began: as of the last reading of the clock, at most 32 events before.
    pub time_ns: u64,
    /// Which stream it is from.
    pub stream: u32,
    /// What happened.
    pub happening: Happening,
}

/// Walks the events; it collects modules and stacks on its way.
#[derive(Debug)]
pub struct Events<'a> {
    streams: Vec<Stream<'a>>,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    current: Option<u32>,
    time_ns: u64,
    /// What has been told so far.
    pub places: Places,
    /// What could not be decoded.
    pub faults: Vec<String>,
}

#[derive(Debug)]
struct Stream<'a> {
    chunks: std::vec::IntoIter<&'a [u8]>,
    records: &'a [u8],
    number: u64,
    told: Option<u64>,
    address: u64,
    time_ns: u64,
    generation: u64,
    place: u64,
    nodes: Vec<StackId>,
    slots: Vec<Option<Block>>,
    thread: u64,
    next: Option<(u64, Happening)>,
}

/// What a record asks for beyond its own stream.
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

impl<'a> Events<'a> {
    /// The events of a log.
    pub fn of(log: &Log<'a>) -> Events<'a> {
        Events::after(log, Places::default())
    }

    /// The events of a log of a process that was forked from one in which `places` were told.
    pub fn after(log: &Log<'a>, places: Places) -> Events<'a> {
        let streams: Vec<Stream> = log
            .streams
            .iter()
            .map(|chunks| Stream {
                chunks: chunks.clone().into_iter(),
                records: &[],
                number: u64::MAX,
                told: None,
                address: 0,
                time_ns: 0,
                generation: 1,
                place: 0,
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
            places,
            faults: log.faults.clone(),
        };
        for index in 0..events.streams.len() as u32 {
            if let Some(number) = events.advance(index) {
                events.waiting.push(Reverse((number, index)));
            }
        }
        events
    }

    /// The latest moment that was told, of an event or not.
    pub fn latest_ns(&self) -> u64 {
        self.streams.iter().map(|stream| stream.time_ns).max().unwrap_or(0).max(self.time_ns)
    }

    /// The kernel's number of the thread that a stream was written by last.
    pub fn thread(&self, stream: u32) -> u64 {
        self.streams.get(stream as usize).map_or(0, |stream| stream.thread)
    }

    /// Reads a stream up to its next event.
    fn advance(&mut self, index: u32) -> Option<u64> {
        let stream = self.streams.get_mut(index as usize)?;
        match stream.advance(&mut self.places) {
            Ok(number) => number,
            Err(Broken(why)) => {
                self.faults.push(format!("stream {index}, after event {}: {why}", stream.number));
                None
            }
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let index = match self.current.take() {
            // The stream that was read last goes on as long as nobody else is before it.
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
        let (number, happening) = stream.next.take()?;
        self.time_ns = self.time_ns.max(stream.time_ns);
        let event = Event { number, time_ns: self.time_ns, stream: index, happening };
        self.advance(index);
        self.current = Some(index);
        Some(event)
    }
}

impl Stream<'_> {
    fn advance(&mut self, places: &mut Places) -> Result<Option<u64>, Broken> {
        self.next = None;
        loop {
            match self.records.first() {
                None | Some(0) => match self.chunks.next() {
                    Some(records) => {
                        self.records = records;
                        continue;
                    }
                    None => return Ok(None),
                },
                Some(_) => {}
            }
            let first = byte(&mut self.records)?;
            let happening = match first & 7 {
                kind @ 1..=3 => Some(self.block(first, kind)?),
                4 => self.other(places)?,
                _ => return Err(Broken("a record is of no known kind")),
            };
            if let Some(happening) = happening {
                self.next = Some((self.number, happening));
                return Ok(Some(self.number));
            }
        }
    }

    fn block(&mut self, first: u8, kind: u8) -> Result<Happening, Broken> {
        let records = &mut self.records;
        let gap = if first & GAP != 0 { number(records)? } else { 0 };
        let odd = if first & ODD != 0 { byte(records)? & 7 } else { 0 };
        let length = usize::from(first >> 3 & 7);
        let (distance, rest) = records.split_at_checked(length).ok_or(Broken("a record is cut off"))?;
        *records = rest;
        let distance = distance.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        self.number = self.number.wrapping_add(1).wrapping_add(gap);
        let units = (self.address >> 3).wrapping_add(unzigzag(distance));
        self.address = units << 3 | u64::from(odd);
        let address = self.address;
        if kind == 3 {
            return Ok(Happening::Released { address });
        }
        let slot = usize::from(byte(records)?);
        if kind == 1 {
            let block = self.slots[slot].ok_or(Broken("a block is like one that was not told"))?;
            return Ok(Happening::Allocated { address, block });
        }
        let node = number(records)?;
        let requested = number(records)?;
        let spare = number(records)?;
        let attributes = byte(records)?;
        let block = Block {
            stack: self.node(node)?,
            requested,
            usable: requested.saturating_add(spare >> 2),
            home: match spare & 3 {
                1 => Home::Mapped,
                2 => Home::Arena,
                _ => Home::Main,
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
        Ok(Happening::Allocated { address, block })
    }

    /// In another generation, what was told in this stream is forgotten.
    fn begin(&mut self, generation: u64) {
        if self.generation != generation {
            self.generation = generation;
            self.nodes.clear();
            self.slots.fill(None);
        }
    }

    fn node(&self, number: u64) -> Result<StackId, Broken> {
        match number {
            0 => Ok(StackId::NONE),
            BROKEN => Ok(StackId::BROKEN),
            _ => {
                self.nodes.get(number as usize).copied().ok_or(Broken("a stack is in one that was not told"))
            }
        }
    }

    fn other(&mut self, places: &mut Places) -> Result<Option<Happening>, Broken> {
        let kind = byte(&mut self.records)?;
        match kind {
            1 => {
                let outer = number(&mut self.records)?;
                let outer = self.node(outer)?;
                self.place = self.place.wrapping_add(unzigzag(number(&mut self.records)?));
                if self.nodes.is_empty() {
                    self.nodes.push(StackId::NONE);
                }
                self.nodes.push(places.stack(outer, self.place, self.generation));
            }
            2 => self.time_ns = self.time_ns.saturating_add(number(&mut self.records)?),
            3 => self.told = Some(number(&mut self.records)?),
            4 => {
                self.thread = number(&mut self.records)?;
                let generation = number(&mut self.records)?;
                self.begin(generation);
            }
            5 => {
                let generation = number(&mut self.records)?;
                let bias = number(&mut self.records)?;
                let low = number(&mut self.records)?;
                let high = number(&mut self.records)?;
                let length = number(&mut self.records)? as usize;
                let (path, rest) =
                    self.records.split_at_checked(length).ok_or(Broken("a module's path is cut off"))?;
                self.records = rest;
                let path = String::from_utf8_lossy(path).into_owned();
                places.add(Module { path, bias, low, high, generation });
            }
            6 => {
                let generation = number(&mut self.records)?;
                self.begin(generation);
            }
            7 => {
                let address = number(&mut self.records)?;
                let bytes = number(&mut self.records)?;
                let node = number(&mut self.records)?;
                let _protection = number(&mut self.records)?;
                let flags = number(&mut self.records)?;
                self.number = self.told.take().ok_or(Broken("an event has no number"))?;
                let stack = self.node(node)?;
                return Ok(Some(Happening::Mapped { address, bytes, stack, flags }));
            }
            8 => {
                let address = number(&mut self.records)?;
                let bytes = number(&mut self.records)?;
                self.number = self.told.take().ok_or(Broken("an event has no number"))?;
                return Ok(Some(Happening::Unmapped { address, bytes }));
            }
            9 => return Ok(Some(Happening::Kept)),
            _ => return Err(Broken("a record is of no known kind")),
        }
        Ok(None)
    }
}
