//! The training run of a profile-guided build.

use std::fs;
use std::path::Path;
use std::process::Command;

use widthwise_machine::compiler::Family;

use crate::build::command::{execute, how, shell, started};
use crate::build::failure_reason;
use crate::build::order::{BuildError, Order, Training};
use crate::build::toolchain::Stage;

/// The training run between the two stages and, for clang, the merging of its profiles.
pub fn train(order: &Order, tree: &Path, log: &Path, profile: &Path) -> Result<(), BuildError> {
    let variables = order.variables(Stage::Plain);
    let cannot_start = |error| BuildError::Training(format!("the training run could not start: {error}"));
    let command = match &order.training {
        Some(Training::Words(words)) => started(words, tree).map_err(BuildError::Training)?,
        Some(Training::Shell(text)) => shell(text),
        None => shell(""),
    };
    // The standard output is the program's, and does not belong in a log.
    let status = execute(command, tree, None, log, &variables).map_err(cannot_start)?;
    let printed = || String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    if !status.success() {
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
