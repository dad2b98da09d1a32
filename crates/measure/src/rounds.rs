//! Rounds: randomised complete blocks, until whoever watches has seen enough.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;
use widthwise_experiment::model::OutputCheck;
use widthwise_experiment::outcome::{Ending, Round, RoundKind, Run};

use crate::answer;
use crate::run::{Limits, Ran, RunError, Runner, Start};
use crate::schedule;
use crate::turns::{self, Turns};
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
    /// How it is started.
    pub start: Start,
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
    pub together: bool,
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
pub trait Witness {
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
    fn run_ended(&mut self, run: &Run, ran: &Ran) -> Result<(), Self::Error>;
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
    Witness(E),
}

/// Makes rounds.
pub fn measure<W: Witness>(
    plan: &Plan,
    runner: &mut Runner,
    witness: &mut W,
) -> Result<End, RoundsError<W::Error>> {
    let mut answers = Answers::new(&plan.folder, &plan.check);
    let mut failures: BTreeMap<usize, u32> = BTreeMap::new();
    let mut out: Vec<usize> = Vec::new();
    let cpu = match plan.cpus[..] {
        [cpu] => Some(cpu),
        _ => None,
    };
    let mut turns = turns::of(plan, runner)?;
    let mut window = Window::open(&plan.cpus, turns.launchers());
    let mut enough = false;
    for number in plan.first_round.. {
        let kind = if number - plan.first_round < plan.warmup { RoundKind::Warmup } else { RoundKind::Timed };
        let slots: Vec<_> = schedule::round(plan.seed, number, plan.participants.len())
            .into_iter()
            .filter(|slot| !out.contains(&slot.participant))
            .collect();
        witness.round_begins(number, kind, slots.len() as u32, cpu).map_err(RoundsError::Witness)?;
        for (position, slot) in slots.iter().enumerate() {
            let participant = &plan.participants[slot.participant];
            let ran = loop {
                // No round is begun ahead while the machine is to be listened to, which takes a moment between runs.
                let last =
                    if enough || window.is_due() { number } else { number.saturating_add(witness.certain()) };
                if asked_to_end(witness) < 1 || turns.is_empty() {
                    turns.begin((number, &slots[position..]), last, &out)?;
                }
                if !turns.has_ended() {
                    witness.pauses().map_err(RoundsError::Witness)?;
                }
                let cut_off = || asked_to_end(witness) >= 2;
                match turns.end(&cut_off)? {
                    Some((round, begun, ran)) => {
                        window.busy += ran.busy;
                        // What was begun for one who takes part no longer is nobody's.
                        if (round, begun) == (number, *slot) {
                            break ran;
                        }
                    }
                    None => return Ok(End::Interrupted),
                }
            };
            if asked_to_end(witness) >= 2 && ran.ending != Ending::Done {
                return Ok(End::Interrupted);
            }
            let answer = answers.take(participant, &ran, turns.runner());
            let run = Run {
                variant: participant.name.clone(),
                round: number,
                position: position as u32,
                began_ns: since(plan.epoch, ran.began),
                ending: ran.ending.clone(),
                sample: ran.sample.clone(),
                answer,
            };
            witness.run_ended(&run, &ran).map_err(RoundsError::Witness)?;
            if run.ending != Ending::Done {
                let failed = failures.entry(slot.participant).or_default();
                *failed += 1;
                if kind == RoundKind::Warmup || *failed >= MOST_FAILURES {
                    let reason = failure(&run.ending, &turns.runner().stderr());
                    witness.gives_up(participant, &run.ending, &reason).map_err(RoundsError::Witness)?;
                    out.push(slot.participant);
                }
                // The last two are the same program as the first: nothing can be said without them.
                let last = plan.participants.len() - 1;
                if out.contains(&0) || out.contains(&last) {
                    return Ok(End::NoBaseline);
                }
            }
            // The last run of a round is followed by the round's end: a whole round is kept as one.
            if position + 1 < slots.len() && ends_here(turns.as_mut(), witness)? {
                return Ok(End::Interrupted);
            }
        }
        let mut noise = if turns.is_empty() { window.heard() } else { window.not_heard() };
        if plan.together {
            noise.pressure = None; // they wait for each other
        }
        for told in answers.compare(&plan.participants) {
            witness
                .differs(told.participant, &told.reason, &told.difference)
                .map_err(RoundsError::Witness)?;
        }
        let next = witness.round_ended(&Round { number, kind, cpu, noise }).map_err(RoundsError::Witness)?;
        if ends_here(turns.as_mut(), witness)? {
            return Ok(End::Interrupted);
        }
        // What has begun is ended: the rounds that were certain, until the time allowed was spent.
        enough |= kind == RoundKind::Timed && next == Next::Stop;
        if enough && turns.is_empty() {
            return Ok(End::Enough);
        }
    }
    Ok(End::Enough)
}

fn asked_to_end<W: Witness>(witness: &W) -> u8 {
    witness.interrupted().load(Ordering::Relaxed)
}

/// Whether the user has asked for an end, and no run is going on.
fn ends_here<W: Witness>(turns: &mut dyn Turns, witness: &W) -> Result<bool, RoundsError<W::Error>> {
    Ok(asked_to_end(witness) >= 1 && (turns.is_empty() || !turns.goes_on(&|| asked_to_end(witness) >= 2)?))
}

pub(crate) fn since(epoch: SystemTime, moment: SystemTime) -> u64 {
    moment.duration_since(epoch).map_or(0, |age| age.as_nanos() as u64)
}

/// How a run failed, with the program's own last words.
pub fn failure(ending: &Ending, stderr: &Path) -> String {
    let how = describe(ending);
    if matches!(ending, Ending::NotStarted { .. } | Ending::Around { .. }) {
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
        Ending::Flood { limit_bytes } => {
            format!("wrote more than {} MB to its standard output, and was killed", limit_bytes / 1_000_000)
        }
        Ending::NotStarted { reason } | Ending::Around { reason } => reason.clone(),
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
struct Answers<'a> {
    folder: &'a Path,
    check: &'a OutputCheck,
    reader: answer::Reader,
    /// Each participant's first answer in this session.
    first: BTreeMap<String, String>,
    /// A later answer that is not the first.
    unsteady: BTreeMap<String, String>,
    told: Vec<String>,
    trouble: BTreeMap<String, String>,
}

struct Told<'a> {
    participant: &'a Participant,
    reason: String,
    difference: String,
}

impl<'a> Answers<'a> {
    fn new(folder: &'a Path, check: &'a OutputCheck) -> Answers<'a> {
        Answers {
            folder,
            check,
            reader: answer::Reader::default(),
            first: BTreeMap::new(),
            unsteady: BTreeMap::new(),
            told: Vec::new(),
            trouble: BTreeMap::new(),
        }
    }

    fn take(&mut self, participant: &Participant, ran: &Ran, runner: &Runner) -> Option<String> {
        if ran.ending != Ending::Done || self.check.off {
            return None;
        }
        let name = &participant.name;
        let kept = answer::kept(self.folder, &participant.slug);
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
    fn compare<'p>(&mut self, participants: &'p [Participant]) -> Vec<Told<'p>> {
        let Some(baseline) = participants.first() else { return Vec::new() };
        let reference = answer::kept(self.folder, &baseline.slug);
        let mut news = Vec::new();
        for participant in participants {
            let name = &participant.name;
            if self.told.contains(name) {
                continue;
            }
            let kept = answer::kept(self.folder, &participant.slug);
            let diff = |a: &Path, b: &Path, names| answer::difference(a, b, names).unwrap_or_default();
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
            news.push(Told { participant, reason, difference });
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
