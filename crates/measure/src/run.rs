//! One run: launched, watched, accounted for, cleaned up.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;
use widthwise_experiment::model::Thp;
use widthwise_experiment::outcome::{Ending, Reading, Source};
use widthwise_experiment::Metric;
use widthwise_machine::package::Packages;
use widthwise_machine::{elf, kernel};

use crate::cgroup::{Cgroup, Usage};
use crate::counters::Counters;
use crate::launcher::{Launcher, LauncherError, Reply, Request, Step};
use crate::taskstats::{self, Listener, Process};

/// How often a run is looked after: its time limit, the size of its output, Ctrl-C. The watcher sleeps in between, on
/// another CPU where there is one.
const TICK: Duration = Duration::from_millis(100);

/// An output file up to this size is left for the program's own open(2) to truncate.
const SOON_TRUNCATED: u64 = 1 << 16;

/// A variant made ready to start: nothing is left to be filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The file to execute, absolute.
    pub file: PathBuf,
    /// The command line, its first word as the user wrote it.
    pub arguments: Vec<String>,
    /// The whole environment but the padding.
    pub environment: BTreeMap<String, String>,
    /// Working directory, absolute.
    pub directory: PathBuf,
    /// The directory is made anew before each run, with links to these files, and removed after it.
    pub fresh: Option<Vec<PathBuf>>,
    /// Standard input.
    pub stdin: PathBuf,
    /// `sh -e` text before the run.
    pub setup: Option<String>,
    /// `sh -e` text after the run.
    pub teardown: Option<String>,
    /// Transparent huge pages.
    pub thp: Thp,
    /// No address space layout randomisation.
    pub fixed_addresses: bool,
    /// The exit status that counts as success.
    pub exit_status: i32,
}

/// Limits that end a run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A run that lasts longer is killed.
    pub timeout: Duration,
    /// A run that writes more to its standard output is killed.
    pub output_bytes: u64,
}

/// How peaks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// From taskstats where they may be had, from `rusage` otherwise: costs the program nothing.
    Free,
    /// By stopping each process at its exit (ptrace): exact to the page, but the program is traced.
    ExitStop,
}

/// What a run yielded.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// Every metric that was read.
    pub sample: BTreeMap<&'static str, Reading>,
    /// The processes of the tree, where taskstats told them.
    pub processes: Vec<Process>,
    /// What a report should say of this run.
    pub remarks: Vec<String>,
    /// CPU time of the whole tree.
    pub busy: Duration,
}

/// A run could not be made, and no other will fare better.
#[derive(Debug, Error)]
pub enum RunError {
    /// The launcher.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// Our own scratch folder.
    #[error("{}: {error}", path.display())]
    Scratch {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Processes of the program could not be killed.
    #[error("processes that the program left behind could not be killed; see `ps -e`")]
    Escaped,
}

/// Makes runs, one at a time.
#[derive(Debug)]
pub struct Runner {
    // In the order of dropping: the launcher must be gone before its cgroup can be removed.
    launcher: Launcher,
    listener: Option<Listener>,
    /// Why there are no taskstats.
    pub without_taskstats: Option<String>,
    counters: Counters,
    scratch: PathBuf,
    accounting: Accounting,
    cgroup: Cgroup,
    /// The group's CPU time at the end of the last run: nothing but runs is in it.
    used: Option<Usage>,
}

impl Runner {
    /// A runner for `metrics` whose runs leave their output in `scratch`.
    pub fn new(scratch: &Path, metrics: &[Metric], accounting: Accounting) -> Result<Runner, RunError> {
        std::fs::create_dir_all(scratch)
            .map_err(|error| RunError::Scratch { path: scratch.to_owned(), error })?;
        let cgroup = Cgroup::make();
        let launcher = Launcher::start(cgroup.unified())?;
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
            counters,
            scratch: scratch.to_owned(),
            accounting,
            cgroup,
            used: None,
        })
    }

    /// Counters that were asked for and cannot be had here.
    pub fn missing_counters(&self) -> &[(Metric, String)] {
        &self.counters.missing
    }

    /// Where the last run's standard output lies.
    pub fn stdout(&self) -> PathBuf {
        self.scratch.join("stdout")
    }

    /// Where the last run's standard error lies.
    pub fn stderr(&self) -> PathBuf {
        self.scratch.join("stderr")
    }

    /// Makes one run. `cut_off` is asked at every tick whether the user has lost patience.
    pub fn run(
        &mut self,
        start: &Start,
        padding: usize,
        cpus: &[u32],
        limits: Limits,
        cut_off: &dyn Fn() -> bool,
    ) -> Result<Ran, RunError> {
        if let Some(inputs) = &start.fresh {
            self.lay_out(&start.directory, inputs)?;
        }
        if let Some(text) = &start.setup {
            if let Err(reason) = shell(text, start) {
                return Ok(Ran::failed(Ending::Around { reason: format!("setup {reason}") }));
            }
        }
        let mut ran = self.launch(start, padding, cpus, limits, cut_off)?;
        if let Some(text) = &start.teardown {
            if let Err(reason) = shell(text, start) {
                if ran.ending == Ending::Done {
                    ran.ending = Ending::Around { reason: format!("teardown {reason}") };
                }
            }
        }
        Ok(ran)
    }

    fn lay_out(&self, folder: &Path, inputs: &[PathBuf]) -> Result<(), RunError> {
        let scratch = |error| RunError::Scratch { path: folder.to_owned(), error };
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(scratch(error)),
            _ => std::fs::create_dir_all(folder).map_err(scratch)?,
        }
        for input in inputs {
            if let Some(name) = input.file_name() {
                std::os::unix::fs::symlink(input, folder.join(name)).map_err(scratch)?;
            }
        }
        Ok(())
    }

    fn launch(
        &mut self,
        start: &Start,
        padding: usize,
        cpus: &[u32],
        limits: Limits,
        cut_off: &dyn Fn() -> bool,
    ) -> Result<Ran, RunError> {
        let request = Request {
            file: start.file.clone(),
            directory: start.directory.clone(),
            stdin: start.stdin.clone(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            arguments: start.arguments.iter().map(|word| c_string(word)).collect::<Result<_, _>>()?,
            environment: environment(&start.environment, padding)?,
            cpus: cpus.to_vec(),
            fixed_addresses: start.fixed_addresses,
            thp: start.thp,
            exit_stop: self.accounting == Accounting::ExitStop,
        };
        let mut exits = Vec::new();
        if let Some(listener) = &mut self.listener {
            listener.drain(&mut exits);
            exits.clear();
        }
        if written(&request.stdout) > SOON_TRUNCATED {
            // Giving back a large file takes a while; and what the last run wrote must not be taken for this one's.
            std::fs::File::create(&request.stdout)
                .map_err(|error| RunError::Scratch { path: request.stdout.clone(), error })?;
        }
        let refused_before = self.cgroup.refused_forks();
        let used_before = self.used.or_else(|| self.cgroup.usage());
        self.counters.begin();
        let deadline = Instant::now() + limits.timeout;
        self.launcher.request(&request)?;
        let mut killed = None;
        let mut lost = false;
        while !self.launcher.wait(deadline.min(Instant::now() + TICK))? {
            if let Some(listener) = &mut self.listener {
                lost |= listener.drain(&mut exits);
            }
            if killed.is_some() {
                // The launcher gives up by itself on what cannot be killed.
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            killed = if Instant::now() >= deadline {
                Some(Ending::Timeout { limit_ns: limits.timeout.as_nanos() as u64 })
            } else if written(&request.stdout) > limits.output_bytes {
                Some(Ending::Flood { limit_bytes: limits.output_bytes })
            } else if cut_off() {
                Some(Ending::Signal { signal: libc::SIGINT })
            } else {
                None
            };
            if killed.is_some() {
                self.launcher.cut_off()?;
            }
        }
        let mut reply = self.launcher.reply(&request)?;
        self.used = self.cgroup.usage();
        let used = used_before.zip(self.used);
        let counted = self.counters.end();
        if let Some(listener) = &mut self.listener {
            lost |= listener.drain(&mut exits);
        }
        if reply.escaped {
            return Err(RunError::Escaped);
        }
        let tree = (self.listener.is_some() && !lost)
            .then(|| taskstats::tree(&exits, reply.pid, self.launcher.pid()))
            .filter(|tree| !tree.is_empty());
        let mut remarks = Vec::new();
        let forgotten = used.is_some_and(|(before, after)| add_forgotten(&mut reply, before, after));
        if forgotten {
            remarks.push(
                "has children for whom nobody waits: their CPU time is counted (by the cgroup), their faults and \
                 switches are not"
                    .into(),
            );
        }
        if lost {
            remarks.push(
                "so many processes ended at once that the kernel dropped some of its accounts: peaks are those \
                 of rusage in these runs"
                    .into(),
            );
        }
        if reply.left_over > 0 {
            remarks.push(match reply.left_over {
                1 => "left a process running behind it, which was killed".into(),
                n => format!("left {n} processes running behind it, which were killed"),
            });
        }
        if self.cgroup.refused_forks() > refused_before {
            remarks.push(format!("reached the limit of {} tasks at once", crate::cgroup::MOST_TASKS));
        }
        if let [_] = cpus {
            let most = tree.iter().flatten().map(|process| process.threads).max().unwrap_or(1);
            if most > 1 {
                remarks.push(format!(
                    "has a process of {most} threads, and was pinned to one CPU: `--cpus any` or a list lets them run \
                     side by side"
                ));
            }
        }
        let flooded = written(&request.stdout) > limits.output_bytes;
        let ending = match killed {
            Some(ending) if reply.failed.is_none() => ending,
            _ if flooded => Ending::Flood { limit_bytes: limits.output_bytes },
            _ => ending(&reply, start.exit_status, &request),
        };
        let mut sample = sample(&reply, tree.as_deref());
        if forgotten {
            for name in ["cpu", "user", "system"] {
                sample.entry(name).and_modify(|reading| reading.source = Source::Cgroup);
            }
        }
        sample.extend(counted.into_iter().map(|(metric, reading)| (metric.name, reading)));
        if reply.failed.is_some() {
            sample.clear();
        }
        Ok(Ran {
            ending,
            sample,
            processes: tree.unwrap_or_default(),
            remarks,
            busy: reply.user + reply.system,
        })
    }
}

impl Ran {
    fn failed(ending: Ending) -> Ran {
        Ran {
            ending,
            sample: BTreeMap::new(),
            processes: Vec::new(),
            remarks: Vec::new(),
            busy: Duration::ZERO,
        }
    }
}

/// The environment with its padding: a variable of `padding` bytes, so that the stack begins elsewhere in each run.
fn environment(variables: &BTreeMap<String, String>, padding: usize) -> Result<Vec<CString>, LauncherError> {
    let mut all: Vec<CString> = variables
        .iter()
        .map(|(name, value)| c_string(&format!("{name}={value}")))
        .collect::<Result<_, _>>()?;
    all.push(c_string(&format!("WIDTHWISE_PADDING={}", "x".repeat(padding)))?);
    Ok(all)
}

fn c_string(text: &str) -> Result<CString, LauncherError> {
    CString::new(text.as_bytes()).map_err(|_| LauncherError::Nul(text.to_owned()))
}

fn written(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

/// Runs `sh -e` text; on failure, how it ended and the last line it complained with.
fn shell(text: &str, start: &Start) -> Result<(), String> {
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", text])
        .current_dir(&start.directory)
        .env_clear()
        // What is preloaded is the program's, not the shell's.
        .envs(start.environment.iter().filter(|(name, _)| *name != "LD_PRELOAD"))
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| format!("`{text}` could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let how = match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it ended".into(),
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(format!("`{text}` failed ({how}): {last}"))
}

fn ending(reply: &Reply, exit_status: i32, request: &Request) -> Ending {
    if let Some((step, error)) = &reply.failed {
        let name = |path: &Path| String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
        let reason = match step {
            Step::Exec => no_start(&request.file, error),
            Step::Directory => format!("working directory {}: {error}", name(&request.directory)),
            Step::Stdin => format!("standard input {}: {error}", name(&request.stdin)),
            Step::Stdout => format!("{}: {error}", name(&request.stdout)),
            Step::Stderr => format!("{}: {error}", name(&request.stderr)),
            Step::Affinity => format!("CPUs {:?}: {error}; `--cpus any` needs none", request.cpus),
            Step::Thp => format!(
                "the system's setting of transparent huge pages could not be changed: {error}; it needs root"
            ),
            Step::Personality => format!("address randomisation could not be switched off: {error}"),
            Step::Clone => format!("no process could be made: {error}"),
            Step::Trace => format!("it could not be traced: {error}"),
            Step::Request => "its command line or environment has too many words".into(),
        };
        return Ending::NotStarted { reason };
    }
    if libc::WIFSIGNALED(reply.status) {
        return Ending::Signal { signal: libc::WTERMSIG(reply.status) };
    }
    match libc::WEXITSTATUS(reply.status) {
        status if status == exit_status => Ending::Done,
        status => Ending::Exit { status },
    }
}

/// Why a file could not be executed: what this kernel or system lacks for its ABI, and what mends it.
fn no_start(file: &Path, error: &std::io::Error) -> String {
    let abi = elf::read(file).ok().and_then(|facts| facts.abi());
    let (Some(abi), Some(number)) = (abi, error.raw_os_error()) else {
        return format!("{}: {error}", file.display());
    };
    let lack = abi.not_started(number, kernel::has_any(abi.kernel_options), &Packages::here());
    match &lack.mend {
        Some(mend) => format!("{lack}; {mend}"),
        None => lack.to_string(),
    }
}

/// `rusage` forgets children for whom nobody waits (SIGCHLD ignored); their control group does not. The group also has
/// the launcher's clone until its `execve`, a fraction of a millisecond, so that only a clear excess counts.
fn add_forgotten(reply: &mut Reply, before: Usage, after: Usage) -> bool {
    const CLEAR: Duration = Duration::from_millis(2);
    let user = after.user.saturating_sub(before.user);
    let system = after.system.saturating_sub(before.system);
    let waited = reply.user + reply.system;
    if user + system <= waited + CLEAR + waited / 50 {
        return false;
    }
    (reply.user, reply.system) = (user, system);
    true
}

/// Puts together what the launcher and taskstats saw.
fn sample(reply: &Reply, tree: Option<&[Process]>) -> BTreeMap<&'static str, Reading> {
    let time = |duration: Duration| duration.as_nanos() as f64;
    let mut sample = BTreeMap::new();
    let mut put = |name, value, source| {
        sample.insert(name, Reading::whole(value, source));
    };
    put("wall", time(reply.wall), Source::Clock);
    put("cpu", time(reply.user + reply.system), Source::Rusage);
    put("user", time(reply.user), Source::Rusage);
    put("system", time(reply.system), Source::Rusage);
    put("page_faults", (reply.minor_faults + reply.major_faults) as f64, Source::Rusage);
    put("minor_faults", reply.minor_faults as f64, Source::Rusage);
    put("major_faults", reply.major_faults as f64, Source::Rusage);
    put("voluntary_switches", reply.voluntary_switches as f64, Source::Rusage);
    put("involuntary_switches", reply.involuntary_switches as f64, Source::Rusage);
    if let Some(at_exit) = &reply.at_exit {
        put("peak_resident", at_exit.peak_resident as f64, Source::ExitStop);
        put("peak_virtual", at_exit.peak_virtual as f64, Source::ExitStop);
        put("peak_resident_sum", at_exit.peak_resident_sum as f64, Source::ExitStop);
        put("processes", at_exit.processes as f64, Source::ExitStop);
    } else if let Some(tree) = tree {
        let largest = |of: fn(&Process) -> u64| tree.iter().map(of).max().unwrap_or(0) as f64;
        put("peak_resident", largest(|process| process.peak_resident), Source::Taskstats);
        put("peak_virtual", largest(|process| process.peak_virtual), Source::Taskstats);
        put(
            "peak_resident_sum",
            tree.iter().map(|process| process.peak_resident).sum::<u64>() as f64,
            Source::Taskstats,
        );
        put("processes", tree.len() as f64, Source::Taskstats);
    } else {
        put("peak_resident", reply.peak_resident as f64, Source::Rusage);
    }
    sample
}
