//! The result of a run, combined from launchers, taskstats, counters and the program's own output.

use std::collections::{BTreeMap, BTreeSet};

use widthwise_experiment::memory::rss_lag_of_cpu;
use widthwise_experiment::outcome::Ending;
use widthwise_experiment::scale::{CpuWait, GroupRun, Member, Memory, Mode, Purpose};
use widthwise_machine::noise::{self, Snapshot};
use widthwise_proc::affinity::online_cpus;

use crate::output::digest;
use crate::output::earlier::Earlier;
use crate::run::ending::{describe, failure};
use crate::run::sample::left_working;
use crate::scale::group_memory::Running;
use crate::scale::group_spec::GroupSpec;
use crate::scale::launcher_pool::{Done, GroupResult, Task};
use crate::scale::left_to_others::{most_lost, Use};
use crate::scale::process_tree::{names_of, ProcessTree};
use crate::scale::reported_events::{parents, tell, Told};
use crate::scale::waits::{self, Reading, Waits, Whole};
use crate::scale::watcher::Watcher;
use widthwise_proc::taskstats::Exit;

/// Starts that are further apart than this share of the time get a remark.
const APART: f64 = 0.01;
/// The moment that represents a run's memory has at least this share of the members' own peaks.
const NEAR_PEAK: f64 = 0.95;
/// Those are the kernel's, which counts resident pages per CPU, in batches (proc(5), statm): bytes for each member.
const BATCHES: u64 = 256 << 10;
/// The peak of a child may lag on two CPUs: that where it was forked, and its own.
const LAGS_ON: u64 = 2;
/// Or the moment is the highest of this many with all members, however far from the peaks: what grows steadily grows by a
/// twentieth from one to the next.
const SEVERAL: usize = 20;
/// Exits are reported up to this long after they happen, in nanoseconds.
const MOMENT: u64 = 2_000_000;
/// The waiting of tasks is known if this share of their CPU time, and of the run, was read before they ended: the rest, at most as
/// much, is assumed to be like it.
const SEEN: f64 = 0.5;

/// Combines what is known of a run.
pub(super) fn accounted(
    spec: &GroupSpec,
    tasks: &[Task],
    result: GroupResult,
    mut watcher: Watcher,
    earlier: &Earlier,
) -> GroupRun {
    let (counted, parent_cpu_ns) = watcher.counted();
    let own_throttled_ns = watcher.own_quotas.read().as_nanos() as u64;
    let Watcher { mut tree, camera, pipes, remarks, mut waits, moved_jobs, .. } = watcher;
    let load = result.done.iter().zip(tasks).filter(|(_, task)| task.load);
    let used_by_load: u64 = load.map(|(done, _)| used(done)).sum();
    let GroupResult { done, mut exits, exits_lost, appointed, counters: sums, .. } = result;
    let mut around = Around {
        began_ns: 0,
        machine: result.machine,
        // Load is on the cell's CPUs only where these are the only ones.
        own_cpu_ns: result.own_cpu_ns + if spec.cpus.is_empty() { used_by_load } else { 0 },
        throttled_ns: result.throttled_ns + own_throttled_ns,
    };
    let done: Vec<_> = done.into_iter().zip(tasks).filter(|(_, task)| !task.load).collect();
    let mut run = ended(spec, &done);
    run.load_cpu_ns = used_by_load;
    let Some(first) = set_times(&mut run, &done, &exits) else { return run };
    around.began_ns = first;
    let programs: Vec<u32> = done.iter().map(|(done, _)| done.reply.pid).collect();
    waits.ended(&exits, &programs, exits_lost);
    run.remarks = remarks;
    run.counters = sums.into_iter().map(|(metric, value)| (metric.name.to_owned(), value)).collect();
    remark_on_start_and_end(&mut run, &done, first, appointed.as_nanos() as u64);
    if exits_lost {
        run.remarks
            .push("so many processes ended at once that the kernel dropped some of its accounts".into());
    }
    if spec.cell.mode == Mode::Jobs {
        run.members = jobs(&done, first, &moved_jobs);
    } else {
        exits.retain(|(exit, reported_ns)| reported_ns.saturating_sub(exit.elapsed_ns) + 1_000_000 >= first);
        let left_asleep = done.iter().all(|(done, _)| left_working(&done.reply).is_none());
        tree.ended(&exits, left_asleep && done.iter().any(|(done, _)| done.reply.left_over > 0));
        tree.learn(done.first().map_or(0, |(done, _)| done.reply.pid), &exits);
        run.before_fork = tree.before_fork(first, &exits);
        run.parent_cpu_ns = parent_cpu_ns;
        run.childless = tree.is_childless();
        run.members = tree.members(first, &exits, &counted);
        check_members(&mut run, &tree, &exits, &done);
        // Exits are reported a moment after they happen.
        let end = run.elapsed_ns;
        run.members.iter_mut().for_each(|member| member.ended_ns = member.ended_ns.map(|at| at.min(end)));
    }
    // The time until they were killed is not that of their work.
    if run.is_sound() {
        run.failure = done.iter().find_map(|(done, _)| left_working(&done.reply));
    }
    let unread_ns = waits.unread_ns(first + run.elapsed_ns);
    run.cpu_wait = Some(cpu_wait(spec, &run, &tree, (&waits, unread_ns), &around));
    remark_on_members(&mut run);
    set_memory(&mut run, camera.map(|camera| (camera.running(), camera.close(first))));
    match answer(spec, tasks, earlier) {
        Ok(digest) => run.output_digest = digest,
        Err(reason) if run.is_sound() => run.failure = Some(reason),
        Err(_) => {}
    }
    tell(&Told { spec, tasks, earlier, parents: &parents(&exits) }, pipes, &mut run);
    let has_reported = run.members.iter().any(|member| member.reported.is_some());
    if spec.event_log.is_some() && run.is_sound() && !has_reported {
        run.remarks
            .push("reported none of the expected events: CPU time per event is CPU time over events".into());
    }
    run
}

/// A run of which nothing ran.
pub(crate) fn not_begun(spec: &GroupSpec, ending: Ending) -> GroupRun {
    GroupRun {
        round: 0,
        position: 0,
        cell: spec.cell.clone(),
        purpose: spec.purpose,
        events: spec.events,
        failure: Some(describe(&ending)),
        ending,
        elapsed_ns: 0,
        spread_ns: 0,
        cpu_ns: 0,
        load_cpu_ns: 0,
        parent_cpu_ns: None,
        childless: false,
        cpu_wait: None,
        before_fork: None,
        members: Vec::new(),
        counters: BTreeMap::new(),
        memory: None,
        output_digest: None,
        remarks: Vec::new(),
    }
}

/// A failed run, with the ending of its first program that failed, if there is one.
fn ended(spec: &GroupSpec, done: &[(Done, &Task)]) -> GroupRun {
    let mut run = not_begun(spec, Ending::Done);
    run.failure = None;
    if let Some((done, task)) = done.iter().find(|(done, _)| done.ending != Ending::Done) {
        run.ending = done.ending.clone();
        run.failure = Some(failure(&done.ending, &task.errors()));
    }
    run
}

/// Sets elapsed and CPU time. Returns when the first program began, if any did.
fn set_times(run: &mut GroupRun, done: &[(Done, &Task)], exits: &[(Exit, u64)]) -> Option<u64> {
    let begun = done.iter().filter(|(done, _)| done.reply.failed.is_none());
    let begun: Vec<u64> = begun.map(|(done, _)| done.reply.began.as_nanos() as u64).collect();
    let (first, last) = (begun.iter().min().copied()?, begun.iter().max().copied()?);
    let ends = done.iter().map(|(done, _)| (done.reply.began + done.reply.wall).as_nanos() as u64);
    let (ended, orphans_ended) = (ends.max().unwrap_or(first), orphans_ended(done, exits));
    let outlived = orphans_ended > ended + MOMENT;
    run.elapsed_ns = if outlived { orphans_ended } else { ended } - first;
    run.spread_ns = last - first;
    run.cpu_ns = done.iter().map(|(done, _)| used(done)).sum();
    Some(first)
}

fn remark_on_start_and_end(run: &mut GroupRun, done: &[(Done, &Task)], first: u64, appointed: u64) {
    if run.spread_ns as f64 > APART * run.elapsed_ns as f64 && run.spread_ns > 1_000_000 {
        run.remarks.push(format!(
            "the first and the last were started {:.1} ms apart ({:.1} ms after the appointed time): the machine was busy",
            run.spread_ns as f64 / 1e6,
            (first + run.spread_ns).saturating_sub(appointed) as f64 / 1e6
        ));
    }
    for (done, _) in done.iter().filter(|(done, _)| done.reply.left_over > 0) {
        let count = match done.reply.left_over {
            1 => "a process".to_owned(),
            several => format!("{several} processes"),
        };
        run.remarks.push(format!("left {count} running behind it, killed 0.1 s after the program's end"));
    }
}

/// One member for each job.
fn jobs(done: &[(Done, &Task)], first: u64, moved: &BTreeMap<usize, Vec<u32>>) -> Vec<Member> {
    let member = |(index, (done, task)): (usize, &(Done, &Task))| {
        let reply = &done.reply;
        let began = reply.began.as_nanos() as u64;
        Member {
            pid: reply.pid,
            others: Vec::new(),
            cpu: task.cpus.first().copied(),
            moved_to: moved.get(&index).map(|cpus| names_of(cpus)),
            began_ns: began.saturating_sub(first),
            ended_ns: Some((began + reply.wall.as_nanos() as u64).saturating_sub(first)),
            cpu_ns: (reply.user + reply.system).as_nanos() as u64,
            exact: true,
            max_rss: Some(reply.max_rss),
            reported: None,
        }
    };
    done.iter().enumerate().map(member).collect()
}

/// All requested children or threads must have existed, and have ended well.
fn check_members(run: &mut GroupRun, tree: &ProcessTree, exits: &[(Exit, u64)], done: &[(Done, &Task)]) {
    let left_over = done.iter().any(|(done, _)| done.reply.left_over > 0);
    members_failed(run, tree, exits, left_over);
    let (mode, processes) = (run.cell.mode, run.cell.processes);
    if !run.is_sound() || run.members.len() >= processes {
        return;
    }
    let root = done.first().map_or(0, |(done, _)| done.reply.pid);
    let threads = exits.iter().filter(|(exit, _)| exit.tgid == root).count();
    let hint = if mode == Mode::Fork && threads >= processes.max(2) {
        format!("it has {threads} threads: --mode threads")
    } else {
        "does the command use {processes}, and has one process all of them?".to_owned()
    };
    let seen = match run.members.len() {
        0 => "none was".to_owned(),
        1 => "one was".to_owned(),
        seen => format!("{seen} were"),
    };
    let asked = match processes {
        1 => format!("1 {} was", mode.singular()),
        several => format!("{several} {} were", mode.noun()),
    };
    run.failure = Some(format!("{asked} asked for and {seen} seen: {hint}"));
}

fn remark_on_members(run: &mut GroupRun) {
    let mode = run.cell.mode;
    if run.childless && run.purpose == Purpose::Timed {
        run.remarks.push(
            "forked no child that was seen: CPU time an event is that of the program itself, less that of a run with one event"
                .into(),
        );
    }
    for (index, member) in run.members.iter().enumerate() {
        if let (Some(cpu), Some(moved)) = (member.cpu, &member.moved_to) {
            run.remarks.push(format!(
                "{} {index} was put on CPU {cpu} and put itself on {moved}: the placement is the program's own",
                mode.singular()
            ));
        }
    }
    let uncounted = run.members.iter().filter(|member| !member.exact).count();
    if uncounted > 0 {
        run.remarks.push(format!(
            "the CPU times of {uncounted} of the {} are by ticks, which may be some milliseconds too few (that of the run is not)",
            mode.noun()
        ));
    }
}

/// Sets the memory of a run, with remarks on how it was read.
fn set_memory(run: &mut GroupRun, memory: Option<(Option<Running>, Memory)>) {
    let Some((running, mut memory)) = memory else { return };
    remark_on_peaks(run, &mut memory);
    if let Some(running) = running {
        let why = match running {
            Running::NoFreezer => "there is no cgroup v2 that freezes them",
            Running::Slow => "some were not frozen within 0.1 s, as in a long system call",
        };
        run.remarks.push(format!(
            "memory was read while processes ran, since {why}: sums may count a page twice or not at all"
        ));
    }
    run.memory = Some(memory);
}

/// Leaves out memory that is too far from the members' own peaks, with a remark. A failed run has its failure instead.
fn remark_on_peaks(run: &mut GroupRun, memory: &mut Memory) {
    let noun = run.cell.mode.noun();
    let moments = memory.moments.iter().filter(|moment| moment.members >= memory.members.len()).count();
    let far =
        shares_of_peaks(memory, &run.members, online_cpus()).filter(|shares| shares.least() < NEAR_PEAK);
    let share = far.as_ref().map(|shares| shares.in_words(noun)).unwrap_or_default();
    let remark = match far {
        Some(_) if moments >= SEVERAL => format!(
            "its memory is that of the highest of {moments} readings, which has {share}: these were at other moments"
        ),
        Some(_) => {
            memory.highest = None;
            format!(
                "too short for its memory to be read while all were there, near their peak: the highest of {moments} \
                 readings has {share}"
            )
        }
        None if memory.highest.is_none() => "too short for its memory to be read while all were there".to_owned(),
        None => return,
    };
    if run.failure.is_none() {
        run.remarks.push(remark);
    }
}

/// CPU time of a program and its descendants.
fn used(done: &Done) -> u64 {
    (done.reply.user + done.reply.system).as_nanos() as u64
}

/// When the last process ended by itself that outlived its program: only such processes and the programs are the
/// launcher's children.
fn orphans_ended(done: &[(Done, &Task)], exits: &[(Exit, u64)]) -> u64 {
    let programs: Vec<u32> = done.iter().map(|(done, _)| done.reply.pid).collect();
    let launchers: Vec<u32> = exits
        .iter()
        .filter(|(exit, _)| exit.pid == exit.tgid && programs.contains(&exit.pid))
        .map(|(exit, _)| exit.parent)
        .collect();
    let is_orphan = |exit: &Exit| {
        let is_child = exit.pid == exit.tgid && launchers.contains(&exit.parent);
        is_child && !programs.contains(&exit.pid) && libc::WTERMSIG(exit.status) != libc::SIGKILL
    };
    let ends = exits.iter().filter(|(exit, _)| is_orphan(exit)).map(|(_, reported_ns)| *reported_ns);
    ends.max().unwrap_or(0)
}

/// The machine during a run.
struct Around {
    /// When the first program began.
    began_ns: u64,
    machine: Option<(Snapshot, Snapshot)>,
    /// CPU time of the measuring processes.
    own_cpu_ns: u64,
    throttled_ns: u64,
}

/// The key of the threads that belong to no member.
const NO_MEMBER: u64 = 1 << 32;

/// Whether the tasks had to wait for their CPUs. The readings end so long before the run.
fn cpu_wait(
    spec: &GroupSpec,
    run: &GroupRun,
    tree: &ProcessTree,
    (waits, unread_ns): (&Waits, u64),
    around: &Around,
) -> CpuWait {
    let has_moved = run.members.iter().any(|member| member.moved_to.is_some());
    let asked = if spec.cpus.is_empty() { spec.allowed } else { spec.cpus };
    // Members that moved themselves wait on other CPUs.
    let cpus: BTreeSet<u32> = match has_moved {
        true => run.members.iter().flat_map(cpus_of).collect(),
        false => asked.iter().copied().collect(),
    };
    // A parent may then run elsewhere.
    let of_members = run.members.iter().map(|member| member.cpu_ns).sum::<u64>();
    let used_ns = if has_moved { of_members.min(run.cpu_ns) } else { run.cpu_ns };
    let others = around
        .machine
        .as_ref()
        .map(|(before, after)| noise::others(before, after, &cpus, used_ns + around.own_cpu_ns));
    let others = others.unwrap_or_default();
    // For one member: the waiting of all its threads, and of the threads that had its lane before.
    let group = |root: usize, process: u32, thread: u32| match spec.cell.mode {
        Mode::Jobs => root as u64,
        Mode::Fork => tree.lane(process).map_or(NO_MEMBER | u64::from(process), |lane| lane as u64),
        Mode::Threads => tree.lane(thread).map_or(NO_MEMBER | u64::from(thread), |lane| lane as u64),
    };
    let mut wait = CpuWait {
        others_ns: others.ran_ns,
        throttled_ns: around.throttled_ns,
        stolen_ns: others.stolen_ns,
        uncertain_ns: others.uncertain_ns,
        cpus: cpus.len(),
        wanting: waits.wanting(run.elapsed_ns / 20),
        ..CpuWait::default()
    };
    match waits.total(&group) {
        None if !waits::are_reported() => {
            wait.unknown = Some("the kernel does not report how long tasks wait for a CPU (schedstat)".into())
        }
        None => wait.unknown = Some("its tasks were too short-lived: their waiting was not read".into()),
        Some((seen, _)) if is_unread(run, seen, waits, unread_ns) => {
            wait.unknown = Some("its tasks were too short-lived, or other programs had the reader's CPU: their waiting was not read".into());
        }
        Some((seen, members)) => {
            let times = (run.cpu_ns as f64 / seen.ran_ns as f64).max(1.0);
            let waited = if waits.is_complete() { 1.0 } else { times };
            let whole = Whole { ran: times, waited, elapsed_ns: run.elapsed_ns };
            let waited = waits.waited_of_run(whole);
            let longest = members.values().map(|one| one.waited_of_run(whole)).max();
            wait.longest_ns = longest.map(|longest| longest.min(waited));
            let most = most_lost_of(run, tree, &members, whole, around.began_ns);
            wait.most_lost_ns = most.map(|most| most.min(waited));
            wait.waited_ns = Some(waited);
            let left_ns = run.cpu_ns.saturating_sub(seen.ran_ns);
            wait.unread_ns = (unread_ns * wait.cpus as u64).saturating_sub(left_ns);
        }
    }
    wait
}

/// The CPUs on which a member could run, as far as it had some of its own.
fn cpus_of(member: &Member) -> BTreeSet<u32> {
    match &member.moved_to {
        Some(moved) => moved.split(',').filter_map(|cpu| cpu.parse().ok()).collect(),
        None => member.cpu.into_iter().collect(),
    }
}

/// How much of the waiting can have been for others: of the members as they shared their CPUs, and all of the rest.
fn most_lost_of(
    run: &GroupRun,
    tree: &ProcessTree,
    waits: &BTreeMap<u64, Reading>,
    whole: Whole,
    began_ns: u64,
) -> Option<u64> {
    let is_jobs = run.cell.mode == Mode::Jobs;
    let of_member = |(index, member): (usize, &Member)| {
        let place = if is_jobs { Some(index) } else { tree.lane(member.pid) };
        let waited_ns = waits.get(&(place? as u64)).map_or(0, |one| one.waited(whole));
        let life = (member.began_ns, member.ended_ns.unwrap_or(run.elapsed_ns));
        let mut of = Use { cpus: cpus_of(member), life, ran_ns: member.cpu_ns, waited_ns, elsewhere_ns: 0 };
        for pid in std::iter::once(&member.pid).chain(&member.others).filter(|_| !is_jobs) {
            match tree.was_on(*pid) {
                Some((was_on, found_ns)) if member.moved_to.is_none() => {
                    of.cpus.extend(was_on);
                    let found_ns = found_ns.saturating_sub(began_ns + member.began_ns);
                    of.elsewhere_ns += if member.others.is_empty() { found_ns } else { 0 };
                }
                Some(_) => {}
                None => of.elsewhere_ns += life.1.saturating_sub(life.0),
            }
        }
        (!of.cpus.is_empty()).then_some(of)
    };
    let members: Vec<Use> = run.members.iter().enumerate().map(of_member).collect::<Option<_>>()?;
    let rest = waits.iter().filter(|(key, _)| **key >= NO_MEMBER).map(|(_, one)| one.waited(whole));
    Some(rest.sum::<u64>() + most_lost(members))
}

/// Whether too little of the waiting was read to say anything of the rest.
fn is_unread(run: &GroupRun, seen: Reading, waits: &Waits, unread_ns: u64) -> bool {
    let is_little = (seen.ran_ns as f64) < SEEN * run.cpu_ns as f64;
    let is_early = unread_ns as f64 > (1.0 - SEEN) * run.elapsed_ns as f64;
    !waits.is_complete() && (is_little || is_early)
}

/// How much of their memory the members had at the moment that represents the run.
#[derive(Debug, PartialEq)]
struct Shares {
    /// Of their own peaks by the kernel.
    of_all: f64,
    /// Of what they may have had for themselves, if all that was missed was their own. Pages that they share with others, as children
    /// do with their parent, may be most of a peak, and one more process does not add them.
    of_own: f64,
}

impl Shares {
    fn least(&self) -> f64 {
        self.of_all.min(self.of_own)
    }

    fn in_words(&self, noun: &str) -> String {
        // Rounded, what is just below 95 % would be 95 %.
        let per_cent = (100.0 * self.least()).floor();
        match self.of_own < self.of_all {
            true => {
                format!("{per_cent:.0} % of what the {noun} may have had for themselves at their own peaks")
            }
            false => format!("{per_cent:.0} % of the {noun}' own peaks"),
        }
    }
}

/// These shares; `online` CPUs has the machine. None where the kernel reports no peaks, and without such a moment.
fn shares_of_peaks(memory: &Memory, members: &[Member], online: u64) -> Option<Shares> {
    memory.highest?;
    let peak: u64 = members.iter().map(|member| member.max_rss).sum::<Option<u64>>()?;
    let seen: u64 = memory.members.iter().map(|member| member.resident).sum();
    let count = members.len() as u64;
    let of_all = (seen + BATCHES * count) as f64 / peak.max(1) as f64;
    let missed = peak.saturating_sub(seen + LAGS_ON * rss_lag_of_cpu(online) * count);
    let own: u64 = memory.members.iter().map(|member| member.uss).sum();
    let of_own = if missed == 0 { 1.0 } else { own as f64 / (own + missed) as f64 };
    Some(Shares { of_all, of_own })
}

/// A digest of every output, in the spec of the jobs, where outputs are compared.
fn answer(spec: &GroupSpec, tasks: &[Task], earlier: &Earlier) -> Result<Option<String>, String> {
    if spec.check.off {
        return Ok(None);
    }
    let mut hasher = blake3::Hasher::new();
    let mut reader = digest::Reader::default();
    for task in tasks.iter().filter(|task| !task.load) {
        let digest = reader.digest(spec.check, &task.output, &task.start.directory, earlier, None)?;
        hasher.update(digest.as_bytes());
    }
    Ok(Some(hasher.finalize().to_hex()[..16].to_owned()))
}

/// A member that did not end well makes the run fail, whatever the parent's status.
fn members_failed(run: &mut GroupRun, tree: &ProcessTree, exits: &[(Exit, u64)], left_over: bool) {
    if !run.is_sound() {
        return;
    }
    if let Some((place, status)) = tree.failures(exits).first() {
        if left_over && libc::WIFSIGNALED(*status) && libc::WTERMSIG(*status) == libc::SIGKILL {
            run.failure = Some(format!(
                "it ended before its {}, which were killed: it has to wait for them",
                run.cell.mode.noun()
            ));
            return;
        }
        let ending = if libc::WIFSIGNALED(*status) {
            Ending::Signal { signal: libc::WTERMSIG(*status) }
        } else {
            Ending::Exit { status: libc::WEXITSTATUS(*status) }
        };
        let how = describe(&ending);
        let which = match place {
            Some(place) => format!("{} {place}", run.cell.mode.singular()),
            None => format!("a {}", run.cell.mode.singular()),
        };
        run.failure = Some(format!("{which} did not end well: {how}"));
        run.ending = ending;
    }
}

#[cfg(test)]
mod tests {
    use widthwise_experiment::scale::MemberMemory;

    use super::*;

    #[test]
    fn what_was_missed_of_a_peak_is_compared_with_what_a_member_has_for_itself() {
        const MB: u64 = 1_000_000;
        let shares = |resident: u64, uss: u64, peak: u64| {
            let one = MemberMemory { resident, uss, ..MemberMemory::default() };
            let memory = Memory { highest: Some(0), members: vec![one], ..Memory::default() };
            let member =
                r#"{"pid":1,"cpu":0,"began_ns":0,"ended_ns":0,"cpu_ns":0,"exact":true,"reported":null}"#;
            let mut member: Member = serde_json::from_str(member).unwrap();
            member.max_rss = Some(peak);
            shares_of_peaks(&memory, &[member], 2).unwrap()
        };
        let words = |shares: Shares| shares.in_words("children");
        // It shared 839 MB of its parent and had 36 MB of its own, which were not read.
        let spike = shares(839 * MB, MB / 40, 876 * MB);
        assert!(spike.of_all > NEAR_PEAK && spike.least() < 0.01, "{spike:?}");
        assert_eq!(words(spike), "0 % of what the children may have had for themselves at their own peaks");
        // The lag of the kernel's account is nothing that was missed.
        assert_eq!(shares(840 * MB, MB / 40, 840 * MB + 3 * MB / 4).of_own, 1.0);
        assert!(shares(876 * MB, 36 * MB, 878 * MB).least() > NEAR_PEAK);
        assert_eq!(words(shares(50 * MB, 50 * MB, 100 * MB)), "50 % of the children' own peaks");
    }
}
