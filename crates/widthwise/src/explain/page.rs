//! The whole answer on two variants of a campaign: memory, heap, and the programs' files.

use widthwise_anatomy::heap::Symbols;
use widthwise_anatomy::layout::Weights;
use widthwise_report::explanation::heap::Heap;
use widthwise_report::explanation::{csv as table, markdown, Explanation, Section};
use widthwise_report::html::explanation::{self as html, Page};
use widthwise_report::text::Palette;
use widthwise_report::Comparison;

use super::heaps::{Frames, Heaps};
use super::memory;
use super::program::Program;
use super::programs::{Programs, Sections};
use super::side_logs::Wanted;
use super::{time, variants};
use crate::failure::Failure;
use crate::formats::{Document, Formats};
use crate::output;

/// What is asked of the page.
pub struct Request<'a> {
    /// Which frames are no sites.
    pub frames: Frames<'a>,
    /// Rows of each table.
    pub top: usize,
}

/// The two variants that are compared; none where the campaign has one alone.
pub fn names(wanted: &Wanted, comparison: &Comparison) -> Option<[String; 2]> {
    let mut names = wanted.with_logs();
    if wanted.names.is_empty() && names.len() < 2 {
        names.extend(wanted.others().find(|name| comparison.campaign.not_measured(name).is_none()).cloned());
    }
    <[String; 2]>::try_from(names).ok()
}

/// Explains the difference of two variants.
///
/// # Errors
/// The output cannot be written. What cannot be said is a remark.
pub fn explain(
    wanted: &Wanted,
    comparison: &Comparison,
    names: &[String; 2],
    request: &Request,
    formats: &Formats,
) -> Result<(), Failure> {
    let mut symbols = Symbols::default();
    explained(wanted, comparison, names, request, &mut symbols, |page| put(page, formats))?
}

/// Explains the difference of two variants, and hands the page on.
///
/// # Errors
/// It was interrupted, or no stack goes through a frame that is to be skipped. What cannot be said is a remark.
pub fn explained<R>(
    wanted: &Wanted,
    comparison: &Comparison,
    names: &[String; 2],
    request: &Request,
    symbols: &mut Symbols,
    use_page: impl FnOnce(&Page) -> R,
) -> Result<R, Failure> {
    let mut remarks = Vec::new();
    let both = [names[0].as_str(), names[1].as_str()];
    let heaps = heaps(wanted, names, request, symbols)?;
    let heaps = heaps.map_err(|reason| remarks.push(format!("The heap is not compared: {reason}."))).ok();
    let found = variants::programs(both, wanted.archive().folder());
    let found = found
        .map_err(|failure| remarks.push(format!("The programs are not compared: {}.", failure.message())));
    let programs = found.as_ref().ok().map(Programs::open).transpose()?;
    let objects = heaps.as_ref().map(Heaps::objects).unwrap_or_default();
    let files = programs.as_ref().map(|programs| programs.sections(request.top, &objects)).transpose()?;
    let Sections { sections: of_files, structures, variables, remarks: of_programs } =
        files.unwrap_or_default();
    let equal_within = comparison.campaign.experiment.judging.equal_within;
    let heap = heaps.as_ref().map(|heaps| Heap {
        heaps: heaps.explanation(None, equal_within, request.top),
        top: request.top,
        repeats: memory::command(comparison, both, "--heap=2", "records each twice"),
    });
    let parts = heap.as_ref().map(|heap| heap.parts()).unwrap_or_default();
    let memory = memory::Sources {
        comparison,
        names: both,
        heaps: heaps.as_ref(),
        heap: parts,
        variables,
        top: request.top,
    };
    let mut sections: Vec<Box<dyn Section + '_>> = Vec::new();
    match memory.section() {
        Some(memory) => sections.push(Box::new(memory)),
        None => {
            remarks.push("Max RSS of both was not measured: --metric default,max_rss does that.".to_owned())
        }
    }
    if let Some(heap) = heap {
        sections.push(Box::new(heap));
    }
    sections.extend(of_files);
    let campaign = wanted.archive().folder();
    if time::is_recorded(campaign) {
        match time::section(both, campaign, request.top) {
            Ok(time) => sections.push(Box::new(time)),
            Err(reason) => remarks.push(format!("The time of functions is not compared: {reason}.")),
        }
    } else {
        remarks.extend(time::uncounted(both, comparison, campaign));
    }
    remarks.extend(of_programs);
    let details = format!("widthwise explain --code {}", shell_words::join(both));
    let explanation =
        Explanation { variant: both[1], baseline: both[0], sections, remarks, details: Some(details) };
    let title = format!("{}: heap of {} and {}", wanted.program(), both[0], both[1]);
    let is_clear = |heaps: &&Heaps| heaps.explanation(None, equal_within, request.top).caution().is_none();
    let flames = heaps.iter().filter(is_clear).map(|heaps| heaps.flame(&title)).collect();
    let page =
        Page { program: Some(wanted.program()), explanation: &explanation, structures: &structures, flames };
    Ok(use_page(&page))
}

/// The recorded heaps of both; or why nothing can be said of them.
fn heaps(
    wanted: &Wanted,
    names: &[String; 2],
    request: &Request,
    symbols: &mut Symbols,
) -> Result<Result<Heaps, String>, Failure> {
    let sources = match wanted.sources(names) {
        Ok(sources) => sources,
        Err(failure) => return Ok(Err(failure.message().to_owned())),
    };
    let heaps = match Heaps::read(wanted.program().to_owned(), &sources, &request.frames, symbols) {
        Ok(heaps) => heaps,
        Err(failure) if failure.is_interrupted() || !request.frames.skip.is_empty() => return Err(failure),
        Err(failure) => return Ok(Err(failure.message().to_owned())),
    };
    Ok(match heaps.incompleteness() {
        Some(reason) => Err(reason),
        None => Ok(heaps),
    })
}

/// Explains the difference of two programs' files alone. `objects` are the live objects of each type at the peak of the
/// baseline's heap.
///
/// # Errors
/// A file cannot be read or is damaged, or the output cannot be written.
pub fn explain_files(
    programs: &[Program; 2],
    top: usize,
    objects: &Weights,
    formats: &Formats,
) -> Result<(), Failure> {
    let opened = Programs::open(programs)?;
    let Sections { sections, structures, remarks, .. } = opened.sections(top, objects)?;
    let [baseline, variant] = programs.each_ref().map(|program| program.name.as_str());
    let explanation = Explanation { variant, baseline, sections, remarks, details: None };
    let page = Page { program: None, explanation: &explanation, structures: &structures, flames: Vec::new() };
    put(&page, formats)
}

/// Prints or writes one section on two variants.
///
/// # Errors
/// The output cannot be written.
pub fn explain_section(
    [baseline, variant]: [&str; 2],
    section: Box<dyn Section + '_>,
    formats: &Formats,
) -> Result<(), Failure> {
    let sections = vec![section];
    let explanation = Explanation { variant, baseline, sections, remarks: Vec::new(), details: None };
    put(&Page { program: None, explanation: &explanation, structures: &[], flames: Vec::new() }, formats)
}

/// Writes the formats that are asked for, or prints the text.
fn put(page: &Page, formats: &Formats) -> Result<(), Failure> {
    formats.write(&Shown(page))?;
    match formats.is_any() {
        true => Ok(()),
        false => output::print(&page.explanation.terminal(output::width(), &Palette::coloured())),
    }
}

/// An explanation in all formats.
struct Shown<'a>(&'a Page<'a>);

impl Document for Shown<'_> {
    fn html(&self) -> String {
        html::page(self.0)
    }

    fn markdown(&self) -> String {
        markdown::render(self.0.explanation)
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&self.0.explanation.json())
    }

    fn csv(&self, to: &mut Vec<u8>) -> Result<(), Failure> {
        table::write(self.0.explanation, to).map_err(Failure::machine)
    }
}
