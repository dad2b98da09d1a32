//! Makes runs: begins them, watches their limits, ends them, and combines what is known of each.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::Metric;

use crate::run::counters::Counters;
use crate::run::ending::ending;
use crate::run::hooks::{lay_out, shell, LeftBehind};
use crate::run::launch_spec::LaunchSpec;
use crate::run::launcher::{self, Launcher, LauncherError, Reply, Request, Step};
use crate::run::limits::Limits;
use crate::run::reported;
use crate::run::result::{RunError, RunResult};
use crate::run::sample::{
    add_unwaited, began_at, has_unwaited, left_working, of_whole_group, sample, Remarks,
};
use crate::run::x32_account::{self, Accounts};
use widthwise_proc::cgroup::{Cgroup, Usage};
use widthwise_proc::taskstats::{self, Exit, Listener, Process};

/// How often the runner checks a run's time limit, the size of its output, and Ctrl-C. It sleeps in between,
/// on another CPU where there is one.
const TICK: Duration = Duration::from_millis(100);

/// The program's own open(2) truncates output files up to this size.
const SOON_TRUNCATED: u64 = 1 << 16;

/// How peaks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// From taskstats where available, from `rusage` otherwise: costs the program nothing.
    Free,
    /// By stopping each process at its exit (ptrace): what is resident then is exact to the page, but the program is traced.
    ExitStop,
}

/// Makes runs, one at a time, in the order in which they are [begun](Runner::begin).
///
/// A run may be begun before the previous one has ended: the launcher then starts it without waiting for us.
#[derive(Debug)]
pub struct Runner {
    // Dropped in order: the launcher must have ended before its cgroup can be removed.
    launcher: Launcher,
    listener: Option<Listener>,
    /// Why taskstats are unavailable.
    pub without_taskstats: Option<String>,
    metrics: Vec<Metric>,
    counters: Counters,
    accounts: Accounts,
    /// Requests ask whether processes had children, which takes some of the launcher's time.
    memory_is_read: bool,
    scratch: PathBuf,
    accounting: Accounting,
    /// Removed when dropped.
    cgroup: Cgroup,
    /// Runs in flight, in order.
    begun: VecDeque<Begun>,
    /// Replies to the first of them.
    replies: VecDeque<Reply>,
    /// Reported exits that may still belong to a later run.
    exits: Vec<Exit>,
    /// The kernel has dropped accounts: those of runs up to this number may be incomplete.
    lost: u64,
    /// Pairs of output files that no run uses.
    free: BTreeSet<usize>,
    /// The pair of the last run that ended.
    last: usize,
    /// The final sizes of each pair: standard output, standard error.
    held: Vec<[u64; 2]>,
    /// The group's CPU time and refused forks at the end of the last run: it holds only runs.
    group: (Usage, u64),
    /// When the launcher started the first run without a reply, as far as is known.
    since: Instant,
    /// Whether the launcher reads the program's file into the caches before each run.
    warms_caches: bool,
}

/// A run in flight.
#[derive(Debug)]
struct Begun {
    /// The launcher's number; 0 if the request was never sent.
    number: u64,
    /// Its output files.
    files: usize,
    /// Size of the request.
    bytes: usize,
    /// What failed before it.
    around: Option<Ending>,
    /// What its setup has left in the background; it lives until the teardown has ended.
    _left: Option<LeftBehind>,
    /// Why it was ended early.
    killed: Option<Ending>,
}

impl Runner {
    /// A runner for `metrics` whose runs write their output to `scratch`.
    pub fn new(scratch: &Path, metrics: &[Metric], accounting: Accounting) -> Result<Runner, RunError> {
        std::fs::create_dir_all(scratch)
            .map_err(|error| RunError::Scratch { path: scratch.to_owned(), error })?;
        let cgroup = Cgroup::make();
        let launcher = Launcher::start(&cgroup)?;
        cgroup.adopt(launcher.pid());
        let (listener, without_taskstats) = match Listener::open() {
            Ok(listener) => (Some(listener), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let counters = Counters::open(metrics, launcher.pid());
        Ok(Runner {
            launcher,
            listener,
            without_taskstats,
            metrics: metrics.to_vec(),
            counters,
            accounts: Accounts::default(),
            memory_is_read: false,
            scratch: scratch.to_owned(),
            accounting,
            cgroup,
            begun: VecDeque::new(),
            replies: VecDeque::new(),
            exits: Vec::new(),
            lost: 0,
            free: BTreeSet::new(),
            last: 0,
            held: vec![[0; 2]],
            group: Default::default(),
            since: Instant::now(),
            warms_caches: false,
        })
    }

    /// A runner that does the same concurrently, with its output in a folder of that name.
    pub(crate) fn another(&self, name: &str) -> Result<Runner, RunError> {
        let runner = Runner::new(&self.scratch.join(name), &self.metrics, self.accounting)?;
        Ok(Runner { warms_caches: self.warms_caches, ..runner })
    }

    /// Requested counters that are unavailable here.
    pub fn missing_counters(&self) -> &[(Metric, String)] {
        &self.counters.missing
    }

    /// The launcher's process number: the parent of the runs.
    pub fn launcher(&self) -> u32 {
        self.launcher.pid()
    }

    /// The control group (cgroups v2) in which programs are started, where there is one.
    pub fn unified(&self) -> Option<&Path> {
        self.cgroup.unified()
    }

    /// The standard output of the last run that ended.
    pub fn stdout(&self) -> PathBuf {
        self.output("stdout", self.last)
    }

    /// The standard error of the same run.
    pub fn stderr(&self) -> PathBuf {
        self.output("stderr", self.last)
    }

    fn output(&self, name: &str, files: usize) -> PathBuf {
        self.scratch.join(format!("{name}-{files}"))
    }

    /// The sizes of a pair of output files.
    fn written(&self, files: usize) -> [u64; 2] {
        ["stdout", "stderr"]
            .map(|name| std::fs::metadata(self.output(name, files)).map_or(0, |data| data.len()))
    }

    /// Makes one run. `cancelled` is checked at every tick.
    pub fn run(
        &mut self,
        start: &LaunchSpec,
        padding: usize,
        cpus: &[u32],
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<RunResult, RunError> {
        self.begin(start, padding, cpus)?;
        self.end(start, cpus, limits, cancelled, Duration::ZERO)
    }

    /// Whether each later run finds the first mebibyte of its program's file in the caches, whichever program ran before. A run
    /// with a setup command finds what that left.
    pub fn warm_caches(&mut self, warms_caches: bool) {
        self.warms_caches = warms_caches;
    }

    /// Whether no work is needed between this program's runs and others: only then may a run begin before the
    /// previous one has ended. Counters too are read between runs.
    pub fn stands_alone(&self, start: &LaunchSpec) -> bool {
        !start.fresh && start.setup.is_none() && start.teardown.is_none() && self.counters.is_empty()
    }

    /// The number of runs in flight, as far as is known, and the size of their requests.
    pub fn in_flight(&self) -> (usize, usize) {
        let in_flight = self.begun.range(self.replies.len().min(self.begun.len())..);
        (in_flight.len(), in_flight.map(|begun| begun.bytes).sum())
    }

    /// Begins a run, after those begun before. [`Runner::end`] returns its result.
    pub fn begin(&mut self, start: &LaunchSpec, padding: usize, cpus: &[u32]) -> Result<(), RunError> {
        let files = self.free.pop_first().unwrap_or(self.held.len());
        if files == self.held.len() {
            self.held.push([0; 2]);
        }
        let mut begun =
            Begun { number: 0, files, bytes: 0, around: None, _left: LeftBehind::of(start), killed: None };
        if start.fresh {
            lay_out(&start.directory, &start.inputs)
                .map_err(|error| RunError::Scratch { path: start.directory.clone(), error })?;
        }
        if let Some(text) = &start.setup {
            if let Err(reason) = shell("setup", text, start) {
                begun.around = Some(Ending::HookFailed { reason });
            }
        }
        if self.in_flight().0 == 0 {
            self.since = Instant::now();
        }
        if begun.around.is_none() {
            (begun.number, begun.bytes) = self.ask(start, padding, cpus, files)?;
        }
        self.begun.push_back(begun);
        Ok(())
    }

    /// Skips the runs that were begun but that the launcher has not started.
    pub fn skip_rest(&mut self) -> Result<(), RunError> {
        self.launcher.send()?;
        Ok(self.launcher.skip_rest()?)
    }

    /// Whether the result of the first run in flight has arrived, so that [`Runner::end`] will not wait.
    pub fn has_ended(&self) -> bool {
        let all = self.replies.len() >= self.begun.len();
        match (self.begun.front(), self.replies.front()) {
            (Some(begun), _) if begun.around.is_some() => true,
            // The run of an orphan is known only with the number of the next run.
            (Some(_), Some(reply)) => reply.reaped <= 1 || self.replies.len() > 1 || all,
            _ => false,
        }
    }

    /// Whether the first run in flight was skipped.
    pub(crate) fn is_skipped(&self) -> bool {
        matches!(self.replies.front(), Some(Reply { failed: Some((Step::Skipped, _)), .. }))
    }

    fn ask(
        &mut self,
        start: &LaunchSpec,
        padding: usize,
        cpus: &[u32],
        files: usize,
    ) -> Result<(u64, usize), RunError> {
        let (stdout, stderr) = (self.output("stdout", files), self.output("stderr", files));
        let account = match &start.runtime {
            Some(runtime) => {
                if self.begun.is_empty() {
                    self.accounts.measure_costs(runtime, cpus);
                }
                // A run without an account is made all the same, and reported as having none.
                self.accounts.begin(files).ok()
            }
            None => None,
        };
        let (file, arguments) = start.accounted(account.as_deref());
        let request = Request {
            file,
            directory: &start.directory,
            stdin: &start.stdin,
            stdout: &stdout,
            stderr: &stderr,
            arguments: &arguments,
            environment: &start.environment,
            padding,
            cpus,
            no_aslr: start.no_aslr,
            thp: start.thp,
            exit_stop: self.accounting == Accounting::ExitStop,
            find_parents: self.finds_parents(),
            not_before: Duration::ZERO,
            // A setup command decides what the caches hold: it may have emptied them.
            warmed: (self.warms_caches && start.setup.is_none()).then_some(start.file.as_path()),
        };
        if self.begun.is_empty() {
            // No exit reported so far belongs to this run.
            self.listen();
            self.exits.clear();
        }
        for (path, held) in [&stdout, &stderr].into_iter().zip(self.held[files]) {
            if held > SOON_TRUNCATED {
                // Truncating a large file takes a while, which is not this run's, and neither is old output.
                std::fs::File::create(path)
                    .map_err(|error| RunError::Scratch { path: path.clone(), error })?;
            }
        }
        self.counters.begin();
        Ok(self.launcher.ask(&request)?)
    }

    /// Switches reading of memory during the runs on or off.
    pub(crate) fn read_memory(&mut self, is_read: bool) {
        self.memory_is_read = is_read;
    }

    /// Taskstats report every process; without them the launcher has to look for children.
    fn finds_parents(&self) -> bool {
        self.memory_is_read && self.listener.is_none()
    }

    /// Takes the exits that taskstats have reported.
    fn listen(&mut self) {
        if let Some(listener) = &mut self.listener {
            if listener.drain(&mut self.exits) {
                self.lost = self.begun.back().map_or(0, |begun| begun.number);
            }
        }
    }

    /// Takes the replies that have arrived.
    fn hear(&mut self) -> Result<(), RunError> {
        let before = self.replies.len();
        self.launcher.replies(&mut self.replies)?;
        if self.replies.len() > before {
            self.since = Instant::now();
            self.listen();
        }
        Ok(())
    }

    /// Waits for the end of the first run in flight, and checks the runs until then. `pace` is the typical
    /// length of a run: with several in flight, the wait spans most of them.
    pub(crate) fn wait(
        &mut self,
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
        pace: Duration,
    ) -> Result<(), RunError> {
        self.launcher.send()?;
        if self.has_ended() {
            return Ok(());
        }
        self.hear()?;
        let (in_flight, _) = self.in_flight();
        if !self.has_ended() && in_flight > 1 {
            // Wake-ups cost the launcher more than anything else it does.
            let most = (pace * (in_flight as u32 - in_flight as u32 / 4)).min(TICK);
            launcher::sleep(None, most).map_err(LauncherError::Gone)?;
            self.hear()?;
        }
        while !self.has_ended() {
            let deadline = self.since + limits.timeout;
            self.launcher.wait(deadline.saturating_duration_since(Instant::now()).min(TICK))?;
            self.hear()?;
            self.listen();
            let place = self.replies.len();
            let Some(current) = self.begun.get(place) else { break };
            let (number, files) = (current.number, current.files);
            if current.killed.is_some() {
                // The launcher itself gives up on what cannot be killed.
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            if self.has_ended() {
                break;
            }
            // Checked again: a reply may have ended the previous run.
            let exceeded =
                limits.exceeded(self.since.elapsed(), self.written(files).into_iter().max().unwrap_or(0));
            let interrupted = || cancelled().then_some(Ending::Signal { signal: libc::SIGINT });
            let Some(ending) = exceeded.or_else(interrupted) else { continue };
            self.launcher.cancel(number)?;
            self.begun[place].killed = Some(ending);
        }
        Ok(())
    }

    /// Waits for the first run in flight and returns its result. `start` and `cpus` are those it was begun
    /// with; `cancelled` is checked at every tick.
    pub fn end(
        &mut self,
        start: &LaunchSpec,
        cpus: &[u32],
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
        pace: Duration,
    ) -> Result<RunResult, RunError> {
        self.wait(limits, cancelled, pace)?;
        let Some(mut begun) = self.begun.pop_front() else { return Err(RunError::Escaped) };
        self.free.insert(std::mem::replace(&mut self.last, begun.files));
        self.free.remove(&self.last);
        if let Some(ending) = begun.around {
            return Ok(RunResult::failed(ending));
        }
        let Some(reply) = self.replies.pop_front() else { return Err(RunError::Escaped) };
        let mut result = self.account(reply, begun.number, begun.killed.take(), start, cpus, limits)?;
        if let Some(text) = &start.teardown {
            if let Err(reason) = shell("teardown", text, start) {
                if result.ending == Ending::Done {
                    result.ending = Ending::HookFailed { reason };
                }
            }
        }
        Ok(result)
    }

    /// Combines what is known of a run.
    fn account(
        &mut self,
        reply: Reply,
        number: u64,
        killed: Option<Ending>,
        start: &LaunchSpec,
        cpus: &[u32],
        limits: Limits,
    ) -> Result<RunResult, RunError> {
        let stdout = self.stdout();
        let (used_before, refused_before) =
            std::mem::replace(&mut self.group, (reply.group, reply.refused_forks));
        let counted = self.counters.end();
        if reply.escaped {
            return Err(RunError::Escaped);
        }
        let lost = number <= self.lost;
        let mut tree = self.tree(&reply, lost);
        let used = self.cgroup.unified().map(|_| reply.group.since(used_before));
        let used = used.filter(|used| !used.is_zero());
        let unwaited = has_unwaited(&reply, tree.as_deref(), used);
        let used = of_whole_group(used, tree.as_deref());
        let refused = (reply.refused_forks > refused_before).then(|| self.cgroup.reached_limit());
        let remarks = Remarks {
            reply: &reply,
            tree: tree.as_deref(),
            unwaited: unwaited == Some(true),
            grouped: used.is_some(),
            lost,
            refused,
            cpus,
        };
        let mut remarks = remarks.sentences();
        let left_over = left_working(&reply);
        let ending = self.ending(&reply, killed, start, &stdout, cpus, limits);
        let largest = self.largest(&reply, tree.as_deref());
        let mut sample = sample(&reply, tree.as_deref(), largest);
        add_unwaited(&mut sample, &reply, tree.as_deref(), used, unwaited);
        sample.extend(counted.into_iter().map(|(metric, reading)| (metric.name, reading)));
        if ending == Ending::Done {
            let reported = reported::read(&stdout, &self.metrics);
            sample.extend(reported.readings);
            remarks.extend(reported.remarks);
        }
        let account = start.runtime.as_ref().and_then(|_| self.accounts.end(self.last));
        if let Some(account) = &account {
            x32_account::leave_out(account, self.accounts.costs(), &mut sample, tree.as_deref_mut());
        }
        if start.runtime.is_some() && account.as_ref().is_none_or(|account| account.uncounted > 0) {
            remarks.push(
                "was run by x32run, whose own pages and calls could not all be counted: its figures include some"
                    .into(),
            );
        }
        if reply.failed.is_some() {
            sample.clear();
        }
        Ok(RunResult {
            began: began_at(reply.began),
            began_at: reply.began,
            ending,
            sample,
            processes: tree,
            largest,
            childless: self.finds_parents() && reply.reaped == 1 && reply.parents == 0,
            left_over,
            remarks,
            wall: reply.wall,
            busy: (reply.user + reply.system).max(used.unwrap_or_default()),
            series: None,
            account,
        })
    }

    /// The processes of the run, as taskstats has reported them; none if reports were lost.
    fn tree(&mut self, reply: &Reply, lost: bool) -> Option<Vec<Process>> {
        let next = self.replies.iter().map(|reply| reply.pid).find(|pid| *pid > 0);
        self.listener.as_ref()?;
        let tree = taskstats::take(&mut self.exits, reply.pid, self.launcher.pid(), next, reply.reaped > 1);
        (!lost && !tree.is_empty()).then_some(tree)
    }

    /// How the run ended: it was killed, wrote too much, or by itself.
    fn ending(
        &mut self,
        reply: &Reply,
        killed: Option<Ending>,
        start: &LaunchSpec,
        stdout: &Path,
        cpus: &[u32],
        limits: Limits,
    ) -> Ending {
        self.held[self.last] = self.written(self.last);
        let flooded = self.held[self.last].iter().any(|held| *held > limits.output_bytes);
        match killed {
            Some(ending) if reply.failed.is_none() => ending,
            _ if flooded => Ending::OutputLimit { limit_bytes: limits.output_bytes },
            _ => ending(reply, start, stdout, cpus),
        }
    }

    /// `ru_maxrss` of the run, unless it may be the launcher's own size: at `execve` the kernel counts the
    /// replaced image, which is first the launcher's (`exec_mmap`, fs/exec.c).
    fn largest(&self, reply: &Reply, tree: Option<&[Process]>) -> u64 {
        let at_exit = tree.into_iter().flatten().map(|process| process.max_rss).max();
        if at_exit.is_none_or(|at_exit| reply.max_rss <= at_exit) {
            return reply.max_rss;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.launcher.pid()));
        let line = status.iter().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix("VmHWM:"));
        let own = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        match own {
            Some(own) if reply.max_rss > own << 10 => reply.max_rss,
            _ => 0,
        }
    }
}
