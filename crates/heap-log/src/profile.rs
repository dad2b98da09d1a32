//! A heap profile: stacks with names, and what each has allocated. Viewers of profiles read it.

use rustc_hash::FxHashMap;

use crate::lifetimes::Lifetimes;
use crate::sizes::Sizes;

/// One logical frame: a function that was inlined is one too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The function, demangled; the address where nothing names it.
    pub function: String,
    /// Its source, as the compiler was given it.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The file name of the object it is in, without folders; empty where it is in none.
    pub module: String,
    /// It is inlined into the frame outside of it.
    pub inlined: bool,
}

/// Bytes and blocks, as `Blocks` of `history` has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Values {
    /// Live blocks at the process's peak.
    pub peak_count: u64,
    /// Their bytes, as requested.
    pub peak_bytes: u64,
    /// What the allocator used for them.
    pub peak_chunk_bytes: u64,
    /// Allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Live blocks at the end.
    pub live_count: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Lifetimes of the freed blocks; empty in an import from another profiler.
    pub lifetimes: Lifetimes,
    /// Sizes of all allocations; none in an import.
    pub sizes: Sizes,
}

impl Values {
    /// Adds another's.
    pub fn add(&mut self, other: &Values) {
        self.peak_count = self.peak_count.saturating_add(other.peak_count);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.peak_chunk_bytes = self.peak_chunk_bytes.saturating_add(other.peak_chunk_bytes);
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.live_count = self.live_count.saturating_add(other.live_count);
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
        self.lifetimes.add(&other.lifetimes);
        self.sizes.add(other.sizes);
    }

    /// Whether lifetimes are known. Imports from other profilers have none.
    pub fn lifetimes_are_known(&self) -> bool {
        self.count > 0 && (self.lifetimes.released() > 0 || self.live_count == self.count)
    }
}

/// One of the [`Values`], by the name that exported files give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// [`Values::peak_bytes`].
    PeakBytes,
    /// [`Values::peak_count`].
    PeakBlocks,
    /// [`Values::peak_chunk_bytes`].
    PeakChunkBytes,
    /// [`Values::bytes`].
    AllocBytes,
    /// [`Values::count`].
    AllocCount,
    /// [`Values::live_bytes`].
    LiveBytes,
    /// [`Values::live_count`].
    LiveCount,
}

impl Column {
    /// All of them, in the order of exported files.
    pub const ALL: [Column; 7] = [
        Column::PeakBytes,
        Column::PeakBlocks,
        Column::PeakChunkBytes,
        Column::AllocBytes,
        Column::AllocCount,
        Column::LiveBytes,
        Column::LiveCount,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Column::PeakBytes => "peak_bytes",
            Column::PeakBlocks => "peak_blocks",
            Column::PeakChunkBytes => "peak_chunk_bytes",
            Column::AllocBytes => "alloc_bytes",
            Column::AllocCount => "alloc_count",
            Column::LiveBytes => "live_bytes",
            Column::LiveCount => "live_count",
        }
    }

    /// Its unit: `bytes` or `count`.
    pub fn unit(self) -> &'static str {
        match self {
            Column::PeakBytes | Column::PeakChunkBytes | Column::AllocBytes | Column::LiveBytes => "bytes",
            Column::PeakBlocks | Column::AllocCount | Column::LiveCount => "count",
        }
    }

    /// Its value in `values`.
    pub fn of(self, values: &Values) -> u64 {
        let mut values = *values;
        *self.value_mut(&mut values)
    }

    /// Its value in `values`, to be changed.
    pub fn value_mut(self, values: &mut Values) -> &mut u64 {
        match self {
            Column::PeakBytes => &mut values.peak_bytes,
            Column::PeakBlocks => &mut values.peak_count,
            Column::PeakChunkBytes => &mut values.peak_chunk_bytes,
            Column::AllocBytes => &mut values.bytes,
            Column::AllocCount => &mut values.count,
            Column::LiveBytes => &mut values.live_bytes,
            Column::LiveCount => &mut values.live_count,
        }
    }
}

/// What one stack has allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Indexes into [`Profile::frames`], the outermost first.
    pub stack: Vec<u32>,
    /// How much.
    pub values: Values,
}

/// All of a process's stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Each once.
    pub frames: Vec<Frame>,
    /// The stacks that allocated.
    pub samples: Vec<Sample>,
}

impl Profile {
    /// Adds another process's stacks.
    pub fn append(&mut self, other: Profile) {
        use rustc_hash::FxHashMap;
        let mut known: FxHashMap<Frame, u32> = self.frames.iter().cloned().zip(0..).collect();
        let numbers: Vec<u32> = other
            .frames
            .into_iter()
            .map(|frame| {
                let next = self.frames.len() as u32;
                *known.entry(frame).or_insert_with_key(|frame| {
                    self.frames.push(frame.clone());
                    next
                })
            })
            .collect();
        for sample in other.samples {
            let stack =
                sample.stack.iter().filter_map(|index| numbers.get(*index as usize).copied()).collect();
            self.samples.push(Sample { stack, values: sample.values });
        }
    }

    /// Over all stacks.
    pub fn sum(&self) -> Values {
        let mut sum = Values::default();
        for sample in &self.samples {
            sum.add(&sample.values);
        }
        sum
    }
}

/// Builds a profile: each frame and each stack is stored once.
#[derive(Debug, Default)]
pub struct Gathering {
    profile: Profile,
    frames: FxHashMap<Frame, u32>,
    stacks: FxHashMap<Vec<u32>, usize>,
}

impl Gathering {
    /// The frame's index.
    pub fn frame(&mut self, frame: Frame) -> u32 {
        if let Some(known) = self.frames.get(&frame) {
            return *known;
        }
        let next = self.profile.frames.len() as u32;
        self.profile.frames.push(frame.clone());
        self.frames.insert(frame, next);
        next
    }

    /// Adds the values of a stack; its frames are the outermost first.
    pub fn sample(&mut self, stack: Vec<u32>, values: &Values) {
        match self.stacks.get(&stack) {
            Some(known) => self.profile.samples[*known].values.add(values),
            None => {
                self.stacks.insert(stack.clone(), self.profile.samples.len());
                self.profile.samples.push(Sample { stack, values: *values });
            }
        }
    }

    /// The frames so far.
    pub fn frames(&self) -> &[Frame] {
        &self.profile.frames
    }

    /// What was gathered.
    pub fn profile(self) -> Profile {
        self.profile
    }
}
