//! What the runtime costs: the oracle's kernel runs the same x32 programs natively and through the runtime, which keeps its
//! account. Without the runtime's own, memory and instructions must be those of the kernel that has x32.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::kernel::{self, Archive, LIBRARIES};
use crate::programs::{compile, sources};

/// A run of `work.c`, linked one way.
struct Run {
    times: u32,
    /// Bytes of a file that one fault maps, at most (Linux, `fault_around_bytes` of debugfs; 64 KiB by default).
    fault_around: u32,
    command: &'static str,
}

impl Run {
    /// As process 1 names it.
    fn name(&self) -> String {
        format!("{} {}", self.fault_around, self.command)
    }
}

const fn run(times: u32, fault_around: u32, command: &'static str) -> Run {
    Run { times, fault_around, command }
}

const DEFAULT_AROUND: u32 = 64 << 10;
const NO_AROUND: u32 = 4 << 10;

/// A fault maps the pages of a file around it, as far as those of one aligned block (Linux, `do_fault_around`): the place of a
/// library in its block decides how many of its pages become resident. Runs of a dynamic program go through all places.
const PLACES: u32 = DEFAULT_AROUND / NO_AROUND;

const RUNS: [Run; 10] = [
    run(1, DEFAULT_AROUND, "/work touch 16"),
    run(1, DEFAULT_AROUND, "/work touch 1024"),
    run(1, DEFAULT_AROUND, "/work touch 16384"),
    run(1, DEFAULT_AROUND, "/work list 50"),
    run(1, DEFAULT_AROUND, "/work forks 5"),
    run(1, DEFAULT_AROUND, "/work threads 4"),
    run(1, NO_AROUND, "/work-dynamic touch 16"),
    run(1, NO_AROUND, "/work-dynamic touch 4096"),
    run(PLACES, DEFAULT_AROUND, "/work-dynamic touch 16"),
    run(PLACES, DEFAULT_AROUND, "/work-dynamic touch 4096"),
];

/// The last two are half of the time: `make test` leaves them out, `make test-x32` does not.
fn runs() -> &'static [Run] {
    let all = crate::variable("WIDTHWISE_X32").is_some_and(|value| value == "all");
    if all {
        &RUNS
    } else {
        &RUNS[..RUNS.len() - 2]
    }
}

/// What one run printed; of several, the mean.
#[derive(Debug, Default)]
pub struct CommandOutput {
    /// Bytes that were resident at its end, and the runtime's own of them.
    pub resident: (f64, f64),
    /// Page faults, and the runtime's own of them.
    pub faults: (f64, f64),
    /// Instructions between the markers of its own, and the runtime's.
    pub instructions: (f64, f64),
}

/// A folder of its own: what lies beside the oracle's programs is theirs.
fn built() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("x32-cost")
}

/// Runs everything: by name, natively and through the runtime.
pub fn measure(runtime: &Path) -> BTreeMap<String, [CommandOutput; 2]> {
    let folder = sources().join("cost");
    std::fs::create_dir_all(built()).unwrap();
    compile(&["-mx32", "-O1", "-static", "-pthread"], &folder.join("work.c"), &built().join("work"));
    compile(
        &["-mx32", "-O1", "-pie", "-fPIE", "-pthread"],
        &folder.join("work.c"),
        &built().join("work-dynamic"),
    );
    compile(&["-O1", "-static"], &folder.join("init.c"), &built().join("cost-init"));
    let plugin = built().join("count.so");
    compile(&["-O2", "-shared", "-fPIC"], &folder.join("count.c"), &plugin);
    let counts = tempfile::NamedTempFile::new().unwrap();
    let argument = format!("{},out={}", plugin.display(), counts.path().display());
    let output = kernel::boot(&file_system(runtime), &["-smp", "1", "-plugin", &argument], 480);
    let output = String::from_utf8(output).unwrap();
    let counts = std::fs::read_to_string(counts.path()).unwrap();
    let mut marks = between_marks(&counts).into_iter();
    let mut found: BTreeMap<String, [CommandOutput; 2]> = BTreeMap::new();
    for line in output.lines() {
        let (name, rest) = line.split_once(": ").unwrap_or_else(|| panic!("{output}"));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [way, resident, faults, own_resident, own_faults, "status", "0"] = words[..] else {
            panic!("{name}: {rest:?}")
        };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let times = runs().iter().find(|run| run.name() == name).map_or(1.0, |run| f64::from(run.times));
        let mean = &mut found.entry(name.to_owned()).or_default()[usize::from(way == "runtime")];
        let (own, runtimes) = marks.next().unwrap_or_else(|| panic!("{name}: no marks"));
        for (sum, value) in [
            (&mut mean.resident.0, 1024.0 * number(resident)),
            (&mut mean.resident.1, 1024.0 * number(own_resident)),
            (&mut mean.faults.0, number(faults)),
            (&mut mean.faults.1, number(own_faults)),
            (&mut mean.instructions.0, own),
            (&mut mean.instructions.1, runtimes),
        ] {
            *sum += value / times;
        }
    }
    assert_eq!(found.len(), runs().len(), "{output}");
    found
}

/// Program's and runtime's instructions from each first mark to the second.
fn between_marks(text: &str) -> Vec<(f64, f64)> {
    let marks: Vec<[f64; 3]> = text
        .lines()
        .map(|line| {
            let numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
            numbers.take(3).collect::<Vec<f64>>().try_into().unwrap()
        })
        .collect();
    let mut found = Vec::new();
    for pair in marks.chunks(2) {
        let [first, second] = pair else { panic!("a mark without the other: {text}") };
        assert_eq!((first[0], second[0]), (1.0, 2.0), "{text}");
        found.push((second[1] - first[1], second[2] - first[2]));
    }
    found
}

fn file_system(runtime: &Path) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "libx32"] {
        archive.folder(folder);
    }
    let own = |name: &str| kernel::read(&built().join(name));
    archive.file("init", &own("cost-init"));
    archive.file("work", &own("work"));
    archive.file("work-dynamic", &own("work-dynamic"));
    archive.file("x32run", &kernel::read(runtime));
    let runs: String = runs().iter().map(|run| format!("{} {}\n", run.times, run.name())).collect();
    let (size, record) = (widthwise_x32run::ACCOUNT_SIZE, widthwise_x32run::FIRST_RECORD);
    archive.file("list", format!("{size} {record}\n{runs}").as_bytes());
    for library in LIBRARIES {
        let name = library.rsplit('/').next().unwrap();
        archive.file(&format!("libx32/{name}"), &kernel::read(&kernel::library_path(library)));
    }
    archive.end()
}
