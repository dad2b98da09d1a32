//! The functions of two variants of a campaign: their recordings, read for the explanation.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use widthwise_anatomy::time::callgrind::{self, Output};
use widthwise_anatomy::time::mappings::Mappings;
use widthwise_anatomy::time::symbols::CodeNames;
use widthwise_anatomy::time::{self, Counts, Profile};
use widthwise_archive::Archive;
use widthwise_measure::passes::functions::{self, Recording, COUNTS, KERNEL, REPEATS, SYSTEM_CALLS};
use widthwise_measure::passes::recordings::KeptRecording;
use widthwise_report::explanation::time::{CpuTime, Time};
use widthwise_report::Comparison;

use crate::failure::Failure;
use crate::load_report::LoadedReport;
use crate::output::{self, short};

/// The most bytes of one of valgrind's files, uncompressed.
const LARGEST: u64 = 1 << 30;

/// What a reader must know where faults in system calls are not compared.
const WITHOUT_KERNEL: &str =
    "Page faults in system calls are not among them: `sysctl kernel.perf_event_paranoid=1` adds them.";

/// Whether some variant's functions were counted, or were to be.
pub fn is_recorded(campaign: &Path) -> bool {
    campaign.join("functions").is_dir()
}

/// The remark where the CPU times of two variants differ and their functions were not counted.
pub fn uncounted(names: [&str; 2], comparison: &Comparison, campaign: &Path) -> Option<String> {
    let CpuTime { direction, says, .. } = comparison.cpu_time(names[0], names[1]);
    (direction != 0).then(|| {
        format!(
            "Timed rounds: {says}. The functions were not counted: widthwise compare --resume {} --functions does that.",
            output::word(campaign)
        )
    })
}

/// What was recorded of one variant.
struct Side {
    profiles: Vec<Profile>,
    through_runtime: bool,
    without_page_faults: Option<String>,
    remarks: Vec<String>,
}

/// The section of two variants.
///
/// # Errors
/// Why their functions cannot be compared.
pub fn section<'a>(names: [&'a str; 2], campaign: &Path, top: usize) -> Result<Time<'a>, String> {
    let archive = Archive::read(campaign).map_err(|error| error.to_string())?;
    let mut code = CodeNames::default();
    let mut sides = Vec::new();
    // Faults in system calls are compared only where they were reported in every recording.
    let with_kernel = names
        .iter()
        .flat_map(|name| recordings(&archive, name))
        .all(|(_, recording)| recording.page_faults.is_none_or(|faults| faults.with_kernel));
    for name in names {
        sides.push(side(&archive, name, with_kernel, &mut code)?);
    }
    let report = LoadedReport::new(&archive, None).map_err(|failure| failure.message().to_owned())?;
    let comparison = report.comparison().map_err(|failure| failure.message().to_owned())?;
    let verdict = comparison.cpu_time(names[0], names[1]);
    let [a, b] = sides.as_slice() else { return Err("two variants are compared".to_owned()) };
    let tool = |side: &Side| side.profiles.first().map_or(Counts::default(), |profile| profile.tool);
    let caches = |side: &Side| side.profiles.first().map_or(Vec::new(), |profile| profile.caches.clone());
    Ok(Time {
        names,
        rows: time::rows(&a.profiles, &b.profiles),
        recordings: [a.profiles.len(), b.profiles.len()],
        tools: [tool(a), tool(b)],
        caches: [caches(a), caches(b)],
        through_runtime: [a.through_runtime, b.through_runtime],
        without_page_faults: a.without_page_faults.clone().or_else(|| b.without_page_faults.clone()),
        verdict,
        top,
        remarks: remarks(names, &sides, with_kernel),
    })
}

/// What is to be known of the recordings, each remark once.
fn remarks(names: [&str; 2], sides: &[Side], with_kernel: bool) -> Vec<String> {
    let mut all: Vec<String> = (!with_kernel).then(|| WITHOUT_KERNEL.to_owned()).into_iter().collect();
    for (name, side) in names.iter().zip(sides) {
        all.extend(side.remarks.iter().map(|remark| format!("Of {name}, {remark}.")));
    }
    all.dedup();
    all
}

/// The recordings of a variant, with the folders of their files.
fn recordings(archive: &Archive, name: &str) -> Vec<(PathBuf, Recording)> {
    let folder = archive.folder();
    let Some(variant) = archive.metadata().variants.iter().find(|variant| variant.name == name) else {
        return Vec::new();
    };
    let recording = |number| {
        let recording = functions::Recording::recorded(folder, &variant.slug, number)?;
        Some((functions::Recording::folder(folder, &variant.slug, number), recording))
    };
    (1..=REPEATS).filter_map(recording).collect()
}

fn side(archive: &Archive, name: &str, with_kernel: bool, code: &mut CodeNames) -> Result<Side, String> {
    let mut side =
        Side { profiles: Vec::new(), through_runtime: false, without_page_faults: None, remarks: Vec::new() };
    for (files, recording) in recordings(archive, name) {
        if let Some(reason) = &recording.refused {
            return Err(format!("the functions of {name} could not be counted: {reason}"));
        }
        side.through_runtime |= recording.through_runtime;
        side.remarks.extend(recording.remarks.iter().cloned());
        let mut profile = Profile::default();
        counts(&files, &recording, code, &mut profile).map_err(|reason| format!("{name}: {reason}"))?;
        match page_faults(&recording, with_kernel, code, &mut profile) {
            Ok(()) => {}
            Err(reason) => side.without_page_faults = Some(format!("of {name}, {reason}")),
        }
        side.profiles.push(profile);
    }
    match side.profiles.is_empty() {
        true => Err(format!(
            "the functions of {name} were not counted in {}; widthwise compare --resume {} --functions counts them",
            short(archive.folder()),
            output::word(archive.folder())
        )),
        false => Ok(side),
    }
}

/// Reads valgrind's files of a recording.
fn counts(
    folder: &Path,
    recording: &Recording,
    code: &mut CodeNames,
    profile: &mut Profile,
) -> Result<(), String> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut logs: BTreeMap<u32, String> = BTreeMap::new();
    let unreadable = |error: std::io::Error| format!("{}: {error}", short(folder));
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(unreadable)?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", short(&path));
        if name.ends_with(COUNTS) {
            let bytes = unpacked(&path).map_err(|error| failed(&error))?;
            outputs.push(callgrind::read(&bytes).map_err(|error| failed(&error))?);
        } else if let Some(number) = name.strip_suffix(SYSTEM_CALLS) {
            let bytes = unpacked(&path).map_err(|error| failed(&error))?;
            let process = number.trim_end_matches('.').parse().map_err(|error| failed(&error))?;
            logs.insert(process, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    let maps = recording.through_runtime.then(|| Mappings::of_processes(&logs));
    profile.add(&outputs, maps.as_ref(), &recording.programs, code).map_err(|error| error.to_string())
}

fn unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = zstd::Decoder::new(std::fs::File::open(path)?)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(std::io::Error::other(format!("it has more than {LARGEST} bytes"))),
        false => Ok(bytes),
    }
}

/// Adds the page faults of a recording, or says why there are none.
fn page_faults(
    recording: &Recording,
    with_kernel: bool,
    code: &mut CodeNames,
    profile: &mut Profile,
) -> Result<(), String> {
    let missing =
        || recording.page_faults_missing.clone().unwrap_or_else(|| "they were not recorded".to_owned());
    let faults = recording.page_faults.as_ref().ok_or_else(missing)?;
    if faults.lost > 0 {
        return Err(format!("the kernel had no room for {} reports", faults.lost));
    }
    for site in &faults.sites {
        if site.path == KERNEL && !with_kernel {
            continue;
        }
        let counts = Counts { page_faults: site.faults, ..Counts::default() };
        profile.add_code(&site.path, site.offset, counts, &recording.programs, code);
    }
    Ok(())
}

/// The two variants whose functions are shown: those that are named, or the baseline and the first other variant that was recorded.
///
/// # Errors
/// There is no such campaign, or other names than two are given.
pub fn names(wanted: &[String], campaign: &Path) -> Result<[String; 2], Failure> {
    if let [a, b] = wanted {
        return Ok([a.clone(), b.clone()]);
    }
    if !wanted.is_empty() {
        return Err(Failure::request("--time compares two variants of a campaign: name both, or none"));
    }
    let archive = Archive::read(campaign).map_err(Failure::request)?;
    let metadata = archive.metadata();
    let role = |wanted| metadata.variants.iter().filter(move |variant| variant.role == wanted);
    let is_recorded = |slug: &str| {
        functions::Recording::recorded(archive.folder(), slug, 1)
            .is_some_and(|recording| recording.refused.is_none())
    };
    let baseline = role(widthwise_experiment::Role::Baseline).next();
    let mut others = role(widthwise_experiment::Role::Variant);
    let other = others.clone().find(|variant| is_recorded(&variant.slug)).or_else(|| others.next());
    match (baseline, other) {
        (Some(baseline), Some(other)) => Ok([baseline.name.clone(), other.name.clone()]),
        _ => Err(Failure::request(format!("{} has no two variants to compare", short(archive.folder())))),
    }
}
