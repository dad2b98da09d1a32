//! pprof's format: a gzip file of one protobuf message, which `go tool pprof` and many viewers read.
//!
//! The messages are those of <https://github.com/google/pprof/blob/main/proto/profile.proto>, without fields that a heap does not
//! need. There, a location is a code address. Here it is a function with all functions inlined into it, and its address is 0:
//! addresses have no meaning outside of their process.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use prost::Message;
use rustc_hash::FxHashMap;
use thiserror::Error;

use widthwise_heap_log::profile::{Column, Frame, Gathering, Profile, Values};

/// Limits that only a hostile file exceeds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Bytes when unpacked.
    unpacked: u64,
    /// Frames in all its stacks together.
    frames: usize,
}

const LIMITS: Limits = Limits { unpacked: 256 << 20, frames: 64 << 20 };

#[derive(Clone, PartialEq, Message)]
struct Whole {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

/// The numbers of the fields of [`Whole`] that reading asks for.
mod field {
    pub const SAMPLE_TYPE: u64 = 1;
    pub const SAMPLE: u64 = 2;
    pub const MAPPING: u64 = 3;
    pub const LOCATION: u64 = 4;
    pub const FUNCTION: u64 = 5;
    pub const STRING: u64 = 6;
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    // What the viewer need not look for in a file of this name, should there be one.
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// The innermost inlined function first, the one that has the code last.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Sample types of other writers that mean a column of ours: Go's runtime/pprof (`heap`), and gperftools' legacy profiles.
const NAMES_OF_OTHERS: [(&str, Column); 6] = [
    ("inuse_space", Column::LiveBytes),
    ("inuse_objects", Column::LiveCount),
    ("alloc_space", Column::AllocBytes),
    ("alloc_objects", Column::AllocCount),
    ("space", Column::LiveBytes),
    ("objects", Column::LiveCount),
];

/// Bytes that are no profile.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PprofError {
    /// The gzip file is damaged or cut off.
    #[error("cannot be unpacked: {0}")]
    Packing(String),
    /// It is larger than any profile of a heap.
    #[error("unpacks to more than {} MiB", LIMITS.unpacked >> 20)]
    TooLarge,
    /// Its stacks are longer than those of any heap.
    #[error("sample {sample}: has more than {} frames in its stacks up to here, which no heap has", LIMITS.frames)]
    TooManyFrames {
        /// Counted from 1.
        sample: usize,
    },
    /// It is not made of the format's messages.
    #[error("byte {offset} (unpacked): is not pprof's profile.proto: {reason}")]
    Malformed {
        /// Where the field begins that cannot be read.
        offset: usize,
        /// Why not.
        reason: String,
    },
    /// It refers to something that it does not have.
    #[error("sample {sample}: names {what} {id}, which the profile does not have")]
    Missing {
        /// Counted from 1.
        sample: usize,
        /// Of what kind.
        what: &'static str,
        /// Its number.
        id: u64,
    },
    /// A sample has less than nothing: the profile is a difference of two.
    #[error("sample {sample}: has a negative {column}: a difference of two profiles cannot be read")]
    Negative {
        /// Counted from 1.
        sample: usize,
        /// In which column.
        column: &'static str,
    },
    /// Nothing that it counts is a heap's.
    #[error("counts {found}, and none of peak_bytes, alloc_bytes, live_bytes, inuse_space, alloc_space or their counts")]
    NotAHeap {
        /// The names of what it counts.
        found: String,
    },
}

/// Numbers for strings, of which the first is the empty one.
#[derive(Default)]
struct Strings {
    table: Vec<String>,
    known: FxHashMap<String, i64>,
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if self.table.is_empty() {
            self.table.push(String::new());
            self.known.insert(String::new(), 0);
        }
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let next = self.table.len() as i64;
        self.table.push(text.to_owned());
        self.known.insert(text.to_owned(), next);
        next
    }
}

/// The number of `key` among those met so far, from 1; and whether it is new.
fn number<K: std::hash::Hash + Eq>(known: &mut FxHashMap<K, u64>, key: K) -> (u64, bool) {
    let next = known.len() as u64 + 1;
    let id = *known.entry(key).or_insert(next);
    (id, id == next)
}

/// A gzip file of the profile, with all columns; viewers show bytes at the peak first.
pub fn write(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.index("");
    let mut message = Whole {
        sample_type: Column::ALL
            .iter()
            .map(|column| ValueType {
                kind: strings.index(column.name()),
                unit: strings.index(column.unit()),
            })
            .collect(),
        period_type: Some(ValueType { kind: strings.index("space"), unit: strings.index("bytes") }),
        period: 1,
        default_sample_type: strings.index(Column::PeakBytes.name()),
        ..Whole::default()
    };
    let mut mappings = FxHashMap::default();
    let mut functions = FxHashMap::default();
    let mut locations: FxHashMap<&[u32], u64> = FxHashMap::default();
    // The first one is taken for the program's own (profile.proto, `mapping`).
    if let Some(main) =
        profile.frames.iter().find(|frame| frame.function == "main" && !frame.module.is_empty())
    {
        mapping(&mut message, &mut mappings, strings.index(&main.module));
    }
    for sample in &profile.samples {
        let mut location_id = Vec::new();
        for group in groups(profile, &sample.stack) {
            let (id, new) = number(&mut locations, group);
            location_id.push(id);
            if !new {
                continue;
            }
            let frames = || group.iter().rev().filter_map(|frame| profile.frames.get(*frame as usize));
            let mut line = Vec::new();
            for frame in frames() {
                let name = strings.index(&frame.function);
                let filename = strings.index(frame.file.as_deref().unwrap_or(""));
                let (function_id, new) = number(&mut functions, (name, filename));
                if new {
                    message.function.push(Function { id: function_id, name, system_name: name, filename });
                }
                line.push(Line { function_id, line: i64::from(frame.line.unwrap_or(0)) });
            }
            let module = frames().next_back().map_or("", |frame| frame.module.as_str());
            let mapping_id = match module {
                "" => 0,
                module => mapping(&mut message, &mut mappings, strings.index(module)),
            };
            message.location.push(Location { id, mapping_id, address: 0, line });
        }
        location_id.reverse();
        let value = Column::ALL
            .iter()
            .map(|column| i64::try_from(column.of(&sample.values)).unwrap_or(i64::MAX))
            .collect();
        message.sample.push(Sample { location_id, value });
    }
    message.string_table = strings.table;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = packed.write_all(&message.encode_to_vec());
    packed.finish().unwrap_or_default()
}

/// The number of the mapping of that name; a new mapping is added to the message.
fn mapping(message: &mut Whole, known: &mut FxHashMap<i64, u64>, filename: i64) -> u64 {
    let (id, new) = number(known, filename);
    if new {
        message.mapping.push(Mapping {
            id,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
    }
    id
}

/// Cuts a stack into functions, each with what is inlined into it, the outermost first.
fn groups<'a>(profile: &'a Profile, stack: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
    stack.chunk_by(|_, inner| profile.frames.get(*inner as usize).is_some_and(|frame| frame.inlined))
}

/// A field of the outermost message: where it begins, its number, and its content.
type Field<'a> = (usize, u64, &'a [u8]);

/// The fields with content, one after the other, so that only one of them at a time is made into something larger.
/// (<https://protobuf.dev/programming-guides/encoding/>)
fn fields(bytes: &[u8]) -> impl Iterator<Item = Result<Field<'_>, PprofError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let offset = bytes.len() - rest.len();
            match next_field(&mut rest) {
                Ok(None) => {}
                Ok(Some((number, content))) => return Some(Ok((offset, number, content))),
                Err(reason) => {
                    rest = &[];
                    return Some(Err(PprofError::Malformed { offset, reason }));
                }
            }
        }
        None
    })
}

/// Takes a field off. Numbers are skipped: reading needs none of them.
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u64, &'a [u8])>, String> {
    let key = varint(rest)?;
    let length = match key & 7 {
        0 => {
            varint(rest)?;
            return Ok(None);
        }
        1 => 8,
        2 => varint(rest)?,
        5 => 4,
        kind => return Err(format!("field {} is of kind {kind}", key >> 3)),
    };
    let (content, behind) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or_else(|| format!("field {} has {length} bytes, and {} are left", key >> 3, rest.len()))?;
    *rest = behind;
    Ok((key & 7 == 2).then_some((key >> 3, content)))
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let number = prost::decode_length_delimiter(&mut *rest).map_err(|error| error.to_string())?;
    Ok(number as u64)
}

fn decoded<M: Message + Default>(offset: usize, content: &[u8]) -> Result<M, PprofError> {
    M::decode(content).map_err(|error| PprofError::Malformed { offset, reason: error.to_string() })
}

/// What samples refer to.
#[derive(Default)]
struct Tables<'a> {
    strings: Vec<&'a str>,
    types: Vec<ValueType>,
    mappings: BTreeMap<u64, Mapping>,
    functions: BTreeMap<u64, Function>,
    locations: BTreeMap<u64, Location>,
}

impl<'a> Tables<'a> {
    fn of(bytes: &'a [u8]) -> Result<Tables<'a>, PprofError> {
        let mut tables = Tables::default();
        for field in fields(bytes) {
            let (offset, number, content) = field?;
            match number {
                field::SAMPLE_TYPE => tables.types.push(decoded(offset, content)?),
                field::MAPPING => {
                    let mapping: Mapping = decoded(offset, content)?;
                    tables.mappings.insert(mapping.id, mapping);
                }
                field::LOCATION => {
                    let location: Location = decoded(offset, content)?;
                    tables.locations.insert(location.id, location);
                }
                field::FUNCTION => {
                    let function: Function = decoded(offset, content)?;
                    tables.functions.insert(function.id, function);
                }
                field::STRING => tables.strings.push(
                    std::str::from_utf8(content)
                        .map_err(|error| PprofError::Malformed { offset, reason: error.to_string() })?,
                ),
                _ => {}
            }
        }
        Ok(tables)
    }

    fn string(&self, sample: usize, index: i64) -> Result<&'a str, PprofError> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.strings.get(index))
            .copied()
            .ok_or(PprofError::Missing { sample, what: "string", id: index as u64 })
    }

    /// The columns of each sample's values, as far as they are ours.
    fn columns(&self) -> Result<Vec<Option<Column>>, PprofError> {
        let mut columns: Vec<Option<Column>> = Vec::new();
        let mut found = Vec::new();
        for kind in &self.types {
            let name = self.string(0, kind.kind)?;
            found.push(name);
            let column = Column::ALL
                .into_iter()
                .map(|column| (column.name(), column))
                .chain(NAMES_OF_OTHERS)
                .find(|(known, column)| *known == name && !columns.contains(&Some(*column)))
                .map(|(_, column)| column);
            columns.push(column);
        }
        if columns.iter().all(Option::is_none) {
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            return Err(PprofError::NotAHeap { found });
        }
        Ok(columns)
    }

    /// The frames of a location, the innermost first.
    fn frames(&self, sample: usize, id: u64) -> Result<Vec<Frame>, PprofError> {
        let missing = |what, id| PprofError::Missing { sample, what, id };
        let location = self.locations.get(&id).ok_or_else(|| missing("location", id))?;
        let module = match location.mapping_id {
            0 => String::new(),
            id => {
                let mapping = self.mappings.get(&id).ok_or_else(|| missing("mapping", id))?;
                let path = self.string(sample, mapping.filename)?;
                path.rsplit('/').next().unwrap_or(path).to_owned()
            }
        };
        let mut frames = Vec::with_capacity(location.line.len().max(1));
        for line in &location.line {
            let function =
                self.functions.get(&line.function_id).ok_or_else(|| missing("function", line.function_id))?;
            let file = self.string(sample, function.filename)?;
            frames.push(Frame {
                function: self.string(sample, function.name)?.to_owned(),
                file: Some(file.to_owned()).filter(|file| !file.is_empty()),
                line: u32::try_from(line.line).ok().filter(|line| *line != 0),
                module: module.clone(),
                inlined: true,
            });
        }
        match frames.last_mut() {
            Some(outermost) => outermost.inlined = false,
            None => frames.push(Frame {
                function: format!("{:#x}", location.address),
                file: None,
                line: None,
                module,
                inlined: false,
            }),
        }
        Ok(frames)
    }
}

/// Reads a profile, packed or not, of this or another writer. Other columns are skipped.
pub fn read(bytes: &[u8]) -> Result<Profile, PprofError> {
    read_within(bytes, LIMITS)
}

fn read_within(bytes: &[u8], limits: Limits) -> Result<Profile, PprofError> {
    let mut unpacked = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(bytes)
            .take(limits.unpacked + 1)
            .read_to_end(&mut unpacked)
            .map_err(|error| PprofError::Packing(error.to_string()))?;
        if unpacked.len() as u64 > limits.unpacked {
            return Err(PprofError::TooLarge);
        }
    }
    read_unpacked(if unpacked.is_empty() { bytes } else { &unpacked }, limits)
}

fn read_unpacked(bytes: &[u8], limits: Limits) -> Result<Profile, PprofError> {
    let tables = Tables::of(bytes)?;
    let columns = tables.columns()?;
    let mut gathering = Gathering::default();
    let mut locations: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut all_frames = 0;
    let samples = fields(bytes).filter(|field| matches!(field, Ok((_, field::SAMPLE, _)) | Err(_)));
    for (index, field) in samples.enumerate() {
        let (offset, _, content) = field?;
        let number = index + 1;
        let sample: Sample = decoded(offset, content)?;
        let mut stack = Vec::new();
        for id in &sample.location_id {
            if !locations.contains_key(id) {
                let frames = tables.frames(number, *id)?;
                locations.insert(*id, frames.into_iter().map(|frame| gathering.frame(frame)).collect());
            }
            let frames = &locations[id];
            all_frames += frames.len();
            if all_frames > limits.frames {
                return Err(PprofError::TooManyFrames { sample: number });
            }
            stack.extend_from_slice(frames);
        }
        stack.reverse();
        let mut values = Values::default();
        for (column, value) in columns.iter().zip(&sample.value) {
            if let Some(column) = column {
                *column.value_mut(&mut values) = u64::try_from(*value)
                    .map_err(|_| PprofError::Negative { sample: number, column: column.name() })?;
            }
        }
        gathering.sample(stack, &values);
    }
    Ok(gathering.profile())
}

#[cfg(test)]
mod tests;
