//! Why one variant requests less memory than another: its allocation sites, the most important first.

mod differences;
mod lifetimes;
mod recorded;
mod sentences;
mod table;

use anstyle::Style;
use serde::Serialize;
use widthwise_anatomy::heap::rss_against_heap::RssAgainstHeap;
use widthwise_anatomy::heap::site::{Pair, Site};
use widthwise_anatomy::heap::wrappers::Wrapper;
use widthwise_anatomy::heap::Values;
use widthwise_experiment::units::{Quantity, Unit};

use crate::format::counted;
use crate::peaks::MaxRss;
use crate::sanitize;
use crate::text::{wrapped, Palette};

pub use differences::{Differences, Judged, SitePeaks};
pub use recorded::{Heap, Recorded};

/// Version of the JSON.
const SCHEMA: u32 = 2;
/// No terminal is narrower.
const NARROWEST: usize = 40;
/// A name longer than this loses its template arguments.
const LONG_NAME: usize = 60;

/// One variant's heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// The variant, or the log's file.
    pub name: String,
    /// Recorded processes; each is shown at its own peak.
    pub processes: usize,
    /// The peak heap: the highest sum of requested and not yet freed bytes, in the recording that represents
    /// the side ([`typical`]). Every display of a peak heap shows this number. For several processes it is
    /// the sum of their peak heaps, which need not occur at one moment.
    pub peak_bytes: u64,
    /// The peak heap of the process with the largest one.
    pub largest_peak_bytes: u64,
    /// Blocks at the peak.
    pub peak_blocks: u64,
    /// The memory that the allocator used for them; 0 where it is not glibc and does not report it.
    pub peak_chunk_bytes: u64,
    /// Blocks that were requested over its life.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were never freed.
    pub left_blocks: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Anonymous memory that the program mapped itself and did not unmap: it is in no other number.
    pub own_mapped_bytes: u64,
    /// Its highest sum at one time; for several processes, the sum of theirs.
    pub own_mapped_peak_bytes: u64,
    /// RSS against heap, where RSS was read: means over time, and over all recordings.
    pub system: Option<RssSummary>,
    /// Blocks of at least 128 KiB: the number with a mapping of their own, and the number without.
    pub large_blocks: (u64, u64),
    /// Events that were not recorded, for any reason: if there are any, sums and peaks are lower bounds.
    pub lost_events: u64,
    /// Blocks whose stack could not be followed to its outermost call.
    pub broken_stacks: u64,
    /// Each process's own numbers, in the order of their first writes.
    pub by_process: Vec<ProcessSums>,
    /// Why its recordings are incomplete; empty if all are complete. If there is a reason, sums and peaks are
    /// lower bounds, and nothing is compared with them.
    pub incomplete: Vec<String>,
    /// The sums of each of its recordings, in order.
    pub recordings: Vec<RecordingSums>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// One recording of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordingSums {
    /// Requested bytes, at the peak.
    pub peak_bytes: u64,
    /// The memory that the allocator used for them.
    pub peak_chunk_bytes: u64,
    /// Blocks that were requested.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were never freed.
    pub left_bytes: u64,
    /// Events that were not recorded: if there are any, the other numbers are lower bounds.
    pub lost_events: u64,
    /// The number of RSS samples; absent where none was taken.
    pub samples: Option<u64>,
    /// RSS against heap in this recording.
    pub system: Option<RssSummary>,
    /// Why it is incomplete; empty if it is complete.
    pub incomplete: Vec<String>,
}

impl Side {
    /// Why no sentence can rest on the RSS that was read, if none can.
    pub fn shortcoming(&self) -> Option<String> {
        match &self.system {
            Some(summary) => summary.shortcoming(),
            None => self.recordings.iter().filter_map(|one| one.samples).min().map(too_short),
        }
    }

    /// For a side with one recording: the numbers that are compared between recordings.
    pub fn sums(&self) -> RecordingSums {
        RecordingSums {
            peak_bytes: self.peak_bytes,
            peak_chunk_bytes: self.peak_chunk_bytes,
            blocks: self.blocks,
            bytes: self.bytes,
            left_bytes: self.left_bytes,
            lost_events: self.lost_events,
            samples: self.system.map(|summary| summary.samples),
            system: self.system,
            incomplete: self.incomplete.clone(),
        }
    }

    /// Why its sizes cannot be compared: the first reason, and the number of others.
    pub fn incompleteness(&self) -> Option<String> {
        let (first, others) = self.incomplete.split_first()?;
        let more = match others.len() {
            0 => String::new(),
            more => format!("; and {}", counted(more, "more reason")),
        };
        Some(format!("the recording of {} is incomplete: {first}{more}", self.name))
    }

    /// A number of bytes, as a lower bound where the recording is incomplete.
    pub fn at_least(&self, value: u64) -> String {
        match self.incomplete.is_empty() {
            true => bytes(value),
            false => format!("at least {}", bytes(value)),
        }
    }
}

/// The recording that represents a side: the one with the median peak heap, the lower of two. It is one of
/// the complete recordings, or of all if none is complete. None where there is no recording.
pub fn typical(recordings: &[RecordingSums]) -> Option<usize> {
    let is_complete = |index: &usize| recordings[*index].incomplete.is_empty();
    let mut order: Vec<usize> = (0..recordings.len()).filter(is_complete).collect();
    if order.is_empty() {
        order = (0..recordings.len()).collect();
    }
    order.sort_by_key(|index| recordings[*index].peak_bytes);
    order.get(order.len().checked_sub(1)? / 2).copied()
}

/// One process's heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessSums {
    /// Its number. An exec does not change it, and numbers are reused.
    pub process: u32,
    /// The process that forked, started or executed it, where that was recorded.
    pub parent: Option<u32>,
    /// The file of its program.
    pub program: String,
    /// Blocks that were requested over its life.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requested bytes, at its peak.
    pub peak_bytes: u64,
    /// Blocks at its peak.
    pub peak_blocks: u64,
    /// Blocks that it never freed.
    pub left_blocks: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Events that were not recorded.
    pub lost_events: u64,
    /// It ended by `exit`, by `_exit`, or by returning from `main`.
    pub ended: bool,
}

/// RSS against heap. Bytes; means over time, except the peak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RssSummary {
    /// Resident: the heap, and anonymous mappings.
    pub resident_bytes: u64,
    /// The highest resident size.
    pub max_rss_bytes: u64,
    /// Requested and not yet freed.
    pub asked_bytes: u64,
    /// The memory that the allocator used for that.
    pub live_bytes: u64,
    /// Resident and not requested.
    pub kept_bytes: u64,
    /// The part of these in the heap that brk grows.
    pub kept_in_heap_bytes: u64,
    /// Requested and not resident: never written to.
    pub untouched_bytes: u64,
    /// Kept for at least a twentieth of the run.
    pub kept_long_bytes: u64,
    /// Not touched for at least a twentieth of the run.
    pub untouched_long_bytes: u64,
    /// The number of RSS samples.
    pub samples: u64,
    /// The share of the run for which the readings are known to be valid, 0 to 1.
    pub held: f64,
}

impl RssSummary {
    /// For one run: RSS was read `samples` times, and the readings are valid for a share `held` of the run.
    pub fn of(compared: &RssAgainstHeap, samples: u64, held: f64) -> RssSummary {
        let mean = &compared.mean;
        RssSummary {
            resident_bytes: mean.resident,
            max_rss_bytes: compared.peak().resident,
            asked_bytes: mean.asked,
            live_bytes: mean.live,
            kept_bytes: mean.kept(),
            kept_in_heap_bytes: mean.kept_in_heap(),
            untouched_bytes: mean.untouched(),
            kept_long_bytes: compared.kept_long,
            untouched_long_bytes: compared.untouched_long,
            samples,
            held,
        }
    }

    /// Means over the recordings; the fewest samples, the lowest validity, and the highest peak. None if RSS
    /// was not read in one of them.
    pub fn mean(recordings: &[RecordingSums]) -> Option<RssSummary> {
        let summaries: Vec<RssSummary> = recordings.iter().map(|one| one.system).collect::<Option<_>>()?;
        let first = *summaries.first()?;
        let mean = |of: fn(&RssSummary) -> u64| {
            let sum: f64 = summaries.iter().map(|summary| of(summary) as f64).sum();
            (sum / summaries.len() as f64).round() as u64
        };
        Some(RssSummary {
            resident_bytes: mean(|summary| summary.resident_bytes),
            max_rss_bytes: summaries.iter().map(|summary| summary.max_rss_bytes).max().unwrap_or(0),
            asked_bytes: mean(|summary| summary.asked_bytes),
            live_bytes: mean(|summary| summary.live_bytes),
            kept_bytes: mean(|summary| summary.kept_bytes),
            kept_in_heap_bytes: mean(|summary| summary.kept_in_heap_bytes),
            untouched_bytes: mean(|summary| summary.untouched_bytes),
            kept_long_bytes: mean(|summary| summary.kept_long_bytes),
            untouched_long_bytes: mean(|summary| summary.untouched_long_bytes),
            samples: summaries.iter().map(|summary| summary.samples).min().unwrap_or(0),
            held: summaries.iter().map(|summary| summary.held).fold(first.held, f64::min),
        })
    }

    /// Why no sentence can rest on it, if none can.
    pub fn shortcoming(&self) -> Option<String> {
        /// The fewest samples for a meaningful mean over time.
        const FEWEST_SAMPLES: u64 = 10;
        /// The smallest share of the run for which readings must be valid.
        const LEAST_HELD: f64 = 0.8;
        if self.samples < FEWEST_SAMPLES {
            return Some(too_short(self.samples));
        }
        (self.held < LEAST_HELD).then(|| {
            let (held, samples) = (percent(self.held, 1.0), counted(self.samples as usize, "sample"));
            format!("changing too fast for a mean over time: {samples}, valid for {held} of the run")
        })
    }
}

fn too_short(samples: u64) -> String {
    format!("too short for a mean over time: {}", counted(samples as usize, "sample"))
}

/// The input of a heap report.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The program.
    pub program: &'a str,
    /// The explained side, or the side that the other is compared with.
    pub a: &'a Side,
    /// The side that is compared with it.
    pub b: Option<&'a Side>,
    /// All sites. Without a `b`, its values are 0.
    pub pairs: &'a [Pair],
    /// The bytes of each of `pairs` at the peaks of all recordings, in the same order.
    pub site_peaks: &'a [SitePeaks],
    /// Max RSS of both, as the campaign measured it: a different quantity from the peak heap. Absent without
    /// a campaign.
    pub max_rss: Option<MaxRss>,
    /// Functions that request nearly all memory. Thin ones are no sites.
    pub wrappers: &'a [Wrapper],
    /// The number of sites to show.
    pub top: usize,
    /// Ratios within this of 1 are equal.
    pub equal_within: f64,
}

/// A number of bytes with its unit.
pub fn bytes(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Bytes }.to_string()
}

fn number(value: u64) -> String {
    Quantity { value: value as f64, unit: Unit::Count }.to_string()
}

pub(crate) fn signed(value: i128) -> String {
    let sign = match value {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", bytes(value.unsigned_abs() as u64))
}

pub(crate) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 {
        return String::new();
    }
    let share = 100.0 * part / whole;
    let text = if share.abs() < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") };
    text.replace('-', "−")
}

/// `72 → 48` bytes a block; one number where both are the same.
fn each(a: &Values, b: Option<&Values>) -> String {
    let mean = |values: &Values| {
        (values.peak_count > 0).then(|| {
            let mean = values.peak_bytes as f64 / values.peak_count as f64;
            if values.peak_bytes.is_multiple_of(values.peak_count) || mean >= 1000.0 {
                Quantity { value: mean.round(), unit: Unit::Count }.to_string()
            } else {
                format!("{mean:.1}")
            }
        })
    };
    change(mean(a), b.map(mean))
}

/// The median lifetime of the blocks, in each variant that has any.
fn lived(a: &Values, b: Option<&Values>) -> String {
    match b.map(lifetimes::word) {
        None | Some(None) => lifetimes::word(a).unwrap_or_default(),
        Some(Some(b)) => match lifetimes::word(a) {
            None => b,
            Some(a) => change(Some(a), Some(Some(b))),
        },
    }
}

fn change(a: Option<String>, b: Option<Option<String>>) -> String {
    let none = || "none".to_owned();
    match (a, b) {
        (a, None) => a.unwrap_or_else(none),
        (Some(a), Some(Some(b))) if a == b => a,
        (a, Some(b)) => format!("{} → {}", a.unwrap_or_else(none), b.unwrap_or_else(none)),
    }
}

/// A readable name of a function or type: `std::string`, no parameters, and no template arguments where those
/// make it long.
pub fn short_name(name: &str) -> String {
    let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let tight = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    let name =
        name.replace(string, "std::string").replace(tight, "std::string").replace("std::__cxx11::", "std::");
    let name = without_parameters(&name);
    if name.chars().count() <= LONG_NAME {
        return name;
    }
    let mut short = String::new();
    let mut depth = 0usize;
    for character in name.chars() {
        match character {
            '<' => {
                if depth == 0 {
                    short.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    short
}

fn without_parameters(name: &str) -> String {
    let mut depth = 0usize;
    for (offset, character) in name.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && offset > 0 => {
                let before = &name[..offset];
                // The names of the call operator and of members of anonymous namespaces contain brackets.
                let in_name = before.ends_with("operator")
                    || name[offset..].starts_with("(anonymous namespace)")
                    || name[offset..].starts_with("({lambda");
                if !in_name {
                    return before.trim_end().to_owned();
                }
            }
            _ => {}
        }
    }
    name.to_owned()
}

/// The created type, the function that creates it, and its source location.
fn described(site: &Site) -> String {
    let function = sanitize::line(&short_name(&site.function));
    let place = sanitize::line(&site.location());
    match &site.made {
        Some(made) => format!("{}  {function}  {place}", sanitize::line(&short_name(made))),
        None => format!("{function}  {place}"),
    }
}

impl Explanation<'_> {
    /// For the terminal, `width` columns wide.
    pub fn terminal(&self, width: usize, palette: &Palette) -> String {
        let mut text = String::new();
        let (strong, faint) = (palette.strong, palette.faint);
        let title = match self.b {
            Some(b) => format!("heap of {} and {}", self.a.name, b.name),
            None => format!("heap of {}", self.a.name),
        };
        text +=
            &format!("{strong}{}{strong:#} · {}\n\n", sanitize::line(self.program), sanitize::line(&title));
        for sentence in self.sentences() {
            text += &paragraph(&sentence, width, Style::new());
        }
        text.push('\n');
        text += &self.table(palette);
        let remarks: Vec<String> = std::iter::once(self.a)
            .chain(self.b)
            .flat_map(|side| side.remarks.iter().map(move |remark| format!("{}: {remark}", side.name)))
            .collect();
        if !remarks.is_empty() {
            text.push('\n');
        }
        for remark in remarks {
            text += &paragraph(&sanitize::line(&remark), width, faint);
        }
        text
    }

    /// As JSON: all sites.
    ///
    /// # Errors
    /// None that numbers and texts could cause.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Numbers {
            peak_bytes: u64,
            peak_blocks: u64,
            peak_chunk_bytes: u64,
            bytes: u64,
            blocks: u64,
            left_bytes: u64,
            left_blocks: u64,
            lifetimes: Option<lifetimes::Lifetimes>,
        }
        let numbers = |values: &Values| Numbers {
            peak_bytes: values.peak_bytes,
            peak_blocks: values.peak_count,
            peak_chunk_bytes: values.peak_chunk_bytes,
            bytes: values.bytes,
            blocks: values.count,
            left_bytes: values.live_bytes,
            left_blocks: values.live_count,
            lifetimes: lifetimes::lifetimes(values),
        };
        let sites: Vec<serde_json::Value> = self
            .pairs
            .iter()
            .map(|pair| {
                serde_json::json!({
                    "function": pair.site.function,
                    "file": pair.site.file,
                    "line": pair.site.line,
                    "module": pair.site.module,
                    "made": pair.site.made,
                    "a": numbers(&pair.a),
                    "b": self.b.map(|_| numbers(&pair.b)),
                })
            })
            .collect();
        let wrapper = |one: &Wrapper| serde_json::json!({ "function": one.function, "share": one.share, "is_site": !one.is_thin });
        let wrappers: Vec<serde_json::Value> = self.wrappers.iter().map(wrapper).collect();
        serde_json::to_string_pretty(&serde_json::json!({
            "schema": SCHEMA,
            "program": self.program,
            "wrappers": wrappers,
            "a": self.a,
            "b": self.b,
            "differences": self.differences().map(|differences| differences.all()).unwrap_or_default(),
            "max_rss": self.max_rss,
            "sites": sites,
        }))
    }
}

pub(crate) fn paragraph(text: &str, width: usize, style: Style) -> String {
    let lines = wrapped(text, width.max(NARROWEST) - 2);
    lines.iter().map(|line| format!("  {style}{line}{style:#}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_a_readable_form() {
        assert_eq!(short_name("fill(Node&, int)"), "fill");
        assert_eq!(short_name("(anonymous namespace)::grow(int)"), "(anonymous namespace)::grow");
        assert_eq!(short_name("A::operator()(int) const"), "A::operator()");
        assert_eq!(
            short_name(
                "std::list<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >"
            ),
            "std::list<std::string >"
        );
        let long = format!("std::map<{}>::insert(int)", "int, ".repeat(30));
        assert_eq!(short_name(&long), "std::map<…>::insert");
    }
}
