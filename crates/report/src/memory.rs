//! Memory over time, as in every format: one run for each variant, what its memory is for at the peak, and
//! what the variant saves relative to the baseline.

pub mod difference;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use widthwise_experiment::memory::{
    reduction, Class, Level, Reading, Series, Totals, AT_PEAK, BRIEF_NS, NEAR_PEAK,
};
use widthwise_experiment::metric;
use widthwise_experiment::outcome::{Ending, Reading as Amount, RoundKind, Run};
use widthwise_experiment::Metric;
use widthwise_verdict::wording::share;
use widthwise_verdict::{Word, FEWEST_PAIRS};

use crate::comparison::{Comparison, MemoryRun};
use crate::format::{counted, duration, listed};
use crate::report_text::{self, Gap};
use crate::sanitize;

/// The run that represents a variant.
#[derive(Debug, Clone, Copy)]
pub struct LastReading<'a> {
    /// The variant.
    pub variant: &'a str,
    /// The run.
    pub run: &'a MemoryRun,
    /// Its largest reading.
    pub peak: &'a Reading,
    /// The share of the tree's peak that this reading has, 0 to 1: at least, if the peak has two bounds.
    pub share: f64,
    /// Whether the peak has two bounds, of which the share is the upper one's.
    has_two_bounds: bool,
    /// Its largest smaps snapshot, if that has the same share: a pagemap scan lacks some figures.
    full: Option<&'a Reading>,
}

impl LastReading<'_> {
    /// Behind its share in per cent: the share is the least that it may be.
    pub fn or_more(&self) -> &'static str {
        if self.has_two_bounds {
            " or more"
        } else {
            ""
        }
    }

    /// Whether the reading saw the peak: only then can its amounts be compared with another variant's.
    pub fn is_at_peak(&self) -> bool {
        self.share >= AT_PEAK
    }

    /// Its share of the run's own peak: `83 % or more`.
    pub fn share_text(&self) -> String {
        format!("{:.0} %{}", (100.0 * self.share).floor(), self.or_more())
    }
}

/// Runs of complete rounds that ended well, with at least one reading.
fn readable<'a>(comparison: &Comparison<'a>, variant: &str) -> Vec<&'a MemoryRun> {
    let own = of_complete_rounds(comparison, variant).into_iter();
    own.filter(|run| !run.series.readings.is_empty() && !has_failed(comparison, run)).collect()
}

fn has_failed(comparison: &Comparison, run: &MemoryRun) -> bool {
    of_run(comparison, run).is_some_and(|of_run| of_run.ending != Ending::Done)
}

/// The numbers of the memory rounds that are complete.
fn complete_rounds(comparison: &Comparison) -> BTreeSet<u32> {
    let rounds = comparison.campaign.rounds.iter();
    rounds.filter(|round| round.kind == RoundKind::Memory).map(|round| round.number).collect()
}

fn of_complete_rounds<'a>(comparison: &Comparison<'a>, variant: &str) -> Vec<&'a MemoryRun> {
    let complete = complete_rounds(comparison);
    let all: &'a [MemoryRun] = comparison.memory;
    all.iter().filter(|run| run.variant == variant && complete.contains(&run.round)).collect()
}

/// The upper bound of the tree's peak in a run: its sample's or, without one (archives of version 2), the
/// highest reading. Infinite where there is no bound.
fn highest(comparison: &Comparison, run: &MemoryRun) -> f64 {
    let read = || metric::find("tree_peak").and_then(|peak| run.series.figure(peak)).unwrap_or(0.0);
    sampled_peak(comparison, run).map_or_else(read, Amount::highest)
}

/// The tree's peak in a run, with its bounds.
fn sampled_peak<'a>(comparison: &Comparison<'a>, run: &MemoryRun) -> Option<&'a Amount> {
    of_run(comparison, run)?.sample.get("tree_peak")
}

/// The run of a series.
fn of_run<'a>(comparison: &Comparison<'a>, run: &MemoryRun) -> Option<&'a Run> {
    let all: &'a [Run] = comparison.runs;
    all.iter().find(|other| other.round == run.round && other.variant == run.variant)
}

/// The share of the tree's peak that a reading has; at most 1.
fn share_of_peak(comparison: &Comparison, run: &MemoryRun, reading: &Reading) -> f64 {
    let highest = highest(comparison, run);
    if highest > 0.0 {
        (run.series.of_program(reading).resident as f64 / highest).min(1.0)
    } else {
        0.0
    }
}

/// Whether the largest reading of a run has at least this share of its peak.
fn has_share(comparison: &Comparison, run: &MemoryRun, least: f64) -> bool {
    run.series.peak().is_some_and(|reading| share_of_peak(comparison, run, reading) >= least)
}

/// For each variant the run with the median peak, the lower of two; only runs that were read at the peak or,
/// if there are none, near the peak, if there are any. The A/A control is left out.
pub fn portraits<'a>(comparison: &Comparison<'a>) -> Vec<LastReading<'a>> {
    let of_variant = |name: &'a str| {
        let mut runs = readable(comparison, name);
        let has_any = |least: &f64| runs.iter().any(|run| has_share(comparison, run, *least));
        if let Some(least) = [AT_PEAK, NEAR_PEAK].into_iter().find(has_any) {
            runs.retain(|run| has_share(comparison, run, least));
        }
        let height = |run: &&MemoryRun| highest(comparison, run);
        runs.sort_by(|a, b| height(a).total_cmp(&height(b)).then(a.round.cmp(&b.round)));
        let run: &'a MemoryRun = runs.get(runs.len().checked_sub(1)? / 2)?;
        let peak = run.series.peak()?;
        let full = run.series.full_peak().filter(|full| share_of_peak(comparison, run, full) >= NEAR_PEAK);
        let share = share_of_peak(comparison, run, peak);
        let has_two_bounds = sampled_peak(comparison, run).is_some_and(|peak| peak.upper.is_some());
        Some(LastReading { variant: name, run, peak, share, has_two_bounds, full })
    };
    comparison.campaign.experiment.variants.iter().filter_map(|variant| of_variant(&variant.name)).collect()
}

/// Why there is no portrait of a variant whose campaign has a memory series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It has no run in a complete round of the series.
    NoRun,
    /// All of these runs failed.
    Failed,
    /// They were too short to be read.
    TooShort,
    /// No reading of the others succeeded.
    NoReading,
}

/// Why a variant has no portrait; nothing if it has a readable run.
pub fn unread(comparison: &Comparison, variant: &str) -> Option<Unread> {
    let own = of_complete_rounds(comparison, variant);
    let mut well = own.iter().filter(|run| !has_failed(comparison, run)).peekable();
    match (own.is_empty(), well.peek().is_none()) {
        (true, _) => Some(Unread::NoRun),
        (_, true) => Some(Unread::Failed),
        _ if well.clone().any(|run| !run.series.readings.is_empty()) => None,
        _ if well.all(|run| run.series.wall_ns < BRIEF_NS) => Some(Unread::TooShort),
        _ => Some(Unread::NoReading),
    }
}

/// The largest readings of a variant's runs that were read near their peaks; the A/A control's are the baseline's, too.
pub fn near_peaks<'a>(comparison: &Comparison<'a>, variant: &str) -> Vec<(&'a MemoryRun, &'a Reading)> {
    let experiment = &comparison.campaign.experiment;
    let control = (experiment.baseline == variant).then(|| experiment.control());
    let runs = [Some(variant.to_owned()), control].into_iter().flatten();
    runs.flat_map(|name| readable(comparison, &name))
        .filter(|run| has_share(comparison, run, NEAR_PEAK))
        .filter_map(|run| Some((run, run.series.peak()?)))
        .collect()
}

/// The requested metrics of the series that have a column. `--memory` requests all of them: then the control group's
/// has none if no group could be made, and [`gaps`] say so.
pub fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let mut own = comparison.campaign.experiment.series();
    let has_group = comparison.runs.iter().any(|run| run.sample.contains_key(metric::OF_GROUP));
    if !has_group && own.len() == metric::series().len() {
        own.retain(|metric| metric.name != metric::OF_GROUP);
    }
    own
}

/// What the shown metrics of the series lack, and the control group's metric where it has no column.
pub fn gaps(comparison: &Comparison, shown: &[Metric]) -> Vec<Gap> {
    let with_column = metrics(comparison);
    let without_column =
        comparison.campaign.experiment.series().into_iter().filter(|metric| !with_column.contains(metric));
    let all: Vec<Metric> = shown.iter().copied().chain(without_column).collect();
    report_text::gaps(comparison, &all)
}

/// One line of the table: a name, and an amount for each portrait.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What is counted.
    pub title: String,
    /// Bytes, in the order of the portraits; absent where it was not read at the peak.
    pub amounts: Vec<Option<f64>>,
    /// The saving of each portrait relative to the first (rauschmayr-2013's reduction), where the runs
    /// resolve a difference and, for an amount of the readings, both readings saw their peaks.
    pub reductions: Vec<Option<f64>>,
    /// It is a sum of lines, of the program alone.
    pub is_sum: bool,
}

/// An amount of a run, if it was read near the run's peak.
type AmountOf<'a> = &'a dyn Fn(&MemoryRun, &Reading) -> Option<f64>;

/// What memory is for at each portrait's peak, and other figures. The baseline's portrait comes first.
pub fn lines(comparison: &Comparison, portraits: &[LastReading]) -> Vec<Line> {
    // The mean over time alone is of the whole run, whatever the largest reading saw.
    let line = |title: &str, is_sum, verdict: Option<&str>, of: AmountOf| {
        let is_of_run = verdict == Some("tree_mean");
        let amounts: Vec<Option<f64>> = portraits
            .iter()
            .map(|portrait| {
                of(portrait.run, portrait.full.filter(|_| is_of_full(title)).unwrap_or(portrait.peak))
            })
            .collect();
        let reductions = portraits.iter().zip(&amounts).enumerate().map(|(place, (portrait, amount))| {
            let (baseline, variant) = (amounts.first().copied().flatten()?, (*amount)?);
            let first = portraits.first().filter(|_| place > 0)?;
            if !is_of_run && (!first.is_at_peak() || !portrait.is_at_peak()) {
                return None;
            }
            let order = reported(comparison, first.variant, portrait.variant, verdict, of)?;
            // The runs in the table may be exceptions to the verdict.
            let agrees = variant.partial_cmp(&baseline) == Some(order);
            agrees.then(|| reduction(baseline, variant)).flatten()
        });
        Line { title: title.to_owned(), reductions: reductions.collect(), amounts, is_sum }
    };
    let of_class = |class: Class| {
        let of =
            |run: &MemoryRun, reading: &Reading| Some(run.series.of_class(reading, class).resident as f64);
        let verdict = match class {
            Class::Heap => Some("tree_heap"),
            Class::Mmapped => Some("tree_mmapped"),
            Class::Stack => Some("tree_stacks"),
            Class::Library => Some("tree_libraries"),
            _ => None,
        };
        line(class.title(), false, verdict, &of)
    };
    let classes = Class::ALL.into_iter().filter(|class| *class != Class::Runtime);
    let mut lines: Vec<Line> = classes.map(of_class).collect();
    let whole = |run: &MemoryRun, reading: &Reading| Some(run.series.of_program(reading).resident as f64);
    lines.push(line("in all, resident", true, Some("tree_peak"), &whole));
    // The runtime's own memory is not the program's, and in no sum.
    lines.push(of_class(Class::Runtime));
    let mean =
        |run: &MemoryRun, _: &Reading| metric::find("tree_mean").and_then(|metric| run.series.figure(metric));
    lines.push(line("mean over time", true, Some("tree_mean"), &mean));
    let anonymous =
        |run: &MemoryRun, reading: &Reading| Some(run.series.of_program(reading).anonymous as f64);
    lines.push(line("anonymous", true, Some("tree_anonymous"), &anonymous));
    let address_space =
        |run: &MemoryRun, reading: &Reading| Some(run.series.of_program(reading).virtual_bytes as f64);
    lines.push(line("address space", true, None, &address_space));
    for (title, verdict, of) in FULL {
        let known = |run: &MemoryRun, reading: &Reading| {
            let program = Totals { amounts: run.series.of_program(reading), ..reading.tree };
            reading.full.then(|| of(&program) as f64)
        };
        lines.push(line(title, true, verdict, &known));
    }
    lines.retain(|line| line.amounts.iter().flatten().any(|amount| *amount > 0.0));
    lines
}

/// A line with a figure that only smaps snapshots have: its title, the metric of its verdict, and its field.
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

/// Whether `b` is known to have less or more than `a`. The verdict on these two decides, if there is one.
/// Otherwise no run of the one may have as much as any run of the other, in as many runs as a verdict takes; only
/// runs that were read at the peak.
fn reported(
    comparison: &Comparison,
    a: &str,
    b: &str,
    verdict: Option<&str>,
    of: AmountOf,
) -> Option<Ordering> {
    if let Some(metric) = verdict.and_then(metric::find) {
        if let Some(order) = judged(comparison, a, b, metric) {
            return order;
        }
    }
    let range = |name: &str| {
        let runs = readable(comparison, name);
        let at_peak = runs.iter().filter(|run| has_share(comparison, run, AT_PEAK));
        let amounts: Vec<f64> = at_peak.filter_map(|run| of(run, run.series.peak()?)).collect();
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

/// The verdict on `b` compared with `a`; none where these two were not compared.
pub(crate) fn judged(comparison: &Comparison, a: &str, b: &str, metric: Metric) -> Option<Option<Ordering>> {
    let order = |name: &str| {
        comparison.verdict(name, metric).map(|verdict| match verdict.word {
            Word::Lower => Some(Ordering::Less),
            Word::Higher => Some(Ordering::Greater),
            Word::NoDifference | Word::Inconclusive | Word::Withheld | Word::NoData => None,
        })
    };
    if a == comparison.campaign.experiment.baseline {
        order(b)
    } else if b == comparison.campaign.experiment.baseline {
        order(a).map(|order| order.map(Ordering::reverse))
    } else {
        None
    }
}

/// The moment of the portraits' table: `at the peak`, or of one portrait the share of the peak that was read. Each of
/// several was read at its own share: [`shares`].
pub fn moment(portraits: &[LastReading]) -> String {
    match portraits {
        all if all.iter().all(LastReading::is_at_peak) => "at the peak".to_owned(),
        [one] => format!("at {} of the peak", one.share_text()),
        _ => "near the peak".to_owned(),
    }
}

/// The share of its own peak at which each portrait was read, unless all were read at the peak; with the row's title.
pub fn shares(portraits: &[LastReading]) -> Option<(&'static str, Vec<String>)> {
    let is_needed = !portraits.iter().all(LastReading::is_at_peak);
    is_needed.then(|| ("share of its own peak", portraits.iter().map(LastReading::share_text).collect()))
}

/// Why a table of readings below the peak has no reductions; none if every reading saw its peak.
pub fn why_without_reductions(portraits: &[LastReading]) -> Option<&'static str> {
    let text = "No reduction is given where the reading of the variant or of the baseline saw less than 95 % of its own \
                peak: what the rest was for is not known. The mean over time is of the whole run.";
    shares(portraits).map(|_| text)
}

/// The portraits, the baseline's first; none without it, since there is nothing to compare with. A run
/// without a reading near its peak is left out.
pub fn compared<'a>(comparison: &Comparison<'a>) -> Vec<LastReading<'a>> {
    let mut all = portraits(comparison);
    all.retain(|portrait| portrait.share >= NEAR_PEAK);
    match all.iter().position(|portrait| portrait.variant == comparison.campaign.experiment.baseline) {
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

/// How memory was read, in a sentence or two; none if it was not.
pub fn how(comparison: &Comparison) -> Option<String> {
    let complete = complete_rounds(comparison);
    if complete.is_empty() {
        // Without a control group, rounds for this metric alone are not made.
        let is_alone = comparison.campaign.experiment.needs_group();
        return is_alone.then(|| "Memory over time: no round was made.".to_owned());
    }
    let rounds = complete.len();
    let runs: Vec<&Series> =
        comparison.memory.iter().filter(|run| complete.contains(&run.round)).map(|run| &run.series).collect();
    let per = |count: fn(&Series) -> u64| {
        let (time, all) = runs.iter().fold((0u64, 0u64), |(time, all), series| {
            (time.saturating_add(series.wall_ns), all.saturating_add(count(series)))
        });
        (all > 0).then(|| duration(Duration::from_nanos(time / all)))
    };
    let of_own = counted(rounds, "round") + if rounds == 1 { " of its own" } else { " of their own" };
    if runs.is_empty() {
        return Some(format!("Memory over time, in {of_own}: no run was read."));
    }
    let cost = runs.iter().map(|series| series.cost()).fold(0.0, f64::max);
    let counts = [
        ("a statm sample", per(|series| series.statm_samples_made)),
        ("a pagemap scan", per(|series| series.pagemap_scans_made)),
        ("an smaps snapshot", per(|series| series.readings_made)),
    ];
    let every: Vec<String> =
        counts.into_iter().filter_map(|(noun, often)| Some(format!("{noun} every {}", often?))).collect();
    let every = if every.is_empty() { String::new() } else { format!("{}; ", listed(&every)) };
    Some(format!("Memory over time, in {of_own}: {every}reading took at most {} of a run.", share(cost)))
}

/// The readings with their periods of validity: while statm samples showed the same size, to within 1 %. Each
/// reading occurs once for the start and once for the end of its period.
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

/// A program's phases in a run: name, start and end, in nanoseconds; the time before the first mark has no
/// name.
pub fn phases(series: &Series) -> Vec<(String, u64, u64)> {
    let ends = series.marks.iter().skip(1).map(|mark| mark.at_ns).chain([series.wall_ns]);
    series
        .marks
        .iter()
        .zip(ends)
        .map(|(mark, end)| (sanitize::line(&mark.text), mark.at_ns, end.max(mark.at_ns)))
        .collect()
}

/// A phase's name, and its peak in each series: the outer option is none where the series lacks the phase, the inner one where no reading
/// was in it.
pub type PhaseRow = (String, Vec<Option<Option<u64>>>);

/// The peaks of phases in several series side by side. Equal phases have the same name, and are the same time of that name; the first
/// series' phases come first.
pub fn phase_rows(all: &[&Series]) -> Vec<PhaseRow> {
    let mut rows: Vec<PhaseRow> = Vec::new();
    let mut places: HashMap<(String, usize), usize> = HashMap::new();
    for (column, series) in all.iter().enumerate() {
        let mut times: HashMap<String, usize> = HashMap::new();
        for (name, peak) in phase_peaks(series) {
            let time = times.entry(name.clone()).or_default();
            let place = *places.entry((name.clone(), *time)).or_insert_with(|| {
                rows.push((name, vec![None; all.len()]));
                rows.len() - 1
            });
            *time += 1;
            rows[place].1[column] = Some(peak);
        }
    }
    rows
}

/// The highest resident memory of the program's tree in each phase; none for a phase without a reading.
pub fn phase_peaks(series: &Series) -> Vec<(String, Option<u64>)> {
    let levels = series.programs_levels();
    phases(series)
        .into_iter()
        .map(|(name, from, to)| {
            let inside = levels.iter().filter(|level| (from..=to).contains(&level.at_ns));
            (name, inside.map(|level| level.resident).max())
        })
        .collect()
}
