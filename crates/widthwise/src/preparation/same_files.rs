//! Builds that made the same file: a build that ignores the compiler or its options leaves nothing to compare.

use std::path::{Path, PathBuf};

use widthwise_experiment::model::{Build, Experiment, Origin, Variant};
use widthwise_machine::elf;
use widthwise_measure::build::source;
use widthwise_report::format::named;

use crate::preparation::ready::Ready;

/// A program that a build made.
struct Made<'e> {
    variant: &'e Variant,
    file: PathBuf,
    digest: String,
}

/// Warns of variants whose own builds made the same program, with the first of them. `builds` is the folder of all builds. Variants that
/// differ in nothing that changes a build (allocator, environment, huge pages) share one build, and so one file.
pub fn warn(experiment: &Experiment, variants: &mut [Ready], builds: &Path) {
    let mut same: Vec<(usize, Vec<Made>)> = Vec::new();
    for (place, (variant, ready)) in experiment.variants.iter().zip(variants.iter()).enumerate() {
        let Some(file) = made(ready, builds) else { continue };
        if same.iter().flat_map(|(_, all)| all).any(|known| known.file == file) {
            continue;
        }
        let Some(digest) = digest(ready, &file) else { continue };
        let made = Made { variant, file, digest };
        match same.iter_mut().find(|(_, all)| all[0].digest == made.digest) {
            Some((_, all)) => all.push(made),
            None => same.push((place, vec![made])),
        }
    }
    for (place, all) in same.iter().filter(|(_, all)| all.len() > 1) {
        let names: Vec<String> = all.iter().map(|made| made.variant.name.clone()).collect();
        let why = match is_compiled_by_us(experiment) {
            true => "what differs in their builds does not change this program".to_owned(),
            false => {
                format!("does the build use {}? Shared libraries of its own are not compared", differing(all))
            }
        };
        variants[*place].warnings.push(format!("{} are the same file, byte for byte: {why}", named(&names)));
    }
}

/// The program of a variant, if its build made it. A shell or another starter has it among its words. A script that starts the
/// program is the same in every build.
fn made(ready: &Ready, builds: &Path) -> Option<PathBuf> {
    let start = ready.start.as_ref().ok()?;
    let words = start.arguments.iter().skip(1).map(PathBuf::from);
    std::iter::once(start.file.clone())
        .chain(words)
        .find(|file| file.starts_with(builds) && elf::read(file).is_ok())
}

/// The digest of a program, which the build's note has unless something else starts it.
fn digest(ready: &Ready, file: &Path) -> Option<String> {
    let is_started = ready.start.as_ref().is_ok_and(|start| start.file == file);
    let noted = ready.build.as_ref().filter(|_| is_started).and_then(|note| note.digest.clone());
    noted.or_else(|| source::digest(file).ok())
}

/// Whether widthwise calls the compiler itself, with all options.
fn is_compiled_by_us(experiment: &Experiment) -> bool {
    matches!(&experiment.program.origin, Origin::Source { build: Build::Compile { .. }, .. })
}

/// The build variables in which the variants differ.
fn differing(all: &[Made]) -> String {
    let differ = |is_same: fn(&Variant, &Variant) -> bool| {
        all.iter().any(|made| !is_same(all[0].variant, made.variant))
    };
    let has_options = differ(|a, b| a.flags.cflags == b.flags.cflags && a.flags.cxxflags == b.flags.cxxflags)
        || differ(|a, b| a.flags.profile_guided == b.flags.profile_guided);
    let has_compilers = differ(|a, b| a.compiler == b.compiler && a.abi == b.abi);
    let has_linker_options = differ(|a, b| a.flags.ldflags == b.flags.ldflags);
    let variables = [
        (has_compilers, "$CC", "$CXX"),
        (has_options, "$CFLAGS", "$CXXFLAGS"),
        (has_linker_options, "$LDFLAGS", "$LDFLAGS"),
    ];
    let of = |name: fn(&(bool, &'static str, &'static str)) -> &'static str| {
        let names: Vec<String> =
            variables.iter().filter(|(is_used, ..)| *is_used).map(|one| name(one).to_owned()).collect();
        named(&names)
    };
    match (of(|one| one.1), of(|one| one.2)) {
        (c, cxx) if c == cxx => c,
        (c, cxx) => format!("{c} (C++: {cxx})"),
    }
}
