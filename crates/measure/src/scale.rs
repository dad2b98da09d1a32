//! How an attempt at a cell of a study is made: started at one moment, each member on its CPU, watched, accounted for by
//! member, cleaned up; and how rounds of them are made.

pub mod crew;
pub mod family;
mod snapshot;
pub mod told;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::placeholder;
use widthwise_experiment::scale::{Attempt, Cell, Member, Mode, Purpose, Told, Work};

use crate::memory::runtime_of;
use crate::rounds::failure;
use crate::run::{lay_out, shell, Limits, Start};
use crate::sampler::marks::Marks;
use crate::sampler::{now, tree, MARKS};
use crate::schedule;
use crate::taskstats::Exit;

pub use crew::{Crew, CrewError};
use crew::{Overseer, Performance, Task};
use family::Family;
use snapshot::Camera;
use told::Telling;

/// While members are still awaited they are looked for so often: until then they may be on each other's CPUs.
const AWAITING: Duration = Duration::from_millis(2);
/// When nobody new has come for so long, they are looked for less often.
const PATIENT: Duration = Duration::from_secs(5);
const LESS_OFTEN: Duration = Duration::from_millis(20);
/// What is looked at when all are there: whether they stay where they were put, and CPU times where nobody else tells.
const ALL_THERE: Duration = Duration::from_millis(100);
/// Starts that lie further apart than this share of the time are told.
const APART: f64 = 0.01;
/// What a log is read up to.
const MOST_LOG: u64 = 64 << 20;

/// What an attempt is made of.
#[derive(Debug)]
pub struct Order<'a> {
    /// Which cell.
    pub cell: &'a Cell,
    /// What for.
    pub purpose: Purpose,
    /// The program; the words of [`widthwise_experiment::scale::WORDS`] are still to be filled in.
    pub start: &'a Start,
    /// The CPU of each member; empty leaves them to the system.
    pub cpus: &'a [u32],
    /// CPUs that may be used at all: load runs on the others, and so do we.
    pub allowed: &'a [u32],
    /// Events, all members together, where they are known.
    pub events: Option<u64>,
    /// Work, which says how jobs share the events.
    pub work: Work,
    /// The bytes of one more variable.
    pub padding: usize,
    /// A program that runs on each of the other CPUs meanwhile.
    pub background: Option<&'a Start>,
    /// How events are told.
    pub telling: Option<&'a Telling>,
}

/// Makes one attempt.
///
/// # Errors
/// A launcher is gone, the scratch folder cannot be written, or processes cannot be killed. How the program fares is no
/// error but the attempt's ending.
pub fn attempt(
    order: &Order,
    crew: &mut Crew,
    scratch: &Path,
    limits: Limits,
    cut_off: &dyn Fn() -> bool,
) -> Result<Attempt, CrewError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| CrewError::Scratch { path, error }
    };
    std::fs::create_dir_all(scratch).map_err(at(scratch))?;
    let cell = order.cell;
    let count = if cell.mode == Mode::Jobs { cell.processes } else { 1 };
    let mut starts = Vec::new();
    let mut pipes = Vec::new();
    for index in 0..count {
        let mut start = filled(order, index);
        if matches!(order.telling, Some(Telling::Marks)) {
            let path = scratch.join(format!("marks-{index}"));
            pipes.push(Marks::open(&path).map_err(at(&path))?);
            start.environment.insert(MARKS.to_owned(), path.display().to_string());
        }
        starts.push(start);
    }
    let mut tasks = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let cpus = match (cell.mode, order.cpus) {
            (_, []) => Vec::new(),
            (Mode::Jobs, cpus) => vec![cpus[index % cpus.len()]],
            (_, cpus) => cpus.to_vec(),
        };
        let output = scratch.join(format!("stdout-{index}"));
        // What another attempt wrote must not be taken for this one's.
        std::fs::File::create(&output).map_err(at(&output))?;
        tasks.push(Task { start, cpus, output, padding: order.padding, background: false });
    }
    let mut load: Vec<u32> = order.allowed.to_vec();
    load.retain(|cpu| !order.cpus.contains(cpu));
    for (index, &cpu) in load.iter().enumerate() {
        if let Some(start) = order.background {
            let output = scratch.join(format!("load-{index}"));
            tasks.push(Task { start, cpus: vec![cpu], output, padding: 0, background: true });
        }
    }
    if let Some(inputs) = &order.start.fresh {
        lay_out(&order.start.directory, inputs).map_err(at(&order.start.directory))?;
    }
    if let Some(reason) = order.start.setup.as_ref().and_then(|text| shell(text, &starts[0]).err()) {
        return Ok(not_begun(order, Ending::Around { reason: format!("setup {reason}") }));
    }
    // Our own work is done elsewhere, where there is an elsewhere without the load.
    let elsewhere = if load.is_empty() || order.background.is_some() { order.allowed } else { &load[..] };
    if !elsewhere.is_empty() {
        let _ = family::put(&family::Put { pid: 0, cpus: elsewhere.to_vec(), first: true });
    }
    let mut watcher = Watcher::new(order, pipes, crew.without_taskstats.is_some());
    let performance = crew.perform(&tasks, limits, cut_off, &mut watcher)?;
    let mut attempt = accounted(order, &tasks, performance, watcher);
    if let Some(reason) = order.start.teardown.as_ref().and_then(|text| shell(text, &starts[0]).err()) {
        if attempt.is_sound() {
            attempt.ending = Ending::Around { reason: format!("teardown {reason}") };
            attempt.failure = Some(format!("teardown {reason}"));
        }
    }
    Ok(attempt)
}

/// The program of a job, or of all, with its words filled in.
fn filled(order: &Order, index: usize) -> Start {
    let cell = order.cell;
    let is_job = cell.mode == Mode::Jobs;
    let jobs = cell.processes as u64;
    let (events, first) = match order.events {
        Some(events) if is_job => share(events, jobs, index as u64),
        Some(events) => (events, 0),
        None => (1, 0),
    };
    let words = BTreeMap::from([
        ("processes", if is_job { 1 } else { cell.processes }.to_string()),
        ("index", index.to_string()),
        ("events", events.to_string()),
        ("first", first.to_string()),
    ]);
    let mut start = order.start.clone();
    let fill = |text: &mut String| *text = placeholder::fill(text, &words);
    start.arguments.iter_mut().for_each(fill);
    start.environment.values_mut().filter(|value| value.contains('{')).for_each(fill);
    start.setup.iter_mut().chain(&mut start.teardown).for_each(fill);
    start
}

/// A job's part of the events, and the number of its first: parts that differ by one at most, in the order of the jobs.
fn share(events: u64, jobs: u64, index: u64) -> (u64, u64) {
    let (part, rest) = (events / jobs.max(1), events % jobs.max(1));
    (part + u64::from(index < rest), part * index + index.min(rest))
}

fn not_begun(order: &Order, ending: Ending) -> Attempt {
    Attempt {
        round: 0,
        position: 0,
        cell: order.cell.clone(),
        purpose: order.purpose,
        events: order.events,
        failure: Some(crate::rounds::describe(&ending)),
        ending,
        elapsed_ns: 0,
        spread_ns: 0,
        cpu_ns: 0,
        before_fork: None,
        members: Vec::new(),
        counters: BTreeMap::new(),
        memory: None,
        answer: None,
        remarks: Vec::new(),
    }
}

/// Watches an attempt.
#[derive(Debug)]
struct Watcher {
    mode: Mode,
    expected: usize,
    pins: bool,
    family: Family,
    camera: Option<Camera>,
    pipes: Vec<Marks>,
    poll_cpu: bool,
    launcher_file: Option<PathBuf>,
    newest: Instant,
    seen: usize,
    all_seen: Option<Instant>,
    looked: Instant,
    look_again: Duration,
    photographed: Option<(Instant, Duration)>,
    remarks: Vec<String>,
    /// A counter for each member, and what it had used before.
    counters: BTreeMap<u32, (perf_event::Counter, u64)>,
}

impl Watcher {
    fn new(order: &Order, pipes: Vec<Marks>, poll_cpu: bool) -> Watcher {
        let cell = order.cell;
        let now = Instant::now();
        Watcher {
            mode: cell.mode,
            expected: cell.processes,
            pins: !order.cpus.is_empty(),
            family: Family::new(cell.mode, cell.processes, order.cpus),
            camera: (order.purpose == Purpose::Memory).then(|| Camera::new(runtime_of(order.start))),
            pipes,
            poll_cpu,
            launcher_file: None,
            newest: now,
            seen: 0,
            all_seen: None,
            looked: now,
            look_again: Duration::ZERO,
            photographed: None,
            remarks: Vec::new(),
            counters: BTreeMap::new(),
        }
    }

    /// Counts the CPU time of members that have come.
    fn count_members(&mut self) {
        let process = self.family.parent().unwrap_or(0);
        for pid in self.family.member_pids() {
            if !self.counters.contains_key(&pid) {
                if let Some(counter) = family::counter(self.mode, process, pid) {
                    self.counters.insert(pid, counter);
                }
            }
        }
    }

    /// Looks who is there, and puts whoever is new on a CPU.
    fn find_members(&mut self, launcher: u32) {
        if self.launcher_file.is_none() {
            self.launcher_file = tree::program(launcher);
        }
        let awaited = !self.family.is_complete();
        let parent = self.family.parent().filter(|parent| !self.family.member_pids().contains(parent));
        let sightings = match parent {
            // The whole tree now and then: who was taken for the parent need not be it.
            Some(parent) if self.all_seen.is_some_and(|at| at.elapsed() < ALL_THERE) => {
                family::sight_new(self.mode, parent, &|pid| self.family.knows(pid))
            }
            _ => {
                self.all_seen = Some(Instant::now());
                let with_cpu = awaited || self.poll_cpu;
                family::sight(self.mode, launcher, self.launcher_file.as_ref(), with_cpu)
            }
        };
        let puts = self.family.seen(&sightings, now());
        for put in &puts {
            // Whoever puts itself somewhere is left there, and told.
            if let Some(cpus) = family::allowed(put.pid).filter(|cpus| self.family.has_chosen(put, cpus)) {
                self.family.found_on(put.pid, &cpus);
                continue;
            }
            match family::put(put) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) && self.remarks.is_empty() => {
                    self.remarks
                        .push(format!("process {} could not be put on CPU {:?}: {error}", put.pid, put.cpus));
                }
                _ => {}
            }
        }
        self.count_members();
        if self.pins && puts.is_empty() {
            for pid in self.family.member_pids() {
                if let Some(cpus) = family::allowed(pid) {
                    self.family.found_on(pid, &cpus);
                }
            }
        }
        let members = self.family.member_pids().len();
        if members != self.seen {
            self.newest = Instant::now();
        }
        self.seen = members;
        self.look_again = if !awaited {
            ALL_THERE
        } else if self.newest.elapsed() > PATIENT {
            LESS_OFTEN
        } else {
            AWAITING
        };
    }
}

impl Overseer for Watcher {
    fn look(&mut self, launchers: &[u32], groups: &[Option<PathBuf>]) -> Duration {
        let at = now();
        for pipe in &mut self.pipes {
            pipe.hear(at);
        }
        let mut next = if self.pipes.is_empty() { ALL_THERE } else { LESS_OFTEN };
        if self.mode != Mode::Jobs {
            if let ([launcher, ..], true) = (launchers, self.looked.elapsed() >= self.look_again) {
                self.find_members(*launcher);
                self.looked = Instant::now();
            }
            next = next.min(self.look_again.saturating_sub(self.looked.elapsed()));
        }
        if let Some(camera) = &mut self.camera {
            let due = self.photographed.is_none_or(|(at, gap)| at.elapsed() >= gap);
            if due {
                let pids = snapshot::everyone(launchers);
                let (parent, members) = match self.mode {
                    Mode::Jobs => {
                        let roots =
                            launchers.iter().flat_map(|launcher| tree::children(*launcher, *launcher));
                        (None, roots.collect())
                    }
                    Mode::Fork => (self.family.parent(), self.family.member_pids()),
                    // Threads have their memory in common.
                    Mode::Threads => (None, self.family.parent().into_iter().collect()),
                };
                let expected = if self.mode == Mode::Threads { 1 } else { self.expected };
                let gap = camera.read(&pids, parent, &members, expected, groups);
                self.photographed = Some((Instant::now(), gap));
            }
            if let Some((at, gap)) = self.photographed {
                next = next.min(gap.saturating_sub(at.elapsed()));
            }
        }
        next
    }
}

/// Puts together what is known of an attempt.
fn accounted(order: &Order, tasks: &[Task], performance: Performance, watcher: Watcher) -> Attempt {
    let Watcher { mut family, camera, pipes, mut remarks, mut counters, .. } = watcher;
    let counted: BTreeMap<u32, u64> = counters
        .iter_mut()
        .filter_map(|(pid, (counter, before))| Some((*pid, *before + counter.read().ok()?)))
        .collect();
    drop(counters);
    let cell = order.cell;
    let Performance { done, mut exits, exits_lost, appointed, counters: sums, .. } = performance;
    let done: Vec<_> = done.into_iter().zip(tasks).filter(|(_, task)| !task.background).collect();
    let mut attempt = not_begun(order, Ending::Done);
    attempt.failure = None;
    for (done, task) in &done {
        if attempt.ending == Ending::Done && done.ending != Ending::Done {
            attempt.ending = done.ending.clone();
            attempt.failure = Some(failure(&done.ending, &task.errors()));
        }
    }
    let begun: Vec<u64> = done
        .iter()
        .filter(|(done, _)| done.reply.failed.is_none())
        .map(|(done, _)| done.reply.began.as_nanos() as u64)
        .collect();
    let (Some(first), Some(last)) = (begun.iter().min().copied(), begun.iter().max().copied()) else {
        return attempt;
    };
    let ends = done.iter().map(|(done, _)| (done.reply.began + done.reply.wall).as_nanos() as u64);
    attempt.elapsed_ns = ends.max().unwrap_or(first) - first;
    attempt.spread_ns = last - first;
    attempt.cpu_ns =
        done.iter().map(|(done, _)| (done.reply.user + done.reply.system).as_nanos() as u64).sum();
    attempt.counters = sums.into_iter().map(|(metric, value)| (metric.name.to_owned(), value)).collect();
    if attempt.spread_ns as f64 > APART * attempt.elapsed_ns as f64 && attempt.spread_ns > 1_000_000 {
        remarks.push(format!(
            "the first and the last were started {:.1} ms apart ({:.1} ms after the moment appointed): the machine was busy",
            attempt.spread_ns as f64 / 1e6,
            last.saturating_sub(appointed.as_nanos() as u64) as f64 / 1e6
        ));
    }
    for (done, _) in &done {
        if done.reply.left_over > 0 {
            let count = match done.reply.left_over {
                1 => "a process".to_owned(),
                several => format!("{several} processes"),
            };
            remarks.push(format!("left {count} running behind it, to be killed"));
        }
    }
    if exits_lost {
        remarks.push("so many processes ended at once that the kernel dropped some of its accounts".into());
    }
    if cell.mode == Mode::Jobs {
        attempt.members = done
            .iter()
            .map(|(done, task)| {
                let reply = &done.reply;
                let began = reply.began.as_nanos() as u64;
                Member {
                    pid: reply.pid,
                    cpu: task.cpus.first().copied(),
                    moved_to: None,
                    began_ns: began.saturating_sub(first),
                    ended_ns: (began + reply.wall.as_nanos() as u64).saturating_sub(first),
                    cpu_ns: (reply.user + reply.system).as_nanos() as u64,
                    exact: true,
                    peak_resident: Some(reply.peak_resident),
                    told: None,
                }
            })
            .collect();
    } else {
        exits.retain(|(exit, told_ns)| told_ns.saturating_sub(exit.elapsed_ns) + 1_000_000 >= first);
        family.learn(done.first().map_or(0, |(done, _)| done.reply.pid), &exits);
        attempt.before_fork = family.before_fork(first, &exits);
        attempt.members = family.members(first, &exits, &counted);
        let left_over = done.iter().any(|(done, _)| done.reply.left_over > 0);
        members_failed(&mut attempt, &family, &exits, left_over);
        if attempt.is_sound() && attempt.members.len() < cell.processes {
            let root = done.first().map_or(0, |(done, _)| done.reply.pid);
            let threads = exits.iter().filter(|(exit, _)| exit.tgid == root).count();
            let hint = if cell.mode == Mode::Fork && threads >= cell.processes.max(2) {
                format!("it has {threads} threads: --mode threads")
            } else {
                "does the command use {processes}, and has one process all of them?".to_owned()
            };
            attempt.failure = Some(format!(
                "{} {} were asked for and {} seen: {hint}",
                cell.processes,
                cell.mode.noun(),
                match attempt.members.len() {
                    0 => "none was".to_owned(),
                    1 => "one was".to_owned(),
                    seen => format!("{seen} were"),
                },
            ));
        }
        attempt.members.truncate(cell.processes);
        // Ends are told a moment after they have come.
        let end = attempt.elapsed_ns;
        attempt.members.iter_mut().for_each(|member| member.ended_ns = member.ended_ns.min(end));
    }
    for (index, member) in attempt.members.iter().enumerate() {
        if let (Some(cpu), Some(moved)) = (member.cpu, &member.moved_to) {
            remarks.push(format!(
                "{} {index} was put on CPU {cpu} and put itself on {moved}: the placement is the program's own",
                cell.mode.singular()
            ));
        }
    }
    let uncounted = attempt.members.iter().filter(|member| !member.exact).count();
    if uncounted > 0 {
        remarks.push(format!(
            "{uncounted} of the {} ended before CPU times could be counted: those are by ticks, and evtime is by the whole tree",
            cell.mode.noun()
        ));
    }
    attempt.memory = camera.map(|camera| camera.close(first));
    if let Some(memory) = &attempt.memory {
        if attempt.failure.is_none() && memory.highest.is_none() {
            remarks.push("too short for its memory to be read while all were there".into());
        }
        if !memory.frozen {
            remarks.push(
                "memory was read while processes ran, since there is no cgroup v2 to make them stand still: sums are \
                 blurred"
                    .into(),
            );
        }
    }
    attempt.answer = Some(answer(tasks));
    tell(order, tasks, pipes, &mut attempt);
    if order.telling.is_some()
        && attempt.is_sound()
        && attempt.members.iter().all(|member| member.told.is_none())
    {
        remarks.push("told no event in the way that was said: evtime is CPU time over events".into());
    }
    attempt.remarks = remarks;
    attempt
}

/// A digest of every standard output, in the order of the jobs.
fn answer(tasks: &[Task]) -> String {
    let mut hasher = blake3::Hasher::new();
    for task in tasks.iter().filter(|task| !task.background) {
        // A file that is gone counts as one that is empty.
        if let Ok(file) = std::fs::File::open(&task.output) {
            let _ = hasher.update_reader(file);
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A member that did not end well makes the attempt no success, whatever the parent said.
fn members_failed(attempt: &mut Attempt, family: &Family, exits: &[(Exit, u64)], left_over: bool) {
    if !attempt.is_sound() {
        return;
    }
    if let Some((place, status)) = family.failures(exits).first() {
        if left_over && libc::WIFSIGNALED(*status) && libc::WTERMSIG(*status) == libc::SIGKILL {
            attempt.failure = Some(format!(
                "it ended before its {}, which were killed: it has to wait for them",
                attempt.cell.mode.noun()
            ));
            return;
        }
        let ending = if libc::WIFSIGNALED(*status) {
            Ending::Signal { signal: libc::WTERMSIG(*status) }
        } else {
            Ending::Exit { status: libc::WEXITSTATUS(*status) }
        };
        let how = crate::rounds::describe(&ending);
        attempt.failure = Some(format!("{} {place} did not end well: {how}", attempt.cell.mode.singular()));
        attempt.ending = ending;
    }
}

/// Takes in what the program told of its events.
fn tell(order: &Order, tasks: &[Task], pipes: Vec<Marks>, attempt: &mut Attempt) {
    match order.telling {
        None => {}
        Some(Telling::Marks) => {
            let at = now();
            for (index, pipe) in pipes.into_iter().enumerate() {
                let (marks, _) = pipe.close(at);
                let told = told::of_marks(&marks);
                if attempt.cell.mode == Mode::Jobs {
                    let all: Vec<Told> = told.into_iter().map(|(_, told)| told).collect();
                    if let Some(member) = attempt.members.get_mut(index) {
                        member.told = told::together(&all);
                    }
                    continue;
                }
                for (place, (name, told)) in told.into_iter().enumerate() {
                    let by_name = attempt
                        .members
                        .iter()
                        .position(|member| member.pid.to_string() == name)
                        .or_else(|| name.parse().ok().filter(|index| *index < attempt.members.len()));
                    if let Some(member) = attempt.members.get_mut(by_name.unwrap_or(place)) {
                        member.told = Some(told);
                    }
                }
            }
        }
        Some(Telling::Lines { pattern, files }) => {
            let is_jobs = attempt.cell.mode == Mode::Jobs;
            let tasks: Vec<&Task> = tasks.iter().filter(|task| !task.background).collect();
            let mut texts: Vec<(PathBuf, String)> = Vec::new();
            for (index, task) in tasks.iter().enumerate() {
                let mut text = read(&task.output) + &read(&task.errors());
                if is_jobs {
                    for file in named(files.as_deref(), order, index) {
                        text += &read(&file);
                    }
                    if let Some(member) = attempt.members.get_mut(index) {
                        member.told = pattern.told(&text);
                    }
                } else {
                    texts.extend(named(files.as_deref(), order, index).into_iter().map(|file| {
                        let text = read(&file);
                        (file, text)
                    }));
                    texts.push((task.output.clone(), text));
                }
            }
            let told: Vec<(PathBuf, Told)> =
                texts.into_iter().filter_map(|(file, text)| Some((file, pattern.told(&text)?))).collect();
            if is_jobs {
                return;
            }
            if let [(_, told)] = told[..] {
                // One text for all: each has told the same.
                let count = attempt.members.len().max(1) as u64;
                let each = Told { events: told.events / count, ..told };
                attempt.members.iter_mut().for_each(|member| member.told = Some(each));
                return;
            }
            for (place, (file, told)) in told.into_iter().enumerate() {
                let name =
                    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let by_pid = attempt.members.iter().position(|member| holds_number(&name, member.pid));
                if let Some(member) = attempt.members.get_mut(by_pid.unwrap_or(place)) {
                    member.told = Some(told);
                }
            }
        }
    }
}

/// Whether a file's name has that number in it, and not as part of another.
fn holds_number(name: &str, number: u32) -> bool {
    name.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number.to_string())
}

/// The files that a pattern of names finds for a job, or for all.
fn named(files: Option<&str>, order: &Order, index: usize) -> Vec<PathBuf> {
    let Some(files) = files else { return Vec::new() };
    let start = filled(order, index);
    let words =
        BTreeMap::from([("index", index.to_string()), ("processes", order.cell.processes.to_string())]);
    let pattern = start.directory.join(placeholder::fill(files, &words));
    let mut found: Vec<PathBuf> =
        glob::glob(&pattern.to_string_lossy()).into_iter().flatten().flatten().collect();
    found.sort();
    found
}

fn read(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST_LOG).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a study is made of, when everything is ready to start.
#[derive(Debug)]
pub struct Study<'a> {
    /// Every attempt of a round: the cell, what for, events.
    pub slots: Vec<Slot<'a>>,
    /// Seed of the random orders.
    pub seed: u64,
    /// The first round to be made, and how many there are.
    pub rounds: std::ops::Range<u32>,
    /// What each round is for.
    pub warmup: bool,
    /// Where outputs go.
    pub scratch: PathBuf,
    /// Limits of an attempt.
    pub limits: Limits,
}

/// One attempt of each round.
#[derive(Debug)]
pub struct Slot<'a> {
    /// What it is made of; the padding is the schedule's.
    pub order: Order<'a>,
    /// It has failed before, and is left out.
    pub out: bool,
}

/// Why rounds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All are made.
    Done,
    /// Whoever keeps the attempts has enough.
    Enough,
    /// Ctrl-C.
    Interrupted,
}

/// Whoever keeps what attempts yield.
pub trait Keeper {
    /// Its own errors.
    type Error;
    /// How often the user has asked for an end.
    fn interrupted(&self) -> &AtomicU8;
    /// An attempt has ended; to be kept before this returns.
    fn attempted(&mut self, attempt: &Attempt) -> Result<(), Self::Error>;
    /// A round has ended: whether that is enough.
    fn has_enough(&mut self, rounds: u32) -> Result<bool, Self::Error>;
}

/// A study could not go on.
#[derive(Debug)]
pub enum StudyError<E> {
    /// The crew.
    Crew(CrewError),
    /// Whoever keeps.
    Keeper(E),
}

/// Makes rounds: in each every slot once, in a fresh random order. A cell that fails is left out of the rounds to come.
///
/// # Errors
/// The crew's and the keeper's.
pub fn study<K: Keeper>(
    study: &mut Study,
    crew: &mut Crew,
    keeper: &mut K,
) -> Result<End, StudyError<K::Error>> {
    for number in study.rounds.clone() {
        for (position, turn) in schedule::round(study.seed, number, study.slots.len()).into_iter().enumerate()
        {
            let slot = &mut study.slots[turn.participant];
            if slot.out {
                continue;
            }
            if keeper.interrupted().load(Ordering::Relaxed) >= 1 {
                return Ok(End::Interrupted);
            }
            slot.order.padding = turn.padding;
            let interrupted = keeper.interrupted();
            let cut_off = || interrupted.load(Ordering::Relaxed) >= 2;
            let mut made = attempt(&slot.order, crew, &study.scratch, study.limits, &cut_off)
                .map_err(StudyError::Crew)?;
            if cut_off() && made.ending != Ending::Done {
                return Ok(End::Interrupted);
            }
            made.round = number;
            made.position = position as u32;
            if study.warmup && made.is_sound() {
                made.purpose = Purpose::Warmup;
            }
            let failed = (!made.is_sound()).then(|| made.cell.clone());
            keeper.attempted(&made).map_err(StudyError::Keeper)?;
            if let Some(cell) = failed {
                study
                    .slots
                    .iter_mut()
                    .filter(|slot| *slot.order.cell == cell)
                    .for_each(|slot| slot.out = true);
            }
        }
        if !study.warmup && keeper.has_enough(number + 1 - study.rounds.start).map_err(StudyError::Keeper)? {
            return Ok(End::Enough);
        }
    }
    Ok(End::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_events_without_a_gap() {
        for (events, jobs) in [(800, 8), (10, 3), (2, 5), (0, 4)] {
            let mut next = 0;
            for index in 0..jobs {
                let (part, first) = share(events, jobs, index);
                assert_eq!(first, next, "{events} {jobs} {index}");
                next += part;
            }
            assert_eq!(next, events);
        }
    }

    #[test]
    fn a_log_belongs_to_the_child_whose_number_is_in_its_name() {
        assert!(holds_number("redirectout_15125_0.log", 15125));
        assert!(!holds_number("redirectout_15125_0.log", 1512));
    }
}
