//! Watches the rounds: keeps every run in the archive, shows the progress, and says when it is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};
use widthwise_experiment::VariantStatus;

use widthwise_archive::{Archive, ArchiveError, ProcessNote};
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run};
use widthwise_experiment::{Experiment, Metric};
use widthwise_measure::comparison::CampaignObserver;
use widthwise_measure::plan::Participant;
use widthwise_measure::rounds::Next;
use widthwise_measure::run::result::RunResult;
use widthwise_report::format::named;
use widthwise_verdict::stopping::{Decision, InterimLook, StoppingRule};
use widthwise_verdict::{half_width, judge, power, wording, Evidence, Verdict, FEWEST_PAIRS};

use crate::compare::max_time::Pace;
use crate::progress::Progress;
use crate::{interrupt, runs_of_their_own};

/// What is known so far, for the progress line.
struct Estimate {
    text: String,
    made: Instant,
    /// How long it took to make: it is made again only after many times that.
    cost: Duration,
}

/// Keeps what a campaign finds.
pub struct Recorder<'a> {
    /// Where it is kept.
    pub archive: Archive,
    experiment: &'a Experiment,
    progress: &'a mut Progress,
    rounds: Vec<Round>,
    runs: Vec<Run>,
    /// How many of the rounds are timed.
    timed: u32,
    /// The round that is going on.
    kind: RoundKind,
    statuses: BTreeMap<String, VariantStatus>,
    stopping_rule: StoppingRule,
    next_look: u32,
    began: Instant,
    /// Time that earlier sessions of this campaign took.
    before: Duration,
    widest: Option<f64>,
    participants: u32,
    in_round: u32,
    estimate: Estimate,
    /// The first round of this session is over.
    paced: bool,
    /// Why the rounds ended, once they have.
    pub why: Option<String>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a campaign, new or resumed.
    pub fn new(
        mut archive: Archive,
        experiment: &'a Experiment,
        progress: &'a mut Progress,
    ) -> Result<Recorder<'a>, ArchiveError> {
        let stored = archive.load()?;
        let done = stored.rounds.iter().filter(|round| round.kind == RoundKind::Timed).count() as u32;
        let stopping_rule = StoppingRule::resumed(&experiment.stopping, done);
        let next_look = stopping_rule.next_look().max(done);
        progress.begin();
        archive.begin_batch();
        Ok(Recorder {
            archive,
            experiment,
            progress,
            rounds: stored.rounds,
            runs: stored.runs,
            timed: done,
            kind: RoundKind::Warmup,
            statuses: stored.statuses,
            stopping_rule,
            next_look,
            began: Instant::now(),
            before: stored.elapsed,
            widest: None,
            participants: 0,
            in_round: 0,
            estimate: Estimate { text: String::new(), made: Instant::now(), cost: Duration::ZERO },
            paced: false,
            why: None,
        })
    }

    /// How long the rounds have taken, in this session and before.
    pub fn elapsed(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    /// Whether there are emulated rounds enough already: two of the same counts, or as many as an interval needs.
    /// Only rounds count in which one of these metrics was read.
    pub fn has_emulated(&self, metrics: &[Metric]) -> bool {
        let is_emulated =
            |number| self.rounds.iter().any(|r| r.number == number && r.kind == RoundKind::Emulated);
        let has_one = |run: &Run| metrics.iter().any(|metric| run.sample.contains_key(metric.name));
        let of_these = |run: &&Run| run.ending == Ending::Done && is_emulated(run.round) && has_one(run);
        let mut runs = self.runs.iter().filter(of_these);
        let rounds = runs.clone().map(|run| run.round).collect::<BTreeSet<u32>>().len();
        let mut first = BTreeMap::new();
        let same = runs.all(|run| *first.entry(&run.variant).or_insert(&run.sample) == &run.sample);
        rounds >= FEWEST_PAIRS as usize || (rounds >= 2 && same)
    }

    /// Whether some run has one of these metrics.
    pub fn has_any(&self, metrics: &[Metric]) -> bool {
        self.runs.iter().any(|run| metrics.iter().any(|metric| run.sample.contains_key(metric.name)))
    }

    /// Whether some reading of a participant in one of these metrics has two bounds.
    pub fn has_bounds(&self, name: &str, metrics: &[Metric]) -> bool {
        let is_bounded = |run: &Run, metric: &Metric| {
            run.sample.get(metric.name).is_some_and(|reading| reading.upper.is_some_and(f64::is_finite))
        };
        let mut own = self.runs.iter().filter(|run| run.variant == name);
        own.any(|run| metrics.iter().any(|metric| is_bounded(run, metric)))
    }

    /// How many rounds of the memory series there are.
    pub fn sampled(&self) -> u32 {
        self.rounds.iter().filter(|round| round.kind == RoundKind::Memory).count() as u32
    }

    /// Whether a participant has not dropped out.
    pub fn is_compared(&self, name: &str) -> bool {
        !self.statuses.get(name).is_some_and(|status| status.not_measured().is_some() || status.is_withheld())
    }

    /// A run left processes that still worked: its figures lack their work. Their end may be late in an untimed round alone,
    /// where programs are slowed: then the figures of that run are left out.
    fn left_over(&mut self, run: &mut Run, reason: &str) -> Result<(), ArchiveError> {
        if !matches!(self.kind, RoundKind::Warmup | RoundKind::Timed) {
            run.sample.clear();
            return Ok(());
        }
        let known = self.statuses.get(&run.variant);
        if known.is_some_and(|status| status.not_measured().is_some() || status.is_withheld()) {
            return Ok(());
        }
        self.progress.say(&format!("  {}: {reason}", run.variant));
        let status = VariantStatus::LeftOver(reason.to_owned());
        self.archive.set_status(&run.variant, &status)?;
        self.statuses.insert(run.variant.clone(), status);
        Ok(())
    }

    /// What each participant has answered, as a digest.
    pub fn outputs(&self) -> BTreeMap<String, String> {
        self.runs.iter().filter_map(|run| Some((run.variant.clone(), run.output_digest.clone()?))).collect()
    }

    /// How long the programs of the last timed round ran.
    pub fn round_alone(&self) -> Option<Duration> {
        let last = self.rounds.iter().rfind(|round| round.kind == RoundKind::Timed)?.number;
        let runs = self.runs.iter().filter(|run| run.round == last);
        let total: f64 = runs.filter_map(|run| Some(run.sample.get("wall")?.value)).sum();
        Duration::try_from_secs_f64(total / 1e9).ok()
    }

    /// How long the programs of all timed rounds ran, as far as the last round tells.
    pub fn timed_alone(&self) -> Duration {
        self.round_alone().map_or(Duration::ZERO, |round| round * self.timed)
    }

    /// One line that stays.
    pub fn says(&self, text: &str) {
        self.progress.say(&format!("  {text}"));
    }

    /// That runs of their own, which a flag asks for, are not made of variants that are not compared.
    pub fn says_who_is_left_out(&self, flag: &str) {
        let names = self.experiment.variants.iter().map(|variant| &variant.name);
        let mut groups: Vec<(String, String, Vec<String>)> = Vec::new();
        for (name, status) in names.filter_map(|name| Some((name, self.statuses.get(name)?))) {
            let Some(why) = runs_of_their_own::obstacle(status) else { continue };
            let needed = runs_of_their_own::needed(self.archive.folder(), flag, status);
            match groups.iter_mut().find(|(known, other, _)| (known, other) == (&why, &needed)) {
                Some((.., names)) => names.push(name.clone()),
                None => groups.push((why, needed, vec![name.clone()])),
            }
        }
        for (why, needed, names) in groups {
            self.says(&format!("no {flag} runs of {}: {why}; {needed} has them", named(&names)));
        }
    }

    /// How long they took in this session.
    pub fn session(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether nothing is left to do: the campaign was killed at its very end, or is gone on with once too often.
    pub fn has_enough(&mut self) -> bool {
        let stopping = &self.experiment.stopping;
        let is_over =
            stopping.rounds.is_some_and(|most| self.timed >= most) || self.is_time_spent(Duration::ZERO);
        self.timed > 0 && is_over && self.look() == Next::Stop
    }

    /// Whether the time allowed is spent, or will be in a moment.
    fn is_time_spent(&self, moment: Duration) -> bool {
        self.experiment.stopping.max_time.is_some_and(|max_time| self.elapsed() + moment >= max_time)
    }

    fn look(&mut self) -> Next {
        let evidence = Evidence {
            experiment: self.experiment,
            rounds: &self.rounds,
            runs: &self.runs,
            statuses: &self.statuses,
            // Only intervals are used, which do not depend on it.
            rss_lag: 0,
        };
        // Without a precision no interval is needed before the end.
        self.widest = self.experiment.stopping.precision.and_then(|_| half_width(&evidence));
        let look = InterimLook { rounds: self.timed, elapsed: self.elapsed(), widest: self.widest };
        match self.stopping_rule.decide(look) {
            Decision::Continue { next_look } => {
                self.next_look = next_look;
                Next::Round
            }
            Decision::Stop(why) => {
                self.why = Some(why.to_string());
                Next::Stop
            }
        }
    }

    /// The current verdicts on the first deciding metric. Made now and then: it takes time that rounds could use.
    fn estimate(&mut self) {
        const PAUSE: Duration = Duration::from_secs(2);
        let pause = PAUSE.max(20 * self.estimate.cost);
        if self.estimate.made.elapsed() < pause || !self.progress.is_watched() {
            return;
        }
        let began = Instant::now();
        let evidence = Evidence {
            experiment: self.experiment,
            rounds: &self.rounds,
            runs: &self.runs,
            statuses: &self.statuses,
            // Only intervals are used, which do not depend on it.
            rss_lag: 0,
        };
        let control = self.experiment.control();
        let deciding = self.experiment.deciding();
        let known = |verdict: &&Verdict| {
            (verdict.ratio.is_some() || verdict.difference.is_some())
                && verdict.variant != control
                && deciding.first().is_some_and(|m| m.name == verdict.metric.name)
        };
        let verdicts = judge(&evidence).verdicts;
        let all: Vec<String> = verdicts
            .iter()
            .filter(known)
            .map(|verdict| format!("{} {}", verdict.variant, wording::interval(verdict)))
            .collect();
        if let (Some(metric), false) = (deciding.first(), all.is_empty()) {
            let outlook = self.outlook(verdicts.iter().filter(known)).unwrap_or_default();
            self.estimate.text = format!(" · {}: {}{outlook}", metric.title, all.join(", "));
        }
        self.estimate.made = Instant::now();
        self.estimate.cost = began.elapsed();
    }

    /// What the campaign will be able to find at its end, of the first deciding metric. The time that is left is shown beside it.
    fn outlook<'v>(&self, verdicts: impl Iterator<Item = &'v Verdict>) -> Option<String> {
        let stopping = &self.experiment.stopping;
        let elapsed = self.elapsed().as_secs_f64();
        let in_time = |most: Duration| f64::from(self.timed) * most.as_secs_f64() / elapsed.max(1e-9);
        let by_rounds = stopping.rounds.map(f64::from);
        let rounds = by_rounds.into_iter().chain(stopping.max_time.map(in_time)).reduce(f64::min)?;
        if rounds as u32 <= self.timed {
            return None;
        }
        let found =
            verdicts.filter_map(|one| power::detectable_after(one, rounds as u32)).reduce(f64::max)?;
        Some(format!("; at the end differences from {} on can be found", wording::share(found)))
    }

    /// After a session's first round: whether the time limit is too short for an interval, reported while it can be fixed.
    fn warn_of_budget(&mut self) {
        let first = !std::mem::replace(&mut self.paced, true);
        let stopping = &self.experiment.stopping;
        let (Some(max_time), true) = (stopping.max_time, first && self.kind != RoundKind::Emulated) else {
            return;
        };
        if stopping.rounds.is_some_and(|most| most < FEWEST_PAIRS) {
            return;
        }
        let warmups = self.experiment.warmup.saturating_sub(1);
        let left = Pace::left(self.timed, warmups);
        let pace = Pace { max_time, elapsed: self.elapsed(), round: self.session(), left };
        if let Some(warning) = pace.warning() {
            self.progress.say(&warning);
        }
    }

    /// How much is done, by whichever end is nearest.
    fn share(&self) -> f64 {
        if self.kind == RoundKind::Memory {
            let done =
                f64::from(self.sampled()) + f64::from(self.in_round) / f64::from(self.participants.max(1));
            return (done / f64::from(self.experiment.memory.max(1))).min(1.0);
        }
        let stopping = &self.experiment.stopping;
        let rounds = f64::from(self.timed) + f64::from(self.in_round) / f64::from(self.participants.max(1));
        let by_rounds = stopping.rounds.map(|most| rounds / f64::from(most.max(1)));
        let by_budget =
            stopping.max_time.map(|most| self.elapsed().as_secs_f64() / most.as_secs_f64().max(1e-9));
        // An interval narrows with the square root of the rounds.
        let by_width = match (stopping.precision, self.widest) {
            (Some(goal), Some(widest)) if widest > 0.0 => Some((goal / widest).powi(2)),
            _ => None,
        };
        [by_rounds, by_budget, by_width].into_iter().flatten().fold(0.0, f64::max).min(1.0)
    }

    fn show(&mut self) {
        let share = self.share();
        let elapsed = self.elapsed().as_secs_f64();
        let is_timed = !matches!(self.kind, RoundKind::Memory | RoundKind::Emulated);
        let left = (is_timed && share > 0.02)
            .then(|| Duration::from_secs_f64((elapsed * (1.0 / share - 1.0)).clamp(0.0, 1e6)));
        let state = match (self.timed, self.widest) {
            _ if self.kind == RoundKind::Memory => "memory series".to_owned(),
            _ if self.kind == RoundKind::Emulated => "counting by emulation".to_owned(),
            (0, _) => "warming up".to_owned(),
            (n, Some(widest)) => format!("round {n}, every interval within ±{:.1} %", widest * 100.0),
            (n, None) => format!("round {n}"),
        };
        self.progress.at(share, left, &format!("{state}{}", self.estimate.text));
    }
}

impl CampaignObserver for Recorder<'_> {
    type Error = ArchiveError;

    fn round_begins(
        &mut self,
        number: u32,
        kind: RoundKind,
        planned: u32,
        cpu: Option<u32>,
    ) -> Result<(), ArchiveError> {
        self.participants = planned;
        self.in_round = 0;
        self.kind = kind;
        self.archive.begin_round(number, kind, planned, cpu)
    }

    fn pauses(&mut self) -> Result<(), ArchiveError> {
        self.archive.commit()?;
        self.show();
        Ok(())
    }

    fn certain(&self) -> u32 {
        /// Runs that are begun ahead of their turn are over well before that.
        const MOMENT: Duration = Duration::from_millis(200);
        if self.is_time_spent(MOMENT) {
            return 0;
        }
        self.next_look.saturating_sub(self.timed + u32::from(self.kind == RoundKind::Timed))
    }

    fn run_ended(&mut self, run: &Run, result: &RunResult) -> Result<(), ArchiveError> {
        let mut run = run.clone();
        if let Some(reason) = &result.left_over {
            self.left_over(&mut run, reason)?;
        }
        // The series of such a run lacks what was killed, too.
        let series = result.series.as_ref().filter(|_| result.left_over.is_none());
        self.archive.add_sampled_run(&run, &notes(&run.variant, result), series)?;
        if let Some(account) = &result.account {
            let calls = account.slow_calls.iter().map(|(call, ways)| (*call, (ways.entered, ways.trapped)));
            self.archive.add_runtime_calls(run.round, &run.variant, &calls.collect())?;
        }
        for remark in &result.remarks {
            self.archive.warn(&format!("{} {remark}", run.variant))?;
        }
        self.runs.push(run);
        self.in_round += 1;
        Ok(())
    }

    fn round_ended(&mut self, round: &Round) -> Result<Next, ArchiveError> {
        self.archive.end_round(round)?;
        self.rounds.push(round.clone());
        self.timed += u32::from(round.kind == RoundKind::Timed);
        self.in_round = 0;
        self.warn_of_budget();
        self.estimate();
        let over = self.timed >= self.next_look || self.is_time_spent(Duration::ZERO);
        if round.kind == RoundKind::Timed && over {
            return Ok(self.look());
        }
        Ok(Next::Round)
    }

    fn excluded(
        &mut self,
        participant: &Participant,
        ending: &Ending,
        reason: &str,
    ) -> Result<(), ArchiveError> {
        // What cannot be started here is this machine's limit; all else is the program's failure.
        let is_unsupported = matches!(ending, Ending::SpawnFailed { .. });
        // The table has the fix as well.
        let brief = if is_unsupported { reason.split("; ").next().unwrap_or(reason) } else { reason };
        self.progress.say(&format!("  {}: {brief}", participant.name));
        // A variant that was measured natively keeps that.
        if self.kind == RoundKind::Emulated && !self.experiment.is_emulated(&participant.name) {
            return self
                .archive
                .warn(&format!("{}: instructions were not counted: {reason}", participant.name));
        }
        let reason = reason.to_owned();
        let status =
            if is_unsupported { VariantStatus::Unsupported(reason) } else { VariantStatus::Excluded(reason) };
        self.archive.set_status(&participant.name, &status)?;
        self.statuses.insert(participant.name.clone(), status);
        Ok(())
    }

    fn output_differs(
        &mut self,
        participant: &Participant,
        reason: &str,
        difference: &str,
    ) -> Result<(), ArchiveError> {
        self.progress.say(&format!("  {}: {reason}", participant.name));
        if matches!(self.statuses.get(&participant.name), Some(VariantStatus::LeftOver(_))) {
            return self.archive.set_difference(&participant.name, difference);
        }
        let status = if self.experiment.check.allow_different {
            VariantStatus::OutputMismatchAllowed(reason.to_owned())
        } else {
            VariantStatus::OutputMismatch(reason.to_owned())
        };
        self.archive.set_status(&participant.name, &status)?;
        self.statuses.insert(participant.name.clone(), status);
        self.archive.set_difference(&participant.name, difference)
    }

    fn interrupted(&self) -> &AtomicU8 {
        interrupt::times()
    }
}

/// The processes of a run, by command name. A program that is one process needs no list.
fn notes(variant: &str, result: &RunResult) -> Vec<ProcessNote> {
    let own = result.processes.as_deref().unwrap_or_default();
    if own.len() < 2 {
        return Vec::new();
    }
    let mut by_name: BTreeMap<&str, ProcessNote> = BTreeMap::new();
    for process in own {
        let note = by_name.entry(&process.comm).or_insert_with(|| ProcessNote {
            variant: variant.to_owned(),
            comm: process.comm.clone(),
            count: 0,
            max_rss_bytes: 0.0,
            cpu_ns: 0.0,
            source: "taskstats".to_owned(),
        });
        note.count += 1;
        note.max_rss_bytes = note.max_rss_bytes.max(process.max_rss as f64);
        note.cpu_ns += process.cpu_ns as f64;
    }
    by_name.into_values().collect()
}
