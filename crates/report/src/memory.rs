//! Memory over time, as every format shows it: one run for each variant, what its memory was for at the peak, and what
//! the variant saves of the baseline's.

pub mod difference;

use std::collections::BTreeSet;
use std::time::Duration;

use widthwise_experiment::memory::{reduction, Amounts, Class, Level, Reading, Series, Totals, NEAR_PEAK};
use widthwise_experiment::metric::{self, Family};
use widthwise_experiment::outcome::RoundKind;
use widthwise_experiment::Metric;
use widthwise_verdict::words::share;

use crate::amounts::{counted, duration, listed};
use crate::campaign::Campaign;
use crate::visible;

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
pub struct Portrait<'a> {
    /// The variant.
    pub variant: &'a str,
    /// The run.
    pub run: &'a MemoryRun,
    /// Its largest reading.
    pub peak: &'a Reading,
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

/// Whether the largest reading of a run is of about the size that glances have seen it to have.
fn is_near_peak(run: &MemoryRun) -> bool {
    let peak = metric::find("tree_peak").and_then(|peak| run.series.figure(peak)).unwrap_or(0.0);
    run.series.peak().is_some_and(|reading| reading.tree.amounts.resident as f64 >= NEAR_PEAK * peak)
}

/// Of each variant the run whose peak is the middle one, the lower of two; of those that were read near it, if there are any.
/// The baseline's twin is the baseline.
pub fn portraits<'a>(campaign: &Campaign<'a>) -> Vec<Portrait<'a>> {
    let peak = metric::find("tree_peak");
    let of_variant = |name: &'a str| {
        let mut runs = readable(campaign, name);
        if runs.iter().any(|run| is_near_peak(run)) {
            runs.retain(|run| is_near_peak(run));
        }
        let height = |run: &&MemoryRun| peak.and_then(|peak| run.series.figure(peak)).unwrap_or(0.0);
        runs.sort_by(|a, b| height(a).total_cmp(&height(b)).then(a.round.cmp(&b.round)));
        let run: &'a MemoryRun = runs.get(runs.len().checked_sub(1)? / 2)?;
        Some(Portrait { variant: name, run, peak: run.series.peak()? })
    };
    campaign.experiment.variants.iter().filter_map(|variant| of_variant(&variant.name)).collect()
}

/// The metrics of the series that were asked for.
pub fn metrics(campaign: &Campaign) -> Vec<Metric> {
    campaign.experiment.metrics.iter().copied().filter(|metric| metric.family == Family::Series).collect()
}

/// One line of the table: a name, and an amount for each portrait.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is counted.
    pub title: String,
    /// Bytes, in the order of the portraits.
    pub amounts: Vec<f64>,
    /// It is a sum of those above it.
    pub is_sum: bool,
}

impl Line {
    /// What each portrait saves of the first: rauschmayr-2013's reduction.
    pub fn reductions(&self) -> Vec<Option<f64>> {
        let baseline = self.amounts.first().copied().unwrap_or_default();
        self.amounts.iter().map(|amount| reduction(baseline, *amount)).collect()
    }
}

/// What memory is for at each portrait's peak, and other figures of it. The portraits begin with the baseline's.
pub fn lines(portraits: &[Portrait]) -> Vec<Line> {
    let line = |title: &str, is_sum, of: &dyn Fn(&Portrait) -> f64| Line {
        title: title.to_owned(),
        amounts: portraits.iter().map(of).collect(),
        is_sum,
    };
    let of_class = |portrait: &Portrait, class| portrait.run.series.of_class(portrait.peak, class);
    let mut lines: Vec<Line> = Class::ALL
        .into_iter()
        .map(|class| line(class.title(), false, &|portrait| of_class(portrait, class).resident as f64))
        .collect();
    lines.push(line("in all, resident", true, &|portrait| portrait.peak.tree.amounts.resident as f64));
    let figure = |name: &'static str| {
        move |portrait: &Portrait| {
            metric::find(name).and_then(|metric| portrait.run.series.figure(metric)).unwrap_or_default()
        }
    };
    lines.push(line("mean over time", true, &figure("tree_mean")));
    let amounts = |of: fn(&Amounts) -> u64| move |portrait: &Portrait| of(&portrait.peak.tree.amounts) as f64;
    lines.push(line("anonymous", true, &amounts(|amounts| amounts.anonymous)));
    lines.push(line("address space", true, &amounts(|amounts| amounts.virtual_bytes)));
    // Surveys do not know these.
    let full = |of: fn(&Totals) -> u64| {
        move |portrait: &Portrait| {
            portrait.run.series.full_peak().map_or(0.0, |reading| of(&reading.tree) as f64)
        }
    };
    lines.push(line("proportional (PSS)", true, &full(|totals| totals.amounts.pss)));
    lines.push(line("page tables", true, &full(|totals| totals.page_tables)));
    lines.push(line("huge pages", true, &full(|totals| totals.huge)));
    lines.push(line("swapped out", true, &full(|totals| totals.amounts.swap)));
    lines.retain(|line| line.amounts.iter().any(|amount| *amount > 0.0));
    lines
}

/// The portraits, the baseline's first; none without it, since there is nothing to compare with. A run of which nothing was
/// read near its peak does not say what memory was for then.
pub fn compared<'a>(campaign: &Campaign<'a>) -> Vec<Portrait<'a>> {
    let mut all = portraits(campaign);
    all.retain(|portrait| is_near_peak(portrait.run));
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
        ("glance", per(|series| series.glances_made)),
        ("survey", per(|series| series.surveys_made)),
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
        .map(|(mark, end)| (visible::line(&mark.text), mark.at_ns, end.max(mark.at_ns)))
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
