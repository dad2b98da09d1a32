//! The files of valgrind's callgrind and cachegrind: exclusive counts by function.
//!
//! The format is that of valgrind's manual, "Callgrind Format Specification". Names and positions may be compressed; the costs of
//! calls are inclusive, and not read. A file says its own sums: one whose costs do not add up to them is refused.
//!
//! A repeated string instruction (`rep movsb`) counts once, however often it repeats, as in a processor's counters (Weaver & McKee 2008,
//! "Can hardware performance counters be trusted?"). Valgrind executes each repetition as a jump of the instruction to itself and counts
//! an instruction; `--collect-jumps=yes` has it write how many such jumps there were.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::counts::{Counts, Field};

/// A file that is none of valgrind's, or that is damaged.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum CallgrindError {
    /// A line is none of the format's.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The sums at the end are missing.
    #[error(
        "it ends without the sums of its counts: it is truncated, or no file of callgrind or cachegrind"
    )]
    Truncated,
    /// The costs do not add up.
    #[error("its counts of {event} add up to {sum}, and it says {total}: it is damaged")]
    Sum {
        /// The event.
        event: String,
        /// The sum of the costs.
        sum: u64,
        /// What the file says.
        total: u64,
    },
}

/// The counts of one process, or of a part of its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Its command line, as valgrind writes it.
    pub command: String,
    /// The process's number; 0 in cachegrind's files, which do not say.
    pub process: u32,
    /// Why the counts were written: `Program termination`, or a function that was entered.
    pub trigger: String,
    /// The names of the counted events.
    pub events: Vec<String>,
    /// The emulated caches: `I1 32 KiB 8-way`, likewise D1 and LL, the last level.
    pub caches: Vec<String>,
    /// The costs, each function of each source file, or each code address, once.
    pub costs: Vec<Cost>,
    /// Repetitions of string instructions, which the costs do not have: the file's sum of instructions has them.
    pub repetitions: u64,
    names: Vec<String>,
}

/// What one function costs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    object: u32,
    function: u32,
    file: u32,
    /// The code address, in files that have them (`--dump-instr=yes`).
    pub address: Option<u64>,
    /// The counts.
    pub counts: Counts,
}

impl Output {
    /// The path of the object file that the code is from; empty where valgrind knows none.
    pub fn object(&self, cost: &Cost) -> &str {
        self.known(cost.object)
    }

    /// The function's name; empty where valgrind knows none.
    pub fn function(&self, cost: &Cost) -> &str {
        self.known(cost.function)
    }

    /// The function's source file; empty where valgrind knows none.
    pub fn file(&self, cost: &Cost) -> &str {
        self.known(cost.file)
    }

    /// The costs, those of one function's addresses added up at the first of them. Code without a name stays apart by address.
    /// `start` is where the function at a cost's address begins, if its object file says so: Valgrind may have several functions of
    /// one name as one, with the file of one of them.
    pub fn by_function(&self, mut start: impl FnMut(&Cost) -> Option<u64>) -> Vec<Cost> {
        let mut known: FxHashMap<(u32, u32, u32, Option<u64>), usize> = FxHashMap::default();
        let mut sums: Vec<Cost> = Vec::new();
        for cost in &self.costs {
            if symbol(self.function(cost)).is_none() {
                sums.push(*cost);
                continue;
            }
            match known.entry((cost.object, cost.function, cost.file, start(cost))) {
                Entry::Occupied(at) => sums[*at.get()].counts += cost.counts,
                Entry::Vacant(place) => {
                    place.insert(sums.len());
                    sums.push(*cost);
                }
            }
        }
        sums
    }

    fn known(&self, name: u32) -> &str {
        match self.names.get(name as usize).map(String::as_str) {
            Some("???") | None => "",
            Some(name) => name,
        }
    }
}

/// Reads a file.
///
/// # Errors
/// [`CallgrindError`]: the line and what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Output, CallgrindError> {
    let mut reader = Reader::default();
    let without_return = |line: &'_ [u8]| line.len() - usize::from(line.ends_with(b"\r"));
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let mut line = Cow::Borrowed(&line[..without_return(line)]);
        while has_name(&line) {
            let Some((_, rest)) = lines.next_if(|(_, next)| continues_name(next)) else { break };
            let joined = line.to_mut();
            joined.push(b'\n');
            joined.extend_from_slice(&rest[..without_return(rest)]);
        }
        reader.line(&line).map_err(|what| CallgrindError::Line { line: index + 1, what })?;
    }
    reader.end()
}

/// Keys before a name: of an object file, a source file, or a function.
const NAMES: [&str; 11] = ["ob", "fl", "fi", "fe", "fn", "cob", "cfi", "cfl", "cfn", "jfi", "jfn"];
/// Other keys before `=`.
const OTHER_KEYS: [&str; 3] = ["calls", "jump", "jcnd"];

/// Whether a line ends with text that valgrind does not escape: a name, or the command line.
fn has_name(line: &[u8]) -> bool {
    let key = line.split(|byte| matches!(byte, b'=' | b':')).next().unwrap_or_default();
    match line.get(key.len()) {
        Some(b'=') => NAMES.iter().any(|name| name.as_bytes() == key),
        Some(_) => key == b"cmd",
        None => false,
    }
}

/// Whether a line behind a name is no line of the format, and so the rest of the name: symbols and paths may have line ends.
fn continues_name(line: &[u8]) -> bool {
    match line.first() {
        None | Some(b'#') => false,
        Some(b'0'..=b'9' | b'+' | b'-' | b'*') => {
            let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            let word = std::str::from_utf8(word).unwrap_or("?");
            // Any position before: only the word's form counts.
            position(word, u64::MAX / 2).is_err_and(|what| what == NO_POSITION)
        }
        Some(_) => match line.iter().find(|byte| matches!(byte, b'=' | b':')) {
            None => true,
            Some(b':') => false,
            Some(_) => {
                let key = line.split(|byte| *byte == b'=').next().unwrap_or_default();
                !NAMES.iter().chain(&OTHER_KEYS).any(|known| known.as_bytes() == key)
            }
        },
    }
}

/// One of the three tables of compressed names.
type Names = FxHashMap<u64, u32>;

struct Reader {
    output: Output,
    known: FxHashMap<Box<str>, u32>,
    objects: Names,
    files: Names,
    functions: Names,
    fields: Vec<Option<Field>>,
    /// Of each event, over all costs.
    sums: Vec<u64>,
    totals: Option<Vec<u64>>,
    /// Where the numbers of a position are; a line of source is the last.
    has_address: bool,
    has_line: bool,
    /// Of the last line with exclusive costs: valgrind writes others relative to it, those of calls and jumps among them
    /// (`callgrind/dump.c`: `fprint_fcost` sets `last`, `fprint_jcc` does not).
    position: [u64; 2],
    object: u32,
    /// The source file of the next costs, and that of the function.
    file: u32,
    file_of_function: u32,
    function: u32,
    /// The next line is the inclusive cost of a call.
    is_inclusive: bool,
    /// How often the jump went whose place is in the next line, and to which address.
    jump: Option<(u64, u64)>,
    by_place: FxHashMap<(u32, u32, u32, u64), usize>,
}

impl Default for Reader {
    fn default() -> Reader {
        let mut reader = Reader {
            output: Output::default(),
            known: FxHashMap::default(),
            objects: Names::default(),
            files: Names::default(),
            functions: Names::default(),
            fields: Vec::new(),
            sums: Vec::new(),
            totals: None,
            has_address: false,
            has_line: true,
            position: [0; 2],
            object: 0,
            file: 0,
            file_of_function: 0,
            function: 0,
            is_inclusive: false,
            jump: None,
            by_place: FxHashMap::default(),
        };
        // The first name is the unknown one.
        reader.intern("???");
        reader
    }
}

/// The emulated cache that a description is of: `LL cache: 33554432 B, 64 B, 16-way associative`.
fn cache(description: &str) -> Option<String> {
    let (name, shape) = description.split_once(" cache:")?;
    let mut parts = shape.split(", ");
    let bytes: u64 = parts.next()?.trim().strip_suffix(" B")?.parse().ok()?;
    let ways = parts.nth(1)?.trim_end_matches(" associative");
    let size = match bytes {
        1_048_576.. if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    };
    Some(format!("{name} {size} {ways}"))
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        match line.first() {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.cost(line),
            _ => {
                let text = String::from_utf8_lossy(line);
                let split = text.find(['=', ':']).ok_or("is no line of the format")?;
                let (key, value) = (&text[..split], text[split + 1..].trim());
                match text.as_bytes()[split] {
                    b'=' => self.name(key, value),
                    _ => self.header(key, value),
                }
            }
        }
    }

    fn header(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "cmd" => self.output.command = value.to_owned(),
            "pid" => self.output.process = value.parse().map_err(|_| "the process's number is no number")?,
            "desc" => {
                if let Some(trigger) = value.strip_prefix("Trigger:") {
                    self.output.trigger = trigger.trim().to_owned();
                }
                self.output.caches.extend(cache(value));
            }
            "positions" => {
                let has = |word: &str| value.split_whitespace().any(|one| one == word);
                self.has_address = has("instr");
                self.has_line = has("line");
                if value.split_whitespace().any(|word| !matches!(word, "instr" | "line")) || value.is_empty()
                {
                    return Err("the positions are neither \"instr\" nor \"line\"");
                }
            }
            "events" => {
                if !self.output.events.is_empty() {
                    return Err("the events are named twice");
                }
                self.output.events = value.split_whitespace().map(str::to_owned).collect();
                self.fields = self.output.events.iter().map(|event| Counts::field(event)).collect();
                self.sums = vec![0; self.fields.len()];
            }
            // callgrind's `summary` also has what was counted outside of every function; cachegrind's stands at the end.
            "totals" => self.totals = Some(numbers(value)?),
            "summary" if !self.output.costs.is_empty() => self.totals = Some(numbers(value)?),
            _ => {}
        }
        Ok(())
    }

    fn name(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "ob" => self.object = self.resolve(value, |reader| &mut reader.objects)?,
            "fl" | "fi" | "fe" => self.file = self.resolve(value, |reader| &mut reader.files)?,
            "fn" => {
                self.function = self.resolve(value, |reader| &mut reader.functions)?;
                self.file_of_function = self.file;
            }
            "cob" => drop(self.resolve(value, |reader| &mut reader.objects)?),
            "cfi" | "cfl" | "jfi" => drop(self.resolve(value, |reader| &mut reader.files)?),
            "cfn" | "jfn" => drop(self.resolve(value, |reader| &mut reader.functions)?),
            "calls" => self.is_inclusive = true,
            "jump" | "jcnd" if self.has_address => self.jump = Some(self.taken(value)?),
            "jump" | "jcnd" => {}
            _ => return Err("is no line of the format"),
        }
        Ok(())
    }

    /// How often a jump went, and to which address: `TIMES ADDRESS`, of a conditional one `TIMES/EXECUTED ADDRESS`.
    fn taken(&self, value: &str) -> Result<(u64, u64), &'static str> {
        const WRONG: &str = "is no jump of the format";
        let (times, target) = value.split_once(' ').ok_or(WRONG)?;
        let times = times.split('/').next().and_then(|times| times.parse().ok()).ok_or(WRONG)?;
        let target = target.split_ascii_whitespace().next().ok_or(WRONG)?;
        Ok((times, position(target, self.position[0])?))
    }

    /// `(12) name`, `(12)`, or a name.
    fn resolve(&mut self, value: &str, table: fn(&mut Reader) -> &mut Names) -> Result<u32, &'static str> {
        let compressed = value.strip_prefix('(').and_then(|rest| {
            let (number, name) = rest.split_once(')')?;
            Some((number.parse::<u64>().ok()?, name.trim()))
        });
        let Some((number, name)) = compressed else { return Ok(self.intern(value)) };
        if name.is_empty() {
            return table(self).get(&number).copied().ok_or("a name's number was not given a name before");
        }
        let name = self.intern(name);
        table(self).insert(number, name);
        Ok(name)
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let number = self.output.names.len() as u32;
        self.output.names.push(name.to_owned());
        self.known.insert(name.into(), number);
        number
    }

    fn cost(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if self.fields.is_empty() {
            return Err("counts come before the names of the events");
        }
        let text = std::str::from_utf8(line).map_err(|_| "is no line of the format")?;
        let mut words = text.split_ascii_whitespace();
        let mut here = self.position;
        for (at, is_there) in [self.has_address, self.has_line].into_iter().enumerate() {
            if is_there {
                let word = words.next().ok_or("a position is missing")?;
                here[at] = position(word, here[at])?;
            }
        }
        if std::mem::take(&mut self.is_inclusive) {
            return Ok(());
        }
        let address = self.has_address.then_some(here[0]);
        let file = self.file_of_function;
        let key = (self.object, self.function, file, address.map_or(0, |address| address.wrapping_add(1)));
        if let Some((times, target)) = self.jump.take() {
            if address == Some(target) {
                self.repeated(key, times);
            }
            return Ok(());
        }
        self.position = here;
        let costs = &mut self.output.costs;
        let at = *self.by_place.entry(key).or_insert_with(|| {
            let counts = Counts::default();
            costs.push(Cost { object: key.0, function: key.1, file, address, counts });
            costs.len() - 1
        });
        let cost = &mut costs[at];
        for (event, word) in words.enumerate() {
            let count: u64 = word.parse().map_err(|_| "a count is no whole number")?;
            let sum = self.sums.get_mut(event).ok_or("has more counts than there are events")?;
            *sum = sum.saturating_add(count);
            if let Some(field) = self.fields[event] {
                let field = field(&mut cost.counts);
                *field = field.saturating_add(count);
            }
        }
        Ok(())
    }

    /// Takes the repetitions of an instruction from its cost.
    fn repeated(&mut self, place: (u32, u32, u32, u64), times: u64) {
        if let Some(at) = self.by_place.get(&place) {
            let instructions = &mut self.output.costs[*at].counts.instructions;
            let times = times.min(*instructions);
            *instructions -= times;
            self.output.repetitions = self.output.repetitions.saturating_add(times);
        }
    }

    fn end(self) -> Result<Output, CallgrindError> {
        let totals = self.totals.ok_or(CallgrindError::Truncated)?;
        for (at, event) in self.output.events.iter().enumerate() {
            // Counts at the end that are 0 may be left out.
            let (sum, total) = (self.sums[at], totals.get(at).copied().unwrap_or(0));
            if sum != total {
                return Err(CallgrindError::Sum { event: event.clone(), sum, total });
            }
        }
        Ok(self.output)
    }
}

fn numbers(text: &str) -> Result<Vec<u64>, &'static str> {
    text.split_whitespace().map(|word| word.parse().map_err(|_| "a sum is no whole number")).collect()
}

const NO_POSITION: &str = "a position is no number";

/// A number, or one relative to the position before: `+3`, `-2`, `*`.
fn position(word: &str, before: u64) -> Result<u64, &'static str> {
    let number = |text: &str| {
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        }
        .map_err(|_| NO_POSITION)
    };
    const BEYOND: &str = "a position is beyond all positions";
    match word.as_bytes().first() {
        Some(b'*') if word.len() == 1 => Ok(before),
        Some(b'+') => before.checked_add(number(&word[1..])?).ok_or(BEYOND),
        Some(b'-') => before.checked_sub(number(&word[1..])?).ok_or(BEYOND),
        _ => number(word),
    }
}

/// The range of a text without a mark for a level of recursion: `f'2` is `f`.
fn without_level(name: &str) -> Range<usize> {
    match name.rsplit_once('\'') {
        Some((before, level)) if !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()) => {
            0..before.len()
        }
        _ => 0..name.len(),
    }
}

/// What callgrind writes behind the address of a stub of the procedure linkage table (`--skip-plt=no`).
const STUB: &str = " [PLT]";

/// Whether a function is a stub of the procedure linkage table.
pub fn is_stub(function: &str) -> bool {
    function[without_level(function)].strip_suffix(STUB).is_some_and(|name| symbol(name).is_none())
}

/// The symbol that a function's name stands for, without callgrind's mark for a level of recursion and without a version; none
/// where the name is only an address.
pub fn symbol(function: &str) -> Option<&str> {
    let name = &function[without_level(function)];
    let name = name.split('@').next().unwrap_or(name);
    let is_address =
        name.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    (!is_address && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
