//! A pool of several launchers, which start one program each at the same time.
//!
//! Every job has its own launcher, with all that a single run has: a control group, an account of its whole
//! tree, and an end of the processes it leaves behind. They start together because each waits for the same
//! time on the same clock before its execve (`runtime/launcher`). None has to be woken after another.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::Metric;
use widthwise_machine::noise::{NoiseReader, Snapshot};

use crate::run::counters::Counters;
use crate::run::descriptors;
use crate::run::ending::ending;
use crate::run::ending::failure;
use crate::run::launch_spec::LaunchSpec;
use crate::run::launcher::{Launcher, Reply, Request};
use crate::run::limits::Limits;
use crate::run::result::RunError;
use crate::run::sample::add_unwaited_time;
use widthwise_proc::cgroup::{Cgroup, Throttling, Usage};
use widthwise_proc::clock::{now, own_cpu};
use widthwise_proc::taskstats::{Exit, Listener};

/// The time that sending all requests takes, at least and for each: the start is no earlier.
const LEAD: Duration = Duration::from_millis(2);
const LEAD_EACH: Duration = Duration::from_micros(150);
/// The longest sleep between checks of time limits and Ctrl-C.
const TICK: Duration = Duration::from_millis(100);
/// How long a program has to end when it is cancelled; the launchers themselves give up after five seconds.
const PATIENCE: Duration = Duration::from_secs(8);

/// One program to start.
#[derive(Debug)]
pub struct Task<'a> {
    /// The program, with its placeholders filled in.
    pub start: &'a LaunchSpec,
    /// The CPUs that it may use; empty for all.
    pub cpus: Vec<u32>,
    /// Its standard output; standard error is written beside it.
    pub output: PathBuf,
    /// The size of an extra variable, which shifts the start of the stack in each run.
    pub padding: usize,
    /// It is load for the others: ended when they have ended, and in no account.
    pub load: bool,
}

impl Task<'_> {
    /// Its standard error.
    pub fn errors(&self) -> PathBuf {
        self.output.with_extension("err")
    }
}

/// The result of one program.
#[derive(Debug)]
pub struct Done {
    /// The launcher's reply.
    pub reply: Reply,
    /// How it ended.
    pub ending: Ending,
}

/// Observes a pool while it runs.
pub trait RunObserver {
    /// Looks at the started processes, given the launchers' numbers, and returns how long not to look again.
    fn look(&mut self, launchers: &[u32], groups: &[Option<PathBuf>]) -> Duration;

    /// Reads what the programs report at the moment. Returns the descriptors that announce more, and the longest time to sleep.
    fn hear(&mut self) -> (Vec<RawFd>, Duration);
}

/// The results of all tasks.
#[derive(Debug)]
pub struct GroupResult {
    /// Of each task, in order, including load.
    pub done: Vec<Done>,
    /// Every exit on the machine during the run, with the time of its report.
    pub exits: Vec<(Exit, u64)>,
    /// The kernel has dropped some exits.
    pub exits_lost: bool,
    /// The appointed start time.
    pub appointed: Duration,
    /// Counters of the tasks that are not load, by name.
    pub counters: Vec<(Metric, f64)>,
    /// CPU time of this process and its launchers during the run.
    pub own_cpu_ns: u64,
    /// The machine before and after.
    pub machine: Option<(Snapshot, Snapshot)>,
    /// For how long a CPU quota kept tasks from running, over all CPUs.
    pub throttled_ns: u64,
}

#[derive(Debug)]
struct Worker {
    // Dropped in order: the launcher must have ended before its group can be removed.
    launcher: Launcher,
    counters: Counters,
    group: Cgroup,
    /// The CPU time that its group had used before.
    used: Usage,
}

/// As many launchers as were ever needed at the same time.
#[derive(Debug)]
pub struct LauncherPool {
    workers: Vec<Worker>,
    listener: Option<Listener>,
    /// Why taskstats are unavailable.
    pub without_taskstats: Option<String>,
    metrics: Vec<Metric>,
    noise: Option<NoiseReader>,
    throttling: Throttling,
}

impl LauncherPool {
    /// A pool that counts those of these metrics that are counters and that the machine has.
    pub fn new(metrics: &[Metric]) -> LauncherPool {
        descriptors::raise();
        let (listener, without_taskstats) = match Listener::open() {
            Ok(listener) => (Some(listener), None),
            Err(error) => (None, Some(error.to_string())),
        };
        LauncherPool {
            workers: Vec::new(),
            listener,
            without_taskstats,
            metrics: metrics.to_vec(),
            noise: NoiseReader::open([]).ok(),
            throttling: Throttling::find(),
        }
    }

    /// Counters that are unavailable here, with the reason. Known once there is a first launcher.
    pub fn missing_counters(&mut self) -> Result<Vec<(Metric, String)>, RunError> {
        self.grow(1)?;
        Ok(self.workers.first().map(|worker| worker.counters.missing.clone()).unwrap_or_default())
    }

    /// The numbers of the launchers that there are.
    pub(crate) fn launchers(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.launcher.pid()).collect()
    }

    fn grow(&mut self, workers: usize) -> Result<(), RunError> {
        while self.workers.len() < workers {
            let group = Cgroup::make();
            let launcher = Launcher::start(&group)?;
            group.adopt(launcher.pid());
            // A reserve is kept for the launchers of more jobs.
            let last = launcher.as_raw_fd() + self.metrics.len() as RawFd;
            let metrics = if descriptors::is_spare(last) { &self.metrics[..] } else { &[] };
            let counters = Counters::open(metrics, launcher.pid());
            self.workers.push(Worker { launcher, counters, group, used: Usage::default() });
        }
        Ok(())
    }

    /// Starts all tasks at the same time, waits until those that are not load have ended, and then for the
    /// others.
    ///
    /// # Errors
    /// A launcher has ended, or a process cannot be killed. A program's failure is not an error.
    pub fn run_all(
        &mut self,
        tasks: &[Task],
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
        observer: &mut dyn RunObserver,
    ) -> Result<GroupResult, RunError> {
        self.grow(tasks.len())?;
        let own_before = own_cpu();
        if let Some(listener) = &mut self.listener {
            listener.drain(&mut Vec::new());
        }
        let throttled_before = self.throttling.read();
        let before = self.noise.as_mut().map(NoiseReader::read);
        let appointed = Duration::from_nanos(now()) + LEAD + LEAD_EACH * tasks.len() as u32;
        let mut running = self.begin(tasks, appointed)?;
        self.wait(&mut running, limits, cancelled, observer)?;
        let machine = before.zip(self.noise.as_mut().map(NoiseReader::read));
        let throttled_ns = self.throttling.since(&throttled_before).as_nanos() as u64;
        let counters = self.counted(tasks);
        let (exits, exits_lost) = (std::mem::take(&mut running.exits), running.exits_lost);
        Ok(GroupResult {
            done: self.done(running)?,
            exits,
            exits_lost,
            appointed,
            counters,
            own_cpu_ns: own_cpu().saturating_sub(own_before),
            machine,
            throttled_ns,
        })
    }

    /// Sends every launcher the request for its program.
    fn begin<'a>(&mut self, tasks: &'a [Task<'a>], appointed: Duration) -> Result<Running<'a>, RunError> {
        let mut numbers = Vec::new();
        for (worker, task) in self.workers.iter_mut().zip(tasks) {
            numbers.push(worker.begin(task, appointed)?);
        }
        let foreground = || self.workers.iter().zip(tasks).filter(|(_, task)| !task.load);
        Ok(Running {
            tasks,
            numbers,
            launchers: foreground().map(|(worker, _)| worker.launcher.pid()).collect(),
            groups: foreground().map(|(worker, _)| worker.group.unified().map(Path::to_owned)).collect(),
            replies: tasks.iter().map(|_| None).collect(),
            killed: vec![None; tasks.len()],
            asked_to_end_at: None,
            exits: Vec::new(),
            exits_lost: false,
        })
    }

    /// Waits until all tasks but the load have ended, or must end, and then until the load has ended.
    fn wait(
        &mut self,
        running: &mut Running,
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
        observer: &mut dyn RunObserver,
    ) -> Result<(), RunError> {
        let began = Instant::now();
        let mut next_look = Instant::now();
        loop {
            let working = running.is_working();
            if !working && running.asked_to_end_at.is_none() {
                self.end(running, &Ending::Done)?;
            }
            if running.replies.iter().all(Option::is_some) {
                return Ok(());
            }
            if running.asked_to_end_at.is_some_and(|since| since.elapsed() > PATIENCE) {
                return Err(RunError::Escaped);
            }
            let (reports, longest) = observer.hear();
            if working && Instant::now() >= next_look {
                next_look = Instant::now() + observer.look(&running.launchers, &running.groups);
            }
            let until = if working { next_look.saturating_duration_since(Instant::now()) } else { TICK };
            self.sleep(&running.replies, &reports, until.min(longest));
            self.hear(&mut running.replies)?;
            if let Some(listener) = &mut self.listener {
                let mut reported = Vec::new();
                running.exits_lost |= listener.drain(&mut reported);
                let at = now();
                running.exits.extend(reported.into_iter().map(|exit| (exit, at)));
            }
            if working && running.asked_to_end_at.is_none() {
                if let Some(why) = running.must_end(limits, began, cancelled) {
                    self.end(running, &why)?;
                }
            }
        }
    }

    /// Cancels every program that still runs.
    fn end(&mut self, running: &mut Running, why: &Ending) -> Result<(), RunError> {
        for (place, worker) in self.workers.iter_mut().enumerate().take(running.tasks.len()) {
            if running.replies[place].is_none() {
                worker.launcher.cancel(running.numbers[place])?;
                running.killed[place] = Some(why.clone());
            }
        }
        running.asked_to_end_at = Some(Instant::now());
        Ok(())
    }

    /// The result of each task.
    fn done(&mut self, running: Running) -> Result<Vec<Done>, RunError> {
        // Load may have failed just before there was nothing left to measure.
        let without_load = failed_load(running.tasks, &running.replies);
        let mut done = Vec::new();
        let replies = running.replies.into_iter().zip(running.killed);
        for ((worker, task), (reply, killed)) in self.workers.iter_mut().zip(running.tasks).zip(replies) {
            let Some(mut reply) = reply.filter(|reply| !reply.escaped) else {
                return Err(RunError::Escaped);
            };
            let used = reply.group;
            add_unwaited_time(&mut reply, used.since(worker.used));
            worker.used = used;
            let ending = match (&without_load, killed) {
                (Some(reason), _) if !task.load => Ending::HookFailed { reason: reason.clone() },
                (_, Some(why)) if reply.failed.is_none() && reply.cancelled => why,
                _ => ending(&reply, task.start, &task.output, &task.cpus),
            };
            done.push(Done { reply, ending });
        }
        Ok(done)
    }

    fn hear(&mut self, replies: &mut [Option<Reply>]) -> Result<(), RunError> {
        for (worker, reply) in
            self.workers.iter_mut().zip(replies.iter_mut()).filter(|(_, reply)| reply.is_none())
        {
            let mut heard = VecDeque::new();
            worker.launcher.replies(&mut heard)?;
            *reply = heard.pop_front();
        }
        Ok(())
    }

    /// Sleeps until a reply arrives, a program reports something or `most` has passed.
    fn sleep(&self, replies: &[Option<Reply>], reports: &[RawFd], most: Duration) {
        let waiting = self.workers.iter().zip(replies).filter(|(_, reply)| reply.is_none());
        let mut descriptors: Vec<RawFd> = waiting.map(|(worker, _)| worker.launcher.as_raw_fd()).collect();
        descriptors.extend(self.listener.as_ref().map(Listener::descriptor));
        descriptors.extend(reports);
        let mut polls: Vec<libc::pollfd> =
            descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        let most = most.min(TICK);
        let time = libc::timespec { tv_sec: 0, tv_nsec: most.as_nanos() as libc::c_long };
        // SAFETY: valid pollfds of that number and a valid timespec. Whatever ends the sleep, the caller
        // checks everything.
        unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, &time, std::ptr::null()) };
    }

    fn counted(&mut self, tasks: &[Task]) -> Vec<(Metric, f64)> {
        let mut sums: Vec<(Metric, f64, usize)> = Vec::new();
        for (worker, task) in self.workers.iter_mut().zip(tasks) {
            let counted = worker.counters.end();
            if task.load {
                continue;
            }
            for (metric, reading) in counted {
                match sums.iter_mut().find(|(known, ..)| known.name == metric.name) {
                    Some((_, sum, tasks)) => {
                        *sum += reading.value;
                        *tasks += 1;
                    }
                    None => sums.push((metric, reading.value, 1)),
                }
            }
        }
        // The sum of some of them is not that of all.
        let all = tasks.iter().filter(|task| !task.load).count();
        sums.into_iter().filter(|(.., tasks)| *tasks == all).map(|(metric, sum, _)| (metric, sum)).collect()
    }
}

/// Tasks that have been started.
struct Running<'a> {
    tasks: &'a [Task<'a>],
    /// The number of each request at its launcher.
    numbers: Vec<u64>,
    /// Of tasks that are not load: the launchers' numbers, and their control groups.
    launchers: Vec<u32>,
    groups: Vec<Option<PathBuf>>,
    replies: Vec<Option<Reply>>,
    killed: Vec<Option<Ending>>,
    asked_to_end_at: Option<Instant>,
    exits: Vec<(Exit, u64)>,
    exits_lost: bool,
}

impl Running<'_> {
    fn is_working(&self) -> bool {
        self.tasks.iter().zip(&self.replies).any(|(task, reply)| !task.load && reply.is_none())
    }

    /// Why all must end now, if they must.
    fn must_end(&self, limits: Limits, began: Instant, cancelled: &dyn Fn() -> bool) -> Option<Ending> {
        let files = self.tasks.iter().flat_map(|task| [task.output.clone(), task.errors()]);
        let most_written = files.map(|path| written(&path)).max().unwrap_or(0);
        if let Some(exceeded) = limits.exceeded(began.elapsed(), most_written) {
            Some(exceeded)
        } else if let Some(reason) = failed_load(self.tasks, &self.replies) {
            Some(Ending::HookFailed { reason })
        } else {
            cancelled().then_some(Ending::Signal { signal: libc::SIGINT })
        }
    }
}

/// How load ended that was not cancelled.
fn failed_load(tasks: &[Task], replies: &[Option<Reply>]) -> Option<String> {
    let load = tasks.iter().zip(replies).filter(|(task, _)| task.load);
    let ended =
        load.filter_map(|(task, reply)| Some((task, reply.as_ref().filter(|reply| !reply.cancelled)?)));
    let (task, reply) = ended.into_iter().next()?;
    let how = match ending(reply, task.start, &task.output, &task.cpus) {
        Ending::Done => "it ended by itself".to_owned(),
        ending => failure(&ending, &task.errors()),
    };
    Some(format!("the load on CPU {} failed: {how}", task.cpus.first().copied().unwrap_or_default()))
}

impl Worker {
    fn begin(&mut self, task: &Task, not_before: Duration) -> Result<u64, RunError> {
        let (file, arguments) = task.start.executed();
        let errors = task.errors();
        let request = Request {
            file,
            directory: &task.start.directory,
            stdin: &task.start.stdin,
            stdout: &task.output,
            stderr: &errors,
            arguments: &arguments,
            environment: &task.start.environment,
            padding: task.padding,
            cpus: &task.cpus,
            no_aslr: task.start.no_aslr,
            thp: task.start.thp,
            exit_stop: false,
            find_parents: false,
            not_before,
            warmed: None,
        };
        self.counters.begin();
        let (number, _) = self.launcher.ask(&request)?;
        self.launcher.send()?;
        Ok(number)
    }
}

fn written(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl RunObserver for Nobody {
        fn look(&mut self, _launchers: &[u32], _groups: &[Option<PathBuf>]) -> Duration {
            TICK
        }

        fn hear(&mut self) -> (Vec<RawFd>, Duration) {
            (Vec::new(), TICK)
        }
    }

    /// The soft limit of descriptors of these tests.
    const SOFT: u64 = 600;

    /// A pool, in a process whose limit was soft before the first pool was made; and the hard limit.
    fn pool() -> (LauncherPool, u64) {
        static LOWERED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        let hard = LOWERED.get_or_init(|| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: valid structures; the hard limit stays.
            unsafe {
                libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
                libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: SOFT, ..limit });
            }
            limit.rlim_max
        });
        (LauncherPool::new(&[]), *hard)
    }

    fn shell(text: &str, folder: &Path) -> LaunchSpec {
        LaunchSpec::plain("/bin/sh", &["sh", "-c", text], folder)
    }

    #[test]
    fn a_pool_may_open_what_the_hard_limit_allows_and_its_programs_what_the_shell_does() {
        let (mut pool, hard) = pool();
        assert_eq!(descriptors::most(), hard);
        let folder = tempfile::tempdir().unwrap();
        let start = LaunchSpec {
            setup: Some("ulimit -Sn > hook".into()),
            ..shell("ulimit -Sn; ulimit -Hn", folder.path())
        };
        // Descriptors above the programs' limit do not hinder the launcher's start.
        let held: Vec<std::fs::File> = (0..700).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let output = folder.path().join("stdout");
        let tasks =
            [Task { start: &start, cpus: Vec::new(), output: output.clone(), padding: 0, load: false }];
        let limits = Limits { timeout: Duration::from_secs(20), boot: Limits::BOOT, output_bytes: 1 << 20 };
        let result = pool.run_all(&tasks, limits, &|| false, &mut Nobody).unwrap();
        assert_eq!(result.done[0].ending, Ending::Done);
        let hard = match hard {
            libc::RLIM_INFINITY => "unlimited".to_owned(),
            most => most.to_string(),
        };
        assert_eq!(std::fs::read_to_string(&output).unwrap(), format!("{SOFT}\n{hard}\n"));
        crate::run::hooks::shell("setup", "ulimit -Sn > hook", &start).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("hook")).unwrap(), format!("{SOFT}\n"));
        drop(held);
    }

    #[test]
    fn the_output_limit_is_that_of_standard_error_too() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { timeout: Duration::from_secs(60), boot: Limits::BOOT, output_bytes: 1 << 12 };
        for output in ["", ">&2"] {
            let text = format!("while :; do echo more and more {output}; done");
            let start = shell(&text, folder.path());
            let output = folder.path().join("stdout");
            let tasks = [Task { start: &start, cpus: Vec::new(), output, padding: 0, load: false }];
            let result = pool().0.run_all(&tasks, limits, &|| false, &mut Nobody).unwrap();
            assert_eq!(result.done[0].ending, Ending::OutputLimit { limit_bytes: 1 << 12 }, "{text}");
        }
    }
}
