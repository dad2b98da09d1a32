//! The outcome of a run: its ending and its sample, from what the launcher and taskstats reported.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use widthwise_experiment::outcome::{Ending, Reading, Source};
use widthwise_machine::package::Packages;
use widthwise_machine::{elf, kernel};

use super::LaunchSpec;
use crate::cgroup::Usage;
use crate::launcher::{Reply, Step};
use crate::taskstats::Process;

/// How a run ended.
pub(crate) fn ending(reply: &Reply, start: &LaunchSpec, stdout: &Path, cpus: &[u32]) -> Ending {
    if let Some((step, error)) = &reply.failed {
        let name = |path: &Path| String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
        let reason = match step {
            Step::Exec => no_start(&start.file, error),
            Step::Directory => format!("working directory {}: {error}", name(&start.directory)),
            Step::Stdin => format!("standard input {}: {error}", name(&start.stdin)),
            Step::Stdout | Step::Stderr => {
                format!("{}: {error}", stdout.parent().map_or(String::new(), name))
            }
            Step::Affinity => format!("CPUs {cpus:?}: {error}; `--cpus any` needs none"),
            Step::Thp => format!(
                "the system's setting of transparent huge pages could not be changed: {error}; it needs root"
            ),
            Step::Personality => format!("address randomisation could not be switched off: {error}"),
            Step::Clone => format!("no process could be made: {error}"),
            Step::Trace => format!("it could not be traced: {error}"),
            Step::Skipped => "it was skipped".into(),
            Step::Request => "its command line or environment has too many words".into(),
        };
        return Ending::SpawnFailed { reason };
    }
    if libc::WIFSIGNALED(reply.status) {
        return Ending::Signal { signal: libc::WTERMSIG(reply.status) };
    }
    match libc::WEXITSTATUS(reply.status) {
        status if status == start.exit_status => Ending::Done,
        status => Ending::Exit { status },
    }
}

/// Why a file could not be executed: what this kernel or system needs for its ABI, and the fix.
fn no_start(file: &Path, error: &std::io::Error) -> String {
    let abi = elf::read(file).ok().and_then(|facts| facts.abi());
    let (Some(abi), Some(number)) = (abi, error.raw_os_error()) else {
        return format!("{}: {error}", file.display());
    };
    let unavailable = abi.not_started(number, kernel::has_any(abi.kernel_options), &Packages::here());
    match &unavailable.fix {
        Some(fix) => format!("{unavailable}; {fix}"),
        None => unavailable.to_string(),
    }
}

/// `rusage` leaves out children that nobody waits for (SIGCHLD ignored); their control group counts them. The
/// group also counts the launcher's clone until its `execve`, a fraction of a millisecond, so that only a
/// clear excess counts.
pub(crate) fn add_forgotten(reply: &mut Reply, before: Usage, after: Usage) -> bool {
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

/// Combines what the launcher and taskstats reported.
///
/// `largest` is `ru_maxrss` where it is a process's own. It includes the images before an `execve`, which
/// taskstats leave out.
pub(super) fn sample(
    reply: &Reply,
    tree: Option<&[Process]>,
    largest: u64,
) -> BTreeMap<&'static str, Reading> {
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
        put("max_rss", at_exit.max_rss as f64, Source::ExitStop);
        put("peak_virtual", at_exit.peak_virtual as f64, Source::ExitStop);
        put("max_rss_sum", at_exit.max_rss_sum as f64, Source::ExitStop);
        put("processes", at_exit.processes as f64, Source::ExitStop);
    } else if let Some(tree) = tree {
        let highest = |of: fn(&Process) -> u64| tree.iter().map(of).max().unwrap_or(0) as f64;
        let at_exit = highest(|process| process.max_rss);
        // An image larger than any that ended was replaced by execve.
        let before_exec = (largest as f64 - at_exit).max(0.0);
        let source = if before_exec > 0.0 { Source::Rusage } else { Source::Taskstats };
        put("max_rss", at_exit + before_exec, source);
        put("peak_virtual", highest(|process| process.peak_virtual), Source::Taskstats);
        let sum = tree.iter().map(|process| process.max_rss).sum::<u64>() as f64;
        put("max_rss_sum", sum + before_exec, Source::Taskstats);
        put("processes", tree.len() as f64, Source::Taskstats);
    } else {
        put("max_rss", reply.max_rss as f64, Source::Rusage);
    }
    sample
}
