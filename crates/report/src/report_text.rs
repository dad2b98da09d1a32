//! The sentences of every format. One source, so that the terminal, the HTML and the Markdown agree.
//!
//! All returned text is harmless: names and reasons have passed through [`sanitize`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use widthwise_experiment::VariantStatus;

use widthwise_experiment::outcome::{Ending, Noise, Round, RoundKind};
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_experiment::Metric;
use widthwise_verdict::overview::overview;
use widthwise_verdict::wording::{self, share};
use widthwise_verdict::{Judgement, Verdict, Word};

use crate::comparison::{Comparison, ProcessNote};
use crate::format::{counted, duration, listed, named};
use crate::noisy_rounds::NOISY_SHARE;
use crate::round_spans::rounds;
use crate::{by_metric, order, output_agreement, sanitize};

/// The kernel's tick where it is longest (100 Hz).
const SHORTEST_NOISE: Duration = Duration::from_millis(10);

/// The program and its version.
pub fn title(comparison: &Comparison) -> String {
    let title = format!("{} {}", comparison.campaign.experiment.program.name, comparison.campaign.version);
    sanitize::line(title.trim())
}

/// The command of a run, before placeholders are filled in.
pub fn command(comparison: &Comparison) -> String {
    sanitize::line(&comparison.campaign.experiment.program.run)
}

/// The extent of the campaign: `42 rounds, 3 min 10 s`.
pub fn extent(comparison: &Comparison) -> String {
    format!(
        "{}, {}",
        counted(comparison.campaign.judged_rounds(), "round"),
        duration(comparison.campaign.elapsed)
    )
}

/// The numbers of rounds, and why the campaign stopped.
pub fn stopping(comparison: &Comparison) -> String {
    let of_kind = |kind| comparison.campaign.rounds.iter().filter(|round| round.kind == kind).count();
    let mut parts = vec![counted(of_kind(RoundKind::Timed), "timed round")];
    for (kind, noun) in [
        (RoundKind::Warmup, "warm-up round"),
        (RoundKind::Emulated, "emulated round"),
        (RoundKind::Memory, "memory round"),
        (RoundKind::Interrupted, "interrupted round"),
    ] {
        match of_kind(kind) {
            0 => {}
            count => parts.push(counted(count, noun)),
        }
    }
    let why = sanitize::line(&comparison.campaign.stopped);
    let why = if why.is_empty() { why } else { format!("; stopped because: {why}") };
    format!("{} in {}{why}.", listed(&parts), duration(comparison.campaign.elapsed))
}

/// The number of metrics that a summary of many variants covers.
const SUMMED_UP: usize = 2;

/// The result: a sentence on each variant or, for many variants, at most three on all of them; [`one_by_one`]
/// has the rest.
pub fn answer(comparison: &Comparison) -> Vec<String> {
    if by_metric::applies(comparison) && comparison.campaign.judged_rounds() > 0 {
        let names = comparison.campaign.experiment.variants.iter().map(|variant| variant.name.as_str());
        return by_metric::sentences(comparison).into_iter().chain(unmeasured(comparison, names)).collect();
    }
    if !order::is_many(comparison) || comparison.campaign.judged_rounds() == 0 {
        return one_by_one(comparison);
    }
    let experiment = comparison.campaign.experiment;
    let control = experiment.control();
    let deciding = experiment.deciding();
    let on_all = |metric: &Metric| {
        let of_metric = |v: &&Verdict| v.metric.name == metric.name && v.variant != control;
        overview(&comparison.judgement.verdicts.iter().filter(of_metric).collect::<Vec<_>>())
    };
    let mut sentences: Vec<String> = deciding.iter().filter_map(on_all).take(SUMMED_UP).collect();
    let absent = experiment
        .variants
        .iter()
        .filter(|variant| comparison.campaign.not_measured(&variant.name).is_some())
        .count();
    let judged = |name: &str| {
        comparison
            .judgement
            .verdicts
            .iter()
            .any(|v| v.variant == name && !matches!(v.word, Word::Withheld | Word::NoData))
    };
    let is_open = |name: &&str| {
        *name != experiment.baseline && comparison.campaign.not_measured(name).is_none() && !judged(name)
    };
    let withheld = experiment.variants.iter().map(|variant| variant.name.as_str()).filter(is_open).count();
    let missing: Vec<String> = [(absent, "could not be measured"), (withheld, "got no verdict")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{} {how}", counted(count, "variant")))
        .collect();
    if !missing.is_empty() {
        sentences.push(format!("{}: the table says which.", listed(&missing)));
    }
    sentences.iter().map(|sentence| sanitize::line(sentence)).collect()
}

/// The results of each variant, one sentence each.
pub fn one_by_one(comparison: &Comparison) -> Vec<String> {
    if comparison.campaign.judged_rounds() == 0 {
        return vec!["No timed round was completed: there is nothing to judge.".to_owned()];
    }
    // Known results come first, then the unknown.
    let judged = |name: &str| {
        let mut own = comparison.judgement.verdicts.iter().filter(|verdict| verdict.variant == name);
        own.any(|verdict| !matches!(verdict.word, Word::Withheld | Word::NoData))
    };
    let (known, unknown): (Vec<&str>, Vec<&str>) = comparison
        .campaign
        .experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .partition(|name| judged(name));
    // The table gives the reason why a variant took no part, and the output check reports a differing output.
    let is_judged = |name: &&str| {
        matches!(
            comparison.campaign.status(name),
            VariantStatus::Ready | VariantStatus::OutputMismatchAllowed(_)
        )
    };
    let (judged, others): (Vec<&str>, Vec<&str>) = unknown.into_iter().partition(is_judged);
    let mut sentences = [known, judged].map(|names| about(comparison, &names)).concat();
    sentences.extend(unmeasured(comparison, others.iter().copied()));
    if sentences.is_empty() && others.is_empty() {
        return vec!["There is nothing to compare.".to_owned()];
    }
    sentences.iter().map(|sentence| sanitize::line(sentence)).collect()
}

/// A sentence on those of the variants that were not measured.
fn unmeasured<'a>(comparison: &Comparison, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let absent = names.filter(|name| comparison.campaign.not_measured(name).is_some());
    let absent: Vec<String> = absent.map(sanitize::line).collect();
    (!absent.is_empty()).then(|| format!("{} could not be measured: the table says why.", named(&absent)))
}

/// The verdicts on those variants as sentences. The detection floor and the promise, which end a summary,
/// have their own places in a report: without the control and the number of comparisons the summary omits
/// them.
fn about(comparison: &Comparison, names: &[&str]) -> Vec<String> {
    let verdicts =
        comparison.judgement.verdicts.iter().filter(|verdict| names.contains(&verdict.variant.as_str()));
    let part = Judgement {
        verdicts: verdicts.cloned().collect(),
        typical: Vec::new(),
        comparisons: 0,
        runtime: Default::default(),
        rss_lag: None,
    };
    wording::summary(&part, comparison.campaign.experiment)
}

/// Whether the variants gave the same output as the baseline.
pub fn agreement(comparison: &Comparison) -> Vec<String> {
    output_agreement::sentences(comparison)
}

/// How many layouts the programs had, and how far these differ; none if each had one.
pub fn layouts(comparison: &Comparison) -> Option<String> {
    wording::layouts(comparison.judgement, comparison.campaign.experiment)
}

/// The machine's noise during the comparison, in one sentence; none if it was not measured.
pub fn noise(comparison: &Comparison) -> Option<String> {
    let timed: Vec<&Round> =
        comparison.campaign.rounds.iter().filter(|r| r.kind == RoundKind::Timed).collect();
    if timed.is_empty() {
        return None;
    }
    let mean = |part: fn(&Noise) -> f64| {
        timed.iter().map(|round| part(&round.noise)).sum::<f64>() / timed.len() as f64
    };
    let mut parts = vec![format!("steal {}", share(mean(|noise| noise.steal)))];
    parts.extend(others(comparison, &timed));
    let pressed: Vec<f64> = timed.iter().filter_map(|round| round.noise.pressure).collect();
    if !pressed.is_empty() {
        let pressure = pressed.iter().sum::<f64>() / pressed.len() as f64;
        if pressure >= NOISY_SHARE {
            parts.push(format!(
                "some task of the machine, perhaps the program's own, waited for a CPU for {} of the time",
                share(pressure)
            ));
        }
    }
    let hot: Vec<u32> = timed.iter().filter(|r| r.noise.throttled > 0).map(|r| r.number).collect();
    if !hot.is_empty() {
        parts.push(format!("the core was throttled in {}", rounds(&hot)));
    }
    Some(format!("Noise: {}.", parts.join(", ")))
}

/// The other tasks on the measured CPUs, one part for each CPU.
fn others(comparison: &Comparison, timed: &[&Round]) -> Vec<String> {
    let mut by_cpu: BTreeMap<Option<u32>, Vec<&Round>> = BTreeMap::new();
    for round in timed {
        by_cpu.entry(round.cpu).or_default().push(round);
    }
    by_cpu
        .into_iter()
        .filter_map(|(cpu, own)| {
            let carries = |round: &&Round| {
                let tick = SHORTEST_NOISE.as_nanos() as i64;
                round.noise.others >= NOISY_SHARE && round.noise.others_ns.is_none_or(|used| used >= tick)
            };
            let carriers: Vec<&Round> = own.iter().copied().filter(carries).collect();
            let in_all = used_by_others(comparison, &own);
            if carriers.is_empty() || in_all.is_some_and(|used| used < uncertainty(comparison, &own)) {
                return None;
            }
            let place = cpu.map_or("the measured CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
            let mean = carriers.iter().map(|round| round.noise.others).sum::<f64>() / carriers.len() as f64;
            let numbers: Vec<u32> = carriers.iter().map(|round| round.number).collect();
            let length = used_by_others(comparison, &carriers)
                .map_or_else(|| format!("{} of the time", share(mean)), |used| duration(used).to_string());
            Some(format!("other tasks used {place} for {length} (in {})", rounds(&numbers)))
        })
        .collect()
}

/// The CPU time that may be wrongly attributed to others: the kernel counts whole ticks, and is wrong by a
/// part of one wherever a run begins or ends within one. These errors are independent, so they grow with the
/// square root of the runs.
fn uncertainty(comparison: &Comparison, own: &[&Round]) -> Duration {
    let numbers: BTreeSet<u32> = own.iter().map(|round| round.number).collect();
    let runs = comparison.runs.iter().filter(|run| numbers.contains(&run.round)).count();
    SHORTEST_NOISE.mul_f64((runs.max(1) as f64).sqrt())
}

/// The CPU time of others in those rounds. If a campaign did not store it, it is their share of each round's
/// length. Absent if that is unknown too: concurrent runs have no wall time.
fn used_by_others(comparison: &Comparison, own: &[&Round]) -> Option<Duration> {
    let kept: Option<Vec<i64>> = own.iter().map(|round| round.noise.others_ns).collect();
    if let Some(kept) = kept {
        return Some(Duration::from_nanos(u64::try_from(kept.iter().sum::<i64>()).unwrap_or(0)));
    }
    let lengths: Option<Vec<f64>> =
        own.iter().map(|round| Some(round.noise.others * round_seconds(comparison, round.number)?)).collect();
    Duration::try_from_secs_f64(lengths?.iter().sum()).ok()
}

/// From the start of a round's first run to the end of its last, where every run has its wall time.
fn round_seconds(comparison: &Comparison, number: u32) -> Option<f64> {
    let mut span: Option<(f64, f64)> = None;
    for run in comparison.runs.iter().filter(|run| run.round == number) {
        let began = run.began_ns as f64;
        let ended = began + run.sample.get("wall")?.value;
        let (first, last) = span.unwrap_or((began, ended));
        span = Some((first.min(began), last.max(ended)));
    }
    span.map(|(first, last)| (last - first) / 1e9)
}

/// The detection floors of those metrics: `0.7 % CPU time, 0.1 % max RSS`; none if none is known.
pub fn floors(comparison: &Comparison, metrics: &[Metric]) -> Option<String> {
    let known: Vec<String> = metrics
        .iter()
        .filter_map(|metric| Some(format!("{} {}", comparison.floor_text(metric)?, metric.title)))
        .collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// How false alarms are controlled; none where nothing was compared.
pub fn control(comparison: &Comparison) -> Option<String> {
    let promise = wording::promise(comparison.judgement, comparison.campaign.experiment)?;
    Some(format!("{promise} A difference inside the detection floor never counts as one."))
}

/// Missing verdicts and their reason; those with equal word, metrics and reason are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// The variants' names.
    pub variants: Vec<String>,
    /// `withheld` or `no_data`.
    pub word: Word,
    /// Which metrics.
    pub metrics: Vec<Metric>,
    /// Why.
    pub reason: String,
}

impl Gap {
    /// The gap in one line: `x32: no data on cycles: this machine has no counters`.
    pub fn line(&self, comparison: &Comparison) -> String {
        let what =
            if self.metrics.len() == comparison.campaign.experiment.metrics.len() && self.metrics.len() > 1 {
                "every metric".to_owned()
            } else {
                named(&self.metrics.iter().map(|metric| metric.title.to_owned()).collect::<Vec<_>>())
            };
        let variants = named(&self.variants);
        match self.word {
            Word::NoData => format!("{variants}: no data on {what}: {}", self.reason),
            word => format!("{variants}: {what} {}: {}", word.text(), self.reason),
        }
    }
}

/// The gaps in those metrics, except those that a whole variant's status explains: [`not_measured`] and
/// [`agreement`] cover these.
pub fn gaps(comparison: &Comparison, metrics: &[Metric]) -> Vec<Gap> {
    let mut of_variants: Vec<Gap> = Vec::new();
    for verdict in comparison.judgement.verdicts.iter().filter(|verdict| metrics.contains(&verdict.metric)) {
        let status = comparison.campaign.status(&verdict.variant);
        let is_mismatch = matches!(status, VariantStatus::OutputMismatch(_));
        let explained = status.not_measured().is_some() || is_mismatch && verdict.word == Word::Withheld;
        if explained || !matches!(verdict.word, Word::Withheld | Word::NoData) {
            continue;
        }
        let variants = vec![sanitize::line(&verdict.variant)];
        let reason = sanitize::line(verdict.reason.as_deref().unwrap_or("no reason was recorded"));
        let same =
            |gap: &&mut Gap| gap.variants == variants && gap.word == verdict.word && gap.reason == reason;
        match of_variants.iter_mut().find(same) {
            Some(gap) => gap.metrics.push(verdict.metric),
            None => {
                of_variants.push(Gap { variants, word: verdict.word, metrics: vec![verdict.metric], reason })
            }
        }
    }
    let mut gaps: Vec<Gap> = Vec::new();
    for gap in of_variants {
        let same = |other: &&mut Gap| {
            other.word == gap.word && other.metrics == gap.metrics && other.reason == gap.reason
        };
        match gaps.iter_mut().find(same) {
            Some(other) => other.variants.extend(gap.variants),
            None => gaps.push(gap),
        }
    }
    gaps
}

/// Variants that could not take part: name and reason.
pub fn not_measured(comparison: &Comparison) -> Vec<(String, String)> {
    comparison
        .campaign
        .experiment
        .variants
        .iter()
        .filter_map(|variant| {
            let reason = comparison.campaign.not_measured(&variant.name)?;
            Some((sanitize::line(&variant.name), sanitize::line(reason)))
        })
        .collect()
}

/// Variants that were not measured, each reason once: `x32 and i386 were not measured: no library`.
pub fn not_measured_by_reason(comparison: &Comparison) -> Vec<String> {
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    for (name, reason) in not_measured(comparison) {
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let line = |(reason, names): (String, Vec<String>)| {
        let were = if names.len() == 1 { "was" } else { "were" };
        format!("{} {were} not measured: {reason}", named(&names))
    };
    by_reason.into_iter().map(line).collect()
}

/// Everything that a reader must know before trusting the numbers: the caller's warnings, and the runs that
/// did not end well.
pub fn warnings(comparison: &Comparison) -> Vec<String> {
    let noticed = comparison.campaign.warnings.iter().map(|warning| sanitize::line(warning));
    noticed.chain(bad_endings(comparison)).collect()
}

fn bad_endings(comparison: &Comparison) -> Vec<String> {
    let mut by_ending: BTreeMap<(&str, String), Vec<u32>> = BTreeMap::new();
    let emulated: BTreeSet<u32> = comparison
        .campaign
        .rounds
        .iter()
        .filter(|r| r.kind == RoundKind::Emulated)
        .map(|r| r.number)
        .collect();
    for run in comparison.runs {
        // A variant's row has the reason why it takes no part, and why its counts were not emulated.
        let printed = matches!(run.ending, Ending::SpawnFailed { .. })
            && (comparison.campaign.not_measured(&run.variant).is_some() || emulated.contains(&run.round));
        if run.ending != Ending::Done && !printed {
            by_ending.entry((&run.variant, ending(&run.ending))).or_default().push(run.round);
        }
    }
    by_ending
        .into_iter()
        .map(|((variant, how), mut numbers)| {
            numbers.sort_unstable();
            numbers.dedup();
            format!("{}: {how} ({})", sanitize::line(variant), rounds(&numbers))
        })
        .collect()
}

/// The process trees of more than one process, one sentence for each variant.
pub fn processes(comparison: &Comparison) -> Vec<String> {
    let mut by_variant: BTreeMap<&str, Vec<&ProcessNote>> = BTreeMap::new();
    for note in &comparison.processes {
        by_variant.entry(&note.variant).or_default().push(note);
    }
    by_variant
        .into_iter()
        .filter(|(_, notes)| notes.iter().map(|note| note.count).sum::<u64>() > 1)
        .filter_map(|(variant, notes)| {
            let count: u64 = notes.iter().map(|note| note.count).sum();
            let largest = notes.iter().max_by_key(|note| note.max_rss)?;
            let peak = Quantity { value: largest.max_rss as f64, unit: Unit::Bytes };
            let cpu = share(largest.cpu_share);
            let of_cpu = match largest.count {
                1 => format!(" and {cpu} of the CPU time"),
                of_name => format!("; the {of_name} processes of that name have {cpu} of the CPU time"),
            };
            Some(sanitize::line(&format!(
                "{variant}: {count} processes; the largest is {}, with a peak of up to {peak} (the highest of all \
                 runs){of_cpu}.",
                largest.comm,
            )))
        })
        .collect()
}

/// How a run ended, in words.
pub fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Done => "done".to_owned(),
        // Only where another one is expected is 0 a failure.
        Ending::Exit { status: 0 } => "ended with exit status 0, not with that of --exit-status".to_owned(),
        Ending::Exit { status } => format!("ended with exit status {status}"),
        Ending::Signal { signal } => format!("was killed by signal {signal}"),
        Ending::Timeout { limit_ns } => {
            format!("was still running after {} and was killed", duration(Duration::from_nanos(*limit_ns)))
        }
        Ending::OutputLimit { limit_bytes } => {
            let limit = Quantity { value: *limit_bytes as f64, unit: Unit::Bytes };
            format!("wrote more than {limit} and was killed")
        }
        Ending::SpawnFailed { reason } => format!("could not be started: {}", sanitize::line(reason)),
        // It names the hook.
        Ending::HookFailed { reason } => sanitize::line(reason),
    }
}
