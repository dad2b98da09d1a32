//! The memory series: rounds of their own, after the timed ones, in which a sampler reads the memory of every participant
//! while it runs. Nothing of them is timed; orders and paddings are those of any other round.

mod bounds;
mod group;

use std::collections::BTreeMap;

use widthwise_experiment::memory::{Series, AT_PEAK, BRIEF_NS};
use widthwise_experiment::outcome::{Ending, Reading, RoundKind, Source};
use widthwise_experiment::{metric, Metric};

use widthwise_x32run::{Account, ImageEnd};

use crate::comparison::{one_cpu, untimed, CampaignObserver, Untimed};
use crate::plan::{Participant, Plan};
use crate::rounds::{End, RoundsError};
use crate::run::ending::failure;
use crate::run::result::{RunError, RunResult};
use crate::run::runner::Runner;
use bounds::{Accounts, Bounds, Mapped};
use group::Group;
use widthwise_experiment::schedule::Slot;
use widthwise_proc::affinity::online_cpus;
use widthwise_proc::sampler::{Sampler, Watch, MARKS, SHARE};
use widthwise_proc::taskstats::Process;

/// What is read, and of whom.
#[derive(Debug)]
pub struct Memory<'a> {
    /// The campaign; its participants are those that can be compared.
    pub plan: &'a Plan,
    /// The number of the first of these rounds.
    pub first_round: u32,
    /// How many of them there will be.
    pub rounds: u32,
    /// The metrics that are made of a series.
    pub metrics: Vec<Metric>,
}

/// Makes the rounds.
///
/// # Errors
/// Those of running the programs, and those of the observer.
pub fn sample<W: CampaignObserver>(
    memory: &Memory,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let rounds = Untimed {
        kind: RoundKind::Memory,
        first_round: memory.first_round,
        rounds: memory.rounds,
        cpu: one_cpu(memory.plan),
        cancel_at: 2,
    };
    let run = |participant: &Participant, slot: Slot, cancelled: &dyn Fn() -> bool| {
        run(memory, participant, slot, runner, cancelled)
    };
    untimed(memory.plan, rounds, observer, run, |_| false)
}

/// Whether runs can have a control group, whose peak is a metric of its own.
pub fn has_group(runner: &Runner) -> bool {
    Group::begin(runner.launcher(), runner.unified()).is_some()
}

/// One run with the sampler beside it. Its sample has the figures of the series, and nothing else of it.
fn run(
    memory: &Memory,
    participant: &Participant,
    slot: Slot,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<RunResult, RunError> {
    let plan = memory.plan;
    let pipe = plan.folder.join("scratch").join("marks");
    let mut start = participant.layout(slot.layout).clone();
    start.environment.insert(MARKS.into(), pipe.clone().into());
    let mut group = Group::begin(runner.launcher(), runner.unified());
    let watch = Watch {
        launcher: runner.launcher(),
        cpus: plan.cpus.clone(),
        runtime: start.resolved_runtime(),
        marks: Some(pipe.clone()),
        group: group.as_ref().map(Group::statistics),
        share: SHARE,
        ..Watch::default()
    };
    let sampler = Sampler::start(watch).map_err(|error| RunError::Scratch { path: pipe, error })?;
    let first = last_number();
    runner.read_memory(true);
    let result = runner.run(&start, slot.padding, &plan.cpus, plan.limits, cancelled);
    runner.read_memory(false);
    let begun = first.zip(last_number()).and_then(|(first, last)| last.checked_sub(first));
    let seen = sampler.stop();
    let mut result = result?;
    result.remarks.clear();
    if let Some((pid, reason)) = &seen.refused {
        result.remarks.push(format!(
            "has a process ({pid}) whose mappings may not be read ({reason}; setuid?): it is missing in the memory series"
        ));
    }
    if seen.marks_lost {
        result.remarks.push("wrote more marks than are kept: the first 10 000 are".into());
    }
    // Numbers are given to threads, too, and to whatever else begins on this machine.
    let none_else = begun.is_some_and(|begun| begun <= seen.read_tasks());
    let mapped_files = Mapped { files: seen.mapped_files.clone(), listed: seen.listed.clone() };
    let (charged, cached) = (seen.charged, seen.cached);
    let series = seen.since(result.began_at, result.wall);
    let cpus = match plan.cpus.len() {
        // A quota of CPU time leaves every CPU of the machine to the program.
        0 => online_cpus(),
        // The launcher is charged on its own.
        count => count as u64 + 1,
    };
    let (processes, runtime) = with_runtime(result.processes.take(), result.account.as_ref());
    let accounts = Accounts {
        processes: processes.as_deref(),
        largest: result.largest,
        group: group.as_mut().and_then(|group| group.peak(cpus, cached)),
        charged,
        mapped_files: &mapped_files,
        all_seen: none_else || result.childless,
    };
    let bounds = bounds::tree_peak(&series, &accounts);
    let charged = accounts.group.map(|group| group.charged);
    result.sample = figures(&series, &memory.metrics, bounds, charged, runtime);
    result.remarks.extend(shortcomings(&series, bounds));
    if result.ending != Ending::Done {
        result.remarks.push(format!(
            "took no part in the rest of the memory series: {}",
            failure(&result.ending, &runner.stderr())
        ));
    }
    result.series = Some(series);
    Ok(result)
}

/// The processes with the pages of the x32 runtime that were left out of their peaks, and between what amounts lies what the
/// runtime has in the tree at one moment: in one process at least, and at most in all.
fn with_runtime(
    processes: Option<Vec<Process>>,
    account: Option<&Account>,
) -> (Option<Vec<Process>>, Option<(u64, u64)>) {
    let Some(account) = account else { return (processes, None) };
    let usual = account.images.iter().filter_map(|image| image.resident).max().unwrap_or(0);
    let mut own: BTreeMap<u32, u64> = BTreeMap::new();
    for image in account.images.iter().filter(|image| image.end != ImageEnd::Replaced) {
        own.insert(image.process, image.resident.unwrap_or(usual));
    }
    let processes = processes.map(|mut all| {
        for process in &mut all {
            process.max_rss += own.get(&process.pid).copied().unwrap_or(0);
        }
        all
    });
    let least = own.values().copied().min().unwrap_or(0);
    (processes, Some((least, own.values().sum())))
}

/// The number that the kernel gave to the newest task here (`/proc/loadavg`).
fn last_number() -> Option<u64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().nth(4)?.parse().ok()
}

/// The figures of a series. The peak is what the kernel's accounts say. The others are what was read; where the readings
/// missed the peak, nothing says how high they were.
fn figures(
    series: &Series,
    metrics: &[Metric],
    bounds: Option<Bounds>,
    charged: Option<u64>,
    runtime: Option<(u64, u64)>,
) -> BTreeMap<&'static str, Reading> {
    let mean = metric::find("tree_mean").filter(|mean| !metrics.contains(mean));
    let mut sample = series.sample(&metrics.iter().copied().chain(mean).collect::<Vec<_>>());
    for (name, reading) in &mut sample {
        // What surely was there for a moment is what a mean may have missed. Of a peak without an upper bound processes may be that no
        // reading saw.
        let peak = bounds.map(|bounds| match (*name, bounds.high) {
            ("tree_mean", Some(_)) => bounds.low,
            (_, high) => high.unwrap_or(u64::MAX),
        });
        let seen = metric::find(name).map_or(0, |metric| series.seen(metric)) as f64;
        if peak.is_some_and(|peak| seen < AT_PEAK * peak as f64) {
            reading.upper = Some(f64::INFINITY);
        }
    }
    // What is the x32 runtime's own is not the program's. Some of its pages are of its file, and charged to no process here.
    let (least, most) = runtime.unwrap_or_default();
    let without = |bytes: u64, own: u64| bytes.saturating_sub(own) as f64;
    if most > 0 {
        // No reading has separated the runtime's pages from the program's; only a snapshot knows which of them are anonymous.
        let is_mixed = |name: &&str| match *name {
            "tree_anonymous" => !series.readings.iter().any(|reading| reading.full),
            _ => series.readings.is_empty(),
        };
        for name in ["tree_mean", "tree_anonymous"].into_iter().filter(is_mixed) {
            if let Some(reading) = sample.get_mut(name).filter(|reading| reading.upper.is_none()) {
                *reading =
                    Reading::between((reading.value - most as f64).max(0.0), reading.value, reading.source);
            }
        }
    }
    if let (Some(mean), Some(high)) = (sample.get_mut("tree_mean"), bounds.and_then(|bounds| bounds.high)) {
        cap(mean, without(high, least));
    }
    // No peak is below a mean. The samples of several processes prove a mean, and not what there was at one of their moments: each was
    // read a little later than the one before.
    let mean = sample.get("tree_mean").copied();
    sample.retain(|name, _| metrics.iter().any(|metric| metric.name == *name));
    for metric in metrics {
        let reading = match (metric.name, bounds, charged) {
            ("tree_peak", Some(Bounds { low, high, source }), _) => {
                let high = high.map_or(f64::INFINITY, |high| without(high, least));
                let low = (without(low, most), source);
                let above = mean.filter(|mean| mean.value > low.0).map(|mean| (mean.value, mean.source));
                let (low, source) = above.unwrap_or(low);
                Reading::between(low, high, source)
            }
            ("tree_charged", _, Some(charged)) => {
                Reading::between(without(charged, most), charged as f64, Source::Cgroup)
            }
            _ => continue,
        };
        sample.insert(metric.name, reading);
    }
    sample
}

/// A mean over time is at most the peak, which the kernel's accounts may bound more closely than the samples. That readings
/// missed the peak remains: then the mean has no upper bound.
fn cap(mean: &mut Reading, peak: f64) {
    mean.value = mean.value.min(peak);
    mean.upper = mean.upper.map(|upper| if upper.is_finite() { upper.min(peak) } else { upper });
    mean.upper = mean.upper.filter(|upper| *upper > mean.value);
}

/// What a reader of the series must know.
fn shortcomings(series: &Series, bounds: Option<Bounds>) -> Option<String> {
    if series.readings.is_empty() && series.wall_ns < BRIEF_NS {
        return Some(
            "is too short for a memory series: to read it would have slowed it by more than 0.5 %".into(),
        );
    }
    let Bounds { low, high, .. } = bounds?;
    let Some(high) = high else {
        return Some(
            "may have had processes that the memory series did not see: the kernel reports only to root each process that \
             ends, so that nothing says how high its tree's peak was"
                .into(),
        );
    };
    let seen = series.levels().iter().map(|level| level.resident).max().unwrap_or(0);
    if seen as f64 >= AT_PEAK * high as f64 {
        return None;
    }
    // Only the lower bound of a tree's peak is known to have been there.
    let larger = if seen < low { "was larger" } else { "may have been larger" };
    Some(format!("{larger} than any reading of its memory: what memory was for at the peak is not known"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use widthwise_experiment::memory::{Amounts, Process, Reading, StatmSample, Totals};

    #[test]
    fn a_mean_is_at_most_the_peak() {
        const MB: u64 = 1_000_000;
        let process = |pid, parent, began_ns| Process {
            pid,
            parent,
            name: "truth".into(),
            began_ns,
            ended_ns: 100 * MB,
        };
        // A child has all pages of its parent. The samples do not say whether it copied them; the kernel's account of the peak
        // does.
        let sample = |at_ns, process| StatmSample {
            at_ns,
            process,
            resident: 82 * MB,
            anonymous: 81 * MB,
            virtual_bytes: 0,
        };
        let series = Series {
            wall_ns: 100 * MB,
            processes: vec![process(10, 1, 0), process(11, 10, 40 * MB)],
            statm_samples: vec![sample(0, 0), sample(50 * MB, 0), sample(50 * MB, 1), sample(70 * MB, 0)],
            ..Series::default()
        };
        let figures = |names: &[&str], low: f64, high: Option<f64>| {
            let bytes = |mb: f64| (mb * MB as f64) as u64;
            let bounds = Bounds { low: bytes(low), high: high.map(bytes), source: Source::Rusage };
            let metrics: Vec<Metric> = names.iter().map(|name| metric::find(name).unwrap()).collect();
            figures(&series, &metrics, Some(bounds), None, None)
        };
        let mean = |low: f64, high: Option<f64>| figures(&["tree_mean", "tree_peak"], low, high)["tree_mean"];
        let upper = |high| mean(82.0, high).upper.map(|upper| upper / MB as f64);
        // Some processes of a peak without an upper bound may not have been seen.
        assert_eq!(upper(None), Some(f64::INFINITY));
        assert_eq!(upper(Some(85.1)), Some(85.1));
        // What the kernel counts of a process may be a little more than its pages.
        assert_eq!((mean(81.5, Some(81.5)).value, mean(81.5, Some(81.5)).upper), (81.5e6, None));
        // Without root, nothing but the largest process may be known of a peak: the mean of several proves more.
        for names in [&["tree_mean", "tree_peak"][..], &["tree_peak"]] {
            let sample = figures(names, 40.0, None);
            assert_eq!(sample.len(), names.len());
            let peak = sample["tree_peak"];
            assert_eq!((peak.value, peak.upper, peak.source), (82e6, Some(f64::INFINITY), Source::Smaps));
            assert_eq!(figures(names, 83.0, None)["tree_peak"].source, Source::Rusage);
        }
        // Readings that missed the peak say of the mean only that it was so much at least.
        assert_eq!(mean(120.0, Some(130.0)).upper, Some(f64::INFINITY));
    }

    #[test]
    fn a_reading_as_large_as_the_lower_bound_may_have_missed_the_peak_and_a_smaller_one_has() {
        let of = |resident, low, high| {
            let tree = Totals { amounts: Amounts { resident, ..Amounts::default() }, ..Totals::default() };
            let reading = Reading { at_ns: 1, full: true, tree, processes: Vec::new(), parts: Vec::new() };
            let series = Series { wall_ns: 1_600_000_000, readings: vec![reading], ..Series::default() };
            shortcomings(&series, Some(Bounds { low, high: Some(high), source: Source::Smaps }))
        };
        assert_eq!(of(131, 131, 137), None);
        assert!(
            of(131, 131, 143).is_some_and(|text| text.starts_with("may have been larger than any reading"))
        );
        let missed = of(20, 131, 143).expect("it missed the peak");
        assert!(missed.starts_with("was larger than any reading") && !missed.contains("moment"), "{missed}");
    }
}
