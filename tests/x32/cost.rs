//! What the runtime costs: the oracle's kernel runs the same x32 programs natively and through the runtime, which keeps its
//! account. Without the runtime's own, memory and instructions must be those of the kernel that has x32.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::kernel::{self, Archive, LIBRARIES};
use crate::programs::{compile, sources};

/// The runs, each of `work.c` linked one way, and how often each is made. Where a library lies decides how many pages of it
/// come with each that is touched (fault-around: 16 at most), so that those of dynamic programs are random, and a mean is
/// compared.
const RUNS: [(u32, &str); 8] = [
    (1, "/work touch 16"),
    (1, "/work touch 1024"),
    (1, "/work touch 16384"),
    (1, "/work list 50"),
    (1, "/work forks 5"),
    (1, "/work threads 4"),
    (60, "/work-dynamic touch 16"),
    (60, "/work-dynamic touch 4096"),
];

/// What one run said; of several, the mean.
#[derive(Debug, Default)]
pub struct Said {
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
pub fn measure(runtime: &Path) -> BTreeMap<String, [Said; 2]> {
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
    let said = kernel::boot(&file_system(runtime), &["-smp", "1", "-plugin", &argument], 480);
    let said = String::from_utf8(said).unwrap();
    let counts = std::fs::read_to_string(counts.path()).unwrap();
    let mut marks = between_marks(&counts).into_iter();
    let mut found: BTreeMap<String, [Said; 2]> = BTreeMap::new();
    for line in said.lines() {
        let (name, rest) = line.split_once(": ").unwrap_or_else(|| panic!("{said}"));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [way, resident, faults, own_resident, own_faults, "status", "0"] = words[..] else {
            panic!("{name}: {rest:?}")
        };
        let number = |text: &str| text.parse::<f64>().unwrap();
        let times = RUNS.iter().find(|(_, command)| *command == name).map_or(1.0, |run| f64::from(run.0));
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
    assert_eq!(found.len(), RUNS.len(), "{said}");
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
    let runs: String = RUNS.iter().map(|(times, command)| format!("{times} {command}\n")).collect();
    let (size, record) = (widthwise_x32run::ACCOUNT_SIZE, widthwise_x32run::FIRST_RECORD);
    archive.file("list", format!("{size} {record}\n{runs}").as_bytes());
    for library in LIBRARIES {
        let name = library.rsplit('/').next().unwrap();
        archive.file(&format!("libx32/{name}"), &kernel::read(&kernel::library_path(library)));
    }
    archive.end()
}
