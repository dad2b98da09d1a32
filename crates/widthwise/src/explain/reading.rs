//! The logs of one side, read: what it asked for, where, and what of it cannot be seen.

use std::collections::BTreeMap;

use widthwise_anatomy::heap::discrepancy::{Course, SystemMoment, Views};
use widthwise_anatomy::heap::{symbols, History, Log, Profile, Symbols};
use widthwise_measure::heap::{self, Recording};
use widthwise_report::heap::{Side, SystemView};

use super::peer::{self, Foreign};
use super::sources::Source;
use crate::failure::Failure;
use crate::presentation::short;

/// One side, read.
pub struct Read {
    /// The sums.
    pub side: Side,
    /// All of its stacks.
    pub profile: Profile,
    /// File name of the program itself.
    pub program: String,
}

/// Reads the logs of one side, and names their places.
///
/// # Errors
/// A log cannot be read, or is none.
pub fn read(source: &Source, symbols: &mut Symbols) -> Result<Read, Failure> {
    let Source { name, logs, recording } = source;
    let mut side = empty(name, logs.len(), recording);
    let mut files = Vec::new();
    for path in logs {
        let bytes =
            heap::read(path).map_err(|error| Failure::request(format!("{}: {error}", short(path))))?;
        if let ([path], false) = (logs.as_slice(), Log::is_one(&bytes)) {
            let packed =
                std::fs::read(path).map_err(|error| Failure::request(format!("{}: {error}", short(path))))?;
            if let Some(foreign) = peer::read(path, &packed) {
                return Ok(of_peer(side, foreign?));
            }
        }
        files.push((path, bytes));
    }
    let mut parsed = Vec::new();
    for (path, bytes) in &files {
        parsed.push(Log::read(bytes).map_err(|error| Failure::request(format!("{} {error}", short(path))))?);
    }
    let by_process: BTreeMap<u32, &Log> = parsed.iter().map(|log| (log.header.process, log)).collect();
    let mut courses = Vec::new();
    let mut profile = Profile::default();
    let mut program = String::new();
    let mut most = 0;
    for log in &parsed {
        let history = History::of(log, &ancestors(log, &by_process));
        side.peak_bytes += history.peak.bytes;
        side.peak_blocks += history.peak.count;
        side.peak_chunk_bytes +=
            history.peak.main_bytes + history.peak.mapped_bytes + history.peak.arena_bytes;
        side.blocks += history.total.0;
        side.bytes += history.total.1;
        side.left_blocks += history.end.count;
        side.left_bytes += history.end.bytes;
        side.own_mapped_bytes += history.own_maps.iter().map(|(_, bytes)| bytes).sum::<u64>();
        side.large_blocks.0 += history.large.0;
        side.large_blocks.1 += history.large.1;
        side.remarks.extend(remarks(log, &history));
        if program.is_empty() || history.total.0 > most {
            most = history.total.0;
            program = log.header.program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        profile.append(symbols::profile(&history, symbols));
        courses.push((log.header.began_ns, history.course));
    }
    let courses: Vec<Course> =
        courses.iter().map(|(began_ns, moments)| Course { began_ns: *began_ns, moments }).collect();
    side.system = Views::of(&courses, &system(recording), recording.began_ns + recording.wall_ns)
        .map(|views| SystemView::of(&views));
    for (path, reason) in symbols.unread.drain(..) {
        side.remarks.push(format!("{path} could not be read, so its functions have no names: {reason}"));
    }
    let own = |frame: &widthwise_anatomy::heap::Frame| frame.module == program;
    if profile.frames.iter().any(own)
        && !profile.frames.iter().any(|frame| own(frame) && frame.line.is_some())
    {
        side.remarks.push("it was built without -g: functions are known, lines are not".to_owned());
    }
    Ok(Read { side, profile, program })
}

fn empty(name: &str, processes: usize, recording: &Recording) -> Side {
    Side {
        name: name.to_owned(),
        processes,
        peak_bytes: 0,
        peak_blocks: 0,
        peak_chunk_bytes: 0,
        blocks: 0,
        bytes: 0,
        left_blocks: 0,
        left_bytes: 0,
        own_mapped_bytes: 0,
        system: None,
        large_blocks: (0, 0),
        remarks: recording.remarks.clone(),
    }
}

/// What another profiler recorded.
fn of_peer(mut side: Side, foreign: Foreign) -> Read {
    let sum = foreign.profile.sum();
    side.peak_bytes = sum.peak_bytes;
    side.peak_blocks = sum.peak_count;
    side.peak_chunk_bytes = sum.peak_chunk_bytes;
    side.blocks = sum.count;
    side.bytes = sum.bytes;
    side.left_blocks = sum.live_count;
    side.left_bytes = sum.live_bytes;
    side.remarks.push(foreign.remark);
    Read { side, profile: foreign.profile, program: foreign.program }
}

/// By the clock of the logs.
fn system(recording: &Recording) -> Vec<SystemMoment> {
    let moment = |moment: &heap::SystemMoment| SystemMoment {
        at_ns: recording.began_ns + moment.at_ns,
        heap: moment.heap,
        mmapped: moment.mmapped,
    };
    recording.system.iter().map(moment).collect()
}

/// The processes that a process was forked from, the oldest first.
fn ancestors<'l, 'b>(log: &Log<'b>, by_process: &BTreeMap<u32, &'l Log<'b>>) -> Vec<&'l Log<'b>> {
    let mut ancestors: Vec<&Log> = Vec::new();
    let mut parent = log.header.parent;
    while let Some(found) = parent.and_then(|parent| by_process.get(&parent)) {
        // Numbers come round again.
        if ancestors.len() >= by_process.len() {
            break;
        }
        ancestors.push(found);
        parent = found.header.parent;
    }
    ancestors.reverse();
    ancestors
}

/// What cannot be seen in a log.
fn remarks(log: &Log, history: &History) -> Vec<String> {
    let header = &log.header;
    let mut remarks = Vec::new();
    let mut say = |text: String| remarks.push(format!("process {}: {text}", header.process));
    if header.own_malloc {
        say(
            "the program brings its own malloc, in front of which nobody can stand: what it does is not here"
                .into(),
        );
    }
    if header.full {
        say("the disk was full, and what came after is not here".into());
    }
    if header.missed > 0 {
        say(format!(
            "{} events came in a signal's handler while another was being recorded, and are not here",
            header.missed
        ));
    }
    if history.strangers > 0 {
        say(format!("{} blocks were released that had come from elsewhere", history.strangers));
    }
    for fault in &history.faults {
        say(fault.clone());
    }
    remarks
}
