//! Why one variant asks for less memory than another: its allocation sites, those that matter first.

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
use crate::terminal::{wrapped, Palette};

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
    /// Processes that were recorded; each is shown at its own peak.
    pub processes: usize,
    /// The peak heap: bytes that were asked for and not given back when that was most, in the recording that stands for the
    /// side ([`typical`]). All that shows a peak heap shows this one. Of several processes it is the sum of their peak heaps,
    /// which no moment need have had.
    pub peak_bytes: u64,
    /// The peak heap of the process with the largest one.
    pub largest_peak_bytes: u64,
    /// Blocks at the peak.
    pub peak_blocks: u64,
    /// What the allocator used for them; 0 where it is not glibc and does not say.
    pub peak_chunk_bytes: u64,
    /// Blocks that were asked for over its life.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were never given back.
    pub left_blocks: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Memory, not files, that the program mapped by itself and kept: it is in no other number.
    pub own_mapped_bytes: u64,
    /// The most of it at one time; of several processes these are added up.
    pub own_mapped_peak_bytes: u64,
    /// The heap as the system sees it beside what the program asks for, where that was read: means over time, and over all
    /// recordings.
    pub system: Option<RssSummary>,
    /// Blocks of at least 128 KiB: how many had a mapping of their own, and how many did not.
    pub large_blocks: (u64, u64),
    /// Events that were not recorded, for whatever reason: where there are any, sums and peaks are lower bounds.
    pub lost_events: u64,
    /// Blocks whose stack could not be followed to its outermost call.
    pub broken_stacks: u64,
    /// Each process's own numbers, in the order in which they began to write.
    pub by_process: Vec<ProcessSums>,
    /// Why recordings of it are incomplete; nothing where none is. Where there is a reason, sums and peaks are lower bounds, and
    /// nothing is compared with them.
    pub incomplete: Vec<String>,
    /// What every recording of it has, in the order in which they were made.
    pub recordings: Vec<RecordingSums>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// One recording of a side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordingSums {
    /// Bytes that were asked for, at the peak.
    pub peak_bytes: u64,
    /// What the allocator used for them.
    pub peak_chunk_bytes: u64,
    /// Blocks that were asked for.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were never given back.
    pub left_bytes: u64,
    /// Events that were not recorded: where there are any, the others are lower bounds.
    pub lost_events: u64,
    /// How many RSS samples there are; absent where none was taken.
    pub samples: Option<u64>,
    /// The heap as the system saw it in this recording.
    pub system: Option<RssSummary>,
    /// Why it is incomplete; nothing where it is not.
    pub incomplete: Vec<String>,
}

impl Side {
    /// Why the RSS supports no sentence, if it was read and supports none.
    pub fn shortcoming(&self) -> Option<String> {
        match &self.system {
            Some(summary) => summary.shortcoming(),
            None => self.recordings.iter().filter_map(|one| one.samples).min().map(too_short),
        }
    }

    /// Of a side that is one recording: what is compared between recordings.
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

    /// Why its sizes are compared with nothing: the first reason, and how many more there are.
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

/// The recording that stands for a side: of the complete ones, or of all where none is complete, the one whose peak heap is the
/// middle one, the lower of two. None where there is no recording.
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
    /// Its number. An exec keeps it, and numbers come round again.
    pub process: u32,
    /// The number of the process that forked, started or executed it, where that was recorded.
    pub parent: Option<u32>,
    /// The file of its program.
    pub program: String,
    /// Blocks that were asked for over its life.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were asked for, at its peak.
    pub peak_bytes: u64,
    /// Blocks at its peak.
    pub peak_blocks: u64,
    /// Blocks that it never gave back.
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
    /// The most of it.
    pub max_rss_bytes: u64,
    /// What the program asked for and had not given back.
    pub asked_bytes: u64,
    /// What the allocator used for that.
    pub live_bytes: u64,
    /// Resident and not asked for.
    pub kept_bytes: u64,
    /// Of these: in the heap that brk grows.
    pub kept_in_heap_bytes: u64,
    /// Asked for and not resident: never written to.
    pub untouched_bytes: u64,
    /// Kept for a twentieth of the run at least.
    pub kept_long_bytes: u64,
    /// Not touched for a twentieth of the run at least.
    pub untouched_long_bytes: u64,
    /// How often the memory was looked at.
    pub samples: u64,
    /// For which share of the run the readings are known to hold, 0 to 1.
    pub held: f64,
}

impl RssSummary {
    /// Of one run: the RSS was read `samples` times, and the readings are known to hold for a share `held` of it.
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

    /// Means over the recordings; of samples and of what holds the fewest, and the highest peak. Nothing where one was not read.
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
        /// A mean over time of fewer looks says nothing.
        const FEWEST_SAMPLES: u64 = 10;
        /// Readings that hold for less of the run do not say what it had.
        const LEAST_HELD: f64 = 0.8;
        if self.samples < FEWEST_SAMPLES {
            return Some(too_short(self.samples));
        }
        (self.held < LEAST_HELD).then(|| {
            let (held, samples) = (percent(self.held, 1.0), counted(self.samples as usize, "sample"));
            format!("changing too fast for a mean over time: {samples}, which hold for {held} of the run")
        })
    }
}

fn too_short(samples: u64) -> String {
    format!("too short for a mean over time: {}", counted(samples as usize, "sample"))
}

/// What is shown.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The program.
    pub program: &'a str,
    /// What is explained, or what the other is compared with.
    pub a: &'a Side,
    /// What is compared with it.
    pub b: Option<&'a Side>,
    /// All sites. Where there is no `b`, its values are 0.
    pub pairs: &'a [Pair],
    /// What each of `pairs` has at the peaks of all recordings, in the same order.
    pub site_peaks: &'a [SitePeaks],
    /// Max RSS of both, as the campaign measured it: another quantity than the peak heap. Absent where there is no campaign.
    pub max_rss: Option<MaxRss>,
    /// Functions through which nearly all memory is asked for. Thin ones are no sites.
    pub wrappers: &'a [Wrapper],
    /// So many are shown.
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

/// How long half of the blocks live, in each variant that has any.
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

/// A function or type as a person would say it: `std::string` by its name, without parameters, and without template
/// arguments where those make it long.
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
                // The call operator, and what stands in a nameless namespace, have brackets in their names.
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

/// What is made, by which function, and where.
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
    fn names_are_said_as_a_person_would_say_them() {
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
