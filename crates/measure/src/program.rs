//! From a variant to something that can be started: placeholders filled in, the file found, the environment made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use widthwise_experiment::model::{Directory, Experiment, Variant};
use widthwise_experiment::placeholder;
use widthwise_machine::{abi, allocator, elf};
use widthwise_x32run as x32run;

use crate::run::Start;

/// Where things are for one variant.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    /// `{build}`, where there is a build.
    pub build: Option<&'a Path>,
    /// `{source}`, where there is a source.
    pub source: Option<&'a Path>,
    /// The folder that relative paths are relative to, absolute.
    pub here: &'a Path,
    /// `{work}`: the directory of a run that wants a fresh one.
    pub work: &'a Path,
}

/// Why a variant cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready {
    /// In words.
    pub reason: String,
    /// There is no such variant of a sound program here: it fails nothing, and is only missing.
    pub lack: bool,
}

impl From<String> for Unready {
    fn from(reason: String) -> Unready {
        Unready { reason, lack: false }
    }
}

/// The working directory of the experiment's runs.
pub fn directory(experiment: &Experiment, places: &Places) -> PathBuf {
    match &experiment.launch.directory {
        Directory::Here => places.here.to_owned(),
        Directory::Fresh => places.work.to_owned(),
        Directory::Path(path) => places.here.join(path),
    }
}

/// The run command of a variant, its placeholders filled in.
pub fn command(experiment: &Experiment, variant: &Variant, text: &str, places: &Places) -> String {
    placeholder::fill(text, &values(experiment, variant, places))
}

fn values<'a>(experiment: &Experiment, variant: &Variant, places: &Places) -> BTreeMap<&'a str, String> {
    let mut values = BTreeMap::from([
        ("variant", variant.name.clone()),
        ("work", directory(experiment, places).display().to_string()),
    ]);
    let mut put = |word, value: Option<String>| {
        if let Some(value) = value {
            values.insert(word, value);
        }
    };
    let text = |path: &Path| path.display().to_string();
    put("build", places.build.map(text));
    put("source", places.source.map(text));
    put("binary", variant.binary.as_ref().map(|path| text(&places.here.join(path))));
    put("abi", variant.abi.map(|abi| abi.name.to_owned()));
    values
}

/// Makes a variant ready to start.
///
/// # Errors
/// Why this variant cannot be measured here.
pub fn ready(experiment: &Experiment, variant: &Variant, places: &Places) -> Result<Start, Unready> {
    let launch = &experiment.launch;
    // Split first, filled in after: a folder with a space in its name stays one word.
    let words = shell_words::split(&experiment.program.run)
        .map_err(|error| format!("the run command `{}`: {error}", experiment.program.run))?;
    let values = values(experiment, variant, places);
    let arguments: Vec<String> = words.iter().map(|word| placeholder::fill(word, &values)).collect();
    let name = arguments.first().ok_or("the run command is empty".to_owned())?;
    let directory = directory(experiment, places);
    let file = find(name, places.here)
        .map_err(|reason| reason + places.build.map_or("", |_| "; does the build put it there?"))?;
    let fill = |text: &Option<String>| text.as_ref().map(|text| placeholder::fill(text, &values));
    let runtime = x32run::runtime_for(&file).map_err(|error| Unready {
        reason: format!("the x32 runtime can be written nowhere: {error}"),
        lack: true,
    })?;
    Ok(Start {
        runtime,
        environment: environment(experiment, variant, &file, &values)
            .map_err(|reason| Unready { reason, lack: true })?,
        fresh: (launch.directory == Directory::Fresh)
            .then(|| launch.inputs.iter().map(|input| places.here.join(input)).collect()),
        stdin: launch.stdin.as_ref().map_or_else(|| "/dev/null".into(), |path| places.here.join(path)),
        setup: fill(&launch.setup),
        teardown: fill(&launch.teardown),
        thp: variant.thp,
        fixed_addresses: launch.fixed_addresses,
        exit_status: launch.exit_status.unwrap_or(0),
        directory,
        file,
        arguments,
    })
}

/// The file that a command's first word names: by its path, which may be relative to `here`, or on the PATH.
///
/// # Errors
/// There is none, in words.
pub fn find(name: &str, here: &Path) -> Result<PathBuf, String> {
    if name.contains('/') {
        let path = here.join(name);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("there is no program {}", path.display()))
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("there is no program \"{name}\" on the PATH; a file needs its path: ./{name}"))
}

/// The environment of the variant's program: the user's own, the experiment's, the allocator's, the variant's.
fn environment(
    experiment: &Experiment,
    variant: &Variant,
    file: &Path,
    values: &BTreeMap<&str, String>,
) -> Result<BTreeMap<String, String>, String> {
    let filled = |variables: &BTreeMap<String, String>| -> Vec<(String, String)> {
        variables.iter().map(|(name, value)| (name.clone(), placeholder::fill(value, values))).collect()
    };
    // A variable whose name or value is no UTF-8 cannot stand in a report; the program does without.
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    environment.extend(filled(&experiment.launch.environment));
    if variant.allocator != "glibc" {
        let object = preload(variant, file)?;
        environment
            .entry("LD_PRELOAD".into())
            .and_modify(|list| *list = format!("{} {list}", object.display()))
            .or_insert_with(|| object.display().to_string());
    }
    environment.extend(filled(&variant.environment));
    Ok(environment)
}

/// The allocator's shared object for the ABI of that file.
fn preload(variant: &Variant, file: &Path) -> Result<PathBuf, String> {
    let facts =
        elf::read(file).map_err(|error| format!("{} cannot be preloaded: {error}", variant.allocator))?;
    if !facts.is_dynamic() {
        return Err(format!("{} cannot be preloaded: the program is statically linked", variant.allocator));
    }
    // The variant's own, where it has one: the file may be a shell that starts the program.
    let own = variant.abi.map(|abi| abi.name);
    let abi = own.or_else(|| facts.abi().map(|abi| abi.name)).unwrap_or("this");
    match allocator::find(&variant.allocator, abi) {
        Some(Ok(path)) => Ok(path),
        Some(Err(lack)) => Err(match &lack.mend {
            Some(mend) => format!("{lack}; {mend}"),
            None => lack.to_string(),
        }),
        None => Err(format!("no allocator \"{}\" is known for {abi}", variant.allocator)),
    }
}

/// The ABI of a finished binary, by its own header.
///
/// # Errors
/// Why it is none of ours, in words.
pub fn abi_of(file: &Path) -> Result<abi::Abi, String> {
    let facts = elf::read(file).map_err(|error| error.to_string())?;
    facts.abi().ok_or_else(|| {
        format!(
            "{}: ELF class {} machine {} is no ABI that widthwise knows ({})",
            file.display(),
            facts.class,
            facts.machine,
            abi::ABIS.iter().map(|abi| abi.name).collect::<Vec<_>>().join(", ")
        )
    })
}
