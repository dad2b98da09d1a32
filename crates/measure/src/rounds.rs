//! Rounds: randomised complete blocks, until whoever watches has seen enough.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use widthwise_experiment::Role;

use thiserror::Error;
use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run};

use crate::executor::{self, Executor};
use crate::output;
use crate::run::{LaunchSpec, Limits, RunError, RunResult, Runner};
use crate::schedule;
use crate::window::Window;

/// A variant that keeps failing is not run for ever.
const MOST_FAILURES: u32 = 3;

/// One who takes part in every round.
#[derive(Debug, Clone)]
pub struct Participant {
    /// The variant's name; the baseline takes part a second time under another.
    pub name: String,
    /// A safe name for its files.
    pub slug: String,
    /// What it is for.
    pub role: Role,
    /// How it is started.
    pub start: LaunchSpec,
}

/// What a campaign does.
#[derive(Debug)]
pub struct Plan {
    /// Everyone; the first is the baseline.
    pub participants: Vec<Participant>,
    /// Seed of the orders and paddings.
    pub seed: u64,
    /// The number of the first round: not 0 in a campaign that is resumed.
    pub first_round: u32,
    /// How many rounds come before the timed ones.
    pub warmup: u32,
    /// CPUs a run may use; empty for all.
    pub cpus: Vec<u32>,
    /// The runs of a round are made at the same time.
    pub concurrent: bool,
    /// What ends a run.
    pub limits: Limits,
    /// How answers are compared.
    pub check: OutputCheck,
    /// The campaign's folder, where first answers are kept.
    pub folder: PathBuf,
    /// The campaign's first moment, for `Run::began_ns`.
    pub epoch: SystemTime,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another round.
    Round,
    /// Enough.
    Stop,
}

/// One who watches, keeps what is found, and says when it is enough.
pub trait CampaignObserver {
    /// What can go wrong with keeping.
    type Error;
    /// A round begins.
    fn round_begins(
        &mut self,
        number: u32,
        kind: RoundKind,
        planned: u32,
        cpu: Option<u32>,
    ) -> Result<(), Self::Error>;
    /// Nothing is to be done until a run ends: what was found so far is to be kept, and progress shown.
    fn pauses(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
    /// How many rounds there will be in any case after the one that is going on, whatever it yields: their runs may be
    /// begun ahead.
    fn certain(&self) -> u32 {
        0
    }
    /// A run is over.
    fn run_ended(&mut self, run: &Run, result: &RunResult) -> Result<(), Self::Error>;
    /// A round is over.
    fn round_ended(&mut self, round: &Round) -> Result<Next, Self::Error>;
    /// A participant fails, and takes part no longer.
    fn gives_up(
        &mut self,
        participant: &Participant,
        ending: &Ending,
        reason: &str,
    ) -> Result<(), Self::Error>;
    /// A participant answers otherwise than the baseline did; told once for each.
    fn differs(
        &mut self,
        participant: &Participant,
        reason: &str,
        difference: &str,
    ) -> Result<(), Self::Error>;
    /// Whether the user has asked for an end: 0 no, 1 after this run, 2 at once.
    fn interrupted(&self) -> &AtomicU8;
}

/// Why the rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The witness had seen enough.
    Enough,
    /// The user asked for it.
    Interrupted,
    /// The baseline fails, so that there is nothing to compare with.
    NoBaseline,
}

/// The rounds could not go on.
#[derive(Debug, Error)]
pub enum RoundsError<E> {
    /// Runs cannot be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What was found cannot be kept.
    #[error("{0}")]
    CampaignObserver(E),
}

/// Makes rounds.
pub fn measure<W: CampaignObserver>(
    plan: &Plan,
    runner: &mut Runner,
    observer: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let mut outputs = Outputs::new(&plan.folder, &plan.check);
    let mut failures: BTreeMap<usize, u32> = BTreeMap::new();
    let mut out: Vec<usize> = Vec::new();
    let cpu = match plan.cpus[..] {
        [cpu] => Some(cpu),
        _ => None,
    };
    let mut executor = executor::of(plan, runner)?;
    let mut window = Window::open(&plan.cpus, executor.launchers());
    let mut enough = false;
    for number in plan.first_round.. {
        let kind = if number - plan.first_round < plan.warmup { RoundKind::Warmup } else { RoundKind::Timed };
        let slots: Vec<_> = schedule::round(plan.seed, number, plan.participants.len())
            .into_iter()
            .filter(|slot| !out.contains(&slot.participant))
            .collect();
        observer
            .round_begins(number, kind, slots.len() as u32, cpu)
            .map_err(RoundsError::CampaignObserver)?;
        for (position, slot) in slots.iter().enumerate() {
            let participant = &plan.participants[slot.participant];
            let result = loop {
                // No round is begun ahead while the machine is to be listened to, which takes a moment between runs.
                let last = if enough || window.is_due() {
                    number
                } else {
                    number.saturating_add(observer.certain())
                };
                if asked_to_end(observer) < 1 || executor.is_empty() {
                    executor.begin((number, &slots[position..]), last, &out)?;
                }
                if !executor.has_ended() {
                    observer.pauses().map_err(RoundsError::CampaignObserver)?;
                }
                let cancelled = || asked_to_end(observer) >= 2;
                match executor.end(&cancelled)? {
                    Some((round, begun, result)) => {
                        window.busy += result.busy;
                        // What was begun for one who takes part no longer is nobody's.
                        if (round, begun) == (number, *slot) {
                            break result;
                        }
                    }
                    None => return Ok(End::Interrupted),
                }
            };
            if asked_to_end(observer) >= 2 && result.ending != Ending::Done {
                return Ok(End::Interrupted);
            }
            let output_digest = outputs.take(participant, &result, executor.runner());
            let run = Run {
                variant: participant.name.clone(),
                round: number,
                position: position as u32,
                began_ns: since(plan.epoch, result.began),
                ending: result.ending.clone(),
                sample: result.sample.clone(),
                output_digest,
            };
            observer.run_ended(&run, &result).map_err(RoundsError::CampaignObserver)?;
            if run.ending != Ending::Done {
                let failed = failures.entry(slot.participant).or_default();
                *failed += 1;
                if kind == RoundKind::Warmup || *failed >= MOST_FAILURES {
                    let reason = failure(&run.ending, &executor.runner().stderr());
                    observer
                        .gives_up(participant, &run.ending, &reason)
                        .map_err(RoundsError::CampaignObserver)?;
                    out.push(slot.participant);
                }
                // Without the baseline there is nothing to compare with, without the control no detection floor.
                if out.iter().any(|&one| plan.participants[one].role != Role::Variant) {
                    return Ok(End::NoBaseline);
                }
            }
            // The last run of a round is followed by the round's end: a whole round is kept as one.
            if position + 1 < slots.len() && ends_here(executor.as_mut(), observer)? {
                return Ok(End::Interrupted);
            }
        }
        let mut noise = if executor.is_empty() { window.heard() } else { window.not_heard() };
        if plan.concurrent {
            noise.pressure = None; // they wait for each other
        }
        for told in outputs.compare(&plan.participants) {
            observer
                .differs(told.participant, &told.reason, &told.difference)
                .map_err(RoundsError::CampaignObserver)?;
        }
        let next = observer
            .round_ended(&Round { number, kind, cpu, noise })
            .map_err(RoundsError::CampaignObserver)?;
        if ends_here(executor.as_mut(), observer)? {
            return Ok(End::Interrupted);
        }
        // What has begun is ended: the rounds that were certain, until the time allowed was spent.
        enough |= kind == RoundKind::Timed && next == Next::Stop;
        if enough && executor.is_empty() {
            return Ok(End::Enough);
        }
    }
    Ok(End::Enough)
}

fn asked_to_end<W: CampaignObserver>(observer: &W) -> u8 {
    observer.interrupted().load(Ordering::Relaxed)
}

/// Whether the user has asked for an end, and no run is going on.
fn ends_here<W: CampaignObserver>(
    executor: &mut dyn Executor,
    observer: &W,
) -> Result<bool, RoundsError<W::Error>> {
    Ok(asked_to_end(observer) >= 1
        && (executor.is_empty() || !executor.drain(&|| asked_to_end(observer) >= 2)?))
}

pub(crate) fn since(epoch: SystemTime, moment: SystemTime) -> u64 {
    moment.duration_since(epoch).map_or(0, |age| age.as_nanos() as u64)
}

/// How a run failed, with the program's own last words.
pub fn failure(ending: &Ending, stderr: &Path) -> String {
    let how = describe(ending);
    if matches!(ending, Ending::SpawnFailed { .. } | Ending::HookFailed { .. }) {
        return how;
    }
    let text = std::fs::read(stderr).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]).into_owned();
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}: {}", line.trim()),
        None => how,
    }
}

/// How a run ended, in words.
pub fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Done => "it ended well".into(),
        Ending::Exit { status } => format!("it ended with exit status {status}"),
        Ending::Signal { signal } => format!("killed by signal {signal}{}", signal_name(*signal)),
        Ending::Timeout { limit_ns } => {
            format!("still running after {} s, and was killed (--timeout)", *limit_ns as f64 / 1e9)
        }
        Ending::OutputLimit { limit_bytes } => {
            format!("wrote more than {} MB to its standard output, and was killed", limit_bytes / 1_000_000)
        }
        Ending::SpawnFailed { reason } | Ending::HookFailed { reason } => reason.clone(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGKILL => " (SIGKILL; out of memory?)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGSYS => " (SIGSYS)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    }
}

/// The answers of a campaign: the baseline's first is the one that counts.
struct Outputs<'a> {
    folder: &'a Path,
    check: &'a OutputCheck,
    reader: output::Reader,
    /// Each participant's first answer in this session.
    first: BTreeMap<String, String>,
    /// A later answer that is not the first.
    unsteady: BTreeMap<String, String>,
    told: Vec<String>,
    trouble: BTreeMap<String, String>,
}

struct ReportedEvents<'a> {
    participant: &'a Participant,
    reason: String,
    difference: String,
}

impl<'a> Outputs<'a> {
    fn new(folder: &'a Path, check: &'a OutputCheck) -> Outputs<'a> {
        Outputs {
            folder,
            check,
            reader: output::Reader::default(),
            first: BTreeMap::new(),
            unsteady: BTreeMap::new(),
            told: Vec::new(),
            trouble: BTreeMap::new(),
        }
    }

    fn take(&mut self, participant: &Participant, result: &RunResult, runner: &Runner) -> Option<String> {
        if result.ending != Ending::Done || self.check.off {
            return None;
        }
        let name = &participant.name;
        let kept = output::kept(self.folder, &participant.slug);
        let keep = (!self.first.contains_key(name)).then_some(kept.as_path());
        match self.reader.digest(self.check, &runner.stdout(), &participant.start.directory, keep) {
            Ok(digest) => {
                let first = self.first.entry(name.clone()).or_insert_with(|| digest.clone());
                if *first != digest && !self.unsteady.contains_key(name) {
                    // Kept beside the first, for the diff.
                    let other = other_answer(&kept);
                    let _ = self.reader.digest(
                        self.check,
                        &runner.stdout(),
                        &participant.start.directory,
                        Some(&other),
                    );
                    self.unsteady.insert(name.clone(), digest.clone());
                }
                Some(digest)
            }
            Err(reason) => {
                self.trouble.entry(name.clone()).or_insert(reason);
                None
            }
        }
    }

    /// Those who answer otherwise, and of whom that has not been told.
    fn compare<'p>(&mut self, participants: &'p [Participant]) -> Vec<ReportedEvents<'p>> {
        let Some(baseline) = participants.first() else { return Vec::new() };
        let reference = output::kept(self.folder, &baseline.slug);
        let mut news = Vec::new();
        for participant in participants {
            let name = &participant.name;
            if self.told.contains(name) {
                continue;
            }
            let kept = output::kept(self.folder, &participant.slug);
            let diff = |a: &Path, b: &Path, names| output::difference(a, b, names).unwrap_or_default();
            let (reason, difference) = if let Some(reason) = self.trouble.get(name) {
                (reason.clone(), String::new())
            } else if self.unsteady.contains_key(name) {
                let other = other_answer(&kept);
                (
                    "its output changes from run to run; `--filter` leaves out what may change, `--check off` compares \
                     nothing"
                        .to_owned(),
                    diff(&kept, &other, (&format!("{name}, first"), &format!("{name}, later"))),
                )
            } else if self.first.get(name).is_some_and(|own| self.first.get(&baseline.name) != Some(own)) {
                (
                    "its output differs from the baseline's".to_owned(),
                    diff(&reference, &kept, (&baseline.name, name)),
                )
            } else {
                continue;
            };
            self.told.push(name.clone());
            news.push(ReportedEvents { participant, reason, difference });
        }
        news
    }
}

fn other_answer(kept: &Path) -> PathBuf {
    let mut name = kept.as_os_str().to_owned();
    name.push(".later");
    name.into()
}

/// A campaign's first moment.
pub fn epoch(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}
