//! `explain`: why two variants differ.

mod close_names;
pub mod excerpts;
mod export;
mod function;
mod heaps;
mod import;
mod layout;
mod log_file;
mod mapped;
mod memory;
mod own_libraries;
mod page;
mod program;
mod programs;
pub mod reading;
mod recorder;
pub mod side_logs;
mod size;
mod time;
mod trees;
mod types;
pub mod variants;

use std::path::PathBuf;

use clap::Args;
use widthwise_anatomy::heap::Symbols;
use widthwise_anatomy::layout::Weights;
use widthwise_archive::Archive;
use widthwise_report::memory::difference;
use widthwise_report::peaks::MaxRss;
use widthwise_report::text::Palette;
use widthwise_report::Comparison;

use self::export::{Export, Sites};
use self::heaps::{Frames, Heaps};
use self::program::Program;
use self::programs::Programs;
use self::side_logs::{Source, Wanted};
use crate::failure::Failure;
use crate::formats::Formats;
use crate::interrupt;
use crate::load_report::LoadedReport;
use crate::output;

/// Ratios of logs within this of 1 are equal, as those of a campaign are by default.
const EQUAL_WITHIN: f64 = 0.01;

const EXAMPLES: &str = "\
Examples:
  widthwise explain                          # the baseline and the first other variant
  widthwise explain x86-64 i386              # these two: memory by cause, heap by type and site
  widthwise explain x86-64 i386 --html=why.html
  widthwise explain ./a64 ./a32              # two programs: their size, code and layouts
  widthwise explain --heap                   # the heap alone
  widthwise explain --heap x86-64 i386       # these two
  widthwise explain --heap x32 --json=x32.json
  widthwise explain --time x86-64 x32        # after `compare --functions`: counts by function
  widthwise explain --heap before.log after.log
  widthwise explain --heap before after      # two folders of recordings
  widthwise explain massif.out.4711          # also files of massif, heaptrack and pprof
  widthwise explain --skip-frames xmalloc --skip-frames 'luaM_*'";

/// Explain why two variants differ: memory by cause, size, code, layouts, counts by function
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// One or two variants of the campaign, two programs, files of the heap recorder, or folders of them. The logs of one
    /// process tree are one recording; a folder may have several recordings of one program
    #[arg(value_name = "VARIANT", num_args = 0.., value_parser = crate::arguments::text())]
    sides: Vec<String>,
    /// The campaign's folder
    #[arg(long, value_name = "CAMPAIGN", default_value = ".widthwise/latest")]
    campaign: PathBuf,
    /// Show allocation sites alone: the lines of the program that allocate memory
    #[arg(long)]
    heap: bool,
    /// Show the size, the code and the layouts of two variants' programs alone
    #[arg(long, conflicts_with = "heap")]
    code: bool,
    /// Show the functions of two variants alone: emulated instructions, cache and branch misses, page faults
    #[arg(long, conflicts_with_all = ["heap", "code", "function", "type_name", "folded", "pprof", "skip_frames", "keep_wrappers"])]
    time: bool,
    /// Show one function of both programs, instruction by instruction
    #[arg(long, value_name = "NAME", conflicts_with_all = ["heap", "html", "markdown", "json", "csv", "skip_frames", "keep_wrappers"])]
    function: Option<String>,
    /// Draw one structure, class or union of both programs, member by member
    #[arg(long = "type", value_name = "NAME", conflicts_with_all = ["heap", "html", "markdown", "json", "csv", "function", "skip_frames", "keep_wrappers"])]
    type_name: Option<String>,
    /// Number of sites, and of rows in each table
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
    #[command(flatten)]
    formats: Formats,
    /// Folded stacks of one variant's bytes at the peak (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// A pprof profile of one variant
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Print the linker options that link the heap recorder into a static program of this ABI
    #[arg(long, value_name = "ABI", exclusive = true)]
    link_options: Option<String>,
    /// Print the value of LD_PRELOAD that records any program (WIDTHWISE_HEAP_LOG=/folder/name sets the log)
    #[arg(long, exclusive = true)]
    preload: bool,
}

impl Explain {
    /// Reads what there is of both sides, and says why they differ.
    pub fn run(mut self) -> Result<(), Failure> {
        if self.preload {
            return recorder::print_preload();
        }
        if let Some(abi) = &self.link_options {
            return recorder::print_link_options(abi);
        }
        self.check_outputs()?;
        interrupt::end_by_signal().map_err(Failure::machine)?;
        self.sides = variants::in_full(&self.sides, &self.campaign);
        if self.heap {
            return self.explain_heap();
        }
        if self.time {
            return self.explain_time();
        }
        if let Some(programs) = programs::named(&self.sides)? {
            self.check_sites()?;
            return self.explain_programs(&programs, &Weights::new());
        }
        if self.is_of_programs() {
            let [a, b] = self.sides.as_slice() else {
                return Err(Failure::request(
                    "--code, --function and --type compare two variants, or two files: name both",
                ));
            };
            return self.explain_programs(&variants::programs([a, b], &self.campaign)?, &self.objects()?);
        }
        if self.folded.is_some() || self.pprof.is_some() || side_logs::are_paths(&self.sides, &self.campaign)
        {
            return self.explain_heap();
        }
        self.explain_variants()
    }

    /// Whether the request is about programs alone.
    fn is_of_programs(&self) -> bool {
        self.code || self.function.is_some() || self.type_name.is_some()
    }

    /// Refuses options on the sites of a recorded heap where there is none.
    fn check_sites(&self) -> Result<(), Failure> {
        let flags =
            [("--skip-frames", !self.skip_frames.is_empty()), ("--keep-wrappers", self.keep_wrappers)];
        match flags.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(Failure::request(format!(
                "{flag} chooses the sites of a recorded heap, and programs are no recordings: leave it out, or name variants or \
                 logs"
            ))),
            None => Ok(()),
        }
    }

    fn explain_programs(&self, programs: &[Program; 2], objects: &Weights) -> Result<(), Failure> {
        let exports = [("--folded", &self.folded), ("--pprof", &self.pprof)];
        if let Some((flag, _)) = exports.iter().find(|(_, file)| file.is_some()) {
            return Err(Failure::request(format!(
                "{flag} writes the stacks of a recorded heap, and programs are no recordings: name one variant or its logs"
            )));
        }
        if let Some(name) = &self.type_name {
            return Programs::open(programs)?.show_type(name);
        }
        if let Some(function) = &self.function {
            return Programs::open(programs)?.show_function(function);
        }
        page::explain_files(programs, self.top, objects, &self.formats)
    }

    /// The live objects of each type at the peak of the first variant's heap; none where it was not recorded.
    fn objects(&self) -> Result<Weights, Failure> {
        let wanted = side_logs::wanted(&self.sides, &self.campaign)?;
        if !self.code {
            return Ok(Weights::new());
        }
        let Ok(sources) = wanted.sources(&wanted.names) else { return Ok(Weights::new()) };
        match Heaps::read(wanted.program().to_owned(), &sources, &self.frames(), &mut Symbols::default()) {
            Ok(heaps) => Ok(heaps.objects()),
            Err(failure) if failure.is_interrupted() => Err(failure),
            Err(_) => Ok(Weights::new()),
        }
    }

    /// Two variants of the campaign: all that is known of them. Of one variant: its memory, then its heap.
    fn explain_variants(&self) -> Result<(), Failure> {
        let wanted = side_logs::wanted(&self.sides, &self.campaign)?;
        let report = LoadedReport::new(wanted.archive(), None)?;
        let comparison = report.comparison()?;
        let Some(names) = page::names(&wanted, &comparison) else {
            return self.explain_one(&wanted, &comparison);
        };
        let request = page::Request { frames: self.frames(), top: self.top };
        page::explain(&wanted, &comparison, &names, &request, &self.formats)
    }

    /// The memory of one variant as the system sees it, then its heap.
    fn explain_one(&self, wanted: &Wanted, comparison: &Comparison) -> Result<(), Failure> {
        let name = wanted.with_logs().into_iter().next().unwrap_or_default();
        let is_plain = !self.formats.is_any();
        let memory = difference::terminal(comparison, &name, None, output::width(), &Palette::coloured());
        if let (Some(memory), true) = (&memory, is_plain) {
            output::print(&format!("{memory}\n"))?;
        }
        match self.explain_heap() {
            Err(failure) if memory.is_some() && is_plain && !failure.is_interrupted() => {
                output::print(&format!("  {}\n", failure.message()))
            }
            other => other,
        }
    }

    /// Allocation sites alone, of one side or of two: variants, logs, or folders of logs.
    fn explain_heap(&self) -> Result<(), Failure> {
        let (program, sources) = side_logs::find(&self.sides, &self.campaign)?;
        let heaps = Heaps::read(program, &sources, &self.frames(), &mut Symbols::default())?;
        let (max_rss, equal_within) = self.measured(&sources)?;
        let explanation = heaps.explanation(max_rss, equal_within, self.top);
        let export = Export { folded: self.folded.as_deref(), pprof: self.pprof.as_deref() };
        let caution = explanation.caution();
        self.formats.write(&Sites {
            heaps: &heaps,
            explanation: &explanation,
            caution: caution.as_deref(),
        })?;
        export.write(&heaps, caution.as_deref())?;
        if !self.formats.is_any() && !export.is_any() {
            output::print(&explanation.terminal(output::width(), &Palette::coloured()))?;
        }
        Ok(())
    }

    /// The functions of two variants.
    fn explain_time(&self) -> Result<(), Failure> {
        if let Some([a, b]) = programs::named(&self.sides)? {
            return Err(Failure::request(format!(
                "{} and {} are files, and --time compares variants whose functions were counted: `widthwise compare {} --functions` \
                 counts them",
                a.name,
                b.name,
                shell_words::join([&a.name, &b.name])
            )));
        }
        let names = time::names(&self.sides, &self.campaign)?;
        let [a, b] = names.each_ref().map(String::as_str);
        // What is wrong with the names comes first.
        variants::check([a, b], &self.campaign)?;
        let time = time::section([a, b], &self.campaign, self.top).map_err(Failure::request)?;
        page::explain_section([a, b], Box::new(time), &self.formats)
    }

    fn frames(&self) -> Frames<'_> {
        Frames { skip: &self.skip_frames, keep_wrappers: self.keep_wrappers }
    }

    /// Refuses files that could not be written, and two documents on standard output, which would be neither.
    fn check_outputs(&self) -> Result<(), Failure> {
        let [html, markdown, json, csv] = self.formats.files();
        let files = [html, ("--folded", "", &self.folded), ("--pprof", "", &self.pprof), markdown, json, csv];
        output::check(&files.map(|(flag, _, path)| (flag, path)))
    }

    /// What the campaign's timed rounds say of these sides, and its margin of equality; of logs nothing is known.
    fn measured(&self, sources: &[Source]) -> Result<(Option<MaxRss>, f64), Failure> {
        if side_logs::are_paths(&self.sides, &self.campaign) {
            return Ok((None, EQUAL_WITHIN));
        }
        let archive = Archive::read(&self.campaign).map_err(Failure::request)?;
        let report = LoadedReport::new(&archive, None)?;
        let comparison = report.comparison()?;
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let max_rss = names.first().and_then(|a| comparison.max_rss(a, names.get(1).copied()));
        Ok((max_rss, comparison.campaign.experiment.judging.equal_within))
    }
}
