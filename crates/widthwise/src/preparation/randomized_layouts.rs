//! The layouts of the variants: which builds they take, and what they are started with.

use std::path::{Path, PathBuf};

use widthwise_experiment::model::{Experiment, Variant};
use widthwise_experiment::VariantStatus;
use widthwise_measure::build::layout::{self, Layout};
use widthwise_measure::run::launch_spec::LaunchSpec;

use crate::failure::Failure;
use crate::preparation::ready::Ready;

/// A build that is wanted.
pub struct Wanted<'a> {
    pub variant: &'a Variant,
    /// The linker script of its layout, if it has one.
    pub script: Option<PathBuf>,
    /// The variant's name and its layout, for messages.
    pub name: String,
}

/// How many layouts each variant has: one, if layouts are not random.
pub fn count(experiment: &Experiment) -> usize {
    experiment.layouts.max(1) as usize
}

/// All builds: each layout of the first variant, of the second, and so on; at last those of the A/A control.
pub fn wanted<'a>(experiment: &'a Experiment, cache: &Path) -> Result<Vec<Wanted<'a>>, Failure> {
    let variants = &experiment.variants;
    if experiment.layouts < 2 {
        let plain = |variant: &'a Variant| Wanted { variant, script: None, name: variant.name.clone() };
        return Ok(variants.iter().map(plain).collect());
    }
    let scripts = |of_control| -> Result<Vec<PathBuf>, Failure> {
        let script = |number| Layout { number, of_control }.write(cache).map_err(Failure::request);
        (1..=experiment.layouts).map(script).collect()
    };
    let of = |variant: &'a Variant, name: String, scripts: Vec<PathBuf>| {
        (1..).zip(scripts).map(move |(number, script)| Wanted {
            variant,
            script: Some(script),
            name: layout_name(&name, number),
        })
    };
    let own = scripts(false)?;
    let mut all: Vec<Wanted> =
        variants.iter().flat_map(|variant| of(variant, variant.name.clone(), own.clone())).collect();
    if let Some(baseline) = variants.iter().find(|variant| variant.name == experiment.baseline) {
        all.extend(of(baseline, experiment.control(), scripts(true)?));
    }
    Ok(all)
}

fn layout_name(variant: &str, number: u32) -> String {
    format!("{variant}, layout {number}")
}

/// Whether a build's name is that of this variant, or of one of its layouts.
pub fn is_of(name: &str, variant: &str) -> bool {
    name.strip_prefix(variant).is_some_and(|rest| rest.is_empty() || rest.starts_with(", layout "))
}

/// A variant with all its layouts. If one of them cannot be started, the variant cannot.
pub fn together(layouts: Vec<Ready>) -> Option<Ready> {
    let is_alone = layouts.len() == 1;
    let mut layouts = layouts.into_iter();
    let mut all = layouts.next()?;
    if !is_alone {
        all.start = all.start.map_err(|status| at(1, status));
    }
    for (number, mut next) in (2..).zip(layouts) {
        if let (Some(all), Some(next)) = (&mut all.build, &next.build) {
            all.seconds += next.seconds;
            all.cached &= next.cached;
        }
        next.warnings.retain(|warning| !all.warnings.contains(warning));
        all.warnings.append(&mut next.warnings);
        match next.start {
            Ok(start) => all.further_layouts.push(start),
            Err(status) if all.start.is_ok() => all.start = Err(at(number, status)),
            Err(_) => {}
        }
    }
    Some(all)
}

/// A status with the layout that it is about.
fn at(number: u32, status: VariantStatus) -> VariantStatus {
    let of = |reason: String| format!("layout {number}: {reason}");
    match status {
        VariantStatus::BuildFailed(reason) => VariantStatus::BuildFailed(of(reason)),
        VariantStatus::Excluded(reason) => VariantStatus::Excluded(of(reason)),
        VariantStatus::Unsupported(reason) => VariantStatus::Unsupported(of(reason)),
        other => other,
    }
}

/// Checks that the linker read the script: in the program that is started, or in one that it is given, if the build made
/// them; otherwise in anything that the build made.
pub fn check(experiment: &Experiment, start: &LaunchSpec, build: Option<&Path>) -> Result<(), String> {
    let Some(build) = build.filter(|_| experiment.layouts > 1) else { return Ok(()) };
    let words = start.arguments.iter().skip(1).map(PathBuf::from).filter(|word| word.is_absolute());
    let own: Vec<PathBuf> = std::iter::once(start.file.clone())
        .chain(words)
        .filter(|file| file.starts_with(build) && widthwise_machine::elf::read(file).is_ok())
        .collect();
    let is_made = |file: &PathBuf| layout::has_layout(file);
    let found = if own.is_empty() { anything(build, &is_made) } else { own.iter().any(is_made) };
    if found {
        return Ok(());
    }
    Err("its layout cannot be changed, because the build does not pass $LDFLAGS to the linker; leave out \
         --randomize-layout, or have the build use $CFLAGS and $LDFLAGS"
        .to_owned())
}

/// Whether any file below the folder is as wanted.
fn anything(folder: &Path, is_wanted: &impl Fn(&PathBuf) -> bool) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => anything(&entry.path(), is_wanted),
        Ok(kind) if kind.is_file() => is_wanted(&entry.path()),
        _ => false,
    })
}
