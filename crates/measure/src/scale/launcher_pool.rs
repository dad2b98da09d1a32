//! A pool: several launchers, which start their programs at the same moment, one each.
//!
//! Every job has a launcher of its own, and with it all that a single run has: a control group, an account of its whole
//! tree, the end of what it leaves behind. They start together because each waits for the same moment on the same clock
//! before its execve (`runtime/launcher`), not because somebody wakes them one after the other.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::Metric;
use widthwise_machine::noise::{NoiseReader, Snapshot};

use crate::cgroup::{Cgroup, Throttling, Usage};
use crate::counters::Counters;
use crate::ending::failure;
use crate::launcher::{Launcher, Reply, Request};
use crate::run::{add_forgotten, ending, LaunchSpec, Limits, RunError};
use crate::sampler::now;
use crate::taskstats::{Exit, Listener};

/// What sending all requests takes, at least and for each: the start is no earlier.
const LEAD: Duration = Duration::from_millis(2);
const LEAD_EACH: Duration = Duration::from_micros(150);
/// The longest sleep between looks at time limits and Ctrl-C.
const TICK: Duration = Duration::from_millis(100);
/// What does not end when it is told to is given up after so long; the launchers themselves give up after five seconds.
const PATIENCE: Duration = Duration::from_secs(8);

/// One program to start.
#[derive(Debug)]
pub struct Task<'a> {
    /// What, with its words filled in.
    pub start: &'a LaunchSpec,
    /// Where it may run; empty for anywhere.
    pub cpus: Vec<u32>,
    /// Its standard output; standard error lies beside it.
    pub output: PathBuf,
    /// The bytes of one more variable, so that the stack begins elsewhere in each run.
    pub padding: usize,
    /// It is load for the others: ended when they have ended, and in no account.
    pub load: bool,
}

impl Task<'_> {
    /// Where its standard error lies.
    pub fn errors(&self) -> PathBuf {
        self.output.with_extension("err")
    }
}

/// How one program went.
#[derive(Debug)]
pub struct Done {
    /// What its launcher saw.
    pub reply: Reply,
    /// How it ended.
    pub ending: Ending,
}

/// Who watches while a pool works.
pub trait RunObserver {
    /// Looks at what has been started, by the numbers of the launchers, and says how long not to look again.
    fn look(&mut self, launchers: &[u32], groups: &[Option<PathBuf>]) -> Duration;
}

/// What became of all.
#[derive(Debug)]
pub struct GroupResult {
    /// Of each task, in their order; those in the background too.
    pub done: Vec<Done>,
    /// Every exit on the machine meanwhile, with the moment at which it was told.
    pub exits: Vec<(Exit, u64)>,
    /// The kernel has dropped some of them.
    pub exits_lost: bool,
    /// The moment that was appointed for the start.
    pub appointed: Duration,
    /// Counters of those in the foreground, by name.
    pub counters: Vec<(Metric, f64)>,
    /// CPU time of all that is ours meanwhile: this process and its launchers.
    pub own_cpu_ns: u64,
    /// The machine before and after.
    pub machine: Option<(Snapshot, Snapshot)>,
    /// For how long a CPU quota kept tasks from running, over all CPUs.
    pub throttled_ns: u64,
}

#[derive(Debug)]
struct Worker {
    // In the order of dropping: the launcher must be gone before its group can be removed.
    launcher: Launcher,
    counters: Counters,
    group: Cgroup,
    /// What its group had used before.
    used: Usage,
}

/// Launchers, as many as were ever needed at once.
#[derive(Debug)]
pub struct LauncherPool {
    workers: Vec<Worker>,
    listener: Option<Listener>,
    /// Why there are no taskstats.
    pub without_taskstats: Option<String>,
    metrics: Vec<Metric>,
    noise: Option<NoiseReader>,
    throttling: Throttling,
}

impl LauncherPool {
    /// A pool that counts these metrics, where they are counters and the machine has them.
    pub fn new(metrics: &[Metric]) -> LauncherPool {
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

    /// Counters that cannot be had here, with the reason. Known once there is a first launcher.
    pub fn missing_counters(&mut self) -> Result<Vec<(Metric, String)>, RunError> {
        self.grow(1)?;
        Ok(self.workers.first().map(|worker| worker.counters.missing.clone()).unwrap_or_default())
    }

    fn grow(&mut self, workers: usize) -> Result<(), RunError> {
        while self.workers.len() < workers {
            let group = Cgroup::make();
            let launcher = Launcher::start(&group)?;
            group.adopt(launcher.pid());
            let counters = Counters::open(&self.metrics, launcher.pid());
            self.workers.push(Worker { launcher, counters, group, used: Usage::default() });
        }
        Ok(())
    }

    /// Starts all tasks at one moment, and waits until those in the foreground have ended, and then all.
    ///
    /// # Errors
    /// A launcher is gone, or something cannot be killed. How the programs end is no error.
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
        let throttled = self.throttling.read().into_iter().zip(throttled_before);
        let throttled_ns = throttled.map(|(now, then)| now.saturating_sub(then)).max().unwrap_or(0);
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

    /// Asks every launcher for its program.
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
            told_to_end: None,
            exits: Vec::new(),
            exits_lost: false,
        })
    }

    /// Until those in the foreground have ended, or must end; and then until all have ended.
    fn wait(
        &mut self,
        running: &mut Running,
        limits: Limits,
        cancelled: &dyn Fn() -> bool,
        observer: &mut dyn RunObserver,
    ) -> Result<(), RunError> {
        let deadline = Instant::now() + limits.timeout;
        let mut next_look = Instant::now();
        loop {
            let working = running.is_working();
            if !working && running.told_to_end.is_none() {
                self.end(running, &Ending::Done)?;
            }
            if running.replies.iter().all(Option::is_some) {
                return Ok(());
            }
            if running.told_to_end.is_some_and(|since| since.elapsed() > PATIENCE) {
                return Err(RunError::Escaped);
            }
            if working && Instant::now() >= next_look {
                next_look = Instant::now() + observer.look(&running.launchers, &running.groups);
            }
            let until = if working { next_look.saturating_duration_since(Instant::now()) } else { TICK };
            self.sleep(&running.replies, until);
            self.hear(&mut running.replies)?;
            if let Some(listener) = &mut self.listener {
                let mut reported = Vec::new();
                running.exits_lost |= listener.drain(&mut reported);
                let at = now();
                running.exits.extend(reported.into_iter().map(|exit| (exit, at)));
            }
            if working && running.told_to_end.is_none() {
                if let Some(why) = running.must_end(limits, deadline, cancelled) {
                    self.end(running, &why)?;
                }
            }
        }
    }

    /// Tells every launcher whose program still runs to end it.
    fn end(&mut self, running: &mut Running, why: &Ending) -> Result<(), RunError> {
        for (place, worker) in self.workers.iter_mut().enumerate().take(running.tasks.len()) {
            if running.replies[place].is_none() {
                worker.launcher.cancel(running.numbers[place])?;
                running.killed[place] = Some(why.clone());
            }
        }
        running.told_to_end = Some(Instant::now());
        Ok(())
    }

    /// What became of each.
    fn done(&mut self, running: Running) -> Result<Vec<Done>, RunError> {
        // It may have failed just before there was nothing left to measure.
        let without_load = failed_load(running.tasks, &running.replies);
        let mut done = Vec::new();
        let replies = running.replies.into_iter().zip(running.killed);
        for ((worker, task), (reply, killed)) in self.workers.iter_mut().zip(running.tasks).zip(replies) {
            let Some(mut reply) = reply.filter(|reply| !reply.escaped) else {
                return Err(RunError::Escaped);
            };
            let used = reply.group;
            add_forgotten(&mut reply, worker.used, used);
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

    /// Sleeps until something has ended, or so much time has passed.
    fn sleep(&self, replies: &[Option<Reply>], most: Duration) {
        let waiting = self.workers.iter().zip(replies).filter(|(_, reply)| reply.is_none());
        let mut descriptors: Vec<RawFd> = waiting.map(|(worker, _)| worker.launcher.as_raw_fd()).collect();
        descriptors.extend(self.listener.as_ref().map(Listener::descriptor));
        let mut polls: Vec<libc::pollfd> =
            descriptors.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        let most = most.min(TICK);
        let time = libc::timespec { tv_sec: 0, tv_nsec: most.as_nanos() as libc::c_long };
        // SAFETY: valid pollfds of that number and a valid timespec. Whatever ends the sleep, everything is looked at.
        unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, &time, std::ptr::null()) };
    }

    fn counted(&mut self, tasks: &[Task]) -> Vec<(Metric, f64)> {
        let mut sums: Vec<(Metric, f64)> = Vec::new();
        for (worker, task) in self.workers.iter_mut().zip(tasks) {
            let counted = worker.counters.end();
            if task.load {
                continue;
            }
            for (metric, reading) in counted {
                match sums.iter_mut().find(|(known, _)| known.name == metric.name) {
                    Some((_, sum)) => *sum += reading.value,
                    None => sums.push((metric, reading.value)),
                }
            }
        }
        sums
    }
}

/// Tasks that have been started.
struct Running<'a> {
    tasks: &'a [Task<'a>],
    /// Of each request to its launcher.
    numbers: Vec<u64>,
    /// Of those in the foreground: the launchers' numbers, and their control groups.
    launchers: Vec<u32>,
    groups: Vec<Option<PathBuf>>,
    replies: Vec<Option<Reply>>,
    killed: Vec<Option<Ending>>,
    told_to_end: Option<Instant>,
    exits: Vec<(Exit, u64)>,
    exits_lost: bool,
}

impl Running<'_> {
    fn is_working(&self) -> bool {
        self.tasks.iter().zip(&self.replies).any(|(task, reply)| !task.load && reply.is_none())
    }

    /// Why all must end now, if they must.
    fn must_end(&self, limits: Limits, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Option<Ending> {
        if Instant::now() >= deadline {
            Some(Ending::Timeout { limit_ns: limits.timeout.as_nanos() as u64 })
        } else if self.tasks.iter().any(|task| written(&task.output) > limits.output_bytes) {
            Some(Ending::OutputLimit { limit_bytes: limits.output_bytes })
        } else if let Some(reason) = failed_load(self.tasks, &self.replies) {
            Some(Ending::HookFailed { reason })
        } else {
            cancelled().then_some(Ending::Signal { signal: libc::SIGINT })
        }
    }
}

/// How load has ended that was not told to.
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

/// CPU time of this process, and of the launchers that it has waited for.
fn own_cpu() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec. The call cannot fail with this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
