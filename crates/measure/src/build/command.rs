//! The commands of a build, and how they are run: in a small, fixed environment, with a log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use widthwise_experiment::bytes;
use widthwise_experiment::source::Language;

use crate::build::dependencies;
use widthwise_machine::process_group;

/// A shell that runs this text.
pub fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-e", "-c"]).arg(bytes::os(text));
    command
}

/// One call of the compiler: `$CC $CFLAGS -pthread -o OUTPUT SOURCE $LDFLAGS -lm`. The variables are split
/// into words as a shell splits them; everything else stays as it is. `-pthread` costs a program without
/// threads nothing. Beside the build folder it leaves a list of what it has read.
pub fn compile(
    language: Language,
    tree: &Path,
    output: &str,
    source: &Path,
    variables: &BTreeMap<&'static str, String>,
) -> Command {
    let (compiler, options) = language.variables();
    let words = |name: &str| variables[name].split_ascii_whitespace().map(bytes::os).collect::<Vec<_>>();
    let compiler = words(compiler);
    let mut command = Command::new(compiler.first().map_or(OsStr::new("cc"), |word| word));
    command
        .args(compiler.iter().skip(1))
        .args(words(options))
        .args(dependencies::options(tree))
        .args(["-pthread", "-o"])
        .arg(tree.join(bytes::path(output)))
        .arg(source);
    command.args(words("LDFLAGS")).arg("-lm");
    command
}

/// Runs a command in a folder with a small, fixed environment: a build must not depend on the shell it is
/// started from. Its standard error is appended to the log; its standard output goes to `stdout`, if given. It has a process group of
/// its own, since a signal to this process alone would leave its children at work.
pub fn execute(
    mut command: Command,
    folder: &Path,
    stdout: Option<&Path>,
    log: &Path,
    variables: &BTreeMap<&'static str, String>,
) -> std::io::Result<std::process::ExitStatus> {
    let added = |log: Option<&Path>| -> std::io::Result<Stdio> {
        Ok(match log {
            Some(log) => File::options().append(true).create(true).open(log)?.into(),
            None => Stdio::null(),
        })
    };
    command.current_dir(folder).env_clear();
    for name in ["PATH", "HOME", "USER", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("LANG", "C.UTF-8")
        .env("LC_ALL", "C.UTF-8")
        .envs(variables.iter().map(|(name, value)| (name, bytes::os(value))))
        .stdin(Stdio::null())
        .stdout(added(stdout)?)
        .stderr(added(Some(log))?);
    process_group::status(&mut command)
}

/// How a command ended: `exit 2`, `signal 9`.
pub fn how(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended".into(),
    }
}
