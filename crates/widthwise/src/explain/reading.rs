//! The logs of one side, read: what it asked for, where, and what of it cannot be seen.

mod recorded;
mod remarks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use widthwise_anatomy::heap::broken;
use widthwise_anatomy::heap::completeness::shortcomings;
use widthwise_anatomy::heap::rss_against_heap::{Course, RssAgainstHeap, SystemMoment};
use widthwise_anatomy::heap::{symbols, Composition, Header, LogFile, Profile, StackValues, Stacks, Symbols};
use widthwise_measure::passes::heap::{self, Recording};
use widthwise_report::explanation::memory::Allocated;
use widthwise_report::heap::{typical, ProcessSums, RecordingSums, RssSummary, Side};

use self::recorded::Recorded;
use super::import::{self, Imported};
use super::log_file;
use super::side_logs::{Recorded as RecordedLogs, Source};
use crate::failure::Failure;
use crate::output::short;
use crate::progress::TaskProgress;

/// One side, read.
pub struct Read {
    /// The sums: those of the recording that stands for the side.
    pub side: Side,
    /// All stacks of that recording.
    pub profile: Profile,
    /// File name of the program itself.
    pub program: String,
    /// The stacks of the other recordings.
    pub others: Vec<Profile>,
    /// What its processes have allocated when that is most; none of an import.
    pub allocated: Option<Allocated>,
    /// The largest reading of the system during that recording, if it was read.
    pub largest: Option<heap::LargestReading>,
    /// What was allocated at the peak of each recording.
    pub all_allocated: Vec<Allocated>,
    /// The largest reading of each.
    pub all_largest: Vec<heap::LargestReading>,
    /// The stacks of the recording that stands for the side, with code addresses; none of another profiler's file.
    pub addresses: Option<Addresses>,
}

/// Stacks without names.
pub struct Addresses {
    /// The calls.
    pub stacks: Stacks,
    /// What each stack allocated.
    pub values: StackValues,
    /// Bytes of the allocator's own before each block; none where they are not known.
    pub block_header: Option<u64>,
}

/// One recording, read.
struct One {
    side: Side,
    profile: Profile,
    program: String,
    /// File name of the first process's program.
    root: String,
    allocated: Option<Allocated>,
    largest: Option<heap::LargestReading>,
    addresses: Option<Addresses>,
}

/// Reads all recordings of one side, and names their code addresses. The recording with the middle peak stands for the side.
///
/// # Errors
/// A log cannot be read, or is none; or the recordings are of several programs.
pub fn read(source: &Source, symbols: &mut Symbols) -> Result<Read, Failure> {
    let mut all = Vec::new();
    for recorded in source.recordings.iter().filter(|recorded| !recorded.logs.is_empty()) {
        all.push(read_one(&source.name, recorded, symbols)?);
    }
    if let Some(other) = all.iter().find(|one| one.root != all[0].root) {
        return Err(Failure::request(format!(
            "{}: its recordings are of {} and of {}, and those of one side are of one program",
            source.name, all[0].root, other.root
        )));
    }
    let recordings = source.recordings.iter().filter(|recorded| !recorded.logs.is_empty());
    let sums: Vec<RecordingSums> = all
        .iter()
        .zip(recordings)
        .map(|(one, recorded)| RecordingSums { samples: recorded.recording.samples, ..one.side.sums() })
        .collect();
    let huge_bytes = all.iter().map(|one| one.side.huge_bytes).max().unwrap_or(0);
    let remarks: Vec<String> = all.iter().flat_map(|one| one.side.remarks.iter().cloned()).collect();
    let Some(typical) = typical(&sums) else {
        return Err(Failure::request(format!("{} has no recording", source.name)));
    };
    let incomplete = incomplete(&sums);
    let all_allocated: Vec<Allocated> = all.iter().filter_map(|one| one.allocated).collect();
    let all_largest = all.iter().filter_map(|one| one.largest.clone()).collect();
    let One { mut side, profile, program, allocated, largest, addresses, .. } = all.swap_remove(typical);
    side.incomplete = incomplete;
    side.thp = source.thp;
    side.huge_bytes = huge_bytes;
    side.may_copy |= all_allocated.iter().any(|one| one.may_copy);
    // The remarks name what is wrong with any recording; numbers of processes are other ones each time.
    let of_others = remarks.into_iter().filter(|remark| !remark.starts_with("process "));
    for remark in of_others {
        if !side.remarks.contains(&remark) {
            side.remarks.push(remark);
        }
    }
    side.system = RssSummary::mean(&sums);
    side.recordings = sums;
    let others = all.into_iter().map(|one| one.profile).collect();
    Ok(Read { side, profile, program, others, allocated, largest, all_allocated, all_largest, addresses })
}

/// Why recordings of a side are incomplete: which one, where there are several.
fn incomplete(recordings: &[RecordingSums]) -> Vec<String> {
    let all = recordings.len();
    let of_one = |(index, one): (usize, &RecordingSums)| -> Vec<String> {
        let number = index + 1;
        let reasons = one.incomplete.iter();
        match all {
            1 => reasons.cloned().collect(),
            _ => reasons.map(|reason| format!("recording {number} of {all}: {reason}")).collect(),
        }
    };
    recordings.iter().enumerate().flat_map(of_one).collect()
}

/// Reads the logs of one recording.
fn read_one(name: &str, recorded: &RecordedLogs, symbols: &mut Symbols) -> Result<One, Failure> {
    let RecordedLogs { logs, recording } = recorded;
    let mut side = empty(name, recording);
    let mut stacks = Stacks::default();
    let mut processes = Vec::new();
    for path in logs {
        let name = short(path);
        let mut unpacking = TaskProgress::new(format!("unpacking {name}"));
        let opened = log_file::open(path, &mut |done, all| unpacking.at(done, all))?;
        drop(unpacking);
        let bytes = match opened {
            Some(bytes) => bytes,
            None => match (logs.as_slice(), import::read(path)) {
                ([_], Some(imported)) => return Ok(of_import(side, imported?)),
                _ => return Err(import::unrecognised(path)),
            },
        };
        let faults = decode(&name, &bytes, &mut stacks, &mut processes)?;
        side.incomplete.extend(faults.first().map(|fault| format!("{name}: {fault}")));
        side.remarks.extend(faults);
    }
    if let ([path, ..], true) = (logs.as_slice(), processes.is_empty()) {
        let fault = side.incomplete.first().cloned().unwrap_or_else(|| {
            format!(
                "{}: nothing follows the header, which ends at byte {}",
                short(path),
                LogFile::HEADER_BYTES
            )
        });
        return Err(Failure::request(format!("{fault}. No process is described: record the program again")));
    }
    for process in &processes {
        side.incomplete.extend(shortcomings(&process.header, &process.history));
    }
    side.by_process = by_process(&processes);
    side.processes = keep_one_peak_each(&mut processes);
    let mut values = StackValues::default();
    for process in &mut processes {
        add(&mut side, process);
        values.add(&mut process.history);
    }
    let broken = broken::of(&values, &stacks);
    side.broken_stacks = broken.blocks;
    side.remarks.extend(remarks::of(&processes));
    side.remarks.extend(remarks::ends_early(&broken, side.blocks));
    side.may_copy = may_copy(&processes, recording);
    side.system = rss_summary(&processes, recording).filter(|_| !side.may_copy);
    let program = main_program(&processes);
    let profile = symbols::profile(&stacks, values.clone(), symbols);
    side.remarks.extend(remarks::unread(&mut symbols.unread));
    let main = processes.iter().map(|process| &process.header).find(|one| file_name(&one.program) == program);
    let file = Path::new(main.map_or("", |main| main.program.as_str()));
    let block_header = main.and_then(|main| block_header(main, &processes));
    side.remarks.extend(remarks::without_names(&profile, &program, file));
    side.remarks.extend(remarks::is_newer(file, logs));
    let root = processes.first().map_or(String::new(), |first| file_name(&first.header.program));
    let allocated = allocated(&processes, recording, side.peak_bytes);
    let largest = recording.largest.clone();
    let addresses = Some(Addresses { stacks, values, block_header });
    Ok(One { side, profile, program, root, allocated, largest, addresses })
}

/// Bytes of the allocator's own before each block; none where they are not known, or not all processes have such headers.
fn block_header(main: &Header, processes: &[Recorded]) -> Option<u64> {
    let has_headers = |header: &Header| header.block_header().map(|bytes| bytes > 0);
    let is_alike = |process: &Recorded| has_headers(&process.header) == has_headers(main);
    main.block_header().filter(|_| processes.iter().all(is_alike))
}

/// Decodes one log; gives back what is wrong with the file.
fn decode(
    name: &str,
    bytes: &[u8],
    stacks: &mut Stacks,
    processes: &mut Vec<Recorded>,
) -> Result<Vec<String>, Failure> {
    let log = LogFile::read(bytes).map_err(|error| Failure::request(format!("{name} {error}")))?;
    let mut progress = TaskProgress::new(format!("reading {name}"));
    let (mut done, all) = (0, log.record_bytes);
    let histories = log.histories(stacks, &mut |bytes| {
        done += bytes;
        progress.at(done, all);
        ControlFlow::Continue(())
    });
    drop(progress);
    let ControlFlow::Continue(histories) = histories else { return Err(Failure::interrupted()) };
    let numbers: Vec<u32> = log.processes.iter().map(|process| process.header.process).collect();
    let read = log.processes.into_iter().zip(histories).map(|(process, history)| Recorded {
        forked_from: process.header.parent.map(|parent| numbers[parent]),
        header: process.header,
        history,
    });
    processes.extend(read);
    Ok(log.faults.lines())
}

fn empty(name: &str, recording: &Recording) -> Side {
    Side {
        name: name.to_owned(),
        incomplete: recording.failure.iter().cloned().collect(),
        huge_bytes: recording.system.iter().map(|moment| moment.huge).max().unwrap_or(0),
        remarks: recording.remarks.clone(),
        ..Side::default()
    }
}

/// A process has one peak, whatever programs it executed one after the other: that of the program with the largest. Returns the number
/// of processes.
fn keep_one_peak_each(processes: &mut [Recorded]) -> usize {
    let mut largest: BTreeMap<u32, usize> = BTreeMap::new();
    for (place, process) in processes.iter().enumerate() {
        let known = largest.entry(process.header.process).or_insert(place);
        if process.history.peak.bytes > processes[*known].history.peak.bytes {
            *known = place;
        }
    }
    for (place, process) in processes.iter_mut().enumerate() {
        if largest[&process.header.process] != place {
            process.history.forget_peak();
        }
    }
    largest.len()
}

/// Adds a process to the sums. A hostile log has any number.
fn add(side: &mut Side, process: &Recorded) {
    let Recorded { header, history, .. } = process;
    let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
    add(&mut side.peak_bytes, history.peak.bytes);
    side.largest_peak_bytes = side.largest_peak_bytes.max(history.peak.bytes);
    add(&mut side.peak_blocks, history.peak.count);
    add(&mut side.peak_chunk_bytes, history.peak.chunk_bytes());
    add(&mut side.blocks, history.total.0);
    add(&mut side.bytes, history.total.1);
    add(&mut side.left_blocks, history.end.count);
    add(&mut side.left_bytes, history.end.bytes);
    add(&mut side.own_mapped_bytes, history.own_mapped_bytes);
    add(&mut side.own_mapped_peak_bytes, history.own_mapped_peak_bytes);
    add(&mut side.large_blocks.0, history.large.0);
    add(&mut side.large_blocks.1, history.large.1);
    add(&mut side.lost_events, header.lost.total());
}

fn by_process(processes: &[Recorded]) -> Vec<ProcessSums> {
    let numbers: BTreeSet<u32> = processes.iter().map(|process| process.header.process).collect();
    let sums = |process: &Recorded| {
        let Recorded { header, forked_from, history } = process;
        // What started a program that was executed may have left no log.
        let started_by = Some(header.parent_number).filter(|number| numbers.contains(number));
        ProcessSums {
            process: header.process,
            parent: forked_from.or(started_by),
            program: header.program.clone(),
            blocks: history.total.0,
            bytes: history.total.1,
            peak_bytes: history.peak.bytes,
            peak_blocks: history.peak.count,
            left_blocks: history.end.count,
            left_bytes: history.end.bytes,
            lost_events: header.lost.total(),
            ended: header.ended,
        }
    };
    processes.iter().map(sums).collect()
}

/// The file name of the program that asked for most blocks.
fn main_program(processes: &[Recorded]) -> String {
    let most = processes.iter().rev().max_by_key(|process| process.history.total.0);
    most.map_or(String::new(), |process| file_name(&process.header.program))
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What another profiler recorded.
fn of_import(mut side: Side, imported: Imported) -> One {
    let sum = imported.profile.sum();
    side.processes = 1;
    side.peak_bytes = sum.peak_bytes;
    side.largest_peak_bytes = sum.peak_bytes;
    side.peak_blocks = sum.peak_count;
    side.peak_chunk_bytes = sum.peak_chunk_bytes;
    side.blocks = sum.count;
    side.bytes = sum.bytes;
    side.left_blocks = sum.live_count;
    side.left_bytes = sum.live_bytes;
    side.remarks.push(imported.remark);
    One {
        side,
        profile: imported.profile,
        root: imported.program.clone(),
        program: imported.program,
        allocated: None,
        largest: None,
        addresses: None,
    }
}

/// When a process was gone, by the clock of the logs: when it was another program, or when the sampler found it gone. One that the
/// sampler never saw lived for a moment, so that its last event tells.
fn ended_ns(process: &Recorded, processes: &[Recorded], recording: &Recording) -> Option<u64> {
    let began = process.header.began_ns;
    let later = processes.iter().map(|other| &other.header);
    let executed = later
        .filter(|other| other.process == process.header.process && other.began_ns > began)
        .map(|other| other.began_ns)
        .min();
    let mut seen = recording.ends.iter().filter(|(number, _)| *number == process.header.process);
    let found_gone = seen.next_back().map(|(_, ended_ns)| recording.began_ns.saturating_add(*ended_ns));
    let last_event = began.saturating_add(process.history.end.time_ns);
    executed.or(found_gone).or((!recording.ends.is_empty()).then_some(last_event))
}

/// The heaps of all processes over time, by the clock of the logs.
fn courses<'p>(processes: &'p [Recorded], recording: &Recording) -> Vec<Course<'p>> {
    let course = |process: &'p Recorded| Course {
        began_ns: process.header.began_ns,
        ended_ns: ended_ns(process, processes, recording),
        moments: &process.history.course,
    };
    processes.iter().map(course).collect()
}

/// What all processes have allocated when that is most.
fn allocated(processes: &[Recorded], recording: &Recording, peak_heap: u64) -> Option<Allocated> {
    let composition = Composition::at_peak(&courses(processes, recording))?;
    // The process with the largest heap decides.
    let largest = processes.iter().max_by_key(|process| process.history.peak.bytes)?;
    Some(Allocated {
        composition,
        peak_heap,
        word: u64::from(largest.header.word),
        is_glibc: processes.iter().all(|process| process.header.glibc),
        may_copy: may_copy(processes, recording),
    })
}

/// Whether a process may have copied pages of a heap that it shared after a fork: it was forked from another one, or left no log.
fn may_copy(processes: &[Recorded], recording: &Recording) -> bool {
    let logged: BTreeSet<u32> = processes.iter().map(|process| process.header.process).collect();
    processes.iter().any(|process| process.forked_from.is_some())
        || recording.ends.iter().any(|(number, _)| !logged.contains(number))
}

/// Both views of the heap, by the clock of the logs.
fn rss_summary(processes: &[Recorded], recording: &Recording) -> Option<RssSummary> {
    let courses = courses(processes, recording);
    let moment = |moment: &heap::SystemMoment| SystemMoment {
        at_ns: recording.began_ns + moment.at_ns,
        heap: moment.heap,
        mmapped: moment.mmapped,
        valid_ns: moment.valid_ns,
    };
    let system: Vec<SystemMoment> = recording.system.iter().map(moment).collect();
    let compared = RssAgainstHeap::of(&courses, &system, recording.began_ns + recording.wall_ns)?;
    let samples = recording.samples.unwrap_or(system.len() as u64);
    let held = recording.held_ns.unwrap_or(0) as f64 / recording.wall_ns.max(1) as f64;
    Some(RssSummary::of(&compared, samples, held.min(1.0)))
}
