//! Makes one run: all members started at one moment, each on its CPU, watched and accounted for.

use std::path::Path;

use widthwise_experiment::outcome::Ending;
use widthwise_experiment::scale::{GroupRun, Mode};

use crate::output::earlier::Earlier;
use crate::run::hooks::{lay_out, shell, LeftBehind};
use crate::run::limits::Limits;
use crate::run::result::RunError;
use crate::scale::event_log::EventLog;
use crate::scale::group_spec::{filled, GroupSpec};
use crate::scale::launcher_pool::{LauncherPool, Task};
use crate::scale::reported_events::logs;
use crate::scale::result::{accounted, not_begun};
use crate::scale::watcher::Watcher;
use widthwise_proc::affinity::{set_affinity, SetAffinity};
use widthwise_proc::sampler::marks::Marks;
use widthwise_proc::sampler::MARKS;

/// Makes one run.
///
/// # Errors
/// A launcher is gone, the scratch folder cannot be written, or processes cannot be killed. How the program fares is no
/// error but the run's ending.
pub fn run_group(
    spec: &GroupSpec,
    pool: &mut LauncherPool,
    scratch: &Path,
    limits: Limits,
    cancelled: &dyn Fn() -> bool,
) -> Result<GroupRun, RunError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| RunError::Scratch { path, error }
    };
    std::fs::create_dir_all(scratch).map_err(at(scratch))?;
    let cell = spec.cell;
    let count = if cell.mode == Mode::Jobs { cell.processes } else { 1 };
    let mut starts = Vec::new();
    let mut pipes = Vec::new();
    for index in 0..count {
        let mut start = filled(spec, index);
        if matches!(spec.event_log, Some(EventLog::Marks)) {
            let path = scratch.join(format!("marks-{index}"));
            pipes.push(Marks::open(&path).map_err(at(&path))?);
            start.environment.insert(MARKS.into(), path.into());
        }
        starts.push(start);
    }
    let mut tasks = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let cpus = match (cell.mode, spec.cpus) {
            (_, []) => Vec::new(),
            (Mode::Jobs, cpus) => vec![cpus[index % cpus.len()]],
            (_, cpus) => cpus.to_vec(),
        };
        let output = scratch.join(format!("stdout-{index}"));
        tasks.push(Task { start, cpus, output, padding: spec.padding, load: false });
    }
    let mut load: Vec<u32> = spec.allowed.to_vec();
    load.retain(|cpu| !spec.cpus.contains(cpu));
    for (index, &cpu) in load.iter().enumerate() {
        if let Some(start) = spec.load {
            let output = scratch.join(format!("load-{index}"));
            tasks.push(Task { start, cpus: vec![cpu], output, padding: 0, load: true });
        }
    }
    // What another run wrote must not be taken for this one's, and freeing it takes CPU time.
    for path in tasks.iter().flat_map(|task| [task.output.clone(), task.errors()]) {
        std::fs::File::create(&path).map_err(at(&path))?;
    }
    if spec.start.fresh {
        lay_out(&spec.start.directory, &spec.start.inputs).map_err(at(&spec.start.directory))?;
    }
    let compared = Earlier::checked_files(spec.check, &spec.start.directory);
    let earlier = Earlier::of(compared.into_iter().chain(logs(spec, count)));
    let _left = LeftBehind::of(spec.start);
    if let Some(reason) = spec.start.setup.as_ref().and_then(|text| shell("setup", text, &starts[0]).err()) {
        return Ok(not_begun(spec, Ending::HookFailed { reason }));
    }
    // Our own work is done elsewhere, where there is an elsewhere without the load.
    let elsewhere = if load.is_empty() || spec.load.is_some() { spec.allowed } else { &load[..] };
    if !elsewhere.is_empty() {
        let _ = set_affinity(&SetAffinity { pid: 0, cpus: elsewhere.to_vec(), first: true });
    }
    let mut watcher = Watcher::new(spec, pipes);
    let result = pool.run_all(&tasks, limits, cancelled, &mut watcher)?;
    let mut run = accounted(spec, &tasks, result, watcher, &earlier);
    if let Some(reason) =
        spec.start.teardown.as_ref().and_then(|text| shell("teardown", text, &starts[0]).err())
    {
        if run.is_sound() {
            run.ending = Ending::HookFailed { reason: reason.clone() };
            run.failure = Some(reason);
        }
    }
    Ok(run)
}
