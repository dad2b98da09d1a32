//! A run under one of valgrind's tools.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use widthwise_experiment::bytes;
use widthwise_experiment::outcome::Ending;
use widthwise_machine::core_caches::{self, CacheShape};
use widthwise_machine::elf;
use widthwise_machine::package::Packages;
use widthwise_machine::valgrind::{self, without_process};

use crate::run::ending::failure;
use crate::run::launch_spec::LaunchSpec;
use crate::run::result::RunError;

/// An emulated run takes some fifty times as long as a free one (a loop of 20 million steps: 42 times): what ends it comes
/// that much later, and twice.
pub(super) const SLOWER: u32 = 100;

/// How the names of valgrind's logs begin, where it writes some.
pub(super) const LOG: &str = "log.";

/// A tool, and the option that names its output.
pub(super) struct Tool {
    /// Its options.
    pub options: &'static [&'static str],
    /// Whether it emulates caches: callgrind refuses their sizes otherwise.
    pub has_caches: bool,
    /// The option that names its output.
    pub file: &'static str,
}

/// Makes an empty folder for the output.
pub(super) fn empty(folder: &Path) -> Result<(), RunError> {
    let ready = match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir_all(folder),
    };
    ready.map_err(|error| RunError::Scratch { path: folder.to_owned(), error })
}

/// The same start under a tool of valgrind, with `options` beside the tool's; each process writes a file into the folder.
pub(super) fn before(start: &LaunchSpec, tool: &Tool, options: &[&str], folder: &Path) -> LaunchSpec {
    let mut own: Vec<OsString> = tool.options.iter().chain(options).map(OsString::from).collect();
    if tool.has_caches {
        own.extend(caches());
    }
    // `%p` is the process's number.
    own.push(bytes::os(&format!("{}={}/%p", tool.file, escaped(folder))));
    under(start, &own)
}

/// The same start, with valgrind before it: `own` are the words of its tool.
pub(super) fn under(start: &LaunchSpec, own: &[OsString]) -> LaunchSpec {
    let mut arguments: Vec<OsString> = [
        "valgrind",
        // ~/.valgrindrc and $VALGRIND_OPTS are ignored.
        "--command-line-only=yes",
        // Each basic block for itself: valgrind otherwise joins a loop of one block to itself, and counts every second of
        // its branches (seen with 3.19).
        "--vex-iropt-unroll-thresh=0",
        "--vex-guest-chase=no",
        "-q",
    ]
    .map(OsString::from)
    .to_vec();
    // The tool comes before its options.
    arguments.splice(1..1, own.iter().cloned());
    arguments.push("--".into());
    let start = &LaunchSpec { runtime: runtime_of(start), ..start.clone() };
    let (program, words) = start.executed();
    arguments.push(program.into());
    arguments.extend(words.into_iter().skip(1));
    let mut environment = start.environment.clone();
    environment.remove(OsStr::new("VALGRIND_LIB"));
    let file = valgrind::path().unwrap_or_else(|| PathBuf::from("/usr/bin/valgrind"));
    LaunchSpec { file, runtime: None, arguments, environment, no_aslr: true, ..start.clone() }
}

/// The options that give valgrind's tools the caches of this machine; none where the kernel does not know them. By itself valgrind
/// reads them from the processor, and misreads some: 3.19 emulates 256 MiB where an EPYC's core has 32 MiB.
pub(super) fn caches() -> Vec<OsString> {
    let Some(shapes) = core_caches::caches() else { return Vec::new() };
    let option = |(name, shape): (&str, CacheShape)| {
        let CacheShape { bytes, ways, line } = emulated(shape);
        OsString::from(format!("--{name}={bytes},{ways},{line}"))
    };
    ["I1", "D1", "LL"].into_iter().zip(shapes).map(option).collect()
}

/// The nearest cache that valgrind emulates: it has a power of two of sets (cachegrind/cg-arch.c, `check_cache`). A cache with
/// another number has more ways in fewer sets.
fn emulated(shape: CacheShape) -> CacheShape {
    let line = u64::from(shape.line);
    let sets = (shape.bytes / (line * u64::from(shape.ways))).max(1);
    let sets = 1 << sets.ilog2();
    let ways = ((shape.bytes + line * sets / 2) / (line * sets)).max(1);
    CacheShape { bytes: ways * line * sets, ways: ways as u32, line: shape.line }
}

/// A folder in a name of valgrind's files: a `%` of its own is doubled.
pub(super) fn escaped(folder: &Path) -> String {
    bytes::text(folder).replace('%', "%%")
}

/// What starts an x32 program under valgrind, which knows none of their calls: the runtime, even where the kernel would do.
pub(super) fn runtime_of(start: &LaunchSpec) -> Option<PathBuf> {
    widthwise_x32run::runtime_under_valgrind(&start.file).ok().flatten()
}

/// Why valgrind did not run a program that runs without it. `log`: what valgrind itself says, where that is not on standard error.
pub(super) fn refusal(ending: &Ending, start: &LaunchSpec, stderr: &Path, log: &str) -> String {
    let said = format!("{}{log}", ends(stderr));
    let own_failure = own_failure(log).or_else(|| own_failure(&said));
    if let Some(line) = own_failure {
        return format!("not emulated: valgrind itself failed: {line}");
    }
    let abi = elf::read(&start.file).ok().and_then(|facts| facts.abi()).map_or("", |abi| abi.name);
    let unavailable = valgrind::refusal(&said, abi, &Packages::here());
    match (said.contains("valgrind: "), &unavailable.fix) {
        (true, Some(fix)) => format!("not emulated: {unavailable}; {fix}"),
        (true, None) => format!("not emulated: {unavailable}"),
        (false, _) => format!("not emulated: under valgrind {}", failure(ending, stderr)),
    }
}

/// The begin and the end of a file, however large it is.
pub(super) fn ends(file: &Path) -> String {
    const MOST: u64 = 1 << 16;
    let mut said = Vec::new();
    let _ = std::fs::File::open(file).and_then(|mut file| {
        (&mut file).take(MOST).read_to_end(&mut said)?;
        let rest = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(MOST + rest.saturating_sub(MOST)))?;
        file.take(MOST).read_to_end(&mut said)
    });
    String::from_utf8_lossy(&said).into_owned()
}

/// What valgrind's logs in a folder say, as far as they are read.
pub(super) fn logged(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LOG)));
    files.sort();
    files.iter().map(|file| ends(file)).collect()
}

/// What valgrind says of a failure of its own (`coregrind/m_libcassert.c`, `coregrind/m_signals.c`,
/// `coregrind/m_debuginfo/image.c`), if there is one.
fn own_failure(said: &str) -> Option<String> {
    let mut lines = said.lines().map(|line| without_process(line.trim())).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        // "Callgrind: threads.c:247 (function): Assertion 'condition' failed."
        let is_own = |head: &str| head.contains(".c:") && head.ends_with(')');
        if line.ends_with("failed.") && line.split_once(": Assertion '").is_some_and(|(head, _)| is_own(head))
        {
            return Some(line.to_owned());
        }
        if line.starts_with("valgrind: the 'impossible' happened") {
            return Some(lines.next().map_or(line.to_owned(), |what| format!("{line} {what}")));
        }
        // Of a program's DWARF (coregrind/m_debuginfo/image.c); 3.19 does not know all forms of version 5.
        if let Some(what) = line.strip_prefix("Valgrind: debuginfo reader: Possibly corrupted") {
            return Some(format!(
                "debuginfo reader: Possibly corrupted{what} Where the program is not damaged, -gdwarf-4 avoids it"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_valgrinds_own_is_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (stderr, log) = (folder.path().join("stderr"), folder.path().join("log.7"));
        let start = LaunchSpec::plain("/nowhere/program", &[], folder.path());
        let preload = "ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded (y): ignored.\n";
        let reason = |said: &str, logged: &str| {
            std::fs::write(&stderr, said).unwrap();
            std::fs::write(&log, logged).unwrap();
            refusal(&Ending::Exit { status: 1 }, &start, &stderr, &super::logged(folder.path()))
        };
        let asserted = "Callgrind: threads.c:247 (post_signal): Assertion 'a == b' failed.";
        let whole =
            format!("x32_restorer\nBB# 4\n\n{asserted}\n\nhost stacktrace:\n==1==    at 0x1\nThanks.\n");
        let expected = format!("not emulated: valgrind itself failed: {asserted}");
        assert_eq!(reason(preload, &whole), expected);
        assert_eq!(reason(&format!("{}{preload}{whole}", "x\n".repeat(1 << 17)), ""), expected);
        // An assertion of the program's.
        let of_program =
            "/usr/include/c++/12/bits/stl_vector.h:1123: f(): Assertion '__n < this->size()' failed.";
        assert!(!reason(of_program, "").contains("valgrind itself failed"));
        let impossible = "\nvalgrind: the 'impossible' happened:\n   Killed by fatal signal\n\nhost\n";
        assert_eq!(
            reason(preload, impossible),
            "not emulated: valgrind itself failed: valgrind: the 'impossible' happened: Killed by fatal signal"
        );
        assert_eq!(reason(preload, ""), "not emulated: under valgrind it ended with exit status 1");
        let unread = "### unhandled dwarf2 abbrev form code 0x25\n==1== Valgrind: debuginfo reader: ensure_valid failed:\n\
                      ==1== Valgrind:   during call to ML_(img_get)\n==1== \n\
                      ==1== Valgrind: debuginfo reader: Possibly corrupted debuginfo file.\n\
                      ==1== Valgrind: I can't recover.  Giving up.  Sorry.\n==1== \n";
        assert_eq!(
            reason(unread, ""),
            "not emulated: valgrind itself failed: debuginfo reader: Possibly corrupted debuginfo file. Where the program is not \
             damaged, -gdwarf-4 avoids it"
        );
    }

    #[test]
    fn a_cache_whose_number_of_sets_is_no_power_of_two_has_more_ways_in_fewer_sets() {
        let shape = |kib: u64, ways| CacheShape { bytes: kib << 10, ways, line: 64 };
        assert_eq!(emulated(shape(32, 8)), shape(32, 8));
        assert_eq!(emulated(shape(48, 12)), shape(48, 12));
        // 36 864 sets and 49 152.
        assert_eq!(emulated(shape(25_344, 11)), shape(24_576, 12));
        assert_eq!(emulated(shape(98_304, 32)), shape(98_304, 48));
    }
}
