//! The memory of both variants at their peaks: parts that sum to the difference of max RSS.

mod allocated;
mod breakdown;
mod recordings;
mod resident;

use serde_json::{json, Value};
use widthwise_anatomy::heap::Composition;
use widthwise_experiment::units::Quantity;

use super::parts::{of_parts, points};
use crate::explanation::model::{Measured, Part, Section};
use crate::explanation::sentence::{coverage, noun};
use crate::format::{capitalized, listed};
use crate::heap::signed;
use crate::text::{paragraph, Palette};

pub use allocated::Allocated;
pub use breakdown::{is_copying, HeapParts, Variable};
pub use recordings::Recordings;
pub use resident::{Origin, Resident, Use};

/// The memory of two variants: first the baseline's, then the variant's.
pub struct Memory {
    /// Max RSS; of a tree of several processes, the peak of the tree.
    pub measured: Measured,
    /// The verdict on it, as a sentence.
    pub says: Option<String>,
    /// What is resident, by use, if it was read near the peak.
    pub resident: Option<[Resident; 2]>,
    /// What is allocated, if both heaps were recorded.
    pub allocated: Option<[Allocated; 2]>,
    /// The same of every recording, by which a part is certain or not.
    pub recordings: Recordings,
    /// The parts of the peak heap.
    pub heap: Vec<Part>,
    /// Variables of both programs.
    pub variables: Vec<Variable>,
    /// Parts that the text shows.
    pub top: usize,
    /// By so many bytes the kernel's account of max RSS may lag; 0 where it is exact.
    pub lag: u64,
    /// How the rest becomes known: what is missing, and the command that adds it.
    pub missing: Vec<String>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

impl Memory {
    fn all(&self) -> Vec<Part> {
        let heap = self.allocated.map(|allocated| HeapParts { allocated, parts: &self.heap });
        let Memory { measured, variables, recordings, .. } = self;
        let mut parts =
            breakdown::parts(measured, self.resident.as_ref(), heap.as_ref(), variables, recordings);
        parts.sort_by_key(|part| std::cmp::Reverse(part.amount.unsigned_abs()));
        parts
    }

    /// That the rest is within what the kernel's account may lag by, where it is.
    fn within_lag(&self, metric: &str) -> Option<String> {
        let rest = self.measured.difference() - self.all().iter().map(|part| part.amount).sum::<i64>();
        let is_within = metric == "max_rss" && rest != 0 && rest.unsigned_abs() <= self.lag;
        is_within.then(|| {
            format!(
                "the kernel's account of max RSS may lag by {}, since each CPU keeps some pages of it in a count of its own, and this is within \
                 that",
                Quantity { value: self.lag as f64, unit: self.measured.unit }
            )
        })
    }

    /// Why the parts are of other runs than the metric.
    fn of_other_runs(&self, metric: &str) -> Option<String> {
        let origin = self.resident.as_ref()?[0].origin;
        let is_tree = metric == "tree_peak";
        let of = match (is_tree, origin) {
            (true, Origin::Series) => {
                "is typical of all memory rounds, and the parts are from the largest reading of one run of each variant"
            }
            (true, Origin::Recording) => "is from the memory rounds, and the parts are from recorded runs",
            (false, Origin::Series) => "is from the timed rounds, and the parts are from runs of the memory series",
            (false, Origin::Recording) => "is from the timed rounds, and the parts are from recorded runs",
        };
        let metric = noun(metric);
        Some(match self.measured.is_bounded() {
            true => format!("{metric} {of}; the lower bounds of {metric} count here"),
            false => format!("{metric} {of}: their peaks differ by this much"),
        })
    }

    /// Where the parts are from.
    fn how(&self) -> String {
        let mut sources = Vec::new();
        match self.resident.as_ref().map(|sides| sides[0].origin) {
            Some(Origin::Series) => sources.push("the largest reading of the memory series"),
            Some(Origin::Recording) => sources.push("the largest reading of the recorded run"),
            None => {}
        }
        if self.allocated.is_some() {
            sources.push("the recording of the heap");
        }
        match sources.as_slice() {
            [] => String::new(),
            _ => {
                let metric = noun(self.measured.metric);
                format!("Parts: {}. Page tables are no part of {metric}.", listed(&sources))
            }
        }
    }
}

impl Section for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_of_runs(&self) -> bool {
        true
    }

    fn measured(&self) -> Vec<Measured> {
        vec![self.measured]
    }

    fn parts(&self) -> Vec<Part> {
        self.all()
    }

    fn reason(&self, metric: &str) -> Option<String> {
        let lag = self.within_lag(metric);
        if !self.missing.is_empty() {
            let lag = lag.map(|lag| capitalized(&lag) + ".");
            return Some(self.missing.iter().cloned().chain(lag).collect::<Vec<_>>().join(" "));
        }
        let reasons: Vec<String> = self.of_other_runs(metric).into_iter().chain(lag).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    fn text(&self, width: usize, palette: &Palette) -> String {
        let (strong, faint) = (palette.strong, palette.faint);
        let mut text = format!("{strong}Memory{strong:#}\n");
        for sentence in self.says.iter().cloned().chain([self.how()]).filter(|text| !text.is_empty()) {
            text += &paragraph(&sentence, width, faint);
        }
        let parts = self.all();
        text += &of_parts(&parts, self.top, width, palette);
        let own: Vec<&Part> = parts.iter().collect();
        let rest = self.measured.unexplained(&own, self.reason(self.measured.metric));
        if !parts.is_empty() {
            let amount = signed(rest.amount.into());
            let reason = rest
                .reason
                .as_ref()
                .map_or(String::new(), |reason| format!(" ({})", reason.trim_end_matches('.')));
            let amount = if rest.amount == 0 { "nothing".to_owned() } else { amount };
            let line = format!(
                "Not explained: {amount}, {} points{reason}. {}",
                points(rest.points),
                coverage(&rest, &own)
            );
            text += &paragraph(&line, width, faint);
        } else {
            for missing in &self.missing {
                text += &paragraph(missing, width, faint);
            }
        }
        for remark in &self.remarks {
            text += &paragraph(remark, width, faint);
        }
        text
    }

    fn json(&self) -> Value {
        let resident = |side: usize| {
            let of = self.resident.as_ref().map(|sides| &sides[side])?;
            Some(
                of.bytes
                    .iter()
                    .map(|(one, bytes)| (one.name(), json!(bytes)))
                    .collect::<serde_json::Map<_, _>>(),
            )
        };
        let allocated = |side: usize| {
            let Allocated { composition, word, is_glibc, .. } = self.allocated.as_ref()?[side];
            let Composition { blocks, requested, main, mapped, arenas, own } = composition;
            Some(json!({
                "blocks": blocks, "requested": requested, "main_arena": main, "mapped_blocks": mapped,
                "other_arenas": arenas, "own_mappings": own, "pointer_bytes": word, "glibc": is_glibc,
            }))
        };
        let side = |side: usize| json!({"resident": resident(side), "allocated": allocated(side)});
        let origin = self.resident.as_ref().map(|sides| match sides[0].origin {
            Origin::Series => "series",
            Origin::Recording => "recording",
        });
        json!({
            "metric": self.measured.metric,
            "says": self.says,
            "read_in": origin,
            "baseline": side(0),
            "variant": side(1),
            "missing": self.missing,
            "remarks": self.remarks,
        })
    }
}
