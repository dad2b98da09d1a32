//! Turns a variant into a program to start: fills in placeholders, finds the file, makes the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use widthwise_experiment::bytes;
use widthwise_experiment::model::{Directory, Experiment, Thp, Variant};
use widthwise_experiment::placeholder;
use widthwise_machine::{abi, allocator, elf};
use widthwise_x32run as x32run;

use crate::run::launch_spec::LaunchSpec;

/// The paths of one variant.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    /// `{build}`, where there is a build.
    pub build: Option<&'a Path>,
    /// `{source}`, where there is a source.
    pub source: Option<&'a Path>,
    /// The absolute folder that relative paths start from.
    pub here: &'a Path,
    /// `{work}`: the directory of a run that needs a fresh one.
    pub work: &'a Path,
}

/// Why a variant cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready {
    /// The reason, as a sentence.
    pub reason: String,
    /// There is no such variant of a correct program here: this fails nothing, the variant is only missing.
    pub unavailable: bool,
}

impl From<String> for Unready {
    fn from(reason: String) -> Unready {
        Unready { reason, unavailable: false }
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

/// A variant's command as text for `sh`, its placeholders filled in.
pub fn shell_text(experiment: &Experiment, variant: &Variant, text: &str, places: &Places) -> String {
    placeholder::fill_shell(text, &values(experiment, variant, places))
}

/// The words of a variant's run command, their placeholders filled in.
///
/// # Errors
/// The command cannot be split into words.
fn words(experiment: &Experiment, variant: &Variant, places: &Places) -> Result<Vec<OsString>, String> {
    // Split first, filled in after: a folder with a space in its name stays one word.
    let words = shell_words::split(&experiment.program.run)
        .map_err(|error| format!("the run command `{}`: {error}", experiment.program.run))?;
    let values = values(experiment, variant, places);
    let fill = |(number, word): (usize, &String)| match is_shell_text(&words, number) {
        true => placeholder::fill_shell(word, &values),
        false => placeholder::fill(word, &values),
    };
    Ok(words.iter().enumerate().map(|word| bytes::os(&fill(word))).collect())
}

/// A variant's run command before its build folder is known: that of a training run, which has the conditions of a measured one.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCommand {
    experiment: Box<Experiment>,
    variant: Box<Variant>,
    source: Option<PathBuf>,
    here: PathBuf,
    /// What decides what the run does, besides the build.
    identity: Vec<OsString>,
}

impl RunCommand {
    /// What decides what the run does, besides the build: words, standard input, inputs, environment, directory, setup, teardown.
    pub fn identity(&self) -> &[OsString] {
        &self.identity
    }

    /// The run, with this build folder, and a fresh directory `work` if it is to have one.
    ///
    /// # Errors
    /// It cannot be started; the reason is a sentence.
    pub fn ready(&self, build: &Path, work: &Path) -> Result<LaunchSpec, String> {
        let places = Places { build: Some(build), source: self.source.as_deref(), here: &self.here, work };
        ready(&self.experiment, &self.variant, &places).map_err(|unready| unready.reason)
    }

    /// The longest it may last.
    pub fn timeout(&self) -> Option<Duration> {
        self.experiment.launch.timeout
    }
}

/// The run command of a variant, of which a build can be trained. Variants that share a build have one: it is without their
/// allocator and their own environment. `digest` is of what a file or a folder contains.
///
/// # Errors
/// The command cannot be split into words.
pub fn run_command(
    experiment: &Experiment,
    variant: &Variant,
    places: &Places,
    digest: &dyn Fn(&Path) -> String,
) -> Result<RunCommand, String> {
    let variant = Variant {
        allocator: "glibc".to_owned(),
        environment: BTreeMap::new(),
        thp: Thp::System,
        ..variant.clone()
    };
    let launch = &experiment.launch;
    let mut identity = words(experiment, &variant, places)?;
    let values = values(experiment, &variant, places);
    for file in launch.stdin.iter().chain(&launch.inputs).map(|file| places.here.join(file)) {
        identity.extend([digest(&file).into(), file.into_os_string()]);
    }
    // A script of the user's, which is not built.
    let own = identity.first().map(|word| directory(experiment, places).join(word));
    identity.extend(own.filter(|file| file.is_file()).map(|file| digest(&file).into()));
    for (name, value) in &launch.environment {
        identity.extend([bytes::os(name), bytes::os(&placeholder::fill(value, &values))]);
    }
    for text in launch.setup.iter().chain(&launch.teardown) {
        identity.push(bytes::os(&placeholder::fill_shell(text, &values)));
    }
    identity.push(directory(experiment, places).into_os_string());
    Ok(RunCommand {
        experiment: Box::new(experiment.clone()),
        variant: Box::new(variant),
        source: places.source.map(Path::to_owned),
        here: places.here.to_owned(),
        identity,
    })
}

/// Whether the word is text for a shell: `sh -c WORD`.
fn is_shell_text(words: &[String], number: usize) -> bool {
    const SHELLS: [&str; 6] = ["sh", "dash", "bash", "ksh", "zsh", "ash"];
    let shell =
        words.first().and_then(|word| word.rsplit('/').next()).is_some_and(|name| SHELLS.contains(&name));
    let option = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    shell && number > 1 && option(&words[number - 1]) && !words[1..number - 1].iter().any(option)
}

fn values<'a>(experiment: &Experiment, variant: &Variant, places: &Places) -> BTreeMap<&'a str, String> {
    let mut values = BTreeMap::from([
        ("variant", variant.name.clone()),
        ("work", bytes::text(directory(experiment, places))),
    ]);
    let mut put = |word, value: Option<String>| {
        if let Some(value) = value {
            values.insert(word, value);
        }
    };
    let text = |path: &Path| bytes::text(path);
    put("build", places.build.map(text));
    put("source", places.source.map(text));
    put("binary", variant.binary.as_ref().map(|path| text(&places.here.join(path))));
    put("abi", abi_name(variant, places.here).map(str::to_owned));
    values
}

/// The variant's ABI: a finished binary's is in its header, unless its name says it. Its path begins in `here`.
pub fn abi_name(variant: &Variant, here: &Path) -> Option<&'static str> {
    let of_binary = || abi_of(&here.join(variant.binary.as_ref()?)).ok().map(|abi| abi.name);
    variant.abi.map(|abi| abi.name).or_else(of_binary)
}

/// Refuses `{abi}` where a finished binary has none, such as a script.
fn check_abi(
    experiment: &Experiment,
    variant: &Variant,
    values: &BTreeMap<&str, String>,
) -> Result<(), String> {
    let launch = &experiment.launch;
    let commands = [Some(&experiment.program.run), launch.setup.as_ref(), launch.teardown.as_ref()];
    let variables = launch.environment.values().chain(variant.environment.values());
    let is_abi = |text: &&String| placeholder::used(text).any(|word| word == "abi");
    match commands.into_iter().flatten().chain(variables).find(is_abi) {
        Some(text) if !values.contains_key("abi") => Err(format!(
            "{{abi}} means nothing in `{text}`: the program's file has no ABI that widthwise knows"
        )),
        _ => Ok(()),
    }
}

/// Makes a variant ready to start.
///
/// # Errors
/// Why this variant cannot be measured here.
pub fn ready(experiment: &Experiment, variant: &Variant, places: &Places) -> Result<LaunchSpec, Unready> {
    let launch = &experiment.launch;
    let arguments = words(experiment, variant, places)?;
    let values = values(experiment, variant, places);
    check_abi(experiment, variant, &values)?;
    let name = arguments.first().ok_or("the run command is empty".to_owned())?;
    let directory = directory(experiment, places);
    // A program in the directory of the run, as `execve` finds it. A fresh directory has only the inputs.
    let folder = if launch.directory == Directory::Fresh { places.here } else { &directory };
    let file = find(name, folder)
        .map_err(|reason| reason + places.build.map_or("", |_| "; does the build put it there?"))?;
    let fill = |text: &Option<String>| text.as_ref().map(|text| placeholder::fill_shell(text, &values));
    let runtime = x32run::runtime_for(&file).map_err(|error| Unready {
        reason: format!("the x32 runtime can be written nowhere: {error}"),
        unavailable: true,
    })?;
    let inputs: Vec<PathBuf> = launch.inputs.iter().map(|input| places.here.join(input)).collect();
    Ok(LaunchSpec {
        runtime,
        environment: environment(experiment, variant, &file, &values)
            .map_err(|reason| Unready { reason, unavailable: true })?,
        fresh: launch.directory == Directory::Fresh,
        inputs,
        stdin: launch.stdin.as_ref().map_or_else(|| "/dev/null".into(), |path| places.here.join(path)),
        setup: fill(&launch.setup),
        teardown: fill(&launch.teardown),
        thp: variant.thp,
        no_aslr: launch.no_aslr,
        exit_status: launch.exit_status.unwrap_or(0),
        directory,
        file,
        arguments,
    })
}

/// The file of a command's first word: a path, which may be relative to `folder`, or a name on the PATH.
///
/// # Errors
/// There is none; the reason is a sentence.
pub fn find(name: &OsStr, folder: &Path) -> Result<PathBuf, String> {
    find_file(name, folder).map_err(|reason| match is_assignment(&bytes::text(name)) {
        true => {
            let word = bytes::shown(&bytes::text(name));
            let word = shell_words::quote(&word);
            format!("the command begins with {word}, and no shell reads it: set the variable with --set-env {word}")
        }
        false => reason,
    })
}

/// Whether a shell would read a command's first word as an assignment to a variable (POSIX.1-2017, 2.9.1 and 3.235).
pub fn is_assignment(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
    })
}

fn find_file(name: &OsStr, folder: &Path) -> Result<PathBuf, String> {
    if name.as_bytes().contains(&b'/') {
        let path = folder.join(name);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("there is no program {}", bytes::shown_path(&path)))
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let name = bytes::shown(&bytes::text(name));
            format!("there is no program \"{name}\" on the PATH; a file needs its path: ./{name}")
        })
}

/// The environment of the variant's program: the user's own, the experiment's, the allocator's, the variant's.
fn environment(
    experiment: &Experiment,
    variant: &Variant,
    file: &Path,
    values: &BTreeMap<&str, String>,
) -> Result<BTreeMap<OsString, OsString>, String> {
    let filled = |variables: &BTreeMap<String, String>| -> Vec<(OsString, OsString)> {
        let pair = |(name, value): (&String, &String)| {
            (bytes::os(name), bytes::os(&placeholder::fill(value, values)))
        };
        variables.iter().map(pair).collect()
    };
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    environment.extend(filled(&experiment.launch.environment));
    if variant.allocator != "glibc" {
        let object = preload(variant, file)?;
        preload_first(&mut environment, object.as_os_str());
    }
    environment.extend(filled(&variant.environment));
    Ok(environment)
}

/// Puts an object before everything else that is preloaded.
pub(crate) fn preload_first(environment: &mut BTreeMap<OsString, OsString>, object: &OsStr) {
    let mut list = object.to_owned();
    if let Some(others) = environment.get(OsStr::new("LD_PRELOAD")) {
        list.push(" ");
        list.push(others);
    }
    environment.insert("LD_PRELOAD".into(), list);
}

/// The allocator's shared object for the ABI of that file.
fn preload(variant: &Variant, file: &Path) -> Result<PathBuf, String> {
    let facts =
        elf::read(file).map_err(|error| format!("{} cannot be preloaded: {error}", variant.allocator))?;
    if !facts.is_dynamic() {
        return Err(format!("{} cannot be preloaded: the program is statically linked", variant.allocator));
    }
    // The variant's own ABI, where it has one: the file may be a shell that starts the program.
    let own = variant.abi.map(|abi| abi.name);
    let abi = own.or_else(|| facts.abi().map(|abi| abi.name)).unwrap_or("this");
    Ok(allocator(variant, abi)?.unwrap_or_default())
}

/// The shared object of the variant's allocator for an ABI; none for the C library's own.
///
/// # Errors
/// It is not installed; the message names what provides it.
pub fn allocator(variant: &Variant, abi: &str) -> Result<Option<PathBuf>, String> {
    if variant.allocator == "glibc" {
        return Ok(None);
    }
    match allocator::find(&variant.allocator, abi) {
        Some(Ok(path)) => Ok(Some(path)),
        Some(Err(unavailable)) => Err(match &unavailable.fix {
            Some(fix) => format!("{unavailable}; {fix}"),
            None => unavailable.to_string(),
        }),
        None => Err(format!("no allocator \"{}\" is known for {abi}", variant.allocator)),
    }
}

/// The ABI of a finished binary, by its own header.
///
/// # Errors
/// Why the ABI is not one that widthwise knows, as a sentence.
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
