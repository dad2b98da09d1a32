//! A process's heap over time: what was live when, at which stack, and how much of it the allocator's own keeping costs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::heap::decoder::{Block, Event, Events, Happening, Home};
use crate::heap::lives::{Life, Lives};
use crate::heap::log::Log;
use crate::heap::places::{Places, StackId};

/// More moments than this are thinned out to half.
const MOST_MOMENTS: usize = 2048;
/// mmap(2), `MAP_ANONYMOUS`: what is mapped without it is a file.
const ANONYMOUS: u64 = 0x20;

/// What a stack has asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks that came.
    pub count: u64,
    /// Bytes that were asked for, over all of them.
    pub bytes: u64,
    /// Blocks that were there when the process had most bytes.
    pub peak_count: u64,
    /// And their bytes.
    pub peak_bytes: u64,
    /// What the allocator used for these, its own words and rounding included.
    pub peak_chunk_bytes: u64,
    /// Blocks that are there still.
    pub live_count: u64,
    /// And their bytes.
    pub live_bytes: u64,
    /// And what the allocator uses for them.
    pub live_chunk_bytes: u64,
    /// How long those were there that were given back.
    pub lives: Lives,
    /// The event of which the numbers at the peak are known to be true.
    seen: u64,
}

impl Blocks {
    /// Before a change: if the process's peak was since the last one, this is what it had of this stack.
    fn settle(&mut self, now: u64, peak: u64) {
        if peak >= self.seen {
            self.peak_count = self.live_count;
            self.peak_bytes = self.live_bytes;
            self.peak_chunk_bytes = self.live_chunk_bytes;
        }
        self.seen = now;
    }
}

/// How a heap stood at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since the log began.
    pub time_ns: u64,
    /// Live blocks.
    pub count: u64,
    /// Bytes that were asked for and not given back.
    pub bytes: u64,
    /// Bytes of the allocator's chunks in its main arena.
    pub main_bytes: u64,
    /// Of chunks that are mapped by themselves.
    pub mapped_bytes: u64,
    /// Of chunks in other arenas.
    pub arena_bytes: u64,
    /// Bytes of memory, not of files, that the program itself mapped.
    pub own_bytes: u64,
}

/// The history of one process.
#[derive(Debug)]
pub struct History {
    /// Modules and stacks.
    pub places: Places,
    /// What each stack asked for; the index is the stack's number.
    pub stacks: Vec<Blocks>,
    /// When the process had most bytes.
    pub peak: Moment,
    /// At its end.
    pub end: Moment,
    /// The course of it: at most some two thousand moments, of each stretch the one with most bytes and the last.
    pub course: Vec<Moment>,
    /// Blocks that came, and their bytes.
    pub total: (u64, u64),
    /// What is mapped by the program itself: stack and bytes, at the end.
    pub own_maps: Vec<(StackId, u64)>,
    /// Releases of blocks that nobody had seen coming: they came before the recorder, or from where it does not look.
    pub strangers: u64,
    /// Blocks of at least 128 KiB, glibc's first threshold for a mapping of their own: how many had one, how many did not.
    pub large: (u64, u64),
    /// Blocks that were there when it was forked, and their bytes: they are its parent's, and in no other number here.
    pub inherited: (u64, u64),
    /// What could not be decoded.
    pub faults: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    stack: StackId,
    home: Home,
    requested: u64,
    chunk: u64,
    time_ns: u64,
    /// Its number among the process's blocks.
    number: u64,
    inherited: bool,
}

struct Account {
    live: FxHashMap<u64, Live>,
    /// The block that went last in each stream: it may turn out to have stayed.
    gone: FxHashMap<u32, (u64, Live, Life)>,
    /// From its first byte: behind its last byte, and who asked for it.
    maps: BTreeMap<u64, (u64, StackId)>,
    stacks: Vec<Blocks>,
    now: Moment,
    peak: Moment,
    peak_at: u64,
    step: u64,
    course: Course,
    total: (u64, u64),
    strangers: u64,
    large: (u64, u64),
    inherited: (u64, u64),
    word: u64,
    glibc: bool,
}

impl History {
    /// The history of a log's process. `ancestors` are the logs of the processes it was forked from, the oldest first: what
    /// they had when it was forked, it has too.
    pub fn of(log: &Log, ancestors: &[&Log]) -> History {
        let mut account = Account {
            live: FxHashMap::default(),
            gone: FxHashMap::default(),
            maps: BTreeMap::new(),
            stacks: Vec::new(),
            now: Moment::default(),
            peak: Moment::default(),
            peak_at: 0,
            step: 1,
            course: Course::default(),
            total: (0, 0),
            strangers: 0,
            large: (0, 0),
            inherited: (0, 0),
            word: u64::from(log.header.word),
            glibc: log.header.glibc,
        };
        let mut places = Places::default();
        let mut faults = Vec::new();
        for (index, ancestor) in ancestors.iter().enumerate() {
            let until = ancestors.get(index + 1).map_or(log.header.inherited, |next| next.header.inherited);
            let mut events = Events::after(ancestor, places);
            for event in events.by_ref().take_while(|event| event.number < until) {
                account.take(&event);
            }
            places = events.places;
        }
        account.begin_anew();
        let mut events = Events::after(log, places);
        for event in events.by_ref() {
            account.take(&event);
        }
        account.now.time_ns = events.latest_ns();
        faults.append(&mut events.faults);
        faults.truncate(20);
        let places = std::mem::take(&mut events.places);
        account.stacks.resize(places.len(), Blocks::default());
        for stack in &mut account.stacks {
            stack.settle(u64::MAX, account.peak_at);
        }
        account.course.end(account.now);
        History {
            places,
            stacks: account.stacks,
            peak: account.peak,
            end: account.now,
            course: account.course.moments,
            total: account.total,
            own_maps: account.maps.iter().map(|(low, (high, stack))| (*stack, high - low)).collect(),
            strangers: account.strangers,
            large: account.large,
            inherited: account.inherited,
            faults,
        }
    }
}

impl Account {
    /// What ancestors did is not this process's doing. What they left is there, but it is theirs: the system shares it until
    /// one of them writes to it, and a sum over a tree has it once.
    fn begin_anew(&mut self) {
        self.inherited = (self.now.count, self.now.bytes);
        self.stacks.fill(Blocks::default());
        for live in self.live.values_mut() {
            live.inherited = true;
        }
        self.maps.clear();
        self.now = Moment::default();
        self.peak = self.now;
        self.peak_at = self.step;
        self.total = (0, 0);
        self.strangers = 0;
        self.large = (0, 0);
        self.gone.clear();
        self.course = Course::default();
    }

    /// What glibc uses for a block: a word before it, two where it is mapped by itself (malloc/malloc.c, `malloc_chunk`).
    fn chunk(&self, block: &Block) -> u64 {
        let words = match (self.glibc, block.home) {
            (false, _) => 0,
            (true, Home::Mapped) => 2,
            (true, _) => 1,
        };
        block.usable.saturating_add(words * self.word)
    }

    fn stack(&mut self, stack: StackId) -> &mut Blocks {
        let index = stack.0 as usize;
        if index >= self.stacks.len() {
            self.stacks.resize(index + 1, Blocks::default());
        }
        let (now, peak) = (self.step, self.peak_at);
        let blocks = &mut self.stacks[index];
        blocks.settle(now, peak);
        blocks
    }

    fn home(&mut self, home: Home) -> &mut u64 {
        match home {
            Home::Main => &mut self.now.main_bytes,
            Home::Mapped => &mut self.now.mapped_bytes,
            Home::Arena => &mut self.now.arena_bytes,
        }
    }

    fn come(&mut self, address: u64, live: Live) {
        if let Some(before) = self.live.insert(address, live) {
            // Its release was not seen.
            self.leave(before, None);
        }
        if live.inherited {
            return;
        }
        let blocks = self.stack(live.stack);
        blocks.live_count += 1;
        blocks.live_bytes = blocks.live_bytes.saturating_add(live.requested);
        blocks.live_chunk_bytes = blocks.live_chunk_bytes.saturating_add(live.chunk);
        let home = self.home(live.home);
        *home = home.saturating_add(live.chunk);
        self.now.count += 1;
        self.now.bytes = self.now.bytes.saturating_add(live.requested);
        if self.now.bytes > self.peak.bytes {
            self.peak = self.now;
            self.peak_at = self.step;
        }
    }

    fn leave(&mut self, live: Live, life: Option<Life>) {
        if live.inherited {
            return;
        }
        let blocks = self.stack(live.stack);
        blocks.live_count = blocks.live_count.saturating_sub(1);
        blocks.live_bytes = blocks.live_bytes.saturating_sub(live.requested);
        blocks.live_chunk_bytes = blocks.live_chunk_bytes.saturating_sub(live.chunk);
        if let Some(life) = life {
            blocks.lives.end(life);
        }
        let home = self.home(live.home);
        *home = home.saturating_sub(live.chunk);
        self.now.count = self.now.count.saturating_sub(1);
        self.now.bytes = self.now.bytes.saturating_sub(live.requested);
    }

    fn take(&mut self, event: &Event) {
        self.step += 1;
        self.now.time_ns = event.time_ns;
        match event.happening {
            Happening::Allocated { address, block } => {
                let chunk = self.chunk(&block);
                let live = Live {
                    stack: block.stack,
                    home: block.home,
                    requested: block.requested,
                    chunk,
                    time_ns: event.time_ns,
                    number: self.total.0 + 1,
                    inherited: false,
                };
                self.total.0 += 1;
                self.total.1 = self.total.1.saturating_add(block.requested);
                if self.glibc && block.requested >= 128 << 10 {
                    match block.home {
                        Home::Mapped => self.large.0 += 1,
                        _ => self.large.1 += 1,
                    }
                }
                self.come(address, live);
                let blocks = self.stack(block.stack);
                blocks.count += 1;
                blocks.bytes = blocks.bytes.saturating_add(block.requested);
            }
            Happening::Released { address } => match self.live.remove(&address) {
                Some(live) => {
                    let life = Life {
                        long_ns: event.time_ns.saturating_sub(live.time_ns),
                        at_once: live.number == self.total.0,
                    };
                    self.leave(live, Some(life));
                    self.gone.insert(event.stream, (address, live, life));
                }
                None => {
                    self.strangers += 1;
                    self.gone.remove(&event.stream);
                }
            },
            Happening::Kept => {
                if let Some((address, live, life)) = self.gone.remove(&event.stream) {
                    if !live.inherited {
                        self.stack(live.stack).lives.undo(life);
                    }
                    self.come(address, live);
                }
            }
            Happening::Mapped { address, bytes, stack, flags } => {
                if flags & ANONYMOUS != 0 {
                    self.unmap(address, bytes);
                    self.maps.insert(address, (address.saturating_add(bytes), stack));
                    self.now.own_bytes = self.now.own_bytes.saturating_add(bytes);
                }
            }
            Happening::Unmapped { address, bytes } => self.unmap(address, bytes),
        }
        self.course.take(self.now);
    }

    /// Cuts a range out of what the program has mapped.
    fn unmap(&mut self, address: u64, bytes: u64) {
        let (low, high) = (address, address.saturating_add(bytes));
        let before =
            self.maps.range(..low).next_back().filter(|(_, (to, _))| *to > low).map(|(from, _)| *from);
        let within: Vec<u64> =
            before.into_iter().chain(self.maps.range(low..high).map(|(from, _)| *from)).collect();
        for from in within {
            let Some((to, stack)) = self.maps.remove(&from) else { continue };
            let own = &mut self.now.own_bytes;
            *own = own.saturating_sub(to - from);
            if from < low {
                self.maps.insert(from, (low, stack));
                *own = own.saturating_add(low - from);
            }
            if to > high {
                self.maps.insert(high, (to, stack));
                *own = own.saturating_add(to - high);
            }
        }
    }
}

/// The course of a heap, thinned out as it grows: of each stretch of time the moment with most bytes, and the last one, which
/// holds until the next.
#[derive(Debug, Default)]
struct Course {
    moments: Vec<Moment>,
    /// The stretch that is going on: its most, and its last.
    now: Option<(Moment, Moment)>,
    /// How long a stretch is.
    width_ns: u64,
}

impl Course {
    fn take(&mut self, moment: Moment) {
        let width = self.width_ns.max(1000);
        match &mut self.now {
            Some((most, last)) if moment.time_ns / width == last.time_ns / width => {
                if moment.bytes + moment.own_bytes >= most.bytes + most.own_bytes {
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

    /// The stretch that was going on is over.
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
