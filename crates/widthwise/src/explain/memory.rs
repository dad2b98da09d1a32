//! The memory of two variants: what the campaign measured, read and recorded of it.

use std::path::Path;

use widthwise_experiment::memory::{Class, Part as MappedPart, NEAR_PEAK};
use widthwise_experiment::metric;
use widthwise_experiment::model::Thp;
use widthwise_experiment::units::Unit;
use widthwise_experiment::VariantStatus;
use widthwise_measure::passes::heap::LargestReading;
use widthwise_report::explanation::memory::{
    is_copying, Allocated, Memory, Origin, Recordings, Resident, Variable,
};
use widthwise_report::explanation::{Basis, Measured, Part};
use widthwise_report::memory::{how, near_peaks, portraits, unread, Unread};
use widthwise_report::Comparison;
use widthwise_verdict::{wording, Verdict, Word};

use super::heaps::Heaps;
use crate::load_report::rss_lag;
use crate::runs_of_their_own;

/// What the memory of two variants is known by.
pub struct Sources<'a> {
    /// The campaign.
    pub comparison: &'a Comparison<'a>,
    /// The baseline's name and the variant's.
    pub names: [&'a str; 2],
    /// Their recorded heaps, if both recordings are complete.
    pub heaps: Option<&'a Heaps>,
    /// The parts of their peak heap.
    pub heap: Vec<Part>,
    /// Variables of their programs.
    pub variables: Vec<Variable>,
    /// Rows of the table.
    pub top: usize,
}

/// Why what is resident beyond the blocks of several processes is one part.
const SEVERAL: &str = "What is resident beyond the blocks is one part for processes that were forked, of low certainty: pages that a \
    process copies after a fork, what the allocator keeps and what is never written to are not distinguished. (A block from before a \
    fork counts once in the recording, and each copied page once more in the reading, which is of another moment.)";

/// What huge pages leave open.
const HUGE_PAGES: &str = "The kernel gives huge pages (2 MiB) to one of them or to both, or their settings of transparent huge pages \
    differ. A huge page is resident as a whole: what is resident beyond the blocks, or is not resident, does not tell what the allocator \
    keeps and what is never written to.";

impl Sources<'_> {
    /// The section; none where max RSS of one of them was not measured.
    pub fn section(self) -> Option<Memory> {
        let mut missing = Vec::new();
        let mut remarks = Vec::new();
        let mut below_peak = Vec::new();
        let series = self.of_series(&mut missing, &mut below_peak);
        let resident = match series {
            Some(series) => Some(series),
            None => self.of_recording(&mut below_peak),
        };
        if resident.as_ref().is_some_and(|sides| sides[0].origin == Origin::Recording) {
            // A recorded run has every use, too; what the recorder makes it touch is in it.
            remarks.append(&mut missing);
        }
        let is_tree = resident.as_ref().is_some_and(|sides| sides.iter().any(|side| side.processes > 1));
        let measured = is_tree.then(|| self.measured("tree_peak")).flatten();
        let measured = match measured {
            Some(measured) => {
                remarks.push(
                    "The parts are those of all processes together, at the peak of the tree.".to_owned(),
                );
                measured
            }
            None => self.measured("max_rss")?,
        };
        // Parts of a whole tree do not sum to the largest process.
        let resident = resident.filter(|_| !is_tree || measured.metric == "tree_peak");
        if resident.is_some() {
            remarks.append(&mut below_peak);
        }
        if self.heaps.is_none() {
            missing.push(self.command("--heap", "records what the program allocates, by site and type"));
        }
        let says = self.verdict(measured.metric).map(|verdict| format!("{}.", wording::sentence(&verdict)));
        let allocated = self.allocated();
        if let (Some(resident), Some(allocated)) = (&resident, &allocated) {
            if is_copying(resident, allocated) {
                remarks.push(SEVERAL.to_owned());
            }
        }
        let resident = self.with_huge_pages(resident);
        if resident.as_ref().is_some_and(|sides| sides.iter().any(|side| side.has_huge_pages)) {
            remarks.push(HUGE_PAGES.to_owned());
        }
        let recordings = self.recordings(resident.as_ref());
        let campaign = &self.comparison.campaign;
        let lag = rss_lag(&campaign.experiment.launch, campaign.machine);
        let Sources { heap, variables, top, .. } = self;
        let heap = if allocated.is_some() { heap } else { Vec::new() };
        Some(Memory {
            measured,
            says,
            resident,
            allocated,
            recordings,
            heap,
            variables,
            top,
            lag,
            missing,
            remarks,
        })
    }

    /// Both with huge pages, where the settings of transparent huge pages differ or ask for them.
    fn with_huge_pages(&self, resident: Option<[Resident; 2]>) -> Option<[Resident; 2]> {
        let variants = &self.comparison.campaign.experiment.variants;
        let thp = |name| variants.iter().find(|one| one.name == name).map(|one| one.thp);
        let [a, b] = self.names.map(thp);
        let asks = Thp::may_explain_difference(a, b);
        Some(resident?.map(|side| side.asking_for_huge_pages(asks)))
    }

    fn command(&self, flag: &str, does: &str) -> String {
        command(self.comparison, self.names, flag, does)
    }

    /// The verdict on both in that metric, the first one being the baseline; none where neither is the campaign's.
    fn verdict(&self, name: &str) -> Option<Verdict> {
        let [a, b] = self.names;
        let verdict = self.comparison.between(metric::find(name)?, a, b)?;
        // A reason why there is none is about the campaign's variant.
        let is_difference = matches!(verdict.word, Word::Lower | Word::Higher);
        Some(if verdict.variant != b && is_difference { verdict.reversed() } else { verdict.clone() })
    }

    fn measured(&self, name: &'static str) -> Option<Measured> {
        let found = metric::find(name)?;
        let [from, to] = self.names.map(|name| self.comparison.typical(name, found));
        let (from, to) = (from?, to?);
        let (baseline, variant) = (from.value.round() as i64, to.value.round() as i64);
        let verdict = self.verdict(name);
        let basis = verdict.as_ref().map_or(Basis::Unjudged, |verdict| Basis::Judged(verdict.word));
        let uppers = [from.upper, to.upper];
        let estimate = verdict.as_ref().and_then(wording::size);
        Some(Measured { metric: name, unit: Unit::Bytes, baseline, variant, basis, uppers, estimate })
    }

    /// The largest readings of the memory series; nothing where one variant was not read near its peak. `below_peak` gets a remark for
    /// each that does not count as a reading of the peak.
    fn of_series(&self, missing: &mut Vec<String>, below_peak: &mut Vec<String>) -> Option<[Resident; 2]> {
        let all = portraits(self.comparison);
        let [a, b] = self.names.map(|name| all.iter().find(|portrait| portrait.variant == name));
        let (Some(a), Some(b)) = (a, b) else {
            match how(self.comparison) {
                None => missing.push(self.command("--memory", "reads what is resident, by use")),
                Some(_) => missing.extend(self.without_series()),
            }
            return None;
        };
        if let Some(low) = [a, b].into_iter().find(|portrait| portrait.share < NEAR_PEAK) {
            missing.push(format!(
                "The memory series of {} saw {:.0} %{} of its peak: what is resident at the peak is not known.",
                low.variant,
                (100.0 * low.share).floor(),
                low.or_more()
            ));
            return None;
        }
        let below = [a, b].into_iter().filter(|portrait| !portrait.is_at_peak());
        below_peak.extend(below.map(|portrait| read_below_peak(portrait.variant, &portrait.share_text())));
        Some(
            [a, b]
                .map(|portrait| Resident::of_series(&portrait.run.series, portrait.peak).at(portrait.share)),
        )
    }

    /// Why the campaign's memory series says nothing of one of both, or of both.
    fn without_series(&self) -> Vec<String> {
        const UNKNOWN: &str = "what is resident at its peak is not known by use";
        let why = |name: &&str| {
            let unread = unread(self.comparison, name)?;
            let status = self.comparison.campaign.status(name);
            Some(match (runs_of_their_own::obstacle(status), unread) {
                (Some(obstacle), Unread::NoRun) => {
                    format!("The memory series has no run of {name} ({obstacle}): {UNKNOWN}.")
                }
                (None, Unread::NoRun) => format!("The memory series has no run of {name}: {UNKNOWN}."),
                (_, Unread::Failed) => format!("All runs of {name} in the memory series failed: {UNKNOWN}."),
                (_, Unread::TooShort) => {
                    format!("The runs of {name} are too short for a memory series: {UNKNOWN}.")
                }
                (_, Unread::NoReading) => {
                    format!("No reading of {name} succeeded in the memory series: {UNKNOWN}.")
                }
            })
        };
        self.names.iter().filter_map(why).collect()
    }

    /// The largest readings of the recorded runs; nothing where these are far below max RSS.
    fn of_recording(&self, below_peak: &mut Vec<String>) -> Option<[Resident; 2]> {
        let heaps = self.heaps?;
        let max_rss = self.measured("max_rss")?;
        let of = |side: usize, whole: i64| {
            let resident = of_largest(heaps.read.get(side)?.largest.as_ref()?);
            let share = (resident.total() as f64 / whole as f64).min(1.0);
            (share >= NEAR_PEAK).then(|| resident.at(share))
        };
        let both = [of(0, max_rss.baseline)?, of(1, max_rss.variant)?];
        let below = self.names.iter().zip(&both).filter(|(_, one)| !one.is_at_peak());
        below_peak.extend(
            below.map(|(name, one)| read_below_peak(name, &format!("{:.0} %", (100.0 * one.share).floor()))),
        );
        Some(both)
    }

    /// What every recording of both read; the resident memory of the origin that the parts are from, and with its share of the peak.
    fn recordings(&self, parts: Option<&[Resident; 2]>) -> Recordings {
        let read = |side: usize| self.heaps.and_then(|heaps| heaps.read.get(side));
        let allocated = [0, 1].map(|side| read(side).map_or(Vec::new(), |read| read.all_allocated.clone()));
        let of_side = |side: usize, parts: &Resident| -> Vec<Resident> {
            let all: Vec<Resident> = match parts.origin {
                Origin::Series => {
                    let readings = near_peaks(self.comparison, self.names[side]).into_iter();
                    readings.map(|(run, peak)| Resident::of_series(&run.series, peak)).collect()
                }
                Origin::Recording => {
                    read(side).map_or(Vec::new(), |read| read.all_largest.iter().map(of_largest).collect())
                }
            };
            all.into_iter().map(|one| one.at(parts.share)).collect()
        };
        let resident = parts.map_or_else(Default::default, |[a, b]| [of_side(0, a), of_side(1, b)]);
        Recordings { resident, allocated }
    }

    fn allocated(&self) -> Option<[Allocated; 2]> {
        let heaps = self.heaps?;
        Some([heaps.read.first()?.allocated?, heaps.read.get(1)?.allocated?])
    }
}

/// What a reading below the peak leaves open.
fn read_below_peak(variant: &str, share: &str) -> String {
    format!(
        "The largest reading of {variant} saw {share} of its peak: what the rest was for is not known. A part that was read and is not larger \
         than that rest is of low certainty."
    )
}

/// The command that adds what is missing of two variants, and what it does.
pub fn command(comparison: &Comparison, names: [&str; 2], flag: &str, does: &str) -> String {
    let campaign = &comparison.campaign;
    let obstacles = names.iter().map(|name| (name, campaign.status(name)));
    let mut obstacles = obstacles.filter_map(|(name, status)| {
        Some((format!(" {name} is {}.", runs_of_their_own::obstacle(status)?), status))
    });
    let (why, status) = obstacles.next().unwrap_or((String::new(), &VariantStatus::Ready));
    let needed = runs_of_their_own::needed(Path::new(&campaign.folder), flag, status);
    let needed = match needed.strip_prefix('a') {
        Some(rest) => format!("A{rest}"),
        None => needed,
    };
    format!("{needed} {does}.{why}")
}

fn of_largest(largest: &LargestReading) -> Resident {
    let known = largest.parts.iter().filter_map(|part| {
        let class = Class::find(&part.class)?;
        Some((MappedPart { class, name: part.name.clone() }, part.bytes))
    });
    Resident::of_recording(known, largest.processes)
}
