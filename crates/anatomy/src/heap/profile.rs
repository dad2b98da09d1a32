//! Stacks with names, and what was asked for at each: what viewers of profiles work on.

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
    /// Blocks that were there when the process had most bytes.
    pub peak_count: u64,
    /// Their bytes, as requested.
    pub peak_bytes: u64,
    /// What the allocator used for them.
    pub peak_chunk_bytes: u64,
    /// Blocks that came.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were there at the end.
    pub live_count: u64,
    /// Their bytes.
    pub live_bytes: u64,
}

impl Values {
    /// Adds another's.
    pub fn add(&mut self, other: &Values) {
        self.peak_count += other.peak_count;
        self.peak_bytes += other.peak_bytes;
        self.peak_chunk_bytes += other.peak_chunk_bytes;
        self.count += other.count;
        self.bytes += other.bytes;
        self.live_count += other.live_count;
        self.live_bytes += other.live_bytes;
    }
}

/// What was asked for by one stack.
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
    /// Those that asked for anything.
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
