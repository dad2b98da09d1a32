//! The heap of both variants at its peak: the types and sites whose blocks make the difference.

mod causes;
mod moved_sites;

use std::collections::BTreeMap;

use serde_json::{json, Value};
use widthwise_anatomy::heap::site::{Pair, SiteKey};
use widthwise_anatomy::heap::types::TypedPair;
use widthwise_anatomy::heap::Values;
use widthwise_anatomy::Certainty;
use widthwise_experiment::units::Unit;
use widthwise_verdict::repeats::FEWEST_RECORDINGS;
use widthwise_verdict::Word;

use self::causes::{of_site, of_type};
use self::moved_sites::{is_moved, of_moved};
use crate::explanation::model::{Basis, Measured, Part, Section};
use crate::heap::{self, SitePeaks};
use crate::text::{paragraph, Palette};

/// The heaps of two variants, with their sites.
pub struct Heap<'a> {
    /// Both sides, their sites, and the sentences; its two sides are complete.
    pub heaps: heap::Explanation<'a>,
    /// Sites that the text shows.
    pub top: usize,
    /// How each variant gets a second recording, in sentences.
    pub repeats: String,
}

impl Heap<'_> {
    fn peaks(&self) -> [i64; 2] {
        let bytes = |side: &heap::Side| i64::try_from(side.peak_bytes).unwrap_or(i64::MAX);
        [bytes(self.heaps.a), self.heaps.b.map_or(0, bytes)]
    }

    /// The peak heap; of several processes, the sum of their peak heaps.
    pub fn peak(&self) -> Measured {
        let basis = self
            .heaps
            .differences()
            .map_or(Basis::Unjudged, |differences| Basis::Judged(differences.peak_heap.found.word));
        let processes = self.heaps.b.map_or(1, |b| b.processes).max(self.heaps.a.processes);
        let metric = if processes > 1 { "peak_heap_sum" } else { "peak_heap" };
        Measured { basis, ..Measured::counted(metric, Unit::Bytes, self.peaks()) }
    }

    /// Whether the spread between the recordings of each variant is known.
    fn is_repeated(&self) -> bool {
        let mut sides = std::iter::once(self.heaps.a).chain(self.heaps.b);
        sides.all(|side| side.recordings.len() >= FEWEST_RECORDINGS)
    }
}

/// The parts by type; two sites that are one are compared with each other.
fn typed(measured: &Measured, pairs: &[TypedPair], most: &dyn Fn(&TypedPair) -> Certainty) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut moved: Vec<bool> = vec![false; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let is_other = |(other, at): &(&TypedPair, usize)| !moved[*at] && is_moved(pair, other);
        let other = pairs.iter().zip(0..).filter(|_| !moved[index]).find(is_other);
        if let Some((other, at)) = other {
            parts.push(of_moved(measured, pair, other, most(pair).min(most(other))));
            (moved[index], moved[at]) = (true, true);
        }
    }
    let others = pairs.iter().zip(moved).filter(|(_, moved)| !moved);
    parts.extend(others.flat_map(|(pair, _)| of_type(measured, pair, most(pair))));
    parts
}

impl Section for Heap<'_> {
    fn name(&self) -> &'static str {
        "heap"
    }

    fn is_of_runs(&self) -> bool {
        true
    }

    fn measured(&self) -> Vec<Measured> {
        vec![self.peak()]
    }

    fn parts(&self) -> Vec<Part> {
        let measured = self.peak();
        let (pairs, peaks) = (self.heaps.pairs, self.heaps.site_peaks);
        let most = |index: usize| peaks.get(index).map_or(Certainty::Medium, SitePeaks::certainty);
        if let Some(types) = self.heaps.types {
            let mut by_site: BTreeMap<SiteKey, Certainty> = BTreeMap::new();
            for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| pair.saving() != 0) {
                let certainty = by_site.entry(pair.site.key()).or_insert(most(index));
                *certainty = (*certainty).min(most(index));
            }
            let repeated = if self.is_repeated() { Certainty::High } else { Certainty::Medium };
            // Types of a site without a difference compensate each other.
            let of_type = |pair: &TypedPair| by_site.get(&pair.site.key()).copied().unwrap_or(repeated);
            return typed(&measured, &types.pairs, &of_type);
        }
        let differing = pairs.iter().enumerate().filter(|(_, pair)| pair.saving() != 0);
        differing.flat_map(|(index, pair)| of_site(&measured, pair, most(index))).collect()
    }

    fn verdict_reason(&self, _: &str) -> Option<String> {
        let found = self.heaps.differences()?.peak_heap.found;
        let reason = found.reason.filter(|_| found.word == Word::Withheld)?;
        let mut sentences = format!("{reason}.");
        if !self.is_repeated() {
            sentences += &format!(" {}", self.repeats);
        }
        Some(sentences)
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let mut text = format!("{strong}Heap{strong:#}\n");
        text += &match self.heaps.types_text(width, palette) {
            types if types.trim().is_empty() || self.heaps.types.is_none() => self.heaps.table(palette),
            types => types.trim_start_matches('\n').to_owned(),
        };
        for sentence in self.heaps.sentences() {
            text += &paragraph(&sentence, width, faint);
        }
        for remark in self.heaps.remarks() {
            text += &paragraph(&remark, width, faint);
        }
        text
    }

    fn json(&self) -> Value {
        let side = |side: &heap::Side| {
            json!({
                "peak_bytes": side.peak_bytes,
                "peak_blocks": side.peak_blocks,
                "peak_chunk_bytes": side.peak_chunk_bytes,
                "processes": side.processes,
                "recordings": side.recordings.len(),
            })
        };
        let values = |values: &Values| {
            json!({
                "peak_bytes": values.peak_bytes,
                "peak_blocks": values.peak_count,
                "peak_chunk_bytes": values.peak_chunk_bytes,
            })
        };
        let site = |pair: &Pair| {
            json!({
                "function": pair.site.function,
                "file": pair.site.file,
                "line": pair.site.line,
                "module": pair.site.module,
                "made": pair.site.made,
                "baseline": values(&pair.a),
                "variant": values(&pair.b),
            })
        };
        json!({
            "baseline": side(self.heaps.a),
            "variant": self.heaps.b.map(side),
            "sites": self.heaps.pairs.iter().map(site).collect::<Vec<_>>(),
            "remarks": self.heaps.remarks(),
        })
    }
}
