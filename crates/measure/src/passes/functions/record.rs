//! Makes a recording: a run under callgrind, its files compressed into the campaign, and the page faults of a run outside valgrind.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use widthwise_experiment::bytes;
use widthwise_experiment::outcome::Ending;

use crate::passes::callgrind_parts::{ended, COUNTS as OWN_COUNTS};
use crate::passes::clock_calls::{Heard, Listener};
use crate::passes::emulated_processes::{Processes, EXECUTING};
use crate::passes::functions::log_openings::LogOpenings;
use crate::passes::functions::page_faults::Watch;
use crate::passes::functions::recording::{PageFaults, Recording, COUNTS, SYSTEM_CALLS};
use crate::passes::recordings::{empty_scratch, outputs_differently, scratch, KeptRecording, Partial};
use crate::passes::valgrind::{self, LOG, SLOWER};
use crate::plan::{Participant, Plan};
use crate::run::ending::failure;
use crate::run::launch_spec::LaunchSpec;
use crate::run::limits::Limits;
use crate::run::result::RunError;
use crate::run::runner::Runner;

/// zstd's own default.
const COMPRESSION: i32 = 3;
/// Functions whose entry makes callgrind write the counts and begin anew, so that a forked process does not count again what its
/// parent counted: glibc's, and the x32 runtime's.
const FORKS: [&str; 6] = ["_Fork", "vfork", "__vfork", "__spawni", "__spawnix", "account_before_fork"];
/// The calls by which a program brings files into its memory, as valgrind's log has them (x86-64: `open`, `openat`, `mmap`), and the
/// words of a fork.
const CALLS: [&str; 4] = ["](2)", "](257)", "](9)", " created child "];

/// Makes the recording of that number, counted from 1, unless it exists. `answer` is the digest of the program's output outside
/// valgrind. `None`: it was interrupted.
///
/// # Errors
/// A run cannot be made, or its files cannot be stored.
pub fn record(
    plan: &Plan,
    participant: &Participant,
    number: u32,
    valgrind: &str,
    answer: Option<&str>,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Recording>, RunError> {
    if let Some(recording) = Recording::recorded(&plan.folder, &participant.slug, number) {
        return Ok(Some(recording));
    }
    let own = empty_scratch::<Recording>(plan)?;
    let start = &participant.start;
    let mut recording = Recording {
        programs: paths(&start.file),
        through_runtime: valgrind::runtime_of(start).is_some(),
        valgrind: valgrind.to_owned(),
        ..Recording::default()
    };
    let counted = counted(plan, start, &own, runner, cancelled)?;
    if cancelled() {
        return Ok(None);
    }
    recording.wall_ns = counted.wall_ns;
    recording.refused = counted.refused;
    recording.remarks = counted.remarks;
    if recording.refused.is_none() && outputs_differently(plan, participant, answer, runner) {
        recording.refused =
            Some("not emulated: under valgrind its output is not what it is outside".to_owned());
    }
    let partial = Partial::begin::<Recording>(plan, participant, number)?;
    if recording.refused.is_none() {
        pack_all(&own, partial.folder()).map_err(scratch(partial.folder()))?;
    }
    let _ = std::fs::remove_dir_all(&own);
    let Some(page_faults) = page_faults(plan, start, runner, cancelled)? else { return Ok(None) };
    match page_faults {
        Ok(faults) => recording.page_faults = Some(faults),
        Err(reason) => recording.page_faults_missing = Some(reason),
    }
    partial.keep(&recording)?;
    Ok(Some(recording))
}

/// What came of a run under callgrind.
struct Counted {
    wall_ns: u64,
    /// Why its counts are none of the program's.
    refused: Option<String>,
    remarks: Vec<String>,
}

/// A run under callgrind. Its files are in `own`.
fn counted(
    plan: &Plan,
    start: &LaunchSpec,
    own: &Path,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Counted, RunError> {
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let mut words = words(own);
    let (result, processes, text);
    if valgrind::runtime_of(start).is_some() {
        // valgrind names no x32 function: code addresses do, with the files that were mapped there. Each process has a log of its own.
        words.push(bytes::os(&format!("--log-file={}/{LOG}%p", valgrind::escaped(own))));
        words.push("--trace-syscalls=yes".into());
        let openings = LogOpenings::watch(own).map_err(scratch(own))?;
        result = runner.run(&valgrind::under(start, &words), 0, &plan.cpus, limits, cancelled)?;
        // Before the logs are read here: that opens them, too.
        let openings = openings.end();
        text = valgrind::logged(own);
        processes = openings
            .and_then(|openings| logged(own, &openings))
            .map_err(|error| format!("valgrind's logs: {error}"));
    } else {
        let logs = own.with_file_name("functions-calls");
        valgrind::empty(&logs)?;
        words.extend(EXECUTING.map(before));
        let listener = Listener::begin(&logs, Some(own))?;
        words.extend(listener.options().map(OsString::from));
        let run = runner.run(&valgrind::under(start, &words), 0, &plan.cpus, limits, cancelled);
        let heard = listener.end();
        result = run?;
        drop_counts_of_parents(&heard, own).map_err(scratch(own))?;
        (text, processes) = (heard.text, Ok(heard.processes));
    }
    let counts = match result.ending {
        Ending::Done => {
            let ended = ended_in(own).map_err(scratch(own))?;
            processes.and_then(|mut processes| {
                processes.hear_errors(&valgrind::ends(&runner.stderr()));
                processes.all_of_callgrind(&ended).map(|()| processes.between_fork_and_program())
            })
        }
        ref ending => Err(valgrind::refusal(ending, start, &runner.stderr(), &text)),
    };
    let wall_ns = result.wall.as_nanos() as u64;
    Ok(match counts {
        Ok(remark) => Counted { wall_ns, refused: None, remarks: remark.into_iter().collect() },
        Err(reason) => Counted { wall_ns, refused: Some(reason), remarks: Vec::new() },
    })
}

/// What the logs of all processes say.
fn logged(own: &Path, openings: &BTreeMap<u32, u32>) -> io::Result<Processes> {
    let mut processes = Processes::default();
    for entry in std::fs::read_dir(own)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(LOG) {
            let (mut log, mut line) = (BufReader::new(File::open(entry.path())?), Vec::new());
            while log.read_until(b'\n', &mut line)? > 0 {
                processes.hear(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
    }
    openings.iter().for_each(|(process, times)| processes.opened(*process, *times));
    Ok(processes)
}

/// What a forked process counted before it executed a program has its parent's counts, too, unless valgrind saw the fork.
fn drop_counts_of_parents(heard: &Heard, own: &Path) -> io::Result<()> {
    let of_parents = heard.parts.iter().filter(|part| heard.processes.is_of_parent(part));
    of_parents.map(|part| part.kept(own)).try_for_each(std::fs::remove_file)
}

/// The processes that have written counts at their end.
fn ended_in(own: &Path) -> io::Result<BTreeSet<u32>> {
    let name = |entry: io::Result<std::fs::DirEntry>| Ok(ended(&entry?.file_name().to_string_lossy()));
    std::fs::read_dir(own)?.filter_map(|entry| name(entry).transpose()).collect()
}

/// The option with which callgrind writes the counts and begins anew when a function is entered.
fn before(function: &str) -> OsString {
    format!("--dump-before={function}").into()
}

/// The path of a program, and the one without symbolic links.
fn paths(file: &Path) -> Vec<String> {
    let mut paths = vec![bytes::text(file)];
    paths.extend(std::fs::canonicalize(file).ok().map(|path| bytes::text(&path)));
    paths.dedup();
    paths
}

/// callgrind's options, with a file in `own` for each process and each part of its time.
fn words(own: &Path) -> Vec<OsString> {
    let own = valgrind::escaped(own);
    let mut words: Vec<OsString> = [
        "--tool=callgrind",
        // The log has the programs that are executed, and the parts of the counts that are written.
        "-v",
        "-v",
        "--vgdb=no",
        "--cache-sim=yes",
        "--branch-sim=yes",
        "--trace-children=yes",
        "--demangle=no",
        "--show-below-main=yes",
        "--separate-recs=1",
        // Stubs are no part of their callers: of x32 programs valgrind does not know them.
        "--skip-plt=no",
        // For the lines of functions, and for what valgrind does not name.
        "--dump-instr=yes",
        // A repetition of a string instruction is a jump to itself.
        "--collect-jumps=yes",
    ]
    .map(OsString::from)
    .to_vec();
    words.extend(valgrind::caches());
    words.push(bytes::os(&format!("--callgrind-out-file={own}/{OWN_COUNTS}%p")));
    words.extend(FORKS.map(before));
    words
}

/// Compresses valgrind's files into the folder.
fn pack_all(own: &Path, into: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(own)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = BufReader::new(File::open(&path)?);
        if let Some(number) = name.strip_prefix(OWN_COUNTS) {
            let mut packed = packed(&into.join(format!("{number}.{COUNTS}")))?;
            io::copy(&mut file, &mut packed)?;
            packed.finish()?.flush()?;
        } else if let Some(number) = name.strip_prefix(LOG) {
            let mut packed = packed(&into.join(format!("{number}.{SYSTEM_CALLS}")))?;
            let mut line = Vec::new();
            while file.read_until(b'\n', &mut line)? > 0 {
                let text = String::from_utf8_lossy(&line);
                if CALLS.iter().any(|call| text.contains(call)) {
                    packed.write_all(&line)?;
                }
                line.clear();
            }
            packed.finish()?.flush()?;
        }
    }
    Ok(())
}

fn packed(path: &PathBuf) -> io::Result<zstd::Encoder<'static, BufWriter<File>>> {
    zstd::Encoder::new(BufWriter::new(File::create(path)?), COMPRESSION)
}

/// The page faults of a run outside valgrind, or why there are none. `None`: it was interrupted.
fn page_faults(
    plan: &Plan,
    start: &LaunchSpec,
    runner: &mut Runner,
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<Result<PageFaults, String>>, RunError> {
    let watch = match Watch::start(runner.launcher()) {
        Ok(watch) => watch,
        Err(reason) => return Ok(Some(Err(reason))),
    };
    // The same places each time.
    let start = LaunchSpec { no_aslr: true, ..start.clone() };
    let result = runner.run(&start, 0, &plan.cpus, plan.limits, cancelled);
    let faults = watch.stop();
    let result = result?;
    if cancelled() {
        return Ok(None);
    }
    Ok(Some(match result.ending {
        Ending::Done => faults,
        ref ending => Err(format!("the run {}", failure(ending, &runner.stderr()))),
    }))
}
