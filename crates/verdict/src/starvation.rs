//! Whether the tasks of a cell got their CPUs. Throughput shows how a program scales only if it had its CPUs; where
//! other programs used them, the cell is withheld.
//!
//! Waiting for a CPU alone is no reason: with more tasks than CPUs, tasks wait for each other. Only waiting due to
//! other programs counts: at most the CPU time that these used on the same CPUs, and at most what the tasks left of their CPUs while
//! they were there. Where tasks may have waited for each other, the share is such a bound, and its words say so.
//!
//! The kernel may count that time in ticks, which are longer than a short run. Such runs are no evidence for or against others: the
//! cell is withheld as too short if its tasks may have lost too much. They cannot have lost the time for which they ran.

use std::fmt;

use widthwise_experiment::scale::{CpuWait, GroupRun};

/// A cell whose tasks lost more of their time than this to others is withheld.
pub const MOST_LOST: f64 = 0.05;

/// The unit of the kernel's steal time, and of CPU times in `/proc/stat`, in nanoseconds.
const TICK: f64 = 1e7;

/// How the tasks of a cell came by their CPUs. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Share of their time for which tasks waited for a CPU, for any reason; absent where the kernel does not report
    /// it.
    pub waited: Option<f64>,
    /// Why it is absent.
    pub unknown: Option<String>,
    /// Share of their time that was lost to others; where waiting is unknown, that they may have lost at most. It includes
    /// the host's steal time, in which tasks do not count as waiting.
    pub lost: f64,
    /// That is the share of the one task that waited longest: all together lost less than withholds a cell.
    pub of_one: bool,
    /// Tasks may have waited for each other: `lost` is what they lost at most.
    pub at_most: bool,
    /// The runs are too short to tell who had the CPUs: `lost` is what tasks may have lost at most.
    pub too_short: bool,
    /// Who took most of it.
    pub taker: Taker,
    /// CPU time of other programs on these CPUs, as a share of what the CPUs have.
    pub others: f64,
}

/// Who used the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// Other programs.
    Programs,
    /// The hypervisor, for other machines.
    Host,
    /// No program: the control group had used up its quota.
    Quota,
    /// Programs and the hypervisor, each for a considerable part.
    ProgramsAndHost,
    /// The quota and the hypervisor, likewise.
    QuotaAndHost,
}

/// A withheld cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starved {
    /// Its number of processes.
    pub processes: usize,
    /// What its tasks lost, in thousandths of their time.
    pub lost: u16,
    /// Who used their CPUs.
    pub taker: Taker,
    /// They lost at most that.
    pub at_most: bool,
    /// Even how long they waited is unknown.
    pub is_unknown: bool,
    /// One of them lost that.
    pub of_one: bool,
    /// The runs are too short to tell whether they lost it.
    pub too_short: bool,
}

impl Waiting {
    /// Sums up the runs of a cell; None where waiting was not recorded.
    pub fn of<'a>(runs: impl Iterator<Item = &'a GroupRun>) -> Option<Waiting> {
        let recorded: Vec<(&GroupRun, &CpuWait)> =
            runs.filter_map(|run| Some((run, run.cpu_wait.as_ref()?))).collect();
        let waits: Vec<&(&GroupRun, &CpuWait)> =
            recorded.iter().filter(|(_, wait)| wait.waited_ns.is_some()).collect();
        let judged = if waits.is_empty() { recorded.iter().collect() } else { waits.clone() };
        let unknown = recorded.iter().find_map(|(_, wait)| wait.unknown.clone());
        if recorded.is_empty() {
            return None;
        }
        let LostWaiting { of_all, of_one, at_most, is_quota } = lost_waiting(&judged);
        let all: Vec<&(&GroupRun, &CpuWait)> = recorded.iter().collect();
        let elapsed: f64 = recorded.iter().map(|(run, _)| run.elapsed_ns as f64).sum();
        let stolen: f64 = recorded.iter().map(|(_, wait)| wait.stolen_ns as f64).sum();
        let by_host = (stolen - TICK * (recorded.len() as f64).sqrt()).max(0.0) / elapsed.max(1.0);
        let capacity: f64 = recorded.iter().map(|(run, wait)| run.elapsed_ns as f64 * wait.cpus as f64).sum();
        let others: f64 = recorded.iter().map(|(_, wait)| wait.others_ns as f64).sum();
        let waited = (!waits.is_empty()).then(|| {
            let waited: f64 = waits.iter().filter_map(|(_, wait)| wait.waited_ns).sum::<u64>() as f64;
            waited / time_of_tasks(&waits).max(1.0)
        });
        // One task whose CPU was taken delays the whole cell.
        let is_one = of_all + by_host <= MOST_LOST && of_one + by_host > MOST_LOST;
        let by_wait = if is_one { of_one } else { of_all };
        let unclear =
            may_have_lost(&all).filter(|most| by_wait + by_host <= MOST_LOST && most + by_host > MOST_LOST);
        let by_wait = unclear.unwrap_or(by_wait);
        Some(Waiting {
            waited,
            unknown: unknown.filter(|_| waited.is_none()),
            lost: (by_wait + by_host).min(1.0),
            of_one: is_one,
            at_most,
            too_short: unclear.is_some(),
            taker: Taker::of(by_wait, by_host, is_quota),
            others: (others / capacity.max(1.0)).min(1.0),
        })
    }

    /// Whether a cell of so many processes is withheld, and why.
    pub fn starved(&self, processes: usize) -> Option<Starved> {
        let lost = (1000.0 * self.lost).round() as u16;
        let is_unknown = self.waited.is_none();
        let Waiting { taker, of_one, at_most, too_short, .. } = *self;
        let starved = Starved { processes, lost, taker, at_most, is_unknown, of_one, too_short };
        (self.lost > MOST_LOST).then_some(starved)
    }
}

impl Taker {
    /// Who is named for the shares of time that were lost by waiting and to the host.
    fn of(by_wait: f64, by_host: f64, is_quota: bool) -> Taker {
        /// A smaller part of the whole is not named.
        const CONSIDERABLE: f64 = 0.2;
        let both = by_wait.min(by_host) > CONSIDERABLE * (by_wait + by_host);
        match (both, by_host > by_wait, is_quota) {
            (true, _, false) => Taker::ProgramsAndHost,
            (true, _, true) => Taker::QuotaAndHost,
            (false, true, _) => Taker::Host,
            (false, false, true) => Taker::Quota,
            (false, false, false) => Taker::Programs,
        }
    }
}

/// The time in which tasks ran or waited; where they slept for most of it, the time that passed.
fn time_of_tasks(waits: &[&(&GroupRun, &CpuWait)]) -> f64 {
    let of = |(run, wait): &(&GroupRun, &CpuWait)| {
        let wanted = run.cpu_ns + wait.waited_ns.unwrap_or(0);
        wanted.max(run.elapsed_ns) as f64
    };
    waits.iter().map(|one| of(one)).sum()
}

/// The shares of their time that tasks lost by waiting for others.
struct LostWaiting {
    /// Of all tasks together.
    of_all: f64,
    /// Of the one that waited longest.
    of_one: f64,
    /// These are bounds.
    at_most: bool,
    /// A quota had most of it.
    is_quota: bool,
}

/// The sum over runs of what the kernel recorded.
fn sum(waits: &[&(&GroupRun, &CpuWait)], of: fn(&CpuWait) -> u64) -> f64 {
    waits.iter().map(|(_, wait)| of(wait) as f64).sum()
}

/// How far the sum of [`CpuWait::others_ns`] may be off by the kernel's ticks.
fn uncertain(waits: &[&(&GroupRun, &CpuWait)]) -> f64 {
    let of_run = waits.iter().map(|(_, wait)| wait.uncertain_ns).max().unwrap_or(0) as f64;
    of_run * (waits.len() as f64).sqrt()
}

/// The CPU time of others, and that for which a quota was used up. A tick that falls into one of several runs has the time of the
/// others, too, whose own record is then 0 and not below: where a run used less than a tick, by as much as it used.
fn used_by_others(waits: &[&(&GroupRun, &CpuWait)]) -> f64 {
    let is_below = |run: &GroupRun, wait: &CpuWait| {
        wait.others_ns == 0 && wait.uncertain_ns > 0 && run.cpu_ns as f64 <= TICK
    };
    let below = waits.iter().filter(|(run, wait)| is_below(run, wait)).map(|(run, _)| run.cpu_ns as f64);
    sum(waits, |wait| wait.others_ns) + sum(waits, |wait| wait.throttled_ns) - below.sum::<f64>()
}

/// CPU time that the tasks of a run left unused: others used no more, and no task that has a CPU for itself waited for longer.
fn unused_ns(run: &GroupRun, wait: &CpuWait) -> u64 {
    (run.elapsed_ns * wait.cpus as u64).saturating_sub(run.cpu_ns)
}

/// Whether tasks may have waited for each other, or not at all.
fn is_unsure(wait: &CpuWait) -> bool {
    wait.waited_ns.is_none() || wait.wanting > wait.cpus
}

/// The share of `lost` in the time of the tasks, or of the runs, if these are longer.
fn share_of_time(lost: f64, waits: &[&(&GroupRun, &CpuWait)]) -> f64 {
    let used: f64 = waits.iter().map(|(run, _)| run.cpu_ns as f64).sum();
    lost / (lost + used).max(elapsed(waits))
}

fn elapsed(waits: &[&(&GroupRun, &CpuWait)]) -> f64 {
    waits.iter().map(|(run, _)| run.elapsed_ns as f64).sum::<f64>().max(1.0)
}

/// For how long the tasks of a run can have waited for others. Tasks whose waiting was not read may have waited whenever they did not
/// run.
fn may_have_waited(run: &GroupRun, wait: &CpuWait) -> u64 {
    let waited = wait.waited_ns.unwrap_or_else(|| unused_ns(run, wait));
    waited.min(wait.most_lost_ns.unwrap_or(u64::MAX))
}

/// What tasks lost by waiting for others.
fn lost_waiting(waits: &[&(&GroupRun, &CpuWait)]) -> LostWaiting {
    let others = sum(waits, |wait| wait.others_ns);
    let throttled = sum(waits, |wait| wait.throttled_ns);
    let uncertain = uncertain(waits);
    // Tasks that cannot have waited for each other waited for other programs, up to the CPU time of these. Tasks that
    // may have waited for each other, or not at all, lost at most what other programs used.
    let is_unsure = waits.iter().any(|(_, wait)| is_unsure(wait));
    let most = if is_unsure { used_by_others(waits) - uncertain } else { others + throttled + uncertain };
    let waited = waits.iter().map(|(run, wait)| may_have_waited(run, wait) as f64);
    let waited: f64 = waited.sum();
    let lost = waited.min(most).max(0.0);
    let longest = sum(waits, |wait| wait.longest_ns.unwrap_or(0)).min(waited).min(most).max(0.0);
    // Waiting for members of the same program and waiting for other programs cannot be distinguished.
    let of_one = if is_unsure { 0.0 } else { longest / elapsed(waits) };
    // A program that had the CPU of tasks that a quota had stopped took nothing from them.
    let is_quota = throttled > 0.0 && throttled >= lost - throttled;
    LostWaiting { of_all: share_of_time(lost, waits), of_one, at_most: is_unsure, is_quota }
}

/// The share of their time that tasks may have lost by waiting for others at most, where the runs are too short to tell: the ticks
/// in which the kernel counts the others are longer than what withholds a cell.
fn may_have_lost(waits: &[&(&GroupRun, &CpuWait)]) -> Option<f64> {
    let uncertain = uncertain(waits);
    if share_of_time(uncertain, waits) <= MOST_LOST {
        return None;
    }
    let most = (used_by_others(waits) + uncertain).max(0.0);
    let waited = |(run, wait): &&(&GroupRun, &CpuWait)| {
        let unused = unused_ns(run, wait);
        let read = wait.waited_ns.map(|_| may_have_waited(run, wait));
        read.map_or(unused, |waited| unused.min(waited + wait.unread_ns)) as f64
    };
    Some(share_of_time(waits.iter().map(waited).sum::<f64>().min(most), waits))
}

impl Starved {
    /// What its tasks lost, in percent of their time.
    pub fn percent(&self) -> f64 {
        f64::from(self.lost) / 10.0
    }
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Taker::Programs => "that other programs had",
            Taker::Host => "that the host of this virtual machine had",
            Taker::Quota => "because the CPU quota of their cgroup was used up",
            Taker::ProgramsAndHost => "that other programs and the host of this virtual machine had",
            Taker::QuotaAndHost => {
                "because the CPU quota of their cgroup was used up or the host of this virtual machine had it"
            }
        })
    }
}

impl fmt::Display for Starved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (processes, percent) = (self.processes, self.percent());
        let (tasks, their) = if self.of_one { ("one of the tasks", "its") } else { ("the tasks", "their") };
        // Waiting, and the host's steal time, in which tasks do not count as waiting.
        let lacked = if self.is_unknown { "may have lacked" } else { "lacked" };
        let up_to = if self.at_most || self.is_unknown { "up to " } else { "" };
        let taker = self.taker;
        if self.too_short {
            return write!(
                f,
                "with {processes}, the tasks may have lacked a CPU for up to {percent:.0} % of their time: the runs are too short to \
                 tell; make them longer"
            );
        }
        write!(
            f,
            "with {processes}, for {up_to}{percent:.0} % of {their} time {tasks} {lacked} a CPU {taker}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A run of two members on two CPUs, of a second.
    fn run(wait: CpuWait) -> GroupRun {
        let text = r#"{"round":0,"position":0,"cell":{"variant":"a","mode":"threads","placement":"cores","processes":2},
            "purpose":"timed","events":null,"ending":{"ended":"done"},"failure":null,"elapsed_ns":1000000000,
            "spread_ns":0,"cpu_ns":1000000000,"before_fork":null,"members":[],"counters":{},"memory":null,
            "output_digest":null,"remarks":[]}"#;
        let mut run: GroupRun = serde_json::from_str(text).unwrap();
        run.cpu_wait = Some(wait);
        run
    }

    fn wait() -> CpuWait {
        CpuWait { cpus: 2, wanting: 2, uncertain_ns: 30 * MS, ..CpuWait::default() }
    }

    fn of(wait: CpuWait) -> Waiting {
        Waiting::of([run(wait)].iter()).unwrap()
    }

    #[test]
    fn tasks_whose_cpus_other_programs_used_are_starved() {
        let wait = CpuWait {
            waited_ns: Some(1000 * MS),
            longest_ns: Some(500 * MS),
            others_ns: 1000 * MS,
            ..wait()
        };
        let found = of(wait).starved(2).unwrap();
        assert_eq!((found.lost, found.taker), (500, Taker::Programs));
        assert_eq!(
            found.to_string(),
            "with 2, for 50 % of their time the tasks lacked a CPU that other programs had"
        );
    }

    #[test]
    fn one_starved_member_starves_the_cell() {
        // 64 CPUs, one of which another program uses: 1 % of the members' time, half of the elapsed time.
        let mut one = run(CpuWait {
            waited_ns: Some(500 * MS),
            longest_ns: Some(500 * MS),
            others_ns: 500 * MS,
            cpus: 64,
            wanting: 64,
            ..wait()
        });
        one.cpu_ns = 40_000 * MS;
        let found = Waiting::of([one].iter()).unwrap();
        assert!(found.waited.unwrap() < 0.02);
        let found = found.starved(64).unwrap();
        assert_eq!(found.lost, 500);
        assert_eq!(
            found.to_string(),
            "with 64, for 50 % of its time one of the tasks lacked a CPU that other programs had"
        );
    }

    #[test]
    fn tasks_do_not_lose_more_than_they_waited() {
        // One of two members waited for most of the time, the other hardly.
        let wait =
            CpuWait { waited_ns: Some(700 * MS), longest_ns: Some(650 * MS), others_ns: 700 * MS, ..wait() };
        let found = of(wait);
        assert!(found.lost <= found.waited.unwrap(), "{found:?}");
    }

    #[test]
    fn everyone_who_took_a_considerable_part_is_named() {
        let wait = CpuWait {
            waited_ns: Some(200 * MS),
            longest_ns: Some(100 * MS),
            others_ns: 200 * MS,
            stolen_ns: 110 * MS,
            ..wait()
        };
        let named = |wait: CpuWait| of(wait).starved(2).unwrap().taker;
        assert_eq!(named(wait.clone()), Taker::ProgramsAndHost);
        assert_eq!(
            named(CpuWait { others_ns: 0, throttled_ns: 200 * MS, ..wait.clone() }),
            Taker::QuotaAndHost
        );
        assert_eq!(named(CpuWait { stolen_ns: 20 * MS, ..wait }), Taker::Programs);
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_not_starved() {
        let crowded = CpuWait {
            waited_ns: Some(2000 * MS),
            longest_ns: Some(1000 * MS),
            others_ns: 20 * MS,
            wanting: 6,
            ..wait()
        };
        let found = of(crowded.clone());
        assert_eq!((found.starved(6), found.waited.map(|share| (100.0 * share).round())), (None, Some(67.0)));
        // Unless others had the CPUs, too: for some of the waiting, it is not known how much.
        let others = CpuWait { others_ns: 900 * MS, ..crowded };
        assert_eq!(
            of(others.clone()).starved(6).unwrap().to_string(),
            "with 6, for up to 46 % of their time the tasks lacked a CPU that other programs had"
        );
        // The tasks left nothing of their CPUs while they were there: others had them before, or others of them.
        assert_eq!(of(CpuWait { most_lost_ns: Some(20 * MS), ..others }).starved(6), None);
    }

    #[test]
    fn other_programs_do_not_starve_tasks_that_never_waited() {
        let wait = CpuWait { waited_ns: Some(MS), longest_ns: Some(MS), others_ns: 900 * MS, ..wait() };
        assert_eq!(of(wait).starved(2), None);
    }

    #[test]
    fn quota_and_host_are_distinguished() {
        let waits = CpuWait { waited_ns: Some(800 * MS), longest_ns: Some(400 * MS), ..wait() };
        let quota = of(CpuWait { throttled_ns: 800 * MS, ..waits.clone() }).starved(2).unwrap();
        assert_eq!((quota.taker, quota.lost), (Taker::Quota, 444));
        // A program that had the CPUs meanwhile took nothing from the tasks.
        let filled = CpuWait { throttled_ns: 700 * MS, others_ns: 900 * MS, ..waits };
        assert_eq!(of(filled.clone()).starved(2).unwrap().taker, Taker::Quota);
        assert_eq!(
            of(CpuWait { throttled_ns: 300 * MS, ..filled }).starved(2).unwrap().taker,
            Taker::Programs
        );
        let host = CpuWait { waited_ns: Some(0), longest_ns: Some(0), stolen_ns: 110 * MS, ..wait() };
        let host = of(host).starved(2).unwrap();
        assert_eq!((host.taker, host.lost), (Taker::Host, 100));
    }

    #[test]
    fn an_unknown_wait_starves_a_cell_if_others_had_the_cpus() {
        // Others had 1000 of 2000 ms and the tasks 1000; 30 of them are uncertain.
        let unknown = CpuWait { unknown: Some("no schedstat".into()), others_ns: 1000 * MS, ..wait() };
        let found = of(unknown.clone());
        assert_eq!((found.waited, found.unknown.as_deref(), found.others), (None, Some("no schedstat"), 0.5));
        assert_eq!(
            found.starved(2).unwrap().to_string(),
            "with 2, for up to 49 % of their time the tasks may have lacked a CPU that other programs had"
        );
        // The tasks' own time leaves nothing that they can have lost.
        let mut busy = run(unknown.clone());
        busy.cpu_ns = 2000 * MS;
        assert_eq!(Waiting::of([busy].iter()).unwrap().starved(2), None);
        assert_eq!(of(CpuWait { others_ns: 80 * MS, ..unknown }).starved(2), None);
    }

    /// A run on one CPU, with the kernel's times.
    fn short(elapsed_ns: u64, cpu_ns: u64, wait: CpuWait) -> GroupRun {
        let mut run = run(CpuWait { cpus: 1, wanting: 1, uncertain_ns: 20 * MS, ..wait });
        (run.elapsed_ns, run.cpu_ns) = (elapsed_ns, cpu_ns);
        run
    }

    fn unread(others_ns: u64) -> CpuWait {
        CpuWait { unknown: Some("too short-lived".into()), others_ns, ..CpuWait::default() }
    }

    #[test]
    fn runs_shorter_than_a_tick_that_left_the_cpu_unused_are_too_short_to_tell() {
        // Recorded beside a program that had half of the CPU.
        for others_ns in [0, 6_100_000] {
            let half = short(7_650_000, 3_710_000, unread(others_ns));
            let found = Waiting::of([half].iter()).unwrap().starved(1).unwrap();
            assert!(found.too_short && found.lost > 400, "{found:?}");
            assert_eq!(
                found.to_string(),
                "with 1, the tasks may have lacked a CPU for up to 52 % of their time: the runs are too short to tell; make them \
                 longer"
            );
        }
        // The same without others: the program had its CPU until its end.
        let alone = short(3_463_710, 3_484_000, unread(6_200_000));
        assert_eq!(Waiting::of([alone].iter()).unwrap().starved(1), None);
        // A run whose wait was read does not speak for one whose wait was not.
        let read = CpuWait { waited_ns: Some(9_574), longest_ns: Some(9_574), ..CpuWait::default() };
        let runs = [short(3_463_710, 3_484_000, read), short(7_650_000, 3_710_000, unread(6_100_000))];
        assert!(Waiting::of(runs.iter()).unwrap().starved(1).unwrap().too_short);
    }

    #[test]
    fn a_wait_that_was_read_early_may_have_been_longer() {
        let early = |unread_ns| {
            let wait = CpuWait {
                waited_ns: Some(14_901),
                longest_ns: Some(14_901),
                unread_ns,
                others_ns: 4_277_214,
                ..CpuWait::default()
            };
            Waiting::of([short(9_156_405, 5_188_000, wait)].iter()).unwrap().starved(1)
        };
        assert!(early(4_000_000).unwrap().too_short);
        // It was read until the end: the program slept.
        assert_eq!(early(0), None);
    }

    #[test]
    fn ticks_in_some_of_many_short_runs_are_no_evidence_for_others() {
        // 1 ms each, on an idle machine: a tick of 10 ms falls into one run of ten. They leave a tenth of the time unused.
        let wait = |number| unread(if number % 10 == 0 { 9_050_000 } else { 0 });
        let runs: Vec<GroupRun> = (0..1000).map(|number| short(1_050_000, 945_000, wait(number))).collect();
        let found = Waiting::of(runs.iter()).unwrap().starved(1).unwrap();
        assert!(found.too_short, "{found:?}");
        let read = |number| CpuWait {
            waited_ns: Some(16_000),
            longest_ns: Some(16_000),
            unknown: None,
            ..wait(number)
        };
        let runs: Vec<GroupRun> = (0..1000).map(|number| short(1_050_000, 945_000, read(number))).collect();
        assert_eq!(Waiting::of(runs.iter()).unwrap().starved(1), None);
    }

    #[test]
    fn a_run_without_a_record_of_waiting_has_none() {
        let mut old = run(CpuWait::default());
        old.cpu_wait = None;
        assert_eq!(Waiting::of([old].iter()), None);
    }

    #[test]
    fn a_program_that_sleeps_is_judged_by_elapsed_time() {
        let mut sleeper =
            run(CpuWait { waited_ns: Some(2 * MS), longest_ns: Some(MS), others_ns: 30 * MS, ..wait() });
        sleeper.cpu_ns = 4 * MS;
        assert_eq!(Waiting::of([sleeper].iter()).unwrap().starved(2), None);
    }
}
