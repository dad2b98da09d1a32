//! The differences of two sides, and whether they exceed the differences between recordings of one side.

use serde::Serialize;
use widthwise_anatomy::heap::site::Pair;
use widthwise_anatomy::heap::types::TypedHeap;
use widthwise_anatomy::heap::wrappers::Wrapper;
use widthwise_anatomy::Certainty;
use widthwise_verdict::repeats::{difference, Difference, Scale};
use widthwise_verdict::Word;

use super::side::{RecordingSums, RssSummary, Side};
use crate::peaks::MaxRss;
use crate::spread;

/// Variants differ in their names and paths, of which a program may hold copies: a smaller difference is
/// ignored.
pub(super) const FLOOR: f64 = 1024.0;

/// One quantity of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Its name in JSON.
    pub quantity: &'static str,
    /// The shown value of the first side.
    pub a: u64,
    /// The shown value of the second side.
    pub b: u64,
    /// The outcome.
    pub found: Difference,
}

/// Its form in JSON.
#[derive(Debug, Serialize)]
pub(super) struct JudgedJson {
    quantity: &'static str,
    unit: &'static str,
    a: u64,
    b: u64,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    floor: Option<f64>,
    confidence: f64,
    verdict: &'static str,
    reason: Option<String>,
}

impl Judged {
    /// Whether a sentence may call one of them smaller.
    pub fn is_clear(&self) -> bool {
        self.found.is_clear()
    }

    fn json(&self) -> JudgedJson {
        let Difference { ratio, low, high, floor, word, reason } = self.found.clone();
        JudgedJson {
            quantity: self.quantity,
            unit: "bytes",
            a: self.a,
            b: self.b,
            ratio,
            low,
            high,
            floor,
            confidence: widthwise_verdict::repeats::CONFIDENCE,
            verdict: word.name(),
            reason,
        }
    }
}

/// A site's bytes at the peak, in each recording of both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitePeaks {
    /// Of the first side.
    pub a: Vec<u64>,
    /// Of the second.
    pub b: Vec<u64>,
}

impl SitePeaks {
    /// Whether the site, one of `sites`, differs by more than recordings of one side do. Without repeated
    /// recordings this is true of every site.
    pub fn differ(&self, sites: usize) -> bool {
        let scale = Scale { equal_within: 0.0, resolution: FLOOR, comparisons: sites };
        let found = difference(&numbers(&self.a), &numbers(&self.b), scale);
        found.is_clear() || matches!(found.word, Word::Withheld | Word::NoData)
    }

    /// The highest certainty that a cause of its difference may have.
    pub fn certainty(&self) -> Certainty {
        spread::certainty(&numbers(&self.a), &numbers(&self.b), 0.0, FLOOR)
    }
}

/// All compared quantities.
#[derive(Debug, Clone, PartialEq)]
pub struct Differences {
    /// The peak heap.
    pub peak_heap: Judged,
    /// The allocator's memory for the peak heap. None where it is unknown.
    pub peak_chunks: Option<Judged>,
    /// RSS against heap, where RSS was read in both.
    pub system: Option<SystemDifferences>,
}

/// Means over time.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemDifferences {
    /// The resident memory of the heap.
    pub resident: Judged,
    /// The requested memory.
    pub asked: Judged,
    /// The allocator's memory for the requested memory.
    pub live: Judged,
    /// Resident bytes for each byte that the allocator uses: 1 where RSS and heap are equal.
    pub given: Difference,
    /// Resident memory that has not been requested for at least a twentieth of the run.
    pub kept: Judged,
    /// Requested memory that has not been written to for at least a twentieth of the run.
    pub untouched: Judged,
}

impl Differences {
    /// The differences of two sides; ratios within `equal_within` of 1 are equal.
    pub fn of(a: &Side, b: &Side, equal_within: f64) -> Differences {
        let scale = Scale { equal_within, resolution: FLOOR, comparisons: 1 };
        let incomplete = a.incompleteness().or_else(|| b.incompleteness());
        let is_sum = a.processes.max(b.processes) > 1;
        let judged = |quantity, of: fn(&RecordingSums) -> u64, shown: fn(&Side) -> u64| {
            let values = |side: &Side| side.recordings.iter().map(|one| of(one) as f64).collect::<Vec<f64>>();
            let found = match &incomplete {
                Some(reason) => Difference::withheld(reason),
                None => difference(&values(a), &values(b), scale),
            };
            Judged { quantity, a: shown(a), b: shown(b), found }
        };
        let peak_chunks = (a.peak_chunk_bytes > 0 && b.peak_chunk_bytes > 0)
            .then(|| judged("peak_heap_chunks", |one| one.peak_chunk_bytes, |side| side.peak_chunk_bytes));
        Differences {
            peak_heap: judged(
                if is_sum { "peak_heap_sum" } else { "peak_heap" },
                |one| one.peak_bytes,
                |side| side.peak_bytes,
            ),
            peak_chunks,
            system: SystemDifferences::of(a, b, scale, incomplete.as_deref()),
        }
    }

    /// All of them, in their JSON form.
    pub(super) fn all(&self) -> Vec<JudgedJson> {
        let of_system = |system: &'_ SystemDifferences| {
            let SystemDifferences { resident, asked, live, kept, untouched, .. } = system.clone();
            [resident, asked, live, kept, untouched]
        };
        let system = self.system.iter().flat_map(of_system);
        let peaks = std::iter::once(self.peak_heap.clone()).chain(self.peak_chunks.clone());
        peaks.chain(system).map(|judged| judged.json()).collect()
    }
}

impl SystemDifferences {
    fn of(a: &Side, b: &Side, scale: Scale, incomplete: Option<&str>) -> Option<SystemDifferences> {
        let summaries =
            |side: &Side| side.recordings.iter().map(|one| one.system).collect::<Option<Vec<_>>>();
        let (of_a, of_b) = (summaries(a)?, summaries(b)?);
        let (mean_a, mean_b) = (a.system?, b.system?);
        let shortcoming = mean_a.shortcoming().or(mean_b.shortcoming());
        let withheld = |mut found: Difference| {
            if let Some(reason) = incomplete {
                return Difference::withheld(reason);
            }
            if let Some(reason) = &shortcoming {
                found.word = Word::Withheld;
                found.reason = Some(reason.clone());
            }
            found
        };
        let judged = |quantity, of: fn(&RssSummary) -> u64| {
            let values = |summaries: &[RssSummary]| {
                summaries.iter().map(|summary| of(summary) as f64).collect::<Vec<f64>>()
            };
            let found = withheld(difference(&values(&of_a), &values(&of_b), scale));
            Judged { quantity, a: of(&mean_a), b: of(&mean_b), found }
        };
        let given = |summaries: &[RssSummary]| -> Vec<f64> {
            summaries
                .iter()
                .map(|summary| summary.resident_bytes as f64 / summary.live_bytes.max(1) as f64)
                .collect()
        };
        // A share has no smallest step in bytes.
        let share = Scale { resolution: 0.0, ..scale };
        Some(SystemDifferences {
            resident: judged("mean_resident", |summary| summary.resident_bytes),
            asked: judged("mean_asked", |summary| summary.asked_bytes),
            live: judged("mean_live", |summary| summary.live_bytes),
            kept: judged("kept", |summary| summary.kept_long_bytes),
            untouched: judged("untouched", |summary| summary.untouched_long_bytes),
            given: withheld(difference(&given(&of_a), &given(&of_b), share)),
        })
    }
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
    /// The types of the blocks at the peaks. Absent where they cannot be known: in other profilers' files.
    pub types: Option<&'a TypedHeap>,
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

impl Explanation<'_> {
    /// The differences of its sides, where it has two.
    pub fn differences(&self) -> Option<Differences> {
        self.b.map(|b| Differences::of(self.a, b, self.equal_within))
    }

    /// A caution for a picture of a difference that may not be real.
    pub fn caution(&self) -> Option<String> {
        let Some(b) = self.b else {
            return self.a.incompleteness().map(|reason| format!("{reason}; sizes are lower bounds"));
        };
        if let Some(reason) = self.a.incompleteness().or_else(|| b.incompleteness()) {
            return Some(format!("{reason}; its sizes are lower bounds, so that the two cannot be compared"));
        }
        let text = match self.differences()?.peak_heap.found.word {
            Word::Lower | Word::Higher => return None,
            Word::Withheld | Word::NoData => "it is not known what recordings of one side differ by",
            _ => "the peak heaps differ by no more than those of one side's recordings do",
        };
        Some(text.to_owned())
    }
}

fn numbers(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}
