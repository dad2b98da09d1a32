//! One variant's heap: its recordings, processes, and RSS beside what it requests.

use serde::Serialize;
use widthwise_anatomy::heap::rss_against_heap::RssAgainstHeap;
use widthwise_experiment::model::Thp;

use super::quantities::{bytes, percent};
use crate::format::counted;

/// One variant's heap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// RSS against heap, where RSS was read: means over time, and over all recordings. Absent where a process may have copied pages.
    pub system: Option<RssSummary>,
    /// Whether a process may have copied pages of a heap that it shared with its parent after a fork: RSS has more than the heap then,
    /// whatever the allocator keeps.
    #[serde(skip)]
    pub may_copy: bool,
    /// The variant's setting of transparent huge pages; none where it is not known, as of logs.
    #[serde(skip)]
    pub thp: Option<Thp>,
    /// The most bytes that were read in huge pages, over its recordings.
    #[serde(skip)]
    pub huge_bytes: u64,
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
            _ if self.may_copy => Some(
                "of what forked processes share, the readings do not tell what a process has copied"
                    .to_owned(),
            ),
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
