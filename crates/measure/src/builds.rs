//! Builds: each variant has its own folder, built by the user's command, cached by content, with its log.
//!
//! ```text
//! CACHE/builds/x32_gcc-12-1f2e3d…/   one build; the name ends in the digest of all its inputs
//!     tree/       the build folder: a copy of the source's folder, in which the command runs
//!     profile/    profiles of a profile-guided build
//!     log         what the command printed
//!     done        written last: a folder without it is incomplete and is built anew
//! ```

mod reason;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use widthwise_experiment::model::{Build, Variant};
use widthwise_experiment::source::Language;
use widthwise_experiment::{bytes, placeholder};
use widthwise_machine::abi::AbiRow;
use widthwise_machine::compiler::{Compiler, Family};

use crate::program;
use crate::source::Source;
use crate::toolchain::{self, Stage};

/// Changes when the way of building changes, so that old builds are not reused.
const FORMAT: &str = "1";

/// What is to be built.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The variant.
    pub variant: &'a Variant,
    /// Its ABI's row.
    pub abi: &'static AbiRow,
    /// Its compiler.
    pub compiler: &'a Compiler,
    /// The source.
    pub source: &'a Source,
    /// The training run of a profile-guided build, in the build folder.
    pub training: Option<Training>,
    /// A short safe name for the folder: equal for variants that share a build.
    pub slug: String,
    /// The number of jobs that `{jobs}` stands for.
    pub jobs: usize,
}

/// How a profile-guided build is trained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Training {
    /// The user's own command: text for `sh -e`.
    Shell(String),
    /// The words of the run command, started without a shell.
    Words(Vec<OsString>),
}

/// A finished build.
#[derive(Debug, Clone)]
pub struct Built {
    /// The build folder: `{build}`.
    pub tree: PathBuf,
    /// What the command printed.
    pub log: PathBuf,
    /// How long the build took.
    pub seconds: f64,
    /// The build was cached.
    pub cached: bool,
    /// CFLAGS, or CXXFLAGS where they differ: for reports.
    pub flags: String,
}

/// A build that failed.
#[derive(Debug, Clone, Error)]
pub enum BuildError {
    /// The command failed.
    #[error("build failed ({how}): {line}{fix}")]
    Failed {
        /// `exit 2`, `signal 9`.
        how: String,
        /// The most informative line of the log.
        line: String,
        /// What would fix it, where that is known, as the end of a sentence.
        fix: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The training of a profile-guided build failed.
    #[error("its profile-guided build has no profile: {0}")]
    Training(String),
    /// A file or folder of ours could not be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Done {
    seconds: f64,
}

/// Builds a variant, or finds its cached build. Several variants and several processes may do so at the same
/// time.
pub fn build(order: &Order, cache: &Path) -> Result<Built, BuildError> {
    let folder = cache.join("builds").join(folder(order));
    let failed = |path: &Path, error: std::io::Error| BuildError::Folder {
        path: path.to_owned(),
        error: error.to_string(),
    };
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let _lock = lock(&folder.join("lock")).map_err(|error| failed(&folder, error))?;
    let (tree, log, done) = (folder.join("tree"), folder.join("log"), folder.join("done"));
    let plain = toolchain::variables(order.variant, order.abi, order.compiler, Stage::Plain);
    let flags = match (&plain["CFLAGS"], &plain["CXXFLAGS"]) {
        (c, cxx) if c == cxx => c.clone(),
        (c, cxx) => format!("{c} (C++: {cxx})"),
    };
    if let Some(Done { seconds }) = fs::read(&done).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
        return Ok(Built { tree, log, seconds, cached: true, flags });
    }
    let began = Instant::now();
    fs::write(&log, "").map_err(|error| failed(&log, error))?;
    if order.variant.flags.profile_guided {
        let profile = folder.join("profile");
        let _ = fs::remove_dir_all(&profile);
        fs::create_dir_all(&profile).map_err(|error| failed(&profile, error))?;
        make(order, &tree, &log, Stage::Instrumented(&profile))?;
        train(order, &tree, &log, &profile)?;
        make(order, &tree, &log, Stage::Guided(&profile))?;
    } else {
        make(order, &tree, &log, Stage::Plain)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let text = serde_json::to_vec(&Done { seconds }).unwrap_or_default();
    // Renamed into place, so that the file is complete or absent.
    let partial = folder.join("done.partial");
    fs::write(&partial, text)
        .and_then(|()| fs::rename(&partial, &done))
        .map_err(|error| failed(&done, error))?;
    Ok(Built { tree, log, seconds, cached: false, flags })
}

/// The name of a build's folder. Variants whose builds have equal inputs share it.
pub fn folder(order: &Order) -> String {
    format!("{}-{}", order.slug, &key(order)[..12])
}

/// A digest of all inputs of a build.
fn key(order: &Order) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(FORMAT.as_bytes());
    part(order.source.digest.as_bytes());
    part(order.source.path.as_os_str().as_bytes());
    let command = order.source.build.text();
    part(command.as_bytes());
    // A command that receives the variant's name may build something else for each.
    let is_told = placeholder::used(&command).any(|word| word == "variant");
    part(if is_told { order.variant.name.as_bytes() } else { b"" });
    part(order.compiler.identity().as_bytes());
    match &order.training {
        None => part(b""),
        Some(Training::Shell(text)) => part(text.as_bytes()),
        Some(Training::Words(words)) => words.iter().for_each(|word| part(word.as_bytes())),
    }
    part(if order.variant.flags.profile_guided { b"guided" } else { b"" });
    for (name, value) in toolchain::variables(order.variant, order.abi, order.compiler, Stage::Plain) {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Held until dropped.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    // SAFETY: a descriptor of our own.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(file)
}

/// One stage: a fresh copy of the source, in which the user's command runs.
fn make(order: &Order, tree: &Path, log: &Path, stage: Stage) -> Result<(), BuildError> {
    let failed =
        |error: std::io::Error| BuildError::Folder { path: tree.to_owned(), error: error.to_string() };
    let _ = fs::remove_dir_all(tree);
    fs::create_dir_all(tree).map_err(failed)?;
    if order.source.path.is_dir() {
        copy(&order.source.path, tree).map_err(failed)?;
    }
    let variables = toolchain::variables(order.variant, order.abi, order.compiler, stage);
    let command = match &order.source.build {
        Build::Shell(text) => shell(&placeholder::fill_shell(text, &placeholders(order, tree, &variables))),
        Build::Compile { language, output } => {
            compile(*language, &tree.join(bytes::path(output)), &order.source.path, &variables)
        }
    };
    let status = execute(command, tree, Some(log), log, &variables).map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let (line, fix) = if starts_helpers(order.abi) {
        (reason::telling_line(&printed), "")
    } else {
        let is_foreign = |name: &str| widthwise_x32run::is_x32(&tree.join(name));
        match reason::unstarted(&printed, status.code(), is_foreign) {
            Some(line) => (line, reason::REGISTER),
            None => (reason::telling_line(&printed), ""),
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

/// A shell that runs this text.
fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-e", "-c"]).arg(bytes::os(text));
    command
}

/// One call of the compiler: `$CC $CFLAGS -pthread -o OUTPUT SOURCE $LDFLAGS -lm`. The variables are split
/// into words as a shell splits them; everything else stays as it is. `-pthread` costs a program without
/// threads nothing.
fn compile(
    language: Language,
    output: &Path,
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
        .args(["-pthread", "-o"])
        .arg(output)
        .arg(source);
    command.args(words("LDFLAGS")).arg("-lm");
    command
}

/// Runs a command in a folder with a small, fixed environment: a build must not depend on the shell it is
/// started from. Its standard error is appended to the log; its standard output goes to `stdout`, if given.
fn execute(
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
        .stderr(added(Some(log))?)
        .status()
}

/// The training run between the two stages and, for clang, the merging of its profiles.
fn train(order: &Order, tree: &Path, log: &Path, profile: &Path) -> Result<(), BuildError> {
    let variables = toolchain::variables(order.variant, order.abi, order.compiler, Stage::Plain);
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
            reason::telling_line(&printed())
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
                reason::telling_line(&printed())
            )));
        }
    }
    Ok(())
}

/// The run command, from the build folder; x32run starts x32 programs where the kernel cannot.
fn started(words: &[OsString], tree: &Path) -> Result<Command, String> {
    let name = words.first().ok_or("the run command is empty")?;
    let file = program::find(name, tree)?;
    let runtime = widthwise_x32run::runtime_for(&file).map_err(|error| error.to_string())?;
    let (file, words) = match runtime {
        Some(runtime) => {
            let words = widthwise_x32run::command_line(&file, words, None);
            (runtime, words)
        }
        None => (file, words.to_vec()),
    };
    let mut command = Command::new(file);
    command.arg0(&words[0]).args(&words[1..]);
    Ok(command)
}

/// Copies with cp(1), which keeps what a build system looks at (times, modes, links) and shares blocks where
/// the file system can.
///
/// A campaign inside the source folder is left out. `to` may lie there too, and cp refuses to copy a folder
/// into itself.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name != ".widthwise") && !to.starts_with(&path) {
            entries.push(path);
        }
    }
    if entries.is_empty() {
        return Ok(());
    }
    let output = Command::new("cp")
        .args(["-a", "--reflink=auto", "-t"])
        .arg(to)
        .arg("--")
        .args(entries)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(std::io::Error::other(complaint.lines().next().unwrap_or("cp failed").to_owned()))
}

fn how(status: std::process::ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "ended".into(),
    }
}
