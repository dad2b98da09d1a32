//! Makes a recording: a run under callgrind, its files compressed into the campaign, and the page faults of a run outside valgrind.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use widthwise_experiment::bytes;
use widthwise_experiment::outcome::Ending;

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
    let limits = Limits { timeout: plan.limits.timeout * SLOWER, ..plan.limits };
    let result = runner.run(&under_callgrind(start, &own), 0, &plan.cpus, limits, cancelled)?;
    if cancelled() {
        return Ok(None);
    }
    recording.wall_ns = result.wall.as_nanos() as u64;
    if result.ending != Ending::Done {
        let log = valgrind::logged(&own);
        recording.refused = Some(valgrind::refusal(&result.ending, start, &runner.stderr(), &log));
    } else if outputs_differently(plan, participant, answer, runner) {
        recording.refused =
            Some("not emulated: under valgrind its output is not what it is outside".to_owned());
    }
    let partial = Partial::begin::<Recording>(plan, participant, number)?;
    if recording.refused.is_none()
        && pack_all(&own, partial.folder()).map_err(scratch(partial.folder()))? == 0
    {
        recording.refused = Some("valgrind left no counts".to_owned());
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

/// The path of a program, and the one without symbolic links.
fn paths(file: &Path) -> Vec<String> {
    let mut paths = vec![bytes::text(file)];
    paths.extend(std::fs::canonicalize(file).ok().map(|path| bytes::text(&path)));
    paths.dedup();
    paths
}

/// The start under callgrind, with a file in `own` for each process and each part of its time.
fn under_callgrind(start: &LaunchSpec, own: &Path) -> LaunchSpec {
    let own = valgrind::escaped(own);
    let mut words: Vec<OsString> = [
        "--tool=callgrind",
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
    words.push(bytes::os(&format!("--callgrind-out-file={own}/counts.%p")));
    words.extend(FORKS.map(|function| format!("--dump-before={function}").into()));
    if valgrind::runtime_of(start).is_some() {
        // valgrind names no x32 function: code addresses do, with the files that were mapped there.
        words.push("--trace-syscalls=yes".into());
        words.push(bytes::os(&format!("--log-file={own}/{LOG}%p")));
    }
    valgrind::under(start, &words)
}

/// Compresses valgrind's files into the folder. Returns how many have counts.
fn pack_all(own: &Path, into: &Path) -> io::Result<usize> {
    let mut counts = 0;
    for entry in std::fs::read_dir(own)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut file = BufReader::new(File::open(&path)?);
        if let Some(number) = name.strip_prefix("counts.") {
            let mut packed = packed(&into.join(format!("{number}.{COUNTS}")))?;
            io::copy(&mut file, &mut packed)?;
            packed.finish()?.flush()?;
            counts += 1;
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
    Ok(counts)
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
