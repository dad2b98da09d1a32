//! Programs started with the heap recorder, each with a deadline; and the sums over their logs.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Laboratory, Words};

/// Remarks on programs of the system, such as the shell.
const WITHOUT_LINES: [&str; 3] = ["built without -g", " is stripped: ", ": its debug information is in "];

/// Every ABI, and gcc's options for it.
pub const ABIS: [(&str, &str); 3] = [
    ("x86-64", "-m64"),
    ("x32", "-mx32 -idirafter /usr/include/x86_64-linux-gnu"),
    ("i386", "-m32 -idirafter /usr/include/x86_64-linux-gnu"),
];

/// A run that takes longer has hung: the longest of these tests takes some seconds.
const DEADLINE: Duration = Duration::from_secs(120);

/// A run of a program, not yet started.
pub struct Run<'l> {
    lab: &'l Laboratory,
    words: Vec<String>,
    more_preloaded: Vec<PathBuf>,
    limits: Vec<(libc::__rlimit_resource_t, u64)>,
}

/// How a run ended, and its logs.
#[derive(Debug)]
pub struct Ended {
    pub what: String,
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub logs: Vec<PathBuf>,
}

/// The JSON of `explain` for each log.
pub struct Facts {
    pub what: String,
    pub documents: Vec<Value>,
}

impl<'l> Run<'l> {
    pub fn of(lab: &'l Laboratory, words: impl Words) -> Run<'l> {
        Run { lab, words: words.words(), more_preloaded: Vec::new(), limits: Vec::new() }
    }

    /// Preloaded after the recorder.
    pub fn preload(mut self, library: &str) -> Self {
        self.more_preloaded.push(self.lab.path(library));
        self
    }

    /// A limit that is set before the program starts.
    pub fn limit(mut self, resource: libc::__rlimit_resource_t, value: u64) -> Self {
        self.limits.push((resource, value));
        self
    }

    /// Without the recorder.
    pub fn alone(self) -> Ended {
        let preload = paths(&self.more_preloaded);
        self.ended(preload, None)
    }

    /// With the recorder.
    pub fn recorded(self) -> Ended {
        let mut preload = vec![preload(self.lab).to_owned()];
        preload.extend(paths(&self.more_preloaded));
        let logs = self.lab.path("logs");
        let _ = std::fs::remove_dir_all(&logs);
        std::fs::create_dir(&logs).unwrap();
        let ended = self.ended(preload, Some(&logs.join("log")));
        Ended { logs: files_of(&logs), ..ended }
    }

    /// With the recorder, which is to write to a log of this name.
    pub fn recorded_to(self, log: &str) -> Ended {
        let preload = vec![preload(self.lab).to_owned()];
        self.ended(preload, Some(Path::new(log)))
    }

    fn ended(self, preload: Vec<String>, log: Option<&Path>) -> Ended {
        let what = self.words.join(" ");
        let file = self.lab.path(self.words[0].trim_start_matches("./"));
        let mut command = match widthwise_x32run::runtime_for(&file).unwrap() {
            Some(runtime) => {
                let mut command = Command::new(runtime);
                command.arg(file);
                command
            }
            None => Command::new(file),
        };
        command.args(&self.words[1..]).current_dir(self.lab.path("."));
        if !preload.is_empty() {
            command.env("LD_PRELOAD", preload.join(":"));
        }
        if let Some(log) = log {
            command.env("WIDTHWISE_HEAP_LOG", log);
        }
        prepare(&mut command, self.limits);
        let (status, stdout, stderr) = before_deadline(&mut command, &what);
        Ended { what, status, stdout, stderr, logs: Vec::new() }
    }
}

/// The value of LD_PRELOAD: the same for all runs.
fn preload(lab: &Laboratory) -> &'static str {
    static PRELOAD: OnceLock<String> = OnceLock::new();
    PRELOAD.get_or_init(|| {
        let output = lab.widthwise("explain --preload");
        assert_eq!(output.status, Some(0), "{output:?}");
        output.stdout.trim().to_owned()
    })
}

fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// The logs of one run: one file of a whole process tree, or several.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Sets the limits, and leaves the program no descriptor but the first three: who started the tests (`perf record`) may have
/// left them some.
fn prepare(command: &mut Command, limits: Vec<(libc::__rlimit_resource_t, u64)>) {
    let set = move || {
        // SAFETY: the flag changes no memory.
        if unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        for (resource, value) in &limits {
            let limit = libc::rlimit { rlim_cur: *value, rlim_max: *value };
            // SAFETY: the structure lives until the call returns.
            if unsafe { libc::setrlimit(*resource, &limit) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: these system calls may be made between fork and exec, and nothing here allocates.
    unsafe { command.pre_exec(set) };
}

/// Starts a command, and waits for it. A hanging program is killed with its children, and fails the test.
fn before_deadline(command: &mut Command, what: &str) -> (ExitStatus, String, String) {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let stdout = text_of(child.stdout.take().unwrap());
    let stderr = text_of(child.stderr.take().unwrap());
    let deadline = Instant::now() + DEADLINE;
    let mut ended = None;
    while ended.is_none() && Instant::now() < deadline {
        ended = child.try_wait().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_group(&child);
    let status = ended.unwrap_or_else(|| child.wait().unwrap());
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    assert!(ended.is_some(), "{what} hangs: killed after {DEADLINE:?}: {stdout:?}, {stderr:?}");
    (status, stdout, stderr)
}

fn text_of(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Children that outlive their program would keep its pipes open.
fn kill_group(leader: &Child) {
    // SAFETY: a group keeps its leader's number for as long as it has members; without any, the call fails.
    unsafe { libc::kill(-(leader.id() as i32), libc::SIGKILL) };
}

impl Ended {
    /// The program succeeded, and standard error is empty.
    pub fn well(self) -> Ended {
        assert_eq!(self.stderr, "", "{}: {:?}", self.what, self.status);
        assert_eq!(
            (self.status.code(), self.status.signal()),
            (Some(0), None),
            "{}: {}",
            self.what,
            self.stdout
        );
        self
    }

    pub fn explained(&self, lab: &Laboratory) -> Facts {
        assert!(!self.logs.is_empty(), "{} left no log", self.what);
        let documents = self.logs.iter().map(|log| {
            let output = lab.widthwise(&["explain", "--json", log.to_str().unwrap()]);
            assert_eq!(output.status, Some(0), "{}: {output:?}", self.what);
            output.json()
        });
        Facts { what: self.what.clone(), documents: documents.collect() }
    }

    /// The numbers that it printed.
    pub fn numbers(&self) -> Vec<u64> {
        let words = self.stdout.split_whitespace();
        words.map(|word| word.parse().unwrap_or_else(|_| panic!("{}: {word:?}", self.what))).collect()
    }
}

impl Facts {
    /// A number of `a`, summed over all logs.
    pub fn sum(&self, name: &str) -> u64 {
        let of_one = |document: &Value| {
            document["a"][name].as_u64().unwrap_or_else(|| panic!("{}: no {name}: {document:#}", self.what))
        };
        self.documents.iter().map(of_one).sum()
    }

    /// The blocks that the functions of a name allocated, and those left at the end. A template's functions
    /// have the name up to the `<`.
    pub fn blocks_of(&self, function: &str) -> (u64, u64) {
        let mut sum = (0, 0);
        for site in self.documents.iter().flat_map(|document| document["sites"].as_array().unwrap()) {
            let name = site["function"].as_str().unwrap_or_default();
            if name == function || name.split_once('<').is_some_and(|(before, _)| before == function) {
                sum.0 += site["a"]["blocks"].as_u64().unwrap();
                sum.1 += site["a"]["left_blocks"].as_u64().unwrap();
            }
        }
        sum
    }

    /// All remarks except that a program has no lines: shells have none.
    pub fn remarks(&self) -> Vec<&str> {
        let all = self.documents.iter().flat_map(|document| document["a"]["remarks"].as_array().unwrap());
        let texts = all.map(|remark| remark.as_str().unwrap());
        texts.filter(|remark| !WITHOUT_LINES.iter().any(|words| remark.contains(words))).collect()
    }

    /// One entry for each process, of all logs.
    pub fn processes(&self) -> Vec<&Value> {
        let of_one = |document: &'_ Value| document["a"]["by_process"].as_array().is_some();
        assert!(self.documents.iter().all(of_one), "{}: no by_process", self.what);
        self.documents.iter().flat_map(|document| document["a"]["by_process"].as_array().unwrap()).collect()
    }

    /// Nothing is missing, and the only remark is that the recorder had to use memory without a file.
    pub fn whole(self) -> Facts {
        let mut remarks = self.remarks();
        remarks.retain(|remark| !remark.contains("the recorder's own memory count as the program's RSS"));
        assert_eq!(remarks, [""; 0], "{}", self.what);
        assert_eq!(self.sum("lost_events"), 0, "{}", self.what);
        self
    }
}
