//! `explain`: why two variants differ.

mod import;
mod log_file;
pub mod reading;
pub mod sources;
mod trees;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use widthwise_anatomy::heap::profile::Column;
use widthwise_anatomy::heap::site::{self, Pair, Site};
use widthwise_anatomy::heap::wrappers::{self, Wrapper};
use widthwise_anatomy::heap::Symbols;
use widthwise_anatomy::import::{folded, pprof};
use widthwise_archive::Archive;
use widthwise_machine::{abi, compiler};
use widthwise_measure::heap::recorder::Recorder;
use widthwise_report::heap::{short_name, Explanation, SitePeaks};
use widthwise_report::html::flame::{self, Flame};
use widthwise_report::memory::difference;
use widthwise_report::peaks::MaxRss;
use widthwise_report::text::Palette;

use self::reading::Read;
use self::sources::Source;
use crate::failure::Failure;
use crate::interrupt;
use crate::load_report::LoadedReport;
use crate::output;

/// Ratios of logs within this of 1 are equal, as those of a campaign are by default.
const EQUAL_WITHIN: f64 = 0.01;

const EXAMPLES: &str = "\
Examples:
  widthwise explain                          # after `compare --heap`: memory, then the heap
  widthwise explain --heap                   # the baseline and the first other variant
  widthwise explain --heap x86-64 i386       # these two
  widthwise explain --heap x32 --json=x32.json
  widthwise explain --heap before.log after.log
  widthwise explain --heap before after      # two folders of recordings
  widthwise explain massif.out.4711          # also files of massif, heaptrack and pprof
  widthwise explain --skip-frames xmalloc --skip-frames 'luaM_*'";

/// Explain why two variants of a campaign differ
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// One or two variants of the campaign, files of the heap recorder, or folders of them. The logs of one
    /// process tree are one recording; a folder may have several recordings of one program
    #[arg(value_name = "VARIANT", num_args = 0.., value_parser = crate::arguments::text())]
    sides: Vec<String>,
    /// The campaign's folder
    #[arg(long, value_name = "CAMPAIGN", default_value = ".widthwise/latest")]
    campaign: PathBuf,
    /// Show allocation sites alone: the lines of the program that allocate memory
    #[arg(long)]
    heap: bool,
    /// Number of sites
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// A function that only passes requests on, such as xmalloc: its callers are the sites (`luaM_*`: all functions with this
    /// prefix); once for each
    #[arg(long, value_name = "FUNCTION")]
    skip_frames: Vec<String>,
    /// Show wrappers as sites: functions that pass nearly all requests on. By default their callers are the sites, if the
    /// function's name is that of a wrapper
    #[arg(long)]
    keep_wrappers: bool,
    /// All results as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// A flame graph of the bytes at the peak, or of the difference: one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Folded stacks of one variant's bytes at the peak (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// A pprof profile of one variant
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Print the linker options that link the heap recorder into a static program of this ABI
    #[arg(long, value_name = "ABI")]
    link_options: Option<String>,
    /// Print the value of LD_PRELOAD that records any program (WIDTHWISE_HEAP_LOG=/folder/name sets the log)
    #[arg(long)]
    preload: bool,
}

impl Explain {
    /// Reads the logs, names the sites, compares.
    pub fn run(&self) -> Result<(), Failure> {
        if self.preload || self.link_options.is_some() {
            return self.recorder();
        }
        self.one_for_standard_output()?;
        interrupt::end_by_signal().map_err(Failure::machine)?;
        let found = sources::find(&self.sides, &self.campaign);
        let known = if self.is_plain() {
            let system = self.system(found.as_ref().ok().map(|(_, sources)| sources.as_slice()));
            // What is wrong with the names comes first.
            if found.is_ok() {
                system?
            } else {
                system.unwrap_or_default()
            }
        } else {
            None
        };
        let (program, sources) = match (found, known) {
            (Err(failure), Some(known)) => {
                anstream::print!("{known}\n  {}\n", failure.message());
                return Ok(());
            }
            (found, known) => {
                let found = found?;
                if let Some(known) = known {
                    anstream::println!("{known}");
                }
                found
            }
        };
        let mut symbols = Symbols::default();
        let mut read = Vec::new();
        for source in &sources {
            read.push(reading::read(source, &mut symbols)?);
        }
        let [a, rest @ ..] = read.as_slice() else {
            return Err(Failure::request("nothing to explain"));
        };
        let b = rest.first();
        self.check_skip_frames(&read)?;
        // The first recording is the one that stands for the side.
        let wrappers = self.wrappers(&read);
        let thin = wrappers.iter().filter(|wrapper| wrapper.is_thin);
        let skip_frames: Vec<String> =
            self.skip_frames.iter().cloned().chain(thin.map(|wrapper| wrapper.function.clone())).collect();
        let sites = |read: &Read| -> Vec<Vec<Site>> {
            let all = std::iter::once(&read.profile).chain(&read.others);
            all.map(|profile| site::sites(profile, &read.program, &skip_frames)).collect()
        };
        let (of_a, of_b) = (sites(a), b.map(sites).unwrap_or_default());
        let pairs: Vec<Pair> = site::pairs(&of_a[0], of_b.first().map_or(&[][..], Vec::as_slice));
        let site_peaks: Vec<SitePeaks> = site::peaks(&pairs, &of_a)
            .into_iter()
            .zip(site::peaks(&pairs, &of_b))
            .map(|(a, b)| SitePeaks { a, b })
            .collect();
        let (max_rss, equal_within) = self.measured(&sources)?;
        let explanation = Explanation {
            program: &program,
            a: &a.side,
            b: b.map(|b| &b.side),
            pairs: &pairs,
            site_peaks: &site_peaks,
            max_rss,
            wrappers: &wrappers,
            top: self.top,
            equal_within,
        };
        let has_exported =
            self.export(&program, (a, rest.first()), &skip_frames, explanation.caution().as_deref())?;
        if let Some(path) = &self.json {
            output::put(path, (explanation.json().map_err(Failure::machine)? + "\n").as_bytes())?;
        } else if !has_exported {
            anstream::print!("{}", explanation.terminal(output::width(), &Palette::coloured()));
        }
        Ok(())
    }

    /// Refuses two documents on standard output, which would be neither.
    fn one_for_standard_output(&self) -> Result<(), Failure> {
        let files = [("--html", &self.html), ("--folded", &self.folded), ("--pprof", &self.pprof)];
        let is_output = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
        let mut flags: Vec<String> =
            files.iter().filter(|(_, path)| is_output(path)).map(|(flag, _)| format!("{flag} -")).collect();
        flags.extend(output::is_stdout(&self.json).then(|| "--json".to_owned()));
        match flags.as_slice() {
            [first, second, ..] => Err(Failure::request(format!(
                "{first} and {second} both write to standard output: give a file instead of -"
            ))),
            _ => Ok(()),
        }
    }

    /// The functions that hand on nearly all requests, of either side; none where the user has named some.
    fn wrappers(&self, read: &[Read]) -> Vec<Wrapper> {
        let mut all: Vec<Wrapper> = Vec::new();
        if self.keep_wrappers || !self.skip_frames.is_empty() {
            return all;
        }
        for wrapper in read.iter().flat_map(|read| wrappers::find(&read.profile, &read.program)) {
            if all.iter().all(|known| known.function != wrapper.function) {
                all.push(wrapper);
            }
        }
        all
    }

    /// Refuses `--skip-frames` with a function that no stack of any recording goes through.
    fn check_skip_frames(&self, read: &[Read]) -> Result<(), Failure> {
        let profiles = || read.iter().flat_map(|read| std::iter::once(&read.profile).chain(&read.others));
        for name in &self.skip_frames {
            if profiles().any(|profile| site::goes_through(profile, name)) {
                continue;
            }
            let functions: BTreeSet<String> = profiles()
                .flat_map(|profile| &profile.frames)
                .filter(|frame| !frame.function.starts_with("0x"))
                .map(|frame| short_name(&frame.function))
                .collect();
            return Err(Failure::request(format!(
                "--skip-frames {name}: no stack goes through a function of that name{}",
                close_names(name, &functions)
            )));
        }
        Ok(())
    }

    /// What the campaign's timed rounds say of these sides, and its margin of equality; of logs nothing is known.
    fn measured(&self, sources: &[Source]) -> Result<(Option<MaxRss>, f64), Failure> {
        if sources::are_paths(&self.sides, &self.campaign) {
            return Ok((None, EQUAL_WITHIN));
        }
        let archive = Archive::read(&self.campaign).map_err(Failure::request)?;
        let presentation = LoadedReport::new(&archive)?;
        let campaign = presentation.campaign();
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let max_rss = names.first().and_then(|a| campaign.max_rss(a, names.get(1).copied()));
        Ok((max_rss, campaign.experiment.judging.equal_within))
    }

    /// Neither the heap alone nor a file is asked for.
    fn is_plain(&self) -> bool {
        let files = self.html.is_some() || self.folded.is_some() || self.pprof.is_some();
        let logs = sources::are_paths(&self.sides, &self.campaign);
        !(self.heap || self.json.is_some() || files || logs)
    }

    /// What the campaign knows without a recording of the heap: of those that were found, or else of those that were meant.
    fn system(&self, found: Option<&[Source]>) -> Result<Option<String>, Failure> {
        let archive = Archive::read(&self.campaign).map_err(Failure::request)?;
        let presentation = LoadedReport::new(&archive)?;
        let campaign = presentation.campaign();
        let experiment = campaign.experiment;
        let names: Vec<&str> = match found {
            Some(sources) => sources.iter().map(|source| source.name.as_str()).collect(),
            None if !self.sides.is_empty() => self.sides.iter().map(String::as_str).collect(),
            None => {
                let others = experiment.variants.iter().map(|variant| variant.name.as_str());
                let others =
                    others.filter(|name| *name != experiment.baseline && campaign.unable(name).is_none());
                std::iter::once(experiment.baseline.as_str()).chain(others.take(1)).collect()
            }
        };
        let Some((a, rest)) = names.split_first() else { return Ok(None) };
        let (width, palette) = (output::width(), Palette::coloured());
        Ok(difference::terminal(&campaign, a, rest.first().copied(), width, &palette))
    }

    /// Writes the files that were asked for; whether there were any.
    fn export(
        &self,
        program: &str,
        (a, b): (&Read, Option<&Read>),
        skip_frames: &[String],
        caution: Option<&str>,
    ) -> Result<bool, Failure> {
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
                let Read { side, profile, program, .. }: &Read = read;
                flame::Side { name: &side.name, profile, program }
            };
            let cautious = caution.map_or(String::new(), |caution| format!(" ({caution})"));
            let title = match b {
                Some(b) => format!("{program}: heap of {} and {}{cautious}", a.side.name, b.side.name),
                None => format!("{program}: heap of {}{cautious}", a.side.name),
            };
            let flame = Flame {
                title: &title,
                column: Column::PeakBytes,
                first: side(a),
                second: b.map(side),
                through: skip_frames,
            };
            output::put(path, flame::page(&flame).as_bytes())?;
        }
        if let (Some(caution), true) = (caution, self.folded.is_some() || self.pprof.is_some()) {
            anstream::eprintln!("warning: {caution}");
        }
        if let Some(path) = &self.folded {
            alone("--folded")?;
            let text = folded::write(&a.profile, Column::PeakBytes, folded::SourceLines::Shown);
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

/// The functions whose names are most like one, as the end of a sentence.
fn close_names(name: &str, functions: &BTreeSet<String>) -> String {
    /// So many are named.
    const MOST: usize = 5;
    let wanted = name.trim_end_matches('*').to_lowercase();
    let distance = |function: &String| {
        let last = function.rsplit("::").next().unwrap_or(function).to_lowercase();
        let away = strsim::damerau_levenshtein(&wanted, &last);
        let is_part = !wanted.is_empty() && last.contains(&wanted);
        (is_part || away <= wanted.chars().count().div_ceil(2)).then_some((!is_part, away))
    };
    let mut close: Vec<_> = functions.iter().filter_map(|name| Some((distance(name)?, name))).collect();
    close.sort();
    let names: Vec<&str> = close.into_iter().take(MOST).map(|(_, name)| name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; close to it are {}", names.join(", ")),
    }
}
