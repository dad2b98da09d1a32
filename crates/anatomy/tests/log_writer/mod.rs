//! Writes heap logs as `runtime/heap/log.h` has them: for tests of what reads them.
#![allow(dead_code)]

pub const NO_PARENT: u32 = u32::MAX;
pub const CHUNK: usize = 65536;

/// What a chunk says of a process.
#[derive(Debug, Clone)]
pub struct Described {
    pub process: u32,
    /// A chunk.
    pub parent: u32,
    pub parent_number: u32,
    pub began_ns: u64,
    pub inherited: u64,
    pub state: u32,
    pub lost: [u64; 8],
    pub anonymous: u64,
    pub program: &'static str,
}

impl Default for Described {
    fn default() -> Described {
        Described {
            process: 100,
            parent: NO_PARENT,
            parent_number: 1,
            began_ns: 1_000,
            inherited: 0,
            state: 1 | 4 | 16,
            lost: [0; 8],
            anonymous: 0,
            program: "/srv/program",
        }
    }
}

/// A log in the making.
#[derive(Debug, Clone, Default)]
pub struct LogWriter {
    pub chunks: Vec<Vec<u8>>,
}

impl LogWriter {
    /// A log with one process, in chunk 0.
    pub fn of_one_process() -> LogWriter {
        let mut log = LogWriter::default();
        log.process(&Described::default());
        log
    }

    /// Adds a process; gives back its chunk.
    pub fn process(&mut self, process: &Described) -> u32 {
        let mut bytes = Vec::new();
        bytes.extend(0x434f_5250u32.to_le_bytes());
        bytes.extend([8, 0]);
        bytes.extend(62u16.to_le_bytes());
        bytes.extend(process.process.to_le_bytes());
        bytes.extend(process.parent.to_le_bytes());
        bytes.extend(process.began_ns.to_le_bytes());
        bytes.extend(process.inherited.to_le_bytes());
        bytes.extend(process.state.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        for lost in process.lost {
            bytes.extend(lost.to_le_bytes());
        }
        bytes.extend(process.anonymous.to_le_bytes());
        bytes.extend(process.parent_number.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.resize(376, 0);
        bytes.extend(process.program.as_bytes());
        self.chunk(bytes)
    }

    /// Adds a chunk of records of the process in chunk `process`.
    pub fn records(&mut self, process: u32, stream: u32, index: u32, records: &[u8]) -> u32 {
        assert!(records.len() <= CHUNK - 32);
        let mut bytes = Vec::new();
        for word in [0x4b4e_4843, process, stream, index, 0, 0, 0, 0] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(records);
        self.chunk(bytes)
    }

    /// Adds records, each whole in one chunk, as the chunks of one stream.
    pub fn stream(&mut self, process: u32, stream: u32, records: impl IntoIterator<Item = Vec<u8>>) {
        let (mut chunk, mut index) = (Vec::new(), 0);
        for record in records {
            if chunk.len() + record.len() > CHUNK - 32 {
                self.records(process, stream, index, &chunk);
                chunk.clear();
                index += 1;
            }
            chunk.extend(record);
        }
        self.records(process, stream, index, &chunk);
    }

    pub fn chunk(&mut self, mut bytes: Vec<u8>) -> u32 {
        bytes.resize(CHUNK, 0);
        self.chunks.push(bytes);
        self.chunks.len() as u32 - 1
    }

    /// The file, which is as long as what is used of it.
    pub fn file(&self) -> Vec<u8> {
        let mut bytes = b"\x89WWHEAP\n".to_vec();
        bytes.extend(3u16.to_le_bytes());
        bytes.extend(0u16.to_le_bytes());
        for word in [4096, CHUNK as u32, self.chunks.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((1u64 << 40).to_le_bytes());
        bytes.resize(4096, 0);
        bytes.extend(self.chunks.concat());
        bytes
    }
}

/// An unsigned LEB128 number.
pub fn leb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A signed number.
pub fn zigzag(value: i64) -> Vec<u8> {
    leb((value << 1 ^ value >> 63) as u64)
}

/// A block of 16 bytes, 8 to spare, at 8 * `distance` beyond the address before it, of the stack `node`; slot 7.
pub fn block(distance: i8, node: u64) -> Vec<u8> {
    let zigzag = (distance << 1 ^ distance >> 7) as u8;
    [vec![2 | 1 << 3, zigzag, 7], leb(node), vec![16, 8 << 2, 0]].concat()
}

/// The block at 8 * `distance` beyond the address before it goes.
pub fn free(distance: i8) -> Vec<u8> {
    vec![3 | 1 << 3, (distance << 1 ^ distance >> 7) as u8]
}

/// A call of the stack `outer` that returns to `distance` beyond the one before it.
pub fn node(outer: u64, distance: i64) -> Vec<u8> {
    [vec![4, 1], leb(outer), zigzag(distance)].concat()
}

pub fn module(bias: u64, low: u64, high: u64, path: &str) -> Vec<u8> {
    [vec![4, 5], leb(bias), leb(low), leb(high), leb(path.len() as u64), path.as_bytes().to_vec()].concat()
}

pub fn forget(number: u64) -> Vec<u8> {
    [vec![4, 6], leb(number)].concat()
}

pub fn exec(process: u32, state: u64, path: &str) -> Vec<u8> {
    [vec![4, 10], leb(process.into()), leb(state), leb(path.len() as u64), path.as_bytes().to_vec()].concat()
}

/// Nanoseconds go by.
pub fn time(ns: u64) -> Vec<u8> {
    [vec![4, 2], leb(ns)].concat()
}

/// The next event has this number.
pub fn number(number: u64) -> Vec<u8> {
    [vec![4, 3], leb(number)].concat()
}

/// The program maps memory.
pub fn map(address: u64, bytes: u64, protection: u64, flags: u64) -> Vec<u8> {
    [vec![4, 7], leb(address), leb(bytes), leb(0), leb(protection), leb(flags)].concat()
}

/// The program moves or resizes memory.
pub fn moved(from: (u64, u64), to: (u64, u64), flags: u64) -> Vec<u8> {
    [vec![4, 11], leb(from.0), leb(from.1), leb(to.0), leb(to.1), leb(0), leb(flags)].concat()
}

/// The program changes the protection of memory.
pub fn protect(address: u64, bytes: u64, protection: u64) -> Vec<u8> {
    [vec![4, 12], leb(address), leb(bytes), leb(protection)].concat()
}
