//! How a run ended: by the launcher's reply, and in words.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use widthwise_experiment::bytes;
use widthwise_experiment::outcome::Ending;
use widthwise_experiment::units::{Quantity, Unit};
use widthwise_machine::package::Packages;
use widthwise_machine::valgrind::without_process;
use widthwise_machine::{elf, kernel_config, script};

use crate::run::launch_spec::LaunchSpec;
use crate::run::launcher::{Reply, Step};

/// How a run ended.
pub(crate) fn ending(reply: &Reply, start: &LaunchSpec, stdout: &Path, cpus: &[u32]) -> Ending {
    if let Some((step, error)) = &reply.failed {
        let name = |path: &Path| String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
        let reason = match step {
            Step::Exec => no_start(&start.file, &start.directory, error),
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

/// Why a file could not be executed: what it, this kernel or system needs, and the fix.
fn no_start(file: &Path, directory: &Path, error: &std::io::Error) -> String {
    if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EACCES)) {
        if let Some(reason) = lacking(file, directory) {
            return reason;
        }
    }
    let abi = elf::read(file).ok().and_then(|facts| facts.abi());
    let (Some(abi), Some(number)) = (abi, error.raw_os_error()) else {
        return format!("{}: {error}", file.display());
    };
    let unavailable = abi.not_started(number, kernel_config::has_any(abi.kernel_options), &Packages::here());
    match &unavailable.fix {
        Some(fix) => format!("{unavailable}; {fix}"),
        None => unavailable.to_string(),
    }
}

/// What the kernel starts in a file's place, and reports as that file where it is missing.
struct Starter {
    file: PathBuf,
    /// In words.
    what: String,
    /// What helps if it is missing.
    fix: Option<String>,
    is_of_script: bool,
}

/// A script's interpreter, or a program's loader (PT_INTERP). A relative name begins at the working directory.
fn starter(file: &Path, directory: &Path, whose: &str) -> Option<Starter> {
    if let Some(name) = script::interpreter(file) {
        let ends_with_return = name.as_os_str().as_bytes().ends_with(b"\r");
        let fix = "its lines end with carriage returns, which the kernel takes for a part of the name (sed -i 's/\\r$//')";
        return Some(Starter {
            what: format!("the interpreter {} in the first line of {}", escaped(&name), escaped(file)),
            file: directory.join(name),
            fix: ends_with_return.then(|| fix.to_owned()),
            is_of_script: true,
        });
    }
    let facts = elf::read(file).ok()?;
    let abi = facts.abi();
    let name = facts.interpreter?;
    let usual = abi.filter(|abi| name == Path::new(abi.loader));
    Some(Starter {
        what: format!("{whose} loader {}", escaped(&name)),
        file: directory.join(name),
        fix: usual.and_then(|abi| Packages::here().install(&[abi.libc])),
        is_of_script: false,
    })
}

/// The first of the interpreters and loaders behind a file that is missing or may not be executed.
fn lacking(file: &Path, directory: &Path) -> Option<String> {
    /// So many scripts may each be the interpreter of the one before (fs/exec.c, exec_binprm).
    const MOST_NESTED: u32 = 5;
    let mut next = starter(file, directory, "its")?;
    for _ in 0..=MOST_NESTED {
        let Starter { file, what, fix, is_of_script } = next;
        match std::fs::metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let fix = fix.map(|fix| format!("; {fix}")).unwrap_or_default();
                return Some(format!("{what} is not here{fix}"));
            }
            Err(error) => return Some(format!("{what}: {error}")),
            Ok(data) if !data.is_file() || data.permissions().mode() & 0o111 == 0 => {
                return Some(format!("{what} may not be executed"));
            }
            Ok(_) if is_of_script => next = starter(&file, directory, &format!("{}'s", escaped(&file)))?,
            Ok(_) => return None,
        }
    }
    None
}

/// A path in which control characters are visible.
fn escaped(path: &Path) -> String {
    let shown = bytes::shown_path(path);
    if shown.contains(char::is_control) {
        shown.escape_debug().to_string()
    } else {
        shown
    }
}

/// How a run failed, with the last line of the program's standard error.
pub fn failure(ending: &Ending, stderr: &Path) -> String {
    let how = describe(ending);
    if matches!(ending, Ending::SpawnFailed { .. } | Ending::HookFailed { .. }) {
        return how;
    }
    match last_line(stderr) {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

/// The last line with text among the last bytes of a file, however large it is, and no more of it than fits a few lines of a terminal. A
/// library that the loader did not preload is no reason: valgrind's are 64-bit files, and the loader of each other program says so.
pub(crate) fn last_line(file: &Path) -> Option<String> {
    const MOST: u64 = 4096;
    let read = || {
        let mut file = std::fs::File::open(file)?;
        let from = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text).map(|_| text)
    };
    last_line_of(&read().unwrap_or_default())
}

fn last_line_of(text: &[u8]) -> Option<String> {
    const LONGEST: usize = 1000;
    let text = String::from_utf8_lossy(text);
    let is_reason = |line: &&str| {
        !(line.is_empty() || line.starts_with("ERROR: ld.so: object ") && line.ends_with(": ignored."))
    };
    let line = text.lines().map(|line| without_process(line.trim())).rfind(is_reason)?;
    let (mut length, mut unreadable) = (0, 0);
    for letter in line.chars() {
        length += 1;
        unreadable += usize::from(letter.is_control() || letter == char::REPLACEMENT_CHARACTER);
    }
    // A colour has a control character, too.
    if 4 * unreadable > length {
        return Some("its standard error ends with bytes that are no text".into());
    }
    Some(if length > LONGEST { line.chars().take(LONGEST).chain(['…']).collect() } else { line.to_owned() })
}

/// How a run ended, in words.
pub fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Done => "it ended well".into(),
        // Only where another one is expected is 0 a failure.
        Ending::Exit { status: 0 } => "it ended with exit status 0, not with that of --exit-status".into(),
        Ending::Exit { status } => format!("it ended with exit status {status}"),
        Ending::Signal { signal } => format!("killed by signal {signal}{}", signal_name(*signal)),
        Ending::Timeout { limit_ns } => {
            format!("still running after {} s, and was killed (--timeout)", *limit_ns as f64 / 1e9)
        }
        Ending::OutputLimit { limit_bytes } => {
            let limit = Quantity { value: *limit_bytes as f64, unit: Unit::Bytes };
            format!("wrote more than {limit} to its standard output or standard error, and was killed")
        }
        Ending::SpawnFailed { reason } | Ending::HookFailed { reason } => reason.clone(),
    }
}

/// How a shell command of the user failed, with its last message; without one, how to learn more.
pub(crate) fn failed_hook(hook: &str, text: &str, status: ExitStatus, stderr: &[u8]) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}{}", signal_name(signal)),
        (None, None) => "it ended".into(),
    };
    let rest = match last_line_of(stderr) {
        Some(line) => format!(": {line}"),
        None if status.code() == Some(1) && names_grep(text) => {
            " without a message; grep ends so where no line matches, which `|| [ $? = 1 ]` after it allows"
                .into()
        }
        None => " without a message; begin it with `set -x;` to be told its last command".into(),
    };
    format!("{hook} `{text}` failed ({how}){rest}")
}

fn names_grep(text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric())
        .any(|word| ["grep", "egrep", "fgrep", "zgrep"].contains(&word))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGKILL => " (SIGKILL; out of memory?)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGSYS => " (SIGSYS)",
        libc::SIGINT => " (SIGINT)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_hook_is_named_with_its_message_or_what_to_do() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let told = failed_hook("setup", "make it", exit(2), b"one\nno rule\n \n");
        assert_eq!(told, "setup `make it` failed (exit 2): no rule");
        for (text, status, rest) in [
            ("false", exit(1), "(exit 1) without a message; begin it with `set -x;`"),
            ("sort | grep -v x", exit(1), "(exit 1) without a message; grep ends so where no line matches"),
            ("grep x /dev/full", exit(2), "(exit 2) without a message; begin it"),
            ("./ingrepient", exit(1), "(exit 1) without a message; begin it"),
            ("kill $$", ExitStatus::from_raw(libc::SIGTERM), "(signal 15 (SIGTERM)) without a message"),
        ] {
            let told = failed_hook("the filter", text, status, b"");
            assert!(told.starts_with(&format!("the filter `{text}` failed {rest}")), "{told}");
        }
    }

    #[test]
    fn what_a_file_lacks_to_be_started_is_its_own_loader_or_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let make = |name: &str, text: &[u8]| {
            std::fs::write(here.join(name), text).unwrap();
            std::fs::set_permissions(here.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        // Another loader of the same length in a program that is here.
        let own = "/lib64/ld-linux-x86-64.so.2";
        let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let place = program.windows(own.len()).position(|part| part == own.as_bytes()).unwrap();
        program[place..place + own.len()].copy_from_slice(b"/nowhere/ld-linux-x8664.so\0");
        make("program", &program);
        make("returns", b"#!/bin/sh\r\nexit 0\r\n");
        make("first", b"#! ./second -x\n");
        make("second", b"#!program\n");
        make("text", b"");
        std::fs::set_permissions(here.join("text"), std::fs::Permissions::from_mode(0o644)).unwrap();
        make("denied", b"#!text\n");
        let of = |name: &str| {
            lacking(&here.join(name), here).map(|text| text.replace(&here.display().to_string(), "."))
        };
        let loader = "loader /nowhere/ld-linux-x8664.so is not here";
        assert_eq!(of("program"), Some(format!("its {loader}")));
        assert_eq!(of("first"), Some(format!("./program's {loader}")));
        let returns = of("returns").unwrap();
        assert!(returns.starts_with(
            "the interpreter /bin/sh\\r in the first line of ./returns is not here; its lines end with"
        ));
        assert_eq!(
            of("denied").as_deref(),
            Some("the interpreter text in the first line of ./denied may not be executed")
        );
        assert_eq!(of("text"), None);
    }

    #[test]
    fn the_last_line_of_a_file_is_read_without_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stderr");
        let line = |text: &str| {
            std::fs::write(&path, text).unwrap();
            last_line(&path)
        };
        assert_eq!(line("one\n two \n\n").as_deref(), Some("two"));
        assert_eq!(line(" \n"), None);
        let ignored =
            "ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (wrong ELF class): ignored.\n";
        assert_eq!(line(&format!("one\n{ignored}")).as_deref(), Some("one"));
        assert_eq!(line(ignored), None);
        assert_eq!(line("==12== Valgrind: oh\n==12== \n==12==\n").as_deref(), Some("Valgrind: oh"));
        assert_eq!(line("==x== y\n").as_deref(), Some("==x== y"));
        let no_text = Some("its standard error ends with bytes that are no text");
        assert_eq!(line(&"\0\u{1}".repeat(9000)).as_deref(), no_text);
        assert_eq!(line("\u{1b}[31mred\u{1b}[0m\n").as_deref(), Some("\u{1b}[31mred\u{1b}[0m"));
        let long = line(&"x".repeat(9000)).unwrap();
        assert!(long.ends_with("xx…") && long.chars().count() == 1001, "{long}");
        // Larger than any memory, and empty but for its end.
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"\nthe end\n", 1 << 40).unwrap();
        assert_eq!(last_line(&path).as_deref(), Some("the end"));
    }
}
