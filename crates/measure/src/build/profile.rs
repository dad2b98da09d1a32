//! The training run of a profile-guided build.

use std::fs::{self, File};
use std::io::{Error, Result as IoResult};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use widthwise_machine::compiler::Family;

use crate::build::command::{execute, how, shell};
use crate::build::failure_reason;
use crate::build::order::{BuildError, Order, Training};
use crate::build::toolchain::Stage;
use crate::program::RunCommand;
use crate::run::hooks;
use crate::run::launch_spec::LaunchSpec;
use widthwise_machine::process_group;

/// The training run between the two stages and, for clang, the merging of its profiles.
pub fn train(order: &Order, tree: &Path, log: &Path, profile: &Path) -> Result<(), BuildError> {
    let variables = order.variables(Stage::Plain);
    let cannot_start = |error| BuildError::Training(format!("the training run could not start: {error}"));
    // The standard output is the program's, and does not belong in a log.
    let (status, success) = match &order.training {
        Some(Training::Run(command)) => run_once(command, tree, log).map_err(BuildError::Training)?,
        Some(Training::Shell(text)) => {
            (execute(shell(text), tree, None, log, &variables).map_err(cannot_start)?, 0)
        }
        None => (execute(shell(""), tree, None, log, &variables).map_err(cannot_start)?, 0),
    };
    let printed = || String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    if status.code() != Some(success) {
        return Err(BuildError::Training(format!(
            "the training run failed ({}): {}",
            how(status),
            failure_reason::telling_line(&printed())
        )));
    }
    if fs::read_dir(profile).map_or(true, |mut entries| entries.next().is_none()) {
        return Err(BuildError::Training(
            "the training run wrote none; does the build pass CFLAGS and LDFLAGS on?".into(),
        ));
    }
    if order.compiler.family == Family::Clang {
        let Some(merger) = &order.compiler.profdata else {
            return Err(BuildError::Training(format!(
                "llvm-profdata is missing: apt-get install llvm-{}",
                order.compiler.major()
            )));
        };
        let merging = |error| BuildError::Training(format!("llvm-profdata could not start: {error}"));
        let mut command = Command::new(merger);
        command.args(["merge", "-o"]).arg(profile.join("merged.profdata"));
        for entry in fs::read_dir(profile).map_err(merging)?.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "profraw") {
                command.arg(entry.path());
            }
        }
        let status = execute(command, tree, Some(log), log, &variables).map_err(merging)?;
        if !status.success() {
            return Err(BuildError::Training(format!(
                "llvm-profdata failed: {}",
                failure_reason::telling_line(&printed())
            )));
        }
    }
    Ok(())
}

/// Refuses a folder of profiles whose path would not be one word, or not the same, in CFLAGS.
pub fn check_folder(folder: &Path) -> Result<(), BuildError> {
    let shown = folder.to_string_lossy();
    // What divides or changes a word in a shell or in make; clang replaces %p and others in the name, and U+FFFD stands for what is
    // not UTF-8.
    let is_special =
        |c: &char| c.is_whitespace() || c.is_control() || "'\"`\\$#;&|()<>*?[]{}%\u{fffd}".contains(*c);
    match shown.chars().find(is_special) {
        Some(what) => Err(BuildError::Training(format!(
            "{what:?} in the folder {shown} cannot be part of CFLAGS; `--archive` names another folder"
        ))),
        None => Ok(()),
    }
}

/// Runs the program once as a measured run does: with its standard input, environment, directory, setup, teardown and time limit.
/// Returns how it ended, and the exit status that counts as success.
fn run_once(command: &RunCommand, tree: &Path, log: &Path) -> Result<(ExitStatus, i32), String> {
    // Builds are parallel, and a setup command must not disturb another's run.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let start = command.ready(tree, &tree.with_file_name("training"))?;
    let ended = with_hooks(&start, log, command.timeout());
    if start.fresh {
        let _ = fs::remove_dir_all(&start.directory);
    }
    match ended? {
        Some(status) => Ok((status, start.exit_status)),
        None => Err("the training run lasted longer than its time limit (`--timeout`)".to_owned()),
    }
}

/// Setup, the run and teardown, in its directory.
fn with_hooks(start: &LaunchSpec, log: &Path, limit: Option<Duration>) -> Result<Option<ExitStatus>, String> {
    let failed = |error: Error| format!("the training run could not start: {error}");
    if start.fresh {
        hooks::lay_out(&start.directory, &start.inputs).map_err(failed)?;
    }
    let _left_behind = hooks::LeftBehind::of(start);
    if let Some(text) = &start.setup {
        hooks::shell("setup", text, start)?;
    }
    let ended = status(start, log, limit).map_err(failed);
    if let Some(text) = &start.teardown {
        hooks::shell("teardown", text, start)?;
    }
    ended
}

/// How a run ends; nothing if it was killed at its time limit.
fn status(start: &LaunchSpec, log: &Path, limit: Option<Duration>) -> IoResult<Option<ExitStatus>> {
    let (file, words) = start.executed();
    let mut command = Command::new(file);
    command
        .arg0(&words[0])
        .args(&words[1..])
        .current_dir(&start.directory)
        .env_clear()
        .envs(&start.environment)
        .stdin(File::open(&start.stdin)?)
        .stdout(Stdio::null())
        .stderr(File::options().append(true).create(true).open(log)?);
    let (mut child, group) = process_group::spawn(&mut command)?;
    let pid = libc::pid_t::try_from(child.id()).map_err(Error::other)?;
    let began = Instant::now();
    let mut is_late = false;
    while !process_group::has_ended(&child)? {
        if !is_late && limit.is_some_and(|limit| began.elapsed() > limit) {
            is_late = true;
            // SAFETY: no pointers; the process is not reaped yet, so that the number is its group's.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // Before its number is free.
    drop(group);
    let status = child.wait()?;
    Ok((!is_late).then_some(status))
}
