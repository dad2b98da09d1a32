//! Memory over time, as every format shows it: one run for each variant, what its memory was for at the peak, and what
//! the variant saves of the baseline's.

pub mod difference;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use widthwise_experiment::memory::{reduction, Class, Level, Reading, Series, Totals, AT_PEAK, NEAR_PEAK};
use widthwise_experiment::metric::{self, Family};
use widthwise_experiment::outcome::RoundKind;
use widthwise_experiment::Metric;
use widthwise_verdict::wording::share;
use widthwise_verdict::{Word, FEWEST_PAIRS};

use crate::campaign::Campaign;
use crate::format::{counted, duration, listed};
use crate::sanitize;

/// One run whose memory was read.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRun {
    /// The round's number.
    pub round: u32,
    /// The variant, or the baseline's twin.
    pub variant: String,
    /// What was read.
    pub series: Series,
}

/// The run that stands for a variant.
#[derive(Debug, Clone, Copy)]
pub struct LastReading<'a> {
    /// The variant.
    pub variant: &'a str,
    /// The run.
    pub run: &'a MemoryRun,
    /// Its largest reading.
    pub peak: &'a Reading,
    /// How much of the tree's peak that reading saw, 0 to 1.
    pub share: f64,
    /// Its largest full reading, if that saw as much: a survey does not know all.
    full: Option<&'a Reading>,
}

/// Runs of complete rounds, with a reading at least.
fn readable<'a>(campaign: &Campaign<'a>, variant: &str) -> Vec<&'a MemoryRun> {
    let complete: BTreeSet<u32> = campaign
        .rounds
        .iter()
        .filter(|round| round.kind == RoundKind::Memory)
        .map(|round| round.number)
        .collect();
    let all: &'a [MemoryRun] = campaign.memory;
    let own = all.iter().filter(|run| run.variant == variant && complete.contains(&run.round));
    own.filter(|run| !run.series.readings.is_empty()).collect()
}

/// How high the tree's peak may have been in a run: as its sample says, or, without one (archives of version 2), the highest
/// that was read. Infinite where nothing bounds it.
fn highest(campaign: &Campaign, run: &MemoryRun) -> f64 {
    let of_run = campaign.runs.iter().find(|other| other.round == run.round && other.variant == run.variant);
    let sampled = of_run.and_then(|of_run| of_run.sample.get("tree_peak")).map(|reading| reading.highest());
    let read = || metric::find("tree_peak").and_then(|peak| run.series.figure(peak)).unwrap_or(0.0);
    sampled.unwrap_or_else(read)
}

/// How much of the tree's peak a reading saw; at most 1.
fn share_of_peak(campaign: &Campaign, run: &MemoryRun, reading: &Reading) -> f64 {
    let highest = highest(campaign, run);
    if highest > 0.0 {
        (reading.tree.amounts.resident as f64 / highest).min(1.0)
    } else {
        0.0
    }
}

/// Whether the largest reading of a run says what memory was for at about its peak.
fn is_near_peak(campaign: &Campaign, run: &MemoryRun) -> bool {
    run.series.peak().is_some_and(|reading| share_of_peak(campaign, run, reading) >= NEAR_PEAK)
}

/// Of each variant the run whose peak is the middle one, the lower of two; of those that were read near it, if there are any.
/// The baseline's twin is the baseline.
pub fn portraits<'a>(campaign: &Campaign<'a>) -> Vec<LastReading<'a>> {
    let of_variant = |name: &'a str| {
        let mut runs = readable(campaign, name);
        if runs.iter().any(|run| is_near_peak(campaign, run)) {
            runs.retain(|run| is_near_peak(campaign, run));
        }
        let height = |run: &&MemoryRun| highest(campaign, run);
        runs.sort_by(|a, b| height(a).total_cmp(&height(b)).then(a.round.cmp(&b.round)));
        let run: &'a MemoryRun = runs.get(runs.len().checked_sub(1)? / 2)?;
        let peak = run.series.peak()?;
        let full = run.series.full_peak().filter(|full| share_of_peak(campaign, run, full) >= NEAR_PEAK);
        Some(LastReading { variant: name, run, peak, share: share_of_peak(campaign, run, peak), full })
    };
    campaign.experiment.variants.iter().filter_map(|variant| of_variant(&variant.name)).collect()
}

/// The metrics of the series that were asked for; without the control group's where none could be made.
pub fn metrics(campaign: &Campaign) -> Vec<Metric> {
    let has_group = campaign.runs.iter().any(|run| run.sample.contains_key("tree_charged"));
    let own = campaign.experiment.metrics.iter().copied().filter(|metric| metric.family == Family::Series);
    own.filter(|metric| has_group || metric.name != "tree_charged").collect()
}

/// One line of the table: a name, and an amount for each portrait.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is counted.
    pub title: String,
    /// Bytes, in the order of the portraits; absent where it was not read at the peak.
    pub amounts: Vec<Option<f64>>,
    /// What each portrait saves of the first (rauschmayr-2013's reduction), where the runs tell that they differ.
    pub reductions: Vec<Option<f64>>,
    /// It is a sum of those above it.
    pub is_sum: bool,
}

/// An amount of a run, if it was read near the run's peak.
type AmountOf<'a> = &'a dyn Fn(&MemoryRun, &Reading) -> Option<f64>;

/// What memory is for at each portrait's peak, and other figures of it. The portraits begin with the baseline's.
pub fn lines(campaign: &Campaign, portraits: &[LastReading]) -> Vec<Line> {
    let line = |title: &str, is_sum, verdict: Option<&str>, of: AmountOf| {
        let amounts: Vec<Option<f64>> = portraits
            .iter()
            .map(|portrait| {
                of(portrait.run, portrait.full.filter(|_| is_of_full(title)).unwrap_or(portrait.peak))
            })
            .collect();
        let reductions = portraits.iter().zip(&amounts).enumerate().map(|(place, (portrait, amount))| {
            let (baseline, variant) = (amounts.first().copied().flatten()?, (*amount)?);
            let first = portraits.first().filter(|_| place > 0)?;
            let order = told(campaign, first.variant, portrait.variant, verdict, of)?;
            // The runs in the table may be an exception to what most of them say.
            let agrees = variant.partial_cmp(&baseline) == Some(order);
            agrees.then(|| reduction(baseline, variant)).flatten()
        });
        Line { title: title.to_owned(), reductions: reductions.collect(), amounts, is_sum }
    };
    let mut lines = Vec::new();
    for class in Class::ALL {
        let of =
            |run: &MemoryRun, reading: &Reading| Some(run.series.of_class(reading, class).resident as f64);
        let verdict = match class {
            Class::Heap => Some("tree_heap"),
            Class::Mmapped => Some("tree_mmapped"),
            Class::Stack => Some("tree_stacks"),
            Class::Library => Some("tree_libraries"),
            _ => None,
        };
        lines.push(line(class.title(), false, verdict, &of));
    }
    let whole = |_: &MemoryRun, reading: &Reading| Some(reading.tree.amounts.resident as f64);
    lines.push(line("in all, resident", true, Some("tree_peak"), &whole));
    let mean =
        |run: &MemoryRun, _: &Reading| metric::find("tree_mean").and_then(|metric| run.series.figure(metric));
    lines.push(line("mean over time", true, Some("tree_mean"), &mean));
    let anonymous = |_: &MemoryRun, reading: &Reading| Some(reading.tree.amounts.anonymous as f64);
    lines.push(line("anonymous", true, Some("tree_anonymous"), &anonymous));
    let address_space = |_: &MemoryRun, reading: &Reading| Some(reading.tree.amounts.virtual_bytes as f64);
    lines.push(line("address space", true, None, &address_space));
    for (title, verdict, of) in FULL {
        let known = |_: &MemoryRun, reading: &Reading| reading.full.then(|| of(&reading.tree) as f64);
        lines.push(line(title, true, verdict, &known));
    }
    lines.retain(|line| line.amounts.iter().flatten().any(|amount| *amount > 0.0));
    lines
}

/// A line of what only a full reading knows: its title, the metric of its verdict, and where it stands.
type FullLine = (&'static str, Option<&'static str>, fn(&Totals) -> u64);

const FULL: [FullLine; 4] = [
    ("proportional (PSS)", Some("tree_pss"), |totals| totals.amounts.pss),
    ("page tables", Some("tree_page_tables"), |totals| totals.page_tables),
    ("huge pages", None, |totals| totals.huge),
    ("swapped out", None, |totals| totals.amounts.swap),
];

fn is_of_full(title: &str) -> bool {
    FULL.iter().any(|(full, ..)| *full == title)
}

/// Whether `b` is known to have less or more than `a`: by the verdict, where there is one on these two, or because no run of
/// the one has as much as any run of the other, in as many runs as a verdict takes.
fn told(campaign: &Campaign, a: &str, b: &str, verdict: Option<&str>, of: AmountOf) -> Option<Ordering> {
    if let Some(metric) = verdict.and_then(metric::find) {
        if let Some(order) = judged(campaign, a, b, metric) {
            return order;
        }
    }
    let range = |name: &str| {
        let runs = readable(campaign, name);
        let near = runs.iter().filter(|run| is_near_peak(campaign, run));
        let amounts: Vec<f64> = near.filter_map(|run| of(run, run.series.peak()?)).collect();
        let least = amounts.iter().copied().fold(f64::INFINITY, f64::min);
        let most = amounts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (amounts.len() >= FEWEST_PAIRS as usize).then_some((least, most))
    };
    let ((least_a, most_a), (least_b, most_b)) = (range(a)?, range(b)?);
    if most_b < least_a {
        Some(Ordering::Less)
    } else if least_b > most_a {
        Some(Ordering::Greater)
    } else {
        None
    }
}

/// What the verdict says of `b` beside `a`; nothing where no verdict was made of these two.
pub(crate) fn judged(campaign: &Campaign, a: &str, b: &str, metric: Metric) -> Option<Option<Ordering>> {
    let order = |name: &str| {
        campaign.verdict(name, metric).map(|verdict| match verdict.word {
            Word::Lower => Some(Ordering::Less),
            Word::Higher => Some(Ordering::Greater),
            Word::NoDifference | Word::Inconclusive | Word::Withheld | Word::NoData => None,
        })
    };
    if a == campaign.experiment.baseline {
        order(b)
    } else if b == campaign.experiment.baseline {
        order(a).map(|order| order.map(Ordering::reverse))
    } else {
        None
    }
}

/// What the table of these portraits is of: `at the peak`, or how much of the peak was read.
pub fn moment(portraits: &[LastReading]) -> String {
    let least = portraits.iter().map(|portrait| portrait.share).fold(1.0, f64::min);
    if least >= AT_PEAK {
        "at the peak".to_owned()
    } else {
        format!("at {:.0} % of the peak", (100.0 * least).floor())
    }
}

/// The portraits, the baseline's first; none without it, since there is nothing to compare with. A run of which nothing was
/// read near its peak does not say what memory was for then.
pub fn compared<'a>(campaign: &Campaign<'a>) -> Vec<LastReading<'a>> {
    let mut all = portraits(campaign);
    all.retain(|portrait| portrait.share >= NEAR_PEAK);
    match all.iter().position(|portrait| portrait.variant == campaign.experiment.baseline) {
        Some(place) => {
            let baseline = all.remove(place);
            all.insert(0, baseline);
            all
        }
        None => Vec::new(),
    }
}

/// A reduction in per cent: `40.0 %`, `−3.1 %`.
pub fn percent(reduction: f64) -> String {
    let text = format!("{:.1}", (100.0 * reduction).abs());
    let sign = if reduction < 0.0 && text != "0.0" { "−" } else { "" };
    format!("{sign}{text} %")
}

/// How memory was read, in a sentence or two; nothing if it was not.
pub fn how(campaign: &Campaign) -> Option<String> {
    let rounds = campaign.rounds.iter().filter(|round| round.kind == RoundKind::Memory).count();
    if rounds == 0 {
        return None;
    }
    let complete: BTreeSet<u32> = campaign
        .rounds
        .iter()
        .filter(|round| round.kind == RoundKind::Memory)
        .map(|round| round.number)
        .collect();
    let runs: Vec<&Series> =
        campaign.memory.iter().filter(|run| complete.contains(&run.round)).map(|run| &run.series).collect();
    let per = |count: fn(&Series) -> u64| {
        let (time, all) = runs.iter().fold((0u64, 0u64), |(time, all), series| {
            (time.saturating_add(series.wall_ns), all.saturating_add(count(series)))
        });
        (all > 0).then(|| duration(Duration::from_nanos(time / all)))
    };
    let cost = runs.iter().map(|series| series.cost()).fold(0.0, f64::max);
    let counts = [
        ("glance", per(|series| series.statm_samples_made)),
        ("survey", per(|series| series.pagemap_scans_made)),
        ("full reading", per(|series| series.readings_made)),
    ];
    let every: Vec<String> =
        counts.into_iter().filter_map(|(noun, often)| Some(format!("a {noun} every {}", often?))).collect();
    let every = if every.is_empty() { String::new() } else { format!("{}; ", listed(&every)) };
    Some(format!(
        "Memory over time, in {}: {every}reading took at most {} of a run.",
        counted(rounds, "round") + if rounds == 1 { " of its own" } else { " of their own" },
        share(cost)
    ))
}

/// The readings with the moments between which each is known to hold: as long as glances saw the size that it saw, to one
/// in a hundred. Each reading comes once for the beginning of that time and once for its end.
pub fn held(series: &Series) -> Vec<(u64, &Reading)> {
    let levels = series.levels();
    let mut points: Vec<(u64, &Reading)> = Vec::new();
    for (place, reading) in series.readings.iter().enumerate() {
        let size = reading.tree.amounts.resident;
        let same = |level: &&Level| level.resident.abs_diff(size) <= size / 100;
        let here = levels.partition_point(|level| level.at_ns < reading.at_ns);
        let before = points.last().map_or(0, |(at, _)| *at);
        let next = series.readings.get(place + 1).map_or(u64::MAX, |next| next.at_ns);
        let from =
            levels[..here].iter().rev().take_while(same).last().map_or(reading.at_ns, |level| level.at_ns);
        let to = levels[here..].iter().take_while(|level| level.at_ns < next).take_while(same).last();
        let to = to.map_or(reading.at_ns, |level| level.at_ns);
        points.push((from.max(before), reading));
        points.push((to.max(before), reading));
    }
    points
}

/// A program's phases in a run: name, beginning and end, in nanoseconds; what comes before the first mark has no name.
pub fn phases(series: &Series) -> Vec<(String, u64, u64)> {
    let ends = series.marks.iter().skip(1).map(|mark| mark.at_ns).chain([series.wall_ns]);
    series
        .marks
        .iter()
        .zip(ends)
        .map(|(mark, end)| (sanitize::line(&mark.text), mark.at_ns, end.max(mark.at_ns)))
        .collect()
}

/// The highest resident memory of the tree in each phase; nothing for a phase in which nothing was read.
pub fn phase_peaks(series: &Series) -> Vec<(String, Option<u64>)> {
    let levels = series.levels();
    phases(series)
        .into_iter()
        .map(|(name, from, to)| {
            let inside = levels.iter().filter(|level| (from..=to).contains(&level.at_ns));
            (name, inside.map(|level| level.resident).max())
        })
        .collect()
}
