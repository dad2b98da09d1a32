//! Files of other profilers, for comparison with ours: massif's, heaptrack's, pprof's.

use std::io::Read;
use std::path::Path;

use widthwise_anatomy::heap::Profile;
use widthwise_anatomy::import::recording::Recording;
use widthwise_anatomy::import::{heaptrack, massif, pprof};
use widthwise_experiment::units::{Quantity, Unit};

use crate::failure::Failure;
use crate::output::short;

const MASSIF: &[u8] = b"desc:";
const HEAPTRACK: &[u8] = b"v ";
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// What files of other profilers begin with.
const BEGINNINGS: [&[u8]; 4] = [MASSIF, HEAPTRACK, GZIP, ZSTD];

/// What a file of another profiler has: the profile, the program's file name, and what a reader must know.
pub struct Imported {
    /// Its stacks.
    pub profile: Profile,
    /// The program's file name; empty where it is unknown.
    pub program: String,
    /// Whose it is.
    pub remark: String,
}

/// Reads it, by how it begins. `None`: it begins as none of theirs does.
pub fn read(path: &Path) -> Option<Result<Imported, Failure>> {
    let failed = |error: &dyn std::fmt::Display| Failure::request(format!("{}: {error}", short(path)));
    match begins_as_one(path) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => return Some(Err(failed(&error))),
    }
    match std::fs::read(path) {
        Ok(bytes) => {
            let is_massif = bytes.starts_with(MASSIF);
            of_bytes(path, &bytes)
                .map(|read| read.and_then(|imported| with_samples(path, imported, is_massif)))
        }
        Err(error) => Some(Err(failed(&error))),
    }
}

/// A file of another profiler without any stack says nothing, and is usually one that the profiler did not finish.
fn with_samples(path: &Path, imported: Imported, is_massif: bool) -> Result<Imported, Failure> {
    if imported.profile.samples.is_empty() {
        // massif's file has sizes without stacks where the peak was not seen in detail.
        let advice = match is_massif {
            true => "has no stacks in it; record the program again with `--detailed-freq=1`",
            false => "has no allocation in it; record the program again",
        };
        return Err(Failure::request(format!(
            "{} {advice}, and let it end ({})",
            short(path),
            imported.remark.trim_end_matches([':', ' '])
        )));
    }
    Ok(imported)
}

/// That a file is no recording: what it is, and how one is made.
pub fn unrecognised(path: &Path) -> Failure {
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    let what = match start.as_slice() {
        _ if read.is_err() => "it cannot be read".to_owned(),
        [] => "it is empty".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => "it is a program or library (ELF), not a recording of one".to_owned(),
        [b'{' | b'[', ..] => "it is JSON".to_owned(),
        start => {
            let bytes: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("at byte 0 it has {}", bytes.join(" "))
        }
    };
    Failure::request(format!(
        "{} is not a heap log, nor a file of massif, heaptrack or pprof: {what}. Record a program with `widthwise compare \
         --heap`, or with what `widthwise explain --preload` prints in LD_PRELOAD",
        short(path)
    ))
}

/// Whether it begins as one of theirs: what does not is not read.
fn begins_as_one(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    std::fs::File::open(path)?.take(8).read_to_end(&mut start)?;
    Ok(BEGINNINGS.iter().any(|beginning| start.starts_with(beginning)))
}

fn of_bytes(path: &Path, bytes: &[u8]) -> Option<Result<Imported, Failure>> {
    let failed = |error: &dyn std::fmt::Display| Failure::request(format!("{}: {error}", short(path)));
    if bytes.starts_with(MASSIF) {
        return Some(match massif::read(bytes) {
            Ok(recording) => Ok(of_massif(recording)),
            Err(error) => Err(failed(&error)),
        });
    }
    let is_gzip = bytes.starts_with(GZIP);
    if is_gzip || bytes.starts_with(ZSTD) || bytes.starts_with(HEAPTRACK) {
        match heaptrack::read(bytes) {
            Ok(recording) => return Some(Ok(recorded(recording.profile, &recording.command, "heaptrack"))),
            Err(error) if !is_gzip => return Some(Err(failed(&error))),
            Err(_) => {}
        }
    }
    is_gzip.then(|| match pprof::read(bytes) {
        Ok(profile) => Ok(Imported { profile, program: String::new(), remark: "imported from pprof".into() }),
        Err(error) => Err(failed(&error)),
    })
}

fn of_massif(recording: Recording) -> Imported {
    let shown = recording.detailed.map_or(0, |point| point.bytes);
    let most = recording.peak.bytes;
    let mut imported = recorded(recording.profile, &recording.command, "massif");
    if recording.is_of_pages {
        imported.remark.push_str(
            "; with --pages-as-heap=yes: the bytes are those of all mapped pages, code and stacks included, not those of the heap",
        );
    }
    // massif takes its peak with an inaccuracy of 1 %.
    if most - shown.min(most) > most / 100 {
        imported.remark.push_str(&format!(
            "; its largest snapshot has {}, and no stacks: the sites are those of the largest with stacks, record with \
             `--detailed-freq=1`",
            Quantity { value: most as f64, unit: Unit::Bytes }
        ));
    }
    imported
}

fn recorded(profile: Profile, command: &str, by: &str) -> Imported {
    let first = command.split_whitespace().next().unwrap_or_default();
    let program = first.rsplit('/').next().unwrap_or_default().to_owned();
    Imported { profile, program, remark: format!("recorded by {by}: {command}") }
}
