//! Before the first round: fetches the source, builds every variant and prepares its start.

mod randomized_layouts;
pub mod ready;
mod runs_folder;
mod same_files;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;
use widthwise_experiment::VariantStatus;

use widthwise_archive::{slug, BuildNote};
use widthwise_experiment::model::{Directory, Experiment, Variant};
use widthwise_experiment::{bytes, flag_set};
use widthwise_machine::abi::{self, AbiRow};
use widthwise_machine::compiler::Compiler;
use widthwise_machine::{ability, linking};
use widthwise_measure::build::source::{self, Source};
use widthwise_measure::build::{self, BuildError, Built, Order, Training};
use widthwise_measure::plan::Machine;
use widthwise_measure::program::{self, Places, Unready};
use widthwise_measure::run::launch_spec::LaunchSpec;
use widthwise_report::format::duration;

use crate::environment;
use crate::failure::Failure;
use crate::interrupt;
use crate::machines;
use crate::micro;
use crate::output::{current_folder, short};
use crate::preparation::randomized_layouts::Wanted;
use crate::preparation::ready::Ready;
use crate::preparation::runs_folder::RunsFolder;
use crate::progress::Progress;
use crate::toolchains::Toolchains;

/// The number of lines of a failed build's log in the error message.
const LAST_LINES: usize = 5;

/// Every variant, ready to start or with the reason why not.
pub struct Prepared {
    /// The source; none for finished binaries.
    pub source: Option<Source>,
    /// The variants, in order.
    pub variants: Vec<Ready>,
    /// How each layout of the A/A control is started, where programs have several layouts. Otherwise the control is the
    /// baseline's program.
    pub control: Vec<LaunchSpec>,
    /// The compilers that were used.
    pub compilers: Vec<Compiler>,
}

/// The folders of a session.
pub struct WorkDirectories {
    /// The folder of campaigns, in which builds are cached too.
    pub root: PathBuf,
    /// What relative paths are relative to.
    pub here: PathBuf,
    /// Where each run has a fresh directory, if it wants one.
    runs: Option<RunsFolder>,
    /// Number of parallel builds.
    jobs: usize,
}

impl WorkDirectories {
    /// The folder of the resumed campaign, or else the named one, which is created; as many builds at
    /// once as there are CPUs, if no number is given.
    pub fn new(
        directory: &Directory,
        resumed: Option<&Path>,
        named: &Path,
        jobs: Option<usize>,
    ) -> Result<WorkDirectories, Failure> {
        let here = current_folder()?;
        let root = match resumed {
            Some(campaign) => campaign.parent().map_or_else(|| here.clone(), Path::to_owned),
            None => here.join(named),
        };
        let unusable = |error: std::io::Error| {
            Failure::request(format!("{}: {error}; `--archive` names another folder", root.display()))
        };
        std::fs::create_dir_all(&root).map_err(unusable)?;
        let real = std::fs::canonicalize(&root).map_err(unusable)?;
        let runs = match directory {
            Directory::Fresh => Some(RunsFolder::new(&real).map_err(unusable)?),
            _ => None,
        };
        let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        Ok(WorkDirectories { root: real, here, runs, jobs })
    }
}

/// Fetches the source, builds the variants, prepares their start.
pub fn prepare(
    experiment: &Experiment,
    compilers: &[Compiler],
    place: &WorkDirectories,
    progress: &Progress,
) -> Result<Prepared, Failure> {
    interrupt::end_with_the_build().map_err(Failure::machine)?;
    let source = source::prepare(&experiment.program.origin, &place.root, &mut |text| progress.say(text))
        .map_err(Failure::request)?;
    let machines = machines::place(experiment, &place.root, progress)?;
    let toolchains = Toolchains::of(experiment, compilers);
    let wanted = randomized_layouts::wanted(experiment, &place.root)?;
    let mut builds = match &source {
        Some(source) => {
            let context = BuildContext { source, toolchains: &toolchains, place, progress };
            build_all(experiment, &machines, &wanted, &context)?
        }
        None => wanted.iter().map(|_| None).collect(),
    }
    .into_iter();
    let mut used = BTreeMap::new();
    let mut ready_layouts = |variant: &Variant| {
        let compiler = source.as_ref().and_then(|_| toolchains.chosen(variant).ok());
        if let Some(compiler) = compiler {
            used.insert((compiler.name.clone(), compiler.banner.clone()), compiler.clone());
        }
        let of_variant = builds.by_ref().take(randomized_layouts::count(experiment));
        let each =
            of_variant.map(|built| ready(experiment, variant, source.as_ref(), compiler, built, place));
        let mut ready = randomized_layouts::together(each.collect())?;
        put_on_machine(&mut ready, machine_of(experiment, &machines, variant));
        Some(ready)
    };
    let mut variants: Vec<Ready> = experiment.variants.iter().filter_map(&mut ready_layouts).collect();
    same_files::warn(experiment, &mut variants, &place.root.join("builds"));
    let mut control = Vec::new();
    let baseline = experiment.variants.iter().find(|variant| variant.name == experiment.baseline);
    if let Some(ready) = baseline.filter(|_| experiment.layouts > 1).and_then(ready_layouts) {
        match ready.start {
            Ok(start) => control.extend(std::iter::once(start).chain(ready.further_layouts)),
            // The campaign cannot do without its control, as little as without its baseline.
            Err(status) => {
                let is_baseline = |one: &&mut Ready| one.name == experiment.baseline && one.start.is_ok();
                variants
                    .iter_mut()
                    .find(is_baseline)
                    .into_iter()
                    .for_each(|one| one.start = Err(status.clone()));
            }
        }
    }
    Ok(Prepared { source, variants, control, compilers: used.into_values().collect() })
}

/// The machine of a variant; `machines` are in the order of the variants.
fn machine_of<'m>(
    experiment: &Experiment,
    machines: &'m [Result<Machine, String>],
    variant: &Variant,
) -> &'m Result<Machine, String> {
    let place = experiment.variants.iter().position(|one| one.name == variant.name);
    &machines[place.unwrap_or_default()]
}

/// Where a variant runs; what cannot run there is `Unsupported`.
fn put_on_machine(ready: &mut Ready, machine: &Result<Machine, String>) {
    match machine {
        Ok(machine) => {
            let refusal = ready.start.as_ref().ok().and_then(|start| machines::refusal(machine, start));
            if let Some(reason) = refusal {
                ready.start = Err(VariantStatus::Unsupported(reason));
            }
            ready.machine = machine.clone();
        }
        Err(reason) => ready.start = Err(VariantStatus::Unsupported(reason.clone())),
    }
    // The x32 runtime has no part in an emulated machine, whose kernel starts x32 programs itself.
    if ready.machine != Machine::Native {
        ready.warnings.retain(|warning| !warning.contains("x32run "));
    }
}

fn ready(
    experiment: &Experiment,
    variant: &Variant,
    source: Option<&Source>,
    compiler: Option<&Compiler>,
    built: Option<Result<Built, VariantStatus>>,
    place: &WorkDirectories,
) -> Ready {
    let work = place.runs.as_ref().map_or_else(|| place.here.clone(), RunsFolder::path);
    let (built, failed) = match built {
        Some(Ok(built)) => (Some(built), None),
        Some(Err(status)) => (None, Some(status)),
        None => (None, None),
    };
    let places = Places {
        build: built.as_ref().map(|built| built.tree.as_path()),
        source: source.map(|source| source.path.as_path()),
        here: &place.here,
        work: &work,
    };
    let start = match failed {
        Some(status) => Err(status),
        None => program::ready(experiment, variant, &places)
            .and_then(|start| {
                is_what_it_should_be(variant, &start, places.build)
                    .and_then(|()| has_its_loops(experiment, &start))
                    .and_then(|()| randomized_layouts::check(experiment, &start, places.build))
                    .map(|()| start)
                    .map_err(Unready::from)
            })
            .map_err(|Unready { reason, unavailable }| {
                if unavailable {
                    VariantStatus::Unsupported(reason)
                } else {
                    VariantStatus::Excluded(reason)
                }
            }),
    };
    let build = built.as_ref().map(|built| BuildNote {
        variant: variant.name.clone(),
        compiler: compiler.map_or(String::new(), |compiler| compiler.banner.clone()),
        cflags: built.flags.clone(),
        binary_bytes: start
            .as_ref()
            .ok()
            .and_then(|start| std::fs::metadata(&start.file).ok())
            .map(|data| data.len()),
        digest: start.as_ref().ok().and_then(|start| source::digest(&start.file).ok()),
        log: String::new(),
        seconds: built.seconds,
        cached: built.cached,
    });
    let mut warnings = match (&start, places.build) {
        (Ok(start), Some(build)) => strays(&variant.name, start, build),
        _ => Vec::new(),
    };
    if start.as_ref().is_ok_and(|start| start.runtime.is_some()) {
        warnings.push(format!("{}: this kernel has no x32, so x32run runs it in user space", variant.name));
        if micro::is_measured(experiment) {
            warnings.push(format!(
                "{}: operations that make system calls include what x32run does in the kernel's place",
                variant.name
            ));
        }
    }
    warnings.extend(start.as_ref().ok().and_then(|start| starts_no_x32(variant, start)));
    Ready {
        name: variant.name.clone(),
        slug: slug(&variant.name),
        start,
        machine: Machine::Native,
        further_layouts: Vec::new(),
        build,
        warnings,
        log: built.map(|built| built.log),
    }
}

/// That the command of an x32 variant starts another program (a shell, an interpreter), for which this kernel cannot start x32 programs.
fn starts_no_x32(variant: &Variant, start: &LaunchSpec) -> Option<String> {
    let is_x32 = match &variant.binary {
        Some(binary) => widthwise_x32run::is_x32(binary),
        None => variant.abi.is_some_and(|abi| abi.name == "x32"),
    };
    let is_at_home = widthwise_x32run::kernel_has_x32() || widthwise_x32run::registered();
    (is_x32 && !is_at_home && !widthwise_x32run::is_x32(&start.file)).then(|| {
        format!(
            "{}: the command starts {}, and this kernel cannot start x32 programs for it: begin the command with the program, write \
             `widthwise exec` before the program's name, or register the runtime (`widthwise exec --register`)",
            variant.name,
            start.file.display()
        )
    })
}

/// A build that ignores CC makes an x86-64 program under every name: nothing would be compared. What the build did not
/// make (`sh -c`, an interpreter) may be of any ABI.
fn is_what_it_should_be(variant: &Variant, start: &LaunchSpec, build: Option<&Path>) -> Result<(), String> {
    if variant.binary.is_none() && !build.is_some_and(|build| start.file.starts_with(build)) {
        return Ok(());
    }
    let (Some(wanted), Ok(found)) = (variant.abi, program::abi_of(&start.file)) else {
        // No ELF file: a script, or an interpreter's input.
        return Ok(());
    };
    if found.name == wanted.name {
        return Ok(());
    }
    let hint = match variant.binary {
        Some(_) => "name the right file with --binary",
        None => "does the build use $CC and $CXX?",
    };
    Err(format!("{} is built for {}, not {}: {hint}", start.file.display(), found.name, wanted.name))
}

/// An operation of the micro suite that the compiler removed would cost nothing.
fn has_its_loops(experiment: &Experiment, start: &LaunchSpec) -> Result<(), String> {
    if micro::is_measured(experiment) {
        micro::loops::check(&start.file, &experiment.metrics)?;
    }
    Ok(())
}

/// The program that was built may ask for a library of the same build, and be given the system's: then it is the
/// system's that is measured, in every variant.
fn strays(name: &str, start: &LaunchSpec, build: &Path) -> Vec<String> {
    let library_path = start
        .environment
        .get(OsStr::new("LD_LIBRARY_PATH"))
        .map(|list| list.to_string_lossy())
        .unwrap_or_default();
    let mut warnings = Vec::new();
    // A shell or another starter may have the program among its words.
    let words = start.arguments.iter().skip(1).map(PathBuf::from).filter(|word| word.is_absolute());
    for program in std::iter::once(start.file.clone()).chain(words).filter(|file| file.starts_with(build)) {
        for stray in linking::strays(&program, build, &library_path, &start.directory) {
            let taken = match &stray.taken {
                Some(path) => format!("is given {}", path.display()),
                None => "is given none".to_owned(),
            };
            let inside =
                |path: &Path| match path.strip_prefix(std::fs::canonicalize(build).unwrap_or_default()) {
                    Ok(rest) if rest.as_os_str().is_empty() => "{build}".to_owned(),
                    Ok(rest) => format!("{{build}}/{}", rest.display()),
                    Err(_) => path.display().to_string(),
                };
            let folder = stray.own.parent().map(inside).unwrap_or_default();
            warnings.push(format!(
                "{name}: {} asks for {}, and {taken} instead of its own build's {}: link with -Wl,-rpath,{folder}, or \
                 set --set-env 'LD_LIBRARY_PATH={folder}'",
                program.file_name().unwrap_or_default().to_string_lossy(),
                stray.name,
                inside(&stray.own),
            ));
        }
    }
    warnings
}

/// What builds are made with, whatever the variant.
struct BuildContext<'a> {
    source: &'a Source,
    toolchains: &'a Toolchains<'a>,
    place: &'a WorkDirectories,
    progress: &'a Progress,
}

/// Builds what the variants need, several builds at a time, each once; in the order of the variants.
fn build_all(
    experiment: &Experiment,
    machines: &[Result<Machine, String>],
    wanted: &[Wanted],
    context: &BuildContext,
) -> Result<Vec<Option<Result<Built, VariantStatus>>>, Failure> {
    let mut results: Vec<Option<Result<Built, VariantStatus>>> = wanted.iter().map(|_| None).collect();
    // Variants whose builds depend on the same things share one.
    let mut shared: Vec<(Order, String, Vec<usize>)> = Vec::new();
    for (index, wanted) in wanted.iter().enumerate() {
        // What cannot be run is not built.
        let unsupported = match (machine_of(experiment, machines, wanted.variant), wanted.variant.abi) {
            (Err(reason), _) => Some(reason.clone()),
            (Ok(Machine::Guest(kernel)), Some(abi)) => kernel.refuses(abi.name),
            _ => None,
        };
        if let Some(reason) = unsupported {
            results[index] = Some(Err(VariantStatus::Unsupported(reason)));
            continue;
        }
        match order(experiment, wanted, context) {
            Err(reason) => results[index] = Some(Err(VariantStatus::Unsupported(reason))),
            Ok(order) => {
                let folder = build::folder(&order);
                match shared.iter_mut().find(|(_, known, _)| *known == folder) {
                    Some((_, _, indices)) => indices.push(index),
                    None => shared.push((order, folder, vec![index])),
                }
            }
        }
    }
    let made: Vec<Mutex<Option<Result<Built, VariantStatus>>>> =
        shared.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..context.place.jobs.clamp(1, shared.len().max(1)) {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((order, _, indices)) = shared.get(number) else { return };
                let names: Vec<&str> = indices.iter().map(|&index| wanted[index].name.as_str()).collect();
                let result = build_one(order, &names, &experiment.baseline, context);
                if let Ok(mut place) = made[number].lock() {
                    *place = Some(result);
                }
            });
        }
    });
    for ((_, _, indices), made) in shared.iter().zip(made) {
        let result = made.into_inner().map_err(|_| Failure::machine("a build's thread panicked"))?;
        for (number, &index) in indices.iter().enumerate() {
            // It was made for the first of them.
            results[index] = result
                .clone()
                .map(|result| result.map(|built| Built { cached: built.cached || number > 0, ..built }));
        }
    }
    blame(wanted, context.toolchains, &mut results)?;
    Ok(results)
}

/// What is to be built for a variant, or why nothing is.
fn order<'a>(
    experiment: &'a Experiment,
    wanted: &'a Wanted<'a>,
    context: &'a BuildContext,
) -> Result<Order<'a>, String> {
    let variant = wanted.variant;
    let compiler = context.toolchains.chosen(variant)?;
    let abi: &'static AbiRow = variant.abi.and_then(|row| abi::find(row.name)).unwrap_or(&abi::ABIS[0]);
    // What cannot be measured is not built.
    program::allocator(variant, abi.name)?;
    let flags = Some(variant.flags.name.as_str()).filter(|name| *name != flag_set::DEFAULT);
    let words: Vec<&str> =
        [Some(abi.name), variant.compiler.as_deref(), flags].into_iter().flatten().collect();
    let training = match variant.flags.profile_guided {
        true => Some(training(experiment, variant, context.source, context.place)?),
        false => None,
    };
    Ok(Order {
        variant,
        abi,
        compiler,
        source: context.source,
        training,
        slug: slug(&words.join("/")),
        layout: wanted.script.as_deref(),
        jobs: context.place.jobs,
    })
}

/// Builds what the variants of these names share.
fn build_one(
    order: &Order,
    names: &[&str],
    baseline: &str,
    context: &BuildContext,
) -> Result<Built, VariantStatus> {
    let others = match names.len() {
        1 => String::new(),
        count => format!(" (of {count} variants)"),
    };
    let built = build::build(order, &context.place.root).map_err(|error| {
        let log = match &error {
            BuildError::Failed { log, .. } => format!("; full log: {}", short(log)),
            _ => String::new(),
        };
        // The failure of the baseline ends the campaign; that error reports it.
        if !names.iter().any(|name| randomized_layouts::is_of(name, baseline)) {
            context.progress.say(&format!("  {}{others}: {}", names[0], last_words(&error)));
        }
        VariantStatus::BuildFailed(format!("{error}{log}"))
    })?;
    if !built.cached {
        let time = duration(Duration::try_from_secs_f64(built.seconds).unwrap_or_default());
        context.progress.say(&format!("  built {}{others} in {time}", names[0]));
    }
    Ok(built)
}

/// How a build failed, with the last lines of its log.
fn last_words(error: &BuildError) -> String {
    let BuildError::Failed { how, log, .. } = error else { return error.to_string() };
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last: String =
        lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| format!("    {line}\n")).collect();
    format!("build failed ({how})\n{last}    full log: {}", short(log))
}

/// The training of a profile-guided build: the set's own command, or else the run command.
fn training(
    experiment: &Experiment,
    variant: &Variant,
    source: &Source,
    place: &WorkDirectories,
) -> Result<Training, String> {
    // The build folder is where the command is run.
    let build = Path::new(".");
    let places = Places { build: Some(build), source: Some(&source.path), here: &place.here, work: build };
    let digest = |path: &Path| content(path, &place.root);
    Ok(match &variant.flags.train {
        Some(text) => Training::Shell(program::shell_text(experiment, variant, text, &places)),
        None => Training::Run(program::run_command(experiment, variant, &places, &digest)?),
    })
}

/// A digest of what a file or a folder contains besides campaigns; empty of a device, and of what cannot be read.
fn content(path: &Path, campaigns: &Path) -> String {
    let is_kept = path.metadata().is_ok_and(|path| path.is_file() || path.is_dir());
    is_kept.then(|| source::digest_without(path, campaigns).ok()).flatten().unwrap_or_default()
}

/// A build that failed on a toolchain that cannot build anything for that ABI is not the program's fault; what fixes
/// the toolchain is in the message.
fn blame(
    wanted: &[Wanted],
    toolchains: &Toolchains,
    results: &mut [Option<Result<Built, VariantStatus>>],
) -> Result<(), Failure> {
    let failed = |result: &Option<Result<Built, VariantStatus>>| {
        matches!(result, Some(Err(VariantStatus::BuildFailed(_))))
    };
    if !results.iter().any(failed) {
        return Ok(());
    }
    let is_used = |compiler: &&Compiler| {
        let mut chosen = wanted.iter().filter_map(|one| toolchains.chosen(one.variant).ok());
        chosen.any(|one| one.name == compiler.name)
    };
    let used: Vec<Compiler> = toolchains.native.iter().filter(is_used).cloned().collect();
    let abilities = interrupt::while_examining(|| ability::probe(&used))?;
    for (variant, result) in wanted.iter().map(|one| one.variant).zip(results.iter_mut()) {
        let (Some(Err(status)), Some(abi), Ok(compiler)) = (result, variant.abi, toolchains.chosen(variant))
        else {
            continue;
        };
        let unavailable = abilities
            .iter()
            .filter(|ability| ability.abi == abi.name && ability.compiler == compiler.name)
            .find_map(|ability| ability.builds.as_ref().err());
        if let Some(unavailable) = unavailable.filter(|_| status.is_failure()) {
            let fix = unavailable.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
            *status = VariantStatus::Unsupported(format!("cannot be built here: {unavailable}{fix}"));
        }
    }
    Ok(())
}

/// What must not change while a campaign is measured: names, and what identifies each.
pub fn fingerprint(
    experiment: &Experiment,
    prepared: &Prepared,
    place: &WorkDirectories,
) -> BTreeMap<String, String> {
    let mut fingerprint = BTreeMap::new();
    if let Some(source) = &prepared.source {
        fingerprint.insert("source".to_owned(), source.digest.clone());
    }
    for compiler in &prepared.compilers {
        fingerprint.insert(format!("compiler {}", compiler.name), compiler.banner.clone());
    }
    for ready in &prepared.variants {
        if let Machine::Guest(kernel) = &ready.machine {
            fingerprint.insert(format!("kernel of {}", ready.name), kernel.digest.clone());
        }
        if let Ok(start) = &ready.start {
            let digest = source::digest(&start.file).unwrap_or_default();
            fingerprint.insert(format!("program of {}", ready.name), digest);
        }
        for (number, start) in (2..).zip(&ready.further_layouts) {
            let digest = source::digest(&start.file).unwrap_or_default();
            fingerprint.insert(format!("program of {}, layout {number}", ready.name), digest);
        }
    }
    for (number, start) in (1..).zip(&prepared.control) {
        let digest = source::digest(&start.file).unwrap_or_default();
        fingerprint.insert(format!("program of {}, layout {number}", experiment.control()), digest);
    }
    for input in experiment.launch.inputs.iter().chain(&experiment.launch.stdin) {
        // Campaigns change meanwhile, and are no part of an input.
        let digest = source::digest_without(&place.here.join(input), &place.root)
            .unwrap_or_else(|error| error.to_string());
        fingerprint.insert(format!("input {}", bytes::text(input)), digest);
    }
    fingerprint.extend(environment::fingerprint(experiment));
    fingerprint
}
