//! A process's heap over time: the live blocks of each stack, the peak, and what the allocator uses for them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::decoder::{Arena, Block, Event, EventKind, Events, Exec};
use crate::lifetimes::{Lifetime, Lifetimes};
use crate::log::{LogFile, Process};
use crate::profile::Values;
use crate::sizes::Sizes;
use crate::stacks::{StackId, Stacks};

/// More moments than this are downsampled to half.
const MOST_MOMENTS: usize = 2048;
/// mmap(2), `MAP_ANONYMOUS`: what is mapped without it is a file.
const ANONYMOUS: u64 = 0x20;
/// mmap(2), `MAP_SHARED`: the system counts it as shared memory, and not as the process's own.
const SHARED: u64 = 1;
/// mremap(2), `MREMAP_DONTUNMAP`: the old range stays mapped.
const KEEPS_OLD: u64 = 4;
/// mprotect(2) changes whole pages, of this size in every ABI.
const PAGE: u64 = 4096;
/// A released block is searched in this many generations of ancestors.
const MOST_GENERATIONS: u32 = 64;

/// The blocks of a stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Allocations.
    pub count: u64,
    /// Requested bytes of all allocations.
    pub bytes: u64,
    /// Live blocks at the process's peak.
    pub peak_count: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// What the allocator used for these, with its own words and rounding.
    pub peak_chunk_bytes: u64,
    /// Blocks that are still live.
    pub live_count: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// What the allocator uses for them.
    pub live_chunk_bytes: u64,
    /// Lifetimes of the freed blocks.
    pub lifetimes: Lifetimes,
    /// The sizes of all allocations.
    pub sizes: Sizes,
    /// The event up to which the numbers at the peak are settled.
    seen: u64,
}

impl Blocks {
    /// As values of a profile.
    pub fn values(&self) -> Values {
        Values {
            peak_count: self.peak_count,
            peak_bytes: self.peak_bytes,
            peak_chunk_bytes: self.peak_chunk_bytes,
            count: self.count,
            bytes: self.bytes,
            live_count: self.live_count,
            live_bytes: self.live_bytes,
            lifetimes: self.lifetimes,
            sizes: self.sizes,
        }
    }

    /// Call before a change: if the process reached its peak since the last change, these are the stack's blocks at the peak.
    fn settle(&mut self, now: u64, peak: u64) {
        if peak >= self.seen {
            self.peak_count = self.live_count;
            self.peak_bytes = self.live_bytes;
            self.peak_chunk_bytes = self.live_chunk_bytes;
        }
        self.seen = now;
    }
}

/// The state of a heap at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since the log began.
    pub time_ns: u64,
    /// Live blocks.
    pub count: u64,
    /// Bytes that were allocated and not freed.
    pub bytes: u64,
    /// Bytes of the allocator's chunks in its main arena.
    pub main_bytes: u64,
    /// Of chunks that are mapped by themselves.
    pub mapped_bytes: u64,
    /// Of chunks in other arenas.
    pub arena_bytes: u64,
    /// Bytes of private memory, not of files, that the program itself mapped with a protection that allows access.
    pub own_bytes: u64,
}

impl Moment {
    /// What the program has allocated and not freed, and its own mappings.
    pub fn asked_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.own_bytes)
    }

    /// What the allocator uses for its live blocks.
    pub fn chunk_bytes(&self) -> u64 {
        self.main_bytes.saturating_add(self.mapped_bytes).saturating_add(self.arena_bytes)
    }
}

/// The history of one process.
#[derive(Debug)]
pub struct History {
    /// The stacks that allocated, with their blocks, in the order of the stacks' numbers.
    pub stacks: Vec<(StackId, Blocks)>,
    /// The moment with most bytes.
    pub peak: Moment,
    /// At its end.
    pub end: Moment,
    /// The heap over time: at most some two thousand moments, of each interval the one with most bytes and the last.
    pub course: Vec<Moment>,
    /// Allocations, and their bytes.
    pub total: (u64, u64),
    /// What the program itself has mapped at the end, in bytes.
    pub own_mapped_bytes: u64,
    /// The most that it had mapped by itself at one time, in bytes.
    pub own_mapped_peak_bytes: u64,
    /// Releases of blocks whose allocation was not recorded, neither in this process nor in an ancestor before the fork.
    pub strangers: u64,
    /// Blocks of at least 128 KiB, glibc's first threshold for a mapping of their own: how many had one, how many did not.
    pub large: (u64, u64),
    /// The programs that were executed, in their order.
    pub execs: Vec<Exec>,
    /// What could not be decoded.
    pub faults: Vec<String>,
}

impl History {
    /// Leaves out what is of the peak: another program that the same process executed has the larger one.
    pub fn forget_peak(&mut self) {
        self.peak = Moment::default();
        for (_, blocks) in &mut self.stacks {
            (blocks.peak_count, blocks.peak_bytes, blocks.peak_chunk_bytes) = (0, 0, 0);
        }
    }
}

/// A live block. There may be very many, so it has 24 bytes.
#[derive(Debug, Clone, Copy)]
struct Live {
    stack: StackId,
    /// The arena, and the bytes of the allocator's chunk beyond the requested ones.
    arena_and_spare: u32,
    requested: u64,
    /// The earliest moment of its allocation, in nanoseconds, and by how much later it may have been: a power of two.
    time_and_spread: u64,
}

impl Live {
    /// Bits of the arena.
    const ARENA_BITS: u32 = 2;
    /// Bits of the exponent of that power. Those of the time last for nine years.
    const SPREAD_BITS: u32 = 6;

    fn new(block: &Block, chunk: u64, event: &Event) -> Live {
        let arena = match block.arena {
            Arena::Main => 0,
            Arena::Mapped => 1,
            Arena::Secondary => 2,
        };
        // No allocator uses a gigabyte more than requested for one block.
        let spare = chunk.saturating_sub(block.requested).min(u64::from(u32::MAX >> Self::ARENA_BITS));
        let arena_and_spare = (spare as u32) << Self::ARENA_BITS | arena;
        let time = event.time_ns.min(u64::MAX >> Self::SPREAD_BITS);
        let spread = event.until_ns.saturating_sub(event.time_ns).checked_next_power_of_two();
        let exponent = spread.map_or(u64::BITS - 1, u64::trailing_zeros);
        let time_and_spread = time << Self::SPREAD_BITS | u64::from(exponent);
        Live { stack: block.stack, arena_and_spare, requested: block.requested, time_and_spread }
    }

    /// How long it has lived if that event frees it.
    fn lifetime(&self, event: &Event, temporary: bool) -> Lifetime {
        let earliest = self.time_and_spread >> Self::SPREAD_BITS;
        let spread = 1u64 << (self.time_and_spread & ((1 << Self::SPREAD_BITS) - 1));
        let at_most_ns = match event.until_ns {
            u64::MAX => u64::MAX,
            until => until.saturating_sub(earliest),
        };
        let at_least_ns = event.time_ns.saturating_sub(earliest.saturating_add(spread)).min(at_most_ns);
        Lifetime { at_least_ns, at_most_ns, temporary }
    }

    fn arena(&self) -> Arena {
        match self.arena_and_spare & 3 {
            1 => Arena::Mapped,
            2 => Arena::Secondary,
            _ => Arena::Main,
        }
    }

    /// Bytes of the allocator's chunk.
    fn chunk(&self) -> u64 {
        self.requested.saturating_add(u64::from(self.arena_and_spare >> Self::ARENA_BITS))
    }
}

/// The last release of a stream. A KEPT record may revoke it.
#[derive(Debug, Clone, Copy)]
enum Gone {
    /// Of a block of this process.
    Own(u64, Live, Lifetime),
    /// Of a block that it may have inherited at its fork.
    Inherited(u64),
}

#[derive(Default)]
struct Account {
    live: FxHashMap<u64, Live>,
    /// The address of the last allocation.
    newest: Option<u64>,
    /// By stream.
    gone: FxHashMap<u32, Gone>,
    /// Each mapping's first address, the address behind its last byte, and whether its protection allows any access.
    maps: BTreeMap<u64, (u64, bool)>,
    /// By stack: 1 + the index in `blocks`, or 0. The next process reuses it, cleared.
    of_stack: Vec<u32>,
    blocks: Vec<(StackId, Blocks)>,
    now: Moment,
    peak: Moment,
    peak_at: u64,
    step: u64,
    course: Course,
    total: (u64, u64),
    strangers: u64,
    large: (u64, u64),
    /// The most bytes that the program had mapped by itself.
    own_peak: u64,
    word: u64,
    glibc: bool,
    /// In a forked process: addresses of blocks that it released and had not allocated itself.
    inherited: Option<FxHashSet<u64>>,
}

/// Releases of a process, for blocks that an ancestor should have had at the fork.
struct Question {
    /// The process that released them.
    asker: usize,
    addresses: Vec<u64>,
    /// Only the ancestor's events before this number count.
    until: u64,
    generations: u32,
}

impl LogFile<'_> {
    /// The histories of all processes, in the order of [`LogFile::processes`]. Their stacks are added to `stacks`.
    ///
    /// Each process is read once, children before parents: what a child released without having allocated it is looked up
    /// among its parent's blocks when the parent's events reach the fork.
    ///
    /// `observer` gets the number of record bytes that were read since its last call, and decides whether to continue.
    pub fn histories(
        &self,
        stacks: &mut Stacks,
        observer: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), Vec<History>> {
        let mut questions: Vec<Vec<Question>> = self.processes.iter().map(|_| Vec::new()).collect();
        let mut histories: Vec<History> = Vec::new();
        let mut strangers = vec![0u64; self.processes.len()];
        let mut of_stack = Vec::new();
        for (index, process) in self.processes.iter().enumerate().rev() {
            let mut account = Account { of_stack, ..Account::new(process) };
            let asked = std::mem::take(&mut questions[index]);
            let mut forks = Forks::new(asked, process, &mut strangers);
            let history = account.read(process, stacks, &mut forks, observer)?;
            let passed_on = forks.passed_on;
            of_stack = account.of_stack;
            for (stack, _) in &history.stacks {
                of_stack[stack.0 as usize] = 0;
            }
            if let Some(parent) = process.header.parent {
                let own = Question {
                    asker: index,
                    addresses: account.inherited.take().unwrap_or_default().into_iter().collect(),
                    until: process.header.inherited,
                    generations: 0,
                };
                questions[parent].extend(passed_on.into_iter().chain([own]));
            }
            histories.push(history);
        }
        histories.reverse();
        for (history, strangers) in histories.iter_mut().zip(strangers) {
            history.strangers = history.strangers.saturating_add(strangers);
        }
        ControlFlow::Continue(histories)
    }
}

/// Lookups for a process's descendants, in the order of the forks.
struct Forks<'s> {
    waiting: std::iter::Peekable<std::vec::IntoIter<Question>>,
    /// Blocks that the process had not allocated itself: looked up in its own parent.
    passed_on: Vec<Question>,
    inherited: u64,
    strangers: &'s mut [u64],
}

impl<'s> Forks<'s> {
    fn new(mut questions: Vec<Question>, process: &Process, strangers: &'s mut [u64]) -> Forks<'s> {
        questions.sort_by_key(|question| question.until);
        Forks {
            waiting: questions.into_iter().peekable(),
            passed_on: Vec::new(),
            inherited: process.header.inherited,
            strangers,
        }
    }

    /// Looks up the blocks of forks before the event of that number; of all forks if there is no further event.
    fn answer(&mut self, number: Option<u64>, account: &Account) {
        while let Some(question) =
            self.waiting.next_if(|question| number.is_none_or(|number| question.until <= number))
        {
            let mut unknown = question.addresses;
            unknown.retain(|address| !account.live.contains_key(address));
            let Some(released) = &account.inherited else {
                self.strangers[question.asker] += unknown.len() as u64;
                continue;
            };
            let before = unknown.len();
            unknown.retain(|address| !released.contains(address));
            self.strangers[question.asker] += (before - unknown.len()) as u64;
            let generations = question.generations + 1;
            if !unknown.is_empty() && generations < MOST_GENERATIONS {
                self.passed_on.push(Question {
                    asker: question.asker,
                    addresses: unknown,
                    until: self.inherited,
                    generations,
                });
            }
        }
    }
}

impl Account {
    fn new(process: &Process) -> Account {
        Account {
            step: 1,
            word: u64::from(process.header.word),
            glibc: process.header.glibc,
            inherited: process.header.parent.map(|_| FxHashSet::default()),
            ..Account::default()
        }
    }

    fn read(
        &mut self,
        process: &Process,
        stacks: &mut Stacks,
        forks: &mut Forks,
        observer: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), History> {
        let mut events = Events::of(process, stacks);
        let mut observed = 0;
        while let Some(event) = events.next() {
            if events.read_bytes() != observed {
                observer(events.read_bytes() - observed)?;
                observed = events.read_bytes();
            }
            forks.answer(Some(event.number), self);
            self.take(&event);
        }
        forks.answer(None, self);
        observer(events.read_bytes() - observed)?;
        self.now.time_ns = events.latest_ns();
        for (_, blocks) in &mut self.blocks {
            blocks.settle(u64::MAX, self.peak_at);
        }
        self.course.end(self.now);
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.sort_unstable_by_key(|(stack, _)| *stack);
        ControlFlow::Continue(History {
            stacks: blocks,
            peak: self.peak,
            end: self.now,
            course: std::mem::take(&mut self.course.moments),
            total: self.total,
            own_mapped_bytes: self.now.own_bytes,
            own_mapped_peak_bytes: self.own_peak,
            strangers: self.strangers,
            large: self.large,
            execs: events.take_execs(),
            faults: events.faults.lines(),
        })
    }

    /// What the allocator uses for a block. With glibc also a word before it, two if the block has a mapping of its own
    /// (malloc/malloc.c, `malloc_chunk`).
    fn chunk(&self, block: &Block) -> u64 {
        // No block is as large as the address space. Recorders once subtracted the requested bytes from a usable size of 0; a log's
        // numbers of spare bytes have 62 bits.
        let address_bits = if self.word == 4 { 32 } else { 62 };
        let usable = if block.usable >> address_bits == 0 { block.usable } else { block.requested };
        let words = match (self.glibc, block.arena) {
            (false, _) => 0,
            (true, Arena::Mapped) => 2,
            (true, _) => 1,
        };
        usable.saturating_add(words * self.word)
    }

    fn stack(&mut self, stack: StackId) -> &mut Blocks {
        let index = stack.0 as usize;
        if index >= self.of_stack.len() {
            self.of_stack.resize(index + 1, 0);
        }
        if self.of_stack[index] == 0 {
            self.blocks.push((stack, Blocks::default()));
            self.of_stack[index] = self.blocks.len() as u32;
        }
        let (now, peak) = (self.step, self.peak_at);
        let (_, blocks) = &mut self.blocks[self.of_stack[index] as usize - 1];
        blocks.settle(now, peak);
        blocks
    }

    fn arena(&mut self, arena: Arena) -> &mut u64 {
        match arena {
            Arena::Main => &mut self.now.main_bytes,
            Arena::Mapped => &mut self.now.mapped_bytes,
            Arena::Secondary => &mut self.now.arena_bytes,
        }
    }

    fn come(&mut self, address: u64, live: Live) {
        if let Some(before) = self.live.insert(address, live) {
            // Its release was not recorded.
            self.leave(before, None);
        }
        let blocks = self.stack(live.stack);
        blocks.live_count += 1;
        blocks.live_bytes = blocks.live_bytes.saturating_add(live.requested);
        blocks.live_chunk_bytes = blocks.live_chunk_bytes.saturating_add(live.chunk());
        let arena = self.arena(live.arena());
        *arena = arena.saturating_add(live.chunk());
        self.now.count += 1;
        self.now.bytes = self.now.bytes.saturating_add(live.requested);
        if self.now.bytes > self.peak.bytes {
            self.peak = self.now;
            self.peak_at = self.step;
        }
    }

    fn leave(&mut self, live: Live, life: Option<Lifetime>) {
        let blocks = self.stack(live.stack);
        blocks.live_count = blocks.live_count.saturating_sub(1);
        blocks.live_bytes = blocks.live_bytes.saturating_sub(live.requested);
        blocks.live_chunk_bytes = blocks.live_chunk_bytes.saturating_sub(live.chunk());
        if let Some(life) = life {
            blocks.lifetimes.end(life);
        }
        let arena = self.arena(live.arena());
        *arena = arena.saturating_sub(live.chunk());
        self.now.count = self.now.count.saturating_sub(1);
        self.now.bytes = self.now.bytes.saturating_sub(live.requested);
    }

    fn take(&mut self, event: &Event) {
        self.step += 1;
        self.now.time_ns = event.time_ns;
        match event.kind {
            EventKind::Allocated { address, block } => self.allocate(event, address, &block),
            EventKind::Released { address } => self.release(event, address),
            EventKind::Kept => match self.gone.remove(&event.stream) {
                Some(Gone::Own(address, live, life)) => {
                    self.stack(live.stack).lifetimes.undo(life);
                    self.come(address, live);
                }
                Some(Gone::Inherited(address)) => {
                    if let Some(inherited) = &mut self.inherited {
                        inherited.remove(&address);
                    }
                }
                None => {}
            },
            EventKind::Mapped { address, bytes, protection, flags, .. } => match flags & (ANONYMOUS | SHARED)
            {
                ANONYMOUS => self.map(address, bytes, protection != 0),
                _ => self.unmap(address, bytes),
            },
            EventKind::Protected { address, bytes, protection } => {
                self.protect(address, bytes, protection != 0);
            }
            EventKind::Moved { from: (old, old_bytes), to: (new, bytes), flags, .. } => {
                let own = self.mapped(old);
                if flags & KEEPS_OLD == 0 {
                    self.unmap(old, old_bytes);
                }
                match own {
                    Some(is_usable) => self.map(new, bytes, is_usable),
                    None => self.unmap(new, bytes),
                }
            }
            EventKind::Unmapped { address, bytes } => self.unmap(address, bytes),
        }
        self.course.take(self.now);
    }

    fn allocate(&mut self, event: &Event, address: u64, block: &Block) {
        self.total.0 += 1;
        self.total.1 = self.total.1.saturating_add(block.requested);
        if self.glibc && block.requested >= 128 << 10 {
            match block.arena {
                Arena::Mapped => self.large.0 += 1,
                _ => self.large.1 += 1,
            }
        }
        let live = Live::new(block, self.chunk(block), event);
        self.newest = Some(address);
        self.come(address, live);
        let blocks = self.stack(block.stack);
        blocks.count += 1;
        blocks.bytes = blocks.bytes.saturating_add(block.requested);
        blocks.sizes.take(block.requested);
    }

    fn release(&mut self, event: &Event, address: u64) {
        let gone = match self.live.remove(&address) {
            Some(live) => {
                let life = live.lifetime(event, self.newest == Some(address));
                self.leave(live, Some(life));
                Some(Gone::Own(address, live, life))
            }
            None if self.inherited.as_mut().is_some_and(|inherited| inherited.insert(address)) => {
                Some(Gone::Inherited(address))
            }
            None => {
                self.strangers += 1;
                None
            }
        };
        match gone {
            Some(gone) => self.gone.insert(event.stream, gone),
            None => self.gone.remove(&event.stream),
        };
    }

    /// Memory takes the place of what was in the range.
    fn map(&mut self, address: u64, bytes: u64, is_usable: bool) {
        self.unmap(address, bytes);
        self.insert(address, address.saturating_add(bytes), is_usable);
    }

    /// Whether an address is in memory that the program mapped itself, and if so, whether that can be used.
    fn mapped(&self, address: u64) -> Option<bool> {
        let (_, (high, is_usable)) = self.maps.range(..=address).next_back()?;
        (*high > address).then_some(*is_usable)
    }

    /// Adds a mapping where there is none. Neighbours in the same state become one.
    fn insert(&mut self, low: u64, high: u64, is_usable: bool) {
        if low >= high {
            return;
        }
        if is_usable {
            self.now.own_bytes = self.now.own_bytes.saturating_add(high - low);
            self.own_peak = self.own_peak.max(self.now.own_bytes);
        }
        let before = self.maps.range(..low).next_back().filter(|(_, map)| **map == (low, is_usable));
        let from = before.map_or(low, |(from, _)| *from);
        let to = match self.maps.get(&high) {
            Some((to, state)) if *state == is_usable => *to,
            _ => high,
        };
        if to > high {
            self.maps.remove(&high);
        }
        self.maps.insert(from, (to, is_usable));
    }

    /// The state of a range changes, up to the first address that the program has not mapped itself.
    fn protect(&mut self, address: u64, bytes: u64, is_usable: bool) {
        let end = address.saturating_add(bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes));
        let Some((_, (mut high, _))) =
            self.maps.range(..=address).next_back().map(|(from, map)| (*from, *map))
        else {
            return;
        };
        while let Some((to, _)) = self.maps.get(&high).filter(|_| high < end) {
            high = *to;
        }
        let high = high.min(end);
        if high > address {
            self.unmap(address, high - address);
            self.insert(address, high, is_usable);
        }
    }

    /// Removes a range from the program's mappings.
    fn unmap(&mut self, address: u64, bytes: u64) {
        let (low, high) = (address, address.saturating_add(bytes));
        let before =
            self.maps.range(..low).next_back().filter(|(_, (to, _))| *to > low).map(|(from, _)| *from);
        let within: Vec<u64> =
            before.into_iter().chain(self.maps.range(low..high).map(|(from, _)| *from)).collect();
        for from in within {
            let Some((to, is_usable)) = self.maps.remove(&from) else { continue };
            if is_usable {
                self.now.own_bytes = self.now.own_bytes.saturating_sub(to - from);
            }
            self.insert(from, low, is_usable);
            self.insert(high, to, is_usable);
        }
    }
}

/// The heap over time, downsampled as it grows: of each interval the moment with most bytes, and the last one, which holds
/// until the next interval.
#[derive(Debug, Default)]
struct Course {
    moments: Vec<Moment>,
    /// The current interval: its moment with most bytes, and its last.
    now: Option<(Moment, Moment)>,
    /// The length of an interval.
    width_ns: u64,
}

impl Course {
    fn take(&mut self, moment: Moment) {
        let width = self.width_ns.max(1000);
        match &mut self.now {
            Some((most, last)) if moment.time_ns / width == last.time_ns / width => {
                if moment.asked_bytes() >= most.asked_bytes() {
                    *most = moment;
                }
                *last = moment;
            }
            _ => {
                self.settle();
                self.now = Some((moment, moment));
            }
        }
        if self.moments.len() > MOST_MOMENTS {
            self.width_ns = width * 2;
            let now = self.now.take();
            let all = std::mem::take(&mut self.moments);
            for moment in all.into_iter().chain(now.into_iter().flat_map(|(most, last)| [most, last])) {
                self.take(moment);
            }
        }
    }

    /// Ends the current interval.
    fn settle(&mut self) {
        if let Some((most, last)) = self.now.take() {
            self.moments.push(most);
            if last != most {
                self.moments.push(last);
            }
        }
    }

    fn end(&mut self, now: Moment) {
        self.settle();
        if self.moments.last() != Some(&now) {
            self.moments.push(now);
        }
    }
}
