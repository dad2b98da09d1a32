//! Begins and resumes a campaign: completes the request, so that the archive can repeat it, and checks that nothing changed.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use widthwise_archive::{Archive, VariantRow};
use widthwise_experiment::model::{Directory, Experiment};
use widthwise_experiment::request::Binary;
use widthwise_experiment::source::Language;
use widthwise_experiment::{
    bytes, placeholder, spec, spec_text, Axis, Facts, Located, ProgramSource, Request, SourceLocation,
};
use widthwise_machine::compiler::{self, Compiler};
use widthwise_machine::record::{self, MachineRecord};
use widthwise_measure::program;

use crate::environment;
use crate::failure::Failure;
use crate::output::{current_folder, short};
use crate::programs;

/// The default compiler and those that a request names, or all.
pub fn compilers(request: &Request) -> Vec<Compiler> {
    let names: Vec<&str> = compiler_names(request).map(|name| name.value.as_str()).collect();
    compiler::discover_for(&names)
}

/// The values of the axis of compilers, in the request and in single variants.
fn compiler_names(request: &Request) -> impl Iterator<Item = &Located<String>> {
    let of_variants = request.variants.iter().filter_map(|variant| variant.value.point.get(&Axis::Compiler));
    request.axes.get(&Axis::Compiler).into_iter().flatten().chain(of_variants)
}

/// Completes the request with its seed and its compilers, and resolves it to an experiment. Its files must exist.
pub fn resolve(mut request: Request, compilers: &[Compiler]) -> Result<(Request, Experiment), Failure> {
    check_files(&request)?;
    name_compilers(&mut request, compilers);
    let facts = Facts {
        compilers: compilers.iter().map(|compiler| compiler.name.clone()).collect(),
        default_seed: random_seed(),
        folder: PathBuf::new(),
    };
    let experiment = match request.resolve(&facts) {
        Err(error) if error.is_unknown("baseline") => {
            // The variants' names have the compilers' full names.
            name_compilers_of_baseline(&mut request, compilers);
            let resolved = request.resolve(&facts);
            resolved
                .map_err(|other| Failure::request(if other.is_unknown("baseline") { error } else { other }))?
        }
        resolved => resolved.map_err(Failure::request)?,
    };
    // The archive keeps the seed, so that its report and a repetition have the same orders and intervals.
    request.measure.seed.get_or_insert_with(|| Located::new(experiment.seed, SourceLocation::Flag("--seed")));
    keep_compilers(&mut request, &experiment);
    // Every report and each resumed session reads it again.
    spec::parse(&spec_text(&request), "the campaign's widthwise.toml").map_err(Failure::request)?;
    Ok((request, experiment))
}

/// Refuses to resume a campaign whose sources, programs, inputs or environment changed, or whose machine did.
pub fn check_fingerprint(
    archive: &Archive,
    mut fingerprint: BTreeMap<String, String>,
    machine: &MachineRecord,
) -> Result<(), Failure> {
    let folder = archive.folder();
    environment::omit_if_list_differs(&archive.metadata().fingerprint, &mut fingerprint);
    let mut changes = archive.changed(&fingerprint);
    let was = archive.metadata().machine.clone();
    if let Ok(was) = serde_json::from_value::<MachineRecord>(was) {
        changes.extend(record::changes(&was, machine));
    }
    if changes.is_empty() {
        return Ok(());
    }
    Err(Failure::request(format!(
        "{} cannot be resumed, since not everything is as it was:\n         {}\n       a new campaign measures what is here \
         now",
        short(folder),
        changes.join("\n         ")
    )))
}

/// Every variant as the archive keeps it, the A/A control last.
pub fn variant_rows(experiment: &Experiment) -> Vec<VariantRow> {
    let names = experiment.variants.iter().map(|variant| variant.name.clone()).chain([experiment.control()]);
    names.map(|name| VariantRow::new(&name, experiment.role(&name))).collect()
}

/// Missing files are an error of the request, reported before anything is created: the source or the finished binaries,
/// the program of the run command (if it is known before a build), the inputs, the working directory.
pub fn check_files(request: &Request) -> Result<(), Failure> {
    let here = &current_folder()?;
    let there = |location: &SourceLocation, path: &Path| match std::fs::metadata(here.join(path)) {
        Ok(data) => Ok(data),
        Err(error) => Err(Failure::request(format!("{location}: {}: {error}", bytes::shown_path(path)))),
    };
    if let Some(Located { value: ProgramSource::Path(path), location }) = &request.program.source {
        let data = there(location, path)?;
        if let Some(what) = programs::special(&data) {
            let path = bytes::shown_path(path);
            return Err(Failure::request(format!("{location}: {path} is {what}, and no source")));
        }
        let is_folder = data.is_dir();
        if is_folder && Language::of(path).is_some() && request.program.build.is_none() {
            return Err(Failure::request(format!(
                "{location}: {} is a folder, and it is not known how it is built; say it, such as --build make --run \
                 '{{build}}/program'",
                bytes::shown_path(path)
            )));
        }
    }
    for Binary { file, .. } in &request.program.binaries {
        let data = there(&file.location, &file.value)?;
        let what = if data.is_dir() { Some("a folder") } else { programs::special(&data) };
        if let Some(what) = what {
            let path = bytes::shown_path(&file.value);
            return Err(Failure::request(format!("{}: {path} is {what}, not a program", file.location)));
        }
    }
    let started = request.program.binaries.iter().filter(|_| starts_the_binary(request));
    for Binary { file, .. } in started {
        if there(&file.location, &file.value)?.permissions().mode() & 0o111 == 0 {
            let path = bytes::shown_path(&file.value);
            return Err(Failure::request(format!(
                "{}: {path} may not be executed (chmod +x); if something else starts it, name that: --run 'COMMAND {{binary}}'",
                file.location
            )));
        }
    }
    for input in &request.run.inputs {
        there(&input.location, &input.value)?;
    }
    if let Some(Located { value, location }) = &request.run.stdin {
        let metadata = there(location, value)?;
        let path = bytes::shown_path(value);
        if metadata.file_type().is_fifo() || metadata.file_type().is_socket() {
            return Err(Failure::request(format!(
                "{location}: {path} is a pipe, which the first run would read to its end; write it to a file first"
            )));
        }
        if metadata.is_dir() {
            return Err(Failure::request(format!(
                "{location}: {path} is a folder, which no program can read as its input"
            )));
        }
    }
    if let Some(Located { value: Directory::Path(path), location }) = &request.run.directory {
        there(location, path)?;
    }
    check_run_file(request, here)
}

/// Whether the run command starts a finished binary itself, as it does by default.
fn starts_the_binary(request: &Request) -> bool {
    let Some(run) = &request.program.run else { return true };
    shell_words::split(&run.value).is_ok_and(|words| words.first().is_some_and(|word| word == "{binary}"))
}

/// The run command's program, if it is known before a build.
fn check_run_file(request: &Request, here: &Path) -> Result<(), Failure> {
    let Some(run) = &request.program.run else { return Ok(()) };
    let folder = match &request.run.directory {
        Some(Located { value: Directory::Path(path), .. }) => &here.join(path),
        _ => here,
    };
    let words = shell_words::split(&run.value).unwrap_or_default();
    match words.first() {
        // What a build makes is looked for after the build.
        Some(name) if placeholder::used(name).next().is_none() => {
            let name = bytes::os(&placeholder::fill(name, &BTreeMap::new()));
            let is_of_build =
                request.program.binaries.is_empty() && !program::is_assignment(&bytes::text(&name));
            let hint = if is_of_build { "; what a build makes lies in {build}" } else { "" };
            program::find(&name, folder)
                .map(drop)
                .map_err(|reason| Failure::request(format!("{}: {reason}{hint}", run.location)))
        }
        _ => Ok(()),
    }
}

/// Replaces `gcc` and `clang` by the full names of the compilers that they are here, so that a resumed campaign has the same ones.
fn name_compilers(request: &mut Request, compilers: &[Compiler]) {
    let points = request.variants.iter_mut().map(|variant| &mut variant.value.point);
    let points = points.chain(request.excludes.iter_mut().map(|exclude| &mut exclude.value));
    let of_points = points.filter_map(|point| point.get_mut(&Axis::Compiler));
    for name in request.axes.get_mut(&Axis::Compiler).into_iter().flatten().chain(of_points) {
        if let Ok(found) = compiler::find(compilers, &name.value) {
            name.value.clone_from(&found.name);
        }
    }
}

/// The same in the name of the baseline, `x86-64/gcc`.
fn name_compilers_of_baseline(request: &mut Request, compilers: &[Compiler]) {
    if let Some(name) = &mut request.measure.baseline {
        let full = |part| compiler::find(compilers, part).map_or(part, |found| found.name.as_str());
        name.value = name.value.split('/').map(full).collect::<Vec<_>>().join("/");
    }
}

/// Replaces "all" by the names of the compilers that exist now, so that a resumed campaign has the same ones.
fn keep_compilers(request: &mut Request, experiment: &Experiment) {
    if !request.axes.contains_key(&Axis::Compiler) {
        return;
    }
    let mut names: Vec<Located<String>> = Vec::new();
    for name in experiment.variants.iter().filter_map(|variant| variant.compiler.clone()) {
        if !names.iter().any(|known| known.value == name) {
            names.push(Located::new(name, SourceLocation::Flag("--compiler")));
        }
    }
    request.axes.insert(Axis::Compiler, names);
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library's own randomness is enough to tell campaigns apart. Spec files hold 63-bit numbers; fewer
    // digits are easier to type again.
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
}

/// The current local time: RFC 3339, to the second.
pub fn now() -> String {
    let format = &time::format_description::well_known::Rfc3339;
    let now = time::OffsetDateTime::now_local().unwrap_or_else(|_| time::OffsetDateTime::now_utc());
    now.replace_nanosecond(0).unwrap_or(now).format(format).unwrap_or_default()
}

/// The time at which a campaign was created.
pub fn epoch(created: &str) -> std::time::SystemTime {
    time::OffsetDateTime::parse(created, &time::format_description::well_known::Rfc3339)
        .map_or_else(|_| std::time::SystemTime::now(), Into::into)
}

/// The experiment of the campaign in that folder, from the spec in its archive.
pub fn experiment(folder: &Path, spec_text: &str, seed: u64) -> Result<Experiment, Failure> {
    let request = spec::parse(spec_text, &short(&folder.join("widthwise.toml"))).map_err(Failure::request)?;
    // These compilers existed when the campaign began; only `--resume` needs them now.
    let compilers = compiler_names(&request).map(|located| located.value.clone()).collect();
    let facts = Facts { compilers, default_seed: seed, folder: Default::default() };
    request.resolve(&facts).map_err(Failure::request)
}
