//! A temporary folder in which the command line is tested.

// Each program of tests uses a part of this.
#![allow(dead_code)]

pub mod alone;
mod built;
mod executable;
pub mod fixture;
pub mod many;
pub mod outcomes;
pub mod recording;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The unprivileged user: `nobody` of every Debian.
pub const NOBODY: u32 = 65534;

/// A folder, and the built binary.
pub struct Laboratory {
    folder: tempfile::TempDir,
    _machine: alone::Machine,
}

/// The arguments of a command line: as a list, or as one text.
pub trait Words {
    fn words(self) -> Vec<String>;
}

impl Words for &str {
    fn words(self) -> Vec<String> {
        shell_words::split(self).unwrap()
    }
}

impl Words for &String {
    fn words(self) -> Vec<String> {
        self.as_str().words()
    }
}

impl Words for &[&str] {
    fn words(self) -> Vec<String> {
        self.iter().map(|word| word.to_string()).collect()
    }
}

impl<const N: usize> Words for &[&str; N] {
    fn words(self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl Words for &Vec<&str> {
    fn words(self) -> Vec<String> {
        self.as_slice().words()
    }
}

/// The output of a command, and its exit status.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Laboratory {
    pub fn new() -> Laboratory {
        let machine = alone::shared();
        // The shell ignores it in what a script starts in the background, and so would every program of a test.
        // SAFETY: the default action is no handler.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Laboratory { folder: tempfile::tempdir().unwrap(), _machine: machine }
    }

    /// The folder, which is not removed with the laboratory.
    fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One with a program of known cost that writes marks.
    pub fn with_marks(name: &str) -> Laboratory {
        let lab = Laboratory::new();
        lab.program(name);
        lab.copy(&repository().join("runtime/marks/widthwise-marks.h"), "widthwise-marks.h");
        lab
    }

    /// Copies one of the programs of known cost.
    pub fn program(&self, name: &str) {
        std::fs::copy(here("programs").join(name), self.path(name)).unwrap();
    }

    /// Copies one of the projects with a build system.
    pub fn project(&self, name: &str) {
        self.copy(&here("projects").join(name), name);
    }

    /// Copies a file or folder of the repository.
    ///
    /// By a separate process: a file that this process has open for writing is also open in a program that another test
    /// starts at that moment, and cannot be executed meanwhile (ETXTBSY).
    pub fn copy(&self, from: &Path, to: &str) {
        let status = Command::new("cp").arg("-a").arg(from).arg(self.path(to)).status().unwrap();
        assert!(status.success(), "{} was not copied", from.display());
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn script(&self, name: &str, text: &str) {
        executable::write(&self.path(name), text);
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// `gcc`, with these arguments. A program that was built from the same files before is a copy of that.
    pub fn gcc(&self, arguments: impl Words) {
        let words = arguments.words();
        let folder = self.folder.path();
        let output = words.iter().position(|word| word == "-o").map(|at| folder.join(&words[at + 1]));
        let kept = built::kept_at(folder, &words).zip(output);
        if let Some((kept, output)) = kept.as_ref().filter(|(kept, _)| kept.exists()) {
            // Not into the file: it may be running.
            let _ = std::fs::remove_file(output);
            return built::copy(kept, output);
        }
        let printed = output_of(Command::new("gcc").args(&words).current_dir(folder));
        assert_eq!(printed.status, Some(0), "{printed:?}");
        if let Some((kept, output)) = kept {
            built::keep(&output, &kept);
        }
    }

    /// The command, not yet started.
    pub fn command(&self, arguments: impl Words) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_widthwise"));
        command
            .args(arguments.words())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env_remove("NO_COLOR");
        command
    }

    pub fn widthwise(&self, arguments: impl Words) -> CommandOutput {
        output_of(&mut self.command(arguments))
    }

    /// `compare` on any free CPU: campaigns that lock a core would wait for each other if
    /// tests run in parallel. Only tests of CPU affinity do not use this.
    pub fn compare(&self, arguments: impl Words) -> CommandOutput {
        output_of(&mut self.comparing(arguments))
    }

    /// As [`compare`](Self::compare), not yet started.
    pub fn comparing(&self, arguments: impl Words) -> Command {
        let mut command = self.command("compare --cpus any");
        command.args(arguments.words());
        command
    }

    /// As [`compare`](Self::compare), with `--json`.
    pub fn compare_json(&self, arguments: impl Words) -> Value {
        let mut command = self.command("compare --json --cpus any");
        output_of(command.args(arguments.words())).json()
    }

    /// The folder of the last campaign.
    pub fn campaign(&self) -> PathBuf {
        std::fs::canonicalize(self.path(".widthwise/latest")).unwrap()
    }

    /// The archive of the last campaign.
    pub fn archive(&self) -> rusqlite::Connection {
        open(&self.campaign())
    }

    /// The first output of a variant in the last campaign.
    pub fn answer(&self, variant: &str) -> String {
        let slug: String = self
            .archive()
            .query_row("SELECT slug FROM variant WHERE name = ?1", [variant], |row| row.get(0))
            .unwrap_or_else(|error| panic!("{variant}: {error}"));
        std::fs::read_to_string(self.campaign().join("output").join(slug)).unwrap()
    }

    /// The log of a variant's build in the last campaign.
    pub fn build_log(&self, variant: &str) -> String {
        let log: String = self
            .archive()
            .query_row(
                "SELECT log FROM build JOIN variant ON variant.id = build.variant WHERE name = ?1",
                [variant],
                |row| row.get(0),
            )
            .unwrap_or_else(|error| panic!("{variant}: {error}"));
        let path = self.path(&log);
        assert!(path.starts_with(self.campaign()) || log.starts_with(".widthwise/2"), "{log} is not kept");
        std::fs::read_to_string(path).unwrap()
    }

    /// The processes that have this folder in their command line.
    pub fn processes(&self) -> String {
        let name = self.folder.path().file_name().unwrap().to_str().unwrap();
        output_of(Command::new("pgrep").args(["-a", "-f", name])).stdout
    }

    /// Makes the user `nobody` the owner of this folder, and returns a command that starts `widthwise` as that user, with a copy
    /// of the binary, since that user may have no access to the original. Without root, the present user has no privileges.
    pub fn without_rights(&self, arguments: impl Words) -> Command {
        if !is_root() {
            return self.command(arguments);
        }
        let binary = self.path("widthwise-of-nobody");
        self.copy(Path::new(env!("CARGO_BIN_EXE_widthwise")), "widthwise-of-nobody");
        let folder = self.folder.path();
        let status = Command::new("chown").args(["-R", "65534:65534"]).arg(folder).status().unwrap();
        assert!(status.success());
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(binary)
            .args(arguments.words())
            .current_dir(folder)
            .env("HOME", folder)
            .stdin(Stdio::null());
        command
    }
}

/// A folder beside this one.
pub fn here(name: &str) -> PathBuf {
    repository().join("tests").join(name)
}

/// The repository's folder.
pub fn repository() -> PathBuf {
    std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

pub fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The archive in a campaign's folder, opened for reading.
pub fn open(campaign: &Path) -> rusqlite::Connection {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    rusqlite::Connection::open_with_flags(campaign.join("campaign.sqlite"), flags).unwrap()
}

/// A number from a query of the archive.
pub fn count(archive: &rusqlite::Connection, question: &str) -> i64 {
    archive.query_row(question, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{question}: {error}"))
}

pub fn output_of(command: &mut Command) -> CommandOutput {
    CommandOutput::of(command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

impl CommandOutput {
    pub fn of(output: std::process::Output) -> CommandOutput {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let printed = CommandOutput {
            status: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        // It may refuse any request, but must not panic.
        assert!(!printed.stderr.contains("panicked"), "{printed:?}");
        printed
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// One clear error that contains these words, with this exit status, and nothing on standard output.
    pub fn refuses(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        let errors = self.stderr.lines().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "not one error: {self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {:?}", self.stderr);
        }
    }
}

/// A table's text without its line ends and columns.
pub fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until a condition holds.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(180);
    while !is_so() {
        assert!(Instant::now() < patience, "{what} did not come to pass in three minutes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a child.
pub fn signal(child: &Child, number: i32) {
    // SAFETY: the child has not been waited for, so that its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, number) }, 0);
}

/// The verdict on a variant in a metric.
pub fn verdict<'a>(report: &'a Value, variant: &str, metric: &str) -> &'a Value {
    report["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|verdict| verdict["variant"] == variant && verdict["metric"] == metric)
        .unwrap_or_else(|| panic!("no verdict on {variant} {metric}: {}", report["verdicts"]))
}

/// Whether the data sufficed for a verdict. Which one of a variant and its own control is left to chance: a few in a hundred of them
/// are called different (`make bench`, false alarms).
pub fn is_judged(verdict: &Value) -> bool {
    !["withheld", "no_data"].contains(&verdict["verdict"].as_str().unwrap())
}

/// The entry of a variant.
pub fn variant<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["variants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|variant| variant["name"] == name)
        .unwrap_or_else(|| panic!("no variant {name}: {:?}", names(report)))
}

/// The names of all variants, the A/A control last.
pub fn names(report: &Value) -> Vec<&str> {
    report["variants"].as_array().unwrap().iter().map(|variant| variant["name"].as_str().unwrap()).collect()
}

/// The parts of a metric and what is unexplained sum to the difference.
pub fn sums(document: &Value) {
    let amount = |of: &Value| of["amount"].as_i64().unwrap();
    for rest in document["unexplained"].as_array().unwrap() {
        let parts = document["parts"].as_array().unwrap().iter();
        let parts: i64 = parts.filter(|part| part["metric"] == rest["metric"]).map(amount).sum();
        let difference = rest["variant"].as_i64().unwrap() - rest["baseline"].as_i64().unwrap();
        assert_eq!(parts + amount(rest), difference, "{rest:#}");
    }
}
