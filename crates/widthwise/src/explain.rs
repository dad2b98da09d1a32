//! `explain`: why two variants differ.

mod peer;
mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use widthwise_anatomy::heap::discrepancy::{Course, SystemMoment, Views};
use widthwise_anatomy::heap::profile::Column;
use widthwise_anatomy::heap::site::{self, Pair};
use widthwise_anatomy::heap::{folded, pprof, symbols, History, Log, Profile, Symbols};
use widthwise_machine::{abi, compiler};
use widthwise_measure::heap::recorder::Recorder;
use widthwise_measure::heap::{self, Recording};
use widthwise_report::heap::{Explanation, Side, SystemView};
use widthwise_report::html::flame::{self, Flame};
use widthwise_report::terminal::Palette;

use self::peer::Foreign;
use self::sources::Source;
use crate::failure::Failure;
use crate::output;
use crate::presentation::{self, short};

/// Say why two variants of a campaign differ
///
///   widthwise compare tree.cpp --heap            # records
///   widthwise explain --heap                     # the baseline and the first other variant
///   widthwise explain --heap x86-64 i386         # these two
///   widthwise explain --heap x32                 # one alone
///   widthwise explain --heap before.log after.log
///   widthwise explain massif.out.4711            # massif's, heaptrack's and pprof's files, too
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Explain {
    /// Variants of the campaign, or files that the recorder wrote: one alone, or two to compare
    #[arg(value_name = "VARIANT", num_args = 0..=2)]
    sides: Vec<String>,
    /// The campaign's folder
    #[arg(long, value_name = "CAMPAIGN", default_value = ".widthwise/latest")]
    campaign: PathBuf,
    /// By allocation site: which lines of the program ask for the memory
    #[arg(long)]
    heap: bool,
    /// So many sites
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// A function that only hands requests on, such as xmalloc: its callers are the sites (`luaM_*`: all that begin so)
    #[arg(long, value_name = "FUNCTION")]
    through: Vec<String>,
    /// Everything, as JSON
    #[arg(long)]
    json: bool,
    /// A flame graph of the bytes at the peak, or of the difference: one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Folded stacks of one variant's bytes at the peak (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// A pprof profile of one variant
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Print the words that link the heap recorder into a static program of that ABI
    #[arg(long, value_name = "ABI")]
    link_options: Option<String>,
    /// Print what goes into LD_PRELOAD to record any program by hand (WIDTHWISE_HEAP_LOG=/folder/name says where)
    #[arg(long)]
    preload: bool,
}

/// One side, read.
struct Read {
    side: Side,
    profile: Profile,
    /// File name of the program itself.
    program: String,
}

impl Explain {
    /// Reads the logs, names the sites, compares.
    pub fn run(&self) -> Result<(), Failure> {
        if self.preload || self.link_options.is_some() {
            return self.recorder();
        }
        let (program, sources) = sources::find(&self.sides, &self.campaign)?;
        let mut symbols = Symbols::default();
        let mut read = Vec::new();
        for source in &sources {
            read.push(read_side(source, &mut symbols)?);
        }
        let [a, rest @ ..] = read.as_slice() else {
            return Err(Failure::request("nothing to explain"));
        };
        let sites = |read: &Read| site::sites(&read.profile, &read.program, &self.through);
        let pairs: Vec<Pair> = match rest.first() {
            Some(b) => site::pairs(&sites(a), &sites(b)),
            None => site::pairs(&sites(a), &[]),
        };
        let explanation = Explanation {
            program: &program,
            a: &a.side,
            b: rest.first().map(|b| &b.side),
            pairs: &pairs,
            top: self.top,
        };
        if self.export(&program, a, rest.first())? {
            return Ok(());
        }
        if self.json {
            anstream::println!("{}", explanation.json().map_err(Failure::machine)?);
        } else {
            anstream::print!("{}", explanation.terminal(presentation::width(), &Palette::coloured()));
        }
        Ok(())
    }

    /// Writes the files that were asked for; whether there were any.
    fn export(&self, program: &str, a: &Read, b: Option<&Read>) -> Result<bool, Failure> {
        let alone = |flag: &str| {
            match b {
            Some(_) => Err(Failure::request(format!(
                "{flag} writes one variant: widthwise explain {} {flag} FILE; viewers compare two files themselves",
                shell_words::quote(&a.side.name)
            ))),
            None => Ok(()),
        }
        };
        if let Some(path) = &self.html {
            let side = |read| {
                let Read { side, profile, program }: &Read = read;
                flame::Side { name: &side.name, profile, program }
            };
            let title = match b {
                Some(b) => format!("{program}: heap of {} and {}", a.side.name, b.side.name),
                None => format!("{program}: heap of {}", a.side.name),
            };
            let flame = Flame {
                title: &title,
                column: Column::PeakBytes,
                first: side(a),
                second: b.map(side),
                through: &self.through,
            };
            output::put(path, flame::page(&flame).as_bytes())?;
        }
        if let Some(path) = &self.folded {
            alone("--folded")?;
            let text = folded::write(&a.profile, Column::PeakBytes, folded::Places::Shown);
            output::put(path, text.as_bytes())?;
        }
        if let Some(path) = &self.pprof {
            alone("--pprof")?;
            output::put(path, &pprof::write(&a.profile))?;
        }
        Ok(self.html.is_some() || self.folded.is_some() || self.pprof.is_some())
    }

    fn recorder(&self) -> Result<(), Failure> {
        let compilers = compiler::discover();
        let compiler = compiler::default(&compilers).ok_or_else(|| {
            Failure::machine("the heap recorder is built by a C compiler, and there is none; apt-get install gcc libc6-dev")
        })?;
        let recorder = Recorder::place(compiler).map_err(Failure::machine)?;
        let Some(name) = &self.link_options else {
            anstream::println!("{}", recorder.preload());
            return Ok(());
        };
        let abi = abi::find(name).ok_or_else(|| {
            let names: Vec<&str> = abi::ABIS.iter().map(|abi| abi.name).collect();
            Failure::request(format!(
                "--link-options {name}: there is no such ABI; there are {}",
                names.join(", ")
            ))
        })?;
        match recorder.link_options(abi) {
            Some(words) => anstream::println!("{words}"),
            None => {
                let reason = recorder.missing.iter().find(|(missing, _)| *missing == abi.name);
                let reason = reason.map_or("", |(_, reason)| reason.as_str());
                return Err(Failure::machine(format!(
                    "the recorder could not be built for {name}: {reason}"
                )));
            }
        }
        Ok(())
    }
}

fn read_side(source: &Source, symbols: &mut Symbols) -> Result<Read, Failure> {
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
