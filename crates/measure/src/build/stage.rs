//! One stage of a build: the user's command, or one call of the compiler, in a fresh copy of the source.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use widthwise_experiment::model::Build;
use widthwise_experiment::{bytes, placeholder};
use widthwise_machine::abi::AbiRow;

use crate::build::command::{compile, execute, how, shell};
use crate::build::copy::copy;
use crate::build::order::{BuildError, Order};
use crate::build::profile::check_folder;
use crate::build::toolchain::Stage;
use crate::build::{failure_reason, layout};

/// One stage: a fresh copy of the source, in which the user's command runs.
pub fn make(order: &Order, tree: &Path, log: &Path, stage: Stage) -> Result<(), BuildError> {
    let failed =
        |error: std::io::Error| BuildError::Folder { path: tree.to_owned(), error: error.to_string() };
    if let Stage::Instrumented(profile) = stage {
        check_folder(profile)?;
    }
    let _ = fs::remove_dir_all(tree);
    fs::create_dir_all(tree).map_err(failed)?;
    if order.source.path.is_dir() {
        copy(&order.source.path, tree).map_err(failed)?;
    }
    let variables = order.variables(stage);
    let command = match &order.source.build {
        Build::Shell(text) => shell(&placeholder::fill_shell(text, &placeholders(order, tree, &variables))),
        Build::Compile { language, output } => {
            compile(*language, tree, output, &order.source.path, &variables)
        }
    };
    let status = execute(command, tree, Some(log), log, &variables).map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let script = order.layout.map(|script| script.display().to_string());
    let (line, fix) = if script.is_some_and(|script| printed.contains(&format!("{script}:"))) {
        (failure_reason::telling_line(&printed), layout::OTHER_LINKER)
    } else if starts_helpers(order.abi) {
        (failure_reason::telling_line(&printed), "")
    } else {
        let is_foreign = |name: &str| widthwise_x32run::is_x32(&tree.join(name));
        match failure_reason::unstarted(&printed, status.code(), is_foreign) {
            Some(line) => (line, failure_reason::REGISTER),
            None => (failure_reason::telling_line(&printed), ""),
        }
    };
    Err(BuildError::Failed { how: how(status), line, fix: fix.to_owned(), log: log.to_owned() })
}

/// Whether this kernel starts what a build for that ABI makes, such as configure's tests and generators.
fn starts_helpers(abi: &AbiRow) -> bool {
    abi.name != "x32" || widthwise_x32run::kernel_has_x32() || widthwise_x32run::registered()
}

/// The values of a build command's placeholders.
fn placeholders<'a>(
    order: &Order,
    tree: &Path,
    variables: &BTreeMap<&'static str, String>,
) -> BTreeMap<&'a str, String> {
    let mut values = BTreeMap::from([
        ("build", bytes::text(tree)),
        ("source", bytes::text(&order.source.path)),
        ("work", bytes::text(tree)),
        ("jobs", order.jobs.to_string()),
        ("variant", order.variant.name.clone()),
        ("abi", order.abi.name.to_owned()),
    ]);
    for (word, variable) in [
        ("cc", "CC"),
        ("cxx", "CXX"),
        ("cflags", "CFLAGS"),
        ("cxxflags", "CXXFLAGS"),
        ("ldflags", "LDFLAGS"),
        ("ar", "AR"),
    ] {
        values.insert(word, variables[variable].clone());
    }
    values
}
